//! Why a snapshot could not be captured, read or restored.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Why snapshots of a folder are not captured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// The root of the file system.
    Root,
    /// The user's home folder.
    Home,
    /// A folder that contains the user's home folder.
    AboveHome,
    /// A folder that contains the data of parlor, or is part of it.
    OwnData,
    /// A network file system of this type. The caller can allow it.
    Network(String),
    NotAFolder,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => {
                f.write_str("it is the root of the file system. Open the folder of a project instead")
            }
            Self::Home => f.write_str("it is your home folder. Open the folder of a project instead"),
            Self::AboveHome => {
                f.write_str("it contains your home folder. Open the folder of a project instead")
            }
            Self::OwnData => f.write_str("the data of parlor is in it. Move that data to another folder"),
            Self::Network(name) => {
                write!(f, "it is on a network file system ({name}), where this may take long. Allow it first")
            }
            Self::NotAFolder => f.write_str("it is not a folder"),
        }
    }
}

/// What failed, why, and how to continue.
#[derive(Debug)]
pub enum SnapshotError {
    NoGit,
    Refused {
        folder: PathBuf,
        why: Refusal,
    },
    /// Another process uses the snapshots of this folder.
    Busy {
        process: Option<u32>,
    },
    TimedOut {
        seconds: u64,
    },
    /// The files to capture are larger than the store may become.
    TooLarge {
        bytes: u64,
        limit: u64,
    },
    /// A restore was interrupted, and `recover` has not been called.
    Interrupted,
    /// The snapshot, or a part of it, is not in the store.
    Missing(String),
    /// git failed.
    Git {
        doing: &'static str,
        message: String,
    },
    File {
        doing: &'static str,
        path: PathBuf,
        error: io::Error,
    },
}

impl SnapshotError {
    /// For `map_err`.
    pub(super) fn file(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |error| Self::File { doing, path: path.to_owned(), error }
    }
}

impl fmt::Display for SnapshotError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoGit => f.write_str("Snapshots need git, which was not found. Install it"),
            Self::Refused { folder, why } => {
                write!(f, "No snapshots of {} are captured: {why}", folder.display())
            }
            Self::Busy { process: Some(id) } => {
                write!(
                    f,
                    "Process {id} is using the snapshots of this folder. Try again when it has finished"
                )
            }
            Self::Busy { process: None } => f.write_str(
                "Another process is using the snapshots of this folder. Try again when it has finished",
            ),
            Self::TimedOut { seconds } => write!(
                f,
                "The snapshot took longer than {seconds} s and was canceled. Add large folders to .gitignore"
            ),
            Self::TooLarge { bytes, limit } => write!(
                f,
                "The files to capture have {} MiB, and the limit is {} MiB. Add large folders to .gitignore",
                bytes >> 20,
                limit >> 20
            ),
            Self::Interrupted => f.write_str("A restore was interrupted. Recover its files first"),
            Self::Missing(what) => {
                write!(
                    f,
                    "{what} is not in the store of snapshots. It may have been pruned; use a newer snapshot"
                )
            }
            Self::Git { doing, message } => write!(f, "Cannot {doing}: git failed: {message}"),
            Self::File { doing, path, error } => write!(f, "Cannot {doing} {}: {error}", path.display()),
        }
    }
}

impl std::error::Error for SnapshotError {}
