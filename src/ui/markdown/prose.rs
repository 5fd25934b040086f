//! Renders all of Markdown except top-level fences: paragraphs, headings, lists, quotes, tables, rules,
//! footnotes.
//!
//! Each block is rendered from its parser events to lines. Containers (quotes, items) become line prefixes;
//! inline styles are stacked. HTML is shown as text.

use pulldown_cmark::{BrokenLink, CodeBlockKind, CowStr, Event, HeadingLevel, LinkType, Parser, Tag, TagEnd};
use ratatui::style::{Modifier, Style};

use crate::model::Target;
use crate::ui::render_context::RenderContext;
use crate::ui::text::copy_hint::Mark;
use crate::ui::text::link;
use crate::ui::text::{Line, Span};
use crate::ui::text::{expand_tabs, one_line, sanitize, spans_width, truncate, width, wrap_prefixed};
use crate::ui::theme::Role;

use super::math::{self, Formulas};
use super::table::Table;
use super::{Definitions, OPTIONS, PROSE_COLS, code, label_key, limit};

/// Minimum width of the text beside the prefixes of quotes and lists.
const MIN_TEXT_COLS: usize = 4;

/// Maximum rendered nesting depth of quotes, items and footnotes: deeper prefixes would fill the width, and
/// increase the cost of each row.
const DEPTH_MAX: usize = PROSE_COLS as usize / 2;

/// Draws one top-level block. Also returns the maximum horizontal scroll offset of its tables.
pub(super) fn draw(
    text: &str,
    links: &Definitions,
    render: &RenderContext<'_>,
    cols: u16,
) -> (Vec<Line<'static>>, u16) {
    let resolve = |link: BrokenLink<'_>| {
        let target = links.get(&label_key(&link.reference))?;
        Some((CowStr::from(target.clone()), CowStr::from("")))
    };
    let text = limit::without_wide_tables(text);
    let (text, formulas) = math::hide(&text);
    let mut writer = Writer::new(render, cols, &formulas);
    for event in Parser::new_with_broken_link_callback(&text, OPTIONS, Some(resolve)) {
        writer.on(event);
    }
    writer.flush();
    (writer.out, writer.sideways)
}

/// A position in the current text: line, span, byte.
type Spot = (usize, usize, usize);

enum Container {
    Quote,
    Item {
        /// The marker before the first line; removed once it is drawn.
        mark: Option<Span<'static>>,
        cols: usize,
    },
}

struct Writer<'a> {
    render: &'a RenderContext<'a>,
    cols: u16,
    out: Vec<Line<'static>>,
    /// Lines of the current text; the last one is open.
    lines: Vec<Vec<Span<'static>>>,
    styles: Vec<Style>,
    containers: Vec<Container>,
    /// Number of open containers beyond [`DEPTH_MAX`].
    hidden: usize,
    /// Counters of the open lists, `None` for bullets.
    lists: Vec<Option<u64>>,
    /// Whether a blank line precedes the next block.
    has_gap: bool,
    /// Open links: type, target, and start of the text.
    links: Vec<(LinkType, String, Spot)>,
    numbers: Vec<u32>,
    table: Option<Table>,
    code: Option<(String, String)>,
    formulas: &'a Formulas<'a>,
    /// Number of table columns beyond the edge.
    sideways: u16,
}

impl<'a> Writer<'a> {
    fn new(render: &'a RenderContext<'a>, cols: u16, formulas: &'a Formulas<'a>) -> Self {
        Self {
            render,
            formulas,
            sideways: 0,
            cols: cols.max(4),
            out: Vec::new(),
            lines: vec![Vec::new()],
            styles: vec![render.theme.style(Role::Agent)],
            containers: Vec::new(),
            hidden: 0,
            lists: Vec::new(),
            has_gap: false,
            links: Vec::new(),
            numbers: Vec::new(),
            table: None,
            code: None,
        }
    }

    fn on(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.on_start(tag),
            Event::End(tag) => self.on_end(tag),
            Event::Text(text) => {
                let formulas = self.formulas;
                if let Some((_, code)) = &mut self.code {
                    code.push_str(&formulas.restore(&text));
                } else {
                    for (text, is_formula) in formulas.parts(&text) {
                        let style = is_formula.then(|| self.render.theme.style(Role::InlineCode));
                        self.push(text, style.unwrap_or_default());
                    }
                }
            }
            Event::Code(text) => {
                self.push(&self.formulas.restore(&text), self.render.theme.style(Role::InlineCode));
            }
            Event::InlineMath(text) => self.push_formula(&text, "$"),
            Event::DisplayMath(text) => self.push_formula(&text, "$$"),
            Event::InlineHtml(text) => {
                let tag: String = text.chars().filter(|c| !c.is_whitespace()).collect();
                if matches!(tag.to_ascii_lowercase().as_str(), "<br>" | "<br/>") {
                    self.break_line();
                } else {
                    self.push(&self.formulas.restore(&text), self.render.theme.style(Role::TextDim));
                }
            }
            Event::Html(text) => {
                self.push(&self.formulas.restore(&text), self.render.theme.style(Role::TextDim));
            }
            Event::SoftBreak => self.push(" ", Style::default()),
            Event::HardBreak => self.break_line(),
            Event::Rule => {
                self.flush();
                self.begin_block();
                let room = usize::from(self.cols.min(PROSE_COLS)).saturating_sub(self.prefix_cols());
                let rule =
                    Line::styled(self.render.glyphs.rule.repeat(room), self.render.theme.style(Role::Rule));
                self.place(vec![Mark::NO_LINE.row(rule)]);
                self.has_gap = true;
            }
            Event::TaskListMarker(is_done) => {
                let glyphs = self.render.glyphs;
                let text = if is_done { glyphs.task_done } else { glyphs.task_open };
                let role = if is_done { Role::Success } else { Role::ListMark };
                let span = Span::styled(format!("{text} "), self.render.theme.style(role));
                if self.hidden == 0
                    && let Some(Container::Item { mark: Some(mark), cols }) = self.containers.last_mut()
                {
                    *cols = 2;
                    *mark = span;
                }
            }
            Event::FootnoteReference(label) => {
                let label = format!("[{}]", one_line(&label));
                self.push(&label, note_style(self.render));
            }
        }
    }

    fn push_formula(&mut self, text: &str, sign: &str) {
        let text = format!("{sign}{}{sign}", self.formulas.restore(text));
        self.push(&text, self.render.theme.style(Role::InlineCode));
    }

    fn on_start(&mut self, tag: Tag<'_>) {
        let theme = self.render.theme;
        match tag {
            Tag::Paragraph | Tag::HtmlBlock => self.begin_block(),
            Tag::Heading { level, .. } => {
                self.begin_block();
                let style = theme.style(Role::Heading);
                self.push_style(match level {
                    HeadingLevel::H1 => style.add_modifier(Modifier::BOLD | Modifier::UNDERLINED),
                    HeadingLevel::H2 => style.add_modifier(Modifier::BOLD),
                    HeadingLevel::H3 => style.add_modifier(Modifier::BOLD | Modifier::ITALIC),
                    _ => style.remove_modifier(Modifier::BOLD).add_modifier(Modifier::ITALIC),
                });
            }
            Tag::BlockQuote(_) => {
                self.flush();
                self.begin_block();
                self.enter(Container::Quote);
                self.push_style(theme.style(Role::Quote));
            }
            Tag::CodeBlock(kind) => {
                self.flush();
                self.begin_block();
                let language = match kind {
                    CodeBlockKind::Fenced(info) => {
                        info.split([' ', '\t', ',', '{', ':']).next().unwrap_or_default().to_owned()
                    }
                    CodeBlockKind::Indented => String::new(),
                };
                self.code = Some((language, String::new()));
            }
            Tag::List(first) => {
                self.flush();
                self.begin_block();
                self.lists.push(first);
            }
            Tag::Item => {
                self.flush();
                self.begin_block();
                let text = match self.lists.last_mut() {
                    Some(Some(number)) => {
                        let text = format!("{number}. ");
                        *number = number.saturating_add(1);
                        text
                    }
                    _ => format!("{} ", self.render.glyphs.bullet),
                };
                let cols = width(&text);
                let mark = Some(Span::styled(text, theme.style(Role::ListMark)));
                self.enter(Container::Item { mark, cols });
            }
            Tag::FootnoteDefinition(label) => {
                self.flush();
                self.begin_block();
                let text = format!("[{}] ", one_line(&label));
                let cols = width(&text);
                let mark = Some(Span::styled(text, note_style(self.render)));
                self.enter(Container::Item { mark, cols });
            }
            Tag::Table(alignments) => {
                self.flush();
                self.begin_block();
                self.table = Some(Table { alignments, ..Table::default() });
            }
            Tag::TableHead => {
                if let Some(table) = &mut self.table {
                    table.is_head = true;
                }
                self.push_style(theme.style(Role::TableHead).add_modifier(Modifier::BOLD));
            }
            Tag::TableRow => {
                if let Some(table) = &mut self.table {
                    table.rows.push(Vec::new());
                }
            }
            Tag::Emphasis => self.push_style(theme.style(Role::Emphasis).add_modifier(Modifier::ITALIC)),
            Tag::Strong => self.push_style(theme.style(Role::Strong).add_modifier(Modifier::BOLD)),
            Tag::Strikethrough => self.push_style(Style::default().add_modifier(Modifier::CROSSED_OUT)),
            Tag::Link { link_type, dest_url, .. } => {
                let at = self.spot();
                let target = self.formulas.restore(&dest_url);
                self.push_link(&target);
                self.links.push((link_type, one_line(&target), at));
            }
            Tag::Image { link_type, dest_url, .. } => {
                self.push("image ", theme.style(Role::TextDim));
                let at = self.spot();
                let target = self.formulas.restore(&dest_url);
                self.push_link(&target);
                self.links.push((link_type, one_line(&target), at));
            }
            _ => {}
        }
    }

    fn on_end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph | TagEnd::HtmlBlock => {
                self.flush();
                self.has_gap = true;
            }
            TagEnd::Heading(_) => {
                self.flush();
                self.styles.pop();
                self.has_gap = true;
            }
            TagEnd::BlockQuote(_) => {
                self.flush();
                self.leave();
                self.styles.pop();
                self.has_gap = true;
            }
            TagEnd::CodeBlock => {
                if let Some((language, code)) = self.code.take() {
                    let room = usize::from(self.cols).saturating_sub(self.prefix_cols());
                    let room = u16::try_from(room).unwrap_or(u16::MAX);
                    self.place(code::draw_whole(&code, &language, self.render, room));
                }
                self.has_gap = true;
            }
            TagEnd::List(_) => {
                self.flush();
                self.lists.pop();
                self.has_gap |= self.lists.is_empty();
            }
            TagEnd::Item | TagEnd::FootnoteDefinition => {
                self.flush();
                if self.hidden == 0
                    && matches!(self.containers.last(), Some(Container::Item { mark: Some(_), .. }))
                {
                    // An empty item still has its marker.
                    self.place(vec![Line::default()]);
                }
                self.leave();
            }
            TagEnd::Table => {
                if let Some(table) = self.table.take() {
                    let room = usize::from(self.cols).saturating_sub(self.prefix_cols());
                    let (lines, hidden) = table.draw(self.render, u16::try_from(room).unwrap_or(u16::MAX));
                    self.sideways = self.sideways.max(hidden);
                    self.place(lines);
                }
                self.has_gap = true;
            }
            TagEnd::TableHead => {
                self.styles.pop();
                if let Some(table) = &mut self.table {
                    table.is_head = false;
                }
            }
            TagEnd::TableCell => {
                let cell = std::mem::replace(&mut self.lines, vec![Vec::new()]);
                let cell = cell.into_iter().reduce(|mut all, line| {
                    all.push(Span::raw(" "));
                    all.extend(line);
                    all
                });
                if let Some(table) = &mut self.table {
                    table.push(link::linkify(cell.unwrap_or_default(), self.render.folder));
                }
            }
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough => {
                self.styles.pop();
            }
            TagEnd::Link | TagEnd::Image => {
                self.styles.pop();
                self.numbers.pop();
                if let Some((kind, target, at)) = self.links.pop() {
                    self.push_target(kind, &target, at);
                }
            }
            _ => {}
        }
    }

    fn enter(&mut self, container: Container) {
        if self.containers.len() < DEPTH_MAX {
            self.containers.push(container);
        } else {
            self.hidden += 1;
        }
    }

    fn leave(&mut self) {
        if self.hidden > 0 {
            self.hidden -= 1;
        } else {
            self.containers.pop();
        }
    }

    /// Adds the target of a link, unless its text contains it.
    fn push_target(&mut self, kind: LinkType, target: &str, (line, span, byte): Spot) {
        let mut text = String::new();
        for (index, spans) in self.lines.iter().enumerate().skip(line) {
            let first = if index == line { span } else { 0 };
            for (at, span) in spans.iter().enumerate().skip(first) {
                let from = if (index, at) == (line, first) { byte } else { 0 };
                text.push_str(span.content.get(from..).unwrap_or_default());
            }
        }
        let is_reported = text == target || matches!(kind, LinkType::Autolink | LinkType::Email);
        // The terminal shows the target. A text that looks like an address would be believed.
        let is_shown = link::are_shown()
            && !text.is_empty()
            && !names_other_host(&text, target)
            && Target::of_link(target).is_some();
        if target.is_empty() || is_reported || is_shown {
            return;
        }
        let target = if text.is_empty() { target.to_owned() } else { format!(" ({target})") };
        self.push(&target, self.render.theme.style(Role::TextDim));
    }

    fn push_link(&mut self, target: &str) {
        self.push_style(self.render.theme.style(Role::Link));
        let target = Target::of_link(target);
        self.numbers
            .push(target.map_or(self.number(), |target| link::number_of(&target, self.render.folder)));
    }

    /// The number of the link that text belongs to now.
    fn number(&self) -> u32 {
        self.numbers.last().copied().unwrap_or(0)
    }

    fn spot(&self) -> Spot {
        let line = self.lines.last().map(Vec::as_slice).unwrap_or_default();
        let bytes = line.last().map_or(0, |span| span.content.len());
        (self.lines.len().saturating_sub(1), line.len().saturating_sub(1), bytes)
    }

    fn push_style(&mut self, style: Style) {
        let top = self.styles.last().copied().unwrap_or_default();
        self.styles.push(top.patch(style));
    }

    fn push(&mut self, text: &str, style: Style) {
        let style = self.styles.last().copied().unwrap_or_default().patch(style);
        let number = self.number();
        for (index, line) in sanitize(text).split('\n').enumerate() {
            if index > 0 {
                self.break_line();
            }
            if line.is_empty() {
                continue;
            }
            let line = expand_tabs(line);
            let Some(spans) = self.lines.last_mut() else { continue };
            match spans.last_mut() {
                Some(last) if (last.style, last.tag.link) == (style, number) => {
                    last.content.to_mut().push_str(&line);
                }
                _ => spans.push(Span::styled(line.into_owned(), style).linked(number)),
            }
        }
    }

    fn break_line(&mut self) {
        self.lines.push(Vec::new());
    }

    /// Adds a blank line if needed, with the bars of enclosing quotes.
    fn begin_block(&mut self) {
        if std::mem::take(&mut self.has_gap) && !self.out.is_empty() {
            let (_, rest) = self.prefixes(false);
            self.out.push(Line::from(rest));
        }
    }

    /// Ends the current text and draws it.
    fn flush(&mut self) {
        let mut lines = std::mem::replace(&mut self.lines, vec![Vec::new()]);
        while lines.last().is_some_and(Vec::is_empty) {
            lines.pop();
        }
        for line in lines {
            let (first, rest) = self.prefixes(true);
            let line = link::linkify(line, self.render.folder);
            self.out.extend(wrap_prefixed(&Line::from(line), self.cols.min(PROSE_COLS), &first, &rest));
        }
    }

    /// Adds finished lines after the prefixes.
    fn place(&mut self, lines: Vec<Line<'static>>) {
        for line in lines {
            let (mut first, _) = self.prefixes(true);
            first.extend(
                line.spans
                    .into_iter()
                    .map(|span| Span { style: line.style.patch(span.style), ..span }.marked(line.mark)),
            );
            self.out.push(Line::from(first));
        }
    }

    fn prefix_cols(&self) -> usize {
        let cols = self.containers.iter().map(|container| match container {
            Container::Quote => 2,
            Container::Item { cols, .. } => *cols,
        });
        cols.sum::<usize>().min(self.max_prefix())
    }

    /// Maximum width of prefixes, so that deep nesting leaves space for the text.
    fn max_prefix(&self) -> usize {
        usize::from(self.cols.min(PROSE_COLS)).saturating_sub(MIN_TEXT_COLS)
    }

    /// The prefixes of the next line and of those after it. With `takes_marks`, the markers are removed.
    fn prefixes(&mut self, takes_marks: bool) -> (Vec<Span<'static>>, Vec<Span<'static>>) {
        let bar =
            Mark::APART.span(format!("{} ", self.render.glyphs.pipe), self.render.theme.style(Role::Quote));
        let (mut first, mut rest) = (Vec::new(), Vec::new());
        // Indents are visible structure before a marker, and only alignment elsewhere.
        let has_mark = takes_marks
            && self
                .containers
                .iter()
                .any(|container| matches!(container, Container::Item { mark: Some(_), .. }));
        for container in &mut self.containers {
            match container {
                Container::Quote => {
                    first.push(bar.clone());
                    rest.push(bar.clone());
                }
                Container::Item { mark, cols } => {
                    let blank = Span::raw(" ".repeat(*cols));
                    let apart = Mark::APART.span(blank.content.clone(), Style::default());
                    let taken = if takes_marks { mark.take() } else { None };
                    first.push(taken.unwrap_or(if has_mark { blank } else { apart.clone() }));
                    rest.push(apart);
                }
            }
        }
        let max = self.max_prefix();
        narrow(&mut first, max);
        narrow(&mut rest, max);
        (first, rest)
    }
}

/// The style of a footnote number: a link's colour, but not underlined, because it cannot be opened.
fn note_style(render: &RenderContext<'_>) -> Style {
    render.theme.style(Role::Link).remove_modifier(Modifier::UNDERLINED)
}

/// Shortens a prefix to a maximum width: first indents, then outer markers, then the end of the last one.
fn narrow(prefix: &mut Vec<Span<'static>>, max: usize) {
    let mut over = spans_width(prefix).saturating_sub(max);
    if over == 0 {
        return;
    }
    prefix.retain(|span| {
        let stays = over == 0 || !span.content.trim().is_empty();
        over = over.saturating_sub(if stays { 0 } else { span.width() });
        stays
    });
    let mut left = prefix.len();
    prefix.retain(|span| {
        let stays = over == 0 || left == 1;
        if !stays {
            left -= 1;
            over = over.saturating_sub(span.width());
        }
        stays
    });
    if over > 0 {
        for span in prefix {
            span.content = truncate(&span.content, max).into();
        }
    }
}

/// Whether the text of a link looks like an address (`https://a.example`, `github.com/login`) on another host.
fn names_other_host(text: &str, target: &str) -> bool {
    let Some((_, rest)) = target.split_once("://") else { return text.contains("://") };
    text.contains("://") || text.split_whitespace().filter_map(host).any(|named| host(rest) != Some(named))
}

/// The host that a word begins with, if it has a dot and a name at the end.
fn host(word: &str) -> Option<&str> {
    let authority = word.split(['/', '?', '#']).next()?;
    let host = authority.rsplit('@').next()?.split(':').next()?;
    let host = host.trim_matches(|c: char| c.is_ascii_punctuation());
    let (rest, top) = host.rsplit_once(['.', '\u{3002}', '\u{ff0e}', '\u{2024}'])?;
    (!rest.is_empty() && top.chars().all(char::is_alphabetic)).then_some(host)
}
