use std::ops::{Deref, DerefMut};
use std::path::Path;
use std::time::{Duration, Instant};

use ratatui::buffer::Buffer;
use ratatui::style::Style;

use super::*;
use crate::core::{ItemBody, Message, MessagePart, Session, TerminalView, ToolCall, TurnEnd};
use crate::model::*;
use crate::ui::render_context::Glyphs;
use crate::ui::tests::fixture;
use crate::ui::text::width;
use crate::ui::theme::{ColorSupport, Theme, ThemeSet};

mod find;
mod hostile;
mod huge;
mod items;
mod link_hit;
mod scroll;
mod turns;

/// A session with its view.
#[derive(Debug, Clone)]
struct Viewed {
    session: Session,
    view: SessionView,
}

impl Deref for Viewed {
    type Target = Session;

    fn deref(&self) -> &Session {
        &self.session
    }
}

impl DerefMut for Viewed {
    fn deref_mut(&mut self) -> &mut Session {
        &mut self.session
    }
}

fn session() -> Viewed {
    let position = SessionWorkspace { cwd: "/home/ada/shop".into(), ..SessionWorkspace::default() };
    Viewed { session: Session::new(SessionKey(1), position), view: SessionView::default() }
}

/// The start time that all items of a test share.
fn start() -> Instant {
    static START: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    *START.get_or_init(Instant::now)
}

fn message(role: Role, text: &str) -> ItemBody {
    let message = fixture::message(role, text, start());
    ItemBody::Message(Message { took: Some(Duration::from_secs(4)), ..message })
}

fn open_message(role: Role, text: &str) -> ItemBody {
    let ItemBody::Message(mut message) = message(role, text) else { unreachable!() };
    (message.is_open, message.took) = (true, None);
    ItemBody::Message(message)
}

fn tool(kind: ToolKind, status: ToolStatus, title: &str) -> ToolCall {
    let mut tool = ToolCall::new("call".into(), start());
    (tool.kind, tool.status, tool.title) = (kind, status, title.to_owned());
    tool
}

fn push(session: &mut Viewed, body: ItemBody) -> ItemId {
    session.transcript.push(1, body)
}

fn push_tool(session: &mut Viewed, tool: ToolCall) -> ItemId {
    push(session, ItemBody::Tool(Box::new(tool)))
}

fn dark() -> Theme {
    ThemeSet::built_in().load("dark", ColorSupport::TrueColor).0
}

fn context(theme: &Theme) -> RenderContext<'_> {
    RenderContext {
        spinner: 2,
        sideways: Some(0),
        ..RenderContext::new(theme, Path::new("/home/ada/shop"), start() + Duration::from_secs(8))
    }
}

fn render(session: &Viewed, view: &mut TranscriptView, cols: u16, rows: u16) -> Buffer {
    let theme = dark();
    render_with(session, view, &context(&theme), cols, rows)
}

fn render_with(
    session: &Viewed,
    view: &mut TranscriptView,
    context: &RenderContext<'_>,
    cols: u16,
    rows: u16,
) -> Buffer {
    let area = Rect::new(0, 0, cols, rows);
    let mut buf = Canvas::new(cols, rows);
    buf.set_style(area, context.theme.style(crate::ui::theme::Role::Text));
    draw(session, &session.view, view, context, area, &mut buf);
    buf.into_buffer()
}

fn rows_of(buf: &Buffer) -> Vec<String> {
    let area = buf.area;
    (0..area.height)
        .map(|y| {
            let mut text = String::new();
            let mut x = 0;
            while x < area.width {
                let symbol = buf[(x, y)].symbol();
                text.push_str(symbol);
                x += u16::try_from(width(symbol).max(1)).unwrap();
            }
            text.trim_end().to_owned()
        })
        .collect()
}

/// Text, then runs of equal style by letter, then the legend of the letters.
fn digest(buf: &Buffer) -> String {
    let mut legend: Vec<Style> = Vec::new();
    let mut out = String::new();
    let rows = rows_of(buf);
    let used = rows.iter().rposition(|row| !row.is_empty()).map_or(0, |at| at + 1);
    for row in rows.iter().take(used) {
        out.push_str(row);
        out.push('\n');
    }
    out.push_str("-- styles\n");
    for y in 0..u16::try_from(used).unwrap() {
        let mut runs: Vec<(char, usize)> = Vec::new();
        for x in 0..buf.area.width {
            // Link numbers depend on earlier drawings.
            let style = Style { underline_color: None, ..buf[(x, y)].style() };
            let index = legend.iter().position(|known| *known == style).unwrap_or_else(|| {
                legend.push(style);
                legend.len() - 1
            });
            let ch = char::from_u32('a' as u32 + u32::try_from(index).unwrap()).unwrap();
            match runs.last_mut() {
                Some((last, count)) if *last == ch => *count += 1,
                _ => runs.push((ch, 1)),
            }
        }
        let runs: Vec<String> = runs.iter().map(|(ch, count)| format!("{ch}{count}")).collect();
        out.push_str(&runs.join(" "));
        out.push('\n');
    }
    for (index, style) in legend.iter().enumerate() {
        let ch = char::from_u32('a' as u32 + u32::try_from(index).unwrap()).unwrap();
        let color =
            |color: Option<ratatui::style::Color>| color.map_or("none".to_owned(), |color| color.to_string());
        let mut modifiers = format!("{:?}", style.add_modifier).replace("NONE", "").to_lowercase();
        if modifiers == "modifier(0x0)" {
            modifiers.clear();
        }
        let line = format!("{ch} {} on {} {modifiers}", color(style.fg), color(style.bg));
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}
