//! The lines of the protocol log: messages in both directions, and the agent's stderr.
//!
//! The tap collects and redacts them, and `ViewState::set_log` sets them; `ui::dialogs::LogPage` shows them.
//! Invariant: a scrolled view does not move when new lines arrive.

/// The source of a log line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogDirection {
    ToAgent,
    FromAgent,
    Stderr,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLine {
    /// Time in milliseconds since parlor started.
    pub time_ms: u64,
    pub direction: LogDirection,
    /// The text with secrets redacted; not sanitised.
    pub text: String,
}

/// The lines and the scroll offset.
#[derive(Debug, Clone, Default)]
pub(super) struct LogView {
    pub lines: Vec<LogLine>,
    /// Number of matching lines below the screen; 0 follows the end.
    pub below: usize,
    /// The filter in lower case with the indexes of matching lines, as a cache.
    fitting: Option<(String, Vec<usize>)>,
}

impl LogView {
    /// Sets the lines; a scrolled view does not move.
    pub fn set_lines(&mut self, lines: Vec<LogLine>) {
        if self.below > 0
            && let Some(last) = self.lines.last()
        {
            let added = lines.iter().rev().take_while(|line| *line != last).count();
            if added < lines.len() {
                self.below += added;
            }
        }
        self.lines = lines;
        self.fitting = None;
    }

    /// The indexes of lines that match a filter in lower case.
    pub fn fitting(&mut self, wanted: &str) -> &[usize] {
        if self.fitting.as_ref().is_none_or(|(known, _)| known != wanted) {
            let fits = |line: &LogLine| wanted.is_empty() || line.text.to_lowercase().contains(wanted);
            let positions =
                self.lines.iter().enumerate().filter(|(_, line)| fits(line)).map(|(position, _)| position);
            self.fitting = Some((wanted.to_owned(), positions.collect()));
        }
        self.fitting.as_ref().map_or(&[], |(_, positions)| positions)
    }

    /// Scrolls by lines; negative values scroll back.
    pub fn scroll(&mut self, lines: i64) {
        let steps = usize::try_from(lines.unsigned_abs()).unwrap_or(usize::MAX);
        self.below =
            if lines < 0 { self.below.saturating_add(steps) } else { self.below.saturating_sub(steps) };
    }

    pub fn follow(&mut self) {
        self.below = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(time_ms: u64) -> LogLine {
        LogLine { time_ms, direction: LogDirection::ToAgent, text: format!("line {time_ms}") }
    }

    #[test]
    fn scrolled_view_does_not_move_when_lines_change() {
        let mut view = LogView::default();
        view.set_lines((0..10).map(line).collect());
        view.scroll(-4);
        view.set_lines((3..15).map(line).collect());
        assert_eq!(view.below, 9, "five new lines are below too");
        view.follow();
        view.set_lines((3..20).map(line).collect());
        assert_eq!(view.below, 0);
    }
}
