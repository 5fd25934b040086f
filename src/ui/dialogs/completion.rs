//! What completes the word being typed in the prompt.

use crate::core::state::commands::OWN_PREFIX;
use crate::model::TemplateSource;

/// A slash command that matches the draft, or a file that matches the mention being typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completion {
    /// The name without the slash, or the path.
    pub name: String,
    pub description: String,
    /// The hint for its argument; `None` if it takes none.
    pub hint: Option<String>,
    pub kind: CompletionKind,
    /// The mention of a symbol, or the store's id of a session; empty for others.
    pub target: String,
}

impl Completion {
    /// A completion without a hint and target.
    pub(super) fn new(name: String, description: String, kind: CompletionKind) -> Self {
        Self { name, description, hint: None, kind, target: String::new() }
    }
}

/// What a completion inserts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompletionKind {
    Agent,
    Own,
    Template(TemplateSource),
    /// Opens the review of new templates instead.
    Review,
    File,
    /// The output of a command, or the changes since the last commit.
    Output,
    Symbol,
    Session,
    /// The prefix that lists symbols or sessions.
    Group,
}

impl CompletionKind {
    pub fn is_command(self) -> bool {
        matches!(self, Self::Agent | Self::Own | Self::Template(_))
    }

    /// The prefix that selects it if another command has its name.
    pub(super) fn prefix(self) -> Option<&'static str> {
        match self {
            Self::Own => Some(OWN_PREFIX),
            Self::Template(source) => Some(source.prefix()),
            Self::Agent
            | Self::Review
            | Self::File
            | Self::Output
            | Self::Symbol
            | Self::Session
            | Self::Group => None,
        }
    }
}
