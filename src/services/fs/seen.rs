//! What an agent last saw of a file.
//!
//! Duty: says whether a file is still what the agent knows. A file that was read whole is compared by its
//! content, so that a mere touch refuses nothing and a change within one tick of the clock is noticed;
//! only one that is too large for that is compared by length, time and inode.

use std::hash::{DefaultHasher, Hasher};

use cap_std::fs::Metadata;

use crate::services::unix;

/// What an agent knows of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Seen {
    /// It did not exist.
    Missing,
    Content(u64),
    /// It was too large to remember its content; its outside was this.
    Outside(unix::FileStamp),
}

impl Seen {
    /// By content.
    pub(super) fn content(bytes: &[u8]) -> Self {
        let mut hasher = DefaultHasher::new();
        hasher.write(bytes);
        Self::Content(hasher.finish())
    }

    /// By length, time and inode.
    pub(super) fn outside(meta: &Metadata) -> Self {
        Self::Outside(unix::stamp(meta))
    }
}
