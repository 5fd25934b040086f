//! Renders diff rows as lines: line numbers, signs, syntax highlighting, word highlighting, in one or two
//! columns.

use std::ops::Range;

use ratatui::style::Style;
use similar::{ChangeTag, TextDiff};

use crate::ui::highlight::{self, Highlighter};
use crate::ui::render_context::{Glyphs, RenderContext};
use crate::ui::screen::DiffLayout;
use crate::ui::text::copy_hint::{Mark, fill};
use crate::ui::text::{Line, Span};
use crate::ui::text::{code_rows, expand_tabs, hard_wrap, reveal_bytes, truncate};
use crate::ui::theme::Role;

use super::{Diff, FileStatus, Row, RowKind};

/// Minimum width of the body for the side-by-side layout, unless the user overrides it: that of a screen with 120
/// columns.
const SIDE_BY_SIDE_COLS: u16 = 112;

/// Minimum width of the body for the side-by-side layout.
const MIN_SIDES_COLS: u16 = 40;

/// Longer lines get no word highlighting.
const MARKED_MAX_BYTES: usize = 500;

/// Lines with a lower similarity get no word highlighting.
const ALIKE_RATIO: f32 = 0.4;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// Old and new lines in one column.
    Unified,
    /// Old lines on the left, new lines on the right.
    SideBySide,
}

impl Layout {
    pub fn choose(setting: DiffLayout, cols: u16) -> Self {
        match setting {
            DiffLayout::Auto if cols >= SIDE_BY_SIDE_COLS => Self::SideBySide,
            DiffLayout::SideBySide if cols >= MIN_SIDES_COLS => Self::SideBySide,
            _ => Self::Unified,
        }
    }
}

impl Diff {
    /// Chooses the layout for a body width. Unless the user decides, columns are not used if one would be blank, or if
    /// more than a tenth of the rows would be wrapped in them.
    pub fn layout(&self, setting: DiffLayout, cols: u16) -> Layout {
        let suits_columns = || {
            let is_one_sided = matches!(self.status, FileStatus::New | FileStatus::Deleted)
                || self.added.max(self.removed) == self.rows.len();
            !is_one_sided && self.head_cols() + self.usual_cols <= usize::from(columns(cols).0)
        };
        match Layout::choose(setting, cols) {
            Layout::SideBySide if setting == DiffLayout::Auto && !suits_columns() => Layout::Unified,
            layout => layout,
        }
    }

    /// Draws a range of rows. Highlighting restarts at the first row and after each gap.
    pub fn draw(
        &self,
        rows: Range<usize>,
        layout: Layout,
        render: &RenderContext<'_>,
        cols: u16,
    ) -> Vec<Line<'static>> {
        let language = highlight::language_of(&self.path);
        let number_cols = self.number_cols();
        let mut painter = DiffPainter { diff: self, render, number_cols, old: None, new: None, language };
        painter.restart(rows.start, layout);
        let mut out = Vec::new();
        match layout {
            Layout::Unified => {
                for row in self.rows.get(rows).unwrap_or_default() {
                    let cells = painter.row(row, true, cols);
                    out.extend(cells.into_iter().map(Line::from));
                }
            }
            Layout::SideBySide => {
                for side in self.sides.get(rows).unwrap_or_default() {
                    painter.side(*side, columns(cols), cols, &mut out);
                }
            }
        }
        out
    }

    /// Width of line number and sign before the text of a row.
    pub(super) fn head_cols(&self) -> usize {
        let numbers = self.number_cols();
        numbers + usize::from(numbers > 0) + 2
    }

    /// Width of a line number; 0 if no row has one.
    fn number_cols(&self) -> usize {
        let largest = |row: &Row| row.old_line.max(row.new_line);
        // Line numbers increase, so the last rows have the largest ones.
        let last = self.rows.iter().rev().take(400).map(largest).max().unwrap_or(0);
        if last == 0 { 0 } else { last.to_string().len().max(3) }
    }
}

/// The number of hidden unchanged lines; 0: it is unknown.
pub(crate) fn unchanged_lines(count: u32, glyphs: &Glyphs) -> String {
    match count {
        0 => glyphs.fold.to_owned(),
        1 => format!("{} 1 unchanged line", glyphs.fold),
        _ => format!("{} {count} unchanged lines", glyphs.fold),
    }
}

/// Width of the left and the right column.
pub(super) fn columns(cols: u16) -> (u16, u16) {
    (cols.saturating_sub(3) / 2, cols.saturating_sub(3).div_ceil(2))
}

/// Highlighting state between rows.
struct DiffPainter<'a> {
    diff: &'a Diff,
    render: &'a RenderContext<'a>,
    number_cols: usize,
    old: Option<Highlighter>,
    new: Option<Highlighter>,
    language: String,
}

impl DiffPainter<'_> {
    fn restart(&mut self, from: usize, layout: Layout) {
        let from = match layout {
            Layout::Unified => from,
            Layout::SideBySide => {
                let side = self.diff.sides.get(from);
                side.and_then(|side| side.left.or(side.right)).map_or(0, |row| row as usize)
            }
        };
        let rows = self.diff.rows.get(from..).unwrap_or_default();
        let mut sample = String::new();
        for row in rows.iter().take(20) {
            sample.push_str(self.diff.text(row));
            sample.push('\n');
        }
        self.old = highlight::start(&self.language, &sample);
        self.new = self.old.clone();
    }

    /// Renders a row as one or more lines. With `is_unified`, one number column is used.
    fn row(&mut self, row: &Row, is_unified: bool, cols: u16) -> Vec<Vec<Span<'static>>> {
        let theme = self.render.theme;
        if let RowKind::Gap(count) = row.kind {
            self.old = highlight::start(&self.language, "");
            self.new = self.old.clone();
            let mark = if row.pair.is_some() { Mark::GAP } else { Mark::NO_LINE };
            return self.remark(&unchanged_lines(count, &self.render.glyphs), mark, cols);
        }
        if let RowKind::Note(note) = row.kind {
            let text = format!("{} {}", self.render.glyphs.fold, note.text());
            return self.remark(&text, Mark::NO_LINE, cols);
        }
        let (role, word, mark) = match row.kind {
            RowKind::Minus => (Role::DiffMinus, Role::DiffMinusWord, self.render.glyphs.minus),
            RowKind::Plus => (Role::DiffPlus, Role::DiffPlusWord, "+"),
            _ => (Role::DiffContext, Role::DiffContext, " "),
        };
        let base = theme.style(role);
        let number = match row.kind {
            RowKind::Minus => row.old_line,
            RowKind::Context if !is_unified && row.new_line == 0 => row.old_line,
            _ => row.new_line,
        };
        let gutter = match (self.number_cols, number) {
            (0, _) => String::new(),
            (cols, 0) => " ".repeat(cols + 1),
            (cols, number) => format!("{number:>cols$} "),
        };
        let gutter_style = base.patch(theme.style(Role::DiffGutter));
        // Without background colours, the sign is coloured instead.
        let has_grounds = theme.style(Role::DiffPlus).bg != theme.style(Role::DiffMinus).bg;
        let mark_style = if has_grounds { gutter_style } else { Style { fg: base.fg, ..gutter_style } };
        let head =
            vec![Mark::APART.span(gutter, gutter_style), Mark::APART.span(format!("{mark} "), mark_style)];
        let head_cols = self.diff.head_cols();
        let room = usize::from(cols).saturating_sub(head_cols).max(4);

        let text = clean(self.diff.text(row));
        let runs = self.runs(row, &text);
        let marks = self.word_marks(row, &text);
        let spans = paint(&text, &runs, &marks, base, theme.style(word), |role| theme.style(role));
        let room = u16::try_from(room).unwrap_or(u16::MAX);
        let wrapped = code_rows(&Line::from(spans), room, self.render.wraps, self.render.glyphs.ellipsis);
        let fills = matches!(row.kind, RowKind::Minus | RowKind::Plus);
        wrapped
            .into_iter()
            .enumerate()
            .map(|(index, line)| {
                let rest = || vec![(Mark::APART | line.mark).span(" ".repeat(head_cols), base)];
                let mut spans = if index == 0 { head.clone() } else { rest() };
                spans.extend(line.spans);
                if fills {
                    fill(&mut spans, cols, base);
                }
                spans
            })
            .collect()
    }

    /// A row that is not a line of the file, aligned with the text of those.
    fn remark(&self, text: &str, mark: Mark, cols: u16) -> Vec<Vec<Span<'static>>> {
        let indent = if self.number_cols > 0 { self.number_cols + 1 } else { 0 };
        let text = truncate(&format!("{}{text}", " ".repeat(indent)), usize::from(cols));
        vec![vec![mark.span(text, self.render.theme.style(Role::DiffMeta))]]
    }

    /// Renders a row in two columns.
    fn side(
        &mut self,
        side: super::Side,
        (left_cols, right_cols): (u16, u16),
        cols: u16,
        out: &mut Vec<Line<'static>>,
    ) {
        let at = |index: Option<u32>| index.and_then(|index| self.diff.rows.get(index as usize)).copied();
        let (left, right) = (at(side.left), at(side.right));
        if let Some(row) = left
            && matches!(row.kind, RowKind::Gap(_) | RowKind::Note(_))
        {
            out.extend(self.row(&row, false, cols).into_iter().map(Line::from));
            return;
        }
        let old = Row { new_line: 0, ..left.unwrap_or(EMPTY) };
        let mut a = if left.is_some() { self.row(&old, false, left_cols) } else { Vec::new() };
        let is_same = side.left == side.right;
        let saved = (self.old.clone(), self.new.clone());
        if is_same {
            // The same line is on both sides: the highlighter must process it only once.
            (self.old, self.new) = (None, None);
        }
        let mut b = match right {
            Some(row) if is_same => {
                let lines = self.same_line(&a, &row, right_cols);
                (self.old, self.new) = saved;
                lines
            }
            Some(row) => self.row(&row, false, right_cols),
            None => Vec::new(),
        };
        let height = a.len().max(b.len()).max(1);
        a.resize(height, Vec::new());
        b.resize(height, Vec::new());
        let rule =
            Mark::APART.span(format!(" {} ", self.render.glyphs.pipe), self.render.theme.style(Role::Rule));
        for (mut left, right) in a.into_iter().zip(b) {
            // The other side has more lines.
            let is_empty = left.is_empty();
            fill(&mut left, left_cols, Style::default());
            if let Some(blank) = left.first_mut().filter(|_| is_empty) {
                blank.tag.mark = blank.tag.mark | Mark::NO_LINE;
            }
            left.push(rule.clone());
            left.extend(right.into_iter().map(|span| span.marked(Mark::SECOND)));
            out.push(Line::from(left));
        }
    }

    /// An unchanged line for the right side, reusing the colours of the left side.
    fn same_line(&mut self, left: &[Vec<Span<'static>>], row: &Row, cols: u16) -> Vec<Vec<Span<'static>>> {
        let mut lines = left.to_vec();
        if let Some(number) = lines.first_mut().and_then(|spans| spans.first_mut())
            && self.number_cols > 0
        {
            let digits = self.number_cols;
            let text =
                if row.new_line > 0 { format!("{:>digits$} ", row.new_line) } else { " ".repeat(digits + 1) };
            number.content = text.into();
        }
        for spans in &mut lines {
            let line = Line::from(std::mem::take(spans));
            *spans = hard_wrap(&line, cols).into_iter().next().map(|line| line.spans).unwrap_or_default();
        }
        lines
    }

    /// Syntax highlighting of a row; unchanged lines advance the state of both sides.
    fn runs(&mut self, row: &Row, text: &str) -> Vec<(Range<usize>, Option<Role>)> {
        let runs = match row.kind {
            RowKind::Minus => self.old.as_mut().map(|old| old.line(text)),
            RowKind::Plus => self.new.as_mut().map(|new| new.line(text)),
            _ => {
                let runs = self.new.as_mut().map(|new| new.line(text));
                // After unchanged lines both sides usually have the same state, so one parse is enough.
                self.old.clone_from(&self.new);
                runs
            }
        };
        runs.unwrap_or_else(|| vec![(0..text.len(), None)])
    }

    /// The changed words of a line, compared with the line that it replaces.
    fn word_marks(&self, row: &Row, text: &str) -> Vec<Range<usize>> {
        let Some(pair) = row.pair.and_then(|pair| self.diff.rows.get(pair as usize)) else {
            return Vec::new();
        };
        let other = clean(self.diff.text(pair));
        let is_long = text.len() > MARKED_MAX_BYTES || other.len() > MARKED_MAX_BYTES;
        if is_long {
            return Vec::new();
        }
        let is_old = row.kind == RowKind::Minus;
        let (old, new) = if is_old { (text, other.as_str()) } else { (other.as_str(), text) };
        let text_diff = TextDiff::from_unicode_words(old, new);
        if text_diff.ratio() < ALIKE_RATIO && !only_adds_or_removes(&text_diff) {
            return Vec::new();
        }
        let wanted = if is_old { ChangeTag::Delete } else { ChangeTag::Insert };
        let mut marks: Vec<Range<usize>> = Vec::new();
        let mut at = 0;
        for change in text_diff.iter_all_changes() {
            let len = change.value().len();
            if change.tag() == wanted {
                match marks.last_mut() {
                    Some(last) if last.end == at => last.end = at + len,
                    _ => marks.push(at..at + len),
                }
            }
            if change.tag() == ChangeTag::Equal || change.tag() == wanted {
                at += len;
            }
        }
        marks
    }
}

/// Whether one line only has words added to the other.
fn only_adds_or_removes(text_diff: &TextDiff<'_, '_, str>) -> bool {
    let has = |tag: ChangeTag| text_diff.iter_all_changes().any(|change| change.tag() == tag);
    let keeps = |change: similar::Change<&str>| {
        change.tag() == ChangeTag::Equal && change.value().contains(char::is_alphanumeric)
    };
    !(has(ChangeTag::Delete) && has(ChangeTag::Insert)) && text_diff.iter_all_changes().any(keeps)
}

const EMPTY: Row = Row { kind: RowKind::Context, old_line: 0, new_line: 0, start: 0, end: 0, pair: None };

/// The text of a row for drawing, with hidden characters shown.
pub(super) fn clean(text: &str) -> String {
    expand_tabs(&reveal_bytes(text)).into_owned()
}

/// Splits a text at the boundaries of syntax runs and word highlighting.
fn paint(
    text: &str,
    runs: &[(Range<usize>, Option<Role>)],
    marks: &[Range<usize>],
    base: Style,
    word: Style,
    style_of: impl Fn(Role) -> Style,
) -> Vec<Span<'static>> {
    let mut spans = Vec::new();
    for (run, role) in runs {
        let syntax = role.map_or(base, |role| base.patch(style_of(role)));
        let mut at = run.start;
        for mark in marks.iter().filter(|mark| mark.start < run.end && mark.end > run.start) {
            let (from, to) = (mark.start.max(run.start), mark.end.min(run.end));
            push(&mut spans, text, at..from, syntax);
            push(&mut spans, text, from..to, syntax.patch(word));
            at = to;
        }
        push(&mut spans, text, at..run.end, syntax);
    }
    spans
}

fn push(spans: &mut Vec<Span<'static>>, text: &str, range: Range<usize>, style: Style) {
    if let Some(text) = text.get(range)
        && !text.is_empty()
    {
        spans.push(Span::styled(text.to_owned(), style));
    }
}
