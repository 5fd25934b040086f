//! The page with all changes of the session: the files on the left, the changes of one of them on the right.
//!
//! Draws the page and caches its computed diffs while it is open. `core::state::changes` collects the changes.
//!
//! Invariants: a frame never blocks on comparing texts, so that the counts of some files appear in later
//! frames; only visible lines are drawn.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use ratatui::layout::{Position, Rect};

use crate::config::keymap::Context;
use crate::core::state::changes::{ChangedFile, ChangesKey, changed_files, changes_key};
use crate::core::{DiffLayout, State};
use crate::model::{Action, DiffChange, SessionKey};
use crate::ui::canvas::Canvas;
use crate::ui::dialogs::{ChangesDialog, shown_files};
use crate::ui::text::Line;

use super::cells::{comparing, counts_line, diff_head};
use super::dialogs::{draw_bar, typed_line};
use super::diff::cache::{self, Diffs, Placed, Shown};
use super::diff::{Diff, FileStatus, Pages};
use super::frame_context::FrameContext;
use super::highlight;
use super::hits::Hit;
use super::render_context::RenderContext;
use super::text;
use super::theme::Role;
use super::view_state::ViewState;
use crate::ui::text::{counted, line_width};

/// Minimum width at which the files are shown next to the changes, in columns.
const LIST_FROM_COLS: u16 = 84;
/// Minimum and maximum width of the file list.
const MIN_LIST: u16 = 24;
const MAX_LIST: u16 = 44;
/// Total size of texts that are compared in one frame, in bytes.
const COUNTED_BYTES: usize = 1 << 18;
/// Rows above a hunk after jumping to it.
const ROWS_ABOVE: usize = 3;

/// State of the page between frames.
#[derive(Default)]
pub(super) struct ChangesView {
    revisions: (Option<SessionKey>, Vec<(SessionKey, u64)>),
    key: ChangesKey,
    files: Vec<ChangedFile>,
    diffs: HashMap<PathBuf, Diffs>,
    laid: Option<Laid>,
    shows_context: bool,
    shown: Option<PathBuf>,
    jump: i32,
    /// The session and the state's counter of changes at the last call of [`Self::follow`].
    followed: Option<(SessionKey, u64)>,
}

/// The line layout of the shown diffs.
struct Laid {
    of: Diffs,
    setting: DiffLayout,
    cols: u16,
    wraps: bool,
    theme: String,
    epoch: u32,
    pages: Vec<Pages>,
    /// The first line of the hunk that was jumped to.
    at: Option<usize>,
}

impl ChangesView {
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
    fn update(&mut self, state: &State, root: SessionKey, shows_context: bool) {
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
    fn compare(&mut self, file: &ChangedFile, at_once: bool) -> Option<Diffs> {
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
    fn lay(&mut self, diffs: &Diffs, render: &RenderContext<'_>, cols: u16) -> Laid {
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

/// Draws the page on the full screen; returns the cursor position while the filter is edited.
pub(super) fn draw(
    ctx: &FrameContext,
    dialog: &ChangesDialog,
    view: &mut ViewState,
    area: Rect,
    buf: &mut Canvas,
) -> Option<Position> {
    view.hits.add(area, Hit::Nothing);
    buf.blank(area, ctx.style(Role::Text));
    if area.height < 5 || area.width < 20 {
        return None;
    }
    let mut page = std::mem::take(&mut view.changes);
    page.update(ctx.state, ctx.session.key, dialog.shows_context);
    let files = std::mem::take(&mut page.files);
    let shown = shown_files(&files, dialog);
    let selected = dialog.selected.min(shown.len().saturating_sub(1));
    let file = shown.get(selected).copied();
    if let Some(file) = file {
        page.compare(file, true);
    }
    count(&mut page, &shown);

    let has_list = area.width >= LIST_FROM_COLS && !files.is_empty();
    draw_head(ctx, &page, (&shown, files.len()), (!has_list).then_some(selected), area, buf);
    let body = Rect { y: area.y + 2, height: area.height - 4, ..area };
    let list_cols = if has_list { (area.width / 3).clamp(MIN_LIST, MAX_LIST) } else { 0 };
    let list = Rect { width: list_cols, ..body };
    let right = Rect { x: body.x + list_cols, width: body.width - list_cols, ..body };
    if has_list {
        draw_list(ctx, &page, &shown, selected, list, view, buf);
        for y in list.y..list.bottom() {
            buf.set_string(list.right() - 1, y, ctx.render.glyphs.pipe, ctx.style(Role::Rule));
        }
    }
    if let Some(file) = file {
        draw_file(ctx, &mut page, file, right, view, buf);
    } else {
        let why = if files.is_empty() { "No changes in this session yet." } else { "No matching files." };
        let why = Line::styled(why, ctx.style(Role::TextDim));
        let lines = text::wrap_line(&why, right.width.saturating_sub(2).max(8));
        for (y, line) in (right.y..right.bottom()).zip(&lines) {
            buf.put_line(right.x + 1, y, line, right.width.saturating_sub(2));
        }
    }
    let diffs = file.and_then(|file| page.diffs.get(&file.path)).map_or(&[][..], |diffs| diffs);
    let layout_hint = ctx.other_layout(right.width.saturating_sub(3), diffs);
    page.jump = 0;
    page.files = files;
    view.changes = page;
    draw_foot(ctx, dialog, layout_hint, area, buf)
}

/// Computes the diffs of listed files: up to a limit immediately, the others one at a time.
fn count(page: &mut ChangesView, files: &[&ChangedFile]) {
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

fn counts(page: &ChangesView, file: &ChangedFile) -> Option<(usize, usize)> {
    let diffs = page.diffs.get(&file.path)?;
    Some(diffs.iter().fold((0, 0), |sum, diff| (sum.0 + diff.added, sum.1 + diff.removed)))
}

/// The title with the counts; without a file list, also the name of the shown file.
fn draw_head(
    ctx: &FrameContext,
    page: &ChangesView,
    (shown, all): (&[&ChangedFile], usize),
    selected: Option<usize>,
    area: Rect,
    buf: &mut Canvas,
) {
    let room = usize::from(area.width.saturating_sub(2));
    let counted_files =
        shown.iter().enumerate().filter(|(position, _)| selected.is_none_or(|only| only == *position));
    let sum = counted_files.filter_map(|(_, file)| counts(page, file));
    let sum = sum.fold((0, 0), |sum, counts| (sum.0 + counts.0, sum.1 + counts.1));
    let mut right = Line::default();
    if all > 0 {
        let files = counted(all, "file", "files");
        let text = match selected.filter(|_| !shown.is_empty()) {
            Some(selected) => format!("{} of {}", selected + 1, shown.len()),
            None if shown.len() < all => format!("{} of {files}", shown.len()),
            None => files,
        };
        right.push_span(ctx.span(Role::TextDim, text));
        right.spans.extend(counts_line(sum, &ctx.render).spans);
    }
    let right_cols = line_width(&right);
    let file = selected.and_then(|selected| shown.get(selected));
    let name = file.map(|file| ctx.render.path(&file.path));
    let left_room = room.saturating_sub(right_cols + 2);
    let left = name.map_or("Session changes".to_owned(), |name| text::truncate_path(&name, left_room));
    let left_room = u16::try_from(left_room).unwrap_or(u16::MAX);
    text::put_text(buf, area.x + 1, area.y, &left, left_room, ctx.style(Role::DialogTitle));
    let width = u16::try_from(right_cols.min(room)).unwrap_or(0);
    buf.put_line(area.right().saturating_sub(width + 1), area.y, &right, width);
    let rule = ctx.render.glyphs.rule.repeat(room);
    buf.set_string(area.x + 1, area.y + 1, &rule, ctx.style(Role::Rule));
    buf.set_string(area.x + 1, area.bottom() - 2, &rule, ctx.style(Role::Rule));
}

fn draw_list(
    ctx: &FrameContext,
    page: &ChangesView,
    files: &[&ChangedFile],
    selected: usize,
    area: Rect,
    view: &mut ViewState,
    buf: &mut Canvas,
) {
    let rows = usize::from(area.height);
    let skip = selected.saturating_sub(rows / 2).min(files.len().saturating_sub(rows));
    for ((position, file), y) in files.iter().enumerate().skip(skip).zip(area.y..area.bottom()) {
        let is_selected = position == selected;
        let counts = counts(page, file).map(|counts| counts_line(counts, &ctx.render)).unwrap_or_default();
        let cols = usize::from(area.width).saturating_sub(5);
        let room = cols.saturating_sub(line_width(&counts));
        let name = text::truncate_path(&ctx.render.path(&file.path), room);
        let role = if is_selected { Role::TextStrong } else { Role::Text };
        let fill = room.saturating_sub(text::width(&name));
        let mut line = Line::from(ctx.span(role, format!("{name}{}", " ".repeat(fill))));
        line.spans.extend(counts.spans);
        let row = Rect { x: area.x, y, width: area.width - 1, height: 1 };
        buf.put_line(row.x + 2, y, &line, row.width.saturating_sub(3));
        if is_selected {
            buf.set_style(row, ctx.style(Role::Selection));
            buf.set_string(row.x, y, ctx.render.glyphs.arrow, ctx.style(Role::Selection));
        }
        if let Ok(position) = u16::try_from(position) {
            view.hits.add(row, Hit::Act(Action::Mark(position)));
        }
    }
}

/// Whether a line precedes a diff: for a change of the file itself, or for omitted lines.
fn has_head(diffs: &[Diff], index: usize) -> bool {
    index > 0 || diffs.get(index).is_some_and(says_more)
}

fn says_more(diff: &Diff) -> bool {
    diff.status != FileStatus::Changed || diff.moved_from.is_some() || diff.modes.is_some()
}

impl Laid {
    fn len(&self) -> usize {
        let heads = (0..self.of.len()).filter(|index| has_head(&self.of, *index)).count();
        heads + self.pages.iter().map(Pages::len).sum::<usize>()
    }

    fn hunks(&self) -> Vec<usize> {
        let mut begin = 0;
        let mut out = Vec::new();
        for (index, (diff, pages)) in self.of.iter().zip(&self.pages).enumerate() {
            begin += usize::from(has_head(&self.of, index));
            out.extend(diff.hunks(pages.layout()).into_iter().map(|row| begin + pages.line_of(row)));
            begin += pages.len();
        }
        out
    }

    fn lines(&mut self, ctx: &FrameContext, top: usize, height: usize) -> Vec<Line<'static>> {
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
    let fold = ctx.render.glyphs.fold;
    let end = before.and_then(Diff::last_line);
    match end.zip(diff.first_line()).map(|(end, begin)| begin.saturating_sub(end + 1)) {
        None | Some(0) => fold.to_owned(),
        Some(1) => format!("{fold} 1 unchanged line"),
        Some(count) => format!("{fold} {count} unchanged lines"),
    }
}

fn draw_file(
    ctx: &FrameContext,
    page: &mut ChangesView,
    file: &ChangedFile,
    area: Rect,
    view: &mut ViewState,
    buf: &mut Canvas,
) {
    let cols = area.width.saturating_sub(3);
    let Some(diffs) = page.compare(file, true) else {
        let note = comparing(&ctx.render);
        buf.put_line(area.x + 1, area.y, &note, cols);
        return;
    };
    let render = RenderContext { wraps: view.wraps, ..ctx.render };
    let mut laid = page.lay(&diffs, &render, cols);
    let height = usize::from(area.height);
    let all = laid.len();
    let scroll = &mut view.dialog.scroll;
    if page.shown.as_ref() != Some(&file.path) {
        page.shown = Some(file.path.clone());
        *scroll = 0;
    }
    view.dialog.page = height;
    *scroll = (*scroll).min(all.saturating_sub(height));
    // Scrolling the hunk out of view ends the jump.
    laid.at = laid.at.filter(|at| (*scroll..*scroll + height).contains(at));
    if page.jump != 0 {
        laid.at = jumped(&laid.hunks(), laid.at, *scroll, page.jump);
        let top = laid.at.map_or(*scroll, |at| at.saturating_sub(ROWS_ABOVE));
        *scroll = top.min(all.saturating_sub(height));
    }
    let top = *scroll;
    let lines = laid.lines(ctx, top, height);
    let at = laid.at.and_then(|at| at.checked_sub(top));
    page.laid = Some(laid);
    for ((row, line), y) in lines.iter().enumerate().zip(area.y..area.bottom()) {
        buf.put_line(area.x + 1, y, line, cols);
        if at == Some(row) {
            buf.set_string(area.x, y, ctx.render.glyphs.arrow, ctx.style(Role::Accent));
        }
    }
    let bar = Rect { x: area.right() - 1, width: 1, ..area };
    draw_bar(ctx, bar, top, height, all, buf);
}

/// The hunk after a jump by a number of steps, counted from the last jump or from the top row. Stops at the
/// last hunk.
fn jumped(hunks: &[usize], at: Option<usize>, top: usize, steps: i32) -> Option<usize> {
    let mut at = at;
    for _ in 0..steps.unsigned_abs() {
        let next = match at {
            Some(at) if steps > 0 => hunks.iter().find(|row| **row > at),
            Some(at) => hunks.iter().rev().find(|row| **row < at),
            None if steps > 0 => hunks.iter().find(|row| **row >= top).or(hunks.last()),
            None => hunks.iter().rev().find(|row| **row < top).or(hunks.first()),
        };
        let Some(next) = next else { break };
        at = Some(*next);
    }
    at
}

fn draw_foot(
    ctx: &FrameContext,
    dialog: &ChangesDialog,
    layout_hint: &str,
    area: Rect,
    buf: &mut Canvas,
) -> Option<Position> {
    let y = area.bottom() - 1;
    let room = area.width.saturating_sub(2);
    if dialog.is_filtering || !dialog.filter.text.is_empty() {
        let half = room / 2;
        let row = typed_line(ctx, &dialog.filter, "filter paths", half);
        buf.put_line(area.x + 1, y, &row.0, half);
        let context = if dialog.is_filtering { Context::List } else { Context::Changes };
        let hints = [
            ctx.hint(context, Action::Accept, "apply").filter(|_| dialog.is_filtering),
            ctx.hint(context, Action::Escape, "clear"),
        ];
        draw_hints(ctx, &hints, half, area, buf);
        let x = area.x + 1 + u16::try_from(row.1).unwrap_or(0).min(half);
        return dialog.is_filtering.then(|| Position::new(x, y));
    }
    let hint = |action: Action, does: &str| ctx.hint(Context::Changes, action, does);
    let hints = [
        hint(Action::Escape, "close"),
        hint(Action::NextHunk, "next hunk"),
        hint(Action::NextField, "next file"),
        hint(Action::Filter, "filter"),
        hint(Action::ToggleContext, if dialog.shows_context { "hunks only" } else { "unchanged lines" }),
        hint(Action::ToggleDiffLayout, layout_hint),
        hint(Action::Accept, "open editor"),
    ];
    draw_hints(ctx, &hints, room, area, buf);
    None
}

fn draw_hints(
    ctx: &FrameContext,
    hints: &[Option<(String, String)>],
    cols: u16,
    area: Rect,
    buf: &mut Canvas,
) {
    let hints: Vec<(String, String)> = hints.iter().flatten().cloned().collect();
    let line = ctx.hints(&hints, usize::from(cols));
    let width = u16::try_from(line_width(&line)).unwrap_or(0).min(cols);
    buf.put_line(area.right().saturating_sub(width + 1), area.bottom() - 1, &line, width);
}

#[cfg(test)]
mod tests;
