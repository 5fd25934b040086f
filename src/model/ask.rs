//! Requests of an agent, and their answers.

use std::path::PathBuf;

use super::{ExitInfo, Raw, SessionId, TerminalId, ToolCallId, ToolCallPatch};

/// A request of an agent that parlor must answer exactly once.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "an event boxes it as a whole")]
pub enum AgentRequest {
    /// `session/request_permission`.
    Permission(PermissionRequest),
    /// `fs/read_text_file`.
    ReadFile {
        session: Option<SessionId>,
        path: PathBuf,
        /// First line, from 1; 0 reads as 1.
        line: Option<u32>,
        /// How many lines.
        limit: Option<u32>,
    },
    /// `fs/write_text_file`.
    WriteFile {
        session: Option<SessionId>,
        path: PathBuf,
        /// Its new content.
        content: String,
    },
    /// `terminal/create`.
    TerminalCreate {
        session: Option<SessionId>,
        /// What to run.
        command: TerminalCommand,
    },
    /// `terminal/output`.
    TerminalOutput(TerminalId),
    /// `terminal/wait_for_exit`.
    TerminalWait(TerminalId),
    /// `terminal/kill`.
    TerminalKill(TerminalId),
    /// `terminal/release`.
    TerminalRelease(TerminalId),
    /// `elicitation/create`.
    Elicitation(ElicitationRequest),
}

/// What `terminal/create` wants to run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TerminalCommand {
    /// Program, or a whole shell line when `args` is empty.
    pub command: String,
    /// Arguments.
    pub args: Vec<String>,
    /// Variables to add.
    pub env: Vec<(String, String)>,
    /// Where; `None` or relative: the session's folder.
    pub cwd: Option<PathBuf>,
    /// How much output to keep for the agent, in bytes, cut from the front.
    pub output_limit_bytes: Option<u64>,
}

/// A permission request.
#[derive(Debug, Clone, PartialEq)]
pub struct PermissionRequest {
    pub session: Option<SessionId>,
    /// The tool call, perhaps only its id; to be merged with the known one.
    pub tool: ToolCallPatch,
    /// The agent's options, in its order and words. May be empty: only a cancel fits then.
    pub options: Vec<PermissionOption>,
}

impl PermissionRequest {
    /// Whether the option at this place has the id of another one, so that its answer could mean either. It is never
    /// sent.
    pub fn is_ambiguous(&self, place: usize) -> bool {
        let same = |id: &str| self.options.iter().filter(|option| option.id == id).take(2).count();
        self.options.get(place).is_some_and(|option| same(&option.id) > 1)
    }

    /// The place of the option that refuses this request only; `None`: only a cancel refuses it.
    pub fn refusal(&self) -> Option<usize> {
        let is_it = |(_, option): &(usize, &PermissionOption)| option.kind == PermissionKind::RejectOnce;
        let mut all = self.options.iter().enumerate().filter(is_it);
        all.find(|(place, _)| !self.is_ambiguous(*place)).map(|(place, _)| place)
    }

    /// The place of the option that is marked at first: never one that decides for good.
    pub fn first_marked(&self) -> Option<usize> {
        let is_once = |option: &PermissionOption| {
            matches!(option.kind, PermissionKind::AllowOnce | PermissionKind::RejectOnce)
        };
        (0..self.options.len())
            .find(|place| self.options.get(*place).is_some_and(is_once) && !self.is_ambiguous(*place))
    }
}

/// An option of a permission request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PermissionOption {
    /// What to answer with.
    pub id: String,
    /// The agent's words.
    pub name: String,
    pub kind: PermissionKind,
}

/// What a permission option means. Source: ACP v1 tool-calls, `PermissionOptionKind`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PermissionKind {
    /// Yes, now.
    AllowOnce,
    /// Yes, and remember.
    AllowAlways,
    /// No, now.
    RejectOnce,
    /// No, and remember.
    RejectAlways,
}

impl PermissionKind {
    /// Whether it allows.
    pub fn is_allow(self) -> bool {
        matches!(self, Self::AllowOnce | Self::AllowAlways)
    }
}

/// A question to the user. Source: ACP v1 elicitation.
#[derive(Debug, Clone, PartialEq)]
pub struct ElicitationRequest {
    /// Whose session, if it belongs to one.
    pub session: Option<SessionId>,
    /// The tool call that it belongs to.
    pub tool: Option<ToolCallId>,
    /// What the agent says.
    pub message: String,
    pub mode: ElicitationMode,
}

/// What an elicitation wants.
#[derive(Debug, Clone, PartialEq)]
pub enum ElicitationMode {
    /// A form to fill in.
    Form {
        /// Title of the form.
        title: Option<String>,
        /// Description of the form.
        description: Option<String>,
        /// Its fields, in order.
        fields: Vec<FormField>,
    },
    /// A page to visit.
    Url {
        /// Id that `elicitation/complete` will name.
        id: String,
        /// The page.
        url: String,
    },
}

/// A field of a form.
#[derive(Debug, Clone, PartialEq)]
pub struct FormField {
    /// Key in the answer.
    pub key: String,
    /// Label; the key where the agent gives none.
    pub title: String,
    /// Help.
    pub description: Option<String>,
    /// Whether it must be filled in.
    pub is_required: bool,
    /// What it takes.
    pub kind: FieldKind,
}

/// Words in the name of a field that takes a secret.
const SECRET_WORDS: [&str; 16] = [
    "password",
    "passwords",
    "passwd",
    "pwd",
    "passphrase",
    "passcode",
    "secret",
    "secrets",
    "token",
    "tokens",
    "pin",
    "otp",
    "totp",
    "credential",
    "credentials",
    "key",
];

/// Words beside which a key in a description is a secret.
const KEY_WORDS: [&str; 8] =
    ["api", "access", "private", "secret", "ssh", "license", "recovery", "encryption"];

impl FormField {
    /// Whether what is typed here looks like a secret, by the words of the field or its format `password`.
    pub fn is_secret(&self) -> bool {
        let format = match &self.kind {
            FieldKind::Text { format, .. } => format.as_deref(),
            FieldKind::Number { .. } => None,
            FieldKind::Choice { .. } | FieldKind::Choices { .. } | FieldKind::Boolean { .. } => return false,
        };
        let is_secret = |text: &str| words(text).iter().any(|word| is_secret_word(word));
        let about = self.description.as_deref().map(words).unwrap_or_default();
        let mut pairs = about.windows(2);
        format == Some("password")
            || is_secret(&self.key)
            || is_secret(&self.title)
            || about.iter().any(|word| word != "key" && is_secret_word(word))
            || pairs.any(|pair| matches!(pair, [of, key] if key == "key" && KEY_WORDS.contains(&of.as_str())))
    }
}

/// `apikey` and `accesstoken` are words too.
fn is_secret_word(word: &str) -> bool {
    SECRET_WORDS.contains(&word)
        || ["apikey", "password", "passphrase", "secret", "token", "secretkey", "privatekey", "accesskey"]
            .iter()
            .any(|end| word.ends_with(end))
}

/// The words of a name or a sentence in small letters; `apiKey` and `API_KEY` are two each.
fn words(text: &str) -> Vec<String> {
    let mut out = vec![String::new()];
    let mut was_small = false;
    for letter in text.chars() {
        let begins = letter.is_uppercase() && was_small;
        if (begins || !letter.is_alphanumeric()) && out.last().is_some_and(|word| !word.is_empty()) {
            out.push(String::new());
        }
        if letter.is_alphanumeric()
            && let Some(word) = out.last_mut()
        {
            word.extend(letter.to_lowercase());
        }
        was_small = letter.is_lowercase();
    }
    out
}

/// What a field takes.
#[derive(Debug, Clone, PartialEq)]
pub enum FieldKind {
    Text {
        /// Fewest characters.
        min_chars: Option<u32>,
        /// Most characters.
        max_chars: Option<u32>,
        /// A regular expression that it must match.
        pattern: Option<String>,
        /// `email`, `uri`, `date`, `date-time` or `password`.
        format: Option<String>,
        /// What to begin with.
        default: Option<String>,
    },
    /// One of several texts.
    Choice {
        choices: Vec<FieldChoice>,
        /// The one to begin with.
        default: Option<String>,
    },
    /// Several of several texts.
    Choices {
        choices: Vec<FieldChoice>,
        /// Fewest.
        min_items: Option<u32>,
        /// Most.
        max_items: Option<u32>,
        /// Those to begin with.
        default: Vec<String>,
    },
    Number {
        /// Whether only whole numbers do.
        is_integer: bool,
        /// Least.
        minimum: Option<f64>,
        /// Greatest.
        maximum: Option<f64>,
        /// What to begin with.
        default: Option<f64>,
    },
    /// Yes or no.
    Boolean {
        /// What to begin with.
        default: Option<bool>,
    },
}

/// A choice of a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldChoice {
    pub value: String,
    /// What to show.
    pub title: String,
    pub description: Option<String>,
}

/// A value of a field.
#[derive(Debug, Clone, PartialEq)]
pub enum FieldValue {
    /// Text, or a choice.
    Text(String),
    /// Several choices.
    Texts(Vec<String>),
    /// Whole number.
    Integer(i64),
    Number(f64),
    /// Yes or no.
    Bool(bool),
}

/// Our answer to a request. Its form must fit the request's.
#[derive(Debug, Clone, PartialEq)]
pub enum Response {
    /// Permission: this option.
    Selected(String),
    PermissionCancelled,
    /// `fs/read_text_file`: the text.
    FileContent(String),
    /// Done, with nothing to tell (`{}`): write, kill, release.
    Done,
    /// `terminal/create`.
    TerminalCreated(TerminalId),
    /// `terminal/output`.
    TerminalOutput {
        /// The output so far, without escape sequences.
        output: String,
        /// Whether something was cut.
        is_truncated: bool,
        /// How it ended, if it has.
        exit: Option<ExitInfo>,
    },
    /// `terminal/wait_for_exit`.
    TerminalExit(ExitInfo),
    /// Elicitation accepted; `None` for a URL.
    ElicitationAccepted(Option<Vec<(String, FieldValue)>>),
    ElicitationDeclined,
    ElicitationCancelled,
    Error(RpcError),
}

/// A JSON-RPC error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RpcError {
    pub code: i64,
    /// Message, for people: the best text that was found, also in `data`.
    pub message: String,
    /// `data`, as it came or is to be sent.
    pub data: Option<Raw>,
}

impl RpcError {
    /// `-32002`, with the path as `data.uri`. Source: ACP v1 errors.
    pub const RESOURCE_NOT_FOUND: i64 = -32002;
    /// `-32601`.
    pub const METHOD_NOT_FOUND: i64 = -32601;
    /// `-32602`.
    pub const INVALID_PARAMS: i64 = -32602;
    /// `-32603`.
    pub const INTERNAL: i64 = -32603;
    /// `-32800`.
    pub const CANCELLED: i64 = -32800;
    /// `-32000`.
    pub const AUTH_REQUIRED: i64 = -32000;
    /// `-32022`, of version 2.
    pub const UNSUPPORTED_VERSION: i64 = -32022;

    /// An error without data.
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(key: &str, title: &str, description: &str, format: Option<&str>) -> FormField {
        let format = format.map(str::to_owned);
        let kind = FieldKind::Text { min_chars: None, max_chars: None, pattern: None, format, default: None };
        let description = Some(description.to_owned());
        FormField { key: key.to_owned(), title: title.to_owned(), description, is_required: true, kind }
    }

    #[test]
    fn fields_that_look_secret_are_known() {
        for (key, title, description, format) in [
            ("password", "", "", None),
            ("x", "Your PIN", "", None),
            ("apiKey", "", "", None),
            ("API_KEY", "", "", None),
            ("apikey", "", "", None),
            ("accessToken", "", "", None),
            ("x", "Passphrase", "", None),
            ("x", "", "The one-time code (OTP)", None),
            ("value", "Value", "Your API key", None),
            ("x", "", "", Some("password")),
        ] {
            assert!(field(key, title, description, format).is_secret(), "{key} {title} {description}");
        }
        for (key, title, description) in [
            ("name", "Name", "Press any key"),
            ("email", "E-mail", "Where to send it"),
            ("pinned", "Pinned", ""),
        ] {
            assert!(!field(key, title, description, Some("email")).is_secret(), "{key}");
        }
        let choice =
            FormField { kind: FieldKind::Boolean { default: None }, ..field("use_token", "", "", None) };
        assert!(!choice.is_secret());
    }

    #[test]
    fn an_option_that_shares_its_id_refuses_nothing() {
        let option = |id: &str, kind| PermissionOption { id: id.to_owned(), name: String::new(), kind };
        let ask =
            |options| PermissionRequest { session: None, tool: ToolCallPatch::new("t".into()), options };
        let shared = ask(vec![
            option("a", PermissionKind::AllowAlways),
            option("b", PermissionKind::AllowOnce),
            option("b", PermissionKind::RejectOnce),
        ]);
        assert_eq!((shared.refusal(), shared.first_marked()), (None, None));
        assert_eq!([0, 1, 2, 3].map(|place| shared.is_ambiguous(place)), [false, true, true, false]);
        let plain =
            ask(vec![option("a", PermissionKind::AllowAlways), option("c", PermissionKind::RejectOnce)]);
        assert_eq!((plain.refusal(), plain.first_marked()), (Some(1), Some(1)));
    }
}
