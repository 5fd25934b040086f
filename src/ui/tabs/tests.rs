//! The tab bar: its layout at three sizes, its symbols without colour, and its narrow forms.

use std::time::Duration;

use ratatui::crossterm::event::{Event as Terminal, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};

use super::terminal_title;
use crate::config::keymap::Keymap;
use crate::core::lifecycle::operations;
use crate::core::{SessionPhase, Turn, Unseen, UnseenKind};
use crate::model::Action;
use crate::ui::Event;
use crate::ui::render_context::Glyphs;
use crate::ui::tests::fixture::{SIZES, Stage, permission, streaming, text, theme};
use crate::ui::{is_animating, next_frame_in, route};

/// Adds a background tab with a title.
fn add(stage: &mut Stage, title: &str, change: impl FnOnce(&mut crate::core::Session)) {
    let key = stage.state.add_session_in(format!("/home/ada/code/{title}").into());
    let session = stage.state.sessions.get_mut(&key).unwrap();
    session.phase = SessionPhase::Ready;
    session.title = Some(title.into());
    change(session);
}

/// An active tab with a running turn, and one background tab in each state.
fn all_states() -> Stage {
    let mut stage = streaming();
    let now = stage.now;
    let state = permission().app.state;
    let requests = state.active_session().unwrap().requests.clone();
    stage.session(|session| session.title = Some("Clock skew".into()));
    add(&mut stage, "asks", |session| session.requests = requests);
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
fn states_are_recognisable_without_colour() {
    let stage = all_states();
    assert_eq!(
        bar(&stage, (120, 40)),
        " ▸1● Clock skew  2! asks  3● works  4✓ done  5✗ failed  6• news  7  rests"
    );
    let mut view = stage.view();
    view.glyphs = Glyphs::plain();
    let plain = text(&stage.draw(&mut view, &theme("dark"), (120, 40)));
    let expected = " >1* Clock skew  2! asks  3* works  4+ done  5x failed  6o news  7  rests";
    assert_eq!(plain.lines().next().unwrap().trim_end(), expected);
}

#[test]
fn tab_bar_is_shown_with_two_tabs() {
    let mut stage = streaming();
    let title = bar(&stage, (80, 24));
    assert!(title.contains("claude"), "{title}");
    add(&mut stage, "lib", |_| {});
    assert_eq!(bar(&stage, (80, 24)), " ▸1● fix the failing test in src/auth.rs  2  lib");
    // The line below does not repeat the title, unless the tab shows only a part of it.
    let screen = |stage: &Stage| text(&stage.draw(&mut stage.view(), &theme("dark"), (120, 40)));
    assert_eq!(screen(&stage).matches("fix the failing test in src/auth.rs").count(), 2, "tab and prompt");
    stage.session(|session| session.title = Some("a".repeat(60)));
    let long = screen(&stage);
    assert!(long.lines().nth(1).unwrap().contains(&"a".repeat(39)), "{long}");
}

#[test]
fn tabs_name_their_agents_if_these_differ() {
    let mut stage = streaming();
    add(&mut stage, "lib", |_| {});
    let (key, conn) = (*stage.state.sessions.keys().next_back().unwrap(), crate::model::ConnId(7));
    let mut other = stage.state.conns.values().next().unwrap().clone();
    other.spec.name = "codex".to_owned();
    stage.state.conns.insert(conn, other);
    stage.state.sessions.get_mut(&key).unwrap().conn = Some(conn);
    assert_eq!(bar(&stage, (120, 40)), " ▸1● claude · fix the failing test in src/au…  2  codex · lib");
}

#[test]
fn narrow_bar_drops_names_and_always_shows_the_active_tab() {
    let mut stage = all_states();
    assert_eq!(bar(&stage, (40, 12)), " ▸1● Clock skew  2!  3●  4✓  5✗  6•  7");
    for index in 8..30 {
        add(&mut stage, &format!("tab {index}"), |_| {});
    }
    let narrow = bar(&stage, (40, 12));
    assert!(narrow.starts_with(" ▸1●  2!  3●") && narrow.ends_with('>'), "{narrow}");
    let last = *stage.state.sessions.keys().next_back().unwrap();
    operations::activate(&mut stage.state, last);
    let narrow = bar(&stage, (40, 12));
    assert!(
        narrow.starts_with(" !") && narrow.trim_end().ends_with("▸29"),
        "a tab on the left has an open request: {narrow:?}"
    );
}

#[test]
fn clicking_a_tab_activates_it() {
    let stage = all_states();
    let mut view = stage.view();
    stage.draw(&mut view, &theme("dark"), (120, 40));
    let click = MouseEvent {
        kind: MouseEventKind::Down(MouseButton::Left),
        column: 18,
        row: 0,
        modifiers: KeyModifiers::NONE,
    };
    let events = route(&Terminal::Mouse(click), &stage, &mut view, &Keymap::defaults(), stage.now);
    assert_eq!(events, [Event::Key(vec![Event::Act(Action::ShowTab(2))])]);
}

#[test]
fn background_tabs_cause_no_animation() {
    let mut stage = all_states();
    stage.session(|session| session.turn = Turn::Idle);
    assert!(!is_animating(&stage.state), "the background tabs are running");
    assert_eq!(next_frame_in(&stage, &stage.view()), None::<Duration>);
    let mut view = stage.view();
    stage.draw(&mut view, &theme("dark"), (120, 40));
    assert_eq!(view.transcripts.len(), 1, "only the active tab is laid out");
}

#[test]
fn window_title_shows_the_session_its_status_and_open_requests() {
    let mut stage = streaming();
    let title = |stage: &Stage| terminal_title(&stage.state, &Glyphs::rich());
    assert_eq!(title(&stage), "● fix the failing test in src/auth.rs - parlor");
    assert_eq!(
        terminal_title(&stage.state, &Glyphs::plain()),
        "* fix the failing test in src/auth.rs - parlor"
    );
    stage.session(|session| session.title = Some("a\u{1b}]0;b\u{7}\nc".into()));
    let hostile = title(&stage);
    assert!(!hostile.chars().any(char::is_control), "{hostile:?}");
    assert_eq!(title(&all_states()), "(1) ● Clock skew - parlor");
    assert!(title(&permission()).starts_with("! "));
    stage.session(|session| {
        session.turn = Turn::Idle;
        session.title = Some("Clock skew".into());
    });
    assert_eq!(title(&stage), "Clock skew - parlor");
    let now = stage.now;
    stage.session(|session| session.unseen = Some(Unseen { what: UnseenKind::Finished, since: now }));
    assert_eq!(title(&stage), "✓ Clock skew - parlor");
}
