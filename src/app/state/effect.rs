//! What is to be done, as data; `runtime::effects` does it.

use std::path::PathBuf;
use std::time::Duration;

use crate::model::{
    AgentCommand, AgentSpec, ConnId, CopyJob, FileJob, LocateJob, Location, Note, SessionKey, StoreJob,
    StoredGrant, TerminalJob,
};

/// One thing to be done outside.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Start an agent; its events come back under this id.
    Connect {
        /// The new connection.
        conn: ConnId,
        /// What to start.
        spec: AgentSpec,
        /// The folder of the session that it is started for.
        cwd: PathBuf,
        /// Wait this long first (back-off after a crash).
        delay: Duration,
    },
    /// Write something to an agent.
    Send(ConnId, AgentCommand),
    /// Stop an agent: close stdin, 2 s, TERM to the group, 3 s, KILL to the group. `force`: KILL at once.
    Disconnect {
        conn: ConnId,
        /// Without waiting.
        force: bool,
    },
    /// Serve a file request; comes back as `ServiceEvent::FileDone` or `ServiceEvent::FileAsks`.
    File(FileJob),
    /// Look where the changes of a tool call stand in their files; comes back as
    /// `ServiceEvent::DiffsLocated`.
    LocateDiffs(LocateJob),
    /// Serve a terminal request.
    Terminal(TerminalJob),
    /// Set a timer, replacing the one of the same id.
    Timer(TimerId, Duration),
    /// Take a timer back.
    StopTimer(TimerId),
    /// Call the user, as configured, with this line: something waits in another tab, or while nobody looks.
    Announce(String),
    /// Tell the view something.
    View(ViewCommand),
    /// Keep a prompt in the folder's history.
    SavePrompt {
        /// Whose history.
        folder: PathBuf,
        /// The prompt.
        text: String,
    },
    /// Read a folder's history of prompts; comes back as `ServiceEvent::History`.
    LoadHistory {
        session: SessionKey,
        folder: PathBuf,
    },
    /// Keep what happened in a session; at most one of these comes of an event for each session.
    Keep {
        session: SessionKey,
        /// What happened, in order.
        notes: Vec<Note>,
    },
    /// Look which MCP servers a folder names; comes back as `ServiceEvent::ServersFound`.
    FindServers {
        folder: PathBuf,
    },
    /// Keep what the user said about the servers that a folder names.
    KeepServersAnswer {
        /// Where.
        place: PathBuf,
        /// Whether they may be used.
        allows: bool,
        /// The file that names them.
        about: PathBuf,
    },
    /// Read what was granted for good; comes back as `ServiceEvent::Grants`.
    LoadGrants,
    SaveGrant(StoredGrant),
    /// Delete a grant that is stored.
    RemoveGrant(StoredGrant),
    /// Ask the store something; comes back as `ServiceEvent::Store`.
    Store(StoreJob),
    /// Keep the choice of agent for a folder.
    SaveAgentChoice {
        folder: PathBuf,
        agent: String,
    },
    /// Look which folders were used before; comes back as `ServiceEvent::Folders`.
    ListFolders,
    /// Look whether a folder is there; comes back as `ServiceEvent::FolderFound`.
    FindFolder {
        /// As the user named it.
        text: String,
        /// What a relative path counts from.
        base: PathBuf,
    },
    /// Ask git for branch and state of a folder; comes back as `ServiceEvent::Git`.
    ReadGit {
        session: SessionKey,
        folder: PathBuf,
    },
    /// Open an address in the browser (the user agreed).
    OpenUrl(String),
    /// Open a file in the user's editor. One that needs the terminal gets it, and ends as
    /// `ServiceEvent::EditorDone`.
    OpenFile {
        /// The place; its path is absolute.
        place: Location,
        /// The folder that the editor runs in.
        folder: PathBuf,
        /// The command of the editor, if it is not the general one: then the file is perhaps not on this machine.
        editor: Option<String>,
    },
    /// Leave the screen, run this command in the terminal, come back; ends as `ServiceEvent::LoginDone`.
    RunLogin {
        /// For this connection.
        conn: ConnId,
        /// Program, arguments, the agent's own variables, folder.
        spec: AgentSpec,
        /// Variables that the sign-in method adds.
        env: Vec<(String, String)>,
    },
    /// Put something on the clipboard; comes back as `ServiceEvent::Copied`.
    Copy(CopyJob),
    /// Put what is selected on the screen on the clipboard; comes back as `ServiceEvent::Copied`.
    CopySelection,
    /// Take the mouse, or leave it to the terminal.
    CaptureMouse(bool),
    /// Change the theme.
    SetTheme(String),
    /// Stop as a job of the shell.
    Suspend,
    /// Leave: stop all agents in order, then end the program.
    Quit,
}

/// Timers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TimerId {
    /// A cancel got no answer for 10 s.
    CancelOverdue(SessionKey),
    /// A turn is quiet for 120 s.
    TurnQuiet(SessionKey),
    /// The status line's short message has been seen.
    Flash,
    /// The second Ctrl+C came too late.
    QuitWindow,
    /// The search of a session has more to look at.
    Search(SessionKey),
    /// A replayed history may be over.
    History(SessionKey),
    /// A change of mode, model or options got no answer for 10 s.
    SettingOverdue(SessionKey),
}

/// What the view is told; scrolling and the composer are the view's own.
#[derive(Debug, Clone, PartialEq)]
pub enum ViewCommand {
    /// Scroll the transcript by so many lines (negative: up).
    ScrollLines(i32),
    /// Scroll the transcript by so many screens (negative: up).
    ScrollPages(i32),
    /// Move tables that are too wide by so many columns of theirs (negative: to the left).
    ScrollSideways(i32),
    /// To the beginning.
    ScrollTop,
    /// To the end, and follow.
    ScrollEnd,
    /// Bring the marked item into view.
    ShowSelected,
    /// Bring the marked item to the top.
    ShowSelectedAtTop,
    /// Bring the current hit of the search into view.
    ShowHit,
    /// Put this text into the composer, cursor at the end.
    SetDraft(String),
    /// Empty the composer, as an edit that can be undone.
    ClearDraft,
    /// Scroll the body of the top dialog by so many lines.
    ScrollDialog(i32),
    /// Scroll the body of the top dialog by so many screens.
    ScrollDialogPages(i32),
    /// In all changes: so many changed places on (negative: back).
    JumpHunk(i32),
    /// Repaint everything.
    Redraw,
}
