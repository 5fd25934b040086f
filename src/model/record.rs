//! Records of a session, from which it can be shown and continued later.
//!
//! The reducer decides what to record, and the store saves it. A [`Record`] is one event of a session;
//! replaying all of them in order rebuilds its transcript. Records are kept for years: names of variants and
//! fields are a file format, and tests of the store pin them.

use std::ops::Range;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::held::{HeldFile, HeldFiles};
use super::snapshot::SnapshotRecord;
use super::{
    AccessRecord, ContentBlock, Cost, Decider, DiffPosition, ElicitationRequest, ExitInfo, FaultKind,
    NoticeKind, PermissionKind, PermissionOption, SessionId, SessionKey, SessionUpdate, SessionWorkspace,
    Setting, Severity, StopReason, TerminalId, ToolCallId,
};
use super::{ToolCallPatch, TurnUsage, Usage};

/// One event of a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Record {
    /// The user sent a prompt; a turn starts.
    Prompt {
        text: String,
        /// Whether the prompt is already in the transcript: it is resent after a sign-in.
        #[serde(default, skip_serializing_if = "is_false")]
        is_again: bool,
        /// The files, links and images that were sent with the text.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        blocks: Vec<ContentBlock>,
        /// The bytes of the text that were pasted and are shown folded, in order.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pasted: Vec<Range<usize>>,
        /// The prompt as it was typed, if that is not its text: it called a template, or has pasted texts.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        typed: Option<String>,
    },
    Update(SessionUpdate),
    /// A permission request, with the details of its tool call.
    Asked {
        #[serde(flatten)]
        tool: Box<ToolCallPatch>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        options: Vec<PermissionOption>,
    },
    Decided {
        tool: ToolCallId,
        /// The name of the chosen option; `None` if it was cancelled.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        option: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        option_id: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        kind: Option<PermissionKind>,
        /// Whether the option allows the tool call.
        is_allow: bool,
        #[serde(default, skip_serializing_if = "Decider::is_unknown")]
        by: Decider,
        /// The rule that decided, if it was not the user.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rule: Option<String>,
    },
    /// The positions of a tool call's changes in their files, when they were located.
    Located {
        tool: ToolCallId,
        /// One entry per located change.
        #[serde(rename = "places")]
        positions: Vec<RecordPosition>,
    },
    /// A question of the agent was answered or cancelled.
    Answered {
        question: String,
        answer: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        request: Option<Box<ElicitationRequest>>,
        #[serde(default, skip_serializing_if = "Decider::is_unknown")]
        by: Decider,
    },
    /// parlor served or refused a request of the agent.
    Access(Box<AccessRecord>),
    /// A command that parlor ran for the agent ended.
    Command {
        terminal: TerminalId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        command: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cwd: Option<PathBuf>,
        /// The end of its output, with escape sequences.
        output: String,
        /// Number of bytes that were cut from the start.
        #[serde(default, skip_serializing_if = "is_zero")]
        dropped_bytes: u64,
        exit: ExitInfo,
    },
    Notice {
        #[serde(default, skip_serializing_if = "NoticeKind::is_other")]
        kind: NoticeKind,
        severity: Severity,
        title: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        detail: Option<String>,
    },
    TurnEnded(TurnOutcome),
    /// The records before this one are replaced by those after it: the agent's own history of a session
    /// without local turns. Older files have it after turns too, and are shown as they were then.
    Replaced,
    /// An item of the agent's own history that was not recorded live. It does not start a turn.
    Inserted {
        /// Insert before this number of items at the end of its turn in the preceding records of its page.
        #[serde(default, skip_serializing_if = "is_at_end")]
        back: u32,
        updates: Vec<SessionUpdate>,
    },
    /// The next prompt contains a conversation that the agent does not have.
    HandedOver {
        agent: String,
        text: String,
    },
    /// The agent archived the session, or restored it.
    Archived {
        is_away: bool,
    },
    /// A snapshot of the folder was captured, or files were restored.
    Snapshot(SnapshotRecord),
}

impl Record {
    /// A notice that no code looks for.
    pub fn notice(severity: Severity, title: String, detail: Option<String>) -> Self {
        Self::Notice { kind: NoticeKind::Other, severity, title, detail }
    }
}

/// The position of a change in its file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordPosition {
    /// Index of the change in its tool call.
    pub nth: usize,
    #[serde(rename = "place")]
    pub position: DiffPosition,
    /// Whether the file was read after the call completed.
    pub is_done: bool,
}

/// How a turn ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnOutcome {
    /// The agent returned a stop reason.
    Stopped {
        reason: StopReason,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        usage: Option<TurnUsage>,
        took_ms: u64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost: Option<Cost>,
    },
    /// The agent returned an error.
    Failed {
        error: String,
        #[serde(default, skip_serializing_if = "FaultKind::is_default")]
        fault: FaultKind,
        /// 0 if unknown.
        #[serde(default, skip_serializing_if = "is_zero")]
        took_ms: u64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost: Option<Cost>,
    },
    AgentDied {
        cause: String,
        /// The last lines of the agent's stderr.
        #[serde(default)]
        stderr_tail: Vec<String>,
        /// 0 if unknown.
        #[serde(default, skip_serializing_if = "is_zero")]
        took_ms: u64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost: Option<Cost>,
    },
    /// parlor ended during the turn; recorded when the session is opened again.
    Cut,
}

impl TurnOutcome {
    /// The duration in milliseconds; 0 if unknown.
    pub fn took_ms(&self) -> u64 {
        match self {
            Self::Stopped { took_ms, .. }
            | Self::Failed { took_ms, .. }
            | Self::AgentDied { took_ms, .. } => *took_ms,
            Self::Cut => 0,
        }
    }

    pub fn cost(&self) -> Option<&Cost> {
        match self {
            Self::Stopped { cost, .. } | Self::Failed { cost, .. } | Self::AgentDied { cost, .. } => {
                cost.as_ref()
            }
            Self::Cut => None,
        }
    }

    pub fn usage(&self) -> Option<TurnUsage> {
        match self {
            Self::Stopped { usage, .. } => *usage,
            Self::Failed { .. } | Self::AgentDied { .. } | Self::Cut => None,
        }
    }
}

/// A message from the reducer to the recorder, in order.
#[derive(Debug, Clone, PartialEq)]
pub enum Note {
    /// The session's metadata, sent whenever it changes.
    Head(Box<SessionHead>),
    /// An event. Turns are counted from 1; 0 is before the first.
    Event {
        turn: u32,
        record: Box<Record>,
    },
    Draft(String),
    Queue(Vec<String>),
    /// The drafts that were put aside, the last one at the end.
    Stash(Vec<String>),
    /// A file is held with this text, or no longer.
    Held(PathBuf, Option<HeldFile>),
    /// All of [`RecordedSession::reported`].
    Reported(Vec<u64>),
    /// The session continues another one: a fork of it, or a handover of its conversation.
    CameFrom {
        session: SessionKey,
        /// Its id in the store, if known.
        saved_as: Option<String>,
        /// Its records up to this turn are also the start of this session; `None` for none of them.
        copied_turns: Option<u32>,
    },
    /// The first note of a spool: the history that an agent replays for this session is saved beside its record. A spool
    /// is not listed or searched, and is deleted when it is closed.
    Spool {
        of: SessionKey,
    },
    /// The record consists of this spool from now on; the events that it had are deleted. Nothing is written to the
    /// spool after this.
    TakeSpool {
        spool: SessionKey,
    },
    /// The spool is an ordinary session from now on, with this title and without the agent's id.
    KeepSpool {
        title: String,
    },
    /// Answered by [`super::StoreNews::Written`] once everything before it is on disk.
    Sync(u64),
    /// The session was closed and can be opened by others.
    Closed,
}

/// The metadata of a session.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[allow(clippy::struct_excessive_bools, reason = "the flags are independent")]
pub struct SessionHead {
    /// The store's id if the session was saved before; `None` if it is new.
    pub saved_as: Option<String>,
    pub agent: String,
    pub command: String,
    pub args: Vec<String>,
    /// The agent's process id, while it runs.
    pub agent_pid: Option<u32>,
    pub session: Option<SessionId>,
    /// The session's folders. MCP servers are not saved.
    pub workspace: SessionWorkspace,
    pub branch: Option<String>,
    pub title: Option<String>,
    /// Whether the user chose the title, so that titles of the agent are ignored.
    pub has_own_title: bool,
    /// Whether the title has not been sent to the agent.
    pub owes_title: bool,
    pub is_child: bool,
    /// Whether the agent had the session before; saved events under its id are then part of this session.
    pub goes_on: bool,
    pub tab: u32,
    pub is_front: bool,
    /// The store's ids of the sessions that are open read-only in other tabs.
    pub views: Vec<String>,
    pub chosen: Vec<Setting>,
}

/// A saved session, to be shown or continued.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RecordedSession {
    /// The metadata; `saved_as` is the store's id.
    pub head: SessionHead,
    /// The last reported context size and cost.
    pub usage: Option<Usage>,
    pub draft: String,
    pub queue: Vec<String>,
    /// The drafts that were put aside.
    pub stash: Vec<String>,
    pub held: HeldFiles,
    /// The last events, oldest first; they begin with a turn.
    pub events: Vec<RecordedEvent>,
    /// Whether there are events before those.
    pub has_earlier: bool,
    /// Number of events that could not be read.
    pub unreadable_count: u64,
    /// The sequence number after the last saved event.
    pub end_seq: i64,
    /// Hashes of the differences between the record and the agent's history that the user was told, the last one at the
    /// end.
    pub reported: Vec<u64>,
    /// The session that it continues: the store's id and the name.
    pub came_from: Option<(String, String)>,
    /// Process id of another parlor that has the session open; 0 if unknown.
    pub open_in: Option<u32>,
}

/// An event with its time and turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RecordedEvent {
    /// Unix time in milliseconds.
    pub at_ms: i64,
    pub turn: u32,
    pub record: Record,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
pub(super) fn is_false(value: &bool) -> bool {
    !value
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_at_end(back: &u32) -> bool {
    *back == 0
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
pub(crate) fn is_zero(value: &u64) -> bool {
    *value == 0
}
