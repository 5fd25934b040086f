//! The terminal that the user types into: its screen as in a terminal, with its cursor.
//!
//! It covers as many rows above the status line as the program uses, at most all below the title.

use ratatui::layout::{Position, Rect};

use crate::core::{Session, TerminalView};
use crate::model::{TerminalId, TerminalSize};

use super::Panes;
use super::canvas::Canvas;
use super::composer::edge;
use super::frame_context::FrameContext;
use super::hits::Hit;
use super::theme::Role;
use super::view_state::ViewState;

/// Minimum number of rows of the program, so that the panel does not jump at each line.
const MIN_ROWS: u16 = 4;

/// The terminal that the panel shows, while its command is running.
pub(super) fn shown(session: &Session) -> Option<(&TerminalId, &TerminalView)> {
    let id = session.typing()?;
    session.terminals.get(id).filter(|view| view.exit.is_none()).map(|view| (id, view))
}

pub(super) fn size(panes: &Panes) -> TerminalSize {
    let rows = panes.status.y.saturating_sub(panes.title.bottom() + 1);
    TerminalSize { rows: rows.max(1), cols: panes.status.width.max(1) }
}

/// Draws the panel. Returns the position of the program's cursor if it is visible.
pub(super) fn draw(
    ctx: &FrameContext,
    view: &mut ViewState,
    panes: &Panes,
    buf: &mut Canvas,
) -> Option<Position> {
    let (id, terminal) = shown(ctx.session)?;
    let TerminalSize { rows, cols } = size(panes);
    let screen = view.transcripts.entry(ctx.state.active).or_default().screen(id, terminal);
    let height = screen.rows_in_use().max(MIN_ROWS).min(rows);
    let area = Rect { x: panes.status.x, y: panes.status.y.saturating_sub(height), width: cols, height };
    let head = Rect { y: area.y.saturating_sub(1), height: 1, ..area };
    let covered = Rect { height: height + 1, ..head };
    buf.blank(covered, ctx.style(Role::Text));
    buf.blank(area, ctx.style(Role::Terminal));
    let cursor = screen.draw(area, ctx.style(Role::Terminal), buf);
    view.hits.add(covered, Hit::Nothing);
    view.hits.add(area, Hit::Terminal(area));
    edge::draw_terminal_head(ctx, terminal.command.as_deref().unwrap_or_default(), head, buf, &mut view.hits);
    cursor
}
