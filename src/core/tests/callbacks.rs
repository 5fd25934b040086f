//! Tests of file and terminal requests.

use super::support::*;
use crate::core::lifecycle::operations;
use crate::core::*;
use crate::model::*;

fn read(path: &str) -> AgentRequest {
    AgentRequest::ReadFile { session: Some(ID.into()), path: path.into(), line: Some(2), limit: None }
}

fn ended(app: &mut TestCore, id: &str, code: i32) {
    let exit = ExitInfo { code: Some(code), signal: None };
    app.service(ServiceEvent::TerminalEnded { terminal: id.into(), exit });
}

/// A command that runs in terminal `x`, without unread effects.
fn with_command() -> TestCore {
    let mut app = TestCore::running();
    app.ask(1, create(TerminalCommand { command: "sleep 9".into(), ..TerminalCommand::default() }));
    app.choose(Some(0));
    app.terminal_started(1, "x", "sleep 9");
    app.expect_sent("terminal create 1 \"sleep 9\" in /code/shop\nanswer 1: created x");
    app
}

#[test]
fn a_file_is_served_within_the_roots_and_relative_to_the_folder() {
    let mut app = TestCore::running();
    app.ask(1, read("src/a.rs")).ask(2, read("/etc/hosts"));
    let [Effect::File(job), Effect::File(_)] = app.fx.as_slice() else {
        panic!("two jobs: {:?}", app.fx);
    };
    assert_eq!(job.roots, [std::path::PathBuf::from("/code/shop")]);
    assert_eq!(job.op, FileOp::Read { line: Some(2), limit: None });
    assert!(!job.missing_reads_empty && job.allowed.is_none());
    app.expect_sent("file 1 /code/shop/src/a.rs\nfile 2 /etc/hosts");
    let done = |request_id, result| ServiceEvent::FileDone {
        conn: CONN,
        request_id: RequestId(request_id),
        result,
        served: None,
    };
    app.service(done(1, Ok(Some("text".into()))));
    app.service(done(2, Err(RpcError::new(RpcError::RESOURCE_NOT_FOUND, "gone"))));
    app.service(done(1, Ok(Some("again".into()))));
    app.expect_sent("answer 1: content \"text\"\nanswer 2: error -32002");
}

#[test]
fn a_quirk_makes_missing_files_read_as_empty() {
    let mut app = TestCore::started();
    app.handshake(AgentCapabilities { missing_file_reads_empty: true, ..AgentCapabilities::default() });
    app.open(ID).ask(1, read("a"));
    assert!(app.fx.iter().any(|effect| matches!(effect, Effect::File(job) if job.missing_reads_empty)));
}

#[test]
fn acp_v1_methods_that_were_not_offered_are_rejected() {
    let callbacks = Callbacks { fs_read: false, fs_write: false, terminal: false };
    let mut app =
        TestCore::with_spec(AgentSpec { command: "fake".into(), callbacks, ..AgentSpec::default() });
    app.handshake(all_capabilities()).open(ID);
    app.fx.clear();
    app.ask(1, read("a"));
    app.ask(2, AgentRequest::WriteFile { session: None, path: "a".into(), content: String::new() });
    app.ask(3, create(TerminalCommand::default()));
    app.ask(4, AgentRequest::TerminalWait("x".into()));
    app.expect_sent(
        "answer 1: error -32601\nanswer 2: error -32601\nanswer 3: error -32601\nanswer 4: error -32601",
    );
}

fn asks_about(app: &mut TestCore, job: FileJob, real: &str) {
    let access = Access::Read { path: real.into() };
    let asked = AskedFile { access, facts: Facts::default(), why: AskReason::Outside, change: None };
    app.service(ServiceEvent::FileAsks { job, asked: Box::new(asked) });
}

fn outside(app: &mut TestCore, request_id: u64) {
    app.ask(request_id, read("/etc/hosts"));
    let Some(Effect::File(job)) = app.fx.pop() else {
        panic!("a job");
    };
    asks_about(app, job, "/private/etc/hosts");
}

#[test]
fn a_file_outside_of_the_roots_is_asked_about() {
    let mut app = TestCore::running();
    outside(&mut app, 1);
    assert_eq!(app.session().requests.len(), 1);
    app.choose(Some(0));
    assert!(
        matches!(app.fx.as_slice(), [Effect::File(job)] if job.allowed.as_ref().is_some_and(|it| it.by == AllowedBy::You))
    );
    app.fx.clear();
    app.service(ServiceEvent::FileDone {
        conn: CONN,
        request_id: RequestId(1),
        result: Ok(None),
        served: None,
    });
    app.expect_sent("answer 1: done");
    outside(&mut app, 2);
    app.choose(Some(3));
    outside(&mut app, 3);
    app.choose(None);
    app.expect_sent("answer 2: error -32603\nanswer 3: error -32603");
}

#[test]
fn a_cancel_answers_a_file_that_waits_for_the_user() {
    let mut app = TestCore::running();
    outside(&mut app, 1);
    app.ask(2, read("/etc/passwd"));
    let Some(Effect::File(job)) = app.fx.pop() else {
        panic!("a job");
    };
    app.cancel();
    asks_about(&mut app, job, "/etc/passwd");
    app.expect_sent("cancel s\nstop files of 1\nanswer 1: error -32800\nanswer 2: error -32800");
}

fn write(path: &str) -> AgentRequest {
    AgentRequest::WriteFile { session: Some(ID.into()), path: path.into(), content: String::new() }
}

/// Five reads and a write, of which four reads are at the service; without unread effects.
fn with_waiting_files() -> TestCore {
    let mut app = TestCore::running();
    for number in 1..=5 {
        app.ask(number, read("a"));
    }
    app.ask(6, write("b"));
    app.expect_sent(&[1, 2, 3, 4].map(|number| format!("file {number} /code/shop/a")).join("\n"));
    app
}

#[test]
fn a_cancel_stops_the_file_requests_of_the_session() {
    let mut app = with_waiting_files();
    app.cancel();
    app.expect_sent("cancel s\nstop files of 1\nanswer 5: error -32800\nanswer 6: error -32800");
}

#[test]
fn the_end_of_a_turn_stops_reads_but_no_writes() {
    let mut app = with_waiting_files();
    app.end_turn(StopReason::EndTurn);
    app.expect_sent("stop reads of 1\nanswer 5: error -32800");
    let error = RpcError::new(RpcError::CANCELLED, "stopped");
    app.service(ServiceEvent::FileDone {
        conn: CONN,
        request_id: RequestId(1),
        result: Err(error),
        served: None,
    });
    app.expect_sent("file 6 /code/shop/b\nanswer 1: error -32800");
}

#[test]
fn closing_a_session_stops_its_file_requests() {
    let mut app = TestCore::running();
    app.flow(operations::new_session).open("two");
    app.fx.clear();
    app.ask(1, read("a")).flow(|state, cx| operations::close_session(state, KEY, cx));
    let sent = app.sent();
    assert!(sent.contains("stop files of 1"), "{sent}");
}

#[test]
fn a_session_does_not_wait_for_the_files_of_another() {
    let mut app = with_waiting_files();
    app.flow(operations::new_session).open("two");
    app.fx.clear();
    let request =
        AgentRequest::ReadFile { session: Some("two".into()), path: "a".into(), line: None, limit: None };
    app.ask(7, request).expect_sent("file 7 /code/shop/a");
}

#[test]
fn a_cancelled_file_request_is_answered_with_its_result() {
    let mut app = TestCore::running();
    app.ask(1, read("a"))
        .agent(AgentEvent::RequestWithdrawn(RequestId(1)))
        .expect_sent("file 1 /code/shop/a");
    app.service(ServiceEvent::FileDone {
        conn: CONN,
        request_id: RequestId(1),
        result: Ok(Some(String::new())),
        served: None,
    });
    app.expect_sent("answer 1: content \"\"");
}

#[test]
fn a_command_runs_in_its_working_directory() {
    let mut app = TestCore::running();
    let command =
        |cwd: Option<&str>| TerminalCommand { cwd: cwd.map(Into::into), ..TerminalCommand::default() };
    app.ask(1, create(command(Some("sub")))).ask(2, create(command(Some("/tmp"))));
    app.expect_sent("").choose(Some(0)).choose(Some(0));
    app.expect_sent("terminal create 1 \"\" in /code/shop/sub\nterminal create 2 \"\" in /tmp");
}

#[test]
fn output_is_shown_and_read() {
    let mut app = with_command();
    app.service(ServiceEvent::TerminalOutput { terminal: "x".into(), bytes: b"hi\n".to_vec() });
    assert_eq!(app.session().terminals[&TerminalId::from("x")].output[..], *b"hi\n");
    app.ask(2, AgentRequest::TerminalOutput("x".into())).expect_sent("terminal read 2 x");
    app.service(ServiceEvent::TerminalRead {
        conn: CONN,
        request_id: RequestId(2),
        result: Ok(("hi\n".into(), false, None)),
    });
    app.expect_sent("answer 2: output \"hi\\n\" false");
}

#[test]
fn acp_v1_a_wait_is_answered_at_the_exit_or_immediately_after_it() {
    let mut app = with_command();
    app.ask(2, AgentRequest::TerminalWait("x".into()))
        .ask(3, AgentRequest::TerminalWait("x".into()))
        .expect_sent("");
    ended(&mut app, "x", 3);
    app.expect_sent("answer 2: exit Some(3) None\nanswer 3: exit Some(3) None");
    app.ask(4, AgentRequest::TerminalWait("x".into())).expect_sent("answer 4: exit Some(3) None");
}

#[test]
fn acp_v1_a_killed_terminal_keeps_its_id_and_a_released_one_does_not() {
    let mut app = with_command();
    app.ask(2, AgentRequest::TerminalKill("x".into())).expect_sent("terminal kill x\nanswer 2: done");
    app.ask(3, AgentRequest::TerminalWait("x".into())).ask(4, AgentRequest::TerminalRelease("x".into()));
    app.expect_sent("terminal release x\nanswer 4: done\nanswer 3: exit None Some(\"SIGKILL\")");
    for (request_id, request) in [
        (5, AgentRequest::TerminalOutput("x".into())),
        (6, AgentRequest::TerminalWait("x".into())),
        (7, AgentRequest::TerminalKill("x".into())),
        (8, AgentRequest::TerminalRelease("x".into())),
    ] {
        app.ask(request_id, request).expect_sent(&format!("answer {request_id}: error -32002"));
    }
    assert!(app.session().terminals.contains_key(&TerminalId::from("x")), "the output stays");
}

#[test]
fn a_cancelled_wait_is_answered() {
    let mut app = with_command();
    app.ask(2, AgentRequest::TerminalWait("x".into())).agent(AgentEvent::RequestWithdrawn(RequestId(2)));
    app.expect_sent("answer 2: error -32800");
    ended(&mut app, "x", 0);
    app.expect_sent("");
}

#[test]
fn a_command_that_started_too_late_is_released() {
    let mut app = TestCore::running();
    app.ask(1, create(TerminalCommand::default())).choose(Some(0));
    app.crash();
    app.fx.clear();
    app.terminal_started(1, "x", "sleep 9");
    app.expect_sent("terminal release x");
}

#[test]
fn the_end_of_an_agent_ends_its_commands() {
    let mut app = with_command();
    app.crash().expect_sent("terminal release all of 1\nconnect 2 after 500 ms");
    assert!(app.session().terminals[&TerminalId::from("x")].exit.is_some());
}

#[test]
fn the_user_kills_the_selected_command_or_the_only_one() {
    let kill = |state: &mut State, cx: &mut Cx| operations::stop_part(state, KEY, None, cx);
    let mut app = with_command();
    app.flow(kill).expect_sent("terminal kill x");
    app.ask(2, create(TerminalCommand::default())).choose(Some(0));
    app.fx.clear();
    app.terminal_started(2, "y", "sleep 9");
    app.expect_sent("answer 2: created y").flow(kill).expect_sent("");
    assert_eq!(app.state.flash.as_deref(), Some("Several commands are running. Select the one to stop."));
    app.update(patch("t", |patch| {
        patch.content = Patch::Set(vec![ToolContent::Terminal("y".into())]);
    }));
    app.flow(|state, cx| operations::stop_part(state, KEY, Some(ItemId(3)), cx));
    app.expect_sent("terminal kill y");
    ended(&mut app, "x", 0);
    ended(&mut app, "y", 0);
    app.flow(kill).expect_sent("");
    assert_eq!(app.state.flash.as_deref(), Some("No command to stop."));
}
