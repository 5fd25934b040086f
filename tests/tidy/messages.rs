//! Text for the user is never compared: code recognizes a notice by its kind, not by its title.

use super::{first_name, sources};

/// How code compares text; what follows is the text.
const COMPARISONS: [&str; 6] = ["== ", "!= ", "strip_prefix(", "starts_with(", "ends_with(", "contains("];

/// Text of formats that looks like a sentence.
const FORMATS: [&str; 2] = ["Binary files ", "GIT binary patch"];

/// Whether a text is a sentence or its beginning: a capital letter, and a second word in lower case.
fn is_sentence(text: &str) -> bool {
    let begins = text.chars().next().is_some_and(char::is_uppercase);
    begins && text.split(' ').nth(1).is_some_and(|word| word.chars().all(char::is_lowercase))
}

/// The constants of code that are sentences.
fn constants(code: &str) -> Vec<(String, String)> {
    let texts = code.split("const ").skip(1).filter_map(|rest| {
        let (declared, text) = rest.split_once(" = \"")?;
        let text = text.split('"').next()?;
        (declared.ends_with(": &str") && is_sentence(text)).then(|| (first_name(rest), text.to_owned()))
    });
    texts.collect()
}

/// The sentences that code compares something with, as literals or by the name of a constant.
fn compared(code: &str, constants: &[(String, String)]) -> Vec<String> {
    let mut found = Vec::new();
    for comparison in COMPARISONS {
        for (at, _) in code.match_indices(comparison) {
            let other = code[at + comparison.len()..].trim_start_matches(['&', '*']);
            let text = if let Some(literal) = other.strip_prefix('"') {
                literal.split('"').next().filter(|text| is_sentence(text))
            } else {
                let is_path = |ch: &char| ch.is_alphanumeric() || "_:".contains(*ch);
                let path: String = other.chars().take_while(is_path).collect();
                let name = path.rsplit("::").next().unwrap_or_default();
                constants.iter().find(|(known, _)| known == name).map(|(_, text)| text.as_str())
            };
            found.extend(text.filter(|text| !FORMATS.contains(text)).map(str::to_owned));
        }
    }
    found
}

#[test]
fn no_code_compares_text_for_the_user() {
    let mut sources = sources();
    sources.retain(|source| !source.is_test() && source.is_in(&["core", "ui", "host", "store"]));
    let constants: Vec<_> = sources.iter().flat_map(|source| constants(&source.code())).collect();
    assert!(constants.len() > 5, "{constants:?}");
    let mut strays = Vec::new();
    for source in sources {
        let found = compared(&source.code(), &constants);
        strays.extend(found.into_iter().map(|text| format!("{}: {text:?}", source.path)));
    }
    assert!(strays.is_empty(), "give it a kind, and compare that:\n{}", strays.join("\n"));
}

#[test]
fn compared_sentences_are_found() {
    let constants = constants("const CUT: &str = \"This turn was cut\";\nconst KIND: &str = \"plain text\";");
    let code =
        "title == record::CUT || title.starts_with(\"Not in\") || kind == KIND || url.contains(\"://\")";
    assert_eq!(compared(code, &constants), ["This turn was cut", "Not in"]);
}
