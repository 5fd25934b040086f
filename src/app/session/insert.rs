//! Inserts items that only the agent's history has into a transcript and its record.
//!
//! Converts replayed items to updates, records them, and applies them at the places found by `reconcile`. Items after
//! the last one are recorded like any update, and start turns. Items before others are recorded as one
//! [`Record::Inserted`] each with the page in which it was inserted, and its position counted back from the end of the turn.
//! Invariant: a transcript restored from the record has the items in the same order.

use std::time::Instant;

use crate::model::{
    AgentTerminal, ItemId, Note, NoticeKind, Patch, Record, Role, SessionUpdate, Severity, TerminalId,
    ToolCallPatch, ToolContent, ToolStatus,
};

use super::reconcile::{AlignedItem, Reconciled};
use super::{apply, messages, paging, record, tools};
use crate::app::{Item, ItemBody, MessagePart, Replay, Session, TerminalView, ToolCall};

/// Inserts the items that only the replay has, and notices where both differ. Returns whether items were added at the
/// end.
pub(in crate::app) fn add(session: &mut Session, replay: &Session, found: Reconciled, now: Instant) -> bool {
    finish_calls(session, replay, &found, now);
    let mut missing = found.missing.into_iter().peekable();
    let mut runs: Vec<Run> = Vec::new();
    let mut at = 0;
    for piece in found.pieces {
        match piece {
            AlignedItem::Ours { item, .. } => at = item + 1,
            AlignedItem::Theirs { item, parts, differs } => {
                while let Some(turns) = missing.next_if(|run| run.behind <= at) {
                    runs.push(Run { at: turns.behind, what: Insertion::Missing(turns.turns) });
                }
                let update =
                    replay.transcript.items().get(item).map(|item| updates_of(item, parts, replay, session));
                match runs.last_mut() {
                    Some(Run { at: last, what: Insertion::Replayed { items, differs: known } })
                        if *last == at =>
                    {
                        items.extend(update);
                        *known |= differs;
                    }
                    _ => {
                        let items = update.into_iter().collect();
                        runs.push(Run { at, what: Insertion::Replayed { items, differs } });
                    }
                }
            }
        }
    }
    runs.extend(missing.map(|run| Run { at: run.behind, what: Insertion::Missing(run.turns) }));
    runs.sort_by_key(|run| run.at);

    let ids: Vec<ItemId> = session.transcript.items().iter().map(|item| item.id).collect();
    let mut has_end = false;
    for Run { at, what } in runs {
        let before = ids.get(at);
        let items = match what {
            Insertion::Missing(turns) => vec![missing_notice(turns, before.is_none())],
            Insertion::Replayed { items, differs } => {
                has_end |= before.is_none();
                std::iter::once(added_notice(items.len(), differs)).chain(items).collect()
            }
        };
        match before {
            Some(before) => insert(session, *before, &items, now),
            None => items.into_iter().for_each(|item| append(session, item, now)),
        }
    }
    messages::close(session, now);
    has_end
}

/// Items inserted at one place.
struct Run {
    at: usize,
    what: Insertion,
}

enum Insertion {
    /// Recorded turns before the place are not in the agent's history.
    Missing(usize),
    /// Items that only the replay has: the updates of each.
    Replayed { items: Vec<Vec<SessionUpdate>>, differs: bool },
}

fn missing_notice(turns: usize, is_end: bool) -> Vec<SessionUpdate> {
    let (what, them) = if turns == 1 {
        ("the turn above".to_owned(), "it")
    } else {
        (format!("the {turns} turns above"), "them")
    };
    let severity = if is_end { Severity::Warning } else { Severity::Info };
    let description = is_end.then(|| format!("The agent may not have {them}."));
    let title = format!("Not in the agent's history: {what}");
    vec![SessionUpdate::Notice { kind: NoticeKind::NotReplayed(turns), severity, title, description }]
}

fn added_notice(count: usize, differs: bool) -> Vec<SessionUpdate> {
    let what = if differs { "The agent's history differs" } else { "Only in the agent's history" };
    let count = if count == 1 { "the next item".to_owned() } else { format!("the next {count} items") };
    let title = format!("{what}: {count}");
    vec![SessionUpdate::notice(Severity::Info, title, None)]
}

/// Adds an item at the end, like a live update.
fn append(session: &mut Session, updates: Vec<SessionUpdate>, now: Instant) {
    messages::close(session, now);
    let continues = continues_last(session, &updates);
    if continues {
        // As a plain update it would continue the message before it.
        let turn = session.turn_count;
        record::note(session, Record::Inserted { back: 0, updates: updates.clone() });
        put(session, None, turn, updates, now);
        return;
    }
    for update in updates {
        let next = session.transcript.next_id();
        let record = match &update {
            SessionUpdate::Notice { kind, severity, title, description } => Record::Notice {
                kind: *kind,
                severity: *severity,
                title: title.clone(),
                detail: description.clone(),
            },
            _ => Record::Update(update.clone()),
        };
        apply(session, update, now);
        if session.transcript.next_id() > next {
            paging::on_pushed(session, next);
        }
        record::note(session, record);
    }
}

/// Whether the first of these updates would continue the last message.
fn continues_last(session: &Session, updates: &[SessionUpdate]) -> bool {
    let (role, message) = match updates.first() {
        Some(SessionUpdate::Chunk { role, message, .. } | SessionUpdate::Block { role, message, .. }) => {
            (*role, message)
        }
        _ => return false,
    };
    let last = session.transcript.items().last().map(|item| &item.body);
    role != Role::User
        && matches!(last, Some(ItemBody::Message(last)) if last.role == role && (message.is_none() || *message == last.message))
}

fn apply(session: &mut Session, update: SessionUpdate, now: Instant) {
    match update {
        SessionUpdate::Subagent(patch) => drop(apply::on_subagent(session, patch, now)),
        other => apply::apply_here(session, other, now, &mut Vec::new()),
    }
}

/// Inserts items before another one, in the turn of the item above them. The event belongs to the page of that item.
fn insert(session: &mut Session, before: ItemId, items: &[Vec<SessionUpdate>], now: Instant) {
    let all = session.transcript.items();
    let at = session.transcript.index_from(before);
    let Some(above) = all.get(at.saturating_sub(1)) else { return };
    let turn = above.turn;
    let owner = if above.id == ItemId::HEAD { before } else { above.id };
    let page = all.get(at..paging::page_range(session, owner).end).unwrap_or_default();
    let back = page.iter().take_while(|item| item.turn <= turn).count();
    let back = u32::try_from(back).unwrap_or(u32::MAX);
    for updates in items {
        let record = Record::Inserted { back, updates: updates.clone() };
        if let Some(record) = paging::divert(session, Some(owner), record) {
            session.recorder.note(Note::Event { turn, record: Box::new(record) });
        }
        put(session, Some(before), turn, updates.clone(), now);
    }
}

/// Replays an insertion into a turn of the page.
pub(in crate::app) fn play(
    session: &mut Session,
    turn: u32,
    back: u32,
    updates: Vec<SessionUpdate>,
    now: Instant,
) {
    let items = session.transcript.items();
    let end = items.partition_point(|item| item.turn <= turn);
    let at = end.saturating_sub(usize::try_from(back).unwrap_or(usize::MAX));
    let before = items.get(at).map(|item| item.id);
    messages::close(session, now);
    put(session, before, turn, updates, now);
}

/// Creates items and inserts them before this one, or at the end. They do not start a turn.
fn put(session: &mut Session, before: Option<ItemId>, turn: u32, updates: Vec<SessionUpdate>, now: Instant) {
    let mut made = Session::new(session.key, session.workspace.clone());
    // Times in a replay are meaningless.
    made.replay = Replay::Running(Box::default());
    for update in updates {
        apply(&mut made, update, now);
    }
    messages::close(&mut made, now);
    tools::close_open(&mut made, ToolStatus::Completed, now);
    for (id, view) in made.terminals {
        session.terminals.entry(id).or_insert(view);
    }
    for item in made.transcript.items() {
        let body = item.body.clone();
        match before {
            Some(before) => session.transcript.insert_before(before, turn, body),
            None => session.transcript.push(turn, body),
        };
    }
}

/// Sets the end of calls that were interrupted here, if the replay contains it.
fn finish_calls(session: &mut Session, replay: &Session, found: &Reconciled, now: Instant) {
    for piece in &found.pieces {
        let AlignedItem::Ours { item, told: Some(told) } = piece else { continue };
        let call_at = |session: &Session, index: usize| match session
            .transcript
            .items()
            .get(index)
            .map(|item| &item.body)
        {
            Some(ItemBody::Tool(call)) => Some(call.clone()),
            _ => None,
        };
        let (Some(ours), Some(theirs)) = (call_at(session, *item), call_at(replay, *told)) else { continue };
        let is_cut = ours.is_status_assumed && !theirs.is_status_assumed && theirs.status.is_final();
        let id = session.transcript.items().get(*item).map(|item| item.id);
        if !is_cut || id != session.index.current_tool(&ours.id) {
            continue;
        }
        let mut patch = ToolCallPatch::new(ours.id.clone());
        patch.status = Patch::Set(theirs.status);
        if ours.content.is_empty() && ours.output_text.is_none() {
            let told = patch_of(&theirs, ItemId::default(), replay, session);
            (patch.content, patch.terminals) = (told.content, told.terminals);
            (patch.output_text, patch.exit_code) = (told.output_text, told.exit_code);
        }
        let update = SessionUpdate::Tool(Box::new(patch));
        apply(session, update.clone(), now);
        record::note(session, Record::Update(update));
    }
}

/// The updates that create a replayed item, or these parts of it.
fn updates_of(
    item: &Item,
    parts: Option<Vec<MessagePart>>,
    replay: &Session,
    session: &Session,
) -> Vec<SessionUpdate> {
    match &item.body {
        ItemBody::Message(message) => {
            let (role, id) = (message.role, &message.message);
            let update = |part| match part {
                MessagePart::Text(text) => SessionUpdate::Chunk { role, message: id.clone(), text },
                MessagePart::Block(block) => SessionUpdate::Block { role, message: id.clone(), block },
            };
            parts.unwrap_or_else(|| message.parts.clone()).into_iter().map(update).collect()
        }
        ItemBody::Tool(call) => vec![SessionUpdate::Tool(Box::new(patch_of(call, item.id, replay, session)))],
        ItemBody::Notice { kind, severity, title, detail } => vec![SessionUpdate::Notice {
            kind: *kind,
            severity: *severity,
            title: title.clone(),
            description: detail.clone(),
        }],
        ItemBody::Compaction { id, status, summary, error } => vec![SessionUpdate::Compaction {
            id: id.clone(),
            status: status.clone(),
            summary: Patch::Set(summary.clone()),
            error: Patch::from_option(error.clone()),
        }],
        ItemBody::Subagent { session: id, title, description, state, .. } => {
            vec![SessionUpdate::Subagent(crate::model::SubagentPatch {
                session: id.clone(),
                title: Patch::Set(title.clone()),
                description: Patch::from_option(description.clone()),
                state: Patch::from_option(state.clone()),
                can_cancel: Patch::Keep,
            })]
        }
        ItemBody::Raw { name, raw } => vec![SessionUpdate::Unknown { name: name.clone(), raw: raw.clone() }],
        // A replay does not create these.
        ItemBody::TurnEnd(_) | ItemBody::Answered { .. } => Vec::new(),
    }
}

/// A patch with all data of a call. Its terminals get unique ids, because the agent may reuse theirs.
fn patch_of(call: &ToolCall, item: ItemId, replay: &Session, session: &Session) -> ToolCallPatch {
    let mut patch = ToolCallPatch::new(call.id.clone());
    patch.is_announcement = true;
    patch.title = Patch::Set(call.title.clone());
    patch.name = Patch::from_option(call.name.clone());
    patch.kind = Patch::Set(call.kind);
    patch.status = Patch::Set(call.status);
    patch.is_assumed = call.is_status_assumed;
    patch.locations = Patch::Set(call.locations.clone());
    patch.raw_input = Patch::from_option(call.raw_input.clone());
    patch.input = Patch::Set(call.input.clone());
    patch.raw_output = Patch::from_option(call.raw_output.clone());
    patch.output_text = Patch::from_option(call.output_text.clone());
    patch.exit_code = Patch::from_option(call.exit_code);
    patch.parent.clone_from(&call.parent);
    patch.extra.clone_from(&call.extra);
    let mut content = call.content.clone();
    for piece in &mut content {
        let ToolContent::Terminal(id) = piece else { continue };
        let Some(view) = replay.terminals.get(id) else { continue };
        let mut name = TerminalId::from(format!("replayed {item} {id}"));
        while session.terminals.contains_key(&name) {
            name = TerminalId::from(format!("{name}'"));
        }
        patch.terminals.extend(news_of(&name, view));
        *id = name;
    }
    patch.content = Patch::Set(content);
    patch
}

fn news_of(id: &TerminalId, view: &TerminalView) -> Vec<AgentTerminal> {
    let about = AgentTerminal::About {
        id: id.clone(),
        command: view.command.clone(),
        cwd: view.cwd.clone(),
        can_cancel: Patch::Keep,
    };
    let bytes = AgentTerminal::Bytes { id: id.clone(), bytes: view.output.clone(), is_whole: true };
    let exit = view.exit.clone().map(|status| AgentTerminal::Exit { id: id.clone(), status });
    [about, bytes].into_iter().chain(exit).collect()
}
