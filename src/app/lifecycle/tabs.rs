//! Tabs: every session that is open here and works for nobody else, in the order in which they were opened, or to
//! which the user moved them.
//!
//! Duty: opening a tab, putting one in front, and keeping the dialogs of the others for when they are shown again.
//! Not its duty: closing (`close`), processes (`conn`), what the user chooses from (`dialogs::tabs`).
//! Two tabs with the same agent in the same folder share its process: agents serve several sessions, and some ruin
//! what they keep when two of them work in one folder. In another folder an agent gets a process of its own, since
//! many read settings where they are started.
//! Invariants: a dialog of a tab takes keys only while that tab is in front; what a session is shown with for the
//! first time is its own.

use crate::app::TabUi;
use crate::app::Unseen;
use crate::app::UnseenKind;
use std::time::Instant;

use crate::model::{ConnId, SessionKey};

use super::call;
use crate::app::state::{lookup, tab};
use crate::app::{ChoiceOutcome, Effect, Modal, PickerKind, State};

/// Remembers what happened in a tab that is not in front. What is not well hides what is, and the first of several
/// successes counts: since then the user may have a look.
pub(in crate::app) fn tell_unseen(state: &mut State, key: SessionKey, what: UnseenKind, now: Instant) {
    let root = lookup::root_of(state, key);
    if root == tab::front(state) {
        return;
    }
    if let Some(session) = state.sessions.get_mut(&root) {
        match (&session.unseen, &what) {
            (Some(_), UnseenKind::Finished) => {}
            _ => session.unseen = Some(Unseen { what, since: now }),
        }
    }
}

/// What a tab is called in a sentence of another one: `Tab 2`.
pub(in crate::app) fn spoken_name(state: &State, key: SessionKey) -> String {
    let root = lookup::root_of(state, key);
    let place = tab::tabs(state).position(|session| session.key == root).unwrap_or(0);
    format!("Tab {}", place + 1)
}

/// A short message about a session: those of tabs behind the front say which one they mean.
pub(in crate::app) fn flash(state: &mut State, key: SessionKey, text: &str, fx: &mut Vec<Effect>) {
    if lookup::root_of(state, key) == tab::front(state) {
        call::flash(state, text, fx);
    } else {
        let name = spoken_name(state, key);
        call::flash(state, format!("{name}: {text}"), fx);
    }
}

/// Calls the user, who looks at another tab or at another window: one line, and what was configured for it.
pub(in crate::app) fn announce(state: &mut State, key: SessionKey, text: &str, fx: &mut Vec<Effect>) {
    let is_front = lookup::root_of(state, key) == tab::front(state);
    if is_front && state.has_focus {
        return;
    }
    let line = if is_front { text.to_owned() } else { format!("{}: {text}", spoken_name(state, key)) };
    if !is_front {
        call::flash(state, line.clone(), fx);
    }
    fx.push(Effect::Announce(line));
}

/// Moves the tab in front by one place, as far as there is one.
pub fn move_front(state: &mut State, is_right: bool) {
    let order: Vec<(SessionKey, u64)> = tab::tabs(state).map(|session| (session.key, session.rank)).collect();
    let front = tab::front(state);
    let place = order.iter().position(|(key, _)| *key == front);
    let other = place.and_then(|place| if is_right { place.checked_add(1) } else { place.checked_sub(1) });
    if let (Some(one), Some(other)) =
        (place.and_then(|place| order.get(place)), other.and_then(|place| order.get(place)))
    {
        for (key, rank) in [(one.0, other.1), (other.0, one.1)] {
            if let Some(session) = state.sessions.get_mut(&key) {
                session.rank = rank;
            }
        }
    }
}

/// Puts a session that is open here on the screen, with the dialogs of its tab.
pub fn activate(state: &mut State, key: SessionKey, now: Instant, fx: &mut Vec<Effect>) {
    if !state.sessions.contains_key(&key) {
        return;
    }
    let (from, to) = (tab::front(state), lookup::root_of(state, key));
    if from != to {
        shelve(state, from, fx);
        take_down(state, to, now);
        state.user.former_tab = Some(from);
        // What was begun in one tab must not end in another.
        state.user.last_reject = None;
        state.last_interrupt = None;
        state.user.completion = 0;
    }
    state.active = key;
    for seen in [key, to] {
        if let Some(session) = state.sessions.get_mut(&seen) {
            session.has_background_news = false;
            session.unseen = None;
        }
    }
}

/// Puts the dialogs away with the tab that they belong to. What belongs to none is closed.
fn shelve(state: &mut State, from: SessionKey, fx: &mut Vec<Effect>) {
    let mut modals = std::mem::take(&mut state.modals);
    let is_browsing = std::mem::take(&mut state.user.is_browsing);
    modals.retain(|modal| match modal {
        Modal::Picker(picker) => {
            if picker.kind == PickerKind::Theme {
                fx.push(Effect::SetTheme(state.setup.theme.clone()));
            }
            matches!(picker.kind, PickerKind::Agent | PickerKind::SignIn)
        }
        Modal::Help { .. } | Modal::Attention(_) | Modal::Sessions(_) => false,
        Modal::Choice(_)
        | Modal::Queue { .. }
        | Modal::Log { .. }
        | Modal::Connection(_)
        | Modal::Inspect(_)
        | Modal::Changes(_)
        | Modal::Line(_) => true,
    });
    if let Some(left) = state.sessions.get_mut(&from) {
        left.shelf = TabUi { modals, is_browsing };
    }
}

/// Takes the dialogs of a tab from its shelf. Those that once opened by themselves come into view by themselves
/// again, so their grace period begins anew.
fn take_down(state: &mut State, to: SessionKey, now: Instant) {
    let Some(session) = state.sessions.get_mut(&to) else { return };
    let TabUi { mut modals, is_browsing } = std::mem::take(&mut session.shelf);
    for modal in &mut modals {
        match modal {
            Modal::Choice(dialog) if dialog.opened_by_itself.is_some() => dialog.opened_by_itself = Some(now),
            Modal::Picker(picker) => picker.shown_at = None,
            _ => {}
        }
    }
    state.modals = modals;
    state.user.is_browsing = is_browsing;
}

/// Opens a dialog that belongs to a session: at once if its tab is in front, else when it is.
pub(in crate::app) fn open_dialog(state: &mut State, key: SessionKey, modal: Modal) {
    let root = lookup::root_of(state, key);
    if root == tab::front(state) {
        state.modals.push(modal);
    } else if let Some(session) = state.sessions.get_mut(&root) {
        session.shelf.modals.push(modal);
    }
}

/// Closes dialogs, in whichever tab they are.
pub(in crate::app) fn retain_dialogs(state: &mut State, is_kept: impl Fn(&Modal) -> bool) {
    state.modals.retain(&is_kept);
    let shelved: Vec<SessionKey> = tab::tabs(state)
        .filter(|session| !session.shelf.modals.is_empty())
        .map(|session| session.key)
        .collect();
    for key in shelved {
        if let Some(session) = state.sessions.get_mut(&key) {
            session.shelf.modals.retain(&is_kept);
        }
    }
}

/// Dialogs that opened by themselves and offer to stop this connection have nothing to offer any more.
pub(in crate::app) fn close_dialogs_of(state: &mut State, conn: ConnId) {
    close_dialogs(state, |outcome| *outcome == ChoiceOutcome::ForceStop(conn));
}

/// Closes dialogs that opened by themselves, if one of their choices is moot.
pub(in crate::app) fn close_dialogs(state: &mut State, is_moot: impl Fn(&ChoiceOutcome) -> bool) {
    retain_dialogs(state, |modal| match modal {
        Modal::Choice(dialog) if dialog.opened_by_itself.is_some() => {
            !dialog.choices.iter().any(|choice| is_moot(&choice.outcome))
        }
        _ => true,
    });
}
