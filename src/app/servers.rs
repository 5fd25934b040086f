//! MCP servers that the session's folder names: used only if the user agrees.
//!
//! Duty: holds a session's opening until it was answered, says what was left out. Not its duty: reading the file
//! (`cli::servers`), keeping the answer (`services::answers`).
//! A server is a program that runs with the user's rights, and its file comes with the code. So nothing of it goes
//! to an agent without a yes to this very text, and none is given by closing the question.

use std::time::Instant;

use crate::model::{FolderServers, McpServer, SessionKey, Severity};

use super::{Choice, ChoiceDialog, ChoiceOutcome, ConnPhase, Effect, Modal, State, call, open};

/// What the user says about them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServersAnswer {
    /// They are used, now and as long as the file stays as it is.
    Use,
    /// They are left out for as long.
    LeaveOut,
    /// They are left out this time.
    NotNow,
}

impl State {
    /// Puts what was answered before into force, before the first session is opened.
    pub(super) fn take_known_servers(&mut self, key: SessionKey) {
        let Some(found) = self.setup.folder_servers.take() else { return };
        match found.answer {
            Some(true) => {
                tell_notes(self, key, &found);
                take_in(self, found);
            }
            Some(false) => {}
            None if found.servers.is_empty() => tell_notes(self, key, &found),
            None => self.setup.folder_servers = Some(found),
        }
    }
}

/// Whether a session that is about to be opened must wait for the answer; then the question is on the screen.
pub(super) fn must_wait(state: &mut State, key: SessionKey, now: Instant) -> bool {
    // The folder of an agent on another machine is not this one.
    let is_here = state.conn_of(key).is_some_and(|conn| !conn.spec.is_elsewhere());
    let Some(found) = state.setup.folder_servers.as_ref().filter(|_| is_here) else { return false };
    let Some(session) = state.sessions.get_mut(&key).filter(|session| session.place.cwd == found.folder)
    else {
        return false;
    };
    session.ledger.waits_for_servers = true;
    if !is_asked(&state.modals) {
        let question = question(found, now);
        state.modals.push(question);
    }
    true
}

fn question(found: &FolderServers, now: Instant) -> Modal {
    let mut body = vec![format!(
        "{} names MCP servers for the agent. They run with your rights, so look at them first:",
        found.file.display()
    )];
    body.extend(found.lines.iter().cloned());
    body.extend(found.notes.iter().cloned());
    let choice = |label: &str, answer| Choice {
        label: label.to_owned(),
        outcome: ChoiceOutcome::AnswerServers(answer),
    };
    Modal::Choice(ChoiceDialog {
        title: "Use the servers of this folder?".to_owned(),
        body,
        choices: vec![
            choice("Not now", ServersAnswer::NotNow),
            choice("Use them, until the file changes", ServersAnswer::Use),
            choice("Leave them out, until the file changes", ServersAnswer::LeaveOut),
        ],
        selected: 0,
        opened_by_itself: Some(now),
    })
}

fn is_asked(modals: &[Modal]) -> bool {
    modals.iter().any(|modal| match modal {
        Modal::Choice(dialog) => {
            dialog.choices.iter().any(|choice| matches!(choice.outcome, ChoiceOutcome::AnswerServers(_)))
        }
        _ => false,
    })
}

/// The user answered.
pub fn answer_servers(state: &mut State, answer: ServersAnswer, now: Instant, fx: &mut Vec<Effect>) {
    let Some(found) = state.setup.folder_servers.take() else { return };
    let key = state.active;
    match answer {
        ServersAnswer::Use => {
            fx.push(keep(&found, true));
            tell_notes(state, key, &found);
            take_in(state, found);
        }
        ServersAnswer::LeaveOut => fx.push(keep(&found, false)),
        ServersAnswer::NotNow => {
            let text =
                "The folder's MCP servers are left out this time. It is asked again at the next start.";
            call::flash(state, text, fx);
        }
    }
    let waiting: Vec<SessionKey> = state
        .sessions
        .values_mut()
        .filter_map(|session| std::mem::take(&mut session.ledger.waits_for_servers).then_some(session.key))
        .collect();
    for key in waiting {
        if state.conn_of(key).is_some_and(|conn| conn.phase == ConnPhase::Ready) {
            open::open(state, key, now, fx);
        }
    }
}

/// A question that was closed is answered: not now.
pub(super) fn settle(state: &mut State, now: Instant, fx: &mut Vec<Effect>) {
    let waits = state.setup.folder_servers.is_some()
        && !is_asked(&state.modals)
        && state.sessions.values().any(|session| session.ledger.waits_for_servers);
    if waits && !state.is_quitting {
        answer_servers(state, ServersAnswer::NotNow, now, fx);
    }
}

fn keep(found: &FolderServers, allows: bool) -> Effect {
    Effect::KeepServersAnswer { place: found.answer_file.clone(), allows, about: found.file.clone() }
}

/// From now on they are given to agents, beside those that are configured.
fn take_in(state: &mut State, found: FolderServers) {
    let configured: Vec<String> =
        state.setup.mcp_servers.iter().map(|server| server.name().to_owned()).collect();
    let new: Vec<McpServer> = found
        .servers
        .into_iter()
        .filter(|server| !configured.iter().any(|name| name == server.name()))
        .collect();
    for session in state.sessions.values_mut().filter(|session| session.place.cwd == found.folder) {
        session.place.mcp_servers.extend(new.iter().cloned());
    }
    state.setup.mcp_servers.extend(new);
}

fn tell_notes(state: &mut State, key: SessionKey, found: &FolderServers) {
    let configured = state.setup.mcp_servers.iter().map(McpServer::name);
    let configured: Vec<&str> =
        configured.filter(|name| found.servers.iter().any(|it| it.name() == *name)).collect();
    let mut notes = found.notes.clone();
    notes.extend(
        configured.iter().map(|name| format!("{name} is left out: your configuration has one of that name.")),
    );
    if !notes.is_empty() {
        let title = format!("Not all servers of {} are used.", found.file.display());
        call::notice(state, key, Severity::Warning, title, Some(notes.join("\n")));
    }
}
