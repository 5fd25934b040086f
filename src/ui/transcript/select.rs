//! Mouse selection of text: by character, word or line.
//!
//! `ui::input` handles keys and buttons, and `host::clipboard` copies. A position is a row of a piece,
//! not of the screen, so that the selection follows its text when that scrolls or grows. The marks of the
//! layout (`text::copy_hint`) determine which cells are text, and which rows are continued. A change of the
//! width clears the selection.

use std::ops::Range;
use std::time::{Duration, Instant};

use ratatui::layout::{Position, Rect};

use crate::core::Session;
use crate::model::{Gap, ItemId};
use crate::ui::canvas::Canvas;
use crate::ui::render_context::RenderContext;
use crate::ui::session_view::SessionView;
use crate::ui::text::Line;
use crate::ui::text::copy_hint::{self, Glyph, Join, Lines};
use crate::ui::theme::Role;

use super::list::List;
use super::{Anchor, RowPosition, ScrollRequest, TranscriptView};

/// Maximum interval of a double click.
const CLICK_TIME: Duration = Duration::from_millis(400);

/// Interval of automatic scrolling while the mouse is held beyond the edge.
pub const EDGE_STEP: Duration = Duration::from_millis(40);

/// Number of items read before the cache is trimmed.
const READ_ITEMS: usize = 64;

/// A cell of the transcript: a row of a piece without its gap, and its column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Spot {
    item: usize,
    piece: usize,
    row: usize,
    col: usize,
}

#[derive(Debug, Clone, Copy)]
struct Touched {
    id: ItemId,
    spot: Spot,
    /// Whether it is the blank row before the spot.
    is_gap: bool,
}

/// A row of the screen in the last frame.
#[derive(Debug, Clone, Copy)]
pub(super) struct SeenRow {
    pub id: ItemId,
    pub item: usize,
    pub piece: usize,
    /// The row of the piece; `None` for blank space before it.
    pub row: Option<usize>,
    /// The column of its start on the screen.
    pub x: u16,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    Cell,
    Word,
    Line,
}

/// A selection: from a cell up to another, exclusively.
#[derive(Debug, Clone, Copy)]
struct Selected {
    from: Spot,
    to: Spot,
    /// The range at its start: a cell, word or line.
    origin: (Spot, Spot),
    is_second: bool,
}

/// The left button is held in the transcript.
#[derive(Debug, Clone, Copy)]
struct Held {
    at: Position,
    position: Touched,
    unit: Unit,
    head: Option<ItemId>,
    gap: Option<(ItemId, Gap)>,
    /// Whether the end was followed before.
    followed: bool,
}

/// The mouse is held above or below the text.
#[derive(Debug, Clone, Copy)]
struct Edge {
    at: Position,
    last: Instant,
}

/// The selection of a transcript, and the mouse button.
#[derive(Debug, Default)]
pub(super) struct Select {
    selected: Option<Selected>,
    held: Option<Held>,
    edge: Option<Edge>,
    /// The previous click: position, time, and its number in a series.
    last_click: Option<(Position, Instant, u8)>,
    /// Rows of the last frame, from the top of the area.
    pub seen: Vec<SeenRow>,
    pub area: Rect,
}

/// The result of releasing the button.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Released {
    /// A click on plain text.
    Text,
    Nothing,
    Selected,
    Click(ItemId),
    Gap(ItemId, Gap),
}

impl Select {
    pub fn has_any(&self) -> bool {
        self.selected.is_some()
    }
}

impl TranscriptView {
    /// Handles a press of the left button. A second press at the same position selects the word, a third one
    /// the line.
    pub fn press(&mut self, at: Position, now: Instant) {
        self.clear_selection();
        let count = match self.select.last_click {
            Some((position, when, count))
                if position == at && now.saturating_duration_since(when) <= CLICK_TIME =>
            {
                count % 3 + 1
            }
            _ => 1,
        };
        self.select.last_click = Some((at, now, count));
        let Some(position) = self.touched(at) else { return };
        let unit = match count {
            2 => Unit::Word,
            3 => Unit::Line,
            _ => Unit::Cell,
        };
        let head = self.item_at(at.y.saturating_sub(self.select.area.y));
        let head = head.or_else(|| self.more_of(position)).filter(|_| count == 1);
        let spot = position.spot;
        let gap =
            if count == 1 && !position.is_gap { self.gap_at(spot.item, spot.piece, spot.row) } else { None };
        let gap = gap.map(|gap| (position.id, gap));
        self.select.held = Some(Held { at, position, unit, head, gap, followed: self.is_following() });
        if unit != Unit::Cell {
            self.extend(position);
        }
    }

    /// Handles a drag. Beyond the edge, the text scrolls, see [`Self::is_at_edge`].
    pub fn drag(&mut self, at: Position, now: Instant) {
        let Some(held) = self.select.held else { return };
        if at == held.at && self.select.selected.is_none() {
            return;
        }
        let area = self.select.area;
        let is_beyond = at.y < area.y || at.y >= area.bottom();
        self.select.edge = match self.select.edge {
            Some(edge) if is_beyond => Some(Edge { at, ..edge }),
            None if is_beyond => Some(Edge { at, last: now }),
            _ => None,
        };
        if let Some(position) = self.touched(at) {
            self.extend(position);
        }
    }

    /// Handles a release of the left button.
    pub fn release(&mut self) -> Released {
        self.select.edge = None;
        let Some(held) = self.select.held.take() else { return Released::Nothing };
        if held.followed && self.scroll_requests.is_empty() {
            self.anchor = Anchor::Follow;
        }
        // A selection between two items is empty.
        let selected = self.select.selected.take_if(|selected| selected.from < selected.to);
        self.select.selected = selected;
        match (selected, held.head, held.gap) {
            (Some(_), ..) => Released::Selected,
            (None, Some(id), _) => Released::Click(id),
            (None, None, Some((id, gap))) => Released::Gap(id, gap),
            (None, None, None) => Released::Text,
        }
    }

    /// The item of a row that shows a "more" hint.
    fn more_of(&self, Touched { id, spot, is_gap }: Touched) -> Option<ItemId> {
        let layout = &self.cells.get(&spot.item).filter(|_| !is_gap)?.layout;
        (layout.is_gap(spot.piece, spot.row) && layout.gap_at(spot.piece, spot.row).is_none()).then_some(id)
    }

    fn gap_at(&self, item: usize, piece: usize, row: usize) -> Option<Gap> {
        self.cells.get(&item)?.layout.gap_at(piece, row)
    }

    /// The first visible gap in the last frame, or that of the selected item if there is one.
    pub fn gap_on_screen(&self, marked: Option<ItemId>) -> Option<(ItemId, Gap)> {
        let is_meant = |seen: &&SeenRow| marked.is_none_or(|marked| marked == seen.id);
        let mut rows = self.select.seen.iter().filter(is_meant);
        rows.find_map(|seen| Some((seen.id, self.gap_at(seen.item, seen.piece, seen.row?)?)))
    }

    pub fn has_selection(&self) -> bool {
        self.select.selected.is_some()
    }

    /// Clears the selection. Returns whether there was one.
    pub fn clear_selection(&mut self) -> bool {
        (self.select.held, self.select.edge) = (None, None);
        self.select.selected.take().is_some()
    }

    /// Whether the mouse is held beyond the edge, so that a frame is needed every [`EDGE_STEP`].
    pub fn is_at_edge(&self) -> bool {
        self.select.edge.is_some()
    }

    /// Called before a frame: stops following the end during a drag, and scrolls at the edge.
    pub(super) fn hold(&mut self, now: Instant) {
        let Some(held) = &mut self.select.held else { return };
        if self.anchor == Anchor::Follow {
            self.anchor = Anchor::At(self.last_top);
        }
        let area = self.select.area;
        if let Some(edge) = &mut self.select.edge
            && now.saturating_duration_since(edge.last) >= EDGE_STEP
        {
            edge.last = now;
            held.followed = false;
            // The distance from the edge determines the speed.
            let lines = if edge.at.y < area.y {
                -i32::from(area.y - edge.at.y)
            } else {
                i32::from(edge.at.y.saturating_sub(area.bottom())) + 1
            };
            self.scroll_requests.push(ScrollRequest::Lines(lines));
        }
    }

    /// Called after a frame's rows are known: extends the selection to the mouse.
    pub(super) fn follow_edge(&mut self, top: RowPosition) {
        if let Some(edge) = self.select.edge {
            if let Some(position) = self.touched(edge.at) {
                self.extend(position);
            }
            // At the start or the end, there is nothing left to scroll.
            let is_up = edge.at.y < self.select.area.y;
            if (is_up && top == RowPosition::default()) || (!is_up && self.anchor == Anchor::Follow) {
                self.select.edge = None;
            }
        }
    }

    /// The position at a screen position, or in the closest row.
    fn touched(&self, at: Position) -> Option<Touched> {
        let area = self.select.area;
        let y = usize::from(at.y.clamp(area.y, area.bottom().saturating_sub(1)) - area.y);
        let (seen, is_beyond) = match self.select.seen.get(y) {
            Some(seen) => (seen, at.y >= area.bottom()),
            None => (self.select.seen.last()?, true),
        };
        let col = match seen.row {
            None => 0,
            Some(_) if is_beyond => usize::MAX - 1,
            Some(_) if at.y < area.y => 0,
            Some(_) => usize::from(at.x.saturating_sub(seen.x)),
        };
        let spot = Spot { item: seen.item, piece: seen.piece, row: seen.row.unwrap_or(0), col };
        Some(Touched { id: seen.id, spot, is_gap: seen.row.is_none() })
    }

    fn extend(&mut self, to: Touched) {
        let Some(held) = self.select.held else { return };
        let begun = self.select.selected.map(|selected| (selected.origin, selected.is_second));
        let (origin, is_second) = begun.unwrap_or_else(|| {
            let spot = held.position.spot;
            let line = self.rows(spot).get(spot.row);
            let is_second = line.is_some_and(|line| copy_hint::is_second(line, spot.col));
            (self.unit(held.position, held.unit, is_second), is_second)
        });
        let (from, end) = self.unit(to, held.unit, is_second);
        self.select.selected =
            Some(Selected { from: origin.0.min(from), to: origin.1.max(end), origin, is_second });
    }

    /// The drawn rows of a spot's piece; empty if they are not cached.
    fn rows(&self, spot: Spot) -> &[Line<'static>] {
        let piece = self.cells.get(&spot.item).and_then(|cell| cell.layout.pieces.get(spot.piece));
        piece.and_then(|piece| piece.lines.as_deref()).unwrap_or_default()
    }

    /// The cell, word or line around a spot: its first cell, and the one after its last.
    fn unit(&self, Touched { spot, is_gap, .. }: Touched, unit: Unit, is_second: bool) -> (Spot, Spot) {
        let rows = self.rows(spot);
        match unit {
            // Blank space between items has no extent.
            _ if is_gap => (spot, spot),
            Unit::Cell => (spot, Spot { col: spot.col.saturating_add(1), ..spot }),
            Unit::Word => word_around(rows, spot, is_second),
            Unit::Line => {
                let goes_on = |row: usize| {
                    let join = rows.get(row).map(|line| copy_hint::join(line, is_second));
                    matches!(join, Some(Join::Joined | Join::Spaced))
                };
                let (mut first, mut last) = (spot.row, spot.row);
                while first > 0 && goes_on(first) {
                    first -= 1;
                }
                while goes_on(last + 1) {
                    last += 1;
                }
                (Spot { row: first, col: 0, ..spot }, Spot { row: last, col: usize::MAX, ..spot })
            }
        }
    }
}

fn word_around(rows: &[Line<'static>], spot: Spot, is_second: bool) -> (Spot, Spot) {
    let glyphs_of = |row: usize| -> Vec<Glyph<'_>> {
        rows.get(row).map(|line| copy_hint::glyphs(line, is_second).collect()).unwrap_or_default()
    };
    let is_joined =
        |row: usize| rows.get(row).is_some_and(|line| copy_hint::join(line, is_second) == Join::Joined);
    let cell = (spot, Spot { col: spot.col.saturating_add(1), ..spot });
    let glyphs = glyphs_of(spot.row);
    let Some(at) = glyphs.iter().position(|glyph| (glyph.col..glyph.col + glyph.cols).contains(&spot.col))
    else {
        return cell;
    };
    let class = glyphs.get(at).map_or(Class::Blank, |glyph| class(glyph.text));
    let is_alike = |glyph: &&Glyph<'_>| self::class(glyph.text) == class;

    let (mut from, mut row) = (cell.0, spot.row);
    let mut before = glyphs.get(..=at).unwrap_or_default().to_vec();
    loop {
        let run = before.iter().rev().take_while(is_alike).count();
        if let Some(first) = before.len().checked_sub(run).and_then(|first| before.get(first)) {
            from = Spot { row, col: first.col, ..spot };
        }
        if run < before.len() || run == 0 || row == 0 || !is_joined(row) {
            break;
        }
        row -= 1;
        before = glyphs_of(row);
    }
    let (mut to, mut row) = (cell.1, spot.row);
    let mut after = glyphs.get(at..).unwrap_or_default().to_vec();
    loop {
        let run = after.iter().take_while(is_alike).count();
        if let Some(last) = run.checked_sub(1).and_then(|last| after.get(last)) {
            to = Spot { row, col: last.col + last.cols, ..spot };
        }
        if run < after.len() || run == 0 || !is_joined(row + 1) {
            break;
        }
        row += 1;
        after = glyphs_of(row);
    }
    (from, to)
}

/// Classes of characters that a double click selects together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    Blank,
    /// Letters, digits, and the characters of paths and URLs.
    Word,
    Other,
}

fn class(text: &str) -> Class {
    match text.chars().next() {
        None => Class::Blank,
        Some(c) if c.is_whitespace() => Class::Blank,
        Some(c) if c.is_alphanumeric() || "_-./~@%+#?&=:\\".contains(c) => Class::Word,
        Some(_) => Class::Other,
    }
}

impl Selected {
    /// The selected columns of a row.
    fn cols_in(&self, item: usize, piece: usize, row: usize) -> Option<Range<usize>> {
        let at = (item, piece, row);
        let (from, to) =
            ((self.from.item, self.from.piece, self.from.row), (self.to.item, self.to.piece, self.to.row));
        if at < from || at > to {
            return None;
        }
        let start = if at == from { self.from.col } else { 0 };
        let end = if at == to { self.to.col } else { usize::MAX };
        Some(start..end)
    }
}

/// Highlights the selection in the drawn rows.
pub(super) fn paint(view: &TranscriptView, render: &RenderContext<'_>, buf: &mut Canvas) {
    let Some(selected) = view.select.selected else { return };
    let style = render.theme.style(Role::Selection);
    let area = view.select.area;
    for (y, seen) in (area.y..area.bottom()).zip(&view.select.seen) {
        let Some(row) = seen.row else { continue };
        let Some(cols) = selected.cols_in(seen.item, seen.piece, row) else { continue };
        let spot = Spot { item: seen.item, piece: seen.piece, row, col: 0 };
        let Some(line) = view.rows(spot).get(row) else { continue };
        for run in copy_hint::text_runs(line, selected.is_second && copy_hint::has_columns(line), &cols) {
            let clamp =
                |col: usize| seen.x.saturating_add(u16::try_from(col).unwrap_or(u16::MAX)).min(area.right());
            let (x, end) = (clamp(run.start), clamp(run.end));
            buf.set_style(Rect { x, y, width: end - x, height: 1 }, style);
        }
    }
}

/// The selected text, with wraps removed; `None` without a selection. As expensive as drawing all of it.
pub fn selected_text(
    session: &Session,
    session_view: &SessionView,
    view: &mut TranscriptView,
    render: &RenderContext<'_>,
) -> Option<String> {
    let selected = view.select.selected?;
    let cols = view.render.as_ref()?.cols;
    let render = &RenderContext { sideways: Some(view.sideways), ..*render };
    let mut text = Lines::default();
    let end = selected.to.item.min(session.transcript.items().len().saturating_sub(1));
    for (count, item) in (selected.from.item..=end).enumerate() {
        if count % READ_ITEMS == READ_ITEMS - 1 {
            view.frame += 1;
            view.trim();
        }
        let mut list = List::new(session, session_view, view, render, cols);
        for piece in 0..list.pieces(item) {
            let position = (item, piece);
            if position < (selected.from.item, selected.from.piece)
                || position > (selected.to.item, selected.to.piece)
            {
                continue;
            }
            let gap = if piece == 0 { list.gap_before(item) } else { 0 };
            list.draw_piece(item, piece);
            let drawn = list.view.cells.get(&item).and_then(|cell| cell.layout.pieces.get(piece));
            let Some(drawn) = drawn else { continue };
            text.add_blank(gap + usize::from(drawn.has_gap));
            for (row, line) in drawn.lines.iter().flatten().enumerate() {
                if let Some(cols) = selected.cols_in(item, piece, row) {
                    text.add(line, selected.is_second, &cols);
                }
            }
        }
    }
    Some(text.into_text().trim_end_matches('\n').to_owned())
}
