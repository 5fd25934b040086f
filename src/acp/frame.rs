//! Cuts the bytes of an agent into messages.
//!
//! Supports newline-delimited JSON, incoming `Content-Length` frames and arrays of messages; tolerates blank lines,
//! byte order marks, carriage returns and invalid UTF-8, and enforces a size limit. Bytes are read into
//! [`FrameReader::space`]; [`FrameReader::cut`] returns the messages in order.
//! Invariants: the result does not depend on how the bytes were split into reads; a message is a slice of the read
//! buffer unless its UTF-8 was invalid; at most one message of maximum size is buffered; nothing panics.
//! Source: ACP v1 transports, stdio: messages are delimited by newlines and contain none.

mod array;
#[cfg(test)]
mod tests;

use bytes::{Buf, Bytes, BytesMut};

/// The longest frame that is read unless a connection says otherwise, in bytes.
pub const DEFAULT_FRAME_BYTES: usize = 64 << 20;

/// How much is read at once, in bytes.
pub const READ_BYTES: usize = 256 << 10;

/// Below this much free space the buffer is renewed.
const MIN_SPACE_BYTES: usize = 64 << 10;

/// How much of a frame over the limit is kept.
const HEAD_BYTES: usize = 4 << 10;

/// What the bytes were cut into.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InboundFrame {
    /// A message, or what looks like one.
    Frame(Frame),
    /// A line that is no JSON: a banner, a log line.
    Noise(Bytes),
    /// A frame over the limit; it was skipped.
    Oversize {
        /// Its whole length.
        len_bytes: u64,
        /// How it began.
        head: Bytes,
    },
}

impl InboundFrame {
    /// What it holds.
    pub fn len_bytes(&self) -> usize {
        match self {
            Self::Frame(frame) => frame.bytes.len(),
            Self::Noise(bytes) | Self::Oversize { head: bytes, .. } => bytes.len(),
        }
    }
}

/// How a frame came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// On a line of its own.
    Line,
    /// After a `Content-Length` header.
    Header,
    /// As an item of an array.
    Array,
}

/// One message as text; whether it is JSON is not known yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    bytes: Bytes,
    /// Whether bytes that are no UTF-8 were replaced.
    pub is_lossy: bool,
    /// How it came.
    pub form: Form,
}

impl Frame {
    /// Takes bytes as a frame; bad UTF-8 is replaced and marked.
    pub fn new(bytes: Bytes, form: Form) -> Self {
        if std::str::from_utf8(&bytes).is_ok() {
            return Self { bytes, is_lossy: false, form };
        }
        let text = String::from_utf8_lossy(&bytes).into_owned();
        Self { bytes: Bytes::from(text), is_lossy: true, form }
    }

    /// The text of the message.
    pub fn text(&self) -> &str {
        // Checked by `new`; checking again costs nanoseconds and spares an unsafe block.
        std::str::from_utf8(&self.bytes).unwrap_or_default()
    }
}

/// Where in the stream the reader stands.
#[derive(Debug)]
enum State {
    /// At or in a line.
    Line,
    /// Behind a `Content-Length` line, before the blank line.
    Headers { length: u64, line: Bytes },
    /// In the body of a header frame.
    Body { length: usize },
    /// In a line over the limit.
    SkipLine { len_bytes: u64, head: BytesMut },
    /// In a header frame over the limit.
    SkipBody { len_bytes: u64, left: u64, head: BytesMut },
}

/// Cuts a stream of bytes into pieces.
#[derive(Debug)]
pub struct FrameReader {
    buffer: BytesMut,
    /// How much of the buffer is known to hold no line end.
    scanned: usize,
    /// Whether a long line made the buffer grow.
    is_grown: bool,
    state: State,
    max_bytes: usize,
    /// Whether the first message came with a header; `None` before it.
    began_with_header: Option<bool>,
}

impl FrameReader {
    /// A reader at the start of a stream, for frames of at most `max_bytes`.
    pub fn new(max_bytes: usize) -> Self {
        Self {
            buffer: BytesMut::new(),
            scanned: 0,
            is_grown: false,
            state: State::Line,
            max_bytes,
            began_with_header: None,
        }
    }

    /// Where to append what was read, with room for more.
    pub fn space(&mut self) -> &mut BytesMut {
        if self.is_grown && self.buffer.len() < READ_BYTES {
            // Gives the memory of a long line back; `reserve` would keep it.
            self.is_grown = false;
            let mut fresh = BytesMut::with_capacity(2 * READ_BYTES);
            fresh.extend_from_slice(&self.buffer);
            self.buffer = fresh;
        }
        if self.buffer.capacity() - self.buffer.len() < MIN_SPACE_BYTES {
            // A long line grows the buffer by half, so that copying stays proportional to its length.
            self.is_grown |= self.buffer.len() > READ_BYTES;
            self.buffer.reserve(READ_BYTES.max(self.buffer.len() / 2));
        }
        &mut self.buffer
    }

    /// Whether the agent's first message came with a header: it wants to be written to in the same way.
    pub fn began_with_header(&self) -> bool {
        self.began_with_header == Some(true)
    }

    /// Cuts all that is complete into pieces.
    pub fn cut(&mut self, out: &mut Vec<InboundFrame>) {
        while self.step(out) {}
    }

    /// The stream ended: cuts what is left, whole or not.
    pub fn finish(&mut self, out: &mut Vec<InboundFrame>) {
        self.cut(out);
        let rest = self.buffer.split().freeze();
        self.scanned = 0;
        match std::mem::replace(&mut self.state, State::Line) {
            State::Line => self.on_line(&rest, out),
            State::Headers { length, line } => {
                self.state = State::Headers { length, line };
                if !rest.is_empty() {
                    self.on_line(&rest, out);
                }
            }
            State::Body { .. } => push_noise(rest, out),
            State::SkipLine { len_bytes, head } => {
                out.push(InboundFrame::Oversize { len_bytes, head: head.freeze() });
            }
            State::SkipBody { len_bytes, left, head } => {
                out.push(InboundFrame::Oversize { len_bytes: len_bytes - left, head: head.freeze() });
            }
        }
        if let State::Headers { line, .. } = std::mem::replace(&mut self.state, State::Line) {
            out.push(InboundFrame::Noise(line));
        }
    }

    /// Takes one step through the buffer; false when it needs more bytes.
    fn step(&mut self, out: &mut Vec<InboundFrame>) -> bool {
        match &mut self.state {
            State::Line | State::Headers { .. } => self.step_line(out),
            State::Body { length } => {
                let length = *length;
                if self.buffer.len() < length {
                    return false;
                }
                let body = self.buffer.split_to(length).freeze();
                self.state = State::Line;
                self.emit(trim(&body), Form::Header, out);
                true
            }
            State::SkipLine { len_bytes, head } => {
                let end = memchr::memchr(b'\n', &self.buffer);
                let part = self.buffer.split_to(end.unwrap_or(self.buffer.len()));
                *len_bytes += part.len() as u64;
                keep_head(head, &part);
                if end.is_none() {
                    return false;
                }
                out.push(InboundFrame::Oversize { len_bytes: *len_bytes, head: head.split().freeze() });
                self.buffer.advance(1);
                self.state = State::Line;
                true
            }
            State::SkipBody { len_bytes, left, head } => {
                let count = usize::try_from(*left).unwrap_or(usize::MAX).min(self.buffer.len());
                let part = self.buffer.split_to(count);
                keep_head(head, &part);
                *left -= count as u64;
                if *left > 0 {
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
            if let State::Headers { line, .. } = std::mem::replace(&mut self.state, State::Line) {
                out.push(InboundFrame::Noise(line));
            }
            self.scanned = 0;
            self.state = State::SkipLine { len_bytes: 0, head: BytesMut::new() };
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
        let State::Headers { length, line: first } = std::mem::replace(&mut self.state, State::Line) else {
            return;
        };
        if line.is_empty() {
            self.state = match usize::try_from(length) {
                Ok(length) if length <= self.max_bytes => State::Body { length },
                _ => State::SkipBody { len_bytes: length, left: length, head: BytesMut::new() },
            };
        } else if let Some(length) = content_length(&line) {
            self.state = State::Headers { length, line };
        } else if is_header(&line) {
            self.state = State::Headers { length, line: first };
        } else {
            // It only looked like a header: a log line, say. The message behind it must not be lost.
            out.push(InboundFrame::Noise(first));
            self.emit(line, Form::Line, out);
        }
    }

    fn emit(&mut self, bytes: Bytes, form: Form, out: &mut Vec<InboundFrame>) {
        match bytes.first() {
            Some(b'{') => {
                self.began_with_header.get_or_insert(form == Form::Header);
                out.push(InboundFrame::Frame(Frame::new(bytes, form)));
            }
            Some(b'[') => {
                if !array::split(&bytes, out) {
                    out.push(InboundFrame::Noise(bytes));
                }
            }
            _ => push_noise(bytes, out),
        }
    }
}

/// Sorts a message that came whole, from a carrier that keeps messages apart itself.
pub fn sort_whole(bytes: &Bytes, out: &mut Vec<InboundFrame>) {
    let bytes = trim(bytes);
    match bytes.first() {
        Some(b'{') => out.push(InboundFrame::Frame(Frame::new(bytes, Form::Line))),
        Some(b'[') if array::split(&bytes, out) => {}
        _ => push_noise(bytes, out),
    }
}

fn push_noise(bytes: Bytes, out: &mut Vec<InboundFrame>) {
    if !bytes.is_empty() {
        out.push(InboundFrame::Noise(bytes));
    }
}

/// Lets the kept head of a skipped frame grow up to its limit.
fn keep_head(head: &mut BytesMut, part: &[u8]) {
    let wanted = HEAD_BYTES.saturating_sub(head.len()).min(part.len());
    head.extend_from_slice(part.get(..wanted).unwrap_or_default());
}

/// Without a byte order mark in front and white space around.
fn trim(line: &Bytes) -> Bytes {
    let text = line.as_ref().trim_ascii();
    let text = text.strip_prefix(b"\xEF\xBB\xBF").map_or(text, <[u8]>::trim_ascii_start);
    if text.is_empty() { Bytes::new() } else { line.slice_ref(text) }
}

/// The number of a `Content-Length` line.
fn content_length(line: &[u8]) -> Option<u64> {
    const NAME: &[u8] = b"content-length";
    let (name, value) = line.split_at_checked(NAME.len())?;
    let value = value.strip_prefix(b":")?.trim_ascii();
    if !name.eq_ignore_ascii_case(NAME) || !value.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(value).ok()?.parse().ok()
}

/// Whether a line reads `Name: value`.
fn is_header(line: &[u8]) -> bool {
    memchr::memchr(b':', line).and_then(|colon| line.get(..colon)).is_some_and(|name| {
        !name.is_empty() && name.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-')
    })
}
