//! Tests of the MCP servers and additional folders of a session.

use crate::core::lifecycle::operations;
use std::path::PathBuf;

use super::support::*;
use crate::core::*;
use crate::model::*;

fn server(name: &str) -> McpServer {
    McpServer::Stdio { name: name.into(), command: "/bin/mcp".into(), args: Vec::new(), env: Vec::new() }
}

fn found() -> FolderServers {
    FolderServers {
        file: "/code/shop/.mcp.json".into(),
        folder: "/code/shop".into(),
        servers: vec![server("files"), server("mine")],
        lines: vec!["files: runs /bin/mcp".into(), "mine: runs /bin/mcp".into()],
        notes: vec!["odd is left out: it has no command.".into()],
        answer: None,
        answer_file: "/data/mcp/00".into(),
    }
}

fn app(found: FolderServers, spec: AgentSpec) -> TestCore {
    let setup = Setup {
        folder: PathBuf::from("/code/shop"),
        start_with: Some(spec),
        mcp_servers: vec![server("mine")],
        folder_servers: Some(found),
        ..Setup::default()
    };
    TestCore::start(setup)
}

fn names(app: &TestCore) -> Vec<&str> {
    app.session().workspace.mcp_servers.iter().map(McpServer::name).collect()
}

fn kept_answer(app: &TestCore) -> Option<bool> {
    app.fx.iter().find_map(|effect| match effect {
        Effect::KeepTrust { allows, .. } => Some(*allows),
        _ => None,
    })
}

#[test]
fn a_session_waits_for_the_decision_and_then_has_the_servers() {
    let mut app = app(found(), fake());
    app.handshake(all_capabilities()).expect_sent("connect 1 after 0 ms");
    let Some(dialog) = app.state.questions.last() else { panic!("the user is asked") };
    let body = dialog.body.join("\n");
    assert!(
        body.contains(".mcp.json") && body.contains("files: runs /bin/mcp") && body.contains("odd is"),
        "{body}"
    );
    let not_now = Consequence::Servers("/code/shop".into(), TrustAnswer::NotNow);
    assert_eq!(dialog.answers[0].consequence, not_now, "the default");
    app.decide_trust(TrustAnswer::Use);
    assert_eq!(kept_answer(&app), Some(true));
    app.expect_sent("call new");
    assert_eq!(names(&app), ["mine", "files"], "the configured one takes precedence");
    app.flow(operations::new_session).expect_sent("call new");
    let next = app.state.active_session().unwrap();
    assert_eq!(next.workspace.mcp_servers.len(), 2, "also for the next session there");
    let is_reported =
        |notice: &String| notice.contains("odd is left out") && notice.contains("mine: skipped");
    assert!(app.notices().iter().any(is_reported), "{:?}", app.notices());
}

#[test]
fn a_refusal_is_saved_and_a_closed_question_is_not() {
    let mut app = app(found(), fake());
    app.handshake(all_capabilities());
    app.decide_trust(TrustAnswer::LeaveOut);
    assert_eq!((kept_answer(&app), names(&app)), (Some(false), vec!["mine"]));
    app.expect_sent("connect 1 after 0 ms\ncall new");

    let mut app = self::app(found(), fake());
    app.handshake(all_capabilities());
    app.answer_last(UserAnswer::Dismiss);
    assert_eq!((kept_answer(&app), names(&app)), (None, vec!["mine"]));
    app.expect_sent("connect 1 after 0 ms\ncall new");
}

#[test]
fn a_saved_decision_is_not_asked_for_again() {
    for (known, expected) in [(true, vec!["mine", "files"]), (false, vec!["mine"])] {
        let mut app = app(FolderServers { answer: Some(known), ..found() }, fake());
        app.handshake(all_capabilities());
        assert_eq!((app.state.questions.len(), names(&app)), (0, expected));
        app.expect_sent("connect 1 after 0 ms\ncall new");
    }
}

#[test]
fn an_agent_restarted_before_the_decision_opens_after_it() {
    let mut app = app(found(), fake());
    app.handshake(all_capabilities()).crash();
    app.decide_trust(TrustAnswer::Use);
    app.handshake(all_capabilities()).expect_sent("connect 1 after 0 ms\nconnect 2 after 500 ms\ncall new");
}

#[test]
fn a_remote_agent_gets_no_servers_of_the_folder() {
    let ssh = Some(Ssh { host: "build".into(), ..Ssh::default() });
    let mut app = app(found(), AgentSpec { ssh, ..fake() });
    app.handshake(all_capabilities());
    assert_eq!(app.state.questions, []);
    app.expect_sent("connect 1 after 0 ms\ncall new");
}

#[test]
fn a_remote_agent_gets_servers_only_if_enabled() {
    for (is_ssh, gets_servers) in [(false, false), (false, true), (true, false), (true, true)] {
        let remote = Remote { url: "https://far.example".into(), gets_servers, ..Remote::default() };
        let ssh = Ssh { host: "build".into(), gets_servers, ..Ssh::default() };
        let remote = AgentSpec { remote: (!is_ssh).then_some(remote), ssh: is_ssh.then_some(ssh), ..fake() };
        let mut app = app(found(), remote);
        app.fx.clear();
        app.handshake(all_capabilities());
        let reported = app.fx.iter().find_map(|effect| match effect {
            Effect::Send(_, AgentCommand::Call(_, Call::NewSession(position))) => {
                Some(position.mcp_servers.clone())
            }
            _ => None,
        });
        let expected = if gets_servers { vec![server("mine")] } else { Vec::new() };
        assert_eq!(reported, Some(expected), "but never those of the folder");
        assert_eq!(app.state.questions, []);
        let is_reported = |notice: &String| {
            notice.starts_with("MCP servers not passed to the agent: mine ") && notice.contains("mcp = true")
        };
        assert_eq!(app.notices().iter().any(is_reported), !gets_servers);
        // A local agent that replaces it gets them.
        app.flow(|state, cx| operations::start_agent(state, KEY, fake(), cx));
        let conn = app.conn();
        app.handshake_of(conn, all_capabilities());
        assert_eq!(app.state.questions.len(), 1, "those of the folder are asked about");
        app.decide_trust(TrustAnswer::NotNow);
        assert_eq!(names(&app), ["mine"]);
    }
}

#[test]
fn acp_v1_additional_folders_not_supported_by_the_agent_are_reported() {
    let more = |caps| {
        let setup = Setup {
            folder: PathBuf::from("/code/shop"),
            start_with: Some(fake()),
            additional_directories: vec![UserRoot::given("/code/lib")],
            ..Setup::default()
        };
        let mut app = TestCore::start(setup);
        app.handshake(caps);
        app.session().transcript.items().len()
    };
    assert_eq!(more(AgentCapabilities { additional_directories: true, ..all_capabilities() }), 0);
    assert_eq!(more(AgentCapabilities { additional_directories: false, ..all_capabilities() }), 1);
}

#[test]
fn a_continued_session_has_its_recorded_and_the_current_folders() {
    let saved = RecordedSession {
        head: SessionHead {
            session: Some("old".into()),
            workspace: SessionWorkspace {
                cwd: "/code/shop".into(),
                additional_directories: vec![UserRoot::given("/code/lib")],
                ..SessionWorkspace::default()
            },
            ..SessionHead::default()
        },
        ..RecordedSession::default()
    };
    let setup = Setup {
        folder: PathBuf::from("/code/shop"),
        start_with: Some(fake()),
        reopen: Some(Box::new(saved)),
        additional_directories: vec![UserRoot::given("/code/new"), UserRoot::given("/code/lib")],
        ..Setup::default()
    };
    let started = TestCore::start(setup);
    let position = &started.state.active_session().unwrap().workspace;
    assert_eq!(position.additional_directories, ["/code/lib", "/code/new"].map(UserRoot::given));
}

#[test]
fn a_tab_in_another_folder_has_only_the_servers_of_that_folder() {
    let mut app = app(FolderServers { answer: Some(true), ..found() }, fake());
    app.handshake(all_capabilities()).open(ID);
    app.fx.clear();
    let key = app.open_tab("/code/lib", fake());
    app.fx.clear();
    let conn = app.state.sessions[&key].conn.unwrap();
    let info = AgentInfo { capabilities: all_capabilities(), ..AgentInfo::default() };
    let ready = Event::Agent(conn, AgentEvent::Ready(Box::new(info)));
    let fx = app.effects_after(ready);
    let folder = PathBuf::from("/code/lib");
    assert!(fx.contains(&Effect::FindServers { folder: folder.clone() }), "{fx:?}");
    let here = FolderServers {
        file: "/code/lib/.mcp.json".into(),
        folder: folder.clone(),
        servers: vec![server("lib")],
        lines: vec!["lib: runs /bin/mcp".into()],
        notes: Vec::new(),
        ..found()
    };
    app.service(ServiceEvent::ServersFound(folder.clone(), Ok(Some(here)))).expect_sent("");
    assert!(app.state.questions.last().is_some_and(|question| question.body[1].contains("lib: runs")));
    // In an inactive tab the question stays open.
    app.flow(|state, _| operations::activate(state, KEY));
    app.expect_sent("");
    app.decide_trust(TrustAnswer::Use);
    app.expect_sent("call new");
    let names =
        |key| app.state.sessions[&key].workspace.mcp_servers.iter().map(McpServer::name).collect::<Vec<_>>();
    assert_eq!((names(key), names(KEY)), (vec!["mine", "lib"], vec!["mine", "files"]));
}

#[test]
fn an_unreadable_file_is_reported_and_the_session_opens() {
    let mut app = app(FolderServers { answer: Some(false), ..found() }, fake());
    app.handshake(all_capabilities()).open(ID);
    let key = app.open_tab("/code/lib", fake());
    let conn = app.state.sessions[&key].conn.unwrap();
    app.effects_after(Event::Agent(conn, AgentEvent::Ready(Box::default())));
    app.fx.clear();
    let problem = "The servers of /code/lib/.mcp.json are left out: it is no JSON.".to_owned();
    app.service(ServiceEvent::ServersFound("/code/lib".into(), Err(problem.clone()))).expect_sent("call new");
    let items = app.state.sessions[&key].transcript.items();
    assert!(
        items.iter().any(|item| matches!(&item.body, ItemBody::Notice { title, .. } if *title == problem))
    );
}
