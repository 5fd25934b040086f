//! Opening what a text points to: a file in the editor, a page in the browser.
//!
//! A file opens at once, because the user asked for it and an editor changes nothing. A page is shown in full
//! first: what a link says and where it leads are two things.

use crate::app::{Choice, ChoiceDialog, ChoiceOutcome, Effect, Modal, State};
use crate::model::{Location, Target};

use super::{inspect_url, say};

/// The user wants to open this.
pub fn on_open(state: &mut State, target: Target, fx: &mut Vec<Effect>) {
    match target {
        Target::File(place) => open_file(state, place, fx),
        Target::Url(url) => ask_for_page(state, url, fx),
    }
}

/// A relative path counts from the session's folder. A file of another machine is opened by the editor that is
/// configured for it, and by no other: a file of the same name here is not the one that is meant.
fn open_file(state: &mut State, place: Location, fx: &mut Vec<Effect>) {
    let Some(session) = state.active_session() else { return };
    let editor = state.conn_of(session.key).and_then(|conn| conn.spec.editor.clone());
    if let (Some(far), None) = (&session.place.far, &editor) {
        let text = format!(
            "This file is on {}. Set `editor` in the agent's section of config.toml to open remote files.",
            far.host
        );
        say(state, text, fx);
        return;
    }
    let place = Location { path: session.place.folder().join(place.path), line: place.line };
    fx.push(Effect::OpenFile { place, folder: session.place.cwd.clone(), editor });
}

fn ask_for_page(state: &mut State, url: String, fx: &mut Vec<Effect>) {
    let mut body = vec![url.clone()];
    if !url.to_ascii_lowercase().starts_with("mailto:") {
        let facts = inspect_url(&url);
        if !facts.can_open {
            say(state, facts.warnings.into_iter().next().unwrap_or_default(), fx);
            return;
        }
        body.extend(facts.warnings);
    }
    state.modals.push(Modal::Choice(ChoiceDialog {
        title: "Open link?".to_owned(),
        body,
        choices: vec![
            Choice { label: "Open in browser".to_owned(), outcome: ChoiceOutcome::OpenUrl(url) },
            Choice { label: "No".to_owned(), outcome: ChoiceOutcome::Close },
        ],
        selected: 0,
        opened_by_itself: None,
    }));
}
