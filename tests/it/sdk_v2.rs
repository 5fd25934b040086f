//! Conformance with the official SDK in version 2 of the protocol (draft).

use std::path::PathBuf;

use parlor::core::SessionPhase;
use parlor::core::lifecycle::operations;
use parlor::model::{Action, AgentSpec, ConfigKind, ConfigValue};
use parlor::store::Store;

use super::bridge::{Bridge, Shape};
use super::nonstandard::scripted_agent;
use super::remote::{Server, spec};
use super::rig::{Rig, agent};

/// The example `sdk_agent_v2`, which is built together with the tests.
fn sdk_agent_v2() -> PathBuf {
    super::sdk::sdk_agent().with_file_name("sdk_agent_v2")
}

fn wishing(mut spec: AgentSpec) -> AgentSpec {
    spec.wire.protocol = 2;
    spec
}

/// Starts the agent for a pipe, HTTP and a WebSocket, one after another.
fn each_transport(scenario: impl Fn(&str, AgentSpec)) {
    for scheme in ["stdio", "http", "ws"] {
        let mut server = None;
        let spec = if scheme == "stdio" {
            agent(sdk_agent_v2(), &[])
        } else {
            let server = server.insert(Server::of(&sdk_agent_v2(), &["--http"]));
            spec(&format!("{scheme}://127.0.0.1:{}/acp", server.port))
        };
        scenario(scheme, spec);
    }
}

/// Runs a scenario over a pipe, HTTP and a WebSocket.
fn over_each_transport(scenario: impl Fn(&mut Rig)) {
    let folder = tempfile::tempdir().unwrap();
    each_transport(|scheme, spec| {
        let mut rig = Rig::start(folder.path(), wishing(spec));
        rig.wait_ready();
        scenario(&mut rig);
        assert_eq!(rig.state.anomaly_count, 0, "{scheme}");
    });
}

#[test]
fn acp_v2_initialize_new_and_turns() {
    over_each_transport(|rig| {
        let info = rig.state.conns.values().next_back().unwrap().info.clone().unwrap();
        assert_eq!((info.title.as_deref(), info.protocol_version), (Some("SDK agent"), 2));
        let can = info.capabilities;
        assert!(can.can_load && can.can_resume && can.can_list && can.can_close);
        assert!(can.can_fork && can.can_delete && can.can_log_out && can.mcp_http && can.mcp_stdio_off);
        assert_eq!(rig.session().options.len(), 2);
        assert!(rig.session().modes.is_none());
        rig.ask("good morning");
        assert!(rig.text().contains("agent: heard good"), "{}", rig.text());
        rig.ask("limit");
        assert!(rig.text().contains("stopped: MaxTokens"), "{}", rig.text());
        rig.ask("refuse");
        assert!(rig.text().contains("the model is out"), "{}", rig.text());
        rig.ask("again");
        assert!(rig.text().contains("agent: heard again"), "{}", rig.text());
    });
}

#[test]
fn acp_v2_all_updates_are_decoded() {
    over_each_transport(|rig| {
        rig.ask("updates");
        let text = rig.text();
        for expected in [
            "from before",
            "thought: thinking on",
            "agent: whole",
            "image image/png",
            "link file:///a.txt",
            "and more",
            "[Edit Completed] Edit a.txt",
            "diff /w/a.txt",
            "Cancelled] Never ran",
            "Careful",
            "short",
        ] {
            assert!(text.contains(expected), "{expected} is missing:\n{text}");
        }
        assert!(!text.contains("half") && !text.contains("taken back"), "{text}");
        let session = rig.session();
        assert_eq!(session.title.as_deref(), Some("A title"));
        assert_eq!(session.usage.as_ref().unwrap().used_tokens, 10);
        assert_eq!(
            (session.commands[0].name.as_str(), session.commands[0].hint.as_deref()),
            ("go", Some("where"))
        );
        assert_eq!(session.plans.len(), 1, "the second plan was removed");
    });
}

#[test]
fn acp_v2_terminals_of_the_agent_are_shown() {
    over_each_transport(|rig| {
        rig.ask("terminal");
        let text = rig.text();
        assert!(text.contains("[Execute Failed] make") && text.contains("terminal hello\nhello\n"), "{text}");
        assert!(
            format!("{:?}", rig.session().terminals).contains("code: Some(3)"),
            "{:?}",
            rig.session().terminals
        );
    });
}

#[test]
fn acp_v2_permissions_and_forms_are_answered() {
    over_each_transport(|rig| {
        rig.prompt("permission");
        rig.wait_ask();
        rig.act(Action::Choose(1));
        rig.wait_text(r#""optionId":"yes""#);
        rig.wait_idle();
        rig.prompt("command");
        rig.wait_ask();
        assert!(
            format!("{:?}", rig.session().requests).contains("May it run?"),
            "{:?}",
            rig.session().requests
        );
        rig.act(Action::Escape);
        rig.wait_text(r#""optionId":"no""#);
        rig.wait_idle();
        rig.prompt("elicit");
        rig.wait_ask();
        rig.act(Action::NextField);
        rig.apply(parlor::ui::Event::Line(parlor::model::LineEdit::Insert("Ada".to_owned())));
        rig.act(Action::NextField);
        rig.act(Action::Accept);
        rig.act(Action::Accept);
        rig.wait_text(r#""name":"Ada""#);
        rig.wait_idle();
    });
}

#[test]
fn acp_v2_cancel_ends_the_turn_and_its_permission() {
    over_each_transport(|rig| {
        rig.prompt("wait");
        rig.wait_text("waiting");
        rig.act(Action::Escape);
        rig.wait_idle();
        assert!(rig.text().contains("stopped: Cancelled"), "{}", rig.text());
        rig.prompt("permission");
        rig.wait_ask();
        rig.act(Action::ClearOrQuit);
        rig.wait_idle();
        assert!(rig.session().requests.is_empty());
        rig.ask("again");
        assert!(rig.text().contains("heard again"), "{}", rig.text());
    });
}

#[test]
fn acp_v2_sessions_are_listed_replayed_forked_and_closed() {
    over_each_transport(|rig| {
        rig.act(Action::OpenSessions);
        rig.wait("both pages of the list", |state| state.listed().len() == 2);
        // Switches the list from this folder to all folders.
        rig.act(Action::NextScope);
        rig.act(Action::Last);
        rig.act(Action::Accept);
        // The folder is from the agent, so it must be confirmed.
        rig.act(Action::Choose(1));
        rig.wait_ready();
        rig.wait_text("from the history");
        rig.act(Action::ForkSession);
        // The empty tab was reused.
        rig.wait("the copy", |state| state.sessions.len() == 2);
        rig.wait_ready();
        rig.ask("hello");
        assert!(rig.text().contains("heard hello"), "{}", rig.text());
        rig.act(Action::CloseSession);
        rig.act(Action::Yes);
        rig.wait("the answer to the close", |state| {
            state.conns.values().all(|conn| conn.open_calls.is_empty())
        });
    });
}

#[test]
fn acp_v2_options_are_set() {
    over_each_transport(|rig| {
        let (key, loud) = (rig.state.active, ConfigValue::Bool(true));
        rig.operate(|state, cx| operations::set_option(state, key, "loud".to_owned(), loud, cx));
        rig.wait_text(r#""type":"boolean""#);
        rig.wait("the option", |state| {
            matches!(state.sessions[&state.active].options[1].kind, ConfigKind::Boolean { current: true })
        });
    });
}

#[test]
fn acp_v2_a_restarted_agent_resumes_without_a_replay() {
    let folder = tempfile::tempdir().unwrap();
    let mut rig = Rig::start(folder.path(), wishing(agent(sdk_agent_v2(), &[])));
    rig.wait_ready();
    rig.ask("before");
    let first = rig.session().conn;
    rig.act(Action::RestartAgent);
    rig.wait("another connection", |state| state.sessions[&state.active].conn != first);
    rig.wait_ready();
    rig.ask("after");
    let text = rig.text();
    assert!(text.contains("heard before") && text.contains("heard after"), "{text}");
    assert!(!text.contains("from the history"), "{text}");
}

#[test]
fn acp_v2_sign_in_is_requested_and_done() {
    let folder = tempfile::tempdir().unwrap();
    let mut rig = Rig::start(folder.path(), wishing(agent(sdk_agent_v2(), &["--locked"])));
    rig.wait("the wish for a sign-in", |state| {
        state.sessions[&state.active].phase == SessionPhase::NeedsSignIn
    });
    rig.act(Action::Accept);
    rig.wait_ready();
    rig.ask("good morning");
    assert!(rig.text().contains("agent: heard good"), "{}", rig.text());
}

#[test]
fn acp_v2_is_offered_to_an_agent_that_refuses_version_1() {
    let folder = tempfile::tempdir().unwrap();
    each_transport(|scheme, spec| {
        let store = Store::open(folder.path().join(scheme)).unwrap();
        let mut rig = Rig::start_kept(folder.path(), spec.clone(), &store, None);
        rig.wait_ready();
        rig.ask("good morning");
        assert_eq!(rig.text(), "user: good morning\nagent: heard good", "{scheme}");
        assert_eq!(starts(&rig), 2, "{scheme}");
        assert_eq!(version(&rig), 2);
        rig.quit_and_keep();
        assert_eq!(store.draft_agents(), [spec.command_line()].into(), "{scheme}");
    });
}

#[test]
fn acp_v2_is_offered_first_but_version_1_works() {
    let folder = tempfile::tempdir().unwrap();
    let mut rig = Rig::start(folder.path(), wishing(agent(super::sdk::sdk_agent(), &[])));
    rig.wait_ready();
    assert_eq!((version(&rig), starts(&rig)), (1, 1));
    rig.ask("good morning");
    assert!(rig.text().contains("agent: heard good"), "{}", rig.text());
}

/// An agent that answers version 1 with version 2, and then this version.
fn flapping(then: &str) -> String {
    let hello = |version: &str| {
        format!(
            "< {{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{{\"protocolVersion\":{version},\"info\":{{\"name\":\"x\",\
             \"version\":\"1\"}},\"capabilities\":{{\"session\":{{}}}},\"agentCapabilities\":{{}}}}}}\n"
        )
    };
    let new = "> \"session/new\"\n< {\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"sessionId\":\"s\"}}\n";
    [
        ". 1\n? \"protocolVersion\":1\n",
        &hello("2"),
        "> never\n. 2\n? \"protocolVersion\":2\n",
        &hello(then),
        new,
        "> never\n",
    ]
    .concat()
}

#[test]
fn acp_v2_an_agent_that_answers_with_version_2_is_restarted_once() {
    for (shape, then) in [(None, "2"), (Some(Shape::OneStream), "2"), (Some(Shape::Socket), "2"), (None, "1")]
    {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("script");
        std::fs::write(&file, flapping(then)).unwrap();
        let command = vec![scripted_agent().into_os_string(), file.clone().into_os_string()];
        let bridge = shape.map(|shape| Bridge::start(shape, command, None));
        let spec = match &bridge {
            Some(bridge) => spec(&bridge.url()),
            None => agent(scripted_agent(), &[file.to_str().unwrap()]),
        };
        let mut rig = Rig::start(folder.path(), spec);
        rig.wait_ready();
        assert_eq!((version(&rig).to_string(), starts(&rig)), (then.to_owned(), 2), "{shape:?}");
    }
}

fn version(rig: &Rig) -> u16 {
    rig.state.conn_of(rig.state.active).unwrap().info.as_ref().unwrap().protocol_version
}

/// How often the agent was started.
fn starts(rig: &Rig) -> u64 {
    rig.state.conn_of(rig.state.active).unwrap().id.0
}
