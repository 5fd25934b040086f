//! Mentions of files in the text of a prompt.
//!
//! A prompt is edited, queued and saved as text. A mention is `@` and a path, with optional lines; the file is read when
//! the prompt is sent.
//! Invariant: every text is a valid prompt; what is not a mention stays text.

use std::ops::{Range, RangeInclusive};
use std::path::PathBuf;

use super::{ContentBlock, ExitInfo, SessionKey, TemplateCall, UnreviewedTemplate};

/// Characters after a mention that are punctuation of the sentence.
const PUNCTUATION: &[char] = &['.', ',', ';', ':', '!', '?', ')', ']', '}', '\'', '"', '>'];

/// A mention of a file or folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mention {
    /// The path as written, without quotes.
    pub path: String,
    /// The lines, from 1.
    pub lines: Option<RangeInclusive<u32>>,
}

/// The mentions in a text, in order, with their byte ranges. Whether they exist is not checked.
pub fn mentions(text: &str) -> Vec<(Range<usize>, Mention)> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(start) = text.get(at..).and_then(|rest| rest.find('@')).map(|offset| at + offset) {
        at = match mention_at(text, start) {
            Some((end, mention)) => {
                found.push((start..end, mention));
                end
            }
            None => start + 1,
        };
    }
    found
}

/// Parses a mention. Its `@` begins a word; a path with spaces is in double quotes.
fn mention_at(text: &str, start: usize) -> Option<(usize, Mention)> {
    let before = text.get(..start)?.chars().next_back();
    if before.is_some_and(|before| !before.is_whitespace() && !matches!(before, '(' | '[' | '{' | '"' | '\''))
    {
        return None;
    }
    let rest = text.get(start + 1..)?;
    if let Some(quoted) = rest.strip_prefix('"') {
        let end = quoted.find(['"', '\n']).filter(|end| quoted.as_bytes().get(*end) == Some(&b'"'))?;
        let path = quoted.get(..end).filter(|path| !path.is_empty())?;
        let after = quoted.get(end + 1..)?;
        let word = after.split(char::is_whitespace).next()?.trim_end_matches(PUNCTUATION);
        let lines = word.strip_prefix(':').and_then(|lines| Some((lines.len() + 1, line_range(lines)?)));
        let (used, lines) = lines.map_or((0, None), |(used, lines)| (used, Some(lines)));
        let mention = Mention { path: path.to_owned(), lines };
        return Some((start + 3 + end + used, mention));
    }
    let word = rest.split(char::is_whitespace).next()?.trim_end_matches(PUNCTUATION);
    if word.is_empty() {
        return None;
    }
    let split = word.rsplit_once(':').and_then(|(path, lines)| Some((path, line_range(lines)?)));
    let (path, lines) = match split {
        Some((path, lines)) if !path.is_empty() => (path, Some(lines)),
        _ => (word, None),
    };
    let mention = Mention { path: path.to_owned(), lines };
    Some((start + 1 + word.len(), mention))
}

/// Parses `10` or `10-20`.
fn line_range(text: &str) -> Option<RangeInclusive<u32>> {
    let number = |text: &str| {
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| text.parse().ok()).flatten().filter(|line: &u32| *line > 0)
    };
    let (first, last) = match text.split_once('-') {
        Some((first, last)) => (number(first)?, number(last)?),
        None => (number(text)?, number(text)?),
    };
    (first <= last).then_some(first..=last)
}

pub fn mention_text(path: &str) -> String {
    let is_plain = !path.chars().any(char::is_whitespace)
        && !path.starts_with('"')
        && !path.ends_with(PUNCTUATION)
        && path.rsplit_once(':').is_none_or(|(_, lines)| line_range(lines).is_none());
    if is_plain { format!("@{path}") } else { format!("@\"{path}\"") }
}

/// The mention that is being typed before the cursor, which is a byte offset: the range from its `@` to the cursor, and
/// the path so far. `None` if the cursor is not in a mention.
pub fn typed_mention(text: &str, cursor: usize) -> Option<(Range<usize>, &str)> {
    let line_start = text.get(..cursor)?.rfind('\n').map_or(0, |at| at + 1);
    let line = text.get(line_start..cursor)?;
    let begins_word = |at: usize| {
        line.get(..at)
            .and_then(|head| head.chars().next_back())
            .is_none_or(|before| before.is_whitespace() || matches!(before, '(' | '[' | '{' | '"' | '\''))
    };
    let (at, _) = line.rmatch_indices('@').find(|(at, _)| begins_word(*at))?;
    let typed = line.get(at + 1..)?;
    let path = match typed.strip_prefix('"') {
        Some(quoted) if !quoted.contains('"') => quoted,
        Some(_) => return None,
        None if typed.contains(char::is_whitespace) => return None,
        None => typed,
    };
    Some((line_start + at..cursor, path))
}

/// The argument of a slash command that is being typed before the cursor, which is a byte offset: the range from its
/// start to the cursor, and the text without an opening quote. `None` if the cursor is not in an argument.
pub fn typed_argument(text: &str, cursor: usize) -> Option<(Range<usize>, &str)> {
    let typed = text.get(..cursor).filter(|typed| typed.starts_with('/'))?;
    typed.find(char::is_whitespace)?;
    let is_quoted = typed.matches('"').count() % 2 == 1;
    let start = if is_quoted {
        typed.rfind('"')?
    } else {
        typed.char_indices().rfind(|(_, ch)| ch.is_whitespace()).map(|(at, it)| at + it.len_utf8())?
    };
    let word = typed.get(start..)?;
    let path = word.strip_prefix('"').unwrap_or(word);
    (!word.starts_with('@') && !word.contains('\n')).then_some((start..cursor, path))
}

pub fn argument_text(path: &str) -> String {
    if path.contains(char::is_whitespace) { format!("\"{path}\"") } else { path.to_owned() }
}

/// The number of a prompt within its session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PromptId(pub u64);

/// A request to read what a prompt refers to.
#[derive(Debug, Clone, PartialEq)]
pub struct PromptJob {
    pub session: SessionKey,
    pub prompt: PromptId,
    pub text: String,
    /// The session's folder: relative paths start there. `None` if it is on another machine, where no file can be read.
    pub folder: Option<PathBuf>,
    /// The folders whose files may be embedded.
    pub roots: Vec<PathBuf>,
    pub takes: PromptTakes,
    /// The template that the text calls; it replaces the text.
    pub template: Option<TemplateCall>,
    /// The outputs that the prompt mentions, or its template may mention.
    pub outputs: Vec<CommandOutput>,
    /// The paths of files that were listed when they were mentioned.
    pub listed: Vec<String>,
}

/// The output of a command, for a mention.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandOutput {
    /// The mention's path: [`LAST_OUTPUT`], or [`output_name`].
    pub name: String,
    pub command: String,
    pub cwd: Option<PathBuf>,
    /// `None`: it is running.
    pub exit: Option<ExitInfo>,
    pub output: Vec<u8>,
    pub is_cut: bool,
}

/// The path of a mention of the last command's output.
pub const LAST_OUTPUT: &str = "last";

/// The path of a mention of the changes since the last commit.
pub const CHANGES: &str = "diff";

/// The path of a mention of the output of the user's command with this number.
pub fn output_name(number: u32) -> String {
    format!("!{number}")
}

/// The number of the user's command that a mention's path names.
pub fn output_number(path: &str) -> Option<u32> {
    path.strip_prefix('!').filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))?.parse().ok()
}

/// The start of a mention for which symbols are listed.
pub const SYMBOLS: &str = "symbol:";

/// The start of a mention for which saved sessions are listed.
pub const SESSIONS: &str = "session:";

/// Minimum number of characters of a name for which symbols are listed with the files.
const SYMBOL_MIN_CHARS: usize = 2;

/// The name of the symbols that match a mention as typed so far; `None` if only files are listed.
pub fn symbol_name(query: &str) -> Option<&str> {
    let is_name = |query: &&str| {
        query.chars().count() >= SYMBOL_MIN_CHARS
            && !query.contains(['/', '!'])
            && !query.starts_with(SESSIONS)
    };
    query.strip_prefix(SYMBOLS).or_else(|| Some(query).filter(is_name))
}

/// A saved session that can be mentioned.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MentionedSession {
    pub uid: String,
    pub agent: String,
    /// Its title or first prompt.
    pub name: String,
    /// The time of its last event, for display.
    pub when: String,
}

/// A request to attach the transcript of a saved session to a draft.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionAttachJob {
    pub session: SessionKey,
    /// The mention in the draft that the label replaces, and its position.
    pub text: String,
    pub at: usize,
    /// The store's id of the attached session.
    pub uid: String,
    /// Its title or first prompt.
    pub name: String,
}

/// Files that were dropped on the terminal, which pasted their paths into the prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DropJob {
    pub session: SessionKey,
    /// The text as pasted, and its place in the draft.
    pub text: String,
    pub at: usize,
    pub readings: Vec<Vec<PathBuf>>,
    /// The session's folder. `None` if it is on another machine.
    pub folder: Option<PathBuf>,
    /// The folders whose files may be embedded.
    pub roots: Vec<PathBuf>,
}

/// The kinds of content that the agent accepts. Source: ACP v1 initialization, `promptCapabilities`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PromptTakes {
    pub images: bool,
    pub audio: bool,
    pub embedded: bool,
}

/// A prompt with everything that it refers to.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PreparedPrompt {
    /// The text with pasted texts in place of their labels.
    pub text: String,
    /// The bytes of pasted texts in the text, in order.
    pub pasted: Vec<Range<usize>>,
    /// Files, links and images, in order.
    pub blocks: Vec<ContentBlock>,
    /// What could not be attached, as sentences for the user.
    pub problems: Vec<String>,
    /// The paths of [`PromptJob::listed`] that were not found.
    pub missing: Vec<String>,
    /// Other paths that were not found, and are sent as text.
    pub unread: Vec<String>,
    /// The template that the user has to review before the prompt can be sent.
    pub unreviewed: Option<UnreviewedTemplate>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<(String, Option<(u32, u32)>)> {
        let all = mentions(text).into_iter();
        all.map(|(_, mention)| (mention.path, mention.lines.map(|lines| (*lines.start(), *lines.end()))))
            .collect()
    }

    #[test]
    fn mentions_are_paths_after_an_at_sign_that_begins_a_word() {
        let plain = |path: &str| vec![(path.to_owned(), None)];
        assert_eq!(found("see @src/main.rs, please"), plain("src/main.rs"));
        assert_eq!(found("(@a.rs) "), plain("a.rs"));
        assert_eq!(found("@\"my file.txt\"."), plain("my file.txt"));
        assert_eq!(found("@дом/файл.md"), plain("дом/файл.md"));
        assert_eq!(found("mail me@example.org or @ home, @"), []);
        assert_eq!(found("@\"open\n@x"), plain("x"));
    }

    #[test]
    fn mentions_may_have_lines() {
        assert_eq!(found("@a.rs:10-20"), [("a.rs".to_owned(), Some((10, 20)))]);
        assert_eq!(found("@a.rs:7."), [("a.rs".to_owned(), Some((7, 7)))]);
        assert_eq!(found("@\"a b.rs\":3-4,"), [("a b.rs".to_owned(), Some((3, 4)))]);
        for text in ["@a:0", "@a:9-2", "@a:x", "@a:99999999999"] {
            assert_eq!(found(text), [(text.trim_start_matches('@').to_owned(), None)], "{text}");
        }
    }

    #[test]
    fn written_mentions_are_read_back() {
        for path in ["src/a.rs", "with space/a b", "ends.", "a:10", "(x)", "[a]/b", "\u{1f600}.md"] {
            let text = format!("x {} y", mention_text(path));
            assert_eq!(found(&text), [(path.to_owned(), None)], "{text}");
        }
    }

    #[test]
    fn the_argument_before_the_cursor_is_being_typed() {
        let typed =
            |text: &str| typed_argument(text, text.len()).map(|(range, path)| (range.start, path.to_owned()));
        assert_eq!(typed("/review src/m"), Some((8, "src/m".to_owned())));
        assert_eq!(typed("/review a\u{3000}"), Some((12, String::new())));
        assert_eq!(typed("/review \"my fi"), Some((8, "my fi".to_owned())));
        assert_eq!(typed("/review \"my file\" b"), Some((18, "b".to_owned())));
        for text in ["/review", "review a", " /review a", "/review @a", ""] {
            assert_eq!(typed(text), None, "{text}");
        }
        assert_eq!(argument_text("my file"), "\"my file\"");
    }

    #[test]
    fn the_mention_before_the_cursor_is_being_typed() {
        let typed =
            |text: &str| typed_mention(text, text.len()).map(|(range, path)| (range.start, path.to_owned()));
        assert_eq!(typed("see @sr"), Some((4, "sr".to_owned())));
        assert_eq!(typed("@"), Some((0, String::new())));
        assert_eq!(typed("a\n@\"my fi"), Some((2, "my fi".to_owned())));
        assert_eq!(typed("see @src "), None);
        assert_eq!(typed("me@ex"), None);
        assert_eq!(typed("@\"a\" b"), None);
        assert_eq!(typed("@a@b"), Some((0, "a@b".to_owned())));
    }
}
