//! Code blocks: background, label, highlighted lines.
//!
//! The lines of a growing block are drawn once and cached, with the highlighter's state after them.

use std::collections::HashMap;

use ratatui::style::Style;

use crate::ui::highlight::{self, Highlighter};
use crate::ui::render_context::RenderContext;
use crate::ui::text::copy_hint::{Mark, fill};
use crate::ui::text::{Line, Span};
use crate::ui::text::{TAB_COLS, code_rows, one_line, sanitize, tabbed};
use crate::ui::theme::Role;

/// The highlighter restarts after this number of parts, so that a part can be drawn without all previous
/// ones.
const RESTART_PARTS: u32 = 4;

/// Maximum number of cached states.
const STATES_MAX: usize = 128;

/// Width of line numbers with the spaces after them; fits blocks of up to 999 lines.
const NUMBER_COLS: u16 = 5;
/// Minimum width for line numbers.
const MIN_NUMBERED_COLS: u16 = 24;

/// Larger blocks inside lists and quotes are not highlighted.
const NESTED_MAX_BYTES: usize = 16 * 1024;

/// The position of a code part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CodePosition {
    pub fence: u32,
    pub part: u32,
    /// Start offset in the source.
    pub start: usize,
    /// Number of its first line.
    pub line: usize,
    /// Whether it starts within that line.
    pub is_joined: bool,
    pub is_final: bool,
}

/// Cached states and lines.
#[derive(Default)]
pub(super) struct CodeState {
    /// The state at the start of a part, and whether the language was ready.
    states: HashMap<(u32, u32), (bool, Option<Highlighter>)>,
    live: Option<Live>,
}

/// The growing part with its drawn lines.
struct Live {
    start: usize,
    is_warm: bool,
    cols: u16,
    wraps: bool,
    theme: String,
    upto: usize,
    next: usize,
    lines: Vec<Line<'static>>,
    state: Option<Highlighter>,
}

impl CodeState {
    /// Draws a part. `before` returns the text of an earlier part of the same fence.
    #[allow(clippy::too_many_arguments, reason = "called from one place")]
    pub fn draw<'t>(
        &mut self,
        position: CodePosition,
        text: &str,
        language: &str,
        before: impl Fn(u32) -> Option<&'t str>,
        render: &RenderContext<'_>,
        cols: u16,
        counter: &mut u64,
    ) -> Vec<Line<'static>> {
        let is_warm = highlight::is_warm(language);
        let live = self.live.take().filter(|live| {
            live.start == position.start
                && live.is_warm == is_warm
                && (live.cols, live.wraps) == (cols, render.wraps)
                && live.theme == render.theme.name
                && live.upto <= text.len()
        });
        let mut live = live.unwrap_or_else(|| Live {
            start: position.start,
            is_warm,
            cols,
            wraps: render.wraps,
            theme: render.theme.name.clone(),
            upto: 0,
            next: position.line,
            lines: if position.part == 0 { label(language, render, cols) } else { Vec::new() },
            state: self.state_at(position, text, language, before, is_warm),
        });
        // Only the start of a line is numbered.
        let number = |live: &Live| (live.upto > 0 || !position.is_joined).then_some(live.next);
        let mut rest = text.get(live.upto..).unwrap_or_default();
        while let Some(at) = rest.find('\n') {
            let code = rest.get(..at).unwrap_or_default();
            draw_line((number(&live), code), language, live.state.as_mut(), render, cols, &mut live.lines);
            *counter += 1;
            live.upto += at + 1;
            live.next += 1;
            rest = rest.get(at + 1..).unwrap_or_default();
        }
        if position.is_final {
            if !rest.is_empty() {
                draw_line(
                    (number(&live), rest),
                    language,
                    live.state.as_mut(),
                    render,
                    cols,
                    &mut live.lines,
                );
                *counter += 1;
            }
            self.keep((position.fence, position.part + 1), is_warm, live.state);
            return live.lines;
        }
        let mut lines = live.lines.clone();
        if !rest.is_empty() {
            let mut state = live.state.clone();
            draw_line((number(&live), rest), language, state.as_mut(), render, cols, &mut lines);
            *counter += 1;
        }
        self.live = Some(live);
        lines
    }

    /// The highlighter's state at the start of a part.
    fn state_at<'t>(
        &mut self,
        position: CodePosition,
        text: &str,
        language: &str,
        before: impl Fn(u32) -> Option<&'t str>,
        is_warm: bool,
    ) -> Option<Highlighter> {
        let first = position.part - position.part % RESTART_PARTS;
        if first < position.part
            && let Some((known, state)) = self.states.get(&(position.fence, position.part))
            && *known == is_warm
        {
            return state.clone();
        }
        let mut state = highlight::start(language, text)?;
        for part in first..position.part {
            for line in before(part).unwrap_or_default().lines() {
                state.line(&clean(line));
            }
            self.keep((position.fence, part + 1), is_warm, Some(state.clone()));
        }
        Some(state)
    }

    fn keep(&mut self, key: (u32, u32), is_warm: bool, state: Option<Highlighter>) {
        if key.1.is_multiple_of(RESTART_PARTS) {
            return;
        }
        if self.states.len() >= STATES_MAX {
            self.states.clear();
        }
        self.states.insert(key, (is_warm, state));
    }
}

/// Draws a complete code block in a list or a quote.
pub(super) fn draw_whole(
    code: &str,
    language: &str,
    render: &RenderContext<'_>,
    cols: u16,
) -> Vec<Line<'static>> {
    let mut lines = label(language, render, cols);
    let mut state = if code.len() <= NESTED_MAX_BYTES { highlight::start(language, code) } else { None };
    for (number, line) in (1..).zip(code.lines()) {
        draw_line((Some(number), line), language, state.as_mut(), render, cols, &mut lines);
    }
    lines
}

fn label(language: &str, render: &RenderContext<'_>, cols: u16) -> Vec<Line<'static>> {
    let language = one_line(language);
    if language.is_empty() {
        return Vec::new();
    }
    let base = render.theme.style(Role::CodeBlock);
    let text = match language.to_ascii_lowercase().as_str() {
        "mermaid" | "dot" | "graphviz" | "plantuml" | "puml" | "d2" => {
            format!("{language} {} diagram source", render.glyphs.dot)
        }
        _ => language,
    };
    let text = crate::ui::text::truncate(&text, usize::from(cols).saturating_sub(2));
    let text = Span::styled(text, base.patch(render.theme.style(Role::CodeLanguage)));
    vec![padded(Mark::NO_LINE.row(text.into()), base, cols)]
}

fn clean(line: &str) -> String {
    sanitize(line).replace('\n', "")
}

/// Draws one line of code: highlighted, wrapped and padded with the background. Without a number, it
/// continues a line.
fn draw_line(
    (number, line): (Option<usize>, &str),
    language: &str,
    state: Option<&mut Highlighter>,
    render: &RenderContext<'_>,
    cols: u16,
    out: &mut Vec<Line<'static>>,
) {
    let text = clean(line);
    let plain = render.theme.style(Role::CodeBlock);
    let of_diff = diff_role(language, &text);
    let base = of_diff.map_or(plain, |role| plain.patch(render.theme.style(role)));
    let runs = match state {
        Some(state) if of_diff.is_none() => state.line(&text),
        _ => vec![(0..text.len(), None)],
    };
    let (mut spans, mut col) = (Vec::new(), 0);
    for (range, role) in runs {
        let style = role.map_or(base, |role| base.patch(render.theme.style(role)));
        col = tabbed(text.get(range).unwrap_or_default(), col, TAB_COLS, style, &mut spans);
    }
    let line = Line::from(spans);
    let numbers = number_cols(render, cols);
    let room = cols.saturating_sub(2 + numbers).max(2);
    for (index, mut row) in
        code_rows(&line, room, render.wraps, render.glyphs.ellipsis).into_iter().enumerate()
    {
        if numbers > 0 {
            let digits = usize::from(numbers) - 2;
            let text = match number.filter(|_| index == 0) {
                Some(number) => format!("{number:>digits$}  "),
                None => " ".repeat(digits + 2),
            };
            row.spans.insert(0, Mark::APART.span(text, base.patch(render.theme.style(Role::DiffGutter))));
        }
        let row = padded(row, base, cols);
        out.push(if number.is_none() { Mark::JOINED.row(row) } else { row });
    }
}

/// The role of a line of a `diff` block; `None` for unchanged lines and other languages.
fn diff_role(language: &str, line: &str) -> Option<Role> {
    if !["diff", "patch", "udiff"].iter().any(|name| language.eq_ignore_ascii_case(name)) {
        return None;
    }
    let is_meta = ["+++ ", "--- ", "@@", "diff ", "index ", "*** "].iter().any(|head| line.starts_with(head));
    match line.as_bytes().first() {
        _ if is_meta => Some(Role::DiffMeta),
        Some(b'+') => Some(Role::DiffPlus),
        Some(b'-') => Some(Role::DiffMinus),
        _ => None,
    }
}

/// Width of line numbers, or 0 if the code has too little space. The same for all lines of a block, because
/// its end may not be known.
fn number_cols(render: &RenderContext<'_>, cols: u16) -> u16 {
    if render.numbers_code && cols >= MIN_NUMBERED_COLS { NUMBER_COLS } else { 0 }
}

/// A row that is padded with the background to the full width.
fn padded(line: Line<'static>, base: Style, cols: u16) -> Line<'static> {
    let mut row = Vec::with_capacity(line.spans.len() + 2);
    if usize::from(cols) > line.width() {
        row.push(Mark::APART.span(" ", base));
    }
    row.extend(line.spans);
    fill(&mut row, cols, base);
    Line { spans: row, ..line }
}
