//! What agents add to user messages.

use std::borrow::Cow;

/// Notes that agents store as user messages of a turn. Each ends with `]`. Sources: transcripts of Claude Code (the
/// first, for each cancelled turn) and replays of gemini (calls and their results).
const NOTES: [&str; 3] = ["[Request interrupted by user", "[Function Call:", "[Function Response:"];

#[expect(clippy::ptr_arg, reason = "for iterators")]
pub(super) fn is_wrapper(chunk: &String) -> bool {
    unwrapped(chunk).is_some_and(|text| text.is_empty())
}

/// What the wrappers of known agents leave of a user message; `None`: there are none.
pub(super) fn unwrapped(text: &str) -> Option<Cow<'_, str>> {
    let inner = without_context(text);
    if let Some(command) = command(inner) {
        return Some(Cow::Owned(command));
    }
    let inner = if is_notes(inner) { "" } else { inner };
    (inner.len() < text.trim_start().len()).then_some(Cow::Borrowed(inner))
}

/// A prompt without the elements before it whose names have several words. Source: gemini replays
/// `<session_context>…</session_context>` before a prompt.
pub fn without_context(text: &str) -> &str {
    let mut rest = text.trim_start();
    while let Some((name, inner)) = rest.strip_prefix('<').and_then(|text| text.split_once('>'))
        && name.contains('_')
        && name.chars().all(|sign| sign.is_ascii_lowercase() || sign == '_')
        && let Some((_, after)) = inner.split_once(&format!("</{name}>"))
    {
        rest = after.trim_start();
    }
    rest
}

/// A command as it was typed. Source: Claude Code replays its name and its arguments as elements.
fn command(text: &str) -> Option<String> {
    let inner = |name: &str| {
        let (_, rest) = text.split_once(&format!("<command-{name}>"))?;
        rest.split_once(&format!("</command-{name}>")).map(|(inner, _)| inner.trim())
    };
    let name = text.starts_with("<command-").then(|| inner("name"))??;
    Some(format!("{name} {}", inner("args").unwrap_or_default()).trim_end().to_owned())
}

pub(super) fn is_notes(text: &str) -> bool {
    let mut rest = text.trim();
    let is_any = !rest.is_empty();
    while let Some(inner) = NOTES.iter().find_map(|begin| rest.strip_prefix(begin))
        && let Some((_, after)) = inner.split_once(']')
    {
        rest = after.trim_start();
    }
    is_any && rest.is_empty()
}
