//! The table of actions: name, palette group, help text and synonyms. The keys are in `keymap.toml`.

use crate::model::{Action, CommandGroup};

/// An action that can be bound to a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ActionInfo {
    pub action: Action,
    /// The name in `keymap.toml` and in the configuration.
    pub name: &'static str,
    /// Text for help and palette: sentence case, without a full stop.
    pub text: &'static str,
    /// The group in the palette; `None` if the palette does not list it.
    pub group: Option<CommandGroup>,
    /// Other words that people search for, for the filter of the palette.
    pub synonyms: &'static str,
}

pub const TASKS: usize = 7;

impl ActionInfo {
    /// The task that the help lists the action under: its place in the order of the help, and its heading.
    pub fn task(&self) -> (usize, &'static str) {
        let group = self.group.unwrap_or(match self.action {
            Action::Submit
            | Action::NewLine
            | Action::Complete
            | Action::HistoryPrevious
            | Action::HistoryNext
            | Action::Escape
            | Action::ClearOrQuit => CommandGroup::Prompt,
            Action::CopySelection | Action::ClearSelection => CommandGroup::Copy,
            Action::ShowTab(_) => CommandGroup::Tabs,
            Action::OpenPalette => CommandGroup::Application,
            _ => CommandGroup::Transcript,
        });
        let location = match group {
            CommandGroup::Prompt => 0,
            CommandGroup::Transcript => 1,
            CommandGroup::Copy => 2,
            CommandGroup::Session => 3,
            CommandGroup::Agent => 4,
            CommandGroup::Tabs => 5,
            CommandGroup::Application => 6,
        };
        (location, group.title())
    }
}

const HIDDEN: Option<CommandGroup> = None;
const SESSION: Option<CommandGroup> = Some(CommandGroup::Session);
const AGENT: Option<CommandGroup> = Some(CommandGroup::Agent);
const PROMPT: Option<CommandGroup> = Some(CommandGroup::Prompt);
const TRANSCRIPT: Option<CommandGroup> = Some(CommandGroup::Transcript);
const COPY: Option<CommandGroup> = Some(CommandGroup::Copy);
const TABS: Option<CommandGroup> = Some(CommandGroup::Tabs);
const APPLICATION: Option<CommandGroup> = Some(CommandGroup::Application);

macro_rules! actions {
    ($($variant:ident, $name:literal, $group:ident, $text:literal, $synonyms:literal;)+) => {
        /// All actions without a parameter, in the order of help and palette.
        const PLAIN: &[ActionInfo] = &[$(ActionInfo {
            action: Action::$variant,
            name: $name,
            text: $text,
            group: $group,
            synonyms: $synonyms,
        },)+];

        /// The name of a bindable action; `None` for actions of the mouse.
        pub fn name_of(action: Action) -> Option<&'static str> {
            // No wildcard, so that a new action does not compile without a row.
            match action {
                $(Action::$variant => Some($name),)+
                Action::Choose(location) => CHOOSE.get(usize::from(location).checked_sub(1)?).map(|info| info.name),
                Action::ShowTab(location) => SHOW_TAB.get(usize::from(location).checked_sub(1)?).map(|info| info.name),
                Action::Scroll(_)
                | Action::ToggleItem(_)
                | Action::OpenThisGap(..)
                | Action::Mark(_) => None,
            }
        }
    };
}

actions! {
    Submit, "submit", HIDDEN, "Send, or queue during a turn", "";
    NewLine, "new-line", HIDDEN, "Insert line break", "";
    Complete, "complete", HIDDEN, "Accept completion", "";
    EditDraft, "edit-draft", PROMPT, "Edit prompt in editor", "external vim emacs visual compose";
    StashDraft, "stash-draft", PROMPT, "Stash or restore prompt", "park set aside save draft later pop";
    FullComposer, "full-composer", PROMPT, "Toggle full-screen prompt", "zoom maximize large compose";
    PasteImage, "paste-image", PROMPT, "Paste from clipboard", "attach picture screenshot";
    OpenAttachment, "open-attachment", PROMPT, "Open attachment", "pasted text image chip expand view";
    HistoryPrevious, "history-previous", HIDDEN, "Line up, then previous prompt", "";
    HistoryNext, "history-next", HIDDEN, "Line down, then next prompt", "";
    Escape, "escape", HIDDEN, "Close, reject or cancel turn", "";
    ClearOrQuit, "clear-or-quit", HIDDEN, "Clear or cancel; twice to quit", "";

    CursorLeft, "cursor-left", HIDDEN, "Character left", "";
    CursorRight, "cursor-right", HIDDEN, "Character right", "";
    WordLeft, "word-left", HIDDEN, "Word left", "";
    WordRight, "word-right", HIDDEN, "Word right", "";
    LineStart, "line-start", HIDDEN, "Start of line", "";
    LineEnd, "line-end", HIDDEN, "End of line", "";
    ParagraphUp, "paragraph-up", HIDDEN, "Paragraph up", "";
    ParagraphDown, "paragraph-down", HIDDEN, "Paragraph down", "";
    DraftStart, "draft-start", HIDDEN, "Start of prompt", "";
    DraftEnd, "draft-end", HIDDEN, "End of prompt", "";
    DeleteBefore, "delete-before", HIDDEN, "Delete previous character", "";
    DeleteAfter, "delete-after", HIDDEN, "Delete next character", "";
    DeleteWordBefore, "delete-word-before", HIDDEN, "Delete previous word", "";
    DeleteWordAfter, "delete-word-after", HIDDEN, "Delete next word", "";
    DeleteToLineStart, "delete-to-line-start", HIDDEN, "Delete to start of line", "";
    DeleteToLineEnd, "delete-to-line-end", HIDDEN, "Delete to end of line", "";
    Yank, "yank", HIDDEN, "Insert deleted text", "";
    YankPop, "yank-pop", HIDDEN, "Insert text deleted earlier", "";
    Transpose, "transpose", HIDDEN, "Swap characters", "";
    UppercaseWord, "uppercase-word", HIDDEN, "Word to upper case", "";
    LowercaseWord, "lowercase-word", HIDDEN, "Word to lower case", "";
    CapitalizeWord, "capitalize-word", HIDDEN, "Capitalize word", "";
    Undo, "undo", HIDDEN, "Undo", "";
    Redo, "redo", HIDDEN, "Redo", "";

    ScrollPageUp, "scroll-page-up", HIDDEN, "Scroll page up", "";
    ScrollPageDown, "scroll-page-down", HIDDEN, "Scroll page down", "";
    ScrollLineUp, "scroll-line-up", HIDDEN, "Scroll line up", "";
    ScrollLineDown, "scroll-line-down", HIDDEN, "Scroll line down", "";
    ScrollTop, "scroll-top", TRANSCRIPT, "Scroll to start", "top beginning home";
    ScrollEnd, "scroll-end", TRANSCRIPT, "Scroll to end and follow", "bottom end latest follow";
    ScrollLeft, "scroll-left", HIDDEN, "Scroll tables left", "";
    ScrollRight, "scroll-right", HIDDEN, "Scroll tables right", "";
    OpenSearch, "open-search", TRANSCRIPT, "Search transcript", "find grep look up";
    NextHit, "next-hit", HIDDEN, "Next match", "";
    PreviousHit, "previous-hit", HIDDEN, "Previous match", "";
    ToggleRegex, "toggle-regex", HIDDEN, "Toggle regular expression", "";
    OpenOutline, "open-outline", TRANSCRIPT, "Show outline", "go to prompt edit failure contents jump navigate timeline prompts";
    OpenTasks, "open-tasks", TRANSCRIPT, "Show running tasks", "background jobs calls commands subagents processes";
    OpenFilter, "open-filter", TRANSCRIPT, "Filter transcript by type", "only hide show";
    OpenPlaces, "open-places", TRANSCRIPT, "Open a mentioned file or link", "links urls files paths open";
    PreviousPrompt, "previous-prompt", TRANSCRIPT, "Previous prompt", "jump back message";
    NextPrompt, "next-prompt", TRANSCRIPT, "Next prompt", "jump forward message";
    PreviousCall, "previous-call", TRANSCRIPT, "Previous tool call", "jump back";
    NextCall, "next-call", TRANSCRIPT, "Next tool call", "jump forward";
    PreviousFailure, "previous-failure", TRANSCRIPT, "Previous failure", "error jump back";
    NextFailure, "next-failure", TRANSCRIPT, "Next failure", "error jump forward";
    Browse, "browse", TRANSCRIPT, "Browse transcript", "focus scroll walk vim keyboard";
    SelectPrevious, "select-previous", HIDDEN, "Select previous item", "";
    SelectNext, "select-next", HIDDEN, "Select next item", "";
    ToggleFold, "toggle-fold", TRANSCRIPT, "Expand or collapse item", "unfold details more less";
    ToggleAllFolds, "toggle-all-folds", TRANSCRIPT, "Expand or collapse all items", "unfold details verbose compact more less";
    ToggleThoughts, "toggle-thoughts", TRANSCRIPT, "Toggle thoughts", "thinking reasoning";
    TogglePlan, "toggle-plan", TRANSCRIPT, "Toggle plan", "todo todos tasks checklist";
    OpenChanges, "open-changes", TRANSCRIPT, "Show diff of session changes", "review git edits files modified";
    OpenGap, "open-gap", HIDDEN, "Expand one gap in diff", "";
    ToggleContext, "toggle-context", TRANSCRIPT, "Toggle unchanged lines in diff", "unchanged expand gap";
    AnswerRequest, "answer-request", HIDDEN, "Focus the request or the prompt", "focus question";
    RejectWithReason, "reject-with-reason", HIDDEN, "Reject with a reason", "";
    AllowByRule, "allow-by-rule", HIDDEN, "Allow by a rule", "";
    InspectItem, "inspect-item", TRANSCRIPT, "Show raw input and output", "raw json inspect details";
    OpenLocation, "open-location", TRANSCRIPT, "Open file of call in editor", "editor edit vim code";
    ToggleDiffLayout, "toggle-diff-layout", TRANSCRIPT, "Toggle side-by-side diff", "split unified columns view";
    ToggleWrap, "toggle-wrap", TRANSCRIPT, "Toggle line wrap of code", "word long lines truncate overflow";
    TypeIntoTerminal, "type-into-terminal", PROMPT, "Type into terminal, or return", "stdin input keys answer password interactive";
    KillCommand, "kill-command", PROMPT, "Stop call, command or subagent", "kill terminate abort cancel";

    OpenCopy, "open-copy", COPY, "Copy…", "clipboard yank";
    CopyItem, "copy-item", COPY, "Copy item or last reply", "clipboard yank message";
    CopyReply, "copy-reply", COPY, "Copy last reply as Markdown", "clipboard yank answer response";
    CopyReplyPlain, "copy-reply-plain", COPY, "Copy last reply as plain text", "clipboard yank answer response";
    CopyCode, "copy-code", COPY, "Copy last code block", "clipboard yank snippet";
    CopyCommand, "copy-command", COPY, "Copy last command", "clipboard yank shell";
    CopyOutput, "copy-output", COPY, "Copy last command output", "clipboard yank terminal";
    CopyPatch, "copy-patch", COPY, "Copy last change as patch", "clipboard yank diff";
    CopyTurnPatch, "copy-turn-patch", COPY, "Copy changes of last turn as patch", "clipboard yank diff";
    CopySelection, "copy-selection", HIDDEN, "Copy selection", "";
    ClearSelection, "clear-selection", HIDDEN, "Clear selection", "";
    QuoteSelection, "quote-selection", COPY, "Quote selection in prompt", "reply cite mention reference";
    ToggleMouse, "toggle-mouse", APPLICATION, "Toggle mouse capture", "selection terminal";

    OpenPalette, "open-palette", HIDDEN, "Show all commands", "";
    OpenHelp, "open-help", APPLICATION, "Show key bindings", "help keys shortcuts hotkeys keyboard ?";
    OpenModels, "open-models", AGENT, "Select model", "llm switch change opus sonnet gpt";
    OpenModes, "open-modes", AGENT, "Select mode", "plan permission approval bypass accept edits switch";
    NextMode, "next-mode", AGENT, "Next mode", "plan permission approval cycle";
    OpenOptions, "open-options", AGENT, "Change agent options", "settings config configuration preferences effort reasoning";
    OpenAgents, "open-agents", AGENT, "Select agent", "switch change start claude codex gemini opencode";
    OpenSessions, "open-sessions", SESSION, "Show sessions", "resume continue history list open load conversations";
    ContinueLast, "continue-last", SESSION, "Resume last session here", "continue restore reopen previous";
    SearchSessions, "search-sessions", SESSION, "Search all sessions", "find grep conversations";
    NewSession, "new-session", SESSION, "New session with this agent", "clear reset start over fresh";
    ForkSession, "fork-session", SESSION, "Fork session", "branch duplicate";
    RenameSession, "rename-session", SESSION, "Rename session", "title name";
    ExportSession, "export-session", SESSION, "Export session", "save markdown share download dump";
    HandOver, "hand-over", SESSION, "Hand over to another agent", "transfer switch move handoff";
    OpenAgentHistory, "open-agent-history", SESSION, "Show the agent's version", "replay history difference compare";
    KeepAgentHistory, "keep-agent-history", SESSION, "Keep the agent's version", "save replay history";
    PutBackTurns, "put-back-turns", SESSION, "Put back turns of the agent", "remove undo replay taken history";
    DeleteTurn, "delete-turn", SESSION, "Delete turn from the record", "remove forget secret password erase";
    ArchiveSession, "archive-session", SESSION, "Archive or unarchive session", "hide restore";
    OpenProviders, "open-providers", AGENT, "Configure providers", "api key endpoint base url";
    CloseSession, "close-session", SESSION, "Close session and tab", "end";
    SendNow, "send-now", PROMPT, "Cancel the turn and send now", "interrupt immediately skip";
    Steer, "steer", PROMPT, "Send into the running turn", "inject interject queue amend";
    UndoTurn, "undo-turn", PROMPT, "Undo file changes of the last turn", "revert restore checkpoint";
    RedoTurn, "redo-turn", PROMPT, "Redo the file changes that were undone", "restore again";
    ReviewChanges, "review-changes", PROMPT, "Review changes on disk", "accept reject hunk keep diff comment approve";
    ReviewHeld, "review-held", PROMPT, "Review held writes", "apply discard pending hold staged";
    Rewind, "rewind", PROMPT, "Go back to an earlier prompt", "rewind checkpoint fork edit resend";
    OpenQueue, "open-queue", PROMPT, "Edit queued prompts", "pending waiting messages follow-up";
    ToggleApproveAll, "toggle-approve-all", AGENT, "Approve all requests, or stop that", "yolo auto bypass skip permissions allow everything dangerous";
    AllowPath, "allow-path", AGENT, "Open a refused path", "sandbox permission denied landlock write folder";
    OpenGrants, "open-grants", AGENT, "Show saved permissions", "permissions allowed rules revoke trust";
    OpenThemes, "open-themes", APPLICATION, "Select theme", "color colour dark light appearance";
    OpenSettings, "open-settings", APPLICATION, "Settings", "config configuration preferences options keys keybindings shortcuts";
    OpenBindings, "open-bindings", APPLICATION, "Change key bindings", "settings keybindings shortcuts keymap hotkeys";
    OpenLog, "open-log", APPLICATION, "Show protocol log", "debug trace wire messages json";
    OpenConnection, "open-connection", AGENT, "Show connection details", "status usage cost tokens context version about info";
    OpenSignIn, "open-sign-in", AGENT, "Sign in", "login log in authenticate account";
    SignOut, "sign-out", AGENT, "Sign out", "logout log out account";
    CancelTurn, "cancel-turn", PROMPT, "Cancel turn", "stop interrupt abort halt";
    OpenHistory, "open-history", PROMPT, "Search prompt history", "previous prompts recall reverse search";
    SendAgain, "send-again", PROMPT, "Resend failed prompt", "retry again repeat";
    RestartAgent, "restart-agent", AGENT, "Restart agent", "start reconnect reload";
    ForceStop, "force-stop", AGENT, "Force-stop agent", "kill terminate crash";

    OpenAttention, "open-attention", PROMPT, "Show inbox", "answer permission requests waiting approve notifications questions";
    NewTab, "new-tab", TABS, "New tab in this folder", "open parallel second";
    NewTabElsewhere, "new-tab-elsewhere", TABS, "New tab in another folder", "open directory project cd workspace";
    NewWorktree, "new-worktree", TABS, "New session in a worktree", "git branch isolated parallel tab";
    OpenWorktrees, "open-worktrees", TABS, "Show worktrees", "git branch merge remove list";
    NextTab, "next-tab", TABS, "Next tab", "switch cycle";
    PreviousTab, "previous-tab", TABS, "Previous tab", "switch cycle";
    MoveTabLeft, "move-tab-left", TABS, "Move tab left", "reorder";
    MoveTabRight, "move-tab-right", TABS, "Move tab right", "reorder";
    FormerTab, "former-tab", TABS, "Last active tab", "switch back";

    NextHunk, "next-hunk", HIDDEN, "Next hunk", "";
    PreviousHunk, "previous-hunk", HIDDEN, "Previous hunk", "";
    ReadSession, "read-session", HIDDEN, "Open session read-only", "";
    NextScope, "next-scope", HIDDEN, "Change scope: folder, repository, all", "";
    NextSort, "next-sort", HIDDEN, "Change sort order", "";
    Filter, "filter", HIDDEN, "Filter", "";

    Up, "up", HIDDEN, "Up", "";
    Down, "down", HIDDEN, "Down", "";
    Left, "left", HIDDEN, "Left", "";
    Right, "right", HIDDEN, "Right", "";
    PageUp, "page-up", HIDDEN, "Page up", "";
    PageDown, "page-down", HIDDEN, "Page down", "";
    First, "first", HIDDEN, "First", "";
    Last, "last", HIDDEN, "Last", "";
    Accept, "accept", HIDDEN, "Confirm", "";
    Yes, "yes", HIDDEN, "Yes", "";
    No, "no", HIDDEN, "No", "";
    ToggleChoice, "toggle-choice", HIDDEN, "Toggle choice", "";
    ToggleAllChoices, "toggle-all-choices", HIDDEN, "Choose all or none", "";
    RestoreFiles, "restore-files", HIDDEN, "Restore the chosen files", "";
    AcceptHunk, "accept-hunk", HIDDEN, "Accept the hunk", "";
    AcceptFile, "accept-file", HIDDEN, "Accept all changes of the file", "";
    RejectHunk, "reject-hunk", HIDDEN, "Reject the hunk: revert it on the disk", "";
    RejectFile, "reject-file", HIDDEN, "Reject the file: revert it on the disk", "";
    CommentOnHunk, "comment-on-hunk", HIDDEN, "Comment on the hunk, for the next prompt", "";
    NextField, "next-field", HIDDEN, "Next field", "";
    PreviousField, "previous-field", HIDDEN, "Previous field", "";
    Decline, "decline", HIDDEN, "Decline", "";
    FullScreen, "full-screen", HIDDEN, "Toggle full screen", "";
    ToggleSecret, "toggle-secret", HIDDEN, "Toggle secrets", "";
    Edit, "edit", HIDDEN, "Edit", "";
    Remove, "remove", HIDDEN, "Remove", "";
    MoveUp, "move-up", HIDDEN, "Move up", "";
    MoveDown, "move-down", HIDDEN, "Move down", "";

    Redraw, "redraw", APPLICATION, "Redraw screen", "refresh repaint clear screen";
    Suspend, "suspend", APPLICATION, "Suspend", "background shell job";
    Quit, "quit", APPLICATION, "Quit", "exit close leave bye";
}

macro_rules! numbered {
    ($table:ident, $variant:ident, $text:literal, $($location:literal, $name:literal;)+) => {
        const $table: &[ActionInfo] = &[$(ActionInfo {
            action: Action::$variant($location),
            name: $name,
            text: $text,
            group: None,
            synonyms: "",
        },)+];
    };
}

numbered! {
    CHOOSE, Choose, "Choose option N",
    1, "choose-1"; 2, "choose-2"; 3, "choose-3"; 4, "choose-4"; 5, "choose-5";
    6, "choose-6"; 7, "choose-7"; 8, "choose-8"; 9, "choose-9";
}

numbered! {
    SHOW_TAB, ShowTab, "Go to tab N",
    1, "show-tab-1"; 2, "show-tab-2"; 3, "show-tab-3"; 4, "show-tab-4"; 5, "show-tab-5";
    6, "show-tab-6"; 7, "show-tab-7"; 8, "show-tab-8"; 9, "show-tab-9";
}

/// All actions that can be bound, in the order of help and palette.
pub fn all() -> impl Iterator<Item = &'static ActionInfo> {
    PLAIN.iter().chain(CHOOSE).chain(SHOW_TAB)
}

pub fn info(action: Action) -> Option<&'static ActionInfo> {
    all().find(|info| info.action == action)
}

pub fn by_name(name: &str) -> Option<Action> {
    all().find(|info| info.name == name).map(|info| info.action)
}
