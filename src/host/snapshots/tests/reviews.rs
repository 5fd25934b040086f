//! Tests of reviews in real folders.

use super::*;
use crate::model::hunk::{Hunk, hunks, with_hunks, without_hunks};
use crate::model::snapshot::{Accepted, AcceptedPaths, Part};
use crate::random::Random;

struct Review {
    rig: Rig,
    spans: Vec<(u32, Span)>,
    accepted: AcceptedPaths,
}

impl Review {
    fn new() -> Self {
        Self { rig: Rig::repository(), spans: Vec::new(), accepted: AcceptedPaths::new() }
    }

    /// A turn that does this.
    fn turn(&mut self, act: impl FnOnce(&Rig)) {
        let before = self.rig.capture();
        act(&self.rig);
        let turn = u32::try_from(self.spans.len()).unwrap() + 1;
        self.spans.push((turn, Span { before, after: self.rig.capture() }));
    }

    fn plan(&self) -> Plan {
        self.rig.open().review(&self.spans, &self.accepted).unwrap()
    }

    /// The paths that are left.
    fn left(&self) -> Vec<String> {
        let plan = self.plan();
        let left = plan.steps.iter().filter(|step| step.action != Action::Nothing);
        left.map(|step| step.path.display().to_string()).collect()
    }

    /// The text before and the hunks of a file that are left.
    fn hunks(&self, name: &str) -> (String, Vec<Hunk>) {
        let plan = self.plan();
        let step = plan.steps.iter().find(|step| step.path == Path::new(name)).unwrap();
        let old = step.to.as_ref().map(|to| self.rig.open().read(to, 1 << 20).unwrap());
        let old = String::from_utf8(old.unwrap_or_default()).unwrap();
        let found = hunks(&old, &self.rig.text(name));
        (old, found)
    }

    fn accept(&mut self, part: &Part) {
        let base = self.rig.open().accept("s", &self.plan(), part).unwrap();
        let turn = self.spans.last().map_or(0, |(turn, _)| *turn);
        self.accepted.insert(part.path.clone(), Accepted { turn, base });
    }

    fn reject(&self, part: &Part) {
        let snapshots = self.rig.open();
        let plan = snapshots.limited_to(&self.plan(), std::slice::from_ref(part)).unwrap();
        let restored = snapshots.restore("s", &plan, std::slice::from_ref(&part.path)).unwrap();
        assert_eq!(restored.changed.as_slice(), std::slice::from_ref(&part.path), "{:?}", restored.refused);
    }
}

fn numbered(changed: &[(usize, &str)]) -> String {
    let line = |number: usize| {
        let to = changed.iter().find(|(at, _)| *at == number);
        to.map_or_else(|| format!("{number}\n"), |(_, text)| (*text).to_owned())
    };
    (1..=9).map(line).collect()
}

fn part(name: &str, hunks: &[Hunk]) -> Part {
    Part { path: name.into(), hunks: hunks.to_vec() }
}

#[test]
fn accepted_hunks_are_not_shown_again_and_rejected_ones_are_reverted() {
    let mut review = Review::new();
    review.rig.write("a", numbered(&[]));
    review.turn(|rig| rig.write("a", numbered(&[(2, "two\n"), (5, "five\nmore\n"), (8, "")])));
    let (_, found) = review.hunks("a");
    assert_eq!(found.len(), 3);
    review.accept(&part("a", &found[..1]));
    let (old, found) = review.hunks("a");
    assert_eq!((old, found.len()), (numbered(&[(2, "two\n")]), 2));
    review.reject(&part("a", &found[1..]));
    assert_eq!(review.rig.text("a"), numbered(&[(2, "two\n"), (5, "five\nmore\n")]));
    let (_, found) = review.hunks("a");
    review.accept(&part("a", &found));
    assert_eq!(review.left(), [""; 0]);
    assert_eq!(review.accepted[Path::new("a")].base, None, "all of it");
}

#[test]
fn the_next_review_shows_only_what_is_new() {
    let mut review = Review::new();
    review.rig.write("a", numbered(&[]));
    review.turn(|rig| rig.write("a", numbered(&[(2, "two\n")])));
    review.accept(&part("a", &[]));
    review.turn(|rig| {
        rig.write("a", numbered(&[(2, "two\n"), (3, "three\n")]));
        rig.write("b", "new\n");
    });
    let (old, found) = review.hunks("a");
    assert_eq!((old, found), (numbered(&[(2, "two\n")]), vec![Hunk { old: 2..3, new: 2..3 }]));
    assert_eq!(review.left(), ["a", "b"]);
}

#[test]
fn what_only_the_user_changed_is_not_reviewed() {
    let mut review = Review::new();
    review.rig.write("a", "1\n");
    review.rig.write("b", "1\n");
    review.turn(|rig| rig.write("a", "2\n"));
    review.accept(&part("a", &[]));
    review.rig.write("a", "mine\n");
    review.rig.write("b", "mine\n");
    assert_eq!(review.left(), [""; 0]);
    review.turn(|rig| rig.write("a", "mine\nand more\n"));
    assert_eq!(review.hunks("a"), ("mine\n".into(), vec![Hunk { old: 1..1, new: 1..2 }]));
}

#[test]
fn new_and_deleted_files_are_accepted_or_rejected_as_a_whole() {
    for accepts in [true, false] {
        let mut review = Review::new();
        review.rig.write("old", "1\n");
        review.turn(|rig| {
            rig.remove("old");
            rig.write("dir/new", "2\n");
        });
        assert_eq!(review.left(), ["dir/new", "old"]);
        for name in ["old", "dir/new"] {
            if accepts { review.accept(&part(name, &[])) } else { review.reject(&part(name, &[])) }
        }
        assert_eq!(review.left(), [""; 0]);
        let expected = if accepts { ["absent", "2\n"] } else { ["1\n", "absent"] };
        assert_eq!([review.rig.text("old"), review.rig.text("dir/new")], expected);
    }
}

#[test]
fn a_file_that_changes_during_the_review_is_not_touched() {
    let mut review = Review::new();
    review.rig.write("a", numbered(&[]));
    review.turn(|rig| rig.write("a", numbered(&[(2, "two\n"), (8, "eight\n")])));
    let (plan, (_, found)) = (review.plan(), review.hunks("a"));
    review.rig.write("a", "mine\n");
    let snapshots = review.rig.open();
    let part = part("a", &found[..1]);
    let message = "a was changed meanwhile";
    assert_eq!(snapshots.accept("s", &plan, &part).unwrap_err().to_string(), message);
    assert_eq!(snapshots.limited_to(&plan, &[part]).unwrap_err().to_string(), message);
    assert_eq!(review.rig.text("a"), "mine\n");
}

#[test]
fn without_its_snapshot_what_was_accepted_is_shown_again() {
    let mut review = Review::new();
    review.rig.write("a", numbered(&[]));
    review.turn(|rig| rig.write("a", numbered(&[(2, "two\n"), (8, "eight\n")])));
    let (_, found) = review.hunks("a");
    let missing = SnapshotId::of_digest(&[7; 20]);
    review.accepted.insert("a".into(), Accepted { turn: 1, base: Some(missing) });
    assert_eq!(review.hunks("a").1, found);
}

#[test]
fn an_accepted_hunk_survives_pruning_of_what_nothing_needs() {
    let mut review = Review::new();
    review.rig.write("a", numbered(&[]));
    review.turn(|rig| rig.write("a", numbered(&[(2, "two\n"), (8, "eight\n")])));
    let (_, found) = review.hunks("a");
    review.accept(&part("a", &found[..1]));
    let Pruned { snapshots: 0, .. } = review.rig.open().prune(u64::MAX).unwrap() else { panic!() };
    assert_eq!(review.hunks("a").1.len(), 1);
}

/// Random turns, edits of the user, and decisions. Each decision removes one hunk from the review and changes the file
/// only if it is rejected. Nothing is left when all are decided, or when all that the turns did is accepted.
#[test]
fn every_decision_takes_one_hunk_out_of_the_review() {
    for seed in 0..3 {
        let mut random = Random::new(seed);
        let mut review = Review::new();
        let mut line = 0;
        let mut edit = |random: &mut Random, text: &str| {
            let mut lines: Vec<String> = text.split_inclusive('\n').map(str::to_owned).collect();
            for _ in 0..=random.below(3) {
                line += 1;
                let at = usize::try_from(random.below(lines.len() as u64 + 1)).unwrap();
                match random.below(3) {
                    0 => lines.insert(at, format!("line {line}\n")),
                    1 if at < lines.len() => drop(lines.remove(at)),
                    _ if at < lines.len() => lines[at] = format!("line {line}\n"),
                    _ => lines.push(format!("line {line}\n")),
                }
            }
            lines.concat()
        };
        review.rig.write("a", numbered(&[]));
        for _ in 0..3 {
            let text = edit(&mut random, &review.rig.text("a"));
            review.turn(|rig| rig.write("a", &text));
            let after_turn = text;
            if random.one_in(3) {
                let text = edit(&mut random, &review.rig.text("a"));
                review.rig.write("a", text);
            }
            for _ in 0..random.below(4) {
                if review.left().is_empty() {
                    break;
                }
                let text = review.rig.text("a");
                let (old, found) = review.hunks("a");
                let at = usize::try_from(random.below(found.len() as u64)).unwrap();
                let chosen = part("a", &found[at..=at]);
                let mut is_last = found.len() == 1;
                if random.one_in(2) {
                    is_last |= with_hunks(&old, &text, &chosen.hunks).as_ref() == Some(&after_turn);
                    review.accept(&chosen);
                    assert_eq!(review.rig.text("a"), text, "seed {seed}");
                } else {
                    review.reject(&chosen);
                    let expected = without_hunks(&old, &text, &chosen.hunks);
                    assert_eq!(Some(review.rig.text("a")), expected, "seed {seed}");
                }
                assert_eq!(review.left().is_empty(), is_last, "seed {seed}");
                if !is_last {
                    assert_eq!(review.hunks("a").1.len(), found.len() - 1, "seed {seed}");
                }
            }
        }
    }
}
