//! Writes escape sequences, omitting those that would not change the terminal's state.

use std::io::Write as _;

use ratatui::buffer::Cell;
use ratatui::layout::Position;
use ratatui::style::{Color, Modifier};

use crate::ui::RowNotes;
use crate::ui::picture::strip;
use crate::ui::text::PICTURE_PLACEHOLDER;
use crate::ui::text::{is_wide, link};

/// Maximum number of unchanged cells that are rewritten instead of moving the cursor over them.
const GAP_CELLS: u16 = 4;

/// Attributes with the codes that set and reset them. The first two share the latter.
const MODIFIERS: [(Modifier, u8, u8); 9] = [
    (Modifier::BOLD, 1, 22),
    (Modifier::DIM, 2, 22),
    (Modifier::ITALIC, 3, 23),
    (Modifier::UNDERLINED, 4, 24),
    (Modifier::SLOW_BLINK, 5, 25),
    (Modifier::RAPID_BLINK, 6, 25),
    (Modifier::REVERSED, 7, 27),
    (Modifier::HIDDEN, 8, 28),
    (Modifier::CROSSED_OUT, 9, 29),
];

/// Attributes that are visible on a blank too.
const SEEN_ON_BLANK: Modifier = Modifier::UNDERLINED
    .union(Modifier::REVERSED)
    .union(Modifier::CROSSED_OUT)
    .union(Modifier::SLOW_BLINK)
    .union(Modifier::RAPID_BLINK);

/// Start and end of a synchronized update. Source: Contour, VT extensions, synchronized output.
const BEGIN: &[u8] = b"\x1b[?2026h";
const END: &[u8] = b"\x1b[?2026l";
const HIDE_CURSOR: &[u8] = b"\x1b[?25l";

/// Style and position of the next text.
#[derive(Default)]
pub(super) struct AnsiWriter {
    bytes: Vec<u8>,
    /// Whether the terminal has confirmed that it supports synchronized updates.
    pub synchronizes: bool,
    pub omitted: Modifier,
    is_open: bool,
    /// The cursor position of the terminal, if known.
    at: Option<(u16, u16)>,
    fg: Color,
    bg: Color,
    has_links: bool,
    /// The link of the next text; 0: none.
    link: u32,
    modifier: Modifier,
}

impl AnsiWriter {
    /// Starts a new frame.
    pub fn begin(&mut self) {
        self.bytes.clear();
        self.is_open = false;
        self.at = None;
        self.has_links = link::are_shown();
    }

    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The bytes of the frame, or nothing.
    pub fn end(&mut self) -> &[u8] {
        if self.is_open && self.synchronizes {
            self.bytes.extend_from_slice(END);
        }
        &self.bytes
    }

    /// Clears the screen, before the update begins: tmux 3.7 leaves a screen empty that is cleared inside of one.
    pub fn clear_screen(&mut self) {
        self.plain();
        self.bytes.extend_from_slice(b"\x1b[m\x1b[2J");
        self.open();
    }

    /// Moves the rows of a region up, or down when `rows` is negative. New rows must be painted.
    pub fn scroll(&mut self, top: u16, bottom: u16, rows: i32) {
        self.open();
        let _ = write!(self.bytes, "\x1b[{};{}r", top + 1, bottom);
        let (edge, step) = if rows > 0 { (bottom, "\n") } else { (top + 1, "\x1bM") };
        let _ = write!(self.bytes, "\x1b[{edge};1H");
        for _ in 0..rows.unsigned_abs() {
            self.bytes.extend_from_slice(step.as_bytes());
        }
        self.bytes.extend_from_slice(b"\x1b[r");
        self.at = None;
    }

    pub fn cell(&mut self, (x, y): (u16, u16), cell: &Cell, width: u16, row: &[Cell], notes: &RowNotes) {
        self.open();
        self.move_to(x, y, row, notes);
        self.link(notes.link_at(x));
        self.style(cell);
        let symbol = cell.symbol();
        if let Some(strip) = notes.picture_at(x).and_then(strip::text_of) {
            // The cursor position is unknown after it.
            self.bytes.extend_from_slice(strip.as_bytes());
            self.at = None;
            return;
        }
        if is_sure(symbol) || symbol.starts_with(PICTURE_PLACEHOLDER) {
            self.bytes.extend_from_slice(symbol.as_bytes());
            // After the last column the cursor position differs between terminals.
            self.at = (usize::from(x + width) < row.len()).then_some((x + width, y));
            return;
        }
        // Terminals disagree about the width: its columns are cleared first, and the cursor is moved for the next cell.
        if width > 1 {
            for _ in 0..width {
                self.bytes.push(b' ');
            }
            let _ = write!(self.bytes, "\x1b[{};{}H", y + 1, x + 1);
        }
        self.bytes.extend_from_slice(symbol.as_bytes());
        self.at = None;
    }

    /// Shows the cursor at a position, or leaves it hidden, and resets the styles.
    pub fn place_cursor(&mut self, cursor: Option<Position>) {
        self.open();
        self.link(0);
        if (self.fg, self.bg, self.modifier) != (Color::Reset, Color::Reset, Modifier::empty()) {
            self.bytes.extend_from_slice(b"\x1b[m");
            self.plain();
        }
        if let Some(Position { x, y }) = cursor {
            let _ = write!(self.bytes, "\x1b[{};{}H\x1b[?25h", y + 1, x + 1);
        }
    }

    fn open(&mut self) {
        if !std::mem::replace(&mut self.is_open, true) {
            if self.synchronizes {
                self.bytes.extend_from_slice(BEGIN);
            }
            self.bytes.extend_from_slice(HIDE_CURSOR);
        }
    }

    fn plain(&mut self) {
        (self.fg, self.bg) = (Color::Reset, Color::Reset);
        self.modifier = Modifier::empty();
    }

    fn move_to(&mut self, x: u16, y: u16, row: &[Cell], notes: &RowNotes) {
        let Some((from, line)) = self.at.filter(|(from, line)| *line == y && *from <= x) else {
            let _ = write!(self.bytes, "\x1b[{};{}H", y + 1, x + 1);
            return;
        };
        if from == x {
            return;
        }
        let gap = row.get(usize::from(from)..usize::from(x)).unwrap_or_default();
        let is_near = x - from <= GAP_CELLS
            && (from..).zip(gap).all(|(x, cell)| self.is_ready_for(cell, notes.link_at(x)));
        if is_near {
            for cell in gap {
                self.bytes.extend_from_slice(cell.symbol().as_bytes());
            }
        } else {
            let _ = write!(self.bytes, "\x1b[{}C", x - from);
        }
        self.at = Some((x, line));
    }

    /// Whether a cell is ASCII with the current style and link.
    fn is_ready_for(&self, cell: &Cell, link: u32) -> bool {
        let symbol = cell.symbol().as_bytes();
        let is_plain = symbol.len() == 1 && symbol.first().is_some_and(|byte| (0x20..0x7f).contains(byte));
        let is_blank = symbol == b" ";
        is_plain
            && cell.bg == self.bg
            && (cell.modifier == self.modifier)
            && (!self.has_links || link == self.link)
            && (cell.fg == self.fg || (is_blank && !cell.modifier.intersects(SEEN_ON_BLANK)))
    }

    fn style(&mut self, cell: &Cell) {
        let is_bare = cell.symbol() == " " && !cell.modifier.intersects(SEEN_ON_BLANK);
        // Only the background of a blank is visible.
        let wanted = if is_bare { self.modifier.difference(SEEN_ON_BLANK) } else { cell.modifier };
        let wanted = wanted.difference(self.omitted);
        let fg = if is_bare { self.fg } else { cell.fg };
        if (wanted, fg, cell.bg) == (self.modifier, self.fg, self.bg) {
            return;
        }
        let begin = self.bytes.len();
        self.bytes.extend_from_slice(b"\x1b[");
        let mut remaining = self.modifier;
        for (modifier, _, off) in MODIFIERS {
            if remaining.contains(modifier) && !wanted.contains(modifier) {
                let _ = write!(self.bytes, "{off};");
                // The code resets both of a pair.
                for (other, _, _) in MODIFIERS.iter().filter(|(_, _, its)| *its == off) {
                    remaining.remove(*other);
                }
            }
        }
        for (modifier, on, _) in MODIFIERS {
            if wanted.contains(modifier) && !remaining.contains(modifier) {
                let _ = write!(self.bytes, "{on};");
            }
        }
        if fg != self.fg {
            self.color(fg, 30);
        }
        if cell.bg != self.bg {
            self.color(cell.bg, 40);
        }
        if let Some(last) = self.bytes.last_mut().filter(|last| **last == b';') {
            *last = b'm';
        } else {
            self.bytes.truncate(begin);
        }
        (self.modifier, self.fg, self.bg) = (wanted, fg, cell.bg);
    }

    /// Sets the link of the following text (OSC 8). One number is one link, also over several rows.
    fn link(&mut self, number: u32) {
        if !self.has_links || number == self.link {
            return;
        }
        let address = link::address(number);
        if address.is_some() || self.link != 0 {
            let _ = match &address {
                Some(address) => write!(self.bytes, "\x1b]8;id=p{number};{address}\x1b\\"),
                None => write!(self.bytes, "\x1b]8;;\x1b\\"),
            };
        }
        self.link = if address.is_some() { number } else { 0 };
    }

    /// A foreground (30) or background (40) color.
    fn color(&mut self, color: Color, base: u8) {
        let _ = match color {
            Color::Reset => write!(self.bytes, "{};", base + 9),
            Color::Rgb(r, g, b) => write!(self.bytes, "{};2;{r};{g};{b};", base + 8),
            Color::Indexed(index) => write!(self.bytes, "{};5;{index};", base + 8),
            named => match named_index(named) {
                index @ 0..8 => write!(self.bytes, "{};", base + index),
                index => write!(self.bytes, "{};", base + 52 + index),
            },
        };
    }
}

pub(super) fn named_index(color: Color) -> u8 {
    match color {
        Color::Red => 1,
        Color::Green => 2,
        Color::Yellow => 3,
        Color::Blue => 4,
        Color::Magenta => 5,
        Color::Cyan => 6,
        Color::Gray => 7,
        Color::DarkGray => 8,
        Color::LightRed => 9,
        Color::LightGreen => 10,
        Color::LightYellow => 11,
        Color::LightBlue => 12,
        Color::LightMagenta => 13,
        Color::LightCyan => 14,
        Color::White => 15,
        _ => 0,
    }
}

/// Whether all terminals agree on the width: a single character that is neither an emoji nor a combining mark.
fn is_sure(symbol: &str) -> bool {
    let mut letters = symbol.chars();
    let (Some(ch), None) = (letters.next(), letters.next()) else { return symbol.is_empty() };
    if is_wide() && !ch.is_ascii() {
        return false;
    }
    matches!(ch,
        ' '..='~' | '\u{a1}'..='\u{ac}' | '\u{ae}'..='\u{2ff}' | '\u{370}'..='\u{52f}'
        | '\u{2010}'..='\u{2027}' | '\u{2030}'..='\u{205e}' | '\u{2070}'..='\u{25ff}'
        | '\u{2800}'..='\u{28ff}'
        | '\u{2e80}'..='\u{303e}' | '\u{3041}'..='\u{4dbf}' | '\u{4e00}'..='\u{a4cf}'
        | '\u{ac00}'..='\u{d7a3}' | '\u{f900}'..='\u{faff}' | '\u{ff01}'..='\u{ff60}')
}
