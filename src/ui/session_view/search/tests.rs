//! Tests of the search: hits equal those of the complete text, whatever the steps and however the text arrived.

use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::*;
use crate::core::{Message, MessagePart, ToolCall, Transcript};
use crate::model::{Role, SessionKey, SessionWorkspace, ToolCallId, ToolKind, ToolStatus};
use crate::ui::tests::fixture;

fn session() -> Session {
    Session::new(SessionKey(1), SessionWorkspace::default())
}

fn message(text: &str) -> ItemBody {
    let message = fixture::message(Role::Agent, text, Instant::now());
    ItemBody::Message(Message { is_open: true, ..message })
}

fn change(transcript: &mut Transcript, id: ItemId, change: impl FnOnce(&mut Message)) {
    transcript.edit(id, |item| {
        if let ItemBody::Message(message) = &mut item.body {
            change(message);
        }
    });
}

fn search(query: &str, is_regex: bool, from: i64) -> Search {
    let mut search = Search::new(Some((ItemId(from), ItemId(from))));
    search.is_regex = is_regex;
    search.input = LineInput::new(query);
    search.restart();
    search
}

fn finish(search: &mut Search, session: &mut Session, budget: usize) {
    search.follow(&session.transcript);
    while search.is_pending() {
        search.step_by(session, budget);
    }
}

fn found(query: &str, is_regex: bool, text: &str) -> Vec<String> {
    let pattern = Pattern::read(query, is_regex).unwrap().unwrap();
    pattern.matches(text).into_iter().map(|range| text[range].to_owned()).collect()
}

#[test]
fn a_literal_query_uses_smart_case_and_ignores_markdown_markup() {
    assert_eq!(found("foo", false, "Foo fOO foo"), ["Foo", "fOO", "foo"]);
    assert_eq!(found("Foo", false, "Foo fOO foo"), ["Foo"]);
    assert_eq!(found("a.b", false, "a.b axb"), ["a.b"]);
    assert_eq!(found("the check in", false, "**the** `check`\n> in x"), ["the** `check`\n> in"]);
    assert_eq!(found("a b", false, "a\n\nb"), Vec::<String>::new());
    assert_eq!(found(" a ", false, "b a b"), [" a "]);
    assert_eq!(found("  ", false, "x    y"), ["  ", "  "]);
}

#[test]
fn a_regular_expression_matches_within_a_line() {
    assert_eq!(found("^fn .*$", true, "fn a\r\n fn b\nfn c"), ["fn a", "fn c"]);
    assert_eq!(found(r"\S+x*", true, "A b"), ["A", "b"]);
    assert_eq!(found("x*", true, "axa"), ["x"]);
    assert_eq!(found("[^z]+", true, "a\nb"), ["a", "b"]);
    let problem = Pattern::read("a(", true).unwrap_err();
    assert_eq!(problem, "unclosed group");
    assert!(Pattern::read("(a{9999}){9999}", true).is_err());
    assert_eq!(Pattern::read("", true), Ok(None));
}

#[test]
fn the_first_hit_is_the_nearest_one_to_the_reader() {
    let mut session = session();
    for text in ["hit", "hit hit", "no", "hit", "no"] {
        session.transcript.push(0, message(text));
    }
    for (from, item, nth, ordinal) in [(0, 0, 0, 1), (2, 3, 0, 4), (4, 3, 0, 4), (99, 3, 0, 4)] {
        let mut search = search("hit", false, from);
        finish(&mut search, &mut session, 1);
        assert_eq!(search.current(), Some(Hit { item: ItemId(item), nth }));
        assert_eq!((search.ordinal(), search.total()), (Some(ordinal), 4));
    }
}

#[test]
fn a_hit_just_above_the_screen_is_nearer_than_one_far_below() {
    let mut session = session();
    for index in 0..20 {
        session.transcript.push(0, message(if matches!(index, 0 | 7 | 19) { "hit" } else { "no" }));
    }
    for budget in [1, STEP_BYTES] {
        for (first, last, item) in [(8, 12, 7), (8, 18, 19), (6, 18, 7), (1, 3, 0), (8, 99, 19)] {
            let mut search = search("hit", false, first);
            search.set_reading(Some((ItemId(first), ItemId(last))));
            finish(&mut search, &mut session, budget);
            assert_eq!(search.current(), Some(Hit { item: ItemId(item), nth: 0 }), "{first} to {last}");
        }
    }
}

#[test]
fn each_letter_is_looked_for_from_where_the_reader_was() {
    let mut session = session();
    for text in ["ab", "no", "no", "a", "no", "ab"] {
        session.transcript.push(0, message(text));
    }
    let mut search = search("a", false, 2);
    finish(&mut search, &mut session, STEP_BYTES);
    assert_eq!(search.current().map(|hit| hit.item), Some(ItemId(3)));
    search.input = LineInput::new("ab");
    search.restart();
    finish(&mut search, &mut session, STEP_BYTES);
    assert_eq!(
        search.current().map(|hit| hit.item),
        Some(ItemId(0)),
        "two items above, not two below the hit"
    );
    search.next();
    search.restart();
    finish(&mut search, &mut session, STEP_BYTES);
    assert_eq!(search.current().map(|hit| hit.item), Some(ItemId(5)), "the user went there");
}

#[test]
fn next_and_previous_go_through_all_hits_and_around() {
    let mut session = session();
    for text in ["hit", "no", "hit hit"] {
        session.transcript.push(0, message(text));
    }
    let mut search = search("hit", false, 0);
    finish(&mut search, &mut session, STEP_BYTES);
    let mut seen = Vec::new();
    for _ in 0..4 {
        seen.push(search.ordinal());
        search.next();
    }
    assert_eq!(seen, [Some(1), Some(2), Some(3), Some(1)]);
    search.previous();
    search.previous();
    assert_eq!(search.ordinal(), Some(3));
}

#[test]
fn a_growing_message_is_searched_from_its_last_line() {
    let mut session = session();
    let item = session.transcript.push(0, message(&"a hit in a line\n".repeat(2_000)));
    let mut search = search("a hit", false, 0);
    finish(&mut search, &mut session, STEP_BYTES);
    let before = search.growing.unwrap();
    assert!(before.from > 31_000, "{before:?}");
    change(&mut session.transcript, item, |message| {
        message.parts.push(MessagePart::Text("a\nhit".into()));
    });
    finish(&mut search, &mut session, STEP_BYTES);
    assert_eq!(search.total(), 2_001);
}

#[test]
fn only_shown_parts_of_a_call_are_searched() {
    let mut session = session();
    let mut tool = ToolCall::new(ToolCallId::from("call-needle"), Instant::now());
    tool.kind = ToolKind::Execute;
    tool.status = ToolStatus::Completed;
    tool.title = "Run needle".to_owned();
    tool.input.command = Some("grep needle".to_owned());
    tool.output_text = Some("a needle\nand a needle".into());
    tool.took = Some(Duration::from_secs(1));
    let shown = session.transcript.push(0, ItemBody::Tool(Box::new(tool.clone())));
    tool.from_ask_only = true;
    tool.decision = Some(crate::core::Decision::Cancelled(crate::model::Decider::User));
    session.transcript.push(0, ItemBody::Tool(Box::new(tool)));
    let mut search = search("needle", false, 0);
    finish(&mut search, &mut session, STEP_BYTES);
    assert_eq!((search.count_in(session.transcript.rank(shown)), search.total()), (3, 3));
    let item = &session.transcript.items()[0];
    assert_eq!(hits(search.pattern().unwrap(), item, &session)[1], (1, 2..8));
}

#[test]
fn a_replaced_transcript_is_searched_again() {
    let mut session = session();
    session.transcript.push(0, message("hit hit"));
    let mut open = search("hit", false, 0);
    finish(&mut open, &mut session, STEP_BYTES);
    session.transcript.clear();
    session.transcript.push(0, message("hit"));
    finish(&mut open, &mut session, STEP_BYTES);
    assert_eq!((open.total(), open.ordinal()), (1, Some(1)));
}

#[derive(Debug, Clone)]
enum TestStep {
    Push(String),
    Append(String),
    Part(String),
    Close,
    Look(usize),
}

fn text() -> impl Strategy<Value = String> {
    proptest::collection::vec(
        proptest::sample::select(vec!["a", "b", "A", " ", "\n", "*", "`", "ab", "\r\n", "> ", "ä"]),
        0..12,
    )
    .prop_map(|parts| parts.concat())
}

fn test_step() -> impl Strategy<Value = TestStep> {
    prop_oneof![
        text().prop_map(TestStep::Push),
        text().prop_map(TestStep::Append),
        text().prop_map(TestStep::Part),
        Just(TestStep::Close),
        (1_usize..200).prop_map(TestStep::Look),
    ]
}

/// The matches of a complete text, found by simple means.
fn naive(query: &str, is_regex: bool, text: &str) -> usize {
    let has_capital = query.contains('A');
    let built = |source: &str| {
        regex::RegexBuilder::new(source).case_insensitive(!has_capital).build().expect("a good pattern")
    };
    if is_regex {
        let regex = built(query);
        let lines = text.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line));
        return lines.map(|line| regex.find_iter(line).filter(|found| !found.is_empty()).count()).sum();
    }
    if query.contains(' ') {
        let gap = r"[*_`~]{0,3}(?:[ \t]+|[ \t]*\r?\n[ \t>]*)[*_`~]{0,3}";
        return built(&query.replace(' ', gap)).find_iter(text).count();
    }
    let (text, query) =
        if has_capital { (text.to_owned(), query) } else { (text.to_ascii_lowercase(), query) };
    text.matches(query).count()
}

proptest! {
    #[test]
    fn hits_do_not_depend_on_the_steps(
        test_steps in proptest::collection::vec(test_step(), 1..24),
        query in proptest::sample::select(vec![
            ("a", false), ("ab", false), ("aA", false), ("a b", false), ("a b a", false), ("b*", false),
            ("a+", true), ("^a", true), ("b$", true), (r"\bab?\b", true), ("[^a]", true),
        ]),
        from in 0_i64..6,
        budget in 1_usize..40,
    ) {
        let (query, is_regex) = query;
        let mut session = session();
        let mut search = search(query, is_regex, from);
        let mut open = None;
        for test_step in test_steps {
            match (test_step, open) {
                (TestStep::Push(text), _) => {
                    open = Some(session.transcript.push(0, message(&text)));
                }
                (TestStep::Append(text), Some(id)) => change(&mut session.transcript, id, |message| {
                    if let Some(MessagePart::Text(last)) = message.parts.last_mut() {
                        last.push_str(&text);
                    }
                }),
                (TestStep::Part(text), Some(id)) => change(&mut session.transcript, id, |message| {
                    message.parts.push(MessagePart::Text(text.into()));
                }),
                (TestStep::Close, Some(id)) => {
                    change(&mut session.transcript, id, |message| message.is_open = false);
                    open = None;
                }
                (TestStep::Look(bytes), _) => {
                    search.step_by(&session, bytes);
                }
                _ => {}
            }
        }
        finish(&mut search, &mut session, budget);
        let mut total = 0;
        for item in session.transcript.items() {
            let wanted: usize =
                texts(item, &session).iter().map(|text| naive(query, is_regex, &text.text)).sum();
            prop_assert_eq!(search.count_in(session.transcript.rank(item.id)), wanted);
            let positions = hits(search.pattern().unwrap(), item, &session);
            prop_assert_eq!(positions.len(), wanted);
            total += wanted;
        }
        prop_assert_eq!(search.total(), total);
        prop_assert_eq!(search.current().is_some(), total > 0);
    }
}
