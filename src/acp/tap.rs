//! Records every message in both directions, before parsing and after writing.
//!
//! Secrets are redacted when a line leaves the ring, which is for the protocol log view, and in the file.
//! Invariants: recording copies once, does not allocate once the ring is warm, and waits for the disk only when a
//! file is written; the ring never exceeds its limits.

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::escape;
use crate::host::os::private;
use crate::lock::lock;
use crate::redact::redact;

const BUFFER_BYTES: usize = 64 << 10;
/// Maximum bytes of a line in the ring; longer lines are truncated.
pub const LINE_BYTES: usize = 16 << 10;
const MAX_BYTES: usize = 4 << 20;
const MAX_LINES: usize = 4000;
/// The start of a line of parlor among those of the agent's stderr.
pub const OWN_LINE: &str = "parlor: ";

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    ToAgent,
    FromAgent,
    Stderr,
}

impl Direction {
    pub fn word(self) -> &'static str {
        match self {
            Self::ToAgent => "to",
            Self::FromAgent => "from",
            Self::Stderr => "stderr",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TapLine {
    pub at: Duration,
    pub direction: Direction,
    /// The line, possibly truncated; secrets are redacted, but it is not sanitised.
    pub text: String,
}

/// A shared ring of raw lines; clones share it.
#[derive(Debug, Clone)]
pub struct Tap {
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
        let (start, version, ring) = (Instant::now(), AtomicU64::default(), Mutex::default());
        let shared = Shared { start, version, ring, has_sink: AtomicBool::default(), sink: Mutex::default() };
        Self { conn: 0, shared: Arc::new(shared) }
    }
}

type Sink = BufWriter<File>;
type OpenSink<'a> = MutexGuard<'a, Option<Sink>>;

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
            self.append(sink, (sequence, at), direction.word(), &String::from_utf8_lossy(line))
        });
    }

    /// Writes to the file only, not to the ring: how a connection begins and why it ends (`acp::log`).
    pub(super) fn mark(&self, word: &str, text: impl FnOnce() -> String) {
        let now = (self.version(), self.shared.start.elapsed());
        self.write(self.sink(), |sink| self.append(sink, now, word, &text()));
    }

    /// The sequence number of the newest line, 0 before the first one; it changes with every line.
    pub fn version(&self) -> u64 {
        self.shared.version.load(Ordering::Acquire)
    }

    /// The newest lines of these connections (`None`: all), oldest first, with secrets redacted.
    pub fn snapshot(&self, conns: Option<&[u64]>, max_lines: usize) -> Vec<TapLine> {
        let wants = |entry: &Entry| conns.is_none_or(|conns| conns.contains(&entry.conn));
        // Copied first, so that the lock is not held while secrets are redacted.
        let copies = lock(&self.shared.ring).copy(0, wants);
        let surplus = copies.len().saturating_sub(max_lines);
        let line = |(Entry { at, direction, .. }, bytes): (Entry, Vec<u8>)| {
            let text = redact(&String::from_utf8_lossy(&bytes)).into_owned();
            TapLine { at, direction, text }
        };
        copies.into_iter().skip(surplus).map(line).collect()
    }

    /// The lines that this connection's agent has written to stderr after a sequence number, as they were written.
    pub fn stderr_after(&self, after: u64) -> Vec<String> {
        let wants = |entry: &Entry| entry.conn == self.conn && entry.direction == Direction::Stderr;
        let lines = lock(&self.shared.ring).copy(after, wants).into_iter();
        let lines = lines.map(|(_, bytes)| String::from_utf8_lossy(&bytes).into_owned());
        lines.filter(|line| !line.starts_with(OWN_LINE)).collect()
    }

    /// Also appends all further lines to a file that only its owner can read: untruncated, as JSON, without secrets.
    pub fn log_to(&self, path: &Path) -> io::Result<()> {
        let file = BufWriter::with_capacity(BUFFER_BYTES, private::append(path)?);
        *lock(&self.shared.sink) = Some(file);
        self.shared.has_sink.store(true, Ordering::Release);
        Ok(())
    }

    pub fn flush(&self) {
        self.write(self.sink(), io::Write::flush);
    }

    /// Appends a line to the file, in the buffer: the connection flushes after each batch.
    fn append(&self, file: &mut Sink, (n, at): (u64, Duration), dir: &str, text: &str) -> io::Result<()> {
        let ms = (at.as_secs_f64() * 1e6).round() / 1e3;
        let line = Line { n, ms, conn: self.conn, dir: dir.into(), text: redact(text) };
        writeln!(file, "{}", escape::json(&serde_json::to_string(&line)?))
    }

    /// The locked file; cheap without one.
    fn sink(&self) -> Option<OpenSink<'_>> {
        self.shared.has_sink.load(Ordering::Acquire).then(|| lock(&self.shared.sink))
    }

    /// Writes to the file. After an error the file is closed, but the connection continues.
    fn write(&self, sink: Option<OpenSink<'_>>, work: impl FnOnce(&mut Sink) -> io::Result<()>) {
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

/// The newest lines up to a number of bytes and of lines, in one byte queue without an allocation per line. The lengths of
/// the entries add up to the length of the bytes.
#[derive(Debug, Default)]
struct Ring {
    entries: VecDeque<Entry>,
    bytes: VecDeque<u8>,
    last_sequence: u64,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    at: Duration,
    conn: u64,
    direction: Direction,
    len_bytes: usize,
}

impl Ring {
    /// Appends a line, drops old ones to stay within the limits, and returns the line's sequence number.
    fn push(&mut self, at: Duration, conn: u64, direction: Direction, line: &[u8]) -> u64 {
        let saved = line.get(..LINE_BYTES).unwrap_or(line);
        while self.entries.len() >= MAX_LINES || self.bytes.len() + saved.len() > MAX_BYTES {
            let Some(oldest) = self.entries.pop_front() else { break };
            self.bytes.drain(..oldest.len_bytes.min(self.bytes.len()));
        }
        self.bytes.extend(saved);
        self.entries.push_back(Entry { at, conn, direction, len_bytes: saved.len() });
        self.last_sequence += 1;
        self.last_sequence
    }

    /// Copies the matching lines after a sequence number, oldest first.
    fn copy(&self, after: u64, wants: impl Fn(&Entry) -> bool) -> Vec<(Entry, Vec<u8>)> {
        let first = self.last_sequence - self.entries.len() as u64 + 1;
        let mut begin = 0;
        let mut copies = Vec::new();
        for (sequence, entry) in (first..).zip(&self.entries) {
            let end = begin + entry.len_bytes;
            if sequence > after && wants(entry) {
                copies.push((*entry, self.bytes.range(begin..end).copied().collect()));
            }
            begin = end;
        }
        copies
    }
}

/// A line of the log file. `docs/debugging.md` documents the format, and `acp::log` reads it.
#[derive(Serialize, Deserialize)]
pub(super) struct Line<'a> {
    #[serde(default)]
    pub n: u64,
    #[serde(default)]
    pub ms: f64,
    #[serde(default)]
    pub conn: u64,
    pub dir: Cow<'a, str>,
    pub text: Cow<'a, str>,
}
