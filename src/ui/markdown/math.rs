//! Hides formulas from the Markdown parser: between `\(` and `\)` or `\[` and `\]`, and display formulas
//! between `$$`.
//!
//! Markdown would remove the backslash of `\(` and interpret `_` and `*` in the formula, so formulas are
//! replaced by placeholders and restored afterwards. (The parser supports `$…$`, and `$$…$$` within a line.)
//! Lines between `$$` may look like a list, a heading or a table, so they are split off as a separate block
//! before parsing.
//!
//! Invariants: restored formulas are identical to the original text.

use std::borrow::Cow;
use std::ops::Range;

use crate::ui::text::boundary_before;

/// Delimiters of a placeholder: noncharacters, which do not occur in text.
const OPEN: char = '\u{fdd0}';
const CLOSE: char = '\u{fdd1}';

/// Maximum length of a formula, so that an unclosed one does not include the rest of the text.
const FORMULA_MAX_BYTES: usize = 4096;

/// The display formula of a paragraph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Display {
    None,
    /// Its range, including the rest of its last line.
    At(Range<usize>),
    /// Possibly a formula; more text is needed.
    Open,
}

/// Finds the first display formula that starts in `range`, the range of a paragraph. The known text ends at
/// `end`.
pub(super) fn display_in(source: &str, range: Range<usize>, end: usize) -> Display {
    let mut at = range.start;
    while let Some(line) = source.get(at..range.end.min(end)).filter(|rest| !rest.is_empty()) {
        let after = at + line.find('\n').map_or(line.len(), |end| end + 1);
        let indent = line.len() - line.trim_start_matches(' ').len();
        if indent <= 3 && line.get(indent..).is_some_and(|line| line.starts_with("$$")) {
            match end_of_display(source.get(at + indent..end).unwrap_or_default()) {
                Some(Some(len)) if at + indent + len > after => {
                    let close = at + indent + len;
                    let rest = source.get(close..end).unwrap_or_default();
                    return Display::At(at..close + rest.find('\n').map_or(rest.len(), |end| end + 1));
                }
                Some(_) => {}
                None => return Display::Open,
            }
        }
        at = after;
    }
    Display::None
}

/// The length of the formula at the start of a text; `Some(None)` if it is not one, `None` if more text is
/// needed.
#[allow(clippy::option_option, reason = "the caller distinguishes three cases")]
fn end_of_display(text: &str) -> Option<Option<usize>> {
    let max = boundary_before(text, FORMULA_MAX_BYTES);
    let known = text.get(..max).unwrap_or_default();
    let close = known.get(2..).and_then(|rest| rest.find("$$"));
    let formula = known.get(..close.map_or(max, |at| at + 4)).unwrap_or_default();
    let lines = formula.split_inclusive('\n').skip(1);
    let has_blank_line = lines.filter(|line| line.ends_with('\n')).any(|line| line.trim().is_empty());
    match close {
        _ if has_blank_line => Some(None),
        Some(at) => Some(Some(at + 4)),
        None if max < text.len() || max == FORMULA_MAX_BYTES => Some(None),
        None => None,
    }
}

/// Formulas that were replaced in a text.
#[derive(Default)]
pub(super) struct Formulas<'t> {
    all: Vec<&'t str>,
}

pub(super) fn hide(text: &str) -> (Cow<'_, str>, Formulas<'_>) {
    let mut formulas = Formulas::default();
    let indent = text.len() - text.trim_start_matches(' ').len();
    let display = match text.get(indent..).filter(|text| text.starts_with("$$")).map(end_of_display) {
        Some(Some(Some(len))) if text.get(..indent + len).is_some_and(|text| text.contains('\n')) => {
            indent + len
        }
        _ => 0,
    };
    // A text that contains the delimiters would be ambiguous.
    let has_formula = display > 0 || text.contains("\\(") || text.contains("\\[");
    if !has_formula || text.contains([OPEN, CLOSE]) {
        return (Cow::Borrowed(text), formulas);
    }
    let mut out = String::with_capacity(text.len());
    let (display, mut rest) = text.split_at(display);
    if !display.is_empty() {
        formulas.take(display, &mut out);
    }
    while let Some(at) = rest.find('\\') {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        if let Some(formula) = formula_of(from) {
            formulas.take(formula, &mut out);
            rest = from.get(formula.len()..).unwrap_or_default();
        } else {
            // Skips an escaped character.
            let skipped = 1 + from.chars().nth(1).map_or(0, char::len_utf8);
            out.push_str(from.get(..skipped).unwrap_or(from));
            rest = from.get(skipped..).unwrap_or_default();
        }
    }
    out.push_str(rest);
    (Cow::Owned(out), formulas)
}

/// The formula at the start of a text, if it ends in the same paragraph and contains no code.
fn formula_of(text: &str) -> Option<&str> {
    let end = match text.get(..2)? {
        "\\(" => "\\)",
        "\\[" => "\\]",
        _ => return None,
    };
    let at = text.get(2..boundary_before(text, FORMULA_MAX_BYTES))?.find(end)?;
    let formula = text.get(..2 + at + 2)?;
    let has_blank_line = formula.split('\n').skip(1).any(|line| line.trim().is_empty());
    let is_empty = at == 0;
    (!is_empty && !has_blank_line && !formula.contains('`')).then_some(formula)
}

impl<'t> Formulas<'t> {
    fn take(&mut self, formula: &'t str, out: &mut String) {
        out.push(OPEN);
        out.push_str(&self.all.len().to_string());
        out.push(CLOSE);
        self.all.push(formula);
    }

    pub fn restore<'s>(&self, text: &'s str) -> Cow<'s, str> {
        if self.all.is_empty() || !text.contains(OPEN) {
            return Cow::Borrowed(text);
        }
        Cow::Owned(self.parts(text).into_iter().map(|(part, _)| part).collect())
    }

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
    fn formulas_are_hidden_and_restored() {
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
    fn formulas_end_in_their_paragraph() {
        for text in ["\\(a\n\nb\\)", "\\(\\)", "\\(a", "a\\)", "\\", "\\é"] {
            assert!(hide(text).1.all.is_empty(), "{text:?}");
        }
    }

    #[test]
    fn display_formulas_are_found_in_paragraphs() {
        let found = |text: &str| display_in(text, 0..text.len(), text.len());
        assert_eq!(found("$$\n- a\n$$\nrest"), Display::At(0..10));
        assert_eq!(found("so:\n  $$ a\n# b $$ then\n"), Display::At(4..23));
        for text in ["$$ a $$\nb\n", "$$\n\na\n$$\n", "a $$\nb\n$$ c", "    $$\na\n$$\n", ""] {
            assert_ne!(found(text), Display::At(0..text.len()), "{text:?}");
        }
        assert_eq!(found("$$\n- a\n"), Display::Open);
        assert_eq!(found(&format!("$$\n{}", "a".repeat(FORMULA_MAX_BYTES))), Display::None);
        let text = "$$\n* a_b\n# c\n$$ and *so*";
        let (hidden, formulas) = hide(text);
        assert_eq!(formulas.all, ["$$\n* a_b\n# c\n$$"]);
        assert!(hidden.ends_with(" and *so*"));
        assert_eq!(formulas.restore(&hidden), text);
    }

    proptest! {
        #[test]
        fn restored_text_is_unchanged(
            pieces in prop::collection::vec(prop::sample::select(vec![
                "\\(", "\\)", "\\[", "\\]", "\\", "a_b", " * ", "`", "\n", "\n\n", "日本", "\u{fdd0}0\u{fdd1}", "$",
                "$$", "$$\n",
            ]), 0..40),
        ) {
            let text = pieces.concat();
            let (hidden, formulas) = hide(&text);
            prop_assert_eq!(formulas.restore(&hidden), text.as_str());
        }
    }
}
