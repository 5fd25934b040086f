//! Deletes the turn of the selected item, or the last one, from the record.

use super::notice::notify;
use crate::core::lifecycle::operations;
use crate::core::{Consequence, Cx, Question};
use crate::ui::App;

use super::{jump, rewind};

pub fn ask(app: &mut App, cx: &mut Cx) {
    let selected = app.shown().selected;
    let state = &mut app.state;
    let Some(session) = state.active_session() else { return };
    let key = session.key;
    let selected = selected.and_then(|id| session.transcript.get(id)).map(|item| item.turn);
    let turn = selected.unwrap_or(session.turn_count);
    if let Err(why) = operations::deletable(state, key, turn) {
        return notify(state, why, cx);
    }
    let mut prompts =
        session.transcript.items().iter().filter(|item| item.turn == turn && jump::is_prompt(item));
    let prompt = prompts.next().and_then(|item| rewind::prompt_of(session, item.id)).unwrap_or_default();
    let body = vec![
        format!("“{}”", rewind::shortened(&prompt)),
        "Deletes the prompt and everything up to the next one. This cannot be undone.".to_owned(),
        "The agent still has the turn, and may send it again when you resume the session.".to_owned(),
    ];
    let answers = [("Delete", Consequence::DeleteTurn(key, turn)), ("Cancel", Consequence::Close)];
    let title = format!("Delete turn {turn} from the record?");
    state.ask(key, Question::new(title, body, answers).marking_last());
}
