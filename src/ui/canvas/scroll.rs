//! Finds rows that moved between two frames.
//!
//! A row is represented by a number: the key of its content, or a hash of its cells.

/// Minimum number of rows that a move must save.
pub const MIN_MOVED: usize = 3;

/// Maximum number of rows searched in the previous frame.
const MAX_LOOKUPS: usize = 6;

/// A move of rows within a region of the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scroll {
    /// The first row of the region.
    pub top: u16,
    /// The row after the region.
    pub bottom: u16,
    /// Number of rows that they move up; negative: down.
    pub up: i32,
}

impl Scroll {
    /// The same move with rows counted from `y`.
    #[must_use]
    pub fn from(self, y: u16) -> Self {
        Self { top: self.top + y, bottom: self.bottom + y, ..self }
    }

    /// The previous position of a row; `None`: it is new.
    pub fn source(self, row: usize) -> Option<usize> {
        let region = usize::from(self.top)..usize::from(self.bottom);
        if !region.contains(&row) {
            return Some(row);
        }
        row.checked_add_signed(self.up.try_into().ok()?).filter(|source| region.contains(source))
    }

    /// Moves the rows of a screen. Returns the cells of the new rows, whose content is undefined.
    pub fn shift<T>(self, cells: &mut [T], cols: u16) -> &mut [T] {
        let cols = usize::from(cols);
        let region = usize::from(self.top) * cols..usize::from(self.bottom) * cols;
        let Some(region) = cells.get_mut(region) else { return &mut [] };
        let by = (self.up.unsigned_abs() as usize * cols).min(region.len());
        let incoming = if self.up > 0 {
            region.rotate_left(by);
            region.len() - by..region.len()
        } else {
            region.rotate_right(by);
            0..by
        };
        region.get_mut(incoming).unwrap_or_default()
    }
}

/// Finds the move that saves the most rows; `None`: none is worthwhile.
pub fn find(before: &[u64], now: &[u64]) -> Option<Scroll> {
    let wrong = || (0..).zip(now.iter().zip(before)).filter(|(_, (now, before))| now != before);
    wrong().nth(MIN_MOVED)?;
    // Trying all moves would be a hundred times slower.
    let moves = wrong().filter_map(|(row, (key, _)): (i32, _)| {
        let was = before.iter().position(|was| was == key)?;
        Some(i32::try_from(was).ok()? - row)
    });
    let gains = moves.take(MAX_LOOKUPS).filter_map(|up| gain(before, now, up));
    let (gain, scroll) = gains.max_by_key(|(gain, scroll)| (*gain, -scroll.up.abs()))?;
    (gain > MIN_MOVED).then_some(scroll)
}

/// Number of rows saved by a move of the rows that need it.
fn gain(before: &[u64], now: &[u64], up: i32) -> Option<(usize, Scroll)> {
    let was = |row: i32| usize::try_from(row).ok().and_then(|row| before.get(row));
    let mut right = 0_usize;
    let mut moved: Option<(i32, i32)> = None;
    for (row, key) in (0..).zip(now) {
        if was(row) != Some(key) && was(row + up) == Some(key) {
            right += 1;
            moved = Some((moved.map_or(row, |(first, _)| first), row));
        }
    }
    let (first, last) = moved?;
    let (top, bottom) = if up > 0 { (first, last + up + 1) } else { (first + up, last + 1) };
    let scroll = Scroll { top: top.try_into().ok()?, bottom: bottom.try_into().ok()?, up };
    let region = usize::from(scroll.top)..usize::from(scroll.bottom);
    let broken = region.filter(|row| {
        let key = now.get(*row);
        before.get(*row) == key && scroll.source(*row).and_then(|source| before.get(source)) != key
    });
    Some((right.saturating_sub(broken.count()), scroll))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moved(
        before: impl IntoIterator<Item = u64>,
        now: impl IntoIterator<Item = u64>,
    ) -> Option<(u16, u16, i32)> {
        let (before, now): (Vec<u64>, Vec<u64>) = (before.into_iter().collect(), now.into_iter().collect());
        let scroll = find(&before, &now)?;
        let mut rows = before.clone();
        scroll.shift(&mut rows, 1).fill(u64::MAX);
        for (row, key) in rows.iter().enumerate() {
            assert_eq!(scroll.source(row).map_or(u64::MAX, |source| before[source]), *key);
        }
        Some((scroll.top, scroll.bottom, scroll.up))
    }

    #[test]
    fn moved_rows_are_found() {
        assert_eq!(moved(0..40, 0..40), None);
        assert_eq!(moved(0..40, 3..43), Some((0, 40, 3)));
        assert_eq!(moved(3..43, 0..40), Some((0, 40, -3)));
        assert_eq!(moved(0..40, 100..140), None);
        // Blank rows are equal at any position.
        assert_eq!(moved([7; 40], [7; 40]), None);
    }

    #[test]
    fn rows_around_moved_rows_stay() {
        let now = (0..10).chain([90]).chain(10..30).chain(31..40);
        assert_eq!(moved(0..40, now), Some((10, 31, -1)));
        assert_eq!(moved(0..40, (0..10).chain(12..40).chain([90, 91])), Some((10, 40, 2)));
    }
}
