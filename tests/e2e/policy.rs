//! Files and commands of an agent: questions, transcript, saved sessions and permissions.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("work/.git/hooks")).unwrap();
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    fn parlor(&self, args: &[&str], lines: &str) -> Output {
        let mut child = Command::new(env!("CARGO_BIN_EXE_parlor"))
            .args(args)
            .current_dir(self.path("work"))
            .env("PARLOR_DATA_DIR", self.path("data"))
            .env("XDG_CONFIG_HOME", self.path("config"))
            .env("HOME", self.path("home"))
            .env("TERM", "xterm-256color")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
        child.wait_with_output().unwrap()
    }

    /// Plays the steps of an agent in plain text mode, and returns the output.
    fn session(&self, steps: &str, lines: &str) -> String {
        let script = format!(
            "> \"initialize\"\n< {{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{{\"protocolVersion\":1,\"agentCapabilities\":{{}}}}}}\n\
             > \"session/new\"\n< {{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{{\"sessionId\":\"s\"}}}}\n\
             > \"session/prompt\"\n= prompt\n{steps}\
             < {{\"jsonrpc\":\"2.0\",\"id\":$prompt,\"result\":{{\"stopReason\":\"end_turn\"}}}}\n"
        );
        let file = self.path("script");
        fs::write(&file, script).unwrap();
        let agent = agent();
        let args = ["--plain", "--permissions", "ask", "--", agent.to_str().unwrap(), file.to_str().unwrap()];
        let output = self.parlor(&args, lines);
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
        text
    }
}

pub fn agent() -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    tests.parent().unwrap().parent().unwrap().join("examples").join("scripted_agent")
}

/// A request of the agent, and waiting for the response.
fn asks(id: u32, method: &str, params: &str) -> String {
    format!(
        "< {{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"{method}\",\"params\":{{\"sessionId\":\"s\",{params}}}}}\n> \"id\":{id}\n"
    )
}

pub fn writes(id: u32, path: &Path, content: &str) -> String {
    asks(id, "fs/write_text_file", &format!("\"path\":\"{}\",\"content\":\"{content}\"", path.display()))
}

fn runs(id: u32, line: &str) -> String {
    asks(id, "terminal/create", &format!("\"command\":\"sh\",\"args\":[\"-c\",\"{line}\"]"))
}

const WAITS: &str = "< {\"jsonrpc\":\"2.0\",\"id\":90,\"method\":\"terminal/wait_for_exit\",\"params\":{\"sessionId\":\"s\",\"terminalId\":\"$terminal\"}}\n> \"id\":90\n";

fn assert_in_order(text: &str, parts: &[&str]) {
    let mut rest = text;
    for part in parts {
        let at = rest.find(part);
        assert!(at.is_some(), "{part:?} is missing or out of order in:\n{text}");
        rest = &rest[at.unwrap() + part.len()..];
    }
}

#[test]
fn rules_decide_without_asking_and_are_exported() {
    let place = Place::new();
    let (work, config) = (place.path("work"), place.path("config/parlor"));
    fs::create_dir_all(&config).unwrap();
    let rules = r#"rules = ['deny write "secret.txt"', 'allow run "echo *"', 'deny run "rm *"']"#;
    fs::write(config.join("config.toml"), format!("[policy]\n{rules}\n")).unwrap();
    let steps = [
        writes(10, &work.join("secret.txt"), "x"),
        runs(11, "echo from the agent"),
        WAITS.to_owned(),
        runs(12, "echo first && rm -rf work"),
    ];
    let text = place.session(&steps.concat(), "go\n");
    let parts = [
        "secret.txt  refused",
        "allowed by the rule `allow run \"echo *\"`",
        "from the agent",
        "denied by the rule `deny run \"rm *\"`",
    ];
    assert_in_order(&text, &parts);
    assert!(!text.contains("Run a command?") && !work.join("secret.txt").exists(), "{text}");
    let listed = place.parlor(&["sessions", "list", "--json"], "");
    let rows: serde_json::Value = serde_json::from_slice(&listed.stdout).unwrap();
    let uid = rows.pointer("/0/id").or_else(|| rows.pointer("/sessions/0/id")).unwrap().as_str().unwrap();
    let out = place.parlor(&["sessions", "export", uid, "--format", "markdown"], "");
    let out = String::from_utf8(out.stdout).unwrap();
    for part in ["deny write", "allow run", "deny run"] {
        assert!(out.contains(part), "{part:?} in:\n{out}");
    }
}

#[test]
fn commands_and_protected_files_are_asked_saved_and_exported() {
    let place = Place::new();
    let work = place.path("work");
    symlink(".git/hooks/pre-commit", work.join("notes.txt")).unwrap();
    fs::write(work.join("a.txt"), "old line\n").unwrap();
    let steps = [
        runs(10, "touch ran"),
        writes(11, &work.join(".git/hooks/pre-commit"), "#!/bin/sh\\n"),
        writes(12, &work.join("notes.txt"), "#!/bin/sh\\n"),
        writes(13, &work.join("a.txt"), "new line\\n"),
        runs(14, "echo seen; exit 3"),
        WAITS.to_owned(),
    ];
    let text = place.session(&steps.concat(), "go\n5\n4\n4\n1\n");
    assert_in_order(
        &text,
        &[
            "Run a command?",
            "touch ran",
            "4. Allow all commands of",
            "5. Reject",
            "refused by the user",
            "Write to a protected file?",
            ".git/hooks/pre-commit",
            "Write to a protected file?",
            ".git/hooks/pre-commit",
            "in the session's folders",
            "new line",
            "Run a command?",
            "allowed once by the user",
            "seen",
        ],
    );
    assert!(!work.join("ran").exists() && !work.join(".git/hooks/pre-commit").exists());
    assert_eq!(fs::read_to_string(work.join("a.txt")).unwrap(), "new line\n");

    let listed = place.parlor(&["sessions", "list", "--json"], "");
    let listed = String::from_utf8(listed.stdout).unwrap();
    let rows: serde_json::Value = serde_json::from_str(&listed).unwrap();
    let uid = rows
        .pointer("/0/id")
        .or_else(|| rows.pointer("/sessions/0/id"))
        .unwrap()
        .as_str()
        .unwrap()
        .to_owned();
    for format in ["markdown", "html", "json"] {
        let out = place.parlor(&["sessions", "export", &uid, "--format", format], "");
        let out = String::from_utf8(out.stdout).unwrap();
        for part in ["touch ran", "pre-commit", "a.txt", "old line", "new line", "echo seen", "seen"] {
            assert!(out.contains(part), "{part:?} in {format}:\n{out}");
        }
        if format != "json" {
            for part in ["refused by the user", "in the session", "allowed once by the user"] {
                assert!(out.contains(part), "{part:?} in {format}:\n{out}");
            }
        }
    }
}

/// Requests permission to create a file with this content.
fn permission(id: u32, path: &Path, content: &str) -> String {
    let change = format!("\"type\":\"diff\",\"path\":\"{}\",\"newText\":\"{content}\"", path.display());
    let call =
        format!("\"toolCallId\":\"t{id}\",\"kind\":\"edit\",\"title\":\"Edit\",\"content\":[{{{change}}}]");
    let options = "{\"optionId\":\"a\",\"name\":\"Allow\",\"kind\":\"allow_once\"},{\"optionId\":\"r\",\"name\":\"Reject\",\"kind\":\"reject_once\"}";
    asks(id, "session/request_permission", &format!("\"toolCall\":{{{call}}},\"options\":[{options}]"))
}

#[test]
fn a_shown_protected_file_is_asked_once_unless_its_content_differs() {
    let place = Place::new();
    let hook = place.path("work/.git/hooks/pre-commit");
    let shown = permission(10, &hook, "true\\n");
    let text = place.session(&[shown.as_str(), &writes(11, &hook, "true\\n")].concat(), "go\n1\n");
    assert_in_order(
        &text,
        &["Protected file: ", ".git/hooks/pre-commit", "Version control runs", "1. Allow"],
    );
    assert!(!text.contains("Write to a protected file?"), "{text}");
    assert_eq!(fs::read_to_string(&hook).unwrap(), "true\n");

    fs::remove_file(&hook).unwrap();
    let text = place.session(&[shown.as_str(), &writes(11, &hook, "id\\n")].concat(), "go\n1\n4\n");
    assert_in_order(
        &text,
        &["Protected file: ", "1. Allow", "Write to a protected file?", "id", "4. Reject"],
    );
    assert!(!hook.exists());

    // A link to a protected file is not marked in the agent's request.
    symlink(".git/hooks/pre-commit", place.path("work/notes.txt")).unwrap();
    let notes = place.path("work/notes.txt");
    let steps = [permission(10, &notes, "true\\n"), writes(11, &notes, "true\\n")];
    let text = place.session(&steps.concat(), "go\n1\n4\n");
    assert_in_order(&text, &["1. Allow", "Write to a protected file?", ".git/hooks/pre-commit", "4. Reject"]);
    assert!(!hook.exists() && !text.contains("Protected file: "), "{text}");
}

#[test]
fn all_commands_of_a_session_can_be_allowed_with_one_answer() {
    let place = Place::new();
    fs::create_dir(place.path("outside")).unwrap();
    symlink(place.path("outside"), place.path("work/link")).unwrap();
    let through_link = asks(
        13,
        "terminal/create",
        &format!("\"command\":\"touch\",\"args\":[\"x\"],\"cwd\":\"{}\"", place.path("work/link").display()),
    );
    let steps =
        [runs(10, "touch a"), runs(11, "touch b"), runs(12, "echo seen"), WAITS.to_owned(), through_link];
    let text = place.session(&steps.concat(), "go\n4\n4\n");
    assert_eq!(text.matches("Run a command?").count(), 1, "{text}");
    let parts = [
        "4. Allow all commands of",
        "allowed by the user for this session",
        "seen",
        "outside the session's folders",
    ];
    assert_in_order(&text, &parts);
    assert!(!place.path("outside/x").exists());
    let again = place.session(&runs(10, "echo again"), "go\n5\n");
    assert_in_order(&again, &["Run a command?", "refused by the user"]);
}

#[test]
fn saved_permissions_are_listed_and_can_be_revoked() {
    let place = Place::new();
    let steps = [runs(10, "echo seen"), WAITS.to_owned()].concat();
    let text = place.session(&steps, "go\n3\n");
    assert_in_order(&text, &["Run a command?", "seen"]);
    let text = place.session(&steps, "go\n");
    assert!(!text.contains("Run a command?") && text.contains("seen"), "{text}");
    let other = place.session(&runs(10, "echo other"), "go\n");
    assert_in_order(&other, &["Run a command?", "echo other"]);
    let config = String::from_utf8(place.parlor(&["config"], "").stdout).unwrap();
    assert_in_order(&config, &["Saved permissions", "may run \"echo seen\""]);
    let file = config.lines().rev().find(|line| line.contains("/grants/")).unwrap();
    fs::remove_file(file.trim_start_matches(['#', ' '])).unwrap();
    let text = place.session(&runs(10, "echo seen"), "go\n");
    assert_in_order(&text, &["Run a command?", "echo seen"]);
}

/// A server that responds in the POST; returns its port.
fn server() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let serve = |stream: TcpStream| -> Option<()> {
        let mut stream = BufReader::new(stream);
        loop {
            let mut length = 0;
            let mut line = String::new();
            while stream.read_line(&mut line).ok()? > 2 {
                if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                    length = value.trim().parse().ok()?;
                }
                line.clear();
            }
            let mut body = vec![0; length];
            stream.read_exact(&mut body).ok()?;
            let call: serde_json::Value = serde_json::from_slice(&body).ok()?;
            let result = match call["method"].as_str()? {
                "initialize" => serde_json::json!({"protocolVersion": 1, "agentCapabilities": {}}),
                "session/new" => serde_json::json!({"sessionId": "s"}),
                _ => serde_json::json!({"stopReason": "end_turn"}),
            };
            let reply = serde_json::json!({"jsonrpc": "2.0", "id": call["id"], "result": result}).to_string();
            let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length";
            write!(stream.get_mut(), "{head}: {}\r\n\r\n{reply}", reply.len()).ok()?;
        }
    };
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || serve(stream));
        }
    });
    port
}

#[test]
fn a_session_of_a_remote_agent_is_not_continued_with_another_agent() {
    let place = Place::new();
    let port = server();
    let url = format!("http://127.0.0.1:{port}/acp");
    let first = place.parlor(&["--plain", "--transport", "post", "--connect", &url], "remember this\n");
    let first = String::from_utf8(first.stdout).unwrap();
    assert!(first.contains("remember this"), "{first}");
    // The default agent is not used instead.
    fs::create_dir_all(place.path("config/parlor")).unwrap();
    fs::write(place.path("config/parlor/config.toml"), "agent = \"demo\"\n").unwrap();
    let again = place.parlor(&["--plain", "--continue"], "");
    let again = String::from_utf8_lossy(&again.stdout).into_owned();
    let message = format!("The agent of this session, \"127.0.0.1:{port}\", is not configured.");
    assert_in_order(&again, &[&message, "parlor --resume ", "--connect URL", "Select agent"]);
    assert!(again.contains("remember this"), "{again}");
    // With the suggested arguments.
    let back =
        place.parlor(&["--plain", "--continue", "--transport", "post", "--connect", &url], "and this\n");
    let back = String::from_utf8(back.stdout).unwrap();
    assert!(back.contains("remember this") && !back.contains("is not configured"), "{back}");
}
