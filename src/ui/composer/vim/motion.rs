//! Motions. The word motions follow those of vim step by step, because their exceptions at ends of lines have no
//! shorter description.

use super::parse::{Find, Motion};
use super::text::{BLANK, Step, Text};

/// How a motion bounds the text of an operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Exclusive,
    Inclusive,
    Lines,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target {
    pub at: usize,
    pub kind: Kind,
}

/// What motions remember.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Memory {
    /// The column that vertical motions go to; `usize::MAX`: the end of each line.
    pub column: Option<usize>,
    pub find: Option<Find>,
    pub search: Option<Search>,
}

/// A search for a text.
#[derive(Debug, Clone, PartialEq)]
pub struct Search {
    pub pattern: String,
    pub is_back: bool,
    /// Whether only whole words match.
    pub is_whole: bool,
}

/// The target of a motion; `None` if it is not possible. `operates`: it is the operand of an operator.
pub fn target(
    text: &Text,
    motion: &Motion,
    count: Option<usize>,
    operates: bool,
    memory: &mut Memory,
) -> Option<Target> {
    let times = count.unwrap_or(1);
    let at = text.at;
    let column = memory.column.take();
    let exclusive = |at| Some(Target { at, kind: Kind::Exclusive });
    let inclusive = |at| Some(Target { at, kind: Kind::Inclusive });
    let lines = |at| Some(Target { at, kind: Kind::Lines });
    let mut walk = text.clone();
    match motion {
        Motion::Left => {
            let start = text.line_start(at);
            let to = (0..times).fold(at, |at, _| if at > start { text.before(at) } else { at });
            exclusive(to).filter(|target| target.at != at)
        }
        Motion::Right => {
            let end = if operates { text.line_end(at) } else { text.last_char(at) };
            let to = (0..times).fold(at, |at, _| if at < end { text.after(at) } else { at });
            exclusive(to).filter(|target| target.at != at)
        }
        Motion::Down | Motion::Up => {
            let is_down = *motion == Motion::Down;
            let column = column.unwrap_or_else(|| text.column(at));
            memory.column = Some(column);
            let is_edge = if is_down { text.is_last_line(at) } else { text.is_first_line(at) };
            lines(at_column(text, beside(text, at, times, is_down), column)).filter(|_| !is_edge)
        }
        Motion::Word(is_big) => {
            word(&mut walk, times, *is_big, operates);
            let to = if operates { walk.at } else { walk.on_char(walk.at) };
            exclusive(to).filter(|target| target.at != at)
        }
        Motion::WordEnd(is_big) => {
            word_end(&mut walk, times, *is_big, false);
            inclusive(walk.on_char(walk.at)).filter(|target| target.at != at || operates)
        }
        Motion::WordBack(is_big) => {
            let is_done = word_back(&mut walk, times, *is_big);
            exclusive(walk.at).filter(|target| target.at != at && (is_done || !operates))
        }
        Motion::WordEndBack(is_big) => {
            let is_done = word_end_back(&mut walk, times, *is_big);
            inclusive(walk.at).filter(|target| target.at != at && (is_done || !operates))
        }
        Motion::LineStart => exclusive(text.line_start(at)),
        Motion::FirstNonblank => exclusive(text.first_nonblank(at)),
        Motion::LineEnd => {
            memory.column = Some(usize::MAX);
            if times > 1 && text.is_last_line(at) {
                return None;
            }
            inclusive(text.last_char(beside(text, at, times - 1, true)))
        }
        Motion::LastNonblank => {
            let line = beside(text, at, times - 1, true);
            let start = text.line_start(line);
            let len = text.line(line).trim_end_matches([' ', '\t']).len();
            inclusive(if len == 0 { start } else { text.before(start + len) })
        }
        Motion::ThisLine => {
            if times > 1 && text.is_last_line(at) {
                return None;
            }
            lines(text.first_nonblank(beside(text, at, times - 1, true)))
        }
        Motion::NextLine | Motion::PreviousLine => {
            let is_down = *motion == Motion::NextLine;
            let is_edge = if is_down { text.is_last_line(at) } else { text.is_first_line(at) };
            let line = beside(text, at, times, is_down);
            lines(text.first_nonblank(line)).filter(|_| !is_edge)
        }
        Motion::Column => exclusive(at_column(text, at, times.saturating_sub(1))),
        Motion::FirstLine | Motion::LastLine => {
            let line = match count {
                Some(count) => beside(text, 0, count.saturating_sub(1), true),
                None if *motion == Motion::FirstLine => 0,
                None => text.line_start(text.text.len()),
            };
            lines(text.first_nonblank(line))
        }
        Motion::ParagraphForward | Motion::ParagraphBack => {
            paragraph(text, times, *motion == Motion::ParagraphForward)
        }
        Motion::Find(find) => {
            memory.find = Some(*find);
            find_char(text, *find, times, false)
        }
        Motion::FindAgain(is_other) => {
            let find = memory.find?;
            find_char(text, Find { is_back: find.is_back != *is_other, ..find }, times, true)
        }
        Motion::Match => matching(&text.without_labels()).and_then(inclusive),
        Motion::Search { pattern, is_back } => {
            let pattern = match memory.search.take() {
                Some(last) if pattern.is_empty() => last.pattern,
                _ => pattern.clone(),
            };
            let search = Search { pattern, is_back: *is_back, is_whole: false };
            memory.search = Some(search.clone());
            find_text(text, &search, at, times).and_then(exclusive)
        }
        Motion::SearchAgain(is_other) => {
            let mut search = memory.search.clone()?;
            search.is_back ^= *is_other;
            find_text(text, &search, at, times).and_then(exclusive)
        }
        Motion::SearchWord { is_back, is_whole } => {
            let range = word_at(text)?;
            let pattern = text.slice(range.clone()).to_owned();
            let search = Search { pattern, is_back: *is_back, is_whole: *is_whole };
            memory.search = Some(search.clone());
            find_text(text, &search, range.start, times).and_then(exclusive)
        }
    }
}

fn beside(text: &Text, at: usize, lines: usize, is_down: bool) -> usize {
    let lines = isize::try_from(lines).unwrap_or(isize::MAX);
    text.line_beside(at, if is_down { lines } else { -lines })
}

fn at_column(text: &Text, line: usize, column: usize) -> usize {
    if column == usize::MAX { text.last_char(line) } else { text.on_char(text.at_column(line, column)) }
}

/// Moves to the next start of a word. As the operand of an operator, the last word of a line ends with it.
pub fn word(text: &mut Text, times: usize, is_big: bool, operates: bool) {
    for left in (0..times).rev() {
        let stops = operates && left == 0;
        let class = text.class(text.at, is_big);
        let is_last = text.is_last_line(text.at);
        let step = text.forward();
        if step == Step::Stuck || step != Step::Inside && (is_last || stops) {
            return;
        }
        while class != BLANK && text.class(text.at, is_big) == class {
            let step = text.forward();
            if step == Step::Stuck || step != Step::Inside && stops {
                return;
            }
        }
        while text.class(text.at, is_big) == BLANK && !text.is_empty_line(text.at) {
            let is_last = text.is_last_line(text.at);
            let step = text.forward();
            if step == Step::Stuck || step != Step::Inside && is_last {
                return;
            }
        }
    }
}

/// Moves the cursor to starts of words before it. Returns whether it moved.
pub fn word_back(text: &mut Text, times: usize, is_big: bool) -> bool {
    'words: for _ in 0..times {
        if text.back() == Step::Stuck {
            return false;
        }
        while text.class(text.at, is_big) == BLANK {
            if text.is_empty_line(text.at) {
                continue 'words;
            }
            if text.back() == Step::Stuck {
                return true;
            }
        }
        let class = text.class(text.at, is_big);
        while text.class(text.at, is_big) == class {
            if text.back() == Step::Stuck {
                return true;
            }
        }
        text.forward();
    }
    true
}

/// Moves to the end of a word. `stays`: a word that ends at the cursor counts.
pub fn word_end(text: &mut Text, times: usize, is_big: bool, mut stays: bool) -> bool {
    for _ in 0..times {
        let class = text.class(text.at, is_big);
        if text.forward() == Step::Stuck {
            return false;
        }
        if class != BLANK && text.class(text.at, is_big) == class {
            if !skip(text, class, is_big) {
                return false;
            }
        } else if !stays || class == BLANK {
            while text.class(text.at, is_big) == BLANK {
                if text.forward() == Step::Stuck {
                    return false;
                }
            }
            let class = text.class(text.at, is_big);
            if !skip(text, class, is_big) {
                return false;
            }
        }
        text.back();
        stays = false;
    }
    true
}

/// Moves over characters of a class.
fn skip(text: &mut Text, class: u32, is_big: bool) -> bool {
    while text.class(text.at, is_big) == class {
        if text.forward() == Step::Stuck {
            return false;
        }
    }
    true
}

fn word_end_back(text: &mut Text, times: usize, is_big: bool) -> bool {
    for _ in 0..times {
        let class = text.class(text.at, is_big);
        if text.back() == Step::Stuck {
            return false;
        }
        while class != BLANK && text.class(text.at, is_big) == class {
            if text.back() == Step::Stuck {
                return true;
            }
        }
        while text.class(text.at, is_big) == BLANK && !text.is_empty_line(text.at) {
            if text.back() == Step::Stuck {
                return true;
            }
        }
    }
    true
}

/// The next empty line after a paragraph, or the end of the text.
fn paragraph(text: &Text, times: usize, is_forward: bool) -> Option<Target> {
    let mut line = text.line_start(text.at);
    for left in (0..times).rev() {
        let mut has_text = false;
        let mut is_start = true;
        loop {
            has_text |= !text.is_empty_line(line);
            if !is_start && has_text && text.is_empty_line(line) {
                break;
            }
            is_start = false;
            let next = text.line_beside(line, if is_forward { 1 } else { -1 });
            if next == line {
                if left > 0 {
                    return None;
                }
                return Some(if is_forward && !text.is_empty_line(line) {
                    Target { at: text.last_char(line), kind: Kind::Inclusive }
                } else {
                    Target { at: line, kind: Kind::Exclusive }
                });
            }
            line = next;
        }
    }
    Some(Target { at: line, kind: Kind::Exclusive })
}

fn find_char(text: &Text, find: Find, times: usize, is_again: bool) -> Option<Target> {
    let (start, end) = (text.line_start(text.at), text.line_end(text.at));
    let step = |at: usize| {
        if find.is_back {
            (at > start).then(|| text.before(at))
        } else {
            (at < end).then(|| text.after(at)).filter(|at| *at < end)
        }
    };
    let mut at = text.at;
    // A repeated `t` at its target goes to the next one.
    if is_again && find.is_till && times == 1 && step(at).and_then(|at| text.char_at(at)) == Some(find.ch) {
        at = step(at)?;
    }
    for _ in 0..times {
        loop {
            at = step(at)?;
            if text.char_at(at) == Some(find.ch) {
                break;
            }
        }
    }
    if find.is_till {
        at = if find.is_back { text.after(at) } else { text.before(at) };
    }
    Some(Target { at, kind: if find.is_back { Kind::Exclusive } else { Kind::Inclusive } })
}

const PAIRS: [(char, char); 3] = [('(', ')'), ('[', ']'), ('{', '}')];

/// The bracket that matches the first one in the line at or after the cursor.
fn matching(text: &Text) -> Option<usize> {
    let end = text.line_end(text.at);
    let (offset, bracket) = text.slice(text.at..end).char_indices().find(|(_, ch)| "()[]{}".contains(*ch))?;
    let (open, close) = PAIRS.into_iter().find(|(open, close)| *open == bracket || *close == bracket)?;
    if bracket == open {
        close_of(text, text.at + offset + open.len_utf8(), open, close)
    } else {
        open_of(text, text.at + offset, open, close)
    }
}

/// The unmatched closing bracket at or after a position.
pub fn close_of(text: &Text, from: usize, open: char, close: char) -> Option<usize> {
    let mut depth = 0;
    for (at, ch) in text.slice(from..text.text.len()).char_indices() {
        if ch == open {
            depth += 1;
        } else if ch == close {
            if depth == 0 {
                return Some(from + at);
            }
            depth -= 1;
        }
    }
    None
}

/// The unmatched opening bracket before a position.
pub fn open_of(text: &Text, before: usize, open: char, close: char) -> Option<usize> {
    let mut depth = 0;
    for (at, ch) in text.slice(0..before).char_indices().rev() {
        if ch == close {
            depth += 1;
        } else if ch == open {
            if depth == 0 {
                return Some(at);
            }
            depth -= 1;
        }
    }
    None
}

/// The word at the cursor, or the next one in the line.
fn word_at(text: &Text) -> Option<std::ops::Range<usize>> {
    let is_word = |at: usize| text.char_at(at).is_some_and(|ch| ch == '_' || ch.is_alphanumeric());
    let (line, end) = (text.line_start(text.at), text.line_end(text.at));
    let mut start = text.at;
    while start < end && !is_word(start) {
        start = text.after(start);
    }
    if start >= end {
        return None;
    }
    let mut stop = start;
    while start > line && is_word(text.before(start)) {
        start = text.before(start);
    }
    while stop < end && is_word(stop) {
        stop = text.after(stop);
    }
    Some(start..stop)
}

/// The next match of a search; it wraps at the ends of the text.
fn find_text(text: &Text, search: &Search, from: usize, times: usize) -> Option<usize> {
    let text = text.without_labels();
    let is_letter = |ch: char| ch == '_' || ch.is_alphanumeric();
    let is_match = |at: &usize| {
        let before = text.slice(0..*at).chars().next_back();
        let after = text.char_at(at + search.pattern.len());
        !search.is_whole || !before.is_some_and(is_letter) && !after.is_some_and(is_letter)
    };
    if search.pattern.is_empty() {
        return None;
    }
    let matches: Vec<usize> =
        text.text.match_indices(search.pattern.as_str()).map(|(at, _)| at).filter(is_match).collect();
    let mut at = from;
    // The matches repeat after the last one.
    for _ in 0..=times.saturating_sub(1) % matches.len().max(1) {
        at = if search.is_back {
            matches.iter().rev().find(|found| **found < at).or(matches.last()).copied()?
        } else {
            matches.iter().find(|found| **found > at).or(matches.first()).copied()?
        };
    }
    Some(at)
}
