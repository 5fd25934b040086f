//! What a session waits for before it is opened, and the connections it had.

use std::collections::VecDeque;
use std::time::Instant;

use crate::model::ConnId;

/// Maximum number of connections that are remembered for the protocol log.
const MAX_CONNS: usize = 32;

/// The preconditions of opening a session.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct StartState {
    /// The connections of the session, the latest last.
    conns: VecDeque<ConnId>,
    sign_in_since: Option<Instant>,
    /// Whether it is opened once the agent is set up.
    waits_for_setup: bool,
    /// Whether it is opened once the user has decided about the folder's MCP servers.
    waits_for_servers: bool,
    /// The agent and the notice about MCP servers that it does not support.
    unsupported: Option<(String, String)>,
}

impl StartState {
    pub(in crate::core) fn add_conn(&mut self, conn: ConnId) {
        if self.conns.len() >= MAX_CONNS {
            self.conns.pop_front();
        }
        self.conns.push_back(conn);
    }

    pub(in crate::core) fn conns(&self) -> impl Iterator<Item = ConnId> {
        self.conns.iter().copied()
    }

    pub(in crate::core) fn require_sign_in(&mut self, now: Instant) {
        self.sign_in_since = Some(now);
    }

    pub(in crate::core) fn sign_in_since(&self) -> Option<Instant> {
        self.sign_in_since
    }

    pub(in crate::core) fn wait_for_setup(&mut self, waits: bool) {
        self.waits_for_setup = waits;
    }

    pub(in crate::core) fn waits_for_setup(&self) -> bool {
        self.waits_for_setup
    }

    pub(in crate::core) fn wait_for_servers(&mut self, waits: bool) {
        self.waits_for_servers = waits;
    }

    pub(in crate::core) fn waits_for_servers(&self) -> bool {
        self.waits_for_servers
    }

    /// The agent and the last notice about MCP servers that it does not support.
    pub(in crate::core) fn unsupported(&self) -> Option<&(String, String)> {
        self.unsupported.as_ref()
    }

    pub(in crate::core) fn set_unsupported(&mut self, notice: (String, String)) {
        self.unsupported = Some(notice);
    }
}
