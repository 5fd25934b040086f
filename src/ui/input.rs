//! Input routing: converts keys, clicks and pastes to events of the app.
//!
//! Determines the target of an input (the composer, the top dialog, the transcript), and looks up the action
//! in the keymap.
//!
//! The order for a key: releases are ignored; during its grace period, a dialog gets no keys, so the composer
//! gets them; a text field gets the keys that it can type; then the keymap; then the composer, or for a
//! request of the agent, the keys that open other views (its sessions, the palette).
//!
//! Invariants: every key, click and paste results in one event, which restarts the grace period.

mod mouse;

use std::time::Instant;

use ratatui::crossterm::event::{Event as Terminal, KeyEvent, KeyEventKind};

use crate::app::dialogs::{self, Focus};
use crate::app::{Event, FieldState, OpenRequestKind, State};
use crate::config::keymap::{Context, Keymap};
use crate::model::{Action, FieldKind, LineEdit};

use super::composer::{clean, types_letter};
use super::modals;
use super::transcript::TranscriptView;
use super::view_state::ViewState;

/// Converts an event of the terminal to events of the app.
pub fn route(
    event: &Terminal,
    state: &State,
    view: &mut ViewState,
    keymap: &Keymap,
    now: Instant,
) -> Vec<Event> {
    match event {
        Terminal::Key(key) if key.kind == KeyEventKind::Release => Vec::new(),
        Terminal::Key(key) => as_user_input(on_key(key, state, view, keymap, now)),
        Terminal::Paste(text) => as_user_input(on_paste(text, state, view, now)),
        Terminal::Mouse(mouse) => mouse::on_mouse(*mouse, state, view, now),
        Terminal::FocusGained => vec![Event::Focus(true)],
        Terminal::FocusLost => vec![Event::Focus(false)],
        Terminal::Resize(..) => Vec::new(),
    }
}

/// Marks the events as input of the user, which restarts the grace period of a dialog.
fn as_user_input(events: Vec<Event>) -> Vec<Event> {
    vec![if events.is_empty() { Event::Input } else { Event::Key(events) }]
}

fn on_key(key: &KeyEvent, state: &State, view: &mut ViewState, keymap: &Keymap, now: Instant) -> Vec<Event> {
    if !modals::takes_keys(state, now) {
        return on_main_key(key, state, view, keymap);
    }
    let focus = dialogs::focus(state);
    let (context, takes_text) = match focus {
        Focus::Main | Focus::Browse | Focus::Search => return on_main_key(key, state, view, keymap),
        Focus::Picker => (Context::List, true),
        Focus::Sessions => (Context::Sessions, true),
        Focus::Choice | Focus::Url => (Context::Choice, false),
        Focus::Queue => (Context::Queue, false),
        Focus::Help | Focus::Log => (Context::Text, true),
        Focus::Connection => (Context::Text, false),
        Focus::Changes if dialogs::line_input(state).is_some() => (Context::List, true),
        Focus::Changes => (Context::Changes, false),
        Focus::Line => (Context::Line, true),
        Focus::Permission | Focus::Access | Focus::Attention => (Context::Permission, false),
        Focus::Form => (Context::Form, is_text_field(state)),
    };
    let edit = || keymap.edit(key).filter(|_| takes_text).map(Event::Line);
    let act = || keymap.lookup(context, key).map(Event::Act);
    // In a form, space and arrows edit text fields first; in a list, bound keys come first.
    let event = if focus == Focus::Form { edit().or_else(act) } else { act().or_else(edit) };
    let event = event.or_else(|| act_beside_request(key, focus, state, keymap));
    event.or_else(|| type_beside_request(key, focus, view)).into_iter().collect()
}

/// A letter that does not answer the request starts a prompt; the reducer then waits for a pause before the
/// dialog gets keys.
fn type_beside_request(key: &KeyEvent, focus: Focus, view: &mut ViewState) -> Option<Event> {
    (types_letter(key) && is_request(focus) && view.composer.on_key(key)).then(|| draft(view))
}

/// Whether the focus is on a request of an agent without a text field.
fn is_request(focus: Focus) -> bool {
    matches!(focus, Focus::Permission | Focus::Access | Focus::Url)
}

/// While a request is open, keys that open other views or move to the prompt still work.
fn act_beside_request(key: &KeyEvent, focus: Focus, state: &State, keymap: &Keymap) -> Option<Event> {
    let action = keymap.lookup(Context::Main, key)?;
    let moves_keys = action == Action::Complete && is_request(focus);
    let works = moves_keys || dialogs::is_allowed_during_request(action);
    (state.modals.is_empty() && works).then_some(Event::Act(action))
}

/// Whether the selected field of the form accepts text.
fn is_text_field(state: &State) -> bool {
    let view = &state.ask_view;
    if let Some(form) = &view.form {
        return !form.is_review && form.fields.get(view.selected).is_some_and(FieldState::takes_text);
    }
    // The form before the first edit.
    let ask = state.active_session().and_then(|session| session.asks.front());
    let Some(OpenRequestKind::Elicitation(ask)) = ask.map(|ask| &ask.kind) else { return false };
    let crate::model::ElicitationMode::Form { fields, .. } = &ask.mode else { return false };
    let kind = fields.get(view.selected).map(|field| &field.kind);
    matches!(kind, Some(FieldKind::Text { .. } | FieldKind::Number { .. }))
}

fn on_main_key(key: &KeyEvent, state: &State, view: &mut ViewState, keymap: &Keymap) -> Vec<Event> {
    if let Some(events) = on_selection_key(key, view, keymap) {
        return events;
    }
    let context = match dialogs::base_focus(state) {
        Focus::Search => {
            let act = keymap.lookup(Context::Search, key).map(Event::Act);
            return act.or_else(|| keymap.edit(key).map(Event::Line)).into_iter().collect();
        }
        Focus::Browse => {
            let action = keymap.lookup(Context::Browse, key);
            return match action {
                Some(Action::OpenGap) => open_gap(state, view),
                _ => action.map(|action| acted(action, view)).unwrap_or_default(),
            };
        }
        _ if view.composer.is_empty() => Context::EmptyPrompt,
        _ => Context::Main,
    };
    match keymap.lookup(context, key) {
        Some(Action::Submit) if view.composer.break_at_backslash() => vec![draft(view)],
        Some(Action::NewLine) => {
            view.composer.new_line();
            vec![draft(view)]
        }
        Some(action @ (Action::HistoryPrevious | Action::HistoryNext)) => {
            let is_up = action == Action::HistoryPrevious;
            // Open completions use the arrows.
            if dialogs::completions(state).is_empty() && view.composer.step_row(is_up) {
                return Vec::new();
            }
            vec![Event::Act(action)]
        }
        Some(Action::OpenGap) => open_gap(state, view),
        Some(action) => acted(action, view),
        None if view.composer.on_key(key) => vec![draft(view)],
        None => Vec::new(),
    }
}

/// Keys for selected text. If it was copied on release, letters still go to the prompt and clear the
/// selection.
fn on_selection_key(key: &KeyEvent, view: &mut ViewState, keymap: &Keymap) -> Option<Vec<Event>> {
    let is_copied = view.copies_on_select;
    let shown = view.transcript_mut().filter(|shown| shown.has_selection())?;
    match keymap.lookup(Context::Selection, key) {
        Some(Action::ClearSelection) => {
            shown.clear_selection();
            Some(Vec::new())
        }
        Some(action) if !is_copied => Some(vec![Event::Act(action)]),
        _ => {
            if is_copied && keymap.lookup(Context::Main, key).is_none() {
                shown.clear_selection();
            }
            None
        }
    }
}

/// Finds the gap to expand, which depends on the visible part of the transcript.
fn open_gap(state: &State, view: &ViewState) -> Vec<Event> {
    let marked = state.active_session().and_then(|session| session.selected);
    let gap = view.transcript().and_then(|shown| shown.gap_on_screen(marked));
    vec![Event::Act(gap.map_or(Action::OpenGap, |(item, gap)| Action::OpenThisGap(item, gap)))]
}

/// An action, preceded by the visible range if the action depends on it.
fn acted(action: Action, view: &ViewState) -> Vec<Event> {
    // The palette can run any of these actions.
    let counts_from_screen = action.counts_from_screen() || action == Action::OpenPalette;
    let seen = view.transcript().and_then(TranscriptView::visible).filter(|_| counts_from_screen);
    seen.map(|(first, last)| Event::Reading(first, last)).into_iter().chain([Event::Act(action)]).collect()
}

fn on_paste(text: &str, state: &State, view: &mut ViewState, now: Instant) -> Vec<Event> {
    if modals::takes_keys(state, now) {
        let takes_text = match dialogs::focus(state) {
            Focus::Picker | Focus::Sessions | Focus::Help | Focus::Log | Focus::Line => true,
            Focus::Form => is_text_field(state),
            Focus::Changes => dialogs::line_input(state).is_some(),
            Focus::Main
            | Focus::Browse
            | Focus::Search
            | Focus::Choice
            | Focus::Queue
            | Focus::Connection
            | Focus::Permission
            | Focus::Url
            | Focus::Access
            | Focus::Attention => false,
        };
        if is_request(dialogs::focus(state)) {
            return if view.composer.insert(text) { vec![draft(view)] } else { Vec::new() };
        }
        let line = clean(text);
        return if takes_text { vec![Event::Line(LineEdit::Insert(line))] } else { Vec::new() };
    }
    if dialogs::base_focus(state) == Focus::Search {
        return vec![Event::Line(LineEdit::Insert(clean(text)))];
    }
    if view.composer.insert(text) { vec![draft(view)] } else { Vec::new() }
}

fn draft(view: &ViewState) -> Event {
    Event::Draft(view.composer.text())
}

#[cfg(test)]
mod tests;
