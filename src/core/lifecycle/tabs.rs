//! Tabs: the top-level sessions, in the order in which they were opened or to which the user moved them.
//!
//! Activates and moves tabs. `close` closes them, `conn` handles processes. Two tabs with the same agent in the same folder share its process: agents support several sessions, and
//! some corrupt their data when two of their processes run in one folder. In another folder an agent gets a new
//! process, because many read settings from the working directory.

use crate::core::Unseen;
use crate::core::UnseenKind;
use std::time::Instant;

use crate::model::SessionKey;

use super::call;
use crate::core::state::{FlashEnd, lookup, tab, texts};
use crate::core::{Cx, Effect, State};

/// Remembers an event that the user does not see: in an inactive tab, or without the focus. A failure replaces a success; of several successes the first is shown.
pub(in crate::core) fn note_unseen(state: &mut State, key: SessionKey, what: UnseenKind, now: Instant) {
    let root = lookup::root_of(state, key);
    if root == tab::front(state) && state.has_focus {
        return;
    }
    if let Some(session) = state.sessions.get_mut(&root) {
        match (&session.unseen, &what) {
            (Some(_), UnseenKind::Finished) => {}
            _ => session.unseen = Some(Unseen { what, since: now }),
        }
    }
}

/// The name of a tab in messages of other tabs: `Tab 2`.
pub(in crate::core) fn tab_name(state: &State, key: SessionKey) -> String {
    let root = lookup::root_of(state, key);
    let workspace = tab::tabs(state).position(|session| session.key == root).unwrap_or(0);
    format!("Tab {}", workspace + 1)
}

/// Shows a short message about a session, prefixed with the tab's name if it is inactive.
pub(in crate::core) fn flash(state: &mut State, key: SessionKey, text: &str, cx: &mut Cx) {
    if lookup::root_of(state, key) == tab::front(state) {
        call::flash(state, text, cx);
    } else {
        let name = tab_name(state, key);
        call::flash(state, format!("{name}: {text}"), cx);
    }
}

/// Says that the queue is on hold, as long as that is true.
pub(in crate::core) fn flash_hold(state: &mut State, key: SessionKey, cx: &mut Cx) {
    let Some(session) = state.sessions.get(&key) else { return };
    let (text, held) = (texts::queue_on_hold(session.outbox.queue_len()), session.outbox.held());
    flash(state, key, &text, cx);
    state.flash_end = FlashEnd::Hold(key, held);
}

/// Notifies the user, who looks at another tab or window, with one line and the configured notification.
pub(in crate::core) fn announce(state: &mut State, key: SessionKey, text: &str, cx: &mut Cx) {
    let is_front = lookup::root_of(state, key) == tab::front(state);
    if is_front && state.has_focus {
        return;
    }
    if !is_front {
        let text = format!("{}: {text}", tab_name(state, key));
        call::flash_until(state, text, FlashEnd::Shown(key), cx);
    }
    // The exit of an agent also ends its turn: only the last reason is sent.
    cx.effects.retain(|effect| !matches!(effect, Effect::Announce { session, .. } if *session == key));
    let mut letters = text.chars();
    let first = letters.next().into_iter().flat_map(char::to_uppercase);
    cx.effects.push(Effect::Announce { session: key, text: first.chain(letters).collect() });
}

/// Sets whether the terminal has the focus, in which the user sees the active tab.
pub(in crate::core) fn set_focus(state: &mut State, has_focus: bool) {
    state.has_focus = has_focus;
    if has_focus {
        mark_seen(state, state.active);
    }
}

/// Removes the marks of unseen events of a session and its tab.
fn mark_seen(state: &mut State, key: SessionKey) {
    for seen in [key, lookup::root_of(state, key)] {
        if let Some(session) = state.sessions.get_mut(&seen) {
            session.has_background_news = false;
            session.unseen = None;
        }
    }
}

/// Moves the active tab by one place, if possible.
pub fn move_front(state: &mut State, is_right: bool) {
    let order: Vec<(SessionKey, u64)> = tab::tabs(state).map(|session| (session.key, session.rank)).collect();
    let front = tab::front(state);
    let workspace = order.iter().position(|(key, _)| *key == front);
    let other = workspace
        .and_then(|workspace| if is_right { workspace.checked_add(1) } else { workspace.checked_sub(1) });
    if let (Some(one), Some(other)) = (
        workspace.and_then(|workspace| order.get(workspace)),
        other.and_then(|workspace| order.get(workspace)),
    ) {
        for (key, rank) in [(one.0, other.1), (other.0, one.1)] {
            if let Some(session) = state.sessions.get_mut(&key) {
                session.rank = rank;
            }
        }
    }
}

pub fn activate(state: &mut State, key: SessionKey) {
    if !state.sessions.contains_key(&key) {
        return;
    }
    let (from, to) = (tab::front(state), lookup::root_of(state, key));
    if from != to {
        // Their records say which tab is active.
        state.sessions.touch(from);
        state.sessions.touch(to);
        // An action started in one tab must not end in another.
        state.last_interrupt = None;
    }
    state.active = key;
    mark_seen(state, key);
}
