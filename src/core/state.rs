//! The complete state of the app as plain data, with queries.
//!
//! [`State`] holds the connections, the sessions (`session`, `transcript`) and the open questions (`question`). `lookup`,
//! `tab` and `inbox` find sessions in it; `changes` reads a transcript; `shown` is all that there is to see.
//! Invariants: no side effects, and no calls to other layers of the app.

pub(in crate::core) mod bodies;
pub mod changes;
pub(crate) mod commands;
pub mod conn;
pub mod duplicate_diffs;
pub mod effect;
pub mod event;
pub(in crate::core) mod files;
pub(crate) mod fuzzy;
pub mod inbox;
pub mod line;
pub(crate) mod lookup;
pub mod outline;
pub(crate) mod place;
pub mod question;
pub(in crate::core) mod recorded;
pub(in crate::core) mod replay;
pub mod session;
pub(in crate::core) mod sessions;
pub mod shown;
pub mod tab;
pub mod texts;
pub mod titles;
pub mod transcript;
pub mod ui_request;
pub mod unseen;
pub mod url;

use crate::model::Action;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Instant;

use crate::model::snapshot::UndoRules;
use crate::model::{
    AgentSpec, ArchiveRow, BindingRow, Callbacks, ConnId, FoldRules, FolderOffer, FolderServers, Limit,
    McpServer, NewWorktree, PolicyRules, ProjectQuestion, RecordedSession, RegistryIndex, Rules,
    SandboxRules, SessionInfo, SessionKey, SessionWorkspace, SettingChange, SettingRow, StoredGrant,
    TerminalSize, Unsaved, UserRoot,
};

use super::{DayBudget, Session, Sessions};
use conn::Conn;
use effect::Effect;
use question::Question;

/// The complete state of the app. Plain data: it can be cloned, compared and printed.
#[derive(Debug, Clone, PartialEq)]
#[allow(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct State {
    pub setup: Setup,
    /// Connections, including closed ones of open sessions.
    pub conns: BTreeMap<ConnId, Conn>,
    pub sessions: Sessions,
    pub active: SessionKey,
    /// What may change files, until the snapshot before the turn is captured.
    pub(in crate::core) held: Vec<(ConnId, Effect)>,
    /// What was used today.
    pub day: DayBudget,
    /// The open questions of parlor, in the order in which they were asked.
    pub questions: Vec<Question>,
    /// A short message in the status line.
    pub flash: Option<String>,
    /// What makes the message untrue before its time is over.
    pub(crate) flash_end: FlashEnd,
    /// What was searched for in all sessions, to be marked in the one that is being opened.
    pub searched: Option<String>,
    /// The memory of large texts.
    pub(in crate::core) bodies: bodies::Bodies,
    /// What cannot be recorded now.
    pub unsaved: Option<Unsaved>,
    /// The store's ids of the sessions that are open read-only.
    pub views: Vec<String>,
    pub anomaly_count: u64,
    /// The agents of the registry, once they were read.
    pub registry: Option<RegistryIndex>,
    /// The last lines of the progress of an installation that is running.
    pub installing: Option<Vec<String>>,
    /// The last session of the folder that parlor was started in, as long as it can be offered.
    pub last_saved: Option<Box<ArchiveRow>>,
    pub folder_servers: BTreeMap<PathBuf, FolderRequest>,
    /// The settings of the project that the user has not decided on.
    pub project: Option<Box<ProjectRequest>>,
    pub grants: Vec<StoredGrant>,
    /// `None`: not known yet.
    pub output_room: Option<OutputRoom>,
    pub has_focus: bool,
    /// Time of the last key or click.
    pub last_input: Option<Instant>,
    /// Time of the last Ctrl+C on an empty prompt.
    pub last_interrupt: Option<Instant>,
    /// Number of changes that may affect the screen; other events cost no frame.
    pub changes: u64,
    /// The same without text of running turns, which changes only the transcript.
    pub chrome_changes: u64,
    pub is_quitting: bool,
    pub next: Counters,
    /// The worktrees of open sessions, as last reported to the host.
    pub(in crate::core) used_worktrees: BTreeSet<PathBuf>,
}

impl State {
    /// The initial state: no session, no connection.
    pub fn new(setup: Setup) -> Self {
        Self {
            setup,
            conns: BTreeMap::new(),
            sessions: Sessions::default(),
            active: SessionKey(0),
            held: Vec::new(),
            day: DayBudget::default(),
            questions: Vec::new(),
            searched: None,
            flash: None,
            flash_end: FlashEnd::Time,
            bodies: bodies::Bodies::default(),
            unsaved: None,
            views: Vec::new(),
            anomaly_count: 0,
            registry: None,
            installing: None,
            last_saved: None,
            folder_servers: BTreeMap::new(),
            project: None,
            grants: Vec::new(),
            output_room: None,
            has_focus: true,
            last_input: None,
            last_interrupt: None,
            changes: 0,
            chrome_changes: 0,
            is_quitting: false,
            next: Counters::default(),
            used_worktrees: BTreeSet::new(),
        }
    }

    /// Adds a session in the folder of the setup, without an agent.
    pub fn add_session(&mut self) -> SessionKey {
        self.add_session_in(self.setup.folder.clone())
    }

    /// Adds a session in a folder, without an agent. The additional roots of the setup apply to its own folder only.
    pub fn add_session_in(&mut self, folder: PathBuf) -> SessionKey {
        let is_first = folder == self.setup.folder;
        let position = SessionWorkspace {
            cwd: folder,
            remote: None,
            additional_directories: if is_first {
                self.setup.additional_directories.clone()
            } else {
                Vec::new()
            },
            mcp_servers: self.setup.mcp_servers.clone(),
        };
        self.next.session += 1;
        let key = SessionKey(self.next.session);
        self.sessions.insert(key, Session::new(key, position));
        key
    }

    /// Shows a short message in the status line.
    pub(crate) fn set_flash(&mut self, text: String, end: FlashEnd) {
        self.flash = Some(text);
        self.flash_end = end;
    }

    pub(crate) fn clear_flash(&mut self) {
        self.flash = None;
        self.flash_end = FlashEnd::Time;
    }

    pub fn active_session(&self) -> Option<&Session> {
        self.sessions.get(&self.active)
    }

    pub fn conn_of(&self, key: SessionKey) -> Option<&Conn> {
        self.sessions.get(&key).and_then(|session| session.conn).and_then(|conn| self.conns.get(&conn))
    }

    pub fn listed(&self) -> &[SessionInfo] {
        let conn = self.conn_of(super::state::lookup::root_of(self, self.active));
        conn.map(|conn| conn.listing.sessions.as_slice()).unwrap_or_default()
    }
}

/// The start parameters: configuration, command line, and what was detected on this machine.
#[derive(Debug, Clone, PartialEq, Default)]
#[allow(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct Setup {
    /// The folder of the first session, absolute.
    pub folder: PathBuf,
    pub export_folder: PathBuf,
    pub additional_directories: Vec<UserRoot>,
    /// The available agents, in the picker's order.
    pub agents: Vec<AgentChoice>,
    /// The folder of agents that are installed from the registry.
    pub agents_dir: PathBuf,
    /// The agent that the command line names but that is not installed, by its id in the registry.
    pub install_first: Option<String>,
    /// The agent to start with; `None`: the picker opens.
    pub start_with: Option<AgentSpec>,
    /// The session to continue; taken by [`start`](super::start).
    pub reopen: Option<Box<RecordedSession>>,
    /// The other tabs to reopen, in order; taken by [`start`](super::start).
    pub other_tabs: Vec<OtherTab>,
    pub lists_sessions: bool,
    pub saves_sessions: bool,
    /// Where that session can be continued if its folder is missing: it is read-only until the user decides.
    pub folder_offers: Vec<FolderOffer>,
    /// Callbacks for agents without individual settings.
    pub callbacks: Callbacks,
    pub policy: PolicyRules,
    pub sandbox: SandboxRules,
    pub undo: UndoRules,
    /// Limits for a turn or a day.
    pub budget: Vec<Limit>,
    /// The user's rules, and those of the project.
    pub rules: Rules,
    /// The user's home folder, with all links resolved.
    pub home: Option<PathBuf>,
    /// The folder of all worktrees that parlor makes.
    pub worktree_dir: PathBuf,
    /// The worktree that was made for the first session; taken by [`start`](super::start).
    pub new_worktree: Option<NewWorktree>,
    /// parlor's configuration and data folders, with all links resolved.
    pub own_folders: Vec<PathBuf>,
    /// The saved grants, which an agent needs before it starts; taken by [`start`](super::start).
    pub grants: Vec<StoredGrant>,
    /// Maximum size of a handover in bytes.
    pub handover_bytes: usize,
    /// Whether the last session of the folder is offered.
    pub offers_last: bool,
    /// Why sessions cannot be recorded; taken by [`start`](super::start).
    pub unsaved: Option<String>,
    /// The first prompt; taken by [`start`](super::start).
    pub first_prompt: Option<String>,
    /// The settings of the first session; taken by [`start`](super::start).
    pub first_settings: super::NamedSettings,
    /// The agent last used in this folder; unknown until the store has responded.
    pub last_agent: Option<String>,
    /// The agents that were used before, in any folder.
    pub used_agents: BTreeSet<String>,
    /// Agents that spoke the draft of version 2 when they were last started, by command line.
    pub draft_agents: BTreeSet<String>,
    pub mcp_servers: Vec<McpServer>,
    /// MCP servers configured in the first folder; taken by [`start`](super::start).
    pub folder_servers: Option<FolderServers>,
    /// Settings of the project to ask about; taken by [`start`](super::start).
    pub project: Option<Box<ProjectQuestion>>,
    /// The folder whose templates are switched off by its configuration.
    pub without_templates: Option<PathBuf>,
    pub themes: Vec<ThemeInfo>,
    /// The chosen theme: a name, or [`AUTO_THEME`].
    pub theme: String,
    /// The theme that matches the terminal's background.
    pub auto_theme: String,
    pub folds: FoldRules,
    pub mouse: MouseOwner,
    pub problems: Vec<String>,
    /// Whether plain mode is on. In plain mode, prompts that start with `/` are sent, except for `/clear`.
    pub is_plain: bool,
    pub settings: Vec<SettingRow>,
    pub bindings: Vec<BindingRow>,
    pub config_file: PathBuf,
    pub palette: Vec<crate::model::PaletteCommand>,
}

impl Setup {
    /// The key of a command, or how it is called in the palette, as the subject of a sentence.
    pub(in crate::core) fn how_to(&self, action: Action) -> Option<String> {
        let command = self.palette.iter().find(|command| command.action == action)?;
        let has_key = !command.keys.is_empty();
        Some(if has_key { command.keys.clone() } else { format!("The command “{}”", command.text) })
    }
}

/// What makes a message in the status line untrue before its time is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlashEnd {
    /// The end of this question is shown, or the question is gone.
    QuestionRead(u64),
    Time,
    Start,
    Turn(SessionKey),
    /// The answer to the last open request of the session.
    Answer(SessionKey),
    Question(u64),
    Hold(SessionKey, usize),
    Shown(SessionKey),
    Available(Action),
}

/// The outcome of reading the configuration again.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ConfigNews {
    /// The fields that come from the configuration; `None`: the values did not change.
    pub setup: Option<Box<Setup>>,
    /// The names of settings whose values changed.
    pub changed: Vec<&'static str>,
    /// The names of settings that would let agents do more, and were not applied.
    pub held: Vec<&'static str>,
    /// Why the file, a theme, or a value was not applied.
    pub problems: Vec<String>,
    /// The change that was requested, and why it failed.
    pub change: Option<(SettingChange, Result<(), String>)>,
}

/// The theme that matches the terminal's background, in the configuration and in the picker.
pub const AUTO_THEME: &str = "auto";

/// A theme of the picker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThemeInfo {
    pub name: String,
    pub is_dark: bool,
}

impl Setup {
    /// The name of the theme for a choice; `auto` is resolved.
    pub fn theme_named<'a>(&'a self, choice: &'a str) -> &'a str {
        if choice == AUTO_THEME { &self.auto_theme } else { choice }
    }

    pub fn theme_in_use(&self) -> &str {
        self.theme_named(&self.theme)
    }
}

/// A tab to reopen in addition to the active one.
#[derive(Debug, Clone, PartialEq)]
pub struct OtherTab {
    /// The saved session, locked for this process.
    pub saved: Box<RecordedSession>,
    /// Whether it precedes the active tab.
    pub is_before: bool,
    /// Whether it was open read-only; it is not locked then.
    pub is_view: bool,
}

/// An agent of the picker.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AgentChoice {
    pub spec: AgentSpec,
    pub title: String,
    /// `configured`, `installed`, `found` or `built in`.
    pub source: String,
    /// The id of the same agent in the registry, if it is known.
    pub registry_id: Option<String>,
    pub version: String,
}

/// Which program handles the mouse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MouseOwner {
    #[default]
    Parlor,
    Terminal,
}

/// The room for the output of commands in a front end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutputRoom {
    /// Columns for output in the transcript.
    pub cols: u16,
    /// The size of a terminal that is shown as a whole.
    pub terminal: TerminalSize,
}

/// The next numbers of ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    pub conn: u64,
    pub session: u64,
    pub call: u64,
    pub question: u64,
    pub store: u64,
    /// Of an undo or redo that is shown.
    pub offer: u64,
}

/// The state of the MCP servers configured in a folder.
#[derive(Debug, Clone, PartialEq)]
pub enum FolderRequest {
    /// The file is being read.
    Looking,
    /// The user has not decided yet whether to use them.
    Asked(FolderServers),
    /// The servers in use; may be empty.
    Decided(Vec<McpServer>),
}

/// The question about the settings of a project, until it is answered.
#[derive(Debug, Clone, PartialEq)]
pub struct ProjectRequest {
    pub question: Box<ProjectQuestion>,
    /// The first session.
    pub session: SessionKey,
    /// The agent whose start waits for the answer, or none for the list of agents; `None` if nothing waits.
    pub held: Option<Option<Box<AgentSpec>>>,
}
