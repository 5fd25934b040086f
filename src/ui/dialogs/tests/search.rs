//! Search, jumps, outline, and walking the transcript.

use std::time::{Duration, Instant};

use crate::config::keymap::Context;
use crate::core::{Cx, Effect, ItemBody, TimerId, ToolCall, TurnEnd, ViewCommand};
use crate::model::{Action, ItemId, LineEdit, Role, Severity, ToolCallId, ToolKind, ToolStatus};
use crate::ui::dialogs::testkit::{Rig, views};
use crate::ui::dialogs::{focus, line_input, on_search_timer, set_search_timer};
use crate::ui::tests::fixture;

/// These items are on the screen, from the first to the last.
fn read(rig: &mut Rig, first: ItemId, last: ItemId) {
    rig.shown_mut().reading = Some((first, last));
}

fn message(role: Role, text: &str) -> ItemBody {
    ItemBody::Message(fixture::message(role, text, Instant::now()))
}

fn call(kind: ToolKind, status: ToolStatus, title: &str, output: &str) -> ItemBody {
    let mut tool = ToolCall::new(ToolCallId::from(title), Instant::now());
    (tool.kind, tool.status, tool.title) = (kind, status, title.to_owned());
    tool.output_text = Some(output.into());
    ItemBody::Tool(Box::new(tool))
}

/// Items 0 to 7.
fn rig() -> Rig {
    let mut rig = Rig::new();
    for body in [
        message(Role::User, "first prompt"),
        message(Role::Thought, "a needle in thought"),
        call(ToolKind::Read, ToolStatus::Completed, "a.rs", "a needle in a file"),
        message(Role::Agent, "needle, needle"),
        message(Role::User, "second prompt"),
        call(ToolKind::Execute, ToolStatus::Failed, "make", "no rule"),
        message(Role::Agent, "done"),
        ItemBody::TurnEnd(TurnEnd::Failed {
            error: "the needle broke".to_owned(),
            fault: crate::model::FaultKind::Agent,
        }),
    ] {
        rig.session().transcript.push(1, body);
    }
    rig
}

fn find(rig: &mut Rig, text: &str) -> Vec<Effect> {
    rig.act(Action::OpenSearch);
    rig.type_line(text)
}

fn open_items(rig: &mut Rig) -> Vec<i64> {
    let items = rig.state.active_session().unwrap().transcript.items().iter();
    let is_open = |id| rig.app.shown().item(id).is_open == Some(true);
    items.filter(|item| is_open(item.id)).map(|item| item.id.0).collect()
}

fn ordinal(rig: &mut Rig) -> Option<usize> {
    rig.shown_mut().search.as_ref().and_then(|search| search.ordinal())
}

#[test]
fn letters_go_into_the_line_and_the_first_hit_is_shown() {
    let mut rig = rig();
    read(&mut rig, ItemId(3), ItemId(7));
    rig.act(Action::OpenSearch);
    assert_eq!(focus(&rig), Context::Search);
    let fx = rig.type_line("needle");
    assert_eq!(line_input(&rig).map(|line| line.text.as_str()), Some("needle"));
    assert_eq!(views(&fx), [ViewCommand::ShowHit]);
    let search = rig.shown_mut().search.clone().expect("it is open");
    assert_eq!((search.ordinal(), search.total(), search.is_complete()), (Some(3), 5, true));
}

#[test]
fn next_opens_what_hides_a_hit_and_folds_it_again_behind() {
    let mut rig = rig();
    find(&mut rig, "needle");
    assert_eq!((ordinal(&mut rig), open_items(&mut rig)), (Some(1), vec![1]));
    rig.act(Action::Accept);
    assert_eq!((ordinal(&mut rig), open_items(&mut rig)), (Some(2), vec![2]));
    rig.act(Action::Accept);
    assert_eq!((ordinal(&mut rig), open_items(&mut rig)), (Some(3), vec![]));
    rig.act(Action::Up);
    assert_eq!((ordinal(&mut rig), open_items(&mut rig)), (Some(2), vec![2]));
    rig.act(Action::Escape);
    assert_eq!(open_items(&mut rig), [2], "what one looks at stays");
}

#[test]
fn escape_closes_the_search_and_does_not_stop_the_turn() {
    let mut rig = rig();
    rig.run_turn();
    find(&mut rig, "needle");
    rig.act(Action::Escape);
    assert!(rig.shown_mut().search.is_none() && !rig.is_cancelling());
    assert_eq!(focus(&rig), Context::Main);
    rig.act(Action::Escape);
    assert!(rig.is_cancelling());
}

#[test]
fn a_wrong_expression_is_told_and_finds_nothing() {
    let mut rig = rig();
    find(&mut rig, "needle(");
    rig.act(Action::ToggleRegex);
    let search = rig.shown_mut().search.clone().expect("it is open");
    assert_eq!((search.problem.as_deref(), search.total()), (Some("unclosed group"), 0));
    rig.edit_line(LineEdit::Backspace);
    let search = rig.shown_mut().search.clone().expect("it is open");
    assert_eq!((search.problem.as_deref(), search.total()), (None, 5));
}

#[test]
fn what_comes_later_is_looked_at_by_a_timer_and_moves_nobody() {
    let mut rig = rig();
    find(&mut rig, "needle");
    let key = rig.state.active;
    let updated = |rig: &mut Rig| {
        let mut cx = Cx::new(rig.now);
        set_search_timer(&mut rig.app, &mut cx);
        cx.effects
    };
    updated(&mut rig);
    let mut cx = Cx::new(rig.now);
    on_search_timer(&mut rig.app, key, &mut cx);
    assert_eq!(updated(&mut rig), [], "at rest there is no timer");
    rig.session().transcript.push(1, message(Role::Agent, "one more needle"));
    let timer = Effect::Timer(TimerId::Search(key), Duration::from_millis(100));
    assert_eq!(updated(&mut rig), [timer]);
    assert_eq!(updated(&mut rig), [], "one timer is enough");
    on_search_timer(&mut rig.app, key, &mut cx);
    assert_eq!(cx.effects, []);
    assert_eq!(rig.shown_mut().search.as_ref().map(|search| search.total()), Some(6));
}

#[test]
fn a_long_transcript_is_looked_at_in_steps() {
    let mut rig = Rig::new();
    for _ in 0..4 {
        rig.session().transcript.push(1, message(Role::Agent, &"straw\n".repeat(100_000)));
    }
    rig.session().transcript.push(1, message(Role::Agent, "needle"));
    let fx = find(&mut rig, "needle");
    assert_eq!(views(&fx), []);
    let key = rig.state.active;
    let mut steps = 0;
    let mut cx = Cx::new(rig.now);
    set_search_timer(&mut rig.app, &mut cx);
    while let Some(Effect::Timer(TimerId::Search(_), after)) = cx.effects.pop() {
        assert_eq!(after, Duration::ZERO);
        on_search_timer(&mut rig.app, key, &mut cx);
        steps += 1;
        if !views(&cx.effects).is_empty() {
            break;
        }
        set_search_timer(&mut rig.app, &mut cx);
    }
    assert_eq!((steps, ordinal(&mut rig)), (2, Some(1)));
}

#[test]
fn walking_keys_are_commands_and_tab_goes_back() {
    let mut rig = rig();
    read(&mut rig, ItemId(0), ItemId(4));
    rig.act(Action::Browse);
    assert_eq!((focus(&rig), rig.shown_mut().selected), (Context::Browse, Some(ItemId(4))));
    assert_eq!(rig.state.flash, None, "the status line shows the keys");
    rig.act(Action::SelectPrevious);
    assert_eq!(rig.shown_mut().selected, Some(ItemId(3)));
    find(&mut rig, "needle");
    rig.act(Action::Accept);
    assert_eq!(
        (focus(&rig), ordinal(&mut rig)),
        (Context::Browse, Some(1)),
        "the line is left, the hit stays"
    );
    rig.act(Action::NextHit);
    assert_eq!(ordinal(&mut rig), Some(2));
    rig.act(Action::Escape);
    assert_eq!((focus(&rig), rig.shown_mut().search.is_none()), (Context::Browse, true));
    rig.act(Action::Browse);
    assert_eq!((focus(&rig), rig.shown_mut().selected), (Context::Main, None));
}

#[test]
fn jumps_go_from_the_mark_or_from_the_screen() {
    let mut rig = rig();
    let marked = |rig: &mut Rig, action| {
        rig.act(action);
        rig.shown_mut().selected.map(|id| id.0)
    };
    assert_eq!(marked(&mut rig, Action::PreviousPrompt), Some(4));
    assert_eq!(marked(&mut rig, Action::PreviousPrompt), Some(0));
    assert_eq!(marked(&mut rig, Action::PreviousPrompt), Some(0));
    assert_eq!(rig.state.flash.as_deref(), Some("No prompt above."));
    assert_eq!(marked(&mut rig, Action::NextFailure), Some(5));
    assert_eq!(marked(&mut rig, Action::NextFailure), Some(7));
    assert_eq!(marked(&mut rig, Action::PreviousCall), Some(5));
    // The mark is no longer on the screen: what is seen counts.
    read(&mut rig, ItemId(1), ItemId(3));
    assert_eq!(marked(&mut rig, Action::NextPrompt), Some(4));
    let fx = rig.act(Action::NextCall);
    assert_eq!(views(&fx), [ViewCommand::ShowSelectedAtTop]);
}

#[test]
fn the_outline_lists_what_happened_and_goes_there() {
    let mut rig = rig();
    let notice = |severity| ItemBody::notice(severity, "Said".to_owned(), None);
    rig.session().transcript.push(1, notice(Severity::Info));
    rig.session().transcript.push(1, notice(Severity::Error));
    rig.act(Action::OpenOutline);
    let shown: Vec<String> = rig.shown().iter().map(|row| (*row).to_owned()).collect();
    let rows = [
        "prompt  first prompt",
        "prompt  second prompt",
        "run     make",
        "end     the needle broke",
        "error   Said",
    ];
    assert_eq!(shown, rows);
    assert_eq!((rig.picker().title.as_str(), rig.marked()), ("Outline", "error   Said"));
    rig.type_line("make");
    let fx = rig.act(Action::Accept);
    assert_eq!(rig.shown_mut().selected, Some(ItemId(5)));
    assert_eq!(views(&fx), [ViewCommand::ShowSelectedAtTop]);
    assert!(rig.layers.is_empty());
}
