//! Sends messages, each in its own POST.
//!
//! A server may keep a POST open until the end of a turn, so each message is sent by its own task. In a lane (a
//! session, or the connection) a message is sent when the server has begun to respond to the previous one, or after
//! a delay.
//! Every message that certainly did not arrive is sent again. If that is uncertain, requests fail, because the server
//! would carry them out twice; responses are sent again, and a cancel while its turn is open, before the next prompt.
//! A prompt that has not arrived is dropped when its turn is cancelled, together with the cancel. A cancel that may have
//! overtaken its prompt is sent again.
//! Invariant: the number of open POSTs and their bytes are bounded.

use std::collections::BTreeMap;
use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use bytes::Bytes;
use futures_util::FutureExt as _;
use reqwest::header::HeaderMap;
use reqwest::{Response, StatusCode, Url};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{Instant, sleep, timeout};

use super::backoff::Backoff;
use super::envelope::{self, Envelope, Kind};
use super::events::{BodyEnd, EventReader, Opening};
use super::http_context::{Disconnected, Hook, HttpContext, body, is_events};
use super::http_error::{HttpError, host_of};
use crate::acp::frame::sort_whole;
use crate::acp::transport::LinkEnd;

/// Maximum number of requests with open POSTs; a further one fails.
const MAX_REQUESTS: usize = 64;
/// Maximum number of notifications in open POSTs.
const MAX_NOTICES: u32 = 32;
/// Maximum total size of responses in open POSTs, in KiB; each counts for at least [`MIN_ANSWER_KIB`].
const MAX_ANSWERS_KIB: u32 = 32 << 10;
const MIN_ANSWER_KIB: u32 = 1 << 10;
/// The first message of a session waits for its stream for this fraction of `Timeouts::answer`.
const OPENING_SHARE: u32 = 6;

#[derive(Debug)]
pub struct Message {
    pub url: Url,
    pub headers: HeaderMap,
    pub frame: Bytes,
    pub envelope: Envelope,
    /// The session whose messages are sent in order; `None`: those of the connection.
    pub lane: Option<String>,
    /// The stream that must be open before the message is sent.
    pub opening: Option<watch::Receiver<Opening>>,
}

/// The content of an HTTP response for the request that it belongs to.
#[derive(Debug)]
pub enum Taken {
    /// The response, or it was received elsewhere.
    Answer,
    Nothing,
    /// The body ended early; full sentences.
    Broken(String),
}

pub trait Inbox: Clone + Send + Sync + 'static {
    /// Reads a response with success or 404.
    fn read(&self, response: Response, envelope: Envelope) -> impl Future<Output = ()> + Send;
}

#[derive(Debug, Clone)]
struct Tail {
    has_begun: watch::Receiver<bool>,
    is_followed: Arc<Notify>,
}

/// What a prompt and the cancels of its turn know of each other.
#[derive(Debug, Default)]
struct PromptState {
    /// Whether the server has responded to its POST.
    has_arrived: watch::Sender<bool>,
    /// Whether its turn was cancelled; then it is not sent again.
    is_cancelled: AtomicBool,
    /// Whether it was dropped without being sent.
    is_dropped: AtomicBool,
}

type Prompt = (Envelope, Arc<PromptState>);

#[derive(Debug)]
pub struct Outbox<I> {
    pub inbox: I,
    context: HttpContext,
    /// The version of the protocol, or 0. The response to a prompt ends its turn; in version 2 it only accepts it.
    version: Arc<AtomicU64>,
    lanes: BTreeMap<Option<String>, Tail>,
    /// The prompts of each session without an outcome.
    prompts: BTreeMap<Option<String>, Vec<Prompt>>,
    /// Whether the last cancel of each session has its outcome; a prompt waits for that.
    cancels: BTreeMap<Option<String>, watch::Receiver<bool>>,
    open_requests: Arc<Semaphore>,
    open_notices: Arc<Semaphore>,
    open_answers: Arc<Semaphore>,
}

impl<I: Inbox> Outbox<I> {
    /// Creates an empty outbox. `version`: that of the protocol.
    pub fn new(context: HttpContext, inbox: I, version: Arc<AtomicU64>) -> Self {
        let permits = |count: u32| Arc::new(Semaphore::new(count as usize));
        Self {
            inbox,
            context,
            version,
            lanes: BTreeMap::new(),
            prompts: BTreeMap::new(),
            cancels: BTreeMap::new(),
            open_requests: Arc::new(Semaphore::new(MAX_REQUESTS)),
            open_notices: permits(MAX_NOTICES),
            open_answers: permits(MAX_ANSWERS_KIB),
        }
    }

    /// Expects the response to a request that was already sent, and reads it if it is in the POST.
    pub fn expect(&self, envelope: &Envelope, response: Option<Response>) {
        self.context.requests.add(envelope);
        if let Some(response) = response {
            let (inbox, envelope) = (self.inbox.clone(), envelope.clone());
            self.context.spawn(async move { inbox.read(response, envelope).await });
        }
    }

    /// Sends a message. Waits only while too many notifications or responses are open.
    pub async fn send(&mut self, message: Message) -> Result<(), LinkEnd> {
        let Some(permit) = self.permit(&message).await? else { return Ok(()) };
        self.context.requests.add(&message.envelope);
        let earlier = self.earlier(&message);
        let (begun, has_begun) = watch::channel(false);
        let is_followed = Arc::new(Notify::new());
        if message.envelope.kind != Kind::Response {
            let tail = Tail { has_begun, is_followed: Arc::clone(&is_followed) };
            self.lanes.retain(|_, tail| tail.has_begun.has_changed().is_ok() && !*tail.has_begun.borrow());
            self.lanes.insert(message.lane.clone(), tail);
        }
        let prompts = self.prompts_of(&message);
        let (outcome, cancel) = watch::channel(false);
        self.cancels.retain(|_, cancel| cancel.has_changed().is_ok());
        let session = &message.envelope.session;
        let waits_for = match message.envelope.method.as_str() {
            "session/prompt" => self.cancels.get(session).cloned(),
            "session/cancel" => self.cancels.insert(session.clone(), cancel),
            _ => None,
        };
        let sending = Sending {
            context: self.context.clone(),
            is_response_end: self.version.load(Ordering::Relaxed) != 2,
            message,
            begun,
            is_followed,
            prompts,
            outcome,
            _permit: permit,
        };
        let inbox = self.inbox.clone();
        self.context.spawn(async move {
            for mut tail in earlier {
                tail.is_followed.notify_one();
                let _ = tail.has_begun.wait_for(|has_begun| *has_begun).await;
            }
            if let Some(mut cancel) = waits_for {
                // Without a sender, it has its outcome.
                let _ = cancel.wait_for(|has_outcome| *has_outcome).await;
            }
            if sending.cancels_nothing() {
                return;
            }
            if sending.is_close() {
                // Otherwise a prompt could arrive for a session that does not exist any more.
                sending.prompts_arrived().await;
            }
            if let Some(response) = sending.run().await {
                // Any other response is read first, because it may contain the end of the turn.
                if is_events(&response) {
                    sending.note_arrival();
                }
                inbox.read(response, sending.message.envelope.clone()).await;
                sending.note_arrival();
            }
        });
        Ok(())
    }

    /// The prompt itself, or the prompts that a cancel or the end of a session concerns.
    fn prompts_of(&mut self, message: &Message) -> Vec<Prompt> {
        let method = message.envelope.method.as_str();
        if !matches!(method, "session/prompt" | "session/cancel") && !is_close(method) {
            return Vec::new();
        }
        let requests = &self.context.requests;
        self.prompts.retain(|_, prompts| {
            prompts.retain(|(prompt, _)| requests.is_open(prompt));
            !prompts.is_empty()
        });
        if method == "session/prompt" {
            let own = (message.envelope.clone(), Arc::default());
            self.prompts.entry(message.envelope.session.clone()).or_default().push(own.clone());
            return vec![own];
        }
        let all = self.prompts.get(&message.envelope.session).cloned().unwrap_or_default();
        for (_, state) in &all {
            state.is_cancelled.store(true, Ordering::Relaxed);
        }
        all
    }

    /// Waits until all notifications and responses are sent.
    pub async fn drained(&self) {
        let _ = self.open_notices.acquire_many(MAX_NOTICES).await;
        let _ = self.open_answers.acquire_many(MAX_ANSWERS_KIB).await;
    }

    /// The messages that must be sent before this one.
    fn earlier(&self, message: &Message) -> Vec<Tail> {
        match message.envelope.kind {
            // It refers to a request in any lane.
            _ if message.envelope.method.starts_with("$/") => self.lanes.values().cloned().collect(),
            _ => self.lanes.get(&message.lane).cloned().into_iter().collect(),
        }
    }

    async fn permit(&self, message: &Message) -> Result<Option<OwnedSemaphorePermit>, LinkEnd> {
        let (semaphore, weight) = match message.envelope.kind {
            Kind::Request => {
                if let Ok(permit) = Arc::clone(&self.open_requests).try_acquire_owned() {
                    return Ok(Some(permit));
                }
                let host = host_of(message.url.as_str());
                let text = format!("{MAX_REQUESTS} requests to {host} are unanswered. Wait, or reconnect.");
                self.context.unsent(&message.envelope, &text).await?;
                return Ok(None);
            }
            Kind::Notification => (&self.open_notices, 1),
            Kind::Response => {
                let kib = u32::try_from(message.frame.len() >> 10).unwrap_or(u32::MAX);
                (&self.open_answers, kib.clamp(MIN_ANSWER_KIB, MAX_ANSWERS_KIB))
            }
        };
        Ok(Arc::clone(semaphore).acquire_many_owned(weight).await.ok())
    }
}

pub fn is_close(method: &str) -> bool {
    matches!(method, "session/close" | "session/delete")
}

struct Sending {
    context: HttpContext,
    is_response_end: bool,
    message: Message,
    begun: watch::Sender<bool>,
    is_followed: Arc<Notify>,
    /// See `Outbox::prompts_of`.
    prompts: Vec<Prompt>,
    /// Whether the message has its outcome; it has when this is dropped.
    outcome: watch::Sender<bool>,
    _permit: OwnedSemaphorePermit,
}

impl Sending {
    /// Whether it is the cancel of a turn. In version 2 of the protocol, the turn may have no open prompt.
    fn is_cancel(&self) -> bool {
        self.message.envelope.method == "session/cancel"
    }

    fn is_close(&self) -> bool {
        is_close(&self.message.envelope.method)
    }

    /// The state of the prompt, if it is one.
    fn own(&self) -> Option<&PromptState> {
        let own = self.prompts.first().filter(|_| self.message.envelope.method == "session/prompt");
        own.map(|(_, state)| &**state)
    }

    /// Whether it cancels only turns whose prompts were not sent.
    fn cancels_nothing(&self) -> bool {
        self.is_cancel()
            && !self.prompts.is_empty()
            && self.prompts.iter().all(|(_, prompt)| prompt.is_dropped.load(Ordering::Relaxed))
    }

    /// Waits until the turns that it cancels have ended; never returns if that is unknown, and for other messages.
    async fn turns_ended(&self) {
        if !self.is_cancel() || self.prompts.is_empty() || !self.is_response_end {
            pending::<()>().await;
        }
        for (prompt, _) in &self.prompts {
            self.context.requests.closed(prompt).await;
        }
    }

    /// Records that the server has received a prompt.
    fn note_arrival(&self) {
        if let Some(prompt) = self.own() {
            prompt.has_arrived.send_replace(true);
        }
    }

    /// Whether it cancels a turn whose prompt may arrive after it.
    fn may_be_early(&self) -> bool {
        let is_open =
            |(prompt, state): &Prompt| !*state.has_arrived.borrow() && self.context.requests.is_open(prompt);
        self.is_cancel() && self.prompts.iter().any(is_open)
    }

    /// Waits until an early cancel can be sent again. False if its turns end before that.
    async fn prompts_arrived(&self) -> bool {
        let arrived = async {
            for (prompt, state) in &self.prompts {
                let mut has_arrived = state.has_arrived.subscribe();
                tokio::select! {
                    biased;
                    // The sender is not dropped.
                    _ = has_arrived.wait_for(|has_arrived| *has_arrived) => {}
                    () = self.context.requests.closed(prompt) => {}
                }
            }
        };
        tokio::select! {
            biased;
            () = self.turns_ended() => false,
            () = arrived => true,
        }
    }

    /// Gives up a prompt that has not arrived and whose turn was cancelled. Returns whether it did.
    async fn was_withdrawn(&self) -> bool {
        let Some(prompt) = self.own().filter(|prompt| prompt.is_cancelled.load(Ordering::Relaxed)) else {
            return false;
        };
        prompt.is_dropped.store(true, Ordering::Relaxed);
        let why = "The prompt was cancelled before it could be sent.";
        self.context.fail(&self.message.envelope, why, false).await;
        true
    }

    /// Sends it, and again if it may be. Returns the response to read.
    async fn run(&self) -> Option<Response> {
        if !self.is_stream_ready().await {
            return None;
        }
        let mut backoff = Backoff::new(self.context.timeouts);
        let mut interruption = None;
        loop {
            let may_be_early = self.may_be_early();
            let trouble = match self.post().await? {
                Ok(_) if may_be_early && self.prompts_arrived().await => continue,
                Ok(response) => return Some(response),
                Err(trouble) => trouble,
            };
            if !matches!(trouble, HttpError::Network { is_unsent: true, .. }) {
                self.begun.send_replace(true);
            }
            if !self.may_repeat(&trouble) {
                // A rejection is the outcome; after a network failure, the end of the connection may say more.
                let has_stream =
                    self.message.opening.is_some() && matches!(trouble, HttpError::Network { .. });
                self.context.fail(&self.message.envelope, trouble.text(), has_stream).await;
                return None;
            }
            if self.turns_ended().now_or_never().is_some() {
                return None;
            }
            let Some(pause) = backoff.failed(Instant::now(), trouble.retry_after()) else {
                self.context.end(LinkEnd::Unreachable(trouble.text().to_owned()));
                return None;
            };
            if interruption.is_none() {
                let text = format!("A message could not be sent; retrying. {}", trouble.text());
                self.context.inlet.note(text).await.ok()?;
                interruption = Some(self.context.interrupted());
            }
            tokio::select! {
                biased;
                () = self.context.pause(pause) => {}
                () = self.turns_ended() => return None,
            }
            if self.was_withdrawn().await {
                return None;
            }
        }
    }

    /// Whether it may be sent again: it certainly did not arrive, or changes nothing if it arrives twice.
    fn may_repeat(&self, trouble: &HttpError) -> bool {
        match trouble {
            HttpError::Network { is_unsent: true, .. } => true,
            _ if self.message.envelope.kind != Kind::Response && !self.is_cancel() => false,
            trouble => matches!(trouble, HttpError::Network { .. }) || trouble.is_denied(),
        }
    }

    /// Waits until the stream is open that must be open first. A message is sent before the stream of a new session is
    /// open if that takes long or another message follows, which may be a cancel. False if the message is not sent.
    async fn is_stream_ready(&self) -> bool {
        let Some(mut opening) = self.message.opening.clone() else { return true };
        let is_reopening = *opening.borrow() == Opening::Reopening;
        if is_reopening && self.message.envelope.kind == Kind::Request {
            loop {
                tokio::select! {
                    biased;
                    () = self.is_followed.notified() => if self.was_withdrawn().await { return false },
                    () = is_past(&mut opening, Opening::Reopening) => break,
                }
            }
        } else {
            tokio::select! {
                biased;
                () = self.is_followed.notified() => {}
                _ = timeout(
                    self.context.timeouts.answer / OPENING_SHARE,
                    is_past(&mut opening, Opening::Waiting),
                ) => {}
            }
        }
        let opening = *opening.borrow();
        if opening == Opening::Lost && self.message.envelope.kind == Kind::Request {
            if !self.context.requests.on_failure(&self.message.envelope) {
                return false;
            }
            let text = format!(
                "{} did not open the event stream of the session. Check the server, or reconnect.",
                host_of(self.message.url.as_str())
            );
            // If the receiver was dropped, the connection ends.
            let _ = self.context.unsent(&self.message.envelope, &text).await;
            return false;
        }
        opening != Opening::Failed
    }

    /// Sends the message once. `None`: its outcome was received elsewhere while the server kept the POST open.
    async fn post(&self) -> Option<Result<Response, HttpError>> {
        let Message { url, headers, frame, envelope, .. } = &self.message;
        let timeouts = self.context.timeouts;
        let sending = self.context.post_once(url, headers, frame, |status| status == StatusCode::NOT_FOUND);
        let head_start = sleep(timeouts.head_start);
        let given_up = async {
            if envelope.kind == Kind::Request {
                self.context.requests.closed(envelope).await;
            }
            tokio::select! {
                biased;
                () = sleep(timeouts.answer) => {}
                () = async { self.turns_ended().await; sleep(timeouts.grace).await } => {}
            }
        };
        tokio::pin!(sending, head_start, given_up);
        let mut has_begun = false;
        loop {
            tokio::select! {
                biased;
                answer = &mut sending => {
                    if answer.is_ok() {
                        self.begun.send_replace(true);
                    }
                    return Some(answer);
                }
                () = &mut head_start, if !has_begun => {
                    has_begun = true;
                    self.begun.send_replace(true);
                    // Nothing else tells whether a server that keeps the POST of such a cancel open has received it.
                    self.outcome.send_replace(self.prompts.is_empty());
                }
                () = &mut given_up => {
                    // A server that keeps the POST of a cancel open has received it.
                    let is_lost = envelope.kind != Kind::Request && !self.is_cancel();
                    return is_lost.then(|| Err(HttpError::unanswered(url, timeouts.answer)));
                }
            }
        }
    }
}

/// Passes the messages in a response body to the peer. `is_only_way`: the server has no event stream, so a body that is
/// not a message is also passed on and reported.
pub async fn take(
    context: &HttpContext,
    mut response: Response,
    envelope: &Envelope,
    hook: &Hook,
    is_only_way: bool,
) -> Result<Taken, Disconnected> {
    let host = host_of(response.url().as_str());
    let broken = |why: String| {
        if envelope.kind == Kind::Request && context.requests.is_open(envelope) {
            Taken::Broken(why)
        } else {
            Taken::Answer
        }
    };
    if is_events(&response) {
        let mut reader = EventReader::new(context.inlet.clone(), Arc::clone(hook), None);
        match reader.read(&mut response).await {
            BodyEnd::ReceiverDropped => return Err(Disconnected),
            BodyEnd::Ended => {}
            BodyEnd::Silent | BodyEnd::Broken(_) => {
                let why = "The response of {host} ended early. Check the network, or try again.";
                return Ok(broken(why.replace("{host}", &host)));
            }
        }
    } else if response.status() != StatusCode::NO_CONTENT && response.content_length() != Some(0) {
        let is_receipt = response.status() == StatusCode::ACCEPTED;
        let body = match body(response, context.inlet.max_bytes).await {
            Ok(body) => body,
            Err(trouble) => return Ok(broken(trouble.text().to_owned())),
        };
        let text = String::from_utf8_lossy(&body);
        let answer = envelope::read(&text);
        let is_wanted = match &answer {
            Some(_) => true,
            None => {
                is_only_way && envelope.kind == Kind::Request || body.trim_ascii_start().starts_with(b"[")
            }
        };
        if is_wanted && !body.trim_ascii().is_empty() {
            // An error without an id belongs to the request in whose POST it was received; so does a result if there is
            // no other way to receive responses.
            let loose = answer.filter(|answer| answer.kind == Kind::Response && answer.id.is_none());
            let is_own = loose.is_some_and(|answer| answer.is_error || is_only_way && !is_receipt);
            let body = match &envelope.id {
                Some(id) if is_own => envelope::with_id(&text, id).unwrap_or_else(|| body.clone()),
                _ => body.clone(),
            };
            if !is_only_way && envelope.kind == Kind::Request {
                sleep(context.timeouts.settle).await;
            }
            let mut pieces = Vec::new();
            sort_whole(&body, &mut pieces);
            context.inlet.pieces_but(pieces, hook).await?;
        }
    }
    Ok(if context.requests.is_open(envelope) { Taken::Nothing } else { Taken::Answer })
}

/// Waits until a stream is no longer in a state.
async fn is_past(opening: &mut watch::Receiver<Opening>, state: Opening) {
    // Without a sender, the stream has ended.
    let _ = opening.wait_for(|now| *now != state).await;
}
