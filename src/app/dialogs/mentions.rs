//! Mentions of files in the draft: the list of files, and inserting one.

use std::ops::Range;

use super::Completion;
use crate::app::state::fuzzy;
use crate::app::{Effect, MentionList, Session, State, ViewCommand};
use crate::model::{FileQuery, FoundFile, SessionKey, mention_text, mentions};

/// Number of earlier prompts that are searched for mentions.
const RECENT_PROMPTS: usize = 50;

/// A mention is being typed: its bytes in the draft, and the path so far; `None` if none is.
pub fn on_mention(state: &mut State, typed: Option<(Range<usize>, String)>, fx: &mut Vec<Effect>) {
    let former = state.user.mention.take();
    let Some((range, query)) = typed else { return };
    let Some(session) = state.active_session() else { return };
    // Files of another machine cannot be listed.
    if session.place.far.is_some() || session.parent.is_some() {
        return;
    }
    let (found, found_for) = former.map(|list| (list.found, list.found_for)).unwrap_or_default();
    let files = FileQuery {
        session: session.key,
        folder: session.place.cwd.clone(),
        query: query.clone(),
        recent: recent(session),
    };
    fx.push(Effect::FindFiles(files));
    state.user.mention = Some(MentionList { range, query, found, found_for });
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

/// The files that match the mention, best first.
pub fn completions(state: &State) -> Option<Vec<Completion>> {
    let list = state.user.mention.as_ref()?;
    let offer = |file: &FoundFile| Completion {
        name: file.path.clone(),
        description: String::new(),
        hint: None,
        is_file: true,
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
    let Some(list) = state.user.mention.take() else { return };
    let Some(session) = state.sessions.get_mut(&state.active) else { return };
    let is_folder = path.ends_with('/');
    let mut text = mention_text(path);
    if is_folder && text.ends_with('"') {
        text.pop();
    }
    let rest = session.draft.get(list.range.end..).unwrap_or_default();
    if !is_folder && !rest.starts_with(char::is_whitespace) {
        text.push(' ');
    }
    let mut draft = session.draft.clone();
    if draft.get(list.range.clone()).is_none() {
        return;
    }
    draft.replace_range(list.range.clone(), &text);
    session.draft = draft;
    fx.push(Effect::View(ViewCommand::ReplaceInDraft(list.range.clone(), text.clone())));
    if is_folder {
        on_mention(state, Some((list.range.start..list.range.start + text.len(), path.to_owned())), fx);
    }
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
