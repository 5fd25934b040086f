//! Input routing: converts keys, clicks and pastes to events of the app.
//!
//! Determines the target of an input (the composer, the top dialog, the transcript), and looks up the action
//! in the keymap.
//!
//! The order for a key: releases are ignored; beside a question, the composer gets the keys; a letter at a question goes
//! to it as a whole; a text field gets the keys that it can type; then the keymap, with the keys of a started sequence;
//! then the composer, or for a question, the keys that open other views (its sessions, the palette).
//!
//! Invariants: every key, click and paste results in one event; a character that does not continue a sequence is typed
//! if the focus is on a text.

mod mouse;

use std::time::Instant;

use ratatui::crossterm::event::{Event as Terminal, KeyEvent, KeyEventKind, KeyModifiers};

use crate::config::keymap::chord::{Chord, TypedKey, typed_key};
use crate::config::keymap::sequence::{MAX_KEYS, Sequence, label};
use crate::config::keymap::{Context, Keymap, Lookup, typed};
use crate::core;
use crate::escape;
use crate::model::{Action, Attachment, LineEdit, TerminalInput, attachment_labels, dropped_paths};
use crate::ui::App;
use crate::ui::Event;
use crate::ui::dialogs::{self, InboxDialog, KeyCapture};

use super::composer::{VimKey, clean, types_character};
use super::focus;
use super::transcript::TranscriptView;
use super::view_state::ViewState;
use super::which_key::PendingKeys;

/// Converts an event of the terminal to events of the app.
pub fn route(event: &Terminal, app: &App, view: &mut ViewState, keymap: &Keymap, now: Instant) -> Vec<Event> {
    match event {
        Terminal::Key(key) if key.kind == KeyEventKind::Release => Vec::new(),
        Terminal::Key(key) => {
            let events = on_key(key, app, view, keymap, now);
            as_user_input(with_mention(events, app, view))
        }
        Terminal::Paste(text) => {
            view.pending = None;
            let events = on_paste(text, app, view);
            as_user_input(with_mention(events, app, view))
        }
        Terminal::Mouse(mouse) => mouse::on_mouse(*mouse, app, view, now),
        Terminal::FocusGained => vec![core::Event::Focus(true).into()],
        Terminal::FocusLost => vec![core::Event::Focus(false).into()],
        Terminal::Resize(..) => Vec::new(),
    }
}

/// Adds the mention or the path that is being typed, if it changed.
fn with_mention(mut events: Vec<Event>, app: &App, view: &ViewState) -> Vec<Event> {
    let known = app.user.mention.as_ref().filter(|list| list.session == app.state.active);
    let argument = known.filter(|list| list.is_argument).and_then(|_| view.composer.typed_argument());
    let is_argument = argument.is_some();
    let typed = argument.or_else(|| view.composer.typed_mention());
    let known = known.map(|list| (list.range.clone(), list.query.as_str()));
    if typed.as_ref().map(|(range, path)| (range.clone(), path.as_str())) != known {
        events.push(match typed {
            Some((range, path)) if is_argument => Event::Argument(range, path),
            typed => Event::Mention(typed),
        });
    }
    events
}

fn as_user_input(events: Vec<Event>) -> Vec<Event> {
    vec![if events.is_empty() { Event::Input } else { Event::Key(events) }]
}

fn on_key(key: &KeyEvent, app: &App, view: &mut ViewState, keymap: &Keymap, now: Instant) -> Vec<Event> {
    let takes_keys = focus::takes_keys(app);
    let focus = focus::key_focus(app);
    let takes_text = match focus {
        Context::Main | Context::Search => true,
        _ => takes_keys && dialogs::line_input(app).is_some(),
    };
    let context = match focus {
        Context::Main if view.composer.is_empty() => Context::EmptyPrompt,
        Context::Main if view.composer.has_yanked() => Context::AfterYank,
        _ => focus,
    };
    if let Some(events) = capture(key, app, takes_keys, keymap) {
        return events;
    }
    let is_closed = dialogs::is_closed(app);
    let takes_text = takes_text && !(is_closed && takes_keys);
    if is_closed
        && view.pending.is_none()
        && let Some(event) = on_question_key(key, context, keymap)
    {
        return vec![event];
    }
    // In a form, space and arrows edit text fields first; in a list, bound keys come first.
    if focus == Context::Form
        && takes_text
        && view.pending.is_none()
        && let Some(edit) = keymap.edit(key)
    {
        return vec![Event::Line(edit)];
    }
    if !takes_keys
        && focus != Context::Terminal
        && view.pending.is_none()
        && let Some(events) = on_selection_key(key, view, keymap)
    {
        return events;
    }
    if focus == Context::Main
        && view.pending.is_none()
        && let Some(events) = on_vim_key(key, app, view)
    {
        return events;
    }
    // While a question is open, keys that open other views still work.
    let is_request_on_top = dialogs::has_keys(app) && app.layers.top::<InboxDialog>().is_none();
    let contexts = [Some(context), is_request_on_top.then_some(Context::Main)];
    let pressed = press(key, &contexts, view, keymap, now);
    let (action, message) = match pressed {
        Pressed::Pending => return Vec::new(),
        Pressed::Action(context, action) => {
            let is_of_screen = is_request_on_top && context == Context::Main;
            if is_of_screen && !dialogs::is_allowed_during_request(action) {
                return Vec::new();
            }
            (Some(action), None)
        }
        Pressed::Unbound(None) => (None, None),
        Pressed::Unbound(Some(keys)) => {
            let message = Event::Message(format!("{keys} is not bound."));
            if !takes_text || !types_character(key) {
                return vec![message];
            }
            (None, Some(message))
        }
    };
    let events = match focus {
        Context::Main => on_main_key(key, action, context, app, view, keymap),
        Context::Terminal => match action {
            Some(action) => vec![Event::Act(action)],
            None => typed::encode(key).map(Event::TypeIn).into_iter().collect(),
        },
        Context::Browse => match action {
            Some(Action::OpenGap) => open_gap(app, view),
            _ => action.map(|action| acted(action, view)).unwrap_or_default(),
        },
        _ => {
            let act = action.map(Event::Act);
            let edit = || keymap.edit(key).filter(|_| takes_text);
            let event = |edit| in_list(&edit, focus, app).unwrap_or(Event::Line(edit));
            act.or_else(|| edit().map(event)).into_iter().collect()
        }
    };
    message.into_iter().chain(events).collect()
}

/// In an empty filter, the cursor cannot move: its keys go to the ends of the list.
fn in_list(edit: &LineEdit, focus: Context, app: &App) -> Option<Event> {
    let has_list = matches!(focus, Context::List | Context::Sessions | Context::Text);
    let is_empty = || dialogs::line_input(app).is_some_and(|filter| filter.text.is_empty());
    match edit {
        LineEdit::Home if has_list && is_empty() => Some(Event::Act(Action::First)),
        LineEdit::End if has_list && is_empty() => Some(Event::Act(Action::Last)),
        _ => None,
    }
}

fn on_vim_key(key: &KeyEvent, app: &App, view: &mut ViewState) -> Option<Vec<Event>> {
    let handled = view.composer.vim_key(key)?;
    let edited = draft(view);
    Some(match handled {
        VimKey::History { is_up: true } => vec![Event::Act(Action::HistoryPrevious)],
        VimKey::History { is_up: false } => vec![Event::Act(Action::HistoryNext)],
        VimKey::Copy(text) => vec![edited, Event::Copy(text)],
        VimKey::ReadClipboard => vec![edited, Event::ReadClipboard],
        // Escape closes the completions, too. Nothing else must be closed by it.
        VimKey::Escape if dialogs::focus(app) == Context::Main && !dialogs::completions(app).is_empty() => {
            vec![edited, Event::Act(Action::Escape)]
        }
        VimKey::Done | VimKey::Escape => vec![edited],
    })
}

/// A key that is pressed to bind it to an action. Enter ends a sequence, Esc cancels.
fn capture(key: &KeyEvent, app: &App, takes_keys: bool, keymap: &Keymap) -> Option<Vec<Event>> {
    let capture = app.layers.top::<KeyCapture>().filter(|_| takes_keys)?;
    let Some(chord) = Chord::of(key) else { return Some(Vec::new()) };
    if chord.cancels_sequence() {
        return Some(vec![Event::Act(Action::Escape)]);
    }
    let is_end = chord.syntax() == "enter" && !capture.pressed.is_empty();
    if !is_end {
        let is_possible = capture.pressed.len() < MAX_KEYS;
        return Some(is_possible.then(|| Event::Capturing(chord.syntax())).into_iter().collect());
    }
    let context = Context::named(capture.binding.context)?;
    Some(vec![match Sequence::parse(&capture.pressed.join(" ")) {
        Ok(keys) => Event::Captured {
            keys: keys.syntax(),
            label: keys.label(),
            taken: keymap.taken_by(context, &keys),
        },
        Err(why) => Event::Message(why),
    }])
}

enum Pressed {
    Action(Context, Action),
    /// A sequence was started, continued or cancelled.
    Pending,
    /// Not bound; with the keys of the sequence that it does not continue.
    Unbound(Option<String>),
}

/// Looks up a key in these contexts, in order, after the keys of the started sequence.
fn press(
    key: &KeyEvent,
    contexts: &[Option<Context>],
    view: &mut ViewState,
    keymap: &Keymap,
    now: Instant,
) -> Pressed {
    let Some(chord) = Chord::of(key) else { return Pressed::Unbound(None) };
    let contexts = contexts.iter().copied().flatten();
    // The focus may have changed since the last key.
    let begun = view.pending.take().filter(|begun| contexts.clone().any(|context| context == begun.context));
    let mut keys = begun.as_ref().map(|begun| begun.keys.clone()).unwrap_or_default();
    keys.push(chord);
    for context in contexts {
        match keymap.resolve(context, &keys) {
            Lookup::Action(action) => return Pressed::Action(context, action),
            Lookup::Prefix => {
                view.pending = Some(PendingKeys { context, keys, since: now, page: None });
                return Pressed::Pending;
            }
            Lookup::Unbound => {}
        }
    }
    let Some(begun) = begun else { return Pressed::Unbound(None) };
    if chord.cancels_sequence() {
        return Pressed::Pending;
    }
    if chord.typed() == Some('?') {
        let page = if begun.shown_in(now, view.which_key_delay).is_some() {
            0
        } else {
            begun.page.unwrap_or(0).wrapping_add(1)
        };
        view.pending = Some(PendingKeys { page: Some(page), ..begun });
        return Pressed::Pending;
    }
    Pressed::Unbound(Some(label(&keys)))
}

/// A printable key or Backspace at a question that the user did not open. Of the bindings of letters only those of
/// answers apply, because all other letters are text of the prompt.
fn on_question_key(key: &KeyEvent, context: Context, keymap: &Keymap) -> Option<Event> {
    let ch = match typed_key(key)? {
        TypedKey::Backspace => return Some(Event::Backspace),
        TypedKey::Character(ch) => ch,
    };
    let answers = |action: &Action| matches!(action, Action::Choose(_) | Action::Yes | Action::No);
    let bound = Chord::of(key).map(|chord| keymap.resolve(context, &[chord]));
    let action = match bound {
        Some(Lookup::Action(action)) => Some(action).filter(answers),
        _ => None,
    };
    Some(Event::Character(ch, action))
}

fn on_main_key(
    key: &KeyEvent,
    action: Option<Action>,
    context: Context,
    app: &App,
    view: &mut ViewState,
    keymap: &Keymap,
) -> Vec<Event> {
    let Some(action) = action else {
        // With Shift, a key that moves the cursor selects text.
        let unshifted = KeyEvent { modifiers: key.modifiers - KeyModifiers::SHIFT, ..*key };
        let motion = if key.modifiers.contains(KeyModifiers::SHIFT) && !types_character(key) {
            keymap.lookup(context, &unshifted)
        } else {
            None
        };
        let is_change = motion.and_then(|motion| view.composer.act(motion, true));
        return if is_change == Some(true) || view.composer.on_key(key) {
            vec![draft(view)]
        } else {
            Vec::new()
        };
    };
    if let Some(is_change) = view.composer.act(action, false) {
        return if is_change { vec![draft(view)] } else { Vec::new() };
    }
    match action {
        Action::Submit if view.composer.break_at_backslash() => vec![draft(view)],
        Action::Submit if view.composer.is_command() => {
            // Before the change of the mode, which discards the drawn text.
            let event = command(view);
            view.composer.start_typing();
            vec![event]
        }
        Action::Submit => {
            view.composer.start_typing();
            if dialogs::completions(app).is_empty() {
                view.composer.is_full = false;
            }
            acted(action, view)
        }
        Action::StashDraft => {
            view.composer.start_typing();
            acted(action, view)
        }
        Action::Escape if view.composer.is_full && dialogs::completions(app).is_empty() => {
            view.composer.is_full = false;
            Vec::new()
        }
        Action::NewLine => {
            view.composer.new_line();
            vec![draft(view)]
        }
        Action::Complete if dialogs::completions(app).is_empty() => match view.composer.typed_argument() {
            Some((range, path)) => vec![Event::Argument(range, path)],
            None => acted(action, view),
        },
        Action::HistoryPrevious | Action::HistoryNext => {
            let is_up = action == Action::HistoryPrevious;
            // Open completions use the arrows.
            if dialogs::completions(app).is_empty() && view.composer.step_row(is_up) {
                return Vec::new();
            }
            vec![Event::Act(action)]
        }
        Action::OpenGap => open_gap(app, view),
        action => acted(action, view),
    }
}

/// Runs the command in the composer, if the user has seen all of it: a paste may be long, or contain its own Enter.
fn command(view: &ViewState) -> Event {
    let text = view.composer.text();
    let hidden = view.composer.hidden();
    let why = if hidden.is_none() {
        "Not run: the command was sent before it was shown. Send it again."
    } else if hidden != Some((0, 0)) {
        "Not run: not all of the command was visible. Shorten it, or run it from a file."
    } else if !attachment_labels(&text).is_empty() {
        "Not run: the command contains the label of a paste. Insert the text by pasting it again, or delete the label."
    } else if text.contains(|ch| escape::is_format(ch) || escape::is_blank(ch)) {
        "Not run: the command contains invisible characters."
    } else {
        return Event::RunCommand(text);
    };
    Event::Message(why.to_owned())
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
        // xterm and others report Ctrl+Shift+C as Ctrl+C.
        _ if keymap.lookup(Context::Main, key) == Some(Action::ClearOrQuit) => {
            if is_copied {
                shown.clear_selection();
            }
            Some(if is_copied { Vec::new() } else { vec![Event::Act(Action::CopySelection)] })
        }
        _ => {
            let is_bound = Chord::of(key)
                .is_some_and(|chord| keymap.resolve(Context::Main, &[chord]) != Lookup::Unbound);
            if is_copied && !is_bound {
                shown.clear_selection();
            }
            None
        }
    }
}

/// Finds the gap to expand, which depends on the visible part of the transcript.
fn open_gap(app: &App, view: &ViewState) -> Vec<Event> {
    let marked = app.shown().selected;
    let gap = view.transcript().and_then(|shown| shown.gap_on_screen(marked));
    vec![Event::Act(gap.map_or(Action::OpenGap, |(item, gap)| Action::OpenThisGap(item, gap)))]
}

/// An action, preceded by the visible range if the action depends on it.
fn acted(action: Action, view: &ViewState) -> Vec<Event> {
    // The palette can run any of these actions.
    let counts_from_screen = action.counts_from_screen() || action == Action::OpenPalette;
    let seen = view.transcript().and_then(TranscriptView::visible).filter(|_| counts_from_screen);
    let seen = seen.map(|(first, last)| Event::Reading(first, last));
    let needs_cursor = action.depends_on_cursor() || action == Action::OpenPalette;
    let cursor = needs_cursor.then(|| Event::Cursor(view.composer.offset()));
    seen.into_iter().chain(cursor).chain([Event::Act(action)]).collect()
}

fn on_paste(text: &str, app: &App, view: &mut ViewState) -> Vec<Event> {
    if dialogs::is_closed(app) {
        return paste_into_prompt(text, view);
    }
    if focus::takes_keys(app) {
        let takes_text = dialogs::line_input(app).is_some();
        let line = clean(text);
        return if takes_text { vec![Event::Line(LineEdit::Insert(line))] } else { Vec::new() };
    }
    match dialogs::base_focus(app) {
        Context::Search => return vec![Event::Line(LineEdit::Insert(clean(text)))],
        Context::Terminal => return vec![Event::TypeIn(TerminalInput::Paste(text.to_owned()))],
        _ => {}
    }
    paste_into_prompt(text, view)
}

/// Pastes into the prompt: a long text as a label, which a second paste of the same text expands.
fn paste_into_prompt(text: &str, view: &mut ViewState) -> Vec<Event> {
    if text.is_empty() {
        // The terminal could not paste an image.
        return acted(Action::PasteImage, view);
    }
    view.composer.prepare_paste();
    let text = clean(text);
    let readings = dropped_paths(&text);
    if !readings.is_empty() && view.composer.insert(&text) {
        let at = view.composer.offset().saturating_sub(text.len());
        return vec![draft(view), Event::Dropped { text, at, readings }];
    }
    let Some(attachment) = Attachment::of_long_text(&text, view.paste_lines) else {
        return if view.composer.insert(&text) { vec![draft(view)] } else { Vec::new() };
    };
    let label = attachment.label();
    if let Some(at) = view.composer.text().find(&label).filter(|_| attachment.fits_composer()) {
        view.composer.replace_range(at..at + label.len(), &text);
        return vec![draft(view)];
    }
    // A command must be visible as a whole before it runs.
    if view.composer.is_command() {
        view.composer.insert(&text);
        return vec![draft(view)];
    }
    view.composer.insert(&label);
    vec![Event::Pasted(attachment), draft(view)]
}

/// Inserts a text into the prompt as a quote on lines of its own, and clears the selection. It is a label even if it is
/// short: the agent may have written it, and mentions in it must not attach files.
pub fn quote(text: &str, view: &mut ViewState) -> Vec<Event> {
    view.clear_selection();
    view.composer.prepare_paste();
    let quoted = clean(text)
        .lines()
        .fold(String::new(), |quoted, line| quoted + format!("> {line}").trim_end() + "\n");
    let attachment = Attachment::of_text(&quoted);
    let before = view.composer.text();
    let before = before.get(..view.composer.offset()).unwrap_or_default();
    let start = if before.is_empty() || before.ends_with('\n') { "" } else { "\n" };
    view.composer.insert(&format!("{start}{}\n", attachment.label()));
    vec![Event::Pasted(attachment), draft(view)]
}

/// Inserts the text of the clipboard that was asked for: by a vim command (`is_register`) or like a paste. `None`: it
/// could not be read.
pub fn insert_clipboard(text: Option<&str>, is_register: bool, view: &mut ViewState) -> Vec<Event> {
    if !is_register {
        // The focus may have changed since the key.
        return text.map(|text| paste_into_prompt(text, view)).unwrap_or_default();
    }
    let text = text.map(clean);
    let is_label = !view.composer.is_command();
    let long = text
        .as_deref()
        .and_then(|text| Attachment::of_long_text(text, view.paste_lines))
        .filter(|_| is_label);
    let label = long.as_ref().map(Attachment::label);
    if !view.composer.put_clipboard(label.as_deref().or(text.as_deref())) {
        return Vec::new();
    }
    long.map(Event::Pasted).into_iter().chain([draft(view)]).collect()
}

fn draft(view: &ViewState) -> Event {
    Event::Draft(view.composer.text())
}

#[cfg(test)]
mod tests;
