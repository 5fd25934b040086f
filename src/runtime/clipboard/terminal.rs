//! Reads the clipboard through the terminal, where parlor cannot access the user's: over SSH, or without a display.
//!
//! The types in the clipboard are listed first, which needs no permission. Then an image or the text is read, and the
//! terminal may ask the user. Source: kitty, Copying all data types to the clipboard (OSC 5522).
//! Invariants: nothing is requested without a key of the user, and only one thing at a time; a response without the random
//! id of the open request is ignored; what is received is bounded, and incomplete data is not used.

use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use uuid::Uuid;

use crate::host::clipboard::{self, Contents};
use crate::host::picture::decode_base64;
use crate::model::SessionKey;

/// Query for paste events (DECRQM); terminals that have them support the protocol.
pub const QUESTION: &str = "\x1b[?5522$p";

/// The images that are read, best first.
const IMAGES: [&str; 4] = ["image/png", "image/jpeg", "image/webp", "image/gif"];
const TEXT: &str = "text/plain";
/// Stands for the list of types.
const LIST: &str = ".";

/// Maximum size of the list, and of an image or text.
const LIST_MAX_BYTES: usize = 64 << 10;
const DATA_MAX_BYTES: usize = 32 << 20;

/// How long the terminal may take for the list.
const LIST_WAIT: Duration = Duration::from_secs(5);
/// How long the user has to answer the terminal's question.
const PERMISSION_WAIT: Duration = Duration::from_secs(30);
/// Maximum time between two packets of data.
const DATA_WAIT: Duration = Duration::from_secs(15);
/// The user is told about the terminal's question if there is no response in this time.
const NOTICE_WAIT: Duration = Duration::from_millis(500);

/// A response of the terminal to a request to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClipboardPacket {
    pub id: String,
    pub status: Status,
    pub mime: String,
    pub data: Vec<u8>,
}

/// The result of a request, or its progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    Ok,
    Data,
    Done,
    /// The request failed; contains a message for the user.
    Failed(&'static str),
    /// A packet of any request that is incomplete, too long, or not valid.
    Broken,
}

impl ClipboardPacket {
    /// A packet that cannot be read.
    pub const BROKEN: Self =
        Self { id: String::new(), status: Status::Broken, mime: String::new(), data: Vec::new() };

    /// Parses `metadata;payload`. `None`: it is not a response to a request to read.
    pub fn parse(body: &[u8]) -> Option<Self> {
        let body = std::str::from_utf8(body).ok()?;
        let (metadata, payload) = body.split_once(';').unwrap_or((body, ""));
        let value = |key: &str| {
            let mut records = metadata.split(':').filter_map(|record| record.split_once('='));
            records.find(|(known, _)| *known == key).map(|(_, value)| value)
        };
        if value("type") != Some("read") {
            return None;
        }
        let (id, status) = (value("id")?.to_owned(), Status::of(value("status")?));
        let mime = decode_base64(value("mime").unwrap_or_default()).map(String::from_utf8);
        let (Some(Ok(mime)), Some(data)) = (mime, decode_base64(payload)) else { return Some(Self::BROKEN) };
        Some(Self { id, status, mime, data })
    }
}

impl Status {
    fn of(word: &str) -> Self {
        match word {
            "OK" => Self::Ok,
            "DATA" => Self::Data,
            "DONE" => Self::Done,
            "EPERM" => Self::Failed(
                "The terminal denied access to its clipboard. Allow it when the terminal asks, or in the terminal's \
                 settings.",
            ),
            "EBUSY" => Self::Failed("The terminal's clipboard is in use. Try again."),
            "ENOSYS" => Self::Failed("The terminal has no clipboard that can be read."),
            _ => Self::Failed("The terminal could not read its clipboard."),
        }
    }
}

#[derive(Debug, Default)]
pub struct TerminalClipboard {
    pub is_supported: bool,
    /// Identifies parlor, so that the user can always allow its requests.
    password: Option<String>,
    request: Option<Request>,
}

#[derive(Debug)]
struct Request {
    session: SessionKey,
    before: Option<String>,
    id: String,
    /// The type that is read; [`LIST`] for the list of types.
    mime: &'static str,
    is_granted: bool,
    data: Vec<u8>,
    deadline: Instant,
    notice_at: Option<Instant>,
}

/// The next step after a response, or after a deadline.
#[derive(Debug)]
pub enum Step {
    Send(String),
    /// Show the notice that the terminal may ask the user.
    Notice,
    /// Deliver the contents, or why there are none, to the draft of the request.
    Done {
        session: SessionKey,
        before: Option<String>,
        contents: Result<Contents, String>,
    },
}

impl TerminalClipboard {
    /// Starts reading for a draft and returns the sequence to send. `before`: the draft before the cursor; `None`: only a
    /// text is read. Fails if another request is open.
    pub fn start(
        &mut self,
        session: SessionKey,
        before: Option<String>,
        now: Instant,
    ) -> Result<String, String> {
        if self.request.is_some() {
            return Err("The terminal has not answered the previous request for its clipboard.".to_owned());
        }
        Ok(self.ask(session, before, LIST, now))
    }

    pub fn take(&mut self, packet: ClipboardPacket, now: Instant) -> Option<Step> {
        let request = self.request.as_mut()?;
        let failure = match packet.status {
            Status::Broken => "The terminal's clipboard was received incompletely. Try again.".to_owned(),
            _ if packet.id != request.id => return None,
            Status::Failed(why) => why.to_owned(),
            Status::Ok => {
                (request.is_granted, request.notice_at) = (true, None);
                request.deadline = now + DATA_WAIT;
                return None;
            }
            _ if !request.is_granted => return None,
            Status::Data => {
                request.deadline = now + DATA_WAIT;
                request.add(packet).err()?
            }
            Status::Done => return self.complete(now),
        };
        self.finish(|_, _| Err(failure))
    }

    /// The time when [`Self::on_deadline`] has to be called.
    pub fn deadline(&self) -> Option<Instant> {
        self.request.as_ref().map(|request| request.notice_at.unwrap_or(request.deadline))
    }

    /// Handles that the terminal has not responded.
    pub fn on_deadline(&mut self, now: Instant) -> Option<Step> {
        let request = self.request.as_mut()?;
        if request.notice_at.take_if(|at| *at <= now).is_some() {
            return Some(Step::Notice);
        }
        if now < request.deadline {
            return None;
        }
        let why = "The terminal did not send its clipboard. Try again, and allow it if the terminal asks.";
        self.finish(|_, _| Err(why.to_owned()))
    }

    fn ask(
        &mut self,
        session: SessionKey,
        before: Option<String>,
        mime: &'static str,
        now: Instant,
    ) -> String {
        let id = Uuid::new_v4().to_string();
        let encode = |text: &str| BASE64_STANDARD.encode(text);
        let (wait, notice_at, name) = if mime == LIST {
            (LIST_WAIT, None, String::new())
        } else {
            let password = self.password.get_or_insert_with(|| Uuid::new_v4().to_string());
            let name = format!(":name={}:pw={}", encode("parlor"), encode(password));
            (PERMISSION_WAIT, Some(now + NOTICE_WAIT), name)
        };
        let sequence = format!("\x1b]5522;type=read:id={id}{name};{}\x1b\\", encode(mime));
        let (is_granted, data, deadline) = (false, Vec::new(), now + wait);
        self.request = Some(Request { session, before, id, mime, is_granted, data, deadline, notice_at });
        sequence
    }

    /// All data was received: reads an image or a text that is in the list, or delivers it.
    fn complete(&mut self, now: Instant) -> Option<Step> {
        let request = self.request.as_ref()?;
        let takes_images = request.before.is_some();
        if request.mime == LIST
            && let Some(mime) = best_type(&request.data, takes_images)
        {
            let Request { session, before, .. } = self.request.take()?;
            return Some(Step::Send(self.ask(session, before, mime, now)));
        }
        self.finish(|mime, data| match mime {
            LIST => clipboard::text_of(String::new(), takes_images),
            TEXT => clipboard::text_of(String::from_utf8_lossy(&data).into_owned(), takes_images),
            _ => Ok(Contents::Encoded(data)),
        })
    }

    fn finish(
        &mut self,
        contents: impl FnOnce(&'static str, Vec<u8>) -> Result<Contents, String>,
    ) -> Option<Step> {
        let Request { session, before, mime, data, .. } = self.request.take()?;
        Some(Step::Done { session, before, contents: contents(mime, data) })
    }
}

impl Request {
    /// Adds data of the requested type. Fails if it is too large.
    fn add(&mut self, packet: ClipboardPacket) -> Result<(), String> {
        let (data, max) = match packet {
            // Some terminals list each type in a packet without data.
            ClipboardPacket { mime, data, .. } if self.mime == LIST && data.is_empty() => {
                (format!("{mime} ").into_bytes(), LIST_MAX_BYTES)
            }
            ClipboardPacket { mime, .. } if mime != self.mime => return Ok(()),
            ClipboardPacket { data, .. } if self.mime == LIST => (data, LIST_MAX_BYTES),
            ClipboardPacket { data, .. } => (data, DATA_MAX_BYTES),
        };
        if self.data.len() + data.len() > max {
            return Err(format!("The clipboard contains more than {} MiB.", DATA_MAX_BYTES >> 20));
        }
        self.data.extend(data);
        Ok(())
    }
}

fn best_type(list: &[u8], takes_images: bool) -> Option<&'static str> {
    let list = String::from_utf8_lossy(list);
    let has = |wanted: &str| list.split_ascii_whitespace().any(|mime| mime == wanted);
    let image = IMAGES.into_iter().find(|mime| takes_images && has(mime));
    let has_text = || {
        let is_text = |mime: &str| mime.starts_with("text/") || matches!(mime, "UTF8_STRING" | "STRING");
        list.split_ascii_whitespace().any(is_text)
    };
    image.or_else(|| has_text().then_some(TEXT))
}

#[cfg(test)]
mod tests;
