//! Finds the line of a command's output that says why it failed.
//!
//! The last lines of an output, which are shown anyway, are often only a count of errors. `tool` places the line.
//! Invariants: text is returned sanitized by `text`; at most [`SOUGHT_BYTES`] are searched.

use std::sync::LazyLock;

use regex::bytes::{Regex, RegexBuilder};

use crate::ui::text::one_line;

/// Maximum bytes of an output that are searched, backwards from the shown lines.
const SOUGHT_BYTES: usize = 256 * 1024;

/// The start of error messages of compilers, test runners, shells and interpreters.
const COMPLAINT: &str = r"(?xi)
    ^ \W* (?: error | fatal | panic | fail(?:ed|ure)? | exception ) \b (?: \[[^\]]*\] | \s[A-Z]+\d+ )? : \s* \S
    | \b (?: [a-z]*error | [a-z]*exception | fatal ) (?: \[[^\]]*\] | \s[A-Z]+\d+ )? : \s+ \S
    | \b panicked\ at \b
    | : \s (?: command\ not\ found | not\ found | no\ such\ file\ or\ directory | permission\ denied ) \b
    | \b segmentation\ fault \b
    | ^ \W* assertion \b .* \b failed \b
    | ^ \s* (?: --- \s )? FAIL (?:ED)? [:\s] \s* \S";

/// Final messages that only count errors.
const COUNT: &str = r"(?xi) \b \d+ \s (?:previous\s)? (?: errors? | failures? | failed ) \b
    | \b could\ not\ compile \b | \b test\ failed, \s";

static COMPLAINS: LazyLock<Option<Regex>> = LazyLock::new(|| ascii(COMPLAINT));
static COUNTS: LazyLock<Option<Regex>> = LazyLock::new(|| ascii(COUNT));

/// Without Unicode tables, which would take longer to compile than the search takes.
fn ascii(pattern: &str) -> Option<Regex> {
    RegexBuilder::new(pattern).unicode(false).build().ok()
}

/// The first error line before the last lines of an output. `None` if the last lines contain one, or there is none.
pub(super) fn before_tail(output: &[u8], tail_lines: usize) -> Option<String> {
    let end = output.trim_ascii_end();
    let cut = memchr::memrchr_iter(b'\n', end).nth(tail_lines.checked_sub(1)?)?;
    let (sought, tail) = end.split_at(cut);
    first(sought).filter(|_| tail_is_count(tail))
}

/// Whether error lines among the last lines only count earlier errors.
fn tail_is_count(tail: &[u8]) -> bool {
    lines(tail).filter(|line| complains(line)).all(|line| matches(&COUNTS, &line))
}

/// The first error line.
pub(super) fn first(output: &[u8]) -> Option<String> {
    let from = output.len().saturating_sub(SOUGHT_BYTES);
    lines(output.get(from..)?).find(|line| complains(line))
}

fn complains(line: &str) -> bool {
    matches(&COMPLAINS, line)
}

fn matches(pattern: &LazyLock<Option<Regex>>, line: &str) -> bool {
    pattern.as_ref().is_some_and(|pattern| pattern.is_match(line.as_bytes()))
}

/// Non-blank lines as they are displayed: of an overwritten line, the last text.
fn lines(output: &[u8]) -> impl Iterator<Item = String> {
    output.split(|byte| *byte == b'\n').filter_map(|line| {
        let line = line.trim_ascii();
        let shown = memchr::memrchr(b'\r', line).and_then(|at| line.get(at + 1..)).unwrap_or(line);
        let line = one_line(&String::from_utf8_lossy(shown)).trim().to_owned();
        (!line.is_empty()).then_some(line)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_various_tools_are_found() {
        for line in [
            "error[E0308]: mismatched types",
            "\u{1b}[1m\u{1b}[91merror[E0308]\u{1b}[0m\u{1b}[1m: mismatched types",
            "error: could not compile `shop`",
            "src/main.c:12:5: error: expected ';'",
            "src/a.ts(3,1): error TS2304: Cannot find name 'x'.",
            "TypeError: x is not a function",
            "ValueError: invalid literal for int()",
            "java.lang.NullPointerException: null",
            "fatal: not a git repository",
            "thread 'main' panicked at src/main.rs:1:1:",
            "bash: line 1: frobnicate: command not found",
            "sh: 1: frobnicate: not found",
            "ls: cannot access 'x': No such file or directory",
            "--- FAIL: TestCart (0.00s)",
            "FAILED tests/test_cart.py::test_total - assert 1 == 2",
            "AssertionError: 1 != 2",
            "E   Exception: broken",
        ] {
            assert_eq!(first(format!("one\n{line}\nthree\n").as_bytes()), Some(one_line(line)), "{line}");
        }
        for line in
            ["0 errors", "Errors: 0", "checking error handling", "test failed_login ... ok", "no failures"]
        {
            assert_eq!(first(format!("{line}\nlast\n").as_bytes()), None, "{line}");
        }
    }

    #[test]
    fn an_error_in_the_last_lines_is_not_repeated() {
        let rest = "line\n".repeat(20);
        let output = |first: &str, last: &str| format!("{first}\n{rest}{last}\n").into_bytes();
        let reported = |first: &str, last: &str| before_tail(&output(first, last), 8);
        assert_eq!(reported("error: a", "done").as_deref(), Some("error: a"));
        assert_eq!(reported("compiling", "error: b"), None);
        assert_eq!(reported("error: a", "TypeError: b is no function"), None, "the last one suffices");
        let count = "error: could not compile `shop` due to 2 previous errors";
        assert_eq!(reported("error: a", count).as_deref(), Some("error: a"), "a count is not a reason");
        assert_eq!(before_tail(b"error: a\nb\n", 8), None, "it is shown completely");
        assert_eq!(before_tail(b"", 8), None);
    }

    #[test]
    fn an_overwritten_progress_bar_is_its_last_state() {
        assert_eq!(first(b"10%\r100% error: disk full\r\n").as_deref(), Some("100% error: disk full"));
        assert_eq!(first(b"\n\n"), None);
    }
}
