use super::*;
use crate::model::{Mode, Modes};
use crate::ui::tests::fixture::{Stage, choice, form, permission, ready, streaming, text, theme};

fn shown(stage: &Stage, size: (u16, u16)) -> String {
    text(&stage.draw(&mut stage.view(), &theme("dark"), size))
}

fn with_mode(mut stage: Stage, name: &str) -> Stage {
    let mode = Mode { id: "m".into(), name: name.into(), description: None };
    stage.session(|session| session.modes = Some(Modes { current: "m".into(), available: vec![mode] }));
    stage
}

#[test]
fn mode_and_model_are_at_the_edge_of_the_composer_and_not_in_the_title() {
    for size in [(80, 24), (120, 40), (200, 60)] {
        let rows = shown(&ready(), size);
        let at = rows.lines().position(|row| row.contains("› Ask claude")).expect(&rows);
        assert_eq!(rows.lines().nth(at + 1), Some("   mode default   model Opus 5"), "{rows}");
        let title = rows.lines().next().unwrap();
        assert!(!title.contains("default") && !title.contains("Opus"), "{title}");
    }
    let rows = shown(&ready(), (40, 12));
    let at = rows.lines().position(|row| row.contains("› Ask claude")).expect(&rows);
    assert!(rows.lines().nth(at - 1).unwrap().starts_with(" ─ default ─ Opus 5 ──"), "{rows}");
}

#[test]
fn the_mode_has_the_colour_of_its_meaning() {
    let dark = theme("dark");
    for (name, role) in [("Bypass permissions", Role::Error), ("Accept edits", Role::Warning)] {
        for size in [(40, 12), (80, 24)] {
            let stage = with_mode(streaming(), name);
            let drawn = stage.draw(&mut stage.view(), &dark, size);
            let rows = text(&drawn);
            let (y, row) = rows.lines().enumerate().find(|(_, row)| row.contains(name)).expect(&rows);
            let x = row.split(name).next().unwrap().chars().count();
            let cell = &drawn[(u16::try_from(x).unwrap(), u16::try_from(y).unwrap())];
            assert_eq!(Some(cell.fg), dark.style(role).fg, "{name}");
        }
    }
}

#[test]
fn a_chip_names_the_layer_with_the_keys_and_the_key_that_returns_them() {
    let browsing = || {
        let mut stage = streaming();
        stage.user.is_browsing = true;
        stage
    };
    for (stage, expected) in [
        (browsing(), " Focus: transcript · Tab to return "),
        (permission(), " Focus: request · F10 to return "),
        (form(), " Focus: form · Esc to cancel "),
        (choice(), " Focus: dialog · Esc to close "),
    ] {
        let rows = shown(&stage, (80, 40));
        assert!(rows.contains(expected), "{expected}:\n{rows}");
    }
    let rows = shown(&with_mode(browsing(), "Bypass permissions"), (40, 12));
    assert!(rows.contains(" Focus: transcript · Tab ─ Bypass"), "{rows}");
    assert!(!shown(&streaming(), (80, 24)).contains("Focus:"));
}

#[test]
fn the_full_screen_prompt_names_the_key_that_returns() {
    let stage = ready();
    let mut view = stage.view();
    view.composer.is_full = true;
    for (size, is_shown) in [((80, 24), true), ((40, 12), false)] {
        let rows = text(&stage.draw(&mut view, &theme("dark"), size));
        assert_eq!(rows.contains(" full screen · Ctrl+X f to return ─"), is_shown, "{rows}");
    }
    assert!(!shown(&stage, (80, 24)).contains("full screen"));
}

#[test]
fn the_composer_has_its_surface_only_while_it_has_the_keys() {
    for name in ["dark", "light", "nord", "gruvbox-dark"] {
        let theme = theme(name);
        let surface = theme.style(Role::ComposerSurface).bg.unwrap();
        assert_ne!(surface, theme.screen_bg(), "{name}");
        let mut stage = streaming();
        let colours = |stage: &Stage| {
            let drawn = stage.draw(&mut stage.view(), &theme, (80, 24));
            let rows = text(&drawn);
            let y = rows.lines().position(|row| row.contains("› then look")).expect(&rows);
            let y = u16::try_from(y).unwrap();
            [(1, y), (40, y), (40, y + 1), (1, y - 1)].map(|at| (drawn[at].bg, drawn[at].fg))
        };
        let focused = colours(&stage);
        stage.user.is_browsing = true;
        let browsing = colours(&stage);
        assert!(focused[..3].iter().all(|cell| cell.0 == surface), "{name}: {focused:?}");
        assert!(browsing.iter().all(|cell| cell.0 == theme.screen_bg()), "{name}: {browsing:?}");
        assert_ne!(focused[3].1, browsing[3].1, "{name}: the edge differs too");
    }
}

#[test]
fn a_scrolled_draft_says_how_many_lines_are_hidden() {
    let mut stage = ready();
    let draft = (1..=30).map(|line| format!("line {line}")).collect::<Vec<_>>().join("\n");
    stage.session(|session| session.draft = draft);
    for size in [(40, 12), (80, 24), (120, 40)] {
        let rows = shown(&stage, size);
        let height = {
            let texts = rows.lines().map(|row| row.trim_start_matches([' ', '›']));
            texts.filter(|text| text.starts_with("line ")).count()
        };
        assert!(rows.contains(&format!(" {} lines above ─", 30 - height)), "{rows}");
        let first = rows.lines().find(|row| row.contains("› line ")).expect(&rows);
        assert!(first.ends_with(&format!("line {}", 30 - height + 1)), "{rows}");
    }
    stage.session(|session| session.draft = "short".into());
    assert!(!shown(&stage, (80, 24)).contains("above"));
}

#[test]
fn hidden_rows_are_counted_in_both_directions() {
    let labels = [(0, 0), (1, 0), (0, 3), (2, 1)].map(hidden_rows);
    let wanted = [None, Some("1 line above"), Some("3 lines below"), Some("2 lines above, 1 below")];
    assert_eq!(labels.each_ref().map(Option::as_deref), wanted);
}

#[test]
fn new_lines_are_counted_besides_new_items() {
    let labels = [(0, 0), (0, 1), (0, 1360), (2, 0), (1, 1), (3, 136)].map(|of| news(of, "v"));
    let wanted =
        ["more v", "1 new line v", "1,360 new lines v", "2 new v", "1 new line + 1 v", "136 new lines + 3 v"];
    assert_eq!(labels, wanted);
}

#[test]
fn modes_are_coloured_by_what_they_ask() {
    for (names, role) in [
        (["Bypass permissions", "YOLO", "Full Access"], Role::Error),
        (["Accept edits", "Auto Edit", "Auto review"], Role::Warning),
        (["Plan", "Plan Mode", "Read-only"], Role::Accent),
        (["Manual", "Default", "Ask first"], Role::Composer),
    ] {
        for name in names {
            assert_eq!(mode_role(name), role, "{name}");
        }
    }
}

#[test]
fn a_command_in_the_composer_is_marked_with_its_folder() {
    let with = |draft: &str, folder: Option<&str>, size| {
        let mut stage = ready();
        stage.session(|session| {
            session.draft = draft.to_owned();
            session.shell.folder = folder.map(|folder| session.workspace.cwd.join(folder));
        });
        let mut view = stage.view();
        view.apply(crate::core::ViewCommand::SetDraft(draft.to_owned()));
        text(&stage.draw(&mut view, &theme("dark"), size))
    };
    for size in [(40, 12), (80, 24), (200, 60)] {
        let rows = with("!ls", Some("sub/dir"), size);
        assert!(rows.contains(" Shell in sub/dir ") && rows.contains("› !ls"), "{rows}");
        let rows = with("hello", Some("sub/dir"), size);
        assert!(!rows.contains(" Shell") && rows.contains("› hello"), "{rows}");
    }
    let rows = with("!!ls", None, (80, 24));
    assert!(rows.contains(" Shell, output goes into the next prompt "), "{rows}");
    let rows = with("hello", Some("sub/dir"), (80, 24));
    assert!(rows.contains(" shell in sub/dir "), "{rows}");
}
