//! Reads the stderr of an agent.
//!
//! It is read continuously, so that the agent never blocks on it.
//! Invariant: memory and file are bounded; a file that cannot be written is closed.

use std::collections::VecDeque;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncReadExt};

use crate::acp::tap::{Direction, LINE_BYTES, Tap};
use crate::escape;
use crate::host::os::private;
use crate::lock::lock;

const LOG_BYTES: usize = 32 << 20;
const READ_BYTES: usize = 16 << 10;
const TAIL_LINES: usize = 20;
/// Lines that were printed longer before the end do not explain it.
const TAIL_AGE: Duration = Duration::from_secs(10);
const TAIL_LINE_CHARS: usize = 2000;

/// A line, and the time of its last part.
type Line = (Instant, Vec<u8>);

#[derive(Debug, Clone, Default)]
pub struct StderrTail {
    lines: Arc<Mutex<VecDeque<Line>>>,
}

impl StderrTail {
    pub async fn read(self, mut input: impl AsyncRead + Unpin, log: Option<&Path>, tap: Tap) {
        let mut log = log.and_then(|path| Log::open(path, &tap));
        let mut buffer = vec![0; READ_BYTES];
        let mut line = Vec::new();
        while let Ok(count @ 1..) = input.read(&mut buffer).await {
            let bytes = buffer.get(..count).unwrap_or_default();
            self.push(bytes, Instant::now());
            for part in bytes.split_inclusive(|byte| *byte == b'\n') {
                line.extend_from_slice(part);
                if line.ends_with(b"\n") || line.len() >= LINE_BYTES {
                    report(&tap, &mut log, &line);
                    line.clear();
                }
            }
        }
        if !line.is_empty() {
            report(&tap, &mut log, &line);
        }
    }

    pub fn last_lines(&self, now: Instant) -> Vec<String> {
        let is_recent = |(at, _): &&Line| now.saturating_duration_since(*at) <= TAIL_AGE;
        let lines = lock(&self.lines);
        let texts = lines.iter().filter(is_recent).map(|(_, line)| String::from_utf8_lossy(line));
        texts.map(|text| text.trim_end().chars().take(TAIL_LINE_CHARS).collect()).collect()
    }

    fn push(&self, bytes: &[u8], now: Instant) {
        let mut lines = lock(&self.lines);
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            match lines.back_mut() {
                Some((at, line)) if !line.ends_with(b"\n") && line.len() < LINE_BYTES => {
                    *at = now;
                    line.extend_from_slice(part);
                }
                _ if part.trim_ascii().is_empty() => {}
                _ => lines.push_back((now, part.to_vec())),
            }
        }
        let surplus = lines.len().saturating_sub(TAIL_LINES);
        lines.drain(..surplus);
    }
}

/// Writes a line, or a part of a very long one, to the log and the tap.
fn report(tap: &Tap, log: &mut Option<Log>, line: &[u8]) {
    if log.as_mut().is_some_and(|log| !log.append(line)) {
        *log = None;
    }
    if !line.trim_ascii().is_empty() {
        tap.record(Direction::Stderr, line.trim_ascii_end());
    }
}

/// The log file. Writes are not awaited: they go to the system's cache.
struct Log {
    file: File,
    left_bytes: usize,
}

impl Log {
    fn open(path: &Path, tap: &Tap) -> Option<Self> {
        // The first log creates the folder.
        let folder = path.parent().map_or(Ok(()), private::make_own_folder);
        match folder.and_then(|()| private::append(path)) {
            Ok(file) => Some(Self { file, left_bytes: LOG_BYTES }),
            Err(error) => {
                let note = format!("cannot log stderr to {}: {error}", path.display());
                tap.record(Direction::Stderr, note.as_bytes());
                None
            }
        }
    }

    /// Writes a line with escaped control characters, for reading in a terminal; `false` if the log is full or failed.
    fn append(&mut self, line: &[u8]) -> bool {
        let line = String::from_utf8_lossy(line);
        let line = escape::log(&line);
        let bytes = line.as_bytes();
        let bytes = bytes.get(..self.left_bytes).unwrap_or(bytes);
        self.left_bytes -= bytes.len();
        if self.file.write_all(bytes).is_err() {
            return false;
        }
        if self.left_bytes == 0 {
            let _ = self.file.write_all(b"\n[parlor: log full, the rest is omitted]\n");
            return false;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lines_of_the_last_seconds_explain_an_exit() {
        let tail = StderrTail::default();
        let start = Instant::now();
        let at = |seconds: u64| start + Duration::from_secs(seconds);
        tail.push(b"starting\n", start);
        assert_eq!(tail.last_lines(start), ["starting"]);
        tail.push(b"still starting\n", at(9));
        assert_eq!(tail.last_lines(at(9)), ["starting", "still starting"]);
        assert_eq!(tail.last_lines(at(15)), ["still starting"]);
        assert!(tail.last_lines(at(60)).is_empty());
        tail.push(b"fatal: ", at(61));
        tail.push(b"no memory\n", at(61));
        assert_eq!(tail.last_lines(at(62)), ["fatal: no memory"]);
    }
}
