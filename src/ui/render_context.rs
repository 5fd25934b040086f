//! The settings for drawing a frame: theme, glyphs, clock and the user's view options.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::config::keymap::{Context, Keymap};
use crate::model::{Action, Cost};
use crate::ui::screen::DiffLayout;

use super::text::{one_line, reveal_path, show_path};
use super::theme::Theme;

/// Everything that a cell needs for drawing, apart from its data and width.
#[derive(Clone, Copy)]
pub struct RenderContext<'a> {
    pub theme: &'a Theme,
    pub glyphs: Glyphs,
    pub now: Instant,
    /// Number of the spinner's frame; any number.
    pub spinner: usize,
    pub diff_layout: DiffLayout,
    pub shows_thoughts: bool,
    /// Absolute path of the session's folder; paths below it are shown relative to it.
    pub folder: &'a Path,
    /// The user's home folder, if the session runs on this machine.
    pub home: Option<&'a Path>,
    /// Horizontal scroll offset of wide tables, in table columns; `None` shows such tables as lists.
    pub sideways: Option<u16>,
    /// Whether code blocks have line numbers.
    pub numbers_code: bool,
    /// Whether long lines of diffs and code are wrapped; otherwise their end is hidden.
    pub wraps: bool,
    pub history_keys: HistoryKeys<'a>,
}

/// The keys for the agent's history, as shown in hints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HistoryKeys<'a> {
    pub open: Option<&'a str>,
    pub put_back: Option<&'a str>,
}

impl<'a> HistoryKeys<'a> {
    pub fn of(keymap: &'a Keymap) -> Self {
        let key = |action| keymap.keys_for(Context::Main, action).first().map(String::as_str);
        Self { open: key(Action::OpenAgentHistory), put_back: key(Action::PutBackTurns) }
    }
}

impl<'a> RenderContext<'a> {
    /// The default settings with Unicode glyphs.
    pub fn new(theme: &'a Theme, folder: &'a Path, now: Instant) -> Self {
        Self {
            theme,
            glyphs: Glyphs::rich(),
            now,
            spinner: 0,
            diff_layout: DiffLayout::Auto,
            shows_thoughts: false,
            folder,
            home: None,
            sideways: None,
            numbers_code: false,
            wraps: true,
            history_keys: HistoryKeys::default(),
        }
    }

    /// A path for display: relative to the session's folder, or to the home folder.
    pub fn path(&self, path: &Path) -> String {
        show_path(path, self.folder, self.home)
    }

    /// The same for review: an exact line, with hidden characters marked.
    pub fn exact_path(&self, path: &Path) -> String {
        reveal_path(path, self.folder, self.home)
    }

    pub fn spinner(&self) -> &'static str {
        self.glyphs.spinner[self.spinner % self.glyphs.spinner.len()]
    }
}

/// Symbols, each one cell wide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Glyphs {
    pub check: &'static str,
    pub cross: &'static str,
    pub spinner: [&'static str; 4],
    /// Not started; not selected.
    pub pending: &'static str,
    /// Separator; an entry without a state.
    pub dot: &'static str,
    /// Selected; active.
    pub arrow: &'static str,
    pub thought: &'static str,
    pub warn: &'static str,
    /// The bar to the left of prompts and requests.
    pub bar: &'static str,
    pub ellipsis: &'static str,
    pub fold: &'static str,
    /// Removed lines, and their count.
    pub minus: &'static str,
    pub bullet: &'static str,
    pub rule: &'static str,
    pub pipe: &'static str,
    /// Crossing of both rules.
    pub join: &'static str,
    pub task_open: &'static str,
    pub task_done: &'static str,
}

impl Glyphs {
    /// For terminals with Unicode support.
    pub const fn rich() -> Self {
        Self {
            check: "✓",
            cross: "✗",
            spinner: ["▘", "▝", "▗", "▖"],
            pending: "○",
            dot: "·",
            arrow: "▸",
            thought: "◦",
            warn: "!",
            bar: "▌",
            ellipsis: "…",
            fold: "…",
            minus: "−",
            bullet: "•",
            rule: "─",
            pipe: "│",
            join: "┼",
            task_open: "□",
            task_done: "■",
        }
    }

    pub const fn plain() -> Self {
        Self {
            check: "+",
            cross: "x",
            spinner: ["|", "/", "-", "\\"],
            pending: ".",
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
        }
    }
}

/// A short duration: `8 s`, `2 min 5 s`, `1 h 3 min`; with tenths below one second.
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

/// A number with thousands separators: `1,980`.
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

/// Symbols outside of the transcript, each one cell wide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Marks {
    pub prompt: &'static str,
    pub meter_full: &'static str,
    pub meter_empty: &'static str,
    pub down: &'static str,
    pub updown: &'static str,
    pub current: &'static str,
    pub thumb: &'static str,
    pub mask: &'static str,
    pub to_agent: &'static str,
    pub from_agent: &'static str,
    /// Top left, top right, bottom left, bottom right, horizontal, vertical.
    pub frame: [&'static str; 6],
}

impl Marks {
    /// The symbols that match the glyphs of the transcript.
    pub fn beside(glyphs: &Glyphs) -> Self {
        if *glyphs == Glyphs::plain() {
            return Self {
                prompt: ">",
                meter_full: "#",
                meter_empty: ".",
                down: "v",
                updown: "Up/Down",
                current: "*",
                thumb: "#",
                mask: "*",
                to_agent: ">",
                from_agent: "<",
                frame: ["+", "+", "+", "+", "-", "|"],
            };
        }
        Self {
            prompt: "›",
            meter_full: "■",
            meter_empty: "□",
            down: "↓",
            updown: "↑↓",
            current: "•",
            thumb: "▐",
            mask: "•",
            to_agent: "→",
            from_agent: "←",
            frame: ["╭", "╮", "╰", "╯", "─", "│"],
        }
    }
}

/// Formats an amount: `$0.21`.
pub fn cost_text(cost: &Cost) -> String {
    let sign = match cost.currency.as_str() {
        "USD" => "$",
        "EUR" => "€",
        "GBP" => "£",
        unit => return format!("{:.2} {}", cost.amount, one_line(unit)),
    };
    format!("{sign}{:.2}", cost.amount)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ui::text::width;

    #[test]
    fn glyphs_are_one_cell_wide() {
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
                glyphs.pending,
            ];
            for mark in marks.into_iter().chain(glyphs.spinner) {
                assert_eq!(width(mark), 1, "{mark}");
            }
        }
        assert!(Glyphs::plain().spinner.iter().all(|frame| frame.is_ascii()));
    }

    #[test]
    fn times_and_counts_are_formatted() {
        assert_eq!(duration(Duration::from_millis(340)), "0.3 s");
        assert_eq!(duration(Duration::from_secs(8)), "8 s");
        assert_eq!(duration(Duration::from_secs(125)), "2 min 5 s");
        assert_eq!(duration(Duration::from_secs(3780)), "1 h 3 min");
        assert_eq!([7, 980, 1980, 1_234_567].map(with_commas), ["7", "980", "1,980", "1,234,567"]);
    }

    #[test]
    fn marks_are_one_cell_wide() {
        for glyphs in [Glyphs::rich(), Glyphs::plain()] {
            let marks = Marks::beside(&glyphs);
            let all = [
                marks.prompt,
                marks.meter_full,
                marks.meter_empty,
                marks.down,
                marks.current,
                marks.thumb,
                marks.mask,
                marks.to_agent,
                marks.from_agent,
            ];
            for mark in all.into_iter().chain(marks.frame) {
                assert_eq!(width(mark), 1, "{mark}");
            }
        }
    }
}
