//! Something to be copied, and what became of it.

use std::path::PathBuf;

use super::FileDiff;

/// A wish to put something on the clipboard.
#[derive(Debug, Clone, PartialEq)]
pub struct CopyJob {
    /// What it is, for people: `the reply`, `3 lines`.
    pub what: String,
    pub content: CopyContent,
}

/// What is to be copied, as it came; made into text away from the screen.
#[derive(Debug, Clone, PartialEq)]
pub enum CopyContent {
    Text(String),
    /// Markdown, to be copied as one reads it.
    MarkdownAsPlain(String),
    /// What a command wrote, escape sequences and all.
    Output {
        bytes: Vec<u8>,
        /// Whether lines end with a return, as a pseudo terminal has it.
        has_returns: bool,
    },
    /// Changes of files, to be copied as one unified diff.
    Patch {
        changes: Vec<FileDiff>,
        /// Paths are written relative to this folder.
        folder: PathBuf,
    },
}

/// Which way a text went. None of them proves that it can be pasted; each says what is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CopyOutcome {
    /// A program took it and ended well.
    Program(&'static str),
    /// tmux took it into its buffer.
    TmuxBuffer,
    /// It goes to the terminal as OSC 52, which is never answered.
    Terminal {
        /// The bytes to write.
        sequence: String,
    },
    /// It went nowhere; why, and what to do.
    Failed(String),
    /// There was nothing to copy.
    Nothing,
}
