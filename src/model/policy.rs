//! The policy for files, commands and sign-ins that go through parlor.
//!
//! [`decide`] is pure: from a request ([`Access`]), the facts about it ([`Facts`]) and the user's settings
//! and grants ([`Policy`]) it decides whether the request is allowed, needs confirmation or is refused, with
//! the reason as data. Services call it with resolved paths, the app with command lines.
//!
//! Invariants: a protected file is never written unless the user saw its new content and that it is
//! protected; an allowed command is the exact command line that the user saw, unless the user allowed all
//! commands of a session.

mod command;
mod protected;
pub(super) mod rules;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::Allowance;

pub use command::{
    COMMAND_MAX_BYTES, CommandAccess, approved_lines, command_in_title, is_plain_environment,
    is_shown_in_full, shell_line,
};
pub use protected::{Protection, has_keys, is_repository, protected_names, protection_of};
pub use rules::{Rule, RuleAction, RuleContext, Rules, Ruling, Subject};

/// An action that an agent requests from parlor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    Read {
        /// The file, with all links resolved.
        path: PathBuf,
    },
    /// Create or replace a file.
    Write {
        /// The file, with all links resolved.
        path: PathBuf,
    },
    Run(CommandAccess),
    SignIn {
        line: String,
    },
}

/// Facts about a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Facts {
    /// Whether the file or the working directory is inside the session's folders.
    pub is_inside: bool,
    /// Why the file is protected, if it is.
    pub protection: Option<Protection>,
    /// Whether an approved tool call of the current turn shows exactly this. For a protected file: with its
    /// real path, in a dialog that showed it as protected.
    pub is_covered: bool,
}

/// The user's settings and grants for one agent in one session.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Policy {
    pub rules: PolicyRules,
    /// Whether the agent runs on another machine.
    pub is_remote: bool,
    pub home: Option<PathBuf>,
    /// Folders of parlor's configuration and data.
    pub own_folders: Vec<PathBuf>,
    pub grants: Vec<(Grant, GrantScope)>,
    /// Rules of the user, and those of the project.
    pub user_rules: Rules,
    /// What the rules are compared with.
    pub context: RuleContext,
    /// The path that the agent requested, before links are resolved.
    pub requested: Option<PathBuf>,
}

/// The section `[policy]` of the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a setting of its own")]
pub struct PolicyRules {
    /// Whether every write needs confirmation, also inside the session's folders.
    pub ask_writes: bool,
    /// Whether writes inside the session's folders are held until the user applies them.
    pub hold_writes: bool,
    /// Whether commands need confirmation. Commands of remote agents always do.
    pub ask_commands: bool,
    /// Whether the user can type into commands of agents; without it, they have no input.
    pub command_input: bool,
    /// Whether prompts with secrets are asked about before they are sent.
    pub check_secrets: bool,
}

impl Default for PolicyRules {
    fn default() -> Self {
        Self {
            ask_writes: false,
            hold_writes: false,
            ask_commands: true,
            command_input: false,
            check_secrets: true,
        }
    }
}

/// A permission for more than one request, as narrow as the request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Grant {
    /// This exact command line, in this folder and with this environment.
    Run(CommandAccess),
    /// All commands in the session's folders, unless their variables can change what they execute.
    AnyCommand,
    WriteFile(PathBuf),
    /// Writes to unprotected files directly in this folder.
    WriteIn(PathBuf),
    ReadFile(PathBuf),
    /// Reads of files directly in this folder.
    ReadIn(PathBuf),
    /// A rule that allows, as text.
    Rule(String),
    /// Opens a file or folder in the sandbox of the agent's process.
    SandboxWrite(PathBuf),
    SandboxRead(PathBuf),
}

/// The lifetime of a grant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GrantScope {
    /// Until the session ends.
    Session,
    /// For this agent in this folder, until it is revoked.
    Folder,
}

/// A saved grant, for one agent in one folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredGrant {
    /// The agent's name and its command line or URL.
    pub agent: String,
    pub folder: PathBuf,
    pub grant: Grant,
}

/// The result of [`decide`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    Allow(Allowance),
    Ask(AskReason),
    /// It is refused without asking the user.
    Refuse(RefusedBy),
}

/// Why a request was allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AllowedBy {
    InsideRoots,
    /// The user approved a tool call that shows it.
    ApprovedCall,
    Configuration,
    /// A rule of the configuration.
    Rule,
    Grant(GrantScope),
    /// The user allowed this one request.
    You,
    /// The user typed the command; no agent requested it.
    Typed,
}

/// Why the user is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AskReason {
    /// The file is outside the session's folders.
    Outside,
    Protected(Protection),
    /// The configuration requires confirmation of writes.
    Write,
    /// No approved tool call shows this command.
    Command,
    /// The command runs outside the session's folders.
    CommandOutside,
    SignIn,
    /// A rule of the configuration asks.
    Rule,
    /// It is not certain whether a rule of the configuration denies it or asks.
    Unclear,
}

/// Why a request was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RefusedBy {
    You,
    /// The turn was cancelled, or the agent withdrew the request.
    Cancelled,
    /// Sign-ins of remote agents never start a local program.
    RemoteSignIn,
    /// A rule of the configuration denies it.
    Rule,
}

pub fn decide(policy: &Policy, access: &Access, facts: &Facts) -> Verdict {
    let verdict = decide_without_rules(policy, access, *facts);
    let Some(ruling) = policy.ruling(access) else { return verdict };
    match (ruling.action, &verdict) {
        (_, Verdict::Refuse(_)) => verdict,
        (RuleAction::Deny, _) => Verdict::Refuse(RefusedBy::Rule),
        // The user was asked already, or is asked with a warning.
        (RuleAction::Ask, _) if facts.is_covered => verdict,
        (RuleAction::Ask, Verdict::Ask(AskReason::Protected(_))) => verdict,
        (RuleAction::Ask, _) if ruling.rule.is_some() => Verdict::Ask(AskReason::Rule),
        (RuleAction::Ask, Verdict::Allow(allowed)) if ruling.is_doubtful => {
            let is_exact = |(grant, _): &(Grant, GrantScope)| {
                matches!(grant, Grant::Run(_)) && grant.covers(access, facts)
            };
            let is_approved = allowed.by != AllowedBy::Configuration && policy.grants.iter().any(is_exact);
            if is_approved { verdict } else { Verdict::Ask(AskReason::Unclear) }
        }
        (RuleAction::Allow, Verdict::Ask(AskReason::Outside | AskReason::Write | AskReason::Command)) => {
            let has_plain_environment = match access {
                Access::Run(command) => is_plain_environment(&command.env),
                _ => true,
            };
            if !has_plain_environment {
                return verdict;
            }
            Verdict::Allow(Allowance { rule: ruling.rule, ..AllowedBy::Rule.into() })
        }
        (RuleAction::Allow | RuleAction::Ask, _) => verdict,
    }
}

fn decide_without_rules(policy: &Policy, access: &Access, facts: Facts) -> Verdict {
    let verdict = match access {
        Access::Read { .. } if facts.is_inside => return Verdict::Allow(AllowedBy::InsideRoots.into()),
        Access::Read { .. } => Verdict::Ask(AskReason::Outside),
        Access::Write { .. } => decide_write(policy, facts),
        Access::Run(_) => decide_run(policy, facts),
        Access::SignIn { .. } if policy.is_remote => return Verdict::Refuse(RefusedBy::RemoteSignIn),
        Access::SignIn { .. } => return Verdict::Ask(AskReason::SignIn),
    };
    let held = policy.grants.iter().find(|(grant, _)| grant.covers(access, &facts));
    match (verdict, held) {
        (Verdict::Ask(_), Some((grant, scope))) => Verdict::Allow(grant.allowance(*scope)),
        (verdict, _) => verdict,
    }
}

impl Policy {
    /// What the rules say about a request: the strictest of its path and the path that the agent requested.
    pub fn ruling(&self, access: &Access) -> Option<Ruling> {
        let judge = |subject| self.user_rules.judge(subject, &self.context);
        let (ruling, requested) = match access {
            Access::SignIn { .. } => return None,
            Access::Run(command) => {
                return judge(Subject::Run { line: &command.line, cwd: &command.cwd });
            }
            Access::Read { path } => {
                (judge(Subject::Read(path)), self.requested.as_deref().map(Subject::Read))
            }
            Access::Write { path } => {
                (judge(Subject::Write(path)), self.requested.as_deref().map(Subject::Write))
            }
        };
        let requested = requested.and_then(judge).filter(|ruling| ruling.action != RuleAction::Allow);
        ruling.into_iter().chain(requested).max_by_key(|ruling| ruling.action)
    }
}

fn decide_write(policy: &Policy, facts: Facts) -> Verdict {
    match facts.protection {
        // Files that control parlor are confirmed in parlor's own dialog only.
        Some(protection) if !facts.is_covered || protection == Protection::Own => {
            Verdict::Ask(AskReason::Protected(protection))
        }
        _ if !facts.is_inside => Verdict::Ask(AskReason::Outside),
        _ if facts.is_covered => Verdict::Allow(AllowedBy::ApprovedCall.into()),
        _ if policy.rules.ask_writes => Verdict::Ask(AskReason::Write),
        _ => Verdict::Allow(AllowedBy::InsideRoots.into()),
    }
}

fn decide_run(policy: &Policy, facts: Facts) -> Verdict {
    if !facts.is_inside {
        Verdict::Ask(AskReason::CommandOutside)
    } else if facts.is_covered {
        Verdict::Allow(AllowedBy::ApprovedCall.into())
    } else if policy.rules.ask_commands || policy.is_remote {
        Verdict::Ask(AskReason::Command)
    } else {
        let rule = Some("policy.ask_commands = false".to_owned());
        Verdict::Allow(Allowance { rule, ..AllowedBy::Configuration.into() })
    }
}

impl Grant {
    /// The narrowest grant that covers this request in the future; `None` if it always needs confirmation.
    pub fn of(access: &Access, why: AskReason, home: Option<&Path>) -> Option<Self> {
        if why == AskReason::Rule {
            // A grant does not override a rule.
            return None;
        }
        // The home folder and `/` are too broad to be granted as a whole.
        let is_wide = |folder: &Path| folder.parent().is_none() || Some(folder) == home;
        let folder = |path: &Path| path.parent().filter(|folder| !is_wide(folder)).map(Path::to_owned);
        match access {
            Access::Read { path } => {
                let folder = folder(path).filter(|_| !has_keys(path));
                Some(folder.map_or(Self::ReadFile(path.clone()), Self::ReadIn))
            }
            Access::Write { path } => {
                let is_protected = matches!(why, AskReason::Protected(it) if it != Protection::WideRoot);
                let folder = folder(path).filter(|_| !is_protected);
                Some(folder.map_or(Self::WriteFile(path.clone()), Self::WriteIn))
            }
            Access::Run(command) => Some(Self::Run(command.clone())),
            Access::SignIn { .. } => None,
        }
    }

    pub fn covers(&self, access: &Access, facts: &Facts) -> bool {
        let is_ordinary = facts.protection.is_none_or(|protection| protection == Protection::WideRoot);
        match (self, access) {
            (Self::Run(granted), Access::Run(command)) => granted == command,
            (Self::AnyCommand, Access::Run(command)) => facts.is_inside && is_plain_environment(&command.env),
            (Self::WriteFile(granted), Access::Write { path })
            | (Self::ReadFile(granted), Access::Read { path }) => granted == path,
            (Self::WriteIn(folder), Access::Write { path }) => {
                is_ordinary && path.parent() == Some(folder.as_path())
            }
            (Self::ReadIn(folder), Access::Read { path }) => {
                !has_keys(path) && path.parent() == Some(folder.as_path())
            }
            _ => false,
        }
    }

    pub fn allowance(&self, scope: GrantScope) -> Allowance {
        Allowance { rule: Some(self.description()), ..AllowedBy::Grant(scope).into() }
    }

    /// Text for display: `run "cargo test" in /code`.
    pub fn description(&self) -> String {
        match self {
            Self::Run(command) => {
                let mut text = format!("run {:?} in {}", command.line, command.cwd.display());
                // Values may be secrets.
                let names: Vec<String> = command.env.iter().map(|(name, _)| format!("{name:?}")).collect();
                if !names.is_empty() {
                    let _ = write!(text, " with {} set", names.join(", "));
                }
                text
            }
            Self::AnyCommand => "run any command in the session's folders".to_owned(),
            Self::WriteFile(path) => format!("write {}", path.display()),
            Self::WriteIn(folder) => format!("write files in {}", folder.display()),
            Self::ReadFile(path) => format!("read {}", path.display()),
            Self::ReadIn(folder) => format!("read files in {}", folder.display()),
            Self::Rule(rule) => rule.clone(),
            Self::SandboxWrite(path) => format!("write {} in the sandbox", path.display()),
            Self::SandboxRead(path) => format!("read {} in the sandbox", path.display()),
        }
    }
}

impl AllowedBy {
    /// Text for display: `allowed once by the user`.
    pub fn description(self) -> &'static str {
        match self {
            Self::InsideRoots => "allowed: in the session's folders",
            Self::ApprovedCall => "allowed: approved tool call",
            Self::Configuration => "allowed by configuration",
            Self::Rule => "allowed by a rule",
            Self::Grant(GrantScope::Session) => "allowed by the user for this session",
            Self::Grant(GrantScope::Folder) => "allowed by the user for this agent in this folder",
            Self::You => "allowed once by the user",
            Self::Typed => "typed by the user",
        }
    }

    /// Where a rule is from: `of the configuration`.
    pub fn origin(self) -> Option<&'static str> {
        match self {
            Self::Configuration | Self::Rule => Some("of the configuration"),
            Self::Grant(GrantScope::Session) => Some("of this session"),
            Self::Grant(GrantScope::Folder) => Some("of this agent in this folder"),
            Self::InsideRoots | Self::ApprovedCall | Self::You | Self::Typed => None,
        }
    }
}

impl RefusedBy {
    /// Text for display: `refused by the user`.
    pub fn description(self) -> &'static str {
        match self {
            Self::You => "refused by the user",
            Self::Cancelled => "not answered: the request was cancelled",
            Self::RemoteSignIn => "refused: remote agents cannot start local programs",
            Self::Rule => "denied by a rule of the user",
        }
    }
}

impl AskReason {
    pub fn heading(self, access: &Access) -> &'static str {
        match (self, access) {
            (_, Access::SignIn { .. }) => "Run a sign-in program?",
            (Self::CommandOutside, _) => "Run a command outside the session's folders?",
            (_, Access::Run(_)) => "Run a command?",
            (_, Access::Read { .. }) => "Read outside the session's folders?",
            (Self::Protected(Protection::WideRoot), _) => "Write a file?",
            (Self::Protected(Protection::Linked), _) => "Write to a file with hard links?",
            (Self::Protected(_), _) => "Write to a protected file?",
            (Self::Outside, _) => "Write outside the session's folders?",
            _ => "Write a file?",
        }
    }

    /// The explanation in the dialog, as a sentence.
    pub fn description(self) -> &'static str {
        match self {
            Self::Outside => "The file is outside the session's folders.",
            Self::Protected(protection) => protection.description(),
            Self::Write => "Your configuration requires confirmation of writes.",
            Self::Command => "The command is not part of a tool call approved in this turn.",
            Self::CommandOutside => "Its working directory is outside the session's folders.",
            Self::SignIn => "The agent requires sign-in.",
            Self::Rule => "Your configuration has a rule for this.",
            Self::Unclear => "It is not certain whether a rule of your configuration denies this.",
        }
    }
}

#[cfg(test)]
mod tests;
