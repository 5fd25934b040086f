//! Lists with a filter.
//!
//! A list may have thousands of rows: a frame makes those on the screen.

use std::ops::Range;

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::text::{Line, Span};

use super::sheet::{Place, Row, Sheet, Window, input, words};
use crate::app::{Picker, PickerKind, PickerRow};
use crate::config::keymap::Context;
use crate::model::Action;
use crate::ui::scene::Scene;
use crate::ui::text;
use crate::ui::theme::Role;
use crate::ui::view_state::{Hit, ViewState};

/// Columns that a list takes at least, where the screen has them, and at most, when its details are long.
const LEAST_COLS: u16 = 76;
const MOST_COLS: u16 = 120;

/// Draws it.
pub(super) fn draw(
    scene: &Scene,
    picker: &Picker,
    view: &mut ViewState,
    area: Rect,
    buf: &mut Buffer,
) -> Option<Position> {
    let (labels, whole) = view.dialog.widest(&picker.rows, widest);
    let place = Place::new(area, whole.clamp(LEAST_COLS, MOST_COLS), false);
    let cols = place.cols();
    let mut sheet = Sheet { title: text::one_line(&picker.title), ..Sheet::default() };
    sheet.tag = if picker.matches.len() < picker.rows.len() {
        format!("{} of {}", picker.matches.len(), picker.rows.len())
    } else {
        picker.rows.len().to_string()
    };
    sheet.head.push(input(scene, &picker.filter, "type to filter", false, cols));
    let is_filtered = !picker.filter.text.trim().is_empty();
    let labels = labels.min(usize::from(cols) / 2);
    let places = places(picker, !is_filtered);
    if places.is_empty() {
        let why = if is_filtered { "Nothing fits the filter." } else { "Nothing to choose from." };
        sheet.body.extend(words(scene, Role::TextDim, why, cols));
    } else {
        let rows = places.len();
        let marked = places.iter().position(|place| *place == At::Row(picker.selected));
        let make = move |range: Range<usize>| {
            let places = places.get(range).unwrap_or_default();
            places.iter().map(|place| row(scene, picker, *place, labels, cols)).collect()
        };
        sheet.window = Some(Window { rows, marked, first: None, make: Box::new(make) });
    }
    let most = usize::from(area.height) * 3 / 5;
    sheet.body_rows = (picker.rows.len() + group_rows(&picker.rows)).min(most).max(1);
    sheet.most_body = most.max(1);
    if let Some(note) = &picker.note {
        sheet.foot = words(scene, Role::TextDim, note, cols);
    }
    let takes = match picker.kind {
        PickerKind::Agent | PickerKind::TabAgent(_) => "starts it",
        PickerKind::HandOver => "hands it over",
        PickerKind::Palette => "does it",
        _ => "takes it",
    };
    let hints = [
        scene.hint(Context::List, Action::Accept, takes),
        scene.hint(Context::List, Action::Escape, "closes"),
        Some((scene.marks.updown.to_owned(), "choose".to_owned())),
    ];
    sheet.hints = hints.into_iter().flatten().collect();
    sheet.draw(scene, place, view, buf)
}

/// What stands in a row of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    Blank,
    /// The heading of the group that this match begins.
    Heading(usize),
    /// A match.
    Row(usize),
}

/// The rows of the list. By rank groups come in any order, so a heading over each would say little.
fn places(picker: &Picker, has_groups: bool) -> Vec<At> {
    let mut out = Vec::with_capacity(picker.matches.len());
    let mut group: Option<&str> = None;
    for (index, at) in picker.matches.iter().enumerate() {
        let own = picker.rows.get(*at).and_then(|row| row.group.as_deref()).filter(|_| has_groups);
        if own.is_some() && own != group {
            if index > 0 {
                out.push(At::Blank);
            }
            group = own;
            out.push(At::Heading(index));
        }
        out.push(At::Row(index));
    }
    out
}

fn row(scene: &Scene, picker: &Picker, place: At, labels: usize, cols: u16) -> Row {
    let of = |index: usize| picker.matches.get(index).and_then(|at| picker.rows.get(*at));
    match place {
        At::Blank => Row::default(),
        At::Heading(index) => {
            let group = of(index).and_then(|row| row.group.as_deref()).unwrap_or_default();
            let heading = text::truncate(&text::one_line(group), usize::from(cols));
            Line::from(scene.span(Role::TextDim, heading)).into()
        }
        At::Row(index) => {
            let Some(found) = of(index) else { return Row::default() };
            let hit = u16::try_from(index).ok().map(|place| Hit::MarkAnd(place, Action::Accept));
            let line = line(scene, found, &picker.filter.text, labels, cols);
            Row { line, hit, is_selected: index == picker.selected, cursor: None }
        }
    }
}

/// Columns of the widest label, so that details stand in a column of their own, and of a whole row beside it.
fn widest(rows: &[PickerRow]) -> (usize, u16) {
    let cols = |of: fn(&PickerRow) -> &str| {
        rows.iter().map(|row| text::width(&text::one_line(of(row)))).max().unwrap_or_default()
    };
    let labels = cols(|row| &row.label);
    let whole = labels + cols(|row| &row.detail) + cols(|row| &row.right) + 6;
    (labels, u16::try_from(whole).unwrap_or(u16::MAX))
}

/// Rows that headings of groups take, with the blank ones before them.
fn group_rows(rows: &[PickerRow]) -> usize {
    let mut group: Option<&str> = None;
    let mut count = 0;
    for (index, row) in rows.iter().enumerate() {
        if row.group.is_some() && row.group.as_deref() != group {
            count += 1 + usize::from(index > 0);
            group = row.group.as_deref();
        }
    }
    count
}

/// `• label   detail            right`.
fn line(scene: &Scene, row: &PickerRow, filter: &str, labels: usize, cols: u16) -> Line<'static> {
    let cols = usize::from(cols);
    let mut right = text::one_line(&row.right);
    if text::width(&right) > cols / 4 {
        right.clear();
    }
    let detail = text::one_line(&row.detail);
    let mark = if row.is_current { scene.marks.current } else { " " };
    let mut line = Line::from(scene.span(Role::Accent, format!("{mark} ")));
    let right_cols = text::width(&right) + usize::from(!right.is_empty()) * 2;
    let all = cols.saturating_sub(2 + right_cols);
    let label_room = if detail.is_empty() { all } else { labels.min(all) };
    let label = shorten(&text::one_line(&row.label), label_room);
    let mut used = 2 + text::width(&label);
    line.spans.extend(marked(scene, &label, filter));
    let pad = labels.saturating_sub(text::width(&label)) + 2;
    let room = cols.saturating_sub(used + pad + right_cols);
    if !detail.is_empty() && room > 4 {
        let detail = shorten(&detail, room);
        used += pad + text::width(&detail);
        line.push_span(scene.span(Role::TextDim, format!("{}{detail}", " ".repeat(pad))));
    }
    if !right.is_empty() {
        let gap = cols.saturating_sub(used + text::width(&right));
        line.push_span(scene.span(Role::TextDim, format!("{}{right}", " ".repeat(gap))));
    }
    line
}

/// Shortened to so many columns: of a path its end stays, which tells it from its neighbours. A word for what it is
/// may stand before it, in a column of its own.
fn shorten(text: &str, cols: usize) -> String {
    let (word, path) = text.split_at(text.rfind("  ").map_or(0, |at| at + 2));
    let is_path = path.contains('/') && !path.contains([' ', ':']) && !word.trim().contains(' ');
    match cols.checked_sub(text::width(word)) {
        Some(room) if is_path => format!("{word}{}", text::truncate_path(path, room)),
        _ => text::truncate(text, cols),
    }
}

/// The label with the letters that the filter found.
fn marked(scene: &Scene, label: &str, filter: &str) -> Vec<Span<'static>> {
    let found = matched(label, filter);
    let mut spans: Vec<Span<'static>> = Vec::new();
    let (plain, hit) = (scene.style(Role::Modal), scene.style(Role::Match));
    for (index, letter) in label.char_indices() {
        let style = if found.contains(&index) { hit } else { plain };
        match spans.last_mut() {
            Some(last) if last.style == style => last.content.to_mut().push(letter),
            _ => spans.push(Span::styled(letter.to_string(), style)),
        }
    }
    spans
}

/// Byte places of the letters of a filter in a label: each word as it stands, else its letters in order.
fn matched(label: &str, filter: &str) -> Vec<usize> {
    let lower = |letter: char| letter.to_lowercase().next().unwrap_or(letter);
    let letters: Vec<(usize, char)> = label.char_indices().map(|(at, letter)| (at, lower(letter))).collect();
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
        for (at, letter) in &letters {
            if rest.peek() == Some(&letter) {
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
    fn of_a_path_its_end_stays() {
        assert_eq!(shorten("src/ui/text.rs", 9), "…/text.rs");
        assert_eq!(shorten("edit    src/ui/text.rs", 17), "edit    …/text.rs");
        assert_eq!(shorten("edit    src/ui/text.rs", 30), "edit    src/ui/text.rs");
        assert_eq!(shorten("prompt  mend and/or test", 16), "prompt  mend an…");
        assert_eq!(shorten("edit    src/ui/text.rs", 4), "edi…");
    }

    #[test]
    fn letters_of_the_filter_are_found_together_or_in_order() {
        assert_eq!(matched("Open the log", "log"), [9, 10, 11]);
        assert_eq!(matched("Open the log", "OL"), [0, 9]);
        assert_eq!(matched("Open the log", "xyz"), Vec::<usize>::new());
        assert_eq!(matched("äb", "b"), [2]);
        assert_eq!(matched("abc", ""), Vec::<usize>::new());
    }
}
