//! Escaping of characters that act on a terminal, or that nobody sees.
//!
//! For text that must stay exact and may still be shown by any program: JSON, where the escaped form is the same
//! value, and logs. Text that is only to be read is sanitised instead (`ui::text::sanitize`).
//! Invariant: [`is_plain`] holds for no character that the sanitiser would change, so printing escaped text changes
//! nothing (`runtime::print` tests it).

use std::borrow::Cow;
use std::fmt::Write as _;

use unicode_width::UnicodeWidthChar as _;

/// Whether a character is seen and does nothing but stand where it was put. Line ends and tabs count as plain.
pub fn is_plain(c: char) -> bool {
    match c {
        '\n' | '\t' | ' '..='~' => true,
        // Format characters and separators that have a width in some tables.
        '\u{ad}'
        | '\u{61c}'
        | '\u{180e}'
        | '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{feff}'
        | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e0fff}'
        // Blanks that are not spaces.
        | '\u{115f}'
        | '\u{1160}'
        | '\u{3164}'
        | '\u{ffa0}'
        | '\u{2800}'
        // Private use: terminals and parlor give some of them meanings of their own.
        | '\u{10eeee}'
        | '\u{10fff0}'..='\u{10ffff}' => false,
        _ => !c.is_control() && c.width() != Some(0),
    }
}

/// JSON text in which every character that is not plain is written as `\uXXXX`: the same value.
pub fn json(text: &str) -> Cow<'_, str> {
    escaped(text, |c, out| {
        for unit in c.encode_utf16(&mut [0; 2]) {
            let _ = write!(out, "\\u{unit:04x}");
        }
    })
}

/// Text for a log: every character that is not plain is written as `\u{X}`.
pub fn log(text: &str) -> Cow<'_, str> {
    escaped(text, |c, out| {
        let _ = write!(out, "{}", c.escape_unicode());
    })
}

fn escaped(text: &str, escape: impl Fn(char, &mut String)) -> Cow<'_, str> {
    if text.chars().all(is_plain) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + text.len() / 8);
    for c in text.chars() {
        if is_plain(c) { out.push(c) } else { escape(c, &mut out) }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn letters_stay_and_what_acts_or_hides_is_escaped() {
        assert_eq!(log("Grüße, 日本 🙂\tx\n"), "Grüße, 日本 🙂\tx\n");
        assert_eq!(log("a\u{1b}[31mb\r\u{9d}\u{7f}"), "a\\u{1b}[31mb\\u{d}\\u{9d}\\u{7f}");
        assert_eq!(json("\"\u{9b}\u{7f}\u{202e}\u{e0041}\""), r#""\u009b\u007f\u202e\udb40\udc41""#);
    }

    proptest! {
        #[test]
        fn escaped_json_is_the_same_value(text in any::<String>()) {
            let plain = serde_json::to_string(&text).unwrap();
            let escaped = json(&plain);
            prop_assert!(escaped.chars().all(is_plain));
            prop_assert_eq!(serde_json::from_str::<String>(&escaped).unwrap(), text);
        }
    }
}
