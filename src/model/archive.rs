//! Messages between the reducer and the store of saved sessions: lists, previews, events, search and folders.
//!
//! Jobs run off the UI thread. Each has exactly one response; lists and events are sent in parts.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::PathBuf;

use super::{
    ConnId, MentionedSession, RecordedEvent, RecordedSession, SessionId, SessionInfo, SessionKey, Used,
};

/// How close a folder is to the user's current one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Nearness {
    Here,
    /// In the same repository: another worktree, or another folder in it.
    SameRepository,
    #[default]
    Elsewhere,
}

/// A saved session in a list.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ArchiveRow {
    pub uid: String,
    pub agent: String,
    /// The agent's program and arguments.
    pub command: String,
    pub agent_session: Option<SessionId>,
    pub folder: PathBuf,
    /// The branch when the session was last open.
    pub branch: Option<String>,
    /// The title; empty if it has none.
    pub title: String,
    /// The start of the first prompt; empty if there is none.
    pub first_prompt: String,
    /// Whether the title that the user set has not been sent to the agent.
    pub owes_title: bool,
    /// Unix milliseconds of the last event.
    pub updated_ms: i64,
    /// `updated_ms` for display.
    pub when: String,
    /// The day of `updated_ms` in the user's time zone, `2026-11-20`.
    pub date: String,
    /// The start of the agent's last reply; empty if there is none.
    pub last_reply: String,
    pub turn_count: u32,
    /// Whether parlor ended during its last turn.
    pub was_cut: bool,
    /// Process id of another parlor that has the session open; 0 if unknown.
    pub open_in: Option<u32>,
    /// The store's id of the session that it continues.
    pub came_from: Option<String>,
    pub nearness: Nearness,
    /// Whether its folder no longer exists.
    pub is_folder_gone: bool,
}

impl ArchiveRow {
    /// The title, otherwise the first prompt.
    pub fn name(&self) -> &str {
        let names = [self.title.as_str(), self.first_prompt.as_str()];
        names.into_iter().map(str::trim).find(|name| !name.is_empty()).unwrap_or("No prompt yet")
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExportForm {
    Markdown,
    /// Markdown in which what looks like a secret is hidden.
    Redacted,
    Json,
    /// One self-contained page.
    Html,
}

/// A full-text search of all saved sessions.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ArchiveSearch {
    /// Words that must all occur; `"quoted"` words must be adjacent, `word*` matches a prefix.
    pub text: String,
    /// Only sessions of this agent.
    pub agent: Option<String>,
    /// Only sessions in this folder or below it.
    pub folder: Option<PathBuf>,
    /// Only sessions of the last days, by their number; the store sets `since_ms`.
    pub days: Option<u32>,
    /// The time range in Unix milliseconds; the end is exclusive.
    pub since_ms: Option<i64>,
    pub until_ms: Option<i64>,
    /// Only these kinds of events: `prompt`, `answer`, `thought`, `edit`, `command`, `tool`, `error`,
    /// `notice`.
    pub kinds: Vec<&'static str>,
    /// Only failures.
    pub only_errors: bool,
    pub limit: u32,
}

/// A match of a search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArchiveHit {
    pub uid: String,
    /// Its title or first prompt.
    pub name: String,
    pub agent: String,
    pub folder: PathBuf,
    /// The number of its first event.
    pub seq: i64,
    pub turn: u32,
    /// Unix milliseconds.
    pub at_ms: i64,
    /// `at_ms` for display.
    pub when: String,
    pub kind: String,
    pub is_error: bool,
    /// The matches with their context, each between `\u{2}` and `\u{3}`.
    pub snippet: String,
}

/// A search of earlier prompts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PromptQuery {
    pub serial: u64,
    /// Words or letters; empty: all prompts.
    pub text: String,
    /// Only prompts of this folder.
    pub folder: Option<PathBuf>,
    /// Whether the prompts are read again.
    pub is_new: bool,
}

/// An earlier prompt.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FoundPrompt {
    pub text: String,
    pub folder: PathBuf,
    pub when: String,
    /// Where it was sent, if that session is saved.
    pub source: Option<PromptSource>,
}

/// The session in which a prompt was sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptSource {
    pub uid: String,
    pub agent: String,
    /// Its title or first prompt.
    pub name: String,
    pub seq: i64,
}

/// A folder in which a session can continue after its own was removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FolderOffer {
    pub folder: PathBuf,
    pub why: FolderReason,
    /// Number of other sessions of the missing folder that can be moved to this one.
    pub others: usize,
}

/// Why a folder is offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FolderReason {
    /// The same folder under another name, by its inode.
    Moved,
    Worktree,
    SameRemote,
    SameName,
    Current,
    /// A folder that an imported file names.
    Imported,
}

/// A request to the store.
#[derive(Debug, Clone, PartialEq)]
pub enum StoreJob {
    /// Loads what a folder was last used with; requested once, at startup.
    Folder {
        folder: PathBuf,
        /// Whether to look for its last session too.
        wants_session: bool,
    },
    /// Counts what turns used today.
    UsedToday,
    /// Lists all sessions in pages, latest first; nearness is relative to `folder`.
    List {
        serial: u64,
        folder: PathBuf,
    },
    /// Loads the end of a session for a preview.
    Preview {
        uid: String,
    },
    /// Loads the end of a session; `Load` has the rest.
    Open {
        uid: String,
        /// Whether the session will be continued, so that no other parlor may have it open.
        takes: bool,
        at: Option<i64>,
        folder: PathBuf,
    },
    /// Opens a session from the agent's list, from the archive if it is saved there.
    OpenListed {
        conn: ConnId,
        agent: String,
        info: Box<SessionInfo>,
        folder: PathBuf,
    },
    /// Continues a session that is open read-only.
    Take {
        key: SessionKey,
        uid: String,
    },
    /// Loads all events of a session before a number, oldest first.
    Load {
        key: SessionKey,
        uid: String,
        before: i64,
        at: Option<i64>,
    },
    /// Loads the events of the turn of an event that is already shown.
    Around {
        key: SessionKey,
        uid: String,
        at: i64,
    },
    /// Loads the events of a spool from this turn on.
    ReadSpool {
        key: SessionKey,
        uid: String,
        from: u32,
    },
    /// Removes a turn from a record, with everything that was derived from it.
    ForgetTurns {
        key: SessionKey,
        uid: String,
        turns: Range<u32>,
    },
    /// Moves the sessions of a folder that was renamed, except those that are open.
    MoveFolder {
        from: PathBuf,
        to: PathBuf,
    },
    /// Saves a title that the user chose.
    Rename {
        uid: String,
        title: String,
    },
    TitleKnown {
        uid: String,
        title: String,
    },
    Delete {
        uid: String,
    },
    Export {
        uid: String,
        form: ExportForm,
        folder: PathBuf,
    },
    /// Runs a full-text search.
    Search {
        serial: u64,
        search: ArchiveSearch,
    },
    Prompts(PromptQuery),
    /// Frees the prompts that were read for a search; has no response.
    ForgetPrompts,
    /// Lists the latest sessions of a folder, for mentions.
    Mentionable {
        folder: PathBuf,
    },
}

/// A message from the store. Errors are full sentences with a next step.
#[derive(Debug, Clone, PartialEq)]
pub enum StoreNews {
    /// The agent that the folder was last used with, and those of all sessions with a turn.
    UsedAgents {
        here: Option<String>,
        all: BTreeSet<String>,
    },
    /// What turns used on the day that began at `day_ms` (Unix milliseconds), in the user's time zone.
    UsedToday {
        day_ms: i64,
        used: Used,
    },
    /// The last session of the folder that can be continued.
    FolderSession(Box<ArchiveRow>),
    /// A notice about saved sessions, shown until it is dismissed.
    Reported(String),
    /// What cannot be saved now; `None` once everything is saved. Sent again when it changes.
    Unsaved(Option<Unsaved>),
    Listed {
        serial: u64,
        /// The rows, or an error.
        rows: Result<Vec<ArchiveRow>, String>,
        is_last: bool,
        /// The start of today in the user's time zone, in Unix milliseconds; 0 if unknown.
        today_ms: i64,
    },
    Previewed {
        uid: String,
        saved: Result<Box<RecordedSession>, String>,
    },
    Opened(Box<ArchiveOpening>),
    /// A session of the agent's list is not in the archive.
    NotSaved(ConnId, Box<SessionInfo>),
    /// The result of `Take`: the session as it is saved now.
    Taken {
        key: SessionKey,
        saved: Result<Box<RecordedSession>, String>,
    },
    /// A part of the result of `Load`, in order. After an error, nothing follows.
    Loaded {
        key: SessionKey,
        page: Result<EventPage, String>,
    },
    /// The result of `Around`.
    Around {
        key: SessionKey,
        page: Result<EventPage, String>,
    },
    /// The result of `ReadSpool`.
    SpoolRead {
        key: SessionKey,
        from: u32,
        events: Result<Vec<RecordedEvent>, String>,
    },
    /// The result of `ForgetTurns`.
    Forgotten {
        key: SessionKey,
        turns: Range<u32>,
        result: Result<(), String>,
    },
    /// The result of `Rename`.
    Renamed {
        uid: String,
        title: String,
        result: Result<Option<(String, SessionId)>, String>,
    },
    /// The result of `TitleKnown`.
    TitleKnown {
        uid: String,
        result: Result<(), String>,
    },
    /// The result of `Delete`.
    Deleted {
        uid: String,
        result: Result<(), String>,
    },
    /// The result of `Export`.
    Exported(Result<PathBuf, String>),
    /// The result of `Search`.
    Found {
        serial: u64,
        /// The matches, best first.
        hits: Result<Vec<ArchiveHit>, String>,
    },
    /// The result of `Prompts`.
    Prompts {
        serial: u64,
        /// The first prompts that match, and the number of all.
        found: Result<(Vec<FoundPrompt>, usize), String>,
    },
    /// The result of `Mentionable`, latest first.
    Mentionable {
        folder: PathBuf,
        sessions: Vec<MentionedSession>,
    },
    /// Everything up to this [`super::Note::Sync`] is on disk.
    Written {
        key: SessionKey,
        upto: u64,
    },
    /// A session was saved, and has this id from now on.
    SavedAs {
        key: SessionKey,
        uid: String,
    },
}

/// Changes that cannot be saved now.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Unsaved {
    pub why: String,
    /// The turns of each session with changes; none if only its drafts or queued prompts have changed.
    pub turns: BTreeMap<SessionKey, BTreeSet<u32>>,
    /// The folder in which they are written to a file on quit; `None`: no folder has room.
    pub folder: Option<PathBuf>,
}

impl Unsaved {
    pub fn note(&mut self, key: SessionKey, turns: impl IntoIterator<Item = u32>) {
        self.turns.entry(key).or_default().extend(turns);
    }
}

/// A session that was loaded to be shown.
#[derive(Debug, Clone, PartialEq)]
pub struct ArchiveOpening {
    pub uid: String,
    pub takes: bool,
    pub at: Option<i64>,
    /// The saved session, or an error.
    pub saved: Result<RecordedSession, String>,
    /// Folders in which it can continue, if its own no longer exists.
    pub offers: Option<Vec<FolderOffer>>,
}

/// Some events of a session, oldest first.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct EventPage {
    pub events: Vec<RecordedEvent>,
    /// The index of the requested event in `events`.
    pub mark: Option<usize>,
    /// Number of events that could not be read.
    pub unreadable_count: u64,
    /// Whether these are the last ones that were requested.
    pub is_last: bool,
}
