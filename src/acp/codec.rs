//! The translation between JSON text and [`crate::model`].
//!
//! Duty: build what is sent from the official types; bring what comes in into the official names and
//! shapes (tables in `names`), decode it item by item with the official types, and hand on model values.
//! Not its duty: ids, pending calls, framing (`peer`, `frame`), or what an event means (`app`).
//! Data enters as JSON text of `params`, `result` or `error`, and leaves as [`AgentEvent`]s, [`AgentRequest`]s and
//! [`Reply`]s; the way back is the same in reverse.
//! Invariants: nothing here fails for good or panics, whatever comes in; what is not understood is kept
//! raw or reported as an anomaly, never lost in silence; every outgoing message passes strict decoders.

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

use crate::model::{
    AgentCapabilities, AgentEvent, AgentInfo, AgentRequest, AgentSpec, AnomalyKind, Call, CallError,
    Callbacks, Reply, Response, RpcError, SessionId, WireSpec,
};

use decoder_state::DecoderState;
pub(crate) use decoder_state::TurnNews;
use quirks::Quirks;
pub(crate) use quirks::{Quirk, profile_of, telling_names};

/// Whether an answer to `initialize`, given as the whole message, is of the system whose updates come as events: on an
/// event stream of its own if it is reached over HTTP.
pub(crate) fn speaks_events(answer: &str) -> bool {
    let answer = value::parse_object(answer);
    let result = answer.as_ref().and_then(|answer| answer.get("result")?.as_object());
    result.is_some_and(openoxide::is_spoken_in)
}

/// The translator of one connection. It holds what was learned of the agent: its quirks, its
/// capabilities, and the little memory that some dialects need.
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
    /// A translator for one life of this agent. Quirks known by the command's name are in force at once.
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

    /// Method and params of the form of `initialize` to try: 0 is the official form with all that
    /// parlor can do, 1 the same without unstable parts, for agents that refuse what they do not know, 2 that
    /// of a system with a protocol of its own (which comes first where the agent is known to be that system).
    /// `None`: there is no further form.
    pub fn initialize(&self, attempt: u8) -> Option<(&'static str, String)> {
        let offer = initialize::Offer { callbacks: self.offered, runs_sign_in: !self.is_remote };
        match attempt.checked_sub(u8::from(self.wire.protocol == 2)) {
            Some(attempt) => initialize::encode(attempt, offer, &self.quirks),
            None => Some(v2::initialize(offer)),
        }
    }

    /// Reads the answer to `initialize`.
    ///
    /// # Errors
    /// [`CallError::Malformed`] if it is no object, [`CallError::OtherVersion`] if it names a version that parlor
    /// does not speak, or was not told to speak.
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

    /// Reads a notification; `false`: the method is unknown. A text chunk that continues the last event
    /// of `out` (same session, role and message) is joined to it.
    pub fn notification(&mut self, method: &str, params: Option<&str>, out: &mut Vec<AgentEvent>) -> bool {
        match method {
            "session/update" => {
                let text = params.unwrap_or("null");
                // Chunks that are to be mended go the long way.
                let is_plain = !self.quirks.has(Quirk::TrimmedChunks);
                if !(is_plain && fast::decode(text, &mut self.memory, out)) {
                    updates::decode(text, &mut self.memory, &mut self.quirks, out);
                }
                true
            }
            // Where its socket is, which is of no use on a pipe.
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
                        "A notice about the sign-in says nothing of its state.",
                    )),
                }
                true
            }
            "elicitation/complete" => {
                match params.and_then(elicitation::decode_complete) {
                    Some(id) => out.push(AgentEvent::ElicitationComplete(id)),
                    None => out.push(value::anomaly(
                        AnomalyKind::BadMessage,
                        "A notice that a page was dealt with names no page.",
                    )),
                }
                true
            }
            _ => updates::decode_event(method, params, &mut self.memory, &mut self.quirks, out),
        }
    }

    /// Reads a message that is no JSON-RPC: one system's events may come bare. `false`: it is none.
    pub fn bare_event(&mut self, text: &str, out: &mut Vec<AgentEvent>) -> bool {
        updates::decode_event("", Some(text), &mut self.memory, &mut self.quirks, out)
    }

    /// What the last messages told of turns beside their updates.
    pub(crate) fn take_turn_news(&mut self) -> Vec<TurnNews> {
        let news = std::mem::take(&mut self.memory.turn_news);
        self.memory.tells_ends |= news.iter().any(|news| matches!(news, TurnNews::Ended(..)));
        news
    }

    /// Whether an answer to a prompt says no more than that it came, because something else tells the end of
    /// the turn: in version 2 a state, in one dialect `done`. `has_news`: something of the turn was told before
    /// the answer, which then counts as the end in that dialect.
    /// Source: ACP v2 prompt-lifecycle: the response says that the prompt was accepted.
    pub(crate) fn is_only_receipt(&self, outcome: Result<&str, &str>, has_news: bool) -> bool {
        if self.memory.is_v2() {
            return outcome.is_ok();
        }
        self.quirks.has(Quirk::OwnMethods)
            // Over HTTP the receipt may arrive after the first events of the turn.
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

    /// Whether a turn that is not accepted yet cannot have ended: a state that is told is an older one.
    pub(crate) fn accepts_before_end(&self) -> bool {
        self.memory.is_v2()
    }

    /// Whether a quirk is in force.
    pub(crate) fn has(&self, quirk: Quirk) -> bool {
        self.quirks.has(quirk)
    }

    /// Learns a quirk of the frames; the first time it is told.
    pub(crate) fn learn(&mut self, quirk: Quirk, out: &mut Vec<AgentEvent>) {
        self.quirks.learn(quirk, out);
    }

    /// Reads a request. Anomalies met on the way go to `out`; that a request was refused is the caller's to
    /// tell.
    ///
    /// # Errors
    /// What to answer with: `-32601` for a method that parlor does not know or does not offer to this
    /// agent, `-32602` for params that cannot be read.
    pub fn request(
        &mut self,
        method: &str,
        params: Option<&str>,
        out: &mut Vec<AgentEvent>,
    ) -> Result<(AgentRequest, RequestForm), RpcError> {
        let offered = if self.memory.is_v2() { v2::CALLBACKS } else { self.offered };
        requests::decode(method, params, offered, &mut self.memory, &mut self.quirks, out)
    }

    /// Reads the result of a call of ours. Anomalies met on the way go to `out`.
    ///
    /// # Errors
    /// [`CallError::Malformed`] if what the call is for is missing; [`CallError::Agent`] with
    /// `-32000` where an agent tells by a stop reason that it wants a sign-in.
    pub fn reply(
        &mut self,
        call: &Call,
        result: &str,
        out: &mut Vec<AgentEvent>,
    ) -> Result<Reply, CallError> {
        replies::decode(call, result, &mut self.memory, &self.quirks, out)
    }

    /// Reads an error of any shape. Its message is the best text that was found, wherever it was hidden.
    pub fn error(&self, error: &str) -> RpcError {
        errors::decode(error)
    }

    /// Method and params of a call. What the agent does not take (MCP transports, more folders, kinds of
    /// prompt blocks) is left out or replaced by what it takes.
    pub fn call(&self, call: &Call) -> (&'static str, String) {
        calls::encode(call, &self.can)
    }

    /// The same in the words of this agent: form 0 first, the others where [`Self::has_other_form`] says so.
    /// `None`: there is no such form.
    ///
    /// # Errors
    /// [`CallError::NotSent`] for what the agent is known not to take.
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

    /// Whether another form of this call may do after this error.
    pub fn has_other_form(&self, call: &Call, error: &RpcError) -> bool {
        match call {
            Call::ResumeSession(..) if self.quirks.has(Quirk::OwnMethods) => {
                error.code == RpcError::INVALID_PARAMS
            }
            Call::SetMode(..) => self.quirks.has(Quirk::OldSetMode) && error.code == RpcError::INVALID_PARAMS,
            _ => false,
        }
    }

    /// Method and params of the notification that cancels a session's turn. `prompt`: the id of the request
    /// that began it; one system wants to be told that, and there is nothing to cancel without it.
    pub fn cancel(&self, session: &SessionId, prompt: Option<u64>) -> Option<(&'static str, String)> {
        if self.quirks.has(Quirk::OwnMethods) {
            return prompt.map(|id| ("$/cancelRequest", format!("{{\"id\":{id}}}")));
        }
        Some(calls::encode_cancel(session))
    }

    /// Method and params of the notification that withdraws a request of ours; `None`: this agent takes none.
    pub fn withdraw(&self, id: u64) -> Option<(&'static str, String)> {
        if self.quirks.has(Quirk::OwnMethods) {
            return Some(("$/cancelRequest", format!("{{\"id\":{id}}}")));
        }
        let takes_it = !self.quirks.has(Quirk::FewNotifications);
        takes_it.then(|| ("$/cancel_request", format!("{{\"requestId\":{id}}}")))
    }

    /// The JSON of an answer: `Ok` is a result, `Err` an error object. An answer that does not fit the
    /// request becomes error `-32603`.
    ///
    /// # Errors
    /// The error object to send, as JSON text.
    pub fn answer(&self, form: &RequestForm, answer: &Response) -> Result<String, String> {
        answers::encode(form, answer)
    }

    /// The answer that fits when nobody answers any more.
    /// ACP v1 prompt-turn, Cancellation: pending permissions MUST be answered `cancelled`.
    pub fn fallback(&self, form: &RequestForm) -> Response {
        answers::fallback(form)
    }
}

/// How a request was spelled, so that its answer is spelled alike.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestForm {
    pub kind: RequestKind,
    /// Whether options were keyed by `id`: the permission reply is then flat, too.
    pub is_flat: bool,
}

impl RequestForm {
    /// The official spelling.
    pub(crate) fn official(kind: RequestKind) -> Self {
        Self { kind, is_flat: false }
    }
}

/// What was asked.
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
