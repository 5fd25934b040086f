//! Appends a part of a replayed history to the record.

use std::time::Instant;

use crate::core::session::{apply, messages, record, tools};
use crate::core::state::place;
use crate::core::state::replay::{Replay, Taking};
use crate::core::{Cx, ItemBody, Session};
use crate::model::{
    ContentBlock, MessageId, NoticeKind, Record, RecordedEvent, Role, SessionUpdate, Severity, ToolStatus,
};

/// Appends events of the spool: the rest of the last turn, then new turns.
pub(super) fn put(session: &mut Session, taking: Taking, events: Vec<RecordedEvent>, now: Instant) {
    messages::close(session, now);
    let Taking { new, end, rest, turns, .. } = taking;
    let (may_be_recorded, space) = (ends_with_other(session), last_space(session));
    let mut left = rest.map(|rest| Left { rest, last: (false, None), may_be_recorded, space, is_cut: false });
    let (mut is_in_rest, mut is_in_new) = (false, false);
    for RecordedEvent { turn, record, .. } in events.into_iter().filter(|event| event.turn < end) {
        let Record::Update(update) = record else { continue };
        if turn >= new {
            if !std::mem::replace(&mut is_in_new, true) {
                end_part(session, now);
                let title = match turns {
                    1 => "1 turn from the agent's history".to_owned(),
                    _ => format!("{turns} turns from the agent's history"),
                };
                record::notice(session, NoticeKind::Taken(turns), Severity::Info, title, None);
            }
            append(session, update, now);
        } else if let Some(update) = left.as_mut().and_then(|left| left.of(session, update)) {
            let is_known =
                matches!(&update, SessionUpdate::Tool(patch) if session.current_tool(&patch.id).is_some());
            if !is_known && !std::mem::replace(&mut is_in_rest, true) {
                let title = "The rest of the turn, from the agent's history".to_owned();
                let kind = NoticeKind::Rest { is_cut: left.as_ref().is_some_and(|left| left.is_cut) };
                record::notice(session, kind, Severity::Info, title, None);
            }
            append(session, update, now);
        }
    }
    end_part(session, now);
}

/// Whether the record ends with an item that is neither text of a reply nor a call, such as a thought.
fn ends_with_other(session: &Session) -> bool {
    let items = session.transcript.items().iter().rev();
    let mut bodies = items.map(|item| &item.body).skip_while(|body| {
        matches!(body, ItemBody::TurnEnd(_) | ItemBody::Notice { .. } | ItemBody::Tool(_))
    });
    !matches!(bodies.next(), Some(ItemBody::Message(message)) if message.role != Role::Thought)
}

/// The white space at the end of the last message.
fn last_space(session: &Session) -> String {
    let mut items = session.transcript.items().iter().rev();
    let last = items.find_map(|item| match &item.body {
        ItemBody::Message(message) => {
            Some(message.parts.last().and_then(|part| part.text()).unwrap_or_default())
        }
        _ => None,
    });
    let text = last.unwrap_or_default();
    text.strip_prefix(text.trim_end()).unwrap_or_default().to_owned()
}

/// Finds what is not recorded of the last turn.
struct Left {
    rest: place::Rest,
    /// Whether text was replayed last, and the id of its message.
    last: (bool, Option<MessageId>),
    /// Whether items other than text may be recorded, until text follows that is not.
    may_be_recorded: bool,
    /// The white space that is recorded at the end of the text.
    space: String,
    /// Whether what is left begins within a line of text.
    is_cut: bool,
}

impl Left {
    /// The part of an update that is not recorded.
    fn of(&mut self, session: &Session, update: SessionUpdate) -> Option<SessionUpdate> {
        let text = match &update {
            SessionUpdate::Chunk { role: Role::Agent, message, .. }
            | SessionUpdate::Block { role: Role::Agent, message, block: ContentBlock::Text(_) } => {
                (true, message.clone())
            }
            SessionUpdate::Message { role: Role::Agent, message, .. } => (true, Some(message.clone())),
            _ => (false, None),
        };
        let begins_line = !text.0 || self.last != text;
        if begins_line {
            self.rest.cut("\n");
        }
        self.is_cut = !begins_line || !self.rest.is_passed();
        let message = text.1.clone();
        self.last = text;
        let text = match update {
            update if update.is_from_user() => return None,
            SessionUpdate::Chunk { role: Role::Agent, text, .. } => self.rest.cut(&text).to_owned(),
            SessionUpdate::Block { role: Role::Agent, block: ContentBlock::Text(text), .. } => {
                self.rest.cut(&text).to_owned()
            }
            SessionUpdate::Message { role: Role::Agent, content, more_content, .. } => {
                let blocks = content.as_set().into_iter().flatten().chain(&more_content);
                let texts = blocks.filter_map(|block| match block {
                    ContentBlock::Text(text) => Some(self.rest.cut(text)),
                    _ => None,
                });
                texts.collect()
            }
            SessionUpdate::Tool(patch) if session.current_tool(&patch.id).is_some() => {
                // A call whose end was not received gets it.
                let call = session.current_tool(&patch.id).and_then(|item| session.tool_call(item))?;
                return (call.is_status_assumed || !call.status.is_final())
                    .then_some(SessionUpdate::Tool(patch));
            }
            update => return (self.rest.is_passed() && !self.may_be_recorded).then_some(update),
        };
        if text.is_empty() {
            return None;
        }
        if let Some(space) = self.space.strip_prefix(text.as_str()) {
            self.space = space.to_owned();
            return None;
        }
        self.may_be_recorded = false;
        let space = std::mem::take(&mut self.space);
        let text = text.strip_prefix(&space).map_or_else(|| text.clone(), str::to_owned);
        Some(SessionUpdate::Chunk { role: Role::Agent, message, text })
    }
}

pub(super) fn append(session: &mut Session, update: SessionUpdate, now: Instant) {
    if let (SessionUpdate::Tool(patch), Replay::Beside(spool)) = (&update, &mut session.replay) {
        spool.added_calls.insert(patch.id.clone());
    }
    let saved = Record::Update(update.clone());
    match update {
        SessionUpdate::Subagent(patch) => drop(apply::on_subagent(session, patch, now)),
        other => apply::apply_here(session, other, &mut Cx::new(now)),
    }
    record::note(session, saved);
}

fn end_part(session: &mut Session, now: Instant) {
    messages::close(session, now);
    tools::close_open(session, ToolStatus::Completed, now);
}
