//! The text area of the prompt: multi-line editing, undo, word motions and soft wrapping.
//!
//! Receives typed characters, editing actions and pastes from `input`; [`Composer::text`] returns the text.
//!
//! Invariants: the text contains no control characters except line breaks and tabs; the cursor is never
//! inside a grapheme or a label of an attachment.

mod change;
mod chips;
pub(super) mod edge;
mod edits;
mod history;
mod kills;
mod vim;
mod vim_keys;

pub use vim_keys::CursorShape;
pub(super) use vim_keys::VimKey;

use std::ops::Range;

use change::Histories;
use kills::Kills;
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::KeyEvent;
use ratatui::layout::{Position, Rect};
use ratatui::style::Style;
use ratatui::widgets::Widget;
use tui_textarea::{CursorMove, DataCursor, TextArea, WrapMode};
use vim::Vim;
use vim::text::Text;

use crate::config::keymap::Context;
use crate::config::keymap::chord::{Chord, TypedKey, typed_key};
use crate::core::SessionPhase;
use crate::core::lifecycle::operations;
use crate::model::{Action, ArchiveRow, typed_argument, typed_mention};
use crate::ui::canvas::Canvas;

use super::frame_context::FrameContext;
use super::hits::{Hit, HitMap};
use super::status;
use super::text;
use super::theme::Role;
use chips::{ShownLabel, Side};

/// Maximum number of text rows.
pub(super) const MAX_ROWS: u16 = 8;

#[derive(Debug, Clone)]
pub(super) struct Composer {
    /// Labels of attachments have their number in it; [`Composer::text`] has their id.
    area: TextArea<'static>,
    labels: Vec<ShownLabel>,
    /// The area in which it was last drawn.
    position: Rect,
    /// Width and number of rows; `None` after an edit.
    rows: Option<(u16, u16)>,
    /// The cached cells; `None` after a key press.
    drawn: Option<Drawn>,
    /// Counts what may have changed the text or the cursor.
    rev: u64,
    histories: Histories,
    kills: Kills,
    /// The state of vim keys, if they are enabled.
    vim: Option<Vim>,
    /// Whether it takes the place of the transcript.
    pub is_full: bool,
}

/// The drawn cells, cached because the text area wraps all of its text whenever it is drawn.
#[derive(Debug, Clone)]
struct Drawn {
    style: Style,
    cells: Buffer,
    cursor: Position,
    /// Number of rows above and below.
    hidden: (usize, usize),
}

impl Default for Composer {
    fn default() -> Self {
        Self {
            area: text_area(vec![String::new()]),
            labels: Vec::new(),
            position: Rect::default(),
            rows: None,
            drawn: None,
            rev: 0,
            histories: Histories::default(),
            kills: Kills::default(),
            vim: None,
            is_full: false,
        }
    }
}

pub fn types_character(key: &KeyEvent) -> bool {
    matches!(typed_key(key), Some(TypedKey::Character(_)))
}

fn text_area(lines: Vec<String>) -> TextArea<'static> {
    let mut area = TextArea::new(lines);
    area.set_wrap_mode(WrapMode::WordOrGlyph);
    area.set_tab_length(4);
    area.set_cursor_line_style(Style::default());
    area.set_cursor_style(Style::default());
    // `history` has the undo steps.
    area.set_max_histories(0);
    area
}

impl Composer {
    pub fn text(&self) -> String {
        self.with_ids(&self.area.lines().join("\n"))
    }

    /// Whether the text is a command for the user's shell.
    pub fn is_command(&self) -> bool {
        self.area.lines().first().is_some_and(|line| line.starts_with('!'))
    }

    pub fn is_empty(&self) -> bool {
        self.area.is_empty()
    }

    /// The mention that is being typed: its bytes in the text, and the path so far.
    pub fn typed_mention(&self) -> Option<(Range<usize>, String)> {
        if self.is_command() {
            return None;
        }
        let text = Text { text: self.text(), at: self.offset() };
        let start = text.line_start(text.at);
        let (range, path) = typed_mention(text.line(text.at), text.at - start)?;
        Some((start + range.start..start + range.end, path.to_owned()))
    }

    /// The argument of a slash command that is being typed: its bytes in the text, and the path so far.
    pub fn typed_argument(&self) -> Option<(Range<usize>, String)> {
        if !self.area.lines().first().is_some_and(|line| line.starts_with('/')) {
            return None;
        }
        typed_argument(&self.text(), self.offset()).map(|(range, path)| (range, path.to_owned()))
    }

    /// A number that changes when the text or the cursor may have changed.
    pub fn rev(&self) -> u64 {
        self.rev
    }

    fn forget(&mut self) {
        self.number_labels();
        self.rows = None;
        self.forget_drawn();
    }

    fn forget_drawn(&mut self) {
        self.clamp_cursor();
        self.record();
        self.drawn = None;
        self.rev += 1;
    }

    /// Inserts text at the cursor as one undo step.
    pub fn insert(&mut self, text: &str) -> bool {
        let clean = clean(text);
        let is_change = !clean.is_empty() && self.area.insert_str(clean);
        self.forget();
        is_change
    }

    pub fn new_line(&mut self) {
        self.area.insert_newline();
        self.forget();
    }

    /// Inserts the character that a key types. Returns whether it types one.
    pub fn on_key(&mut self, key: &KeyEvent) -> bool {
        let typed = Chord::of(key).and_then(|chord| chord.typed()).filter(|ch| !ch.is_control());
        if let Some(ch) = typed {
            if self.vim.as_ref().is_some_and(|vim| !vim.is_inserting()) {
                self.start_typing();
            }
            self.area.insert_char(ch);
            self.forget();
        }
        typed.is_some()
    }

    /// Moves the cursor one row up or down; returns false at the first or last row, where the prompt history
    /// is used.
    pub fn step_row(&mut self, is_up: bool) -> bool {
        let before = self.area.screen_cursor().row;
        let is_edge_line = if is_up {
            before == 0
        } else {
            let DataCursor(row, _) = self.area.cursor();
            let mut probe = self.area.clone();
            probe.move_cursor(CursorMove::Down);
            let DataCursor(after, _) = probe.cursor();
            after == row && probe.screen_cursor().row == before
        };
        if is_edge_line {
            return false;
        }
        self.area.move_cursor(if is_up { CursorMove::Up } else { CursorMove::Down });
        self.leave_chip(if is_up { Side::Start } else { Side::End });
        self.forget_drawn();
        true
    }

    pub fn click(&mut self, at: Position) {
        let (top, left) = self.area.scroll_offset();
        let row = usize::from(at.y.saturating_sub(self.position.y) + top);
        let col = usize::from(at.x.saturating_sub(self.position.x) + left);
        let DataCursor(row, col) = self.area.screen_to_data(row, col);
        let jump = |position: usize| u16::try_from(position).unwrap_or(u16::MAX);
        self.area.move_cursor(CursorMove::Jump(jump(row), jump(col)));
        self.leave_chip(Side::Nearest);
        self.forget_drawn();
    }

    /// Number of rows at this width, from 1 to [`MAX_ROWS`], unless it takes the place of the transcript.
    pub fn rows(&mut self, cols: u16) -> u16 {
        if let Some((_, rows)) = self.rows.filter(|(width, _)| *width == cols) {
            return rows;
        }
        // The text area counts its rows only when it is drawn, so a copy is drawn into a discarded buffer.
        // This is skipped if the number of lines already exceeds the limit.
        let rows = if self.area.lines().len() >= usize::from(MAX_ROWS) {
            MAX_ROWS
        } else {
            let mut probe = text_area(self.area.lines().to_vec());
            let area = Rect::new(0, 0, cols.max(1), 1);
            (&probe).render(area, &mut Buffer::empty(area));
            probe.move_cursor(CursorMove::Bottom);
            probe.move_cursor(CursorMove::End);
            u16::try_from(probe.screen_cursor().row + 1).unwrap_or(MAX_ROWS).clamp(1, MAX_ROWS)
        };
        self.rows = Some((cols, rows));
        rows
    }

    /// Draws the text and returns the cursor position. The surface includes the edge below the text.
    pub fn draw(
        &mut self,
        ctx: &FrameContext,
        is_focused: bool,
        area: Rect,
        edge: Rect,
        buf: &mut Canvas,
        hits: &mut HitMap,
    ) -> Position {
        let Rect { x, y, width, height } = area;
        let (ground, ink, mark) = if is_focused {
            (Role::ComposerSurface, Role::Composer, Role::Accent)
        } else {
            (Role::Text, Role::TextDim, Role::TextDim)
        };
        let ground = Style::new().bg(ctx.style(ground).bg.unwrap_or(ctx.render.theme.screen_bg()));
        let inset = |area: Rect| Rect { x: area.x + 1, width: area.width.saturating_sub(2), ..area };
        buf.set_style(inset(area), ground);
        buf.set_style(inset(edge), ground);
        let mark = if self.is_command() { Role::Warning } else { mark };
        buf.set_string(x + 1, y, ctx.marks.prompt, ctx.style(mark));
        let position = Rect { x: x + 3, y, width: width.saturating_sub(4).max(1), height };
        self.position = position;
        hits.add(area, Hit::Composer);
        if self.is_empty() {
            let hint = text::truncate(&placeholder(ctx), usize::from(position.width));
            text::put_text(buf, position.x, position.y, &hint, position.width, ctx.style(Role::Placeholder));
            return Position::new(position.x, position.y);
        }
        let style = ctx.style(ink).patch(ground);
        let is_same = |drawn: &Drawn| drawn.style == style && drawn.cells.area == position;
        if self.drawn.as_ref().is_none_or(|drawn| !is_same(drawn)) {
            self.area.set_style(style);
            self.area.set_selection_style(ctx.style(Role::Selection));
            let mut cells = Buffer::empty(position);
            cells.set_style(position, style);
            (&self.area).render(position, &mut cells);
            self.style_parts(&mut cells, ctx.style(Role::Accent));
            self.style_selection(&mut cells, ctx.style(Role::Selection));
            let hidden = self.hidden_rows(height);
            self.drawn = Some(Drawn { style, cells, cursor: self.cursor_position(position), hidden });
        }
        let Some(drawn) = &self.drawn else { return position.as_position() };
        for row in position.intersection(buf.area).rows() {
            for at in row.positions() {
                if let (Some(to), Some(from)) = (buf.cell_mut(at), drawn.cells.cell(at)) {
                    to.clone_from(from);
                }
            }
        }
        drawn.cursor
    }

    /// Number of rows above and below the area in which the text was last drawn; `None` if it was not drawn since it or
    /// the cursor changed.
    pub fn hidden(&self) -> Option<(usize, usize)> {
        self.drawn.as_ref().filter(|_| !self.is_empty()).map(|drawn| drawn.hidden)
    }

    /// The same, for the rendered text area.
    fn hidden_rows(&self, height: u16) -> (usize, usize) {
        let (above, _) = self.area.scroll_offset();
        let is_short = self.rows.is_some_and(|(_, rows)| rows <= height && rows < MAX_ROWS);
        if above == 0 && is_short {
            return (0, 0);
        }
        let mut probe = self.area.clone();
        probe.move_cursor(CursorMove::Bottom);
        probe.move_cursor(CursorMove::End);
        let rows = probe.screen_cursor().row + 1;
        (usize::from(above), rows.saturating_sub(usize::from(above) + usize::from(height)))
    }

    /// The cell of the cursor. The text area counts columns by `char`, terminals by grapheme.
    fn cursor_position(&self, position: Rect) -> Position {
        let screen = self.area.screen_cursor();
        let (top, _) = self.area.scroll_offset();
        let DataCursor(row, col) = self.area.cursor();
        let DataCursor(_, from) = self.area.screen_to_data(screen.row, 0);
        let before: String = self.line(row).chars().skip(from).take(col.saturating_sub(from)).collect();
        let cols = if before.contains('\t') { screen.col } else { text::width(&before) };
        let x = u16::try_from(cols).unwrap_or(u16::MAX).min(position.width.saturating_sub(1));
        let y = u16::try_from(screen.row).unwrap_or(u16::MAX).saturating_sub(top);
        Position::new(position.x + x, position.y + y.min(position.height.saturating_sub(1)))
    }
}

/// Text for the prompt: normalises line breaks and removes other control characters.
pub(super) fn clean(text: &str) -> String {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    text.chars().filter(|ch| !ch.is_control() || matches!(ch, '\n' | '\t')).collect()
}

fn placeholder(ctx: &FrameContext) -> String {
    let agent = ctx.agent();
    if ctx.session.parent.is_some() {
        return match ctx.key(Context::Main, Action::Escape) {
            Some(key) => format!("Read-only subagent; {key} to go back"),
            None => "Read-only subagent".to_owned(),
        };
    }
    match &ctx.session.phase {
        SessionPhase::NoAgent => match ctx.key(Context::Main, Action::Submit) {
            Some(key) => format!("{key} to select an agent"),
            None => "Select an agent first".to_owned(),
        },
        SessionPhase::Starting { .. } | SessionPhase::Opening { .. } => {
            format!("Queue a prompt; {agent} is starting")
        }
        SessionPhase::NeedsSignIn => match ctx.key(Context::Main, Action::Submit) {
            Some(key) => format!("{key} to sign in to {agent}"),
            None => format!("Sign in to {agent} first"),
        },
        SessionPhase::Ended { .. } if status::never_started(ctx) => {
            match ctx.key(Context::Main, Action::OpenAgents) {
                Some(key) => format!("{key} to select another agent"),
                None => format!("{agent} could not be started"),
            }
        }
        SessionPhase::Failed(_) | SessionPhase::Ended { .. } => {
            match ctx.key(Context::Main, Action::RestartAgent) {
                Some(key) if ctx.session.is_archived => format!("{key} to unarchive this session"),
                Some(key) if ctx.is_reached() => format!("{key} to reconnect to {agent}"),
                Some(key) => format!("{key} to restart {agent}"),
                None if ctx.session.is_archived => "Session archived".to_owned(),
                None if ctx.is_reached() => format!("{agent} disconnected"),
                None => format!("{agent} exited"),
            }
        }
        SessionPhase::Ready if ctx.session.turn.is_running() => "Queue a prompt".to_owned(),
        SessionPhase::Ready if operations::last_session(ctx.state).is_some() => {
            let last = operations::last_session(ctx.state).map(ArchiveRow::name).unwrap_or_default();
            match ctx.key(Context::Main, Action::ContinueLast) {
                Some(key) => {
                    format!("Ask {agent} to do something; {key} to resume “{}”", text::one_line(last))
                }
                None => format!("Ask {agent} to do something"),
            }
        }
        SessionPhase::Ready if ctx.session.commands.is_empty() => format!("Ask {agent} to do something"),
        SessionPhase::Ready => format!("Ask {agent} to do something, or type / for commands"),
    }
}

#[cfg(test)]
mod tests {
    use ratatui::crossterm::event::{KeyCode, KeyModifiers};

    use super::*;

    fn key(code: KeyCode, modifiers: KeyModifiers) -> KeyEvent {
        KeyEvent::new(code, modifiers)
    }

    fn typed(text: &str) -> Composer {
        let mut composer = Composer::default();
        for ch in text.chars() {
            composer.on_key(&key(KeyCode::Char(ch), KeyModifiers::NONE));
        }
        composer
    }

    #[test]
    fn editing_works_by_grapheme() {
        let mut composer = typed("a");
        composer.insert("👨‍👩‍👧e\u{301}");
        assert_eq!(composer.act(Action::DeleteBefore, false), Some(true));
        assert_eq!(composer.text(), "a👨‍👩‍👧");
        assert_eq!(composer.act(Action::CursorLeft, false), Some(false));
        assert_eq!(composer.act(Action::DeleteAfter, false), Some(true));
        assert_eq!(composer.text(), "a");
    }

    #[test]
    fn pasted_text_has_line_breaks_but_no_control_characters() {
        let mut composer = Composer::default();
        assert!(composer.insert("one\r\ntwo\rthree\u{1b}[31m\u{7}"));
        assert_eq!(composer.text(), "one\ntwo\nthree[31m");
        assert_eq!(composer.act(Action::Undo, false), Some(true));
        assert_eq!(composer.text(), "");
    }

    #[test]
    fn one_undo_restores_cleared_text() {
        let mut composer = typed("one");
        composer.insert("\ntwo\nthree");
        composer.clear();
        assert_eq!(composer.text(), "");
        assert_eq!(composer.act(Action::Undo, false), Some(true));
        assert_eq!(composer.text(), "one\ntwo\nthree");
        composer.set_text(&"x".repeat(70_000));
        composer.clear();
        assert_eq!(composer.text(), "");
    }

    #[test]
    fn row_count_includes_wrapped_lines() {
        let mut composer = typed("short");
        assert_eq!(composer.rows(20), 1);
        composer.set_text("some words that do not fit into twenty columns");
        assert_eq!(composer.rows(20), 3);
        composer.set_text(&"line\n".repeat(40));
        assert_eq!(composer.rows(20), MAX_ROWS);
    }

    #[test]
    fn vertical_motion_stops_at_the_first_and_last_row() {
        let mut composer = Composer::default();
        composer.set_text("one\ntwo");
        assert!(!composer.step_row(false), "the last row");
        assert!(composer.step_row(true));
        assert!(!composer.step_row(true), "the first row");
        assert!(composer.step_row(false));
    }

    #[test]
    fn deleted_words_can_be_pasted() {
        let mut composer = typed("one two");
        assert_eq!(composer.act(Action::DeleteWordBefore, false), Some(true));
        assert_eq!(composer.text(), "one ");
        assert_eq!(composer.act(Action::DeleteToLineStart, false), Some(true));
        assert_eq!(composer.text(), "");
        assert_eq!(composer.act(Action::Yank, false), Some(true));
        assert_eq!(composer.text(), "one two", "deletions in sequence are one");
    }

    #[test]
    fn only_characters_are_typed() {
        let mut composer = typed("x");
        for code in [KeyCode::Enter, KeyCode::Esc, KeyCode::Tab, KeyCode::PageUp, KeyCode::F(1)] {
            assert!(!composer.on_key(&key(code, KeyModifiers::NONE)), "{code:?}");
        }
        for modifiers in [KeyModifiers::CONTROL, KeyModifiers::ALT, KeyModifiers::SUPER] {
            assert!(!composer.on_key(&key(KeyCode::Char('a'), modifiers)), "{modifiers:?}");
        }
        assert!(composer.on_key(&key(KeyCode::Char('y'), KeyModifiers::SHIFT)));
        assert_eq!(composer.text(), "xY");
        assert_eq!(composer.act(Action::Submit, false), None);
    }
}
