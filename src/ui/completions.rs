//! The list of completions above the prompt, or the hint for the argument of a command.

use std::ops::RangeInclusive;

use ratatui::layout::Rect;

use crate::model::Action;
use crate::ui::App;
use crate::ui::canvas::Canvas;
use crate::ui::dialogs::{Completion, CompletionKind, argument_hint, completions, selected_completion};
use crate::ui::text::{Line, Span};

use super::frame_context::FrameContext;
use super::hits::{Hit, HitMap};
use super::text;
use super::theme::Role;

/// Number of completions shown: a third of the rows above, within these bounds.
const COMPLETIONS: RangeInclusive<usize> = 6..=12;

pub(super) fn draw(app: &App, ctx: &FrameContext, above: Rect, buf: &mut Canvas, hits: &mut HitMap) {
    let offered = completions(app);
    let rows = usize::from(above.height);
    let max = (rows / 3).clamp(*COMPLETIONS.start(), *COMPLETIONS.end()).min(rows.saturating_sub(1));
    if max == 0 {
        return;
    }
    if offered.is_empty() {
        return draw_argument_hint(ctx, above, buf);
    }
    let selected = selected_completion(app);
    let first = selected.saturating_sub(max - 1).min(offered.len().saturating_sub(max));
    let shown: Vec<(usize, &Completion)> = offered.iter().enumerate().skip(first).take(max).collect();
    let rows = u16::try_from(shown.len()).unwrap_or(0);
    let area = Rect { y: above.bottom() - rows, height: rows, ..above };
    let labels =
        shown.iter().map(|(_, offer)| text::width(&text::one_line(&offer.name)) + 1).max().unwrap_or(0);
    let labels = labels.min(usize::from(area.width) / 2);
    for (y, (index, offer)) in (area.y..area.bottom()).zip(shown) {
        let is_selected = index == selected;
        let row = Rect { y, height: 1, ..area };
        let style = ctx.style(if is_selected { Role::Selection } else { Role::Dialog });
        buf.blank(row, style);
        let mark = if is_selected { ctx.render.glyphs.arrow } else { " " };
        let sign = match offer.kind {
            CompletionKind::File
            | CompletionKind::Review
            | CompletionKind::Symbol
            | CompletionKind::Session => "",
            CompletionKind::Output | CompletionKind::Group => "@",
            CompletionKind::Agent | CompletionKind::Own | CompletionKind::Template(_) => "/",
        };
        let label = text::truncate(&format!("{sign}{}", text::one_line(&offer.name)), labels);
        let pad = " ".repeat(labels.saturating_sub(text::width(&label)) + 2);
        let room = usize::from(area.width).saturating_sub(labels + 6);
        let about = [Some(offer.description.as_str()), offer.hint.as_deref()];
        let about: Vec<&str> = about.into_iter().flatten().filter(|part| !part.is_empty()).collect();
        let about = about.join(&format!(" {} ", ctx.render.glyphs.dot));
        let detail = text::truncate(&text::one_line(&about), room);
        let dim = if is_selected { style } else { ctx.style(Role::TextDim) };
        let count = format!("{} of {} ", index + 1, offered.len());
        let line = Line::from(vec![
            Span::raw(format!(" {mark} ")),
            Span::raw(label),
            Span::styled(format!("{pad}{detail}"), dim),
        ]);
        let free = usize::from(area.width).saturating_sub(line.width());
        buf.put_line(row.x, y, &line, row.width);
        if is_selected && offered.len() > max && free > count.len() {
            let at = row.right().saturating_sub(u16::try_from(count.len()).unwrap_or(0));
            buf.set_string(at, y, count, dim);
        }
        hits.add(
            row,
            u16::try_from(index).map_or(Hit::Nothing, |position| Hit::MarkAnd(position, Action::Complete)),
        );
    }
}

fn draw_argument_hint(ctx: &FrameContext, above: Rect, buf: &mut Canvas) {
    let Some(Completion { name, hint: Some(hint), description, .. }) = argument_hint(ctx.state) else {
        return;
    };
    let row = Rect { y: above.bottom().saturating_sub(1), height: 1, ..above };
    buf.blank(row, ctx.style(Role::Dialog));
    let width = usize::from(row.width);
    let label = text::truncate(&format!("/{} ", text::one_line(&name)), width / 2);
    let room = width.saturating_sub(text::width(&label) + 4);
    let hint = text::truncate(&text::one_line(&hint), room);
    let left = room.saturating_sub(text::width(&hint) + 2);
    let about = if left > 8 { text::truncate(&text::one_line(&description), left) } else { String::new() };
    let dim = ctx.style(Role::TextDim);
    let line = Line::from(vec![
        Span::styled(format!("   {label}"), dim),
        Span::raw(hint),
        Span::styled(format!("  {about}"), dim),
    ]);
    buf.put_line(row.x, row.y, &line, row.width);
}
