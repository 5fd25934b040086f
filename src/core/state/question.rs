//! Questions to the user: the answers to all of them, and those that parlor asks itself.
//!
//! A question belongs to a session, whose tab shows it, and is answered through `lifecycle::questions`, whatever shows it.
//! The requests of agents are in `session::request`.
//! Invariant: an open question of parlor has at least one answer.

use std::path::PathBuf;
use std::time::Instant;

use serde::Serialize;

use super::ui_request::RewindWay;
use crate::core::{ApproveAll, Effect, OpenRequest, SecretAnswer, State};
use crate::guard;
use crate::model::{
    AgentSpec, ConnId, FieldValue, Grant, GrantScope, ItemId, Limit, PromptId, RegistryAgent, RequestId,
    SessionId, SessionInfo, SessionKey,
};

/// A question that was asked. No two have the same id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum QuestionId {
    /// A [`Question`] of parlor.
    Parlor(u64),
    /// An [`OpenRequest`] of an agent.
    Agent(RequestId),
}

/// An answer of the user.
#[derive(Debug, Clone, PartialEq)]
pub enum UserAnswer {
    /// The answer at this position. For an address to open, these are [`URL_OPTIONS`].
    Option(usize),
    /// The values of a form.
    Values(FormValues),
    /// Refuses what is asked.
    Decline,
    /// Closes the question, which allows nothing.
    Dismiss,
}

/// The values of a form that are set, by the keys of their fields.
pub type FormValues = Vec<(String, FieldValue)>;

pub(in crate::core) const CLOSED: &str = "The question is closed: it was answered or withdrawn.";
pub(in crate::core) const NO_SUCH_ANSWER: &str = "Select an answer first, or type its number.";

/// The answers to a request to open an address, in the dialog's order.
pub const URL_OPTIONS: [&str; 2] = ["Open in browser", "Decline"];

#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    pub id: QuestionId,
    pub session: SessionKey,
    pub title: String,
    /// What happened and why.
    pub body: Vec<String>,
    pub answers: Vec<Answer>,
    /// The answer that is marked first.
    pub first: usize,
    /// When parlor asked without an action of the user, so that [`crate::guard`] decides which keys answer it.
    pub asked_at: Option<Instant>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// Further lines explain the answer.
    pub label: String,
    pub consequence: Consequence,
}

/// What an answer does.
#[derive(Debug, Clone, PartialEq)]
pub enum Consequence {
    /// Nothing changes.
    Close,
    /// Only this.
    Effect(Box<Effect>),
    Quit,
    /// Quits parlor, after a question if something would be lost.
    AskToQuit,
    /// Kills the agent's process immediately.
    ForceStop(ConnId),
    Restart(SessionKey),
    CloseSession(SessionKey),
    Servers(PathBuf, TrustAnswer),
    Project(TrustAnswer),
    Templates {
        session: SessionKey,
        /// The files in which the answers are saved, each with the template that it is about.
        answers: Vec<(PathBuf, PathBuf)>,
        answer: TrustAnswer,
    },
    /// Signs in to an SSH host that requires interaction.
    SignInToHost(ConnId),
    /// Runs a sign-in command with additional variables.
    RunLogin(ConnId, Box<AgentSpec>, Vec<(String, String)>),
    /// Opens a session from the agent's list, as it was shown: with or without its additional folders as roots.
    OpenListed(Box<SessionInfo>, bool),
    /// Installs an agent, with the packages whose install scripts run.
    Install(Box<RegistryAgent>, Vec<String>),
    StartAgent(Box<AgentSpec>),
    DeleteSession(SessionId),
    /// Deletes the stored session, and the agent's one if given.
    DeleteSaved(String, Option<SessionId>),
    GoOnIn(SessionKey, PathBuf),
    /// Continues a read-only session in a folder that was renamed, and moves its other sessions.
    MoveAllTo(SessionKey, PathBuf),
    DeleteTurn(SessionKey, u32),
    /// Copies a session at the end of this turn, or completely.
    Fork(SessionKey, Option<u32>),
    Rewind(SessionKey, ItemId, RewindWay),
    ApproveAll(SessionKey, ApproveAll),
    /// Continues in spite of a limit, and sends the prompt that waits because of it.
    PassLimit(SessionKey, Limit, Option<PromptId>),
    /// What happens to secrets in a prompt, known by their hashes.
    Secrets(SessionKey, PromptId, SecretAnswer, Vec<String>),
    CancelTurn(SessionKey),
    /// Asks how long a path stays open in the sandbox.
    ChoosePath(SessionKey, Grant),
    /// Opens a path in the sandbox, and restarts the agent.
    OpenPath(SessionKey, Grant, GrantScope),
    /// Adds rules that allow a request, and allows it.
    AllowByRules(RequestId, Vec<String>, GrantScope),
}

/// The user's decision about files of a folder: its MCP servers, configuration or templates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrustAnswer {
    /// Use them until they change.
    Use,
    /// Do not use them until they change.
    LeaveOut,
    /// Do not use them this time.
    NotNow,
}

impl Consequence {
    pub fn effect(effect: Effect) -> Self {
        Self::Effect(Box::new(effect))
    }

    pub fn reach(&self) -> guard::Effect {
        match self {
            Self::Close => guard::Effect::Reject,
            Self::Servers(_, answer) | Self::Project(answer) | Self::Templates { answer, .. } => match answer
            {
                TrustAnswer::NotNow => guard::Effect::Reject,
                TrustAnswer::Use | TrustAnswer::LeaveOut => guard::Effect::Lasting,
            },
            Self::ApproveAll(..) | Self::AllowByRules(..) | Self::OpenPath(..) => guard::Effect::Lasting,
            _ => guard::Effect::Once,
        }
    }

    /// Whether it can start a program, so that the end of the question has to be seen before.
    fn runs_something(&self) -> bool {
        matches!(
            self,
            Self::Servers(..)
                | Self::Project(_)
                | Self::Templates { .. }
                | Self::RunLogin(..)
                | Self::Install(..)
        )
    }
}

impl Question {
    /// A question that an action of the user causes.
    pub fn new<L: Into<String>>(
        title: impl Into<String>,
        body: Vec<String>,
        answers: impl IntoIterator<Item = (L, Consequence)>,
    ) -> Self {
        let answer = |(label, consequence): (L, Consequence)| Answer { label: label.into(), consequence };
        Self {
            id: QuestionId::Parlor(0),
            session: SessionKey(0),
            title: title.into(),
            body,
            answers: answers.into_iter().map(answer).collect(),
            first: 0,
            asked_at: None,
        }
    }

    /// A question about files of a folder. Closing it means: not this time.
    pub fn about_files(
        title: &str,
        body: Vec<String>,
        until: &str,
        consequence: impl Fn(TrustAnswer) -> Consequence,
        now: Instant,
    ) -> Self {
        let answers = [
            ("Not now".to_owned(), consequence(TrustAnswer::NotNow)),
            (format!("Allow until {until}"), consequence(TrustAnswer::Use)),
            (format!("Ignore until {until}"), consequence(TrustAnswer::LeaveOut)),
        ];
        Self::new(title, body, answers).asked_at(now)
    }

    #[must_use]
    pub fn asked_at(self, now: Instant) -> Self {
        Self { asked_at: Some(now), ..self }
    }

    /// With the last answer marked first.
    #[must_use]
    pub fn marking_last(self) -> Self {
        Self { first: self.answers.len().saturating_sub(1), ..self }
    }

    pub fn runs_something(&self) -> bool {
        self.answers.iter().any(|answer| answer.consequence.runs_something())
    }
}

impl State {
    pub fn question(&self, id: QuestionId) -> Option<&Question> {
        self.questions.iter().find(|question| question.id == id)
    }

    /// An open request of an agent, and the session whose tab shows it.
    pub fn open_request(&self, id: RequestId) -> Option<(SessionKey, &OpenRequest)> {
        self.sessions.values().find_map(|session| {
            let open = session.requests.iter().find(|open| open.request_id == id)?;
            Some((session.key, open))
        })
    }

    /// Asks a question in the tab of a session.
    pub fn ask(&mut self, session: SessionKey, question: Question) {
        self.next.question += 1;
        let id = QuestionId::Parlor(self.next.question);
        self.questions.push(Question { id, session, ..question });
    }

    /// Removes questions with a consequence that no longer applies.
    pub(crate) fn withdraw(&mut self, is_moot: impl Fn(&Consequence) -> bool) {
        self.questions.retain(|question| !question.answers.iter().any(|answer| is_moot(&answer.consequence)));
    }

    pub(in crate::core) fn is_asked(&self, is_it: impl Fn(&Consequence) -> bool) -> bool {
        self.questions.iter().any(|question| question.answers.iter().any(|answer| is_it(&answer.consequence)))
    }
}
