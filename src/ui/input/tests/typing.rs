//! Typing while requests arrive: no sentence answers one, and no letter is lost.

use crate::core;
use std::time::Duration;

use super::*;
use crate::core::Effect;
use crate::model::{
    AgentCommand, AgentEvent, AgentRequest, ConnId, PermissionKind, PermissionOption, PermissionRequest,
    RequestId, ToolCallPatch,
};
use crate::random::Random;
use crate::ui::{dialogs, update};

/// Sentences that begin with keys that answer.
const SENTENCES: [&str; 10] = [
    "yes, and then run the tests",
    "no, look at the parser first",
    "1. rename the module",
    "11 files are missing",
    "2 of 3 are done; yes",
    "4 files, please",
    "y",
    "nn y 1",
    "3",
    "keep 1 and 2",
];

struct Typist {
    rig: Rig,
    random: Random,
    elapsed: Duration,
    requests: u64,
    open: Vec<u64>,
}

impl Typist {
    fn new(seed: u64) -> Self {
        let mut stage = fixture::streaming();
        stage.session(|session| {
            session.draft.clear();
            drop(session.outbox.take_queue());
        });
        let mut rig = Rig::new(stage);
        rig.view.apply(crate::core::ViewCommand::ClearDraft);
        Self { rig, random: Random::new(seed), elapsed: Duration::ZERO, requests: 0, open: Vec::new() }
    }

    /// Returns the number of requests that the event has answered.
    fn update(&mut self, event: impl Into<Event>) -> usize {
        let stage = &mut self.rig.stage;
        let mut answers = 0;
        for effect in update(&mut stage.app, event, stage.now) {
            match effect {
                Effect::View(command) => self.rig.view.apply(command),
                Effect::Send(_, AgentCommand::Respond(..)) => answers += 1,
                _ => {}
            }
        }
        answers
    }

    fn agent(&mut self, event: AgentEvent) {
        self.update(core::Event::Agent(ConnId(1), event));
    }

    /// Lets time pass, in which frames are drawn, and requests arrive and are withdrawn.
    fn wait(&mut self, ms: u64) {
        let mut left = ms;
        while left > 0 {
            dialogs::on_frame(&mut self.rig.stage.app, true, self.rig.stage.now);
            let step = left.min(1 + self.random.below(40));
            left -= step;
            self.elapsed += Duration::from_millis(step);
            self.rig.stage.now += Duration::from_millis(step);
            match self.random.below(400) {
                0..8 if self.open.len() < 3 => self.ask(),
                8..12 if !self.open.is_empty() => {
                    let at = usize::try_from(self.random.below(self.open.len() as u64)).unwrap();
                    let withdrawn = AgentEvent::RequestWithdrawn(RequestId(self.open.remove(at)));
                    self.agent(withdrawn);
                }
                _ => {}
            }
        }
        dialogs::on_frame(&mut self.rig.stage.app, true, self.rig.stage.now);
    }

    fn ask(&mut self) {
        self.requests += 1;
        self.open.push(self.requests);
        let kinds = [
            PermissionKind::AllowOnce,
            PermissionKind::AllowAlways,
            PermissionKind::RejectOnce,
            PermissionKind::RejectAlways,
        ];
        let option = |kind: PermissionKind| PermissionOption {
            id: format!("{kind:?}"),
            name: format!("{kind:?}"),
            kind,
        };
        let tool = ToolCallPatch::new(format!("call-{}", self.requests).into());
        let options = kinds.map(option).to_vec();
        let request = PermissionRequest { session: Some("s-1".into()), tool, options };
        self.agent(AgentEvent::Request(
            RequestId(self.requests),
            Box::new(AgentRequest::Permission(request)),
        ));
    }

    fn press(&mut self, code: KeyCode) {
        let rig = &mut self.rig;
        let key = Terminal::Key(KeyEvent::new(code, KeyModifiers::NONE));
        let events = route(&key, &rig.stage.app, &mut rig.view, &rig.keymap, rig.stage.now);
        for event in events {
            assert_eq!(self.update(event), 0, "{code:?} has answered a request");
        }
    }

    fn draft(&self) -> String {
        self.rig.stage.state.active_session().map(|session| session.draft.clone()).unwrap_or_default()
    }

    /// Types a sentence and sends it.
    fn sentence(&mut self, sentence: &str) {
        for ch in sentence.chars() {
            let pause = 30 + self.random.below(671);
            self.wait(pause);
            self.press(KeyCode::Char(ch));
        }
        let pause = 30 + self.random.below(671);
        self.wait(pause);
        // A single key and Enter are an answer, so they are not sent while a request is open.
        if sentence.len() == 1 && !self.open.is_empty() {
            self.press(KeyCode::Backspace);
            return;
        }
        self.press(KeyCode::Enter);
        let mut queued = Vec::new();
        self.rig.stage.session(|session| queued.extend(session.outbox.take_queue()));
        let queued: Vec<String> = queued.into_iter().map(|prompt| prompt.text).collect();
        assert_eq!(queued, [sentence], "the draft is {:?}", self.draft());
        assert_eq!((self.draft().as_str(), self.rig.view.draft().as_str()), ("", ""));
    }
}

#[test]
fn an_hour_of_typing_answers_nothing() {
    let mut typist = Typist::new(0x5eed);
    while typist.elapsed < Duration::from_hours(1) {
        let at = usize::try_from(typist.random.below(SENTENCES.len() as u64)).unwrap();
        typist.sentence(SENTENCES[at]);
        let pause = typist.random.below(3_000);
        typist.wait(pause);
    }
    assert!(typist.requests > 1_000, "{} requests", typist.requests);
}

#[test]
fn ten_requests_take_ten_keys() {
    let mut typist = Typist::new(1);
    for number in 0..10 {
        typist.ask();
        typist.open.clear();
        dialogs::on_frame(&mut typist.rig.stage.app, true, typist.rig.stage.now);
        typist.rig.stage.now += Duration::from_millis(600);
        let stage = &mut typist.rig.stage;
        let key = Terminal::Key(KeyEvent::new(KeyCode::Enter, KeyModifiers::NONE));
        let events = route(&key, stage, &mut typist.rig.view, &typist.rig.keymap, stage.now);
        let effects = events.into_iter().flat_map(|event| update(&mut stage.app, event, stage.now));
        let answers = effects.filter(|effect| matches!(effect, Effect::Send(_, AgentCommand::Respond(..))));
        assert_eq!(answers.count(), 1, "request {number}");
    }
}

#[test]
fn home_and_end_reach_the_ends_of_a_list_without_filter() {
    let mut rig = Rig::new(fixture::picker(""));
    assert_eq!(rig.key(KeyCode::Home), [Event::Act(Action::First)]);
    assert_eq!(rig.key(KeyCode::End), [Event::Act(Action::Last)]);
    let mut rig = Rig::new(fixture::picker("c"));
    assert_eq!(rig.key(KeyCode::Home), [Event::Line(LineEdit::Home)]);
    assert_eq!(rig.key(KeyCode::End), [Event::Line(LineEdit::End)]);
}
