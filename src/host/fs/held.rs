//! Holds writes back, and applies them when the user has seen them.
//!
//! Only files inside the roots that are not protected are held: the user is asked about others in any case. A file is
//! applied only if the disk still has what was compared, and its path has no link.

use std::path::{Path, PathBuf};

use super::fs_error::FsError;
use super::jobs::Stop;
use super::lines::{Window, read_window};
use super::rooted_path::{self, RootedPath};
use super::seen::Seen;
use super::{Files, change, read, write};
use crate::model::held::{Fit, HeldChange, HeldFile, HeldJob, HeldNews, HeldTask, Holding, MAX_HELD_BYTES};
use crate::model::hunk::{hunks, merge};
use crate::model::{Body, FileJob, ServiceEvent, WriteChange};

impl Files {
    /// Reads lines of a held file.
    pub(super) fn read_held(
        &self,
        job: &FileJob,
        real: &Path,
        text: &Body,
        window: Window,
    ) -> Result<String, FsError> {
        self.remember(job.conn, real, Seen::content(text.peek().as_bytes()));
        let lines = read_window(text.peek().as_bytes(), window, usize::MAX)?.unwrap_or_default();
        String::from_utf8(lines)
            .map_err(|error| FsError::NotText { at_bytes: error.utf8_error().valid_up_to() })
    }

    /// Holds a write: nothing is written. The change is from what the agent reads now.
    pub(super) fn hold(
        &self,
        job: &FileJob,
        rooted: &RootedPath,
        content: &str,
    ) -> Result<(WriteChange, HeldFile), FsError> {
        let Holding { files, .. } = &job.holding;
        let held = files.get(rooted.real());
        let why = match () {
            () if content.len() as u64 > MAX_HELD_BYTES => Some("it is larger than 1 MiB"),
            () if rooted.real().to_str().is_none() => Some("its name is not UTF-8"),
            () => None,
        };
        if let Some(why) = why {
            return Err(FsError::Unholdable(why));
        }
        let base = match held {
            Some(held) => held.base.clone(),
            None => disk_text(rooted)?.map(Body::from),
        };
        let now = held.map(|held| &held.text).or(base.as_ref()).map(Body::peek);
        let current = now.as_ref().map_or(Seen::Missing, |now| Seen::content(now.as_bytes()));
        match self.seen(job.conn, rooted.real()) {
            Some(Seen::Missing) if current != Seen::Missing => return Err(FsError::Appeared),
            Some(seen) if current != Seen::Missing && seen != current => return Err(FsError::Changed),
            _ => {}
        }
        let change = change::change(rooted.shown(), now.as_deref(), content);
        self.remember(job.conn, rooted.real(), Seen::content(content.as_bytes()));
        Ok((change, HeldFile { base, text: content.into() }))
    }

    /// The work of a job, for a thread that may block.
    pub fn held_work(&self, job: HeldJob) -> impl FnOnce() -> Option<ServiceEvent> + Send + use<> {
        let files = self.clone();
        move || Some(ServiceEvent::Held(job.session, files.serve_held(job), None))
    }

    /// Compares or applies held files. Blocks on the disk.
    pub fn serve_held(&self, HeldJob { roots, task, .. }: HeldJob) -> HeldNews {
        match task {
            HeldTask::Compare { number, files } => {
                let changes = files.iter().map(|(path, held)| compare(path, held, &roots)).collect();
                HeldNews::Compared(number, changes)
            }
            HeldTask::Apply { change, text } => {
                let result = self.apply(&change, &roots, &text);
                let result = result.map_err(|error| reason(&error, &change.path));
                HeldNews::Applied { change, text, result }
            }
        }
    }

    fn apply(&self, change: &HeldChange, roots: &[PathBuf], text: &Body) -> Result<(), FsError> {
        let (rooted, stop) = (located(&change.path, roots)?, Stop::default());
        let _writer = self.jobs.write(&change.path, &stop)?;
        let seen = change.disk.as_ref().map_or(Seen::Missing, |disk| Seen::content(disk.peek().as_bytes()));
        write::write(&rooted, (&text.peek(), false), Some(seen), &stop).map(drop)
    }
}

/// The path of a held file, if it is still what it was.
fn located(path: &Path, roots: &[PathBuf]) -> Result<RootedPath, FsError> {
    let rooted = rooted_path::locate(path, roots)?;
    if rooted.real() == path && rooted.root().is_some() { Ok(rooted) } else { Err(FsError::Escaped) }
}

/// The text of a file; `None`: there is no file.
fn disk_text(rooted: &RootedPath) -> Result<Option<String>, FsError> {
    let (file, meta) = match read::open(rooted) {
        Err(FsError::Missing) => return Ok(None),
        other => other?,
    };
    if meta.len() > MAX_HELD_BYTES {
        return Err(FsError::Unholdable("it is larger than 1 MiB"));
    }
    let bytes = read::content(&file)?.unwrap_or_default();
    String::from_utf8(bytes).map(Some).map_err(|_| FsError::Unholdable("it is not UTF-8 text"))
}

fn compare(path: &Path, held: &HeldFile, roots: &[PathBuf]) -> HeldChange {
    let same = |disk, text, hunks, fit| HeldChange {
        path: path.to_owned(),
        held: held.clone(),
        disk,
        text,
        hunks,
        fit,
    };
    let disk = match located(path, roots).and_then(|rooted| disk_text(&rooted)) {
        Ok(disk) => disk,
        Err(error) => {
            let why = Fit::Refused(reason(&error, path));
            return same(held.base.clone(), held.text.clone(), Vec::new(), why);
        }
    };
    let (base, text) = (held.base.as_ref().map(Body::peek), held.text.peek());
    let merged = || merge(base.as_deref()?, disk.as_deref()?, &text);
    let (text, fit) = if disk.as_deref() == base.as_deref() {
        (held.text.clone(), Fit::Clean)
    } else {
        merged().map_or_else(|| (held.text.clone(), Fit::Conflict), |text| (text.into(), Fit::Merged))
    };
    let hunks = disk.as_deref().map(|disk| hunks(disk, &text.peek())).unwrap_or_default();
    same(disk.map(Body::from), text, hunks, fit)
}

/// An error for the user.
fn reason(error: &FsError, path: &Path) -> String {
    match error {
        FsError::Changed | FsError::Appeared => "it was changed meanwhile".to_owned(),
        FsError::Escaped => "its path has a link now, or the file has other names (hard links)".to_owned(),
        FsError::Unholdable(why) => (*why).to_owned(),
        error => error.answer(path).message.trim_end_matches('.').to_owned(),
    }
}
