//! The transcript on the screen: a virtual list of items, each a list of pieces.
//!
//! Duty: where the reader is, what fits the screen from there, keeping drawings that are near it.
//! Not its duty: how an item looks (`cells`). The session enters on each draw; scrolling is kept as a wish until
//! then, because rows are only known with the width. All of [`TranscriptView`] can be thrown away.
//! Invariants: the cost of a frame depends on the screen, not on the transcript; what was read stays where it
//! is while text arrives, unless the end is followed.

use std::collections::{HashMap, VecDeque};

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::app::{DiffLayout, Session, Transcript};
use crate::model::{ItemId, SessionKey};

use super::cells::layout::{Layout, Screens};
use super::highlight;
use super::render_context::RenderContext;
use super::rows::RowCache;

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

/// Columns left of the text: one blank, the mark, one blank.
const LEFT_COLS: u16 = 3;
/// Columns right of the text: one blank, the scroll bar.
const RIGHT_COLS: u16 = 2;
/// Screens of terminals that are kept.
const SCREENS_MAX: usize = 8;

/// Where the reader is, and what was drawn lately.
#[derive(Default)]
pub struct TranscriptView {
    session: SessionKey,
    anchor: Anchor,
    wishes: Vec<ScrollRequest>,
    /// The order of the items in the last frame.
    order: Order,
    /// What there was when the reader left the end.
    news: News,
    item_count: usize,
    cells: HashMap<usize, Cell>,
    screens: Screens,
    /// Lazy pieces that hold lines, oldest first.
    warm: VecDeque<(usize, usize)>,
    look: Option<LookKey>,
    look_rev: u64,
    frame: u64,
    heads: Vec<(u16, ItemId)>,
    /// The first and the last item on the screen, with their indices.
    visible: Option<((usize, ItemId), (usize, ItemId))>,
    /// Where the current hit of the search is.
    spot: Option<find::Spot>,
    /// The current hit is to be brought onto the screen.
    wants_hit: bool,
    layouts: usize,
    built: usize,
    height: usize,
    /// How far into the text of its piece the first row is, as of the last change of the width.
    reading: Option<(Place, usize)>,
    /// The first row of the last frame.
    last_top: Place,
    /// Columns of tables that are left out on the left.
    sideways: u16,
    heights: Heights,
    /// Only a part of the transcript is shown.
    filter: Option<Filter>,
    select: Select,
}

/// Items from which on the reader is near the beginning or the end.
const NEAR_ITEMS: usize = 12;

/// What the places of a frame mean in the next one, where items came or went in front of them.
#[derive(Default)]
struct Order {
    history: u64,
    number: u64,
    /// The items at the anchor, at the one that a filter goes back to, and at the first row.
    anchor: Option<ItemId>,
    back: Option<ItemId>,
    top: Option<ItemId>,
}

/// What the first row of the screen is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Anchor {
    /// Whatever puts the end on the last row.
    #[default]
    Follow,
    /// A place.
    At(Place),
}

/// A row: counted within a piece, its gap included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Place {
    item: usize,
    piece: usize,
    row: usize,
}

/// A move that waits for the next drawing.
#[derive(Debug, Clone, Copy)]
enum ScrollRequest {
    Lines(i32),
    Pages(i32),
    Sideways(i32),
    Top,
    Show(ItemId),
    /// To the top of the screen.
    ShowAtTop(ItemId),
}

/// An item's drawing and what it is good for.
struct Cell {
    layout: Layout,
    rev: u32,
    look_rev: u64,
    /// Things that matter beside the item: terminals, open questions, the group.
    stamp: u64,
    last_used: u64,
}

/// What makes all drawings void when it changes.
#[derive(PartialEq)]
struct LookKey {
    cols: u16,
    theme: String,
    epoch: u32,
    shows_thoughts: bool,
    diff_layout: DiffLayout,
    sideways: Option<u16>,
    check: &'static str,
}

impl TranscriptView {
    /// Scrolls by lines; negative: up.
    pub fn scroll_lines(&mut self, lines: i32) {
        self.wishes.push(ScrollRequest::Lines(lines));
    }

    /// Scrolls by screens, less two lines; negative: up.
    pub fn scroll_pages(&mut self, pages: i32) {
        self.wishes.push(ScrollRequest::Pages(pages));
    }

    /// Moves tables that are too wide by so many of their columns; negative: to the left.
    pub fn scroll_sideways(&mut self, columns: i32) {
        self.wishes.push(ScrollRequest::Sideways(columns));
    }

    /// To the beginning.
    pub fn scroll_top(&mut self) {
        self.wishes.push(ScrollRequest::Top);
    }

    /// To the end, and follows it.
    pub fn scroll_end(&mut self) {
        self.wishes.clear();
        self.anchor = Anchor::Follow;
    }

    /// Brings an item onto the screen, if it is not.
    pub fn show(&mut self, item: ItemId) {
        self.wishes.push(ScrollRequest::Show(item));
    }

    /// Brings an item to the top of the screen.
    pub fn show_at_top(&mut self, item: ItemId) {
        self.wishes.push(ScrollRequest::ShowAtTop(item));
    }

    /// Brings the current hit of the search onto the screen, if it is not.
    pub fn show_hit(&mut self) {
        self.wants_hit = true;
    }

    /// The first and the last item on the screen, as of the last frame.
    pub fn visible(&self) -> Option<(ItemId, ItemId)> {
        self.visible.map(|((_, first), (_, last))| (first, last))
    }

    /// Whether the end is followed.
    pub fn is_following(&self) -> bool {
        self.anchor == Anchor::Follow
    }

    /// Items that came since the reader left the end, and lines of the message that was open then, as of the last
    /// frame.
    pub fn news(&self) -> (usize, usize) {
        if self.is_following() { (0, 0) } else { (self.news.items(), self.news.lines()) }
    }

    /// The item whose head line is in this row of the area, as of the last frame.
    pub fn item_at(&self, row: u16) -> Option<ItemId> {
        self.heads.iter().find(|(at, _)| *at == row).map(|(_, id)| *id)
    }

    /// How many items were laid out for the last frame.
    pub fn layouts_last_frame(&self) -> usize {
        self.layouts
    }

    /// How many lines were made for the last frame.
    pub fn lines_last_frame(&self) -> usize {
        self.built
    }

    /// Lines that are kept, for measurements.
    pub fn kept_lines(&self) -> usize {
        let pieces = self.cells.values().flat_map(|cell| &cell.layout.pieces);
        pieces.filter_map(|piece| piece.lines.as_ref()).map(Vec::len).sum()
    }

    /// Voids all drawings when something that all of them depend on changed.
    fn take_look(&mut self, look: &RenderContext<'_>, cols: u16) {
        let key = LookKey {
            cols,
            theme: look.theme.name.clone(),
            epoch: highlight::epoch(),
            shows_thoughts: look.shows_thoughts,
            diff_layout: look.diff_layout,
            sideways: look.sideways,
            check: look.glyphs.check,
        };
        if self.look.as_ref() != Some(&key) {
            let is_same_shape = self.look.as_ref().is_some_and(|look| {
                (look.cols, look.shows_thoughts, look.diff_layout, look.sideways)
                    == (key.cols, key.shows_thoughts, key.diff_layout, key.sideways)
            });
            if !is_same_shape {
                self.clear_selection();
            }
            self.look = Some(key);
            self.look_rev += 1;
        }
    }

    /// Follows what is to be shown of the transcript; the reader comes back to where they were.
    fn follow_filter(&mut self, session: &Session) {
        if session.only == self.filter.as_ref().map(|filter| filter.only) {
            if let Some(filter) = &mut self.filter {
                filter.follow(&session.transcript);
            }
            return;
        }
        let before = self.filter.take();
        let back = before.map_or(self.anchor, |filter| filter.back);
        match session.only {
            Some(only) => self.filter = Some(Filter::new(only, &session.transcript, back)),
            // Who goes somewhere in it is not to be brought back.
            None if self.wishes.is_empty() => self.anchor = back,
            None => {}
        }
        self.heights.clear();
        self.clear_selection();
    }

    /// Moves tables as it was wished, no further than the widest one that is near the screen.
    fn move_sideways(&mut self) {
        let is_sideways = |wish: &ScrollRequest| matches!(wish, ScrollRequest::Sideways(_));
        if !self.wishes.iter().any(is_sideways) {
            return;
        }
        let cells = self.cells.values().filter(|cell| cell.last_used == self.frame);
        let most = cells.map(|cell| cell.layout.sideways()).max().unwrap_or(0);
        for wish in &self.wishes {
            if let ScrollRequest::Sideways(columns) = wish {
                self.sideways = i32::from(self.sideways)
                    .saturating_add(*columns)
                    .clamp(0, i32::from(most))
                    .try_into()
                    .unwrap_or(0);
            }
        }
        self.wishes.retain(|wish| !is_sideways(wish));
    }

    /// Where items came or went in front of those that are read, what is read stays where it is on the screen.
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
        let moved = |place: Place, id: Option<ItemId>| {
            let Some(id) = id else { return place };
            let item = transcript.index_from(id);
            let is_here = transcript.items().get(item).is_some_and(|item| item.id == id);
            if is_here { Place { item, ..place } } else { Place { item, ..Place::default() } }
        };
        if let Anchor::At(place) = self.anchor {
            self.anchor = Anchor::At(moved(place, self.order.anchor));
        }
        if let Some(filter) = &mut self.filter
            && let Anchor::At(place) = filter.back
        {
            filter.back = Anchor::At(moved(place, self.order.back));
        }
        self.last_top = moved(self.last_top, self.order.top);
    }

    /// Notes the items at the places that are stored for the next frame.
    fn note_order(&mut self, transcript: &Transcript) {
        // The line above all items stays the first: who is there stays with what is below it.
        let items = transcript.items();
        let at = |place: Place| {
            let item = items.get(place.item)?;
            if item.id == ItemId::HEAD { items.get(1).map(|item| item.id) } else { Some(item.id) }
        };
        let anchored = |anchor: Anchor| match anchor {
            Anchor::At(place) => at(place),
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

    /// Whether the reader is near the beginning of what is shown.
    pub fn is_near_top(&self) -> bool {
        self.visible.is_some_and(|((first, _), _)| first <= NEAR_ITEMS)
    }

    /// Whether the reader is near the end of what is shown.
    pub fn is_near_end(&self) -> bool {
        self.visible.is_some_and(|(_, (last, _))| last + NEAR_ITEMS >= self.item_count)
    }

    /// Lets go of drawings that are far from the screen.
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
            // They are read again from the session when they are needed.
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

/// Draws the transcript into an area of blanks in the style of text or, where `rows` keeps it, of rows of the last frame,
/// and takes note of what is where.
pub fn draw(
    session: &Session,
    view: &mut TranscriptView,
    look: &RenderContext<'_>,
    area: Rect,
    buf: &mut Buffer,
    rows: &mut RowCache,
) {
    if view.session != session.key {
        // Wishes from before the first drawing are meant for this session.
        let wishes = if view.frame == 0 { std::mem::take(&mut view.wishes) } else { Vec::new() };
        let wants_hit = view.wants_hit;
        *view = TranscriptView { session: session.key, wishes, wants_hit, ..TranscriptView::default() };
    }
    view.move_sideways();
    view.follow_order(&session.transcript);
    view.follow_filter(session);
    let look = &RenderContext { sideways: Some(view.sideways), ..*look };
    view.heads.clear();
    view.select.seen.clear();
    view.visible = None;
    let reading = reading::before(session, view, look, area.intersection(buf.area));
    (view.layouts, view.built) = (0, 0);
    view.frame += 1;
    let area = area.intersection(buf.area);
    if area.height == 0 || area.width < LEFT_COLS + RIGHT_COLS + 4 {
        view.wishes.clear();
        rows.refuse(buf);
        return;
    }
    let cols = area.width - LEFT_COLS - RIGHT_COLS;
    view.take_look(look, cols);
    view.height = usize::from(area.height);
    let count = session.transcript.items().len();
    let is_read = session.read_only.is_some();
    if is_read && view.is_following() && (1..count).contains(&view.item_count) {
        // The next part of an old session came: the reader stays where they are.
        view.anchor = Anchor::At(view.last_top);
    }
    view.item_count = count;
    view.select.area = area;
    if let Some(reading) = reading {
        List::new(session, view, look, cols).find_again(reading);
    }
    view.hold(look.now);
    let was_following = view.is_following();
    let top = List::new(session, view, look, cols).place_top();
    view.news.follow(&session.transcript, is_read || was_following || view.is_following());
    let mut list = List::new(session, view, look, cols);
    list.follow_heights();
    paint::draw(&mut list, top, area, buf, rows);
    view.last_top = top;
    view.follow_edge(top);
    view.note_order(&session.transcript);
    select::paint(view, look, buf);
    view.trim();
}

#[cfg(test)]
mod tests;
