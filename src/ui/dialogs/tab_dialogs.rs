//! The dialogs of the active tab, and those that are set aside while their tab is inactive.
//!
//! Invariant: a dialog of a tab receives keys only while that tab is active.

use crate::app::lifecycle::operations;
use crate::app::state::tab;
use crate::app::{Cx, Effect};
use crate::model::SessionKey;
use crate::ui::{App, Modal, PickerKind, TabUi};

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
    let TabUi { modals, is_browsing } = app.background.remove(&to).unwrap_or_default();
    app.modals = modals;
    app.user.is_browsing = is_browsing;
    app.user.former_tab = Some(from);
    // An action started in one tab must not end in another.
    app.user.last_reject = None;
    app.user.completion = 0;
}

/// Saves the dialogs with their tab. Others are closed.
fn set_aside(app: &mut App, from: SessionKey, cx: &mut Cx) {
    let mut modals = std::mem::take(&mut app.modals);
    let is_browsing = std::mem::take(&mut app.user.is_browsing);
    modals.retain(|modal| match modal {
        Modal::Picker(picker) => {
            if picker.kind == PickerKind::Theme {
                cx.effects.push(Effect::SetTheme(app.state.setup.theme_in_use().to_owned()));
            }
            matches!(picker.kind, PickerKind::Agent | PickerKind::SignIn)
        }
        // A question that is still open is shown again by its tab.
        Modal::Help { .. }
        | Modal::Attention(_)
        | Modal::Sessions(_)
        | Modal::Capture(_)
        | Modal::Question(..) => false,
        Modal::Queue { .. }
        | Modal::Log { .. }
        | Modal::Connection(_)
        | Modal::Inspect(_)
        | Modal::Changes(_)
        | Modal::Line(_) => true,
    });
    if app.state.sessions.contains_key(&from) {
        app.background.insert(from, TabUi { modals, is_browsing });
    }
}
