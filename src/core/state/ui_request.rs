//! What the core asks of front ends with dialogs.

use crate::model::{Action, ConnId, ItemId, SessionKey};

/// What the layers below the dialogs ask of them: to open or close a dialog, to show a change, or to run an action that
/// waited.
#[derive(Debug, Clone, PartialEq)]
pub enum UiRequest {
    AgentPicker,
    /// A prompt needs an agent: the same, unless a dialog is open.
    AgentForPrompt,
    /// The sign-in methods of an agent.
    SignIn {
        conn: ConnId,
        /// The session that requires it; `None`: a prompt of the active one, unless a dialog is open.
        session: Option<SessionKey>,
    },
    /// The list of agents closes: one was chosen elsewhere.
    CloseAgents,
    /// The agents that can be started have changed.
    AgentsChanged,
    /// It is known which agents were used before; the one to mark, if any.
    AgentsUsed(Option<String>),
    /// The last session of the folder can be offered.
    LastSessionFound,
    /// The open sessions, or those that the agent lists, have changed.
    SessionsChanged,
    /// A stored session has this title, if given; and whether its agent does not have it.
    SavedTitle(String, Option<String>, bool),
    /// A stored session was deleted.
    SavedGone(String),
    Rewind(SessionKey, ItemId, RewindWay),
    /// It is known what an undo or redo would restore.
    Undo(SessionKey),
    /// The core has changed the draft of a session.
    DraftChanged(SessionKey),
    /// An item that a search over all sessions found; its matches are between `\u{2}` and `\u{3}` in the snippet.
    ShowFound {
        session: SessionKey,
        item: ItemId,
        snippet: String,
    },
    Act(Action),
    /// A command that was selected in a list, and the filter of the list that it opens.
    Command(Action, String),
}

/// How to go back to an earlier prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RewindWay {
    /// Edits the prompt again in the same session.
    Edit,
    /// Edits it in a copy of the session, up to the end of this turn or complete.
    Fork(Option<u32>),
    /// Edits it in a new session, with the conversation before it.
    HandOver,
    /// Restores the files as they were before it.
    Files,
    /// Undoes what its turn has changed in files, and no later turn.
    FilesOfTurn,
    /// Restores the files, then edits it in a copy of the session.
    FilesAndFork(Option<u32>),
    /// Only shows it.
    Show,
}
