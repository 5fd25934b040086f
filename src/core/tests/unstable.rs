//! Tests of unstable protocol features.

use super::support::*;
use crate::core::lifecycle::operations;
use crate::core::*;
use crate::model::*;

fn tool(can_cancel: Patch<bool>) -> SessionUpdate {
    SessionUpdate::Tool(Box::new(ToolCallPatch {
        status: Patch::Set(ToolStatus::InProgress),
        can_cancel,
        ..ToolCallPatch::new("t".into())
    }))
}

fn stop(app: &mut TestCore) -> &mut TestCore {
    app.flow(|state, cx| operations::stop_part(state, KEY, None, cx))
}

#[test]
fn acp_v2_a_cancellable_call_is_cancelled_separately() {
    let mut app = TestCore::running();
    app.update(tool(Patch::Keep));
    stop(&mut app).expect_sent("");
    app.update(tool(Patch::Set(true)));
    assert!(operations::has_stoppable(app.session()));
    stop(&mut app).expect_sent("call stop tool t");
    app.reply(Ok(Reply::Done));
    assert_eq!(app.state.flash.as_deref(), Some("Stopping."));
    app.update(tool(Patch::Clear));
    assert!(!operations::has_stoppable(app.session()), "it no longer does");
}

#[test]
fn acp_v2_a_command_of_the_agent_is_cancelled_by_its_terminal() {
    let mut app = TestCore::running();
    let about = |can_cancel| {
        let id = TerminalId::from("x");
        SessionUpdate::Terminal(AgentTerminal::About { id, command: None, cwd: None, can_cancel })
    };
    app.update(SessionUpdate::Tool(Box::new(ToolCallPatch {
        content: Patch::Set(vec![ToolContent::Terminal("x".into())]),
        ..ToolCallPatch::new("t".into())
    })));
    app.update(about(Patch::Set(true)));
    stop(&mut app).expect_sent("call stop terminal x");
    app.fail(-32602, "it has ended");
    assert!(app.state.flash.as_deref().is_some_and(|text| text.contains("it has ended")));
    let status = ExitInfo { code: Some(0), signal: None };
    app.update(SessionUpdate::Terminal(AgentTerminal::Exit { id: "x".into(), status }));
    assert!(!operations::has_stoppable(app.session()));
}

#[test]
fn a_subagent_is_cancelled_by_its_session() {
    let mut app = TestCore::running();
    let patch = |can_cancel, state: &str| {
        SessionUpdate::Subagent(SubagentPatch {
            session: "child".into(),
            title: Patch::Keep,
            description: Patch::Keep,
            state: Patch::Set(state.to_owned()),
            can_cancel,
        })
    };
    app.update(patch(Patch::Set(true), "running"));
    stop(&mut app).expect_sent("cancel child");
    app.update(patch(Patch::Keep, "idle"));
    assert!(!operations::has_stoppable(app.session()));
}

#[test]
fn the_selected_one_of_several_parts_is_cancelled() {
    let mut app = TestCore::running();
    for id in ["a", "b"] {
        let patch = ToolCallPatch {
            status: Patch::Set(ToolStatus::InProgress),
            can_cancel: Patch::Set(true),
            ..ToolCallPatch::new(id.into())
        };
        app.update(SessionUpdate::Tool(Box::new(patch)));
    }
    stop(&mut app).expect_sent("");
    assert!(app.state.flash.as_deref().is_some_and(|text| text.contains("Select the one")));
    let first = app.session().transcript.items().iter().find(|item| matches!(&item.body, ItemBody::Tool(_)));
    let first = first.map(|item| item.id);
    app.flow(|state, cx| operations::stop_part(state, KEY, first, cx));
    app.expect_sent("call stop tool a");
}

#[test]
fn an_archived_session_is_unarchived_and_reopened() {
    let mut app = TestCore::started();
    let caps = AgentCapabilities { can_archive: true, ..all_capabilities() };
    app.handshake(caps).open(ID);
    app.fx.clear();
    app.flow(|state, cx| operations::archive_session(state, KEY, cx)).expect_sent("call archive s true");
    app.reply(Ok(Reply::Done));
    assert!(matches!(&app.session().phase, SessionPhase::Ended { cause } if cause.contains("archived")));
    // The restart key unarchives it, and the agent stays running.
    app.flow(|state, cx| operations::restart_agent(state, KEY, cx)).expect_sent("call archive s false");
    app.reply(Ok(Reply::Done)).expect_sent("call resume s");
    let mut app = TestCore::ready();
    app.flow(|state, cx| operations::archive_session(state, KEY, cx)).expect_sent("");
}

#[test]
fn providers_are_set_before_a_session_is_opened() {
    let request = ProviderRequest { id: "main".to_owned(), target: None };
    let wire = WireSpec { providers: vec![request], ..WireSpec::default() };
    let spec = AgentSpec { wire, ..fake() };
    let mut app = TestCore::with_spec(spec.clone());
    let caps = AgentCapabilities { has_providers: true, tells_auth: true, ..all_capabilities() };
    app.handshake(caps);
    app.expect_sent("connect 1 after 0 ms\ncall auth status\ncall provider main\ncall providers");
    let answer = |app: &mut TestCore, is_it: &dyn Fn(&Purpose) -> bool, result| {
        let tag =
            app.state.conns[&CONN].open_calls.values().find(|tag| is_it(&tag.purpose)).cloned().unwrap();
        app.agent(AgentEvent::Replied(tag, result));
    };
    let status = AuthStatus { state: AuthState::SignedIn, accounts: vec!["ada".to_owned()] };
    answer(&mut app, &|purpose| *purpose == Purpose::AuthStatus, Ok(Reply::AuthStatus(status.clone())));
    assert_eq!(app.state.conns[&CONN].auth, Some(status));
    app.expect_sent("");
    let error = CallError::Agent(RpcError::new(-32602, "it is required"));
    answer(&mut app, &|purpose| matches!(purpose, Purpose::SetProvider(_)), Err(error));
    app.expect_sent("call new");
    let is_reported = |notice: &String| notice.starts_with("Provider main could not be set. ");
    assert!(app.notices().iter().any(is_reported), "{:?}", app.notices());
    // An agent without this capability is not asked.
    let mut app = TestCore::with_spec(spec);
    app.handshake(all_capabilities()).expect_sent("connect 1 after 0 ms\ncall new");
    assert_eq!(app.session().transcript.items().len(), 1);
}

#[test]
fn an_unsupported_system_prompt_is_reported() {
    let prompt = SystemPrompt { text: "Be brief.".to_owned(), replaces: true };
    let wire = WireSpec { system_prompt: Some(prompt), ..WireSpec::default() };
    let spec = AgentSpec { wire, ..fake() };
    let reported = |system_prompt, system_prompt_override| {
        let mut app = TestCore::with_spec(spec.clone());
        app.handshake(AgentCapabilities { system_prompt, system_prompt_override, ..all_capabilities() });
        app.session().transcript.items().len()
    };
    assert_eq!((reported(true, true), reported(true, false), reported(false, false)), (0, 1, 1));
}

#[test]
fn an_agent_that_cannot_be_interrupted_is_reported_before_and_at_a_cancel() {
    let mut app = TestCore::started();
    app.handshake(AgentCapabilities { deaf_in_turn: true, ..all_capabilities() }).open(ID);
    assert!(app.state.flash.as_deref().is_some_and(|text| text.contains("cannot receive answers")));
    app.submit("go").cancel();
    assert!(
        app.state.flash.as_deref().is_some_and(|text| text.contains("cannot be interrupted during a turn"))
    );
}

fn old(is_archived: bool) -> SessionInfo {
    SessionInfo { is_archived, ..listed("old") }
}

#[test]
fn an_archived_listed_session_is_unarchived_before_it_is_loaded() {
    let archiving = AgentCapabilities { can_archive: true, ..all_capabilities() };
    let started = || {
        let mut app = TestCore::started();
        app.handshake(archiving).open(ID).submit("hello").end_turn(StopReason::EndTurn);
        app.fx.clear();
        *app.state.listed_mut() = vec![old(true)];
        app.open_listed("old");
        app.expect_sent("call archive old false");
        app
    };
    let mut app = started();
    app.reply(Ok(Reply::Done)).expect_sent("call load old");
    app.reply(Ok(Reply::Done));
    let opened = &app.state.sessions[&app.state.active];
    assert!(!opened.is_archived && opened.phase == SessionPhase::Ready, "{:?}", opened.phase);
    // If that fails, the result of the load decides, without an endless loop.
    let mut app = started();
    app.fail(-32002, "no such session").expect_sent("call load old");
    app.fail(-32002, "no such session").expect_sent("");
    let reported = &app.state.sessions[&app.state.active].phase;
    assert!(matches!(reported, SessionPhase::Failed(_)), "{reported:?}");
    // An agent without an archive is not asked to unarchive, whatever its list contains.
    let mut app = TestCore::talked();
    *app.state.listed_mut() = vec![old(true)];
    app.open_listed("old");
    app.expect_sent("call load old");
}

#[test]
fn the_status_of_one_session_is_requested_at_a_time() {
    let mut app = TestCore::started();
    app.handshake(AgentCapabilities { tells_status: true, ..all_capabilities() }).open(ID);
    app.fx.clear();
    *app.state.listed_mut() = vec![old(false)];
    app.flow(|state, cx| operations::request_status(state, "old".into(), cx)).expect_sent("call status old");
    app.flow(|state, cx| operations::request_status(state, "other".into(), cx)).expect_sent("");
    app.reply(Ok(Reply::SessionStatus { is_live: true }));
    assert_eq!(app.state.listed()[0].is_live, Some(true));
    app.flow(|state, cx| operations::request_status(state, "old".into(), cx)).fail(-32002, "no such session");
    assert_eq!(app.state.listed()[0].is_live, Some(false));
    let mut app = TestCore::ready();
    app.flow(|state, cx| operations::request_status(state, "old".into(), cx)).expect_sent("");
}

#[test]
fn a_changed_provider_is_set_again_after_a_restart() {
    let mut app = TestCore::started();
    app.handshake(AgentCapabilities { has_providers: true, ..all_capabilities() });
    app.expect_sent("connect 1 after 0 ms\ncall providers\ncall new");
    app.open(ID);
    let target = |base_url: &str| {
        let (api_type, base_url) = ("openai".to_owned(), base_url.to_owned());
        Some(ProviderTarget { api_type, base_url, headers: Vec::new() })
    };
    let request = |base_url| ProviderRequest { id: "main".to_owned(), target: target(base_url) };
    let change = |app: &mut TestCore, url| {
        app.flow(|state, cx| operations::change_provider(state, CONN, request(url), cx));
    };
    change(&mut app, "https://wrong.example");
    app.fail(-32602, "no such place");
    let reported = format!("{:?}", app.session().transcript.items());
    assert!(
        reported.contains("Provider main could not be changed.") && reported.contains("no such place"),
        "{reported}"
    );
    assert_eq!(app.state.conns[&CONN].spec.wire.providers, []);
    for url in ["https://one.example", "https://two.example"] {
        change(&mut app, url);
        app.reply(Ok(Reply::Done));
        let reported = digest(app.session());
        assert!(reported.contains(&format!("Provider main set to {url}.")), "{reported}");
    }
    assert_eq!(app.state.conns[&CONN].spec.wire.providers, [request("https://two.example")]);
    app.fx.clear();
    app.crash().handshake(AgentCapabilities { has_providers: true, ..all_capabilities() });
    let sent = app.sent();
    assert!(sent.contains("call provider main"), "{sent}");
}
