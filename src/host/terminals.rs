//! Runs commands of agents and of the user in pseudo terminals.
//!
//! Starts, reads, kills and releases commands ([`TerminalJob`]), and reports their output and end. For the agent, the
//! output is stored as bounded plain text, truncated at the beginning. `core` checks permissions; `ui` draws the output.
//!
//! Invariants: [`Terminals::run`] never blocks; the end is reported exactly once, after the last output and at most
//! half a second after the command itself ended; child processes of a killed command are killed; unread output does not
//! accumulate; a released command is reaped, and what its background processes hold is bounded.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, Weak};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use tokio::sync::mpsc::UnboundedSender;

use crate::lock::lock;
use crate::model::{
    ConnId, Raw, RequestId, RpcError, Sandbox, ServiceEvent, SessionKey, TerminalCommand, TerminalId,
    TerminalJob, TerminalSize,
};

mod backlog;
mod drain;
mod last_lines;
mod live;
mod output;
mod plain;
mod responder;
mod ring;
mod shell;
mod start;
mod stop;

#[cfg(test)]
mod tests;

use backlog::Backlog;
use drain::Drain;
pub(super) use last_lines::LastLines;
use live::Live;
use output::Output;
use plain::Plain;
use ring::Ring;
use shell::{Report, ShellState};
use stop::{Background, Processes};

/// Timeout between TERM and KILL for a single command.
const KILL_GRACE: Duration = Duration::from_secs(1);

/// Timeout between TERM and KILL when parlor exits.
const SHUT_DOWN_GRACE: Duration = Duration::from_millis(500);

/// Minimum number of released commands for removing those without processes, which reads `/proc`.
const MIN_SWEPT: usize = 64;

/// The number of the next terminal, so that ids are unique in this process.
static NEXT_ID: AtomicU64 = AtomicU64::new(1);

/// All terminals. Cheap to clone; all commands are killed when the last clone is dropped.
#[derive(Debug, Clone)]
pub struct Terminals {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    shell: PathBuf,
    out: UnboundedSender<ServiceEvent>,
    backlog: Arc<Backlog>,
    drain: Arc<Drain>,
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    /// Terminals that were not released.
    known: HashMap<TerminalId, Arc<Live>>,
    /// Released commands with processes that may still be running.
    released: Vec<Processes>,
    /// Number of released commands at which those without processes are removed.
    sweep_at: usize,
    /// Connections and sessions that ended, for commands that are being started.
    closed: HashSet<Owner>,
    /// What the user's commands of a session have left for the next one.
    shells: HashMap<SessionKey, ShellState>,
    /// Number of commands that are being started and not in `known` yet.
    starting: usize,
    is_shut_down: bool,
}

impl Table {
    fn is_wanted(&self, owner: Owner) -> bool {
        !self.is_shut_down && !self.closed.contains(&owner)
    }
}

/// Whose command it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Owner {
    Agent(ConnId),
    User(SessionKey),
}

impl Terminals {
    /// Creates terminals that report events to `out`.
    pub fn new(out: UnboundedSender<ServiceEvent>) -> Self {
        Self::with_shell(out, start::user_shell())
    }

    fn with_shell(out: UnboundedSender<ServiceEvent>, shell: PathBuf) -> Self {
        let table = Mutex::new(Table::default());
        let (backlog, drain) = (Arc::default(), Arc::default());
        Self { inner: Arc::new(Inner { shell, out, backlog, drain, table }) }
    }

    /// Executes a job. Never blocks: slow work is done on other threads.
    pub fn run(&self, job: TerminalJob) {
        match job {
            TerminalJob::Create {
                conn,
                request_id,
                session,
                mut command,
                within,
                has_input,
                size,
                sandbox,
            } => {
                let inner = Arc::clone(&self.inner);
                let line = start::line_for_people(&command);
                let started = thread::Builder::new().name("terminal".to_owned()).spawn(move || {
                    // A missing folder is reported as a start error.
                    if let Some(roots) = within
                        && let Some(real) = command.cwd.as_ref().and_then(|cwd| cwd.canonicalize().ok())
                    {
                        let is_inside = is_in_one_of(&real, &roots);
                        command.cwd = Some(real);
                        if !is_inside {
                            inner.report(ServiceEvent::TerminalOutside {
                                conn,
                                request_id,
                                session,
                                command,
                            });
                            return;
                        }
                    }
                    let asked = Asked { conn, request_id, session };
                    let created = create(&inner, asked, &command, has_input, size, sandbox.as_deref());
                    // The thread of a running command must not keep `Inner` alive, because dropping it kills the
                    // command.
                    let (drain, backlog) = (Arc::clone(&inner.drain), Arc::clone(&inner.backlog));
                    drop(inner);
                    if let Some((live, output)) = created {
                        live::read_output(live, output, &drain, &backlog);
                    }
                });
                if let Err(error) = started {
                    let result = Err(RpcError::new(
                        RpcError::INTERNAL,
                        format!(
                            "cannot start a thread: \
                         {error}"
                        ),
                    ));
                    let event =
                        ServiceEvent::TerminalStarted { conn, request_id, session, command: line, result };
                    self.inner.report(event);
                }
            }
            TerminalJob::Shell { session, number, line, folder, size } => {
                self.run_shell(session, number, line, folder, size);
            }
            TerminalJob::Resize(terminal, size) => {
                if let Some(live) = self.inner.table().known.get(&terminal) {
                    live.resize(size);
                }
            }
            TerminalJob::Input(terminal, input) => {
                let known = self.inner.table().known.get(&terminal).cloned();
                if known.is_some_and(|live| live.is_running() && !live.type_in(input)) {
                    let message = "The command does not read input.".to_owned();
                    self.inner.report(ServiceEvent::Problem(message));
                }
            }
            TerminalJob::CloseShell(session) => {
                self.inner.table().shells.remove(&session);
                self.release_all(Owner::User(session));
            }
            TerminalJob::Output { conn, request_id, terminal } => {
                let known = self.inner.table().known.get(&terminal).cloned();
                let result = known.map_or_else(|| Err(unknown(&terminal)), |live| Ok(live.read()));
                self.inner.report(ServiceEvent::TerminalRead { conn, request_id, result });
            }
            TerminalJob::Kill(terminal) => {
                if let Some(live) = self.inner.table().known.get(&terminal).cloned() {
                    background(move || stop::kill(&[Processes::Command(live)], KILL_GRACE));
                }
            }
            TerminalJob::Release(terminal) => self.release(&terminal),
            TerminalJob::ReleaseAll(conn) => self.release_all(Owner::Agent(conn)),
        }
    }

    /// Records that `bytes` of [`ServiceEvent::TerminalOutput`] were received, which allows more output to be sent.
    /// Without it, output is throttled after eight megabytes.
    pub fn taken(&self, bytes: usize) {
        self.inner.backlog.taken(bytes);
    }

    /// Kills all commands with their child processes, and prevents new ones. Blocks for about half a second at most.
    /// For the exit of parlor, also after a panic.
    pub fn shut_down(&self) {
        self.inner.shut_down();
    }

    /// Removes a terminal, and kills its command if it is running. Background processes of a command that has ended run
    /// until the connection ends.
    fn release(&self, terminal: &TerminalId) {
        let (live, command) = {
            let mut table = self.inner.table();
            let Some(live) = table.known.remove(terminal) else { return };
            let command = Processes::Command(Arc::clone(&live));
            table.released.push(command.clone());
            (live, command)
        };
        let inner = Arc::clone(&self.inner);
        background(move || {
            if live.is_running() {
                stop::kill(std::slice::from_ref(&command), KILL_GRACE);
            }
            inner.let_go(&live, &command);
            inner.sweep();
        });
    }

    fn run_shell(&self, session: SessionKey, number: u32, line: String, first: PathBuf, size: TerminalSize) {
        let inner = Arc::clone(&self.inner);
        let failed = (line.clone(), first.clone());
        let started = thread::Builder::new().name("terminal".to_owned()).spawn(move || {
            let (folder, changes) = {
                let table = inner.table();
                let left = table.shells.get(&session);
                let folder = left.map_or(first.clone(), |left| left.folder_or(first));
                (folder, left.map(ShellState::changes).unwrap_or_default())
            };
            let tell = |result| ServiceEvent::ShellStarted {
                session,
                number,
                line: line.clone(),
                folder: folder.clone(),
                result,
            };
            let id = TerminalId::of_user(&unique(), number);
            let on_exit = {
                let (inner, folder) = (Arc::downgrade(&inner), folder.clone());
                move |report: Option<Report>| keep_left(&inner, session, report, &folder)
            };
            let start = || {
                let (running, report) = shell::start(&inner.shell, &line, &folder, size, &changes)?;
                Ok((running, Box::new(move || on_exit(report)) as OnExit))
            };
            let created = launch(&inner, Owner::User(session), id, None, start, |result| {
                tell(result.map_err(|error| error.message))
            });
            let (drain, backlog) = (Arc::clone(&inner.drain), Arc::clone(&inner.backlog));
            drop(inner);
            if let Some((live, output)) = created {
                live::read_output(live, output, &drain, &backlog);
            }
        });
        if let Err(error) = started {
            let (line, folder) = failed;
            let result = Err(format!("cannot start a thread: {error}"));
            self.inner.report(ServiceEvent::ShellStarted { session, number, line, folder, result });
        }
    }

    fn release_all(&self, owner: Owner) {
        let ended = {
            let mut table = self.inner.table();
            table.closed.insert(owner);
            let known: Vec<_> =
                table.known.extract_if(|_, live| live.owner() == owner).map(|(_, live)| live).collect();
            // They remain in the table until they have ended, for a concurrent shutdown.
            table.released.extend(known.into_iter().map(Processes::Command));
            let is_of_owner = |released: &&Processes| released.owner() == owner;
            table.released.iter().filter(is_of_owner).cloned().collect::<Vec<_>>()
        };
        if ended.is_empty() {
            return;
        }
        let inner = Arc::clone(&self.inner);
        background(move || {
            stop::kill(&ended, KILL_GRACE);
            ended.iter().for_each(Processes::let_reap);
            inner.table().released.retain(|other| !ended.iter().any(|processes| processes.is_same(other)));
        });
    }
}

/// The end of an output as plain text, and whether its start is missing.
pub(super) fn plain_text(output: &[u8], max_bytes: usize) -> (String, bool) {
    let (mut plain, mut ring) = (Plain::default(), Ring::new(max_bytes));
    plain.feed(output, &mut ring);
    ring.with(&plain.unfinished())
}

fn is_in_one_of(real: &Path, roots: &[PathBuf]) -> bool {
    roots.iter().filter_map(|root| root.canonicalize().ok()).any(|root| real.starts_with(root))
}

impl Inner {
    fn table(&self) -> MutexGuard<'_, Table> {
        lock(&self.table)
    }

    /// Sends an event. The receiver may be dropped when parlor exits.
    fn report(&self, event: ServiceEvent) {
        let _ = self.out.send(event);
    }

    fn shut_down(&self) {
        let ended: Vec<_> = {
            let mut table = self.table();
            table.is_shut_down = true;
            let known: Vec<_> = table.known.drain().map(|(_, live)| Processes::Command(live)).collect();
            table.released.drain(..).chain(known).collect()
        };
        // A command that is being started is killed by its own thread, which needs some time.
        let deadline = Instant::now() + SHUT_DOWN_GRACE;
        while self.table().starting > 0 && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(1));
        }
        stop::kill(&ended, SHUT_DOWN_GRACE);
        ended.iter().for_each(Processes::let_reap);
    }

    /// Reaps a released command. Its background processes are known by themselves from now on.
    fn let_go(&self, live: &Arc<Live>, command: &Processes) {
        let Some(left) = Background::of(live) else { return };
        {
            let mut table = self.table();
            // Those of an ended connection are being killed, which needs the id of the command.
            if !table.is_wanted(live.owner()) {
                return;
            }
            table.released.retain(|other| !other.is_same(command));
            if !left.is_empty() {
                table.released.push(Processes::Left(Arc::new(left)));
            }
        }
        live.let_reap();
    }

    /// Removes released commands without processes whenever their number has doubled.
    fn sweep(&self) {
        let released = {
            let mut table = self.table();
            if table.released.len() < table.sweep_at.max(MIN_SWEPT) {
                return;
            }
            table.sweep_at = usize::MAX;
            table.released.clone()
        };
        let ended: Vec<_> = released.into_iter().filter(|processes| !processes.is_any_alive()).collect();
        ended.iter().for_each(Processes::let_reap);
        let mut table = self.table();
        table.released.retain(|other| !ended.iter().any(|processes| processes.is_same(other)));
        table.sweep_at = table.released.len() * 2;
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.shut_down();
    }
}

/// The origin of a terminal.
#[derive(Debug, Clone, Copy)]
struct Asked {
    conn: ConnId,
    request_id: RequestId,
    session: SessionKey,
}

/// Starts a command of an agent; returns the output that must be read.
fn create(
    inner: &Arc<Inner>,
    asked: Asked,
    command: &TerminalCommand,
    has_input: bool,
    size: TerminalSize,
    sandbox: Option<&Sandbox>,
) -> Option<(Arc<Live>, Output)> {
    let Asked { conn, request_id, session } = asked;
    let shown = start::line_for_people(command);
    let started =
        |result| ServiceEvent::TerminalStarted { conn, request_id, session, command: shown.clone(), result };
    let start = || Ok((start::start(command, has_input, size, sandbox)?, Box::new(|| ()) as OnExit));
    let id = TerminalId::from(format!("term-{}", unique()));
    launch(inner, Owner::Agent(conn), id, command.output_limit_bytes, start, started)
}

/// Called when a command has exited, before its end is reported.
type OnExit = Box<dyn FnOnce() + Send>;

/// Starts a command and its watcher threads; returns the output that must be read.
fn launch(
    inner: &Arc<Inner>,
    owner: Owner,
    id: TerminalId,
    limit_bytes: Option<u64>,
    start: impl FnOnce() -> Result<(start::Running, OnExit), start::StartError>,
    started: impl Fn(Result<TerminalId, RpcError>) -> ServiceEvent,
) -> Option<(Arc<Live>, Output)> {
    let gone = || {
        let message = "The connection ended before the command was started.";
        Err(RpcError::new(RpcError::CANCELLED, message))
    };
    {
        let mut table = inner.table();
        if !table.is_wanted(owner) {
            drop(table);
            inner.report(started(gone()));
            return None;
        }
        table.starting += 1;
    }
    let running = start();
    let mut table = inner.table();
    let (running, on_exit) = match running {
        Ok(running) => running,
        Err(trouble) => {
            table.starting -= 1;
            drop(table);
            inner.report(started(Err(RpcError::new(RpcError::INTERNAL, trouble.to_string()))));
            return None;
        }
    };
    let terminal = (running.terminal, running.reading);
    let live = Arc::new(Live::new(id.clone(), owner, running.leader, terminal, limit_bytes));
    if let Some(input) = running.input {
        live.accept_input(input);
    }
    let is_wanted = table.is_wanted(owner);
    if is_wanted {
        table.known.insert(id.clone(), Arc::clone(&live));
    } else {
        // The command is killed here because it is not in the table; before a shutdown continues.
        stop::kill(&[Processes::Command(Arc::clone(&live))], Duration::ZERO);
        live.let_reap();
    }
    table.starting -= 1;
    drop(table);
    live::watch_exit(&live, on_exit);
    if !is_wanted {
        inner.report(started(gone()));
        return None;
    }
    inner.report(started(Ok(id)));
    live::tell_output(&live, inner.out.clone(), Arc::clone(&inner.backlog));
    Some((live, running.output))
}

/// Stores what a command of the user has left for the next one.
fn keep_left(inner: &Weak<Inner>, session: SessionKey, report: Option<Report>, began_in: &Path) {
    let Some(left) = report.and_then(Report::finish) else { return };
    let Some(inner) = inner.upgrade() else { return };
    let folder = left.folder.clone();
    {
        let mut table = inner.table();
        if !table.is_wanted(Owner::User(session)) {
            return;
        }
        table.shells.entry(session).or_default().apply(left, began_in);
    }
    if folder != began_in {
        inner.report(ServiceEvent::ShellFolder(session, folder));
    }
}

/// The part of an id that is unique across runs of parlor, because ids are saved with sessions.
fn unique() -> String {
    static RUN: LazyLock<u64> = LazyLock::new(|| {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_millis()).unwrap_or_default()
    });
    format!("{:x}-{}", *RUN, NEXT_ID.fetch_add(1, Ordering::Relaxed))
}

fn unknown(terminal: &TerminalId) -> RpcError {
    let known = terminal.as_str().chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    let data = known.then(|| Raw(format!("{{\"terminalId\":\"{terminal}\"}}").into()));
    let message = format!("Unknown terminal {terminal}: released or never created.");
    RpcError { code: RpcError::RESOURCE_NOT_FOUND, message, data }
}

/// Runs slow work on a thread, or directly if no thread can be started.
fn background(work: impl FnOnce() + Send + 'static) {
    let work = Arc::new(Mutex::new(Some(work)));
    let take = |work: &Mutex<Option<_>>| lock(work).take();
    let there = Arc::clone(&work);
    let started = thread::Builder::new().name("terminal stop".to_owned()).spawn(move || {
        if let Some(work) = take(&there) {
            work();
        }
    });
    if started.is_err()
        && let Some(work) = take(&work)
    {
        work();
    }
}
