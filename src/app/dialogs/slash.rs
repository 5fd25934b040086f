//! parlor's own slash commands.
//!
//! Invariants: a command of the agent takes precedence over one of parlor; a text that is not a command is sent
//! unchanged.

use std::time::Instant;

use crate::app::lifecycle::operations;
use crate::app::{Effect, Modal, State};
use crate::model::{Action, LineEdit};

use super::{obstacle, on_command, on_line, say};

/// The name, aliases that are offered only when typed, and the action.
const COMMANDS: &[(&str, &[&str], Action)] = &[
    ("help", &["keys"], Action::OpenHelp),
    ("model", &["models"], Action::OpenModels),
    ("mode", &["modes"], Action::OpenModes),
    ("agent", &["agents"], Action::OpenAgents),
    ("config", &["settings", "options"], Action::OpenOptions),
    ("clear", &["new", "reset"], Action::NewSession),
    ("resume", &["sessions"], Action::OpenSessions),
    ("continue", &[], Action::ContinueLast),
    ("history", &["prompts"], Action::OpenHistory),
    ("diff", &["changes"], Action::OpenChanges),
    ("copy", &[], Action::CopyReply),
    ("export", &["share"], Action::ExportSession),
    ("rename", &["title"], Action::RenameSession),
    ("fork", &["branch"], Action::ForkSession),
    ("handover", &["handoff"], Action::HandOver),
    ("search", &["find"], Action::OpenSearch),
    ("outline", &["timeline"], Action::OpenOutline),
    ("queue", &[], Action::OpenQueue),
    ("rewind", &["undo"], Action::Rewind),
    ("inbox", &[], Action::OpenAttention),
    ("cancel", &["stop"], Action::CancelTurn),
    ("retry", &[], Action::SendAgain),
    ("restart", &["reconnect"], Action::RestartAgent),
    ("permissions", &["allowed"], Action::OpenGrants),
    ("status", &["usage", "cost", "context"], Action::OpenConnection),
    ("login", &["auth"], Action::OpenSignIn),
    ("logout", &[], Action::SignOut),
    ("theme", &["themes"], Action::OpenThemes),
    ("thinking", &[], Action::ToggleThoughts),
    ("todos", &["plan"], Action::TogglePlan),
    ("debug", &["log"], Action::OpenLog),
    ("quit", &["exit", "q"], Action::Quit),
];

/// Name and description of the available commands that begin with the typed text.
pub fn completions<'a>(state: &'a State, typed: &str) -> Vec<(&'static str, &'a str)> {
    let mut offered = Vec::new();
    for (name, aliases, action) in COMMANDS {
        let mut names = std::iter::once(name).chain(aliases.iter());
        let fits = |name: &&&str| name.starts_with(typed) && !is_of_agent(state, name);
        let found = if typed.is_empty() { Some(name).filter(fits) } else { names.find(fits) };
        let text = state.setup.palette.iter().find(|command| command.action == *action);
        if let (Some(name), Some(command)) = (found, text)
            && obstacle::obstacle(state, *action).is_none()
        {
            offered.push((*name, command.text.as_str()));
        }
    }
    offered
}

/// The command a prompt consists of, and the filter of the list it opens.
pub fn command<'a>(state: &State, prompt: &'a str) -> Option<(Action, &'a str)> {
    if state.setup.is_plain {
        return None;
    }
    let line = prompt.strip_prefix('/')?.trim_end();
    let (name, filter) = line.split_once(' ').unwrap_or((line, ""));
    let is_name = |other: &&str| *other == name;
    let known = COMMANDS.iter().find(|(first, others, _)| is_name(first) || others.iter().any(is_name));
    let (.., action) = known.filter(|_| !is_of_agent(state, name))?;
    let takes_filter = matches!(
        action,
        Action::OpenModels
            | Action::OpenModes
            | Action::OpenAgents
            | Action::OpenOptions
            | Action::OpenSessions
            | Action::OpenHistory
            | Action::OpenThemes
    );
    let filter = filter.trim();
    let can_take = filter.is_empty() || (takes_filter && !filter.contains('\n'));
    can_take.then_some((*action, filter))
}

/// Whether the command is available; shows a notice otherwise.
pub fn is_possible(state: &mut State, action: Action, fx: &mut Vec<Effect>) -> bool {
    let why = obstacle::obstacle(state, action);
    if let Some(why) = why {
        say(state, why, fx);
    }
    why.is_none()
}

/// Runs a command, and sets the filter of the list it opens.
pub fn run(state: &mut State, action: Action, filter: &str, now: Instant, fx: &mut Vec<Effect>) {
    if action == Action::NewSession {
        clear(state, now, fx);
        return;
    }
    on_command(state, action, now, fx);
    if !filter.is_empty() && matches!(state.modals.last(), Some(Modal::Picker(_) | Modal::Sessions(_))) {
        on_line(state, LineEdit::Insert(filter.to_owned()), now, fx);
    }
}

/// Replaces the active session by a new one, at the end of its turn.
fn clear(state: &mut State, now: Instant, fx: &mut Vec<Effect>) {
    let key = state.active;
    if state.active_session().is_some_and(|session| session.turn.is_running()) {
        operations::submit(state, key, "/clear".to_owned(), now, fx);
    } else {
        operations::start_over(state, key, now, fx);
    }
}

fn is_of_agent(state: &State, name: &str) -> bool {
    let commands = state.active_session().map(|session| session.commands.as_slice()).unwrap_or_default();
    commands.iter().any(|command| command.name == name)
}
