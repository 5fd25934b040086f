//! Notices about additional folders and MCP servers that an agent does not support and that are therefore not used.
//!
//! `acp` omits them. Each notice is shown once, whatever the number of restarts.

use crate::model::{McpServer, SessionKey, Severity};

use super::call;
use crate::core::{Conn, State};

/// Additional folders are configured, and the agent supports only one. Source: ACP v1 session-setup,
/// `additionalDirectories`.
pub(in crate::core) fn report_folders(state: &mut State, key: SessionKey) {
    let can = state.conn_of(key).map(Conn::capabilities).unwrap_or_default();
    let Some(session) = state.sessions.get(&key).filter(|session| !session.resume.is_reopening()) else {
        return;
    };
    let folders = &session.workspace.additional_directories;
    let is_remote = session.workspace.remote.is_some();
    if folders.is_empty() || (can.additional_directories && !is_remote) {
        return;
    }
    let names: Vec<String> = folders.iter().map(|folder| folder.display().to_string()).collect();
    let detail = if is_remote {
        "The folders are on this machine, but the agent runs on another."
    } else {
        "This agent supports one folder only. It may still request files from the others."
    };
    let title = format!("Folders not passed to the agent: {}", names.join(", "));
    call::notice(state, key, Severity::Info, title, Some(detail.to_owned()));
}

/// MCP servers are omitted because the agent does not support their transport. Source: ACP v1 session-setup,
/// `mcpCapabilities`.
pub(in crate::core) fn report_servers(state: &mut State, key: SessionKey) {
    let can = state.conn_of(key).map(Conn::capabilities).unwrap_or_default();
    let spec = state.conn_of(key).map(|conn| conn.spec.clone()).unwrap_or_default();
    let agent = spec.command_line();
    let configured: Vec<&str> = state.setup.mcp_servers.iter().map(McpServer::name).collect();
    let not_passed = (!spec.gets_servers() && !configured.is_empty()).then(|| configured.join(", "));
    let earlier_notices: Vec<(String, String)> =
        state.sessions.values().filter_map(|session| session.start.unsupported().cloned()).collect();
    let Some(session) = state.sessions.get_mut(&key).filter(|session| !session.resume.is_reopening()) else {
        return;
    };
    let left_out: Vec<String> = session
        .workspace
        .mcp_servers
        .iter()
        .filter_map(|server| match server {
            McpServer::Http { name, .. } => (!can.mcp_http).then(|| format!("{name} (http)")),
            McpServer::Sse { name, .. } => (!can.mcp_sse).then(|| format!("{name} (sse)")),
            McpServer::Stdio { name, .. } => can.mcp_stdio_off.then(|| format!("{name} (stdio)")),
        })
        .collect();
    let (names, detail) = if let Some(names) = not_passed {
        let detail = "This agent runs on another machine. Set `mcp = true` in the agent's section of \
            config.toml to pass your servers with their headers and variables.";
        (names, detail)
    } else {
        let detail = "This agent does not support servers of this type. Their tools are not available.";
        (left_out.join(", "), detail)
    };
    let title = format!("MCP servers not passed to the agent: {names}");
    let notice = (agent, title.clone());
    if !names.is_empty() && !earlier_notices.contains(&notice) {
        session.start.set_unsupported(notice);
        call::notice(state, key, Severity::Info, title, Some(detail.to_owned()));
    }
}
