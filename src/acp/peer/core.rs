//! The state of a connection, without tasks or clocks.
//!
//! Invariants: every request of the agent is answered once; every call gets one reply; invalid input becomes an anomaly.

mod handshake;
mod turns;

use std::borrow::Cow;
use std::collections::{BTreeSet, VecDeque};
use std::hash::BuildHasher as _;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use self::handshake::{Due, INVALID_REQUEST, PARSE_ERROR, call_error};
use super::calls::{Calls, Limits, Match, Pending};
use super::frame_writer::FrameWriter;
use super::requests::{OpenRequest, OpenRequests, WireId};
use crate::acp::Command;
use crate::acp::codec::{Codec, Quirk, TurnNews, decode_error, encode_answer, fallback};
use crate::acp::dialects::{self, Dialect, Translation};
use crate::acp::envelope::{self, Message};
use crate::acp::frame::repair::{is_plain, repair};
use crate::acp::frame::{Form, Frame, InboundFrame};
use crate::acp::tap::{Direction, Tap};
use crate::acp::transport::{Outgoing, Stopper};
use crate::model::{
    AgentCommand, AgentEvent, AgentSpec, Anomaly, AnomalyKind, Call, CallError, CallTag, CloseReason, Reply,
    RpcError, SessionId, SessionReply, SessionUpdate, Severity,
};

#[derive(Debug)]
enum Phase {
    Starting,
    Ready,
    Failed(CallError),
}

#[derive(Debug)]
pub struct Peer {
    spec: AgentSpec,
    codec: Codec,
    dialect: Box<dyn Dialect>,
    tap: Tap,
    pub calls: Calls,
    pub requests: OpenRequests,
    phase: Phase,
    /// Requests and cancellations from before the end of the handshake, in order.
    waiting: VecDeque<AgentCommand>,
    pub writer: FrameWriter,
    is_stopping: bool,
    is_deaf: bool,
    pub events: Vec<AgentEvent>,
    /// What happens next in the handshake, and when.
    due: Option<(Due, Instant)>,
    /// The form of `initialize` that was sent last.
    attempt: u8,
    /// The error of a form of `initialize` that says that the version is not supported.
    refused: Option<CallError>,
    /// The sessions in which the agent works. Source: ACP v2, session states.
    busy: BTreeSet<SessionId>,
    /// Whether the agent has reported that it works.
    reports_work: bool,
    /// The last session of the agent in its folder, if known.
    pub last_session: Option<SessionId>,
    /// The session that was opened last, for `workspace`.
    pub opened: Option<SessionId>,
    shutdown: Option<u64>,
    /// While the agent signs in: when its stderr is read next, and the last line in the protocol log that was seen.
    sign_in: Option<(Instant, u64)>,
    now: Instant,
    /// The session whose event stream delivered the last message.
    stream: Option<Arc<str>>,
}

impl Peer {
    pub fn new(spec: &AgentSpec, tap: Tap, limits: Limits) -> Self {
        Self {
            spec: spec.clone(),
            codec: Codec::new(spec),
            dialect: dialects::before_start(spec),
            writer: FrameWriter::new(tap.clone()),
            tap,
            calls: Calls::new(limits),
            requests: OpenRequests::default(),
            phase: Phase::Starting,
            waiting: VecDeque::new(),
            is_stopping: false,
            is_deaf: false,
            events: Vec::new(),
            due: None,
            attempt: 0,
            refused: None,
            busy: BTreeSet::new(),
            reports_work: false,
            last_session: None,
            opened: None,
            shutdown: None,
            sign_in: None,
            now: Instant::now(),
            stream: None,
        }
    }

    pub fn start(&mut self, pid: Option<u32>, outgoing: Outgoing, stopper: Stopper, now: Instant) {
        self.writer.attach(outgoing, stopper);
        self.events.push(AgentEvent::Started { pid });
        if self.dialect.speaks_first() {
            self.schedule(Due::Greeting, now);
        } else {
            self.greet(now);
        }
    }

    pub fn on_command(&mut self, command: Command, now: Instant) {
        match command {
            Command::Stop { force } => self.stop(force),
            Command::RetryNow => self.writer.stopper.iter().for_each(Stopper::retry_now),
            Command::Agent(AgentCommand::Respond(id, answer)) => {
                // A duplicate response, or one to a request of an earlier connection.
                if let Some(request) = self.requests.take(id) {
                    let outcome = encode_answer(request.kind, &answer);
                    self.writer.respond(&request.wire_id, outcome.as_deref().map_err(String::as_str));
                }
            }
            Command::Agent(AgentCommand::CancelCall(tag)) => self.cancel_call(&tag),
            Command::Agent(command) => match &self.phase {
                Phase::Starting => self.waiting.push_back(command),
                Phase::Ready => self.write_command(command, now),
                Phase::Failed(error) => {
                    if let AgentCommand::Call(tag, _) = command {
                        self.events.push(AgentEvent::Replied(tag, Err(error.clone())));
                    }
                }
            },
        }
    }

    /// Ends the connection, after a response to every open request.
    pub fn stop(&mut self, force: bool) {
        let is_first = !std::mem::replace(&mut self.is_stopping, true);
        self.answer_all();
        if is_first && !force && matches!(self.phase, Phase::Ready) && self.dialect.shuts_down() {
            let id = self.calls.next_id();
            self.writer.request(id, "shutdown", "{}");
            self.shutdown = Some(id);
            self.schedule(Due::End, Instant::now());
            return;
        }
        self.shutdown = None;
        self.writer.stop(force);
    }

    pub fn on_piece(&mut self, piece: InboundFrame, now: Instant) {
        self.now = now;
        self.greet_if_due(now);
        match piece {
            InboundFrame::Frame(frame) => self.on_frame(&frame),
            InboundFrame::Noise(bytes) => {
                self.tap.record(Direction::FromAgent, &bytes);
                if bytes.trim_ascii().eq_ignore_ascii_case(b"ready") {
                    return self.codec.learn(Quirk::READY_LINE, &mut self.events);
                }
                let text = String::from_utf8_lossy(&bytes);
                self.anomaly(AnomalyKind::Noise, format!("Not a message: {}", excerpt(&text)));
            }
            InboundFrame::Oversize { len_bytes, head } => {
                self.tap.record(Direction::FromAgent, &head);
                let head = excerpt(&String::from_utf8_lossy(&head));
                let text = format!("Ignored a message of {len_bytes} bytes, over the limit: {head}");
                self.anomaly(AnomalyKind::Oversize, text);
            }
        }
    }

    pub fn on_report(&mut self, session: Option<String>, text: String) {
        let Some(session) = session else { return self.anomaly(AnomalyKind::Carrier, text) };
        let title = "A message could not be delivered.".to_owned();
        let notice = SessionUpdate::notice(Severity::Warning, title, Some(text));
        self.events.push(AgentEvent::Update(SessionId(session.into()), notice));
    }

    pub fn on_deadline(&mut self, now: Instant) {
        self.now = now;
        match self.due.take_if(|(_, at)| *at <= now) {
            Some((Due::Greeting, _)) => self.greet(now),
            Some((Due::Again, _)) => self.greet_again(),
            Some((Due::End, _)) => self.stop(false),
            None => {}
        }
        self.translate(|dialect, out| dialect.on_deadline(out));
        if self.sign_in.is_some_and(|(next, _)| next <= now) {
            self.report_output(now);
        }
        for (pending, time) in self.calls.take_overdue(now) {
            let error = CallError::TimedOut(time.as_secs());
            let Some((tag, call)) = pending.call else {
                self.fail(error);
                continue;
            };
            let outcome = match pending.presumed_end {
                Some((end, _)) => *end,
                None => Err(error),
            };
            self.on_closed(&call, &outcome);
            self.events.push(AgentEvent::Replied(tag, outcome));
        }
    }

    /// The end of the connection: every request gets a reply, then `Closed` is reported.
    pub fn close(&mut self, reason: CloseReason) {
        self.answer_all();
        self.due = None;
        for pending in self.calls.take_all() {
            // For `initialize`, `Closed` is more specific than `Lost`.
            if let Some((tag, _)) = pending.call {
                self.events.push(AgentEvent::Replied(tag, Err(CallError::Lost)));
            }
        }
        self.drop_waiting(&CallError::Lost);
        self.events.push(AgentEvent::Closed(reason));
        self.writer = FrameWriter::new(self.tap.clone());
    }

    pub fn close_reason(&self, end: CloseReason) -> CloseReason {
        match end {
            _ if self.is_stopping => CloseReason::Stopped,
            _ if self.is_deaf => {
                let error = "The agent stopped reading its input with more than 128 MiB pending. Restart the agent, \
                             or report this to its authors.";
                CloseReason::Lost { error: error.to_owned() }
            }
            end => end,
        }
    }

    pub fn take_events(&mut self) -> Vec<AgentEvent> {
        std::mem::take(&mut self.events)
    }

    pub fn next_deadline(&self) -> Option<Instant> {
        let output = self.sign_in.map(|(next, _)| next);
        let others = [self.due.map(|(_, at)| at), self.dialect.deadline(), output];
        others.into_iter().chain([self.calls.next_deadline()]).flatten().min()
    }

    /// Ends the connection if the agent has too much unread input, and flushes the log file.
    pub fn finish_batch(&mut self) {
        self.is_deaf |= self.writer.stop_on_overflow();
        self.tap.flush();
    }

    fn on_frame(&mut self, frame: &Frame) {
        let text = frame.text();
        self.stream.clone_from(&frame.stream);
        self.tap.record(Direction::FromAgent, text.as_bytes());
        if frame.is_lossy {
            let text = format!("Message with invalid UTF-8: {}", excerpt(text));
            self.anomaly(AnomalyKind::BadUtf8, text);
        }
        // Reported once, because these agents do it with every message.
        match frame.form {
            Form::Header => self.codec.learn(Quirk::HEADER_FRAMES, &mut self.events),
            Form::Array => self.codec.learn(Quirk::ARRAYS, &mut self.events),
            Form::Line => {}
        }
        if let Some(message) = envelope::read(text).ok().filter(|_| is_plain(text)) {
            return self.on_message(message, text);
        }
        let repaired = repair(text);
        if matches!(repaired, Cow::Owned(_)) {
            self.anomaly(AnomalyKind::BadFrame, format!("Repaired invalid JSON: {}", excerpt(text)));
        }
        match envelope::read(&repaired) {
            Ok(message) => self.on_message(message, &repaired),
            Err(error) => self.on_unreadable(&error.to_string(), &repaired),
        }
    }

    /// Possibly several messages on one line, because of a missing line break.
    fn on_unreadable(&mut self, why: &str, text: &str) {
        let Some(parts) = envelope::split_joined(text) else { return self.bad_frame(why, text) };
        self.anomaly(AnomalyKind::Dialect, format!("{} messages on one line.", parts.len()));
        for part in parts {
            match envelope::read(part) {
                Ok(message) => self.on_message(message, part),
                Err(error) => self.bad_frame(&error.to_string(), part),
            }
        }
    }

    fn on_translated(&mut self, message: Message<'_>, text: &str) {
        match message {
            Message::Notification { method, params } => {
                // ACP v1 extensibility: names that start with `_` are reserved for extensions.
                if !self.on_notification(&method, params) && !method.starts_with('_') {
                    let text = format!("Unknown notification {}.", excerpt(&method));
                    self.anomaly(AnomalyKind::UnknownMethod, text);
                }
            }
            Message::Request { id, method, params } => {
                // Some agents send `id: null` in notifications.
                if id != "null" || !self.on_notification(&method, params) {
                    self.on_request(id, &method, params);
                }
            }
            Message::Response { id, outcome } => {
                let number = envelope::id_number(id);
                let text = match self.calls.take(number) {
                    Match::Waiting(pending) => {
                        return self.on_outcome(number.unwrap_or_default(), *pending, outcome);
                    }
                    Match::Reported => return,
                    _ if self.shutdown.is_some() && number == self.shutdown => return self.stop(false),
                    Match::Retired(method) => {
                        format!("Ignored a duplicate or late response to {method} (id {}).", excerpt(id))
                    }
                    Match::Never => format!("Response to an unknown request (id {}).", excerpt(id)),
                };
                self.anomaly(AnomalyKind::StrayResponse, text);
            }
            Message::Loose(Err(error)) => self.on_loose_error(error),
            Message::Loose(Ok(_)) => self.bad_frame("result without an id", text),
            Message::Odd(why) => self.bad_frame(why, text),
        }
    }

    pub fn on_message(&mut self, message: Message<'_>, text: &str) {
        let mut is_translated = false;
        self.translate(|dialect, out| is_translated = dialect.receive(&message, text, out));
        if !is_translated {
            self.on_translated(message, text);
        }
    }

    pub fn translate(&mut self, work: impl FnOnce(&mut dyn Dialect, &mut Translation)) {
        let mut translation = Translation::new(self.now);
        work(self.dialect.as_mut(), &mut translation);
        for (id, (method, params)) in translation.to_agent {
            self.writer.request(id, method, &params);
        }
        for problem in translation.problems {
            self.anomaly(AnomalyKind::BadMessage, problem.to_owned());
        }
        for text in translation.to_parlor {
            if let Ok(message) = envelope::read(&text) {
                self.on_translated(message, &text);
            }
        }
    }

    pub fn notify(&self, message: Option<dialects::Method>) {
        if let Some((method, params)) = message {
            self.writer.notify(method, &params);
        }
    }

    fn on_notification(&mut self, method: &str, params: Option<&str>) -> bool {
        if matches!(method, "$/cancel_request" | "$/cancelRequest") {
            if let Some(id) = params.and_then(envelope::withdrawn_id) {
                // A request may be cancelled just after its response was sent.
                let withdrawn = self.requests.withdraw(id, self.stream.as_deref());
                self.events.extend(withdrawn.map(AgentEvent::RequestWithdrawn));
            } else {
                self.anomaly(AnomalyKind::BadMessage, format!("{method} without a request id."));
            }
            return true;
        }
        let before = self.events.len();
        let is_known = self.codec.notification(method, params, &mut self.events);
        self.calls.note_update(self.events.get(before..).unwrap_or_default(), self.now);
        for news in self.codec.take_turn_news() {
            match news {
                TurnNews::Went(session) => self.on_busy(session),
                TurnNews::Ended(session, outcome) => self.on_idle(session, outcome),
            }
        }
        is_known
    }

    fn on_outcome(&mut self, id: u64, pending: Pending, outcome: Result<&str, &str>) {
        let is_prompt = matches!(&pending.call, Some((_, Call::Prompt(..))));
        if is_prompt && outcome.is_ok() && self.codec.reports_states() {
            return self.calls.accept(id, pending, self.now);
        }
        let Some((tag, call)) = pending.call else { return self.on_initialized(outcome) };
        let reply: Result<Reply, CallError> = match outcome {
            Ok(result) => self.codec.reply(&call, result, &mut self.events),
            Err(error) => Err(call_error(decode_error(error))),
        };
        self.on_closed(&call, &reply);
        if let Call::Authenticate { .. } = &call {
            // It may explain a failure.
            self.report_output(self.now);
        }
        let working = match (&call, &reply) {
            (Call::Prompt(session, _), Err(error)) => self.works_on(session, error).then_some(session),
            (_, Ok(Reply::Session(SessionReply { id: Some(id), .. })))
            | (Call::ResumeSession(id, _) | Call::LoadSession(id, _), Ok(Reply::Session(_))) => {
                self.opened = Some(id.clone());
                // The session's state is reported before the response.
                self.busy.contains(id).then_some(id)
            }
            _ => None,
        };
        let working = working.cloned();
        self.events.push(AgentEvent::Replied(tag, reply));
        self.events.extend(working.map(AgentEvent::TurnBegan));
    }

    /// An error without an id can be matched only if a single request is pending.
    fn on_loose_error(&mut self, error: &str) {
        let rpc = decode_error(error);
        let is_about_call =
            matches!(rpc.code, PARSE_ERROR | INVALID_REQUEST) || matches!(self.phase, Phase::Starting);
        let only = if is_about_call { self.calls.take_only() } else { None };
        let message = excerpt(&rpc.message);
        let of = only.as_ref().map(|pending| format!(", treated as the response to {}", pending.method));
        let text = format!("Error without an id{}: {message}", of.unwrap_or_default());
        self.anomaly(AnomalyKind::StrayResponse, text);
        if let Some(pending) = only {
            self.on_outcome(0, pending, Err(error));
        }
    }

    fn drop_waiting(&mut self, error: &CallError) {
        for command in std::mem::take(&mut self.waiting) {
            if let AgentCommand::Call(tag, _) = command {
                self.events.push(AgentEvent::Replied(tag, Err(error.clone())));
            }
        }
    }

    fn write_command(&mut self, command: AgentCommand, now: Instant) {
        match command {
            AgentCommand::Call(tag, call) => self.write_call(tag, call, now),
            AgentCommand::Cancel(session) => {
                self.notify(self.dialect.cancel(&session, self.calls.find_prompt(&session)));
            }
            // Handled by `on_command` without waiting.
            AgentCommand::Respond(..) | AgentCommand::CancelCall(_) => {}
        }
    }

    /// Sends a request. One that is not sent gets an error reply.
    fn write_call(&mut self, tag: CallTag, call: Call, now: Instant) {
        let Some(mut message) = self.codec.call(&call) else {
            return self.not_sent(tag, "This request is not supported for this agent.".to_owned());
        };
        let id = self.calls.next_id();
        if let Err(error) = self.dialect.call(id, &call, &mut message) {
            return self.not_sent(tag, error);
        }
        if let Call::CloseSession(session) | Call::LoadSession(session, _) | Call::ResumeSession(session, _) =
            &call
        {
            self.busy.remove(session);
        }
        if let Call::Authenticate { .. } = &call {
            self.sign_in = Some((now + OUTPUT_INTERVAL, self.tap.version()));
        }
        let (method, params) = message;
        self.calls.add(id, Some((tag, call)), method, now);
        self.writer.request(id, method, &params);
    }

    fn not_sent(&mut self, tag: CallTag, error: String) {
        self.events.push(AgentEvent::Replied(tag, Err(CallError::NotSent { error })));
    }

    fn cancel_call(&mut self, tag: &CallTag) {
        if let Some(id) = self.calls.find(|own, _| own == tag) {
            return self.notify(self.dialect.withdraw(id));
        }
        let is_it = |command: &AgentCommand| matches!(command, AgentCommand::Call(own, _) if own == tag);
        if let Some(at) = self.waiting.iter().position(is_it) {
            self.waiting.remove(at);
            let error = RpcError::new(RpcError::CANCELLED, "Cancelled before it was sent.");
            self.events.push(AgentEvent::Replied(tag.clone(), Err(CallError::Agent(error))));
        }
    }

    pub fn on_request(&mut self, id: &str, method: &str, params: Option<&str>) {
        let session = params.and_then(envelope::session).or_else(|| self.stream.clone());
        let wire_id = WireId { id: id.into(), session };
        let hash = self.requests.hasher.hash_one((method, params));
        if self.requests.is_open(&wire_id, hash) {
            let text = format!("Ignored an open request that was delivered again: {}.", excerpt(method));
            return self.anomaly(AnomalyKind::Carrier, text);
        }
        if !self.requests.has_room(params) {
            let text = "Too many open requests. Wait for responses before sending more.";
            return self.writer.refuse(&wire_id, &RpcError::new(RpcError::INTERNAL, text));
        }
        let count_before = self.events.len();
        match self.codec.request(method, params, &mut self.events) {
            Ok((request_id, kind)) => {
                let id = self.requests.add(wire_id, kind, hash, params);
                self.events.push(AgentEvent::Request(id, Box::new(request_id)));
            }
            Err(error) => {
                let is_unknown = error.code == RpcError::METHOD_NOT_FOUND;
                let method_name = excerpt(method);
                if is_unknown && self.on_notification(method, params) {
                    self.anomaly(AnomalyKind::Dialect, format!("Accepted {method_name} with an id."));
                    return self.writer.respond(&wire_id, Ok("null"));
                }
                if self.events.len() == count_before {
                    let (kind, text) = if is_unknown {
                        (AnomalyKind::UnknownMethod, format!("Rejected the unknown request {method_name}."))
                    } else {
                        let why = excerpt(&error.message);
                        (AnomalyKind::BadMessage, format!("Rejected the request {method_name}: {why}"))
                    };
                    self.anomaly(kind, text);
                }
                if !is_unknown {
                    self.codec.show_unreadable(params.unwrap_or_default(), &mut self.events);
                }
                self.writer.refuse(&wire_id, &error);
            }
        }
    }

    pub fn answer_all(&mut self) {
        for OpenRequest { wire_id, kind, .. } in self.requests.take_all() {
            let outcome = encode_answer(kind, &fallback(kind));
            self.writer.respond(&wire_id, outcome.as_deref().map_err(String::as_str));
        }
    }

    fn bad_frame(&mut self, why: &str, text: &str) {
        self.anomaly(AnomalyKind::BadFrame, format!("Invalid message: {why}: {}", excerpt(text)));
        self.codec.show_unreadable(text, &mut self.events);
    }

    fn anomaly(&mut self, kind: AnomalyKind, text: String) {
        self.events.push(AgentEvent::Anomaly(Anomaly { kind, text }));
    }
}

/// How often the agent's stderr is read while it signs in; it may contain the address of a page.
const OUTPUT_INTERVAL: Duration = Duration::from_millis(250);
/// Maximum number of lines of one report, the last ones.
const MAX_OUTPUT_LINES: usize = 20;
const MAX_OUTPUT_CHARS: usize = 2000;

impl Peer {
    /// Reports new lines, and goes on while a sign-in is pending.
    fn report_output(&mut self, now: Instant) {
        let Some((_, seen)) = self.sign_in else { return };
        let newest = self.tap.version();
        let mut lines = if newest > seen { self.tap.stderr_after(seen) } else { Vec::new() };
        lines.drain(..lines.len().saturating_sub(MAX_OUTPUT_LINES));
        for line in &mut lines {
            if let Some((end, _)) = line.char_indices().nth(MAX_OUTPUT_CHARS) {
                line.truncate(end);
            }
        }
        if !lines.is_empty() {
            self.events.push(AgentEvent::SignInOutput(lines));
        }
        let pending = self.calls.find(|_, call| matches!(call, Call::Authenticate { .. }));
        self.sign_in = pending.map(|_| (now + OUTPUT_INTERVAL, newest));
    }
}

pub fn excerpt(text: &str) -> String {
    const MAX_CHARS: usize = 120;
    let short: String = text.chars().take(MAX_CHARS).collect();
    let end = if short.len() < text.len() { "…" } else { "" };
    short.replace(char::is_control, " ") + end
}
