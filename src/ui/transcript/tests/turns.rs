//! End lines of turns, running calls and open thoughts.

use super::*;
use crate::core::{Decision, TurnSummary};

fn rows(session: &Viewed) -> Vec<String> {
    rows_of(&render(session, &mut TranscriptView::default(), 80, 40))
}

fn edit(path: &str, old: Option<&str>, new: &str) -> ToolCall {
    let mut call = tool(ToolKind::Edit, ToolStatus::Completed, "Edit");
    let change = DiffChange::Texts { old: old.map(Into::into), new: new.into() };
    call.content = vec![ToolContent::Diff(FileDiff { path: path.into(), change })];
    call
}

fn end(session: &mut Viewed, id: ItemId, millis: u64, cost: Option<f64>) {
    let cost = cost.map(|amount| Cost { amount, currency: "USD".into() });
    let summary = TurnSummary { took: Some(Duration::from_millis(millis)), cost };
    session.transcript.edit(id, |item| item.end = Some(Box::new(summary)));
}

#[test]
fn a_turn_ends_with_its_duration_files_and_cost() {
    let mut session = session();
    push(&mut session, message(Role::User, "do it"));
    push_tool(&mut session, edit("/home/ada/shop/a.rs", Some("1\n2\n"), "1\n3\n4\n"));
    push_tool(&mut session, edit("/home/ada/shop/a.rs", Some("5\n"), "6\n"));
    push_tool(&mut session, edit("/home/ada/shop/b.rs", None, "1\n"));
    let mut failed = edit("/home/ada/shop/c.rs", None, "1\n");
    failed.status = ToolStatus::Failed;
    push_tool(&mut session, failed);
    let last = push(&mut session, message(Role::Agent, "Done."));
    end(&mut session, last, 14_200, Some(0.05));
    let all = rows(&session);
    let at = all.iter().position(|row| row.contains("Done.")).unwrap();
    assert_eq!(all[at + 1..at + 3], ["", "   14 s · 2 files +4 −2 · $0.05"], "{all:?}");
}

#[test]
fn parts_of_an_end_line_that_are_unknown_or_zero_are_omitted() {
    let mut session = session();
    let id = push(&mut session, message(Role::Agent, "Hello."));
    let mut line = |millis: u64, cost: Option<f64>| {
        end(&mut session, id, millis, cost);
        rows(&session).get(2).cloned().unwrap_or_default().trim().to_owned()
    };
    assert_eq!(line(125_000, None), "2 min 5 s");
    assert_eq!(line(900, None), "", "a short turn without files and cost");
    assert_eq!(line(900, Some(0.001)), "", "a cost that rounds to zero");
    assert_eq!(line(900, Some(0.3)), "0.9 s · $0.30");
}

#[test]
fn cancelled_and_failed_turns_show_the_same_facts() {
    let mut session = session();
    push_tool(&mut session, edit("/home/ada/shop/b.rs", None, "1\n"));
    let stopped =
        TurnEnd::Stopped { reason: StopReason::Cancelled, usage: None, took: Duration::from_secs(9) };
    let id = push(&mut session, ItemBody::TurnEnd(stopped));
    end(&mut session, id, 9_000, Some(0.2));
    let all = rows(&session);
    assert!(all.iter().any(|row| row.ends_with(" · 9 s · 1 file +1 · $0.20")), "{all:?}");
    let failed = TurnEnd::Failed { error: "overloaded".into(), fault: FaultKind::Agent };
    session.transcript.edit(id, |item| item.body = ItemBody::TurnEnd(failed));
    let all = rows(&session);
    assert_eq!(all.iter().filter(|row| row.contains("9 s · 1 file +1 · $0.20")).count(), 1, "{all:?}");
}

#[test]
fn an_end_line_stays_last_when_the_text_grows() {
    let mut session = session();
    let id = push(&mut session, message(Role::Agent, "One."));
    end(&mut session, id, 2_000, None);
    let mut view = TranscriptView::default();
    render(&session, &mut view, 80, 20);
    session.transcript.edit(id, |item| {
        let ItemBody::Message(message) = &mut item.body else { return };
        message.parts = vec![MessagePart::Text("One.\n\nTwo.".into())];
    });
    let again = rows_of(&render(&session, &mut view, 80, 20));
    assert_eq!(again[..5], ["   One.", "", "   Two.", "", "   2 s"], "{again:?}");
    assert_eq!(again, rows_of(&render(&session, &mut TranscriptView::default(), 80, 20)));
}

#[test]
fn approved_calls_look_running_until_they_end() {
    let mut session = session();
    let mut call = tool(ToolKind::Execute, ToolStatus::Pending, "make");
    call.decision = Some(Decision::Chosen { name: "Yes".into(), kind: None, is_allow: true, rule: None });
    let id = push_tool(&mut session, call);
    let head = |session: &Viewed| rows(session)[0].clone();
    assert!(
        head(&session).contains("▗ run     make") && head(&session).ends_with("8 s"),
        "{}",
        head(&session)
    );
    let set = |session: &mut Viewed, change: fn(&mut ToolCall)| {
        session.transcript.edit(id, |item| {
            let ItemBody::Tool(call) = &mut item.body else { return };
            change(call);
        });
    };
    set(&mut session, |call| call.status = ToolStatus::Completed);
    assert!(head(&session).contains("✓ run     make"), "{}", head(&session));
    set(&mut session, |call| (call.status, call.decision) = (ToolStatus::Pending, None));
    assert!(head(&session).contains("○ run     make"), "{}", head(&session));
}

#[test]
fn an_open_thought_shows_its_text_once() {
    let mut session = session();
    let id = push(&mut session, message(Role::Thought, "The clock is skewed"));
    session.transcript.edit(id, |item| {
        let ItemBody::Message(message) = &mut item.body else { return };
        message.took = None;
    });
    let count =
        |session: &Viewed| rows(session).iter().filter(|row| row.contains("The clock is skewed")).count();
    assert_eq!(count(&session), 1);
    session.view.set_open(id, Some(true));
    assert_eq!(count(&session), 1, "{:?}", rows(&session));
}

#[test]
fn prompts_have_a_background_over_the_full_width() {
    let mut session = session();
    push(&mut session, message(Role::User, "hello"));
    push(&mut session, message(Role::Agent, "hi"));
    let buf = render(&session, &mut TranscriptView::default(), 60, 10);
    let bg = dark().style(crate::ui::theme::Role::User).bg.unwrap();
    let is_prompt = |y: u16| (0..59).all(|x| buf[(x, y)].bg == bg);
    assert!(is_prompt(0), "{:?}", rows_of(&buf));
    assert!((1..10).all(|y| (0..60).all(|x| buf[(x, y)].bg != bg)), "{:?}", rows_of(&buf));
}
