//! The frame of all dialogs: size and position, heading, the three sections (head, scrolling body, fixed
//! foot), hints, scroll bar, and clicks.
//!
//! On a small screen, a dialog covers all of it without a border; blank rows are removed before content.

mod guard;
mod rows;

use std::collections::HashMap;
use std::ops::Range;

use ratatui::layout::{Position, Rect};
use ratatui::style::{Color, Modifier};

use crate::model::Action;
use crate::ui::canvas::Canvas;
use crate::ui::frame_context::FrameContext;
use crate::ui::hits::Hit;
use crate::ui::picture::strip;
use crate::ui::text;
use crate::ui::text::Line;
use crate::ui::theme::{Role, colour};
use crate::ui::view_state::ViewState;

pub(super) use guard::escape_means;
pub(super) use rows::{choice, choices_in_a_row, input, led, named, spread, wrapped};

/// Below this size, a dialog covers the whole screen.
const SMALL_COLS: u16 = 60;
const SMALL_ROWS: u16 = 18;

/// Minimum number of body rows.
const MIN_BODY: usize = 3;

/// An anchored dialog with fewer rows has no blank rows if its body does not fit.
const SPACIOUS_ROWS: usize = 16;

/// Rows of an anchored dialog that it may use even if little of its area remains, and the rows that remain above more
/// than the minimum.
const ANCHORED_ROWS: u16 = 10;
const ROWS_ABOVE: u16 = 4;
/// Maximum height of an anchored dialog that uses more than two thirds of its area.
const LOW_ROWS: u16 = 14;

/// The width of a dialog.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Size {
    /// For questions, inputs and lists of short names.
    Small,
    /// For lists with details, tables and diffs.
    Large,
}

impl Size {
    /// The inner width, if the screen has room for it.
    pub const fn cols(self) -> u16 {
        match self {
            Self::Small => 72,
            Self::Large => 112,
        }
    }
}

#[derive(Debug, Clone, Default)]
pub struct Row {
    pub line: Line<'static>,
    pub hit: Option<Hit>,
    /// Whether the row is selected: fully highlighted, and scrolled into view.
    pub is_selected: bool,
    /// The cursor column, if the row is a text input.
    pub cursor: Option<usize>,
    /// Parts of the row with their own action: first column, width, action.
    pub parts: Vec<(u16, u16, Action)>,
}

impl From<Line<'static>> for Row {
    fn from(line: Line<'static>) -> Self {
        Self { line, ..Self::default() }
    }
}

/// A body whose visible rows are created on demand.
pub struct Window<'a> {
    pub rows: usize,
    pub marked: Option<usize>,
    /// The initial row, if it is not visible from the first one.
    pub first: Option<usize>,
    pub make: Box<dyn FnMut(Range<usize>) -> Vec<Row> + 'a>,
}

#[derive(Default)]
pub struct DialogFrame<'a> {
    pub title: String,
    /// Text at the right of the heading: `1 of 3`.
    pub tag: String,
    pub head: Vec<Row>,
    pub body: Vec<Row>,
    /// Replaces `body`.
    pub window: Option<Window<'a>>,
    pub foot: Vec<Row>,
    /// Rows of the foot that are always visible: the way to reject.
    pub pinned: Range<usize>,
    /// Keys with their actions, most useful first.
    pub hints: Vec<(String, String)>,
    /// The hint for scrolling down, shown after the first two if there are lines below.
    pub scroll_hint: Option<(String, String)>,
    /// The key that scrolls to the end, for a question: the hints say how many lines are below.
    pub end_key: Option<String>,
    /// Minimum number of body rows, so that the dialog does not resize while it is filtered.
    pub body_rows: usize,
    /// Maximum number of body rows if the dialog does not cover the screen; 0 for as many as fit.
    pub max_body: usize,
    /// Whether the dialog hides the screen: the user did not open it, and there is no transcript to see.
    pub is_alone: bool,
}

/// The position and width of a dialog.
#[derive(Debug, Clone, Copy)]
pub struct DialogPosition {
    screen: Rect,
    width: u16,
    has_frame: bool,
    is_whole: bool,
    /// Whether it is at the bottom of its area, with a bar at its left, and the rest of the screen stays visible.
    is_anchored: bool,
}

impl DialogPosition {
    pub fn new(screen: Rect, size: Size, is_full: bool) -> Self {
        let is_small = screen.width < SMALL_COLS || screen.height < SMALL_ROWS;
        let is_whole = is_small || is_full;
        // A narrow strip beside the dialog would only show fragments of words.
        let wanted = size.cols() + 6;
        let width = if is_whole || wanted + 8 > screen.width { screen.width } else { wanted };
        Self { screen, width, has_frame: !is_small, is_whole, is_anchored: false }
    }

    /// The position at the bottom of an area, with its full width.
    pub fn anchored(area: Rect) -> Self {
        Self { screen: area, width: area.width, has_frame: false, is_whole: false, is_anchored: true }
    }

    pub fn rows(self) -> u16 {
        self.screen.height
    }

    fn max_rows(self) -> u16 {
        match self.screen.height {
            // The last lines before the request explain it.
            height if self.is_anchored => {
                let low = LOW_ROWS.min(height.saturating_sub(ROWS_ABOVE));
                (height * 2 / 3).max(low).max(ANCHORED_ROWS).min(height)
            }
            height if self.is_whole => height,
            height => height - 2,
        }
    }

    /// Inner width in columns.
    pub fn cols(self) -> u16 {
        let sides = if self.has_frame { 6 } else { 3 + u16::from(self.is_anchored) * 2 };
        self.width.saturating_sub(sides).max(1)
    }
}

struct Layout {
    height: u16,
    head: usize,
    body: usize,
    foot: usize,
    hints: usize,
    wanted_body: usize,
    gap: u16,
    pad: usize,
}

impl DialogFrame<'_> {
    /// Sets the keys that are bound, with their actions.
    pub fn set_hints(&mut self, hints: impl IntoIterator<Item = Option<(String, String)>>) {
        self.hints = hints.into_iter().flatten().collect();
    }

    fn body_len(&self) -> usize {
        self.window.as_ref().map_or(self.body.len(), |window| window.rows)
    }

    pub fn height(&self, position: DialogPosition) -> u16 {
        self.layout(position).height
    }

    fn layout(&self, position: DialogPosition) -> Layout {
        let edge: usize = if position.has_frame { 2 } else { 1 };
        let room = usize::from(position.max_rows()).saturating_sub(edge);
        let hint_rows = usize::from(!self.hints.is_empty());
        let max_body = if self.max_body == 0 { usize::MAX } else { self.max_body };
        let wanted_body = self.body_len().max(self.body_rows).min(max_body);

        // Blank rows separate the sections if there is enough space.
        let sections = [self.head.len(), wanted_body, self.foot.len(), hint_rows];
        let gaps = sections.iter().filter(|rows| **rows > 0).count().saturating_sub(1);
        let content: usize = sections.iter().sum();
        let air = usize::from(content + gaps + usize::from(position.has_frame) * 2 <= room);
        let has_gaps = content + gaps <= room
            || (position.has_frame || position.is_anchored && room >= SPACIOUS_ROWS)
                && wanted_body > room / 2;
        let gaps = if has_gaps { gaps } else { 0 };
        let pad = if position.has_frame { air } else { 0 };
        let room = room.saturating_sub(gaps + pad * 2 + hint_rows);

        let min_body = MIN_BODY.min(wanted_body);
        let min_foot = (self.pinned.len() + 1).min(self.foot.len());
        let foot = self.foot.len().min(room.saturating_sub(min_body).max(min_foot)).min(room);
        let head = self.head.len().min(room.saturating_sub(foot + min_body));
        let body = wanted_body.min(room.saturating_sub(foot + head));
        let used = edge + head + body + foot + hint_rows + gaps + pad * 2;
        let whole = position.screen.height;
        let height = if position.is_whole { whole } else { u16::try_from(used).unwrap_or(whole) };
        // In full screen, the body uses the remaining rows, so that the choices are at the bottom.
        let spare = if wanted_body > 0 { usize::from(height).saturating_sub(used) } else { 0 };
        let gap = u16::from(gaps > 0);
        Layout { height, head, body: body + spare, foot, hints: hint_rows, wanted_body, gap, pad }
    }

    /// Draws the dialog and returns the cursor position.
    pub fn draw(
        mut self,
        ctx: &FrameContext,
        position: DialogPosition,
        view: &mut ViewState,
        buf: &mut Canvas,
    ) -> Option<Position> {
        let screen = position.screen;
        let mut layout = self.layout(position);
        if layout.head < self.head.len() && self.end_key.is_some() {
            // Everything that is asked can be scrolled to.
            self.fold_head(layout.head);
            layout = self.layout(position);
        }
        let Layout {
            height, head: head_rows, body: body_rows, foot: foot_rows, wanted_body, gap, pad, ..
        } = layout;
        let (hint_rows, body_len) = (layout.hints, self.body_len());

        view.dialog.below = 0;

        let below = screen.height.saturating_sub(height);
        let outer = Rect {
            x: screen.x + (screen.width - position.width) / 2,
            y: screen.y + if position.is_anchored { below } else { below / 2 },
            width: position.width,
            height,
        };
        if position.is_anchored {
            view.hits.add(outer, Hit::Nothing);
        } else {
            view.hits.add(screen, Hit::Nothing);
            if self.is_alone {
                buf.blank(screen, ctx.style(Role::Text));
            } else {
                recede(ctx, screen, buf);
            }
        }
        buf.blank(outer, ctx.style(Role::Dialog));
        self.draw_frame(ctx, position, outer, buf);

        let side = if position.has_frame || position.is_anchored { 3 } else { 2 };
        let inner = Rect { x: outer.x + side, width: position.cols(), ..outer };
        let mut cursor = None;
        let mut y = outer.y + 1 + u16::try_from(pad).unwrap_or(0);
        if head_rows > 0 {
            draw_rows(ctx, self.head.iter().take(head_rows), inner, &mut y, view, buf, &mut cursor);
            y += gap;
        }
        if wanted_body > 0 {
            let top = y;
            if let Some(first) = self.window.as_ref().and_then(|window| window.first)
                && !std::mem::replace(&mut view.dialog.is_placed, true)
                && first + 1 >= body_rows
            {
                view.dialog.scroll = first.saturating_sub(1);
            }
            let marked = match &self.window {
                Some(window) => window.marked,
                None => self.body.iter().position(|row| row.is_selected || row.cursor.is_some()),
            };
            let skip = scroll(marked, body_len, body_rows, view);
            self.count_below(body_len.saturating_sub(skip + body_rows), inner.width, view);
            let end = y + u16::try_from(body_rows).unwrap_or(0);
            let made = match &mut self.window {
                Some(window) => (window.make)(skip..(skip + body_rows).min(window.rows)),
                None => self.body.iter().skip(skip).take(body_rows).cloned().collect(),
            };
            draw_rows(ctx, made.iter(), inner, &mut y, view, buf, &mut cursor);
            let area = Rect { x: inner.x, y: top, width: inner.width, height: end - top };
            lift(ctx, area, buf);
            let bar = Rect { x: outer.right() - 1, width: 1, ..area };
            draw_bar(ctx, bar, skip, body_rows, body_len, buf);
            y = end + gap;
        }
        if foot_rows > 0 {
            let rows = self.foot_rows(foot_rows);
            draw_rows(ctx, rows.into_iter(), inner, &mut y, view, buf, &mut cursor);
        }
        if hint_rows > 0 {
            let last = outer
                .bottom()
                .saturating_sub(1 + u16::from(position.has_frame) + u16::try_from(pad).unwrap_or(0));
            let line = ctx.hints(&self.hints, usize::from(inner.width));
            buf.put_line(inner.x, last, &line, inner.width);
        }
        cursor
    }

    /// Moves the rows of the head that do not fit to the start of the body.
    fn fold_head(&mut self, fits: usize) {
        let moved = self.head.split_off(fits);
        let Some(window) = self.window.take() else {
            self.body.splice(0..0, moved);
            return;
        };
        let Window { rows, marked, first, mut make } = window;
        let count = moved.len();
        let make = move |range: Range<usize>| {
            let of_body = range.start.saturating_sub(count)..range.end.saturating_sub(count);
            let start = range.start.min(count);
            let own = moved.get(start..range.end.min(count)).unwrap_or_default();
            own.iter().cloned().chain(make(of_body)).collect()
        };
        self.window = Some(Window {
            rows: rows + count,
            marked: marked.map(|at| at + count),
            first: first.map(|at| at + count),
            make: Box::new(make),
        });
    }

    /// Notes how many rows are below the visible ones, and adds that to the hints of a question.
    fn count_below(&mut self, below: usize, cols: u16, view: &mut ViewState) {
        view.dialog.below = below;
        if let Some(hint) = self.scroll_hint.take().filter(|_| below > 0) {
            self.hints.insert(self.hints.len().min(2), hint);
        }
        if let Some(key) = self.end_key.take().filter(|_| below > 0) {
            let lines = match below {
                // Hints that do not fit are omitted, and this one must not be.
                _ if cols < SMALL_COLS => format!("{below} below"),
                1 => "1 line below".to_owned(),
                _ => format!("{below} lines below"),
            };
            self.hints.insert(self.hints.len().min(1), (key, lines));
        }
    }

    /// The visible rows of the foot: those around the selected one, and always the pinned ones.
    fn foot_rows(&self, room: usize) -> Vec<&Row> {
        let marked = self.foot.iter().position(|row| row.is_selected).unwrap_or(0);
        let rows = |range: Range<usize>| self.foot.get(range).unwrap_or_default().iter();
        let window = |room: usize| {
            let skip = (marked + 1).saturating_sub(room);
            skip..(skip + room).min(self.foot.len())
        };
        let all = window(room);
        if self.pinned.is_empty() || all.start <= self.pinned.start && self.pinned.end <= all.end {
            return rows(all).collect();
        }
        let pinned = self.pinned.start..self.pinned.end.min(self.pinned.start + room);
        let shown = window(room - pinned.len());
        let is_before = shown.end > pinned.start;
        let shown = rows(shown.clone()).enumerate().filter(|(at, _)| !pinned.contains(&(shown.start + at)));
        let (shown, pinned) = (shown.map(|(_, row)| row), rows(pinned.clone()));
        if is_before { pinned.chain(shown).collect() } else { shown.chain(pinned).collect() }
    }

    /// Draws border and heading; on a small screen only the heading with a rule.
    fn draw_frame(&self, ctx: &FrameContext, position: DialogPosition, outer: Rect, buf: &mut Canvas) {
        let border = ctx.style(Role::DialogBorder);
        let [top_left, top_right, bottom_left, bottom_right, across, down] = ctx.marks.frame;
        let width = usize::from(outer.width);
        let last = outer.bottom().saturating_sub(1);
        if position.is_anchored {
            let warning = ctx.style(Role::Warning);
            for y in outer.y..outer.bottom() {
                buf.set_string(outer.x, y, ctx.render.glyphs.bar, warning);
            }
        } else if position.has_frame {
            let bar = across.repeat(width.saturating_sub(2));
            buf.set_string(outer.x, outer.y, format!("{top_left}{bar}{top_right}"), border);
            buf.set_string(outer.x, last, format!("{bottom_left}{bar}{bottom_right}"), border);
            for y in outer.y + 1..last {
                buf.set_string(outer.x, y, down, border);
                buf.set_string(outer.right() - 1, y, down, border);
            }
        } else {
            buf.set_string(outer.x, outer.y, across.repeat(width), border);
        }
        let tag = if self.tag.is_empty() { String::new() } else { format!(" {} ", self.tag) };
        let room = width.saturating_sub(text::width(&tag) + 6);
        let title = format!(" {} ", text::truncate(&self.title, room));
        let lead = if position.has_frame || position.is_anchored { 2 } else { 1 };
        text::put_text(buf, outer.x + lead, outer.y, &title, outer.width, ctx.style(Role::DialogTitle));
        if !tag.is_empty() {
            let x = outer.right().saturating_sub(u16::try_from(text::width(&tag)).unwrap_or(0) + 2);
            text::put_text(buf, x, outer.y, &tag, outer.width, ctx.style(Role::TextDim));
        }
    }
}

/// Draws rows starting at `y`.
fn draw_rows<'r>(
    ctx: &FrameContext,
    rows: impl Iterator<Item = &'r Row>,
    inner: Rect,
    y: &mut u16,
    view: &mut ViewState,
    buf: &mut Canvas,
    cursor: &mut Option<Position>,
) {
    let mut was_selected = false;
    for row in rows {
        let area = Rect { y: *y, height: 1, ..inner };
        buf.put_line(area.x, *y, &row.line, area.width);
        if row.is_selected {
            // The selection style replaces the styles of the row, so that it is readable.
            let wide = Rect { x: area.x.saturating_sub(2), width: area.width + 3, ..area };
            buf.set_style(wide, ctx.style(Role::Selection));
            // The selection is not shown by colour alone.
            if !was_selected {
                buf.set_string(wide.x, *y, ctx.render.glyphs.arrow, ctx.style(Role::Selection));
            }
        }
        was_selected = row.is_selected;
        if let Some(hit) = row.hit {
            view.hits.add(area, hit);
        }
        for (col, width, action) in &row.parts {
            let part = Rect { x: area.x + col, width: *width, ..area };
            view.hits.add(part.intersection(area), Hit::Act(*action));
        }
        if let Some(col) = row.cursor {
            let x = u16::try_from(col).unwrap_or(u16::MAX).min(area.width.saturating_sub(1));
            *cursor = Some(Position::new(area.x + x, *y));
        }
        *y += 1;
    }
}

/// The first visible row of the body; follows the selection when it moves, otherwise the scroll offset.
fn scroll(marked: Option<usize>, body: usize, rows: usize, view: &mut ViewState) -> usize {
    let dialog = &mut view.dialog;
    dialog.page = rows;
    let max = body.saturating_sub(rows);
    let mut skip = dialog.scroll.min(max);
    if let Some(at) = marked.filter(|_| marked != dialog.marked) {
        // Keeps one more row visible to show that the list continues.
        if at < skip + 1 {
            skip = at.saturating_sub(1);
        } else if at + 2 > skip + rows {
            skip = (at + 2).saturating_sub(rows);
        }
        skip = skip.min(max);
    }
    dialog.marked = marked;
    dialog.scroll = skip;
    skip
}

/// Fades the content behind a dialog to half of its contrast with the background. Colours that the terminal
/// configures are dimmed by the terminal.
fn recede(ctx: &FrameContext, screen: Rect, buf: &mut Canvas) {
    let ground = ctx.render.theme.screen_bg();
    let mut faded: HashMap<Color, Option<Color>> = HashMap::new();
    let mut fade = |color| *faded.entry(color).or_insert_with(|| colour::halfway(color, ground));
    buf.remove_pictures(screen.top()..screen.bottom());
    for position in screen.positions() {
        let Some(cell) = buf.cell_mut(position) else { continue };
        if strip::is_part(cell) {
            // Its cells are too coarse to be recognisable without contrast.
            cell.reset();
            cell.set_style(ctx.style(Role::Text));
        }
        cell.modifier.remove(Modifier::REVERSED);
        if let Some(fg) = fade(cell.fg) {
            cell.fg = fg;
        } else {
            cell.modifier.remove(Modifier::BOLD);
            cell.modifier.insert(Modifier::DIM);
        }
        cell.bg = fade(cell.bg).unwrap_or(ground);
    }
}

/// Replaces the screen background by the dialog's, because rows are drawn for both.
fn lift(ctx: &FrameContext, area: Rect, buf: &mut Canvas) {
    let (screen, modal) = (ctx.render.theme.screen_bg(), ctx.render.theme.modal_bg());
    if screen == modal {
        return;
    }
    for position in area.positions() {
        if let Some(cell) = buf.cell_mut(position)
            && cell.bg == screen
        {
            cell.bg = modal;
        }
    }
}

/// Draws a scroll bar if there are more rows than fit.
pub fn draw_bar(ctx: &FrameContext, bar: Rect, skip: usize, rows: usize, all: usize, buf: &mut Canvas) {
    if all <= rows || rows == 0 {
        return;
    }
    let size = (rows * rows / all).max(1);
    let free = rows - size;
    let top = (skip * free).div_ceil(all - rows).min(free);
    for (index, y) in (bar.y..bar.bottom()).enumerate() {
        if index >= top && index < top + size {
            buf.set_string(bar.x, y, ctx.marks.thumb, ctx.style(Role::ScrollThumb));
        }
    }
}
