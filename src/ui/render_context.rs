//! How things are to look in this frame: theme, marks, clock and the user's switches.
//!
//! Duty: the one argument that every cell takes beside its data. Not its duty: deciding any of it.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::app::DiffLayout;

use super::theme::Theme;

/// Everything that a cell must know to draw itself, apart from its data and its width.
#[derive(Clone, Copy)]
pub struct RenderContext<'a> {
    /// Styles by role.
    pub theme: &'a Theme,
    /// Marks.
    pub glyphs: Glyphs,
    /// The time of this frame.
    pub now: Instant,
    /// Frame of the spinner, 0 to 9.
    pub spinner: usize,
    /// How diffs are laid out.
    pub diff_layout: DiffLayout,
    /// Whether thoughts are shown in whole.
    pub shows_thoughts: bool,
    /// The session's folder, absolute: paths below it are shown relative.
    pub folder: &'a Path,
    /// How many columns of tables that are too wide are left out on the left; `None`: such tables are lists.
    pub sideways: Option<u16>,
    /// Whether lines of code blocks are numbered.
    pub numbers_code: bool,
}

impl<'a> RenderContext<'a> {
    /// With rich marks and all switches as they are at first.
    pub fn new(theme: &'a Theme, folder: &'a Path, now: Instant) -> Self {
        Self {
            theme,
            glyphs: Glyphs::rich(),
            now,
            spinner: 0,
            diff_layout: DiffLayout::Auto,
            shows_thoughts: false,
            folder,
            sideways: None,
            numbers_code: false,
        }
    }

    /// The mark of something that runs, in this frame.
    pub fn spinner(&self) -> &'static str {
        self.glyphs.spinner[self.spinner % self.glyphs.spinner.len()]
    }
}

/// Marks, each one cell wide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Glyphs {
    pub check: &'static str,
    pub cross: &'static str,
    /// Frames of the spinner.
    pub spinner: [&'static str; 10],
    /// Not begun; also what parts pieces of a line.
    pub dot: &'static str,
    /// The active one.
    pub arrow: &'static str,
    pub thought: &'static str,
    /// Be aware.
    pub warn: &'static str,
    /// The bar beside the user's text, and beside quotes.
    pub bar: &'static str,
    /// Something was left out.
    pub ellipsis: &'static str,
    /// Lines were left out.
    pub fold: &'static str,
    /// Removed lines and counts.
    pub minus: &'static str,
    /// A bullet of a list.
    pub bullet: &'static str,
    /// A thin horizontal rule.
    pub rule: &'static str,
    /// A thin vertical rule.
    pub pipe: &'static str,
    /// Where both cross.
    pub join: &'static str,
    /// A task that is open.
    pub task_open: &'static str,
    /// A task that is done.
    pub task_done: &'static str,
    /// A line of code goes on.
    pub wrap: &'static str,
}

impl Glyphs {
    /// For terminals with Unicode.
    pub const fn rich() -> Self {
        Self {
            check: "✓",
            cross: "✗",
            spinner: ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"],
            dot: "·",
            arrow: "▸",
            thought: "◦",
            warn: "!",
            bar: "▌",
            ellipsis: "…",
            fold: "⋯",
            minus: "−",
            bullet: "•",
            rule: "─",
            pipe: "│",
            join: "┼",
            task_open: "☐",
            task_done: "☑",
            wrap: "↪",
        }
    }

    /// For terminals and locales without.
    pub const fn plain() -> Self {
        Self {
            check: "+",
            cross: "x",
            spinner: ["|", "/", "-", "\\", "|", "/", "-", "\\", "|", "/"],
            dot: ".",
            arrow: ">",
            thought: "o",
            warn: "!",
            bar: "|",
            ellipsis: "~",
            fold: "~",
            minus: "-",
            bullet: "*",
            rule: "-",
            pipe: "|",
            join: "+",
            task_open: "o",
            task_done: "x",
            wrap: ">",
        }
    }
}

/// A length of time, short: `8 s`, `2 min 5 s`, `1 h 3 min`; below a second in tenths.
pub fn duration(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0 => format!("0.{} s", time.subsec_millis() / 100),
        1..60 => format!("{seconds} s"),
        60..3600 if seconds.is_multiple_of(60) => format!("{} min", seconds / 60),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}

/// A count with its thousands apart: `1,980`.
pub fn with_commas(count: usize) -> String {
    let digits = count.to_string();
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A size in bytes, short: `812 B`, `34 kB`, `1.2 MB`.
pub fn size(bytes: u64) -> String {
    match bytes {
        0..1000 => format!("{bytes} B"),
        1000..1_000_000 => format!("{} kB", bytes / 1000),
        1_000_000..1_000_000_000 => {
            format!("{}.{} MB", bytes / 1_000_000, bytes % 1_000_000 / 100_000)
        }
        _ => format!("{}.{} GB", bytes / 1_000_000_000, bytes % 1_000_000_000 / 100_000_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ui::text::width;

    #[test]
    fn each_mark_is_one_cell_wide() {
        for glyphs in [Glyphs::rich(), Glyphs::plain()] {
            let marks = [
                glyphs.check,
                glyphs.cross,
                glyphs.dot,
                glyphs.arrow,
                glyphs.thought,
                glyphs.warn,
                glyphs.bar,
                glyphs.ellipsis,
                glyphs.fold,
                glyphs.minus,
                glyphs.bullet,
                glyphs.rule,
                glyphs.pipe,
                glyphs.join,
                glyphs.task_open,
                glyphs.task_done,
                glyphs.wrap,
            ];
            for mark in marks.into_iter().chain(glyphs.spinner) {
                assert_eq!(width(mark), 1, "{mark}");
            }
        }
        assert!(Glyphs::plain().spinner.iter().all(|frame| frame.is_ascii()));
    }

    #[test]
    fn times_and_sizes_are_short() {
        assert_eq!(duration(Duration::from_millis(340)), "0.3 s");
        assert_eq!(duration(Duration::from_secs(8)), "8 s");
        assert_eq!(duration(Duration::from_secs(125)), "2 min 5 s");
        assert_eq!(duration(Duration::from_secs(3780)), "1 h 3 min");
        assert_eq!([7, 980, 1980, 1_234_567].map(with_commas), ["7", "980", "1,980", "1,234,567"]);
        assert_eq!(size(812), "812 B");
        assert_eq!(size(34_500), "34 kB");
        assert_eq!(size(1_240_000), "1.2 MB");
    }
}
