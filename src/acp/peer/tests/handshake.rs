//! Workarounds of profiles: the handshake, the end of turns, and the shutdown.

use super::*;
use crate::model::{Profile, Remote, RpcError, StopReason};

/// A connection to an agent with a profile, in a temporary folder.
fn start(profile: Profile) -> (App, Agent, tempfile::TempDir) {
    start_spec(AgentSpec { command: "agent".to_owned(), ..AgentSpec::default() }, profile)
}

fn start_spec(mut spec: AgentSpec, profile: Profile) -> (App, Agent, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    spec.wire.profile = Some(profile);
    let options = ConnectOptions { spec, cwd: folder.path().to_owned(), ..options(Tap::default()) };
    let (app, agent) = start_as(options, Limits::default(), 64 << 10);
    (app, agent, folder)
}

/// A ready connection to `OpenOxide`.
async fn oxide() -> (App, Agent, tempfile::TempDir) {
    let (mut app, mut agent, folder) = start(Profile::OpenOxide);
    agent.write("ready\n").await;
    let hello = agent.hear().await;
    assert_eq!(hello["params"]["protocolVersion"], json!("0.1"));
    agent.say(json!({"id": 1, "result": {"protocolVersion": "0.1", "serverInfo": {"name": "x"}}})).await;
    assert!(matches!(app.next().await, AgentEvent::Started { .. }));
    assert!(matches!(app.next_regular().await, AgentEvent::Ready(_)));
    (app, agent, folder)
}

fn event(name: &str) -> Value {
    json!({"method": name, "params": {"session_id": "s1", "text": "x"}})
}

fn ended(reply: Result<Reply, CallError>) -> StopReason {
    match reply {
        Ok(Reply::TurnEnded { reason, .. }) => reason,
        other => panic!("no end of a turn: {other:?}"),
    }
}

#[tokio::test]
async fn initialize_is_sent_and_retried_if_an_agent_does_not_speak_first() {
    let (_app, mut agent, _folder) = start(Profile::OpenOxide);
    // If the agent sends nothing, `initialize` is sent after a delay, and resent without a response.
    let first = agent.hear().await;
    let second = agent.hear().await;
    assert_eq!((&first["method"], &first["id"]), (&json!("initialize"), &json!(1)));
    assert_eq!(first, second);
}

#[tokio::test]
async fn a_turn_ends_once_with_its_event_or_its_response() {
    let (mut app, mut agent, _folder) = oxide().await;
    app.prompt(1);
    assert_eq!(agent.hear().await["method"], json!("prompt/send"));
    agent.say(json!({"id": 2, "result": {}})).await;
    agent.say(event("text_delta")).await;
    assert_eq!(app.chunks(1).await, "x");
    agent.say(event("done")).await;
    assert_eq!(ended(app.reply().await.1), StopReason::EndTurn);
    // The next turn ends with the response; the event after it must not end the one after.
    app.prompt(2);
    assert_eq!(agent.hear().await["id"], json!(3));
    agent.say(event("text_delta")).await;
    assert_eq!(app.chunks(1).await, "x");
    agent.say(json!({"id": 3, "result": {"stop_reason": "max_tokens"}})).await;
    assert_eq!(ended(app.reply().await.1), StopReason::MaxTokens);
    app.prompt(3);
    assert_eq!(agent.hear().await["id"], json!(4));
    agent.say(event("done")).await;
    agent.say(event("text_delta")).await;
    assert_eq!(app.chunks(1).await, "x");
    agent.say(event("done")).await;
    assert_eq!(app.reply().await.0, 3);
}

#[tokio::test]
async fn over_http_a_response_after_the_first_updates_does_not_end_the_turn() {
    let remote = Remote { url: "http://agent.invalid".to_owned(), ..Remote::default() };
    let spec = AgentSpec { remote: Some(remote), ..AgentSpec::default() };
    let (mut app, mut agent, _folder) = start_spec(spec, Profile::OpenOxide);
    assert_eq!(agent.hear().await["method"], json!("initialize"));
    agent.say(json!({"id": 1, "result": {"protocolVersion": "0.1", "serverInfo": {"name": "x"}}})).await;
    assert!(matches!(app.next().await, AgentEvent::Started { .. }));
    assert!(matches!(app.next_regular().await, AgentEvent::Ready(_)));
    app.prompt(1);
    agent.hear().await;
    agent.say(event("text_delta")).await;
    agent.say(json!({"id": 2, "result": {}})).await;
    agent.say(event("text_delta")).await;
    assert_eq!(app.chunks(2).await, "xx");
    agent.say(event("done")).await;
    assert_eq!(ended(app.reply().await.1), StopReason::EndTurn);
}

#[tokio::test]
async fn a_turn_fails_only_if_an_error_is_its_last_event() {
    let (mut app, mut agent, _folder) = oxide().await;
    let error = json!({"method": "error", "params": {"session_id": "s1", "message": "overloaded"}});
    app.prompt(1);
    agent.hear().await;
    agent.say(error.clone()).await;
    agent.say(event("done")).await;
    assert!(matches!(app.next_regular().await, AgentEvent::Update(_, SessionUpdate::Notice { .. })));
    let (tag, reply) = app.reply().await;
    let Err(CallError::Agent(failed)) = reply else { panic!("{reply:?}") };
    assert_eq!((tag, failed.message.as_str()), (1, "The turn ended with the error above."));
    assert!(failed.data.unwrap().0.contains("overloaded"));
    app.prompt(2);
    agent.hear().await;
    agent.say(error).await;
    agent.say(event("text_delta")).await;
    agent.say(event("done")).await;
    assert!(matches!(app.next_regular().await, AgentEvent::Update(_, SessionUpdate::Notice { .. })));
    assert_eq!(app.chunks(1).await, "x");
    assert_eq!(ended(app.reply().await.1), StopReason::EndTurn);
}

#[tokio::test]
async fn cancel_contains_the_prompt_id_and_is_not_sent_without_a_prompt() {
    let (app, mut agent, _folder) = oxide().await;
    app.send(AgentCommand::Cancel(session()));
    app.prompt(1);
    assert_eq!(agent.hear().await["method"], json!("prompt/send"), "no prompt to cancel");
    app.send(AgentCommand::Cancel(session()));
    let cancel = agent.hear().await;
    assert_eq!((&cancel["method"], &cancel["params"]), (&json!("$/cancelRequest"), &json!({"id": 2})));
}

#[tokio::test]
async fn shutdown_is_requested_and_its_response_ends_the_wait() {
    let (mut app, mut agent, _folder) = oxide().await;
    app.connection.commands.stop(false);
    let shutdown = agent.hear().await;
    assert_eq!(shutdown["method"], json!("shutdown"));
    agent.say(json!({"id": shutdown["id"], "result": null})).await;
    assert_eq!(agent.hear_line().await, None, "then the input is closed");
    drop(agent);
    assert_eq!(app.rest().await.1, CloseReason::Stopped);
}

#[tokio::test]
async fn an_agent_that_does_not_shut_down_is_stopped() {
    let (_app, mut agent, _folder) = {
        let (app, agent, folder) = oxide().await;
        app.connection.commands.stop(false);
        (app, agent, folder)
    };
    assert_eq!(agent.hear().await["method"], json!("shutdown"));
    assert_eq!(agent.hear_line().await, None);
}

#[tokio::test]
async fn the_id_of_the_last_session_is_read_from_the_folder() {
    let (mut app, mut agent, folder) = start(Profile::OpenOxide);
    std::fs::create_dir_all(folder.path().join(".openoxide/sessions")).unwrap();
    std::fs::write(folder.path().join(".openoxide/sessions/.current"), "sess_old\n").unwrap();
    drop((app, agent));
    let mut spec = AgentSpec { command: "agent".to_owned(), ..AgentSpec::default() };
    spec.wire.profile = Some(Profile::OpenOxide);
    let cwd = folder.path().to_owned();
    (app, agent) =
        start_as(ConnectOptions { spec, cwd, ..options(Tap::default()) }, Limits::default(), 64 << 10);
    agent.hear().await;
    agent.say(json!({"id": 1, "result": {"protocolVersion": "0.1", "serverInfo": {"name": "x"}}})).await;
    assert!(matches!(app.next().await, AgentEvent::Started { .. }));
    let AgentEvent::Ready(info) = app.next_regular().await else { panic!("not ready") };
    assert_eq!(info.last_session, Some("sess_old".into()));
}

#[tokio::test]
async fn cancellations_are_not_sent_to_agents_without_notifications() {
    let (mut app, mut agent, _folder) = start(Profile::ZeptoClaw);
    agent.answer_initialize().await;
    app.ready().await;
    app.set_mode(1);
    agent.hear().await;
    app.send(AgentCommand::CancelCall(CallTag { number: 1, purpose: Purpose::SetMode(SessionKey(1)) }));
    app.set_mode(2);
    assert_eq!(agent.hear().await["method"], json!("session/set_mode"));
}

#[tokio::test]
async fn prompts_over_the_limit_are_not_sent() {
    let (mut app, mut agent, _folder) = start(Profile::ZeptoClaw);
    agent.answer_initialize().await;
    app.ready().await;
    let blocks = vec![ContentBlock::Text("x".repeat(200_000).into())];
    app.call(1, Purpose::Prompt(SessionKey(1)), Call::Prompt("s1".into(), blocks));
    let (_, reply) = app.reply().await;
    let Err(CallError::NotSent { error }) = reply else { panic!("{reply:?}") };
    assert!(error.contains("196 KiB") && error.contains("limit is 100"), "{error}");
    app.prompt(2);
    assert_eq!(agent.hear().await["params"]["prompt"][0]["text"], json!("hello"));
}

#[tokio::test]
async fn acp_v2_falls_back_if_the_agent_does_not_support_it() {
    let mut spec = AgentSpec { command: "agent".to_owned(), ..AgentSpec::default() };
    spec.wire.protocol = 2;
    let options = ConnectOptions { spec, ..options(Tap::default()) };
    let (mut app, mut agent) = start_as(options, Limits::default(), 64 << 10);
    assert_eq!(agent.hear().await["params"]["protocolVersion"], json!(2));
    agent.say(json!({"id": 1, "error": {"code": -32022, "message": "unsupported"}})).await;
    assert_eq!(agent.hear().await["params"]["protocolVersion"], json!(1));
    agent.say(json!({"id": 2, "result": {"protocolVersion": 1, "agentCapabilities": {}}})).await;
    assert!(matches!(app.next().await, AgentEvent::Started { .. }));
    let AgentEvent::Ready(info) = app.next_regular().await else { panic!("not ready") };
    assert_eq!(info.protocol_version, 1);
    app.set_mode(1);
    assert_eq!(agent.hear().await["method"], json!("session/set_mode"));
}

#[tokio::test]
async fn acp_v2_a_refused_version_1_is_reported() {
    // The code of version 2 says so; other forms of `initialize` cannot help.
    let (mut app, mut agent) = start_with(Limits::default(), 64 << 10);
    agent.hear().await;
    let error = json!({"code": -32022, "message": "no", "data": {"requested": 1, "supported": [2, 3]}});
    agent.say(json!({"id": 1, "error": error})).await;
    assert!(matches!(app.next().await, AgentEvent::Started { .. }));
    let failed =
        |theirs: &str| AgentEvent::InitializeFailed(CallError::OtherVersion { theirs: theirs.into() });
    assert_eq!(app.next().await, failed("2"));
    // Other errors may be about the form.
    let (mut app, mut agent) = start_with(Limits::default(), 64 << 10);
    for id in 1..=3 {
        agent.hear().await;
        let message = if id == 1 { "Unsupported protocol version" } else { "what?" };
        agent.say(json!({"id": id, "error": {"code": -32602, "message": message}})).await;
    }
    assert!(matches!(app.next().await, AgentEvent::Started { .. }));
    assert_eq!(app.next_regular().await, failed("2"));
}

fn idle() -> Value {
    state(&json!({"sessionUpdate": "state_update", "state": "idle", "stopReason": "max_tokens"}))
}

fn busy() -> Value {
    state(&json!({"sessionUpdate": "state_update", "state": "running"}))
}

fn state(state: &Value) -> Value {
    json!({"method": "session/update", "params": {"sessionId": "s1", "update": state}})
}

/// A connection to an agent that speaks version 2.
async fn ready_v2() -> (App, Agent) {
    let mut spec = AgentSpec { command: "agent".to_owned(), ..AgentSpec::default() };
    spec.wire.protocol = 2;
    let options = ConnectOptions { spec, ..options(Tap::default()) };
    let (mut app, mut agent) = start_as(options, Limits::default(), 64 << 10);
    agent.hear().await;
    let info = json!({"name": "x", "version": "1"});
    let hello = json!({"protocolVersion": 2, "info": info, "capabilities": {"session": {}}});
    agent.say(json!({"id": 1, "result": hello})).await;
    app.ready().await;
    (app, agent)
}

#[tokio::test]
async fn acp_v2_a_repeated_idle_state_changes_nothing() {
    let (mut app, mut agent) = ready_v2().await;
    for (number, id) in [(1, 2), (2, 3)] {
        app.prompt(number);
        agent.hear().await;
        agent.say(json!({"id": id, "result": {"messageId": "m"}})).await;
        // Of the turn before.
        agent.say(idle()).await;
        agent.say(busy()).await;
        agent.say(chunk("more")).await;
        assert_eq!(app.chunks(4).await, "more", "the turn continues");
        agent.say(idle()).await;
        assert_eq!(app.reply().await.0, number);
    }
}

#[tokio::test]
async fn acp_v2_turns_of_the_agent_are_reported_once() {
    let (mut app, mut agent) = ready_v2().await;
    for message in [idle(), busy(), busy(), idle(), idle()] {
        agent.say(message).await;
    }
    assert_eq!(app.next().await, AgentEvent::TurnBegan(session()));
    assert!(matches!(app.next().await, AgentEvent::TurnEnded(_, Ok(Reply::TurnEnded { .. }))));
    // The session that is opened is busy.
    let workspace = SessionWorkspace { cwd: "/w".into(), ..SessionWorkspace::default() };
    let call = Call::ResumeSession(session(), workspace);
    app.call(1, Purpose::ResumeSession(SessionKey(1)), call);
    agent.hear().await;
    agent.say(busy()).await;
    agent.say(json!({"id": 2, "result": {}})).await;
    assert!(matches!(app.reply().await, (1, Ok(Reply::Session(_)))));
    assert_eq!(app.next().await, AgentEvent::TurnBegan(session()));
    // Its end is not that of a prompt that was not accepted yet.
    app.prompt(2);
    agent.hear().await;
    agent.say(idle()).await;
    assert!(matches!(app.next().await, AgentEvent::TurnEnded(..)));
    agent.say(json!({"id": 3, "result": {"messageId": "m"}})).await;
    agent.say(busy()).await;
    agent.say(idle()).await;
    assert_eq!(ended(app.reply().await.1), StopReason::MaxTokens);
}

#[tokio::test]
async fn acp_v2_a_stale_idle_state_does_not_end_a_turn() {
    let (mut app, mut agent) = ready_v2().await;
    app.prompt(1);
    agent.hear().await;
    agent.say(idle()).await;
    agent.say(json!({"id": 2, "result": {"messageId": "m"}})).await;
    agent.say(chunk("more")).await;
    assert_eq!(app.chunks(4).await, "more", "the turn continues");
    agent.say(idle()).await;
    assert_eq!(ended(app.reply().await.1), StopReason::MaxTokens);
    // An error response ends the turn, as in version 1.
    app.prompt(2);
    agent.hear().await;
    agent.say(json!({"id": 3, "error": {"code": -32603, "message": "no"}})).await;
    assert!(matches!(app.reply().await, (2, Err(CallError::Agent(_)))));
}

#[tokio::test]
async fn the_old_form_is_tried_if_the_new_one_is_rejected() {
    let (mut app, mut agent, _folder) = start(Profile::Banjo);
    agent.answer_initialize().await;
    app.ready().await;
    app.set_mode(1);
    agent.hear().await;
    agent.say(json!({"id": 2, "error": {"code": RpcError::INVALID_PARAMS, "message": "missing mode"}})).await;
    assert_eq!(agent.hear().await["params"], json!({"sessionId": "s1", "mode": "ask"}));
    agent.say(json!({"id": 2, "error": {"code": RpcError::INVALID_PARAMS, "message": "no such mode"}})).await;
    let (number, reply) = app.reply().await;
    assert_eq!(number, 1);
    assert!(matches!(reply, Err(CallError::Agent(error)) if error.message == "no such mode"));
}
