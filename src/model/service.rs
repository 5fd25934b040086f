//! Work for the local services (files, terminals, git), and what they tell.

use std::path::PathBuf;
use std::sync::Arc;

use super::{
    AllowedBy, AskId, AskedFile, ConnId, CopyOutcome, ExitInfo, FolderServers, ItemId, LocatedDiff, Policy,
    RpcError, ServedFile, SessionKey, StoredGrant, TerminalCommand, TerminalId,
};

/// A file request with all that is needed to serve it.
#[derive(Debug, Clone, PartialEq)]
pub struct FileJob {
    pub conn: ConnId,
    pub ask: AskId,
    /// The file, absolute (a relative one was resolved against the session's folder).
    pub path: PathBuf,
    /// Folders that bound access.
    pub roots: Vec<PathBuf>,
    /// What decides whether it is served, asked or refused.
    pub policy: Arc<Policy>,
    /// Who allowed the path that was asked about; `None`: nobody was asked yet.
    pub allowed: Option<AllowedBy>,
    /// Whether a missing file reads as empty (a quirk of some agents).
    pub missing_reads_empty: bool,
    pub op: FileOp,
}

/// What to do with a file.
#[derive(Debug, Clone, PartialEq)]
pub enum FileOp {
    /// Read it, or a part of it.
    Read {
        /// First line, from 1; 0 reads as 1.
        line: Option<u32>,
        /// How many lines.
        limit: Option<u32>,
    },
    /// Replace it.
    Write {
        /// The new content.
        content: String,
    },
}

/// A terminal request.
#[derive(Debug, Clone, PartialEq)]
pub enum TerminalJob {
    /// Run a command; comes back as [`ServiceEvent::TerminalStarted`].
    Create {
        conn: ConnId,
        ask: AskId,
        session: SessionKey,
        /// What to run; `cwd` is absolute.
        command: TerminalCommand,
        /// The folders that must hold the real working directory, else it comes back as
        /// [`ServiceEvent::TerminalOutside`]; `None`: the user allowed it as it is.
        within: Option<Vec<PathBuf>>,
    },
    /// Read the output for the agent; comes back as [`ServiceEvent::TerminalRead`].
    Output { conn: ConnId, ask: AskId, terminal: TerminalId },
    /// Kill the command with all that it started; its end comes as [`ServiceEvent::TerminalEnded`].
    Kill(TerminalId),
    /// Kill if it runs, and forget it.
    Release(TerminalId),
    /// Kill and forget all of a connection.
    ReleaseAll(ConnId),
}

/// What services tell.
#[derive(Debug, Clone, PartialEq)]
pub enum ServiceEvent {
    /// A file request was served.
    FileDone {
        conn: ConnId,
        ask: AskId,
        /// The text that was read, `None` for a write; or the error to answer with.
        result: Result<Option<String>, RpcError>,
        /// What it was, unless it is not worth an item of the transcript: a read inside the session's folders.
        served: Option<Box<ServedFile>>,
    },
    /// The user must be asked about a file.
    FileAsks {
        /// The job, to be sent again with `allowed`, or answered with an error.
        job: FileJob,
        /// What it would do.
        asked: Box<AskedFile>,
    },
    /// The real working directory of a command is outside the folders that must hold it.
    TerminalOutside {
        conn: ConnId,
        ask: AskId,
        session: SessionKey,
        /// What was to run; `cwd` is the real folder.
        command: TerminalCommand,
    },
    /// A command runs, or could not be started.
    TerminalStarted {
        conn: ConnId,
        ask: AskId,
        session: SessionKey,
        /// The command line for people.
        command: String,
        result: Result<TerminalId, RpcError>,
    },
    /// New output, as the command wrote it; several writes may come joined.
    TerminalOutput {
        terminal: TerminalId,
        /// What it wrote.
        bytes: Vec<u8>,
    },
    /// A command ended. Sent once, after its last output.
    TerminalEnded { terminal: TerminalId, exit: ExitInfo },
    /// The output that was asked for.
    TerminalRead {
        conn: ConnId,
        ask: AskId,
        /// The text without escape sequences, whether it was cut, and how it ended, if it has.
        result: Result<(String, bool, Option<ExitInfo>), RpcError>,
    },
    /// Where the changes of a tool call stand in their files.
    DiffsLocated {
        session: SessionKey,
        /// The tool call's item.
        item: ItemId,
        /// The changes, each with its place.
        found: Vec<LocatedDiff>,
    },
    /// Which MCP servers a folder names; else what is wrong with its file.
    ServersFound(PathBuf, Result<Option<FolderServers>, String>),
    /// Branch and state of a session's folder; `None` outside a repository.
    Git(SessionKey, Option<GitInfo>),
    /// Folders that were used before and are there, the latest first.
    Folders(Vec<PathBuf>),
    /// The real path of a folder that was named, or why it cannot be used, for the user.
    FolderFound {
        /// As it was named.
        text: String,
        found: Result<PathBuf, String>,
    },
    /// The history of prompts of the session's folder, oldest first.
    History(SessionKey, Vec<String>),
    /// A login command ended; `Err` says why it failed.
    LoginDone(ConnId, Result<(), String>),
    /// An editor that had the terminal ended; `Err` says how it failed.
    EditorDone(Result<(), String>),
    /// Something was to be copied.
    Copied {
        /// What it was, for people.
        what: String,
        /// Which way it went.
        outcome: CopyOutcome,
    },
    /// What was granted for good, to all agents.
    Grants(Vec<StoredGrant>),
    /// The store has something to tell of kept sessions.
    Store(Box<super::StoreNews>),
    /// Something went wrong that the user should know.
    Trouble(String),
}

/// Branch and state of a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitInfo {
    /// Branch, or the short commit when detached.
    pub branch: String,
    /// Whether something is changed.
    pub is_dirty: bool,
}
