//! Side effects as data; `runtime::effects` executes them.

use std::ops::Range;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::ui_request::UiRequest;
use crate::model::held::HeldJob;
use crate::model::snapshot::SnapshotJob;
use crate::model::{
    AgentCommand, AgentSpec, Attachment, AttachmentLabel, ConfigJob, ConnId, CopyContent, CopyJob, DropJob,
    FileJob, FileQuery, LocateJob, Location, MatchJob, Note, PromptJob, ProtectedJob, ReadBytes,
    RegistryAgent, SessionAttachJob, SessionKey, StoreJob, StoredGrant, TerminalJob, UnsavedBody,
    WorktreeJob,
};

/// The context of a reducer: the time of the event, and what follows from it.
#[derive(Debug)]
pub struct Cx {
    pub now: Instant,
    /// To be carried out after the event.
    pub effects: Vec<Effect>,
    /// What the core asks of the front ends.
    pub requests: Vec<UiRequest>,
}

impl Cx {
    pub fn new(now: Instant) -> Self {
        Self { now, effects: Vec::new(), requests: Vec::new() }
    }
}

/// A side effect.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Starts an agent; its events refer to this id.
    Connect {
        conn: ConnId,
        spec: AgentSpec,
        /// The folder of the session that it is started for.
        cwd: PathBuf,
        /// Delay before the start (back-off after a crash).
        delay: Duration,
    },
    Send(ConnId, AgentCommand),
    /// Tries at once to restore an interrupted connection.
    RetryNow(ConnId),
    /// Stops an agent: close stdin, 2 s, TERM to the group, 3 s, KILL to the group. `force`: KILL immediately.
    Disconnect {
        conn: ConnId,
        force: bool,
    },
    /// Saves texts so that they can be unloaded; reported as `ServiceEvent::BodiesSaved`.
    SaveBodies {
        bodies: Vec<UnsavedBody>,
        read: ReadBytes,
    },
    /// Serves a file request; reported as `ServiceEvent::FileDone` or `ServiceEvent::FileAsks`.
    File(FileJob),
    /// Stops the file requests of a top-level session that are being served. `keeps_writes`: only reads.
    StopFiles {
        session: SessionKey,
        keeps_writes: bool,
    },
    /// Compares or applies held files; reported as `ServiceEvent::Held`.
    Held(HeldJob),
    /// Captures, plans or restores; reported as `ServiceEvent::Snapshot`.
    Snapshot(SnapshotJob),
    /// Locates the changes of a tool call in their files; reported as `ServiceEvent::DiffsLocated`.
    LocateDiffs(LocateJob),
    Terminal(TerminalJob),
    Timer(TimerId, Duration),
    StopTimer(TimerId),
    /// Notifies the user, as configured, with this sentence: something waits in another tab, or while the terminal is not
    /// focused.
    Announce {
        session: SessionKey,
        text: String,
    },
    View(ViewCommand),
    /// Finds files for a mention; reported as `ServiceEvent::FilesFound`.
    FindFiles(FileQuery),
    /// Attaches the transcript of a session to a draft; reported as `ServiceEvent::SessionAttached`.
    AttachSession(SessionAttachJob),
    /// Reads what a prompt refers to; reported as `ServiceEvent::PromptPrepared`.
    PreparePrompt(PromptJob),
    SaveAttachment(Attachment),
    /// Saves the image of the clipboard as an attachment; reported as `ServiceEvent::ImagePasted`. A text is reported as
    /// `ServiceEvent::ClipboardRead`.
    ReadClipboard {
        session: SessionKey,
        /// The draft before the cursor; `None`: a command needs the text.
        before: Option<String>,
    },
    /// Reads dropped files; reported as `ServiceEvent::DropRead` if they exist.
    ReadDropped(DropJob),
    /// Opens a pasted text in the user's editor, like [`Effect::EditDraft`], and an image in the system's viewer.
    OpenAttachment {
        session: SessionKey,
        draft: String,
        label: AttachmentLabel,
        /// The working directory of the editor.
        folder: PathBuf,
    },
    /// Counts the saved requests that rules would have allowed; reported as `ServiceEvent::RulesMatched`.
    MatchRules(MatchJob),
    /// Adds a prompt to the folder's history.
    SavePrompt {
        folder: PathBuf,
        text: String,
    },
    /// Reads a folder's prompt history; reported as `ServiceEvent::History`.
    LoadHistory {
        session: SessionKey,
        folder: PathBuf,
    },
    /// Records events of a session; at most one per session for each event.
    Keep {
        session: SessionKey,
        /// The records in order.
        notes: Vec<Note>,
    },
    /// Finds the MCP servers that a folder configures; reported as `ServiceEvent::ServersFound`.
    FindServers {
        folder: PathBuf,
    },
    /// Saves the user's decision about a file of a folder.
    KeepTrust {
        /// The file in which the answer is saved.
        location: PathBuf,
        allows: bool,
        about: PathBuf,
    },
    /// Saves answers about templates of a project, each with the template that it is about, and lists the templates for a
    /// session; reported as `ServiceEvent::TemplatesFound`.
    LoadTemplates {
        session: SessionKey,
        /// The folder whose templates may be used; `None` if it has none.
        project: Option<PathBuf>,
        answers: Vec<(PathBuf, PathBuf)>,
        allows: bool,
    },
    /// Reads the permanent grants; reported as `ServiceEvent::Grants`.
    LoadGrants,
    SaveGrant(StoredGrant),
    RemoveGrant(StoredGrant),
    /// Runs a job of the store; reported as `ServiceEvent::Store`.
    Store(StoreJob),
    SaveAgentChoice {
        folder: PathBuf,
        agent: String,
    },
    /// Saves whether an agent speaks the draft of version 2.
    SaveDraftAgent {
        agent: String,
        is_draft: bool,
    },
    /// Lists recently used folders; reported as `ServiceEvent::Folders`.
    ListFolders,
    /// Checks whether a folder exists; reported as `ServiceEvent::FolderFound`.
    FindFolder {
        text: String,
        /// The base of a relative path.
        base: PathBuf,
    },
    /// Reads which protected files exist; reported as `ServiceEvent::ProtectedRead`.
    ReadProtected(ProtectedJob),
    /// Reads the git branch and state of a folder; reported as `ServiceEvent::Git`.
    ReadGit {
        session: SessionKey,
        folder: PathBuf,
    },
    /// Runs a job with worktrees; reported as `ServiceEvent::Worktree`.
    Worktree {
        session: SessionKey,
        folder: PathBuf,
        job: WorktreeJob,
    },
    /// Opens an address in the browser (confirmed by the user).
    OpenUrl(String),
    /// Opens a file in the user's editor. A terminal editor takes over the terminal; reported as
    /// `ServiceEvent::EditorDone`.
    OpenFile {
        /// The path is absolute.
        location: Location,
        /// The working directory of the editor.
        folder: PathBuf,
        /// The editor of a remote agent, whose files may not be on this machine.
        editor: Option<String>,
    },
    /// Opens the draft of a session in the user's editor, like [`Effect::OpenFile`]; reported as
    /// `ServiceEvent::DraftEdited`.
    EditDraft {
        session: SessionKey,
        text: String,
        /// The working directory of the editor.
        folder: PathBuf,
    },
    /// Leaves the screen, runs a command in the terminal, and returns; reported as `ServiceEvent::LoginDone`.
    RunLogin {
        conn: ConnId,
        /// Program, arguments, the agent's variables, folder.
        spec: AgentSpec,
        /// Variables added by the sign-in method.
        env: Vec<(String, String)>,
    },
    /// Copies something to the clipboard; reported as `ServiceEvent::Copied`.
    Copy(CopyJob),
    /// Copies the screen selection to the clipboard; reported as `ServiceEvent::Copied`.
    CopySelection,
    /// Inserts the screen selection into the prompt as a quote, or this content if there is none.
    QuoteSelection(Option<CopyContent>),
    CaptureMouse(bool),
    SetTheme(String),
    /// Changes the configuration, or reads it again; the front end gets the result as `ConfigNews`.
    Configure(ConfigJob),
    /// Reads the registry of agents, from the network if `refresh`; reported as `ServiceEvent::RegistryRead`.
    ReadRegistry {
        refresh: bool,
    },
    /// Installs an agent that the user has seen and confirmed; reported as `ServiceEvent::AgentInstalled`.
    InstallAgent {
        agent: Box<RegistryAgent>,
        /// The packages whose install scripts may run.
        scripts: Vec<String>,
    },
    CancelInstall,
    /// Records whether an installed agent has started.
    NoteStart {
        id: String,
        has_worked: bool,
    },
    /// Suspends parlor (job control).
    Suspend,
    /// Stops all agents in order, then quits.
    Quit,
}

/// Identifies a timer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TimerId {
    /// A cancel was not answered for 10 s.
    CancelOverdue(SessionKey),
    /// A turn had no updates for 120 s.
    TurnQuiet(SessionKey),
    /// The status line's message is cleared.
    Flash,
    /// The time for the second Ctrl+C is over.
    QuitWindow,
    /// Runs the next step of a session's search.
    Search(SessionKey),
    /// Checks whether a replayed history is complete.
    History(SessionKey),
    /// A change of mode, model or options was not answered for 10 s.
    SettingOverdue(SessionKey),
    /// Checks whether the keys have paused that were typed into a terminal whose command has ended.
    TypedInto(SessionKey),
    /// Compares running turns with the limits of time.
    Budget,
    /// The snapshot before a turn takes too long.
    SnapshotOverdue(SessionKey),
    /// The time for an agent to list its commands is over.
    Commands(SessionKey),
}

/// A command to the view, which owns scrolling and the composer.
#[derive(Debug, Clone, PartialEq)]
pub enum ViewCommand {
    /// Scrolls the transcript by lines (negative: up).
    ScrollLines(i32),
    /// Scrolls the transcript by screens (negative: up).
    ScrollPages(i32),
    /// Scrolls wide tables by columns (negative: left).
    ScrollSideways(i32),
    /// Wraps long lines of diffs and code, or hides their end.
    ToggleWrap,
    ScrollTop,
    /// Scrolls to the end, and follows new text.
    ScrollEnd,
    /// Scrolls the selected item into view.
    ShowSelected,
    ShowSelectedAtTop,
    /// Scrolls the current search hit into view.
    ShowHit,
    /// Replaces the text of the composer and moves the cursor to its end. The edit can be undone.
    SetDraft(String),
    ShowDraft(SessionKey, String),
    /// Replaces a byte range of the composer's text and moves the cursor to its end. The edit can be undone.
    ReplaceInDraft(Range<usize>, String),
    /// Clears the composer, as an edit that can be undone.
    ClearDraft,
    /// Shows the composer in place of the transcript, or below it.
    ToggleFullComposer,
    /// Scrolls the body of the top dialog by lines.
    ScrollDialog(i32),
    /// Scrolls the body of the top dialog by screens.
    ScrollDialogPages(i32),
    /// In the dialog of all changes: moves by hunks (negative: back).
    JumpHunk(i32),
    Redraw,
}
