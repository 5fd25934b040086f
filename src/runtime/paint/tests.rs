use ratatui::buffer::{CellDiffOption, CellWidth};
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};

use super::*;
use crate::ui::text::link;
use crate::ui::text::{Line, Span};

proptest::proptest! {
    #[test]
    fn any_size_can_be_painted_and_changed(sizes in proptest::collection::vec((0_u16..300, 0_u16..300), 1..6)) {
        let mut painter = Painter::new(80, 24);
        for (cols, rows) in sizes {
            painter.resize(cols, rows);
            let buf = painter.canvas();
            buf.set_stringn(0, 0, if cols > 0 && rows > 0 { "text" } else { "" }, cols.into(), Style::new());
            painter.finish(Some(Position { x: cols / 2, y: rows / 2 }));
        }
    }
}

/// A terminal emulator that is fed with frames.
struct Screen {
    painter: Painter,
    parser: vt100::Parser,
}

impl Screen {
    fn new(cols: u16, rows: u16) -> Self {
        let nonzero = |count| std::num::NonZero::new(count).unwrap();
        Self {
            painter: Painter::new(cols, rows),
            parser: vt100::Parser::new(nonzero(rows), nonzero(cols), 0),
        }
    }

    /// A blank canvas.
    fn blank(&mut self) -> &mut Canvas {
        let buf = self.painter.canvas();
        buf.blank(buf.area, Style::new());
        buf
    }

    /// Draws a frame; returns its size in bytes.
    fn draw(&mut self, draw: impl FnOnce(&mut Canvas)) -> usize {
        draw(self.blank());
        let bytes = self.painter.finish(Some(Position { x: 1, y: 0 })).to_vec();
        self.parser.process(&bytes);
        self.check();
        bytes.len()
    }

    /// Checks that the terminal shows what the painter assumes.
    fn check(&self) {
        let want = &self.painter.canvas;
        for y in 0..want.area.height {
            let mut x = 0;
            while x < want.area.width {
                let cell = want.cell((x, y)).unwrap();
                let seen = self.parser.screen().cell(y, x).unwrap();
                let text = if seen.has_contents() { seen.contents() } else { " " };
                assert_eq!(text, cell.symbol(), "at {x},{y}");
                assert_eq!(seen.bgcolor(), color_of(cell.bg), "background at {x},{y}");
                if text != " " {
                    assert_eq!(seen.fgcolor(), color_of(cell.fg), "at {x},{y}");
                    // The emulator supports one weight at a time, the last one that was set.
                    let is_dim = cell.modifier.contains(Modifier::DIM);
                    assert_eq!(seen.dim(), is_dim, "dim at {x},{y}");
                    assert_eq!(
                        seen.bold(),
                        !is_dim && cell.modifier.contains(Modifier::BOLD),
                        "bold at {x},{y}"
                    );
                    assert_eq!(seen.italic(), cell.modifier.contains(Modifier::ITALIC), "at {x},{y}");
                }
                x += cell.cell_width().max(1);
            }
        }
    }
}

fn color_of(color: Color) -> vt100::Color {
    match color {
        Color::Reset => vt100::Color::Default,
        Color::Rgb(r, g, b) => vt100::Color::Rgb(r, g, b),
        Color::Indexed(index) => vt100::Color::Idx(index),
        named => vt100::Color::Idx(ansi_writer::named_index(named)),
    }
}

fn lines(buf: &mut Canvas, first: usize, style: Style) {
    let area = buf.area;
    buf.set_style(area, style);
    for row in 0..area.height {
        let line = first + usize::from(row);
        let text = format!("line {line} says {}", "word ".repeat(line % 9 + 4));
        buf.set_stringn(0, row, text, usize::from(area.width), style);
    }
}

#[test]
fn a_frame_without_a_change_has_no_bytes() {
    let mut screen = Screen::new(40, 10);
    let style = Style::new().fg(Color::Rgb(1, 2, 3)).bg(Color::Rgb(4, 5, 6));
    assert!(screen.draw(|buf| lines(buf, 0, style)) > 400);
    assert_eq!(screen.draw(|buf| lines(buf, 0, style)), 0);
}

#[test]
fn italics_are_left_out_where_they_are_not_readable() {
    let mut painter = Painter::new(20, 1);
    let mut paint = |has_italics: bool| {
        painter.use_italics(has_italics);
        painter.clear();
        painter.canvas().set_string(
            0,
            0,
            "aside",
            Style::new().add_modifier(Modifier::ITALIC | Modifier::BOLD),
        );
        String::from_utf8_lossy(painter.finish(None)).into_owned()
    };
    assert!(paint(true).contains("\x1b[1;3maside"));
    assert!(paint(false).contains("\x1b[1maside"));
}

#[test]
fn scrolled_text_costs_only_its_new_lines() {
    let mut screen = Screen::new(80, 40);
    for style in [Style::new(), Style::new().fg(Color::Rgb(9, 9, 9)).bg(Color::Rgb(4, 5, 6))] {
        let whole = screen.draw(|buf| lines(buf, 100, style));
        assert!(whole > 1500, "{whole}");
        for (first, rows) in [(101, 1), (104, 3), (102, 2), (101, 1), (111, 10)] {
            let bytes = screen.draw(|buf| lines(buf, first, style));
            assert!(bytes < 100 + rows * 95, "{rows} rows took {bytes} bytes");
        }
    }
}

#[test]
fn text_around_scrolled_text_stays() {
    let mut screen = Screen::new(60, 20);
    let style = Style::new().bg(Color::Blue);
    for first in [5, 6, 9, 3, 50] {
        screen.draw(|buf| {
            lines(buf, first, style);
            buf.set_string(0, 0, "title", Style::new().add_modifier(Modifier::BOLD));
            for row in 18..20 {
                buf.set_stringn(0, row, format!("status {:<50}", first % 2), 60, style);
            }
        });
    }
}

#[test]
fn wide_characters_leave_no_halves() {
    let mut screen = Screen::new(12, 2);
    let texts = ["日本語", "a日本b", "ab日c", "🎉 ok", "x🎉y", "🧑 z", "plain", "日本語", "", "e\u{301}f"];
    for text in texts.iter().chain(texts.iter().rev()) {
        screen.draw(|buf| {
            buf.set_string(0, 0, text, Style::new().fg(Color::Red).bg(Color::Indexed(20)));
        });
    }
}

#[test]
fn styles_change_with_few_bytes_and_are_reset() {
    let mut screen = Screen::new(30, 2);
    screen.draw(|_| {});
    let styles = [
        Style::new().add_modifier(Modifier::BOLD),
        Style::new().add_modifier(Modifier::BOLD | Modifier::DIM),
        Style::new().add_modifier(Modifier::DIM | Modifier::ITALIC),
        Style::new().fg(Color::LightRed).bg(Color::Gray),
        Style::new(),
    ];
    for shift in 0..styles.len() {
        let bytes = screen.draw(|buf| {
            for (index, style) in styles.iter().cycle().skip(shift).take(5).enumerate() {
                buf.set_string(to_u16(index * 6), 0, "abcde", *style);
            }
        });
        assert!(bytes < 140, "{bytes}");
    }
}

#[test]
fn a_new_size_repaints_everything() {
    let mut screen = Screen::new(20, 4);
    screen.draw(|buf| lines(buf, 0, Style::new()));
    screen.painter.resize(10, 3);
    let nonzero = |count| std::num::NonZero::new(count).unwrap();
    screen.parser.screen_mut().set_size(nonzero(3), nonzero(10));
    assert!(screen.draw(|buf| lines(buf, 0, Style::new())) > 30);
    screen.painter.clear();
    assert!(screen.draw(|buf| lines(buf, 0, Style::new())) > 30);
}

#[test]
fn cells_under_a_picture_are_painted_after_it_is_removed() {
    let mut screen = Screen::new(20, 4);
    let text = |buf: &mut Canvas| lines(buf, 0, Style::new());
    screen.draw(text);
    screen.blank();
    text(&mut screen.painter.canvas);
    for x in 2..9 {
        screen.painter.canvas[(x, 1)].set_symbol("#").set_diff_option(CellDiffOption::Skip);
    }
    assert!(screen.painter.finish(Some(Position { x: 1, y: 0 })).is_empty());
    assert!(screen.draw(text) >= 7, "the covered cells are unknown");
}

/// Text, with a picture of two rows that is sent row by row.
fn with_picture(buf: &mut Canvas, rows: &[Line<'static>]) {
    lines(buf, 0, Style::new());
    for (y, row) in (1..).zip(rows) {
        buf.put_line(2, y, row, 8);
    }
}

#[test]
fn a_row_of_a_picture_is_painted_as_a_whole() {
    let rows = crate::ui::picture::tests::strips(&["\x1bP1\x1b\\", "\x1bP2\x1b\\"], 8);
    let mut screen = Screen::new(20, 4);
    let sent = |screen: &mut Screen, render: &dyn Fn(&mut Canvas)| {
        screen.blank();
        render(&mut screen.painter.canvas);
        let bytes = screen.painter.finish(None).to_vec();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        (text.matches("\x1bP1\x1b").count(), text.matches("\x1bP2\x1b").count(), text)
    };
    let picture = |buf: &mut Canvas| with_picture(buf, &rows);
    let (one, two, text) = sent(&mut screen, &picture);
    assert_eq!((one, two), (1, 1), "{text:?}");
    assert_eq!(sent(&mut screen, &picture).2, "", "it is already shown");
    // A dialog covers its middle: that row is text, the other one stays.
    let (one, two, text) = sent(&mut screen, &|buf| {
        with_picture(buf, &rows);
        buf.blank(Rect::new(5, 1, 1, 1), Style::new());
        buf[(5, 1)].set_symbol("|");
    });
    assert_eq!((one, two), (0, 0));
    assert!(text.contains('|') && text.contains("   "), "what is left of the row goes: {text:?}");
    let (one, two, _) = sent(&mut screen, &picture);
    assert_eq!((one, two), (1, 0), "it is painted again where it was hidden");
    // It moved up by a row: both are sent again, nothing is scrolled.
    let (one, two, text) = sent(&mut screen, &|buf| with_picture(buf, &rows[1..]));
    assert_eq!((one, two), (0, 1));
    assert!(!text.contains(";4r") && !text.contains(";3r"), "{text:?}");
    let (one, two, text) = sent(&mut screen, &|buf| lines(buf, 0, Style::new()));
    assert_eq!((one, two), (0, 0));
    assert!(!text.is_empty(), "the text is painted again");
}

fn put_link(buf: &mut Canvas, x: u16, text: &'static str, address: &str) {
    let target = crate::model::Target::of_link(address).expect("an address");
    let number = link::number_of(&target, std::path::Path::new("/"));
    buf.put_line(x, 0, &Span::raw(text).linked(number).into(), 20);
}

/// Texts of the links in a run of bytes, with their addresses.
fn links(bytes: &[u8]) -> Vec<(String, String)> {
    let text = String::from_utf8_lossy(bytes);
    let mut found = Vec::new();
    for part in text.split("\x1b]8;").skip(1) {
        let (head, tail) = part.split_once("\x1b\\").expect("a link ends its address");
        let (_, address) = head.split_once(';').expect("parameters, then the address");
        let shown = tail.split('\x1b').next().unwrap_or_default();
        if !address.is_empty() {
            found.push((shown.to_owned(), address.to_owned()));
        }
    }
    found
}

#[test]
fn links_are_opened_and_closed_around_their_text() {
    let draw = |buf: &mut Canvas| {
        buf.set_string(0, 0, "see ", Style::new());
        put_link(buf, 4, "a b", "https://a.org/x");
        buf.set_string(7, 0, " and ", Style::new());
        put_link(buf, 12, "c", "mailto:c@d.org");
    };
    link::show(false);
    let mut screen = Screen::new(40, 4);
    draw(screen.blank());
    assert_eq!(links(screen.painter.finish(None)), []);
    link::show(true);
    let mut screen = Screen::new(40, 4);
    draw(screen.blank());
    let bytes = screen.painter.finish(None).to_vec();
    screen.parser.process(&bytes);
    screen.check();
    let wanted = [("a b", "https://a.org/x"), ("c", "mailto:c@d.org")];
    assert_eq!(links(&bytes), wanted.map(|(text, address)| (text.to_owned(), address.to_owned())));
    let text = String::from_utf8_lossy(&bytes);
    let last = text.rfind("\x1b]8;").expect("a link");
    assert!(text[last..].starts_with("\x1b]8;;\x1b\\"), "{text:?}");
    // Another target under the same text is painted.
    let bytes = screen.draw(|buf| {
        draw(buf);
        buf.blank(Rect::new(12, 0, 1, 1), Style::new());
        put_link(buf, 12, "c", "mailto:e@f.org");
    });
    assert!(bytes > 0);
    assert_eq!(
        screen.draw(|buf| {
            draw(buf);
            buf.blank(Rect::new(12, 0, 1, 1), Style::new());
            put_link(buf, 12, "c", "mailto:e@f.org");
        }),
        0
    );
    link::show(false);
}
