//! Replays recorded events into a session, with the code that applied them live.
//!
//! The intervals between the records are retained: a call that took two seconds shows that again.

use std::ops::Range;
use std::time::{Duration, Instant};

use crate::model::{
    ConnId, ContentBlock, ItemId, NoticeKind, PermissionRequest, Record, RecordedEvent, RequestId, Role,
    SessionUpdate, Severity, StopReason, ToolCallId, ToolCallPatch, ToolStatus, TurnOutcome,
};

use super::{access, apply, diffs, insert, messages, tools, turns};
use crate::core::state::recorded::Playing;
use crate::core::{
    Cx, Decision, ItemBody, Message, MessagePart, OpenRequest, OpenRequestKind, Session, TerminalView, Turn,
    TurnEnd, TurnSummary,
};

pub fn play(session: &mut Session, events: Vec<RecordedEvent>, now: Instant) {
    play_to(session, events, None, now);
}

/// Replays events, and returns the item created or changed by the event at `mark`.
pub(in crate::core) fn play_to(
    session: &mut Session,
    events: Vec<RecordedEvent>,
    mark: Option<usize>,
    now: Instant,
) -> Option<ItemId> {
    let mut playing = Playing::new(now);
    let marked = feed(session, &mut playing, events, mark);
    finish(session, &playing);
    marked
}

/// Replays a part of the events; [`finish`] follows the last part.
pub(in crate::core) fn feed(
    session: &mut Session,
    playing: &mut Playing,
    events: Vec<RecordedEvent>,
    mark: Option<usize>,
) -> Option<ItemId> {
    let mut marked = None;
    if let Some(first) = events.first().filter(|_| playing.began.is_none()) {
        playing.began = Some(first.at_ms);
        if session.turn_count == 0 {
            session.turn_count = first.turn;
        }
        if begins_within_turn(&events) {
            session.turn = Turn::Running { since: playing.now, last_news: playing.now };
        }
    }
    let began_ms = playing.began.unwrap_or_default();
    for (place, RecordedEvent { at_ms, turn, record }) in events.into_iter().enumerate() {
        let since = Duration::from_millis(u64::try_from(at_ms - began_ms).unwrap_or(0));
        let last = playing.now.checked_add(since).unwrap_or(playing.last);
        playing.last = last;
        let before = session.transcript.mark();
        count_turn(session, turn, &record, last);
        match record {
            Record::Inserted { back, updates } => insert::play(session, turn, back, updates, last),
            record => apply(session, record, last),
        }
        if mark == Some(place) {
            let last = session.transcript.items().last().map(|item| item.id);
            marked = session.transcript.last_changed_since(before).or(last);
        }
    }
    marked
}

/// Ends a replay of events.
pub(in crate::core) fn finish(session: &mut Session, playing: &Playing) {
    close(session, playing.last);
    // Replayed events are already in the store.
    session.recorder.notes.clear();
}

/// Ends everything that is open: it was not continued when the session was saved.
pub(in crate::core) fn close(session: &mut Session, now: Instant) {
    session.turn = Turn::Idle;
    session.has_background_news = false;
    messages::close(session, now);
    session.echo.stop();
    // Calls without a decision were not executed.
    let asked: Vec<OpenRequest> = session.requests.drain(..).collect();
    for open in asked {
        if let OpenRequestKind::Permission { tool, .. } = open.kind {
            tools::cancel(session, tool, now);
        }
    }
    access::close_restored(session, now);
}

/// Whether these events begin within a turn: the first end of a turn has no start among them.
pub(in crate::core) fn begins_within_turn(events: &[RecordedEvent]) -> bool {
    let bound = events.iter().find_map(|event| match event.record {
        Record::Prompt { .. } => Some(false),
        Record::TurnEnded(_) => Some(true),
        _ => None,
    });
    bound.unwrap_or(true)
}

/// Sets the turn counter of an event as recorded: a user message starts a turn, unless it was received within one.
pub(in crate::core) fn count_turn(session: &mut Session, turn: u32, record: &Record, now: Instant) {
    let may_begin = match record {
        Record::Prompt { .. } => {
            session.turn_count = turn.saturating_sub(1);
            return;
        }
        Record::Update(SessionUpdate::Chunk { role, .. } | SessionUpdate::Block { role, .. }) => {
            *role == Role::User
        }
        // A known message is overwritten.
        Record::Update(SessionUpdate::Message { role, message, .. }) => {
            *role == Role::User && session.find_message(*role, message).is_none()
        }
        _ => false,
    };
    if may_begin && turn > session.turn_count {
        messages::close(session, now);
        session.turn_count = turn - 1;
        session.turn = Turn::Idle;
    } else if may_begin {
        session.turn = Turn::Running { since: now, last_news: now };
    }
}

pub(in crate::core) fn apply(session: &mut Session, record: Record, now: Instant) {
    match record {
        Record::Prompt { text, is_again, blocks, pasted, .. } => {
            turns::next_turn(session, now);
            let body = if is_again { resent() } else { user_message(&text, &blocks, pasted, now) };
            session.transcript.push(session.turn_count, body);
            session.turn = Turn::Running { since: now, last_news: now };
            session.echo.expect(text);
        }
        Record::Update(SessionUpdate::Subagent(patch)) => drop(apply::on_subagent(session, patch, now)),
        Record::Update(update) => {
            // The positions of changes in their files at that time cannot be determined later.
            if let Some(update) = messages::without_echo(session, update) {
                apply::apply_here(session, update, &mut Cx::new(now));
            }
        }
        Record::Asked { tool: patch, options } => {
            let tool = ToolCallPatch::new(patch.id.clone());
            let request = PermissionRequest { session: None, tool, options };
            let tool = tools::upsert(session, *patch, tools::Origin::Ask, now);
            // As long as it is undecided, the end of the turn does not close it.
            let kind = OpenRequestKind::Permission { request, tool };
            session.requests.push_back(OpenRequest {
                conn: ConnId(0),
                request_id: RequestId(0),
                kind,
                since: now,
            });
        }
        Record::Decided { tool, option, kind, is_allow, by, rule, option_id: _ } => {
            let chosen = |name| Decision::Chosen { name, kind, is_allow, rule };
            let decision = option.map_or(Decision::Cancelled(by), chosen);
            if let Some(position) = take_asked(session, &tool).or_else(|| session.tool_by_id(&tool)) {
                tools::decide(session, position, &decision, now);
            }
        }
        Record::Located { tool, positions } => diffs::put_positions(session, &tool, positions),
        Record::Answered { question, answer, by, request: _ } => {
            session.transcript.push(session.turn_count, ItemBody::Answered { question, answer, by });
        }
        Record::Command { terminal, command, cwd, output, dropped_bytes, exit } => {
            let ended = exit.clone();
            let call = session.index.terminal(&terminal).and_then(|item| session.tool_call(item));
            let number = call.filter(|call| call.is_typed()).and_then(|_| terminal.user_number());
            let mut view =
                TerminalView { command, cwd, dropped_bytes, number, ..TerminalView::new(false, now) };
            view.append(output.as_bytes());
            view.exit = Some(exit);
            access::on_command_ended(session, &terminal, &ended, now);
            session.terminals.insert(terminal, view);
        }
        Record::Access(record) => {
            access::place(session, *record, now);
        }
        Record::Notice { kind, severity, title, detail } => {
            if matches!(kind, NoticeKind::Taken(_) | NoticeKind::Rest { .. }) {
                messages::close(session, now);
            }
            let body = ItemBody::Notice { kind, severity, title, detail };
            session.transcript.push(session.turn_count, body);
        }
        Record::TurnEnded(outcome) => on_turn_ended(session, outcome, now),
        Record::Replaced => {
            session.transcript.clear();
            session.forget_positions();
            session.turn = Turn::Idle;
            session.turn_count = 0;
        }
        // It needs the turn of the event.
        Record::Inserted { .. } => {}
        Record::HandedOver { agent, text } => {
            session.resume.hand_over(text, agent);
        }
        // It is unarchived before the agent is asked to continue it.
        Record::Archived { is_away } => session.is_archived = is_away,
        Record::Snapshot(record) => session.undo.apply(&record),
    }
}

/// The call of the first open permission request with this id.
pub(in crate::core) fn take_asked(session: &mut Session, id: &ToolCallId) -> Option<ItemId> {
    let asked = session.requests.iter().position(
        |open| matches!(&open.kind, OpenRequestKind::Permission { request, .. } if request.tool.id == *id),
    );
    match session.requests.remove(asked?)?.kind {
        OpenRequestKind::Permission { tool, .. } => Some(tool),
        _ => None,
    }
}

pub(in crate::core) fn on_turn_ended(session: &mut Session, outcome: TurnOutcome, now: Instant) {
    session.turn = Turn::Idle;
    session.echo.stop();
    let known = |took_ms: u64| (took_ms > 0).then(|| Duration::from_millis(took_ms));
    let (end, summary) = match outcome {
        TurnOutcome::Stopped { reason, usage, took_ms, cost } => {
            session.turn_usage = usage.or(session.turn_usage);
            // It was sent with the prompt of this turn.
            if reason != StopReason::Cancelled {
                session.resume.handed_over();
            }
            let took = Duration::from_millis(took_ms);
            let end = (reason != StopReason::EndTurn).then_some(TurnEnd::Stopped { reason, usage, took });
            (end, TurnSummary { took: Some(took), cost })
        }
        TurnOutcome::Failed { error, fault, took_ms, cost } => {
            (Some(TurnEnd::Failed { error, fault }), TurnSummary { took: known(took_ms), cost })
        }
        TurnOutcome::AgentDied { cause, stderr_tail, took_ms, cost } => {
            (Some(TurnEnd::AgentDied { cause, stderr_tail }), TurnSummary { took: known(took_ms), cost })
        }
        TurnOutcome::Cut => {
            messages::close(session, now);
            tools::close_open(session, ToolStatus::Cancelled, now);
            turns::interrupt_compactions(session);
            let title = "Turn interrupted: parlor exited before the turn ended.".to_owned();
            let (kind, severity) = (NoticeKind::TurnCut, Severity::Warning);
            let body = ItemBody::Notice { kind, severity, title, detail: None };
            session.transcript.push(session.turn_count, body);
            return;
        }
    };
    turns::close_items(session, end, summary, now);
}

/// The line in place of a prompt that is sent again.
pub(in crate::core) fn resent() -> ItemBody {
    let (kind, severity) = (NoticeKind::Resent, Severity::Info);
    ItemBody::Notice { kind, severity, title: "Prompt sent again.".to_owned(), detail: None }
}

/// Creates the item of a prompt: its text with the pasted parts, and the blocks that were sent with it.
pub(crate) fn user_message(
    text: &str,
    blocks: &[ContentBlock],
    mut pasted: Vec<Range<usize>>,
    now: Instant,
) -> ItemBody {
    // The record may have been edited.
    pasted.retain(|range| text.get(range.clone()).is_some());
    if !pasted.is_sorted_by(|one, next| one.end <= next.start) {
        pasted.clear();
    }
    let blocks = blocks.iter().cloned().map(MessagePart::Block);
    ItemBody::Message(Message {
        role: Role::User,
        message: None,
        parts: std::iter::once(MessagePart::Text(text.to_owned().into())).chain(blocks).collect(),
        is_open: false,
        began: now,
        took: None,
        is_local: true,
        pasted,
    })
}
