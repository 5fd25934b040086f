//! HTTP transport with one POST per message; responses are in the POST, on one event stream, or both.
//!
//! Three kinds of servers use it: with the response in the POST only (`ZeptoClaw`), with a client id and separate
//! paths (`/acp/rpc`, `/acp/sse`), and with one URL for both (`OpenOxide`). If a server without a known stream
//! accepts a request without a response, parlor tries to open a stream.
//! Invariants: a known stream is open before the first message is sent; it is reopened with the same id, unless the
//! server was unreachable: then the connection ends, and the app opens the session again. Each request gets a
//! response: the server's, or an error. A message over the server's limit is not sent.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use reqwest::header::{ACCEPT, HeaderMap};
use reqwest::{Method, Response, StatusCode, Url};
use tokio::sync::{Mutex, OnceCell, watch};
use tokio::time::timeout;

use super::envelope::{self, Envelope};
use super::events::{EventReader, EventStream, Opening, Scope, StreamEnd};
use super::http_context::{Hook, HttpContext, is_events};
use super::http_error::{HttpError, host_of};
use super::outbox::{Inbox, Message, Outbox, Taken, take};
use crate::acp::dialects::StreamUrls;
use crate::acp::dialects::elephant::MAX_BODY_BYTES;
use crate::acp::dialects::zeptoclaw::{self, MAX_PROMPT_BYTES, MAX_REQUEST_BYTES};
use crate::acp::transport::LinkEnd;
use crate::model::{Carrier, Profile};

/// Reserve for the headers in a request to a server with a small limit.
const HEADER_BYTES: usize = 4 << 10;

/// The event stream, once it exists; clones share it.
type Stream = Arc<OnceCell<watch::Receiver<Opening>>>;

#[derive(Debug)]
pub struct Post {
    context: HttpContext,
    pub outbox: Outbox<PostInbox>,
    max_body_bytes: usize,
}

impl Post {
    /// Creates a connection without an event stream; nothing is sent yet.
    pub fn new(context: HttpContext, urls: StreamUrls, profile: Option<Profile>) -> Self {
        let inbox = PostInbox {
            context: context.clone(),
            urls,
            stream: Arc::default(),
            is_small: Arc::new(AtomicBool::new(profile == Some(Profile::ZeptoClaw))),
        };
        let outbox = Outbox::new(context.clone(), inbox, Arc::default());
        Self { context, outbox, max_body_bytes: super::http::MAX_BODY_BYTES }
    }

    /// Creates a connection with an event stream, without which it ends. `first`: the response to a GET that opened it.
    pub fn with_stream(
        context: HttpContext,
        urls: StreamUrls,
        carrier: Carrier,
        first: Option<Response>,
    ) -> Self {
        let mut this = Self::new(context, urls, None);
        let has_client_id = carrier == Carrier::RpcSse;
        if has_client_id {
            this.max_body_bytes = MAX_BODY_BYTES;
        }
        let inbox = &mut this.outbox.inbox;
        let opening = start_stream(&inbox.context, &inbox.urls.events, has_client_id, first);
        inbox.stream = Arc::new(OnceCell::new_with(Some(opening)));
        this
    }

    /// Detects the limits of the server from the response to `initialize`.
    pub fn learn(&self, answer: &str) {
        learn(&self.outbox.inbox.is_small, answer);
    }

    pub async fn send(&mut self, frame: &Bytes) -> Result<(), LinkEnd> {
        let text = String::from_utf8_lossy(frame);
        let Some(envelope) = envelope::read(&text) else { return Ok(()) };
        if let Some(text) = self.too_large(frame, &envelope, &text) {
            return Ok(self.context.unsent(&envelope, &text).await?);
        }
        let message = Message {
            url: self.outbox.inbox.urls.post.clone(),
            headers: HeaderMap::new(),
            frame: frame.clone(),
            envelope,
            lane: None,
            opening: self.outbox.inbox.stream.get().cloned(),
        };
        self.outbox.send(message).await
    }

    /// The error for a message over the limit of the server.
    fn too_large(&self, frame: &Bytes, envelope: &Envelope, text: &str) -> Option<String> {
        let host = host_of(self.outbox.inbox.urls.post.as_str());
        let is_small = self.outbox.inbox.is_small.load(Ordering::Relaxed);
        if is_small && envelope.method == "session/prompt" {
            let bytes = envelope::prompt_text_bytes(text);
            if bytes > MAX_PROMPT_BYTES {
                return Some(format!(
                    "The prompt is {} KiB; the limit of {host} is {} KiB. Shorten it, or refer to files \
                     instead of pasting them.",
                    bytes.div_ceil(1024),
                    MAX_PROMPT_BYTES / 1024
                ));
            }
        }
        let max = if is_small { MAX_REQUEST_BYTES - HEADER_BYTES } else { self.max_body_bytes };
        let shown = if max < 1 << 20 { format!("{} KiB", max >> 10) } else { format!("{} MiB", max >> 20) };
        (frame.len() > max).then(|| {
            format!(
                "The message is {} KiB; the limit of {host} is {shown}. Send less at once.",
                frame.len().div_ceil(1024),
            )
        })
    }
}

#[derive(Debug, Clone)]
pub struct PostInbox {
    context: HttpContext,
    urls: StreamUrls,
    stream: Stream,
    /// Whether the server has the small limits of `ZeptoClaw`.
    is_small: Arc<AtomicBool>,
}

impl Inbox for PostInbox {
    async fn read(&self, response: Response, envelope: Envelope) {
        let url = &self.urls.post;
        if response.status() == StatusCode::NOT_FOUND {
            let token = self.context.client.token_origin();
            let trouble = HttpError::of_status(response, url.as_str(), token).await;
            return self.context.fail(&envelope, trouble.text(), false).await;
        }
        let was_empty = response.content_length() == Some(0) || response.status() == StatusCode::NO_CONTENT;
        let was_stream = is_events(&response);
        let plain = self.context.hook(drop);
        let is_small = Arc::clone(&self.is_small);
        let is_hello = envelope.method == "initialize";
        let hook: Hook = Arc::new(move |text| {
            if is_hello {
                learn(&is_small, text);
            }
            plain(text)
        });
        let is_only_way = !self.stream.initialized();
        let host = host_of(url.as_str());
        let why = match take(&self.context, response, &envelope, &hook, is_only_way).await {
            Err(_) | Ok(Taken::Answer) => return,
            Ok(Taken::Broken(why)) => why,
            Ok(Taken::Nothing) if !is_only_way || was_empty && self.open_stream().await => return,
            Ok(Taken::Nothing) if was_stream => {
                format!("{host} ended its response before it was complete. Try again.")
            }
            Ok(Taken::Nothing) if was_empty => {
                format!("{host} accepted the message but did not respond. Set another `transport`.")
            }
            Ok(Taken::Nothing) => {
                format!("{host} sent a response that does not answer the request. The protocol log shows it.")
            }
        };
        self.context.fail(&envelope, &why, !is_only_way).await;
    }
}

impl PostInbox {
    /// Tries to open an event stream at the same URL, to which the server may send the response.
    async fn open_stream(&self) -> bool {
        let open = || async {
            let response = events_at(&self.context, &self.urls.events).await.ok_or(())?;
            Ok::<_, ()>(start_stream(&self.context, &self.urls.events, false, Some(response)))
        };
        self.stream.get_or_try_init(open).await.is_ok()
    }
}

/// Opens an event stream; `None`: there is none at this URL.
pub async fn events_at(context: &HttpContext, url: &Url) -> Option<Response> {
    let request = context.client.request(Method::GET, url).header(ACCEPT, "text/event-stream");
    // The first event may take long, but not the response headers.
    let answer = timeout(context.timeouts.answer / 6, context.client.send(request, |_| true)).await;
    answer.ok()?.ok().filter(|response| response.status().is_success() && is_events(response))
}

/// Keeps the event stream open; its end is the end of the connection.
fn start_stream(
    context: &HttpContext,
    url: &Url,
    has_keep_alive: bool,
    first: Option<Response>,
) -> watch::Receiver<Opening> {
    let (opening, receiver) = watch::channel(if first.is_some() { Opening::Open } else { Opening::Waiting });
    // A server without keep-alive comments may be silent for any time.
    let idle = has_keep_alive.then_some(context.timeouts.idle);
    let stream = EventStream {
        context: context.clone(),
        url: url.clone(),
        headers: HeaderMap::new(),
        scope: Scope::Everything,
        reader: Arc::new(Mutex::new(EventReader::new(context.inlet.clone(), context.hook(drop), idle))),
        opening,
        first,
    };
    let (context, url) = (context.clone(), url.clone());
    context.clone().spawn(async move {
        let host = host_of(url.as_str());
        let end = match stream.run().await.0 {
            StreamEnd::Gone { was_open: true } => LinkEnd::Io(format!("{host} closed this connection")),
            StreamEnd::Gone { .. } | StreamEnd::None(_) => LinkEnd::Refused(format!(
                "No event stream at {}. Check the URL, or set another `transport` or `events_url`.",
                crate::model::shown_url(url.as_str())
            )),
            StreamEnd::Refused(trouble) | StreamEnd::Lost(trouble) => trouble.into(),
            StreamEnd::ReceiverDropped => return,
        };
        context.end(end);
    });
    receiver
}

fn learn(is_small: &AtomicBool, answer: &str) {
    if zeptoclaw::is_named_in(answer) {
        is_small.store(true, Ordering::Relaxed);
    }
}
