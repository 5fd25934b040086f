//! The dialog of queued prompts: edit, remove, move.

use std::collections::VecDeque;

use crate::app::{Effect, LineDialog, LineInput, LinePurpose, Modal, State};
use crate::model::Action;

use super::{composer, moved, say};

/// Opens the dialog if there are queued prompts.
pub fn open(state: &mut State, fx: &mut Vec<Effect>) {
    if queue_of(state).is_none_or(VecDeque::is_empty) {
        say(state, "No queued prompts.", fx);
        return;
    }
    state.modals.retain(|modal| !matches!(modal, Modal::Queue { .. }));
    state.modals.push(Modal::Queue { selected: 0 });
}

/// Handles an action in the dialog.
pub fn on_action(state: &mut State, action: Action, fx: &mut Vec<Effect>) -> bool {
    let count = queue_of(state).map_or(0, VecDeque::len);
    let Some(Modal::Queue { selected }) = state.modals.last_mut() else { return false };
    // The queue may have advanced since the last key.
    *selected = (*selected).min(count.saturating_sub(1));
    match action {
        Action::Up | Action::PreviousField => *selected = moved(*selected, -1, count),
        Action::Down | Action::NextField => *selected = moved(*selected, 1, count),
        Action::PageUp => *selected = moved(*selected, -10, count),
        Action::PageDown => *selected = moved(*selected, 10, count),
        Action::Scroll(lines) => *selected = moved(*selected, isize::from(lines), count),
        Action::First => *selected = 0,
        Action::Last => *selected = count.saturating_sub(1),
        Action::Mark(place) => *selected = moved(usize::from(place), 0, count),
        Action::Choose(place) => *selected = moved(usize::from(place.saturating_sub(1)), 0, count),
        Action::MoveUp => shift(state, -1),
        Action::MoveDown => shift(state, 1),
        Action::Remove => {
            let place = *selected;
            remove(state, place);
        }
        Action::Edit | Action::Accept => {
            let place = *selected;
            edit(state, place, fx);
        }
        _ => return false,
    }
    true
}

/// Replaces an edited prompt at its current position; returns false if it has left the queue.
pub fn replace(state: &mut State, place: usize, before: &str, text: String) -> bool {
    let Some(session) = state.sessions.get_mut(&state.active) else { return false };
    // Prompts only leave at the front, so it is at its old position or before it.
    let now_at = (0..=place).rev().find(|at| session.queue.get(*at).is_some_and(|queued| queued == before));
    let Some(queued) = now_at.and_then(|at| session.queue.get_mut(at)) else { return false };
    *queued = text;
    true
}

fn edit(state: &mut State, place: usize, fx: &mut Vec<Effect>) {
    let Some(text) = queue_of(state).and_then(|queue| queue.get(place)).cloned() else { return };
    if !text.contains('\n') {
        state.modals.push(Modal::Line(LineDialog {
            title: "Edit queued prompt".to_owned(),
            help: "Sent after the prompts before it.".to_owned(),
            input: LineInput::new(&text),
            is_secret: false,
            problem: None,
            purpose: LinePurpose::QueuedPrompt { place, before: text },
        }));
        return;
    }
    // Multi-line prompts are edited in the composer.
    if state.active_session().is_some_and(|session| !session.draft.trim().is_empty()) {
        say(state, "This prompt has several lines. Send or clear your draft first.", fx);
        return;
    }
    remove(state, place);
    state.modals.retain(|modal| !matches!(modal, Modal::Queue { .. }));
    composer::set_draft(state, text, fx);
}

fn remove(state: &mut State, place: usize) {
    let Some(session) = state.sessions.get_mut(&state.active) else { return };
    session.unqueue(place);
    let count = session.queue.len();
    if count == 0 {
        state.modals.retain(|modal| !matches!(modal, Modal::Queue { .. }));
    } else if let Some(Modal::Queue { selected }) = state.modals.last_mut() {
        *selected = (*selected).min(count - 1);
    }
}

fn shift(state: &mut State, by: isize) {
    let Some(session) = state.sessions.get_mut(&state.active) else { return };
    let Some(Modal::Queue { selected }) = state.modals.last_mut() else { return };
    let target = moved(*selected, by, session.queue.len());
    if *selected < session.queue.len() {
        session.queue.swap(*selected, target);
        *selected = target;
    }
}

fn queue_of(state: &State) -> Option<&VecDeque<String>> {
    state.active_session().map(|session| &session.queue)
}
