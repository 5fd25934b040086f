//! Tool calls: a head line, and a body according to the folding rules.
//!
//! Unless the user or the configuration decides otherwise (`session_view::fold`), changes show their first rows,
//! commands and calls of unknown kind both ends of their output, failures their reason; all else is folded to its head.

mod preview;

use crate::core::state::duplicate_diffs::KnownChanges;
use crate::core::{Decision, Item, OpenRequestKind, Session, ToolCall};
use crate::model::{
    AccessRecord, ContentBlock, Fold, ItemId, Location, Target, ToolContent, ToolKind, ToolStatus,
};
use crate::ui::diff::cache::{self, Key, Shown};
use crate::ui::markdown::Markdown;
use crate::ui::render_context::{RenderContext, duration};
use crate::ui::session_view::fold::{fold_of, has_output_alone};
use crate::ui::session_view::{ItemView, SessionView};
use crate::ui::terminal;
use crate::ui::text::copy_hint::Mark;
use crate::ui::text::{Line, Span, counted, link, spans_width, truncate, truncate_path, width};
use crate::ui::theme::Role;

use super::file_status::{counts_line, diff_head, needs_head, status_line};
use super::layout::{Context, Layout, LineRun, Source, TextPart, resource_pieces, text_pieces};
use super::{
    access_lines, changes_of, failure_summary, hidden_commands, kind_word, output, placed, raw_lines,
    short_lines,
};
use preview::{ENDS, USER_ENDS};

/// Rows shown of a folded change.
const DIFF_PREVIEW_ROWS: usize = 12;
const DIFF_PIECE_ROWS: usize = 48;
/// Lines of output shown while a command is running, and when it failed.
const OUTPUT_RUNNING_LINES: usize = 8;
/// Lines of a terminal's history per piece.
const OUTPUT_PIECE_LINES: usize = 64;
/// Lines shown of a folded failure's reason.
const REASON_LINES: usize = 6;
/// Maximum bytes shown of a text with cursor movements, from its end.
const EMULATED_BYTES: usize = 1 << 20;
/// Columns of the kind with the following blank.
const KIND_COLS: usize = 8;
/// The body is aligned with the kind.
const BODY_INDENT: u16 = 2;

/// Whether a call can be grouped with its neighbours on one line: a successful, folded read or search.
pub(crate) fn is_groupable(view: &SessionView, session: &Session, item: &Item, tool: &ToolCall) -> bool {
    view.folds.groups
        && item.end.is_none()
        && matches!(tool.kind, ToolKind::Read | ToolKind::Search)
        && tool.status == ToolStatus::Completed
        && changes_of(tool).is_empty()
        && fold_of(view, session, item, tool) == Fold::Closed
}

pub(super) fn lay_out(layout: &mut Layout, item: &Item, tool: &ToolCall, context: &mut Context<'_>) {
    layout.pieces.clear();
    layout.is_live = status_of(context.session, item.id, tool) == ToolStatus::InProgress;
    layout.indent = indent(context.session, item, tool);
    follow_changes(layout, context.view.item(item.id), tool);
    let cols = context.cols.saturating_sub(layout.indent);
    layout.pieces.push(LineRun::ready(vec![head(item.id, tool, layout.counts(), context, cols)], 0));
    let fold = fold_of(context.view, context.session, item, tool);
    let body_cols = cols.saturating_sub(BODY_INDENT).max(8);
    let mut body = Body { layout, item, tool, fold, cols: body_cols, context };
    if tool.status == ToolStatus::Failed {
        body.add_reason();
    }
    // The dialog of the request shows the body.
    if fold != Fold::Closed && !is_asked_first(body.context.session, item.id) {
        body.add();
    }
}

/// Whether the first open request is the permission for a call.
pub(crate) fn is_asked_first(session: &Session, call: ItemId) -> bool {
    let first = session.requests.front().map(|open| &open.kind);
    matches!(first, Some(OpenRequestKind::Permission { tool, .. }) if *tool == call)
}

/// Updates the diffs. The previous ones stay until the new ones were compared.
fn follow_changes(layout: &mut Layout, item: &ItemView, tool: &ToolCall) {
    let changes = placed(tool, &changes_of(tool));
    let shown = Shown::of(item);
    let key = Key::of(&changes, &shown);
    if key == layout.diff_key && !layout.waits {
        return;
    }
    match cache::diffs(&changes, &shown) {
        Some(diffs) => (layout.diffs, layout.waits) = (diffs, false),
        None => layout.waits = true,
    }
    layout.diff_key = key;
}

/// Columns by which a subagent's call is indented: two for each of its parents.
pub(crate) fn indent(session: &Session, item: &Item, tool: &ToolCall) -> u16 {
    let mut depth = 0;
    let mut parent = tool.parent.as_ref();
    while let (Some(id), true) = (parent, depth < 3) {
        depth += 1;
        let known = session.current_tool(id).and_then(|id| session.transcript.get(id));
        parent = match known.filter(|known| known.turn == item.turn && known.id != item.id) {
            Some(Item { body: crate::core::ItemBody::Tool(parent), .. }) => parent.parent.as_ref(),
            _ => None,
        };
    }
    depth * 2
}

/// Whether an open request is the permission for a call.
fn is_asked(session: &Session, call: ItemId) -> bool {
    let is_it =
        |kind: &OpenRequestKind| matches!(kind, OpenRequestKind::Permission { tool, .. } if *tool == call);
    session.requests.iter().any(|open| is_it(&open.kind))
}

/// The status to show: a call that waits for its permission does not run, even if the agent says so.
fn status_of(session: &Session, id: ItemId, tool: &ToolCall) -> ToolStatus {
    if is_asked(session, id) { ToolStatus::Pending } else { tool.shown_status() }
}

pub(super) fn head(
    id: ItemId,
    tool: &ToolCall,
    counts: (usize, usize),
    context: &Context<'_>,
    cols: u16,
) -> Line<'static> {
    let render = context.render;
    let glyphs = render.glyphs;
    let style = |role: Role| render.theme.style(role);
    let status = status_of(context.session, id, tool);
    let (mark, role) = match status {
        ToolStatus::Pending => (glyphs.pending, Role::TextDim),
        ToolStatus::InProgress => (render.spinner(), Role::Running),
        // The agent ended its turn without reporting the end of the call, which may still run.
        ToolStatus::Completed if tool.is_status_assumed => (glyphs.dot, Role::TextDim),
        ToolStatus::Completed => (glyphs.check, Role::Success),
        ToolStatus::Failed => (glyphs.cross, Role::Error),
        ToolStatus::Cancelled => (glyphs.cross, Role::TextDim),
    };
    let mut facts = counts_line(counts, render).spans;
    if let Some(code) = tool.exit_code.or_else(|| exit_code(tool, context.session)).filter(|code| *code != 0)
    {
        facts.push(Span::styled(format!("  exit {code}"), style(Role::Error)));
    }
    if tool.calls > 0 {
        let calls = counted(tool.calls, "tool call", "tool calls");
        facts.push(Span::styled(format!("  {calls}"), style(Role::TextDim)));
    }
    let word = match (&tool.decision, tool.status) {
        _ if is_asked(context.session, id) => Some(("answer required", Role::Warning)),
        _ if tool.is_own && tool.accesses.iter().any(AccessRecord::is_refused) => {
            Some(("refused", Role::Warning))
        }
        (Some(Decision::Chosen { is_allow: false, .. }), _) => Some(("rejected", Role::Warning)),
        (_, ToolStatus::Cancelled) => Some(("cancelled", Role::TextDim)),
        _ => None,
    };
    if let Some((word, role)) = word {
        facts.push(Span::styled(format!("  {word}"), style(role)));
    }
    let time = match status {
        ToolStatus::InProgress => Some(render.now.saturating_duration_since(tool.began)),
        _ => tool.took,
    };
    let time = time.filter(|time| time.as_secs() >= 1).map(duration).unwrap_or_default();

    let cols = usize::from(cols);
    let kind = if tool.is_typed() { "shell" } else { kind_word(tool.kind) };
    let time_cols = if time.is_empty() { 0 } else { width(&time) + 2 };
    let room = cols.saturating_sub(2 + KIND_COLS + spans_width(&facts) + time_cols).max(8);
    let mut spans = vec![
        Mark::APART.span(format!("{mark} "), style(role)),
        Span::styled(format!("{kind:<KIND_COLS$}"), style(Role::ToolKind)),
    ];
    spans.extend(title_spans(tool, render, room));
    spans.extend(facts);
    if !time.is_empty() {
        let fill = cols.saturating_sub(spans_width(&spans) + width(&time)).max(2);
        spans.push(Mark::APART.span(format!("{}{time}", " ".repeat(fill)), style(Role::TextDim)));
    }
    Line::from(spans)
}

/// The title, linked to the file that it names.
fn title_spans(tool: &ToolCall, render: &RenderContext<'_>, room: usize) -> Vec<Span<'static>> {
    let span = Span::styled(title(tool, render, room), render.theme.style(Role::ToolTitle));
    let is_of_files = matches!(tool.kind, ToolKind::Read | ToolKind::Edit | ToolKind::Delete);
    let first = tool.locations.first().cloned();
    let first =
        first.or_else(|| tool.diffs().next().map(|diff| Location { path: diff.path.clone(), line: None }));
    let first = first.or_else(|| tool.input.path.clone().map(|path| Location { path, line: None }));
    match first.filter(|location| is_of_files && !location.path.as_os_str().is_empty()) {
        // The path may be truncated, so it is not parsed from the text.
        Some(location) => vec![span.linked(link::number_of(&Target::File(location), render.folder))],
        None => link::linkify(vec![span], render.folder),
    }
}

/// The line of a location; agents name the first one if they mean the file.
fn line_of(location: &Location) -> Option<u32> {
    location.line.filter(|line| *line > 1)
}

/// The subject of a call: the agent's title where it says more than a path.
pub(crate) fn title(tool: &ToolCall, render: &RenderContext<'_>, cols: usize) -> String {
    let location = |location: &Location| {
        let path = render.path(&location.path);
        line_of(location).map_or(path.clone(), |line| format!("{path}:{line}"))
    };
    let mut paths: Vec<String> = match tool.kind {
        ToolKind::Edit => changes_of(tool).iter().map(|diff| render.path(&diff.path)).collect(),
        _ => Vec::new(),
    };
    if matches!(tool.kind, ToolKind::Read | ToolKind::Edit | ToolKind::Delete) && paths.is_empty() {
        paths = tool.locations.iter().map(location).collect();
        if paths.is_empty() {
            paths.extend(tool.input.path.as_ref().map(|path| render.path(path)));
        }
    }
    paths.dedup();
    paths.retain(|path| !path.is_empty());
    if let Some(first) = paths.first() {
        let more = paths.len() - 1;
        let tail = if more > 0 { format!(" and {more} more") } else { String::new() };
        if let [one, two] = paths.as_slice()
            && width(one) + width(two) + 2 <= cols
        {
            return format!("{one}, {two}");
        }
        return truncate(
            &format!("{}{tail}", truncate_path(first, cols.saturating_sub(tail.len()).max(8))),
            cols,
        );
    }
    output::first_line(tool.label(), cols)
}

/// The exit code of the first terminal shown by a call.
fn exit_code(tool: &ToolCall, session: &Session) -> Option<i32> {
    tool.content.iter().find_map(|content| match content {
        ToolContent::Terminal(id) => session.terminals.get(id)?.exit.as_ref()?.code,
        _ => None,
    })
}

struct Body<'a, 'b> {
    layout: &'a mut Layout,
    item: &'a Item,
    tool: &'a ToolCall,
    fold: Fold,
    cols: u16,
    context: &'a mut Context<'b>,
}

impl<'a> Body<'a, '_> {
    fn push(&mut self, lines: Vec<Line<'static>>) {
        if !lines.is_empty() {
            self.layout.pieces.push(LineRun::ready(lines, BODY_INDENT));
        }
    }

    fn push_output(&mut self, lines: Vec<Line<'static>>) {
        let rows = self.output_rows(lines);
        self.push_rows(rows);
    }

    fn push_rows(&mut self, rows: Vec<Line<'static>>) {
        if !rows.is_empty() {
            self.layout.pieces.push(LineRun::ready(rows, self.output_indent()));
        }
    }

    /// Adds output or file text, in parts that are laid out on demand. Text with cursor movements is processed by the
    /// terminal emulator, a very long one from its end only.
    fn push_text(&mut self, text: &str) {
        let Some((position, from)) = output::position_of(self.tool, text) else { return };
        if output::is_plain(text) {
            let text = text.trim_end_matches('\n');
            self.layout.pieces.extend(text_pieces(
                text,
                from,
                position,
                Role::Terminal,
                self.output_indent(),
            ));
            return;
        }
        let start = text.len().saturating_sub(EMULATED_BYTES);
        let line = text.as_bytes().get(start..).and_then(|rest| memchr::memchr(b'\n', rest));
        let start = if start == 0 { 0 } else { start + line.map_or(0, |at| at + 1) };
        let start = (start..text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        let (lines, has_more) = terminal::lines_of(text.get(start..).unwrap_or_default());
        if start > 0 || has_more {
            let note = more_line(" beginning omitted", self.context.render);
            self.push(vec![note]);
        }
        self.push_output(lines);
    }

    fn output_indent(&self) -> u16 {
        panel_indent(self.context.render, Role::Terminal, 1)
    }

    fn output_rows(&self, lines: Vec<Line<'static>>) -> Vec<Line<'static>> {
        output::rows(lines, self.context.render, self.cols + BODY_INDENT - self.output_indent())
    }

    fn text_of_output(&self) -> Option<&'a str> {
        output::text_of(self.tool, exit_code(self.tool, self.context.session))
    }

    /// The output of a command, from its terminal or as text.
    fn output_bytes(&self) -> Option<&[u8]> {
        let terminal = self.tool.content.iter().find_map(|content| match content {
            ToolContent::Terminal(id) => self.context.session.terminals.get(id),
            _ => None,
        });
        match terminal {
            Some(view) => Some(&view.output),
            None => self.text_of_output().map(str::as_bytes),
        }
    }

    /// Adds a line that says why a command failed.
    fn push_reason(&mut self, reason: Option<String>) {
        let cols = usize::from(self.cols);
        let style = self.context.render.theme.style(Role::Error);
        self.push(reason.map(|text| Line::styled(truncate(&text, cols), style)).into_iter().collect());
    }

    fn add_reason(&mut self) {
        if self.tool.kind == ToolKind::Execute {
            let reason =
                self.output_bytes().filter(|_| self.fold == Fold::Closed).and_then(failure_summary::first);
            self.push_reason(reason);
            return;
        }
        let Some(text) = self.text_of_output() else { return };
        // The head already says that.
        if output::only_says_rejected(self.tool, text) {
            return;
        }
        let text = output::without_fence(text);
        if self.fold == Fold::Open {
            if let Some((position, from)) = output::position_of(self.tool, text) {
                let text = text.trim_end_matches(['\n', '\r']);
                self.layout.pieces.extend(text_pieces(text, from, position, Role::Error, BODY_INDENT));
            }
            return;
        }
        let mut lines = short_lines(text, Role::Error, self.context.render, self.cols);
        let max = if self.fold == Fold::Closed { 1 } else { REASON_LINES };
        if lines.len() > max {
            lines.truncate(max);
            if self.fold != Fold::Closed {
                lines.push(more_line("", self.context.render));
            }
        }
        self.push(lines);
    }

    fn add(&mut self) {
        let render = self.context.render;
        if self.fold == Fold::Open
            && let Some(command) = self.tool.input.command.as_deref()
        {
            let lines = output::command_lines(command, render, self.cols);
            self.push(lines);
        }
        let unlisted = hidden_commands(self.tool, render, self.cols);
        self.push(unlisted);
        if self.fold == Fold::Open || (self.tool.is_own && !self.tool.is_typed()) {
            let lines = access_lines(self.tool, render, self.cols);
            self.push(lines);
        }
        self.add_diffs();
        let mut has_output = false;
        for (position, content) in self.tool.content.iter().enumerate() {
            match content {
                ToolContent::Terminal(id) => {
                    has_output = true;
                    self.add_terminal(id);
                }
                ToolContent::Block(ContentBlock::Text(_)) | ToolContent::Diff(_) => {}
                ToolContent::Block(block) => {
                    self.layout.pieces.push(LineRun::lazy(Source::Block { position }, BODY_INDENT, false));
                    self.layout.pieces.extend(resource_pieces(block, position, BODY_INDENT));
                }
                ToolContent::Unknown(raw) => {
                    let lines = raw_lines(&raw.0, render, self.cols);
                    self.push(lines);
                }
            }
        }
        if !has_output && (self.tool.status != ToolStatus::Failed || self.tool.kind == ToolKind::Execute) {
            self.add_text();
        }
        if self.fold == Fold::Open {
            self.add_details();
        }
    }

    fn add_diffs(&mut self) {
        let render = self.context.render;
        let indent = panel_indent(render, Role::DiffPlus, 0);
        let mut left = DIFF_PREVIEW_ROWS;
        let count = self.layout.diffs.len();
        if count == 0 && self.layout.waits {
            self.push(vec![comparing(render)]);
        }
        for index in 0..count {
            let Some(diff) = self.layout.diffs.get(index) else { break };
            let columns = diff.layout(render.diff_layout, self.cols);
            let (rows, needs_head) = (diff.len(columns), count > 1 || needs_head(diff));
            // The head of an edit already names its only file.
            let is_named = count == 1 && self.tool.kind == ToolKind::Edit;
            let head = needs_head.then(|| {
                if is_named {
                    status_line(diff, render, self.cols)
                } else {
                    diff_head(diff, render, self.cols)
                }
            });
            let shown = if self.fold == Fold::Open { rows } else { rows.min(left) };
            // Omitting a row or two would save nothing.
            let shown = if rows <= shown + 2 { rows } else { shown };
            if shown == 0 && rows > 0 {
                let text = counted(count - index, "more change", "more changes");
                let line = more_line(&format!(" {text}"), render);
                self.push(vec![line]);
                break;
            }
            left = left.saturating_sub(shown);
            self.push(head.into_iter().collect());
            let mut from = 0;
            while from < shown {
                let to = (from + DIFF_PIECE_ROWS).min(shown);
                let source = Source::Diff { diff: index, rows: from..to, columns };
                self.layout.pieces.push(LineRun::lazy(source, indent, false));
                from = to;
            }
            if shown < rows {
                let line = more_line(&format!(" {} more lines", rows - shown), render);
                self.push(vec![line]);
            }
        }
    }

    fn add_terminal(&mut self, id: &crate::model::TerminalId) {
        let render = self.context.render;
        let Some(view) = self.context.session.terminals.get(id) else { return };
        let is_running = view.exit.is_none() && !self.tool.status.is_final();
        if self.fold != Fold::Open && !is_running {
            let code = view.exit.as_ref().and_then(|exit| exit.code);
            let output = output::without_exit_code(&view.output, self.tool.exit_code.or(code));
            let ends = if view.number.is_some() { USER_ENDS } else { ENDS };
            self.push_preview(output, view.is_ours, self.is_bad(code), view.dropped_bytes > 0, ends);
            return;
        }
        let screen = self.context.screens.entry(id.clone()).or_default();
        screen.update(view);
        let has_screen = view.modes.is_alternate;
        if has_screen {
            let words = " A full-screen program is running. Type into the terminal to see it.";
            let words = truncate(words, usize::from(self.cols).saturating_sub(1));
            self.push(vec![more_line(&words, render)]);
        }
        let screen = self.context.screens.entry(id.clone()).or_default();
        if self.fold != Fold::Open {
            let is_more = screen.len() > OUTPUT_RUNNING_LINES;
            let lines = screen.tail(OUTPUT_RUNNING_LINES);
            self.push_tail(lines, is_more, OUTPUT_RUNNING_LINES, 0);
            return;
        }
        let (history, dropped, live) = (screen.history_len(), screen.dropped_lines(), screen.live());
        if dropped > 0 || view.dropped_bytes > 0 {
            let note = more_line(" beginning omitted", render);
            self.push(vec![note]);
        }
        let mut from = 0;
        while from < history {
            let to = (from + OUTPUT_PIECE_LINES).min(history);
            let source = Source::Terminal { id: id.clone(), lines: from..to };
            self.layout.pieces.push(LineRun::lazy(source, self.output_indent(), false));
            from = to;
        }
        self.push_output(live);
    }

    fn is_bad(&self, code: Option<i32>) -> bool {
        self.tool.status == ToolStatus::Failed || self.tool.exit_code.or(code).is_some_and(|code| code != 0)
    }

    /// Adds the text of the result: of a command as output, of a read or search unchanged, otherwise as Markdown.
    fn add_text(&mut self) {
        let is_command = self.tool.kind == ToolKind::Execute;
        if is_command || (self.fold == Fold::Preview && has_output_alone(self.tool)) {
            let Some(text) = self.text_of_output() else { return };
            if self.fold == Fold::Open {
                self.push_text(text);
            } else {
                let is_bad = self.tool.status != ToolStatus::Completed || self.is_bad(None);
                self.push_preview(text.as_bytes(), false, is_bad, false, ENDS);
            }
            return;
        }
        if self.fold != Fold::Open {
            return;
        }
        let mut texts = 0;
        let mut is_shown = false;
        let known = KnownChanges::new(self.context.render.folder, changes_of(self.tool).into_iter());
        let is_of_file = matches!(self.tool.kind, ToolKind::Read | ToolKind::Search);
        for (position, content) in self.tool.content.iter().enumerate() {
            let ToolContent::Block(ContentBlock::Text(source)) = content else { continue };
            if known.repeats(source) {
                continue;
            }
            is_shown = true;
            // Most agents send a file unchanged; as Markdown its comments would be headings.
            if is_of_file && !source.contains("```") {
                self.push_text(source);
                continue;
            }
            if self.layout.texts.get(texts).is_none_or(|text| text.position != position) {
                self.layout.texts.truncate(texts);
                let markdown = Markdown::default();
                self.layout.texts.push(TextPart { markdown, position, style: None });
            }
            if let Some(text) = self.layout.texts.get_mut(texts) {
                // Content replaces content, so it is parsed again; it rarely changes.
                text.markdown = Markdown::of(source);
                for (block, facts) in text.markdown.blocks().iter().enumerate() {
                    let source = Source::Markdown { text: texts, block };
                    self.layout.pieces.push(LineRun::lazy(source, BODY_INDENT, facts.has_gap));
                }
            }
            texts += 1;
        }
        if !is_shown
            && let Some(text) = self.tool.output_text.as_deref()
            && !known.repeats(text)
        {
            self.push_text(text);
        }
    }

    fn add_details(&mut self) {
        let render = self.context.render;
        if self.tool.locations.len() > 1 || self.layout.pieces.len() == 1 {
            let lines = self.tool.locations.iter().map(|location| {
                let path = render.path(&location.path);
                let text = line_of(location).map_or(path.clone(), |line| format!("{path}:{line}"));
                let text = truncate_path(&text, usize::from(self.cols));
                Line::styled(text, render.theme.style(Role::TextDim))
            });
            let lines = lines.collect();
            self.push(lines);
        }
        if self.layout.pieces.len() == 1 {
            for raw in self.tool.raw_input.iter().chain(&self.tool.raw_output) {
                let lines = raw_lines(&raw.0, render, self.cols);
                self.push(lines);
            }
        }
        if self.layout.pieces.len() == 1 {
            let text = if self.context.view.item(self.item.id).is_open == Some(true)
                && !self.tool.status.is_final()
            {
                "No output yet."
            } else {
                "No details."
            };
            self.push(vec![Line::styled(text, render.theme.style(Role::TextDim))]);
        }
    }
}

/// Content with a background begins at the left edge of prose, as code blocks do; without one, its text is aligned with
/// the body.
fn panel_indent(render: &RenderContext<'_>, role: Role, padding: u16) -> u16 {
    if render.theme.style(role).bg.is_some() { 0 } else { BODY_INDENT - padding }
}

/// A placeholder for a change whose texts are being compared.
pub(crate) fn comparing(render: &RenderContext<'_>) -> Line<'static> {
    let text = format!("Computing diff{}", render.glyphs.ellipsis);
    Mark::NO_LINE.row(Line::styled(text, render.theme.style(Role::TextDim)))
}

fn more_line(text: &str, render: &RenderContext<'_>) -> Line<'static> {
    let text = format!("{}{text}", render.glyphs.fold);
    Mark::NO_LINE.row(Line::from(Mark::GAP.span(text, render.theme.style(Role::TextDim))))
}
