//! Agents on another machine, with a fake ssh that runs commands locally.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use parlor::core::{ConnPhase, Consequence, SessionPhase, State};
use parlor::model::{AgentSpec, Callbacks, CloseReason, Ssh};

use super::nonstandard::scripted_agent;
use super::rig::{Rig, agent};

/// Runs the command locally. The host name selects the behavior; a file `cut` ends the connection.
const FAKE_SSH: &str = r#"#!/bin/sh
here=$(dirname "$0")
printf '%s\n' "$*" >> "$here/asked"
while [ "$1" != -- ]; do shift; done
host=$2
line=$3
case "$host" in
away) echo "ssh: connect to host away port 22: Connection refused" >&2; exit 255 ;;
locked) [ -e "$here/key" ] || { echo "ada@locked: Permission denied (publickey,password)." >&2; exit 255; } ;;
esac
exec 3<&0
sh -c "$line" <&3 &
agent=$!
exec 3<&-
while kill -0 $agent 2>/dev/null; do
    if [ -e "$here/cut" ]; then
        rm "$here/cut"
        kill $agent
        echo "client_loop: send disconnect: Broken pipe" >&2
        exit 255
    fi
    sleep 0.05
done
wait $agent
"#;

struct Host {
    folder: tempfile::TempDir,
}

impl Host {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("ssh");
        fs::write(&program, FAKE_SSH).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        fs::create_dir(folder.path().join("far it's")).unwrap();
        Self { folder }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    /// An agent that plays a script in its folder on the host.
    fn spec(&self, name: &str, script: &str) -> AgentSpec {
        let remote = self.path().join("far it's");
        fs::write(remote.join("script"), script).unwrap();
        AgentSpec {
            cwd: Some(remote),
            callbacks: Callbacks::NONE,
            ssh: Some(Ssh {
                host: name.to_owned(),
                args: vec!["-4".to_owned()],
                program: Some(self.path().join("ssh").to_string_lossy().into_owned()),
                ..Ssh::default()
            }),
            ..agent(scripted_agent(), &["script"])
        }
    }

    fn start(&self, name: &str, script: &str) -> Rig {
        Rig::start(self.path(), self.spec(name, script))
    }
}

const HELLO: &str = r#"> "initialize"
< {"jsonrpc":"2.0","id":$id,"result":{"protocolVersion":1,"agentCapabilities":{"sessionCapabilities":{"resume":{}}}}}
"#;
const NEW: &str = r#"> "session/new"
< {"jsonrpc":"2.0","id":$id,"result":{"sessionId":"s"}}
"#;
const SAY: &str = r#"> "session/prompt"
< {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"from afar"}}}}
"#;
const END: &str = r#"< {"jsonrpc":"2.0","id":$id,"result":{"stopReason":"end_turn"}}
"#;

fn closed(state: &State) -> Option<&CloseReason> {
    match &state.conn_of(state.active)?.phase {
        ConnPhase::Closed(reason) => Some(reason),
        _ => None,
    }
}

#[test]
fn an_agent_runs_in_its_folder_on_the_host() {
    let host = Host::new();
    // The script checks the folder's name, with its quotes and spaces.
    let new = NEW.replace("> \"session/new\"", "? far it's");
    let mut rig = host.start("build", &format!("{HELLO}{new}{SAY}{END}"));
    rig.wait_ready();
    rig.ask("hello");
    assert!(rig.text().contains("agent: from afar"), "{}", rig.text());
    let asked = fs::read_to_string(host.path().join("asked")).unwrap();
    assert!(asked.contains("-T -o BatchMode=yes") && asked.contains("-4 -- build exec sh -c"), "{asked}");
}

#[test]
fn a_lost_connection_is_reopened_and_the_session_resumed() {
    let host = Host::new();
    let resume = "> \"session/resume\"\n< {\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{}}\n";
    let script = format!("{HELLO}. 1\n{NEW}{SAY}. 2\n{resume}{SAY}{END}");
    let mut rig = host.start("build", &script);
    rig.wait_ready();
    rig.prompt("hello");
    rig.wait_text("from afar");
    fs::write(host.path().join("cut"), "").unwrap();
    rig.wait_text("died: The connection failed. The SSH connection to build failed");
    rig.wait_ready();
    rig.ask("again");
    let text = rig.text();
    assert!(text.contains("Broken pipe"), "{text}");
    assert_eq!(text.matches("agent: from afar").count(), 2, "{text}");
}

#[test]
fn start_errors_on_the_host_are_reported_with_the_remedy() {
    let host = Host::new();
    let mut rig = host.start("away", "");
    rig.wait("the end", |state| closed(state).is_some());
    assert!(
        matches!(closed(&rig.state), Some(CloseReason::Unreachable { error }) if error.contains("Connection refused"))
    );
    let mut no_folder = host.spec("build", "");
    no_folder.cwd = Some("/no/such/folder".into());
    let mut no_program = host.spec("build", "");
    no_program.command = "no-such-agent".to_owned();
    let mut no_ssh = host.spec("build", "");
    no_ssh.ssh = Some(Ssh { program: Some("no-such-ssh".to_owned()), ..no_ssh.ssh.clone().unwrap() });
    for (spec, expected) in [
        (no_folder, "Folder /no/such/folder not found on build. Set `cwd`"),
        (no_program, "Set its absolute path in `command`"),
        (no_ssh, "no-such-ssh not found. Install an SSH client."),
    ] {
        let mut rig = Rig::start(host.path(), spec);
        rig.wait("the end", |state| closed(state).is_some());
        let Some(CloseReason::NotStarted { error, .. }) = closed(&rig.state) else {
            panic!("{expected}: {:?}", closed(&rig.state))
        };
        assert!(error.contains(expected), "{error}");
        assert!(matches!(&rig.session().phase, SessionPhase::Ended { .. }));
    }
}

#[test]
fn a_host_that_requires_authentication_offers_the_terminal() {
    let host = Host::new();
    let mut rig = host.start("locked", &format!("{HELLO}{NEW}"));
    rig.wait("the question", |state| !state.questions.is_empty());
    let Some(dialog) = rig.state.questions.last() else { panic!("{:?}", rig.layers) };
    assert_eq!(dialog.title, "Sign in to locked");
    assert!(matches!(dialog.answers[0].consequence, Consequence::SignInToHost(_)));
    assert!(dialog.body[0].contains("Permission denied"), "{:?}", dialog.body);
}
