//! The dialogs that need a decision: a permission request of the agent, a file or command that needs
//! confirmation, a URL to open.
//!
//! Each shows the agent and the action, all details (the diff, the entire command, the URL), and the answers
//! with the agent's labels. `core` chooses the initial selection.

use std::ops::Range;
use std::path::Path;
use std::rc::Rc;

use ratatui::layout::{Position, Rect};

use super::dialog_frame::{
    DialogFrame, DialogPosition, Row, Size, Window, choice, escape_means, spread, wrapped,
};
use super::line_dialog::{self, LineDialog};
use super::options;
use crate::config::keymap::Context;
use crate::core::state::tab;
use crate::core::state::url::inspect_url;
use crate::core::{
    AccessRequest, AccessWork, ItemBody, OpenRequest, OpenRequestKind, Session, ToolCall, URL_OPTIONS,
    protected_files, risks,
};
use crate::escape::visible;
use crate::model::{
    Access, Action, ContentBlock, ElicitationMode, ItemId, PermissionRequest, Risk, SessionKey, ToolContent,
    ToolKind, byte_size, command_in_title,
};
use crate::ui::App;
use crate::ui::canvas::Canvas;
use crate::ui::cells::unlisted_input::{named_paths, named_text};
use crate::ui::cells::{ToolBody, counts_line, diffs_of, is_in_command};
use crate::ui::diff::{Diff, FileStatus};
use crate::ui::frame_context::FrameContext;
use crate::ui::render_context::RenderContext;
use crate::ui::text;
use crate::ui::text::{Line, Span};
use crate::ui::theme::Role;
use crate::ui::view_state::{BodyKey, ViewState};
use crate::ui::{highlight, picture};

/// Maximum number of files named above a change; others are counted.
const NAMED_FILES: usize = 4;

/// For longer titles and notes, only both ends are shown.
const WORDS_BYTES: usize = 1024;
/// Longer paths do not exist on Linux. Source: limits.h, `PATH_MAX`.
const PATH_BYTES: usize = 4096;

/// Maximum width of a text that shows a risk.
const RISK_COLS: usize = 48;

/// Smaller screens have little space besides the answers.
const LOW_ROWS: u16 = 13;

/// Draws a request over the screen.
pub(super) fn draw(
    ctx: &FrameContext,
    open: &OpenRequest,
    reason: Option<&LineDialog>,
    view: &mut ViewState,
    area: Rect,
    buf: &mut Canvas,
) -> Option<Position> {
    let has_diff = match &open.kind {
        OpenRequestKind::Permission { tool, .. } => has_diff(ctx, *tool),
        OpenRequestKind::Access(request) => request.call.diffs().next().is_some(),
        OpenRequestKind::Elicitation(_) => false,
    };
    let size = if has_diff { Size::Large } else { Size::Small };
    let position = DialogPosition::new(area, size, ctx.keys.is_full_screen);
    frame(ctx, open, reason, view, position)?.draw(ctx, position, view, buf)
}

/// The contents of the dialog of a request, and the input of the reason if it is being rejected; `None` for a form.
pub(super) fn frame<'s>(
    ctx: &'s FrameContext,
    open: &OpenRequest,
    reason: Option<&'s LineDialog>,
    view: &mut ViewState,
    position: DialogPosition,
) -> Option<DialogFrame<'s>> {
    let mut sheet = match &open.kind {
        OpenRequestKind::Permission { request, tool } => {
            permission_frame(ctx, (open, request, *tool), view, position)
        }
        OpenRequestKind::Access(access) => access_frame(ctx, (open, access), view, position),
        OpenRequestKind::Elicitation(elicitation) => match &elicitation.mode {
            ElicitationMode::Form { .. } => return None,
            ElicitationMode::Url { url, .. } => url_frame(ctx, &elicitation.message, url, position),
        },
    };
    if let Some(dialog) = reason {
        let reason = line_dialog::frame(ctx, dialog, position.cols());
        let input = reason.head.len();
        sheet.foot = reason.head.into_iter().chain(reason.foot).collect();
        sheet.pinned = input..input + 1;
        sheet.hints = reason.hints;
        sheet.scroll_hint = ctx.hint(Context::Line, Action::PageDown, "scroll");
    }
    Some(sheet)
}

/// Whether a permission request shows a diff, which may still be computed.
fn has_diff(ctx: &FrameContext, item: ItemId) -> bool {
    let diffs = tool_of(ctx, item).map(diffs_of);
    matches!(diffs, Some(None)) || diffs.flatten().is_some_and(|diffs| counts_of(&diffs) != (0, 0))
}

fn tool_of<'s>(ctx: &FrameContext<'s>, item: ItemId) -> Option<&'s ToolCall> {
    ctx.session.transcript.get(item).and_then(|item| match &item.body {
        ItemBody::Tool(tool) => Some(tool.as_ref()),
        _ => None,
    })
}

fn permission_frame<'s>(
    ctx: &'s FrameContext,
    (open, request, item): (&OpenRequest, &PermissionRequest, ItemId),
    view: &mut ViewState,
    position: DialogPosition,
) -> DialogFrame<'s> {
    let tool = tool_of(ctx, item);
    let diffs = tool.and_then(diffs_of).unwrap_or_default();
    let counts = counts_of(&diffs);
    let is_full = ctx.keys.is_full_screen;
    let cols = position.cols();
    let kind = tool.map_or(ToolKind::Other, |tool| tool.kind);
    let protected = tool.map(|tool| protected_files(ctx.state, ctx.session, tool)).unwrap_or_default();
    // The heading is visible on any screen.
    let title = if protected.is_empty() { question(tool) } else { question_of_protected(kind) };
    let mut sheet =
        DialogFrame { title: title.to_owned(), tag: place_in_queue(ctx), ..DialogFrame::default() };

    let agent = ctx.agent();
    let (wants, what) = requested_action(ctx, tool);
    let mut left = vec![ctx.span(Role::Dialog, format!("{agent} asks to {wants} "))];
    let mut right = counts_line(counts, &ctx.render);
    if let Some(first) = right.spans.first_mut() {
        first.content = first.content.trim_start().to_owned().into();
    }
    if ctx.request_view.has_changed {
        let text = format!("{} The request has changed; review it again.", ctx.render.glyphs.warn);
        sheet.head.extend(wrapped(ctx, Role::Warning, &text, cols));
    }
    let is_low = position.rows() < LOW_ROWS && !is_full;
    if let Some(rule) = tool.and_then(|tool| tool.asking_rule.as_deref()) {
        sheet.head.extend(few(wrapped(ctx, Role::Warning, &rule_note(rule), cols), is_low));
    }
    for (path, why) in protected {
        let path = ctx.render.exact_path(&path);
        let text = format!("{} Protected file: {path}. {}", ctx.render.glyphs.warn, why.description());
        sheet.head.extend(few(wrapped(ctx, Role::Warning, &text, cols), is_low));
    }
    let lead_cols = left.iter().map(Span::width).sum::<usize>() + right.width() + 1;
    let room = usize::from(cols).saturating_sub(lead_cols);
    // A truncated name must not be approved, so a long one gets its own lines, unless the screen is too
    // small.
    let is_apart = text::width(&what) > room && !is_low;
    if !is_apart {
        left.push(ctx.span(Role::TextStrong, text::truncate_path(&what, room)));
    }
    sheet.head.push(spread(left, right, cols).into());
    if is_apart {
        sheet.head.extend(wrapped(ctx, Role::TextStrong, &what, cols));
    }
    if let Some(tool) = tool {
        let key = body_key(ctx, open, Some((tool, item)), cols);
        view.asked.follow(key, || {
            (ToolBody::of(tool, ctx.session, &ctx.render, cols), risks(ctx.state, open, ctx.session))
        });
        sheet.head.extend(risk_rows(ctx, &view.asked.risks, cols, is_low));
        // Names files that are listed further down.
        let body = view.asked.body.borrow();
        if !body.names.is_empty() && body.len() > usize::from(position.rows() / 3) {
            let names = text::truncate(&format!("More input: {}", body.names), usize::from(cols));
            sheet.head.push(Line::from(ctx.span(Role::Warning, names)).into());
        }
        // The agent's title, unless it repeats the line above.
        let title = short(&tool.title);
        let is_shown = body.shows_title || says_the_same(&title, &what) || is_in_command(tool);
        if !title.is_empty() && !is_shown {
            sheet.head.extend(few(wrapped(ctx, Role::TextDim, &title, cols), is_low));
        }
    }

    if let Some(note) = &request.tool.note {
        sheet.head.extend(few(wrapped(ctx, Role::TextDim, &short(note), cols), is_low));
    }

    let selected = ctx.request_view.selected;
    (sheet.foot, sheet.pinned) = options::rows(ctx, request, Some(selected), cols);
    if let Some(left) = time_left(ctx) {
        sheet.foot.extend(wrapped(ctx, Role::TextDim, &left, cols));
    }
    if request.options.is_empty() {
        let text = "The agent offers no options; the request can only be cancelled.";
        sheet.foot.extend(wrapped(ctx, Role::TextDim, text, cols));
    }
    let full = if is_full { "exit full screen" } else { "full screen" };
    sheet.set_hints([
        ctx.hint(Context::Permission, Action::Accept, "answer"),
        ctx.hint(Context::Permission, Action::Escape, escape_means(ctx)),
        ctx.hint(Context::Main, Action::AnswerRequest, "prompt").filter(|_| !ctx.keys.has_dialog),
        ctx.hint(Context::Permission, Action::RejectWithReason, "reject with a reason"),
        ctx.hint(Context::Permission, Action::FullScreen, full),
        ctx.hint(Context::Permission, Action::ToggleDiffLayout, ctx.other_layout(cols, &diffs))
            .filter(|_| has_diff(ctx, item)),
        ctx.hint(Context::Permission, Action::InspectItem, "show all input").filter(|_| tool.is_some()),
        ctx.hint(Context::Permission, Action::AllowByRule, "allow by rule"),
    ]);
    sheet.scroll_hint = ctx.hint(Context::Permission, Action::PageDown, "scroll");
    sheet.note_guard(ctx);
    with_body(ctx, sheet, view)
}

fn with_body<'s>(ctx: &'s FrameContext, mut sheet: DialogFrame<'s>, view: &ViewState) -> DialogFrame<'s> {
    let saved = Rc::clone(&view.asked.body);
    let (rows, first) = (saved.borrow().len(), saved.borrow().first_change);
    let make = move |range: Range<usize>| {
        let lines = saved.borrow_mut().lines(range, &ctx.render);
        lines.into_iter().map(Row::from).collect()
    };
    sheet.window = Some(Window { rows, marked: None, first, make: Box::new(make) });
    sheet
}

/// The request that is being rejected with a reason, its session, and the input of the reason.
pub fn rejected(app: &App) -> Option<(&Session, &OpenRequest, &LineDialog)> {
    let dialog = app.layers.top::<LineDialog>()?;
    let (session, request_id) = dialog.rejected()?;
    let session = app.state.sessions.get(&session)?;
    let request = session.requests.iter().find(|open| open.request_id == request_id)?;
    Some((session, request, dialog))
}

/// Formats `tab 2`.
pub(super) fn tab_of(ctx: &FrameContext, key: SessionKey) -> String {
    let position = tab::tabs(ctx.state).position(|session| session.key == key).unwrap_or(0);
    format!("tab {}", position + 1)
}

/// `1 of 3` if more requests are open; in the inbox after the tab.
pub(super) fn place_in_queue(ctx: &FrameContext) -> String {
    let requests = &ctx.session.requests;
    let position = requests.iter().position(|open| Some(open.request_id) == ctx.keys.request).unwrap_or(0);
    let place = (requests.len() > 1).then(|| format!("{} of {}", position + 1, requests.len()));
    let is_in_inbox = ctx.keys.is_in_inbox;
    let tab = is_in_inbox.then(|| tab_of(ctx, ctx.session.key));
    tab.into_iter().chain(place).collect::<Vec<_>>().join(", ")
}

/// Text of the agent on one line; long texts are shortened in the middle.
fn short(text: &str) -> String {
    let (head, rest) = text::clip(text, WORDS_BYTES);
    let head = text::reveal_one_line(head);
    rest.map_or_else(
        || head.clone(),
        |(left_out, tail)| format!("{head} {} {}", omitted(left_out), text::reveal_one_line(tail)),
    )
}

/// Says how much of a text is not shown.
fn omitted(bytes: usize) -> String {
    format!("… {} omitted …", byte_size(bytes as u64))
}

/// The first of these rows; full screen shows the rest.
fn few(mut rows: Vec<Row>, is_low: bool) -> Vec<Row> {
    let max = if is_low { 1 } else { 3 };
    if rows.len() > max
        && let Some(last) = rows.get_mut(max - 1)
    {
        last.line.push_span(" …");
    }
    rows.truncate(max);
    rows
}

fn counts_of(diffs: &[Diff]) -> (usize, usize) {
    diffs.iter().fold((0, 0), |sum, diff| (sum.0 + diff.added, sum.1 + diff.removed))
}

fn body_key(
    ctx: &FrameContext,
    request: &OpenRequest,
    call: Option<(&ToolCall, ItemId)>,
    cols: u16,
) -> BodyKey {
    let rev = call.and_then(|(_, item)| ctx.session.transcript.get(item)).map_or(0, |item| item.rev);
    let output = call.iter().flat_map(|(call, _)| &call.content).map(|content| match content {
        ToolContent::Terminal(id) => {
            ctx.session.terminals.get(id).map_or(0, |view| view.dropped_bytes + view.output.len() as u64)
        }
        _ => 0,
    });
    BodyKey {
        conn: request.conn,
        request_id: request.request_id,
        rev,
        plans: call.map(|(call, _)| ctx.session.asked_plans(call).to_vec()).unwrap_or_default(),
        output_bytes: output.sum(),
        cols,
        layout: ctx.render.diff_layout,
        theme: ctx.render.theme.name.clone(),
        epochs: (highlight::epoch(), picture::rev()),
    }
}

/// The remaining time before the agent's timeout, if it has one.
fn time_left(ctx: &FrameContext) -> Option<String> {
    let request = ctx.session.requests.iter().find(|open| Some(open.request_id) == ctx.keys.request)?;
    let limit = ctx.state.conns.get(&request.conn)?.capabilities().permission_limit_secs?;
    let waited = ctx.render.now.saturating_duration_since(request.since).as_secs();
    if ctx.state.conns.get(&request.conn)?.capabilities().deaf_in_turn {
        return Some(format!(
            "The agent cannot receive answers during a turn and rejects the request after {limit} s."
        ));
    }
    Some(match u64::from(limit).checked_sub(waited).filter(|left| *left > 0) {
        Some(left) => format!("The agent rejects the request in {left} s."),
        None => "The agent's time limit has passed. Your answer is sent, but may be ignored.".to_owned(),
    })
}

/// The description of a file or command that needs confirmation, with the reason.
pub(super) fn access_head(ctx: &FrameContext, request: &AccessRequest, cols: u16) -> Vec<Row> {
    let agent = ctx.agent();
    let mut rows = Vec::new();
    let mut file = |requests: &str, path: &Path| {
        let asked = match &request.work {
            AccessWork::File(job) => job.path.as_path(),
            AccessWork::Run(..) => path,
        };
        rows.extend(wrapped(ctx, Role::Dialog, &format!("{agent} asks to {requests}"), cols));
        let shown = |path: &Path| ctx.render.exact_path(path);
        rows.extend(wrapped(ctx, Role::TextStrong, &shown(asked), cols));
        if asked != path {
            let real = format!("resolves to {}", shown(path));
            rows.extend(wrapped(ctx, Role::Warning, &real, cols));
        }
    };
    match &request.access {
        Access::Read { path } => file("read", path),
        Access::Write { path } => file("write", path),
        Access::Run(_) | Access::SignIn { .. } => {
            rows.extend(wrapped(ctx, Role::Dialog, &format!("{agent} asks to run this command:"), cols));
        }
    }
    rows.extend(wrapped(ctx, Role::Warning, request.why.description(), cols));
    if let Some(rule) = &request.rule {
        rows.extend(wrapped(ctx, Role::Warning, &rule_note(rule), cols));
    }
    rows
}

/// The rule that asks, as written in the configuration.
pub fn rule_note(rule: &str) -> String {
    format!("Rule: {}", visible(rule))
}

/// What a command may do, with the words that show it: `Uses the network: curl example.com`.
pub fn risk_texts(risks: &[Risk]) -> impl Iterator<Item = String> {
    risks.iter().map(|risk| {
        let texts = risk.texts.iter().map(|text| text::truncate(&text::reveal_one_line(text), RISK_COLS));
        format!("{}: {}", risk.kind.description(), texts.collect::<Vec<_>>().join(", "))
    })
}

fn risk_rows(ctx: &FrameContext, risks: &[Risk], cols: u16, is_low: bool) -> Vec<Row> {
    if risks.is_empty() {
        return Vec::new();
    }
    let text = risk_texts(risks).collect::<Vec<_>>().join(" · ");
    few(wrapped(ctx, Role::Warning, &format!("{} {text}", ctx.render.glyphs.warn), cols), is_low)
}

/// The contents of the confirmation of a file or command, with all details and the reason.
fn access_frame<'s>(
    ctx: &'s FrameContext,
    (open, request): (&OpenRequest, &AccessRequest),
    view: &mut ViewState,
    position: DialogPosition,
) -> DialogFrame<'s> {
    let cols = position.cols();
    let title = request.why.heading(&request.access);
    let mut sheet =
        DialogFrame { title: title.to_owned(), tag: place_in_queue(ctx), ..DialogFrame::default() };
    sheet.head = access_head(ctx, request, cols);
    let key = body_key(ctx, open, None, cols);
    view.asked.follow(key, || {
        (ToolBody::of(&request.call, ctx.session, &ctx.render, cols), risks(ctx.state, open, ctx.session))
    });
    sheet.head.extend(risk_rows(ctx, &view.asked.risks, cols, position.rows() < LOW_ROWS));
    for (index, label) in request.labels().iter().enumerate() {
        let is_selected = index == ctx.request_view.selected;
        let begin = sheet.foot.len();
        sheet.foot.extend(choice(ctx, index, label, is_selected, cols));
        // The answer that rejects comes last.
        sheet.pinned = begin..sheet.foot.len();
    }
    let hints = [
        ctx.hint(Context::Permission, Action::Accept, "answer"),
        ctx.hint(Context::Permission, Action::Escape, escape_means(ctx)),
        ctx.hint(Context::Permission, Action::RejectWithReason, "reject with a reason"),
        ctx.hint(Context::Permission, Action::AllowByRule, "allow by rule"),
    ];
    sheet.scroll_hint = ctx.hint(Context::Permission, Action::PageDown, "scroll");
    sheet.hints = hints.into_iter().flatten().collect();
    sheet.note_guard(ctx);
    with_body(ctx, sheet, view)
}

/// The contents of the confirmation of a URL: the complete URL, its host first.
fn url_frame<'s>(
    ctx: &'s FrameContext,
    message: &str,
    url: &str,
    position: DialogPosition,
) -> DialogFrame<'s> {
    let cols = position.cols();
    let mut sheet =
        DialogFrame { title: "Open link?".to_owned(), tag: place_in_queue(ctx), ..DialogFrame::default() };
    let line = format!("{} asks to open a page on ", ctx.agent());
    let facts = inspect_url(url);
    let left = vec![ctx.span(Role::Dialog, line), ctx.span(Role::TextStrong, text::one_line(&facts.host))];
    sheet.head.push(Row::from(spread(left, Line::default(), cols)));
    sheet.body = wrapped(ctx, Role::Dialog, message, cols);
    if !sheet.body.is_empty() {
        sheet.body.push(Row::default());
    }
    let address = Line::from(ctx.span(Role::Link, text::reveal_line(url)));
    sheet.body.extend(text::hard_wrap(&address, cols).into_iter().map(Row::from));
    for warning in &facts.warnings {
        sheet.body.extend(wrapped(
            ctx,
            Role::Warning,
            &format!("{} {warning}", ctx.render.glyphs.warn),
            cols,
        ));
    }
    for (index, label) in URL_OPTIONS.iter().enumerate() {
        let is_selected = index == ctx.request_view.selected;
        sheet.foot.extend(choice(ctx, index, label, is_selected, cols));
    }
    let hints = [
        ctx.hint(Context::Choice, Action::Accept, "answer"),
        ctx.hint(Context::Choice, Action::Escape, "cancel"),
    ];
    sheet.scroll_hint = ctx.hint(Context::Choice, Action::PageDown, "scroll");
    sheet.hints = hints.into_iter().flatten().collect();
    sheet.note_guard(ctx);
    sheet
}

pub fn question(tool: Option<&ToolCall>) -> &'static str {
    match tool.map_or(ToolKind::Other, |tool| tool.kind) {
        _ if tool.is_some_and(is_plan) => "Approve the plan?",
        ToolKind::Edit => "Allow this edit?",
        ToolKind::Execute => "Allow this command?",
        ToolKind::Delete => "Allow this deletion?",
        ToolKind::Move => "Allow this move?",
        ToolKind::Read => "Allow this read?",
        ToolKind::Search => "Allow this search?",
        ToolKind::Fetch => "Allow this request?",
        ToolKind::SwitchMode => "Allow this mode change?",
        ToolKind::Think | ToolKind::Other => "Allow this?",
    }
}

/// Whether a change of the mode is the approval of a plan, which the content shows.
fn is_plan(tool: &ToolCall) -> bool {
    let is_text = |content: &ToolContent| matches!(content, ToolContent::Block(ContentBlock::Text(text)) if !text.trim().is_empty());
    let names_plan = || {
        let input = tool.raw_input.as_ref().is_some_and(|raw| raw.0.contains("\"plan\":"));
        input || tool.title.to_lowercase().contains("plan")
    };
    tool.kind == ToolKind::SwitchMode && tool.content.iter().any(is_text) && names_plan()
}

/// The heading for a change of a protected file.
fn question_of_protected(kind: ToolKind) -> &'static str {
    match kind {
        ToolKind::Edit => "Edit a protected file?",
        ToolKind::Delete => "Delete a protected file?",
        ToolKind::Move => "Move a protected file?",
        _ => "Change a protected file?",
    }
}

/// Whether a title only repeats the line above it: `Edit notes.txt` below `asks to change src/notes.txt`.
fn says_the_same(title: &str, what: &str) -> bool {
    if what.is_empty() {
        return false;
    }
    if what.contains(title) || title.contains(what) {
        return true;
    }
    let Some((_, object)) = title.split_once(' ') else { return false };
    let object = object.trim_matches(['`', '"', '\'', ' ']);
    !object.is_empty() && (what == object || what.ends_with(&format!("/{object}")))
}

/// The files of a call, as far as they fit on one line.
fn names(tool: &ToolCall, render: &RenderContext<'_>) -> Option<String> {
    let mut paths: Vec<String> =
        named_paths(tool).into_iter().map(|path| short_path(&render.exact_path(path))).collect();
    let more = paths.len().saturating_sub(NAMED_FILES);
    paths.truncate(NAMED_FILES);
    let names = paths.join(", ");
    let tail = if more > 0 { format!(" and {more} more") } else { String::new() };
    (!names.is_empty()).then(|| names + &tail)
}

/// Shortens a very long path in the middle.
fn short_path(path: &str) -> String {
    let (head, rest) = text::clip(path, PATH_BYTES);
    rest.map_or_else(|| head.to_owned(), |(left_out, tail)| format!("{head} {} {tail}", omitted(left_out)))
}

pub(super) fn requested_action(ctx: &FrameContext, tool: Option<&ToolCall>) -> (&'static str, String) {
    let Some(tool) = tool else { return ("perform an unspecified action", String::new()) };
    let title = short(&tool.title);
    let name = || names(tool, &ctx.render).unwrap_or_else(|| title.clone());
    let named =
        || named_text(tool).map_or_else(|| title.clone(), |text| short_path(&text::reveal_line(text)));
    match tool.kind {
        // Whether the file existed is not repeated above the change.
        ToolKind::Edit => match diffs_of(tool).as_deref().map(Vec::as_slice) {
            Some([Diff { status: FileStatus::New, .. }]) => ("create", name()),
            Some([Diff { status: FileStatus::Deleted, .. }]) => ("delete", name()),
            _ => ("change", name()),
        },
        ToolKind::Delete => ("delete", name()),
        ToolKind::Move => ("move", name()),
        ToolKind::Read => ("read", name()),
        ToolKind::Search => ("search for", named()),
        ToolKind::Fetch => ("fetch", named()),
        ToolKind::Execute if tool.input.command.is_some() || is_command_in_title(tool) => {
            ("run a command", String::new())
        }
        ToolKind::Execute => ("run", title),
        _ if is_plan(tool) => ("carry out this plan:", title),
        ToolKind::SwitchMode if title.is_empty() => ("switch to another mode", String::new()),
        ToolKind::SwitchMode => ("switch to another mode:", title),
        ToolKind::Think | ToolKind::Other => ("use", title),
    }
}

/// Whether the body of the dialog shows the title as the command.
fn is_command_in_title(tool: &ToolCall) -> bool {
    command_in_title(tool.kind, &tool.title, &tool.content, &tool.input).is_some()
}

#[cfg(test)]
mod tests {
    use super::says_the_same;

    #[test]
    fn repeated_titles_are_detected() {
        for title in
            ["Edit notes.txt", "Write `src/notes.txt`", "src/notes.txt", "notes.txt", "Edit /a/src/notes.txt"]
        {
            assert!(says_the_same(title, "/a/src/notes.txt"), "{title}");
        }
        for title in ["Add the missing test", "Edit otes.txt", "Edit notes.txt and run it"] {
            assert!(!says_the_same(title, "/a/src/notes.txt"), "{title}");
        }
        assert!(!says_the_same("cargo test", ""));
    }
}
