//! A complete connection: for any input, each call gets one reply, and the end is reported once and last.

#![no_main]

use libfuzzer_sys::fuzz_target;
use parlor::acp::gate::Gate;
use parlor::acp::tap::Tap;
use parlor::acp::transport::memory;
use parlor::acp::{ConnectOptions, Limits, connect_with};
use parlor::model::{
    AgentCommand, AgentEvent, AgentSpec, Call, CallTag, ContentBlock, Purpose, SessionId, SessionKey, SessionWorkspace,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt, split};

fuzz_target!(|bytes: &[u8]| {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(play(bytes));
});

async fn play(bytes: &[u8]) {
    let (transport, agent) = memory::pair(1 << 16);
    let options = ConnectOptions {
        spec: AgentSpec { command: "agent".to_owned(), ..AgentSpec::default() },
        cwd: std::env::temp_dir(),
        tap: Tap::default(),
        stderr_log: None,
    };
    let mut connection = connect_with(Box::new(transport), options, Limits::default(), Gate::default());
    let workspace = SessionWorkspace { cwd: "/w".into(), ..SessionWorkspace::default() };
    let prompt = Call::Prompt(SessionId::from("s"), vec![ContentBlock::Text("hi".to_owned().into())]);
    for (number, call) in [(1, Call::NewSession(workspace)), (2, prompt)] {
        let tag = CallTag { number, purpose: Purpose::Prompt(SessionKey::default()) };
        connection.commands.send(AgentCommand::Call(tag, call));
    }
    let (mut heard, mut said) = split(agent);
    let deaf = tokio::spawn(async move {
        let mut all = Vec::new();
        let _ = heard.read_to_end(&mut all).await;
    });
    let first = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"protocolVersion\":1,\"agentCapabilities\":{}}}\n";
    let _ = said.write_all(first).await;
    let _ = said.write_all(bytes).await;
    let _ = said.shutdown().await;
    let mut events = Vec::new();
    while let Some(batch) = connection.events.recv().await {
        events.extend(batch);
    }
    assert!(matches!(events.pop(), Some(AgentEvent::Closed(_))), "the end is the last event");
    let is_closed = |event: &AgentEvent| matches!(event, AgentEvent::Closed(_));
    assert!(!events.iter().any(is_closed), "the end is reported once");
    for number in [1, 2] {
        let is_reply = |event: &&AgentEvent| matches!(event, AgentEvent::Replied(tag, _) if tag.number == number);
        assert_eq!(events.iter().filter(is_reply).count(), 1, "one reply to call {number}");
    }
    deaf.abort();
}
