//! Renaming a session.

use crate::core::lifecycle::operations;
use crate::core::{ConnPhase, Cx, Effect, UiRequest};
use crate::model::{SessionKey, StoreJob};
use crate::ui::App;

use super::line_dialog::{LineDialog, Purpose};

const TITLE: &str = "Rename session";
const VERB: &str = "rename";
/// Why an empty title is not accepted.
const EMPTY: &str = "Type a value.";
/// The help for a title while the agent cannot be updated.
pub(super) const RENAMED_LATER: &str =
    "Renames the session in parlor. The agent is updated when the session is opened.";

/// The title of an open session.
#[derive(Debug)]
struct OpenTitle(SessionKey);

impl Purpose for OpenTitle {
    fn verb(&self) -> &'static str {
        VERB
    }

    fn accept(&self, text: &str, app: &mut App, cx: &mut Cx) -> Result<(), String> {
        if text.is_empty() {
            return Err(EMPTY.to_owned());
        }
        operations::set_title(&mut app.state, self.0, text.to_owned(), cx);
        cx.requests.push(UiRequest::SessionsChanged);
        Ok(())
    }
}

/// The title of a stored session that is not open, by its id in the store.
#[derive(Debug)]
struct SavedTitle(String);

impl Purpose for SavedTitle {
    fn verb(&self) -> &'static str {
        VERB
    }

    fn accept(&self, text: &str, _app: &mut App, cx: &mut Cx) -> Result<(), String> {
        if text.is_empty() {
            return Err(EMPTY.to_owned());
        }
        let job = StoreJob::Rename { uid: self.0.clone(), title: text.to_owned() };
        cx.effects.push(Effect::Store(job));
        Ok(())
    }
}

pub fn open(app: &mut App, key: SessionKey) {
    let title = app.state.sessions.get(&key).and_then(|session| session.title.clone()).unwrap_or_default();
    let help = match app.state.conn_of(key).filter(|conn| conn.phase == ConnPhase::Ready) {
        Some(conn) if conn.capabilities().can_set_title => "Renames the session in parlor and in the agent.",
        Some(_) => "Renames the session in parlor only. The agent does not support titles.",
        None => RENAMED_LATER,
    };
    app.layers.push(LineDialog::new(TITLE, help, &title, OpenTitle(key)));
}

/// Asks for the title of a session that is not open; `help` says whether its agent is updated.
pub fn open_saved(app: &mut App, uid: &str, title: &str, help: String) {
    app.layers.push(LineDialog::new(TITLE, help, title, SavedTitle(uid.to_owned())));
}
