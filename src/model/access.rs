//! Records of what an agent did through parlor: files read or written, commands run, and who allowed it.

use serde::{Deserialize, Serialize};

use super::{Access, AllowedBy, AskReason, CommandAccess, Facts, FileDiff, RefusedBy, TerminalId};

/// A request that parlor served or refused, as shown in the transcript.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccessRecord {
    pub access: Access,
    pub outcome: AccessOutcome,
    /// The change of a write, if it is small enough to save.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<WriteChange>,
    /// The terminal of a command that was started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terminal: Option<TerminalId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Whether the tool call that it belongs to shows the same change. Not saved.
    #[serde(skip)]
    pub is_told: bool,
}

/// Whether a request was served, and who decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AccessOutcome {
    Allowed(AllowedBy),
    Refused(RefusedBy),
}

/// The change that a write makes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct WriteChange {
    /// The full texts, or their differing parts; `None` if they are too large.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<FileDiff>,
    /// First line of the texts in the file, from 1, if they are excerpts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// Size of the new content, in bytes.
    pub size_bytes: u64,
}

/// A file request that needs the user's decision.
#[derive(Debug, Clone, PartialEq)]
pub struct AskedFile {
    /// The access, with all links resolved.
    pub access: Access,
    pub facts: Facts,
    pub why: AskReason,
    pub change: Option<WriteChange>,
}

/// A file request that was served, for the transcript.
#[derive(Debug, Clone, PartialEq)]
pub struct ServedFile {
    /// The access, with all links resolved.
    pub access: Access,
    pub by: AllowedBy,
    pub change: Option<WriteChange>,
}

impl AccessRecord {
    /// A record without a change, a terminal or an error.
    pub fn new(access: Access, outcome: AccessOutcome) -> Self {
        Self { access, outcome, change: None, terminal: None, error: None, is_told: false }
    }

    /// The recorded change.
    pub fn diff(&self) -> Option<&FileDiff> {
        self.change.as_ref()?.diff.as_ref()
    }

    /// The command; `None` for other accesses.
    pub fn command(&self) -> Option<&CommandAccess> {
        match &self.access {
            Access::Run(command) => Some(command),
            _ => None,
        }
    }

    /// Whether the request was refused.
    pub fn is_refused(&self) -> bool {
        matches!(self.outcome, AccessOutcome::Refused(_))
    }

    /// Whether the user typed the command; no agent requested it.
    pub fn is_typed(&self) -> bool {
        self.outcome == AccessOutcome::Allowed(AllowedBy::Typed)
    }

    /// The outcome for display: `written by parlor, allowed once by you`.
    pub fn description(&self) -> String {
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
            (AccessOutcome::Refused(by), _) => format!("{undone}{size}, {}", by.description()),
            // The call that shows it has the error.
            (AccessOutcome::Allowed(by), Some(_)) if matches!(self.access, Access::SignIn { .. }) => {
                by.description().to_owned()
            }
            (AccessOutcome::Allowed(by), Some(error)) => format!("{undone}: {error} ({})", by.description()),
            (AccessOutcome::Allowed(by), None) if self.is_typed() => by.description().to_owned(),
            (AccessOutcome::Allowed(by), None) => format!("{done} by parlor{size}, {}", by.description()),
        }
    }
}
