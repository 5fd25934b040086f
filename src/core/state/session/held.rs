//! The state of the writes that are held until the user applies them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::model::held::{HeldChange, HeldFiles};

/// The held files of a session.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Held {
    pub files: Arc<HeldFiles>,
    pub review: Option<HeldReview>,
    /// Whether a part is being written to the disk.
    pub is_applying: bool,
    /// What was applied in the running turn.
    pub(in crate::core) applied: BTreeSet<PathBuf>,
    /// The last turn with a notice that commands do not see held files.
    pub(in crate::core) noticed_in: Option<u32>,
    /// Whether there was a warning that files changed on the disk although writes are held.
    pub(in crate::core) has_warned: bool,
}

/// A review of held files.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct HeldReview {
    /// Unique among offers; another one when the changes are others.
    pub number: u64,
    /// In the order of their paths; `None` until they are compared with the disk.
    pub changes: Option<Vec<HeldChange>>,
    /// The number of the running comparison.
    pub comparing: Option<u64>,
    /// What has to be compared after that.
    pub stale: BTreeSet<PathBuf>,
    /// Whether the user has asked for it, and it is not shown yet.
    pub is_opening: bool,
    /// Whether the agent has changed what is shown.
    pub is_unasked: bool,
}

impl Held {
    /// The shown change of a file, if it is still what is held.
    pub(in crate::core) fn change(&self, path: &Path) -> Option<&HeldChange> {
        let change = self.review.as_ref()?.changes.as_ref()?.iter().find(|change| change.path == path)?;
        (self.files.get(path) == Some(&change.held)).then_some(change)
    }
}
