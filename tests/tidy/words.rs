//! Checks that the strings of the program are plain English, with a list of phrases that are not.

use super::{sources, without_tests};

/// Folders whose string literals are checked for `AWKWARD_PHRASES`; not the demo, which contains stories.
const PLAIN_FOLDERS: [&str; 10] =
    ["acp", "core", "cli", "config", "host", "model", "program", "runtime", "store", "ui"];

/// Phrases that must not be in strings of the program, in lower case: personification, unclear phrases, and synonyms of
/// terms.
const AWKWARD_PHRASES: [&str; 60] = [
    "a quiet room",
    "anew",
    "any more",
    "are no",
    "as it came",
    "at the front",
    "behind",
    "belong into",
    "by itself",
    "deaf",
    "dealt with",
    "does not know",
    "does not say",
    "for instance",
    "forgets",
    "forgotten",
    "gave up",
    "given up",
    "gives up",
    "go on",
    "goes on",
    "gone on",
    "hears",
    "in force",
    "in whole",
    "is it an agent",
    "is no",
    "is told",
    "kept",
    "knows",
    "last words",
    "left out",
    "let you in",
    "lets nobody",
    "log of the wire",
    "look at",
    "mark an",
    "mark the",
    "marked",
    "mend",
    "nobody",
    "of the wire",
    "on its way",
    "once more",
    "seldom",
    "stands above",
    "take back",
    "taken back",
    "takes it",
    "takes none",
    "tells",
    "the other way",
    "to look for",
    "under way",
    "waits for you",
    "waits for your",
    "walk the",
    "wants",
    "what is",
    "without a word",
];

/// Standard phrases that contain an awkward one.
const STANDARD_PHRASES: [&str; 2] = ["is no longer", "there is no"];

/// The string literals of code without comments and test items, with continued lines joined.
fn string_literals(code: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = code;
    while let Some(at) = rest.find(['/', '\'', '"', 'r']) {
        let (before, tail) = rest.split_at(at);
        let hashes = tail[1..].bytes().take_while(|byte| *byte == b'#').count();
        let is_raw = tail.starts_with('r')
            && tail[1 + hashes..].starts_with('"')
            && !before.ends_with(|ch: char| ch.is_alphanumeric() || ch == '_');
        rest = if tail.starts_with("//") {
            tail.split_once('\n').map_or("", |(_, next)| next)
        } else if is_raw {
            let (text, next) = tail[hashes + 2..].split_once(&format!("\"{}", "#".repeat(hashes))).unwrap();
            found.push(text.to_owned());
            next
        } else if tail.starts_with("'\"'") || tail.starts_with("'\\") {
            // A quotation mark as a character literal does not start a string.
            &tail[3..]
        } else if let Some(next) = tail.strip_prefix('"') {
            let mut text = String::new();
            let mut letters = next.chars();
            while let Some(ch) = letters.next().filter(|ch| *ch != '"') {
                if ch != '\\' {
                    text.push(ch);
                    continue;
                }
                match letters.next() {
                    Some('\n') => letters = letters.as_str().trim_start().chars(),
                    Some('n') => text.push('\n'),
                    escaped => text.extend(escaped),
                }
            }
            found.push(text);
            letters.as_str()
        } else {
            &tail[1..]
        };
    }
    found
}

/// The awkward phrases in a text, as complete words. Names in braces are ignored.
fn awkward_phrases(text: &str) -> Vec<&'static str> {
    let outside = |part: &str| part.split_once('}').map_or(part, |(_, rest)| rest).to_lowercase();
    let mut text = text.split('{').map(outside).collect::<Vec<_>>().join("…");
    for phrase in STANDARD_PHRASES {
        text = text.replace(phrase, "");
    }
    let is_apart = |ch: Option<char>| !ch.is_some_and(|ch| ch.is_alphanumeric() || ch == '_' || ch == '-');
    let holds = |phrase: &&str| {
        text.match_indices(*phrase).any(|(at, _)| {
            is_apart(text[..at].chars().next_back()) && is_apart(text[at + phrase.len()..].chars().next())
        })
    };
    AWKWARD_PHRASES.into_iter().filter(holds).collect()
}

#[test]
fn strings_are_plain_english() {
    let mut strays = Vec::new();
    for source in sources() {
        if source.is_test() || !source.is_in(&PLAIN_FOLDERS) || source.is_in(&["store/schema"]) {
            continue;
        }
        // The reason of an attribute is not shown to users.
        let code: Vec<&str> =
            without_tests(&source.text).into_iter().filter(|line| !line.contains("reason = \"")).collect();
        for text in string_literals(&code.join("\n")) {
            strays.extend(
                awkward_phrases(&text)
                    .iter()
                    .map(|phrase| format!("{}: `{phrase}` in {text:?}", source.path)),
            );
        }
    }
    assert!(strays.is_empty(), "use plain English:\n{}", strays.join("\n"));
}

#[test]
fn awkward_phrases_are_found_in_literals_only() {
    let code = "// wants\nlet a = '\"'; f::<'a>(\"The agent wants \\\n      \\\"it\\\" by itself.\"); // it waits\nlet b = r#\"\"x\"#;";
    let found = string_literals(code);
    assert_eq!(found, ["The agent wants \"it\" by itself.", "\"x"]);
    assert_eq!(awkward_phrases(&found[0]), ["by itself", "wants"]);
    for fine in [
        "This location is no longer shown.",
        "There is no plan.",
        "commend",
        "the unmarked row",
        "asks to {wants}",
    ] {
        assert_eq!(awkward_phrases(fine), [""; 0], "{fine}");
    }
    assert_eq!(awkward_phrases("`x` is no modifier"), ["is no"]);
}
