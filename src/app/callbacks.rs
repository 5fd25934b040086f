//! Files and commands that the agent wants from parlor.
//!
//! Duty: checks what was offered, resolves paths, hands the work to the services and their results back.
//! Not its duty: the work itself, and who answers (`asks::answer`).
//! Relative paths mean the session's folder: some agents send them although the protocol wants absolute ones.
//! Invariant: a request ends either in an answer here or in a job whose result answers it.

use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::model::{
    Answer, Ask, AskId, Callbacks, ConnId, ExitInfo, FileJob, FileOp, RpcError, SessionId, SessionKey,
    TerminalCommand, TerminalId, TerminalJob,
};

use super::{AskClass, Effect, State, TerminalView, asks, keep, terminals};

/// A file or terminal request; it stands in `open_asks` already.
pub(super) fn on_ask(
    state: &mut State,
    conn: ConnId,
    ask: AskId,
    request: Ask,
    now: Instant,
    fx: &mut Vec<Effect>,
) {
    let offered = state.conns.get(&conn).map(|conn| conn.spec.callbacks).unwrap_or_default();
    if let Some(method) = missing_offer(&request, offered) {
        let error = RpcError::new(RpcError::METHOD_NOT_FOUND, format!("{method} is not offered"));
        asks::answer(state, conn, ask, Answer::Error(error), fx);
        return;
    }
    match request {
        Ask::ReadFile { session, path, line, limit } => {
            let op = FileOp::Read { line, limit };
            on_file(state, conn, ask, session.as_ref(), &path, op, fx);
        }
        Ask::WriteFile { session, path, content } => {
            on_file(state, conn, ask, session.as_ref(), &path, FileOp::Write { content }, fx);
        }
        Ask::TerminalCreate { session, command } => {
            on_create(state, conn, ask, session.as_ref(), command, fx);
        }
        Ask::TerminalOutput(id) => {
            if is_live(state, conn, &id) {
                fx.push(Effect::Terminal(TerminalJob::Output { conn, ask, terminal: id }));
            } else {
                answer_unknown(state, conn, ask, &id, fx);
            }
        }
        Ask::TerminalWait(id) => on_wait(state, conn, ask, id, fx),
        Ask::TerminalKill(id) => {
            if is_live(state, conn, &id) {
                fx.push(Effect::Terminal(TerminalJob::Kill(id)));
                asks::answer(state, conn, ask, Answer::Done, fx);
            } else {
                answer_unknown(state, conn, ask, &id, fx);
            }
        }
        Ask::TerminalRelease(id) => on_release(state, conn, ask, &id, now, fx),
        Ask::Permission(_) => {
            asks::answer(state, conn, ask, Answer::PermissionCancelled, fx);
        }
        Ask::Elicitation(_) => {
            asks::answer(state, conn, ask, Answer::ElicitationCancelled, fx);
        }
    }
}

/// The method that was not offered to this agent, if the request is one.
fn missing_offer(request: &Ask, offered: Callbacks) -> Option<&'static str> {
    match request {
        Ask::ReadFile { .. } if !offered.fs_read => Some("fs/read_text_file"),
        Ask::WriteFile { .. } if !offered.fs_write => Some("fs/write_text_file"),
        Ask::TerminalCreate { .. }
        | Ask::TerminalOutput(_)
        | Ask::TerminalWait(_)
        | Ask::TerminalKill(_)
        | Ask::TerminalRelease(_)
            if !offered.terminal =>
        {
            Some("terminal/*")
        }
        _ => None,
    }
}

fn on_file(
    state: &mut State,
    conn: ConnId,
    ask: AskId,
    session: Option<&SessionId>,
    path: &Path,
    op: FileOp,
    fx: &mut Vec<Effect>,
) {
    let key = asks::route(state, conn, session);
    let Some(session) = key.and_then(|key| state.sessions.get(&key)) else {
        answer_no_session(state, conn, ask, fx);
        return;
    };
    let mut roots = vec![session.place.folder().to_owned()];
    roots.extend(session.place.additional_directories.iter().cloned());
    let (key, path) = (session.key, session.place.folder().join(path));
    let Some(open) = state.conns.get_mut(&conn) else {
        return;
    };
    open.open_asks.insert(ask, AskClass::File(key));
    let missing_reads_empty = open.capabilities().missing_file_reads_empty;
    fx.push(Effect::File(FileJob {
        conn,
        ask,
        path,
        roots,
        outside_allowed: false,
        missing_reads_empty,
        op,
    }));
}

fn on_create(
    state: &mut State,
    conn: ConnId,
    ask: AskId,
    session: Option<&SessionId>,
    mut command: TerminalCommand,
    fx: &mut Vec<Effect>,
) {
    let key = asks::route(state, conn, session);
    let Some(session) = key.and_then(|key| state.sessions.get(&key)) else {
        answer_no_session(state, conn, ask, fx);
        return;
    };
    let folder = session.place.folder();
    let cwd: PathBuf = command.cwd.as_ref().map_or_else(|| folder.to_owned(), |cwd| folder.join(cwd));
    command.cwd = Some(cwd.clone());
    let key = session.key;
    if let Some(open) = state.conns.get_mut(&conn) {
        open.open_asks.insert(ask, AskClass::TerminalCreate(cwd));
        fx.push(Effect::Terminal(TerminalJob::Create { conn, ask, session: key, command }));
    }
}

fn on_wait(state: &mut State, conn: ConnId, ask: AskId, id: TerminalId, fx: &mut Vec<Effect>) {
    let key = state.conns.get(&conn).and_then(|conn| conn.terminals.get(&id)).copied();
    let Some(session) = key.and_then(|key| state.sessions.get_mut(&key)) else {
        answer_unknown(state, conn, ask, &id, fx);
        return;
    };
    match session.terminals.get(&id).map(|view| view.exit.clone()) {
        Some(Some(exit)) => {
            asks::answer(state, conn, ask, Answer::TerminalExit(exit), fx);
        }
        Some(None) => session.terminal_waits.push((conn, ask, id)),
        None => answer_unknown(state, conn, ask, &id, fx),
    }
}

/// Kills if it runs, and makes the id invalid; the output stays on the screen.
fn on_release(
    state: &mut State,
    conn: ConnId,
    ask: AskId,
    id: &TerminalId,
    now: Instant,
    fx: &mut Vec<Effect>,
) {
    let Some(key) = state.conns.get_mut(&conn).and_then(|conn| conn.terminals.remove(id)) else {
        answer_unknown(state, conn, ask, id, fx);
        return;
    };
    fx.push(Effect::Terminal(TerminalJob::Release(id.clone())));
    asks::answer(state, conn, ask, Answer::Done, fx);
    let killed = ExitInfo { code: None, signal: Some("SIGKILL".to_owned()) };
    end_terminal(state, key, id, &killed, now, fx);
}

/// Notes the end of a command, unless a truer one is known, and answers who waits for it.
fn end_terminal(
    state: &mut State,
    key: SessionKey,
    id: &TerminalId,
    exit: &ExitInfo,
    now: Instant,
    fx: &mut Vec<Effect>,
) {
    let Some(session) = state.sessions.get_mut(&key) else {
        return;
    };
    terminals::end_if_running(session, id, exit.clone(), now);
    let (ended, waiting): (Vec<_>, Vec<_>) =
        std::mem::take(&mut session.terminal_waits).into_iter().partition(|(_, _, of)| of == id);
    session.terminal_waits = waiting;
    for (conn, ask, _) in ended {
        asks::answer(state, conn, ask, Answer::TerminalExit(exit.clone()), fx);
    }
}

fn is_live(state: &State, conn: ConnId, id: &TerminalId) -> bool {
    state.conns.get(&conn).is_some_and(|conn| conn.terminals.contains_key(id))
}

fn answer_unknown(state: &mut State, conn: ConnId, ask: AskId, id: &TerminalId, fx: &mut Vec<Effect>) {
    let error = RpcError::new(RpcError::RESOURCE_NOT_FOUND, format!("no terminal {id}, or it was released"));
    asks::answer(state, conn, ask, Answer::Error(error), fx);
}

fn answer_no_session(state: &mut State, conn: ConnId, ask: AskId, fx: &mut Vec<Effect>) {
    let error = RpcError::new(RpcError::RESOURCE_NOT_FOUND, "no session that this request could belong to");
    asks::answer(state, conn, ask, Answer::Error(error), fx);
}

/// A file request was served.
pub(super) fn on_file_done(
    state: &mut State,
    conn: ConnId,
    ask: AskId,
    result: Result<Option<String>, RpcError>,
    fx: &mut Vec<Effect>,
) {
    let reply = match result {
        Ok(Some(text)) => Answer::FileContent(text),
        Ok(None) => Answer::Done,
        Err(error) => Answer::Error(error),
    };
    asks::answer(state, conn, ask, reply, fx);
}

/// A command runs, or could not be started. If nobody waits for it any more it is taken back.
#[allow(clippy::too_many_arguments, reason = "the fields of one service event, and where it goes")]
pub(super) fn on_terminal_started(
    state: &mut State,
    conn: ConnId,
    ask: AskId,
    key: SessionKey,
    command: String,
    result: Result<TerminalId, RpcError>,
    now: Instant,
    fx: &mut Vec<Effect>,
) {
    let id = match result {
        Ok(id) => id,
        Err(error) => {
            asks::answer(state, conn, ask, Answer::Error(error), fx);
            return;
        }
    };
    let class = state.conns.get(&conn).and_then(|conn| conn.open_asks.get(&ask)).cloned();
    let (Some(AskClass::TerminalCreate(cwd)), true) = (class, state.sessions.contains_key(&key)) else {
        fx.push(Effect::Terminal(TerminalJob::Release(id)));
        answer_no_session(state, conn, ask, fx);
        return;
    };
    if let Some(open) = state.conns.get_mut(&conn) {
        open.terminals.insert(id.clone(), key);
    }
    if let Some(session) = state.sessions.get_mut(&key) {
        let view = TerminalView { command: Some(command), cwd: Some(cwd), ..TerminalView::new(true, now) };
        session.terminals.insert(id.clone(), view);
    }
    asks::answer(state, conn, ask, Answer::TerminalCreated(id), fx);
}

/// A command of ours wrote something.
pub(super) fn on_terminal_output(state: &mut State, id: &TerminalId, bytes: &[u8]) {
    if let Some(session) = owner(state, id).and_then(|key| state.sessions.get_mut(&key)) {
        terminals::on_output(session, id, bytes);
    }
}

/// A command of ours ended: who waits for it is answered.
pub(super) fn on_terminal_ended(
    state: &mut State,
    id: &TerminalId,
    exit: &ExitInfo,
    now: Instant,
    fx: &mut Vec<Effect>,
) {
    let Some(key) = owner(state, id) else {
        return;
    };
    if let Some(session) = state.sessions.get_mut(&key) {
        terminals::on_ended(session, id, exit.clone(), now);
        if let Some(view) = session.terminals.get(id) {
            let record = terminals::record(id, view, exit);
            keep::note(session, record);
        }
    }
    end_terminal(state, key, id, exit, now, fx);
}

/// The output that the agent asked for.
pub(super) fn on_terminal_read(
    state: &mut State,
    conn: ConnId,
    ask: AskId,
    result: Result<(String, bool, Option<ExitInfo>), RpcError>,
    fx: &mut Vec<Effect>,
) {
    let reply = match result {
        Ok((output, is_truncated, exit)) => Answer::TerminalOutput { output, is_truncated, exit },
        Err(error) => Answer::Error(error),
    };
    asks::answer(state, conn, ask, reply, fx);
}

fn owner(state: &State, id: &TerminalId) -> Option<SessionKey> {
    state
        .sessions
        .values()
        .find(|session| session.terminals.get(id).is_some_and(|view| view.is_ours))
        .map(|session| session.key)
}

/// Kills the command that runs in the marked item, or the only one that runs.
pub(super) fn kill_command(state: &mut State, key: SessionKey, _now: Instant, fx: &mut Vec<Effect>) {
    let Some(session) = state.sessions.get(&key) else {
        return;
    };
    let running: Vec<TerminalId> = session
        .terminals
        .iter()
        .filter(|(_, view)| view.is_ours && view.exit.is_none())
        .map(|(id, _)| id.clone())
        .collect();
    let is_marked = |id: &&TerminalId| {
        session.selected.is_some() && session.ledger.shown_by.get(*id).copied() == session.selected
    };
    let chosen = running.iter().find(is_marked).or(match running.as_slice() {
        [only] => Some(only),
        _ => None,
    });
    match chosen {
        Some(id) => fx.push(Effect::Terminal(TerminalJob::Kill(id.clone()))),
        None if running.is_empty() => {
            super::call::flash(state, "No command runs here that parlor could end.", fx);
        }
        None => super::call::flash(state, "Several commands run. Mark the one to end.", fx),
    }
}
