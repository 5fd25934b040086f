//! The queued prompts above the composer, one row each.

use ratatui::layout::Rect;

use crate::app::Session;
use crate::config::keymap::Context;
use crate::model::Action;
use crate::ui::canvas::Canvas;

use super::frame_context::{FrameContext, line_width};
use super::text;
use super::theme::Role;
use super::view_state::{Hit, HitMap};

/// Maximum number of prompts shown; others are counted.
const MOST_ROWS: u16 = 3;

/// Minimum width of a prompt beside the hints.
const LEAST_TEXT: usize = 16;

/// Number of rows, for a screen of this height.
pub(super) fn rows(session: &Session, screen_rows: u16) -> u16 {
    let most = if screen_rows < super::AIRY_ROWS { 1 } else { MOST_ROWS };
    u16::try_from(session.queue.len()).unwrap_or(most).min(most)
}

/// Draws the first prompts of the queue. The hints of the keys apply while the empty composer has the keys.
pub(super) fn draw(scene: &FrameContext, has_keys: bool, area: Rect, buf: &mut Canvas, hits: &mut HitMap) {
    hits.add(area, Hit::Act(Action::OpenQueue));
    let queue = &scene.session.queue;
    let is_on_hold = scene.session.can_prompt();
    let (label, role) = if is_on_hold { ("on hold", Role::Warning) } else { ("queued", Role::TextDim) };
    let indent = text::width(label) + 2;
    let cols = usize::from(area.width).saturating_sub(2 + indent);

    let hidden = queue.len().saturating_sub(area.height.into());
    let more = (hidden > 0).then(|| (format!("+{hidden}"), "more".to_owned()));
    let keys = [
        scene.hint(Context::Main, Action::Submit, "send next").filter(|_| is_on_hold),
        scene.hint(
            Context::Main,
            Action::HistoryPrevious,
            if queue.len() > 1 { "edit last" } else { "edit" },
        ),
    ];
    let facts: Vec<_> = more.into_iter().chain(keys.into_iter().flatten().filter(|_| has_keys)).collect();
    let facts = scene.hints(&facts, cols.saturating_sub(LEAST_TEXT + 2));
    let facts_cols = line_width(&facts);

    for (y, prompt) in (area.y..area.bottom()).zip(queue) {
        let first = prompt.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
        let is_first = y == area.y;
        let room = if is_first && facts_cols > 0 { cols.saturating_sub(facts_cols + 2) } else { cols };
        let words = text::truncate(&text::one_line(first), room);
        if is_first {
            text::put_text(buf, area.x + 1, y, label, area.width, scene.style(role));
            let width = u16::try_from(facts_cols).unwrap_or(0);
            buf.put_line(area.right().saturating_sub(1 + width), y, &facts, width);
        }
        let x = area.x + 1 + u16::try_from(indent).unwrap_or(0);
        text::put_text(buf, x, y, &words, area.width, scene.style(Role::Text));
    }
}

#[cfg(test)]
mod tests {
    use crate::ui::tests::fixture::{Stage, ready, streaming, text, theme};

    fn shown(stage: &Stage, size: (u16, u16)) -> String {
        text(&stage.draw(&mut stage.view(), &theme("dark"), size))
    }

    fn queued(mut stage: Stage, prompts: &[&str]) -> Stage {
        stage.session(|session| {
            session.queue = prompts.iter().map(|text| (*text).to_owned()).collect();
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
        assert!(rows[0].ends_with("+2 more · ↑ edit last"), "{rows:#?}");
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
    fn an_idle_queue_is_on_hold() {
        let rows = shown(&queued(ready(), &["later"]), (80, 24));
        let row = rows.lines().find(|row| row.contains("later")).expect(&rows);
        assert!(row.starts_with(" on hold  later") && row.ends_with("enter send next · ↑ edit"), "{row}");
    }
}
