//! The empty session in place of the transcript: the next steps, or an error. Replaced by the transcript as
//! soon as there is an item.

use ratatui::layout::Rect;

use crate::config::keymap::Context;
use crate::core::SessionPhase;
use crate::core::lifecycle::operations;
use crate::model::{Action, ArchiveRow, CallError};
use crate::ui::canvas::Canvas;
use crate::ui::text::{Line, Span};

use super::frame_context::FrameContext;
use super::text;
use super::theme::Role;

/// Maximum width of the text, as for prose.
const MEASURE: u16 = 72;

/// Maximum width of the command names.
const NAMES_COLS: u16 = 36;

/// Space for the key next to an offer.
const KEY_COLS: usize = 16;

/// Minimum width of an offered session's name next to its details.
const MIN_NAME_COLS: usize = 12;

pub(super) fn draw(ctx: &FrameContext, area: Rect, buf: &mut Canvas) {
    let cols = area.width.saturating_sub(4).min(MEASURE);
    let lines = lines(ctx, cols);
    let height = u16::try_from(lines.len()).unwrap_or(u16::MAX);
    // Slightly above the middle.
    let top = area.height.saturating_sub(height) * 2 / 5;
    for (y, line) in (area.y + top..area.bottom()).zip(&lines) {
        buf.put_line(area.x + 3, y, line, area.width.saturating_sub(3));
    }
}

fn lines(ctx: &FrameContext, cols: u16) -> Vec<Line<'static>> {
    let agent = ctx.agent();
    let mut lines = Vec::new();
    let mut say = |role: Role, paragraphs: &str| {
        for paragraph in paragraphs.lines() {
            let line = ctx.span(role, text::sanitize(paragraph).into_owned());
            lines.extend(text::wrap_line(&Line::from(line), cols.max(8)));
        }
    };
    let how = match () {
        () if ctx.session.is_archived => "unarchive this session",
        () if ctx.is_reached() => "reconnect",
        () => "restart the agent",
    };
    let again = (Context::Main, Action::RestartAgent, how);
    let log = (Context::Main, Action::OpenLog, "protocol log");
    let agents = (Context::Main, Action::OpenAgents, "select agent");
    let help = (Context::Main, Action::OpenHelp, "key bindings");
    let palette = (Context::Main, Action::OpenPalette, "all commands");
    let ways = match &ctx.session.phase {
        SessionPhase::NoAgent => {
            say(Role::TextStrong, "parlor");
            say(Role::TextDim, "A terminal client for coding agents.");
            vec![agents, palette, help]
        }
        SessionPhase::Starting { since } | SessionPhase::Opening { since, .. } if ctx.is_slow(*since) => {
            say(Role::TextStrong, &format!("{agent} has not responded for {}", ctx.since(*since)));
            say(
                Role::TextDim,
                "The first start can take a while. Your draft is saved. See the protocol log if it does \
                    not respond.",
            );
            vec![log, again, agents]
        }
        SessionPhase::Starting { .. } | SessionPhase::Opening { .. } => {
            say(Role::TextStrong, &format!("{agent} is starting"));
            say(Role::TextDim, "You can type now. The prompt is sent when the agent is ready.");
            vec![(Context::Main, Action::Submit, "send prompt"), log, help]
        }
        SessionPhase::NeedsSignIn => {
            say(Role::TextStrong, &format!("{agent} requires sign-in"));
            if ctx.session.outbox.unsent().is_some() || ctx.session.outbox.queue_len() > 0 {
                say(Role::TextDim, "Your prompt is saved and sent after sign-in.");
            }
            vec![(Context::Main, Action::OpenSignIn, "sign-in methods"), palette, help]
        }
        SessionPhase::Failed(error) => {
            say(Role::Error, &format!("{agent} could not open a session"));
            say(Role::Text, &short_error_text(error));
            vec![again, log, agents]
        }
        SessionPhase::Ended { cause } => {
            let what = match () {
                () if ctx.session.is_archived => "Session archived".to_owned(),
                () if ctx.is_reached() => format!("{agent} disconnected"),
                () => format!("{agent} exited"),
            };
            say(Role::Error, &what);
            say(Role::Text, cause);
            vec![again, log, agents]
        }
        SessionPhase::Ready => {
            say(Role::TextStrong, &format!("{agent} is ready"));
            say(Role::TextDim, "Type a task to begin.");
            vec![(Context::Main, Action::Submit, "send prompt"), palette, help]
        }
    };
    lines.push(Line::default());
    let mut keyed: Vec<(String, String)> = ways
        .into_iter()
        .filter_map(|(context, action, does)| Some((ctx.key(context, action)?, does.to_owned())))
        .collect();
    if let (SessionPhase::Ready, Some(names)) = (&ctx.session.phase, commands(ctx, cols)) {
        keyed.insert(keyed.len().min(1), ("/".to_owned(), names));
    }
    if let Some(row) = operations::last_session(ctx.state)
        && let Some(key) = ctx.key(Context::Main, Action::ContinueLast)
    {
        keyed.insert(0, (key, resume_label(row, cols)));
    }
    let widest = keyed.iter().map(|(key, _)| text::width(key)).max().unwrap_or(0);
    for (key, does) in keyed {
        let pad = " ".repeat(widest - text::width(&key) + 3);
        let line = Line::from(vec![ctx.span(Role::Accent, key), Span::raw(pad), ctx.span(Role::Text, does)]);
        debug_assert!(line.width() < 80, "short enough for any screen");
        lines.push(line);
    }
    lines
}

/// The first commands of the agent that fit, and the number of others.
fn commands(ctx: &FrameContext, cols: u16) -> Option<String> {
    let all = &ctx.session.commands;
    // Reserves space for the keys and the number.
    let room = usize::from(cols.saturating_sub(22).clamp(8, NAMES_COLS));
    let mut names = String::new();
    for (index, command) in all.iter().enumerate() {
        let name = text::one_line(&command.name);
        if index > 0 && text::width(&names) + text::width(&name) + 2 > room {
            return Some(format!("{names} and {} more", all.len() - index));
        }
        if index > 0 {
            names.push_str(", ");
        }
        names.push_str(&text::truncate(&name, room));
    }
    (!names.is_empty()).then_some(names)
}

/// The offer to resume the folder's last session, as far as it fits next to its key.
fn resume_label(row: &ArchiveRow, cols: u16) -> String {
    let name = text::one_line(row.name());
    let cut = if row.was_cut { ", cut" } else { "" };
    let about = format!("({}{cut})", row.when);
    let room = usize::from(cols).saturating_sub(KEY_COLS);
    let rest = room.saturating_sub(text::width(&about) + text::width("resume “” "));
    if rest < MIN_NAME_COLS {
        return text::truncate(&format!("resume “{name}”"), room);
    }
    format!("resume “{}” {about}", text::truncate(&name, rest))
}

/// The error of a call for display, in one or two sentences.
pub(super) fn short_error_text(error: &CallError) -> String {
    match error {
        CallError::Agent(error) => {
            format!("Error from the agent: {} (code {}).", text::one_line(&error.message), error.code)
        }
        CallError::Malformed { error } => {
            format!("Invalid response: {}.", text::one_line(error))
        }
        CallError::NotSent { error } | CallError::Undelivered { error } => error.clone(),
        CallError::OtherVersion { theirs } => {
            format!("Unsupported protocol version {}.", text::one_line(theirs))
        }
        CallError::TimedOut(seconds) => format!("No response within {seconds} s."),
        CallError::Lost => "The connection closed before the response.".to_owned(),
    }
}
