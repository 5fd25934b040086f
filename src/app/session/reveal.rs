//! Brings an item of the transcript into view.

use crate::model::ItemId;

use crate::app::{Effect, Session, ViewCommand};

/// Selects an item and scrolls to it. A filter that hides the item is cleared.
pub fn show_item(session: &mut Session, id: ItemId, fx: &mut Vec<Effect>) {
    if session.transcript.get(id).is_some() {
        session.only =
            session.only.filter(|only| session.transcript.get(id).is_some_and(|item| only.shows(item)));
        session.selected = Some(id);
        fx.push(Effect::View(ViewCommand::ShowSelectedAtTop));
    }
}
