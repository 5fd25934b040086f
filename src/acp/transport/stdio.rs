//! Runs an agent as a child process.
//!
//! Invariants: `Closed` is sent once, after the end of stdout and the exit, or 2 s after the first of them, so that
//! the last output is not lost and a grandchild that holds the pipe does not block; no process of the group
//! outlives the runtime.
//! Source: ACP v1 transports, stdio: stdout carries messages only, stderr is free for logging.

use std::env;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio as Pipe};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::io::AsyncWriteExt as _;
use tokio::process::{Child, Command};
use tokio::runtime::Handle;
use tokio::sync::{oneshot, watch};
use tokio::task::{AbortHandle, JoinHandle};
use tokio::time::timeout;

use super::io::{HeaderRequest, close_reason, read_frames, write_frames};
use super::secret;
use super::ssh::Line;
use super::stderr::StderrTail;
use super::{Ends, In, Link, Setup, Sink, StopSignal, Transport};
use crate::acp::frame::FrameReader;
use crate::host::os::pipe::PipeReader;
use crate::host::os::process::{Ending, Group, exit_info};
use crate::model::{AgentSpec, CloseReason, ExitInfo, Ssh};
use crate::program::{self, Start, StartedBy};

/// Timeout between the end of stdout and the exit, in either order.
const DRAIN: Duration = Duration::from_secs(2);
/// Timeout between the end of stdin and TERM.
const STDIN_GRACE: Duration = Duration::from_secs(2);
/// Timeout between TERM and KILL.
const TERM_GRACE: Duration = Duration::from_secs(3);
/// Timeout for the last lines of stderr once everything else has ended.
const STDERR_GRACE: Duration = Duration::from_millis(250);

#[derive(Debug)]
pub struct Stdio {
    spec: AgentSpec,
    cwd: PathBuf,
    line: Option<Line>,
    first_lines: Vec<u8>,
}

impl Stdio {
    /// The agent of a spec, started in the spec's folder or else in `cwd`; for an agent elsewhere, ssh in `cwd`.
    pub fn new(spec: AgentSpec, cwd: PathBuf) -> Self {
        if let Some(line) = Line::of(&spec, &cwd) {
            let socket = spec.ssh.as_ref().and_then(|ssh| ssh.socket(|name| env::var_os(name)));
            let run = line.run(&spec, socket.as_deref());
            let program = spec.ssh.as_ref().map_or("ssh", Ssh::program).to_owned();
            let spec = AgentSpec { command: program, args: run.args, env: Vec::new(), ..spec };
            return Self { spec, cwd, line: Some(line), first_lines: run.first_lines };
        }
        let cwd = spec.cwd.clone().unwrap_or(cwd);
        Self { spec, cwd, line: None, first_lines: Vec::new() }
    }

    fn read_variables(&mut self) -> Result<(), CloseReason> {
        if self.spec.env_commands.is_empty() {
            return Ok(());
        }
        let variables = Handle::current().block_on(secret::variables(&self.spec.env_commands));
        let variables = variables.map_err(CloseReason::not_started)?;
        self.spec.env.retain(|(name, _)| variables.iter().all(|(other, _)| other != name));
        self.spec.env.extend(variables);
        Ok(())
    }

    fn command(&self) -> Result<Command, CloseReason> {
        if !self.cwd.is_dir() {
            let (folder, advice) =
                (self.cwd.display(), "Choose another folder, or change `cwd` of this agent.");
            return Err(CloseReason::not_started(format!("The folder {folder} does not exist. {advice}")));
        }
        // The variables identify processes that outlive a crash of parlor.
        let start = find_program(&self.spec, &self.cwd).map_err(|reason| match (reason, &self.line) {
            // For an agent on another machine, ssh is missing and not the agent.
            (CloseReason::NotStarted { is_missing: true, .. }, Some(_)) => {
                CloseReason::not_started(format!("{} not found. Install an SSH client.", self.spec.command))
            }
            (reason, _) => reason,
        });
        let mut command =
            start?.tied_to_this_run().args(&self.spec.args).sandboxed(self.spec.bounds.as_deref()).task();
        command.stdin(Pipe::piped()).stdout(Pipe::piped()).stderr(Pipe::piped());
        command.kill_on_drop(true);
        Ok(command)
    }

    fn not_started(&self, error: &io::Error) -> CloseReason {
        let name = &self.spec.command;
        let why = match error.kind() {
            // The program was found before.
            io::ErrorKind::NotFound => "the interpreter in its first line is missing".to_owned(),
            _ => error.to_string(),
        };
        CloseReason::not_started(format!("Could not start {name}: {why}."))
    }
}

impl Transport for Stdio {
    fn start(mut self: Box<Self>, setup: Setup) -> Result<Link, CloseReason> {
        self.read_variables()?;
        let sandbox = self.spec.bounds.as_deref().map(program::try_sandbox).transpose();
        let sandbox = sandbox.map_err(CloseReason::not_started)?;
        let mut command = self.command()?;
        let mut child = program::spawn_task(&mut command).map_err(|error| self.not_started(&error))?;
        let pid = child.id();
        let group = Group::of(pid);
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(mut stdin), Some(stdout), Some(stderr)) = pipes else {
            return Err(CloseReason::not_started("Could not create pipes for the process.".to_owned()));
        };

        let stdout = stdout.into_owned_fd().and_then(PipeReader::new);
        let stdout = stdout.map_err(|error| self.not_started(&error))?;
        let (link, Ends { sink, frames, signal }) = Link::new();
        let header_request = HeaderRequest::new(self.spec.wire.has_headers.into());
        let tail = StderrTail::default();

        let (header_of_writer, first_lines) = (Arc::clone(&header_request), self.first_lines);
        let writer = tokio::spawn(async move {
            stdin.write_all(&first_lines).await?;
            write_frames(stdin, frames, header_of_writer).await
        });
        let (last_lines, log, tap) = (tail.clone(), setup.stderr_log, setup.tap);
        let stderr_task = tokio::spawn(async move { last_lines.read(stderr, log.as_deref(), tap).await });
        let (exit_sender, exit) = watch::channel(None);
        let (eof_sender, eof) = oneshot::channel();
        let (closed_sender, closed) = oneshot::channel();
        let keeper = Keeper { child, group, signal: signal.clone(), writer: writer.abort_handle() };
        tokio::spawn(keeper.run(exit_sender, eof, closed));
        let reader = Reader { sink, exit, signal, tail, stderr_task, line: self.line };
        tokio::spawn(async move {
            let frames = FrameReader::new(setup.max_frame_bytes);
            let end = read_frames(stdout, frames, &reader.sink, header_request, reader.drained()).await;
            let _ = eof_sender.send(());
            reader.close(end).await;
            drop(closed_sender);
        });
        Ok(Link { pid, sandbox, ..link })
    }
}

struct Keeper {
    child: Child,
    group: Group,
    signal: StopSignal,
    writer: AbortHandle,
}

impl Keeper {
    /// `eof` is sent when stdout has ended, `closed` when `Closed` was sent.
    async fn run(
        mut self,
        exit: watch::Sender<Option<ExitInfo>>,
        eof: oneshot::Receiver<()>,
        closed: oneshot::Receiver<()>,
    ) {
        let early = tokio::select! {
            status = self.child.wait() => Some(status),
            () = self.signal.wanted() => None,
            _ = eof => self.wait(DRAIN).await,
        };
        let status = if let Some(status) = early { status } else { self.end().await };
        // Fails only if the child was reaped elsewhere.
        let info = status.map_or(ExitInfo { code: None, signal: None }, exit_info);
        let _ = exit.send(Some(info));
        self.writer.abort();
        if !self.signal.is_forced() {
            // Child processes may still write output; a forced stop does not wait for it.
            tokio::select! { _ = closed => {}, () = self.signal.forced() => {} }
        }
        self.end_rest().await;
    }

    /// Ends the process in steps. The peer has closed the queue, so stdin is closed when everything is written.
    async fn end(&mut self) -> io::Result<ExitStatus> {
        if !self.signal.is_wanted() {
            // Stdout has ended: nothing that is written will get a response.
            self.writer.abort();
        }
        if let Some(status) = self.wait(STDIN_GRACE).await {
            return status;
        }
        // An agent that does not read blocks the writer; stdin is closed now in any case.
        self.writer.abort();
        if !self.signal.is_forced() {
            self.group.end(Ending::Terminate);
            if let Some(status) = self.wait(TERM_GRACE).await {
                return status;
            }
        }
        self.group.end(Ending::Kill);
        self.child.wait().await
    }

    async fn wait(&mut self, grace: Duration) -> Option<io::Result<ExitStatus>> {
        tokio::select! {
            biased;
            () = self.signal.forced() => None,
            status = timeout(grace, self.child.wait()) => status.ok(),
        }
    }

    async fn end_rest(&mut self) {
        if !self.signal.is_forced() {
            self.group.end(Ending::Terminate);
            tokio::select! {
                () = self.signal.forced() => {}
                _ = timeout(TERM_GRACE, self.group.gone()) => {}
            }
        }
        self.group.end(Ending::Kill);
        let _ = timeout(TERM_GRACE, self.group.gone()).await;
    }
}

struct Reader {
    sink: Sink,
    exit: watch::Receiver<Option<ExitInfo>>,
    signal: StopSignal,
    tail: StderrTail,
    stderr_task: JoinHandle<()>,
    line: Option<Line>,
}

impl Reader {
    /// Completes when the process has ended and the timeout for its last output has passed.
    fn drained(&self) -> impl Future<Output = ()> + use<> {
        let mut exit = self.exit.clone();
        async move {
            let _ = exit.wait_for(Option::is_some).await;
            tokio::time::sleep(DRAIN).await;
        }
    }

    async fn close(mut self, end: io::Result<()>) {
        // During a stop the exit is certain; otherwise wait for 2 s.
        let time_limit = if self.signal.is_wanted() { STDIN_GRACE + TERM_GRACE + DRAIN } else { DRAIN };
        let status = timeout(time_limit, self.exit.wait_for(Option::is_some)).await;
        let status = status.ok().and_then(|status| status.ok()?.clone());
        let end = if let Some(status) = status {
            let _ = timeout(STDERR_GRACE, &mut self.stderr_task).await;
            let stderr_tail = self.tail.last_lines(Instant::now());
            let judged = self.line.as_ref().and_then(|line| line.judge(&status, &stderr_tail));
            judged.unwrap_or(CloseReason::Exited { status, stderr_tail })
        } else {
            close_reason(end)
        };
        let _ = self.sink.send(In::Closed(end)).await;
    }
}

/// Finds a program on the PATH that it will have, relative to its folder.
fn find_program(spec: &AgentSpec, cwd: &Path) -> Result<Start, CloseReason> {
    let name = spec.command.as_str();
    if let Ok(start) = Start::find(StartedBy::User, name, Some(cwd), &spec.env) {
        return Ok(start);
    }
    let named = cwd.join(name);
    let is_path = name.contains('/');
    let is_there = is_path && named.exists();
    let error = if name.is_empty() {
        "No command for this agent. Set `command` in its configuration.".to_owned()
    } else if is_there {
        format!("{} is not executable. Run `chmod +x` on it.", named.display())
    } else if is_path {
        format!("{} not found. Correct the path in this agent's `command`.", named.display())
    } else {
        format!("{name} not found on PATH. Install it, or set its absolute path.")
    };
    Err(CloseReason::NotStarted { error, is_missing: !is_there })
}
