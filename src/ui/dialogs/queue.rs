//! Queued prompts: their dialog, and editing one in the composer.

use super::notice::notify;
use crate::config::keymap::Context;
use crate::core::lifecycle::operations;
use crate::core::{Cx, Effect, Session, State, ViewCommand};
use crate::model::{Action, PromptId};
use crate::ui::App;
use crate::ui::frame_context::FrameContext;
use crate::ui::hits::Hit;
use crate::ui::text;
use crate::ui::text::Line;
use crate::ui::text::counted;
use crate::ui::theme::Role;

use super::dialog_frame::{DialogFrame, Row, spread, wrapped};
use super::draft;
use super::layer::{Flow, Layer};
use super::list::{moved, stepped};
use super::obstacle::obstacle;

/// The queued prompts of the active session.
#[derive(Debug, Default)]
pub struct QueueDialog {
    pub selected: usize,
}

impl Layer for QueueDialog {
    fn title(&self, _state: &State) -> String {
        "Queued prompts".to_owned()
    }

    fn context(&self) -> Context {
        Context::Queue
    }

    fn on_action(&mut self, app: &mut App, action: Action, cx: &mut Cx) -> Flow {
        let count = queue_len(&app.state);
        // The queue may have advanced since the last key.
        self.selected = self.selected.min(count.saturating_sub(1));
        self.selected = match action {
            Action::Choose(position) => moved(usize::from(position.saturating_sub(1)), 0, count),
            Action::MoveUp => shift(&mut app.state, self.selected, -1),
            Action::MoveDown => shift(&mut app.state, self.selected, 1),
            Action::Remove | Action::Edit | Action::Accept | Action::SendNow | Action::Steer => {
                return self.act(app, action, cx);
            }
            _ => match stepped(action, self.selected, count) {
                Some(selected) => selected,
                None => return Flow::Pass,
            },
        };
        Flow::Stay
    }

    fn frame<'a>(&'a self, ctx: &'a FrameContext, cols: u16, _rows: u16) -> DialogFrame<'a> {
        frame(ctx, self.selected, cols)
    }
}

impl QueueDialog {
    /// Handles an action on the selected prompt.
    fn act(&mut self, app: &mut App, action: Action, cx: &mut Cx) -> Flow {
        let prompt = app.state.active_session().and_then(|session| session.outbox.queued(self.selected));
        let Some(id) = prompt.map(|prompt| prompt.id) else { return Flow::Stay };
        match (action, obstacle(&app.state, action)) {
            (Action::Remove, _) => {
                remove(app, id, cx);
                let count = queue_len(&app.state);
                self.selected = self.selected.min(count.saturating_sub(1));
                return if count == 0 { Flow::Close } else { Flow::Stay };
            }
            // A prompt that is being sent cannot be edited.
            (Action::Edit | Action::Accept, _) => {
                return if edit(app, id, cx) { Flow::Close } else { Flow::Stay };
            }
            (_, Some(why)) => notify(&mut app.state, why, cx),
            (_, None) => {
                send(app, action, id, cx);
                return Flow::Close;
            }
        }
        Flow::Stay
    }
}

/// Opens the dialog if there are queued prompts.
pub fn open(app: &mut App, cx: &mut Cx) {
    if queue_len(&app.state) == 0 {
        notify(&mut app.state, "No queued prompts.", cx);
        return;
    }
    app.layers.open(QueueDialog::default());
}

/// Opens a queued prompt in the composer. It stays in the queue, and is not sent meanwhile. Returns whether that was
/// possible.
pub fn edit(app: &mut App, id: PromptId, cx: &mut Cx) -> bool {
    let Some(session) = app.state.sessions.get_mut(&app.state.active) else { return false };
    let Some(prompt) = session.outbox.get(id).filter(|prompt| !prompt.is_steering()) else { return false };
    let text = prompt.text.clone();
    // An edit that is not saved is in the history. The draft is restored after the edit, unless parlor ends before.
    let typed = std::mem::take(&mut session.draft);
    let is_changed = session.outbox.edited().is_none_or(|prompt| prompt.text != typed);
    if is_changed {
        operations::remember(session, &typed, cx);
    }
    let draft = end_edit(session).map_or(typed, |(_, draft)| draft);
    session.outbox.edit(id, draft);
    app.layers.close::<QueueDialog>();
    draft::set_draft(app, text, cx);
    true
}

/// Edits the queued prompt before or after the one that is being edited, as long as that is unchanged. Returns whether
/// there is one.
pub fn edit_other(app: &mut App, by: isize, cx: &mut Cx) -> bool {
    let Some(session) = app.state.active_session() else { return false };
    let edited = session.outbox.edited().filter(|prompt| prompt.text == session.draft);
    let position = edited.and_then(|prompt| session.outbox.position(prompt.id));
    let other = position.and_then(|position| session.outbox.queued(position.checked_add_signed(by)?));
    let Some(other) = other.map(|prompt| prompt.id) else { return false };
    edit(app, other, cx)
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
    app.layers.close::<QueueDialog>();
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
}

/// Moves a prompt by a number of places. Returns its new place.
fn shift(state: &mut State, from: usize, by: isize) -> usize {
    let Some(session) = state.sessions.get_mut(&state.active) else { return from };
    let to = moved(from, by, session.outbox.queue_len());
    session.outbox.exchange(from, to);
    if session.can_prompt() {
        // Only the edit of the first one has kept the queue from being sent.
        session.outbox.hold();
    }
    to
}

fn queue_len(state: &State) -> usize {
    state.active_session().map_or(0, |session| session.outbox.queue_len())
}

fn frame(ctx: &FrameContext, selected: usize, cols: u16) -> DialogFrame<'static> {
    let outbox = &ctx.session.outbox;
    let count = outbox.queue_len();
    let mut sheet = DialogFrame { tag: count.to_string(), ..DialogFrame::default() };
    for (index, prompt) in outbox.queue().map(|prompt| &prompt.text).enumerate() {
        let rest = prompt.trim().lines().count().saturating_sub(1);
        let first = text::one_line(prompt.trim().lines().next().unwrap_or_default());
        let more = match rest {
            0 => String::new(),
            rest => format!(" {}", counted(rest, "more line", "more lines")),
        };
        let number = ctx.span(Role::Accent, format!("{:<3}", index + 1));
        let left = vec![number, ctx.span(Role::Dialog, first)];
        let line = spread(left, Line::from(ctx.span(Role::TextDim, more)), cols);
        let hit = u16::try_from(index).ok().map(Action::Mark).map(Hit::Act);
        sheet.body.push(Row { line, hit, is_selected: index == selected, ..Row::default() });
    }
    if count == 0 {
        let why = "No queued prompts. Prompts sent during a turn are queued here.";
        sheet.body = wrapped(ctx, Role::TextDim, why, cols);
    }
    let is_running = ctx.session.turn.is_running();
    let can_steer = obstacle(ctx.state, Action::Steer).is_none();
    sheet.set_hints([
        ctx.hint(Context::Queue, Action::Edit, "edit"),
        ctx.hint(Context::Queue, Action::SendNow, "send now"),
        ctx.hint(Context::Queue, Action::Steer, "send into the turn").filter(|_| can_steer && is_running),
        ctx.hint(Context::Queue, Action::Remove, "remove"),
        ctx.hint(Context::Queue, Action::Escape, "close"),
        ctx.hint(Context::Queue, Action::MoveUp, "move up").filter(|_| count > 1),
    ]);
    sheet
}
