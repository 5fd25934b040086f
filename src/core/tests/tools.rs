//! Tests of tool calls, and of peculiarities of agents.

use std::time::Duration;

use super::support::*;
use crate::core::*;
use crate::model::*;

use ToolStatus::{Completed, Failed, InProgress, Pending};

#[test]
fn acp_v1_an_update_of_an_unknown_call_creates_it() {
    check(
        vec![news("t", InProgress)],
        r#"
        ready · running
        user* "go"
        tool t InProgress ""
        "#,
    );
}

#[test]
fn acp_v1_updates_keep_omitted_fields_and_replace_content() {
    let block = |text: &str| ToolContent::Block(ContentBlock::Text(text.into()));
    let mut app = TestCore::running();
    app.updates(vec![
        call("t", Pending),
        patch("t", |patch| patch.content = Patch::Set(vec![block("a"), block("b")])),
        patch("t", |patch| patch.content = Patch::Set(vec![block("c")])),
        patch("t", |patch| patch.kind = Patch::Set(ToolKind::Read)),
    ]);
    let tool = tool(&app, 1);
    assert_eq!(tool.content, [block("c")]);
    assert_eq!((tool.kind, tool.title.as_str()), (ToolKind::Read, "do t"));
}

#[test]
fn a_second_announcement_does_not_reset_the_status() {
    check(
        vec![call("t", Pending), news("t", InProgress), call("t", Pending)],
        r#"
        ready · running
        user* "go"
        tool t InProgress "do t"
        "#,
    );
    check(
        vec![call("t", Pending), news("t", Completed), call("t", Pending), news("t", InProgress)],
        r#"
        ready · running
        user* "go"
        tool t Completed "do t"
        "#,
    );
}

#[test]
fn updates_after_the_end_of_a_call_are_applied() {
    check(
        vec![
            call("t", Completed),
            patch("t", |patch| patch.title = Patch::Set("done: t".into())),
            news("t", Failed),
        ],
        r#"
        ready · running
        user* "go"
        tool t Failed "done: t"
        "#,
    );
}

#[test]
fn ids_reused_in_the_next_turn_are_other_calls() {
    let mut app = TestCore::running();
    app.updates(vec![call("call_1", Pending), news("call_1", Completed)]);
    app.end_turn(StopReason::EndTurn).submit("again");
    app.updates(vec![call("call_1", Pending)]);
    app.expect(
        r#"
        ready · running
        user* "go"
        tool call_1 Completed "do call_1"
        user* "again"
        tool call_1 Pending "do call_1"
        "#,
    );
}

#[test]
fn late_updates_reach_the_call_of_the_previous_turn() {
    let mut app = TestCore::running();
    app.update(call("t", InProgress)).end_turn(StopReason::EndTurn).submit("again");
    app.update(news("t", Failed));
    app.expect(
        r#"
        ready · running
        user* "go"
        tool t Failed "do t"
        user* "again"
        "#,
    );
}

#[test]
fn a_permission_before_its_call_shows_the_call_and_updates_keep_it() {
    let mut app = TestCore::running();
    app.ask(1, permission("t"));
    app.expect(
        r#"
        ready · running · 1 asks
        user* "go"
        tool t Pending ""
        "#,
    );
    app.choose(Some(0)).expect_sent("answer 1: selected yes");
    app.expect(
        r#"
        ready · running
        user* "go"
        tool t Pending "" [the yes: allowed] (hidden)
        "#,
    );
    app.update(news("t", Completed));
    app.expect(
        r#"
        ready · running
        user* "go"
        tool t Completed "" [the yes: allowed]
        "#,
    );
}

#[test]
fn an_announcement_after_the_permission_is_the_same_call() {
    let mut app = TestCore::running();
    app.ask(1, permission("t")).update(call("t", Pending)).choose(Some(0));
    app.expect(
        r#"
        ready · running
        user* "go"
        tool t Pending "do t" [the yes: allowed]
        "#,
    );
}

#[test]
fn calls_with_a_made_up_id_are_hidden_when_answered_and_each_request_is_separate() {
    let mut app = TestCore::running();
    app.update(call("real", Pending));
    app.ask(1, permission("confirmation")).choose(Some(0));
    app.ask(2, permission("confirmation"));
    app.expect(
        r#"
        ready · running · 1 asks
        user* "go"
        tool real Pending "do real"
        tool confirmation Pending "" [the yes: allowed] (hidden)
        tool confirmation Pending ""
        "#,
    );
    app.choose(Some(1)).end_turn(StopReason::EndTurn).submit("more");
    app.ask(3, permission("confirmation")).expect_sent(
        r#"
        answer 1: selected yes
        answer 2: selected no
        call prompt "more"
        "#,
    );
    assert!(!app.session().transcript.items().last().is_some_and(Item::is_hidden));
}

#[test]
fn a_bare_call_in_a_permission_is_merged_with_the_known_call() {
    let mut app = TestCore::running();
    app.update(call("t", Pending));
    app.ask(1, permission("t"));
    app.expect(
        r#"
        ready · running · 1 asks
        user* "go"
        tool t Pending "do t"
        "#,
    );
    let OpenRequestKind::Permission { tool, .. } = &app.session().requests[0].kind else {
        panic!("a permission was asked");
    };
    assert_eq!(*tool, ItemId(1));
}

#[test]
fn calls_left_open_are_closed_with_the_turn() {
    let mut app = TestCore::running();
    app.updates(vec![call("edit", Pending), call("other", Completed)]);
    app.ask(1, permission("refused")).update(call("refused", Pending)).choose(Some(1));
    app.end_turn(StopReason::EndTurn);
    app.expect(
        r#"
        ready · idle
        user* "go"
        tool edit Completed? "do edit"
        tool other Completed "do other"
        tool refused Cancelled? "do refused" [the no: refused]
        "#,
    );
    app.update(news("edit", Failed));
    assert_eq!((tool(&app, 1).status, tool(&app, 1).is_status_assumed), (Failed, false));
}

#[test]
fn an_interrupted_turn_cancels_its_open_calls() {
    let mut app = TestCore::running();
    app.update(call("t", InProgress)).end_turn(StopReason::MaxTokens);
    app.expect(
        r#"
        ready · idle
        user* "go"
        tool t Cancelled? "do t"
        end MaxTokens
        "#,
    );
}

#[test]
fn a_diff_listed_twice_is_shown_once() {
    let diff = |new: &str| {
        ToolContent::Diff(FileDiff {
            path: "/code/shop/a.rs".into(),
            change: DiffChange::Texts { old: None, new: new.into() },
        })
    };
    let mut app = TestCore::running();
    app.update(patch("t", |patch| {
        patch.content = Patch::Set(vec![diff("a"), diff("b"), diff("a")]);
        patch.input = Patch::Set(ToolInput {
            diffs: vec![FileDiff {
                path: "/code/shop/a.rs".into(),
                change: DiffChange::Patch("*** Begin Patch".into()),
            }],
            ..ToolInput::default()
        });
    }));
    assert_eq!(tool(&app, 1).content, [diff("a"), diff("b")]);
    assert_eq!(tool(&app, 1).diffs().count(), 2, "the input repeats the content");
    app.update(patch("t", |patch| patch.content = Patch::Set(Vec::new())));
    assert_eq!(tool(&app, 1).diffs().count(), 1, "only the input contains the change");
}

#[test]
fn an_input_grows_and_an_empty_title_is_ignored() {
    let mut app = TestCore::running();
    let input = |text: &str| Patch::Set(Raw(text.into()));
    app.updates(vec![
        call("t", Pending),
        patch("t", |patch| patch.raw_input = input("{}")),
        patch("t", |patch| {
            patch.raw_input = input(r#"{"command":"ls"}"#);
            patch.title = Patch::Set(String::new());
        }),
    ]);
    assert_eq!(tool(&app, 1).raw_input, Some(Raw(r#"{"command":"ls"}"#.into())));
    assert_eq!(tool(&app, 1).title, "do t");
}

#[test]
fn output_reported_with_a_call_is_a_terminal_and_redraws_its_item() {
    let terminal = TerminalId::from("term");
    let mut app = TestCore::running();
    app.update(patch("t", |patch| {
        patch.content = Patch::Set(vec![ToolContent::Terminal(terminal.clone())]);
        patch.terminals = vec![AgentTerminal::Info { id: terminal.clone(), cwd: Some("/work".into()) }];
    }));
    let before = app.session().transcript.items()[1].rev;
    app.update(patch("t", |patch| {
        patch.terminals = vec![AgentTerminal::Output { id: terminal.clone(), data: "hello".into() }];
    }));
    assert!(app.session().transcript.items()[1].rev > before);
    app.wait(2).update(patch("t", |patch| {
        let status = ExitInfo { code: Some(0), signal: None };
        patch.terminals = vec![AgentTerminal::Exit { id: terminal.clone(), status }];
    }));
    let view = &app.session().terminals[&terminal];
    assert_eq!((&view.output[..], view.is_ours), (b"hello".as_slice(), false));
    assert_eq!(view.exit.as_ref().and_then(|exit| exit.code), Some(0));
    assert_eq!(view.took.map(|took| took.as_secs()), Some(2));
}

#[test]
fn a_terminal_retains_its_last_megabyte_from_a_character_boundary() {
    let mut view = TerminalView::new(false, std::time::Instant::now());
    for _ in 0..40_000 {
        view.append("schön äöü\nöääöü äöüäöü schön\n".as_bytes());
        assert!(view.output.len() <= TERMINAL_VIEW_BYTES);
    }
    assert!(view.output.len() > TERMINAL_VIEW_BYTES / 2);
    assert!(std::str::from_utf8(&view.output).is_ok());
    let total = 40_000 * "schön äöü\nöääöü äöüäöü schön\n".len() as u64;
    assert_eq!(view.dropped_bytes + view.output.len() as u64, total);
    view.append(&vec![b'x'; 3 * TERMINAL_VIEW_BYTES]);
    assert!(view.output.len() <= TERMINAL_VIEW_BYTES);
    assert_eq!(view.dropped_bytes + view.output.len() as u64, total + 3 * TERMINAL_VIEW_BYTES as u64);
}

#[test]
fn a_call_of_a_subagent_names_its_parent() {
    let mut app = TestCore::running();
    app.update(call("t", InProgress)).update(patch("u", |patch| patch.parent = Some("t".into())));
    assert_eq!(tool(&app, 2).parent.as_ref().map(ToolCallId::as_str), Some("t"));
}

#[test]
fn the_calls_of_a_subagent_are_counted_once() {
    let mut app = TestCore::running();
    app.update(call("t", InProgress));
    let of = |id: &str, parent: &str| patch(id, |patch| patch.parent = Some(parent.into()));
    app.updates(vec![of("a", "t"), of("b", "t"), of("a", "t"), patch("c", |_| {}), of("c", "t")]);
    assert_eq!(tool(&app, 1).calls, 3);
    app.updates(vec![of("d", "a"), of("e", "missing"), of("f", "f")]);
    assert_eq!([1, 2, 3].map(|item| tool(&app, item).calls), [3, 1, 0]);
}

fn tool(app: &TestCore, item: usize) -> ToolCall {
    match &app.session().transcript.items()[item].body {
        ItemBody::Tool(tool) => (**tool).clone(),
        other => panic!("no tool call: {other:?}"),
    }
}

#[test]
fn a_change_reported_as_texts_and_as_a_patch_is_one() {
    let texts = FileDiff {
        path: "a.rs".into(),
        change: DiffChange::Texts { old: Some("x\n".into()), new: "y\n".into() },
    };
    let as_patch = |text: &str| FileDiff { path: "a.rs".into(), change: DiffChange::Patch(text.into()) };
    let mut app = TestCore::running();
    let content = [as_patch("@@ -1 +1 @@\n-x\n+y\n"), texts.clone(), as_patch("@@ -9 +9 @@\n-v\n+w\n")];
    app.update(patch("t", |patch| {
        patch.content = Patch::Set(content.into_iter().map(ToolContent::Diff).collect());
    }));
    let reported: Vec<FileDiff> = tool(&app, 1).diffs().cloned().collect();
    assert_eq!(reported, [texts, as_patch("@@ -9 +9 @@\n-v\n+w\n")]);
}

#[test]
fn the_users_decision_time_is_not_part_of_the_calls_duration() {
    let mut app = TestCore::running();
    app.update(call("t", Pending)).ask(1, permission("t")).wait(60).choose(Some(0)).wait(2);
    app.update(news("t", Completed));
    assert_eq!(tool(&app, 1).took, Some(Duration::from_secs(2)));
}
