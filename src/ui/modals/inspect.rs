//! A tool call as it came over the wire: what parlor knows of it, then input, output and metadata as they are.
//!
//! Duty: shows what the folded and drawn call leaves out. Not its duty: the whole traffic (`log`).
//! Long parts are cut, and say so; the lines are kept as long as the same text is shown at the same width.

use std::cell::RefCell;

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::text::{Line, Span};

use super::sheet::{Place, Row, Sheet, words};
use crate::app::{Decision, ItemBody, ToolCall};
use crate::config::keymap::Context;
use crate::model::{Action, ItemId, Raw, ToolStatus};
use crate::ui::cells::kind_word;
use crate::ui::look::{duration, size};
use crate::ui::scene::Scene;
use crate::ui::text::{expand_tabs, hard_wrap, one_line, sanitize};
use crate::ui::theme::Role;
use crate::ui::view_state::ViewState;
use crate::ui::{highlight, json};

/// Columns inside.
const COLS: u16 = 100;
/// Columns of the names of facts.
const NAMES: usize = 12;
/// Most bytes of one part that are shown.
const PART_BYTES: usize = 64 << 10;
/// Parts that are kept drawn.
const KEPT: usize = 4;

/// Draws it.
pub(super) fn draw(
    scene: &Scene,
    item: ItemId,
    view: &mut ViewState,
    area: Rect,
    buf: &mut Buffer,
) -> Option<Position> {
    let place = Place::new(area, COLS, false);
    let cols = place.cols();
    let mut sheet = Sheet { title: "As it came".to_owned(), ..Sheet::default() };
    match scene.session.transcript.get(item).map(|item| &item.body) {
        Some(ItemBody::Tool(call)) => {
            sheet.body = facts(scene, call, cols);
            for (name, raw) in
                [("Input", &call.raw_input), ("Output", &call.raw_output), ("Metadata", &call.extra)]
            {
                sheet.body.extend(part(scene, name, raw.as_ref(), cols));
            }
        }
        Some(ItemBody::Raw { name, raw }) => sheet.body.extend(part(scene, name, Some(raw), cols)),
        _ => sheet.body = words(scene, Role::TextDim, "This item is gone.", cols),
    }
    let hints = [
        Some((scene.marks.updown.to_owned(), "scroll".to_owned())),
        scene.hint(Context::Text, Action::OpenLog, "shows the log"),
        scene.hint(Context::Text, Action::Escape, "closes"),
    ];
    sheet.hints = hints.into_iter().flatten().collect();
    sheet.draw(scene, place, view, buf)
}

fn facts(scene: &Scene, call: &ToolCall, cols: u16) -> Vec<Row> {
    let mut facts: Vec<(&str, String)> = vec![("title", call.title.clone())];
    facts.push(("id", call.id.to_string()));
    facts.extend(call.name.iter().map(|name| ("tool", name.clone())));
    facts.push(("kind", kind_word(call.kind).to_owned()));
    let status = match call.status {
        ToolStatus::Pending => "pending",
        ToolStatus::InProgress => "running",
        ToolStatus::Completed => "done",
        ToolStatus::Failed => "failed",
        ToolStatus::Cancelled => "cancelled",
    };
    let assumed = if call.is_status_assumed { ", as parlor assumes: the agent did not say" } else { "" };
    facts.push(("status", format!("{status}{assumed}")));
    facts.extend(call.took.map(|took| ("took", duration(took))));
    facts.extend(call.exit_code.map(|code| ("exit code", code.to_string())));
    facts.extend(call.decision.as_ref().map(|decision| match decision {
        Decision::Chosen { name, .. } => ("answer", name.clone()),
        Decision::Cancelled => ("answer", "cancelled".to_owned()),
    }));
    facts.extend(call.parent.as_ref().map(|parent| ("part of", parent.to_string())));
    for place in &call.locations {
        let line = place.line.map(|line| format!(":{line}")).unwrap_or_default();
        facts.push(("place", format!("{}{line}", scene.path(&place.path))));
    }
    let room = cols.saturating_sub(u16::try_from(NAMES).unwrap_or(0)).max(8);
    let mut rows = Vec::new();
    for (name, value) in facts.into_iter().filter(|(_, value)| !value.is_empty()) {
        let mut lines = words(scene, Role::Modal, &one_line(&value), room);
        for (index, row) in lines.iter_mut().enumerate() {
            let name = if index == 0 { name } else { "" };
            row.line.spans.insert(0, scene.span(Role::TextDim, format!("{name:<NAMES$}")));
        }
        rows.extend(lines);
    }
    rows
}

fn part(scene: &Scene, name: &str, raw: Option<&Raw>, cols: u16) -> Vec<Row> {
    let mut rows = vec![Row::default(), Row::from(Line::from(scene.span(Role::TextStrong, one_line(name))))];
    match raw {
        Some(raw) => rows.extend(lines(scene, &raw.0, cols).into_iter().map(Row::from)),
        None => rows.extend(words(scene, Role::TextDim, "The agent told none.", cols)),
    }
    rows
}

/// What drawn lines are good for: the text by its place, the width, the theme, the grammars.
type Key = (usize, usize, u16, String, u32);

thread_local! {
    static DRAWN: RefCell<Vec<(Key, Raw, Vec<Line<'static>>)>> = const { RefCell::new(Vec::new()) };
}

/// The text laid out and coloured. What is kept holds the text that its key points to, so no other can lie there.
fn lines(scene: &Scene, raw: &std::sync::Arc<str>, cols: u16) -> Vec<Line<'static>> {
    let place = raw.as_ptr() as usize;
    let key = (place, raw.len(), cols, scene.look.theme.name.clone(), highlight::epoch());
    DRAWN.with_borrow_mut(|drawn| {
        if let Some((_, _, lines)) = drawn.iter().find(|(known, _, _)| *known == key) {
            return lines.clone();
        }
        let lines = draw_lines(scene, raw, cols);
        if drawn.len() >= KEPT {
            drawn.remove(0);
        }
        drawn.push((key, Raw(std::sync::Arc::clone(raw)), lines.clone()));
        lines
    })
}

fn draw_lines(scene: &Scene, raw: &str, cols: u16) -> Vec<Line<'static>> {
    let end = (0..=PART_BYTES.min(raw.len())).rev().find(|at| raw.is_char_boundary(*at)).unwrap_or(0);
    let text = json::lay_out(raw.get(..end).unwrap_or_default());
    let text = sanitize(&text);
    let mut highlighter = highlight::start("json", &text);
    let mut out = Vec::new();
    for line in text.lines() {
        let line = expand_tabs(line, 0);
        let runs = highlighter.as_mut().map_or_else(|| vec![(0..line.len(), None)], |open| open.line(&line));
        let spans: Vec<Span<'static>> = runs
            .into_iter()
            .filter_map(|(range, role)| Some((line.get(range)?.to_owned(), role.unwrap_or(Role::Modal))))
            .map(|(text, role)| scene.span(role, text))
            .collect();
        out.extend(hard_wrap(&Line::from(spans), cols));
    }
    if end < raw.len() {
        let all = size(raw.len() as u64);
        let note = format!("{} cut here; {all} in all, see the log", scene.look.glyphs.fold);
        out.push(Line::from(scene.span(Role::TextDim, note)));
    }
    out
}

#[cfg(test)]
mod tests {
    use crate::app::{ItemBody, Modal, ToolCall, ViewCommand};
    use crate::model::{Raw, ToolKind, ToolStatus};
    use crate::ui::tests::fixture::{Stage, ready, text, theme};

    fn stage(input: &str) -> Stage {
        let mut stage = ready();
        let mut call = ToolCall::new("toolu_1".into(), stage.now);
        (call.kind, call.status) = (ToolKind::Edit, ToolStatus::Completed);
        call.title = "Edit \u{1b}[31ma.rs".into();
        call.raw_input = Some(Raw(input.into()));
        call.extra = Some(Raw(r#"{"_meta":{"tool":"Edit"}}"#.into()));
        stage.session(|session| {
            let item = session.transcript.push(1, ItemBody::Tool(Box::new(call)));
            session.selected = Some(item);
        });
        let item = stage.state.active_session().and_then(|session| session.selected);
        stage.state.modals.extend(item.map(Modal::Inspect));
        stage
    }

    #[test]
    fn a_call_is_shown_as_it_came() {
        let stage = stage(r#"{"file_path":"/a.rs","old_string":"\u001b[2Jx"}"#);
        let shown = text(&stage.draw(&mut stage.view(), &theme("dark"), (80, 40)));
        for part in [
            "id          toolu_1",
            "kind        edit",
            "status      done",
            "  \"file_path\": \"/a.rs\",",
            "  \"old_string\": \"\\u001b[2Jx\"",
            "The agent told none.",
            "    \"tool\": \"Edit\"",
        ] {
            assert!(shown.contains(part), "{part} is not in\n{shown}");
        }
        assert!(!shown.contains('\u{1b}'));
    }

    #[test]
    fn a_long_part_is_cut_and_says_so() {
        let input = format!("{{\"text\":\"{}\"}}", "日本 ".repeat(20_000));
        let stage = stage(&input);
        for size in [(40, 12), (100, 30)] {
            let mut view = stage.view();
            stage.draw(&mut view, &theme("dark"), size);
            view.apply(ViewCommand::ScrollDialog(100_000));
            let end = text(&stage.draw(&mut view, &theme("dark"), size));
            assert!(end.contains("Metadata"), "{end}");
            view.apply(ViewCommand::ScrollDialog(-8));
            let above = text(&stage.draw(&mut view, &theme("dark"), size));
            assert!(above.contains("cut here; 140 kB in all"), "{above}");
        }
    }
}
