//! Fuzzy ranking for pickers and completion.

use nucleo_matcher::pattern::{AtomKind, CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Config, Matcher, Utf32Str};

/// Maximum number of characters of a text that are matched; descriptions of agents have any length.
const LONGEST_CHARS: usize = 300;

/// Indices of the rows (label, detail) that match the filter, best first. Words may match in any order. A match in the
/// label alone ranks higher than one that needs the detail; equal ranks keep their order; an empty filter matches all.
pub fn rank<'a>(filter: &str, rows: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<usize> {
    if filter.trim().is_empty() {
        return (0..rows.count()).collect();
    }
    let pattern = Pattern::new(filter, CaseMatching::Ignore, Normalization::Smart, AtomKind::Fuzzy);
    let mut matcher = Matcher::new(Config::DEFAULT);
    let mut letters = Vec::new();
    let mut found = Vec::new();
    for (place, (label, detail)) in rows.enumerate() {
        let label = head(label);
        let mut score = |text: &str| pattern.score(Utf32Str::new(text, &mut letters), &mut matcher);
        let rating = score(label)
            .map(|points| (true, points))
            .or_else(|| score(&format!("{label} {}", head(detail))).map(|points| (false, points)));
        if let Some(rating) = rating {
            found.push((rating, place));
        }
    }
    found.sort_by_key(|(rating, _)| std::cmp::Reverse(*rating));
    found.into_iter().map(|(_, place)| place).collect()
}

fn head(text: &str) -> &str {
    text.char_indices().nth(LONGEST_CHARS).and_then(|(end, _)| text.get(..end)).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranked<'a>(filter: &str, rows: &[(&'a str, &'a str)]) -> Vec<&'a str> {
        rank(filter, rows.iter().copied()).into_iter().map(|place| rows[place].0).collect()
    }

    #[test]
    fn an_empty_filter_keeps_all_in_order() {
        assert_eq!(ranked("  ", &[("b", ""), ("a", "")]), ["b", "a"]);
    }

    #[test]
    fn best_comes_first_and_equals_keep_their_order() {
        let rows = [("a-m-o-d-e", ""), ("mode one", ""), ("mode two", ""), ("other", "")];
        assert_eq!(ranked("mode", &rows), ["mode one", "mode two", "a-m-o-d-e"]);
    }

    #[test]
    fn the_label_ranks_above_the_detail() {
        let rows = [("first", "about themes"), ("the mess", ""), ("plain", "")];
        assert_eq!(ranked("theme", &rows), ["the mess", "first"]);
    }

    #[test]
    fn words_match_in_any_order_across_label_and_detail() {
        let rows = [("Opus", "best at code"), ("Haiku", "fast")];
        assert_eq!(ranked("code opus", &rows), ["Opus"]);
        assert_eq!(ranked("^opus", &rows), [""; 0]);
    }

    #[test]
    fn case_and_accents_do_not_matter() {
        assert_eq!(ranked("CAFE", &[("Café", "")]), ["Café"]);
    }

    #[test]
    fn long_texts_are_truncated() {
        let long = "é".repeat(100_000);
        assert_eq!(ranked("zz", &[(long.as_str(), long.as_str())]), [""; 0]);
    }
}
