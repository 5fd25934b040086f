//! Runs commands of agents in pseudo terminals.
//!
//! Starts, reads, kills and releases commands ([`TerminalJob`]), and reports their output and end. For the agent, the
//! output is stored as bounded plain text, truncated at the beginning. `app` checks permissions; `ui` draws the output.
//!
//! Invariants: [`Terminals::run`] never blocks; the end is reported exactly once, after the last output and at most
//! half a second after the command itself ended; child processes of a killed command are killed; unread output does not
//! accumulate.

use std::collections::{HashMap, HashSet};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use tokio::sync::mpsc::UnboundedSender;

use crate::model::{
    AskId, ConnId, Raw, RpcError, ServiceEvent, SessionKey, TerminalCommand, TerminalId, TerminalJob,
};

mod backlog;
mod last_lines;
mod live;
mod plain;
mod ring;
mod start;
mod stop;

#[cfg(test)]
mod tests;

use backlog::Backlog;
pub(super) use last_lines::LastLines;
use live::Live;

/// Timeout between TERM and KILL for a single command.
const KILL_GRACE: Duration = Duration::from_secs(1);

/// Timeout between TERM and KILL when parlor exits.
const SHUT_DOWN_GRACE: Duration = Duration::from_millis(500);

/// The number of the next terminal, so that ids are unique in this process.
static NEXT_ID: AtomicU64 = AtomicU64::new(1);

/// All terminals. Cheap to clone; all commands are killed when the last clone is dropped.
#[derive(Debug, Clone)]
pub struct Terminals {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    out: UnboundedSender<ServiceEvent>,
    backlog: Arc<Backlog>,
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    /// Terminals that were not released.
    known: HashMap<TerminalId, Arc<Live>>,
    /// Released terminals with processes that may still be running.
    released: Vec<Arc<Live>>,
    /// Connections that ended, for commands that are being started.
    closed: HashSet<ConnId>,
    /// Number of commands that are being started and not in `known` yet.
    starting: usize,
    is_shut_down: bool,
}

impl Table {
    fn is_wanted(&self, conn: ConnId) -> bool {
        !self.is_shut_down && !self.closed.contains(&conn)
    }
}

impl Terminals {
    /// Creates terminals that report events to `out`.
    pub fn new(out: UnboundedSender<ServiceEvent>) -> Self {
        let table = Mutex::new(Table::default());
        Self { inner: Arc::new(Inner { out, backlog: Arc::default(), table }) }
    }

    /// Executes a job. Never blocks: slow work is done on other threads.
    pub fn run(&self, job: TerminalJob) {
        match job {
            TerminalJob::Create { conn, ask, session, mut command, within } => {
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
                            inner.report(ServiceEvent::TerminalOutside { conn, ask, session, command });
                            return;
                        }
                    }
                    let created = create(&inner, Asked { conn, ask, session }, &command);
                    // The thread of a running command must not keep `Inner` alive, because dropping it kills the
                    // command.
                    drop(inner);
                    if let Some((live, output)) = created {
                        live::read_output(&live, output);
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
                    let event = ServiceEvent::TerminalStarted { conn, ask, session, command: line, result };
                    self.inner.report(event);
                }
            }
            TerminalJob::Output { conn, ask, terminal } => {
                let known = self.inner.table().known.get(&terminal).cloned();
                let result = known.map_or_else(|| Err(unknown(&terminal)), |live| Ok(live.read()));
                self.inner.report(ServiceEvent::TerminalRead { conn, ask, result });
            }
            TerminalJob::Kill(terminal) => {
                if let Some(live) = self.inner.table().known.get(&terminal).cloned() {
                    background(move || stop::kill(&[live], KILL_GRACE));
                }
            }
            TerminalJob::Release(terminal) => self.release(&terminal),
            TerminalJob::ReleaseAll(conn) => self.release_all(conn),
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
        let live = {
            let mut table = self.inner.table();
            let Some(live) = table.known.remove(terminal) else { return };
            table.released.push(Arc::clone(&live));
            live
        };
        let inner = Arc::clone(&self.inner);
        background(move || {
            if live.is_running() {
                stop::kill(&[Arc::clone(&live)], KILL_GRACE);
            }
            if !stop::is_anything_alive(&live) {
                live.let_reap();
                inner.table().released.retain(|other| !Arc::ptr_eq(other, &live));
            }
        });
    }

    fn release_all(&self, conn: ConnId) {
        let lives = {
            let mut table = self.inner.table();
            table.closed.insert(conn);
            let mut lives: Vec<_> = table.released.extract_if(.., |live| live.conn() == conn).collect();
            lives.extend(table.known.extract_if(|_, live| live.conn() == conn).map(|(_, live)| live));
            // Remain in the table until they have ended, for a concurrent shutdown.
            table.released.extend(lives.iter().cloned());
            lives
        };
        if lives.is_empty() {
            return;
        }
        let inner = Arc::clone(&self.inner);
        background(move || {
            stop::kill(&lives, KILL_GRACE);
            for live in &lives {
                live.let_reap();
            }
            inner.table().released.retain(|other| !lives.iter().any(|live| Arc::ptr_eq(live, other)));
        });
    }
}

fn is_in_one_of(real: &Path, roots: &[PathBuf]) -> bool {
    roots.iter().filter_map(|root| root.canonicalize().ok()).any(|root| real.starts_with(root))
}

impl Inner {
    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends an event. The receiver may be dropped when parlor exits.
    fn report(&self, event: ServiceEvent) {
        let _ = self.out.send(event);
    }

    fn shut_down(&self) {
        let lives: Vec<_> = {
            let mut table = self.table();
            table.is_shut_down = true;
            let known: Vec<_> = table.known.drain().map(|(_, live)| live).collect();
            table.released.drain(..).chain(known).collect()
        };
        // A command that is being started is killed by its own thread, which needs some time.
        let deadline = Instant::now() + SHUT_DOWN_GRACE;
        while self.table().starting > 0 && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(1));
        }
        stop::kill(&lives, SHUT_DOWN_GRACE);
        for live in &lives {
            live.let_reap();
        }
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
    ask: AskId,
    session: SessionKey,
}

/// Starts a command and its watcher threads; returns the output that must be read.
fn create(
    inner: &Arc<Inner>,
    asked: Asked,
    command: &TerminalCommand,
) -> Option<(Arc<Live>, Box<dyn Read + Send>)> {
    let Asked { conn, ask, session } = asked;
    let shown = start::line_for_people(command);
    let started =
        |result| ServiceEvent::TerminalStarted { conn, ask, session, command: shown.clone(), result };
    let gone = || {
        let message = "The connection ended before the command was started.";
        Err(RpcError::new(RpcError::CANCELLED, message))
    };
    {
        let mut table = inner.table();
        if !table.is_wanted(conn) {
            drop(table);
            inner.report(started(gone()));
            return None;
        }
        table.starting += 1;
    }
    let running = start::start(command);
    let mut table = inner.table();
    let running = match running {
        Ok(running) => running,
        Err(trouble) => {
            table.starting -= 1;
            drop(table);
            inner.report(started(Err(RpcError::new(RpcError::INTERNAL, trouble.to_string()))));
            return None;
        }
    };
    let id = new_id();
    let live = Arc::new(Live::new(id.clone(), conn, running.leader, command.output_limit_bytes));
    let is_wanted = table.is_wanted(conn);
    if is_wanted {
        table.known.insert(id.clone(), Arc::clone(&live));
    } else {
        // The command is killed here because it is not in the table; before a shutdown continues.
        stop::kill(&[Arc::clone(&live)], Duration::ZERO);
        live.let_reap();
    }
    table.starting -= 1;
    drop(table);
    live::watch_exit(&live);
    if !is_wanted {
        inner.report(started(gone()));
        return None;
    }
    inner.report(started(Ok(id)));
    live::tell_output(&live, inner.out.clone(), Arc::clone(&inner.backlog));
    Some((live, running.output))
}

/// An id that is unique across runs of parlor, because ids are saved with sessions.
fn new_id() -> TerminalId {
    static RUN: LazyLock<u64> = LazyLock::new(|| {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_millis()).unwrap_or_default()
    });
    TerminalId::from(format!("term-{:x}-{}", *RUN, NEXT_ID.fetch_add(1, Ordering::Relaxed)))
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
    let take = |work: &Mutex<Option<_>>| work.lock().unwrap_or_else(PoisonError::into_inner).take();
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
