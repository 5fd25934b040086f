//! What the user wants, however it was said: by a key, the mouse or the palette.

use super::{Gap, ItemId};

/// A wish of the user. The unit-like ones can be bound to keys under their kebab-case name
/// (`ScrollPageUp` is `scroll-page-up`); `config::keymap` holds that table and the help texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    /// Sends the prompt; queues it while a turn runs.
    Submit,
    /// A new line in the prompt.
    NewLine,
    /// Closes the top dialog, else cancels the running turn, else leaves a selection.
    Escape,
    /// Clears the prompt, else cancels; twice within a second quits.
    ClearOrQuit,
    /// Quits; asks once while a turn runs.
    Quit,
    /// The prompt before, in this folder's history (or the line above).
    HistoryPrevious,
    /// The prompt after.
    HistoryNext,
    /// Takes the offered completion.
    Complete,

    ScrollLineUp,
    ScrollLineDown,
    /// Scrolls by a screen.
    ScrollPageUp,
    /// Scrolls by a screen.
    ScrollPageDown,
    /// To the beginning.
    ScrollTop,
    /// To the end, and follows it.
    ScrollEnd,
    /// Moves tables that are too wide to the columns before.
    ScrollLeft,
    /// Moves tables that are too wide to the columns behind.
    ScrollRight,
    /// By so many lines, from the wheel (negative: up).
    Scroll(i16),

    /// Opens the line of the search.
    OpenSearch,
    /// In a search: to the next hit.
    NextHit,
    /// In a search: to the hit before.
    PreviousHit,
    /// In a search: takes what is typed as a regular expression, or literally again.
    ToggleRegex,
    /// To the prompt above.
    PreviousPrompt,
    /// To the prompt below.
    NextPrompt,
    /// To the tool call above.
    PreviousCall,
    /// To the tool call below.
    NextCall,
    /// To the failure above.
    PreviousFailure,
    /// To the failure below.
    NextFailure,
    /// A list of prompts, edits, commands and failures to go to.
    OpenOutline,
    /// Offers to show only prompts, edits, commands or failures.
    OpenFilter,
    /// A list of files and pages that are named, to open one.
    OpenPlaces,
    /// Gives the keys to the transcript, or back to the prompt.
    Browse,

    /// Marks the item above.
    SelectPrevious,
    /// Marks the item below.
    SelectNext,
    /// Opens or folds the marked item.
    ToggleFold,
    /// Opens or folds this item (a click).
    ToggleItem(ItemId),
    /// Opens or folds all items.
    ToggleAllFolds,
    /// Shows or hides thoughts.
    ToggleThoughts,
    /// Opens or folds the plan panel.
    TogglePlan,
    /// Shows or hides the unchanged lines of the marked change.
    ToggleContext,
    /// Shows the lines that one gap of a change leaves out: of the marked item, on the screen.
    OpenGap,
    /// Shows the lines that this gap leaves out.
    OpenThisGap(ItemId, Gap),
    /// Shows the marked call as it came over the wire.
    InspectItem,
    /// Opens what the marked call works on in the editor.
    OpenLocation,
    /// Diffs: side by side, unified, by width.
    ToggleDiffLayout,
    /// Ends the command that runs in the marked item, or the only one.
    KillCommand,

    /// Copies the text that is selected on the screen.
    CopySelection,
    /// Leaves the selected text.
    ClearSelection,
    /// Copies the marked item, else the last reply, as it came.
    CopyItem,
    /// Copies the last reply as Markdown.
    CopyReply,
    /// Copies the last reply as one reads it.
    CopyReplyPlain,
    /// Copies the last block of code.
    CopyCode,
    /// Copies the last command.
    CopyCommand,
    /// Copies what the last command wrote.
    CopyOutput,
    /// Copies the last change as a patch.
    CopyPatch,
    /// Copies all changes of the last turn as one patch.
    CopyTurnPatch,
    /// Lists what can be copied.
    OpenCopy,
    /// Takes the mouse, or leaves it to the terminal.
    ToggleMouse,

    /// Lists permissions that were granted, to revoke them.
    OpenGrants,
    OpenPalette,
    OpenHelp,
    /// All changes of the session.
    OpenChanges,
    /// The log of the wire.
    OpenLog,
    /// Facts about the connection.
    OpenConnection,
    OpenAgents,
    /// The sessions: those open here, those that parlor kept, and those that the agent lists.
    OpenSessions,
    /// Go on with the last session of the folder, which was offered at the start.
    ContinueLast,
    /// Searches everything that was said and done in kept sessions; in the list: between names and that.
    SearchSessions,
    OpenModes,
    NextMode,
    OpenModels,
    /// The config options.
    OpenOptions,
    OpenThemes,
    /// The ways to sign in.
    OpenSignIn,
    SignOut,
    /// The queue of prompts.
    OpenQueue,

    /// A new session with the same agent.
    NewSession,
    /// A copy of this session, if the agent can.
    ForkSession,
    /// A new title for this session.
    RenameSession,
    /// This session as a file.
    ExportSession,
    /// Hands this conversation over to another agent, or to its own that has forgotten it.
    HandOver,
    /// Shows a part of the session from before.
    LoadEarlier,
    /// Shows a part of a session that is only read from behind what is shown.
    LoadLater,
    /// Closes this session; another one is shown.
    CloseSession,
    /// Starts the agent again and resumes.
    RestartAgent,
    /// Ends the agent's process.
    ForceStop,

    /// What waits in all tabs.
    OpenAttention,
    /// Chooses an agent for a new tab in this folder.
    NewTab,
    /// Chooses a folder for a new tab, then an agent.
    NewTabElsewhere,
    /// The next tab; behind the last one comes the first.
    NextTab,
    /// The tab before.
    PreviousTab,
    /// Moves this tab one place to the left.
    MoveTabLeft,
    /// Moves this tab one place to the right.
    MoveTabRight,
    /// The tab that was in front before.
    FormerTab,
    /// The tab at this place, from 1.
    ShowTab(u8),

    /// In all changes: the next changed place.
    NextHunk,
    /// In all changes: the changed place before.
    PreviousHunk,
    /// In the list of sessions: shows the marked one without its agent.
    ReadSession,
    /// In the list of sessions: those of this folder, of its repository, all.
    NextScope,
    /// In the list of sessions: another order.
    NextSort,
    /// In a dialog that has letters for keys: letters go into its filter.
    Filter,

    /// In a dialog: up.
    Up,
    /// In a dialog: down.
    Down,
    /// In a dialog: left (a choice, the cursor).
    Left,
    /// In a dialog: right.
    Right,
    /// In a dialog: a page up.
    PageUp,
    /// In a dialog: a page down.
    PageDown,
    /// In a dialog: to the first.
    First,
    /// In a dialog: to the last.
    Last,
    /// In a dialog: takes the marked one.
    Accept,
    /// In a dialog: the choice at this place, from 1.
    Choose(u8),
    /// In a dialog: marks or unmarks one of several.
    ToggleChoice,
    /// In a form: the next field.
    NextField,
    /// In a form: the field before.
    PreviousField,
    /// In a form: declines (an elicitation's third answer).
    Decline,
    /// In a dialog: the whole screen.
    FullScreen,
    /// Show or hide the secrets of a form.
    ToggleSecret,
    /// In a dialog that lists things that can go: removes the marked one.
    Remove,
    /// In a list: edits the marked one.
    Edit,
    /// In a list that has an order: moves the marked one up.
    MoveUp,
    /// In a list that has an order: moves the marked one down.
    MoveDown,
    /// In a dialog or in the offered completions: marks the row at this place, from 0 (a click).
    Mark(u16),
    /// In a dialog that asks yes or no: yes.
    Yes,
    /// In a dialog that asks yes or no: no.
    No,
    /// Takes the session off the agent's list, or puts it back there.
    ArchiveSession,
    /// Opens the list of the places that the agent's models come from.
    OpenProviders,
    /// Sends the prompt again whose turn failed.
    SendAgain,
    /// Repaints everything.
    Redraw,
    /// Stops parlor as a job of the shell.
    Suspend,
}

impl Action {
    /// Whether it counts from what is on the screen, and so means nothing while nothing is there.
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

/// A change to a single line of text in a dialog (a filter, a field).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LineEdit {
    /// Puts text in at the cursor (a key, a paste).
    Insert(String),
    /// Removes what is before the cursor.
    Backspace,
    /// Removes what is behind the cursor.
    Delete,
    /// Removes the word before the cursor.
    DeleteWord,
    /// Removes all.
    Clear,
    /// Cursor left.
    Left,
    /// Cursor right.
    Right,
    /// Cursor to the beginning.
    Home,
    /// Cursor to the end.
    End,
}
