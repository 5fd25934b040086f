//! Secrets do not leak: runs sessions and checks everything that was written and shown.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};

use super::bridge::{Bridge, Shape};
use super::screen::Screen;

/// They do not look like secrets, so that redaction by pattern cannot hide them.
const TOKEN: &str = "wander-plum-41";
const HEADER: &str = "wander-fig-42";
const SERVER: &str = "wander-pear-43";
const VARIABLE: &str = "wander-quince-44";

const PEER: &str = r#"> "initialize"
< {"jsonrpc":"2.0","id":$id,"result":{"protocolVersion":1,"agentCapabilities":{"mcpCapabilities":{"http":true}}}}
> "session/new"
< {"jsonrpc":"2.0","id":$id,"result":{"sessionId":"s"}}
> "session/prompt"
< {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"It is done."}}}}
< {"jsonrpc":"2.0","id":$id,"result":{"stopReason":"end_turn"}}
"#;

/// All files below a folder that contain one of the secrets.
fn leaks(folder: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            leaks(&path, found);
        } else if let Ok(bytes) = fs::read(&path) {
            found.extend(secrets_in(&bytes).map(|secret| format!("{secret} in {}", path.display())));
        }
    }
}

fn secrets_in(bytes: &[u8]) -> impl Iterator<Item = &'static str> {
    let text = String::from_utf8_lossy(bytes).into_owned();
    [TOKEN, HEADER, SERVER, VARIABLE].into_iter().filter(move |secret| text.contains(secret))
}

/// The command lines of all readable processes.
fn process_list() -> String {
    let Ok(entries) = fs::read_dir("/proc") else { return String::new() };
    let lines = entries.flatten().filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    lines.map(|line| String::from_utf8_lossy(&line).replace('\0', " ") + "\n").collect()
}

fn scripted(folder: &Path) -> Vec<std::ffi::OsString> {
    let file = folder.join("script");
    fs::write(&file, PEER).unwrap();
    let agent = PathBuf::from(env!("CARGO_BIN_EXE_parlor")).with_file_name("examples").join("scripted_agent");
    vec![agent.into_os_string(), file.into_os_string()]
}

/// Runs one prompt with an agent; the output on the screen is checked too.
fn run(folder: &Path, written: &Path, config: &Path, agent: &str) {
    let (data, log) = (written.join("data"), written.join(format!("{agent}.jsonl")));
    let args = ["--data-dir", data.to_str().unwrap(), "--log-file", log.to_str().unwrap(), "--agent", agent];
    let variables = [("PARLOR_CONFIG", config), ("FAR_TOKEN", Path::new(TOKEN))];
    let mut screen = Screen::start_with(folder, &args, (40, 100), &variables);
    screen.wait_for("ready");
    screen.send("hello\r");
    screen.wait_for("It is done.");
    screen.wait_for("ready");
    assert_eq!(secrets_in(process_list().as_bytes()).count(), 0, "in the process list");
    // The connection dialog and its log.
    screen.send("\u{1b}[19~");
    screen.wait_for("Connection");
    screen.send("\u{1b}[24~");
    screen.wait_for("session/prompt");
    screen.send("\u{11}");
    screen.send("\u{11}");
    assert!(screen.wait_exit().success());
    assert_eq!(secrets_in(&screen.raw).collect::<Vec<_>>(), Vec::<&str>::new(), "on the screen");
    assert!(fs::read_to_string(&log).unwrap().contains("session/prompt"), "the log was written");
}

#[test]
fn secrets_do_not_leak_to_logs_store_exports_or_process_list() {
    let (folder, written) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let socket = Bridge::start(Shape::Socket, scripted(folder.path()), Some(TOKEN));
    let stream = Bridge::start(Shape::OneStream, scripted(folder.path()), Some(TOKEN));
    let file = folder.path().join("token");
    fs::write(&file, format!("{TOKEN}\n")).unwrap();
    let near = scripted(folder.path());
    let config = folder.path().join("own.toml");
    let text = format!(
        r#"
[agents.by-variable]
url = "{}"
token_env = "FAR_TOKEN"
headers = {{ X-Team-Key = "{HEADER}" }}

[agents.by-file]
url = "{}"
token_file = "{}"

[agents.by-command]
url = "{}"
token_command = ["cat", "{}"]

[agents.near]
command = "{}"
args = ["{}"]
env = {{ NEAR_KEY = "{VARIABLE}" }}

[[mcp_servers]]
name = "docs"
type = "http"
url = "https://example.org/mcp"
headers = {{ X-Access = "{SERVER}" }}

[[mcp_servers]]
name = "files"
command = "true"
env = {{ FILES_ACCESS = "{SERVER}" }}
"#,
        socket.url(),
        stream.url(),
        file.display(),
        socket.url(),
        file.display(),
        near[0].to_string_lossy(),
        near[1].to_string_lossy(),
    );
    fs::write(&config, text).unwrap();
    for agent in ["by-variable", "by-file", "by-command", "near"] {
        run(folder.path(), written.path(), &config, agent);
    }
    // All export formats, the list, and the printed configuration.
    let data = written.path().join("data");
    let parlor = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_parlor"));
        command.args(["--data-dir", data.to_str().unwrap()]).args(args).current_dir(folder.path());
        let output = command.env("PARLOR_CONFIG", &config).env("FAR_TOKEN", TOKEN).output().unwrap();
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    };
    let list = String::from_utf8(parlor(&["sessions", "list", "--all", "--json"])).unwrap();
    let uids: Vec<&str> =
        list.split("\"id\": \"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    assert!(!uids.is_empty(), "{list}");
    let mut shown = list.clone().into_bytes();
    for uid in uids {
        for form in ["markdown", "json", "html"] {
            shown.extend(parlor(&["sessions", "export", uid, "--format", form]));
        }
    }
    assert_eq!(secrets_in(&shown).collect::<Vec<_>>(), Vec::<&str>::new(), "in an export");
    // The configuration is printed, except values with secret names.
    let configured = parlor(&["config"]);
    assert_eq!(secrets_in(&configured).collect::<Vec<_>>(), [SERVER]);
    let mut found = Vec::new();
    leaks(written.path(), &mut found);
    assert!(found.is_empty(), "{found:?}");
}

/// Answers each request with a redirect, or records it.
fn server(redirect_to: Option<u16>) -> (u16, Arc<Mutex<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let heard = Arc::new(Mutex::new(String::new()));
    let notes = Arc::clone(&heard);
    let serve = move |mut stream: TcpStream| {
        let mut bytes = vec![0; 64 << 10];
        let count = stream.read(&mut bytes).unwrap_or(0);
        notes.lock().unwrap().push_str(&String::from_utf8_lossy(&bytes[..count]));
        let head = redirect_to.map_or_else(
            || "HTTP/1.1 200 OK\r\n".to_owned(),
            |port| format!("HTTP/1.1 307 Temporary Redirect\r\nlocation: http://localhost:{port}/acp\r\n"),
        );
        let _ = stream.write_all(format!("{head}content-length: 0\r\nconnection: close\r\n\r\n").as_bytes());
    };
    std::thread::spawn(move || listener.incoming().flatten().for_each(serve));
    (port, heard)
}

#[test]
fn redirects_do_not_get_the_token() {
    let folder = tempfile::tempdir().unwrap();
    let (elsewhere, stolen) = server(None);
    let (first, heard) = server(Some(elsewhere));
    for scheme in ["http", "ws"] {
        let url = format!("{scheme}://127.0.0.1:{first}/acp");
        let args = ["--token-env", "FAR_TOKEN", "--connect", &url];
        let variables = [("FAR_TOKEN", Path::new(TOKEN))];
        let mut screen = Screen::start_with(folder.path(), &args, (24, 100), &variables);
        screen.wait_for("The connection failed.");
        screen.wait_for("another server");
        screen.send("\u{11}");
        screen.send("\u{11}");
        assert!(screen.wait_exit().success());
        assert_eq!(secrets_in(&screen.raw).count(), 0);
    }
    assert!(heard.lock().unwrap().contains(&format!("Bearer {TOKEN}")), "the server itself gets it");
    assert_eq!(*stolen.lock().unwrap(), "", "no request to the other server");
}
