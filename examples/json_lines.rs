//! Runs a prompt with an agent in the current folder, and prints the events of the session as lines of JSON:
//! `cargo run --example json_lines -- PROMPT [-- AGENT COMMAND…]`. Without a command, it starts the demo agent.
//!
//! The smallest front end: the core with the services of the runtime, without `parlor::ui`. It shows how a loop passes
//! events to the core and carries out the effects, how a front end finds what has changed, and how it answers
//! questions. It refuses all of them, and fails if the turn fails.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::time::Instant;

use anyhow::{Context as _, anyhow};
use parlor::acp::tap::Tap;
use parlor::core::lifecycle::operations;
use parlor::core::{
    self, Cx, Effect, Event, Item, ItemBody, Mark, MessagePart, OpenRequestKind, QuestionId, SessionPhase,
    Setup, State, UserAnswer,
};
use parlor::model::{AgentSpec, ItemId, Note, Record, ServiceEvent, SessionKey, TurnOutcome};
use parlor::runtime::{agents::Agents, clock, effects::EffectRunner};
use serde_json::{Value, json};
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
        printed_until: BTreeMap::new(),
        printed: BTreeMap::new(),
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
    printed_until: BTreeMap<SessionKey, Mark>,
    /// What was printed last about an item, a plan or an agent.
    printed: BTreeMap<String, Value>,
}

impl Client {
    async fn run(mut self, first: Cx) -> anyhow::Result<()> {
        self.carry_out(first)?;
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
                self.carry_out(cx)?;
            }
        }
        self.runner.shut_down();
        if self.is_success == Some(true) { Ok(()) } else { Err(anyhow!("the turn failed")) }
    }

    fn apply(&mut self, event: Event) -> anyhow::Result<()> {
        let mut cx = Cx::new(Instant::now());
        core::update(&mut self.state, event, &mut cx);
        // This front end has no dialogs to open.
        self.state.ui_requests.clear();
        self.print_changes()?;
        self.carry_out(cx)?;
        let Some((id, question)) = first_question(&self.state) else { return Ok(()) };
        print(&question)?;
        self.apply(Event::Answer(id, UserAnswer::Decline))
    }

    fn carry_out(&mut self, cx: Cx) -> anyhow::Result<()> {
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
                        print(&json!({"event": "turn_ended", "outcome": outcome}))?;
                    }
                }
                other => self.runner.carry_out(other, &mut self.agents, cx.now),
            }
        }
        Ok(())
    }

    fn print_changes(&mut self) -> anyhow::Result<()> {
        let mut events = Vec::new();
        for (id, info) in self.state.conns.iter().filter_map(|(id, conn)| Some((id, conn.info.as_ref()?))) {
            events.push((format!("agent {id}"), json!({"event": "agent_ready", "name": info.name})));
        }
        for (key, session) in &*self.state.sessions {
            let transcript = &session.transcript;
            let mark = self.printed_until.insert(*key, transcript.mark());
            let changed: BTreeSet<ItemId> = match mark.and_then(|mark| transcript.changed_since(mark)) {
                Some(changed) => changed.collect(),
                None => transcript.items().iter().map(|item| item.id).collect(),
            };
            let items = changed.into_iter().filter_map(|id| transcript.get(id));
            events.extend(items.filter_map(|item| Some((format!("{key} {:?}", item.id), event_of(item)?))));
            let plans = Some(&session.plans).filter(|plans| !plans.is_empty());
            events
                .extend(plans.map(|plans| (format!("plan {key}"), json!({"event": "plan", "plans": plans}))));
        }
        for (subject, event) in events {
            if self.printed.insert(subject, event.clone()).as_ref() != Some(&event) {
                print(&event)?;
            }
        }
        Ok(())
    }
}

/// The event of an item; `None`: it is not complete, or not shown.
fn event_of(item: &Item) -> Option<Value> {
    match &item.body {
        ItemBody::Message(message) if !message.is_open => {
            let text: String = message.parts.iter().filter_map(MessagePart::text).collect();
            Some(json!({"event": "message", "role": message.role, "text": text}))
        }
        ItemBody::Tool(call) if !item.is_hidden() => Some(json!({
            "event": "tool_call", "id": call.id, "title": call.title, "kind": call.kind, "status": call.status,
        })),
        ItemBody::Notice { severity, title, detail, .. } => {
            Some(json!({"event": "notice", "severity": severity, "title": title, "detail": detail}))
        }
        _ => None,
    }
}

/// The question that was asked first: of parlor, or of an agent.
fn first_question(state: &State) -> Option<(QuestionId, Value)> {
    let event = |title: &str, answers| json!({"event": "question", "title": title, "answers": answers});
    if let Some(question) = state.questions.first() {
        let answers = question.answers.iter().map(|answer| answer.label.clone()).collect();
        return Some((question.id, event(&question.title, answers)));
    }
    let mut sessions = state.sessions.values();
    let (session, open) = sessions.find_map(|session| Some((session, session.requests.front()?)))?;
    let title = match &open.kind {
        OpenRequestKind::Permission { tool, .. } => &session.tool_call(*tool)?.title,
        OpenRequestKind::Access(access) => access.why.heading(&access.access),
        OpenRequestKind::Elicitation(request) => &request.message,
    };
    Some((QuestionId::Agent(open.request_id), event(title, open.kind.answers())))
}

fn print(event: &Value) -> anyhow::Result<()> {
    writeln!(std::io::stdout(), "{event}").context("cannot write to standard output")
}
