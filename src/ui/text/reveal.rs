//! Shows invisible characters in text that the user reviews: commands, paths, titles and changes in dialogs.
//! Every character that [`sanitize`] would remove or change gets a visible mark, and long runs of blanks are
//! counted.
//!
//! Invariants: the result is unchanged by [`sanitize`], which remains the only gate to the screen.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::path::Path;

use unicode_width::UnicodeWidthChar;

use super::{MARKS_MAX, PICTURE_PLACEHOLDER, boundary_before, sanitize};
use crate::escape::{is_blank, is_format};

/// Longer runs of spaces and tabs in a line are counted.
const BLANKS_MAX: usize = 40;
/// More consecutive blank lines are counted.
const BLANK_LINES_MAX: usize = 3;
/// Number of equal consecutive marks from which they are counted.
const SAME_MARKS_MAX: usize = 3;

/// Marks invisible characters: control characters as symbols (`␀`), others by code point (`⟨U+202E⟩`). Line
/// ends (also `\r
/// `) and tabs are unchanged.
pub fn reveal(text: &str) -> Cow<'_, str> {
    reveal_with(text, false)
}

/// Like [`reveal`], but also marks the `\r` of line ends, for texts whose exact bytes matter.
pub fn reveal_bytes(text: &str) -> Cow<'_, str> {
    reveal_with(text, true)
}

fn reveal_with(text: &str, marks_returns: bool) -> Cow<'_, str> {
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~' | b'\n' | b'\t')) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    let mut letters = text.chars().peekable();
    let (mut previous, mut marks) = ('\0', 0);
    // Blanks since the last other character, if some of them are not ordinary.
    let mut blanks = String::new();
    while let Some(ch) = letters.next() {
        let next = letters.peek().copied();
        if ch == '\r' && next == Some('\n') && !marks_returns {
            continue;
        }
        if matches!(ch, ' ' | '\t' | '\u{3000}') || is_blank(ch) {
            blanks.push(ch);
            if !next.is_some_and(|next| matches!(next, ' ' | '\t' | '\u{3000}') || is_blank(next)) {
                push_blanks(&mut out, &std::mem::take(&mut blanks));
                (previous, marks) = (' ', 0);
            }
            continue;
        }
        if is_seen(ch, previous, next, &mut marks) {
            out.push(ch);
            previous = ch;
            continue;
        }
        let mut count = 1;
        while letters.next_if_eq(&ch).is_some() {
            count += 1;
        }
        push_mark(&mut out, ch, count);
        (previous, marks) = ('⟩', 0);
    }
    // Has no effect, but remains the only gate to the screen.
    match sanitize(&out) {
        Cow::Borrowed(_) => Cow::Owned(out),
        Cow::Owned(clean) => Cow::Owned(clean),
    }
}

/// Whether a character is visible, or shapes an adjacent one.
fn is_seen(ch: char, previous: char, next: Option<char>, marks: &mut usize) -> bool {
    match ch {
        '\n' | '\t' | ' '..='~' => {
            *marks = 0;
            true
        }
        '\u{200d}' => {
            let joins = is_emoji(previous) || previous == '\u{fe0f}';
            joins && next.is_some_and(is_emoji) || is_joined_script(previous, next)
        }
        '\u{200c}' => is_joined_script(previous, next),
        '\u{fe0e}' | '\u{fe0f}' => {
            is_emoji(previous) || matches!(previous, '0'..='9' | '#' | '*') && next == Some('\u{20e3}')
        }
        _ if ch.is_control() || is_format(ch) || is_blank(ch) || ch == PICTURE_PLACEHOLDER => false,
        _ if ch.width() == Some(0) => {
            *marks += 1;
            // A mark without a base character has no cell.
            *marks <= MARKS_MAX && !previous.is_whitespace() && previous != '\0'
        }
        _ => {
            *marks = 0;
            true
        }
    }
}

/// Whether a joiner between these letters is part of the spelling: Arabic and related scripts, Indic scripts.
fn is_joined_script(previous: char, next: Option<char>) -> bool {
    let is_of = |ch: char| {
        matches!(ch, '\u{620}'..='\u{64a}' | '\u{66e}'..='\u{6d3}' | '\u{6fa}'..='\u{8c7}' | '\u{900}'..='\u{dff}')
            && !is_format(ch)
    };
    is_of(previous) && previous.width() != Some(0) && next.is_some_and(is_of)
}

fn is_emoji(ch: char) -> bool {
    matches!(ch,
        '\u{a9}' | '\u{ae}' | '\u{203c}' | '\u{2049}' | '\u{2122}' | '\u{2139}' | '\u{2190}'..='\u{21ff}'
        | '\u{2300}'..='\u{23ff}' | '\u{24c2}' | '\u{25a0}'..='\u{27bf}' | '\u{2934}'..='\u{2935}'
        | '\u{2b00}'..='\u{2bff}' | '\u{3030}' | '\u{303d}' | '\u{3297}' | '\u{3299}' | '\u{1f000}'..='\u{1faff}')
}

/// Marks a run of blanks: each unusual one by its code point, a long mixture by its length.
fn push_blanks(out: &mut String, run: &str) {
    let count = run.chars().count();
    let mut letters = run.chars().peekable();
    let Some(first) = letters.peek().copied() else { return };
    let is_same = run.chars().all(|ch| ch == first);
    if count > BLANKS_MAX && !is_same && run.chars().any(|ch| !matches!(ch, ' ' | '\t')) {
        let _ = write!(out, "⟨{count} blanks⟩");
        return;
    }
    while let Some(ch) = letters.next() {
        if !is_blank(ch) {
            out.push(ch);
            continue;
        }
        let mut same = 1;
        while letters.next_if_eq(&ch).is_some() {
            same += 1;
        }
        push_mark(out, ch, same);
    }
}

fn push_mark(out: &mut String, ch: char, count: usize) {
    let picture = match ch {
        '\0'..='\u{1f}' => char::from_u32(0x2400 + ch as u32),
        '\u{7f}' => Some('\u{2421}'),
        _ => None,
    };
    let _ = match (picture, count) {
        (Some(picture), count) if count <= SAME_MARKS_MAX => {
            out.extend(std::iter::repeat_n(picture, count));
            Ok(())
        }
        (Some(picture), count) => write!(out, "⟨{picture} ×{count}⟩"),
        (None, 1) => write!(out, "⟨U+{:04X}⟩", ch as u32),
        (None, count) => write!(out, "⟨U+{:04X} ×{count}⟩", ch as u32),
    };
}

/// A line of a revealed text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shown {
    Line(String),
    BlankLines(usize),
}

/// The revealed lines of a text: long runs of spaces and blank lines are counted, trailing spaces are
/// visible, tabs are expanded.
pub fn reveal_lines(text: &str) -> Vec<Shown> {
    let text = reveal(text);
    let mut out = Vec::new();
    let mut blank = 0;
    // The lines of blanks since the last other line.
    let mut marked: Vec<String> = Vec::new();
    for line in text.split('\n') {
        if line.is_empty() || is_marked_blank(line) {
            blank += 1;
            if blank <= BLANK_LINES_MAX {
                marked.push(super::expand_tabs(&count_blanks(line)).into_owned());
            }
            continue;
        }
        push_blank(&mut out, std::mem::take(&mut blank), std::mem::take(&mut marked));
        out.push(Shown::Line(super::expand_tabs(&count_blanks(line)).into_owned()));
    }
    // The final line end is not a blank line.
    if text.ends_with('\n') || text.is_empty() {
        blank = blank.saturating_sub(1);
        marked.truncate(blank);
    }
    push_blank(&mut out, blank, marked);
    out
}

fn push_blank(out: &mut Vec<Shown>, count: usize, marked: Vec<String>) {
    if count > BLANK_LINES_MAX {
        out.push(Shown::BlankLines(count));
    } else {
        out.extend(marked.into_iter().map(Shown::Line));
    }
}

/// Whether a revealed line has only blanks and marks of blanks.
fn is_marked_blank(line: &str) -> bool {
    let mut rest = line;
    while let Some(next) = rest.strip_prefix(|ch: char| ch.is_whitespace()) {
        rest = next;
    }
    while let Some(mark) = rest.strip_prefix("⟨U+") {
        let Some((code, after)) = mark.split_once('⟩') else { return false };
        let code = code.split(' ').next().and_then(|code| u32::from_str_radix(code, 16).ok());
        if !code.and_then(char::from_u32).is_some_and(is_blank) {
            return false;
        }
        rest = after.trim_start();
    }
    rest.is_empty()
}

/// Counts long runs of spaces and tabs, and makes trailing ones visible.
fn count_blanks(line: &str) -> Cow<'_, str> {
    let is_blank = |ch: char| matches!(ch, ' ' | '\t' | '\u{3000}');
    let may_have_run = line.contains('\u{3000}') || line.as_bytes().windows(BLANKS_MAX + 1).any(is_run);
    if !line.ends_with(is_blank) && !may_have_run {
        return Cow::Borrowed(line);
    }
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = rest.find(is_blank) {
        let (before, from) = rest.split_at(at);
        let end = from.find(|ch| !is_blank(ch)).unwrap_or(from.len());
        let (run, behind) = from.split_at(end);
        out.push_str(before);
        match run.chars().count() {
            // Two cells each.
            count if count > BLANKS_MAX / 2 && run.contains('\u{3000}') => {
                let _ = write!(out, "⟨{count} blanks⟩");
            }
            count if count > BLANKS_MAX && run.contains('\t') => {
                let _ = write!(out, "⟨{count} spaces and tabs⟩");
            }
            count if count > BLANKS_MAX => {
                let _ = write!(out, "⟨{count} spaces⟩");
            }
            _ if behind.is_empty() => {
                out.extend(run.chars().map(|ch| match ch {
                    '\t' => '␉',
                    ' ' => '␠',
                    other => other,
                }));
            }
            _ => out.push_str(run),
        }
        rest = behind;
    }
    out.push_str(rest);
    Cow::Owned(out)
}

fn is_run(window: &[u8]) -> bool {
    window.iter().all(|byte| matches!(byte, b' ' | b'\t'))
}

/// Words on one line, for titles and names: revealed, with single spaces.
pub fn reveal_one_line(text: &str) -> String {
    reveal(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// An exact line, for paths and keys: revealed, including line ends and tabs.
pub fn reveal_line(text: &str) -> String {
    let text = reveal_bytes(text).replace('\n', "␊").replace('\t', "␉");
    count_blanks(&text).into_owned()
}

/// A path for review: relative if it is below `folder`, with `~` if it is below `home`, as an exact line.
pub fn reveal_path(path: &Path, folder: &Path, home: Option<&Path>) -> String {
    let below = |folder: &Path| path.strip_prefix(folder).ok().filter(|rest| !rest.as_os_str().is_empty());
    reveal_line(&match (below(folder), home.and_then(below)) {
        // A folder with the name `~` is not the home.
        (Some(rest), _) if rest.starts_with("~") => format!("./{}", rest.display()),
        (Some(rest), _) => rest.to_string_lossy().into_owned(),
        (None, Some(rest)) => format!("~/{}", rest.display()),
        (None, None) if path.starts_with("~") => format!("./{}", path.display()),
        (None, None) => path.to_string_lossy().into_owned(),
    })
}

/// The start and the end of a text that exceeds a number of bytes, and the number of omitted bytes.
pub fn clip(text: &str, max_bytes: usize) -> (&str, Option<(usize, &str)>) {
    if text.len() <= max_bytes {
        return (text, None);
    }
    let head = boundary_before(text, max_bytes / 4 * 3);
    let tail = boundary_before(text, text.len() - max_bytes / 4);
    let end = text.get(tail..).unwrap_or_default();
    (text.get(..head).unwrap_or_default(), Some((tail - head, end)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn hidden_characters_are_visible() {
        for (text, marked) in [
            ("rm \u{202e}x\u{202c}", "rm ⟨U+202E⟩x⟨U+202C⟩"),
            ("z\u{ad}z\u{200b}\u{200b}", "z⟨U+00AD⟩z⟨U+200B ×2⟩"),
            ("a\0b\u{7f}\u{1b}[31m", "a␀b␡␛[31m"),
            ("a\rb\r\nc", "a␍b\nc"),
            ("\u{85}\u{2028}\u{feff}", "⟨U+0085⟩⟨U+2028⟩⟨U+FEFF⟩"),
            ("a\u{a0}b\u{3164}", "a⟨U+00A0⟩b⟨U+3164⟩"),
            ("a\u{fe0f}b\u{e0041}\u{e0100}", "a⟨U+FE0F⟩b⟨U+E0041⟩⟨U+E0100⟩"),
            ("pass\u{200d}word\u{34f}", "pass⟨U+200D⟩word⟨U+034F⟩"),
            ("\u{301}a", "⟨U+0301⟩a"),
            ("\0\0\0\0\0", "⟨␀ ×5⟩"),
        ] {
            assert_eq!(reveal(text), marked);
        }
        assert_eq!(reveal_bytes("a\r\n"), "a␍\n");
        assert_eq!(reveal_line("a\n\tb "), "a␊␉b␠");
        assert_eq!(reveal_one_line(" a\n\n  b "), "a b");
    }

    #[test]
    fn visible_characters_are_unchanged() {
        for text in ["ls -la", "👩‍👩‍👧‍👦 1️⃣ 👍🏽 🏳️‍🌈 ❤️", "日本語 नमस्ते e\u{301}", "می‌خواهم", "é ü ß", "\u{e0b0}"]
        {
            assert_eq!(reveal(text), text);
        }
    }

    #[test]
    fn long_runs_of_blanks_are_counted() {
        let line = |text: &str| Shown::Line(text.to_owned());
        let text = format!("ls{}curl", "\n".repeat(301));
        assert_eq!(reveal_lines(&text), [line("ls"), Shown::BlankLines(300), line("curl")]);
        let text = format!("ls{};curl\t \n", " ".repeat(6000));
        assert_eq!(reveal_lines(&text), [line("ls⟨6000 spaces⟩;curl␉␠")]);
        assert_eq!(reveal_lines("a\n\n  b\n"), [line("a"), line(""), line("  b")]);
        assert_eq!(reveal_lines(""), []);
    }

    #[test]
    fn long_texts_are_clipped_in_the_middle() {
        let text = "é".repeat(1000);
        let (head, rest) = clip(&text, 400);
        let (left_out, tail) = rest.unwrap();
        assert_eq!(head.len() + left_out + tail.len(), 2000);
        assert!(!head.is_empty() && !tail.is_empty());
        assert_eq!(clip("short", 5), ("short", None));
    }

    proptest! {
        /// The sanitiser changes nothing, and every character that it would remove has a mark.
        #[test]
        fn all_characters_are_visible_for_review(text in prop::collection::vec(prop::char::ranges(vec![
            '\0'..='\u{ff}', '\u{300}'..='\u{650}', '\u{900}'..='\u{950}', '\u{1100}'..='\u{11ff}', '\u{17b0}'..='\u{1810}',
            '\u{2000}'..='\u{2070}', '\u{fe00}'..='\u{ffff}', '\u{1f3fb}'..='\u{1f64f}', '\u{e0000}'..='\u{e01ef}',
        ].into()), 0..60)) {
            let text: String = text.into_iter().collect();
            let shown = reveal_bytes(&text);
            prop_assert_eq!(sanitize(&shown), shown.as_ref());
            // A letter without a cell of its own is a mark on the previous one, or shapes an emoji.
            let hidden = |ch: &char| ch.is_control() && !matches!(ch, '\n' | '\t')
                || is_format(*ch) && !matches!(ch, '\u{200c}' | '\u{200d}') || is_blank(*ch);
            prop_assert_eq!(shown.chars().find(hidden), None);
            let plain = |text: &str| text.chars().filter(|ch| ch.is_alphanumeric() && ch.is_ascii()).count();
            prop_assert!(plain(&shown) >= plain(&text));
        }
    }
}
