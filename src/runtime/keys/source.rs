//! Reads terminal input on Unix.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::UnixStream;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use tokio::sync::mpsc::Sender;

use super::TtyEvent;
use super::decode::Decoder;

/// Stops the thread when dropped.
pub struct Waker {
    _end: UnixStream,
}

enum Terminal {
    Stdin(io::Stdin),
    Device(File),
}

impl AsFd for Terminal {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Stdin(stdin) => stdin.as_fd(),
            Self::Device(file) => file.as_fd(),
        }
    }
}

/// Starts the thread.
pub fn listen(sender: Sender<io::Result<TtyEvent>>) -> io::Result<Waker> {
    let stdin = io::stdin();
    let terminal = if rustix::termios::isatty(&stdin) {
        Terminal::Stdin(stdin)
    } else {
        Terminal::Device(open_terminal()?)
    };
    let (ours, theirs) = UnixStream::pair()?;
    std::thread::Builder::new().name("keys".to_owned()).spawn(move || {
        if let Err(error) = read(&terminal, &theirs, &sender) {
            let _ = sender.blocking_send(Err(error));
        }
    })?;
    Ok(Waker { _end: ours })
}

/// Opens the terminal of the screen by its name, because on macOS `poll` does not support `/dev/tty`.
pub fn open_terminal() -> io::Result<File> {
    let by_name = rustix::termios::ttyname(io::stdout(), Vec::new());
    by_name
        .map_err(io::Error::from)
        .and_then(|name| File::open(OsStr::from_bytes(name.to_bytes())))
        .or_else(|_| File::open("/dev/tty"))
}

/// Reads until the receiver or the waker is dropped, which is not an error, or the terminal is closed.
fn read(terminal: &Terminal, waker: &UnixStream, sender: &Sender<io::Result<TtyEvent>>) -> io::Result<()> {
    let mut decoder = Decoder::default();
    let (mut buffer, mut told) = ([0_u8; 4096], Vec::new());
    loop {
        let mut watched = [PollFd::new(waker, PollFlags::IN), PollFd::new(terminal, PollFlags::IN)];
        let left = decoder.deadline().map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let left = left.and_then(|left| Timespec::try_from(left).ok());
        let count = match poll(&mut watched, left.as_ref()) {
            Err(Errno::INTR) => continue,
            ready => ready?,
        };
        let [waker, keys] = watched.map(|watched| watched.revents());
        // Pending input is left for the next reader.
        if !waker.is_empty() {
            return Ok(());
        }
        if count == 0 {
            decoder.give_up(&mut told);
        } else if !keys.is_empty() {
            match rustix::io::read(terminal, &mut buffer) {
                // The other side of the terminal was closed.
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(read) => {
                    decoder.feed(buffer.get(..read).unwrap_or_default(), Instant::now(), &mut told);
                }
                Err(Errno::INTR | Errno::AGAIN) => {}
                Err(error) => return Err(error.into()),
            }
        }
        for told in told.drain(..) {
            if sender.blocking_send(Ok(told)).is_err() {
                return Ok(());
            }
        }
    }
}
