//! Parses server-sent events.
//!
//! Invariants: the events do not depend on how the bytes were split into reads; an event over the limit is skipped
//! and reported; at most one event of maximum size is buffered; an incomplete event at the end of the stream is
//! discarded with its id.
//! Source: HTML Living Standard 9.2, event streams; the protocol's HTTP transport uses `data` and comments.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};

/// Maximum length of names and ids in bytes; longer ones are ignored.
const MAX_FIELD_BYTES: usize = 1 << 10;
/// How many bytes of an oversized event are saved for the report.
const HEAD_BYTES: usize = 4 << 10;
/// Maximum reconnection time that is accepted from the server.
const MAX_RETRY: Duration = Duration::from_secs(60);

/// An event with its name, unless it is the default `message`, and its `data` lines, joined with line feeds; a comment,
/// which servers send as keep-alive; or the head of an event over the limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SseItem {
    Event { name: Option<String>, id: Option<Arc<str>>, data: Bytes },
    Comment,
    Oversize { len_bytes: u64, head: Bytes },
}

#[derive(Debug, Default)]
pub struct SseReader {
    max_bytes: usize,
    line: BytesMut,
    /// Number of bytes that were dropped of an oversized line.
    cut_bytes: u64,
    data: BytesMut,
    has_data: bool,
    oversize_bytes: Option<u64>,
    name: Option<String>,
    /// The id of the incomplete event; without one, that of the previous event.
    id: Option<Arc<str>>,
    own_id: Option<Arc<str>>,
    /// The id of the last complete event, for `Last-Event-ID`.
    pub last_id: Option<Arc<str>>,
    pub retry: Option<Duration>,
    /// Whether the last byte was a carriage return; a line feed after it belongs to the same line end.
    is_after_return: bool,
    is_at_start: bool,
}

impl SseReader {
    pub fn new(max_bytes: usize) -> Self {
        Self { max_bytes, is_at_start: true, ..Self::default() }
    }

    /// Starts a new stream: discards an incomplete event, and preserves the id and the reconnection time.
    pub fn restart(&mut self) {
        let (last_id, retry) = (self.last_id.take(), self.retry);
        *self = Self { id: last_id.clone(), last_id, retry, ..Self::new(self.max_bytes) };
    }

    /// Whether an event within the size limit is incomplete.
    pub fn is_inside(&self) -> bool {
        self.oversize_bytes.is_none() && (self.has_data || self.line.starts_with(b"data"))
    }

    pub fn feed(&mut self, bytes: &Bytes, out: &mut Vec<SseItem>) {
        let mut rest = bytes.as_ref();
        if rest.is_empty() {
            return;
        }
        if std::mem::take(&mut self.is_after_return) && rest.first() == Some(&b'\n') {
            rest.advance(1);
        }
        while let Some(at) = memchr::memchr2(b'\n', b'\r', rest) {
            let (part, after) = rest.split_at(at);
            if let Some(data) = self.whole_data(part).filter(|_| after.starts_with(b"\n\n")) {
                self.dispatch(bytes.slice_ref(data), out);
                rest = after.get(2..).unwrap_or_default();
                continue;
            }
            self.keep(part);
            let is_return = after.first() == Some(&b'\r');
            rest = after.get(1..).unwrap_or_default();
            if is_return {
                if rest.is_empty() {
                    self.is_after_return = true;
                } else if rest.first() == Some(&b'\n') {
                    rest.advance(1);
                }
            }
            self.on_line(out);
        }
        self.keep(rest);
    }

    /// The data of an event that is a single line, which need not be copied.
    fn whole_data<'a>(&self, line: &'a [u8]) -> Option<&'a [u8]> {
        let is_new = self.line.is_empty() && self.cut_bytes == 0 && !self.has_data && !self.is_at_start;
        let data = line.strip_prefix(b"data:").filter(|_| is_new && self.oversize_bytes.is_none())?;
        Some(data.strip_prefix(b" ").unwrap_or(data)).filter(|data| data.len() <= self.max_bytes)
    }

    /// Appends to the incomplete line, up to the limit.
    fn keep(&mut self, part: &[u8]) {
        // The limit is on the data; the field name and colon are extra.
        let room = (self.max_bytes + MAX_FIELD_BYTES).saturating_sub(self.line.len());
        let saved = part.get(..room.min(part.len())).unwrap_or_default();
        self.line.extend_from_slice(saved);
        self.cut_bytes += (part.len() - saved.len()) as u64;
    }

    fn on_line(&mut self, out: &mut Vec<SseItem>) {
        let line = self.line.split().freeze();
        let cut_bytes = std::mem::take(&mut self.cut_bytes);
        let mut line = line.as_ref();
        if std::mem::take(&mut self.is_at_start) {
            line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line);
        }
        if line.is_empty() {
            let data = self.data.split().freeze();
            return self.dispatch(data, out);
        }
        let (field, value) = match memchr::memchr(b':', line) {
            Some(0) => return out.push(SseItem::Comment),
            Some(colon) => {
                let (field, value) = line.split_at(colon);
                let value = value.get(1..).unwrap_or_default();
                (field, value.strip_prefix(b" ").unwrap_or(value))
            }
            None => (line, [].as_slice()),
        };
        match field {
            b"data" => self.on_data(value, cut_bytes),
            b"event" if value.len() <= MAX_FIELD_BYTES => {
                self.name = Some(String::from_utf8_lossy(value).into_owned());
            }
            b"id" if value.len() <= MAX_FIELD_BYTES && !value.contains(&0) => {
                self.id = (!value.is_empty()).then(|| String::from_utf8_lossy(value).into());
                self.own_id.clone_from(&self.id);
            }
            b"retry" if value.iter().all(u8::is_ascii_digit) => {
                if let Ok(pause) = std::str::from_utf8(value).unwrap_or_default().parse() {
                    self.retry = Some(Duration::from_millis(pause).min(MAX_RETRY));
                }
            }
            _ => {}
        }
    }

    fn on_data(&mut self, value: &[u8], cut_bytes: u64) {
        let len_bytes = value.len() as u64 + cut_bytes;
        if let Some(count) = &mut self.oversize_bytes {
            *count += len_bytes + 1;
            return;
        }
        if self.has_data {
            self.data.extend_from_slice(b"\n");
        }
        self.has_data = true;
        if cut_bytes > 0 || self.data.len() + value.len() > self.max_bytes {
            self.oversize_bytes = Some(self.data.len() as u64 + len_bytes);
            let room = HEAD_BYTES.saturating_sub(self.data.len()).min(value.len());
            self.data.extend_from_slice(value.get(..room).unwrap_or_default());
            self.data.truncate(HEAD_BYTES);
            return;
        }
        self.data.extend_from_slice(value);
    }

    fn dispatch(&mut self, data: Bytes, out: &mut Vec<SseItem>) {
        // The id counts only once the event is complete, so that a truncated event is requested again.
        self.last_id.clone_from(&self.id);
        let id = self.own_id.take();
        let name = self.name.take().filter(|name| !name.is_empty() && name != "message");
        self.has_data = false;
        if let Some(len_bytes) = self.oversize_bytes.take() {
            // Copied, so that the memory of the oversized event is freed.
            out.push(SseItem::Oversize { len_bytes, head: Bytes::copy_from_slice(&data) });
        } else if !data.trim_ascii().is_empty() {
            out.push(SseItem::Event { name, id, data });
        }
    }
}

#[cfg(test)]
mod tests;
