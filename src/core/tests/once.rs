//! Property test: every request of an agent gets exactly one response of its kind, in any order of events.
//!
//! A model plays random events: agents that send and cancel requests, respond and crash; services; a user who answers,
//! cancels, restarts and quits. It tracks the requests and compares.

use crate::core::lifecycle::operations;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use proptest::prelude::*;

use super::support::{Bench, Core, Driven, all_capabilities, fake, option, patch, text};
use crate::core::*;
use crate::model::*;

/// Numbers are indices into the current candidates, modulo their number.
#[derive(Debug, Clone, Copy)]
pub enum Step {
    Ask { conn: usize, session: usize, request: usize },
    Withdraw(usize),
    Update { conn: usize, session: usize, update: usize },
    Reply { call: usize, outcome: usize },
    Serve { job: usize, outcome: usize },
    EndTerminal(usize),
    Handshake(usize),
    Close { conn: usize, reason: usize },
    Choose { session: usize, option: Option<usize> },
    Say { session: usize, outcome: usize },
    Submit(usize),
    Cancel(usize),
    Restart(usize),
    StartOther(usize),
    ForceStop(usize),
    NewSession,
    OpenTab(usize),
    CloseTab(usize),
    Show(usize),
    Fork(usize),
    Timer(usize),
    SignIn(usize),
    Wait(u64),
    Quit,
}

pub fn step() -> impl Strategy<Value = Step> {
    let n = 0..64usize;
    prop_oneof![
        12 => (n.clone(), 0..5usize, 0..9usize)
            .prop_map(|(conn, session, request)| Step::Ask { conn, session, request }),
        2 => n.clone().prop_map(Step::Withdraw),
        4 => (n.clone(), 0..5usize, 0..8usize)
            .prop_map(|(conn, session, update)| Step::Update { conn, session, update }),
        8 => (n.clone(), 0..6usize).prop_map(|(call, outcome)| Step::Reply { call, outcome }),
        6 => (n.clone(), 0..4usize).prop_map(|(job, outcome)| Step::Serve { job, outcome }),
        2 => n.clone().prop_map(Step::EndTerminal),
        6 => n.clone().prop_map(Step::Handshake),
        2 => (n.clone(), 0..4usize).prop_map(|(conn, reason)| Step::Close { conn, reason }),
        3 => (n.clone(), proptest::option::of(0..3usize))
            .prop_map(|(session, option)| Step::Choose { session, option }),
        2 => (n.clone(), 0..3usize).prop_map(|(session, outcome)| Step::Say { session, outcome }),
        4 => n.clone().prop_map(Step::Submit),
        3 => n.clone().prop_map(Step::Cancel),
        1 => n.clone().prop_map(Step::Restart),
        1 => n.clone().prop_map(Step::StartOther),
        1 => n.clone().prop_map(Step::ForceStop),
        1 => Just(Step::NewSession),
        2 => (0..2usize).prop_map(Step::OpenTab),
        1 => n.clone().prop_map(Step::CloseTab),
        2 => n.clone().prop_map(Step::Show),
        3 => n.clone().prop_map(Step::Fork),
        1 => n.clone().prop_map(Step::Timer),
        1 => n.prop_map(Step::SignIn),
        2 => (0..40u64).prop_map(Step::Wait),
    ]
}

/// The kind of response that a request expects.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Form {
    Permission,
    Elicitation,
    Read,
    Write,
    Create,
    Output,
    Wait,
    Empty,
}

fn fits(form: Form, answer: &Response) -> bool {
    match answer {
        Response::Selected(id) => form == Form::Permission && ["yes", "no"].contains(&id.as_str()),
        Response::PermissionCancelled => form == Form::Permission,
        Response::ElicitationAccepted(_) | Response::ElicitationDeclined | Response::ElicitationCancelled => {
            form == Form::Elicitation
        }
        Response::FileContent(_) => form == Form::Read,
        Response::TerminalCreated(_) => form == Form::Create,
        Response::TerminalOutput { .. } => form == Form::Output,
        Response::TerminalExit(_) => form == Form::Wait,
        Response::Done => matches!(form, Form::Write | Form::Empty),
        Response::Error(_) => !matches!(form, Form::Permission | Form::Elicitation),
    }
}

struct Request {
    conn: ConnId,
    form: Form,
    answers: usize,
}

pub struct World<D> {
    app: Bench<D>,
    requests: BTreeMap<RequestId, Request>,
    jobs: Vec<Effect>,
    running: Vec<TerminalId>,
    calls: Vec<(ConnId, CallTag)>,
    closed: Vec<ConnId>,
    terminal_count: usize,
}

impl<D: Driven> World<D> {
    pub fn new() -> Self {
        let mut app = Bench::with_spec(fake());
        let fx = std::mem::take(&mut app.fx);
        let mut world = Self {
            app,
            requests: BTreeMap::new(),
            jobs: Vec::new(),
            running: Vec::new(),
            calls: Vec::new(),
            closed: Vec::new(),
            terminal_count: 0,
        };
        world.note(fx);
        // Most runs should open a session first.
        world.step(Step::Handshake(0));
        world.step(Step::Reply { call: 0, outcome: 5 });
        world
    }

    pub fn play(&mut self, event: impl Into<D::Event>) {
        let fx = self.app.effects_after(event);
        self.note(fx);
        self.check_kept();
    }

    /// Everything was recorded, although only touched sessions were checked.
    fn check_kept(&mut self) {
        let mut cx = Cx::new(self.app.now);
        let state = self.app.state_mut();
        assert!(state.sessions.values_mut().next().is_some(), "a session is always there");
        crate::core::recording::recorder::flush(state, &mut cx);
        assert_eq!(cx.effects, [], "not recorded");
    }

    /// Answers the first request of a session.
    fn answer(&mut self, key: SessionKey, answer: UserAnswer) {
        let Some(first) = self.app.state().sessions[&key].requests.front() else { return };
        let id = QuestionId::Agent(first.request_id);
        self.flow(|state, cx| {
            let _ = operations::answer(state, id, answer, cx);
        });
    }

    fn flow(&mut self, change: impl FnOnce(&mut State, &mut Cx)) {
        let fx = self.app.effects_of(change);
        self.note(fx);
    }

    fn note(&mut self, fx: Vec<Effect>) {
        for effect in fx {
            match effect {
                Effect::Send(conn, command) => {
                    assert!(!self.closed.contains(&conn), "{command:?} to a closed connection");
                    match command {
                        AgentCommand::Respond(request_id, answer) => {
                            self.on_answer(conn, request_id, &answer);
                        }
                        AgentCommand::Call(tag, _) => self.calls.push((conn, tag)),
                        AgentCommand::Cancel(_) | AgentCommand::CancelCall(_) => {}
                    }
                }
                Effect::File(_)
                | Effect::Terminal(TerminalJob::Create { .. } | TerminalJob::Output { .. }) => {
                    self.jobs.push(effect);
                }
                Effect::Terminal(TerminalJob::Release(id)) => self.running.retain(|known| *known != id),
                _ => {}
            }
        }
    }

    fn on_answer(&mut self, conn: ConnId, request_id: RequestId, answer: &Response) {
        let request = self.requests.get_mut(&request_id).expect("only what was asked is answered");
        assert_eq!(request.conn, conn, "the response goes to the right connection");
        request.answers += 1;
        assert_eq!(request.answers, 1, "{request_id} was answered twice");
        assert!(fits(request.form, answer), "{answer:?} for a {:?}", request.form);
    }

    fn conn(&self, index: usize) -> Option<ConnId> {
        pick(self.app.state().conns.keys().copied().filter(|conn| !self.closed.contains(conn)), index)
    }

    fn session(&self, index: usize) -> Option<SessionKey> {
        pick(self.app.state().sessions.keys().copied(), index)
    }

    pub fn step(&mut self, step: Step) -> Option<()> {
        match step {
            Step::Ask { conn, session, request } => {
                let conn = self.conn(conn)?;
                let request_id = RequestId(self.requests.len() as u64 + 1);
                let (request, form) = self.request(session, request);
                self.requests.insert(request_id, Request { conn, form, answers: 0 });
                self.play(Event::Agent(conn, AgentEvent::Request(request_id, Box::new(request))));
            }
            Step::Withdraw(index) => {
                // One of the latest: most of the others are answered.
                let request_id = pick(self.requests.keys().rev().copied().take(6), index)?;
                let conn = self.requests[&request_id].conn;
                if !self.closed.contains(&conn) {
                    self.play(Event::Agent(conn, AgentEvent::RequestWithdrawn(request_id)));
                }
            }
            Step::Update { conn, session, update } => {
                let conn = self.conn(conn)?;
                let id = session_id(session).unwrap_or_else(|| "s1".into());
                self.play(Event::Agent(conn, AgentEvent::Update(id, an_update(update))));
            }
            Step::Reply { call, outcome } => {
                let index = call.checked_rem(self.calls.len())?;
                let (conn, tag) = self.calls.swap_remove(index);
                if !self.closed.contains(&conn) {
                    let result = a_reply(&tag, outcome);
                    self.play(Event::Agent(conn, AgentEvent::Replied(tag, result)));
                }
            }
            Step::Serve { job, outcome } => self.serve(job, outcome)?,
            Step::EndTerminal(index) => {
                let index = index.checked_rem(self.running.len())?;
                let terminal = self.running.swap_remove(index);
                let exit = ExitInfo { code: Some(0), signal: None };
                self.play(Event::Service(ServiceEvent::TerminalEnded { terminal, exit }));
            }
            Step::Handshake(conn) => {
                let conn = self.conn(conn)?;
                let info = AgentInfo { capabilities: all_capabilities(), ..AgentInfo::default() };
                self.play(Event::Agent(conn, AgentEvent::Ready(Box::new(info))));
            }
            Step::Close { conn, reason } => {
                let conn = self.conn(conn)?;
                self.closed.push(conn);
                self.play(Event::Agent(conn, AgentEvent::Closed(a_close(reason))));
            }
            other => self.wish(other)?,
        }
        Some(())
    }

    fn wish(&mut self, step: Step) -> Option<()> {
        match step {
            Step::Choose { session, option } => {
                let key = self.session(session)?;
                self.answer(key, option.map_or(UserAnswer::Dismiss, UserAnswer::Option));
            }
            Step::Say { session, outcome } => {
                let key = self.session(session)?;
                let answers = [UserAnswer::Values(Vec::new()), UserAnswer::Decline, UserAnswer::Dismiss];
                self.answer(key, answers.into_iter().nth(outcome)?);
            }
            Step::Submit(session) => {
                let key = self.session(session)?;
                self.flow(|state, cx| operations::submit(state, key, "go".into(), cx));
            }
            Step::Cancel(session) => {
                let key = self.session(session)?;
                self.flow(|state, cx| operations::cancel_turn(state, key, cx));
            }
            Step::Restart(session) => {
                let key = self.session(session)?;
                self.flow(|state, cx| operations::restart_agent(state, key, cx));
            }
            Step::StartOther(session) => {
                let key = self.session(session)?;
                let spec = AgentSpec { command: "other".into(), ..AgentSpec::default() };
                self.flow(|state, cx| operations::start_agent(state, key, spec, cx));
            }
            Step::ForceStop(conn) => {
                let conn = self.conn(conn)?;
                self.flow(|state, cx| operations::force_stop(state, conn, cx));
            }
            Step::NewSession => self.flow(operations::new_session),
            Step::OpenTab(folder) => {
                let folder = PathBuf::from(["/code/shop", "/code/lib"][folder]);
                self.flow(|state, cx| {
                    operations::open_tab(state, folder, fake(), cx);
                });
            }
            Step::CloseTab(session) => {
                let key = self.session(session)?;
                self.flow(|state, cx| operations::close_session(state, key, cx));
            }
            Step::Show(session) => {
                let key = self.session(session)?;
                self.flow(|state, _| operations::activate(state, key));
            }
            Step::Fork(session) => {
                let key = self.session(session)?;
                self.flow(|state, cx| operations::fork_session(state, key, None, cx));
            }
            Step::Timer(session) => {
                let key = self.session(session)?;
                self.play(Event::Timer(TimerId::CancelOverdue(key)));
                self.play(Event::Timer(TimerId::TurnQuiet(key)));
            }
            Step::SignIn(conn) => {
                let conn = self.conn(conn)?;
                self.play(Event::Service(ServiceEvent::LoginDone(conn, Ok(()))));
            }
            Step::Wait(seconds) => self.app.now += Duration::from_secs(seconds),
            Step::Quit => self.play(Event::Terminate),
            _ => {}
        }
        Some(())
    }

    fn request(&self, session: usize, request: usize) -> (AgentRequest, Form) {
        let id = session_id(session);
        let terminal = self.running.last().cloned().unwrap_or_else(|| "none".into());
        let options =
            vec![option("yes", PermissionKind::AllowOnce), option("no", PermissionKind::RejectOnce)];
        match request {
            0 | 1 => {
                let tool = ToolCallPatch::new(["t", "u"][request].into());
                (AgentRequest::Permission(PermissionRequest { session: id, tool, options }), Form::Permission)
            }
            2 => {
                let mode = ElicitationMode::Form { title: None, description: None, fields: Vec::new() };
                let open = ElicitationRequest { session: id, tool: None, message: "?".into(), mode };
                (AgentRequest::Elicitation(open), Form::Elicitation)
            }
            3 => (
                AgentRequest::ReadFile { session: id, path: "a".into(), line: None, limit: None },
                Form::Read,
            ),
            4 => (
                AgentRequest::WriteFile { session: id, path: "a".into(), content: String::new() },
                Form::Write,
            ),
            5 => (
                AgentRequest::TerminalCreate { session: id, command: TerminalCommand::default() },
                Form::Create,
            ),
            6 => (AgentRequest::TerminalOutput(terminal), Form::Output),
            7 => (AgentRequest::TerminalWait(terminal), Form::Wait),
            _ => (AgentRequest::TerminalRelease(terminal), Form::Empty),
        }
    }

    fn serve(&mut self, job: usize, outcome: usize) -> Option<()> {
        let index = job.checked_rem(self.jobs.len())?;
        let event = match self.jobs.swap_remove(index) {
            Effect::File(job) if outcome == 0 && job.allowed.is_none() => {
                let path = job.path.clone();
                let access = match &job.op {
                    FileOp::Read { .. } => Access::Read { path },
                    FileOp::Write { .. } => Access::Write { path },
                };
                let asked =
                    AskedFile { access, facts: Facts::default(), why: AskReason::Outside, change: None };
                ServiceEvent::FileAsks { job, asked: Box::new(asked) }
            }
            Effect::File(FileJob { conn, request_id, op, .. }) => {
                let text = matches!(op, FileOp::Read { .. }).then(|| "text".to_owned());
                let error = RpcError::new(RpcError::INTERNAL, "disk full");
                let result = if outcome == 1 { Err(error) } else { Ok(text) };
                ServiceEvent::FileDone { conn, request_id, result, served: None }
            }
            Effect::Terminal(TerminalJob::Create { conn, request_id, session, .. }) => {
                self.terminal_count += 1;
                let id = TerminalId::from(format!("term{}", self.terminal_count));
                let result = if outcome == 1 {
                    Err(RpcError::new(RpcError::INTERNAL, "no such program"))
                } else {
                    self.running.push(id.clone());
                    Ok(id)
                };
                ServiceEvent::TerminalStarted { conn, request_id, session, command: String::new(), result }
            }
            Effect::Terminal(TerminalJob::Output { conn, request_id, .. }) => {
                ServiceEvent::TerminalRead { conn, request_id, result: Ok((String::new(), false, None)) }
            }
            _ => return None,
        };
        self.play(Event::Service(event));
        Some(())
    }

    /// The services finish, the commands end, and the user answers all open requests. Then each request has its answer.
    pub fn finish(&mut self) {
        for _ in 0..4 {
            // Requests wait for sessions that are being created.
            for _ in 0..64 {
                self.step(Step::Reply { call: 0, outcome: 2 });
            }
            while self.serve(0, 2).is_some() {}
            while self.step(Step::EndTerminal(0)).is_some() {}
            let keys: Vec<SessionKey> = self.app.state().sessions.keys().copied().collect();
            for key in keys {
                while let Some(open) = self.app.state().sessions[&key].requests.front() {
                    let is_form = matches!(open.kind, OpenRequestKind::Elicitation(_));
                    self.answer(key, if is_form { UserAnswer::Decline } else { UserAnswer::Option(0) });
                }
            }
        }
        self.check_answers();
        for conn in self.app.state().conns.values() {
            assert!(conn.open_requests.is_empty(), "nothing is left open: {:?}", conn.open_requests);
        }
    }

    /// Each request of an agent that still runs was answered once.
    fn check_answers(&self) {
        for (request_id, request) in &self.requests {
            if !self.closed.contains(&request.conn) {
                assert_eq!(request.answers, 1, "{request_id} of connection {}", request.conn);
            }
        }
    }

    pub fn check(&self) {
        for session in self.app.state().sessions.values() {
            let phase =
                session.conn.and_then(|conn| self.app.state().conns.get(&conn)).map(|conn| &conn.phase);
            if session.turn.is_running() {
                assert_eq!(phase, Some(&ConnPhase::Ready), "a turn needs an open connection");
            }
            for open in &session.requests {
                let conn = self.app.state().conns.get(&open.conn).expect("who asks is known");
                assert!(conn.open_requests.contains_key(&open.request_id), "shown requests are open");
            }
            for (conn, request_id, _) in &session.terminal_waits {
                let conn = self.app.state().conns.get(conn).expect("who waits is known");
                assert!(conn.open_requests.contains_key(request_id), "waiting requests are open");
            }
        }
        assert!(self.app.state().sessions.contains_key(&self.app.state().active), "the shown session exists");
    }
}

fn pick<T>(all: impl Iterator<Item = T>, index: usize) -> Option<T> {
    let mut all: Vec<T> = all.collect();
    let index = index.checked_rem(all.len())?;
    Some(all.swap_remove(index))
}

fn session_id(index: usize) -> Option<SessionId> {
    ["s1", "s2", "child", "nobody"].get(index).map(|id| (*id).into())
}

fn an_update(index: usize) -> SessionUpdate {
    match index {
        0 => text(Role::Agent, "word"),
        1 => text(Role::User, "go"),
        2 => patch("t", |patch| patch.is_announcement = true),
        3 => patch("t", |patch| patch.status = Patch::Set(ToolStatus::Completed)),
        4 | 5 => SessionUpdate::Subagent(SubagentPatch {
            session: if index == 4 { "child" } else { "s1" }.into(),
            title: Patch::Keep,
            description: Patch::Keep,
            state: Patch::Keep,
            can_cancel: Patch::Keep,
        }),
        6 => SessionUpdate::CompactionChunk { id: "c".into(), text: "x".into() },
        _ => SessionUpdate::Mode("plan".into()),
    }
}

fn a_reply(tag: &CallTag, outcome: usize) -> Result<Reply, CallError> {
    match outcome {
        0 => Err(CallError::Agent(RpcError::new(RpcError::AUTH_REQUIRED, "auth required"))),
        1 => Err(CallError::Agent(RpcError::new(RpcError::INTERNAL, "session not found"))),
        2 => Err(CallError::TimedOut(60)),
        _ => Ok(match tag.purpose {
            Purpose::Prompt(_) => Reply::TurnEnded { reason: StopReason::EndTurn, usage: None },
            Purpose::NewSession(key) | Purpose::ForkSession(key) => Reply::Session(SessionReply {
                id: Some(SessionId::from(format!("s{key}"))),
                ..SessionReply::default()
            }),
            Purpose::LoadSession(_) | Purpose::ResumeSession(_) => Reply::Session(SessionReply::default()),
            _ => Reply::Done,
        }),
    }
}

fn a_close(reason: usize) -> CloseReason {
    match reason {
        0 => CloseReason::NotStarted { error: "no".into(), is_missing: false },
        1 => CloseReason::Stopped,
        2 => CloseReason::Lost { error: "broken pipe".into() },
        _ => CloseReason::Exited { status: ExitInfo::default(), stderr_tail: vec!["bye".into()] },
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_request_gets_exactly_one_answer(steps in proptest::collection::vec(step(), 1..120)) {
        let mut world = World::<Core>::new();
        for step in steps {
            world.step(step);
            world.check();
        }
        world.finish();
    }

    #[test]
    fn quitting_answers_open_and_later_requests(
        before in proptest::collection::vec(step(), 1..60),
        after in proptest::collection::vec(step(), 1..30),
    ) {
        let mut world = World::<Core>::new();
        for step in before.into_iter().chain([Step::Quit]).chain(after) {
            world.step(step);
            world.check();
        }
        world.check_answers();
        let mut sessions = world.app.state().sessions.values();
        prop_assert!(sessions.all(|session| !session.turn.is_running()));
    }
}
