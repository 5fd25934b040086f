//! The answer in the POST itself.
//!
//! Duty: one request for each message; what comes back in it, as JSON or as an event stream, goes to the peer.
//! A message gets a head start before the next one, for nothing else keeps them in order.
//! Not its duty: messages between turns, which such a server has no way to send.
//! Invariants: each request of ours gets an answer: the server's, or an error of ours if the server's broke off;
//! a message that the server cannot take is not sent.
//! Source: the document of `ZeptoClaw`, streamable HTTP; its limits are those of its listener.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use reqwest::header::HeaderMap;
use reqwest::{Response, StatusCode, Url};
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::desk::{Desk, Unheard, body, is_events};
use super::events::{BodyEnd, EventReader, Hook};
use super::letter::{self, Kind, Letter};
use super::trouble::host_of;
use crate::acp::transport::LinkEnd;
use crate::model::Profile;

/// `ZeptoClaw`: a whole request, with its headers.
const SMALL_REQUEST_BYTES: usize = 118_784;
/// Room for the headers in it.
const HEADER_BYTES: usize = 4 << 10;
/// `ZeptoClaw`: the texts of a prompt.
const SMALL_PROMPT_BYTES: usize = 102_400;
/// Of others nothing is known; this is what the protocol's own server takes.
const MAX_BODY_BYTES: usize = super::http::MAX_BODY_BYTES;

/// A connection of this kind.
#[derive(Debug)]
pub struct Post {
    desk: Desk,
    url: Url,
    /// Whether the server is the one with the small limits.
    is_small: Arc<AtomicBool>,
}

impl Post {
    /// A connection; nothing is sent yet.
    pub fn new(desk: Desk, url: Url, profile: Option<Profile>) -> Self {
        let is_small = Arc::new(AtomicBool::new(profile == Some(Profile::ZeptoClaw)));
        Self { desk, url, is_small }
    }

    /// Learns from the answer to `initialize` whose limits hold.
    pub fn learn(&self, answer: &str) {
        learn(&self.is_small, answer);
    }

    /// Whether the small limits hold, as it is learned.
    pub fn limits(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.is_small)
    }

    /// Sends a message.
    pub async fn send(&mut self, frame: &Bytes) -> Result<(), LinkEnd> {
        let text = String::from_utf8_lossy(frame);
        let Some(letter) = letter::read(&text) else { return Ok(()) };
        if let Some(text) = self.too_large(frame, &letter, &text) {
            return Ok(self.desk.unsent(&letter, &text).await?);
        }
        let (started, has_started) = oneshot::channel();
        let (desk, url, is_small) = (self.desk.clone(), self.url.clone(), Arc::clone(&self.is_small));
        let frame = frame.clone();
        self.desk.spawn(async move {
            let headers = HeaderMap::new();
            let answer = desk.post_once(&url, &headers, &frame, |_| false).await;
            let _ = started.send(());
            let _ = match answer {
                Ok(response) => take(&desk, response, &letter, &is_small).await,
                Err(trouble) => desk.undelivered(&letter, trouble.text()).await,
            };
        });
        let _ = timeout(self.desk.patience.head_start, has_started).await;
        Ok(())
    }

    /// Why a message cannot be sent, if it is too large.
    fn too_large(&self, frame: &Bytes, letter: &Letter, text: &str) -> Option<String> {
        let host = host_of(self.url.as_str());
        let is_small = self.is_small.load(Ordering::Relaxed);
        if is_small && letter.method == "session/prompt" {
            let bytes = letter::prompt_text_bytes(text);
            if bytes > SMALL_PROMPT_BYTES {
                return Some(format!(
                    "The prompt has {} KiB of text, and {host} takes at most {} KiB. Shorten it, or name files instead of pasting them.",
                    bytes.div_ceil(1024),
                    SMALL_PROMPT_BYTES / 1024
                ));
            }
        }
        let most = if is_small { SMALL_REQUEST_BYTES - HEADER_BYTES } else { MAX_BODY_BYTES };
        (frame.len() > most).then(|| {
            format!(
                "The message has {} KiB, and {host} takes at most {} KiB. Send less at once.",
                frame.len().div_ceil(1024),
                most / 1024
            )
        })
    }
}

fn learn(is_small: &AtomicBool, answer: &str) {
    if letter::agent_name(answer).is_some_and(|name| name.to_lowercase().contains("zeptoclaw")) {
        is_small.store(true, Ordering::Relaxed);
    }
}

/// Takes the server's answer in. An error says that nobody listens.
pub async fn take(
    desk: &Desk,
    mut response: Response,
    letter: &Letter,
    is_small: &Arc<AtomicBool>,
) -> Result<(), Unheard> {
    let host = host_of(response.url().as_str());
    let has_answer = Arc::new(AtomicBool::new(letter.kind != Kind::Request));
    let hook: Hook = {
        let (id, has_answer, is_small) = (letter.id.clone(), Arc::clone(&has_answer), Arc::clone(is_small));
        Arc::new(move |text| {
            let answers = |letter: Letter| letter.kind == Kind::Response && letter.id == id;
            if !has_answer.load(Ordering::Relaxed) && letter::read(text).is_some_and(answers) {
                has_answer.store(true, Ordering::Relaxed);
                learn(&is_small, text);
            }
        })
    };
    let mut why = format!("{host} took the message without an answer. Name another `transport`.");
    if is_events(&response) {
        let mut reader = EventReader::new(desk.inlet.clone(), hook, None);
        why = match reader.read(&mut response).await {
            BodyEnd::Unheard => return Err(Unheard),
            BodyEnd::Ended => format!("{host} ended its answer before it was complete. Try again."),
            BodyEnd::Silent | BodyEnd::Broken(_) => {
                format!("The answer of {host} broke off in the middle. Check the network, or try again.")
            }
        };
    } else if response.status() != StatusCode::NO_CONTENT {
        match body(response, desk.inlet.max_bytes).await {
            Ok(body) if !body.trim_ascii().is_empty() => {
                let text = String::from_utf8_lossy(&body).into_owned();
                let body = match (letter::read(&text), &letter.id) {
                    // Which request an error without an id belongs to is plain here.
                    (Some(Letter { kind: Kind::Response, id: None, .. }), Some(id)) => {
                        letter::with_id(&text, id).unwrap_or(body)
                    }
                    _ => body,
                };
                hook(&String::from_utf8_lossy(&body));
                why = format!("{host} answered with something that is no answer. The log shows it.");
                desk.inlet.message(&body).await?;
            }
            Ok(_) => {}
            Err(trouble) => trouble.text().clone_into(&mut why),
        }
    }
    if has_answer.load(Ordering::Relaxed) { Ok(()) } else { desk.undelivered(letter, &why).await }
}
