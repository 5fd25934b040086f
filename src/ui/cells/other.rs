//! All other items: ends of turns, notices, compactions, subagents, answers, unknown items.

use crate::ui::text::{Line, Span};

use crate::config::keymap::actions::info;
use crate::core::{Item, ItemBody, TurnEnd};
use crate::model::{Action, MAY_RUN_TWICE, NoticeKind, Severity, StopReason, UNREADABLE};
use crate::ui::markdown::Markdown;
use crate::ui::render_context::{RenderContext, duration};
use crate::ui::text::copy_hint::Mark;
use crate::ui::text::counted;
use crate::ui::text::{one_line, truncate, wrap_prefixed};
use crate::ui::theme::Role;

use super::layout::{Context, Layout, LineRun, Source, TextPart};
use super::turn_end::TurnFacts;
use super::{head_of, plain_lines, raw_lines, short_lines};

pub(super) fn lay_out(layout: &mut Layout, item: &Item, body: &ItemBody, context: &mut Context<'_>) {
    layout.pieces.clear();
    layout.is_live = matches!(body, ItemBody::Compaction { status, .. } if status == "in_progress")
        || matches!(body, ItemBody::Subagent { state: Some(state), .. } if state == "running");
    let render = context.render;
    let cols = context.cols;
    let is_open = context.view.item(item.id).is_open == Some(true);
    let facts = item.end.as_deref().map(|end| TurnFacts::of(item, end, context)).unwrap_or_default();
    layout.waits = facts.waits;
    let heads =
        if layout.is_live { vec![head(body, context)] } else { whole_head(body, &facts, render, cols) };
    let mut push = |lines: Vec<Line<'static>>, indent: u16| {
        if !lines.is_empty() {
            layout.pieces.push(LineRun::ready(lines, indent));
        }
    };
    let below = cols.saturating_sub(2);
    match body {
        ItemBody::TurnEnd(TurnEnd::Failed { error, fault }) => {
            push(heads, 0);
            push(short_lines(error, Role::Text, render, below), 2);
            push(plain_lines(fault.next(), Role::TextDim, render, below), 2);
        }
        ItemBody::TurnEnd(TurnEnd::AgentDied { cause, stderr_tail }) => {
            push(marked(render.glyphs.cross, cause, Role::Error, render, cols), 0);
            let max = if is_open { stderr_tail.len() } else { 5 };
            let from = stderr_tail.len().saturating_sub(max);
            for line in stderr_tail.iter().skip(from) {
                push(short_lines(line, Role::TextDim, render, below), 2);
            }
            push(plain_lines(MAY_RUN_TWICE, Role::TextDim, render, below), 2);
        }
        ItemBody::Notice { severity, title, detail, kind } => {
            let (mark, role) = match severity {
                Severity::Info => (render.glyphs.dot, Role::TextDim),
                Severity::Warning => (render.glyphs.warn, Role::Warning),
                Severity::Error => (render.glyphs.cross, Role::Error),
            };
            let often = if item.times > 1 { format!(" ({} times)", item.times) } else { String::new() };
            push(marked(mark, &format!("{title}{often}"), role, render, cols), 0);
            if let Some(detail) = detail {
                push(short_lines(detail, Role::TextDim, render, below), 2);
            }
            let hint = match kind {
                NoticeKind::HistoryDiffers => Some((render.history_keys.open, Action::OpenAgentHistory)),
                NoticeKind::Taken(_) => Some((render.history_keys.put_back, Action::PutBackTurns)),
                _ => None,
            };
            if let Some((key, action)) = hint {
                let title = info(action).map_or("", |info| info.text);
                let hint = format!("{}: {title}", key.unwrap_or("Command palette"));
                push(plain_lines(&hint, Role::TextDim, render, below), 2);
            }
        }
        ItemBody::Compaction { summary, error, .. } => {
            push(heads, 0);
            if let Some(error) = error {
                push(short_lines(error, Role::Error, render, below), 2);
            }
            if is_open {
                let markdown = Markdown::of(summary);
                for (block, facts) in markdown.blocks().iter().enumerate() {
                    let source = Source::Markdown { text: 0, block };
                    layout.pieces.push(LineRun::lazy(source, 2, facts.has_gap));
                }
                layout.texts = vec![TextPart { markdown, position: 0, style: None }];
            }
        }
        ItemBody::Subagent { description, .. } => {
            push(heads, 0);
            if let Some(description) = description {
                let mut lines = short_lines(description, Role::TextDim, render, below);
                if !is_open {
                    lines.truncate(2);
                }
                push(lines, 2);
            }
        }
        ItemBody::Answered { question, answer, .. } => {
            push(marked("?", question, Role::Text, render, cols), 0);
            push(short_lines(answer, Role::TextDim, render, below), 2);
        }
        ItemBody::Raw { raw, .. } => {
            push(heads, 0);
            if is_open {
                push(raw_lines(&raw.0, render, below), 2);
            }
        }
        _ => push(heads, 0),
    }
}

/// The head of such an item as one line, which is redrawn for a clock or a spinner.
pub(super) fn head(body: &ItemBody, context: &Context<'_>) -> Line<'static> {
    let render = context.render;
    let room = usize::from(context.cols).saturating_sub(2);
    let head = mark_and_text(body, render);
    Line::from(vec![
        Mark::APART.span(format!("{} ", head.mark), render.theme.style(head.mark_role)),
        Span::styled(truncate(&head.text, room), render.theme.style(head.role)),
    ])
}

fn whole_head(
    body: &ItemBody,
    facts: &TurnFacts,
    render: &RenderContext<'_>,
    cols: u16,
) -> Vec<Line<'static>> {
    let head = mark_and_text(body, render);
    let mark = Mark::APART.span(format!("{} ", head.mark), render.theme.style(head.mark_role));
    let mut line = Line::from(Span::styled(head.text, render.theme.style(head.role)));
    if matches!(body, ItemBody::TurnEnd(TurnEnd::Stopped { .. })) {
        let tail = facts.after_time(render);
        line.push_span(Mark::APART.span(tail, render.theme.style(Role::TextDim)));
    }
    wrap_prefixed(&line, cols, &[mark], &[Span::raw("  ")])
}

struct Head {
    mark: &'static str,
    mark_role: Role,
    text: String,
    role: Role,
}

fn mark_and_text(body: &ItemBody, render: &RenderContext<'_>) -> Head {
    let glyphs = render.glyphs;
    let of = |mark: &'static str, role: Role, text: &str| Head {
        mark,
        mark_role: role,
        text: text.to_owned(),
        role,
    };
    match body {
        ItemBody::TurnEnd(TurnEnd::Stopped { reason, took, .. }) => {
            let (text, role) = stop_text(reason);
            of(glyphs.dot, role, &format!("{text} {} {}", glyphs.dot, duration(*took)))
        }
        ItemBody::TurnEnd(TurnEnd::Failed { fault, .. }) => of(glyphs.cross, Role::Error, fault.heading()),
        ItemBody::Compaction { status, .. } => match status.as_str() {
            "in_progress" => {
                Head { mark_role: Role::Running, ..of(render.spinner(), Role::TextDim, "Compacting context") }
            }
            "completed" => of(glyphs.dot, Role::TextDim, "Context compacted"),
            "failed" => of(glyphs.cross, Role::Error, "Context compaction failed"),
            other => of(glyphs.dot, Role::TextDim, &format!("Context compaction: {}", one_line(other))),
        },
        ItemBody::Subagent { title, state, calls, .. } => {
            let state = state.as_deref().map(one_line).unwrap_or_default();
            let (mark, mark_role) = match state.as_str() {
                "running" => (render.spinner(), Role::Running),
                "idle" | "completed" => (glyphs.check, Role::Success),
                "failed" => (glyphs.cross, Role::Error),
                "cancelled" => (glyphs.cross, Role::TextDim),
                _ => (glyphs.dot, Role::Running),
            };
            // The mark has this meaning already.
            let is_done = matches!(state.as_str(), "" | "idle" | "completed");
            let state = Some(state).filter(|_| !is_done);
            let calls = (*calls > 0).then(|| counted(*calls, "tool call", "tool calls"));
            let facts = state.into_iter().chain(calls).map(|fact| format!(" {} {fact}", glyphs.dot));
            let tail: String = facts.collect();
            let title = one_line(head_of(title));
            let title = if title.is_empty() { "untitled" } else { &title };
            let text = format!("subagent  {title}{tail}");
            Head { mark_role, ..of(mark, Role::ToolTitle, &text) }
        }
        ItemBody::Raw { name, .. } if name == UNREADABLE => {
            of(glyphs.warn, Role::Warning, "A message of the agent could not be read.")
        }
        ItemBody::Raw { name, .. } => {
            of(glyphs.dot, Role::RawItem, &format!("{} (unsupported update)", one_line(name)))
        }
        _ => of(glyphs.dot, Role::TextDim, ""),
    }
}

fn stop_text(reason: &StopReason) -> (String, Role) {
    let role = match reason {
        StopReason::EndTurn | StopReason::Cancelled => Role::TextDim,
        _ => Role::Warning,
    };
    (one_line(&reason.description()), role)
}

fn marked(mark: &str, text: &str, role: Role, render: &RenderContext<'_>, cols: u16) -> Vec<Line<'static>> {
    let style = render.theme.style(role);
    let line = Line::from(Span::styled(one_line(head_of(text)), style));
    wrap_prefixed(&line, cols, &[Mark::APART.span(format!("{mark} "), style)], &[Span::raw("  ")])
}
