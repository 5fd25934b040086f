//! The list at three sizes, with a change in view, and a request shown whole.

use crate::app::{Event, InboxDialog, Modal, SessionPhase, Unseen, UnseenKind, update};
use crate::model::Action;
use crate::ui::tests::fixture::{SIZES, Stage, ago, permission, ready, text, theme};

/// Another tab waits with a change, a third one failed, and the list is open.
fn listed() -> Stage {
    let mut stage = ready();
    let now = stage.now;
    let asked = permission().state;
    let asked = asked.active_session().unwrap().clone();
    let key = stage.state.add_session_in("/home/ada/code/shop".into());
    let session = stage.state.sessions.get_mut(&key).unwrap();
    *session = crate::app::Session { key, title: Some("Clock skew".into()), ..asked };
    session.asks.iter_mut().for_each(|open| open.since = ago(now, 9));
    let key = stage.state.add_session_in("/home/ada/code/lib".into());
    let session = stage.state.sessions.get_mut(&key).unwrap();
    session.phase = SessionPhase::Ready;
    session.title = Some("Upgrade".into());
    session.unseen = Some(Unseen { what: UnseenKind::Failed("out of tokens".into()), since: ago(now, 3) });
    stage.state.modals.push(Modal::Attention(InboxDialog::default()));
    update(&mut stage.state, Event::Input, ago(now, 2));
    stage
}

#[test]
fn what_waits_is_listed_with_the_change_and_its_answers() {
    crate::ui::highlight::wait_for(&["rs"]);
    let stage = listed();
    for (cols, rows) in SIZES {
        insta::assert_snapshot!(format!("inbox-{cols}x{rows}"), stage.digest(|_| {}, (cols, rows)));
    }
}

#[test]
fn on_the_smallest_screen_the_answers_and_the_wish_are_in_view() {
    let stage = listed();
    let shown = text(&stage.draw(&mut stage.view(), &theme("dark"), (40, 12)));
    for words in ["Clock skew", "1  Yes, this once", "3  No", "claude asks to change"] {
        assert!(shown.contains(words), "{words:?} in\n{shown}");
    }
}

#[test]
fn shown_whole_it_is_the_dialog_of_its_tab() {
    let mut stage = listed();
    let now = ago(stage.now, 1);
    update(&mut stage.state, Event::Act(Action::FullScreen), now);
    let shown = text(&stage.draw(&mut stage.view(), &theme("dark"), (80, 24)));
    for words in ["Allow this edit?", "tab 2", "line_20 = 20 + SKEW", "esc back"] {
        assert!(shown.contains(words), "{words:?} in\n{shown}");
    }
}

#[test]
fn the_status_line_counts_what_waits_behind_the_front() {
    let mut stage = listed();
    stage.state.modals.clear();
    let shown = text(&stage.draw(&mut stage.view(), &theme("dark"), (40, 12)));
    assert!(shown.contains("! 2 pending Alt+A"), "{shown}");
    let key = *stage.state.sessions.keys().nth(1).unwrap();
    stage.state.sessions.get_mut(&key).unwrap().asks.clear();
    let shown = text(&stage.draw(&mut stage.view(), &theme("dark"), (80, 24)));
    assert!(shown.contains("1 unread Alt+A"), "{shown}");
}
