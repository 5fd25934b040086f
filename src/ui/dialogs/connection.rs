//! The dialog with details of the connection: the agent, its capabilities, and how it was started.

use super::dialog_frame::{DialogFrame, Size, named, wrapped};
use super::layer::{Flow, Layer};
use super::providers::endpoint;
use super::scroll;
use crate::config::keymap::Context;
use crate::core::{Conn, ConnPhase, Cx, State};
use crate::model::{
    Action, AgentCapabilities, AuthKind, AuthState, AuthStatus, CloseReason, ConnId, ExitInfo,
};
use crate::ui::App;
use crate::ui::frame_context::FrameContext;
use crate::ui::text;
use crate::ui::theme::Role;

const NAMES: usize = 14;

#[derive(Debug)]
pub struct ConnectionPage(pub ConnId);

impl Layer for ConnectionPage {
    fn title(&self, _state: &State) -> String {
        "Connection".to_owned()
    }

    fn context(&self) -> Context {
        Context::Text
    }

    fn on_action(&mut self, _app: &mut App, action: Action, cx: &mut Cx) -> Flow {
        scroll::on_page(action, None, cx)
    }

    fn size(&self) -> Size {
        Size::Large
    }

    fn frame<'a>(&'a self, ctx: &'a FrameContext, cols: u16, _rows: u16) -> DialogFrame<'a> {
        let mut sheet = DialogFrame::default();
        match ctx.state.conns.get(&self.0) {
            Some(conn) => {
                for (name, value) in facts(ctx, conn) {
                    sheet.body.extend(named(ctx, (name, NAMES), &value, cols));
                }
            }
            None => sheet.body = wrapped(ctx, Role::TextDim, "Connection closed.", cols),
        }
        sheet.set_hints([
            Some(ctx.updown("scroll")),
            ctx.hint(Context::Text, Action::OpenLog, "show log"),
            ctx.hint(Context::Text, Action::Escape, "close"),
        ]);
        sheet
    }
}

fn facts(ctx: &FrameContext, conn: &Conn) -> Vec<(&'static str, String)> {
    let mut facts: Vec<(&'static str, String)> = Vec::new();
    if let Some(info) = &conn.info {
        let name = info.title.as_deref().or(info.name.as_deref()).unwrap_or(&conn.spec.name);
        let version = info.version.as_deref().map(|version| format!(" {version}")).unwrap_or_default();
        facts.push(("agent", format!("{name}{version}")));
        facts.push(("protocol", format!("version {}", info.protocol_version)));
    } else {
        facts.push(("agent", conn.spec.name.clone()));
    }
    let wire = &conn.spec.wire;
    let profile = conn.info.as_ref().and_then(|info| info.profile).or(wire.profile);
    match profile {
        _ if wire.is_strict => facts.push(("compatibility", "off (strict protocol)".to_owned())),
        Some(profile) => facts.push(("compatibility", format!("profile {}", profile.name()))),
        None => {}
    }
    facts.push(("state", phase(ctx, &conn.phase)));
    let position = if conn.spec.remote.is_some() { "address" } else { "command" };
    facts.push((position, conn.spec.command_line()));
    match (&conn.spec.cwd, &ctx.session.workspace.remote) {
        (_, Some(_)) => facts.push(("folder", ctx.folder())),
        (Some(cwd), None) => facts.push(("started in", ctx.path(cwd))),
        (None, None) => {}
    }
    // Values of variables may be secrets.
    let printed = conn.spec.env_commands.iter().map(|(name, _)| name.as_str());
    let names: Vec<&str> = conn.spec.env.iter().map(|(name, _)| name.as_str()).chain(printed).collect();
    if !names.is_empty() {
        facts.push(("environment", names.join(", ")));
    }
    if let Some(pid) = conn.pid {
        let sandbox = if conn.spec.bounds.is_some() { " (in a sandbox)" } else { "" };
        facts.push(("process", format!("{pid}{sandbox}")));
    }
    facts.extend(conn.sandbox.clone().map(|text| ("sandbox", text)));
    if let Some(id) = &ctx.session.id {
        facts.push(("session", id.to_string()));
    }
    let position = &ctx.session.workspace;
    for (index, folder) in position.additional_directories.iter().enumerate() {
        facts.push((if index == 0 { "more folders" } else { "" }, ctx.path(folder)));
    }
    let servers: Vec<String> =
        position.mcp_servers.iter().map(|server| text::one_line(server.name())).collect();
    if !servers.is_empty() {
        facts.push(("MCP servers", servers.join(", ")));
    } else if !conn.spec.gets_servers() {
        facts.push(("MCP servers", "not passed to remote agents unless mcp = true".to_owned()));
    }
    if let Some(warnings) = ctx.protocol_warnings() {
        facts.push(("warnings", format!("{warnings}, see the protocol log")));
    }
    let calls = conn.open_calls.len();
    if calls > 0 {
        facts.push(("pending calls", calls.to_string()));
    }
    let callbacks = &conn.spec.callbacks;
    let offered = [
        (callbacks.fs_read, "read files"),
        (callbacks.fs_write, "write files"),
        (callbacks.terminal, "run commands"),
    ];
    facts.push(("agent may", list(&offered)));
    if let Some(info) = &conn.info {
        facts.push(("supports", capabilities(&info.capabilities)));
        let ways: Vec<String> = info
            .auth_methods
            .iter()
            .map(|method| {
                let how = match method.kind {
                    AuthKind::Agent => "in the agent",
                    AuthKind::Terminal(_) => "in terminal",
                    AuthKind::EnvVar { .. } => "environment variables",
                    AuthKind::ApiKey => "API key",
                };
                format!("{} ({how})", text::one_line(&method.name))
            })
            .collect();
        if !ways.is_empty() {
            facts.push(("sign-in", ways.join(", ")));
        }
        if let Some(auth) = &conn.auth {
            facts.push(("account", account(auth)));
        }
        for (index, provider) in conn.providers.iter().enumerate() {
            let text = text::one_line(&format!("{}: {}", provider.id, endpoint(provider)));
            facts.push((if index == 0 { "providers" } else { "" }, text));
        }
        for (index, quirk) in info.quirks.iter().enumerate() {
            facts.push((if index == 0 { "notes" } else { "" }, quirk.clone()));
        }
    }
    facts
}

fn account(auth: &AuthStatus) -> String {
    let state = match auth.state {
        AuthState::SignedIn => "signed in",
        AuthState::SignedOut => "not signed in",
        AuthState::NotNeeded => "not required",
        AuthState::Unknown => "unknown",
    };
    let names: Vec<String> = auth.accounts.iter().map(|account| text::one_line(account)).collect();
    if names.is_empty() { state.to_owned() } else { format!("{state}: {}", names.join(", ")) }
}

fn list(flags: &[(bool, &str)]) -> String {
    let on: Vec<&str> = flags.iter().filter(|(is_on, _)| *is_on).map(|(_, name)| *name).collect();
    if on.is_empty() { "none".to_owned() } else { on.join(", ") }
}

fn capabilities(can: &AgentCapabilities) -> String {
    list(&[
        (can.can_load, "load sessions"),
        (can.can_resume, "resume sessions"),
        (can.can_list, "list sessions"),
        (can.can_delete, "delete sessions"),
        (can.can_close, "close sessions"),
        (can.can_fork, "fork sessions"),
        (can.can_set_title, "rename sessions"),
        (can.additional_directories, "additional folders"),
        (can.prompt_image, "images"),
        (can.prompt_audio, "audio"),
        (can.prompt_embedded_context, "embedded files"),
        (can.mcp_http, "MCP over HTTP"),
        (can.mcp_sse, "MCP over SSE"),
        (can.can_log_out, "sign out"),
        (can.can_archive, "archive sessions"),
        (can.tells_status, "session status"),
        (can.system_prompt, "system prompt"),
        (can.has_providers, "provider configuration"),
    ])
}

fn phase(ctx: &FrameContext, phase: &ConnPhase) -> String {
    match phase {
        ConnPhase::Starting { since } => format!("starting, {}", ctx.since(*since)),
        ConnPhase::Ready => "ready".to_owned(),
        ConnPhase::Stopping => "stopping".to_owned(),
        ConnPhase::Closed(CloseReason::NotStarted { error, .. }) => format!("could not be started: {error}"),
        ConnPhase::Closed(CloseReason::Exited { status, .. }) => exit(status),
        ConnPhase::Closed(CloseReason::Lost { error }) => format!("lost: {error}"),
        ConnPhase::Closed(CloseReason::Unreachable { error }) => format!("unreachable: {error}"),
        ConnPhase::Closed(CloseReason::Refused { error }) => format!("refused: {error}"),
        ConnPhase::Closed(CloseReason::SignInFirst { error }) => format!("sign-in required: {error}"),
        ConnPhase::Closed(CloseReason::Stopped) => "stopped".to_owned(),
    }
}

fn exit(status: &ExitInfo) -> String {
    match (status.code, &status.signal) {
        (_, Some(signal)) => format!("terminated by {signal}"),
        (Some(code), None) => format!("exited with code {code}"),
        (None, None) => "exited".to_owned(),
    }
}
