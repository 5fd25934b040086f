//! Property test: prompts are sent at most once, in order, and never lost, in any order of events.
//!
//! A model plays a user who types, queues, edits, removes, cancels and resends, and an agent that answers, fails, loses
//! its session, requires a sign-in or exits. Each typed text is unique.

use crate::core;
use crate::ui::Event;
use std::collections::BTreeMap;
use std::time::Duration;

use proptest::prelude::*;

use super::bench::TestApp;
use crate::core::lifecycle::operations;
use crate::core::tests::support::{KEY, all_capabilities};
use crate::core::*;
use crate::model::*;
use crate::ui::dialogs::QueueDialog;

/// Numbers are indices into the current candidates, modulo their number.
#[derive(Debug, Clone, Copy)]
enum Step {
    /// Types a new text into the composer; one in four mentions a file.
    Type(usize),
    Act(usize),
    Cancel,
    Restart,
    StartOther,
    SetMode(usize),
    SignIn,
    Reply {
        call: usize,
        outcome: usize,
    },
    Prepared {
        has_problem: bool,
    },
    OwnTurn {
        has_ended: bool,
    },
    Close(usize),
    Wait(u64),
}

const ACTIONS: [Action; 14] = [
    Action::Submit,
    Action::Submit,
    Action::Submit,
    Action::HistoryPrevious,
    Action::HistoryNext,
    Action::Escape,
    Action::OpenQueue,
    Action::Edit,
    Action::Remove,
    Action::MoveUp,
    Action::MoveDown,
    Action::SendNow,
    Action::Steer,
    Action::SendAgain,
];

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (0..8usize).prop_map(Step::Type),
        12 => (0..ACTIONS.len()).prop_map(Step::Act),
        2 => Just(Step::Cancel),
        1 => Just(Step::Restart),
        1 => Just(Step::StartOther),
        1 => (0..2usize).prop_map(Step::SetMode),
        2 => Just(Step::SignIn),
        12 => (0..4usize, 0..14usize).prop_map(|(call, outcome)| Step::Reply { call, outcome }),
        4 => proptest::bool::weighted(0.2).prop_map(|has_problem| Step::Prepared { has_problem }),
        2 => any::<bool>().prop_map(|has_ended| Step::OwnTurn { has_ended }),
        1 => (0..3usize).prop_map(Step::Close),
        2 => (0..12u64).prop_map(Step::Wait),
    ]
}

/// A typed text.
#[derive(Debug, Default)]
struct Typed {
    is_sent: bool,
    /// How often it may be sent: the user has submitted it, or the agent did not process it.
    allowed: usize,
    was_cancelled: bool,
    /// Whether the user removed or replaced it.
    is_dropped: bool,
}

struct World {
    app: TestApp,
    typed: BTreeMap<String, Typed>,
    calls: Vec<(ConnId, CallTag, Option<String>)>,
    jobs: Vec<PromptJob>,
    last: usize,
}

impl World {
    fn new() -> Self {
        let mut app = TestApp::started();
        app.handshake(AgentCapabilities { can_steer: true, ..all_capabilities() }).open("s");
        app.fx.clear();
        Self { app, typed: BTreeMap::new(), calls: Vec::new(), jobs: Vec::new(), last: 0 }
    }

    fn session(&self) -> &Session {
        self.app.session()
    }

    /// The typed text in a prompt.
    fn typed(&mut self, prompt: &str) -> Option<&mut Typed> {
        self.typed.iter_mut().find(|(text, _)| prompt.contains(*text)).map(|(_, typed)| typed)
    }

    /// The texts of the queue, and whether each is on hold.
    fn queue(&self) -> Vec<(String, bool)> {
        self.session()
            .outbox
            .queue()
            .map(|prompt| (prompt.text.clone(), self.session().outbox.is_waiting(prompt)))
            .collect()
    }

    fn step(&mut self, step: Step) {
        let before = self.queue();
        // It may have the same text as one on hold.
        let outbox = &self.session().outbox;
        let has_other = outbox.is_preparing() || outbox.unsent().is_some();
        let edited = self.session().outbox.edited().map(|prompt| prompt.text.clone());
        let draft = self.session().draft.clone();
        let has_dialog = !self.app.layers.is_empty();
        let is_user = match step {
            Step::Type(kind) => {
                // The user may discard the draft that this replaces.
                if let Some(typed) = self.typed(&draft) {
                    typed.is_dropped = true;
                }
                self.last += 1;
                let text = format!("p{}.", self.last);
                self.typed.insert(text.clone(), Typed { is_dropped: true, ..Typed::default() });
                let mention = if kind < 2 { " @a.rs" } else { "" };
                self.app.play(Event::Draft(text + mention));
                true
            }
            Step::Act(index) => {
                let wanted = match ACTIONS[index] {
                    Action::Submit | Action::SendNow | Action::Steer => Some(draft.clone()),
                    Action::SendAgain => self.session().outbox.failed().map(|prompt| prompt.text.clone()),
                    _ => None,
                };
                if let Some(typed) = wanted.and_then(|text| self.typed(&text)) {
                    typed.allowed += 1;
                }
                // These may be for the queue.
                if matches!(ACTIONS[index], Action::Submit | Action::SendNow | Action::Steer)
                    && (draft.is_empty() || has_dialog)
                {
                    for (text, _) in &before {
                        let copies = before.iter().filter(|(queued, _)| queued == text).count();
                        let typed = self.typed(text).expect("it was typed");
                        typed.allowed = typed.allowed.max(copies);
                    }
                }
                self.app.act(ACTIONS[index]);
                true
            }
            Step::Cancel => {
                let running = self.session().outbox.running().map(|prompt| prompt.text.clone());
                if let Some(typed) = running.and_then(|text| self.typed(&text)) {
                    typed.was_cancelled = true;
                }
                self.app.cancel();
                true
            }
            Step::Restart => {
                self.app.flow(|state, cx| operations::restart_agent(state, KEY, cx));
                false
            }
            Step::StartOther => {
                let spec = AgentSpec { command: "other".into(), ..AgentSpec::default() };
                self.app.flow(|state, cx| operations::start_agent(state, KEY, spec, cx));
                false
            }
            Step::SetMode(mode) => {
                let mode = ["plan", "default"][mode].into();
                self.app.flow(|state, cx| operations::set_mode(state, KEY, mode, cx));
                false
            }
            Step::SignIn => {
                let conn = self.session().conn.expect("it has a connection");
                self.app.flow(|state, cx| {
                    operations::sign_in(state, conn, "web", Vec::new(), cx);
                });
                false
            }
            Step::Reply { call, outcome } => {
                self.reply(call, outcome);
                false
            }
            Step::Prepared { has_problem } => {
                if let Some(job) = self.jobs.pop() {
                    let problems = has_problem.then(|| "No.".to_owned()).into_iter().collect();
                    let prepared = PreparedPrompt { text: job.text, problems, ..PreparedPrompt::default() };
                    self.app.service(ServiceEvent::PromptPrepared(KEY, job.prompt, Box::new(prepared)));
                }
                false
            }
            Step::OwnTurn { has_ended } => {
                let id: SessionId = self.session().id.clone().unwrap_or_else(|| "s".into());
                let end = Reply::TurnEnded { reason: StopReason::EndTurn, usage: None };
                self.app.agent(if has_ended {
                    AgentEvent::TurnEnded(id, Ok(end))
                } else {
                    AgentEvent::TurnBegan(id)
                });
                false
            }
            Step::Close(reason) => {
                self.close(reason);
                false
            }
            Step::Wait(seconds) => {
                self.app.now += Duration::from_secs(seconds);
                self.app.play(core::Event::Timer(TimerId::SettingOverdue(KEY)));
                self.app.play(core::Event::Timer(TimerId::Commands(KEY)));
                false
            }
        };
        // Other dialogs are not part of the model.
        let queue = self.app.layers.top::<QueueDialog>().map(|dialog| dialog.selected);
        self.app.layers = queue.map(|selected| QueueDialog { selected }.into()).unwrap_or_default();
        self.note(&before, has_other, is_user, step);
        if has_dialog {
            // What was being edited is in the history.
            self.drop_missing();
        } else {
            self.note_drops(step, edited, &draft);
        }
        self.check(step);
        // The user may discard what is back in the composer.
        let draft = self.session().draft.clone();
        if !self.session().outbox.has_text(&draft)
            && let Some(typed) = self.typed(&draft)
        {
            typed.is_dropped = true;
        }
    }

    fn close(&mut self, reason: usize) {
        let conn = self.session().conn.expect("it has a connection");
        if matches!(self.app.state.conns[&conn].phase, ConnPhase::Closed(_)) {
            return;
        }
        self.calls.retain(|(of, ..)| *of != conn);
        self.app.agent(AgentEvent::Closed(match reason {
            0 => CloseReason::Stopped,
            1 => CloseReason::Lost { error: "broken pipe".into() },
            _ => CloseReason::Exited { status: ExitInfo::default(), stderr_tail: Vec::new() },
        }));
    }

    /// The agent answers a call, or a new one is ready for it.
    fn reply(&mut self, call: usize, outcome: usize) {
        let conn = self.session().conn.expect("it has a connection");
        if matches!(self.app.state.conns[&conn].phase, ConnPhase::Starting { .. }) {
            self.app.handshake(AgentCapabilities { can_steer: true, ..all_capabilities() });
            return;
        }
        let Some(index) = call.checked_rem(self.calls.len()) else { return };
        let (conn, tag, text) = self.calls.remove(index);
        let error = |code, message: &str| Err(CallError::Agent(RpcError::new(code, message)));
        let stopped = |reason| Ok(Reply::TurnEnded { reason, usage: None });
        let result = match (outcome, &tag.purpose) {
            (0, _) => error(RpcError::AUTH_REQUIRED, "auth required"),
            (1, _) => error(RpcError::RESOURCE_NOT_FOUND, "Session not found"),
            (2, _) => error(-32603, "overloaded"),
            (3, _) => Err(CallError::TimedOut(60)),
            (4, Purpose::Prompt(_)) => Err(CallError::NotSent { error: "too large".into() }),
            (5, Purpose::Prompt(_)) => stopped(StopReason::Cancelled),
            (6, Purpose::Prompt(_)) => stopped(StopReason::Other("auth_required".into())),
            (_, Purpose::Prompt(_)) => stopped(StopReason::EndTurn),
            (_, Purpose::Steer(_)) => Ok(Reply::Steered { is_accepted: outcome.is_multiple_of(2) }),
            (_, Purpose::NewSession(_)) => {
                Ok(Reply::Session(SessionReply { id: Some("s".into()), ..SessionReply::default() }))
            }
            (_, Purpose::LoadSession(_) | Purpose::ResumeSession(_)) => {
                Ok(Reply::Session(SessionReply::default()))
            }
            _ => Ok(Reply::Done),
        };
        if let Some(typed) = text.and_then(|text| self.typed(&text)) {
            let is_refused = matches!(tag.purpose, Purpose::Prompt(_)) && matches!(outcome, 0 | 1 | 4 | 6);
            let is_not_added = matches!(tag.purpose, Purpose::Steer(_))
                && outcome != 3
                && result.as_ref() != Ok(&Reply::Steered { is_accepted: true });
            typed.allowed += usize::from(is_refused && !typed.was_cancelled || is_not_added);
        }
        self.app.play(core::Event::Agent(conn, AgentEvent::Replied(tag, result)));
    }

    /// Notes what was sent, and checks that it may be sent.
    fn note(&mut self, before: &[(String, bool)], has_other: bool, is_user: bool, step: Step) {
        for effect in std::mem::take(&mut self.app.fx) {
            match effect {
                Effect::Send(conn, AgentCommand::Call(tag, call)) => {
                    let text = match &call {
                        Call::Prompt(_, blocks) | Call::Steer(_, blocks) => match blocks.first() {
                            Some(ContentBlock::Text(text)) => Some(text.to_string()),
                            other => panic!("{other:?}"),
                        },
                        _ => None,
                    };
                    if let Some(typed) = text.as_ref().and_then(|text| self.typed(text)) {
                        assert!(
                            typed.allowed > 0,
                            "{text:?} was sent although the user did not submit it, after {step:?}"
                        );
                        let mut queued =
                            before.iter().filter(|(queued, _)| Some(queued) == text.as_ref()).peekable();
                        let held = queued.peek().is_some() && queued.all(|(_, held)| *held) && !has_other;
                        assert!(!held || is_user, "{text:?} was on hold, and is sent after {step:?}");
                        typed.allowed -= 1;
                        (typed.was_cancelled, typed.is_sent) = (false, true);
                    }
                    self.calls.push((conn, tag, text));
                }
                Effect::PreparePrompt(job) => self.jobs.push(job),
                Effect::Disconnect { conn, .. } => self.calls.retain(|(of, ..)| *of != conn),
                _ => {}
            }
        }
    }

    /// Which texts the user may have dropped with this step.
    fn note_drops(&mut self, step: Step, edited: Option<String>, draft: &str) {
        let Step::Act(index) = step else { return };
        match ACTIONS[index] {
            Action::Submit | Action::SendNow | Action::Steer => {
                if let Some(typed) = self.typed(draft) {
                    typed.is_dropped = false;
                }
                if let Some(typed) = edited.and_then(|text| self.typed(&text)) {
                    typed.is_dropped = true;
                }
            }
            Action::Remove => self.drop_missing(),
            _ => {}
        }
    }

    fn is_there(&self, text: &str) -> bool {
        self.app.state.sessions.values().any(|session| {
            let mut states = session.outbox.queue().map(|prompt| &prompt.state);
            session.draft.contains(text) || session.outbox.has_text(text)
                || states.any(|state| {
                    matches!(state, PromptState::Queued(_, Handling::Editing { draft }) if draft.contains(text))
                })
        })
    }

    fn drop_missing(&mut self) {
        let missing: Vec<String> = self.typed.keys().filter(|text| !self.is_there(text)).cloned().collect();
        for text in missing {
            self.typed.entry(text).or_default().is_dropped = true;
        }
    }

    fn check(&self, step: Step) {
        let session = self.session();
        for (text, typed) in &self.typed {
            let is_lost = !typed.is_sent && !typed.is_dropped && !self.is_there(text);
            assert!(!is_lost, "{text} was lost by {step:?}: {:?} {:?}", session.draft, session.outbox);
        }
        let is_held = |prompt: &&Prompt| session.outbox.is_waiting(prompt);
        let mut held = session.outbox.queue().skip_while(|prompt| !is_held(prompt));
        assert!(
            held.all(|prompt| is_held(&prompt)),
            "those on hold are last after {step:?}: {:?}",
            self.queue()
        );
        if session.can_prompt() {
            let next = session.outbox.next();
            assert_eq!(next, None, "a prompt is stuck after {step:?}: {:?}", session.outbox);
        }
        let running = session.outbox.running().is_some();
        assert!(!running || session.turn.is_running(), "a prompt runs without a turn after {step:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_prompt_is_sent_at_most_once_and_never_lost(steps in proptest::collection::vec(step(), 1..80)) {
        let mut world = World::new();
        for step in steps {
            world.step(step);
        }
    }
}
