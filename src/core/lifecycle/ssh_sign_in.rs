//! Signing in to the SSH host of an agent, when SSH requires interaction.
//!
//! Offers to run SSH in the terminal, and starts it there. `model::Ssh` builds the command; afterwards `auth` restarts
//! the agent.

use std::time::Instant;

use crate::model::{AgentSpec, CloseReason, ConnId, SessionKey};

use crate::core::state::texts;
use crate::core::{Consequence, Cx, Effect, Question, State};

/// The host of an agent requires an interaction in the terminal.
pub(in crate::core) fn offer_sign_in(
    state: &mut State,
    conn: ConnId,
    key: SessionKey,
    reason: &CloseReason,
    now: Instant,
) {
    let spec = state.conns.get(&conn).map(|conn| conn.spec.clone()).unwrap_or_default();
    let Some(host) = spec.ssh.as_ref().map(|ssh| ssh.host.clone()) else { return };
    let body = vec![
        texts::close_cause(reason, &spec.command),
        "ssh asks for your credentials in the terminal, then the agent starts. The SSH connection is \
            reused for ten minutes after the last use."
            .to_owned(),
    ];
    let answers = [("Sign in", Consequence::SignInToHost(conn)), ("Cancel", Consequence::Close)];
    state.ask(key, Question::new(format!("Sign in to {host}"), body, answers).asked_at(now));
}

/// Signs in to the host of an agent that refused the connection; the agent is restarted afterwards.
pub fn sign_in_to_host(state: &mut State, conn: ConnId, cx: &mut Cx) {
    let ssh = state.conns.get(&conn).filter(|conn| !conn.is_alive()).and_then(|conn| conn.spec.ssh.clone());
    if ssh.is_some() {
        let spec = AgentSpec { ssh, ..AgentSpec::default() };
        cx.effects.push(Effect::RunLogin { conn, spec, env: Vec::new() });
    }
}
