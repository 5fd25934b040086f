//! `elephant.ai` (`alex`): types of stdio MCP servers, and chunks without their outer whitespace.
//!
//! The agent trims the whitespace of each chunk. The most likely space or line break is inserted; this is a heuristic:
//! the original whitespace is lost, and the protocol log has the chunks unchanged.
//! Invariant: text is only added, never changed.
//! Source: the code of `elephant.ai`.

use serde_json::Value;

use super::{Dialect, Method, Translation};
use crate::acp::codec::value::{Object, parse_object};
use crate::acp::envelope::Message;
use crate::model::{AgentInfo, Call, Profile};

pub const MAX_BODY_BYTES: usize = 4 << 20;
/// Minimum length of a chunk that may have been trimmed: the agent collects 64 characters before it trims and sends.
const MIN_CHARS: usize = 48;

#[derive(Debug, Default)]
pub struct Elephant {
    /// Session, kind and last character of the previous chunk, if the next one may continue it.
    previous: Option<(String, String, char)>,
    /// Whether a chunk had leading or trailing whitespace, so that the agent does not trim.
    keeps_space: bool,
}

impl Elephant {
    /// The update with the whitespace before its text; `None`: unchanged.
    fn mended(&mut self, params: &str) -> Option<(String, Object)> {
        let mut params = parse_object(params)?;
        let session = params.get("sessionId")?.as_str()?.to_owned();
        let update = params.get_mut("update")?.as_object_mut()?;
        let kind = update.get("sessionUpdate")?.as_str()?.to_owned();
        if kind.starts_with("tool_call") {
            self.previous = None;
        }
        let Value::String(text) = update.get_mut("content")?.get_mut("text")? else { return None };
        let len_bytes = text.len();
        self.mend(&session, &kind, text);
        (text.len() > len_bytes).then(|| (session, std::mem::take(update)))
    }

    /// Adds whitespace before `text` if it was probably trimmed, and stores its end for the next chunk.
    fn mend(&mut self, session: &str, kind: &str, text: &mut String) {
        let (Some(first), Some(last)) = (text.chars().next(), text.chars().next_back()) else { return };
        self.keeps_space |= first.is_whitespace() || last.is_whitespace();
        let previous = self.previous.take();
        if self.keeps_space {
            return;
        }
        let is_long = text.chars().nth(MIN_CHARS - 1).is_some();
        self.previous = is_long.then(|| (session.to_owned(), kind.to_owned(), last));
        let Some((_, _, before)) = previous.filter(|(of, was, _)| of == session && was == kind) else {
            return;
        };
        if begins_block(text) {
            text.insert(0, '\n');
        } else if (before.is_alphanumeric() || ".,;:!?".contains(before)) && first.is_alphanumeric() {
            text.insert(0, ' ');
        }
    }
}

impl Dialect for Elephant {
    fn describe(&self, info: &mut AgentInfo) {
        info.profile = Some(Profile::Elephant);
        info.quirks.extend([
            "MCP servers are sent with a `type` field.".to_owned(),
            "Chunks have no leading or trailing whitespace; parlor restores the likely spaces.".to_owned(),
        ]);
    }

    fn call(&mut self, _id: u64, call: &Call, (_, params): &mut Method) -> Result<(), String> {
        if let Call::Prompt(..) = call {
            self.previous = None;
        } else if let Some(mut object) = parse_object(params) {
            let servers = object.get_mut("mcpServers").and_then(Value::as_array_mut).into_iter().flatten();
            for server in servers.filter_map(Value::as_object_mut) {
                server.entry("type").or_insert_with(|| "stdio".into());
            }
            *params = Value::Object(object).to_string();
        }
        Ok(())
    }

    fn receive(&mut self, message: &Message<'_>, _text: &str, out: &mut Translation) -> bool {
        match message {
            Message::Notification { method, params: Some(params) } if method == "session/update" => {
                if let Some((session, update)) = self.mended(params) {
                    out.update(&session, &update);
                    return true;
                }
            }
            Message::Request { .. } => self.previous = None,
            _ => {}
        }
        false
    }
}

/// Whether a text begins with a Markdown block that needs its own line: a list item, heading, fence or table row.
fn begins_block(text: &str) -> bool {
    let line = text.lines().next().unwrap_or_default();
    let marks = ["- ", "* ", "+ ", "# ", "## ", "### ", "#### ", "> ", "```"];
    let has_mark = marks.iter().any(|mark| line.starts_with(mark));
    let number = line.trim_start_matches(|ch: char| ch.is_ascii_digit());
    let is_numbered = number.len() < line.len() && (number.starts_with(". ") || number.starts_with(") "));
    let is_row = line.starts_with('|') && line.ends_with('|') && line.len() > 1;
    has_mark || is_numbered || is_row
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Longer than `MIN_CHARS`.
    const LONG: &str = "The tests pass now, and all of them were run twice, ";

    fn joined(chunks: &[&str]) -> String {
        let mut repair = Elephant::default();
        chunks.iter().fold(String::new(), |all, chunk| {
            let mut text = (*chunk).to_owned();
            repair.mend("s", "agent_message_chunk", &mut text);
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
    fn repair_different_roles_are_not_joined() {
        let mut repair = Elephant::default();
        let mut text = format!("{LONG}end");
        repair.mend("s", "agent_thought_chunk", &mut text);
        let mut text = "word".to_owned();
        repair.mend("s", "agent_message_chunk", &mut text);
        assert_eq!(text, "word");
        let mut text = format!("{LONG}end");
        repair.mend("s", "agent_message_chunk", &mut text);
        repair.previous = None;
        let mut text = "word".to_owned();
        repair.mend("s", "agent_message_chunk", &mut text);
        assert_eq!(text, "word", "after a tool call");
    }
}
