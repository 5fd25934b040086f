//! Permissions, files outside, pages.

use crate::core::{Effect, ViewCommand};
use crate::model::PermissionKind::{AllowAlways, AllowOnce, RejectAlways, RejectOnce};
use crate::model::{Action, AllowedBy, Response};
use crate::ui::dialogs::testkit::{Rig, answers, outside_file, selected, views};

#[test]
fn digits_choose_the_option_at_that_place() {
    for position in 1..=4u8 {
        let mut rig = Rig::new();
        rig.ask_permission(1, &[AllowOnce, AllowAlways, RejectOnce, RejectAlways]);
        let fx = rig.act(Action::Choose(position));
        assert_eq!(answers(&fx), [(1, selected(&format!("option-{}", position - 1)))]);
        assert!(rig.open_requests().is_empty());
    }
}

#[test]
fn a_request_of_unknown_effect_cannot_be_allowed_by_rule() {
    let mut rig = Rig::new();
    rig.ask_permission(1, &[AllowAlways, AllowOnce, RejectOnce]);
    rig.act(Action::AllowByRule);
    assert!(rig.layers.is_empty());
    assert!(rig.state.flash.as_ref().is_some_and(|flash| flash.starts_with("No rule can allow")));
}

#[test]
fn a_digit_without_an_option_chooses_nothing() {
    let mut rig = Rig::new();
    rig.ask_permission(1, &[AllowOnce, RejectOnce]);
    for position in [0, 3, 9] {
        assert!(answers(&rig.act(Action::Choose(position))).is_empty());
    }
    assert_eq!(rig.open_requests(), [1]);
}

#[test]
fn the_mark_never_begins_on_an_allow_always() {
    for (kinds, marked) in [
        (vec![AllowAlways, AllowOnce, RejectOnce], 1),
        (vec![AllowOnce, AllowAlways], 0),
        (vec![AllowAlways, RejectOnce], 1),
        (vec![AllowAlways, AllowAlways], 2),
    ] {
        let mut rig = Rig::new();
        rig.ask_permission(1, &kinds);
        assert_eq!(rig.request_view.selected, marked, "{kinds:?}");
    }
    let mut rig = Rig::new();
    rig.ask_permission(1, &[AllowAlways, AllowAlways]);
    assert!(answers(&rig.act(Action::Accept)).is_empty());
    assert!(rig.state.flash.is_some());
    rig.act(Action::Up);
    assert_eq!(answers(&rig.act(Action::Accept)), [(1, selected("option-1"))]);
}

#[test]
fn arrows_and_enter_choose_and_stop_at_both_ends() {
    let mut rig = Rig::new();
    rig.ask_permission(1, &[AllowOnce, AllowAlways, RejectOnce]);
    for (action, marked) in [
        (Action::Up, 0),
        (Action::Down, 1),
        (Action::Right, 2),
        (Action::Down, 2),
        (Action::Left, 1),
        (Action::First, 0),
        (Action::Last, 2),
        (Action::HistoryPrevious, 1),
        (Action::Mark(0), 0),
        (Action::Mark(9), 0),
        (Action::HistoryNext, 1),
    ] {
        let _ = rig.act(action);
        assert_eq!(rig.request_view.selected, marked, "{action:?}");
    }
    assert_eq!(answers(&rig.act(Action::Submit)), [(1, selected("option-1"))]);
}

#[test]
fn a_request_without_options_can_only_be_rejected() {
    let mut rig = Rig::new();
    rig.ask_permission(1, &[]);
    for action in [Action::Accept, Action::Choose(1), Action::Down, Action::Up] {
        assert!(answers(&rig.act(action)).is_empty(), "{action:?}");
    }
    assert_eq!(answers(&rig.act(Action::Escape)), [(1, Response::PermissionCancelled)]);
}

#[test]
fn the_body_scrolls_and_takes_the_whole_screen() {
    let mut rig = Rig::new();
    rig.ask_permission(1, &[AllowOnce]);
    assert_eq!(views(&rig.act(Action::PageDown)), [ViewCommand::ScrollDialogPages(1)]);
    assert_eq!(views(&rig.act(Action::ScrollPageUp)), [ViewCommand::ScrollDialogPages(-1)]);
    assert_eq!(views(&rig.act(Action::ScrollLineDown)), [ViewCommand::ScrollDialog(1)]);
    assert_eq!(views(&rig.act(Action::Scroll(-3))), [ViewCommand::ScrollDialog(-3)]);
    rig.act(Action::FullScreen);
    assert!(rig.request_view.is_full_screen);
    rig.act(Action::FullScreen);
    assert!(!rig.request_view.is_full_screen);
}

#[test]
fn what_was_marked_does_not_carry_over_to_the_next_request() {
    let mut rig = Rig::new();
    rig.ask_permission(1, &[AllowOnce, RejectOnce]);
    rig.ask_permission(2, &[AllowOnce, RejectOnce]);
    rig.act(Action::Down);
    rig.act(Action::FullScreen);
    rig.act(Action::Accept);
    assert_eq!(rig.open_requests(), [2]);
    assert_eq!((rig.request_view.selected, rig.request_view.is_full_screen), (0, false));
}

#[test]
fn a_file_outside_can_be_refused_or_allowed() {
    let mut rig = Rig::new();
    rig.ask(4, outside_file(4));
    assert_eq!(rig.request_view.selected, 0);
    let sent = answers(&rig.act(Action::Choose(4)));
    assert!(matches!(sent.as_slice(), [(4, Response::Error(_))]), "{sent:?}");
    rig.ask(5, outside_file(5));
    let fx = rig.act(Action::Choose(1));
    assert!(
        fx.iter().any(|effect| matches!(effect, Effect::File(job) if job.allowed.as_ref().is_some_and(|it| it.by == AllowedBy::You))),
        "{fx:?}"
    );
}

#[test]
fn a_page_opens_only_on_consent() {
    let mut rig = Rig::new();
    rig.ask_url("https://example.org/login");
    for action in [Action::Down, Action::Up, Action::PageDown, Action::FullScreen, Action::Choose(7)] {
        let fx = rig.act(action);
        assert!(!fx.iter().any(|effect| matches!(effect, Effect::OpenUrl(_))), "{action:?}");
    }
    let fx = rig.act(Action::Choose(1));
    assert!(fx.contains(&Effect::OpenUrl("https://example.org/login".to_owned())), "{fx:?}");
    assert_eq!(answers(&fx), [(1, Response::ElicitationAccepted(None))]);
}

#[test]
fn a_page_can_be_declined_in_three_ways() {
    for action in [Action::Choose(2), Action::Decline, Action::No] {
        let mut rig = Rig::new();
        rig.ask_url("https://example.org/login");
        assert_eq!(answers(&rig.act(action)), [(1, Response::ElicitationDeclined)], "{action:?}");
    }
    let mut rig = Rig::new();
    rig.ask_url("https://example.org/login");
    rig.act(Action::Down);
    assert_eq!(answers(&rig.act(Action::Accept)), [(1, Response::ElicitationDeclined)]);
}

#[test]
fn an_address_with_tricks_is_never_opened() {
    let mut rig = Rig::new();
    rig.ask_url("file:///etc/passwd");
    assert!(answers(&rig.act(Action::Accept)).is_empty());
    assert!(rig.state.flash.is_some());
    assert_eq!(rig.open_requests(), [1]);
}
