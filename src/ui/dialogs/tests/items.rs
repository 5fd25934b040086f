//! Tests of actions on items: inspecting, opening locations, filtering.

use crate::config::keymap::Context;
use crate::core::{Effect, ItemBody, ToolCall};
use crate::model::{
    Action, DiffChange, DiffPosition, FileDiff, ItemId, LocatedDiff, Location, PieceStart, Raw, ToolContent,
    ToolKind,
};
use crate::ui::dialogs::InspectPage;
use crate::ui::dialogs::focus;
use crate::ui::dialogs::refresh;
use crate::ui::dialogs::testkit::Rig;

fn push(rig: &mut Rig, change: impl FnOnce(&mut ToolCall)) {
    let mut call = ToolCall::new("t".into(), rig.now);
    change(&mut call);
    rig.session().transcript.push(1, ItemBody::Tool(Box::new(call)));
}

fn at(path: &str, line: Option<u32>) -> Location {
    Location { path: path.into(), line }
}

fn opened(fx: &[Effect]) -> Option<(String, Option<u32>)> {
    fx.iter().find_map(|effect| match effect {
        Effect::OpenFile { location, .. } => Some((location.path.display().to_string(), location.line)),
        _ => None,
    })
}

#[test]
fn the_selected_call_or_the_last_one_is_shown_as_received() {
    let mut rig = Rig::new();
    rig.act(Action::InspectItem);
    assert_eq!(focus(&rig), Context::Main, "there is nothing to show");
    push(&mut rig, |_| {});
    push(&mut rig, |_| {});
    rig.session().transcript.push(
        1,
        ItemBody::Answered { question: "?".into(), answer: "!".into(), by: crate::model::Decider::User },
    );
    let shown = |rig: &mut Rig| {
        rig.act(Action::InspectItem);
        let item = rig.layers.top::<InspectPage>().map(|page| page.item);
        rig.layers.clear();
        item
    };
    assert_eq!(shown(&mut rig), Some(ItemId(1)));
    rig.shown_mut().selected = Some(ItemId(0));
    assert_eq!(shown(&mut rig), Some(ItemId(0)));
    rig.shown_mut().selected = Some(ItemId(2));
    assert_eq!(shown(&mut rig), None, "a message has no raw data");
    let raw = ItemBody::Raw { name: "news".into(), raw: Raw("{}".into()) };
    let raw = rig.session().transcript.push(1, raw);
    rig.shown_mut().selected = Some(raw);
    rig.act(Action::InspectItem);
    assert_eq!(focus(&rig), Context::Text);
    rig.act(Action::Escape);
    assert_eq!(focus(&rig), Context::Main);
}

#[test]
fn the_location_of_a_call_opens_in_the_editor() {
    let mut rig = Rig::new();
    assert_eq!(opened(&rig.act(Action::OpenLocation)), None);
    push(&mut rig, |call| call.locations = vec![at("src/a.rs", Some(3))]);
    push(&mut rig, |_| {});
    assert_eq!(opened(&rig.act(Action::OpenLocation)), Some(("/home/u/shop/src/a.rs".into(), Some(3))));
}

#[test]
fn a_change_opens_at_its_first_changed_line() {
    let opened_with = |old: Option<&str>, position: DiffPosition| {
        let mut rig = Rig::new();
        push(&mut rig, |call| {
            let change = DiffChange::Texts { old: old.map(Into::into), new: "a\nb\nnew\nd\n".into() };
            let diff = FileDiff { path: "/home/u/shop/a.rs".into(), change };
            call.content = vec![ToolContent::Diff(diff.clone())];
            call.positions = vec![LocatedDiff { diff, position, is_done: true }];
        });
        opened(&rig.act(Action::OpenLocation)).and_then(|(_, line)| line)
    };
    let snippet = || DiffPosition::Lines(vec![Some(PieceStart::at(12, true))]);
    assert_eq!(opened_with(Some("a\nb\nold\nd\n"), snippet()), Some(14));
    assert_eq!(opened_with(Some("a\nb\nold\nd\n"), DiffPosition::Whole), Some(3));
    assert_eq!(opened_with(Some("a\nb\nnew\nd\n"), DiffPosition::Whole), Some(1), "nothing changed");
    assert_eq!(opened_with(None, DiffPosition::Whole), Some(1), "a new file");
    assert_eq!(opened_with(Some("a\n"), DiffPosition::Gone), None);
}

#[test]
fn the_user_selects_one_of_several_locations() {
    let mut rig = Rig::new();
    push(&mut rig, |call| {
        let change = DiffChange::Texts { old: Some("x".into()), new: "y".into() };
        let diff = FileDiff { path: "/home/u/shop/a.rs".into(), change };
        call.content = vec![ToolContent::Diff(diff.clone())];
        let position = DiffPosition::Lines(vec![Some(PieceStart::at(12, true))]);
        call.positions = vec![LocatedDiff { diff, position, is_done: true }];
        call.locations = vec![at("/home/u/shop/a.rs", None), at("/etc/hosts", Some(2))];
    });
    assert_eq!(opened(&rig.act(Action::OpenLocation)), None);
    let Some(dialog) = rig.state.questions.last() else { panic!("a question") };
    let labels: Vec<&str> = dialog.answers.iter().map(|choice| choice.label.as_str()).collect();
    assert_eq!(labels, ["a.rs:12", "/etc/hosts:2"]);
    assert_eq!(opened(&rig.act(Action::Choose(1))), Some(("/home/u/shop/a.rs".into(), Some(12))));
    assert_eq!(focus(&rig), Context::Main);
}

#[test]
fn the_transcript_is_filtered_by_kind_and_escape_clears_the_filter() {
    use crate::core::state::outline::Only;
    use crate::model::{ToolKind, ToolStatus};
    let mut rig = Rig::new();
    push(&mut rig, |call| call.kind = ToolKind::Execute);
    push(&mut rig, |call| (call.kind, call.status) = (ToolKind::Read, ToolStatus::Failed));
    push(&mut rig, |call| call.kind = ToolKind::Read);
    rig.act(Action::OpenFilter);
    let rows: Vec<(String, String)> =
        rig.picker().rows.iter().map(|row| (row.label.clone(), row.right.clone())).collect();
    let counts: Vec<&str> = rows.iter().map(|(_, count)| count.as_str()).collect();
    assert_eq!(counts, ["3", "2", "0", "0", "1", "1"], "{rows:?}");
    for _ in 0..4 {
        rig.act(Action::Down);
    }
    rig.act(Action::Accept);
    assert_eq!(rig.shown_mut().only, Some(Only::Commands));
    // Also while browsing, as the edge of the prompt says.
    rig.act(Action::Browse);
    rig.act(Action::Escape);
    assert_eq!((rig.shown_mut().only, focus(&rig)), (None, Context::Browse));
    rig.act(Action::Escape);
    assert_eq!(focus(&rig), Context::Main);
    rig.shown_mut().only = Some(Only::Commands);
    // The selection moves over visible items.
    rig.act(Action::SelectPrevious);
    assert_eq!(rig.shown_mut().selected, Some(ItemId(0)));
    rig.run_turn();
    rig.act(Action::Escape);
    assert_eq!(rig.shown_mut().only, None);
    assert!(!rig.is_cancelling(), "one press does one thing");
    rig.shown_mut().only = Some(Only::Commands);
    rig.act(Action::NextFailure);
    assert_eq!(rig.shown_mut().selected, Some(ItemId(1)), "the target of a jump is visible");
    assert_eq!(rig.shown_mut().only, None);
    rig.shown_mut().only = Some(Only::Failures);
    rig.act(Action::OpenSearch);
    assert_eq!(rig.shown_mut().only, None, "hits are anywhere");
}

#[test]
fn the_first_choice_after_a_transcript_was_replaced_stays() {
    let mut rig = Rig::new();
    rig.session().transcript.clear();
    push(&mut rig, |call| call.kind = ToolKind::Read);
    let id = rig.session().transcript.items()[0].id;
    rig.act(Action::SelectPrevious);
    rig.act(Action::ToggleItem(id));
    refresh(&mut rig);
    assert_eq!((rig.app.shown().selected, rig.app.shown().item(id).is_open), (Some(id), Some(true)));
    rig.session().transcript.clear();
    refresh(&mut rig);
    assert_eq!((rig.app.shown().selected, rig.app.shown().item(id).is_open), (None, None));
}

#[test]
fn one_gap_is_opened_and_all_are_closed_again() {
    use crate::model::Gap;
    let mut rig = Rig::new();
    push(&mut rig, |call| {
        let change = DiffChange::Texts { old: Some("a\n".into()), new: "b\n".into() };
        call.content = vec![ToolContent::Diff(FileDiff { path: "a".into(), change })];
    });
    let gap = Gap { change: 0, line: 7 };
    rig.act(Action::OpenThisGap(ItemId(0), gap));
    rig.act(Action::OpenThisGap(ItemId(0), gap));
    let item = |rig: &mut Rig| rig.app.shown().item(ItemId(0)).clone();
    assert_eq!((item(&mut rig).open_gaps, item(&mut rig).is_open), (vec![gap], Some(true)));
    rig.act(Action::ToggleContext);
    assert!(item(&mut rig).shows_context && item(&mut rig).open_gaps.is_empty());
    rig.act(Action::OpenGap);
    assert!(rig.state.flash.as_deref().is_some_and(|text| text.contains("No collapsed")));
}
