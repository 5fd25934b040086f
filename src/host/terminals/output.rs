//! Reads the output of a terminal, until no process holds it open or the reader is stopped.
//!
//! A reader that only blocks in `read` would keep its thread and descriptors as long as a background process holds the
//! terminal open.

use std::fs::File;
use std::io::{self, PipeReader, PipeWriter, Read as _};

use portable_pty::MasterPty;

use crate::host::os::pty;

/// The output of a terminal, and what stops its reader.
pub(super) struct Output {
    terminal: File,
    stop: PipeReader,
}

/// Why there is no more output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// No process holds the terminal open.
    Closed,
    Stopped,
}

impl Output {
    /// The output of a terminal. The reader stops when the returned end of the pipe is dropped.
    pub(super) fn of(terminal: &dyn MasterPty) -> io::Result<(Self, PipeWriter)> {
        let terminal = pty::output_of(terminal)?;
        let (stop, stopper) = io::pipe()?;
        Ok((Self { terminal, stop }, stopper))
    }

    /// Waits for output, and returns its size.
    pub(super) fn read(&mut self, buffer: &mut [u8]) -> Result<usize, End> {
        loop {
            let ready = pty::wait_readable(&self.stop, [&self.terminal]).map_err(|_| End::Closed)?;
            if ready.0 {
                return Err(End::Stopped);
            }
            if ready.1.contains(&true) {
                return read(&mut self.terminal, buffer);
            }
        }
    }

    pub(super) fn into_terminal(self) -> File {
        self.terminal
    }
}

/// Reads a terminal that is ready. An error means that it is closed: Linux reports `EIO`.
pub(super) fn read(terminal: &mut File, buffer: &mut [u8]) -> Result<usize, End> {
    loop {
        match terminal.read(buffer) {
            Ok(0) => return Err(End::Closed),
            Ok(len) => return Ok(len),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return Err(End::Closed),
        }
    }
}
