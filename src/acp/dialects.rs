//! Translators between the protocol and the dialects of five systems; each file has one of them.
//!
//! A translator sits between `peer` and the agent: it changes the requests of parlor into those of the dialect, and the
//! agent's messages into those of the protocol. `peer` and `codec` handle the protocol only.
//! Invariants: for any other agent and for a strict connection, nothing is translated; a message that a translator does not
//! change passes without a copy.

mod activecontext;
mod banjo;
pub mod elephant;
pub mod openoxide;
#[cfg(test)]
mod tests;
pub mod zeptoclaw;

use std::fmt::Debug;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::codec::initialize::AGENT_INFO;
use super::codec::quirks::{is_known, words};
use super::codec::value::{Object, first_text, parse_object};
use super::envelope::{Message, id_number};
use crate::model::{AgentInfo, AgentSpec, Call, Profile, RpcError, SessionId};

/// Names of the systems: of their programs and packages, and those that they report.
const NAMES: &[(&str, Profile)] = &[
    ("openoxide", Profile::OpenOxide),
    ("alex", Profile::Elephant),
    ("elephant", Profile::Elephant),
    ("elephant.ai", Profile::Elephant),
    ("zeptoclaw", Profile::ZeptoClaw),
    ("activecontext", Profile::ActiveContext),
    ("banjo", Profile::Banjo),
    ("banjo-duet", Profile::Banjo),
    ("Banjo Duet", Profile::Banjo),
];

fn profile_of_name(name: &str) -> Option<Profile> {
    NAMES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, profile)| *profile)
}

/// The system of an agent, from its configuration or its command.
pub(crate) fn profile_of(spec: &AgentSpec) -> Option<Profile> {
    if spec.wire.is_strict {
        return None;
    }
    spec.wire.profile.or_else(|| words(spec).find_map(profile_of_name))
}

/// The names in a command that say how parlor speaks with its agent.
pub(super) fn telling_names(spec: &AgentSpec) -> Vec<String> {
    let names = words(spec).filter(|name| profile_of_name(name).is_some() || is_known(name));
    names.map(str::to_owned).collect()
}

/// The translator of an agent that is known before its start.
pub(super) fn before_start(spec: &AgentSpec) -> Box<dyn Dialect> {
    profile_of(spec).and_then(|profile| of(profile, spec, true)).unwrap_or_else(|| Box::new(Official))
}

/// The translator of an agent by its response to `initialize`.
pub(super) fn recognized(result: &str, spec: &AgentSpec) -> Option<Box<dyn Dialect>> {
    if spec.wire.is_strict || spec.wire.profile.is_some() {
        return None;
    }
    of(profile_of_result(&parse_object(result)?)?, spec, false)
}

fn profile_of_result(result: &Object) -> Option<Profile> {
    if openoxide::is_spoken_in(result) {
        return Some(Profile::OpenOxide);
    }
    let info = AGENT_INFO.iter().find_map(|key| result.get(*key)?.as_object())?;
    profile_of_name(&first_text(info, &["name"])?)
}

/// The system that has sent a message, if that is a response to `initialize`.
pub(super) fn sender_of(message: &str) -> Option<Profile> {
    profile_of_result(parse_object(message)?.get("result")?.as_object()?)
}

/// `is_early`: the agent was known before its start.
fn of(profile: Profile, spec: &AgentSpec, is_early: bool) -> Option<Box<dyn Dialect>> {
    let is_remote = spec.remote.is_some();
    Some(match profile {
        Profile::Official => return None,
        Profile::OpenOxide => Box::new(openoxide::OpenOxide::new(&spec.wire, is_early, is_remote)),
        Profile::Elephant => Box::new(elephant::Elephant::default()),
        Profile::ZeptoClaw => Box::new(zeptoclaw::ZeptoClaw::new(is_remote)),
        Profile::ActiveContext => Box::new(activecontext::ActiveContext::default()),
        Profile::Banjo => Box::new(banjo::Banjo::new(is_early, is_remote)),
    })
}

pub type Method = (&'static str, String);

pub trait Dialect: Debug + Send + Sync {
    fn is_official(&self) -> bool {
        false
    }

    fn client_name(&self) -> &'static str {
        "parlor"
    }

    fn initialize(&self) -> Option<Method> {
        None
    }

    /// The result of `initialize`, as the protocol has it.
    fn initialized(&mut self, _result: &str) -> Option<String> {
        None
    }

    /// Adds what is known of the system to what the agent has told.
    fn describe(&self, _info: &mut AgentInfo) {}

    /// Whether the agent sends the first message; `initialize` has to wait for it and may have to be repeated.
    fn speaks_first(&self) -> bool {
        false
    }

    /// Whether the agent requires a `shutdown` request before its input is closed.
    fn shuts_down(&self) -> bool {
        false
    }

    /// Translates a request of parlor. Fails if it exceeds a limit of the agent; then it is not sent.
    fn call(&mut self, _id: u64, _call: &Call, _message: &mut Method) -> Result<(), String> {
        Ok(())
    }

    /// The notification that cancels a turn. `prompt`: the id of its prompt.
    fn cancel(&self, session: &SessionId, _prompt: Option<u64>) -> Option<Method> {
        Some(("session/cancel", json!({"sessionId": session}).to_string()))
    }

    /// The notification that cancels a request; `None`: the agent does not support that.
    fn withdraw(&self, id: u64) -> Option<Method> {
        Some(("$/cancel_request", json!({"requestId": id}).to_string()))
    }

    /// Translates a message of the agent. False if it is one of the protocol.
    fn receive(&mut self, message: &Message<'_>, _text: &str, out: &mut Translation) -> bool {
        let Message::Response { id, outcome } = message else { return false };
        id_number(id).is_some_and(|id| self.on_response(id, *outcome, out))
    }

    fn on_response(&mut self, _id: u64, _outcome: Result<&str, &str>, _out: &mut Translation) -> bool {
        false
    }

    fn deadline(&self) -> Option<Instant> {
        None
    }

    fn on_deadline(&mut self, _out: &mut Translation) {}
}

/// The protocol itself.
#[derive(Debug)]
pub struct Official;

impl Dialect for Official {
    fn is_official(&self) -> bool {
        true
    }
}

#[derive(Debug)]
pub struct Translation {
    pub now: Instant,
    pub to_agent: Vec<(u64, Method)>,
    /// Messages of the agent, as JSON text.
    pub to_parlor: Vec<String>,
    /// Messages that were ignored, and why.
    pub problems: Vec<&'static str>,
}

impl Translation {
    pub fn new(now: Instant) -> Self {
        Self { now, to_agent: Vec::new(), to_parlor: Vec::new(), problems: Vec::new() }
    }

    pub fn update(&mut self, session: &str, update: &Object) {
        let params = json!({"sessionId": session, "update": update});
        let message = json!({"jsonrpc": "2.0", "method": "session/update", "params": params});
        self.to_parlor.push(message.to_string());
    }

    pub fn respond(&mut self, id: u64, outcome: Result<Value, Value>) {
        let (key, value) = match outcome {
            Ok(result) => ("result", result),
            Err(error) => ("error", error),
        };
        self.to_parlor.push(json!({"jsonrpc": "2.0", "id": id, key: value}).to_string());
    }
}

pub fn no_session() -> Value {
    json!({"code": RpcError::RESOURCE_NOT_FOUND, "message": "The agent does not have this session."})
}

pub fn check_size(bytes: usize, limit_bytes: usize) -> Result<(), String> {
    let (kib, limit_kib) = (bytes.div_ceil(1024), limit_bytes / 1024);
    let text = "Shorten it, or put the text in a file and refer to the file.";
    let error = || format!("The prompt is {kib} KiB; this agent's limit is {limit_kib}. {text}");
    if bytes <= limit_bytes { Ok(()) } else { Err(error()) }
}
