//! Keys that are pressed one after the other: `g d`, `ctrl+x ctrl+e`. A single key is a sequence of one.

use super::chord::Chord;

pub const MAX_KEYS: usize = 4;

/// One or more keys.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Sequence(Vec<Chord>);

impl Sequence {
    /// Parses keys separated by spaces. The error contains the problem and the fix.
    pub fn parse(text: &str) -> Result<Self, String> {
        let single = Chord::parse(text);
        let parts: Vec<&str> = text.split_whitespace().collect();
        // A single key may contain spaces: `ctrl + x`.
        if parts.len() < 2 || single.is_ok() {
            return single.map(|chord| Self(vec![chord]));
        }
        if parts.len() > MAX_KEYS {
            return Err(format!("too many keys in a sequence; use at most {MAX_KEYS}"));
        }
        let chords = parts.into_iter().map(Chord::parse).collect::<Result<Vec<Chord>, _>>()?;
        if chords.iter().any(Chord::cancels_sequence) {
            return Err("esc cancels a sequence and cannot be part of one; use another key".to_owned());
        }
        Ok(Self(chords))
    }

    /// Its first keys.
    #[must_use]
    pub fn start(&self, count: usize) -> Self {
        Self(self.0.iter().take(count).copied().collect())
    }

    pub fn chords(&self) -> &[Chord] {
        &self.0
    }

    pub fn has_prefix(&self) -> bool {
        self.0.len() > 1
    }

    /// Whether it has more keys than `keys` and begins with them.
    pub fn continues(&self, keys: &[Chord]) -> bool {
        self.0.len() > keys.len() && self.0.starts_with(keys)
    }

    /// Whether the first key types a character in a text field.
    pub fn starts_with_text(&self) -> bool {
        self.0.first().is_some_and(Chord::is_typing)
    }

    pub fn syntax(&self) -> String {
        join(&self.0, Chord::syntax)
    }

    /// The form for display: `Ctrl+X Ctrl+E`.
    pub fn label(&self) -> String {
        label(&self.0)
    }
}

pub fn label(keys: &[Chord]) -> String {
    join(keys, Chord::label)
}

fn join(keys: &[Chord], text: impl Fn(&Chord) -> String) -> String {
    keys.iter().map(text).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_are_parsed_and_displayed() {
        for (text, syntax, label) in [
            ("ctrl+x ctrl+e", "ctrl+x ctrl+e", "Ctrl+X Ctrl+E"),
            ("  g   d ", "g d", "g d"),
            ("g G", "g G", "g G"),
            ("ctrl+x +", "ctrl+x plus", "Ctrl+X +"),
            ("ctrl + x", "ctrl+x", "Ctrl+X"),
            ("space space", "space space", "Space Space"),
        ] {
            let keys = Sequence::parse(text).unwrap();
            assert_eq!((keys.syntax().as_str(), keys.label().as_str()), (syntax, label));
            assert_eq!(Sequence::parse(syntax), Ok(keys));
        }
    }

    #[test]
    fn invalid_sequences_are_rejected_with_a_fix() {
        for (text, wanted) in [
            ("", "missing key"),
            ("ctrl+x crtl+e", "unknown modifier `crtl`"),
            ("ctrl+x esc", "esc cancels a sequence"),
            ("a b c d e", "use at most 4"),
            ("ctrl+x ctrl+i", "tab"),
        ] {
            let error = Sequence::parse(text).unwrap_err();
            assert!(error.contains(wanted) && error.contains("; "), "{error}");
        }
    }
}
