//! Paths in the text that a terminal pastes when files are dropped on it.

use std::path::{Path, PathBuf};

use super::target::percent_decoded;

/// Maximum size of a text that is searched for paths, and of paths in it.
const TEXT_MAX_BYTES: usize = 64 << 10;
const PATHS_MAX: usize = 100;

/// The paths in a dropped text. Terminals escape paths in different ways, so there may be several readings, of which the
/// first whose files exist is the right one. Empty if the text is something else.
pub fn dropped_paths(text: &str) -> Vec<Vec<PathBuf>> {
    let text = text.trim();
    if text.len() > TEXT_MAX_BYTES || !text.starts_with(['/', '\'', '"', 'f']) {
        return Vec::new();
    }
    let as_lines = text.lines().map(|line| plain_path(line.trim())).collect::<Option<Vec<_>>>();
    let as_words =
        words(text).and_then(|words| words.iter().map(|word| path(word)).collect::<Option<Vec<_>>>());
    let mut readings: Vec<Vec<PathBuf>> = [as_lines, as_words].into_iter().flatten().collect();
    readings.retain(|paths| (1..=PATHS_MAX).contains(&paths.len()));
    readings.dedup();
    readings
}

/// An absolute path or a `file` URL.
fn path(word: &str) -> Option<PathBuf> {
    let Some(rest) = word.strip_prefix("file://") else { return plain_path(word) };
    let rest = rest.strip_prefix("localhost").unwrap_or(rest);
    plain_path(&percent_decoded(rest)?)
}

/// An absolute path without characters that a prompt cannot contain.
fn plain_path(text: &str) -> Option<PathBuf> {
    let is_path = text.starts_with('/') && text.len() > 1 && !text.chars().any(char::is_control);
    is_path.then(|| Path::new(text).to_owned())
}

/// Splits a text at blanks and line breaks like a shell; `None` if a quote is open.
fn words(text: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote: Option<char> = None;
    let mut letters = text.chars();
    while let Some(ch) = letters.next() {
        match (ch, quote) {
            (mark, Some(open)) if mark == open => quote = None,
            ('\'' | '"', None) => {
                quote = Some(ch);
                word.get_or_insert_default();
            }
            ('\\', None | Some('"')) => word.get_or_insert_default().push(letters.next()?),
            (blank, None) if blank.is_whitespace() => words.extend(word.take()),
            (ch, _) => word.get_or_insert_default().push(ch),
        }
    }
    words.extend(word);
    quote.is_none().then_some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn last(text: &str) -> Vec<String> {
        let readings = dropped_paths(text);
        readings.last().into_iter().flatten().map(|path| path.display().to_string()).collect()
    }

    #[test]
    fn escaped_paths_and_urls_are_decoded() {
        assert_eq!(last("/a/b.png"), ["/a/b.png"]);
        assert_eq!(last("/a/my\\ file.png "), ["/a/my file.png"]);
        assert_eq!(last("'/a/my file.png' \"/b/c \\\"d\\\".rs\"\n"), ["/a/my file.png", "/b/c \"d\".rs"]);
        assert_eq!(last("'/a/it'\\''s.png'"), ["/a/it's.png"]);
        assert_eq!(last("file:///a/my%20file%C3%A9.png file://localhost/b"), ["/a/my fileé.png", "/b"]);
        assert_eq!(last("/a b\n/c"), ["/a b", "/c"]);
    }

    #[test]
    fn an_unescaped_path_with_spaces_is_one_reading() {
        let readings = dropped_paths("/a/my file.png");
        assert_eq!(readings, [[PathBuf::from("/a/my file.png")]]);
        assert_eq!(dropped_paths("/a /b").len(), 2, "one path with a space, or two paths");
    }

    #[test]
    fn other_texts_are_not_paths() {
        for text in [
            "",
            "/",
            "see /a/b",
            "a.png",
            "fn main() {}",
            "'/a",
            "/a\n\nrest",
            "file:///%ff",
            "file://host/a",
            "/a\u{1b}b",
        ] {
            assert_eq!(dropped_paths(text), Vec::<Vec<PathBuf>>::new(), "{text:?}");
        }
        let many = "/a\n".repeat(PATHS_MAX + 1);
        assert_eq!(dropped_paths(&many), Vec::<Vec<PathBuf>>::new());
    }
}
