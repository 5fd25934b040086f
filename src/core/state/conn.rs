//! A connection to an agent: its process, what it can do, and what it waits for.

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;
use std::time::Instant;

use crate::core::FileJobs;
use crate::model::{
    AgentCapabilities, AgentInfo, AgentRequest, AgentSpec, Allowance, AuthStatus, Bounded, CallTag,
    CloseReason, CommandAccess, ConnId, ExitInfo, Provider, RequestId, SANDBOX_MISSING, SANDBOX_UNTESTED,
    SessionId, SessionInfo, SessionKey, SessionUpdate, TerminalId,
};

/// A connection to one agent process.
#[derive(Debug, Clone, PartialEq)]
pub struct Conn {
    pub id: ConnId,
    pub spec: AgentSpec,
    pub phase: ConnPhase,
    /// The result of `initialize`.
    pub info: Option<AgentInfo>,
    /// The sign-in status, if the agent reports it.
    pub auth: Option<AuthStatus>,
    /// A sign-in whose effect is not known yet.
    pub sign_in: Option<SignInTry>,
    /// The command line of a sign-in that runs in the terminal.
    pub login_line: Option<String>,
    /// The providers of its models, if reported.
    pub providers: Vec<Provider>,
    pub pid: Option<u32>,
    /// What the sandbox of the process enforces.
    pub sandbox: Option<String>,
    /// Since when the connection to the server is interrupted, while parlor tries to restore it.
    pub interrupted: Option<Instant>,
    /// Calls without a response yet, by number.
    pub open_calls: BTreeMap<u64, CallTag>,
    /// Recent crashes of agents of this session, oldest first; carried over to the next connection.
    pub crashes: Vec<Instant>,
    /// Requests of the agent without a response yet. An entry is removed when it is answered, which ensures exactly one
    /// response.
    pub open_requests: BTreeMap<RequestId, RequestClass>,
    /// Commands started for the agent and not released yet, with their session.
    pub terminals: BTreeMap<TerminalId, SessionKey>,
    pub files: FileJobs,
    /// Exit statuses of terminals that ended on their own, until they are released, whatever part of the transcript is
    /// in memory.
    pub terminal_exits: BTreeMap<TerminalId, ExitInfo>,
    /// Updates of sessions that are not known yet.
    pub early: Early,
    pub listing: Listing,
    /// The last lines of its stdout that were not protocol messages, shown when it exits.
    pub noise: Vec<String>,
    pub noise_count: u64,
}

impl Conn {
    /// Whether its process runs in a sandbox that this system is known to enforce completely.
    pub fn is_confined(&self) -> bool {
        let enforced = self.sandbox.as_ref().filter(|_| self.spec.bounds.is_some());
        enforced
            .is_some_and(|text| [SANDBOX_MISSING, SANDBOX_UNTESTED].iter().all(|weak| !text.contains(weak)))
    }

    /// A connection whose process is about to start.
    pub fn new(id: ConnId, spec: AgentSpec, now: Instant) -> Self {
        Self {
            id,
            spec,
            phase: ConnPhase::Starting { since: now },
            info: None,
            auth: None,
            sign_in: None,
            login_line: None,
            providers: Vec::new(),
            pid: None,
            sandbox: None,
            interrupted: None,
            open_calls: BTreeMap::new(),
            crashes: Vec::new(),
            open_requests: BTreeMap::new(),
            terminals: BTreeMap::new(),
            files: FileJobs::default(),
            terminal_exits: BTreeMap::new(),
            early: Early::default(),
            listing: Listing::default(),
            noise: Vec::new(),
            noise_count: 0,
        }
    }

    /// Whether commands can be sent to the agent.
    pub fn is_alive(&self) -> bool {
        matches!(self.phase, ConnPhase::Starting { .. } | ConnPhase::Ready)
    }

    /// Its capabilities; none before the response to `initialize`.
    pub fn capabilities(&self) -> AgentCapabilities {
        self.info.as_ref().map(|info| info.capabilities).unwrap_or_default()
    }
}

/// A sign-in whose effect is not known: no session was opened since.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SignInTry {
    pub name: String,
    /// The last lines that the agent has printed during `authenticate`, oldest first.
    pub printed: Vec<String>,
    /// Number of pages that it asked to open.
    pub page_count: usize,
    /// The id of the method, if only its variables were set, but the agent may also need `authenticate`.
    pub to_authenticate: Option<String>,
}

/// The kind of an open request, which determines the response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequestClass {
    Permission,
    /// A form or an address to open.
    Elicitation,
    File(SessionKey),
    /// A command that waits for the user, or is being started.
    TerminalCreate(Box<Option<Starting>>),
    TerminalOutput,
    TerminalWait,
}

/// A command that is being started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Starting {
    pub command: CommandAccess,
    pub allowed: Allowance,
}

/// Updates and requests of sessions that are not known yet, in order of arrival and bounded.
#[derive(Debug, Clone, PartialEq)]
pub struct Early {
    pub updates: Bounded<(SessionId, SessionUpdate)>,
    pub requests: Vec<(SessionId, RequestId, AgentRequest)>,
    /// Number of updates dropped because of the bound.
    pub dropped_count: u64,
}

#[derive(Debug, Clone, PartialEq)]
pub enum ConnPhase {
    /// The process is starting, or `initialize` is pending.
    Starting {
        since: Instant,
    },
    Ready,
    Stopping,
    Closed(CloseReason),
}

/// The sessions listed by an agent.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Listing {
    /// The sessions so far, in the agent's order.
    pub sessions: Vec<SessionInfo>,
    /// The folder whose sessions are requested.
    pub(in crate::core) folder: Option<PathBuf>,
    pub(in crate::core) open_call: Option<u64>,
    /// Cursors that were already used, to detect cycles.
    pub(in crate::core) cursors: HashSet<String>,
}
