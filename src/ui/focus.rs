//! The part of the screen that gets the keys.

use crate::config::keymap::Context;
use crate::ui::App;
use crate::ui::dialogs;

pub(super) fn takes_keys(app: &App) -> bool {
    dialogs::has_dialog(app) && dialogs::takes_input(app)
}

/// The context of what gets the keys now: the top dialog, otherwise search, transcript or composer.
pub(super) fn key_focus(app: &App) -> Context {
    if takes_keys(app) { dialogs::focus(app) } else { dialogs::base_focus(app) }
}
