//! Text for comparison: without white space, emphasis, and additions of agents around prompts.

use std::borrow::Cow;
use std::ops::Range;

/// Text that agents replay in place of calls and their results. Source: replays of gemini.
const CALLS: [&str; 2] = ["[Function Call:", "[Function Response:"];

/// A user message stored by one agent for each cancelled turn. Source: transcripts of Claude Code.
const INTERRUPTED: &str = "[Request interrupted by user";

/// Whether a character is compared: agents rewrap lines, and some emphasize thoughts.
fn counts(sign: char) -> bool {
    !sign.is_whitespace() && sign != '*'
}

/// The compared characters of a text.
pub(super) fn squeezed(text: &str) -> String {
    text.chars().filter(|sign| counts(*sign)).collect()
}

/// The range of a part of the squeezed text in the text itself.
pub(super) fn range_in(text: &str, part: &Range<usize>) -> Range<usize> {
    let mut at = 0;
    let (mut start, mut end) = (text.len(), text.len());
    for (index, sign) in text.char_indices().filter(|(_, sign)| counts(*sign)) {
        if at == part.start {
            start = index;
        }
        at += sign.len_utf8();
        if at == part.end {
            end = index + sign.len_utf8();
            break;
        }
    }
    start.min(end)..end
}

/// A prompt as it was typed: without the context added by an agent, and a command as its name and arguments.
fn unwrapped(text: &str) -> Cow<'_, str> {
    let text = without_context(text);
    match between(text, "<command-name>", "</command-name>").filter(|_| text.starts_with("<command-")) {
        Some(name) => {
            let args = between(text, "<command-args>", "</command-args>").unwrap_or_default();
            Cow::Owned(format!("{name} {args}"))
        }
        None => Cow::Borrowed(text),
    }
}

fn between<'a>(text: &'a str, begin: &str, end: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(begin)?;
    rest.split_once(end).map(|(inner, _)| inner)
}

/// The prompt of a user message for comparison; `None`: the message was created by an agent, not typed.
pub(super) fn prompt(text: &str) -> Option<String> {
    let is_interruption = |text: &str| text.starts_with(INTERRUPTED) && text.ends_with(']');
    let trimmed = text.trim();
    if !trimmed.is_empty() && (is_calls(trimmed) || is_interruption(trimmed)) {
        return None;
    }
    let typed = squeezed(&unwrapped(text));
    (!typed.is_empty() || trimmed.is_empty()).then_some(typed)
}

/// Whether a text only represents calls that are replayed separately.
pub(super) fn is_calls(text: &str) -> bool {
    let mut rest = text.trim();
    let is_any = !rest.is_empty();
    while !rest.is_empty() {
        let Some(inner) = CALLS.iter().find_map(|begin| rest.strip_prefix(begin)) else { return false };
        let Some((_, behind)) = inner.split_once(']') else { return false };
        rest = behind.trim_start();
    }
    is_any
}

/// A prompt without the context added by an agent or parlor: elements with a name of at least two words, like
/// `<session_context>…</session_context>`. Source: gemini replays one as a user message.
pub(in crate::app) fn without_context(text: &str) -> &str {
    let mut rest = text.trim_start();
    loop {
        let Some((name, behind)) = rest.strip_prefix('<').and_then(|text| text.split_once('>')) else {
            return rest;
        };
        let is_name = name.contains('_') && name.chars().all(|c| c.is_ascii_lowercase() || c == '_');
        let end = format!("</{name}>");
        match behind.find(&end).and_then(|at| behind.get(at + end.len()..)) {
            Some(after) if is_name => rest = after.trim_start(),
            _ => return rest,
        }
    }
}
