//! Open requests are known by session, event stream and id.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::FutureExt as _;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::acp::Command;
use crate::acp::frame::{Form, Frame, InboundFrame};
use crate::acp::peer::{Limits, Peer};
use crate::acp::tap::Tap;
use crate::acp::transport::{Ends, Link, OutboundFrame};
use crate::model::{AgentCommand, AgentEvent, AgentSpec, RequestId, Response};

/// A connection after `initialize`, without tasks.
struct Wire {
    peer: Peer,
    ends: Ends,
}

impl Wire {
    fn new() -> Self {
        let mut peer = Peer::new(&AgentSpec::default(), Tap::default(), Limits::default());
        let (Link { outgoing, stopper, .. }, ends) = Link::new();
        peer.start(None, outgoing, stopper, Instant::now());
        let mut this = Self { peer, ends };
        this.hear(None, &json!({"jsonrpc": "2.0", "id": 1, "result": {"protocolVersion": 1}}));
        this.sent();
        this
    }

    /// Receives a message on the event stream of a session, or of the connection. Returns the new requests.
    fn hear(&mut self, stream: Option<&str>, message: &Value) -> Vec<RequestId> {
        let mut frame = Frame::new(Bytes::from(message.to_string()), Form::Line);
        frame.stream = stream.map(Arc::from);
        self.peer.on_piece(InboundFrame::Frame(frame), Instant::now());
        let asked = |event| match event {
            AgentEvent::Request(id, _) => Some(id),
            _ => None,
        };
        self.peer.take_events().into_iter().filter_map(asked).collect()
    }

    fn ask(&mut self, session: &str) -> Vec<RequestId> {
        let options = json!([{"optionId": "yes", "name": "Yes", "kind": "allow_once"}]);
        let params = json!({"sessionId": session, "toolCall": {"toolCallId": "t"}, "options": options});
        let asked =
            json!({"jsonrpc": "2.0", "id": 5, "method": "session/request_permission", "params": params});
        self.hear(None, &asked)
    }

    fn sent(&mut self) -> Vec<OutboundFrame> {
        let mut frames = Vec::new();
        let _ = self.ends.frames.take(&mut frames).now_or_never();
        frames
    }

    /// Answers a request. Returns the session for which the response is sent.
    fn answer(&mut self, id: RequestId) -> Option<String> {
        let answer = Response::PermissionCancelled;
        self.peer.on_command(Command::Agent(AgentCommand::Respond(id, answer)), Instant::now());
        let [frame] = &self.sent()[..] else { panic!("one response") };
        let message: Value = serde_json::from_slice(&frame.bytes).unwrap();
        assert_eq!(message["id"], 5);
        frame.session.as_deref().map(str::to_owned)
    }
}

#[test]
fn responses_go_to_the_session_of_their_request() {
    let mut wire = Wire::new();
    let first = wire.ask("a");
    let second = wire.ask("b");
    assert_eq!((first.len(), second.len()), (1, 1), "the agent numbers the requests of each session");
    assert_eq!(wire.answer(second[0]).as_deref(), Some("b"));
    assert_eq!(wire.answer(first[0]).as_deref(), Some("a"));
}

#[test]
fn an_open_request_that_is_delivered_again_is_ignored() {
    let mut wire = Wire::new();
    let first = wire.ask("a");
    assert!(wire.ask("a").is_empty());
    assert_eq!(wire.answer(first[0]).as_deref(), Some("a"));
    assert_eq!(wire.ask("a").len(), 1, "the id is free again");
}

#[test]
fn requests_without_a_session_belong_to_their_stream() {
    let mut wire = Wire::new();
    let asked = json!({"jsonrpc": "2.0", "id": 5, "method": "_vendor/unknown"});
    wire.hear(Some("a"), &asked);
    let [frame] = &wire.sent()[..] else { panic!("one response") };
    assert_eq!(frame.session.as_deref(), Some("a"));
}

#[test]
fn updates_with_an_id_are_shown_and_confirmed() {
    let mut wire = Wire::new();
    let content = json!({"type": "text", "text": "hi"});
    let update = json!({"sessionUpdate": "agent_message_chunk", "content": content});
    let params = json!({"sessionId": "a", "update": update});
    let message = json!({"jsonrpc": "2.0", "id": 9, "method": "session/update", "params": params});
    let frame = Frame::new(Bytes::from(message.to_string()), Form::Line);
    wire.peer.on_piece(InboundFrame::Frame(frame), Instant::now());
    let events = wire.peer.take_events();
    assert!(events.iter().any(|event| matches!(event, AgentEvent::Update(..))), "{events:?}");
    let [frame] = &wire.sent()[..] else { panic!("one response") };
    assert_eq!(&frame.bytes[..], br#"{"jsonrpc":"2.0","id":9,"result":null}"#);
}
