//! Folders in which an agent can work without a confirmation for each file.

use std::ops::Deref;
use std::path::{Path, PathBuf};

/// A root that the user chose. Constructed only where the user's own input is read: configuration, command
/// line, dialogs, and sessions that were recorded here; never from data of an agent, a server or an imported
/// file (`tests/tidy.rs` checks the places).
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct UserRoot(PathBuf);

impl UserRoot {
    /// An absolute path that the user entered.
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
