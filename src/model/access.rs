//! Records of what an agent did through parlor: files read or written, commands run, and who allowed it.

use serde::{Deserialize, Serialize};

use super::held::HeldFile;
use super::{
    Access, AllowedBy, AskReason, CommandAccess, Decider, Facts, FileDiff, PermissionOption, RefusedBy,
    TerminalId,
};

/// A request that parlor served or refused, as shown in the transcript.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccessRecord {
    pub access: Access,
    pub outcome: AccessOutcome,
    /// The rule that allowed or denied it, in the user's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// The question to the user, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<Box<AccessQuestion>>,
    /// The change of a write, if it is small enough to save.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<WriteChange>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terminal: Option<TerminalId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Whether the write was held.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_held: bool,
    /// Whether the tool call that it belongs to shows the same change. Not saved.
    #[serde(skip)]
    pub is_reported: bool,
}

/// Whether a request was served, and who decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AccessOutcome {
    Allowed(AllowedBy),
    Refused(RefusedBy),
}

/// A question about an access, as it was shown, and its answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccessQuestion {
    /// Why the user was asked, as a sentence.
    pub reason: String,
    pub options: Vec<PermissionOption>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chosen: Option<String>,
    pub by: Decider,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allowance {
    pub by: AllowedBy,
    /// See [`AccessRecord::rule`].
    pub rule: Option<String>,
    /// See [`AccessRecord::question`].
    pub question: Option<Box<AccessQuestion>>,
}

impl From<AllowedBy> for Allowance {
    fn from(by: AllowedBy) -> Self {
        Self { by, rule: None, question: None }
    }
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
    pub access: Access,
    pub facts: Facts,
    pub why: AskReason,
    pub change: Option<WriteChange>,
}

/// A file request that was served, for the transcript.
#[derive(Debug, Clone, PartialEq)]
pub struct ServedFile {
    pub access: Access,
    pub allowed: Allowance,
    pub change: Option<WriteChange>,
    /// The file, if the write is held.
    pub held: Option<HeldFile>,
}

impl AccessRecord {
    /// A record without a change, a terminal or an error.
    pub fn new(access: Access, outcome: AccessOutcome) -> Self {
        let (rule, question, change, terminal, error) = (None, None, None, None, None);
        let (is_held, is_reported) = (false, false);
        Self { access, outcome, rule, question, change, terminal, error, is_held, is_reported }
    }

    pub fn allowed(access: Access, allowed: Allowance) -> Self {
        let Allowance { by, rule, question } = allowed;
        Self { rule, question, ..Self::new(access, AccessOutcome::Allowed(by)) }
    }

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

    pub fn is_refused(&self) -> bool {
        matches!(self.outcome, AccessOutcome::Refused(_))
    }

    /// Whether the user typed the command; no agent requested it.
    pub fn is_typed(&self) -> bool {
        self.outcome == AccessOutcome::Allowed(AllowedBy::Typed)
    }

    /// The outcome for display: `written by parlor, allowed once by the user`.
    pub fn description(&self) -> String {
        let (done, undone) = match &self.access {
            Access::Read { .. } => ("read", "not read"),
            Access::Write { .. } if self.is_held => ("held", "not held"),
            Access::Write { .. } => ("written", "not written"),
            Access::Run(_) => ("run", "not run"),
            Access::SignIn { .. } => ("started", "not started"),
        };
        let size = match &self.change {
            Some(WriteChange { diff: None, size_bytes, .. }) => format!(", {size_bytes} bytes"),
            _ => String::new(),
        };
        let decision = self.decision();
        match (self.outcome, &self.error) {
            (AccessOutcome::Refused(_), _) => format!("{undone}{size}, {decision}"),
            // The call that shows it has the error.
            (_, Some(_)) if matches!(self.access, Access::SignIn { .. }) => decision,
            (_, Some(error)) => format!("{undone}: {error} ({decision})"),
            (_, None) if self.is_typed() => decision,
            (_, None) => format!("{done} by parlor{size}, {decision}"),
        }
    }

    /// Who decided, for display: `allowed once by the user`.
    pub fn decision(&self) -> String {
        match (self.outcome, &self.rule, &self.question) {
            (AccessOutcome::Allowed(by), Some(rule), _) => match by.origin() {
                Some(origin) => format!("allowed by the rule `{rule}` {origin}"),
                None => by.description().to_owned(),
            },
            (AccessOutcome::Refused(RefusedBy::Cancelled), _, Some(question)) => {
                format!("not answered: {}", question.by.reason())
            }
            (AccessOutcome::Refused(RefusedBy::Rule), Some(rule), _) => {
                format!("denied by the rule `{rule}` of the configuration")
            }
            (AccessOutcome::Allowed(by), ..) => by.description().to_owned(),
            (AccessOutcome::Refused(by), ..) => by.description().to_owned(),
        }
    }
}
