//! Lenient JSON layout: breaks and indents lines at brackets and commas outside of strings, so that truncated
//! or invalid JSON is shown completely, and splits a text into its values. Does not validate.

/// Maximum indentation, in levels.
const MAX_INDENT: usize = 24;

/// Formats the text with one member per line. Whitespace between tokens is replaced; strings are unchanged.
pub fn lay_out(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 4);
    let mut depth = 0_usize;
    let mut letters = text.chars().peekable();
    while let Some(ch) = letters.next() {
        match ch {
            '"' => {
                out.push('"');
                while let Some(inner) = letters.next() {
                    out.push(inner);
                    match inner {
                        '"' => break,
                        '\\' => out.extend(letters.next()),
                        _ => {}
                    }
                }
            }
            '{' | '[' => {
                out.push(ch);
                while letters.next_if(|next| next.is_whitespace()).is_some() {}
                if let Some(close) = letters.next_if(|next| matches!(next, '}' | ']')) {
                    out.push(close);
                } else {
                    depth += 1;
                    break_line(&mut out, depth);
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                break_line(&mut out, depth);
                out.push(ch);
            }
            ',' => {
                out.push(',');
                break_line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            blank if blank.is_whitespace() => {}
            other => out.push(other),
        }
    }
    out
}

fn break_line(out: &mut String, depth: usize) {
    out.push('\n');
    for _ in 0..depth.min(MAX_INDENT) {
        out.push_str("  ");
    }
}

/// A value without members: a string, a number, a word, or an array of these.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leaf<'t> {
    /// The keys and indexes of the path from the root.
    pub path: Vec<Step>,
    /// The source text of the value, including quotes and escapes.
    pub raw: &'t str,
}

/// A step on a path into a JSON value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    Key(String),
    Index(usize),
}

/// Deeper values are returned as one leaf.
const MAX_DEPTH: usize = 32;

/// The first leaves of a JSON value up to a maximum number, and whether these are all. Text that is not JSON
/// is one leaf.
pub fn leaves(text: &str, max: usize) -> (Vec<Leaf<'_>>, bool) {
    let text = text.trim();
    let mut out = Vec::new();
    let mut path = Vec::new();
    let is_whole = add_leaves(text, max, &mut path, &mut out);
    (out, is_whole)
}

fn add_leaves<'t>(text: &'t str, max: usize, path: &mut Vec<Step>, out: &mut Vec<Leaf<'t>>) -> bool {
    if out.len() >= max {
        return false;
    }
    let inside = match (text.as_bytes().first(), text.as_bytes().last()) {
        (Some(b'{'), Some(b'}')) | (Some(b'['), Some(b']')) => {
            text.get(1..text.len() - 1).unwrap_or_default()
        }
        _ => "",
    };
    let is_object = text.starts_with('{');
    let is_flat = !is_object && members(inside).all(|member| !member.trim_start().starts_with(['{', '[']));
    if inside.trim().is_empty() || is_flat || path.len() >= MAX_DEPTH {
        out.push(Leaf { path: path.clone(), raw: text });
        return true;
    }
    for (index, member) in members(inside).enumerate() {
        if out.len() >= max {
            return false;
        }
        let (step, value) = match split_key(member).filter(|_| is_object) {
            Some((key, value)) => (Step::Key(unescape(key)), value),
            None => (Step::Index(index), member),
        };
        path.push(step);
        let is_whole = add_leaves(value.trim(), max, path, out);
        path.pop();
        if !is_whole {
            return false;
        }
    }
    true
}

/// The strings of an array; `None` if it contains other values.
pub fn texts_of(raw: &str) -> Option<Vec<String>> {
    let inside = raw.strip_prefix('[')?.strip_suffix(']')?;
    members(inside).map(|member| text_of(member.trim())).collect()
}

/// The decoded JSON string; `None` for other values.
pub fn text_of(raw: &str) -> Option<String> {
    let inside = raw.strip_prefix('"')?.strip_suffix('"')?;
    Some(unescape(inside))
}

/// The parts between commas outside of strings and brackets.
fn members(inside: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(inside);
    std::iter::from_fn(move || {
        let text = rest.take()?;
        let end = end_of(text, b',');
        rest = text.get(end + 1..);
        text.get(..end).filter(|member| rest.is_some() || !member.trim().is_empty())
    })
}

fn split_key(member: &str) -> Option<(&str, &str)> {
    let at = end_of(member, b':');
    let key = member.get(..at)?.trim();
    Some((key.strip_prefix('"')?.strip_suffix('"')?, member.get(at + 1..)?))
}

/// The first position of a character outside of strings and brackets, otherwise the end.
fn end_of(text: &str, sign: u8) -> usize {
    let (mut depth, mut is_text, mut is_escaped) = (0_usize, false, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_text => is_escaped = true,
            b'"' => is_text = !is_text,
            _ if is_text => {}
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ if byte == sign && depth == 0 => return at,
            _ => {}
        }
    }
    text.len()
}

/// Decodes a JSON string; invalid escapes are unchanged.
fn unescape(inside: &str) -> String {
    let mut out = String::with_capacity(inside.len());
    let mut rest = inside;
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        out.push_str(before);
        let (ch, len) = match escape.as_bytes().get(1) {
            Some(b'n') => ('\n', 2),
            Some(b't') => ('\t', 2),
            Some(b'r') => ('\r', 2),
            Some(b'b') => ('\u{8}', 2),
            Some(b'f') => ('\u{c}', 2),
            Some(b'u') => unicode(escape),
            Some(byte @ (b'"' | b'\\' | b'/')) => (char::from(*byte), 2),
            _ => ('\\', 1),
        };
        out.push(ch);
        rest = escape.get(len..).unwrap_or_default();
    }
    out.push_str(rest);
    out
}

/// Decodes `\u1234` or a surrogate pair; returns the character and the length of the escape.
fn unicode(escape: &str) -> (char, usize) {
    let unit = |at: usize| {
        let digits = escape.get(at..at + 6).and_then(|escape| escape.strip_prefix("\\u"));
        digits.and_then(|digits| u16::from_str_radix(digits, 16).ok())
    };
    let Some(first) = unit(0) else { return ('\\', 1) };
    let pair = [Some(first), unit(6)];
    let units = pair.into_iter().flatten();
    match char::decode_utf16(units).next() {
        Some(Ok(ch)) => (ch, ch.len_utf16() * 6),
        _ => ('\u{fffd}', 6),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn members_are_on_separate_lines() {
        let text = r#"{"a":[1, {"b":"x, y: {z}"}],"c":{},"d":[ ],"e":null}"#;
        let lines = [
            "{",
            "  \"a\": [",
            "    1,",
            "    {",
            "      \"b\": \"x, y: {z}\"",
            "    }",
            "  ],",
            "  \"c\": {},",
            "  \"d\": [],",
            "  \"e\": null",
            "}",
        ];
        assert_eq!(lay_out(text), lines.join("\n"));
    }

    #[test]
    fn truncated_and_invalid_json_is_complete() {
        for text in [r#"{"a":"b\"#, r#"["x\"y","#, "}}]", "plain-words", "\"é\\\"日"] {
            let compact = |text: &str| text.chars().filter(|c| !c.is_whitespace()).collect::<String>();
            assert_eq!(compact(&lay_out(text)), compact(text));
        }
        let deep = "[".repeat(1000);
        assert!(lay_out(&deep).lines().all(|line| line.len() <= 2 * MAX_INDENT + 1));
    }

    fn leaf_lines(text: &str) -> Vec<String> {
        let step = |step: &Step| match step {
            Step::Key(key) => format!(".{key}"),
            Step::Index(at) => format!("[{at}]"),
        };
        let leaf =
            |leaf: &Leaf<'_>| format!("{} {}", leaf.path.iter().map(step).collect::<String>(), leaf.raw);
        leaves(text, 99).0.iter().map(leaf).collect()
    }

    #[test]
    fn members_are_returned_as_leaves() {
        let text = r#"{"a":"x, {y}","e":{"N\u0041":"--r \"q\""},"l":[1,"b"],"o":[{"p":true},[]],"z":{}}"#;
        assert_eq!(
            leaf_lines(text),
            [r#".a "x, {y}""#, r#".e.NA "--r \"q\"""#, r#".l [1,"b"]"#, ".o[0].p true", ".o[1] []", ".z {}"]
        );
        assert_eq!(leaf_lines("plain"), [" plain"]);
        assert_eq!(texts_of(r#"["a\n", "b,c"]"#), Some(vec!["a\n".to_owned(), "b,c".to_owned()]));
        assert_eq!(texts_of("[1]"), None);
        assert_eq!(text_of(r#""\ud83d\ude00\ud800\u00e9\/""#).as_deref(), Some("😀\u{fffd}é/"));
        let (first, is_whole) = leaves(r#"{"a":1,"b":2,"c":3}"#, 2);
        assert_eq!((first.len(), is_whole), (2, false));
        assert!(leaves(&"[".repeat(100_000), 9).1, "deep nesting is handled");
    }

    proptest! {
        /// The leaves contain every value of the text.
        #[test]
        fn every_value_is_returned_as_a_leaf(values in prop::collection::btree_map("[a-z\"\\\\\n]{1,4}", prop_oneof![
            any::<String>().prop_map(serde_json::Value::from),
            any::<i64>().prop_map(serde_json::Value::from),
            prop::collection::vec(any::<String>(), 0..3).prop_map(serde_json::Value::from),
        ], 0..6)) {
            let text = serde_json::to_string(&values).unwrap();
            let (found, is_whole) = leaves(&text, 99);
            prop_assert!(is_whole);
            if !values.is_empty() {
                let found: std::collections::BTreeMap<String, serde_json::Value> = found.iter().map(|leaf| {
                    let [Step::Key(key)] = leaf.path.as_slice() else { panic!("{leaf:?}") };
                    let value = text_of(leaf.raw).map(serde_json::Value::from);
                    let list = texts_of(leaf.raw).map(serde_json::Value::from);
                    (key.clone(), value.or(list).unwrap_or_else(|| serde_json::from_str(leaf.raw).unwrap()))
                }).collect();
                prop_assert_eq!(found, values);
            }
        }

        #[test]
        fn any_text_is_split(text in "[\\[\\]{},:\"a\\\\u0 ]{0,40}") {
            let (found, _) = leaves(&text, 20);
            prop_assert!(found.len() <= 20);
            let letters = |text: &str| text.matches('a').count();
            let in_leaves: usize = found.iter().map(|leaf| letters(leaf.raw)).sum();
            prop_assert!(in_leaves <= letters(&text));
        }
    }
}
