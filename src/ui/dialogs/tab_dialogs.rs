//! The dialogs of the active tab, and those that are set aside while their tab is inactive.
//!
//! Invariant: a dialog of a tab receives keys only while that tab is active.

use crate::core::Cx;
use crate::core::lifecycle::operations;
use crate::core::state::tab;
use crate::model::SessionKey;
use crate::ui::{App, TabUi};

/// Makes a session the active one.
pub fn show(app: &mut App, key: SessionKey, cx: &mut Cx) {
    operations::activate(&mut app.state, key);
    follow(app, cx);
}

/// Shows the dialogs of the active tab, if another one was active before.
pub fn follow(app: &mut App, cx: &mut Cx) {
    let to = tab::front(&app.state);
    let Some(from) = app.user.shown_tab.replace(to).filter(|from| *from != to) else { return };
    set_aside(app, from, cx);
    let TabUi { layers, is_browsing } = app.background.remove(&to).unwrap_or_default();
    app.layers = layers;
    app.user.is_browsing = is_browsing;
    app.user.former_tab = Some(from);
    // An action started in one tab must not end in another.
    app.user.last_reject = None;
    app.user.completion = 0;
}

/// Saves the dialogs with their tab. Others are closed.
fn set_aside(app: &mut App, from: SessionKey, cx: &mut Cx) {
    let is_browsing = std::mem::take(&mut app.user.is_browsing);
    let (stay, closed): (Vec<_>, Vec<_>) =
        app.layers.take().into_iter().partition(|layer| layer.stays_with_tab());
    for layer in closed {
        layer.on_close(app, cx);
    }
    if app.state.sessions.contains_key(&from) {
        app.background.insert(from, TabUi { layers: stay.into_iter().collect(), is_browsing });
    }
}
