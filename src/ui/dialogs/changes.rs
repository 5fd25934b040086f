//! The dialog of all changes: the files on the left, the changes of one of them on the right.
//!
//! The view handles rows: moves between hunks are sent to it.
//! Invariant: only visible lines are drawn.

use std::fmt::Write as _;

use ratatui::layout::{Position, Rect};

use crate::config::keymap::Context;
use crate::core::state::changes::{ChangedFile, changed_files, first_line};
use crate::core::{Cx, Effect, LineInput, State, ViewCommand};
use crate::model::hunk::{self, Hunk};
use crate::model::{Action, DiffChange, LineEdit, Location, Target};
use crate::ui::App;
use crate::ui::canvas::Canvas;
use crate::ui::cells::{comparing, counts_line};
use crate::ui::changes::{ChangesView, count, counts};
use crate::ui::frame_context::FrameContext;
use crate::ui::hits::Hit;
use crate::ui::render_context::RenderContext;
use crate::ui::text;
use crate::ui::text::{Line, counted};
use crate::ui::theme::Role;
use crate::ui::view_state::ViewState;

use super::dialog_frame::{draw_bar, input};
use super::layer::{Flow, Layer};
use super::list::moved;
use super::{open, scroll};

/// Minimum width at which the files are shown next to the changes, in columns.
const LIST_FROM_COLS: u16 = 84;
/// Minimum and maximum width of the file list.
const MIN_LIST: u16 = 24;
const MAX_LIST: u16 = 44;
/// Maximum number of lines of a change that are shown in plain text mode.
const MAX_PLAIN_LINES: usize = 2_000;
/// Rows above a hunk after jumping to it.
const ROWS_ABOVE: usize = 3;

/// The files that match the filter: the path contains each of its words.
pub fn shown_files<'f>(files: &'f [ChangedFile], dialog: &ChangesDialog) -> Vec<&'f ChangedFile> {
    let filter = dialog.filter.text.to_lowercase();
    let fits = |file: &&ChangedFile| {
        let path = file.path.to_string_lossy().to_lowercase();
        filter.split_whitespace().all(|word| path.contains(word))
    };
    files.iter().filter(fits).collect()
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct ChangesDialog {
    /// The shown file, an index into those that match the filter.
    pub selected: usize,
    pub filter: LineInput,
    /// Whether typed letters edit the filter.
    pub is_filtering: bool,
    /// Whether all known unchanged lines are shown.
    pub shows_context: bool,
}

impl Layer for ChangesDialog {
    fn title(&self, _state: &State) -> String {
        "Changes".to_owned()
    }

    /// While the filter is edited, its keys are those of a list.
    fn context(&self) -> Context {
        if self.is_filtering { Context::List } else { Context::Changes }
    }

    fn line(&self) -> Option<&LineInput> {
        self.is_filtering.then_some(&self.filter)
    }

    /// Edits the filter; the first matching file is shown.
    fn on_line(&mut self, _app: &mut App, edit: &LineEdit, _cx: &mut Cx) {
        if self.is_filtering && self.filter.apply(edit) {
            self.selected = 0;
        }
    }

    fn leave_part(&mut self) -> bool {
        let was_used = self.is_filtering || !self.filter.text.is_empty();
        if was_used {
            self.filter = LineInput::default();
            self.is_filtering = false;
            self.selected = 0;
        }
        was_used
    }

    fn on_action(&mut self, app: &mut App, action: Action, cx: &mut Cx) -> Flow {
        let files = changed_files(&app.state, app.state.active);
        let shown = shown_files(&files, self);
        let count = shown.len();
        // The list may have changed since the last key.
        self.selected = self.selected.min(count.saturating_sub(1));
        match action {
            Action::NextField => self.selected = moved(self.selected, 1, count),
            Action::PreviousField => self.selected = moved(self.selected, -1, count),
            Action::Mark(position) => self.selected = moved(usize::from(position), 0, count),
            Action::NextHunk => cx.effects.push(Effect::View(ViewCommand::JumpHunk(1))),
            Action::PreviousHunk => cx.effects.push(Effect::View(ViewCommand::JumpHunk(-1))),
            Action::Filter => self.is_filtering = true,
            Action::ToggleContext => self.shows_context = !self.shows_context,
            // While the filter is edited, the arrow keys select files.
            Action::Up if self.is_filtering => self.selected = moved(self.selected, -1, count),
            Action::Down if self.is_filtering => self.selected = moved(self.selected, 1, count),
            Action::Accept if self.is_filtering => self.is_filtering = false,
            Action::Accept => {
                if let Some(file) = shown.get(self.selected) {
                    let line = file.parts.first().and_then(first_line);
                    let location = Location { path: file.path.clone(), line };
                    open::on_open(&mut app.state, Target::File(location), cx);
                }
            }
            _ => return scroll::scroll_page(action, cx),
        }
        Flow::Stay
    }

    /// Draws the page on the full screen; returns the cursor position while the filter is edited.
    fn draw(
        &self,
        ctx: &FrameContext,
        view: &mut ViewState,
        area: Rect,
        buf: &mut Canvas,
    ) -> Option<Position> {
        if !begin_page(ctx, view, area, buf) {
            return None;
        }
        let mut page = std::mem::take(&mut view.changes);
        page.update(ctx.state, ctx.session.key, self.shows_context);
        let files = std::mem::take(&mut page.files);
        let shown = shown_files(&files, self);
        let selected = self.selected.min(shown.len().saturating_sub(1));
        let file = shown.get(selected).copied();
        if let Some(file) = file {
            page.compare(file, true);
        }
        count(&mut page, &shown);

        let right = draw_files(
            ctx,
            &mut page,
            &Files {
                title: "Session changes",
                shown: &shown,
                all: files.len(),
                selected,
                marks: &[],
                notes: &[],
            },
            (area, view),
            buf,
        );
        if file.is_none() {
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
        draw_foot(ctx, self, layout_hint, area, buf)
    }
}

/// Clears the screen for a page. Returns false if the screen is too small for one.
pub(super) fn begin_page(ctx: &FrameContext, view: &mut ViewState, area: Rect, buf: &mut Canvas) -> bool {
    view.hits.add(area, Hit::Nothing);
    buf.blank(area, ctx.style(Role::Text));
    area.height >= 5 && area.width >= 20
}

pub(super) struct Files<'a> {
    pub title: &'a str,
    pub shown: &'a [&'a ChangedFile],
    pub all: usize,
    pub selected: usize,
    /// What stands before the name of each file; empty: nothing.
    pub marks: &'a [&'static str],
    /// Lines below the head.
    pub notes: &'a [String],
}

impl Files<'_> {
    fn mark(&self, position: usize) -> &'static str {
        self.marks.get(position).copied().unwrap_or_default()
    }
}

/// A file of a page as text: its name, its notes, and the lines of a hunk or of all changes. Returns whether all of them
/// are there.
pub(super) fn write_file(out: &mut String, file: &ChangedFile, hunk: Option<&Hunk>, note: &str) -> bool {
    let mut is_whole = true;
    let _ = writeln!(out, "{}", text::reveal_line(&file.path.to_string_lossy()));
    if !note.is_empty() {
        let _ = writeln!(out, "{note}");
    }
    for part in &file.parts {
        let DiffChange::Texts { old, new } = &part.diff.change else { continue };
        let (old, new) = (old.as_deref().unwrap_or_default(), &**new);
        let all = hunk.map_or_else(|| hunk::hunks(old, new), |hunk| vec![hunk.clone()]);
        let (lines, more) = hunk::patch_lines(old, new, &all, MAX_PLAIN_LINES);
        for line in lines {
            let _ = writeln!(out, "  {}", text::reveal_line(&line));
        }
        if more > 0 {
            is_whole = false;
            let _ = writeln!(out, "  … {more} more lines. They are shown on the screen only.");
        }
    }
    is_whole
}

/// Draws the head, the notes, the list of files and the changes of the selected one. Returns the place of the changes.
pub(super) fn draw_files(
    ctx: &FrameContext,
    page: &mut ChangesView,
    files: &Files<'_>,
    (area, view): (Rect, &mut ViewState),
    buf: &mut Canvas,
) -> Rect {
    let has_list = area.width >= LIST_FROM_COLS && files.all > 0;
    draw_head(ctx, page, files, !has_list, area, buf);
    let cols = area.width.saturating_sub(2);
    let note = |note: &String| Line::styled(text::reveal_one_line(note), ctx.style(Role::TextDim));
    let notes = files.notes.iter().map(note);
    let notes: Vec<Line<'_>> = notes.flat_map(|note| text::wrap_line(&note, cols)).collect();
    // The changes are more important on a small screen.
    let rows = u16::try_from(notes.len()).unwrap_or(u16::MAX).min(area.height / 4);
    for (y, note) in (area.y + 2..area.y + 2 + rows).zip(&notes) {
        buf.put_line(area.x + 1, y, note, cols);
    }
    let body = Rect { y: area.y + 2 + rows, height: area.height - 4 - rows, ..area };
    let list_cols = if has_list { (area.width / 3).clamp(MIN_LIST, MAX_LIST) } else { 0 };
    let list = Rect { width: list_cols, ..body };
    let right = Rect { x: body.x + list_cols, width: body.width - list_cols, ..body };
    if has_list {
        draw_list(ctx, page, files, list, view, buf);
        for y in list.y..list.bottom() {
            buf.set_string(list.right() - 1, y, ctx.render.glyphs.pipe, ctx.style(Role::Rule));
        }
    }
    if let Some(file) = files.shown.get(files.selected) {
        draw_file(ctx, page, file, right, view, buf);
    }
    right
}

/// The title with the counts; without a file list, also the name of the shown file.
fn draw_head(
    ctx: &FrameContext,
    page: &ChangesView,
    files: &Files<'_>,
    names_file: bool,
    area: Rect,
    buf: &mut Canvas,
) {
    let Files { title, shown, all, .. } = *files;
    let selected = names_file.then_some(files.selected);
    let room = usize::from(area.width.saturating_sub(2));
    let counted_files =
        shown.iter().enumerate().filter(|(position, _)| selected.is_none_or(|only| only == *position));
    let sum = counted_files.filter_map(|(_, file)| counts(page, file));
    let sum = sum.fold((0, 0), |sum, counts| (sum.0 + counts.0, sum.1 + counts.1));
    let mut right = Line::default();
    if all > 0 {
        let all_files = counted(all, "file", "files");
        let text = match selected.filter(|_| !shown.is_empty()) {
            Some(selected) => format!("{} of {}", selected + 1, shown.len()),
            None if shown.len() < all => format!("{} of {all_files}", shown.len()),
            None => all_files,
        };
        right.push_span(ctx.span(Role::TextDim, text));
        right.spans.extend(counts_line(sum, &ctx.render).spans);
    }
    let right_cols = right.width();
    let file = selected.and_then(|selected| shown.get(selected));
    let mark = files.mark(files.selected);
    let name = file.map(|file| ctx.render.path(&file.path));
    let left_room = room.saturating_sub(right_cols + 2);
    let left = name.map_or(title.to_owned(), |name| {
        format!("{mark}{}", text::truncate_path(&name, left_room.saturating_sub(mark.len())))
    });
    let left_room = u16::try_from(left_room).unwrap_or(u16::MAX);
    text::put_text(buf, area.x + 1, area.y, &left, left_room, ctx.style(Role::DialogTitle));
    let width = u16::try_from(right_cols.min(room)).unwrap_or(0);
    buf.put_line(area.right().saturating_sub(width + 1), area.y, &right, width);
    draw_rules(ctx, area, buf);
}

/// Draws the lines below the head and above the foot of a page.
pub(super) fn draw_rules(ctx: &FrameContext, area: Rect, buf: &mut Canvas) {
    let rule = ctx.render.glyphs.rule.repeat(usize::from(area.width.saturating_sub(2)));
    for y in [area.y + 1, area.bottom() - 2] {
        buf.set_string(area.x + 1, y, &rule, ctx.style(Role::Rule));
    }
}

fn draw_list(
    ctx: &FrameContext,
    page: &ChangesView,
    files: &Files<'_>,
    area: Rect,
    view: &mut ViewState,
    buf: &mut Canvas,
) {
    let rows = usize::from(area.height);
    let Files { shown, selected, .. } = *files;
    let skip = selected.saturating_sub(rows / 2).min(shown.len().saturating_sub(rows));
    for ((position, file), y) in shown.iter().enumerate().skip(skip).zip(area.y..area.bottom()) {
        let is_selected = position == selected;
        let counts = counts(page, file).map(|counts| counts_line(counts, &ctx.render)).unwrap_or_default();
        let cols = usize::from(area.width).saturating_sub(5);
        let room = cols.saturating_sub(counts.width());
        let mark = files.mark(position);
        let path = text::truncate_path(&ctx.render.path(&file.path), room.saturating_sub(mark.len()));
        let name = format!("{mark}{path}");
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
        page.selected.iter_mut().for_each(|(_, scrolls)| *scrolls = true);
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
    if let Some((line, scrolls)) = page.selected_line(&laid) {
        laid.at = Some(line);
        if scrolls {
            *scroll = line.saturating_sub(ROWS_ABOVE).min(all.saturating_sub(height));
        }
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
    let room = area.width.saturating_sub(2);
    if dialog.is_filtering || !dialog.filter.text.is_empty() {
        let half = room / 2;
        let cursor = draw_filter(ctx, &dialog.filter, "filter paths", (area, half), buf);
        let context = if dialog.is_filtering { Context::List } else { Context::Changes };
        let hints = [
            ctx.hint(context, Action::Accept, "apply").filter(|_| dialog.is_filtering),
            ctx.hint(context, Action::Escape, "clear"),
        ];
        draw_hints(ctx, &hints, half, area, buf);
        return dialog.is_filtering.then_some(cursor);
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

/// Draws the filter in the foot of a page, and returns the cursor position.
pub(super) fn draw_filter(
    ctx: &FrameContext,
    filter: &LineInput,
    hint: &str,
    (area, cols): (Rect, u16),
    buf: &mut Canvas,
) -> Position {
    let row = input(ctx, filter, hint, false, cols);
    let (x, y) = (area.x + 1, area.bottom() - 1);
    buf.put_line(x, y, &row.line, cols);
    Position::new(x + u16::try_from(row.cursor.unwrap_or(0)).unwrap_or(0).min(cols), y)
}

/// Draws hints at the right of the foot of a page, and returns their width.
pub(super) fn draw_hints(
    ctx: &FrameContext,
    hints: &[Option<(String, String)>],
    cols: u16,
    area: Rect,
    buf: &mut Canvas,
) -> u16 {
    let hints: Vec<(String, String)> = hints.iter().flatten().cloned().collect();
    let line = ctx.hints(&hints, usize::from(cols));
    let width = u16::try_from(line.width()).unwrap_or(0).min(cols);
    buf.put_line(area.right().saturating_sub(width + 1), area.bottom() - 1, &line, width);
    width
}

#[cfg(test)]
mod tests;
