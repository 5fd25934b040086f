//! Changes the providers of an agent's models while it is running.
//!
//! Requests the change, saves it for the next start of the agent, and reports the result. `unstable` applies the
//! configured providers at the start, `dialogs::providers` asks the user.
//! Invariant: a restarted agent gets the user's last choice, so that no prompt is sent to an earlier provider.

use crate::model::{Call, CallError, ConnId, ProviderRequest, Purpose, Reply, Severity};

use super::call;
use crate::core::state::{lookup, texts};
use crate::core::{Cx, State};

pub fn change(state: &mut State, conn: ConnId, request: ProviderRequest, cx: &mut Cx) {
    let purpose = Purpose::ChangeProvider(Box::new(request.clone()));
    if call::call(state, conn, purpose, Call::SetProvider(request), cx).is_none() {
        call::flash(state, crate::core::state::texts::NOT_READY, cx);
    }
}

pub(in crate::core) fn on_changed(
    state: &mut State,
    conn: ConnId,
    request: &ProviderRequest,
    result: Result<Reply, CallError>,
    cx: &mut Cx,
) {
    // The message may be longer than the status line.
    let asked_in = lookup::root_of(state, state.active);
    if let Err(error) = result {
        let title = format!("Provider {} could not be changed.", request.id);
        call::notice(state, asked_in, Severity::Error, title, Some(texts::error_text(&error)));
        return;
    }
    if let Some(conn) = state.conns.get_mut(&conn) {
        let providers = &mut conn.spec.wire.providers;
        providers.retain(|other| other.id != request.id);
        providers.push(request.clone());
    }
    let title = match &request.target {
        Some(target) => format!("Provider {} set to {}.", request.id, target.base_url),
        None => format!("Provider {} disabled.", request.id),
    };
    // The protocol does not specify whether open sessions switch their provider.
    let detail = "Open sessions may still use the old provider. Start a new session to be sure.";
    call::notice(state, asked_in, Severity::Info, title, Some(detail.to_owned()));
    call::call(state, conn, Purpose::ListProviders, Call::ListProviders, cx);
}
