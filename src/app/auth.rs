//! Signing in and out.
//!
//! Duty: the ways to sign in, and the failed call again afterwards.
//! A method of kind `terminal` is the agent's own command, run in the foreground; it is never passed to
//! `authenticate`. Variables are set by a new start. Source: ACP v1 authentication.

use std::time::Instant;

use crate::model::{
    AgentCommand, AgentSpec, AuthKind, Call, CallError, ConnId, Purpose, Reply, SessionKey, Severity,
};

use super::{ConnPhase, Effect, SessionPhase, State, call, conn, open, tabs, turn, user, words};

/// The agent wants a sign-in before it goes on with this session.
pub(super) fn need_sign_in(
    state: &mut State,
    conn: ConnId,
    key: SessionKey,
    text: &str,
    now: Instant,
    fx: &mut Vec<Effect>,
) {
    let is_known = state
        .sessions
        .values()
        .any(|session| session.conn == Some(conn) && session.phase == SessionPhase::NeedsSignIn);
    if let Some(session) = state.sessions.get_mut(&key) {
        session.phase = SessionPhase::NeedsSignIn;
        session.ledger.sign_in_since = Some(now);
    }
    let has_methods = state
        .conns
        .get(&conn)
        .and_then(|conn| conn.info.as_ref())
        .is_some_and(|info| !info.auth_methods.is_empty());
    let advice = if has_methods {
        "Choose a way to sign in. What you typed is sent afterwards."
    } else {
        "It offers no way to sign in here. Sign in with its own command, then restart it."
    };
    call::notice(
        state,
        key,
        Severity::Warning,
        "The agent wants you to sign in.",
        Some(format!("{text}\n{advice}")),
    );
    // One picker for all sessions of the connection.
    if has_methods && !is_known {
        user::open_sign_in_of(state, key, conn);
        tabs::announce(state, key, "the agent wants a sign-in.", fx);
    }
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
    let Some(open) = state.conns.get(&conn).filter(|conn| conn.phase == ConnPhase::Ready) else {
        call::flash(state, "The agent is not ready. Try again when it is.", fx);
        return;
    };
    let method = open
        .info
        .as_ref()
        .and_then(|info| info.auth_methods.iter().find(|method| method.id == method_id))
        .cloned();
    let spec = open.spec.clone();
    let Some(method) = method else {
        call::flash(state, "The agent does not offer that way to sign in.", fx);
        return;
    };
    match method.kind {
        AuthKind::Agent => {
            let request = Call::Authenticate { method_id: method.id };
            call::call(state, conn, Purpose::Authenticate, request, fx);
            call::flash(state, "Signing in. A page may open in your browser.", fx);
        }
        AuthKind::Terminal { command: None, .. } if spec.remote.is_some() => {
            let text = "This agent is not on this machine. Sign in where it runs, then restart it here.";
            call::flash(state, text, fx);
        }
        AuthKind::Terminal { command, args, env } => {
            let cwd = spec.cwd.clone().or_else(|| folder_of(state, conn));
            let spec = login_spec(spec, command, args, env);
            fx.push(Effect::RunLogin { conn, spec: AgentSpec { cwd, ..spec } });
        }
        AuthKind::EnvVar { .. } => {
            let spec = with_env(spec, vars);
            conn::reconnect(state, conn, spec, now, fx);
        }
    }
}

/// The number of a running sign-in through `authenticate`; it may take minutes.
pub fn running_sign_in(state: &State, conn: ConnId) -> Option<u64> {
    let calls = &state.conns.get(&conn)?.open_calls;
    calls.iter().find(|(_, tag)| tag.purpose == Purpose::Authenticate).map(|(number, _)| *number)
}

/// Gives a running sign-in up. Source: ACP v1, `$/cancel_request`.
pub fn cancel_sign_in(state: &mut State, conn: ConnId, fx: &mut Vec<Effect>) {
    let Some(number) = running_sign_in(state, conn) else { return };
    let tag = state.conns.get_mut(&conn).and_then(|open| open.open_calls.remove(&number));
    if let Some(tag) = tag {
        fx.push(Effect::Send(conn, AgentCommand::CancelCall(tag)));
        call::flash(state, "The sign-in was given up. Choose a way to sign in to try again.", fx);
    }
}

fn folder_of(state: &State, conn: ConnId) -> Option<std::path::PathBuf> {
    let key = call::sessions_of(state, conn, false).first().copied()?;
    state.sessions.get(&key).map(|session| session.place.folder().to_owned())
}

/// The agent's own command with more arguments, or another program.
fn login_spec(
    spec: AgentSpec,
    command: Option<String>,
    args: Vec<String>,
    env: Vec<(String, String)>,
) -> AgentSpec {
    let spec = if let Some(command) = command {
        AgentSpec { command, args, ..spec }
    } else {
        let all = spec.args.iter().cloned().chain(args).collect();
        AgentSpec { args: all, ..spec }
    };
    with_env(spec, env)
}

fn with_env(mut spec: AgentSpec, vars: Vec<(String, String)>) -> AgentSpec {
    for (name, value) in vars {
        spec.env.retain(|(known, _)| *known != name);
        spec.env.push((name, value));
    }
    spec
}

/// `authenticate` came back: what failed for want of it is tried again.
pub(super) fn on_authenticated(
    state: &mut State,
    conn: ConnId,
    result: Result<Reply, CallError>,
    now: Instant,
    fx: &mut Vec<Effect>,
) {
    if let Err(error) = result {
        tell_failure(state, conn, &words::error_text(&error), fx);
        return;
    }
    call::flash(state, "Signed in.", fx);
    for key in call::sessions_of(state, conn, false) {
        let Some(session) = state.sessions.get_mut(&key) else {
            continue;
        };
        if session.phase != SessionPhase::NeedsSignIn {
            continue;
        }
        if session.ledger.unsent.is_some() && session.id.is_some() {
            session.phase = SessionPhase::Ready;
            turn::go_on(state, key, now, fx);
        } else {
            open::open(state, key, now, fx);
        }
    }
}

/// The agent's own login command ended. The agent is started again, because it reads its account only then.
pub(super) fn on_login_done(
    state: &mut State,
    conn: ConnId,
    result: Result<(), String>,
    now: Instant,
    fx: &mut Vec<Effect>,
) {
    match result {
        Ok(()) => {
            if let Some(spec) = state.conns.get(&conn).map(|conn| conn.spec.clone()) {
                conn::reconnect(state, conn, spec, now, fx);
            }
        }
        Err(text) => tell_failure(state, conn, &text, fx),
    }
}

fn tell_failure(state: &mut State, conn: ConnId, text: &str, fx: &mut Vec<Effect>) {
    for key in call::sessions_of(state, conn, false) {
        let is_waiting =
            state.sessions.get(&key).is_some_and(|session| session.phase == SessionPhase::NeedsSignIn);
        if is_waiting {
            let detail = format!("{text}\nTry again, or choose another way to sign in.");
            call::notice(state, key, Severity::Error, "The sign-in failed.", Some(detail));
        }
    }
    call::flash(state, format!("The sign-in failed: {text}"), fx);
}

/// Signs out, if the agent can.
pub fn sign_out(state: &mut State, conn: ConnId, _now: Instant, fx: &mut Vec<Effect>) {
    let Some(open) = state.conns.get(&conn).filter(|conn| conn.phase == ConnPhase::Ready) else {
        call::flash(state, "The agent is not ready. Try again when it is.", fx);
        return;
    };
    if open.capabilities().can_log_out {
        call::call(state, conn, Purpose::LogOut, Call::LogOut, fx);
    } else {
        call::flash(state, "This agent cannot sign you out.", fx);
    }
}

/// `logout` came back.
pub(super) fn on_signed_out(state: &mut State, result: Result<Reply, CallError>, fx: &mut Vec<Effect>) {
    match result {
        Ok(_) => call::flash(state, "Signed out. The next session wants a sign-in.", fx),
        Err(error) => {
            call::flash(state, format!("Not signed out: {}", words::error_text(&error)), fx);
        }
    }
}
