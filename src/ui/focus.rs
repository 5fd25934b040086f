//! The part of the screen that gets the keys.

use std::time::Instant;

use crate::config::keymap::Context;
use crate::core::MouseOwner;
use crate::ui::App;
use crate::ui::dialogs;
use crate::ui::dialogs::Layer;

use super::frame_context::KeyFacts;

pub(super) fn takes_keys(app: &App) -> bool {
    dialogs::has_dialog(app) && dialogs::takes_input(app)
}

/// The context of what gets the keys now: the top dialog, otherwise search, transcript or composer.
pub(super) fn key_focus(app: &App) -> Context {
    if takes_keys(app) { dialogs::focus(app) } else { dialogs::base_focus(app) }
}

pub(super) fn key_facts(app: &App, now: Instant) -> KeyFacts {
    let rejected = dialogs::rejected(app).map(|(_, open, _)| open.request_id);
    KeyFacts {
        context: key_focus(app),
        base: dialogs::base_focus(app),
        is_in_dialog: takes_keys(app),
        has_dialog: !app.layers.is_empty(),
        below: app.layers.below().map(Layer::context),
        is_browsing: app.user.is_browsing,
        is_in_inbox: dialogs::is_in_inbox(app),
        request: rejected.or(app.request_view.request_id),
        is_guarded: app.guard.question().is_some(),
        is_beside_draft: dialogs::is_beside_draft(app),
        is_closed: dialogs::is_closed(app),
        takes_answers: dialogs::takes_answers(app, now),
        waits_for_end: dialogs::waits_for_end(app, now),
        is_full_screen: dialogs::is_full_screen(app),
        is_mouse_off: app.mouse == MouseOwner::Terminal && app.state.setup.mouse == MouseOwner::Parlor,
    }
}
