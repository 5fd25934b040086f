//! Builds the method and params of requests from the official types.
//!
//! Content that the agent does not support is omitted here, so that other layers need not know the agent's limits.
//! Invariant: every message except `session/set_model` is a serialised official type.

use std::path::{Path, PathBuf};

use agent_client_protocol_schema::v1 as schema;
use agent_client_protocol_schema::v2 as v2_schema;
use serde_json::json;

use crate::model::{AgentCapabilities, Call, ConfigValue, McpServer, SessionId, SessionWorkspace};

use super::value::json as to_json;
use super::{content, unstable};

pub(super) fn encode(call: &Call, can: &AgentCapabilities) -> (&'static str, String) {
    let names = &schema::AGENT_METHOD_NAMES;
    match call {
        Call::Authenticate { method_id, .. } => {
            (names.authenticate, to_json(&schema::AuthenticateRequest::new(method_id.clone())))
        }
        Call::LogOut => (names.logout, to_json(&schema::LogoutRequest::new())),
        Call::NewSession(workspace) => {
            let request = schema::NewSessionRequest::new(lossless(workspace.folder()))
                .additional_directories(directories(workspace, can))
                .mcp_servers(servers(workspace, can));
            (names.session_new, to_json(&request))
        }
        Call::LoadSession(id, workspace) => {
            let request = schema::LoadSessionRequest::new(session(id), lossless(workspace.folder()))
                .additional_directories(directories(workspace, can))
                .mcp_servers(servers(workspace, can));
            (names.session_load, to_json(&request))
        }
        Call::ResumeSession(id, workspace) => {
            let request = schema::ResumeSessionRequest::new(session(id), lossless(workspace.folder()))
                .additional_directories(directories(workspace, can))
                .mcp_servers(servers(workspace, can));
            (names.session_resume, to_json(&request))
        }
        Call::ForkSession(id, workspace, _) => {
            let request = schema::ForkSessionRequest::new(session(id), lossless(workspace.folder()))
                .additional_directories(directories(workspace, can))
                .mcp_servers(servers(workspace, can));
            (names.session_fork, to_json(&request))
        }
        Call::ListSessions { cwd, cursor } => {
            let request =
                schema::ListSessionsRequest::new().cwd(cwd.as_deref().map(lossless)).cursor(cursor.clone());
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
            let prompt = blocks.iter().map(|block| content::encode(block, can)).collect();
            (names.session_prompt, to_json(&schema::PromptRequest::new(session(id), prompt)))
        }
        Call::Steer(id, blocks) => {
            let prompt: Vec<_> = blocks.iter().map(|block| content::encode(block, can)).collect();
            unstable::steer(id, &serde_json::to_value(prompt).unwrap_or_default())
        }
        Call::SetMode(id, mode) => {
            let request = schema::SetSessionModeRequest::new(session(id), mode.0.clone());
            (names.session_set_mode, to_json(&request))
        }
        Call::SetOption(id, option, value) => {
            let value = match value {
                ConfigValue::Text(text) => schema::SessionConfigOptionValue::value_id(text.clone()),
                ConfigValue::Bool(is_on) => schema::SessionConfigOptionValue::boolean(*is_on),
            };
            let request = schema::SetSessionConfigOptionRequest::new(session(id), option.clone(), value);
            (names.session_set_config_option, to_json(&request))
        }
        // Removed from the official types in favour of config options; many agents still accept it.
        Call::SetModel(id, model) => {
            let params = json!({"sessionId": id.as_str(), "modelId": model.as_str()});
            ("session/set_model", params.to_string())
        }
        // Version 1 does not have these methods, so no agent advertises them.
        Call::StopTool(id, tool) => (
            v2_schema::AGENT_METHOD_NAMES.tool_call_cancel,
            json!({"sessionId": id.as_str(), "toolCallId": tool.as_str()}).to_string(),
        ),
        Call::StopTerminal(id, terminal) => (
            v2_schema::AGENT_METHOD_NAMES.terminal_cancel,
            json!({"sessionId": id.as_str(), "terminalId": terminal.as_str()}).to_string(),
        ),
        Call::Archive(..)
        | Call::SessionStatus(_)
        | Call::AuthStatus
        | Call::ListProviders
        | Call::SetProvider(_) => unstable::call(call).unwrap_or(("", String::new())),
    }
}

/// Method and params of the notification that cancels a turn.
pub(in crate::acp) fn encode_cancel(id: &SessionId) -> (&'static str, String) {
    (schema::AGENT_METHOD_NAMES.session_cancel, to_json(&schema::CancelNotification::new(session(id))))
}

/// Method and params of the notification that cancels a request of parlor.
pub(in crate::acp) fn encode_withdrawal(id: u64) -> (&'static str, String) {
    ("$/cancel_request", json!({"requestId": id}).to_string())
}

fn session(id: &SessionId) -> schema::SessionId {
    schema::SessionId::new(id.0.clone())
}

/// JSON cannot represent a path that is not UTF-8; with replacement characters the agent can at least report an error
/// about it.
fn lossless(path: &Path) -> PathBuf {
    match path.to_str() {
        Some(_) => path.to_path_buf(),
        None => PathBuf::from(path.to_string_lossy().into_owned()),
    }
}

/// ACP v1 session-setup: `additionalDirectories` only with its capability.
fn directories(workspace: &SessionWorkspace, can: &AgentCapabilities) -> Vec<PathBuf> {
    // Local folders do not exist on another machine.
    if can.additional_directories && workspace.remote.is_none() {
        workspace.additional_directories.iter().map(|path| lossless(path)).collect()
    } else {
        Vec::new()
    }
}

/// ACP v1 session-setup: every agent accepts stdio servers, others only with their capability.
fn servers(workspace: &SessionWorkspace, can: &AgentCapabilities) -> Vec<schema::McpServer> {
    workspace.mcp_servers.iter().filter_map(|server| encode_server(server, can)).collect()
}

fn encode_server(server: &McpServer, can: &AgentCapabilities) -> Option<schema::McpServer> {
    match server {
        McpServer::Stdio { name, command, args, env } => {
            let env = env
                .iter()
                .map(|(name, value)| schema::EnvVariable::new(name.as_str(), value.as_str()))
                .collect();
            Some(schema::McpServer::Stdio(
                schema::McpServerStdio::new(name.as_str(), lossless(command)).args(args.clone()).env(env),
            ))
        }
        McpServer::Http { name, url, headers } => can.mcp_http.then(|| {
            schema::McpServer::Http(
                schema::McpServerHttp::new(name.as_str(), url.as_str()).headers(encode_headers(headers)),
            )
        }),
        McpServer::Sse { name, url, headers } => can.mcp_sse.then(|| {
            schema::McpServer::Sse(
                schema::McpServerSse::new(name.as_str(), url.as_str()).headers(encode_headers(headers)),
            )
        }),
    }
}

fn encode_headers(headers: &[(String, String)]) -> Vec<schema::HttpHeader> {
    headers.iter().map(|(name, value)| schema::HttpHeader::new(name.as_str(), value.as_str())).collect()
}
