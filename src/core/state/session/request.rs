//! The open requests of agents, and the answers to them.

use std::path::Path;
use std::time::Instant;

use crate::core::{ToolCall, URL_OPTIONS};
use crate::escape::visible;
use crate::model::{
    Access, AskReason, ConnId, ElicitationMode, ElicitationRequest, FileJob, Grant, GrantScope, ItemId,
    PermissionRequest, RequestId, SessionId, SessionKey, TerminalCommand, TerminalId, ToolCallId,
    WriteChange,
};

/// A request that waits for the user.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenRequest {
    pub conn: ConnId,
    pub request_id: RequestId,
    pub kind: OpenRequestKind,
    pub since: Instant,
}

#[allow(clippy::large_enum_variant, reason = "few are open at a time, and nearly all are permissions")]
#[derive(Debug, Clone, PartialEq)]
pub enum OpenRequestKind {
    Permission {
        request: PermissionRequest,
        tool: ItemId,
    },
    /// A form or an address to open.
    Elicitation(ElicitationRequest),
    /// Access to a file or a command that the policy asks about.
    Access(Box<AccessRequest>),
}

impl OpenRequestKind {
    /// The answers to select from, by the position that `UserAnswer::Option` names; a form has none.
    pub fn answers(&self) -> Vec<String> {
        match self {
            Self::Permission { request, .. } => {
                request.options.iter().map(|option| option.name.clone()).collect()
            }
            Self::Access(open) => open.labels(),
            Self::Elicitation(request) => match request.mode {
                ElicitationMode::Url { .. } => URL_OPTIONS.map(str::to_owned).to_vec(),
                ElicitationMode::Form { .. } => Vec::new(),
            },
        }
    }
}

/// A file or command that the user is asked about.
#[derive(Debug, Clone, PartialEq)]
pub struct AccessRequest {
    pub work: AccessWork,
    pub access: Access,
    pub why: AskReason,
    /// The rule that asks.
    pub rule: Option<String>,
    pub change: Option<WriteChange>,
    pub call: Box<ToolCall>,
    pub grant: Option<Grant>,
    pub offers_all_commands: bool,
    pub agent: String,
}

/// Work that waits for the user's answer.
#[derive(Debug, Clone, PartialEq)]
pub enum AccessWork {
    File(FileJob),
    Run(SessionKey, TerminalCommand),
}

/// A part of the work that the agent can cancel separately.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    Tool(ToolCallId),
    Terminal(TerminalId),
    Child(SessionId),
}

/// An answer to a request for a file or command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccessChoice {
    Once,
    Longer(GrantScope),
    /// Allow this and all other commands of the agent in the session's folders, until the session ends.
    AllCommands,
    Refuse,
}

impl AccessRequest {
    /// The answers in the dialog's order. The refusal is last.
    pub fn choices(&self) -> Vec<AccessChoice> {
        let longer = [GrantScope::Session, GrantScope::Folder].map(AccessChoice::Longer);
        let longer = longer.into_iter().filter(|_| self.grant.is_some());
        let all = self.offers_all_commands.then_some(AccessChoice::AllCommands);
        [AccessChoice::Once].into_iter().chain(longer).chain(all).chain([AccessChoice::Refuse]).collect()
    }

    pub fn labels(&self) -> Vec<String> {
        let what = match &self.grant {
            Some(Grant::WriteFile(_)) => "writes to this file".to_owned(),
            Some(Grant::ReadFile(_)) => "reads of this file".to_owned(),
            Some(Grant::WriteIn(folder)) => format!("writes in {}", short_name(folder)),
            Some(Grant::ReadIn(folder)) => format!("reads in {}", short_name(folder)),
            _ => "this command".to_owned(),
        };
        let label = |choice| match choice {
            AccessChoice::Once => "Allow once".to_owned(),
            AccessChoice::Longer(GrantScope::Session) => format!("Allow {what} for this session"),
            AccessChoice::Longer(GrantScope::Folder) => {
                format!("Always allow {what} for {} in this folder", self.agent)
            }
            AccessChoice::AllCommands => format!("Allow all commands of {} for this session", self.agent),
            AccessChoice::Refuse => "Reject".to_owned(),
        };
        self.choices().into_iter().map(label).collect()
    }
}

/// The name of a folder whose path is shown elsewhere: a long one must not push the refusal off the screen.
fn short_name(folder: &Path) -> String {
    const MAX_CHARS: usize = 24;
    let name = folder.file_name().unwrap_or(folder.as_os_str()).to_string_lossy();
    let name = visible(&name);
    match name.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{}…/", &name[..end]),
        None => format!("{name}/"),
    }
}
