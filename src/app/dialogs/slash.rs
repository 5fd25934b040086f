//! parlor's own slash commands, for the names that the agent does not use.
//!
//! Invariants: a command of the agent always wins; a text that is no command of either is sent as it is.

use std::time::Instant;

use crate::app::{Effect, Modal, State};
use crate::model::{Action, LineEdit};

use super::{obstacle, on_command, on_line, say};

/// Name, aliases that are offered only when they are typed, and what it does.
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

/// Name and text of the commands that begin with what is typed and make sense now.
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

/// The command that a prompt consists of, with the filter for the list that it opens.
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

/// Whether the command makes sense now; says why not.
pub fn is_possible(state: &mut State, action: Action, fx: &mut Vec<Effect>) -> bool {
    let why = obstacle::obstacle(state, action);
    if let Some(why) = why {
        say(state, why, fx);
    }
    why.is_none()
}

/// Carries out a command, and filters the list that it opens.
pub fn run(state: &mut State, action: Action, filter: &str, now: Instant, fx: &mut Vec<Effect>) {
    let shown = state.active;
    on_command(state, action, now, fx);
    if action == Action::NewSession && state.active != shown {
        say(state, "Started a new session. The previous one is in the list of sessions.", fx);
    }
    if !filter.is_empty() && matches!(state.modals.last(), Some(Modal::Picker(_) | Modal::Sessions(_))) {
        on_line(state, LineEdit::Insert(filter.to_owned()), now, fx);
    }
}

fn is_of_agent(state: &State, name: &str) -> bool {
    let commands = state.active_session().map(|session| session.commands.as_slice()).unwrap_or_default();
    commands.iter().any(|command| command.name == name)
}
