//! The table of actions: name, what it does, whether the palette offers it.
//!
//! Duty: the one place where an action gets its words. Not its duty: keys (`keymap.toml`).

use crate::model::Action;

/// An action that can be bound to a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ActionInfo {
    pub action: Action,
    /// Its name in `keymap.toml` and in the configuration.
    pub name: &'static str,
    /// What it does, for help and palette: sentence case, no full stop.
    pub text: &'static str,
    /// Whether the palette offers it.
    pub is_in_palette: bool,
}

macro_rules! actions {
    ($($variant:ident, $name:literal, $palette:literal, $text:literal;)+) => {
        /// All actions without a parameter, in the order of help and palette.
        const PLAIN: &[ActionInfo] = &[$(ActionInfo {
            action: Action::$variant,
            name: $name,
            text: $text,
            is_in_palette: $palette,
        },)+];

        /// The name under which an action can be bound; `None` for those that only the mouse can mean.
        pub fn name_of(action: Action) -> Option<&'static str> {
            // Without a wildcard: a new action does not compile until it has a row.
            match action {
                $(Action::$variant => Some($name),)+
                Action::Choose(place) => CHOOSE.get(usize::from(place).checked_sub(1)?).map(|info| info.name),
                Action::ShowTab(place) => TABS.get(usize::from(place).checked_sub(1)?).map(|info| info.name),
                Action::Scroll(_)
                | Action::ToggleItem(_)
                | Action::OpenThisGap(..)
                | Action::Mark(_) => None,
            }
        }
    };
}

actions! {
    Submit, "submit", false, "Send the prompt; while a turn runs, queue it";
    NewLine, "new-line", false, "Start a new line";
    Complete, "complete", false, "Take the offered completion";
    HistoryPrevious, "history-previous", false, "The line above, then the prompt before";
    HistoryNext, "history-next", false, "The line below, then the prompt after";
    Escape, "escape", false, "Close the dialog or refuse the request; else stop the turn";
    ClearOrQuit, "clear-or-quit", false, "Clear the prompt, else stop the turn; twice in a second: quit";

    ScrollPageUp, "scroll-page-up", false, "Scroll up by a screen";
    ScrollPageDown, "scroll-page-down", false, "Scroll down by a screen";
    ScrollLineUp, "scroll-line-up", false, "Scroll up by a line";
    ScrollLineDown, "scroll-line-down", false, "Scroll down by a line";
    ScrollTop, "scroll-top", true, "Go to the beginning";
    ScrollEnd, "scroll-end", true, "Go to the end and follow it";
    ScrollLeft, "scroll-left", false, "Move wide tables to the columns before";
    ScrollRight, "scroll-right", false, "Move wide tables to the columns behind";
    OpenSearch, "open-search", true, "Search the transcript";
    NextHit, "next-hit", false, "To the next hit";
    PreviousHit, "previous-hit", false, "To the hit before";
    ToggleRegex, "toggle-regex", false, "Search for a regular expression, or literally";
    OpenOutline, "open-outline", true, "Go to a prompt, edit, command or failure";
    OpenFilter, "open-filter", true, "Show only prompts, edits, commands or failures";
    OpenPlaces, "open-places", true, "Open a file or page that is named here";
    PreviousPrompt, "previous-prompt", true, "Go to the prompt above";
    NextPrompt, "next-prompt", true, "Go to the prompt below";
    PreviousCall, "previous-call", true, "Go to the tool call above";
    NextCall, "next-call", true, "Go to the tool call below";
    PreviousFailure, "previous-failure", true, "Go to the failure above";
    NextFailure, "next-failure", true, "Go to the failure below";
    Browse, "browse", true, "Walk the transcript by keys, or go back to the prompt";
    SelectPrevious, "select-previous", false, "Mark the item above";
    SelectNext, "select-next", false, "Mark the item below";
    ToggleFold, "toggle-fold", true, "Open or fold the marked item";
    ToggleAllFolds, "toggle-all-folds", true, "Open or fold all items";
    ToggleThoughts, "toggle-thoughts", true, "Show or hide thoughts";
    TogglePlan, "toggle-plan", true, "Open or fold the plan";
    OpenGap, "open-gap", false, "Show the unchanged lines of one gap in a change";
    ToggleContext, "toggle-context", true, "Show or hide all unchanged lines of a change";
    InspectItem, "inspect-item", true, "Show input and output of the marked call as they came";
    OpenLocation, "open-location", true, "Open what the marked call works on in the editor";
    ToggleDiffLayout, "toggle-diff-layout", true, "Show changes the other way: side by side, or in one column";
    KillCommand, "kill-command", true, "Stop the marked call, command or subagent";

    OpenCopy, "open-copy", true, "Choose what to copy";
    CopyItem, "copy-item", true, "Copy the marked item, else the last reply";
    CopyReply, "copy-reply", true, "Copy the last reply as Markdown";
    CopyReplyPlain, "copy-reply-plain", true, "Copy the last reply as plain text";
    CopyCode, "copy-code", true, "Copy the last block of code";
    CopyCommand, "copy-command", true, "Copy the last command";
    CopyOutput, "copy-output", true, "Copy the output of the last command";
    CopyPatch, "copy-patch", true, "Copy the last change as a patch";
    CopyTurnPatch, "copy-turn-patch", true, "Copy all changes of the last turn as a patch";
    CopySelection, "copy-selection", false, "Copy the selected text";
    ClearSelection, "clear-selection", false, "Leave the selected text";
    ToggleMouse, "toggle-mouse", true, "Leave the mouse to the terminal, or take it back";

    OpenPalette, "open-palette", false, "Find a command";
    OpenHelp, "open-help", true, "Show the keys";
    OpenChanges, "open-changes", true, "Show all changes of this session";
    OpenModels, "open-models", true, "Choose a model";
    OpenModes, "open-modes", true, "Choose a mode";
    NextMode, "next-mode", true, "Take the next mode";
    OpenOptions, "open-options", true, "Change the agent's options";
    OpenAgents, "open-agents", true, "Choose an agent";
    OpenSessions, "open-sessions", true, "Show, open, name, close or delete a session";
    ContinueLast, "continue-last", true, "Go on with the last session of this folder";
    SearchSessions, "search-sessions", true, "Search all that was said and done in all sessions";
    NewSession, "new-session", true, "Start a new session with this agent, in a tab";
    ForkSession, "fork-session", true, "Fork this session";
    RenameSession, "rename-session", true, "Rename this session";
    ExportSession, "export-session", true, "Write this session to a file";
    HandOver, "hand-over", true, "Hand this conversation over to another agent";
    LoadEarlier, "load-earlier", true, "Show earlier parts of this session";
    LoadLater, "load-later", true, "Show later parts of this session";
    ArchiveSession, "archive-session", true, "Archive this session with the agent, or take it back";
    OpenProviders, "open-providers", true, "Change where the agent's models come from";
    CloseSession, "close-session", true, "Close this session and its tab";
    OpenQueue, "open-queue", true, "Edit the queued prompts";
    OpenGrants, "open-grants", true, "Show and revoke saved permissions";
    OpenThemes, "open-themes", true, "Choose a theme";
    OpenLog, "open-log", true, "Show the log of the connection";
    OpenConnection, "open-connection", true, "Show facts about the connection";
    OpenSignIn, "open-sign-in", true, "Sign in to the agent";
    SignOut, "sign-out", true, "Sign out of the agent";
    SendAgain, "send-again", true, "Send the failed prompt again";
    RestartAgent, "restart-agent", true, "Restart the agent and go on";
    ForceStop, "force-stop", true, "Force the agent to stop";

    OpenAttention, "open-attention", true, "Show what waits for you in all tabs";
    NewTab, "new-tab", true, "Open a tab with an agent in this folder";
    NewTabElsewhere, "new-tab-elsewhere", true, "Open a tab in another folder";
    NextTab, "next-tab", true, "The next tab";
    PreviousTab, "previous-tab", true, "The tab before";
    MoveTabLeft, "move-tab-left", true, "Move this tab to the left";
    MoveTabRight, "move-tab-right", true, "Move this tab to the right";
    FormerTab, "former-tab", true, "The tab that was in front before";

    NextHunk, "next-hunk", false, "The next changed place";
    PreviousHunk, "previous-hunk", false, "The changed place before";
    ReadSession, "read-session", false, "Read the marked session without its agent";
    NextScope, "next-scope", false, "This folder, its repository, or all";
    NextSort, "next-sort", false, "Sort by time, name, agent or folder";
    Filter, "filter", false, "Filter by words";

    Up, "up", false, "Up";
    Down, "down", false, "Down";
    Left, "left", false, "Left";
    Right, "right", false, "Right";
    PageUp, "page-up", false, "A page up";
    PageDown, "page-down", false, "A page down";
    First, "first", false, "To the first";
    Last, "last", false, "To the last";
    Accept, "accept", false, "Take the marked one";
    Yes, "yes", false, "Yes";
    No, "no", false, "No";
    ToggleChoice, "toggle-choice", false, "Mark or unmark";
    NextField, "next-field", false, "The next field";
    PreviousField, "previous-field", false, "The field before";
    Decline, "decline", false, "Decline to answer";
    FullScreen, "full-screen", false, "Use the whole screen";
    ToggleSecret, "toggle-secret", false, "Show or hide secrets";
    Edit, "edit", false, "Edit the marked one";
    Remove, "remove", false, "Remove the marked one";
    MoveUp, "move-up", false, "Move the marked one up";
    MoveDown, "move-down", false, "Move the marked one down";

    Redraw, "redraw", true, "Repaint the screen";
    Suspend, "suspend", true, "Stop parlor as a job of the shell";
    Quit, "quit", true, "Quit; asks once while a turn runs";
}

macro_rules! numbered {
    ($table:ident, $variant:ident, $text:literal, $($place:literal, $name:literal;)+) => {
        const $table: &[ActionInfo] = &[$(ActionInfo {
            action: Action::$variant($place),
            name: $name,
            text: $text,
            is_in_palette: false,
        },)+];
    };
}

numbered! {
    CHOOSE, Choose, "Take the choice at this place",
    1, "choose-1"; 2, "choose-2"; 3, "choose-3"; 4, "choose-4"; 5, "choose-5";
    6, "choose-6"; 7, "choose-7"; 8, "choose-8"; 9, "choose-9";
}

numbered! {
    TABS, ShowTab, "The tab at this place",
    1, "show-tab-1"; 2, "show-tab-2"; 3, "show-tab-3"; 4, "show-tab-4"; 5, "show-tab-5";
    6, "show-tab-6"; 7, "show-tab-7"; 8, "show-tab-8"; 9, "show-tab-9";
}

/// All actions that can be bound, in the order of help and palette.
pub fn all() -> impl Iterator<Item = &'static ActionInfo> {
    PLAIN.iter().chain(CHOOSE).chain(TABS)
}

/// The row of an action.
pub fn info(action: Action) -> Option<&'static ActionInfo> {
    all().find(|info| info.action == action)
}

/// The action of a name.
pub fn by_name(name: &str) -> Option<Action> {
    all().find(|info| info.name == name).map(|info| info.action)
}
