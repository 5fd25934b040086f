//! Paints rows to the screen's cells: symbols, text, the scroll bar.

use std::ops::Range;

use ratatui::layout::Rect;
use ratatui::style::Style;

use crate::core::{Item, ItemBody, MessagePart};
use crate::model::Role as Speaker;
use crate::ui::canvas::Canvas;
use crate::ui::render_context::Marks;
use crate::ui::text::Line;
use crate::ui::text::put_text;
use crate::ui::theme::Role;

use super::find::{self, Frame};
use super::list::List;
use super::select::SeenRow;
use super::{FULL_COLS, LEFT_COLS, RowPosition, group, heights};

struct Shown {
    at: RowPosition,
    /// Its first row on the screen, and its number of rows.
    y: u16,
    rows: u16,
    /// Number of blank rows before its first line, and how many of them are outside of the piece.
    blank: usize,
    outer_gap: usize,
    x: u16,
    cols: u16,
    is_user: bool,
    is_selected: bool,
}

impl Shown {
    fn row(&self, y: u16) -> usize {
        self.at.row + usize::from(y - self.y)
    }

    fn mark(&self, row: usize) -> Mark {
        match () {
            () if self.is_selected && self.at.piece == 0 && row == self.blank => Mark::Selected,
            () if self.is_prompt(row) => Mark::User,
            () => Mark::None,
        }
    }

    /// Whether a row has the background of the user's messages.
    fn is_prompt(&self, row: usize) -> bool {
        self.is_user && row >= self.outer_gap
    }

    fn line<'a>(&self, list: &'a List<'_>, row: usize) -> Option<&'a Line<'static>> {
        let piece = list.view.cells.get(&self.at.item)?.layout.pieces.get(self.at.piece)?;
        piece.lines.as_deref()?.get(row.checked_sub(self.blank)?)
    }

    fn frame(&self, area: Rect) -> Frame {
        let before = u16::try_from(self.blank.saturating_sub(self.at.row)).unwrap_or(u16::MAX);
        Frame {
            item: self.at.item,
            piece: self.at.piece,
            first: self.at.row.saturating_sub(self.blank),
            y: self.y.saturating_add(before),
            x: self.x,
            cols: self.cols,
            rows: area.bottom().saturating_sub(self.y.saturating_add(before)),
        }
    }
}

#[derive(Debug, Clone, Copy, Hash)]
enum Mark {
    None,
    Selected,
    User,
}

/// Draws the rows from `top` on that are not on the screen already.
pub(super) fn draw(list: &mut List<'_>, top: RowPosition, area: Rect, buf: &mut Canvas) {
    let selected = list.session_view.selected.and_then(|id| list.session.transcript.index_of(id));
    let selected = selected.map(|index| group::leader(list.session_view, list.session, list.items, index));
    let mut all = Vec::new();
    let mut y = area.y;
    let mut at = top;
    while y < area.bottom() && at.item < list.items.len() {
        if at.piece >= list.pieces(at.item) {
            at = RowPosition { item: list.after(at.item), piece: 0, row: 0 };
            continue;
        }
        list.draw_piece(at.item, at.piece);
        if let Some(shown) = place_piece(list, at, selected, y, area) {
            y += shown.rows;
            all.push(shown);
        }
        at = RowPosition { piece: at.piece + 1, row: 0, ..at };
    }
    let thumb = place_thumb(list, top, at, y, area);
    let bar = |y: u16| thumb.as_ref().map(|thumb| thumb.contains(&(y - area.y)));
    // Matches and selections are painted over the rows.
    if list.session_view.search.is_some() || list.view.select.has_any() {
        buf.refuse();
    }
    let mut keys = Vec::with_capacity(area.height.into());
    for shown in &all {
        for y in shown.y..shown.y + shown.rows {
            let row = shown.row(y);
            let line = shown.line(list, row).map(|line| (line.style, &line.spans));
            keys.push(buf.key((shown.x, shown.cols, shown.mark(row), shown.is_prompt(row), line, bar(y))));
        }
    }
    keys.extend((y..area.bottom()).map(|y| buf.key(bar(y))));
    buf.set_keys(keys);
    let render = list.render;
    let prompt_bg = render.theme.style(Role::User).bg;
    for shown in &all {
        for y in shown.y..shown.y + shown.rows {
            if buf.stays(y) {
                continue;
            }
            let row = shown.row(y);
            let (mark, style) = match shown.mark(row) {
                Mark::None => ("", Style::new()),
                Mark::Selected => (render.glyphs.arrow, render.theme.style(Role::Accent)),
                Mark::User => (render.glyphs.bar, render.theme.style(Role::UserBar)),
            };
            if let Some(bg) = prompt_bg.filter(|_| shown.is_prompt(row)) {
                let row = Rect { y, height: 1, width: (area.width - 1).min(FULL_COLS - 1), ..area };
                buf.set_style(row, Style::new().bg(bg));
            }
            put_text(buf, area.x + 1, y, mark, 1, style);
            if let Some(line) = shown.line(list, row) {
                buf.put_line(shown.x, y, line, shown.cols);
            }
        }
        find::mark(list, &shown.frame(area), buf);
    }
    for y in area.y..area.bottom() {
        let (role, text) = match bar(y).filter(|_| !buf.stays(y)) {
            Some(true) => (Role::ScrollThumb, Marks::beside(&render.glyphs).thumb),
            Some(false) => (Role::ScrollTrack, render.glyphs.pipe),
            None => continue,
        };
        put_text(buf, area.right() - 1, y, text, 1, render.theme.style(role));
    }
}

/// Determines the position of a piece on the screen, and records its rows.
fn place_piece(
    list: &mut List<'_>,
    at: RowPosition,
    selected: Option<usize>,
    y: u16,
    area: Rect,
) -> Option<Shown> {
    let outer_gap = if at.piece == 0 { list.gap_before(at.item) } else { 0 };
    let item = list.items.get(at.item)?;
    let cell = list.view.cells.get(&at.item)?;
    let piece = cell.layout.pieces.get(at.piece)?;
    let blank = outer_gap + usize::from(piece.has_gap);
    let all_rows = blank + piece.lines.as_deref().unwrap_or_default().len();
    let rows = u16::try_from(all_rows.saturating_sub(at.row)).unwrap_or(u16::MAX).min(area.bottom() - y);
    let x = area.x + LEFT_COLS + cell.layout.indent + piece.indent;
    let shown = Shown {
        at,
        y,
        rows,
        blank,
        outer_gap,
        x,
        cols: area.right().saturating_sub(1).saturating_sub(x),
        is_user: matches!(&item.body, ItemBody::Message(message) if message.role == Speaker::User),
        is_selected: selected == Some(at.item),
    };
    let (first, _) = list.view.visible.unwrap_or(((at.item, item.id), (at.item, item.id)));
    list.view.visible = Some((first, (at.item, item.id)));
    for y in y..y + rows {
        let row = shown.row(y);
        if at.piece == 0 && row == blank {
            list.view.heads.push((y - area.y, item.id));
        }
        let row = row.checked_sub(blank);
        list.view.select.seen.push(SeenRow { id: item.id, item: at.item, piece: at.piece, row, x });
    }
    Some(shown)
}

/// The rows of the scroll bar's thumb, from the top of the area; `None` if everything is visible. Uses
/// measured rows, and estimates for the others.
#[allow(clippy::cast_precision_loss, reason = "a scroll bar has few rows")]
fn place_thumb(
    list: &mut List<'_>,
    top: RowPosition,
    bottom: RowPosition,
    y: u16,
    area: Rect,
) -> Option<Range<u16>> {
    let count = list.items.len();
    let is_whole = top == RowPosition::default() && bottom.item >= count && y <= area.bottom();
    if is_whole || count == 0 {
        return None;
    }
    list.measure(top.item, bottom.item.min(count - 1));
    let from = rows_before(list, top);
    let to = from + usize::from(area.height);
    // The visible rows count, even if the estimate is lower.
    let total = list.view.heights.total().max(to).max(1);
    let height = f64::from(area.height);
    let thumb = (height * height / total as f64).clamp(1.0, height);
    let room = height - thumb;
    let scrolled = total - usize::from(area.height).min(total);
    let part = if list.view.is_following() { 1.0 } else { (from as f64 / scrolled.max(1) as f64).min(1.0) };
    let first = row((part * room).round(), area.height.saturating_sub(1));
    // The thumb is at an end only if the view is.
    let first = if top != RowPosition::default() && first == 0 && room >= 1.0 { 1 } else { first };
    let is_at_end = list.view.is_following() || bottom.item >= count;
    let thumb = row(thumb.round(), area.height).max(1);
    let max = area.height.saturating_sub(thumb + u16::from(!is_at_end));
    let first = first.min(max.max(u16::from(top != RowPosition::default() && room >= 1.0)));
    Some(first..first + thumb)
}

/// Number of rows above a position.
#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a fraction of a count of rows"
)]
fn rows_before(list: &List<'_>, position: RowPosition) -> usize {
    let above = list.view.heights.before(position.item);
    let Some(cell) = list.view.cells.get(&position.item) else { return above };
    let gap = list.gap_before(position.item);
    let at = (position.piece, position.row);
    let inside = if let Some((rows, _)) = heights::counted(&cell.layout, at, gap) {
        rows
    } else {
        let bytes = list.items.get(position.item).map_or(0, text_bytes);
        (heights::fraction(&cell.layout, at, bytes) * list.view.heights.of(position.item) as f64) as usize
    };
    above + inside
}

fn text_bytes(item: &Item) -> usize {
    let ItemBody::Message(message) = &item.body else { return 0 };
    let texts = message.parts.iter().map(|part| match part {
        MessagePart::Text(text) => text.len(),
        MessagePart::Block(_) => 0,
    });
    texts.sum()
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to the rows of a screen")]
fn row(value: f64, max: u16) -> u16 {
    value.clamp(0.0, f64::from(max)) as u16
}
