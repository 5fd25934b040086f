//! Labels of attachments in the prompt, which the cursor and deletions treat as one character.
//!
//! The text area contains them with their number in place of their id; the texts that leave or enter the composer have
//! the id. The text area knows only characters, so the cursor is moved out of a label after each motion.

use std::ops::Range;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use tui_textarea::{CursorMove, DataCursor};

use super::Composer;
use crate::model::{attachment_labels, chips, mentions, with_labels};
use crate::ui::text;

/// The no-break space distinguishes a shown label from typed text that looks like one.
const SHOWN_COLON: &str = ":\u{a0}";

/// A label as it is in the text area, and in the text of the prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ShownLabel {
    shown: String,
    text: String,
}

/// Where the cursor goes from the inside of a label.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Start,
    End,
    Nearest,
}

impl Composer {
    pub(super) fn line(&self, row: usize) -> &str {
        self.area.lines().get(row).map(String::as_str).unwrap_or_default()
    }

    /// The labels in the cursor's line, as ranges of characters.
    fn chips(&self) -> Vec<Range<usize>> {
        let DataCursor(row, _) = self.area.cursor();
        let line = self.line(row);
        let col = |at: usize| line.get(..at).unwrap_or_default().chars().count();
        self.labels_in(line).map(|(chip, _)| col(chip.start)..col(chip.end)).collect()
    }

    /// The labels in a part of the text area, with their bytes.
    fn labels_in<'a>(&'a self, shown: &'a str) -> impl Iterator<Item = (Range<usize>, &'a ShownLabel)> {
        shown.match_indices('[').filter_map(|(at, _)| {
            let rest = shown.get(at..)?;
            let label = self.labels.iter().find(|label| rest.starts_with(&label.shown))?;
            Some((at..at + label.shown.len(), label))
        })
    }

    /// A part of the text area as it is in the prompt.
    pub(super) fn with_ids(&self, shown: &str) -> String {
        let mut text = String::with_capacity(shown.len());
        let mut end = 0;
        for (range, label) in self.labels_in(shown) {
            text.push_str(shown.get(end..range.start).unwrap_or_default());
            text.push_str(&label.text);
            end = range.end;
        }
        text + shown.get(end..).unwrap_or_default()
    }

    /// The start of the prompt as it is in the text area.
    pub(super) fn without_ids(&self, text: &str) -> String {
        let ranges = chips(text);
        let mut labels = self.labels.iter();
        with_labels(text, &ranges, |_| labels.next().map(|label| label.shown.clone()).unwrap_or_default())
    }

    /// Numbers the labels by their place, after an edit.
    pub(super) fn number_labels(&mut self) {
        let text = self.text();
        let has_ids = self.area.lines().iter().any(|line| !chips(line).is_empty());
        if has_ids || shown_labels(&text) != self.labels {
            self.show(&text, self.offset());
        }
    }

    /// Whether the cursor's line contains labels.
    pub(super) fn has_chips(&self) -> bool {
        !self.chips().is_empty()
    }

    /// Number of characters of the label that ends (or with `is_after`, starts) at the cursor.
    pub(super) fn chip_beside(&self, is_after: bool) -> Option<usize> {
        let DataCursor(_, col) = self.area.cursor();
        let is_beside = |chip: &Range<usize>| if is_after { chip.start == col } else { chip.end == col };
        self.chips().into_iter().find(is_beside).map(|chip| chip.len())
    }

    /// Moves the cursor out of a label; a selection is extended.
    pub(super) fn leave_chip(&mut self, side: Side) {
        let DataCursor(_, col) = self.area.cursor();
        let Some(chip) = self.chips().into_iter().find(|chip| chip.start < col && col < chip.end) else {
            return;
        };
        let (before, after) = (col - chip.start, chip.end - col);
        let is_start = side == Side::Start || side == Side::Nearest && before < after;
        let (motion, steps) =
            if is_start { (CursorMove::Back, before) } else { (CursorMove::Forward, after) };
        for _ in 0..steps {
            self.area.move_cursor(motion);
        }
    }

    /// Moves by a word; a label is one.
    pub(super) fn travel_word(&mut self, motion: CursorMove) {
        let DataCursor(row, from) = self.area.cursor();
        self.area.move_cursor(motion);
        let DataCursor(to_row, col) = self.area.cursor();
        let Some(chip) = self.chips().into_iter().find(|chip| chip.start < col && col < chip.end) else {
            return;
        };
        // A word motion also stops inside the label if it started beside it at other punctuation.
        let is_beside = row != to_row || {
            let (start, end) =
                if motion == CursorMove::WordBack { (chip.end, from) } else { (from, chip.start) };
            let between = self.line(row).chars().skip(start).take(end.saturating_sub(start));
            between.clone().all(char::is_whitespace)
        };
        self.leave_chip(if is_beside == (motion == CursorMove::WordBack) { Side::Start } else { Side::End });
    }

    /// Deletes the word before or after the cursor; a label is one.
    pub(super) fn erase_word(&mut self, motion: CursorMove) -> bool {
        let DataCursor(_, col) = self.area.cursor();
        let is_back = motion == CursorMove::WordBack;
        if self.area.is_selecting() || !self.has_chips() || is_back && col == 0 {
            return if is_back { self.area.delete_word() } else { self.area.delete_next_word() };
        }
        self.area.start_selection();
        self.travel_word(motion);
        self.area.cut()
    }

    /// Deletes the label beside the cursor as one undo step. Returns whether there is one.
    pub(super) fn erase_chip(&mut self, is_after: bool) -> bool {
        let Some(chars) = self.chip_beside(is_after) else { return false };
        self.area.start_selection();
        for _ in 0..chars {
            self.area.move_cursor(if is_after { CursorMove::Forward } else { CursorMove::Back });
        }
        self.area.delete_char()
    }

    /// Styles labels and mentions in the drawn cells.
    pub(super) fn style_parts(&self, cells: &mut Buffer, style: Style) {
        let position = cells.area;
        let (top, _) = self.area.scroll_offset();
        let mut former = None;
        for y in 0..position.height {
            let start = self.area.screen_to_data(usize::from(top + y), 0);
            // Below the text, the last line is returned again.
            if former.is_some_and(|former| start <= former) {
                break;
            }
            former = Some(start);
            let DataCursor(row, from) = start;
            let next = self.area.screen_to_data(usize::from(top + y) + 1, 0);
            let line = self.line(row);
            let bytes = byte_at(line, from)..match next {
                DataCursor(next, col) if next == row && col > from => byte_at(line, col),
                _ => line.len(),
            };
            let labels = self.labels_in(line).map(|(range, _)| range);
            let mentions = mentions(line).into_iter().map(|(range, _)| range);
            for part in labels.chain(mentions) {
                let shown = part.start.max(bytes.start)..part.end.min(bytes.end);
                let before = line.get(bytes.start..shown.start);
                let Some((before, visible)) = before.zip(line.get(shown)) else { continue };
                // The width of a tab depends on its place.
                if visible.is_empty() || before.contains('\t') {
                    continue;
                }
                let number = |cols: usize| u16::try_from(cols).unwrap_or(u16::MAX);
                let area = Rect {
                    x: position.x.saturating_add(number(text::width(before))),
                    y: position.y + y,
                    width: number(text::width(visible)),
                    height: 1,
                };
                cells.set_style(area, style);
                for position in area.intersection(cells.area).positions() {
                    if let Some(cell) = cells.cell_mut(position).filter(|cell| cell.symbol() == "\u{a0}") {
                        cell.set_char(' ');
                    }
                }
            }
        }
    }
}

pub(super) fn shown_labels(text: &str) -> Vec<ShownLabel> {
    let labels = attachment_labels(text).into_iter().enumerate();
    let shown = labels.filter_map(|(index, label)| {
        let label_text = text.get(label.range.clone())?;
        let shown = label.numbered(label_text, index + 1).replacen(": ", SHOWN_COLON, 1);
        Some(ShownLabel { shown, text: label_text.to_owned() })
    });
    shown.collect()
}

/// The byte of a column, which counts characters.
pub(super) fn byte_at(line: &str, col: usize) -> usize {
    line.char_indices().nth(col).map_or(line.len(), |(at, _)| at)
}

#[cfg(test)]
mod tests {
    use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

    use super::*;
    use crate::model::Action;

    const CHIP: &str = "[Pasted text #7dd3e5fd25: 2 lines]";
    const IMAGE: &str = "[Image #0123456789: 640×480, 12 KiB]";

    /// A prompt with the cursor at `|`.
    fn at(text: &str) -> Composer {
        let mut composer = Composer::default();
        let (before, after) = text.split_once('|').unwrap();
        composer.set_text(&format!("{before}{after}"));
        composer.show(&format!("{before}{after}"), before.len());
        composer
    }

    /// The prompt with `|` at the cursor, and short labels.
    fn seen(composer: &Composer) -> String {
        let mut text = composer.text();
        text.insert(composer.offset(), '|');
        text.replace(CHIP, "[P]").replace(IMAGE, "[I]")
    }

    fn after(text: &str, actions: &[Action]) -> String {
        let mut composer = at(&text.replace("[P]", CHIP).replace("[I]", IMAGE));
        for action in actions {
            composer.act(*action, false);
        }
        seen(&composer)
    }

    #[test]
    fn the_cursor_steps_over_a_label() {
        for (text, action, expected) in [
            ("a[P]|b", Action::CursorLeft, "a|[P]b"),
            ("a|[P]b", Action::CursorRight, "a[P]|b"),
            ("é [I]|", Action::CursorLeft, "é |[I]"),
            ("[P][I]|", Action::CursorLeft, "[P]|[I]"),
            ("a [P]|", Action::WordLeft, "a |[P]"),
            ("a [P] |", Action::WordLeft, "a |[P] "),
            ("a [P].|", Action::WordLeft, "a [P]|."),
            ("a |[P] b", Action::WordRight, "a [P]| b"),
            ("a. |.[P] b", Action::WordRight, "a. .|[P] b"),
            ("[P]\n|a", Action::WordLeft, "[P]|\na"),
        ] {
            assert_eq!(after(text, &[action]), expected, "{text} {action:?}");
        }
    }

    #[test]
    fn labels_are_drawn_with_their_number() {
        let mut composer = at(&format!("a {CHIP}\n{IMAGE} and {CHIP}|"));
        for (cols, expected) in [
            (
                80_u16,
                "a [Pasted text #1: 2 lines]\n\
                 [Image #2: 640×480, 12 KiB] and [Pasted text #3: 2 lines]",
            ),
            (30, "a [Pasted text #1: 2 lines]\n[Image #2: 640×480, 12 KiB]\nand [Pasted text #3: 2 lines]"),
        ] {
            let area = Rect::new(0, 0, cols, 6);
            let mut cells = Buffer::empty(area);
            ratatui::widgets::Widget::render(&composer.area, area, &mut cells);
            composer.style_parts(&mut cells, Style::default());
            let rows = area.rows().map(|row| {
                let text: String = row
                    .positions()
                    .filter_map(|at| cells.cell(at))
                    .map(ratatui::buffer::Cell::symbol)
                    .collect();
                text.trim_end().to_owned()
            });
            let shown: Vec<String> = rows.filter(|row| !row.is_empty()).collect();
            assert_eq!(shown.join("\n"), expected, "{cols}");
            composer.forget();
        }
    }

    #[test]
    fn shown_labels_keep_their_content() {
        const OTHER: &str = "[Pasted text #0a1b2c3d4e: 2 lines]";
        let shown = |composer: &Composer| composer.area.lines().join("\n").replace('\u{a0}', " ");
        let mut composer = at(&format!("{CHIP} {OTHER} @a|"));
        assert_eq!(shown(&composer), "[Pasted text #1: 2 lines] [Pasted text #2: 2 lines] @a");
        assert_eq!(composer.typed_mention().map(|(range, _)| range), Some(70..72));
        composer.act(Action::LineStart, false);
        composer.act(Action::DeleteAfter, false);
        assert_eq!(composer.text(), format!(" {OTHER} @a"));
        assert_eq!(shown(&composer), " [Pasted text #1: 2 lines] @a", "numbered by place");
        composer.act(Action::Undo, false);
        assert_eq!(composer.text(), format!("{CHIP} {OTHER} @a"));
        composer.act(Action::LineEnd, false);
        composer.insert(&format!("{CHIP}[Pasted text #2: 2 lines]"));
        assert_eq!(composer.text(), format!("{CHIP} {OTHER} @a{CHIP}[Pasted text #2: 2 lines]"));
        assert_eq!(composer.offset(), composer.text().len());
        composer.act(Action::DeleteToLineStart, false);
        composer.set_text(OTHER);
        composer.act(Action::Yank, false);
        assert_eq!(
            composer.text(),
            format!("{OTHER}{CHIP} {OTHER} @a{CHIP}[Pasted text #2: 2 lines]"),
            "text that looks like a label stays text"
        );
    }

    #[test]
    fn vim_keys_take_labels_as_characters() {
        let mut composer = at(&format!("{CHIP} {IMAGE}|"));
        composer.set_vim(true);
        let keys = |composer: &mut Composer, keys: &str| {
            for ch in keys.chars() {
                let code = if ch == '^' { KeyCode::Esc } else { KeyCode::Char(ch) };
                composer.vim_key(&KeyEvent::new(code, KeyModifiers::NONE));
            }
            seen(composer)
        };
        assert_eq!(keys(&mut composer, "^"), "[P] |[I]");
        assert_eq!(keys(&mut composer, "x0p"), "[P]|[I] ");
        assert_eq!(keys(&mut composer, "uu"), "[P] |[I]");
    }

    #[test]
    fn vertical_motions_do_not_stop_inside_a_label() {
        let mut composer = at(&format!("{CHIP}\n0123456789|"));
        assert!(composer.step_row(true));
        assert_eq!(seen(&composer), "|[P]\n0123456789");
        let mut composer = at(&format!("0123456789|\n{CHIP} end"));
        assert!(composer.step_row(false));
        assert_eq!(seen(&composer), "0123456789\n[P]| end");
    }

    #[test]
    fn a_label_is_deleted_whole_and_restored_by_one_undo() {
        for (text, action, expected) in [
            ("a[P]|b", Action::DeleteBefore, "a|b"),
            ("a|[I]b", Action::DeleteAfter, "a|b"),
            ("a [P]|b", Action::DeleteWordBefore, "a |b"),
            ("a [P].|b", Action::DeleteWordBefore, "a [P]|b"),
            ("a |[P] b", Action::DeleteWordAfter, "a | b"),
            ("x .|[P]", Action::DeleteWordBefore, "x |[P]"),
            ("a |.[P]", Action::DeleteWordAfter, "a |[P]"),
            ("a\n|[P]", Action::DeleteWordBefore, "a|[P]"),
        ] {
            assert_eq!(after(text, &[action]), expected, "{text} {action:?}");
            let restored = after(text, &[action, Action::Undo]);
            assert_eq!(restored.replace('|', ""), text.replace('|', ""), "{text} {action:?}");
        }
    }

    #[test]
    fn edits_of_words_leave_labels_unchanged() {
        use Action::{CapitalizeWord, LowercaseWord, Transpose, UppercaseWord};
        for (text, action, expected) in [
            ("|one [P]", UppercaseWord, "ONE| [P]"),
            ("one| [P] two", UppercaseWord, "one [P] TWO|"),
            ("|[P]TWO", LowercaseWord, "[P]two|"),
            ("one[I]|two", CapitalizeWord, "one[I]Two|"),
            ("on|e[I]two", UppercaseWord, "onE|[I]two"),
            ("one [P]|", UppercaseWord, "one [P]|"),
            ("a|[P]b", Transpose, "[P]a|b"),
            ("a[P]|", Transpose, "[P]a|"),
            ("[P]|[I]", Transpose, "[I][P]|"),
        ] {
            assert_eq!(after(text, &[action]), expected, "{text} {action:?}");
        }
    }

    #[test]
    fn selections_and_cut_text_contain_whole_labels() {
        let mut composer = at(&format!("a {CHIP}|"));
        composer.act(Action::CursorLeft, true);
        composer.act(Action::DeleteBefore, false);
        assert_eq!(composer.text(), "a ");
        assert_eq!(after("a [P] b|", &[Action::DeleteToLineStart, Action::Yank]), "a [P] b|");
        assert_eq!(after("a [P]|", &[Action::DeleteWordBefore, Action::Yank, Action::Yank]), "a [P][P]|");
    }
}
