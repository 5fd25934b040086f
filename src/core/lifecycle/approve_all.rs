//! Approves permission requests of a session without asking, for a turn or as long as its agent runs: all, or those for
//! what the sandbox of the agent confines.
//!
//! Invariant: only the user turns it on, by answering a question. Rules that deny or ask come first, and the user is still
//! asked about protected files, paths outside the session's folders, plans and forms.

use super::call;
use crate::core::{ApproveAll, Conn, Consequence, Cx, Question, Session, State};
use crate::model::{SessionKey, Severity};

/// Recorded in place of a rule.
pub(in crate::core) const RULE: &str = "approve-all";
pub(in crate::core) const RULE_IN_SANDBOX: &str = "approve-all in the sandbox";

/// Asks whether to approve all requests of a session, or stops approving them.
pub fn toggle(state: &mut State, key: SessionKey, cx: &mut Cx) {
    let Some(session) = state.sessions.get_mut(&key) else { return };
    if is_on(session).is_some() {
        session.permissions.approve_all(None);
        return call::flash(state, "Permission requests are shown again.", cx);
    }
    let is_confined = session.conn.and_then(|conn| state.conns.get(&conn)).is_some_and(Conn::is_confined);
    let turn = if session.turn.is_running() { "Until the end of this turn" } else { "For the next turn" };
    let body = [
        "parlor allows each request once, and starts commands, without showing them first.",
        "parlor still asks about protected files, paths outside the session's folders, plans and forms. \
        Rules that deny or ask still apply.",
        if is_confined {
            "The agent and its commands run in a sandbox, with the network that its settings allow. It confines \
            commands and changes in the session's folders; limited to that, parlor also asks about all else, such as \
            web addresses and MCP tools."
        } else {
            "Commands can do anything that you can, even outside the folder. /undo only restores files in the folder."
        },
    ];
    let scopes = [
        is_confined.then_some(("Only what the sandbox confines, until its agent stops", ApproveAll::Sandbox)),
        Some((turn, ApproveAll::Turn)),
        Some(("For this session, until its agent stops", ApproveAll::Session)),
    ];
    let scopes = scopes.into_iter().flatten();
    let answers = scopes.map(|(label, scope)| (label, Consequence::ApproveAll(key, scope)));
    let answers = std::iter::once(("No", Consequence::Close)).chain(answers);
    let question = Question::new("Approve all requests?", body.map(str::to_owned).to_vec(), answers);
    state.ask(key, question);
}

pub(in crate::core) fn start(state: &mut State, key: SessionKey, scope: ApproveAll) {
    // The agent may have been restarted since the question.
    let is_confined = state.conn_of(key).is_some_and(Conn::is_confined);
    let Some(session) = state.sessions.get_mut(&key) else { return };
    let Some(conn) = session.conn.filter(|_| is_confined || scope != ApproveAll::Sandbox) else { return };
    session.permissions.approve_all(Some((conn, scope)));
    let title = match scope {
        ApproveAll::Turn => "All permission requests are approved until the end of the turn.",
        ApproveAll::Session => "All permission requests of this session are approved.",
        ApproveAll::Sandbox => {
            "Commands and changes in the session's folders are approved while the agent runs in its sandbox."
        }
    };
    call::notice(state, key, Severity::Warning, title, None);
}

/// Whether and which requests of a top-level session are approved. The approval ends with the agent's process.
pub fn is_on(session: &Session) -> Option<ApproveAll> {
    session.permissions.approves_all(session.conn?)
}
