//! Records every message in both directions, before parsing and after writing.
//!
//! A bounded ring holds raw lines for the protocol log view, and a JSONL file is written on request. Secrets are
//! redacted when a line leaves the ring.
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
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use super::lock::lock;

pub use redact::redact;
use ring::Ring;
pub use ring::{Direction, LINE_BYTES};
use sink::Sink;

/// The start of a line of parlor among those of the agent's stderr.
pub const OWN_LINE: &str = "parlor: ";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TapLine {
    /// The number of the line, from 1 without gaps.
    pub sequence: u64,
    /// Time since the tap was created.
    pub at: Duration,
    pub conn: u64,
    pub direction: Direction,
    /// The line, possibly truncated; secrets are redacted, but it is not sanitised.
    pub text: String,
    /// The length of the complete line in bytes.
    pub len_bytes: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TapFilter {
    pub to_agent: bool,
    pub from_agent: bool,
    pub stderr: bool,
    /// Connections; `None`: all.
    pub conns: Option<Vec<u64>>,
    /// Text that the lines contain, ignoring case; empty: all lines.
    pub text: String,
    /// Only lines after this sequence number; 0: all lines.
    pub after: u64,
    /// Maximum number of lines; older ones are omitted.
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

/// A shared ring of raw lines; clones share it.
#[derive(Debug, Clone)]
pub struct Tap {
    /// The connection of the lines that are recorded with this clone.
    conn: u64,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    start: Instant,
    version: AtomicU64,
    ring: Mutex<Ring>,
    has_sink: AtomicBool,
    /// A separate lock, so that a slow disk does not block the log view.
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
    #[must_use]
    pub fn of_conn(&self, conn: u64) -> Self {
        Self { conn, shared: Arc::clone(&self.shared) }
    }

    /// Records a line without its line end.
    pub fn record(&self, direction: Direction, line: &[u8]) {
        // Locked before the sequence number is assigned, so that the lines of the file are in order.
        let sink = self.sink();
        let at = self.shared.start.elapsed();
        let sequence = lock(&self.shared.ring).push(at, self.conn, direction, line);
        self.shared.version.store(sequence, Ordering::Release);
        self.write(sink, |sink| {
            sink.append(sequence, at, self.conn, direction.word(), &String::from_utf8_lossy(line))
        });
    }

    /// Writes to the file only, not to the ring: how a connection begins and why it ends (`acp::log`).
    pub(super) fn mark(&self, word: &str, text: impl FnOnce() -> String) {
        self.write(self.sink(), |sink| {
            sink.append(self.version(), self.shared.start.elapsed(), self.conn, word, &text())
        });
    }

    /// The sequence number of the newest line, 0 before the first one; it changes with every line.
    pub fn version(&self) -> u64 {
        self.shared.version.load(Ordering::Acquire)
    }

    /// The lines that match a filter, oldest first, with secrets redacted.
    pub fn snapshot(&self, filter: &TapFilter) -> Vec<TapLine> {
        let needle = filter.text.to_lowercase();
        // Copied first, so that the lock is not held during the search.
        let copies =
            lock(&self.shared.ring).copy(filter.after, |conn, direction| filter.takes(conn, direction));
        let mut lines: Vec<TapLine> = copies
            .into_iter()
            .rev()
            .map(|(sequence, entry, bytes)| TapLine {
                sequence,
                at: entry.at,
                conn: entry.conn,
                direction: entry.direction,
                text: redact(&String::from_utf8_lossy(&bytes)).into_owned(),
                len_bytes: entry.len_bytes,
            })
            .filter(|line| needle.is_empty() || line.text.to_lowercase().contains(&needle))
            .take(filter.max_lines)
            .collect();
        lines.reverse();
        lines
    }

    /// The lines that this connection's agent has written to stderr after a sequence number, as they were written.
    pub fn stderr_after(&self, after: u64) -> Vec<String> {
        let wants = |conn, direction| conn == self.conn && direction == Direction::Stderr;
        let lines = lock(&self.shared.ring).copy(after, wants).into_iter();
        let lines = lines.map(|(_, _, bytes)| String::from_utf8_lossy(&bytes).into_owned());
        lines.filter(|line| !line.starts_with(OWN_LINE)).collect()
    }

    /// Also appends all further lines to a file that only its owner can read: untruncated, as JSON, without secrets.
    pub fn log_to(&self, path: &Path) -> io::Result<()> {
        let sink = Sink::open(path)?;
        *lock(&self.shared.sink) = Some(sink);
        self.shared.has_sink.store(true, Ordering::Release);
        Ok(())
    }

    pub fn flush(&self) {
        self.write(self.sink(), Sink::flush);
    }

    /// The locked file; cheap without one.
    fn sink(&self) -> Option<MutexGuard<'_, Option<Sink>>> {
        self.shared.has_sink.load(Ordering::Acquire).then(|| lock(&self.shared.sink))
    }

    /// Writes to the file. After an error the file is closed, but the connection continues.
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
