//! A session: its transcript, turn, plan, choices, open questions and queue.

pub(in crate::app) mod index;
mod loose;
mod permissions;
mod prompts;
mod resume;
mod settings;
mod start;
mod title;

use crate::app::ItemBody;
use crate::app::Replay;
use crate::model::FieldValue;
use crate::model::Role;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Instant;

use crate::model::{
    Access, AskId, AskReason, CallError, ConfigOption, ConnId, Cost, ElicitationRequest, FileJob, FoldRules,
    GitInfo, Grant, ItemId, MessageId, Models, Modes, PermissionRequest, Plan, PlanBody, PlanStatus,
    SessionId, SessionKey, SessionPlace, SlashCommand, TerminalCommand, TerminalId, ToolCallId, TurnUsage,
    Usage, WriteChange,
};

use super::outline::Only;
use super::replay::{self, Unread};
use super::search::Search;
use crate::app::{Pages, Reading, RecorderState, TabUi, TerminalView, ToolCall, Transcript, Unseen};
use index::{ItemIndex, Key};
pub use loose::Loose;
pub use permissions::{Approval, Permissions};
pub use prompts::PromptState;
pub use resume::{ResumeConfidence, ResumeState};
pub use settings::{SettingsState, Wanted};
pub use start::StartState;
pub use title::TitleState;

/// How many items are searched for a message id.
const MESSAGE_LOOKBACK: usize = 2_000;

/// A prompt whose turn failed, and which is offered to be sent again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedPrompt {
    /// As it was sent.
    pub text: String,
    /// Whether the agent may have it, because only its answer was lost: then it may run twice.
    pub may_have_arrived: bool,
}

/// A session, with or without a living agent.
#[derive(Debug, Clone, PartialEq)]
pub struct Session {
    /// Our number.
    pub key: SessionKey,
    /// The agent's name for it, once it has one.
    pub id: Option<SessionId>,
    /// Its agent's connection, if one is there.
    pub conn: Option<ConnId>,
    /// Where it works.
    pub place: SessionPlace,
    /// Title, if the agent gave one.
    pub title: Option<String>,
    /// The session that it is a subagent of.
    pub parent: Option<SessionKey>,
    /// How far it is.
    pub phase: SessionPhase,
    /// The running turn.
    pub turn: Turn,
    /// How many turns there were; the number of the running or last one.
    pub turn_count: u32,
    /// The items.
    pub transcript: Transcript,
    /// Which of them are in memory.
    pub pages: Pages,
    /// Terminals, by the id that tool calls name.
    pub terminals: BTreeMap<TerminalId, TerminalView>,
    /// Requests of the agent that wait for a terminal's end.
    pub terminal_waits: Vec<(ConnId, AskId, TerminalId)>,
    /// Plans; usually one.
    pub plans: Vec<Plan>,
    /// What the user chose for the plan panel: folded to one line or not; `None`: see
    /// [`Session::is_plan_folded`].
    pub plan_fold: Option<bool>,
    pub modes: Option<Modes>,
    /// Legacy models.
    pub models: Option<Models>,
    /// Config options.
    pub options: Vec<ConfigOption>,
    /// Slash commands.
    pub commands: Vec<SlashCommand>,
    /// Context and cost.
    pub usage: Option<Usage>,
    /// The cost before the running turn, if known.
    pub cost_before: Option<Cost>,
    /// Tokens of the last turn.
    pub turn_usage: Option<TurnUsage>,
    /// Requests that wait for the user, oldest first; the first is shown.
    pub asks: VecDeque<OpenRequest>,
    /// Prompts that wait for the turn's end, oldest first.
    pub queue: VecDeque<String>,
    /// The prompt of the last turn, if that failed in a way that may pass: it can be sent again.
    pub failed_prompt: Option<FailedPrompt>,
    /// What stands in the composer.
    pub draft: String,
    /// Prompts of this folder, oldest first.
    pub history: Vec<String>,
    /// Place in the history while browsing it, counted from its end; `None`: not browsing.
    pub history_index: Option<usize>,
    /// The draft from before browsing.
    pub history_stash: String,
    /// How its calls are folded, unless the user chose.
    pub folds: FoldRules,
    /// The marked item.
    pub selected: Option<ItemId>,
    /// The search that is open.
    pub search: Option<Box<Search>>,
    /// Only this is shown of the transcript.
    pub only: Option<Only>,
    /// The first and the last item on the screen when the user last wished something.
    pub reading: Option<(ItemId, ItemId)>,
    /// Branch and state of the folder.
    pub git: Option<GitInfo>,
    /// Whether the agent keeps it in its archive.
    pub is_archived: bool,
    /// Whether something came outside a turn since the last prompt.
    pub has_background_news: bool,
    /// How many anomalies there were on its connections.
    pub anomaly_count: u64,
    /// What happened last in it while another tab was in front, until it is looked at.
    pub unseen: Option<Unseen>,
    /// What its tab keeps while another one is in front.
    pub shelf: TabUi,
    /// The place of its tab among the others: smaller ones stand before it.
    pub rank: u64,
    /// The prompt of the running turn, and prompts that wait.
    pub prompts: PromptState,
    /// How it was opened, and what the agent has of it.
    pub resume: ResumeState,
    /// What it waits for before it is opened.
    pub start: StartState,
    /// Requested and chosen settings.
    pub settings: SettingsState,
    /// What the user has approved and granted.
    pub permissions: Permissions,
    /// Whether the user gave the title.
    pub title_state: TitleState,
    /// What is to be recorded.
    pub recorder: RecorderState,
    /// It is only read: no agent, nothing to record.
    pub read_only: Option<Reading>,
    /// How far a replay of the history is.
    pub replay: Replay,
    /// The part of a replay that is to be compared with earlier parts of the record.
    pub unread_replay: Option<Box<Unread>>,
    /// The message that chunks are appended to.
    pub open_message: Option<ItemId>,
    /// The items of tool calls, terminals, compactions and subagents.
    pub index: ItemIndex,
    /// Items that a tool call may still take over.
    pub loose: Loose,
    /// Parts of the work that the agent can cancel separately.
    pub can_cancel: BTreeSet<Part>,
}

impl Session {
    /// A session that nothing has happened to.
    pub fn new(key: SessionKey, place: SessionPlace) -> Self {
        Self {
            key,
            id: None,
            conn: None,
            place,
            title: None,
            parent: None,
            phase: SessionPhase::NoAgent,
            turn: Turn::Idle,
            turn_count: 0,
            transcript: Transcript::default(),
            pages: Pages::default(),
            terminals: BTreeMap::new(),
            terminal_waits: Vec::new(),
            plans: Vec::new(),
            plan_fold: None,
            modes: None,
            models: None,
            options: Vec::new(),
            commands: Vec::new(),
            usage: None,
            cost_before: None,
            turn_usage: None,
            asks: VecDeque::new(),
            queue: VecDeque::new(),
            failed_prompt: None,
            draft: String::new(),
            history: Vec::new(),
            history_index: None,
            history_stash: String::new(),
            folds: FoldRules::default(),
            selected: None,
            search: None,
            only: None,
            reading: None,
            git: None,
            is_archived: false,
            has_background_news: false,
            anomaly_count: 0,
            unseen: None,
            shelf: TabUi::default(),
            rank: key.0,
            prompts: PromptState::default(),
            resume: ResumeState::default(),
            start: StartState::default(),
            settings: SettingsState::default(),
            permissions: Permissions::default(),
            title_state: TitleState::default(),
            recorder: RecorderState::default(),
            read_only: None,
            replay: Replay::None,
            unread_replay: None,
            open_message: None,
            index: ItemIndex::default(),
            loose: Loose::default(),
            can_cancel: BTreeSet::new(),
        }
    }

    /// Forgets where items are, after the transcript was replaced.
    pub(in crate::app) fn forget_places(&mut self) {
        self.index.clear();
        self.selected = None;
        self.reading = None;
        let _ = self.transcript.take_touched();
        if let Some(search) = &mut self.search {
            search.opened = None;
            search.restart(None);
        }
        self.open_message = None;
        self.loose.clear();
        self.can_cancel.clear();
        drop(self.pages.forget());
    }

    /// The tool call that this item shows.
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

    /// The item that shows this.
    pub(in crate::app) fn item_of(&self, key: &Key<'_>) -> Option<ItemId> {
        match key {
            Key::Tool(id) => self.index.tool(id),
            Key::Compaction(id) => self.index.compaction(id),
            Key::Subagent(id) => self.index.subagent(id),
            Key::Terminal(id) | Key::OpenTerminal(id) => self.index.terminal(id),
            Key::Message(role, message) => self.find_message(*role, message),
        }
    }

    /// Whether this is in memory. A terminal may be there without an item.
    pub(in crate::app) fn has(&self, key: &Key<'_>) -> bool {
        match key {
            Key::Terminal(id) | Key::OpenTerminal(id) => self.terminals.contains_key(*id),
            key => self.item_of(key).is_some(),
        }
    }

    /// The item of the message with this id, among the last ones.
    pub fn find_message(&self, role: Role, message: &MessageId) -> Option<ItemId> {
        let items = self.transcript.items().iter().rev();
        let is_it = |body: &ItemBody| matches!(body, ItemBody::Message(known) if known.role == role && known.message.as_ref() == Some(message));
        items.take(MESSAGE_LOOKBACK).find(|item| is_it(&item.body)).map(|item| item.id)
    }

    /// Whether the plan panel is folded to one line: as the user chose, else once all is done and the turn has
    /// ended.
    pub fn is_plan_folded(&self) -> bool {
        self.plan_fold.unwrap_or_else(|| self.is_plan_done() && !self.turn.is_running())
    }

    /// Whether there is a plan of steps, and all of them are done.
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

    /// Whether a prompt would be sent at once.
    pub fn can_prompt(&self) -> bool {
        self.phase == SessionPhase::Ready
            && !self.turn.is_running()
            && self.id.is_some()
            && !self.holds_prompts()
    }

    /// Whether the session is open, but prompts wait: until it is again as it was, or until what was chosen holds,
    /// because agents work on several calls at once.
    pub fn holds_prompts(&self) -> bool {
        self.pending_setting().is_some() || replay::holds_prompts(self)
    }

    /// What the agent is to confirm before the prompt that waits is sent.
    pub fn prompt_waits_for(&self) -> Option<&'static str> {
        self.pending_setting().filter(|_| !self.queue.is_empty())
    }

    /// What prompts wait for the agent to confirm: `mode`, `model` or `options`.
    pub fn pending_setting(&self) -> Option<&'static str> {
        self.settings.pending()
    }
}

/// How far a session is.
#[derive(Debug, Clone, PartialEq)]
pub enum SessionPhase {
    /// No agent was chosen yet.
    NoAgent,
    /// The agent starts.
    Starting {
        /// Since when.
        since: Instant,
    },
    /// `session/new`, `load`, `resume` or `fork` is under way.
    Opening {
        /// Since when.
        since: Instant,
        /// Whether the history is being replayed.
        is_replay: bool,
    },
    /// The agent wants a sign-in first.
    NeedsSignIn,
    /// Ready for prompts.
    Ready,
    /// It could not be opened.
    Failed(CallError),
    /// The agent is gone; the transcript stays.
    Ended {
        /// Why, in one sentence with what to do next.
        cause: String,
    },
}

/// The running turn. The end of a turn is not the reply to the prompt: some dialects tell it apart.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Turn {
    #[default]
    Idle,
    /// The agent works.
    Running {
        /// Since when.
        since: Instant,
        /// When something last came.
        last_news: Instant,
    },
    /// A cancel was sent.
    Cancelling {
        /// Since when the turn runs.
        since: Instant,
        /// When the cancel was sent.
        cancelled_at: Instant,
        /// Whether the agent has not answered for 10 s.
        is_overdue: bool,
    },
}

impl Turn {
    /// Whether a turn runs, cancelled or not.
    pub fn is_running(&self) -> bool {
        !matches!(self, Self::Idle)
    }
}

/// A request that waits for the user.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenRequest {
    pub conn: ConnId,
    pub ask: AskId,
    pub kind: OpenRequestKind,
    /// When it came.
    pub since: Instant,
}

/// What waits for the user.
#[allow(clippy::large_enum_variant, reason = "few are open at a time, and nearly all are permissions")]
#[derive(Debug, Clone, PartialEq)]
pub enum OpenRequestKind {
    /// A permission. The tool call itself is the item `tool`.
    Permission {
        request: PermissionRequest,
        /// The item of its tool call.
        tool: ItemId,
    },
    /// A question or a page.
    Elicitation(ElicitationRequest),
    /// A file or command that the policy asks about.
    Access(Box<AccessRequest>),
}

/// A file or command that the user is asked about.
#[derive(Debug, Clone, PartialEq)]
pub struct AccessRequest {
    /// What waits for the answer.
    pub work: AccessWork,
    /// What it would do, with all links followed.
    pub access: Access,
    /// Why the user is asked.
    pub why: AskReason,
    /// What a write would change.
    pub change: Option<WriteChange>,
    /// The same as a call, to be shown.
    pub call: Box<ToolCall>,
    /// What an answer that holds longer would grant.
    pub grant: Option<Grant>,
    /// Whether all commands of the agent may be allowed for the session.
    pub offers_all_commands: bool,
    /// The agent's name.
    pub agent: String,
}

/// What waits for the user's answer.
#[derive(Debug, Clone, PartialEq)]
pub enum AccessWork {
    /// A file job.
    File(FileJob),
    /// A command, for this session.
    Run(SessionKey, TerminalCommand),
}

/// A part of the work that the agent can stop by itself.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// A tool call.
    Tool(ToolCallId),
    /// A command of the agent's own.
    Terminal(TerminalId),
    /// A subagent.
    Child(SessionId),
}

/// An answer to an elicitation.
#[derive(Debug, Clone, PartialEq)]
pub enum ElicitationOutcome {
    /// Accepted; `None` for a page, whose address is then opened.
    Accept(Option<Vec<(String, FieldValue)>>),
    /// Declined.
    Decline,
    Cancel,
}
