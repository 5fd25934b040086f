//! The remote transports with the official HTTP and WebSocket server.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use parlor::core::{ConnPhase, SessionPhase};
use parlor::model::{Action, AgentSpec, Callbacks, CloseReason, Remote, TokenSource};

use super::rig::Rig;
use super::sdk::sdk_agent;

/// The official server with the agent of the SDK.
pub(super) struct Server {
    child: Child,
    pub(super) port: u16,
    stdout: BufReader<ChildStdout>,
}

impl Server {
    fn start() -> Self {
        Self::at(0)
    }

    /// Starts it at a port; 0: any.
    fn at(port: u16) -> Self {
        Self::with(&["--http", &port.to_string()])
    }

    pub(super) fn with(args: &[&str]) -> Self {
        Self::of(&sdk_agent(), args)
    }

    /// Starts another program.
    pub(super) fn of(program: &Path, args: &[&str]) -> Self {
        let mut command = Command::new(program);
        let mut child = command.args(args).stdout(Stdio::piped()).spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        Self { child, port: line.trim().parse().unwrap(), stdout }
    }

    /// Stops the server, and returns its remaining output.
    pub(super) fn output(mut self) -> String {
        self.child.kill().unwrap();
        let mut output = String::new();
        self.stdout.read_to_string(&mut output).unwrap();
        output
    }

    /// The URL for a transport.
    fn url(&self, scheme: &str) -> String {
        format!("{scheme}://127.0.0.1:{}", self.port)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(super) fn spec(url: &str) -> AgentSpec {
    let remote = Remote { url: url.to_owned(), ..Remote::default() };
    AgentSpec {
        name: "remote".to_owned(),
        callbacks: Callbacks::NONE,
        remote: Some(remote),
        ..AgentSpec::default()
    }
}

/// Runs a scenario over each transport of the official server, with a new connection each.
fn over_each_transport(scenario: impl Fn(&mut Rig, &Server)) {
    for scheme in ["http", "ws"] {
        let folder = tempfile::tempdir().unwrap();
        let server = Server::start();
        let mut rig = Rig::start(folder.path(), spec(&server.url(scheme)));
        rig.wait_ready();
        scenario(&mut rig, &server);
        assert_eq!(rig.state.anomaly_count, 0, "{scheme}");
    }
}

#[test]
fn turns_with_every_kind_of_update() {
    over_each_transport(|rig, _| {
        rig.ask("good morning");
        assert!(rig.text().contains("agent: heard good"), "{}", rig.text());
        rig.ask("updates");
        for expected in ["thinking", "hello", "link file:///a.txt", "diff /a.txt", "Careful"] {
            assert!(rig.text().contains(expected), "{expected} is missing:\n{}", rig.text());
        }
    });
}

#[test]
fn permissions_and_cancellation() {
    over_each_transport(|rig, _| {
        rig.prompt("permission");
        rig.wait_ask();
        rig.act(Action::Choose(1));
        rig.wait_text(r#""optionId":"yes""#);
        rig.wait_idle();
        rig.prompt("wait");
        rig.wait("a running turn", |state| state.sessions[&state.active].turn.is_running());
        rig.act(Action::Escape);
        rig.wait_idle();
        rig.ask("again");
        assert!(rig.text().contains("heard again"), "{}", rig.text());
    });
}

#[test]
fn sessions_are_listed_loaded_and_closed() {
    over_each_transport(|rig, _| {
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
fn callbacks_require_trust_in_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    fs::write(root.join("a.txt"), "from disk").unwrap();
    let server = Server::start();
    let ask = format!("read {}", root.join("a.txt").display());
    let mut rig = Rig::start(folder.path(), spec(&server.url("http")));
    rig.wait_ready();
    rig.ask(&ask);
    assert!(!rig.text().contains("from disk") && rig.text().contains("-32601"), "{}", rig.text());
    let trusted = AgentSpec { callbacks: Callbacks::default(), ..spec(&server.url("http")) };
    let mut rig = Rig::start(folder.path(), trusted);
    rig.wait_ready();
    rig.ask(&ask);
    assert!(rig.text().contains("agent: from disk"), "{}", rig.text());
}

#[test]
fn a_restarted_server_is_reconnected_and_the_session_resumed() {
    for scheme in ["http", "ws"] {
        let folder = tempfile::tempdir().unwrap();
        let server = Server::start();
        let mut rig = Rig::start(folder.path(), spec(&server.url(scheme)));
        rig.wait_ready();
        rig.ask("before");
        let first = rig.session().conn;
        let port = server.port;
        drop(server);
        let _server = Server::at(port);
        // A WebSocket detects the restart immediately, HTTP with the next message or its stream.
        rig.wait("another connection", |state| state.sessions[&state.active].conn != first);
        rig.wait_ready();
        rig.ask("after");
        let text = rig.text();
        assert!(text.contains("heard before") && text.contains("heard after"), "{text}");
    }
}

#[test]
fn an_unreachable_server_is_reported_in_the_session() {
    let folder = tempfile::tempdir().unwrap();
    let port = Server::start().port;
    let mut rig = Rig::start(folder.path(), spec(&format!("http://127.0.0.1:{port}/acp")));
    rig.wait_text(&format!("127.0.0.1:{port} refused the connection"));
    assert!(matches!(rig.session().phase, SessionPhase::Ended { .. }));
}

#[test]
fn a_rejected_connection_is_reported_and_not_retried() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start();
    let mut spec = spec(&format!("{}/elsewhere", server.url("http")));
    if let Some(remote) = &mut spec.remote {
        remote.token = Some(TokenSource::Env("CARGO_PKG_NAME".to_owned()));
    }
    let mut rig = Rig::start(folder.path(), spec);
    rig.wait_text("No agent at");
    assert_eq!(rig.state.conns.len(), 1);
    let conn = rig.state.conns.values().next().unwrap();
    assert!(matches!(conn.phase, ConnPhase::Closed(CloseReason::Refused { .. })));
}
