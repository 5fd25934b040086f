//! Redacts secrets in a raw line.
//!
//! Redacts values of secret keys, all values in `env` and `headers`, all answers to forms, bearer tokens and well-known
//! key formats, in JSON and in plain text. A line may be truncated or not be JSON at all, so this scans tokens instead
//! of parsing a tree.
//! Invariant: a text without secrets is unchanged.

mod find;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

pub use find::{Found, find, masked};

const HIDDEN: &str = "[hidden]";
/// Every line with a secret contains one of these words, in lower case.
const TRIGGERS: [&str; 17] = [
    "accept",
    "env",
    "headers",
    "authorization",
    "cookie",
    "key",
    "token",
    "secret",
    "passw",
    "bearer",
    "sk-",
    "ghp_",
    "github_pat_",
    "xox",
    "aiza",
    "sig",
    "@",
];
const PREFIXES: [&str; 8] = ["sk-", "ghp_", "gho_", "github_pat_", "xoxb-", "xoxp-", "AIza", "glpat-"];
/// Minimum length of a secret after such a prefix.
const MIN_SECRET_CHARS: usize = 16;

pub fn redact(text: &str) -> Cow<'_, str> {
    let lower = text.to_ascii_lowercase();
    if !TRIGGERS.iter().any(|word| memchr::memmem::find(lower.as_bytes(), word.as_bytes()).is_some()) {
        return Cow::Borrowed(text);
    }
    let hidden =
        if text.trim_start().starts_with(['{', '[']) { redact_json(text) } else { redact_plain(text) };
    if hidden == text { Cow::Borrowed(text) } else { Cow::Owned(hidden) }
}

fn redact_json(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut key = "";
    let mut depth = 0_usize;
    // Depth of the outermost open `env` or `headers`.
    let mut secret_depth: Option<usize> = None;
    // Whether this line is the response to a form, whose `content` is redacted.
    let is_answer = is_form_answer(text);
    // Whether the last string was an option of a command that a secret follows.
    let mut is_next_secret = false;
    let mut rest = text;
    while let Some(at) = rest.find(['"', '{', '[', '}', ']']) {
        let (before, from) = rest.split_at(at);
        if is_answer && secret_depth.is_some() {
            out.push_str(&hide_literals(before));
        } else {
            out.push_str(before);
        }
        if let Some(string) = from.strip_prefix('"') {
            let (content, behind, is_closed) = split_string(string);
            rest = behind;
            out.push('"');
            let was_option = std::mem::replace(&mut is_next_secret, is_secret_option(content));
            if rest.trim_start().starts_with(':') {
                key = content;
                out.push_str(content);
            } else if was_option
                || is_secret_key(key)
                || (secret_depth.is_some() && (is_answer || key != "name" && key != "type"))
            {
                out.push_str(HIDDEN);
            } else {
                out.push_str(&redact_plain(content));
            }
            if is_closed {
                out.push('"');
            }
            continue;
        }
        let (bracket, behind) = from.split_at(1);
        out.push_str(bracket);
        rest = behind;
        if matches!(bracket, "{" | "[") {
            depth += 1;
            if secret_depth.is_none() && (is_secret_container(key) || is_answer && key == "content") {
                secret_depth = Some(depth);
            }
            if bracket == "{" && secret_depth.is_none() {
                key = "";
            }
        } else {
            if secret_depth == Some(depth) {
                secret_depth = None;
            }
            depth = depth.saturating_sub(1);
            key = "";
        }
    }
    out.push_str(rest);
    out
}

/// Whether a line is the response to a form: only the request says what of it is secret. Source: ACP v1 elicitation.
fn is_form_answer(text: &str) -> bool {
    let bare: String = text.chars().filter(|ch| !ch.is_whitespace()).collect();
    bare.contains("\"action\":\"accept\"") && bare.contains("\"content\":{") && !bare.contains("\"method\":")
}

fn hide_literals(text: &str) -> String {
    let is_of = |ch: char| ch.is_alphanumeric() || matches!(ch, '.' | '-' | '+');
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(is_of) {
        let (before, literal) = rest.split_at(at);
        let end = literal.find(|ch| !is_of(ch)).unwrap_or(literal.len());
        out.push_str(before);
        out.push_str("\"[hidden]\"");
        rest = literal.get(end..).unwrap_or_default();
    }
    out + rest
}

/// The content of a string up to its closing quote, the rest, and whether there is a closing quote.
fn split_string(text: &str) -> (&str, &str, bool) {
    let mut is_escaped = false;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => return (&text[..at], &text[at + 1..], true),
            _ => {}
        }
    }
    (text, "", false)
}

fn is_secret_container(key: &str) -> bool {
    ["env", "headers"].iter().any(|name| key.eq_ignore_ascii_case(name))
}

fn is_secret_key(key: &str) -> bool {
    let name: String =
        key.chars().filter(char::is_ascii_alphanumeric).map(|ch| ch.to_ascii_lowercase()).collect();
    let exact = ["authorization", "proxyauthorization", "cookie", "setcookie", "passwd", "sig", "signature"];
    exact.contains(&name.as_str())
        || ["apikey", "token", "secret", "password", "privatekey"].iter().any(|end| name.ends_with(end))
}

/// Whether an argument of a command says that the next one is a secret: `--api-key`.
fn is_secret_option(argument: &str) -> bool {
    argument.starts_with('-') && !argument.contains('=') && is_secret_key(argument)
}

/// Redacts `Bearer TOKEN`, `Authorization: …`, `api_key=…` and well-known key formats, word by word.
fn redact_plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut is_next_secret = false;
    for word in text.split_inclusive(|ch: char| ch.is_whitespace()) {
        let bare = word.trim_end();
        let space = &word[bare.len()..];
        let name = bare.trim_end_matches(':');
        if bare.is_empty() {
            out.push_str(word);
            continue;
        }
        if bare.eq_ignore_ascii_case("bearer") || bare.eq_ignore_ascii_case("basic") {
            // After `Authorization:` the secret is the word after the scheme; `basic` alone is an ordinary word.
            is_next_secret |= bare.eq_ignore_ascii_case("bearer");
            out.push_str(word);
        } else if is_next_secret {
            is_next_secret = false;
            out.push_str(HIDDEN);
            out.push_str(space);
        } else if name.len() < bare.len() && is_secret_key(name) || is_secret_option(bare) {
            is_next_secret = true;
            out.push_str(word);
        } else {
            out.push_str(&redact_word(bare));
            out.push_str(space);
        }
    }
    out
}

/// Redacts the user and password of a URL, the value of `NAME=VALUE` with a secret name, and keys of well-known formats.
fn redact_word(word: &str) -> Cow<'_, str> {
    if let Some((scheme, rest)) = word.split_once("://")
        && let Some((user, host)) = rest.split(['/', '?', '#']).next().unwrap_or_default().rsplit_once('@')
        && !user.is_empty()
    {
        let after = &rest[user.len() + 1 + host.len()..];
        return Cow::Owned(format!("{scheme}://{HIDDEN}@{host}{}", redact_word(after)));
    }
    if word.contains('=') && word.contains('&') {
        return Cow::Owned(word.split('&').map(redact_word).collect::<Vec<_>>().join("&"));
    }
    if let Some((name, value)) = word.split_once('=') {
        let start = name.rfind(|ch: char| !(ch.is_alphanumeric() || "_-".contains(ch)));
        let name_only = start.and_then(|at| name.get(at + 1..)).unwrap_or(name);
        if is_secret_key(name_only) && !value.is_empty() {
            return Cow::Owned(format!("{name}={HIDDEN}"));
        }
    }
    for prefix in PREFIXES {
        let Some(at) = word.find(prefix) else { continue };
        let (before, key) = word.split_at(at);
        if before.ends_with(|ch: char| ch.is_alphanumeric()) {
            continue;
        }
        let end = key.find(|ch: char| !(ch.is_alphanumeric() || "_-".contains(ch))).unwrap_or(key.len());
        if end >= prefix.len() + MIN_SECRET_CHARS {
            return Cow::Owned(format!("{before}{prefix}{HIDDEN}{}", &key[end..]));
        }
    }
    Cow::Borrowed(word)
}
