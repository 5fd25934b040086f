//! User actions, triggered by a key, the mouse or the palette.

use super::{Gap, ItemId};

/// A user action. Actions without data can be bound to keys by their kebab-case name (`ScrollPageUp` is
/// `scroll-page-up`); `config::keymap::actions` has the table of names and help texts, which say what each does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    /// Sends the prompt, or queues it while a turn is running.
    Submit,
    /// Inserts a line break into the prompt.
    NewLine,
    /// Closes the top dialog; otherwise cancels the running turn; otherwise clears the selection.
    Escape,
    /// Clears the prompt, otherwise cancels the turn. Twice within a second quits.
    ClearOrQuit,
    /// Quits, with a confirmation while a turn is running.
    Quit,
    /// Goes to the previous prompt in the folder's history, or moves the cursor up one line.
    HistoryPrevious,
    /// Goes to the next prompt in the history, or moves the cursor down one line.
    HistoryNext,
    Complete,
    /// Opens the prompt in the user's editor.
    EditDraft,
    /// Puts the prompt aside, or restores one if the prompt is empty.
    StashDraft,
    /// Shows the prompt in place of the transcript, or below it.
    FullComposer,
    /// Attaches the image of the clipboard to the prompt.
    PasteImage,
    OpenAttachment,

    CursorLeft,
    CursorRight,
    WordLeft,
    WordRight,
    LineStart,
    LineEnd,
    ParagraphUp,
    ParagraphDown,
    DraftStart,
    DraftEnd,
    DeleteBefore,
    DeleteAfter,
    DeleteWordBefore,
    DeleteWordAfter,
    DeleteToLineStart,
    DeleteToLineEnd,
    /// Inserts the text that was deleted last.
    Yank,
    /// Replaces the inserted text by that of an earlier deletion.
    YankPop,
    Transpose,
    UppercaseWord,
    LowercaseWord,
    CapitalizeWord,
    Undo,
    Redo,

    ScrollLineUp,
    ScrollLineDown,
    ScrollPageUp,
    ScrollPageDown,
    ScrollTop,
    /// Scrolls to the end and follows new output.
    ScrollEnd,
    ScrollLeft,
    ScrollRight,
    /// Scrolls by this number of lines with the wheel; negative values scroll up.
    Scroll(i16),

    OpenSearch,
    /// In a search: goes to the next match.
    NextHit,
    /// In a search: goes to the previous match.
    PreviousHit,
    /// In a search: toggles between regular expression and literal text.
    ToggleRegex,
    PreviousPrompt,
    NextPrompt,
    PreviousCall,
    NextCall,
    PreviousFailure,
    NextFailure,
    /// Opens the outline: a list of prompts, edits, commands and failures.
    OpenOutline,
    /// Lists the running tool calls, commands and subagents.
    OpenTasks,
    /// Opens the filter menu: prompts, edits, commands or failures only.
    OpenFilter,
    /// Lists the files and URLs that the session mentions.
    OpenPlaces,
    /// Moves the keyboard focus to the transcript, or back to the prompt.
    Browse,

    SelectPrevious,
    SelectNext,
    /// Expands or folds the selected item.
    ToggleFold,
    /// Expands or folds this item (a click).
    ToggleItem(ItemId),
    ToggleAllFolds,
    ToggleThoughts,
    TogglePlan,
    /// Shows or hides the unchanged lines of the selected change.
    ToggleContext,
    /// Expands a gap of unchanged lines in the selected item that is visible on the screen.
    OpenGap,
    /// Expands this gap of unchanged lines.
    OpenThisGap(ItemId, Gap),
    /// Shows the protocol messages of the selected tool call.
    InspectItem,
    /// Asks what the agent should do instead of what it requests.
    RejectWithReason,
    /// Lists rules that would allow the request.
    AllowByRule,
    /// Moves the keys from the prompt to the question that is shown, or back.
    AnswerRequest,
    /// Opens the file of the selected tool call in the editor.
    OpenLocation,
    /// Cycles the diff layout: side by side, unified, by width.
    ToggleDiffLayout,
    /// Wraps long lines of diffs and code, or hides their end.
    ToggleWrap,
    /// Kills the running command of the selected item, or the only one.
    KillCommand,
    /// Moves the keys to the terminal of the selected item or of the running command, or back to the prompt.
    TypeIntoTerminal,

    CopySelection,
    ClearSelection,
    /// Inserts the selected text, or the selected item, into the prompt as a quote.
    QuoteSelection,
    /// Copies the source text of the selected item, or of the last reply.
    CopyItem,
    /// Copies the last reply as Markdown.
    CopyReply,
    /// Copies the last reply as plain text.
    CopyReplyPlain,
    CopyCode,
    CopyCommand,
    CopyOutput,
    /// Copies the last change as a patch.
    CopyPatch,
    /// Copies all changes of the last turn as one patch.
    CopyTurnPatch,
    OpenCopy,
    ToggleMouse,

    /// Lists the permissions that were granted, to revoke them.
    OpenGrants,
    OpenPalette,
    OpenHelp,
    OpenChanges,
    OpenLog,
    OpenConnection,
    OpenAgents,
    /// Lists sessions: open ones, saved ones, and those that the agent lists.
    OpenSessions,
    /// Resumes the last session of the folder, which was offered at startup.
    ContinueLast,
    /// Searches the contents of saved sessions; in the list, toggles between names and contents.
    SearchSessions,
    OpenModes,
    NextMode,
    OpenModels,
    OpenOptions,
    OpenThemes,
    OpenSettings,
    OpenBindings,
    OpenSignIn,
    SignOut,
    OpenQueue,
    /// Cancels the running turn, and sends the draft or a queued prompt next.
    SendNow,
    /// Sends the draft or a queued prompt into the running turn, if the agent supports it.
    Steer,
    /// Restores the files that the last turn has changed, after showing them.
    UndoTurn,
    /// Takes back the last undo of files.
    RedoTurn,
    /// Approves all permission requests without asking, after a question, or stops that.
    ToggleApproveAll,
    /// Shows what the turns of the session have changed on the disk, to accept or reject it.
    ReviewChanges,
    /// Shows the writes that are held, to apply or discard them.
    ReviewHeld,
    /// Opens a path that the sandbox likely refused.
    AllowPath,
    /// Lists the prompts of the session, to go back to one.
    Rewind,
    /// Lists the prompts of the folder's history.
    OpenHistory,
    CancelTurn,

    NewSession,
    /// Forks this session, if the agent supports it.
    ForkSession,
    RenameSession,
    ExportSession,
    /// Hands this conversation over to another agent, or back to its own after it lost the session.
    HandOver,
    /// Shows the history that the agent replayed for this session.
    OpenAgentHistory,
    KeepAgentHistory,
    /// Removes the turns that were taken from the agent's history.
    PutBackTurns,
    /// Deletes the turn of the selected item, or the last one, from the record.
    DeleteTurn,
    CloseSession,
    RestartAgent,
    ForceStop,

    /// Lists the open requests of all tabs.
    OpenAttention,
    /// Chooses an agent for a new tab in this folder.
    NewTab,
    /// Chooses a folder for a new tab, then an agent.
    NewTabElsewhere,
    /// Opens a session in a new git worktree, with the agent of the active tab.
    NewWorktree,
    /// Lists the worktrees of parlor in this repository.
    OpenWorktrees,
    /// Shows the next tab, and the first one after the last.
    NextTab,
    PreviousTab,
    MoveTabLeft,
    MoveTabRight,
    /// Shows the tab that was active before this one.
    FormerTab,
    /// Shows the tab at this position, from 1.
    ShowTab(u8),

    /// In all changes: goes to the next hunk.
    NextHunk,
    /// In all changes: goes to the previous hunk.
    PreviousHunk,
    /// In the list of sessions: opens the selected one read-only, without its agent.
    ReadSession,
    /// In the list of sessions: cycles between this folder, its repository and all.
    NextScope,
    /// In the list of sessions: cycles the sort order.
    NextSort,
    /// In a dialog with letter keys: starts typing in the filter.
    Filter,

    Up,
    Down,
    /// In a dialog: moves left (a choice, the cursor).
    Left,
    Right,
    PageUp,
    PageDown,
    First,
    Last,
    /// In a dialog: accepts the selected entry.
    Accept,
    /// In a dialog: chooses the option at this position, from 1.
    Choose(u8),
    /// In a dialog: toggles one of several choices.
    ToggleChoice,
    /// In a dialog: makes all of several choices, or none.
    ToggleAllChoices,
    /// In the page of an undo: restores the chosen files.
    RestoreFiles,
    /// In a review: accepts the selected hunk.
    AcceptHunk,
    /// In a review: accepts all changes of the selected file.
    AcceptFile,
    /// In a review: reverts the selected hunk on the disk.
    RejectHunk,
    /// In a review: reverts all changes of the selected file on the disk.
    RejectFile,
    /// In a review: adds a comment on the selected hunk to the prompt.
    CommentOnHunk,
    /// In a form: goes to the next field.
    NextField,
    /// In a form: goes to the previous field.
    PreviousField,
    /// In a form: declines (the third response to an elicitation).
    Decline,
    FullScreen,
    /// Shows or hides the secrets of a form.
    ToggleSecret,
    /// In a list: removes the selected entry.
    Remove,
    /// In a list: edits the selected entry.
    Edit,
    /// In an ordered list: moves the selected entry up.
    MoveUp,
    /// In an ordered list: moves the selected entry down.
    MoveDown,
    /// In a dialog or in the completions: selects the row at this index, from 0 (a click).
    Mark(u16),
    Yes,
    No,
    /// Archives the session in the agent's list, or restores it.
    ArchiveSession,
    OpenProviders,
    /// Resends the prompt of the failed turn.
    SendAgain,
    Redraw,
    /// Suspends parlor as a job of the shell.
    Suspend,
}

impl Action {
    pub fn depends_on_cursor(self) -> bool {
        matches!(self, Self::PasteImage | Self::OpenAttachment)
    }

    /// Whether the action depends on what the screen shows, and does nothing before a session is shown.
    pub fn counts_from_screen(self) -> bool {
        matches!(
            self,
            Self::OpenSearch
                | Self::OpenOutline
                | Self::OpenPlaces
                | Self::Browse
                | Self::PreviousPrompt
                | Self::NextPrompt
                | Self::PreviousCall
                | Self::NextCall
                | Self::PreviousFailure
                | Self::NextFailure
                | Self::SelectPrevious
                | Self::SelectNext
        )
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PaletteCommand {
    pub action: Action,
    pub text: String,
    /// Its key in the main context; empty if unbound.
    pub keys: String,
    pub group: CommandGroup,
    pub synonyms: &'static str,
}

/// A group of commands in the palette, in the order of display.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CommandGroup {
    Session,
    Agent,
    Prompt,
    Transcript,
    Copy,
    Tabs,
    Application,
}

impl CommandGroup {
    pub fn title(self) -> &'static str {
        match self {
            Self::Session => "Session",
            Self::Agent => "Agent",
            Self::Prompt => "Prompt and turn",
            Self::Transcript => "Transcript",
            Self::Copy => "Copy",
            Self::Tabs => "Tabs",
            Self::Application => "Application",
        }
    }
}

/// An edit of a single-line text field in a dialog.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LineEdit {
    /// Inserts text at the cursor (a key, a paste).
    Insert(String),
    Backspace,
    Delete,
    DeleteWord,
    Clear,
    Left,
    Right,
    Home,
    End,
}
