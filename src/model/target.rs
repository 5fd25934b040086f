//! Targets that can be opened: a URL, or a place in a file.
//!
//! Parses link targets and rejects everything else. `runtime` opens them after `core` asked the user.
//!
//! Invariants: a URL consists of printable ASCII only, so it can neither hide its destination nor end the
//! escape sequence that sends it to the terminal.

use std::fmt::Write as _;
use std::path::PathBuf;

use super::Location;

/// Maximum length of a URL; terminals cut links at about this length.
const MAX_BYTES: usize = 2_000;

/// Something that can be opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// A place in a file. A relative path is resolved in the session's folder.
    File(Location),
    /// A URL: `http`, `https` or `mailto`.
    Url(String),
}

impl Target {
    /// Parses a link target. Accepts only `http`, `https`, `mailto`, `file` and plain paths; a `#L12` after a
    /// path is its line.
    pub fn of_link(text: &str) -> Option<Self> {
        let text = text.trim();
        let is_hidden = text.chars().any(|ch| ch.is_control() || ch.is_whitespace() || ch == '\\');
        if text.is_empty() || is_hidden {
            return None;
        }
        let scheme = text.split_once(':').map(|(scheme, _)| scheme.to_ascii_lowercase());
        match scheme.as_deref() {
            Some("http" | "https") if text.contains("://") => Self::url(text),
            Some("mailto") => Self::url(text),
            Some("file") => {
                let rest = text.get("file:".len()..)?;
                let path = match rest.strip_prefix("//") {
                    Some(rest) => rest.strip_prefix("localhost").unwrap_or(rest),
                    None => rest,
                };
                path.starts_with('/').then(|| Self::file(path)).flatten()
            }
            // `C:\…` and `src/a.rs:12` are paths; `javascript:…` is not.
            Some(scheme) if !scheme.contains(['.', '/']) && !is_number_behind(text) => None,
            _ => Self::file(text),
        }
    }

    /// The URL for the terminal; `None` for a relative path, which the terminal cannot resolve.
    pub fn address(&self) -> Option<String> {
        match self {
            Self::Url(url) => Some(url.clone()),
            Self::File(location) if location.path.is_absolute() => {
                let path = location.path.to_str()?;
                let mut address = "file://".to_owned();
                for byte in path.bytes() {
                    match byte {
                        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'_' | b'.' | b'~' | b'+' => {
                            address.push(char::from(byte));
                        }
                        _ => {
                            let _ = write!(address, "%{byte:02X}");
                        }
                    }
                }
                (address.len() <= MAX_BYTES).then_some(address)
            }
            Self::File(_) => None,
        }
    }

    fn url(text: &str) -> Option<Self> {
        let mut url = String::with_capacity(text.len());
        for ch in text.chars() {
            if ch.is_ascii_graphic() {
                url.push(ch);
            } else {
                let mut bytes = [0; 4];
                for byte in ch.encode_utf8(&mut bytes).bytes() {
                    let _ = write!(url, "%{byte:02X}");
                }
            }
        }
        (url.len() <= MAX_BYTES).then_some(Self::Url(url))
    }

    fn file(text: &str) -> Option<Self> {
        let (path, anchor) = text.split_once('#').unwrap_or((text, ""));
        let path = path.split('?').next().unwrap_or_default();
        let anchor = anchor.strip_prefix(['L', 'l']).and_then(number);
        let (path, line) = match path.rsplit_once(':') {
            Some((before, line)) if number(line).is_some() => match before.rsplit_once(':') {
                // Line and column.
                Some((path, first)) if number(first).is_some() => (path, number(first)),
                _ => (before, number(line)),
            },
            _ => (path, None),
        };
        let path = percent_decoded(path)?;
        (!path.is_empty()).then(|| Self::File(Location { path: PathBuf::from(path), line: anchor.or(line) }))
    }
}

fn number(text: &str) -> Option<u32> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    text.get(..digits).filter(|digits| !digits.is_empty()).and_then(|digits| digits.parse().ok())
}

/// Whether the first colon is followed by a line number.
fn is_number_behind(text: &str) -> bool {
    text.split_once(':')
        .is_some_and(|(_, rest)| rest.bytes().next().is_some_and(|byte| byte.is_ascii_digit()))
}

/// Decodes `%20`. `None` if the result contains control characters or is not UTF-8.
pub(super) fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        let hex = tail.get(..2).filter(|_| *first == b'%').and_then(|hex| std::str::from_utf8(hex).ok());
        if let Some(byte) = hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            bytes.push(byte);
            rest = tail.get(2..).unwrap_or_default();
        } else {
            bytes.push(*first);
            rest = tail;
        }
    }
    String::from_utf8(bytes).ok().filter(|path| !path.chars().any(char::is_control))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(clippy::unnecessary_wraps, reason = "compared with an Option")]
    fn file(path: &str, line: Option<u32>) -> Option<Target> {
        Some(Target::File(Location { path: path.into(), line }))
    }

    #[test]
    fn web_and_mail_urls_are_accepted() {
        let url = |text: &str| Some(Target::Url(text.to_owned()));
        assert_eq!(Target::of_link("https://a.org/x?y#z"), url("https://a.org/x?y#z"));
        assert_eq!(Target::of_link("mailto:a@b.org"), url("mailto:a@b.org"));
        assert_eq!(Target::of_link("https://a.org/ä"), url("https://a.org/%C3%A4"));
    }

    #[test]
    fn other_schemes_and_hidden_characters_are_rejected() {
        for text in [
            "javascript:alert(1)",
            "data:text/html,x",
            "ssh://host",
            "vscode://x",
            "https:nothing",
            "https://a.org/\u{1b}]8;;",
            "https://a.org/\u{7}x",
            "https://a b",
            "file://server/share",
            "",
        ] {
            assert_eq!(Target::of_link(text), None, "{text:?}");
        }
    }

    #[test]
    fn lines_of_paths_are_parsed() {
        assert_eq!(Target::of_link("src/a.rs"), file("src/a.rs", None));
        assert_eq!(Target::of_link("./src/a.rs#L12-L20"), file("./src/a.rs", Some(12)));
        assert_eq!(Target::of_link("src/a.rs:12:3"), file("src/a.rs", Some(12)));
        assert_eq!(Target::of_link("Makefile:12"), file("Makefile", Some(12)));
        assert_eq!(Target::of_link("file:///a%20b/c.rs"), file("/a b/c.rs", None));
        assert_eq!(Target::of_link("/a%00b"), None);
    }

    #[test]
    fn urls_for_the_terminal_are_printable_ascii() {
        let long = format!("https://a.org/{}", "ä".repeat(2_000));
        assert_eq!(Target::of_link(&long), None);
        for text in ["https://ä.org/\u{202e}x", "/tmp/ä b;c", "file:///x%1by"] {
            let address = Target::of_link(text).and_then(|target| target.address());
            assert!(
                address.is_none_or(|address| address.bytes().all(|byte| byte.is_ascii_graphic())),
                "{text}"
            );
        }
        let location = Target::File(Location { path: "/tmp/ä b".into(), line: Some(3) });
        assert_eq!(location.address().as_deref(), Some("file:///tmp/%C3%A4%20b"));
        assert_eq!(Target::of_link("src/a.rs").and_then(|target| target.address()), None);
    }
}
