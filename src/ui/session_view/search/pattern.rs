//! The query as a regular expression, literal or regular, with smart case, also for growing text.
//!
//! A literal query matches across Markdown markup and the line breaks of a paragraph: a blank of the query also matches
//! a line end and adjacent `**` or backticks. A regular expression matches within a line. Matches are never empty.
//! Invariant: text searched in pieces has the same matches as text searched at once.

use std::ops::Range;

use memchr::{memchr_iter, memrchr};
use regex::{Regex, RegexBuilder};

/// Size limit of a compiled pattern; larger ones are refused to save memory.
const SIZE_LIMIT_BYTES: usize = 1 << 20;

/// What a blank of the query matches.
const BLANK: &str = r"[*_`~]{0,3}(?:[ \t]+|[ \t]*\r?\n[ \t>]*)[*_`~]{0,3}";

/// A compiled query. Equal if the queries are.
#[derive(Debug, Clone)]
pub struct Pattern {
    query: String,
    is_regex: bool,
    regex: Regex,
    line_ends: usize,
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        (self.is_regex, &self.query) == (other.is_regex, &other.query)
    }
}

/// Matches found in a part of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counted {
    /// Matches that do not depend on the following text.
    pub decided: usize,
    /// Matches after `resume`, which count only if the text ends here.
    pub open: usize,
    /// Where to continue when the text has grown.
    pub resume: usize,
}

impl Pattern {
    /// Compiles a query; `None` if it is empty. `Err` is the problem of a regular expression, in one line.
    pub fn read(query: &str, is_regex: bool) -> Result<Option<Self>, String> {
        if query.is_empty() {
            return Ok(None);
        }
        let (text, line_ends) = if is_regex { (query.to_owned(), 0) } else { literal(query) };
        let regex = RegexBuilder::new(&text)
            .case_insensitive(!has_capital(query, is_regex))
            .size_limit(SIZE_LIMIT_BYTES)
            .build()
            .map_err(|error| in_one_line(&error))?;
        Ok(Some(Self { query: query.to_owned(), is_regex, regex, line_ends }))
    }

    /// All matches in a text, in order, without overlaps.
    pub fn matches(&self, text: &str) -> Vec<Range<usize>> {
        let mut found = Vec::new();
        self.each(text, 0, |range| {
            found.push(range);
            true
        });
        found
    }

    /// Counts the matches of `text` up to `end` (a character boundary), from the end of the previous search.
    pub fn count(&self, text: &str, from: usize, end: usize) -> Counted {
        let known = text.get(..end).unwrap_or(text);
        let cut = self.sure_until(known).max(from);
        let mut counted = Counted { resume: cut, ..Counted::default() };
        self.each(known, from, |range| {
            if range.start < cut {
                counted.decided += 1;
                counted.resume = counted.resume.max(range.end);
            } else {
                counted.open += 1;
            }
            true
        });
        counted
    }

    /// The position up to which text after `known` cannot change the matches.
    fn sure_until(&self, known: &str) -> usize {
        let mut end = known.len();
        for _ in 0..=self.line_ends {
            match memrchr(b'\n', known.as_bytes().get(..end).unwrap_or_default()) {
                Some(at) => end = at,
                None => return 0,
            }
        }
        end + 1
    }

    /// Calls `take` for each match from a position, until it returns that it is enough.
    fn each(&self, text: &str, from: usize, mut take: impl FnMut(Range<usize>) -> bool) {
        if !self.is_regex {
            let mut at = from;
            while let Some(found) = (at <= text.len()).then(|| self.regex.find_at(text, at)).flatten() {
                if !take(found.range()) {
                    return;
                }
                at = found.end();
            }
            return;
        }
        let Some(rest) = text.get(from..) else { return };
        let mut start = from;
        let ends = memchr_iter(b'\n', rest.as_bytes()).map(|at| from + at).chain([text.len()]);
        for end in ends {
            let line = text.get(start..end).unwrap_or_default();
            let line = line.strip_suffix('\r').unwrap_or(line);
            for found in self.regex.find_iter(line).filter(|found| !found.is_empty()) {
                if !take(start + found.start()..start + found.end()) {
                    return;
                }
            }
            start = end + 1;
        }
    }
}

/// The expression for a literal query, and the maximum number of line ends it can span.
fn literal(query: &str) -> (String, usize) {
    let inner = query.trim_matches(' ');
    if inner.is_empty() {
        return (regex::escape(query), 0);
    }
    let lead = query.len() - query.trim_start_matches(' ').len();
    let tail = query.len() - query.trim_end_matches(' ').len();
    let words: Vec<String> = inner.split(' ').filter(|word| !word.is_empty()).map(regex::escape).collect();
    let text = format!("{}{}{}", " ".repeat(lead), words.join(BLANK), " ".repeat(tail));
    (text, words.len() - 1)
}

/// Smart case: a capital letter in the query makes it case-sensitive. In a regular expression, `\S` and similar do not
/// count.
fn has_capital(query: &str, is_regex: bool) -> bool {
    let mut is_escaped = false;
    query.chars().any(|ch| {
        let counts = ch.is_uppercase() && !is_escaped;
        is_escaped = is_regex && ch == '\\' && !is_escaped;
        counts
    })
}

fn in_one_line(error: &regex::Error) -> String {
    match error {
        regex::Error::CompiledTooBig(_) => "the expression is too large".to_owned(),
        error => {
            let text = error.to_string();
            let last = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
            last.trim().trim_start_matches("error: ").to_owned()
        }
    }
}
