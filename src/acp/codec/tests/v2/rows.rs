//! Version 2, field by field, where a wrong name would not be a type error.

use serde_json::{Value, json};

use super::{able, opted_in};
use crate::acp::codec::Codec;
use crate::model::{
    AgentEvent, AgentTerminal, AuthKind, Call, ConfigValue, ExitInfo, McpServer, Patch, SessionId,
    SessionUpdate, SessionWorkspace, SignInCommand,
};

fn hello(codec: &mut Codec, capabilities: &Value, methods: &Value) -> crate::model::AgentInfo {
    let result = json!({"protocolVersion": 2, "info": {"name": "a", "title": "An agent", "version": "3"},
        "capabilities": capabilities, "authMethods": methods});
    codec.on_initialize(&result.to_string()).unwrap()
}

#[test]
fn acp_v2_capabilities_are_read_from_their_markers() {
    let markers = json!({
        "session": {"prompt": {"image": {}, "audio": {}, "embeddedContext": {}}, "mcp": {"stdio": {}, "http": {}},
            "delete": {}, "fork": {}, "title": {}, "additionalDirectories": {}},
        "auth": {}
    });
    let info = hello(&mut opted_in(), &markers, &json!([]));
    assert_eq!(
        (info.name.as_deref(), info.title.as_deref(), info.version.as_deref()),
        (Some("a"), Some("An agent"), Some("3"))
    );
    let all = info.capabilities;
    let none = hello(&mut opted_in(), &json!({"session": {}}), &json!([])).capabilities;
    let marks = |can: &crate::model::AgentCapabilities| {
        [
            can.can_delete,
            can.can_fork,
            can.can_set_title,
            can.additional_directories,
            can.prompt_image,
            can.prompt_audio,
            can.prompt_embedded_context,
            can.mcp_http,
            !can.mcp_stdio_off,
            can.can_log_out,
        ]
    };
    assert_eq!(marks(&all), [true; 10]);
    assert_eq!(marks(&none), [false; 10]);
    let without = hello(&mut opted_in(), &json!({}), &json!([])).capabilities;
    assert!(!without.can_list && !without.can_resume && !without.can_load && !without.can_close);
}

#[test]
fn acp_v2_terminal_sign_in_has_a_list_of_variables() {
    let methods = json!([{"type": "terminal", "methodId": "tui", "name": "Here", "args": ["login"],
        "env": [{"name": "Z", "value": "1"}, {"name": "A", "value": "2"}]}]);
    let info = hello(&mut opted_in(), &json!({"session": {}, "auth": {}}), &methods);
    let AuthKind::Terminal(SignInCommand { args, env, .. }) = &info.auth_methods[0].kind else {
        panic!("{info:?}")
    };
    assert_eq!(args, &["login"]);
    assert_eq!(env, &[("Z".to_owned(), "1".to_owned()), ("A".to_owned(), "2".to_owned())]);
}

fn sent(codec: &mut Codec, call: &Call) -> (&'static str, Value) {
    let (method, params) = codec.call(call).unwrap();
    (method, serde_json::from_str(&params).unwrap())
}

#[test]
fn acp_v2_options_and_cancellations_use_the_official_keys() {
    let mut codec = able();
    let session = || SessionId::from("s1");
    let set = |codec: &mut Codec, value| sent(codec, &Call::SetOption(session(), "o".to_owned(), value)).1;
    let result = set(&mut codec, ConfigValue::Bool(true));
    assert_eq!(result, json!({"sessionId": "s1", "configId": "o", "type": "boolean", "value": true}));
    assert_eq!(set(&mut codec, ConfigValue::Bool(false))["value"], json!(false));
    let result = set(&mut codec, ConfigValue::Text("b".to_owned()));
    assert_eq!((&result["configId"], &result["value"]), (&json!("o"), &json!("b")));
    assert_eq!(
        sent(&mut codec, &Call::StopTool(session(), "t1".into())),
        ("tool_call/cancel", json!({"sessionId": "s1", "toolCallId": "t1"}))
    );
    assert_eq!(
        sent(&mut codec, &Call::StopTerminal(session(), "x".into())),
        ("terminal/cancel", json!({"sessionId": "s1", "terminalId": "x"}))
    );
}

#[test]
fn acp_v2_folders_and_servers_are_sent_only_if_supported() {
    let pair = |name: &str| vec![(name.to_owned(), "1".to_owned())];
    let workspace = SessionWorkspace {
        cwd: "/w".into(),
        additional_directories: vec![crate::model::UserRoot::given("/more")],
        mcp_servers: vec![
            McpServer::Stdio {
                name: "files".into(),
                command: "/bin/mcp".into(),
                args: vec!["-v".into()],
                env: pair("KEY"),
            },
            McpServer::Http { name: "docs".into(), url: "https://d.example".into(), headers: pair("X-Key") },
            McpServer::Sse { name: "old".into(), url: "https://o.example".into(), headers: Vec::new() },
        ],
        ..SessionWorkspace::default()
    };
    let result = sent(&mut able(), &Call::NewSession(workspace.clone())).1;
    assert_eq!(result["additionalDirectories"], json!(["/more"]));
    assert_eq!(
        result["mcpServers"],
        json!([
            {"type": "stdio", "name": "files", "command": "/bin/mcp", "args": ["-v"],
                "env": [{"name": "KEY", "value": "1"}]},
            {"type": "http", "name": "docs", "url": "https://d.example",
                "headers": [{"name": "X-Key", "value": "1"}]}
        ]),
        "an event stream is no way of version 2"
    );
    let mut codec = opted_in();
    hello(&mut codec, &json!({"session": {}}), &json!([]));
    let result = sent(&mut codec, &Call::NewSession(workspace)).1;
    let is_empty = |key: &str| result.get(key).is_none_or(|list| list == &json!([]));
    assert!(is_empty("additionalDirectories") && is_empty("mcpServers"), "{result}");
}

fn update(body: &Value) -> Vec<SessionUpdate> {
    let params = json!({"sessionId": "s1", "update": body});
    let mut out = Vec::new();
    assert!(able().notification("session/update", Some(&params.to_string()), &mut out));
    out.into_iter()
        .map(|event| match event {
            AgentEvent::Update(_, update) => update,
            other => panic!("{other:?}"),
        })
        .collect()
}

#[test]
fn acp_v2_null_clears_a_field_and_absence_does_not() {
    let call = json!({"sessionUpdate": "tool_call_update", "toolCallId": "t1", "name": null, "kind": null});
    let [SessionUpdate::Tool(patch)] = &update(&call)[..] else { panic!("no call") };
    assert_eq!((&patch.name, &patch.kind), (&Patch::Clear, &Patch::Clear));
    assert_eq!((&patch.title, &patch.status), (&Patch::Keep, &Patch::Keep));
}

#[test]
fn acp_v2_terminals_have_a_signal_and_a_cancel_capability() {
    let news = json!({"sessionUpdate": "terminal_update", "terminalId": "x", "capabilities": {"cancel": {}},
        "output": null, "exitStatus": {"exitCode": null, "signal": "SIGTERM"}});
    let result = update(&news);
    let [
        SessionUpdate::Terminal(AgentTerminal::About { can_cancel, .. }),
        SessionUpdate::Terminal(AgentTerminal::Bytes { bytes, is_whole: true, .. }),
        SessionUpdate::Terminal(AgentTerminal::Exit { status, .. }),
    ] = &result[..]
    else {
        panic!("{result:?}");
    };
    assert_eq!((can_cancel, bytes.as_slice()), (&Patch::Set(true), &b""[..]));
    assert_eq!(*status, ExitInfo { code: None, signal: Some("SIGTERM".to_owned()) });
}
