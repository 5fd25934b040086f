//! Selects lines of a file, with their line ends.
//!
//! Source: ACP v1 file-system: `line` is 1-based, `limit` counts lines. Where the protocol is silent: line 0 is treated
//! as 1; a line after the end or a limit of 0 yields nothing. A line ends with `\n`; a `\r` before it belongs to the
//! line.

use std::io::{self, BufRead};

use cap_std::fs::{File, FileExt as _};

use super::fs_error::FsError;
use super::jobs::Stop;
use crate::host::os::files;

/// Maximum number of bytes before a line, without the holes of a sparse file.
pub(super) const MAX_SKIPPED_BYTES: u64 = 1 << 30;

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

    pub(super) fn at_start(self) -> Self {
        Self { skip: 0, ..self }
    }

    pub(super) fn is_whole(self) -> bool {
        self.skip == 0 && self.take == u64::MAX
    }
}

/// Finds the start of a range in a large file; `None`: the file ends before it, or the range is empty. Reads no more than
/// about `max_skipped` bytes.
pub(super) fn find_line(
    file: &File,
    window: Window,
    max_skipped: u64,
    stop: &Stop,
) -> Result<Option<u64>, FsError> {
    let mut buffer = vec![0; 1 << 16];
    let (mut at, mut lines, mut skipped) = (0, 0, 0);
    if window.take == 0 {
        return Ok(None);
    }
    while lines < window.skip {
        stop.check()?;
        // A hole reads as zeros, which end no line.
        let Some(data) = files::next_data(file, at) else { return Ok(None) };
        at = data;
        let bytes = match file.read_at(&mut buffer, at) {
            Ok(0) => return Ok(None),
            Ok(len) => buffer.get(..len).unwrap_or_default(),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error.into()),
        };
        for end in memchr::memchr_iter(b'\n', bytes) {
            lines += 1;
            if lines == window.skip {
                return Ok(Some(at + end as u64 + 1));
            }
        }
        at += bytes.len() as u64;
        skipped += bytes.len() as u64;
        if skipped > max_skipped {
            return Err(FsError::TooFar);
        }
    }
    Ok(Some(at))
}

/// Reads the range; `None`: larger than `max_bytes`. Memory is bounded by `max_bytes`, independently of the file and
/// its lines.
pub(super) fn read_window(
    mut from: impl BufRead,
    window: Window,
    max_bytes: usize,
) -> io::Result<Option<Vec<u8>>> {
    let mut saved = Vec::new();
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
            if saved.len() + piece.len() > max_bytes {
                return Ok(None);
            }
            saved.extend_from_slice(piece);
        }
        let used = piece.len();
        line += u64::from(stop.is_some());
        from.consume(used);
    }
    Ok(Some(saved))
}
