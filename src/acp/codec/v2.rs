//! Version 2 of the protocol (draft): the differences from version 1.
//!
//! Encodes `initialize` and the calls with the official types of version 2, and decodes the parts of updates and
//! requests that version 1 does not have. The user enables version 2 per agent, and the agent may respond with
//! version 1.
//! Source: ACP v2 (draft), schema feature `unstable_protocol_v2`.

use std::path::Path;

use agent_client_protocol_schema::ProtocolVersion;
use agent_client_protocol_schema::{v1, v2 as schema};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::model::{
    AgentCapabilities, AgentInfo, AgentTerminal, Call, CallError, Callbacks, ConfigValue, ExitInfo,
    McpServer, Patch, SessionId, SessionWorkspace, TerminalId, ToolCallPatch,
};

use super::decoder_state::TurnNews;
use super::replies::{self, malformed};
use super::value::{
    Object, fill, first_text, json as to_json, list, parse_object, take, take_text, typed, whole,
};
use super::{auth, content, initialize, tools, unstable};

/// In version 2, agents access files and run terminals themselves.
pub(super) const CALLBACKS: Callbacks = Callbacks { fs_read: false, fs_write: false, terminal: false };

/// Encodes `initialize`, including the keys of version 1 for agents that only support that version.
pub(super) fn initialize(offer: initialize::Offer) -> (&'static str, String) {
    let auth = schema::ClientAuthCapabilities::new()
        .terminal(offer.runs_sign_in.then(schema::TerminalAuthCapabilities::new));
    let capabilities = schema::ClientCapabilities::new().auth(auth).elicitation(
        schema::ElicitationCapabilities::new()
            .form(schema::ElicitationFormCapabilities::new())
            .url(schema::ElicitationUrlCapabilities::new()),
    );
    let info = schema::Implementation::new("parlor", env!("CARGO_PKG_VERSION")).title("parlor".to_owned());
    let request =
        schema::InitializeRequest::new(ProtocolVersion::V2, info.clone()).capabilities(capabilities);
    let mut params = serde_json::to_value(&request).unwrap_or_default();
    if let Some(params) = params.as_object_mut() {
        let old = serde_json::to_value(initialize::with_unstable(offer)).unwrap_or_default();
        params.insert("clientCapabilities".to_owned(), old);
        params.insert("clientInfo".to_owned(), serde_json::to_value(&info).unwrap_or_default());
    }
    (schema::AGENT_METHOD_NAMES.initialize, params.to_string())
}

/// Decodes a response of version 2; `None`: the response is of version 1.
pub(super) fn decode_initialize(result: &str) -> Option<Result<AgentInfo, CallError>> {
    let mut result = parse_object(result)?;
    if result.get("protocolVersion").and_then(whole) != Some(2) {
        return None;
    }
    let methods = take(&mut result, &["authMethods"]).map(list).unwrap_or_default();
    let can_steer = unstable::can_steer(&result);
    let reported = result.get("capabilities").and_then(Value::as_object).cloned().unwrap_or_default();
    let response: schema::InitializeResponse = match typed(Value::Object(result)) {
        Ok(response) => response,
        Err(error) => return Some(Err(malformed(&error))),
    };
    Some(Ok(AgentInfo {
        name: Some(response.info.name),
        title: response.info.title,
        version: Some(response.info.version),
        protocol_version: 2,
        capabilities: {
            let mut can = capabilities(&response.capabilities);
            unstable::capabilities(&reported, &mut can);
            AgentCapabilities { can_steer, ..can }
        },
        auth_methods: methods.into_iter().filter_map(auth::decode).collect(),
        ..AgentInfo::default()
    }))
}

/// Agents with sessions can list, resume and close them; loading is resuming with a replay.
fn capabilities(can: &schema::AgentCapabilities) -> AgentCapabilities {
    let Some(session) = &can.session else { return AgentCapabilities::default() };
    let prompt = session.prompt.as_ref();
    let mcp = session.mcp.as_ref();
    AgentCapabilities {
        can_load: true,
        can_resume: true,
        can_list: true,
        can_close: true,
        can_delete: session.delete.is_some(),
        can_fork: session.fork.is_some(),
        can_set_title: session.title.is_some(),
        additional_directories: session.additional_directories.is_some(),
        prompt_image: prompt.is_some_and(|prompt| prompt.image.is_some()),
        prompt_audio: prompt.is_some_and(|prompt| prompt.audio.is_some()),
        prompt_embedded_context: prompt.is_some_and(|prompt| prompt.embedded_context.is_some()),
        mcp_stdio_off: mcp.is_none_or(|mcp| mcp.stdio.is_none()),
        mcp_http: mcp.is_some_and(|mcp| mcp.http.is_some()),
        can_log_out: can.auth.is_some(),
        ..AgentCapabilities::default()
    }
}

/// Method and params of a call; `None`: version 2 has no such call.
pub(super) fn call(call: &Call, can: &AgentCapabilities) -> Option<(&'static str, String)> {
    let names = &schema::AGENT_METHOD_NAMES;
    Some(match call {
        Call::Authenticate { method_id, .. } => {
            (names.auth_login, to_json(&schema::LoginAuthRequest::new(method_id.clone())))
        }
        Call::LogOut => (names.auth_logout, "{}".to_owned()),
        Call::NewSession(workspace) => {
            let request = schema::NewSessionRequest::new(path(workspace.folder()))
                .additional_directories(directories(workspace, can))
                .mcp_servers(servers(workspace, can));
            (names.session_new, to_json(&request))
        }
        Call::LoadSession(id, workspace) => {
            let request = resume(id, workspace, can)
                .replay_from(schema::ReplayFrom::Start(schema::ReplayFromStart::new()));
            (names.session_resume, to_json(&request))
        }
        Call::ResumeSession(id, workspace) => (names.session_resume, to_json(&resume(id, workspace, can))),
        Call::ForkSession(id, workspace, _) => {
            let request = schema::ForkSessionRequest::new(session(id), path(workspace.folder()))
                .additional_directories(directories(workspace, can))
                .mcp_servers(servers(workspace, can));
            (names.session_fork, to_json(&request))
        }
        Call::ListSessions { cwd, cursor } => {
            let request = schema::ListSessionsRequest::new()
                .cwd(cwd.as_deref().map(path))
                .cursor(cursor.clone().map(schema::SessionListCursor::new));
            (names.session_list, to_json(&request))
        }
        Call::DeleteSession(id) => {
            (names.session_delete, to_json(&schema::DeleteSessionRequest::new(session(id))))
        }
        Call::CloseSession(id) => {
            (names.session_close, to_json(&schema::CloseSessionRequest::new(session(id))))
        }
        Call::SetTitle(id, title) => {
            let request = schema::SetSessionTitleRequest::new(session(id), title.as_str());
            (names.session_set_title, to_json(&request))
        }
        Call::Prompt(id, blocks) => {
            // The blocks of a prompt are the same in both versions.
            let blocks: Vec<v1::ContentBlock> =
                blocks.iter().map(|block| content::encode(block, can)).collect();
            (names.session_prompt, json!({"sessionId": id.as_str(), "prompt": blocks}).to_string())
        }
        Call::Steer(id, blocks) => {
            let prompt: Vec<v1::ContentBlock> =
                blocks.iter().map(|block| content::encode(block, can)).collect();
            unstable::steer(id, &serde_json::to_value(prompt).unwrap_or_default())
        }
        Call::SetOption(id, option, value) => {
            let value = match value {
                ConfigValue::Text(text) => schema::SessionConfigOptionValue::id(text.as_str()),
                ConfigValue::Bool(is_on) => schema::SessionConfigOptionValue::boolean(*is_on),
            };
            let request = schema::SetSessionConfigOptionRequest::new(session(id), option.as_str(), value);
            (names.session_set_config_option, to_json(&request))
        }
        Call::StopTool(id, tool) => {
            let request = schema::CancelToolCallRequest::new(session(id), tool.as_str());
            (names.tool_call_cancel, to_json(&request))
        }
        Call::StopTerminal(id, terminal) => {
            let request = schema::CancelTerminalRequest::new(session(id), terminal.as_str());
            (names.terminal_cancel, to_json(&request))
        }
        Call::Archive(..)
        | Call::SessionStatus(_)
        | Call::AuthStatus
        | Call::ListProviders
        | Call::SetProvider(_) => {
            return unstable::call(call);
        }
        // Modes and models are config options.
        Call::SetMode(..) | Call::SetModel(..) => return None,
    })
}

fn session(id: &SessionId) -> schema::SessionId {
    schema::SessionId::new(id.0.clone())
}

fn path(path: &Path) -> schema::AbsolutePath {
    schema::AbsolutePath::new(path.to_string_lossy().into_owned())
}

fn resume(
    id: &SessionId,
    workspace: &SessionWorkspace,
    can: &AgentCapabilities,
) -> schema::ResumeSessionRequest {
    schema::ResumeSessionRequest::new(session(id), path(workspace.folder()))
        .additional_directories(directories(workspace, can))
        .mcp_servers(servers(workspace, can))
}

fn directories(workspace: &SessionWorkspace, can: &AgentCapabilities) -> Vec<schema::AbsolutePath> {
    let folders = if can.additional_directories && workspace.remote.is_none() {
        workspace.additional_directories.as_slice()
    } else {
        &[]
    };
    folders.iter().map(|folder| path(folder)).collect()
}

fn servers(workspace: &SessionWorkspace, can: &AgentCapabilities) -> Vec<schema::McpServer> {
    workspace.mcp_servers.iter().filter_map(|server| encode_server(server, can)).collect()
}

fn encode_server(server: &McpServer, can: &AgentCapabilities) -> Option<schema::McpServer> {
    match server {
        McpServer::Stdio { name, command, args, env } if !can.mcp_stdio_off => {
            let env = env.iter().map(|(name, value)| schema::EnvVariable::new(name.as_str(), value.as_str()));
            let server = schema::McpServerStdio::new(name.as_str(), path(command))
                .args(args.clone())
                .env(env.collect::<Vec<_>>());
            Some(schema::McpServer::Stdio(server))
        }
        McpServer::Http { name, url, headers } if can.mcp_http => {
            let headers =
                headers.iter().map(|(name, value)| schema::HttpHeader::new(name.as_str(), value.as_str()));
            let server =
                schema::McpServerHttp::new(name.as_str(), url.as_str()).headers(headers.collect::<Vec<_>>());
            Some(schema::McpServer::Http(server))
        }
        McpServer::Stdio { .. } | McpServer::Http { .. } | McpServer::Sse { .. } => None,
    }
}

/// Decodes a `state_update`. In all states except `idle` the turn is running.
pub(super) fn state(session: SessionId, update: &mut Object) -> Option<TurnNews> {
    if first_text(update, &["state"])? != "idle" {
        return Some(TurnNews::Went(session));
    }
    let ended = replies::decode_turn(update);
    Some(TurnNews::Ended(session, ended))
}

/// The keys of a call that are `null`, which clears the field.
pub(super) fn nulls(call: &Object) -> Vec<String> {
    call.iter().filter(|(_, value)| value.is_null()).map(|(key, _)| key.clone()).collect()
}

/// Clears the fields that were `null`.
pub(super) fn clear(patch: &mut ToolCallPatch, nulls: &[String]) {
    for name in nulls {
        match name.as_str() {
            "title" => patch.title = Patch::Clear,
            "name" => patch.name = Patch::Clear,
            "kind" => patch.kind = Patch::Clear,
            "content" => patch.content = Patch::Clear,
            "locations" => patch.locations = Patch::Clear,
            "rawInput" => (patch.raw_input, patch.input) = (Patch::Clear, Patch::Clear),
            "rawOutput" => {
                patch.raw_output = Patch::Clear;
                patch.output_text = Patch::Clear;
            }
            _ => {}
        }
    }
}

/// Decodes `terminal_update` (an upsert, whose output replaces the previous one) or `terminal_output_chunk`. `None`:
/// the id is missing or the data is not valid base64.
pub(super) fn terminal(update: &Object, is_whole: bool) -> Option<Vec<AgentTerminal>> {
    let id = TerminalId::from(first_text(update, &["terminalId"])?);
    let mut news = Vec::new();
    if !is_whole {
        // Each chunk is encoded separately.
        let bytes = STANDARD.decode(first_text(update, &["data"]).unwrap_or_default()).ok()?;
        return Some(vec![AgentTerminal::Bytes { id, bytes, is_whole: false }]);
    }
    let (command, cwd) = (first_text(update, &["command"]), first_text(update, &["cwd"]).map(Into::into));
    let can_cancel = tools::can_cancel(update);
    news.push(AgentTerminal::About { id: id.clone(), command, cwd, can_cancel });
    match update.get("output") {
        Some(Value::Null) => {
            news.push(AgentTerminal::Bytes { id: id.clone(), bytes: Vec::new(), is_whole });
        }
        Some(Value::Object(output)) => {
            let bytes = STANDARD.decode(first_text(output, &["data"]).unwrap_or_default()).ok()?;
            news.push(AgentTerminal::Bytes { id: id.clone(), bytes, is_whole });
        }
        _ => {}
    }
    if let Some(Value::Object(exit)) = update.get("exitStatus") {
        let code = exit.get("exitCode").and_then(whole).and_then(|code| i32::try_from(code).ok());
        let status = ExitInfo { code, signal: first_text(exit, &["signal"]) };
        news.push(AgentTerminal::Exit { id, status });
    }
    Some(news)
}

/// Converts the `subject` of a permission request to the `toolCall` of version 1, and returns the agent's description
/// as a note. A request without a subject is unchanged.
pub(super) fn take_subject(params: &mut Object) -> Option<String> {
    if !params.contains_key("subject") || params.contains_key("toolCall") {
        return None;
    }
    let title = take_text(params, &["title"]);
    let description = take_text(params, &["description"]);
    let mut note = description;
    let mut call = Object::new();
    match take(params, &["subject"]) {
        Some(Value::Object(mut subject)) => match first_text(&subject, &["type"]).as_deref() {
            Some("tool_call") => {
                if let Some(Value::Object(reported)) = take(&mut subject, &["toolCall"]) {
                    call = reported;
                }
                if call.get("title").is_none_or(Value::is_null) {
                    fill(&mut call, "title", || title.clone().into());
                } else if call.get("title").and_then(Value::as_str) != title.as_deref() {
                    note = match (title, note) {
                        (Some(title), Some(note)) => Some(format!("{title}\n{note}")),
                        (title, note) => title.or(note),
                    };
                }
            }
            Some("command") => {
                if let Some(id) = take(&mut subject, &["toolCallId"]) {
                    call.insert("toolCallId".to_owned(), id);
                }
                call.insert("title".to_owned(), title.into());
                call.insert("kind".to_owned(), "execute".into());
                subject.shift_remove("type");
                call.insert("rawInput".to_owned(), subject.into());
            }
            _ => {
                call.insert("title".to_owned(), title.into());
                call.insert("rawInput".to_owned(), subject.into());
            }
        },
        _ => {
            call.insert("title".to_owned(), title.into());
        }
    }
    params.insert("toolCall".to_owned(), call.into());
    note
}
