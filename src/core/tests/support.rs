//! A test bench: a state, a manual clock, and readable text for both sides.

use crate::core::lifecycle::operations;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::ops::{Deref, DerefMut};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::core::*;
use crate::model::*;
use crate::ui::{App, dialogs, start, update};

/// The connection, the session and its key in a new [`TestApp`].
pub const CONN: ConnId = ConnId(1);
pub const KEY: SessionKey = SessionKey(1);
pub const ID: &str = "s";

pub struct TestApp {
    pub app: App,
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

impl Deref for TestApp {
    type Target = App;

    fn deref(&self) -> &App {
        &self.app
    }
}

impl DerefMut for TestApp {
    fn deref_mut(&mut self) -> &mut App {
        &mut self.app
    }
}

impl TestApp {
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
        Self::with_spec(AgentSpec { name: "fake".into(), command: "fake".into(), ..AgentSpec::default() })
    }

    pub fn with_spec(spec: AgentSpec) -> Self {
        let now = Instant::now();
        let setup = Setup { folder: PathBuf::from("/code/shop"), start_with: Some(spec), ..Setup::default() };
        let (mut started, fx) = start(setup, now);
        // No folder has templates, unless a test provides them.
        started.state.sessions.get_mut(&KEY).expect("the first session").templates.is_loaded = true;
        Self::of(started, now, fx)
    }

    /// A state that was just started.
    pub fn of(app: App, now: Instant, fx: Vec<Effect>) -> Self {
        Self { app, now, fx, saved: Vec::new(), spools: BTreeMap::new() }
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
        dialogs::refresh(&mut self.app);
        dialogs::on_frame(&mut self.app, true, self.now);
        self.now += Duration::from_secs(seconds);
        self
    }

    /// The key of an answer; a question that the user did not open needs Enter too.
    pub fn answer(&mut self, position: u8) -> &mut Self {
        let asks = dialogs::has_keys(&self.app);
        self.play(Event::Act(Action::Choose(position)));
        if asks { self.play(Event::Act(Action::Accept)) } else { self }
    }

    /// Gives the last question of parlor this answer.
    pub fn decide(&mut self, position: usize) -> &mut Self {
        self.answer_last(UserAnswer::Option(position))
    }

    pub fn answer_last(&mut self, answer: UserAnswer) -> &mut Self {
        let id = self.state.questions.last().expect("a question is open").id;
        self.flow(|state, cx| operations::answer(state, id, answer, cx).unwrap())
    }

    pub fn play(&mut self, event: Event) -> &mut Self {
        let fx = update(&mut self.app, event, self.now);
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
                    let found = Event::Service(ServiceEvent::ServersFound(folder, Ok(None)));
                    let more = update(&mut self.app, found, self.now);
                    self.take(more);
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
                Note::Sync(upto) => self.tell(StoreNews::Written { key: spool, upto }),
                _ => {}
            }
        }
    }

    fn tell(&mut self, news: StoreNews) {
        let reported = Event::Service(ServiceEvent::Store(Box::new(news)));
        let more = update(&mut self.app, reported, self.now);
        self.take(more);
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
        self.agent(AgentEvent::Started { pid: Some(7) });
        self.agent(AgentEvent::Ready(Box::new(AgentInfo { capabilities, ..AgentInfo::default() })))
    }

    /// Answers the pending call that opens this session, with this id.
    pub fn open(&mut self, id: &str) -> &mut Self {
        let reply = SessionReply { id: Some(id.into()), ..SessionReply::default() };
        self.reply(Ok(Reply::Session(reply)))
    }

    /// Answers the latest call.
    pub fn reply(&mut self, result: Result<Reply, CallError>) -> &mut Self {
        let conn = self.conn();
        let tag = self.state.conns[&conn].open_calls.values().next_back().cloned().expect("a call is open");
        self.play(Event::Agent(conn, AgentEvent::Replied(tag, result)))
    }

    pub fn fail(&mut self, code: i64, message: &str) -> &mut Self {
        self.reply(Err(CallError::Agent(RpcError::new(code, message))))
    }

    pub fn end_turn(&mut self, reason: StopReason) -> &mut Self {
        self.reply(Ok(Reply::TurnEnded { reason, usage: None }))
    }

    pub fn crash(&mut self) -> &mut Self {
        self.agent(AgentEvent::Closed(CloseReason::Exited {
            status: ExitInfo { code: Some(3), signal: None },
            stderr_tail: vec!["out of luck".into()],
        }))
    }

    /// Opens a session from the agent's list, in its reported folder only.
    pub fn open_listed(&mut self, id: &str) -> &mut Self {
        self.flow(|state, cx| operations::open_session(state, id.into(), cx));
        if self.state.questions.is_empty() { self } else { self.decide(0) }
    }

    pub fn submit(&mut self, text: &str) -> &mut Self {
        self.flow(|state, cx| operations::submit(state, KEY, text.into(), cx))
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

    pub fn flow(&mut self, change: impl FnOnce(&mut State, &mut Cx)) -> &mut Self {
        let mut cx = Cx::new(self.now);
        change(&mut self.app.state, &mut cx);
        dialogs::serve(&mut self.app, &mut cx);
        dialogs::refresh(&mut self.app);
        self.take(cx.effects);
        self
    }

    pub fn session(&self) -> &Session {
        &self.state.sessions[&KEY]
    }

    /// The queued prompts of the first session.
    pub fn queue(&self) -> Vec<&str> {
        self.session().outbox.queue().map(|prompt| prompt.text.as_str()).collect()
    }

    /// The files of the prompt that waits for them were read.
    pub fn prepared(&mut self, prepared: PreparedPrompt) -> &mut Self {
        let wanted = self.fx.iter().rev().find_map(|effect| match effect {
            Effect::PreparePrompt(job) => Some(job.prompt),
            _ => None,
        });
        self.service(ServiceEvent::PromptPrepared(KEY, wanted.expect("files are read"), Box::new(prepared)))
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

/// Applies updates within a turn of a ready session, and compares the digest.
pub fn check(updates: Vec<SessionUpdate>, expected: &str) {
    TestApp::running().updates(updates).expect(expected);
}

fn trimmed(text: &str) -> String {
    text.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n")
}

/// A session of an agent's list.
pub fn listed(id: &str) -> SessionInfo {
    SessionInfo {
        id: id.into(),
        cwd: "/code/shop".into(),
        title: None,
        updated_at: None,
        additional_directories: Vec::new(),
        is_archived: false,
        is_live: None,
    }
}

pub fn all_capabilities() -> AgentCapabilities {
    AgentCapabilities {
        can_load: true,
        can_resume: true,
        can_list: true,
        can_delete: true,
        can_close: true,
        can_fork: true,
        can_set_title: true,
        can_log_out: true,
        ..AgentCapabilities::default()
    }
}

pub fn text(role: Role, text: &str) -> SessionUpdate {
    SessionUpdate::Chunk { role, message: None, text: text.into() }
}

pub fn says(reply: &str) -> SessionUpdate {
    text(Role::Agent, reply)
}

pub fn says_in(message: &str, reply: &str) -> SessionUpdate {
    SessionUpdate::Chunk { role: Role::Agent, message: Some(message.into()), text: reply.into() }
}

/// A `tool_call`.
pub fn call(id: &str, status: ToolStatus) -> SessionUpdate {
    let mut patch = ToolCallPatch::new(id.into());
    patch.is_announcement = true;
    patch.title = Patch::Set(format!("do {id}"));
    patch.status = Patch::Set(status);
    SessionUpdate::Tool(Box::new(patch))
}

/// A `tool_call_update`.
pub fn news(id: &str, status: ToolStatus) -> SessionUpdate {
    let mut patch = ToolCallPatch::new(id.into());
    patch.status = Patch::Set(status);
    SessionUpdate::Tool(Box::new(patch))
}

pub fn patch(id: &str, change: impl FnOnce(&mut ToolCallPatch)) -> SessionUpdate {
    let mut patch = ToolCallPatch::new(id.into());
    change(&mut patch);
    SessionUpdate::Tool(Box::new(patch))
}

pub fn option(id: &str, kind: PermissionKind) -> PermissionOption {
    PermissionOption { id: id.into(), name: format!("the {id}"), kind }
}

/// A permission request for a call with an id only.
pub fn permission(tool: &str) -> AgentRequest {
    AgentRequest::Permission(PermissionRequest {
        session: Some(ID.into()),
        tool: ToolCallPatch::new(tool.into()),
        options: vec![option("yes", PermissionKind::AllowOnce), option("no", PermissionKind::RejectOnce)],
    })
}

pub fn question() -> AgentRequest {
    AgentRequest::Elicitation(ElicitationRequest {
        session: Some(ID.into()),
        tool: None,
        message: "Which one?".into(),
        mode: ElicitationMode::Form { title: None, description: None, fields: Vec::new() },
    })
}

/// The session as text, one line per item.
pub fn digest(session: &Session) -> String {
    let turn = match session.turn {
        Turn::Idle => "idle",
        Turn::Running { .. } => "running",
        Turn::Cancelling { is_overdue: false, .. } => "cancelling",
        Turn::Cancelling { is_overdue: true, .. } => "overdue",
    };
    let mut out = format!("{} · {turn}", phase_word(&session.phase));
    if !session.requests.is_empty() {
        let _ = write!(out, " · {} asks", session.requests.len());
    }
    let queue: Vec<&str> = session.outbox.queue().map(|prompt| prompt.text.as_str()).collect();
    if !queue.is_empty() {
        let _ = write!(out, " · queue {queue:?}");
    }
    for item in session.transcript.items() {
        let _ = write!(out, "\n{}", item_line(item));
    }
    out
}

fn phase_word(phase: &SessionPhase) -> &'static str {
    match phase {
        SessionPhase::NoAgent => "no agent",
        SessionPhase::Starting { .. } => "starting",
        SessionPhase::Opening { is_replay: false, .. } => "opening",
        SessionPhase::Opening { is_replay: true, .. } => "loading",
        SessionPhase::NeedsSignIn => "needs sign-in",
        SessionPhase::Ready => "ready",
        SessionPhase::Failed(_) => "failed",
        SessionPhase::Ended { .. } => "ended",
    }
}

fn item_line(item: &Item) -> String {
    let hidden = if item.is_hidden() { " (hidden)" } else { "" };
    match &item.body {
        ItemBody::Message(message) => {
            let who = match message.role {
                Role::User => "user",
                Role::Agent => "agent",
                Role::Thought => "thought",
                Role::Letter => "letter",
            };
            let parts: Vec<String> = message
                .parts
                .iter()
                .map(|part| match part {
                    MessagePart::Text(text) => format!("{text:?}"),
                    MessagePart::Block(_) => "<block>".into(),
                })
                .collect();
            let local = if message.is_local { "*" } else { "" };
            let open = if message.is_open { " …" } else { "" };
            format!("{who}{local} {}{open}", parts.join(" "))
        }
        ItemBody::Tool(tool) => {
            let decision = match &tool.decision {
                Some(Decision::Chosen { name, is_allow, .. }) => {
                    format!(" [{name}: {}]", if *is_allow { "allowed" } else { "refused" })
                }
                Some(Decision::Cancelled(_)) => " [cancelled]".into(),
                None => String::new(),
            };
            let assumed = if tool.is_status_assumed { "?" } else { "" };
            format!("tool {} {:?}{assumed} {:?}{decision}{hidden}", tool.id, tool.status, tool.title)
        }
        ItemBody::TurnEnd(TurnEnd::Stopped { reason, .. }) => format!("end {reason:?}"),
        ItemBody::TurnEnd(TurnEnd::Failed { error, .. }) => format!("end failed: {error}"),
        ItemBody::TurnEnd(TurnEnd::AgentDied { cause, stderr_tail }) => {
            format!("end died: {cause} {stderr_tail:?}")
        }
        ItemBody::Notice { severity, title, .. } => {
            let times = if item.times > 1 { format!(" ({} times)", item.times) } else { String::new() };
            format!("notice {severity:?}: {title}{times}")
        }
        ItemBody::Compaction { id, status, summary, .. } => format!("compaction {id} {status} {summary:?}"),
        ItemBody::Subagent { session, key, title, state, .. } => {
            format!("subagent {session} key {:?} {title:?} {state:?}", key.map(|key| key.0))
        }
        ItemBody::Answered { question, answer, .. } => format!("answered {question:?} {answer:?}"),
        ItemBody::Raw { name, .. } => format!("raw {name}"),
    }
}

fn effect_line(effect: &Effect) -> Option<String> {
    Some(match effect {
        Effect::Connect { conn, delay, .. } => format!("connect {conn} after {} ms", delay.as_millis()),
        Effect::Disconnect { conn, force } => {
            format!("disconnect {conn}{}", if *force { " now" } else { "" })
        }
        Effect::Send(_, AgentCommand::Call(_, call)) => format!("call {}", call_text(call)),
        Effect::Send(_, AgentCommand::Cancel(id)) => format!("cancel {id}"),
        Effect::Send(_, AgentCommand::CancelCall(_)) => "cancel call".into(),
        Effect::Send(_, AgentCommand::Respond(request_id, answer)) => {
            format!("answer {request_id}: {}", answer_text(answer))
        }
        Effect::StopFiles { session, keeps_writes } => {
            format!("stop {} of {session}", if *keeps_writes { "reads" } else { "files" })
        }
        Effect::File(job) => format!("file {} {}", job.request_id, job.path.display()),
        Effect::Terminal(job) => format!("terminal {}", job_text(job)),
        Effect::OpenUrl(url) => format!("url {url}"),
        Effect::RunLogin { spec, .. } => format!("login {}", spec.command_line()),
        Effect::Quit => "quit".into(),
        Effect::View(ViewCommand::SetDraft(text) | ViewCommand::ShowDraft(_, text)) => {
            format!("draft {text:?}")
        }
        _ => return None,
    })
}

fn job_text(job: &TerminalJob) -> String {
    match job {
        TerminalJob::Create { request_id, command, .. } => {
            let cwd = command.cwd.clone().unwrap_or_default();
            format!("create {request_id} {:?} in {}", command.command, cwd.display())
        }
        TerminalJob::Output { request_id, terminal, .. } => format!("read {request_id} {terminal}"),
        TerminalJob::Kill(id) => format!("kill {id}"),
        TerminalJob::Release(id) => format!("release {id}"),
        TerminalJob::ReleaseAll(conn) => format!("release all of {conn}"),
        TerminalJob::Shell { number, line, folder, .. } => {
            format!("shell {number} {line:?} in {}", folder.display())
        }
        TerminalJob::Input(id, TerminalInput::Bytes(bytes)) => {
            format!("type {:?} into {id}", String::from_utf8_lossy(bytes))
        }
        TerminalJob::Input(id, _) => format!("type into {id}"),
        TerminalJob::Resize(id, size) => format!("resize {id} to {}x{}", size.cols, size.rows),
        TerminalJob::CloseShell(key) => format!("close shell {key}"),
    }
}

fn call_text(call: &Call) -> String {
    match call {
        Call::Authenticate { method_id, api_key } => {
            let key = api_key.as_ref().map(|key| format!(" key {}", key.reveal()));
            format!("authenticate {method_id}{}", key.unwrap_or_default())
        }
        Call::LogOut => "logout".into(),
        Call::NewSession(_) => "new".into(),
        Call::LoadSession(id, _) => format!("load {id}"),
        Call::ResumeSession(id, _) => format!("resume {id}"),
        Call::ForkSession(id, ..) => format!("fork {id}"),
        Call::ListSessions { cursor, .. } => format!("list {cursor:?}"),
        Call::DeleteSession(id) => format!("delete {id}"),
        Call::CloseSession(id) => format!("close {id}"),
        Call::Steer(_, blocks) => format!("steer {}", blocks_text(blocks)),
        Call::SetTitle(_, title) => format!("title {title:?}"),
        Call::Prompt(_, blocks) => format!("prompt {}", blocks_text(blocks)),
        Call::SetMode(_, mode) => format!("mode {mode}"),
        Call::SetOption(_, option, value) => format!("option {option} {value:?}"),
        Call::SetModel(_, model) => format!("model {model}"),
        Call::StopTool(_, tool) => format!("stop tool {tool}"),
        Call::StopTerminal(_, terminal) => format!("stop terminal {terminal}"),
        Call::Archive(id, is_away) => format!("archive {id} {is_away}"),
        Call::SessionStatus(id) => format!("status {id}"),
        Call::AuthStatus => "auth status".into(),
        Call::ListProviders => "providers".into(),
        Call::SetProvider(request) => format!("provider {}", request.id),
    }
}

fn answer_text(answer: &Response) -> String {
    match answer {
        Response::Selected(id) => format!("selected {id}"),
        Response::PermissionCancelled => "permission cancelled".into(),
        Response::FileContent(text) => format!("content {text:?}"),
        Response::Done => "done".into(),
        Response::TerminalCreated(id) => format!("created {id}"),
        Response::TerminalOutput { output, is_truncated, .. } => format!("output {output:?} {is_truncated}"),
        Response::TerminalExit(exit) => format!("exit {:?} {:?}", exit.code, exit.signal),
        Response::ElicitationAccepted(_) => "accepted".into(),
        Response::ElicitationDeclined => "declined".into(),
        Response::ElicitationCancelled => "elicitation cancelled".into(),
        Response::Error(error) => format!("error {}", error.code),
    }
}

fn blocks_text(blocks: &[ContentBlock]) -> String {
    match blocks {
        [ContentBlock::Text(text)] => format!("{text:?}"),
        other => format!("{other:?}"),
    }
}

fn spool_uid(spool: SessionKey) -> String {
    format!("spool {}", spool.0)
}
