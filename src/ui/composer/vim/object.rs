//! Text objects.

use std::ops::Range;

use super::motion::{close_of, open_of};
use super::parse::{Object, ObjectKind};
use super::text::{BLANK, Text};

/// The text that an object comprises; whether as lines.
pub struct Found {
    pub range: Range<usize>,
    pub is_lines: bool,
}

/// The object at the cursor; `None` if there is none. `selected`: the selection that it extends.
pub fn find(text: &Text, object: Object, count: usize, selected: Option<&Range<usize>>) -> Option<Found> {
    let is_around = object.is_around;
    let chars = |range| Some(Found { range, is_lines: false });
    match object.kind {
        ObjectKind::Word(is_big) => chars(word(text, count, is_big, is_around, selected)?),
        ObjectKind::Paragraph => paragraph(text, count, is_around, selected),
        ObjectKind::Quote(quote) => chars(quoted(&text.without_labels(), quote, is_around)?),
        ObjectKind::Pair(open, close) => {
            chars(pair(&text.without_labels(), count, open, close, is_around, selected)?)
        }
    }
}

/// Words and the blanks between them, in one line.
fn word(
    text: &Text,
    count: usize,
    is_big: bool,
    is_around: bool,
    selected: Option<&Range<usize>>,
) -> Option<Range<usize>> {
    let (line, end) = (text.line_start(text.at), text.line_end(text.at));
    // The end of the run of characters of the same class.
    let run = |from: usize| {
        let class = text.class(from, is_big);
        let mut at = from;
        while at < end && text.class(at, is_big) == class {
            at = text.after(at);
        }
        at
    };
    let is_blank = |at: usize| text.class(at, is_big) == BLANK;
    let (mut start, mut stop) = if let Some(selected) = selected {
        (selected.start, selected.end)
    } else {
        let class = text.class(text.at, is_big);
        let mut start = text.at;
        while start > line && text.class(text.before(start), is_big) == class {
            start = text.before(start);
        }
        (start, start)
    };
    let mut ends_in_blanks = false;
    for _ in 0..count {
        if stop >= end {
            return (start < stop).then_some(start..stop);
        }
        let starts_in_blanks = is_blank(stop);
        stop = run(stop);
        if is_around && stop < end {
            let is_pair = starts_in_blanks != is_blank(stop);
            stop = if is_pair { run(stop) } else { stop };
            ends_in_blanks = starts_in_blanks || is_pair;
        } else {
            ends_in_blanks = starts_in_blanks;
        }
    }
    // Without blanks after the word, those before it are included, except for an indentation.
    if is_around && !ends_in_blanks && selected.is_none() {
        let mut blanks = start;
        while blanks > line && is_blank(text.before(blanks)) {
            blanks = text.before(blanks);
        }
        start = if blanks > line { blanks } else { start };
    }
    Some(start..stop)
}

/// Lines with text, or blank lines.
fn paragraph(text: &Text, count: usize, is_around: bool, selected: Option<&Range<usize>>) -> Option<Found> {
    let is_blank = |line: usize| text.line(line).trim_matches([' ', '\t']).is_empty();
    let run = |from: usize| {
        let mut line = from;
        loop {
            let next = text.line_beside(line, 1);
            if next == line || is_blank(next) != is_blank(from) {
                return line;
            }
            line = next;
        }
    };
    let mut start = text.line_start(text.at);
    let mut line;
    if let Some(selected) = selected {
        start = text.line_start(selected.start);
        line = text.line_beside(text.before(selected.end.max(1)), 1);
    } else {
        line = start;
        while start > 0 && is_blank(text.line_beside(start, -1)) == is_blank(line) {
            start = text.line_beside(start, -1);
        }
    }
    let mut last = line;
    for round in 0..count {
        if round > 0 {
            let next = text.line_beside(last, 1);
            if next == last {
                return None;
            }
            line = next;
        }
        last = run(line);
        if is_around {
            let next = text.line_beside(last, 1);
            if next != last {
                last = run(next);
            } else if is_blank(last) {
                return None;
            } else {
                while start > 0 && is_blank(text.line_beside(start, -1)) {
                    start = text.line_beside(start, -1);
                }
            }
        }
    }
    Some(Found { range: start..text.line_end(last), is_lines: true })
}

/// A quoted text in the line, at or after the cursor.
fn quoted(text: &Text, quote: char, is_around: bool) -> Option<Range<usize>> {
    let (start, end) = (text.line_start(text.at), text.line_end(text.at));
    let mut quotes = Vec::new();
    let mut is_escaped = false;
    for (offset, ch) in text.slice(start..end).char_indices() {
        if ch == quote && !is_escaped {
            quotes.push(start + offset);
        }
        is_escaped = ch == '\\' && !is_escaped;
    }
    // At a quote, its place in the line decides whether it opens; elsewhere the quotes on both sides count.
    let at = text.at;
    let (open, close) = match quotes.iter().position(|found| *found == at) {
        Some(position) => {
            let open = position - position % 2;
            (*quotes.get(open)?, *quotes.get(open + 1)?)
        }
        None => match quotes.iter().rposition(|found| *found < at) {
            Some(before) => (*quotes.get(before)?, *quotes.get(before + 1)?),
            None => (*quotes.first()?, *quotes.get(1)?),
        },
    };
    let (inner, outer) = (open + 1..close, open..close + 1);
    if !is_around {
        return Some(inner);
    }
    let is_blank = |ch: char| ch == ' ' || ch == '\t';
    let rest = text.slice(outer.end..end);
    let blanks = rest.len() - rest.trim_start_matches(is_blank).len();
    if blanks > 0 {
        return Some(open..outer.end + blanks);
    }
    let before = text.slice(start..open).trim_end_matches(is_blank).len();
    Some(start + before..outer.end)
}

/// The text between brackets around the cursor.
fn pair(
    text: &Text,
    count: usize,
    open: char,
    close: char,
    is_around: bool,
    selected: Option<&Range<usize>>,
) -> Option<Range<usize>> {
    // At a closing bracket, its pair counts.
    let mut before = match text.char_at(text.at) {
        Some(ch) if ch == open => text.at + open.len_utf8(),
        _ => text.at,
    };
    for round in 0..=count {
        let start = open_of(text, before, open, close)?;
        let end = close_of(text, start + open.len_utf8(), open, close)?;
        let found = if is_around {
            start..end + close.len_utf8()
        } else {
            inside(text, start + open.len_utf8()..end)
        };
        // A selection of the same pair is extended to the next one.
        let is_selected = selected.is_some_and(|old| old.start <= found.start && old.end >= found.end);
        if round + 1 >= count && !is_selected {
            return Some(found);
        }
        before = start;
    }
    None
}

/// The text between brackets, without the line breaks and indentation next to them.
fn inside(text: &Text, inner: Range<usize>) -> Range<usize> {
    let start = if text.char_at(inner.start) == Some('\n') { inner.start + 1 } else { inner.start };
    let line = text.line_start(inner.end);
    let is_indent = text.slice(line..inner.end).chars().all(|ch| ch == ' ' || ch == '\t');
    let end = if is_indent && line > start { line } else { inner.end };
    start..end.max(start)
}
