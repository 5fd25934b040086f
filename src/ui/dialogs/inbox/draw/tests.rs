//! The inbox at three sizes, with the preview of a change, and a request in full.

use crate::core::{SessionPhase, Unseen, UnseenKind};
use crate::ui::Event;

use crate::model::Action;
use crate::ui::dialogs::InboxDialog;
use crate::ui::tests::fixture::{SIZES, Stage, ago, permission, ready, text, theme};
use crate::ui::{dialogs, update};

/// A state with a change request in another tab, a failure in a third one, and the inbox open.
fn inbox() -> Stage {
    let mut stage = ready();
    let now = stage.now;
    let state = permission().app.state;
    let original = state.active_session().unwrap().clone();
    let key = stage.state.add_session_in("/home/ada/code/shop".into());
    let session = stage.state.sessions.get_mut(&key).unwrap();
    *session = crate::core::Session { key, title: Some("Clock skew".into()), ..original };
    session.requests.iter_mut().for_each(|open| open.since = ago(now, 9));
    let key = stage.state.add_session_in("/home/ada/code/lib".into());
    let session = stage.state.sessions.get_mut(&key).unwrap();
    session.phase = SessionPhase::Ready;
    session.title = Some("Upgrade".into());
    session.unseen = Some(Unseen { what: UnseenKind::Failed("out of tokens".into()), since: ago(now, 3) });
    stage.layers.push(InboxDialog::default());
    update(&mut stage, Event::Input, ago(now, 2));
    stage
}

#[test]
fn inbox_shows_the_change_and_its_answers() {
    crate::ui::highlight::wait_for(&["rs"]);
    let stage = inbox();
    for (cols, rows) in SIZES {
        insta::assert_snapshot!(format!("inbox-{cols}x{rows}"), stage.digest(|_| {}, (cols, rows)));
    }
}

#[test]
fn smallest_screen_shows_the_request_and_its_answers() {
    let stage = inbox();
    let shown = text(&stage.draw(&mut stage.view(), &theme("dark"), (40, 12)));
    for expected in ["Clock skew", "1  Yes, this once", "3  No", "claude asks to change"] {
        assert!(shown.contains(expected), "{expected:?} in\n{shown}");
    }
}

#[test]
fn full_screen_shows_the_dialog_of_the_request() {
    let mut stage = inbox();
    let now = ago(stage.now, 1);
    update(&mut stage, Event::Act(Action::FullScreen), now);
    dialogs::on_frame(&mut stage.app, true, now);
    let shown = text(&stage.draw(&mut stage.view(), &theme("dark"), (80, 24)));
    for expected in ["Allow this edit?", "tab 2, 1 of 2", "line_20 = 20 + SKEW", "Esc back"] {
        assert!(shown.contains(expected), "{expected:?} in\n{shown}");
    }
}

#[test]
fn status_line_counts_requests_of_other_tabs() {
    let mut stage = inbox();
    stage.layers.clear();
    let shown = text(&stage.draw(&mut stage.view(), &theme("dark"), (40, 12)));
    assert!(shown.contains("! 2 pending Alt+A"), "{shown}");
    let key = *stage.state.sessions.keys().nth(1).unwrap();
    stage.state.sessions.get_mut(&key).unwrap().requests.clear();
    let shown = text(&stage.draw(&mut stage.view(), &theme("dark"), (80, 24)));
    assert!(shown.contains("1 unread Alt+A"), "{shown}");
}

#[test]
fn each_request_in_full_shows_its_own_command() {
    let mut stage = inbox();
    let key = *stage.state.sessions.keys().nth(1).unwrap();
    let now = ago(stage.now, 1);
    let session = stage.state.sessions.get_mut(&key).unwrap();
    for (command, open) in ["make test", "rm -rf ~"].into_iter().zip(0..) {
        let mut call = crate::core::ToolCall::new("c".into(), now);
        call.kind = crate::model::ToolKind::Execute;
        call.input.command = Some(command.into());
        let item = session.transcript.push(1, crate::core::ItemBody::Tool(Box::new(call)));
        let kind = &mut session.requests.get_mut(open).unwrap().kind;
        let crate::core::OpenRequestKind::Permission { tool, .. } = kind else { unreachable!() };
        *tool = item;
    }
    let mut view = stage.view();
    for (down, command, place) in [(0, "$ make test", "tab 2, 1 of 2"), (1, "$ rm -rf ~", "tab 2, 2 of 2")] {
        for _ in 0..down {
            update(&mut stage, Event::Act(Action::Escape), now);
            update(&mut stage, Event::Act(Action::Down), now);
        }
        update(&mut stage, Event::Act(Action::FullScreen), now);
        let shown = text(&stage.draw(&mut view, &theme("dark"), (80, 24)));
        assert!(shown.contains(command) && shown.contains(place), "{command} {place} in\n{shown}");
    }
}
