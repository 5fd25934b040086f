//! Top-level fences: found by the parser, then scanned line by line until they close.

use super::{Block, BlockKind, Markdown, Seam};
use crate::ui::text::boundary_after;

/// Number of lines per block of a fence.
const PART_LINES: usize = 64;

/// Longer lines than twice this size are split into separate parts.
const LINE_BYTES: usize = 8 * 1024;

/// Maximum length of a language name.
const LANGUAGE_MAX_BYTES: usize = 64;

/// A fence that is not closed yet.
pub(super) struct OpenFence {
    mark: u8,
    count: usize,
    fence: u32,
    part: u32,
    part_start: usize,
    part_lines: usize,
    /// Number of the part's first line.
    part_line: usize,
    /// Whether the part starts within a line.
    is_joined: bool,
    /// Whether the scan ends within a line.
    is_inside: bool,
    scanned: usize,
}

impl Markdown {
    /// Opens a fence whose first line starts at `start`.
    pub(super) fn open_fence(&mut self, source: &str, start: usize) {
        let rest = source.get(start..).unwrap_or_default();
        let known = rest.as_bytes().get(..LINE_BYTES).unwrap_or(rest.as_bytes());
        let newline = memchr::memchr(b'\n', known);
        let is_inside = newline.is_none() && rest.len() > LINE_BYTES;
        let line = rest.get(..newline.unwrap_or(boundary_after(rest, LINE_BYTES))).unwrap_or_default();
        let body = (start + line.len() + usize::from(!is_inside)).min(source.len());
        let line = line.trim();
        let mark = line.as_bytes().first().copied().unwrap_or(b'`');
        let count = line.bytes().take_while(|byte| *byte == mark).count();
        let info = line.get(count..).unwrap_or_default().trim_start();
        let language = info.split([' ', '\t', ',', '{', ':']).next().unwrap_or_default();
        let language = language.get(..LANGUAGE_MAX_BYTES.min(language.len())).unwrap_or_default();
        let fence = u32::try_from(self.languages.len()).unwrap_or(u32::MAX);
        self.languages.push(language.to_owned());
        self.fence = Some(OpenFence {
            mark,
            count,
            fence,
            part: 0,
            part_start: body,
            part_lines: 0,
            part_line: 1,
            is_joined: false,
            is_inside,
            scanned: body,
        });
    }

    /// Scans the open fence to its end or to `lines_end`, or further within a very long line. Returns whether
    /// no fence is open; the cut is then after it.
    pub(super) fn scan_fence(&mut self, source: &str, lines_end: usize) -> bool {
        let Some(mut fence) = self.fence.take() else { return true };
        while let Some(rest) = source.get(fence.scanned..).filter(|rest| !rest.is_empty()) {
            let start = rest.as_bytes().get(..2 * LINE_BYTES).unwrap_or(rest.as_bytes());
            let newline = memchr::memchr(b'\n', start).map(|at| at + 1);
            if newline.is_none() && rest.len() > 2 * LINE_BYTES {
                self.cut_line(source, &mut fence);
                continue;
            }
            let after = fence.scanned + newline.unwrap_or(rest.len());
            if after > lines_end {
                break;
            }
            let line = source.get(fence.scanned..after).unwrap_or_default();
            if !fence.is_inside && fence.is_closed_by(line) {
                let end = fence.scanned;
                self.push_code(&fence, end);
                (self.cut, self.tried, self.seam) = (after, after, Seam::None);
                return true;
            }
            (fence.scanned, fence.is_inside) = (after, false);
            fence.part_lines += 1;
            if fence.part_lines == PART_LINES {
                self.push_code(&fence, after);
                fence.begin_part();
            }
        }
        self.fence = Some(fence);
        false
    }

    /// Splits off the start of a very long line as a separate part.
    fn cut_line(&mut self, source: &str, fence: &mut OpenFence) {
        if fence.part_start < fence.scanned {
            self.push_code(fence, fence.scanned);
            fence.begin_part();
        }
        fence.scanned = boundary_after(source, fence.scanned + LINE_BYTES);
        self.push_code(fence, fence.scanned);
        fence.is_inside = true;
        fence.begin_part();
    }

    /// Adds the part of the open fence after its last complete part.
    pub(super) fn add_fence_tail(&mut self, source: &str, is_closed: bool) {
        let Some(fence) = self.fence.take() else { return };
        let mut end = source.len();
        if !is_closed {
            // An incomplete closing marker is not code.
            let line = source.get(fence.scanned..).and_then(|code| code.rfind('\n'));
            let line = line.map_or(fence.scanned, |at| fence.scanned + at + 1);
            let last = source.get(line..).unwrap_or_default().trim();
            if !fence.is_inside && !last.is_empty() && last.bytes().all(|byte| byte == fence.mark) {
                end = line;
            }
        }
        self.push_code(&fence, end);
        self.fence = Some(fence);
    }

    fn push_code(&mut self, fence: &OpenFence, end: usize) {
        if fence.part > 0 && fence.part_start >= end {
            return;
        }
        let has_gap = fence.part == 0 && !self.blocks.is_empty();
        let kind = BlockKind::Code { fence: fence.fence, part: fence.part, line: fence.part_line };
        let start = fence.part_start.min(end);
        self.blocks.push(Block { start, end, kind, has_gap, is_joined: fence.is_joined });
    }
}

impl OpenFence {
    /// Starts the next part at the scan position.
    fn begin_part(&mut self) {
        self.part += 1;
        self.part_line += self.part_lines;
        (self.part_start, self.part_lines, self.is_joined) = (self.scanned, 0, self.is_inside);
    }

    /// Source: `CommonMark` 0.31, fenced code blocks.
    fn is_closed_by(&self, line: &str) -> bool {
        let line = line.trim_end_matches(['\n', '\r', ' ', '\t']);
        let body = line.trim_start_matches(' ');
        line.len() - body.len() <= 3 && body.len() >= self.count && body.bytes().all(|byte| byte == self.mark)
    }
}
