//! Everything that parlor knows, as plain data, and the questions that can be asked of it.
//!
//! [`State`] holds the connections, the sessions (`session`, `transcript`) and the open dialogs (`modal`). `lookup`, `tab`
//! and `inbox` find sessions in it; `changes`, `search` and `places` read a transcript.
//! Invariants: nothing here has an effect or calls another layer of the app.

pub mod changes;
pub mod duplicate_diffs;
pub mod effect;
pub(in crate::app) mod files;
pub mod fold;
pub(in crate::app) mod fuzzy;
pub mod inbox;
pub(in crate::app) mod lookup;
pub mod modal;
pub mod outline;
pub(in crate::app) mod pages;
pub mod places;
pub(in crate::app) mod recorded;
pub(in crate::app) mod replay;
pub mod search;
pub mod session;
pub(in crate::app) mod sessions;
pub mod tab;
pub mod texts;
pub mod transcript;

use crate::model::Action;
use std::collections::BTreeMap;
use std::collections::HashSet;
use std::path::PathBuf;
use std::time::Instant;

use crate::model::{
    AgentCapabilities, AgentInfo, AgentSpec, AllowedBy, ArchiveRow, AskId, AuthStatus, Bounded, CallTag,
    Callbacks, CloseReason, CommandAccess, ConnId, ExitInfo, FoldRules, FolderOffer, FolderServers,
    McpServer, PolicyRules, Provider, RecordedSession, SessionId, SessionInfo, SessionKey, SessionPlace,
    SessionUpdate, StoredGrant, TerminalId, UserRoot,
};

use super::{FileJobs, Modal, Pages, RequestView, Session, Sessions, UserView};

/// Everything that parlor knows. Plain data: it can be cloned, compared and printed.
#[derive(Debug, Clone, PartialEq)]
#[allow(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct State {
    /// What was given at the start.
    pub setup: Setup,
    /// Connections, the dead ones of living sessions included.
    pub conns: BTreeMap<ConnId, Conn>,
    pub sessions: Sessions,
    /// The session on the screen.
    pub active: SessionKey,
    /// Dialogs, the top one last.
    pub modals: Vec<Modal>,
    /// How the first open ask of the active session is looked at.
    pub ask_view: RequestView,
    /// A short message in the status line.
    pub flash: Option<String>,
    /// Whether that message is cleared when an agent starts.
    pub(in crate::app) is_flash_until_start: bool,
    /// Why what happens cannot be saved now, in a few words.
    pub unsaved: Option<String>,
    /// How many anomalies there were on all connections.
    pub anomaly_count: u64,
    /// The last session of the folder that parlor was started in, for as long as it can be offered.
    pub last_kept: Option<Box<ArchiveRow>>,
    /// What is known of the MCP servers that folders name.
    pub folder_servers: BTreeMap<PathBuf, FolderRequest>,
    /// What was granted for good, to all agents.
    pub grants: Vec<StoredGrant>,
    /// How diffs are laid out.
    pub diff_layout: DiffLayout,
    /// Whether thoughts are shown in whole.
    pub shows_thoughts: bool,
    /// Who has the mouse.
    pub mouse: MouseOwner,
    /// Whether the terminal has the focus.
    pub has_focus: bool,
    /// When a key or click last came: the grace period counts from it.
    pub last_input: Option<Instant>,
    /// When Ctrl+C was last pressed on an empty prompt.
    pub last_interrupt: Option<Instant>,
    /// What the user's side remembers between keys.
    pub user: UserView,
    /// What the user's side is asked for by the rest; empty between events.
    pub(in crate::app) ui_requests: Vec<UiRequest>,
    /// How often something changed that may be on the screen, so that the rest costs no frame.
    pub changes: u64,
    /// The same without the text of running turns, which changes nothing but the transcript.
    pub chrome_changes: u64,
    /// Whether parlor is leaving.
    pub is_quitting: bool,
    /// The next numbers to be given.
    pub next: Counters,
}

impl State {
    /// The state before anything happened: no session, no connection.
    pub fn new(setup: Setup) -> Self {
        Self {
            mouse: setup.mouse,
            setup,
            conns: BTreeMap::new(),
            sessions: Sessions::default(),
            active: SessionKey(0),
            modals: Vec::new(),
            ask_view: RequestView::default(),
            flash: None,
            is_flash_until_start: false,
            unsaved: None,
            anomaly_count: 0,
            last_kept: None,
            folder_servers: BTreeMap::new(),
            grants: Vec::new(),
            diff_layout: DiffLayout::Auto,
            shows_thoughts: false,
            has_focus: true,
            last_input: None,
            last_interrupt: None,
            user: UserView::default(),
            ui_requests: Vec::new(),
            changes: 0,
            chrome_changes: 0,
            is_quitting: false,
            next: Counters::default(),
        }
    }

    /// Adds a session in the folder of the setup, without an agent.
    pub fn add_session(&mut self) -> SessionKey {
        self.add_session_in(self.setup.folder.clone())
    }

    /// Adds a session in a folder, without an agent. The further roots of the setup belong to its own folder.
    pub fn add_session_in(&mut self, folder: PathBuf) -> SessionKey {
        let is_first = folder == self.setup.folder;
        let place = SessionPlace {
            cwd: folder,
            far: None,
            additional_directories: if is_first {
                self.setup.additional_directories.clone()
            } else {
                Vec::new()
            },
            mcp_servers: self.setup.mcp_servers.clone(),
        };
        self.next.session += 1;
        let key = SessionKey(self.next.session);
        let folds = self.setup.folds;
        let pages = Pages::new(self.setup.memory_bytes);
        self.sessions.insert(key, Session { pages, folds, ..Session::new(key, place) });
        key
    }

    /// Shows a short message in the status line.
    pub(in crate::app) fn set_flash(&mut self, text: String) {
        self.flash = Some(text);
        self.is_flash_until_start = false;
    }

    /// Shows a short message in the status line that no longer holds once an agent starts.
    pub(in crate::app) fn set_flash_until_start(&mut self, text: String) {
        self.flash = Some(text);
        self.is_flash_until_start = true;
    }

    /// An agent starts.
    pub(in crate::app) fn clear_flash_on_start(&mut self) {
        if std::mem::take(&mut self.is_flash_until_start) {
            self.flash = None;
        }
    }

    /// The session on the screen.
    pub fn active_session(&self) -> Option<&Session> {
        self.sessions.get(&self.active)
    }

    /// The connection of a session, dead or alive.
    pub fn conn_of(&self, key: SessionKey) -> Option<&Conn> {
        self.sessions.get(&key).and_then(|session| session.conn).and_then(|conn| self.conns.get(&conn))
    }

    /// What the agent of the session on the screen lists.
    pub fn listed(&self) -> &[SessionInfo] {
        let conn = self.conn_of(super::state::lookup::root_of(self, self.active));
        conn.map(|conn| conn.listing.sessions.as_slice()).unwrap_or_default()
    }
}

/// A dialog, or an action that waited for pages: what the layers below the dialogs ask of them.
#[derive(Debug, Clone, PartialEq)]
pub enum UiRequest {
    /// The picker of agents.
    AgentPicker,
    /// The ways to sign in to an agent: above all else, or in the tab of a session.
    SignIn {
        /// Its connection.
        conn: ConnId,
        /// The session that needs it; `None`: the one in front.
        session: Option<SessionKey>,
    },
    /// An action of the user that had to wait.
    Act(Action),
}

/// What was given at the start: configuration, command line and what was found on this machine.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Setup {
    /// The folder of the first session, absolute.
    pub folder: PathBuf,
    /// More roots.
    pub additional_directories: Vec<UserRoot>,
    /// Agents that can be chosen, in the picker's order.
    pub agents: Vec<AgentChoice>,
    /// The agent to start with; `None`: the picker opens.
    pub start_with: Option<AgentSpec>,
    /// The session to go on with; taken out by [`start`](super::start).
    pub reopen: Option<Box<RecordedSession>>,
    /// Whether what is done is kept on disk, so that a session can be closed and opened again.
    pub keeps_sessions: bool,
    /// Where that session may go on, if its folder is gone: it is only read until the user has said.
    pub folder_offers: Vec<FolderOffer>,
    /// Callbacks for agents that have no switches of their own.
    pub callbacks: Callbacks,
    /// Rules of the policy.
    pub policy: PolicyRules,
    /// The user's home folder, with all links followed.
    pub home: Option<PathBuf>,
    /// Where parlor keeps its configuration and data, with all links followed.
    pub own_folders: Vec<PathBuf>,
    /// How much of a session's transcript is in memory, in bytes; the rest is on the disk. 0: all.
    pub memory_bytes: usize,
    /// How much of a conversation is handed over at the most, in bytes.
    pub handover_bytes: usize,
    /// Whether the last session of the folder is to be offered.
    pub offers_last: bool,
    /// Why nothing can be kept, if so; taken out by [`start`](super::start).
    pub unsaved: Option<String>,
    /// The agent that this folder used last. It is not known before the store has answered.
    pub last_agent: Option<String>,
    /// MCP servers to pass on.
    pub mcp_servers: Vec<McpServer>,
    /// MCP servers that the first folder names; taken out by [`start`](super::start).
    pub folder_servers: Option<FolderServers>,
    /// Names of the themes.
    pub themes: Vec<String>,
    /// The theme in force.
    pub theme: String,
    /// How tool calls are folded.
    pub folds: FoldRules,
    /// Who has the mouse at the start.
    pub mouse: MouseOwner,
    /// Things that are wrong with the configuration, each in one sentence.
    pub problems: Vec<String>,
    /// The commands of the palette, from the keymap.
    pub palette: Vec<crate::model::PaletteCommand>,
}

/// An agent that can be chosen.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentChoice {
    /// How to start it.
    pub spec: AgentSpec,
    /// Its name for people.
    pub title: String,
    /// Where it comes from: `configured`, `found`, `built in`.
    pub source: String,
}

/// A connection to one agent process.
#[derive(Debug, Clone, PartialEq)]
pub struct Conn {
    pub id: ConnId,
    /// How it was started.
    pub spec: AgentSpec,
    /// How far it is.
    pub phase: ConnPhase,
    /// What came out of `initialize`.
    pub info: Option<AgentInfo>,
    /// How the user is signed in, if the agent tells.
    pub auth: Option<AuthStatus>,
    /// Where its models come from, if it tells.
    pub providers: Vec<Provider>,
    /// Its process id.
    pub pid: Option<u32>,
    /// Calls without a reply yet, by number.
    pub open_calls: BTreeMap<u64, CallTag>,
    /// When agents of this session crashed lately, oldest first; handed on to the next connection.
    pub crashes: Vec<Instant>,
    /// Requests of the agent without an answer yet. Whatever answers one takes it out: that is what makes
    /// "exactly one answer" hold.
    pub open_asks: BTreeMap<AskId, RequestClass>,
    /// Commands that run, or ran, for the agent and were not released, with their session.
    pub terminals: BTreeMap<TerminalId, SessionKey>,
    /// File jobs.
    pub files: FileJobs,
    /// How those of them ended that ended by themselves: known as long as they are not released, whatever of the
    /// transcript is in memory.
    pub terminal_exits: BTreeMap<TerminalId, ExitInfo>,
    /// Updates of sessions that are not known yet.
    pub early: Early,
    /// The sessions that it lists.
    pub listing: Listing,
    /// The last lines of its stdout that were no protocol, shown when it dies.
    pub noise: Vec<String>,
    /// How many of them there were.
    pub noise_count: u64,
}

impl Conn {
    /// A connection whose process is about to start.
    pub fn new(id: ConnId, spec: AgentSpec, now: Instant) -> Self {
        Self {
            id,
            spec,
            phase: ConnPhase::Starting { since: now },
            info: None,
            auth: None,
            providers: Vec::new(),
            pid: None,
            open_calls: BTreeMap::new(),
            crashes: Vec::new(),
            open_asks: BTreeMap::new(),
            terminals: BTreeMap::new(),
            files: FileJobs::default(),
            terminal_exits: BTreeMap::new(),
            early: Early::default(),
            listing: Listing::default(),
            noise: Vec::new(),
            noise_count: 0,
        }
    }

    /// Whether commands can reach the agent.
    pub fn is_alive(&self) -> bool {
        matches!(self.phase, ConnPhase::Starting { .. } | ConnPhase::Ready)
    }

    /// What it can do; nothing before `initialize` was answered.
    pub fn capabilities(&self) -> AgentCapabilities {
        self.info.as_ref().map(|info| info.capabilities).unwrap_or_default()
    }
}

/// What kind of answer an open request takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequestClass {
    Permission,
    /// A question or a page.
    Elicitation,
    /// A file, for this session.
    File(SessionKey),
    /// A command that waits for the user, or is being started.
    TerminalCreate(Box<Option<Starting>>),
    /// Output that is being read.
    TerminalOutput,
    /// The end of a command.
    TerminalWait,
}

/// A command that is being started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Starting {
    pub command: CommandAccess,
    /// Who allowed it.
    pub by: AllowedBy,
}

/// Updates of sessions that are not known yet, in wire order and bounded.
#[derive(Debug, Clone, PartialEq)]
pub struct Early {
    pub updates: Bounded<(SessionId, SessionUpdate)>,
    /// How many the bound cost.
    pub dropped_count: u64,
}

/// How far a connection is.
#[derive(Debug, Clone, PartialEq)]
pub enum ConnPhase {
    /// The process starts, or `initialize` is under way.
    Starting {
        /// Since when.
        since: Instant,
    },
    /// In use.
    Ready,
    /// Being stopped.
    Stopping,
    /// Ended.
    Closed(CloseReason),
}

/// Who has the mouse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MouseOwner {
    /// parlor: it selects text itself.
    #[default]
    Parlor,
    /// The terminal, whose own selection works.
    Terminal,
}

/// How diffs are laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DiffLayout {
    /// By width: side by side from 120 columns on.
    #[default]
    Auto,
    /// The other way than the width would have it, so that the key for it is always seen to do something.
    Turned,
    /// In one column, whatever the width.
    Unified,
}

/// The next numbers to be given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Connection.
    pub conn: u64,
    pub session: u64,
    pub call: u64,
    /// Job of the store.
    pub store: u64,
}

/// What an agent lists.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Listing {
    /// Its sessions so far, in its own order.
    pub sessions: Vec<SessionInfo>,
    /// The folder whose sessions are asked for.
    pub(in crate::app) folder: Option<PathBuf>,
    /// The number of the call whose page is awaited.
    pub(in crate::app) open_call: Option<u64>,
    /// Cursors that were used.
    pub(in crate::app) cursors: HashSet<String>,
}

/// What is known of the servers that a folder names.
#[derive(Debug, Clone, PartialEq)]
pub enum FolderRequest {
    /// Its file is being read.
    Looking,
    /// Nobody has said yet whether they may be used.
    Asked(FolderServers),
    /// These are used; perhaps none.
    Settled(Vec<McpServer>),
}
