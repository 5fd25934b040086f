//! The keys of a started sequence: its state between two keys, and the list of keys that continue it.
//!
//! `input` collects the keys. The list appears above the prompt after a delay, or at once on `?`, which also shows
//! its next page.

use std::time::{Duration, Instant};

use ratatui::layout::Rect;

use crate::config::keymap::chord::Chord;
use crate::config::keymap::sequence::label;
use crate::config::keymap::{Context, actions};
use crate::ui::canvas::Canvas;
use crate::ui::text::{Line, Span};

use super::frame_context::FrameContext;
use super::hits::{Hit, HitMap};
use super::text;
use super::theme::Role;
use crate::ui::text::counted;

/// Minimum and maximum width of a column.
const MIN_COLS: u16 = 28;
const MAX_COLS: u16 = 48;

const MAX_ROWS: u16 = 10;

/// A sequence that was started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PendingKeys {
    pub context: Context,
    pub keys: Vec<Chord>,
    /// When the last key was pressed.
    pub since: Instant,
    pub page: Option<usize>,
}

impl PendingKeys {
    /// The keys for display: `Ctrl+X …`.
    pub fn label(&self) -> String {
        format!("{} …", label(&self.keys))
    }

    /// The time until the list is shown; `None` if it is.
    pub fn shown_in(&self, now: Instant, delay: Duration) -> Option<Duration> {
        let left = delay.saturating_sub(now.saturating_duration_since(self.since));
        (self.page.is_none() && !left.is_zero()).then_some(left)
    }
}

/// Draws the list at the bottom of an area.
pub(super) fn draw(
    ctx: &FrameContext,
    pending: &PendingKeys,
    above: Rect,
    buf: &mut Canvas,
    hits: &mut HitMap,
) {
    let entries: Vec<(String, &str)> = ctx
        .keymap
        .continuations(pending.context, &pending.keys)
        .into_iter()
        .map(|next| {
            let text = next.action.and_then(actions::info).map_or("More keys…", |info| info.text);
            (ctx.key_name(&next.key), text)
        })
        .collect();
    let max = above.height.saturating_sub(1).min(MAX_ROWS);
    let columns = (above.width / MIN_COLS).max(1);
    let width = (above.width / columns).min(MAX_COLS);
    let rows = u16::try_from(entries.len()).unwrap_or(u16::MAX).div_ceil(columns).min(max);
    if rows == 0 {
        return;
    }
    let per_page = usize::from(rows * columns);
    let pages = entries.len().div_ceil(per_page);
    let page = pending.page.unwrap_or(0) % pages;
    let area = Rect { y: above.bottom() - rows - 1, height: rows + 1, ..above };
    buf.blank(area, ctx.style(Role::Dialog));
    hits.add(area, Hit::Nothing);

    let mut head = Line::from(ctx.span(Role::DialogTitle, pending.label()));
    let more = entries.len() - per_page.min(entries.len());
    let hints = [
        (pages > 1).then(|| ("?".to_owned(), counted(more, "more key", "more keys"))),
        Some(("Esc".to_owned(), "cancel".to_owned())),
    ];
    let hints: Vec<(String, String)> = hints.into_iter().flatten().collect();
    let room = usize::from(area.width).saturating_sub(head.width() + 4);
    let hints = ctx.hints(&hints, room);
    head.push_span(Span::raw("  "));
    head.spans.extend(hints.spans);
    buf.put_line(area.x + 1, area.y, &head, area.width.saturating_sub(1));

    let shown: Vec<&(String, &str)> = entries.iter().skip(page * per_page).take(per_page).collect();
    for (column, keys) in (0..columns).zip(shown.chunks(usize::from(rows))) {
        let key_cols = keys.iter().map(|(key, _)| text::width(key)).max().unwrap_or(0);
        let x = area.x + 1 + column * width;
        for (y, (key, does)) in (area.y + 1..).zip(keys) {
            let pad = " ".repeat(key_cols.saturating_sub(text::width(key)) + 2);
            let room = usize::from(width).saturating_sub(key_cols + 4);
            let line = Line::from(vec![
                ctx.span(Role::KeyHint, key.clone()),
                Span::raw(pad),
                ctx.span(Role::TextDim, text::truncate(does, room)),
            ]);
            buf.put_line(x, y, &line, width.saturating_sub(1).min(area.right().saturating_sub(x)));
        }
    }
}
