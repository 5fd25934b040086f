//! The part of the screen that gets the keys.

use crate::app::State;
use crate::app::dialogs::{self, Focus};

pub(super) fn takes_keys(state: &State) -> bool {
    dialogs::focus(state).is_dialog() && dialogs::takes_input(state)
}

/// The layer that gets the keys now: the top dialog, otherwise search, transcript or composer.
pub(super) fn key_focus(state: &State) -> Focus {
    if takes_keys(state) { dialogs::focus(state) } else { dialogs::base_focus(state) }
}
