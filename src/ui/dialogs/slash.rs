//! Slash commands in the composer: the list of the agent's commands, templates and commands of parlor, and running the
//! last.
//!
//! Invariant: a text that is not a command is sent unchanged.

use std::borrow::Cow;

use super::completion::{Completion, CompletionKind};
use super::notice::notify_obstacle;
use super::obstacle;
use crate::core::lifecycle::operations;
use crate::core::state::commands::{self, OWN_COMMANDS, OWN_PREFIX};
use crate::core::state::fuzzy::{self, Texts};
use crate::core::{Cx, Session, State, UiRequest};
use crate::model::{Action, SlashCommand, TemplateSource};

/// The most commands of the agent to offer. Some agents have thousands; typing more letters finds the others.
const MAX_OF_AGENT: usize = 200;

/// A command or template, before it is known whether it is shown.
struct Offer<'a> {
    name: Cow<'a, str>,
    about: &'a str,
    hint: Option<&'a str>,
    kind: CompletionKind,
}

impl Offer<'_> {
    fn completion(&self) -> Completion {
        let about = self.about.to_owned();
        Completion {
            name: self.name.clone().into_owned(),
            description: self.kind.prefix().map_or(about, |prefix| format!("{prefix}: {}", self.about)),
            hint: self.hint.map(str::to_owned),
            kind: self.kind,
            target: String::new(),
        }
    }
}

/// The commands and templates that match the typed name, best first; the agent's before others.
pub fn completions(state: &State, session: &Session, typed: &str) -> Vec<Completion> {
    let all = offers(state, session, typed);
    let texts = all.iter().map(|offer| Texts {
        label: &offer.name,
        // Letters of a name find a command of parlor, not those of its description.
        detail: if offer.kind == CompletionKind::Agent { offer.about } else { "" },
        synonyms: "",
    });
    let mut positions = fuzzy::rank_texts(typed, texts);
    let is_exact = |position: &usize| all.get(*position).is_some_and(|offer| offer.name == typed);
    positions.sort_by_key(|position| !is_exact(position));
    let mut of_agent = 0;
    positions.retain(|position| {
        let is_of_agent = all.get(*position).is_some_and(|offer| offer.kind == CompletionKind::Agent);
        of_agent += usize::from(is_of_agent);
        !is_of_agent || of_agent <= MAX_OF_AGENT
    });
    let mut found: Vec<Completion> =
        positions.into_iter().filter_map(|position| all.get(position)).map(Offer::completion).collect();
    if let Some(review) = review(session, typed) {
        // Second, so that it is visible but Enter does not open it by accident.
        found.insert(found.len().min(1), review);
    }
    found
}

/// The command or template whose arguments are being typed, if it has a hint for them.
pub fn argument_hint(state: &State) -> Option<Completion> {
    let session = state.active_session()?;
    let (name, _) =
        commands::split(&session.draft).filter(|_| session.draft.contains(char::is_whitespace))?;
    let prefixed = name.split_once(':');
    let is_it = |offer: &Offer<'_>| {
        offer.name == name
            || prefixed
                .is_some_and(|(prefix, rest)| offer.name == rest && offer.kind.prefix() == Some(prefix))
    };
    let found = offers(state, session, name).into_iter().find(is_it)?;
    found.hint.is_some().then(|| found.completion())
}

/// All commands and templates: the agent's, templates, then those of parlor. A name that refers to another one has its
/// prefix.
fn offers<'a>(state: &'a State, session: &'a Session, typed: &str) -> Vec<Offer<'a>> {
    let is_reached =
        |command: &&SlashCommand| state.setup.is_plain || commands::is_of_agent(session, &command.name);
    let of_agent = session.commands.iter().filter(is_reached).map(|command| Offer {
        name: Cow::Borrowed(&command.name),
        about: &command.description,
        hint: command.hint.as_deref(),
        kind: CompletionKind::Agent,
    });
    let mut all: Vec<Offer<'_>> = of_agent.collect();
    let named = |name: &'a str, is_taken: bool, prefix: &str| {
        if is_taken { Cow::Owned(format!("{prefix}:{name}")) } else { Cow::Borrowed(name) }
    };
    for template in &session.templates.offered {
        let is_of_user = || session.templates.has(&template.name, Some(TemplateSource::User));
        let is_taken = commands::is_command(state, session, &template.name)
            || (template.source == TemplateSource::Project && is_of_user());
        all.push(Offer {
            name: named(&template.name, is_taken, template.source.prefix()),
            about: &template.description,
            hint: template.hint.as_deref(),
            kind: CompletionKind::Template(template.source),
        });
    }
    if state.setup.is_plain {
        return all;
    }
    for command in OWN_COMMANDS {
        let is_typed = |alias: &&str| {
            let is_alias = !typed.is_empty() && alias.starts_with(typed) && !command.name.starts_with(typed);
            is_alias && !commands::is_of_agent(session, alias)
        };
        let name = command.aliases.iter().copied().find(is_typed).unwrap_or(command.name);
        let text = state.setup.palette.iter().find(|text| text.action == command.action);
        let why_not = obstacle::obstacle(state, command.action);
        // A whole name is listed with the reason, so that no other command is offered in its place.
        if let Some(text) = text.filter(|_| why_not.is_none() || name == typed) {
            all.push(Offer {
                name: named(name, commands::is_of_agent(session, name), OWN_PREFIX),
                about: why_not.unwrap_or(&text.text),
                hint: command.hint,
                kind: CompletionKind::Own,
            });
        }
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
    is_meant.then(|| Completion::new("Review templates".to_owned(), description, CompletionKind::Review))
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
    let filter = if filter.is_empty() { command.filter } else { filter };
    can_take.then_some((command.action, filter))
}

/// Whether the command is available; shows a notice otherwise.
pub fn is_possible(state: &mut State, action: Action, cx: &mut Cx) -> bool {
    let why = obstacle::obstacle(state, action);
    if let Some(why) = why {
        notify_obstacle(state, action, why, cx);
    }
    why.is_none()
}

/// Runs a command, and sets the filter of the list it opens.
pub fn run(state: &mut State, action: Action, filter: &str, cx: &mut Cx) {
    if action == Action::NewSession {
        clear(state, cx);
        return;
    }
    cx.requests.push(UiRequest::Command(action, filter.to_owned()));
}

/// Replaces the active session by a new one, at the end of its turn.
fn clear(state: &mut State, cx: &mut Cx) {
    let key = state.active;
    if state.active_session().is_some_and(|session| session.turn.is_running()) {
        // The name with its prefix is that of parlor, whatever the agent has by then.
        operations::submit(state, key, format!("/{OWN_PREFIX}:clear"), cx);
    } else {
        operations::start_over(state, key, cx);
    }
}
