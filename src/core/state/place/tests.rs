use super::reply::*;
use super::*;

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

mod life;

const CONTEXT: &str = "<session_context>\nToday is Monday.\n</session_context>";
const INTERRUPTED: &str = "[Request interrupted by user for tool use]";

fn recorded(prompt: &str, reply: &str, end: TurnEnd) -> RecordedTurn {
    let mut lines = if end == TurnEnd::Completed { Reply::default() } else { Reply::with_texts() };
    lines.push(reply);
    RecordedTurn { prompt: prompt.to_owned(), reply: lines, end, ..RecordedTurn::default() }
}

fn done(prompt: &str, reply: &str) -> RecordedTurn {
    recorded(prompt, reply, TurnEnd::Completed)
}

fn open(prompt: &str, reply: &str) -> RecordedTurn {
    recorded(prompt, reply, TurnEnd::Open)
}

fn with_ids<T>(mut turn: T, ids: &[&str], list: fn(&mut T) -> &mut Vec<String>) -> T {
    *list(&mut turn) = ids.iter().map(ToString::to_string).collect();
    turn
}

/// Compares like the program: texts are kept only where the record asks for them.
fn compare(turns: Vec<RecordedTurn>, replay: &[(&[&str], &str)]) -> Outcome {
    compare_with_ids(
        turns,
        &replay.iter().map(|(chunks, reply)| (*chunks, *reply, &[][..])).collect::<Vec<_>>(),
    )
}

fn compare_with_ids(turns: Vec<RecordedTurn>, replay: &[(&[&str], &str, &[&str])]) -> Outcome {
    let record = Record::new(turns);
    let replayed = |(chunks, reply, ids): &(&[&str], &str, &[&str])| {
        let chunks: Vec<_> = chunks.iter().map(ToString::to_string).collect();
        let mut lines = if record.needs_texts(&chunks) { Reply::with_texts() } else { Reply::default() };
        lines.push(reply);
        with_ids(ReplayedTurn { chunks, reply: lines, ..ReplayedTurn::default() }, ids, |turn| &mut turn.ids)
    };
    let replay: Vec<_> = replay.iter().map(replayed).collect();
    record.place(&replay)
}

fn found(outcome: Outcome) -> Place {
    match outcome {
        Outcome::Place(place) => place,
        other => panic!("{other:?}"),
    }
}

fn next(outcome: Outcome) -> (usize, usize) {
    let next = found(outcome).next;
    (next.turn, next.chunk)
}

#[test]
fn new_is_what_follows_the_last_turn() {
    let place = found(compare(
        vec![done("one", "1"), done("two", "2")],
        &[(&["one"], "1"), (&["two"], "2"), (&["three"], "3"), (&["four"], "4")],
    ));
    assert_eq!(place.next, Position { turn: 2, chunk: 0 });
    assert_eq!((place.new_turns, place.rest.clone(), place.missing.len()), (2, None, 0));
    assert_eq!(place.ends_after(2), None);
}

#[test]
fn a_replay_without_user_message_has_no_prompts() {
    assert_eq!(compare(vec![done("one", "1")], &[]), Outcome::NoPrompts);
    assert_eq!(compare(vec![done("one", "1")], &[(&[INTERRUPTED], "text")]), Outcome::NoPrompts);
}

#[test]
fn an_empty_record_has_no_place() {
    assert_eq!(compare(vec![], &[(&["one"], "1")]), Outcome::NoPlace);
}

#[test]
fn a_prompt_is_a_run_of_whole_chunks() {
    let record = || vec![done("fix the bug", "fixed")];
    assert_eq!(next(compare(record(), &[(&["fix ", "the", " bug\n"], "fixed"), (&["more"], "")])), (1, 0));
    assert_eq!(next(compare(record(), &[(&["  ", "fix the bug", "\n"], "fixed")])), (1, 0));
}

#[test]
fn a_chunk_that_is_not_whole_is_no_match() {
    assert_eq!(compare(vec![done("fix", "fixed")], &[(&["fix the bug"], "fixed")]), Outcome::NoPlace);
    assert_eq!(compare(vec![done("fix the bug", "fixed")], &[(&["fix"], "fixed")]), Outcome::NoPlace);
    let record = || vec![done("one", "1"), open("two", "")];
    assert_eq!(compare(record(), &[(&["one"], "1"), (&["two\nthree"], "3")]), Outcome::NoPlace);
    assert_eq!(next(compare(record(), &[(&["one"], "1"), (&["twofold"], "3")])), (1, 0));
}

#[test]
fn a_cancelled_prompt_joined_with_the_next_is_found() {
    let record = || vec![done("one", "1"), open("two", ""), done("three", "3")];
    assert_eq!(
        next(compare(record(), &[(&["one"], "1"), (&["two", "three"], "3"), (&["four"], "4")])),
        (2, 0)
    );
    assert_eq!(next(compare(record(), &[(&["one"], "1"), (&["two", "thr", "ee"], "3")])), (2, 0));
}

#[test]
fn a_new_prompt_joined_with_a_cancelled_one_is_new() {
    let record = || vec![done("one", "1"), open("two", "begin")];
    let place = found(compare(record(), &[(&["one"], "1"), (&["two", "three"], "3"), (&["four"], "4")]));
    assert_eq!((place.next, place.new_turns, place.rest), (Position { turn: 1, chunk: 1 }, 2, None));
}

#[test]
fn a_completed_prompt_with_a_reply_is_not_joined() {
    assert_eq!(compare(vec![done("one", "1")], &[(&["one", "two"], "1")]), Outcome::NoPlace);
}

#[test]
fn context_before_a_prompt_is_passed_over() {
    let record = || vec![done("one", "1")];
    assert_eq!(next(compare(record(), &[(&[CONTEXT, "one"], "1"), (&["two"], "2")])), (1, 0));
    assert_eq!(next(compare(record(), &[(&[&format!("{CONTEXT}\none")], "1")])), (1, 0));
    assert_eq!(next(compare(record(), &[(&[CONTEXT], ""), (&["one"], "1")])), (2, 0));
    assert_eq!(next(compare(record(), &[(&["one"], "1"), (&[CONTEXT, "two"], "2")])), (1, 0));
}

#[test]
fn a_prompt_that_looks_like_context_is_a_prompt() {
    let prompt = "<my_data>1</my_data>";
    assert_eq!(next(compare(vec![done(prompt, "1")], &[(&[prompt], "1"), (&["two"], "2")])), (1, 0));
    let place = found(compare(vec![done("one", "1")], &[(&["one"], "1"), (&[prompt], "2")]));
    assert_eq!((place.next.turn, place.new_turns), (1, 1));
}

#[test]
fn a_note_of_the_agent_does_not_begin_a_turn() {
    let record = || vec![done("one", "1"), open("two", "begin")];
    let replay: &[(&[&str], &str)] =
        &[(&["one"], "1"), (&["two"], "begin"), (&[INTERRUPTED], ""), (&["three"], "3")];
    assert_eq!(next(compare(record(), replay)), (3, 0));
    assert_eq!(next(compare(record(), &[(&["one"], "1"), (&["two", INTERRUPTED, "three"], "3")])), (1, 2));
    let calls = "[Function Response: read]\n[Function Call: write]";
    let record = vec![done("one", "first\nsecond")];
    assert_eq!(next(compare(record, &[(&["one"], "first"), (&[calls], "second"), (&["two"], "2")])), (2, 0));
}

#[test]
fn a_command_is_a_prompt() {
    let chunk = "<command-message>review is running</command-message>\n<command-name>/review</command-name>\n\
                 <command-args>the diff</command-args>";
    assert_eq!(next(compare(vec![done("/review the diff", "ok")], &[(&[chunk], "ok")])), (1, 0));
    let chunk = "<command-name>/compact</command-name><command-args></command-args>";
    assert_eq!(next(compare(vec![done("/compact", "ok")], &[(&[chunk], "ok")])), (1, 0));
}

#[test]
fn embedded_resources_are_passed_over() {
    let record = || {
        vec![with_ids(done("look at it", "seen"), &["file:///a", "content of a"], |turn| &mut turn.embedded)]
    };
    for chunks in [
        &["file:///a", "look at it"][..],
        &["look at it", "content of a"],
        &["look at ", "file:///a", "it", "content of a\n"],
        &["look at it"],
    ] {
        assert_eq!(next(compare(record(), &[(chunks, "seen"), (&["new"], "")])), (1, 0), "{chunks:?}");
    }
    assert_eq!(compare(record(), &[(&["look at it", "file:///b"], "seen")]), Outcome::NoPlace);
    assert_eq!(compare(record(), &[(&["file:///a", "file:///a", "look at it"], "other")]), Outcome::NoPlace);
}

#[test]
fn a_prompt_without_text_matches_nothing_alone() {
    assert_eq!(compare(vec![done("", "1")], &[(&[""], "1"), (&["two"], "2")]), Outcome::NoPlace);
    let record = || vec![done("one", "1"), done(" ", "2")];
    assert_eq!(next(compare(record(), &[(&["one"], "1"), (&[], "2"), (&["three"], "3")])), (2, 0));
    assert_eq!(compare(record(), &[(&["one"], "1"), (&["two"], "2")]), Outcome::NoPlace);
}

#[test]
fn a_picture_is_known_by_its_string() {
    let record = || {
        let turn = with_ids(done("", "2"), &["image:1f"], |turn| &mut turn.embedded);
        vec![done("one", "1"), turn]
    };
    assert_eq!(next(compare(record(), &[(&["one"], "1"), (&["image:1f"], "2"), (&["three"], "3")])), (2, 0));
    assert_eq!(compare(record(), &[(&["one"], "1"), (&["image:2f"], "2")]), Outcome::NoPlace);
}

#[test]
fn repeated_prompts_are_told_apart_by_replies() {
    let record = || vec![done("go", "1"), done("go", "2"), done("go", "3")];
    let replay: &[(&[&str], &str)] = &[(&["go"], "2"), (&["go"], "3"), (&["go"], "4")];
    assert_eq!(next(compare(record(), replay)), (2, 0));
    assert_eq!(
        compare(vec![done("go", "ok"), done("go", "ok")], &[(&["go"][..], "ok"); 3]),
        Outcome::NoPlace
    );
    assert_eq!(
        compare(vec![done("go", ""), done("go", "ok")], &[(&["go"], ""), (&["go"], "")]),
        Outcome::NoPlace
    );
}

#[test]
fn a_warning_does_not_make_another_turn_the_place() {
    let replay: &[(&[&str], &str)] =
        &[(&["go"], "done"), (&["two"], "2"), (&["go"], "a warning\ndone"), (&["new"], "")];
    assert_eq!(compare(vec![done("go", "done")], replay), Outcome::NoPlace);
}

#[test]
fn a_reply_agrees_if_half_of_it_is_the_same() {
    let record = || vec![done("one", "first line\nsecond  line")];
    assert_eq!(next(compare(record(), &[(&["one"], "warning\n\n first line\nsecond line")])), (1, 0));
    assert_eq!(next(compare(record(), &[(&["one"], "second line")])), (1, 0));
    assert_eq!(compare(record(), &[(&["one"], "line")]), Outcome::NoPlace);
    let long = "a much longer text than what was recorded";
    assert_eq!(
        compare(record(), &[(&["one"], &format!("first line\nsecond line\n{long}"))]),
        Outcome::NoPlace
    );
}

#[test]
fn a_line_that_a_reply_lacks_is_not_new() {
    let record = vec![done("one", "first\nsecond")];
    assert_eq!(compare(record, &[(&["one"], "first."), (&["note"], "second")]), Outcome::NoPlace);
    let record = vec![done("one", "first line\nsecond")];
    assert_eq!(compare(record, &[(&["one"], "first line"), (&["note"], "second")]), Outcome::NoPlace);
}

#[test]
fn only_a_turn_that_did_not_complete_may_be_missing() {
    let replay: &[(&[&str], &str)] = &[(&["one"], "1"), (&["three"], "3"), (&["four"], "4")];
    let place = found(compare(vec![done("one", "1"), open("two", "text"), done("three", "3")], replay));
    assert_eq!((place.next.turn, place.missing.clone()), (2, vec![]), "the last completed turn is the place");
    let place =
        found(compare(vec![done("one", "1"), open("two", "text")], &[(&["one"], "1"), (&["three"], "3")]));
    assert_eq!((place.next.turn, place.missing.clone(), place.ends_after(2)), (1, vec![2], None));
    let record = vec![done("go", "1"), done("two", "2"), done("go", "1")];
    assert_eq!(compare(record, &[(&["one"], "1"), (&["go"], "1"), (&["four"], "4")]), Outcome::NoPlace);
}

#[test]
fn a_missing_turn_does_not_stand_in_what_is_new() {
    let record = || vec![done("one", "1"), open("two", ""), open("three", "")];
    assert_eq!(compare(record(), &[(&["one"], "1"), (&["three"], ""), (&["two"], "2")]), Outcome::NoPlace);
    assert_eq!(compare(record(), &[(&["one"], "1"), (&["three", "four", "two"], "2")]), Outcome::NoPlace);
    assert_eq!(compare(record(), &[(&["one"], "1"), (&["four\ntwo\nfive"], "2")]), Outcome::NoPlace);
    assert_eq!(next(compare(record(), &[(&["one"], "1"), (&["two more"], "2")])), (1, 0));
}

#[test]
fn a_missing_turn_without_text_is_known_by_its_reply_or_resources() {
    let record = || {
        let turn = with_ids(open("", "beg"), &["image:1f"], |turn| &mut turn.embedded);
        vec![done("one", "1"), turn]
    };
    assert_eq!(compare(record(), &[(&["one"], "1"), (&["two", ""], "begin")]), Outcome::NoPlace);
    assert_eq!(compare(record(), &[(&["one"], "1"), (&["image:1f", "two"], "2")]), Outcome::NoPlace);
    assert_eq!(next(compare(record(), &[(&["one"], "1"), (&["two"], "")])), (1, 0));
}

#[test]
fn a_missing_last_turn_may_be_the_one_before() {
    let record = |last| vec![done("one", "1"), open("go", ""), open(last, "")];
    assert_eq!(compare(record("go"), &[(&["one"], "1"), (&["go"], "2")]), Outcome::NoPlace);
    assert_eq!(compare(record("stop"), &[(&["one"], "1"), (&["go"], "2")]), Outcome::NoPlace);
    assert_eq!(next(compare(record("stop"), &[(&["one"], "1"), (&["go"], "")])), (2, 0));
}

#[test]
fn the_last_turn_that_did_not_complete_gets_its_rest() {
    let text = "warning\nfirst line\nsecond line\nthird";
    for (recorded, rest) in [
        ("", text),
        ("first  line\nsec", "ond line\nthird"),
        ("first line\nsecond line\n", "\nthird"),
        ("first line\nsecond ", " line\nthird"),
        ("first line\nsecond line\nth", "ird"),
    ] {
        let record = vec![done("one", "1"), open("two", recorded)];
        let place = found(compare(record, &[(&["one"], "1"), (&["two"], text), (&["three"], "3")]));
        assert_eq!((place.next.turn, place.new_turns), (2, 1));
        let cut = place.rest.unwrap();
        assert_eq!(cut.turn, 1);
        for size in 1..=text.len() {
            let mut cut = cut.clone();
            let chunks: Vec<_> =
                text.as_bytes().chunks(size).map(|part| str::from_utf8(part).unwrap()).collect();
            assert_eq!(
                chunks.iter().map(|chunk| cut.cut(chunk)).collect::<String>(),
                rest,
                "{recorded:?} {size}"
            );
        }
    }
    let record = vec![done("one", "1"), open("two", "first line\nsecond line\nthird")];
    assert_eq!(found(compare(record, &[(&["one"], "1"), (&["two"], text)])).rest, None);
    let record = vec![done("one", "1"), open("two", "second")];
    assert_eq!(compare(record, &[(&["one"], "1"), (&["two"], "a second")]), Outcome::NoPlace);
}

#[test]
fn a_rest_that_may_belong_to_a_turn_elsewhere_is_not_taken() {
    let record = || vec![done("one", "1"), open("go", "")];
    let place = found(compare(record(), &[(&["one"], "1"), (&["go"], ""), (&["go"], "2")]));
    assert_eq!((place.next.turn, place.rest), (2, None));
    assert_eq!(compare(record(), &[(&["one"], "1"), (&["go"], "2"), (&["go"], "")]), Outcome::NoPlace);
}

#[test]
fn a_joined_prompt_that_may_be_another_turn_is_no_place() {
    let record = || vec![done("one", "1"), open("go", "begin")];
    assert_eq!(
        compare(record(), &[(&["one"], "1"), (&["go", "two"], "2"), (&["go"], "begin")]),
        Outcome::NoPlace
    );
    let record = || vec![done("one", "1"), open("go", ""), done("three", "3")];
    let outcome = compare(record(), &[(&["one"], "1"), (&["go", "three"], "3"), (&["go"], "new")]);
    assert_eq!(next(outcome), (2, 0));
}

#[test]
fn what_was_taken_ends_with_its_user_message() {
    let record = || vec![done("one", "1"), recorded("two", "", TurnEnd::Taken)];
    assert_eq!(next(compare(record(), &[(&["one"], "1"), (&["two"], ""), (&["three"], "")])), (2, 0));
    assert_eq!(compare(record(), &[(&["one"], "1"), (&["two", "file:///a"], "")]), Outcome::NoPlace);
    assert_eq!(compare(record(), &[(&["one"], "1"), (&["file:///a", "two"], "")]), Outcome::NoPlace);
}

#[test]
fn what_is_taken_has_no_wrappers() {
    let turn = |chunks: &[&str], reply| ReplayedTurn {
        chunks: chunks.iter().map(ToString::to_string).collect(),
        reply: done("", reply).reply,
        ..ReplayedTurn::default()
    };
    assert_eq!(turn(&["one", CONTEXT, "two"], "").prompt(0), "onetwo");
    assert_eq!(turn(&["one", CONTEXT, "two"], "").prompt(1), "two");
    assert_eq!(turn(&["", INTERRUPTED], "").prompt(0), "");
    assert_eq!(turn(&[CONTEXT], "reply").prompt(0), CONTEXT);
    assert!(turn(&[CONTEXT], "").is_continuation() && turn(&[INTERRUPTED], "reply").is_continuation());
    assert!(!turn(&[CONTEXT], "reply").is_continuation() && !turn(&["", INTERRUPTED], "").is_continuation());
}

#[test]
fn a_turn_that_was_taken_counts_once_another_follows() {
    let taken = |reply| recorded("two", reply, TurnEnd::Taken);
    let replay: &[(&[&str], &str)] = &[(&["two"], "2 and more"), (&["three"], "3")];
    assert_eq!(compare(vec![taken("2")], replay), Outcome::NoPlace);
    let place =
        found(compare(vec![done("one", "1"), taken("2")], &[(&["one"], "1"), (&["two"], "2 and more")]));
    assert!(place.rest.is_some());
    let place = found(compare(vec![taken("2 and more"), open("three", "")], replay));
    assert_eq!((place.next.turn, place.rest.is_some()), (2, true));
}

#[test]
fn a_steered_prompt_begins_a_turn_on_both_sides() {
    let record = vec![done("one", "begin"), done("but shorter", "end")];
    let replay: &[(&[&str], &str)] = &[(&["one"], "begin"), (&["but shorter"], "end"), (&["two"], "2")];
    assert_eq!(next(compare(record, replay)), (2, 0));
}

#[test]
fn a_history_that_ends_early_takes_nothing() {
    let record = vec![done("one", "1"), done("two", "2"), done("three", "3"), open("four", "")];
    let place = found(compare(record, &[(&["zero"], "0"), (&["one"], "1"), (&["two"], "2")]));
    assert_eq!((place.next.turn, place.new_turns, place.missing.clone()), (3, 0, vec![3, 4]));
    assert_eq!(place.ends_after(4), Some(2));
}

#[test]
fn only_turns_with_an_unknown_reply_count_as_unrecorded() {
    let replay: &[(&[&str], &str)] =
        &[(&["rules\none"], "1"), (&["summary"], ""), (&["foreign"], "text"), (&["two"], "2")];
    let record = Record::new(vec![done("one", "1"), done("two", "2")]);
    let replayed = |(chunks, reply): &(&[&str], &str)| ReplayedTurn {
        chunks: chunks.iter().map(ToString::to_string).collect(),
        reply: done("", reply).reply,
        ..ReplayedTurn::default()
    };
    assert_eq!(record.unrecorded(&replay.iter().map(replayed).collect::<Vec<_>>()), [2]);
}

#[test]
fn a_reply_that_was_not_stored_is_no_difference() {
    let record = || vec![done("one", "1"), done("two", "API error"), done("three", "API error")];
    let replay = [(&["one"][..], "1"), (&["two"], ""), (&["three"], ""), (&["four"], "4")];
    let place = found(compare(record(), &replay[..3]));
    assert_eq!((place.next.turn, place.new_turns, place.missing.len()), (3, 0, 0));
    assert_eq!(compare(record(), &replay), Outcome::NoPlace);
    assert_eq!(
        compare(record(), &[(&["one"], "1"), (&["two"], ""), (&["three"], "other")]),
        Outcome::NoPlace
    );
    let repeated = || vec![done("one", "1"), done("two", "2"), done("two", "API error")];
    assert_eq!(compare(repeated(), &[(&["one"], "1"), (&["two"], "2"), (&["two"], "")]), Outcome::NoPlace);
}

#[test]
fn attempts_that_are_joined_in_one_message_are_one_turn() {
    let record = |attempts| vec![done("one", "1"), RecordedTurn { attempts, ..done("two", "2") }];
    let replay = [(&["one"][..], "1"), (&["two", "two"], "2"), (&["three"], "3")];
    assert_eq!(next(compare(record(1), &replay)), (2, 0));
    assert_eq!(next(compare(record(2), &replay)), (2, 0));
    assert_eq!(compare(record(0), &replay), Outcome::NoPlace);
    assert_eq!(compare(record(1), &[(&["one"], "1"), (&["two", "two", "two"], "2")]), Outcome::NoPlace);
}

#[test]
fn a_summary_of_the_last_compaction_has_nothing_new() {
    let compact = || {
        let mut turn = done("/compact", "");
        turn.summary.push("1. Request:\n   Fix it");
        vec![done("one", "1"), done("two", "2\nand done"), turn]
    };
    let message = "The session is continued.\n\n1. Request:\n   Fix it\n\nGo on.";
    for kept in ["", "and done", "2\nand done"] {
        let place = found(compare(compact(), &[(&[message], kept)]));
        assert_eq!((place.next.turn, place.new_turns, place.missing.len()), (1, 0, 0));
    }
    assert_eq!(compare(compact(), &[(&[message], "other")]), Outcome::NoPlace);
    assert_eq!(compare(compact(), &[(&[message], ""), (&["three"], "3")]), Outcome::NoPlace);
    assert_eq!(compare(compact(), &[(&[message], ""), (&[message], "")]), Outcome::NoPlace);
    assert_eq!(compare(compact(), &[(&["The session is continued.\n\nGo on."], "")]), Outcome::NoPlace);
    let with_turn = found(compare(compact(), &[(&[message], ""), (&["two"], "2\nand done")]));
    assert_eq!((with_turn.new_turns, with_turn.ends_after(3)), (0, None));
    assert_eq!(found(compare(compact(), &[(&["one"], "1")])).ends_after(3), Some(1));
}

#[test]
fn ids_choose_among_places() {
    let turn = |id| with_ids(done("go", "ok"), &[id], |turn| &mut turn.ids);
    let replay: &[(&[&str], &str, &[&str])] =
        &[(&["go"], "ok", &["1"]), (&["go"], "ok", &["2"]), (&["go"], "ok", &["3"])];
    assert_eq!(next(compare_with_ids(vec![turn("1"), turn("2")], replay)), (2, 0));
    assert_eq!(compare_with_ids(vec![turn("1"), turn("1")], replay), Outcome::NoPlace);
    assert_eq!(compare_with_ids(vec![turn("4"), turn("5")], replay), Outcome::NoPlace);
}

#[test]
fn ids_do_not_make_a_place() {
    let turn = with_ids(done("one", "1"), &["1"], |turn| &mut turn.ids);
    assert_eq!(compare_with_ids(vec![turn.clone()], &[(&["other"], "1", &["1"])]), Outcome::NoPlace);
    assert_eq!(compare_with_ids(vec![turn], &[(&["one"], "other", &["1"])]), Outcome::NoPlace);
}

#[test]
fn ids_exclude_a_place() {
    let turn = |id| vec![with_ids(done("one", "1"), &[id], |turn| &mut turn.ids)];
    let replay: &[(&[&str], &str, &[&str])] = &[(&["one"], "1", &["1", "r"]), (&["two"], "2", &["2"])];
    assert_eq!(compare_with_ids(turn("2"), replay), Outcome::NoPlace);
    assert_eq!(next(compare_with_ids(turn("1"), replay)), (1, 0));
    assert_eq!(next(compare_with_ids(turn("r"), replay)), (1, 0));
    assert_eq!(next(compare_with_ids(turn("of another process"), replay)), (1, 0));
}

#[test]
fn texts_are_needed_for_turns_that_did_not_complete() {
    let record = Record::new(vec![done("one", "1"), open("two three", "")]);
    let needs =
        |chunks: &[&str]| record.needs_texts(&chunks.iter().map(ToString::to_string).collect::<Vec<_>>());
    assert!(
        needs(&["two ", "three"]) && needs(&["other", "two three"]) && needs(&[INTERRUPTED]) && needs(&[])
    );
    assert!(!needs(&["one"]) && !needs(&["two"]) && !needs(&["other"]));
}

#[test]
fn a_line_is_cut_only_where_its_text_is_known() {
    let record = Record::new(vec![done("one", "1"), open("two", "beg")]);
    let mut reply = Reply::default();
    reply.push("begin");
    let turn = |chunk: &str, reply| ReplayedTurn {
        chunks: vec![chunk.to_owned()],
        reply,
        ..ReplayedTurn::default()
    };
    let one = turn("one", done("one", "1").reply);
    assert_eq!(record.place(&[one.clone(), turn("two", reply.clone())]), Outcome::NoPlace);
    assert_eq!(
        record.place(&[one.clone(), turn("new", Reply::default()), turn("two", reply)]),
        Outcome::NoPlace
    );
}

#[test]
fn a_comparison_that_takes_too_long_has_no_place() {
    let number = |index: usize| (index % 30_000).to_string();
    let turns = (0..60_000).map(|index| done("go", &number(index))).collect();
    let replay: Vec<_> = (0..60_000).map(number).collect();
    let replay: Vec<_> = replay.iter().map(|reply| (&["go"][..], reply.as_str())).collect();
    assert_eq!(compare(turns, &replay), Outcome::NoPlace);
    let line = "}\n".repeat(100_000);
    let record = vec![done("go", &format!("{line}x"))];
    assert_eq!(next(compare(record, &[(&["go"], &format!("{line}}}\n}}\nx"))])), (1, 0));
}

/// The lines of a text as the model has them.
fn lines(text: &str) -> Vec<String> {
    let line = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    text.split('\n').map(line).filter(|line| !line.is_empty()).collect()
}

proptest! {
    #[test]
    fn a_text_has_the_same_lines_in_any_chunks(
        text in "[ab é\t\r\n]{0,60}",
        cuts in proptest::collection::vec(0..60usize, 0..12),
    ) {
        let mut at_once = Reply::with_texts();
        at_once.push(&text);
        prop_assert_eq!(at_once.texts.clone().unwrap(), lines(&text));
        let (mut parts, mut from) = (Reply::with_texts(), 0);
        let cuts = cuts.into_iter().filter(|cut| text.is_char_boundary(*cut)).chain([text.len()]);
        let cuts: BTreeSet<_> = cuts.collect();
        for cut in cuts {
            parts.push(&text[from..cut]);
            from = cut;
        }
        prop_assert_eq!((&parts.lines, &parts.texts, parts.size), (&at_once.lines, &at_once.texts, at_once.size));
        for (line, text) in at_once.lines.iter().zip(lines(&text)) {
            prop_assert_eq!((line.hash, line.len as usize), (hashed(SEED, text.as_bytes()), text.chars().count()));
        }
    }

    #[test]
    fn a_run_of_lines_is_found_where_it_stands(text in "[ab]{0,40}", run in "[ab]{1,5}") {
        let line = |sign: char| Line { hash: u64::from(sign), len: 1 };
        let (text, run): (Vec<_>, Vec<_>) = (text.chars().map(line).collect(), run.chars().map(line).collect());
        let places = |skip: usize| text.windows(run.len()).enumerate().skip(skip).find(|(_, part)| *part == run);
        prop_assert_eq!(find(&run, &text, |_| true), places(0).map(|(at, _)| at));
        prop_assert_eq!(find(&run, &text, |at| at > 5), places(6).map(|(at, _)| at));
    }

    #[test]
    fn the_rest_of_a_reply_follows_its_recorded_part(text in "[ab é\t\n]{0,40}", cut in 0..40usize) {
        let cut = (0..=cut.min(text.len())).rev().find(|cut| text.is_char_boundary(*cut)).unwrap();
        let record = vec![done("one", "1"), open("two", &text[..cut])];
        let mut place = found(compare(record, &[(&["one"], "1"), (&["two"], &text)]));
        let rest = place.rest.as_mut().map(|rest| rest.cut(&text)).unwrap_or_default();
        let joined = format!("{}{rest}", &text[..cut]);
        prop_assert_eq!(lines(&joined), lines(&text));
        prop_assert!(text.ends_with(rest));
        let record = vec![done("one", "1"), open("two", &joined)];
        match compare(record, &[(&["one"], "1"), (&["two"], &text)]) {
            Outcome::Place(place) => prop_assert_eq!(place.rest, None),
            outcome => prop_assert_eq!(outcome, Outcome::NoPlace),
        }
    }
}
