//! Folders in which an agent works without being asked for each file.

use std::ops::Deref;
use std::path::{Path, PathBuf};

/// A root that the user gave. Made only where the user's own words are read: configuration, command line, answers in
/// dialogs, and sessions that were recorded here; never of what an agent, a server or an imported file says
/// (`tests/tidy.rs` checks the places).
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct UserRoot(PathBuf);

impl UserRoot {
    /// A folder that the user named, absolute.
    pub fn given(folder: impl Into<PathBuf>) -> Self {
        Self(folder.into())
    }
}

impl Deref for UserRoot {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

impl AsRef<Path> for UserRoot {
    fn as_ref(&self) -> &Path {
        &self.0
    }
}
