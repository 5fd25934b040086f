//! A test bench: a state, a manual clock, and readable text for both sides.

mod mirror;
mod samples;
mod text;

use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::core::lifecycle::operations;
use crate::core::*;
use crate::model::*;

pub use mirror::Mirror;
pub use samples::*;
pub use text::digest;
use text::effect_line;

/// The connection, the session and its key in a new [`Bench`].
pub const CONN: ConnId = ConnId(1);
pub const KEY: SessionKey = SessionKey(1);
pub const ID: &str = "s";

/// What a bench drives: the core alone, or a front end with its dialogs.
pub trait Driven: Sized {
    type Event: From<Event>;

    fn start(setup: Setup, cx: &mut Cx) -> Self;

    fn state(&self) -> &State;

    fn state_mut(&mut self) -> &mut State;

    fn apply(&mut self, event: Self::Event, cx: &mut Cx);

    /// What follows a change by an operation within the same event.
    fn complete(&mut self, cx: &mut Cx);

    /// Shows a frame.
    fn show(&mut self, _now: Instant) {}
}

/// The core without a front end.
pub struct Core {
    pub state: State,
    /// The requests to a front end so far.
    pub requests: Vec<UiRequest>,
}

impl Driven for Core {
    type Event = Event;

    fn start(setup: Setup, cx: &mut Cx) -> Self {
        Self { state: start(setup, cx), requests: std::mem::take(&mut cx.requests) }
    }

    fn state(&self) -> &State {
        &self.state
    }

    fn state_mut(&mut self) -> &mut State {
        &mut self.state
    }

    fn apply(&mut self, event: Event, cx: &mut Cx) {
        update(&mut self.state, event, cx);
        self.requests.append(&mut cx.requests);
    }

    fn complete(&mut self, cx: &mut Cx) {
        tidy(&mut self.state, cx);
        save(&mut self.state, cx);
        self.requests.append(&mut cx.requests);
    }
}

pub type TestCore = Bench<Core>;

pub struct Bench<D> {
    pub driven: D,
    pub now: Instant,
    /// Effects since the last read, except for records.
    pub fx: Vec<Effect>,
    /// The notes recorded for the first session.
    pub saved: Vec<Note>,
    /// The spools, as a store has them.
    pub spools: BTreeMap<SessionKey, Vec<RecordedEvent>>,
}

impl State {
    /// The session list of the agent of the active session, to be filled.
    pub(crate) fn listed_mut(&mut self) -> &mut Vec<SessionInfo> {
        let conn = self.active_session().and_then(|session| session.conn);
        let conn = conn.and_then(|conn| self.conns.get_mut(&conn)).expect("the session has an agent");
        &mut conn.listing.sessions
    }
}

impl<D> Deref for Bench<D> {
    type Target = D;

    fn deref(&self) -> &D {
        &self.driven
    }
}

impl<D> DerefMut for Bench<D> {
    fn deref_mut(&mut self) -> &mut D {
        &mut self.driven
    }
}

impl<D: Driven> Bench<D> {
    pub fn terminal_started(&mut self, request_id: u64, id: &str, command: &str) {
        self.service(ServiceEvent::TerminalStarted {
            conn: CONN,
            request_id: RequestId(request_id),
            session: KEY,
            command: command.into(),
            result: Ok(id.into()),
        });
    }

    /// An agent was just started.
    pub fn started() -> Self {
        Self::with_spec(fake())
    }

    pub fn with_spec(spec: AgentSpec) -> Self {
        let setup = Setup { folder: PathBuf::from("/code/shop"), start_with: Some(spec), ..Setup::default() };
        let mut app = Self::start(setup);
        // No folder has templates, unless a test provides them.
        app.session_mut().templates.is_loaded = true;
        app
    }

    /// A state that was just started.
    pub fn start(setup: Setup) -> Self {
        let now = Instant::now();
        let mut cx = Cx::new(now);
        let driven = D::start(setup, &mut cx);
        Self { driven, now, fx: cx.effects, saved: Vec::new(), spools: BTreeMap::new() }
    }

    /// An agent with all capabilities whose session is open, without unread effects.
    pub fn ready() -> Self {
        let mut app = Self::started();
        app.handshake(all_capabilities()).open(ID);
        app.fx.clear();
        app
    }

    /// The same with a prompt, so that the session stays when another is opened.
    pub fn talked() -> Self {
        let mut app = Self::ready();
        app.submit("hello").end_turn(StopReason::EndTurn);
        app.fx.clear();
        app
    }

    /// An open session with a running turn.
    pub fn running() -> Self {
        let mut app = Self::ready();
        app.submit("go");
        app.fx.clear();
        app
    }

    /// Shows a frame, and lets time pass.
    pub fn wait(&mut self, seconds: u64) -> &mut Self {
        let now = self.now;
        self.driven.show(now);
        self.now += Duration::from_secs(seconds);
        self
    }

    /// Gives the last question of parlor this answer.
    pub fn decide(&mut self, position: usize) -> &mut Self {
        self.answer_last(UserAnswer::Option(position))
    }

    /// Answers the question about what a folder configures.
    pub fn decide_trust(&mut self, answer: TrustAnswer) -> &mut Self {
        self.decide(match answer {
            TrustAnswer::NotNow => 0,
            TrustAnswer::Use => 1,
            TrustAnswer::LeaveOut => 2,
        })
    }

    pub fn answer_last(&mut self, answer: UserAnswer) -> &mut Self {
        let id = self.state().questions.last().expect("a question is open").id;
        self.flow(|state, cx| operations::answer(state, id, answer, cx).unwrap())
    }

    /// The effects of an event.
    pub fn effects_after(&mut self, event: impl Into<D::Event>) -> Vec<Effect> {
        let mut cx = Cx::new(self.now);
        self.driven.apply(event.into(), &mut cx);
        cx.effects
    }

    pub fn play(&mut self, event: impl Into<D::Event>) -> &mut Self {
        let fx = self.effects_after(event);
        self.take(fx);
        self
    }

    /// No folder configures servers, unless a test provides them.
    fn take(&mut self, fx: Vec<Effect>) {
        for effect in fx {
            match effect {
                Effect::Keep { session: KEY, notes } => self.saved.extend(notes),
                Effect::Keep { session, notes } => self.keep(session, notes),
                Effect::Store(StoreJob::ReadSpool { key, uid, from }) => {
                    let of = self.spools.iter().find(|(spool, _)| uid == spool_uid(**spool));
                    let events = of.into_iter().flat_map(|(_, events)| events);
                    let events = Ok(events.filter(|event| event.turn >= from).cloned().collect());
                    self.tell(StoreNews::SpoolRead { key, from, events });
                }
                Effect::FindServers { folder } => {
                    self.service(ServiceEvent::ServersFound(folder, Ok(None)));
                }
                other => self.fx.push(other),
            }
        }
    }

    /// Takes notes of a spool, like a store.
    fn keep(&mut self, spool: SessionKey, notes: Vec<Note>) {
        for note in notes {
            match note {
                Note::Spool { .. } => {
                    self.spools.insert(spool, Vec::new());
                    self.tell(StoreNews::SavedAs { key: spool, uid: spool_uid(spool) });
                }
                Note::Event { turn, record } => {
                    if let Some(events) = self.spools.get_mut(&spool) {
                        events.push(RecordedEvent { at_ms: 0, turn, record: *record });
                    }
                }
                Note::Sync(upto) => _ = self.tell(StoreNews::Written { key: spool, upto }),
                _ => {}
            }
        }
    }

    pub fn tell(&mut self, news: StoreNews) -> &mut Self {
        self.service(ServiceEvent::Store(Box::new(news)))
    }

    pub fn agent(&mut self, event: AgentEvent) -> &mut Self {
        let conn = self.conn();
        self.play(Event::Agent(conn, event))
    }

    pub fn service(&mut self, event: ServiceEvent) -> &mut Self {
        self.play(Event::Service(event))
    }

    pub fn update(&mut self, update: SessionUpdate) -> &mut Self {
        self.agent(AgentEvent::Update(ID.into(), update))
    }

    pub fn updates(&mut self, updates: Vec<SessionUpdate>) -> &mut Self {
        for update in updates {
            self.update(update);
        }
        self
    }

    pub fn ask(&mut self, request_id: u64, request: AgentRequest) -> &mut Self {
        self.agent(AgentEvent::Request(RequestId(request_id), Box::new(request)))
    }

    pub fn handshake(&mut self, capabilities: AgentCapabilities) -> &mut Self {
        self.handshake_of(self.conn(), capabilities)
    }

    pub fn handshake_of(&mut self, conn: ConnId, capabilities: AgentCapabilities) -> &mut Self {
        self.play(Event::Agent(conn, AgentEvent::Started { pid: Some(7) }));
        let info = AgentInfo { capabilities, ..AgentInfo::default() };
        self.play(Event::Agent(conn, AgentEvent::Ready(Box::new(info))))
    }

    /// Answers the pending call that opens this session, with this id.
    pub fn open(&mut self, id: &str) -> &mut Self {
        let reply = SessionReply { id: Some(id.into()), ..SessionReply::default() };
        self.reply(Ok(Reply::Session(reply)))
    }

    /// Answers the latest call.
    pub fn reply(&mut self, result: Result<Reply, CallError>) -> &mut Self {
        self.reply_to(self.conn(), result)
    }

    pub fn latest_call(&self, conn: ConnId) -> CallTag {
        let calls = &self.state().conns[&conn].open_calls;
        calls.values().next_back().cloned().expect("a call is open")
    }

    pub fn reply_to(&mut self, conn: ConnId, result: Result<Reply, CallError>) -> &mut Self {
        let tag = self.latest_call(conn);
        self.play(Event::Agent(conn, AgentEvent::Replied(tag, result)))
    }

    pub fn fail(&mut self, code: i64, message: &str) -> &mut Self {
        self.reply(Err(CallError::Agent(RpcError::new(code, message))))
    }

    pub fn end_turn(&mut self, reason: StopReason) -> &mut Self {
        self.reply(Ok(Reply::TurnEnded { reason, usage: None }))
    }

    pub fn crash(&mut self) -> &mut Self {
        self.crash_of(self.conn())
    }

    pub fn crash_of(&mut self, conn: ConnId) -> &mut Self {
        let status = ExitInfo { code: Some(3), signal: None };
        let reason = CloseReason::Exited { status, stderr_tail: vec!["out of luck".into()] };
        self.play(Event::Agent(conn, AgentEvent::Closed(reason)))
    }

    /// Opens a session from the agent's list, in its reported folder only.
    pub fn open_listed(&mut self, id: &str) -> &mut Self {
        self.flow(|state, cx| operations::open_session(state, id.into(), cx));
        if self.state().questions.is_empty() { self } else { self.decide(0) }
    }

    pub fn submit(&mut self, text: &str) -> &mut Self {
        self.submit_in(KEY, text)
    }

    pub fn submit_in(&mut self, key: SessionKey, text: &str) -> &mut Self {
        self.flow(|state, cx| operations::submit(state, key, text.into(), cx))
    }

    pub fn cancel(&mut self) -> &mut Self {
        self.flow(|state, cx| operations::cancel_turn(state, KEY, cx))
    }

    /// Answers the first request with this option; `None` rejects.
    pub fn choose(&mut self, option: Option<usize>) -> &mut Self {
        self.give(option.map_or(UserAnswer::Dismiss, UserAnswer::Option))
    }

    /// Answers the first request. Does nothing if there is none, or if it does not have this answer.
    pub fn give(&mut self, answer: UserAnswer) -> &mut Self {
        let Some(first) = self.session().requests.front().map(|open| open.request_id) else { return self };
        let id = QuestionId::Agent(first);
        self.flow(|state, cx| operations::answer(state, id, answer, cx).unwrap_or_default())
    }

    /// The effects of an operation.
    pub fn effects_of(&mut self, change: impl FnOnce(&mut State, &mut Cx)) -> Vec<Effect> {
        let mut cx = Cx::new(self.now);
        change(self.state_mut(), &mut cx);
        self.driven.complete(&mut cx);
        cx.effects
    }

    pub fn flow(&mut self, change: impl FnOnce(&mut State, &mut Cx)) -> &mut Self {
        let fx = self.effects_of(change);
        self.take(fx);
        self
    }

    pub fn session(&self) -> &Session {
        &self.state().sessions[&KEY]
    }

    pub fn session_mut(&mut self) -> &mut Session {
        self.state_mut().sessions.get_mut(&KEY).expect("the first session")
    }

    /// Opens a tab, and activates it.
    pub fn open_tab(&mut self, folder: &str, agent: AgentSpec) -> SessionKey {
        let mut key = None;
        self.flow(|state, cx| key = Some(operations::open_tab(state, folder.into(), agent, cx)));
        key.expect("a tab opens")
    }

    /// A second, active tab with a separate process in another folder, whose session `two` is open.
    pub fn two_tabs() -> (Self, SessionKey, ConnId) {
        let mut app = Self::ready();
        let key = app.open_tab("/code/lib", fake());
        let conn = app.state().sessions[&key].conn.expect("it has an agent");
        app.handshake_of(conn, all_capabilities());
        app.reply_to(conn, Ok(Reply::Session(SessionReply { id: Some("two".into()), ..Default::default() })));
        app.fx.clear();
        (app, key, conn)
    }

    /// The queued prompts of the first session.
    pub fn queue(&self) -> Vec<&str> {
        self.session().outbox.queue().map(|prompt| prompt.text.as_str()).collect()
    }

    /// The files of the prompt that waits for them were read.
    pub fn prepared(&mut self, prepared: PreparedPrompt) -> &mut Self {
        let prompt = self.prompt_jobs().last().expect("files are read").prompt;
        self.service(ServiceEvent::PromptPrepared(KEY, prompt, Box::new(prepared)))
    }

    /// The notices of the first session, with their details.
    pub fn notices(&self) -> Vec<String> {
        let notices = self.session().transcript.items().iter().filter_map(|item| match &item.body {
            ItemBody::Notice { title, detail, .. } => {
                Some(format!("{title} {}", detail.as_deref().unwrap_or_default()))
            }
            _ => None,
        });
        notices.collect()
    }

    pub fn last_notice(&self) -> String {
        self.notices().pop().expect("a notice")
    }

    /// The events recorded for the first session.
    pub fn recorded(&self) -> Vec<RecordedEvent> {
        let events = self.saved.iter().filter_map(|note| match note {
            Note::Event { turn, record } => {
                Some(RecordedEvent { at_ms: 0, turn: *turn, record: (**record).clone() })
            }
            _ => None,
        });
        events.collect()
    }

    /// The jobs of the store since the last read.
    pub fn store_jobs(&mut self) -> Vec<StoreJob> {
        let jobs = self.fx.extract_if(.., |effect| matches!(effect, Effect::Store(_)));
        let jobs = jobs.filter_map(|effect| match effect {
            Effect::Store(job) => Some(job),
            _ => None,
        });
        jobs.collect()
    }

    /// The prompts whose files are read.
    pub fn prompt_jobs(&self) -> Vec<&PromptJob> {
        let jobs = self.fx.iter().filter_map(|effect| match effect {
            Effect::PreparePrompt(job) => Some(job),
            _ => None,
        });
        jobs.collect()
    }

    /// The blocks of the prompts that were sent.
    pub fn sent_prompts(&self) -> Vec<&[ContentBlock]> {
        let calls = self.fx.iter().filter_map(|effect| match effect {
            Effect::Send(_, AgentCommand::Call(_, Call::Prompt(_, blocks))) => Some(blocks.as_slice()),
            _ => None,
        });
        calls.collect()
    }

    /// The connection of the first session.
    pub fn conn(&self) -> ConnId {
        self.session().conn.expect("the session has an agent")
    }

    /// The effects since the last read; timers, git and settings are omitted.
    pub fn sent(&mut self) -> String {
        let lines: Vec<String> = std::mem::take(&mut self.fx).iter().filter_map(effect_line).collect();
        lines.join("\n")
    }

    pub fn expect_sent(&mut self, expected: &str) -> &mut Self {
        let sent = self.sent();
        assert_eq!(sent, trimmed(expected), "what was sent");
        self
    }

    pub fn expect(&mut self, expected: &str) -> &mut Self {
        assert_eq!(digest(self.session()), trimmed(expected), "the session");
        self
    }
}

impl TestCore {
    /// The user types this into the prompt of the active session.
    pub fn draft(&mut self, text: &str) -> &mut Self {
        self.flow(|state, _| {
            let session = state.sessions.get_mut(&state.active).expect("a session is active");
            session.draft = text.to_owned();
        })
    }
}

/// Applies updates within a turn of a ready session, and compares the digest.
pub fn check(updates: Vec<SessionUpdate>, expected: &str) {
    TestCore::running().updates(updates).expect(expected);
}

fn trimmed(text: &str) -> String {
    text.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n")
}

fn spool_uid(spool: SessionKey) -> String {
    format!("spool {}", spool.0)
}
