//! Tables: fits columns and wraps cells; if there is not enough space, shows a window of columns.

use pulldown_cmark::Alignment;
use ratatui::style::Style;

use crate::ui::render_context::RenderContext;
use crate::ui::text::copy_hint::Mark;
use crate::ui::text::{Line, Span};
use crate::ui::text::{counted, spans_width, truncate, width, wrap_line, wrap_prefixed};
use crate::ui::theme::Role;

/// Minimum width of a column (or its widest cell).
const COLUMN_MIN_COLS: usize = 6;

/// Words up to this width are not broken if the table can be scrolled instead.
const COLUMN_WHOLE_COLS: usize = 12;

/// Preferred width of columns in a scrolled table,
const COLUMN_GOOD_COLS: usize = 20;

/// or the width of the longest word, up to this limit.
const COLUMN_WORD_COLS: usize = 40;

/// The styled text of a cell.
pub(super) type Cell = Vec<Span<'static>>;

/// A table while it is parsed.
#[derive(Default)]
pub(super) struct Table {
    pub alignments: Vec<Alignment>,
    pub head: Vec<Cell>,
    pub rows: Vec<Vec<Cell>>,
    pub is_head: bool,
}

impl Table {
    /// Adds a cell to the current row.
    pub fn push(&mut self, cell: Cell) {
        if self.is_head {
            self.head.push(cell);
        } else if let Some(row) = self.rows.last_mut() {
            row.push(cell);
        }
    }

    /// Draws the table within a width. Also returns the number of columns beyond the edge.
    pub fn draw(&self, render: &RenderContext<'_>, cols: u16) -> (Vec<Line<'static>>, u16) {
        let count = self.head.len().max(self.rows.iter().map(Vec::len).max().unwrap_or(0));
        if count == 0 {
            return (Vec::new(), 0);
        }
        let all = || std::iter::once(&self.head).chain(&self.rows);
        let mut widths = vec![1_usize; count];
        for row in all() {
            for (cell, widest) in row.iter().zip(&mut widths) {
                *widest = (*widest).max(spans_width(cell));
            }
        }
        let room = usize::from(cols).saturating_sub(3 * (count - 1));
        let longest_words: Vec<usize> = (0..count)
            .map(|column| {
                all().filter_map(|row| row.get(column)).map(|cell| word_cols(cell)).max().unwrap_or(0)
            })
            .collect();
        // If the table can be scrolled, words are not broken to make it fit.
        let max = if render.sideways.is_some() { COLUMN_WHOLE_COLS } else { COLUMN_MIN_COLS };
        let floors: Vec<usize> = longest_words
            .iter()
            .zip(&widths)
            .map(|(word, cols)| (*word).min(max).max(COLUMN_MIN_COLS).min(*cols))
            .collect();
        if floors.iter().sum::<usize>() <= room {
            narrow(&mut widths, &floors, room);
            let shown: Vec<(usize, usize)> = widths.into_iter().enumerate().collect();
            return (self.draw_columns(&shown, render), 0);
        }
        let shown = render.sideways.and_then(|left_out| {
            for (cols, word) in widths.iter_mut().zip(&longest_words) {
                *cols = (*cols).min(COLUMN_GOOD_COLS.max((*word).min(COLUMN_WORD_COLS)));
            }
            window(&widths, usize::from(left_out), usize::from(cols))
        });
        let Some(shown) = shown else { return (self.draw_fields(render, cols), 0) };
        let mut out = self.draw_columns(&shown, render);
        let first = shown.get(1).map_or(1, |(column, _)| *column);
        let (before, after) = (first - 1, count - first - (shown.len() - 1));
        out.push(more(before, after, render, cols));
        (out, u16::try_from(before + after).unwrap_or(u16::MAX))
    }

    /// Draws a range of columns with their widths. Rules separate rows only if one of both is taller than a
    /// line.
    fn draw_columns(&self, shown: &[(usize, usize)], render: &RenderContext<'_>) -> Vec<Line<'static>> {
        let widths: Vec<usize> = shown.iter().map(|(_, cols)| *cols).collect();
        let is_tall = |row: &[Cell]| {
            shown.iter().any(|(column, cols)| row.get(*column).is_some_and(|cell| spans_width(cell) > *cols))
        };
        let mut out = Vec::new();
        self.draw_row(&self.head, shown, render, &mut out);
        out.push(rule(&widths, render));
        let mut was_tall = false;
        for (index, row) in self.rows.iter().enumerate() {
            let is_tall = is_tall(row);
            if index > 0 && (is_tall || was_tall) {
                out.push(rule(&widths, render));
            }
            was_tall = is_tall;
            self.draw_row(row, shown, render, &mut out);
        }
        out
    }

    fn draw_row(
        &self,
        row: &[Cell],
        shown: &[(usize, usize)],
        render: &RenderContext<'_>,
        out: &mut Vec<Line<'static>>,
    ) {
        let border = render.theme.style(Role::TableBorder);
        let wrapped: Vec<Vec<Line<'static>>> = shown
            .iter()
            .map(|(column, cols)| {
                let cell = row.get(*column).cloned().unwrap_or_default();
                wrap_line(&Line::from(cell), u16::try_from(*cols).unwrap_or(u16::MAX))
            })
            .collect();
        let height = wrapped.iter().map(Vec::len).max().unwrap_or(1);
        for at in 0..height {
            let mut spans = Vec::new();
            for (index, (lines, (column, cols))) in wrapped.iter().zip(shown).enumerate() {
                if index > 0 {
                    spans.push(Mark::CELL.span(format!(" {} ", render.glyphs.pipe), border));
                }
                let cell = lines.get(at).map(|line| line.spans.clone()).unwrap_or_default();
                let spare = cols.saturating_sub(spans_width(&cell));
                let left = match self.alignments.get(*column) {
                    Some(Alignment::Right) => spare,
                    Some(Alignment::Center) => spare / 2,
                    _ => 0,
                };
                push_blank(&mut spans, left);
                spans.extend(cell);
                if index + 1 < shown.len() {
                    push_blank(&mut spans, spare - left);
                }
            }
            out.push(Line::from(spans));
        }
    }

    /// Draws each row as a list of `header: cell`, for tables that cannot fit.
    fn draw_fields(&self, render: &RenderContext<'_>, cols: u16) -> Vec<Line<'static>> {
        let mut out = Vec::new();
        let indent = [Span::raw("  ")];
        for (index, row) in self.rows.iter().enumerate() {
            if index > 0 {
                out.push(rule(&[usize::from(cols)], render));
            }
            for (at, cell) in row.iter().enumerate() {
                let mut spans = self.head.get(at).cloned().unwrap_or_default();
                if !spans.is_empty() {
                    spans.push(Span::styled(": ", render.theme.style(Role::TableHead)));
                }
                spans.extend(cell.iter().cloned());
                out.extend(wrap_prefixed(&Line::from(spans), cols, &[], &indent));
            }
        }
        if self.rows.is_empty() {
            for cell in &self.head {
                out.extend(wrap_line(&Line::from(cell.clone()), cols));
            }
        }
        out
    }
}

/// The visible columns of a scrolled table: the first one, which labels the row, and as many as fit after the
/// scrolled ones, each with its preferred width or slightly less. `None` if not even two fit.
fn window(widths: &[usize], left_out: usize, cols: usize) -> Option<Vec<(usize, usize)>> {
    let good = |column: usize| widths.get(column).copied().unwrap_or(1);
    let min = |column: usize| good(column).min(COLUMN_MIN_COLS);
    let fits = |from: usize, count: usize, each: &dyn Fn(usize) -> usize| {
        let all: usize = (from..from + count).map(|column| each(column) + 3).sum();
        each(0) + all <= cols
    };
    // A single column cannot be scrolled.
    let end = widths.len().checked_sub(1).filter(|end| *end > 0)?;
    // Limits the offset to the position at which the last column is visible.
    let mut from = 1 + left_out.min(end.saturating_sub(1));
    while from > 1 && fits(from - 1, end + 2 - from, &good) {
        from -= 1;
    }
    let mut count = 1;
    while from + count <= end && fits(from, count + 1, &good) {
        count += 1;
    }
    if !fits(from, count, &min) {
        return None;
    }
    let mut shown: Vec<usize> = std::iter::once(0).chain(from..from + count).collect();
    let mut wide: Vec<usize> = shown.iter().map(|column| good(*column)).collect();
    let floors: Vec<usize> = shown.iter().map(|column| min(*column)).collect();
    narrow(&mut wide, &floors, cols - 3 * count);
    Some(shown.drain(..).zip(wide).collect())
}

/// The line with the number of hidden columns on both sides.
fn more(before: usize, after: usize, render: &RenderContext<'_>, cols: u16) -> Line<'static> {
    let columns = |count| counted(count, "more column", "more columns");
    let left = if before > 0 { format!("< {}", columns(before)) } else { String::new() };
    let right = if after > 0 { format!("{} >", columns(after)) } else { String::new() };
    let fill = usize::from(cols).saturating_sub(left.len() + right.len()).clamp(2, 4);
    let blank = if left.is_empty() || right.is_empty() { String::new() } else { " ".repeat(fill) };
    let text = truncate(&format!("{left}{blank}{right}"), usize::from(cols));
    Mark::NO_LINE.row(Line::styled(text, render.theme.style(Role::TextDim)))
}

fn word_cols(cell: &[Span<'_>]) -> usize {
    let text: String = cell.iter().map(|span| span.content.as_ref()).collect();
    text.split_whitespace().map(width).max().unwrap_or(0)
}

fn push_blank(spans: &mut Cell, cols: usize) {
    if cols > 0 {
        spans.push(Mark::APART.span(" ".repeat(cols), Style::default()));
    }
}

/// Reduces the widest columns until all fit, but none below its minimum.
fn narrow(widths: &mut [usize], floors: &[usize], room: usize) {
    let at = |level: usize, index: usize, cols: usize| {
        let floor = floors.get(index).copied().unwrap_or(1).min(cols);
        cols.min(level).max(floor)
    };
    let total = |level: usize| -> usize {
        widths.iter().enumerate().map(|(index, cols)| at(level, index, *cols)).sum()
    };
    let (mut low, mut high) = (1, widths.iter().copied().max().unwrap_or(1));
    if total(high) <= room {
        return;
    }
    // Binary search for the highest level that fits.
    while low + 1 < high {
        let middle = usize::midpoint(low, high);
        if total(middle) <= room { low = middle } else { high = middle }
    }
    let mut spare = room.saturating_sub(total(low));
    for (index, cols) in widths.iter_mut().enumerate().rev() {
        let given = at(low, index, *cols);
        let more = usize::from(spare > 0 && given == low && *cols > low);
        spare -= more;
        *cols = given + more;
    }
}

fn rule(widths: &[usize], render: &RenderContext<'_>) -> Line<'static> {
    let (rule, join) = (render.glyphs.rule, render.glyphs.join);
    let text = widths.iter().map(|cols| rule.repeat(*cols)).collect::<Vec<_>>();
    Mark::NO_LINE
        .row(Line::styled(text.join(&format!("{rule}{join}{rule}")), render.theme.style(Role::TableBorder)))
}
