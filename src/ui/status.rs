//! The status line: the agent's activity or a notice on the left, then the keys that matter most where the focus is; context,
//! cost, warnings and the help key on the right.
//!
//! On narrow screens, these keys are removed from the right, then the cost is removed first, then context and warnings; during a turn, the help key before them. A
//! long notice has several rows.
//!
//! Invariants: the spinner is only animated while something is running; nothing else is animated.

use ratatui::layout::Rect;

use crate::app::dialogs::Focus;
use crate::app::lifecycle::operations;
use crate::app::state::inbox;
use crate::app::{ConnPhase, MouseOwner, SessionPhase, Turn};
use crate::config::keymap::Context;
use crate::model::{Action, CloseReason, Cost};
use crate::ui::canvas::Canvas;
use crate::ui::text::{Line, Span};

use super::frame_context::{FrameContext, line_width, short_count};
use super::modals::key_focus;
use super::text;
use super::theme::Role;
use super::view_state::{Hit, HitMap};

/// Width of the context meter, in cells.
const METER_CELLS: u64 = 8;

/// Minimum width for the context meter.
const METER_COLS: u16 = 96;

/// Minimum width for the reason why nothing can be saved.
const WHY_COLS: u16 = 72;

/// Minimum width for the warning about resending a prompt.
const RISK_COLS: u16 = 80;

/// Maximum number of rows of a notice.
const NOTICE_ROWS: u16 = 3;

/// Columns that the reason why nothing can be saved leaves to the activity.
const ACTIVITY_COLS: usize = 40;

/// Maximum number of keys beside the help key.
const MOST_KEYS: usize = 4;

/// Columns around the keys.
const KEYS_GAP: usize = 3;

/// Seconds without output in a turn before it is shown.
const QUIET_SECONDS: u64 = 30;

/// A segment on the right.
struct StatusSegment {
    line: Line<'static>,
    /// The action of a click.
    action: Option<Action>,
    /// The lowest rank is removed first.
    rank: u8,
}

/// Draws the status line.
pub(super) fn draw(scene: &FrameContext, area: Rect, buf: &mut Canvas, hits: &mut HitMap) {
    let room = usize::from(area.width).saturating_sub(2);
    // Reserves space for the warning that nothing is saved.
    let reserved = unsaved(scene, area.width).map_or(0, |line| line_width(&line) + 2);
    let state = state(scene, area.width.saturating_sub(u16::try_from(reserved).unwrap_or(0)));
    let mut pieces = pieces(scene, area.width);
    let mut lines = match scene.pending {
        Some(keys) => {
            let mut line = Line::from(scene.span(Role::KeyHint, format!("{keys} ")));
            let hints = [("?", "keys"), ("esc", "cancel")];
            let hints = hints.map(|(key, does)| (scene.key_name(key), does.to_owned()));
            line.spans.extend(scene.hints(&hints, room.saturating_sub(line_width(&line))).spans);
            vec![line]
        }
        None => notice_lines(scene, area.width, area.height),
    };
    if lines.is_empty() {
        lines.push(state);
    } else if let Some(hint) = escape_hint(scene).filter(|_| scene.pending.is_none()) {
        // The notice hides the activity, but not the key that stops it.
        pieces.push(StatusSegment { line: hint, action: Some(Action::Escape), rank: 8 });
    }
    for (y, line) in (area.y..area.bottom()).zip(&lines) {
        buf.put_line(area.x + 1, y, line, u16::try_from(room).unwrap_or(u16::MAX));
    }
    let left_cols = lines.last().map_or(0, line_width).min(room);
    let area = Rect { y: area.bottom().saturating_sub(1), ..area };

    let dot = format!(" {} ", scene.look.glyphs.dot);
    let cols = |pieces: &[StatusSegment]| {
        let own: usize = pieces.iter().map(|piece| line_width(&piece.line)).sum();
        own + pieces.len().saturating_sub(1) * text::width(&dot)
    };
    while cols(&pieces) + left_cols + 2 > room
        && let Some(least) = pieces.iter().map(|piece| piece.rank).min()
    {
        pieces.retain(|piece| piece.rank != least);
    }
    let keys_room = room.saturating_sub(left_cols + KEYS_GAP + cols(&pieces) + KEYS_GAP);
    if lines.len() == 1 && scene.state.flash.is_none() && scene.pending.is_none() {
        let line = keys(scene, keys_room);
        let x = area.x + 1 + u16::try_from(left_cols + KEYS_GAP).unwrap_or(0);
        buf.put_line(x, area.y, &line, u16::try_from(keys_room).unwrap_or(0));
    }
    let mut x = area.right().saturating_sub(1 + u16::try_from(cols(&pieces)).unwrap_or(0));
    for (index, StatusSegment { line, action, .. }) in pieces.iter().enumerate() {
        if index > 0 {
            x = text::put_text(buf, x, area.y, &dot, area.width, scene.style(Role::TextDim));
        }
        let width = u16::try_from(line_width(line)).unwrap_or(0);
        buf.put_line(x, area.y, line, width);
        if let Some(action) = action {
            hits.add(Rect { x, y: area.y, width, height: 1 }, Hit::Act(*action));
        }
        x += width;
    }
}

/// The keys that matter most where the focus is, as many as fit. The help key is at the right; dialogs and the search have
/// hints of their own.
fn keys(scene: &FrameContext, cols: usize) -> Line<'static> {
    use Action::{
        Browse, CopyItem, EditDraft, NewLine, NextMode, OpenHistory, OpenOutline, OpenPalette, OpenQueue,
        OpenSearch, Submit, ToggleFold,
    };
    let session = scene.session;
    let is_running = session.turn.is_running();
    let (context, wanted): (Context, Vec<(Action, &str)>) = match key_focus(scene.state, scene.look.now) {
        Focus::Main if !session.draft.trim().is_empty() => {
            let sends = if is_running { "queue" } else { "send" };
            let rest = [(NewLine, "newline"), (EditDraft, "editor"), (OpenPalette, "commands")];
            (Context::Main, [(Submit, sends)].into_iter().chain(rest).collect())
        }
        Focus::Main => {
            let queue = (!session.queue.is_empty()).then_some((OpenQueue, "edit queue"));
            let mode = scene.mode().filter(|_| !is_running).map(|_| (NextMode, "mode"));
            let history = (!is_running && !session.history.is_empty()).then_some((OpenHistory, "history"));
            let transcript = (!session.transcript.items().is_empty()).then_some((Browse, "browse"));
            let all = [queue, Some((OpenPalette, "commands")), transcript, mode, history];
            (Context::EmptyPrompt, all.into_iter().flatten().collect())
        }
        Focus::Browse => {
            let all = [
                (ToggleFold, "expand"),
                (OpenSearch, "search"),
                (CopyItem, "copy"),
                (OpenOutline, "outline"),
            ];
            (Context::Browse, all.to_vec())
        }
        _ => return Line::default(),
    };
    let hint = |(action, does): &(Action, &str)| scene.hint(context, *action, does);
    let mut hints: Vec<_> = wanted.iter().filter_map(hint).take(MOST_KEYS).collect();
    loop {
        let line = scene.hints(&hints, usize::MAX);
        if hints.is_empty() || line_width(&line) <= cols {
            return line;
        }
        hints.pop();
    }
}

/// Number of rows of the status line: more than one for a long notice.
pub(super) fn rows(scene: &FrameContext, area: Rect) -> u16 {
    let most = NOTICE_ROWS.min(area.height / 4);
    u16::try_from(notice_lines(scene, area.width, most).len()).unwrap_or(1).max(1)
}

/// The notice, wrapped to at most this number of rows; empty if there is none.
fn notice_lines(scene: &FrameContext, width: u16, most: u16) -> Vec<Line<'static>> {
    let Some(notice) = &scene.state.flash else { return Vec::new() };
    let hint = escape_hint(scene).map_or(0, |hint| line_width(&hint) + 2);
    let lead = if scene.session.turn.is_running() { 2 } else { 0 };
    let cols = usize::from(width).saturating_sub(2 + hint + lead).max(8);
    let line = Line::from(scene.span(Role::Text, text::one_line(notice)));
    let mut lines = text::wrap_line(&line, u16::try_from(cols).unwrap_or(u16::MAX));
    let most = usize::from(most).max(1);
    if lines.len() > most {
        lines.truncate(most);
        if let Some(last) = lines.last_mut() {
            let text: String = last.spans.iter().map(|span| span.content.as_ref()).collect();
            *last = scene
                .span(
                    Role::Text,
                    text::truncate(&format!("{text} {}", scene.look.glyphs.ellipsis.repeat(cols)), cols),
                )
                .into();
        }
    }
    if lead > 0 {
        for (index, line) in lines.iter_mut().enumerate() {
            let mark = if index == 0 { scene.look.spinner() } else { " " };
            line.spans.insert(0, scene.span(Role::Running, format!("{mark} ")));
        }
    }
    lines
}

/// What Escape stops, while a notice takes the place of the activity.
fn escape_hint(scene: &FrameContext) -> Option<Line<'static>> {
    let does = match &scene.session.turn {
        _ if !scene.session.asks.is_empty() => return None,
        Turn::Running { .. } => "stop",
        Turn::Cancelling { is_overdue: true, .. } => "options",
        _ if is_signing_in(scene) => "cancel",
        _ => return None,
    };
    let key = scene.key(Context::Main, Action::Escape)?;
    Some(Line::from(vec![scene.span(Role::KeyHint, key), scene.span(Role::TextDim, format!(" {does}"))]))
}

/// Whether the agent has sent nothing for so long in its turn that the line says so.
pub(super) fn is_quiet(scene: &FrameContext) -> bool {
    let Turn::Running { last_news, .. } = &scene.session.turn else { return false };
    scene.look.now.saturating_duration_since(*last_news).as_secs() >= QUIET_SECONDS
}

/// The current activity.
fn state(scene: &FrameContext, width: u16) -> Line<'static> {
    let glyphs = scene.look.glyphs;
    let say = |mark: &str, role: Role, text: String| {
        Line::from(vec![scene.span(role, mark.to_owned()), scene.span(Role::Status, format!(" {text}"))])
    };
    let busy = |text: String| say(scene.look.spinner(), Role::Running, text);
    let hinted = |mut line: Line<'static>, context: Context, action: Action, does: &str| {
        let hint = scene.key(context, action);
        let fits =
            |key: &String| line_width(&line) + text::width(key) + text::width(does) + 6 <= usize::from(width);
        if let Some(key) = hint.filter(fits) {
            line.push_span(scene.span(Role::TextDim, format!(" {} ", glyphs.dot)));
            line.push_span(scene.span(Role::KeyHint, key));
            line.push_span(scene.span(Role::TextDim, format!(" {does}")));
        }
        line
    };
    let is_narrow = width < 60;
    let agent = scene.agent();
    if scene.state.is_quitting {
        return busy("stopping agents…".to_owned());
    }
    if !scene.session.asks.is_empty() {
        return say(glyphs.warn, Role::Warning, format!("{agent}: answer required"));
    }
    if let Some((id, view)) = scene.session.command_to_stop() {
        let command = text::one_line(view.command.as_deref().unwrap_or_default());
        let command = text::truncate(&command, usize::from(width / 3).max(8));
        let line = busy(format!("running {command} {}", scene.since(view.began)));
        // Escape belongs to the command while keys are typed into it.
        if scene.session.typing() == Some(id) {
            return line;
        }
        let line = hinted(line, Context::Main, Action::Escape, "stop");
        return hinted(line, Context::Main, Action::TypeIntoTerminal, "type into it");
    }
    match &scene.session.turn {
        Turn::Idle => {}
        Turn::Running { since, last_news } => {
            let mut words = format!("working {}", scene.since(*since));
            if is_quiet(scene) && !is_narrow {
                let quiet = format!("no activity for {}", scene.since(*last_news));
                words = if width < METER_COLS { quiet } else { format!("{words}, {quiet}") };
            }
            return hinted(busy(words), Context::Main, Action::Escape, "stop");
        }
        Turn::Cancelling { cancelled_at, is_overdue: true, .. } => {
            let text = if is_narrow {
                format!("no response for {}", scene.since(*cancelled_at))
            } else {
                format!("{agent} has not responded to cancel for {}", scene.since(*cancelled_at))
            };
            return hinted(say(glyphs.warn, Role::Warning, text), Context::Main, Action::Escape, "options");
        }
        Turn::Cancelling { cancelled_at, .. } => {
            return busy(format!("cancelling {}", scene.since(*cancelled_at)));
        }
    }
    if let Some(what) = scene.session.prompt_waits_for() {
        return busy(format!("waiting for {agent} to confirm {what}"));
    }
    match &scene.session.phase {
        SessionPhase::NoAgent => {
            let line = Line::from(scene.span(Role::Status, "no agent"));
            hinted(line, Context::Main, Action::OpenAgents, "select agent")
        }
        SessionPhase::Starting { since } | SessionPhase::Opening { since, .. } if scene.is_slow(*since) => {
            let what = match &scene.session.phase {
                SessionPhase::Starting { .. } => format!("no response from {agent} for"),
                SessionPhase::Opening { is_replay: true, .. } => "loading history".to_owned(),
                _ => "opening session".to_owned(),
            };
            hinted(
                busy(format!("{what} {}", scene.since(*since))),
                Context::Main,
                Action::RestartAgent,
                "restart",
            )
        }
        SessionPhase::Starting { since } => busy(format!("starting {agent} {}", scene.since(*since))),
        SessionPhase::Opening { since, is_replay: true } => {
            busy(format!("loading history {}", scene.since(*since)))
        }
        SessionPhase::Opening { since, .. } => busy(format!("opening session {}", scene.since(*since))),
        SessionPhase::NeedsSignIn if is_signing_in(scene) => {
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
        SessionPhase::Ended { .. } if scene.session.read_only.is_some() => {
            let line = Line::from(scene.span(Role::Status, "read-only, no agent running"));
            hinted(line, Context::Main, Action::RestartAgent, "start agent")
        }
        SessionPhase::Ended { .. } if never_started(scene) => {
            let line = say(glyphs.cross, Role::Error, format!("{agent} could not be started"));
            hinted(line, Context::Main, Action::OpenAgents, "select another")
        }
        SessionPhase::Ended { .. } if scene.session.is_archived => {
            let line = Line::from(scene.span(Role::Status, "archived"));
            hinted(line, Context::Main, Action::RestartAgent, "unarchive")
        }
        SessionPhase::Ended { .. } if scene.is_reached() => {
            let text = if is_narrow { "disconnected".to_owned() } else { format!("{agent} disconnected") };
            hinted(say(glyphs.cross, Role::Error, text), Context::Main, Action::RestartAgent, "reconnect")
        }
        SessionPhase::Ended { .. } => {
            let line = say(glyphs.cross, Role::Error, format!("{agent} exited"));
            hinted(line, Context::Main, Action::RestartAgent, "restart")
        }
        SessionPhase::Ready if scene.session.failed_prompt.is_some() => {
            let is_risky = scene.session.failed_prompt.as_ref().is_some_and(|prompt| prompt.may_have_arrived);
            let (text, does) = match width {
                // The end of its turn shows it too.
                ..60 => ("prompt failed", "resend"),
                RISK_COLS.. if is_risky => ("last prompt failed", "resend (may run twice)"),
                _ => ("last prompt failed", "resend"),
            };
            hinted(say(glyphs.warn, Role::Warning, text.to_owned()), Context::Main, Action::SendAgain, does)
        }
        SessionPhase::Ready
            if scene.session.resume.has_lost_history() && scene.session.resume.handover().is_none() =>
        {
            let line = Line::from(scene.span(Role::Status, "the agent does not have this history"));
            hinted(line, Context::Main, Action::HandOver, "send it")
        }
        SessionPhase::Ready if scene.session.has_background_news => {
            Line::from(scene.span(Role::Status, format!("ready {} background activity", glyphs.dot)))
        }
        SessionPhase::Ready => Line::from(scene.span(Role::Status, "ready")),
    }
}

/// The segments on the right, from left to right.
fn pieces(scene: &FrameContext, width: u16) -> Vec<StatusSegment> {
    let session = scene.session;
    let mut pieces: Vec<StatusSegment> = Vec::new();
    if let Some(line) = unsaved(scene, width) {
        pieces.push(StatusSegment { line, action: None, rank: 7 });
    }
    // Protocol warnings are relevant for testing an agent; otherwise the connection details and the log count them.
    let is_strict = scene.state.conn_of(session.key).is_some_and(|conn| conn.spec.wire.is_strict);
    if let Some(words) = scene.protocol_warnings().filter(|_| is_strict) {
        let line = scene.span(Role::Warning, format!("{} {words}", scene.look.glyphs.warn));
        pieces.push(StatusSegment { line: line.into(), action: Some(Action::OpenLog), rank: 4 });
    }
    if scene.state.mouse == MouseOwner::Terminal && scene.state.setup.mouse == MouseOwner::Parlor {
        let key =
            scene.key(Context::Main, Action::ToggleMouse).map_or(String::new(), |key| format!(" ({key})"));
        let line = scene.span(Role::Status, format!("mouse capture off{key}"));
        pieces.push(StatusSegment { line: line.into(), action: None, rank: 4 });
    }
    if let Some(piece) = behind(scene) {
        pieces.push(piece);
    }
    if let Some(usage) = &session.usage {
        let line = context(scene, usage.used_tokens, usage.size_tokens, width);
        pieces.push(StatusSegment { line, action: None, rank: 2 });
        if let Some(cost) = &usage.cost {
            let line = scene.span(Role::Status, cost_words(cost));
            pieces.push(StatusSegment { line: line.into(), action: None, rank: 1 });
        }
    }
    if let Some(key) = scene.key(Context::Main, Action::OpenHelp) {
        let line = Line::from(vec![scene.span(Role::KeyHint, key), scene.span(Role::TextDim, " help")]);
        // During a turn, cost and context are more useful than the help key.
        let rank = if session.turn.is_running() { 0 } else { 5 };
        pieces.push(StatusSegment { line, action: Some(Action::OpenHelp), rank });
    }
    pieces
}

/// The warning that events cannot be saved, with the reason.
fn unsaved(scene: &FrameContext, width: u16) -> Option<Line<'static>> {
    let why = scene.state.unsaved.as_ref()?;
    let room = usize::from(width).saturating_sub(ACTIVITY_COLS);
    let why = if width < WHY_COLS { String::new() } else { format!(": {}", text::one_line(why)) };
    let why = text::truncate(&why, room);
    Some(scene.span(Role::Warning, format!("{} not saved{why}", scene.look.glyphs.warn)).into())
}

/// The number of open requests in other tabs, otherwise of unread ones.
fn behind(scene: &FrameContext) -> Option<StatusSegment> {
    let (mark, role, text) = match inbox::count_behind(scene.state) {
        (0, 0) => return None,
        (0, 1) => (scene.look.glyphs.bullet, Role::Accent, "1 unread".to_owned()),
        (0, count) => (scene.look.glyphs.bullet, Role::Accent, format!("{count} unread")),
        (1, _) => (scene.look.glyphs.warn, Role::Warning, "1 pending".to_owned()),
        (count, _) => (scene.look.glyphs.warn, Role::Warning, format!("{count} pending")),
    };
    let key = scene.key(Context::Main, Action::OpenAttention);
    let mut line = Line::from(scene.span(role, format!("{mark} {text}")));
    if let Some(key) = key {
        line.push_span(scene.span(Role::KeyHint, format!(" {key}")));
    }
    Some(StatusSegment { line, action: Some(Action::OpenAttention), rank: 6 })
}

/// Formats `ctx ■■□□□□□□ 34k of 200k`; without a known size, only the used part.
pub(super) fn context(scene: &FrameContext, used: u64, size: u64, width: u16) -> Line<'static> {
    let mut line = Line::from(scene.span(Role::Status, "ctx "));
    if size == 0 {
        line.push_span(scene.span(Role::Status, short_count(used)));
        return line;
    }
    let is_nearly_full = used.saturating_mul(10) >= size.saturating_mul(9);
    let role = if is_nearly_full { Role::Warning } else { Role::Status };
    if width >= METER_COLS {
        let full = used.saturating_mul(METER_CELLS).div_ceil(size).min(METER_CELLS);
        let cells = |mark: &str, count: u64| mark.repeat(usize::try_from(count).unwrap_or(0));
        line.push_span(scene.span(role, cells(scene.marks.meter_full, full)));
        line.push_span(scene.span(Role::Rule, cells(scene.marks.meter_empty, METER_CELLS - full)));
        line.push_span(Span::raw(" "));
    }
    line.push_span(scene.span(role, format!("{} of {}", short_count(used), short_count(size))));
    line
}

/// Formats an amount: `$0.21`.
pub(super) fn cost_words(cost: &Cost) -> String {
    let sign = match cost.currency.as_str() {
        "USD" => "$",
        "EUR" => "€",
        "GBP" => "£",
        unit => return format!("{:.2} {}", cost.amount, text::one_line(unit)),
    };
    format!("{sign}{:.2}", cost.amount)
}

/// Whether the agent's program could not be started, so that a restart will not help.
pub(super) fn never_started(scene: &FrameContext) -> bool {
    let phase = scene.state.conn_of(scene.session.key).map(|conn| &conn.phase);
    matches!(phase, Some(ConnPhase::Closed(CloseReason::NotStarted { .. })))
}

/// Whether a sign-in is in progress, possibly in a browser.
fn is_signing_in(scene: &FrameContext) -> bool {
    scene.session.conn.is_some_and(|conn| operations::running_sign_in(scene.state, conn).is_some())
}

#[cfg(test)]
mod tests;
