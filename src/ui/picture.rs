//! Pictures in the transcript, as rows of cells.
//!
//! Duty: which pictures are drawn, how large, and what stands where one cannot be seen; asks for those that are looked
//! at. Not its duty: reading and encoding them (`runtime::pictures`), which takes too long for a frame.
//! Data: [`lines`] is asked for a picture while a frame is laid out; what is missing waits in [`take_wanted`], and what
//! became of it comes back by [`put`]. As with links, all of it lives on the thread that draws.
//! Invariants: a picture's rows are text as any other to the layout, so they scroll, wrap around dialogs and go away as
//! text does; what is not looked at any more is dropped once there is much of it, but for its size.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::{Arc, Weak};

use ratatui::text::{Line, Span};

use super::render_context::{Glyphs, RenderContext, size as bytes_in_words};
use super::text::copy_hint::Mark;
use super::text::{one_line, truncate};
use super::theme::Role;

pub mod strip;

/// The largest picture, in cells.
pub const MOST_COLS: u16 = 80;
/// The largest picture, in rows.
pub const MOST_ROWS: u16 = 20;

/// Bytes of drawn pictures that are kept.
const KEPT_BYTES: usize = 24 * 1024 * 1024;
/// Pictures of which something is known.
const KNOWN_MAX: usize = 2048;

/// What a picture is measured in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grid {
    /// Points of a picture that a cell shows, across and down.
    pub cell: (u16, u16),
    /// Points that all of a picture may have on the screen.
    pub most_points: u32,
}

impl Grid {
    /// The columns and rows of a picture of so many points, where `cols` columns are free. Pictures are made smaller,
    /// never larger; each has a cell at least.
    pub fn fit(self, (width, height): (u32, u32), cols: u16) -> (u16, u16) {
        let cell = (u64::from(self.cell.0.max(1)), u64::from(self.cell.1.max(1)));
        let (width, height) = (u64::from(width.max(1)), u64::from(height.max(1)));
        let most_cols = u64::from(cols.clamp(1, MOST_COLS));
        let most_rows = u64::from(MOST_ROWS).min(u64::from(self.most_points) / (most_cols * cell.0 * cell.1));
        let most_rows = most_rows.max(1);
        // As a fraction: by how much it is made smaller.
        let mut shrink = (1, 1);
        for (room, wish) in [(most_cols * cell.0, width), (most_rows * cell.1, height)] {
            if room * shrink.1 < wish * shrink.0 {
                shrink = (room, wish);
            }
        }
        let cells = |points: u64, cell: u64, most: u64| {
            let count = (points * shrink.0).div_ceil(shrink.1 * cell).clamp(1, most);
            u16::try_from(count).unwrap_or(1)
        };
        (cells(width, cell.0, most_cols), cells(height, cell.1, most_rows))
    }
}

/// What is known of a picture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// Columns and rows of points.
    pub points: (u32, u32),
    /// What it is: `png` and so on.
    pub format: &'static str,
    /// Bytes that came.
    pub bytes: u64,
}

/// A picture in cells.
#[derive(Debug, Clone)]
pub struct Drawn {
    /// What it is a picture of.
    pub facts: Facts,
    pub rows: PictureRows,
    /// The number by which the terminal keeps it, if it does.
    pub kept_as: Option<u32>,
    /// Bytes that it costs.
    pub weight: usize,
}

/// Rows of a picture.
#[derive(Debug, Clone)]
pub enum PictureRows {
    /// Cells with symbols and colours.
    Text(Vec<Line<'static>>),
    /// What the terminal is sent for each row, and the columns that this covers.
    Strips(u16, Vec<Arc<str>>),
}

/// A picture that somebody looks at.
#[derive(Debug, Clone)]
pub struct Wanted {
    pub key: Key,
    /// In base64.
    pub data: Arc<str>,
    /// Columns that are free.
    pub cols: u16,
}

/// Tells pictures apart without reading them: where their text lies, and the columns that are free.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key {
    place: (usize, usize),
    cols: u16,
    epoch: u64,
}

/// A picture in one width.
struct Entry {
    /// Keeps the place of the text from being taken by another one.
    data: Weak<str>,
    state: State,
    /// The look at which it was last asked for.
    used: u64,
}

enum State {
    /// Somebody is to read it.
    Wanted,
    Drawn {
        facts: Facts,
        rows: Vec<Line<'static>>,
        strips: Vec<u32>,
        kept_as: Option<u32>,
        weight: usize,
    },
    /// It was drawn, and is not kept any more.
    Dropped(Facts, u16),
    Failed(String),
}

#[derive(Default)]
struct Cache {
    grid: Option<Grid>,
    entries: HashMap<Key, Entry>,
    wanted: Vec<Key>,
    /// Numbers of pictures that the terminal need not keep any more.
    gone: Vec<u32>,
    looks: u64,
    rev: u64,
    epoch: u64,
}

thread_local! {
    static CACHE: RefCell<Cache> = RefCell::default();
}

/// Pictures are shown from now on, measured so; `None`: only told in words. All that was drawn is void.
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

/// How pictures are measured; `None`: they are only told in words.
pub fn grid() -> Option<Grid> {
    CACHE.with_borrow(|cache| cache.grid)
}

/// Changes when a picture came or went, so that whoever shows one must lay it out anew.
pub fn rev() -> u64 {
    CACHE.with_borrow(|cache| cache.rev)
}

/// The picture that is to be read next: the one that was asked for last.
pub fn take_wanted() -> Option<Wanted> {
    CACHE.with_borrow_mut(|cache| {
        while let Some(key) = cache.wanted.pop() {
            if let Some(entry) = cache.entries.get(&key)
                && let Some(data) = entry.data.upgrade()
            {
                return Some(Wanted { key, data, cols: key.cols });
            }
        }
        None
    })
}

/// What became of a picture that was wanted: its rows, or why there are none. Says whether it is still of use.
pub fn put(key: Key, outcome: Result<Drawn, String>) -> bool {
    CACHE.with_borrow_mut(|cache| {
        if !cache.entries.contains_key(&key) {
            if let Ok(Drawn { kept_as: Some(number), .. }) = outcome {
                cache.gone.push(number);
            }
            return false;
        }
        cache.rev += 1;
        let state = match outcome {
            Err(why) => State::Failed(why),
            Ok(Drawn { facts, rows, kept_as, weight }) => {
                let (rows, strips) = match rows {
                    PictureRows::Text(rows) => (rows, Vec::new()),
                    PictureRows::Strips(cols, texts) => {
                        let numbers: Vec<u32> =
                            texts.into_iter().map(|text| strip::keep(text, cols)).collect();
                        (numbers.iter().map(|number| strip::row(*number, cols)).collect(), numbers)
                    }
                };
                State::Drawn { facts, rows, strips, kept_as, weight }
            }
        };
        if let Some(entry) = cache.entries.get_mut(&key) {
            entry.state = state;
        }
        cache.trim();
        true
    })
}

/// Numbers of pictures that the terminal need not keep any more.
pub fn take_gone() -> Vec<u32> {
    CACHE.with_borrow_mut(|cache| std::mem::take(&mut cache.gone))
}

/// A picture and what it is, in at most so many columns. Only in words while it is read, when it cannot be, and where
/// no pictures are shown.
pub fn lines(
    data: &Arc<str>,
    mime: &str,
    name: &str,
    look: &RenderContext<'_>,
    cols: u16,
) -> Vec<Line<'static>> {
    let bytes = base64_bytes(data);
    let caption = |facts: Option<&Facts>, why: Option<&str>| {
        let mut parts = vec!["image".to_owned()];
        match facts {
            Some(facts) => {
                let by = if look.glyphs == Glyphs::plain() { "x" } else { "×" };
                parts.push(facts.format.to_owned());
                parts.push(format!("{}{by}{}", facts.points.0, facts.points.1));
                parts.push(bytes_in_words(facts.bytes));
            }
            None => parts.extend([one_line(mime), bytes_in_words(bytes)]),
        }
        parts.extend(why.map(str::to_owned));
        if !name.is_empty() {
            parts.push(one_line(name));
        }
        let text = parts.join(&format!(" {} ", look.glyphs.dot));
        Line::styled(truncate(&text, usize::from(cols)), look.theme.style(Role::TextDim))
    };
    CACHE.with_borrow_mut(|cache| {
        let Some(grid) = cache.grid else { return vec![caption(None, None)] };
        let place = (data.as_ptr() as usize, data.len());
        let key = Key { place, cols: cols.min(MOST_COLS), epoch: cache.epoch };
        cache.looks += 1;
        let used = cache.looks;
        let blank = |rows: u16| vec![Mark::NO_LINE.row(Line::default()); usize::from(rows)];
        let Some(entry) = cache.entries.get_mut(&key) else {
            // In another width it is known how large it will be.
            let known = cache.entries.iter().find(|(other, _)| other.place == place);
            let facts = known.and_then(|(_, entry)| entry.state.facts().cloned());
            if cache.entries.len() >= KNOWN_MAX {
                cache.forget_the_gone();
            }
            // In the width of a moment ago nobody needs it any more.
            let is_overtaken = |key: &Key| key.place == place;
            cache.wanted.retain(|key| !is_overtaken(key));
            cache.entries.retain(|key, entry| !is_overtaken(key) || !matches!(entry.state, State::Wanted));
            cache.entries.insert(key, Entry { data: Arc::downgrade(data), state: State::Wanted, used });
            cache.wanted.push(key);
            let rows = facts.as_ref().map_or(0, |facts| grid.fit(facts.points, cols).1);
            let mut lines = blank(rows);
            lines.push(caption(facts.as_ref(), None));
            return lines;
        };
        entry.used = used;
        match &entry.state {
            State::Wanted => {
                let facts = cache.entries.iter().find(|(other, _)| other.place == place);
                let facts = facts.and_then(|(_, entry)| entry.state.facts());
                let rows = facts.map_or(0, |facts| grid.fit(facts.points, cols).1);
                let mut lines = blank(rows);
                lines.push(caption(facts, None));
                lines
            }
            State::Drawn { facts, rows, .. } => {
                let mut lines = rows.clone();
                lines.push(caption(Some(facts), None));
                lines
            }
            State::Dropped(facts, rows) => {
                let mut lines = blank(*rows);
                lines.push(caption(Some(facts), None));
                cache.wanted.push(key);
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
    /// Drops what was not looked at for longest.
    fn trim(&mut self) {
        self.forget_the_gone();
        let weight_of = |entry: &Entry| match &entry.state {
            State::Drawn { weight, .. } => *weight,
            _ => 0,
        };
        let mut total: usize = self.entries.values().map(weight_of).sum();
        while total > KEPT_BYTES {
            let drawn = self.entries.iter_mut().filter(|(_, entry)| weight_of(entry) > 0);
            let Some((_, entry)) = drawn.min_by_key(|(_, entry)| entry.used) else { break };
            total -= weight_of(entry);
            let State::Drawn { facts, rows, .. } = &entry.state else { break };
            let dropped = State::Dropped(facts.clone(), u16::try_from(rows.len()).unwrap_or(MOST_ROWS));
            let state = std::mem::replace(&mut entry.state, dropped);
            let old = Entry { state, data: entry.data.clone(), used: 0 };
            self.let_go(old);
            self.rev += 1;
        }
    }

    /// Forgets pictures that stand in no transcript any more.
    fn forget_the_gone(&mut self) {
        let gone: Vec<Key> = self
            .entries
            .iter()
            .filter(|(_, entry)| entry.data.strong_count() == 0)
            .map(|(key, _)| *key)
            .collect();
        for key in gone {
            if let Some(entry) = self.entries.remove(&key) {
                self.let_go(entry);
            }
        }
    }

    fn let_go(&mut self, entry: Entry) {
        if let State::Drawn { strips, kept_as, .. } = entry.state {
            strips.into_iter().for_each(strip::drop);
            self.gone.extend(kept_as);
        }
    }
}

/// How many bytes a base64 text stands for.
pub fn base64_bytes(data: &str) -> u64 {
    let padding = data.bytes().rev().take_while(|byte| *byte == b'=').count();
    (data.len() as u64 / 4 * 3).saturating_sub(padding as u64)
}

/// A row of cells, of which those that look alike are put together.
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
