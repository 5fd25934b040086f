//! Agents, updates and requests for tests.

use super::ID;
use crate::core::AgentChoice;
use crate::model::*;

/// An agent whose command is its name.
pub fn spec(name: &str) -> AgentSpec {
    AgentSpec { name: name.into(), command: name.into(), ..AgentSpec::default() }
}

pub fn fake() -> AgentSpec {
    spec("fake")
}

/// An agent that can be chosen.
pub fn choice(name: &str) -> AgentChoice {
    AgentChoice {
        spec: spec(name),
        title: name.into(),
        source: "configured".into(),
        ..AgentChoice::default()
    }
}

/// An agent with these ways to sign in, each with an id, which is also its name.
pub fn signs_in(methods: Vec<(&str, AuthKind)>) -> AgentInfo {
    let method =
        |(id, kind): (&str, _)| AuthMethod { id: id.into(), name: id.into(), description: None, kind };
    AgentInfo { auth_methods: methods.into_iter().map(method).collect(), ..AgentInfo::default() }
}

/// The head of a stored session `session` of the agent `fake`.
pub fn stored_head(uid: &str, session: &str) -> SessionHead {
    SessionHead {
        saved_as: Some(uid.into()),
        agent: "fake".into(),
        command: "fake".into(),
        session: Some(session.into()),
        workspace: SessionWorkspace { cwd: "/code/shop".into(), ..SessionWorkspace::default() },
        ..SessionHead::default()
    }
}

/// The record of a typed prompt.
pub fn typed(text: &str) -> Record {
    let (text, blocks, pasted) = (text.to_owned(), Vec::new(), Vec::new());
    Record::Prompt { text, is_again: false, blocks, pasted, typed: None }
}

/// A session of an agent's list.
pub fn listed(id: &str) -> SessionInfo {
    SessionInfo {
        id: id.into(),
        cwd: "/code/shop".into(),
        title: None,
        updated_at: None,
        additional_directories: Vec::new(),
        is_archived: false,
        is_live: None,
    }
}

/// The last session of the folder, as the store finds it.
pub fn last_session() -> StoreNews {
    StoreNews::FolderSession(Box::new(ArchiveRow {
        uid: "k1".to_owned(),
        agent: "fake".to_owned(),
        title: "Mend the fence".to_owned(),
        folder: "/code/shop".into(),
        when: "5 min ago".to_owned(),
        nearness: Nearness::Here,
        ..ArchiveRow::default()
    }))
}

pub fn all_capabilities() -> AgentCapabilities {
    AgentCapabilities {
        can_load: true,
        can_resume: true,
        can_list: true,
        can_delete: true,
        can_close: true,
        can_fork: true,
        can_set_title: true,
        can_log_out: true,
        ..AgentCapabilities::default()
    }
}

pub fn text(role: Role, text: &str) -> SessionUpdate {
    SessionUpdate::Chunk { role, message: None, text: text.into() }
}

pub fn says(reply: &str) -> SessionUpdate {
    text(Role::Agent, reply)
}

pub fn says_in(message: &str, reply: &str) -> SessionUpdate {
    SessionUpdate::Chunk { role: Role::Agent, message: Some(message.into()), text: reply.into() }
}

/// A `tool_call`.
pub fn call(id: &str, status: ToolStatus) -> SessionUpdate {
    let mut patch = ToolCallPatch::new(id.into());
    patch.is_announcement = true;
    patch.title = Patch::Set(format!("do {id}"));
    patch.status = Patch::Set(status);
    SessionUpdate::Tool(Box::new(patch))
}

/// A `tool_call_update`.
pub fn news(id: &str, status: ToolStatus) -> SessionUpdate {
    let mut patch = ToolCallPatch::new(id.into());
    patch.status = Patch::Set(status);
    SessionUpdate::Tool(Box::new(patch))
}

pub fn patch(id: &str, change: impl FnOnce(&mut ToolCallPatch)) -> SessionUpdate {
    let mut patch = ToolCallPatch::new(id.into());
    change(&mut patch);
    SessionUpdate::Tool(Box::new(patch))
}

pub fn option(id: &str, kind: PermissionKind) -> PermissionOption {
    PermissionOption { id: id.into(), name: format!("the {id}"), kind }
}

/// A permission request for a call with an id only.
pub fn permission(tool: &str) -> AgentRequest {
    permission_in(Some(ID), tool)
}

/// A permission request that names this session.
pub fn permission_in(session: Option<&str>, tool: &str) -> AgentRequest {
    AgentRequest::Permission(PermissionRequest {
        session: session.map(Into::into),
        tool: ToolCallPatch::new(tool.into()),
        options: vec![option("yes", PermissionKind::AllowOnce), option("no", PermissionKind::RejectOnce)],
    })
}

pub fn question() -> AgentRequest {
    AgentRequest::Elicitation(ElicitationRequest {
        session: Some(ID.into()),
        tool: None,
        message: "Which one?".into(),
        mode: ElicitationMode::Form { title: None, description: None, fields: Vec::new() },
    })
}

/// A request to run a command line.
pub fn run_line(line: &str) -> AgentRequest {
    create(TerminalCommand { command: line.into(), ..TerminalCommand::default() })
}

pub fn create(command: TerminalCommand) -> AgentRequest {
    AgentRequest::TerminalCreate { session: Some(ID.into()), command }
}
