//! Data of a screen row in addition to its cells: links and pictures.

use std::ops::Range;

/// The links and pictures of a row, from left to right.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RowNotes {
    /// Columns of links, with the number of the link.
    pub links: Vec<(Range<u16>, u32)>,
    /// Columns of picture rows, with the number of the picture. Each is painted as a whole.
    pub pictures: Vec<(Range<u16>, u32)>,
}

impl RowNotes {
    /// The number of the link in a column; 0: none.
    pub fn link_at(&self, x: u16) -> u32 {
        self.links.iter().find(|(cols, _)| cols.contains(&x)).map_or(0, |(_, number)| *number)
    }

    pub fn picture_at(&self, x: u16) -> Option<u32> {
        self.pictures.iter().find(|(cols, _)| cols.start == x).map(|(_, number)| *number)
    }

    /// Something else is drawn over these columns. A part of a picture cannot be painted, so it is removed.
    pub fn cut(&mut self, cols: &Range<u16>) {
        let is_apart = |of: &Range<u16>| of.end <= cols.start || of.start >= cols.end;
        self.pictures.retain(|(of, _)| is_apart(of));
        let links = std::mem::take(&mut self.links);
        self.links.extend(links.into_iter().flat_map(|(of, number)| {
            let parts = [of.start..of.end.min(cols.start), of.start.max(cols.end)..of.end];
            let is_cut = !is_apart(&of);
            let parts = if is_cut { parts } else { [of.clone(), 0..0] };
            parts.into_iter().filter(|part| !part.is_empty()).map(move |part| (part, number))
        }));
    }

    pub fn clear(&mut self) {
        self.links.clear();
        self.pictures.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_covered_link_is_cut_and_a_covered_picture_removed() {
        let all = RowNotes { links: vec![(2..9, 1), (12..14, 2)], pictures: vec![(20..30, 3)] };
        let cut = |cols: Range<u16>| {
            let mut notes = all.clone();
            notes.cut(&cols);
            (notes.links, notes.pictures.len())
        };
        assert_eq!(cut(4..6), (vec![(2..4, 1), (6..9, 1), (12..14, 2)], 1));
        assert_eq!(cut(0..13), (vec![(13..14, 2)], 1));
        assert_eq!(cut(29..40), (all.links.clone(), 0));
        assert_eq!(cut(14..20), (all.links.clone(), 1));
        assert_eq!((all.link_at(8), all.link_at(9), all.picture_at(20)), (1, 0, Some(3)));
    }
}
