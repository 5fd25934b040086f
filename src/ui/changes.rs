//! The changes of a session as the screen shows them: its files, their diffs, and how these are laid out.
//!
//! `core::state::changes` collects the changes; the side panel and `ui::dialogs::ChangesDialog` show them.
//! Invariant: a frame never blocks on comparing texts, so that the counts of some files appear in later frames.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use crate::core::State;
use crate::core::state::changes::{ChangedFile, ChangesKey, changed_files, changes_key};
use crate::model::hunk::Hunk;
use crate::model::{DiffChange, SessionKey};
use crate::ui::screen::DiffLayout;
use crate::ui::text::Line;

use super::cells::diff_head;
use super::diff::cache::{self, Diffs, Placed, Shown};
use super::diff::{Diff, FileStatus, Pages, counts_of, unchanged_lines};
use super::frame_context::FrameContext;
use super::highlight;
use super::render_context::RenderContext;
use super::theme::Role;

/// Total size of texts that are compared in one frame, in bytes.
const COUNTED_BYTES: usize = 1 << 18;

/// State of the page between frames.
#[derive(Default)]
pub(super) struct ChangesView {
    /// The undo that it shows.
    pub number: u64,
    revisions: (Option<SessionKey>, Vec<(SessionKey, u64)>),
    key: ChangesKey,
    pub files: Vec<ChangedFile>,
    pub diffs: HashMap<PathBuf, Diffs>,
    pub laid: Option<Laid>,
    shows_context: bool,
    pub shown: Option<PathBuf>,
    pub jump: i32,
    /// The hunk that the dialog has selected, and whether it is still to be scrolled to.
    pub selected: Option<(Hunk, bool)>,
    /// The session and the state's counter of changes at the last call of [`Self::follow`].
    followed: Option<(SessionKey, u64)>,
}

/// The line layout of the shown diffs.
pub(super) struct Laid {
    of: Diffs,
    setting: DiffLayout,
    cols: u16,
    wraps: bool,
    theme: String,
    epoch: u32,
    pages: Vec<Pages>,
    /// The first line of the hunk that was jumped to.
    pub at: Option<usize>,
}

impl ChangesView {
    /// Selects a hunk, to which the next frame scrolls if another one was selected.
    pub fn select(&mut self, hunk: Option<&Hunk>) {
        if self.selected.as_ref().map(|(hunk, _)| hunk) != hunk {
            self.selected = hunk.map(|hunk| (hunk.clone(), true));
        }
    }

    /// The line of the selected hunk, and whether to scroll to it.
    pub(super) fn selected_line(&mut self, laid: &Laid) -> Option<(usize, bool)> {
        let (hunk, is_new) = self.selected.as_mut()?;
        Some((laid.line_of(hunk)?, std::mem::take(is_new)))
    }

    /// Jumps by a number of hunks in the next frame (negative values go back).
    pub fn jump(&mut self, steps: i32) {
        self.jump = self.jump.saturating_add(steps);
    }

    /// Updates the files and their counts without opening the page. Text of the agent changes no file, so the calls are
    /// read only after other events.
    pub fn follow(&mut self, state: &State, root: SessionKey) {
        let now = (root, state.chrome_changes);
        if self.followed != Some(now) {
            self.followed = Some(now);
            self.update(state, root, false);
        }
        let files = std::mem::take(&mut self.files);
        let all: Vec<&ChangedFile> = files.iter().collect();
        count(self, &all);
        self.files = files;
    }

    /// The files with their added and removed lines, which are `None` until they are counted.
    pub fn files(&self) -> impl ExactSizeIterator<Item = (&Path, Option<(usize, usize)>)> {
        self.files.iter().map(|file| (file.path.as_path(), counts(self, file)))
    }

    /// Updates the list of files after changes of the session.
    pub fn update(&mut self, state: &State, root: SessionKey, shows_context: bool) {
        if self.shows_context != shows_context {
            self.shows_context = shows_context;
            self.diffs.clear();
        }
        let of_all = state.sessions.values().map(|session| (session.key, session.transcript.revision()));
        let revisions = (Some(root), of_all.collect());
        if revisions == self.revisions {
            return;
        }
        self.revisions = revisions;
        let key = changes_key(state, root);
        if key == self.key {
            return;
        }
        self.key = key;
        let files = changed_files(state, root);
        let is_same = |path: &Path| {
            let of = |files: &[ChangedFile]| files.iter().position(|file| file.path == path);
            match (of(&self.files), of(&files)) {
                (Some(old), Some(new)) => self.files.get(old) == files.get(new),
                _ => false,
            }
        };
        let outdated: Vec<PathBuf> = self.diffs.keys().filter(|path| !is_same(path)).cloned().collect();
        for path in outdated {
            self.diffs.remove(&path);
        }
        self.files = files;
    }

    /// The diffs of a file; `None` while they are computed. With `at_once`, small changes are compared
    /// immediately.
    pub fn compare(&mut self, file: &ChangedFile, at_once: bool) -> Option<Diffs> {
        if let Some(known) = self.diffs.get(&file.path) {
            return Some(Diffs::clone(known));
        }
        let shown = Shown { is_whole: self.shows_context, gaps: Vec::new() };
        let changes: Vec<Placed<'_>> =
            file.parts.iter().map(|part| (&part.diff, part.position.as_ref())).collect();
        let diffs =
            if at_once { cache::diffs(&changes, &shown) } else { cache::diffs_later(&changes, &shown) }?;
        self.diffs.insert(file.path.clone(), Diffs::clone(&diffs));
        Some(diffs)
    }

    /// The diffs laid out for a width; reuses the previous layout if it is still valid.
    pub fn lay(&mut self, diffs: &Diffs, render: &RenderContext<'_>, cols: u16) -> Laid {
        let setting = render.diff_layout;
        let epoch = highlight::epoch();
        let known = self
            .laid
            .take()
            .filter(|laid| Diffs::ptr_eq(&laid.of, diffs))
            .filter(|laid| (laid.setting, laid.cols, laid.wraps) == (setting, cols, render.wraps));
        let mut laid = known.unwrap_or_else(|| Laid {
            of: Diffs::clone(diffs),
            setting,
            cols,
            wraps: render.wraps,
            theme: render.theme.name.clone(),
            epoch,
            pages: diffs
                .iter()
                .map(|diff| Pages::of(diff, diff.layout(setting, cols), cols, render.wraps))
                .collect(),
            at: None,
        });
        if laid.epoch != epoch || laid.theme != render.theme.name {
            (laid.epoch, laid.theme) = (epoch, render.theme.name.clone());
            laid.pages.iter_mut().for_each(Pages::forget);
        }
        laid
    }
}

/// Computes the diffs of listed files: up to a limit immediately, the others one at a time.
pub(super) fn count(page: &mut ChangesView, files: &[&ChangedFile]) {
    let mut left = COUNTED_BYTES;
    for file in files {
        if page.diffs.contains_key(&file.path) {
            continue;
        }
        let rest = left.checked_sub(bytes(file));
        left = rest.unwrap_or(0);
        if page.compare(file, rest.is_some()).is_none() && rest.is_none() {
            return;
        }
    }
}

fn bytes(file: &ChangedFile) -> usize {
    let of = |change: &DiffChange| match change {
        DiffChange::Texts { old, new } => old.as_deref().map_or(0, str::len) + new.len(),
        DiffChange::Patch(text) => text.len(),
    };
    file.parts.iter().map(|part| of(&part.diff.change)).sum()
}

pub(super) fn counts(page: &ChangesView, file: &ChangedFile) -> Option<(usize, usize)> {
    page.diffs.get(&file.path).map(|diffs| counts_of(diffs))
}

/// Whether a line precedes a diff: for a change of the file itself, or for omitted lines.
fn has_head(diffs: &[Diff], index: usize) -> bool {
    index > 0 || diffs.get(index).is_some_and(says_more)
}

fn says_more(diff: &Diff) -> bool {
    diff.status != FileStatus::Changed || diff.moved_from.is_some() || diff.modes.is_some()
}

impl Laid {
    pub fn len(&self) -> usize {
        let heads = (0..self.of.len()).filter(|index| has_head(&self.of, *index)).count();
        heads + self.pages.iter().map(Pages::len).sum::<usize>()
    }

    pub fn hunks(&self) -> Vec<usize> {
        let mut begin = 0;
        let mut out = Vec::new();
        for (index, (diff, pages)) in self.of.iter().zip(&self.pages).enumerate() {
            begin += usize::from(has_head(&self.of, index));
            out.extend(diff.hunks(pages.layout()).into_iter().map(|row| begin + pages.line_of(row)));
            begin += pages.len();
        }
        out
    }

    fn line_of(&self, hunk: &Hunk) -> Option<usize> {
        let (diff, pages) = self.of.iter().zip(&self.pages).next()?;
        let row = diff.row_of(hunk, pages.layout())?;
        Some(usize::from(has_head(&self.of, 0)) + pages.line_of(row))
    }

    pub fn lines(&mut self, ctx: &FrameContext, top: usize, height: usize) -> Vec<Line<'static>> {
        let (mut begin, end) = (0, top + height);
        let mut out = Vec::new();
        for (index, (diff, pages)) in self.of.iter().zip(&mut self.pages).enumerate() {
            if has_head(&self.of, index) {
                if (top..end).contains(&begin) {
                    let before = index.checked_sub(1).and_then(|before| self.of.get(before));
                    out.push(if says_more(diff) {
                        diff_head(diff, &ctx.render, self.cols)
                    } else {
                        Line::from(ctx.span(Role::DiffMeta, left_out(ctx, before, diff)))
                    });
                }
                begin += 1;
            }
            let len = pages.len();
            let (from, to) = (top.max(begin), end.min(begin + len));
            if from < to {
                out.extend(pages.lines(diff, from - begin..to - begin, &ctx.render));
            }
            begin += len;
        }
        out
    }
}

/// The separator between two changes of a file, with the number of unchanged lines if it is known.
fn left_out(ctx: &FrameContext, before: Option<&Diff>, diff: &Diff) -> String {
    let lines = before.and_then(Diff::last_line).zip(diff.first_line());
    let count = lines.map_or(0, |(end, begin)| begin.saturating_sub(end + 1));
    unchanged_lines(count, &ctx.render.glyphs)
}
