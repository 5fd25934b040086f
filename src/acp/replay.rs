//! An agent played from a protocol log: the peer and the codec of a live connection, without a link.
//!
//! Messages of parlor are matched with those that the app sends during the replay; for messages that the app sends
//! only after user input, [`Sent`] describes that input.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use bytes::Bytes;
use serde_json::Value;

use super::Command;
use super::codec::tools::exit_info;
use super::codec::value::{Object, first_text, items, parse_object, typed};
use super::codec::{RequestKind, errors};
use super::envelope::{self, Message};
use super::frame::sort_whole;
use super::peer::{Limits, Peer, Pending};
use super::tap::Tap;
use super::transport::Link;
use super::transport::remote::envelope::with_id;
use crate::model::{
    AgentCommand, AgentEvent, AgentSpec, Call, CloseReason, ConfigValue, ModeId, ModelId, RequestId,
    Response, SessionId,
};

/// A message that parlor wrote to the agent after something that the user did.
#[derive(Debug, Clone, PartialEq)]
pub enum Sent {
    /// A request, and what the user did (`None`: nothing that is known). After it was made again, call
    /// [`LoggedAgent::claim`].
    Request(Request, Option<UserAction>),
    Answer(RequestId, Response),
    Cancel(SessionId),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    id: u64,
    method: String,
    pub session: Option<SessionId>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum UserAction {
    Prompt(String),
    NewSession,
    Open(SessionId),
    Fork,
    List,
    Mode(ModeId),
    Model(ModelId),
    Option(String, ConfigValue),
    SignIn(String),
}

#[derive(Debug)]
pub struct LoggedAgent {
    peer: Peer,
    /// The ids of the app's requests, by the ids of those in the log.
    ids: BTreeMap<u64, u64>,
    /// Ids of requests that were not made again; their responses are ignored.
    unplayed: BTreeSet<u64>,
    is_closed: bool,
}

impl LoggedAgent {
    /// Starts a connection. `last_session` is opened instead of a new session.
    pub fn start(spec: &AgentSpec, last_session: Option<SessionId>, now: Instant) -> Self {
        let mut peer = Peer::new(spec, Tap::default(), Limits::default());
        peer.last_session = last_session;
        // What is sent is dropped with the other end.
        let (Link { outgoing, stopper, .. }, _) = Link::new();
        peer.start(None, outgoing, stopper, now.into());
        Self { peer, ids: BTreeMap::new(), unplayed: BTreeSet::new(), is_closed: false }
    }

    pub fn command(&mut self, command: AgentCommand, now: Instant) {
        self.peer.on_command(Command::Agent(command), now.into());
    }

    pub fn receive(&mut self, text: &str, now: Instant) {
        if self.is_closed {
            return;
        }
        self.on_deadlines(now);
        let mut message = Bytes::copy_from_slice(text.as_bytes());
        if let Ok(Message::Response { id, .. }) = envelope::read(text)
            && let Some(id) = envelope::id_number(id)
        {
            match self.ids.get(&id) {
                Some(own) if *own != id => message = with_id(text, &own.to_string()).unwrap_or(message),
                None if self.unplayed.contains(&id) || self.peer.calls.get(id).is_some() => return,
                _ => {}
            }
        }
        let mut pieces = Vec::new();
        sort_whole(&message, &mut pieces);
        for piece in pieces {
            self.peer.on_piece(piece, now.into());
        }
    }

    /// Reads a message that parlor wrote. `None`: the app writes it without the user, or it has no visible effect.
    pub fn sent(&mut self, text: &str, now: Instant) -> Option<Sent> {
        if self.is_closed {
            return None;
        }
        self.on_deadlines(now);
        match envelope::read(text).ok()? {
            Message::Request { id, method, params } => {
                let (id, params) = (envelope::id_number(id)?, object(params));
                let request = Request { id, method: method.into_owned(), session: session_of(&params) };
                let action = user_action(&request, &params);
                (!self.claim(&request, now)).then_some(Sent::Request(request, action))
            }
            Message::Notification { method, params } => {
                let params = object(params);
                let session = match &*method {
                    "session/cancel" => session_of(&params),
                    "$/cancelRequest" => {
                        let id = params.get("id").and_then(Value::as_u64)?;
                        match self.peer.calls.get(*self.ids.get(&id)?)?.call {
                            Some((_, Call::Prompt(ref session, _))) => Some(session.clone()),
                            _ => None,
                        }
                    }
                    _ => None,
                };
                session.map(Sent::Cancel)
            }
            Message::Response { id, outcome } => {
                let (id, kind) = self.peer.requests.find(id)?;
                answer(kind, outcome).map(|answer| Sent::Answer(id, answer))
            }
            Message::Loose(_) | Message::Odd(_) => None,
        }
    }

    /// Matches a request of the log with the one that the app made: with the same method and, if possible, session.
    /// Returns false if there is none.
    pub fn claim(&mut self, request: &Request, now: Instant) -> bool {
        let Request { id, method, session } = request;
        if method == "initialize" {
            self.peer.greet_if_due(now.into());
        }
        let is_free = |own: u64| self.ids.values().all(|known| *known != own);
        let is_same = |other: &str| other == method || reopens(other) && reopens(method);
        let waiting = self.peer.calls.waiting();
        let free = waiting.filter(|(own, pending)| is_free(*own) && is_same(pending.method));
        let is_elsewhere = |pending: &Pending| session.is_none() || session_in(pending) != session.as_ref();
        let own = free.min_by_key(|(_, pending)| is_elsewhere(pending));
        if let Some((own, _)) = own {
            self.ids.insert(*id, own);
            return true;
        }
        // The log may contain a request twice with the same id.
        let known = self.ids.get(id).and_then(|own| self.peer.calls.get(*own));
        known.is_some_and(|known| known.method == method)
    }

    /// Marks a request that was not made again, so that its response is skipped.
    pub fn leave_out(&mut self, request: &Request) {
        self.unplayed.insert(request.id);
    }

    pub fn close(&mut self, reason: CloseReason) {
        if !std::mem::replace(&mut self.is_closed, true) {
            self.peer.close(reason);
        }
    }

    pub fn is_closed(&self) -> bool {
        self.is_closed
    }

    pub fn take_events(&mut self) -> Vec<AgentEvent> {
        self.peer.take_events()
    }

    fn on_deadlines(&mut self, now: Instant) {
        while let Some(at) = self.peer.next_deadline().filter(|at| at.into_std() <= now) {
            self.peer.on_deadline(at);
            if self.peer.next_deadline() == Some(at) {
                break;
            }
        }
    }
}

/// The session that a message of parlor opens, and its folder.
pub fn opening(text: &str) -> Option<(Option<SessionId>, Option<String>)> {
    let Ok(Message::Request { method, params, .. }) = envelope::read(text) else { return None };
    let params = object(params);
    let folder = first_text(&params, &["cwd", "workingDir"]);
    match &*method {
        "session/new" | "session/create" => Some((None, folder)),
        method if reopens(method) => Some((session_of(&params), folder)),
        _ => None,
    }
}

fn object(params: Option<&str>) -> Object {
    params.and_then(parse_object).unwrap_or_default()
}

fn session_of(params: &Object) -> Option<SessionId> {
    first_text(params, &["sessionId", "session_id", "source_session_id"]).map(SessionId::from)
}

/// Whether a method opens an existing session. parlor selects one by what it has saved, which a replay does not have.
fn reopens(method: &str) -> bool {
    matches!(method, "session/load" | "session/resume" | "unstable_resumeSession")
}

fn session_in(pending: &Pending) -> Option<&SessionId> {
    match &pending.call.as_ref()?.1 {
        Call::Prompt(session, _)
        | Call::LoadSession(session, _)
        | Call::ResumeSession(session, _)
        | Call::SetMode(session, _)
        | Call::SetModel(session, _)
        | Call::SetOption(session, ..)
        | Call::ForkSession(session, ..) => Some(session),
        _ => None,
    }
}

fn user_action(request: &Request, params: &Object) -> Option<UserAction> {
    let text = |keys: &[&str]| first_text(params, keys).unwrap_or_default();
    Some(match request.method.as_str() {
        "session/prompt" | "prompt/send" => {
            // The text of the user is last, after a summary of an earlier conversation.
            let texts = items(params.get("prompt").or_else(|| params.get("content")));
            let typed = texts.filter_map(|block| block.get("text")?.as_str()).last();
            UserAction::Prompt(typed.unwrap_or_default().to_owned())
        }
        "session/new" | "session/create" => UserAction::NewSession,
        method if reopens(method) => UserAction::Open(request.session.clone()?),
        "session/fork" => UserAction::Fork,
        "session/list" => UserAction::List,
        "session/set_mode" => UserAction::Mode(text(&["modeId", "mode"]).as_str().into()),
        "session/set_model" => UserAction::Model(text(&["modelId"]).as_str().into()),
        "session/set_config_option" => {
            let value = match params.get("value")? {
                Value::Bool(is_on) => ConfigValue::Bool(*is_on),
                value => ConfigValue::Text(value.as_str()?.to_owned()),
            };
            UserAction::Option(text(&["configId"]), value)
        }
        "authenticate" | "auth/login" => UserAction::SignIn(text(&["methodId"])),
        _ => return None,
    })
}

/// Reads a response that the codec wrote. `None`: the app responds without waiting.
fn answer(kind: RequestKind, outcome: Result<&str, &str>) -> Option<Response> {
    let result = match outcome {
        Ok(result) => object(Some(result)),
        Err(error) => return Some(Response::Error(errors::decode(error))),
    };
    let text = |key: &str| first_text(&result, &[key]).unwrap_or_default();
    Some(match kind {
        RequestKind::Permission | RequestKind::FlatPermission => {
            let option = result.get("outcome").and_then(|outcome| outcome.get("optionId")?.as_str());
            option.map_or(Response::PermissionCancelled, |option| Response::Selected(option.to_owned()))
        }
        RequestKind::Elicitation => match text("action").as_str() {
            "accept" => {
                let field = |(key, value): (&String, &Value)| Some((key.clone(), typed(value.clone()).ok()?));
                let content = result.get("content").and_then(Value::as_object);
                Response::ElicitationAccepted(
                    content.map(|content| content.iter().filter_map(field).collect()),
                )
            }
            "decline" => Response::ElicitationDeclined,
            _ => Response::ElicitationCancelled,
        },
        RequestKind::ReadFile => Response::FileContent(text("content")),
        RequestKind::WriteFile => Response::Done,
        RequestKind::TerminalCreate => Response::TerminalCreated(text("terminalId").as_str().into()),
        RequestKind::TerminalOutput => Response::TerminalOutput {
            output: text("output"),
            is_truncated: result.get("truncated") == Some(&Value::Bool(true)),
            exit: result.get("exitStatus").and_then(Value::as_object).map(exit_info),
        },
        RequestKind::TerminalWait => Response::TerminalExit(exit_info(&result)),
        RequestKind::TerminalKill | RequestKind::TerminalRelease => return None,
    })
}
