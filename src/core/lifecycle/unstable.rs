//! Unstable protocol features: cancelling a part of the work, archives, sign-in status, providers.
//!
//! `acp` has their encoding.
//! Invariant: only advertised methods are called, and the user is informed if a configured one is not supported.

use crate::core::Part;

use crate::model::{
    AgentCommand, Call, CallError, ConnId, ItemId, Purpose, Record, Reply, SessionKey, Severity, TerminalId,
    TerminalJob, ToolContent,
};

use super::{call, open};
use crate::core::session::record;
use crate::core::state::outline::is_subagent_running;
use crate::core::state::{lookup, texts};
use crate::core::{ConnPhase, Cx, Effect, ItemBody, Session, SessionPhase, State};

/// Whether a running part can be cancelled separately.
pub fn has_stoppable(session: &Session) -> bool {
    !stoppable(session).is_empty()
}

/// Running parts that can be cancelled, with the items that show them.
fn stoppable(session: &Session) -> Vec<(ItemId, Part)> {
    if session.can_cancel.is_empty() {
        return Vec::new();
    }
    let can = |part: &Part| session.can_cancel.contains(part);
    let mut found = Vec::new();
    // Parts of earlier turns are not running.
    for item in session.transcript.items().iter().rev().take_while(|item| item.turn == session.turn_count) {
        match &item.body {
            ItemBody::Tool(tool) => {
                let of_tool = Part::Tool(tool.id.clone());
                if !tool.status.is_final() && can(&of_tool) {
                    found.push((item.id, of_tool));
                    continue;
                }
                let terminals = tool.content.iter().filter_map(|content| match content {
                    ToolContent::Terminal(id) => Some(id),
                    _ => None,
                });
                let runs =
                    |id: &&TerminalId| session.terminals.get(id).is_some_and(|view| view.exit.is_none());
                let parts = terminals.filter(runs).map(|id| Part::Terminal(id.clone())).filter(can);
                found.extend(parts.map(|part| (item.id, part)));
            }
            ItemBody::Subagent { session, state, .. } => {
                let part = Part::Child(session.clone());
                if is_subagent_running(state.as_deref()) && can(&part) {
                    found.push((item.id, part));
                }
            }
            _ => {}
        }
    }
    found
}

/// Cancels the selected part of the work, or the only running one; otherwise the command run by parlor.
pub fn stop_part(state: &mut State, key: SessionKey, selected: Option<ItemId>, cx: &mut Cx) {
    let Some(session) = state.sessions.get(&key) else { return };
    let parts = stoppable(session);
    let marked = parts.iter().find(|(item, _)| selected == Some(*item));
    let has_own = session.terminals.values().any(|view| view.is_ours && view.exit.is_none());
    let chosen = marked.or(match parts.as_slice() {
        [only] if !has_own => Some(only),
        _ => None,
    });
    let Some((_, part)) = chosen.cloned() else {
        if parts.len() > 1 && !has_own {
            call::flash(state, "Several commands or subagents are running. Select the one to stop.", cx);
        } else {
            kill_command(state, key, selected, cx);
        }
        return;
    };
    let (Some(conn), Some(id)) = (session.conn, session.id.clone()) else { return };
    let request = match part {
        Part::Tool(tool) => Call::StopTool(id, tool),
        Part::Terminal(terminal) => Call::StopTerminal(id, terminal),
        Part::Child(child) => {
            cx.effects.push(Effect::Send(conn, AgentCommand::Cancel(child)));
            call::flash(state, "Stopping the subagent.", cx);
            return;
        }
    };
    call::call(state, conn, Purpose::StopPart(key), request, cx);
}

/// The response to cancelling a part; its end is reported by an update. Source: ACP v2 tool-calls.
pub(in crate::core) fn on_stopped(state: &mut State, result: Result<Reply, CallError>, cx: &mut Cx) {
    let text = match result {
        Ok(_) => "Stopping.".to_owned(),
        Err(error) => format!("Stop failed: {}", texts::error_text(&error)),
    };
    call::flash(state, text, cx);
}

pub fn archive_session(state: &mut State, key: SessionKey, cx: &mut Cx) {
    let can = state.conn_of(key).is_some_and(|conn| conn.capabilities().can_archive);
    let Some(session) = state.sessions.get(&key).filter(|_| can) else { return };
    if session.turn.is_running() {
        call::flash(state, "A turn is running. Stop it first.", cx);
        return;
    }
    if let (Some(conn), Some(id)) = (session.conn, session.id.clone()) {
        let request = Call::Archive(id, !session.is_archived);
        call::call(state, conn, Purpose::Archive(key), request, cx);
    }
}

/// The agent frees a session that it archives; an unarchived one is reopened.
pub(crate) fn on_archived(state: &mut State, key: SessionKey, result: Result<Reply, CallError>, cx: &mut Cx) {
    let Some(session) = state.sessions.get_mut(&key) else { return };
    if !session.is_archived {
        match result {
            Ok(_) => {
                session.is_archived = true;
                record::note(session, Record::Archived { is_away: true });
                let cause = "Session archived.".to_owned();
                session.phase = SessionPhase::Ended { cause: cause.clone() };
                call::flash(state, cause, cx);
            }
            Err(error) => call::flash(state, format!("Archive failed: {}", texts::error_text(&error)), cx),
        }
        return;
    }
    let is_opening = matches!(session.phase, SessionPhase::Opening { .. });
    if let Err(error) = &result {
        let text = format!("Unarchive failed: {}", texts::error_text(error));
        call::flash(state, text, cx);
        // The call that opens the session shows whether it can continue anyway.
        if !is_opening {
            return;
        }
    }
    let Some(session) = state.sessions.get_mut(&key) else { return };
    session.is_archived = false;
    record::note(session, Record::Archived { is_away: false });
    session.resume.reopen_after_setup();
    let id = session.id.clone();
    let conn = session.conn.and_then(|conn| state.conns.get_mut(&conn));
    let listed = conn.map(|conn| &mut conn.listing.sessions).into_iter().flatten();
    for info in listed.filter(|info| Some(&info.id) == id.as_ref()) {
        info.is_archived = false;
    }
    open::open(state, key, cx);
}

/// The agent is ready: sets the configured providers, and requests its status.
pub(in crate::core) fn on_ready(state: &mut State, conn: ConnId, cx: &mut Cx) {
    let Some(open) = state.conns.get(&conn) else { return };
    let (can, wire) = (open.capabilities(), open.spec.wire.clone());
    if can.tells_auth {
        call::call(state, conn, Purpose::AuthStatus, Call::AuthStatus, cx);
    }
    if can.has_providers {
        for provider in &wire.providers {
            let purpose = Purpose::SetProvider(provider.id.clone());
            call::call(state, conn, purpose, Call::SetProvider(provider.clone()), cx);
        }
        call::call(state, conn, Purpose::ListProviders, Call::ListProviders, cx);
    } else if !wire.providers.is_empty() {
        report(
            state,
            conn,
            "Configured providers were not set.",
            "This agent does not support provider configuration.",
        );
    }
    if can.deaf_in_turn {
        let text = "This agent cannot receive answers during a turn. Select a mode that does not ask for \
            permission.";
        call::flash(state, text, cx);
    }
    if wire.system_prompt.as_ref().is_some_and(|prompt| !can.takes(prompt)) {
        let detail = if can.system_prompt {
            "This agent allows appending to its system prompt, not replacing it."
        } else {
            "This agent does not support custom system prompts."
        };
        report(state, conn, "The configured system prompt was not used.", detail);
    }
}

fn report(state: &mut State, conn: ConnId, title: &str, detail: &str) {
    for key in lookup::sessions_of(state, conn, false) {
        let is_new = state.sessions.get(&key).is_some_and(|session| !session.resume.is_reopening());
        if is_new {
            call::notice(state, key, Severity::Info, title, Some(detail.to_owned()));
        }
    }
}

/// Whether a session must wait until the configured providers are set.
pub(in crate::core) fn must_wait(state: &mut State, key: SessionKey) -> bool {
    let waits = state.conn_of(key).is_some_and(|conn| {
        conn.open_calls.values().any(|tag| matches!(tag.purpose, Purpose::SetProvider(_)))
    });
    if let Some(session) = state.sessions.get_mut(&key) {
        session.start.wait_for_setup(waits);
    }
    waits
}

/// The response to setting a provider; after the last one the sessions are opened.
pub(in crate::core) fn on_provider_set(
    state: &mut State,
    conn: ConnId,
    id: &str,
    result: Result<Reply, CallError>,
    cx: &mut Cx,
) {
    if let Err(error) = result {
        let title = format!("Provider {id} could not be set.");
        report(state, conn, &title, &texts::error_text(&error));
    }
    for key in lookup::sessions_of(state, conn, false) {
        let waits = state.sessions.get(&key).is_some_and(|session| session.start.waits_for_setup());
        let is_ready = state.conns.get(&conn).is_some_and(|conn| conn.phase == ConnPhase::Ready);
        if waits && is_ready && !must_wait(state, key) {
            open::open(state, key, cx);
        }
    }
}

/// The agent has reported its providers, or the sign-in status.
pub(in crate::core) fn on_response(state: &mut State, conn: ConnId, result: Result<Reply, CallError>) {
    let Some(open) = state.conns.get_mut(&conn) else { return };
    match result {
        Ok(Reply::AuthStatus(status)) => open.auth = Some(status),
        Ok(Reply::Providers(providers)) => open.providers = providers,
        // This only affects information shown to the user.
        Ok(_) | Err(_) => {}
    }
}

/// Kills the running command of the selected item, or the only running one.
fn kill_command(state: &mut State, key: SessionKey, selected: Option<ItemId>, cx: &mut Cx) {
    let Some(session) = state.sessions.get(&key) else { return };
    let running: Vec<TerminalId> = session
        .terminals
        .iter()
        .filter(|(_, view)| view.is_ours && view.exit.is_none())
        .map(|(id, _)| id.clone())
        .collect();
    let is_marked = |id: &&TerminalId| selected.is_some() && session.index.terminal(id) == selected;
    let chosen = running.iter().find(is_marked).or(match running.as_slice() {
        [only] => Some(only),
        _ => None,
    });
    match chosen {
        Some(id) => cx.effects.push(Effect::Terminal(TerminalJob::Kill(id.clone()))),
        None if running.is_empty() => {
            call::flash(state, "No command to stop.", cx);
        }
        None => call::flash(state, "Several commands are running. Select the one to stop.", cx),
    }
}
