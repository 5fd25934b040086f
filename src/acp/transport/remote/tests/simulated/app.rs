//! The app's side of a simulated connection: commands, and the events of the peer.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::agent::UNKNOWN_SESSION;
use super::user::User;
use crate::acp::gate::Gate;
use crate::acp::tap::Tap;
use crate::acp::transport::Transport;
use crate::acp::{ConnectOptions, Connection, Limits, connect_with};
use crate::model::{
    AgentCommand, AgentEvent, AgentRequest, AgentSpec, Batch, Call, CallTag, ContentBlock, Purpose, Reply,
    RequestId, Response, SessionId, SessionKey, SessionReply, SessionUpdate, SessionWorkspace,
};

/// A connection, and what its events have told.
pub(super) struct App {
    pub(super) connection: Connection,
    tap: Tap,
    /// The open requests of the agent, by the option to select.
    asks: BTreeMap<String, RequestId>,
    /// The sessions in which the agent works of its own accord.
    pub(super) working: BTreeSet<String>,
}

impl App {
    pub(super) fn connect(transport: Box<dyn Transport>, version: u16) -> Self {
        let mut spec = AgentSpec { command: "agent".to_owned(), ..AgentSpec::default() };
        spec.wire.protocol = version;
        let tap = Tap::default();
        let options = ConnectOptions { spec, cwd: "/".into(), tap: tap.clone(), stderr_log: None };
        let connection = connect_with(transport, options, Limits::default(), Gate::default());
        Self { connection, tap, asks: BTreeMap::new(), working: BTreeSet::new() }
    }

    /// Prompts or closes a session, or opens a new one. The first call is `initialize`, which the peer has already sent.
    pub(super) fn call(&self, number: u64, method: &str, session: Option<&str>) {
        let (purpose, call) = match session {
            Some(session) if method == "session/close" => {
                (Purpose::CloseSession(session.into()), Call::CloseSession(session.into()))
            }
            Some(session) => {
                let blocks = vec![ContentBlock::Text("hello".into())];
                (Purpose::Prompt(SessionKey(1)), Call::Prompt(session.into(), blocks))
            }
            None if number == 1 => return,
            None => {
                let workspace = SessionWorkspace { cwd: "/".into(), ..SessionWorkspace::default() };
                (Purpose::NewSession(SessionKey(1)), Call::NewSession(workspace))
            }
        };
        self.connection.commands.send(AgentCommand::Call(CallTag { number, purpose }, call));
    }

    pub(super) fn cancel(&self, session: &str) {
        self.connection.commands.send(AgentCommand::Cancel(session.into()));
    }

    pub(super) fn answer(&mut self, option: String) {
        if let Some(id) = self.asks.remove(&option) {
            self.connection.commands.send(AgentCommand::Respond(id, Response::Selected(option)));
        }
    }

    fn refuse(&self, id: RequestId) {
        self.connection.commands.send(AgentCommand::Respond(id, Response::PermissionCancelled));
    }

    pub(super) fn log(&self) -> String {
        let mut log = format!("working: {:?}\n", self.working);
        for line in self.tap.snapshot(None, usize::MAX) {
            writeln!(log, "{:?} {} {}", line.at, line.direction.word(), line.text).unwrap();
        }
        log
    }
}

/// Handles events of the peer.
pub(super) fn hear(user: &mut User, events: Batch) {
    for event in events {
        match event {
            AgentEvent::Ready(_) => user.hear_outcome(1, String::new(), None),
            AgentEvent::Update(session, SessionUpdate::Notice { .. }) => {
                assert!(user.has_session(session.as_str()), "a notice in an unknown session");
                user.hear_undelivered();
            }
            AgentEvent::Update(session, update) => {
                let (_, _, text) = update.appended_text().expect("only text is sent");
                user.hear_text(session.as_str(), text);
            }
            AgentEvent::Request(id, request) => {
                let AgentRequest::Permission(request) = *request else { panic!("{request:?}") };
                let option = request.options[0].id.clone();
                let (session, number) = option.rsplit_once('-').unwrap();
                assert_eq!(request.session.as_ref().map(SessionId::as_str), Some(session));
                if session == UNKNOWN_SESSION {
                    user.app().refuse(id);
                    continue;
                }
                user.hear_ask(session.to_owned(), number.parse().unwrap());
                user.app().asks.insert(option, id);
            }
            AgentEvent::Replied(tag, outcome) => {
                let session = match &outcome {
                    Ok(Reply::Session(SessionReply { id: Some(id), .. })) => Some(id.to_string()),
                    _ => None,
                };
                user.hear_outcome(tag.number, format!("{outcome:?}"), session.as_deref());
            }
            AgentEvent::TurnBegan(session) => {
                user.app().working.insert(session.to_string());
            }
            AgentEvent::TurnEnded(session, _) => {
                user.app().working.remove(session.as_str());
            }
            AgentEvent::Closed(reason) => user.hear_end(format!("{reason:?}")),
            // A withdrawn request is answered all the same.
            AgentEvent::Started { .. }
            | AgentEvent::Interrupted(_)
            | AgentEvent::SignInOutput(_)
            | AgentEvent::Anomaly(_)
            | AgentEvent::RequestWithdrawn(_) => {}
            other => panic!("{other:?}"),
        }
    }
}
