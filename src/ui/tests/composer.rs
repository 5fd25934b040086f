//! The composer at all sizes: the mode of vim keys, stashed prompts, full screen.

use super::fixture::*;
use crate::core::ViewCommand;
use crate::ui::{CursorShape, cursor_shape};

const SIZES: [(u16, u16); 4] = [(40, 12), (80, 24), (120, 40), (200, 60)];

fn long_draft() -> Stage {
    let mut stage = streaming();
    let lines: Vec<String> = (1..=30).map(|line| format!("Line {line} of the prompt")).collect();
    stage.session(|session| {
        session.draft = lines.join("\n");
        session.stash = vec!["one".into(), "two".into()];
    });
    stage
}

#[test]
fn the_full_screen_composer_takes_the_place_of_the_transcript() {
    for (cols, rows) in SIZES {
        let prepare = |view: &mut crate::ui::ViewState| {
            view.set_vim(true);
            view.apply(ViewCommand::ToggleFullComposer);
        };
        insta::assert_snapshot!(
            format!("full-composer-{cols}x{rows}"),
            long_draft().digest(prepare, (cols, rows))
        );
    }
}

#[test]
fn a_request_is_shown_although_the_composer_is_full_screen() {
    let stage = permission();
    for size in SIZES {
        let mut view = stage.view();
        let without = text(&stage.draw(&mut view, &theme("dark"), size));
        view.apply(ViewCommand::ToggleFullComposer);
        assert_eq!(text(&stage.draw(&mut view, &theme("dark"), size)), without);
    }
}

#[test]
fn completions_are_shown_in_the_full_screen_composer() {
    let mut stage = ready();
    stage.session(|session| session.draft = "/co".into());
    for size in SIZES {
        let mut view = stage.view();
        view.apply(ViewCommand::ToggleFullComposer);
        let shown = text(&stage.draw(&mut view, &theme("dark"), size));
        assert!(shown.contains("› /co") && shown.contains("/compact"), "{shown}");
    }
}

#[test]
fn stashed_prompts_and_the_mode_are_shown_at_the_edge() {
    let mut stage = ready();
    stage.session(|session| session.stash = vec!["one".into()]);
    for size in SIZES {
        let mut view = stage.view();
        view.set_vim(true);
        let shown = text(&stage.draw(&mut view, &theme("dark"), size));
        let edge = shown.lines().find(|row| row.contains("INSERT")).expect(&shown);
        assert!(edge.contains("1 stashed"), "{shown}");
    }
}

#[test]
fn the_cursor_has_the_shape_of_the_mode_while_the_composer_has_the_focus() {
    let stage = ready();
    let mut view = stage.view();
    assert_eq!(cursor_shape(&stage, &view), CursorShape::Default);
    view.set_vim(true);
    assert_eq!(cursor_shape(&stage, &view), CursorShape::Bar);
    let stage = picker("");
    assert_eq!(cursor_shape(&stage, &view), CursorShape::Default);
}
