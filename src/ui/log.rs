//! The log view: what went over the wire, both ways, and what the agent wrote to stderr.
//!
//! Duty: filter, scrolling, direction marks, wrapping of long lines. Not its duty: collecting or redacting
//! (the tap does), so lines come in ready by `ViewState::set_log`.
//! Invariants: only the lines on the screen are wrapped; a reader who looks back stays at the same line when
//! new ones come.

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::text::{Line, Span};

use crate::app::LineInput;
use crate::config::keymap::Context;
use crate::model::Action;

use super::composer::blank;
use super::frame_context::{FrameContext, counted};
use super::text;
use super::theme::Role;
use super::view_state::{Hit, ViewState};

/// Most rows of one line; the rest of it is told by its size.
const MOST_ROWS: usize = 12;

/// Where a line came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogDirection {
    /// Parlor wrote it to the agent.
    ToAgent,
    /// The agent wrote it to its stdout.
    FromAgent,
    /// The agent wrote it to its stderr.
    Stderr,
}

/// A line of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLine {
    /// When, in milliseconds since parlor started.
    pub time_ms: u64,
    /// Where from.
    pub direction: LogDirection,
    /// The line, secrets taken out; may hold anything else.
    pub text: String,
}

/// The lines, and where the reader is.
#[derive(Debug, Clone, Default)]
pub(super) struct LogView {
    lines: Vec<LogLine>,
    /// How many fitting lines are below the screen; 0: the end is followed.
    below: usize,
    /// The filter, in lower case, and the places of the lines that fit it; until new lines come.
    fitting: Option<(String, Vec<usize>)>,
}

impl LogView {
    /// Takes new lines; a reader who looks back keeps theirs.
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

    /// The places of the lines that fit a filter in lower case.
    fn fitting(&mut self, wanted: &str) -> &[usize] {
        if self.fitting.as_ref().is_none_or(|(known, _)| known != wanted) {
            let fits = |line: &LogLine| wanted.is_empty() || line.text.to_lowercase().contains(wanted);
            let places = self.lines.iter().enumerate().filter(|(_, line)| fits(line)).map(|(place, _)| place);
            self.fitting = Some((wanted.to_owned(), places.collect()));
        }
        self.fitting.as_ref().map_or(&[], |(_, places)| places)
    }

    /// Scrolls by lines (negative: back in time).
    pub fn scroll(&mut self, lines: i64) {
        let steps = usize::try_from(lines.unsigned_abs()).unwrap_or(usize::MAX);
        self.below =
            if lines < 0 { self.below.saturating_add(steps) } else { self.below.saturating_sub(steps) };
    }

    /// To the end.
    pub fn follow(&mut self) {
        self.below = 0;
    }
}

/// Draws it over the whole screen and returns the cursor's place.
pub(super) fn draw(
    scene: &FrameContext,
    filter: &LineInput,
    view: &mut ViewState,
    area: Rect,
    buf: &mut Buffer,
) -> Option<Position> {
    view.hits.add(area, Hit::Nothing);
    blank(area, buf, scene.style(Role::Text));
    if area.height < 4 || area.width < 10 {
        return None;
    }
    let wanted = filter.text.trim().to_lowercase();
    let rows = usize::from(area.height.saturating_sub(4));
    let count = view.log.fitting(&wanted).len();
    view.log.below = view.log.below.min(count.saturating_sub(1));
    let last = count - view.log.below;

    // Upwards from the last shown line until the screen is full.
    let mut shown: Vec<Vec<Line<'static>>> = Vec::new();
    let mut used = 0;
    for place in (0..last).rev() {
        let Some(index) = view.log.fitting(&wanted).get(place).copied() else { break };
        let Some(line) = view.log.lines.get(index) else { break };
        let drawn = lines(scene, line, &wanted, area.width.saturating_sub(2));
        used += drawn.len();
        shown.push(drawn);
        if used >= rows {
            break;
        }
    }
    view.dialog.page = shown.len().max(1);
    let lines: Vec<Line<'static>> = shown.into_iter().rev().flatten().collect();
    let skip = lines.len().saturating_sub(rows);
    let mut y = area.y + 2;
    for line in lines.iter().skip(skip) {
        buf.set_line(area.x + 1, y, line, area.width.saturating_sub(2));
        y += 1;
    }
    if count == 0 {
        let why = if view.log.lines.is_empty() { "No messages yet." } else { "No matching lines." };
        buf.set_stringn(area.x + 1, y, why, usize::from(area.width) - 1, scene.style(Role::TextDim));
    }
    draw_head(scene, view, count, area, buf);
    Some(draw_foot(scene, filter, area, buf))
}

fn draw_head(scene: &FrameContext, view: &ViewState, fitting: usize, area: Rect, buf: &mut Buffer) {
    let title = "Protocol log";
    buf.set_string(area.x + 1, area.y, title, scene.style(Role::ModalTitle));
    let all = view.log.lines.len();
    let mut count = if fitting < all {
        format!("{fitting} of {}", counted(all, "line", "lines"))
    } else {
        counted(all, "line", "lines")
    };
    if let Some(words) = scene.anomalies() {
        count = format!("{words} {} {count}", scene.look.glyphs.dot);
    }
    if view.log.below > 0 {
        count = format!("{count} {} {} below", scene.look.glyphs.dot, view.log.below);
    }
    let width = u16::try_from(text::width(&count)).unwrap_or(0);
    let x = area.right().saturating_sub(width + 1);
    if x > area.x + 18 {
        buf.set_string(x, area.y, count, scene.style(Role::TextDim));
    }
    let rule = scene.look.glyphs.rule.repeat(usize::from(area.width).saturating_sub(2));
    buf.set_string(area.x + 1, area.y + 1, &rule, scene.style(Role::Rule));
    buf.set_string(area.x + 1, area.bottom() - 2, &rule, scene.style(Role::Rule));
}

fn draw_foot(scene: &FrameContext, filter: &LineInput, area: Rect, buf: &mut Buffer) -> Position {
    let hints: Vec<(String, String)> = [
        scene.hint(Context::Text, Action::Escape, "close"),
        scene.hint(Context::Text, Action::PageUp, "scroll back"),
    ]
    .into_iter()
    .flatten()
    .collect();
    let y = area.bottom() - 1;
    let half = usize::from(area.width) / 2;
    let line = scene.hints(&hints, half);
    let width = u16::try_from(super::frame_context::line_width(&line)).unwrap_or(0);
    buf.set_line(area.right().saturating_sub(width + 1), y, &line, width);
    let room = area.width.saturating_sub(width + 4);
    let row = super::modals::typed_line(scene, filter, "type to filter", room);
    buf.set_line(area.x + 1, y, &row.0, room);
    Position::new(area.x + 1 + u16::try_from(row.1).unwrap_or(0).min(room), y)
}

/// A line of the log, wrapped: time, direction, text.
fn lines(scene: &FrameContext, line: &LogLine, wanted: &str, cols: u16) -> Vec<Line<'static>> {
    let (mark, mark_role, role) = match line.direction {
        LogDirection::ToAgent => (scene.marks.to_agent, Role::Accent, Role::Text),
        LogDirection::FromAgent => (scene.marks.from_agent, Role::Success, Role::Text),
        LogDirection::Stderr => (scene.look.glyphs.warn, Role::Warning, Role::TextDim),
    };
    let time = clock(line.time_ms);
    let lead = text::width(&time) + 3;
    let room = cols.saturating_sub(u16::try_from(lead).unwrap_or(0)).max(4);
    // A frame may have megabytes: no more of it is looked at than can be shown.
    let most_chars = usize::from(room) * MOST_ROWS;
    let cut: String = line.text.chars().take(most_chars).collect();
    let is_cut = cut.len() < line.text.len();
    let source = Line::from(highlighted(scene, &text::one_line(&cut), wanted, role));
    let mut rows = text::hard_wrap(&source, room);
    if is_cut || rows.len() > MOST_ROWS {
        rows.truncate(MOST_ROWS);
        let size = super::render_context::size(u64::try_from(line.text.len()).unwrap_or(u64::MAX));
        rows.push(Line::from(
            scene.span(Role::TextDim, format!("{} {size} in total", scene.look.glyphs.fold)),
        ));
    }
    for (index, row) in rows.iter_mut().enumerate() {
        if index == 0 {
            row.spans.insert(0, scene.span(mark_role, format!(" {mark} ")));
            row.spans.insert(0, scene.span(Role::TextDim, time.clone()));
        } else {
            row.spans.insert(0, Span::raw(" ".repeat(lead)));
        }
    }
    rows
}

/// The text with each place that the filter found.
fn highlighted(scene: &FrameContext, line: &str, wanted: &str, role: Role) -> Vec<Span<'static>> {
    // Lower case may have another length in bytes; then nothing is marked rather than the wrong thing.
    let lower = line.to_lowercase();
    if wanted.is_empty() || lower.len() != line.len() {
        return vec![scene.span(role, line.to_owned())];
    }
    let mut spans = Vec::new();
    let mut rest = 0;
    for (at, found) in lower.match_indices(wanted) {
        let (Some(before), Some(hit)) = (line.get(rest..at), line.get(at..at + found.len())) else {
            continue;
        };
        spans.push(scene.span(role, before.to_owned()));
        spans.push(scene.span(Role::Match, hit.to_owned()));
        rest = at + found.len();
    }
    spans.push(scene.span(role, line.get(rest..).unwrap_or_default().to_owned()));
    spans
}

/// `3:07.042`: minutes, seconds, milliseconds.
fn clock(time_ms: u64) -> String {
    format!("{:>2}:{:02}.{:03}", time_ms / 60_000, time_ms / 1000 % 60, time_ms % 1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(time_ms: u64) -> LogLine {
        LogLine { time_ms, direction: LogDirection::ToAgent, text: format!("line {time_ms}") }
    }

    #[test]
    fn a_reader_who_looks_back_stays_when_lines_come_and_old_ones_go() {
        let mut view = LogView::default();
        view.set_lines((0..10).map(line).collect());
        view.scroll(-4);
        view.set_lines((3..15).map(line).collect());
        assert_eq!(view.below, 9, "five new ones are below too");
        view.follow();
        view.set_lines((3..20).map(line).collect());
        assert_eq!(view.below, 0);
    }

    #[test]
    fn times_are_short() {
        assert_eq!(clock(42), " 0:00.042");
        assert_eq!(clock(187_042), " 3:07.042");
    }
}
