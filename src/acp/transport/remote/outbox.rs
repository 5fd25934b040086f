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

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use futures_util::FutureExt as _;
use reqwest::{Response, StatusCode};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{Instant, sleep};

use super::envelope::{self, Envelope, Kind};
use super::events::Opening;
use super::http_context::{Backoff, is_events};
use super::http_error::HttpError;
use super::server::{Place, Server, is_close};
use crate::acp::transport::OutboundFrame;
use crate::model::CloseReason;

/// Maximum number of requests with open POSTs; a further one fails.
const MAX_REQUESTS: u32 = 64;
const MAX_NOTICES: u32 = 32;
/// Maximum total size of responses in open POSTs, in KiB; each counts for at least [`MIN_ANSWER_KIB`].
const MAX_ANSWERS_KIB: u32 = 32 << 10;
const MIN_ANSWER_KIB: u32 = 1 << 10;
/// The first message of a session waits for its stream for this fraction of `Timeouts::answer`.
const OPENING_SHARE: u32 = 6;

/// How far a message is. Later stages are greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Waiting,
    /// The server has begun to respond, or the next message need not wait any longer.
    Begun,
    /// It has its outcome, as far as its POST is concerned.
    Ended,
    /// The server has responded to the POST of a prompt.
    Arrived,
    /// The prompt was dropped without being sent.
    Dropped,
}

/// A message that is being sent, as other messages see it.
#[derive(Debug)]
struct Flight {
    envelope: Envelope,
    lane: Option<String>,
    stage: watch::Sender<Stage>,
    /// Notified when another message waits for this one.
    is_followed: Notify,
    /// Whether the turn of this prompt was cancelled; then it is not sent again.
    is_cancelled: AtomicBool,
}

impl Flight {
    fn is_prompt(&self) -> bool {
        self.envelope.method == "session/prompt"
    }

    /// Whether it is the cancel of a turn. In version 2 of the protocol, the turn may have no open prompt.
    fn is_cancel(&self) -> bool {
        self.envelope.method == "session/cancel"
    }

    fn stage(&self) -> Stage {
        *self.stage.borrow()
    }

    /// Moves to a stage, never back.
    fn reach(&self, stage: Stage) {
        self.stage.send_if_modified(|now| std::mem::replace(now, stage.max(*now)) < stage);
    }

    async fn reached(&self, stage: Stage) {
        // The sender is not dropped.
        let _ = self.stage.subscribe().wait_for(|now| *now >= stage).await;
    }
}

#[derive(Debug)]
pub struct Outbox {
    pub server: Arc<Server>,
    /// Messages without an outcome, in order. Responses are not among them: nothing waits for them.
    flights: Vec<Arc<Flight>>,
    open_requests: Arc<Semaphore>,
    open_notices: Arc<Semaphore>,
    open_answers: Arc<Semaphore>,
}

impl Outbox {
    pub fn new(server: Arc<Server>) -> Self {
        let [open_requests, open_notices, open_answers] = [MAX_REQUESTS, MAX_NOTICES, MAX_ANSWERS_KIB]
            .map(|count| Arc::new(Semaphore::new(count as usize)));
        Self { server, flights: Vec::new(), open_requests, open_notices, open_answers }
    }

    /// Sends a message. Waits only while too many notifications or responses are open.
    pub async fn send(&mut self, frame: &OutboundFrame) {
        let OutboundFrame { bytes: frame, session: asking } = frame;
        let text = String::from_utf8_lossy(frame);
        let Some(mut envelope) = envelope::read(&text) else { return };
        if envelope.kind == Kind::Response {
            envelope.session = asking.as_deref().map(str::to_owned);
        }
        let context = Arc::clone(&self.server.context);
        if let Some(why) = self.server.too_large(frame.len()) {
            return context.unsent(&envelope, &why).await;
        }
        let Some(permit) = self.permit(&envelope, frame.len()).await else { return };
        context.expect(&envelope);
        let place = self.server.place(&envelope);
        self.flights.retain(|flight| {
            flight.stage() < Stage::Ended || flight.is_prompt() && context.is_open(&flight.envelope)
        });
        // A message with `$/` refers to a request in any lane.
        let refers_to_all = envelope.method.starts_with("$/");
        let before = |flight: &&Arc<Flight>| refers_to_all || flight.lane == place.lane;
        let before: Vec<_> = self.flights.iter().filter(before).cloned().collect();
        let in_session = |flight: &&Arc<Flight>| flight.envelope.session == envelope.session;
        let mut in_session = self.flights.iter().filter(in_session);
        let flight = Arc::new(Flight {
            lane: place.lane.clone(),
            stage: watch::Sender::new(Stage::Waiting),
            is_followed: Notify::new(),
            is_cancelled: AtomicBool::default(),
            envelope: envelope.clone(),
        });
        let (mut prompts, mut last_cancel): (Vec<Arc<Flight>>, _) = (Vec::new(), None);
        if flight.is_prompt() {
            last_cancel = in_session.rfind(|flight| flight.is_cancel()).cloned();
        } else if flight.is_cancel() || is_close(&envelope.method) {
            let is_open = |flight: &&Arc<Flight>| flight.is_prompt() && context.is_open(&flight.envelope);
            prompts = in_session.filter(is_open).cloned().collect();
            for prompt in &prompts {
                prompt.is_cancelled.store(true, Ordering::Relaxed);
            }
        }
        if envelope.kind != Kind::Response {
            self.flights.push(Arc::clone(&flight));
        }
        // The response to a prompt ends its turn; in version 2 it only accepts it.
        let is_response_end = context.version.load(Ordering::Relaxed) != 2;
        let (server, frame) = (Arc::clone(&self.server), frame.clone());
        let sending = Sending { server, frame, place, flight, prompts, is_response_end, _permit: permit };
        context.spawn(async move {
            for earlier in before {
                earlier.is_followed.notify_one();
                earlier.reached(Stage::Begun).await;
            }
            if let Some(cancel) = last_cancel {
                cancel.reached(Stage::Ended).await;
            }
            sending.carry_out().await;
        });
    }

    pub async fn drained(&self) {
        let _ = self.open_notices.acquire_many(MAX_NOTICES).await;
        let _ = self.open_answers.acquire_many(MAX_ANSWERS_KIB).await;
    }

    async fn permit(&self, envelope: &Envelope, bytes: usize) -> Option<OwnedSemaphorePermit> {
        let (semaphore, weight) = match envelope.kind {
            Kind::Request => {
                let permit = Arc::clone(&self.open_requests).try_acquire_owned().ok();
                if permit.is_none() {
                    let open = format!("{MAX_REQUESTS} requests to {}", self.server.host);
                    let why = format!("{open} are unanswered. Wait, or reconnect.");
                    self.server.context.unsent(envelope, &why).await;
                }
                return permit;
            }
            Kind::Notification => (&self.open_notices, 1),
            Kind::Response => {
                let kib = u32::try_from(bytes >> 10).unwrap_or(u32::MAX);
                (&self.open_answers, kib.clamp(MIN_ANSWER_KIB, MAX_ANSWERS_KIB))
            }
        };
        Arc::clone(semaphore).acquire_many_owned(weight).await.ok()
    }
}

struct Sending {
    server: Arc<Server>,
    frame: Bytes,
    place: Place,
    flight: Arc<Flight>,
    /// The prompts that a cancel or the end of a session concerns.
    prompts: Vec<Arc<Flight>>,
    is_response_end: bool,
    _permit: OwnedSemaphorePermit,
}

impl Drop for Sending {
    fn drop(&mut self) {
        self.flight.reach(Stage::Ended);
    }
}

impl Sending {
    async fn carry_out(self) {
        let flight = &self.flight;
        let are_dropped = self.prompts.iter().all(|prompt| prompt.stage() == Stage::Dropped);
        if flight.is_cancel() && !self.prompts.is_empty() && are_dropped {
            return;
        }
        if is_close(&flight.envelope.method) {
            // Otherwise a prompt could arrive for a session that does not exist any more.
            self.prompts_arrived().await;
        }
        if let Some(response) = self.run().await {
            // Any other response is read first, because it may contain the end of the turn.
            if is_events(&response) {
                self.note_arrival();
            }
            self.server.read(response, &flight.envelope).await;
            self.note_arrival();
        }
    }

    /// Waits until the turns that it cancels have ended; never returns if that is unknown, and for other messages.
    async fn turns_ended(&self) {
        if !self.flight.is_cancel() || self.prompts.is_empty() || !self.is_response_end {
            pending::<()>().await;
        }
        for prompt in &self.prompts {
            self.server.context.closed(&prompt.envelope).await;
        }
    }

    fn note_arrival(&self) {
        if self.flight.is_prompt() {
            self.flight.reach(Stage::Arrived);
        }
    }

    /// Whether it cancels a turn whose prompt may arrive after it.
    fn may_be_early(&self) -> bool {
        let mut early = self.prompts.iter().filter(|prompt| prompt.stage() < Stage::Arrived);
        self.flight.is_cancel() && early.any(|prompt| self.server.context.is_open(&prompt.envelope))
    }

    /// Waits until an early cancel can be sent again. False if its turns end before that.
    async fn prompts_arrived(&self) -> bool {
        let arrived = async {
            for prompt in &self.prompts {
                tokio::select! {
                    biased;
                    () = prompt.reached(Stage::Arrived) => {}
                    () = self.server.context.closed(&prompt.envelope) => {}
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
        if !self.flight.is_cancelled.load(Ordering::Relaxed) {
            return false;
        }
        self.flight.reach(Stage::Dropped);
        let why = "The prompt was cancelled before it could be sent.";
        self.server.context.fail(&self.flight.envelope, why, false).await;
        true
    }

    /// Sends it, and again if it may be. Returns the response to read.
    async fn run(&self) -> Option<Response> {
        if !self.is_stream_ready().await {
            return None;
        }
        let context = &self.server.context;
        let mut backoff = Backoff::new(context.timeouts);
        let mut interruption = None;
        loop {
            let may_be_early = self.may_be_early();
            let trouble = match self.post().await? {
                Ok(_) if may_be_early && self.prompts_arrived().await => continue,
                Ok(response) => return Some(response),
                Err(trouble) => trouble,
            };
            if !trouble.is_unsent {
                self.flight.reach(Stage::Begun);
            }
            // It may be sent again if it certainly did not arrive, or changes nothing if it arrives twice.
            let is_harmless = self.flight.envelope.kind == Kind::Response || self.flight.is_cancel();
            // A new token may grant access.
            let is_denied = matches!(trouble.status, Some(StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN));
            let is_passing = trouble.is_temporary || is_denied;
            if !(trouble.is_unsent || is_harmless && is_passing) {
                // A rejection is the outcome; after a network failure, the end of the connection may say more.
                let has_stream = self.place.opening.is_some() && trouble.is_temporary;
                context.fail(&self.flight.envelope, &trouble.text, has_stream).await;
                return None;
            }
            if self.turns_ended().now_or_never().is_some() {
                return None;
            }
            let Some(pause) = backoff.failed(Instant::now(), trouble.retry_after) else {
                context.end(CloseReason::Unreachable { error: trouble.text.clone() });
                return None;
            };
            if interruption.is_none() {
                let text = format!("A message could not be sent; retrying. {}", &trouble.text);
                context.note(text).await.ok()?;
                interruption = Some(context.interrupted());
            }
            tokio::select! {
                biased;
                () = context.pause(pause) => {}
                () = self.turns_ended() => return None,
            }
            if self.was_withdrawn().await {
                return None;
            }
        }
    }

    /// Waits until the stream is open that must be open first. A message is sent before the stream of a new session is
    /// open if that takes long or another message follows, which may be a cancel. False if the message is not sent.
    async fn is_stream_ready(&self) -> bool {
        let Some(mut opening) = self.place.opening.clone() else { return true };
        let (context, flight) = (&self.server.context, &self.flight);
        let is_reopening = *opening.borrow() == Opening::Reopening;
        if is_reopening && flight.envelope.kind == Kind::Request {
            loop {
                tokio::select! {
                    biased;
                    () = flight.is_followed.notified() => if self.was_withdrawn().await { return false },
                    () = is_past(&mut opening, Opening::Reopening) => break,
                }
            }
        } else {
            tokio::select! {
                biased;
                () = flight.is_followed.notified() => {}
                () = is_past(&mut opening, Opening::Waiting) => {}
                () = sleep(context.timeouts.answer / OPENING_SHARE) => {}
            }
        }
        let opening = *opening.borrow();
        if opening == Opening::Lost && flight.envelope.kind == Kind::Request {
            if context.is_open(&flight.envelope) {
                let advice = "Check the server, or reconnect.";
                let why =
                    format!("{} did not open the event stream of the session. {advice}", self.server.host);
                context.unsent(&flight.envelope, &why).await;
            }
            return false;
        }
        opening != Opening::Failed
    }

    /// Sends the message once. `None`: its outcome was received elsewhere while the server kept the POST open.
    async fn post(&self) -> Option<Result<Response, HttpError>> {
        let (context, envelope, url) = (&self.server.context, &self.flight.envelope, &self.server.urls.post);
        let timeouts = context.timeouts;
        let is_wanted = |status| status == StatusCode::NOT_FOUND;
        let sending = context.post_once(url, &self.place.headers, &self.frame, is_wanted);
        let head_start = sleep(timeouts.head_start);
        let given_up = async {
            if envelope.kind == Kind::Request {
                context.closed(envelope).await;
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
                        self.flight.reach(Stage::Begun);
                    }
                    return Some(answer);
                }
                () = &mut head_start, if !has_begun => {
                    has_begun = true;
                    self.flight.reach(Stage::Begun);
                    if self.flight.is_cancel() && self.prompts.is_empty() {
                        // Nothing else tells whether a server that keeps the POST open has received it.
                        self.flight.reach(Stage::Ended);
                    }
                }
                () = &mut given_up => {
                    // A server that keeps the POST of a cancel open has received it.
                    let is_lost = envelope.kind != Kind::Request && !self.flight.is_cancel();
                    return is_lost.then(|| Err(HttpError::unanswered(url, timeouts.answer)));
                }
            }
        }
    }
}

async fn is_past(opening: &mut watch::Receiver<Opening>, state: Opening) {
    // Without a sender, the stream has ended.
    let _ = opening.wait_for(|now| *now != state).await;
}
