//! Escaping of characters that affect a terminal or are invisible.
//!
//! For text that must remain exact and may be shown by any program: JSON, where the escaped form has the same
//! value, logs, and text that the user reviews in a dialog. Text for reading is sanitised instead
//! (`ui::text::sanitize`).
//!
//! Invariants: [`is_plain`] is false for every character that the sanitiser changes, so that printing escaped
//! text does not change it (`runtime::print` tests it).

use std::borrow::Cow;
use std::fmt::Write as _;

use unicode_width::UnicodeWidthChar as _;

/// Whether a character is visible and has no side effect on a terminal. Includes line ends and tabs.
pub fn is_plain(c: char) -> bool {
    match c {
        '\n' | '\t' | ' '..='~' => true,
        // Private use: terminals assign special meanings to some of them.
        '\u{10eeee}' | '\u{10fff0}'..='\u{10ffff}' => false,
        _ => !c.is_control() && !is_format(c) && !is_blank(c) && c.width() != Some(0),
    }
}

/// Whether a character is a separator, in Unicode's category `Cf`, or ignorable by default.
pub fn is_format(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}' | '\u{890}'..='\u{891}'
        | '\u{8e2}' | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{fe00}'..='\u{fe0d}' | '\u{feff}'
        | '\u{fff0}'..='\u{fffb}' | '\u{110bd}' | '\u{110cd}' | '\u{13430}'..='\u{1345f}'
        | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// Whether a character is blank but not an ordinary space.
pub fn is_blank(c: char) -> bool {
    matches!(
        c,
        '\u{a0}' | '\u{115f}' | '\u{1160}' | '\u{1680}' | '\u{2000}'
            ..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{2800}' | '\u{3164}' | '\u{ffa0}'
    )
}

/// Text on one line, for dialogs in which the user reviews it: control characters, line ends, format
/// characters and unusual blanks are written as `⟨U+202E⟩`.
pub fn visible(text: &str) -> Cow<'_, str> {
    let is_hidden = |c: char| {
        c.is_control()
            || is_format(c)
            || is_blank(c)
            || (c.is_whitespace() && c != ' ')
            || matches!(c, '\u{fe0e}' | '\u{fe0f}')
    };
    escaped(text, is_hidden, |c, out| {
        let _ = write!(out, "⟨U+{:04X}⟩", u32::from(c));
    })
}

/// JSON text with the same value, in which every character that is not plain is written as `\uXXXX`.
pub fn json(text: &str) -> Cow<'_, str> {
    escaped(
        text,
        |c| !is_plain(c),
        |c, out| {
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(out, "\\u{unit:04x}");
            }
        },
    )
}

/// Text for a log, in which every character that is not plain is written as `\u{X}`.
pub fn log(text: &str) -> Cow<'_, str> {
    escaped(
        text,
        |c| !is_plain(c),
        |c, out| {
            let _ = write!(out, "{}", c.escape_unicode());
        },
    )
}

fn escaped(
    text: &str,
    is_escaped: impl Fn(char) -> bool,
    escape: impl Fn(char, &mut String),
) -> Cow<'_, str> {
    if !text.chars().any(&is_escaped) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + text.len() / 8);
    for c in text.chars() {
        if is_escaped(c) { escape(c, &mut out) } else { out.push(c) }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn letters_are_unchanged_and_control_characters_are_escaped() {
        assert_eq!(log("Grüße, 日本 🙂\tx\n"), "Grüße, 日本 🙂\tx\n");
        assert_eq!(log("a\u{1b}[31mb\r\u{9d}\u{7f}"), "a\\u{1b}[31mb\\u{d}\\u{9d}\\u{7f}");
        assert_eq!(json("\"\u{9b}\u{7f}\u{202e}\u{e0041}\""), r#""\u009b\u007f\u202e\udb40\udc41""#);
    }

    #[test]
    fn hidden_characters_are_shown_by_code_point() {
        assert_eq!(visible("ls -l größe 試験 e\u{301}"), "ls -l größe 試験 e\u{301}");
        assert_eq!(visible("a\nb\tc\0"), "a⟨U+000A⟩b⟨U+0009⟩c⟨U+0000⟩");
        assert_eq!(visible("\u{202e}x\u{200b}\u{e0041}\u{a0}"), "⟨U+202E⟩x⟨U+200B⟩⟨U+E0041⟩⟨U+00A0⟩");
    }

    proptest! {
        #[test]
        fn escaped_json_has_the_same_value(text in any::<String>()) {
            let plain = serde_json::to_string(&text).unwrap();
            let escaped = json(&plain);
            prop_assert!(escaped.chars().all(is_plain));
            prop_assert_eq!(serde_json::from_str::<String>(&escaped).unwrap(), text);
        }
    }
}
