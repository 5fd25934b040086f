//! Version 2: outgoing messages are decoded with the official types, and messages of the official types by the codec.

mod rows;

use std::path::PathBuf;

use agent_client_protocol_schema::{ProtocolVersion, v2 as schema};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::*;
use crate::acp::dialects::{Dialect as _, Official};
use crate::model::{
    AgentTerminal, ConfigValue, DiffChange, ExitInfo, McpServer, Patch, PermissionRequest, Role,
    SessionUpdate, StopReason, ToolCallPatch, ToolContent, ToolKind, ToolStatus,
};

/// A codec with version 2 enabled and negotiated.
fn able() -> Codec {
    let mut codec = opted_in();
    let capabilities = json!({
        "session": {
            "prompt": {"image": {}, "audio": {}, "embeddedContext": {}}, "mcp": {"stdio": {}, "http": {}},
            "delete": {}, "fork": {}, "title": {}, "additionalDirectories": {}
        },
        "auth": {}
    });
    let result =
        json!({"protocolVersion": 2, "info": {"name": "x", "version": "1"}, "capabilities": capabilities});
    codec.on_initialize(&result.to_string()).unwrap();
    codec
}

fn opted_in() -> Codec {
    let mut spec = AgentSpec { command: "agent".to_owned(), ..AgentSpec::default() };
    spec.wire.protocol = 2;
    Codec::new(&spec)
}

/// Decodes as the official type, encodes again, and compares.
fn check<T: DeserializeOwned + Serialize>(text: &str) -> Value {
    let sent: Value = serde_json::from_str(text).unwrap();
    let official: T = serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"));
    assert_eq!(serde_json::to_value(&official).unwrap(), sent, "{text}");
    sent
}

fn updates(codec: &mut Codec, update: schema::SessionUpdate) -> Vec<SessionUpdate> {
    let result = schema::UpdateSessionNotification::new("s1", update);
    let mut out = Vec::new();
    assert!(codec.notification("session/update", Some(&serde_json::to_string(&result).unwrap()), &mut out));
    out.into_iter()
        .map(|event| match event {
            AgentEvent::Update(_, update) => update,
            other => panic!("{other:?}"),
        })
        .collect()
}

fn tool(codec: &mut Codec, update: schema::SessionUpdate) -> ToolCallPatch {
    match updates(codec, update).pop() {
        Some(SessionUpdate::Tool(patch)) => *patch,
        other => panic!("no tool call: {other:?}"),
    }
}

#[test]
fn acp_v2_is_offered_only_if_enabled_and_falls_back_to_version_1() {
    let (_, params) = codec().initialize(0, "parlor").unwrap();
    assert!(params.contains("\"protocolVersion\":1"));
    let mut codec = opted_in();
    let (method, params) = codec.initialize(0, "parlor").unwrap();
    assert_eq!(method, "initialize");
    let request: schema::InitializeRequest = serde_json::from_str(&params).unwrap();
    assert_eq!(request.protocol_version, ProtocolVersion::V2);
    assert!(request.capabilities.elicitation.is_some() && request.capabilities.auth.is_some());
    // An agent that responds with version 1 finds its keys in the same message.
    let old: agent_client_protocol_schema::v1::InitializeRequest = serde_json::from_str(&params).unwrap();
    assert!(old.client_capabilities.fs.read_text_file && old.client_capabilities.terminal);
    let info =
        codec.on_initialize(r#"{"protocolVersion":1,"agentCapabilities":{"loadSession":true}}"#).unwrap();
    assert_eq!((info.protocol_version, info.capabilities.can_resume), (1, false));
    assert_eq!(codec.call(&call_named("load")).unwrap().0, "session/load");
    // An agent that rejects the version gets the official form of version 1 next.
    assert!(opted_in().initialize(1, "parlor").unwrap().1.contains("\"protocolVersion\":1"));
    // Without the setting, a response with version 2 is an error.
    assert!(
        super::codec()
            .on_initialize(r#"{"protocolVersion":2,"info":{"name":"x","version":"1"},"capabilities":{}}"#)
            .is_err()
    );
}

#[test]
fn acp_v2_sessions_imply_list_resume_and_close() {
    let mut codec = opted_in();
    let response =
        schema::InitializeResponse::new(ProtocolVersion::V2, schema::Implementation::new("a", "1"))
            .capabilities(schema::AgentCapabilities::new().session(schema::SessionCapabilities::new()))
            .auth_methods(vec![schema::AuthMethod::Agent(schema::AuthMethodAgent::new("key", "API key"))]);
    let info = codec.on_initialize(&serde_json::to_string(&response).unwrap()).unwrap();
    let can = info.capabilities;
    assert_eq!(info.protocol_version, 2);
    assert!(can.can_list && can.can_resume && can.can_load && can.can_close && can.mcp_stdio_off);
    assert!(!can.can_delete && !can.can_fork && !can.prompt_image && !can.can_log_out);
    assert_eq!(info.auth_methods[0].id, "key");
}

#[test]
fn acp_v2_calls_match_the_official_types() {
    let mut codec = able();
    let session = SessionId::from("s1");
    let mut sent = |call: Call| codec.call(&call).unwrap();
    let server = |name: &str| McpServer::Stdio {
        name: name.to_owned(),
        command: "/bin/mcp".into(),
        args: vec!["-v".to_owned()],
        env: vec![("A".to_owned(), "1".to_owned())],
    };
    let workspace = SessionWorkspace {
        cwd: "/w".into(),
        remote: None,
        additional_directories: vec![crate::model::UserRoot::given("/more")],
        mcp_servers: vec![server("files")],
    };

    let (method, text) = sent(Call::Authenticate { method_id: "key".to_owned(), api_key: None });
    assert_eq!(
        (method, check::<schema::LoginAuthRequest>(&text)),
        ("auth/login", json!({"methodId": "key"}))
    );
    assert_eq!(sent(Call::LogOut), ("auth/logout", "{}".to_owned()));
    let (method, text) = sent(Call::NewSession(workspace.clone()));
    let result = check::<schema::NewSessionRequest>(&text);
    assert_eq!((method, &result["mcpServers"][0]["type"]), ("session/new", &json!("stdio")));
    assert_eq!(result["additionalDirectories"], json!(["/more"]));
    let (method, text) = sent(Call::LoadSession(session.clone(), workspace.clone()));
    let result = check::<schema::ResumeSessionRequest>(&text);
    assert_eq!((method, &result["replayFrom"]), ("session/resume", &json!({"type": "start"})));
    let (method, text) = sent(Call::ResumeSession(session.clone(), workspace.clone()));
    let result = check::<schema::ResumeSessionRequest>(&text);
    assert_eq!((method, result.get("replayFrom")), ("session/resume", None));
    let (method, text) = sent(Call::ForkSession(session.clone(), workspace, 3));
    check::<schema::ForkSessionRequest>(&text);
    assert_eq!(method, "session/fork");
    let (method, text) = sent(Call::ListSessions { cwd: Some("/w".into()), cursor: Some("c".to_owned()) });
    let result = check::<schema::ListSessionsRequest>(&text);
    assert_eq!((method, result), ("session/list", json!({"cwd": "/w", "cursor": "c"})));
    let (method, text) = sent(Call::DeleteSession(session.clone()));
    check::<schema::DeleteSessionRequest>(&text);
    assert_eq!(method, "session/delete");
    let (method, text) = sent(Call::CloseSession(session.clone()));
    check::<schema::CloseSessionRequest>(&text);
    assert_eq!(method, "session/close");
    let (method, text) = sent(Call::SetTitle(session.clone(), "T".to_owned()));
    check::<schema::SetSessionTitleRequest>(&text);
    assert_eq!(method, "session/set_title");
    let (method, text) = sent(Call::Prompt(session.clone(), vec![ContentBlock::Text("hi".into())]));
    check::<schema::PromptRequest>(&text);
    assert_eq!(method, "session/prompt");
    for value in [ConfigValue::Text("b".to_owned()), ConfigValue::Bool(true)] {
        let (method, text) = sent(Call::SetOption(session.clone(), "o".to_owned(), value));
        check::<schema::SetSessionConfigOptionRequest>(&text);
        assert_eq!(method, "session/set_config_option");
    }
    assert_eq!(codec.call(&call_named("set_mode")), None);
    let (method, text) = Official.cancel(&session, None).unwrap();
    check::<schema::CancelSessionNotification>(&text);
    assert_eq!(method, "session/cancel");
}

#[test]
fn acp_v2_the_response_accepts_the_prompt_and_a_state_ends_the_turn() {
    let mut codec = able();
    assert!(codec.reports_states());
    assert!(
        updates(
            &mut codec,
            schema::SessionUpdate::StateUpdate(schema::StateUpdate::Running(
                schema::RunningStateUpdate::new()
            ))
        )
        .is_empty()
    );
    let idle = |reason| {
        let state = schema::IdleStateUpdate::new().stop_reason(reason);
        schema::SessionUpdate::StateUpdate(schema::StateUpdate::Idle(state))
    };
    for reason in [schema::StopReason::EndTurn, schema::StopReason::Cancelled] {
        updates(&mut codec, idle(reason));
    }
    let result: Vec<String> = codec.take_turn_news().iter().map(|news| format!("{news:?}")).collect();
    assert!(result[0].starts_with("Went"), "{result:?}");
    assert!(result[1].contains(&format!("{:?}", StopReason::EndTurn)), "{result:?}");
    assert!(result[2].contains(&format!("{:?}", StopReason::Cancelled)), "{result:?}");
    let error = schema::ErrorStopReason::new().error(schema::Error::new(-32603, "out of luck"));
    updates(&mut codec, idle(schema::StopReason::Error(error)));
    let result = format!("{:?}", codec.take_turn_news());
    assert!(result.contains("Err(Agent") && result.contains("out of luck"), "{result}");
}

#[test]
fn acp_v2_messages_are_upserts() {
    let mut codec = able();
    let text = |text: &str| schema::ContentBlock::Text(schema::TextContent::new(text));
    let message = |content| {
        let message = schema::AgentMessage::new("m1");
        schema::SessionUpdate::AgentMessage(match content {
            Some(content) => message.content(content),
            None => message,
        })
    };
    let whole = |content| SessionUpdate::Message {
        role: Role::Agent,
        message: "m1".into(),
        content,
        more_content: Vec::new(),
    };
    let result = updates(&mut codec, message(Some(vec![text("whole")])));
    let content = Patch::Set(vec![ContentBlock::Text("whole".into())]);
    assert_eq!(result, [whole(content)]);
    let result = updates(&mut codec, message(None));
    assert_eq!(result, [whole(Patch::Keep)]);
    let chunk = schema::ContentChunk::new(text("a"), "m1");
    let result = updates(&mut codec, schema::SessionUpdate::AgentMessageChunk(chunk));
    assert_eq!(result, [SessionUpdate::more_text(Role::Agent, "m1".into(), "a".into())]);
    let link = schema::ContentBlock::ResourceLink(schema::ResourceLink::new("a", "file:///a"));
    let chunk = schema::ContentChunk::new(link, "m1");
    let result = updates(&mut codec, schema::SessionUpdate::AgentMessageChunk(chunk));
    assert!(
        matches!(&result[..], [SessionUpdate::Message { content: Patch::Keep, more_content, .. }] if more_content.len() == 1)
    );
    let params =
        r#"{"sessionId":"s1","update":{"sessionUpdate":"user_message","messageId":"m2","content":null}}"#;
    let mut out = Vec::new();
    codec.notification("session/update", Some(params), &mut out);
    assert!(format!("{out:?}").contains("content: Clear"), "{out:?}");
}

#[test]
fn acp_v2_tool_calls_are_upserts_with_content_chunks() {
    let mut codec = able();
    let update = schema::ToolCallUpdate::new("t1")
        .title("Run".to_owned())
        .kind(schema::ToolKind::Execute)
        .status(schema::ToolCallStatus::Cancelled);
    let patch = tool(&mut codec, schema::SessionUpdate::ToolCallUpdate(update));
    assert_eq!(
        (patch.kind, patch.status),
        (Patch::Set(ToolKind::Execute), Patch::Set(ToolStatus::Cancelled))
    );
    assert_eq!((patch.content, patch.locations), (Patch::Keep, Patch::Keep));
    let params = json!({"sessionId": "s1", "update": {"sessionUpdate": "tool_call_update", "toolCallId": "t1",
        "title": null, "content": null, "locations": null, "rawInput": null, "rawOutput": null}});
    let mut out = Vec::new();
    codec.notification("session/update", Some(&params.to_string()), &mut out);
    let Some(AgentEvent::Update(_, SessionUpdate::Tool(patch))) = out.pop() else { panic!("{out:?}") };
    assert_eq!((&patch.content, &patch.locations), (&Patch::Clear, &Patch::Clear));
    assert_eq!(
        (&patch.title, &patch.raw_input, &patch.raw_output),
        (&Patch::Clear, &Patch::Clear, &Patch::Clear)
    );
    let text = schema::ContentBlock::Text(schema::TextContent::new("more"));
    let chunk = schema::ToolCallContentChunk::new(
        "t1",
        schema::ToolCallContent::Content(Box::new(schema::Content::new(text))),
    );
    let patch = tool(&mut codec, schema::SessionUpdate::ToolCallContentChunk(chunk));
    assert_eq!(patch.more_content, [ToolContent::Block(ContentBlock::Text("more".into()))]);
    assert_eq!(patch.content, Patch::Keep);
}

#[test]
fn acp_v2_a_diff_has_one_patch_and_a_state_per_file() {
    let patch = "diff --git a/src/a.rs b/src/a.rs\n--- a/src/a.rs\n+++ b/src/a.rs\n@@ -1 +1 @@\n-1\n+2\n";
    let change = |operation| schema::DiffChange::new(operation);
    let diff = schema::Diff::patch(
        patch,
        vec![
            change(schema::DiffChangeOperation::Modify(schema::DiffPathChange::new("/w/src/a.rs"))),
            change(schema::DiffChangeOperation::Delete(schema::DiffPathChange::new("/w/b.rs"))),
            change(schema::DiffChangeOperation::Move(schema::DiffPathPairChange::new("/w/c.rs", "/w/d.rs"))),
        ],
    );
    let update = schema::ToolCallUpdate::new("t1").content(vec![schema::ToolCallContent::Diff(diff)]);
    let result = tool(&mut able(), schema::SessionUpdate::ToolCallUpdate(update));
    let Patch::Set(content) = result.content else { panic!("{result:?}") };
    let files: Vec<(PathBuf, String)> = content
        .into_iter()
        .map(|item| match item {
            ToolContent::Diff(diff) => match diff.change {
                DiffChange::Patch(text) => (diff.path, text.to_string()),
                DiffChange::Texts { .. } => panic!("no patch"),
            },
            other => panic!("{other:?}"),
        })
        .collect();
    let expected = [
        ("/w/src/a.rs", patch),
        ("/w/b.rs", "diff --git a/w/b.rs b/w/b.rs\ndeleted file mode 100644\n"),
        ("/w/d.rs", "diff --git a/w/c.rs b/w/d.rs\nrename from w/c.rs\nrename to w/d.rs\n"),
    ];
    assert_eq!(files, expected.map(|(path, text)| (PathBuf::from(path), text.to_owned())));
}

#[test]
fn acp_v2_terminal_chunks_are_decoded_separately() {
    let mut codec = able();
    let update = schema::TerminalUpdate::new("x")
        .command("make".to_owned())
        .cwd("/w")
        .output(schema::TerminalOutput::new("aGVsbG8="))
        .exit_status(schema::TerminalExitStatus::new().exit_code(2));
    let result = updates(&mut codec, schema::SessionUpdate::TerminalUpdate(update));
    let id = || crate::model::TerminalId::from("x");
    let expected = [
        AgentTerminal::About {
            id: id(),
            command: Some("make".to_owned()),
            cwd: Some("/w".into()),
            can_cancel: Patch::Keep,
        },
        AgentTerminal::Bytes { id: id(), bytes: b"hello".to_vec(), is_whole: true },
        AgentTerminal::Exit { id: id(), status: ExitInfo { code: Some(2), signal: None } },
    ];
    assert_eq!(result, expected.map(SessionUpdate::Terminal));
    // Half a character each, with padding in the middle of the stream.
    for (data, byte) in [("w==", 0xc0), ("wyk=", 0xc3)] {
        let result = updates(
            &mut codec,
            schema::SessionUpdate::TerminalOutputChunk(schema::TerminalOutputChunk::new("x", data)),
        );
        match &result[..] {
            [SessionUpdate::Terminal(AgentTerminal::Bytes { bytes, is_whole: false, .. })] => {
                assert_eq!(bytes[0], byte);
            }
            [SessionUpdate::Unknown { .. }] => {
                assert_eq!(data, "w==", "invalid base64 is shown unchanged");
            }
            other => panic!("{other:?}"),
        }
    }
}

fn permission(request: &schema::RequestPermissionRequest) -> PermissionRequest {
    let text = serde_json::to_string(request).unwrap();
    let mut out = Vec::new();
    match able().request("session/request_permission", Some(&text), &mut out).unwrap() {
        (AgentRequest::Permission(request), form) => {
            assert_eq!(form, RequestKind::Permission);
            request
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn acp_v2_permissions_have_a_title_and_a_subject() {
    let option = schema::PermissionOption::new("y", "Yes", schema::PermissionOptionKind::AllowOnce);
    let about_tool = schema::RequestPermissionRequest::new("s1", "Write a file", vec![option.clone()])
        .description("It changes one line.".to_owned())
        .subject(schema::RequestPermissionSubject::from(
            schema::ToolCallUpdate::new("t1").kind(schema::ToolKind::Edit),
        ));
    let request = permission(&about_tool);
    assert_eq!(
        (request.tool.id.as_str(), &request.tool.title),
        ("t1", &Patch::Set("Write a file".to_owned()))
    );
    assert_eq!(request.tool.note.as_deref(), Some("It changes one line."));
    assert_eq!(request.options.len(), 1);
    let about_command =
        schema::RequestPermissionRequest::new("s1", "Run the tests", vec![option.clone()]).subject(
            schema::RequestPermissionSubject::from(schema::CommandPermissionSubject::new("cargo test", "/w")),
        );
    let request = permission(&about_command);
    assert_eq!(request.tool.kind, Patch::Set(ToolKind::Execute));
    let input = request.tool.input.as_set().unwrap();
    assert_eq!((input.command.as_deref(), &input.cwd), (Some("cargo test"), &Some("/w".into())));
    let bare = permission(&schema::RequestPermissionRequest::new("s1", "Go on?", vec![option]));
    assert_eq!(bare.tool.title, Patch::Set("Go on?".to_owned()));
    let mut codec = able();
    let error =
        codec.request("fs/read_text_file", Some(r#"{"sessionId":"s1","path":"/a"}"#), &mut Vec::new());
    assert_eq!(error.unwrap_err().code, RpcError::METHOD_NOT_FOUND, "there are no file callbacks");
}

#[test]
fn acp_v2_options_commands_and_plans_are_decoded() {
    let mut codec = able();
    let result = json!({"sessionId": "s1",
        "configOptions": [{"configId": "mode", "name": "Mode", "category": "mode", "type": "select", "currentValue": "a",
            "options": [{"groupId": "g", "name": "Group", "options": [{"value": "a", "name": "A"}]}]}],
        "availableCommands": [{"type": "command", "name": "go", "description": "Goes", "input": {"type": "text", "hint": "where"}}]});
    let official: schema::NewSessionResponse = serde_json::from_value(result.clone()).unwrap();
    assert_eq!((official.config_options.len(), official.available_commands.len()), (1, 1));
    let mut out = Vec::new();
    let Ok(Reply::Session(reply)) = codec.reply(&call_named("new"), &result.to_string(), &mut out) else {
        panic!("no session");
    };
    assert_eq!((reply.options[0].id.as_str(), reply.id), ("mode", Some("s1".into())));
    let [AgentEvent::Update(_, SessionUpdate::Commands(commands))] = &out[..] else { panic!("{out:?}") };
    assert_eq!((commands[0].name.as_str(), commands[0].hint.as_deref()), ("go", Some("where")));
    let entry =
        schema::PlanEntry::new("Look", schema::PlanEntryPriority::High, schema::PlanEntryStatus::InProgress);
    let plan =
        schema::PlanUpdate::new(schema::PlanUpdateContent::Items(schema::PlanItems::new("p", vec![entry])));
    let result = updates(&mut codec, schema::SessionUpdate::PlanUpdate(plan));
    assert!(
        matches!(&result[..], [SessionUpdate::Plan(plan)] if plan.id.as_ref().is_some_and(|id| id.as_str() == "p"))
    );
}
