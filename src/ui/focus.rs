//! The part of the screen that gets the keys.

use crate::ui::App;
use crate::ui::dialogs::{self, Focus};

pub(super) fn takes_keys(app: &App) -> bool {
    dialogs::focus(app).is_dialog() && dialogs::takes_input(app)
}

/// The layer that gets the keys now: the top dialog, otherwise search, transcript or composer.
pub(super) fn key_focus(app: &App) -> Focus {
    if takes_keys(app) { dialogs::focus(app) } else { dialogs::base_focus(app) }
}
