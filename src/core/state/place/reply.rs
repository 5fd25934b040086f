//! The text of a reply as hashed lines.

/// The seed of the hash of texts: FNV-1a, which can be continued from its value alone.
pub const SEED: u64 = 0xcbf2_9ce4_8422_2325;

/// A line of text, its white space normalised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Line {
    pub(super) hash: u64,
    pub(super) len: u32,
}

/// The white space before the next word of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Gap {
    #[default]
    Line,
    Space,
    None,
}

impl Gap {
    /// The gap after another white space character.
    fn with(self, sign: char) -> Self {
        match (sign, self) {
            ('\n', _) | (_, Self::Line) => Self::Line,
            _ => Self::Space,
        }
    }
}

/// The agent's message text of a turn as lines. White space within a line counts as one space; empty lines do not
/// count.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reply {
    pub(super) lines: Vec<Line>,
    pub(super) texts: Option<Vec<String>>,
    pub(super) size: usize,
    pub(super) gap: Gap,
}

impl Reply {
    /// An empty reply that keeps the text of its lines, for a turn that did not complete and for what is compared with
    /// it. `Reply::default()` keeps hashes only.
    #[must_use]
    pub fn with_texts() -> Self {
        Self { texts: Some(Vec::new()), ..Self::default() }
    }

    /// Appends text, which may begin and end within a line.
    pub fn push(&mut self, text: &str) {
        for piece in text.split_inclusive(char::is_whitespace) {
            let word = piece.trim_end();
            if !word.is_empty() {
                match self.gap {
                    Gap::Line => {
                        self.lines.push(Line { hash: SEED, len: 0 });
                        self.texts.iter_mut().for_each(|texts| texts.push(String::new()));
                    }
                    Gap::Space => self.extend_line(" "),
                    Gap::None => {}
                }
                self.extend_line(word);
                self.gap = Gap::None;
            }
            self.gap = piece.strip_prefix(word).unwrap_or_default().chars().fold(self.gap, Gap::with);
        }
    }

    /// Keeps only the hashes of the lines.
    pub fn forget_texts(&mut self) {
        self.texts = None;
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    pub fn digest(&self) -> u64 {
        self.lines.iter().fold(SEED, |digest, line| hashed(digest, &line.hash.to_le_bytes()))
    }

    fn extend_line(&mut self, text: &str) {
        let len = text.chars().count();
        self.size += len;
        if let Some(line) = self.lines.last_mut() {
            line.hash = hashed(line.hash, text.as_bytes());
            line.len = line.len.saturating_add(u32::try_from(len).unwrap_or(u32::MAX));
        }
        if let Some(line) = self.texts.as_mut().and_then(|texts| texts.last_mut()) {
            line.push_str(text);
        }
    }

    pub(super) fn join(&mut self, other: &Self) {
        self.lines.extend(&other.lines);
        self.size += other.size;
        self.texts =
            self.texts.take().zip(other.texts.as_ref()).map(|(texts, more)| [texts, more.clone()].concat());
    }

    pub(super) fn text(&self, index: usize) -> Option<&str> {
        self.texts.as_ref()?.get(index).map(String::as_str)
    }

    /// Whether a line begins with the last line of a recorded reply. `unknown`: the answer if no text was kept.
    pub(super) fn line_begins_with_end_of(&self, index: usize, recorded: &Self, unknown: bool) -> bool {
        let (Some(line), Some(last)) = (self.lines.get(index), recorded.lines.last()) else { return false };
        let texts = self.text(index).zip(recorded.text(recorded.lines.len() - 1));
        line == last || line.len > last.len && texts.map_or(unknown, |(line, last)| line.starts_with(last))
    }

    /// Whether a recorded reply begins with this one, whose last line may be cut. Where texts are not kept, a single line
    /// is compared as a whole.
    pub(super) fn may_begin(&self, recorded: &Self) -> bool {
        let Some((last, head)) = self.lines.split_last() else { return true };
        let is_line = |line: &Line| match self.text(head.len()).zip(recorded.text(head.len())) {
            Some((text, line)) => line.starts_with(text),
            None => line == last || !head.is_empty() && line.len >= last.len,
        };
        recorded.lines.starts_with(head) && recorded.lines.get(head.len()).is_some_and(is_line)
    }

    /// Where the recorded part of this reply ends: a line, and a number of its characters. It stands at the beginning
    /// of a line, and its last line may be cut. Nothing is a part of everything.
    pub(super) fn end_of(&self, recorded: &Self, unknown: bool) -> Option<(usize, usize)> {
        let Some((last, head)) = recorded.lines.split_last() else { return Some((0, 0)) };
        let is_cut = |at| self.line_begins_with_end_of(at + head.len(), recorded, unknown);
        let at = find(head, &self.lines, is_cut)?;
        Some((at + head.len(), usize::try_from(last.len).unwrap_or(usize::MAX)))
    }
}

/// The part of a replayed reply that is not recorded: what follows `chars` characters of the line after `lines` lines,
/// as [`Reply`] counts them. It goes on through the replies of all turns before the new part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rest {
    pub turn: usize,
    pub(super) lines: usize,
    pub chars: usize,
    /// The line and the character that [`Rest::cut`] has reached.
    pub(super) at: (usize, usize),
    pub(super) gap: Gap,
}

impl Rest {
    /// Whether the recorded part is over.
    pub fn is_passed(&self) -> bool {
        self.at >= (self.lines, self.chars)
    }

    /// The part of the next chunk of the reply that is not recorded.
    pub fn cut<'a>(&mut self, chunk: &'a str) -> &'a str {
        let mut signs = chunk.chars();
        while self.at < (self.lines, self.chars)
            && let Some(sign) = signs.next()
        {
            if sign.is_whitespace() {
                self.gap = self.gap.with(sign);
                continue;
            }
            let (line, char) = self.at;
            self.at = match self.gap {
                Gap::Line => (line + usize::from(char > 0), 1),
                Gap::Space => (line, char + 2),
                Gap::None => (line, char + 1),
            };
            self.gap = Gap::None;
        }
        signs.as_str()
    }
}

/// Continues a hash of bytes.
pub fn hashed(hash: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(hash, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

/// The first run of lines that is accepted, in linear time (Knuth, Morris and Pratt).
pub(super) fn find(run: &[Line], lines: &[Line], accept: impl Fn(usize) -> bool) -> Option<usize> {
    if run.is_empty() {
        return (0..lines.len()).find(|at| accept(*at));
    }
    if run.len() >= lines.len() {
        return (run == lines && accept(0)).then_some(0);
    }
    let first = lines.iter().position(|line| Some(line) == run.first())?;
    // Number of lines that the run has matched after one more line.
    let step = |borders: &[usize], mut matched: usize, line: &Line| loop {
        if run.get(matched) == Some(line) {
            return matched + 1;
        }
        let Some(shorter) = matched.checked_sub(1) else { return 0 };
        matched = borders.get(shorter).copied().unwrap_or(0);
    };
    let (mut borders, mut matched) = (vec![0], 0);
    for line in run.iter().skip(1) {
        matched = step(&borders, matched, line);
        borders.push(matched);
    }
    matched = 0;
    for (at, line) in lines.iter().enumerate().skip(first) {
        matched = step(&borders, matched, line);
        if matched == run.len() && accept(at + 1 - matched) {
            return Some(at + 1 - matched);
        }
    }
    None
}
