//! A question with a few answers.

use std::path::PathBuf;
use std::time::Instant;

use super::TrustAnswer;
use crate::model::{
    AgentSpec, ConfigJob, ConnId, CopyJob, ExportForm, ItemId, Location, RegistryAgent, SessionId,
    SessionInfo, SessionKey,
};

/// A question with numbered answers.
#[derive(Debug, Clone, PartialEq)]
pub struct ChoiceDialog {
    pub title: String,
    /// What happened and why; may be scrolled.
    pub body: Vec<String>,
    pub choices: Vec<Choice>,
    pub selected: usize,
    /// When parlor opened it, so that [`crate::guard`] decides which keys it gets; `None` if the user opened it.
    pub opened_by_itself: Option<Instant>,
}

/// An answer of a [`ChoiceDialog`].
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    /// The answer. Further lines explain it.
    pub label: String,
    pub outcome: ChoiceOutcome,
}

/// The effect of a choice.
#[derive(Debug, Clone, PartialEq)]
pub enum ChoiceOutcome {
    /// Only closes the dialog.
    Close,
    Quit,
    /// Quits parlor, after a question if something would be lost.
    AskToQuit,
    /// Kills the agent's process immediately.
    ForceStop(ConnId),
    OpenFile(Location),
    Restart(SessionKey),
    CloseSession(SessionKey),
    AnswerServers(PathBuf, TrustAnswer),
    AnswerProject(TrustAnswer),
    AnswerTemplates {
        session: SessionKey,
        /// The files in which the answers are saved, each with the template that it is about.
        answers: Vec<(PathBuf, PathBuf)>,
        answer: TrustAnswer,
    },
    /// Signs in to an SSH host that requires interaction.
    SignInToHost(ConnId),
    /// Runs a sign-in command with additional variables.
    RunLogin(ConnId, Box<AgentSpec>, Vec<(String, String)>),
    /// Opens a session from the agent's list, as it was shown: with or without its additional folders.
    OpenListed {
        info: Box<SessionInfo>,
        /// Whether its additional folders become roots.
        with_folders: bool,
    },
    /// Changes the configuration, or applies a changed one.
    Configure(ConfigJob),
    OpenUrl(String),
    Copy(CopyJob),
    /// Installs an agent, with the packages whose install scripts run.
    Install(Box<RegistryAgent>, Vec<String>),
    CancelInstall,
    StartAgent(Box<AgentSpec>),
    DeleteSession(SessionId),
    /// Deletes the stored session, and the agent's one if `listed` is given.
    DeleteSaved {
        uid: String,
        listed: Option<SessionId>,
    },
    GoOnIn(SessionKey, std::path::PathBuf),
    /// Continue a read-only session in a folder that was renamed, and move its other sessions.
    MoveAllTo(SessionKey, std::path::PathBuf),
    DeleteTurn(SessionKey, u32),
    /// Exports a stored session to a file.
    Export(String, ExportForm),
    /// Copies a session at the end of this turn, or completely.
    Fork(SessionKey, Option<u32>),
    /// Goes back to a prompt of a session.
    Rewind(SessionKey, ItemId, RewindWay),
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
    /// Only shows it.
    Show,
}
