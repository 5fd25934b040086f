//! Runs the snapshot jobs of each folder in order, on a thread of its own.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use tokio::sync::mpsc::UnboundedSender;

use super::{Entry, Kind, Limits, Options, Recovered, SnapshotError, Snapshots, Span, Step, Why, capture};
use crate::host::fs::Files;
use crate::host::regular;
use crate::model::held::{HeldJob, HeldNews};
use crate::model::hunk::{Hunk, hunks};
use crate::model::snapshot::{
    Accepted, Action, Capture, CaptureError, CaptureFault, Moment, Plan, Preview, Restored, SnapshotId,
    SnapshotJob, SnapshotNews, SnapshotTask, UndoRules, shown_paths,
};
use crate::model::{Body, DiffChange, FileDiff, ServiceEvent, SessionKey};

/// Maximum size of a text that is shown before a restore.
const MAX_SHOWN_BYTES: u64 = 1 << 20;

/// Maximum size of all texts that are shown before a restore.
const MAX_ALL_SHOWN_BYTES: usize = 32 << 20;

/// Maximum number of paths that are named in a message.
const MAX_NAMED: usize = 8;

/// Runs the threads, which are started with the first job of their folder.
#[derive(Debug)]
pub struct SnapshotWorker {
    events: UnboundedSender<ServiceEvent>,
    /// Writes held files.
    files: Files,
    folders: HashMap<PathBuf, Sender<(SnapshotJob, Options)>>,
}

impl Options {
    fn of(rules: &UndoRules, data: PathBuf, home: Option<PathBuf>) -> Self {
        let limits = Limits {
            max_file_bytes: rules.max_file_mib.saturating_mul(1 << 20),
            max_time: Duration::from_secs(rules.max_seconds),
            max_store_bytes: rules.max_store_mib.saturating_mul(1 << 20),
        };
        Self { data, home, allows_network: rules.allows_network, limits }
    }
}

impl SnapshotWorker {
    /// Creates a worker that sends results to `events`.
    pub fn new(events: UnboundedSender<ServiceEvent>, files: Files) -> Self {
        Self { events, files, folders: HashMap::new() }
    }

    /// Queues a job. Never blocks. `data`: the data folder of parlor, if there is one.
    pub fn run(&mut self, job: SnapshotJob, data: Option<&Path>, home: Option<PathBuf>) {
        let Some(data) = data else {
            let error = SnapshotError::Refused("parlor has no data folder for snapshots".to_owned());
            let _ = self.events.send(failure(&job, &error));
            return;
        };
        let options = Options::of(&job.rules, data.to_owned(), home);
        let (events, files) = (self.events.clone(), self.files.clone());
        let jobs = self.folders.entry(job.folder.clone()).or_insert_with(|| {
            let (sender, receiver) = channel();
            let spawned = std::thread::Builder::new()
                .name("snapshots".to_owned())
                .spawn(move || work(&receiver, &events, &files));
            // Without a thread, the job that is sent now fails, and is reported below.
            drop(spawned);
            sender
        });
        if let Err(failed) = jobs.send((job, options)) {
            let error = SnapshotError::Failed("Cannot start a thread for snapshots".to_owned());
            let (job, _) = failed.0;
            let _ = self.events.send(failure(&job, &error));
        }
    }
}

fn work(jobs: &Receiver<(SnapshotJob, Options)>, events: &UnboundedSender<ServiceEvent>, files: &Files) {
    let mut folder = Folder::default();
    while let Ok((job, options)) = jobs.recv() {
        let opened = folder.open(&job.folder, options).map(|recovered| {
            if let Some(text) = recovered {
                let _ = events.send(ServiceEvent::Snapshot(job.session, SnapshotNews::Recovered(text)));
            }
        });
        let event = match (&job.task, opened) {
            // Without snapshots, it is written all the same.
            (SnapshotTask::Apply { job: held, has_span }, opened) => {
                folder.write_held(job.session, held, *has_span && opened.is_ok(), files)
            }
            (_, Err(error)) => failure(&job, &error),
            (_, Ok(())) => match folder.serve(&job) {
                Ok(news) => ServiceEvent::Snapshot(job.session, news),
                Err(error) => failure(&job, &error),
            },
        };
        if events.send(event).is_err() {
            return;
        }
    }
}

fn failure(job: &SnapshotJob, error: &SnapshotError) -> ServiceEvent {
    let text = format!("{error}.");
    let news = match &job.task {
        SnapshotTask::Capture { moment, .. } => {
            let kind = match error {
                SnapshotError::Refused(_) => CaptureFault::Refused,
                SnapshotError::TimedOut { .. } => CaptureFault::TimedOut,
                _ => CaptureFault::Failed,
            };
            SnapshotNews::Captured(*moment, Err(CaptureError { kind, text }))
        }
        SnapshotTask::Plan { number, .. } | SnapshotTask::Review { number, .. } => {
            SnapshotNews::Planned(*number, Err(text))
        }
        SnapshotTask::Restore(..) => SnapshotNews::Restored(Err(text)),
        SnapshotTask::Accept { part, .. } => SnapshotNews::Accepted(part.path.clone(), Err(text)),
        SnapshotTask::Apply { job: held, .. } => {
            let news = HeldNews::failed(held, text.trim_end_matches('.'));
            return ServiceEvent::Held(job.session, news, None);
        }
    };
    ServiceEvent::Snapshot(job.session, news)
}

/// The snapshots of a folder while parlor runs.
#[derive(Debug, Default)]
struct Folder {
    open: Option<(Options, Snapshots)>,
    /// The name of each session in the store. Those of two parlors differ.
    names: HashMap<SessionKey, String>,
    /// The snapshot before the running or last turn of a session.
    before: HashMap<SessionKey, SnapshotId>,
}

impl Folder {
    /// Opens the snapshots, again if the options have changed, and recovers an interrupted restore. Returns a
    /// message about the restore.
    fn open(&mut self, path: &Path, options: Options) -> Result<Option<String>, SnapshotError> {
        if self.open.as_ref().is_some_and(|(known, _)| *known == options) {
            return Ok(None);
        }
        let snapshots = Snapshots::open(path, &options)?;
        let recovered = snapshots.recover()?;
        self.open = Some((options, snapshots));
        Ok(recovered.map(|Recovered { is_complete, paths, left }| {
            let what = if is_complete { "was complete" } else { "was reverted" };
            let left = if left.is_empty() {
                String::new()
            } else {
                format!(
                    " Not touched, because they were changed by somebody else: {}.",
                    shown_paths(left.iter(), MAX_NAMED)
                )
            };
            format!("An interrupted restore {what}: {}.{left}", shown_paths(paths.iter(), MAX_NAMED))
        }))
    }

    /// The name of a session in the store.
    fn name(&mut self, key: SessionKey) -> String {
        let new_name = || format!("{}-{}-{:x}", std::process::id(), key.0, capture::unix_micros());
        self.names.entry(key).or_insert_with(new_name).clone()
    }

    fn write_held(&mut self, key: SessionKey, job: &HeldJob, has_span: bool, files: &Files) -> ServiceEvent {
        let name = self.name(key);
        let snapshots = self.open.as_ref().filter(|_| has_span).map(|(_, snapshots)| snapshots);
        let extra: Vec<PathBuf> = job.path().map(Path::to_owned).into_iter().collect();
        let capture = || snapshots?.capture(&name, &extra).ok();
        let before = capture();
        let news = files.serve_held(job.clone());
        let is_written = matches!(news, HeldNews::Applied { result: Ok(()), .. });
        let before = before.filter(|_| is_written);
        let span = before.and_then(|before| Some(Span { before: before.id, after: capture()?.id }));
        ServiceEvent::Held(key, news, span)
    }

    fn serve(&mut self, job: &SnapshotJob) -> Result<SnapshotNews, SnapshotError> {
        let name = &self.name(job.session);
        let Some((_, snapshots)) = &self.open else {
            return Err(SnapshotError::Failed("The snapshots are not open".to_owned()));
        };
        let key = job.session;
        match &job.task {
            SnapshotTask::Capture { moment, extra } => {
                let captured = snapshots.capture(name, extra)?;
                let changed = match (moment, self.before.get(&key)) {
                    (Moment::After(_), Some(before)) => {
                        let changes = snapshots.changes(before, &captured.id)?;
                        changes.into_iter().map(|change| change.path).collect()
                    }
                    _ => Vec::new(),
                };
                if let Moment::Before(_) = moment {
                    self.before.insert(key, captured.id.clone());
                }
                let left_out =
                    captured.left_out.into_iter().map(|left| (left.path, left.why.text())).collect();
                let (id, pruned) = (captured.id, captured.pruned);
                Ok(SnapshotNews::Captured(
                    *moment,
                    Ok(Capture { id, root: snapshots.folder.clone(), changed, left_out, pruned }),
                ))
            }
            SnapshotTask::Plan { number, spans } => {
                let mut plan = snapshots.plan(spans)?;
                plan.steps.iter_mut().try_for_each(|step| snapshots.merge(step))?;
                let diffs = diffs(snapshots, &plan);
                Ok(SnapshotNews::Planned(*number, Ok(Preview { plan, diffs, hunks: Vec::new() })))
            }
            SnapshotTask::Review { number, spans, accepted } => {
                let plan = snapshots.review(spans, accepted)?;
                let reverts = diffs(snapshots, &plan);
                let changes = plan.steps.iter().zip(reverts).map(|(step, revert)| change(step, revert?));
                let diffs: Vec<Option<FileDiff>> = changes.collect();
                let hunks = plan.steps.iter().zip(&diffs).map(|(step, diff)| hunks_of(step, diff.as_ref()));
                let hunks = hunks.collect();
                Ok(SnapshotNews::Planned(*number, Ok(Preview { plan, diffs, hunks })))
            }
            SnapshotTask::Accept { plan, part, turn } => {
                let base = snapshots.accept(name, plan, part)?;
                Ok(SnapshotNews::Accepted(part.path.clone(), Ok(Accepted { turn: *turn, base })))
            }
            SnapshotTask::Apply { .. } => Err(SnapshotError::Failed("`write_held` serves it".to_owned())),
            SnapshotTask::Restore(plan, parts) => {
                let plan = snapshots.limited_to(plan, parts)?;
                let chosen: Vec<PathBuf> = parts.iter().map(|part| part.path.clone()).collect();
                let restored = snapshots.restore(name, &plan, &chosen)?;
                let after = snapshots.capture(name, &chosen)?;
                let span = Span { before: restored.before.id, after: after.id };
                let (changed, refused) = (restored.changed, restored.refused);
                Ok(SnapshotNews::Restored(Ok(Restored { span, changed, refused })))
            }
        }
    }
}

impl Why {
    fn text(self) -> &'static str {
        match self {
            Self::TooLarge => "too large",
            Self::NestedRepository => "another repository",
            Self::Unreadable => "not readable",
            Self::Special => "not a file, or a name that git reserves",
            Self::Outside => "outside of the folder",
            Self::Ignored => "ignored",
            Self::Empty => "an empty folder",
        }
    }
}

/// The change of each step, up to a total size.
fn diffs(snapshots: &Snapshots, plan: &Plan) -> Vec<Option<FileDiff>> {
    let mut left = MAX_ALL_SHOWN_BYTES;
    let mut diff = |step: &Step| {
        let changes =
            matches!(step.action, Action::Write | Action::Delete | Action::Conflict | Action::Merge);
        let change = if changes && left > 0 { diff(snapshots, step)? } else { return None };
        if let DiffChange::Texts { old, new } = &change.change {
            left = left.saturating_sub(old.as_ref().map_or(0, Body::len) + new.len());
        }
        Some(change)
    };
    plan.steps.iter().map(&mut diff).collect()
}

/// The change that a revert would undo.
fn change(step: &Step, revert: FileDiff) -> Option<FileDiff> {
    let DiffChange::Texts { old: now, new: before } = revert.change else { return None };
    let old = step.to.as_ref().map(|_| before);
    Some(FileDiff { path: revert.path, change: DiffChange::Texts { old, new: now.unwrap_or_default() } })
}

/// The hunks of a changed text; of a new or deleted file, or one whose kind changed, there are none.
fn hunks_of(step: &Step, diff: Option<&FileDiff>) -> Vec<Hunk> {
    match (diff.map(|diff| &diff.change), &step.to, &step.disk) {
        (Some(DiffChange::Texts { old: Some(old), new }), Some(to), Some(disk))
            if to.kind == disk.kind && to.kind != Kind::Link =>
        {
            hunks(old, new)
        }
        _ => Vec::new(),
    }
}

/// From what is on the disk to what will be.
fn diff(snapshots: &Snapshots, step: &Step) -> Option<FileDiff> {
    let stored = |entry: &Entry| String::from_utf8(snapshots.read(entry, MAX_SHOWN_BYTES).ok()?).ok();
    let old = match &step.disk {
        None => None,
        // What somebody else wrote is not in the store yet.
        Some(entry) if matches!(step.action, Action::Conflict | Action::Merge) => Some(match stored(entry) {
            Some(text) => text,
            None => regular::read_text(&snapshots.folder.join(&step.path), MAX_SHOWN_BYTES)?,
        }),
        Some(entry) => Some(stored(entry)?),
    };
    let new = match &step.to {
        Some(entry) => stored(entry)?,
        None => String::new(),
    };
    let change = DiffChange::Texts { old: old.map(Body::from), new: Body::from(new) };
    Some(FileDiff { path: snapshots.folder.join(&step.path), change })
}
