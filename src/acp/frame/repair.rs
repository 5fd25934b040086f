//! Repairs JSON that strict parsers reject, so that a message is not lost because of one value.
//!
//! Agents cut strings in the middle of a surrogate pair, write `NaN`, or nest deeper than parsers allow. The rest of the
//! message is fine, and may be a request that waits for the user.
//! Invariant: valid JSON is unchanged.

use std::borrow::Cow;

/// Deeper values become a string with their text. `serde_json` allows 128 levels, some of which are the message's own.
const MAX_DEPTH: usize = 100;
/// Shorter numbers without an exponent are always finite.
const FINITE_CHARS: usize = 300;

/// Replaces half surrogate pairs by U+FFFD, escapes control characters in strings, and makes strings of numbers
/// without a finite value (`NaN`, `1e400`) and of values that are nested too deeply.
pub fn repair(text: &str) -> Cow<'_, str> {
    let mut repair = Repair { text, copied: 0, out: String::new() };
    let bytes = text.as_bytes();
    let (mut at, mut depth) = (0, 0_usize);
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => at = repair.string(at),
            b'{' | b'[' if depth == MAX_DEPTH => {
                let end = end_of_value(bytes, at);
                repair.quote(at, end);
                at = end;
            }
            b'{' | b'[' => {
                depth += 1;
                at += 1;
            }
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                at += 1;
            }
            b'-' | b'+' | b'0'..=b'9' | b'N' | b'I' | b'i' => {
                let rest = bytes.get(at..).unwrap_or_default();
                let end = at + rest.iter().take_while(|byte| is_of_word(**byte)).count();
                if text.get(at..end).is_some_and(is_infinite) {
                    repair.quote(at, end);
                }
                at = end.max(at + 1);
            }
            _ => at += 1,
        }
    }
    if repair.copied == 0 {
        return Cow::Borrowed(text);
    }
    repair.replace(text.len(), text.len(), "");
    Cow::Owned(repair.out)
}

/// Whether a short text needs no repair if a parser accepts it. For most messages, much faster than [`repair`].
#[allow(clippy::needless_bitwise_bool, reason = "a branch for each byte is much slower")]
pub fn is_plain(text: &str) -> bool {
    let bytes = text.as_bytes();
    if bytes.len() >= FINITE_CHARS {
        return false;
    }
    // Without branches and with small sums the compiler vectorizes both loops, which run for each message.
    let opened: u16 = bytes.iter().map(|byte| u16::from((*byte == b'{') | (*byte == b'['))).sum();
    let pairs = bytes.iter().zip(bytes.get(1..).unwrap_or_default());
    let suspects = pairs.fold(0_u8, |suspects, (first, second)| {
        let is_escape = (*first == b'\\') & (*second == b'u');
        let is_exponent = first.is_ascii_digit() & (*second | 0x20 == b'e');
        suspects | u8::from(is_escape | is_exponent)
    });
    suspects == 0 && usize::from(opened) <= MAX_DEPTH
}

struct Repair<'t> {
    text: &'t str,
    copied: usize,
    out: String,
}

impl Repair<'_> {
    fn replace(&mut self, from: usize, to: usize, by: &str) {
        self.out.push_str(self.text.get(self.copied..from).unwrap_or_default());
        self.out.push_str(by);
        self.copied = to;
    }

    /// Replaces a value by a string with its text.
    fn quote(&mut self, from: usize, to: usize) {
        let value = self.text.get(from..to).unwrap_or_default();
        self.replace(from, to, &serde_json::Value::from(value).to_string());
    }

    /// Repairs the string that begins at `start`, and returns its end.
    fn string(&mut self, start: usize) -> usize {
        let bytes = self.text.as_bytes();
        let mut at = start + 1;
        loop {
            let rest = bytes.get(at..).unwrap_or_default();
            let Some(next) = rest.iter().position(|byte| matches!(byte, b'"' | b'\\' | ..=0x1f)) else {
                return bytes.len();
            };
            at += next;
            match bytes.get(at) {
                Some(b'"') => return at + 1,
                Some(b'\\') => match surrogate(bytes, at) {
                    None => at += 2,
                    Some(true) if surrogate(bytes, at + 6) == Some(false) => at += 12,
                    Some(_) => {
                        self.replace(at, at + 6, "\u{fffd}");
                        at += 6;
                    }
                },
                Some(control) => {
                    self.replace(at, at + 1, &format!("\\u{control:04x}"));
                    at += 1;
                }
                None => return bytes.len(),
            }
        }
    }
}

/// Whether the escape at this place is the first or second half of a surrogate pair; `None`: neither.
fn surrogate(bytes: &[u8], at: usize) -> Option<bool> {
    let digits = bytes.get(at..at + 6)?.strip_prefix(b"\\u")?;
    let code = u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    match code {
        0xd800..=0xdbff => Some(true),
        0xdc00..=0xdfff => Some(false),
        _ => None,
    }
}

fn end_of_value(bytes: &[u8], start: usize) -> usize {
    let (mut at, mut depth, mut is_in_string) = (start, 0_usize, false);
    while let Some(byte) = bytes.get(at) {
        at += 1;
        match byte {
            b'\\' if is_in_string => at += 1,
            b'"' => is_in_string = !is_in_string,
            b'{' | b'[' if !is_in_string => depth += 1,
            b'}' | b']' if !is_in_string => {
                depth -= 1;
                if depth == 0 {
                    return at;
                }
            }
            _ => {}
        }
    }
    bytes.len()
}

fn is_of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.')
}

fn is_infinite(word: &str) -> bool {
    let is_name = matches!(word.trim_start_matches(['+', '-']), "NaN" | "Infinity" | "inf" | "nan");
    let may_be_large = word.len() > FINITE_CHARS || word.contains(['e', 'E']);
    is_name || may_be_large && word.parse().is_ok_and(f64::is_infinite)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn read(text: &str) -> Value {
        serde_json::from_str(&repair(text)).unwrap()
    }

    #[test]
    fn halves_of_pairs_become_replacement_characters() {
        for (text, wanted) in [
            (r#"{"a":"x\ud83d"}"#, json!({"a": "x\u{fffd}"})),
            (r#"{"a":"\ude00y"}"#, json!({"a": "\u{fffd}y"})),
            (r#"{"a":"\ud83d\ud83d\ude00"}"#, json!({"a": "\u{fffd}😀"})),
            (r#"{"a":"\\ud83d"}"#, json!({"a": "\\ud83d"})),
            (r#"{"\uD83D":"\u0041"}"#, json!({"\u{fffd}": "A"})),
        ] {
            assert_eq!(read(text), wanted, "{text}");
        }
    }

    #[test]
    fn values_that_parsers_reject_become_strings() {
        for (text, wanted) in [
            (r#"{"a":NaN,"b":-Infinity}"#, json!({"a": "NaN", "b": "-Infinity"})),
            (r"[1e400,-1E+999,1e3]", json!(["1e400", "-1E+999", 1e3])),
            ("[\"a\tb\u{1}\"]", json!(["a\tb\u{1}"])),
        ] {
            assert_eq!(read(text), wanted, "{text}");
        }
        let deep = format!(r#"{{"a":{}"]"{}}}"#, "[".repeat(300), "]".repeat(300));
        let text = repair(&deep);
        assert!(text.contains(r#""[[[["#), "{text}");
        assert!(serde_json::from_str::<Value>(&text).is_ok());
    }

    #[test]
    fn broken_text_does_not_panic() {
        for text in
            ["", "{", "\"", "\"\\", "\"\\u", "\"\\ud83", "\"\\ud83d", "[NaN", "]]]", "{\"a\":\"\\ud83d\\"]
        {
            let _ = repair(text);
            let _ = repair(&"[".repeat(200).replace('[', &format!("[{text}")));
        }
    }

    proptest! {
        #[test]
        fn valid_json_is_unchanged(words in proptest::collection::vec("\\PC{0,8}|[\\x00-\\x1f]{1,3}", 0..6), number in any::<f64>()) {
            let text = json!({"words": words, "number": number, "more": [words.len(), null, true]}).to_string();
            prop_assert_eq!(repair(&text), text.as_str());
        }

        #[test]
        fn plain_text_that_parses_needs_no_repair(
            number in "-?[1-9][0-9]{0,4}(\\.[0-9]{1,3})?([eE][+-]?[0-9]{1,3})?",
            text in "(\\\\u[dD0][89a-f0-9]{3}|\\\\[n\\\\]|[a-zNI1e{\\[]){0,8}",
            depth in 0usize..120,
        ) {
            let (open, close) = ("[".repeat(depth), "]".repeat(depth));
            let text = format!(r#"{{"{text}":{open}{number}{close}}}"#);
            if is_plain(&text) && serde_json::from_str::<serde::de::IgnoredAny>(&text).is_ok() {
                prop_assert!(matches!(repair(&text), Cow::Borrowed(_)), "{}", text);
                prop_assert!(serde_json::from_str::<Value>(&text).is_ok(), "{}", text);
            }
        }

        #[test]
        fn nothing_panics(text in "[\\[\\]{}\"\\\\ud83NaI1e4,:\\x00-\\x1fé]{0,60}") {
            let _ = repair(&text);
        }
    }
}
