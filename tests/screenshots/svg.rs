//! Converts a screen to SVG: one text element per row, with each run at the position of its cell.

use std::fmt::Write as _;

use vt100::{Cell, Color};

/// Sizes in pixels. A cell is 8.43 wide, like most monospaced fonts at size 14; `textLength` adjusts others.
const CELL_WIDTH: f32 = 8.43;
const CELL_HEIGHT: f32 = 18.0;
const BASELINE: f32 = 13.5;
const MARGIN: f32 = 14.0;

/// The default colours of the terminal.
struct Paper {
    ink: &'static str,
    page: String,
}

impl Paper {
    /// The background of the first cell, and a readable foreground.
    fn of(screen: &vt100::Screen) -> Self {
        let page = color(screen.cell(0, 0).map_or(Color::Default, Cell::bgcolor), "#16181d");
        let is_light = page.as_bytes().get(1).is_some_and(|digit| *digit >= b'8');
        Self { ink: if is_light { "#24292f" } else { "#d8d8d8" }, page }
    }
}

#[derive(Clone, PartialEq)]
#[allow(clippy::struct_excessive_bools, reason = "each is an attribute of a cell")]
struct Look {
    ink: String,
    page: String,
    bold: bool,
    dim: bool,
    italic: bool,
    underline: bool,
}

impl Look {
    fn plain(paper: &Paper) -> Self {
        let (ink, page) = (paper.ink.to_owned(), paper.page.clone());
        Self { ink, page, bold: false, dim: false, italic: false, underline: false }
    }
}

/// The screen as SVG with a title for accessibility.
pub fn picture(screen: &vt100::Screen, title: &str) -> String {
    let paper = &Paper::of(screen);
    let (rows, cols) = screen.size();
    let (rows, cols) = (rows.get(), cols.get());
    let width = number(f32::from(cols) * CELL_WIDTH + 2.0 * MARGIN);
    let height = number(f32::from(rows) * CELL_HEIGHT + 2.0 * MARGIN);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" role=\"img\" \
         font-family=\"ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace\" font-size=\"14\">\n\
         <title>{}</title>\n\
         <style>text{{white-space:pre}}.b{{font-weight:bold}}.i{{font-style:italic}}.u{{text-decoration:underline}}.d{{opacity:.65}}</style>\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"{}\"/>\n",
        escape(title),
        paper.page
    );
    for row in 0..rows {
        draw_row(&mut svg, screen, row, cols, paper);
    }
    let (row, col) = screen.cursor_position();
    if !screen.hide_cursor() {
        let (x, y) = place(row, col);
        let _ = writeln!(
            svg,
            "<rect x=\"{x}\" y=\"{y}\" width=\"2\" height=\"{}\" fill=\"{}\"/>",
            number(CELL_HEIGHT),
            paper.ink
        );
    }
    svg.push_str("</svg>\n");
    svg
}

/// The upper left corner of a cell.
fn place(row: u16, col: u16) -> (String, String) {
    (number(MARGIN + f32::from(col) * CELL_WIDTH), number(MARGIN + f32::from(row) * CELL_HEIGHT))
}

fn draw_row(svg: &mut String, screen: &vt100::Screen, row: u16, cols: u16, paper: &Paper) {
    let mut texts = String::new();
    let mut col = 0;
    let looks = row_looks(screen, row, cols, paper);
    while let Some(render) = looks.get(usize::from(col)).cloned() {
        let (start, mut text, mut lines, mut blocks) = (col, String::new(), String::new(), String::new());
        while let Some(cell) = screen.cell(row, col).filter(|_| looks.get(usize::from(col)) == Some(&render))
        {
            if !cell.is_wide_continuation() {
                let contents = if cell.has_contents() { cell.contents() } else { " " };
                let is_drawn =
                    draw_line(&mut lines, row, col, contents) || draw_block(&mut blocks, row, col, contents);
                text.push_str(if is_drawn { " " } else { contents });
            }
            col += 1;
        }
        if render.page != paper.page {
            let (x, y) = place(row, start);
            let _ = writeln!(
                svg,
                "<rect x=\"{x}\" y=\"{y}\" width=\"{}\" height=\"{}\" fill=\"{}\"/>",
                number(f32::from(col - start) * CELL_WIDTH),
                number(CELL_HEIGHT),
                render.page
            );
        }
        if !lines.is_empty() {
            let _ = writeln!(texts, "<path d=\"{lines}\" stroke=\"{}\" fill=\"none\"/>", render.ink);
        }
        if !blocks.is_empty() {
            let _ = writeln!(texts, "<path d=\"{blocks}\" fill=\"{}\"/>", render.ink);
        }
        draw_run(&mut texts, row, start, col, &text, &render);
    }
    svg.push_str(&texts);
}

/// The style of each cell of a row. Blanks take all but the background from the previous cell, because their other
/// attributes depend on earlier frames.
fn row_looks(screen: &vt100::Screen, row: u16, cols: u16, paper: &Paper) -> Vec<Look> {
    let mut looks: Vec<Look> = Vec::new();
    for col in 0..cols {
        let Some(cell) = screen.cell(row, col) else { break };
        let own = render(cell, paper);
        let is_blank = !cell.has_contents() || cell.contents() == " ";
        let seen = if is_blank && !own.underline && !cell.inverse() {
            match looks.last() {
                Some(before) if before.page == own.page && !before.underline => before.clone(),
                _ => Look { page: own.page, ..Look::plain(paper) },
            }
        } else {
            own
        };
        looks.push(seen);
    }
    looks
}

/// Draws a box-drawing character as lines, because fonts leave gaps between rows. Returns whether it was one.
fn draw_line(lines: &mut String, row: u16, col: u16, contents: &str) -> bool {
    let (left, top) = (MARGIN + f32::from(col) * CELL_WIDTH, MARGIN + f32::from(row) * CELL_HEIGHT);
    let [x0, x1, x2] = [0.0, 0.5, 1.0].map(|part| number(left + part * CELL_WIDTH));
    let [y0, y1, y2] = [0.0, 0.5, 1.0].map(|part| number(top + part * CELL_HEIGHT));
    let path = match contents {
        "─" => format!("M{x0} {y1}H{x2}"),
        "│" => format!("M{x1} {y0}V{y2}"),
        "╭" | "┌" => format!("M{x1} {y2}Q{x1} {y1} {x2} {y1}"),
        "╮" | "┐" => format!("M{x0} {y1}Q{x1} {y1} {x1} {y2}"),
        "╰" | "└" => format!("M{x1} {y0}Q{x1} {y1} {x2} {y1}"),
        "╯" | "┘" => format!("M{x0} {y1}Q{x1} {y1} {x1} {y0}"),
        _ => return false,
    };
    // A line continues where the previous one ended.
    let before = format!("H{x0}");
    if contents == "─" && lines.ends_with(&before) {
        lines.truncate(lines.len() - before.len());
        let _ = write!(lines, "H{x2}");
    } else {
        lines.push_str(&path);
    }
    true
}

/// Draws a block element as a rectangle, because fonts leave gaps between rows. Returns whether it was one.
fn draw_block(blocks: &mut String, row: u16, col: u16, contents: &str) -> bool {
    // Left, right, top and bottom as parts of the cell.
    let (left, right, top, bottom) = match contents {
        "█" => (0.0, 1.0, 0.0, 1.0),
        "▌" => (0.0, 0.5, 0.0, 1.0),
        "▎" => (0.0, 0.25, 0.0, 1.0),
        "▏" => (0.0, 0.125, 0.0, 1.0),
        "▐" => (0.5, 1.0, 0.0, 1.0),
        "▕" => (0.875, 1.0, 0.0, 1.0),
        "┃" => (0.375, 0.625, 0.0, 1.0),
        "▀" => (0.0, 1.0, 0.0, 0.5),
        "▄" => (0.0, 1.0, 0.5, 1.0),
        _ => return false,
    };
    let x = |part: f32| number(MARGIN + (f32::from(col) + part) * CELL_WIDTH);
    let y = |part: f32| number(MARGIN + (f32::from(row) + part) * CELL_HEIGHT);
    let _ = write!(blocks, "M{} {}H{}V{}H{}Z", x(left), y(top), x(right), y(bottom), x(left));
    true
}

/// Draws a run of text with one style. Spaces at its ends are omitted, unless they are underlined.
fn draw_run(svg: &mut String, row: u16, start: u16, end: u16, text: &str, render: &Look) {
    let spaces = |text: &str| u16::try_from(text.chars().take_while(|c| *c == ' ').count()).unwrap();
    let (mut start, mut end, mut text) = (start, end, text);
    if !render.underline {
        if text.trim_matches(' ').is_empty() {
            return;
        }
        start += spaces(text);
        text = text.trim_start_matches(' ');
        end -= u16::try_from(text.len() - text.trim_end_matches(' ').len()).unwrap();
        text = text.trim_end_matches(' ');
    }
    let (x, _) = place(row, start);
    let y = number(MARGIN + f32::from(row) * CELL_HEIGHT + BASELINE);
    let mut classes = Vec::new();
    for (is_on, class) in
        [(render.bold, "b"), (render.italic, "i"), (render.underline, "u"), (render.dim, "d")]
    {
        if is_on {
            classes.push(class);
        }
    }
    let class = if classes.is_empty() { String::new() } else { format!(" class=\"{}\"", classes.join(" ")) };
    let _ = writeln!(
        svg,
        "<text x=\"{x}\" y=\"{y}\" textLength=\"{}\" lengthAdjust=\"spacingAndGlyphs\" xml:space=\"preserve\" fill=\"{}\"{class}>{}</text>",
        number(f32::from(end - start) * CELL_WIDTH),
        render.ink,
        escape(text)
    );
}

fn render(cell: &Cell, paper: &Paper) -> Look {
    let mut ink = color(cell.fgcolor(), paper.ink);
    let mut page = color(cell.bgcolor(), &paper.page);
    if cell.inverse() {
        std::mem::swap(&mut ink, &mut page);
    }
    Look { ink, page, bold: cell.bold(), dim: cell.dim(), italic: cell.italic(), underline: cell.underline() }
}

fn color(color: Color, default: &str) -> String {
    const BASE: [&str; 16] = [
        "#1d1f21", "#cc6666", "#7fa650", "#d0a552", "#6f9bc7", "#b294bb", "#6fb3ad", "#c5c8c6", "#66696e",
        "#e08080", "#9cc46b", "#ecc477", "#8fb8e0", "#cfb1d8", "#8fd0c9", "#ffffff",
    ];
    match color {
        Color::Default => default.to_owned(),
        Color::Rgb(r, g, b) => format!("#{r:02x}{g:02x}{b:02x}"),
        Color::Idx(index @ 0..16) => BASE[usize::from(index)].to_owned(),
        Color::Idx(index @ 16..232) => {
            let step = |value: u8| if value == 0 { 0 } else { 55 + 40 * value };
            let index = index - 16;
            format!("#{:02x}{:02x}{:02x}", step(index / 36), step(index / 6 % 6), step(index % 6))
        }
        Color::Idx(index) => {
            let grey = 8 + 10 * (index - 232);
            format!("#{grey:02x}{grey:02x}{grey:02x}")
        }
    }
}

/// A number with at most one decimal digit.
fn number(value: f32) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map_or_else(|| text.clone(), ToOwned::to_owned)
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
