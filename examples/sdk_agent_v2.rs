//! An agent with the official SDK for the draft of version 2, for the conformance tests. It sends what it receives as
//! messages, so that a test can check it.

use agent_client_protocol::v2::{ConnectionTo, schema};
use agent_client_protocol::{Agent, Client, ConnectTo, Error, Result, Stdio};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::io::Write as _;
use tokio::sync::watch;

type Connection = ConnectionTo<Client>;

/// `hello\n` in base64.
const OUTPUT: &str = "aGVsbG8K";

fn typed<T: DeserializeOwned>(value: Value) -> Result<T> {
    serde_json::from_value(value).map_err(Error::into_internal_error)
}

fn to_text(value: impl Serialize) -> String {
    serde_json::to_string(&value).unwrap_or_default()
}

fn update(connection: &Connection, session: &schema::SessionId, update: Value) -> Result<()> {
    let update = typed::<schema::SessionUpdate>(update)?;
    connection.send_notification(schema::UpdateSessionNotification::new(session.clone(), update))
}

/// A complete message; each has a unique id.
fn say(
    connection: &Connection,
    session: &schema::SessionId,
    id: &str,
    text: impl Into<String>,
) -> Result<()> {
    let text: String = text.into();
    update(
        connection,
        session,
        json!({"sessionUpdate": "agent_message", "messageId": id, "content": [{"type": "text", "text": text}]}),
    )
}

fn options(loud: bool) -> Value {
    json!([
        {"configId": "model", "name": "Model", "category": "model", "type": "select", "currentValue": "small",
         "options": [{"groupId": "g", "name": "Group", "options": [
            {"value": "small", "name": "Small"}, {"value": "large", "name": "Large"}]}]},
        {"configId": "loud", "name": "Loud", "type": "boolean", "currentValue": loud}
    ])
}

/// Every kind of update.
fn updates() -> Value {
    let patch = "diff --git a/w/a.txt b/w/a.txt\n--- a/w/a.txt\n+++ b/w/a.txt\n@@ -1 +1 @@\n-one\n+two\n";
    json!([
        {"sessionUpdate": "user_message_chunk", "messageId": "u0", "content": {"type": "text", "text": "from before"}},
        {"sessionUpdate": "agent_thought", "messageId": "m1", "content": [{"type": "text", "text": "thinking"}]},
        {"sessionUpdate": "agent_thought_chunk", "messageId": "m1", "content": {"type": "text", "text": " on"}},
        {"sessionUpdate": "agent_message_chunk", "messageId": "m2", "content": {"type": "text", "text": "half"}},
        {"sessionUpdate": "agent_message", "messageId": "m2", "content": [
            {"type": "text", "text": "whole"}, {"type": "image", "data": "aGk=", "mimeType": "image/png"},
            {"type": "resource_link", "uri": "file:///a.txt", "name": "a.txt"}]},
        {"sessionUpdate": "agent_message_chunk", "messageId": "m2", "content": {"type": "text", "text": " and more"}},
        {"sessionUpdate": "agent_message", "messageId": "m3", "content": [{"type": "text", "text": "taken back"}]},
        {"sessionUpdate": "agent_message", "messageId": "m3", "content": null},
        {"sessionUpdate": "tool_call_update", "toolCallId": "t1", "title": "Edit a.txt", "kind": "edit", "status": "pending",
         "locations": [{"path": "/w/a.txt", "line": 1}], "rawInput": {"path": "/w/a.txt"}},
        {"sessionUpdate": "tool_call_content_chunk", "toolCallId": "t1", "content": {"type": "diff",
            "changes": [{"operation": "modify", "path": "/w/a.txt"}], "patch": {"format": "git_patch", "text": patch}}},
        {"sessionUpdate": "tool_call_update", "toolCallId": "t1", "status": "completed"},
        {"sessionUpdate": "tool_call_update", "toolCallId": "t2", "title": "Never ran", "status": "cancelled"},
        {"sessionUpdate": "plan_update", "plan": {"type": "items", "planId": "p", "entries":
            [{"content": "step", "priority": "high", "status": "in_progress"}]}},
        {"sessionUpdate": "plan_update", "plan": {"type": "markdown", "planId": "q", "content": "# Plan"}},
        {"sessionUpdate": "plan_removed", "planId": "q"},
        {"sessionUpdate": "available_commands_update", "availableCommands":
            [{"type": "command", "name": "go", "description": "Goes", "input": {"type": "text", "hint": "where"}}]},
        {"sessionUpdate": "config_option_update", "configOptions": options(false)},
        {"sessionUpdate": "session_info_update", "title": "A title"},
        {"sessionUpdate": "usage_update", "used": 10, "size": 100, "cost": {"amount": 0.5, "currency": "USD"}},
        {"sessionUpdate": "notice", "severity": "warning", "title": "Careful"},
        {"sessionUpdate": "compaction_update", "compactionId": "c1", "status": "in_progress"},
        {"sessionUpdate": "compaction_summary_chunk", "compactionId": "c1", "content": {"type": "text", "text": "short"}},
        {"sessionUpdate": "compaction_update", "compactionId": "c1", "status": "completed"}
    ])
}

/// A terminal of the agent, from its start to its exit.
fn terminal() -> Value {
    json!([
        {"sessionUpdate": "terminal_update", "terminalId": "x", "command": "make", "cwd": "/w"},
        {"sessionUpdate": "tool_call_update", "toolCallId": "run", "title": "make", "kind": "execute",
         "status": "in_progress", "content": [{"type": "terminal", "terminalId": "x"}]},
        {"sessionUpdate": "terminal_output_chunk", "terminalId": "x", "data": OUTPUT},
        {"sessionUpdate": "terminal_output_chunk", "terminalId": "x", "data": OUTPUT},
        {"sessionUpdate": "terminal_update", "terminalId": "x", "exitStatus": {"exitCode": 3}},
        {"sessionUpdate": "tool_call_update", "toolCallId": "run", "status": "failed"}
    ])
}

/// One turn, from `running` to `idle`; the prompt was accepted before.
async fn turn(
    prompt: schema::PromptRequest,
    connection: Connection,
    mut cancelled: watch::Receiver<u64>,
    number: u64,
) -> Result<()> {
    let session = prompt.session_id.clone();
    let word = match prompt.prompt.first() {
        Some(schema::ContentBlock::Text(text)) => text.text.clone(),
        other => to_text(other),
    };
    // Unique across runs of the agent, because clients keep earlier messages.
    let id = format!("answer-{}-{number}", std::process::id());
    update(&connection, &session, json!({"sessionUpdate": "state_update", "state": "running"}))?;
    let mut end = json!({"sessionUpdate": "state_update", "state": "idle", "stopReason": "end_turn"});
    match word.split(' ').next().unwrap_or_default() {
        list @ ("updates" | "terminal") => {
            let all = if list == "updates" { updates() } else { terminal() };
            for item in all.as_array().into_iter().flatten() {
                update(&connection, &session, item.clone())?;
            }
        }
        kind @ ("permission" | "command") => {
            let subject = if kind == "command" {
                json!({"type": "command", "command": "make test", "cwd": "/w"})
            } else {
                json!({"type": "tool_call", "toolCall": {"toolCallId": "p1", "title": "Run rm", "kind": "execute"}})
            };
            let request: schema::RequestPermissionRequest = typed(json!({
                "sessionId": session, "title": "May it run?", "description": "It takes a minute.", "subject": subject,
                "options": [{"optionId": "yes", "name": "Yes", "kind": "allow_once"},
                            {"optionId": "no", "name": "No", "kind": "reject_once"}]}))?;
            update(
                &connection,
                &session,
                json!({"sessionUpdate": "state_update", "state": "requires_action"}),
            )?;
            say(&connection, &session, &id, to_text(connection.send_request(request).block_task().await?))?;
        }
        "elicit" => {
            let request: schema::CreateElicitationRequest = typed(json!({
                "sessionId": session, "mode": "form", "message": "Who?",
                "requestedSchema": {"type": "object", "properties": {"age": {"type": "integer"}, "name": {"type": "string"}}}}))?;
            say(&connection, &session, &id, to_text(connection.send_request(request).block_task().await?))?;
        }
        "wait" => {
            let seen = *cancelled.borrow_and_update();
            say(&connection, &session, &id, "waiting")?;
            let _ = cancelled.wait_for(|count| *count > seen).await;
            end["stopReason"] = json!("cancelled");
        }
        "limit" => end["stopReason"] = json!("max_tokens"),
        "usage" => {
            end["usage"] = json!({"totalTokens": 7, "inputTokens": 3, "outputTokens": 4});
        }
        word => say(&connection, &session, &id, format!("heard {word}"))?,
    }
    update(&connection, &session, end)
}

/// Uses stdin and stdout; with `--http` the official HTTP and WebSocket server, whose port it prints.
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    if std::env::args().nth(1).as_deref() != Some("--http") {
        return agent().connect_to(Stdio::new()).await;
    }
    let listener =
        tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.map_err(Error::into_internal_error)?;
    let port = listener.local_addr().map_err(Error::into_internal_error)?.port();
    writeln!(std::io::stdout(), "{port}").map_err(Error::into_internal_error)?;
    let router = agent_client_protocol_http::AcpHttpServer::new(agent).into_router();
    axum::serve(listener, router).await.map_err(Error::into_internal_error)
}

fn agent() -> impl ConnectTo<Client> {
    let (cancel, cancelled) = watch::channel(0_u64);
    let (signed_in, is_signed_in) = watch::channel(false);
    let signed_out = signed_in.clone();
    let turns = std::sync::atomic::AtomicU64::new(0);
    Agent
        .v2()
        .name("sdk-agent-v2")
        .on_receive_request(
            async move |request: schema::InitializeRequest, responder, _: Connection| {
                responder.respond(typed::<schema::InitializeResponse>(json!({
                    "protocolVersion": request.protocol_version,
                    "info": {"name": "sdk-agent-v2", "title": "SDK agent", "version": "2"},
                    "authMethods": [{"type": "agent", "methodId": "key", "name": "Key"}],
                    "capabilities": {"auth": {}, "session": {
                        "prompt": {"image": {}, "embeddedContext": {}}, "mcp": {"http": {}},
                        "delete": {}, "fork": {}, "additionalDirectories": {}}}}))?)
            },
            agent_client_protocol::on_receive_request!(),
        )
        .on_receive_request(
            async move |_: schema::LoginAuthRequest, responder, _: Connection| {
                signed_in.send_replace(true);
                responder.respond(schema::LoginAuthResponse::new())
            },
            agent_client_protocol::on_receive_request!(),
        )
        .on_receive_request(
            async move |_: schema::LogoutAuthRequest, responder, _: Connection| {
                signed_out.send_replace(false);
                responder.respond(schema::LogoutAuthResponse::new())
            },
            agent_client_protocol::on_receive_request!(),
        )
        .on_receive_request(
            async move |_: schema::NewSessionRequest, responder, _: Connection| {
                if std::env::args().any(|arg| arg == "--locked") && !*is_signed_in.borrow() {
                    return responder.respond_with_error(Error::auth_required());
                }
                responder.respond(typed::<schema::NewSessionResponse>(
                    json!({"sessionId": "s1", "configOptions": options(false)}),
                )?)
            },
            agent_client_protocol::on_receive_request!(),
        )
        .on_receive_request(
            async move |request: schema::ResumeSessionRequest, responder, connection: Connection| {
                if matches!(request.replay_from, Some(schema::ReplayFrom::Start(_))) {
                    say(&connection, &request.session_id, "old", "from the history")?;
                }
                update(
                    &connection,
                    &request.session_id,
                    json!({"sessionUpdate": "state_update", "state": "idle"}),
                )?;
                responder.respond(schema::ResumeSessionResponse::new())
            },
            agent_client_protocol::on_receive_request!(),
        )
        .on_receive_request(
            async move |_: schema::ForkSessionRequest, responder, _: Connection| {
                responder.respond(typed::<schema::ForkSessionResponse>(json!({"sessionId": "s2"}))?)
            },
            agent_client_protocol::on_receive_request!(),
        )
        .on_receive_request(
            async move |request: schema::ListSessionsRequest, responder, _: Connection| {
                let page = match request.cursor {
                    None => json!({"sessions": [{"sessionId": "s1", "cwd": "/one", "title": "First"}],
                                   "nextCursor": "more"}),
                    Some(_) => json!({"sessions": [{"sessionId": "s0", "cwd": "/two"}]}),
                };
                responder.respond(typed::<schema::ListSessionsResponse>(page)?)
            },
            agent_client_protocol::on_receive_request!(),
        )
        .on_receive_request(
            async move |_: schema::DeleteSessionRequest, responder, _: Connection| {
                responder.respond(schema::DeleteSessionResponse::new())
            },
            agent_client_protocol::on_receive_request!(),
        )
        .on_receive_request(
            async move |_: schema::CloseSessionRequest, responder, _: Connection| {
                responder.respond(schema::CloseSessionResponse::new())
            },
            agent_client_protocol::on_receive_request!(),
        )
        .on_receive_request(
            async move |request: schema::SetSessionConfigOptionRequest, responder, connection: Connection| {
                say(&connection, &request.session_id, "option", to_text(&request))?;
                responder.respond(typed::<schema::SetSessionConfigOptionResponse>(
                    json!({"configOptions": options(true)}),
                )?)
            },
            agent_client_protocol::on_receive_request!(),
        )
        .on_receive_request(
            async move |request: schema::PromptRequest, responder, connection: Connection| {
                let number = turns.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                if matches!(request.prompt.first(), Some(schema::ContentBlock::Text(text)) if text.text == "refuse") {
                    return responder.respond_with_error(Error::internal_error().data("the model is out"));
                }
                responder.respond(schema::PromptResponse::new(format!("prompt-{}-{number}", std::process::id())))?;
                let task = connection.clone();
                connection.spawn(turn(request, task, cancelled.clone(), number))
            },
            agent_client_protocol::on_receive_request!(),
        )
        .on_receive_notification(
            async move |_: schema::CancelSessionNotification, _: Connection| {
                cancel.send_modify(|count| *count += 1);
                Ok(())
            },
            agent_client_protocol::on_receive_notification!(),
        )
}
