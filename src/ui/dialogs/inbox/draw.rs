//! The inbox: a list of open requests in all tabs, with a preview of the selected one.
//!
//! Shows the start of the request and its answers; in full, a request is drawn by its own dialog.

use crate::core::state::tab;
use crate::ui::canvas::Canvas;
use crate::ui::text::{Line, Span};
use ratatui::layout::{Position, Rect};

use super::super::dialog_frame::{DialogFrame, DialogPosition, Row, Size, choice, led, spread, wrapped};
use super::super::{options, permission};
use super::InboxDialog;
use crate::config::keymap::Context;
use crate::core::state::inbox::{Waiting, waiting};
use crate::core::state::tab::TabMark;
use crate::core::state::unseen::WaitingFor;
use crate::core::{ItemBody, MessagePart, OpenRequest, OpenRequestKind, Session};
use crate::model::{Action, ItemId, Role as Speaker};
use crate::ui::cells::ToolBody;
use crate::ui::frame_context::FrameContext;
use crate::ui::hits::Hit;
use crate::ui::tabs as bar;
use crate::ui::text;
use crate::ui::theme::Role;
use crate::ui::view_state::{DialogId, ViewState};

pub(super) const TITLE: &str = "Inbox";

/// Maximum rows of the agent's last output.
const SAID_ROWS: usize = 3;

/// Draws the list, or the selected request in full.
pub(super) fn draw(
    ctx: &FrameContext,
    dialog: &InboxDialog,
    view: &mut ViewState,
    area: Rect,
    buf: &mut Canvas,
) -> Option<Position> {
    if dialog.is_whole
        && let Some((key, open)) = dialog.answerable(ctx.state)
        && let Some(session) = ctx.state.sessions.get(&key)
    {
        draw_whole(&ctx.of(session), open, view, area, buf);
        return None;
    }
    let position = DialogPosition::new(area, Size::Large, false);
    let cols = position.cols();
    let (rows, marked) = (waiting(ctx.state), dialog.position);
    let mut sheet =
        DialogFrame { title: TITLE.to_owned(), tag: rows.len().to_string(), ..DialogFrame::default() };
    for (index, row) in rows.iter().enumerate() {
        let is_selected = index == marked;
        let hit = u16::try_from(index).ok().map(Action::Mark).map(Hit::Act);
        sheet.body.push(Row { line: line(ctx, row, cols), hit, is_selected, ..Row::default() });
        if is_selected {
            let max = usize::from(area.height / 3).clamp(2, 10);
            sheet.body.extend(detail(ctx, row, max, cols));
        }
    }
    if rows.is_empty() {
        sheet.body = wrapped(ctx, Role::TextDim, "Inbox is empty.", cols);
    }
    let mut hints = vec![ctx.hint(Context::Permission, Action::Accept, "open")];
    if let Some((_, open)) = dialog.answerable(ctx.state) {
        let count = if let OpenRequestKind::Permission { request, .. } = &open.kind {
            (sheet.foot, sheet.pinned) = options::rows(ctx, request, None, cols);
            request.options.len()
        } else {
            let labels = answers(open);
            for (index, label) in labels.iter().enumerate() {
                sheet.foot.extend(choice(ctx, index, label, false, cols));
            }
            labels.len()
        };
        let last = u8::try_from(count.min(9)).ok().map(Action::Choose);
        let first = ctx.key(Context::Permission, Action::Choose(1));
        hints.push(first.zip(last.and_then(|last| ctx.key(Context::Permission, last))).map(
            |(first, last)| {
                let keys = if first == last {
                    first
                } else {
                    format!("{first}{}{last}", ctx.render.glyphs.ellipsis)
                };
                (keys, "answer".to_owned())
            },
        ));
        hints.push(ctx.hint(Context::Permission, Action::FullScreen, "show all"));
    }
    hints.push(ctx.hint(Context::Permission, Action::Escape, "close"));
    sheet.hints = hints.into_iter().flatten().collect();
    sheet.draw(ctx, position, view, buf)
}

fn draw_whole(ctx: &FrameContext, open: &OpenRequest, view: &mut ViewState, area: Rect, buf: &mut Canvas) {
    view.show_dialog(DialogId::Ask(open.request_id));
    if !matches!(open.kind, OpenRequestKind::Elicitation(_)) {
        permission::draw(ctx, open, None, view, area, buf);
    }
}

fn answers(open: &OpenRequest) -> Vec<String> {
    match &open.kind {
        OpenRequestKind::Access(request) => request.labels(),
        OpenRequestKind::Permission { .. } | OpenRequestKind::Elicitation(_) => Vec::new(),
    }
}

fn ask_of<'a>(ctx: &FrameContext<'a>, row: &Waiting) -> Option<(&'a Session, &'a OpenRequest)> {
    let session = ctx.state.sessions.get(&row.key)?;
    let WaitingFor::Ask(id) = &row.what else { return None };
    Some((session, session.requests.iter().find(|open| open.request_id == *id)?))
}

/// Formats `! 2 Clock skew   Allow this edit?`.
fn line(ctx: &FrameContext, row: &Waiting, cols: u16) -> Line<'static> {
    let Some(session) = ctx.state.sessions.get(&row.key) else { return Line::default() };
    let position = tab::tabs(ctx.state).position(|session| session.key == row.key).unwrap_or(0);
    let mark = match row.what {
        WaitingFor::Ask(..) | WaitingFor::SignIn | WaitingFor::Question(_) => TabMark::Waits,
        WaitingFor::Failure(_) | WaitingFor::Stopped(_) => TabMark::Failed,
        WaitingFor::Result => TabMark::Done,
    };
    let (mark, role) = bar::mark(&ctx.render.glyphs, mark);
    let what = match &row.what {
        WaitingFor::Ask(..) => match ask_of(ctx, row).map(|(_, open)| &open.kind) {
            Some(OpenRequestKind::Permission { tool, .. }) => kind_of(session, *tool),
            Some(OpenRequestKind::Access(request)) => request.why.heading(&request.access),
            Some(OpenRequestKind::Elicitation(_)) | None => "Question",
        }
        .to_owned(),
        WaitingFor::SignIn => "Sign-in required".to_owned(),
        WaitingFor::Question(title) => text::one_line(title),
        WaitingFor::Failure(_) => "Failed".to_owned(),
        WaitingFor::Stopped(why) => text::one_line(why),
        WaitingFor::Result => "Turn finished".to_owned(),
    };
    let name_cols = usize::from(cols) / 3;
    let name = text::truncate(&bar::name(ctx.state, session), name_cols);
    let pad = " ".repeat(name_cols.saturating_sub(text::width(&name)) + 2);
    let left = vec![
        ctx.span(role, mark),
        ctx.span(Role::Accent, format!(" {:<3}", position + 1)),
        ctx.span(Role::Dialog, name),
        Span::raw(pad),
        ctx.span(Role::Dialog, what),
    ];
    spread(left, Line::default(), cols)
}

fn kind_of(session: &Session, tool: ItemId) -> &'static str {
    match session.transcript.get(tool).map(|item| &item.body) {
        Some(ItemBody::Tool(tool)) => permission::question(Some(tool)),
        _ => permission::question(None),
    }
}

/// The preview of the selected entry, with a maximum number of rows.
fn detail(ctx: &FrameContext, row: &Waiting, max: usize, cols: u16) -> Vec<Row> {
    const INDENT: u16 = 5;
    let mut all = 0;
    let cols = cols.saturating_sub(INDENT).max(8);
    let plain = |role, source: &str| wrapped(ctx, role, source, cols);
    let mut rows = match &row.what {
        WaitingFor::Failure(why) => plain(Role::Error, why),
        WaitingFor::SignIn => plain(Role::TextDim, "Sign in to continue."),
        WaitingFor::Question(_) => Vec::new(),
        WaitingFor::Result | WaitingFor::Stopped(_) => {
            let session = ctx.state.sessions.get(&row.key);
            let said = session.and_then(end_of_last_message).unwrap_or_default();
            let mut rows = plain(Role::TextDim, &said);
            rows.drain(..rows.len().saturating_sub(SAID_ROWS));
            rows
        }
        WaitingFor::Ask(..) => match ask_of(ctx, row) {
            Some((session, open)) => {
                let (rows, left_out) = about(&ctx.of(session), open, max, cols);
                all += left_out;
                rows
            }
            None => Vec::new(),
        },
    };
    all += rows.len();
    if all > max {
        let rest = all + 1 - max;
        rows.truncate(max.saturating_sub(1));
        let more = format!("{} {rest} more lines", ctx.render.glyphs.fold);
        rows.push(Line::from(ctx.span(Role::TextDim, more)).into());
    }
    led(rows, Span::raw(" ".repeat(usize::from(INDENT))))
}

/// The preview of a request: agent and action, then the first lines of the change, the command or the
/// question. Also returns the number of omitted rows.
fn about(ctx: &FrameContext, open: &OpenRequest, max: usize, cols: u16) -> (Vec<Row>, usize) {
    let mut left_out = 0;
    let rows = match &open.kind {
        OpenRequestKind::Permission { tool, .. } => {
            let tool = ctx.session.transcript.get(*tool).and_then(|item| match &item.body {
                ItemBody::Tool(tool) => Some(tool.as_ref()),
                _ => None,
            });
            let (wants, what) = permission::requested_action(ctx, tool);
            let mut rows =
                wrapped(ctx, Role::Dialog, &format!("{} asks to {wants} {what}", ctx.agent()), cols);
            if let Some(tool) = tool {
                let mut body = ToolBody::of(tool, ctx.session, &ctx.render, cols);
                let lines = body.lines(0..max, &ctx.render);
                left_out = body.len() - lines.len();
                rows.extend(lines.into_iter().map(Row::from));
            }
            rows
        }
        OpenRequestKind::Access(request) => {
            let mut rows = permission::access_head(ctx, request, cols);
            let mut body = ToolBody::of(&request.call, ctx.session, &ctx.render, cols);
            let lines = body.lines(0..max, &ctx.render);
            left_out = body.len() - lines.len();
            rows.extend(lines.into_iter().map(Row::from));
            rows
        }
        OpenRequestKind::Elicitation(request) => wrapped(ctx, Role::Dialog, &request.message, cols),
    };
    (rows, left_out)
}

/// The end of the agent's last message.
fn end_of_last_message(session: &Session) -> Option<String> {
    session.transcript.items().iter().rev().find_map(|item| match &item.body {
        ItemBody::Message(message) if message.role == Speaker::Agent => {
            message.parts.iter().rev().find_map(|part| match part {
                MessagePart::Text(text) => {
                    let lines: Vec<&str> =
                        text.lines().rev().filter(|line| !line.trim().is_empty()).take(SAID_ROWS).collect();
                    Some(lines.into_iter().rev().collect::<Vec<_>>().join("\n"))
                }
                MessagePart::Block(_) => None,
            })
        }
        _ => None,
    })
}

#[cfg(test)]
mod tests;
