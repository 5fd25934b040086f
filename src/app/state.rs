//! The whole state.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Instant;

use crate::model::{AgentInfo, AgentSpec, CallTag, CloseReason, ConnId, McpServer, SessionInfo, SessionKey};

use super::{AskView, Modal, Session};

/// Everything that parlor knows. Plain data: it can be cloned, compared and printed.
#[derive(Debug, Clone, PartialEq)]
pub struct State {
    /// What was given at the start.
    pub setup: Setup,
    /// Connections, the dead ones of living sessions included.
    pub conns: BTreeMap<ConnId, Conn>,
    /// Sessions.
    pub sessions: BTreeMap<SessionKey, Session>,
    /// The session on the screen.
    pub active: SessionKey,
    /// Dialogs, the top one last.
    pub modals: Vec<Modal>,
    /// How the first open ask of the active session is looked at.
    pub ask_view: AskView,
    /// A short message in the status line.
    pub flash: Option<String>,
    /// How many anomalies there were.
    pub anomaly_count: u64,
    /// Sessions that the agent listed, for the picker.
    pub listed: Vec<SessionInfo>,
    /// How diffs are laid out.
    pub diff_layout: DiffLayout,
    /// Whether thoughts are shown in whole.
    pub shows_thoughts: bool,
    /// Whether the terminal has the focus.
    pub has_focus: bool,
    /// When a key or click last came: the grace period counts from it.
    pub last_input: Option<Instant>,
    /// When Ctrl+C was last pressed on an empty prompt.
    pub last_interrupt: Option<Instant>,
    /// Whether parlor is leaving.
    pub is_quitting: bool,
    /// The next numbers to be given.
    pub next: Counters,
}

/// What was given at the start: configuration, command line and what was found on this machine.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Setup {
    /// The folder of the first session, absolute.
    pub folder: PathBuf,
    /// More roots.
    pub additional_directories: Vec<PathBuf>,
    /// Agents that can be chosen, in the picker's order.
    pub agents: Vec<AgentChoice>,
    /// The agent to start with; `None`: the picker opens.
    pub start_with: Option<AgentSpec>,
    /// The agent that this folder used last.
    pub last_agent: Option<String>,
    /// MCP servers to pass on.
    pub mcp_servers: Vec<McpServer>,
    /// Names of the themes.
    pub themes: Vec<String>,
    /// The theme in force.
    pub theme: String,
    /// Things that are wrong with the configuration, each in one sentence.
    pub problems: Vec<String>,
    /// Actions of the palette: action, what it does, its keys. Made from the keymap.
    pub palette: Vec<(crate::model::Action, String, String)>,
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
    /// Its id.
    pub id: ConnId,
    /// How it was started.
    pub spec: AgentSpec,
    /// How far it is.
    pub phase: ConnPhase,
    /// What came out of `initialize`.
    pub info: Option<AgentInfo>,
    /// Its process id.
    pub pid: Option<u32>,
    /// Calls without a reply yet, by number.
    pub open_calls: BTreeMap<u64, CallTag>,
    /// When agents of this session crashed lately, oldest first; handed on to the next connection.
    pub crashes: Vec<Instant>,
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

/// How diffs are laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DiffLayout {
    /// By width: side by side from 120 columns on.
    #[default]
    Auto,
    /// Unified.
    Unified,
    /// Side by side.
    SideBySide,
}

/// The next numbers to be given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Connection.
    pub conn: u64,
    /// Session.
    pub session: u64,
    /// Call.
    pub call: u64,
}
