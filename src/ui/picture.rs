//! Images in the transcript, as rows of cells.
//!
//! [`lines`] returns the rows of an image while a frame is laid out. A missing image is queued for
//! [`take_wanted`], `runtime::pictures` decodes and encodes it, and [`put`] stores the result. The cache
//! belongs to the drawing thread, as for links.
//!
//! Invariants: rows of images are laid out as any text, so that they scroll and are covered by dialogs;
//! images that are out of view are evicted above a size limit, but their dimensions are retained.

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use crate::ui::text::{Line, Span};

use super::render_context::{Glyphs, RenderContext};
use super::text::copy_hint::Mark;
use super::text::{one_line, truncate, truncate_path, width};
use super::theme::Role;
use crate::model::{Body, WeakBody, byte_size};

pub mod strip;

/// Maximum width of an image, in cells.
pub const MAX_COLS: u16 = 80;
/// Maximum height of an image, in cells.
pub const MAX_ROWS: u16 = 20;

/// Maximum size of cached images in bytes.
const CACHED_BYTES: usize = 24 * 1024 * 1024;
/// Maximum number of cache entries.
const KNOWN_MAX: usize = 2048;

/// The resolution of images.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grid {
    /// Pixels per cell, horizontally and vertically.
    pub cell: (u16, u16),
    /// Maximum number of pixels of an image on the screen.
    pub max_pixels: u32,
}

impl Grid {
    /// The width and height in cells of an image with these dimensions, for a width of `cols`. Images are
    /// scaled down only, to at least one cell.
    pub fn fit(self, (width, height): (u32, u32), cols: u16) -> (u16, u16) {
        let cell = (u64::from(self.cell.0.max(1)), u64::from(self.cell.1.max(1)));
        let (width, height) = (u64::from(width.max(1)), u64::from(height.max(1)));
        let max_cols = u64::from(cols.clamp(1, MAX_COLS));
        let max_rows = u64::from(MAX_ROWS).min(u64::from(self.max_pixels) / (max_cols * cell.0 * cell.1));
        let max_rows = max_rows.max(1);
        // The scale factor as a fraction.
        let mut shrink = (1, 1);
        for (room, wanted) in [(max_cols * cell.0, width), (max_rows * cell.1, height)] {
            if room * shrink.1 < wanted * shrink.0 {
                shrink = (room, wanted);
            }
        }
        let cells = |pixels: u64, cell: u64, max: u64| {
            let count = (pixels * shrink.0).div_ceil(shrink.1 * cell).clamp(1, max);
            u16::try_from(count).unwrap_or(1)
        };
        (cells(width, cell.0, max_cols), cells(height, cell.1, max_rows))
    }
}

/// Metadata of an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// Width and height in pixels.
    pub pixels: (u32, u32),
    /// The file format, such as `png`.
    pub format: &'static str,
    /// Size of the encoded image in bytes.
    pub bytes: u64,
}

/// A rendered image.
#[derive(Debug, Clone)]
pub struct Drawn {
    pub facts: Facts,
    pub rows: PictureRows,
    /// The id under which the terminal stores it, if it does.
    pub saved_as: Option<u32>,
    /// Memory usage in bytes.
    pub weight: usize,
}

#[derive(Debug, Clone)]
pub enum PictureRows {
    /// Cells with symbols and colours.
    Text(Vec<Line<'static>>),
    /// The width in cells, and the escape sequence for each row.
    Strips(u16, Vec<Arc<str>>),
}

/// An image to be rendered.
#[derive(Debug, Clone)]
pub struct Wanted {
    pub key: Key,
    /// Base64 data.
    pub data: Body,
    /// Available width in cells.
    pub cols: u16,
}

/// Identifies an image without reading it: by the address of its data, and the width.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key {
    position: (usize, usize),
    cols: u16,
    epoch: u64,
}

/// An image at one width.
struct Entry {
    /// Prevents the address from being reused.
    data: WeakBody,
    state: State,
    /// Counter value of the last use.
    used: u64,
}

enum State {
    Wanted,
    Drawn { facts: Facts, rows: Vec<Line<'static>>, strips: Vec<u32>, saved_as: Option<u32>, weight: usize },
    Dropped(Facts, u16),
    Failed(String),
}

#[derive(Default)]
struct Cache {
    grid: Option<Grid>,
    entries: HashMap<Key, Entry>,
    wanted: Vec<(Key, Body)>,
    /// Ids of images that the terminal can delete.
    gone: Vec<u32>,
    looks: u64,
    rev: u64,
    epoch: u64,
}

thread_local! {
    static CACHE: RefCell<Cache> = RefCell::default();
}

/// Sets the resolution of images; `None` shows only descriptions. Clears the cache.
pub fn show(grid: Option<Grid>) {
    CACHE.with_borrow_mut(|cache| {
        let entries = std::mem::take(&mut cache.entries);
        for entry in entries.into_values() {
            cache.let_go(entry);
        }
        cache.wanted.clear();
        cache.grid = grid;
        cache.epoch += 1;
        cache.rev += 1;
    });
}

/// The resolution of images; `None` if only descriptions are shown.
pub fn grid() -> Option<Grid> {
    CACHE.with_borrow(|cache| cache.grid)
}

/// A counter that changes with the cache, so that callers know when to repeat their layout.
pub fn rev() -> u64 {
    CACHE.with_borrow(|cache| cache.rev)
}

/// The next image to render, most recently requested first.
pub fn take_wanted() -> Option<Wanted> {
    CACHE.with_borrow_mut(|cache| {
        while let Some((key, data)) = cache.wanted.pop() {
            if cache.entries.contains_key(&key) {
                return Some(Wanted { key, data, cols: key.cols });
            }
        }
        None
    })
}

/// Stores a rendered image, or the error. Returns whether it is still needed.
pub fn put(key: Key, outcome: Result<Drawn, String>) -> bool {
    CACHE.with_borrow_mut(|cache| {
        if !cache.entries.contains_key(&key) {
            if let Ok(Drawn { saved_as: Some(number), .. }) = outcome {
                cache.gone.push(number);
            }
            return false;
        }
        cache.rev += 1;
        let state = match outcome {
            Err(why) => State::Failed(why),
            Ok(Drawn { facts, rows, saved_as, weight }) => {
                let (rows, strips) = match rows {
                    PictureRows::Text(rows) => (rows, Vec::new()),
                    PictureRows::Strips(cols, texts) => {
                        let numbers: Vec<u32> = texts.into_iter().map(strip::keep).collect();
                        (numbers.iter().map(|number| strip::row(*number, cols)).collect(), numbers)
                    }
                };
                State::Drawn { facts, rows, strips, saved_as, weight }
            }
        };
        if let Some(entry) = cache.entries.get_mut(&key) {
            entry.state = state;
        }
        cache.trim();
        true
    })
}

/// Removes and returns the ids of images that the terminal can delete.
pub fn take_gone() -> Vec<u32> {
    CACHE.with_borrow_mut(|cache| std::mem::take(&mut cache.gone))
}

/// An image with its caption, in a maximum width. Only the caption while it is rendered, after an error, and
/// if images are disabled.
pub fn lines(
    data: &Body,
    mime: &str,
    name: &str,
    render: &RenderContext<'_>,
    cols: u16,
) -> Vec<Line<'static>> {
    let bytes = base64_bytes(data);
    let caption = |facts: Option<&Facts>, why: Option<&str>| {
        let mut parts = vec!["image".to_owned()];
        match facts {
            Some(facts) => {
                let by = if render.glyphs == Glyphs::plain() { "x" } else { "×" };
                parts.push(facts.format.to_owned());
                parts.push(format!("{}{by}{}", facts.pixels.0, facts.pixels.1));
                parts.push(byte_size(facts.bytes));
            }
            None => parts.extend([one_line(mime), byte_size(bytes)]),
        }
        parts.extend(why.map(str::to_owned));
        let dot = format!(" {} ", render.glyphs.dot);
        let facts = parts.join(&dot);
        // The end of a long path names the file.
        let name = match name.strip_prefix("file://") {
            Some(path) => render.path(Path::new(path)),
            None => one_line(name),
        };
        let room = usize::from(cols).saturating_sub(width(&facts) + width(&dot));
        let text = if name.is_empty() { facts } else { truncate_path(&name, room.max(8)) + &dot + &facts };
        Line::styled(truncate(&text, usize::from(cols)), render.theme.style(Role::TextDim))
    };
    CACHE.with_borrow_mut(|cache| {
        let Some(grid) = cache.grid else { return vec![caption(None, None)] };
        let position = (data.address(), data.len());
        let key = Key { position, cols: cols.min(MAX_COLS), epoch: cache.epoch };
        cache.looks += 1;
        let used = cache.looks;
        let blank = |rows: u16| vec![Mark::NO_LINE.row(Line::default()); usize::from(rows)];
        // The dimensions may be known from another width.
        let known = |entries: &HashMap<Key, Entry>| {
            let known = entries.iter().find(|(other, _)| other.position == position);
            known.and_then(|(_, entry)| entry.state.facts().cloned())
        };
        let pending = |facts: Option<&Facts>| {
            let mut lines = blank(facts.map_or(0, |facts| grid.fit(facts.pixels, cols).1));
            lines.push(caption(facts, None));
            lines
        };
        let Some(entry) = cache.entries.get_mut(&key) else {
            let facts = known(&cache.entries);
            if cache.entries.len() >= KNOWN_MAX {
                cache.forget_the_gone();
            }
            // Rendering at a previous width is no longer needed.
            let is_overtaken = |key: &Key| key.position == position;
            cache.wanted.retain(|(key, _)| !is_overtaken(key));
            cache.entries.retain(|key, entry| !is_overtaken(key) || !matches!(entry.state, State::Wanted));
            cache.entries.insert(key, Entry { data: data.downgrade(), state: State::Wanted, used });
            cache.wanted.push((key, data.clone()));
            return pending(facts.as_ref());
        };
        entry.used = used;
        match &entry.state {
            State::Wanted => pending(known(&cache.entries).as_ref()),
            State::Drawn { facts, rows, .. } => {
                let mut lines = rows.clone();
                lines.push(caption(Some(facts), None));
                lines
            }
            State::Dropped(facts, rows) => {
                let mut lines = blank(*rows);
                lines.push(caption(Some(facts), None));
                cache.wanted.push((key, data.clone()));
                lines
            }
            State::Failed(why) => vec![caption(None, Some(why))],
        }
    })
}

impl State {
    fn facts(&self) -> Option<&Facts> {
        match self {
            Self::Drawn { facts, .. } | Self::Dropped(facts, _) => Some(facts),
            Self::Wanted | Self::Failed(_) => None,
        }
    }
}

impl Cache {
    /// Evicts the least recently used images above the size limit.
    fn trim(&mut self) {
        self.forget_the_gone();
        let weight_of = |entry: &Entry| match &entry.state {
            State::Drawn { weight, .. } => *weight,
            _ => 0,
        };
        let mut total: usize = self.entries.values().map(weight_of).sum();
        while total > CACHED_BYTES {
            let drawn = self.entries.iter_mut().filter(|(_, entry)| weight_of(entry) > 0);
            let Some((_, entry)) = drawn.min_by_key(|(_, entry)| entry.used) else { break };
            total -= weight_of(entry);
            let State::Drawn { facts, rows, .. } = &entry.state else { break };
            let dropped = State::Dropped(facts.clone(), u16::try_from(rows.len()).unwrap_or(MAX_ROWS));
            let state = std::mem::replace(&mut entry.state, dropped);
            let old = Entry { state, data: entry.data.clone(), used: 0 };
            self.let_go(old);
            self.rev += 1;
        }
    }

    /// Removes images that are no longer in any transcript.
    fn forget_the_gone(&mut self) {
        let gone: Vec<Key> =
            self.entries.iter().filter(|(_, entry)| !entry.data.exists()).map(|(key, _)| *key).collect();
        for key in gone {
            if let Some(entry) = self.entries.remove(&key) {
                self.let_go(entry);
            }
        }
    }

    fn let_go(&mut self, entry: Entry) {
        if let State::Drawn { strips, saved_as, .. } = entry.state {
            strips.into_iter().for_each(strip::drop);
            self.gone.extend(saved_as);
        }
    }
}

/// The size of decoded base64 data in bytes.
pub fn base64_bytes(data: &str) -> u64 {
    let padding = data.bytes().rev().take_while(|byte| *byte == b'=').count();
    (data.len() as u64 / 4 * 3).saturating_sub(padding as u64)
}

/// A row of cells, with equally styled ones merged into spans.
pub fn row_of_cells<'a>(cells: impl Iterator<Item = (&'a str, ratatui::style::Style)>) -> Line<'static> {
    let mut spans: Vec<Span<'static>> = Vec::new();
    for (symbol, style) in cells {
        match spans.last_mut() {
            Some(last) if last.style == style => last.content.to_mut().push_str(symbol),
            _ => spans.push(Span::styled(symbol.to_owned(), style)),
        }
    }
    Mark::NO_LINE.row(Line::from(spans))
}

#[cfg(test)]
pub(crate) mod tests;
