//! Records of what an agent did through parlor: files read or written, commands run, and who allowed it.

use serde::{Deserialize, Serialize};

use super::{Access, AllowedBy, AskReason, CommandAccess, Facts, FileDiff, RefusedBy, TerminalId};

/// Something that went through parlor for an agent, or was refused, as the transcript keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccessRecord {
    pub access: Access,
    /// Whether it was done, and who decided.
    pub outcome: AccessOutcome,
    /// The change of a write, if it is small enough to be saved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<WriteChange>,
    /// The terminal of a command that was started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terminal: Option<TerminalId>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Whether the tool call that it belongs to shows the same change itself. Not saved.
    #[serde(skip)]
    pub is_told: bool,
}

/// Whether something was done, and who decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AccessOutcome {
    Allowed(AllowedBy),
    /// It was not.
    Refused(RefusedBy),
}

/// What a write changes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct WriteChange {
    /// The texts before and after, whole or as far as they differ; `None`: they are too large.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<FileDiff>,
    /// If the texts are a part of the file: the line on which they begin, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// Size of the new content, in bytes.
    pub size_bytes: u64,
}

/// A file request that the user must decide.
#[derive(Debug, Clone, PartialEq)]
pub struct AskedFile {
    /// What would be done, with all links followed.
    pub access: Access,
    /// What is known of it.
    pub facts: Facts,
    /// Why the user is asked.
    pub why: AskReason,
    /// What a write would change.
    pub change: Option<WriteChange>,
}

/// A file request that was served, as far as the transcript shows it.
#[derive(Debug, Clone, PartialEq)]
pub struct ServedFile {
    /// What was done, with all links followed.
    pub access: Access,
    /// Who allowed it.
    pub by: AllowedBy,
    /// What a write changed.
    pub change: Option<WriteChange>,
}

impl AccessRecord {
    /// A record of something without a change, a terminal or an error.
    pub fn new(access: Access, outcome: AccessOutcome) -> Self {
        Self { access, outcome, change: None, terminal: None, error: None, is_told: false }
    }

    /// The change, if it is recorded.
    pub fn diff(&self) -> Option<&FileDiff> {
        self.change.as_ref()?.diff.as_ref()
    }

    /// The command, if it is one.
    pub fn command(&self) -> Option<&CommandAccess> {
        match &self.access {
            Access::Run(command) => Some(command),
            _ => None,
        }
    }

    /// Whether it was refused.
    pub fn is_refused(&self) -> bool {
        matches!(self.outcome, AccessOutcome::Refused(_))
    }

    /// What happened, for people: `written through parlor, allowed once by you`.
    pub fn words(&self) -> String {
        let (done, undone) = match &self.access {
            Access::Read { .. } => ("read", "not read"),
            Access::Write { .. } => ("written", "not written"),
            Access::Run(_) => ("run", "not run"),
            Access::SignIn { .. } => ("started", "not started"),
        };
        let size = match &self.change {
            Some(WriteChange { diff: None, size_bytes, .. }) => format!(", {size_bytes} bytes"),
            _ => String::new(),
        };
        match (self.outcome, &self.error) {
            (AccessOutcome::Refused(by), _) => format!("{undone}{size}, {}", by.words()),
            (AccessOutcome::Allowed(by), Some(error)) => format!("{undone}: {error} ({})", by.words()),
            (AccessOutcome::Allowed(by), None) => format!("{done} by parlor{size}, {}", by.words()),
        }
    }
}
