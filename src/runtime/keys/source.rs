//! Reads terminal input on Unix.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::termios::{OptionalActions, SpecialCodeIndex};
use tokio::sync::mpsc::Sender;

use super::TtyEvent;
use super::decode::Decoder;

/// Time without input after which no earlier answer is expected.
const QUIET: Duration = Duration::from_millis(30);

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

/// Reads and discards input up to the answer to the query for primary device attributes.
pub fn discard_answers(limit: Duration) {
    let stdin = io::stdin();
    if !rustix::termios::isatty(&stdin) {
        return;
    }
    // The thread that reads keys may still run, so that another read could block after `poll`.
    let is_set = rustix::termios::tcgetattr(&stdin).and_then(|mut modes| {
        modes.special_codes[SpecialCodeIndex::VMIN] = 0;
        modes.special_codes[SpecialCodeIndex::VTIME] = 0;
        rustix::termios::tcsetattr(&stdin, OptionalActions::Now, &modes)
    });
    if is_set.is_err() {
        return;
    }
    let end = Instant::now() + limit;
    let (mut buffer, mut read, mut is_last) = ([0_u8; 1024], Vec::new(), false);
    loop {
        let left = end.saturating_duration_since(Instant::now());
        // An earlier query of this kind may have been answered first.
        let left = if is_last { left.min(QUIET) } else { left };
        let Ok(timeout) = Timespec::try_from(left) else { return };
        match poll(&mut [PollFd::new(&stdin, PollFlags::IN)], Some(&timeout)) {
            Err(Errno::INTR) => {}
            Ok(1..) => match rustix::io::read(&stdin, &mut buffer) {
                Ok(count @ 1..) => read.extend_from_slice(buffer.get(..count).unwrap_or_default()),
                Err(Errno::INTR | Errno::AGAIN) => {}
                _ => return,
            },
            _ => return,
        }
        is_last = has_device_attributes(&read);
    }
}

/// Whether the answer to a query for primary device attributes is in these bytes: `ESC [ ? digits c`.
fn has_device_attributes(bytes: &[u8]) -> bool {
    bytes.split(|byte| *byte == 0x1b).any(|part| {
        let rest = part.strip_prefix(b"[?").unwrap_or_default();
        let end = rest.iter().position(|byte| !byte.is_ascii_digit() && *byte != b';');
        end.is_some_and(|end| rest.get(end) == Some(&b'c'))
    })
}

/// Reads until the receiver or the waker is dropped, which is not an error, or the terminal is closed.
fn read(terminal: &Terminal, waker: &UnixStream, sender: &Sender<io::Result<TtyEvent>>) -> io::Result<()> {
    let mut decoder = Decoder::default();
    let (mut buffer, mut reported) = ([0_u8; 4096], Vec::new());
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
            decoder.give_up(&mut reported);
        } else if !keys.is_empty() {
            match rustix::io::read(terminal, &mut buffer) {
                // The other side of the terminal was closed.
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(read) => {
                    decoder.feed(buffer.get(..read).unwrap_or_default(), Instant::now(), &mut reported);
                }
                Err(Errno::INTR | Errno::AGAIN) => {}
                Err(error) => return Err(error.into()),
            }
        }
        for reported in reported.drain(..) {
            if sender.blocking_send(Ok(reported)).is_err() {
                return Ok(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::has_device_attributes;

    #[test]
    fn the_last_answer_is_recognised_among_others() {
        assert!(has_device_attributes(b"\x1b[?62;4c"));
        assert!(has_device_attributes(b"\x1b]11;rgb:00/00/00\x1b\\\x1b[?2026;2$y\x1b[?1;2c"));
        for other in [&b"\x1b[?2026;2$y"[..], b"\x1b[?62;4", b"\x1b[>1;10;0c", b"c", b""] {
            assert!(!has_device_attributes(other), "{other:?}");
        }
    }
}
