//! Deletes the turn of the selected item, or the last one, from the record.

use super::notice::notify;
use crate::app::lifecycle::operations;
use crate::app::{Choice, ChoiceDialog, ChoiceOutcome, Effect, Modal, State};

use super::{jump, rewind};

pub fn ask(state: &mut State, fx: &mut Vec<Effect>) {
    let Some(session) = state.active_session() else { return };
    let key = session.key;
    let selected = session.selected.and_then(|id| session.transcript.get(id)).map(|item| item.turn);
    let turn = selected.unwrap_or(session.turn_count);
    if let Err(why) = operations::deletable(state, key, turn) {
        return notify(state, why, fx);
    }
    let mut prompts =
        session.transcript.items().iter().filter(|item| item.turn == turn && jump::is_prompt(item));
    let prompt = prompts.next().and_then(|item| rewind::prompt_of(session, item.id)).unwrap_or_default();
    state.modals.push(Modal::Choice(ChoiceDialog {
        title: format!("Delete turn {turn} from the record?"),
        body: vec![
            format!("“{}”", rewind::shortened(&prompt)),
            "Deletes the prompt and everything up to the next one. This cannot be undone.".to_owned(),
            "The agent still has the turn, and may send it again when you resume the session.".to_owned(),
        ],
        choices: vec![
            Choice { label: "Delete".to_owned(), outcome: ChoiceOutcome::DeleteTurn(key, turn) },
            Choice { label: "Cancel".to_owned(), outcome: ChoiceOutcome::Close },
        ],
        selected: 1,
        opened_by_itself: None,
    }));
}
