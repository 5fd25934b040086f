//! The turns of a record, as they are compared with a replayed history.

use crate::core::state::place::{self, RecordedTurn, ReplayedTurn, Reply};
use crate::core::state::replay;
use crate::core::{Item, ItemBody, MessagePart, Session, TurnEnd};
use crate::model::{ContentBlock, FaultKind, NoticeKind, Role};

/// The turns of the record for a comparison: of the branch after the context was last cleared.
pub(in crate::core) fn recorded_turns(session: &Session) -> Vec<RecordedTurn> {
    let items = session.transcript.items();
    let is_cleared =
        |item: &Item| matches!(item.body, ItemBody::Notice { kind: NoticeKind::ContextCleared, .. });
    let begin = items.iter().rposition(is_cleared).map_or(0, |at| at + 1);
    let mut turns: Vec<RecordedTurn> = Vec::new();
    let (mut was_sent, mut is_within_line) = (Vec::new(), false);
    for item in items.get(begin..).unwrap_or_default() {
        match &item.body {
            ItemBody::Message(message) if message.role == Role::User => {
                let mut texts = message.parts.iter().filter_map(|part| part.text());
                let prompt = if message.is_local {
                    texts.next().unwrap_or_default().to_owned()
                } else {
                    let chunks = texts.map(str::to_owned).collect();
                    let replayed = ReplayedTurn { chunks, ..ReplayedTurn::default() };
                    if replayed.is_continuation() && !turns.is_empty() {
                        continue;
                    }
                    replayed.prompt(0)
                };
                let embedded = message.parts.iter().filter_map(|part| match part {
                    MessagePart::Block(block) => Some(block),
                    MessagePart::Text(_) => None,
                });
                let embedded = embedded.flat_map(|block| [replay::text_of(block), uri_of(block)]);
                let end = if message.is_local { place::TurnEnd::Open } else { place::TurnEnd::Taken };
                turns.push(RecordedTurn {
                    number: item.turn,
                    prompt,
                    embedded: embedded.filter(|text| !text.is_empty()).collect(),
                    reply: Reply::with_texts(),
                    end,
                    ids: message.message.iter().map(|id| id.as_str().to_owned()).collect(),
                    ..RecordedTurn::default()
                });
                was_sent.push(true);
            }
            ItemBody::Message(message) if message.role == Role::Agent => {
                let Some(turn) = turns.last_mut() else { continue };
                turn.ids.extend(message.message.iter().map(|id| id.as_str().to_owned()));
                // The rest of a reply may begin within a line.
                if !std::mem::take(&mut is_within_line) {
                    turn.reply.push("\n");
                }
                for text in message.parts.iter().filter_map(|part| part.text()) {
                    turn.reply.push(text);
                }
            }
            ItemBody::Tool(call) => {
                turns.last_mut().into_iter().for_each(|turn| turn.calls.push(call.id.as_str().to_owned()));
            }
            ItemBody::Compaction { summary, .. } => {
                if let Some(turn) = turns.last_mut() {
                    turn.summary = Reply::default();
                    turn.summary.push(summary);
                }
            }
            ItemBody::TurnEnd(end) => {
                if let Some(turn) = turns.last_mut() {
                    turn.end = place::TurnEnd::Open;
                }
                let is_unsent = matches!(end, TurnEnd::Failed { fault: FaultKind::Unsent, .. });
                if let Some(last) = was_sent.last_mut().filter(|_| is_unsent) {
                    *last = false;
                }
                continue;
            }
            ItemBody::Notice { kind: NoticeKind::Rest { is_cut }, .. } => is_within_line = *is_cut,
            ItemBody::Notice { kind: NoticeKind::Resent, .. } => {
                // Agents may omit an attempt that got no reply.
                let attempt = turns.last().filter(|turn| !turn.reply.is_empty() || !turn.calls.is_empty());
                if let Some(turn) = attempt {
                    let (prompt, embedded) = (turn.prompt.clone(), turn.embedded.clone());
                    turns.push(RecordedTurn {
                        number: item.turn,
                        prompt,
                        embedded,
                        reply: Reply::with_texts(),
                        ..RecordedTurn::default()
                    });
                    was_sent.push(true);
                } else if let (Some(turn), Some(last)) = (turns.last_mut(), was_sent.last_mut()) {
                    turn.attempts += usize::from(*last);
                    *last = true;
                }
            }
            ItemBody::Notice { kind: NoticeKind::TurnCut, .. } => {
                if let Some(turn) = turns.last_mut() {
                    turn.end = place::TurnEnd::Open;
                }
                continue;
            }
            _ => {}
        }
        if item.end.is_some()
            && let Some(turn) = turns.last_mut()
        {
            turn.end = place::TurnEnd::Completed;
            turn.reply.forget_texts();
        }
    }
    // The agent refused it because it had lost the session; it is resent.
    if session.outbox.unsent().is_some()
        && let Some(last) = was_sent.last_mut()
    {
        *last = false;
    }
    turns.into_iter().zip(was_sent).filter(|(_, was_sent)| *was_sent).map(|(turn, _)| turn).collect()
}

fn uri_of(block: &ContentBlock) -> String {
    match block {
        ContentBlock::Resource { uri, .. } => uri.clone(),
        _ => String::new(),
    }
}
