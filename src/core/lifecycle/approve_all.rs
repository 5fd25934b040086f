//! Approving all permission requests of a session without asking, for a turn or as long as its agent runs.
//!
//! Invariant: only the user switches it on, by a question. Rules that deny or ask come first, and protected files, paths
//! outside of the session's folders, plans and forms are still asked about.

use super::call;
use crate::core::{ApproveAll, Consequence, Cx, Question, Session, State};
use crate::model::{SessionKey, Severity};

/// Stands for a rule in decisions.
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
        "parlor chooses the option that allows once, and starts commands, without showing them first.",
        "Protected files, paths outside of the session's folders, plans and forms are still asked about. \
        Rules that deny or ask still apply.",
        "A command can do anything that you can, also outside of the folder. /undo restores only files in it.",
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
