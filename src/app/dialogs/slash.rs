//! Slash commands in the composer: the list of the agent's commands, templates and commands of parlor, and running the
//! last.
//!
//! Invariant: a text that is not a command is sent unchanged.

use std::time::Instant;

use super::{Completion, CompletionKind, obstacle, on_command, on_line, say};
use crate::app::lifecycle::operations;
use crate::app::state::commands::{self, OWN_COMMANDS, OWN_PREFIX};
use crate::app::state::fuzzy::{self, Texts};
use crate::app::{Effect, Modal, Session, State};
use crate::model::{Action, LineEdit, TemplateSource};

/// The most commands of the agent to offer. Some agents have thousands; typing more letters finds the others.
const MOST_OF_AGENT: usize = 200;

/// The commands and templates that match the typed name, best first; the agent's before others.
pub fn completions(state: &State, session: &Session, typed: &str) -> Vec<Completion> {
    let all = offers(state, session, typed);
    let texts = all.iter().map(|offer| Texts {
        label: &offer.name,
        // Letters of a name find a command of parlor, not those of its description.
        detail: if offer.kind == CompletionKind::Agent { &offer.description } else { "" },
        synonyms: "",
    });
    let mut places = fuzzy::rank_texts(typed, texts);
    let is_exact = |place: &usize| all.get(*place).is_some_and(|offer| offer.name == typed);
    places.sort_by_key(|place| !is_exact(place));
    let mut of_agent = 0;
    places.retain(|place| {
        let is_of_agent = all.get(*place).is_some_and(|offer| offer.kind == CompletionKind::Agent);
        of_agent += usize::from(is_of_agent);
        !is_of_agent || of_agent <= MOST_OF_AGENT
    });
    let mut found: Vec<Completion> = places.into_iter().filter_map(|place| all.get(place)).cloned().collect();
    // Second, so that it is visible but Enter does not open it by accident.
    found.splice(found.len().min(1)..found.len().min(1), review(session, typed));
    found
}

/// The command or template whose arguments are being typed, if it has a hint for them.
pub fn argument_hint(state: &State) -> Option<Completion> {
    let session = state.active_session()?;
    let (name, _) =
        commands::split(&session.draft).filter(|_| session.draft.contains(char::is_whitespace))?;
    let all = offers(state, session, name);
    let prefixed = name.split_once(':');
    let is_it = |offer: &Completion| {
        offer.name == name
            || prefixed
                .is_some_and(|(prefix, rest)| offer.name == rest && offer.kind.prefix() == Some(prefix))
    };
    all.into_iter().find(is_it).filter(|offer| offer.hint.is_some())
}

/// All commands and templates: the agent's, templates, then those of parlor. A name that refers to another one has its
/// prefix.
fn offers(state: &State, session: &Session, typed: &str) -> Vec<Completion> {
    let mut all: Vec<Completion> = session
        .commands
        .iter()
        .map(|command| Completion {
            name: command.name.clone(),
            description: command.description.clone(),
            hint: command.hint.clone(),
            kind: CompletionKind::Agent,
        })
        .collect();
    for template in &session.templates.offered {
        let is_of_user = |name: &str| session.templates.has(name, Some(TemplateSource::User));
        let is_taken = commands::is_command(state, session, &template.name)
            || (template.source == TemplateSource::Project && is_of_user(&template.name));
        let prefix = template.source.prefix();
        all.push(Completion {
            name: if is_taken { format!("{prefix}:{}", template.name) } else { template.name.clone() },
            description: format!("{prefix}: {}", template.description),
            hint: template.hint.clone(),
            kind: CompletionKind::Template(template.source),
        });
    }
    if state.setup.is_plain {
        return all;
    }
    for command in OWN_COMMANDS {
        let alias = command.aliases.iter().copied().find(|alias| {
            alias.starts_with(typed)
                && !commands::is_of_agent(session, alias)
                && !command.name.starts_with(typed)
        });
        let alias = alias.filter(|_| !typed.is_empty());
        let text = state.setup.palette.iter().find(|text| text.action == command.action);
        let Some(text) = text.filter(|_| obstacle::obstacle(state, command.action).is_none()) else {
            continue;
        };
        let name = alias.unwrap_or(command.name);
        let is_taken = commands::is_of_agent(session, name);
        all.push(Completion {
            name: if is_taken { format!("{OWN_PREFIX}:{name}") } else { name.to_owned() },
            description: format!("{OWN_PREFIX}: {}", text.text),
            hint: command.hint.map(str::to_owned),
            kind: CompletionKind::Own,
        });
    }
    all
}

/// The row that opens the review of new templates of the project, unless the typed name excludes them.
fn review(session: &Session, typed: &str) -> Option<Completion> {
    let unreviewed = &session.templates.unreviewed;
    let prefix = TemplateSource::Project.prefix();
    let names: Vec<String> =
        unreviewed.iter().map(|template| format!("{prefix}:{}", template.name)).collect();
    let is_meant = !fuzzy::rank(typed, names.iter().map(|name| (name.as_str(), ""))).is_empty();
    let description = match unreviewed.len() {
        1 => "project: 1 new or changed template".to_owned(),
        count => format!("project: {count} new or changed templates"),
    };
    is_meant.then(|| Completion {
        name: "Review templates".to_owned(),
        description,
        hint: None,
        kind: CompletionKind::Review,
    })
}

/// The command of parlor that a prompt consists of, and the filter of the list it opens.
pub fn command<'a>(state: &State, prompt: &'a str) -> Option<(Action, &'a str)> {
    if state.setup.is_plain {
        return None;
    }
    let (name, filter) = commands::split(prompt.trim_end()).filter(|_| !prompt.trim_end().contains('\n'))?;
    let command = commands::own_of(state.active_session()?, name)?;
    let filter = filter.trim();
    let can_take = filter.is_empty() || command.hint.is_some();
    can_take.then_some((command.action, filter))
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
        // The name with its prefix is that of parlor, whatever the agent has by then.
        operations::submit(state, key, format!("/{OWN_PREFIX}:clear"), now, fx);
    } else {
        operations::start_over(state, key, now, fx);
    }
}
