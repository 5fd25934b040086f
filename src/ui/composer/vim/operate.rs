//! Operators, and commands that change the text at the cursor.

use std::iter::successors;
use std::ops::Range;

use super::motion::{Kind, target, word_end};
use super::object;
use super::parse::{Command, Motion, Operator, Span, Verb};
use super::register::Contents;
use super::text::{BLANK, Text};
use super::{Change, Extent, MAX_REPEATED_BYTES, Mode, Reply, Vim};
use crate::model::chips;

/// Indentation of `>`.
const INDENT: usize = 4;

/// The text that an operator applies to.
struct Region {
    /// Without the last line break.
    range: Range<usize>,
    is_lines: bool,
    /// Where the cursor is after operators that leave the text in place.
    from: usize,
    /// Whether the numbered registers store it, even if it is part of a line.
    is_large: bool,
}

impl Vim {
    pub(super) fn operate(&mut self, command: Command, text: &mut Text) -> Reply {
        let Verb::Operate(operator, ref span) = command.verb else { return Reply::Done };
        let extent = self.extent(text);
        let count = command.count;
        let region = self.region(operator, span, count, text);
        if self.is_visual() {
            self.leave_visual(text);
        }
        let Some(region) = region else { return Reply::Done };
        self.undo_at = region.from;
        let contents =
            Contents { text: text.slice(region.range.clone()).to_owned(), is_lines: region.is_lines };
        let copied = matches!(command.register, Some('+' | '*'))
            .then(|| format!("{}{}", contents.text, if contents.is_lines { "\n" } else { "" }));
        let reply = copied.map_or(Reply::Done, Reply::Copy);
        let is_empty = region.range.is_empty() && !region.is_lines;
        match operator {
            Operator::Yank => {
                self.registers.yank(command.register, contents);
                text.at = region.from;
                return reply;
            }
            Operator::Delete if is_empty => return Reply::Done,
            Operator::Delete => {
                self.registers.delete(command.register, contents, region.is_large);
                remove(text, &region);
                self.change = Some(Change { command, typed: String::new(), extent });
                return reply;
            }
            Operator::Change => {
                if !is_empty {
                    self.registers.delete(command.register, contents, region.is_large);
                }
                text.at = region.range.start;
                text.replace(region.range, "");
                self.enter_insert(command, extent, text);
                return reply;
            }
            Operator::Indent | Operator::Unindent => {
                // In visual mode, a count is a number of levels.
                let levels = if extent.is_some() { count.unwrap_or(1).min(100) } else { 1 };
                shift(text, &region.range, operator == Operator::Indent, levels);
                text.at = text.first_nonblank(region.range.start);
            }
            Operator::ToggleCase | Operator::Lower | Operator::Upper => {
                let changed = in_case(&contents.text, operator);
                text.replace(region.range, &changed);
                text.at = region.from;
            }
        }
        self.change = Some(Change { command, typed: String::new(), extent });
        Reply::Done
    }

    fn extent(&self, text: &Text) -> Option<Extent> {
        let range = self.selection(text)?;
        let lines = count_lines(text.slice(range.clone()), self.mode == Mode::VisualLine);
        let last = text.line_start(text.before(range.end).max(range.start)).max(range.start);
        let chars =
            successors(Some(last), |at| Some(text.after(*at))).take_while(|at| *at < range.end).count();
        Some(Extent { is_lines: self.mode == Mode::VisualLine, lines, chars })
    }

    fn region(
        &mut self,
        operator: Operator,
        span: &Span,
        count: Option<usize>,
        text: &Text,
    ) -> Option<Region> {
        let at = text.at;
        let times = count.unwrap_or(1);
        let lines = |first: usize, last: usize, from: usize| {
            let range = text.line_start(first)..text.line_end(last);
            Some(Region { range, is_lines: true, from, is_large: false })
        };
        let below = |lines: usize| text.line_beside(at, isize::try_from(lines).unwrap_or(isize::MAX));
        match span {
            Span::Lines if times > 1 && text.is_last_line(at) => None,
            Span::Lines => {
                let from = if operator == Operator::Yank { at } else { text.first_nonblank(at) };
                lines(at, below(times - 1), from)
            }
            Span::Selection(is_lines) => {
                let range = self.selection(text)?;
                if self.mode == Mode::VisualLine {
                    return lines(range.start, range.end, range.start);
                }
                if *is_lines {
                    return lines(range.start, text.before(range.end).max(range.start), range.start);
                }
                let from = range.start;
                Some(Region { range, is_lines: false, from, is_large: false })
            }
            Span::Object(object) => {
                let found = object::find(text, *object, times, None)?;
                let (start, end) = (found.range.start, found.range.end);
                if found.is_lines {
                    return lines(start, end, start);
                }
                Some(bounded(text, start, end, operator))
            }
            Span::Motion(motion) => {
                let is_on_text = !text.is_line_end(at);
                if let Motion::Word(is_big) = motion
                    && operator == Operator::Change
                    && is_on_text
                    && text.class(at, *is_big) != BLANK
                {
                    // `cw` does not change the blanks after the word.
                    let mut walk = text.clone();
                    word_end(&mut walk, times, *is_big, true);
                    let end = text.after(text.on_char(walk.at));
                    return Some(Region { range: at..end, is_lines: false, from: at, is_large: false });
                }
                let found = target(text, motion, count, true, &mut self.memory);
                if found.is_none() && operator == Operator::Change && *motion == Motion::Right {
                    return Some(Region { range: at..at, is_lines: false, from: at, is_large: false });
                }
                let found = found?;
                let (start, end) = (at.min(found.at), at.max(found.at));
                let is_large = matches!(
                    motion,
                    Motion::Match
                        | Motion::Search { .. }
                        | Motion::SearchAgain(_)
                        | Motion::SearchWord { .. }
                        | Motion::ParagraphForward
                        | Motion::ParagraphBack
                );
                let region = match found.kind {
                    Kind::Lines => lines(start, end, start)?,
                    Kind::Inclusive => {
                        let end = if text.is_line_end(end) { end } else { text.after(end) };
                        whole_lines(
                            text,
                            Region { range: start..end, is_lines: false, from: start, is_large },
                            operator,
                        )
                    }
                    Kind::Exclusive => bounded(text, start, end, operator),
                };
                Some(Region { is_large, ..region })
            }
        }
    }

    /// Runs a command that changes the text at the cursor, or the selection.
    pub(super) fn edit(&mut self, command: Command, text: &mut Text) -> Reply {
        let extent = self.extent(text);
        let selection = self.selection(text);
        let was_lines = self.mode == Mode::VisualLine;
        self.leave_visual(text);
        let times = command.count.unwrap_or(1);
        let is_done = match (&command.verb, selection) {
            (Verb::ReplaceWith(ch), Some(range)) => {
                let starts = successors(Some(range.start), |at| Some(text.after(*at)));
                let replaced: String = starts
                    .take_while(|at| *at < range.end)
                    .map(|at| if text.is_line_end(at) { '\n' } else { *ch })
                    .collect();
                text.at = range.start;
                text.replace(range, &replaced);
                true
            }
            (Verb::ReplaceWith(ch), None) => replace_chars(text, *ch, times),
            (Verb::Join(has_blanks), selection) => {
                let count = match &selection {
                    Some(range) => {
                        text.at = range.start;
                        count_lines(text.slice(range.clone()), was_lines)
                    }
                    None => times,
                };
                join(text, count.max(2), *has_blanks)
            }
            (Verb::Put(is_before), Some(range)) => {
                let contents = self.registers.get(command.register).cloned();
                contents.is_some_and(|contents| {
                    let deleted =
                        Contents { text: text.slice(range.clone()).to_owned(), is_lines: was_lines };
                    if !is_before {
                        self.registers.delete(None, deleted, false);
                    }
                    put_over(text, range, was_lines, &contents, times);
                    true
                })
            }
            (Verb::Put(is_before), None) => {
                let contents = self.registers.get(command.register);
                contents.is_some_and(|contents| {
                    put(text, contents, *is_before, times);
                    true
                })
            }
            (_, _) => toggle_chars(text, times),
        };
        if is_done {
            self.change = Some(Change { command, typed: String::new(), extent });
        }
        Reply::Done
    }
}

/// Number of lines in a selected text; the line break at the end of selected characters starts no other.
fn count_lines(selected: &str, is_lines: bool) -> usize {
    let selected = if is_lines { selected } else { selected.strip_suffix('\n').unwrap_or(selected) };
    selected.matches('\n').count() + 1
}

/// The region up to a position, by the rules for motions that end at the start of a line.
fn bounded(text: &Text, start: usize, end: usize, operator: Operator) -> Region {
    let region = |range: Range<usize>, is_lines| Region { range, is_lines, from: start, is_large: false };
    let has_indent_before = start <= text.first_nonblank(start);
    if text.line_start(end) == end && text.slice(start..end).contains('\n') {
        let end = end - 1;
        return if has_indent_before {
            region(text.line_start(start)..end, true)
        } else {
            region(start..end, false)
        };
    }
    whole_lines(text, region(start..end, false), operator)
}

/// A deletion of parts of several lines is one of lines, if only blanks would remain of them.
fn whole_lines(text: &Text, region: Region, operator: Operator) -> Region {
    let Range { start, end } = region.range;
    let is_multiline = text.slice(start..end).contains('\n');
    let rest = text.slice(end..text.line_end(end));
    if operator == Operator::Delete
        && is_multiline
        && start <= text.first_nonblank(start)
        && rest.trim_matches([' ', '\t']).is_empty()
    {
        return Region { range: text.line_start(start)..text.line_end(end), is_lines: true, ..region };
    }
    region
}

/// Deletes a region, and moves the cursor there.
fn remove(text: &mut Text, region: &Region) {
    let Range { start, end } = region.range;
    if !region.is_lines {
        text.replace(start..end, "");
        text.at = start;
        return;
    }
    let has_next = end < text.text.len();
    let range = if has_next { start..end + 1 } else { start.saturating_sub(1)..end };
    text.replace(range, "");
    let line = if has_next { start } else { text.text.len() };
    text.at = text.first_nonblank(line);
}

/// Indents lines, or removes indentation.
fn shift(text: &mut Text, range: &Range<usize>, is_deeper: bool, levels: usize) {
    let shifted: Vec<String> = text
        .slice(range.clone())
        .split('\n')
        .map(|line| {
            let rest = line.trim_start_matches([' ', '\t']);
            let blanks = line.len() - rest.len();
            let tabs = line.get(..blanks).unwrap_or_default().matches('\t').count();
            let cols = blanks - tabs + tabs * INDENT;
            if is_deeper && rest.is_empty() {
                return line.to_owned();
            }
            let by = levels * INDENT;
            let cols = if is_deeper { cols + by } else { cols.saturating_sub(by) };
            format!("{}{rest}", " ".repeat(cols))
        })
        .collect();
    text.replace(range.clone(), &shifted.join("\n"));
}

/// The text in another case; labels are unchanged.
fn in_case(text: &str, operator: Operator) -> String {
    let change = |part: &str| match operator {
        Operator::Lower => part.to_lowercase(),
        Operator::Upper => part.to_uppercase(),
        _ => part.chars().map(in_other_case).collect(),
    };
    let slice = |range: Range<usize>| text.get(range).unwrap_or_default();
    let (mut changed, mut at) = (String::new(), 0);
    for chip in chips(text) {
        changed += &change(slice(at..chip.start));
        changed += slice(chip.clone());
        at = chip.end;
    }
    changed + &change(slice(at..text.len()))
}

/// A character whose other case has several characters is unchanged.
fn in_other_case(ch: char) -> char {
    let (mut upper, mut lower) = (ch.to_uppercase(), ch.to_lowercase());
    match (ch.is_lowercase(), upper.len(), lower.len()) {
        (true, 1, _) => upper.next().unwrap_or(ch),
        (false, _, 1) => lower.next().unwrap_or(ch),
        _ => ch,
    }
}

/// The end of a number of characters in the line; `None` if there are fewer.
fn end_of_chars(text: &Text, count: usize) -> Option<usize> {
    (0..count).try_fold(text.at, |at, _| (!text.is_line_end(at)).then(|| text.after(at)))
}

fn replace_chars(text: &mut Text, ch: char, count: usize) -> bool {
    let Some(end) = end_of_chars(text, count) else { return false };
    let start = text.at;
    if ch == '\n' {
        text.replace(start..end, "\n");
        text.at = start + 1;
        return true;
    }
    text.replace(start..end, &ch.to_string().repeat(count));
    text.at = start + ch.len_utf8() * (count - 1);
    true
}

fn toggle_chars(text: &mut Text, count: usize) -> bool {
    let start = text.at;
    let end = (0..count).fold(start, |at, _| if text.is_line_end(at) { at } else { text.after(at) });
    let changed = in_case(text.slice(start..end), Operator::ToggleCase);
    text.replace(start..end, &changed);
    text.at = start + changed.len();
    end > start
}

fn join(text: &mut Text, lines: usize, has_blanks: bool) -> bool {
    if text.is_last_line(text.at) {
        return false;
    }
    for _ in 1..lines {
        let end = text.line_end(text.at);
        if end == text.text.len() {
            break;
        }
        let next = end + 1;
        let line = text.slice(text.line_start(end)..end);
        let rest = if has_blanks { text.first_nonblank(next) } else { next };
        let needs_blank = has_blanks
            && !line.is_empty()
            && !line.ends_with([' ', '\t'])
            && !text.is_line_end(rest)
            && text.char_at(rest) != Some(')');
        text.replace(end..rest, if needs_blank { " " } else { "" });
        text.at = end;
    }
    true
}

fn repeated(contents: &Contents, times: usize) -> String {
    let times = times.min(MAX_REPEATED_BYTES / contents.text.len().max(1)).max(1);
    if contents.is_lines {
        vec![contents.text.as_str(); times].join("\n")
    } else {
        contents.text.repeat(times)
    }
}

/// Inserts a register after or before the cursor.
fn put(text: &mut Text, contents: &Contents, is_before: bool, times: usize) {
    let inserted = repeated(contents, times);
    if contents.is_lines {
        let at = if is_before { text.line_start(text.at) } else { text.line_end(text.at) };
        text.replace(at..at, &if is_before { format!("{inserted}\n") } else { format!("\n{inserted}") });
        text.at = text.first_nonblank(if is_before { at } else { at + 1 });
        return;
    }
    let at = if is_before || text.is_line_end(text.at) { text.at } else { text.after(text.at) };
    put_chars(text, at..at, &inserted);
}

/// Replaces a range by text that is not lines, and moves the cursor to its last character, or for several lines to its
/// first.
fn put_chars(text: &mut Text, range: Range<usize>, inserted: &str) {
    let start = range.start;
    text.replace(range, inserted);
    text.at = if inserted.contains('\n') || inserted.is_empty() {
        start
    } else {
        text.before(start + inserted.len())
    };
}

/// Replaces the selection by a register.
fn put_over(text: &mut Text, range: Range<usize>, was_lines: bool, contents: &Contents, times: usize) {
    let inserted = repeated(contents, times);
    let start = range.start;
    match (was_lines, contents.is_lines) {
        (false, true) => {
            text.replace(range, &format!("\n{inserted}\n"));
            text.at = text.first_nonblank(start + 1);
        }
        (true, _) => {
            text.replace(range, &inserted);
            text.at = text.first_nonblank(start);
        }
        (false, false) => put_chars(text, range, &inserted),
    }
}
