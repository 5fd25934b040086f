//! Updates dialogs after changes of the state they show.

use std::time::Instant;

use crate::core::Cx;
use crate::core::state::{FlashEnd, lookup, tab};
use crate::guard::Input;
use crate::ui::App;

use super::{inbox, leave, obstacle, question, requests, stack};

/// Handles the arrival of a key or click. `input`: what it is for a question; `None`: one of its effects tells.
pub fn on_input(app: &mut App, input: Option<Input>, cx: &mut Cx) {
    refresh(app);
    app.state.last_input = Some(cx.now);
    if let Some(input) = input {
        question::judge(app, input, cx);
    }
}

/// A frame was written to the terminal. `has_end`: the end of the top dialog is on the screen.
pub fn on_frame(app: &mut App, has_end: bool, now: Instant) {
    if let Some(question) = app.guard.question() {
        app.guard.shown(question, has_end, now);
        clear_notice(app);
    }
}

/// Resets `App::request_view` for another request, and tells the guard which question is on top. Idempotent; called
/// by `ui::update` after every event.
pub fn refresh(app: &mut App) {
    let sessions = &app.state.sessions;
    app.background.retain(|key, _| sessions.contains_key(key));
    app.views.follow(&app.state);
    stack::show_questions(app);
    inbox::refresh(app);
    requests::on_request_shown(app);
    requests::follow_call(app);
    leave::refresh_question(&mut app.state);
    question::refresh(app);
    clear_notice(app);
}

/// Clears a message in the status line that is no longer true.
fn clear_notice(app: &mut App) {
    let state = &mut app.state;
    let Some(text) = &state.flash else { return };
    let session = |key| state.sessions.get(&key);
    let is_true = match state.flash_end {
        FlashEnd::Time | FlashEnd::Start => true,
        FlashEnd::Turn(key) => session(key).is_some_and(|session| session.turn.is_running()),
        FlashEnd::Answer(key) => session(key).is_some_and(|session| !session.requests.is_empty()),
        FlashEnd::QuestionRead(_) if app.guard.shows_end() => false,
        FlashEnd::Question(id) | FlashEnd::QuestionRead(id) => {
            app.guard.question().is_some_and(|question| question.id == id)
        }
        FlashEnd::Hold(key, held) => session(key).is_some_and(|session| session.outbox.held() == held),
        FlashEnd::Shown(key) => lookup::root_of(state, key) != tab::front(state),
        FlashEnd::Available(action) => obstacle::obstacle(state, action) == Some(text.as_str()),
    };
    if !is_true {
        state.clear_flash();
        state.changes = state.changes.wrapping_add(1);
    }
}
