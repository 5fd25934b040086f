//! Computes the change of a write, small enough to be shown and saved.

use std::path::Path;

use crate::model::{DiffChange, FileDiff, WriteChange};

/// Maximum total size of texts that are recorded completely, in bytes.
const WHOLE_BYTES: usize = 128 << 10;

/// Maximum total size of the parts that differ, in bytes.
const PART_BYTES: usize = 256 << 10;

/// Number of unchanged lines around the parts that differ.
const CONTEXT_LINES: usize = 3;

/// The change of a file; `old` is `None` for a new file.
pub(super) fn change(path: &Path, old: Option<&str>, new: &str) -> WriteChange {
    let size_bytes = new.len() as u64;
    let diff = |old: Option<&str>, new: &str| FileDiff {
        path: path.to_owned(),
        change: DiffChange::Texts { old: old.map(Into::into), new: new.into() },
    };
    let before = old.unwrap_or_default();
    if before.len() + new.len() <= WHOLE_BYTES {
        return WriteChange { diff: Some(diff(old, new)), line: None, size_bytes };
    }
    let same = |(a, b): &(&str, &str)| a == b;
    let olds: Vec<&str> = before.split_inclusive('\n').collect();
    let news: Vec<&str> = new.split_inclusive('\n').collect();
    let head = olds.iter().copied().zip(news.iter().copied()).take_while(same).count();
    let room = olds.len().min(news.len()) - head;
    let tails = olds.iter().rev().copied().zip(news.iter().rev().copied());
    let tail = tails.take(room).take_while(same).count();
    let first = head.saturating_sub(CONTEXT_LINES);
    let part = |lines: &[&str]| -> String {
        let end = (lines.len() - tail + CONTEXT_LINES).min(lines.len());
        lines.get(first..end).unwrap_or_default().concat()
    };
    let (before, after) = (part(&olds), part(&news));
    let is_small = before.len() + after.len() <= PART_BYTES;
    WriteChange {
        diff: is_small.then(|| diff(old.map(|_| before.as_str()), &after)),
        line: is_small.then(|| u32::try_from(first + 1).unwrap_or(u32::MAX)),
        size_bytes,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn texts(change: &WriteChange) -> (Option<&str>, &str) {
        match &change.diff.as_ref().unwrap().change {
            DiffChange::Texts { old, new } => (old.as_deref(), new),
            DiffChange::Patch(_) => unreachable!("texts are recorded"),
        }
    }

    #[test]
    fn small_files_are_recorded_completely_and_large_ones_by_their_difference() {
        assert_eq!(texts(&change(Path::new("/a"), None, "x\n")), (None, "x\n"));
        let line = "a line that is not short\n";
        let old = line.repeat(10_000);
        let new = format!("{}new\n{}", line.repeat(5_000), line.repeat(5_000));
        let reported = change(Path::new("/a"), Some(&old), &new);
        assert_eq!(reported.size_bytes, new.len() as u64);
        let (before, after) = texts(&reported);
        assert_eq!((before.unwrap().lines().count(), after.lines().count()), (6, 7));
        assert_eq!(reported.line, Some(4998));
        let huge = change(Path::new("/a"), Some(&old), &"y".repeat(1 << 20));
        assert_eq!((huge.diff, huge.line, huge.size_bytes), (None, None, 1 << 20));
    }

    proptest! {
        #[test]
        fn the_recorded_part_yields_the_new_file(
            lines in proptest::collection::vec("[ab]{0,2}", 0..8),
            edits in proptest::collection::vec((0usize..8, "[ab]{0,2}"), 0..4),
            ends in any::<bool>(),
        ) {
            let filler = "f".repeat(30_000) + "\n";
            let old: String = std::iter::repeat_n(filler.clone(), 5).chain(lines.iter().map(|l| format!("{l}\n"))).collect();
            let mut changed = lines.clone();
            for (at, text) in edits {
                if at < changed.len() { changed[at] = text } else { changed.push(text) }
            }
            let mut new: String = std::iter::repeat_n(filler, 5).chain(changed.iter().map(|l| format!("{l}\n"))).collect();
            if ends { new.pop(); }
            let reported = change(Path::new("/a"), Some(&old), &new);
            prop_assert!(reported.line.is_some());
            let skipped = reported.line.unwrap() as usize - 1;
            let (before, after) = texts(&reported);
            let start: usize = old.split_inclusive('\n').take(skipped).map(str::len).sum();
            let rest = &old[start..];
            prop_assert!(rest.starts_with(before.unwrap()));
            let rebuilt = format!("{}{after}{}", &old[..start], &rest[before.unwrap().len()..]);
            prop_assert_eq!(rebuilt, new);
        }
    }
}
