//! Runs the reducer with a real agent and real services, and waits for what the state is to become.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use parlor::acp::tap::Tap;
use parlor::app::{
    ConnPhase, Effect, Event, ItemBody, MessagePart, Modal, Session, Setup, State, TurnEnd, ViewCommand,
    update,
};
use parlor::model::{
    Action, AgentSpec, Callbacks, ContentBlock, RecordedSession, Role, ServiceEvent, ToolContent,
};
use parlor::runtime::agents::Agents;
use parlor::runtime::clock::{self, Clock};
use parlor::runtime::effects::EffectRunner;
use parlor::services::store::Store;
use parlor::ui::theme::Theme;
use tokio::sync::mpsc;

const PATIENCE: Duration = Duration::from_secs(30);

/// A client at work.
pub struct Rig {
    pub state: State,
    /// All that goes over the wire.
    pub tap: Tap,
    doer: EffectRunner,
    agents: Agents,
    services: mpsc::UnboundedReceiver<ServiceEvent>,
    clock: Clock,
    runtime: Option<tokio::runtime::Runtime>,
    /// What the shown transcript was, each time that it changed.
    pub seen: Vec<String>,
    /// How far the user's time is ahead: between two wishes there is always a pause.
    ahead: Duration,
    _logs: tempfile::TempDir,
}

/// How to start an agent that is a program with arguments.
pub fn agent(command: impl Into<PathBuf>, args: &[&str]) -> AgentSpec {
    AgentSpec {
        name: "test".to_owned(),
        command: command.into().to_string_lossy().into_owned(),
        args: args.iter().map(ToString::to_string).collect(),
        callbacks: Callbacks::default(),
        ..AgentSpec::default()
    }
}

impl Rig {
    /// Starts an agent for a folder.
    pub fn start(folder: &Path, spec: AgentSpec) -> Self {
        Self::begin(folder, spec, None, None, None)
    }

    /// The same, with all traffic in a file.
    pub fn start_logged(folder: &Path, spec: AgentSpec, log: &Path) -> Self {
        Self::begin(folder, spec, None, None, Some(log))
    }

    /// Starts an agent whose sessions are kept, to go on with one of them if so.
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
        let (state, effects) = parlor::app::start(setup, now);
        let (sender, services) = mpsc::unbounded_channel();
        let logs = tempfile::tempdir().unwrap();
        let tap = Tap::default();
        if let Some(log) = log {
            tap.log_to(log).unwrap();
        }
        let doer = {
            let _inside = runtime.enter();
            EffectRunner::new(
                sender,
                store,
                tap.clone(),
                logs.path().to_owned(),
                Box::new(|_| Theme::plain()),
            )
        };
        let mut rig = Self {
            state,
            tap,
            doer,
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

    /// The session on the screen.
    pub fn session(&self) -> &Session {
        &self.state.sessions[&self.state.active]
    }

    /// Types a prompt and sends it. A dialog that opened by itself is closed first.
    pub fn prompt(&mut self, text: &str) {
        if matches!(self.state.modals.last(), Some(Modal::Choice(_))) {
            self.act(Action::Escape);
        }
        self.apply(Event::Draft(text.to_owned()));
        self.act(Action::Submit);
    }

    /// A wish of the user, long after the last one: no dialog's grace period holds it back.
    pub fn act(&mut self, action: Action) {
        self.ahead += Duration::from_secs(2);
        self.apply(Event::Act(action));
    }

    /// Applies an event and carries out what follows.
    pub fn apply(&mut self, event: Event) {
        let effects = update(&mut self.state, event, Instant::now() + self.ahead);
        let text = self.text();
        if self.seen.last() != Some(&text) {
            self.seen.push(text);
        }
        self.carry_out(effects);
    }

    /// Leaves, waits for the agents' ends, and writes what is to be kept.
    pub fn quit_and_keep(&mut self) {
        self.quit();
        assert_eq!(self.doer.shut_down(), None);
    }

    /// Carries out effects that a test made itself.
    pub fn run(&mut self, effects: Vec<Effect>) {
        self.carry_out(effects);
    }

    fn carry_out(&mut self, effects: Vec<Effect>) {
        let now = Instant::now();
        for effect in effects {
            match effect {
                Effect::Timer(id, after) => self.clock.set(id, now + after),
                Effect::StopTimer(id) => self.clock.stop(id),
                // The composer is the view's; here the draft stands for it.
                Effect::View(ViewCommand::SetDraft(text)) => self.apply(Event::Draft(text)),
                other => {
                    let runtime = self.runtime.as_ref().unwrap();
                    let _inside = runtime.enter();
                    self.doer.carry_out(other, &mut self.agents, now);
                }
            }
        }
    }

    /// Waits until the state is as wanted.
    pub fn wait(&mut self, what: &str, holds: impl Fn(&State) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !holds(&self.state) {
            assert!(
                Instant::now() < deadline,
                "waited for {what}\n{}\nasks: {:?}\nview: {:?}\nphase: {:?}, turn: {:?}",
                self.text(),
                self.session().asks,
                self.state.ask_view,
                self.session().phase,
                self.session().turn,
            );
            self.step(deadline);
        }
    }

    /// Waits until the session takes prompts.
    pub fn wait_ready(&mut self) {
        self.wait("a ready session", |state| {
            state.sessions[&state.active].phase == parlor::app::SessionPhase::Ready
        });
    }

    /// Waits until no turn runs.
    pub fn wait_idle(&mut self) {
        self.wait("the end of the turn", |state| !state.sessions[&state.active].turn.is_running());
    }

    /// Waits until a request of the agent is before the user.
    pub fn wait_ask(&mut self) {
        self.wait("a request of the agent", |state| !state.sessions[&state.active].asks.is_empty());
    }

    /// Waits until the transcript holds a text.
    pub fn wait_text(&mut self, text: &str) {
        self.wait(&format!("{text:?} in the transcript"), |state| {
            digest(&state.sessions[&state.active]).contains(text)
        });
    }

    /// The same; an agent that has forgotten the conversation is told nothing of it.
    pub fn wait_text_past_offers(&mut self, text: &str) {
        let is_there = |state: &State| digest(&state.sessions[&state.active]).contains(text);
        let is_held = |state: &State| state.sessions[&state.active].prompts.is_held();
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

    /// The same; all that the policy asks about is allowed once.
    pub fn ask_and_allow(&mut self, text: &str) {
        self.prompt(text);
        self.wait("the turn to begin", |state| state.sessions[&state.active].turn.is_running());
        loop {
            self.wait("the end of the turn or a question", |state| {
                let session = &state.sessions[&state.active];
                !session.turn.is_running() || !session.asks.is_empty()
            });
            if self.session().asks.is_empty() {
                return;
            }
            self.act(Action::Choose(1));
        }
    }

    /// Leaves, and waits until every agent has ended.
    pub fn quit(&mut self) {
        self.act(Action::Quit);
        self.wait("the end of all agents", |state| {
            state.conns.values().all(|conn| matches!(conn.phase, ConnPhase::Closed(_)))
        });
    }

    /// The transcript, a line or more for each item.
    pub fn text(&self) -> String {
        digest(self.session())
    }

    fn step(&mut self, deadline: Instant) {
        enum Woken {
            Agent(parlor::model::ConnId, Option<parlor::model::Batch>),
            Service(ServiceEvent),
            Time,
        }
        let at =
            self.clock.next_deadline(self.doer.next_connect(), false).map_or(deadline, |at| at.min(deadline));
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
            Woken::Agent(conn, None) => self.doer.forget(conn),
            Woken::Agent(conn, Some(batch)) => {
                for event in batch {
                    self.apply(Event::Agent(conn, event));
                }
            }
            Woken::Service(event) => self.apply(Event::Service(event)),
            Woken::Time => {
                let now = Instant::now();
                for id in self.clock.take_due(now) {
                    self.apply(Event::Timer(id));
                }
                let runtime = self.runtime.as_ref().unwrap();
                let _inside = runtime.enter();
                self.doer.connect_due(&mut self.agents, now);
            }
        }
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        self.doer.force_all();
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_timeout(Duration::from_secs(1));
        }
    }
}

/// A session as text: what a user would read, without layout.
pub fn digest(session: &Session) -> String {
    let mut lines = Vec::new();
    for item in session.transcript.items() {
        match &item.body {
            ItemBody::Message(message) => {
                let who = match message.role {
                    Role::User => "user",
                    Role::Agent => "agent",
                    Role::Thought => "thought",
                    Role::Letter => "letter",
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
        ContentBlock::Text(text) => text.clone(),
        ContentBlock::Image { mime_type, .. } => format!("image {mime_type}"),
        ContentBlock::Audio { mime_type, .. } => format!("audio {mime_type}"),
        ContentBlock::ResourceLink(link) => format!("link {}", link.uri),
        ContentBlock::Resource { uri, .. } => format!("resource {uri}"),
        ContentBlock::Unknown(raw) => format!("unknown {}", raw.0),
    }
}
