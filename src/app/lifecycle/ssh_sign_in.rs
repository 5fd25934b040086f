//! Signing in to the host of an agent, where ssh has to ask the user.
//!
//! Duty: offers ssh the terminal, and starts it there. Not its duty: what ssh is told (`model::Ssh`), sign-ins of agents
//! (`auth`). Once it is done, `auth` starts the agent again.

use std::time::Instant;

use crate::model::{AgentSpec, CloseReason, ConnId, SessionKey};

use super::tabs;
use crate::app::state::texts;
use crate::app::{Choice, ChoiceDialog, ChoiceOutcome, Effect, Modal, State};

/// The host of an agent asks something that only the user can answer, in the terminal.
pub(in crate::app) fn offer_sign_in(
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
    let question = Modal::Choice(ChoiceDialog {
        title: format!("Sign in to {host}"),
        body,
        choices: vec![
            Choice { label: "Sign in".to_owned(), outcome: ChoiceOutcome::SignInToHost(conn) },
            Choice { label: "Cancel".to_owned(), outcome: ChoiceOutcome::Close },
        ],
        selected: 0,
        opened_by_itself: Some(now),
    });
    tabs::open_dialog(state, key, question);
}

/// Signs in to the host of an agent that was not let in; the agent is started again afterwards.
pub fn sign_in_to_host(state: &mut State, conn: ConnId, fx: &mut Vec<Effect>) {
    let ssh = state.conns.get(&conn).filter(|conn| !conn.is_alive()).and_then(|conn| conn.spec.ssh.clone());
    if ssh.is_some() {
        let spec = AgentSpec { ssh, ..AgentSpec::default() };
        fx.push(Effect::RunLogin { conn, spec, env: Vec::new() });
    }
}
