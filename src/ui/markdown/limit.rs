//! Limits for the parser.
//!
//! The parser adds all columns of a table's header to each row, so that a wide header turns a small text into
//! millions of cells. Nesting and overlong blocks are limited in `prose` and `markdown`.

use std::borrow::Cow;

/// Wider tables are shown as text.
const TABLE_COLS_MAX: usize = 64;

/// Inserted before a bar to prevent a table; removed by sanitising before drawing.
const INERT: char = '\u{2060}';

/// The text with overly wide tables disabled, for drawing.
pub(super) fn without_wide_tables(text: &str) -> Cow<'_, str> {
    marked(text, INERT, "")
}

/// The same for finding blocks: all offsets are preserved.
pub(super) fn with_wide_tables_hidden(text: &str) -> Cow<'_, str> {
    marked(text, 'x', "|")
}

/// The text with a mark before the first bar of overly wide tables, or instead of it if it is `replaced`.
fn marked<'t>(text: &'t str, mark: char, replaced: &str) -> Cow<'t, str> {
    let bars = wide_rules(text);
    if bars.is_empty() {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + bars.len() * mark.len_utf8());
    let mut from = 0;
    for bar in bars {
        out.push_str(text.get(from..bar).unwrap_or_default());
        out.push(mark);
        from = bar + replaced.len();
    }
    out.push_str(text.get(from..).unwrap_or_default());
    Cow::Owned(out)
}

/// The first bars of lines that may be the delimiter row of an overly wide table.
fn wide_rules(text: &str) -> Vec<usize> {
    if memchr::memchr_iter(b'|', text.as_bytes()).nth(TABLE_COLS_MAX).is_none() {
        return Vec::new();
    }
    let mut start = 0;
    let mut bars = Vec::new();
    for line in text.split_inclusive('\n') {
        if let Some(bar) = memchr::memchr(b'|', line.as_bytes())
            && memchr::memchr_iter(b'|', line.as_bytes()).nth(TABLE_COLS_MAX).is_some()
            && line
                .bytes()
                .skip(bar)
                .all(|byte| matches!(byte, b'|' | b'-' | b':') || byte.is_ascii_whitespace())
        {
            bars.push(start + bar);
        }
        start += line.len();
    }
    bars
}
