//! What the user has allowed: approved tool calls of the running turn, and grants.
//!
//! Creates the [`Policy`] of an agent in a session, saves approvals, and checks whether one covers a command or a
//! write. `model::policy` decides, `requests` asks the user.
//! Invariants: an approval is what the call showed when it was approved, so later updates of the call do not change it;
//! it covers one command, unless the user chose to always allow it; it covers a protected file only if the dialog
//! marked that file as protected and showed exactly what is written.

use crate::core::Approval;
use std::path::{Path, PathBuf};

use crate::model::{
    Access, AgentSpec, AskedFile, Body, CHANGES_MAX, CommandAccess, ConnId, DiffChange, FileDiff, Grant,
    GrantScope, Policy, Protection, Rule, RuleAction, RuleContext, SessionKey, StoredGrant, ToolKind,
    approved_lines, is_plain_environment, protection_of,
};

use crate::core::session::access;
use crate::core::state::changes::{explains, plain, replaced};
use crate::core::state::lookup;
use crate::core::{Cx, Effect, Session, State, ToolCall, Turn};

/// Maximum number of protected files named in a dialog. Its approval covers no other.
const MAX_MARKED: usize = 4;

/// The agent's name in grants: another command line or address is another agent.
pub(in crate::core) fn agent_of(spec: &AgentSpec) -> String {
    format!("{} ({})", spec.name, spec.command_line())
}

pub(in crate::core) fn of(state: &State, conn: ConnId, key: SessionKey) -> Policy {
    let (setup, spec) = (&state.setup, state.conns.get(&conn).map(|conn| &conn.spec));
    let agent = spec.map(agent_of).unwrap_or_default();
    let mut grants = grants_of(state, &agent, key);
    let root = state.sessions.get(&lookup::root_of(state, key));
    let approves_all = root.is_some_and(|root| root.permissions.approves_all(conn).is_some());
    grants.extend(approves_all.then_some((Grant::AnyCommand, GrantScope::Session)));
    Policy {
        rules: setup.policy,
        is_remote: spec.is_none_or(AgentSpec::is_elsewhere),
        home: setup.home.clone(),
        own_folders: setup.own_folders.clone(),
        user_rules: setup.rules.with(allowing_rules(&grants)),

        grants,
        context: context_of(state, conn, key),
        requested: None,
    }
}

/// The grants of an agent in a session.
pub(super) fn grants_of(state: &State, agent: &str, key: SessionKey) -> Vec<(Grant, GrantScope)> {
    let Some(root) = state.sessions.get(&lookup::root_of(state, key)) else { return Vec::new() };
    let own = root.permissions.grants().iter().filter(|(of, _)| *of == agent);
    let own = own.map(|(_, grant)| (grant.clone(), GrantScope::Session));
    let is_its = |stored: &&StoredGrant| stored.agent == agent && stored.folder == root.workspace.cwd;
    let stored = state.grants.iter().filter(is_its);
    own.chain(stored.map(|stored| (stored.grant.clone(), GrantScope::Folder))).collect()
}

/// The rules that the user added in a dialog.
fn allowing_rules(grants: &[(Grant, GrantScope)]) -> Vec<Rule> {
    let rule = |(grant, _): &(Grant, GrantScope)| match grant {
        Grant::Rule(text) => Rule::parse(text).ok().filter(|rule| rule.action == RuleAction::Allow),
        _ => None,
    };
    grants.iter().filter_map(rule).collect()
}

/// What the rules are compared with.
pub(super) fn context_of(state: &State, conn: ConnId, key: SessionKey) -> RuleContext {
    let spec = state.conns.get(&conn).map(|conn| &conn.spec);
    let session = state.sessions.get(&key);
    let mode = session.and_then(|session| session.modes.as_ref()).map(|modes| modes.current.to_string());
    RuleContext {
        agent: spec.map(|spec| spec.name.clone()).unwrap_or_default(),
        mode: mode.unwrap_or_default(),
        folder: session.map(|session| session.workspace.folder().to_owned()).unwrap_or_default(),
        home: state.setup.home.clone(),
        is_remote: spec.is_none_or(AgentSpec::is_elsewhere),
    }
}

/// The folders that the user gave for a session.
pub(in crate::core) fn roots(session: &Session) -> Vec<PathBuf> {
    session.workspace.roots()
}

pub(in crate::core) fn is_inside(session: &Session, folder: &Path) -> bool {
    let folder = plain(folder);
    roots(session).iter().any(|root| folder.starts_with(plain(root)))
}

/// The protected files that a call will change, as marked in its dialog. They are recognized by name only: links are
/// not resolved here.
pub fn protected_files(state: &State, session: &Session, call: &ToolCall) -> Vec<(PathBuf, Protection)> {
    let (home, own_folders) = (state.setup.home.clone(), state.setup.own_folders.clone());
    protected_by(&Policy { home, own_folders, ..Policy::default() }, session, call)
}

/// The same for a policy.
pub(in crate::core) fn protected_by(
    policy: &Policy,
    session: &Session,
    call: &ToolCall,
) -> Vec<(PathBuf, Protection)> {
    let folder = session.workspace.folder();
    let reported = call.reported_diffs().map(|diff| plain(&folder.join(&diff.path)));
    let is_change = matches!(call.kind, ToolKind::Edit | ToolKind::Delete | ToolKind::Move);
    let named = if is_change { access::named_paths(folder, call) } else { Vec::new() };
    // The example files of the built-in agent are among parlor's own, and have no effect.
    let is_example =
        |path: &Path| policy.own_folders.iter().any(|own| path.starts_with(own.join("demo/work")));
    let mut found: Vec<(PathBuf, Protection)> = Vec::new();
    for path in reported.chain(named).filter(|path| !is_example(path)) {
        if let Some(why) = protection_of(&path, None, policy)
            && found.len() < MAX_MARKED
            && !found.iter().any(|(other, _)| *other == path)
        {
            found.push((path, why));
        }
    }
    found
}

pub(in crate::core) fn note_approval(
    state: &mut State,
    key: SessionKey,
    conn: ConnId,
    call: &ToolCall,
    is_always: bool,
) {
    let Some(session) = state.sessions.get(&key) else { return };
    let folder = session.workspace.folder();
    let approval = Approval {
        conn,
        turn: session.turn_count,
        lines: approved_lines(call.kind, &call.title, &call.content, &call.input),
        cwd: plain(&call.input.cwd.as_ref().map_or_else(|| folder.to_owned(), |cwd| folder.join(cwd))),
        shows_cwd: call.input.cwd.is_some(),
        diffs: call.diffs().take(CHANGES_MAX).cloned().collect(),
        marked: protected_files(state, session, call).into_iter().map(|(path, _)| path).collect(),
        is_always,
    };
    if approval.lines.is_empty() && approval.diffs.is_empty() {
        return;
    }
    let Some(session) = state.sessions.get_mut(&key) else { return };
    session.permissions.approve(approval);
}

/// The index of the approval that covers a command, and whether it shows the command's working directory.
pub(in crate::core) fn covering(
    state: &State,
    conn: ConnId,
    key: SessionKey,
    command: &CommandAccess,
) -> Option<(usize, bool)> {
    let session = working(state, key)?;
    if !is_plain_environment(&command.env) {
        return None;
    }
    let mut approvals = session.permissions.approvals().iter().enumerate();
    let (position, approval) = approvals.find(|(_, approval)| {
        approval.conn == conn
            && (approval.is_always || approval.turn == session.turn_count)
            && approval.cwd == plain(&command.cwd)
            && approval.lines.contains(&command.line)
    })?;
    Some((position, approval.shows_cwd))
}

/// An approval was used: unless it is permanent, it covers no other command.
pub(in crate::core) fn use_approval(state: &mut State, key: SessionKey, position: usize) {
    let root = lookup::root_of(state, key);
    if let Some(session) = state.sessions.get_mut(&root) {
        session.permissions.use_up(position);
    }
}

/// Whether an approved call of the running turn shows exactly this write.
pub(in crate::core) fn covers_write(state: &State, conn: ConnId, key: SessionKey, asked: &AskedFile) -> bool {
    let (Some(session), Some(change), Access::Write { path }) =
        (working(state, key), &asked.change, &asked.access)
    else {
        return false;
    };
    let Some(diff) = &change.diff else { return false };
    let folder = session.workspace.folder();
    let is_ordinary = asked.facts.protection.is_none_or(|why| why == Protection::WideRoot);
    session.permissions.approvals().iter().any(|approval| {
        approval.conn == conn
            && approval.turn == session.turn_count
            && if is_ordinary {
                explains(folder, approval.diffs.iter(), diff)
            } else {
                // Only a part of a large file is known here.
                change.line.is_none() && approval.makes(folder, path, diff)
            }
    })
}

impl crate::core::Approval {
    /// Whether it marked a file as protected, and its changes, applied in order, give exactly this.
    fn makes(&self, folder: &Path, path: &Path, made: &FileDiff) -> bool {
        let DiffChange::Texts { old, new } = &made.change else { return false };
        let mut shown = self.diffs.iter().filter(|diff| plain(&folder.join(&diff.path)) == path).peekable();
        let is_marked = self.marked.iter().any(|marked| marked == path) && shown.peek().is_some();
        let begin: Body = old.clone().unwrap_or_default();
        let end = shown.try_fold(begin, |text, diff| match &diff.change {
            DiffChange::Texts { old, new } if *text == *old.as_deref().unwrap_or_default() => {
                Some(new.clone())
            }
            DiffChange::Texts { old, new } => replaced(&text, old.as_deref().unwrap_or_default(), new),
            DiffChange::Patch(_) => None,
        });
        is_marked && end.is_some_and(|end| *end == **new)
    }
}

/// The top-level session, while its turn is running and not cancelled.
fn working(state: &State, key: SessionKey) -> Option<&Session> {
    let session = state.sessions.get(&lookup::root_of(state, key))?;
    matches!(session.turn, Turn::Running { .. }).then_some(session)
}

pub(crate) fn grant_of(state: &State, access: &Access, why: crate::model::AskReason) -> Option<Grant> {
    Grant::of(access, why, state.setup.home.as_deref())
}

pub(in crate::core) fn add_grant(
    state: &mut State,
    conn: ConnId,
    key: SessionKey,
    grant: Grant,
    scope: GrantScope,
    cx: &mut Cx,
) {
    let Some(agent) = state.conns.get(&conn).map(|conn| agent_of(&conn.spec)) else { return };
    let root = lookup::root_of(state, key);
    let Some(session) = state.sessions.get_mut(&root) else { return };
    match scope {
        GrantScope::Session => session.permissions.grant(agent, grant),
        GrantScope::Folder => {
            let stored = StoredGrant { agent, folder: session.workspace.cwd.clone(), grant };
            if !state.grants.contains(&stored) {
                state.grants.push(stored.clone());
            }
            cx.effects.push(Effect::SaveGrant(stored));
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedGrant<'a> {
    pub agent: &'a str,
    pub grant: &'a Grant,
    /// The folder that it applies to; `None`: the active session.
    pub folder: Option<&'a Path>,
}

impl ListedGrant<'_> {
    /// A key that identifies the grant.
    pub fn id(&self) -> String {
        format!("{:?}", (self.agent, self.grant, self.folder))
    }
}

/// All grants that can be revoked: those of the active session, then stored ones.
pub fn granted(state: &State) -> Vec<ListedGrant<'_>> {
    let own = state.active_session().into_iter().flat_map(|session| session.permissions.grants());
    let own = own.map(|(agent, grant)| ListedGrant { agent, grant, folder: None });
    let stored = state.grants.iter();
    let stored =
        stored.map(|StoredGrant { agent, folder, grant }| ListedGrant { agent, grant, folder: Some(folder) });
    own.chain(stored).collect()
}

/// Revokes a grant. Whether the agent's process has it until it restarts.
pub fn revoke(state: &mut State, id: &str, cx: &mut Cx) -> bool {
    let found = granted(state).into_iter().find(|listed| listed.id() == id);
    let opens_path =
        found.is_some_and(|it| matches!(it.grant, Grant::SandboxWrite(_) | Grant::SandboxRead(_)));
    let of_session = |agent: &str, grant: &Grant| ListedGrant { agent, grant, folder: None }.id() == id;
    let key = state.active;
    if let Some(session) = state.sessions.get_mut(&key) {
        session.permissions.revoke(of_session);
    }
    state.grants.retain(|stored| {
        let StoredGrant { agent, folder, grant } = stored;
        let is_it = ListedGrant { agent, grant, folder: Some(folder) }.id() == id;
        if is_it {
            cx.effects.push(Effect::RemoveGrant(stored.clone()));
        }
        !is_it
    });
    opens_path
}
