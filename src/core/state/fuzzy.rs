//! Ranking of rows by a filter, for pickers and completion.

use nucleo_matcher::pattern::{Atom, AtomKind, CaseMatching, Normalization};
use nucleo_matcher::{Config, Matcher, Utf32Str};

/// Maximum number of characters of a text that are matched; descriptions of agents have any length.
const LONGEST_CHARS: usize = 300;

/// How well a word of the filter matches a row, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Class {
    /// A word of the label, or a synonym.
    Whole,
    Start,
    /// A part of the label, or the start of a synonym.
    Part,
    /// Letters of the label in order, from the start of a word.
    Letters,
    Detail,
}

/// A row to be ranked.
#[derive(Debug, Clone, Copy, Default)]
pub struct Texts<'a> {
    pub label: &'a str,
    pub detail: &'a str,
    /// Lower-case words that find the row, separated by spaces.
    pub synonyms: &'a str,
}

/// The indices of the rows (label, detail) that match the filter, best first.
pub fn rank<'a>(filter: &str, rows: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<usize> {
    rank_texts(filter, rows.map(|(label, detail)| Texts { label, detail, ..Texts::default() }))
}

/// Places of the rows that pass the filter, best first. Each word of the filter must match; the words may stand
/// anywhere and in any order. Other letters may stand between those of a word only in the label, and only if no label
/// contains the words as they are. Equals keep their order; an empty filter keeps all.
pub fn rank_texts<'a>(filter: &str, rows: impl Iterator<Item = Texts<'a>>) -> Vec<usize> {
    let words: Vec<Word> = filter.split_whitespace().map(Word::new).collect();
    if words.is_empty() {
        return (0..rows.count()).collect();
    }
    let mut finder = Finder::default();
    let mut found = Vec::new();
    for (position, texts) in rows.enumerate() {
        let ratings: Option<Vec<_>> = words.iter().map(|word| finder.rate(word, texts)).collect();
        let Some(ratings) = ratings else { continue };
        let worst = ratings.iter().map(|(class, _)| *class).max();
        let sum: usize = ratings.iter().map(|(class, at)| *class as usize * LONGEST_CHARS + at).sum();
        found.push((worst, sum, position));
    }
    found.sort_unstable();
    // Scattered letters match much that is not meant.
    if found.first().is_some_and(|(worst, ..)| *worst < Some(Class::Letters)) {
        found.retain(|(worst, ..)| *worst != Some(Class::Letters));
    }
    found.into_iter().map(|(_, _, position)| position).collect()
}

/// The synonyms through which a filter finds a row, for the words that its label does not contain.
pub fn used_synonyms<'a>(filter: &str, texts: Texts<'a>) -> Vec<&'a str> {
    let mut used = Vec::new();
    if texts.synonyms.is_empty() {
        return used;
    }
    let label = texts.label.to_lowercase();
    for word in filter.split_whitespace().map(str::to_lowercase) {
        if !label.contains(&word)
            && let Some((_, synonym)) = synonym(&word, texts.synonyms)
            && !used.contains(&synonym)
        {
            used.push(synonym);
        }
    }
    used
}

/// The first synonym that a word is, or else begins.
fn synonym<'a>(word: &str, synonyms: &'a str) -> Option<(Class, &'a str)> {
    let whole = synonyms.split(' ').find(|synonym| *synonym == word);
    let start = || synonyms.split(' ').find(|synonym| synonym.starts_with(word));
    whole.map(|synonym| (Class::Whole, synonym)).or_else(|| start().map(|synonym| (Class::Part, synonym)))
}

struct Word {
    text: String,
    part: Atom,
    letters: Atom,
}

impl Word {
    fn new(text: &str) -> Self {
        let atom = |kind| Atom::new(text, CaseMatching::Ignore, Normalization::Smart, kind, false);
        Self { text: text.to_lowercase(), part: atom(AtomKind::Substring), letters: atom(AtomKind::Fuzzy) }
    }
}

struct Finder {
    matcher: Matcher,
    letters: Vec<char>,
    positions: Vec<u32>,
}

impl Default for Finder {
    fn default() -> Self {
        Self { matcher: Matcher::new(Config::DEFAULT), letters: Vec::new(), positions: Vec::new() }
    }
}

impl Finder {
    /// How well a word matches, and where in the label.
    fn rate(&mut self, word: &Word, texts: Texts<'_>) -> Option<(Class, usize)> {
        let part = self.part(word, texts.label);
        let synonym = synonym(&word.text, texts.synonyms).map(|(class, _)| (class, LONGEST_CHARS - 1));
        let best = part.into_iter().chain(synonym).min();
        best.or_else(|| self.letters(word, texts.label))
            .or_else(|| self.part(word, texts.detail).map(|_| (Class::Detail, 0)))
    }

    fn part(&mut self, word: &Word, text: &str) -> Option<(Class, usize)> {
        let text = Utf32Str::new(head(text), &mut self.letters);
        self.positions.clear();
        word.part.indices(text, &mut self.matcher, &mut self.positions)?;
        let (first, last) = (*self.positions.first()?, *self.positions.last()?);
        let is_end = (last as usize + 1) >= text.len() || !text.get(last + 1).is_alphanumeric();
        let class = match (is_word_start(text, first), is_end) {
            (true, true) => Class::Whole,
            (true, false) => Class::Start,
            (false, _) => Class::Part,
        };
        // Where a whole word stands says nothing.
        Some((class, if class == Class::Whole { 0 } else { first as usize }))
    }

    /// The letters of the word in order, from the start of a word of the text.
    fn letters(&mut self, word: &Word, text: &str) -> Option<(Class, usize)> {
        let text = Utf32Str::new(head(text), &mut self.letters);
        self.positions.clear();
        word.letters.indices(text, &mut self.matcher, &mut self.positions)?;
        let (first, last) = (*self.positions.first()?, *self.positions.last()?);
        is_word_start(text, first).then_some((Class::Letters, last as usize))
    }
}

/// Whether a word starts at this letter; in `OpenCode` there are two.
fn is_word_start(text: Utf32Str<'_>, at: u32) -> bool {
    let Some(before) = at.checked_sub(1).map(|before| text.get(before)) else { return true };
    !before.is_alphanumeric() || (before.is_lowercase() && text.get(at).is_uppercase())
}

fn head(text: &str) -> &str {
    text.char_indices().nth(LONGEST_CHARS).and_then(|(end, _)| text.get(..end)).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranked<'a>(filter: &str, rows: &[(&'a str, &'a str)]) -> Vec<&'a str> {
        rank(filter, rows.iter().copied()).into_iter().map(|position| rows[position].0).collect()
    }

    #[test]
    fn an_empty_filter_keeps_all_in_order() {
        assert_eq!(ranked("  ", &[("b", ""), ("a", "")]), ["b", "a"]);
    }

    #[test]
    fn best_comes_first_and_equals_keep_their_order() {
        let rows = [("a-m-o-d-e", ""), ("mode one", ""), ("mode two", ""), ("other", "")];
        assert_eq!(ranked("mode", &rows), ["mode one", "mode two"]);
        assert_eq!(ranked("amod", &rows), ["a-m-o-d-e"], "other letters between, where nothing else matches");
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
    fn scattered_letters_match_from_the_start_of_a_word_of_the_label_only() {
        let rows = [("Factory Droid", ""), ("GitHub Copilot", "a code of conduct"), ("Opus", "c-o-d")];
        assert_eq!(ranked("cod", &rows), ["GitHub Copilot"], "a part of its detail");
        assert_eq!(ranked("gco", &rows), ["GitHub Copilot"]);
        assert_eq!(ranked("fdr", &rows), ["Factory Droid"]);
    }

    #[test]
    fn whole_words_come_before_beginnings_and_parts() {
        let rows = [("remodel", ""), ("Select model", ""), ("Select mode", ""), ("ModeSwitch", "")];
        assert_eq!(ranked("mode", &rows), ["Select mode", "ModeSwitch", "Select model", "remodel"]);
    }

    #[test]
    fn synonyms_find_a_row_and_are_reported_where_the_label_does_not_match() {
        let row = |label, synonyms| Texts { label, synonyms, ..Texts::default() };
        let rows =
            [row("Configure providers", "api"), row("Options", "settings config"), row("Quit", "exit")];
        assert_eq!(rank_texts("config", rows.into_iter()), [1, 0], "a whole synonym beats a beginning");
        assert_eq!(rank_texts("sett", rows.into_iter()), [1]);
        assert_eq!(used_synonyms("ex", rows[2]), ["exit"]);
        assert_eq!(used_synonyms("quit exit", rows[2]), ["exit"]);
        assert_eq!(used_synonyms("quit", rows[2]), [""; 0]);
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
