//! Clipboard requests and their results.

use std::path::PathBuf;

use super::FileDiff;

/// A request to copy something to the clipboard.
#[derive(Debug, Clone, PartialEq)]
pub struct CopyJob {
    /// Label for display: `the reply`, `3 lines`.
    pub what: String,
    pub content: CopyContent,
}

/// The source of a copy; converted to text off the UI thread.
#[derive(Debug, Clone, PartialEq)]
pub enum CopyContent {
    Text(String),
    MarkdownAsPlain(String),
    /// The output of a command, with escape sequences.
    Output {
        bytes: Vec<u8>,
        /// Whether lines end with a carriage return, as in a pseudo terminal.
        has_returns: bool,
    },
    /// File changes, to be copied as one unified diff.
    Patch {
        changes: Vec<FileDiff>,
        /// Paths are relative to this folder.
        folder: PathBuf,
    },
}

/// How a text was copied. None of the variants proves that it can be pasted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CopyOutcome {
    /// A clipboard program accepted it and exited successfully.
    Program(&'static str),
    TmuxBuffer,
    /// Sent to the terminal as OSC 52, which has no response.
    Terminal {
        sequence: String,
    },
    /// The copy failed; contains the reason and a next step.
    Failed(String),
    Nothing,
}
