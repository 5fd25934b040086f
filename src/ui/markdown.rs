//! Markdown that grows: block boundaries found as text arrives, blocks drawn one at a time.
//!
//! Duty: [`Markdown`] knows where the top-level blocks of a text are, whatever the width, and draws any of them.
//! Not its duty: keeping drawn lines (`transcript`), inline layout (`markdown::prose`), code (`markdown::code`).
//! The source stays with its owner and is handed in on each call; here are only offsets. Blocks are frozen once
//! complete lines follow them; the tail behind the last cut is parsed again on each update. An open fence is
//! not parsed at all: its lines are final one by one. Long fences and very long paragraphs are split into
//! several blocks at places that the text alone decides, so that no block gets too long to draw in a frame.
//! Invariant: any chunking of a text, then its end, gives the blocks and lines of the whole text at once.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag};
use ratatui::text::Line;

use super::render_context::RenderContext;
use super::text::copy_hint::Mark;

mod code;
mod fence;
mod limit;
mod math;
mod plain;
mod prose;
mod table;

use code::CodeState;
use fence::OpenFence;
use math::Display;

pub use plain::plain_text;

/// Prose is no wider than this, for the eye's sake.
pub const PROSE_COLS: u16 = 96;

/// How much is parsed at a time when a text arrives whole: less at first, because a formula or a fence begins anew.
const WINDOW_BYTES: usize = 32 * 1024;
const FIRST_WINDOW_BYTES: usize = 256;

/// A block of more than twice this is split: a paragraph at a word, anything else at a line.
const PARAGRAPH_BYTES: usize = 8 * 1024;
const BLOCK_BYTES: usize = 16 * 1024;

/// So many blanks end any block.
const BLANK_BYTES: usize = 2 * BLOCK_BYTES;

/// The same for a table: after the split its rows are plain text.
const TABLE_BYTES: usize = 128 * 1024;

/// What parsers and links of the whole text are like.
const OPTIONS: Options = Options::ENABLE_TABLES
    .union(Options::ENABLE_STRIKETHROUGH)
    .union(Options::ENABLE_TASKLISTS)
    .union(Options::ENABLE_OLD_FOOTNOTES)
    .union(Options::ENABLE_MATH);

/// Targets of link reference definitions, by label.
pub(crate) type Definitions = HashMap<String, String>;

/// The blocks of one text.
#[derive(Default)]
pub struct Markdown {
    blocks: Vec<Block>,
    frozen: usize,
    /// Where the tail begins: everything before is frozen.
    cut: usize,
    /// Up to where the tail was tried to be frozen.
    tried: usize,
    len: usize,
    is_closed: bool,
    /// How the next block continues one that was split.
    seam: Seam,
    fence: Option<OpenFence>,
    languages: Vec<String>,
    frozen_languages: usize,
    definitions: Definitions,
    code: CodeState,
    /// Columns of its tables that stand beyond the edge, as far as they were drawn.
    sideways: u16,
    stats: Stats,
}

/// A top-level block, or a part of a long one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block {
    /// First byte in the source.
    pub start: usize,
    /// Behind its last byte.
    pub end: usize,
    pub kind: BlockKind,
    /// Whether a blank line parts it from the block before.
    pub has_gap: bool,
    /// Whether it continues a line of the block before.
    pub is_joined: bool,
}

/// How a block continues the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Seam {
    /// It does not.
    #[default]
    None,
    /// On the next line, perhaps after a blank one.
    Line { has_gap: bool },
    /// Within a line.
    Word,
}

/// What a block is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockKind {
    /// Anything but a fence at the top level.
    Prose,
    /// Lines of a fence, without its marks.
    Code {
        /// Which fence of the text.
        fence: u32,
        part: u32,
        /// The number of its first line in the fence, from 1.
        line: usize,
    },
}

/// What was done so far; tests and benches read it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stats {
    /// Bytes given to the parser to find blocks.
    pub parsed_bytes: u64,
    /// Events that the parser gave to find blocks.
    pub events: u64,
    pub drawn_blocks: u64,
    /// Lines of code highlighted or set plain.
    pub code_lines: u64,
}

impl Markdown {
    /// The blocks of a whole text.
    pub fn of(source: &str) -> Self {
        let mut markdown = Self::default();
        markdown.update(source, true);
        markdown
    }

    /// Takes note of a text that grew at its end, or ended. A text that is shorter than before counts as a new
    /// one. Returns how many blocks from the beginning are as they were, drawing included.
    pub fn update(&mut self, source: &str, is_closed: bool) -> usize {
        if source.len() < self.len || (self.is_closed && source.len() > self.len) {
            *self = Self { stats: self.stats, ..Self::default() };
        }
        if source.len() == self.len && is_closed == self.is_closed && self.len > 0 {
            return self.blocks.len();
        }
        let (kept, links) = (self.frozen, self.definitions.len());
        self.blocks.truncate(self.frozen);
        self.languages.truncate(self.frozen_languages);
        let lines_end = if is_closed {
            source.len()
        } else {
            let from = self.tried.max(self.cut);
            source.get(from..).and_then(|new| new.rfind('\n')).map_or(from, |at| from + at + 1)
        };
        self.freeze(source, lines_end);
        self.frozen = self.blocks.len();
        self.frozen_languages = self.languages.len();
        self.add_tail(source, is_closed);
        if is_closed {
            self.frozen = self.blocks.len();
            self.frozen_languages = self.languages.len();
        }
        // A definition may decide how lines behind it are read, and what was cut before it came cannot know that.
        if is_closed && self.len > 0 && !self.definitions.is_empty() {
            *self = Self { stats: self.stats, ..Self::default() };
            self.update(source, true);
            return 0;
        }
        self.len = source.len();
        self.is_closed = is_closed;
        if self.definitions.len() == links { kept } else { 0 }
    }

    /// The blocks so far; those of the tail may still change.
    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// How far its tables can be moved sideways, in their columns; more than that shows nothing new.
    pub fn sideways(&self) -> u16 {
        self.sideways
    }

    /// What was done so far.
    pub fn stats(&self) -> Stats {
        self.stats
    }

    /// Draws a block for so many columns. `source` is the text of the last [`Self::update`].
    pub fn draw(
        &mut self,
        index: usize,
        source: &str,
        look: &RenderContext<'_>,
        cols: u16,
    ) -> Vec<Line<'static>> {
        let Some(block) = self.blocks.get(index).copied() else { return Vec::new() };
        let Some(text) = source.get(block.start..block.end) else { return Vec::new() };
        self.stats.drawn_blocks += 1;
        match block.kind {
            BlockKind::Prose => {
                let (mut lines, sideways) = prose::draw(text, &self.definitions, look, cols);
                self.sideways = self.sideways.max(sideways);
                if block.is_joined
                    && let Some(first) = lines.first_mut()
                {
                    // The rest of a paragraph that was split.
                    let is_spaced =
                        source.get(..block.start).is_some_and(|before| before.ends_with([' ', '\n']));
                    let mark = if is_spaced { Mark::SPACED } else { Mark::JOINED };
                    *first = mark.row(std::mem::take(first));
                }
                lines
            }
            BlockKind::Code { fence, part, line } => {
                let language = self.languages.get(fence as usize).map_or("", String::as_str);
                let is_final = index < self.frozen;
                let (start, is_joined) = (block.start, block.is_joined);
                let place = code::Place { fence, part, start, line, is_joined, is_final };
                let firsts = &self.blocks;
                let before = |part: u32| {
                    let back = index.checked_sub((place.part - part) as usize)?;
                    firsts.get(back).and_then(|block| source.get(block.start..block.end))
                };
                self.code.draw(place, text, language, before, look, cols, &mut self.stats.code_lines)
            }
        }
    }

    /// Freezes all blocks that complete lines follow. Complete lines end at `lines_end`.
    fn freeze(&mut self, source: &str, lines_end: usize) {
        let mut window = FIRST_WINDOW_BYTES;
        loop {
            if !self.scan_fence(source, lines_end) {
                return;
            }
            while blanks(source, self.cut, source.len()) == BLANK_BYTES {
                self.cut += BLOCK_BYTES;
            }
            // A line that goes on for that long is taken as a paragraph and split like one.
            let limit = if source.len().saturating_sub(lines_end.max(self.cut)) > 4 * PARAGRAPH_BYTES {
                source.len()
            } else {
                lines_end
            };
            let end = window_end(source, self.cut, window, limit);
            if end <= self.tried.max(self.cut) {
                if end >= limit {
                    return;
                }
                window *= 2;
                continue;
            }
            self.tried = end;
            match self.freeze_window(source, end, lines_end) {
                Step::Again => (self.tried, window) = (self.cut, FIRST_WINDOW_BYTES),
                Step::Split => (self.tried, window) = (self.cut, WINDOW_BYTES),
                Step::Moved if end < limit => window = (window * 4).min(WINDOW_BYTES),
                Step::Stuck if end < limit => window *= 2,
                Step::Moved | Step::Stuck => return,
            }
        }
    }

    /// Parses from the cut to `end` and freezes all but the last block.
    fn freeze_window(&mut self, source: &str, end: usize, lines_end: usize) -> Step {
        let tops = self.parse(source, end, true);
        let before = self.cut;
        for (index, top) in tops.iter().enumerate() {
            if top.is_fence {
                self.open_fence(source, top.start);
                let is_last = index + 1 == tops.len();
                if !self.scan_fence(source, lines_end) || is_last || !self.agrees(source, top) {
                    return Step::Again;
                }
                continue;
            }
            match top.display(source, end) {
                Display::At(formula) => {
                    self.push_display(top.start, formula);
                    return Step::Again;
                }
                Display::Open => {
                    self.cut = top.start;
                    break;
                }
                Display::None => {}
            }
            let most = top.most_bytes();
            if top.end - top.text > 2 * most {
                let at = if top.is_paragraph { None } else { line_split(source, top.text + most, most) };
                let seam = at.map_or(Seam::Word, |at| Seam::Line { has_gap: ends_blank(source, at) });
                let at = at.unwrap_or_else(|| word_split(source, top.text + most, most));
                self.push_prose(top.start, at);
                (self.cut, self.seam) = (at, seam);
                return Step::Split;
            }
            let next = tops.get(index + 1);
            if next.map_or(end, |next| next.start).saturating_sub(top.end) >= BLANK_BYTES
                && let Some(at) = blank_end(source, top.end, end)
            {
                self.push_prose(top.start, at);
                self.cut = at;
                return Step::Again;
            }
            match next {
                Some(next) => {
                    self.push_prose(top.start, next.start);
                    self.cut = next.start;
                }
                None => self.cut = top.start,
            }
        }
        if self.cut > before { Step::Moved } else { Step::Stuck }
    }

    /// Adds the blocks behind the cut; they are taken away again on the next update.
    fn add_tail(&mut self, source: &str, is_closed: bool) {
        if self.fence.is_some() {
            self.add_fence_tail(source, is_closed);
            return;
        }
        let kept = (self.cut, self.tried, self.seam);
        'parse: loop {
            let tops = self.parse(source, source.len(), false);
            for (index, top) in tops.iter().enumerate() {
                if top.is_fence {
                    self.open_fence(source, top.start);
                    if !self.scan_fence(source, source.len()) {
                        self.add_fence_tail(source, is_closed);
                        self.fence = None;
                        break;
                    }
                    if !self.agrees(source, top) {
                        continue 'parse;
                    }
                } else if let Display::At(formula) = top.display(source, source.len()) {
                    self.push_display(top.start, formula);
                    continue 'parse;
                } else {
                    self.push_prose(top.start, tops.get(index + 1).map_or(source.len(), |next| next.start));
                }
            }
            break;
        }
        (self.cut, self.tried, self.seam) = kept;
    }

    /// Whether the parser too ends a fence where the scan just did; else what it found behind is not to be used.
    fn agrees(&self, source: &str, top: &Top) -> bool {
        let between = source.get(self.cut.min(top.end)..self.cut.max(top.end));
        between.is_some_and(|between| between.trim().is_empty())
    }

    /// A formula on lines of its own, and what stands before it in its paragraph. The cut is then behind it.
    fn push_display(&mut self, start: usize, formula: Range<usize>) {
        if start < formula.start {
            self.push_prose(start, formula.start);
        }
        self.push_prose(formula.start, formula.end);
        self.cut = formula.end;
    }

    fn push_prose(&mut self, start: usize, end: usize) {
        let (has_gap, is_joined) = match std::mem::take(&mut self.seam) {
            Seam::None => (!self.blocks.is_empty(), false),
            Seam::Line { has_gap } => (has_gap, false),
            Seam::Word => (false, true),
        };
        self.blocks.push(Block { start, end, kind: BlockKind::Prose, has_gap, is_joined });
    }

    /// The top-level blocks between the cut and `end`, each from the start of its line.
    fn parse(&mut self, source: &str, end: usize, is_complete: bool) -> Vec<Top> {
        let cut = self.cut;
        let Some(text) = source.get(cut..end) else { return Vec::new() };
        self.stats.parsed_bytes += text.len() as u64;
        let text = &limit::with_wide_tables_hidden(text);
        let events = Parser::new_ext(text, OPTIONS).into_offset_iter();
        if is_complete {
            for (label, link) in events.reference_definitions().iter() {
                self.definitions.entry(label_key(label)).or_insert_with(|| link.dest.to_string());
            }
        }
        let labels: HashSet<String> =
            events.reference_definitions().iter().map(|(label, _)| label_key(label)).collect();
        let mut tops = Vec::new();
        let mut depth = 0_usize;
        for (event, range) in events {
            self.stats.events += 1;
            let is_start = matches!(event, Event::Start(_));
            if depth == 0 && !matches!(event, Event::End(_)) {
                let line = text.get(..range.start).and_then(|head| head.rfind('\n')).map_or(0, |at| at + 1);
                let is_fence = matches!(event, Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(_))));
                let is_paragraph = matches!(event, Event::Start(Tag::Paragraph));
                let from = tops.last().map_or(0, |top: &Top| line_behind(text, top.sure - cut));
                // What may interrupt a paragraph is read alike wherever it stands. A paragraph may still turn into a
                // table or an underlined heading.
                let is_grown = match &event {
                    Event::Start(Tag::Paragraph | Tag::Table(_)) => true,
                    Event::Start(Tag::Heading { .. }) => {
                        !text.get(line..).is_some_and(|text| text.trim_start().starts_with('#'))
                    }
                    _ => false,
                };
                let start = if is_grown && !labels.is_empty() {
                    definition_before(text, &labels, from, line)
                } else {
                    line
                };
                tops.push(Top {
                    start: cut + start,
                    text: cut + line,
                    sure: cut
                        + if matches!(event, Event::Start(Tag::HtmlBlock | Tag::Table(_))) {
                            range.end
                        } else {
                            line
                        },
                    end: cut + range.end,
                    is_fence,
                    is_paragraph,
                    is_table: matches!(event, Event::Start(Tag::Table(_))),
                    is_grown,
                });
            }
            match event {
                _ if is_start => depth += 1,
                Event::End(_) => depth = depth.saturating_sub(1),
                _ => {}
            }
        }
        tops
    }
}

/// A top-level block as the parser sees it.
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
struct Top {
    /// Where it begins, with a definition right before it that says how its first line is read.
    start: usize,
    /// The line where what is seen of it begins.
    text: usize,
    /// Up to the line of this it certainly goes; the parser's ends may take in definitions behind it.
    sure: usize,
    end: usize,
    is_fence: bool,
    is_paragraph: bool,
    is_table: bool,
    /// It is a paragraph, or was one until its second line came.
    is_grown: bool,
}

impl Top {
    /// It is split when it has more than twice as much.
    fn most_bytes(&self) -> usize {
        match () {
            () if self.is_paragraph => PARAGRAPH_BYTES,
            () if self.is_table => TABLE_BYTES,
            () => BLOCK_BYTES,
        }
    }

    /// The formula on lines of its own that it holds.
    fn display(&self, source: &str, end: usize) -> Display {
        if self.is_grown { math::display_in(source, self.text..self.end, end) } else { Display::None }
    }
}

/// How a try to freeze went.
enum Step {
    /// Only the last block is left of the window.
    Moved,
    /// The window holds one block, or none.
    Stuck,
    /// The cut is somewhere else: parse from there.
    Again,
    /// The same, in a block that is very long.
    Split,
}

/// Where the line behind the one at `at` begins.
fn line_behind(text: &str, at: usize) -> usize {
    let rest = text.get(at..).unwrap_or_default();
    at + rest.find('\n').map_or(rest.len(), |end| end + 1)
}

/// Where a block must be cut whose first line is at `line`: there, or at the link reference definition right
/// before it, which decides how the line is read (what would be code or a list on its own, may be text behind
/// one, and a quotation may still become its title). Lines up to `from` belong to the block before.
fn definition_before(text: &str, labels: &HashSet<String>, from: usize, line: usize) -> usize {
    let mut end = line;
    while let Some(before) = text.get(from..end.saturating_sub(1)).filter(|_| end > from) {
        let start = from + before.rfind('\n').map_or(0, |at| at + 1);
        let before = text.get(start..end).unwrap_or_default().trim();
        if before.is_empty() {
            break;
        }
        let label = before.strip_prefix('[').and_then(|rest| rest.split_once("]:"));
        if label.is_some_and(|(label, _)| labels.contains(&label_key(label))) {
            return start;
        }
        end = start;
    }
    line
}

/// Where a window of about so many bytes ends: behind a line, unless that is longer than two windows.
fn window_end(source: &str, cut: usize, window: usize, limit: usize) -> usize {
    if limit.saturating_sub(cut) <= window {
        return limit;
    }
    let end = limit.min(cut + 2 * window.max(WINDOW_BYTES));
    let newline = source.as_bytes().get(cut + window..end).and_then(|rest| memchr::memchr(b'\n', rest));
    newline.map_or(boundary(source, end), |at| cut + window + at + 1)
}

/// How many blanks follow a place, as far as that matters.
fn blanks(source: &str, from: usize, end: usize) -> usize {
    let bytes = source.as_bytes().get(from..end.min(from + BLANK_BYTES)).unwrap_or_default();
    bytes.iter().position(|byte| !byte.is_ascii_whitespace()).unwrap_or(bytes.len())
}

/// Where the line of a block that ends at about `from` ends, if very many blanks follow it.
fn blank_end(source: &str, from: usize, end: usize) -> Option<usize> {
    let text = source.get(..from)?.trim_ascii_end().len();
    let line = line_behind(source, text);
    (blanks(source, text, end) == BLANK_BYTES).then_some(line)
}

/// The beginning of a character at a place or behind it.
fn boundary(source: &str, at: usize) -> usize {
    (at..source.len()).find(|at| source.is_char_boundary(*at)).unwrap_or(source.len())
}

/// Where a text that is too long is split, in so many bytes from a place on: behind a blank, else anywhere.
fn word_split(source: &str, from: usize, within: usize) -> usize {
    let bytes = source.as_bytes().get(from..from + within).unwrap_or_default();
    let blank = memchr::memchr2(b' ', b'\n', bytes).map(|at| from + at + 1);
    boundary(source, blank.unwrap_or(from + within))
}

/// The same for lines: before one that is not indented, so that a list is split between its items, else before any.
fn line_split(source: &str, from: usize, within: usize) -> Option<usize> {
    let bytes = source.as_bytes().get(from..from + within)?;
    let mut starts = memchr::memchr_iter(b'\n', bytes).map(|at| at + 1);
    let first = starts.clone().next()?;
    let is_outer = |at: &usize| bytes.get(*at).is_some_and(|byte| !byte.is_ascii_whitespace());
    Some(from + starts.find(is_outer).unwrap_or(first))
}

/// Whether a blank line ends at this place.
fn ends_blank(source: &str, at: usize) -> bool {
    let before = source.get(..at).map(|before| before.trim_end_matches([' ', '\t', '\r']));
    let before = before.and_then(|before| before.strip_suffix('\n'));
    before.is_some_and(|before| before.trim_end_matches([' ', '\t', '\r']).ends_with('\n'))
}

/// A label as `CommonMark` compares it.
pub(crate) fn label_key(label: &str) -> String {
    label.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase()
}

#[cfg(test)]
mod tests;
