//! Builds the method and params of requests, for both versions of the protocol.
//!
//! Content that the agent does not support is omitted here, so that other layers need not know the agent's limits.
//! Invariant: a message contains nothing that the official types do not have, except for draft features
//! ([`super::replies`]) of agents that advertise them, `session/set_model`, and the system prompt.

use std::path::Path;

use serde_json::{Value, json};

use crate::model::{
    AgentCapabilities, Call, ConfigValue, ContentBlock, McpServer, SessionId, SessionWorkspace, WireSpec,
};

use super::content;
use super::value::{Object, into_object, without_nulls};

pub fn encode(
    call: &Call,
    can: &AgentCapabilities,
    wire: &WireSpec,
    is_v2: bool,
) -> Option<(&'static str, Object)> {
    // ACP v1 session-setup: `additionalDirectories` only with its capability.
    let open = |id: Option<&SessionId>, workspace: &SessionWorkspace| {
        let mut params = id.map_or(json!({}), session);
        params["cwd"] = path(workspace.folder());
        // Local folders do not exist on another machine.
        let folders = &workspace.additional_directories;
        if can.additional_directories && workspace.remote.is_none() && !folders.is_empty() {
            params["additionalDirectories"] = folders.iter().map(|folder| path(folder)).collect();
        }
        if let Some(prompt) = wire.system_prompt.as_ref().filter(|prompt| can.takes(prompt)) {
            let mode = if prompt.replaces { "override" } else { "append" };
            params["systemPrompt"] =
                json!({"mode": mode, "content": [{"type": "text", "text": prompt.text}]});
        }
        let servers = workspace.mcp_servers.iter().filter_map(|server| encode_server(server, can, is_v2));
        let servers: Vec<Value> = servers.collect();
        let is_list_required = !is_v2 && matches!(call, Call::NewSession(_) | Call::LoadSession(..));
        if is_list_required || !servers.is_empty() {
            params["mcpServers"] = servers.into();
        }
        params
    };
    let (method, params) = match call {
        Call::Authenticate { method_id, api_key } => {
            let mut params = json!({"methodId": method_id});
            if let Some(key) = api_key.as_ref().map(crate::model::Secret::reveal) {
                let key = if can.api_key_is_text { json!(key) } else { json!({"apiKey": key}) };
                params["_meta"] = json!({"api-key": key});
            }
            (if is_v2 { "auth/login" } else { "authenticate" }, params)
        }
        Call::LogOut => (if is_v2 { "auth/logout" } else { "logout" }, json!({})),
        Call::NewSession(workspace) => ("session/new", open(None, workspace)),
        // In version 2, loading is resuming with a replay.
        Call::LoadSession(id, workspace) if is_v2 => {
            let mut params = open(Some(id), workspace);
            params["replayFrom"] = json!({"type": "start"});
            ("session/resume", params)
        }
        Call::LoadSession(id, workspace) => ("session/load", open(Some(id), workspace)),
        Call::ResumeSession(id, workspace) => ("session/resume", open(Some(id), workspace)),
        Call::ForkSession(id, workspace, _) => ("session/fork", open(Some(id), workspace)),
        Call::ListSessions { cwd, cursor } => {
            let archived = can.can_archive.then_some("include");
            let cwd = cwd.as_deref().map(path);
            ("session/list", without_nulls(json!({"cwd": cwd, "cursor": cursor, "archived": archived})))
        }
        Call::DeleteSession(id) => ("session/delete", session(id)),
        Call::CloseSession(id) => ("session/close", session(id)),
        Call::SetTitle(id, title) => ("session/set_title", json!({"sessionId": id, "title": title})),
        Call::Prompt(id, blocks) => {
            ("session/prompt", json!({"sessionId": id, "prompt": prompt(blocks, can)}))
        }
        Call::Steer(id, blocks) => {
            // If there is no running turn any more, the agent must not start one, because its end would not be reported.
            let meta = json!({"steering": {"idleBehavior": "promptRequired"}});
            let params = json!({"sessionId": id, "prompt": prompt(blocks, can), "_meta": meta});
            ("_session/steering", params)
        }
        // In version 2, modes and models are config options.
        Call::SetMode(..) | Call::SetModel(..) if is_v2 => return None,
        Call::SetMode(id, mode) => ("session/set_mode", json!({"sessionId": id, "modeId": mode})),
        // Removed from the official types in favour of config options; many agents still accept it.
        Call::SetModel(id, model) => ("session/set_model", json!({"sessionId": id, "modelId": model})),
        Call::SetOption(id, option, value) => {
            let (kind, value) = match value {
                ConfigValue::Text(text) => (is_v2.then_some("id"), json!(text)),
                ConfigValue::Bool(is_on) => (Some("boolean"), json!(is_on)),
            };
            let params = json!({"sessionId": id, "configId": option, "type": kind, "value": value});
            ("session/set_config_option", without_nulls(params))
        }
        // Version 1 does not have these methods, so no agent advertises them.
        Call::StopTool(id, tool) => ("tool_call/cancel", json!({"sessionId": id, "toolCallId": tool})),
        Call::StopTerminal(id, terminal) => {
            ("terminal/cancel", json!({"sessionId": id, "terminalId": terminal}))
        }
        Call::Archive(id, true) => ("session/archive", session(id)),
        Call::Archive(id, false) => ("session/unarchive", session(id)),
        Call::SessionStatus(id) => ("session/status", session(id)),
        Call::AuthStatus => ("auth/status", json!({})),
        Call::ListProviders => ("providers/list", json!({})),
        Call::SetProvider(request) => match &request.target {
            None => ("providers/disable", json!({"providerId": request.id})),
            Some(target) => {
                let headers = target.headers.iter().map(|(name, value)| (name.clone(), value.clone().into()));
                let params = json!({
                    "providerId": request.id,
                    "apiType": target.api_type,
                    "baseUrl": target.base_url,
                    "headers": headers.collect::<Object>(),
                });
                ("providers/set", params)
            }
        },
    };
    Some((method, into_object(params)))
}

fn session(id: &SessionId) -> Value {
    json!({"sessionId": id})
}

/// Paths that are not UTF-8 get replacement characters, so that the agent can at least report an error about them.
fn path(path: &Path) -> Value {
    path.to_string_lossy().into()
}

fn prompt(blocks: &[ContentBlock], can: &AgentCapabilities) -> Value {
    blocks.iter().map(|block| content::encode(block, can)).collect()
}

/// ACP v1 session-setup: every agent accepts stdio servers, others only with their capability.
fn encode_server(server: &McpServer, can: &AgentCapabilities, is_v2: bool) -> Option<Value> {
    match server {
        McpServer::Stdio { .. } if can.mcp_stdio_off => None,
        McpServer::Stdio { name, command, args, env } => {
            let (kind, env, command) = (is_v2.then_some("stdio"), pairs(env), path(command));
            let server = json!({"name": name, "command": command, "args": args, "env": env, "type": kind});
            Some(without_nulls(server))
        }
        McpServer::Http { name, url, headers } if can.mcp_http => {
            Some(json!({"type": "http", "name": name, "url": url, "headers": pairs(headers)}))
        }
        McpServer::Sse { name, url, headers } if can.mcp_sse && !is_v2 => {
            Some(json!({"type": "sse", "name": name, "url": url, "headers": pairs(headers)}))
        }
        McpServer::Http { .. } | McpServer::Sse { .. } => None,
    }
}

fn pairs(pairs: &[(String, String)]) -> Vec<Value> {
    pairs.iter().map(|(name, value)| json!({"name": name, "value": value})).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{ProviderRequest, ProviderTarget, Secret, SystemPrompt};

    fn sent(call: &Call, can: AgentCapabilities, wire: &WireSpec) -> String {
        let (method, params) = encode(call, &can, wire, false).unwrap();
        format!("{method} {}", Value::Object(params))
    }

    #[test]
    fn a_prompt_for_the_running_turn_must_not_start_another_one() {
        let call = Call::Steer("s1".into(), vec![ContentBlock::Text("hi".into())]);
        let expected = r#"_session/steering {"sessionId":"s1","prompt":[{"type":"text","text":"hi"}],"_meta":{"steering":{"idleBehavior":"promptRequired"}}}"#;
        assert_eq!(sent(&call, AgentCapabilities::default(), &WireSpec::default()), expected);
    }

    #[test]
    fn system_prompts_are_sent_to_agents_that_support_them() {
        let call = Call::NewSession(SessionWorkspace { cwd: "/w".into(), ..SessionWorkspace::default() });
        let wire = |replaces| WireSpec {
            system_prompt: Some(SystemPrompt { text: "be brief".to_owned(), replaces }),
            ..WireSpec::default()
        };
        let can = AgentCapabilities { system_prompt: true, ..AgentCapabilities::default() };
        let expected = r#"session/new {"cwd":"/w","systemPrompt":{"mode":"append","content":[{"type":"text","text":"be brief"}]},"mcpServers":[]}"#;
        assert_eq!(sent(&call, can, &wire(false)), expected);
        let plain = r#"session/new {"cwd":"/w","mcpServers":[]}"#;
        assert_eq!(sent(&call, can, &wire(true)), plain, "override is not supported");
        assert_eq!(sent(&call, AgentCapabilities::default(), &wire(false)), plain);
        assert_eq!(sent(&Call::LogOut, can, &wire(false)), "logout {}");
        let all = AgentCapabilities { system_prompt_override: true, ..can };
        assert!(sent(&call, all, &wire(true)).contains("override"));
    }

    #[test]
    fn the_key_of_a_sign_in_is_sent_in_the_form_of_the_agent() {
        let api_key = Some(Secret::new("k".to_owned()));
        let call = Call::Authenticate { method_id: "m".to_owned(), api_key };
        let sent = |api_key_is_text| {
            let can = AgentCapabilities { api_key_is_text, ..AgentCapabilities::default() };
            sent(&call, can, &WireSpec::default())
        };
        assert_eq!(sent(false), r#"authenticate {"methodId":"m","_meta":{"api-key":{"apiKey":"k"}}}"#);
        assert_eq!(sent(true), r#"authenticate {"methodId":"m","_meta":{"api-key":"k"}}"#);
        for text in [sent(false), sent(true)] {
            let params = text.strip_prefix("authenticate ").unwrap();
            assert!(crate::redact::redact(params).contains("[hidden]"), "{text}");
        }
    }

    #[test]
    fn archived_sessions_are_listed_if_archiving_is_supported() {
        let list = Call::ListSessions { cwd: None, cursor: Some("c".to_owned()) };
        let can = AgentCapabilities { can_archive: true, ..AgentCapabilities::default() };
        let sent = |can| sent(&list, can, &WireSpec::default());
        assert_eq!(sent(can), r#"session/list {"cursor":"c","archived":"include"}"#);
        assert_eq!(sent(AgentCapabilities::default()), r#"session/list {"cursor":"c"}"#);
    }

    #[test]
    fn calls_use_the_method_names_of_the_drafts() {
        let sent = |call: &Call| sent(call, AgentCapabilities::default(), &WireSpec::default());
        let archive = |is_away| Call::Archive("s".into(), is_away);
        assert_eq!(sent(&archive(true)), r#"session/archive {"sessionId":"s"}"#);
        assert_eq!(sent(&archive(false)), r#"session/unarchive {"sessionId":"s"}"#);
        let target = ProviderTarget {
            api_type: "openai".to_owned(),
            base_url: "https://llm.example".to_owned(),
            headers: vec![("X-Team".to_owned(), "blue".to_owned())],
        };
        let moved = Call::SetProvider(ProviderRequest { id: "main".to_owned(), target: Some(target) });
        assert_eq!(
            sent(&moved),
            r#"providers/set {"providerId":"main","apiType":"openai","baseUrl":"https://llm.example","headers":{"X-Team":"blue"}}"#
        );
        let off = Call::SetProvider(ProviderRequest { id: "main".to_owned(), target: None });
        assert_eq!(sent(&off), r#"providers/disable {"providerId":"main"}"#);
        let status = Call::SessionStatus("s".into());
        assert_eq!(sent(&status), r#"session/status {"sessionId":"s"}"#);
    }
}
