//! Renaming a session.

use crate::core::lifecycle::operations;
use crate::core::{ConnPhase, Cx, Effect, UiRequest};
use crate::model::{SessionKey, StoreJob};
use crate::ui::App;

use super::line_dialog::{LineDialog, Purpose};

const TITLE: &str = "Rename session";
/// The help for a title while the agent cannot be updated.
pub(super) const RENAMED_LATER: &str =
    "Renames the session in parlor. The agent is updated when the session is opened.";

/// The session that gets the title.
#[derive(Debug)]
enum Titled {
    Open(SessionKey),
    /// One that is not open, by its id in the store.
    Saved(String),
}

impl Purpose for Titled {
    fn verb(&self) -> &'static str {
        "rename"
    }

    fn accept(&self, text: &str, app: &mut App, cx: &mut Cx) -> Result<(), String> {
        if text.is_empty() {
            return Err("Type a value.".to_owned());
        }
        let title = text.to_owned();
        match self {
            Self::Open(key) => {
                operations::set_title(&mut app.state, *key, title, cx);
                cx.requests.push(UiRequest::SessionsChanged);
            }
            Self::Saved(uid) => cx.effects.push(Effect::Store(StoreJob::Rename { uid: uid.clone(), title })),
        }
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
    app.layers.push(LineDialog::new(TITLE, help, &title, Titled::Open(key)));
}

/// Asks for the title of a session that is not open; `help` says whether its agent is updated.
pub fn open_saved(app: &mut App, uid: &str, title: &str, help: String) {
    app.layers.push(LineDialog::new(TITLE, help, title, Titled::Saved(uid.to_owned())));
}
