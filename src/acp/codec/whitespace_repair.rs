//! Restores spaces between chunks of an agent that trims the whitespace of each chunk.
//!
//! Inserts the most likely space or line break. This is a heuristic: the original whitespace is lost, and the
//! protocol log has the chunks unchanged.
//! Invariant: text is only added, never changed.

use crate::model::{Role, SessionId};

/// Minimum length of a chunk that may have been trimmed at its end. The agent collects at least 64 characters before it
/// trims and sends them, unless another event follows. Source: the code of `elephant.ai`.
const LEAST_CHARS: usize = 48;

/// What is known about an agent's chunks.
#[derive(Debug, Default)]
pub(super) struct WhitespaceRepair {
    /// Session, role and last character of the previous chunk, if the next one may continue it.
    behind: Option<(SessionId, Role, char)>,
    /// Whether a chunk had leading or trailing whitespace, so that the agent does not trim.
    keeps_space: bool,
}

impl WhitespaceRepair {
    /// Ends the current text: the next chunk does not continue it.
    pub(super) fn break_off(&mut self) {
        self.behind = None;
    }

    /// Adds whitespace before `text` if it was probably trimmed, and stores its end for the next chunk.
    pub(super) fn mend(&mut self, session: &SessionId, role: Role, text: &mut String) {
        let (Some(first), Some(last)) = (text.chars().next(), text.chars().next_back()) else { return };
        self.keeps_space |= first.is_whitespace() || last.is_whitespace();
        let behind = self.behind.take();
        if self.keeps_space {
            return;
        }
        let is_long = text.chars().nth(LEAST_CHARS - 1).is_some();
        self.behind = is_long.then(|| (session.clone(), role, last));
        let Some((_, _, before)) = behind.filter(|(of, who, _)| of == session && *who == role) else {
            return;
        };
        if begins_block(text) {
            text.insert(0, '\n');
        } else if is_word_end(before) && is_word(first) {
            text.insert(0, ' ');
        }
    }
}

fn is_word(letter: char) -> bool {
    letter.is_alphanumeric()
}

/// Whether a character ends a word, or is punctuation that is followed by a space.
fn is_word_end(letter: char) -> bool {
    is_word(letter) || matches!(letter, '.' | ',' | ';' | ':' | '!' | '?')
}

/// Whether a text begins with a Markdown block that needs its own line: a list item, a heading, a fence, or a table
/// row.
fn begins_block(text: &str) -> bool {
    let line = text.lines().next().unwrap_or_default();
    let has_mark =
        ["- ", "* ", "+ ", "# ", "## ", "### ", "#### ", "> "].iter().any(|mark| line.starts_with(mark));
    let number = line.trim_start_matches(|letter: char| letter.is_ascii_digit());
    let is_numbered = number.len() < line.len() && (number.starts_with(". ") || number.starts_with(") "));
    let is_row = line.starts_with('|') && line.ends_with('|') && line.len() > 1;
    has_mark || is_numbered || is_row || line.starts_with("```")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Longer than `LEAST_CHARS`.
    const LONG: &str = "The tests pass now, and all of them were run twice, ";

    fn joined(chunks: &[&str]) -> String {
        let mut seams = WhitespaceRepair::default();
        let session = SessionId::from("s");
        chunks.iter().fold(String::new(), |all, chunk| {
            let mut text = (*chunk).to_owned();
            seams.mend(&session, Role::Agent, &mut text);
            all + &text
        })
    }

    /// The text after `LONG` of two joined chunks.
    fn seam(end: &str, next: &str) -> String {
        let all = joined(&[&format!("{LONG}{end}"), next]);
        all.strip_prefix(LONG).unwrap_or(&all).to_owned()
    }

    #[test]
    fn adds_spaces_between_words_and_line_breaks_before_blocks() {
        assert_eq!(seam("one two", "three"), "one two three");
        assert_eq!(seam("The end.", "Next"), "The end. Next");
        assert_eq!(seam("a list:", "- one"), "a list:\n- one");
        assert_eq!(seam("text", "## Head"), "text\n## Head");
        assert_eq!(seam("text", "```rust"), "text\n```rust");
        assert_eq!(seam("row", "| a | b |"), "row\n| a | b |");
        assert_eq!(seam("first", "2. second"), "first\n2. second");
    }

    #[test]
    fn adds_no_space_next_to_punctuation() {
        assert_eq!(seam("f(", "x)"), "f(x)");
        assert_eq!(seam("word", ", and"), "word, and");
    }

    #[test]
    fn chunks_with_outer_whitespace_are_not_repaired() {
        assert_eq!(joined(&["Hel", "lo", " you", "r", " own"]), "Hello your own");
        assert_eq!(joined(&[LONG, "un", "done"]), format!("{LONG}undone"));
        let end = format!("{LONG}un");
        assert_eq!(
            joined(&[" ", &end, "done"]),
            format!(" {end}done"),
            "one chunk with outer whitespace disables the repair"
        );
    }

    #[test]
    fn chunks_of_different_roles_are_not_joined() {
        let mut seams = WhitespaceRepair::default();
        let (session, mut text) = (SessionId::from("s"), format!("{LONG}end"));
        seams.mend(&session, Role::Thought, &mut text);
        let mut text = "word".to_owned();
        seams.mend(&session, Role::Agent, &mut text);
        assert_eq!(text, "word");
        let mut text = format!("{LONG}end");
        seams.mend(&session, Role::Agent, &mut text);
        seams.break_off();
        let mut text = "word".to_owned();
        seams.mend(&session, Role::Agent, &mut text);
        assert_eq!(text, "word", "after a tool call");
    }
}
