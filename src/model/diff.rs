//! Where changes of files stand in the files on disk.
//!
//! Duty: the question (which texts, near which line) and its answer. Not its duty: reading files
//! (`services::locate`), deciding when to ask (`app`), numbering lines (`ui::diff`).

use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::patch::{PatchFate, PatchLine, PatchLines};
use super::{DiffChange, FileDiff, ItemId, SessionKey};

/// A part of a change that stands in one place of its file: both texts of a snippet, or one hunk of a patch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiffPiece {
    /// Its lines before.
    pub old: Arc<str>,
    /// Its lines after.
    pub new: Arc<str>,
}

/// Where the changes of one tool call stand in their files, asked at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocateJob {
    pub session: SessionKey,
    /// The tool call's item.
    pub item: ItemId,
    /// Folders that bound access.
    pub roots: Vec<PathBuf>,
    /// Whether the changes should be in the files by now.
    pub is_done: bool,
    /// The changes.
    pub asks: Vec<LocateRequest>,
}

/// One change to be located.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocateRequest {
    /// The change; the answer comes back with it.
    pub diff: FileDiff,
    /// Its file, absolute.
    pub path: PathBuf,
    /// What to look for.
    pub pieces: Vec<DiffPiece>,
    /// The line that the agent named, from 1.
    pub near: Option<u32>,
}

/// A change and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocatedDiff {
    /// The change.
    pub diff: FileDiff,
    /// Where it stands.
    pub place: DiffPlace,
    /// Whether the file was read after the call was done.
    pub is_done: bool,
}

/// Where a change stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DiffPlace {
    /// One of its texts is the whole file.
    Whole,
    /// The file does not exist.
    Gone,
    /// The file cannot be read: it is outside, no ordinary file, or too large.
    Unreadable,
    /// Where each piece begins; `None` where it was not found, or in several places.
    Lines(Vec<Option<PieceStart>>),
}

/// Where a piece begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PieceStart {
    /// The line, from 1.
    pub line: u32,
    /// Whether the text after the change was found there, not the one before.
    pub is_new: bool,
}

impl FileDiff {
    /// What to look for in the file to learn where the change stands. Nothing for a patch that tells its lines.
    pub fn pieces(&self) -> Vec<DiffPiece> {
        match &self.change {
            DiffChange::Texts { old, new } => {
                let old = old.clone().unwrap_or_default();
                vec![DiffPiece { old, new: Arc::clone(new) }]
            }
            DiffChange::Patch(text) => hunks(text),
        }
    }
}

/// The hunks of a patch whose heads tell no lines (`apply_patch`).
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
        // The sign goes, the line end stays.
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
    fn hunks_without_lines_have_both_texts() {
        let diff = patch("*** Update File: a.rs\n@@ fn a()\n keep\n-x\n+y\n@@\n-z\n*** End of File\n");
        let pieces = diff.pieces();
        let texts: Vec<(&str, &str)> = pieces.iter().map(|piece| (&*piece.old, &*piece.new)).collect();
        assert_eq!(texts, [("keep\nx\n", "keep\ny\n"), ("z\n", "")]);
    }

    #[test]
    fn a_patch_that_tells_its_lines_asks_for_nothing() {
        assert!(patch("--- a\n+++ b\n@@ -1 +1 @@\n-x\n+y\n").pieces().is_empty());
        assert!(patch("*** Add File: a.rs\n+x\n").pieces().is_empty());
    }
}
