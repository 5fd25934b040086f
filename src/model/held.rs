//! Writes of an agent that are held: they are not on the disk until the user applies them, and the agent reads them back.
//!
//! `host::fs` holds and applies them, `core::lifecycle::held` decides, `store` saves them with their session.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::hunk::Hunk;
use super::{Body, SessionKey};

/// Maximum size of a held file, and of what is on the disk in its place, in bytes.
pub const MAX_HELD_BYTES: u64 = 1 << 20;

/// Maximum size of all held files of a session, in bytes.
pub const MAX_ALL_HELD_BYTES: usize = 32 << 20;

/// Maximum number of held files of a session.
pub const MAX_HELD_FILES: usize = 500;

/// A text file as the agent wrote it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldFile {
    /// What was on the disk when it was first held, or when the user last decided about it; `None`: there was no file.
    pub base: Option<Body>,
    pub text: Body,
}

impl HeldFile {
    /// Size of both texts, in bytes.
    pub fn size(&self) -> usize {
        self.base.as_ref().map_or(0, Body::len) + self.text.len()
    }
}

/// The held files of a session, by canonical path.
pub type HeldFiles = BTreeMap<PathBuf, HeldFile>;

/// What a file request needs to know about held files.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Holding {
    pub files: Arc<HeldFiles>,
    /// Whether new writes are held. Those of files that are held are in any case.
    pub is_on: bool,
}

/// Something to do with the held files of a session.
#[derive(Debug, Clone, PartialEq)]
pub struct HeldJob {
    pub session: SessionKey,
    pub roots: Vec<PathBuf>,
    pub task: HeldTask,
}

#[derive(Debug, Clone, PartialEq)]
pub enum HeldTask {
    /// Reported as [`HeldNews::Compared`].
    Compare {
        /// Returned with the changes.
        number: u64,
        files: HeldFiles,
    },
    /// Writes a file, unless the disk has changed since it was compared. Reported as [`HeldNews::Applied`].
    Apply {
        change: Box<HeldChange>,
        /// What is written.
        text: Body,
    },
}

impl HeldJob {
    /// The file that is applied.
    pub fn path(&self) -> Option<&Path> {
        match &self.task {
            HeldTask::Apply { change, .. } => Some(&change.path),
            HeldTask::Compare { .. } => None,
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub enum HeldNews {
    Compared(u64, Vec<HeldChange>),
    Applied { change: Box<HeldChange>, text: Body, result: Result<(), String> },
}

impl HeldNews {
    /// The result of a job that was not done.
    pub fn failed(job: &HeldJob, why: &str) -> Self {
        match job.task.clone() {
            HeldTask::Compare { number, .. } => Self::Compared(number, Vec::new()),
            HeldTask::Apply { change, text } => Self::Applied { change, text, result: Err(why.to_owned()) },
        }
    }
}

/// A held file, compared with the disk.
#[derive(Debug, Clone, PartialEq)]
pub struct HeldChange {
    pub path: PathBuf,
    /// As it was compared.
    pub held: HeldFile,
    /// What is on the disk; `None`: there is no file.
    pub disk: Option<Body>,
    /// What is written when all of it is applied.
    pub text: Body,
    /// Between both; empty for a new file.
    pub hunks: Vec<Hunk>,
    pub fit: Fit,
}

/// How a held file fits what is on the disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fit {
    /// The disk has what the agent wrote on.
    Clean,
    /// The disk has changed since, in other places: its changes are part of the text.
    Merged,
    /// The disk has changed since, in the same places: applying all of it replaces those changes.
    Conflict,
    /// It cannot be applied, with the reason.
    Refused(String),
}
