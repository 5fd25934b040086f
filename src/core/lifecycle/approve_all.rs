//! Approves all permission requests of a session without asking, for a turn or as long as its agent runs.
//!
//! Invariant: only the user turns it on, by answering a question. Rules that deny or ask come first, and the user is still
//! asked about protected files, paths outside the session's folders, plans and forms.

use super::call;
use crate::core::{ApproveAll, Consequence, Cx, Question, Session, State};
use crate::model::{SessionKey, Severity};

/// Recorded in place of a rule.
pub(in crate::core) const RULE: &str = "approve-all";

/// Asks whether to approve all requests of a session, or stops approving them.
pub fn toggle(state: &mut State, key: SessionKey, cx: &mut Cx) {
    let Some(session) = state.sessions.get_mut(&key) else { return };
    if is_on(session).is_some() {
        session.permissions.approve_all(None);
        return call::flash(state, "Permission requests are shown again.", cx);
    }
    let turn = if session.turn.is_running() { "Until the end of this turn" } else { "For the next turn" };
    let body = [
        "parlor allows each request once, and starts commands, without showing them first.",
        "parlor still asks about protected files, paths outside the session's folders, plans and forms. \
        Rules that deny or ask still apply.",
        "Commands can do anything that you can, even outside the folder. /undo only restores files in the folder.",
    ];
    let answers = [
        ("No", Consequence::Close),
        (turn, Consequence::ApproveAll(key, ApproveAll::Turn)),
        ("For this session, until its agent stops", Consequence::ApproveAll(key, ApproveAll::Session)),
    ];
    let question = Question::new("Approve all requests?", body.map(str::to_owned).to_vec(), answers);
    state.ask(key, question);
}

pub(in crate::core) fn start(state: &mut State, key: SessionKey, scope: ApproveAll) {
    let Some(session) = state.sessions.get_mut(&key) else { return };
    let Some(conn) = session.conn else { return };
    session.permissions.approve_all(Some((conn, scope)));
    let title = match scope {
        ApproveAll::Turn => "All permission requests are approved until the end of the turn.",
        ApproveAll::Session => "All permission requests of this session are approved.",
    };
    call::notice(state, key, Severity::Warning, title, None);
}

/// Whether all requests of a top-level session are approved. The approval ends with the agent's process.
pub fn is_on(session: &Session) -> Option<ApproveAll> {
    session.permissions.approves_all(session.conn?)
}
