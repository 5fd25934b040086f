//! Marks for copying: information about rows of text that is not drawn. `transcript::select` handles the selection.

use std::ops::Range;

use ratatui::style::Style;
use unicode_segmentation::UnicodeSegmentation;

use super::{Line, Span, grapheme_width, spans_width};

/// Information for copying. Marks can be combined with `|`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Mark(u16);

impl Mark {
    /// Decoration, not text: a gutter, an icon, a border, a fill.
    pub const APART: Self = Self(1 << 15);
    /// The row continues the previous one.
    pub const JOINED: Self = Self(1 << 14);
    /// The row continues the previous one after a space that was removed at the wrap.
    pub const SPACED: Self = Self(1 << 13);
    /// The border between two table cells.
    pub const CELL: Self = Self((1 << 12) | Self::APART.0);
    /// Part of the second column of two.
    pub const SECOND: Self = Self(1 << 11);
    /// The row is not a line of text, not even an empty one: a rule, a label.
    pub const NO_LINE: Self = Self((1 << 10) | Self::APART.0);

    /// Hidden lines that can be expanded.
    pub const GAP: Self = Self((1 << 9) | Self::NO_LINE.0);

    pub fn span(self, text: impl Into<std::borrow::Cow<'static, str>>, style: Style) -> Span<'static> {
        Span::styled(text, style).marked(self)
    }

    pub fn row(self, mut line: Line<'static>) -> Line<'static> {
        line.mark = line.mark | self;
        line
    }

    /// Whether all of `other` are included.
    pub fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

impl std::ops::BitOr for Mark {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// How a row continues the previous one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Join {
    Line,
    /// It continues without a separator.
    Joined,
    /// It continues after a space.
    Spaced,
    /// It is not a line of text.
    Nothing,
}

/// A part of a row's text with its position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Glyph<'a> {
    pub col: usize,
    pub cols: usize,
    /// The text; `\t` for the border between two table cells.
    pub text: &'a str,
}

/// Fills a row with blanks that are not copied, up to a width.
pub fn fill(spans: &mut Vec<Span<'static>>, cols: u16, style: Style) {
    let spare = usize::from(cols).saturating_sub(spans_width(spans));
    if spare > 0 {
        spans.push(Mark::APART.span(" ".repeat(spare), style));
    }
}

/// Whether a row has two columns with separate texts.
pub fn has_columns(line: &Line<'_>) -> bool {
    line.spans.iter().any(|span| span.tag.mark.has(Mark::SECOND))
}

/// Whether a column of a row is in its second text column.
pub fn is_second(line: &Line<'_>, col: usize) -> bool {
    let mut end = 0;
    for span in &line.spans {
        end += span.width();
        if span.tag.mark.has(Mark::SECOND) {
            return col + span.width() >= end;
        }
    }
    false
}

/// How a row continues the previous one, for the first or the second column.
pub fn join(line: &Line<'_>, is_second: bool) -> Join {
    let mut all = line.mark;
    let has_columns = has_columns(line);
    let mut is_there = !has_columns;
    for span in &line.spans {
        let mark = span.tag.mark;
        if !has_columns || mark.has(Mark::SECOND) == is_second {
            all = all | Mark(mark.0 & !Mark::APART.0);
            is_there = true;
        }
    }
    match all {
        _ if !is_there || all.0 & (1 << 10) != 0 => Join::Nothing,
        _ if all.has(Mark::JOINED) => Join::Joined,
        _ if all.has(Mark::SPACED) => Join::Spaced,
        _ => Join::Line,
    }
}

/// The text of a row without decoration.
pub fn glyphs<'a>(line: &'a Line<'_>, is_second: bool) -> impl Iterator<Item = Glyph<'a>> {
    let has_columns = has_columns(line);
    let mut at = 0;
    line.spans.iter().flat_map(move |span| {
        let mark = line.mark | span.tag.mark;
        let is_here = !has_columns || mark.has(Mark::SECOND) == is_second;
        let is_cell = is_here && mark.has(Mark::CELL);
        let is_text = is_here && !mark.has(Mark::APART);
        let start = at;
        let content = span.content.as_ref();
        let cols = super::width(content);
        at += cols;
        let mut col = start;
        let text = content.graphemes(true).filter(move |_| is_text).map(move |text| {
            let cols = grapheme_width(text);
            col += cols;
            Glyph { col: col - cols, cols, text }
        });
        text.chain(is_cell.then_some(Glyph { col: start, cols, text: "\t" }))
    })
}

/// The column ranges of text in a row, within a range.
pub fn text_runs(line: &Line<'_>, is_second: bool, cols: &Range<usize>) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    for glyph in glyphs(line, is_second).filter(|glyph| glyph.text != "\t") {
        let (start, end) = (glyph.col, glyph.col + glyph.cols);
        if end <= cols.start || start >= cols.end {
            continue;
        }
        match runs.last_mut() {
            Some(last) if last.end == start => last.end = end,
            _ => runs.push(start..end),
        }
    }
    runs
}

/// Rows that are joined to lines, with wraps removed.
#[derive(Debug, Default)]
pub struct Lines {
    text: String,
    has_rows: bool,
}

impl Lines {
    /// Adds the text of a row within a range of columns. A row with a single column belongs to both texts.
    pub fn add(&mut self, row: &Line<'_>, is_second: bool, cols: &Range<usize>) {
        let is_second = is_second && has_columns(row);
        match join(row, is_second) {
            Join::Nothing => return,
            Join::Line if self.has_rows => self.text.push('\n'),
            Join::Spaced if self.has_rows => self.text.push(' '),
            Join::Line | Join::Spaced | Join::Joined => {}
        }
        self.has_rows = true;
        for glyph in glyphs(row, is_second) {
            if glyph.col + glyph.cols > cols.start && glyph.col < cols.end {
                self.text.push_str(glyph.text);
            }
        }
    }

    /// Adds blank lines, except before the first row.
    pub fn add_blank(&mut self, count: usize) {
        if self.has_rows {
            self.text.extend(std::iter::repeat_n('\n', count));
        }
    }

    pub fn into_text(self) -> String {
        self.text
    }
}

/// The text of rows, with wraps removed. For rows with two columns, the first one.
pub fn text_of<'a>(rows: impl IntoIterator<Item = &'a Line<'static>>) -> String {
    let mut lines = Lines::default();
    for row in rows {
        lines.add(row, false, &(0..usize::MAX));
    }
    lines.into_text()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text_in(row: &Line<'_>, is_second: bool, cols: Range<usize>) -> String {
        let mut lines = Lines::default();
        lines.add(row, is_second, &cols);
        lines.into_text()
    }

    #[test]
    fn rows_are_joined_to_lines() {
        let gutter = || Mark::APART.span(" 1 ", Style::default());
        let rows = [
            Line::from(vec![gutter(), Span::raw("one")]),
            Mark::JOINED.row(Line::from(vec![gutter(), Span::raw("two")])),
            Mark::NO_LINE.row(Line::from("-----")),
            Mark::SPACED.row(Line::from("three")),
            Line::default(),
            Line::from(gutter()),
            Line::from(vec![Span::raw("a"), Mark::CELL.span(" | ", Style::default()), Span::raw("b")]),
        ];
        assert_eq!(text_of(&rows), "onetwo three\n\n\na\tb");
    }

    #[test]
    fn columns_have_separate_texts() {
        let second = |text: &'static str| Mark::SECOND.span(text, Style::default());
        let row =
            Line::from(vec![Span::raw("left"), Mark::APART.span(" | ", Style::default()), second("right")]);
        assert_eq!(text_in(&row, true, 0..usize::MAX), "right");
        assert_eq!(text_in(&row, false, 1..99), "eft");
        assert!(is_second(&row, 7) && !is_second(&row, 3));
        assert_eq!(text_runs(&row, true, &(0..99)).first(), Some(&(7..12)));
    }

    #[test]
    fn wide_characters_are_selected_by_either_half() {
        let row = Line::from("日本");
        assert_eq!(text_in(&row, false, 1..2), "日");
        assert_eq!(text_runs(&row, false, &(3..4)).first(), Some(&(2..4)));
    }
}
