//! What the sandbox likely refused to an agent: paths in the error texts of its calls, which the user can open.
//!
//! Invariant: an agent can write such a text itself, so a path is opened only by an answer of the user that names it.

use std::path::{Path, PathBuf};

use super::{call, policy, unreported};
use crate::core::state::changes::plain;
use crate::core::state::lookup;
use crate::core::{Consequence, Cx, Question, Session, State, ToolCall};
use crate::model::{
    ContentBlock, Grant, GrantScope, Policy, Protection, SessionKey, Severity, ToolContent, ToolKind,
    has_keys, is_shown_in_full, protection_of,
};

/// Maximum number of bytes at the end of an output that are searched.
const MAX_SEARCHED: usize = 64 * 1024;

/// The same for all outputs of a turn, those of the last calls first.
const MAX_SEARCHED_OF_TURN: usize = 512 * 1024;

/// Maximum number of paths of a turn that are shown.
const MAX_PATHS: usize = 3;

/// The system's texts and names of its errors for a refused access, in lower case.
const ERRORS: &[&str] =
    &["permission denied", "read-only file system", "operation not permitted", "eacces", "erofs", "eperm"];

/// Adds a notice about the paths that the sandbox likely refused in the last turn.
pub(super) fn tell(state: &mut State, key: SessionKey) {
    let Some(session) = state.sessions.get_mut(&key) else { return };
    session.refused.clear();
    let turn = session.turn_count;
    if state.conn_of(key).is_none_or(|conn| conn.spec.bounds.is_none()) {
        return;
    }
    // Those of subagents are from all turns, and start after one of the session.
    let own = unreported::calls(state, key, turn).filter(|(session, _)| session.key == key);
    let Some(began) = own.map(|(_, call)| call.began).min() else { return };
    let is_searched =
        |call: &ToolCall| call.began >= began && !call.is_typed() && call.kind == ToolKind::Execute;
    let mut max_bytes = MAX_SEARCHED_OF_TURN;
    let (mut outside, mut protected): (Vec<PathBuf>, Vec<PathBuf>) = (Vec::new(), Vec::new());
    let home = state.setup.home.as_deref();
    for (session, call) in unreported::calls(state, key, turn).filter(|(_, call)| is_searched(call)) {
        for path in paths_of(session, call, home, &mut max_bytes) {
            let found = if !policy::is_inside(session, &path) {
                &mut outside
            } else if protection(state, &path).is_some() {
                &mut protected
            } else {
                continue;
            };
            if found.len() < MAX_PATHS && !found.contains(&path) {
                found.push(path);
            }
        }
    }
    if outside.is_empty() && protected.is_empty() {
        return;
    }
    let lines = outside.iter().map(|path| path.display().to_string());
    let lines = lines.chain(protected.iter().map(|path| format!("{} (protected)", path.display())));
    let detail = Some(lines.collect::<Vec<_>>().join("\n"));
    outside.retain(|path| !offers(state, path).is_empty());
    let advice = if outside.is_empty() { "" } else { " /allow-path opens a path." };
    let title = format!("Likely refused by the sandbox.{advice}");
    call::notice(state, key, Severity::Warning, title, detail);
    if let Some(session) = state.sessions.get_mut(&key) {
        session.refused = outside;
    }
}

pub(super) fn protection(state: &State, path: &Path) -> Option<Protection> {
    let policy = Policy {
        home: state.setup.home.clone(),
        own_folders: state.setup.own_folders.clone(),
        ..Policy::default()
    };
    protection_of(path, None, &policy)
}

/// The permissions that the user can give for a path.
fn offers(state: &State, path: &Path) -> Vec<Grant> {
    let is_open = |path: &Path| {
        // Folders such as `/etc` and `/usr` are too broad.
        let is_wide = path.parent().is_none_or(|parent| parent.parent().is_none())
            || state.setup.home.iter().chain(&state.setup.own_folders).any(|own| own.starts_with(path));
        !is_wide && protection(state, path).is_none() && !has_keys(path)
    };
    if !is_open(path) {
        return Vec::new();
    }
    let folder = path.parent().filter(|folder| is_open(folder));
    let folder = folder.map(|folder| Grant::SandboxWrite(folder.to_owned()));
    let own = [Grant::SandboxWrite(path.to_owned()), Grant::SandboxRead(path.to_owned())];
    own.into_iter().chain(folder).collect()
}

/// Asks which refused path to open.
pub fn offer(state: &mut State, key: SessionKey, cx: &mut Cx) {
    let paths = state.sessions.get(&key).map(|session| session.refused.clone()).unwrap_or_default();
    let grants: Vec<Grant> = paths.iter().flat_map(|path| offers(state, path)).collect();
    if grants.is_empty() {
        return call::flash(state, "The sandbox has not refused a path in the last turn.", cx);
    }
    let body = [
        "The agent's output names these paths; parlor does not see what the sandbox refuses.",
        "The agent restarts and continues the session. A path that does not exist stays closed: open its folder.",
    ];
    let answers = grants.into_iter().map(|grant| (label(&grant), Consequence::ChoosePath(key, grant)));
    let answers = std::iter::once(("Cancel".to_owned(), Consequence::Close)).chain(answers);
    state.ask(key, Question::new("Open in the sandbox?", body.map(str::to_owned).to_vec(), answers));
}

fn label(grant: &Grant) -> String {
    match grant {
        Grant::SandboxWrite(path) => format!("Write {}", path.display()),
        Grant::SandboxRead(path) => format!("Read {}", path.display()),
        _ => grant.description(),
    }
}

/// Asks how long a path stays open.
pub(super) fn ask_scope(state: &mut State, key: SessionKey, grant: &Grant) {
    let answer = |scope| Consequence::OpenPath(key, grant.clone(), scope);
    let answers = [
        ("Cancel", Consequence::Close),
        ("For this session", answer(GrantScope::Session)),
        ("Always for this agent in this folder", answer(GrantScope::Folder)),
    ];
    let advice = "The agent restarts. Other sessions of its process can use the path too.";
    let body = vec![label(grant), advice.to_owned()];
    state.ask(key, Question::new("For how long?", body, answers));
}

/// Opens a path. Whether the agent has to be restarted: it does not while a turn runs.
pub(super) fn allow(
    state: &mut State,
    key: SessionKey,
    (grant, scope): (Grant, GrantScope),
    cx: &mut Cx,
) -> bool {
    let Some(conn) = state.conn_of(key).map(|conn| conn.id) else { return false };
    let Some(session) = state.sessions.get_mut(&key) else { return false };
    session.refused.clear();
    policy::add_grant(state, conn, lookup::root_of(state, key), grant, scope, cx);
    // The process may have other sessions.
    let keys = lookup::sessions_of(state, conn, true);
    let is_running =
        keys.iter().any(|key| state.sessions.get(key).is_some_and(|session| session.turn.is_running()));
    if is_running {
        call::flash(state, "A turn is running. Restart the agent to open the path: /restart.", cx);
    }
    !is_running
}

/// The paths in the error texts of a call.
fn paths_of(session: &Session, call: &ToolCall, home: Option<&Path>, max_bytes: &mut usize) -> Vec<PathBuf> {
    let cwd = session.workspace.folder().join(call.input.cwd.as_deref().unwrap_or(Path::new("")));
    let mut paths = Vec::new();
    let mut search = |bytes: &[u8]| {
        let size = bytes.len().min(MAX_SEARCHED).min(*max_bytes);
        *max_bytes -= size;
        let tail = bytes.get(bytes.len() - size..).unwrap_or_default();
        paths.extend(String::from_utf8_lossy(tail).lines().filter_map(|line| path_of(line, &cwd, home)));
    };
    for content in &call.content {
        match content {
            ToolContent::Block(ContentBlock::Text(text)) => search(text.peek().as_bytes()),
            ToolContent::Terminal(id) => {
                if let Some(view) = session.terminals.get(id) {
                    search(&view.output.peek());
                }
            }
            ToolContent::Block(_) | ToolContent::Diff(_) | ToolContent::Unknown(_) => {}
        }
    }
    if let Some(text) = &call.output_text {
        search(text.peek().as_bytes());
    }
    paths
}

/// The path in an error text: the first one in quotes, otherwise the word before the error.
fn path_of(line: &str, cwd: &Path, home: Option<&Path>) -> Option<PathBuf> {
    let lower = line.to_ascii_lowercase();
    let at = ERRORS.iter().filter_map(|error| lower.find(error)).min()?;
    let quoted = line.split(['\'', '"', '`', '\u{2018}', '\u{2019}']).skip(1).step_by(2);
    let before = line.get(..at).unwrap_or_default().trim_end_matches([':', ' ']);
    let word = before.rsplit([' ', ':']).next();
    let name = quoted.chain(word).find(|name| name.contains('/'))?;
    let path = match (name.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => cwd.join(name),
    };
    // The user has to see all of it, and in one line.
    let is_clear = path.to_str().is_some_and(|text| is_shown_in_full(text) && !text.contains(['\n', '\t']));
    is_clear.then(|| plain(&path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_found_in_error_texts() {
        let found = |line: &str| {
            let path = path_of(line, Path::new("/w"), Some(Path::new("/home/ada")));
            path.map(|path| path.display().to_string()).unwrap_or_default()
        };
        for (line, expected) in [
            ("touch: cannot touch '/opt/x/a b': Permission denied", "/opt/x/a b"),
            ("mkdir: cannot create directory ‘/opt/x’: Read-only file system", "/opt/x"),
            ("bash: line 1: /opt/x: Permission denied", "/opt/x"),
            ("sh: 1: cannot create .git/hooks/a: Read-only file system", "/w/.git/hooks/a"),
            ("Error: EACCES: permission denied, open '/opt/x'", "/opt/x"),
            ("PermissionError: [Errno 13] Permission denied: '/opt/x'", "/opt/x"),
            ("open /opt/../opt/x: permission denied", "/opt/x"),
            ("cat: ~/.config/gh/hosts.yml: Permission denied", "/home/ada/.config/gh/hosts.yml"),
            ("cannot open '/opt/\u{202e}x': Permission denied", ""),
            ("cannot open '/opt/\u{1b}[1mx': Permission denied", ""),
            ("Permission denied (publickey).", ""),
            ("All tests in '/opt/x' passed", ""),
        ] {
            assert_eq!(found(line), expected, "{line}");
        }
    }
}
