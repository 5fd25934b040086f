//! Tests of opening files in the editor and addresses in the browser.

use crate::core::{Cx, Effect, ItemBody};
use crate::model::{Action, ItemId, Location, Role, Target};
use crate::ui::dialogs::on_open;
use crate::ui::dialogs::testkit::Rig;
use crate::ui::tests::fixture;

fn open(rig: &mut Rig, target: Target) -> Vec<Effect> {
    let mut cx = Cx::new(rig.now);
    on_open(&mut rig.state, target, &mut cx);
    cx.effects
}

#[test]
fn a_path_is_relative_to_the_folder_of_the_session() {
    let mut rig = Rig::new();
    let mut opened = |path: &str| {
        let location = Location { path: path.into(), line: Some(7) };
        match open(&mut rig, Target::File(location)).as_slice() {
            [Effect::OpenFile { location, .. }] => (location.path.display().to_string(), location.line),
            other => panic!("a file is opened, not {other:?}"),
        }
    };
    assert_eq!(opened("src/a.rs"), ("/home/u/shop/src/a.rs".to_owned(), Some(7)));
    assert_eq!(opened("/etc/hosts"), ("/etc/hosts".to_owned(), Some(7)));
}

#[test]
fn an_address_is_shown_completely_before_it_opens() {
    let mut rig = Rig::new();
    let url = "http://a.org@evil.example/x";
    assert_eq!(open(&mut rig, Target::Url(url.to_owned())), []);
    let Some(dialog) = rig.state.questions.last() else { panic!("a question is asked") };
    assert_eq!(dialog.body.first().map(String::as_str), Some(url));
    assert!(dialog.body.iter().any(|line| line.contains("real host is evil.example")));
    assert_eq!(rig.act(Action::Accept), [Effect::OpenUrl(url.to_owned())]);
    assert!(rig.layers.is_empty());
}

#[test]
fn a_deceptive_address_is_not_opened() {
    let mut rig = Rig::new();
    open(&mut rig, Target::Url("https://a\\b".to_owned()));
    assert!(rig.layers.is_empty());
    assert!(rig.state.flash.as_deref().is_some_and(|flash| flash.contains("deceptive characters")));
}

fn notify(rig: &mut Rig, text: &str) -> ItemId {
    let body = ItemBody::Message(fixture::message(Role::Agent, text, rig.now));
    rig.session().transcript.push(1, body)
}

#[test]
fn places_of_the_selected_item_or_of_the_last_ones_are_listed() {
    let mut rig = Rig::new();
    rig.session().workspace.cwd = "/home/u/shop".into();
    let first = notify(&mut rig, "In `src/a.rs:3` and [there](https://a.org); again src/a.rs:3.");
    notify(&mut rig, "In src/b.rs");
    notify(&mut rig, "Nothing");
    rig.act(Action::OpenPlaces);
    assert_eq!(rig.shown(), ["src/b.rs", "https://a.org", "src/a.rs:3"]);
    rig.act(Action::Escape);
    rig.shown_mut().selected = Some(first);
    rig.act(Action::OpenPlaces);
    assert_eq!(rig.shown(), ["https://a.org", "src/a.rs:3"]);
    rig.act(Action::Down);
    let fx = rig.act(Action::Accept);
    let location = Location { path: "/home/u/shop/src/a.rs".into(), line: Some(3) };
    assert_eq!(fx, [Effect::OpenFile { location, folder: "/home/u/shop".into(), editor: None }]);
    rig.shown_mut().selected = Some(ItemId(2));
    rig.act(Action::OpenPlaces);
    assert_eq!(rig.state.flash.as_deref(), Some("The selected item has no file or link."));
}

#[test]
fn places_are_listed_from_the_bottom_of_the_screen_upwards() {
    let mut rig = Rig::new();
    rig.session().workspace.cwd = "/home/u/shop".into();
    let first = notify(&mut rig, "In src/a.rs");
    let second = notify(&mut rig, "In src/b.rs");
    notify(&mut rig, "In src/c.rs");
    rig.session()
        .transcript
        .edit(first, |item| item.body = ItemBody::notice(crate::model::Severity::Info, "Gone".into(), None));
    rig.shown_mut().reading = Some((second, second));
    rig.act(Action::OpenPlaces);
    assert_eq!(rig.shown(), ["src/b.rs"]);
}
