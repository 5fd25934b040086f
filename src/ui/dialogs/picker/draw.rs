//! Lists with a filter.
//!
//! A list may have thousands of rows; a frame creates only the visible ones.

use std::ops::Range;
use std::rc::Rc;

use ratatui::layout::{Position, Rect};

use super::super::dialog_frame::{DialogFrame, DialogPosition, Row, Size, Window, input, wrapped};
use super::{ListView, PickerRow};
use crate::config::keymap::Context;
use crate::core::state::fuzzy::{self, Texts};
use crate::model::Action;
use crate::ui::canvas::Canvas;
use crate::ui::frame_context::FrameContext;
use crate::ui::hits::Hit;
use crate::ui::text;
use crate::ui::text::{Line, Span};
use crate::ui::theme::Role;
use crate::ui::view_state::{ListShape, ViewState};

/// On lower screens, the description of the selected row is not shown below the list.
const ABOUT_ROWS: u16 = 20;

/// How a list is drawn, apart from its rows.
pub(super) struct Style {
    /// What Enter does.
    pub verb: &'static str,
    pub about: Option<String>,
    pub shows_detail: bool,
    pub is_alone: bool,
    pub shows_values: bool,
    pub hints: Vec<(String, String)>,
}

pub(super) fn draw(
    ctx: &FrameContext,
    list: &ListView,
    style: Style,
    view: &mut ViewState,
    area: Rect,
    buf: &mut Canvas,
) -> Option<Position> {
    measure(&list.rows, &mut view.dialog.shape);
    let shape = &view.dialog.shape;
    let size = if shape.cols <= Size::Small.cols() { Size::Small } else { Size::Large };
    let position = DialogPosition::new(area, size, false);
    let cols = position.cols();
    let mut sheet = DialogFrame { title: text::one_line(&list.title), ..DialogFrame::default() };
    sheet.is_alone = style.is_alone;
    sheet.tag = if list.matches.len() < list.rows.len() {
        format!("{} of {}", list.matches.len(), list.rows.len())
    } else {
        list.rows.len().to_string()
    };
    let placeholder = if ctx.keys.is_closed { "" } else { "type to filter" };
    sheet.head.push(input(ctx, &list.filter, placeholder, false, cols));
    let is_filtered = !list.filter.text.trim().is_empty();
    let labels = shape.label_cols.min(usize::from(cols) / 2);
    // Filtered rows are sorted by rank, so that headings of groups would be misleading.
    let groups: Rc<[usize]> = if is_filtered { Rc::default() } else { shape.groups.as_slice().into() };
    if list.matches.is_empty() {
        let why = if is_filtered { "No matches." } else { "No entries." };
        sheet.body.extend(wrapped(ctx, Role::TextDim, why, cols));
    } else {
        let rows = list.matches.len() + group_rows(&groups);
        let marked = Some(row_of(&groups, list.selected));
        let shows_values = style.shows_values;
        let make = move |range: Range<usize>| {
            range.map(|at| row(ctx, list, what_is_at(&groups, at), labels, shows_values, cols)).collect()
        };
        sheet.window = Some(Window { rows, marked, first: None, make: Box::new(make) });
    }
    let max = usize::from(area.height) * 3 / 5;
    sheet.body_rows = (list.rows.len() + group_rows(&shape.groups)).min(max).max(1);
    sheet.max_body = max.max(1);
    if let Some(note) = &list.note {
        sheet.foot = wrapped(ctx, Role::TextDim, note, cols);
    }
    let is_cut = |row: &PickerRow| {
        let texts = text::width(&text::one_line(&row.detail)) + text::width(&text::one_line(&row.right));
        labels + texts + 6 > usize::from(cols)
    };
    let has_room = area.height >= ABOUT_ROWS;
    let detail = (style.shows_detail && has_room && list.rows.iter().any(is_cut))
        .then(|| list.marked().map(|row| text::one_line(&row.detail)).unwrap_or_default());
    if let Some(about) = style.about.or(detail) {
        // The height for most descriptions, so that the dialog does not resize with each step.
        sheet.foot = Vec::from([Row::default(), Row::default()]);
        let about = wrapped(ctx, Role::TextDim, &about, cols);
        sheet.foot.splice(..about.len().min(2), about);
    }
    sheet.set_hints([
        ctx.hint(Context::Main, Action::AnswerRequest, "answer").filter(|_| ctx.keys.is_beside_draft),
        ctx.hint(Context::List, Action::Accept, style.verb).filter(|_| !ctx.keys.is_beside_draft),
        ctx.hint(Context::Main, Action::AnswerRequest, "filter").filter(|_| ctx.keys.is_closed),
        ctx.hint(Context::List, Action::Escape, "close"),
        Some(ctx.updown("choose")),
    ]);
    sheet.hints.splice(1..1, style.hints);
    sheet.draw(ctx, position, view, buf)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    Blank,
    /// The heading of the group that starts with this match.
    Heading(usize),
    Row(usize),
}

/// Number of heading and blank rows above the matches of the first `count` groups: a heading for each, with a
/// blank row before it except at the top.
fn rows_above(groups: &[usize], count: usize) -> usize {
    (2 * count).saturating_sub(usize::from(count > 0 && groups.first() == Some(&0)))
}

/// Number of rows for the headings of groups, with the blank rows before them.
fn group_rows(groups: &[usize]) -> usize {
    rows_above(groups, groups.len())
}

/// The row of a match, including headings and blank rows.
fn row_of(groups: &[usize], index: usize) -> usize {
    index + rows_above(groups, groups.partition_point(|first| *first <= index))
}

fn what_is_at(groups: &[usize], at: usize) -> At {
    // Binary search for the number of groups that start at or above this row; a group starts with its blank
    // row.
    let (mut from, mut to) = (0, groups.len());
    while from < to {
        let middle = usize::midpoint(from, to);
        let first = groups.get(middle).copied().unwrap_or(usize::MAX);
        if first.saturating_add(rows_above(groups, middle)) <= at { from = middle + 1 } else { to = middle }
    }
    let Some(first) = from.checked_sub(1).and_then(|group| groups.get(group).copied()) else {
        return At::Row(at);
    };
    let own = first + rows_above(groups, from);
    match own.saturating_sub(at) {
        0 => At::Row(at - rows_above(groups, from)),
        1 => At::Heading(first),
        _ => At::Blank,
    }
}

fn row(
    ctx: &FrameContext,
    list: &ListView,
    position: At,
    labels: usize,
    shows_values: bool,
    cols: u16,
) -> Row {
    match position {
        At::Blank => Row::default(),
        At::Heading(index) => {
            let group = list.row(index).and_then(|row| row.group.as_deref()).unwrap_or_default();
            let heading = text::truncate(&text::one_line(group), usize::from(cols));
            Line::from(ctx.span(Role::Heading, heading)).into()
        }
        At::Row(index) => {
            let Some(found) = list.row(index) else { return Row::default() };
            let hit = u16::try_from(index).ok().map(|position| Hit::MarkAnd(position, Action::Accept));
            let line = line(ctx, found, &list.filter.text, labels, shows_values, cols);
            Row { line, hit, is_selected: index == list.selected, ..Row::default() }
        }
    }
}

/// Measures the list, unless it is cached: the width of the widest label, so that details are aligned in a
/// column, and of the widest row; the starts of groups.
fn measure(rows: &[PickerRow], shape: &mut ListShape) {
    // A text input as the last row is replaced in place, and its text may have the same address.
    let last = rows.last().map_or((0, 0), |row| (row.label.as_ptr() as usize, row.label.len()));
    let of = (rows.as_ptr() as usize, rows.len(), last);
    if shape.of == of && shape.measured > 0 {
        return;
    }
    let cols = |of: fn(&PickerRow) -> &str| {
        rows.iter().map(|row| text::width(&text::one_line(of(row)))).max().unwrap_or_default()
    };
    shape.label_cols = cols(|row| &row.label);
    let all = shape.label_cols + cols(|row| &row.detail) + cols(|row| &row.right) + 6;
    shape.cols = u16::try_from(all).unwrap_or(u16::MAX);
    shape.groups.clear();
    let mut group: Option<&str> = None;
    for (index, row) in rows.iter().enumerate() {
        if row.group.is_some() && row.group.as_deref() != group {
            group = row.group.as_deref();
            shape.groups.push(index);
        }
    }
    (shape.of, shape.measured) = (of, shape.measured + 1);
}

/// Formats `• label   detail            right`. A value at the right is truncated if it is too long, other texts there are
/// left out.
fn line(
    ctx: &FrameContext,
    row: &PickerRow,
    filter: &str,
    labels: usize,
    is_value: bool,
    cols: u16,
) -> Line<'static> {
    let cols = usize::from(cols);
    let mut right = text::one_line(&row.right);
    if is_value {
        right = text::truncate(&right, cols / 3);
    } else if text::width(&right) > cols / 4 {
        right.clear();
    }
    let detail = match row.detail.as_str() {
        "" => used_synonyms(row, filter),
        detail => text::one_line(detail),
    };
    let mark = if row.is_current { ctx.marks.current } else { " " };
    let mut line = Line::from(ctx.span(Role::Accent, format!("{mark} ")));
    let right_cols = text::width(&right) + usize::from(!right.is_empty()) * 2;
    let all = cols.saturating_sub(2 + right_cols);
    let label_room = if row.detail.is_empty() { all } else { labels.min(all) };
    let label = shorten(&text::one_line(&row.label), label_room);
    let mut used = 2 + text::width(&label);
    line.spans.extend(marked(ctx, &label, filter));
    let pad = labels.saturating_sub(text::width(&label)) + 2;
    let room = cols.saturating_sub(used + pad + right_cols);
    if !detail.is_empty() && room > 4 {
        let detail = shorten(&detail, room);
        used += pad + text::width(&detail);
        line.push_span(ctx.span(Role::TextDim, format!("{}{detail}", " ".repeat(pad))));
    }
    if !right.is_empty() {
        let gap = cols.saturating_sub(used + text::width(&right));
        line.push_span(ctx.span(Role::TextDim, format!("{}{right}", " ".repeat(gap))));
    }
    line
}

fn used_synonyms(row: &PickerRow, filter: &str) -> String {
    let texts = Texts { label: &row.label, synonyms: &row.synonyms, ..Texts::default() };
    fuzzy::used_synonyms(filter, texts).join(", ")
}

/// Truncates a text; a path is truncated at its start, because its end distinguishes it. It may follow a word
/// in a separate column.
fn shorten(text: &str, cols: usize) -> String {
    let (word, path) = text.split_at(text.rfind("  ").map_or(0, |at| at + 2));
    let is_path = path.contains('/') && !path.contains([' ', ':']) && !word.trim().contains(' ');
    match cols.checked_sub(text::width(word)) {
        Some(room) if is_path => format!("{word}{}", text::truncate_path(path, room)),
        _ => text::truncate(text, cols),
    }
}

/// The label with the matched letters highlighted.
fn marked(ctx: &FrameContext, label: &str, filter: &str) -> Vec<Span<'static>> {
    let found = matched(label, filter);
    let mut spans: Vec<Span<'static>> = Vec::new();
    let (plain, hit) = (ctx.style(Role::Dialog), ctx.style(Role::Match));
    for (index, ch) in label.char_indices() {
        let style = if found.contains(&index) { hit } else { plain };
        match spans.last_mut() {
            Some(last) if last.style == style => last.content.to_mut().push(ch),
            _ => spans.push(Span::styled(ch.to_string(), style)),
        }
    }
    spans
}

/// Byte offsets of the matched letters in a label: each word as a substring, otherwise its letters in order.
fn matched(label: &str, filter: &str) -> Vec<usize> {
    let lower = |ch: char| ch.to_lowercase().next().unwrap_or(ch);
    let letters: Vec<(usize, char)> = label.char_indices().map(|(at, ch)| (at, lower(ch))).collect();
    let mut found = Vec::new();
    for word in filter.split_whitespace() {
        let word: Vec<char> = word.chars().map(lower).collect();
        let whole = letters.windows(word.len()).find(|part| part.iter().zip(&word).all(|((_, a), b)| a == b));
        if let Some(part) = whole {
            found.extend(part.iter().map(|(at, _)| *at));
            continue;
        }
        let mut rest = word.iter().peekable();
        let mut scattered = Vec::new();
        for (at, ch) in &letters {
            if rest.peek() == Some(&ch) {
                scattered.push(*at);
                rest.next();
            }
        }
        if rest.peek().is_none() {
            found.extend(scattered);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_between_headings_are_found_by_binary_search() {
        // The expected rows, computed one by one.
        let written = |groups: &[usize], matches: usize| {
            let mut rows = Vec::new();
            for index in 0..matches {
                if groups.contains(&index) {
                    rows.extend((index > 0).then_some(At::Blank));
                    rows.push(At::Heading(index));
                }
                rows.push(At::Row(index));
            }
            rows
        };
        for groups in [&[][..], &[0], &[2], &[0, 1, 4], &[1, 3], &[0, 5]] {
            let rows = written(groups, 6);
            assert_eq!(rows.len(), 6 + group_rows(groups), "{groups:?}");
            let found: Vec<At> = (0..rows.len()).map(|at| what_is_at(groups, at)).collect();
            assert_eq!(found, rows, "{groups:?}");
            for index in 0..6 {
                let position = rows.iter().position(|position| *position == At::Row(index));
                assert_eq!(Some(row_of(groups, index)), position, "{groups:?}");
            }
        }
    }

    #[test]
    fn lists_are_measured_once() {
        let row = |label: &str, group: Option<&str>| PickerRow {
            detail: "detail".to_owned(),
            group: group.map(str::to_owned),
            ..PickerRow::new(label)
        };
        let mut rows =
            vec![row("one", None), row("three", Some("g")), row("six", Some("g")), row("a", Some("h"))];
        let mut shape = ListShape::default();
        for _ in 0..3 {
            measure(&rows, &mut shape);
        }
        assert_eq!((shape.label_cols, shape.cols, shape.groups.as_slice()), (5, 17, &[1, 3][..]));
        assert_eq!(shape.measured, 1);
        rows.pop();
        rows.push(row("a path that is typed", Some("h")));
        measure(&rows, &mut shape);
        assert_eq!((shape.label_cols, shape.measured), (20, 2));
    }

    #[test]
    fn paths_are_truncated_at_their_start() {
        assert_eq!(shorten("src/ui/text.rs", 9), "…/text.rs");
        assert_eq!(shorten("edit    src/ui/text.rs", 17), "edit    …/text.rs");
        assert_eq!(shorten("edit    src/ui/text.rs", 30), "edit    src/ui/text.rs");
        assert_eq!(shorten("prompt  mend and/or test", 16), "prompt  mend an…");
        assert_eq!(shorten("edit    src/ui/text.rs", 4), "edi…");
    }

    #[test]
    fn filter_letters_match_as_substring_or_in_order() {
        assert_eq!(matched("Open the log", "log"), [9, 10, 11]);
        assert_eq!(matched("Open the log", "OL"), [0, 9]);
        assert_eq!(matched("Open the log", "xyz"), Vec::<usize>::new());
        assert_eq!(matched("äb", "b"), [2]);
        assert_eq!(matched("abc", ""), Vec::<usize>::new());
    }
}
