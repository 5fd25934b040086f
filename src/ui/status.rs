//! The status line: the agent's activity or a notice on the left, then the keys that matter most where the focus is;
//! warnings and the help key on the right.
//!
//! On narrow screens, the names of keys are shortened, and then keys removed from the right; then the warnings are removed;
//! during a turn, the help key before them. A long notice has several rows.
//!
//! Invariants: the spinner is only animated while something is running; nothing else is animated.

use std::time::Instant;

use ratatui::layout::Rect;

use crate::config::keymap::Context;
use crate::core::lifecycle::operations;
use crate::core::state::{inbox, lookup};
use crate::core::{ConnPhase, ItemBody, Prompt, SessionPhase, Turn};
use crate::model::{Action, CloseReason, NoticeKind};
use crate::ui::canvas::Canvas;
use crate::ui::dialogs::obstacle;
use crate::ui::text::{Line, Span};

use super::frame_context::FrameContext;
use super::hits::{Hit, HitMap};
use super::text;
use super::theme::Role;
use crate::ui::text::short_count;

/// Width of the context meter, in cells.
const METER_CELLS: u64 = 8;

/// Minimum width for the context meter.
const METER_COLS: u16 = 96;

/// Minimum width for the numbers of the context.
const PERCENT_COLS: u16 = 60;

/// Minimum width for the reason why nothing can be saved.
const WHY_COLS: u16 = 72;

/// Minimum width for the warning about resending a prompt.
const RISK_COLS: u16 = 80;

const NOTICE_ROWS: u16 = 3;

/// Columns that the reason why nothing can be saved leaves to the activity.
const ACTIVITY_COLS: usize = 40;

/// Maximum number of keys beside the help key.
const MAX_KEYS: usize = 4;

/// Columns around the keys.
const KEYS_GAP: usize = 3;

/// Seconds without output in a turn before it is shown.
const QUIET_SECONDS: u64 = 30;

/// A segment on the right.
struct StatusSegment {
    line: Line<'static>,
    action: Option<Action>,
    /// The lowest rank is removed first.
    rank: u8,
}

pub(super) fn draw(ctx: &FrameContext, area: Rect, buf: &mut Canvas, hits: &mut HitMap) {
    let room = usize::from(area.width).saturating_sub(2);
    // Reserves space for the warning that nothing is saved.
    let reserved = unsaved(ctx, area.width).map_or(0, |line| line.width() + 2);
    let state = state(ctx, area.width.saturating_sub(u16::try_from(reserved).unwrap_or(0)));
    let mut pieces = pieces(ctx, area.width);
    let mut lines = match ctx.pending {
        Some(keys) => {
            let mut line = Line::from(ctx.span(Role::KeyHint, format!("{keys} ")));
            let hints = [("?", "keys"), ("Esc", "cancel")];
            let hints = hints.map(|(key, does)| (key.to_owned(), does.to_owned()));
            let hints: &[_] = if ctx.lists_keys { &[] } else { &hints };
            line.spans.extend(ctx.hints(hints, room.saturating_sub(line.width())).spans);
            vec![line]
        }
        None => notice_lines(ctx, area.width, area.height),
    };
    if lines.is_empty() {
        lines.push(state);
    } else if let Some(hint) = escape_hint(ctx).filter(|_| ctx.pending.is_none()) {
        // The notice hides the activity, but not the key that stops it.
        pieces.push(StatusSegment { line: hint, action: Some(Action::Escape), rank: 8 });
    }
    for (y, line) in (area.y..area.bottom()).zip(&lines) {
        buf.put_line(area.x + 1, y, line, u16::try_from(room).unwrap_or(u16::MAX));
    }
    let left_cols = lines.last().map_or(0, Line::width).min(room);
    let area = Rect { y: area.bottom().saturating_sub(1), ..area };

    let dot = format!(" {} ", ctx.render.glyphs.dot);
    let cols = |pieces: &[StatusSegment]| {
        let own: usize = pieces.iter().map(|piece| piece.line.width()).sum();
        own + pieces.len().saturating_sub(1) * text::width(&dot)
    };
    while cols(&pieces) + left_cols + 2 > room
        && let Some(min) = pieces.iter().map(|piece| piece.rank).min()
    {
        pieces.retain(|piece| piece.rank != min);
    }
    let keys_room = room.saturating_sub(left_cols + KEYS_GAP + cols(&pieces) + KEYS_GAP);
    if lines.len() == 1 && ctx.state.flash.is_none() && ctx.pending.is_none() {
        let line = keys(ctx, keys_room);
        let x = area.x + 1 + u16::try_from(left_cols + KEYS_GAP).unwrap_or(0);
        buf.put_line(x, area.y, &line, u16::try_from(keys_room).unwrap_or(0));
    }
    let mut x = area.right().saturating_sub(1 + u16::try_from(cols(&pieces)).unwrap_or(0));
    for (index, StatusSegment { line, action, .. }) in pieces.iter().enumerate() {
        if index > 0 {
            x = text::put_text(buf, x, area.y, &dot, area.width, ctx.style(Role::TextDim));
        }
        let width = u16::try_from(line.width()).unwrap_or(0);
        buf.put_line(x, area.y, line, width);
        if let Some(action) = action {
            hits.add(Rect { x, y: area.y, width, height: 1 }, Hit::Act(*action));
        }
        x += width;
    }
}

/// The keys that matter most where the focus is, as many as fit. The help key is at the right; dialogs and the search have
/// hints of their own.
fn keys(ctx: &FrameContext, cols: usize) -> Line<'static> {
    use Action::{
        Browse, CopyItem, EditDraft, NewLine, NextMode, OpenHistory, OpenOutline, OpenPalette, OpenQueue,
        OpenSearch, OpenSessions, Steer, Submit, ToggleFold,
    };
    let session = ctx.session;
    let is_running = session.turn.is_running();
    let (context, wanted): (Context, Vec<(Action, &str)>) = match ctx.keys.context {
        Context::Main if !session.draft.trim().is_empty() => {
            let sends = match session.outbox.edited() {
                Some(_) => "save",
                None if session.draft.starts_with('!') => "run",
                None if is_running => "queue",
                None => "send",
            };
            let can_steer = is_running && obstacle(ctx.state, Steer).is_none();
            let steer = can_steer.then_some((Steer, "send into turn"));
            let rest = [(NewLine, "newline"), (EditDraft, "editor"), (OpenPalette, "commands")];
            (Context::Main, [(Submit, sends)].into_iter().chain(steer).chain(rest).collect())
        }
        Context::Main => {
            let queue = (session.outbox.queue_len() > 0).then_some((OpenQueue, "edit queue"));
            let mode = ctx.mode().filter(|_| !is_running).map(|_| (NextMode, "mode"));
            let history = (!is_running && !session.history.is_empty()).then_some((OpenHistory, "history"));
            let transcript = (!session.transcript.items().is_empty()).then_some((Browse, "browse"));
            let (commands, sessions) = (Some((OpenPalette, "commands")), Some((OpenSessions, "sessions")));
            let all = [queue, commands, transcript, mode, history, sessions];
            (Context::EmptyPrompt, all.into_iter().flatten().collect())
        }
        Context::Browse => {
            let marked = ctx.view.selected.and_then(|id| session.transcript.get(id)).map(|item| &item.body);
            let is_difference =
                matches!(marked, Some(ItemBody::Notice { kind: NoticeKind::HistoryDiffers, .. }));
            let all = [
                (ToggleFold, if is_difference { "agent's version" } else { "expand" }),
                (OpenSearch, "search"),
                (CopyItem, "copy"),
                (OpenOutline, "outline"),
            ];
            (Context::Browse, all.to_vec())
        }
        _ => return Line::default(),
    };
    let hint = |(action, does): &(Action, &str)| ctx.hint(context, *action, does);
    let mut hints: Vec<_> = wanted.iter().filter_map(hint).take(MAX_KEYS).collect();
    loop {
        let line = ctx.hints(&hints, usize::MAX);
        if hints.is_empty() || line.width() <= cols {
            return line;
        }
        hints.pop();
    }
}

/// Number of rows of the status line: more than one for a long notice.
pub(super) fn rows(ctx: &FrameContext, area: Rect) -> u16 {
    // On a low screen, a longer notice would cover the answers of a request.
    let max =
        if ctx.session.requests.is_empty() { NOTICE_ROWS.min(area.height / 4) } else { area.height / 12 };
    let max = max.min(NOTICE_ROWS);
    u16::try_from(notice_lines(ctx, area.width, max).len()).unwrap_or(1).max(1)
}

/// The notice, wrapped to at most this number of rows; empty if there is none.
fn notice_lines(ctx: &FrameContext, width: u16, max: u16) -> Vec<Line<'static>> {
    let Some(notice) = &ctx.state.flash else { return Vec::new() };
    let hint = escape_hint(ctx).map_or(0, |hint| hint.width() + 2);
    let lead = if ctx.session.turn.is_running() { 2 } else { 0 };
    let cols = usize::from(width).saturating_sub(2 + hint + lead).max(8);
    let line = Line::from(ctx.span(Role::Text, text::one_line(notice)));
    let mut lines = text::wrap_line(&line, u16::try_from(cols).unwrap_or(u16::MAX));
    let max = usize::from(max).max(1);
    if lines.len() > max {
        lines.truncate(max);
        if let Some(last) = lines.last_mut() {
            let text: String = last.spans.iter().map(|span| span.content.as_ref()).collect();
            *last = ctx
                .span(
                    Role::Text,
                    text::truncate(&format!("{text} {}", ctx.render.glyphs.ellipsis.repeat(cols)), cols),
                )
                .into();
        }
    }
    if lead > 0 {
        for (index, line) in lines.iter_mut().enumerate() {
            let mark = if index == 0 { ctx.render.spinner() } else { " " };
            line.spans.insert(0, ctx.span(Role::Running, format!("{mark} ")));
        }
    }
    lines
}

/// What Escape stops, while a notice takes the place of the activity.
fn escape_hint(ctx: &FrameContext) -> Option<Line<'static>> {
    let does = match &ctx.session.turn {
        _ if !ctx.session.requests.is_empty() => return None,
        Turn::Running { .. } => "stop",
        Turn::Cancelling { is_overdue: true, .. } => "options",
        _ if is_signing_in(ctx) => "cancel",
        _ => return None,
    };
    let key = ctx.key(Context::Main, Action::Escape)?;
    Some(Line::from(vec![ctx.span(Role::KeyHint, key), ctx.span(Role::TextDim, format!(" {does}"))]))
}

/// Whether the agent has sent nothing for so long in its turn that the line says so.
pub(super) fn is_quiet(ctx: &FrameContext) -> bool {
    let Turn::Running { last_news, .. } = &ctx.session.turn else { return false };
    ctx.render.now.saturating_duration_since(*last_news).as_secs() >= QUIET_SECONDS
}

fn state(ctx: &FrameContext, width: u16) -> Line<'static> {
    let glyphs = ctx.render.glyphs;
    let say = |mark: &str, role: Role, text: String| {
        Line::from(vec![ctx.span(role, mark.to_owned()), ctx.span(Role::Status, format!(" {text}"))])
    };
    let busy = |text: String| say(ctx.render.spinner(), Role::Running, text);
    let hinted = |mut line: Line<'static>, context: Context, action: Action, does: &str| {
        let hint = ctx.key(context, action);
        let fits =
            |key: &String| line.width() + text::width(key) + text::width(does) + 6 <= usize::from(width);
        if let Some(key) = hint.filter(fits) {
            line.push_span(ctx.span(Role::TextDim, format!(" {} ", glyphs.dot)));
            line.push_span(ctx.span(Role::KeyHint, key));
            line.push_span(ctx.span(Role::TextDim, format!(" {does}")));
        }
        line
    };
    let is_narrow = width < 60;
    let agent = ctx.agent();
    if ctx.state.is_quitting {
        return busy("stopping agents…".to_owned());
    }
    if !ctx.session.requests.is_empty() {
        return say(glyphs.warn, Role::Warning, format!("{agent}: answer required"));
    }
    if let Some((since, is_turn)) = reconnecting_since(ctx) {
        let line = busy(format!("reconnecting to {agent} {}", ctx.since(since)));
        let line = hinted(line, Context::Main, Action::RestartAgent, "retry now");
        return if is_turn { hinted(line, Context::Main, Action::Escape, "stop") } else { line };
    }
    if let Some((id, view)) = ctx.session.command_to_stop() {
        let command = text::one_line(view.command.as_deref().unwrap_or_default());
        let command = text::truncate(&command, usize::from(width / 3).max(8));
        let line = busy(format!("running {command} {} {}", glyphs.dot, ctx.since(view.began)));
        // Escape belongs to the command while keys are typed into it.
        if ctx.session.typing() == Some(id) {
            return line;
        }
        let line = hinted(line, Context::Main, Action::Escape, "stop");
        return hinted(line, Context::Main, Action::TypeIntoTerminal, "type into it");
    }
    match &ctx.session.turn {
        Turn::Idle => {}
        Turn::Running { .. } if ctx.session.budget.paused.is_some() => {
            let line = say(glyphs.warn, Role::Warning, "paused by a limit".to_owned());
            let line = hinted(line, Context::Main, Action::Submit, "decide");
            return hinted(line, Context::Main, Action::Escape, "stop");
        }
        Turn::Running { since, last_news } => {
            let mut activity = format!("working {}", ctx.worked(*since));
            if is_quiet(ctx) && !is_narrow {
                let quiet = format!("no activity for {}", ctx.since(*last_news));
                activity = if width < METER_COLS { quiet } else { format!("{activity}, {quiet}") };
            }
            return hinted(busy(activity), Context::Main, Action::Escape, "stop");
        }
        Turn::Cancelling { cancelled_at, is_overdue: true, .. } => {
            let text = if is_narrow {
                format!("no response for {}", ctx.since(*cancelled_at))
            } else {
                format!("{agent} has not responded to cancel for {}", ctx.since(*cancelled_at))
            };
            return hinted(say(glyphs.warn, Role::Warning, text), Context::Main, Action::Escape, "options");
        }
        Turn::Cancelling { cancelled_at, .. } => {
            return busy(format!("cancelling {}", ctx.since(*cancelled_at)));
        }
    }
    if let Some(what) = ctx.session.prompt_waits_for() {
        return busy(format!("waiting for {agent} to confirm {what}"));
    }
    match &ctx.session.phase {
        SessionPhase::NoAgent => {
            let line = Line::from(ctx.span(Role::Status, "no agent"));
            hinted(line, Context::Main, Action::OpenAgents, "select agent")
        }
        SessionPhase::Starting { since } | SessionPhase::Opening { since, .. } if ctx.is_slow(*since) => {
            let what = match &ctx.session.phase {
                SessionPhase::Starting { .. } => format!("no response from {agent} for"),
                SessionPhase::Opening { is_replay: true, .. } => "loading history".to_owned(),
                _ => "opening session".to_owned(),
            };
            hinted(
                busy(format!("{what} {}", ctx.since(*since))),
                Context::Main,
                Action::RestartAgent,
                "restart",
            )
        }
        SessionPhase::Starting { since } => busy(format!("starting {agent} {}", ctx.since(*since))),
        SessionPhase::Opening { since, is_replay: true } => {
            busy(format!("loading history {}", ctx.since(*since)))
        }
        SessionPhase::Opening { since, .. } => busy(format!("opening session {}", ctx.since(*since))),
        SessionPhase::NeedsSignIn if is_signing_in(ctx) => {
            let line = say(glyphs.warn, Role::Warning, format!("signing in to {agent}"));
            hinted(line, Context::Main, Action::Escape, "cancel")
        }
        SessionPhase::NeedsSignIn => {
            let line = say(glyphs.warn, Role::Warning, format!("{agent} requires sign-in"));
            hinted(line, Context::Main, Action::Submit, "sign in")
        }
        SessionPhase::Failed(_) => {
            let line = say(glyphs.cross, Role::Error, "session could not be opened".to_owned());
            hinted(line, Context::Main, Action::RestartAgent, "retry")
        }
        SessionPhase::Ended { .. } if ctx.session.read_only.is_some() => {
            let line = Line::from(ctx.span(Role::Status, "read-only, no agent running"));
            hinted(line, Context::Main, Action::RestartAgent, "start agent")
        }
        SessionPhase::Ended { .. } if never_started(ctx) => {
            let line = say(glyphs.cross, Role::Error, format!("{agent} could not be started"));
            hinted(line, Context::Main, Action::OpenAgents, "select another")
        }
        SessionPhase::Ended { .. } if ctx.session.is_archived => {
            let line = Line::from(ctx.span(Role::Status, "archived"));
            hinted(line, Context::Main, Action::RestartAgent, "unarchive")
        }
        SessionPhase::Ended { .. } if ctx.is_reached() => {
            let text = if is_narrow { "disconnected".to_owned() } else { format!("{agent} disconnected") };
            hinted(say(glyphs.cross, Role::Error, text), Context::Main, Action::RestartAgent, "reconnect")
        }
        SessionPhase::Ended { .. } => {
            let line = say(glyphs.cross, Role::Error, format!("{agent} exited"));
            hinted(line, Context::Main, Action::RestartAgent, "restart")
        }
        SessionPhase::Ready if ctx.session.outbox.failed().is_some() => {
            let is_risky = ctx.session.outbox.failed().is_some_and(Prompt::may_have_arrived);
            let (text, does) = match width {
                // The end of its turn shows it too.
                ..60 => ("prompt failed", "resend"),
                RISK_COLS.. if is_risky => ("last prompt failed", "resend (may run twice)"),
                _ => ("last prompt failed", "resend"),
            };
            hinted(say(glyphs.warn, Role::Warning, text.to_owned()), Context::Main, Action::SendAgain, does)
        }
        SessionPhase::Ready
            if ctx.session.resume.has_lost_history() && ctx.session.resume.handover().is_none() =>
        {
            let line = Line::from(ctx.span(Role::Status, "the agent has not received this history"));
            hinted(line, Context::Main, Action::HandOver, "send it")
        }
        SessionPhase::Ready if ctx.session.has_background_news => {
            Line::from(ctx.span(Role::Status, format!("ready {} background activity", glyphs.dot)))
        }
        SessionPhase::Ready => Line::from(ctx.span(Role::Status, "ready")),
    }
}

/// Since when parlor has been trying to restore the connection, and whether a turn waits for it.
fn reconnecting_since(ctx: &FrameContext) -> Option<(Instant, bool)> {
    let conn = ctx.state.conn_of(ctx.session.key)?;
    let is_starting = matches!(ctx.session.phase, SessionPhase::Starting { .. }) && conn.spec.is_elsewhere();
    let since = conn.interrupted.or_else(|| conn.crashes.first().copied().filter(|_| is_starting))?;
    Some((since, ctx.session.turn.is_running()))
}

/// The segments on the right, from left to right.
fn pieces(ctx: &FrameContext, width: u16) -> Vec<StatusSegment> {
    let session = ctx.session;
    let mut pieces: Vec<StatusSegment> = Vec::new();
    if let Some(line) = unsaved(ctx, width) {
        pieces.push(StatusSegment { line, action: None, rank: 7 });
    }
    // Protocol warnings are relevant for testing an agent; otherwise the connection details and the log count them.
    let is_strict = ctx.state.conn_of(session.key).is_some_and(|conn| conn.spec.wire.is_strict);
    if let Some(warnings) = ctx.protocol_warnings().filter(|_| is_strict) {
        let line = ctx.span(Role::Warning, format!("{} {warnings}", ctx.render.glyphs.warn));
        pieces.push(StatusSegment { line: line.into(), action: Some(Action::OpenLog), rank: 4 });
    }
    if ctx.keys.is_mouse_off {
        let key =
            ctx.key(Context::Main, Action::ToggleMouse).map_or(String::new(), |key| format!(" ({key})"));
        let line = ctx.span(Role::Status, format!("mouse capture off{key}"));
        pieces.push(StatusSegment { line: line.into(), action: None, rank: 4 });
    }
    pieces.extend(held(ctx));
    pieces.extend(unreported(ctx));
    pieces.extend(after(ctx));
    if let Some(key) = ctx.key(Context::Main, Action::OpenHelp) {
        let line = Line::from(vec![ctx.span(Role::KeyHint, key), ctx.span(Role::TextDim, " help")]);
        // During a turn, warnings are more useful than the help key.
        let rank = if session.turn.is_running() { 0 } else { 5 };
        pieces.push(StatusSegment { line, action: Some(Action::OpenHelp), rank });
    }
    pieces
}

/// The warning that events cannot be saved, with the reason.
fn unsaved(ctx: &FrameContext, width: u16) -> Option<Line<'static>> {
    let why = &ctx.state.unsaved.as_ref()?.why;
    let room = usize::from(width).saturating_sub(ACTIVITY_COLS);
    let why = if width < WHY_COLS { String::new() } else { format!(": {}", text::one_line(why)) };
    let why = text::truncate(&why, room);
    Some(ctx.span(Role::Warning, format!("{} not saved{why}", ctx.render.glyphs.warn)).into())
}

/// The number of changed files that the agent did not report, until a review shows them.
fn unreported(ctx: &FrameContext) -> Option<StatusSegment> {
    let count = ctx.session.undo.unseen.len();
    let text = format!("{} {count} unreported", ctx.render.glyphs.bullet);
    (count > 0).then(|| with_key(ctx, ctx.span(Role::Accent, text), Action::ReviewChanges))
}

/// The number of files with writes that are held.
fn held(ctx: &FrameContext) -> Option<StatusSegment> {
    let root = lookup::root_of(ctx.state, ctx.session.key);
    let count = ctx.state.sessions.get(&root)?.held.files.len();
    let text = format!("{} {count} held", ctx.render.glyphs.warn);
    (count > 0).then(|| with_key(ctx, ctx.span(Role::Warning, text), Action::ReviewHeld))
}

/// A segment with the key of what a click on it does.
fn with_key(ctx: &FrameContext, text: Span<'static>, action: Action) -> StatusSegment {
    let mut line = Line::from(text);
    if let Some(key) = ctx.key(Context::Main, action) {
        line.push_span(ctx.span(Role::KeyHint, format!(" {key}")));
    }
    StatusSegment { line, action: Some(action), rank: 6 }
}

/// The number of open requests in other tabs, otherwise of unread ones.
fn after(ctx: &FrameContext) -> Option<StatusSegment> {
    let (mark, role, text) = match inbox::count_after(ctx.state) {
        (0, 0) => return None,
        (0, 1) => (ctx.render.glyphs.bullet, Role::Accent, "1 unread".to_owned()),
        (0, count) => (ctx.render.glyphs.bullet, Role::Accent, format!("{count} unread")),
        (1, _) => (ctx.render.glyphs.warn, Role::Warning, "1 pending".to_owned()),
        (count, _) => (ctx.render.glyphs.warn, Role::Warning, format!("{count} pending")),
    };
    Some(with_key(ctx, ctx.span(role, format!("{mark} {text}")), Action::OpenAttention))
}

/// Formats `ctx ■■□□□□□□ 34k of 200k`, or `ctx 17%` on narrow screens; without a known size, only the used part.
pub(super) fn context(ctx: &FrameContext, used: u64, size: u64, width: u16) -> Line<'static> {
    let mut line = Line::from(ctx.span(Role::Status, "ctx "));
    if size == 0 {
        line.push_span(ctx.span(Role::Status, short_count(used)));
        return line;
    }
    let is_nearly_full = used.saturating_mul(10) >= size.saturating_mul(9);
    let role = if is_nearly_full { Role::Warning } else { Role::Status };
    if width < PERCENT_COLS {
        line.push_span(ctx.span(role, format!("{}%", used.saturating_mul(100).div_ceil(size))));
        return line;
    }
    if width >= METER_COLS {
        let full = used.saturating_mul(METER_CELLS).div_ceil(size).min(METER_CELLS);
        let cells = |mark: &str, count: u64| mark.repeat(usize::try_from(count).unwrap_or(0));
        line.push_span(ctx.span(role, cells(ctx.marks.meter_full, full)));
        line.push_span(ctx.span(Role::Rule, cells(ctx.marks.meter_empty, METER_CELLS - full)));
        line.push_span(Span::raw(" "));
    }
    line.push_span(ctx.span(role, format!("{} of {}", short_count(used), short_count(size))));
    line
}

/// Whether the agent's program could not be started, so that a restart will not help.
pub(super) fn never_started(ctx: &FrameContext) -> bool {
    let phase = ctx.state.conn_of(ctx.session.key).map(|conn| &conn.phase);
    matches!(phase, Some(ConnPhase::Closed(CloseReason::NotStarted { .. })))
}

/// Whether a sign-in is in progress, possibly in a browser.
fn is_signing_in(ctx: &FrameContext) -> bool {
    ctx.session.conn.is_some_and(|conn| operations::running_sign_in(ctx.state, conn).is_some())
}

#[cfg(test)]
mod tests;
