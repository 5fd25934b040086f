//! The tab bar above the title; hidden if only one session is open.
//!
//! Shows number, status and title of each tab, and its agent if the agents differ. On narrow screens, texts are first shortened, then removed,
//! then the tabs farthest from the active one.
//!
//! Invariants: nothing in it is animated, so that a background tab causes no frames.

use crate::core::state::tab;
use crate::ui::canvas::Canvas;
use ratatui::layout::Rect;
use ratatui::style::Style;

use crate::core::state::tab::TabMark;
use crate::core::{Session, State};
use crate::model::{Action, SessionKey};

use super::frame_context::FrameContext;
use super::hits::{Hit, HitMap};
use super::render_context::Glyphs;
use super::text;
use super::theme::Role;

/// Maximum and minimum width of a label; shorter ones are omitted.
const MAX_NAME: usize = 40;
const MIN_NAME: usize = 3;

/// Below this width, a label that does not fit shows only the title.
const MIN_LABEL: usize = 16;

/// Maximum width of the session's name in the window title.
const MAX_TITLE: usize = 60;

pub(super) fn is_there(ctx: &FrameContext) -> bool {
    tab::tabs(ctx.state).nth(1).is_some()
}

/// The status symbol of a tab, one cell wide, and its role. Recognisable without colour.
pub(super) fn mark(glyphs: &Glyphs, mark: TabMark) -> (&'static str, Role) {
    let is_plain = *glyphs == Glyphs::plain();
    match mark {
        TabMark::Nothing => (" ", Role::Title),
        TabMark::News if is_plain => ("o", Role::Accent),
        TabMark::News => ("•", Role::Accent),
        TabMark::Done => (glyphs.check, Role::Success),
        TabMark::Failed => (glyphs.cross, Role::Error),
        TabMark::Working if is_plain => ("*", Role::Running),
        TabMark::Working => ("●", Role::Running),
        TabMark::Waits => (glyphs.warn, Role::Warning),
    }
}

/// The name of a session, without control characters.
pub fn session_name(state: &State, key: SessionKey) -> String {
    state.sessions.get(&key).map(|session| name(state, session)).unwrap_or_default()
}

pub(super) fn name(state: &State, session: &Session) -> String {
    title_of(session).unwrap_or_else(|| {
        let folder = session.workspace.cwd.file_name().map(|name| text::one_line(&name.to_string_lossy()));
        match (agent_of(state, session), folder) {
            (Some(agent), Some(folder)) => format!("{agent} in {folder}"),
            (Some(one), None) | (None, Some(one)) => one,
            (None, None) => "new".to_owned(),
        }
    })
}

fn label(ctx: &FrameContext, session: &Session, names_agent: bool) -> String {
    match (agent_of(ctx.state, session).filter(|_| names_agent), title_of(session)) {
        (Some(agent), Some(title)) => format!("{agent} {} {title}", ctx.render.glyphs.dot),
        _ => name(ctx.state, session),
    }
}

fn title_of(session: &Session) -> Option<String> {
    crate::core::title_of(session).map(|title| text::one_line(&title)).filter(|title| !title.is_empty())
}

fn agent_of(state: &State, session: &Session) -> Option<String> {
    let conn = state.conn_of(session.key)?;
    Some(text::one_line(conn.spec.shown_name())).filter(|name| !name.is_empty())
}

/// The title of the terminal's window: the number of other tabs with open requests, the session's status and name, and
/// "parlor".
pub fn terminal_title(state: &State, glyphs: &Glyphs) -> String {
    let front = tab::front(state);
    let waits = |session: &&Session| session.key != front && tab::mark(state, session) == TabMark::Waits;
    let count = tab::tabs(state).filter(waits).count();
    let session = state.sessions.get(&front);
    let status = session.map_or(TabMark::Nothing, |session| tab::mark(state, session));
    let name = session.and_then(crate::core::title_of);
    let name = name.map(|name| text::truncate(&text::one_line(&name), MAX_TITLE));
    let mut title = if count > 0 { format!("({count}) ") } else { String::new() };
    if status != TabMark::Nothing {
        title.push_str(mark(glyphs, status).0);
        title.push(' ');
    }
    if let Some(name) = name.filter(|name| !name.is_empty()) {
        title.push_str(&name);
        title.push_str(" - ");
    }
    title.push_str("parlor");
    title
}

struct Tab {
    position: usize,
    /// `▸2` or ` 2`: the active tab is recognisable without colour.
    number: String,
    mark: (&'static str, Role),
    label: String,
    name: String,
    is_front: bool,
}

impl Tab {
    fn text(&self, cols: usize) -> &str {
        let fits = cols >= MIN_LABEL || text::width(&self.label) <= cols;
        if fits { &self.label } else { &self.name }
    }

    fn cols(&self, name_cols: usize) -> usize {
        let name = text::width(self.text(name_cols)).min(name_cols);
        text::width(&self.number) + 1 + if name > 0 { name + 1 } else { 0 }
    }
}

/// Draws the tab bar. Returns whether it shows the whole title of the active tab.
pub(super) fn draw(ctx: &FrameContext, area: Rect, buf: &mut Canvas, hits: &mut HitMap) -> bool {
    let front = tab::front(ctx.state);
    let mut agents = tab::tabs(ctx.state).filter_map(|session| agent_of(ctx.state, session));
    let first_agent = agents.next();
    let names_agent = agents.any(|agent| Some(agent) != first_agent);
    let tabs: Vec<Tab> = tab::tabs(ctx.state)
        .enumerate()
        .map(|(position, session)| {
            let is_front = session.key == front;
            let arrow = if is_front { ctx.render.glyphs.arrow } else { " " };
            Tab {
                position,
                number: format!("{arrow}{}", position + 1),
                mark: mark(&ctx.render.glyphs, tab::mark(ctx.state, session)),
                label: label(ctx, session, names_agent),
                name: name(ctx.state, session),
                is_front,
            }
        })
        .collect();
    let front = tabs.iter().position(|tab| tab.is_front).unwrap_or(0);
    let room = usize::from(area.width).saturating_sub(2);
    let cols = |tabs: &[Tab], name_cols: usize| {
        tabs.iter().map(|tab| tab.cols(name_cols)).sum::<usize>() + tabs.len().saturating_sub(1)
    };
    let name_cols = (MIN_NAME..=MAX_NAME).rev().find(|max| cols(&tabs, *max) <= room).unwrap_or(0);
    let (first, last) = window(&tabs, front, room, |tabs| cols(tabs, name_cols));
    // Even if the other names are removed, the active tab may have space for its own.
    let edges = usize::from(first > 0) * 2 + usize::from(last < tabs.len()) * 2;
    let spare = room.saturating_sub(cols(tabs.get(first..last).unwrap_or_default(), name_cols) + edges + 1);
    let front_cols = if name_cols == 0 && spare >= MIN_NAME { spare.min(MAX_NAME) } else { name_cols };
    let hidden_waits = |hidden: &[Tab]| hidden.iter().any(|tab| tab.mark.1 == Role::Warning);
    let shown = tabs.get(first..last).unwrap_or_default();
    let mut x = area.x + 1;
    if first > 0 {
        x = put_edge(ctx, buf, (x, area.y), "<", hidden_waits(tabs.get(..first).unwrap_or_default()));
    }
    for tab in shown {
        let from = x;
        let end = area.right().saturating_sub(1);
        let put = |buf: &mut Canvas, x: u16, text: &str, style: Style| {
            text::put_text(buf, x, area.y, text, end.saturating_sub(x), style)
        };
        let style = ctx.style(if tab.is_front { Role::Selection } else { Role::Title });
        x = put(buf, x, &tab.number, style);
        x = put(buf, x, tab.mark.0, if tab.is_front { style } else { ctx.style(tab.mark.1) });
        let name_cols = if tab.position == front { front_cols } else { name_cols };
        if name_cols > 0 && !tab.name.is_empty() {
            x = put(buf, x, &format!(" {}", text::truncate(tab.text(name_cols), name_cols)), style);
        }
        if tab.is_front {
            put(buf, x, " ", style);
        }
        if let Ok(position) = u8::try_from(tab.position + 1) {
            let hit = Hit::Act(Action::ShowTab(position));
            hits.add(Rect { x: from, y: area.y, width: x.saturating_sub(from), height: 1 }, hit);
        }
        x = x.saturating_add(1);
    }
    if last < tabs.len() {
        let x = x.min(area.right().saturating_sub(2));
        put_edge(ctx, buf, (x, area.y), ">", hidden_waits(tabs.get(last..).unwrap_or_default()));
    }
    tabs.get(front).is_some_and(|tab| text::width(tab.text(front_cols)) <= front_cols)
}

/// The range of tabs around the active one that fits.
fn window(tabs: &[Tab], front: usize, room: usize, cols: impl Fn(&[Tab]) -> usize) -> (usize, usize) {
    let fits = |first: usize, last: usize| {
        let edges = usize::from(first > 0) * 2 + usize::from(last < tabs.len()) * 2;
        tabs.get(first..last).is_some_and(|shown| cols(shown) + edges <= room)
    };
    let (mut first, mut last) = (front, front + 1);
    loop {
        let before = (first, last);
        if last < tabs.len() && fits(first, last + 1) {
            last += 1;
        }
        if first > 0 && fits(first - 1, last) {
            first -= 1;
        }
        if before == (first, last) {
            return (first, last);
        }
    }
}

/// Draws the mark for more tabs on this side; highlighted if one of them has an open request.
fn put_edge(ctx: &FrameContext, buf: &mut Canvas, (x, y): (u16, u16), mark: &str, waits: bool) -> u16 {
    let style = ctx.style(if waits { Role::Warning } else { Role::TextDim });
    let shown = if waits { ctx.render.glyphs.warn } else { mark };
    text::put_text(buf, x, y, shown, 1, style) + 1
}

#[cfg(test)]
mod tests;
