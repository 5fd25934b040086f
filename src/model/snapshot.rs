//! Snapshots of a session's folder: jobs and their results.
//!
//! `host::snapshots` captures and restores; `core::lifecycle::undo` decides when.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::held::HeldJob;
use super::hunk::Hunk;
use super::{FileDiff, SessionKey, hex};
use crate::escape::visible;

/// The id of a git object: 40 or 64 hexadecimal digits. Whether it exists is found when it is used.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ObjectId(String);

impl ObjectId {
    /// `None`: not an id.
    pub fn parse(text: &str) -> Option<Self> {
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        (matches!(text.len(), 40 | 64) && text.bytes().all(is_digit)).then(|| Self(text.to_owned()))
    }

    pub fn of_digest(bytes: &[u8]) -> Self {
        Self(hex(bytes))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for ObjectId {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::parse(&text).ok_or("not the id of an object")
    }
}

impl From<ObjectId> for String {
    fn from(id: ObjectId) -> Self {
        id.0
    }
}

/// The tree of a snapshot. Equal snapshots of a folder have equal ids.
pub type SnapshotId = ObjectId;

/// What a path is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Kind {
    File,
    /// A file with an executable bit.
    Program,
    /// A symbolic link; its content is the target.
    Link,
}

/// A file or link with its content.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Entry {
    pub kind: Kind,
    pub id: ObjectId,
}

/// What a restore does with a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// The file is already as it should be.
    Nothing,
    Write,
    Delete,
    /// It was changed by somebody else since: a restore replaces that.
    Conflict,
    /// The same, but both changes fit together: a restore keeps the other one.
    Merge,
    /// It cannot be restored, with the reason.
    Refused(String),
}

/// A path of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Relative to the folder.
    pub path: PathBuf,
    pub from: Option<Entry>,
    pub to: Option<Entry>,
    /// What it is on the disk; `None` also if it was refused.
    pub disk: Option<Entry>,
    pub action: Action,
}

/// What a restore would do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    pub from: SnapshotId,
    pub to: SnapshotId,
    /// In the order of their names; only paths that differ between the snapshots.
    pub steps: Vec<Step>,
}

/// The snapshots before and after some changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    pub before: SnapshotId,
    pub after: SnapshotId,
}

/// When a snapshot of a session is captured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// While the prompt is written, so that the next one takes less time.
    Early,
    /// Before this turn.
    Before(u32),
    /// After this turn.
    After(u32),
}

/// The section `[undo]` of the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UndoRules {
    pub is_on: bool,
    /// Also in folders on network file systems.
    pub allows_network: bool,
    /// Folders without snapshots, with all folders in them.
    pub off_in: Vec<PathBuf>,
    pub max_file_mib: u64,
    pub max_store_mib: u64,
    pub max_seconds: u64,
}

impl Default for UndoRules {
    /// Off: the configuration turns it on.
    fn default() -> Self {
        Self {
            is_on: false,
            allows_network: false,
            off_in: Vec::new(),
            max_file_mib: 10,
            max_store_mib: 2048,
            max_seconds: 30,
        }
    }
}

/// Something to do with the snapshots of a session's folder. Those of a folder are done in order.
#[derive(Debug, Clone, PartialEq)]
pub struct SnapshotJob {
    pub session: SessionKey,
    pub folder: PathBuf,
    pub rules: UndoRules,
    pub task: SnapshotTask,
}

#[derive(Debug, Clone, PartialEq)]
pub enum SnapshotTask {
    /// Reported as [`SnapshotNews::Captured`].
    Capture {
        moment: Moment,
        /// Files to capture although they are ignored: those that the agent is known to have changed.
        extra: Vec<PathBuf>,
    },
    /// Plans to undo what happened in these spans, the oldest first; what happened between them stays. Reported as
    /// [`SnapshotNews::Planned`].
    Plan {
        /// Returned with the plan.
        number: u64,
        spans: Vec<Span>,
    },
    /// Plans to revert the changes of these turns, oldest first, that were not accepted. Reported as
    /// [`SnapshotNews::Planned`].
    Review { number: u64, spans: Vec<(u32, Span)>, accepted: AcceptedPaths },
    /// Writes a held file. Reported as [`super::ServiceEvent::Held`].
    Apply {
        job: Box<HeldJob>,
        /// Whether the folder is captured before and after it.
        has_span: bool,
    },
    /// Restores these parts of a plan. Reported as [`SnapshotNews::Restored`].
    Restore(Box<Plan>, Vec<Part>),
    /// Accepts a part of a plan. Reported as [`SnapshotNews::Accepted`].
    Accept {
        plan: Box<Plan>,
        part: Part,
        /// [`Accepted::turn`].
        turn: u32,
    },
}

/// A path of a plan, or some hunks of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    pub path: PathBuf,
    /// In order; empty: the whole path.
    pub hunks: Vec<Hunk>,
}

impl From<PathBuf> for Part {
    fn from(path: PathBuf) -> Self {
        Self { path, hunks: Vec::new() }
    }
}

/// What the user has accepted of the changes of a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Accepted {
    /// The last turn before it was accepted.
    pub turn: u32,
    /// A snapshot of the path with only the accepted hunks; `None`: all changes were accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<SnapshotId>,
}

pub type AcceptedPaths = BTreeMap<PathBuf, Accepted>;

#[derive(Debug, Clone, PartialEq)]
pub enum SnapshotNews {
    Captured(Moment, Result<Capture, CaptureError>),
    Planned(u64, Result<Preview, String>),
    Restored(Result<Restored, String>),
    /// What was accepted of a path.
    Accepted(PathBuf, Result<Accepted, String>),
    /// What became of a restore that was interrupted when parlor was killed, as a sentence.
    Recovered(String),
}

/// A snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capture {
    pub id: SnapshotId,
    /// The folder, with all links resolved.
    pub root: PathBuf,
    /// The paths that differ from the snapshot before the turn, relative to the folder; empty before a turn.
    pub changed: Vec<PathBuf>,
    /// What exists but was not captured, with the reason. Ignored files are not listed.
    pub left_out: Vec<(PathBuf, &'static str)>,
    /// Number of the oldest snapshots that were deleted because the store reached its limit.
    pub pruned: usize,
}

/// Why there is no snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaptureError {
    pub kind: CaptureFault,
    pub text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CaptureFault {
    /// Snapshots of this folder are not captured at all.
    Refused,
    /// It takes too long, and will the next time.
    TimedOut,
    Failed,
}

/// A plan, with the change of each path for the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Preview {
    pub plan: Plan,
    /// What a restore would change, for each step of the plan, or for a review what it would revert; `None`: there is
    /// nothing to show, because it is not text or too large.
    pub diffs: Vec<Option<FileDiff>>,
    /// For a review, the hunks of each step that can be accepted and reverted on their own.
    pub hunks: Vec<Vec<Hunk>>,
}

/// What a restore did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restored {
    /// From the state before it to the state after it.
    pub span: Span,
    /// The paths that were written or deleted.
    pub changed: Vec<PathBuf>,
    /// The chosen paths that are unchanged, with the reason; not those that needed no change.
    pub refused: Vec<(PathBuf, String)>,
}

/// What the record of a session says about snapshots of its folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SnapshotRecord {
    Before {
        turn: u32,
        id: SnapshotId,
        /// Whether the agent had begun to work before it was complete.
        #[serde(default, skip_serializing_if = "super::record::is_false")]
        is_late: bool,
    },
    After {
        turn: u32,
        id: SnapshotId,
        /// Number of paths that the turn changed.
        files: usize,
    },
    /// The user applied held writes after the turn.
    Applied { turn: u32, before: SnapshotId, after: SnapshotId },
    /// The user undid the changes of turns.
    Undone(RestoreRecord),
    /// The user reverted an undo.
    Redone(RestoreRecord),
    /// The user accepted changes of a path in a review.
    Accepted {
        path: PathBuf,
        #[serde(flatten)]
        what: Accepted,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestoreRecord {
    pub turns: Vec<u32>,
    pub before: SnapshotId,
    pub after: SnapshotId,
    pub files: usize,
    /// Whether nothing was left out.
    pub is_whole: bool,
}

/// A path for a message, with control characters escaped.
pub fn shown_path(path: &Path) -> String {
    visible(&path.to_string_lossy()).into_owned()
}

/// The first paths of a list, for a message.
pub fn shown_paths<'a>(paths: impl ExactSizeIterator<Item = &'a PathBuf>, max: usize) -> String {
    let more = paths.len().saturating_sub(max);
    let named = paths.take(max).map(|path| shown_path(path));
    named.chain((more > 0).then(|| format!("{more} more"))).collect::<Vec<_>>().join(", ")
}
