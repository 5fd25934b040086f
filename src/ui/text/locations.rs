//! Finds addresses and file paths (with lines) in the text of an agent, to open them.
//!
//! Whether a file exists is checked when it is opened. A path needs a slash or a line number, and a name with a file
//! extension, so that `and/or`, `e.g.` and `v1.2` do not match.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use crate::model::Target;

/// An address, up to a blank or a character that addresses do not contain.
const URL: &str = r#"(?i:https?://|mailto:)[^\s<>"'`{}|\\^\[\]]+"#;

/// Letters and digits of all scripts, approximately. Unicode's own tables take milliseconds to compile, which would
/// delay the first frame.
const LETTERS: &str = r"0-9A-Za-z_\u{AA}-\u{1FFF}\u{2C00}-\u{2DFF}\u{3005}-\u{3007}\u{3031}-\u{D7FF}\u{F900}-\u{FDFF}\u{FE70}-\u{FEFE}\u{FF10}-\u{FFDC}\u{10000}-\u{1EFFF}\u{20000}-\u{3FFFF}";

/// Addresses; folders, a name with an extension (letters, then digits), optionally line and column; a path without an
/// extension but with a line: `/etc/hosts:3`, `src/Makefile:12`.
fn locations() -> Option<Regex> {
    let name = format!("[{LETTERS}.@+-]");
    let (lead, folder) = (r"(?:\.{0,2}/)?", format!("(?:{name}+/)"));
    let line = r":[0-9]{1,7}(?::[0-9]{1,5})?";
    let bare = format!(r"{lead}{folder}+{name}*[{LETTERS}]{line}(?-u:\b)");
    let path = format!(r"{lead}{folder}*{name}*[{LETTERS}]\.[A-Za-z][A-Za-z0-9]{{0,9}}(?:{line})?(?-u:\b)");
    Regex::new(&format!("(?P<url>{URL})|(?P<bare>{bare})|(?P<path>{path})")).ok()
}

static PLACES: LazyLock<Option<Regex>> = LazyLock::new(locations);

/// All places in a text, in order, without overlaps.
pub fn find(text: &str) -> Vec<(Range<usize>, Target)> {
    let mut found = Vec::new();
    // Most words have neither a slash nor a colon, and streamed text is scanned often.
    for word in text.split(char::is_whitespace).filter(|word| word.contains(['/', ':'])) {
        let start = word.as_ptr().addr() - text.as_ptr().addr();
        find_in_word(word, start, &mut found);
    }
    found
}

/// The places in a word that starts at byte `start`.
fn find_in_word(word: &str, start: usize, found: &mut Vec<(Range<usize>, Target)>) {
    let Some(regex) = PLACES.as_ref() else { return };
    for captures in regex.captures_iter(word) {
        let Some(whole) = captures.get(0) else { continue };
        let before = word.get(..whole.start()).and_then(|head| head.chars().next_back());
        let from = start + whole.start();
        if let Some(url) = captures.name("url") {
            let url = trimmed(url.as_str());
            if let Some(target @ Target::Url(_)) = Target::of_link(url) {
                found.push((from..from + url.len(), target));
            }
            continue;
        }
        // Part of something else: another kind of address, a home folder, an option.
        let after = word.get(whole.end()..).and_then(|rest| rest.chars().next());
        if before
            .is_some_and(|ch| ch.is_alphanumeric() || matches!(ch, ':' | '/' | '…' | '~' | '\\' | '$' | '@'))
            || after.is_some_and(char::is_alphanumeric)
        {
            continue;
        }
        let path = whole.as_str();
        if let Some(target @ Target::File(_)) = Target::of_link(path).filter(|_| is_path(path)) {
            found.push((from..from + path.len(), target));
        }
    }
}

/// Whether a match is a path: with a folder or a line, and without a host.
fn is_path(text: &str) -> bool {
    let (path, line) = match text.split_once(':') {
        Some((path, line)) => (path, Some(line)),
        None => (text, None),
    };
    let first = path.split('/').next().unwrap_or_default();
    let is_host = |name: &str| {
        let ending = name.rsplit_once('.').map(|(_, ending)| ending);
        ending.is_some_and(|ending| matches!(ending, "com" | "org" | "net" | "io" | "dev" | "example"))
    };
    (line.is_some() || path.contains('/')) && !is_host(first)
}

/// An address without the punctuation of the surrounding sentence.
fn trimmed(url: &str) -> &str {
    let mut url = url;
    loop {
        let shorter = url.trim_end_matches(['.', ',', ';', ':', '!', '?', '*', '_']);
        let opened = shorter.matches('(').count();
        let shorter = match shorter.strip_suffix(')') {
            Some(inner) if shorter.matches(')').count() > opened => inner,
            _ => shorter,
        };
        if shorter.len() == url.len() {
            return url;
        }
        url = shorter;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Location;

    fn found(text: &str) -> Vec<String> {
        find(text).into_iter().map(|(range, _)| text[range].to_owned()).collect()
    }

    #[test]
    fn paths_need_a_folder_or_a_line() {
        assert_eq!(
            found("see src/auth.rs:12, ./a/b.test.ts:3:4 and (lib/x.py)."),
            ["src/auth.rs:12", "./a/b.test.ts:3:4", "lib/x.py"]
        );
        assert_eq!(
            found("main.rs:7 /etc/hosts:3 src/Makefile:12"),
            ["main.rs:7", "/etc/hosts:3", "src/Makefile:12"]
        );
        assert_eq!(found("../x/y-z_1.md"), ["../x/y-z_1.md"]);
        let none = "and/or e.g. v1.2 main.rs 12:30 127.0.0.1:80 localhost:80 a.com:443 example.org/x.html ~/a/b.c:1 \
                    key:value ssh://h/a.rs:1 2026/11/21 std::fs";
        assert_eq!(found(none), Vec::<String>::new());
    }

    #[test]
    fn names_may_use_any_script() {
        let all = "src/größe.rs:3 данные/файл.txt 試験/テスト.rs docs/दस्तावेज़.md ملفات/ملف.txt";
        assert_eq!(found(all), all.split(' ').collect::<Vec<_>>());
        assert_eq!(found("「src/a.rs」、(src/b.rs)…"), ["src/a.rs", "src/b.rs"]);
        assert_eq!(found("src/a.rsé x→src/b.rs"), ["src/b.rs"], "nor at the start of a word");
    }

    #[test]
    fn addresses_exclude_trailing_punctuation() {
        assert_eq!(
            found("(https://a.org/x_(y)). Or https://b.org/?q=1&r=2#z, mailto:a@b.org!"),
            ["https://a.org/x_(y)", "https://b.org/?q=1&r=2#z", "mailto:a@b.org"]
        );
        assert_eq!(found("**https://a.org**"), ["https://a.org"]);
        assert_eq!(found("http:// javascript:alert(1)"), Vec::<String>::new());
    }

    #[test]
    fn a_place_has_its_line() {
        let location = Target::File(Location { path: "src/a.rs".into(), line: Some(12) });
        assert_eq!(find("at src/a.rs:12:3"), [(3..16, location)]);
    }
}
