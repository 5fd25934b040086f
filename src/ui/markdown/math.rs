//! Formulas between `\(` and `\)`, or `\[` and `\]`, kept from Markdown.
//!
//! To Markdown a backslash only takes the meaning from the mark behind it: it would drop that of `\(`, and read the
//! `_` and `*` of the formula. So formulas are replaced by marks that it does not read, and put back as they were
//! written. (`$…$` and `$$…$$` are known to the parser.)
//! Invariant: what is put back is what was taken, whatever the parser made of the place.

use std::borrow::Cow;

/// Stands around the number of a formula: noncharacters, which are no letters of any text.
const OPEN: char = '\u{fdd0}';
const CLOSE: char = '\u{fdd1}';

/// A formula has no more bytes than this; one that has lost its end takes nothing else with it.
const FORMULA_MAX_BYTES: usize = 4096;

/// Formulas that were taken out of a text.
#[derive(Default)]
pub(super) struct Formulas<'t> {
    all: Vec<&'t str>,
}

/// Takes formulas out of a text.
pub(super) fn hide(text: &str) -> (Cow<'_, str>, Formulas<'_>) {
    let mut formulas = Formulas::default();
    // Whoever sends the marks would be taken for this module.
    if !(text.contains("\\(") || text.contains("\\[")) || text.contains([OPEN, CLOSE]) {
        return (Cow::Borrowed(text), formulas);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        if let Some(formula) = formula_of(from) {
            out.extend([OPEN]);
            out.push_str(&formulas.all.len().to_string());
            out.extend([CLOSE]);
            formulas.all.push(formula);
            rest = from.get(formula.len()..).unwrap_or_default();
        } else {
            // The character behind a backslash means nothing of its own.
            let skipped = 1 + from.chars().nth(1).map_or(0, char::len_utf8);
            out.push_str(from.get(..skipped).unwrap_or(from));
            rest = from.get(skipped..).unwrap_or_default();
        }
    }
    out.push_str(rest);
    (Cow::Owned(out), formulas)
}

/// The formula that a text begins with, if it ends in the same paragraph and holds no code.
fn formula_of(text: &str) -> Option<&str> {
    let end = match text.get(..2)? {
        "\\(" => "\\)",
        "\\[" => "\\]",
        _ => return None,
    };
    let mut most = text.len().min(FORMULA_MAX_BYTES);
    while !text.is_char_boundary(most) {
        most -= 1;
    }
    let at = text.get(2..most)?.find(end)?;
    let formula = text.get(..2 + at + 2)?;
    let has_blank_line = formula.split('\n').skip(1).any(|line| line.trim().is_empty());
    let is_empty = at == 0;
    (!is_empty && !has_blank_line && !formula.contains('`')).then_some(formula)
}

impl Formulas<'_> {
    /// A text with its formulas put back.
    pub fn restore<'s>(&self, text: &'s str) -> Cow<'s, str> {
        if self.all.is_empty() || !text.contains(OPEN) {
            return Cow::Borrowed(text);
        }
        Cow::Owned(self.parts(text).into_iter().map(|(part, _)| part).collect())
    }

    /// A text cut into what is a formula and what is not.
    pub fn parts<'s>(&'s self, text: &'s str) -> Vec<(&'s str, bool)> {
        let mut out = Vec::new();
        let mut rest = text;
        while let Some((before, behind)) = rest.split_once(OPEN).filter(|_| !self.all.is_empty()) {
            let found = behind
                .split_once(CLOSE)
                .and_then(|(number, behind)| Some((*self.all.get(number.parse::<usize>().ok()?)?, behind)));
            let Some((formula, behind)) = found else { break };
            out.push((before, false));
            out.push((formula, true));
            rest = behind;
        }
        out.push((rest, false));
        out.retain(|(part, _)| !part.is_empty());
        out
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_formula_is_taken_out_and_put_back() {
        let text = r"so \(a_b * c_d * e\) and \[ x_1
 + y \] but \\( no \\), `\(code` here\) and \(open";
        let (hidden, formulas) = hide(text);
        assert_eq!(formulas.all, [r"\(a_b * c_d * e\)", "\\[ x_1\n + y \\]"]);
        assert!(!hidden.contains("a_b"));
        assert_eq!(formulas.restore(&hidden), text);
        let (before, _) = hidden.split_once(" and ").unwrap();
        assert_eq!(formulas.parts(before), [("so ", false), (r"\(a_b * c_d * e\)", true)]);
    }

    #[test]
    fn a_formula_ends_in_its_paragraph() {
        for text in ["\\(a\n\nb\\)", "\\(\\)", "\\(a", "a\\)", "\\", "\\é"] {
            assert!(hide(text).1.all.is_empty(), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn nothing_is_lost(
            pieces in prop::collection::vec(prop::sample::select(vec![
                "\\(", "\\)", "\\[", "\\]", "\\", "a_b", " * ", "`", "\n", "\n\n", "日本", "\u{fdd0}0\u{fdd1}", "$",
            ]), 0..40),
        ) {
            let text = pieces.concat();
            let (hidden, formulas) = hide(&text);
            prop_assert_eq!(formulas.restore(&hidden), text.as_str());
        }
    }
}
