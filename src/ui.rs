//! The user interface: dialogs, drawing, and what keys and clicks mean.
//!
//! `core` decides about sessions, `runtime` sets up the terminal.
//! Invariants: the cost of a frame depends on the screen, not on the transcript; `ViewState` contains nothing that
//! cannot be recreated; text of an agent reaches a cell only through `text::sanitize` or vt100.

mod app;
pub mod canvas;
pub mod cells;
mod changes;
mod completions;
mod composer;
pub mod dialogs;
pub mod diff;
mod event;
mod focus;
mod frame_context;
pub mod highlight;
mod hits;
pub mod input;
mod json;
pub mod log;
pub mod markdown;
pub mod picture;
pub mod plain;
mod plan;
mod queue;
pub mod render_context;
mod screen;
mod search;
pub mod session_view;
mod side;
mod status;
mod tabs;
pub mod terminal;
mod terminal_panel;
pub mod text;
pub mod theme;
mod title;
pub mod transcript;
mod update;
pub mod view_state;
mod welcome;
mod which_key;

pub use app::{App, TabUi, UserView};
pub use canvas::scroll::{self, Scroll};
pub use canvas::{Canvas, RowNotes};
pub use composer::CursorShape;
pub use dialogs::{InboxDialog, Layer, Layers, LogPage, PlainPage, QuestionDialog, RequestView};
pub use event::Event;
pub use input::{insert_clipboard, quote, route};
pub use tabs::{session_name, terminal_title};
pub use update::{start, update};
pub use view_state::ViewState;

use std::hash::{Hash, Hasher};
use std::time::Duration;

use ratatui::Frame;
use ratatui::buffer::Cell;
use ratatui::layout::{Position, Rect};

use crate::config::keymap::Context;
use crate::core::{OutputRoom, SessionPhase, State};
use screen::{DiffRoom, Screen};

use frame_context::FrameContext;
use hits::Hit;
use render_context::{Glyphs, HistoryKeys, Marks, RenderContext};
use theme::{Role, Theme};
use transcript::TranscriptView;
use view_state::SPINNER_STEP;
use which_key::PendingKeys;

/// From this width on, plan, changed files and queue are shown beside the transcript.
const SIDE_COLS: u16 = 160;

/// Minimum size; below it only a note is shown.
const MIN_COLS: u16 = 20;
const MIN_ROWS: u16 = 6;

/// In the full-screen composer, completions are above the cursor from this row on.
const MAX_ABOVE: u16 = 4;

/// From this height on panels are separated by blank rows.
const SPACIOUS_ROWS: u16 = 20;

/// The difference between the widths of the transcript and of its diffs.
const DIFF_MARGIN: u16 = 8;

/// The difference between the widths of the transcript and of the output of a command.
const OUTPUT_MARGIN: u16 = 6;

/// Draws a ratatui frame. Set the clock by [`ViewState::set_now`] first.
pub fn draw(app: &App, view: &mut ViewState, theme: &Theme, frame: &mut Frame) {
    let mut canvas = Canvas::new(frame.area().width, frame.area().height);
    if let Some(position) = draw_into(app, view, theme, &mut canvas) {
        frame.set_cursor_position(position);
    }
    *frame.buffer_mut() = canvas.into_buffer();
}

/// Draws a frame, except for parts that the canvas already has. Returns the cursor position. Set the clock by
/// [`ViewState::set_now`] first.
pub fn draw_into(app: &App, view: &mut ViewState, theme: &Theme, canvas: &mut Canvas) -> Option<Position> {
    let area = canvas.area;
    if area.is_empty() {
        return None;
    }
    view.begin_frame(&app.state, app.shown().selected);
    draw_frame(app, view, theme, canvas).filter(|position| area.contains(*position))
}

/// The key of the chrome: revisions, and state without a revision. Times are handled by [`FrameContext::until`].
fn chrome_key(ctx: &FrameContext, view: &ViewState, panes: &Panes, canvas: &Canvas) -> u64 {
    let shown = view.transcripts.get(&ctx.state.active);
    let news = shown.filter(|shown| !shown.is_following()).map(TranscriptView::news);
    let keymap = std::ptr::from_ref(ctx.keymap) as usize;
    canvas.key((
        (ctx.state.chrome_changes, &ctx.state.flash, status::is_quiet(ctx)),
        (ctx.render.spinner, view.composer.rev(), news, keymap, ctx.pending, lists_keys(view)),
        (panes.title, panes.transcript, panes.plan, panes.rule, panes.composer, panes.status),
        (panes.queue, panes.edge, ctx.keys.context, text::is_wide()),
        (panes.side, panes.side.map(|_| view.side.files().collect::<Vec<_>>())),
    ))
}

fn lists_keys(view: &ViewState) -> bool {
    view.pending.as_ref().is_some_and(|keys| keys.shown_in(view.now, view.which_key_delay).is_none())
}

/// The key that all rows of the transcript depend on, if nothing else is drawn over them.
fn ground(app: &App, ctx: &FrameContext, view: &ViewState, panes: &Panes) -> Option<u64> {
    let (session, render) = (ctx.session, &ctx.render);
    let is_covered = lists_keys(view)
        || ctx.keys.base != dialogs::focus(app)
        || ctx.keys.has_dialog
        || !session.requests.is_empty()
        || !dialogs::completions(app).is_empty()
        || dialogs::argument_hint(&app.state).is_some()
        || session.transcript.items().is_empty()
        || panes.side.is_some()
        || terminal_panel::shown(session).is_some();
    let mut hasher = std::hash::DefaultHasher::new();
    (session.key, &render.theme.name, render.glyphs.arrow).hash(&mut hasher);
    (!is_covered).then(|| hasher.finish())
}

fn draw_frame(app: &App, view: &mut ViewState, theme: &Theme, buf: &mut Canvas) -> Option<Position> {
    let area = buf.area;
    let mut blank = Cell::EMPTY;
    blank.set_style(theme.style(Role::Text));
    let Some(session) = app.state.active_session() else {
        view.hits.clear();
        buf.begin(blank, area, None);
        return None;
    };
    text::link::keep_files(session.workspace.remote.is_none());
    let keymap = view.keymap.clone();
    let home = view.home.clone();
    let pending = view.pending.as_ref().map(PendingKeys::label);
    let ctx = FrameContext {
        state: &app.state,
        session,
        view: app.shown(),
        views: &app.views,
        request_view: &app.request_view,
        keys: focus::key_facts(app, view.now),
        render: RenderContext {
            glyphs: view.glyphs,
            spinner: view.spinner,
            diff_layout: app.diff_layout,
            shows_thoughts: app.shows_thoughts,
            home: home.as_deref().filter(|_| session.workspace.remote.is_none()),
            numbers_code: view.numbers_code,
            history_keys: HistoryKeys::of(&keymap),
            ..RenderContext::new(theme, session.workspace.folder(), view.now)
        },
        keymap: &keymap,
        pending: pending.as_deref(),
        lists_keys: lists_keys(view),
        home: home.as_deref(),
        marks: Marks::beside(&view.glyphs),
        until: std::cell::Cell::new(None),
        diff_room: std::cell::Cell::new(DiffRoom::OneColumn),
    };
    if area.width < MIN_COLS || area.height < MIN_ROWS {
        view.hits.clear();
        buf.begin(blank, area, None);
        let message = if area.width < 24 { "Too small." } else { "Window too small." };
        buf.set_stringn(area.x, area.y, message, usize::from(area.width), theme.style(Role::Warning));
        return None;
    }
    if area.width >= SIDE_COLS {
        view.side.follow(&app.state, session.key);
    }
    let mut panes = arrange(&ctx, view, area);
    let diff_cols = panes.transcript.width.saturating_sub(DIFF_MARGIN);
    let fits = |layout| diff::Layout::choose(layout, diff_cols) == diff::Layout::SideBySide;
    ctx.diff_room.set(DiffRoom::of(fits));
    let request = dialogs::AnchoredRequest::new(app, &ctx, view, panes.transcript);
    let request_rows = request.as_ref().map_or(0, dialogs::AnchoredRequest::rows);
    panes.transcript.height = panes.transcript.height.saturating_sub(request_rows);
    let ground = ground(app, &ctx, view, &panes);
    buf.begin(blank, panes.transcript, ground);
    if session.transcript.items().is_empty() && !is_full(&ctx, view) {
        welcome::draw(&ctx, panes.transcript, buf);
    } else if panes.transcript.height > 0 && !is_full(&ctx, view) {
        let shown = view.transcripts.entry(app.state.active).or_default();
        // Dialogs always wrap: the end of a line may be what the user has to see.
        let render = RenderContext { wraps: view.wraps, ..ctx.render };
        transcript::draw(session, app.shown(), shown, &render, panes.transcript, buf);
    }
    let is_covered = ctx.keys.has_dialog || request.is_none() && !session.requests.is_empty();
    if is_covered {
        // The transcript cannot be scrolled while a dialog is open.
        let bar = Rect { x: panes.transcript.right().saturating_sub(1), width: 1, ..panes.transcript };
        buf.blank(bar, ctx.style(Role::Text));
    }
    let key = chrome_key(&ctx, view, &panes, buf);
    if !buf.keeps_chrome(key, view.now) {
        let cursor = draw_chrome(&ctx, view, &panes, buf);
        buf.note_chrome(key, ctx.until.get(), cursor);
    }
    let mut cursor = buf.chrome_cursor();
    match ctx.keys.base {
        Context::Browse => cursor = None,
        Context::Terminal => cursor = terminal_panel::draw(&ctx, view, &panes, buf),
        _ => {}
    }
    let is_free = ctx.keys.is_in_dialog;
    if !is_free {
        let mut above = Rect { height: panes.rule.y.saturating_sub(area.y), ..area };
        if let Some(Position { y, .. }) = cursor.filter(|_| is_full(&ctx, view)) {
            // Above the row of the cursor, or at the end of the composer.
            let Rect { y: top, .. } = panes.composer;
            let (y, end) = if y - top >= MAX_ABOVE { (top, y) } else { (y + 1, panes.composer.bottom()) };
            above = Rect { y, height: end.saturating_sub(y), ..panes.composer };
        }
        completions::draw(app, &ctx, above, buf, &mut view.hits);
    }
    // The tab bar stays above all dialogs, because a dialog belongs to its tab.
    let below = Rect { y: area.y + panes.tabs.height, height: area.height - panes.tabs.height, ..area };
    // What is typed beside a request, and a notice, must be visible.
    let end = match &app.state.flash {
        _ if ctx.keys.is_beside_draft => panes.rule.y,
        Some(_) if is_free => panes.status.y,
        _ => below.bottom(),
    };
    let below = Rect { height: end.saturating_sub(below.y), ..below };
    let of_dialog = match request {
        Some(request) => request.draw(&ctx, view, buf),
        None => dialogs::draw(app, &ctx, view, below, buf),
    };
    if is_free {
        cursor = of_dialog;
    }
    view.screen = Some(room(&ctx, &panes, area.height));
    if let Some(pending) = view.pending.as_ref().filter(|_| lists_keys(view)) {
        let bottom = if is_free || is_full(&ctx, view) { panes.status.y } else { panes.rule.y };
        let above = Rect { height: bottom.saturating_sub(area.y), ..area };
        which_key::draw(&ctx, pending, above, buf, &mut view.hits);
    }
    if view.glyphs == Glyphs::plain() {
        // Truncated text ends in an ellipsis that such a terminal cannot show either.
        for cell in buf.content.iter_mut().filter(|cell| cell.symbol() == Glyphs::rich().ellipsis) {
            cell.set_symbol(Glyphs::plain().ellipsis);
        }
    }
    cursor
}

fn room(ctx: &FrameContext, panes: &Panes, rows: u16) -> Screen {
    let has_side_steps = panes.side.is_some() && side::has_steps(ctx);
    let fits_plan = panes.side.is_some() || rows >= plan::MIN_ROWS;
    let output_cols = panes.transcript.width.saturating_sub(OUTPUT_MARGIN);
    Screen {
        diffs: ctx.diff_room.get(),
        output: OutputRoom { cols: output_cols, terminal: terminal_panel::size(panes) },
        fits_plan,
        shows_steps: has_side_steps || panes.plan.is_some_and(|plan| plan.height > 1),
    }
}

/// Draws everything around the transcript. Returns the cursor position if nothing else has the focus.
fn draw_chrome(
    ctx: &FrameContext,
    view: &mut ViewState,
    panes: &Panes,
    buf: &mut Canvas,
) -> Option<Position> {
    view.hits.clear();
    let is_titled = panes.tabs.height > 0 && tabs::draw(ctx, panes.tabs, buf, &mut view.hits);
    title::draw(ctx, !is_titled, panes.title, buf, &mut view.hits);
    view.hits.add(panes.transcript, Hit::Transcript);
    let focus = ctx.keys.context;
    let keys = queue::Focused { has_keys: focus == Context::Main, is_empty: view.composer.is_empty() };
    if let Some(side) = panes.side {
        side::draw(ctx, &view.side, keys, side, buf, &mut view.hits);
    }
    if let Some(area) = panes.plan {
        plan::draw(ctx, area, buf, &mut view.hits);
    }
    let of_search = panes.search.and_then(|area| search::draw(ctx, area, buf, &mut view.hits));
    let has_plan_count = panes.side.is_none() && panes.plan.is_none();
    if let Some(area) = panes.queue {
        queue::draw(ctx, keys, area, buf, &mut view.hits);
    }
    let is_focused = focus == Context::Main;
    let cursor = view.composer.draw(ctx, is_focused, panes.composer, panes.edge, buf, &mut view.hits);
    let facts = composer::edge::EdgeFacts {
        focus,
        hidden_rows: view.composer.hidden().unwrap_or_default(),
        is_full: is_full(ctx, view),
        mode: view.composer.mode_label(),
        transcript: view.transcripts.get(&ctx.state.active),
        has_plan_count,
        has_usage: panes.side.is_none(),
    };
    composer::edge::draw(ctx, &facts, panes.rule, panes.edge, buf, &mut view.hits);
    status::draw(ctx, panes.status, buf, &mut view.hits);
    if ctx.keys.base == Context::Search { of_search } else { Some(cursor) }
}

/// The shape of the cursor: it shows the mode of vim keys while the composer has the focus.
pub fn cursor_shape(app: &App, view: &ViewState) -> CursorShape {
    let is_in_composer = focus::key_focus(app) == Context::Main;
    if is_in_composer { view.composer.cursor_shape() } else { CursorShape::Default }
}

/// Whether something on the screen is animated: a turn is running without waiting for the user, a command of the user
/// is running, or an agent is starting. Otherwise no frame is due until an event.
pub fn is_animating(state: &State) -> bool {
    let Some(session) = state.active_session() else { return false };
    let is_starting = matches!(session.phase, SessionPhase::Starting { .. } | SessionPhase::Opening { .. });
    let is_working = session.turn.is_running() || is_starting || session.prompt_waits_for().is_some();
    state.is_quitting || (session.requests.is_empty() && (is_working || session.command_to_stop().is_some()))
}

/// The time until the next frame without an event; `None`: not needed. With reduced motion only the seconds are
/// updated.
pub fn next_frame_in(app: &App, view: &ViewState) -> Option<Duration> {
    if view.transcript().is_some_and(transcript::TranscriptView::is_at_edge) {
        return Some(transcript::EDGE_STEP);
    }
    let step = if view.has_motion { SPINNER_STEP } else { Duration::from_secs(1) };
    // A dialog that waits for a pause in typing shows that until it accepts keys.
    let quiet = dialogs::takes_answers_from(app).and_then(|at| at.checked_duration_since(view.now));
    let keys = view.pending.as_ref().and_then(|keys| keys.shown_in(view.now, view.which_key_delay));
    let times = quiet.filter(|left| !left.is_zero()).into_iter().chain(keys);
    is_animating(&app.state).then_some(step).into_iter().chain(times).min()
}

/// The event that follows from the last frame: a change of the room on the screen.
pub fn event_after_frame(app: &App, view: &ViewState) -> Option<Event> {
    if view.screen != app.screen {
        return view.screen.map(Event::Screen);
    }
    None
}

/// The text selected on the screen, without soft wraps; `None` if nothing is selected.
pub fn selected_text(app: &App, view: &mut ViewState, theme: &Theme) -> Option<String> {
    let session = app.state.active_session()?;
    let (home, keymap) = (view.home.clone(), view.keymap.clone());
    let render = RenderContext {
        glyphs: view.glyphs,
        spinner: view.spinner,
        diff_layout: app.diff_layout,
        shows_thoughts: app.shows_thoughts,
        home: home.as_deref().filter(|_| session.workspace.remote.is_none()),
        wraps: view.wraps,
        history_keys: HistoryKeys::of(&keymap),
        ..RenderContext::new(theme, session.workspace.folder(), view.now)
    };
    transcript::selected_text(session, app.shown(), view.transcript_mut()?, &render)
}

struct Panes {
    tabs: Rect,
    title: Rect,
    transcript: Rect,
    side: Option<Rect>,
    plan: Option<Rect>,
    search: Option<Rect>,
    queue: Option<Rect>,
    /// The composer's top edge.
    rule: Rect,
    composer: Rect,
    /// The composer's bottom edge; empty on low screens.
    edge: Rect,
    status: Rect,
}

/// Whether the composer takes the place of the transcript: while nothing else has the focus.
fn is_full(ctx: &FrameContext, view: &ViewState) -> bool {
    view.composer.is_full && ctx.session.requests.is_empty() && ctx.keys.base == Context::Main
}

/// Lays out the screen. The composer grows at the expense of the transcript, but leaves it a third.
fn arrange(ctx: &FrameContext, view: &mut ViewState, area: Rect) -> Panes {
    let is_spacious = area.height >= SPACIOUS_ROWS;
    let air = u16::from(is_spacious);
    let is_full = is_full(ctx, view);
    let composer_rows = view.composer.rows(area.width.saturating_sub(4).max(1)).min((area.height / 3).max(1));
    let has_side = !is_full && area.width >= SIDE_COLS && side::is_there(ctx, &view.side);
    let plan_rows = if is_full || has_side { 0 } else { plan::rows(ctx.view, ctx.session, area.height) };

    let tab_rows = u16::from(tabs::is_there(ctx));
    let head_rows = tab_rows + 1;
    let mut bottom = area.bottom();
    let mut take = |rows: u16| {
        let rows = rows.min(bottom.saturating_sub(area.y + head_rows));
        bottom -= rows;
        Rect { y: bottom, height: rows, ..area }
    };
    let status = take(status::rows(ctx, area));
    let edge = take(air);
    let rows_above = area.y + head_rows + 1;
    let composer_rows = if is_full { edge.y.saturating_sub(rows_above).max(1) } else { composer_rows };
    let composer = take(composer_rows);
    let rule = take(1);
    let queue_rows = if has_side || is_full { 0 } else { queue::rows(ctx.session, area.height) };
    let queue = (queue_rows > 0).then(|| take(queue_rows));
    let plan = (plan_rows > 0).then(|| take(plan_rows));
    take(u16::from(is_spacious && plan_rows + queue_rows > 0));
    let search = search::is_there(ctx).then(|| take(1));
    let top = area.y + head_rows + air;
    let middle = Rect { y: top.min(bottom), height: bottom.saturating_sub(top), ..area };
    let transcript_cols = if has_side { transcript::FULL_COLS } else { middle.width };
    let transcript = Rect { width: transcript_cols, ..middle };
    let side = has_side.then(|| Rect {
        x: transcript.right(),
        width: middle.width - transcript.width,
        height: middle.height.saturating_sub(1),
        ..middle
    });
    Panes {
        tabs: Rect { height: tab_rows, ..area },
        title: Rect { y: area.y + tab_rows, height: 1, ..area },
        transcript,
        side,
        plan,
        search,
        queue,
        rule,
        composer,
        edge,
        status,
    }
}

#[cfg(test)]
mod tests;
