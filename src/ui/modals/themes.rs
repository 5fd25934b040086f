//! The list of themes next to a sample of a transcript, which is drawn in the selected theme.

use std::path::Path;

use ratatui::layout::{Position, Rect};

use super::picker;
use crate::app::{ItemBody, Message, MessagePart, Session, ToolCall};
use crate::model::{
    DiffChange, FileDiff, Role as Speaker, SessionKey, SessionWorkspace, ToolContent, ToolKind, ToolStatus,
};
use crate::ui::Picker;
use crate::ui::canvas::Canvas;
use crate::ui::frame_context::FrameContext;
use crate::ui::hits::Hit;
use crate::ui::render_context::RenderContext;
use crate::ui::theme::Role;
use crate::ui::transcript;
use crate::ui::view_state::ViewState;

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

pub(super) fn draw(
    ctx: &FrameContext,
    themes: &Picker,
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
    let cursor = picker::draw(ctx, themes, view, list, buf);
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
    transcript::draw(session, &mut view.preview, &render, inner, buf);
    cursor
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
