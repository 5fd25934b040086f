//! Dispatches responses to calls by purpose.
//!
//! A response is used once. Responses to calls of a closed connection are ignored.

use crate::model::{AgentCommand, CallError, CallTag, ConnId, Purpose, Reply};

use super::{auth, call, choices, close, listing, open, providers, steer, titles, turn, unstable};
use crate::core::state::texts;
use crate::core::{Cx, Effect, State};

/// Handles the response to a call.
pub(in crate::core) fn on_replied(
    state: &mut State,
    conn: ConnId,
    tag: &CallTag,
    result: Result<Reply, CallError>,
    cx: &mut Cx,
) {
    let was_open =
        state.conns.get_mut(&conn).is_some_and(|conn| conn.open_calls.remove(&tag.number).is_some());
    if !was_open {
        return;
    }
    // The agent can stop working on the call. Source: ACP v1, `$/cancel_request`.
    if matches!(result, Err(CallError::TimedOut(_))) {
        cx.effects.push(Effect::Send(conn, AgentCommand::CancelCall(tag.clone())));
    }
    match &tag.purpose {
        Purpose::Prompt(key) => turn::on_reply(state, conn, *key, tag.number, result, cx),
        Purpose::Steer(key) => steer::on_steered(state, *key, tag.number, result, cx),
        Purpose::NewSession(key)
        | Purpose::LoadSession(key)
        | Purpose::ResumeSession(key)
        | Purpose::ForkSession(key) => {
            open::on_opened(state, conn, *key, &tag.purpose, result, cx);
        }
        Purpose::ListSessions => listing::on_list(state, conn, tag.number, result, cx),
        Purpose::Authenticate => auth::on_authenticated(state, conn, result, cx),
        Purpose::LogOut => auth::on_signed_out(state, result, cx),
        Purpose::SetMode(key) | Purpose::SetModel(key) | Purpose::SetOption(key) | Purpose::SetTitle(key) => {
            choices::on_set(state, *key, tag.number, result, cx);
        }
        Purpose::TitleSaved(request) => titles::on_stored_title_set(state, request, result, cx),
        Purpose::StopPart(_) => unstable::on_stopped(state, result, cx),
        Purpose::Archive(key) => unstable::on_archived(state, *key, result, cx),
        Purpose::AuthStatus | Purpose::ListProviders => unstable::on_response(state, conn, result),
        Purpose::ChangeProvider(request) => providers::on_changed(state, conn, request, result, cx),
        Purpose::SessionStatus(id) => listing::on_status(state, conn, id, &result, cx),
        Purpose::SetProvider(id) => unstable::on_provider_set(state, conn, id, result, cx),
        Purpose::DeleteSession(id) => close::on_deleted(state, conn, id, result, cx),
        Purpose::CloseSession(_) => {
            if let Err(error) = result {
                call::flash(state, format!("Close failed: {}", texts::error_text(&error)), cx);
            }
        }
    }
}
