//! Rows of the transcript that stay on the screen as they are.
//!
//! Duty: knows what each row of the last frame was drawn from, so that a frame draws only what differs; moves rows that
//! only moved. Not its duty: what a row shows (`transcript::paint`), bytes for the terminal (`runtime::paint`).
//! Data: the transcript's area comes in by [`RowCache::begin`], a key for each of its rows by [`RowCache::settle`]; what was
//! drawn leaves by [`RowCache::is_kept`] and [`RowCache::moved`].
//! Invariants: a row that is kept has the cells that drawing it would give; a frame in which something may lie above
//! the transcript keeps nothing, nor does the one after it.

use std::hash::{BuildHasher, Hash};

use foldhash::quality::RandomState;
use ratatui::buffer::{Buffer, Cell};
use ratatui::layout::Rect;

/// Rows are moved when so many more of them are right then.
const LEAST_MOVED: usize = 3;

/// How many rows are asked where they were before.
const ASKED: usize = 6;

/// Rows that moved on the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moved {
    /// The first row.
    pub top: u16,
    /// Behind the last row.
    pub bottom: u16,
    /// How far up; negative: down.
    pub up: i32,
}

/// The rows of the last frame, and what becomes of them.
#[derive(Debug, Default)]
pub struct RowCache {
    hasher: RandomState,
    /// What the rows of the area were drawn from; empty: nothing is known.
    keys: Vec<u64>,
    area: Rect,
    /// What all rows depend on; `None`: nothing of this frame is to be kept.
    ground: Option<u64>,
    blank: Cell,
    is_keeping: bool,
    /// By row of the area.
    stays: Vec<bool>,
    moved: Option<Moved>,
    is_full_width: bool,
}

impl RowCache {
    /// Begins a frame: makes everything blank that is not of this area, or all where nothing of the last frame is to
    /// be kept. `ground` is what all rows depend on (`None`: something else is drawn there), and whether the buffer
    /// holds the last frame.
    pub(super) fn begin(
        &mut self,
        buf: &mut Buffer,
        blank: Cell,
        area: Rect,
        (ground, is_old): (Option<u64>, bool),
    ) {
        let area = area.intersection(buf.area);
        self.stays.clear();
        self.moved = None;
        let is_same = blank == self.blank && area == self.area;
        self.is_keeping =
            is_old && is_same && ground.is_some() && ground == self.ground && !self.keys.is_empty();
        (self.area, self.ground, self.blank) = (area, ground, blank);
        self.is_full_width = area.width == buf.area.width;
        if !self.is_keeping {
            buf.content.fill(self.blank.clone());
            return;
        }
        let (top, bottom) = (offset(buf, area.y), offset(buf, area.bottom()));
        let blank = &self.blank;
        for part in [0..top, bottom..buf.content.len()] {
            buf.content.get_mut(part).unwrap_or_default().fill(blank.clone());
        }
        if !self.is_full_width {
            for y in area.y..area.bottom() {
                self.fill(buf, Rect { x: buf.area.x, width: area.x - buf.area.x, y, height: 1 });
                self.fill(
                    buf,
                    Rect { x: area.right(), width: buf.area.right() - area.right(), y, height: 1 },
                );
            }
        }
    }

    /// Nothing is to be kept of this frame: what lies in the area does not depend on its rows alone.
    pub(super) fn refuse(&mut self, buf: &mut Buffer) {
        if std::mem::take(&mut self.is_keeping) {
            self.fill(buf, self.area);
        }
        self.ground = None;
        self.keys.clear();
    }

    /// The key of a row: of all that it is drawn from, beside what the whole frame depends on.
    pub(super) fn key(&self, row: impl Hash) -> u64 {
        self.hasher.hash_one(row)
    }

    /// Takes the keys of all rows of the area, from top to bottom, moves what only moved, and makes blank what is to
    /// be drawn.
    pub(super) fn settle(&mut self, mut keys: Vec<u64>, buf: &mut Buffer) {
        keys.truncate(self.area.height.into());
        let before = std::mem::take(&mut self.keys);
        if self.is_keeping {
            let up = if self.is_full_width { find_move(&before, &keys) } else { 0 };
            if up != 0 {
                self.shift(buf, up);
            }
            self.stays.extend((0..).zip(&keys).map(|(row, key)| {
                usize::try_from(row + up).ok().and_then(|row| before.get(row)) == Some(key)
            }));
            for (y, _) in (self.area.y..).zip(&self.stays).filter(|(_, stays)| !**stays) {
                self.fill(buf, Rect { y, height: 1, ..self.area });
            }
        }
        if self.ground.is_some() {
            self.keys = keys;
        }
    }

    /// Whether a row of the area stays as it is.
    pub(super) fn stays(&self, y: u16) -> bool {
        let row = y.checked_sub(self.area.y);
        row.and_then(|row| self.stays.get(usize::from(row))).is_some_and(|stays| *stays)
    }

    /// Whether all cells of a row of the screen are as in the last frame, after [`RowCache::moved`].
    pub fn is_kept(&self, y: u16) -> bool {
        self.is_full_width && self.stays(y)
    }

    /// The rows that were moved.
    pub fn moved(&self) -> Option<Moved> {
        self.moved
    }

    fn shift(&mut self, buf: &mut Buffer, up: i32) {
        let rows = offset(buf, self.area.y)..offset(buf, self.area.bottom());
        let by = up.unsigned_abs() as usize * usize::from(self.area.width);
        let Some(cells) = buf.content.get_mut(rows).filter(|cells| by <= cells.len()) else { return };
        if up > 0 {
            cells.rotate_left(by);
        } else {
            cells.rotate_right(by);
        }
        self.moved = Some(Moved { top: self.area.y, bottom: self.area.bottom(), up });
    }

    fn fill(&self, buf: &mut Buffer, area: Rect) {
        for y in area.y..area.bottom() {
            let from = offset(buf, y) + usize::from(area.x - buf.area.x);
            let row = buf.content.get_mut(from..from + usize::from(area.width)).unwrap_or_default();
            row.fill(self.blank.clone());
        }
    }
}

/// Where a row begins.
fn offset(buf: &Buffer, y: u16) -> usize {
    usize::from(y - buf.area.y) * usize::from(buf.area.width)
}

/// How many rows up most of what is there has moved; 0: it is not worth it.
fn find_move(before: &[u64], now: &[u64]) -> i32 {
    let right = |up: i32| {
        let pairs = (0..).zip(now).filter(|(row, key)| {
            usize::try_from(*row + up).ok().and_then(|row: usize| before.get(row)) == Some(key)
        });
        pairs.count()
    };
    let stays = right(0);
    if stays + LEAST_MOVED >= now.len() {
        return 0;
    }
    // Only where some rows that are wrong now were before is tried: all moves would be a hundred times the work.
    let wrong = (0..).zip(now.iter().zip(before)).filter(|(_, (now, before))| now != before);
    let moves = wrong.filter_map(|(row, (key, _))| {
        let was = before.iter().position(|was| was == key)?;
        Some(i32::try_from(was).ok()? - row)
    });
    let best = moves.take(ASKED).map(|up: i32| (right(up), up)).max_by_key(|(count, up)| (*count, -up.abs()));
    best.filter(|(count, _)| *count > stays + LEAST_MOVED).map_or(0, |(_, up)| up)
}

#[cfg(test)]
mod tests;
