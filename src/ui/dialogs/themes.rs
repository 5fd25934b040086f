//! The list of themes next to a sample of a transcript, which is drawn in the selected theme.
//!
//! The selected theme applies at once, and until the list is closed without a choice.

use std::path::Path;

use ratatui::layout::{Position, Rect};

use crate::core::{AUTO_THEME, Cx, Effect, ItemBody, Message, MessagePart, Session, State, ToolCall};
use crate::model::{
    ConfigJob, DiffChange, FileDiff, Role as Speaker, SessionKey, SessionWorkspace, SettingChange,
    SettingValue, ToolContent, ToolKind, ToolStatus,
};
use crate::ui::App;
use crate::ui::canvas::Canvas;
use crate::ui::frame_context::FrameContext;
use crate::ui::hits::Hit;
use crate::ui::render_context::RenderContext;
use crate::ui::theme::Role;
use crate::ui::transcript;
use crate::ui::view_state::ViewState;

use super::layer::Flow;
use super::picker::{List, Picker, PickerRow, draw_list};

/// Width of the list beside the sample.
const LIST_COLS: u16 = 32;

/// On a narrower screen, the sample is below the list.
const BESIDE_COLS: u16 = 70;

/// Rows of the list above the sample.
const LIST_ROWS: u16 = 7;

/// The folder of the sample's files.
const FOLDER: &str = "/shop";

const PROMPT: &str = "Round the price of an item to cents";

const ANSWER: &str = "The price is a **float**, so sums are off by a cent. I'll store whole cents:

```rust
// Half a cent is rounded up.
fn cents(price: f64) -> u64 {
    (price * 100.0).round() as u64
}
```";

const OLD: &str = "pub struct Item {\n    pub name: String,\n    pub price: f64,\n}\n";
const NEW: &str = "pub struct Item {\n    pub name: String,\n    pub price_cents: u64,\n}\n";

#[derive(Debug)]
pub struct Themes;

impl List for Themes {
    /// The name of the theme.
    type Item = String;

    fn pick(&mut self, name: String, app: &mut App, cx: &mut Cx) -> Flow {
        app.state.setup.theme.clone_from(&name);
        show_chosen(&app.state, cx);
        let value = Some(SettingValue::Text(name));
        let change = SettingChange::Value { name: "theme".to_owned(), value };
        cx.effects.push(Effect::Configure(ConfigJob::Change(change)));
        Flow::Close
    }

    fn on_marked(picker: &mut Picker<Self>, app: &mut App, cx: &mut Cx) {
        if let Some(name) = picker.marked() {
            cx.effects.push(Effect::SetTheme(app.state.setup.theme_named(name).to_owned()));
        }
    }

    fn on_close(&self, app: &mut App, cx: &mut Cx) {
        show_chosen(&app.state, cx);
    }

    fn draw(
        picker: &Picker<Self>,
        ctx: &FrameContext,
        view: &mut ViewState,
        area: Rect,
        buf: &mut Canvas,
    ) -> Option<Position> {
        let (list, sample) = if area.width >= BESIDE_COLS {
            let list = Rect { width: LIST_COLS, ..area };
            (list, Rect { x: list.right(), width: area.width - LIST_COLS, ..area })
        } else {
            let list = Rect { height: LIST_ROWS.min(area.height), ..area };
            (list, Rect { y: list.bottom(), height: area.height - list.height, ..area })
        };
        let cursor = draw_list(picker, ctx, view, list, buf);
        view.hits.add(sample, Hit::Nothing);
        buf.blank(sample, ctx.style(Role::Text));
        if sample.x > area.x {
            for y in sample.y..sample.bottom() {
                buf.set_string(sample.x, y, ctx.render.glyphs.pipe, ctx.style(Role::Rule));
            }
        }
        let inner = Rect { x: sample.x + 1, width: sample.width.saturating_sub(1), ..sample };
        let render = RenderContext { folder: Path::new(FOLDER), ..ctx.render };
        let session = view.dialog.sample.get_or_insert_with(|| Box::new(session(ctx.render.now)));
        transcript::draw(session, ctx.views.untouched(), &mut view.preview, &render, inner, buf);
        cursor
    }
}

pub fn open(app: &mut App, cx: &mut Cx) {
    let list = Picker::new(Themes, "Themes", rows(&app.state));
    app.layers.open(list);
    // A folder of themes that was created meanwhile is not watched.
    cx.effects.push(Effect::Configure(ConfigJob::Reread));
}

/// Shows the themes of the configuration that was read again, and applies the chosen one unless another is being
/// chosen.
pub fn on_config(app: &mut App, cx: &mut Cx) {
    let rows = rows(&app.state);
    match app.layers.find_mut::<Picker<Themes>>() {
        Some(list) => list.set_rows(rows),
        // Also after a change of its file.
        None => show_chosen(&app.state, cx),
    }
}

/// Sets the theme that matches the terminal, and applies it unless another one is chosen or being chosen.
pub fn on_terminal_theme(app: &mut App, name: String, cx: &mut Cx) {
    app.state.setup.auto_theme.clone_from(&name);
    if app.state.setup.theme == AUTO_THEME && !app.layers.has::<Picker<Themes>>() {
        cx.effects.push(Effect::SetTheme(name));
    }
}

fn show_chosen(state: &State, cx: &mut Cx) {
    cx.effects.push(Effect::SetTheme(state.setup.theme_in_use().to_owned()));
}

/// `auto`, then the dark themes, then the light ones.
fn rows(state: &State) -> Vec<(PickerRow, String)> {
    let setup = &state.setup;
    let row = |name: &str, right: &str, group: Option<&str>| {
        let row = PickerRow {
            right: right.to_owned(),
            group: group.map(str::to_owned),
            is_current: name == setup.theme,
            ..PickerRow::new(name)
        };
        (row, name.to_owned())
    };
    let of = |is_dark, group| {
        let themes = setup.themes.iter().filter(move |theme| theme.is_dark == is_dark);
        themes.map(move |theme| row(&theme.name, "", Some(group)))
    };
    let auto = row(AUTO_THEME, &setup.auto_theme, None);
    std::iter::once(auto).chain(of(true, "Dark")).chain(of(false, "Light")).collect()
}

/// A session with a prompt, prose, code and a diff.
fn session(now: std::time::Instant) -> Session {
    let mut session = Session::new(SessionKey(u64::MAX), SessionWorkspace::default());
    let message = |role, text: &str| {
        ItemBody::Message(Message {
            role,
            message: None,
            parts: vec![MessagePart::Text(text.to_owned().into())],
            is_open: false,
            began: now,
            took: None,
            is_local: role == Speaker::User,
            pasted: Vec::new(),
        })
    };
    let mut edit = ToolCall::new("edit".into(), now);
    (edit.kind, edit.status) = (ToolKind::Edit, ToolStatus::Completed);
    let path = Path::new(FOLDER).join("src/item.rs");
    "Edit src/item.rs".clone_into(&mut edit.title);
    edit.input.path = Some(path.clone());
    let change = DiffChange::Texts { old: Some(OLD.into()), new: NEW.into() };
    edit.content = vec![ToolContent::Diff(FileDiff { path, change })];
    session.transcript.push(1, message(Speaker::User, PROMPT));
    session.transcript.push(1, message(Speaker::Agent, ANSWER));
    session.transcript.push(1, ItemBody::Tool(Box::new(edit)));
    session
}
