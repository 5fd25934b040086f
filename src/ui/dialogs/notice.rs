//! Messages in the status line.

use std::time::Duration;

use crate::core::lifecycle::operations;
use crate::core::state::FlashEnd;
use crate::core::{Cx, Effect, QuestionId, State, TimerId, UserAnswer};
use crate::model::Action;

/// Time for which a message is shown in the status line.
const FLASH: Duration = Duration::from_secs(4);

/// Shows a message in the status line for a while.
pub fn notify(state: &mut State, text: impl Into<String>, cx: &mut Cx) {
    state.set_flash(text.into(), FlashEnd::Time);
    cx.effects.push(Effect::Timer(TimerId::Flash, FLASH));
}

/// Answers a question, or shows why this is not possible.
pub(super) fn answer(state: &mut State, id: QuestionId, answer: UserAnswer, cx: &mut Cx) {
    if let Err(why) = operations::answer(state, id, answer, cx) {
        notify(state, why, cx);
    }
}

/// Shows why an action is not available, until it is.
pub(super) fn notify_obstacle(state: &mut State, action: Action, why: &str, cx: &mut Cx) {
    state.set_flash(why.to_owned(), FlashEnd::Available(action));
    cx.effects.push(Effect::Timer(TimerId::Flash, FLASH));
}
