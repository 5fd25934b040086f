//! Tables: columns that fit, cells that wrap; a list of fields where even that cannot be.

use pulldown_cmark::Alignment;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use crate::ui::look::Look;
use crate::ui::text::mark::Mark;
use crate::ui::text::{width, wrap_line, wrap_prefixed};
use crate::ui::theme::Role;

/// A column is never narrower than this (or its widest cell).
const COLUMN_MIN_COLS: usize = 6;

/// The text of a cell, with styles.
pub(super) type Cell = Vec<Span<'static>>;

/// A table while it is read.
#[derive(Default)]
pub(super) struct Table {
    /// How columns are aligned.
    pub alignments: Vec<Alignment>,
    /// The first row.
    pub head: Vec<Cell>,
    /// The other rows.
    pub rows: Vec<Vec<Cell>>,
    /// Whether the head is being read.
    pub is_head: bool,
}

impl Table {
    /// Adds a cell to the row that is being read.
    pub fn push(&mut self, cell: Cell) {
        if self.is_head {
            self.head.push(cell);
        } else if let Some(row) = self.rows.last_mut() {
            row.push(cell);
        }
    }

    /// Draws the table within so many columns.
    pub fn draw(&self, look: &Look<'_>, cols: u16) -> Vec<Line<'static>> {
        let count = self.head.len().max(self.rows.iter().map(Vec::len).max().unwrap_or(0));
        if count == 0 {
            return Vec::new();
        }
        let all = || std::iter::once(&self.head).chain(&self.rows);
        let mut widths = vec![1_usize; count];
        for row in all() {
            for (cell, widest) in row.iter().zip(&mut widths) {
                *widest = (*widest).max(cell_cols(cell));
            }
        }
        let room = usize::from(cols).saturating_sub(3 * (count - 1));
        let least: usize = widths.iter().map(|cols| (*cols).min(COLUMN_MIN_COLS)).sum();
        if least > room {
            return self.draw_fields(look, cols);
        }
        narrow(&mut widths, room);
        let mut out = Vec::new();
        let is_wrapped = all().any(|row| row.iter().zip(&widths).any(|(cell, cols)| cell_cols(cell) > *cols));
        self.draw_row(&self.head, &widths, look, &mut out);
        out.push(rule(&widths, look));
        for (index, row) in self.rows.iter().enumerate() {
            if is_wrapped && index > 0 {
                out.push(rule(&widths, look));
            }
            self.draw_row(row, &widths, look, &mut out);
        }
        out
    }

    fn draw_row(&self, row: &[Cell], widths: &[usize], look: &Look<'_>, out: &mut Vec<Line<'static>>) {
        let border = look.theme.style(Role::TableBorder);
        let wrapped: Vec<Vec<Line<'static>>> = widths
            .iter()
            .enumerate()
            .map(|(index, cols)| {
                let cell = row.get(index).cloned().unwrap_or_default();
                wrap_line(&Line::from(cell), u16::try_from(*cols).unwrap_or(u16::MAX))
            })
            .collect();
        let height = wrapped.iter().map(Vec::len).max().unwrap_or(1);
        for at in 0..height {
            let mut spans = Vec::new();
            for (index, (lines, cols)) in wrapped.iter().zip(widths).enumerate() {
                if index > 0 {
                    spans.push(Mark::CELL.span(format!(" {} ", look.glyphs.pipe), border));
                }
                let cell = lines.get(at).map(|line| line.spans.clone()).unwrap_or_default();
                let spare = cols.saturating_sub(cell_cols(&cell));
                let left = match self.alignments.get(index) {
                    Some(Alignment::Right) => spare,
                    Some(Alignment::Center) => spare / 2,
                    _ => 0,
                };
                push_blank(&mut spans, left);
                spans.extend(cell);
                if index + 1 < widths.len() {
                    push_blank(&mut spans, spare - left);
                }
            }
            out.push(Line::from(spans));
        }
    }

    /// Each row as a list of `head: cell`, for tables that no wrapping can fit.
    fn draw_fields(&self, look: &Look<'_>, cols: u16) -> Vec<Line<'static>> {
        let mut out = Vec::new();
        let indent = [Span::raw("  ")];
        for (index, row) in self.rows.iter().enumerate() {
            if index > 0 {
                out.push(rule(&[usize::from(cols)], look));
            }
            for (at, cell) in row.iter().enumerate() {
                let mut spans = self.head.get(at).cloned().unwrap_or_default();
                if !spans.is_empty() {
                    spans.push(Span::styled(": ", look.theme.style(Role::TableHead)));
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

fn cell_cols(cell: &[Span<'_>]) -> usize {
    cell.iter().map(|span| width(&span.content)).sum()
}

fn push_blank(spans: &mut Cell, cols: usize) {
    if cols > 0 {
        spans.push(Mark::APART.span(" ".repeat(cols), Style::default()));
    }
}

/// Takes room from the widest columns until all fit.
fn narrow(widths: &mut [usize], room: usize) {
    loop {
        let total: usize = widths.iter().sum();
        if total <= room {
            return;
        }
        let widest = widths.iter().copied().max().unwrap_or(0);
        let next = widths.iter().copied().filter(|cols| *cols < widest).max().unwrap_or(0);
        let several = widths.iter().filter(|cols| **cols == widest).count();
        let excess = total - room;
        let step = (widest - next.max(1)).min(excess.div_ceil(several)).max(1);
        let mut left = excess;
        for cols in widths.iter_mut().filter(|cols| **cols == widest) {
            let take = step.min(left).min(cols.saturating_sub(1));
            *cols -= take;
            left -= take;
        }
        if left == excess {
            return;
        }
    }
}

fn rule(widths: &[usize], look: &Look<'_>) -> Line<'static> {
    let (rule, join) = (look.glyphs.rule, look.glyphs.join);
    let text = widths.iter().map(|cols| rule.repeat(*cols)).collect::<Vec<_>>();
    Mark::NO_LINE
        .row(Line::styled(text.join(&format!("{rule}{join}{rule}")), look.theme.style(Role::TableBorder)))
}
