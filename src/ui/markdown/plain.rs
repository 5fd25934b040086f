//! Markdown as plain text, without markup and line wraps.

use std::path::Path;
use std::time::Instant;

use crate::ui::render_context::RenderContext;
use crate::ui::screen::DiffLayout;
use crate::ui::text::copy_hint;
use crate::ui::theme::Theme;

use super::Markdown;

/// Wide enough for tables; wraps are removed afterwards.
const COLS: u16 = 400;

/// Converts Markdown to plain text, with table cells separated by tabs. `now` may be any time. As expensive
/// as drawing the complete text.
pub fn plain_text(source: &str, now: Instant) -> String {
    let theme = Theme::plain();
    let render =
        RenderContext { diff_layout: DiffLayout::Unified, ..RenderContext::new(&theme, Path::new(""), now) };
    let mut markdown = Markdown::of(source);
    let mut rows = Vec::new();
    for index in 0..markdown.blocks().len() {
        if markdown.blocks().get(index).is_some_and(|block| block.has_gap) {
            rows.push(crate::ui::text::Line::default());
        }
        rows.extend(markdown.draw(index, source, &render, COLS));
    }
    copy_hint::text_of(&rows)
}
