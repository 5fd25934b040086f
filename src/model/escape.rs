//! Text whose hidden characters are made visible, for dialogs in which the user judges it.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Shows what a reader could not see, or would see elsewhere: control characters, line ends, characters without a width,
/// marks that reorder text, and blanks that look like others. `U+202E` becomes `⟨U+202E⟩`.
pub fn escaped(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_hidden) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for letter in text.chars() {
        if is_hidden(letter) {
            let _ = write!(out, "⟨U+{:04X}⟩", u32::from(letter));
        } else {
            out.push(letter);
        }
    }
    Cow::Owned(out)
}

/// Source: Unicode 16, `Default_Ignorable_Code_Point`, general categories Cc, Zl, Zp, and Zs but for the blank.
fn is_hidden(letter: char) -> bool {
    letter.is_control()
        || (letter.is_whitespace() && letter != ' ')
        || matches!(letter,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
            | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_characters_are_shown_by_their_number() {
        assert_eq!(escaped("ls -l größe 試験"), "ls -l größe 試験");
        assert_eq!(escaped("a\nb\tc\0"), "a⟨U+000A⟩b⟨U+0009⟩c⟨U+0000⟩");
        assert_eq!(escaped("\u{202e}x\u{200b}\u{e0041}\u{a0}"), "⟨U+202E⟩x⟨U+200B⟩⟨U+E0041⟩⟨U+00A0⟩");
    }
}
