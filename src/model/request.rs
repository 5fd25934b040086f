//! Requests of an agent, and the responses to them.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{ExitInfo, Raw, SessionId, TerminalId, ToolCallId, ToolCallPatch};

/// A request of an agent. parlor responds to each exactly once.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "an event boxes it")]
pub enum AgentRequest {
    /// `session/request_permission`.
    Permission(PermissionRequest),
    /// `fs/read_text_file`.
    ReadFile {
        session: Option<SessionId>,
        path: PathBuf,
        /// First line, from 1; 0 reads as 1.
        line: Option<u32>,
        limit: Option<u32>,
    },
    /// `fs/write_text_file`.
    WriteFile { session: Option<SessionId>, path: PathBuf, content: String },
    /// `terminal/create`.
    TerminalCreate { session: Option<SessionId>, command: TerminalCommand },
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

/// The command of a `terminal/create` request.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TerminalCommand {
    /// Program, or a whole shell line when `args` is empty.
    pub command: String,
    pub args: Vec<String>,
    pub env: Vec<(String, String)>,
    /// The folder; `None` or a relative path is resolved in the session's folder.
    pub cwd: Option<PathBuf>,
    /// Output retained for the agent, in bytes; the start is cut.
    pub output_limit_bytes: Option<u64>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct PermissionRequest {
    pub session: Option<SessionId>,
    /// The tool call, possibly only its id; merged with the known one.
    pub tool: ToolCallPatch,
    /// The agent's options, in its order. If empty, the request can only be cancelled.
    pub options: Vec<PermissionOption>,
}

impl PermissionRequest {
    /// Whether another option has the same id, which makes the response ambiguous. Such an option is never
    /// sent.
    pub fn is_ambiguous(&self, position: usize) -> bool {
        let same = |id: &str| self.options.iter().filter(|option| option.id == id).take(2).count();
        self.options.get(position).is_some_and(|option| same(&option.id) > 1)
    }

    /// The index of the option that rejects only this request; `None` if only a cancel rejects it.
    pub fn refusal(&self) -> Option<usize> {
        let is_it = |(_, option): &(usize, &PermissionOption)| option.kind == PermissionKind::RejectOnce;
        let mut all = self.options.iter().enumerate().filter(is_it);
        all.find(|(position, _)| !self.is_ambiguous(*position)).map(|(position, _)| position)
    }

    /// The index of the option that is selected initially: the one that allows this once, otherwise one that rejects it,
    /// never one with a permanent effect.
    pub fn first_marked(&self) -> Option<usize> {
        let first = |kind| {
            (0..self.options.len()).find(|position| {
                self.options.get(*position).is_some_and(|option| option.kind == kind)
                    && !self.is_ambiguous(*position)
            })
        };
        first(PermissionKind::AllowOnce).or_else(|| first(PermissionKind::RejectOnce))
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PermissionOption {
    pub id: String,
    pub name: String,
    pub kind: PermissionKind,
}

/// The effect of a permission option. Source: ACP v1 tool-calls, `PermissionOptionKind`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PermissionKind {
    AllowOnce,
    AllowAlways,
    RejectOnce,
    RejectAlways,
}

impl PermissionKind {
    pub fn is_allow(self) -> bool {
        matches!(self, Self::AllowOnce | Self::AllowAlways)
    }
}

/// Who or what decided a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decider {
    /// Earlier versions did not record it.
    #[default]
    Unknown,
    User,
    /// A rule that the user made by answering another question.
    Rule,
    /// A rule of the configuration.
    Policy,
    Agent,
    /// The agent reported that its page was completed outside of parlor.
    Elsewhere,
    TurnCancelled,
    SessionClosed,
    AgentStopped,
    ConnectionLost,
}

impl Decider {
    /// Why a question was not answered.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Unknown => "the request was cancelled",
            Self::User => "cancelled by the user",
            Self::Rule => "decided by a rule",
            Self::Policy => "denied by a rule of the configuration",
            Self::Agent => "the agent cancelled the request",
            Self::Elsewhere => "completed elsewhere",
            Self::TurnCancelled => "the turn was cancelled",
            Self::SessionClosed => "the session was closed",
            Self::AgentStopped => "the agent was stopped",
            Self::ConnectionLost => "the connection to the agent ended",
        }
    }

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
    pub(super) fn is_unknown(&self) -> bool {
        *self == Self::Unknown
    }
}

/// A form or page for the user. Source: ACP v1 elicitation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ElicitationRequest {
    /// The session, if there is one. Not saved.
    #[serde(skip)]
    pub session: Option<SessionId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<ToolCallId>,
    /// The agent's explanation. Saved as the question.
    #[serde(skip)]
    pub message: String,
    pub mode: ElicitationMode,
}

impl ElicitationRequest {
    /// The request as it may be saved: without the default values of secret fields.
    #[must_use]
    pub fn to_record(&self) -> Self {
        let mut request = self.clone();
        if let ElicitationMode::Form { fields, .. } = &mut request.mode {
            for field in fields.iter_mut().filter(|field| field.is_secret()) {
                match &mut field.kind {
                    FieldKind::Text { default, .. } => *default = None,
                    FieldKind::Number { default, .. } => *default = None,
                    FieldKind::Choice { .. } | FieldKind::Choices { .. } | FieldKind::Boolean { .. } => {}
                }
            }
        }
        request
    }
}

/// The kind of an elicitation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ElicitationMode {
    Form {
        title: Option<String>,
        description: Option<String>,
        /// The fields, in order.
        fields: Vec<FormField>,
    },
    /// A web page to visit.
    Url {
        /// The id that `elicitation/complete` refers to.
        id: String,
        url: String,
    },
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FormField {
    pub key: String,
    /// The label; the key if the agent sends none.
    pub title: String,
    pub description: Option<String>,
    pub is_required: bool,
    pub kind: FieldKind,
}

/// Words that mark a field as a secret if they occur in its name.
const SECRET_WORDS: [&str; 23] = [
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
    "seed",
    "mnemonic",
    "cvv",
    "cvc",
    "csc",
    "iban",
    "ssn",
];

/// Words before "key" in a description that mark it as a secret.
const KEY_WORDS: [&str; 8] =
    ["api", "access", "private", "secret", "ssh", "license", "recovery", "encryption"];

impl FormField {
    /// Whether the field looks like it holds a secret, by its words or its format `password`.
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

/// Compound words such as `apikey` and `accesstoken` match by their ending.
fn is_secret_word(word: &str) -> bool {
    SECRET_WORDS.contains(&word)
        || ["apikey", "password", "passphrase", "secret", "token", "secretkey", "privatekey", "accesskey"]
            .iter()
            .any(|end| word.ends_with(end))
}

/// The words of a name or a sentence in lower case; `apiKey` and `API_KEY` have two each.
fn words(text: &str) -> Vec<String> {
    let mut out = vec![String::new()];
    let mut was_small = false;
    for ch in text.chars() {
        let begins = ch.is_uppercase() && was_small;
        if (begins || !ch.is_alphanumeric()) && out.last().is_some_and(|word| !word.is_empty()) {
            out.push(String::new());
        }
        if ch.is_alphanumeric()
            && let Some(word) = out.last_mut()
        {
            word.extend(ch.to_lowercase());
        }
        was_small = ch.is_lowercase();
    }
    out
}

/// The type of a field's value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FieldKind {
    Text {
        min_chars: Option<u32>,
        max_chars: Option<u32>,
        pattern: Option<String>,
        /// `email`, `uri`, `date`, `date-time` or `password`.
        format: Option<String>,
        default: Option<String>,
    },
    Choice {
        choices: Vec<FieldChoice>,
        default: Option<String>,
    },
    Choices {
        choices: Vec<FieldChoice>,
        min_items: Option<u32>,
        max_items: Option<u32>,
        default: Vec<String>,
    },
    Number {
        is_integer: bool,
        minimum: Option<f64>,
        maximum: Option<f64>,
        default: Option<f64>,
    },
    Boolean {
        default: Option<bool>,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FieldChoice {
    pub value: String,
    pub title: String,
    pub description: Option<String>,
}

/// The value of a field in a response.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum FieldValue {
    Text(String),
    Texts(Vec<String>),
    Integer(i64),
    Number(f64),
    Bool(bool),
}

/// parlor's response to a request. Its type must fit the request's.
#[derive(Debug, Clone, PartialEq)]
pub enum Response {
    /// Permission: the id of the chosen option.
    Selected(String),
    PermissionCancelled,
    /// `fs/read_text_file`: the text.
    FileContent(String),
    /// An empty result (`{}`): write, kill, release.
    Done,
    /// `terminal/create`.
    TerminalCreated(TerminalId),
    /// `terminal/output`.
    TerminalOutput {
        /// The output so far, without escape sequences.
        output: String,
        is_truncated: bool,
        /// The exit status, if the command ended.
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
    /// The message for display: the most specific text that was found, including `data`.
    pub message: String,
    /// The raw `data`.
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
    /// `-32022`, from version 2.
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
    fn secret_fields_are_detected() {
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
    fn options_with_duplicate_ids_are_never_chosen() {
        let option = |id: &str, kind| PermissionOption { id: id.to_owned(), name: String::new(), kind };
        let request =
            |options| PermissionRequest { session: None, tool: ToolCallPatch::new("t".into()), options };
        let shared = request(vec![
            option("a", PermissionKind::AllowAlways),
            option("b", PermissionKind::AllowOnce),
            option("b", PermissionKind::RejectOnce),
        ]);
        assert_eq!((shared.refusal(), shared.first_marked()), (None, None));
        assert_eq!([0, 1, 2, 3].map(|position| shared.is_ambiguous(position)), [false, true, true, false]);
        let plain =
            request(vec![option("a", PermissionKind::AllowAlways), option("c", PermissionKind::RejectOnce)]);
        assert_eq!((plain.refusal(), plain.first_marked()), (Some(1), Some(1)));
    }
}
