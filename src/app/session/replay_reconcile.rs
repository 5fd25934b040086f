//! A history that is replayed for a session that stands on the screen already.
//!
//! Duty: holds the replay beside the record until it is over, then has it compared with the record (`reconcile`) and
//! what only the agent has put in (`insert`). Not its duty: replays into an empty view (`updates`).
//! Most agents answer the call once they have replayed all. Some answer first and replay then, or answer in the middle
//! of it, and some replay on a resume too: if the last of the record was not told when the answer comes, the replay is
//! over once it was told and nothing more came for a while; one that breaks off before that is waited for longer. What
//! the user sends waits for its end. What belongs to parts of the record that are only on the disk is compared once these
//! are read.
//! Invariant: what was recorded stays, and no message, call or notice that the agent told is dropped.

use crate::app::Aside;
use crate::app::Unread;
use std::time::{Duration, Instant};

use crate::model::{ItemId, Record, Role, SessionUpdate, Severity, ToolStatus};

use super::{apply, insert, messages, paging, reconcile, record, tools};
use crate::app::{Effect, Item, ItemBody, Replay, Session, SessionPhase, TimerId};

/// A replay is over once nothing of it came for so long, and the agent has answered.
pub(in crate::app) const QUIET: Duration = Duration::from_millis(400);

/// How often it is looked at in vain before a replay that has not told the last of what is shown is given up: an agent
/// that reads its history from a slow disk pauses, and a prompt in such a pause would be mixed with the rest.
const PAUSES: u8 = 6;

/// The same for one that was asked for and has not begun when the agent has answered.
const LATE_PAUSES: u8 = 3;

/// A message of the user that comes so long after the answer was said elsewhere, and begins no replay.
const LATEST_BEGIN: Duration = Duration::from_secs(5);

/// A place beside the session for a replay. Prompts wait for one that is expected.
pub(in crate::app) fn begin(session: &Session, is_expected: bool) -> Replay {
    let mut shadow = Session::new(session.key, session.place.clone());
    // Times in a replay mean nothing.
    shadow.replay = Replay::Running(Box::default());
    Replay::Aside(Box::new(Aside {
        shadow,
        is_expected,
        holds_prompts: is_expected,
        seen: 0,
        quiet_looks: 0,
        upto: session.transcript.items().last().map(|item| item.id),
        answered_at: None,
    }))
}

/// Takes an update that tells a part of the history into the replay; gives it back if it belongs to none.
pub(in crate::app) fn take(
    session: &mut Session,
    update: SessionUpdate,
    now: Instant,
    fx: &mut Vec<Effect>,
) -> Option<SessionUpdate> {
    let (key, is_open) = (session.key, session.phase == SessionPhase::Ready);
    let Replay::Aside(aside) = &mut session.replay else {
        return Some(update);
    };
    if !is_history(&update) {
        return Some(update);
    }
    if (is_open || !aside.is_expected) && !aside.has_begun() {
        // What an agent says of itself after a load is no history; only a message of the user begins a late one.
        let is_late = aside.answered_at.is_some_and(|at| now.saturating_duration_since(at) > LATEST_BEGIN);
        if is_late || !is_from_user(&update) {
            return Some(update);
        }
        aside.holds_prompts = true;
        fx.push(Effect::Timer(TimerId::History(key), QUIET));
    }
    let shadow = &mut aside.shadow;
    match update {
        SessionUpdate::Subagent(patch) => apply::on_subagent(shadow, patch, now),
        other => apply::apply_here(shadow, other, now, &mut Vec::new()),
    }
    None
}

/// Whether an update tells what happened, not how the session is set.
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

fn is_from_user(update: &SessionUpdate) -> bool {
    matches!(
        update,
        SessionUpdate::Chunk { role: Role::User, .. }
            | SessionUpdate::Block { role: Role::User, .. }
            | SessionUpdate::Message { role: Role::User, .. }
    )
}

/// The call that opens the session was answered: the rest of the replay, or all of it, may still come.
pub(in crate::app) fn on_answered(session: &mut Session, now: Instant, fx: &mut Vec<Effect>) {
    let key = session.key;
    let Replay::Aside(aside) = &session.replay else { return };
    if aside.has_begun() && has_end(session, aside) {
        settle(session, now);
        return;
    }
    if let Replay::Aside(aside) = &mut session.replay {
        aside.answered_at = Some(now);
        aside.seen = aside.shadow.transcript.revision();
        aside.holds_prompts |= aside.has_begun();
        if aside.holds_prompts {
            fx.push(Effect::Timer(TimerId::History(key), QUIET));
        }
    }
}

/// Looks whether the replay has come to its end. Returns whether what waited for it may be sent.
pub(in crate::app) fn on_timer(session: &mut Session, now: Instant, fx: &mut Vec<Effect>) -> bool {
    let key = session.key;
    let Replay::Aside(aside) = &mut session.replay else { return false };
    let so_far = aside.shadow.transcript.revision();
    let is_news = std::mem::replace(&mut aside.seen, so_far) != so_far;
    aside.quiet_looks = if is_news { 0 } else { aside.quiet_looks.saturating_add(1) };
    let (looks, has_begun, is_expected) = (aside.quiet_looks, aside.has_begun(), aside.is_expected);
    let enough = match &session.replay {
        // While it comes, nobody need know how far it is.
        _ if looks == 0 => 1,
        Replay::Aside(aside) if has_begun && !has_end(session, aside) => PAUSES,
        _ if !has_begun && is_expected => LATE_PAUSES,
        _ => 1,
    };
    if looks < enough {
        fx.push(Effect::Timer(TimerId::History(key), QUIET));
        return false;
    }
    if has_begun {
        settle(session, now);
    } else if let Replay::Aside(aside) = &mut session.replay {
        // It may still begin, but nothing waits for it any more.
        aside.holds_prompts = false;
    }
    true
}

/// The replay is over, or a prompt is about to be sent: what only the agent has is put where it belongs.
pub(in crate::app) fn settle(session: &mut Session, now: Instant) {
    let Replay::Aside(aside) = std::mem::take(&mut session.replay) else {
        return;
    };
    let mut shadow = aside.shadow;
    let mut has_more = false;
    if !shadow.transcript.items().is_empty() {
        messages::close(&mut shadow, now);
        tools::close_open(&mut shadow, ToolStatus::Completed, now);
        let mut found = compare(session, None, &shadow);
        // A prompt that the agent refused because it had lost the session is sent once more.
        if let Some(last) = found.untold.last_mut().filter(|_| session.prompts.unsent().is_some())
            && last.behind == session.transcript.items().len()
        {
            last.turns -= 1;
        }
        found.untold.retain(|run| run.turns > 0);
        session.unread_replay = unread(session, &shadow, &found);
        has_more = insert::add(session, &shadow, found, now);
    }
    take_plans(session, shadow, has_more);
}

/// A page of the record was read: what the agent has of it is put where it belongs.
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
        ..Session::new(session.key, session.place.clone())
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

/// Whether the replay has told the last of what was recorded when it began.
fn has_end(session: &Session, aside: &Aside) -> bool {
    compare(session, aside.upto, &aside.shadow).has_end
}

/// The plan of the replay counts if it came behind the record, or the record has none; one that is done says nothing.
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
