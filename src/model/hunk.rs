//! The hunks of a changed text, and the text with some of them reverted.

use std::ops::Range;
use std::time::Duration;

use similar::{Algorithm, DiffOp, TextDiff};

/// Timeout for computing the smallest diff; after it, the best result is used.
const DEADLINE: Duration = Duration::from_millis(500);

/// For longer texts, everything between the first and the last difference counts as replaced.
pub const MAX_COMPARED_LINES: usize = 100_000;

/// Lines that were replaced by others. Both ranges count lines from 0, and one of them may be empty.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Hunk {
    pub old: Range<u32>,
    pub new: Range<u32>,
}

/// The hunks between two texts, in order. Line ends count, so that a reverted hunk restores them. May take up to
/// half a second.
pub fn hunks(old: &str, new: &str) -> Vec<Hunk> {
    let mut found: Vec<Hunk> = Vec::new();
    let range = |range: Range<usize>| index(range.start)..index(range.end);
    let ops = line_operations(&lines(old), &lines(new));
    for op in ops.iter().filter(|op| !matches!(op, DiffOp::Equal { .. })) {
        let (old, new) = (range(op.old_range()), range(op.new_range()));
        match found.last_mut().filter(|last| (last.old.end, last.new.end) == (old.start, new.start)) {
            Some(last) => (last.old.end, last.new.end) = (old.end, new.end),
            None => found.push(Hunk { old, new }),
        }
    }
    found
}

/// The old text with these hunks of the new one, which are in order; `None`: they do not fit the texts.
pub fn with_hunks(old: &str, new: &str, hunks: &[Hunk]) -> Option<String> {
    splice(old, new, hunks.iter().map(|hunk| (&hunk.old, &hunk.new)))
}

/// The new text with these hunks, which are in order, as in the old one; `None`: they do not fit the texts.
pub fn without_hunks(old: &str, new: &str, hunks: &[Hunk]) -> Option<String> {
    splice(new, old, hunks.iter().map(|hunk| (&hunk.new, &hunk.old)))
}

/// The base with the changes of both texts; `None` if they overlap or touch. May take up to a second.
pub fn merge(base: &str, ours: &str, theirs: &str) -> Option<String> {
    let of = |text| hunks(base, text).into_iter().map(move |hunk| (hunk, text));
    let mut all: Vec<(Hunk, &str)> = of(ours).chain(of(theirs)).collect();
    all.sort_by_key(|(hunk, _)| (hunk.old.start, hunk.old.end));
    // What both did in the same way is one change.
    let new = |(hunk, text): &(Hunk, &str)| {
        lines(text).get(hunk.new.start as usize..hunk.new.end as usize).map(<[&str]>::concat)
    };
    all.dedup_by(|a, b| a.0.old == b.0.old && new(a) == new(b));
    if all.windows(2).any(|pair| matches!(pair, [(a, _), (b, _)] if a.old.end >= b.old.start)) {
        return None;
    }
    let base = lines(base);
    let (mut out, mut at) = (String::new(), 0);
    for change in &all {
        out.extend(base.get(at..change.0.old.start as usize)?.iter().copied());
        out.push_str(&new(change)?);
        at = change.0.old.end as usize;
    }
    out.extend(base.get(at..)?.iter().copied());
    Some(out)
}

/// The lines of these hunks as in a patch, without line ends: removed lines begin with `-`, new ones with `+`. Returns at
/// most `max` lines, and the number of others.
pub fn patch_lines(old: &str, new: &str, hunks: &[Hunk], max: usize) -> (Vec<String>, usize) {
    let (olds, news): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let of = |lines: &[&str], range: &Range<u32>, mark: char| -> Vec<String> {
        let range = range.start as usize..(range.end as usize).min(lines.len());
        lines.get(range).unwrap_or_default().iter().map(|line| format!("{mark}{line}")).collect()
    };
    let mut all = Vec::new();
    for Hunk { old, new } in hunks {
        all.extend(of(&olds, old, '-'));
        all.extend(of(&news, new, '+'));
    }
    let more = all.len().saturating_sub(max);
    all.truncate(max);
    (all, more)
}

fn splice<'a>(
    text: &str,
    other: &str,
    parts: impl Iterator<Item = (&'a Range<u32>, &'a Range<u32>)>,
) -> Option<String> {
    let (text, other) = (lines(text), lines(other));
    let (mut out, mut at) = (String::new(), 0);
    for (replaced, by) in parts {
        out.extend(text.get(at..replaced.start as usize)?.iter().copied());
        out.extend(other.get(by.start as usize..by.end as usize)?.iter().copied());
        at = replaced.end as usize;
    }
    out.extend(text.get(at..)?.iter().copied());
    Some(out)
}

fn lines(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

fn index(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

/// The operations from old to new lines. For very long texts, only the common start and end are compared.
pub fn line_operations(old: &[&str], new: &[&str]) -> Vec<DiffOp> {
    if old.len().max(new.len()) <= MAX_COMPARED_LINES {
        let diff =
            TextDiff::configure().algorithm(Algorithm::Patience).timeout(DEADLINE).diff_slices(old, new);
        return diff.ops().to_vec();
    }
    let head = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let max = old.len().min(new.len()) - head;
    let tail = old.iter().rev().zip(new.iter().rev()).take(max).take_while(|(a, b)| a == b).count();
    let (old_len, new_len) = (old.len() - head - tail, new.len() - head - tail);
    let ops = [
        DiffOp::Equal { old_index: 0, new_index: 0, len: head },
        DiffOp::Replace { old_index: head, old_len, new_index: head, new_len },
        DiffOp::Equal { old_index: head + old_len, new_index: head + new_len, len: tail },
    ];
    ops.into_iter().filter(|op| !op.old_range().is_empty() || !op.new_range().is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn text() -> impl Strategy<Value = String> {
        let line = prop_oneof!["[a-c]", Just(String::new()), Just("x\r".to_owned())];
        (prop::collection::vec(line, 0..12), any::<bool>()).prop_map(|(lines, is_open)| {
            let end = if is_open || lines.is_empty() { "" } else { "\n" };
            lines.join("\n") + end
        })
    }

    proptest! {
        #[test]
        fn all_hunks_make_the_one_text_the_other((old, new) in (text(), text())) {
            let hunks = hunks(&old, &new);
            prop_assert_eq!(with_hunks(&old, &new, &hunks), Some(new.clone()));
            prop_assert_eq!(without_hunks(&old, &new, &hunks), Some(old.clone()));
            prop_assert_eq!(with_hunks(&old, &new, &[]), Some(old.clone()));
            prop_assert_eq!(hunks.is_empty(), old == new);
        }

        #[test]
        fn accepted_and_rejected_hunks_leave_nothing((old, new, picked) in (text(), text(), any::<u16>())) {
            let of = |is_picked: bool| {
                let all = hunks(&old, &new).into_iter().enumerate();
                let some = all.filter(|(at, _)| (picked >> (at % 16) & 1 == 1) == is_picked);
                some.map(|(_, hunk)| hunk).collect::<Vec<_>>()
            };
            let accepted = with_hunks(&old, &new, &of(true)).unwrap();
            let rejected = without_hunks(&old, &new, &of(false)).unwrap();
            prop_assert_eq!(accepted, rejected);
        }
    }

    proptest! {
        #[test]
        fn both_changes_are_merged_or_neither((base, ours, theirs) in (text(), text(), text())) {
            prop_assert_eq!(merge(&base, &ours, &base), Some(ours.clone()));
            prop_assert_eq!(merge(&base, &base, &theirs), Some(theirs.clone()));
            prop_assert_eq!(merge(&base, &ours, &ours), Some(ours.clone()));
            prop_assert_eq!(merge(&base, &ours, &theirs), merge(&base, &theirs, &ours));
        }

        #[test]
        fn changes_of_distant_lines_are_merged(who in prop::collection::vec(0..6usize, 1..20)) {
            // Every other line may be changed by the one, by the other, or by both in the same way.
            let text = |changes: &[usize]| {
                let lines = who.iter().enumerate().map(|(line, who)| match who {
                    who if changes.contains(who) => format!("same {line}\nnew {line}\n"),
                    _ => format!("same {line}\nold {line}\n"),
                });
                lines.collect::<String>()
            };
            prop_assert_eq!(merge(&text(&[]), &text(&[1, 3]), &text(&[2, 3])), Some(text(&[1, 2, 3])));
        }
    }

    #[test]
    fn changes_that_touch_are_not_merged() {
        let base = "1\n2\n3\n4\n";
        assert_eq!(merge(base, "one\n2\n3\n4\n", "1\n2\n3\nfour\n").as_deref(), Some("one\n2\n3\nfour\n"));
        assert_eq!(merge(base, "one\n2\n3\n4\n", "1\ntwo\n3\n4\n"), None);
        assert_eq!(merge(base, "1\n", ""), None);
    }

    #[test]
    fn neighbouring_lines_are_one_hunk() {
        let hunk = |old: Range<u32>, new: Range<u32>| Hunk { old, new };
        assert_eq!(hunks("a\nb\nc\n", "a\nx\ny\nc\nd\n"), [hunk(1..2, 1..3), hunk(3..3, 4..5)]);
    }

    #[test]
    fn hunks_of_another_text_do_not_fit() {
        let hunk = Hunk { old: 4..5, new: 0..1 };
        assert_eq!(with_hunks("a\n", "b\n", std::slice::from_ref(&hunk)), None);
        assert_eq!(without_hunks("a\n", "b\n", &[hunk]), None);
    }
}
