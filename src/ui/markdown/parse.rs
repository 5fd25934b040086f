//! The top-level blocks of a part of the text, as the Markdown parser finds them.

use std::collections::HashSet;

use pulldown_cmark::{CodeBlockKind, Event, Parser, Tag};

use super::math::{self, Display};
use super::{BLOCK_BYTES, Markdown, OPTIONS, PARAGRAPH_BYTES, TABLE_BYTES, label_key, limit, line_after};

/// A link reference definition.
pub(super) struct Definition {
    /// Its offset in the source.
    pub at: usize,
    pub label: String,
    pub target: String,
}

#[expect(clippy::struct_excessive_bools, reason = "the flags are independent")]
pub(super) struct Top {
    /// Start offset, including a definition directly before it that affects its first line.
    pub start: usize,
    /// Start of its first visible line.
    pub text: usize,
    /// It extends at least to the line of this offset; the parser's end may include definitions after it.
    sure: usize,
    pub end: usize,
    pub is_fence: bool,
    pub is_paragraph: bool,
    is_table: bool,
    /// Whether it is a paragraph, or was one before its second line arrived.
    is_grown: bool,
}

impl Top {
    /// Blocks of more than twice this size are split.
    pub fn max_bytes(&self) -> usize {
        match () {
            () if self.is_paragraph => PARAGRAPH_BYTES,
            () if self.is_table => TABLE_BYTES,
            () => BLOCK_BYTES,
        }
    }

    pub fn display(&self, source: &str, end: usize) -> Display {
        if self.is_grown { math::display_in(source, self.text..self.end, end) } else { Display::None }
    }
}

impl Markdown {
    /// The top-level blocks between the cut and `end`, each from the start of its line, and the link reference
    /// definitions.
    pub(super) fn parse(&mut self, source: &str, end: usize) -> (Vec<Top>, Vec<Definition>) {
        let cut = self.cut;
        let Some(text) = source.get(cut..end) else { return Default::default() };
        self.stats.parsed_bytes += text.len() as u64;
        let text = &limit::with_wide_tables_hidden(text);
        let events = Parser::new_ext(text, OPTIONS).into_offset_iter();
        let found: Vec<Definition> = events
            .reference_definitions()
            .iter()
            .map(|(label, link)| Definition {
                at: cut + link.span.start,
                label: label_key(label),
                target: link.dest.to_string(),
            })
            .collect();
        let labels: HashSet<&str> = found.iter().map(|found| found.label.as_str()).collect();
        let mut tops = Vec::new();
        let mut depth = 0_usize;
        for (event, range) in events {
            self.stats.events += 1;
            let is_start = matches!(event, Event::Start(_));
            if depth == 0 && !matches!(event, Event::End(_)) {
                let line = text.get(..range.start).and_then(|head| head.rfind('\n')).map_or(0, |at| at + 1);
                let is_fence = matches!(event, Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(_))));
                let is_paragraph = matches!(event, Event::Start(Tag::Paragraph));
                let from = tops.last().map_or(0, |top: &Top| line_after(text, top.sure - cut));
                // Blocks that can interrupt a paragraph are parsed the same everywhere. A paragraph may still
                // become a table or a heading.
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
        (tops, found)
    }
}

/// The position where a block with its first line at `line` must be cut: there, or at the link reference
/// definition directly before it, which affects how the line is parsed (as code or a list, or as a part of
/// the definition). Lines up to `from` belong to the previous block.
fn definition_before(text: &str, labels: &HashSet<&str>, from: usize, line: usize) -> usize {
    let mut end = line;
    while let Some(before) = text.get(from..end.saturating_sub(1)).filter(|_| end > from) {
        let start = from + before.rfind('\n').map_or(0, |at| at + 1);
        let before = text.get(start..end).unwrap_or_default().trim();
        if before.is_empty() {
            break;
        }
        let label = before.strip_prefix('[').and_then(|rest| rest.split_once("]:"));
        if label.is_some_and(|(label, _)| labels.contains(label_key(label).as_str())) {
            return start;
        }
        end = start;
    }
    line
}
