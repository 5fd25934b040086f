//! Reads the output of a terminal, until no process holds it open or the reader is stopped.
//!
//! A reader that only blocks in `read` would keep its thread and descriptors as long as a background process holds the
//! terminal open.

use std::fs::File;
use std::io::{self, PipeReader, PipeWriter, Read as _};
use std::os::fd::{AsRawFd, RawFd};

use filedescriptor::{FileDescriptor, POLLIN, poll, pollfd};
use portable_pty::MasterPty;

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

/// The descriptor of a terminal.
struct Raw(RawFd);

impl AsRawFd for Raw {
    fn as_raw_fd(&self) -> RawFd {
        self.0
    }
}

impl Output {
    /// The output of a terminal. The reader stops when the returned end of the pipe is dropped.
    pub(super) fn of(terminal: &dyn MasterPty) -> io::Result<(Self, PipeWriter)> {
        let raw = terminal.as_raw_fd().map(Raw).ok_or(io::ErrorKind::Unsupported)?;
        let terminal = FileDescriptor::dup(&raw).and_then(|file| file.as_file()).map_err(io::Error::other)?;
        let (stop, stopper) = io::pipe()?;
        Ok((Self { terminal, stop }, stopper))
    }

    /// Waits for output, and returns its size.
    pub(super) fn read(&mut self, buffer: &mut [u8]) -> Result<usize, End> {
        loop {
            let [is_stopped, is_ready] = ready([self.stop.as_raw_fd(), self.terminal.as_raw_fd()])?;
            if is_stopped {
                return Err(End::Stopped);
            }
            if is_ready {
                return read(&mut self.terminal, buffer);
            }
        }
    }

    pub(super) fn into_terminal(self) -> File {
        self.terminal
    }
}

/// Waits until one of the descriptors can be read, and returns which ones.
fn ready<const COUNT: usize>(fds: [RawFd; COUNT]) -> Result<[bool; COUNT], End> {
    let mut polled = fds.map(wanted);
    wait(&mut polled).map_err(|_| End::Closed)?;
    Ok(polled.map(is_ready))
}

pub(super) fn wanted(fd: RawFd) -> pollfd {
    pollfd { fd, events: POLLIN, revents: 0 }
}

pub(super) fn is_ready(polled: pollfd) -> bool {
    polled.revents != 0
}

/// Waits until one of the descriptors can be read, or was closed.
pub(super) fn wait(polled: &mut [pollfd]) -> io::Result<()> {
    loop {
        match poll(polled, None) {
            Ok(_) => return Ok(()),
            Err(filedescriptor::Error::Poll(error)) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(io::Error::other(error)),
        }
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
