//! Safe text: sanitising, width, wrapping, truncation.
//!
//! The only module that determines the width of text, and the characters that may reach a cell. Text of an
//! agent is converted to text that [`width`] measures exactly as the screen buffer does. `terminal` handles
//! command output.
//!
//! Invariants: the result of [`sanitize`] contains no control characters except line ends and tabs, and no
//! characters that reorder or hide others; wrapped lines do not exceed the requested width.

use std::borrow::Cow;
use std::cell::Cell;
use std::path::Path;

use ratatui::buffer::{Buffer, CellWidth};
use ratatui::style::Style;
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthChar;

pub mod copy_hint;
mod line;
pub mod link;
pub mod locations;
mod reveal;
mod wrap;

pub use line::{Line, Span, Tag, spans_width};
pub use reveal::{
    Shown, clip, reveal, reveal_bytes, reveal_line, reveal_lines, reveal_one_line, reveal_path,
};
pub use wrap::{Graphemes, code_rows, hard_wrap, row_ranges, wrap_line, wrap_prefixed, wrap_whole};

/// The placeholder of kitty images; no text contains it. Source: kitty graphics protocol, Unicode placeholders.
pub const PICTURE_PLACEHOLDER: char = '\u{10eeee}';

/// Maximum number of consecutive zero-width marks; more would overlap other lines.
const MARKS_MAX: usize = 6;

/// Distance of tab stops, in columns.
pub const TAB_COLS: usize = 4;

/// Distance of a terminal's tab stops, in columns.
pub const TERMINAL_TAB_COLS: usize = 8;

/// The start of the character at a position in bytes, or the position itself if it is a boundary.
pub fn boundary_before(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

/// The end of the character at a position in bytes, or the position itself if it is a boundary.
pub fn boundary_after(text: &str, at: usize) -> usize {
    (at..text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len())
}

/// Writes text to a limited number of cells, as [`Buffer::set_stringn`] does, and returns the column after
/// it. Has a fast path for characters of one cell, because segmenting graphemes would be a third of the cost
/// of a frame.
pub fn put_text(buf: &mut Buffer, x: u16, y: u16, text: &str, cols: u16, style: Style) -> u16 {
    let room = cols.min(buf.area.right().saturating_sub(x));
    if !text.chars().all(is_one_cell) {
        if is_wide() {
            return put_graphemes(buf, x, y, text, room, style);
        }
        return buf.set_stringn(x, y, text, usize::from(room), style).0;
    }
    if y < buf.area.top() || y >= buf.area.bottom() || x < buf.area.left() || room == 0 {
        return x;
    }
    let from = usize::from(y - buf.area.y) * usize::from(buf.area.width) + usize::from(x - buf.area.x);
    let cells = buf.content.get_mut(from..from + usize::from(room)).unwrap_or_default();
    let mut count = 0;
    for (cell, ch) in cells.iter_mut().zip(text.chars()) {
        // Most cells are already blank.
        if ch != ' ' || cell.symbol() != " " {
            cell.set_char(ch);
        }
        cell.set_style(style);
        count += 1;
    }
    x + count
}

/// The same for a terminal that draws ambiguous characters in two cells.
fn put_graphemes(buf: &mut Buffer, x: u16, y: u16, text: &str, room: u16, style: Style) -> u16 {
    let end = x.saturating_add(room);
    let mut x = x;
    for grapheme in text.graphemes(true) {
        let cols = u16::try_from(grapheme_width(grapheme)).unwrap_or(u16::MAX);
        if cols == 0 {
            continue;
        }
        if x.saturating_add(cols) > end {
            break;
        }
        for at in x..x + cols {
            if let Some(cell) = buf.cell_mut((at, y)) {
                cell.reset();
                cell.set_style(style);
            }
        }
        if let Some(cell) = buf.cell_mut((x, y)) {
            cell.set_symbol(grapheme);
        }
        x += cols;
    }
    x
}

/// Whether a character is one cell wide and never part of a larger grapheme: printable ASCII, Latin letters
/// and symbols, dashes and quotes, lines and blocks.
fn is_one_cell(ch: char) -> bool {
    if is_wide() {
        return matches!(ch, ' '..='~');
    }
    matches!(ch,
        ' '..='~' | '\u{a1}'..='\u{ac}' | '\u{ae}'..='\u{2ff}' | '\u{2010}'..='\u{2027}' | '\u{2030}'..='\u{203b}'
        | '\u{2500}'..='\u{25fc}')
}

/// Makes text safe to draw. Removes escape sequences and characters that reorder or hide text, replaces
/// control characters by visible symbols, and converts `\r
/// ` and `\r` to `
/// `; `
/// ` and `\t` are unchanged.
pub fn sanitize(text: &str) -> Cow<'_, str> {
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~' | b'\n' | b'\t')) {
        return Cow::Borrowed(text);
    }
    let mut marks = 0;
    let mut previous = '\0';
    let is_clean = text.chars().all(|c| {
        let treatment = treatment(c, previous, &mut marks);
        previous = c;
        matches!(treatment, Treatment::Keep)
    });
    if is_clean { Cow::Borrowed(text) } else { Cow::Owned(clean(text)) }
}

enum Treatment {
    Keep,
    Drop,
    Replace(char),
    Escape,
    Return,
}

/// The replacement of a character. `marks` counts consecutive zero-width ones.
fn treatment(c: char, previous: char, marks: &mut usize) -> Treatment {
    match c {
        '\n' | '\t' | ' '..='~' => {
            *marks = 0;
            Treatment::Keep
        }
        '\u{1b}' | '\u{9b}' => Treatment::Escape,
        '\r' => Treatment::Return,
        '\0'..='\u{1f}' => Treatment::Replace(char::from_u32(0x2400 + c as u32).unwrap_or('\u{fffd}')),
        '\u{7f}' => Treatment::Replace('\u{2421}'),
        '\u{80}'..='\u{9f}' | PICTURE_PLACEHOLDER => Treatment::Replace('\u{fffd}'),
        '\u{2028}' | '\u{2029}' => Treatment::Replace('\n'),
        // Blank characters other than spaces, which are not recognisable.
        '\u{115f}' | '\u{1160}' | '\u{3164}' | '\u{ffa0}' | '\u{2800}' => Treatment::Replace(' '),
        // Joiners are significant between emoji and in some scripts, but not after ASCII.
        '\u{200c}' | '\u{200d}' if !previous.is_ascii() && previous.width() != Some(0) => Treatment::Keep,
        '\u{200d}' if previous == '\u{fe0f}' => Treatment::Keep,
        '\u{ad}'
        | '\u{61c}'
        | '\u{180e}'
        | '\u{200b}'..='\u{200f}'
        | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{feff}'
        | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e0fff}' => Treatment::Drop,
        _ if c.width() == Some(0) => {
            *marks += 1;
            if *marks > MARKS_MAX { Treatment::Drop } else { Treatment::Keep }
        }
        _ => {
            *marks = 0;
            Treatment::Keep
        }
    }
}

fn clean(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let (mut marks, mut previous) = (0, '\0');
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        match treatment(c, previous, &mut marks) {
            Treatment::Keep => {
                out.push(c);
                previous = c;
            }
            Treatment::Drop => {}
            Treatment::Replace(other) => {
                out.push(other);
                previous = other;
            }
            Treatment::Escape => {
                rest = skip_escape(rest);
                continue;
            }
            Treatment::Return => {
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

/// The text after the escape sequence at its start. Only the introducer of an unterminated sequence is
/// removed, so that no text is lost.
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
        // Sequences with one more character, such as character sets.
        '(' | ')' | '*' | '+' | '#' | '%' => {
            let mut chars = body.chars();
            if chars.next().is_some_and(|c| matches!(c, '!'..='~')) { chars.as_str() } else { body }
        }
        ' '..='~' => body,
        _ => text.get(1..).unwrap_or_default(),
    }
}

/// Width of sanitised text in columns, by grapheme, as the screen buffer counts. Line ends and tabs count as
/// zero: expand them first ([`expand_tabs`]).
pub fn width(text: &str) -> usize {
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        return text.len();
    }
    text.graphemes(true).map(grapheme_width).sum()
}

pub fn grapheme_width(grapheme: &str) -> usize {
    if grapheme.contains(char::is_control) {
        return 0;
    }
    let cols = usize::from(grapheme.cell_width());
    if cols == 1 && is_wide() && grapheme.chars().next().is_some_and(is_ambiguous) { 2 } else { cols }
}

/// Whether some terminals draw a character in two cells: ambiguous in the East Asian widths of Unicode.
fn is_ambiguous(ch: char) -> bool {
    ch.width_cjk() == Some(2) && ch != PICTURE_PLACEHOLDER
}

/// The setting for ambiguous characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WideAmbiguous {
    #[default]
    Measured,
    Narrow,
    Wide,
}

impl WideAmbiguous {
    /// Parses the value of the configuration; unknown values are measured.
    pub fn of(word: &str) -> Self {
        match word {
            "1" => Self::Narrow,
            "2" => Self::Wide,
            _ => Self::Measured,
        }
    }
}

thread_local! {
    static IS_WIDE: Cell<bool> = const { Cell::new(false) };
}

/// Sets whether the terminal of this thread draws ambiguous characters in two cells. Returns whether that is new.
pub fn set_wide(is_wide: bool) -> bool {
    IS_WIDE.replace(is_wide) != is_wide
}

/// Whether the terminal draws ambiguous characters in two cells.
pub fn is_wide() -> bool {
    IS_WIDE.get()
}

/// The mark of truncated text, in one cell.
pub fn ellipsis() -> char {
    if is_wide() { '~' } else { '…' }
}

/// Replaces tabs by spaces up to the next tab stop.
pub fn expand_tabs(text: &str) -> Cow<'_, str> {
    if !text.contains('\t') {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    let mut col = 0;
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

/// Converts text with tabs to spans, with spaces up to the next tab stop, counting from column `start`; they
/// are copied as tabs. Returns the column after the text.
pub fn tabbed(text: &str, start: usize, stops: usize, style: Style, out: &mut Vec<Span<'static>>) -> usize {
    let mut col = start;
    for (index, piece) in text.split('\t').enumerate() {
        if index > 0 {
            let fill = stops - col % stops;
            // A single cell represents the tab, so that a wrap cannot split it.
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

/// Sanitised text on one line, with line ends and tabs replaced by single spaces.
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

/// Truncates to `cols` columns, with `…` at the end.
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
        out.push(ellipsis());
    }
    out
}

/// Truncates to `cols` columns, with `…` at the start.
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
    let mark = if cols > 0 { String::from(ellipsis()) } else { String::new() };
    mark + text.get(start..).unwrap_or_default()
}

/// Truncates a path to `cols` columns: first removes folders at the start, then shortens the file name.
pub fn truncate_path(path: &str, cols: usize) -> String {
    if width(path) <= cols {
        return path.to_owned();
    }
    for (index, _) in path.match_indices('/') {
        let Some(tail) = path.get(index..) else { continue };
        if index > 0 && width(tail) < cols {
            return format!("{}{tail}", ellipsis());
        }
    }
    truncate_start(path.rsplit('/').next().unwrap_or(path), cols)
}

/// A path for display: relative if it is below `folder`, with `~` if it is below `home`, sanitised, on one line.
pub fn show_path(path: &Path, folder: &Path, home: Option<&Path>) -> String {
    let below = |folder: &Path| path.strip_prefix(folder).ok().filter(|rest| !rest.as_os_str().is_empty());
    match (below(folder), home.and_then(below)) {
        (Some(rest), _) => one_line(&rest.to_string_lossy()),
        (None, Some(rest)) => one_line(&format!("~/{}", rest.display())),
        (None, None) => one_line(&path.to_string_lossy()),
    }
}

/// A short number: `940`, `34k`, `1.2M`.
pub fn short_count(count: u64) -> String {
    match count {
        0..1000 => count.to_string(),
        1000..10_000 if count % 1000 >= 100 => format!("{}.{}k", count / 1000, count % 1000 / 100),
        1000..1_000_000 => format!("{}k", count / 1000),
        _ if count % 1_000_000 >= 100_000 => {
            format!("{}.{}M", count / 1_000_000, count % 1_000_000 / 100_000)
        }
        _ => format!("{}M", count / 1_000_000),
    }
}

/// A count with its noun: `1 prompt`, `2 prompts`.
pub fn counted(count: usize, one: &str, many: &str) -> String {
    if count == 1 { format!("1 {one}") } else { format!("{count} {many}") }
}

#[cfg(test)]
mod tests;
