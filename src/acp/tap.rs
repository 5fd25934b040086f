//! Records every message in both directions, before parsing and after writing.
//!
//! A bounded ring holds raw lines for the protocol log view, and a JSONL file is written on request. The tasks of a
//! connection call [`Tap::record`]; [`Tap::snapshot`] returns the lines. Secrets are redacted when a line leaves
//! the ring, for the view and for the file.
//! Invariants: recording copies once, does not allocate once the ring is warm, and waits for the disk only when a
//! file is written; the ring never exceeds its limits.

mod redact;
mod ring;
mod sink;
#[cfg(test)]
mod tests;

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::acp::log::{End, Start};
use crate::model::{AgentSpec, CloseReason};

pub use redact::redact;
use ring::Ring;
use sink::Sink;

/// Of a longer line only this much is kept in the ring, in bytes.
pub const LINE_BYTES: usize = 16 << 10;

/// Which way a line went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    ToAgent,
    FromAgent,
    /// From the agent's stderr.
    Stderr,
}

impl Direction {
    /// The word in the file: `to`, `from`, `stderr`.
    pub fn word(self) -> &'static str {
        match self {
            Self::ToAgent => "to",
            Self::FromAgent => "from",
            Self::Stderr => "stderr",
        }
    }
}

/// A line for the log view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TapLine {
    /// Number of the line, from 1, without gaps.
    pub sequence: u64,
    /// Time since the tap was made.
    pub at: Duration,
    /// The number of its connection.
    pub conn: u64,
    pub direction: Direction,
    /// The line, or how it begins; secrets are hidden, nothing else is cleaned.
    pub text: String,
    /// Its whole length in bytes; more than the text's where the line was cut.
    pub len_bytes: usize,
}

/// Which lines are wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TapFilter {
    /// Lines to the agent.
    pub to_agent: bool,
    /// Lines from the agent.
    pub from_agent: bool,
    /// Lines of its stderr.
    pub stderr: bool,
    /// Only lines of these connections; `None`: of all.
    pub conns: Option<Vec<u64>>,
    /// Only lines that hold this text, in any case; empty: all.
    pub text: String,
    /// Only lines after this sequence number; 0: all.
    pub after: u64,
    /// At most so many, the newest.
    pub max_lines: usize,
}

impl Default for TapFilter {
    fn default() -> Self {
        Self {
            to_agent: true,
            from_agent: true,
            stderr: true,
            conns: None,
            text: String::new(),
            after: 0,
            max_lines: usize::MAX,
        }
    }
}

impl TapFilter {
    fn takes(&self, conn: u64, direction: Direction) -> bool {
        let is_wanted = self.conns.as_ref().is_none_or(|conns| conns.contains(&conn));
        is_wanted
            && match direction {
                Direction::ToAgent => self.to_agent,
                Direction::FromAgent => self.from_agent,
                Direction::Stderr => self.stderr,
            }
    }
}

/// A shared ring of raw lines; a clone is the same tap.
#[derive(Debug, Clone)]
pub struct Tap {
    /// What its lines are marked with.
    conn: u64,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    start: Instant,
    version: AtomicU64,
    ring: Mutex<Ring>,
    has_sink: AtomicBool,
    /// A lock of its own: a slow disk must not hold up the log view.
    sink: Mutex<Option<Sink>>,
}

impl Default for Tap {
    fn default() -> Self {
        Self {
            conn: 0,
            shared: Arc::new(Shared {
                start: Instant::now(),
                version: AtomicU64::new(0),
                ring: Mutex::new(Ring::default()),
                has_sink: AtomicBool::new(false),
                sink: Mutex::new(None),
            }),
        }
    }
}

impl Tap {
    /// The same tap for a connection, whose number its lines are marked with.
    #[must_use]
    pub fn of_conn(&self, conn: u64) -> Self {
        Self { conn, shared: Arc::clone(&self.shared) }
    }

    /// Keeps a line, without its line end.
    pub fn record(&self, direction: Direction, line: &[u8]) {
        // Locked before the line gets its number, so that the lines of the file are in order.
        let sink = self.sink();
        let at = self.shared.start.elapsed();
        let sequence = lock(&self.shared.ring).push(at, self.conn, direction, line);
        self.shared.version.store(sequence, Ordering::Release);
        self.write(sink, |sink| {
            sink.append(sequence, at, self.conn, direction.word(), &String::from_utf8_lossy(line))
        });
    }

    /// Writes to the file, and only there, how messages of this connection are to be decoded.
    pub fn begin(&self, spec: &AgentSpec) {
        self.mark("start", || Start::of(spec).to_json());
    }

    /// Writes to the file, and only there, why this connection ended.
    pub fn end(&self, reason: &CloseReason) {
        self.mark("end", || End::of(reason).to_json());
    }

    fn mark(&self, word: &str, text: impl FnOnce() -> String) {
        self.write(self.sink(), |sink| {
            sink.append(self.version(), self.shared.start.elapsed(), self.conn, word, &text())
        });
    }

    /// Changes with every line: the sequence number of the newest one, 0 before the first.
    pub fn version(&self) -> u64 {
        self.shared.version.load(Ordering::Acquire)
    }

    /// The lines that are wanted, oldest first, with secrets hidden.
    pub fn snapshot(&self, filter: &TapFilter) -> Vec<TapLine> {
        let needle = filter.text.to_lowercase();
        // Copies first, so that the lock is not held while texts are searched.
        let copies =
            lock(&self.shared.ring).copy(filter.after, |conn, direction| filter.takes(conn, direction));
        let mut lines: Vec<TapLine> = copies
            .into_iter()
            .rev()
            .map(|copy| TapLine {
                sequence: copy.sequence,
                at: copy.at,
                conn: copy.conn,
                direction: copy.direction,
                text: redact(&String::from_utf8_lossy(&copy.bytes)).into_owned(),
                len_bytes: copy.len_bytes,
            })
            .filter(|line| needle.is_empty() || line.text.to_lowercase().contains(&needle))
            .take(filter.max_lines)
            .collect();
        lines.reverse();
        lines
    }

    /// Writes all lines from now on to a file too, one JSON object a line, whole, with secrets hidden.
    /// The file is appended to; a new one can be read by its owner only.
    pub fn log_to(&self, path: &Path) -> io::Result<()> {
        let sink = Sink::open(path)?;
        *lock(&self.shared.sink) = Some(sink);
        self.shared.has_sink.store(true, Ordering::Release);
        Ok(())
    }

    /// Brings the file up to date. Cheap when there is none.
    pub fn flush(&self) {
        self.write(self.sink(), Sink::flush);
    }

    /// The file, locked. Cheap when there is none.
    fn sink(&self) -> Option<MutexGuard<'_, Option<Sink>>> {
        self.shared.has_sink.load(Ordering::Acquire).then(|| lock(&self.shared.sink))
    }

    /// A write error closes the file, but not the connection.
    fn write(
        &self,
        sink: Option<MutexGuard<'_, Option<Sink>>>,
        work: impl FnOnce(&mut Sink) -> io::Result<()>,
    ) {
        let Some(mut sink) = sink else { return };
        if let Some(Err(error)) = sink.as_mut().map(work) {
            *sink = None;
            drop(sink);
            self.shared.has_sink.store(false, Ordering::Release);
            let note = format!("protocol log stopped: {error}");
            self.record(Direction::Stderr, note.as_bytes());
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
