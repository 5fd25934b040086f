//! A session: its transcript, turn, plan, settings, open requests and queue.

mod budget;
mod echo;
mod held;
pub(in crate::core) mod index;
mod listed;
mod loose;
mod outbox;
mod permissions;
mod request;
mod resume;
mod secret_answer;
mod settings;
mod shell;
mod start;
mod title;
mod undo;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::model::{
    CallError, ConfigOption, ConnId, ContentBlock, Cost, GitInfo, ItemId, MessageId, Models, Modes, Plan,
    PlanBody, PlanStatus, PromptId, ProtectedFiles, RequestId, Role, SessionId, SessionKey, SessionWorkspace,
    SlashCommand, TemplateList, TerminalId, ToolCallId, ToolContent, ToolKind, TurnUsage, Usage,
};

use super::recorded::Loading;
use super::replay;
use crate::core::{ItemBody, Reading, RecorderState, Replay, TerminalView, ToolCall, Transcript, Unseen};
pub use budget::{DayBudget, TurnBudget};

pub use echo::Echo;
pub use held::{Held, HeldReview};
use index::ItemIndex;
pub use listed::ListedFiles;
pub use loose::Loose;
pub use outbox::{Handling, Outbox, Prompt, PromptState, Release};
pub use permissions::{Approval, ApproveAll, Permissions};
pub use request::*;
pub(in crate::core) use resume::Opened;
pub use resume::{ResumeConfidence, ResumeState};
pub use secret_answer::SecretAnswer;
pub use settings::{NamedSettings, SettingsState, Wanted};
pub use shell::{KnownOutput, UserShell};
pub use start::StartState;
pub use title::TitleState;
pub use undo::{Offer, RestoreOf, TurnChanges, Undo};

/// Number of items searched for a message id.
const MESSAGE_LOOKBACK: usize = 2_000;

/// A session, with or without a connected agent.
#[derive(Debug, Clone, PartialEq)]
pub struct Session {
    pub key: SessionKey,
    /// The agent's id, once known.
    pub id: Option<SessionId>,
    /// The connection to its agent, if any.
    pub conn: Option<ConnId>,
    pub workspace: SessionWorkspace,
    /// The title, if there is one.
    pub title: Option<String>,
    pub parent: Option<SessionKey>,
    pub phase: SessionPhase,
    pub turn: Turn,
    pub wait: UserWait,
    /// Number of turns so far; also the number of the running or last one.
    pub turn_count: u32,
    pub transcript: Transcript,
    /// Size of the content that was added since large texts were unloaded last, in bytes.
    pub grown_bytes: usize,
    /// The part of the record that is still being read.
    pub loading: Option<Loading>,
    pub terminals: BTreeMap<TerminalId, TerminalView>,
    pub shell: UserShell,
    pub terminal_waits: Vec<(ConnId, RequestId, TerminalId)>,
    /// Usually at most one.
    pub plans: Vec<Plan>,
    /// Whether it is a plan of an earlier turn that the agent has not taken up again.
    pub is_plan_abandoned: bool,
    pub modes: Option<Modes>,
    /// The models of agents without config options.
    pub models: Option<Models>,
    pub options: Vec<ConfigOption>,
    pub commands: Vec<SlashCommand>,
    pub templates: TemplateList,
    pub usage: Option<Usage>,
    /// The cost before the running turn, if known.
    pub cost_before: Option<Cost>,
    /// Tokens of the last turn.
    pub turn_usage: Option<TurnUsage>,
    /// Requests that wait for the user, oldest first; the first is shown.
    pub requests: VecDeque<OpenRequest>,
    /// The user's prompts that are not over.
    pub outbox: Outbox,
    /// The agent's echo of the last prompt.
    pub echo: Echo,
    pub draft: String,
    /// Drafts that were put aside, the last one at the end.
    pub stash: Vec<String>,
    /// Prompts of this folder, oldest first.
    pub history: Vec<String>,
    pub git: Option<GitInfo>,
    pub is_archived: bool,
    /// Whether updates were received outside a turn since the last prompt.
    pub has_background_news: bool,
    pub anomaly_count: u64,
    /// The last event while another tab was active, until the user looks at it.
    pub unseen: Option<Unseen>,
    /// Position of its tab: tabs are sorted by rank.
    pub rank: u64,
    pub listed_files: ListedFiles,
    pub resume: ResumeState,
    /// What it waits for before it is opened.
    pub start: StartState,
    pub settings: SettingsState,
    pub permissions: Permissions,
    pub title_state: TitleState,
    pub recorder: RecorderState,
    pub undo: Undo,
    pub held: Held,
    /// Paths that the sandbox likely refused in the last turn, and that can be opened.
    pub refused: Vec<PathBuf>,
    /// The protected files that existed when a turn began, once they are read, of turns whose end is not read yet.
    pub protected: BTreeMap<u32, Option<ProtectedFiles>>,
    pub budget: TurnBudget,
    /// What the user decided about secrets in prompts, by their hashes.
    pub secret_answers: BTreeMap<String, SecretAnswer>,
    /// Set if it is read-only: no agent, and nothing is recorded.
    pub read_only: Option<Reading>,
    pub replay: Replay,
    pub open_message: Option<ItemId>,
    /// The next item when the agent began a turn of its own accord.
    pub own_turn: Option<ItemId>,
    /// Finds the items of tool calls, terminals, compactions and subagents.
    pub index: ItemIndex,
    /// Items that a later tool call may absorb.
    pub loose: Loose,
    /// Parts of the work that the agent can cancel separately.
    pub can_cancel: BTreeSet<Part>,
}

impl Session {
    /// An empty session.
    pub fn new(key: SessionKey, workspace: SessionWorkspace) -> Self {
        Self {
            key,
            id: None,
            conn: None,
            workspace,
            title: None,
            parent: None,
            phase: SessionPhase::NoAgent,
            turn: Turn::Idle,
            wait: UserWait::default(),
            turn_count: 0,
            transcript: Transcript::default(),
            grown_bytes: 0,
            loading: None,
            terminals: BTreeMap::new(),
            shell: UserShell::default(),
            terminal_waits: Vec::new(),
            plans: Vec::new(),
            is_plan_abandoned: false,
            modes: None,
            models: None,
            options: Vec::new(),
            commands: Vec::new(),
            templates: TemplateList::default(),
            usage: None,
            cost_before: None,
            turn_usage: None,
            requests: VecDeque::new(),
            outbox: Outbox::default(),
            echo: Echo::default(),
            draft: String::new(),
            stash: Vec::new(),
            history: Vec::new(),
            git: None,
            is_archived: false,
            has_background_news: false,
            anomaly_count: 0,
            unseen: None,
            rank: key.0,
            listed_files: ListedFiles::default(),
            resume: ResumeState::default(),
            start: StartState::default(),
            settings: SettingsState::default(),
            permissions: Permissions::default(),
            title_state: TitleState::default(),
            recorder: RecorderState::default(),
            undo: Undo::default(),
            held: Held::default(),
            refused: Vec::new(),
            protected: BTreeMap::new(),
            budget: TurnBudget::default(),
            secret_answers: BTreeMap::new(),
            read_only: None,
            replay: Replay::None,
            open_message: None,
            own_turn: None,
            index: ItemIndex::default(),
            loose: Loose::default(),
            can_cancel: BTreeSet::new(),
        }
    }

    /// Clears all references to items, after the transcript was replaced.
    pub(in crate::core) fn forget_positions(&mut self) {
        self.index.clear();
        self.open_message = None;
        self.loose.clear();
        self.can_cancel.clear();
    }

    pub fn tool_call(&self, id: ItemId) -> Option<&ToolCall> {
        match self.transcript.get(id).map(|item| &item.body) {
            Some(ItemBody::Tool(call)) => Some(call),
            _ => None,
        }
    }

    /// The item of the tool call with this id in the running or last turn.
    pub fn current_tool(&self, id: &ToolCallId) -> Option<ItemId> {
        self.index.current_tool(id)
    }

    /// The item of the last tool call with this id.
    pub fn tool_by_id(&self, id: &ToolCallId) -> Option<ItemId> {
        self.index.tool(id)
    }

    /// The item of the message with this id, among the last ones.
    pub fn find_message(&self, role: Role, message: &MessageId) -> Option<ItemId> {
        let items = self.transcript.items().iter().rev();
        let is_it = |body: &ItemBody| matches!(body, ItemBody::Message(known) if known.role == role && known.message.as_ref() == Some(message));
        items.take(MESSAGE_LOOKBACK).find(|item| is_it(&item.body)).map(|item| item.id)
    }

    /// Whether all steps of the plan are done, or it has none.
    pub fn is_plan_over(&self) -> bool {
        let is_text = |plan: &Plan| !matches!(plan.body, PlanBody::Entries(_));
        self.is_plan_done() || !self.plans.is_empty() && self.plans.iter().all(is_text)
    }

    /// The plans that a request to carry out this call is about: those of the session if it has no text itself.
    pub fn asked_plans(&self, call: &ToolCall) -> &[Plan] {
        let is_text = |content: &ToolContent| matches!(content, ToolContent::Block(ContentBlock::Text(text)) if !text.trim().is_empty());
        let is_asked = call.kind == ToolKind::SwitchMode && !call.content.iter().any(is_text);
        if is_asked && !self.is_plan_abandoned { &self.plans } else { &[] }
    }

    pub fn is_plan_done(&self) -> bool {
        let mut steps = self.plans.iter().filter_map(|plan| match &plan.body {
            PlanBody::Entries(entries) if !entries.is_empty() => Some(entries),
            _ => None,
        });
        let mut has_steps = false;
        let is_done = steps.all(|entries| {
            has_steps = true;
            entries.iter().all(|entry| entry.status == PlanStatus::Completed)
        });
        has_steps && is_done
    }

    pub fn can_prompt(&self) -> bool {
        self.phase == SessionPhase::Ready
            && !self.turn.is_running()
            && self.id.is_some()
            && !self.holds_prompts()
            && !self.outbox.is_preparing()
    }

    /// Whether the session is open but prompts wait: for a replay or for settings to be confirmed, because agents
    /// handle several calls concurrently, or for the agent's commands.
    pub fn holds_prompts(&self) -> bool {
        self.pending_setting().is_some() || self.reads_history() || self.outbox.waits_for_commands()
    }

    /// Whether the record is being read, or compared with a history that the agent replays.
    pub fn reads_history(&self) -> bool {
        self.loading.as_ref().is_some_and(|loading| !loading.has_failed) || replay::holds_prompts(self)
    }

    pub(crate) fn unqueue(&mut self, id: PromptId) {
        let removed = self.outbox.remove(id);
        if removed.is_some_and(|prompt| prompt.is_next()) && matches!(self.turn, Turn::Cancelling { .. }) {
            // The turn was cancelled for that prompt only.
            self.outbox.hold();
        }
    }

    pub fn prompt_waits_for(&self) -> Option<&'static str> {
        self.pending_setting().filter(|_| self.outbox.queue_len() > 0)
    }

    /// The setting that prompts wait for: `mode`, `model` or `options`.
    pub fn pending_setting(&self) -> Option<&'static str> {
        self.settings.pending()
    }
}

#[derive(Debug, Clone, PartialEq)]
pub enum SessionPhase {
    /// No agent was chosen yet.
    NoAgent,
    Starting {
        since: Instant,
    },
    /// `session/new`, `load`, `resume` or `fork` is pending.
    Opening {
        since: Instant,
        is_replay: bool,
    },
    NeedsSignIn,
    Ready,
    /// It could not be opened.
    Failed(CallError),
    /// The agent has ended; the transcript stays.
    Ended {
        /// The reason in one sentence, with what to do next.
        cause: String,
    },
}

/// The running turn. It may end separately from the response to the prompt, depending on the dialect.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Turn {
    #[default]
    Idle,
    Running {
        since: Instant,
        /// Time of the last update.
        last_news: Instant,
    },
    Cancelling {
        since: Instant,
        cancelled_at: Instant,
        /// Whether the agent has not responded for 10 s.
        is_overdue: bool,
    },
}

/// How long a turn waited for answers of the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct UserWait {
    ended: Duration,
    /// When the present wait began.
    since: Option<Instant>,
}

impl UserWait {
    /// Notes whether the turn waits. Idempotent.
    pub fn follow(&mut self, waits: bool, now: Instant) {
        match self.since {
            None if waits => self.since = Some(now),
            Some(_) if !waits => *self = Self { ended: self.total(now), since: None },
            _ => {}
        }
    }

    /// Whether the turn waits now.
    pub fn is_open(&self) -> bool {
        self.since.is_some()
    }

    /// Begins anew with a turn.
    pub fn reset(&mut self) {
        *self = Self::default();
    }

    /// All of it until now.
    pub fn total(&self, now: Instant) -> Duration {
        self.ended + self.since.map_or(Duration::ZERO, |since| now.saturating_duration_since(since))
    }
}

impl Turn {
    /// Whether a turn is running, cancelled or not.
    pub fn is_running(&self) -> bool {
        !matches!(self, Self::Idle)
    }
}
