//! Limits to what a text can make the parser do.
//!
//! The parser gives each row of a table all columns of its head, so a head of many columns makes a small text into
//! millions of cells. Nesting and overlong blocks are limited where they are drawn and cut (`prose`, `markdown`).

use std::borrow::Cow;

/// A table of more columns is shown as the text it is.
const TABLE_COLS_MAX: usize = 64;

/// Stands before a bar that is not to make a table; sanitising takes it out of what is drawn.
const INERT: char = '\u{2060}';

/// The text without rules of tables that are too wide, for drawing.
pub(super) fn without_wide_tables(text: &str) -> Cow<'_, str> {
    let bars = wide_rules(text);
    if bars.is_empty() {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + bars.len() * INERT.len_utf8());
    let mut from = 0;
    for bar in bars {
        out.push_str(text.get(from..bar).unwrap_or_default());
        out.push(INERT);
        from = bar;
    }
    out.push_str(text.get(from..).unwrap_or_default());
    Cow::Owned(out)
}

/// The same for finding blocks: each byte keeps its place.
pub(super) fn with_wide_tables_hidden(text: &str) -> Cow<'_, str> {
    let bars = wide_rules(text);
    if bars.is_empty() {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut from = 0;
    for bar in bars {
        out.push_str(text.get(from..bar).unwrap_or_default());
        out.push('x');
        from = bar + 1;
    }
    out.push_str(text.get(from..).unwrap_or_default());
    Cow::Owned(out)
}

/// The first bars of lines that could be the rule below a head of too many columns.
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
