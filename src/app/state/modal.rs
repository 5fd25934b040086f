//! Dialogs as plain data. The top one takes the keys; below all of them is the first open ask.

mod form;
mod line;
mod sessions;

pub use form::*;
pub use line::*;
pub use sessions::*;

use crate::app::State;
use crate::model::ArchiveRow;
use std::path::PathBuf;
use std::time::Instant;

use super::inbox::WaitingFor;
use super::outline::Only;
use crate::app::{AccessRequest, ToolCall};
use crate::model::{
    Action, AgentSpec, AskId, AuthVar, ConnId, ExportForm, Grant, GrantScope, ItemId, Location,
    ProviderRequest, SessionId, SessionInfo, SessionKey, Target,
};

/// A dialog that the user opened, or that parlor opened to tell something.
#[derive(Debug, Clone, PartialEq)]
pub enum Modal {
    /// A list with a filter.
    Picker(Picker),
    /// A few ways to go on.
    Choice(ChoiceDialog),
    /// The prompts that wait.
    Queue {
        /// The marked one.
        selected: usize,
    },
    /// The keys.
    Help { filter: LineInput },
    /// The wire, both ways.
    Log { filter: LineInput },
    /// Facts about the connection.
    Connection(ConnId),
    /// An item of the shown session as it came over the wire.
    Inspect(ItemId),
    /// All changes of the session.
    Changes(ChangesDialog),
    /// A line of text to be given (a title, a variable of a sign-in).
    Line(LineDialog),
    /// What waits in all tabs.
    Attention(InboxDialog),
    /// The sessions: open here, kept by parlor, listed by the agent.
    Sessions(Box<SessionsDialog>),
}

impl Modal {
    /// Whether it names items of the transcript by their places.
    pub fn names_items(&self) -> bool {
        let Self::Picker(picker) = self else { return false };
        matches!(picker.kind, PickerKind::Outline | PickerKind::Copy | PickerKind::Place)
    }
}

/// Which of the things that wait is marked.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct InboxDialog {
    /// The marked one, by what it is, because others come and go; `None`: there is none.
    pub marked: Option<(SessionKey, WaitingFor)>,
    /// Its place in the list.
    pub place: usize,
    /// Whether the marked request is shown whole.
    pub is_whole: bool,
}

/// How all changes are looked at.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ChangesDialog {
    /// The shown file, a place among those that pass the filter.
    pub selected: usize,
    /// Words that a path must hold.
    pub filter: LineInput,
    /// Whether letters go into the filter.
    pub is_filtering: bool,
    /// Whether all unchanged lines are shown that were told.
    pub shows_context: bool,
}

/// A list with a fuzzy filter.
#[derive(Debug, Clone, PartialEq)]
pub struct Picker {
    /// What is picked.
    pub kind: PickerKind,
    /// Heading.
    pub title: String,
    /// All rows, in their own order.
    pub rows: Vec<PickerRow>,
    pub filter: LineInput,
    /// Indices into `rows` that pass the filter, best first; kept in step by the reducer.
    pub matches: Vec<usize>,
    /// The marked one, an index into `matches`.
    pub selected: usize,
    /// A line at the foot: why it is empty, how many are hidden, that it loads.
    pub note: Option<String>,
    /// For a sign-in: to which agent.
    pub conn: Option<ConnId>,
    /// Whether it opened by itself (then the grace period holds).
    pub is_by_itself: bool,
    /// When it appeared; filled in by `dialogs::settle`.
    pub shown_at: Option<Instant>,
}

/// What a picker picks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PickerKind {
    /// An agent; the row's value is its name.
    Agent,
    /// A command of the palette.
    Palette,
    Mode,
    Model,
    /// A config option.
    Option,
    /// A value of this config option.
    OptionValue(String),
    Theme,
    /// An agent that a conversation is handed over to.
    HandOver,
    /// A place that models come from.
    Provider,
    /// An API that this provider is to speak; empty: it is to be off.
    ProviderApi(String),
    /// A way to sign in.
    SignIn,
    /// Something that can be copied.
    Copy,
    /// An item of the transcript.
    Outline,
    /// What is shown of the transcript.
    Only,
    /// A prompt of the folder's history; the row's value is its text.
    History,
    /// A permission that can be revoked; the row's value is its place.
    Grant,
    /// A file or a page.
    Place,
    /// An agent for a new tab in this folder.
    TabAgent(PathBuf),
    /// A folder for a new tab; the row's value is its path.
    Folder,
}

/// A row of a picker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PickerRow {
    /// What it stands for.
    pub value: PickerValue,
    /// What is shown and matched.
    pub label: String,
    /// Shown dim behind it, matched too.
    pub detail: String,
    /// Shown at the right: a key, a state.
    pub right: String,
    /// Group heading, shown where it changes.
    pub group: Option<String>,
    /// Whether it is the one in force.
    pub is_current: bool,
}

/// What a row stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PickerValue {
    /// An id of the kind.
    Id(String),
    /// An action of the palette.
    Action(Action),
    /// Something that can be copied.
    Copy(CopySource),
    /// An item of the transcript.
    Item(ItemId),
    /// Only this of the transcript, or all of it.
    Only(Option<Only>),
    /// A file or a page.
    Target(Target),
}

/// Something in a transcript that can be copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CopySource {
    /// All that the agent said in its last turn, as Markdown.
    Reply,
    /// The same as one reads it.
    ReplyPlain,
    /// An item: a message as it came, a change as a patch, what a command wrote.
    Item(ItemId),
    /// A message as one reads it.
    ItemPlain(ItemId),
    /// A block of code of a message, from 0.
    Code(ItemId, usize),
    /// The command of a call.
    Command(ItemId),
    /// What a call put out.
    Output(ItemId),
    /// The changes of a call.
    Patch(ItemId),
    /// All changes of the turn that changed something last.
    TurnPatch,
}

/// A question with a few answers, each by its number.
#[derive(Debug, Clone, PartialEq)]
pub struct ChoiceDialog {
    /// Heading.
    pub title: String,
    /// What happened, why; may be scrolled.
    pub body: Vec<String>,
    /// The ways to go on.
    pub choices: Vec<Choice>,
    /// The marked one.
    pub selected: usize,
    /// When it opened by itself (then the grace period holds); `None` if the user opened it.
    pub opened_by_itself: Option<Instant>,
}

/// A way to go on.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    /// What is shown.
    pub label: String,
    pub outcome: ChoiceOutcome,
}

/// What a choice does.
#[derive(Debug, Clone, PartialEq)]
pub enum ChoiceOutcome {
    /// Nothing; closes.
    Close,
    /// This action, as if a key had said it.
    Act(Action),
    /// Leaves.
    Quit,
    /// Ends the agent's process at once.
    ForceStop(ConnId),
    /// Opens this place in the editor.
    OpenFile(Location),
    /// Starts the session's agent again.
    Restart(SessionKey),
    /// Closes a session that is open here.
    CloseSession(SessionKey),
    /// Answers for the servers that the folder names.
    AnswerServers(std::path::PathBuf, crate::app::ServersAnswer),
    /// Signs in to the host of an agent that was not let in.
    SignInToHost(ConnId),
    /// Runs this sign-in command, with these variables added.
    RunLogin(ConnId, Box<AgentSpec>, Vec<(String, String)>),
    /// Opens a session that the agent listed, as it was shown: with the further folders that it names, or without.
    OpenListed {
        /// What the agent told of it.
        info: Box<SessionInfo>,
        /// Whether its further folders become roots.
        with_folders: bool,
    },
    /// Opens a page in the browser.
    OpenUrl(String),
    /// Takes a session off the agent's list.
    DeleteSession(SessionId),
    /// Deletes what parlor kept, and the agent's part too where it is named.
    DeleteKept {
        /// Its id in the store.
        uid: String,
        /// The agent's name for it.
        listed: Option<SessionId>,
    },
    /// Goes on with a session in this folder.
    GoOnIn(SessionKey, std::path::PathBuf),
    /// Writes a kept session to a file.
    Export(String, ExportForm),
    /// Copies a session at the end of this turn, or at its own end.
    Fork(SessionKey, Option<u32>),
}

/// A line to be given.
#[derive(Debug, Clone, PartialEq)]
pub struct LineDialog {
    /// Heading.
    pub title: String,
    /// What is wanted.
    pub help: String,
    /// The line.
    pub input: LineInput,
    /// Whether it must not be shown.
    pub is_secret: bool,
    /// Why it cannot be taken yet.
    pub problem: Option<String>,
    pub purpose: LinePurpose,
}

/// What a line is for.
#[derive(Debug, Clone, PartialEq)]
pub enum LinePurpose {
    /// A session's title.
    Title(SessionKey),
    /// The title of a session that is not open: its id in the store.
    KeptTitle(String),
    /// Variables of a sign-in, one after the other: those given, and those still to ask for.
    AuthVars {
        /// For this connection.
        conn: ConnId,
        method: String,
        given: Vec<(String, String)>,
        /// Asked for now, then the rest.
        missing: Vec<AuthVar>,
    },
    /// The address of a provider.
    ProviderUrl {
        /// For this connection.
        conn: ConnId,
        /// The provider.
        id: String,
        /// The API that it is to speak.
        api: String,
    },
    /// A header for a provider; those before it are in the wish already.
    ProviderHeader {
        /// For this connection.
        conn: ConnId,
        /// What is wished so far.
        wish: ProviderRequest,
    },
    /// A queued prompt. The queue may move on meanwhile, so the text from before tells where it is now.
    QueuedPrompt {
        /// Its place when the dialog opened.
        place: usize,
        /// The text from before.
        before: String,
    },
}

/// How the shown ask is looked at; reset when another one comes to the front.
#[derive(Debug, Clone, PartialEq, Default)]
#[allow(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct RequestView {
    /// The marked option (permission, outside file) or field (form).
    pub selected: usize,
    /// Whether it takes the whole screen.
    pub is_full_screen: bool,
    /// When it came to the front; the grace period counts from it.
    pub shown_at: Option<Instant>,
    /// Whether it is looked at in the list of all that waits.
    pub is_in_list: bool,
    /// Whether the user moved the focus to it although there is a draft.
    pub is_focused: bool,
    /// The form as filled in so far.
    pub form: Option<FormState>,
    /// The tool call as it is shown; when what is judged of it changes, the grace period begins anew.
    pub seen: Option<Box<SeenCall>>,
    /// Whether the call changed while it was shown.
    pub has_changed: bool,
    /// The ask that this belongs to; `dialogs::settle` makes it fresh for another one.
    pub ask: Option<AskId>,
}

/// A tool call as it was shown when its permission was asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct SeenCall {
    /// The revision of its item.
    pub rev: u32,
    pub call: ToolCall,
}

impl SeenCall {
    /// Whether another state of the call asks for the same: what a user judges, not how far it is.
    pub fn asks_the_same(&self, other: &ToolCall) -> bool {
        let call = &self.call;
        call.kind == other.kind
            && call.title == other.title
            && call.name == other.name
            && call.input == other.input
            && call.raw_input == other.raw_input
            && call.content == other.content
            && call.locations == other.locations
    }
}

/// An answer about a file or command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccessChoice {
    /// Yes, this once.
    Once,
    /// Yes, and the same again for so long.
    Longer(GrantScope),
    /// Yes, and all other commands of the agent in the session's folders, until the session ends.
    AllCommands,
    Refuse,
}

impl AccessRequest {
    /// The ways to answer, in the dialog's order. The refusal comes last.
    pub fn choices(&self) -> Vec<AccessChoice> {
        let longer = [GrantScope::Session, GrantScope::Folder].map(AccessChoice::Longer);
        let longer = longer.into_iter().filter(|_| self.grant.is_some());
        let all = self.offers_all_commands.then_some(AccessChoice::AllCommands);
        [AccessChoice::Once].into_iter().chain(longer).chain(all).chain([AccessChoice::Refuse]).collect()
    }

    /// The same in words.
    pub fn labels(&self) -> Vec<String> {
        let what = match &self.grant {
            Some(Grant::Run(_) | Grant::AnyCommand) | None => "this command",
            Some(Grant::WriteFile(_)) => "writes to this file",
            Some(Grant::ReadFile(_)) => "reads of this file",
            // Without the path: a long one must not push the refusal off the screen.
            Some(Grant::WriteIn(_)) => "writes next to this file",
            Some(Grant::ReadIn(_)) => "reads next to this file",
        };
        let label = |choice| match choice {
            AccessChoice::Once => "Allow once".to_owned(),
            AccessChoice::Longer(GrantScope::Session) => format!("Allow {what} for this session"),
            AccessChoice::Longer(GrantScope::Folder) => {
                format!("Always allow {what} for {} in this folder", self.agent)
            }
            AccessChoice::AllCommands => format!("Allow all commands of {} for this session", self.agent),
            AccessChoice::Refuse => "Refuse".to_owned(),
        };
        self.choices().into_iter().map(label).collect()
    }
}

/// The ways to answer for a page that the agent wants visited, in the dialog's order.
pub const URL_OPTIONS: [&str; 2] = ["Open in browser", "Decline"];

/// What the user's side remembers between keys.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct UserView {
    /// The appearance time of the dialog whose grace period is over.
    pub unlocked: Option<Instant>,
    /// Whether there was no input for a while before the last key, so that Escape may reject a request beside a draft.
    pub may_reject: bool,
    /// When Escape last rejected a request; another Escape soon after cancels the turn.
    pub last_reject: Option<Instant>,
    /// When Escape last had nothing to do; another one soon after lists the prompts.
    pub last_escape: Option<Instant>,
    /// What was searched for in all sessions, to be marked in the one that is being opened.
    pub searched: Option<String>,
    /// The marked completion, a place in `dialogs::completions`.
    pub completion: usize,
    /// The draft for which the offered completions were closed.
    pub dismissed: Option<String>,
    /// Forms of open asks that are not shown because another session is; with what was typed into them.
    pub left_forms: Vec<RequestView>,
    /// Whether keys walk the transcript instead of going into the prompt.
    pub is_browsing: bool,
    /// The tab that was in front before.
    pub former_tab: Option<SessionKey>,
}

/// What the user says about them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServersAnswer {
    /// They are used, now and as long as the file stays as it is.
    Use,
    /// They are left out for as long.
    LeaveOut,
    /// They are left out this time.
    NotNow,
}

/// The offer as a row of the picker of agents.
pub(in crate::app) fn offered_row(row: &ArchiveRow) -> PickerRow {
    PickerRow {
        value: PickerValue::Action(Action::ContinueLast),
        label: format!("Resume “{}”", row.name()),
        detail: row.agent.clone(),
        right: row.when.clone(),
        group: Some("Last session in this folder".to_owned()),
        is_current: false,
    }
}

/// Agents that can be chosen, by where they come from.
pub fn agent_rows(state: &State) -> Vec<PickerRow> {
    let current = state.conn_of(state.active).map(|conn| conn.spec.name.as_str());
    let last = state.setup.last_agent.as_deref();
    let row = |choice: &crate::app::AgentChoice| PickerRow {
        value: PickerValue::Id(choice.spec.name.clone()),
        label: choice.title.clone(),
        // Where this program itself lies tells nobody anything.
        detail: match choice.source.as_str() {
            "built in" => "demo, no account needed".to_owned(),
            _ => choice.spec.command_line(),
        },
        right: if last == Some(choice.spec.name.as_str()) {
            "last used here".to_owned()
        } else {
            String::new()
        },
        group: Some(group_of(&choice.source)),
        is_current: current == Some(choice.spec.name.as_str()),
    };
    state.setup.agents.iter().map(row).collect()
}

pub(in crate::app) fn group_of(source: &str) -> String {
    match source {
        "found" => "Found on this machine".to_owned(),
        other => {
            let mut letters = other.chars();
            letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
        }
    }
}
