//! An agent played from a protocol log: the peer and the codec of a live connection, without a link.
//!
//! Messages of parlor are matched with those that the app sends
//! during the replay; for messages that the app sends only after user input, [`Sent`] describes that input.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use bytes::Bytes;
use serde_json::Value;

use super::Command;
use super::codec::tools::exit_info;
use super::codec::value::{Object, first_text, items, parse_object, texts};
use super::codec::{RequestKind, errors};
use super::envelope::{self, Message};
use super::frame::sort_whole;
use super::peer::{Deadlines, PeerState};
use super::tap::Tap;
use super::transport::remote::envelope::with_id;
use crate::model::{
    AgentCommand, AgentEvent, AgentSpec, CloseReason, ConfigValue, FieldValue, ModeId, ModelId, RequestId,
    Response, SessionId,
};

/// The meaning of a message that parlor wrote to the agent.
#[derive(Debug, Clone, PartialEq)]
pub enum Sent {
    /// Nothing to do: the app sends it without user input, or it has no visible effect.
    Nothing,
    /// A request that the user caused. After it was made again, call [`LoggedAgent::claim`].
    Request(Request, UserAction),
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
    Other,
}

#[derive(Debug)]
pub struct LoggedAgent {
    peer: PeerState,
    /// The ids of the app's requests, by the ids of those in the log.
    ids: BTreeMap<u64, u64>,
    /// Ids of requests that were not made again; their responses are ignored.
    unplayed: BTreeSet<u64>,
    is_closed: bool,
}

impl LoggedAgent {
    /// Starts a connection. `last_session` is opened instead of a new session.
    pub fn start(spec: &AgentSpec, last_session: Option<SessionId>, now: Instant) -> Self {
        let mut peer = PeerState::new(spec, Tap::default(), Deadlines::default());
        peer.last_session = last_session;
        peer.start_replay(now.into());
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
                None if self.unplayed.contains(&id) || self.peer.waits_for(id, None) => return,
                _ => {}
            }
        }
        let mut pieces = Vec::new();
        sort_whole(&message, &mut pieces);
        for piece in pieces {
            self.peer.on_piece(piece, now.into());
        }
    }

    pub fn sent(&mut self, text: &str, now: Instant) -> Sent {
        if self.is_closed {
            return Sent::Nothing;
        }
        self.on_deadlines(now);
        envelope::read(text).ok().and_then(|message| self.user_input(message, now)).unwrap_or(Sent::Nothing)
    }

    fn user_input(&mut self, message: Message<'_>, now: Instant) -> Option<Sent> {
        match message {
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
                        self.peer.prompt_session(*self.ids.get(&id)?)
                    }
                    _ => None,
                };
                session.map(Sent::Cancel)
            }
            Message::Response { id, outcome } => {
                let (id, kind) = self.peer.open_request(id)?;
                answer(kind, outcome).map(|answer| Sent::Answer(id, answer))
            }
            Message::Loose(_) | Message::Odd(_) => None,
        }
    }

    /// Matches a request of the log with the one that the app made. Returns false if there is none.
    pub fn claim(&mut self, request: &Request, now: Instant) -> bool {
        let session = request.session.as_ref().map(SessionId::as_str);
        let is_free = |own| self.ids.values().all(|known| *known != own);
        let own = self.peer.find_logged_request(&request.method, session, is_free, now.into());
        self.ids.extend(own.map(|own| (request.id, own)));
        // The log may contain a request twice with the same id.
        let known = self.ids.get(&request.id);
        own.is_some() || known.is_some_and(|own| self.peer.waits_for(*own, Some(&request.method)))
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
        "session/load" | "session/resume" | "unstable_resumeSession" => Some((session_of(&params), folder)),
        _ => None,
    }
}

fn object(params: Option<&str>) -> Object {
    params.and_then(parse_object).unwrap_or_default()
}

fn session_of(params: &Object) -> Option<SessionId> {
    first_text(params, &["sessionId", "session_id", "source_session_id"]).map(SessionId::from)
}

fn user_action(request: &Request, params: &Object) -> UserAction {
    let text = |keys: &[&str]| first_text(params, keys).unwrap_or_default();
    match request.method.as_str() {
        "session/prompt" | "prompt/send" => {
            // The text of the user is last, after a summary of an earlier conversation.
            let texts = items(params.get("prompt").or_else(|| params.get("content")));
            let typed = texts.filter_map(|block| block.get("text")?.as_str()).last();
            UserAction::Prompt(typed.unwrap_or_default().to_owned())
        }
        "session/new" | "session/create" => UserAction::NewSession,
        "session/load" | "session/resume" | "unstable_resumeSession" => {
            request.session.clone().map_or(UserAction::Other, UserAction::Open)
        }
        "session/fork" => UserAction::Fork,
        "session/list" => UserAction::List,
        "session/set_mode" => UserAction::Mode(ModeId::from(text(&["modeId", "mode"]))),
        "session/set_model" => UserAction::Model(ModelId::from(text(&["modelId"]))),
        "session/set_config_option" => {
            let value = match params.get("value") {
                Some(Value::Bool(is_on)) => ConfigValue::Bool(*is_on),
                Some(Value::String(text)) => ConfigValue::Text(text.clone()),
                _ => return UserAction::Other,
            };
            UserAction::Option(text(&["configId"]), value)
        }
        "authenticate" | "auth/login" => UserAction::SignIn(text(&["methodId"])),
        _ => UserAction::Other,
    }
}

fn answer(kind: RequestKind, outcome: Result<&str, &str>) -> Option<Response> {
    let result = match outcome {
        Ok(result) => object(Some(result)),
        Err(error) => return Some(Response::Error(errors::decode(error))),
    };
    let text = |key: &str| first_text(&result, &[key]).unwrap_or_default();
    Some(match kind {
        RequestKind::Permission | RequestKind::FlatPermission => {
            let nested = result.get("outcome").and_then(Value::as_object);
            let mut positions = [Some(&result), nested].into_iter().flatten();
            let option = positions.find_map(|position| first_text(position, &["optionId"]));
            option.map_or(Response::PermissionCancelled, Response::Selected)
        }
        RequestKind::Elicitation => match text("action").as_str() {
            "accept" => {
                let content = result.get("content").and_then(Value::as_object).into_iter().flatten();
                let values = content.map(|(key, value)| (key.clone(), field(value))).collect();
                Response::ElicitationAccepted(Some(values))
            }
            "decline" => Response::ElicitationDeclined,
            _ => Response::ElicitationCancelled,
        },
        RequestKind::ReadFile => Response::FileContent(text("content")),
        RequestKind::WriteFile => Response::Done,
        RequestKind::TerminalCreate => {
            Response::TerminalCreated(first_text(&result, &["terminalId"])?.into())
        }
        RequestKind::TerminalOutput => Response::TerminalOutput {
            output: text("output"),
            is_truncated: result.get("truncated").and_then(Value::as_bool).unwrap_or_default(),
            exit: result.get("exitStatus").and_then(Value::as_object).map(exit_info),
        },
        RequestKind::TerminalWait => Response::TerminalExit(exit_info(&result)),
        // The app responds to these immediately.
        RequestKind::TerminalKill | RequestKind::TerminalRelease => return None,
    })
}

fn field(value: &Value) -> FieldValue {
    match value {
        Value::Bool(is_on) => FieldValue::Bool(*is_on),
        Value::String(text) => FieldValue::Text(text.clone()),
        Value::Array(_) => FieldValue::Texts(texts(Some(value))),
        other => other.as_i64().map_or_else(|| FieldValue::Text(other.to_string()), FieldValue::Integer),
    }
}
