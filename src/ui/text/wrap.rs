//! Wraps styled lines at words, graphemes and wide characters.

use std::ops::Range;

use unicode_segmentation::UnicodeSegmentation;

use super::copy_hint::Mark;
use super::{Line, Span, grapheme_width, spans_width};

/// A grapheme of a line with its position and width.
#[derive(Clone, Copy)]
struct Cluster {
    span: u32,
    start: u32,
    end: u32,
    cols: u16,
    is_space: bool,
}

/// The graphemes of a styled line, for splitting it with its styles.
pub struct Graphemes<'a> {
    line: &'a Line<'a>,
    clusters: Vec<Cluster>,
}

impl<'a> Graphemes<'a> {
    pub fn new(line: &'a Line<'a>) -> Self {
        let mut clusters = Vec::with_capacity(line.spans.iter().map(|span| span.content.len()).sum());
        for (index, span) in line.spans.iter().enumerate() {
            let index = u32::try_from(index).unwrap_or(u32::MAX);
            let text = span.content.as_ref();
            let mut add = |start: usize, grapheme: &str, cols: usize| {
                clusters.push(Cluster {
                    span: index,
                    start: u32::try_from(start).unwrap_or(u32::MAX),
                    end: u32::try_from(start + grapheme.len()).unwrap_or(u32::MAX),
                    cols: u16::try_from(cols).unwrap_or(u16::MAX),
                    is_space: grapheme == " ",
                });
            };
            if text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
                for (at, _) in text.bytes().enumerate() {
                    add(at, text.get(at..=at).unwrap_or_default(), 1);
                }
            } else {
                for (at, grapheme) in text.grapheme_indices(true) {
                    let cols = grapheme_width(grapheme);
                    if cols > 0 {
                        add(at, grapheme, cols);
                    }
                }
            }
        }
        Self { line, clusters }
    }

    pub fn visible(&self) -> String {
        self.clusters.iter().map(|cluster| self.text(*cluster)).collect()
    }

    fn text(&self, cluster: Cluster) -> &str {
        let span = self.line.spans.get(cluster.span as usize);
        span.and_then(|span| span.content.get(cluster.start as usize..cluster.end as usize))
            .unwrap_or_default()
    }

    fn spans(&self, range: Range<usize>, out: &mut Vec<Span<'static>>) {
        let run = self.clusters.get(range).unwrap_or_default();
        let mut open: Option<(u32, String)> = None;
        for cluster in run {
            match &mut open {
                Some((span, text)) if *span == cluster.span => text.push_str(self.text(*cluster)),
                _ => {
                    self.close(open.take(), out);
                    open = Some((cluster.span, self.text(*cluster).to_owned()));
                }
            }
        }
        self.close(open, out);
    }

    fn close(&self, open: Option<(u32, String)>, out: &mut Vec<Span<'static>>) {
        if let Some((span, text)) = open {
            out.extend(self.line.spans.get(span as usize).map(|span| span.with_text(text)));
        }
    }

    /// Whether a line may be broken before this grapheme.
    fn may_break(&self, at: usize) -> bool {
        let (Some(before), Some(here)) =
            (at.checked_sub(1).and_then(|i| self.clusters.get(i)), self.clusters.get(at))
        else {
            return false;
        };
        if here.is_space {
            return false;
        }
        if before.is_space {
            return true;
        }
        // East Asian text can be broken between any two characters, but not before closing punctuation.
        (before.cols == 2 || here.cols == 2)
            && !matches!(
                self.text(*here),
                "、" | "。"
                    | "，"
                    | "．"
                    | "」"
                    | "』"
                    | "）"
                    | "！"
                    | "？"
                    | "："
                    | "；"
                    | ","
                    | "."
                    | ")"
            )
            && !matches!(self.text(*before), "「" | "『" | "（" | "(")
    }
}

/// Wraps a styled line at words and graphemes to a width of `cols` (at least 1). Spaces at a break are
/// removed.
pub fn wrap_line(line: &Line<'_>, cols: u16) -> Vec<Line<'static>> {
    wrap_prefixed(line, cols, &[], &[])
}

/// Wraps with a prefix for the first line and one for the others (an indent, a bar), both within `cols`. A
/// prefix that leaves fewer than 4 columns is omitted.
pub fn wrap_prefixed(
    line: &Line<'_>,
    cols: u16,
    first: &[Span<'static>],
    rest: &[Span<'static>],
) -> Vec<Line<'static>> {
    let graphemes = Graphemes::new(line);
    let cols = usize::from(cols.max(1));
    let fits = |prefix: &[Span<'static>]| cols.checked_sub(spans_width(prefix)).filter(|left| *left >= 4);
    let (first, first_cols) = fits(first).map_or((&[][..], cols), |left| (first, left));
    let (rest, rest_cols) = fits(rest).map_or((&[][..], cols), |left| (rest, left));
    let mut out: Vec<Line<'static>> = Vec::new();
    let (mut from, mut before) = (0, 0);
    loop {
        let (prefix, room) = if out.is_empty() { (first, first_cols) } else { (rest, rest_cols) };
        let (end, next) = cut(&graphemes, from, room);
        let mut spans = prefix.to_vec();
        let mark = (!out.is_empty()).then_some(if before < from { Mark::SPACED } else { Mark::JOINED });
        if mark.is_some() {
            // The prefix of continued rows is decoration.
            for span in &mut spans {
                span.tag.mark = span.tag.mark | Mark::APART;
            }
        }
        if end == from && next > from {
            // A grapheme that is wider than the row is replaced.
            spans.push(Span::raw("…"));
        } else {
            graphemes.spans(from..end, &mut spans);
        }
        let row = styled(line, spans);
        out.push(match mark {
            Some(mark) => mark.row(row),
            None => row,
        });
        if next >= graphemes.clusters.len() {
            return out;
        }
        // A row with only the replacement has no text removed at its end.
        before = if end == from { next } else { end };
        from = next;
    }
}

/// Splits a styled line every `cols` columns and preserves each character.
pub fn hard_wrap(line: &Line<'_>, cols: u16) -> Vec<Line<'static>> {
    cut_whole(line, cols, false)
}

/// The rows of a line of code: split as by [`wrap_whole`]; without wrapping a single row, with `ellipsis` (one cell) at its
/// end if text is hidden.
pub fn code_rows(line: &Line<'_>, cols: u16, wraps: bool, ellipsis: &'static str) -> Vec<Line<'static>> {
    let mut rows = wrap_whole(line, cols);
    if wraps || rows.len() == 1 {
        return rows;
    }
    rows = hard_wrap(line, cols.saturating_sub(1));
    rows.truncate(1);
    for row in &mut rows {
        let style = row.spans.last().map(|span| span.style).unwrap_or_default();
        row.push_span(Mark::APART.span(ellipsis, style));
    }
    rows
}

/// Splits a styled line into rows at words, for code, commands and output: words that do not fit a row are split.
/// Each character is preserved, except that a single space at the end of a row is only marked.
pub fn wrap_whole(line: &Line<'_>, cols: u16) -> Vec<Line<'static>> {
    cut_whole(line, cols, true)
}

fn cut_whole(line: &Line<'_>, cols: u16, is_at_words: bool) -> Vec<Line<'static>> {
    let graphemes = Graphemes::new(line);
    let cluster = |at: usize| graphemes.clusters.get(at);
    let ranges = row_ranges(
        graphemes.clusters.len(),
        usize::from(cols),
        |at| cluster(at).map_or(0, |cluster| usize::from(cluster.cols)),
        |at| is_at_words && cluster(at).is_some_and(|cluster| cluster.is_space),
    );
    let mut before = 0;
    let rows = ranges.into_iter().map(|range| {
        let mark = if range.start > before { Mark::SPACED } else { Mark::JOINED };
        let is_first = range.start == 0;
        before = range.end;
        let mut spans = Vec::new();
        graphemes.spans(range, &mut spans);
        let row = styled(line, spans);
        if is_first { row } else { mark.row(row) }
    });
    rows.collect()
}

/// The rows of a line of `len` characters, as [`wrap_whole`] splits it.
pub fn row_ranges(
    len: usize,
    cols: usize,
    width: impl Fn(usize) -> usize,
    is_space: impl Fn(usize) -> bool,
) -> Vec<Range<usize>> {
    let room = cols.max(2);
    let mut rows = Vec::new();
    let mut from = 0;
    loop {
        let (mut end, mut used) = (from, 0);
        while end < len && (end == from || used + width(end) <= room) {
            used += width(end);
            end += 1;
        }
        if end == len {
            rows.push(from..end);
            return rows;
        }
        let is_single = |at: usize| is_space(at) && !is_space(at - 1) && at + 1 < len && !is_space(at + 1);
        if is_single(end) {
            rows.push(from..end);
            from = end + 1;
            continue;
        }
        let word = (from..=end).rev().find(|at| is_space(*at)).map_or(from, |at| at + 1);
        let fits = (word..len)
            .take_while(|at| !is_space(*at))
            .try_fold(room, |left, at| left.checked_sub(width(at)));
        // An indent alone is no row.
        if word <= end && fits.is_some() && (from..word).any(|at| !is_space(at)) {
            end = word;
        }
        rows.push(from..end);
        from = end;
    }
}

/// The end of the line that starts at `from`, and the start of the next one.
fn cut(graphemes: &Graphemes<'_>, from: usize, room: usize) -> (usize, usize) {
    let clusters = &graphemes.clusters;
    let (mut used, mut at) = (0, from);
    let mut good = None;
    while let Some(cluster) = clusters.get(at) {
        if at > from && graphemes.may_break(at) {
            good = Some(at);
        }
        used += usize::from(cluster.cols);
        if used > room {
            break;
        }
        at += 1;
    }
    if at >= clusters.len() {
        return (at, at);
    }
    if clusters.get(at).is_some_and(|cluster| cluster.is_space) {
        let next = skip_spaces(clusters, at);
        return (trim_end(clusters, from, at), next);
    }
    match good {
        Some(at) => (trim_end(clusters, from, at), at),
        None if at == from => (from, from + 1),
        None => (at, at),
    }
}

fn skip_spaces(clusters: &[Cluster], mut at: usize) -> usize {
    while clusters.get(at).is_some_and(|cluster| cluster.is_space) {
        at += 1;
    }
    at
}

/// Excludes spaces before `end`, unless the line consists only of spaces.
fn trim_end(clusters: &[Cluster], from: usize, end: usize) -> usize {
    let mut at = end;
    while at > from && clusters.get(at - 1).is_some_and(|cluster| cluster.is_space) {
        at -= 1;
    }
    if at == from { end } else { at }
}

fn styled(line: &Line<'_>, spans: Vec<Span<'static>>) -> Line<'static> {
    Line { spans, style: line.style, mark: line.mark }
}
