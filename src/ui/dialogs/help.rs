//! The help dialog with all keys of the keymap.

use super::dialog_frame::{DialogFrame, Row, Size, input, wrapped};
use super::layer::{Flow, Layer};
use super::scroll;
use crate::config::keymap::{Context, HelpRow};
use crate::core::{Cx, LineInput, State};
use crate::model::{Action, LineEdit};
use crate::ui::App;
use crate::ui::frame_context::FrameContext;
use crate::ui::text;
use crate::ui::text::{Line, Span};
use crate::ui::theme::Role;

/// Minimum inner width for two columns.
const TWO_COLS: u16 = 96;

const MAX_KEYS: usize = 24;

const GAP: u16 = 4;

/// Between the keys and the action.
const KEYS_GAP: usize = 2;

const IN_DIALOGS: [Context; 11] = [
    Context::Permission,
    Context::Choice,
    Context::List,
    Context::Sessions,
    Context::Form,
    Context::Text,
    Context::Line,
    Context::Queue,
    Context::Changes,
    Context::Restore,
    Context::Review,
];

/// A task or context with its keys.
struct Group {
    title: &'static str,
    rows: Vec<(String, String)>,
}

#[derive(Debug, Default)]
pub struct HelpPage {
    pub filter: LineInput,
}

impl Layer for HelpPage {
    fn title(&self, _state: &State) -> String {
        "Key bindings".to_owned()
    }

    fn context(&self) -> Context {
        Context::Text
    }

    fn line(&self) -> Option<&LineInput> {
        Some(&self.filter)
    }

    fn on_line(&mut self, _app: &mut App, edit: &LineEdit, _cx: &mut Cx) {
        self.filter.apply(edit);
    }

    fn on_action(&mut self, _app: &mut App, action: Action, cx: &mut Cx) -> Flow {
        scroll::on_page(action, Some(&mut self.filter), cx)
    }

    fn stays_with_tab(&self) -> bool {
        false
    }

    fn size(&self) -> Size {
        Size::Large
    }

    fn frame<'a>(&'a self, ctx: &'a FrameContext, cols: u16, rows: u16) -> DialogFrame<'a> {
        let mut sheet = DialogFrame::default();
        sheet.head.push(input(ctx, &self.filter, "type to filter", false, cols));
        let lay = |filter: &str| {
            let groups = groups(ctx, filter, cols);
            if cols >= TWO_COLS { two(ctx, &groups, cols) } else { one(ctx, &groups, cols) }
        };
        sheet.body = lay(&self.filter.text);
        // Uses the height without a filter, so that the dialog does not resize.
        sheet.body_rows = lay("").len().min(usize::from(rows) * 3 / 4);
        if sheet.body.is_empty() {
            sheet.body = wrapped(ctx, Role::TextDim, "No matching keys.", cols);
        }
        if self.filter.text.trim().is_empty() {
            let note = "Type to search all keys, also those of lists and dialogs.";
            sheet.foot = wrapped(ctx, Role::TextDim, note, cols);
        }
        sheet.set_hints([Some(ctx.updown("scroll")), ctx.hint(Context::Text, Action::Escape, "close")]);
        sheet
    }
}

fn opener(ctx: &FrameContext) -> Option<Context> {
    ctx.keys.below.or_else(|| ctx.keys.is_browsing.then_some(Context::Browse))
}

/// The keys that match the filter, those of the view or dialog below the help first. Without a filter, those of other lists and
/// dialogs, which show their own, are omitted, and each action has only the keys that fit on its line.
fn groups(ctx: &FrameContext, filter: &str, cols: u16) -> Vec<Group> {
    let opener = opener(ctx).map(Context::title);
    let is_shown = |title: &str| {
        let is_of_other = IN_DIALOGS.iter().any(|other| other.title() == title) && opener != Some(title);
        !filter.trim().is_empty() || !is_of_other
    };
    let room = keys_room(if cols >= TWO_COLS { (cols - GAP) / 2 } else { cols });
    let wanted = filter.trim().to_lowercase();
    let fits = |keys: &str, does: &str| {
        wanted.is_empty() || keys.to_lowercase().contains(&wanted) || does.to_lowercase().contains(&wanted)
    };
    let mut groups: Vec<Group> = Vec::new();
    for HelpRow { title, mut keys, text, .. } in ctx.keymap.help() {
        if !is_shown(title) || !fits(&keys.join("  "), text) {
            continue;
        }
        while wanted.is_empty() && keys.len() > 1 && text::width(&keys.join("  ")) > room {
            keys.pop();
        }
        let keys = keys.join("  ");
        let row = (keys, text.to_owned());
        match groups.iter_mut().find(|group| group.title == title) {
            Some(group) => group.rows.push(row),
            None => groups.push(Group { title, rows: vec![row] }),
        }
    }
    groups.sort_by_key(|group| opener != Some(group.title));
    groups
}

fn one(ctx: &FrameContext, groups: &[Group], cols: u16) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    for group in groups {
        if !rows.is_empty() {
            rows.push(Row::default());
        }
        rows.extend(lines(ctx, group, cols).into_iter().map(Row::from));
    }
    rows
}

/// Two columns; groups are not split, and the first column gets the first half.
fn two(ctx: &FrameContext, groups: &[Group], cols: u16) -> Vec<Row> {
    let half = (cols - GAP) / 2;
    let height: usize = groups.iter().map(|group| group.rows.len() + 2).sum();
    let (mut left, mut right): (Vec<Line<'static>>, Vec<Line<'static>>) = (Vec::new(), Vec::new());
    for group in groups {
        let is_left = right.is_empty() && left.len() + group.rows.len() / 2 < height / 2;
        let column = if is_left { &mut left } else { &mut right };
        if !column.is_empty() {
            column.push(Line::default());
        }
        column.extend(lines(ctx, group, half));
    }
    side_by_side(left, right, usize::from(half + GAP)).into_iter().map(Row::from).collect()
}

/// Two columns as one; the right one starts at `col`.
fn side_by_side(left: Vec<Line<'static>>, right: Vec<Line<'static>>, col: usize) -> Vec<Line<'static>> {
    let count = left.len().max(right.len());
    let (mut left, mut right) = (left.into_iter(), right.into_iter());
    let rows = (0..count).map(|_| {
        let mut line = left.next().unwrap_or_default();
        let pad = col.saturating_sub(line.width());
        line.push_span(Span::raw(" ".repeat(pad)));
        line.spans.extend(right.next().unwrap_or_default().spans);
        line
    });
    rows.collect()
}

fn keys_room(cols: u16) -> usize {
    MAX_KEYS.min(usize::from(cols) * 2 / 5)
}

/// A heading and its keys, with the actions in a second column.
fn lines(ctx: &FrameContext, group: &Group, cols: u16) -> Vec<Line<'static>> {
    let mut lines = vec![Line::from(ctx.span(Role::Heading, group.title))];
    let max = keys_room(cols);
    let room = u16::try_from(usize::from(cols).saturating_sub(max + KEYS_GAP)).unwrap_or(u16::MAX).max(4);
    let key_room = u16::try_from(max).unwrap_or(u16::MAX).max(4);
    for (keys, does) in &group.rows {
        let keys = text::wrap_line(&Line::from(ctx.span(Role::KeyHint, keys.clone())), key_room);
        let does = text::wrap_line(&Line::from(ctx.span(Role::TextDim, does.clone())), room);
        lines.extend(side_by_side(keys, does, max + KEYS_GAP));
    }
    lines
}
