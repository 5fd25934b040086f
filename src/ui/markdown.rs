//! Incremental Markdown: finds block boundaries as text arrives, and draws individual blocks.
//!
//! [`Markdown`] holds the offsets of the top-level blocks of a text, which the caller passes to each call,
//! and draws any of them at any width. `transcript` caches the drawn lines, `markdown::prose` does the inline
//! layout, and `markdown::code` the code blocks.
//!
//! Blocks are frozen once complete lines follow them; the tail after the last cut is parsed again on each
//! update. An open fence is not parsed: its lines are final. Long fences and very long paragraphs are split
//! into several blocks at positions that depend on the text only, so that no block is too long to be drawn in
//! a frame.
//!
//! Invariants: splitting a text into any chunks results in the same blocks and lines as the complete text.

use std::collections::HashMap;
use std::ops::Range;

use pulldown_cmark::Options;

use super::render_context::RenderContext;
use super::text::copy_hint::Mark;
use crate::ui::text::{Line, boundary_after};

mod code;
mod fence;
mod limit;
mod math;
mod parse;
mod plain;
mod prose;
mod table;

use code::CodeState;
use fence::OpenFence;
use math::Display;
use parse::{Definition, Top};

pub use plain::plain_text;

/// Maximum width of the transcript's content, for readability.
pub const PROSE_COLS: u16 = 116;

/// Number of bytes that are parsed at once; small at first, because parsing restarts after a formula or a
/// fence.
const WINDOW_BYTES: usize = 32 * 1024;
const FIRST_WINDOW_BYTES: usize = 256;

/// Longer blocks than twice this size are split: a paragraph between words, other blocks between lines.
const PARAGRAPH_BYTES: usize = 8 * 1024;
const BLOCK_BYTES: usize = 16 * 1024;

/// This amount of whitespace ends any block.
const BLANK_BYTES: usize = 2 * BLOCK_BYTES;

/// The limit for tables; the rows after the split are plain text.
const TABLE_BYTES: usize = 128 * 1024;

const OPTIONS: Options = Options::ENABLE_TABLES
    .union(Options::ENABLE_STRIKETHROUGH)
    .union(Options::ENABLE_TASKLISTS)
    .union(Options::ENABLE_OLD_FOOTNOTES)
    .union(Options::ENABLE_MATH);

/// Targets of link reference definitions, by label.
pub(crate) type Definitions = HashMap<String, String>;

/// The blocks of a text.
#[derive(Default)]
pub struct Markdown {
    blocks: Vec<Block>,
    frozen: usize,
    /// The start of the tail; everything before it is frozen.
    cut: usize,
    /// The position up to which freezing was attempted.
    tried: usize,
    len: usize,
    is_closed: bool,
    /// How the next block continues a split one.
    seam: Seam,
    fence: Option<OpenFence>,
    languages: Vec<String>,
    frozen_languages: usize,
    definitions: Definitions,
    code: CodeState,
    /// Maximum number of table columns beyond the edge, of the tables drawn so far.
    sideways: u16,
    stats: Stats,
}

/// A top-level block, or a part of a long one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block {
    pub start: usize,
    /// End offset in the source.
    pub end: usize,
    pub kind: BlockKind,
    /// Whether a blank line precedes it.
    pub has_gap: bool,
    /// Whether it continues a line of the previous block.
    pub is_joined: bool,
}

/// How a block continues the previous one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Seam {
    /// It is not a continuation.
    #[default]
    None,
    /// It continues on the next line, possibly after a blank one.
    Line { has_gap: bool },
    /// It continues within a line.
    Word,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockKind {
    /// Any block except a top-level fence.
    Prose,
    /// Lines of a fence, without its markers.
    Code {
        fence: u32,
        part: u32,
        /// Number of its first line in the fence, from 1.
        line: usize,
    },
}

/// Counters for tests and benchmarks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stats {
    /// Bytes that were parsed to find blocks.
    pub parsed_bytes: u64,
    /// Parser events to find blocks.
    pub events: u64,
    pub drawn_blocks: u64,
    pub code_lines: u64,
}

impl Markdown {
    /// The blocks of a complete text.
    pub fn of(source: &str) -> Self {
        let mut markdown = Self::default();
        markdown.update(source, true);
        markdown
    }

    /// Updates the blocks after text was appended, or is complete. A shorter text is treated as a new one.
    /// Returns the number of unchanged blocks at the start.
    pub fn update(&mut self, source: &str, is_closed: bool) -> usize {
        if source.len() < self.len || (self.is_closed && source.len() > self.len) {
            *self = Self { stats: self.stats, ..Self::default() };
        }
        if source.len() == self.len && is_closed == self.is_closed && self.len > 0 {
            return self.blocks.len();
        }
        let (saved, links) = (self.frozen, self.definitions.len());
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
        // A definition affects the parsing of later lines; blocks that were cut before it arrived ignored it.
        if is_closed && self.len > 0 && !self.definitions.is_empty() {
            *self = Self { stats: self.stats, ..Self::default() };
            self.update(source, true);
            return 0;
        }
        self.len = source.len();
        self.is_closed = is_closed;
        if self.definitions.len() == links { saved } else { 0 }
    }

    /// The current blocks; those of the tail may still change.
    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// Maximum horizontal scroll offset of its tables, in table columns.
    pub fn sideways(&self) -> u16 {
        self.sideways
    }

    pub fn stats(&self) -> Stats {
        self.stats
    }

    /// Draws a block at a width. `source` is the text of the last [`Self::update`].
    pub fn draw(
        &mut self,
        index: usize,
        source: &str,
        render: &RenderContext<'_>,
        cols: u16,
    ) -> Vec<Line<'static>> {
        let Some(block) = self.blocks.get(index).copied() else { return Vec::new() };
        let Some(text) = source.get(block.start..block.end) else { return Vec::new() };
        self.stats.drawn_blocks += 1;
        match block.kind {
            BlockKind::Prose => {
                let (mut lines, sideways) = prose::draw(text, &self.definitions, render, cols);
                self.sideways = self.sideways.max(sideways);
                if block.is_joined
                    && let Some(first) = lines.first_mut()
                {
                    // The remainder of a split paragraph.
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
                let position = code::CodePosition { fence, part, start, line, is_joined, is_final };
                let firsts = &self.blocks;
                let before = |part: u32| {
                    let back = index.checked_sub((position.part - part) as usize)?;
                    firsts.get(back).and_then(|block| source.get(block.start..block.end))
                };
                self.code.draw(position, text, language, before, render, cols, &mut self.stats.code_lines)
            }
        }
    }

    /// Freezes all blocks that are followed by complete lines. Complete lines end at `lines_end`.
    fn freeze(&mut self, source: &str, lines_end: usize) {
        let mut window = FIRST_WINDOW_BYTES;
        loop {
            if !self.scan_fence(source, lines_end) {
                return;
            }
            while blanks(source, self.cut, source.len()) == BLANK_BYTES {
                self.cut += BLOCK_BYTES;
            }
            // A very long incomplete line is treated as a paragraph and split.
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

    /// Parses from the cut to `end` and freezes all blocks except the last one.
    fn freeze_window(&mut self, source: &str, end: usize, lines_end: usize) -> Step {
        let (tops, found) = self.parse(source, end);
        let (step, sure) = self.freeze_tops(source, end, lines_end, &tops);
        self.define(found, sure);
        step
    }

    /// Freezes all blocks except the last one. Returns also where text starts that must be parsed again, because it is
    /// a formula or a fence or comes after one.
    fn freeze_tops(&mut self, source: &str, end: usize, lines_end: usize, tops: &[Top]) -> (Step, usize) {
        let before = self.cut;
        for (index, top) in tops.iter().enumerate() {
            if top.is_fence {
                self.open_fence(source, top.start);
                let is_last = index + 1 == tops.len();
                if !self.scan_fence(source, lines_end) || is_last || !self.agrees(source, top) {
                    return (Step::Again, top.start);
                }
                continue;
            }
            match top.display(source, end) {
                Display::At(formula) => {
                    let sure = formula.start;
                    self.push_display(top.start, formula);
                    return (Step::Again, sure);
                }
                Display::Open => {
                    self.cut = top.start;
                    return (if self.cut > before { Step::Moved } else { Step::Stuck }, top.start);
                }
                Display::None => {}
            }
            let max = top.max_bytes();
            if top.end - top.text > 2 * max {
                let at = if top.is_paragraph { None } else { line_split(source, top.text + max, max) };
                let seam = at.map_or(Seam::Word, |at| Seam::Line { has_gap: ends_blank(source, at) });
                let at = at.unwrap_or_else(|| word_split(source, top.text + max, max));
                self.push_prose(top.start, at);
                (self.cut, self.seam) = (at, seam);
                return (Step::Split, at);
            }
            let next = tops.get(index + 1);
            if next.map_or(end, |next| next.start).saturating_sub(top.end) >= BLANK_BYTES
                && let Some(at) = blank_end(source, top.end, end)
            {
                self.push_prose(top.start, at);
                self.cut = at;
                return (Step::Again, at);
            }
            match next {
                Some(next) => {
                    self.push_prose(top.start, next.start);
                    self.cut = next.start;
                }
                None => self.cut = top.start,
            }
        }
        (if self.cut > before { Step::Moved } else { Step::Stuck }, end)
    }

    /// Adds the blocks of the tail, which the next update removes.
    fn add_tail(&mut self, source: &str, is_closed: bool) {
        if self.fence.is_some() {
            self.add_fence_tail(source, is_closed);
            return;
        }
        let saved = (self.cut, self.tried, self.seam);
        loop {
            let (tops, found) = self.parse(source, source.len());
            let (step, sure) = self.add_tops(source, is_closed, &tops);
            if is_closed {
                self.define(found, sure);
            }
            if !matches!(step, Step::Again) {
                break;
            }
        }
        (self.cut, self.tried, self.seam) = saved;
    }

    /// Adds blocks of the tail. Returns the same as [`Self::freeze_tops`].
    fn add_tops(&mut self, source: &str, is_closed: bool, tops: &[Top]) -> (Step, usize) {
        for (index, top) in tops.iter().enumerate() {
            if top.is_fence {
                self.open_fence(source, top.start);
                if !self.scan_fence(source, source.len()) {
                    self.add_fence_tail(source, is_closed);
                    self.fence = None;
                    return (Step::Moved, top.start);
                }
                if !self.agrees(source, top) {
                    return (Step::Again, top.start);
                }
            } else if let Display::At(formula) = top.display(source, source.len()) {
                let sure = formula.start;
                self.push_display(top.start, formula);
                return (Step::Again, sure);
            } else {
                self.push_prose(top.start, tops.get(index + 1).map_or(source.len(), |next| next.start));
            }
        }
        (Step::Moved, source.len())
    }

    /// Whether the parser and the line scan end the fence at the same position; otherwise the rest of the
    /// parse is discarded.
    fn agrees(&self, source: &str, top: &Top) -> bool {
        let between = source.get(self.cut.min(top.end)..self.cut.max(top.end));
        between.is_some_and(|between| between.trim().is_empty())
    }

    /// Adds a display formula, and the text before it in its paragraph. Moves the cut after it.
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

    fn define(&mut self, found: Vec<Definition>, until: usize) {
        for Definition { label, target, .. } in found.into_iter().filter(|found| found.at < until) {
            self.definitions.entry(label).or_insert(target);
        }
    }
}

enum Step {
    /// Only the last block of the window is left.
    Moved,
    /// The window has at most one block.
    Stuck,
    /// The cut has moved: parse from there.
    Again,
    /// The cut has moved within a very long block.
    Split,
}

/// The start of the line after the one at `at`.
fn line_after(text: &str, at: usize) -> usize {
    let rest = text.get(at..).unwrap_or_default();
    at + rest.find('\n').map_or(rest.len(), |end| end + 1)
}

/// The end of a window of about this size: at the end of a line, unless that line is very long.
fn window_end(source: &str, cut: usize, window: usize, limit: usize) -> usize {
    if limit.saturating_sub(cut) <= window {
        return limit;
    }
    let end = limit.min(cut + 2 * window.max(WINDOW_BYTES));
    let newline = source.as_bytes().get(cut + window..end).and_then(|rest| memchr::memchr(b'\n', rest));
    newline.map_or(boundary_after(source, end), |at| cut + window + at + 1)
}

/// Number of whitespace bytes after a position, up to the limit.
fn blanks(source: &str, from: usize, end: usize) -> usize {
    let bytes = source.as_bytes().get(from..end.min(from + BLANK_BYTES)).unwrap_or_default();
    bytes.iter().position(|byte| !byte.is_ascii_whitespace()).unwrap_or(bytes.len())
}

/// The end of the line of a block that ends at about `from`, if excessive whitespace follows.
fn blank_end(source: &str, from: usize, end: usize) -> Option<usize> {
    let text = source.get(..from)?.trim_ascii_end().len();
    let line = line_after(source, text);
    (blanks(source, text, end) == BLANK_BYTES).then_some(line)
}

/// Where to split an overlong text within a range of bytes: after whitespace, otherwise anywhere.
fn word_split(source: &str, from: usize, within: usize) -> usize {
    let bytes = source.as_bytes().get(from..from + within).unwrap_or_default();
    let blank = memchr::memchr2(b' ', b'\n', bytes).map(|at| from + at + 1);
    boundary_after(source, blank.unwrap_or(from + within))
}

/// Where to split overlong lines: before one that is not indented, such as a list item, otherwise before any
/// line.
fn line_split(source: &str, from: usize, within: usize) -> Option<usize> {
    let bytes = source.as_bytes().get(from..from + within)?;
    let mut starts = memchr::memchr_iter(b'\n', bytes).map(|at| at + 1);
    let first = starts.clone().next()?;
    let is_outer = |at: &usize| bytes.get(*at).is_some_and(|byte| !byte.is_ascii_whitespace());
    Some(from + starts.find(is_outer).unwrap_or(first))
}

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
