//! Mentions in the draft, and paths as arguments of slash commands: the list of files, outputs and changes, and
//! inserting one.

use std::ops::Range;

use super::{Completion, CompletionKind};
use crate::app::state::fuzzy;
use crate::app::state::session::KnownOutput;
use crate::app::{Effect, MentionList, Session, State, ViewCommand};
use crate::model::{
    CHANGES, FileQuery, FoundFile, LAST_OUTPUT, SessionKey, argument_text, mention_text, mentions,
    output_name, output_number, typed_argument, typed_mention,
};

/// Number of files that are offered before anything else while the query is short.
const FILES_BEFORE_OTHERS: usize = 3;

/// Maximum number of outputs that are offered by number.
const MOST_OUTPUTS: usize = 20;

/// Number of earlier prompts that are searched for mentions.
const RECENT_PROMPTS: usize = 50;

/// A mention is being typed: its bytes in the draft, and the path so far; `None` if none is.
pub fn on_mention(state: &mut State, typed: Option<(Range<usize>, String)>, fx: &mut Vec<Effect>) {
    look_up(state, typed, false, fx);
}

/// An argument of a slash command is to be completed as a path: its bytes in the draft, and the path so far.
pub fn on_argument(state: &mut State, typed: (Range<usize>, String), fx: &mut Vec<Effect>) {
    look_up(state, Some(typed), true, fx);
}

fn look_up(
    state: &mut State,
    typed: Option<(Range<usize>, String)>,
    is_argument: bool,
    fx: &mut Vec<Effect>,
) {
    let former = state.user.mention.take();
    let Some((range, query)) = typed else { return };
    let Some(session) = state.active_session() else { return };
    if session.parent.is_some() {
        return;
    }
    let list = former.filter(|list| list.session == session.key && list.is_argument == is_argument);
    let list = list.unwrap_or_else(|| MentionList {
        is_argument,
        session: session.key,
        recent: recent(session),
        ..MentionList::default()
    });
    // Files of another machine cannot be listed.
    if session.workspace.far.is_none() {
        fx.push(Effect::FindFiles(FileQuery {
            session: session.key,
            folder: session.workspace.cwd.clone(),
            query: query.clone(),
            recent: list.recent.clone(),
        }));
    }
    state.user.mention = Some(MentionList { range, query, ..list });
    state.user.completion = 0;
}

/// Files were found for the mention.
pub fn on_found(state: &mut State, session: SessionKey, query: String, files: Vec<FoundFile>) {
    if state.active == session
        && let Some(list) = &mut state.user.mention
        && list.query == query
    {
        (list.found, list.found_for) = (files, query);
    }
}

/// The mention that is being typed, if the draft still has it.
pub fn current(state: &State) -> Option<&MentionList> {
    let session = state.active_session()?;
    let is_current = |list: &&MentionList| {
        let typed = if list.is_argument { typed_argument } else { typed_mention };
        list.session == session.key
            && typed(&session.draft, list.range.end)
                .is_some_and(|(range, path)| range == list.range && path == list.query)
    };
    state.user.mention.as_ref().filter(is_current)
}

/// The files that match the mention, best first, with the outputs and changes that do.
pub fn completions(state: &State) -> Option<Vec<Completion>> {
    let list = current(state)?;
    let session = state.active_session()?;
    let offer = |file: &FoundFile| {
        let name = &file.path;
        let name = if is_reserved(name) && !list.is_argument { format!("./{name}") } else { name.clone() };
        Completion { name, description: String::new(), hint: None, kind: CompletionKind::File }
    };
    let mut offered: Vec<Completion> = if list.found_for == list.query {
        list.found.iter().map(offer).collect()
    } else {
        // Until the answer is there, the former files are filtered.
        let rows = list.found.iter().map(|file| (file.path.as_str(), ""));
        let positions = fuzzy::rank(&list.query, rows);
        positions.into_iter().filter_map(|position| list.found.get(position)).map(offer).collect()
    };
    if !list.is_argument {
        // Short queries are for files.
        let at = if list.query.len() < 2 { offered.len().min(FILES_BEFORE_OTHERS) } else { 0 };
        offered.splice(at..at, others(session, &list.query));
    }
    Some(offered)
}

/// What can be mentioned besides files: outputs of commands, and the changes since the last commit.
fn others(session: &Session, query: &str) -> Vec<Completion> {
    let output = |name: String, known: &KnownOutput<'_>| {
        let state = if known.exit.is_none() { "running, " } else { "" };
        let size = known.output.len().div_ceil(1024);
        let description = format!("output of {} ({state}{size} KiB)", known.command);
        Completion { name, description, hint: None, kind: CompletionKind::Output }
    };
    let last = session.last_output().map(|known| output(LAST_OUTPUT.to_owned(), &known));
    let changes = session.git.as_ref().filter(|_| session.workspace.far.is_none()).map(|_| Completion {
        name: CHANGES.to_owned(),
        description: "changes since the last commit".to_owned(),
        hint: None,
        kind: CompletionKind::Output,
    });
    let numbered = query.starts_with('!').then(|| {
        let mut numbers: Vec<u32> = session.terminals.values().filter_map(|view| view.number).collect();
        numbers.sort_unstable();
        let numbers = numbers.into_iter().rev().take(MOST_OUTPUTS);
        numbers.filter_map(|number| Some(output(output_name(number), &session.output_of(number)?)))
    });
    let all = last.into_iter().chain(changes).chain(numbered.into_iter().flatten());
    all.filter(|offer| offer.name.starts_with(query)).collect()
}

/// Replaces the typed mention by the chosen file. A folder stays open for its files.
pub fn insert(state: &mut State, path: &str, fx: &mut Vec<Effect>) {
    let Some(list) = current(state) else { return };
    let (range, is_argument) = (list.range.clone(), list.is_argument);
    let Some(session) = state.sessions.get_mut(&state.active) else { return };
    let is_folder = path.ends_with('/');
    let mut text = if is_argument { argument_text(path) } else { mention_text(path) };
    if is_folder && text.ends_with('"') {
        text.pop();
    }
    let rest = session.draft.get(range.end..).unwrap_or_default();
    if !is_folder && !rest.starts_with(char::is_whitespace) {
        text.push(' ');
    }
    session.draft.replace_range(range.clone(), &text);
    fx.push(Effect::View(ViewCommand::ReplaceInDraft(range.clone(), text.clone())));
    let typed = is_folder.then(|| (range.start..range.start + text.len(), path.to_owned()));
    look_up(state, typed, is_argument, fx);
}

/// Whether a mention of this path is not that of a file.
fn is_reserved(path: &str) -> bool {
    path == LAST_OUTPUT || path == CHANGES || output_number(path).is_some()
}

/// The paths that earlier prompts mention, latest first.
fn recent(session: &Session) -> Vec<String> {
    let mut paths: Vec<String> = Vec::new();
    for text in session.history.iter().rev().take(RECENT_PROMPTS) {
        for (_, mention) in mentions(text) {
            if !paths.contains(&mention.path) && !is_reserved(&mention.path) {
                paths.push(mention.path);
            }
        }
    }
    paths
}
