//! The user's terminal: its size, its modes, and reading its input with a time limit.

use std::fs::File;
use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::termios::{self, OptionalActions, SpecialCodeIndex, Termios};

use super::files;

/// Size of a terminal, in cells and in pixels. Each is 0 if it is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Size {
    pub cols: u16,
    pub rows: u16,
    pub pixel_width: u16,
    pub pixel_height: u16,
}

/// The size of the terminal on standard output; `None`: it is not a terminal, or has no size.
pub fn size() -> Option<Size> {
    size_of(rustix::stdio::stdout())
}

/// The size of the terminal on standard input.
pub fn input_size() -> Option<Size> {
    size_of(rustix::stdio::stdin())
}

fn size_of(terminal: BorrowedFd<'_>) -> Option<Size> {
    let size = termios::tcgetwinsize(terminal).ok().filter(|size| size.ws_row > 0 && size.ws_col > 0)?;
    Some(Size {
        cols: size.ws_col,
        rows: size.ws_row,
        pixel_width: size.ws_xpixel,
        pixel_height: size.ws_ypixel,
    })
}

/// The modes of the terminal on standard input.
#[derive(Clone)]
pub struct Modes(Termios);

impl Modes {
    /// Fails if standard input is not a terminal.
    pub fn current() -> io::Result<Self> {
        Ok(Self(termios::tcgetattr(io::stdin())?))
    }

    /// Every key is passed on unchanged.
    #[must_use]
    pub fn raw(mut self) -> Self {
        self.0.make_raw();
        self
    }

    #[must_use]
    pub fn without_echo(mut self) -> Self {
        self.0.local_modes.remove(termios::LocalModes::ECHO);
        self
    }

    /// A read without input returns at once.
    #[must_use]
    fn without_waiting(mut self) -> Self {
        self.0.special_codes[SpecialCodeIndex::VMIN] = 0;
        self.0.special_codes[SpecialCodeIndex::VTIME] = 0;
        self
    }

    pub fn apply(&self) -> io::Result<()> {
        Ok(termios::tcsetattr(io::stdin(), OptionalActions::Now, &self.0)?)
    }

    /// Applies the modes, and discards what was typed before.
    pub fn apply_and_flush(&self) -> io::Result<()> {
        Ok(termios::tcsetattr(io::stdin(), OptionalActions::Flush, &self.0)?)
    }
}

/// Reads the input of the terminal.
pub struct Input {
    source: Source,
    woken: Option<PipeReader>,
}

enum Source {
    Stdin(io::Stdin),
    Device(File),
}

impl AsFd for Source {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Stdin(stdin) => stdin.as_fd(),
            Self::Device(file) => file.as_fd(),
        }
    }
}

/// What [`Input::read`] waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Read {
    /// Number of bytes; 0: the other side of the terminal was closed.
    Bytes(usize),
    TimedOut,
    /// The writing end of the pipe was closed. Pending input is left for the next reader.
    Woken,
}

impl Input {
    /// The terminal of the screen: standard input, or if that is none, the terminal itself. Reading ends once the
    /// returned pipe is closed.
    pub fn of_screen() -> io::Result<(Self, PipeWriter)> {
        let stdin = io::stdin();
        let source = if termios::isatty(&stdin) { Source::Stdin(stdin) } else { Source::Device(open()?) };
        let (woken, waker) = io::pipe()?;
        Ok((Self { source, woken: Some(woken) }, waker))
    }

    /// Standard input if it is a terminal. The thread that reads keys may still run, so that another read could block
    /// after `poll`; reads return at once from now on.
    pub fn without_waiting() -> Option<Self> {
        let stdin = io::stdin();
        Modes::current().ok()?.without_waiting().apply().ok()?;
        Some(Self { source: Source::Stdin(stdin), woken: None })
    }

    /// Standard input, of any kind.
    pub fn of_stdin() -> Self {
        Self { source: Source::Stdin(io::stdin()), woken: None }
    }

    /// Waits for input; `None`: without a limit.
    pub fn read(&mut self, buffer: &mut [u8], within: Option<Duration>) -> io::Result<Read> {
        let end = within.map(|within| Instant::now() + within);
        loop {
            let mut watched = vec![PollFd::new(&self.source, PollFlags::IN)];
            watched.extend(self.woken.as_ref().map(|woken| PollFd::new(woken, PollFlags::IN)));
            let left = end.map(|end| end.saturating_duration_since(Instant::now()));
            let limit = left.and_then(|left| Timespec::try_from(left).ok());
            match poll(&mut watched, limit.as_ref()) {
                Err(Errno::INTR) => continue,
                Ok(0) => return Ok(Read::TimedOut),
                ready => drop(ready?),
            }
            if watched.get(1).is_some_and(|woken| !woken.revents().is_empty()) {
                return Ok(Read::Woken);
            }
            match rustix::io::read(&self.source, &mut *buffer) {
                Ok(count) => return Ok(Read::Bytes(count)),
                Err(Errno::INTR | Errno::AGAIN) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// Opens the terminal of the screen by its name, because on macOS `poll` does not support `/dev/tty`.
fn open() -> io::Result<File> {
    let by_name = termios::ttyname(io::stdout(), Vec::new());
    by_name
        .map_err(io::Error::from)
        .and_then(|name| File::open(files::from_bytes(name.to_bytes())))
        .or_else(|_| File::open("/dev/tty"))
}

/// Replaces standard input by the terminal of the screen, so that keys, and programs that parlor starts in the terminal,
/// are not read from a pipe that has ended.
pub fn replace_stdin() -> io::Result<()> {
    Ok(rustix::stdio::dup2_stdin(open()?)?)
}
