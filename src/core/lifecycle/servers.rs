//! MCP servers configured in the session's folder: used only if the user agrees.
//!
//! Delays the opening of a session until the user has decided, and reports servers that are not used. `cli::servers`
//! reads the file, `host::trust` saves the decision. A server is a program that runs with the user's rights, and
//! its file is part of the code: nothing of it is sent to an agent without a confirmation of exactly this text, and
//! closing the question does not confirm it.

use crate::core::FolderRequest;
use crate::core::TrustAnswer;
use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::escape::visible;
use crate::model::{FolderServers, McpServer, SessionKey, Severity};

use super::{call, open};
use crate::core::{ConnPhase, Consequence, Cx, Effect, Question, Session, State};

/// The servers found in the first folder before the start, with the saved decision.
pub(in crate::core) fn take_known(state: &mut State, key: SessionKey) {
    let request = match state.setup.folder_servers.take() {
        Some(found) => judge(state, key, found),
        None => FolderRequest::Decided(Vec::new()),
    };
    state.folder_servers.insert(state.setup.folder.clone(), request);
}

/// A saved decision applies; a file without usable servers needs none.
fn judge(state: &mut State, key: SessionKey, found: FolderServers) -> FolderRequest {
    match found.answer {
        Some(false) => FolderRequest::Decided(Vec::new()),
        None if !found.servers.is_empty() => FolderRequest::Asked(found),
        Some(true) | None => {
            report_notes(state, key, &found);
            FolderRequest::Decided(found.servers)
        }
    }
}

/// Whether a session must wait for the decision, in which case the user is asked. Otherwise its servers are set.
pub(in crate::core) fn must_wait(state: &mut State, key: SessionKey, cx: &mut Cx) -> bool {
    // Headers and variables of servers are secrets: a remote agent gets them only if allowed.
    let gets_servers = state.conn_of(key).is_some_and(|conn| conn.spec.gets_servers());
    let configured = if gets_servers { state.setup.mcp_servers.clone() } else { Vec::new() };
    if let Some(session) = state.sessions.get_mut(&key) {
        session.workspace.mcp_servers = configured;
    }
    // The folder of a remote agent is not a local one.
    let is_here = state.conn_of(key).is_some_and(|conn| !conn.spec.is_elsewhere());
    let Some(session) = state.sessions.get_mut(&key).filter(|_| is_here) else { return false };
    let folder = session.workspace.cwd.clone();
    match state.folder_servers.get(&folder) {
        Some(FolderRequest::Decided(servers)) => {
            let known: Vec<String> =
                session.workspace.mcp_servers.iter().map(|server| server.name().to_owned()).collect();
            let new = servers.iter().filter(|server| !known.iter().any(|name| name == server.name()));
            session.workspace.mcp_servers.extend(new.cloned());
            session.start.wait_for_servers(false);
            return false;
        }
        Some(FolderRequest::Looking) => {}
        Some(FolderRequest::Asked(found)) => {
            let question = question(found, cx.now);
            if !is_asked(state, &folder) {
                state.ask(key, question);
            }
        }
        None => {
            state.folder_servers.insert(folder.clone(), FolderRequest::Looking);
            cx.effects.push(Effect::FindServers { folder });
        }
    }
    if let Some(session) = state.sessions.get_mut(&key) {
        session.start.wait_for_servers(true);
    }
    true
}

/// The file of a folder was read.
pub(in crate::core) fn on_found(
    state: &mut State,
    folder: PathBuf,
    found: Result<Option<FolderServers>, String>,
    cx: &mut Cx,
) {
    let waiting = waiting(state, &folder);
    let Some(first) = waiting.first().copied() else {
        // It is read again for the next session in the folder.
        state.folder_servers.remove(&folder);
        return;
    };
    let request = match found {
        Ok(Some(found)) => judge(state, first, found),
        Ok(None) => FolderRequest::Decided(Vec::new()),
        Err(problem) => {
            call::notice(state, first, Severity::Warning, problem, None);
            FolderRequest::Decided(Vec::new())
        }
    };
    state.folder_servers.insert(folder, request);
    open_all(state, &waiting, cx);
}

fn waiting(state: &State, folder: &Path) -> Vec<SessionKey> {
    let sessions = state.sessions.values();
    let waits = |session: &&Session| session.start.waits_for_servers() && session.workspace.cwd == folder;
    sessions.filter(waits).map(|session| session.key).collect()
}

fn open_all(state: &mut State, keys: &[SessionKey], cx: &mut Cx) {
    for key in keys {
        if let Some(session) = state.sessions.get_mut(key) {
            session.start.wait_for_servers(false);
        }
        if state.conn_of(*key).is_some_and(|conn| conn.phase == ConnPhase::Ready) {
            open::open(state, *key, cx);
        }
    }
}

/// Longer lists of servers begin with their programs.
const MANY_LINES: usize = 8;

fn question(found: &FolderServers, now: Instant) -> Question {
    let mut body = vec![format!(
        "{} configures MCP servers for the agent. They run with your permissions; review them first:",
        visible(&found.file.to_string_lossy())
    )];
    let programs = found.lines.iter().filter(|line| !line.starts_with('·'));
    if found.lines.len() > MANY_LINES && programs.clone().count() > 1 {
        // Each program is visible before the arguments of the first one.
        body.extend(programs.cloned());
        body.push(String::new());
    }
    body.extend(found.lines.iter().cloned());
    body.extend(found.notes.iter().cloned());
    let consequence = |answer| Consequence::Servers(found.folder.clone(), answer);
    Question::about_files("Use the MCP servers of this folder?", body, "the file changes", consequence, now)
}

/// Whether the question is open, in any tab.
fn is_asked(state: &State, folder: &Path) -> bool {
    state.is_asked(|consequence| matches!(consequence, Consequence::Servers(asked, _) if asked == folder))
}

/// Applies and saves the user's decision about a folder.
pub fn answer_servers(state: &mut State, folder: &Path, answer: TrustAnswer, cx: &mut Cx) {
    let Some(FolderRequest::Asked(found)) = state.folder_servers.get(folder).cloned() else { return };
    let waiting = waiting(state, folder);
    let servers = match answer {
        TrustAnswer::Use => {
            cx.effects.push(keep(&found, true));
            report_notes(state, waiting.first().copied().unwrap_or(state.active), &found);
            found.servers
        }
        TrustAnswer::LeaveOut => {
            cx.effects.push(keep(&found, false));
            Vec::new()
        }
        TrustAnswer::NotNow => {
            let text = "The folder's MCP servers are not used. You will be asked again at the next start.";
            call::flash(state, text, cx);
            Vec::new()
        }
    };
    state.folder_servers.insert(folder.to_owned(), FolderRequest::Decided(servers));
    open_all(state, &waiting, cx);
}

fn keep(found: &FolderServers, allows: bool) -> Effect {
    Effect::KeepTrust { location: found.answer_file.clone(), allows, about: found.file.clone() }
}

fn report_notes(state: &mut State, key: SessionKey, found: &FolderServers) {
    let configured = state.setup.mcp_servers.iter().map(McpServer::name);
    let configured: Vec<&str> =
        configured.filter(|name| found.servers.iter().any(|it| it.name() == *name)).collect();
    let mut notes = found.notes.clone();
    notes.extend(configured.iter().map(|name| {
        format!(
            "{name}: skipped, the name is already used in your \
            configuration."
        )
    }));
    if !notes.is_empty() {
        let title = format!("Some MCP servers of {} were skipped.", found.file.display());
        call::notice(state, key, Severity::Warning, title, Some(notes.join("\n")));
    }
}
