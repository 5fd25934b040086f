//! Lines of styled text, with what copying and the mouse must know of it.
//!
//! They are ratatui's lines with a tag for each span: marks for copying and a link. A style is only what is seen.

use std::borrow::Cow;

use ratatui::style::Style;

use super::copy_hint::Mark;

/// What a stretch of text is, besides how it looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Tag {
    /// What copying must know.
    pub mark: Mark,
    /// The number of the link that it belongs to; 0: none.
    pub link: u32,
    /// The number of the row of a picture that it leaves room for; 0: none.
    pub picture: u32,
}

/// Text in one style.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Span<'a> {
    pub content: Cow<'a, str>,
    pub style: Style,
    pub tag: Tag,
}

/// A row of spans; its style is under theirs, and its marks are those of all of them.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Line<'a> {
    pub spans: Vec<Span<'a>>,
    pub style: Style,
    pub mark: Mark,
}

impl<'a> Span<'a> {
    /// Text without a style.
    pub fn raw(content: impl Into<Cow<'a, str>>) -> Self {
        Self::styled(content, Style::default())
    }

    pub fn styled(content: impl Into<Cow<'a, str>>, style: Style) -> Self {
        Self { content: content.into(), style, tag: Tag::default() }
    }

    pub fn with_text<'b>(&self, content: impl Into<Cow<'b, str>>) -> Span<'b> {
        Span { content: content.into(), style: self.style, tag: self.tag }
    }

    /// The same text as part of a link; 0: of none.
    #[must_use]
    pub fn linked(mut self, link: u32) -> Self {
        self.tag.link = link;
        self
    }

    #[must_use]
    pub fn marked(mut self, mark: Mark) -> Self {
        self.tag.mark = self.tag.mark | mark;
        self
    }

    /// How many columns it takes.
    pub fn width(&self) -> usize {
        super::width(&self.content)
    }
}

impl<'a> Line<'a> {
    /// Text without a style.
    pub fn raw(content: impl Into<Cow<'a, str>>) -> Self {
        Self::from(Span::raw(content))
    }

    pub fn styled(content: impl Into<Cow<'a, str>>, style: Style) -> Self {
        Self { style, ..Self::raw(content) }
    }

    pub fn push_span(&mut self, span: impl Into<Span<'a>>) {
        self.spans.push(span.into());
    }

    /// How many columns it takes.
    pub fn width(&self) -> usize {
        spans_width(&self.spans)
    }
}

/// How many columns a part of a line takes.
pub fn spans_width(spans: &[Span<'_>]) -> usize {
    spans.iter().map(Span::width).sum()
}

impl<'a> From<&'a str> for Span<'a> {
    fn from(text: &'a str) -> Self {
        Self::raw(text)
    }
}

impl From<String> for Span<'_> {
    fn from(text: String) -> Self {
        Self::raw(text)
    }
}

impl<'a, T: Into<Span<'a>>> From<T> for Line<'a> {
    fn from(span: T) -> Self {
        vec![span.into()].into()
    }
}

impl<'a> From<Vec<Span<'a>>> for Line<'a> {
    fn from(spans: Vec<Span<'a>>) -> Self {
        Self { spans, ..Self::default() }
    }
}

impl std::fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.spans.iter().try_for_each(|span| f.write_str(&span.content))
    }
}
