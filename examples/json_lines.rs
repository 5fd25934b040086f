//! Runs a prompt with an agent in the current folder, and prints what there is to see as lines of JSON:
//! `cargo run --example json_lines -- PROMPT [-- AGENT COMMAND…]`. Without a command, it starts the demo agent.
//!
//! The smallest front end: the core with the services of the runtime, without `parlor::ui`. It shows how a loop passes
//! events to the core and carries out the effects, how a front end in another process would follow a session, and how
//! questions are answered. It refuses all of them, and fails if the turn fails.

use std::io::Write as _;
use std::time::Instant;

use anyhow::{Context as _, anyhow};
use parlor::acp::tap::Tap;
use parlor::core::lifecycle::operations;
use parlor::core::state::shown::{self, Seen};
use parlor::core::{self, Cx, Effect, Event, SessionPhase, Setup, State, UserAnswer};
use parlor::model::{AgentSpec, Note, Record, ServiceEvent, TurnOutcome};
use parlor::runtime::{agents::Agents, clock, effects::EffectRunner};
use tokio::sync::mpsc;

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let mut args = std::env::args().skip(1);
    let prompt = args.next().context("usage: json_lines PROMPT [-- AGENT COMMAND…]")?;
    let temporary = tempfile::tempdir()?;
    if prompt == "demo-agent" {
        return parlor::demo::run(temporary.path().to_owned());
    }
    let mut command: Vec<String> = args.skip_while(|arg| arg == "--").collect();
    if command.is_empty() {
        command = vec![std::env::current_exe()?.to_string_lossy().into_owned(), "demo-agent".to_owned()];
    }
    let name = "agent".to_owned();
    let agent = AgentSpec { name, command: command.remove(0), args: command, ..AgentSpec::default() };
    let folder = std::env::current_dir()?.canonicalize()?;
    let setup = Setup { folder, start_with: Some(agent), is_plain: true, ..Setup::default() };
    let mut cx = Cx::new(Instant::now());
    let (sender, services) = mpsc::unbounded_channel();
    let mut state = core::start(setup, &mut cx);
    let session = state.active;
    // It is sent once the session is open.
    operations::submit(&mut state, session, prompt, &mut cx);
    let client = Client {
        state,
        runner: EffectRunner::new(sender, None, Tap::default(), temporary.path().to_owned()),
        agents: Agents::default(),
        services,
        clock: clock::Clock::new(cx.now),
        is_success: None,
        printed: Seen::default(),
    };
    client.run(cx).await
}

struct Client {
    state: State,
    runner: EffectRunner,
    agents: Agents,
    services: mpsc::UnboundedReceiver<ServiceEvent>,
    clock: clock::Clock,
    /// Whether the turn was successful, once it has ended.
    is_success: Option<bool>,
    printed: Seen,
}

impl Client {
    async fn run(mut self, first: Cx) -> anyhow::Result<()> {
        self.carry_out(first);
        while !(self.runner.is_leaving && self.agents.is_empty()) {
            let deadline = self.clock.next_deadline(self.runner.next_connect(), false);
            let mut events: Vec<Event> = tokio::select! {
                (conn, batch) = self.agents.next() => {
                    if batch.is_none() { self.runner.forget(conn); }
                    batch.into_iter().flatten().map(|event| Event::Agent(conn, event)).collect()
                }
                Some(event) = self.services.recv() => vec![Event::Service(event)],
                () = clock::sleep_until(deadline) => Vec::new(),
            };
            let now = Instant::now();
            events.extend(self.clock.take_due(now).into_iter().map(Event::Timer));
            events.into_iter().try_for_each(|event| self.apply(event))?;
            self.runner.connect_due(&mut self.agents, now);
            let is_over = match self.state.active_session().map(|session| &session.phase) {
                Some(SessionPhase::NeedsSignIn | SessionPhase::Failed(_) | SessionPhase::Ended { .. }) => {
                    true
                }
                _ => self.is_success.is_some(),
            };
            if is_over && !self.state.is_quitting {
                let mut cx = Cx::new(now);
                operations::quit(&mut self.state, &mut cx);
                self.carry_out(cx);
            }
        }
        self.runner.shut_down();
        if self.is_success == Some(true) { Ok(()) } else { Err(anyhow!("the turn failed")) }
    }

    fn apply(&mut self, event: Event) -> anyhow::Result<()> {
        let mut cx = Cx::new(Instant::now());
        core::update(&mut self.state, event, &mut cx);
        let changes = self.printed.changes(&self.state);
        if !changes.is_empty() {
            let line = serde_json::to_string(&changes)?;
            writeln!(std::io::stdout(), "{line}").context("cannot write to standard output")?;
        }
        self.carry_out(cx);
        let question = shown::questions(&self.state).next().map(|question| question.id);
        question.map_or(Ok(()), |id| self.apply(Event::Answer(id, UserAnswer::Decline)))
    }

    fn carry_out(&mut self, cx: Cx) {
        for effect in cx.effects {
            match effect {
                Effect::Timer(id, after) => self.clock.set(id, cx.now + after),
                Effect::StopTimer(id) => self.clock.stop(id),
                // What is recorded of a session includes how its turns end.
                Effect::Keep { session, notes } if session == self.state.active => {
                    for note in notes {
                        let Note::Event { record, .. } = note else { continue };
                        let Record::TurnEnded(outcome) = *record else { continue };
                        self.is_success = Some(matches!(outcome, TurnOutcome::Stopped { .. }));
                    }
                }
                other => self.runner.carry_out(other, &mut self.agents, cx.now),
            }
        }
    }
}
