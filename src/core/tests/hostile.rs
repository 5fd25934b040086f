//! Property test: whatever an agent sends, it changes no root, callback setting or grant, and no program that is
//! started.

use crate::core::lifecycle::operations;
use proptest::prelude::*;
use proptest::sample::select;

use super::support::*;
use crate::core::state::lookup::first_request;
use crate::core::*;
use crate::model::*;

/// Strings that would be harmful if used as a path, a program or a name.
const WORDS: &[&str] = &[
    "/",
    "/etc",
    "..",
    "/code/shop",
    "/code/lib",
    "/home/user/.ssh",
    "/bin/sh",
    "fake",
    "-c",
    "id",
    "PATH",
    "LD_PRELOAD",
    "MODE",
    "~",
    "",
    "s",
    "old",
    "\u{202e}",
];

fn word() -> impl Strategy<Value = String> {
    select(WORDS).prop_map(str::to_owned)
}

fn strings() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec(word(), 0..3)
}

fn paths() -> impl Strategy<Value = Vec<std::path::PathBuf>> {
    strings().prop_map(|strings| strings.into_iter().map(Into::into).collect())
}

fn method() -> impl Strategy<Value = AuthMethod> {
    let env = prop::collection::vec((word(), word()), 0..2);
    let terminal = (prop::option::of(word()), strings(), env)
        .prop_map(|(program, args, env)| AuthKind::Terminal(SignInCommand { program, args, env }));
    let variables = strings().prop_map(|names| {
        let var = |name| AuthVar { name, label: None, is_secret: true, is_optional: true };
        AuthKind::EnvVar { vars: names.into_iter().map(var).collect(), link: None }
    });
    (word(), prop_oneof![3 => terminal, 1 => variables, 1 => Just(AuthKind::Agent)])
        .prop_map(|(id, kind)| AuthMethod { name: id.clone(), id, description: None, kind })
}

fn info() -> impl Strategy<Value = SessionInfo> {
    (word(), word(), paths()).prop_map(|(id, cwd, additional_directories)| SessionInfo {
        id: id.as_str().into(),
        cwd: cwd.into(),
        title: None,
        updated_at: None,
        additional_directories,
        is_archived: false,
        is_live: None,
    })
}

fn reply() -> impl Strategy<Value = Result<Reply, CallError>> {
    let session = prop::option::of(word()).prop_map(|id| {
        let id = id.map(|id| id.as_str().into());
        Reply::Session(SessionReply { id, ..SessionReply::default() })
    });
    let sessions = prop::collection::vec(info(), 0..3)
        .prop_map(|sessions| Reply::Sessions { sessions, next_cursor: None });
    prop_oneof![
        session.prop_map(Ok),
        sessions.prop_map(Ok),
        Just(Ok(Reply::Done)),
        Just(Ok(Reply::TurnEnded { reason: StopReason::EndTurn, usage: None })),
        Just(Err(CallError::Agent(RpcError::new(RpcError::AUTH_REQUIRED, "sign in")))),
        Just(Err(CallError::Agent(RpcError::new(-32002, "no such session")))),
    ]
}

fn ask() -> impl Strategy<Value = AgentRequest> {
    let session = || prop::option::of(word()).prop_map(|id| id.map(|id| SessionId::from(id.as_str())));
    let command = (word(), strings(), prop::option::of(word())).prop_map(|(command, args, cwd)| {
        TerminalCommand { command, args, env: Vec::new(), cwd: cwd.map(Into::into), output_limit_bytes: None }
    });
    prop_oneof![
        (session(), word()).prop_map(|(session, path)| AgentRequest::ReadFile {
            session,
            path: path.into(),
            line: None,
            limit: None
        }),
        (session(), word()).prop_map(|(session, path)| AgentRequest::WriteFile {
            session,
            path: path.into(),
            content: "x".into()
        }),
        (session(), command).prop_map(|(session, command)| AgentRequest::TerminalCreate { session, command }),
        word().prop_map(|tool| permission(&tool)),
        Just(question()),
    ]
}

/// A message of the agent, or an action of a user who opens lists but confirms nothing.
#[derive(Debug, Clone)]
#[allow(clippy::large_enum_variant, reason = "a few of them live at a time")]
enum Step {
    Ready(Vec<AuthMethod>),
    Replied(Result<Reply, CallError>),
    Ask(AgentRequest),
    Update(String, SessionUpdate),
    Crash,
    /// The user opens a session from the agent's list.
    Open(String),
    /// The user opens the list.
    List,
    /// The user selects a sign-in method.
    SignIn(String),
    /// The user closes the open dialog, or accepts its default.
    Close(bool),
    Submit,
}

fn step() -> impl Strategy<Value = Step> {
    let update = (
        word(),
        prop_oneof![
            word().prop_map(|text| says(&text)),
            word().prop_map(|id| call(&id, ToolStatus::InProgress)),
            word()
                .prop_map(|title| SessionUpdate::Info { title: Patch::Set(title), updated_at: Patch::Keep }),
        ],
    );
    prop_oneof![
        1 => prop::collection::vec(method(), 0..3).prop_map(Step::Ready),
        4 => reply().prop_map(Step::Replied),
        2 => ask().prop_map(Step::Ask),
        1 => update.prop_map(|(session, update)| Step::Update(session, update)),
        1 => Just(Step::Crash),
        2 => word().prop_map(Step::Open),
        1 => Just(Step::List),
        2 => word().prop_map(Step::SignIn),
        2 => any::<bool>().prop_map(Step::Close),
        1 => Just(Step::Submit),
    ]
}

fn play(app: &mut TestCore, step: Step, nth: u64) {
    let conn = app.state.active_session().and_then(|session| session.conn).unwrap_or(CONN);
    match step {
        Step::Ready(auth_methods) => {
            let info = AgentInfo { capabilities: all_capabilities(), auth_methods, ..AgentInfo::default() };
            app.play(Event::Agent(conn, AgentEvent::Ready(Box::new(info))));
        }
        Step::Replied(result) => {
            let open =
                app.state.conns.get(&conn).and_then(|conn| conn.open_calls.values().next_back().cloned());
            if let Some(tag) = open {
                app.play(Event::Agent(conn, AgentEvent::Replied(tag, result)));
            }
        }
        Step::Ask(request_id) => {
            app.play(Event::Agent(conn, AgentEvent::Request(RequestId(nth), Box::new(request_id))));
        }
        Step::Update(session, update) => {
            app.play(Event::Agent(conn, AgentEvent::Update(session.as_str().into(), update)));
        }
        Step::Crash => {
            let status = ExitInfo { code: Some(1), signal: None };
            let reason = CloseReason::Exited { status, stderr_tail: Vec::new() };
            app.play(Event::Agent(conn, AgentEvent::Closed(reason)));
        }
        Step::Open(id) => {
            app.flow(|state, cx| operations::open_session(state, id.as_str().into(), cx));
        }
        Step::List => {
            app.flow(operations::list_sessions);
        }
        Step::SignIn(id) => {
            app.flow(|state, cx| operations::sign_in(state, conn, &id, Vec::new(), cx));
        }
        Step::Close(takes_default) => {
            app.wait(5);
            // The default answer about folders opens the session in the user's own folder only.
            match app.state.questions.last() {
                Some(question) if takes_default => app.decide(question.first),
                Some(_) => app.answer_last(UserAnswer::Dismiss),
                None => app.flow(|state, cx| {
                    let Some(first) = first_request(state).map(|open| open.request_id) else { return };
                    let _ = operations::answer(state, QuestionId::Agent(first), UserAnswer::Dismiss, cx);
                }),
            };
        }
        Step::Submit => {
            let key = app.state.active;
            app.submit_in(key, "go");
        }
    }
}

fn check(app: &mut TestCore, is_remote: bool) {
    let root = UserRoot::given("/code/lib");
    assert!(app.state.grants.is_empty());
    for session in app.state.sessions.values() {
        assert_eq!(session.workspace.cwd.to_str(), Some("/code/shop"));
        assert!(session.workspace.additional_directories.iter().all(|given| *given == root));
        assert!(session.permissions.grants().is_empty() && session.permissions.approvals().is_empty());
    }
    for conn in app.state.conns.values() {
        let expected = if is_remote { Callbacks::NONE } else { Callbacks::default() };
        assert_eq!((conn.spec.callbacks, conn.spec.command.as_str()), (expected, "fake"));
    }
    for question in &app.state.questions {
        for answer in &question.answers {
            if let Consequence::RunLogin(_, spec, env) = &answer.consequence {
                assert!(!is_remote && spec.command == "fake");
                assert_eq!(check_variables(env.iter().map(|(name, _)| name.as_str())), Ok(()));
            }
        }
    }
    for effect in std::mem::take(&mut app.fx) {
        match effect {
            // None of these happens without a confirmation.
            Effect::RunLogin { .. }
            | Effect::OpenUrl(_)
            | Effect::OpenFile { .. }
            | Effect::EditDraft { .. }
            | Effect::SaveAttachment(_)
            | Effect::ReadClipboard { .. }
            | Effect::ReadDropped(_)
            | Effect::OpenAttachment { .. }
            | Effect::SaveGrant(_)
            | Effect::KeepTrust { .. }
            | Effect::Terminal(TerminalJob::Create { .. }) => panic!("{effect:?}"),
            Effect::Connect { spec, cwd, .. } => {
                assert_eq!((spec.command.as_str(), spec.args.len(), spec.env.len()), ("fake", 0, 0));
                assert_eq!(cwd.to_str(), Some("/code/shop"));
            }
            Effect::File(job) => {
                let roots: Vec<_> = job.roots.iter().filter_map(|root| root.to_str()).collect();
                assert!(roots.iter().all(|root| ["/code/shop", "/code/lib"].contains(root)), "{roots:?}");
                assert!(job.allowed.is_none() && !is_remote);
            }
            _ => {}
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn no_sequence_of_messages_changes_roots_callbacks_or_programs(
        is_remote: bool,
        steps in prop::collection::vec(step(), 1..40),
    ) {
        let remote = is_remote.then(|| Remote { url: "https://far.example".into(), ..Remote::default() });
        let callbacks = if is_remote { Callbacks::NONE } else { Callbacks::default() };
        let spec = AgentSpec { callbacks, remote, ..fake() };
        let setup = Setup {
            folder: "/code/shop".into(),
            additional_directories: vec![UserRoot::given("/code/lib")],
            start_with: Some(spec),
            ..Setup::default()
        };
                let mut app = TestCore::start(setup);
        app.handshake(all_capabilities());
        for (nth, step) in (1..).zip(steps) {
            play(&mut app, step, nth);
            check(&mut app, is_remote);
        }
    }
}
