//! Matches the paths of a folder with a query.
//!
//! Many paths are scored roughly, and only the best of them exactly, so that a key is answered within a frame.

use std::cmp::Reverse;

use nucleo_matcher::pattern::{AtomKind, CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Matcher, Utf32Str, Utf32String};

/// Number of paths that are matched before a newer query is looked for.
pub(super) const STEP: usize = 10_000;
/// Maximum number of the best matches.
const RANKED_MAX: usize = 200;
/// Maximum number of paths whose exact score decides which are the best.
const EXACT_MAX: usize = 20_000;

/// A path below the folder.
pub(super) struct FilePath {
    pub text: String,
    /// The characters for the matcher, unless the path is ASCII.
    letters: Option<Utf32String>,
    is_hidden: bool,
}

/// The paths that match a query.
#[derive(Default)]
pub(super) struct Search {
    query: String,
    pattern: Pattern,
    words: Vec<Word>,
    /// Whether the scores are those of [`Word::score`], because there are many paths. The best are scored again.
    is_rough: bool,
    /// Number of paths that were matched.
    seen: usize,
    /// The score, and the index of the path.
    pub found: Vec<(u32, usize)>,
}

/// A word of a query.
struct Word {
    letters: Utf32String,
    ignores_case: bool,
    is_ascii: bool,
}

impl Search {
    /// Starts to search for another query. If it continues the former one, only what was found is matched again.
    pub fn change(&mut self, query: &str, paths: &[FilePath], matcher: &mut Matcher) {
        let continues = query.starts_with(&self.query) && !is_hidden(query);
        query.clone_into(&mut self.query);
        self.pattern = Pattern::new(query, CaseMatching::Smart, Normalization::Smart, AtomKind::Fuzzy);
        self.words = query.split_whitespace().map(Word::new).collect();
        if !continues {
            self.restart();
        }
        self.is_rough = self.found.len() + paths.len().saturating_sub(self.seen) > EXACT_MAX;
        self.score_again(paths, matcher);
    }

    /// Matches all paths again.
    pub fn restart(&mut self) {
        self.seen = 0;
        self.found.clear();
    }

    fn score_again(&mut self, paths: &[FilePath], matcher: &mut Matcher) {
        let found = std::mem::take(&mut self.found).into_iter();
        let score = |(_, at): (u32, usize)| Some((self.score(paths.get(at)?, matcher)?, at));
        self.found = found.filter_map(score).collect();
    }

    fn score(&self, path: &FilePath, matcher: &mut Matcher) -> Option<u32> {
        let letters = path.letters();
        if self.is_rough {
            return self.words.iter().map(|word| word.score(letters, matcher)).sum();
        }
        self.pattern.score(letters, matcher)
    }

    /// Matches some further paths. Returns whether all were matched.
    pub fn advance(&mut self, paths: &[FilePath], matcher: &mut Matcher) -> bool {
        let shows_hidden = is_hidden(&self.query);
        let end = paths.len().min(self.seen + STEP);
        for (at, path) in paths.iter().enumerate().take(end).skip(self.seen) {
            if (shows_hidden || !path.is_hidden)
                && let Some(score) = self.score(path, matcher)
            {
                self.found.push((score, at));
            }
        }
        self.seen = end;
        end == paths.len()
    }

    /// The best matches, best first; equals by length.
    pub fn best<'a>(
        &mut self,
        paths: &'a [FilePath],
        matcher: &mut Matcher,
    ) -> impl Iterator<Item = &'a String> + use<'a> {
        if self.is_rough && self.found.len() <= EXACT_MAX {
            self.is_rough = false;
            self.score_again(paths, matcher);
        }
        let rank = |(score, at): &(u32, usize)| {
            (Reverse(*score), paths.get(*at).map_or(0, |path| path.text.len()), *at)
        };
        if self.found.len() > RANKED_MAX {
            self.found.select_nth_unstable_by_key(RANKED_MAX, rank);
        }
        let best = self.found.iter().take(RANKED_MAX).filter_map(|(_, at)| {
            let score = self.pattern.score(paths.get(*at)?.letters(), matcher)?;
            Some((score, *at))
        });
        let mut best: Vec<(u32, usize)> = best.collect();
        best.sort_unstable_by_key(rank);
        best.into_iter().filter_map(|(_, at)| paths.get(at)).map(|path| &path.text)
    }
}

impl Word {
    fn new(word: &str) -> Self {
        let ignores_case = !word.chars().any(char::is_uppercase);
        Self { letters: word.into(), ignores_case, is_ascii: word.is_ascii() }
    }

    /// An approximate score, from the first match of the letters. It takes a third of the time of the exact score.
    fn score(&self, path: Utf32Str<'_>, matcher: &mut Matcher) -> Option<u32> {
        matcher.config.ignore_case = self.ignores_case;
        matcher.config.normalize = self.is_ascii;
        matcher.fuzzy_match_greedy(path, self.letters.slice(..)).map(u32::from)
    }
}

impl FilePath {
    /// A path with its characters, if the matcher needs them.
    pub fn new(text: String) -> Self {
        let letters = (!text.is_ascii()).then(|| Utf32String::from(text.as_str()));
        Self { is_hidden: is_hidden(&text), letters, text }
    }

    fn letters(&self) -> Utf32Str<'_> {
        self.letters.as_ref().map_or(Utf32Str::Ascii(self.text.as_bytes()), |letters| letters.slice(..))
    }
}

/// Whether a part of the path begins with a dot.
pub(super) fn is_hidden(path: &str) -> bool {
    path.starts_with('.') || path.contains("/.")
}
