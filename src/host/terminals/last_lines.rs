//! The last lines of a terminal's output, as plain text.

use super::plain::Plain;
use super::ring::Ring;

const LINES: usize = 5;
const LINE_CHARS: usize = 200;
const OUTPUT_BYTES: usize = 8 << 10;

/// Collects output of which only the end is of interest.
#[derive(Debug)]
pub(in crate::host) struct LastLines {
    plain: Plain,
    ring: Ring,
}

impl Default for LastLines {
    fn default() -> Self {
        Self { plain: Plain::default(), ring: Ring::new(OUTPUT_BYTES) }
    }
}

impl LastLines {
    pub(in crate::host) fn feed(&mut self, bytes: &[u8]) {
        self.plain.feed(bytes, &mut self.ring);
    }

    /// The last lines that are not blank; long ones are truncated.
    pub(in crate::host) fn read(&mut self) -> Vec<String> {
        let (text, _) = self.ring.with(&self.plain.unfinished());
        let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        let last = lines.iter().skip(lines.len().saturating_sub(LINES));
        last.map(|line| line.chars().take(LINE_CHARS).collect()).collect()
    }
}
