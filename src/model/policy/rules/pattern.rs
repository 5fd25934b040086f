//! Patterns of commands and names. `*` stands for any text in a word; as a word of its own for one word, at the end for any
//! number of words.

use super::shell::{Command, Word};
use super::wrappers::{base_name, is_plain_assignment, is_risky, needs_exact_rule, runs_arguments};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Match {
    No,
    Maybe,
    Yes,
}

/// A pattern of the words of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RunPattern {
    words: Vec<String>,
    /// Whether more words may follow.
    is_open: bool,
}

/// Whether a text matches a pattern, in which `*` stands for any text.
pub(super) fn wild(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
    let (mut at, mut position, mut star) = (0, 0, None);
    while position < text.len() {
        match pattern.get(at) {
            Some('*') => {
                star = Some((at, position));
                at += 1;
            }
            Some(c) if Some(c) == text.get(position) => {
                at += 1;
                position += 1;
            }
            _ => {
                let Some((star_at, begin)) = star else { return false };
                star = Some((star_at, begin + 1));
                at = star_at + 1;
                position = begin + 1;
            }
        }
    }
    pattern.get(at..).is_some_and(|rest| rest.iter().all(|c| *c == '*'))
}

/// Splits a text at blanks. Quotes hold words together. `None`: one is not closed.
pub(super) fn split(text: &str) -> Option<Vec<String>> {
    shell_words::split(text).ok()
}

impl RunPattern {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut words = split(text).ok_or("a quote of the pattern is not closed")?;
        let is_open = words.last().is_some_and(|word| word == "*");
        if is_open {
            words.pop();
        }
        if words.is_empty() && !is_open {
            return Err("the pattern is empty".to_owned());
        }
        Ok(Self { words, is_open })
    }

    /// The position of the program, after assignments.
    fn program(&self) -> usize {
        self.words.iter().take_while(|word| is_assignment(word)).count()
    }

    /// Whether a `*` after this word of the pattern may stand for arguments of the program.
    fn has_operand(&self, end: usize) -> bool {
        let words = self.words.get(self.program() + 1..end).unwrap_or_default();
        words.iter().any(|word| word != "*" && !word.starts_with('-'))
    }

    /// The error says why the pattern cannot allow a command.
    pub(super) fn check_allow(&self) -> Result<(), String> {
        let Some(program) = self.words.get(self.program()) else {
            let is_assigned = !self.words.is_empty() && !self.is_open;
            return if is_assigned { Ok(()) } else { Err("an allowed program must have a name".to_owned()) };
        };
        let (name, has_star) =
            (base_name(program), self.is_open || self.words.iter().any(|word| word.contains('*')));
        if program.contains('*') {
            return Err("the name of an allowed program cannot have `*`".to_owned());
        }
        if needs_exact_rule(name) && has_star {
            return Err(format!("`{name}` can only be allowed with all its words, without `*`"));
        }
        let alone = self.words.iter().position(|word| word == "*");
        let first = alone.or_else(|| self.is_open.then_some(self.words.len()));
        if runs_arguments(name) && first.is_some_and(|end| !self.has_operand(end)) {
            return Err(format!(
                "`*` would stand for code that `{name}` runs; name the file or subcommand before it"
            ));
        }
        Ok(())
    }

    /// Whether the command is certainly one of those that the pattern describes. The error says why `*` does not stand for a
    /// word.
    pub(super) fn certainly_matches(
        &self,
        command: &Command,
        is_outside: impl Fn(&Word) -> bool,
    ) -> Result<bool, String> {
        let program = self.program();
        let assigned = self.words.get(..program).unwrap_or_default();
        let needed: Vec<&Word> =
            command.assignments.iter().filter(|word| !is_plain_assignment(word)).collect();
        let is_same = |(pattern, word): (&String, &&Word)| {
            let pair = pattern.split_once('=').zip(word.as_known().and_then(|text| text.split_once('=')));
            pair.is_some_and(|((name, value), (other, text))| name == other && wild(value, text))
        };
        if assigned.len() != needed.len() || !assigned.iter().zip(&needed).all(is_same) {
            return Ok(false);
        }
        let patterns = self.words.get(program..).unwrap_or_default();
        let words = command.words.as_slice();
        if words.len() < patterns.len() || !self.is_open && words.len() != patterns.len() {
            return Ok(false);
        }
        let name = command.words.first().map(|word| base_name(&word.text)).unwrap_or_default();
        let mut covered = Vec::new();
        for (position, (pattern, word)) in patterns.iter().zip(words).enumerate() {
            let is_certain = match (pattern.as_str(), word.as_known()) {
                ("*", _) if position > 0 && !word.can_split => {
                    covered.push(word);
                    true
                }
                (pattern, Some(text)) if pattern.contains('*') && position > 0 => {
                    covered.push(word);
                    wild(pattern, text) && !climbs(text)
                }
                (pattern, Some(text)) => pattern == text,
                (_, None) => false,
            };
            if !is_certain {
                return Ok(false);
            }
        }
        covered.extend(words.get(patterns.len()..).unwrap_or_default());
        match covered.iter().find(|word| is_risky(name, word)) {
            Some(word) if word.is_known => Err(format!("`*` does not stand for `{}`", word.text)),
            Some(_) => Err("`*` does not stand for a word that may be an option".to_owned()),
            None if covered.iter().any(|word| is_outside(word)) => {
                Err("`*` does not stand for a path outside the session's folder".to_owned())
            }
            None => Ok(true),
        }
    }

    /// Whether the command may be one of those that the pattern describes, however it is written.
    pub(super) fn may_match(&self, command: &Command) -> Match {
        let patterns = self.words.get(self.program()..).unwrap_or_default();
        let all: Vec<&Word> = command.words.iter().collect();
        let program = command.words.first().map(|word| base_name(&word.text)).unwrap_or_default();
        let mut found = self.may_match_words(patterns, &all);
        // Its arguments may be a command.
        if needs_exact_rule(program) {
            for start in 1..all.len() {
                found = found.max(self.may_match_words(patterns, all.get(start..).unwrap_or_default()));
            }
        }
        found
    }

    fn may_match_words(&self, patterns: &[String], words: &[&Word]) -> Match {
        let mut found = Match::Yes;
        let mut rest = words.iter();
        let mut may_have_options = false;
        for (position, pattern) in patterns.iter().enumerate() {
            let mut skips_value = false;
            loop {
                let Some(word) = rest.next() else { return Match::No };
                let Some(text) = word.as_known() else {
                    if pattern != "*" {
                        found = Match::Maybe;
                    }
                    // It may stand for all words that follow.
                    if word.can_split {
                        return Match::Maybe;
                    }
                    break;
                };
                let text = if position == 0 { base_name(text) } else { text };
                let pattern = if position == 0 { base_name(pattern) } else { pattern };
                if wild(&pattern.to_lowercase(), &text.to_lowercase()) {
                    break;
                }
                // Options may be before the words of the pattern, with a value.
                let is_option = may_have_options && text.starts_with('-');
                if !is_option && !skips_value {
                    return Match::No;
                }
                skips_value = is_option;
            }
            may_have_options = true;
        }
        let has_more = rest.len() > 0;
        let may_vanish = rest.all(|word| word.can_split);
        match (self.is_open, has_more) {
            (true, _) | (_, false) => found,
            (false, true) if may_vanish => Match::Maybe,
            (false, true) => Match::No,
        }
    }
}

fn is_assignment(word: &str) -> bool {
    let is_name = |name: &str| {
        !name.is_empty()
            && !name.starts_with(|c: char| c.is_ascii_digit())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    word.split_once('=').is_some_and(|(name, _)| is_name(name))
}

/// Whether a path may lead out of the folder that it begins with.
pub(super) fn climbs(text: &str) -> bool {
    text.split('/').any(|part| part == "..")
}
