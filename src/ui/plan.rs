//! The plan above the prompt, or beside the transcript on a wide screen.
//!
//! Chooses its form by the available space: a count, one line, or a list. Several plans are shown as one
//! list, separated by a blank line.

use ratatui::layout::Rect;
use ratatui::style::Style;

use crate::core::Session;
use crate::model::{Action, Plan, PlanBody, PlanEntry, PlanPriority, PlanStatus};
use crate::ui::canvas::Canvas;
use crate::ui::text::{Line, Span};

use super::frame_context::FrameContext;
use super::hits::{Hit, HitMap};
use super::render_context::Glyphs;
use super::session_view::SessionView;
use super::text;
use super::theme::Role;

/// Minimum height of the screen for the plan above the prompt.
pub(super) const MIN_ROWS: u16 = 16;

/// Maximum number of steps in the list above the prompt.
const MAX_STEPS: usize = 8;

/// The completed and total number of steps, `2/4`; `None` without steps.
pub(super) fn count(view: &SessionView, session: &Session) -> Option<String> {
    if !view.is_plan_shown(session) {
        return None;
    }
    let steps = steps(session);
    let done = steps.iter().filter(|step| step.status == PlanStatus::Completed).count();
    (!steps.is_empty()).then(|| format!("{done}/{}", steps.len()))
}

pub(super) fn is_there(view: &SessionView, session: &Session) -> bool {
    let has_text = |plan: &Plan| match &plan.body {
        PlanBody::Entries(entries) => !entries.is_empty(),
        PlanBody::Markdown(text) | PlanBody::File(text) => !text.trim().is_empty(),
    };
    view.is_plan_shown(session) && session.plans.iter().any(has_text)
}

/// Number of rows above the prompt, for a screen of this height.
pub(super) fn rows(view: &SessionView, session: &Session, screen_rows: u16) -> u16 {
    if !is_there(view, session) || screen_rows < MIN_ROWS {
        return 0;
    }
    // On a low screen, the steps are shown only if the user asked for them.
    if view.is_plan_folded(session) || screen_rows < 30 && view.plan_fold.is_none() {
        return 1;
    }
    let steps = steps(session);
    let list = if steps.is_empty() { other_lines(session).len() } else { steps.len() };
    let max = MAX_STEPS.min(usize::from(screen_rows) / 4);
    u16::try_from(1 + list.min(max)).unwrap_or(1)
}

/// Draws the plan above the prompt, as one line or a list.
pub(super) fn draw(ctx: &FrameContext, area: Rect, buf: &mut Canvas, hits: &mut HitMap) {
    hits.add(area, Hit::Act(Action::TogglePlan));
    let inner = Rect { x: area.x + 1, width: area.width.saturating_sub(2), ..area };
    if area.height == 1 {
        buf.put_line(inner.x, inner.y, &one_line(ctx, usize::from(inner.width)), inner.width);
        return;
    }
    buf.put_line(inner.x, inner.y, &head(ctx), inner.width);
    let list =
        Rect { x: area.x + 3, y: area.y + 1, width: area.width.saturating_sub(4), height: area.height - 1 };
    draw_list(ctx, list, buf);
}

/// The lines of the plan beside the transcript, each with the index of its step; none if it is folded.
pub(super) fn side_lines(ctx: &FrameContext, cols: u16) -> Vec<(usize, Line<'static>)> {
    let mut lines: Vec<(usize, Line<'static>)> = Vec::new();
    if ctx.view.is_plan_folded(ctx.session) {
        return lines;
    }
    for (index, step) in steps(ctx.session).into_iter().enumerate() {
        let (mark, role) = mark(step, &ctx.render.glyphs);
        let style = step_style(ctx, step, role);
        let line = Line::styled(text::one_line(&step.content), style);
        for (row, mut wrapped) in
            text::wrap_line(&line, cols.saturating_sub(2).max(4)).into_iter().enumerate()
        {
            let lead =
                if row == 0 { Span::styled(format!("{mark} "), ctx.style(role)) } else { Span::raw("  ") };
            wrapped.spans.insert(0, lead);
            lines.push((index, wrapped));
        }
    }
    if lines.is_empty() {
        lines = other_lines(ctx.session)
            .iter()
            .flat_map(|line| text::wrap_line(&Line::styled(line.clone(), ctx.style(Role::Text)), cols))
            .map(|line| (0, line))
            .collect();
    }
    lines
}

/// Draws these lines beside the transcript, below a heading.
pub(super) fn draw_side(
    ctx: &FrameContext,
    lines: &[(usize, Line<'static>)],
    inner: Rect,
    buf: &mut Canvas,
    hits: &mut HitMap,
) {
    hits.add(Rect { height: 1, ..inner }, Hit::Act(Action::TogglePlan));
    let is_folded = ctx.view.is_plan_folded(ctx.session);
    let head = if is_folded { one_line(ctx, usize::from(inner.width)) } else { head(ctx) };
    buf.put_line(inner.x, inner.y, &head, inner.width);
    let marked = steps(ctx.session).iter().position(|step| step.status == PlanStatus::InProgress);
    // Keeps the active step visible in a long list.
    let first = inner.y + 1;
    let room = usize::from(inner.bottom().saturating_sub(first));
    let at = lines.iter().position(|(index, _)| Some(*index) == marked).unwrap_or(0);
    let skip = at.saturating_sub(room / 2).min(lines.len().saturating_sub(room));
    for (y, (_, line)) in (first..).zip(lines.iter().skip(skip).take(room)) {
        buf.put_line(inner.x, y, line, inner.width);
    }
}

fn draw_list(ctx: &FrameContext, area: Rect, buf: &mut Canvas) {
    let steps = steps(ctx.session);
    let room = usize::from(area.height);
    let cols = usize::from(area.width);
    let mut y = area.y;
    if steps.is_empty() {
        for line in other_lines(ctx.session).iter().take(room) {
            let line = text::truncate(line, cols);
            text::put_text(buf, area.x, y, &line, area.width, ctx.style(Role::Text));
            y += 1;
        }
        return;
    }
    let at = steps.iter().position(|step| step.status != PlanStatus::Completed).unwrap_or(0);
    let skip = at.saturating_sub(1).min(steps.len().saturating_sub(room));
    for step in steps.iter().skip(skip).take(room) {
        let (mark, role) = mark(step, &ctx.render.glyphs);
        let title = text::truncate(&text::one_line(&step.content), cols.saturating_sub(2));
        let line = Line::from(vec![
            Span::styled(format!("{mark} "), ctx.style(role)),
            Span::styled(title, step_style(ctx, step, role)),
        ]);
        buf.put_line(area.x, y, &line, area.width);
        y += 1;
    }
}

/// The heading `plan 2/4`.
fn head(ctx: &FrameContext) -> Line<'static> {
    let label =
        count(ctx.view, ctx.session).map_or_else(|| "plan".to_owned(), |count| format!("plan {count}"));
    Line::from(ctx.span(Role::TextDim, label))
}

/// Formats `plan 2/4   ✓ read the test   ▸ change the check   · run all tests`, centred on the active step.
fn one_line(ctx: &FrameContext, cols: usize) -> Line<'static> {
    let mut line = head(ctx);
    let steps = steps(ctx.session);
    if steps.is_empty() {
        let first =
            other_lines(ctx.session).into_iter().find(|line| !line.trim().is_empty()).unwrap_or_default();
        let room = cols.saturating_sub(line.width() + 3);
        line.push_span(ctx.span(Role::Text, format!("   {}", text::truncate(&first, room))));
        return line;
    }
    let is_done = steps.iter().all(|step| step.status == PlanStatus::Completed);
    if is_done {
        line.push_span(ctx.span(Role::PlanDone, format!("   {} done", ctx.render.glyphs.check)));
        return line;
    }
    let active = steps.iter().position(|step| step.status == PlanStatus::InProgress);
    let open = steps.iter().position(|step| step.status != PlanStatus::Completed);
    let first_wanted = active.or(open).unwrap_or(0);
    // First the steps before the active one that fit, then those after it.
    let widths: Vec<usize> =
        steps.iter().map(|step| text::width(&text::one_line(&step.content)) + 5).collect();
    let room = cols.saturating_sub(line.width());
    let mut first = first_wanted;
    let cost = |from: usize| widths.iter().skip(from).take(first_wanted + 2 - from).sum::<usize>();
    while first > 0 && cost(first - 1) + 3 <= room {
        first -= 1;
    }
    if first > 0 {
        line.push_span(ctx.span(Role::TextDim, format!("   {}", ctx.render.glyphs.ellipsis)));
    }
    for step in steps.into_iter().skip(first) {
        let left = cols.saturating_sub(line.width());
        if left < 12 {
            break;
        }
        let (mark, role) = mark(step, &ctx.render.glyphs);
        let title = text::truncate(&text::one_line(&step.content), left - 5);
        line.push_span(Span::styled(format!("   {mark} "), ctx.style(role)));
        line.push_span(Span::styled(title, step_style(ctx, step, role)));
    }
    line
}

fn steps(session: &Session) -> Vec<&PlanEntry> {
    let lists = session.plans.iter().filter_map(|plan| match &plan.body {
        PlanBody::Entries(entries) => Some(entries),
        PlanBody::Markdown(_) | PlanBody::File(_) => None,
    });
    lists.flatten().collect()
}

/// The lines of plans that are not lists of steps.
fn other_lines(session: &Session) -> Vec<String> {
    let mut lines = Vec::new();
    for plan in &session.plans {
        match &plan.body {
            PlanBody::Entries(_) => {}
            PlanBody::Markdown(source) => {
                let lines_of = source.lines().filter(|line| !line.trim_start().starts_with("```"));
                let heading = |line: &str| line.trim_start_matches('#').strip_prefix(' ').map(str::to_owned);
                let plain =
                    lines_of.map(|line| text::one_line(&heading(line).unwrap_or_else(|| line.to_owned())));
                lines.extend(plain.filter(|line| !line.trim().is_empty()));
            }
            PlanBody::File(path) => lines.push(format!("in file {}", text::one_line(path))),
        }
    }
    lines
}

fn mark(step: &PlanEntry, glyphs: &Glyphs) -> (&'static str, Role) {
    match step.status {
        PlanStatus::Pending => (glyphs.pending, Role::PlanPending),
        PlanStatus::InProgress => (glyphs.arrow, Role::Accent),
        PlanStatus::Completed => (glyphs.check, Role::PlanDone),
    }
}

fn step_style(ctx: &FrameContext, step: &PlanEntry, role: Role) -> Style {
    match step.status {
        PlanStatus::InProgress => ctx.style(Role::PlanActive),
        PlanStatus::Pending if step.priority == PlanPriority::High => ctx.style(Role::Text),
        _ => ctx.style(role),
    }
}
