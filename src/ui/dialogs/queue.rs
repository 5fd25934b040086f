//! Queued prompts: their dialog, and editing one in the composer.

use super::notice::notify;
use crate::app::lifecycle::operations;
use crate::app::{Cx, Effect, Session, State, ViewCommand};
use crate::model::{Action, PromptId};
use crate::ui::dialogs::modal::moved;
use crate::ui::{App, Modal};

use super::draft;
use super::obstacle::obstacle;

/// Opens the dialog if there are queued prompts.
pub fn open(app: &mut App, cx: &mut Cx) {
    if queue_len(&app.state) == 0 {
        notify(&mut app.state, "No queued prompts.", cx);
        return;
    }
    app.modals.retain(|modal| !matches!(modal, Modal::Queue { .. }));
    app.modals.push(Modal::Queue { selected: 0 });
}

pub fn on_action(app: &mut App, action: Action, cx: &mut Cx) -> bool {
    let count = queue_len(&app.state);
    let Some(Modal::Queue { selected }) = app.modals.last_mut() else { return false };
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
        Action::MoveUp => shift(app, -1),
        Action::MoveDown => shift(app, 1),
        Action::Remove | Action::Edit | Action::Accept | Action::SendNow | Action::Steer => {
            let position = *selected;
            let Some(id) =
                app.state.active_session().and_then(|it| it.outbox.queued(position)).map(|it| it.id)
            else {
                return true;
            };
            match (action, obstacle(&app.state, action)) {
                (Action::Remove, _) => remove(app, id, cx),
                (Action::Edit | Action::Accept, _) => edit(app, id, cx),
                (_, Some(why)) => notify(&mut app.state, why, cx),
                (_, None) => send(app, action, id, cx),
            }
        }
        _ => return false,
    }
    true
}

/// Opens a queued prompt in the composer. It stays in the queue, and is not sent meanwhile.
pub fn edit(app: &mut App, id: PromptId, cx: &mut Cx) {
    let Some(session) = app.state.sessions.get_mut(&app.state.active) else { return };
    let Some(prompt) = session.outbox.get(id).filter(|prompt| !prompt.is_steering()) else { return };
    let text = prompt.text.clone();
    // An edit that is not saved is in the history. The draft is restored after the edit, unless parlor ends before.
    let typed = std::mem::take(&mut session.draft);
    let is_changed = session.outbox.edited().is_none_or(|prompt| prompt.text != typed);
    if is_changed {
        operations::remember(session, &typed, cx);
    }
    let draft = end_edit(session).map_or(typed, |(_, draft)| draft);
    session.outbox.edit(id, draft);
    app.modals.retain(|modal| !matches!(modal, Modal::Queue { .. }));
    draft::set_draft(app, text, cx);
}

/// Edits the queued prompt before or after the one that is being edited, as long as that is unchanged. Returns whether
/// there is one.
pub fn edit_other(app: &mut App, by: isize, cx: &mut Cx) -> bool {
    let Some(session) = app.state.active_session() else { return false };
    let edited = session.outbox.edited().filter(|prompt| prompt.text == session.draft);
    let position = edited.and_then(|prompt| session.outbox.position(prompt.id));
    let other = position.and_then(|position| session.outbox.queued(position.checked_add_signed(by)?));
    let Some(other) = other.map(|prompt| prompt.id) else { return false };
    edit(app, other, cx);
    true
}

/// Ends the edit of a queued prompt: the draft replaces it, and an empty draft removes it. Returns the prompt, if one
/// was edited and is still queued.
pub fn finish_edit(app: &mut App, cx: &mut Cx) -> Option<PromptId> {
    let session = app.state.sessions.get_mut(&app.state.active)?;
    let (id, draft) = session.outbox.end_edit()?;
    let text = std::mem::replace(&mut session.draft, draft);
    let is_saved = !text.trim().is_empty();
    if session.outbox.get(id).is_some_and(|prompt| prompt.text != text) {
        operations::remember(session, &text, cx);
    }
    if is_saved {
        session.outbox.set_text(id, text);
    } else {
        session.unqueue(id);
    }
    draft::restore(app, cx);
    is_saved.then_some(id)
}

/// Ends the edit without a change. If the turn of the prompt has come meanwhile, it waits for the user.
fn end_edit(session: &mut Session) -> Option<(PromptId, String)> {
    let ended = session.outbox.end_edit()?;
    if session.can_prompt() {
        session.outbox.hold();
    }
    Some(ended)
}

/// Ends the edit of a queued prompt without a change. Returns whether one was edited.
pub fn leave_edit(app: &mut App, cx: &mut Cx) -> bool {
    let Some(session) = app.state.sessions.get_mut(&app.state.active) else { return false };
    let Some((id, draft)) = end_edit(session) else { return false };
    let text = std::mem::replace(&mut session.draft, draft);
    if session.outbox.get(id).is_some_and(|prompt| prompt.text != text) {
        operations::remember(session, &text, cx);
    }
    draft::restore(app, cx);
    true
}

/// Sends a queued prompt next, or into the running turn. The turn may have ended just before the key was pressed.
pub fn send(app: &mut App, action: Action, id: PromptId, cx: &mut Cx) {
    app.modals.retain(|modal| !matches!(modal, Modal::Queue { .. }));
    let key = app.state.active;
    let is_running = app.state.active_session().is_some_and(|session| session.turn.is_running());
    if action == Action::Steer && is_running {
        operations::steer(&mut app.state, key, id, cx);
    } else {
        operations::send_now(&mut app.state, key, id, cx);
    }
    cx.effects.push(Effect::View(ViewCommand::ScrollEnd));
}

fn remove(app: &mut App, id: PromptId, cx: &mut Cx) {
    if app.state.active_session().and_then(|session| session.outbox.edited()).is_some_and(|it| it.id == id) {
        leave_edit(app, cx);
    }
    let Some(session) = app.state.sessions.get_mut(&app.state.active) else { return };
    session.unqueue(id);
    let count = session.outbox.queue_len();
    if count == 0 {
        app.modals.retain(|modal| !matches!(modal, Modal::Queue { .. }));
    } else if let Some(Modal::Queue { selected }) = app.modals.last_mut() {
        *selected = (*selected).min(count - 1);
    }
}

fn shift(app: &mut App, by: isize) {
    let Some(session) = app.state.sessions.get_mut(&app.state.active) else { return };
    let Some(Modal::Queue { selected }) = app.modals.last_mut() else { return };
    let target = moved(*selected, by, session.outbox.queue_len());
    session.outbox.exchange(*selected, target);
    *selected = target;
    if session.can_prompt() {
        // Only the edit of the first one has kept the queue from being sent.
        session.outbox.hold();
    }
}

fn queue_len(state: &State) -> usize {
    state.active_session().map_or(0, |session| session.outbox.queue_len())
}
