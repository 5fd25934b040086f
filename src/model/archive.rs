//! Kept sessions as the app knows them: what it asks the store for, and what comes back.
//!
//! Duty: the vocabulary between reducer and store for lists, previews, pages of old events, search and folders.
//! Not its duty: what is recorded (`record`). Jobs are served off the UI thread; each has exactly one answer,
//! a list comes in pages.

use std::path::PathBuf;

use super::{ConnId, RecordedEvent, RecordedSession, SessionId, SessionInfo, SessionKey};

/// How near a folder is to the one that the user is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Nearness {
    /// It is that folder.
    Here,
    /// It belongs to the same repository: another worktree of it, or another folder within.
    SameRepository,
    #[default]
    Elsewhere,
}

/// A kept session in a list.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ArchiveRow {
    /// The store's id.
    pub uid: String,
    /// The agent's name.
    pub agent: String,
    /// The agent's program with its arguments.
    pub command: String,
    /// The agent's name for the session.
    pub agent_session: Option<SessionId>,
    /// Where it works.
    pub folder: PathBuf,
    /// The branch when it was last open.
    pub branch: Option<String>,
    /// The title; empty if none.
    pub title: String,
    /// The beginning of the first prompt; empty if none.
    pub first_prompt: String,
    /// Whether its agent has not been told the title that the user gave it.
    pub owes_title: bool,
    /// Unix milliseconds of the last event.
    pub updated_ms: i64,
    /// The same for people.
    pub when: String,
    /// How many turns it has.
    pub turn_count: u32,
    /// Whether its last turn was cut by the end of its parlor.
    pub was_cut: bool,
    /// Another parlor that has it open now: its process; 0 if unknown.
    pub open_in: Option<u32>,
    /// The session that it goes on from, by the store's id.
    pub came_from: Option<String>,
    /// How near its folder is.
    pub nearness: Nearness,
    /// Whether its folder is there no more.
    pub is_folder_gone: bool,
}

impl ArchiveRow {
    /// Its title, else its first prompt.
    pub fn name(&self) -> &str {
        let names = [self.title.as_str(), self.first_prompt.as_str()];
        names.into_iter().map(str::trim).find(|name| !name.is_empty()).unwrap_or("No prompt yet")
    }
}

/// The form of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExportForm {
    /// To be read.
    Markdown,
    /// All events, to be imported elsewhere.
    Json,
    /// One page that needs nothing else.
    Html,
}

/// A full-text search over all kept sessions. Times are Unix milliseconds.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ArchiveSearch {
    /// Words that must all be there; the last one may be a beginning.
    pub words: String,
    /// Only this agent's.
    pub agent: Option<String>,
    /// Only below this folder.
    pub folder: Option<PathBuf>,
    /// Only of so many days.
    pub days: Option<u32>,
    /// Only these kinds of places: `prompt`, `answer`, `thought`, `edit`, `command`, `tool`, `error`, `notice`.
    pub kinds: Vec<&'static str>,
    /// Only what failed.
    pub only_errors: bool,
}

/// A place that a search found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArchiveHit {
    /// The session.
    pub uid: String,
    /// Its title or first prompt.
    pub name: String,
    pub agent: String,
    pub folder: PathBuf,
    /// The number of the event.
    pub seq: i64,
    /// What it is, in a word.
    pub kind: String,
    /// When, for people.
    pub when: String,
    /// Whether it failed.
    pub is_error: bool,
    /// The words in their surroundings, each between `\u{2}` and `\u{3}`.
    pub snippet: String,
}

/// Another folder in which a session whose own is gone may go on, and why it is named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FolderOffer {
    pub folder: PathBuf,
    /// Why, as words for the user.
    pub why: FolderReason,
}

/// Why a folder is offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FolderReason {
    /// It is the very folder, by its number on the disk, under another name.
    Moved,
    /// It is a worktree of the same repository.
    Worktree,
    /// Its repository has the same remote.
    SameRemote,
    /// It has the same name.
    SameName,
    /// The user is in it.
    Current,
    /// A file that was imported names it.
    Imported,
}

/// What the app asks of the store.
#[derive(Debug, Clone, PartialEq)]
pub enum StoreJob {
    /// What a folder was last used with; asked once, by a parlor that starts in it.
    Folder {
        /// The user's folder.
        folder: PathBuf,
        /// Whether its last session is wanted too.
        wants_session: bool,
    },
    /// All sessions, latest first, in pages; nearness is to this folder.
    List {
        /// Comes back with each page.
        serial: u64,
        /// The user's folder.
        folder: PathBuf,
    },
    /// The end of a session, to be looked at.
    Preview { uid: String },
    /// A session, to be shown.
    Open {
        uid: String,
        /// Whether it is to be gone on with: then no other parlor may have it.
        takes: bool,
        /// The event that is to be shown.
        at: Option<i64>,
        /// The user's folder.
        folder: PathBuf,
    },
    /// A session that an agent listed, to be opened from the archive if it is there.
    OpenListed {
        /// The agent that listed it.
        conn: ConnId,
        /// The name of the agent.
        agent: String,
        /// The entry of the agent's list.
        info: Box<SessionInfo>,
        /// The user's folder.
        folder: PathBuf,
    },
    /// A session that is being read here is to be gone on with.
    Take {
        /// Its number here.
        key: SessionKey,
        uid: String,
    },
    /// The events before this one.
    Earlier {
        /// Its number here.
        key: SessionKey,
        uid: String,
        /// Only those before this event.
        before: i64,
        /// All from this one on; `None`: as many as a page holds.
        from: Option<i64>,
    },
    /// The events from this one on.
    Later {
        /// Its number here.
        key: SessionKey,
        uid: String,
        /// The first of them.
        from: i64,
    },
    /// What is around an event that is shown already.
    Around {
        /// Its number here.
        key: SessionKey,
        uid: String,
        /// The event.
        at: i64,
    },
    /// A title of the user's own.
    Rename { uid: String, title: String },
    /// The agent knows the title of the user's own now.
    TitleKnown { uid: String, title: String },
    /// Its end, for good.
    Delete { uid: String },
    /// A file.
    Export {
        uid: String,
        form: ExportForm,
        /// The file goes into this folder.
        folder: PathBuf,
    },
    /// A full-text search.
    Search {
        /// Comes back with the answer.
        serial: u64,
        search: ArchiveSearch,
    },
}

/// What the store answers. Errors are whole sentences with what to do next.
#[derive(Debug, Clone, PartialEq)]
pub enum StoreNews {
    /// The agent that the folder was last used with.
    FolderAgent(String),
    /// The last session of the folder that can be gone on with.
    FolderSession(Box<ArchiveRow>),
    /// Something happened to what is kept, in a sentence: it stands until it is read.
    Told(String),
    /// Why what happens cannot be saved now, in a few words; `None`: it can be again, and all that waited is written.
    Unsaved(Option<String>),
    /// A page of the list.
    Listed {
        serial: u64,
        /// The rows, or why there are none.
        rows: Result<Vec<ArchiveRow>, String>,
        /// Whether it was the last page.
        is_last: bool,
    },
    /// The end of a session.
    Previewed { uid: String, kept: Result<Box<RecordedSession>, String> },
    /// A session, to be shown.
    Opened(Box<ArchiveOpening>),
    /// A session that the agent listed is not in the archive.
    NotKept(ConnId, Box<SessionInfo>),
    /// A session that is read here may be gone on with: as kept now.
    Taken {
        /// Its number here.
        key: SessionKey,
        /// As kept now.
        kept: Result<Box<RecordedSession>, String>,
    },
    /// Events from before.
    Earlier {
        key: SessionKey,
        /// The events, or why there are none.
        page: Result<EarlierPage, String>,
    },
    /// Events behind those that are shown.
    Later {
        key: SessionKey,
        /// The events, or why there are none.
        window: Result<Window, String>,
    },
    /// What is around an event that is shown already.
    Around {
        /// In this session.
        key: SessionKey,
        /// The events, or why there are none.
        window: Result<Window, String>,
    },
    /// A title was kept, or not.
    Renamed {
        uid: String,
        title: String,
        /// The agent with its name for the session, if it has one; or why not.
        result: Result<Option<(String, SessionId)>, String>,
    },
    /// That the agent knows the title was kept, or not.
    TitleKnown {
        uid: String,
        /// Why not.
        result: Result<(), String>,
    },
    /// A session was deleted, or not.
    Deleted {
        uid: String,
        /// Why not.
        result: Result<(), String>,
    },
    /// A file was written, or not.
    Exported(Result<PathBuf, String>),
    /// What a search found.
    Found {
        serial: u64,
        /// The places, best first.
        hits: Result<Vec<ArchiveHit>, String>,
    },
    /// What was handed over of a session is on the disk.
    Written {
        /// The session.
        key: SessionKey,
        /// All up to this mark, or to what came late with this number.
        upto: u64,
        /// Where marks stand.
        marks: Vec<MarkPlace>,
    },
    /// What is recorded of a session is kept under this id from now on.
    KeptAs {
        /// The session.
        key: SessionKey,
        /// The store's id.
        uid: String,
    },
}

/// Where a mark of a session stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MarkPlace {
    pub mark: u64,
    /// The number of the event behind it.
    pub seq: i64,
    /// Whether all between the mark before and this one was kept in whole.
    pub is_whole: bool,
}

/// A session that was read to be shown.
#[derive(Debug, Clone, PartialEq)]
pub struct ArchiveOpening {
    pub uid: String,
    /// Whether it is to be gone on with.
    pub takes: bool,
    /// The event that is to be shown.
    pub at: Option<i64>,
    /// As kept, or why it cannot be had.
    pub kept: Result<RecordedSession, String>,
    /// If its folder is gone: where it may go on.
    pub offers: Option<Vec<FolderOffer>>,
}

/// Events before those that are shown, oldest first.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct EarlierPage {
    pub events: Vec<RecordedEvent>,
    /// The number of the first of them.
    pub first_seq: i64,
    /// How many are left before them.
    pub left_out_count: u64,
}

/// Events somewhere in a session, oldest first.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Window {
    pub events: Vec<RecordedEvent>,
    /// The number of the first of them.
    pub first_seq: i64,
    /// How many are kept before them; 0 where nobody asked.
    pub left_out_count: u64,
    /// The number behind the last of them.
    pub next_seq: i64,
    /// How many are kept behind them.
    pub later_count: u64,
    /// The place of the event that was looked for among `events`.
    pub mark: Option<usize>,
}
