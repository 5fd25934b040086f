//! What parlor keeps of a session, so that it can be read and gone on with later.
//!
//! Duty: the vocabulary between the reducer, which says what is worth keeping, and the store.
//! A [`Record`] is one event of a session; played again in order they make its transcript. Records are kept on
//! disk for years: names of variants and fields are a format, and tests of the store pin them.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{
    AccessRecord, DiffPlace, ExitInfo, FaultKind, NoticeKind, SessionId, SessionKey, SessionPlace,
    SessionUpdate, Setting, Severity, StopReason, TerminalId, ToolCallId,
};
use super::{ToolCallPatch, TurnUsage, Usage};

/// One event of a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Record {
    /// The user sent a prompt from here; a turn begins.
    Prompt {
        text: String,
        /// Whether it was shown before already: it is sent once more, after a sign-in.
        #[serde(default, skip_serializing_if = "is_false")]
        is_again: bool,
    },
    /// The agent told something.
    Update(SessionUpdate),
    /// The agent asked for a permission and told this of the call.
    Asked(Box<ToolCallPatch>),
    /// A permission was answered.
    Decided {
        /// For this call.
        tool: ToolCallId,
        /// The chosen option's name; `None`: cancelled.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        option: Option<String>,
        /// Whether it allows.
        is_allow: bool,
    },
    /// Where changes that a call tells stood in their files when they were looked for.
    Located {
        /// The call.
        tool: ToolCallId,
        /// Each change by its place among those that the call told then, and where it stood.
        places: Vec<RecordPlace>,
    },
    /// A question was answered.
    Answered {
        question: String,
        /// What was said.
        answer: String,
    },
    /// Something went through parlor for the agent, or was refused.
    Access(Box<AccessRecord>),
    /// A command that parlor ran for the agent ended; what it had written then.
    Command {
        terminal: TerminalId,
        /// The command line.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        command: Option<String>,
        /// Where it ran.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cwd: Option<PathBuf>,
        /// Its last output, escape sequences and all.
        output: String,
        /// How many bytes are missing at the front.
        #[serde(default, skip_serializing_if = "is_zero")]
        dropped_bytes: u64,
        /// How it ended.
        exit: ExitInfo,
    },
    /// parlor said something to the user.
    Notice {
        #[serde(default, skip_serializing_if = "NoticeKind::is_other")]
        kind: NoticeKind,
        severity: Severity,
        /// The message.
        title: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        detail: Option<String>,
    },
    TurnEnded(TurnOutcome),
    /// What was kept before is replaced by what follows: the agent's own history of a session in which nothing was
    /// said here. Older files have it behind turns too; these are shown as they were then.
    Replaced,
    /// The agent's own history has an item that was not recorded when it came. It begins no turn.
    Inserted {
        /// It stands before the last so many items of what comes before this record.
        #[serde(default, skip_serializing_if = "is_at_end")]
        back: u32,
        /// What makes the item.
        updates: Vec<SessionUpdate>,
    },
    /// The next prompt tells the agent a conversation that it does not know.
    HandedOver {
        /// Whose conversation it was.
        agent: String,
        /// The document: Markdown.
        text: String,
    },
    /// The agent put the session into its archive, or took it out.
    Archived {
        /// Whether it lies there now.
        is_away: bool,
    },
}

impl Record {
    /// A notice that no code looks for.
    pub fn notice(severity: Severity, title: String, detail: Option<String>) -> Self {
        Self::Notice { kind: NoticeKind::Other, severity, title, detail }
    }
}

/// Where a change stood in its file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordPlace {
    /// Which of the call's changes, from 0.
    pub nth: usize,
    /// Where it stood.
    pub place: DiffPlace,
    /// Whether the file was read after the call was done.
    pub is_done: bool,
}

/// How a turn ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnOutcome {
    /// With a stop reason.
    Stopped {
        reason: StopReason,
        /// Tokens.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        usage: Option<TurnUsage>,
        /// How long it took.
        took_ms: u64,
    },
    /// By an error of the agent.
    Failed {
        /// What it said.
        error: String,
        /// Which part failed.
        #[serde(default, skip_serializing_if = "FaultKind::is_default")]
        fault: FaultKind,
    },
    /// By the end of the agent.
    AgentDied {
        cause: String,
        /// The last lines of its stderr.
        #[serde(default)]
        stderr_tail: Vec<String>,
    },
    /// By the end of parlor; whoever finds the session notes it.
    Cut,
}

/// What the reducer wants kept, in order.
#[derive(Debug, Clone, PartialEq)]
pub enum Note {
    /// Whose session it is and where it works, whenever that becomes known or changes.
    Head(Box<SessionHead>),
    /// Something happened. The turn is counted from 1; 0 is before the first.
    Event { turn: u32, record: Box<Record> },
    /// What comes behind begins another page of the transcript. [`super::StoreNews::Written`] tells its place.
    Mark(u64),
    /// Something happened to what stands further up: it is kept there, so that each page can be read by itself.
    Late {
        /// Counted with the marks: once it is on disk, [`super::StoreNews::Written`] says so.
        serial: u64,
        /// Behind the events before this place.
        before: EventPlace,
        turn: u32,
        record: Box<Record>,
    },
    /// Something is kept behind the last event of a turn: see [`Record::Inserted`].
    Inserted {
        /// Counted with the marks.
        serial: u64,
        turn: u32,
        record: Box<Record>,
    },
    /// What follows is a history that counts only if it comes to its end.
    Hold,
    /// It has come to its end, or to none.
    Release {
        /// Whether it is whole.
        is_whole: bool,
    },
    /// What stands in the prompt.
    Draft(String),
    /// The prompts that wait.
    Queue(Vec<String>),
    /// The session goes on from another one: a copy of it, or its conversation handed over.
    CameFrom {
        /// That session's number here.
        session: SessionKey,
        /// Its id in the store, if that is known.
        kept_as: Option<String>,
        /// What is kept of it up to this turn is this session's beginning too; `None`: nothing of it.
        copied_turns: Option<u32>,
    },
    /// The session was closed here; others may open it.
    Closed,
}

/// A place between two events of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventPlace {
    /// Where this mark was made; the store has not told its number yet.
    Mark(u64),
    /// Before the event of this number.
    Seq(i64),
}

/// Whose session it is and where it works.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[allow(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct SessionHead {
    /// The store's id of a session that was kept before; `None`: a new one.
    pub kept_as: Option<String>,
    /// The agent's name.
    pub agent: String,
    /// The agent's program.
    pub command: String,
    /// The program's arguments.
    pub args: Vec<String>,
    /// The agent's process, while it runs.
    pub agent_pid: Option<u32>,
    /// The agent's name for the session.
    pub session: Option<SessionId>,
    /// Where it works. Servers are not kept.
    pub place: SessionPlace,
    /// The branch of that folder.
    pub branch: Option<String>,
    pub title: Option<String>,
    /// Whether the user gave the title; the agent's own then counts no more.
    pub has_own_title: bool,
    /// Whether the agent does not know that title.
    pub owes_title: bool,
    /// Whether it is a subagent's.
    pub is_child: bool,
    /// Whether the agent had the session before: what is kept under its name is this one then.
    pub goes_on: bool,
    /// What was chosen in it.
    pub chosen: Vec<Setting>,
}

/// A session as it was kept, to be shown and gone on with.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RecordedSession {
    /// Whose and where; `kept_as` is its id.
    pub head: SessionHead,
    /// Context and cost, as last told.
    pub usage: Option<Usage>,
    /// What stood in the prompt.
    pub draft: String,
    /// The prompts that waited.
    pub queue: Vec<String>,
    /// Its last events, oldest first.
    pub events: Vec<RecordedEvent>,
    /// How many events before these are kept, but not given here.
    pub left_out_count: u64,
    /// How many events could not be read.
    pub unreadable_count: u64,
    /// The number of the first event that is given.
    pub first_seq: i64,
    /// The number behind the last event.
    pub end_seq: i64,
    /// The place among `events` of the one that was looked for.
    pub mark: Option<usize>,
    /// If the events are not the last ones: the number of the next one, and how many there are from there on.
    pub later: Option<(i64, u64)>,
    /// The session that it goes on from: its id in the store, and its name.
    pub came_from: Option<(String, String)>,
    /// Another parlor that has it open: its process; 0 if unknown.
    pub open_in: Option<u32>,
}

/// An event with its place.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordedEvent {
    /// Unix time in milliseconds.
    pub at_ms: i64,
    pub turn: u32,
    pub record: Record,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it by reference")]
fn is_false(value: &bool) -> bool {
    !value
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it by reference")]
fn is_at_end(back: &u32) -> bool {
    *back == 0
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it by reference")]
fn is_zero(value: &u64) -> bool {
    *value == 0
}
