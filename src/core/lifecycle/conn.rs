//! The lifecycle of a connection: start, handshake, crash, restart, stop.
//!
//! Assigns processes to sessions, and handles the end of a process. `open` opens sessions, `turn` runs turns. A closed
//! connection stays in the state while a session refers to it: a restart needs its spec.
//! Invariants: a connection stopped by parlor is not treated as a crash; a turn ends with its connection; frequent
//! crashes stop the automatic restarts.

use crate::core::UiRequest;
use std::time::{Duration, Instant};

use crate::model::{
    AgentCommand, AgentInfo, AgentSpec, CallError, CloseReason, ConnId, Decider, ExitInfo, Grant,
    RemoteFolder, Sandbox, SandboxMode, SandboxRules, SessionKey, Severity, TerminalJob, is_state_variable,
};

use super::{archive, call, open, policy, requests, ssh_sign_in, tabs, turn, unstable, unsupported, version};
use crate::core::session::terminals;
use crate::core::state::{FlashEnd, lookup, tab, texts};
use crate::core::{
    Conn, ConnPhase, Consequence, Cx, Effect, ItemBody, Question, Session, SessionPhase, State, UnseenKind,
};

/// Crashes further apart than this are not counted together.
const CRASH_WINDOW: Duration = Duration::from_secs(60);
/// Delays before the attempts to restart a process; one attempt per delay.
const BACK_OFF: &[Duration] = &[Duration::from_millis(500), Duration::from_secs(2)];
/// The same for a remote agent: networks recover more slowly.
const REMOTE_BACK_OFF: &[Duration] = &[
    Duration::from_millis(500),
    Duration::from_secs(2),
    Duration::from_secs(4),
    Duration::from_secs(8),
    Duration::from_secs(15),
    Duration::from_secs(15),
    Duration::from_secs(15),
    Duration::from_secs(15),
    Duration::from_secs(15),
    Duration::from_secs(15),
    Duration::from_secs(15),
];
/// Failures further apart than this are not counted together; longer than all delays, with the time of the attempts.
const REMOTE_CRASH_WINDOW: Duration = Duration::from_secs(600);

/// Starts an agent for a session (stopping its previous one), then opens the session: resume if the session has an id
/// and the agent supports it, otherwise load, otherwise new. Another program cannot use the old id.
pub fn start_agent(state: &mut State, key: SessionKey, spec: AgentSpec, cx: &mut Cx) {
    let Some(session) = state.sessions.get(&key) else { return };
    let former = session.conn;
    let is_same_program = former
        .and_then(|conn| state.conns.get(&conn))
        .map_or_else(|| session.recorder.is_with(&spec), |conn| tab::is_same_program(&conn.spec, &spec));
    if let Some(former) = former {
        turn::abandon(state, key, Decider::AgentStopped, cx);
        let is_shared = lookup::sessions_of(state, former, false).iter().any(|other| *other != key);
        let id = state.sessions.get(&key).and_then(|session| session.id.clone());
        if !is_shared {
            retire(state, former, false, cx);
        } else if let Some(id) = id {
            call::close_session(state, former, id, cx);
        }
    }
    if !is_same_program {
        open::clear_agent_state(state, key);
    }
    join_or_connect(state, key, spec, cx);
}

/// Connects a session: to the process that another tab of this folder shares, otherwise a new one.
pub(in crate::core) fn join_or_connect(state: &mut State, key: SessionKey, spec: AgentSpec, cx: &mut Cx) {
    let folder = state.sessions.get(&key).map(|session| session.workspace.cwd.clone()).unwrap_or_default();
    let Some(shared) = tab::to_share(state, &spec, &folder, Some(key)) else {
        connect(state, &[key], spec, Duration::ZERO, Vec::new(), cx);
        return;
    };
    if let Some(session) = state.sessions.get_mut(&key) {
        begin_with(session, shared, &spec, cx.now);
    }
    drop_unused(state);
    open::open_if_ready(state, shared, key, cx);
}

/// Sets the connection of a session, and remembers it for its protocol log.
pub(in crate::core) fn take_conn(session: &mut Session, conn: ConnId) {
    session.conn = Some(conn);
    session.start.add_conn(conn);
}

/// Lets a session wait for its connection. A session from a list has no transcript yet.
fn begin_with(session: &mut Session, conn: ConnId, spec: &AgentSpec, now: Instant) {
    take_conn(session, conn);
    let here = spec.remote_folder(&session.workspace.cwd);
    // A session listed by the agent keeps the reported folder.
    let is_there = |remote: &RemoteFolder| here.as_ref().is_some_and(|here| here.host == remote.host);
    session.workspace.remote = session.workspace.remote.take().filter(is_there).or(here);
    session.git = session.git.take().filter(|_| session.workspace.remote.is_none());
    session.phase = SessionPhase::Starting { since: now };
    session.settings.begin_connecting();
    session.resume.begin_connecting(session.id.is_some() || session.turn_count > 0);
}

/// Restarts the session's agent and reopens the session; the transcript stays. Other sessions of the same process are
/// reopened too.
pub fn restart_agent(state: &mut State, key: SessionKey, cx: &mut Cx) {
    let root = lookup::root_of(state, key);
    if archive::start_reading(state, root, cx) {
        return;
    }
    let Some((conn, spec)) = state.conn_of(root).map(|conn| (conn.id, conn.spec.clone())) else {
        cx.requests.push(UiRequest::AgentPicker);
        return;
    };
    if state.conns.get(&conn).is_some_and(|conn| conn.interrupted.is_some()) {
        cx.effects.push(Effect::RetryNow(conn));
        return;
    }
    // The agent is running; only the session is archived.
    let is_archived = state.sessions.get(&root).is_some_and(|session| session.is_archived);
    if is_archived && state.conns.get(&conn).is_some_and(|conn| conn.phase == ConnPhase::Ready) {
        unstable::archive_session(state, root, cx);
        return;
    }
    reconnect(state, conn, spec, cx);
}

/// Replaces a connection, open or closed, for all of its sessions. Returns the new one.
pub(crate) fn reconnect(state: &mut State, conn: ConnId, spec: AgentSpec, cx: &mut Cx) -> Option<ConnId> {
    let keys = lookup::sessions_of(state, conn, false);
    // Attempts to reconnect go on if this one fails.
    let is_reconnecting = |conn: &&Conn| conn.phase != ConnPhase::Ready && conn.spec.is_elsewhere();
    let crashes = state.conns.get(&conn).filter(is_reconnecting).map(|conn| conn.crashes.clone());
    retire(state, conn, false, cx);
    connect(state, &keys, spec, Duration::ZERO, crashes.unwrap_or_default(), cx)
}

/// Kills an agent's process immediately.
pub fn force_stop(state: &mut State, conn: ConnId, cx: &mut Cx) {
    let keys = lookup::sessions_of(state, conn, true);
    retire(state, conn, true, cx);
    for key in keys {
        set_ended(state, key, "The agent was stopped. Restart it to continue.");
    }
}

fn connect(
    state: &mut State,
    keys: &[SessionKey],
    spec: AgentSpec,
    delay: Duration,
    crashes: Vec<Instant>,
    cx: &mut Cx,
) -> Option<ConnId> {
    // Nothing is started while quitting.
    if state.is_quitting {
        return None;
    }
    let cwd = keys.first().and_then(|key| state.sessions.get(key))?.workspace.cwd.clone();
    let mut spec = version::with_known(state, spec);
    spec.bounds = bounds_of(state, keys, &spec).map(Box::new);
    state.next.conn += 1;
    let id = ConnId(state.next.conn);
    for key in keys {
        if let Some(session) = state.sessions.get_mut(key) {
            begin_with(session, id, &spec, cx.now);
        }
    }
    state.conns.insert(id, Conn { crashes, ..Conn::new(id, spec.clone(), cx.now) });
    if state.flash_end == FlashEnd::Start {
        state.clear_flash();
    }
    drop_unused(state);
    state.withdraw(|consequence| matches!(consequence, Consequence::Restart(key) if keys.contains(key)));
    cx.effects.push(Effect::Connect { conn: id, spec, cwd, delay });
    Some(id)
}

/// The sandbox of a process for these sessions. `acp` does not start an agent on another machine if it is required.
fn bounds_of(state: &mut State, keys: &[SessionKey], spec: &AgentSpec) -> Option<Sandbox> {
    let mode = spec.sandbox.unwrap_or(state.setup.sandbox.mode);
    if mode == SandboxMode::Off {
        return None;
    }
    if spec.is_elsewhere() && mode == SandboxMode::Workspace {
        let text = "No sandbox: the agent is on another machine.";
        for key in keys {
            call::notice(state, *key, Severity::Info, text, None);
        }
        return None;
    }
    let rules = SandboxRules { mode, ..state.setup.sandbox.clone() };
    let (mut granted_write, mut granted_read) = (Vec::new(), Vec::new());
    let agent = policy::agent_of(spec);
    for (grant, _) in keys.iter().flat_map(|key| policy::grants_of(state, &agent, *key)) {
        match grant {
            Grant::SandboxWrite(path) => granted_write.push(path),
            Grant::SandboxRead(path) => granted_read.push(path),
            _ => {}
        }
    }
    let words = std::iter::once(&spec.name).chain(std::iter::once(&spec.command)).chain(&spec.args);
    let sessions = keys.iter().filter_map(|key| state.sessions.get(key));
    Some(Sandbox {
        rules,
        names: words.map(|word| program_name(word).to_owned()).collect(),
        folders: sessions.flat_map(|session| session.workspace.roots()).collect(),
        own_folders: state.setup.own_folders.clone(),
        granted_write,
        granted_read,
        state: spec.env.iter().filter(|(name, _)| is_state_variable(name)).cloned().collect(),
    })
}

/// The name of a program or package: `codex-acp` of `npx @zed-industries/codex-acp@1.2`.
fn program_name(word: &str) -> &str {
    let name = word.rsplit('/').next().unwrap_or(word);
    name.split('@').next().unwrap_or(name)
}

/// Drops closed connections without sessions.
fn drop_unused(state: &mut State) {
    let used: Vec<ConnId> = state.sessions.values().filter_map(|session| session.conn).collect();
    state.conns.retain(|id, conn| !matches!(conn.phase, ConnPhase::Closed(_)) || used.contains(id));
}

/// Releases an open connection: ends turns, answers all requests, then stops the process.
pub(in crate::core) fn retire(state: &mut State, conn: ConnId, force: bool, cx: &mut Cx) {
    let Some(phase) = state.conns.get(&conn).map(|conn| conn.phase.clone()) else { return };
    if matches!(phase, ConnPhase::Closed(_)) {
        return;
    }
    let by = if state.is_quitting { Decider::SessionClosed } else { Decider::AgentStopped };
    for key in lookup::sessions_of(state, conn, false) {
        turn::abandon(state, key, by, cx);
    }
    requests::answer_all(state, conn, by, cx);
    for key in lookup::sessions_of(state, conn, true) {
        let is_child = state.sessions.get(&key).is_some_and(|session| session.parent.is_some());
        if is_child {
            set_ended(state, key, "The agent was stopped.");
        }
    }
    if let Some(conn) = state.conns.get_mut(&conn) {
        conn.phase = ConnPhase::Stopping;
        conn.open_calls.clear();
        conn.early = crate::core::Early::default();
    }
    state.withdraw(|consequence| *consequence == Consequence::ForceStop(conn));
    cx.effects.push(Effect::Disconnect { conn, force });
}

/// The process is running; `initialize` was sent.
pub(in crate::core) fn on_started(state: &mut State, conn: ConnId, pid: Option<u32>) {
    if let Some(conn) = state.conns.get_mut(&conn) {
        conn.pid = pid;
    }
    // It is recorded with each session, so that the process can be found if parlor is killed.
    for key in lookup::sessions_of(state, conn, true) {
        state.sessions.touch(key);
    }
}

/// Says in each session of the process what its sandbox enforces.
pub(in crate::core) fn on_sandboxed(state: &mut State, conn: ConnId, text: &str) {
    if let Some(conn) = state.conns.get_mut(&conn) {
        conn.sandbox = Some(text.to_owned());
    }
    for key in lookup::sessions_of(state, conn, false) {
        call::notice(state, key, Severity::Info, text, None);
    }
}

/// `initialize` was answered: opens the sessions of this connection.
pub(in crate::core) fn on_ready(state: &mut State, conn: ConnId, mut info: AgentInfo, cx: &mut Cx) {
    let Some(open_conn) =
        state.conns.get_mut(&conn).filter(|conn| matches!(conn.phase, ConnPhase::Starting { .. }))
    else {
        return;
    };
    open_conn.phase = ConnPhase::Ready;
    let command = open_conn.spec.command.clone();
    note_start(state, &command, true, cx);
    let Some(open_conn) = state.conns.get_mut(&conn) else { return };
    let hint = info.last_session.take();
    let version = info.protocol_version;
    open_conn.info = Some(info);
    let agent = open_conn.spec.name.clone();
    let is_first = open_conn.crashes.is_empty() && !agent.is_empty();
    let keys = lookup::sessions_of(state, conn, false);
    if let Some(session) = keys.first().and_then(|key| state.sessions.get(key)).filter(|_| is_first) {
        cx.effects.push(Effect::SaveAgentChoice { folder: session.workspace.cwd.clone(), agent });
    }
    if let (Some(id), Some(session)) = (hint, keys.first().and_then(|key| state.sessions.get_mut(key)))
        && session.id.is_none()
        && !session.resume.is_reopening()
    {
        session.id = Some(id);
        session.resume.hint();
    }
    version::remember(state, conn, version, cx);
    unstable::on_ready(state, conn, cx);
    for key in keys {
        unsupported::report_folders(state, key);
        open::open(state, key, cx);
    }
}

/// Records whether an agent that was installed from the registry has started.
fn note_start(state: &State, command: &str, has_worked: bool, cx: &mut Cx) {
    let is_it =
        |choice: &&crate::core::AgentChoice| choice.source == "installed" && choice.spec.command == command;
    let id = state.setup.agents.iter().find(is_it).and_then(|choice| choice.registry_id.clone());
    cx.effects.extend(id.map(|id| Effect::NoteStart { id, has_worked }));
}

/// `initialize` failed: the sessions show the reason, and the process is stopped.
pub(in crate::core) fn on_initialize_failed(state: &mut State, conn: ConnId, error: &CallError, cx: &mut Cx) {
    let is_starting =
        state.conns.get(&conn).is_some_and(|conn| matches!(conn.phase, ConnPhase::Starting { .. }));
    // When the stream has ended, `Closed` follows with exit status and stderr.
    if !is_starting || *error == CallError::Lost {
        return;
    }
    if offer_draft(state, conn, error, cx) {
        return;
    }
    let command = state.conns.get(&conn).map(|conn| conn.spec.command.clone()).unwrap_or_default();
    note_start(state, &command, false, cx);
    let next = texts::next_for_agent(error);
    let lines: Vec<String> = [Some(texts::error_text(error)), next].into_iter().flatten().collect();
    let title = texts::start_fault("The agent could not be initialized.", error);
    retire(state, conn, false, cx);
    for key in lookup::sessions_of(state, conn, false) {
        call::notice(state, key, Severity::Error, title.clone(), Some(lines.join("\n")));
        if let Some(session) = state.sessions.get_mut(&key) {
            session.phase = SessionPhase::Failed(error.clone());
        }
        let failed = UnseenKind::Failed("The agent could not be initialized.".to_owned());
        tabs::note_unseen(state, key, failed, cx.now);
    }
}

/// Starts an agent that refused version 1 again, and offers it version 2. Returns whether it did: only once, because the
/// second start offers it from the beginning.
fn offer_draft(state: &mut State, conn: ConnId, error: &CallError, cx: &mut Cx) -> bool {
    let refused = state.conns.get_mut(&conn).filter(|conn| conn.spec.wire.protocol == 0);
    let (Some(refused), CallError::OtherVersion { theirs }) = (refused, error) else { return false };
    if !texts::is_draft(theirs) {
        return false;
    }
    let mut spec = refused.spec.clone();
    spec.wire.protocol = version::DRAFT;
    let crashes = std::mem::take(&mut refused.crashes);
    let keys = lookup::sessions_of(state, conn, false);
    retire(state, conn, false, cx);
    connect(state, &keys, spec, Duration::ZERO, crashes, cx);
    true
}

/// Handles the end of a connection. Its requests need no response; its commands are ended.
pub(in crate::core) fn on_closed(state: &mut State, conn: ConnId, reason: &CloseReason, cx: &mut Cx) {
    if state.conns.get(&conn).is_none_or(|conn| matches!(conn.phase, ConnPhase::Closed(_))) {
        return;
    }
    requests::drop_all(state, conn, Decider::ConnectionLost, cx.now);
    let Some(closing) = state.conns.get_mut(&conn) else { return };
    let before = std::mem::replace(&mut closing.phase, ConnPhase::Closed(reason.clone()));
    closing.open_calls.clear();
    closing.open_requests.clear();
    closing.early = crate::core::Early::default();
    let spec = closing.spec.clone();
    let mut crashes = std::mem::take(&mut closing.crashes);
    let is_unproven = before != ConnPhase::Ready && crashes.is_empty();
    let noise = std::mem::take(&mut closing.noise);
    if matches!(before, ConnPhase::Starting { .. }) {
        note_start(state, &spec.command, false, cx);
    }
    end_terminals(state, conn, cx);
    state.withdraw(|consequence| *consequence == Consequence::ForceStop(conn));
    // A connection stopped by parlor was handled when it was released.
    let is_ours = before == ConnPhase::Stopping;
    if is_ours {
        report_last_output(state, conn, reason, &noise);
    } else {
        let was_ready = before == ConnPhase::Ready;
        let mut lines = noise;
        lines.extend_from_slice(texts::stderr_tail(reason));
        let has_advice = texts::advice_of_output(&lines).is_some();
        if is_unproven && !has_advice && matches!(reason, CloseReason::Exited { .. }) {
            lines.push(texts::NOT_AN_AGENT.to_owned());
        }
        let is_crash = matches!(
            reason,
            CloseReason::Exited { .. } | CloseReason::Lost { .. } | CloseReason::Unreachable { .. }
        );
        // A process whose first handshake failed would fail again.
        let is_worth_a_try = is_crash && (was_ready || !crashes.is_empty());
        let (back_off, window) = if spec.is_elsewhere() {
            (REMOTE_BACK_OFF, REMOTE_CRASH_WINDOW)
        } else {
            (BACK_OFF, CRASH_WINDOW)
        };
        crashes.retain(|crash| cx.now.duration_since(*crash) < window);
        crashes.push(cx.now);
        let delay = back_off.get(crashes.len() - 1).copied();
        let is_tried_again = is_worth_a_try && delay.is_some() && !state.is_quitting;
        report_end(state, conn, reason, &lines, is_tried_again, cx);
        let keys = lookup::sessions_of(state, conn, false);
        match delay {
            _ if matches!(reason, CloseReason::SignInFirst { .. }) => {
                if let Some(key) = keys.first() {
                    ssh_sign_in::offer_sign_in(state, conn, *key, reason, cx.now);
                }
            }
            _ if !is_worth_a_try => {}
            Some(delay) => drop(connect(state, &keys, spec.clone(), delay, crashes, cx)),
            None => give_up(state, conn, reason, &crashes, &keys, cx.now),
        }
        for key in keys {
            // Sessions without a new agent are given up.
            let cause = state.sessions.get(&key).and_then(|session| match &session.phase {
                SessionPhase::Ended { cause } => Some(cause.clone()),
                _ => None,
            });
            if let Some(cause) = cause {
                tabs::note_unseen(state, key, UnseenKind::Failed(cause), cx.now);
                let what = if spec.remote.is_some() { "connection lost." } else { "agent exited." };
                tabs::announce(state, key, what, cx);
            }
        }
    }
    drop_unused(state);
}

/// Ends turns and sessions of a closed connection, with a notice in each transcript. `lines` is the last output of the
/// agent.
fn report_end(
    state: &mut State,
    conn: ConnId,
    reason: &CloseReason,
    lines: &[String],
    is_tried_again: bool,
    cx: &mut Cx,
) {
    let command = state.conns.get(&conn).map(|conn| conn.spec.command.clone()).unwrap_or_default();
    let cause = texts::close_cause(reason, &command);
    let heading = texts::close_heading(reason);
    let title = heading.map_or_else(|| cause.clone(), |heading| format!("{heading}."));
    let advice = texts::advice_of_output(lines);
    let next = is_tried_again.then(|| texts::after_close(reason).to_owned());
    let below = heading.map(|_| &cause).into_iter().chain(lines).chain(&advice).chain(&next);
    let below = below.cloned().collect::<Vec<_>>().join("\n");
    let detail = (!below.is_empty()).then_some(below);
    for key in lookup::sessions_of(state, conn, true) {
        let Some(session) = state.sessions.get(&key) else { continue };
        let is_child = session.parent.is_some();
        if session.turn.is_running() {
            let cause = heading.map_or_else(|| cause.clone(), |heading| format!("{heading}. {cause}"));
            let end = turn::Ending::AgentDied { cause, stderr_tail: lines.to_vec() };
            turn::end(state, key, end, cx);
        } else {
            turn::close_items(state, key, cx.now);
            // Repeated attempts fail with the same reason.
            let is_said = matches!(reason, CloseReason::Unreachable { .. })
                && state
                    .sessions
                    .get(&key)
                    .and_then(|session| session.transcript.items().last())
                    .is_some_and(|item| {
                        matches!(&item.body, ItemBody::Notice { title: said, detail: Some(more), .. }
                            if *said == title && more.lines().next() == cause.lines().next())
                    });
            if !is_child && !is_said {
                call::notice(state, key, Severity::Error, title.clone(), detail.clone());
            }
        }
        let hint = match reason {
            CloseReason::NotStarted { .. } | CloseReason::Refused { .. } => cause.clone(),
            CloseReason::SignInFirst { .. } => format!(
                "{cause} Sign in, or restart the agent when it \
                connects without sign-in."
            ),
            _ => format!("{cause} Restart it to continue."),
        };
        open::drop_replay(state, key);
        set_ended(state, key, &hint);
    }
}

/// The last output of a process that could not be set up is often the only clue.
fn report_last_output(state: &mut State, conn: ConnId, reason: &CloseReason, noise: &[String]) {
    let mut lines: Vec<String> = noise.to_vec();
    lines.extend_from_slice(texts::stderr_tail(reason));
    for key in lookup::sessions_of(state, conn, false) {
        let has_failed =
            state.sessions.get(&key).is_some_and(|session| matches!(session.phase, SessionPhase::Failed(_)));
        if has_failed && !lines.is_empty() {
            call::notice(state, key, Severity::Info, "Last output of the agent", Some(lines.join("\n")));
        }
    }
}

/// Too many crashes in a short time: the user decides about a restart.
fn give_up(
    state: &mut State,
    conn: ConnId,
    reason: &CloseReason,
    crashes: &[Instant],
    keys: &[SessionKey],
    now: Instant,
) {
    let Some(first) = keys.first().copied() else { return };
    let command = state.conns.get(&conn).map(|conn| conn.spec.command.clone()).unwrap_or_default();
    let is_away = matches!(reason, CloseReason::Unreachable { .. } | CloseReason::Lost { .. });
    let (title, explanation, next) = if is_away {
        let seconds = crashes.first().map_or(0, |first| now.duration_since(*first).as_secs());
        let explanation = format!("Reconnecting failed for {seconds} s and was stopped.");
        ("Agent unreachable", explanation, "The transcript stays available.")
    } else {
        let explanation =
            format!("The agent exited {} times in one minute. Automatic restart is disabled.", crashes.len());
        ("Agent keeps exiting", explanation, "The transcript stays available.")
    };
    let mut body = vec![texts::close_cause(reason, &command), explanation, next.to_owned()];
    let last_lines = texts::stderr_tail(reason);
    if !last_lines.is_empty() {
        body.push("Last output of the agent:".to_owned());
        body.extend_from_slice(last_lines);
    }
    let answers = [
        (if is_away { "Retry" } else { "Restart" }, Consequence::Restart(first)),
        ("Leave it stopped", Consequence::Close),
        ("Quit parlor", Consequence::AskToQuit),
    ];
    state.ask(first, Question::new(title, body, answers).asked_at(now));
}

fn set_ended(state: &mut State, key: SessionKey, cause: &str) {
    if let Some(session) = state.sessions.get_mut(&key) {
        session.phase = SessionPhase::Ended { cause: cause.to_owned() };
    }
}

/// Ends the commands of a closed connection with their child processes.
fn end_terminals(state: &mut State, conn: ConnId, cx: &mut Cx) {
    let live = state.conns.get_mut(&conn).map(|conn| std::mem::take(&mut conn.terminals)).unwrap_or_default();
    if live.is_empty() {
        return;
    }
    cx.effects.push(Effect::Terminal(TerminalJob::ReleaseAll(conn)));
    for (terminal, key) in live {
        if let Some(session) = state.sessions.get_mut(&key) {
            let exit = ExitInfo { code: None, signal: Some("SIGKILL".to_owned()) };
            terminals::end_if_running(session, &terminal, &exit, cx.now);
        }
    }
}

/// Quits: cancels turns, answers all requests, stops all agents, ends the program.
pub fn quit(state: &mut State, cx: &mut Cx) {
    let is_impatient = state.is_quitting;
    state.is_quitting = true;
    let conns: Vec<ConnId> = state.conns.keys().copied().collect();
    for conn in conns {
        let phase = state.conns.get(&conn).map(|conn| conn.phase.clone());
        match phase {
            Some(ConnPhase::Starting { .. } | ConnPhase::Ready) => retire(state, conn, false, cx),
            Some(ConnPhase::Stopping) if is_impatient => {
                cx.effects.push(Effect::Disconnect { conn, force: true });
            }
            _ => {}
        }
    }
    cx.effects.push(Effect::Quit);
}

pub(in crate::core) fn send_cancel(state: &State, key: SessionKey, cx: &mut Cx) {
    let Some(session) = state.sessions.get(&key) else { return };
    if let (Some(conn), Some(id)) = (session.conn, session.id.clone())
        && state.conns.get(&conn).is_some_and(|conn| conn.phase == ConnPhase::Ready)
    {
        cx.effects.push(Effect::Send(conn, AgentCommand::Cancel(id)));
    }
}
