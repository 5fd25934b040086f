//! Selects lines of a file, with their line ends.
//!
//! Source: ACP v1 file-system: `line` is 1-based, `limit` counts lines. Where the protocol is silent: line 0 is treated
//! as 1; a line after the end or a limit of 0 yields nothing. A line ends with `\n`; a `\r` before it belongs to the
//! line.

use std::io::{self, BufRead};

/// A range of lines.
#[derive(Debug, Clone, Copy)]
pub(super) struct Window {
    skip: u64,
    take: u64,
}

impl Window {
    /// Creates a range; `None` for both: the whole file.
    pub(super) fn new(line: Option<u32>, limit: Option<u32>) -> Self {
        Self { skip: u64::from(line.unwrap_or(1).saturating_sub(1)), take: limit.map_or(u64::MAX, u64::from) }
    }

    pub(super) fn is_whole(self) -> bool {
        self.skip == 0 && self.take == u64::MAX
    }
}

/// Reads the range; `None`: larger than `max_bytes`. Memory is bounded by `max_bytes`, independently of the file and
/// its lines.
pub(super) fn read_window(
    mut from: impl BufRead,
    window: Window,
    max_bytes: usize,
) -> io::Result<Option<Vec<u8>>> {
    let mut kept = Vec::new();
    let mut line = 0_u64;
    let end = window.skip.saturating_add(window.take);
    while line < end {
        let buffer = match from.fill_buf() {
            Ok([]) => break,
            Ok(buffer) => buffer,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let stop = memchr::memchr(b'\n', buffer).map(|at| at + 1);
        let (piece, _) = buffer.split_at(stop.unwrap_or(buffer.len()));
        if line >= window.skip {
            if kept.len() + piece.len() > max_bytes {
                return Ok(None);
            }
            kept.extend_from_slice(piece);
        }
        let used = piece.len();
        line += u64::from(stop.is_some());
        from.consume(used);
    }
    Ok(Some(kept))
}
