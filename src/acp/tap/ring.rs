//! A ring buffer of lines.
//!
//! It stores the newest lines up to a number of bytes and of lines, in one byte queue without an allocation per line.
//! Invariant: the lengths of the entries add up to the length of the bytes.

use std::collections::VecDeque;
use std::time::Duration;

/// Maximum bytes of a line in the ring; longer lines are truncated.
pub const LINE_BYTES: usize = 16 << 10;
const MAX_BYTES: usize = 4 << 20;
const MAX_LINES: usize = 4000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    ToAgent,
    FromAgent,
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

#[derive(Debug, Default)]
pub struct Ring {
    entries: VecDeque<Entry>,
    bytes: VecDeque<u8>,
    last_sequence: u64,
}

#[derive(Debug, Clone, Copy)]
pub struct Entry {
    pub at: Duration,
    pub conn: u64,
    pub direction: Direction,
    cached_bytes: usize,
    pub len_bytes: usize,
}

impl Ring {
    /// Appends a line, drops old ones to stay within the limits, and returns the line's sequence number.
    pub fn push(&mut self, at: Duration, conn: u64, direction: Direction, line: &[u8]) -> u64 {
        let saved = line.get(..LINE_BYTES).unwrap_or(line);
        while self.entries.len() >= MAX_LINES || self.bytes.len() + saved.len() > MAX_BYTES {
            let Some(oldest) = self.entries.pop_front() else { break };
            self.bytes.drain(..oldest.cached_bytes.min(self.bytes.len()));
        }
        self.bytes.extend(saved);
        self.entries.push_back(Entry {
            at,
            conn,
            direction,
            cached_bytes: saved.len(),
            len_bytes: line.len(),
        });
        self.last_sequence += 1;
        self.last_sequence
    }

    /// Copies the matching lines after a sequence number, oldest first: number, entry and bytes.
    pub fn copy(&self, after: u64, wants: impl Fn(u64, Direction) -> bool) -> Vec<(u64, Entry, Vec<u8>)> {
        let first = self.last_sequence - self.entries.len() as u64 + 1;
        let mut begin = 0;
        let mut copies = Vec::new();
        for (sequence, entry) in (first..).zip(&self.entries) {
            let end = begin + entry.cached_bytes;
            if sequence > after && wants(entry.conn, entry.direction) {
                copies.push((sequence, *entry, self.slice(begin, end)));
            }
            begin = end;
        }
        copies
    }

    /// Copies a range of the bytes, which are in two slices; joining them would move megabytes under the lock.
    fn slice(&self, begin: usize, end: usize) -> Vec<u8> {
        let (front, back) = self.bytes.as_slices();
        let cut = front.len();
        let mut bytes = Vec::with_capacity(end - begin);
        bytes.extend_from_slice(front.get(begin.min(cut)..end.min(cut)).unwrap_or_default());
        let (begin, end) = (begin.saturating_sub(cut), end.saturating_sub(cut));
        bytes.extend_from_slice(back.get(begin..end).unwrap_or_default());
        bytes
    }
}
