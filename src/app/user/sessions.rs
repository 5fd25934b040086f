//! The list of sessions: those open here and those that the agent keeps, and what can be done with them.

use std::time::Instant;

use crate::app::{Choice, ChoiceDialog, ChoiceOutcome, Effect, Modal, PickerKind, PickerValue, State, flow};
use crate::model::{SessionId, SessionKey};

use super::{picker, rows, say};

/// Opens the list, and asks the agent for its part of it if it can tell.
pub fn open(state: &mut State, now: Instant, fx: &mut Vec<Effect>) {
    state.listed.clear();
    if state.conn_of(state.active).is_some_and(|conn| conn.capabilities().can_list) {
        flow::list_sessions(state, now, fx);
    }
    let sessions = picker::new(PickerKind::Session, "Sessions", rows::sessions(state));
    picker::push(state, sessions);
}

/// Asks whether the marked session is to go: closed if it is open here, deleted if the agent keeps it.
pub fn remove(state: &mut State, value: &PickerValue, label: &str, fx: &mut Vec<Effect>) {
    match value {
        PickerValue::Open(key) => ask_close(state, *key, fx),
        PickerValue::Id(id) => {
            if state.conn_of(state.active).is_some_and(|conn| conn.capabilities().can_delete) {
                ask_delete(state, SessionId::from(id.clone()), label);
            } else {
                say(state, "The agent cannot delete sessions.", fx);
            }
        }
        PickerValue::Action(_)
        | PickerValue::Copy(_)
        | PickerValue::Item(_)
        | PickerValue::Only(_)
        | PickerValue::Target(_) => {}
    }
}

/// Closes a session; asks first if something is cut off or lost by it.
pub fn close(state: &mut State, key: SessionKey, now: Instant, fx: &mut Vec<Effect>) {
    let is_harmless = state.sessions.get(&key).is_some_and(|session| {
        let is_busy = session.turn.is_running() || !session.asks.is_empty();
        let is_kept = state.setup.keeps_sessions || session.transcript.items().is_empty();
        let is_written = session.draft.trim().is_empty() && session.queue.is_empty();
        !is_busy && is_kept && is_written && session.parent.is_none()
    });
    if is_harmless {
        flow::close_session(state, key, now, fx);
    } else {
        ask_close(state, key, fx);
    }
}

/// Asks whether a session is to be closed.
pub fn ask_close(state: &mut State, key: SessionKey, fx: &mut Vec<Effect>) {
    let Some(session) = state.sessions.get(&key) else { return };
    if session.parent.is_some() {
        say(state, "A subagent's session goes with the session that it works for.", fx);
        return;
    }
    let mut body = vec![rows::session_title(session)];
    if session.turn.is_running() {
        body.push("Its turn is running and will be cancelled.".to_owned());
    }
    let can_come_back =
        state.conn_of(key).is_some_and(|conn| conn.capabilities().can_list && conn.capabilities().can_load);
    body.push(if state.setup.keeps_sessions {
        "It is kept: parlor can go on with it later.".to_owned()
    } else if can_come_back {
        "The agent keeps it: it can be opened again from the list.".to_owned()
    } else {
        "What stands in it is gone then: this agent does not bring it back.".to_owned()
    });
    ask(state, "Close this session?", body, "Close it", ChoiceOutcome::CloseSession(key));
}

fn ask_delete(state: &mut State, id: SessionId, label: &str) {
    let body = vec![label.to_owned(), "The agent takes it off its list. This cannot be undone.".to_owned()];
    ask(state, "Delete this session?", body, "Delete it", ChoiceOutcome::DeleteSession(id));
}

fn ask(state: &mut State, title: &str, body: Vec<String>, deed: &str, outcome: ChoiceOutcome) {
    state.modals.push(Modal::Choice(ChoiceDialog {
        title: title.to_owned(),
        body,
        choices: vec![
            Choice { label: deed.to_owned(), outcome },
            Choice { label: "Keep it".to_owned(), outcome: ChoiceOutcome::Close },
        ],
        selected: 1,
        opened_by_itself: None,
    }));
}
