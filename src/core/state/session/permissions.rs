//! What the user has approved and granted in a session.

use std::path::PathBuf;

use crate::model::{ConnId, FileDiff, Grant};

/// Maximum number of remembered approvals.
const MAX_APPROVALS: usize = 64;

/// A tool call that the user approved, with what it showed.
#[derive(Debug, Clone, PartialEq)]
pub struct Approval {
    pub(in crate::core) conn: ConnId,
    /// The turn of the call; a permanent approval outlives it.
    pub(in crate::core) turn: u32,
    /// Command lines that the call shows.
    pub(in crate::core) lines: Vec<String>,
    /// The working directory: the one that the call shows, else that of the session.
    pub(in crate::core) cwd: PathBuf,
    pub(in crate::core) shows_cwd: bool,
    pub(in crate::core) diffs: Vec<FileDiff>,
    /// Files that the dialog marked as protected.
    pub(in crate::core) marked: Vec<PathBuf>,
    /// Whether the user chose to allow it always.
    pub(in crate::core) is_always: bool,
}

/// How long requests are approved without asking, and which.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApproveAll {
    /// Until the running turn ends, or the next one.
    Turn,
    Session,
    /// As long as the agent runs, but only what its sandbox confines.
    Sandbox,
}

/// Approvals and grants of a session.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Permissions {
    /// Approved in the running turn, or permanently.
    approvals: Vec<Approval>,
    grants: Vec<(String, Grant)>,
    /// The connection whose requests are all approved.
    all: Option<(ConnId, ApproveAll)>,
}

impl Permissions {
    pub(in crate::core) fn approve(&mut self, approval: Approval) {
        if self.approvals.len() >= MAX_APPROVALS {
            self.approvals.remove(0);
        }
        self.approvals.push(approval);
    }

    pub(in crate::core) fn approvals(&self) -> &[Approval] {
        &self.approvals
    }

    /// An approval was used: unless it is permanent, it is removed.
    pub(in crate::core) fn use_up(&mut self, position: usize) {
        if self.approvals.get(position).is_some_and(|approval| !approval.is_always) {
            self.approvals.remove(position);
        }
    }

    /// A turn begins: only permanent approvals stay valid.
    pub(in crate::core) fn begin_turn(&mut self) {
        self.approvals.retain(|approval| approval.is_always);
    }

    pub(in crate::core) fn end_turn(&mut self) {
        self.all.take_if(|(_, scope)| *scope == ApproveAll::Turn);
    }

    pub(in crate::core) fn approve_all(&mut self, all: Option<(ConnId, ApproveAll)>) {
        self.all = all;
    }

    pub(in crate::core) fn approves_all(&self, conn: ConnId) -> Option<ApproveAll> {
        self.all.filter(|(of, _)| *of == conn).map(|(_, scope)| scope)
    }

    pub(in crate::core) fn grant(&mut self, agent: String, grant: Grant) {
        let granted = (agent, grant);
        if !self.grants.contains(&granted) {
            self.grants.push(granted);
        }
    }

    pub(in crate::core) fn grants(&self) -> &[(String, Grant)] {
        &self.grants
    }

    pub(in crate::core) fn revoke(&mut self, is_revoked: impl Fn(&str, &Grant) -> bool) {
        self.grants.retain(|(agent, grant)| !is_revoked(agent, grant));
    }
}
