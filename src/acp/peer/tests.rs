//! Tests of the peer, with a scripted agent at an in-memory pipe.

mod calls;
mod handshake;
mod identity;
mod input;
mod life;
mod pace;

use std::collections::VecDeque;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf, split};
use tokio::time::timeout;

use super::Limits;
use crate::acp::gate::Gate;
use crate::acp::tap::Tap;
use crate::acp::transport::Transport;
use crate::acp::transport::memory;
use crate::acp::{ConnectOptions, Connection};
use crate::model::{
    AgentCommand, AgentEvent, AgentRequest, AgentSpec, AnomalyKind, Call, CallError, CallTag, CloseReason,
    ContentBlock, Purpose, Reply, RequestId, SessionId, SessionKey, SessionUpdate, SessionWorkspace,
};

fn connect_with(transport: Box<dyn Transport>, options: ConnectOptions, limits: Limits) -> Connection {
    crate::acp::connect_with(transport, options, limits, Gate::default())
}

const PATIENCE: Duration = Duration::from_secs(20);

/// The agent's side of the pipe.
struct Agent {
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    output: WriteHalf<DuplexStream>,
}

impl Agent {
    async fn write(&mut self, text: &str) {
        timeout(PATIENCE, self.output.write_all(text.as_bytes())).await.expect("timed out").unwrap();
    }

    async fn say(&mut self, message: Value) {
        self.write(&format!("{message}\n")).await;
    }

    /// The next line from parlor; `None` at the end.
    async fn hear_line(&mut self) -> Option<String> {
        timeout(PATIENCE, self.lines.next_line()).await.expect("timed out").unwrap()
    }

    async fn hear(&mut self) -> Value {
        serde_json::from_str(&self.hear_line().await.expect("a message")).expect("JSON")
    }

    async fn answer_initialize(&mut self) {
        let message = self.hear().await;
        assert_eq!((&message["id"], &message["method"]), (&json!(1), &json!("initialize")));
        self.say(
            json!({"jsonrpc": "2.0", "id": 1, "result": {"protocolVersion": 1, "agentCapabilities": {}}}),
        )
        .await;
    }
}

/// The app's side.
struct App {
    connection: Connection,
    events: VecDeque<AgentEvent>,
}

impl App {
    async fn try_next(&mut self) -> Option<AgentEvent> {
        while self.events.is_empty() {
            let batch = timeout(PATIENCE, self.connection.events.recv()).await.expect("timed out");
            self.events.extend(batch?);
        }
        self.events.pop_front()
    }

    async fn next(&mut self) -> AgentEvent {
        self.try_next().await.expect("an event")
    }

    /// The next event that is not an anomaly.
    async fn next_regular(&mut self) -> AgentEvent {
        loop {
            let event = self.next().await;
            if !matches!(event, AgentEvent::Anomaly(_)) {
                return event;
            }
        }
    }

    async fn anomaly(&mut self) -> AnomalyKind {
        match self.next().await {
            AgentEvent::Anomaly(anomaly) => anomaly.kind,
            other => panic!("no anomaly: {other:?}"),
        }
    }

    async fn ask(&mut self) -> (RequestId, AgentRequest) {
        match self.next_regular().await {
            AgentEvent::Request(id, request_id) => (id, *request_id),
            other => panic!("no ask: {other:?}"),
        }
    }

    async fn reply(&mut self) -> (u64, Result<Reply, CallError>) {
        match self.next_regular().await {
            AgentEvent::Replied(tag, reply) => (tag.number, reply),
            other => panic!("no reply: {other:?}"),
        }
    }

    async fn ready(&mut self) {
        assert!(matches!(self.next().await, AgentEvent::Started { .. }));
        assert!(matches!(self.next().await, AgentEvent::Ready(_)));
    }

    /// The text of all chunks, until there are `count` characters.
    async fn chunks(&mut self, count: usize) -> String {
        let mut all = String::new();
        while all.len() < count {
            match self.next().await {
                AgentEvent::Update(_, SessionUpdate::Chunk { text, .. }) => all.push_str(&text),
                other => panic!("no chunk: {other:?}"),
            }
        }
        all
    }

    /// All events until `Closed`, which must be the last one.
    async fn rest(&mut self) -> (Vec<AgentEvent>, CloseReason) {
        let mut events = Vec::new();
        while let Some(event) = self.try_next().await {
            events.push(event);
        }
        match events.pop() {
            Some(AgentEvent::Closed(reason)) => {
                assert!(!events.iter().any(|event| matches!(event, AgentEvent::Closed(_))));
                (events, reason)
            }
            other => panic!("`Closed` is not the last event: {other:?}"),
        }
    }

    fn send(&self, command: AgentCommand) {
        self.connection.commands.send(command);
    }

    fn call(&self, number: u64, purpose: Purpose, call: Call) {
        self.send(AgentCommand::Call(CallTag { number, purpose }, call));
    }

    fn new_session(&self, number: u64) {
        let workspace = SessionWorkspace { cwd: "/w".into(), ..SessionWorkspace::default() };
        self.call(number, Purpose::NewSession(SessionKey(1)), Call::NewSession(workspace));
    }

    fn prompt(&self, number: u64) {
        let blocks = vec![ContentBlock::Text("hello".into())];
        self.call(number, Purpose::Prompt(SessionKey(1)), Call::Prompt("s1".into(), blocks));
    }

    fn set_mode(&self, number: u64) {
        self.call(number, Purpose::SetMode(SessionKey(1)), Call::SetMode("s1".into(), "ask".into()));
    }
}

fn options(tap: Tap) -> ConnectOptions {
    ConnectOptions { spec: AgentSpec::default(), cwd: PathBuf::from("/"), tap, stderr_log: None }
}

fn start_with(limits: Limits, pipe_bytes: usize) -> (App, Agent) {
    start_as(options(Tap::default()), limits, pipe_bytes)
}

fn start_as(options: ConnectOptions, limits: Limits, pipe_bytes: usize) -> (App, Agent) {
    let (transport, stream) = memory::pair(pipe_bytes);
    let connection = connect_with(Box::new(transport), options, limits);
    let (input, output) = split(stream);
    let agent = Agent { lines: BufReader::new(input).lines(), output };
    (App { connection, events: VecDeque::new() }, agent)
}

async fn ready() -> (App, Agent) {
    let (mut app, mut agent) = start_with(Limits::default(), 64 << 10);
    agent.answer_initialize().await;
    app.ready().await;
    (app, agent)
}

fn chunk(text: &str) -> Value {
    json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s1",
        "update": {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}}})
}

fn permission(id: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "session/request_permission", "params": {
        "sessionId": "s1", "toolCall": {"toolCallId": "t1", "title": "Edit"},
        "options": [{"optionId": "yes", "name": "Yes", "kind": "allow_once"}]}})
}

fn read_file(id: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "fs/read_text_file",
        "params": {"sessionId": "s1", "path": "/w/a"}})
}

fn session() -> SessionId {
    "s1".into()
}
