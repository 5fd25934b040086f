//! Inserts items into an earlier turn, as events of former versions of parlor describe.

use std::time::Instant;

use crate::model::{ItemId, SessionUpdate, ToolStatus};

use super::{apply, messages, tools};
use crate::core::{Cx, Replay, Session};

/// Inserts the items of an event before this number of items at the end of the turn.
pub(crate) fn play(session: &mut Session, turn: u32, back: u32, updates: Vec<SessionUpdate>, now: Instant) {
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
        match update {
            SessionUpdate::Subagent(patch) => drop(apply::on_subagent(&mut made, patch, now)),
            other => apply::apply_here(&mut made, other, &mut Cx::new(now)),
        }
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
