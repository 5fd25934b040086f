//! Conformance with the official SDK: its strict decoders parse the messages of parlor, and its types produce the
//! agent's.

use std::fs;
use std::path::PathBuf;

use parlor::core::lifecycle::operations;
use parlor::model::{Action, ConfigKind, ConfigValue};

use super::rig::{Rig, agent};

/// The example `sdk_agent`, which is built together with the tests.
pub fn sdk_agent() -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    tests.parent().unwrap().parent().unwrap().join("examples").join("sdk_agent")
}

fn start(folder: &tempfile::TempDir) -> Rig {
    let mut rig = Rig::start(folder.path(), agent(sdk_agent(), &[]));
    rig.wait_ready();
    rig
}

#[test]
fn initialize_new_and_a_turn() {
    let folder = tempfile::tempdir().unwrap();
    let mut rig = start(&folder);
    let conn = rig.state.conns.values().next_back().unwrap();
    let info = conn.info.as_ref().unwrap();
    assert_eq!(info.title.as_deref(), Some("SDK agent"));
    assert_eq!(info.protocol_version, 1);
    assert!(info.capabilities.can_load && info.capabilities.can_resume && info.capabilities.can_fork);
    let session = rig.session();
    assert_eq!(session.modes.as_ref().unwrap().available.len(), 2);
    assert_eq!(session.options.len(), 2);
    rig.ask("good morning");
    assert!(rig.text().contains("agent: heard good"), "{}", rig.text());
    assert_eq!(rig.state.anomaly_count, 0);
}

#[test]
fn all_updates_are_decoded() {
    let folder = tempfile::tempdir().unwrap();
    let mut rig = start(&folder);
    rig.ask("updates");
    let text = rig.text();
    for expected in [
        "from before",
        "thinking",
        "hello",
        "image image/png",
        "link file:///a.txt",
        "diff /a.txt",
        "Careful",
        "short",
    ] {
        assert!(text.contains(expected), "{expected} is missing:\n{text}");
    }
    let session = rig.session();
    assert_eq!(session.modes.as_ref().unwrap().current.as_str(), "code");
    assert_eq!(session.title.as_deref(), Some("A title"));
    assert_eq!(session.usage.as_ref().unwrap().used_tokens, 10);
    assert_eq!(session.commands[0].name, "go");
    assert_eq!(session.plans.len(), 1, "the second plan was removed");
    assert_eq!(rig.state.anomaly_count, 0);
}

#[test]
fn a_permission_response_has_the_selected_option() {
    let folder = tempfile::tempdir().unwrap();
    let mut rig = start(&folder);
    rig.prompt("permission");
    rig.wait_ask();
    rig.act(Action::Choose(1));
    rig.wait_text(r#""optionId":"yes""#);
    rig.wait_idle();
    rig.prompt("permission");
    rig.wait_ask();
    rig.act(Action::Escape);
    rig.wait_text(r#""optionId":"no""#);
    rig.wait_idle();
}

#[test]
fn acp_v1_cancel_closes_open_permissions_and_ends_the_turn() {
    let folder = tempfile::tempdir().unwrap();
    let mut rig = start(&folder);
    rig.prompt("wait");
    rig.wait("a running turn", |state| state.sessions[&state.active].turn.is_running());
    rig.act(Action::Escape);
    rig.wait_idle();
    rig.ask("again");
    assert!(rig.text().contains("heard again"), "{}", rig.text());
}

#[test]
fn files_are_read_and_written_within_the_folder() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    fs::write(root.join("a.txt"), "from disk").unwrap();
    let mut rig = start(&folder);
    rig.ask(&format!("read {}", root.join("a.txt").display()));
    assert!(rig.text().contains("agent: from disk"), "{}", rig.text());
    rig.ask(&format!("write {} by the agent", root.join("new/b.txt").display()));
    assert_eq!(fs::read_to_string(root.join("new/b.txt")).unwrap(), "by the agent");
    rig.ask(&format!("read {}", root.join("missing.txt").display()));
    assert!(rig.text().contains("-32002"), "{}", rig.text());
}

#[test]
fn a_terminal_reports_its_exit_and_stays_readable() {
    let folder = tempfile::tempdir().unwrap();
    let mut rig = start(&folder);
    rig.ask_and_allow("terminal printf 'one\\ntwo\\n'; exit 3");
    let text = rig.text();
    assert!(text.contains(r#""exitCode":3"#), "{text}");
    assert!(text.contains(r#""output":"one\ntwo\n""#), "{text}");
    let session = rig.session();
    assert_eq!(session.terminals.len(), 1, "its output is available after release");
    let shown = session.terminals.values().next().unwrap();
    assert!(String::from_utf8_lossy(&shown.output).contains("two"));
}

#[test]
fn a_form_is_filled_in_and_sent() {
    let folder = tempfile::tempdir().unwrap();
    let mut rig = start(&folder);
    rig.prompt("elicit");
    rig.wait_ask();
    // The SDK sorts the fields: age, then name.
    rig.act(Action::NextField);
    rig.apply(parlor::ui::Event::Line(parlor::model::LineEdit::Insert("Ada".to_owned())));
    rig.act(Action::NextField);
    // Once for the review, once to send.
    rig.act(Action::Accept);
    rig.act(Action::Accept);
    rig.wait_text(r#""name":"Ada""#);
    rig.wait_idle();
}

#[test]
fn error_details_are_shown() {
    let folder = tempfile::tempdir().unwrap();
    let mut rig = start(&folder);
    rig.ask("fail");
    assert!(rig.text().contains("the model is out"), "{}", rig.text());
    rig.ask("still here");
    assert!(rig.text().contains("heard still"), "{}", rig.text());
}

#[test]
fn options_and_modes_are_set() {
    let folder = tempfile::tempdir().unwrap();
    let mut rig = start(&folder);
    rig.act(Action::NextMode);
    rig.wait("the other mode", |state| {
        state.sessions[&state.active].modes.as_ref().unwrap().current.as_str() == "code"
    });
    let key = rig.state.active;
    rig.operate(|state, cx| {
        operations::set_option(state, key, "loud".to_owned(), ConfigValue::Bool(true), cx);
    });
    rig.wait_text(r#""type":"boolean""#);
    assert!(matches!(rig.session().options[1].kind, ConfigKind::Boolean { .. }));
}

#[test]
fn a_killed_agent_is_restarted_and_the_session_resumed() {
    let folder = tempfile::tempdir().unwrap();
    let mut rig = start(&folder);
    rig.ask("before");
    let first = rig.session().conn;
    rig.act(Action::RestartAgent);
    rig.wait("another connection", |state| state.sessions[&state.active].conn != first);
    rig.wait_ready();
    assert!(rig.text().contains("heard before"), "the transcript is preserved:\n{}", rig.text());
    rig.ask("after");
    assert!(rig.text().contains("heard after"), "{}", rig.text());
}

#[test]
fn acp_v1_sessions_are_listed_page_by_page_loaded_closed_and_deleted() {
    let folder = tempfile::tempdir().unwrap();
    let mut rig = start(&folder);
    // Otherwise the tab would be reused.
    rig.ask("hello");
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
    assert_eq!(rig.state.sessions.len(), 2);
    rig.act(Action::CloseSession);
    rig.act(Action::Yes);
    assert_eq!(rig.state.sessions.len(), 1);
    rig.act(Action::OpenSessions);
    rig.wait("the list again", |state| state.listed().len() == 2);
    rig.act(Action::NextScope);
    rig.act(Action::Last);
    rig.act(Action::Remove);
    rig.act(Action::Choose(1));
    rig.wait("the session to be gone", |state| state.listed().len() == 1);
    assert!(rig.state.conns.values().all(|conn| conn.open_calls.is_empty()), "session/close got a response");
}
