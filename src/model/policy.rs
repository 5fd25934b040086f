//! Who may do what: the one place that decides about files, commands and sign-ins that go through parlor.
//!
//! [`decide`] is pure: it gets what an agent asks for ([`Access`]), what is known of it ([`Facts`]) and what the user
//! set and granted ([`Policy`]), and says whether it is allowed, asked or refused, with the reason as data. Services
//! call it with paths whose links were followed, the app with command lines.
//! Invariants: a protected file is never written unless the user saw its new content and that it is protected; an allowed
//! command is the exact command line that the user saw, unless the user allowed all commands of a session.

mod command;
mod protected;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

pub use command::{CommandAccess, approved_lines, is_plain_environment, shell_line};
pub use protected::{Protection, is_repository, protection_of, reason_for_root};

/// Something that an agent asks parlor to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// Read a file.
    Read {
        /// The file, with all links followed.
        path: PathBuf,
    },
    /// Create or replace a file.
    Write {
        /// The file, with all links followed.
        path: PathBuf,
    },
    /// Run a command.
    Run(CommandAccess),
    /// Run a program that signs the user in.
    SignIn {
        /// Its command line.
        line: String,
    },
}

/// What is known about an access.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Facts {
    /// Whether the file or the working directory is inside the folders that the user gave.
    pub is_inside: bool,
    /// Why the file is protected, if it is.
    pub protection: Option<Protection>,
    /// Whether an approved tool call of the running turn shows exactly this. For a protected file: with its real path,
    /// in a dialog that marked it as protected.
    pub is_covered: bool,
}

/// What the user set and granted, for one agent in one session.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Policy {
    /// Settings of the configuration.
    pub rules: PolicyRules,
    /// Whether the agent runs on another machine.
    pub is_remote: bool,
    /// The user's home folder.
    pub home: Option<PathBuf>,
    /// Where parlor keeps its configuration and data.
    pub own_folders: Vec<PathBuf>,
    /// What was granted for good or for this session.
    pub grants: Vec<(Grant, GrantScope)>,
}

/// Settings of `[policy]` in the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PolicyRules {
    /// Whether each write is asked for, also inside the session's folders.
    pub ask_writes: bool,
    /// Whether commands are asked for. Commands of remote agents always are.
    pub ask_commands: bool,
}

impl Default for PolicyRules {
    fn default() -> Self {
        Self { ask_writes: false, ask_commands: true }
    }
}

/// A permission that covers more than one request; as narrow as what was asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Grant {
    /// This exact command line, in this folder and with this environment.
    Run(CommandAccess),
    /// Commands in the session's folders, unless their variables can change what they execute.
    AnyCommand,
    /// Writes to this file.
    WriteFile(PathBuf),
    /// Writes to unprotected files directly in this folder.
    WriteIn(PathBuf),
    /// Reads of this file.
    ReadFile(PathBuf),
    /// Reads of files directly in this folder.
    ReadIn(PathBuf),
}

/// How long a grant holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GrantScope {
    /// Until the session ends.
    Session,
    /// For this agent in this folder, until it is revoked.
    Folder,
}

/// A grant as it is stored: for one agent in one folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredGrant {
    /// The agent: its name and its command line or address.
    pub agent: String,
    /// The folder of the session.
    pub folder: PathBuf,
    /// What is granted.
    pub grant: Grant,
}

/// What [`decide`] says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It is done.
    Allow(AllowedBy),
    /// The user is asked.
    Ask(AskReason),
    /// It is not done, and nobody is asked.
    Refuse(RefusedBy),
}

/// Why something was allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AllowedBy {
    /// It is inside the session's folders.
    InsideRoots,
    /// The user approved a tool call that shows it.
    ApprovedCall,
    /// The configuration allows it.
    Configuration,
    /// The user granted it before.
    Grant(GrantScope),
    /// The user allowed it when asked, once.
    You,
}

/// Why the user is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AskReason {
    /// The file is outside the session's folders.
    Outside,
    /// The file is protected.
    Protected(Protection),
    /// The configuration wants every write asked.
    Write,
    /// No approved tool call shows this command.
    Command,
    /// The command runs outside the session's folders.
    CommandOutside,
    /// A program would sign the user in.
    SignIn,
}

/// Why something was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RefusedBy {
    /// The user refused it.
    You,
    /// The turn was cancelled, or the request was withdrawn.
    Cancelled,
    /// Programs are never started for a remote agent's sign-in.
    RemoteSignIn,
}

/// Decides about an access.
pub fn decide(policy: &Policy, access: &Access, facts: &Facts) -> Verdict {
    let verdict = match access {
        Access::Read { .. } if facts.is_inside => return Verdict::Allow(AllowedBy::InsideRoots),
        Access::Read { .. } => Verdict::Ask(AskReason::Outside),
        Access::Write { .. } => decide_write(policy, *facts),
        Access::Run(_) => decide_run(policy, *facts),
        Access::SignIn { .. } if policy.is_remote => return Verdict::Refuse(RefusedBy::RemoteSignIn),
        Access::SignIn { .. } => return Verdict::Ask(AskReason::SignIn),
    };
    let held = policy.grants.iter().find(|(grant, _)| grant.covers(access, facts));
    match (verdict, held) {
        (Verdict::Ask(_), Some((_, scope))) => Verdict::Allow(AllowedBy::Grant(*scope)),
        _ => verdict,
    }
}

fn decide_write(policy: &Policy, facts: Facts) -> Verdict {
    match facts.protection {
        // What parlor itself obeys is asked about in parlor's own dialog only.
        Some(protection) if !facts.is_covered || protection == Protection::Own => {
            Verdict::Ask(AskReason::Protected(protection))
        }
        _ if !facts.is_inside => Verdict::Ask(AskReason::Outside),
        _ if facts.is_covered => Verdict::Allow(AllowedBy::ApprovedCall),
        _ if policy.rules.ask_writes => Verdict::Ask(AskReason::Write),
        _ => Verdict::Allow(AllowedBy::InsideRoots),
    }
}

fn decide_run(policy: &Policy, facts: Facts) -> Verdict {
    if !facts.is_inside {
        Verdict::Ask(AskReason::CommandOutside)
    } else if facts.is_covered {
        Verdict::Allow(AllowedBy::ApprovedCall)
    } else if policy.rules.ask_commands || policy.is_remote {
        Verdict::Ask(AskReason::Command)
    } else {
        Verdict::Allow(AllowedBy::Configuration)
    }
}

impl Grant {
    /// The narrowest grant that covers an access again; `None` for what is asked each time.
    pub fn of(access: &Access, why: AskReason, home: Option<&Path>) -> Option<Self> {
        // A folder that holds more than one purpose is not granted as a whole.
        let is_wide = |folder: &Path| folder.parent().is_none() || Some(folder) == home;
        let folder = |path: &Path| path.parent().filter(|folder| !is_wide(folder)).map(Path::to_owned);
        match access {
            Access::Read { path } => Some(folder(path).map_or(Self::ReadFile(path.clone()), Self::ReadIn)),
            Access::Write { path } => {
                let is_protected = matches!(why, AskReason::Protected(it) if it != Protection::WideRoot);
                let folder = folder(path).filter(|_| !is_protected);
                Some(folder.map_or(Self::WriteFile(path.clone()), Self::WriteIn))
            }
            Access::Run(command) => Some(Self::Run(command.clone())),
            Access::SignIn { .. } => None,
        }
    }

    /// Whether it covers an access.
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
            (Self::ReadIn(folder), Access::Read { path }) => path.parent() == Some(folder.as_path()),
            _ => false,
        }
    }

    /// What it grants, for people: `run "cargo test" in /code`.
    pub fn words(&self) -> String {
        match self {
            Self::Run(command) => {
                let mut words = format!("run {:?} in {}", command.line, command.cwd.display());
                // Values may be secrets.
                let names: Vec<String> = command.env.iter().map(|(name, _)| format!("{name:?}")).collect();
                if !names.is_empty() {
                    let _ = write!(words, " with {} set", names.join(", "));
                }
                words
            }
            Self::AnyCommand => "run any command in the session's folders".to_owned(),
            Self::WriteFile(path) => format!("write {}", path.display()),
            Self::WriteIn(folder) => format!("write files in {}", folder.display()),
            Self::ReadFile(path) => format!("read {}", path.display()),
            Self::ReadIn(folder) => format!("read files in {}", folder.display()),
        }
    }
}

impl AllowedBy {
    /// For people: `allowed once by you`.
    pub fn words(self) -> &'static str {
        match self {
            Self::InsideRoots => "allowed: in the session's folders",
            Self::ApprovedCall => "allowed: approved tool call",
            Self::Configuration => "allowed by configuration",
            Self::Grant(GrantScope::Session) => "allowed by you for this session",
            Self::Grant(GrantScope::Folder) => "allowed by you for this agent in this folder",
            Self::You => "allowed once by you",
        }
    }
}

impl RefusedBy {
    /// For people: `refused by you`.
    pub fn words(self) -> &'static str {
        match self {
            Self::You => "refused by you",
            Self::Cancelled => "not answered: the request was cancelled",
            Self::RemoteSignIn => "refused: remote agents cannot start local programs",
        }
    }
}

impl AskReason {
    /// The heading of the question.
    pub fn heading(self, access: &Access) -> &'static str {
        match (self, access) {
            (_, Access::SignIn { .. }) => "Run a sign-in program?",
            (Self::CommandOutside, _) => "Run a command outside the session's folders?",
            (_, Access::Run(_)) => "Run a command?",
            (_, Access::Read { .. }) => "Read outside the session's folders?",
            (Self::Protected(Protection::WideRoot), _) => "Write a file?",
            (Self::Protected(_), _) => "Write to a protected file?",
            (Self::Outside, _) => "Write outside the session's folders?",
            _ => "Write a file?",
        }
    }

    /// Why the user is asked, in a sentence.
    pub fn words(self) -> &'static str {
        match self {
            Self::Outside => "The file is outside the session's folders.",
            Self::Protected(protection) => protection.words(),
            Self::Write => "Your configuration requires confirmation of writes.",
            Self::Command => "The command is not part of a tool call approved in this turn.",
            Self::CommandOutside => "Its working directory is outside the session's folders.",
            Self::SignIn => "The agent requires sign-in.",
        }
    }
}

#[cfg(test)]
mod tests;
