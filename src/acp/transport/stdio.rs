//! An agent as a child process.
//!
//! Duty: find and start the program in a group of its own, with its folder, its variables and three pipes;
//! carry frames; end it in steps; tell how it ended.
//! Not its duty: signals themselves (`process`), frames (`frame`), restarting.
//! Four tasks: one reads stdout, one writes stdin, one reads stderr, one waits for the process.
//! Invariants: `Closed` comes once, after stdout's end and the exit, or 2 s after whichever came first, so
//! that last words are not lost and a grandchild that holds the pipe does not hang us; nothing of the
//! group outlives the runtime.
//! Source: ACP v1 transports, stdio: stdout carries messages only, stderr is free for logging.

use std::env;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio as Pipe};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::AsyncWriteExt as _;
use tokio::process::{Child, Command};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::{AbortHandle, JoinHandle};
use tokio::time::timeout;

use super::io::{HeaderRequest, ReadEnd, read_frames, write_frames};
use super::process::{Group, exit_info};
use super::queue::queue;
use super::ssh::Line;
use super::stderr::StderrTail;
use super::{INCOMING_READS, In, Link, LinkEnd, Setup, StopSignal, Stopper, Transport};
use crate::acp::frame::FrameReader;
use crate::model::{AgentSpec, CloseReason, ExitInfo, Ssh};
use crate::program::{Start, StartedBy};

/// From stdout's end to the exit, or the other way round.
const LAST_WORDS: Duration = Duration::from_secs(2);
/// From stdin's end to TERM.
const STDIN_GRACE: Duration = Duration::from_secs(2);
/// From TERM to KILL.
const TERM_GRACE: Duration = Duration::from_secs(3);
/// How long the last lines of stderr are waited for once all else has ended.
const STDERR_GRACE: Duration = Duration::from_millis(250);

/// An agent that is to be started.
#[derive(Debug)]
pub struct Stdio {
    spec: AgentSpec,
    cwd: PathBuf,
    line: Option<Line>,
    /// What is written before the first frame.
    first_lines: Vec<u8>,
}

impl Stdio {
    /// The agent of a spec, in the spec's own folder or else in `cwd`; for one on another machine, ssh in `cwd`.
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

    /// The command, ready to be started; or why it cannot be.
    fn command(&self) -> Result<Command, CloseReason> {
        if !self.cwd.is_dir() {
            let error = format!(
                "The folder {} does not exist. Choose another folder, or change `cwd` of this agent.",
                self.cwd.display()
            );
            return Err(CloseReason::NotStarted { error, is_missing: false });
        }
        // What is left of it after the worst end of this process is known by its variables.
        let start = find_program(&self.spec, &self.cwd)?.tied_to_this_run();
        let mut command = start.args(&self.spec.args).task();
        command.stdin(Pipe::piped()).stdout(Pipe::piped()).stderr(Pipe::piped());
        command.kill_on_drop(true);
        Ok(command)
    }

    /// What is not found for an agent on another machine is ssh, not the agent.
    fn without_ssh(&self, reason: CloseReason) -> CloseReason {
        match reason {
            CloseReason::NotStarted { is_missing: true, .. } if self.line.is_some() => {
                let error = format!("{} was not found. Install an ssh client.", self.spec.command);
                CloseReason::NotStarted { error, is_missing: false }
            }
            reason => reason,
        }
    }

    /// Why a program that is there did not start.
    fn not_started(&self, error: &io::Error) -> CloseReason {
        let name = &self.spec.command;
        let error = match error.kind() {
            // The program was found a moment ago.
            io::ErrorKind::NotFound => {
                format!("{name} could not be started: the interpreter that its first line names is missing.")
            }
            _ => format!("{name} could not be started: {error}."),
        };
        CloseReason::NotStarted { error, is_missing: false }
    }
}

impl Transport for Stdio {
    fn start(self: Box<Self>, setup: Setup) -> Result<Link, CloseReason> {
        let mut command = self.command().map_err(|reason| self.without_ssh(reason))?;
        let mut child = command.spawn().map_err(|error| self.not_started(&error))?;
        let pid = child.id();
        let group = Group::of(pid);
        let (Some(stdin), Some(stdout), Some(stderr)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            let error = "The system gave no pipes for the process.".to_owned();
            return Err(CloseReason::NotStarted { error, is_missing: false });
        };

        let (sender, incoming) = mpsc::channel(INCOMING_READS);
        let (outgoing, frames) = queue();
        let (stopper, signal) = Stopper::new();
        let wish = HeaderRequest::new(self.spec.wire.has_headers.into());
        let tail = StderrTail::default();

        let writer = {
            let (mut stdin, wish, first_lines) = (stdin, Arc::clone(&wish), self.first_lines);
            tokio::spawn(async move {
                stdin.write_all(&first_lines).await?;
                write_frames(stdin, frames, wish).await
            })
        };
        let stderr_task = {
            let (tail, setup) = (tail.clone(), setup.clone());
            tokio::spawn(async move { tail.read(stderr, setup.stderr_log.as_deref(), setup.tap).await })
        };
        let (exit_sender, exit) = watch::channel(None);
        let (eof_sender, eof) = oneshot::channel();
        let (closed_sender, closed) = oneshot::channel();
        let keeper = Keeper { child, group, signal: signal.clone(), writer: writer.abort_handle() };
        tokio::spawn(keeper.run(exit_sender, eof, closed));
        let reader = Reader { sender, exit, signal, tail, stderr_task, line: self.line };
        tokio::spawn(async move {
            let frames = FrameReader::new(setup.max_frame_bytes);
            let end = read_frames(stdout, frames, &reader.sender, wish, reader.last_words()).await;
            let _ = eof_sender.send(());
            reader.close(end).await;
            drop(closed_sender);
        });
        Ok(Link { pid, incoming, outgoing, stopper })
    }
}

/// Owns the process and sees to its end.
struct Keeper {
    child: Child,
    group: Group,
    signal: StopSignal,
    writer: AbortHandle,
}

impl Keeper {
    /// `eof` comes when stdout has ended, `closed` when `Closed` was sent.
    async fn run(
        mut self,
        exit: watch::Sender<Option<ExitInfo>>,
        eof: oneshot::Receiver<()>,
        closed: oneshot::Receiver<()>,
    ) {
        let early = tokio::select! {
            status = self.child.wait() => Some(status),
            () = self.signal.wanted() => None,
            _ = eof => self.wait(LAST_WORDS).await,
        };
        let status = match early {
            Some(status) => status,
            None => self.end().await,
        };
        // The one that fails is a child that somebody else has waited for.
        let info = status.map_or(ExitInfo { code: None, signal: None }, exit_info);
        let _ = exit.send(Some(info));
        self.writer.abort();
        if !self.signal.is_forced() {
            // Its children may still say something; a forced stop does not wait for that.
            tokio::select! { _ = closed => {}, () = self.signal.forced() => {} }
        }
        self.end_rest().await;
    }

    /// Ends the process in steps; the peer has closed the queue, so stdin ends when all is written.
    async fn end(&mut self) -> io::Result<ExitStatus> {
        if !self.signal.is_wanted() {
            // Stdout has ended by itself: nothing that we write will be answered.
            self.writer.abort();
        }
        if let Some(status) = self.wait(STDIN_GRACE).await {
            return status;
        }
        // An agent that does not read keeps the writer waiting; stdin ends now in any case.
        self.writer.abort();
        if !self.signal.is_forced() {
            self.group.terminate();
            if let Some(status) = self.wait(TERM_GRACE).await {
                return status;
            }
        }
        self.group.kill();
        self.child.wait().await
    }

    /// Waits for the exit, but no longer than so, and not at all once force is wanted.
    async fn wait(&mut self, grace: Duration) -> Option<io::Result<ExitStatus>> {
        tokio::select! {
            biased;
            () = self.signal.forced() => None,
            status = timeout(grace, self.child.wait()) => status.ok(),
        }
    }

    /// Ends what the process has left behind.
    async fn end_rest(&mut self) {
        if !self.signal.is_forced() {
            self.group.terminate();
            tokio::select! {
                () = self.signal.forced() => {}
                _ = timeout(TERM_GRACE, self.group.gone()) => {}
            }
        }
        self.group.kill();
        let _ = timeout(TERM_GRACE, self.group.gone()).await;
    }
}

/// What the reading task needs to tell the end.
struct Reader {
    sender: mpsc::Sender<In>,
    exit: watch::Receiver<Option<ExitInfo>>,
    signal: StopSignal,
    tail: StderrTail,
    stderr_task: JoinHandle<()>,
    line: Option<Line>,
}

impl Reader {
    /// Ends when the process has ended and its last words have had their time.
    fn last_words(&self) -> impl Future<Output = ()> + use<> {
        let mut exit = self.exit.clone();
        async move {
            let _ = exit.wait_for(Option::is_some).await;
            tokio::time::sleep(LAST_WORDS).await;
        }
    }

    /// Tells the end, as the last message.
    async fn close(mut self, end: ReadEnd) {
        // While we stop it, the end is sure to come; else 2 s must do.
        let patience =
            if self.signal.is_wanted() { STDIN_GRACE + TERM_GRACE + LAST_WORDS } else { LAST_WORDS };
        let status = match timeout(patience, self.exit.wait_for(Option::is_some)).await {
            Ok(Ok(status)) => status.clone(),
            _ => None,
        };
        let end = match (status, end) {
            (Some(status), _) => {
                let _ = timeout(STDERR_GRACE, &mut self.stderr_task).await;
                let stderr_tail = self.tail.last_lines();
                let judged = self.line.as_ref().and_then(|line| line.judge(&status, &stderr_tail));
                judged.unwrap_or(LinkEnd::Exited { status, stderr_tail })
            }
            (None, ReadEnd::Broken(error)) => LinkEnd::Io(error.to_string()),
            (None, _) => LinkEnd::Eof,
        };
        let _ = self.sender.send(In::Closed(end)).await;
    }
}

/// Looks a program up in the PATH that it will have, from its folder.
fn find_program(spec: &AgentSpec, cwd: &Path) -> Result<Start, CloseReason> {
    let name = spec.command.as_str();
    if let Ok(start) = Start::find(StartedBy::User, name, Some(cwd), &spec.env) {
        return Ok(start);
    }
    let named = cwd.join(name);
    if name.is_empty() {
        let error = "No command is given for this agent. Set `command` in its configuration.".to_owned();
        Err(CloseReason::NotStarted { error, is_missing: true })
    } else if name.contains('/') && named.exists() {
        let error = format!("{} is no program that can be run. Try chmod +x on it.", named.display());
        Err(CloseReason::NotStarted { error, is_missing: false })
    } else if name.contains('/') {
        let error = format!("There is no {}. Correct the path of this agent's command.", named.display());
        Err(CloseReason::NotStarted { error, is_missing: true })
    } else {
        let error = format!("{name} was not found on PATH. Install it, or give its whole path.");
        Err(CloseReason::NotStarted { error, is_missing: true })
    }
}
