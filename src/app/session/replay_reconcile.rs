//! A history that is replayed for a session with a transcript.
//!
//! The replay is collected in a separate session until it is complete, then compared with the record (`reconcile`), and
//! items that only the agent has are inserted (`insert`). Replays into an empty session are handled in `updates`.
//! Most agents respond once they have replayed everything. Some respond first or in the middle, and some replay on a
//! resume too: if the last recorded item was not replayed before the response, the replay is complete once it was
//! replayed and no updates followed for a while; if the replay stops before that item, the wait is longer. Prompts wait
//! for its end. What belongs to parts of the record that are only on disk is compared once these are loaded.
//! Invariant: recorded items stay, and no message, call or notice reported by the agent is dropped.

use crate::app::SeparateReplay;
use crate::app::Unread;
use std::time::{Duration, Instant};

use crate::model::{ItemId, Record, SessionUpdate, Severity, ToolStatus};

use super::{apply, insert, messages, paging, reconcile, record, tools};
use crate::app::{Effect, Item, ItemBody, Replay, Session, SessionPhase, TimerId};

/// Time without updates after which a replay is complete, once the agent has responded.
pub(in crate::app) const QUIET: Duration = Duration::from_millis(400);

/// Number of such intervals before a replay without the last recorded item is considered complete: an agent that reads
/// its history from a slow disk pauses, and a prompt in such a pause would be mixed with the rest.
const PAUSES: u8 = 6;

/// The same for a requested replay that has not started when the agent has responded.
const LATE_PAUSES: u8 = 3;

/// A user message that is received this long after the response does not start a replay.
const LATEST_BEGIN: Duration = Duration::from_secs(5);

/// Creates the separate session of a replay. Prompts wait for one that is expected.
pub(in crate::app) fn begin(session: &Session, is_expected: bool) -> Replay {
    let mut shadow = Session::new(session.key, session.workspace.clone());
    // Times in a replay are meaningless.
    shadow.replay = Replay::Running(Box::default());
    Replay::Separate(Box::new(SeparateReplay {
        shadow,
        is_expected,
        holds_prompts: is_expected,
        seen: 0,
        quiet_looks: 0,
        upto: session.transcript.items().last().map(|item| item.id),
        answered_at: None,
    }))
}

/// Applies an update to the replay if it belongs to the history; otherwise returns it.
pub(in crate::app) fn take(
    session: &mut Session,
    update: SessionUpdate,
    now: Instant,
    fx: &mut Vec<Effect>,
) -> Option<SessionUpdate> {
    let (key, is_open) = (session.key, session.phase == SessionPhase::Ready);
    let Replay::Separate(separate) = &mut session.replay else {
        return Some(update);
    };
    if !is_history(&update) {
        return Some(update);
    }
    if (is_open || !separate.is_expected) && !separate.has_begun() {
        // Notices of an agent after a load are not history; only a user message starts a late replay.
        let is_late = separate.answered_at.is_some_and(|at| now.saturating_duration_since(at) > LATEST_BEGIN);
        if is_late || !update.is_from_user() {
            return Some(update);
        }
        separate.holds_prompts = true;
        fx.push(Effect::Timer(TimerId::History(key), QUIET));
    }
    let shadow = &mut separate.shadow;
    match update {
        SessionUpdate::Subagent(patch) => drop(apply::on_subagent(shadow, patch, now)),
        other => apply::apply_here(shadow, other, now, &mut Vec::new()),
    }
    None
}

/// Whether an update describes events, not the state of the session.
fn is_history(update: &SessionUpdate) -> bool {
    match update {
        SessionUpdate::Chunk { .. }
        | SessionUpdate::Block { .. }
        | SessionUpdate::Message { .. }
        | SessionUpdate::Terminal(_)
        | SessionUpdate::Tool(_)
        | SessionUpdate::Plan(_)
        | SessionUpdate::PlanRemoved(_)
        | SessionUpdate::Notice { .. }
        | SessionUpdate::Compaction { .. }
        | SessionUpdate::CompactionChunk { .. }
        | SessionUpdate::Subagent(_)
        | SessionUpdate::Unknown { .. } => true,
        SessionUpdate::Commands(_)
        | SessionUpdate::Mode(_)
        | SessionUpdate::Model(_)
        | SessionUpdate::Options(_)
        | SessionUpdate::Info { .. }
        | SessionUpdate::Usage(_) => false,
    }
}

/// The call that opens the session was answered; the rest of the replay, or all of it, may follow.
pub(in crate::app) fn on_answered(session: &mut Session, now: Instant, fx: &mut Vec<Effect>) {
    let key = session.key;
    let Replay::Separate(separate) = &session.replay else { return };
    if separate.has_begun() && has_end(session, separate) {
        settle(session, now);
        return;
    }
    if let Replay::Separate(separate) = &mut session.replay {
        separate.answered_at = Some(now);
        separate.seen = separate.shadow.transcript.revision();
        separate.holds_prompts |= separate.has_begun();
        if separate.holds_prompts {
            fx.push(Effect::Timer(TimerId::History(key), QUIET));
        }
    }
}

/// Checks whether the replay is complete. Returns whether waiting prompts can be sent.
pub(in crate::app) fn on_timer(session: &mut Session, now: Instant, fx: &mut Vec<Effect>) -> bool {
    let key = session.key;
    let Replay::Separate(separate) = &mut session.replay else { return false };
    let so_far = separate.shadow.transcript.revision();
    let is_news = std::mem::replace(&mut separate.seen, so_far) != so_far;
    separate.quiet_looks = if is_news { 0 } else { separate.quiet_looks.saturating_add(1) };
    let (looks, has_begun, is_expected) = (separate.quiet_looks, separate.has_begun(), separate.is_expected);
    let enough = match &session.replay {
        // While updates arrive, the comparison is not needed.
        _ if looks == 0 => 1,
        Replay::Separate(separate) if has_begun && !has_end(session, separate) => PAUSES,
        _ if !has_begun && is_expected => LATE_PAUSES,
        _ => 1,
    };
    if looks < enough {
        fx.push(Effect::Timer(TimerId::History(key), QUIET));
        return false;
    }
    if has_begun {
        settle(session, now);
    } else if let Replay::Separate(separate) = &mut session.replay {
        // It may still start, but prompts no longer wait for it.
        separate.holds_prompts = false;
    }
    true
}

/// Ends the replay, because it is complete or a prompt is about to be sent, and inserts what only the agent has.
pub(in crate::app) fn settle(session: &mut Session, now: Instant) {
    let Replay::Separate(separate) = std::mem::take(&mut session.replay) else { return };
    let mut shadow = separate.shadow;
    let mut has_more = false;
    if !shadow.transcript.items().is_empty() {
        messages::close(&mut shadow, now);
        tools::close_open(&mut shadow, ToolStatus::Completed, now);
        let mut found = compare(session, None, &shadow);
        // A prompt that the agent refused because it had lost the session will be resent.
        if let Some(last) = found.missing.last_mut().filter(|_| session.outbox.unsent().is_some())
            && last.behind == session.transcript.items().len()
        {
            last.turns -= 1;
        }
        found.missing.retain(|run| run.turns > 0);
        session.unread_replay = unread(session, &shadow, &found);
        has_more = insert::add(session, &shadow, found, now);
    }
    take_plans(session, shadow, has_more);
}

/// A page of the record was loaded: inserts what the agent has of it.
pub(in crate::app) fn on_earlier(session: &mut Session, now: Instant) {
    let Some(rest) = session.unread_replay.take() else { return };
    let items = session.transcript.items();
    let is_behind = |item: &Item| item.id != ItemId::HEAD && item.turn >= rest.before;
    let end = items.iter().position(is_behind).unwrap_or(items.len());
    let ours = items.get(..end).unwrap_or_default();
    let is_whole = session.pages.book.earlier.is_none();
    let found = reconcile::reconcile(ours, rest.shadow.transcript.items(), is_whole);
    session.unread_replay = unread(session, &rest.shadow, &found);
    insert::add(session, &rest.shadow, found, now);
}

/// The part of a replay that belongs to unloaded pages. If it is too large for memory, a notice is shown instead.
fn unread(session: &mut Session, shadow: &Session, found: &reconcile::Reconciled) -> Option<Box<Unread>> {
    let reconcile::Unread { theirs, behind } = found.unread?;
    let items = shadow.transcript.items();
    let last = items.get(..theirs)?.last()?.turn;
    let before = session.transcript.items().get(behind).map_or(u32::MAX, |item| item.turn);
    let rest = Session {
        transcript: shadow.transcript.up_to_turn(last),
        terminals: shadow.terminals.clone(),
        ..Session::new(session.key, session.workspace.clone())
    };
    let limit = session.pages.limit_bytes;
    if limit > 0 && paging::weight_of_items(&rest) > limit / 2 {
        let title = "Earlier history was not compared with the agent's.";
        let body = ItemBody::notice(Severity::Info, title.to_owned(), None);
        session.transcript.push(session.turn_count, body);
        return None;
    }
    Some(Box::new(Unread { shadow: rest, before }))
}

fn compare(session: &Session, upto: Option<ItemId>, shadow: &Session) -> reconcile::Reconciled {
    let is_whole = session.pages.book.earlier.is_none();
    let ours = session.transcript.items();
    let count = upto
        .and_then(|last| ours.iter().rposition(|item| item.id == last))
        .map_or(ours.len(), |last| last + 1);
    reconcile::reconcile(ours.get(..count).unwrap_or(ours), shadow.transcript.items(), is_whole)
}

/// Whether the replay contains the last item that was recorded when it began.
fn has_end(session: &Session, separate: &SeparateReplay) -> bool {
    compare(session, separate.upto, &separate.shadow).has_end
}

/// The plan of the replay is used if the replay continues after the record, or the record has none; a completed plan is
/// ignored.
fn take_plans(session: &mut Session, shadow: Session, has_more: bool) {
    if shadow.is_plan_done() || !(has_more || session.plans.is_empty()) {
        return;
    }
    for plan in shadow.plans {
        if !session.plans.contains(&plan) {
            apply::on_plan(session, plan.clone());
            record::note(session, Record::Update(SessionUpdate::Plan(plan)));
        }
    }
}
