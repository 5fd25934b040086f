//! Tests of the lifecycle of an agent: start, crash, restart, sign-in, stop, quit.

use super::support::*;
use crate::core::lifecycle::operations;
use crate::core::state::texts;
use crate::core::*;
use crate::model::*;

#[test]
fn the_initial_state_starts_the_agent_or_opens_the_picker() {
    let mut app = TestCore::started();
    app.expect("starting · idle").expect_sent("connect 1 after 0 ms");
    let Core { state, requests } = TestCore::start(Setup::default()).driven;
    assert_eq!(requests, [UiRequest::AgentPicker]);
    assert!(state.conns.is_empty());
    assert_eq!(digest(&state.sessions[&state.active]), "no agent · idle");
}

#[test]
fn acp_v1_the_handshake_comes_before_the_session() {
    let mut app = TestCore::started();
    app.expect_sent("connect 1 after 0 ms");
    app.handshake(all_capabilities()).expect_sent("call new").expect("opening · idle");
    let folder = app.state.setup.folder.clone();
    app.open(ID).expect("ready · idle");
    assert!(app.fx.iter().any(|effect| matches!(effect, Effect::ReadGit { .. })));
    assert_eq!(app.session().workspace.cwd, folder);
    assert_eq!(app.state.conns[&CONN].pid, Some(7));
}

#[test]
fn a_crash_in_a_turn_keeps_the_partial_text_and_resumes() {
    let mut app = TestCore::running();
    app.update(says("I wi")).update(call("t", ToolStatus::InProgress)).crash();
    app.expect_sent("connect 2 after 500 ms");
    let died = r#"
        user* "go"
        agent "I wi"
        tool t Cancelled? "do t"
        end died: The agent exited with exit code 3. ["out of luck"]
        "#;
    app.expect(&format!("starting · idle\n{died}"));
    app.handshake(all_capabilities()).expect_sent("call resume s");
    app.reply(Ok(Reply::Session(SessionReply::default())));
    app.expect(&format!("ready · idle\n{died}\nnotice Info: Session resumed."));
    app.submit("go on").expect_sent(r#"call prompt "go on""#);
}

#[test]
fn without_resume_the_history_is_loaded_and_compared() {
    let mut app = TestCore::running();
    app.update(says("old")).crash();
    app.handshake(AgentCapabilities { can_load: true, ..AgentCapabilities::default() });
    app.expect_sent("connect 2 after 500 ms\ncall load s");
    assert_eq!(app.session().transcript.items().len(), 3, "the items stay until the replay begins");
    app.updates(vec![
        text(Role::User, "go"),
        says("old"),
        call("call_1", ToolStatus::Pending),
        text(Role::User, "again"),
        call("call_1", ToolStatus::Pending),
        call("call_1", ToolStatus::Completed),
        call("call_1", ToolStatus::Pending),
    ]);
    app.reply(Ok(Reply::Done)).play(Event::Timer(TimerId::History(KEY)));
    app.expect(
        r#"ready · idle
        user* "go"
        agent "old"
        end died: The agent exited with exit code 3. ["out of luck"]
        notice Info: Session resumed.
        notice Info: The agent's history could not be matched with this record."#,
    );
    assert!(!app.session().has_background_news);
}

#[test]
fn a_failed_replay_restores_the_items_and_reports_the_loss() {
    let mut app = TestCore::running();
    app.update(says("old")).end_turn(StopReason::EndTurn).crash();
    app.handshake(AgentCapabilities { can_load: true, ..AgentCapabilities::default() });
    app.update(text(Role::User, "go")).fail(RpcError::RESOURCE_NOT_FOUND, "file is broken");
    app.expect_sent("connect 2 after 500 ms\ncall load s\ncall new");
    app.open("t");
    app.expect(
        r#"
        ready · idle
        user* "go"
        agent "old"
        notice Error: The agent exited with exit code 3.
        notice Warning: The agent could not restore this conversation.
        "#,
    );
    assert_eq!(app.session().id, Some("t".into()));
}

#[test]
fn an_empty_load_and_a_late_replay_of_the_same_keep_the_items() {
    let mut app = TestCore::running();
    app.update(says("old")).end_turn(StopReason::EndTurn).crash();
    app.handshake(AgentCapabilities { can_load: true, ..AgentCapabilities::default() });
    app.reply(Ok(Reply::Done)).update(says("connectors do not load"));
    let shown = r#"
        ready · idle
        user* "go"
        agent "old"
        notice Error: The agent exited with exit code 3.
        notice Info: Session resumed.
        agent "connectors do not load" …
        "#;
    app.expect(shown);
    app.updates(vec![text(Role::User, "go"), says("old")]);
    app.expect(shown);
}

#[test]
fn an_agent_without_resume_and_load_reports_a_lost_conversation() {
    let mut app = TestCore::running();
    app.end_turn(StopReason::EndTurn).crash();
    app.handshake(AgentCapabilities::default());
    app.expect_sent("connect 2 after 500 ms\ncall new");
    let last = app.last_notice();
    assert!(last.starts_with("The agent could not restore this conversation. "), "{last}");
    assert!(last.contains("neither resume nor load"), "{last}");
}

#[test]
fn a_failed_resume_tries_a_load() {
    let mut app = TestCore::running();
    app.update(says("ok")).end_turn(StopReason::EndTurn).crash().handshake(all_capabilities());
    app.fail(-32603, "no").expect_sent("connect 2 after 500 ms\ncall resume s\ncall load s");
    app.expect(
        "loading · idle\nuser* \"go\"\nagent \"ok\"\nnotice Error: The agent exited with exit code 3.",
    );
}

#[test]
fn three_crashes_in_a_minute_stop_the_restarts() {
    let mut app = TestCore::ready();
    app.crash().handshake(all_capabilities());
    app.wait(1).crash().handshake(all_capabilities());
    app.wait(1).crash();
    app.expect_sent(
        r"
        connect 2 after 500 ms
        call resume s
        connect 3 after 2000 ms
        call resume s
        ",
    );
    let Some(dialog) = app.state.questions.last() else {
        panic!("the user is asked");
    };
    assert_eq!(dialog.answers[0].consequence, Consequence::Restart(KEY));
    assert!(dialog.body.contains(&"out of luck".to_owned()));
    assert!(matches!(&app.session().phase, SessionPhase::Ended { cause } if cause.contains("Restart it")));
    app.flow(|state, cx| operations::restart_agent(state, KEY, cx));
    app.expect_sent("connect 4 after 0 ms");
    assert_eq!(app.state.questions, [], "the choice was made");
    assert_eq!(app.state.conns.len(), 1, "closed connections are dropped");
}

#[test]
fn a_remote_agent_has_more_time_to_recover() {
    let remote = Some(Remote { url: "https://host".into(), ..Remote::default() });
    let mut app = TestCore::with_spec(AgentSpec { name: "far".into(), remote, ..AgentSpec::default() });
    app.handshake(all_capabilities()).open(ID);
    app.fx.clear();
    app.agent(AgentEvent::Closed(CloseReason::Lost { error: "the stream broke".into() }));
    for _ in 0..11 {
        let error = "Nothing answers at host. Start the server.".to_owned();
        app.wait(5).agent(AgentEvent::Closed(CloseReason::Unreachable { error }));
    }
    let delays = [500, 2_000, 4_000, 8_000].into_iter().chain([15_000; 7]);
    let expected: Vec<String> =
        (2..).zip(delays).map(|(conn, delay)| format!("connect {conn} after {delay} ms")).collect();
    app.expect_sent(&expected.join("\n"));
    app.expect(
        r"
        ended · idle
        notice Error: The connection failed.
        notice Error: The connection failed.
        ",
    );
    let again = "Reconnecting automatically.";
    assert_eq!(
        app.notices(),
        [
            format!("The connection failed. The stream broke.\n{again}"),
            format!("The connection failed. Nothing answers at host. Start the server.\n{again}")
        ]
    );
    let Some(dialog) = app.state.questions.last() else { panic!("the user is asked") };
    assert_eq!((dialog.title.as_str(), dialog.answers[0].label.as_str()), ("Agent unreachable", "Retry"));
    assert!(dialog.body.contains(&"Reconnecting failed for 55 s and was stopped.".to_owned()), "{dialog:?}");
}

#[test]
fn an_interrupted_connection_is_retried_and_not_restarted() {
    let mut app = TestCore::running();
    app.fx.clear();
    app.agent(AgentEvent::Interrupted(true)).wait(3).agent(AgentEvent::Interrupted(true));
    let since = app.state.conns.values().next().and_then(|conn| conn.interrupted);
    assert_eq!(app.now.duration_since(since.unwrap()).as_secs(), 3);
    app.flow(|state, cx| operations::restart_agent(state, KEY, cx));
    assert!(matches!(app.fx[..], [Effect::RetryNow(_)]), "{:?}", app.fx);
    assert!(app.session().turn.is_running());
    app.agent(AgentEvent::Interrupted(false));
    assert!(app.state.conns.values().all(|conn| conn.interrupted.is_none()));
}

#[test]
fn a_failed_retry_of_a_lost_connection_is_repeated() {
    let remote = Some(Remote { url: "https://host".into(), ..Remote::default() });
    let mut app = TestCore::with_spec(AgentSpec { name: "far".into(), remote, ..AgentSpec::default() });
    app.handshake(all_capabilities()).open(ID);
    app.agent(AgentEvent::Closed(CloseReason::Lost { error: "the stream broke".into() }));
    app.flow(|state, cx| operations::restart_agent(state, KEY, cx));
    app.fx.clear();
    let error = "Nothing answers at host. Start the server.".to_owned();
    app.agent(AgentEvent::Closed(CloseReason::Unreachable { error }));
    assert!(app.sent().contains("after 2000 ms"), "{}", app.sent());
}

#[test]
fn a_refused_connection_is_not_retried() {
    let mut app = TestCore::ready();
    let error = "host wants a token (401).".to_owned();
    app.agent(AgentEvent::Closed(CloseReason::Refused { error })).expect_sent("");
    app.expect("ended · idle\nnotice Error: The connection failed.");
    let last = app.last_notice();
    assert_eq!(last, "The connection failed. host wants a token (401).", "the class, then the cause");

    let mut app = TestCore::running();
    app.agent(AgentEvent::Closed(CloseReason::Refused { error: "host wants a token (401).".to_owned() }));
    let last = app.session().transcript.items().last().map(|item| item.body.clone());
    let Some(ItemBody::TurnEnd(TurnEnd::AgentDied { cause, .. })) = last else { panic!("{last:?}") };
    assert_eq!(cause, "The connection failed. host wants a token (401).");
}

#[test]
fn distant_crashes_are_not_counted_together() {
    let mut app = TestCore::ready();
    for _ in 0..5 {
        app.wait(61).crash().handshake(all_capabilities());
        app.reply(Ok(Reply::Done));
    }
    assert!(!app.sent().contains("2000"));
    assert_eq!(app.state.questions, []);
}

#[test]
fn a_program_without_a_handshake_is_not_restarted() {
    let mut app = TestCore::started();
    app.submit("kept");
    let anomaly = Anomaly { kind: AnomalyKind::Noise, text: "this program has moved".into() };
    app.agent(AgentEvent::Anomaly(anomaly)).agent(AgentEvent::Closed(CloseReason::Exited {
        status: ExitInfo { code: Some(0), signal: None },
        stderr_tail: Vec::new(),
    }));
    app.expect_sent("connect 1 after 0 ms");
    app.expect(
        r#"
        ended · idle · queue ["kept"]
        notice Error: The agent exited with exit code 0.
        "#,
    );
    assert_eq!((app.session().anomaly_count, app.state.anomaly_count), (1, 1));
    let last = app.last_notice();
    assert!(last.starts_with("The agent exited with exit code 0. this program has moved\n"), "{last}");
    app.flow(|state, cx| operations::restart_agent(state, KEY, cx));
    app.handshake(all_capabilities()).open(ID);
    app.expect_sent("connect 2 after 0 ms\ncall new\ncall prompt \"kept\"");
}

#[test]
fn a_missing_program_shows_what_to_do() {
    let mut app = TestCore::started();
    let error = "No such file or directory".to_owned();
    app.agent(AgentEvent::Closed(CloseReason::NotStarted { error, is_missing: true }));
    app.expect(
        r"
        ended · idle
        notice Error: Program fake not found. Install it, or select another agent.
        ",
    );
}

#[test]
fn a_failed_handshake_is_reported_with_the_last_output() {
    let mut app = TestCore::started();
    let error = RpcError::new(1001, "config.toml is broken");
    app.agent(AgentEvent::InitializeFailed(CallError::Agent(error))).crash();
    app.expect_sent("connect 1 after 0 ms\ndisconnect 1");
    app.expect(
        r"
        failed · idle
        notice Error: The agent could not be initialized. The agent reported an error.
        notice Info: Last output of the agent
        ",
    );
}

#[test]
fn a_restart_moves_all_sessions_and_answers_open_requests() {
    let mut app = TestCore::running();
    app.flow(operations::new_session).open("other").ask(1, permission("t"));
    app.fx.clear();
    app.flow(|state, cx| operations::restart_agent(state, KEY, cx));
    app.expect_sent(
        r"
        cancel s
        answer 1: permission cancelled
        disconnect 1
        connect 2 after 0 ms
        ",
    );
    app.play(Event::Agent(CONN, AgentEvent::Update(ID.into(), says("too late"))));
    app.handshake(all_capabilities()).expect_sent("call resume s\ncall resume other");
    app.play(Event::Agent(CONN, AgentEvent::Closed(CloseReason::Stopped))).expect_sent("");
    app.expect(
        r#"
        opening · idle
        user* "go"
        tool t Cancelled? "" [cancelled] (hidden)
        end Cancelled
        "#,
    );
}

#[test]
fn a_force_stop_is_not_treated_as_a_crash() {
    let mut app = TestCore::running();
    app.cancel().flow(|state, cx| operations::force_stop(state, CONN, cx));
    app.agent(AgentEvent::Closed(CloseReason::Exited {
        status: ExitInfo { code: None, signal: Some("SIGKILL".into()) },
        stderr_tail: Vec::new(),
    }));
    app.expect_sent("cancel s\ndisconnect 1 now");
    app.expect("ended · idle\nuser* \"go\"\nend Cancelled");
    app.submit("more").expect(
        r#"
        ended · idle · queue ["more"]
        user* "go"
        end Cancelled
        "#,
    );
}

#[test]
fn another_agent_opens_a_new_session_with_a_notice() {
    let mut app = TestCore::running();
    app.update(says("ok")).end_turn(StopReason::EndTurn);
    let spec = spec("other");
    app.flow(|state, cx| operations::start_agent(state, KEY, spec, cx));
    app.handshake(all_capabilities());
    app.expect_sent("disconnect 1\nconnect 2 after 0 ms\ncall new");
    app.open("x").expect(
        r#"
        ready · idle
        user* "go"
        agent "ok"
        notice Warning: The agent could not restore this conversation.
        "#,
    );
}

#[test]
fn quitting_cancels_answers_and_stops_in_order() {
    let mut app = TestCore::running();
    app.ask(1, permission("t")).play(Event::Terminate);
    app.expect_sent("cancel s\nanswer 1: permission cancelled\ndisconnect 1\nquit");
    assert!(app.state.is_quitting);
    app.ask(2, permission("u")).ask(3, AgentRequest::TerminalWait("x".into()));
    app.expect_sent("answer 2: permission cancelled\nanswer 3: error -32603");
    app.crash().expect_sent("");
    assert_eq!(app.state.conns.len(), 1);
}

#[test]
fn signing_out_needs_the_capability() {
    let mut app = TestCore::ready();
    app.flow(|state, cx| operations::sign_out(state, CONN, cx)).expect_sent("call logout");
    let mut app = TestCore::started();
    app.handshake(AgentCapabilities::default()).open(ID).expect_sent("connect 1 after 0 ms\ncall new");
    app.flow(|state, cx| operations::sign_out(state, CONN, cx)).expect_sent("");
    assert_eq!(app.state.flash.as_deref(), Some("This agent does not support signing out."));
}

#[test]
fn each_class_of_error_has_a_hint() {
    assert_eq!(texts::error_text(&CallError::Agent(RpcError::new(-1, "no credit"))), "no credit");
    assert!(texts::error_text(&CallError::Malformed { error: "no id".into() }).contains("protocol log"));
    assert!(texts::error_text(&CallError::TimedOut(60)).contains("60 s"));
    assert!(texts::error_text(&CallError::Lost).contains("Restart"));
    let busy = CallError::Agent(RpcError::new(-1, "overloaded"));
    let (line, unsent) = ("no route".to_owned(), "too long".to_owned());
    for (error, fault) in [
        (CallError::Agent(RpcError::new(-1, "unknown model")), FaultKind::Agent),
        (CallError::Agent(RpcError::new(-1, "no credit")), FaultKind::Quota),
        (CallError::Agent(RpcError::new(-1, "400 API key not valid. Pass a valid API key.")), FaultKind::Key),
        (CallError::Agent(RpcError::new(-1, "401 status code (no body)")), FaultKind::Key),
        (CallError::Agent(RpcError::new(-1, "getaddrinfo ENOTFOUND api.example.org")), FaultKind::Network),
        (busy, FaultKind::Busy),
        (CallError::Malformed { error: "no id".into() }, FaultKind::Protocol),
        (CallError::OtherVersion { theirs: "2".into() }, FaultKind::Protocol),
        (CallError::Undelivered { error: line }, FaultKind::Line),
        (CallError::TimedOut(60), FaultKind::Line),
        (CallError::Lost, FaultKind::Line),
        (CallError::NotSent { error: unsent }, FaultKind::Unsent),
    ] {
        assert_eq!(texts::fault_of(&error), fault, "{error:?}");
    }
    for fault in FaultKind::ALL {
        assert!(fault.next().ends_with('.') && !fault.heading().ends_with('.'), "{fault:?}");
    }
    let output =
        |lines: &[&str]| texts::advice_of_output(&lines.iter().map(ToString::to_string).collect::<Vec<_>>());
    let old = output(&["SyntaxError: Unexpected token '.'", "", "Node.js v12.22.9"]);
    assert!(old.is_some_and(|advice| advice.contains("Node.js 12.22.9")));
    assert!(
        output(&["Error: Cannot find module 'x'", "Node.js v24.1.0"])
            .is_some_and(|advice| advice.contains("again"))
    );
    assert_eq!(output(&["Error: no account", "Node.js v24.1.0"]), None);
    let killed = ExitInfo { code: None, signal: Some("SIGKILL".into()) };
    assert_eq!(texts::exit_text(&killed), "signal SIGKILL (out of memory?)");
}

#[test]
fn a_program_that_is_not_an_agent_is_reported_with_a_hint() {
    // It exits before sending anything.
    let mut app = TestCore::started();
    app.agent(AgentEvent::Started { pid: None }).crash();
    let last = app.last_notice();
    assert!(last.contains(" out of luck\n") && last.ends_with(texts::NOT_AN_AGENT), "{last}");
    // It echoes the request.
    let mut app = TestCore::started();
    let echo = RpcError::new(RpcError::METHOD_NOT_FOUND, "Method not found: initialize");
    app.agent(AgentEvent::InitializeFailed(CallError::Agent(echo)));
    assert!(app.last_notice().ends_with(texts::NOT_AN_AGENT), "{:?}", app.notices());
    // It only writes noise.
    let mut app = TestCore::started();
    for _ in 0..100 {
        let line = Anomaly { kind: AnomalyKind::Noise, text: "A line that is no message: y".into() };
        app.agent(AgentEvent::Anomaly(line));
    }
    app.expect("starting · idle\nnotice Warning: fake wrote output that is not a protocol message.");
    // An agent that worked before needs no such hint.
    let mut app = TestCore::ready();
    app.crash();
    let last = app.last_notice();
    assert!(last.ends_with(" out of luck\nRestarting automatically."), "{last}");
}

#[test]
fn the_message_about_a_waiting_prompt_is_cleared_when_the_agent_starts() {
    let mut app = TestCore::ready();
    app.crash().handshake(AgentCapabilities::default()).open(ID);
    app.agent(AgentEvent::Closed(CloseReason::NotStarted { error: "gone".into(), is_missing: true }));
    app.submit("wait for it");
    let text = "The agent is not running. The prompt is sent after a restart.";
    assert_eq!(app.state.flash.as_deref(), Some(text));
    app.flow(|state, cx| operations::restart_agent(state, KEY, cx));
    assert_eq!(app.state.flash, None);
}

#[test]
fn errors_at_the_start_are_reported_by_class_with_a_hint() {
    let busy = || CallError::Agent(RpcError::new(-32603, "429 Too Many Requests"));
    for (error, class, next) in [
        (
            CallError::Agent(RpcError::new(1001, "config.toml is broken")),
            "The agent reported",
            "Fix the error",
        ),
        (busy(), "The agent reported", "may be temporary"),
        (CallError::Agent(RpcError::new(-32601, "what?")), "The agent reported", "may need an argument"),
        (CallError::Malformed { error: "no id".into() }, "Invalid response", "may need an argument"),
        (CallError::OtherVersion { theirs: "9".into() }, "Invalid response", "update parlor"),
        (CallError::TimedOut(30), "The connection failed", "may need an argument"),
        (CallError::Undelivered { error: "no route".into() }, "The connection failed", "no route"),
    ] {
        let mut app = TestCore::started();
        app.agent(AgentEvent::InitializeFailed(error.clone()));
        let reported = format!("{:?}", app.session().transcript.items());
        assert!(
            reported.contains("could not be initialized") && reported.contains(class),
            "{error:?}: {reported}"
        );
        assert!(reported.contains(next), "{error:?}: {reported}");
    }
    for (error, class, next) in [
        (busy(), "The agent reported", "may be temporary"),
        (CallError::TimedOut(60), "The connection failed", "when it is reachable"),
        (CallError::Malformed { error: "no id".into() }, "Invalid response", "start a new session"),
    ] {
        let mut app = TestCore::started();
        app.handshake(all_capabilities()).reply(Err(error.clone()));
        let reported = format!("{:?}", app.session().transcript.items());
        assert!(
            reported.contains("could not be opened") && reported.contains(class),
            "{error:?}: {reported}"
        );
        assert!(reported.contains(next), "{error:?}: {reported}");
    }
}
