//! The state of a file that an agent last saw.
//!
//! Files up to the read limit are compared by content, so that a changed timestamp does not matter and a change within
//! the resolution of timestamps is detected. Larger files are compared by size, time and inode.

use std::hash::{DefaultHasher, Hasher};

use cap_std::fs::Metadata;

use crate::host::os::files;

/// The state of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Seen {
    /// The file did not exist.
    Missing,
    Content(u64),
    /// The file was too large to hash; its metadata.
    Metadata(files::FileStamp),
}

impl Seen {
    pub(super) fn content(bytes: &[u8]) -> Self {
        let mut hasher = DefaultHasher::new();
        hasher.write(bytes);
        Self::Content(hasher.finish())
    }

    pub(super) fn metadata(meta: &Metadata) -> Self {
        Self::Metadata(files::stamp(meta))
    }
}
