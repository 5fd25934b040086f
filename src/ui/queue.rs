//! The queued prompts: one row each above the composer, or a part of the panel beside the transcript.

use ratatui::layout::Rect;

use crate::config::keymap::Context;
use crate::core::{Prompt, Session};
use crate::model::{Action, numbered_labels};
use crate::ui::canvas::Canvas;

use super::frame_context::FrameContext;
use super::hits::{Hit, HitMap};
use super::text::{self, Line};
use super::theme::Role;

/// Maximum number of prompts shown; others are counted.
const MAX_ROWS: u16 = 3;

/// Maximum number of prompts in the panel beside the transcript.
const SIDE_ROWS: usize = 8;

/// Minimum width of a prompt beside the hints.
const MIN_TEXT: usize = 16;

pub(super) fn rows(session: &Session, screen_rows: u16) -> u16 {
    let max = if screen_rows < super::SPACIOUS_ROWS { 1 } else { MAX_ROWS };
    u16::try_from(session.outbox.queue_len()).unwrap_or(max).min(max)
}

/// The state of a queued prompt, and the style of that word; `None`: it is that of the prompt above.
fn state_word(session: &Session, position: usize) -> Option<(&'static str, Role)> {
    let is_held =
        |position| session.outbox.queued(position).is_some_and(|prompt| session.outbox.is_waiting(prompt));
    let is_repeated = position.checked_sub(1).is_some_and(|above| is_held(above) == is_held(position));
    let word = if is_held(position) { ("on hold", Role::Warning) } else { ("queued", Role::TextDim) };
    (!is_repeated).then_some(word)
}

/// What is done with a queued prompt at the moment, apart from waiting.
fn special_word(prompt: &Prompt) -> Option<(&'static str, Role)> {
    if prompt.is_edited() {
        Some(("editing", Role::Accent))
    } else if prompt.is_steering() {
        Some(("sending", Role::Accent))
    } else {
        None
    }
}

/// The first line of a prompt that has text.
fn first_line(prompt: &str) -> String {
    text::one_line(numbered_labels(prompt).lines().find(|line| !line.trim().is_empty()).unwrap_or_default())
}

/// The keys that apply to the queue while the composer has the keys.
fn keys(ctx: &FrameContext, is_empty: bool) -> Vec<(String, String)> {
    let session = ctx.session;
    let count = session.outbox.queue_len();
    let keys = if session.outbox.edited().is_some() {
        [
            ctx.hint(Context::Main, Action::Submit, "save"),
            ctx.hint(Context::Main, Action::Escape, "discard"),
            None,
        ]
    } else {
        let edit = if count > 1 { "edit last" } else { "edit" };
        let submit = if session.can_prompt() { "run queue" } else { "continue" };
        [
            ctx.hint(Context::Main, Action::Submit, submit).filter(|_| session.outbox.held() > 0),
            ctx.hint(Context::Main, Action::HistoryPrevious, edit),
            ctx.hint(Context::Main, Action::OpenQueue, "queue").filter(|_| count > 1),
        ]
        .map(|key| key.filter(|_| is_empty))
    };
    keys.into_iter().flatten().collect()
}

/// Draws the first prompts of the queue, and the one that is being edited.
pub(super) fn draw(ctx: &FrameContext, focus: Focused, area: Rect, buf: &mut Canvas, hits: &mut HitMap) {
    hits.add(area, Hit::Act(Action::OpenQueue));
    let session = ctx.session;
    let count = session.outbox.queue_len();
    let shown = usize::from(area.height);
    let mut positions: Vec<usize> = (0..count.min(shown)).collect();
    let edited = session.outbox.edited().and_then(|prompt| session.outbox.position(prompt.id));
    if let (Some(last), Some(edited)) = (positions.last_mut(), edited) {
        *last = edited.max(*last);
    }
    let word = |position| {
        session.outbox.queued(position).and_then(special_word).or_else(|| state_word(session, position))
    };
    let words: Vec<_> = positions.iter().map(|position| word(*position)).collect();
    let labels = words.iter().flatten().map(|(word, _)| text::width(word));
    let indent = labels.max().unwrap_or_default() + 2;
    let cols = usize::from(area.width).saturating_sub(2 + indent);

    let hidden = count.saturating_sub(shown);
    let more = (hidden > 0).then(|| (format!("+{hidden}"), "more".to_owned()));
    let keys = if focus.has_keys { keys(ctx, focus.is_empty) } else { Vec::new() };
    let facts: Vec<_> = more.into_iter().chain(keys).collect();
    let facts = ctx.hints(&facts, cols.saturating_sub(MIN_TEXT + 2));
    let facts_cols = facts.width();

    for ((y, position), word) in (area.y..area.bottom()).zip(positions).zip(words) {
        let Some(prompt) = session.outbox.queued(position) else { continue };
        let is_first = y == area.y;
        let room = if is_first && facts_cols > 0 { cols.saturating_sub(facts_cols + 2) } else { cols };
        if is_first {
            let width = u16::try_from(facts_cols).unwrap_or(0);
            buf.put_line(area.right().saturating_sub(1 + width), y, &facts, width);
        }
        if let Some((word, role)) = word {
            text::put_text(buf, area.x + 1, y, word, area.width, ctx.style(role));
        }
        let x = area.x + 1 + u16::try_from(indent).unwrap_or(0);
        let prompt = text::truncate(&first_line(&prompt.text), room);
        text::put_text(buf, x, y, &prompt, area.width, ctx.style(Role::Text));
    }
}

/// Where keys go.
#[derive(Debug, Clone, Copy)]
pub(super) struct Focused {
    pub has_keys: bool,
    /// Whether the composer is empty.
    pub is_empty: bool,
}

/// The queue in the panel beside the transcript: a heading with the keys, and the first prompts.
pub(super) fn side_lines(ctx: &FrameContext, focus: Focused, cols: u16) -> Vec<Line<'static>> {
    let session = ctx.session;
    let (count, held) = (session.outbox.queue_len(), session.outbox.held());
    let counts = [(count - held, "queued", Role::TextDim), (held, "on hold", Role::Warning)];
    let mut heading = Line::default();
    for (count, word, role) in counts.into_iter().filter(|(count, ..)| *count > 0) {
        let dot =
            if heading.spans.is_empty() { String::new() } else { format!(" {} ", ctx.render.glyphs.dot) };
        heading.push_span(ctx.span(role, format!("{dot}{count} {word}")));
    }
    let room = usize::from(cols).saturating_sub(heading.width() + 2);
    let keys = if focus.has_keys { keys(ctx, focus.is_empty) } else { Vec::new() };
    let keys = ctx.hints(&keys, room);
    let gap = usize::from(cols).saturating_sub(heading.width() + keys.width());
    heading.push_span(ctx.span(Role::Text, " ".repeat(gap)));
    heading.spans.extend(keys.spans);
    let mut lines = vec![heading];
    let shown = session.outbox.queue().enumerate();
    let shown = shown.filter(|(position, prompt)| *position < SIDE_ROWS || prompt.is_edited());
    let hidden = count - shown.clone().count();
    lines.extend(shown.map(|(_, prompt)| {
        let word = special_word(prompt).map(|(word, role)| ctx.span(role, format!("{word} ")));
        let used = word.as_ref().map_or(0, |word| text::width(&word.content));
        let room = usize::from(cols).saturating_sub(used);
        let prompt = ctx.span(Role::Text, text::truncate(&first_line(&prompt.text), room));
        Line { spans: word.into_iter().chain([prompt]).collect(), ..Line::default() }
    }));
    if hidden > 0 {
        lines.push(Line::from(ctx.span(Role::TextDim, format!("{} {hidden} more", ctx.render.glyphs.fold))));
    }
    lines
}

#[cfg(test)]
mod tests {
    use crate::ui::tests::fixture::{Stage, ready, streaming, text, theme};

    fn shown(stage: &Stage, size: (u16, u16)) -> String {
        text(&stage.draw(&mut stage.view(), &theme("dark"), size))
    }

    fn queued(mut stage: Stage, prompts: &[&str]) -> Stage {
        stage.session(|session| {
            session.outbox.take_queue();
            for text in prompts {
                session.outbox.enqueue((*text).to_owned());
            }
            session.draft.clear();
        });
        stage
    }

    #[test]
    fn queued_prompts_are_rows_with_a_count_of_the_others() {
        let stage = queued(streaming(), &["first\nline two", "second", "third", "fourth", "fifth"]);
        let rows = shown(&stage, (80, 24));
        let at = rows.lines().position(|row| row.starts_with(" queued  first ")).expect(&rows);
        let rows: Vec<&str> = rows.lines().skip(at).take(4).collect();
        assert!(rows[0].ends_with("+2 more · ↑ edit last · F7 queue"), "{rows:#?}");
        assert_eq!(rows[1..3], ["         second", "         third"]);
        assert!(rows[3].starts_with(" ──"), "{rows:#?}");
    }

    #[test]
    fn a_low_screen_has_one_row() {
        let stage = queued(streaming(), &["a prompt that is longer than the row", "second"]);
        let rows = shown(&stage, (40, 12));
        assert!(rows.contains(" queued  a prompt that is lon…  +1 more"), "{rows}");
        assert!(!rows.contains("second"), "{rows}");
    }

    #[test]
    fn a_queue_that_stays_on_hold_during_a_turn_says_so() {
        let mut stage = queued(streaming(), &["later"]);
        stage.session(|session| session.outbox.hold());
        let rows = shown(&stage, (80, 24));
        let row = rows.lines().find(|row| row.contains("later")).expect(&rows);
        assert!(row.starts_with(" on hold  later") && row.ends_with("Enter continue · ↑ edit"), "{row}");
    }

    #[test]
    fn prompts_on_hold_are_told_from_those_that_are_sent() {
        let mut stage = queued(streaming(), &["held", "held too"]);
        stage.session(|session| {
            session.outbox.hold();
            session.outbox.enqueue("new".to_owned());
        });
        let rows = shown(&stage, (80, 24));
        let at = rows.lines().position(|row| row.starts_with(" queued   new ")).expect(&rows);
        let rows: Vec<&str> = rows.lines().skip(at + 1).take(2).collect();
        assert_eq!(rows, [" on hold  held", "          held too"]);
        let rows = shown(&stage, (200, 40));
        assert!(rows.contains("1 queued · 2 on hold"), "{rows}");
    }

    #[test]
    fn an_idle_queue_on_hold_is_run_by_a_key() {
        let mut stage = queued(ready(), &["later"]);
        stage.session(|session| session.outbox.hold());
        let rows = shown(&stage, (80, 24));
        let row = rows.lines().find(|row| row.contains("later")).expect(&rows);
        assert!(row.starts_with(" on hold  later") && row.ends_with("Enter run queue · ↑ edit"), "{row}");
    }
}
