//! The list of sessions, and the search of their contents.
//!
//! Shows one row per session, and a preview of the selected one. `app` filters and sorts the list.
//!
//! Invariants: only visible rows are created.

use std::fmt::Write as _;

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::style::Style;

use super::dialog_frame::{DialogFrame, Place, Row, Size, input, spread, words};
use crate::app::{Scope, SessionEntry, SessionsDialog, Sort, TextSearch};
use crate::config::keymap::Context;
use crate::model::{Action, ArchiveHit};
use crate::ui::canvas::Canvas;
use crate::ui::frame_context::{FrameContext, counted};
use crate::ui::text;
use crate::ui::text::{Line, Span};
use crate::ui::theme::Role;
use crate::ui::transcript;
use crate::ui::view_state::{Hit, ViewState};

/// Minimum screen height for the preview of the selected session.
const PREVIEW_ROWS: u16 = 24;

/// Minimum width for the folder column.
const FOLDER_COLS: u16 = 60;

pub(super) fn draw(
    scene: &FrameContext,
    dialog: &SessionsDialog,
    view: &mut ViewState,
    area: Rect,
    buf: &mut Canvas,
) -> Option<Position> {
    let place = Place::new(area, Size::Large, false);
    let cols = place.cols();
    let mut sheet =
        DialogFrame { title: title(dialog).to_owned(), tag: tag(dialog), ..DialogFrame::default() };
    let hint = if dialog.text.is_some() {
        "text, agent:NAME kind:edit is:error days:7 in:here"
    } else {
        "type to filter"
    };
    sheet.head.push(input(scene, &dialog.filter, hint, false, cols));
    let preview_rows = if area.height >= PREVIEW_ROWS && dialog.text.is_none() { area.height / 4 } else { 0 };
    sheet.foot = words(scene, Role::TextDim, &note(scene, dialog), cols);
    // The rest of the dialog: heading, filter, note, hints, and the blank rows between them.
    let around = if area.height < 18 { 4 } else { 12 };
    let room = usize::from(area.height.saturating_sub(around + preview_rows))
        .saturating_sub(sheet.foot.len())
        .max(1);
    let (count, marked) = match &dialog.text {
        Some(text) => (text.hits.len(), text.selected),
        None => (dialog.matches.len(), dialog.selected),
    };
    // Keeps the selection in the middle, so that the next rows are visible.
    let first = marked.saturating_sub(room / 2).min(count.saturating_sub(room));
    for place in first..count.min(first + room) {
        let line = match &dialog.text {
            Some(text) => text.hits.get(place).map(|hit| hit_line(scene, hit, cols)),
            None => dialog
                .matches
                .get(place)
                .and_then(|row| dialog.rows.get(*row))
                .map(|row| row_line(scene, row, cols)),
        };
        let hit = u16::try_from(place).ok().map(|place| Hit::MarkAnd(place, Action::Accept));
        let is_selected = place == marked;
        sheet.body.push(Row { line: line.unwrap_or_default(), hit, is_selected, ..Row::default() });
    }
    if count == 0 {
        sheet.body.extend(words(scene, Role::TextDim, &nothing(dialog), cols));
    }
    sheet.body_rows = if preview_rows > 0 { room } else { count.min(room).max(3) };
    sheet.most_body = room;
    if preview_rows > 0 {
        sheet.foot.extend(preview(scene, dialog, view, cols, preview_rows, area));
    }
    sheet.hints = hints(scene, dialog);
    sheet.draw(scene, place, view, buf)
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
fn note(scene: &FrameContext, dialog: &SessionsDialog) -> String {
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
        if let Some(key) = scene.key(Context::Sessions, Action::NextScope) {
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

fn nothing(dialog: &SessionsDialog) -> String {
    match &dialog.text {
        Some(TextSearch { is_running: true, .. }) => "Searching…".to_owned(),
        Some(_) if dialog.filter.text.trim().is_empty() => {
            "Type to search messages and tool calls of all saved sessions.".to_owned()
        }
        Some(_) => "No results.".to_owned(),
        None if dialog.is_loading => "Loading sessions…".to_owned(),
        None if !dialog.filter.text.trim().is_empty() => "No matches.".to_owned(),
        None if dialog.hidden_count > 0 => "No saved sessions in this folder.".to_owned(),
        None => "No saved sessions yet.".to_owned(),
    }
}

fn hints(scene: &FrameContext, dialog: &SessionsDialog) -> Vec<(String, String)> {
    let hint = |action, does| scene.hint(Context::Sessions, action, does);
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
            hint(Action::SearchSessions, "search text"),
            hint(Action::NextScope, "scope"),
            hint(Action::Escape, "close"),
        ],
        // A session that only its agent has cannot be read, renamed or exported.
        (None, Some(SessionEntry { kept: None, .. })) => vec![
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

/// Formats `• name   agent · folder      2 h ago`.
fn row_line(scene: &FrameContext, row: &SessionEntry, cols: u16) -> Line<'static> {
    let is_shown = row.open.as_ref().is_some_and(|open| open.key == scene.session.key);
    let mark = if is_shown { scene.marks.current } else { " " };
    let indent = if row.open.as_ref().is_some_and(|open| open.is_child) { "  subagent " } else { "" };
    let right = match (&row.open, &row.kept) {
        (Some(open), _) => open.state.to_owned(),
        (None, Some(kept)) if kept.open_in.is_some() => "in another parlor".to_owned(),
        (None, Some(kept)) if kept.is_folder_gone => format!("folder missing, {}", row.when()),
        (None, _) if row.is_archived() => format!("archived, {}", row.when()),
        (None, _) if row.is_live() => format!("in use, {}", row.when()),
        (None, Some(kept)) if kept.was_cut => format!("cut, {}", row.when()),
        (None, Some(_)) => row.when(),
        (None, None) => format!("agent only, {}", row.when()),
    };
    let right = right.trim_end_matches(", ");
    let right = text::truncate(&text::one_line(right), usize::from(cols) / 3);
    let mut about: Vec<String> = vec![text::one_line(row.agent())];
    if cols >= FOLDER_COLS {
        about.push(scene.path(row.folder()));
        about.push(text::one_line(row.branch()));
    }
    about.retain(|part| !part.is_empty());
    let about = about.join(&format!(" {} ", scene.look.glyphs.dot));
    let room = usize::from(cols).saturating_sub(text::width(&right) + 4);
    let about = text::truncate(&about, room * 2 / 5);
    let name_room = room.saturating_sub(text::width(&about) + 2);
    let name = text::truncate(&format!("{indent}{}", text::one_line(row.name())), name_room);
    let left = vec![
        scene.span(Role::Accent, format!("{mark} ")),
        scene.span(Role::Modal, name),
        scene.span(Role::TextDim, format!("  {about}")),
    ];
    spread(left, Line::from(scene.span(Role::TextDim, right)), cols)
}

/// Formats `kind  the matches with their context      name`.
fn hit_line(scene: &FrameContext, hit: &ArchiveHit, cols: u16) -> Line<'static> {
    let name = text::truncate(&text::one_line(&format!("{}, {}", hit.name, hit.when)), usize::from(cols) / 3);
    let kind_role = if hit.is_error { Role::Error } else { Role::Accent };
    let mut left =
        vec![scene.span(kind_role, format!("{:<8}", text::truncate(&text::one_line(&hit.kind), 7)))];
    for (index, part) in hit.snippet.split(['\u{2}', '\u{3}']).enumerate() {
        let role = if index % 2 == 1 { Role::Match } else { Role::Modal };
        // Spaces next to a match are preserved; line breaks become spaces.
        let words = text::sanitize(part).replace(['\n', '\t'], " ");
        left.push(scene.span(role, words));
    }
    spread(left, Line::from(scene.span(Role::TextDim, format!(" {name}"))), cols)
}

/// The preview of the selected session: the end of its transcript.
fn preview(
    scene: &FrameContext,
    dialog: &SessionsDialog,
    view: &mut ViewState,
    cols: u16,
    rows: u16,
    area: Rect,
) -> Vec<Row> {
    let rule = scene.look.glyphs.rule.repeat(usize::from(cols));
    let mut lines = vec![Row::from(Line::from(scene.span(Role::Rule, rule)))];
    let session = dialog.marked_preview();
    let height = rows.saturating_sub(1).min(area.height);
    let Some(session) = session else {
        let words_of = match dialog.marked() {
            Some(SessionEntry { open: Some(_), .. }) => "Session is open.",
            Some(row) if row.kept.is_none() && row.is_live() => {
                "Stored by the agent only, and in use, possibly by another program."
            }
            Some(SessionEntry { kept: None, listed: Some(_), .. }) => "Stored by the agent only.",
            _ => "",
        };
        lines.extend(words(scene, Role::TextDim, words_of, cols));
        lines.resize(usize::from(rows), Row::default());
        return lines;
    };
    let turns = dialog.marked().and_then(|row| row.kept.as_ref()).map_or(0, |row| row.turn_count as usize);
    let place = Rect { x: 0, y: 0, width: cols, height };
    let mut page = Canvas::new(cols, height);
    page.set_style(place, scene.style(Role::Modal));
    transcript::draw(session, &mut view.preview, &scene.look, place, &mut page);
    lines.extend((0..height).map(|y| Row::from(line_of(&page, y))));
    if let Some(first) = lines.first_mut() {
        let label = format!(" end of session, {} ", counted(turns, "turn", "turns"));
        let rest = usize::from(cols).saturating_sub(text::width(&label) + 2);
        let rule = scene.look.glyphs.rule;
        *first = Row::from(Line::from(vec![
            scene.span(Role::Rule, rule.repeat(2)),
            scene.span(Role::TextDim, label),
            scene.span(Role::Rule, rule.repeat(rest)),
        ]));
    }
    lines
}

/// A row of cells as a line.
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
mod tests {
    use std::sync::Arc;

    use crate::app::restore;
    use crate::app::{Modal, Preview, Scope, Session, SessionsDialog, TextSearch};
    use crate::model::{
        ArchiveHit, ArchiveRow, Nearness, Record, RecordedEvent, RecordedSession, SessionInfo, SessionKey,
        SessionPlace,
    };
    use crate::ui::tests::fixture::{SIZES, Stage, ready, text, theme};

    fn stage(count: usize) -> Stage {
        let mut stage = ready();
        let row = |n: usize| ArchiveRow {
            uid: format!("k{n}"),
            agent: "claude".into(),
            folder: "/home/ada/code/shop".into(),
            title: format!("Session number {n} \u{1b}[31m"),
            when: "2 h ago".into(),
            turn_count: 4,
            nearness: if n.is_multiple_of(3) { Nearness::Elsewhere } else { Nearness::Here },
            is_folder_gone: n == 1,
            ..ArchiveRow::default()
        };
        let mut dialog =
            SessionsDialog { kept: (0..count).map(row).map(Arc::new).collect(), ..SessionsDialog::default() };
        dialog.join(&stage.state);
        stage.state.modals.push(Modal::Sessions(Box::new(dialog)));
        stage
    }

    fn dialog(stage: &mut Stage) -> &mut SessionsDialog {
        match stage.state.modals.last_mut() {
            Some(Modal::Sessions(dialog)) => dialog,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn only_visible_rows_are_created() {
        for size in SIZES {
            let mut stage = stage(10_000);
            let dialog = dialog(&mut stage);
            dialog.scope = Scope::All;
            dialog.refilter();
            dialog.selected = 5_000;
            let mut view = stage.view();
            let drawn = text(&stage.draw(&mut view, &theme("dark"), size));
            // Each created row is clickable.
            let rows = view.hits.count_rows();
            assert!(rows > 1 && rows < usize::from(size.1), "{rows} rows at {size:?}");
            let marked = drawn.matches("Session number").count();
            assert!(marked >= rows.min(2), "{drawn}");
            assert!(!drawn.contains('\u{1b}'));
        }
    }

    #[test]
    fn hidden_sessions_are_counted_and_missing_folders_shown() {
        let mut stage = stage(10);
        let drawn = text(&stage.draw(&mut stage.view(), &theme("dark"), (100, 30)));
        assert!(drawn.contains("This folder, newest first. 4 hidden"), "{drawn}");
        assert!(drawn.contains("folder missing, 2 h ago"), "{drawn}");
        dialog(&mut stage).is_loading = true;
        let drawn = text(&stage.draw(&mut stage.view(), &theme("dark"), (100, 30)));
        assert!(drawn.contains("Loading more"), "{drawn}");
    }

    #[test]
    fn unsent_titles_are_noted_below_the_list() {
        let mut stage = stage(4);
        let state = stage.state.clone();
        let shown = dialog(&mut stage);
        for row in &mut shown.kept {
            Arc::make_mut(row).owes_title = row.uid == "k2";
        }
        shown.join(&state);
        let words = "Title not yet sent to claude";
        let mut counted = 0;
        for selected in 0..4 {
            dialog(&mut stage).selected = selected;
            let is_owed = dialog(&mut stage).marked().is_some_and(|row| row.uid() == Some("k2"));
            let drawn = text(&stage.draw(&mut stage.view(), &theme("dark"), (100, 30)));
            assert_eq!(drawn.contains(words), is_owed, "{drawn}");
            counted += u32::from(is_owed);
        }
        assert_eq!(counted, 1);
    }

    #[test]
    fn preview_shows_the_end_of_the_selected_session() {
        let mut stage = stage(5);
        let now = stage.now;
        let event = |text: &str| RecordedEvent {
            at_ms: 0,
            turn: 1,
            record: Record::Prompt { text: text.into(), is_again: false },
        };
        let kept =
            RecordedSession { events: vec![event("mend the 日本 till")], ..RecordedSession::default() };
        let mut session = Session::new(SessionKey(77), SessionPlace::default());
        restore(&mut session, kept, now);
        dialog(&mut stage).preview = Some(Preview { uid: "k1".into(), session: Some(Box::new(session)) });
        let drawn = text(&stage.draw(&mut stage.view(), &theme("dark"), (100, 36)));
        assert!(drawn.contains("end of session, 4 turns") && drawn.contains("mend the 日本 till"), "{drawn}");
        let small = text(&stage.draw(&mut stage.view(), &theme("dark"), (40, 12)));
        assert!(!small.contains("end of session"), "{small}");
    }

    #[test]
    fn session_status_from_the_agent_is_shown_on_the_right() {
        let mut stage = stage(0);
        let listed = |id: &str, is_archived, is_live| SessionInfo {
            id: id.into(),
            cwd: "/home/ada/code/shop".into(),
            title: Some(format!("Session {id}")),
            updated_at: Some("2026-11-20T14:03:22Z".into()),
            additional_directories: Vec::new(),
            is_archived,
            is_live,
        };
        *stage.state.listed_mut() = vec![
            listed("plain", false, None),
            listed("used", false, Some(true)),
            listed("away", true, Some(false)),
        ];
        let state = stage.state.clone();
        let shown = dialog(&mut stage);
        shown.scope = Scope::All;
        shown.join(&state);
        let drawn = text(&stage.draw(&mut stage.view(), &theme("dark"), (100, 30)));
        for (name, words) in [("plain", "agent only"), ("used", "in use"), ("away", "archived")] {
            let row =
                drawn.lines().find(|line| line.contains(&format!("Session {name}"))).unwrap_or_default();
            assert!(row.contains(&format!("{words}, 2026-11-20 14:03")), "{drawn}");
        }
        let mut theirs = 0;
        for selected in 0..4 {
            let shown = dialog(&mut stage);
            shown.selected = selected;
            if shown.marked().is_some_and(|row| row.open.is_none() && row.kept.is_none()) {
                let drawn = text(&stage.draw(&mut stage.view(), &theme("dark"), (100, 30)));
                assert!(drawn.contains("enter resume") && drawn.contains("scope"), "{drawn}");
                assert!(!drawn.contains("read-only") && !drawn.contains("F2 rename"), "{drawn}");
                theirs += 1;
            }
        }
        assert!(theirs > 0, "one of them exists only at its agent");
    }

    #[test]
    fn matches_are_shown_with_their_context() {
        let mut stage = stage(1);
        let hit = ArchiveHit {
            uid: "k1".into(),
            name: "The till".into(),
            agent: "claude".into(),
            folder: "/home/ada/code/shop".into(),
            seq: 3,
            kind: "edit".into(),
            when: "2 h ago".into(),
            is_error: false,
            snippet: "let the \u{2}rounding\u{3} be".into(),
        };
        dialog(&mut stage).text = Some(TextSearch { hits: vec![hit], ..TextSearch::default() });
        let drawn = text(&stage.draw(&mut stage.view(), &theme("dark"), (100, 30)));
        assert!(drawn.contains("edit    let the rounding be"), "{drawn}");
        assert!(drawn.contains("The till, 2 h ago"), "{drawn}");
    }
}
