//! Vim keys in the composer: from keys to the state machine, and from its result to the text area.

use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::layout::{Position, Rect};
use ratatui::style::Style;
use tui_textarea::DataCursor;
use unicode_segmentation::UnicodeSegmentation;

use super::vim::text::Text;
use super::vim::{ESCAPE, Mode, Reply, Vim};
use super::{Composer, clean};
use crate::config::keymap::chord::Chord;
use crate::ui::text::width;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CursorShape {
    #[default]
    Default,
    Block,
    Bar,
    Underline,
}

/// The result of a key that vim mode handled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::ui) enum VimKey {
    Done,
    Escape,
    /// The cursor is in the first or last line already: for the prompt history.
    History {
        is_up: bool,
    },
    Copy(String),
    /// The text of the clipboard is inserted when it is known.
    ReadClipboard,
}

impl Composer {
    pub fn set_vim(&mut self, is_on: bool) {
        if is_on != self.vim.is_some() {
            self.commit();
            self.vim = is_on.then(Vim::default);
            self.forget_drawn();
        }
    }

    /// Starts insert mode, if vim keys are enabled.
    pub(in crate::ui) fn start_typing(&mut self) {
        if let Some(vim) = &mut self.vim {
            vim.reset();
            self.forget_drawn();
        }
    }

    /// The name of the mode and the keys of the incomplete command; whether typed characters are text.
    pub(in crate::ui) fn mode_label(&self) -> Option<(String, bool)> {
        let vim = self.vim.as_ref()?;
        let name = match vim.mode() {
            Mode::Normal => "NORMAL",
            Mode::Insert => "INSERT",
            Mode::Replace => "REPLACE",
            Mode::Visual => "VISUAL",
            Mode::VisualLine => "V-LINE",
        };
        let keys = if vim.pending().is_empty() { String::new() } else { format!(" {}", vim.pending()) };
        Some((format!("{name}{keys}"), vim.is_inserting()))
    }

    pub(in crate::ui) fn cursor_shape(&self) -> CursorShape {
        match self.vim.as_ref().map(Vim::mode) {
            None => CursorShape::Default,
            Some(Mode::Insert) => CursorShape::Bar,
            Some(Mode::Replace) => CursorShape::Underline,
            Some(Mode::Normal | Mode::Visual | Mode::VisualLine) => CursorShape::Block,
        }
    }

    /// Handles a key, if it is one of the current vim mode.
    pub(in crate::ui) fn vim_key(&mut self, key: &KeyEvent) -> Option<VimKey> {
        let is_empty = self.is_empty();
        let vim = self.vim.as_ref()?;
        let key = vim_key(key, vim)?;
        let was_inserting = vim.is_inserting();
        // There is nothing to search: `?` shows the help, and `/` starts a command.
        if matches!(key, '?' | '/') && is_empty && vim.pending().is_empty() && !was_inserting {
            return None;
        }
        let mut text = Text { text: self.text(), at: self.offset() };
        let vim = self.vim.as_mut()?;
        let reply = vim.key(key, &mut text);
        if reply == Reply::Unused {
            return None;
        }
        if !was_inserting {
            let from = vim.undo_at();
            self.histories.current.place(from);
        }
        match reply {
            Reply::Undo(times) => _ = self.undo(times, false),
            Reply::Redo(times) => _ = self.undo(times, true),
            _ => self.show(&clean(&text.text), text.at),
        }
        self.forget();
        Some(match reply {
            Reply::Edge { is_up } => VimKey::History { is_up },
            Reply::Copy(text) => VimKey::Copy(text),
            Reply::ReadClipboard => VimKey::ReadClipboard,
            _ if key == ESCAPE => VimKey::Escape,
            _ => VimKey::Done,
        })
    }

    /// Runs the command that waits for the text of the clipboard; `None`: it cannot be read. Returns whether there was one.
    pub(in crate::ui) fn put_clipboard(&mut self, contents: Option<&str>) -> bool {
        let mut text = Text { text: self.text(), at: self.offset() };
        let Some(vim) = &mut self.vim else { return false };
        if !vim.put_clipboard(contents, &mut text) {
            return false;
        }
        let from = vim.undo_at();
        self.histories.current.place(from);
        self.show(&text.text, text.at);
        self.forget();
        true
    }

    /// Moves the cursor after the character that it is on: a paste in normal mode is appended.
    pub(in crate::ui) fn prepare_paste(&mut self) {
        let mut text = Text { text: self.text(), at: 0 };
        let Some(vim) = self.vim.as_mut().filter(|vim| !vim.is_inserting()) else { return };
        vim.key(ESCAPE, &mut text);
        text.at = self.offset();
        if !text.is_line_end(text.at) {
            text.at = text.after(text.at);
        }
        self.show(&text.text, text.at);
    }

    /// In normal mode the cursor is on a character.
    pub(super) fn clamp_cursor(&mut self) {
        if self.vim.as_ref().is_some_and(|vim| vim.mode() == Mode::Normal) {
            let DataCursor(row, col) = self.area.cursor();
            if col > 0 && col >= self.line(row).chars().count() {
                for _ in 0..self.before() {
                    self.area.move_cursor(tui_textarea::CursorMove::Back);
                }
            }
        }
    }

    /// Highlights the text selected in visual mode.
    pub(super) fn style_selection(&self, cells: &mut Buffer, style: Style) {
        let Some(vim) = self.vim.as_ref().filter(|vim| vim.is_visual()) else { return };
        let text = Text { text: self.text(), at: self.offset() };
        let Some(selected) = vim.selection(&text) else { return };
        let shown = |at: usize| self.without_ids(text.slice(0..at)).len();
        let selected = shown(selected.start)..shown(selected.end);
        let lines = self.area.lines();
        let starts: Vec<usize> = lines
            .iter()
            .scan(0, |end, line| {
                let start = *end;
                *end += line.len() + 1;
                Some(start)
            })
            .collect();
        let (top, _) = self.area.scroll_offset();
        for y in 0..cells.area.height {
            let screen = usize::from(top + y);
            let DataCursor(row, from) = self.area.screen_to_data(screen, 0);
            let DataCursor(next, to) = self.area.screen_to_data(screen + 1, 0);
            let (Some(line), Some(start)) = (lines.get(row), starts.get(row)) else { continue };
            let byte = |col: usize| line.char_indices().nth(col).map_or(line.len(), |(at, _)| at);
            let begin = byte(from);
            let end = if next == row && to > from { byte(to) } else { line.len() };
            let mut x = 0;
            for (offset, grapheme) in line.get(begin..end).unwrap_or_default().grapheme_indices(true) {
                let at = start + begin + offset;
                let cols = width(grapheme);
                if selected.contains(&at) {
                    let position = Position::new(cells.area.x.saturating_add(x), cells.area.y + y);
                    let cols = u16::try_from(cols).unwrap_or(1);
                    cells.set_style(Rect { x: position.x, y: position.y, width: cols, height: 1 }, style);
                }
                x = x.saturating_add(u16::try_from(cols).unwrap_or(1));
            }
            // An empty line, or the line break.
            if selected.contains(&(start + line.len())) && end == line.len() {
                let x = cells.area.x.saturating_add(x);
                cells.set_style(Rect { x, y: cells.area.y + y, width: 1, height: 1 }, style);
            }
            if screen + 1 > usize::from(top) + usize::from(cells.area.height) || (next, to) == (row, from) {
                break;
            }
        }
    }
}

/// The character of a key for the state machine; `None`: not a key of the mode.
fn vim_key(key: &KeyEvent, vim: &Vim) -> Option<char> {
    let is_control = key.modifiers == KeyModifiers::CONTROL;
    match key.code {
        KeyCode::Esc if key.modifiers.is_empty() => return Some(ESCAPE),
        KeyCode::Char('[') if is_control => return Some(ESCAPE),
        _ if vim.mode() == Mode::Insert => return None,
        KeyCode::Backspace if key.modifiers.is_empty() => return Some('\u{8}'),
        KeyCode::Char('h') if is_control => return Some('\u{8}'),
        _ => {}
    }
    let typed = Chord::of(key).and_then(|chord| chord.typed()).filter(|ch| !ch.is_control());
    if typed.is_some() || vim.mode() == Mode::Replace {
        return typed;
    }
    let is_begun = !vim.pending().is_empty();
    match key.code {
        KeyCode::Char('r') if is_control => Some('\u{12}'),
        _ if !key.modifiers.is_empty() => None,
        KeyCode::Left => Some('h'),
        KeyCode::Right => Some('l'),
        KeyCode::Delete => Some('x'),
        KeyCode::Home if !vim.pending().ends_with(|key: char| key.is_ascii_digit()) => Some('0'),
        KeyCode::End => Some('$'),
        KeyCode::Up if is_begun || vim.is_visual() => Some('k'),
        KeyCode::Down if is_begun || vim.is_visual() => Some('j'),
        KeyCode::Enter if is_begun => Some('\n'),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Action;

    fn composer() -> Composer {
        let mut composer = Composer::default();
        composer.set_vim(true);
        composer
    }

    /// Types characters: as vim keys, or as text in insert mode. `^[` is Escape.
    fn keys(composer: &mut Composer, keys: &str) {
        for ch in keys.chars() {
            let code = if ch == ESCAPE { KeyCode::Esc } else { KeyCode::Char(ch) };
            let key = KeyEvent::new(code, KeyModifiers::NONE);
            if composer.vim_key(&key).is_none() {
                composer.on_key(&key);
            }
        }
    }

    fn mode(composer: &Composer) -> String {
        composer.mode_label().map(|(label, _)| label).unwrap_or_default()
    }

    #[test]
    fn a_prompt_starts_in_insert_mode() {
        let mut composer = composer();
        assert_eq!(mode(&composer), "INSERT");
        keys(&mut composer, "one two\u{1b}bD");
        assert_eq!((composer.text().as_str(), mode(&composer).as_str()), ("one ", "NORMAL"));
        keys(&mut composer, "2\"a");
        assert_eq!(mode(&composer), "NORMAL 2\"a");
        composer.start_typing();
        assert_eq!((mode(&composer).as_str(), composer.cursor_shape()), ("INSERT", CursorShape::Bar));
    }

    #[test]
    fn insert_mode_is_one_undo_step() {
        let mut composer = composer();
        keys(&mut composer, "one two\u{1b}A three\u{1b}");
        assert_eq!(composer.text(), "one two three");
        keys(&mut composer, "u");
        assert_eq!(composer.text(), "one two");
        keys(&mut composer, "u");
        assert_eq!(composer.text(), "");
        let redo = KeyEvent::new(KeyCode::Char('r'), KeyModifiers::CONTROL);
        composer.vim_key(&redo);
        composer.vim_key(&redo);
        assert_eq!(composer.text(), "one two three");
    }

    #[test]
    fn a_completion_in_insert_mode_is_an_undo_step_of_its_own() {
        let mut composer = composer();
        keys(&mut composer, "see @ma");
        composer.replace_range(4..7, "@main.rs ");
        keys(&mut composer, "now\u{1b}u");
        assert_eq!(composer.text(), "see @main.rs ");
        keys(&mut composer, "u");
        assert_eq!(composer.text(), "see @ma");
    }

    #[test]
    fn other_actions_leave_the_cursor_on_a_character() {
        let mut composer = composer();
        keys(&mut composer, "one two\u{1b}0");
        composer.act(Action::LineEnd, false);
        keys(&mut composer, "x");
        assert_eq!(composer.text(), "one tw");
        composer.set_text("from history");
        keys(&mut composer, "x");
        assert_eq!(composer.text(), "from histor");
    }

    #[test]
    fn a_paste_in_normal_mode_is_appended() {
        let mut composer = composer();
        keys(&mut composer, "one\u{1b}");
        composer.prepare_paste();
        composer.insert(" two");
        keys(&mut composer, "x");
        assert_eq!(composer.text(), "one tw");
    }

    #[test]
    fn arrows_are_motions() {
        let mut composer = composer();
        keys(&mut composer, "one\u{1b}");
        let arrow = |code| KeyEvent::new(code, KeyModifiers::NONE);
        assert_eq!(composer.vim_key(&arrow(KeyCode::Up)), None, "for the history");
        assert_eq!(composer.vim_key(&arrow(KeyCode::Left)), Some(VimKey::Done));
        keys(&mut composer, "x");
        assert_eq!(composer.text(), "oe");
        keys(&mut composer, "k");
        assert_eq!(composer.vim_key(&arrow(KeyCode::Char('k'))), Some(VimKey::History { is_up: true }));
        assert_eq!(composer.vim_key(&arrow(KeyCode::Enter)), None, "it sends the prompt");
    }

    #[test]
    fn selected_cells_are_highlighted() {
        let mut composer = composer();
        keys(&mut composer, "ab日本 cd ef\u{1b}0llvl");
        let area = Rect::new(2, 1, 8, 3);
        let mut cells = Buffer::empty(area);
        ratatui::widgets::Widget::render(&composer.area, area, &mut cells);
        composer.style_selection(&mut cells, Style::new().bold());
        let bold = |cells: &Buffer| {
            area.positions()
                .filter(|at| cells[*at].style().add_modifier == Style::new().bold().add_modifier)
                .count()
        };
        assert_eq!(bold(&cells), 4);
        assert!(cells[(4, 1)].modifier.contains(ratatui::style::Modifier::BOLD));
        keys(&mut composer, "V");
        composer.style_selection(&mut cells, Style::new().bold());
        assert!(cells[(2, 2)].modifier.contains(ratatui::style::Modifier::BOLD), "the wrapped row");
    }
}
