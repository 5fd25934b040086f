//! The settings screen, key bindings, and a terminal with wide ambiguous characters.

use crate::ui::Event;

use crate::config::{Config, Paths, Surroundings, read, settings};
use crate::model::{Action, LineEdit};
use crate::ui::dialogs::KeyCapture;
use crate::ui::render_context::Glyphs;
use crate::ui::tests::fixture::*;
use crate::ui::text::{grapheme_width, set_wide};
use crate::ui::update;

const SETTINGS_SIZES: [(u16, u16); 3] = [(40, 12), (80, 24), (200, 60)];

fn stage() -> Stage {
    let paths = Paths::find(Some("/etc/parlor/config.toml".into()), Some("/var/lib/parlor".into())).unwrap();
    let file = "theme = \"nord\"\n[ui]\nbell = false\n[agents.mine]\ncommand = \"my-agent\"\n[keys.main]\nopen-palette = [\"f11\"]\n";
    let (config, _): (Config, _) = read(&paths, file, &Surroundings::default());
    let mut stage = ready();
    let setup = &mut stage.state.setup;
    setup.bindings = config.keymap.binding_rows();
    setup.settings = settings::rows(&config, &paths, &setup.bindings);
    setup.palette = config.keymap.palette();
    setup.config_file = paths.config_file;
    stage
}

fn send(stage: &mut Stage, events: &[Event]) {
    for event in events {
        update(&mut stage.app, event.clone(), stage.now);
    }
}

fn check(name: &str, stage: &Stage) {
    for (cols, rows) in SETTINGS_SIZES {
        let shown = text(&stage.draw(&mut stage.view(), &theme("dark"), (cols, rows)));
        insta::assert_snapshot!(format!("{name}-{cols}x{rows}"), shown);
    }
}

#[test]
fn settings_are_listed_in_groups_with_a_description() {
    let mut stage = stage();
    send(&mut stage, &[Event::Act(Action::OpenSettings)]);
    check("settings", &stage);
    send(&mut stage, &[Event::Line(LineEdit::Insert("ambiguous".into())), Event::Act(Action::Accept)]);
    check("settings-values", &stage);
}

#[test]
fn key_bindings_are_listed_and_captured() {
    let mut stage = stage();
    send(&mut stage, &[Event::Act(Action::OpenSettings), Event::Line(LineEdit::Insert("keys".into()))]);
    send(&mut stage, &[Event::Act(Action::Down), Event::Act(Action::Accept)]);
    check("bindings", &stage);
    let binding = stage.state.setup.bindings.iter().find(|row| row.action == "open-palette").unwrap();
    let capture = KeyCapture { binding: binding.clone(), keeps: Vec::new(), pressed: Vec::new() };
    stage.layers = capture.into();
    check("capture", &stage);
    send(&mut stage, &[Event::Capturing("ctrl+t".into()), Event::Capturing("g".into())]);
    check("capture-sequence", &stage);
}

/// A terminal that draws ambiguous characters in two cells shows each row of the canvas in its columns.
#[test]
fn wide_ambiguous_characters_take_two_cells_everywhere() {
    let mut stage = ready();
    stage.session(|session| session.draft = "é → · naïve 日本".into());
    set_wide(true);
    let mut view = stage.view();
    view.glyphs = Glyphs::plain();
    for size in [(40, 12), (80, 24), (200, 60)] {
        let canvas = stage.draw(&mut view, &theme("dark"), size);
        for y in 0..size.1 {
            let mut x = 0;
            while x < size.0 {
                let symbol = canvas[(x, y)].symbol();
                let cols = u16::try_from(grapheme_width(symbol).max(1)).unwrap();
                let is_free =
                    (x + 1..x + cols).all(|next| next < size.0 && canvas[(next, y)].symbol() == " ");
                assert!(is_free, "{symbol:?} at {x}, {y} covers its neighbour in\n{}", text(&canvas));
                x += cols;
            }
        }
    }
    set_wide(false);
}
