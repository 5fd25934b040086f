//! The table of actions: name, help text, and whether the palette lists it. The keys are in `keymap.toml`.

use crate::model::Action;

/// An action that can be bound to a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ActionInfo {
    pub action: Action,
    /// The name in `keymap.toml` and in the configuration.
    pub name: &'static str,
    /// Text for help and palette: sentence case, without a full stop.
    pub text: &'static str,
    /// Whether the palette lists it.
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

        /// The name of a bindable action; `None` for actions of the mouse.
        pub fn name_of(action: Action) -> Option<&'static str> {
            // No wildcard, so that a new action does not compile without a row.
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
    Submit, "submit", false, "Send (queues while a turn is running)";
    NewLine, "new-line", false, "Insert line break";
    Complete, "complete", false, "Accept completion";
    HistoryPrevious, "history-previous", false, "Line up, then previous prompt";
    HistoryNext, "history-next", false, "Line down, then next prompt";
    Escape, "escape", false, "Close dialog, reject request or cancel turn";
    ClearOrQuit, "clear-or-quit", false, "Clear prompt or cancel turn; press twice to quit";

    ScrollPageUp, "scroll-page-up", false, "Scroll page up";
    ScrollPageDown, "scroll-page-down", false, "Scroll page down";
    ScrollLineUp, "scroll-line-up", false, "Scroll line up";
    ScrollLineDown, "scroll-line-down", false, "Scroll line down";
    ScrollTop, "scroll-top", true, "Scroll to start";
    ScrollEnd, "scroll-end", true, "Scroll to end and follow";
    ScrollLeft, "scroll-left", false, "Scroll tables left";
    ScrollRight, "scroll-right", false, "Scroll tables right";
    OpenSearch, "open-search", true, "Search transcript";
    NextHit, "next-hit", false, "Next match";
    PreviousHit, "previous-hit", false, "Previous match";
    ToggleRegex, "toggle-regex", false, "Toggle regular expression";
    OpenOutline, "open-outline", true, "Go to prompt, edit, command or failure";
    OpenFilter, "open-filter", true, "Filter transcript by type";
    OpenPlaces, "open-places", true, "Open a mentioned file or link";
    PreviousPrompt, "previous-prompt", true, "Previous prompt";
    NextPrompt, "next-prompt", true, "Next prompt";
    PreviousCall, "previous-call", true, "Previous tool call";
    NextCall, "next-call", true, "Next tool call";
    PreviousFailure, "previous-failure", true, "Previous failure";
    NextFailure, "next-failure", true, "Next failure";
    Browse, "browse", true, "Browse transcript";
    SelectPrevious, "select-previous", false, "Select previous item";
    SelectNext, "select-next", false, "Select next item";
    ToggleFold, "toggle-fold", true, "Expand or collapse item";
    ToggleAllFolds, "toggle-all-folds", true, "Expand or collapse all items";
    ToggleThoughts, "toggle-thoughts", true, "Toggle thoughts";
    TogglePlan, "toggle-plan", true, "Toggle plan";
    OpenGap, "open-gap", false, "Expand one gap in diff";
    ToggleContext, "toggle-context", true, "Toggle all unchanged lines in diff";
    InspectItem, "inspect-item", true, "Show raw input and output of tool call";
    OpenLocation, "open-location", true, "Open file of tool call in editor";
    ToggleDiffLayout, "toggle-diff-layout", true, "Toggle side-by-side diff";
    KillCommand, "kill-command", true, "Stop tool call, command or subagent";

    OpenCopy, "open-copy", true, "Copy…";
    CopyItem, "copy-item", true, "Copy selected item or last reply";
    CopyReply, "copy-reply", true, "Copy last reply as Markdown";
    CopyReplyPlain, "copy-reply-plain", true, "Copy last reply as plain text";
    CopyCode, "copy-code", true, "Copy last code block";
    CopyCommand, "copy-command", true, "Copy last command";
    CopyOutput, "copy-output", true, "Copy last command output";
    CopyPatch, "copy-patch", true, "Copy last change as patch";
    CopyTurnPatch, "copy-turn-patch", true, "Copy changes of last turn as patch";
    CopySelection, "copy-selection", false, "Copy selection";
    ClearSelection, "clear-selection", false, "Clear selection";
    ToggleMouse, "toggle-mouse", true, "Toggle mouse capture";

    OpenPalette, "open-palette", false, "Show all commands";
    OpenHelp, "open-help", true, "Show key bindings";
    OpenChanges, "open-changes", true, "Show session changes";
    OpenModels, "open-models", true, "Select model";
    OpenModes, "open-modes", true, "Select mode";
    NextMode, "next-mode", true, "Next mode";
    OpenOptions, "open-options", true, "Change agent options";
    OpenAgents, "open-agents", true, "Select agent";
    OpenSessions, "open-sessions", true, "Show sessions";
    ContinueLast, "continue-last", true, "Resume last session in this folder";
    SearchSessions, "search-sessions", true, "Search all sessions";
    NewSession, "new-session", true, "New session with this agent";
    ForkSession, "fork-session", true, "Fork session";
    RenameSession, "rename-session", true, "Rename session";
    ExportSession, "export-session", true, "Export session";
    HandOver, "hand-over", true, "Hand over conversation to another agent";
    LoadEarlier, "load-earlier", true, "Load earlier part of session";
    LoadLater, "load-later", true, "Load later part of session";
    ArchiveSession, "archive-session", true, "Archive or unarchive session";
    OpenProviders, "open-providers", true, "Configure providers";
    CloseSession, "close-session", true, "Close session and tab";
    OpenQueue, "open-queue", true, "Edit queued prompts";
    OpenGrants, "open-grants", true, "Show saved permissions";
    OpenThemes, "open-themes", true, "Select theme";
    OpenLog, "open-log", true, "Show protocol log";
    OpenConnection, "open-connection", true, "Show connection details";
    OpenSignIn, "open-sign-in", true, "Sign in";
    SignOut, "sign-out", true, "Sign out";
    SendAgain, "send-again", true, "Resend failed prompt";
    RestartAgent, "restart-agent", true, "Restart agent";
    ForceStop, "force-stop", true, "Force-stop agent";

    OpenAttention, "open-attention", true, "Show inbox";
    NewTab, "new-tab", true, "New tab in this folder";
    NewTabElsewhere, "new-tab-elsewhere", true, "New tab in another folder";
    NextTab, "next-tab", true, "Next tab";
    PreviousTab, "previous-tab", true, "Previous tab";
    MoveTabLeft, "move-tab-left", true, "Move tab left";
    MoveTabRight, "move-tab-right", true, "Move tab right";
    FormerTab, "former-tab", true, "Last active tab";

    NextHunk, "next-hunk", false, "Next hunk";
    PreviousHunk, "previous-hunk", false, "Previous hunk";
    ReadSession, "read-session", false, "Open session read-only";
    NextScope, "next-scope", false, "Change scope: folder, repository, all";
    NextSort, "next-sort", false, "Change sort order";
    Filter, "filter", false, "Filter";

    Up, "up", false, "Up";
    Down, "down", false, "Down";
    Left, "left", false, "Left";
    Right, "right", false, "Right";
    PageUp, "page-up", false, "Page up";
    PageDown, "page-down", false, "Page down";
    First, "first", false, "First";
    Last, "last", false, "Last";
    Accept, "accept", false, "Confirm";
    Yes, "yes", false, "Yes";
    No, "no", false, "No";
    ToggleChoice, "toggle-choice", false, "Toggle choice";
    NextField, "next-field", false, "Next field";
    PreviousField, "previous-field", false, "Previous field";
    Decline, "decline", false, "Decline";
    FullScreen, "full-screen", false, "Toggle full screen";
    ToggleSecret, "toggle-secret", false, "Toggle secrets";
    Edit, "edit", false, "Edit";
    Remove, "remove", false, "Remove";
    MoveUp, "move-up", false, "Move up";
    MoveDown, "move-down", false, "Move down";

    Redraw, "redraw", true, "Redraw screen";
    Suspend, "suspend", true, "Suspend";
    Quit, "quit", true, "Quit";
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
    CHOOSE, Choose, "Choose option N",
    1, "choose-1"; 2, "choose-2"; 3, "choose-3"; 4, "choose-4"; 5, "choose-5";
    6, "choose-6"; 7, "choose-7"; 8, "choose-8"; 9, "choose-9";
}

numbered! {
    TABS, ShowTab, "Go to tab N",
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

/// The action with this name.
pub fn by_name(name: &str) -> Option<Action> {
    all().find(|info| info.name == name).map(|info| info.action)
}
