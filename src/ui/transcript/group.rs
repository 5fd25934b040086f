//! Groups consecutive successful reads and searches on the line of the first one.

use std::fmt::Write;

use crate::ui::text::{Line, Span};

use crate::core::{Item, ItemBody, Session, ToolCall};
use crate::ui::cells::layout::{Context, Layout, LineRun};
use crate::ui::cells::{indent, is_groupable, kind_word, title};
use crate::ui::session_view::SessionView;
use crate::ui::text::copy_hint::Mark;
use crate::ui::text::link;
use crate::ui::text::width;
use crate::ui::theme::Role;

/// Groups end at multiples of this number of items, which limits the search for their start.
pub(super) const GROUP_MAX: usize = 32;

/// The first item of the group; often the item itself.
pub(super) fn leader(view: &SessionView, session: &Session, items: &[Item], index: usize) -> usize {
    let mut at = index;
    while !at.is_multiple_of(GROUP_MAX) && joins(view, session, items, at) {
        at -= 1;
    }
    at
}

/// The items in the group of its first item; often only that.
pub(super) fn members<'i>(
    view: &SessionView,
    session: &Session,
    items: &'i [Item],
    index: usize,
) -> &'i [Item] {
    let mut end = index + 1;
    while !end.is_multiple_of(GROUP_MAX) && joins(view, session, items, end) {
        end += 1;
    }
    items.get(index..end).unwrap_or_default()
}

fn joins(view: &SessionView, session: &Session, items: &[Item], index: usize) -> bool {
    let tool = |index: usize| -> Option<(&Item, &ToolCall)> {
        let item = items.get(index)?;
        match &item.body {
            ItemBody::Tool(tool) if is_groupable(view, session, item, tool) => Some((item, tool)),
            _ => None,
        }
    };
    let Some(before) = index.checked_sub(1).and_then(tool) else { return false };
    tool(index).is_some_and(|(item, call)| {
        call.kind == before.1.kind && item.turn == before.0.turn && call.parent == before.1.parent
    })
}

pub(super) fn lay_out(layout: &mut Layout, members: &[Item], context: &Context<'_>) {
    *layout = Layout::default();
    let render = context.render;
    let calls = || {
        members.iter().filter_map(|item| match &item.body {
            ItemBody::Tool(tool) => Some(tool.as_ref()),
            _ => None,
        })
    };
    let (Some(first), Some(item)) = (calls().next(), members.first()) else { return };
    layout.indent = indent(context.session, item, first);
    let cols = usize::from(context.cols).saturating_sub(10 + usize::from(layout.indent));
    let mut text = String::new();
    let mut seen: Vec<String> = Vec::new();
    let count = members.len();
    for (index, tool) in calls().enumerate() {
        // Reserves space for "and 12 more", except for the last one.
        let tail = if index + 1 < count { 12 } else { 0 };
        let comma = if index > 0 { 2 } else { 0 };
        let room = cols.saturating_sub(if index == 0 { tail } else { 0 });
        let title = title(tool, render, room.max(8));
        if seen.contains(&title) {
            continue;
        }
        if index > 0 && width(&text) + comma + width(&title) + tail > cols {
            let _ = write!(text, " and {} more", count - index);
            break;
        }
        text.push_str(if index > 0 { ", " } else { "" });
        text.push_str(&title);
        seen.push(title);
    }
    let style = |role: Role| render.theme.style(role);
    let kind = kind_word(first.kind);
    let titles = Span::styled(crate::ui::text::truncate(&text, cols), style(Role::ToolTitle));
    let mut line = Line::from(vec![
        Mark::APART.span(format!("{} ", render.glyphs.check), style(Role::Success)),
        Span::styled(format!("{kind:<8}"), style(Role::ToolKind)),
    ]);
    line.spans.extend(link::linkify(vec![titles], render.folder));
    layout.pieces.push(LineRun::ready(vec![line], 0));
}
