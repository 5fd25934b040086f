//! Moves over pieces from a position, laying out only those that are visited.

use crate::core::{Item, ItemBody, OpenRequestKind, Session};
use crate::model::{ItemId, Role as Speaker, ToolContent};
use crate::ui::cells::is_asked_first;
use crate::ui::cells::layout::{Context, Layout, LineRun};
use crate::ui::picture;
use crate::ui::render_context::RenderContext;
use crate::ui::session_view::SessionView;

use super::{Anchor, Cell, RowPosition, ScrollRequest, TranscriptView, find, group, heights};

/// The items as the view shows them.
pub(super) struct List<'a> {
    pub session: &'a Session,
    pub session_view: &'a SessionView,
    pub items: &'a [Item],
    pub view: &'a mut TranscriptView,
    pub render: &'a RenderContext<'a>,
    pub cols: u16,
}

impl<'a> List<'a> {
    pub fn new(
        session: &'a Session,
        session_view: &'a SessionView,
        view: &'a mut TranscriptView,
        render: &'a RenderContext<'a>,
        cols: u16,
    ) -> Self {
        Self { session, session_view, items: session.transcript.items(), view, render, cols }
    }

    /// Applies the scroll requests and returns the first row of the screen.
    pub fn place_top(&mut self) -> RowPosition {
        let height = self.view.height;
        let mut top = match self.view.anchor {
            Anchor::Follow => None,
            Anchor::At(position) => Some(self.clamp(position)),
        };
        for request in std::mem::take(&mut self.view.scroll_requests) {
            let from = top.unwrap_or_else(|| self.up(self.end(), height));
            let page = i32::try_from(height.saturating_sub(2).max(1)).unwrap_or(i32::MAX);
            top = match request {
                ScrollRequest::Lines(lines) => self.moved(from, lines),
                ScrollRequest::Pages(pages) => self.moved(from, pages.saturating_mul(page)),
                ScrollRequest::Sideways(_) => top,
                ScrollRequest::Top => Some(RowPosition::default()),
                ScrollRequest::Show(id) => self.shown(from, self.index_of(id)).or(top),
                ScrollRequest::ShowAtTop(id) => self.head_of(self.index_of(id)).or(top),
            };
        }
        if let Some(hit) = find::locate(self)
            && std::mem::take(&mut self.view.wants_hit)
        {
            let from = top.unwrap_or_else(|| self.up(self.end(), height));
            if !self.is_on_screen(from, hit) {
                top = Some(self.up(hit, height / 3));
            }
        }
        // If the rest does not fill the screen, the position is the end.
        if let Some(position) = top
            && self.rows_from(position, height + 1) > height
        {
            self.view.anchor = Anchor::At(position);
            return position;
        }
        self.view.anchor = Anchor::Follow;
        let end = self.end();
        self.up(end, height)
    }

    fn index_of(&self, id: ItemId) -> usize {
        self.session.transcript.index_of(id).unwrap_or(usize::MAX)
    }

    /// The position this number of lines away; `None` below the end.
    fn moved(&mut self, from: RowPosition, lines: i32) -> Option<RowPosition> {
        let count = usize::try_from(lines.unsigned_abs()).unwrap_or(usize::MAX);
        if lines < 0 {
            return Some(self.up(from, count));
        }
        let to = self.down(from, count);
        (to.item < self.items.len()).then_some(to)
    }

    /// The first row that shows an item; `None` if it is visible.
    fn shown(&mut self, top: RowPosition, item: usize) -> Option<RowPosition> {
        let head = self.head_of(item)?;
        if self.is_on_screen(top, head) {
            return None;
        }
        Some(self.up(head, (self.view.height / 4).min(4)))
    }

    fn head_of(&self, item: usize) -> Option<RowPosition> {
        if item >= self.items.len() {
            return None;
        }
        let item = group::leader(self.session_view, self.session, self.items, item);
        Some(RowPosition { item, piece: 0, row: self.gap_before(item) })
    }

    /// Whether a position is visible with this first row.
    fn is_on_screen(&mut self, top: RowPosition, position: RowPosition) -> bool {
        let key = |position: RowPosition| (position.item, position.piece, position.row);
        if key(position) < key(top) {
            return false;
        }
        let bottom = self.down(top, self.view.height.saturating_sub(1));
        key(position) <= key(bottom)
    }

    /// Number of blank rows before the first line of a piece.
    pub fn lines_before(&mut self, item: usize, piece: usize) -> usize {
        self.pieces(item);
        let outer = if piece == 0 { self.gap_before(item) } else { 0 };
        let cell = self.view.cells.get(&item);
        let inner = cell.and_then(|cell| cell.layout.pieces.get(piece)).is_some_and(|piece| piece.has_gap);
        outer + usize::from(inner)
    }

    fn end(&self) -> RowPosition {
        RowPosition { item: self.items.len(), piece: 0, row: 0 }
    }

    fn clamp(&mut self, position: RowPosition) -> RowPosition {
        if position.item >= self.items.len() {
            return self.end();
        }
        let pieces = self.pieces(position.item);
        if position.piece >= pieces {
            let last = pieces.saturating_sub(1);
            return RowPosition { item: position.item, piece: last, row: 0 };
        }
        let rows = self.rows(position.item, position.piece);
        RowPosition { row: position.row.min(rows.saturating_sub(1)), ..position }
    }

    /// Number of rows from a position on, counted up to `max`.
    fn rows_from(&mut self, from: RowPosition, max: usize) -> usize {
        let mut at = from;
        let mut rows = 0;
        while rows < max && at.item < self.items.len() {
            if at.piece < self.pieces(at.item) {
                rows += self.rows(at.item, at.piece).saturating_sub(at.row);
                at = RowPosition { piece: at.piece + 1, row: 0, ..at };
            } else {
                at = RowPosition { item: self.after(at.item), piece: 0, row: 0 };
            }
        }
        rows
    }

    pub fn up(&mut self, from: RowPosition, count: usize) -> RowPosition {
        let mut at = from;
        let mut left = count;
        loop {
            if at.row >= left {
                return RowPosition { row: at.row - left, ..at };
            }
            left -= at.row;
            if at.piece > 0 {
                at.piece -= 1;
            } else if let Some(before) = self.before(at.item) {
                at.item = before;
                let pieces = self.pieces(at.item);
                if pieces == 0 {
                    at.row = 0;
                    continue;
                }
                at.piece = pieces - 1;
            } else {
                return RowPosition::default();
            }
            at.row = self.rows(at.item, at.piece);
        }
    }

    fn down(&mut self, from: RowPosition, count: usize) -> RowPosition {
        let mut at = from;
        let mut left = count;
        while at.item < self.items.len() {
            if at.piece >= self.pieces(at.item) {
                at = RowPosition { item: self.after(at.item), piece: 0, row: 0 };
                continue;
            }
            let rows = self.rows(at.item, at.piece).saturating_sub(at.row);
            if left < rows {
                return RowPosition { row: at.row + left, ..at };
            }
            left -= rows;
            at = RowPosition { piece: at.piece + 1, row: 0, ..at };
        }
        at
    }

    /// Number of rows of a piece, including the blank line before the item for the first one.
    pub fn rows(&mut self, item: usize, piece: usize) -> usize {
        let gap = if piece == 0 { self.gap_before(item) } else { 0 };
        let is_cold = |piece: Option<&LineRun>| piece.is_none_or(|piece| piece.height.is_none());
        let rows =
            self.build(item, piece, is_cold, |layout, source, context| layout.height(piece, source, context));
        rows.map_or(0, |rows| rows + gap)
    }

    /// Draws the lines of a piece if they are missing.
    pub fn draw_piece(&mut self, item: usize, piece: usize) {
        let is_cold = |piece: Option<&LineRun>| piece.is_some_and(|piece| piece.lines.is_none());
        self.build(item, piece, is_cold, |layout, source, context| layout.draw(piece, source, context));
    }

    /// Builds something of a piece; one that is cold before stays in memory for some time. `None`: there is no such
    /// item.
    fn build<T>(
        &mut self,
        item: usize,
        piece: usize,
        is_cold: impl Fn(Option<&LineRun>) -> bool,
        build: impl FnOnce(&mut Layout, &Item, &mut Context<'_>) -> T,
    ) -> Option<T> {
        let (source, cell) = (self.items.get(item)?, self.view.cells.get_mut(&item)?);
        let is_cold = is_cold(cell.layout.pieces.get(piece));
        if is_cold {
            self.view.warm.push_back((item, piece));
        }
        let mut context = Context {
            session: self.session,
            view: self.session_view,
            render: self.render,
            cols: self.cols,
            screens: &mut self.view.screens,
        };
        let built = build(&mut cell.layout, source, &mut context);
        if is_cold {
            self.view.built += cell.layout.built(piece);
        }
        Some(built)
    }

    /// Number of pieces of an item; lays it out if its drawing is outdated.
    pub fn pieces(&mut self, index: usize) -> usize {
        let Some(item) = self.items.get(index) else { return 0 };
        if self.is_hidden(index) {
            return 0;
        }
        let frame = self.view.frame;
        let rev = self.rev(item);
        let render_revision = self.view.render_revision;
        if let Some(cell) = self.view.cells.get_mut(&index)
            && cell.last_used == frame
        {
            return cell.layout.pieces.len();
        }
        let stamp = self.stamp(index, item);
        let mut cell = self.view.cells.remove(&index).unwrap_or_else(|| Cell {
            layout: Layout::default(),
            rev,
            render_revision: 0,
            stamp,
            last_used: frame,
        });
        let is_good = cell.rev == rev
            && cell.render_revision == render_revision
            && cell.stamp == stamp
            && !cell.layout.waits;
        let mut context = Context {
            session: self.session,
            view: self.session_view,
            render: self.render,
            cols: self.cols,
            screens: &mut self.view.screens,
        };
        if !is_good {
            self.view.layouts += 1;
            let members = group::members(self.session_view, self.session, self.items, index);
            if members.len() > 1 {
                group::lay_out(&mut cell.layout, members, &context);
            } else {
                cell.layout.update(item, cell.render_revision == render_revision, &mut context);
            }
            self.view.built += cell.layout.ready_lines();
            (cell.rev, cell.render_revision, cell.stamp) = (rev, render_revision, stamp);
        } else if cell.layout.is_live {
            cell.layout.refresh_head(item, &mut context);
        }
        cell.last_used = frame;
        let pieces = cell.layout.pieces.len();
        self.view.cells.insert(index, cell);
        pieces
    }

    /// The revisions of an item and of what the user chose for it.
    fn rev(&self, item: &Item) -> (u32, u32) {
        (item.rev, self.session_view.item(item.id).rev)
    }

    pub fn after(&self, item: usize) -> usize {
        match &self.view.filter {
            Some(filter) => filter.after(item).unwrap_or(self.items.len()),
            None => item + 1,
        }
    }

    fn before(&self, item: usize) -> Option<usize> {
        match &self.view.filter {
            Some(filter) => filter.before(item),
            None => item.checked_sub(1),
        }
    }

    /// Updates the estimated heights without layout.
    pub fn follow_heights(&mut self) {
        let mut all = std::mem::take(&mut self.view.heights);
        let shows_thoughts = self.render.shows_thoughts;
        all.follow(self.items.len(), self.cols, |index| {
            let Some(item) = self.items.get(index).filter(|_| !self.is_hidden(index)) else { return (0, 0) };
            let (rows, bytes) = heights::guess(item, self.session_view, self.session, shows_thoughts);
            (rows + self.gap_before(index), bytes)
        });
        self.view.heights = all;
    }

    /// Records the heights of items that were laid out.
    pub fn measure(&mut self, first: usize, last: usize) {
        let mut item = first;
        while item <= last {
            let counted = self.view.cells.get(&item).map(|cell| {
                let gap = self.gap_before(item);
                heights::counted(&cell.layout, (0, 0), gap)
            });
            if let Some(Some((_, Some(rows)))) = counted {
                self.view.heights.measure(item, rows);
            }
            item = self.after(item);
        }
    }

    /// Whether an item has no rows: it is part of a group, empty, or filtered.
    fn is_hidden(&self, index: usize) -> bool {
        self.view.filter.as_ref().is_some_and(|filter| !filter.has(index))
            || group::leader(self.session_view, self.session, self.items, index) != index
            || self.items.get(index).is_some_and(|item| item.is_hidden() || is_blank(item))
    }

    /// A blank line separates items, except consecutive calls and thoughts.
    pub fn gap_before(&self, index: usize) -> usize {
        let Some(item) = self.items.get(index) else { return 0 };
        let mut before = self.before(index);
        // Skips hidden items; after too many of them, there is always a blank line.
        for _ in 0..group::GROUP_MAX + 8 {
            before = match before {
                Some(at) if self.is_hidden(at) => self.before(at),
                _ => break,
            };
        }
        let Some(before) = before.and_then(|at| self.items.get(at)) else { return 0 };
        usize::from(!(is_compact(before) && is_compact(item)))
    }

    /// A hash of the state besides the item that its drawing depends on.
    fn stamp(&self, index: usize, item: &Item) -> u64 {
        let has_picture = match &item.body {
            ItemBody::Message(message) => message
                .parts
                .iter()
                .any(|part| matches!(part, crate::core::MessagePart::Block(block) if block.is_picture())),
            ItemBody::Tool(tool) => tool
                .content
                .iter()
                .any(|content| matches!(content, ToolContent::Block(block) if block.is_picture())),
            _ => false,
        };
        let of_pictures = if has_picture { picture::rev() } else { 0 };
        let ItemBody::Tool(tool) = &item.body else { return of_pictures & (u64::MAX >> 1) };
        let mut stamp = of_pictures;
        let mut mix = |value: u64| stamp = stamp.rotate_left(7).wrapping_mul(0x9e37_79b9).wrapping_add(value);
        for content in &tool.content {
            if let ToolContent::Terminal(id) = content
                && let Some(view) = self.session.terminals.get(id)
            {
                mix(view.dropped_bytes + view.output.len() as u64);
                mix(u64::from(view.exit.is_some()));
            }
        }
        let is_asked = |request: &OpenRequestKind| matches!(request, OpenRequestKind::Permission { tool, .. } if *tool == item.id);
        mix(u64::from(self.session.requests.iter().any(|request| is_asked(&request.kind))));
        mix(u64::from(is_asked_first(self.session, item.id)));
        let members = group::members(self.session_view, self.session, self.items, index);
        if members.len() > 1 {
            for member in members {
                mix(u64::from(self.rev(member).0));
                mix(u64::from(self.rev(member).1));
            }
        }
        stamp & (u64::MAX >> 1)
    }
}

/// Whether no blank lines separate the item from similar ones.
fn is_compact(item: &Item) -> bool {
    match &item.body {
        ItemBody::Tool(_) | ItemBody::Subagent { .. } | ItemBody::Raw { .. } => true,
        ItemBody::Message(message) => matches!(message.role, Speaker::Thought | Speaker::SubagentMessage),
        _ => false,
    }
}

/// Whether a message has no visible content.
fn is_blank(item: &Item) -> bool {
    let ItemBody::Message(message) = &item.body else { return false };
    message.parts.iter().all(|part| match part {
        crate::core::MessagePart::Text(text) => text.trim_start().is_empty(),
        crate::core::MessagePart::Block(_) => false,
    })
}
