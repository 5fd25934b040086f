//! The bar: its looks at three sizes, its marks without colour, what it does when it is too narrow.

use std::time::Duration;

use ratatui::crossterm::event::{Event as Terminal, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};

use super::terminal_title;
use crate::app::lifecycle::operations;
use crate::app::{Event, SessionPhase, Turn, Unseen, UnseenKind};
use crate::config::keymap::Keymap;
use crate::model::Action;
use crate::ui::render_context::Glyphs;
use crate::ui::tests::fixture::{SIZES, Stage, permission, streaming, text, theme};
use crate::ui::{is_animating, next_frame_in, route};

/// Adds a tab behind the front, named by a title.
fn add(stage: &mut Stage, title: &str, change: impl FnOnce(&mut crate::app::Session)) {
    let key = stage.state.add_session_in(format!("/home/ada/code/{title}").into());
    let session = stage.state.sessions.get_mut(&key).unwrap();
    session.phase = SessionPhase::Ready;
    session.title = Some(title.into());
    change(session);
}

/// One tab in front that works, and behind it one of each state.
fn all_states() -> Stage {
    let mut stage = streaming();
    let now = stage.now;
    let asked = permission().state;
    let asks = asked.active_session().unwrap().asks.clone();
    stage.session(|session| session.title = Some("Clock skew".into()));
    add(&mut stage, "asks", |session| session.asks = asks);
    add(&mut stage, "works", |session| session.turn = Turn::Running { since: now, last_news: now });
    add(&mut stage, "done", |session| {
        session.unseen = Some(Unseen { what: UnseenKind::Finished, since: now });
    });
    add(&mut stage, "failed", |session| {
        session.unseen = Some(Unseen { what: UnseenKind::Failed("broken".into()), since: now });
    });
    add(&mut stage, "news", |session| session.has_background_news = true);
    add(&mut stage, "rests", |_| {});
    stage
}

fn bar(stage: &Stage, size: (u16, u16)) -> String {
    text(&stage.draw(&mut stage.view(), &theme("dark"), size)).lines().next().unwrap().trim_end().to_owned()
}

#[test]
fn tabs_at_three_sizes() {
    let stage = all_states();
    for (cols, rows) in SIZES {
        insta::assert_snapshot!(format!("tabs-{cols}x{rows}"), stage.digest(|_| {}, (cols, rows)));
    }
}

#[test]
fn each_state_has_a_mark_that_needs_no_colour() {
    let stage = all_states();
    assert_eq!(
        bar(&stage, (120, 40)),
        " ▸1⠿ Clock skew  2! asks  3⠿ works  4✓ done  5✗ failed  6• news  7  rests"
    );
    let mut view = stage.view();
    view.glyphs = Glyphs::plain();
    let plain = text(&stage.draw(&mut view, &theme("dark"), (120, 40)));
    let expected = " >1* Clock skew  2! asks  3* works  4+ done  5x failed  6o news  7  rests";
    assert_eq!(plain.lines().next().unwrap().trim_end(), expected);
}

#[test]
fn one_tab_has_no_bar_and_two_have_one() {
    let mut stage = streaming();
    let title = bar(&stage, (80, 24));
    assert!(title.contains("claude"), "{title}");
    add(&mut stage, "lib", |_| {});
    assert_eq!(bar(&stage, (80, 24)), " ▸1⠿ fix the failing test in…  2  lib");
}

#[test]
fn where_names_do_not_fit_numbers_and_marks_stay_and_the_front_is_always_there() {
    let mut stage = all_states();
    assert_eq!(bar(&stage, (40, 12)), " ▸1⠿ Clock skew  2!  3⠿  4✓  5✗  6•  7");
    for index in 8..30 {
        add(&mut stage, &format!("tab {index}"), |_| {});
    }
    let narrow = bar(&stage, (40, 12));
    assert!(narrow.starts_with(" ▸1⠿  2!  3⠿") && narrow.ends_with('>'), "{narrow}");
    let (last, now) = (*stage.state.sessions.keys().next_back().unwrap(), stage.now);
    operations::activate(&mut stage.state, last, now, &mut Vec::new());
    let narrow = bar(&stage, (40, 12));
    assert!(
        narrow.starts_with(" !") && narrow.trim_end().ends_with("▸29"),
        "one on the left waits: {narrow:?}"
    );
}

#[test]
fn a_click_on_a_tab_brings_it_to_the_front() {
    let stage = all_states();
    let mut view = stage.view();
    stage.draw(&mut view, &theme("dark"), (120, 40));
    let click = MouseEvent {
        kind: MouseEventKind::Down(MouseButton::Left),
        column: 20,
        row: 0,
        modifiers: KeyModifiers::NONE,
    };
    let events = route(&Terminal::Mouse(click), &stage.state, &mut view, &Keymap::defaults(), stage.now);
    assert_eq!(events, [Event::Key(vec![Event::Act(Action::ShowTab(2))])]);
}

#[test]
fn what_goes_on_behind_the_front_moves_nothing() {
    let mut stage = all_states();
    stage.session(|session| session.turn = Turn::Idle);
    assert!(!is_animating(&stage.state), "the tabs behind work");
    assert_eq!(next_frame_in(&stage.state, &stage.view()), None::<Duration>);
    let mut view = stage.view();
    stage.draw(&mut view, &theme("dark"), (120, 40));
    assert_eq!(view.transcripts.len(), 1, "only the front is laid out");
}

#[test]
fn the_window_is_named_by_the_front_and_by_how_many_others_wait() {
    let mut stage = streaming();
    assert_eq!(terminal_title(&stage.state), "fix the failing test in src/auth.rs - parlor");
    stage.session(|session| session.title = Some("a\u{1b}]0;b\u{7}\nc".into()));
    let title = terminal_title(&stage.state);
    assert!(!title.chars().any(char::is_control), "{title:?}");
    let stage = all_states();
    assert_eq!(terminal_title(&stage.state), "(1) Clock skew - parlor");
}
