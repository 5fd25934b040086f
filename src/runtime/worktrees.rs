//! Carries out jobs with worktrees.

use std::path::PathBuf;

use super::effects::EffectRunner;
use crate::model::{ServiceEvent, SessionKey, WorktreeJob, WorktreeNews};

impl EffectRunner {
    pub(super) fn run_worktree_job(&self, session: SessionKey, folder: PathBuf, job: WorktreeJob) {
        let Some(worktrees) = self.worktrees.clone() else { return };
        if let WorktreeJob::Lock(folders) = &job {
            worktrees.want_locks(folders.clone());
        }
        self.work(move || {
            let news = match job {
                WorktreeJob::Make(name) => worktrees.make(&folder, name.as_deref()).map(WorktreeNews::Made),
                WorktreeJob::List => worktrees.list(&folder).map(WorktreeNews::Listed),
                WorktreeJob::Remove(name) => worktrees.remove(&folder, &name).map(WorktreeNews::Done),
                WorktreeJob::Merge(name) => worktrees.merge(&folder, &name).map(WorktreeNews::Done),
                WorktreeJob::Lock(_) => {
                    worktrees.apply_locks();
                    return None;
                }
            };
            Some(ServiceEvent::Worktree(session, Box::new(news)))
        });
    }
}
