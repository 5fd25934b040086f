//! Prompts that the agent did not process, because it lost the session or requires a sign-in.

use super::{Ending, end};
use crate::core::lifecycle::{auth, open, prompt};
use crate::core::state::texts;
use crate::core::{Cx, State};
use crate::model::{ConnId, FaultKind, PromptId, SessionKey};

/// The agent has lost the session: reopens it, or opens a new one, and resends the prompt.
pub(super) fn on_session_gone(
    state: &mut State,
    key: SessionKey,
    (prompt, is_reopened): (PromptId, bool),
    message: &str,
    cx: &mut Cx,
) {
    let Some(session) = state.sessions.get_mut(&key) else { return };
    // It was just reopened, but does not exist.
    let is_doubtful = session.resume.doubt().is_some();
    session.outbox.set_reopened(prompt);
    if is_reopened {
        // An agent that loses each session would cause an endless loop.
        let message = format!("The agent no longer has this session: {message}");
        end(state, key, Ending::Unprocessed(FaultKind::Agent, message), cx);
        prompt::give_back(state, key, prompt, cx);
    } else {
        end(state, key, Ending::Unprocessed(FaultKind::Gone, message.to_owned()), cx);
    }
    if is_doubtful {
        open::open_replacement(state, key, texts::NOT_RESUMED, cx);
        return;
    }
    if let Some(session) = state.sessions.get_mut(&key) {
        session.resume.reopen();
    }
    open::open(state, key, cx);
}

/// The prompt waits for the sign-in and is then resent, without a second item.
pub(super) fn on_auth_needed(state: &mut State, conn: ConnId, key: SessionKey, message: &str, cx: &mut Cx) {
    end(state, key, Ending::Unprocessed(FaultKind::SignIn, message.to_owned()), cx);
    auth::need_sign_in(state, conn, key, message, cx);
}
