//! Dialogs as plain data. The top one receives the keys; the first open request of the active session is below all
//! of them.

mod form;
mod mention;
mod sessions;

pub use form::*;
pub use mention::*;
pub use sessions::*;

use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::app::ToolCall;
use crate::app::state::line::LineInput;
use crate::app::state::outline::Only;
use crate::app::state::question::QuestionId;
use crate::app::state::unseen::WaitingFor;
use crate::model::{
    Action, AuthVar, BindingRow, ConnId, FoundPrompt, ItemId, Plan, ProviderRequest, Raw, RequestId,
    SessionKey, Target, ToolInput, input_keys,
};

/// A dialog opened by the user, or by parlor to report something.
#[derive(Debug, Clone, PartialEq)]
pub enum Modal {
    Picker(Picker),
    /// A question of parlor, with the position of the marked answer.
    Question(QuestionId, usize),
    /// The next key is bound to an action.
    Capture(KeyCapture),
    Queue {
        selected: usize,
    },
    Help {
        filter: LineInput,
    },
    Log {
        filter: LineInput,
    },
    Connection(ConnId),
    /// An item of the active session as it was received.
    Inspect(ItemId),
    Changes(ChangesDialog),
    /// A single-line input (a title, a variable of a sign-in).
    Line(LineDialog),
    /// The inbox: everything that waits for the user, in all tabs.
    Attention(InboxDialog),
    /// The sessions: open, stored, and listed by the agent.
    Sessions(Box<SessionsDialog>),
}

impl Modal {
    pub fn names_items(&self) -> bool {
        let Self::Picker(picker) = self else { return false };
        matches!(picker.kind, PickerKind::Outline | PickerKind::Copy | PickerKind::Location)
    }
}

/// A dialog that waits for the keys to bind.
#[derive(Debug, Clone, PartialEq)]
pub struct KeyCapture {
    pub binding: BindingRow,
    /// The keys that stay bound.
    pub keeps: Vec<String>,
    /// The keys pressed so far, as in the configuration.
    pub pressed: Vec<String>,
}

/// The selection in the inbox.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct InboxDialog {
    /// The selected entry, by identity because the list changes; `None`: the list is empty.
    pub marked: Option<(SessionKey, WaitingFor)>,
    pub position: usize,
    /// Whether the selected request is shown completely.
    pub is_whole: bool,
}

/// The view of all changes.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ChangesDialog {
    /// The shown file, an index into those that match the filter.
    pub selected: usize,
    pub filter: LineInput,
    /// Whether typed letters edit the filter.
    pub is_filtering: bool,
    /// Whether all known unchanged lines are shown.
    pub shows_context: bool,
}

/// A list with a fuzzy filter.
#[derive(Debug, Clone, PartialEq)]
pub struct Picker {
    pub kind: PickerKind,
    pub title: String,
    pub rows: Vec<PickerRow>,
    pub filter: LineInput,
    /// Indices into `rows` that match the filter, best first; updated by the reducer.
    pub matches: Vec<usize>,
    /// The selected row, an index into `matches`.
    pub selected: usize,
    /// A line at the bottom: why it is empty, how many rows are hidden, that it is loading.
    pub note: Option<String>,
    /// For a sign-in: the agent's connection.
    pub conn: Option<ConnId>,
    /// Whether parlor opened it, so that [`crate::guard`] decides which keys it gets.
    pub is_by_itself: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PickerKind {
    /// An agent; the row's value is its name.
    Agent,
    Palette,
    Mode,
    Model,
    Option,
    OptionValue(String),
    Theme,
    /// A setting; the row's value is its name.
    Setting,
    SettingValue(String),
    /// An action with its keys; the row's value is `CONTEXT ACTION`.
    Binding,
    BindingWay(String),
    HandOver,
    Provider,
    /// The API for this provider; an empty value disables the provider.
    ProviderApi(String),
    SignIn,
    Copy,
    Outline,
    /// A prompt of the session to go back to.
    Rewind,
    Only,
    History {
        /// The number of the last search.
        serial: u64,
        /// Whether prompts of all folders are listed.
        is_everywhere: bool,
    },
    /// A permission that can be revoked; the row's value is its place.
    Grant,
    Location,
    TabAgent(PathBuf),
    /// A folder for a new tab; the row's value is its path.
    Folder,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PickerRow {
    pub value: PickerValue,
    pub label: String,
    /// Shown dimmed after the label, and matched.
    pub detail: String,
    /// Shown at the right: a key or a state.
    pub right: String,
    /// Group heading, shown where it changes.
    pub group: Option<String>,
    pub is_current: bool,
}

impl PickerRow {
    /// A row with only a label.
    pub fn new(value: PickerValue, label: impl Into<String>) -> Self {
        let (detail, right) = (String::new(), String::new());
        Self { value, label: label.into(), detail, right, group: None, is_current: false }
    }
}

/// The value of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PickerValue {
    Id(String),
    Action(Action),
    Copy(CopySource),
    Item(ItemId),
    /// A filter of the transcript, or none.
    Only(Option<Only>),
    Prompt(Box<FoundPrompt>),
    Target(Target),
    Install(String),
    FetchRegistry,
}

/// Something in a transcript that can be copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CopySource {
    /// All messages of the agent in its last turn, as Markdown.
    Reply,
    ReplyPlain,
    /// An item: a message as received, a change as a patch, the output of a command.
    Item(ItemId),
    ItemPlain(ItemId),
    /// A code block of a message, by index.
    Code(ItemId, usize),
    Command(ItemId),
    Output(ItemId),
    Patch(ItemId),
    /// All changes of the last turn that changed files.
    TurnPatch,
}

/// A single-line input dialog.
#[derive(Debug, Clone, PartialEq)]
pub struct LineDialog {
    pub title: String,
    pub help: String,
    pub input: LineInput,
    pub is_secret: bool,
    /// Why the input is not valid.
    pub problem: Option<String>,
    pub purpose: LinePurpose,
}

/// The purpose of a [`LineDialog`].
#[derive(Debug, Clone, PartialEq)]
pub enum LinePurpose {
    Title(SessionKey),
    /// The title of a stored session that is not open, by its id in the store.
    SavedTitle(String),
    /// Why a request of this session is rejected: the next prompt.
    Reason {
        session: SessionKey,
        request_id: RequestId,
    },
    Setting(String),
    Keys {
        context: &'static str,
        action: &'static str,
    },
    /// Variables of a sign-in, entered one after the other.
    AuthVars {
        conn: ConnId,
        method: String,
        given: Vec<(String, String)>,
        /// The current one first.
        missing: Vec<AuthVar>,
    },
    ProviderUrl {
        conn: ConnId,
        id: String,
        api: String,
    },
    /// A header for a provider; earlier ones are already in the request.
    ProviderHeader {
        conn: ConnId,
        request: ProviderRequest,
    },
}

impl LinePurpose {
    pub fn accepts(&self) -> &'static str {
        match self {
            Self::Title(_) | Self::SavedTitle(_) => "rename",
            Self::Reason { .. } => "reject and send",
            Self::Setting(_) | Self::Keys { .. } => "save",
            Self::AuthVars { .. } | Self::ProviderUrl { .. } | Self::ProviderHeader { .. } => "continue",
        }
    }
}

/// The view of the shown request; reset when another one is shown.
#[derive(Debug, Clone, PartialEq, Default)]
#[allow(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct RequestView {
    /// The selected option (permission, outside file) or field (form).
    pub selected: usize,
    pub is_full_screen: bool,
    /// Increases when what is asked changes.
    pub revision: u64,
    pub form: Option<FormState>,
    /// The tool call as shown; a change of what is asked makes a new revision.
    pub seen: Option<Box<SeenCall>>,
    /// Whether the call changed while it was shown.
    pub has_changed: bool,
    /// The request of this view; `dialogs::refresh` resets it for another one.
    pub request_id: Option<RequestId>,
}

/// A tool call and the plans as shown with its permission request.
#[derive(Debug, Clone, PartialEq)]
pub struct SeenCall {
    pub rev: u32,
    pub call: ToolCall,
    pub plans: Vec<Plan>,
}

impl SeenCall {
    /// Whether another state of the call requests the same: ignores its progress, and whether the session's folder is named,
    /// where the call happens in any case.
    pub fn asks_the_same(&self, other: &ToolCall, folder: &Path) -> bool {
        let call = &self.call;
        let input = |call: &ToolCall| ToolInput {
            cwd: call.input.cwd.clone().filter(|cwd| cwd != folder),
            ..call.input.clone()
        };
        call.kind == other.kind
            && call.title == other.title
            && call.name == other.name
            && input(call) == input(other)
            && without_folder(call.raw_input.as_ref(), folder)
                == without_folder(other.raw_input.as_ref(), folder)
            && call.content == other.content
            && call.locations == other.locations
    }
}

/// The input without the keys that name the folder. It is compact JSON, in which no string contains a plain quote.
fn without_folder(input: Option<&Raw>, folder: &Path) -> Option<String> {
    let mut input = input?.0.to_string();
    for key in input_keys::CWD {
        let named = format!("\"{key}\":\"{}\"", folder.display());
        for part in [format!(",{named}"), format!("{named},"), named] {
            input = input.replace(&part, "");
        }
    }
    Some(input)
}

/// UI state between keys.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct UserView {
    /// The position that was marked when the question on top appeared.
    pub first_mark: usize,
    /// The session in which the question on top was shown.
    pub asked_in: SessionKey,
    /// Keys pressed at a question that closed, which the prompt does not show yet.
    pub unshown: String,
    /// Whether the user opened the question that appears now, so that it gets the keys.
    pub enters_question: bool,
    /// When Escape last rejected a request; another Escape soon after cancels the turn.
    pub last_reject: Option<Instant>,
    /// Whether the store holds prompts for a search.
    pub has_prompt_index: bool,
    /// When Escape last had nothing to do; another one soon after lists the prompts.
    pub last_escape: Option<Instant>,
    /// The marked completion, a place in `dialogs::completions`.
    pub completion: usize,
    /// The draft for which completions were closed.
    pub dismissed: Option<String>,
    /// The mention of a file that is being typed.
    pub mention: Option<MentionList>,
    /// The session whose draft gets a transcript that is being read.
    pub attaching: Option<SessionKey>,
    /// The cursor's byte in the draft, when an action last depended on it.
    pub cursor: usize,
    /// Partly filled forms of open requests of sessions that are not active.
    pub left_forms: Vec<RequestView>,
    /// Whether keys browse the transcript instead of editing the prompt.
    pub is_browsing: bool,
    pub former_tab: Option<SessionKey>,
    /// The tab whose dialogs are shown.
    pub shown_tab: Option<SessionKey>,
}

/// The UI state of a tab while another one is active.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TabUi {
    /// Its dialogs, the top one last.
    pub modals: Vec<Modal>,
    pub is_browsing: bool,
}

/// An index moved by a number of rows, limited to the list.
pub(in crate::ui) fn moved(position: usize, by: isize, count: usize) -> usize {
    position.saturating_add_signed(by).min(count.saturating_sub(1))
}
