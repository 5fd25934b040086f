//! Property tests of replays that differ from the record.

use proptest::prelude::*;

use super::recorder::items;
use super::resume::{End, check, recorded, resumed};
use super::support::*;
use crate::app::session::reconcile::{AlignedItem, reconcile};
use crate::app::*;
use crate::model::*;

/// A part of a turn with a unique text.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Part {
    Say,
    Think,
    Call,
    Odd,
    Note,
}

#[derive(Debug, Clone)]
struct Turn {
    /// Some prompts are equal.
    is_short: bool,
    parts: Vec<Part>,
    end: u8,
}

/// The form in which a turn is replayed.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Fate {
    Same,
    LeftOut,
    /// All messages joined to one.
    Merged,
    /// Each message split in two.
    Split,
    /// Without thoughts and calls.
    Bare,
    /// Only the start.
    Cut,
    /// With rewrapped lines.
    Wrapped,
    /// With other ids of calls and messages.
    Renamed,
    /// With an additional message at the start, in the middle or at the end.
    More(u8),
    /// Preceded by a turn that was not recorded.
    After,
    /// All turns before it are one summary.
    Compacted,
    /// With its prompt in an element added by the agent.
    InContext,
}

fn part() -> impl Strategy<Value = Part> {
    prop_oneof![
        4 => Just(Part::Say),
        1 => Just(Part::Think),
        2 => Just(Part::Call),
        1 => Just(Part::Odd),
        1 => Just(Part::Note),
    ]
}

fn turn() -> impl Strategy<Value = Turn> {
    (proptest::bool::weighted(0.2), proptest::collection::vec(part(), 0..6), 0_u8..8)
        .prop_map(|(is_short, parts, end)| Turn { is_short, parts, end })
}

fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![
        6 => Just(Fate::Same),
        2 => Just(Fate::LeftOut),
        1 => Just(Fate::Merged),
        1 => Just(Fate::Split),
        1 => Just(Fate::Bare),
        1 => Just(Fate::Cut),
        1 => Just(Fate::Wrapped),
        1 => Just(Fate::Renamed),
        1 => (0_u8..3).prop_map(Fate::More),
        1 => Just(Fate::After),
        1 => Just(Fate::Compacted),
        1 => Just(Fate::InContext),
    ]
}

fn prompt(nth: usize, turn: &Turn) -> String {
    if turn.is_short { "go on".to_owned() } else { format!("please do the work of turn {nth}") }
}

/// The updates of a part, in chunks or complete.
fn told(name: &str, part: Part, id: &str) -> Vec<SessionUpdate> {
    match part {
        Part::Say => {
            vec![says(&format!("This is said in {name}, ")), says(&format!("and that is all of {name}."))]
        }
        Part::Think => vec![text(Role::Thought, &format!("This is thought in {name}."))],
        Part::Call => {
            let title = format!("call of {name}");
            vec![patch(id, |patch| {
                patch.is_announcement = true;
                patch.title = Patch::Set(title);
                patch.status = Patch::Set(ToolStatus::Completed);
            })]
        }
        Part::Odd => vec![SessionUpdate::Unknown { name: format!("odd of {name}"), raw: Raw("{}".into()) }],
        Part::Note => vec![SessionUpdate::notice(Severity::Info, format!("notice of {name}"), None)],
    }
}

fn live(nth: usize, turn: &Turn) -> Vec<SessionUpdate> {
    let named = turn.parts.iter().enumerate();
    named.flat_map(|(at, part)| told(&format!("t{nth}p{at}"), *part, &format!("call_{at}"))).collect()
}

/// The updates of a replayed turn, with complete messages.
fn replayed(nth: usize, turn: &Turn, fate: Fate) -> Vec<SessionUpdate> {
    let mut all = Vec::new();
    let sent = prompt(nth, turn);
    let sent = match fate {
        Fate::InContext => format!("<session_context>\nMonday\n</session_context>\n{sent}"),
        Fate::Wrapped => sent.replace(' ', "\n"),
        _ => sent,
    };
    let user =
        |id: String, text: String| SessionUpdate::Chunk { role: Role::User, message: Some(id.into()), text };
    let extra = |at: u8| {
        says_in(&format!("t{nth}e"), &format!("This is more of t{nth}e{at}, which nobody has recorded."))
    };
    if fate == Fate::After {
        all.push(user(format!("x{nth}"), format!("a prompt from elsewhere: t{nth}x")));
        all.push(says(&format!("an answer from elsewhere: t{nth}y")));
    }
    if fate == Fate::Compacted {
        all.push(user(format!("c{nth}"), format!("The conversation is continued, in short: t{nth}c")));
    }
    all.push(user(format!("u{nth}"), sent));
    let count = turn.parts.len();
    let mut merged = String::new();
    for (at, part) in turn.parts.iter().enumerate() {
        let name = format!("t{nth}p{at}");
        if fate == Fate::Cut && at >= count / 2 {
            break;
        }
        if matches!(fate, Fate::Bare | Fate::Merged) && matches!(part, Part::Think | Part::Call) {
            continue;
        }
        if fate == Fate::More(1) && at == count / 2 {
            all.push(extra(1));
            all.push(text(Role::Thought, &format!("This is more thought of t{nth}f.")));
        }
        if fate == Fate::More(0) && at == 0 {
            all.push(text(Role::Thought, &format!("This is more thought of t{nth}g.")));
        }
        let id = if fate == Fate::Renamed { format!("other_{nth}_{at}") } else { format!("call_{at}") };
        match (part, fate) {
            (Part::Say, Fate::Split) => {
                let [one, two] = ["This is said in", "and that is all of"].map(str::to_owned);
                all.push(says_in(&format!("{name}a"), &format!("{one} {name}, ")));
                all.push(says_in(&format!("{name}b"), &format!("{two} {name}.")));
            }
            (Part::Say, _) => {
                let whole = format!("This is said in {name}, and that is all of {name}.");
                let whole = if fate == Fate::Wrapped { whole.replace(' ', "\n") } else { whole };
                if fate == Fate::Merged {
                    merged.push_str(&whole);
                } else {
                    all.push(says_in(&format!("{name}{id}"), &whole));
                }
            }
            _ => all.extend(told(&name, *part, &id)),
        }
    }
    if !merged.is_empty() {
        all.push(says_in(&format!("t{nth}merged"), &merged));
    }
    if fate == Fate::More(2) {
        all.push(extra(2));
    }
    all
}

fn kept(turns: &[Turn]) -> RecordedSession {
    let prompts: Vec<String> = turns.iter().enumerate().map(|(nth, turn)| prompt(nth, turn)).collect();
    let live: Vec<_> = turns
        .iter()
        .enumerate()
        .zip(&prompts)
        .map(|((nth, turn), prompt)| {
            let end = match turn.end {
                0 => End::Refused,
                1 => End::Failed,
                2 => End::Cancelled,
                _ => End::Good,
            };
            (prompt.as_str(), live(nth, turn), end)
        })
        .collect();
    recorded(&live)
}

/// Number of occurrences of a name in the items, as a word.
fn count(all: &[String], name: &str) -> usize {
    let is_end = |rest: &str| !rest.starts_with(|sign: char| sign.is_ascii_alphanumeric());
    all.iter()
        .flat_map(|item| item.match_indices(name).map(move |(at, _)| &item[at + name.len()..]))
        .filter(|rest| is_end(rest))
        .count()
}

fn names(turns: &[Turn], fates: &[Fate]) -> Vec<(String, usize)> {
    let mut names = Vec::new();
    for (nth, turn) in turns.iter().enumerate() {
        for (at, part) in turn.parts.iter().enumerate() {
            names.push((format!("t{nth}p{at}"), if *part == Part::Say { 2 } else { 1 }));
        }
        match fates.get(nth) {
            Some(Fate::More(0)) if !turn.parts.is_empty() => names.push((format!("t{nth}g"), 1)),
            Some(Fate::More(1)) if !turn.parts.is_empty() => {
                names.push((format!("t{nth}e1"), 1));
                names.push((format!("t{nth}f"), 1));
            }
            Some(Fate::More(2)) => names.push((format!("t{nth}e2"), 1)),
            Some(Fate::After) => {
                names.push((format!("t{nth}x"), 1));
                names.push((format!("t{nth}y"), 1));
            }
            _ => {}
        }
    }
    names
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 160, ..ProptestConfig::default() })]

    #[test]
    fn a_record_survives_any_replay_without_duplicates(
        turns in proptest::collection::vec((turn(), fate()), 1..8),
        is_late in any::<bool>(),
    ) {
        let (turns, mut fates): (Vec<Turn>, Vec<Fate>) = turns.into_iter().unzip();
        // A summary replaces all turns before it.
        if let Some(last) = fates.iter().rposition(|fate| *fate == Fate::Compacted) {
            fates[..last].fill(Fate::LeftOut);
        }
        let kept = kept(&turns);
        let told = turns.iter().zip(&fates).enumerate().filter(|(_, (_, fate))| **fate != Fate::LeftOut);
        let replay: Vec<SessionUpdate> = told.flat_map(|(nth, (turn, fate))| replayed(nth, turn, *fate)).collect();
        let all = check(&kept, &replay, if is_late { 0 } else { replay.len() });
        for (name, times) in names(&turns, &fates) {
            prop_assert_eq!(count(&all, &name), times, "{} in {:#?}", name, all);
        }
    }

    #[test]
    fn a_replay_of_the_record_changes_nothing(turns in proptest::collection::vec(turn(), 1..12)) {
        let kept = kept(&turns);
        let replay: Vec<SessionUpdate> =
            turns.iter().enumerate().flat_map(|(nth, turn)| replayed(nth, turn, Fate::Same)).collect();
        let app = resumed(&kept, &replay, replay.len());
        let mut before = Session::new(KEY, SessionWorkspace::default());
        restore(&mut before, kept, app.now);
        prop_assert_eq!(items(app.session()), items(&before));
    }

    #[test]
    fn every_recorded_item_is_in_the_result_once_and_in_order(
        ours in proptest::collection::vec(turn(), 0..10),
        theirs in proptest::collection::vec((0_usize..12, turn(), fate()), 0..10),
        is_whole in any::<bool>(),
    ) {
        let mut app = TestApp::ready();
        for (nth, turn) in ours.iter().enumerate() {
            app.submit(&prompt(nth, turn)).updates(live(nth, turn)).end_turn(StopReason::EndTurn);
        }
        let mut other = TestApp::ready();
        for (nth, turn, fate) in &theirs {
            other.updates(replayed(*nth, turn, *fate));
        }
        let (ours, theirs) = (app.session().transcript.items(), other.session().transcript.items());
        let found = reconcile(ours, theirs, is_whole);
        let order: Vec<usize> = found.pieces.iter().filter_map(|piece| match piece {
            AlignedItem::Ours { item, .. } => Some(*item),
            AlignedItem::Theirs { .. } => None,
        }).collect();
        prop_assert_eq!(order, (0..ours.len()).collect::<Vec<_>>());
        let same = reconcile(ours, ours, is_whole);
        prop_assert!(same.missing.is_empty() && same.has_end, "{:?}", same);
        prop_assert!(same.pieces.iter().all(|piece| matches!(piece, AlignedItem::Ours { .. })), "{:?}", same.pieces);
    }
}

#[test]
fn a_long_replay_is_compared_in_bounded_time() {
    let mut app = TestApp::ready();
    let mut other = TestApp::ready();
    for nth in 0..1_500 {
        let user = |prompt: &str| text(Role::User, &format!("{prompt} {nth}"));
        app.updates(vec![user("ours"), says("yes")]);
        other.updates(vec![user("theirs"), says("yes")]);
    }
    let (ours, theirs) = (app.session().transcript.items(), other.session().transcript.items());
    let found = reconcile(ours, theirs, true);
    let count = found.pieces.iter().filter(|piece| matches!(piece, AlignedItem::Ours { .. })).count();
    assert_eq!((count, found.pieces.len()), (ours.len(), ours.len() + theirs.len()));
    let [missing] = found.missing.as_slice() else { panic!("{:?}", found.missing) };
    assert_eq!((missing.behind, missing.turns), (ours.len(), 1_500));
}
