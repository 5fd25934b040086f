//! Checks that outgoing messages are valid according to the official types.

use agent_client_protocol_schema::v1 as schema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::*;
use crate::acp::codec::requests::{encode_answer, fallback};
use crate::acp::dialects::{Dialect as _, Official};
use crate::model::Response;
use crate::model::{
    ConfigValue, ExitInfo, FieldValue, McpServer, Raw, ResourceBody, ResourceLink, SessionId,
    SessionWorkspace,
};

/// Decodes as the official type, encodes again, and compares, so that no field is unknown.
fn check<T: DeserializeOwned + Serialize>(text: &str) -> Value {
    let sent: Value = serde_json::from_str(text).unwrap();
    let official: T = serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"));
    assert_eq!(serde_json::to_value(&official).unwrap(), sent, "{text}");
    sent
}

fn able(codec: &mut Codec) {
    let all = json!({"protocolVersion": 1, "agentCapabilities": {
        "promptCapabilities": {"image": true, "audio": true, "embeddedContext": true},
        "mcpCapabilities": {"http": true, "sse": true},
        "sessionCapabilities": {"additionalDirectories": {}}}});
    codec.on_initialize(&all.to_string()).unwrap();
}

fn place() -> SessionWorkspace {
    let headers = vec![("X-Key".to_owned(), "v".to_owned())];
    SessionWorkspace {
        cwd: "/w".into(),
        remote: None,
        additional_directories: vec![crate::model::UserRoot::given("/more")],
        mcp_servers: vec![
            McpServer::Stdio {
                name: "local".to_owned(),
                command: "/bin/mcp".into(),
                args: vec!["-v".to_owned()],
                env: vec![("A".to_owned(), "1".to_owned())],
            },
            McpServer::Http { name: "web".to_owned(), url: "https://m".to_owned(), headers: headers.clone() },
            McpServer::Sse { name: "old".to_owned(), url: "https://s".to_owned(), headers },
        ],
    }
}

#[test]
fn acp_v1_initialize_advertises_implemented_capabilities() {
    let codec = codec();
    let (method, full) = codec.initialize(0, "parlor").unwrap();
    assert_eq!(method, "initialize");
    assert_eq!(
        check::<schema::InitializeRequest>(&full),
        json!({
            "protocolVersion": 1,
            "clientCapabilities": {
                "fs": {"readTextFile": true, "writeTextFile": true},
                "terminal": true,
                "session": {"compaction": {}, "configOptions": {"boolean": {}}, "notices": {}},
                "subagents": {},
                "plan": {},
                "auth": {"terminal": true},
                "elicitation": {"form": {}, "url": {}},
                "_meta": {"terminal_output": true, "terminal-auth": true}
            },
            "clientInfo": {"name": "parlor", "title": "parlor", "version": env!("CARGO_PKG_VERSION")}
        })
    );
    let (_, plain) = codec.initialize(1, "parlor").unwrap();
    let plain = check::<schema::InitializeRequest>(&plain);
    assert_eq!(plain["clientCapabilities"].get("_meta"), None);
    assert_eq!(plain["clientCapabilities"].get("plan"), None);
    assert_eq!(codec.initialize(2, "parlor"), None);
    let mut strict = AgentSpec::default();
    strict.wire.is_strict = true;
    assert_eq!(Codec::new(&strict).initialize(1, "parlor"), None);
}

#[test]
fn acp_v1_calls_match_the_official_types() {
    let mut codec = codec();
    able(&mut codec);
    let session = SessionId::from("s1");
    let (method, text) = Official.cancel(&session, None).unwrap();
    let id = json!({"sessionId": "s1"});
    assert_eq!((method, check::<schema::CancelNotification>(&text)), ("session/cancel", id));
    let mut sent = |call: &Call| codec.call(call).unwrap();

    let (method, text) = sent(&Call::Authenticate { method_id: "m".to_owned(), api_key: None });
    assert_eq!(
        (method, check::<schema::AuthenticateRequest>(&text)),
        ("authenticate", json!({"methodId": "m"}))
    );
    let (method, text) = sent(&Call::LogOut);
    assert_eq!((method, check::<schema::LogoutRequest>(&text)), ("logout", json!({})));

    let servers = json!([
        {"name": "local", "command": "/bin/mcp", "args": ["-v"], "env": [{"name": "A", "value": "1"}]},
        {"type": "http", "name": "web", "url": "https://m", "headers": [{"name": "X-Key", "value": "v"}]},
        {"type": "sse", "name": "old", "url": "https://s", "headers": [{"name": "X-Key", "value": "v"}]}
    ]);
    let (method, text) = sent(&Call::NewSession(place()));
    let expected = json!({"cwd": "/w", "additionalDirectories": ["/more"], "mcpServers": servers});
    assert_eq!((method, check::<schema::NewSessionRequest>(&text)), ("session/new", expected));
    let expected =
        json!({"sessionId": "s1", "cwd": "/w", "additionalDirectories": ["/more"], "mcpServers": servers});
    let (method, text) = sent(&Call::LoadSession(session.clone(), place()));
    assert_eq!((method, check::<schema::LoadSessionRequest>(&text)), ("session/load", expected.clone()));
    let (method, text) = sent(&Call::ResumeSession(session.clone(), place()));
    assert_eq!((method, check::<schema::ResumeSessionRequest>(&text)), ("session/resume", expected.clone()));
    let (method, text) = sent(&Call::ForkSession(session.clone(), place(), 1));
    assert_eq!((method, check::<schema::ForkSessionRequest>(&text)), ("session/fork", expected));

    let (method, text) = sent(&Call::ListSessions { cwd: Some("/w".into()), cursor: Some("c".to_owned()) });
    let expected = json!({"cwd": "/w", "cursor": "c"});
    assert_eq!((method, check::<schema::ListSessionsRequest>(&text)), ("session/list", expected));
    let (_, text) = sent(&Call::ListSessions { cwd: None, cursor: None });
    assert_eq!(check::<schema::ListSessionsRequest>(&text), json!({}));

    let id = json!({"sessionId": "s1"});
    let (method, text) = sent(&Call::DeleteSession(session.clone()));
    assert_eq!((method, check::<schema::DeleteSessionRequest>(&text)), ("session/delete", id.clone()));
    let (method, text) = sent(&Call::CloseSession(session.clone()));
    assert_eq!((method, check::<schema::CloseSessionRequest>(&text)), ("session/close", id.clone()));
    let (method, text) = sent(&Call::SetTitle(session.clone(), "T".to_owned()));
    let expected = json!({"sessionId": "s1", "title": "T"});
    assert_eq!((method, check::<schema::SetSessionTitleRequest>(&text)), ("session/set_title", expected));
    let (method, text) = sent(&Call::SetMode(session.clone(), "plan".into()));
    let expected = json!({"sessionId": "s1", "modeId": "plan"});
    assert_eq!((method, check::<schema::SetSessionModeRequest>(&text)), ("session/set_mode", expected));
    let (method, text) =
        sent(&Call::SetOption(session.clone(), "o".to_owned(), ConfigValue::Text("v".to_owned())));
    let expected = json!({"sessionId": "s1", "configId": "o", "value": "v"});
    assert_eq!(method, "session/set_config_option");
    assert_eq!(check::<schema::SetSessionConfigOptionRequest>(&text), expected);
    let (_, text) = sent(&Call::SetOption(session.clone(), "o".to_owned(), ConfigValue::Bool(true)));
    let expected = json!({"sessionId": "s1", "configId": "o", "type": "boolean", "value": true});
    assert_eq!(check::<schema::SetSessionConfigOptionRequest>(&text), expected);
    let (method, text) = sent(&Call::SetModel(session, "big".into()));
    assert_eq!((method, text.as_str()), ("session/set_model", r#"{"sessionId":"s1","modelId":"big"}"#));
}

fn blocks() -> Vec<ContentBlock> {
    let link =
        ResourceLink { uri: "file:///w/a.md".to_owned(), size_bytes: Some(3), ..ResourceLink::default() };
    vec![
        ContentBlock::Text("look".into()),
        ContentBlock::Image { data: "aWk=".into(), mime_type: "image/png".to_owned(), uri: None },
        ContentBlock::Audio { data: "YWE=".into(), mime_type: "audio/wav".to_owned() },
        ContentBlock::ResourceLink(link),
        ContentBlock::Resource {
            uri: "file:///w/b".to_owned(),
            mime_type: Some("text/plain".to_owned()),
            body: ResourceBody::Text("B".into()),
        },
        ContentBlock::Resource {
            uri: "file:///w/c".to_owned(),
            mime_type: None,
            body: ResourceBody::Blob("Yw==".into()),
        },
    ]
}

#[test]
fn acp_v1_prompts_contain_only_supported_blocks() {
    let mut codec = codec();
    let prompt = Call::Prompt("s1".into(), blocks());
    let (_, text) = codec.call(&prompt).unwrap();
    let poor = check::<schema::PromptRequest>(&text);
    assert_eq!(
        poor["prompt"],
        json!([
            {"type": "text", "text": "look"},
            {"type": "text", "text": "[Image omitted: the agent does not support images.]"},
            {"type": "text", "text": "[Audio omitted: the agent does not support audio.]"},
            {"type": "resource_link", "name": "a.md", "uri": "file:///w/a.md", "size": 3},
            {"type": "resource_link", "name": "b", "uri": "file:///w/b", "mimeType": "text/plain"},
            {"type": "resource_link", "name": "c", "uri": "file:///w/c"}
        ])
    );
    able(&mut codec);
    let (method, text) = codec.call(&prompt).unwrap();
    assert_eq!(method, "session/prompt");
    let rich = check::<schema::PromptRequest>(&text);
    assert_eq!(
        rich["prompt"],
        json!([
            {"type": "text", "text": "look"},
            {"type": "image", "data": "aWk=", "mimeType": "image/png"},
            {"type": "audio", "data": "YWE=", "mimeType": "audio/wav"},
            {"type": "resource_link", "name": "a.md", "uri": "file:///w/a.md", "size": 3},
            {"type": "resource", "resource": {"uri": "file:///w/b", "mimeType": "text/plain", "text": "B"}},
            {"type": "resource", "resource": {"uri": "file:///w/c", "blob": "Yw=="}}
        ])
    );
}

#[test]
fn acp_v1_servers_and_folders_are_sent_only_if_supported() {
    let (_, text) = codec().call(&Call::NewSession(place())).unwrap();
    let sent = check::<schema::NewSessionRequest>(&text);
    assert_eq!(sent.get("additionalDirectories"), None);
    assert_eq!(sent["mcpServers"].as_array().unwrap().len(), 1);
    let (_, text) = codec()
        .call(&Call::NewSession(SessionWorkspace { cwd: "/w".into(), ..SessionWorkspace::default() }))
        .unwrap();
    assert_eq!(check::<schema::NewSessionRequest>(&text), json!({"cwd": "/w", "mcpServers": []}));
}

#[test]
fn acp_v1_responses_match_the_official_types() {
    let answer = |kind: RequestKind, answer: Response| encode_answer(kind, &answer).unwrap();

    let text = answer(RequestKind::Permission, Response::Selected("y".to_owned()));
    let expected = json!({"outcome": {"outcome": "selected", "optionId": "y"}});
    assert_eq!(check::<schema::RequestPermissionResponse>(&text), expected);
    let text = answer(RequestKind::Permission, Response::PermissionCancelled);
    let expected = json!({"outcome": {"outcome": "cancelled"}});
    assert_eq!(check::<schema::RequestPermissionResponse>(&text), expected);

    let text = answer(RequestKind::ReadFile, Response::FileContent("x\n".to_owned()));
    assert_eq!(check::<schema::ReadTextFileResponse>(&text), json!({"content": "x\n"}));
    assert_eq!(
        check::<schema::WriteTextFileResponse>(&answer(RequestKind::WriteFile, Response::Done)),
        json!({})
    );
    assert_eq!(
        check::<schema::KillTerminalResponse>(&answer(RequestKind::TerminalKill, Response::Done)),
        json!({})
    );
    let text = answer(RequestKind::TerminalRelease, Response::Done);
    assert_eq!(check::<schema::ReleaseTerminalResponse>(&text), json!({}));

    let text = answer(RequestKind::TerminalCreate, Response::TerminalCreated("t".into()));
    assert_eq!(check::<schema::CreateTerminalResponse>(&text), json!({"terminalId": "t"}));
    let exit = ExitInfo { code: Some(3), signal: None };
    let output = |exit| Response::TerminalOutput { output: "o".to_owned(), is_truncated: true, exit };
    let text = answer(RequestKind::TerminalOutput, output(Some(exit.clone())));
    let expected = json!({"output": "o", "truncated": true, "exitStatus": {"exitCode": 3}});
    assert_eq!(check::<schema::TerminalOutputResponse>(&text), expected);
    let text = answer(RequestKind::TerminalOutput, output(None));
    assert_eq!(check::<schema::TerminalOutputResponse>(&text), json!({"output": "o", "truncated": true}));
    let text = answer(RequestKind::TerminalWait, Response::TerminalExit(exit));
    assert_eq!(check::<schema::WaitForTerminalExitResponse>(&text), json!({"exitCode": 3}));
    let killed = ExitInfo { code: None, signal: Some("SIGKILL".to_owned()) };
    let text = answer(RequestKind::TerminalWait, Response::TerminalExit(killed));
    assert_eq!(check::<schema::WaitForTerminalExitResponse>(&text), json!({"signal": "SIGKILL"}));

    let values = vec![
        ("t".to_owned(), FieldValue::Text("x".to_owned())),
        ("l".to_owned(), FieldValue::Texts(vec!["a".to_owned()])),
        ("i".to_owned(), FieldValue::Integer(3)),
        ("n".to_owned(), FieldValue::Number(0.5)),
        ("b".to_owned(), FieldValue::Bool(true)),
    ];
    let text = answer(RequestKind::Elicitation, Response::ElicitationAccepted(Some(values)));
    let expected =
        json!({"action": "accept", "content": {"t": "x", "l": ["a"], "i": 3, "n": 0.5, "b": true}});
    assert_eq!(check::<schema::CreateElicitationResponse>(&text), expected);
    for (given, expected) in [
        (Response::ElicitationAccepted(None), "accept"),
        (Response::ElicitationDeclined, "decline"),
        (Response::ElicitationCancelled, "cancel"),
    ] {
        let sent = check::<schema::CreateElicitationResponse>(&answer(RequestKind::Elicitation, given));
        assert_eq!(sent["action"], expected);
    }
}

#[test]
fn flat_permission_requests_get_flat_responses() {
    let form = RequestKind::FlatPermission;
    assert_eq!(
        encode_answer(form, &Response::Selected("y".to_owned())).unwrap(),
        r#"{"optionId":"y","outcome":{"outcome":"selected","optionId":"y"}}"#
    );
    assert_eq!(encode_answer(form, &Response::PermissionCancelled).unwrap(), r#"{"outcome":"cancelled"}"#);
}

const KINDS: [RequestKind; 9] = [
    RequestKind::Permission,
    RequestKind::Elicitation,
    RequestKind::ReadFile,
    RequestKind::WriteFile,
    RequestKind::TerminalCreate,
    RequestKind::TerminalOutput,
    RequestKind::TerminalWait,
    RequestKind::TerminalKill,
    RequestKind::TerminalRelease,
];

#[test]
fn mismatched_responses_become_official_errors() {
    let error = RpcError {
        code: RpcError::RESOURCE_NOT_FOUND,
        message: "No such file".to_owned(),
        data: Some(Raw(r#"{"uri":"/w/x"}"#.into())),
    };
    for kind in KINDS {
        let text = encode_answer(kind, &Response::Error(error.clone())).unwrap_err();
        let expected = json!({"code": -32002, "message": "No such file", "data": {"uri": "/w/x"}});
        assert_eq!(check::<schema::Error>(&text), expected);
        let wrong =
            if kind == RequestKind::ReadFile { Response::Done } else { Response::FileContent(String::new()) };
        let text = encode_answer(kind, &wrong).unwrap_err();
        assert_eq!(check::<schema::Error>(&text)["code"], -32603);
    }
}

#[test]
fn acp_v1_unanswered_requests_are_cancelled_or_get_errors() {
    for kind in KINDS {
        let form = kind;
        let fallback = fallback(form);
        let sent = encode_answer(form, &fallback);
        match kind {
            RequestKind::Permission => assert_eq!(sent.unwrap(), r#"{"outcome":{"outcome":"cancelled"}}"#),
            RequestKind::Elicitation => assert_eq!(sent.unwrap(), r#"{"action":"cancel"}"#),
            _ => assert_eq!(check::<schema::Error>(&sent.unwrap_err())["code"], -32603),
        }
    }
}

#[test]
fn acp_v1_changes_of_the_sign_in_state_are_reported() {
    let mut out = Vec::new();
    let params = r#"{"state":"unauthenticated"}"#;
    assert!(codec().notification("auth/status_update", Some(params), &mut out));
    let status = crate::model::AuthStatus { state: crate::model::AuthState::SignedOut, accounts: Vec::new() };
    assert_eq!(out, [crate::model::AgentEvent::AuthStatus(status)]);
    out.clear();
    assert!(codec().notification("auth/status_update", Some("{}"), &mut out));
    assert!(matches!(out.as_slice(), [crate::model::AgentEvent::Anomaly(_)]));
}

#[test]
fn calls_contain_the_trace_if_enabled() {
    let wire = crate::model::WireSpec { is_traced: true, ..crate::model::WireSpec::default() };
    let mut codec = Codec::new(&AgentSpec { wire, ..AgentSpec::default() });
    let (_, text) = codec.call(&Call::NewSession(place())).unwrap();
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert!(value["_meta"]["traceparent"].as_str().is_some_and(|parent| parent.starts_with("00-")), "{text}");
    let (_, text) = self::codec().call(&Call::NewSession(place())).unwrap();
    assert!(!text.contains("traceparent"));
}
