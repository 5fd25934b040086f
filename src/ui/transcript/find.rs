//! Search matches on drawn rows: highlights them on the screen, and finds the row of the current match.
//! `ui::session_view::search` counts the matches, and `ui::dialogs` expands items that hide one.
//!
//! Rows are joined before matching, so a match may span rows. The text on the screen differs from the source:
//! Markdown markup is removed, and gutters are added. Therefore the current match is identified by its
//! surrounding text, and if that is ambiguous, by its order.
//!
//! Invariants: the cost of highlighting depends on the visible rows, and of finding the current match on its
//! block or item.

use std::ops::Range;

use ratatui::style::{Modifier, Style};

use crate::core::ItemBody;
use crate::model::Role as Speaker;
use crate::ui::canvas::Canvas;
use crate::ui::cells::layout::Source;
use crate::ui::render_context::RenderContext;
use crate::ui::session_view::search::{Hit, Pattern, Search, hits, texts};
use crate::ui::text::Line;
use crate::ui::text::copy_hint::{self, Join};
use crate::ui::theme::Role;

use super::list::List;
use super::{RowPosition, group};

/// Rows above and below the screen that may contain a part of a match.
const AROUND_ROWS: usize = 6;
/// Number of letters before and after a match that identify it.
const CONTEXT_LETTERS: usize = 24;
/// Width of the symbol and the kind in the header of a call, which is not searched.
const CALL_HEAD_COLS: usize = 10;

/// The position of the current match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Spot {
    hit: Hit,
    render_revision: u64,
    position: RowPosition,
    row: usize,
    col: usize,
}

#[cfg(test)]
impl Spot {
    /// A sort key from top to bottom.
    pub fn order(&self) -> (usize, usize, usize, usize) {
        (self.position.item, self.position.piece, self.row, self.col)
    }
}

/// A match: ranges of columns per row, from top to bottom.
struct Match {
    runs: Vec<(usize, Range<usize>)>,
    /// Number of letters of the context that agree.
    score: usize,
}

/// The position of a piece on the screen.
pub(super) struct Frame {
    pub item: usize,
    pub piece: usize,
    /// The first visible line of the piece, and its row on the screen.
    pub first: usize,
    pub y: u16,
    pub x: u16,
    /// Number of columns, and of rows to the end of the area.
    pub cols: u16,
    pub rows: u16,
}

/// Highlights the matches in a piece that was just drawn.
pub(super) fn mark(list: &List<'_>, frame: &Frame, buf: &mut Canvas) {
    let Some(search) = list.session_view.search.as_deref() else { return };
    let Some(pattern) = search.pattern() else { return };
    let Some(cell) = list.view.cells.get(&frame.item) else { return };
    let lines = cell.layout.pieces.get(frame.piece).and_then(|piece| piece.lines.as_deref());
    let Some(lines) = lines else { return };
    let end = (frame.first + usize::from(frame.rows)).min(lines.len());
    let from = frame.first.saturating_sub(AROUND_ROWS);
    let window = lines.get(from..(end + AROUND_ROWS).min(lines.len())).unwrap_or_default();
    let spot = list.view.spot.filter(|spot| {
        search.current() == Some(spot.hit)
            && (spot.position.item, spot.position.piece) == (frame.item, frame.piece)
    });
    for found in matches(window, pattern, None) {
        let Some((row, cols)) = found.runs.first() else { continue };
        if frame.piece == 0 && from + row == 0 && is_label(list, frame.item, cols.start) {
            continue;
        }
        let is_current = spot.is_some_and(|spot| (spot.row, spot.col) == (from + row, cols.start));
        let style = style(list.render, is_current);
        for (row, cols) in &found.runs {
            let row = from + row;
            if row < frame.first || row >= end {
                continue;
            }
            let y = frame.y + u16::try_from(row - frame.first).unwrap_or(u16::MAX);
            for col in cols.clone().filter(|col| *col < usize::from(frame.cols)) {
                let x = frame.x + u16::try_from(col).unwrap_or(u16::MAX);
                if let Some(cell) = buf.cell_mut((x, y)) {
                    cell.set_style(style);
                }
            }
        }
    }
}

/// Whether a position in a header contains a label of parlor: the kind of a call, the header of a thought.
fn is_label(list: &List<'_>, item: usize, col: usize) -> bool {
    match list.items.get(item).map(|item| &item.body) {
        Some(ItemBody::Tool(_)) => col < CALL_HEAD_COLS,
        Some(ItemBody::Message(message)) => message.role == Speaker::Thought,
        _ => false,
    }
}

fn style(render: &RenderContext<'_>, is_current: bool) -> Style {
    let style = render.theme.style(Role::Match);
    if is_current {
        return style.add_modifier(Modifier::REVERSED);
    }
    let bg = render.theme.style(Role::Selection).bg;
    bg.map_or(style, |bg| style.bg(bg)).add_modifier(Modifier::UNDERLINED)
}

/// The row of the current match; draws pieces as needed to find it. `None` if there is no match.
pub(super) fn locate(list: &mut List<'_>) -> Option<RowPosition> {
    let session = list.session;
    let search = list.session_view.search.as_deref()?;
    let hit = search.current()?;
    let render_revision = list.view.render_revision;
    if let Some(spot) = list.view.spot
        && (spot.hit, spot.render_revision) == (hit, render_revision)
        && !list.view.wants_hit
    {
        return Some(spot.position);
    }
    let index = session.transcript.index_of(hit.item)?;
    let item = group::leader(list.session_view, list.session, list.items, index);
    let (position, row, col) = find(list, search, hit, index, item).unwrap_or((0, 0, 0));
    let gap = list.lines_before(item, position);
    let position = RowPosition { item, piece: position, row: gap + row };
    list.view.spot = Some(Spot { hit, render_revision, position, row, col });
    Some(position)
}

/// Piece, row and column of a match.
fn find(
    list: &mut List<'_>,
    search: &Search,
    hit: Hit,
    index: usize,
    leader: usize,
) -> Option<(usize, usize, usize)> {
    let (pattern, session) = (search.pattern()?, list.session);
    let item = list.items.get(index)?;
    let all = hits(pattern, item, session);
    let (part, wanted) = all.get(hit.nth)?.clone();
    let texts = texts(item, session);
    let text = texts.get(part)?;
    let count = list.pieces(leader);
    let block = block_of(list, leader, text.position, wanted.start);
    let context = (text.text.as_ref(), wanted.clone());
    // The index among matches with the same context.
    let whole = agreement(&context, &context);
    let is_alike = |(other, range): &&(usize, Range<usize>)| {
        let is_near = block.as_ref().is_none_or(|(_, from)| *other == part && range.start >= *from);
        let text = texts.get(*other).map(|text| text.text.as_ref()).unwrap_or_default();
        is_near && agreement(&(text, range.clone()), &context) >= whole
    };
    let rank = all.iter().take(hit.nth).filter(is_alike).count();
    let pieces = block.map_or(0..count, |(piece, _)| piece..piece + 1);
    let mut best: Vec<(usize, usize, usize)> = Vec::new();
    let mut score = 0;
    for piece in pieces.clone() {
        list.draw_piece(leader, piece);
        let lines =
            list.view.cells.get(&leader).and_then(|cell| cell.layout.pieces.get(piece)?.lines.as_deref());
        for found in matches(lines.unwrap_or_default(), pattern, Some(&context)) {
            let Some((row, cols)) = found.runs.first() else { continue };
            if piece == 0 && *row == 0 && is_label(list, leader, cols.start) {
                continue;
            }
            if found.score > score || best.is_empty() {
                best.clear();
                score = found.score;
            }
            if found.score == score {
                best.push((piece, *row, cols.start));
            }
        }
    }
    // If the text is not shown verbatim, its block is still known.
    best.get(rank).or(best.last()).copied().or(Some((pieces.start, 0, usize::MAX)))
}

/// The piece of a Markdown text with a byte offset, and the start offset of the piece.
fn block_of(list: &List<'_>, item: usize, position: Option<usize>, byte: usize) -> Option<(usize, usize)> {
    let layout = &list.view.cells.get(&item)?.layout;
    let position = position?;
    let mut best = None;
    for (index, piece) in layout.pieces.iter().enumerate() {
        if let Source::Markdown { text, block } = piece.source
            && let Some(part) = layout.text(text).filter(|part| part.position == position)
            && let Some(block) = part.markdown.blocks().get(block)
            && block.start <= byte
        {
            best = Some((index, block.start));
        }
    }
    best
}

/// The matches on rows, from top to bottom; scored by the similarity to a context, if there is one.
fn matches(rows: &[Line<'_>], pattern: &Pattern, context: Option<&(&str, Range<usize>)>) -> Vec<Match> {
    let has_columns = rows.iter().any(copy_hint::has_columns);
    let mut all = Vec::new();
    for is_second in [false, true].into_iter().take(if has_columns { 2 } else { 1 }) {
        let mut text = String::new();
        // The byte offset, row and columns of each character.
        let mut cells: Vec<(usize, usize, Range<usize>)> = Vec::new();
        for (row, line) in rows.iter().enumerate() {
            match copy_hint::join(line, is_second) {
                Join::Nothing => continue,
                Join::Line if !text.is_empty() => text.push('\n'),
                Join::Spaced if !text.is_empty() => text.push(' '),
                _ => {}
            }
            for glyph in copy_hint::glyphs(line, is_second) {
                cells.push((text.len(), row, glyph.col..glyph.col + glyph.cols));
                text.push_str(glyph.text);
            }
        }
        for range in pattern.matches(&text) {
            let from = cells.partition_point(|(byte, ..)| *byte < range.start);
            let to = cells.partition_point(|(byte, ..)| *byte < range.end);
            let mut runs: Vec<(usize, Range<usize>)> = Vec::new();
            for (_, row, cols) in cells.get(from..to).unwrap_or_default() {
                match runs.last_mut() {
                    Some((last, run)) if last == row && run.end == cols.start => run.end = cols.end,
                    _ => runs.push((*row, cols.clone())),
                }
            }
            let score = context.map_or(0, |context| agreement(&(&text, range), context));
            all.push(Match { runs, score });
        }
    }
    if has_columns {
        all.sort_by_key(|found| found.runs.first().map(|(row, cols)| (*row, cols.start)));
    }
    all
}

/// Number of equal letters and digits before and after two positions.
fn agreement(a: &(&str, Range<usize>), b: &(&str, Range<usize>)) -> usize {
    fn letters<'a>(chars: impl Iterator<Item = char> + 'a) -> impl Iterator<Item = char> + 'a {
        chars.filter(|ch| ch.is_alphanumeric()).take(CONTEXT_LETTERS)
    }
    let head = |text: &str, range: &Range<usize>| -> Vec<char> {
        letters(text.get(..range.start).unwrap_or_default().chars().rev()).collect()
    };
    let tail = |text: &str, range: &Range<usize>| -> Vec<char> {
        letters(text.get(range.end..).unwrap_or_default().chars()).collect()
    };
    let same = |a: Vec<char>, b: Vec<char>| a.iter().zip(&b).take_while(|(a, b)| a == b).count();
    same(head(a.0, &a.1), head(b.0, &b.1)) + same(tail(a.0, &a.1), tail(b.0, &b.1))
}
