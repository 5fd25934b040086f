//! Runs the reducer with a real agent and real services, and waits for states.

use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use parlor::acp::tap::Tap;
use parlor::config::keymap::Context;
use parlor::core::{
    self, ConnPhase, Cx, Effect, ItemBody, MessagePart, Session, Setup, State, TurnEnd, ViewCommand,
};
use parlor::model::{
    Action, AgentSpec, Callbacks, ContentBlock, RecordedSession, Role, ServiceEvent, ToolContent,
};
use parlor::runtime::agents::Agents;
use parlor::runtime::clock::{self, Clock};
use parlor::runtime::effects::EffectRunner;
use parlor::store::Store;
use parlor::ui::dialogs::QuestionDialog;
use parlor::ui::dialogs::{self};
use parlor::ui::{App, Event, update};
use tokio::sync::mpsc;

const PATIENCE: Duration = Duration::from_secs(30);

/// A client.
pub struct Rig {
    pub app: App,
    /// All messages.
    pub tap: Tap,
    executor: EffectRunner,
    agents: Agents,
    services: mpsc::UnboundedReceiver<ServiceEvent>,
    clock: Clock,
    runtime: Option<tokio::runtime::Runtime>,
    /// The transcript after each change.
    pub seen: Vec<String>,
    /// How far the user's clock is ahead, so that there is a pause between actions.
    ahead: Duration,
    _logs: tempfile::TempDir,
}

/// The spec of an agent that is a program with arguments.
pub fn agent(command: impl Into<PathBuf>, args: &[&str]) -> AgentSpec {
    AgentSpec {
        name: "test".to_owned(),
        command: command.into().to_string_lossy().into_owned(),
        args: args.iter().map(ToString::to_string).collect(),
        callbacks: Callbacks::default(),
        ..AgentSpec::default()
    }
}

impl Deref for Rig {
    type Target = App;

    fn deref(&self) -> &App {
        &self.app
    }
}

impl DerefMut for Rig {
    fn deref_mut(&mut self) -> &mut App {
        &mut self.app
    }
}

impl Rig {
    /// Starts an agent in a folder.
    pub fn start(folder: &Path, spec: AgentSpec) -> Self {
        Self::begin(folder, spec, None, None, None)
    }

    /// Starts an agent with a protocol log.
    pub fn start_logged(folder: &Path, spec: AgentSpec, log: &Path) -> Self {
        Self::begin(folder, spec, None, None, Some(log))
    }

    /// Starts an agent with a store, and optionally resumes a session.
    pub fn start_kept(folder: &Path, spec: AgentSpec, store: &Store, uid: Option<&str>) -> Self {
        let reopen = uid.map(|uid| Box::new(store.reopen(uid).unwrap()));
        Self::begin(folder, spec, Some(store.clone()), reopen, None)
    }

    fn begin(
        folder: &Path,
        spec: AgentSpec,
        store: Option<Store>,
        reopen: Option<Box<RecordedSession>>,
        log: Option<&Path>,
    ) -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let now = Instant::now();
        let folder = folder.canonicalize().unwrap();
        let setup = Setup { folder, start_with: Some(spec), reopen, ..Setup::default() };
        let (app, effects) = parlor::ui::start(setup, now);
        let (sender, services) = mpsc::unbounded_channel();
        let logs = tempfile::tempdir().unwrap();
        let tap = Tap::default();
        if let Some(log) = log {
            tap.log_to(log).unwrap();
        }
        let executor = {
            let _inside = runtime.enter();
            EffectRunner::new(sender, store, tap.clone(), logs.path().to_owned())
        };
        let mut rig = Self {
            app,
            tap,
            executor,
            agents: Agents::default(),
            services,
            clock: Clock::new(now),
            runtime: Some(runtime),
            seen: Vec::new(),
            ahead: Duration::ZERO,
            _logs: logs,
        };
        rig.carry_out(effects);
        rig
    }

    /// The active session.
    pub fn session(&self) -> &Session {
        &self.state.sessions[&self.state.active]
    }

    /// Sends a prompt. A dialog that opened automatically is closed first.
    pub fn prompt(&mut self, text: &str) {
        if self.layers.top::<QuestionDialog>().is_some() {
            self.act(Action::Escape);
        }
        self.apply(Event::Draft(text.to_owned()));
        self.act(Action::Submit);
    }

    /// An action of the user after a pause, so that it counts for a question. A key of an answer only marks it, so Enter
    /// follows; the fields of a form get keys once the user has moved there.
    pub fn act(&mut self, action: Action) {
        dialogs::on_frame(&mut self.app, true, Instant::now() + self.ahead);
        self.ahead += Duration::from_secs(2);
        if dialogs::focus(&self.app) == Context::Form && dialogs::is_closed(&self.app) {
            self.apply(Event::Act(Action::AnswerRequest));
        }
        let is_answer = matches!(action, Action::Choose(_) | Action::Yes | Action::No);
        let needs_enter = is_answer && dialogs::has_keys(&self.app);
        self.apply(Event::Act(action));
        if needs_enter {
            self.apply(Event::Act(Action::Accept));
        }
    }

    /// Applies an event and executes its effects.
    pub fn apply(&mut self, event: impl Into<Event>) {
        let effects = update(&mut self.app, event, Instant::now() + self.ahead);
        let text = self.text();
        if self.seen.last() != Some(&text) {
            self.seen.push(text);
        }
        self.carry_out(effects);
    }

    /// Quits, waits until the agents have ended, and saves pending changes.
    pub fn quit_and_keep(&mut self) {
        self.quit();
        assert_eq!(self.executor.shut_down(), None);
    }

    /// Performs an operation, and executes its effects.
    pub fn operate(&mut self, operation: impl FnOnce(&mut State, &mut Cx)) {
        let mut cx = Cx::new(Instant::now());
        operation(&mut self.app.state, &mut cx);
        self.carry_out(cx.effects);
    }

    fn carry_out(&mut self, effects: Vec<Effect>) {
        let now = Instant::now();
        for effect in effects {
            match effect {
                Effect::Timer(id, after) => self.clock.set(id, now + after),
                Effect::StopTimer(id) => self.clock.stop(id),
                // Without a view, the draft is set directly.
                Effect::View(ViewCommand::SetDraft(text) | ViewCommand::ShowDraft(_, text)) => {
                    self.apply(Event::Draft(text));
                }
                other => {
                    let runtime = self.runtime.as_ref().unwrap();
                    let _inside = runtime.enter();
                    self.executor.carry_out(other, &mut self.agents, now);
                }
            }
        }
    }

    /// Waits until a condition holds.
    pub fn wait(&mut self, what: &str, holds: impl Fn(&State) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !holds(&self.state) {
            assert!(
                Instant::now() < deadline,
                "waited for {what}\n{}\nasks: {:?}\nview: {:?}\nphase: {:?}, turn: {:?}",
                self.text(),
                self.session().requests,
                self.request_view,
                self.session().phase,
                self.session().turn,
            );
            self.step(deadline);
        }
    }

    /// Waits until the session accepts prompts.
    pub fn wait_ready(&mut self) {
        self.wait("a ready session", |state| {
            state.sessions[&state.active].phase == parlor::core::SessionPhase::Ready
        });
    }

    /// Waits until no turn is running.
    pub fn wait_idle(&mut self) {
        self.wait("the end of the turn", |state| !state.sessions[&state.active].turn.is_running());
    }

    /// Waits until a request of the agent is shown.
    pub fn wait_ask(&mut self) {
        self.wait("a request of the agent", |state| !state.sessions[&state.active].requests.is_empty());
    }

    /// Waits until the transcript contains a text.
    pub fn wait_text(&mut self, text: &str) {
        self.wait(&format!("{text:?} in the transcript"), |state| {
            digest(&state.sessions[&state.active]).contains(text)
        });
    }

    /// Waits for a text. If the agent lost the conversation, the prompt is sent without the history.
    pub fn wait_text_past_offers(&mut self, text: &str) {
        let is_there = |state: &State| digest(&state.sessions[&state.active]).contains(text);
        let is_held = |state: &State| state.sessions[&state.active].outbox.undecided().is_some();
        self.wait(&format!("{text:?} or an offer"), |state| is_there(state) || is_held(state));
        if !is_there(&self.state) {
            self.act(Action::SendAgain);
        }
        self.wait_text(text);
    }

    /// Sends a prompt and waits for the end of its turn.
    pub fn ask(&mut self, text: &str) {
        self.prompt(text);
        self.wait("the turn to begin", |state| state.sessions[&state.active].turn.is_running());
        self.wait_idle();
    }

    /// Sends a prompt and allows all requests of the policy once.
    pub fn ask_and_allow(&mut self, text: &str) {
        self.prompt(text);
        self.wait("the turn to begin", |state| state.sessions[&state.active].turn.is_running());
        loop {
            self.wait("the end of the turn or a question", |state| {
                let session = &state.sessions[&state.active];
                !session.turn.is_running() || !session.requests.is_empty()
            });
            if self.session().requests.is_empty() {
                return;
            }
            self.act(Action::Choose(1));
        }
    }

    /// Quits, and waits until every agent has ended.
    pub fn quit(&mut self) {
        self.act(Action::Quit);
        // With several tabs, the first press asks.
        if !self.layers.is_empty() {
            self.act(Action::Quit);
        }
        self.wait("the end of all agents", |state| {
            state.conns.values().all(|conn| matches!(conn.phase, ConnPhase::Closed(_)))
        });
    }

    /// The transcript, with one or more lines per item.
    pub fn text(&self) -> String {
        digest(self.session())
    }

    fn step(&mut self, deadline: Instant) {
        enum Woken {
            Agent(parlor::model::ConnId, Option<parlor::model::Batch>),
            Service(ServiceEvent),
            Time,
        }
        let at = self
            .clock
            .next_deadline(self.executor.next_connect(), false)
            .map_or(deadline, |at| at.min(deadline));
        let runtime = self.runtime.take().unwrap();
        let woken = runtime.block_on(async {
            tokio::select! {
                (conn, batch) = self.agents.next() => Woken::Agent(conn, batch),
                Some(event) = self.services.recv() => Woken::Service(event),
                () = clock::sleep_until(Some(at)) => Woken::Time,
            }
        });
        self.runtime = Some(runtime);
        match woken {
            Woken::Agent(conn, None) => self.executor.forget(conn),
            Woken::Agent(conn, Some(batch)) => {
                for event in batch {
                    self.apply(core::Event::Agent(conn, event));
                }
            }
            Woken::Service(event) => self.apply(core::Event::Service(event)),
            Woken::Time => {
                let now = Instant::now();
                for id in self.clock.take_due(now) {
                    self.apply(core::Event::Timer(id));
                }
                let runtime = self.runtime.as_ref().unwrap();
                let _inside = runtime.enter();
                self.executor.connect_due(&mut self.agents, now);
            }
        }
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        self.executor.force_all();
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_timeout(Duration::from_secs(1));
        }
    }
}

/// A session as text, without layout.
pub fn digest(session: &Session) -> String {
    let mut lines = Vec::new();
    for item in session.transcript.items() {
        match &item.body {
            ItemBody::Message(message) => {
                let who = match message.role {
                    Role::User => "user",
                    Role::Agent => "agent",
                    Role::Thought => "thought",
                    Role::SubagentMessage => "letter",
                };
                for part in &message.parts {
                    lines.push(match part {
                        MessagePart::Text(text) => format!("{who}: {text}"),
                        MessagePart::Block(block) => format!("{who}: {}", block_digest(block)),
                    });
                }
            }
            // Only items of the agent; parlor's own items record its callbacks.
            ItemBody::Tool(tool) if tool.is_own => {}
            ItemBody::Tool(tool) => {
                lines.push(format!("tool {} [{:?} {:?}] {}", tool.id, tool.kind, tool.status, tool.title));
                for content in &tool.content {
                    lines.push(match content {
                        ToolContent::Block(block) => format!("  {}", block_digest(block)),
                        ToolContent::Diff(diff) => format!("  diff {}", diff.path.display()),
                        ToolContent::Terminal(id) => {
                            let output =
                                session.terminals.get(id).map(|view| view.output.clone()).unwrap_or_default();
                            format!("  terminal {}", String::from_utf8_lossy(&output))
                        }
                        ToolContent::Unknown(raw) => format!("  unknown {}", raw.0),
                    });
                }
            }
            ItemBody::TurnEnd(TurnEnd::Stopped { reason, .. }) => lines.push(format!("stopped: {reason:?}")),
            ItemBody::TurnEnd(TurnEnd::Failed { error, .. }) => lines.push(format!("failed: {error}")),
            ItemBody::TurnEnd(TurnEnd::AgentDied { cause, stderr_tail }) => {
                lines.push(format!("died: {cause} {stderr_tail:?}"));
            }
            ItemBody::Notice { title, detail, .. } => {
                lines.push(format!("notice: {title} {}", detail.as_deref().unwrap_or_default()));
            }
            other => lines.push(format!("{other:?}")),
        }
    }
    lines.join("\n")
}

fn block_digest(block: &ContentBlock) -> String {
    match block {
        ContentBlock::Text(text) => text.to_string(),
        ContentBlock::Image { mime_type, .. } => format!("image {mime_type}"),
        ContentBlock::Audio { mime_type, .. } => format!("audio {mime_type}"),
        ContentBlock::ResourceLink(link) => format!("link {}", link.uri),
        ContentBlock::Resource { uri, .. } => format!("resource {uri}"),
        ContentBlock::Unknown(raw) => format!("unknown {}", raw.0),
    }
}
