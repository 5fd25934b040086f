//! An agent with the official SDK, for the conformance tests: its decoders are strict, and it supports every stable
//! method. It sends what it receives as messages, so that a test can check it.

use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{
    AuthenticateRequest, AuthenticateResponse, CancelNotification, CloseSessionRequest, CloseSessionResponse,
    ContentBlock, CreateElicitationRequest, CreateTerminalRequest, DeleteSessionRequest,
    DeleteSessionResponse, ForkSessionRequest, ForkSessionResponse, InitializeRequest, InitializeResponse,
    KillTerminalRequest, ListSessionsRequest, ListSessionsResponse, LoadSessionRequest, LoadSessionResponse,
    LogoutRequest, LogoutResponse, NewSessionRequest, NewSessionResponse, PromptRequest, PromptResponse,
    ReadTextFileRequest, ReleaseTerminalRequest, RequestPermissionRequest, ResumeSessionRequest,
    ResumeSessionResponse, SessionId, SessionNotification, SessionUpdate, SetSessionConfigOptionRequest,
    SetSessionConfigOptionResponse, SetSessionModeRequest, SetSessionModeResponse, TerminalOutputRequest,
    WaitForTerminalExitRequest, WriteTextFileRequest,
};
use agent_client_protocol::{Agent, Client, ConnectTo, Error, Result, Stdio};
use std::io::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;

use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

type Connection = ConnectionTo<Client>;

fn typed<T: DeserializeOwned>(value: Value) -> Result<T> {
    serde_json::from_value(value).map_err(Error::into_internal_error)
}

fn to_text(value: impl Serialize) -> String {
    serde_json::to_string(&value).unwrap_or_default()
}

fn update(connection: &Connection, session: &SessionId, update: Value) -> Result<()> {
    connection.send_notification(SessionNotification::new(session.clone(), typed::<SessionUpdate>(update)?))
}

fn say(connection: &Connection, session: &SessionId, text: impl Into<String>) -> Result<()> {
    let text: String = text.into();
    update(
        connection,
        session,
        json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}),
    )
}

fn options() -> Value {
    json!([
        {"id": "model", "name": "Model", "category": "model", "type": "select", "currentValue": "small",
         "options": [{"group": "g", "name": "Group", "options": [
            {"value": "small", "name": "Small"}, {"value": "large", "name": "Large"}]}]},
        {"id": "loud", "name": "Loud", "type": "boolean", "currentValue": false}
    ])
}

fn modes() -> Value {
    json!({"currentModeId": "ask", "availableModes": [
        {"id": "ask", "name": "Ask"}, {"id": "code", "name": "Code", "description": "Writes"}]})
}

/// Every kind of update.
fn updates() -> Value {
    json!([
        {"sessionUpdate": "user_message_chunk", "content": {"type": "text", "text": "from before"}},
        {"sessionUpdate": "agent_thought_chunk", "content": {"type": "text", "text": "thinking"}},
        {"sessionUpdate": "agent_message_chunk", "messageId": "m1", "content": {"type": "text", "text": "hello"}},
        {"sessionUpdate": "agent_message_chunk", "content": {"type": "image", "data": "aGk=", "mimeType": "image/png"}},
        {"sessionUpdate": "agent_message_chunk", "content":
            {"type": "resource_link", "uri": "file:///a.txt", "name": "a.txt"}},
        {"sessionUpdate": "tool_call", "toolCallId": "t1", "title": "Edit a.txt", "kind": "edit", "status": "pending",
         "content": [{"type": "diff", "path": "/a.txt", "oldText": "one\n", "newText": "two\n"}],
         "locations": [{"path": "/a.txt", "line": 1}], "rawInput": {"path": "/a.txt"}},
        {"sessionUpdate": "tool_call_update", "toolCallId": "t1", "status": "completed"},
        {"sessionUpdate": "plan", "entries": [{"content": "step", "priority": "high", "status": "in_progress"}]},
        {"sessionUpdate": "available_commands_update", "availableCommands":
            [{"name": "go", "description": "Goes", "input": {"hint": "where"}}]},
        {"sessionUpdate": "current_mode_update", "currentModeId": "code"},
        {"sessionUpdate": "config_option_update", "configOptions": options()},
        {"sessionUpdate": "session_info_update", "title": "A title"},
        {"sessionUpdate": "usage_update", "used": 10, "size": 100, "cost": {"amount": 0.5, "currency": "USD"}},
        {"sessionUpdate": "notice", "severity": "warning", "title": "Careful"},
        {"sessionUpdate": "compaction_update", "compactionId": "c1", "status": "in_progress"},
        {"sessionUpdate": "compaction_summary_chunk", "compactionId": "c1",
         "content": {"type": "text", "text": "short"}},
        {"sessionUpdate": "compaction_update", "compactionId": "c1", "status": "completed"},
        {"sessionUpdate": "plan_update", "plan": {"type": "markdown", "planId": "p", "content": "# Plan"}},
        {"sessionUpdate": "plan_removed", "planId": "p"}
    ])
}

async fn turn(
    prompt: PromptRequest,
    connection: &Connection,
    mut cancelled: watch::Receiver<u64>,
) -> Result<Value> {
    let session = prompt.session_id.clone();
    let word = match prompt.prompt.first() {
        Some(ContentBlock::Text(text)) => text.text.clone(),
        other => to_text(other),
    };
    let (verb, rest) = word.split_once(' ').unwrap_or((word.as_str(), ""));
    match verb {
        "updates" => {
            if let Value::Array(items) = updates() {
                for item in items {
                    update(connection, &session, item)?;
                }
            }
        }
        "permission" => {
            let request: RequestPermissionRequest = typed(json!({
                "sessionId": session, "toolCall": {"toolCallId": "p1", "title": "Run rm", "kind": "execute"},
                "options": [{"optionId": "yes", "name": "Yes", "kind": "allow_once"},
                            {"optionId": "no", "name": "No", "kind": "reject_once"}]}))?;
            say(connection, &session, to_text(connection.send_request(request).block_task().await?))?;
        }
        "read" => {
            let request = ReadTextFileRequest::new(session.clone(), rest);
            match connection.send_request(request).block_task().await {
                Ok(read) => say(connection, &session, read.content)?,
                Err(error) => say(connection, &session, format!("error {}", to_text(error)))?,
            }
        }
        "write" => {
            let (path, content) = rest.split_once(' ').unwrap_or((rest, ""));
            let request = WriteTextFileRequest::new(session.clone(), path, content);
            say(connection, &session, to_text(connection.send_request(request).block_task().await?))?;
        }
        "terminal" => {
            let request: CreateTerminalRequest = typed(json!({"sessionId": session, "command": rest}))?;
            let id = connection.send_request(request).block_task().await?.terminal_id;
            update(
                connection,
                &session,
                json!({"sessionUpdate": "tool_call", "toolCallId": "run", "title": rest, "kind": "execute",
                       "status": "in_progress", "content": [{"type": "terminal", "terminalId": id}]}),
            )?;
            let wait = WaitForTerminalExitRequest::new(session.clone(), id.clone());
            let exit = connection.send_request(wait).block_task().await?;
            let read = TerminalOutputRequest::new(session.clone(), id.clone());
            let output = connection.send_request(read).block_task().await?;
            let kill = KillTerminalRequest::new(session.clone(), id.clone());
            connection.send_request(kill).block_task().await?;
            let release = ReleaseTerminalRequest::new(session.clone(), id);
            connection.send_request(release).block_task().await?;
            say(connection, &session, format!("{} {}", to_text(exit), to_text(output)))?;
        }
        "elicit" => {
            let request: CreateElicitationRequest = typed(json!({
                "sessionId": session, "mode": "form", "message": "Who are you?",
                "requestedSchema": {"type": "object", "required": ["name"], "properties": {
                    "name": {"type": "string", "title": "Name"}, "age": {"type": "integer"}}}}))?;
            say(connection, &session, to_text(connection.send_request(request).block_task().await?))?;
        }
        "wait" => {
            let _ = cancelled.changed().await;
            return Ok(json!({"stopReason": "cancelled"}));
        }
        "fail" => return Err(Error::internal_error().data(json!({"details": "the model is out"}))),
        other => say(connection, &session, format!("heard {other}"))?,
    }
    Ok(json!({"stopReason": "end_turn", "usage": {"totalTokens": 3, "inputTokens": 1, "outputTokens": 2}}))
}

/// Uses stdin and stdout; with `--http [PORT]` the official HTTP and WebSocket server, whose port it prints; with a
/// certificate and its key after the port (DER files), TLS.
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    if args.next().as_deref() != Some("--http") {
        return agent().connect_to(Stdio::new()).await;
    }
    let port = args.next().and_then(|port| port.parse().ok()).unwrap_or(0_u16);
    let listener =
        tokio::net::TcpListener::bind(("127.0.0.1", port)).await.map_err(Error::into_internal_error)?;
    let port = listener.local_addr().map_err(Error::into_internal_error)?.port();
    writeln!(std::io::stdout(), "{port}").map_err(Error::into_internal_error)?;
    let router = agent_client_protocol_http::AcpHttpServer::new(agent).into_router();
    let served = match (args.next(), args.next()) {
        (Some(certificate), Some(key)) => {
            let acceptor = acceptor(&certificate, &key)
                .map_err(|error| Error::internal_error().data(error.to_string()))?;
            axum::serve(Tls { listener, acceptor }, router).await
        }
        _ => axum::serve(listener, router).await,
    };
    served.map_err(Error::into_internal_error)
}

/// A TLS listener. It prints the protocol that each connection negotiated.
struct Tls {
    listener: tokio::net::TcpListener,
    acceptor: TlsAcceptor,
}

impl axum::serve::Listener for Tls {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            let Ok((stream, address)) = self.listener.accept().await else { continue };
            if let Ok(stream) = self.acceptor.accept(stream).await {
                let protocol = stream.get_ref().1.alpn_protocol().unwrap_or_default();
                let _ = writeln!(std::io::stdout(), "{}", String::from_utf8_lossy(protocol));
                return (stream, address);
            }
        }
    }

    fn local_addr(&self) -> std::io::Result<Self::Addr> {
        self.listener.local_addr()
    }
}

fn acceptor(certificate: &str, key: &str) -> std::result::Result<TlsAcceptor, Box<dyn std::error::Error>> {
    let certificate = CertificateDer::from(std::fs::read(certificate)?);
    let key = PrivateKeyDer::try_from(std::fs::read(key)?)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

fn agent() -> impl ConnectTo<Client> {
    let (cancel, cancelled) = watch::channel(0_u64);
    Agent
        .v1()
        .name("sdk-agent")
        .on_receive_request(
            async move |request: InitializeRequest, responder, _: Connection| {
                responder.respond(typed::<InitializeResponse>(json!({
                    "protocolVersion": request.protocol_version,
                    "agentInfo": {"name": "sdk-agent", "title": "SDK agent", "version": "1"},
                    "authMethods": [{"id": "key", "name": "Key"}],
                    "agentCapabilities": {
                        "loadSession": true,
                        "promptCapabilities": {"image": true, "embeddedContext": true},
                        "mcpCapabilities": {"http": true},
                        "auth": {"logout": {}},
                        "sessionCapabilities": {"list": {}, "delete": {}, "close": {}, "resume": {}, "fork": {},
                            "additionalDirectories": {}}},
                    "_meta": {"client": request.client_info, "capabilities": request.client_capabilities}}))?)
            },
            agent_client_protocol::on_receive_request!(),
        )
        .on_receive_request(
            async move |_: AuthenticateRequest, responder, _: Connection| {
                responder.respond(AuthenticateResponse::new())
            },
            agent_client_protocol::on_receive_request!(),
        )
        .on_receive_request(
            async move |_: LogoutRequest, responder, _: Connection| responder.respond(LogoutResponse::new()),
            agent_client_protocol::on_receive_request!(),
        )
        .on_receive_request(
            async move |_: NewSessionRequest, responder, _: Connection| {
                responder.respond(typed::<NewSessionResponse>(
                    json!({"sessionId": "s1", "modes": modes(), "configOptions": options()}),
                )?)
            },
            agent_client_protocol::on_receive_request!(),
        )
        .on_receive_request(
            async move |request: LoadSessionRequest, responder, connection: Connection| {
                say(&connection, &request.session_id, "from the history")?;
                responder.respond(typed::<LoadSessionResponse>(json!({"modes": modes()}))?)
            },
            agent_client_protocol::on_receive_request!(),
        )
        .on_receive_request(
            async move |_: ResumeSessionRequest, responder, _: Connection| {
                responder.respond(typed::<ResumeSessionResponse>(json!({"modes": modes()}))?)
            },
            agent_client_protocol::on_receive_request!(),
        )
        .on_receive_request(
            async move |_: ForkSessionRequest, responder, _: Connection| {
                responder.respond(typed::<ForkSessionResponse>(json!({"sessionId": "s2"}))?)
            },
            agent_client_protocol::on_receive_request!(),
        )
        .on_receive_request(
            async move |request: ListSessionsRequest, responder, _: Connection| {
                let page = match request.cursor {
                    None => json!({"sessions": [{"sessionId": "s1", "cwd": "/one", "title": "First"}],
                                   "nextCursor": "more"}),
                    Some(_) => json!({"sessions": [{"sessionId": "s0", "cwd": "/two"}]}),
                };
                responder.respond(typed::<ListSessionsResponse>(page)?)
            },
            agent_client_protocol::on_receive_request!(),
        )
        .on_receive_request(
            async move |_: DeleteSessionRequest, responder, _: Connection| {
                responder.respond(DeleteSessionResponse::new())
            },
            agent_client_protocol::on_receive_request!(),
        )
        .on_receive_request(
            async move |_: CloseSessionRequest, responder, _: Connection| {
                responder.respond(CloseSessionResponse::new())
            },
            agent_client_protocol::on_receive_request!(),
        )
        .on_receive_request(
            async move |_: SetSessionModeRequest, responder, _: Connection| {
                responder.respond(SetSessionModeResponse::new())
            },
            agent_client_protocol::on_receive_request!(),
        )
        .on_receive_request(
            async move |request: SetSessionConfigOptionRequest, responder, connection: Connection| {
                say(&connection, &request.session_id, to_text(&request))?;
                responder.respond(typed::<SetSessionConfigOptionResponse>(json!({"configOptions": options()}))?)
            },
            agent_client_protocol::on_receive_request!(),
        )
        .on_receive_request(
            async move |request: PromptRequest, responder, connection: Connection| {
                let cancelled = cancelled.clone();
                let task = connection.clone();
                connection.spawn(async move {
                    match turn(request, &task, cancelled).await {
                        Ok(end) => responder.respond(typed::<PromptResponse>(end)?),
                        Err(error) => responder.respond_with_error(error),
                    }
                })
            },
            agent_client_protocol::on_receive_request!(),
        )
        .on_receive_notification(
            async move |_: CancelNotification, _: Connection| {
                cancel.send_modify(|count| *count += 1);
                Ok(())
            },
            agent_client_protocol::on_receive_notification!(),
        )
}
