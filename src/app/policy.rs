//! What the user allowed so far: approved tool calls of the running turn, and grants.
//!
//! Duty: makes the [`Policy`] of an agent in a session, remembers approvals, and says whether one covers a command or a
//! write. Not its duty: deciding (`model::policy`), asking (`asks`).
//! Invariants: an approval is what the call showed when it was approved, so a later update of the call changes nothing;
//! it covers one command, unless the user chose to allow it always.

use std::path::{Path, PathBuf};

use crate::model::{
    Access, AgentSpec, CommandAccess, ConnId, FileDiff, Grant, GrantScope, Policy, SessionKey, StoredGrant,
    WriteChange, approved_lines, is_plain_environment,
};

use super::changes::{explains, plain};
use super::{Effect, Session, State, ToolCall, Turn, call};

/// The most approvals that are remembered.
const MOST_APPROVALS: usize = 64;

/// A tool call that the user approved, as far as it shows what is done.
#[derive(Debug, Clone, PartialEq)]
pub struct Approval {
    /// Whose.
    conn: ConnId,
    /// In which turn; one that holds always outlives it.
    turn: u32,
    /// Command lines that it shows.
    lines: Vec<String>,
    /// The working directory that it shows.
    cwd: Option<PathBuf>,
    /// Changes that it shows.
    diffs: Vec<FileDiff>,
    /// Whether the user chose to allow it always.
    is_always: bool,
}

/// The agent as grants name it: another command line or address is another agent.
pub(super) fn agent_of(spec: &AgentSpec) -> String {
    format!("{} ({})", spec.name, spec.command_line())
}

/// The policy for an agent in a session.
pub(super) fn of(state: &State, conn: ConnId, key: SessionKey) -> Policy {
    let (setup, spec) = (&state.setup, state.conns.get(&conn).map(|conn| &conn.spec));
    let agent = spec.map(agent_of).unwrap_or_default();
    let mut grants = Vec::new();
    if let Some(root) = state.sessions.get(&call::root_of(state, key)) {
        let own = root.ledger.grants.iter().filter(|(of, _)| *of == agent);
        grants.extend(own.map(|(_, grant)| (grant.clone(), GrantScope::Session)));
        let is_its = |stored: &&StoredGrant| stored.agent == agent && stored.folder == root.place.cwd;
        let stored = state.grants.iter().filter(is_its);
        grants.extend(stored.map(|stored| (stored.grant.clone(), GrantScope::Folder)));
    }
    Policy {
        rules: setup.policy,
        is_remote: spec.is_none_or(AgentSpec::is_elsewhere),
        home: setup.home.clone(),
        own_folders: setup.own_folders.clone(),
        grants,
    }
}

/// The folders that the user gave for a session.
pub(super) fn roots(session: &Session) -> Vec<PathBuf> {
    session.place.roots()
}

/// Whether a folder is inside of those that the user gave, as far as its name says.
pub(super) fn is_inside(session: &Session, folder: &Path) -> bool {
    let folder = plain(folder);
    roots(session).iter().any(|root| folder.starts_with(plain(root)))
}

/// The user approved a call.
pub(super) fn note_approval(session: &mut Session, conn: ConnId, call: &ToolCall, is_always: bool) {
    let approval = Approval {
        conn,
        turn: session.turn_count,
        lines: approved_lines(call.kind, &call.title, &call.content, &call.input),
        cwd: call.input.cwd.as_ref().map(|cwd| plain(&session.place.folder().join(cwd))),
        diffs: call.diffs().cloned().collect(),
        is_always,
    };
    if approval.lines.is_empty() && approval.diffs.is_empty() {
        return;
    }
    let approvals = &mut session.ledger.approvals;
    if approvals.len() >= MOST_APPROVALS {
        approvals.remove(0);
    }
    approvals.push(approval);
}

/// A turn begins: what was approved once is over.
pub(super) fn forget_turn(session: &mut Session) {
    session.ledger.approvals.retain(|approval| approval.is_always);
}

/// The place of the approval that covers a command, and whether it shows the command's working directory.
pub(super) fn covering(
    state: &State,
    conn: ConnId,
    key: SessionKey,
    command: &CommandAccess,
) -> Option<(usize, bool)> {
    let session = working(state, key)?;
    if !is_plain_environment(&command.env) {
        return None;
    }
    let mut approvals = session.ledger.approvals.iter().enumerate();
    let (place, approval) = approvals.find(|(_, approval)| {
        approval.conn == conn
            && (approval.is_always || approval.turn == session.turn_count)
            && approval.cwd.as_ref().is_none_or(|cwd| *cwd == plain(&command.cwd))
            && approval.lines.contains(&command.line)
    })?;
    Some((place, approval.cwd.is_some()))
}

/// An approval was used: unless it holds always, it covers no other command.
pub(super) fn use_approval(state: &mut State, key: SessionKey, place: usize) {
    let root = call::root_of(state, key);
    if let Some(session) = state.sessions.get_mut(&root)
        && session.ledger.approvals.get(place).is_some_and(|approval| !approval.is_always)
    {
        session.ledger.approvals.remove(place);
    }
}

/// Whether an approved call of the running turn shows exactly this change.
pub(super) fn covers_write(state: &State, conn: ConnId, key: SessionKey, change: &WriteChange) -> bool {
    let (Some(session), Some(diff)) = (working(state, key), &change.diff) else { return false };
    let folder = session.place.folder();
    session.ledger.approvals.iter().any(|approval| {
        approval.conn == conn
            && approval.turn == session.turn_count
            && explains(folder, approval.diffs.iter(), diff)
    })
}

/// The session that works for the user, while its turn runs and was not cancelled.
fn working(state: &State, key: SessionKey) -> Option<&Session> {
    let session = state.sessions.get(&call::root_of(state, key))?;
    matches!(session.turn, Turn::Running { .. }).then_some(session)
}

/// The narrowest grant for an access.
pub(super) fn grant_of(state: &State, access: &Access, why: crate::model::AskWhy) -> Option<Grant> {
    Grant::of(access, why, state.setup.home.as_deref())
}

/// The user granted something.
pub(super) fn add_grant(
    state: &mut State,
    conn: ConnId,
    key: SessionKey,
    grant: Grant,
    scope: GrantScope,
    fx: &mut Vec<Effect>,
) {
    let Some(agent) = state.conns.get(&conn).map(|conn| agent_of(&conn.spec)) else { return };
    let root = call::root_of(state, key);
    let Some(session) = state.sessions.get_mut(&root) else { return };
    match scope {
        GrantScope::Session => {
            let granted = (agent, grant);
            if !session.ledger.grants.contains(&granted) {
                session.ledger.grants.push(granted);
            }
        }
        GrantScope::Folder => {
            let stored = StoredGrant { agent, folder: session.place.cwd.clone(), grant };
            if !state.grants.contains(&stored) {
                state.grants.push(stored.clone());
            }
            fx.push(Effect::SaveGrant(stored));
        }
    }
}

/// A grant as it is listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedGrant<'a> {
    /// The agent that it was given to.
    pub agent: &'a str,
    /// What is granted.
    pub grant: &'a Grant,
    /// The folder that it holds in; `None`: for the session in front.
    pub folder: Option<&'a Path>,
}

impl ListedGrant<'_> {
    /// What tells it from all others.
    pub fn id(&self) -> String {
        format!("{:?}", (self.agent, self.grant, self.folder))
    }
}

/// All grants that can be revoked: those of the session in front, then those that are stored.
pub fn granted(state: &State) -> Vec<ListedGrant<'_>> {
    let own = state.active_session().into_iter().flat_map(|session| &session.ledger.grants);
    let own = own.map(|(agent, grant)| ListedGrant { agent, grant, folder: None });
    let stored = state.grants.iter();
    let stored =
        stored.map(|StoredGrant { agent, folder, grant }| ListedGrant { agent, grant, folder: Some(folder) });
    own.chain(stored).collect()
}

/// Takes a grant back.
pub fn revoke(state: &mut State, id: &str, fx: &mut Vec<Effect>) {
    let of_session = |agent: &str, grant: &Grant| ListedGrant { agent, grant, folder: None }.id() == id;
    let key = state.active;
    if let Some(session) = state.sessions.get_mut(&key) {
        session.ledger.grants.retain(|(agent, grant)| !of_session(agent, grant));
    }
    state.grants.retain(|stored| {
        let StoredGrant { agent, folder, grant } = stored;
        let is_it = ListedGrant { agent, grant, folder: Some(folder) }.id() == id;
        if is_it {
            fx.push(Effect::RemoveGrant(stored.clone()));
        }
        !is_it
    });
}
