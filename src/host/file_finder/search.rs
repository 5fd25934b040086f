//! Matches the paths of a folder with a query.
//!
//! Many paths are scored roughly, and only the best of them exactly, so that a key is answered within a frame.

use std::cmp::Reverse;

use nucleo_matcher::pattern::{AtomKind, CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Config, Matcher, Utf32Str, Utf32String};

/// Number of paths that are matched before a newer query is looked for.
pub(super) const STEP: usize = 5_000;
/// Maximum number of the best matches.
const RANKED_MAX: usize = 200;
/// Maximum number of paths whose exact score decides which are the best.
const EXACT_MAX: usize = 1_000;

/// A path below the folder.
pub(super) struct FilePath {
    pub text: String,
    /// The characters for the matcher, unless the path is ASCII.
    letters: Option<Utf32String>,
    set: CharSet,
    is_hidden: bool,
}

/// A set of characters without case: a bit for each ASCII character. Most paths are ruled out by comparing two sets.
#[derive(Clone, Copy, Default)]
struct CharSet(u128);

impl CharSet {
    /// The characters of a path. Letters with accents match those without, so that a path with others contains all.
    fn of_path(path: &str) -> Self {
        if path.is_ascii() { Self::of_ascii(path) } else { Self(u128::MAX) }
    }

    /// The ASCII characters of a text, except whitespace.
    fn of_ascii(text: &str) -> Self {
        let ascii = text.bytes().filter(u8::is_ascii).filter(|byte| !byte.is_ascii_whitespace());
        Self(ascii.fold(0, |set, byte| set | 1 << byte.to_ascii_lowercase()))
    }

    fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// A path that matches: its score, its length, and its index. The best is the least.
type Match = (Reverse<u32>, usize, usize);

/// The paths that match a query.
pub(super) struct Search {
    query: String,
    pattern: Pattern,
    words: Vec<Word>,
    /// The characters that a path must contain.
    set: CharSet,
    /// Whether the scores are those of [`Word::score`], because there are many paths. The best are scored again.
    is_rough: bool,
    /// The paths to match again, because they match what the query continues.
    again: std::vec::IntoIter<Match>,
    /// Number of paths that were matched, or are in `again`.
    seen: usize,
    found: Vec<Match>,
    matcher: Matcher,
}

impl Default for Search {
    fn default() -> Self {
        Self {
            query: String::new(),
            pattern: Pattern::default(),
            words: Vec::new(),
            set: CharSet::default(),
            is_rough: false,
            again: Vec::new().into_iter(),
            seen: 0,
            found: Vec::new(),
            matcher: Matcher::new(Config::DEFAULT.match_paths()),
        }
    }
}

impl Search {
    /// Starts to search for another query. If it continues the former one, only what was found is matched again,
    /// beginning with what was shown.
    pub fn change(&mut self, query: &str, paths: &[FilePath]) {
        let continues = query.starts_with(&self.query) && !is_hidden(query);
        query.clone_into(&mut self.query);
        self.pattern = Pattern::new(query, CaseMatching::Smart, Normalization::Smart, AtomKind::Fuzzy);
        self.words = query.split_whitespace().map(Word::new).collect();
        self.set = CharSet::of_ascii(query);
        if continues {
            self.found.extend(self.again.by_ref());
            self.again = std::mem::take(&mut self.found).into_iter();
        } else {
            self.restart();
        }
        self.is_rough = self.again.len() + paths.len().saturating_sub(self.seen) > EXACT_MAX;
    }

    /// Matches all paths again.
    pub fn restart(&mut self) {
        self.seen = 0;
        self.found.clear();
        self.again = Vec::new().into_iter();
    }

    pub fn has_any(&self) -> bool {
        !self.found.is_empty()
    }

    /// Matches some further paths. Returns whether all were matched.
    pub fn advance(&mut self, paths: &[FilePath]) -> bool {
        let shows_hidden = is_hidden(&self.query);
        let again = self.again.len().min(STEP);
        let end = paths.len().min(self.seen + STEP - again);
        for at in self.again.by_ref().take(again).map(|(_, _, at)| at).chain(self.seen..end) {
            let Some(path) = paths.get(at) else { continue };
            if !path.set.contains(self.set) || path.is_hidden && !shows_hidden {
                continue;
            }
            let letters = path.letters();
            let score = if self.is_rough {
                self.words.iter().map(|word| word.score(letters, &mut self.matcher)).sum()
            } else {
                self.pattern.score(letters, &mut self.matcher)
            };
            self.found.extend(score.map(|score| (Reverse(score), path.text.len(), at)));
        }
        self.seen = end;
        self.again.len() == 0 && end == paths.len()
    }

    /// The best matches, best first; equals by length.
    pub fn best<'a>(&mut self, paths: &'a [FilePath]) -> Vec<&'a String> {
        if self.found.len() > EXACT_MAX {
            self.found.select_nth_unstable(EXACT_MAX);
        }
        let mut best: Vec<Match> = self.found.iter().take(EXACT_MAX).copied().collect();
        if self.is_rough {
            best.retain_mut(|(score, _, at)| {
                let letters = paths.get(*at).map(FilePath::letters);
                let exact = letters.and_then(|letters| self.pattern.score(letters, &mut self.matcher));
                *score = Reverse(exact.unwrap_or_default());
                exact.is_some()
            });
        }
        best.sort_unstable();
        best.truncate(RANKED_MAX);
        best.into_iter().filter_map(|(_, _, at)| paths.get(at)).map(|path| &path.text).collect()
    }
}

/// A word of a query.
struct Word {
    letters: Utf32String,
    ignores_case: bool,
    is_ascii: bool,
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
        Self { is_hidden: is_hidden(&text), set: CharSet::of_path(&text), letters, text }
    }

    fn letters(&self) -> Utf32Str<'_> {
        self.letters.as_ref().map_or(Utf32Str::Ascii(self.text.as_bytes()), |letters| letters.slice(..))
    }
}

/// Whether a part of the path begins with a dot.
pub(super) fn is_hidden(path: &str) -> bool {
    path.starts_with('.') || path.contains("/.")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finish<'a>(search: &mut Search, paths: &'a [FilePath]) -> Vec<&'a String> {
        while !search.advance(paths) {}
        search.best(paths)
    }

    #[test]
    fn a_query_finds_the_same_when_it_is_typed_as_when_it_is_pasted() {
        let names = ["src/Main.rs", "café/übung.md", "a b.txt", "README_1", "дом/файл.md", "x/.hidden/main"];
        let many = (0..2 * EXACT_MAX).map(|number| format!("part_{number}/module.rs"));
        let paths: Vec<FilePath> =
            names.map(str::to_owned).into_iter().chain(many).map(FilePath::new).collect();
        for paths in [&paths[..names.len()], &paths] {
            for query in
                ["main", "Main", "cafe", "café", "ub", "файл", "a b", "readme1", "m.rs", "part9mod", "zzz"]
            {
                let mut typed = Search::default();
                for (end, ch) in query.char_indices() {
                    typed.change(&query[..end + ch.len_utf8()], paths);
                    // Only the last answer is complete.
                    typed.advance(paths);
                }
                let mut pasted = Search::default();
                pasted.change(query, paths);
                assert_eq!(finish(&mut typed, paths), finish(&mut pasted, paths), "{query}");
                let pattern = Pattern::new(query, CaseMatching::Smart, Normalization::Smart, AtomKind::Fuzzy);
                let mut matcher = Matcher::new(Config::DEFAULT.match_paths());
                let matches = |path: &&FilePath| {
                    !path.is_hidden && pattern.score(path.letters(), &mut matcher).is_some()
                };
                assert_eq!(pasted.found.len(), paths.iter().filter(matches).count(), "{query}");
            }
        }
    }
}
