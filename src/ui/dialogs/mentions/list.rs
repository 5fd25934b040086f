//! The mention that is being typed.

use std::ops::Range;

use crate::model::{FoundFile, FoundSymbol, MentionedSession, SessionKey};

/// A mention that is being typed, with the files, symbols and sessions that may match it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MentionList {
    pub session: SessionKey,
    /// Whether it is an argument of a slash command, without `@`.
    pub is_argument: bool,
    /// Whether a single match is inserted: the completion key was pressed, and nothing was typed since.
    pub is_completing: bool,
    /// The bytes of the draft from the `@` to the cursor.
    pub range: Range<usize>,
    /// The path as typed so far.
    pub query: String,
    pub found: Vec<FoundFile>,
    /// The query that `found` answers.
    pub found_for: String,
    pub symbols: Vec<FoundSymbol>,
    pub symbols_for: String,
    pub has_tags: bool,
    /// The saved sessions of the folder, latest first.
    pub sessions: Vec<MentionedSession>,
    /// The paths that earlier prompts mention, latest first.
    pub recent: Vec<String>,
}
