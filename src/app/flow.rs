//! What both sides of the app call: starting agents, opening sessions, turns and answers.
//!
//! The user's side (`app::user`) decides that something is wished; the functions here make it happen. All of
//! them are total: what does not fit the state does nothing, or says why in the status line.

use std::time::Instant;

use crate::model::{AgentSpec, ConfigValue, ConnId, FieldValue, ModeId, ModelId, SessionId, SessionKey};

use super::{Effect, State};

/// Starts an agent for a session (ending the one it had), then opens the session: resume if the session has an
/// id and the agent can, else load, else new.
pub fn start_agent(state: &mut State, key: SessionKey, spec: AgentSpec, now: Instant, fx: &mut Vec<Effect>) {
    let _ = (state, key, spec, now, fx);
}

/// Starts the session's agent again and reopens the session; the transcript stays.
pub fn restart_agent(state: &mut State, key: SessionKey, now: Instant, fx: &mut Vec<Effect>) {
    let _ = (state, key, now, fx);
}

/// Ends an agent's process at once.
pub fn force_stop(state: &mut State, conn: ConnId, now: Instant, fx: &mut Vec<Effect>) {
    let _ = (state, conn, now, fx);
}

/// Opens a fresh session with the same agent and shows it.
pub fn new_session(state: &mut State, now: Instant, fx: &mut Vec<Effect>) {
    let _ = (state, now, fx);
}

/// Opens a session that the agent listed, and shows it.
pub fn open_session(state: &mut State, id: SessionId, now: Instant, fx: &mut Vec<Effect>) {
    let _ = (state, id, now, fx);
}

/// Asks the agent for its sessions; the picker is filled when they come.
pub fn list_sessions(state: &mut State, now: Instant, fx: &mut Vec<Effect>) {
    let _ = (state, now, fx);
}

/// Copies the session, if the agent can.
pub fn fork_session(state: &mut State, key: SessionKey, now: Instant, fx: &mut Vec<Effect>) {
    let _ = (state, key, now, fx);
}

/// Gives the session a title, if the agent can.
pub fn set_title(state: &mut State, key: SessionKey, title: String, now: Instant, fx: &mut Vec<Effect>) {
    let _ = (state, key, title, now, fx);
}

/// Sends a prompt, or queues it while a turn runs or the session is not open yet. Keeps it in the history.
pub fn submit(state: &mut State, key: SessionKey, text: String, now: Instant, fx: &mut Vec<Effect>) {
    let _ = (state, key, text, now, fx);
}

/// Cancels the running turn: the notification first, then `cancelled` for every open permission.
pub fn cancel_turn(state: &mut State, key: SessionKey, now: Instant, fx: &mut Vec<Effect>) {
    let _ = (state, key, now, fx);
}

/// Answers the first open ask, a permission or an outside file, with the option at this place; `None`
/// rejects (the agent's `reject_once` option where it has one, else `cancelled`).
pub fn answer_first_ask(
    state: &mut State,
    key: SessionKey,
    option: Option<usize>,
    now: Instant,
    fx: &mut Vec<Effect>,
) {
    let _ = (state, key, option, now, fx);
}

/// An answer to an elicitation.
#[derive(Debug, Clone, PartialEq)]
pub enum ElicitationOutcome {
    /// Accepted; `None` for a page, whose address is then opened.
    Accept(Option<Vec<(String, FieldValue)>>),
    /// Declined.
    Decline,
    /// Cancelled.
    Cancel,
}

/// Answers the first open ask, an elicitation.
pub fn answer_elicitation(
    state: &mut State,
    key: SessionKey,
    outcome: ElicitationOutcome,
    now: Instant,
    fx: &mut Vec<Effect>,
) {
    let _ = (state, key, outcome, now, fx);
}

/// Signs in with a method of the agent; for `env_var` methods `vars` holds the values.
pub fn sign_in(
    state: &mut State,
    conn: ConnId,
    method_id: &str,
    vars: Vec<(String, String)>,
    now: Instant,
    fx: &mut Vec<Effect>,
) {
    let _ = (state, conn, method_id, vars, now, fx);
}

/// Signs out, if the agent can.
pub fn sign_out(state: &mut State, conn: ConnId, now: Instant, fx: &mut Vec<Effect>) {
    let _ = (state, conn, now, fx);
}

/// Sets the mode.
pub fn set_mode(state: &mut State, key: SessionKey, mode: ModeId, now: Instant, fx: &mut Vec<Effect>) {
    let _ = (state, key, mode, now, fx);
}

/// Sets the model of the legacy list.
pub fn set_model(state: &mut State, key: SessionKey, model: ModelId, now: Instant, fx: &mut Vec<Effect>) {
    let _ = (state, key, model, now, fx);
}

/// Sets a config option.
pub fn set_option(
    state: &mut State,
    key: SessionKey,
    option: String,
    value: ConfigValue,
    now: Instant,
    fx: &mut Vec<Effect>,
) {
    let _ = (state, key, option, value, now, fx);
}

/// Kills the command that runs in the marked item, or the only one that runs.
pub fn kill_command(state: &mut State, key: SessionKey, now: Instant, fx: &mut Vec<Effect>) {
    let _ = (state, key, now, fx);
}

/// Leaves: cancels turns, answers all asks, stops all agents, ends the program.
pub fn quit(state: &mut State, now: Instant, fx: &mut Vec<Effect>) {
    let _ = (state, now, fx);
}
