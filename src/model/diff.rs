//! Positions of changes in the files on disk: the request (texts, and a line to start from) and its result.
//!
//! `core` sends the requests, `host::locate` reads the files, and `ui::diff` numbers the lines.

use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::patch::{PatchFate, PatchLine, PatchLines};
use super::{Body, DiffChange, FileDiff, ItemId, SessionKey};

/// A contiguous part of a change: both texts of a snippet, or one hunk of a patch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiffPiece {
    pub old: Body,
    pub new: Body,
}

/// A request to locate all changes of one tool call in their files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocateJob {
    pub session: SessionKey,
    pub item: ItemId,
    pub roots: Vec<PathBuf>,
    /// Whether the changes should have been applied.
    pub is_done: bool,
    pub requests: Vec<LocateRequest>,
}

/// A request to locate one change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocateRequest {
    /// The change; returned with the result.
    pub diff: FileDiff,
    /// Absolute path of the file.
    pub path: PathBuf,
    pub pieces: Vec<DiffPiece>,
    /// The line that the agent reported, from 1.
    pub near: Option<u32>,
}

/// A change and its position.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LocatedDiff {
    pub diff: FileDiff,
    pub position: DiffPosition,
    /// Whether the file was read after the call completed.
    pub is_done: bool,
}

/// The position of a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DiffPosition {
    /// One of its texts is the entire file.
    Whole,
    /// The file does not exist.
    Gone,
    /// The file cannot be read: it is outside the roots, not a regular file, or too large.
    Unreadable,
    /// Where each piece starts; `None` if it has no match or several.
    Lines(Vec<Option<PieceStart>>),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PieceStart {
    /// The line, from 1.
    pub line: u32,
    /// Whether the new text was found, not the old one.
    pub is_new: bool,
    /// The lines of the file around it, for agents that send no context; `None`: not known, or too long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub around: Option<Around>,
}

/// The text of a file around a piece.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Around {
    /// The lines above it, and the start of its first line if it begins within that.
    pub before: Arc<str>,
    /// The rest of its last line, and the lines below.
    pub after: Arc<str>,
}

impl PieceStart {
    /// A start without the lines around it.
    pub fn at(line: u32, is_new: bool) -> Self {
        Self { line, is_new, around: None }
    }
}

impl FileDiff {
    /// The texts to look for. Empty for a patch with line numbers.
    pub fn pieces(&self) -> Vec<DiffPiece> {
        match &self.change {
            DiffChange::Texts { old, new } => {
                let old = old.clone().unwrap_or_default();
                vec![DiffPiece { old, new: new.clone() }]
            }
            DiffChange::Patch(text) => hunks(text),
        }
    }
}

/// The hunks of a patch without line numbers (`apply_patch`).
fn hunks(text: &str) -> Vec<DiffPiece> {
    let mut pieces = Vec::new();
    let mut open: Option<(String, String)> = None;
    let mut close = |open: &mut Option<(String, String)>| {
        if let Some((old, new)) = open.take() {
            pieces.push(DiffPiece { old: old.into(), new: new.into() });
        }
    };
    for (range, line) in PatchLines::new(text) {
        let (is_old, is_new) = match line {
            PatchLine::Hunk(Some(_)) | PatchLine::Section(PatchFate::Add, _) => return Vec::new(),
            PatchLine::Context(_) => (true, true),
            PatchLine::Removed(_) => (true, false),
            PatchLine::Added(_) => (false, true),
            PatchLine::Blank | PatchLine::NoNewline | PatchLine::Other(_) => continue,
            _ => {
                close(&mut open);
                continue;
            }
        };
        let (old, new) = open.get_or_insert_default();
        // Removes the sign and retains the line end.
        let end = text.len().min(range.end + 1);
        let body = text.get(range.start + 1..end).unwrap_or("\n");
        for (side, is_on) in [(old, is_old), (new, is_new)] {
            if is_on {
                side.push_str(body);
            }
        }
    }
    close(&mut open);
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patch(text: &str) -> FileDiff {
        FileDiff { path: "a.rs".into(), change: DiffChange::Patch(text.into()) }
    }

    #[test]
    fn hunks_without_line_numbers_have_both_texts() {
        let diff = patch("*** Update File: a.rs\n@@ fn a()\n keep\n-x\n+y\n@@\n-z\n*** End of File\n");
        let pieces = diff.pieces();
        let texts: Vec<(&str, &str)> = pieces.iter().map(|piece| (&*piece.old, &*piece.new)).collect();
        assert_eq!(texts, [("keep\nx\n", "keep\ny\n"), ("z\n", "")]);
    }

    #[test]
    fn patches_with_line_numbers_have_no_pieces() {
        assert!(patch("--- a\n+++ b\n@@ -1 +1 @@\n-x\n+y\n").pieces().is_empty());
        assert!(patch("*** Add File: a.rs\n+x\n").pieces().is_empty());
    }
}
