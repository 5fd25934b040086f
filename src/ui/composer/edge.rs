//! The edges of the composer: the line above it, and on tall screens the row below its text.
//!
//! They show the session's mode and model, context and cost, the focus if it is elsewhere, and the number of hidden
//! lines. If there is not enough space, the least important labels are omitted.

use ratatui::layout::Rect;
use ratatui::style::Modifier;

use crate::config::keymap::Context;
use crate::core::ApproveAll;
use crate::core::lifecycle::operations;
use crate::model::{Action, mentions, output_number};
use crate::ui::canvas::Canvas;
use crate::ui::frame_context::FrameContext;
use crate::ui::hits::{Hit, HitMap};
use crate::ui::plan;
use crate::ui::render_context::{cost_text, with_commas};
use crate::ui::status;
use crate::ui::text::{self, Line, Span};
use crate::ui::theme::Role;
use crate::ui::transcript::TranscriptView;

/// On narrower screens, labels are shortened.
const FULL_COLS: u16 = 60;

/// Maximum width of a model's or mode's name, and of a mode's name beside another label on a narrow screen.
const MAX_NAME: usize = 28;
const SHORT_NAME: usize = 8;

/// Maximum number of outputs that are named.
const MAX_OUTPUTS: usize = 3;

/// What the edges show besides the session's settings.
pub(in crate::ui) struct EdgeFacts<'a> {
    pub focus: Context,
    /// Number of the draft's rows above and below the composer.
    pub hidden_rows: (usize, usize),
    /// Whether the composer takes the place of the transcript.
    pub is_full: bool,
    /// The mode of vim keys, and whether typed characters are text.
    pub mode: Option<(String, bool)>,
    pub transcript: Option<&'a TranscriptView>,
    /// Whether the plan's count is shown here, because neither the panel nor the plan shows it.
    pub has_plan_count: bool,
    /// Whether context and cost are shown here, because the side panel does not show them.
    pub has_usage: bool,
}

/// Text on an edge, with a blank on each side.
struct Label {
    line: Line<'static>,
    action: Option<Action>,
    /// The lowest rank is omitted first.
    rank: u8,
}

impl Label {
    fn new(ctx: &FrameContext, role: Role, text: &str, action: Option<Action>, rank: u8) -> Self {
        Self { line: ctx.span(role, format!(" {text} ")).into(), action, rank }
    }

    fn reversed(mut self) -> Self {
        for span in &mut self.line.spans {
            span.style = span.style.add_modifier(Modifier::REVERSED);
        }
        self
    }
}

/// Draws the edges. Without a bottom edge, its labels are on the top edge.
pub(in crate::ui) fn draw(
    ctx: &FrameContext,
    facts: &EdgeFacts<'_>,
    top: Rect,
    bottom: Rect,
    buf: &mut Canvas,
    hits: &mut HitMap,
) {
    let role = match facts.focus {
        Context::Main if is_command(ctx) => Role::Warning,
        Context::Main => Role::Accent,
        _ => Role::Rule,
    };
    let rule = ctx.render.glyphs.rule.repeat(usize::from(top.width).saturating_sub(2));
    text::put_text(buf, top.x + 1, top.y, &rule, top.width, ctx.style(role));

    let mut left: Vec<Label> = focus_chip(ctx, facts.focus, top.width).into_iter().collect();
    left.extend(shell(ctx, top.width));
    if let Some((mode, is_inserting)) = &facts.mode {
        let role = if *is_inserting { Role::TextDim } else { Role::Accent };
        left.push(Label::new(ctx, role, &text::truncate(mode, MAX_NAME), None, 8));
    }
    if facts.is_full {
        let key = ctx.key(Context::Main, Action::FullComposer);
        let key = key.map(|key| format!(" {} {key} to return", ctx.render.glyphs.dot)).unwrap_or_default();
        left.push(Label::new(
            ctx,
            Role::TextDim,
            &format!("full screen{key}"),
            Some(Action::FullComposer),
            3,
        ));
    }
    let settings = settings(ctx, bottom.is_empty() && !left.is_empty(), top.width);
    let usage = if facts.has_usage { usage(ctx, top.width) } else { Vec::new() };
    let mut right = Vec::new();
    if bottom.is_empty() {
        left.extend(settings);
        right.extend(usage);
    } else {
        place(settings, usage, bottom, buf, hits);
    }
    if let Some(count) = plan::count(ctx.view, ctx.session).filter(|_| facts.has_plan_count) {
        let text = format!("plan {count}");
        left.push(Label::new(ctx, Role::TextDim, &text, Some(Action::TogglePlan), 4));
    }
    left.extend(ctx.view.only.map(|only| filter(ctx, only.label(), top.width)));
    if let Some(text) = hidden_rows(facts.hidden_rows) {
        right.push(Label::new(ctx, Role::Accent, &text, None, 7));
    }
    if !ctx.session.stash.is_empty() {
        let text = format!("{} stashed", with_commas(ctx.session.stash.len()));
        right.push(Label::new(ctx, Role::TextDim, &text, Some(Action::StashDraft), 5));
    }
    if let Some(view) = facts.transcript.filter(|view| !view.is_following()) {
        let text = news(view.news(), ctx.marks.down);
        right.push(Label::new(ctx, Role::Accent, &text, Some(Action::ScrollEnd), 6));
    }
    place(left, right, top, buf, hits);
}

/// Draws the edge above a terminal that the user types into.
pub(in crate::ui) fn draw_terminal_head(
    ctx: &FrameContext,
    command: &str,
    area: Rect,
    buf: &mut Canvas,
    hits: &mut HitMap,
) {
    let rule = ctx.render.glyphs.rule.repeat(usize::from(area.width).saturating_sub(2));
    text::put_text(buf, area.x + 1, area.y, &rule, area.width, ctx.style(Role::Accent));
    let mut left: Vec<Label> = focus_chip(ctx, Context::Terminal, area.width).into_iter().collect();
    if !ctx.session.requests.is_empty() {
        left.push(Label::new(ctx, Role::Warning, "answer required", None, 8));
    }
    let name = text::truncate(&text::one_line(command), MAX_NAME);
    place(left, vec![Label::new(ctx, Role::TextDim, &name, None, 5)], area, buf, hits);
}

/// Draws labels from the left and from the right, as many as fit.
fn place(mut left: Vec<Label>, mut right: Vec<Label>, area: Rect, buf: &mut Canvas, hits: &mut HitMap) {
    let room = usize::from(area.width).saturating_sub(4);
    let cols = |labels: &[Label]| labels.iter().map(|label| label.line.width() + 1).sum::<usize>();
    while cols(&left) + cols(&right) > room + 1
        && let Some(min) = left.iter().chain(&right).map(|label| label.rank).min()
    {
        left.retain(|label| label.rank != min);
        right.retain(|label| label.rank != min);
    }
    let begin = area.right().saturating_sub(1 + u16::try_from(cols(&right)).unwrap_or(0));
    for (mut x, labels) in [(area.x + 2, left), (begin, right)] {
        for Label { line, action, .. } in labels {
            let width = u16::try_from(line.width()).unwrap_or(0);
            buf.put_line(x, area.y, &line, width);
            if let Some(action) = action {
                hits.add(Rect { x, y: area.y, width, height: 1 }, Hit::Act(action));
            }
            x += width + 1;
        }
    }
}

/// The layer that has the keys instead of the composer, and the key that returns them.
fn focus_chip(ctx: &FrameContext, focus: Context, width: u16) -> Option<Label> {
    let (name, context, action, does) = match focus {
        Context::Main => return None,
        Context::Browse => ("transcript", Context::Browse, Action::Browse, "to return"),
        Context::Terminal => ("terminal", Context::Terminal, Action::TypeIntoTerminal, "to return"),
        Context::Search => ("search", Context::Search, Action::Escape, "to close"),
        _ if ctx.keys.has_dialog => ("dialog", Context::Text, Action::Escape, "to close"),
        Context::Form => ("form", Context::Form, Action::Escape, "to cancel"),
        _ => ("request", Context::Main, Action::AnswerRequest, "to return"),
    };
    let does = if width < FULL_COLS { String::new() } else { format!(" {does}") };
    // In a replay no key moves the focus.
    let key = ctx.key(context, action)?;
    let text = format!("Focus: {name} {} {key}{does}", ctx.render.glyphs.dot);
    Some(Label::new(ctx, Role::Accent, &text, Some(action), 9).reversed())
}

fn is_command(ctx: &FrameContext) -> bool {
    ctx.session.draft.starts_with('!') && ctx.session.outbox.edited().is_none()
}

/// The labels of the user's shell: that the draft is a command and where it runs, the folder if it is not that of the
/// session, and the outputs that go into the prompt.
fn shell(ctx: &FrameContext, width: u16) -> Vec<Label> {
    let (session, is_narrow) = (ctx.session, width < FULL_COLS);
    let folder = session.shell.folder.as_deref().map(|folder| {
        let name = folder
            .strip_prefix(&session.workspace.cwd)
            .map_or_else(|_| ctx.path(folder), |below| below.display().to_string());
        text::truncate_path(&text::one_line(&name), usize::from(width / 3).max(8))
    });
    if is_command(ctx) {
        let mut title = "Shell".to_owned();
        if session.workspace.remote.is_some() {
            title.push_str(" on this machine");
        }
        if let Some(folder) = folder {
            title.extend([" in ", folder.as_str()]);
        }
        if session.draft.starts_with("!!") {
            title.push_str(if is_narrow { ", attached" } else { ", output goes into the next prompt" });
        }
        return vec![Label::new(ctx, Role::Warning, &title, None, 9).reversed()];
    }
    let outputs = if session.draft.contains("@!") { mentions(&session.draft) } else { Vec::new() };
    let attached = outputs.into_iter().filter_map(|(_, mention)| {
        let known = session.output_of(output_number(&mention.path)?)?;
        let state = if known.exit.is_none() { " (running)" } else { "" };
        let command = text::truncate(&text::one_line(known.command), usize::from(width / 4).max(8));
        let of = if is_narrow { "" } else { "output of " };
        let title = format!("@{}: {of}{command}{state}", mention.path);
        Some(Label::new(ctx, Role::Accent, &title, None, 9))
    });
    let folder = folder.map(|folder| Label::new(ctx, Role::TextDim, &format!("shell in {folder}"), None, 2));
    attached.take(MAX_OUTPUTS).chain(folder).collect()
}

fn usage(ctx: &FrameContext, width: u16) -> Vec<Label> {
    let Some(usage) = &ctx.session.usage else { return Vec::new() };
    let mut context = status::context(ctx, usage.used_tokens, usage.size_tokens, width);
    context.spans.insert(0, Span::raw(" "));
    context.push_span(Span::raw(" "));
    let cost = usage.cost.as_ref().map(|cost| Label::new(ctx, Role::Status, &cost_text(cost), None, 1));
    [Label { line: context, action: None, rank: 2 }].into_iter().chain(cost).collect()
}

fn settings(ctx: &FrameContext, is_crowded: bool, width: u16) -> Vec<Label> {
    let is_narrow = width < FULL_COLS;
    let label = |what: &str, name: &str, role: Role, action: Action, rank: u8| {
        let max = if is_narrow && is_crowded { SHORT_NAME } else { MAX_NAME };
        let name = text::truncate(name, max);
        let what = if is_narrow { String::new() } else { format!("{what} ") };
        let spans = [(Role::TextDim, format!(" {what}")), (role, format!("{name} "))];
        let line = Line::from(spans.map(|(role, text)| ctx.span(role, text)).to_vec());
        Label { line, action: Some(action), rank }
    };
    let mode = ctx.mode().map(|mode| label("mode", &mode, mode_role(&mode), Action::OpenModes, 8));
    let model = ctx.model().map(|model| label("model", &model, Role::Composer, Action::OpenModels, 3));
    let approval = operations::approves_all(ctx.session).map(|scope| {
        let text = match scope {
            ApproveAll::Sandbox if is_narrow => "approving in sandbox",
            ApproveAll::Sandbox => "approving what the sandbox confines",
            _ if is_narrow => "approving all",
            ApproveAll::Turn => "approving all requests of this turn",
            ApproveAll::Session => "approving all requests",
        };
        let role = if scope == ApproveAll::Sandbox { Role::Warning } else { Role::Error };
        Label::new(ctx, role, text, Some(Action::ToggleApproveAll), 10).reversed()
    });
    approval.into_iter().chain(mode).chain(model).collect()
}

/// The colour of a mode by what its name says about requests: few or no requests are a warning.
fn mode_role(name: &str) -> Role {
    let name = name.to_lowercase();
    let says = |names: &[&str]| names.iter().any(|word| name.contains(word));
    if says(&["bypass", "yolo", "full access", "danger", "never ask", "don't ask", "autopilot"]) {
        Role::Error
    } else if says(&["accept", "auto", "approve"]) {
        Role::Warning
    } else if says(&["plan", "read"]) {
        Role::Accent
    } else {
        Role::Composer
    }
}

/// The label of an active filter, with the key that clears it.
fn filter(ctx: &FrameContext, label: &str, width: u16) -> Label {
    let key = ctx
        .key(Context::Main, Action::Escape)
        .filter(|_| width >= FULL_COLS)
        .map(|key| format!(" {} {key} show all", ctx.render.glyphs.dot));
    let max = usize::from(width / 2).saturating_sub(6).max(8);
    let text = format!("only {}{}", text::truncate(label, max), key.unwrap_or_default());
    Label::new(ctx, Role::Accent, &text, Some(Action::OpenFilter), 5)
}

/// The label for rows of the draft that are not visible.
fn hidden_rows(rows: (usize, usize)) -> Option<String> {
    let lines = |count: usize| {
        if count == 1 { "1 line".to_owned() } else { format!("{} lines", with_commas(count)) }
    };
    match rows {
        (0, 0) => None,
        (above, 0) => Some(format!("{} above", lines(above))),
        (0, below) => Some(format!("{} below", lines(below))),
        (above, below) => Some(format!("{} above, {} below", lines(above), with_commas(below))),
    }
}

/// The label for new items below the screen, and new lines of the message that was at the end.
fn news(news: (usize, usize), down: &str) -> String {
    let lines = match news.1 {
        1 => "1 new line".to_owned(),
        lines => format!("{} new lines", with_commas(lines)),
    };
    match news {
        (0, 0) => format!("more {down}"),
        (0, _) => format!("{lines} {down}"),
        (items, 0) => format!("{items} new {down}"),
        (items, _) => format!("{lines} + {items} {down}"),
    }
}

#[cfg(test)]
mod tests;
