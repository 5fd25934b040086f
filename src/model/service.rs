//! Jobs for the local services (files, terminals, git), and their events.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::Arc;

use super::held::{HeldNews, Holding};
use super::snapshot::{SnapshotNews, Span};
use super::{
    AgentSpec, Allowance, AskedFile, ConnId, CopyOutcome, ExitInfo, FolderServers, ItemId, LocatedDiff,
    MatchJob, Policy, RegistryAgent, RegistryIndex, RequestId, RpcError, RuleMatches, Sandbox, ServedFile,
    SessionKey, StoredGrant, TemplateList, TerminalCommand, TerminalId,
};

/// A file request with everything needed to serve it.
#[derive(Debug, Clone, PartialEq)]
pub struct FileJob {
    pub conn: ConnId,
    pub request_id: RequestId,
    /// The top-level session. Its requests are served independently of those of other sessions.
    pub session: SessionKey,
    /// Absolute path of the file (a relative one was resolved against the session's folder).
    pub path: PathBuf,
    pub roots: Vec<PathBuf>,
    pub policy: Arc<Policy>,
    /// Who allowed the path after a confirmation; `None` before one.
    pub allowed: Option<Allowance>,
    /// Whether a missing file reads as empty (a quirk of some agents).
    pub missing_reads_empty: bool,
    pub holding: Holding,
    pub op: FileOp,
}

/// A file operation.
#[derive(Debug, Clone, PartialEq)]
pub enum FileOp {
    Read {
        /// First line, from 1; 0 reads as 1.
        line: Option<u32>,
        limit: Option<u32>,
    },
    Write {
        content: String,
    },
}

/// A terminal request.
#[derive(Debug, Clone, PartialEq)]
pub enum TerminalJob {
    /// Run a command; returns [`ServiceEvent::TerminalStarted`].
    Create {
        conn: ConnId,
        request_id: RequestId,
        session: SessionKey,
        /// The command; `cwd` is absolute.
        command: TerminalCommand,
        /// The folders that must contain the real working directory, otherwise
        /// [`ServiceEvent::TerminalOutside`] is returned; `None` if the user allowed any folder.
        within: Option<Vec<PathBuf>>,
        /// Whether the user can type into it; without it, the command has no input.
        has_input: bool,
        size: TerminalSize,
        sandbox: Option<Box<Sandbox>>,
    },
    /// Run a command line that the user typed, in the user's shell; returns [`ServiceEvent::ShellStarted`]. Its final
    /// folder and environment are those of the session's next command.
    Shell {
        session: SessionKey,
        number: u32,
        line: String,
        /// The folder of the session's first command, on this machine.
        folder: PathBuf,
        size: TerminalSize,
    },
    Resize(TerminalId, TerminalSize),
    Input(TerminalId, TerminalInput),
    /// Kill the commands that the user typed in a session, and drop the environment.
    CloseShell(SessionKey),
    /// Read the output for the agent; returns [`ServiceEvent::TerminalRead`].
    Output {
        conn: ConnId,
        request_id: RequestId,
        terminal: TerminalId,
    },
    /// Kill the command and its child processes; [`ServiceEvent::TerminalEnded`] follows.
    Kill(TerminalId),
    /// Kill the command if it is running, and remove its terminal.
    Release(TerminalId),
    /// Kill and remove all terminals of a connection.
    ReleaseAll(ConnId),
}

/// Rows and columns of a terminal; neither is 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TerminalSize {
    pub rows: u16,
    pub cols: u16,
}

/// Input of the user for a terminal.
#[derive(Clone, PartialEq, Eq)]
pub enum TerminalInput {
    /// The bytes of a key.
    Bytes(Vec<u8>),
    /// An arrow key, Home or End, by the last letter of its sequence; the rest depends on the terminal's mode.
    Cursor(u8),
    Paste(String),
}

// What is typed may be a password.
impl std::fmt::Debug for TerminalInput {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TerminalInput")
    }
}

#[derive(Debug, Clone, PartialEq)]
pub enum ServiceEvent {
    /// Something about the snapshots of a session's folder.
    Snapshot(SessionKey, SnapshotNews),
    FileDone {
        conn: ConnId,
        request_id: RequestId,
        /// The text that was read, `None` for a write; or the error to respond with.
        result: Result<Option<String>, RpcError>,
        /// The access for the transcript; `None` for a read inside the session's folders, which is not shown.
        served: Option<Box<ServedFile>>,
    },
    /// Held files of a session were compared or applied, the latter with the snapshots before and after, if they were
    /// captured.
    Held(SessionKey, HeldNews, Option<Span>),
    /// A file request needs the user's confirmation.
    FileAsks {
        /// The job, to be sent again with `allowed`, or to respond to with an error.
        job: FileJob,
        asked: Box<AskedFile>,
    },
    /// The real working directory of a command is outside the allowed folders.
    TerminalOutside {
        conn: ConnId,
        request_id: RequestId,
        session: SessionKey,
        /// The command; `cwd` is the real folder.
        command: TerminalCommand,
    },
    TerminalStarted {
        conn: ConnId,
        request_id: RequestId,
        session: SessionKey,
        command: String,
        result: Result<TerminalId, RpcError>,
    },
    /// A command that the user typed was started, or failed to start.
    ShellStarted {
        session: SessionKey,
        number: u32,
        line: String,
        folder: PathBuf,
        result: Result<TerminalId, String>,
    },
    ShellFolder(SessionKey, PathBuf),
    /// New raw output of a command; several writes may be joined.
    TerminalOutput {
        terminal: TerminalId,
        bytes: Vec<u8>,
    },
    /// A command began or ended to read a line that its terminal does not show, such as a password.
    TerminalHidesInput {
        terminal: TerminalId,
        hides_input: bool,
    },
    /// A command ended. Sent once, after its last output.
    TerminalEnded {
        terminal: TerminalId,
        exit: ExitInfo,
    },
    /// The result of [`TerminalJob::Output`].
    TerminalRead {
        conn: ConnId,
        request_id: RequestId,
        /// The text without escape sequences, whether it was cut, and the exit status if the command ended.
        result: Result<(String, bool, Option<ExitInfo>), RpcError>,
    },
    /// The positions of a tool call's changes in their files.
    DiffsLocated {
        session: SessionKey,
        item: ItemId,
        found: Vec<LocatedDiff>,
    },
    /// The MCP servers that a folder configures, or the error in its file.
    ServersFound(PathBuf, Result<Option<FolderServers>, String>),
    BodiesSaved(bool),
    /// Branch and state of a session's folder; `None` outside a repository.
    Git(SessionKey, Option<GitInfo>),
    /// The files that match the mention being typed, best first. Sent again as the folder is read.
    FilesFound {
        session: SessionKey,
        query: String,
        files: Vec<FoundFile>,
        is_complete: bool,
    },
    /// The symbols that match the mention being typed, best first, and whether the folder has any.
    SymbolsFound {
        session: SessionKey,
        query: String,
        symbols: Vec<FoundSymbol>,
        has_tags: bool,
    },
    /// How many saved requests rules would have allowed, or why that is unknown.
    RulesMatched(MatchJob, Result<RuleMatches, String>),
    TemplatesFound(SessionKey, TemplateList),
    PromptPrepared(SessionKey, super::PromptId, Box<super::PreparedPrompt>),
    /// The text that replaces the paths of dropped files, or why there is none. Not sent if they do not exist.
    DropRead(Box<super::DropJob>, Result<String, String>),
    /// The label of an attached session, or why there is none.
    SessionAttached(Box<super::SessionAttachJob>, Result<String, String>),
    /// The label of the image in the clipboard, or why there is none.
    ImagePasted {
        session: SessionKey,
        /// The draft before the cursor.
        before: String,
        label: Result<String, String>,
    },
    /// The text in the clipboard, or why it cannot be read.
    ClipboardRead {
        session: SessionKey,
        /// Whether a command in the prompt needs it.
        is_register: bool,
        text: Result<String, String>,
    },
    /// Recently used folders that exist, latest first.
    Folders(Vec<PathBuf>),
    /// The resolved path of a folder that the user entered, or an error for display.
    FolderFound {
        text: String,
        found: Result<PathBuf, String>,
    },
    /// The prompt history of the session's folder, oldest first.
    History(SessionKey, Vec<String>),
    /// A sign-in command ended; `Err` contains the failure.
    LoginDone(ConnId, Result<(), String>),
    /// An editor that used the terminal ended; `Err` contains the failure.
    EditorDone(Result<(), String>),
    DraftEdited {
        session: SessionKey,
        before: String,
        /// The edited text, `None` if it is unchanged, or the failure.
        edited: Result<Option<String>, String>,
    },
    Copied {
        what: String,
        outcome: CopyOutcome,
    },
    Grants(Vec<StoredGrant>),
    Store(Box<super::StoreNews>),
    /// The result of a job with worktrees. Errors are full sentences with a next step.
    Worktree(SessionKey, Box<Result<super::WorktreeNews, String>>),
    ProtectedRead(Box<ProtectedJob>, ProtectedFiles),
    Problem(String),
    /// The registry of agents, or why it could not be read.
    RegistryRead {
        result: Result<RegistryIndex, String>,
        is_fetched: bool,
    },
    InstallProgress(String),
    /// The installed agent with the packages whose install scripts were not run, or what failed.
    AgentInstalled {
        agent: Box<RegistryAgent>,
        result: Result<(Box<AgentSpec>, Vec<String>), String>,
    },
}

/// The protected files that exist, each with a text that changes with it.
pub type ProtectedFiles = BTreeMap<PathBuf, String>;

/// Reads which protected files are in the folders of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProtectedJob {
    pub session: SessionKey,
    pub turn: u32,
    /// Whether it is the end of the turn.
    pub is_end: bool,
    pub folders: Vec<PathBuf>,
}

/// A search for files to mention in a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileQuery {
    pub session: SessionKey,
    pub folder: PathBuf,
    pub roots: Vec<PathBuf>,
    /// The path as typed so far.
    pub query: String,
    /// Paths that were mentioned before, latest first.
    pub recent: Vec<String>,
}

/// A file or folder that can be mentioned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundFile {
    /// Relative to the session's folder, or as typed for other folders; folders end with `/`.
    pub path: String,
}

/// A symbol that can be mentioned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundSymbol {
    pub name: String,
    /// What it is, `function`, or a letter for that; empty if unknown.
    pub kind: String,
    /// Relative to the session's folder.
    pub path: String,
    /// Its lines, from 1; `None` if they are unknown.
    pub lines: Option<RangeInclusive<u32>>,
}

/// Branch and state of a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitInfo {
    /// Branch, or the short commit hash if detached.
    pub branch: String,
    pub is_dirty: bool,
}
