//! The list of sessions, and the search of their contents.
//!
//! Shows one row per session, and a preview of the selected one. `core` filters and sorts the list.
//!
//! Invariants: only visible rows are created.

use std::fmt::Write as _;
use std::ops::Range;

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::style::Style;

use super::super::dialog_frame::{DialogFrame, DialogPosition, Row, Size, input, spread, wrapped};
use super::list::{Scope, SessionEntry, SessionsDialog, Sort, TextSearch};
use crate::config::keymap::Context;
use crate::model::{Action, ArchiveHit};
use crate::ui::canvas::Canvas;
use crate::ui::frame_context::FrameContext;
use crate::ui::hits::Hit;
use crate::ui::markdown;
use crate::ui::text;
use crate::ui::text::counted;
use crate::ui::text::{Line, Span};
use crate::ui::theme::Role;
use crate::ui::transcript;
use crate::ui::view_state::ViewState;

/// Minimum screen height for the preview of the selected session.
const PREVIEW_ROWS: u16 = 24;

/// Minimum width for the folder column.
const FOLDER_COLS: u16 = 60;

/// Minimum width of the last reply.
const REPLY_COLS: usize = 16;

/// Minimum screen height for the headings of groups.
const GROUP_ROWS: u16 = 18;

pub(super) fn draw(
    ctx: &FrameContext,
    dialog: &SessionsDialog,
    view: &mut ViewState,
    area: Rect,
    buf: &mut Canvas,
) -> Option<Position> {
    let position = DialogPosition::new(area, Size::Large, false);
    let cols = position.cols();
    let mut sheet =
        DialogFrame { title: title(dialog).to_owned(), tag: tag(dialog), ..DialogFrame::default() };
    let hint = if dialog.text.is_some() {
        "text, agent:NAME kind:edit is:error days:7 in:here"
    } else {
        "type to filter"
    };
    sheet.head.push(input(ctx, &dialog.filter, hint, false, cols));
    let preview_rows = if area.height >= PREVIEW_ROWS && dialog.text.is_none() { area.height / 4 } else { 0 };
    sheet.foot = wrapped(ctx, Role::TextDim, &note(ctx, dialog), cols);
    // The rest of the dialog: heading, filter, note, hints, and the blank rows between them.
    let around = if area.height < 18 { 4 } else { 12 };
    let room = usize::from(area.height.saturating_sub(around + preview_rows))
        .saturating_sub(sheet.foot.len())
        .max(1);
    let (count, marked) = match &dialog.text {
        Some(text) => (text.hits.len(), text.selected),
        None => (dialog.matches.len(), dialog.selected),
    };
    let group = |position: usize| {
        let is_grouped = area.height >= GROUP_ROWS && dialog.is_grouped();
        let row = dialog.matches.get(position).and_then(|row| dialog.rows.get(*row));
        row.filter(|_| is_grouped).map(|row| row.group(dialog.today_ms))
    };
    let shown = visible(&group, count, marked, room);
    let columns = columns(ctx, dialog, shown.clone(), cols);
    for position in shown.clone() {
        if let Some(heading) =
            group(position).filter(|_| position == shown.start || group(position - 1) != group(position))
        {
            let heading = text::one_line(heading);
            sheet.body.push(Row::from(Line::from(ctx.span(Role::Heading, heading))));
        }
        let line = match &dialog.text {
            Some(text) => text.hits.get(position).map(|hit| hit_line(ctx, hit, cols)),
            None => dialog
                .matches
                .get(position)
                .and_then(|row| dialog.rows.get(*row))
                .map(|row| row_line(ctx, dialog, row, &columns, cols)),
        };
        let hit = u16::try_from(position).ok().map(|position| Hit::MarkAnd(position, Action::Accept));
        let is_selected = position == marked;
        sheet.body.push(Row { line: line.unwrap_or_default(), hit, is_selected, ..Row::default() });
    }
    if count == 0 {
        sheet.body.extend(wrapped(ctx, Role::TextDim, &nothing(ctx, dialog), cols));
    }
    sheet.body_rows = if preview_rows > 0 { room } else { sheet.body.len().clamp(3, room.max(3)) };
    sheet.max_body = room;
    if preview_rows > 0 {
        sheet.foot.extend(preview(ctx, dialog, view, cols, preview_rows, area));
    }
    sheet.hints = hints(ctx, dialog);
    sheet.draw(ctx, position, view, buf)
}

fn title(dialog: &SessionsDialog) -> &'static str {
    if dialog.text.is_some() { "Search all sessions" } else { "Sessions" }
}

fn tag(dialog: &SessionsDialog) -> String {
    match &dialog.text {
        Some(text) if text.hits.is_empty() => String::new(),
        Some(text) => text.hits.len().to_string(),
        None if dialog.filter.text.trim().is_empty() => dialog.matches.len().to_string(),
        None => format!("{} of {}", dialog.matches.len(), dialog.rows.len() - dialog.hidden_count),
    }
}

/// The scope, the sort order, and the number of hidden sessions.
fn note(ctx: &FrameContext, dialog: &SessionsDialog) -> String {
    if let Some(problem) = &dialog.problem {
        return problem.clone();
    }
    if dialog.text.is_some() {
        return "Opens sessions read-only; no agent is started.".to_owned();
    }
    let scope = match dialog.scope {
        Scope::Folder => "This folder",
        Scope::Repository => "This repository and worktrees",
        Scope::All => "All folders",
    };
    let order = match dialog.sort {
        Sort::Time => "newest first",
        Sort::Name => "by name",
        Sort::Agent => "by agent",
        Sort::Folder => "by folder",
    };
    let mut note = format!("{scope}, {order}");
    if dialog.hidden_count > 0 {
        let _ = write!(note, ". {} hidden", dialog.hidden_count);
        if let Some(key) = ctx.key(Context::Sessions, Action::NextScope) {
            let _ = write!(note, " ({key})");
        }
    }
    if dialog.is_loading {
        note.push_str(". Loading more…");
    }
    if let Some(marked) = dialog.marked().filter(|marked| marked.owes_title()) {
        let agent = text::one_line(marked.agent());
        let agent = if agent.is_empty() { "The agent" } else { &agent };
        let _ = write!(note, ". Title not yet sent to {agent}");
    }
    note
}

fn nothing(ctx: &FrameContext, dialog: &SessionsDialog) -> String {
    match &dialog.text {
        Some(TextSearch { is_running: true, .. }) => "Searching…".to_owned(),
        Some(_) if dialog.filter.text.trim().is_empty() => {
            "Type to search messages and tool calls of all saved sessions.".to_owned()
        }
        Some(_) => "No results.".to_owned(),
        None if dialog.is_loading => "Loading sessions…".to_owned(),
        None if !dialog.filter.text.trim().is_empty() && dialog.hidden_matches > 0 => {
            let hidden = counted(dialog.hidden_matches, "hidden session matches", "hidden sessions match");
            let key = ctx.key(Context::Sessions, Action::NextScope);
            let key = key.map(|key| format!(" ({key})")).unwrap_or_default();
            format!("No matches here. {hidden}{key}.")
        }
        None if !dialog.filter.text.trim().is_empty() => "No matches.".to_owned(),
        None if dialog.hidden_count > 0 => "No saved sessions in this folder.".to_owned(),
        None => "No saved sessions yet.".to_owned(),
    }
}

fn hints(ctx: &FrameContext, dialog: &SessionsDialog) -> Vec<(String, String)> {
    let hint = |action, does| ctx.hint(Context::Sessions, action, does);
    let hints = match (&dialog.text, dialog.marked()) {
        (Some(_), _) => vec![
            hint(Action::Accept, "show"),
            hint(Action::SearchSessions, "session names"),
            hint(Action::Escape, "close"),
        ],
        (None, Some(SessionEntry { open: Some(_), .. })) => vec![
            hint(Action::Accept, "show"),
            hint(Action::Remove, "close session"),
            hint(Action::RenameSession, "rename"),
            hint(Action::ForkSession, "fork"),
            hint(Action::HandOver, "hand over"),
            hint(Action::SearchSessions, "search text"),
            hint(Action::NextScope, "scope"),
            hint(Action::Escape, "close"),
        ],
        // A session that only its agent has cannot be read, renamed or exported.
        (None, Some(SessionEntry { saved: None, .. })) => vec![
            hint(Action::Accept, "resume"),
            hint(Action::Remove, "delete"),
            hint(Action::SearchSessions, "search text"),
            hint(Action::NextSort, "sort"),
            hint(Action::NextScope, "scope"),
            hint(Action::Escape, "close"),
        ],
        (None, _) => vec![
            hint(Action::Accept, "resume"),
            hint(Action::ReadSession, "read-only"),
            hint(Action::Remove, "delete"),
            hint(Action::RenameSession, "rename"),
            hint(Action::ExportSession, "export"),
            hint(Action::SearchSessions, "search text"),
            hint(Action::NextSort, "sort"),
            hint(Action::Escape, "close"),
        ],
    };
    hints.into_iter().flatten().collect()
}

/// The rows that fit together with the headings of their groups: the selected one about in the middle, so that the next
/// ones are visible.
fn visible<'a>(
    group: &impl Fn(usize) -> Option<&'a str>,
    count: usize,
    selected: usize,
    room: usize,
) -> Range<usize> {
    if count == 0 {
        return 0..0;
    }
    let selected = selected.min(count - 1);
    // The first visible row has a heading too.
    let mut used = 1 + usize::from(group(selected).is_some());
    let (mut first, mut end) = (selected, selected + 1);
    let cost = |position: usize| 1 + usize::from(group(position) != group(position + 1));
    while first > 0 && used + cost(first - 1) <= room / 2 + 1 {
        used += cost(first - 1);
        first -= 1;
    }
    while end < count && used + cost(end - 1) <= room {
        used += cost(end - 1);
        end += 1;
    }
    while first > 0 && used + cost(first - 1) <= room {
        used += cost(first - 1);
        first -= 1;
    }
    first..end
}

/// The widths of the columns, which are the same in all rows.
struct Columns {
    name: usize,
    about: usize,
    /// 0: there is not enough room for the last replies.
    reply: usize,
}

fn columns(ctx: &FrameContext, dialog: &SessionsDialog, shown: Range<usize>, cols: u16) -> Columns {
    let rows = dialog.matches.get(shown).unwrap_or_default();
    let rows: Vec<&SessionEntry> = rows.iter().filter_map(|row| dialog.rows.get(*row)).collect();
    let widest = |words: &dyn Fn(&SessionEntry) -> String| {
        rows.iter().map(|row| text::width(&words(row))).max().unwrap_or_default()
    };
    let room = usize::from(cols).saturating_sub(widest(&|row| right(dialog, row, cols)) + 4);
    let about = widest(&|row| about(ctx, dialog, row, cols)).min(room * 2 / 5);
    let room = room.saturating_sub(if about > 0 { about + 2 } else { 0 });
    let longest = widest(&name).max(1);
    let short = longest.min(usize::from(cols) * 2 / 5);
    let reply = room.saturating_sub(short + 2);
    let has_replies = reply >= REPLY_COLS && rows.iter().any(|row| !row.last_reply().trim().is_empty());
    if has_replies {
        Columns { name: short, about, reply }
    } else {
        Columns { name: longest.min(room), about, reply: 0 }
    }
}

fn name(row: &SessionEntry) -> String {
    let indent = if row.open.as_ref().is_some_and(|open| open.is_child) { "  subagent " } else { "" };
    format!("{indent}{}", text::one_line(row.name()))
}

/// The agent, folder and branch; those that are the same in each row are omitted.
fn about(ctx: &FrameContext, dialog: &SessionsDialog, row: &SessionEntry, cols: u16) -> String {
    let mut about: Vec<String> = Vec::new();
    if dialog.columns.agent {
        about.push(text::one_line(row.agent()));
    }
    if cols >= FOLDER_COLS && dialog.columns.folder {
        about.push(ctx.path(row.folder()));
    }
    if cols >= FOLDER_COLS && dialog.columns.branch {
        about.push(text::one_line(row.branch()));
    }
    about.retain(|part| !part.is_empty());
    about.join(&format!(" {} ", ctx.render.glyphs.dot))
}

fn right(dialog: &SessionsDialog, row: &SessionEntry, cols: u16) -> String {
    // The heading of the group has the date already.
    let is_dated = dialog.is_grouped() && row.when() == row.group(dialog.today_ms);
    let when = match row.when() {
        _ if is_dated => String::new(),
        // Of the agent's time stamp, the time is left.
        when if dialog.is_grouped() && row.saved.is_none() => {
            when.split(' ').next_back().unwrap_or_default().to_owned()
        }
        when => when,
    };
    let right = match (&row.open, &row.saved) {
        (Some(open), _) => open.state.to_owned(),
        (None, Some(saved)) if saved.open_in.is_some() => "in another parlor".to_owned(),
        (None, Some(saved)) if saved.is_folder_gone => format!("folder missing, {when}"),
        (None, _) if row.is_archived() => format!("archived, {when}"),
        (None, _) if row.is_live() => format!("in use, {when}"),
        (None, Some(saved)) if saved.was_cut => format!("cut, {when}"),
        (None, Some(_)) => when,
        (None, None) => format!("agent only, {when}"),
    };
    text::truncate(&text::one_line(right.trim_end_matches(", ")), usize::from(cols) / 3)
}

/// Formats `• name   agent · folder   last reply      2 h ago`.
fn row_line(
    ctx: &FrameContext,
    dialog: &SessionsDialog,
    row: &SessionEntry,
    columns: &Columns,
    cols: u16,
) -> Line<'static> {
    let is_shown = row.open.as_ref().is_some_and(|open| open.key == ctx.session.key);
    let mark = if is_shown { ctx.marks.current } else { " " };
    let padded = |words: &str, cols: usize| {
        let words = text::truncate(words, cols);
        let fill = " ".repeat(cols.saturating_sub(text::width(&words)));
        words + &fill
    };
    let mut left = vec![
        ctx.span(Role::Accent, format!("{mark} ")),
        ctx.span(Role::Dialog, padded(&name(row), columns.name)),
    ];
    let reply = if columns.reply > 0 {
        markdown::plain_text(row.last_reply(), ctx.render.now)
    } else {
        String::new()
    };
    let parts = [(about(ctx, dialog, row, cols), columns.about), (text::one_line(&reply), columns.reply)];
    for (part, cols) in parts.iter().filter(|(_, cols)| *cols > 0) {
        left.push(ctx.span(Role::TextDim, format!("  {}", padded(part, *cols))));
    }
    let right = right(dialog, row, cols);
    spread(left, Line::from(ctx.span(Role::TextDim, right)), cols)
}

/// Formats `kind  the matches with their context      name`.
fn hit_line(ctx: &FrameContext, hit: &ArchiveHit, cols: u16) -> Line<'static> {
    let name = text::truncate(&text::one_line(&format!("{}, {}", hit.name, hit.when)), usize::from(cols) / 3);
    let kind_role = if hit.is_error { Role::Error } else { Role::Accent };
    let mut left = vec![ctx.span(kind_role, format!("{:<8}", text::truncate(&text::one_line(&hit.kind), 7)))];
    for (index, part) in hit.snippet.split(['\u{2}', '\u{3}']).enumerate() {
        let role = if index % 2 == 1 { Role::Match } else { Role::Dialog };
        // Spaces next to a match are preserved; line breaks become spaces.
        let shown = text::sanitize(part).replace(['\n', '\t'], " ");
        left.push(ctx.span(role, shown));
    }
    spread(left, Line::from(ctx.span(Role::TextDim, format!(" {name}"))), cols)
}

/// The preview of the selected session: the end of its transcript.
fn preview(
    ctx: &FrameContext,
    dialog: &SessionsDialog,
    view: &mut ViewState,
    cols: u16,
    rows: u16,
    area: Rect,
) -> Vec<Row> {
    let rule = ctx.render.glyphs.rule.repeat(usize::from(cols));
    let mut lines = vec![Row::from(Line::from(ctx.span(Role::Rule, rule)))];
    let session = dialog.marked_preview();
    let height = rows.saturating_sub(1).min(area.height);
    let Some(session) = session else {
        let explanation = match dialog.marked() {
            Some(SessionEntry { open: Some(_), .. }) => "Session is open.",
            Some(row) if row.saved.is_none() && row.is_live() => {
                "Stored by the agent only, and in use, possibly by another program."
            }
            Some(SessionEntry { saved: None, listed: Some(_), .. }) => "Stored by the agent only.",
            _ => "",
        };
        lines.extend(wrapped(ctx, Role::TextDim, explanation, cols));
        lines.resize(usize::from(rows), Row::default());
        return lines;
    };
    let turns = dialog.marked().and_then(|row| row.saved.as_ref()).map_or(0, |row| row.turn_count as usize);
    let position = Rect { x: 0, y: 0, width: cols, height };
    let mut page = Canvas::new(cols, height);
    page.set_style(position, ctx.style(Role::Dialog));
    transcript::draw(session, ctx.views.untouched(), &mut view.preview, &ctx.render, position, &mut page);
    lines.extend((0..height).map(|y| Row::from(line_of(&page, y))));
    if let Some(first) = lines.first_mut() {
        let label = format!(" end of session, {} ", counted(turns, "turn", "turns"));
        let rest = usize::from(cols).saturating_sub(text::width(&label) + 2);
        let rule = ctx.render.glyphs.rule;
        *first = Row::from(Line::from(vec![
            ctx.span(Role::Rule, rule.repeat(2)),
            ctx.span(Role::TextDim, label),
            ctx.span(Role::Rule, rule.repeat(rest)),
        ]));
    }
    lines
}

fn line_of(page: &Buffer, y: u16) -> Line<'static> {
    let mut spans: Vec<Span<'static>> = Vec::new();
    let mut skip = 0;
    for x in page.area.left()..page.area.right() {
        let Some(cell) = page.cell((x, y)) else { continue };
        if skip > 0 {
            // The second half of a wide character.
            skip -= 1;
            continue;
        }
        skip = text::width(cell.symbol()).saturating_sub(1);
        let style: Style = cell.style();
        match spans.last_mut() {
            Some(last) if last.style == style => last.content.to_mut().push_str(cell.symbol()),
            _ => spans.push(Span::styled(cell.symbol().to_owned(), style)),
        }
    }
    Line::from(spans)
}

#[cfg(test)]
mod tests;
