//! Mentions of files in the draft, and paths as arguments of slash commands: the list of files, and inserting one.

use std::ops::Range;

use super::{Completion, CompletionKind};
use crate::app::state::fuzzy;
use crate::app::{Effect, MentionList, Session, State, ViewCommand};
use crate::model::{
    FileQuery, FoundFile, SessionKey, argument_text, mention_text, mentions, typed_argument, typed_mention,
};

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
    // Files of another machine cannot be listed.
    if session.place.far.is_some() || session.parent.is_some() {
        return;
    }
    let list = former.filter(|list| list.session == session.key && list.is_argument == is_argument);
    let list = list.unwrap_or_else(|| MentionList {
        is_argument,
        session: session.key,
        recent: recent(session),
        ..MentionList::default()
    });
    fx.push(Effect::FindFiles(FileQuery {
        session: session.key,
        folder: session.place.cwd.clone(),
        query: query.clone(),
        recent: list.recent.clone(),
    }));
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

/// The files that match the mention, best first.
pub fn completions(state: &State) -> Option<Vec<Completion>> {
    let list = current(state)?;
    let offer = |file: &FoundFile| Completion {
        name: file.path.clone(),
        description: String::new(),
        hint: None,
        kind: CompletionKind::File,
    };
    if list.found_for == list.query {
        return Some(list.found.iter().map(offer).collect());
    }
    // Until the answer is there, the former files are filtered.
    let rows = list.found.iter().map(|file| (file.path.as_str(), ""));
    let places = fuzzy::rank(&list.query, rows);
    Some(places.into_iter().filter_map(|place| list.found.get(place)).map(offer).collect())
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

/// The paths that earlier prompts mention, latest first.
fn recent(session: &Session) -> Vec<String> {
    let mut paths: Vec<String> = Vec::new();
    for text in session.history.iter().rev().take(RECENT_PROMPTS) {
        for (_, mention) in mentions(text) {
            if !paths.contains(&mention.path) {
                paths.push(mention.path);
            }
        }
    }
    paths
}
