//! A session made of what was kept of it.
//!
//! Duty: plays records again, through the same code that made the transcript when they came, so that it looks
//! as it did. Not its duty: starting the agent again (`conn`), calling it (`open`).
//! Times are those between the records: what took two seconds then says so again.

use std::time::{Duration, Instant};

use crate::model::{
    AskId, ConnId, EarlierPage, ItemId, PermissionRequest, Record, RecordedEvent, RecordedSession, Role,
    SessionUpdate, Severity, SubagentPatch, ToolCallId, ToolCallPatch, ToolStatus, TurnOutcome, Window,
};

use super::{
    Decision, Earlier, Handover, ItemBody, Message, MessagePart, OpenRequest, OpenRequestKind, RecorderState,
    Session, TerminalView, Turn, TurnEnd, access, diffs, insert, messages, paging, tools, turn, updates,
};
use paging::{Needs, Things};

/// What stands where parlor ended within a turn.
pub(super) const CUT: &str = "This turn was cut: parlor ended in the middle of it.";

/// Makes the session of what was kept. Its agent is not started. Gives the item of the event that was looked for.
pub fn restore(session: &mut Session, kept: RecordedSession, now: Instant) -> Option<ItemId> {
    let RecordedSession {
        head, usage, draft, queue, events, left_out_count, unreadable_count, end_seq, ..
    } = kept;
    session.id.clone_from(&head.session);
    session.title.clone_from(&head.title);
    if head.place.cwd.is_absolute() {
        session.place.cwd.clone_from(&head.place.cwd);
    }
    session.place.additional_directories.clone_from(&head.place.additional_directories);
    session.usage = usage;
    session.draft = draft;
    session.queue = queue.into();
    session.ledger.has_own_title = head.has_own_title;
    session.ledger.chosen.clone_from(&head.chosen);
    session.ledger.owes_title = head.owes_title;
    let earlier = head.kept_as.clone().filter(|_| left_out_count > 0).map(|uid| Earlier {
        uid,
        before: kept.first_seq,
        count: left_out_count,
        is_loading: false,
        has_failed: false,
    });
    if left_out_count > 0 {
        session.transcript.set_head(earlier_words(left_out_count));
    }
    if let Some((uid, name)) = kept.came_from {
        push_notice(session, Severity::Info, format!("Continued from {uid}: {name}"), None);
    }
    if unreadable_count > 0 {
        let title = format!(
            "{unreadable_count} events of this session could not be read. They may be \
            from a newer version of parlor."
        );
        push_notice(session, Severity::Warning, title, None);
    }
    // Where nothing counts any more, nothing is to be read again.
    let first_seq = if events.is_empty() { end_seq } else { kept.first_seq };
    let goes_on = kept.later.is_some();
    let bounds = Bounds { is_cut: left_out_count > 0, goes_on, ..Bounds::default() };
    let first = session.transcript.next_id();
    let Played { mark, mut needs, .. } = play_to(session, events, kept.mark, bounds, now);
    if left_out_count == 0 {
        needs.clear();
    }
    push_later(session, kept.later.map_or(0, |(_, count)| count));
    // A history that the agent told anew begins nowhere else.
    session.ledger.earlier = earlier;
    paging::on_restored(session, first, (first_seq, end_seq), needs);
    session.ledger.keeping = RecorderState::of_kept(head, &session.draft, &session.queue);
    mark
}

/// What stands above the first event that is shown.
pub(super) fn earlier_words(count: u64) -> String {
    match count {
        0 => "Start of session".to_owned(),
        1 => "1 earlier event. Scroll up to load it.".to_owned(),
        _ => format!("{count} earlier events. Scroll up to load them."),
    }
}

/// What stands below the last event that is shown of a part.
fn push_later(session: &mut Session, count: u64) {
    let title = match count {
        0 => return,
        1 => "1 later event. Scroll down to load it.".to_owned(),
        _ => format!("{count} later events. Scroll down to load them."),
    };
    let body = ItemBody::Notice { severity: Severity::Info, title, detail: None };
    session.pages.later_line = Some(session.transcript.push(session.turn_count, body));
}

/// Puts a line below what is shown: of a part that is read, above the line that says how many events follow it.
pub(super) fn push_line(session: &mut Session, body: ItemBody) {
    let later = session.ledger.reading.as_ref().and_then(|reading| reading.later.as_ref());
    let count = later.map_or(0, |later| later.count);
    if let Some(line) = session.pages.later_line.take() {
        session.transcript.remove(line);
    }
    session.transcript.push(session.turn_count, body);
    push_later(session, count);
}

/// Puts a page of later events below those that are shown, in place of the line that says how many there are.
pub(super) fn append(session: &mut Session, window: Window, now: Instant) {
    if let Some(line) = session.pages.later_line.take() {
        session.transcript.remove(line);
    }
    let (is_cut, goes_on) = (session.ledger.earlier.is_some(), window.later_count > 0);
    let bounds = Bounds { is_cut, is_continued: true, goes_on, is_over: false };
    let Played { needs, .. } = play_to(session, window.events, None, bounds, now);
    push_later(session, window.later_count);
    paging::on_appended(session, window.next_seq, needs);
}

/// The item that shows the event that was looked for, found by what it says: what is shown may have been made live, and
/// knows no numbers.
pub(super) fn place_of(session: &Session, window: Window, now: Instant) -> Option<ItemId> {
    let mut part = Session::new(session.key, session.place.clone());
    let mark = play_to(&mut part, window.events, window.mark, Bounds::default(), now).mark?;
    let wanted = part.transcript.get(mark)?;
    let of_turn = || session.transcript.items().iter().filter(|item| item.turn == wanted.turn);
    let same = of_turn().find(|item| is_same(&item.body, &wanted.body));
    same.or_else(|| of_turn().next()).map(|item| item.id)
}

/// Whether a shown item is this one, of which the beginning or the end may be missing.
fn is_same(shown: &ItemBody, wanted: &ItemBody) -> bool {
    let text = |message: &Message| {
        let texts = message.parts.iter().filter_map(|part| match part {
            MessagePart::Text(text) => Some(text.as_str()),
            MessagePart::Block(_) => None,
        });
        texts.collect::<String>()
    };
    match (shown, wanted) {
        (ItemBody::Message(shown), ItemBody::Message(wanted)) => {
            shown.role == wanted.role && text(shown).contains(text(wanted).trim())
        }
        (ItemBody::Tool(shown), ItemBody::Tool(wanted)) => shown.id == wanted.id,
        _ => shown == wanted,
    }
}

/// Puts a page of earlier events above those that are shown, below the line that says how many there are. Returns whether
/// it could: what is shown may depend on the page, then both are to be read again (`paging::earlier_job`).
pub(super) fn prepend(session: &mut Session, page: EarlierPage, now: Instant) -> bool {
    let EarlierPage { events, first_seq, left_out_count } = page;
    let front = paging::on_page(session, first_seq, left_out_count);
    let is_first = front.left == 0 || events.is_empty();
    let mut part = Session::new(session.key, session.place.clone());
    let last_turn = events.iter().map(|event| event.turn).max();
    let later = session.ledger.reading.as_ref().and_then(|reading| reading.later.as_ref());
    let bounds = Bounds {
        is_cut: !is_first && front.may_hide,
        is_over: last_turn.is_some_and(|turn| paging::is_over_behind(session, turn, front)),
        goes_on: front.is_end && later.is_some(),
        is_continued: false,
    };
    let later_count = later.map_or(0, |later| later.count);
    let Played { needs, things, .. } = play_to(&mut part, events, None, bounds, now);
    let front = paging::Front { left: if is_first { 0 } else { front.left }, ..front };
    let last = part.transcript.items().last().map(|item| &item.body);
    if !front.is_own && paging::wait_for_both(session, &things, last, first_seq, front) {
        return false;
    }
    paging::put_in_front(session, part, first_seq, front, needs);
    if front.replaced > 0 && front.is_end && session.pages.later_line.take().is_some() {
        push_later(session, later_count);
    }
    session.transcript.set_head(earlier_words(front.left));
    if let Some(earlier) = &mut session.ledger.earlier {
        (earlier.before, earlier.count) = (first_seq, front.left);
    }
    if is_first {
        session.ledger.earlier = None;
    }
    true
}

/// What surrounds the events that are played.
#[derive(Debug, Clone, Copy, Default)]
#[allow(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
struct Bounds {
    /// There are earlier ones that are not shown.
    is_cut: bool,
    /// They follow others that are shown.
    is_continued: bool,
    /// Later ones follow in another part.
    goes_on: bool,
    /// Their last turn ended well behind them.
    is_over: bool,
}

/// Plays all events of a session again.
pub fn play(session: &mut Session, events: Vec<RecordedEvent>, now: Instant) {
    play_to(session, events, None, Bounds::default(), now);
}

/// What came of playing events.
struct Played {
    /// The item that the event that was looked for made or changed.
    mark: Option<ItemId>,
    /// What depends on events before them.
    needs: Needs,
    /// What events behind them may depend on.
    things: Things,
}

/// Plays events again, and looks for the item that the event at this place made or changed.
fn play_to(
    session: &mut Session,
    events: Vec<RecordedEvent>,
    mark: Option<usize>,
    bounds: Bounds,
    now: Instant,
) -> Played {
    let mut needs = Needs::default();
    let last_turn = events.last().map(|event| event.turn);
    let mut marked = None;
    let began_ms = events.first().map_or(0, |event| event.at_ms);
    let mut last = now;
    if let Some(first) = events.first().filter(|_| !bounds.is_continued) {
        session.turn_count = first.turn;
    }
    if begins_within_turn(&events) {
        session.turn = Turn::Running { since: now, last_news: now };
    }
    for (place, event) in events.into_iter().enumerate() {
        let since = Duration::from_millis(u64::try_from(event.at_ms - began_ms).unwrap_or(0));
        last = now.checked_add(since).unwrap_or(last);
        if needs.note(session, &event) && bounds.is_cut {
            needs.hides = true;
            continue;
        }
        let is_marked = mark == Some(place);
        if is_marked {
            session.transcript.watch(true);
        }
        count_turn(session, event.turn, &event.record, last);
        apply(session, event.record, last);
        if is_marked {
            let last = session.transcript.items().last().map(|item| item.id);
            marked = session.transcript.take_touched().pop_last().or(last);
            session.transcript.watch(false);
        }
    }
    session.turn = Turn::Idle;
    session.has_background_news = false;
    let things = Things::of(session, last_turn);
    let open_message = session.ledger.open_message;
    messages::close(session, last);
    if bounds.goes_on {
        session.ledger.open_message = open_message;
    } else {
        session.ledger.echo = None;
        // What was asked about and not decided was not done.
        let asked: Vec<OpenRequest> = session.asks.drain(..).collect();
        for open in asked {
            if let OpenRequestKind::Permission { tool, .. } = open.kind {
                tools::cancel(session, tool, last);
            }
        }
        let status = if bounds.is_over { ToolStatus::Completed } else { ToolStatus::Cancelled };
        tools::close_open(session, status, last);
        access::close_restored(session, last);
    }
    // Nothing of this is news for the store.
    session.ledger.keeping.notes.clear();
    Played { mark: marked, needs, things }
}

/// Whether a turn runs where these events begin: what ends first was begun before.
fn begins_within_turn(events: &[RecordedEvent]) -> bool {
    let bound = events.iter().find_map(|event| match event.record {
        Record::Prompt { .. } => Some(false),
        Record::TurnEnded(_) => Some(true),
        _ => None,
    });
    bound.unwrap_or(true)
}

/// Counts the turn of an event as it was counted then: a message of the user begins one, unless it came within one.
fn count_turn(session: &mut Session, turn: u32, record: &Record, now: Instant) {
    let may_begin = match record {
        Record::Prompt { .. } => {
            session.turn_count = turn.saturating_sub(1);
            return;
        }
        Record::Update(SessionUpdate::Chunk { role, .. } | SessionUpdate::Block { role, .. }) => {
            *role == Role::User
        }
        // One that is known is written anew.
        Record::Update(SessionUpdate::Message { role, message, .. }) => {
            *role == Role::User && messages::find(session, *role, message).is_none()
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

fn apply(session: &mut Session, record: Record, now: Instant) {
    match record {
        Record::Prompt { text, is_again } => {
            turn::next_turn(session, now);
            if !is_again {
                session.transcript.push(session.turn_count, user_message(&text, now));
            }
            session.turn = Turn::Running { since: now, last_news: now };
            session.ledger.echo = Some((text, 0));
        }
        Record::Update(SessionUpdate::Subagent(patch)) => on_subagent(session, patch, now),
        Record::Update(update) => {
            // Where changes stood in their files then cannot be asked any more.
            if let Some(update) = messages::without_echo(session, update) {
                updates::apply_here(session, update, now, &mut Vec::new());
            }
        }
        Record::Asked(patch) => {
            let request = PermissionRequest {
                session: None,
                tool: ToolCallPatch::new(patch.id.clone()),
                options: Vec::new(),
            };
            let tool = tools::upsert(session, *patch, tools::Origin::Ask, now);
            // As long as it is not decided, the end of the turn does not close it.
            let kind = OpenRequestKind::Permission { request, tool };
            session.asks.push_back(OpenRequest { conn: ConnId(0), ask: AskId(0), kind, since: now });
        }
        Record::Decided { tool, option, is_allow } => {
            let decision = option.map_or(Decision::Cancelled, |name| Decision::Chosen { name, is_allow });
            if let Some(place) = take_asked(session, &tool).or_else(|| tools::by_id(session, &tool)) {
                tools::decide(session, place, &decision, now);
            }
        }
        Record::Located { tool, places } => diffs::put_places(session, &tool, places),
        Record::Answered { question, answer } => {
            session.transcript.push(session.turn_count, ItemBody::Answered { question, answer });
        }
        Record::Command { terminal, command, cwd, output, dropped_bytes, exit } => {
            let ended = exit.clone();
            let view = TerminalView {
                command,
                cwd,
                output: output.into_bytes(),
                dropped_bytes,
                exit: Some(exit),
                ..TerminalView::new(false, now)
            };
            access::on_command_ended(session, &terminal, &ended, now);
            session.terminals.insert(terminal, view);
        }
        Record::Access(record) => {
            access::place(session, *record, now);
        }
        Record::Notice { severity, title, detail } => push_notice(session, severity, title, detail),
        Record::TurnEnded(outcome) => on_turn_ended(session, outcome, now),
        Record::Replaced => {
            session.transcript.clear();
            session.forget_places();
            session.turn = Turn::Idle;
            session.turn_count = 0;
        }
        Record::Inserted { back, updates } => insert::play(session, back, updates, now),
        Record::HandedOver { agent, text } => {
            session.ledger.handover = Some(Handover { text, agent, is_sent: false });
        }
        // It is taken back before the agent is asked to go on with it.
        Record::Archived { is_away } => session.is_archived = is_away,
    }
}

/// The call that the first open question of this id is about.
fn take_asked(session: &mut Session, id: &ToolCallId) -> Option<ItemId> {
    let asked = session.asks.iter().position(
        |open| matches!(&open.kind, OpenRequestKind::Permission { request, .. } if request.tool.id == *id),
    );
    match session.asks.remove(asked?)?.kind {
        OpenRequestKind::Permission { tool, .. } => Some(tool),
        _ => None,
    }
}

fn on_turn_ended(session: &mut Session, outcome: TurnOutcome, now: Instant) {
    session.turn = Turn::Idle;
    session.ledger.echo = None;
    let end = match outcome {
        TurnOutcome::Stopped { reason, usage, took_ms } => {
            session.turn_usage = usage.or(session.turn_usage);
            // It was told with the prompt of this turn.
            session.ledger.handover.take_if(|_| reason != crate::model::StopReason::Cancelled);
            let took = Duration::from_millis(took_ms);
            (reason != crate::model::StopReason::EndTurn).then_some(TurnEnd::Stopped { reason, usage, took })
        }
        TurnOutcome::Failed { error, fault } => Some(TurnEnd::Failed { error, fault }),
        TurnOutcome::AgentDied { cause, stderr_tail } => Some(TurnEnd::AgentDied { cause, stderr_tail }),
        TurnOutcome::Cut => {
            messages::close(session, now);
            tools::close_open(session, ToolStatus::Cancelled, now);
            push_notice(session, Severity::Warning, CUT.to_owned(), None);
            return;
        }
    };
    turn::close_items(session, end, now);
}

/// A child session is named, but not opened again.
pub(super) fn on_subagent(session: &mut Session, patch: SubagentPatch, now: Instant) {
    let place = if let Some(place) = session.ledger.subagents.get(&patch.session) {
        *place
    } else {
        messages::close(session, now);
        let body = ItemBody::Subagent {
            session: patch.session.clone(),
            key: None,
            title: String::new(),
            description: None,
            state: None,
        };
        let place = session.transcript.push(session.turn_count, body);
        session.ledger.subagents.insert(patch.session.clone(), place);
        place
    };
    session.transcript.edit(place, |item| {
        if let ItemBody::Subagent { title, description, state, .. } = &mut item.body {
            patch.title.apply_or_default(title);
            patch.description.apply(description);
            patch.state.apply(state);
        }
    });
}

fn user_message(text: &str, now: Instant) -> ItemBody {
    ItemBody::Message(Message {
        role: Role::User,
        message: None,
        parts: vec![MessagePart::Text(text.to_owned())],
        is_open: false,
        began: now,
        took: None,
        is_local: true,
    })
}

fn push_notice(session: &mut Session, severity: Severity, title: String, detail: Option<String>) {
    session.transcript.push(session.turn_count, ItemBody::Notice { severity, title, detail });
}
