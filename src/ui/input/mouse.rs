//! Mouse events, resolved with the hit map of the last frame.

use std::time::Instant;

use ratatui::crossterm::event::{KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use ratatui::layout::Position;

use crate::config::keymap::Context;

use crate::model::{Action, MouseReports, Target, TerminalInput};
use crate::ui::App;
use crate::ui::Event;
use crate::ui::dialogs;
use crate::ui::focus;
use crate::ui::hits::Hit;
use crate::ui::input::as_user_input;
use crate::ui::terminal_panel;
use crate::ui::transcript::{Released, TranscriptView};
use crate::ui::view_state::ViewState;

const WHEEL_LINES: i16 = 3;

/// Handles the wheel, and clicks and drags of the left button; other events are ignored.
pub(super) fn on_mouse(mouse: MouseEvent, app: &App, view: &mut ViewState, now: Instant) -> Vec<Event> {
    let act = |action: Action| vec![Event::Act(action)];
    let scroll = |lines: i16| vec![Event::Act(Action::Scroll(lines))];
    let at = Position::new(mouse.column, mouse.row);
    if matches!(mouse.kind, MouseEventKind::Down(_)) {
        view.pending = None;
    }
    if let Some(input) = for_program(mouse, app, view) {
        return as_user_input(vec![Event::TypeIn(input)]);
    }
    match mouse.kind {
        MouseEventKind::ScrollUp if mouse.modifiers.contains(KeyModifiers::SHIFT) => act(Action::ScrollLeft),
        MouseEventKind::ScrollDown if mouse.modifiers.contains(KeyModifiers::SHIFT) => {
            act(Action::ScrollRight)
        }
        MouseEventKind::ScrollLeft => act(Action::ScrollLeft),
        MouseEventKind::ScrollRight => act(Action::ScrollRight),
        MouseEventKind::ScrollUp => scroll(-WHEEL_LINES),
        MouseEventKind::ScrollDown => scroll(WHEEL_LINES),
        MouseEventKind::Down(MouseButton::Left) if mouse.modifiers.contains(KeyModifiers::CONTROL) => {
            let target = target_at(at, app, view).map(Event::Open);
            as_user_input(target.into_iter().collect())
        }
        MouseEventKind::Down(MouseButton::Left) => as_user_input(on_click(at, app, view, now)),
        MouseEventKind::Drag(MouseButton::Left) => {
            if let Some(shown) = view.transcript_mut() {
                shown.drag(at, now);
            }
            beside_question(at, app, view)
        }
        MouseEventKind::Up(MouseButton::Left) => {
            let released = view.transcript_mut().map_or(Released::Nothing, TranscriptView::release);
            // A page opens after a question; a file would open in the editor at once.
            let page =
                target_at(at, app, view).filter(|target| matches!(target, Target::Url(_))).map(Event::Open);
            let event = match released {
                Released::Selected if view.copies_on_select => Some(Event::Act(Action::CopySelection)),
                Released::Gap(item, gap) => Some(Event::Act(Action::OpenThisGap(item, gap))),
                Released::Click(item) => Some(page.unwrap_or(Event::Act(Action::ToggleItem(item)))),
                Released::Text => page,
                Released::Selected | Released::Nothing => None,
            };
            let mut events = beside_question(at, app, view);
            events.extend(event);
            events
        }
        _ => Vec::new(),
    }
}

/// The input of a mouse event for the program that the user types into: a report if it has requested one, and for the
/// wheel in a full-screen program arrow keys. Source: xterm, ctlseqs, mouse tracking.
fn for_program(mouse: MouseEvent, app: &App, view: &ViewState) -> Option<TerminalInput> {
    let (_, Hit::Terminal(area)) = view.hits.at(Position::new(mouse.column, mouse.row))? else { return None };
    let session = app.state.active_session().filter(|_| !focus::takes_keys(app))?;
    let (_, terminal) = terminal_panel::shown(session)?;
    let modes = &terminal.modes;
    let button = |button| match button {
        MouseButton::Left => 0,
        MouseButton::Middle => 1,
        MouseButton::Right => 2,
    };
    let code = match mouse.kind {
        MouseEventKind::ScrollUp | MouseEventKind::ScrollDown if modes.mouse == MouseReports::None => {
            let lead = if modes.is_application_cursor { "\x1bO" } else { "\x1b[" };
            let arrow = if mouse.kind == MouseEventKind::ScrollUp { "A" } else { "B" };
            let keys = format!("{lead}{arrow}").repeat(usize::from(WHEEL_LINES.unsigned_abs()));
            return modes.is_alternate.then(|| TerminalInput::Bytes(keys.into_bytes()));
        }
        _ if modes.mouse == MouseReports::None => return None,
        MouseEventKind::ScrollUp => 64,
        MouseEventKind::ScrollDown => 65,
        MouseEventKind::Down(pressed) | MouseEventKind::Up(pressed) => button(pressed),
        MouseEventKind::Drag(pressed) if modes.mouse == MouseReports::Drags => 32 + button(pressed),
        _ => return None,
    };
    let is_release = matches!(mouse.kind, MouseEventKind::Up(_));
    let (col, row) = (mouse.column - area.x + 1, mouse.row - area.y + 1);
    let bytes = if modes.has_sgr_mouse {
        format!("\x1b[<{code};{col};{row}{}", if is_release { 'm' } else { 'M' }).into_bytes()
    } else {
        let code: u8 = if is_release { 3 } else { code };
        let position = [u8::try_from(col + 32).ok()?, u8::try_from(row + 32).ok()?];
        [b"\x1b[M".as_slice(), &[code + 32], &position].concat()
    };
    Some(TerminalInput::Bytes(bytes))
}

/// The link or location under the mouse, unless a dialog covers it.
fn target_at(at: Position, app: &App, view: &ViewState) -> Option<Target> {
    let is_transcript = matches!(view.hits.at(at), Some((_, Hit::Transcript)));
    let is_free = is_transcript && !focus::takes_keys(app);
    view.transcript().filter(|_| is_free)?.target_at(at)
}

/// A drag or its end is input beside a question that it does not touch.
fn beside_question(at: Position, app: &App, view: &ViewState) -> Vec<Event> {
    let is_beside =
        matches!(view.hits.at(at), None | Some((_, Hit::Transcript | Hit::Composer | Hit::Terminal(_))));
    if app.guard.question().is_some() && is_beside { vec![Event::InputElsewhere] } else { Vec::new() }
}

fn on_click(at: Position, app: &App, view: &mut ViewState, now: Instant) -> Vec<Event> {
    if let Some(shown) = view.transcript_mut() {
        shown.clear_selection();
    }
    let Some((_, hit)) = view.hits.at(at) else { return Vec::new() };
    if app.guard.question().is_some() {
        match hit {
            Hit::Act(action @ (Action::Choose(_) | Action::Mark(_) | Action::Accept)) => {
                return vec![Event::Click(Some(action))];
            }
            Hit::MarkAnd(position, _) => return vec![Event::Click(Some(Action::Mark(position)))],
            Hit::Nothing => return vec![Event::Click(None)],
            Hit::Act(_) | Hit::Terminal(_) | Hit::Composer | Hit::Transcript => {}
        }
    }
    let mut events = beside_question(at, app, view);
    let actions = match hit {
        Hit::Act(action) => vec![action],
        Hit::MarkAnd(position, action) => vec![Action::Mark(position), action],
        Hit::Nothing | Hit::Terminal(_) => Vec::new(),
        Hit::Composer => {
            view.composer.click(at);
            // `Browse` toggles: this moves the focus back to the composer.
            match dialogs::base_focus(app) {
                Context::Browse => vec![Action::Browse],
                Context::Terminal => vec![Action::TypeIntoTerminal],
                _ => Vec::new(),
            }
        }
        // The action follows on release.
        Hit::Transcript => {
            if let Some(shown) = view.transcript_mut() {
                shown.press(at, now);
            }
            Vec::new()
        }
    };
    events.extend(actions.into_iter().map(Event::Act));
    events
}
