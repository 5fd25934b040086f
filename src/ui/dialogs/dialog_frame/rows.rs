//! Rows that dialogs share: wrapped text, a line with a right part, answers, an input.

use super::Row;
use crate::core::LineInput;
use crate::model::Action;
use crate::ui::frame_context::FrameContext;
use crate::ui::hits::Hit;
use crate::ui::text;
use crate::ui::text::{Line, Span};
use crate::ui::theme::Role;

pub(in crate::ui::dialogs) fn wrapped(ctx: &FrameContext, role: Role, source: &str, cols: u16) -> Vec<Row> {
    let clean = text::sanitize(source);
    clean
        .lines()
        .flat_map(|line| text::wrap_line(&Line::from(ctx.span(role, text::expand_tabs(line))), cols))
        .map(Row::from)
        .collect()
}

/// Puts a text before the first of these rows, and blanks before the others.
pub(in crate::ui::dialogs) fn led(mut rows: Vec<Row>, lead: Span<'static>) -> Vec<Row> {
    let cols = lead.width();
    let blank = Span::styled(" ".repeat(cols), lead.style);
    for (row, lead) in rows.iter_mut().zip(std::iter::once(lead).chain(std::iter::repeat(blank))) {
        row.line.spans.insert(0, lead);
        row.cursor = row.cursor.map(|col| col + cols);
    }
    rows
}

/// A value with its name in a column at the left.
pub(in crate::ui::dialogs) fn named(
    ctx: &FrameContext,
    (name, name_cols): (&str, usize),
    value: &str,
    cols: u16,
) -> Vec<Row> {
    let room = cols.saturating_sub(u16::try_from(name_cols).unwrap_or(0)).max(8);
    led(wrapped(ctx, Role::Dialog, value, room), ctx.span(Role::TextDim, format!("{name:<name_cols$}")))
}

/// A line with a right-aligned part; the left part is truncated.
pub(in crate::ui::dialogs) fn spread(
    left: Vec<Span<'static>>,
    right: Line<'static>,
    cols: u16,
) -> Line<'static> {
    let cols = usize::from(cols);
    let right_cols = right.width();
    let room = cols.saturating_sub(right_cols + usize::from(right_cols > 0));
    let mut line = Line::default();
    let mut used = 0;
    for span in left {
        let shown = text::truncate(&span.content, room.saturating_sub(used));
        used += text::width(&shown);
        line.push_span(span.with_text(shown));
    }
    line.push_span(Span::raw(" ".repeat(cols.saturating_sub(used + right_cols))));
    line.spans.extend(right.spans);
    line
}

pub(in crate::ui::dialogs) fn choice(
    ctx: &FrameContext,
    index: usize,
    label: &str,
    is_selected: bool,
    cols: u16,
) -> Vec<Row> {
    let number = index + 1;
    let hit = u8::try_from(number).ok().map(Action::Choose).map(Hit::Act);
    let mark = if number < 10 { number.to_string() } else { ctx.render.glyphs.dot.to_owned() };
    let line = Line::from(ctx.span(Role::Dialog, text::one_line(label)));
    let lines = text::wrap_line(&line, cols.saturating_sub(3).max(4)).into_iter();
    let rows = lines.map(|line| Row { line, hit, is_selected, ..Row::default() });
    led(rows.collect(), ctx.span(Role::Accent, format!("{mark:<3}")))
}

/// All choices in one row, if they fit.
pub(in crate::ui::dialogs) fn choices_in_a_row(
    ctx: &FrameContext,
    labels: &[String],
    selected: Option<usize>,
    cols: u16,
) -> Option<Row> {
    if labels.is_empty() || labels.len() > 9 {
        return None;
    }
    let mut row = Row::default();
    let mut col: u16 = 0;
    for (index, label) in labels.iter().enumerate() {
        let is_selected = selected == Some(index);
        let number = u8::try_from(index + 1).ok()?;
        let mark = if is_selected { ctx.render.glyphs.arrow } else { " " };
        let text = format!("{} ", text::one_line(label));
        let width = u16::try_from(text::width(&text)).ok()?.checked_add(4)?;
        let (lead, rest) =
            if is_selected { (Role::Selection, Role::Selection) } else { (Role::Accent, Role::Dialog) };
        row.line.push_span(ctx.span(lead, format!("{mark} {number} ")));
        row.line.push_span(ctx.span(rest, text));
        row.parts.push((col, width, Action::Choose(number)));
        col = col.checked_add(width)?;
    }
    (col <= cols).then_some(row)
}

/// A text input: `› text`, scrolled so that the cursor is visible.
pub(in crate::ui::dialogs) fn input(
    ctx: &FrameContext,
    input: &LineInput,
    hint: &str,
    mask: bool,
    cols: u16,
) -> Row {
    let lead = format!("{} ", ctx.marks.prompt);
    let room = usize::from(cols).saturating_sub(text::width(&lead) + 1);
    let show = |part: &str| {
        let clean = text::sanitize(part).replace(['\n', '\t'], " ");
        if mask { ctx.marks.mask.repeat(part.chars().count()) } else { clean }
    };
    let cursor = input.cursor.min(input.text.len());
    let before = show(input.text.get(..cursor).unwrap_or(&input.text));
    let after = show(input.text.get(cursor..).unwrap_or_default());
    let head = text::truncate_start(&before, room);
    let at = text::width(&head);
    let tail = text::truncate(&after, room.saturating_sub(at));
    let mut line = Line::from(ctx.span(Role::Accent, lead.clone()));
    if input.text.is_empty() {
        line.push_span(ctx.span(Role::TextDim, text::truncate(hint, room)));
    } else {
        line.push_span(ctx.span(Role::Dialog, format!("{head}{tail}")));
    }
    Row { line, cursor: Some(text::width(&lead) + at), ..Row::default() }
}
