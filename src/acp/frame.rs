//! Splits the bytes of an agent into messages.
//!
//! Supports newline-delimited JSON, incoming `Content-Length` frames and arrays of messages; tolerates blank lines,
//! byte order marks, carriage returns and invalid UTF-8, and enforces a size limit.
//! Invariants: the result does not depend on how the bytes were split into reads; a message is a slice of the read
//! buffer unless its UTF-8 was invalid; at most one message of maximum size is buffered; nothing panics.
//! Source: ACP v1 transports, stdio: messages are delimited by newlines and contain none.

pub mod repair;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use bytes::{Buf, Bytes, BytesMut};
use serde::de::{Deserializer, Error, SeqAccess, Visitor};
use serde_json::value::RawValue;

pub const DEFAULT_FRAME_BYTES: usize = 64 << 20;
pub const READ_BYTES: usize = 256 << 10;
const MIN_SPACE_BYTES: usize = 64 << 10;
/// Maximum number of items of an array; a larger one is rejected, because each item costs some hundred bytes of memory.
const MAX_ARRAY_ITEMS: usize = 100_000;
/// How many bytes of an oversized frame are saved for the report.
const HEAD_BYTES: usize = 4 << 10;

/// A message, a line that is not JSON, such as a banner or a log line, or the head of a frame over the size limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InboundFrame {
    Frame(Frame),
    Noise(Bytes),
    Oversize { len_bytes: u64, head: Bytes },
}

impl InboundFrame {
    pub fn len_bytes(&self) -> usize {
        match self {
            Self::Frame(frame) => frame.bytes.len(),
            Self::Noise(bytes) | Self::Oversize { head: bytes, .. } => bytes.len(),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    Line,
    Header,
    Array,
}

/// One message as text, which is not parsed yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    bytes: Bytes,
    /// Whether invalid UTF-8 was replaced.
    pub is_lossy: bool,
    pub form: Form,
    /// The session whose event stream delivered it, over HTTP.
    pub stream: Option<Arc<str>>,
}

impl Frame {
    pub fn new(bytes: Bytes, form: Form) -> Self {
        let is_lossy = std::str::from_utf8(&bytes).is_err();
        let bytes = if is_lossy { String::from_utf8_lossy(&bytes).into_owned().into() } else { bytes };
        Self { bytes, is_lossy, form, stream: None }
    }

    pub fn text(&self) -> &str {
        // Already validated by `new`; validating again is cheap and avoids an unsafe block.
        std::str::from_utf8(&self.bytes).unwrap_or_default()
    }
}

/// Where the reader is: in a line; after a `Content-Length` line, before the blank line; in a body; or in an oversized
/// frame, with the rest of its length, `None`: up to the end of the line.
#[derive(Debug, Default)]
enum State {
    #[default]
    Line,
    Headers {
        length: u64,
        line: Bytes,
    },
    Body {
        length: usize,
    },
    Skip {
        len_bytes: u64,
        left: Option<u64>,
        head: BytesMut,
    },
}

#[derive(Debug, Default)]
pub struct FrameReader {
    buffer: BytesMut,
    /// Length of the prefix of the buffer that contains no line end.
    scanned: usize,
    is_grown: bool,
    state: State,
    max_bytes: usize,
    /// Whether the first message had a header; `None` before it.
    began_with_header: Option<bool>,
}

impl FrameReader {
    pub fn new(max_bytes: usize) -> Self {
        Self { max_bytes, ..Self::default() }
    }

    pub fn space(&mut self) -> &mut BytesMut {
        if self.is_grown && self.buffer.len() < READ_BYTES {
            // Releases the memory of a long line, which `reserve` would not do.
            self.is_grown = false;
            let mut fresh = BytesMut::with_capacity(2 * READ_BYTES);
            fresh.extend_from_slice(&self.buffer);
            self.buffer = fresh;
        }
        if self.buffer.capacity() - self.buffer.len() < MIN_SPACE_BYTES {
            // Growing by half makes the cost of copying proportional to the length of the line.
            self.is_grown |= self.buffer.len() > READ_BYTES;
            self.buffer.reserve(READ_BYTES.max(self.buffer.len() / 2));
        }
        &mut self.buffer
    }

    /// Whether the agent's first message had a header, so that messages to it need one too.
    pub fn began_with_header(&self) -> bool {
        self.began_with_header == Some(true)
    }

    pub fn cut(&mut self, out: &mut Vec<InboundFrame>) {
        while self.step(out) {}
    }

    pub fn finish(&mut self, out: &mut Vec<InboundFrame>) {
        self.cut(out);
        let rest = self.buffer.split().freeze();
        self.scanned = 0;
        match &mut self.state {
            State::Headers { .. } if rest.is_empty() => {}
            State::Line | State::Headers { .. } => self.on_line(&rest, out),
            State::Body { .. } => push_noise(rest, out),
            State::Skip { len_bytes, head, .. } => {
                out.push(InboundFrame::Oversize { len_bytes: *len_bytes, head: head.split().freeze() });
            }
        }
        if let State::Headers { line, .. } = std::mem::take(&mut self.state) {
            out.push(InboundFrame::Noise(line));
        }
    }

    /// Handles the next part of the buffer; returns `false` if it needs more bytes.
    fn step(&mut self, out: &mut Vec<InboundFrame>) -> bool {
        match &mut self.state {
            State::Line | State::Headers { .. } => self.step_line(out),
            State::Body { length } => {
                if self.buffer.len() < *length {
                    return false;
                }
                let body = self.buffer.split_to(*length).freeze();
                self.state = State::Line;
                self.emit(trim(&body), Form::Header, out);
                true
            }
            State::Skip { len_bytes, left, head } => {
                let end = match left {
                    Some(left) => usize::try_from(*left).ok().filter(|left| *left <= self.buffer.len()),
                    None => memchr::memchr(b'\n', &self.buffer),
                };
                let part = self.buffer.split_to(end.unwrap_or(self.buffer.len()));
                *len_bytes += part.len() as u64;
                head.extend(part.iter().take(HEAD_BYTES.saturating_sub(head.len())));
                match left {
                    Some(left) => *left -= part.len() as u64,
                    None if end.is_some() => self.buffer.advance(1),
                    None => {}
                }
                if end.is_none() {
                    return false;
                }
                out.push(InboundFrame::Oversize { len_bytes: *len_bytes, head: head.split().freeze() });
                self.state = State::Line;
                true
            }
        }
    }

    fn step_line(&mut self, out: &mut Vec<InboundFrame>) -> bool {
        let unseen = self.buffer.get(self.scanned..).unwrap_or_default();
        let end = memchr::memchr(b'\n', unseen).map(|at| self.scanned + at);
        let len = end.unwrap_or(self.buffer.len());
        if len > self.max_bytes {
            if let State::Headers { line, .. } = std::mem::take(&mut self.state) {
                out.push(InboundFrame::Noise(line));
            }
            self.scanned = 0;
            self.state = State::Skip { len_bytes: 0, left: None, head: BytesMut::new() };
            return true;
        }
        let Some(end) = end else {
            self.scanned = len;
            return false;
        };
        let line = self.buffer.split_to(end + 1).freeze();
        self.scanned = 0;
        self.on_line(&line, out);
        true
    }

    fn on_line(&mut self, line: &Bytes, out: &mut Vec<InboundFrame>) {
        let line = trim(line);
        if let State::Headers { .. } = self.state {
            self.on_header_line(line, out);
        } else if let Some(length) = content_length(&line) {
            self.state = State::Headers { length, line };
        } else {
            self.emit(line, Form::Line, out);
        }
    }

    fn on_header_line(&mut self, line: Bytes, out: &mut Vec<InboundFrame>) {
        let State::Headers { length, line: first } = std::mem::take(&mut self.state) else {
            return;
        };
        if line.is_empty() {
            self.state = match usize::try_from(length) {
                Ok(length) if length <= self.max_bytes => State::Body { length },
                _ => State::Skip { len_bytes: 0, left: Some(length), head: BytesMut::new() },
            };
        } else if let Some(length) = content_length(&line) {
            self.state = State::Headers { length, line };
        } else if is_header(&line) {
            self.state = State::Headers { length, line: first };
        } else {
            // The line only looked like a header, such as a log line; the message after it must not be lost.
            out.push(InboundFrame::Noise(first));
            self.emit(line, Form::Line, out);
        }
    }

    fn emit(&mut self, bytes: Bytes, form: Form, out: &mut Vec<InboundFrame>) {
        if bytes.starts_with(b"{") {
            self.began_with_header.get_or_insert(form == Form::Header);
        }
        sort(bytes, form, out);
    }
}

/// Classifies a complete message of a transport that delimits messages.
pub fn sort_whole(bytes: &Bytes, out: &mut Vec<InboundFrame>) {
    sort(trim(bytes), Form::Line, out);
}

fn sort(bytes: Bytes, form: Form, out: &mut Vec<InboundFrame>) {
    match bytes.first() {
        Some(b'{') => out.push(InboundFrame::Frame(Frame::new(bytes, form))),
        Some(b'[') if split_array(&bytes, out) => {}
        _ => push_noise(bytes, out),
    }
}

fn push_noise(bytes: Bytes, out: &mut Vec<InboundFrame>) {
    if !bytes.is_empty() {
        out.push(InboundFrame::Noise(bytes));
    }
}

fn trim(line: &Bytes) -> Bytes {
    let text = line.as_ref().trim_ascii();
    let text = text.strip_prefix(b"\xEF\xBB\xBF").map_or(text, <[u8]>::trim_ascii_start);
    if text.is_empty() { Bytes::new() } else { line.slice_ref(text) }
}

fn content_length(line: &[u8]) -> Option<u64> {
    const NAME: &[u8] = b"content-length";
    let (name, value) = line.split_at_checked(NAME.len())?;
    let value = value.strip_prefix(b":")?.trim_ascii();
    if !name.eq_ignore_ascii_case(NAME) || !value.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(value).ok()?.parse().ok()
}

fn is_header(line: &[u8]) -> bool {
    let end = line.iter().position(|byte| !byte.is_ascii_alphanumeric() && *byte != b'-');
    end.is_some_and(|end| end > 0 && line.get(end) == Some(&b':'))
}

/// Appends the items of an array to `out`, all or none (`false`). ACP v1 has no batches, but some agents send them.
fn split_array(bytes: &Bytes, out: &mut Vec<InboundFrame>) -> bool {
    let whole = Frame::new(bytes.clone(), Form::Array);
    let count_before = out.len();
    let whole = match repair::repair(whole.text()) {
        Cow::Borrowed(_) => whole,
        Cow::Owned(text) => Frame { bytes: text.into(), ..whole },
    };
    let mut reader = serde_json::Deserializer::from_str(whole.text());
    let items = Items { whole: &whole, out };
    if reader.deserialize_seq(items).and_then(|()| reader.end()).is_err() {
        out.truncate(count_before);
    }
    out.len() > count_before
}

struct Items<'a> {
    whole: &'a Frame,
    out: &'a mut Vec<InboundFrame>,
}

impl<'de> Visitor<'de> for Items<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of messages")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let mut count = 0;
        while let Some(item) = items.next_element::<&'de RawValue>()? {
            count += 1;
            if count > MAX_ARRAY_ITEMS {
                return Err(Error::custom("too many items"));
            }
            let bytes = self.whole.bytes.slice_ref(item.get().as_bytes());
            self.out.push(InboundFrame::Frame(Frame { bytes, ..self.whole.clone() }));
        }
        Ok(())
    }
}
