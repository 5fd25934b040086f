//! The palette: the commands that make sense now.

use crate::core::{Cx, State, UiRequest};
use crate::model::{Action, PaletteCommand};
use crate::ui::App;

use super::layer::Flow;
use super::obstacle;
use super::picker::{List, Picker, PickerRow};

/// The heading of the commands that fit the moment.
const NOW: &str = "Now";

#[derive(Debug)]
pub struct Palette;

impl List for Palette {
    type Item = Action;

    fn pick(&mut self, action: Action, _app: &mut App, cx: &mut Cx) -> Flow {
        cx.requests.push(UiRequest::Command(action, String::new()));
        Flow::Close
    }

    fn verb(&self, _item: Option<&Action>) -> &'static str {
        "run"
    }

    fn on_action(_picker: &mut Picker<Self>, _app: &mut App, action: Action, _cx: &mut Cx) -> Flow {
        if action == Action::OpenPalette { Flow::Close } else { Flow::Pass }
    }
}

pub fn open(app: &mut App) {
    let list = Picker::new(Palette, "Commands", rows(&app.state));
    app.layers.open(list);
}

/// The commands in their groups; those that fit the moment come first.
fn rows(state: &State) -> Vec<(PickerRow, Action)> {
    let now = obstacle::fitting(state);
    let rank = |action: Action| now.iter().position(|fitting| *fitting == action).unwrap_or(now.len());
    let mut offered: Vec<_> = state.setup.palette.iter().collect();
    offered.sort_by_key(|command| (rank(command.action), command.group));
    offered.retain(|command| obstacle::obstacle(state, command.action).is_none());
    let starts_agent = state.active_session().is_some_and(|session| session.read_only.is_some());
    let row = |command: &PaletteCommand| {
        let starts = starts_agent && command.action == Action::RestartAgent;
        let group = if now.contains(&command.action) { NOW } else { command.group.title() };
        let row = PickerRow {
            right: command.keys.clone(),
            group: Some(group.to_owned()),
            synonyms: command.synonyms.to_owned(),
            ..PickerRow::new(if starts { "Start agent" } else { &command.text })
        };
        (row, command.action)
    };
    offered.into_iter().map(row).collect()
}
