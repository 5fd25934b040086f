//! The state of the writes that are held until the user applies them.

use std::path::Path;
use std::sync::Arc;

use crate::model::Body;
use crate::model::held::{HeldChange, HeldFile, HeldFiles};
use crate::model::snapshot::Part;

/// The held files of a session.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Held {
    pub files: Arc<HeldFiles>,
    pub review: Option<HeldReview>,
    /// The last turn in which held writes were applied.
    pub(in crate::core) applied_in: Option<u32>,
    /// The last turn in which the user was told that a command does not see them.
    pub(in crate::core) told_in: Option<u32>,
    /// Whether the user was told that the disk changed in spite of it.
    pub(in crate::core) has_warned: bool,
}

/// A review of held files.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct HeldReview {
    /// Unique among offers.
    pub number: u64,
    /// `None` while they are compared with the disk.
    pub changes: Option<Vec<HeldChange>>,
    /// Whether files changed while they were compared.
    pub is_stale: bool,
    /// The part that is being applied.
    pub part: Option<Part>,
}

impl Held {
    /// The shown change of a file, if it is still what is held.
    pub(in crate::core) fn change(&self, path: &Path) -> Option<&HeldChange> {
        let change = self.review.as_ref()?.changes.as_ref()?.iter().find(|change| change.path == path)?;
        (self.files.get(path) == Some(&change.held)).then_some(change)
    }
}

impl HeldFile {
    /// What is still held when the disk has this text; `None`: nothing.
    pub(in crate::core) fn on(disk: Option<Body>, text: Body) -> Option<Self> {
        (disk.as_ref() != Some(&text)).then_some(Self { base: disk, text })
    }
}
