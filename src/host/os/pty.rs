//! Pseudo terminals, as far as `portable_pty` does not have it.

use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, PipeReader};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

use filedescriptor::{FileDescriptor, POLLIN, poll, pollfd};
use portable_pty::MasterPty;
use rustix::fs::OFlags;
use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};

/// An opened terminal does not become parlor's controlling terminal.
const NOT_CONTROLLING: i32 = OFlags::NOCTTY.bits().cast_signed();

/// Restricts a terminal so that it can be opened for writing only; returns whether it can be opened. (Programs of a
/// superuser can still read from it.)
pub fn make_write_only(name: &Path) -> bool {
    let _ = std::fs::set_permissions(name, Permissions::from_mode(0o200));
    OpenOptions::new().write(true).custom_flags(NOT_CONTROLLING).open(name).is_ok()
}

/// Opens a terminal by name, for bytes that it passes on unchanged.
pub fn open_raw(name: &Path) -> io::Result<File> {
    let terminal = OpenOptions::new().read(true).write(true).custom_flags(NOT_CONTROLLING).open(name)?;
    let mut modes = tcgetattr(&terminal)?;
    modes.make_raw();
    tcsetattr(&terminal, OptionalActions::Now, &modes)?;
    Ok(terminal)
}

/// Whether a program reads a line without an echo. A program that reads single keys is not meant: it shows them itself.
pub fn hides_input(terminal: &dyn MasterPty) -> bool {
    terminal.get_termios().is_some_and(|modes| {
        let modes = LocalModes::from_bits_retain(modes.local_flags.bits());
        modes.contains(LocalModes::ICANON) && !modes.contains(LocalModes::ECHO)
    })
}

/// The output of a terminal as a file of its own.
pub fn output_of(terminal: &dyn MasterPty) -> io::Result<File> {
    struct Raw(RawFd);
    impl AsRawFd for Raw {
        fn as_raw_fd(&self) -> RawFd {
            self.0
        }
    }
    let raw = terminal.as_raw_fd().map(Raw).ok_or(io::ErrorKind::Unsupported)?;
    FileDescriptor::dup(&raw).and_then(|file| file.as_file()).map_err(io::Error::other)
}

/// Waits until the pipe or one of the terminals can be read, or was closed. Returns whether the pipe is ready, and
/// which terminals are.
pub fn wait_readable<'t>(
    pipe: &PipeReader,
    terminals: impl IntoIterator<Item = &'t File>,
) -> io::Result<(bool, Vec<bool>)> {
    let wanted = |fd: RawFd| pollfd { fd, events: POLLIN, revents: 0 };
    let mut polled = vec![wanted(pipe.as_raw_fd())];
    polled.extend(terminals.into_iter().map(|terminal| wanted(terminal.as_raw_fd())));
    loop {
        match poll(&mut polled, None) {
            Ok(_) => break,
            Err(filedescriptor::Error::Poll(error)) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(io::Error::other(error)),
        }
    }
    let mut ready = polled.into_iter().map(|polled| polled.revents != 0);
    Ok((ready.next() == Some(true), ready.collect()))
}
