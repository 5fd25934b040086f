//! Translates between JSON text and the types of [`crate::model`].
//!
//! Incoming texts are normalised to the official names and shapes (tables in `names`) and decoded item by item.
//! Invariants: no input panics or ends the connection; items that cannot be decoded are passed on raw or reported
//! as an anomaly, never dropped silently; every outgoing message passes strict decoders.

pub(super) mod calls;
pub(super) mod content;
pub(super) mod decoder;
mod elicitation;
pub(super) mod errors;
mod fast;
pub(super) mod initialize;
mod input;
pub(super) mod names;
pub(super) mod options;
mod patches;
pub(super) mod quirks;
pub(super) mod replies;
pub(super) mod requests;
mod strict;
pub(super) mod tools;
mod trace;
mod updates;
mod v2;
pub(super) mod value;
mod wrappers;

#[cfg(test)]
pub(super) mod tests;

use crate::model::{
    AgentCapabilities, AgentEvent, AgentInfo, AgentSpec, AnomalyKind, Batch, Call, CallError, Callbacks,
    Reply, WireSpec,
};

use decoder::Decoder;
pub(crate) use decoder::TurnNews;
pub use errors::decode as decode_error;
pub(crate) use quirks::Quirk;
pub use requests::{Decoded, RequestKind, encode_answer, fallback};

#[derive(Debug)]
pub struct Codec {
    offered: Callbacks,
    pub(super) can: AgentCapabilities,
    wire: WireSpec,
    decoder: Decoder,
    trace: Option<trace::Trace>,
    is_remote: bool,
}

impl Codec {
    pub fn new(spec: &AgentSpec) -> Self {
        Self {
            offered: spec.callbacks,
            can: AgentCapabilities::default(),
            wire: spec.wire.clone(),
            decoder: Decoder::new(spec),
            is_remote: spec.remote.is_some(),
            trace: spec.wire.is_traced.then(trace::Trace::begin),
        }
    }

    /// Decodes something, and appends the events to `out`, whose last event may grow.
    fn decode<T>(&mut self, out: &mut Batch, work: impl FnOnce(&mut Decoder) -> T) -> T {
        std::mem::swap(out, &mut self.decoder.out);
        let result = work(&mut self.decoder);
        std::mem::swap(out, &mut self.decoder.out);
        result
    }

    /// Method and params of a form of `initialize`; `None`: no further form. `name`: that of the client.
    pub fn initialize(&self, attempt: u8, name: &str) -> Option<(&'static str, String)> {
        let forms = initialize::encode(self.offered, !self.is_remote, name, &self.wire);
        let form = forms.into_iter().nth(attempt.into())?;
        Some(("initialize", form.to_string()))
    }

    /// Decodes the response to `initialize`. Fails if it is not an object, or for an unsupported or disabled version.
    pub fn on_initialize(&mut self, result: &str) -> Result<AgentInfo, CallError> {
        let info = initialize::decode(result, self.wire.protocol == 2, &mut self.decoder)?;
        self.decoder.is_v2 = info.protocol_version == 2;
        self.can = info.capabilities;
        Ok(info)
    }

    /// Decodes a notification; `false`: unknown method. A text chunk that continues the last event of `out` (same
    /// session, role and message) is joined to it.
    pub fn notification(&mut self, method: &str, params: Option<&str>, out: &mut Batch) -> bool {
        self.decode(out, |decoder| {
            let (event, unread) = match method {
                "session/update" => {
                    let text = params.unwrap_or("null");
                    if !fast::decode(text, decoder) {
                        updates::decode(text, decoder);
                    }
                    return true;
                }
                // The path of a socket, which is not needed on a pipe.
                "ready" => {
                    decoder.quirks.note(Quirk::READY_LINE);
                    return true;
                }
                // Source: unstable `auth.status`.
                "auth/status_update" => {
                    let mut reported = params.and_then(value::parse_object).unwrap_or_default();
                    let status = replies::decode_auth(&mut reported).map(AgentEvent::AuthStatus);
                    (status, "An authentication notice has no state.")
                }
                "elicitation/complete" => {
                    let id = params.and_then(value::parse_object);
                    let id = id.and_then(|params| value::first_text(&params, elicitation::ID));
                    (id.map(AgentEvent::ElicitationComplete), "An elicitation notice has no id.")
                }
                _ => return false,
            };
            match event {
                Some(event) => decoder.out.push(event),
                None => decoder.anomaly(AnomalyKind::BadMessage, unread),
            }
            true
        })
    }

    pub fn show_unreadable(&mut self, text: &str, out: &mut Batch) {
        self.decode(out, |decoder| updates::show_unreadable(text, decoder));
    }

    pub(crate) fn take_turn_news(&mut self) -> Vec<TurnNews> {
        std::mem::take(&mut self.decoder.turn_news)
    }

    /// Whether the agent reports whether it works. Then the response to a prompt only says that the prompt was accepted.
    /// Source: ACP v2 prompt-lifecycle.
    pub(crate) fn reports_states(&self) -> bool {
        self.decoder.is_v2
    }

    pub(crate) fn learn(&mut self, quirk: Quirk, out: &mut Batch) {
        self.decode(out, |decoder| decoder.learn(quirk));
    }

    /// Fails with the error to respond with, which the caller reports: for an unknown or disabled method, or invalid params.
    pub fn request(&mut self, method: &str, params: Option<&str>, out: &mut Batch) -> Decoded {
        // In version 2, agents access files and run terminals themselves.
        let offered = if self.decoder.is_v2 { Callbacks::NONE } else { self.offered };
        self.decode(out, |decoder| requests::decode(method, params, offered, decoder))
    }

    /// Fails if a required field is missing, and with `-32000` if a stop reason says that sign-in is required.
    pub fn reply(&mut self, call: &Call, result: &str, out: &mut Batch) -> Result<Reply, CallError> {
        self.decode(out, |decoder| replies::decode(call, result, decoder))
    }

    /// Method and params of a request, without content that the agent does not support. `None`: the version has none.
    pub fn call(&mut self, call: &Call) -> Option<(&'static str, String)> {
        let (method, mut params) = calls::encode(call, &self.can, &self.wire, self.decoder.is_v2)?;
        if let Call::LoadSession(session, _) | Call::ResumeSession(session, _) = call {
            self.decoder.opened.insert(session.clone());
        }
        if let Some(trace) = &self.trace {
            trace.mark(&mut params);
        }
        Some((method, serde_json::Value::Object(params).to_string()))
    }
}
