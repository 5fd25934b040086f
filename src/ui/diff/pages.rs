//! The line layout of a diff for a width, for drawing any range of lines.
//!
//! Counts the lines of a diff without drawing it, and draws the visible ones. Rows are drawn in fixed groups,
//! so that highlighting does not depend on the scroll offset.
//!
//! Invariants: the line count equals the number of drawn lines.

use std::ops::Range;

use crate::ui::text::{Line, Span};

use crate::ui::render_context::RenderContext;
use crate::ui::text::{row_ranges, width, wrap_whole};

use super::draw::{Layout, clean, columns};
use super::{Diff, Row, RowKind};

const RUN_ROWS: usize = 48;
const KEPT_RUNS: usize = 6;

/// The line layout of a diff.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pages {
    layout: Option<Layout>,
    cols: u16,
    wraps: bool,
    ends: Vec<u32>,
    /// Cached groups, latest last.
    drawn: Vec<(usize, Vec<Line<'static>>)>,
}

impl Pages {
    pub fn of(diff: &Diff, layout: Layout, cols: u16, wraps: bool) -> Self {
        let mut end = 0_u32;
        let ends = (0..diff.len(layout)).map(|row| {
            let lines = if wraps { diff.lines_of(row, layout, cols) } else { 1 };
            end = end.saturating_add(u32::try_from(lines).unwrap_or(u32::MAX));
            end
        });
        Self { layout: Some(layout), cols, wraps, ends: ends.collect(), drawn: Vec::new() }
    }

    pub fn layout(&self) -> Layout {
        self.layout.unwrap_or(Layout::Unified)
    }

    pub fn len(&self) -> usize {
        self.ends.last().map_or(0, |end| *end as usize)
    }

    /// The first line of a row.
    pub fn line_of(&self, row: usize) -> usize {
        let before = row.checked_sub(1).and_then(|before| self.ends.get(before).or(self.ends.last()));
        before.map_or(0, |end| *end as usize)
    }

    /// Clears the cache after a change of colours.
    pub fn forget(&mut self) {
        self.drawn.clear();
    }

    pub fn lines(
        &mut self,
        diff: &Diff,
        range: Range<usize>,
        render: &RenderContext<'_>,
    ) -> Vec<Line<'static>> {
        let range = range.start..range.end.min(self.len());
        let mut out = Vec::new();
        let mut at = range.start;
        while at < range.end {
            let row = self.ends.partition_point(|end| *end as usize <= at);
            let run = row / RUN_ROWS;
            let begin = self.line_of(run * RUN_ROWS);
            let lines = self.run(diff, run, render);
            let part = lines.iter().skip(at - begin).take(range.end - at);
            let before = out.len();
            out.extend(part.cloned());
            if out.len() == before {
                break;
            }
            at += out.len() - before;
        }
        out
    }

    fn run(&mut self, diff: &Diff, run: usize, render: &RenderContext<'_>) -> &[Line<'static>] {
        let known = self.drawn.iter().position(|(known, _)| *known == run);
        let drawn = if let Some(at) = known {
            self.drawn.remove(at)
        } else {
            let layout = self.layout();
            let rows = run * RUN_ROWS..((run + 1) * RUN_ROWS).min(self.ends.len());
            let render = RenderContext { wraps: self.wraps, ..*render };
            (run, diff.draw(rows, layout, &render, self.cols))
        };
        if self.drawn.len() >= KEPT_RUNS {
            self.drawn.remove(0);
        }
        self.drawn.push(drawn);
        self.drawn.last().map_or(&[], |(_, lines)| lines)
    }
}

impl Diff {
    fn lines_of(&self, row: usize, layout: Layout, cols: u16) -> usize {
        let head = self.head_cols();
        match layout {
            Layout::Unified => self.rows.get(row).map_or(0, |row| self.height(row, head, cols)),
            Layout::SideBySide => {
                let Some(side) = self.sides.get(row) else { return 0 };
                let at = |index: Option<u32>| index.and_then(|index| self.rows.get(index as usize));
                let (left, right) = (at(side.left), at(side.right));
                if let Some(row) = left.filter(|row| matches!(row.kind, RowKind::Gap(_) | RowKind::Note(_))) {
                    return self.height(row, head, cols);
                }
                let (left_cols, right_cols) = columns(cols);
                // An unchanged line is wrapped on the right as it is on the left.
                let right = right.filter(|_| side.left != side.right);
                let left = left.map_or(0, |row| self.height(row, head, left_cols));
                left.max(right.map_or(0, |row| self.height(row, head, right_cols))).max(1)
            }
        }
    }

    pub(super) fn width(&self, row: &Row) -> usize {
        let text = self.text(row);
        if is_ascii(text) { text.len() } else { width(&clean(text)) }
    }

    fn height(&self, row: &Row, head_cols: usize, cols: u16) -> usize {
        if matches!(row.kind, RowKind::Gap(_) | RowKind::Note(_)) {
            return 1;
        }
        let room = usize::from(cols).saturating_sub(head_cols).max(4);
        let text = self.text(row);
        if is_ascii(text) {
            let is_space = |at: usize| text.as_bytes().get(at) == Some(&b' ');
            return if text.len() <= room { 1 } else { row_ranges(text.len(), room, |_| 1, is_space).len() };
        }
        let text = clean(text);
        if width(&text) <= room {
            return 1;
        }
        wrap_whole(&Line::from(Span::raw(text)), u16::try_from(room).unwrap_or(u16::MAX)).len()
    }
}

/// Whether a text consists of visible ASCII characters, one column each.
fn is_ascii(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b' '..=b'~'))
}
