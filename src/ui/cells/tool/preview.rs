//! The preview of an output in a call that was not opened.
//!
//! While a command is running and if it failed, its last lines are shown, below the line with the reason. Otherwise
//! both ends are shown: the last lines alone are often a summary that needs the first ones.

use crate::ui::text::Line;

use crate::ui::render_context::with_commas;
use crate::ui::session_view::fold::count_lines;
use crate::ui::terminal;

use super::{Body, OUTPUT_RUNNING_LINES, exit_code, more_line};
use crate::ui::cells::failure_summary;

/// Lines shown of the start and of the end of a successful output.
pub(super) const ENDS: (usize, usize) = (5, 4);
/// The same for a command of the user, who asked for the output.
pub(super) const USER_ENDS: (usize, usize) = (24, 16);
/// An output with at most this many more lines is shown completely.
const MIN_HIDDEN: usize = 2;
/// Bytes of an output that are read for its first lines.
const FIRST_BYTES: usize = 16 * 1024;

impl Body<'_, '_> {
    /// Adds the output of an ended call. `lost_beginning`: its start was dropped.
    pub(super) fn push_preview(
        &mut self,
        output: &[u8],
        has_returns: bool,
        is_bad: bool,
        lost_beginning: bool,
        ends: (usize, usize),
    ) {
        let is_over = self.tool.status.is_final();
        if is_bad || lost_beginning || !is_over {
            let max = if ends == USER_ENDS { ends.0 + ends.1 } else { OUTPUT_RUNNING_LINES };
            let (lines, is_more) = terminal::tail_of(output, has_returns, max + MIN_HIDDEN);
            // The number of earlier lines is not known if some were dropped.
            let all = if lost_beginning { 0 } else { count_lines(output) };
            self.push_tail(lines, is_more, max, all);
            return;
        }
        self.push_ends(output, has_returns, ends);
    }

    /// Adds the first and the last lines, and the number of lines between them.
    fn push_ends(&mut self, output: &[u8], has_returns: bool, (first_count, last_count): (usize, usize)) {
        let max = first_count + last_count + MIN_HIDDEN;
        let (lines, is_more) = terminal::tail_of(output, has_returns, max);
        let mut last = self.output_rows(lines);
        if !is_more && last.len() <= max {
            self.push_rows(last);
            return;
        }
        let (lines, _) = terminal::tail_of(first_lines(output, first_count), has_returns, usize::MAX);
        let mut first = self.output_rows(lines);
        first.truncate(first_count);
        let last = last.split_off(last.len().saturating_sub(last_count));
        self.push_rows(first);
        let line = more_line(
            &counted(count_lines(output).saturating_sub(first_count + last_count)),
            self.context.render,
        );
        self.push(vec![line]);
        self.push_rows(last);
    }

    /// Adds the last lines of an output with `all` lines in total (0: not known).
    pub(super) fn push_tail(&mut self, lines: Vec<Line<'static>>, is_more: bool, max: usize, all: usize) {
        let hidden = all.saturating_sub(lines.len().min(max));
        let mut rows = self.output_rows(lines);
        // The row with the number of omitted lines replaces one.
        let is_whole = !is_more && self.tool.status.is_final() && rows.len() <= max + MIN_HIDDEN;
        let is_cut = !is_whole && rows.len() > max;
        let rows = if is_whole { rows } else { rows.split_off(rows.len().saturating_sub(max)) };
        if (is_more || is_cut) && self.tool.status.is_final() && !rows.is_empty() {
            if self.is_bad(exit_code(self.tool, self.context.session)) {
                let unlisted_input =
                    self.output_bytes().and_then(|output| failure_summary::before_tail(output, max));
                self.push_reason(unlisted_input);
            }
            let line = more_line(&counted(hidden), self.context.render);
            self.push(vec![line]);
        }
        self.push_rows(rows);
    }
}

/// The number of omitted lines, if known.
fn counted(hidden: usize) -> String {
    match hidden {
        0 => String::new(),
        1 => " 1 line".to_owned(),
        hidden => format!(" {} lines", with_commas(hidden)),
    }
}

/// The start of an output, up to `count` line ends.
fn first_lines(output: &[u8], count: usize) -> &[u8] {
    let output = output.get(..FIRST_BYTES).unwrap_or(output);
    let end = memchr::memchr_iter(b'\n', output).nth(count.saturating_sub(1));
    end.and_then(|at| output.get(..at)).unwrap_or(output)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_lines_end_at_a_line_end_or_a_limit() {
        assert_eq!(first_lines(b"a\nb\nc\n", 2), b"a\nb");
        assert_eq!(first_lines(b"a\nb", 5), b"a\nb");
        assert_eq!(first_lines(b"", 5), b"");
        assert_eq!(first_lines(&vec![b'x'; FIRST_BYTES * 2], 5).len(), FIRST_BYTES);
    }
}
