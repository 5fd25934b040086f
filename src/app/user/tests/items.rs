//! What can be done with an item: see it as it came, open what it works on.

use crate::app::user::testkit::Rig;
use crate::app::user::{Focus, focus};
use crate::app::{Effect, ItemBody, Modal, ToolCall};
use crate::model::{
    Action, DiffChange, DiffPlace, FileDiff, ItemId, LocatedDiff, Location, PieceStart, Raw, ToolContent,
};

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
        Effect::OpenFile { place, .. } => Some((place.path.display().to_string(), place.line)),
        _ => None,
    })
}

#[test]
fn the_marked_call_or_the_last_one_is_shown_as_it_came() {
    let mut rig = Rig::new();
    rig.act(Action::InspectItem);
    assert_eq!(focus(&rig.state), Focus::Main, "there is nothing to show");
    push(&mut rig, |_| {});
    push(&mut rig, |_| {});
    rig.session().transcript.push(1, ItemBody::Answered { question: "?".into(), answer: "!".into() });
    let shown = |rig: &mut Rig| {
        rig.act(Action::InspectItem);
        rig.state.modals.pop()
    };
    assert_eq!(shown(&mut rig), Some(Modal::Inspect(ItemId(1))));
    rig.session().selected = Some(ItemId(0));
    assert_eq!(shown(&mut rig), Some(Modal::Inspect(ItemId(0))));
    rig.session().selected = Some(ItemId(2));
    assert_eq!(shown(&mut rig), None, "an answer has no more to it");
    let raw = ItemBody::Raw { name: "news".into(), raw: Raw("{}".into()) };
    let raw = rig.session().transcript.push(1, raw);
    rig.session().selected = Some(raw);
    rig.act(Action::InspectItem);
    assert_eq!(focus(&rig.state), Focus::Connection);
    rig.act(Action::Escape);
    assert_eq!(focus(&rig.state), Focus::Main);
}

#[test]
fn the_place_of_a_call_opens_in_the_editor() {
    let mut rig = Rig::new();
    assert_eq!(opened(&rig.act(Action::OpenLocation)), None);
    push(&mut rig, |call| call.locations = vec![at("src/a.rs", Some(3))]);
    push(&mut rig, |_| {});
    assert_eq!(opened(&rig.act(Action::OpenLocation)), Some(("/home/u/shop/src/a.rs".into(), Some(3))));
}

#[test]
fn of_several_places_the_user_says_which() {
    let mut rig = Rig::new();
    push(&mut rig, |call| {
        let change = DiffChange::Texts { old: Some("x".into()), new: "y".into() };
        let diff = FileDiff { path: "/home/u/shop/a.rs".into(), change };
        call.content = vec![ToolContent::Diff(diff.clone())];
        let place = DiffPlace::Lines(vec![Some(PieceStart { line: 12, is_new: true })]);
        call.places = vec![LocatedDiff { diff, place, is_done: true }];
        call.locations = vec![at("/home/u/shop/a.rs", None), at("/etc/hosts", Some(2))];
    });
    assert_eq!(opened(&rig.act(Action::OpenLocation)), None);
    let Some(Modal::Choice(dialog)) = rig.state.modals.last() else { panic!("a question") };
    let labels: Vec<&str> = dialog.choices.iter().map(|choice| choice.label.as_str()).collect();
    assert_eq!(labels, ["a.rs:12", "/etc/hosts:2"]);
    assert_eq!(opened(&rig.act(Action::Choose(1))), Some(("/home/u/shop/a.rs".into(), Some(12))));
    assert_eq!(focus(&rig.state), Focus::Main);
}
