//! Queued prompts: their dialog, and editing one in the composer.

use std::collections::VecDeque;
use std::time::Instant;

use crate::app::lifecycle::operations;
use crate::app::{Effect, Modal, QueueEdit, State, ViewCommand};
use crate::model::Action;

use super::obstacle::obstacle;
use super::{draft, moved, say};

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
pub fn on_action(state: &mut State, action: Action, now: Instant, fx: &mut Vec<Effect>) -> bool {
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
        Action::Mark(position) => *selected = moved(usize::from(position), 0, count),
        Action::Choose(position) => *selected = moved(usize::from(position.saturating_sub(1)), 0, count),
        Action::MoveUp => shift(state, -1),
        Action::MoveDown => shift(state, 1),
        Action::Remove => {
            let position = *selected;
            remove(state, position);
        }
        Action::Edit | Action::Accept => {
            let position = *selected;
            edit(state, position, fx);
        }
        Action::SendNow | Action::Steer => {
            let position = *selected;
            match obstacle(state, action) {
                Some(why) => say(state, why, fx),
                None => send(state, action, position, now, fx),
            }
        }
        _ => return false,
    }
    true
}

/// Opens a queued prompt in the composer. It stays in the queue, and is not sent meanwhile.
pub fn edit(state: &mut State, position: usize, fx: &mut Vec<Effect>) {
    let Some(session) = state.sessions.get_mut(&state.active) else { return };
    let Some(text) = session.queue.get(position).cloned() else { return };
    if session.steered_prompt() == Some(position) {
        return;
    }
    let draft = if let Some(former) = session.prompts.take_edit() {
        former.draft
    } else {
        // The draft is restored after the edit, unless parlor ends before.
        let draft = std::mem::take(&mut session.draft);
        operations::remember(session, &draft, fx);
        draft
    };
    session.prompts.edit(QueueEdit { position, text: text.clone(), draft });
    state.modals.retain(|modal| !matches!(modal, Modal::Queue { .. }));
    draft::set_draft(state, text, fx);
}

/// Edits the queued prompt before or after the one that is being edited, as long as that is unchanged. Returns whether
/// there is one.
pub fn edit_other(state: &mut State, by: isize, fx: &mut Vec<Effect>) -> bool {
    let Some(session) = state.active_session() else { return false };
    let is_unchanged = session.prompts.editing().is_some_and(|edit| edit.text == session.draft);
    let position = session.edited_prompt().and_then(|position| position.checked_add_signed(by));
    let Some(position) = position.filter(|position| is_unchanged && *position < session.queue.len()) else {
        return false;
    };
    edit(state, position, fx);
    true
}

/// Ends the edit of a queued prompt: the draft replaces it, and an empty draft removes it. Returns its place, if one
/// was edited and is still queued.
pub fn finish_edit(state: &mut State, fx: &mut Vec<Effect>) -> Option<usize> {
    let session = state.sessions.get_mut(&state.active)?;
    let position = session.edited_prompt();
    let edit = session.prompts.take_edit()?;
    let text = std::mem::replace(&mut session.draft, edit.draft);
    let position = position.filter(|position| {
        if text.trim().is_empty() {
            session.unqueue(*position);
            return false;
        }
        if let Some(queued) = session.queue.get_mut(*position) {
            queued.clone_from(&text);
        }
        true
    });
    let is_kept = position.is_some() || text.trim().is_empty();
    if !is_kept {
        // It was removed from the queue meanwhile.
        session.enqueue(text.clone());
    }
    if text != edit.text {
        operations::remember(session, &text, fx);
    }
    let last = session.last_prompt();
    draft::restore(state, fx);
    if is_kept { position } else { last }
}

/// Ends the edit of a queued prompt without a change. Returns whether one was edited.
pub fn leave_edit(state: &mut State, fx: &mut Vec<Effect>) -> bool {
    let Some(session) = state.sessions.get_mut(&state.active) else { return false };
    let Some(edit) = session.prompts.take_edit() else { return false };
    let text = std::mem::replace(&mut session.draft, edit.draft);
    if text != edit.text {
        operations::remember(session, &text, fx);
    }
    draft::restore(state, fx);
    true
}

/// Sends a queued prompt next, or into the running turn. The turn may have ended just before the key was pressed.
pub fn send(state: &mut State, action: Action, position: usize, now: Instant, fx: &mut Vec<Effect>) {
    state.modals.retain(|modal| !matches!(modal, Modal::Queue { .. }));
    let key = state.active;
    let is_running = state.active_session().is_some_and(|session| session.turn.is_running());
    if action == Action::Steer && is_running {
        operations::steer(state, key, position, fx);
    } else {
        operations::send_now(state, key, position, now, fx);
    }
    fx.push(Effect::View(ViewCommand::ScrollEnd));
}

fn remove(state: &mut State, position: usize) {
    let Some(session) = state.sessions.get_mut(&state.active) else { return };
    session.unqueue(position);
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
