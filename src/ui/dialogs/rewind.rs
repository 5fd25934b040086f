//! Going back to an earlier prompt of the session: its text is edited again, here or in another session.
//!
//! Invariants: the session itself is neither changed nor removed; the dialog says what the agent keeps and that files are
//! not reverted.

use crate::core::lifecycle::operations;
use crate::core::state::changes;
use crate::core::state::place;
use crate::core::{Consequence, Cx, Effect, ItemBody, MessagePart, Question, RewindWay, Session, State};
use crate::model::{Action, Attachment, ItemId, SessionKey};
use crate::ui::App;
use crate::ui::text::counted;

use super::layer::Flow;
use super::notice::notify;
use super::picker::{List, Picker};
use super::{draft, jump, obstacle, undo};

/// Maximum number of changed files that are named.
const MAX_FILES: usize = 4;
/// Maximum number of characters of the prompt in the dialog.
const MAX_CHARS: usize = 200;

/// The prompts of the session.
#[derive(Debug)]
pub struct Rewind;

impl List for Rewind {
    type Item = ItemId;

    fn pick(&mut self, id: ItemId, app: &mut App, _cx: &mut Cx) -> Flow {
        choose(&mut app.state, id);
        Flow::Close
    }
}

/// Lists the prompts of the session, with the last one selected.
pub fn open(app: &mut App, cx: &mut Cx) {
    if operations::waits_for_whole(&mut app.state, Action::Rewind) {
        return;
    }
    let Some(session) = app.state.active_session() else { return };
    let Some((mut rows, note)) = jump::item_rows(app.shown(), session, jump::is_prompt) else {
        notify(&mut app.state, jump::EMPTY, cx);
        return;
    };
    for (row, _) in &mut rows {
        row.label = row.label.split_off(jump::KIND_COLS);
    }
    let last = rows.len() - 1;
    let mut list = Picker::new(Rewind, "Go back to a prompt", rows).noting(note);
    list.view.selected = last;
    app.layers.open(list);
}

/// Asks how to go back to this prompt.
fn choose(state: &mut State, id: ItemId) {
    let Some(session) = state.active_session() else { return };
    let key = session.key;
    let Some(prompt) = prompt_of(session, id) else { return };
    let turn = session.transcript.get(id).map_or(0, |item| item.turn);
    let can = state.conn_of(key).map(crate::core::Conn::capabilities).unwrap_or_default();
    let can_fork = can.can_fork && session.id.is_some();
    let has_agent = operations::agent_of(state, key).is_some();
    let is_first = !has_prompt_before(session, id);

    let body = vec![format!("“{}”", shortened(&prompt)), files_text(state, key, id)];
    let mut answers = Vec::new();
    let mut offer = |way, label: &str, cost: &str| {
        let label = format!("{label}\n{cost}").trim_end().to_owned();
        answers.push((label, Consequence::Rewind(key, id, way)));
    };
    if session.parent.is_none() {
        offer(RewindWay::Edit, "Edit it here", "Sends a new prompt. The agent keeps its context.");
    }
    if session.parent.is_none() && can_fork && can.can_fork_at_turn && turn > 1 {
        let cost = "Copies the session up to this prompt.";
        offer(RewindWay::Fork(Some(turn - 1)), "Fork before it, and edit it there", cost);
    } else if session.parent.is_none() && can_fork {
        let cost = "Copies all of the session. The agent cannot copy only a part.";
        offer(RewindWay::Fork(None), "Fork the whole session, and edit it there", cost);
    }
    if session.parent.is_none() && has_agent && is_first {
        offer(RewindWay::HandOver, "Edit it in a new session", "The agent starts with an empty context.");
    } else if session.parent.is_none() && has_agent {
        let cost = "Sends the conversation before this prompt with it, without tool output.";
        offer(RewindWay::HandOver, "Edit it in a new session with this conversation", cost);
    }
    let turns = undo::turns_since(session, id);
    if !turns.is_empty() && obstacle::obstacle(state, Action::UndoTurn).is_none() {
        let cost = format!(
            "Shows the files first. Undoes {}; the conversation stays.",
            counted(turns.len(), "turn", "turns")
        );
        offer(RewindWay::Files, "Restore the files", &cost);
        if turns.len() > 1 && turns.first() == Some(&turn) {
            let cost = "Shows the files first. What later turns changed stays.";
            offer(RewindWay::FilesOfTurn, "Undo only the file changes of this turn", cost);
        }
        if session.parent.is_none() && can_fork && can.can_fork_at_turn && turn > 1 {
            let cost = "Shows the files first. Copies the session up to this prompt.";
            offer(
                RewindWay::FilesAndFork(Some(turn - 1)),
                "Restore the files, and fork before the prompt",
                cost,
            );
        }
    }
    offer(RewindWay::Show, "Show it in the transcript", "");
    state.ask(key, Question::new("Go back to this prompt", body, answers));
}

/// Goes back to a prompt in the chosen way.
pub fn go_back(app: &mut App, key: SessionKey, id: ItemId, way: RewindWay, cx: &mut Cx) {
    let Some(session) = app.state.sessions.get(&key) else { return };
    let Some(prompt) = prompt_of(session, id) else { return };
    if way != RewindWay::Show
        && let Some(ItemBody::Message(message)) = session.transcript.get(id).map(|item| &item.body)
    {
        // The files of old pastes are removed after some time.
        cx.effects
            .extend(message.pasted_texts().map(|text| Effect::SaveAttachment(Attachment::of_text(text))));
    }
    match way {
        RewindWay::Show => return jump::go_to(app, id, cx),
        RewindWay::Edit => return draft::recall(app, prompt, cx),
        RewindWay::Files | RewindWay::FilesOfTurn | RewindWay::FilesAndFork(_) => {
            return undo::undo_since(app, key, id, way, cx);
        }
        RewindWay::Fork(turn) => operations::fork_session(&mut app.state, key, turn, cx),
        RewindWay::HandOver => operations::hand_over_before(&mut app.state, key, id, cx),
    }
    if app.state.active != key {
        draft::set_draft(app, prompt, cx);
    }
}

/// The text of a prompt as the user wrote it, with labels of pasted texts.
pub(super) fn prompt_of(session: &Session, id: ItemId) -> Option<String> {
    let ItemBody::Message(message) = &session.transcript.get(id)?.body else { return None };
    let label = |text: &str| Attachment::of_text(text).label();
    let texts = message.parts.iter().enumerate().filter_map(|(position, part)| match part {
        MessagePart::Text(text) => Some(message.with_labels(position, text, label)),
        MessagePart::Block(_) => None,
    });
    let all = texts.collect::<Vec<_>>().join("\n");
    Some(place::without_context(&all).to_owned())
}

fn has_prompt_before(session: &Session, id: ItemId) -> bool {
    let position = session.transcript.index_of(id).unwrap_or(0);
    let before = session.transcript.items().get(..position).unwrap_or_default();
    session.loading.is_some() || before.iter().any(jump::is_prompt)
}

pub(super) fn shortened(prompt: &str) -> String {
    let line = prompt.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
        None => line,
    }
}

/// What the user should know about files: those that are known to have changed since the prompt.
fn files_text(state: &State, key: SessionKey, id: ItemId) -> String {
    let files = changes::changed_since(state, key, id);
    let folder = state.sessions.get(&key).map(|session| session.workspace.folder().to_owned());
    let name = |path: &std::path::PathBuf| {
        let short = folder.as_ref().and_then(|folder| path.strip_prefix(folder).ok()).unwrap_or(path);
        short.display().to_string()
    };
    let mut names: Vec<String> = files.iter().take(MAX_FILES).map(name).collect();
    if let Some(more) = files.len().checked_sub(MAX_FILES).filter(|more| *more > 0) {
        names.push(format!("{more} more"));
    }
    match names.as_slice() {
        [] => "Files that were changed since then are not reverted.".to_owned(),
        names => format!("Files that were changed since then are not reverted: {}.", names.join(", ")),
    }
}
