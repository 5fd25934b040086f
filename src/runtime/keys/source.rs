//! Reads terminal input on a thread.

use std::io::{self, PipeWriter};
use std::time::{Duration, Instant};

use tokio::sync::mpsc::Sender;

use super::TtyEvent;
use super::decode::Decoder;
use crate::host::os::terminal::{Input, Read};

/// Time without input after which no earlier answer is expected.
const QUIET: Duration = Duration::from_millis(30);

/// Starts the thread, which stops when the returned pipe is closed.
pub fn listen(sender: Sender<io::Result<TtyEvent>>) -> io::Result<PipeWriter> {
    let (input, waker) = Input::of_screen()?;
    std::thread::Builder::new().name("keys".to_owned()).spawn(move || {
        if let Err(error) = read(input, &sender) {
            let _ = sender.blocking_send(Err(error));
        }
    })?;
    Ok(waker)
}

/// Reads and discards input up to the answer to the query for primary device attributes.
pub fn discard_answers(limit: Duration) {
    let Some(mut input) = Input::without_waiting() else { return };
    let end = Instant::now() + limit;
    let (mut buffer, mut read, mut is_last) = ([0_u8; 1024], Vec::new(), false);
    loop {
        let left = end.saturating_duration_since(Instant::now());
        // An earlier query of this kind may have been answered first.
        let left = if is_last { left.min(QUIET) } else { left };
        match input.read(&mut buffer, Some(left)) {
            Ok(Read::Bytes(count @ 1..)) => read.extend_from_slice(buffer.get(..count).unwrap_or_default()),
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
fn read(mut input: Input, sender: &Sender<io::Result<TtyEvent>>) -> io::Result<()> {
    let mut decoder = Decoder::default();
    let (mut buffer, mut reported) = ([0_u8; 4096], Vec::new());
    loop {
        let left = decoder.deadline().map(|deadline| deadline.saturating_duration_since(Instant::now()));
        match input.read(&mut buffer, left)? {
            Read::Woken => return Ok(()),
            Read::TimedOut => decoder.give_up(&mut reported),
            Read::Bytes(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Read::Bytes(count) => {
                decoder.feed(buffer.get(..count).unwrap_or_default(), Instant::now(), &mut reported);
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
