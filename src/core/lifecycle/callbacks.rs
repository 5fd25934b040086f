//! File and terminal requests of the agent.
//!
//! Checks whether the method was offered, applies the policy, and passes the work to the services and their results to
//! the agent. Relative paths refer to the session's folder: some agents send them although the protocol requires
//! absolute ones.
//! Invariant: a request ends either in a response here or in a job whose result is the response.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::model::{
    Access, AccessRecord, AgentRequest, Allowance, AllowedBy, AskReason, AskedFile, Callbacks, CommandAccess,
    ConnId, ExitInfo, Facts, FileJob, FileOp, Policy, RefusedBy, RequestId, Response, RpcError, ServedFile,
    SessionId, SessionKey, TerminalCommand, TerminalId, TerminalJob, Verdict, decide, shell_line,
};

mod question;

pub(in crate::core) use question::{note_refused, on_answered};
use question::{question, refuse_by_rule};

use super::{call, held, policy, requests, shell};
use crate::core::session::{access, record, terminals};
use crate::core::state::changes::plain;
use crate::core::state::lookup;
use crate::core::{AccessWork, Cx, Effect, RequestClass, Session, Starting, State, TerminalView};

const MANY_FILES: &str = "too many open file requests; wait for the responses";

/// Maximum number of running commands of an agent.
const MAX_RUNNING: usize = 32;

/// Maximum number of unreleased terminals of an agent.
const MAX_TERMINALS: usize = 256;

/// A file or terminal request, already in `open_requests`.
pub(in crate::core) fn on_request(
    state: &mut State,
    conn: ConnId,
    request_id: RequestId,
    request: AgentRequest,
    cx: &mut Cx,
) {
    let offered = state.conns.get(&conn).map(|conn| conn.spec.callbacks).unwrap_or_default();
    if let Some(method) = missing_offer(&request, offered) {
        let error = RpcError::new(RpcError::METHOD_NOT_FOUND, format!("{method} is not offered"));
        call::respond(state, conn, request_id, Response::Error(error), cx);
        return;
    }
    match request {
        AgentRequest::ReadFile { session, path, line, limit } => {
            let op = FileOp::Read { line, limit };
            on_file(state, conn, request_id, session.as_ref(), &path, op, cx);
        }
        AgentRequest::WriteFile { session, path, content } => {
            on_file(state, conn, request_id, session.as_ref(), &path, FileOp::Write { content }, cx);
        }
        AgentRequest::TerminalCreate { session, command } => {
            on_create(state, conn, request_id, session.as_ref(), command, cx);
        }
        AgentRequest::TerminalOutput(id) => {
            if is_live(state, conn, &id) {
                cx.effects.push(Effect::Terminal(TerminalJob::Output { conn, request_id, terminal: id }));
            } else {
                answer_unknown(state, conn, request_id, &id, cx);
            }
        }
        AgentRequest::TerminalWait(id) => on_wait(state, conn, request_id, id, cx),
        AgentRequest::TerminalKill(id) => {
            if is_live(state, conn, &id) {
                cx.effects.push(Effect::Terminal(TerminalJob::Kill(id)));
                call::respond(state, conn, request_id, Response::Done, cx);
            } else {
                answer_unknown(state, conn, request_id, &id, cx);
            }
        }
        AgentRequest::TerminalRelease(id) => on_release(state, conn, request_id, &id, cx),
        AgentRequest::Permission(_) => {
            call::respond(state, conn, request_id, Response::PermissionCancelled, cx);
        }
        AgentRequest::Elicitation(_) => {
            call::respond(state, conn, request_id, Response::ElicitationCancelled, cx);
        }
    }
}

/// The method of a request that was not offered to this agent.
fn missing_offer(request: &AgentRequest, offered: Callbacks) -> Option<&'static str> {
    match request {
        AgentRequest::ReadFile { .. } if !offered.fs_read => Some("fs/read_text_file"),
        AgentRequest::WriteFile { .. } if !offered.fs_write => Some("fs/write_text_file"),
        AgentRequest::TerminalCreate { .. }
        | AgentRequest::TerminalOutput(_)
        | AgentRequest::TerminalWait(_)
        | AgentRequest::TerminalKill(_)
        | AgentRequest::TerminalRelease(_)
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
    request_id: RequestId,
    session: Option<&SessionId>,
    path: &Path,
    op: FileOp,
    cx: &mut Cx,
) {
    let key = requests::route(state, conn, session, cx);
    let Some(session) = key.and_then(|key| state.sessions.get(&key)) else {
        answer_no_session(state, conn, request_id, cx);
        return;
    };
    let roots = policy::roots(session);
    let (key, path) = (session.key, session.workspace.folder().join(path));
    let root = lookup::root_of(state, key);
    let requested = Some(plain(&path));
    let holding = held::holding(state, key);
    let policy = Arc::new(Policy { requested, ..policy::of(state, conn, key) });
    let Some(open) = state.conns.get_mut(&conn) else { return };
    open.open_requests.insert(request_id, RequestClass::File(key));
    let missing_reads_empty = open.capabilities().missing_file_reads_empty;
    let job = FileJob {
        conn,
        request_id,
        session: root,
        path,
        roots,
        policy,
        allowed: None,
        missing_reads_empty,
        holding,
        op,
    };
    if !open.files.add(job, cx) {
        refuse(state, conn, request_id, MANY_FILES, cx);
    }
}

/// Stops the file requests of a top-level session, because its turn or the session itself has ended. `keeps_writes`: only
/// reads, because an agent may end its turn without waiting for its last write.
pub(in crate::core) fn stop_files(state: &mut State, key: SessionKey, keeps_writes: bool, cx: &mut Cx) {
    let mut dropped = Vec::new();
    for (conn, open) in &mut state.conns {
        let stopped = open.files.stop(key, keeps_writes, cx);
        dropped.extend(stopped.into_iter().map(|request_id| (*conn, request_id)));
    }
    for (conn, request_id) in dropped {
        let error = RpcError::new(RpcError::CANCELLED, "the request was cancelled");
        call::respond(state, conn, request_id, Response::Error(error), cx);
    }
}

/// The policy asks the user about a file, unless an approved call shows the same change.
pub(in crate::core) fn on_file_asks(state: &mut State, job: FileJob, asked: AskedFile, cx: &mut Cx) {
    let (conn, request_id) = (job.conn, job.request_id);
    if let Some(open) = state.conns.get_mut(&conn) {
        open.files.served(request_id, cx);
    }
    let class = state.conns.get(&conn).and_then(|conn| conn.open_requests.get(&request_id));
    let Some(RequestClass::File(key)) = class.cloned() else { return };
    let is_covered = policy::covers_write(state, conn, key, &asked);
    let AskedFile { access, facts, why, change } = asked;
    let job = FileJob { holding: held::holding(state, key), ..job };
    // A grant may have been added since the job was created.
    let policy = Policy { requested: Some(plain(&job.path)), ..policy::of(state, conn, key) };
    let why = match decide(&policy, &access, &Facts { is_covered, ..facts }) {
        Verdict::Allow(allowed) => {
            add_file(state, FileJob { allowed: Some(allowed), ..job }, cx);
            return;
        }
        Verdict::Refuse(_) => {
            let rule = policy.ruling(&access).and_then(|ruling| ruling.rule);
            refuse_by_rule(state, (conn, request_id), key, access, rule, cx);
            return;
        }
        Verdict::Ask(AskReason::Rule) => AskReason::Rule,
        // The reason without the rules, which may be gone.
        Verdict::Ask(now) if why == AskReason::Rule => now,
        Verdict::Ask(_) => why,
    };
    let rule = policy.ruling(&access).filter(|_| why == AskReason::Rule).and_then(|ruling| ruling.rule);
    let mut open = question(state, conn, AccessWork::File(job), access, why, change, cx.now);
    open.rule = rule;
    requests::on_access(state, (conn, request_id), key, open, cx);
}

/// Passes an allowed job to the service again.
fn add_file(state: &mut State, job: FileJob, cx: &mut Cx) {
    let (conn, request_id) = (job.conn, job.request_id);
    let was_added = state.conns.get_mut(&conn).is_some_and(|open| open.files.add(job, cx));
    if !was_added {
        refuse(state, conn, request_id, MANY_FILES, cx);
    }
}

fn on_create(
    state: &mut State,
    conn: ConnId,
    request_id: RequestId,
    session: Option<&SessionId>,
    mut command: TerminalCommand,
    cx: &mut Cx,
) {
    let key = requests::route(state, conn, session, cx);
    let Some(session) = key.and_then(|key| state.sessions.get(&key)) else {
        answer_no_session(state, conn, request_id, cx);
        return;
    };
    if let Some(message) = too_many_terminals(state, conn) {
        refuse(state, conn, request_id, message, cx);
        return;
    }
    let folder = session.workspace.folder();
    let cwd: PathBuf = command.cwd.as_ref().map_or_else(|| folder.to_owned(), |cwd| folder.join(cwd));
    let is_inside = policy::is_inside(session, &cwd);
    command.cwd = Some(cwd);
    let key = session.key;
    judge(state, (conn, request_id), key, command, is_inside, cx);
}

/// Why an agent gets no more terminals, if a limit is reached.
fn too_many_terminals(state: &State, conn: ConnId) -> Option<String> {
    let open = state.conns.get(&conn)?;
    let is_running = |(id, key): &(&TerminalId, &SessionKey)| {
        let view = state.sessions.get(key).and_then(|session| session.terminals.get(*id));
        view.is_some_and(|view| view.exit.is_none())
    };
    let running = open.terminals.iter().filter(is_running).count();
    let waiting =
        open.open_requests.values().filter(|class| matches!(class, RequestClass::TerminalCreate(_))).count();
    if running + waiting > MAX_RUNNING {
        return Some(format!(
            "limit of {MAX_RUNNING} running commands reached; wait for one to exit, or \
            kill one"
        ));
    }
    (open.terminals.len() >= MAX_TERMINALS)
        .then(|| format!("limit of {MAX_TERMINALS} open terminals reached; release some"))
}

fn judge(
    state: &mut State,
    (conn, request_id): (ConnId, RequestId),
    key: SessionKey,
    command: TerminalCommand,
    is_inside: bool,
    cx: &mut Cx,
) {
    let run = access_of(&command);
    let covering = policy::covering(state, conn, key, &run);
    let access = Access::Run(run);
    let shows_folder = covering.is_some_and(|(_, shows_folder)| shows_folder);
    let is_covered = covering.is_some();
    let facts = Facts { is_inside: is_inside || shows_folder, protection: None, is_covered };
    let policy = policy::of(state, conn, key);
    let why = match decide(&policy, &access, &facts) {
        Verdict::Allow(allowed) => {
            if let Some((position, _)) = covering.filter(|_| allowed.by == AllowedBy::ApprovedCall) {
                policy::use_approval(state, key, position);
            }
            // An approved command runs where it was shown. If a link leads out, it is checked again as outside.
            start(state, (conn, request_id), key, command, allowed, is_inside, cx);
            return;
        }
        Verdict::Ask(why) => why,
        Verdict::Refuse(RefusedBy::Rule) => {
            let rule = policy.ruling(&access).and_then(|ruling| ruling.rule);
            refuse_by_rule(state, (conn, request_id), key, access, rule, cx);
            return;
        }
        Verdict::Refuse(by) => {
            refuse(state, conn, request_id, by.description(), cx);
            return;
        }
    };
    let rule = policy.ruling(&access).filter(|_| why == AskReason::Rule).and_then(|ruling| ruling.rule);
    let mut open = question(state, conn, AccessWork::Run(key, command), access, why, None, cx.now);
    open.rule = rule;
    requests::on_access(state, (conn, request_id), key, open, cx);
}

fn access_of(command: &TerminalCommand) -> CommandAccess {
    CommandAccess {
        line: shell_line(command),
        cwd: command.cwd.clone().unwrap_or_default(),
        env: command.env.clone(),
    }
}

/// Starts an allowed command; `is_bound`: only within the session's folders.
fn start(
    state: &mut State,
    (conn, request_id): (ConnId, RequestId),
    key: SessionKey,
    command: TerminalCommand,
    allowed: Allowance,
    is_bound: bool,
    cx: &mut Cx,
) {
    held::on_command(state, key);
    let roots = state.sessions.get(&key).map(policy::roots).unwrap_or_default();
    let Some(open) = state.conns.get_mut(&conn).filter(|conn| conn.open_requests.contains_key(&request_id))
    else {
        return;
    };
    let starting = Starting { command: access_of(&command), allowed };
    open.open_requests.insert(request_id, RequestClass::TerminalCreate(Box::new(Some(starting))));
    let sandbox = open.spec.bounds.clone();
    let within = is_bound.then_some(roots);
    let has_input = state.setup.policy.command_input;
    let size = shell::size_of(state.output_room, false, false);
    cx.effects.push(Effect::Terminal(TerminalJob::Create {
        conn,
        request_id,
        session: key,
        command,
        within,
        has_input,
        size,
        sandbox,
    }));
}

/// The working directory of an allowed command is a link that leads out of the session's folders.
pub(in crate::core) fn on_terminal_outside(
    state: &mut State,
    (conn, request_id): (ConnId, RequestId),
    key: SessionKey,
    command: TerminalCommand,
    cx: &mut Cx,
) {
    if state.conns.get(&conn).is_some_and(|conn| conn.open_requests.contains_key(&request_id)) {
        judge(state, (conn, request_id), key, command, false, cx);
    }
}

fn on_wait(state: &mut State, conn: ConnId, request_id: RequestId, id: TerminalId, cx: &mut Cx) {
    let open = state.conns.get(&conn);
    if let Some(exit) = open.and_then(|conn| conn.terminal_exits.get(&id)).cloned() {
        call::respond(state, conn, request_id, Response::TerminalExit(exit), cx);
        return;
    }
    let key = open.and_then(|conn| conn.terminals.get(&id)).copied();
    let Some(session) = key.and_then(|key| state.sessions.get_mut(&key)) else {
        answer_unknown(state, conn, request_id, &id, cx);
        return;
    };
    match session.terminals.get(&id).map(|view| view.exit.clone()) {
        Some(Some(exit)) => {
            call::respond(state, conn, request_id, Response::TerminalExit(exit), cx);
        }
        Some(None) => session.terminal_waits.push((conn, request_id, id)),
        None => answer_unknown(state, conn, request_id, &id, cx),
    }
}

/// Kills a running command and invalidates the id; the output stays in the transcript.
fn on_release(state: &mut State, conn: ConnId, request_id: RequestId, id: &TerminalId, cx: &mut Cx) {
    let Some(key) = state.conns.get_mut(&conn).and_then(|conn| conn.terminals.remove(id)) else {
        answer_unknown(state, conn, request_id, id, cx);
        return;
    };
    if let Some(open) = state.conns.get_mut(&conn) {
        open.terminal_exits.remove(id);
    }
    cx.effects.push(Effect::Terminal(TerminalJob::Release(id.clone())));
    call::respond(state, conn, request_id, Response::Done, cx);
    let killed = ExitInfo { code: None, signal: Some("SIGKILL".to_owned()) };
    end_terminal(state, key, id, &killed, cx);
}

/// Notes the end of a command, unless a more precise one is known, and answers the requests that wait for it.
fn end_terminal(state: &mut State, key: SessionKey, id: &TerminalId, exit: &ExitInfo, cx: &mut Cx) {
    let Some(session) = state.sessions.get_mut(&key) else { return };
    terminals::end_if_running(session, id, exit, cx.now);
    let (ended, waiting): (Vec<_>, Vec<_>) =
        std::mem::take(&mut session.terminal_waits).into_iter().partition(|(_, _, of)| of == id);
    session.terminal_waits = waiting;
    for (conn, request_id, _) in ended {
        call::respond(state, conn, request_id, Response::TerminalExit(exit.clone()), cx);
    }
}

fn is_live(state: &State, conn: ConnId, id: &TerminalId) -> bool {
    state.conns.get(&conn).is_some_and(|conn| conn.terminals.contains_key(id))
}

fn answer_unknown(state: &mut State, conn: ConnId, request_id: RequestId, id: &TerminalId, cx: &mut Cx) {
    let error = RpcError::new(RpcError::RESOURCE_NOT_FOUND, format!("unknown or released terminal {id}"));
    call::respond(state, conn, request_id, Response::Error(error), cx);
}

fn refuse(state: &mut State, conn: ConnId, request_id: RequestId, why: impl Into<String>, cx: &mut Cx) {
    let error = RpcError::new(RpcError::INTERNAL, why);
    call::respond(state, conn, request_id, Response::Error(error), cx);
}

fn answer_no_session(state: &mut State, conn: ConnId, request_id: RequestId, cx: &mut Cx) {
    let error = RpcError::new(RpcError::RESOURCE_NOT_FOUND, "no session for this request");
    call::respond(state, conn, request_id, Response::Error(error), cx);
}

pub(in crate::core) fn on_file_done(
    state: &mut State,
    (conn, request_id): (ConnId, RequestId),
    mut result: Result<Option<String>, RpcError>,
    served: Option<ServedFile>,
    cx: &mut Cx,
) {
    let class = state.conns.get(&conn).and_then(|conn| conn.open_requests.get(&request_id)).cloned();
    if let Some(open) = state.conns.get_mut(&conn) {
        open.files.served(request_id, cx);
    }
    let (mut served, mut is_held) = (served, false);
    if let (Some(RequestClass::File(key)), Some(ServedFile { access: Access::Write { path }, held, .. })) =
        (&class, &mut served)
        && let Some(file) = held.take()
    {
        is_held = true;
        if let Err(why) = held::on_write(state, *key, path, file, cx) {
            let message =
                format!("Not written: parlor holds writes until the user has reviewed them, and {why}.");
            result = Err(RpcError::new(RpcError::INTERNAL, message));
        }
    }
    if let (Some(RequestClass::File(key)), Some(served)) = (class, served)
        && let Some(session) = state.sessions.get_mut(&key)
        // A failed write changed nothing; it is only shown if the user was asked.
        && (result.is_ok() || served.allowed.by != AllowedBy::InsideRoots)
    {
        let error = result.as_ref().err().map(|error| error.message.clone());
        let record = AccessRecord::allowed(served.access, served.allowed);
        let record = AccessRecord { is_held, ..record };
        access::add(session, AccessRecord { change: served.change, error, ..record }, cx.now);
    }
    let reply = match result {
        Ok(Some(text)) => Response::FileContent(text),
        Ok(None) => Response::Done,
        Err(error) => Response::Error(error),
    };
    call::respond(state, conn, request_id, reply, cx);
}

/// A command was started, or failed to start. If the request was closed meanwhile, the command is released.
#[allow(clippy::too_many_arguments, reason = "the fields of one service event, and where it goes")]
pub(in crate::core) fn on_terminal_started(
    state: &mut State,
    conn: ConnId,
    request_id: RequestId,
    key: SessionKey,
    command: String,
    result: Result<TerminalId, RpcError>,
    cx: &mut Cx,
) {
    let class = state.conns.get(&conn).and_then(|conn| conn.open_requests.get(&request_id)).cloned();
    let starting = match class {
        Some(RequestClass::TerminalCreate(starting)) => *starting,
        _ => None,
    };
    let record =
        starting.map(|Starting { command, allowed }| AccessRecord::allowed(Access::Run(command), allowed));
    let id = match result {
        Ok(id) => id,
        Err(error) => {
            if let Some((session, record)) = state.sessions.get_mut(&key).zip(record) {
                access::add(session, AccessRecord { error: Some(error.message.clone()), ..record }, cx.now);
            }
            call::respond(state, conn, request_id, Response::Error(error), cx);
            return;
        }
    };
    let (Some(record), true) = (record, state.sessions.contains_key(&key)) else {
        cx.effects.push(Effect::Terminal(TerminalJob::Release(id)));
        answer_no_session(state, conn, request_id, cx);
        return;
    };
    if let Some(open) = state.conns.get_mut(&conn) {
        open.terminals.insert(id.clone(), key);
    }
    if let Some(session) = state.sessions.get_mut(&key) {
        let cwd = record.command().map(|command| command.cwd.clone());
        let size = Some(shell::size_of(state.output_room, false, false));
        let view = TerminalView { command: Some(command), cwd, size, ..TerminalView::new(true, cx.now) };
        session.terminals.insert(id.clone(), view);
        access::add(session, AccessRecord { terminal: Some(id.clone()), ..record }, cx.now);
    }
    call::respond(state, conn, request_id, Response::TerminalCreated(id), cx);
}

/// A command run by parlor wrote output.
pub(in crate::core) fn on_terminal_output(state: &mut State, id: &TerminalId, bytes: &[u8], cx: &mut Cx) {
    let Some(key) = owner(state, id) else { return };
    let Some(session) = state.sessions.get_mut(&key) else { return };
    let modes = |session: &Session| {
        let known = session.terminals.get(id).map(|view| &view.modes);
        known.map(|modes| (modes.is_alternate, modes.is_application_cursor)).unwrap_or_default()
    };
    let before = modes(session);
    terminals::on_output(session, id, bytes);
    if modes(session) != before {
        shell::on_switch(state, key, id, before, cx);
    }
}

/// A command run by parlor ended: answers the requests that wait for it.
pub(in crate::core) fn on_terminal_ended(state: &mut State, id: &TerminalId, exit: &ExitInfo, cx: &mut Cx) {
    if let Some(open) = state.conns.values_mut().find(|conn| conn.terminals.contains_key(id)) {
        open.terminal_exits.insert(id.clone(), exit.clone());
    }
    let Some(key) = owner(state, id) else { return };
    if let Some(session) = state.sessions.get_mut(&key) {
        terminals::on_ended(session, id, exit, cx.now);
        if let Some(view) = session.terminals.get(id) {
            let record = terminals::record(id, view, exit);
            record::note(session, record);
        }
        shell::on_ended(session, id, cx);
    }
    end_terminal(state, key, id, exit, cx);
}

/// The output requested by the agent.
pub(in crate::core) fn on_terminal_read(
    state: &mut State,
    conn: ConnId,
    request_id: RequestId,
    result: Result<(String, bool, Option<ExitInfo>), RpcError>,
    cx: &mut Cx,
) {
    let reply = match result {
        Ok((output, is_truncated, exit)) => Response::TerminalOutput { output, is_truncated, exit },
        Err(error) => Response::Error(error),
    };
    call::respond(state, conn, request_id, reply, cx);
}

fn owner(state: &State, id: &TerminalId) -> Option<SessionKey> {
    state
        .sessions
        .values()
        .find(|session| session.terminals.get(id).is_some_and(|view| view.is_ours))
        .map(|session| session.key)
}
