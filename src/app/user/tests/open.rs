//! Files for the editor, pages for the browser.

use crate::app::user::on_open;
use crate::app::user::testkit::Rig;
use crate::app::{Effect, Modal};
use crate::model::{Action, Location, Target};

fn open(rig: &mut Rig, target: Target) -> Vec<Effect> {
    let mut fx = Vec::new();
    on_open(&mut rig.state, target, &mut fx);
    fx
}

#[test]
fn a_path_counts_from_the_folder_of_the_session() {
    let mut rig = Rig::new();
    let mut opened = |path: &str| {
        let place = Location { path: path.into(), line: Some(7) };
        match open(&mut rig, Target::File(place)).as_slice() {
            [Effect::OpenFile { place, .. }] => (place.path.display().to_string(), place.line),
            other => panic!("a file is opened, not {other:?}"),
        }
    };
    assert_eq!(opened("src/a.rs"), ("/home/u/shop/src/a.rs".to_owned(), Some(7)));
    assert_eq!(opened("/etc/hosts"), ("/etc/hosts".to_owned(), Some(7)));
}

#[test]
fn a_page_is_shown_in_full_before_it_opens() {
    let mut rig = Rig::new();
    let url = "http://a.org@evil.example/x";
    assert_eq!(open(&mut rig, Target::Url(url.to_owned())), []);
    let Some(Modal::Choice(dialog)) = rig.state.modals.last() else { panic!("a question is asked") };
    assert_eq!(dialog.body.first().map(String::as_str), Some(url));
    assert!(dialog.body.iter().any(|line| line.contains("leads to evil.example")));
    assert_eq!(rig.act(Action::Accept), [Effect::OpenUrl(url.to_owned())]);
    assert!(rig.state.modals.is_empty());
}

#[test]
fn a_page_that_hides_where_it_leads_is_not_opened() {
    let mut rig = Rig::new();
    open(&mut rig, Target::Url("https://a\\b".to_owned()));
    assert!(rig.state.modals.is_empty());
    assert!(rig.state.flash.as_deref().is_some_and(|flash| flash.contains("hide where it leads")));
}
