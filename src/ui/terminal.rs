//! Command output as styled lines, read through a terminal emulator.
//!
//! [`Screen`] feeds only new bytes, retains scrolled lines as compact text, and shows the final state of a
//! progress bar instead of each step. `TerminalView` holds the raw bytes.
//!
//! Invariants: colours are the command's own, the only ones from outside the theme; the output consists of
//! vt100 cells, which are also sanitised.

use std::collections::VecDeque;
use std::num::NonZeroU16;

use ratatui::layout::{Position, Rect};
use ratatui::style::{Color, Modifier, Style};

use crate::core::TerminalView;
use crate::model::{TerminalSize, open_character};
use crate::ui::canvas::Canvas;
use crate::ui::text::{Line, Span};

use super::text::{put_text, sanitize};

/// Size of the emulated screen if that of the terminal is not known: wider than most terminals, so that lines are wrapped
/// by the layout.
const ROWS: NonZeroU16 = NonZeroU16::new(40).expect("40 is not 0");
const COLS: NonZeroU16 = NonZeroU16::new(240).expect("240 is not 0");

/// Number of bytes fed at once: each byte can scroll at most one row, and all rows must fit the scrollback.
const CHUNK_BYTES: usize = 400;

const LINES_MAX: usize = 5000;

/// Number of bytes that are read to show only the end of a long output.
const TAIL_BYTES: usize = 16 * 1024;

/// A terminal's output as on an endless screen.
pub struct Screen {
    parser: vt100::Parser,
    /// The screen of the full-screen program that runs, and the number of bytes fed to it.
    alternate: Option<Box<vt100::Parser>>,
    alternate_fed: u64,
    /// Lines that were scrolled out of the emulated screen.
    history: VecDeque<Line<'static>>,
    /// Whether the last line of the history continues on the screen.
    is_continued: bool,
    /// Number of lines that were removed from the start of the history.
    dropped_lines: u64,
    /// Number of bytes fed, including those dropped by the view.
    fed: u64,
    lines_max: usize,
}

impl Default for Screen {
    fn default() -> Self {
        Self {
            parser: vt100::Parser::new(ROWS, COLS, CHUNK_BYTES + usize::from(ROWS.get())),
            alternate: None,
            alternate_fed: 0,
            history: VecDeque::new(),
            is_continued: false,
            dropped_lines: 0,
            fed: 0,
            lines_max: LINES_MAX,
        }
    }
}

impl Screen {
    /// Reads the new output of a terminal.
    pub fn update(&mut self, view: &TerminalView) {
        let end = view.dropped_bytes + view.output.len() as u64;
        if end < self.fed {
            *self = Self::default();
        }
        if let Some(size) = view.size {
            self.resize(size);
        }
        self.update_alternate(view);
        let from = usize::try_from(self.fed.saturating_sub(view.dropped_bytes)).unwrap_or(usize::MAX);
        let left = self.feed(view.output.get(from..).unwrap_or_default(), view.is_ours);
        self.fed = end - left as u64;
    }

    fn resize(&mut self, size: TerminalSize) {
        let (Some(rows), Some(cols)) = (NonZeroU16::new(size.rows), NonZeroU16::new(size.cols)) else {
            return;
        };
        // Lines that were written in a wider terminal are not cut.
        let cols = if self.fed == 0 { cols } else { cols.max(self.parser.screen().size().1) };
        if self.parser.screen().size() != (rows, cols) {
            self.parser.screen_mut().set_size(rows, cols);
            self.harvest();
        }
    }

    fn update_alternate(&mut self, view: &TerminalView) {
        if !view.modes.is_alternate {
            self.alternate = None;
            return;
        }
        let (rows, cols) = view.size.map_or((ROWS.get(), COLS.get()), |size| (size.rows, size.cols));
        let (Some(rows), Some(cols)) = (NonZeroU16::new(rows), NonZeroU16::new(cols)) else { return };
        let parser = self.alternate.get_or_insert_with(|| {
            self.alternate_fed = 0;
            Box::new(vt100::Parser::new(rows, cols, 0))
        });
        parser.screen_mut().set_size(rows, cols);
        let skip = usize::try_from(self.alternate_fed.saturating_sub(view.alternate_dropped_bytes));
        let bytes = view.alternate.get(skip.unwrap_or(usize::MAX)..).unwrap_or_default();
        let (whole, open) = bytes.split_at(bytes.len() - open_character(bytes));
        parser.process(whole);
        self.alternate_fed = view.alternate_dropped_bytes + view.alternate.len() as u64 - open.len() as u64;
    }

    fn current(&self) -> &vt100::Screen {
        self.alternate.as_ref().map_or_else(|| self.parser.screen(), |parser| parser.screen())
    }

    /// Number of rows down to the cursor and the last text; all rows of a full-screen program.
    pub fn rows_in_use(&self) -> u16 {
        let screen = self.current();
        let (rows, cols) = screen.size();
        if self.alternate.is_some() {
            return rows.get();
        }
        let is_used = |row: &u16| {
            (0..cols.get()).any(|col| screen.cell(*row, col).is_some_and(vt100::Cell::has_contents))
        };
        let last = (0..rows.get()).rev().find(is_used).map_or(0, |row| row + 1);
        last.max(screen.cursor_position().0 + 1)
    }

    /// Draws the screen, of a higher one the part with the cursor. Returns the position of the cursor if it is visible.
    pub fn draw(&self, area: Rect, base: Style, buf: &mut Canvas) -> Option<Position> {
        let screen = self.current();
        let (row, col) = screen.cursor_position();
        let top = (row + 1).saturating_sub(area.height);
        for y in 0..area.height {
            for x in 0..area.width {
                let Some(cell) = screen.cell(top + y, x) else { break };
                if !cell.is_wide_continuation() {
                    let text = if cell.has_contents() { cell.contents() } else { " " };
                    let style = base.patch(style_of(cell));
                    put_text(buf, area.x + x, area.y + y, &sanitize(text), area.width - x, style);
                }
            }
        }
        let is_visible = !screen.hide_cursor() && col < area.width;
        is_visible.then(|| Position::new(area.x + col, area.y + row - top))
    }

    /// Feeds bytes except for an incomplete character at the end, and returns the length of that: the parser
    /// loses text after a character that is split. Output without a pseudo terminal has bare line feeds,
    /// which need a carriage return.
    fn feed(&mut self, mut bytes: &[u8], has_returns: bool) -> usize {
        loop {
            let chunk = bytes.get(..CHUNK_BYTES).unwrap_or(bytes);
            let (chunk, rest) = bytes.split_at(chunk.len() - open_character(chunk));
            if chunk.is_empty() {
                return rest.len();
            }
            bytes = rest;
            if has_returns {
                self.parser.process(chunk);
            } else {
                for line in chunk.split_inclusive(|byte| *byte == b'\n') {
                    match line.strip_suffix(b"\n") {
                        Some(body) => {
                            self.parser.process(body);
                            self.parser.process(b"\r\n");
                        }
                        None => self.parser.process(line),
                    }
                }
            }
            self.harvest();
        }
    }

    /// Moves scrolled lines to the history.
    fn harvest(&mut self) {
        let screen = self.parser.screen_mut();
        let mut left = screen.scrollback_len();
        if left == 0 {
            return;
        }
        while left > 0 {
            screen.set_scrollback(left);
            let count = left.min(usize::from(screen.size().0.get()));
            for row in 0..count {
                let row = u16::try_from(row).unwrap_or(u16::MAX);
                let line = read_row(screen, row);
                match self.history.back_mut() {
                    Some(last) if self.is_continued => last.spans.extend(line.spans),
                    _ => self.history.push_back(line),
                }
                self.is_continued = screen.row_wrapped(row);
            }
            left -= count;
        }
        screen.clear_scrollback();
        while self.history.len() > self.lines_max {
            self.history.pop_front();
            self.dropped_lines += 1;
        }
    }

    pub fn history_len(&self) -> usize {
        self.history.len()
    }

    pub fn dropped_lines(&self) -> u64 {
        self.dropped_lines
    }

    pub fn history(&self, lines: std::ops::Range<usize>) -> impl Iterator<Item = &Line<'static>> {
        let end = lines.end.min(self.history.len());
        self.history.range(lines.start.min(end)..end)
    }

    /// The lines of the emulated screen, without empty ones at the end. The first may continue the history.
    pub fn live(&self) -> Vec<Line<'static>> {
        let screen = self.parser.screen();
        let mut out: Vec<Line<'static>> = Vec::new();
        let mut is_continued = false;
        for row in 0..screen.size().0.get() {
            let line = read_row(screen, row);
            match out.last_mut() {
                Some(last) if is_continued => last.spans.extend(line.spans),
                _ => out.push(line),
            }
            is_continued = screen.row_wrapped(row);
        }
        while out.last().is_some_and(|line| line.spans.is_empty()) {
            out.pop();
        }
        out
    }

    /// The last lines, at most `count`.
    pub fn tail(&self, count: usize) -> Vec<Line<'static>> {
        let mut live = self.live();
        if live.len() < count {
            let from = self.history.len().saturating_sub(count - live.len());
            let mut lines: Vec<Line<'static>> = self.history.range(from..).cloned().collect();
            if self.is_continued && !live.is_empty() && !lines.is_empty() {
                let first = live.remove(0);
                if let Some(last) = lines.last_mut() {
                    last.spans.extend(first.spans);
                }
            }
            lines.append(&mut live);
            return lines;
        }
        live.split_off(live.len() - count)
    }

    pub fn len(&self) -> usize {
        self.history.len() + self.live().len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The last lines of an output, without reading all of it; and whether there are more before them.
pub fn tail_of(output: &[u8], has_returns: bool, count: usize) -> (Vec<Line<'static>>, bool) {
    let mut from = output.len().saturating_sub(TAIL_BYTES);
    if from > 0 {
        let rest = output.get(from..).unwrap_or_default();
        from += memchr::memchr(b'\n', rest).map_or(0, |at| at + 1);
    }
    let mut screen = Screen::default();
    screen.feed(output.get(from..).unwrap_or_default(), has_returns);
    let is_more = from > 0 || screen.len() > count;
    (screen.tail(count), is_more)
}

/// The lines of a command's output that was sent as plain text, and whether lines were removed before them.
pub fn lines_of(text: &str) -> (Vec<Line<'static>>, bool) {
    let mut screen = Screen::default();
    screen.feed(text.as_bytes(), false);
    (screen.tail(usize::MAX), screen.dropped_lines() > 0)
}

/// A command's output as plain text, as on an endless screen.
pub fn plain_text(output: &[u8], has_returns: bool) -> String {
    let text = String::from_utf8_lossy(output);
    let text = if has_returns { text.replace("\r\n", "\n") } else { text.into_owned() };
    if !text.contains(|ch: char| ch.is_control() && !matches!(ch, '\n' | '\t')) {
        return text.trim_end_matches('\n').to_owned();
    }
    let mut screen = Screen { lines_max: usize::MAX, ..Screen::default() };
    screen.feed(output, has_returns);
    let lines: Vec<String> = screen.tail(usize::MAX).iter().map(ToString::to_string).collect();
    lines.join("\n")
}

/// A row of the emulated screen, without trailing spaces unless it continues in the next row.
fn read_row(screen: &vt100::Screen, row: u16) -> Line<'static> {
    let mut spans: Vec<Span<'static>> = Vec::new();
    // Spaces are written only if more text follows.
    let mut blanks = 0_usize;
    let cols = screen.size().1.get();
    for col in 0..cols {
        let Some(cell) = screen.cell(row, col) else { break };
        if cell.is_wide_continuation() {
            continue;
        }
        let style = style_of(cell);
        let text = cell.contents();
        if (text.is_empty() || text == " ")
            && style.bg.is_none()
            && !style.add_modifier.contains(Modifier::REVERSED)
        {
            blanks += 1;
            continue;
        }
        if blanks > 0 {
            push(&mut spans, &" ".repeat(blanks), Style::default());
            blanks = 0;
        }
        push(&mut spans, if text.is_empty() { " " } else { text }, style);
    }
    let last = (0..cols).rev().find(|col| screen.cell(row, *col).is_some_and(vt100::Cell::has_contents));
    let written = last.map_or(0, |col| usize::from(cols - 1 - col));
    if screen.row_wrapped(row) && blanks > written {
        push(&mut spans, &" ".repeat(blanks - written), Style::default());
    }
    Line::from(spans)
}

fn push(spans: &mut Vec<Span<'static>>, text: &str, style: Style) {
    let text = sanitize(text);
    match spans.last_mut() {
        Some(last) if last.style == style => last.content.to_mut().push_str(&text),
        _ => spans.push(Span::styled(text.into_owned(), style)),
    }
}

fn style_of(cell: &vt100::Cell) -> Style {
    let mut style = Style { fg: color_of(cell.fgcolor()), bg: color_of(cell.bgcolor()), ..Style::default() };
    let modifiers = [
        (cell.bold(), Modifier::BOLD),
        (cell.dim(), Modifier::DIM),
        (cell.italic(), Modifier::ITALIC),
        (cell.underline(), Modifier::UNDERLINED),
        (cell.inverse(), Modifier::REVERSED),
    ];
    for (is_on, modifier) in modifiers {
        if is_on {
            style = style.add_modifier(modifier);
        }
    }
    style
}

fn color_of(color: vt100::Color) -> Option<Color> {
    match color {
        vt100::Color::Default => None,
        vt100::Color::Idx(index) => Some(Color::Indexed(index)),
        vt100::Color::Rgb(r, g, b) => Some(Color::Rgb(r, g, b)),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use proptest::prelude::*;

    use super::*;

    fn view(output: &[u8]) -> TerminalView {
        TerminalView { output: output.to_vec().into(), ..TerminalView::new(true, Instant::now()) }
    }

    fn texts(lines: &[Line<'static>]) -> Vec<String> {
        lines.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn colours_are_preserved_and_progress_bars_show_their_final_state() {
        let (lines, is_more) = tail_of(b"10%\r50%\r\x1b[32mdone\x1b[0m\r\nok\r\n", true, 8);
        assert_eq!(texts(&lines), ["done", "ok"]);
        assert_eq!(lines[0].spans[0].style.fg, Some(Color::Indexed(2)));
        assert!(!is_more);
    }

    #[test]
    fn long_output_has_every_line_once() {
        let all: Vec<String> = (0..3000).map(|n| format!("line {n}")).collect();
        let mut screen = Screen::default();
        screen.update(&view(format!("{}\r\n", all.join("\r\n")).as_bytes()));
        assert_eq!(screen.len(), 3000);
        assert_eq!(texts(&screen.tail(usize::MAX)), all);
        assert_eq!(texts(&screen.tail(2)), ["line 2998", "line 2999"]);
        assert_eq!(texts(&screen.history(5..7).cloned().collect::<Vec<_>>()), ["line 5", "line 6"]);
    }

    #[test]
    fn wrapped_rows_are_joined() {
        let long = "x".repeat(1000);
        assert_eq!(texts(&lines_of(&format!("{long}\nend")).0), [long.as_str(), "end"]);
        let many = format!("{long}\n").repeat(30);
        assert_eq!(texts(&lines_of(&many).0), vec![long; 30]);
    }

    #[test]
    fn spaces_at_a_wrap_are_preserved() {
        for blanks in 1..4 {
            for before in 230..245 {
                let line = format!("{}{}end", "x".repeat(before), " ".repeat(blanks));
                assert_eq!(texts(&lines_of(&format!("{line}\nnext")).0), [line.as_str(), "next"]);
                assert_eq!(plain_text(line.as_bytes(), false), line);
            }
        }
    }

    #[test]
    fn the_entire_output_is_copied() {
        let all = (0..3 * LINES_MAX).map(|n| format!("{n}\tline")).collect::<Vec<_>>().join("\r\n");
        let plain = all.replace("\r\n", "\n");
        assert_eq!(plain_text(all.as_bytes(), true), plain.trim_end());
        assert_eq!(plain_text(plain.as_bytes(), false), plain.trim_end());
        let coloured = format!("\x1b[31m0\x1b[0m\n{}", "1\n".repeat(2 * LINES_MAX));
        assert_eq!(plain_text(coloured.as_bytes(), false).lines().count(), 2 * LINES_MAX + 1);
    }

    #[test]
    fn any_bytes_can_be_read() {
        let bytes: Vec<u8> = (0..20_000_u32)
            .map(|n| (n.wrapping_mul(2_654_435_761) >> 13) & 0xff)
            .map(|n| u8::try_from(n).unwrap())
            .collect();
        for line in tail_of(&bytes, false, 50).0 {
            assert!(!line.to_string().contains(char::is_control));
        }
    }

    #[test]
    fn dropped_bytes_at_the_start_are_skipped() {
        let mut screen = Screen::default();
        screen.update(&view(b"a\r\nb\r\n"));
        let later = TerminalView { dropped_bytes: 3, ..view(b"b\r\nc\r\n") };
        screen.update(&later);
        assert_eq!(texts(&screen.tail(9)), ["a", "b", "c"]);
    }

    fn drawn(screen: &Screen, rows: u16, cols: u16) -> (Vec<String>, Option<Position>) {
        let mut canvas = Canvas::new(cols, rows);
        let cursor = screen.draw(Rect::new(0, 0, cols, rows), Style::default(), &mut canvas);
        let cells: Vec<&str> = canvas.content.iter().map(ratatui::buffer::Cell::symbol).collect();
        let lines = cells.chunks(cols.into()).map(|row| row.concat().trim_end().to_owned());
        (lines.collect(), cursor)
    }

    #[test]
    fn a_full_screen_program_is_drawn_and_leaves_nothing() {
        let size = TerminalSize { rows: 3, cols: 10 };
        let mut shown = TerminalView { size: Some(size), ..view(b"") };
        let mut screen = Screen::default();
        shown.append(b"one\r\n\x1b[?1049h\x1b[2;3Hte\xe6\x97");
        screen.update(&shown);
        shown.append(b"\xa5xt\x1b[1;1H\x1b[7mtop");
        screen.update(&shown);
        assert_eq!(screen.rows_in_use(), 3);
        let (rows, cursor) = drawn(&screen, 3, 10);
        assert_eq!((rows[0].as_str(), rows[1].replace(' ', "").as_str()), ("top", "te日xt"));
        assert_eq!(cursor, Some(Position::new(3, 0)));
        assert_eq!(texts(&screen.tail(9)), ["one"]);
        shown.size = Some(TerminalSize { rows: 2, cols: 4 });
        shown.append(b"\x1b[?25l\x1b[m\x1b[2J\x1b[Hsmaller");
        screen.update(&shown);
        assert_eq!(drawn(&screen, 2, 4), (vec!["smal".to_owned(), "ler".to_owned()], None));
        shown.append(b"\x1b[?1049ltwo");
        screen.update(&shown);
        assert_eq!(texts(&screen.tail(9)), ["one", "two"]);
    }

    #[test]
    fn a_command_uses_the_rows_down_to_its_cursor() {
        let mut shown = TerminalView { size: Some(TerminalSize { rows: 5, cols: 20 }), ..view(b"") };
        let mut screen = Screen::default();
        for (output, used) in [("name: ", 1), ("x\r\n", 2), ("1\r\n2\r\n3\r\n4\r\n5\r\n6", 5)] {
            shown.append(output.as_bytes());
            screen.update(&shown);
            assert_eq!(screen.rows_in_use(), used, "{output:?}");
        }
        assert_eq!(drawn(&screen, 2, 20), (vec!["5".to_owned(), "6".to_owned()], Some(Position::new(1, 1))));
        let all = ["name: x", "1", "2", "3", "4", "5", "6"];
        assert_eq!(texts(&screen.tail(99)), all);
        // A line that was written at another width is not cut.
        for (rows, cols) in [(2, 4), (9, 30), (3, 20)] {
            shown.size = Some(TerminalSize { rows, cols });
            screen.update(&shown);
            assert_eq!(texts(&screen.tail(99)), all, "{rows}x{cols}");
        }
    }

    proptest! {
        #[test]
        fn chunked_output_gives_the_same_result(
            pieces in prop::collection::vec(prop::sample::select(vec![
                "word ", "\r\n", "\r", "\x1b[31m", "\x1b[2K", "\x1b[3A", "\x1b[2J", "\x1b]0;t\x07", "日本", "\t",
                "e\u{301}", "\u{202e}", "\x08", "\x1b[999;999H", "a long line of text ",
            ]), 0..200),
            cut in 0_usize..900,
        ) {
            let bytes = pieces.concat().into_bytes();
            let mut whole = Screen::default();
            whole.update(&view(&bytes));
            let mut pieces = Screen::default();
            pieces.update(&view(&bytes[..cut.min(bytes.len())]));
            pieces.update(&view(&bytes));
            prop_assert_eq!(texts(&whole.tail(99)), texts(&pieces.tail(99)));
            for line in whole.tail(99) {
                prop_assert!(!line.to_string().contains(char::is_control));
            }
        }
    }
}
