//! Rows into cells of the screen: marks, text, the scroll bar.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::app::{Item, ItemBody, MessagePart};
use crate::model::Role as Speaker;
use crate::ui::text::{put_line, put_text};
use crate::ui::theme::Role;

use super::find::{self, Frame};
use super::list::List;
use super::select::SeenRow;
use super::{LEFT_COLS, Place, group, heights};

/// Draws the rows from `top` on.
pub(super) fn draw(list: &mut List<'_>, top: Place, area: Rect, buf: &mut Buffer) {
    let selected = list.session.selected.and_then(|id| usize::try_from(id.0).ok());
    let selected = selected.map(|index| group::leader(&list.session.folds, list.items, index));
    let mut y = area.y;
    let mut at = top;
    while y < area.bottom() && at.item < list.items.len() {
        if at.piece >= list.pieces(at.item) {
            at = Place { item: list.after(at.item), piece: 0, row: 0 };
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

/// The bar works by rows: those that were measured, and guesses for the others.
#[allow(clippy::cast_precision_loss, reason = "a scroll bar has few rows")]
fn draw_scroll_bar(list: &mut List<'_>, top: Place, bottom: Place, y: u16, area: Rect, buf: &mut Buffer) {
    let count = list.items.len();
    let is_whole = top == Place::default() && bottom.item >= count && y <= area.bottom();
    if is_whole || count == 0 {
        return;
    }
    list.measure(top.item, bottom.item.min(count - 1));
    let from = rows_before(list, top);
    let to = from + usize::from(area.height);
    // What is on the screen is there, whatever was guessed.
    let total = list.view.heights.total().max(to).max(1);
    let height = f64::from(area.height);
    let thumb = (height * height / total as f64).clamp(1.0, height);
    let room = height - thumb;
    let scrolled = total - usize::from(area.height).min(total);
    let part = if list.view.is_following() { 1.0 } else { (from as f64 / scrolled.max(1) as f64).min(1.0) };
    let first = row((part * room).round(), area.height.saturating_sub(1));
    // Only at the very ends it seems to be there.
    let first = if top != Place::default() && first == 0 && room >= 1.0 { 1 } else { first };
    let is_at_end = list.view.is_following() || bottom.item >= count;
    let thumb = row(thumb.round(), area.height).max(1);
    let most = area.height.saturating_sub(thumb + u16::from(!is_at_end));
    let first = first.min(most.max(u16::from(top != Place::default() && room >= 1.0)));
    let behind = first + thumb;
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

/// Rows above a place.
#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a fraction of a count of rows"
)]
fn rows_before(list: &List<'_>, place: Place) -> usize {
    let above = list.view.heights.before(place.item);
    let Some(cell) = list.view.cells.get(&place.item) else { return above };
    let gap = list.gap_before(place.item);
    let at = (place.piece, place.row);
    let inside = if let Some((rows, _)) = heights::counted(&cell.layout, at, gap) {
        rows
    } else {
        let bytes = list.items.get(place.item).map_or(0, text_bytes);
        (heights::fraction(&cell.layout, at, bytes) * list.view.heights.of(place.item) as f64) as usize
    };
    above + inside
}

/// Bytes of the texts of a message.
fn text_bytes(item: &Item) -> usize {
    let ItemBody::Message(message) = &item.body else { return 0 };
    let texts = message.parts.iter().map(|part| match part {
        MessagePart::Text(text) => text.len(),
        MessagePart::Block(_) => 0,
    });
    texts.sum()
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to the rows of a screen")]
fn row(value: f64, most: u16) -> u16 {
    value.clamp(0.0, f64::from(most)) as u16
}
