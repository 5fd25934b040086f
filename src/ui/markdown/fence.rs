//! Fences at the top level: found by the parser, then followed line by line until they close.

use super::{Block, BlockKind, Markdown};

/// Lines of a fence that make one block.
pub(super) const PART_LINES: usize = 64;

/// A fence whose end has not come.
pub(super) struct OpenFence {
    mark: u8,
    count: usize,
    fence: u32,
    part: u32,
    part_start: usize,
    part_lines: usize,
    /// Up to where lines were looked at.
    scanned: usize,
}

impl Markdown {
    /// Begins a fence whose opening line starts at `start`.
    pub(super) fn open_fence(&mut self, source: &str, start: usize) {
        let rest = source.get(start..).unwrap_or_default();
        let line = rest.split('\n').next().unwrap_or_default();
        let body = (start + line.len() + 1).min(source.len());
        let line = line.trim();
        let mark = line.as_bytes().first().copied().unwrap_or(b'`');
        let count = line.bytes().take_while(|byte| *byte == mark).count();
        let info = line.get(count..).unwrap_or_default().trim_start();
        let language = info.split([' ', '\t', ',', '{', ':']).next().unwrap_or_default();
        let fence = u32::try_from(self.languages.len()).unwrap_or(u32::MAX);
        self.languages.push(language.to_owned());
        self.fence =
            Some(OpenFence { mark, count, fence, part: 0, part_start: body, part_lines: 0, scanned: body });
    }

    /// Follows the open fence to its end or to `lines_end`. Returns whether none is open any more; the cut is
    /// then behind it.
    pub(super) fn scan_fence(&mut self, source: &str, lines_end: usize) -> bool {
        let Some(mut fence) = self.fence.take() else { return true };
        while let Some(rest) = source.get(fence.scanned..lines_end).filter(|rest| !rest.is_empty()) {
            let len = memchr::memchr(b'\n', rest.as_bytes()).map_or(rest.len(), |at| at + 1);
            let line = rest.get(..len).unwrap_or_default();
            let after = fence.scanned + len;
            if fence.is_closed_by(line) {
                let end = fence.scanned;
                self.push_code(&fence, end);
                (self.cut, self.tried, self.is_joined) = (after, after, false);
                return true;
            }
            fence.scanned = after;
            fence.part_lines += 1;
            if fence.part_lines == PART_LINES {
                self.push_code(&fence, after);
                fence.part += 1;
                (fence.part_start, fence.part_lines) = (after, 0);
            }
        }
        self.fence = Some(fence);
        false
    }

    /// Adds what the open fence holds so far behind its last whole part.
    pub(super) fn add_fence_tail(&mut self, source: &str, is_closed: bool) {
        let Some(fence) = self.fence.take() else { return };
        let mut end = source.len();
        if !is_closed {
            // The closing mark while it arrives is no code.
            let line = source.get(fence.part_start..).and_then(|code| code.rfind('\n'));
            let line = line.map_or(fence.part_start, |at| fence.part_start + at + 1);
            let last = source.get(line..).unwrap_or_default().trim();
            if !last.is_empty() && last.bytes().all(|byte| byte == fence.mark) {
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
        let kind = BlockKind::Code { fence: fence.fence, part: fence.part };
        self.blocks.push(Block { start: fence.part_start.min(end), end, kind, has_gap });
    }
}

impl OpenFence {
    /// Source: `CommonMark` 0.31, fenced code blocks.
    fn is_closed_by(&self, line: &str) -> bool {
        let line = line.trim_end_matches(['\n', '\r', ' ', '\t']);
        let body = line.trim_start_matches(' ');
        line.len() - body.len() <= 3 && body.len() >= self.count && body.bytes().all(|byte| byte == self.mark)
    }
}
