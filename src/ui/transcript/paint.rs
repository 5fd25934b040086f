//! Rows into cells of the screen: marks, text, the scroll bar.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::app::ItemBody;
use crate::model::Role as Speaker;
use crate::ui::text::{put_line, put_text};
use crate::ui::theme::Role;

use super::find::{self, Frame};
use super::list::List;
use super::select::SeenRow;
use super::{LEFT_COLS, Place, group};

/// Draws the rows from `top` on.
pub(super) fn draw(list: &mut List<'_>, top: Place, area: Rect, buf: &mut Buffer) {
    let selected = list.session.selected.and_then(|id| usize::try_from(id.0).ok());
    let selected = selected.map(|index| group::leader(&list.session.folds, list.items, index));
    let mut y = area.y;
    let mut at = top;
    while y < area.bottom() && at.item < list.items.len() {
        if at.piece >= list.pieces(at.item) {
            at = Place { item: at.item + 1, piece: 0, row: 0 };
            continue;
        }
        list.draw_piece(at.item, at.piece);
        y = draw_piece(list, at, selected, y, area, buf);
        at = Place { piece: at.piece + 1, row: 0, ..at };
    }
    draw_scroll_bar(list, top, at, y, area, buf);
}

/// Draws one piece from a row on; returns the next free row of the screen.
fn draw_piece(
    list: &mut List<'_>,
    at: Place,
    selected: Option<usize>,
    mut y: u16,
    area: Rect,
    buf: &mut Buffer,
) -> u16 {
    let outer_gap = if at.piece == 0 { list.gap_before(at.item) } else { 0 };
    let look = list.look;
    let Some(item) = list.items.get(at.item) else { return y };
    let Some(cell) = list.view.cells.get(&at.item) else { return y };
    let Some(piece) = cell.layout.pieces.get(at.piece) else { return y };
    let is_user = matches!(&item.body, ItemBody::Message(message) if message.role == Speaker::User);
    let blank = outer_gap + usize::from(piece.has_gap);
    let lines = piece.lines.as_deref().unwrap_or_default();
    let x = area.x + LEFT_COLS + cell.layout.indent + piece.indent;
    let room = (area.right().saturating_sub(1)).saturating_sub(x);
    let first = list.view.visible.map_or(item.id, |(first, _)| first);
    list.view.visible = Some((first, item.id));
    let frame = Frame {
        item: at.item,
        piece: at.piece,
        first: at.row.saturating_sub(blank),
        y: y + u16::try_from(blank.saturating_sub(at.row)).unwrap_or(u16::MAX),
        x,
        cols: room,
        rows: area.bottom().saturating_sub(y + u16::try_from(blank.saturating_sub(at.row)).unwrap_or(0)),
    };
    for row in at.row..blank + lines.len() {
        if y >= area.bottom() {
            break;
        }
        let is_head = at.piece == 0 && row == blank;
        if is_head {
            list.view.heads.push((y - area.y, item.id));
        }
        if is_head && selected == Some(at.item) {
            buf.set_string(area.x + 1, y, look.glyphs.arrow, look.theme.style(Role::Accent));
        } else if is_user && row >= outer_gap {
            put_text(buf, area.x + 1, y, look.glyphs.bar, 1, look.theme.style(Role::UserBar));
        }
        let text_row = row.checked_sub(blank);
        list.view.select.seen.push(SeenRow { item: at.item, piece: at.piece, row: text_row, x });
        if let Some(line) = text_row.and_then(|row| lines.get(row)) {
            put_line(buf, x, y, line, room);
        }
        y += 1;
    }
    find::mark(list, &frame, buf);
    y
}

/// The bar works by items, with the fraction inside the first and the last one.
fn draw_scroll_bar(list: &List<'_>, top: Place, bottom: Place, y: u16, area: Rect, buf: &mut Buffer) {
    let count = list.items.len();
    let is_whole = top == Place::default() && bottom.item >= count && y <= area.bottom();
    if is_whole || count == 0 {
        return;
    }
    let from = position(list, top);
    let to = if list.view.is_following() { 1.0 } else { position(list, bottom) };
    let height = f64::from(area.height);
    let first = row(from * height, area.height.saturating_sub(1));
    let behind = row((to * height).ceil(), area.height).max(first + 1);
    let x = area.right() - 1;
    for offset in 0..area.height {
        let is_thumb = offset >= first && offset < behind;
        let (role, text) = if is_thumb {
            (Role::ScrollThumb, list.look.glyphs.bar)
        } else {
            (Role::ScrollTrack, list.look.glyphs.pipe)
        };
        put_text(buf, x, area.y + offset, text, 1, list.look.theme.style(role));
    }
}

/// Where a place is, from 0 to 1.
#[allow(clippy::cast_precision_loss, reason = "a scroll bar has few rows")]
fn position(list: &List<'_>, place: Place) -> f64 {
    let pieces = list.view.cells.get(&place.item).map_or(1, |cell| cell.layout.pieces.len().max(1));
    let height =
        list.view.cells.get(&place.item).and_then(|cell| cell.layout.pieces.get(place.piece)?.height);
    let inside = place.row as f64 / height.unwrap_or(1).max(1) as f64;
    let item = (place.piece as f64 + inside.min(1.0)) / pieces as f64;
    ((place.item as f64 + item.min(1.0)) / list.items.len().max(1) as f64).min(1.0)
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to the rows of a screen")]
fn row(value: f64, most: u16) -> u16 {
    value.clamp(0.0, f64::from(most)) as u16
}
