//! Translates between JSON text and the types of [`crate::model`].
//!
//! Outgoing messages are built from the official types. Incoming `params`, `result` and `error` texts are
//! normalised to the official names and shapes (tables in `names`), decoded item by item, and returned as
//! [`AgentEvent`]s, [`AgentRequest`]s and [`Reply`]s. Ids and framing belong to `peer` and `frame`.
//! Invariants: no input panics or ends the connection; items that cannot be decoded are passed on raw or reported
//! as an anomaly, never dropped silently; every outgoing message passes strict decoders.

mod answers;
mod auth;
mod calls;
mod content;
mod decoder_state;
mod elicitation;
mod errors;
mod fast;
mod initialize;
mod input;
mod names;
mod openoxide;
mod options;
mod output;
mod patches;
mod plans;
mod quirks;
mod replies;
mod requests;
mod strict;
mod terminals;
mod tools;
mod trace;
mod unstable;
mod updates;
mod v2;
mod value;
mod whitespace_repair;
mod wrappers;

#[cfg(test)]
mod tests;

use serde_json::json;

use crate::model::{
    AgentCapabilities, AgentEvent, AgentInfo, AgentRequest, AgentSpec, AnomalyKind, Call, CallError,
    Callbacks, Reply, Response, RpcError, SessionId, WireSpec,
};

use decoder_state::DecoderState;
pub(crate) use decoder_state::TurnNews;
use quirks::Quirks;
pub(crate) use quirks::{Quirk, profile_of, telling_names};

/// Whether a response to `initialize`, given as the whole message, is of `OpenOxide`, which sends updates as events:
/// over HTTP, on a separate event stream.
pub(crate) fn speaks_events(answer: &str) -> bool {
    let answer = value::parse_object(answer);
    let result = answer.as_ref().and_then(|answer| answer.get("result")?.as_object());
    result.is_some_and(openoxide::is_spoken_in)
}

/// The codec of one connection, with the agent's quirks and capabilities, and the state that some dialects need.
#[derive(Debug)]
pub struct Codec {
    quirks: Quirks,
    offered: Callbacks,
    can: AgentCapabilities,
    wire: WireSpec,
    memory: DecoderState,
    trace: Option<trace::Trace>,
    is_remote: bool,
}

impl Codec {
    /// Creates the codec of a connection. Quirks that are known for the command's name apply immediately.
    pub fn new(spec: &AgentSpec) -> Self {
        Self {
            quirks: Quirks::of(spec),
            offered: spec.callbacks,
            can: AgentCapabilities::default(),
            wire: spec.wire.clone(),
            memory: DecoderState::default(),
            is_remote: spec.remote.is_some(),
            trace: spec.wire.is_traced.then(trace::Trace::begin),
        }
    }

    /// Method and params of a form of `initialize`: 0 is the official form with all capabilities, 1 the same without
    /// unstable parts, for agents that reject unknown fields, 2 that of `OpenOxide` (first if the agent is known to be
    /// `OpenOxide`). `None`: no further form.
    pub fn initialize(&self, attempt: u8) -> Option<(&'static str, String)> {
        let offer = initialize::Offer { callbacks: self.offered, runs_sign_in: !self.is_remote };
        match attempt.checked_sub(u8::from(self.wire.protocol == 2)) {
            Some(attempt) => initialize::encode(attempt, offer, &self.quirks),
            None => Some(v2::initialize(offer)),
        }
    }

    /// Decodes the response to `initialize`.
    ///
    /// # Errors
    /// [`CallError::Malformed`] if it is not an object, [`CallError::OtherVersion`] for an unsupported or disabled
    /// protocol version.
    pub fn on_initialize(&mut self, result: &str) -> Result<AgentInfo, CallError> {
        let newest = self.wire.protocol.max(1);
        let mut info = match v2::decode_initialize(result).filter(|_| newest == 2) {
            Some(info) => info?,
            None => initialize::decode(result, &mut self.quirks)?,
        };
        if let Some(profile) = info.profile.filter(|_| self.is_remote) {
            for quirk in quirks::of_remote(profile) {
                self.quirks.note(*quirk);
            }
            info.quirks = self.quirks.sentences();
            info.capabilities.deaf_in_turn = self.quirks.has(Quirk::DeafInTurn);
            info.capabilities.can_resume |= self.quirks.has(Quirk::KnowsById);
        }
        self.memory.version = info.protocol_version;
        self.can = info.capabilities;
        Ok(info)
    }

    /// The failure of `initialize`, if the error says that the agent does not support version 1 and no other was offered.
    pub(crate) fn refused_version(&self, error: &RpcError) -> Option<CallError> {
        let theirs = initialize::required_version(error).filter(|_| self.wire.protocol < 2)?;
        Some(CallError::OtherVersion { theirs })
    }

    /// Decodes a notification; `false`: unknown method. A text chunk that continues the last event of `out` (same
    /// session, role and message) is joined to it.
    pub fn notification(&mut self, method: &str, params: Option<&str>, out: &mut Vec<AgentEvent>) -> bool {
        match method {
            "session/update" => {
                let text = params.unwrap_or("null");
                // Chunks that need a workaround are decoded by `updates`.
                let is_plain = !self.quirks.has(Quirk::TrimmedChunks);
                if !(is_plain && fast::decode(text, &mut self.memory, out)) {
                    updates::decode(text, &mut self.memory, &mut self.quirks, out);
                }
                true
            }
            // The path of a socket, which is not needed on a pipe.
            "ready" => {
                self.quirks.note(Quirk::ReadyLine);
                true
            }
            // Source: unstable `auth.status`.
            "auth/status_update" => {
                let mut told = params.and_then(value::parse_object).unwrap_or_default();
                match unstable::decode_auth(&mut told) {
                    Some(status) => out.push(AgentEvent::AuthStatus(status)),
                    None => out.push(value::anomaly(
                        AnomalyKind::BadMessage,
                        "An authentication notice has no state.",
                    )),
                }
                true
            }
            "elicitation/complete" => {
                match params.and_then(elicitation::decode_complete) {
                    Some(id) => out.push(AgentEvent::ElicitationComplete(id)),
                    None => {
                        out.push(value::anomaly(AnomalyKind::BadMessage, "An elicitation notice has no id."));
                    }
                }
                true
            }
            _ => updates::decode_event(method, params, &mut self.memory, &mut self.quirks, out),
        }
    }

    /// Decodes a message without a JSON-RPC envelope, as `OpenOxide` sends events; `false`: not an event.
    pub fn bare_event(&mut self, text: &str, out: &mut Vec<AgentEvent>) -> bool {
        updates::decode_event("", Some(text), &mut self.memory, &mut self.quirks, out)
    }

    /// Shows a message that cannot be read.
    pub fn show_unreadable(&self, text: &str, out: &mut Vec<AgentEvent>) {
        updates::show_unreadable(text, &self.memory, out);
    }

    /// Removes and returns the turn events of the last messages.
    pub(crate) fn take_turn_news(&mut self) -> Vec<TurnNews> {
        let news = std::mem::take(&mut self.memory.turn_news);
        self.memory.tells_ends |= news.iter().any(|news| matches!(news, TurnNews::Ended(..)));
        news
    }

    /// Whether the response to a prompt only acknowledges it, because the turn ends otherwise: in version 2 with a
    /// state, in one dialect with `done`. `has_news`: the turn had events before the response, which then ends the
    /// turn in that dialect. Source: ACP v2 prompt-lifecycle: the response says that the prompt was accepted.
    pub(crate) fn is_only_receipt(&self, outcome: Result<&str, &str>, has_news: bool) -> bool {
        if self.memory.is_v2() {
            return outcome.is_ok();
        }
        self.quirks.has(Quirk::OwnMethods)
            // Over HTTP the response may arrive after the first events of the turn.
            && (!has_news || self.is_remote && self.memory.tells_ends)
            && outcome.is_ok_and(|result| !replies::names_stop_reason(result))
    }

    /// Whether a response after the first updates of a turn may only confirm its prompt: over HTTP both may arrive in
    /// any order, and this server has not shown yet whether its turns end with `done` or with the response.
    pub(crate) fn may_be_receipt(&self, outcome: Result<&str, &str>) -> bool {
        self.quirks.has(Quirk::OwnMethods)
            && self.is_remote
            && !self.memory.tells_ends
            && !self.memory.response_ends_turn
            && outcome.is_ok_and(|result| !replies::names_stop_reason(result))
    }

    /// Notes that this server ends turns with the response.
    pub(crate) fn note_response_ends_turn(&mut self) {
        self.memory.response_ends_turn = true;
    }

    /// Whether the agent reports whether it works apart from its responses.
    pub(crate) fn reports_states(&self) -> bool {
        self.memory.is_v2()
    }

    /// Whether the agent has a quirk.
    pub(crate) fn has(&self, quirk: Quirk) -> bool {
        self.quirks.has(quirk)
    }

    /// Sets a quirk of the framing and reports it the first time.
    pub(crate) fn learn(&mut self, quirk: Quirk, out: &mut Vec<AgentEvent>) {
        self.quirks.learn(quirk, out);
    }

    /// Decodes a request; anomalies are added to `out`. The caller reports a rejected request.
    ///
    /// # Errors
    /// The error to respond with: `-32601` for an unknown or disabled method, `-32602` for invalid params.
    pub fn request(
        &mut self,
        method: &str,
        params: Option<&str>,
        out: &mut Vec<AgentEvent>,
    ) -> Result<(AgentRequest, RequestForm), RpcError> {
        let offered = if self.memory.is_v2() { v2::CALLBACKS } else { self.offered };
        requests::decode(method, params, offered, &mut self.memory, &mut self.quirks, out)
    }

    /// Decodes the result of a request of parlor; anomalies are added to `out`.
    ///
    /// # Errors
    /// [`CallError::Malformed`] if a required field is missing; [`CallError::Agent`] with `-32000` if a stop reason
    /// says that sign-in is required.
    pub fn reply(
        &mut self,
        call: &Call,
        result: &str,
        out: &mut Vec<AgentEvent>,
    ) -> Result<Reply, CallError> {
        replies::decode(call, result, &mut self.memory, &self.quirks, out)
    }

    /// Decodes an error of any shape; its message is the most specific text in it.
    pub fn error(&self, error: &str) -> RpcError {
        errors::decode(error)
    }

    /// Method and params of a request. Content that the agent does not support (MCP transports, additional folders,
    /// kinds of prompt blocks) is omitted or replaced.
    pub fn call(&self, call: &Call) -> (&'static str, String) {
        calls::encode(call, &self.can)
    }

    /// Method and params of a request in the agent's dialect: form 0 first, further forms if [`Self::has_other_form`]
    /// says so. `None`: no such form.
    ///
    /// # Errors
    /// [`CallError::NotSent`] for a request over a known limit of the agent.
    pub fn call_in_form(
        &mut self,
        call: &Call,
        form: u8,
    ) -> Result<Option<(&'static str, String)>, CallError> {
        let found = if self.memory.is_v2() {
            v2::call(call, &self.can).filter(|_| form == 0)
        } else {
            if let Call::Prompt(session, _) = call {
                self.memory.turn_session = Some(session.clone());
                self.memory.seams.break_off();
            }
            calls::encode_form(call, form, &self.can, &self.quirks, &self.wire)?
        };
        Ok(found.map(|(method, params)| {
            let params = unstable::extend(call, params, &self.can, &self.wire);
            let params = match &self.trace {
                Some(trace) => trace.mark(params),
                None => params,
            };
            (method, params)
        }))
    }

    /// Whether another form of this request is worth a try after this error.
    pub fn has_other_form(&self, call: &Call, error: &RpcError) -> bool {
        match call {
            Call::ResumeSession(..) if self.quirks.has(Quirk::OwnMethods) => {
                error.code == RpcError::INVALID_PARAMS
            }
            Call::SetMode(..) => self.quirks.has(Quirk::OldSetMode) && error.code == RpcError::INVALID_PARAMS,
            _ => false,
        }
    }

    /// Method and params of the notification that cancels a turn. `prompt`: the id of the prompt request, which one
    /// dialect requires.
    pub fn cancel(&self, session: &SessionId, prompt: Option<u64>) -> Option<(&'static str, String)> {
        if self.quirks.has(Quirk::OwnMethods) {
            return prompt.map(|id| ("$/cancelRequest", json!({"id": id}).to_string()));
        }
        Some(calls::encode_cancel(session))
    }

    /// Method and params of the notification that cancels a request of parlor; `None`: not supported by this agent.
    pub fn withdraw(&self, id: u64) -> Option<(&'static str, String)> {
        if self.quirks.has(Quirk::OwnMethods) {
            return Some(("$/cancelRequest", json!({"id": id}).to_string()));
        }
        let takes_it = !self.quirks.has(Quirk::FewNotifications);
        takes_it.then(|| ("$/cancel_request", json!({"requestId": id}).to_string()))
    }

    /// The JSON of a response: `Ok` is a result, `Err` an error object. A response that does not match the request
    /// becomes error `-32603`.
    ///
    /// # Errors
    /// The error object to send, as JSON text.
    pub fn answer(&self, form: &RequestForm, answer: &Response) -> Result<String, String> {
        answers::encode(form, answer)
    }

    /// The response to a request when its turn or connection ends. ACP v1 prompt-turn, Cancellation: pending
    /// permissions MUST be answered `cancelled`.
    pub fn fallback(&self, form: &RequestForm) -> Response {
        answers::fallback(form)
    }
}

/// The form of a request, for a response in the same form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestForm {
    pub kind: RequestKind,
    /// Whether options were keyed by `id`; the permission response is then flat as well.
    pub is_flat: bool,
}

impl RequestForm {
    /// The official form.
    pub(crate) fn official(kind: RequestKind) -> Self {
        Self { kind, is_flat: false }
    }
}

/// The method of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestKind {
    /// `session/request_permission`.
    Permission,
    /// `elicitation/create`.
    Elicitation,
    /// `fs/read_text_file`.
    ReadFile,
    /// `fs/write_text_file`.
    WriteFile,
    /// `terminal/create`.
    TerminalCreate,
    /// `terminal/output`.
    TerminalOutput,
    /// `terminal/wait_for_exit`.
    TerminalWait,
    /// `terminal/kill`.
    TerminalKill,
    /// `terminal/release`.
    TerminalRelease,
}
