//! Where an agent's models come from, changed while it runs.
//!
//! Duty: has the agent change it, remembers it for its next start, and says what came of it. Not its duty: what
//! the configuration wishes at the start (`unstable`), asking the user (`dialogs::providers`).
//! Invariant: an agent that is started again is told what the user chose last, so that no prompt goes to a
//! service that was left.

use crate::model::{Call, CallError, ConnId, ProviderRequest, Purpose, Reply, Severity};

use super::call;
use crate::app::state::{lookup, texts};
use crate::app::{Effect, State};

/// Has the agent take its models from there, or switch the provider off.
pub fn change(state: &mut State, conn: ConnId, wish: ProviderRequest, fx: &mut Vec<Effect>) {
    let purpose = Purpose::ChangeProvider(Box::new(wish.clone()));
    if call::call(state, conn, purpose, Call::SetProvider(wish), fx).is_none() {
        call::flash(state, crate::app::state::texts::NOT_READY, fx);
    }
}

/// The agent did it, or not.
pub(in crate::app) fn on_changed(
    state: &mut State,
    conn: ConnId,
    wish: &ProviderRequest,
    result: Result<Reply, CallError>,
    fx: &mut Vec<Effect>,
) {
    // What is to be said may be longer than a line.
    let asked_in = lookup::root_of(state, state.active);
    if let Err(error) = result {
        let title = format!("Provider {} could not be changed.", wish.id);
        call::notice(state, asked_in, Severity::Error, title, Some(texts::error_text(&error)));
        return;
    }
    if let Some(conn) = state.conns.get_mut(&conn) {
        let wishes = &mut conn.spec.wire.providers;
        wishes.retain(|other| other.id != wish.id);
        wishes.push(wish.clone());
    }
    let title = match &wish.target {
        Some(target) => format!("Provider {} set to {}.", wish.id, target.base_url),
        None => format!("Provider {} disabled.", wish.id),
    };
    // The protocol leaves open whether a session changes its place while it is open.
    let detail = "Open sessions may still use the old provider. Start a new session to be sure.";
    call::notice(state, asked_in, Severity::Info, title, Some(detail.to_owned()));
    call::call(state, conn, Purpose::ListProviders, Call::ListProviders, fx);
}
