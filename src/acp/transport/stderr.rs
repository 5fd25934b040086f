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

/// The last lines, each with the time of its end.
#[derive(Debug, Clone, Default)]
pub struct StderrTail {
    lines: Arc<Mutex<VecDeque<(Instant, String)>>>,
}

impl StderrTail {
    pub async fn read(self, mut input: impl AsyncRead + Unpin, log: Option<&Path>, tap: Tap) {
        let mut log = log.and_then(|path| Log::open(path, &tap));
        let mut buffer = vec![0; READ_BYTES];
        let mut line = Vec::new();
        loop {
            let count = input.read(&mut buffer).await.unwrap_or(0);
            for part in buffer.get(..count).unwrap_or_default().split_inclusive(|byte| *byte == b'\n') {
                line.extend_from_slice(part);
                if line.ends_with(b"\n") || line.len() >= LINE_BYTES {
                    self.on_line(&mut line, &mut log, &tap);
                }
            }
            if count == 0 {
                return self.on_line(&mut line, &mut log, &tap);
            }
        }
    }

    pub fn last_lines(&self, now: Instant) -> Vec<String> {
        let is_recent = |(at, _): &&(Instant, String)| now.saturating_duration_since(*at) <= TAIL_AGE;
        lock(&self.lines).iter().filter(is_recent).map(|(_, line)| line.clone()).collect()
    }

    /// Takes a line, or a part of a very long one.
    fn on_line(&self, line: &mut Vec<u8>, log: &mut Option<Log>, tap: &Tap) {
        if log.as_mut().is_some_and(|log| !log.append(line)) {
            *log = None;
        }
        let text = line.trim_ascii_end();
        if !text.is_empty() {
            tap.record(Direction::Stderr, text);
            self.push(text, Instant::now());
        }
        line.clear();
    }

    fn push(&self, line: &[u8], now: Instant) {
        let line = String::from_utf8_lossy(line).chars().take(TAIL_LINE_CHARS).collect();
        let mut lines = lock(&self.lines);
        lines.push_back((now, line));
        if lines.len() > TAIL_LINES {
            lines.pop_front();
        }
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
        tail.push(b"starting", start);
        assert_eq!(tail.last_lines(start), ["starting"]);
        tail.push(b"still starting", at(9));
        assert_eq!(tail.last_lines(at(9)), ["starting", "still starting"]);
        assert_eq!(tail.last_lines(at(15)), ["still starting"]);
        assert!(tail.last_lines(at(60)).is_empty());
        tail.push(b"fatal: no memory", at(61));
        assert_eq!(tail.last_lines(at(62)), ["fatal: no memory"]);
    }
}
