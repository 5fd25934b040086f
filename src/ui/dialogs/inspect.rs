//! The inspector of a tool call: the known facts, then raw input, output and metadata.
//!
//! Shows everything that the transcript omits. `log` shows all messages. The rows of a text are cached for
//! its width; only visible rows are drawn.

use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;

use ratatui::layout::{Position, Rect};
use unicode_segmentation::UnicodeSegmentation;

use super::dialog_frame::{DialogFrame, DialogPosition, Row, Size, Window, named, wrapped};
use super::layer::{Flow, Layer};
use super::scroll;
use crate::config::keymap::Context;
use crate::core::{Cx, Decision, ItemBody, State, ToolCall};
use crate::model::{Action, ItemId, Raw, SessionKey, ToolStatus, byte_size};
use crate::ui::canvas::Canvas;
use crate::ui::cells::kind_word;
use crate::ui::frame_context::FrameContext;
use crate::ui::render_context::duration;
use crate::ui::text::{Line, Span};
use crate::ui::text::{
    TAB_COLS, boundary_before, clip, expand_tabs, grapheme_width, hard_wrap, one_line, reveal, reveal_line,
};
use crate::ui::theme::Role;
use crate::ui::view_state::ViewState;
use crate::ui::{App, highlight, json};

const TITLE: &str = "Raw tool call";

const NAMES: usize = 12;
/// Maximum number of bytes shown of one part.
const PART_BYTES: usize = 16 << 20;
/// For longer values, only both ends are shown.
const FACT_BYTES: usize = 16 << 10;
/// Longer parts are not highlighted.
const COLOURED_BYTES: usize = 64 << 10;
/// Minimum row width, so that a tab fits.
const TAB_COLS_MAX: u16 = 8;
const KEPT: usize = 4;

/// An item of a session as it was received.
#[derive(Debug, PartialEq)]
pub struct InspectPage {
    pub session: SessionKey,
    pub item: ItemId,
}

impl Layer for InspectPage {
    fn title(&self, _state: &State) -> String {
        TITLE.to_owned()
    }

    fn context(&self) -> Context {
        Context::Text
    }

    fn on_action(&mut self, _app: &mut App, action: Action, cx: &mut Cx) -> Flow {
        scroll::on_page(action, None, cx)
    }

    fn draw(
        &self,
        ctx: &FrameContext,
        view: &mut ViewState,
        area: Rect,
        buf: &mut Canvas,
    ) -> Option<Position> {
        // The request of the inbox may be of another session than the active one.
        let ctx = ctx.of(ctx.state.sessions.get(&self.session).unwrap_or(ctx.session));
        let position = DialogPosition::new(area, Size::Large, false);
        frame(&ctx, self.item, position.cols()).draw(&ctx, position, view, buf)
    }
}

fn frame<'a>(ctx: &'a FrameContext, item: ItemId, cols: u16) -> DialogFrame<'a> {
    let mut sheet = DialogFrame { title: TITLE.to_owned(), ..DialogFrame::default() };
    let mut parts = Vec::new();
    match ctx.session.transcript.get(item).map(|item| &item.body) {
        Some(ItemBody::Tool(call)) => {
            parts.push(Part::Rows(facts(ctx, call, cols)));
            for (name, raw) in
                [("Input", &call.raw_input), ("Output", &call.raw_output), ("Metadata", &call.extra)]
            {
                parts.extend(part(ctx, name, raw.as_ref(), cols));
            }
        }
        Some(ItemBody::Raw { name, raw }) => parts.extend(part(ctx, name, Some(raw), cols)),
        _ => parts.push(Part::Rows(wrapped(ctx, Role::TextDim, "Item no longer available.", cols))),
    }
    sheet.set_hints([
        Some(ctx.updown("scroll")),
        ctx.hint(Context::Text, Action::OpenLog, "show log"),
        ctx.hint(Context::Text, Action::Escape, "close"),
    ]);
    let rows = parts.iter().map(Part::len).sum();
    let make = move |range: Range<usize>| {
        let mut out = Vec::new();
        let mut begin = 0;
        for part in &parts {
            let end = begin + part.len();
            let (from, to) = (range.start.max(begin), range.end.min(end));
            if from < to {
                out.extend(part.rows(ctx, from - begin..to - begin));
            }
            begin = end;
        }
        out
    };
    sheet.window = Some(Window { rows, marked: None, first: None, make: Box::new(make) });
    sheet
}

/// Rows that are created on demand.
enum Part {
    Rows(Vec<Row>),
    Lines(Rc<Laid>),
}

impl Part {
    fn len(&self) -> usize {
        match self {
            Self::Rows(rows) => rows.len(),
            Self::Lines(laid) => laid.len(),
        }
    }

    fn rows(&self, ctx: &FrameContext, range: Range<usize>) -> Vec<Row> {
        match self {
            Self::Rows(rows) => rows.get(range).unwrap_or_default().to_vec(),
            Self::Lines(laid) => laid.lines(ctx, range).into_iter().map(Row::from).collect(),
        }
    }
}

fn facts(ctx: &FrameContext, call: &ToolCall, cols: u16) -> Vec<Row> {
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
    let assumed = if call.is_status_assumed { " (assumed, not reported by the agent)" } else { "" };
    facts.push(("status", format!("{status}{assumed}")));
    facts.extend(call.took.map(|took| ("duration", duration(took))));
    facts.extend(call.exit_code.map(|code| ("exit code", code.to_string())));
    if let Some(decision) = &call.decision {
        if let Decision::Chosen { name, .. } = decision {
            facts.push(("answer", name.clone()));
        }
        facts.push(("decision", decision.description()));
    }
    facts.extend(call.parent.as_ref().map(|parent| ("parent", parent.to_string())));
    for position in &call.locations {
        let line = position.line.map(|line| format!(":{line}")).unwrap_or_default();
        facts.push(("location", format!("{}{line}", ctx.path(&position.path))));
    }
    let facts = facts.into_iter().filter(|(_, value)| !value.is_empty());
    facts.flat_map(|(name, value)| named(ctx, (name, NAMES), &fact(&value), cols)).collect()
}

/// A value on one line, with hidden characters shown.
fn fact(value: &str) -> String {
    let (head, rest) = clip(value, FACT_BYTES);
    rest.map_or_else(
        || reveal_line(head),
        |(_, tail)| format!("{} … {}", reveal_line(head), reveal_line(tail)),
    )
}

fn part(ctx: &FrameContext, name: &str, raw: Option<&Raw>, cols: u16) -> [Part; 2] {
    let head = vec![Row::default(), Row::from(Line::from(ctx.span(Role::TextStrong, one_line(name))))];
    let body = match raw {
        Some(raw) => Part::Lines(laid(ctx, raw, cols)),
        None => Part::Rows(wrapped(ctx, Role::TextDim, "None.", cols)),
    };
    [Part::Rows(head), body]
}

/// The cache key: the address and length of the text, the width, the theme, the state of the grammars.
type Key = (usize, usize, u16, String, u32);

/// The layout of a text, drawn on demand.
enum Laid {
    Lines(Vec<Line<'static>>),
    Long { text: String, rows: Vec<Range<u32>>, note: Option<String> },
}

impl Laid {
    fn len(&self) -> usize {
        match self {
            Self::Lines(lines) => lines.len(),
            Self::Long { rows, note, .. } => rows.len() + usize::from(note.is_some()),
        }
    }

    fn lines(&self, ctx: &FrameContext, range: Range<usize>) -> Vec<Line<'static>> {
        match self {
            Self::Lines(lines) => lines.get(range).unwrap_or_default().to_vec(),
            Self::Long { text, rows, note } => {
                let row = |at: usize| match (rows.get(at), note) {
                    (Some(row), _) => {
                        let row = text.get(row.start as usize..row.end as usize).unwrap_or_default();
                        Line::from(ctx.span(Role::Dialog, expand_tabs(row).into_owned()))
                    }
                    (None, note) => Line::from(ctx.span(Role::TextDim, note.clone().unwrap_or_default())),
                };
                range.map(row).collect()
            }
        }
    }
}

thread_local! {
    static DRAWN: RefCell<Vec<(Key, Raw, Rc<Laid>)>> = const { RefCell::new(Vec::new()) };
}

/// The layout of a text. A cache entry holds the text of its key, so that the address remains valid.
fn laid(ctx: &FrameContext, raw: &Raw, cols: u16) -> Rc<Laid> {
    let position = raw.0.address();
    let key = (position, raw.0.len(), cols, ctx.render.theme.name.clone(), highlight::epoch());
    DRAWN.with_borrow_mut(|drawn| {
        if let Some((_, _, laid)) = drawn.iter().find(|(known, _, _)| *known == key) {
            return Rc::clone(laid);
        }
        let laid = Rc::new(lay_out(ctx, &raw.0, cols));
        if drawn.len() >= KEPT {
            drawn.remove(0);
        }
        drawn.push((key, raw.clone(), Rc::clone(&laid)));
        laid
    })
}

fn lay_out(ctx: &FrameContext, raw: &str, cols: u16) -> Laid {
    let end = boundary_before(raw, PART_BYTES);
    let text = json::lay_out(raw.get(..end).unwrap_or_default());
    let text = reveal(&text);
    if raw.len() > COLOURED_BYTES {
        let rows = rows_of(&text, cols);
        let note = (end < raw.len()).then(|| {
            let all = byte_size(raw.len() as u64);
            format!("{} truncated; {all} in total, see the protocol log", ctx.render.glyphs.fold)
        });
        return Laid::Long { text: text.into_owned(), rows, note };
    }
    let mut highlighter = highlight::start("json", &text);
    let mut out = Vec::new();
    for line in text.lines() {
        let line = expand_tabs(line);
        let runs = highlighter.as_mut().map_or_else(|| vec![(0..line.len(), None)], |open| open.line(&line));
        let spans: Vec<Span<'static>> = runs
            .into_iter()
            .filter_map(|(range, role)| Some((line.get(range)?.to_owned(), role.unwrap_or(Role::Dialog))))
            .map(|(text, role)| ctx.span(role, text))
            .collect();
        out.extend(hard_wrap(&Line::from(spans), cols));
    }
    Laid::Lines(out)
}

/// Splits a text into rows of the full width.
fn rows_of(text: &str, cols: u16) -> Vec<Range<u32>> {
    let position = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
    let room = usize::from(cols.max(TAB_COLS_MAX));
    let mut out = Vec::new();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let (mut from, mut used) = (start, 0);
        let body = line.strip_suffix('\n').unwrap_or(line);
        for (at, grapheme) in body.grapheme_indices(true) {
            let cols = if grapheme == "\t" { TAB_COLS } else { grapheme_width(grapheme) };
            if used + cols > room {
                out.push(position(from)..position(start + at));
                (from, used) = (start + at, 0);
            }
            used += cols;
        }
        out.push(position(from)..position(start + body.len()));
        start += line.len();
    }
    out
}

#[cfg(test)]
mod tests {
    use crate::core::{ItemBody, ToolCall, ViewCommand};
    use crate::model::{Raw, ToolKind, ToolStatus};
    use crate::ui::dialogs::InspectPage;
    use crate::ui::tests::fixture::{Stage, ready, text, theme};

    fn stage(input: &str) -> Stage {
        let mut stage = ready();
        let mut call = ToolCall::new("toolu_1".into(), stage.now);
        (call.kind, call.status) = (ToolKind::Edit, ToolStatus::Completed);
        call.title = "Edit \u{1b}[31ma.rs".into();
        call.raw_input = Some(Raw(input.into()));
        call.extra = Some(Raw(r#"{"_meta":{"tool":"Edit"}}"#.into()));
        stage.session(|session| {
            session.transcript.push(1, ItemBody::Tool(Box::new(call)));
        });
        let session = stage.state.active;
        let item = stage.state.active_session().unwrap().transcript.items().last().unwrap().id;
        stage.shown_mut().selected = Some(item);
        stage.layers.push(InspectPage { session, item });
        stage
    }

    #[test]
    fn raw_call_is_shown() {
        let stage = stage(r#"{"file_path":"/a.rs","old_string":"\u001b[2Jx"}"#);
        let shown = text(&stage.draw(&mut stage.view(), &theme("dark"), (80, 40)));
        for part in [
            "id          toolu_1",
            "kind        edit",
            "status      done",
            "  \"file_path\": \"/a.rs\",",
            "  \"old_string\": \"\\u001b[2Jx\"",
            "None.",
            "    \"tool\": \"Edit\"",
        ] {
            assert!(shown.contains(part), "{part} is missing in\n{shown}");
        }
        assert!(!shown.contains('\u{1b}'));
    }

    #[test]
    fn long_parts_can_be_scrolled_to_their_end() {
        let input = format!("{{\"text\":\"{}\",\"last\":\"\u{202e}x\"}}", "日本 ".repeat(200_000));
        let stage = stage(&input);
        for size in [(40, 12), (100, 30)] {
            let mut view = stage.view();
            stage.draw(&mut view, &theme("dark"), size);
            view.apply(ViewCommand::ScrollDialog(1_000_000));
            let end = text(&stage.draw(&mut view, &theme("dark"), size));
            assert!(end.contains("Metadata"), "{end}");
            view.apply(ViewCommand::ScrollDialog(-6));
            let above = text(&stage.draw(&mut view, &theme("dark"), size));
            assert!(above.contains("\"last\": \"⟨U+202E⟩x\""), "{above}");
        }
    }
}
