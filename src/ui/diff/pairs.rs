//! Pairs removed lines with similar added lines, in order, so that they are aligned and their changed words
//! can be highlighted (`diff::draw`).

use std::collections::HashMap;

use crate::ui::text::boundary_before;

/// Larger hunks are paired line by line, because comparing all pairs would be too slow.
const PAIRS_MAX: usize = 1600;
/// Only the start of longer lines is compared.
const LINE_MAX_BYTES: usize = 300;
/// Minimum similarity of a pair, in percent.
const ALIKE_PERCENT: u32 = 40;

/// Pairs of indexes into both lists, increasing in both.
pub(super) fn alike(old: &[&str], new: &[&str]) -> Vec<(usize, usize)> {
    if old.len() * new.len() > PAIRS_MAX {
        return (0..old.len().min(new.len())).map(|at| (at, at)).collect();
    }
    if let ([_], [_]) = (old, new) {
        return vec![(0, 0)];
    }
    let (old_words, new_words): (Vec<_>, Vec<_>) =
        (old.iter().map(|line| words(line)).collect(), new.iter().map(|line| words(line)).collect());
    // The maximum total similarity of the remaining lines, for each pair of positions.
    let width = new.len() + 1;
    let mut best = vec![0_u32; (old.len() + 1) * width];
    let mut shared = vec![0_u32; old.len() * new.len()];
    let at = |table: &[u32], position: usize| table.get(position).copied().unwrap_or(0);
    for (i, a) in old_words.iter().enumerate().rev() {
        for (j, b) in new_words.iter().enumerate().rev() {
            let share = share(a, b);
            let pair = if share < ALIKE_PERCENT { 0 } else { share + at(&best, (i + 1) * width + j + 1) };
            if let Some(known) = shared.get_mut(i * new.len() + j) {
                *known = share;
            }
            let max = pair.max(at(&best, (i + 1) * width + j)).max(at(&best, i * width + j + 1));
            if let Some(position) = best.get_mut(i * width + j) {
                *position = max;
            }
        }
    }
    let mut out = Vec::new();
    let (mut i, mut j) = (0, 0);
    while i < old.len() && j < new.len() {
        let share = at(&shared, i * new.len() + j);
        let max = at(&best, i * width + j);
        if share >= ALIKE_PERCENT && max == share + at(&best, (i + 1) * width + j + 1) {
            out.push((i, j));
            (i, j) = (i + 1, j + 1);
        } else if max == at(&best, (i + 1) * width + j) {
            i += 1;
        } else {
            j += 1;
        }
    }
    out
}

/// The words and symbols of a line with their counts, and the total number of bytes.
struct Words<'t> {
    counts: HashMap<&'t str, u32>,
    bytes: u32,
}

fn words(line: &str) -> Words<'_> {
    let mut counts: HashMap<&str, u32> = HashMap::new();
    let mut bytes = 0;
    let mut rest = line.get(..boundary_before(line, LINE_MAX_BYTES)).unwrap_or_default().trim();
    while let Some(first) = rest.chars().next() {
        let is_word = |ch: char| ch.is_alphanumeric() || ch == '_';
        let len = if is_word(first) {
            rest.find(|ch| !is_word(ch)).unwrap_or(rest.len())
        } else {
            first.len_utf8()
        };
        let (word, after) = rest.split_at(len);
        if !first.is_whitespace() {
            *counts.entry(word).or_default() += 1;
            bytes += u32::try_from(len).unwrap_or(0);
        }
        rest = after;
    }
    Words { counts, bytes }
}

/// The similarity of two lines, in percent.
fn share(a: &Words<'_>, b: &Words<'_>) -> u32 {
    let both = a.counts.iter().map(|(word, count)| {
        let count = b.counts.get(word).map_or(0, |other| *count.min(other));
        count * u32::try_from(word.len()).unwrap_or(0)
    });
    (200 * both.sum::<u32>()).checked_div(a.bytes + b.bytes).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn similar_lines_are_paired_across_different_ones() {
        let old = ["    print(count, item, price)", "    total = total + price"];
        let new = ["    cost = count * price", "    print(count, item, cost)", "    total = total + cost"];
        assert_eq!(alike(&old, &new), [(0, 1), (1, 2)]);
        assert_eq!(alike(&["a b c", "x y z"], &["1 2 3"]), []);
        assert_eq!(alike(&["only"], &["one"]), [(0, 0)], "a single line is always paired");
        assert_eq!(alike(&["", ""], &["", "x"]), []);
    }

    #[test]
    fn pairs_never_cross_and_large_hunks_are_cheap() {
        let lines: Vec<String> = (0..30).map(|at| format!("let value_{} = {at};", at * 7 % 30)).collect();
        let (old, mut new): (Vec<&str>, Vec<&str>) =
            (lines.iter().map(String::as_str).collect(), lines.iter().map(String::as_str).collect());
        new.reverse();
        let pairs = alike(&old, &new);
        assert!(!pairs.is_empty() && pairs.is_sorted_by(|a, b| a.0 < b.0 && a.1 < b.1), "{pairs:?}");
        let many = vec!["same"; 5000];
        assert_eq!(alike(&many, &many).len(), 5000);
    }
}
