//! Line ends: how texts are split into lines for the comparison, and the notes about changed line ends.
//!
//! Invariants: lines that compare as equal are equal byte for byte, unless a note reports that all line ends
//! change.

use std::ops::Range;

use super::Note;

/// The line ends of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ends {
    /// The text has a single line.
    None,
    Lf,
    Crlf,
    Mixed,
}

impl Ends {
    pub fn of(text: &str) -> Self {
        let bytes = text.as_bytes();
        let mut found = Self::None;
        for at in memchr::memchr_iter(b'\n', bytes) {
            let is_crlf = at.checked_sub(1).and_then(|before| bytes.get(before)) == Some(&b'\r');
            let this = if is_crlf { Self::Crlf } else { Self::Lf };
            match found {
                Self::None => found = this,
                known if known == this => {}
                _ => return Self::Mixed,
            }
        }
        found
    }
}

/// How two texts are split into lines.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cut {
    /// Whether the `\r` of line ends is removed: all lines have it, or none.
    is_bare: bool,
    /// Set if all line ends change, so that lines are compared without them.
    pub note: Option<Note>,
}

impl Cut {
    /// Determines how two texts are compared.
    pub fn of(old: &str, new: &str) -> Self {
        let (old, new) = (Ends::of(old), Ends::of(new));
        let note = match (old, new) {
            (Ends::Crlf, Ends::Lf) => Some(Note::EndsToLf),
            (Ends::Lf, Ends::Crlf) => Some(Note::EndsToCrlf),
            _ => None,
        };
        Self { is_bare: old != Ends::Mixed && new != Ends::Mixed, note }
    }

    /// The lines of a text: the displayed range and the compared text of each.
    pub fn lines(self, text: &str) -> (Vec<Range<u32>>, Vec<&str>) {
        let (mut shown, mut compared) = (Vec::new(), Vec::new());
        let mut start = 0;
        for line in text.split_inclusive('\n') {
            let body = line.strip_suffix('\n').unwrap_or(line);
            // A `\r` without `
            // ` is a character of the line.
            let is_end = self.is_bare && body.len() < line.len();
            let bare = if is_end { body.strip_suffix('\r').unwrap_or(body) } else { body };
            let from = u32::try_from(start).unwrap_or(u32::MAX);
            shown.push(from..from.saturating_add(u32::try_from(bare.len()).unwrap_or(u32::MAX)));
            compared.push(if self.note.is_some() { bare } else { line });
            start += line.len();
        }
        (shown, compared)
    }
}

/// The note for a newline that is added to the last line or removed.
pub(super) fn last_end(old: &str, new: &str) -> Option<Note> {
    if old.is_empty() || new.is_empty() {
        return None;
    }
    match (old.ends_with('\n'), new.ends_with('\n')) {
        (false, true) => Some(Note::LastEndAdded),
        (true, false) => Some(Note::LastEndRemoved),
        _ => None,
    }
}

impl Note {
    pub(super) fn text(self) -> &'static str {
        match self {
            Self::EndsToLf => "line endings: CRLF to LF",
            Self::EndsToCrlf => "line endings: LF to CRLF",
            Self::LastEndAdded => "newline added at end of file",
            Self::LastEndRemoved => "newline removed at end of file",
        }
    }
}
