//! The rule for answers, by examples and against random histories.

use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::*;

const QUESTION: Question = Question { id: 1, revision: 0 };
const YES: Answer = Answer { position: 0, effect: Effect::Once };
const ALWAYS: Answer = Answer { position: 1, effect: Effect::Lasting };
const NO: Answer = Answer { position: 2, effect: Effect::Reject };

/// A guard with a question that was shown, and a clock.
struct Rig {
    guard: Guard,
    facts: Facts,
    now: Instant,
}

impl Rig {
    fn new() -> Self {
        let mut rig = Self { guard: Guard::default(), facts: Facts::default(), now: Instant::now() };
        rig.guard.ask(Some(QUESTION));
        rig.frame(true);
        rig
    }

    fn frame(&mut self, has_end: bool) -> &mut Self {
        if let Some(question) = self.guard.question() {
            self.guard.shown(question, has_end, self.now);
        }
        self
    }

    fn wait(&mut self, ms: u64) -> &mut Self {
        self.now += Duration::from_millis(ms);
        self
    }

    fn on(&mut self, input: Input) -> Verdict {
        self.guard.on(input, self.facts, self.now)
    }
}

#[test]
fn enter_gives_the_marked_answer_after_half_a_second() {
    let mut rig = Rig::new();
    assert_eq!(rig.wait(499).on(Input::Enter(Some(YES))), Verdict::Refuse(Refusal::Early));
    assert_eq!(rig.wait(499).on(Input::Enter(Some(YES))), Verdict::Refuse(Refusal::Early));
    assert_eq!(rig.wait(500).on(Input::Enter(Some(YES))), Verdict::Give(QUESTION, Some(YES)));
}

#[test]
fn a_letter_only_marks_and_a_second_one_is_text() {
    let mut rig = Rig::new();
    assert_eq!(rig.wait(500).on(Input::Character('y', Some(YES))), Verdict::Mark(0));
    assert_eq!(rig.on(Input::Character('y', Some(YES))), Verdict::Mark(0), "a key that repeats");
    assert_eq!(rig.on(Input::Character('n', Some(NO))), Verdict::Type("yyn".into()));
    rig.facts.has_text = true;
    assert_eq!(rig.wait(900).on(Input::Enter(Some(YES))), Verdict::Pass, "the prompt has the keys");
    let mut rig = Rig::new();
    assert_eq!(rig.wait(500).on(Input::Character('w', None)), Verdict::Type("w".into()));
}

#[test]
fn an_early_key_and_its_enter_are_dropped() {
    let mut rig = Rig::new();
    assert_eq!(rig.wait(100).on(Input::Character('y', Some(YES))), Verdict::Keep);
    assert_eq!(rig.wait(900).on(Input::Enter(Some(YES))), Verdict::Refuse(Refusal::Early));
    assert_eq!(rig.on(Input::Enter(Some(YES))), Verdict::Give(QUESTION, Some(YES)));
    let mut rig = Rig::new();
    rig.wait(100).on(Input::Character('y', Some(YES)));
    assert_eq!(rig.wait(100).on(Input::Character('e', None)), Verdict::Type("ye".into()), "nothing is lost");
}

#[test]
fn an_early_arrow_and_its_enter_are_dropped() {
    let mut rig = Rig::new();
    assert_eq!(rig.wait(100).on(Input::Arrow), Verdict::Keep);
    assert_eq!(rig.wait(900).on(Input::Enter(Some(YES))), Verdict::Refuse(Refusal::Early));
    assert_eq!(rig.on(Input::Enter(Some(YES))), Verdict::Give(QUESTION, Some(YES)));
}

#[test]
fn a_rejection_leaves_no_keys_in_the_prompt() {
    let mut rig = Rig::new();
    rig.wait(500).on(Input::Character('n', Some(NO)));
    assert_eq!(rig.on(Input::Escape), Verdict::Pass);
    assert_eq!(rig.guard.ask(None), "");
    let mut rig = Rig::new();
    rig.wait(100).on(Input::Character('n', Some(NO)));
    rig.wait(100).on(Input::Escape);
    assert_eq!(rig.guard.ask(None), "n", "it was too early to reject");
}

#[test]
fn keys_of_a_closed_question_are_text() {
    let mut rig = Rig::new();
    rig.wait(500).on(Input::Character('y', Some(YES)));
    assert_eq!(rig.guard.ask(None), "y");
    assert_eq!(rig.guard.ask(Some(QUESTION)), "");
}

#[test]
fn a_change_delays_allowing_but_not_rejecting() {
    let mut rig = Rig::new();
    rig.wait(600).on(Input::Arrow);
    rig.guard.ask(Some(Question { revision: 1, ..QUESTION }));
    assert_eq!(rig.on(Input::Enter(Some(YES))), Verdict::Refuse(Refusal::Early));
    assert_eq!(rig.on(Input::Enter(Some(NO))), Verdict::Give(Question { revision: 1, ..QUESTION }, Some(NO)));
    // The frame of the former revision does not count.
    rig.guard.shown(QUESTION, true, rig.now);
    assert_eq!(rig.wait(600).on(Input::Enter(Some(YES))), Verdict::Refuse(Refusal::Early));
    rig.frame(true);
    assert!(matches!(rig.wait(500).on(Input::Enter(Some(YES))), Verdict::Give(..)));
}

#[test]
fn a_question_is_new_when_the_user_returns() {
    let mut rig = Rig::new();
    rig.wait(5_000).guard.returned();
    assert_eq!(rig.on(Input::Enter(Some(YES))), Verdict::Refuse(Refusal::Early));
    assert_eq!(rig.wait(5_000).on(Input::Enter(Some(NO))), Verdict::Refuse(Refusal::Early), "no frame yet");
    rig.frame(true);
    assert!(matches!(rig.wait(500).on(Input::Enter(Some(YES))), Verdict::Give(..)));
}

#[test]
fn a_command_needs_its_end_on_the_screen() {
    let mut rig = Rig::new();
    rig.guard = Guard::default();
    rig.guard.ask(Some(QUESTION));
    rig.facts.must_end = true;
    rig.frame(false).wait(600);
    assert_eq!(rig.on(Input::Enter(Some(YES))), Verdict::Refuse(Refusal::EndUnseen));
    rig.frame(true).wait(300).frame(false).wait(300);
    assert_eq!(
        rig.on(Input::Enter(Some(YES))),
        Verdict::Refuse(Refusal::EndUnseen),
        "it was there too briefly"
    );
    rig.frame(true).wait(500).frame(false);
    assert!(matches!(rig.on(Input::Enter(Some(YES))), Verdict::Give(..)), "it was read and scrolled away");
    let mut rig = Rig::new();
    rig.facts.must_end = true;
    rig.guard.returned();
    rig.frame(false);
    assert!(matches!(rig.wait(600).on(Input::Enter(Some(NO))), Verdict::Give(..)), "rejecting needs no end");
}

#[test]
fn a_click_gives_only_answers_for_this_once() {
    let mut rig = Rig::new();
    assert_eq!(rig.wait(100).on(Input::Click(Some(YES))), Verdict::Refuse(Refusal::Early));
    assert_eq!(rig.wait(500).on(Input::Click(Some(ALWAYS))), Verdict::Mark(1));
    assert_eq!(rig.on(Input::Click(Some(YES))), Verdict::Give(QUESTION, Some(YES)));
    let mut rig = Rig::new();
    rig.facts.has_text = true;
    assert_eq!(rig.wait(900).on(Input::Click(Some(YES))), Verdict::Move, "the first click moves the keys");
    assert_eq!(rig.on(Input::Click(Some(YES))), Verdict::Give(QUESTION, Some(YES)));
}

#[test]
fn fields_get_keys_only_after_an_act_of_the_user() {
    let mut rig = Rig::new();
    rig.facts.has_fields = true;
    assert_eq!(rig.wait(600).on(Input::Character('p', None)), Verdict::Type("p".into()));
    assert_eq!(rig.wait(600).on(Input::Enter(None)), Verdict::Move);
    assert!(rig.guard.is_entered());
    assert_eq!(rig.on(Input::Enter(None)), Verdict::Give(QUESTION, None));
}

#[test]
fn a_line_counts_half_a_second_after_the_question() {
    let mut rig = Rig::new();
    assert!(!rig.guard.counts_line(false, rig.now));
    assert!(!rig.guard.counts_line(false, rig.now + Duration::from_millis(499)));
    assert!(rig.guard.counts_line(false, rig.now + Duration::from_millis(500)));
    assert!(rig.guard.counts_line(true, rig.now), "a script has read nothing before");
    rig.guard.ask(None);
    assert!(!rig.guard.counts_line(true, rig.now));
}

/// A step of a random history.
#[derive(Debug, Clone, Copy)]
enum Step {
    Wait(u64),
    Frame(bool),
    /// A change of the question.
    Change,
    /// Another question, or the same one again.
    Ask(u64),
    Returned,
    /// Text comes into the prompt, or leaves it.
    Text(bool),
    Input(Input),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let answer = prop_oneof![Just(YES), Just(ALWAYS), Just(NO)];
    let input = prop_oneof![
        4 => answer.clone().prop_map(|answer| Input::Enter(Some(answer))),
        2 => (prop_oneof![Just('y'), Just('1')], answer.clone())
            .prop_map(|(key, answer)| Input::Character(key, Some(answer))),
        1 => Just(Input::Character('x', None)),
        1 => Just(Input::Arrow),
        1 => Just(Input::Backspace),
        1 => Just(Input::Escape),
        1 => Just(Input::Look),
        2 => answer.prop_map(|answer| Input::Click(Some(answer))),
        1 => Just(Input::Click(None)),
        1 => Just(Input::Switch),
        1 => Just(Input::Paste),
        1 => Just(Input::Elsewhere),
    ];
    let step = prop_oneof![
        6 => prop_oneof![0..700_u64, Just(499), Just(500)].prop_map(Step::Wait),
        4 => any::<bool>().prop_map(Step::Frame),
        1 => Just(Step::Change),
        1 => (0..3_u64).prop_map(Step::Ask),
        1 => Just(Step::Returned),
        1 => any::<bool>().prop_map(Step::Text),
        7 => input.prop_map(Step::Input),
    ];
    prop::collection::vec(step, 1..60)
}

/// What happened to the question on top, from which the rule is computed anew for each input.
#[derive(Debug, Default)]
struct History {
    /// Times of frames, and whether they had the end, since the question or its revision appeared or returned.
    frames: Vec<(u64, bool)>,
    /// The first frame since it appeared or returned, whatever changed later.
    first_frame: Option<u64>,
    /// Times of inputs, and whether they reached the question.
    inputs: Vec<(u64, bool)>,
    keys: Vec<(char, bool)>,
    /// Whether an arrow, or a removed key that others preceded, came before answers counted.
    has_early_other: bool,
    is_moved: Option<bool>,
}

impl History {
    /// Whether there was half a second without input since `since`, after which no input went elsewhere.
    fn was_quiet(&self, since: Option<u64>, now: u64) -> bool {
        let Some(since) = since else { return false };
        let last_elsewhere = self.inputs.iter().filter(|(_, reaches)| !reaches).map(|(at, _)| *at).max();
        let begin = last_elsewhere.map_or(since, |at| at.max(since));
        let mut times: Vec<u64> = self.inputs.iter().map(|(at, _)| *at).filter(|at| *at >= begin).collect();
        times.insert(0, begin);
        times.push(now);
        times.windows(2).any(|pair| pair[1] - pair[0] >= 500)
    }

    fn has_seen_end(&self, now: u64) -> bool {
        let mut since = None;
        for (at, has_end) in &self.frames {
            if since.is_some_and(|since| *at - since >= 500) {
                return true;
            }
            since = if *has_end { since.or(Some(*at)) } else { None };
        }
        since.is_some_and(|since| now - since >= 500)
    }

    fn counts(&self, answer: Answer, now: u64) -> bool {
        if self.has_early_other || self.keys.iter().any(|(_, is_early)| *is_early) {
            return false;
        }
        match answer.effect {
            Effect::Reject => self.was_quiet(self.first_frame, now),
            Effect::Once | Effect::Lasting => self.was_quiet(self.frames.first().map(|(at, _)| *at), now),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4_000, ..ProptestConfig::default() })]

    /// No answer is given that the rule forbids, and none is refused that it allows; no key is lost.
    #[test]
    fn answers_follow_the_rule(steps in steps(), must_end: bool) {
        let begin = Instant::now();
        let (mut guard, mut facts) = (Guard::default(), Facts { must_end, ..Facts::default() });
        let (mut history, mut now) = (History::default(), 0_u64);
        let (mut id, mut revision) = (0, 0);
        guard.ask(Some(Question { id, revision }));
        for step in steps {
            let at = begin + Duration::from_millis(now);
            match step {
                Step::Wait(ms) => now += ms,
                Step::Frame(has_end) => {
                    guard.shown(Question { id, revision }, has_end, at);
                    history.frames.push((now, has_end));
                    history.first_frame.get_or_insert(now);
                }
                Step::Change => {
                    revision += 1;
                    prop_assert_eq!(guard.ask(Some(Question { id, revision })), "");
                    history.frames.clear();
                    history.keys.iter_mut().for_each(|(_, is_early)| *is_early = true);
                }
                Step::Ask(next) if next != id => {
                    (id, revision) = (next, 0);
                    let saved: String = history.keys.iter().map(|(key, _)| *key).collect();
                    prop_assert_eq!(guard.ask(Some(Question { id, revision })), saved);
                    let inputs = std::mem::take(&mut history.inputs);
                    history = History { inputs, ..History::default() };
                }
                Step::Ask(_) => {}
                Step::Returned => {
                    guard.returned();
                    history.frames.clear();
                    history.first_frame = None;
                    history.keys.iter_mut().for_each(|(_, is_early)| *is_early = true);
                }
                Step::Text(has_text) => facts.has_text = has_text,
                Step::Input(input) => {
                    let has_keys = history.is_moved.unwrap_or(!facts.has_text);
                    let verdict = guard.on(input, facts, at);
                    let mut reaches =
                        has_keys && !matches!(input, Input::Elsewhere | Input::Paste)
                        || matches!(input, Input::Click(_) | Input::Switch | Input::Escape);
                    let saved = |history: &History| -> String { history.keys.iter().map(|(key, _)| *key).collect() };
                    match input {
                        Input::Enter(Some(answer)) | Input::Click(Some(answer)) if has_keys => {
                            let is_click = matches!(input, Input::Click(_));
                            let counts = history.counts(answer, now);
                            let marks = is_click && answer.effect == Effect::Lasting
                                && history.was_quiet(history.frames.first().map(|(at, _)| *at), now);
                            let is_unread = must_end && answer.effect != Effect::Reject && !history.has_seen_end(now);
                            if marks {
                                prop_assert_eq!(verdict, Verdict::Mark(answer.position));
                            } else if !counts {
                                prop_assert_eq!(verdict, Verdict::Refuse(Refusal::Early));
                                history.keys.clear();
                                history.has_early_other = false;
                            } else if is_unread {
                                let is_visible = history.frames.last().is_some_and(|(_, has_end)| *has_end);
                                let why = if is_visible { Refusal::Early } else { Refusal::EndUnseen };
                                prop_assert_eq!(verdict, Verdict::Refuse(why));
                            } else {
                                prop_assert_eq!(verdict, Verdict::Give(Question { id, revision }, Some(answer)));
                                history.keys.clear();
                            }
                        }
                        Input::Character(key, answer) if has_keys => {
                            let is_other = history.keys.iter().any(|(other, _)| *other != key);
                            if let Some(answer) = answer.filter(|_| !is_other) {
                                let had_early =
                                    history.has_early_other || history.keys.iter().any(|(_, is_early)| *is_early);
                                let is_early = !history.counts(answer, now);
                                history.keys.push((key, is_early));
                                let keeps = is_early || had_early;
                                prop_assert_eq!(verdict, if keeps { Verdict::Keep } else { Verdict::Mark(answer.position) });
                            } else {
                                prop_assert_eq!(verdict, Verdict::Type(saved(&history) + &key.to_string()));
                                history.keys.clear();
                                history.has_early_other = false;
                                history.is_moved = None;
                                reaches = false;
                            }
                        }
                        Input::Paste if has_keys && !history.keys.is_empty() => {
                            prop_assert_eq!(verdict, Verdict::Type(saved(&history)));
                            history.keys.clear();
                            history.has_early_other = false;
                            history.is_moved = None;
                        }
                        Input::Backspace if has_keys => {
                            history.has_early_other |= history.keys.iter().any(|(_, is_early)| *is_early);
                            history.keys.pop();
                            history.has_early_other &= !history.keys.is_empty();
                            prop_assert_eq!(verdict, Verdict::Unmark);
                        }
                        Input::Click(_) if !has_keys => {
                            prop_assert_eq!(verdict, Verdict::Move);
                            history.is_moved = Some(true);
                        }
                        Input::Switch => {
                            prop_assert_eq!(verdict, Verdict::Move);
                            history.is_moved = Some(!has_keys);
                        }
                        Input::Arrow if has_keys => {
                            let is_open = history.was_quiet(history.frames.first().map(|(at, _)| *at), now);
                            prop_assert_eq!(verdict, if is_open { Verdict::Pass } else { Verdict::Keep });
                            history.has_early_other |= !is_open;
                        }
                        Input::Escape if has_keys => {
                            prop_assert_eq!(verdict, Verdict::Pass);
                            if history.was_quiet(history.first_frame, now) {
                                history.keys.clear();
                                history.has_early_other = false;
                            }
                        }
                        _ => prop_assert_eq!(verdict, Verdict::Pass),
                    }
                    history.inputs.push((now, reaches));
                }
            }
        }
    }
}
