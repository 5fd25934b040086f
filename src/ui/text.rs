//! Text that is safe to draw: sanitising, width, wrapping, shortening.
//!
//! Duty: the one place that knows how wide text is and which characters may reach a cell.
//! Not its duty: styles beyond carrying them along; output of commands (`terminal` reads that through vt100).
//! Text enters as an agent sent it and leaves as something that [`width`] measures exactly as the screen's
//! buffer does. Invariants: [`sanitize`] leaves no control character but line ends and tabs, and no character
//! that reorders or hides its neighbours; no wrapped line is wider than asked for.

use std::borrow::Cow;
use std::path::Path;

use ratatui::buffer::{Buffer, CellWidth};
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthChar;

use super::picture::strip;

pub mod copy_hint;
pub mod link;
mod reveal;
mod wrap;

pub use reveal::{Shown, clip, reveal, reveal_bytes, reveal_line, reveal_lines, reveal_path, reveal_words};
pub use wrap::{Graphemes, hard_wrap, wrap_line, wrap_prefixed, wrap_whole};

/// How many zero-width marks may follow one another; more of them pile up over other lines.
const MARKS_MAX: usize = 6;

/// Columns between tab stops.
pub const TAB_COLS: usize = 4;

/// Columns between the tab stops of a terminal.
pub const TERMINAL_TAB_COLS: usize = 8;

/// Writes a line into cells, as [`Buffer::set_line`] does.
pub fn put_line(buf: &mut Buffer, mut x: u16, y: u16, line: &Line<'_>, cols: u16) {
    let end = x.saturating_add(cols).min(buf.area.right());
    for span in line {
        let style = line.style.patch(span.style);
        x = put_text(buf, x, y, &span.content, end.saturating_sub(x), style);
    }
}

/// Writes text into at most so many cells, as [`Buffer::set_stringn`] does, and returns the column behind it. Most
/// text has letters that are a cell each: that goes without a search for clusters, which otherwise is a third of a
/// frame.
pub fn put_text(buf: &mut Buffer, x: u16, y: u16, text: &str, cols: u16, style: Style) -> u16 {
    let room = cols.min(buf.area.right().saturating_sub(x));
    if !text.chars().all(is_one_cell) {
        return buf.set_stringn(x, y, text, usize::from(room), style).0;
    }
    if y < buf.area.top() || y >= buf.area.bottom() || x < buf.area.left() || room == 0 {
        return x;
    }
    let from = usize::from(y - buf.area.y) * usize::from(buf.area.width) + usize::from(x - buf.area.x);
    let cells = buf.content.get_mut(from..from + usize::from(room)).unwrap_or_default();
    let mut count = 0;
    for (cell, letter) in cells.iter_mut().zip(text.chars()) {
        // Most cells are blank already.
        if letter != ' ' || cell.symbol() != " " {
            cell.set_char(letter);
        }
        cell.set_style(style);
        count += 1;
    }
    x + count
}

/// Whether a letter is one cell wide and joins no other of its kind: printable ASCII, Latin letters and signs, dashes
/// and quotes, lines and blocks.
fn is_one_cell(letter: char) -> bool {
    matches!(letter,
        ' '..='~' | '\u{a1}'..='\u{ac}' | '\u{ae}'..='\u{2ff}' | '\u{2010}'..='\u{2027}' | '\u{2030}'..='\u{203b}'
        | '\u{2500}'..='\u{25fc}')
}

/// Makes text safe to draw. Escape sequences go, control characters become visible pictures, characters
/// that reorder or hide text go, `\r\n` and stray `\r` become `\n`; `\n` and `\t` stay.
pub fn sanitize(text: &str) -> Cow<'_, str> {
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~' | b'\n' | b'\t')) {
        return Cow::Borrowed(text);
    }
    let mut marks = 0;
    let mut previous = '\0';
    let is_clean = text.chars().all(|c| {
        let fate = fate(c, previous, &mut marks);
        previous = c;
        matches!(fate, Fate::Keep)
    });
    if is_clean { Cow::Borrowed(text) } else { Cow::Owned(clean(text)) }
}

enum Fate {
    Keep,
    Drop,
    Replace(char),
    Escape,
    Return,
}

/// What becomes of a character. `marks` counts zero-width ones in a row.
fn fate(c: char, previous: char, marks: &mut usize) -> Fate {
    match c {
        '\n' | '\t' | ' '..='~' => {
            *marks = 0;
            Fate::Keep
        }
        '\u{1b}' | '\u{9b}' => Fate::Escape,
        '\r' => Fate::Return,
        '\0'..='\u{1f}' => Fate::Replace(char::from_u32(0x2400 + c as u32).unwrap_or('\u{fffd}')),
        '\u{7f}' => Fate::Replace('\u{2421}'),
        '\u{80}'..='\u{9f}' => Fate::Replace('\u{fffd}'),
        '\u{2028}' | '\u{2029}' => Fate::Replace('\n'),
        // Parlor's own, for pictures.
        _ if strip::is_of_picture(c) => Fate::Replace('\u{fffd}'),
        // Blank but not spaces: they would make empty cells that look like nothing.
        '\u{115f}' | '\u{1160}' | '\u{3164}' | '\u{ffa0}' | '\u{2800}' => Fate::Replace(' '),
        // Joiners matter between emoji and in some scripts, never after ASCII.
        '\u{200c}' | '\u{200d}' if !previous.is_ascii() && previous.width() != Some(0) => Fate::Keep,
        '\u{200d}' if previous == '\u{fe0f}' => Fate::Keep,
        '\u{ad}'
        | '\u{61c}'
        | '\u{180e}'
        | '\u{200b}'..='\u{200f}'
        | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{feff}'
        | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e0fff}' => Fate::Drop,
        _ if c.width() == Some(0) => {
            *marks += 1;
            if *marks > MARKS_MAX { Fate::Drop } else { Fate::Keep }
        }
        _ => {
            *marks = 0;
            Fate::Keep
        }
    }
}

fn clean(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let (mut marks, mut previous) = (0, '\0');
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        match fate(c, previous, &mut marks) {
            Fate::Keep => {
                out.push(c);
                previous = c;
            }
            Fate::Drop => {}
            Fate::Replace(other) => {
                out.push(other);
                previous = other;
            }
            Fate::Escape => {
                rest = skip_escape(rest);
                continue;
            }
            Fate::Return => {
                if !rest.starts_with("\r\n") {
                    out.push('\n');
                }
                previous = '\n';
            }
        }
        rest = rest.get(c.len_utf8()..).unwrap_or_default();
    }
    out
}

/// What follows the escape sequence that `text` begins with. One without an end loses its introducer only, so
/// that no text can be swallowed.
fn skip_escape(text: &str) -> &str {
    let (kind, body) = if let Some(body) = text.strip_prefix('\u{9b}') {
        ('[', body)
    } else {
        let after = text.get(1..).unwrap_or_default();
        let Some(kind) = after.chars().next() else { return "" };
        (kind, after.get(kind.len_utf8()..).unwrap_or_default())
    };
    match kind {
        '[' => {
            let end = body.find(|c: char| !matches!(c, ' '..='?'));
            match end.and_then(|at| body.get(at..).map(|tail| (at, tail))) {
                Some((at, tail)) if tail.starts_with(|c: char| matches!(c, '@'..='~')) => {
                    body.get(at + 1..).unwrap_or_default()
                }
                _ => body,
            }
        }
        ']' | 'P' | 'X' | '^' | '_' => {
            let end = body.find(['\u{7}', '\u{1b}', '\u{9c}', '\n']);
            match end.and_then(|at| body.get(at..)) {
                Some(tail) if tail.starts_with("\u{1b}\\") => tail.get(2..).unwrap_or_default(),
                Some(tail) if tail.starts_with('\u{7}') => tail.get(1..).unwrap_or_default(),
                Some(tail) if tail.starts_with('\u{9c}') => tail.get(2..).unwrap_or_default(),
                _ => body,
            }
        }
        // A character set or the like: one more character belongs to it.
        '(' | ')' | '*' | '+' | '#' | '%' => {
            let mut chars = body.chars();
            if chars.next().is_some_and(|c| matches!(c, '!'..='~')) { chars.as_str() } else { body }
        }
        ' '..='~' => body,
        _ => text.get(1..).unwrap_or_default(),
    }
}

/// Columns that sanitised text takes on the screen, counted by grapheme as the screen's buffer does. Line ends
/// and tabs count nothing: expand them before ([`expand_tabs`]).
pub fn width(text: &str) -> usize {
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        return text.len();
    }
    text.graphemes(true).map(grapheme_width).sum()
}

/// Columns of one grapheme.
pub fn grapheme_width(grapheme: &str) -> usize {
    if grapheme.contains(char::is_control) { 0 } else { usize::from(grapheme.cell_width()) }
}

/// Replaces tabs by spaces up to the next stop, counting from column `start`.
pub fn expand_tabs(text: &str, start: usize) -> Cow<'_, str> {
    if !text.contains('\t') {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    let mut col = start;
    for (index, piece) in text.split('\t').enumerate() {
        if index > 0 {
            let fill = TAB_COLS - col % TAB_COLS;
            out.extend(std::iter::repeat_n(' ', fill));
            col += fill;
        }
        out.push_str(piece);
        col += width(piece);
    }
    Cow::Owned(out)
}

/// Text with tabs as spans of blanks up to the next of the stops, which stand every so many columns, counting from
/// column `start`; they are copied as tabs. Returns the column after it.
pub fn tabbed(text: &str, start: usize, stops: usize, style: Style, out: &mut Vec<Span<'static>>) -> usize {
    let mut col = start;
    for (index, piece) in text.split('\t').enumerate() {
        if index > 0 {
            let fill = stops - col % stops;
            // One cell stands for the tab: a wrap cannot cut it.
            out.push(copy_hint::Mark::CELL.span(" ", style));
            if fill > 1 {
                out.push(copy_hint::Mark::APART.span(" ".repeat(fill - 1), style));
            }
            col += fill;
        }
        if !piece.is_empty() {
            out.push(Span::styled(piece.to_owned(), style));
            col += width(piece);
        }
    }
    col
}

/// One line of safe text: sanitised, with line ends and tabs turned into single spaces.
pub fn one_line(text: &str) -> String {
    let clean = sanitize(text);
    let mut out = String::with_capacity(clean.len());
    for word in clean.split(['\n', '\t']).map(str::trim).filter(|word| !word.is_empty()) {
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(word);
    }
    out
}

/// Shortens to at most `cols` columns, with `…` at the end where something was cut.
pub fn truncate(text: &str, cols: usize) -> String {
    if width(text) <= cols {
        return text.to_owned();
    }
    let mut out = String::new();
    let mut used = 0;
    for grapheme in text.graphemes(true) {
        let w = grapheme_width(grapheme);
        if used + w + 1 > cols {
            break;
        }
        out.push_str(grapheme);
        used += w;
    }
    if cols > 0 {
        out.push('…');
    }
    out
}

/// Shortens to at most `cols` columns, with `…` at the beginning where something was cut.
pub fn truncate_start(text: &str, cols: usize) -> String {
    if width(text) <= cols {
        return text.to_owned();
    }
    let mut start = text.len();
    let mut used = 0;
    for (index, grapheme) in text.grapheme_indices(true).rev() {
        let w = grapheme_width(grapheme);
        if used + w + 1 > cols {
            break;
        }
        used += w;
        start = index;
    }
    let mark = if cols > 0 { "…" } else { "" };
    format!("{mark}{}", text.get(start..).unwrap_or_default())
}

/// Shortens a path to at most `cols` columns: whole folders at the beginning go first, the file name last.
pub fn truncate_path(path: &str, cols: usize) -> String {
    if width(path) <= cols {
        return path.to_owned();
    }
    for (index, _) in path.match_indices('/') {
        let Some(tail) = path.get(index..) else { continue };
        if index > 0 && width(tail) < cols {
            return format!("…{tail}");
        }
    }
    truncate_start(path.rsplit('/').next().unwrap_or(path), cols)
}

/// A path for people: relative when it lies below `folder`, one safe line.
pub fn show_path(path: &Path, folder: &Path) -> String {
    let shown = path.strip_prefix(folder).ok().filter(|rest| !rest.as_os_str().is_empty()).unwrap_or(path);
    one_line(&shown.to_string_lossy())
}

#[cfg(test)]
mod tests;
