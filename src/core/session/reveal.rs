//! Brings an item of the transcript into view.

use crate::model::ItemId;

use crate::core::state::search::Search;
use crate::core::{Cx, Effect, Session, ViewCommand};

/// Selects an item and scrolls to it. A filter that hides the item is cleared.
pub fn show_item(session: &mut Session, id: ItemId, cx: &mut Cx) {
    if session.transcript.get(id).is_some() {
        session.only =
            session.only.filter(|only| session.transcript.get(id).is_some_and(|item| only.shows(item)));
        session.selected = Some(id);
        cx.effects.push(Effect::View(ViewCommand::ShowSelectedAtTop));
    }
}

/// Shows an item that a search over all sessions found, and searches the transcript for the matches of its snippet,
/// which are between `\u{2}` and `\u{3}`.
pub fn show_found(session: &mut Session, id: ItemId, snippet: &str, cx: &mut Cx) {
    show_item(session, id, cx);
    let marked = snippet.split('\u{2}').skip(1).filter_map(|part| part.split_once('\u{3}'));
    let mut texts: Vec<String> = marked.map(|(text, _)| text.to_lowercase()).collect();
    texts.sort();
    texts.dedup();
    if texts.is_empty() || session.transcript.get(id).is_none() {
        return;
    }
    session.only = None;
    session.transcript.watch(true);
    session.search = Some(Box::new(Search::for_texts(&texts, id)));
}
