use std::fmt::Write as _;

use super::*;
use crate::model::TerminalInput;

const SESSION: SessionKey = SessionKey(7);

/// The shells that are installed.
fn shells() -> Vec<PathBuf> {
    let names = ["sh", "bash", "dash", "ksh", "zsh", "fish"];
    let found: Vec<PathBuf> = names.iter().filter_map(|name| which::which(name).ok()).collect();
    assert!(found.len() >= 2, "sh and bash are installed");
    found
}

struct Shell {
    rig: Rig,
    folder: PathBuf,
    number: u32,
}

impl Shell {
    fn new(shell: &Path) -> Self {
        let mut rig = rig();
        let (sender, events) = unbounded_channel();
        rig.terminals = Terminals::with_shell(sender, shell.to_owned());
        rig.events = events;
        let folder = rig.dir.path().canonicalize().unwrap();
        Self { rig, folder, number: 0 }
    }

    fn start(&mut self, line: &str) -> (PathBuf, Result<TerminalId, String>) {
        self.number += 1;
        self.rig.terminals.run(TerminalJob::Shell {
            session: SESSION,
            number: self.number,
            line: line.to_owned(),
            folder: self.folder.clone(),
            size: SIZE,
        });
        loop {
            if let ServiceEvent::ShellStarted { folder, result, .. } = self.rig.next(PATIENCE).unwrap() {
                return (folder, result);
            }
        }
    }

    /// Runs a line to its end; returns its output and exit status.
    fn run(&mut self, line: &str) -> (String, ExitInfo) {
        let id = self.start(line).1.unwrap();
        self.rig.output.clear();
        let exit = self.rig.end(&id);
        let text = plain_text(&self.rig.output, 1 << 20).0;
        self.rig.terminals.run(TerminalJob::Release(id));
        (text, exit)
    }

    fn say(&mut self, line: &str) -> String {
        self.run(line).0
    }

    fn type_in(&self, id: &TerminalId, input: TerminalInput) {
        self.rig.terminals.run(TerminalJob::Input(id.clone(), input));
    }

    fn wait_for(&mut self, text: &str) {
        while !plain_text(&self.rig.output, 1 << 20).0.contains(text) {
            self.rig.next(PATIENCE).unwrap_or_else(|| panic!("{text:?} in the output"));
        }
    }
}

fn bytes(text: &str) -> TerminalInput {
    TerminalInput::Bytes(text.as_bytes().to_vec())
}

#[test]
fn folder_and_environment_stay_for_the_next_command() {
    for path in shells() {
        let mut shell = Shell::new(&path);
        let is_fish = path.ends_with("fish");
        let name = path.display();
        std::fs::create_dir(shell.folder.join("sub 'dir'")).unwrap();
        assert_eq!(shell.say("pwd").trim(), shell.folder.to_str().unwrap(), "{name}");
        assert_eq!(shell.say("cd \"sub 'dir'\""), "", "{name}");
        let set = |name: &str, value: &str| {
            if is_fish { format!("set -gx {name} {value}") } else { format!("export {name}={value}") }
        };
        shell.say(&set("PARTY", "'a  b=c'"));
        assert_eq!(shell.say("pwd").trim(), shell.folder.join("sub 'dir'").to_str().unwrap(), "{name}");
        assert_eq!(shell.say("echo \"<$PARTY>\"").trim(), "<a  b=c>", "{name}");
        shell.say(if is_fish { "set -e PARTY" } else { "unset PARTY" });
        assert_eq!(shell.say("echo \"<$PARTY>\"").trim(), "<>", "{name}");
        shell.say("cd ..");
        assert_eq!(shell.say("pwd").trim(), shell.folder.to_str().unwrap(), "{name}");
    }
}

#[test]
fn the_exit_status_is_that_of_the_line() {
    for path in shells() {
        let mut shell = Shell::new(&path);
        let code = |exit: ExitInfo| exit.code;
        let name = path.display();
        for (line, status) in [("true", 0), ("false", 1), ("exit 7", 7), ("no-such-program-x", 127)] {
            assert_eq!(code(shell.run(line).1), Some(status), "{name}: {line}");
        }
        assert_ne!(code(shell.run("echo 'open").1), Some(0), "{name}: a syntax error");
        assert_eq!(shell.say("echo one # two\necho three").trim(), "one\nthree", "{name}");
        if !path.ends_with("fish") {
            assert_eq!(shell.say("cat <<X\ntext\nX").trim(), "text", "{name}");
        }
    }
}

#[test]
fn values_appear_in_no_output_and_no_event() {
    for path in shells() {
        let mut shell = Shell::new(&path);
        let set = if path.ends_with("fish") { "set -gx TOKEN (cat key)" } else { "export TOKEN=$(cat key)" };
        std::fs::write(shell.folder.join("key"), "geheim").unwrap();
        let mut reported = shell.say(set);
        reported.push_str(&shell.say("cd .."));
        while let Some(event) = shell.rig.next(Duration::from_millis(1)) {
            let _ = write!(reported, "{event:?}");
        }
        let _ = write!(reported, "{:?}", shell.rig.terminals);
        assert!(!reported.contains("geheim"), "{reported}");
        assert_eq!(shell.say("echo $TOKEN").trim(), "geheim", "{}", path.display());
    }
}

#[test]
fn a_large_environment_does_not_block() {
    let mut shell = Shell::new(Path::new("/bin/sh"));
    shell.say("export BIG=$(head -c 100000 /dev/zero | tr '\\0' x)");
    assert_eq!(shell.say("echo ${#BIG}").trim(), "100000");
}

#[test]
fn a_command_that_ends_late_does_not_undo_later_changes() {
    let mut shell = Shell::new(Path::new("/bin/sh"));
    std::fs::create_dir(shell.folder.join("sub")).unwrap();
    let late = shell.start("read line").1.unwrap();
    shell.say("cd sub; export LATER=1");
    shell.type_in(&late, bytes("x\n"));
    shell.rig.end(&late);
    assert_eq!(shell.say("echo $LATER; basename \"$PWD\"").trim(), "1\nsub");
}

#[test]
fn a_deleted_folder_is_left() {
    let mut shell = Shell::new(Path::new("/bin/sh"));
    shell.say("mkdir gone && cd gone");
    std::fs::remove_dir(shell.folder.join("gone")).unwrap();
    let (folder, started) = shell.start("pwd");
    assert_eq!(folder, shell.folder);
    shell.rig.end(&started.unwrap());
}

#[test]
fn input_reaches_the_command_and_pastes_are_marked_if_it_asks() {
    let mut shell = Shell::new(Path::new("/bin/sh"));
    let id = shell.start("stty -echo; echo ready; read a; read b; echo \"<$a|$b>\"").1.unwrap();
    shell.wait_for("ready");
    shell.type_in(&id, bytes("one\r"));
    shell.type_in(&id, TerminalInput::Paste("t\x1b[201~\x03wo\n".to_owned()));
    assert_eq!(shell.rig.end(&id).code, Some(0));
    shell.wait_for("<one|t[201~wo>");
    let id =
        shell.start("stty raw -echo; printf '\\033[?2004h\\033[?1hready'; head -c 16 | od -c").1.unwrap();
    shell.rig.output.clear();
    shell.wait_for("ready");
    shell.type_in(&id, TerminalInput::Paste("x".to_owned()));
    shell.type_in(&id, TerminalInput::Cursor(b'A'));
    shell.rig.end(&id);
    shell.wait_for("033   [   2   0   0   ~   x 033   [   2   0   1   ~ 033   O");
}

#[test]
fn hidden_input_is_reported_but_not_that_of_single_keys() {
    let mut shell = Shell::new(Path::new("/bin/sh"));
    let mut reported = |line: &str, input: &str| {
        let id = shell.start(line).1.unwrap();
        shell.rig.output.clear();
        let mut reported = Vec::new();
        let mut typed = 0;
        while typed < input.lines().count() {
            shell.wait_for(&format!("{}:", typed + 1));
            // A change of the echo is polled.
            while let Some(event) = shell.rig.next(Duration::from_millis(500)) {
                if let ServiceEvent::TerminalHidesInput { hides_input, .. } = event {
                    reported.push(hides_input);
                }
            }
            shell.type_in(&id, bytes(&format!("{}\r", input.lines().nth(typed).unwrap())));
            typed += 1;
        }
        shell.rig.end(&id);
        reported
    };
    let password = "stty -echo; printf '1:'; read a; stty echo; printf '2:'; read b; echo \"<$b>\"";
    assert_eq!(reported(password, "secret\nshown"), [true, false]);
    assert_eq!(reported("stty raw -echo; printf '1:'; head -c 1 >/dev/null", "x"), [false; 0]);
}

#[test]
fn an_interrupt_ends_the_command() {
    let mut shell = Shell::new(Path::new("/bin/sh"));
    let id = shell.start("sh -c 'echo ready; exec sleep 100'").1.unwrap();
    shell.wait_for("ready");
    shell.type_in(&id, bytes("\x03"));
    let exit = shell.rig.end(&id);
    assert!(exit.signal.is_some() || exit.code.is_some_and(|code| code != 0), "{exit:?}");
}

#[test]
fn closing_a_session_kills_its_commands_and_drops_its_environment() {
    let mut shell = Shell::new(Path::new("/bin/sh"));
    shell.say("export LEFT=1");
    let id = shell.start("echo $$ >pid; sleep 100 & sleep 100").1.unwrap();
    let leader = shell.rig.pid("pid");
    shell.rig.terminals.run(TerminalJob::ReleaseAll(CONN));
    shell.rig.terminals.run(TerminalJob::CloseShell(SESSION));
    shell.rig.end(&id);
    let deadline = Instant::now() + PATIENCE;
    while !session_members(leader).is_empty() {
        assert!(Instant::now() < deadline, "processes are left");
        thread::yield_now();
    }
    assert!(shell.start("true").1.is_err(), "the session is closed");
}

#[test]
fn stopping_a_command_leaves_no_process() {
    let mut shell = Shell::new(Path::new("/bin/sh"));
    let id = shell.start("echo $$ >pid; sleep 100 | cat").1.unwrap();
    let leader = shell.rig.pid("pid");
    shell.rig.terminals.run(TerminalJob::Kill(id.clone()));
    shell.rig.end(&id);
    let deadline = Instant::now() + PATIENCE;
    while !session_members(leader).is_empty() {
        assert!(Instant::now() < deadline, "processes are left");
        thread::yield_now();
    }
}

#[test]
fn commands_of_agents_read_input_only_if_enabled() {
    for has_input in [false, true] {
        let mut rig = rig();
        let mut command = line("if read -r word; then echo \"<$word>\"; else echo none; fi");
        command.cwd = Some(rig.dir.path().to_path_buf());
        let (conn, request_id, session) = (CONN, RequestId(1), SessionKey(1));
        rig.terminals.run(TerminalJob::Create {
            conn,
            request_id,
            session,
            command,
            within: None,
            has_input,
            size: SIZE,
            sandbox: None,
        });
        let id = loop {
            if let ServiceEvent::TerminalStarted { result, .. } = rig.next(PATIENCE).unwrap() {
                break result.unwrap();
            }
        };
        if has_input {
            rig.terminals.run(TerminalJob::Input(id.clone(), bytes("word\r")));
        }
        rig.end(&id);
        let text = plain_text(&rig.output, 1 << 20).0;
        assert!(text.contains(if has_input { "<word>" } else { "none" }), "{text}");
    }
}

#[test]
fn a_terminal_is_resized_and_a_full_screen_program_leaves_no_text() {
    let mut shell = Shell::new(Path::new("/bin/sh"));
    let line = "trap 'stty size' WINCH; stty size; until read -r x; do :; done; \
                printf '\\033[?1049hhidden\\033[?1049l'; echo over";
    let id = shell.start(line).1.unwrap();
    shell.wait_for("24 80");
    shell.rig.terminals.run(TerminalJob::Resize(id.clone(), TerminalSize { rows: 50, cols: 132 }));
    shell.wait_for("50 132");
    shell.type_in(&id, bytes("\r"));
    shell.rig.end(&id);
    let (text, _, _) = shell.rig.read(&id).unwrap();
    assert!(text.contains("over") && !text.contains("hidden"), "{text}");
}

#[test]
fn a_command_gets_the_responses_of_its_terminal() {
    let mut shell = Shell::new(Path::new("/bin/sh"));
    let line = "stty -icanon -echo; printf 'ab\\n  \\033[6n'; head -c 6 | tr '\\033' E; printf '\\033[c'; head -c 5 | tr '\\033' E";
    assert_eq!(shell.say(line).trim(), "ab\n  E[2;3RE[?6c");
}
