//! The mouse: what lies under it, by the hit map of the last frame.

use std::time::Instant;

use ratatui::crossterm::event::{MouseButton, MouseEvent, MouseEventKind};
use ratatui::layout::Position;

use crate::app::user::{self, Focus};
use crate::app::{Event, State};
use crate::model::Action;
use crate::ui::modals;
use crate::ui::view_state::{Hit, ViewState};

/// Lines per step of the wheel.
const WHEEL_LINES: i16 = 3;

/// Wheel and left button; moves and the other buttons do nothing.
pub(super) fn on_mouse(mouse: MouseEvent, state: &State, view: &mut ViewState, now: Instant) -> Vec<Event> {
    let scroll = |lines: i16| vec![Event::Act(Action::Scroll(lines))];
    match mouse.kind {
        // Reading is no answer: the wheel does not hold the grace period up.
        MouseEventKind::ScrollUp => scroll(-WHEEL_LINES),
        MouseEventKind::ScrollDown => scroll(WHEEL_LINES),
        MouseEventKind::Down(MouseButton::Left) => {
            let mut events = vec![Event::Input];
            events.extend(
                on_click(Position::new(mouse.column, mouse.row), state, view, now)
                    .into_iter()
                    .map(Event::Act),
            );
            events
        }
        _ => Vec::new(),
    }
}

fn on_click(at: Position, state: &State, view: &mut ViewState, now: Instant) -> Vec<Action> {
    let Some((area, hit)) = view.hits.at(at) else { return Vec::new() };
    // A dialog that has just come up lies over what the click was meant for.
    let is_dialog = user::focus(state) != Focus::Main;
    if is_dialog && !modals::takes_keys(state, now) {
        return Vec::new();
    }
    match hit {
        Hit::Act(action) => vec![action],
        Hit::MarkAnd(place, action) => vec![Action::Mark(place), action],
        Hit::Nothing => Vec::new(),
        Hit::Composer => {
            view.composer.click(at);
            Vec::new()
        }
        Hit::Transcript => {
            let item = view.transcript().and_then(|shown| shown.item_at(at.y - area.y));
            item.map(Action::ToggleItem).into_iter().collect()
        }
    }
}
