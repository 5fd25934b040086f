//! The state of the snapshots of a session's folder.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use crate::core::RewindWay;
use crate::model::ItemId;
use crate::model::snapshot::{
    AcceptedPaths, Part, Preview, RestoreRecord, SnapshotId, SnapshotRecord, SnapshotTask, Span,
};

/// The snapshots of a session.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Undo {
    /// The turns with both snapshots, oldest first.
    pub turns: Vec<TurnChanges>,
    /// The restores that can be undone, oldest first.
    pub undone: Vec<RestoreRecord>,
    /// What the user has accepted in a review.
    pub accepted: AcceptedPaths,
    /// The snapshot before the running turn, or before one that was cut off.
    before: Option<Before>,
    /// The running turn, if there is to be a snapshot after it. A turn keeps its first number when prompts are added.
    pub(in crate::core) running: Option<u32>,
    /// The turn before which the folder is still being captured; what may change files waits for it.
    pub(in crate::core) pending: Option<u32>,
    /// The snapshot after the last turn is being captured; `true`: the user waits for it, to undo the turn.
    pub after: Option<bool>,
    /// Whether a snapshot was captured or requested since parlor started.
    pub(in crate::core) has_begun: bool,
    /// Why the folder has none.
    pub refused: Option<String>,
    /// Whether no more are captured until the session is opened again.
    pub(in crate::core) has_given_up: bool,
    /// What the last snapshot does not have, with the reason.
    pub left_out: Vec<(PathBuf, &'static str)>,
    /// The files that changed and that the agent did not report, relative to the folder, with the likely cause.
    pub unreported: BTreeMap<PathBuf, Arc<str>>,
    /// Those that no review has shown yet.
    pub unseen: BTreeSet<PathBuf>,
    /// What the user is shown before files are restored.
    pub offer: Option<Offer>,
    /// What is being restored.
    pub restoring: Option<Offer>,
    /// The rejected parts that are reverted when the turn ends, each with its review.
    pub queued: Vec<(Offer, Part)>,
}

/// The changes of a turn, which can be undone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnChanges {
    pub turn: u32,
    pub span: Span,
    /// Number of paths that were changed; `None`: there was no snapshot at the end of the turn, so what was done until the
    /// next prompt counts as well.
    pub files: Option<usize>,
    /// Whether the agent had begun to work before the first snapshot was complete.
    pub is_late: bool,
    /// Whether these are the held writes of turns until this one, which the user has reviewed.
    pub is_applied: bool,
    /// How many restores could be undone before the one that undid it; `None`: it is not undone.
    pub undone_at: Option<usize>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Before {
    turn: u32,
    id: SnapshotId,
    is_late: bool,
}

/// What can be restored.
#[derive(Debug, Clone, PartialEq)]
pub struct Offer {
    /// Unique among offers.
    pub number: u64,
    pub what: RestoreOf,
    /// `None` while it is being planned.
    pub preview: Option<Preview>,
    /// Afterwards, goes back to this prompt.
    pub then: Option<(ItemId, RewindWay)>,
    /// The part of a review that is being accepted or reverted.
    pub part: Option<Part>,
}

/// What a restore undoes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RestoreOf {
    /// The changes of these turns, the oldest first.
    Turns(Vec<u32>),
    /// The last undo.
    Undo,
    /// What was not accepted of the changes through this turn, part by part.
    Unaccepted { through: u32 },
}

impl Undo {
    /// Whether a part is queued to be reverted when the turn ends.
    pub fn is_queued(&self, part: &Part) -> bool {
        let mut queued = self.queued.iter().filter(|(_, queued)| queued.path == part.path);
        queued.any(|(_, queued)| {
            queued.hunks.is_empty() || part.hunks.first().is_some_and(|hunk| queued.hunks.contains(hunk))
        })
    }

    /// Applies what was recorded, or is recorded now.
    pub(in crate::core) fn apply(&mut self, record: &SnapshotRecord) {
        match record {
            SnapshotRecord::Before { turn, id, is_late } => {
                // parlor ended during the turn before, or its last snapshot failed.
                self.close(id, None);
                self.before = Some(Before { turn: *turn, id: id.clone(), is_late: *is_late });
            }
            SnapshotRecord::After { turn, id, files } => {
                if self.before.as_ref().is_some_and(|before| before.turn == *turn) {
                    self.close(id, Some(*files));
                }
            }
            SnapshotRecord::Applied { turn, before, after } => {
                let span = Span { before: before.clone(), after: after.clone() };
                let (turn, files) = (*turn, Some(1));
                self.turns.push(TurnChanges {
                    turn,
                    span,
                    files,
                    is_late: false,
                    is_applied: true,
                    undone_at: None,
                });
            }
            SnapshotRecord::Undone(restore) => {
                self.mark(restore, true);
                self.undone.push(restore.clone());
            }
            SnapshotRecord::Redone(restore) => {
                self.mark(restore, false);
                self.undone.pop();
            }
            SnapshotRecord::Accepted { path, what } => {
                self.accepted.insert(path.clone(), what.clone());
            }
        }
    }

    fn close(&mut self, after: &SnapshotId, files: Option<usize>) {
        let Some(Before { turn, id, is_late }) = self.before.take() else { return };
        if id != *after && files != Some(0) {
            let span = Span { before: id, after: after.clone() };
            self.turns.push(TurnChanges { turn, span, files, is_late, is_applied: false, undone_at: None });
        }
    }

    /// Marks the changes of a restore as undone, or as redone. A turn can have several changes.
    fn mark(&mut self, restore: &RestoreRecord, is_undone: bool) {
        let depth = self.undone.len();
        let of_it = |changes: &&mut TurnChanges| restore.turns.contains(&changes.turn);
        for changes in self.turns.iter_mut().filter(of_it).filter(|_| restore.is_whole || !is_undone) {
            match changes.undone_at {
                None if is_undone => changes.undone_at = Some(depth),
                Some(at) if !is_undone && at + 1 == depth => changes.undone_at = None,
                _ => {}
            }
        }
    }

    /// The turns whose changes can be undone, the newest first.
    pub fn undoable(&self) -> impl Iterator<Item = &TurnChanges> {
        self.turns.iter().rev().filter(|changes| changes.undone_at.is_none())
    }

    /// The task that plans a restore.
    pub(in crate::core) fn plan(&self, number: u64, what: &RestoreOf) -> SnapshotTask {
        let spans = match what {
            RestoreOf::Turns(turns) => {
                let is_chosen =
                    |changes: &&TurnChanges| turns.contains(&changes.turn) && changes.undone_at.is_none();
                let chosen = self.turns.iter().filter(is_chosen);
                chosen.map(|changes| changes.span.clone()).collect()
            }
            RestoreOf::Undo => self
                .undone
                .last()
                .map(|restore| Span { before: restore.before.clone(), after: restore.after.clone() })
                .into_iter()
                .collect(),
            RestoreOf::Unaccepted { through } => {
                let is_of_it = |changes: &&TurnChanges| {
                    changes.undone_at.is_none() && !changes.is_applied && changes.turn <= *through
                };
                let spans = self.turns.iter().filter(is_of_it);
                let spans = spans.map(|changes| (changes.turn, changes.span.clone())).collect();
                return SnapshotTask::Review { number, spans, accepted: self.accepted.clone() };
            }
        };
        SnapshotTask::Plan { number, spans }
    }

    /// Adds what an earlier part of the record says.
    pub(in crate::core) fn add_earlier(&mut self, mut earlier: Self) {
        earlier.turns.retain(|changes| self.turns.iter().all(|known| known.turn > changes.turn));
        earlier.turns.append(&mut self.turns);
        self.turns = earlier.turns;
        earlier.accepted.append(&mut self.accepted);
        self.accepted = earlier.accepted;
    }
}
