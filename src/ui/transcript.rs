//! The transcript on the screen: a virtual list of items, each with a list of pieces.
//!
//! [`TranscriptView`] holds the scroll position and caches drawings near it; it can be rebuilt at any time.
//! `cells` draws the items. The session is passed to each draw; scroll requests are stored until then,
//! because the number of rows depends on the width.
//!
//! Invariants: the cost of a frame depends on the screen, not on the transcript; unless the end is followed,
//! visible text does not move when more arrives.

use std::collections::{HashMap, VecDeque};

use ratatui::layout::Rect;

use crate::core::{Session, TerminalView, Transcript};
use crate::model::{ItemId, SessionKey, TerminalId};
use crate::ui::screen::DiffLayout;

use super::canvas::Canvas;
use super::cells::layout::{Layout, Screens};
use super::highlight;
use super::markdown::PROSE_COLS;
use super::render_context::RenderContext;
use super::session_view::SessionView;
use super::terminal::Screen;
use crate::core::state::outline::Only;

mod filter;
mod find;
mod group;
mod heights;
mod link_hit;
mod list;
mod paint;
mod reading;
mod select;
mod unread;

use filter::Filter;
use heights::Heights;
use list::List;
use select::Select;
use unread::News;

pub use select::{EDGE_STEP, Released, selected_text};

/// Columns left of the text: space, symbol, space.
const LEFT_COLS: u16 = 3;
/// Columns right of the text: space, scroll bar.
const RIGHT_COLS: u16 = 2;
/// Columns of a transcript with the widest text.
pub(super) const FULL_COLS: u16 = LEFT_COLS + PROSE_COLS + RIGHT_COLS;
/// Maximum number of cached terminal screens.
const SCREENS_MAX: usize = 8;

/// Columns of the text in an area.
fn text_cols(area: Rect) -> u16 {
    area.width.saturating_sub(LEFT_COLS + RIGHT_COLS).min(PROSE_COLS)
}

/// The scroll position and the cached drawings.
#[derive(Default)]
pub struct TranscriptView {
    session: SessionKey,
    anchor: Anchor,
    scroll_requests: Vec<ScrollRequest>,
    /// The order of items in the last frame.
    order: Order,
    /// The state when the reader scrolled away from the end.
    news: News,
    item_count: usize,
    cells: HashMap<usize, Cell>,
    screens: Screens,
    /// Lazy pieces with cached lines, oldest first.
    warm: VecDeque<(usize, usize)>,
    render: Option<RenderKey>,
    render_revision: u64,
    frame: u64,
    heads: Vec<(u16, ItemId)>,
    /// The first and last visible item, with their indexes.
    visible: Option<((usize, ItemId), (usize, ItemId))>,
    /// The position of the current search match.
    spot: Option<find::Spot>,
    /// Whether to scroll to the current match.
    wants_hit: bool,
    layouts: usize,
    built: usize,
    height: usize,
    /// The position of the first row in the text of its piece, at the last change of the width.
    reading: Option<(RowPosition, usize)>,
    /// The first row of the last frame.
    last_top: RowPosition,
    /// Horizontal scroll offset of tables, in table columns.
    sideways: u16,
    heights: Heights,
    filter: Option<Filter>,
    select: Select,
}

/// Resolves the indexes of a frame in the next one, after items were inserted or removed before them.
#[derive(Default)]
struct Order {
    history: u64,
    number: u64,
    /// The items at the anchor, at the position to return to from a filter, and at the first row.
    anchor: Option<ItemId>,
    back: Option<ItemId>,
    top: Option<ItemId>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Anchor {
    /// The position that shows the end on the last row.
    #[default]
    Follow,
    At(RowPosition),
}

/// A row, counted within a piece including its gap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct RowPosition {
    item: usize,
    piece: usize,
    row: usize,
}

/// A scroll request that is applied by the next draw.
#[derive(Debug, Clone, Copy)]
enum ScrollRequest {
    Lines(i32),
    Pages(i32),
    Sideways(i32),
    Top,
    Show(ItemId),
    ShowAtTop(ItemId),
}

/// The drawing of an item, and its cache key.
struct Cell {
    layout: Layout,
    rev: (u32, u32),
    render_revision: u64,
    /// Hash of other state that it depends on: terminals, open questions, the group.
    stamp: u64,
    last_used: u64,
}

/// State that invalidates all drawings when it changes.
#[derive(PartialEq)]
struct RenderKey {
    cols: u16,
    theme: String,
    epoch: u32,
    shows_thoughts: bool,
    diff_layout: DiffLayout,
    wraps: bool,
    sideways: Option<u16>,
    check: &'static str,
    history_keys: [Option<String>; 2],
}

impl TranscriptView {
    /// Scrolls by lines; negative values scroll up.
    pub fn scroll_lines(&mut self, lines: i32) {
        self.scroll_requests.push(ScrollRequest::Lines(lines));
    }

    pub(in crate::ui) fn screen(&mut self, id: &TerminalId, view: &TerminalView) -> &Screen {
        let screen = self.screens.entry(id.clone()).or_default();
        screen.update(view);
        screen
    }

    /// Scrolls by screens, minus two lines; negative values scroll up.
    pub fn scroll_pages(&mut self, pages: i32) {
        self.scroll_requests.push(ScrollRequest::Pages(pages));
    }

    /// Scrolls wide tables by table columns; negative values scroll left.
    pub fn scroll_sideways(&mut self, columns: i32) {
        self.scroll_requests.push(ScrollRequest::Sideways(columns));
    }

    pub fn scroll_top(&mut self) {
        self.scroll_requests.push(ScrollRequest::Top);
    }

    pub fn scroll_end(&mut self) {
        self.scroll_requests.clear();
        self.anchor = Anchor::Follow;
    }

    pub fn show(&mut self, item: ItemId) {
        self.scroll_requests.push(ScrollRequest::Show(item));
    }

    pub fn show_at_top(&mut self, item: ItemId) {
        self.scroll_requests.push(ScrollRequest::ShowAtTop(item));
    }

    /// Scrolls the current search match into view.
    pub fn show_hit(&mut self) {
        self.wants_hit = true;
    }

    /// The first and last visible item in the last frame.
    pub fn visible(&self) -> Option<(ItemId, ItemId)> {
        self.visible.map(|((_, first), (_, last))| (first, last))
    }

    pub fn is_following(&self) -> bool {
        self.anchor == Anchor::Follow
    }

    /// Number of new items since the reader scrolled away from the end, and of new lines in the message that
    /// was open then, in the last frame.
    pub fn news(&self) -> (usize, usize) {
        if self.is_following() { (0, 0) } else { (self.news.items(), self.news.lines()) }
    }

    /// The item with its header in this row, in the last frame.
    pub fn item_at(&self, row: u16) -> Option<ItemId> {
        self.heads.iter().find(|(at, _)| *at == row).map(|(_, id)| *id)
    }

    /// Number of items laid out for the last frame.
    pub fn layouts_last_frame(&self) -> usize {
        self.layouts
    }

    /// Number of lines drawn for the last frame.
    pub fn lines_last_frame(&self) -> usize {
        self.built
    }

    pub fn cached_lines(&self) -> usize {
        let pieces = self.cells.values().flat_map(|cell| &cell.layout.pieces);
        pieces.filter_map(|piece| piece.lines.as_ref()).map(Vec::len).sum()
    }

    /// Invalidates all drawings if a common setting has changed.
    fn use_render(&mut self, render: &RenderContext<'_>, cols: u16) {
        let key = RenderKey {
            cols,
            theme: render.theme.name.clone(),
            epoch: highlight::epoch(),
            shows_thoughts: render.shows_thoughts,
            diff_layout: render.diff_layout,
            wraps: render.wraps,
            sideways: render.sideways,
            check: render.glyphs.check,
            history_keys: [render.history_keys.open, render.history_keys.put_back]
                .map(|key| key.map(str::to_owned)),
        };
        if self.render.as_ref() != Some(&key) {
            let is_same_shape = self.render.as_ref().is_some_and(|render| {
                (render.cols, render.shows_thoughts, render.diff_layout, render.wraps, render.sideways)
                    == (key.cols, key.shows_thoughts, key.diff_layout, key.wraps, key.sideways)
            });
            if !is_same_shape {
                self.clear_selection();
            }
            self.render = Some(key);
            self.render_revision += 1;
        }
    }

    /// Updates the filter; restores the scroll position after it was removed.
    fn follow_filter(&mut self, session: &Session, only: Option<Only>) {
        if only == self.filter.as_ref().map(|filter| filter.only) {
            if let Some(filter) = &mut self.filter {
                filter.follow(&session.transcript);
            }
            return;
        }
        let before = self.filter.take();
        let back = before.map_or(self.anchor, |filter| filter.back);
        match only {
            Some(only) => self.filter = Some(Filter::new(only, &session.transcript, back)),
            // A scroll request takes precedence over the old position.
            None if self.scroll_requests.is_empty() => self.anchor = back,
            None => {}
        }
        self.heights.clear();
        self.clear_selection();
    }

    /// Applies horizontal scroll requests, limited by the widest table near the screen.
    fn move_sideways(&mut self) {
        let is_sideways = |request: &ScrollRequest| matches!(request, ScrollRequest::Sideways(_));
        if !self.scroll_requests.iter().any(is_sideways) {
            return;
        }
        let cells = self.cells.values().filter(|cell| cell.last_used == self.frame);
        let max = cells.map(|cell| cell.layout.sideways()).max().unwrap_or(0);
        for request in &self.scroll_requests {
            if let ScrollRequest::Sideways(columns) = request {
                self.sideways = i32::from(self.sideways)
                    .saturating_add(*columns)
                    .clamp(0, i32::from(max))
                    .try_into()
                    .unwrap_or(0);
            }
        }
        self.scroll_requests.retain(|request| !is_sideways(request));
    }

    /// Keeps the visible rows in place after items were inserted or removed before them.
    fn follow_order(&mut self, transcript: &Transcript) {
        let is_other = self.order.history != transcript.history();
        if !is_other && self.order.number == transcript.order() {
            return;
        }
        self.cells.clear();
        self.warm.clear();
        self.heights.clear();
        (self.spot, self.reading) = (None, None);
        self.clear_selection();
        if is_other {
            self.anchor = Anchor::Follow;
            return;
        }
        let moved = |position: RowPosition, id: Option<ItemId>| {
            let Some(id) = id else { return position };
            let item = transcript.index_from(id);
            let is_here = transcript.items().get(item).is_some_and(|item| item.id == id);
            if is_here {
                RowPosition { item, ..position }
            } else {
                RowPosition { item, ..RowPosition::default() }
            }
        };
        if let Anchor::At(position) = self.anchor {
            self.anchor = Anchor::At(moved(position, self.order.anchor));
        }
        if let Some(filter) = &mut self.filter
            && let Anchor::At(position) = filter.back
        {
            filter.back = Anchor::At(moved(position, self.order.back));
        }
        self.last_top = moved(self.last_top, self.order.top);
    }

    /// Saves the items at the stored positions for the next frame.
    fn note_order(&mut self, transcript: &Transcript) {
        // The line above all items remains the first, so its position is stored as that of the item below.
        let items = transcript.items();
        let at = |position: RowPosition| {
            let item = items.get(position.item)?;
            if item.id == ItemId::HEAD { items.get(1).map(|item| item.id) } else { Some(item.id) }
        };
        let anchored = |anchor: Anchor| match anchor {
            Anchor::At(position) => at(position),
            Anchor::Follow => None,
        };
        self.order = Order {
            history: transcript.history(),
            number: transcript.order(),
            anchor: anchored(self.anchor),
            back: self.filter.as_ref().and_then(|filter| anchored(filter.back)),
            top: at(self.last_top),
        };
    }

    /// Evicts drawings that are far from the screen.
    fn trim(&mut self) {
        let lines = 3 * self.height + 16;
        while self.warm.len() > lines {
            let Some((item, piece)) = self.warm.pop_front() else { break };
            if let Some(cell) = self.cells.get_mut(&item) {
                cell.layout.drop_lines_of(piece);
            }
        }
        if self.cells.len() > lines {
            let oldest = self.frame.saturating_sub(60);
            let frame = self.frame;
            self.cells.retain(|_, cell| cell.last_used > oldest);
            if self.cells.len() > lines {
                self.cells.retain(|_, cell| cell.last_used == frame);
            }
        }
        if self.screens.len() > SCREENS_MAX {
            // They are rebuilt from the session when needed.
            self.screens.clear();
            let used: Vec<usize> = self.cells.keys().copied().collect();
            for item in used {
                if let Some(cell) = self.cells.get_mut(&item)
                    && cell.layout.has_terminal()
                {
                    cell.stamp = u64::MAX;
                }
            }
        }
    }
}

/// Draws the transcript to a cleared area, or to the rows of the last frame where `rows` retains them, and
/// records the positions of items.
pub fn draw(
    session: &Session,
    session_view: &SessionView,
    view: &mut TranscriptView,
    render: &RenderContext<'_>,
    area: Rect,
    buf: &mut Canvas,
) {
    if view.session != session.key {
        // Requests from before the first draw apply to this session.
        let scroll_requests =
            if view.frame == 0 { std::mem::take(&mut view.scroll_requests) } else { Vec::new() };
        let wants_hit = view.wants_hit;
        *view =
            TranscriptView { session: session.key, scroll_requests, wants_hit, ..TranscriptView::default() };
    }
    view.move_sideways();
    view.follow_order(&session.transcript);
    view.follow_filter(session, session_view.only);
    let render = &RenderContext { sideways: Some(view.sideways), ..*render };
    view.heads.clear();
    view.select.seen.clear();
    view.visible = None;
    let reading = reading::before(session, session_view, view, render, area.intersection(buf.area));
    (view.layouts, view.built) = (0, 0);
    view.frame += 1;
    let area = area.intersection(buf.area);
    if area.height == 0 || area.width < LEFT_COLS + RIGHT_COLS + 4 {
        view.scroll_requests.clear();
        buf.refuse();
        return;
    }
    let cols = text_cols(area);
    view.use_render(render, cols);
    view.height = usize::from(area.height);
    let count = session.transcript.items().len();
    let is_read = session.read_only.is_some();
    if is_read && view.is_following() && (1..count).contains(&view.item_count) {
        // After loading another part of the session, the screen does not move.
        view.anchor = Anchor::At(view.last_top);
    }
    view.item_count = count;
    view.select.area = area;
    if let Some(reading) = reading {
        List::new(session, session_view, view, render, cols).find_again(reading);
    }
    view.hold(render.now);
    let was_following = view.is_following();
    let top = List::new(session, session_view, view, render, cols).place_top();
    view.news.follow(&session.transcript, is_read || was_following || view.is_following());
    let mut list = List::new(session, session_view, view, render, cols);
    list.follow_heights();
    paint::draw(&mut list, top, area, buf);
    view.last_top = top;
    view.follow_edge(top);
    view.note_order(&session.transcript);
    select::paint(view, render, buf);
    view.trim();
}

#[cfg(test)]
mod tests;
