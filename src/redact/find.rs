//! Finds secrets in a text that is about to leave: known formats, and values that a name calls a secret and that look random.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

/// Longer texts are searched up to here, in bytes.
const MAX_BYTES: usize = 4 << 20;

/// Minimum entropy of a value without a known format, in bits per character. English text has about 4 with spaces and upper
/// case, but single words of this length have less.
const MIN_ENTROPY: f64 = 3.3;

/// A secret in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    pub range: Range<usize>,
    /// What it is, for display.
    pub kind: &'static str,
}

/// Formats of keys. The first group, if there is one, is the secret.
const FORMATS: &[(&str, &str)] = &[
    ("private key", r"-----BEGIN [A-Z ]{0,20}PRIVATE KEY-----[A-Za-z0-9+/=\s:,-]{40,8000}?(?:-----END|…|\z)"),
    ("AWS access key", r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"),
    ("GitHub token", r"\bgh[pousr]_[A-Za-z0-9]{30,}\b"),
    ("GitHub token", r"\bgithub_pat_[A-Za-z0-9_]{30,}\b"),
    ("GitLab token", r"\bglpat-[A-Za-z0-9_-]{20,}"),
    ("Slack token", r"\bxox[abeprs]-[A-Za-z0-9-]{20,}"),
    ("API key", r"\bsk-[A-Za-z0-9_-]{24,}"),
    ("Stripe key", r"\b[rs]k_live_[A-Za-z0-9]{20,}"),
    ("Google API key", r"\bAIza[A-Za-z0-9_-]{35}\b"),
    ("npm token", r"\bnpm_[A-Za-z0-9]{36}\b"),
    ("PyPI token", r"\bpypi-[A-Za-z0-9_-]{50,}"),
    ("JSON web token", r"\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}"),
    ("password in an address", r"\b[a-z][a-z0-9+.-]{1,20}://[^\s/:@]{1,100}:([^\s/:@]{6,200})@"),
];

const NAMED_KIND: &str = "secret value";

/// A name that says secret, and its value.
const NAMED: &str = r#"(?i)(?:api_?-?key|secret|token|passw(?:or)?d|private_?-?key|access_?-?key|bearer)[a-z0-9_]{0,20}["']?\s{0,3}[:= ]\s{0,3}["']?([A-Za-z0-9+/_.~-]{16,200}={0,2})"#;

static ALL: LazyLock<Vec<(&str, Regex)>> = LazyLock::new(|| {
    let named = std::iter::once(&(NAMED_KIND, NAMED));
    let compiled = FORMATS.iter().chain(named).map(|(kind, format)| Some((*kind, Regex::new(format).ok()?)));
    compiled.flatten().collect()
});

/// The secrets in a text, in order.
pub fn find(text: &str) -> Vec<Found> {
    let end = (0..=MAX_BYTES.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    let text = text.get(..end).unwrap_or(text);
    let mut found: Vec<Found> = Vec::new();
    for (kind, format) in ALL.iter() {
        for captures in format.captures_iter(text) {
            let Some(value) = captures.get(1).or_else(|| captures.get(0)) else { continue };
            if *kind != NAMED_KIND || looks_random(value.as_str()) {
                found.push(Found { range: value.range(), kind });
            }
        }
    }
    // Of those that overlap, the first one counts, and of two at one place the known format.
    found.sort_by_key(|found| found.range.start);
    let mut end = 0;
    found.retain(|secret| {
        let is_apart = secret.range.start >= end;
        end = end.max(secret.range.end);
        is_apart
    });
    found
}

/// The text with `*` in place of each secret, so that positions after it stay valid.
pub fn masked(text: &str, secrets: &[Found]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut end = 0;
    for secret in secrets {
        out.push_str(text.get(end..secret.range.start).unwrap_or_default());
        out.extend(std::iter::repeat_n('*', secret.range.len()));
        end = secret.range.end;
    }
    out.push_str(text.get(end..).unwrap_or_default());
    out
}

/// Whether a value may be a key, and not a word, a path, a reference to a variable, or a checksum.
fn looks_random(value: &str) -> bool {
    let digits = value.bytes().filter(u8::is_ascii_digit).count();
    let letters = value.bytes().filter(u8::is_ascii_alphabetic).count();
    let is_path = value.contains('/') && value.split('/').all(|part| part.len() < 16);
    let has_words = value.split(['.', '_', '-', '/']).all(|part| {
        part.len() < 12 && part.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    });
    digits >= 2 && letters >= 2 && !is_path && !has_words && entropy(value) >= MIN_ENTROPY
}

/// Shannon entropy in bits per byte.
fn entropy(value: &str) -> f64 {
    let mut counts = [0_u32; 256];
    value.bytes().for_each(|byte| counts[usize::from(byte)] += 1);
    let total = f64::from(u32::try_from(value.len()).unwrap_or(u32::MAX).max(1));
    let share = |count: &u32| f64::from(*count) / total;
    counts.iter().filter(|count| **count > 0).map(share).map(|share| -share * share.log2()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A value that no scanner of repositories takes for a key.
    fn random(chars: usize) -> String {
        "aB3xK9mQ7zT2pL5wR8cV".chars().cycle().take(chars).collect()
    }

    fn kinds(text: &str) -> Vec<&'static str> {
        find(text).iter().map(|found| found.kind).collect()
    }

    #[test]
    fn keys_of_known_formats_are_found() {
        let key = random(40);
        for (text, kind) in [
            (format!("use ghp_{key} please"), "GitHub token"),
            (format!("AKIA{}", "A1B2C3D4E5F6G7H8"), "AWS access key"),
            (format!("key sk-ant-{key}"), "API key"),
            (format!("postgres://me:{key}@db/x"), "password in an address"),
            (format!("-----BEGIN RSA PRIVATE KEY-----\n{key}{key}\n-----END"), "private key"),
            (format!("eyJ{key}.eyJ{key}.{key}"), "JSON web token"),
            (format!("API_KEY={key}"), "secret value"),
            (format!("\"client_secret\": \"{key}\""), "secret value"),
            (format!("Authorization: Bearer {key}"), "secret value"),
        ] {
            assert_eq!(kinds(&text), [kind], "{text}");
            let hidden = masked(&text, &find(&text));
            assert!(!hidden.contains(&key[..20]) && hidden.len() == text.len(), "{hidden}");
        }
    }

    #[test]
    fn code_and_checksums_are_not_secrets() {
        for text in [
            "let token = next_token_of_line(reader);",
            "password: your-password-here",
            "api_key = os.environ[\"OPENAI_API_KEY\"]",
            "token: ${{ secrets.GITHUB_TOKEN }}",
            "commit 7a112bd2c3f1e8a9b0d4c5e6f7a8b9c0d1e2f3a4",
            "checksum = \"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\"",
            "secret = \"xxxxxxxxxxxxxxxxxxxxxxxx\"",
            "token_path: /home/user/project/src/token.rs",
            "pub fn access_key(&self) -> Option<&AccessKeyOfUser2>",
            "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ",
        ] {
            assert_eq!(kinds(text), [""; 0], "{text}");
        }
    }

    #[test]
    fn a_text_of_any_size_is_searched_once() {
        let text = "token = ".repeat(700_000);
        assert_eq!(find(&text), []);
        assert_eq!(find("é".repeat(3 << 20).as_str()), []);
    }
}
