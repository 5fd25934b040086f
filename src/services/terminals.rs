//! Runs commands of agents in pseudo terminals.
//!
//! Starts, reads, kills and releases commands ([`TerminalJob`]), and reports their output and end. For the agent,
//! the output is kept as bounded plain text, truncated at the beginning. `app` checks permissions; `ui` draws the
//! output.
//! Invariants: [`Terminals::run`] never blocks; the end is reported exactly once, after the last output and at most
//! half a second after the command itself ended; child processes of a killed command are killed; unread output does
//! not accumulate.

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
mod live;
mod plain;
mod ring;
mod start;
mod stop;

#[cfg(test)]
mod tests;

use backlog::Backlog;
use live::Live;

/// How long commands get between the polite signal and the last one, when they are killed one by one.
const KILL_GRACE: Duration = Duration::from_secs(1);

/// The same when the program ends and someone waits.
const SHUT_DOWN_GRACE: Duration = Duration::from_millis(500);

/// Counts terminals over the life of the process, so that no two share an id.
static NEXT_ID: AtomicU64 = AtomicU64::new(1);

/// All terminals. Cheap to clone; when the last clone goes, all commands are killed.
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
    /// Those that the agents know.
    known: HashMap<TerminalId, Arc<Live>>,
    /// Released ones of which something may still run.
    released: Vec<Arc<Live>>,
    /// Connections that ended, for commands that are just being started.
    closed: HashSet<ConnId>,
    /// How many commands are being started and not in `known` yet.
    starting: usize,
    is_shut_down: bool,
}

impl Table {
    fn is_wanted(&self, conn: ConnId) -> bool {
        !self.is_shut_down && !self.closed.contains(&conn)
    }
}

impl Terminals {
    /// Terminals that tell what happens through `out`.
    pub fn new(out: UnboundedSender<ServiceEvent>) -> Self {
        let table = Mutex::new(Table::default());
        Self { inner: Arc::new(Inner { out, backlog: Arc::default(), table }) }
    }

    /// Does a job. Never blocks: what takes time happens on threads of its own.
    pub fn run(&self, job: TerminalJob) {
        match job {
            TerminalJob::Create { conn, ask, session, mut command, within } => {
                let inner = Arc::clone(&self.inner);
                let line = start::line_for_people(&command);
                let started = thread::Builder::new().name("terminal".to_owned()).spawn(move || {
                    // A folder that is missing cannot be a working directory, and is told as that.
                    if let Some(roots) = within
                        && let Some(real) = command.cwd.as_ref().and_then(|cwd| cwd.canonicalize().ok())
                    {
                        let is_inside = is_in_one_of(&real, &roots);
                        command.cwd = Some(real);
                        if !is_inside {
                            inner.tell(ServiceEvent::TerminalOutside { conn, ask, session, command });
                            return;
                        }
                    }
                    let created = create(&inner, Asked { conn, ask, session }, &command);
                    // A command that runs must not keep the table alive whose end would kill it.
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
                    self.inner.tell(event);
                }
            }
            TerminalJob::Output { conn, ask, terminal } => {
                let known = self.inner.table().known.get(&terminal).cloned();
                let result = known.map_or_else(|| Err(unknown(&terminal)), |live| Ok(live.read()));
                self.inner.tell(ServiceEvent::TerminalRead { conn, ask, result });
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

    /// Tells that so many bytes of [`ServiceEvent::TerminalOutput`] were taken off the queue. Then commands
    /// that write a lot are shown as fast as they are taken; without it they are shown in a trickle once
    /// eight megabytes were told.
    pub fn taken(&self, bytes: usize) {
        self.inner.backlog.taken(bytes);
    }

    /// Kills all commands, with what they started, and starts no more. Blocks for at most about half a
    /// second; at once when nothing runs. For the end of the program, also after a panic.
    pub fn shut_down(&self) {
        self.inner.shut_down();
    }

    /// Forgets a terminal, and kills its command if it runs. What an ended command left running (a server
    /// in the background) lives until the connection ends.
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
            // Kept until they are dead, for a shut-down in the meantime.
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

    /// That nobody listens any more is fine: the program is ending.
    fn tell(&self, event: ServiceEvent) {
        let _ = self.out.send(event);
    }

    fn shut_down(&self) {
        let lives: Vec<_> = {
            let mut table = self.table();
            table.is_shut_down = true;
            let known: Vec<_> = table.known.drain().map(|(_, live)| live).collect();
            table.released.drain(..).chain(known).collect()
        };
        // A command that is just being started is killed by its own thread, which must get to that.
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

/// Who wants a terminal.
#[derive(Debug, Clone, Copy)]
struct Asked {
    conn: ConnId,
    ask: AskId,
    session: SessionKey,
}

/// Starts a command and what watches it; gives back what remains to be read.
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
            inner.tell(started(gone()));
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
            inner.tell(started(Err(RpcError::new(RpcError::INTERNAL, trouble.to_string()))));
            return None;
        }
    };
    let id = new_id();
    let live = Arc::new(Live::new(id.clone(), conn, running.leader, command.output_limit_bytes));
    let is_wanted = table.is_wanted(conn);
    if is_wanted {
        table.known.insert(id.clone(), Arc::clone(&live));
    } else {
        // Nobody knows it, so nobody else would kill it; done before a shut-down goes on.
        stop::kill(&[Arc::clone(&live)], Duration::ZERO);
        live.let_reap();
    }
    table.starting -= 1;
    drop(table);
    live::watch_exit(&live);
    if !is_wanted {
        inner.tell(started(gone()));
        return None;
    }
    inner.tell(started(Ok(id)));
    live::tell_output(&live, inner.out.clone(), Arc::clone(&inner.backlog));
    Some((live, running.output))
}

/// An id that no other run of parlor gives: sessions are kept on disk, with the ids of their terminals.
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

/// Runs something that takes time. Without a thread it is done here: late is better than never.
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
