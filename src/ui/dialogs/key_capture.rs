//! The dialog that waits for the keys to bind to an action.

use super::notice::notify;
use crate::config::keymap::Context;
use crate::config::keymap::sequence::{MAX_KEYS, Sequence};
use crate::core::{Consequence, Cx, Effect, Question, State};
use crate::model::{Action, BindingRow, ConfigJob, SettingChange};
use crate::ui::App;
use crate::ui::frame_context::FrameContext;
use crate::ui::text::Line;
use crate::ui::theme::Role;

use super::dialog_frame::{DialogFrame, wrapped};
use super::layer::{Flow, Layer};

#[derive(Debug, Clone, PartialEq)]
pub struct KeyCapture {
    pub binding: BindingRow,
    /// The keys that stay bound.
    pub keeps: Vec<String>,
    /// The keys pressed so far, as in the configuration.
    pub pressed: Vec<String>,
}

impl Layer for KeyCapture {
    fn title(&self, _state: &State) -> String {
        "Press keys".to_owned()
    }

    fn context(&self) -> Context {
        Context::Choice
    }

    fn on_action(&mut self, _app: &mut App, _action: Action, _cx: &mut Cx) -> Flow {
        Flow::Stay
    }

    fn stays_with_tab(&self) -> bool {
        false
    }

    fn frame<'a>(&'a self, ctx: &'a FrameContext, cols: u16, _rows: u16) -> DialogFrame<'a> {
        frame(ctx, self, cols)
    }
}

pub fn change_keys(binding: &BindingRow, keys: Option<Vec<String>>) -> Effect {
    let (context, action) = (binding.context, binding.action);
    Effect::Configure(ConfigJob::Change(SettingChange::Keys { context, action, keys }))
}

/// Handles a key of the sequence that is being captured.
pub fn on_capturing(app: &mut App, key: String) {
    if let Some(capture) = app.layers.top_mut::<KeyCapture>() {
        capture.pressed.push(key);
    }
}

/// Handles captured keys. `taken`: the keys among them that have another meaning, and that meaning.
pub fn on_captured(app: &mut App, keys: String, label: &str, taken: Option<(String, String)>, cx: &mut Cx) {
    let Some(KeyCapture { binding, mut keeps, .. }) = app.layers.top::<KeyCapture>().cloned() else { return };
    app.layers.pop();
    if keeps.contains(&keys) {
        notify(&mut app.state, format!("{label} is already bound to it."), cx);
        return;
    }
    keeps.push(keys);
    let Effect::Configure(job) = change_keys(&binding, Some(keeps)) else { return };
    let Some((old, taken)) = taken.filter(|(_, taken)| taken != binding.text) else {
        cx.effects.push(Effect::Configure(job));
        return;
    };
    let body = vec![format!("{old} is bound to: {taken}. {label} will be bound to: {}.", binding.text)];
    let answers = [("Rebind", Consequence::effect(Effect::Configure(job))), ("Cancel", Consequence::Close)];
    app.state.ask(app.state.active, Question::new("Rebind key?", body, answers));
}

fn frame(ctx: &FrameContext, capture: &KeyCapture, cols: u16) -> DialogFrame<'static> {
    let mut sheet = DialogFrame::default();
    let binding = &capture.binding;
    sheet.body = wrapped(ctx, Role::Dialog, &format!("{}: {}", binding.title, binding.text), cols);
    if !binding.labels.is_empty() {
        let keys = binding.labels.join(", ");
        let fate = if capture.keeps.is_empty() { "Replaces" } else { "In addition to" };
        sheet.body.extend(wrapped(ctx, Role::TextDim, &format!("{fate}: {keys}"), cols));
    }
    let cancel = ctx.hint(Context::Choice, Action::Escape, "cancel");
    sheet.hints = cancel.into_iter().collect();
    if let Ok(keys) = Sequence::parse(&capture.pressed.join(" ")) {
        sheet.body.push(Line::default().into());
        let pressed = [ctx.span(Role::Dialog, "Pressed: "), ctx.span(Role::KeyHint, keys.label())];
        sheet.body.push(Line::from(pressed.to_vec()).into());
        let taken = Context::named(binding.context).and_then(|context| ctx.keymap.taken_by(context, &keys));
        if let Some((old, meaning)) = taken.filter(|(_, meaning)| meaning != binding.text) {
            sheet.body.extend(wrapped(ctx, Role::Warning, &format!("{old} is bound to: {meaning}"), cols));
        }
        // These keys are fixed, because all others can be bound.
        sheet.hints.insert(0, ("Enter".to_owned(), "bind".to_owned()));
        if keys.chords().len() < MAX_KEYS {
            sheet.body.extend(wrapped(ctx, Role::TextDim, "Press another key for a sequence.", cols));
        }
    }
    sheet
}
