//! Seams between chunks of an agent that trims white space off both ends of each.
//!
//! Duty: puts back the space or the line break that most likely stood there. It is a guess: one white space per
//! seam is lost for good, and the log keeps the chunks as they came.
//! Not its duty: to know which agent does so (`quirks`).
//! Invariant: nothing that came is changed, only added to.

use crate::model::{Role, SessionId};

/// What stood last: whose session, who spoke, the last letter.
pub(super) type Seam = Option<(SessionId, Role, char)>;

/// Mends the seam in front of `text` and remembers the one behind it.
pub(super) fn mend(seam: &mut Seam, session: &SessionId, role: Role, text: &mut String) {
    if let Some((last_session, last_role, last)) = seam
        && last_session == session
        && *last_role == role
        && let Some(first) = text.chars().next()
        && !first.is_whitespace()
        && !last.is_whitespace()
    {
        if begins_block(text) {
            text.insert(0, '\n');
        } else if is_word_end(*last) && is_word(first) {
            text.insert(0, ' ');
        }
    }
    if let Some(last) = text.chars().next_back() {
        *seam = Some((session.clone(), role, last));
    }
}

fn is_word(letter: char) -> bool {
    letter.is_alphanumeric()
}

/// A word, or what ends a part of a sentence.
fn is_word_end(letter: char) -> bool {
    is_word(letter) || matches!(letter, '.' | ',' | ';' | ':' | '!' | '?')
}

/// Whether a text begins like something that stands on a line of its own: a list item, a heading, a fence, a
/// row of a table.
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

    fn joined(chunks: &[&str]) -> String {
        let mut seam = None;
        let session = SessionId::from("s");
        chunks.iter().fold(String::new(), |all, chunk| {
            let mut text = (*chunk).to_owned();
            mend(&mut seam, &session, Role::Agent, &mut text);
            all + &text
        })
    }

    #[test]
    fn a_space_between_words_and_a_line_before_a_block() {
        assert_eq!(joined(&["one two", "three"]), "one two three");
        assert_eq!(joined(&["The end.", "Next"]), "The end. Next");
        assert_eq!(joined(&["a list:", "- one", "- two"]), "a list:\n- one\n- two");
        assert_eq!(joined(&["text", "## Head", "```rust"]), "text\n## Head\n```rust");
        assert_eq!(joined(&["row", "| a | b |"]), "row\n| a | b |");
        assert_eq!(joined(&["first", "2. second"]), "first\n2. second");
    }

    #[test]
    fn what_is_not_lost_is_not_doubled() {
        assert_eq!(joined(&["one ", "two"]), "one two");
        assert_eq!(joined(&["one", " two"]), "one two");
        assert_eq!(joined(&["f(", "x)"]), "f(x)");
        assert_eq!(joined(&["word", ", and"]), "word, and");
    }

    #[test]
    fn another_speaker_has_no_seam_with_the_one_before() {
        let mut seam = Some((SessionId::from("s"), Role::Thought, 'x'));
        let mut text = "word".to_owned();
        mend(&mut seam, &SessionId::from("s"), Role::Agent, &mut text);
        assert_eq!(text, "word");
    }
}
