//! Marks: what copying must know of a drawn row, kept where no cell shows it.
//!
//! A style can take attributes away, and the bits that stand for no attribute take nothing away. Marks are
//! written into those bits of a span's or a row's style while it is laid out: they cost no memory and no time,
//! go through wrapping and patching with the style, and end where the row becomes cells.
//! Not its duty: what is selected (`transcript::select`).

use std::ops::Range;

use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use unicode_segmentation::UnicodeSegmentation;

use super::grapheme_width;

/// Something that copying must know. Marks can be joined with `|`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark(u16);

impl Mark {
    /// No text: a gutter, an icon, a border, a fill.
    pub const APART: Self = Self(1 << 15);
    /// The row goes on where the one above it ended.
    pub const JOINED: Self = Self(1 << 14);
    /// The row goes on behind a blank that was left out at the break.
    pub const SPACED: Self = Self(1 << 13);
    /// The border between two cells of a table.
    pub const CELL: Self = Self((1 << 12) | Self::APART.0);
    /// It stands in the second column of two.
    pub const SECOND: Self = Self(1 << 11);
    /// There is no line of text here, not even an empty one: a rule, a label.
    pub const NO_LINE: Self = Self((1 << 10) | Self::APART.0);

    /// Lines are left out here that can be shown.
    pub const GAP: Self = Self((1 << 9) | Self::NO_LINE.0);

    const ALL: u16 = 0b1111_1110_0000_0000;

    /// The marks in a style.
    pub fn of(style: Style) -> Self {
        Self(style.sub_modifier.bits() & Self::ALL)
    }

    /// The style with these marks, beside those that it has.
    pub fn on(self, style: Style) -> Style {
        Style { sub_modifier: style.sub_modifier | Modifier::from_bits_retain(self.0), ..style }
    }

    /// Text that is none.
    pub fn span(self, text: impl Into<std::borrow::Cow<'static, str>>, style: Style) -> Span<'static> {
        Span::styled(text, self.on(style))
    }

    /// Marks a whole row.
    pub fn row(self, mut line: Line<'static>) -> Line<'static> {
        line.style = self.on(line.style);
        line
    }

    /// Whether all of `other` are among these.
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

/// How a row stands to the one above it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Join {
    /// It begins a line.
    Line,
    /// It goes on, with nothing in between.
    Joined,
    /// It goes on, with a blank in between.
    Spaced,
    /// It is no line at all.
    Nothing,
}

/// A piece of text in a row: where it begins, and how wide it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Glyph<'a> {
    /// Its first column in the row.
    pub col: usize,
    /// How many columns it takes.
    pub cols: usize,
    /// What it is; `\t` for the border between two cells of a table.
    pub text: &'a str,
}

/// Whether a row has two columns, each a text of its own.
pub fn has_columns(line: &Line<'_>) -> bool {
    line.spans.iter().any(|span| Mark::of(span.style).has(Mark::SECOND))
}

/// Whether this place of a row is in its second column.
pub fn is_second(line: &Line<'_>, col: usize) -> bool {
    let mut end = 0;
    for span in &line.spans {
        end += super::width(&span.content);
        if Mark::of(span.style).has(Mark::SECOND) {
            return col + super::width(&span.content) >= end;
        }
    }
    false
}

/// How a row goes on from the one above; of two columns, the first or the second.
pub fn join(line: &Line<'_>, is_second: bool) -> Join {
    let mut all = Mark::of(line.style);
    let has_columns = has_columns(line);
    let mut is_there = !has_columns;
    for span in &line.spans {
        let mark = Mark::of(span.style);
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

/// The text of a row from left to right, without what stands apart.
pub fn glyphs<'a>(line: &'a Line<'_>, is_second: bool) -> impl Iterator<Item = Glyph<'a>> {
    let has_columns = has_columns(line);
    let mut at = 0;
    line.spans.iter().flat_map(move |span| {
        let mark = Mark::of(line.style.patch(span.style));
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

/// The columns of a row that are text within a range, as runs.
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

/// Rows put together into lines, with their wraps undone.
#[derive(Debug, Default)]
pub struct Lines {
    text: String,
    has_rows: bool,
}

impl Lines {
    /// Adds what a row says within a range of columns. A row of one column is in both texts.
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

    /// Adds blank lines, but not before the first row.
    pub fn add_blank(&mut self, count: usize) {
        if self.has_rows {
            self.text.extend(std::iter::repeat_n('\n', count));
        }
    }

    /// What all rows say.
    pub fn into_text(self) -> String {
        self.text
    }
}

/// What rows say, with their wraps undone. Rows of two columns give the first.
pub fn text_of<'a>(rows: impl IntoIterator<Item = &'a Line<'static>>) -> String {
    let mut lines = Lines::default();
    for row in rows {
        lines.add(row, false, &(0..usize::MAX));
    }
    lines.into_text()
}

#[cfg(test)]
mod tests {
    use ratatui::buffer::Buffer;
    use ratatui::layout::Rect;

    use super::*;

    fn said(row: &Line<'_>, is_second: bool, cols: Range<usize>) -> String {
        let mut lines = Lines::default();
        lines.add(row, is_second, &cols);
        lines.into_text()
    }

    #[test]
    fn no_cell_shows_a_mark() {
        let all = Mark::APART | Mark::JOINED | Mark::SPACED | Mark::CELL | Mark::SECOND | Mark::NO_LINE;
        let bold = Style::default().add_modifier(Modifier::BOLD);
        let draw = |line: &Line<'_>| {
            let mut buf = Buffer::empty(Rect::new(0, 0, 4, 1));
            buf.set_line(0, 0, line, 4);
            buf
        };
        let marked = all.row(Line::from(all.span("ab", bold)));
        assert_eq!(draw(&marked), draw(&Line::from(Span::styled("ab", bold))));
    }

    #[test]
    fn marks_stay_when_styles_are_patched() {
        let marked = Mark::APART.on(Style::default());
        let patched = marked.patch(Style::default().add_modifier(Modifier::DIM));
        assert!(Mark::of(patched).has(Mark::APART));
        assert!(!Mark::of(patched).has(Mark::JOINED));
    }

    #[test]
    fn rows_become_lines_again() {
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
    fn two_columns_are_two_texts() {
        let second = |text: &'static str| Mark::SECOND.span(text, Style::default());
        let row =
            Line::from(vec![Span::raw("left"), Mark::APART.span(" | ", Style::default()), second("right")]);
        assert_eq!(said(&row, true, 0..usize::MAX), "right");
        assert_eq!(said(&row, false, 1..99), "eft");
        assert!(is_second(&row, 7) && !is_second(&row, 3));
        assert_eq!(text_runs(&row, true, &(0..99)).first(), Some(&(7..12)));
    }

    #[test]
    fn a_wide_character_is_taken_by_either_half() {
        let row = Line::from("日本");
        assert_eq!(said(&row, false, 1..2), "日");
        assert_eq!(text_runs(&row, false, &(3..4)).first(), Some(&(2..4)));
    }
}
