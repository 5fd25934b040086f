//! The items of a transcript, in order of first appearance, each updated by its id.

mod items;

use std::collections::HashSet;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::Serialize;

use super::duplicate_diffs::KnownChanges;
use crate::model::{
    AccessRecord, ContentBlock, Cost, Decider, DiffChange, DiffPosition, ExitInfo, FaultKind, FileDiff,
    Growing, ItemId, LocatedDiff, Location, MessageId, NoticeKind, Patch, PermissionKind, Raw, Role,
    SessionId, SessionKey, Severity, StopReason, TerminalModes, TerminalSize, ToolCallId, ToolContent,
    ToolInput, ToolKind, ToolStatus, TurnUsage, with_labels,
};

pub use items::{Mark, Rank, Transcript};

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Item {
    pub id: ItemId,
    /// Bumped on each change; a cached drawing is valid for one revision.
    #[serde(skip)]
    pub rev: u32,
    /// The turn of the item; 0 before the first.
    pub turn: u32,
    /// Number of consecutive occurrences; greater than 1 only for notices.
    pub times: u32,
    /// The end of its turn, if it is the last visible item of the turn.
    pub end: Option<Box<TurnSummary>>,
    pub body: ItemBody,
}

/// The content of an item.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ItemBody {
    Message(Message),
    Tool(Box<ToolCall>),
    /// A turn that did not end successfully.
    TurnEnd(TurnEnd),
    /// A message of the agent or of parlor to the user.
    Notice {
        kind: NoticeKind,
        severity: Severity,
        title: String,
        /// Details; may have several lines.
        detail: Option<String>,
    },
    Compaction {
        id: String,
        /// `in_progress`, `completed`, `failed`, `cancelled` or a custom status.
        status: String,
        summary: String,
        error: Option<String>,
    },
    Subagent {
        session: SessionId,
        /// Its own transcript, once the first update was received.
        key: Option<SessionKey>,
        title: String,
        description: Option<String>,
        /// `running`, `idle`, …, as reported by the agent.
        state: Option<String>,
        /// Number of its tool calls that parlor knows.
        calls: usize,
    },
    Answered {
        question: String,
        /// `accepted`, `declined`, `cancelled`, with the values.
        answer: String,
        by: Decider,
    },
    /// Something unknown, as received.
    Raw {
        name: String,
        raw: Raw,
    },
}

impl ItemBody {
    /// A notice without a special kind.
    pub fn notice(severity: Severity, title: String, detail: Option<String>) -> Self {
        Self::Notice { kind: NoticeKind::Other, severity, title, detail }
    }
}

/// A message: text and blocks in order.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Message {
    pub role: Role,
    /// The id, if the agent sends it.
    pub message: Option<MessageId>,
    /// Text only grows at the end of the last part, while the message is open.
    pub parts: Vec<MessagePart>,
    /// Whether more text may follow; streamed text is rendered again completely when this becomes `false`.
    pub is_open: bool,
    #[serde(skip)]
    pub began: Instant,
    /// Duration, once closed (shown for thoughts).
    pub took: Option<Duration>,
    /// For a user's message: whether it was sent by parlor, not received from the agent.
    pub is_local: bool,
    /// The bytes of the first part that the user pasted; they are shown as labels until the item is opened.
    pub pasted: Vec<Range<usize>>,
}

impl Message {
    pub fn pasted_texts(&self) -> impl Iterator<Item = &str> {
        let text = match self.parts.first() {
            Some(MessagePart::Text(text)) => text.as_str(),
            _ => "",
        };
        self.pasted.iter().filter_map(|range| text.get(range.clone()))
    }

    /// A text of the message, with labels in place of the pasted texts in the first part.
    pub fn with_labels(&self, part: usize, text: &str, label: impl Fn(&str) -> String) -> String {
        let pasted = if part == 0 { self.pasted.as_slice() } else { &[] };
        with_labels(text, pasted, label)
    }
}

impl Item {
    fn new(id: ItemId, turn: u32, body: ItemBody) -> Self {
        Self { id, rev: 0, turn, times: 1, end: None, body }
    }

    /// Whether it is not drawn: it is shown with another call, or consists of a permission request only.
    pub fn is_hidden(&self) -> bool {
        match &self.body {
            ItemBody::Tool(tool) if tool.is_own => tool.accesses.is_empty(),
            ItemBody::Tool(tool) => tool.from_ask_only && !is_worth_showing(tool),
            _ => false,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MessagePart {
    /// Markdown (plain text in a user's message).
    Text(Growing<String>),
    Block(ContentBlock),
}

impl MessagePart {
    /// The text of the part, if it is text.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) | Self::Block(ContentBlock::Text(text)) => Some(text),
            Self::Block(_) => None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[allow(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct ToolCall {
    /// Unique within its turn.
    pub id: ToolCallId,
    pub title: String,
    pub name: Option<String>,
    pub kind: ToolKind,
    pub status: ToolStatus,
    pub content: Vec<ToolContent>,
    /// The positions of its changes in their files, where known.
    pub positions: Vec<LocatedDiff>,
    pub locations: Vec<Location>,
    pub raw_input: Option<Raw>,
    pub input: ToolInput,
    pub raw_output: Option<Raw>,
    pub output_text: Option<Growing<String>>,
    pub exit_code: Option<i32>,
    pub parent: Option<ToolCallId>,
    pub calls: usize,
    /// `_meta` and unknown keys.
    pub extra: Option<Raw>,
    /// The decision about its permission request.
    pub decision: Option<Decision>,
    /// The rule that has its permission request asked about.
    pub asking_rule: Option<String>,
    /// Whether it consists of a permission request only.
    pub from_ask_only: bool,
    /// Whether it was approved under another id than the agent's call, and is shown with that.
    pub is_joined: bool,
    pub approved: Vec<FileDiff>,
    /// Whether it is parlor's item for an access through parlor.
    pub is_own: bool,
    pub accesses: Vec<AccessRecord>,
    /// Whether the status is assumed by parlor: the agent left the call open when its turn ended.
    pub is_status_assumed: bool,
    #[serde(skip)]
    pub began: Instant,
    pub took: Option<Duration>,
}

/// The outcome of a permission request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    Chosen {
        name: String,
        /// Unknown in records of earlier versions.
        kind: Option<PermissionKind>,
        is_allow: bool,
        /// The rule that decided, if it was not the user.
        rule: Option<String>,
    },
    Cancelled(Decider),
}

impl Decision {
    /// Who decided, for display: `Allowed once by the user`.
    pub fn description(&self) -> String {
        let what = match self {
            Self::Chosen { kind: Some(PermissionKind::AllowOnce), .. } => "Allowed once",
            Self::Chosen { kind: Some(PermissionKind::AllowAlways), .. } => "Always allowed",
            Self::Chosen { kind: Some(PermissionKind::RejectOnce), .. } => "Rejected once",
            Self::Chosen { kind: Some(PermissionKind::RejectAlways), .. } => "Always rejected",
            Self::Chosen { is_allow: true, .. } => "Allowed",
            Self::Chosen { is_allow: false, .. } => "Rejected",
            Self::Cancelled(Decider::User) => "Cancelled",
            Self::Cancelled(by) => return format!("Not answered: {}", by.reason()),
        };
        match self {
            Self::Chosen { rule: Some(rule), .. } => format!("{what} by the rule `{rule}`"),
            _ => format!("{what} by the user"),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnEnd {
    Stopped {
        reason: StopReason,
        usage: Option<TurnUsage>,
        took: Duration,
    },
    /// By an error.
    Failed {
        /// The agent's message, or what happened to it.
        error: String,
        fault: FaultKind,
    },
    /// Because the agent has exited.
    AgentDied {
        /// Exit code or signal as text.
        cause: String,
        /// The last lines of its stderr.
        stderr_tail: Vec<String>,
    },
}

/// The duration and cost of a turn, as far as they are known.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct TurnSummary {
    pub took: Option<Duration>,
    pub cost: Option<Cost>,
}

/// A terminal whose output is shown: run by parlor, or reported by the agent.
#[derive(Debug, Clone, PartialEq)]
pub struct TerminalView {
    /// The command line, if known.
    pub command: Option<String>,
    pub cwd: Option<PathBuf>,
    /// The output with escape sequences, without that of full-screen programs; the start may have been dropped.
    pub output: Growing<Vec<u8>>,
    /// Number of bytes dropped from the start.
    pub dropped_bytes: u64,
    pub modes: TerminalModes,
    /// Whether the command reads a line that its terminal does not show, such as a password.
    pub hides_input: bool,
    /// The output of the full-screen program that runs; the start may have been dropped.
    pub alternate: Vec<u8>,
    /// Number of bytes of full-screen programs before these.
    pub alternate_dropped_bytes: u64,
    /// `None`: not known.
    pub size: Option<TerminalSize>,
    pub exit: Option<ExitInfo>,
    /// Whether parlor runs it (and can kill it).
    pub is_ours: bool,
    /// The number of a command that the user typed; `None`: it is the agent's.
    pub number: Option<u32>,
    pub began: Instant,
    pub took: Option<Duration>,
}

/// Maximum bytes of output in a [`TerminalView`].
pub const TERMINAL_VIEW_BYTES: usize = 1 << 20;

impl ToolCall {
    pub fn is_typed(&self) -> bool {
        self.is_own && self.accesses.first().is_some_and(AccessRecord::is_typed)
    }

    /// A call of which only the id is known.
    pub fn new(id: ToolCallId, now: Instant) -> Self {
        Self {
            id,
            title: String::new(),
            name: None,
            kind: ToolKind::default(),
            status: ToolStatus::default(),
            content: Vec::new(),
            positions: Vec::new(),
            locations: Vec::new(),
            raw_input: None,
            input: ToolInput::default(),
            raw_output: None,
            output_text: None,
            exit_code: None,
            parent: None,
            calls: 0,
            extra: None,
            decision: None,
            asking_rule: None,
            from_ask_only: false,
            is_joined: false,
            approved: Vec::new(),
            is_own: false,
            accesses: Vec::new(),
            is_status_assumed: false,
            began: now,
            took: None,
        }
    }

    /// Applies the fields of a patch except the status, which has separate rules.
    pub fn apply(&mut self, mut patch: crate::model::ToolCallPatch) {
        // An empty title does not replace a known one.
        if let Patch::Set(title) = patch.title
            && !title.is_empty()
        {
            self.title = title;
        }
        patch.name.apply(&mut self.name);
        patch.kind.apply_or_default(&mut self.kind);
        if let Patch::Set(content) = &mut patch.content {
            keep_diffs_once(content);
        }
        patch.content.apply_or_default(&mut self.content);
        self.content.append(&mut patch.more_content);
        patch.locations.apply_or_default(&mut self.locations);
        patch.raw_input.apply(&mut self.raw_input);
        patch.input.apply_or_default(&mut self.input);
        patch.raw_output.apply(&mut self.raw_output);
        patch.output_text.apply(&mut self.output_text);
        patch.exit_code.apply(&mut self.exit_code);
        if patch.parent.is_some() {
            self.parent = patch.parent;
        }
        Patch::from_option(patch.extra).apply(&mut self.extra);
    }

    /// The command, URL or query, otherwise the title, the tool's name or the id.
    pub fn label(&self) -> &str {
        let target = match self.kind {
            ToolKind::Execute => self.input.command.as_deref(),
            ToolKind::Fetch => self.input.url.as_deref(),
            ToolKind::Search if self.title.is_empty() => self.input.query.as_deref(),
            _ => None,
        };
        let title = Some(self.title.as_str()).filter(|title| !title.trim().is_empty());
        target.or(title).or(self.name.as_deref()).unwrap_or(self.id.as_str())
    }

    /// The status to show: an approved call is running, although many agents do not report it.
    pub fn shown_status(&self) -> ToolStatus {
        match (&self.decision, self.status) {
            (Some(Decision::Chosen { is_allow: true, .. }), ToolStatus::Pending) => ToolStatus::InProgress,
            (_, status) => status,
        }
    }

    /// The position of one of its changes in its file, if known.
    pub fn position_of(&self, diff: &FileDiff) -> Option<&DiffPosition> {
        self.positions.iter().find(|known| known.diff == *diff).map(|known| &known.position)
    }

    /// The changes of files that it shows: reported ones, and other writes through parlor.
    pub fn diffs(&self) -> impl Iterator<Item = &FileDiff> {
        let made = self.accesses.iter().filter(|access| !access.is_reported).filter_map(AccessRecord::diff);
        self.reported_diffs().chain(made)
    }

    /// The reported changes: those of its content, otherwise of its input, otherwise those that were approved.
    pub fn reported_diffs(&self) -> impl Iterator<Item = &FileDiff> {
        let in_content = self.content.iter().filter_map(|content| match content {
            ToolContent::Diff(diff) => Some(diff),
            _ => None,
        });
        let has_any = in_content.clone().next().is_some();
        let has_input = has_any || !self.input.diffs.is_empty();
        let in_input = self.input.diffs.iter().filter(move |_| !has_any);
        in_content.chain(in_input).chain(self.approved.iter().filter(move |_| !has_input))
    }
}

/// Some agents list one diff twice in one content, or as texts and as a patch.
fn keep_diffs_once(content: &mut Vec<ToolContent>) {
    let mut seen = HashSet::new();
    content.retain(|piece| match piece {
        ToolContent::Diff(diff) => seen.insert(diff.clone()),
        _ => true,
    });
    let texts: Vec<FileDiff> = content.iter().filter_map(texts_of).cloned().collect();
    let known = KnownChanges::new(Path::new(""), texts.iter());
    content.retain(|piece| match piece {
        ToolContent::Diff(FileDiff { change: DiffChange::Patch(text), .. }) => !known.contains(text),
        _ => true,
    });
}

fn texts_of(piece: &ToolContent) -> Option<&FileDiff> {
    match piece {
        ToolContent::Diff(diff) if matches!(diff.change, DiffChange::Texts { .. }) => Some(diff),
        _ => None,
    }
}

/// Whether a call that consists of a permission request only is shown after it was answered.
pub(in crate::core) fn is_worth_showing(call: &ToolCall) -> bool {
    match &call.decision {
        None | Some(Decision::Chosen { is_allow: false, .. }) => true,
        Some(Decision::Cancelled(_)) => false,
        Some(Decision::Chosen { is_allow: true, .. }) => {
            !call.is_joined && (call.reported_diffs().next().is_some() || call.input.command.is_some())
        }
    }
}
