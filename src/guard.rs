//! Decides when an input answers a question that the user did not open: a request of an agent, a form, a page to open, a
//! sign-in, or consent that parlor asks for.
//!
//! The guard knows kinds of input, what was shown and the time; no state, no screen and no key bindings. The screen and
//! plain-text mode share it. `docs/keys.md` has the rule for users.
//!
//! Invariants: an answer is given only to the revision that was on the screen for [`PAUSE`], with the end of a command
//! for as long; a letter or digit never gives an answer; text that is typed at a question is never lost.

use std::time::{Duration, Instant};

/// Time for which a question must have been shown, and without input, before an answer counts.
pub const PAUSE: Duration = Duration::from_millis(500);

/// A question as it was asked. Answers name it, and count only for the revision that was shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Question {
    /// Differs between questions, and between appearances of the same one in other places.
    pub id: u64,
    /// Differs after each change of what is asked.
    pub revision: u64,
}

/// What an answer does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Refuses, or leaves everything as it is.
    Reject,
    Once,
    /// Also decides about later requests.
    Lasting,
}

/// An answer of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer {
    /// Its place among the answers.
    pub position: usize,
    pub effect: Effect,
}

/// A kind of input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Input {
    /// A printable key, with the answer that it stands for.
    Character(char, Option<Answer>),
    /// Moves the mark to the next or previous answer.
    Arrow,
    /// Undoes the last key.
    Backspace,
    /// Gives the marked answer; `None`: none is marked.
    Enter(Option<Answer>),
    /// Rejects the question, or closes something else.
    Escape,
    /// Scrolls or unfolds the question, or does nothing.
    Look,
    Click(Option<Answer>),
    /// The key that moves the keys between the question and the prompt.
    Switch,
    /// A paste. Its text belongs to the prompt.
    Paste,
    /// Everything that is not for the question.
    Elsewhere,
}

/// What the guard has to know of the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Facts {
    /// Whether text stands in the prompt or in another input that has the focus.
    pub has_text: bool,
    /// Whether the end has to be seen before the question can be allowed: it runs a program.
    pub must_end: bool,
    /// Whether the question has text fields, which get keys only after the user moved there.
    pub has_fields: bool,
}

/// Why an answer does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The question was not shown long enough, or there was input meanwhile.
    Early,
    /// The end of what is asked was not shown.
    EndUnseen,
}

/// The meaning of an input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Gives this answer to this question; `None`: no answer is marked.
    Give(Question, Option<Answer>),
    Mark(usize),
    /// The mark returns to its first position.
    Unmark,
    /// The text belongs to the prompt, and the mark returns to its first position.
    Type(String),
    /// The key is kept with the question, without an effect.
    Keep,
    /// The answer does not count.
    Refuse(Refusal),
    /// The keys go to the question, or back to the prompt.
    Move,
    /// The input has its usual effect.
    Pass,
}

/// Which answers count until something else happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
enum Open {
    #[default]
    Nothing,
    /// A change of the question does not delay rejections.
    Rejections,
    All,
}

/// The question on top, and what is known of it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Guard {
    question: Option<Question>,
    /// When the first frame with the question was written since it appeared or returned.
    appeared_at: Option<Instant>,
    shown_at: Option<Instant>,
    /// Since when the end of it is on the screen, or was for long enough.
    end_at: Option<Instant>,
    last_input: Option<Instant>,
    open: Open,
    keys: String,
    /// Whether one of them came before answers counted. Stays set while any is left.
    has_early_key: bool,
    /// Whether the user moved the keys to the question or away from it.
    is_moved: Option<bool>,
    /// Whether a line of plain-text mode answers, which was checked before.
    is_admitted: bool,
}

impl Guard {
    pub fn question(&self) -> Option<Question> {
        self.question
    }

    /// Sets the question on top. Returns the keys that were pressed at a former one: they are text of the prompt.
    pub fn ask(&mut self, question: Option<Question>) -> String {
        if self.question == question {
            return String::new();
        }
        if let (Some(old), Some(new)) = (self.question, question)
            && old.id == new.id
        {
            self.question = question;
            (self.shown_at, self.end_at) = (None, None);
            self.open = self.open.min(Open::Rejections);
            self.has_early_key |= !self.keys.is_empty();
            return String::new();
        }
        let left = std::mem::take(self);
        *self = Self { question, last_input: left.last_input, ..Self::default() };
        left.keys
    }

    /// A frame with this question was written to the terminal. `has_end`: nothing of it is below the visible part.
    pub fn shown(&mut self, question: Question, has_end: bool, now: Instant) {
        if self.question != Some(question) {
            return;
        }
        self.appeared_at.get_or_insert(now);
        self.shown_at.get_or_insert(now);
        if has_end {
            self.end_at.get_or_insert(now);
        } else if !has_passed(self.end_at, now) {
            self.end_at = None;
        }
    }

    /// The user looks at the terminal again: another program had it, or another window the focus.
    pub fn returned(&mut self) {
        (self.appeared_at, self.shown_at, self.end_at) = (None, None, None);
        self.open = Open::Nothing;
        self.has_early_key |= !self.keys.is_empty();
    }

    /// Whether the end of the question is on the screen, or was for long enough.
    pub fn shows_end(&self) -> bool {
        self.end_at.is_some()
    }

    pub fn has_keys(&self, facts: Facts) -> bool {
        self.question.is_some() && self.is_moved.unwrap_or(!facts.has_text)
    }

    /// Whether the user moved the keys to the question, so that its fields and filters get them.
    pub fn is_entered(&self) -> bool {
        self.question.is_some() && self.is_moved == Some(true)
    }

    /// The user moved the keys to the question, by a key that cannot be text.
    pub fn enter(&mut self) {
        self.is_moved = self.question.map(|_| true);
    }

    /// The question is being answered, so that its keys are no text.
    pub fn forget_keys(&mut self) {
        self.keys.clear();
        self.has_early_key = false;
    }

    /// The keys go where they go by default: the prompt has changed.
    pub fn release(&mut self) {
        self.is_moved = None;
    }

    /// Whether the question may be rejected by the input that was handled last.
    pub fn rejects(&self) -> bool {
        self.open >= Open::Rejections
    }

    /// When answers count if there is no further input; `None` or a time in the past: now, or not before another frame.
    pub fn opens_at(&self, facts: Facts) -> Option<Instant> {
        let since = self.shown_at.filter(|_| self.open < Open::All);
        let quiet = since.map(|since| self.last_input.map_or(since, |last| last.max(since)) + PAUSE);
        let read = self.end_at.filter(|_| facts.must_end).map(|at| at + PAUSE);
        quiet.max(read)
    }

    /// Whether nothing can be allowed before the end of the question was shown.
    pub fn lacks_end(&self, facts: Facts, now: Instant) -> bool {
        self.question.is_some() && facts.must_end && !has_passed(self.end_at, now)
    }

    /// Whether an answer that allows something counts now, apart from the end of a command.
    pub fn is_open(&self, now: Instant) -> bool {
        self.open == Open::All || self.is_quiet(self.shown_at, now)
    }

    fn is_quiet(&self, since: Option<Instant>, now: Instant) -> bool {
        has_passed(since, now) && (self.last_input.is_none() || has_passed(self.last_input, now))
    }

    pub fn on(&mut self, input: Input, facts: Facts, now: Instant) -> Verdict {
        if self.question.is_none() {
            self.last_input = Some(now);
            return Verdict::Pass;
        }
        if self.is_open(now) {
            self.open = Open::All;
        } else if self.is_quiet(self.appeared_at, now) {
            self.open = Open::Rejections;
        }
        let has_keys = self.has_keys(facts);
        let reaches = has_keys && !matches!(input, Input::Elsewhere | Input::Paste)
            || matches!(input, Input::Click(_) | Input::Switch | Input::Escape);
        let verdict = self.decide(input, facts, has_keys, now);
        self.last_input = Some(now);
        if !reaches || matches!(verdict, Verdict::Type(_)) {
            self.open = Open::Nothing;
        }
        verdict
    }

    fn decide(&mut self, input: Input, facts: Facts, has_keys: bool, now: Instant) -> Verdict {
        match input {
            Input::Click(_) if !has_keys => {
                self.is_moved = Some(true);
                Verdict::Move
            }
            Input::Switch => {
                self.is_moved = Some(!has_keys || facts.has_fields && !self.is_entered());
                Verdict::Move
            }
            Input::Click(None) if facts.has_fields => {
                self.is_moved = Some(true);
                Verdict::Pass
            }
            _ if !has_keys => Verdict::Pass,
            Input::Paste if self.keys.is_empty() => Verdict::Pass,
            Input::Paste => self.take_as_text(None),
            Input::Character(key, answer) => self.on_character(key, answer),
            Input::Arrow if self.open == Open::All => Verdict::Pass,
            Input::Arrow => {
                self.has_early_key = true;
                Verdict::Keep
            }
            Input::Backspace => {
                self.keys.pop();
                self.has_early_key &= !self.keys.is_empty();
                Verdict::Unmark
            }
            Input::Enter(answer) => self.give(answer, facts, now),
            Input::Click(Some(answer)) if answer.effect == Effect::Lasting && self.open == Open::All => {
                Verdict::Mark(answer.position)
            }
            Input::Click(Some(answer)) => self.give(Some(answer), facts, now),
            Input::Escape => {
                if self.rejects() {
                    self.forget_keys();
                }
                Verdict::Pass
            }
            Input::Look | Input::Click(None) | Input::Elsewhere => Verdict::Pass,
        }
    }

    fn on_character(&mut self, key: char, answer: Option<Answer>) -> Verdict {
        let Some(answer) = answer.filter(|_| self.keys.chars().all(|other| other == key)) else {
            return self.take_as_text(Some(key));
        };
        self.keys.push(key);
        self.has_early_key |= !self.counts(answer.effect == Effect::Reject);
        if self.has_early_key { Verdict::Keep } else { Verdict::Mark(answer.position) }
    }

    /// All keys pressed at the question are text of the prompt.
    fn take_as_text(&mut self, key: Option<char>) -> Verdict {
        self.is_moved = None;
        self.has_early_key = false;
        let mut text = std::mem::take(&mut self.keys);
        text.extend(key);
        Verdict::Type(text)
    }

    fn counts(&self, rejects: bool) -> bool {
        self.is_admitted || self.open >= if rejects { Open::Rejections } else { Open::All }
    }

    fn give(&mut self, answer: Option<Answer>, facts: Facts, now: Instant) -> Verdict {
        let Some(question) = self.question else { return Verdict::Pass };
        let rejects = answer.is_some_and(|answer| answer.effect == Effect::Reject);
        if std::mem::take(&mut self.has_early_key) || !self.counts(rejects) {
            self.keys.clear();
            return Verdict::Refuse(Refusal::Early);
        }
        if self.lacks_end(facts, now) && !self.is_admitted && !rejects && answer.is_some() {
            let is_visible = self.end_at.is_some();
            return Verdict::Refuse(if is_visible { Refusal::Early } else { Refusal::EndUnseen });
        }
        self.keys.clear();
        if facts.has_fields && answer.is_none() && !self.is_entered() {
            self.is_moved = Some(true);
            return Verdict::Move;
        }
        Verdict::Give(question, answer)
    }

    /// Whether a line of plain-text mode that came at `at` counts for the question, which was printed whole. `is_script`:
    /// it comes from a pipe or a file whose lines are answers.
    pub fn counts_line(&self, is_script: bool, at: Instant) -> bool {
        self.question.is_some() && (is_script || has_passed(self.shown_at, at))
    }

    /// Gives the keys to the question for a line of plain-text mode that counts, or for the end of its input.
    pub fn admit(&mut self) {
        (self.is_admitted, self.open) = (true, Open::All);
        self.is_moved = Some(true);
    }
}

/// Whether [`PAUSE`] has passed since then.
pub fn has_passed(since: Option<Instant>, now: Instant) -> bool {
    since.is_some_and(|since| now.saturating_duration_since(since) >= PAUSE)
}

#[cfg(test)]
mod tests;
