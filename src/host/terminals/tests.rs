use std::path::PathBuf;
use std::time::Instant;

use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::*;
use crate::host::os::fixtures;
use crate::host::os::process::{self, Ending, ProcessId};
use crate::host::process::session_members;
use crate::model::ExitInfo;

mod shell;
mod text;

const CONN: ConnId = ConnId(1);
const SIZE: TerminalSize = TerminalSize { rows: 24, cols: 80 };
/// Longer than any test takes, also on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

struct Rig {
    terminals: Terminals,
    events: UnboundedReceiver<ServiceEvent>,
    dir: tempfile::TempDir,
    /// All reported output.
    output: Vec<u8>,
    ended: Vec<(TerminalId, ExitInfo)>,
}

fn rig() -> Rig {
    let (sender, events) = unbounded_channel();
    let dir = tempfile::tempdir().unwrap();
    Rig { terminals: Terminals::new(sender), events, dir, output: Vec::new(), ended: Vec::new() }
}

fn line(command: &str) -> TerminalCommand {
    TerminalCommand { command: command.to_owned(), ..TerminalCommand::default() }
}

impl Rig {
    fn next(&mut self, wait: Duration) -> Option<ServiceEvent> {
        let deadline = Instant::now() + wait;
        loop {
            if let Ok(event) = self.events.try_recv() {
                match &event {
                    ServiceEvent::TerminalOutput { terminal, bytes } => {
                        assert!(!self.ended.iter().any(|(id, _)| id == terminal), "output after the end");
                        assert!(bytes.len() <= 300 << 10);
                        self.output.extend_from_slice(bytes);
                    }
                    ServiceEvent::TerminalEnded { terminal, exit } => {
                        assert!(!self.ended.iter().any(|(id, _)| id == terminal), "a second end");
                        self.ended.push((terminal.clone(), exit.clone()));
                    }
                    _ => {}
                }
                return Some(event);
            }
            if Instant::now() >= deadline {
                return None;
            }
            thread::sleep(Duration::from_millis(1));
        }
    }

    fn try_start(&mut self, mut command: TerminalCommand) -> (String, Result<TerminalId, RpcError>) {
        command.cwd.get_or_insert_with(|| self.dir.path().to_path_buf());
        self.terminals.run(TerminalJob::Create {
            conn: CONN,
            request_id: RequestId(1),
            session: SessionKey(1),
            command,
            within: None,
            has_input: false,
            size: SIZE,
            sandbox: None,
        });
        loop {
            if let ServiceEvent::TerminalStarted { command, result, .. } = self.next(PATIENCE).unwrap() {
                return (command, result);
            }
        }
    }

    fn start(&mut self, command: TerminalCommand) -> TerminalId {
        self.try_start(command).1.unwrap()
    }

    fn end(&mut self, id: &TerminalId) -> ExitInfo {
        loop {
            if let Some((_, exit)) = self.ended.iter().find(|(ended, _)| ended == id) {
                return exit.clone();
            }
            self.next(PATIENCE).expect("the end is reported");
        }
    }

    fn read(&mut self, id: &TerminalId) -> Result<(String, bool, Option<ExitInfo>), RpcError> {
        self.terminals.run(TerminalJob::Output {
            conn: CONN,
            request_id: RequestId(2),
            terminal: id.clone(),
        });
        loop {
            if let ServiceEvent::TerminalRead { result, .. } = self.next(PATIENCE).unwrap() {
                return result;
            }
        }
    }

    /// Runs a command line until it ends.
    fn run(&mut self, command: &str) -> (String, ExitInfo) {
        let id = self.start(line(command));
        let exit = self.end(&id);
        let (text, _, status) = self.read(&id).unwrap();
        assert_eq!(status, Some(exit.clone()));
        (text, exit)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Waits until a file contains a process id.
    fn pid(&self, name: &str) -> ProcessId {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let text = std::fs::read_to_string(self.path(name)).unwrap_or_default();
            if text.ends_with('\n') {
                return ProcessId::of(text.trim().parse().unwrap()).unwrap();
            }
            assert!(Instant::now() < deadline, "{name} was not written");
            thread::sleep(Duration::from_millis(2));
        }
    }
}

/// Zombies count as dead, because orphans are reaped by another process.
fn is_alive(pid: ProcessId) -> bool {
    let id = pid.number().to_string();
    let listed = std::process::Command::new("ps").args(["-o", "stat=", "-p", &id]).output().unwrap();
    let state = String::from_utf8_lossy(&listed.stdout).trim().to_owned();
    !state.is_empty() && !state.starts_with('Z')
}

fn assert_dies(pid: ProcessId) {
    let deadline = Instant::now() + PATIENCE;
    while is_alive(pid) {
        assert!(Instant::now() < deadline, "{pid:?} is still running");
        thread::sleep(Duration::from_millis(5));
    }
}

fn code(code: i32) -> ExitInfo {
    ExitInfo { code: Some(code), signal: None }
}

#[test]
fn a_program_with_arguments_runs_without_a_shell() {
    let mut rig = rig();
    let mut command = line("printf");
    command.args = vec!["%s\\n".to_owned(), "$HOME; a  b".to_owned()];
    let (shown, id) = rig.try_start(command);
    let id = id.unwrap();
    assert_eq!(shown, "printf '%s\\n' '$HOME; a  b'");
    assert_eq!(rig.end(&id), code(0));
    assert_eq!(rig.read(&id).unwrap(), ("$HOME; a  b\n".to_owned(), false, Some(code(0))));
}

#[test]
fn a_line_without_arguments_runs_in_a_shell() {
    let mut rig = rig();
    assert_eq!(rig.run("echo one | tr a-z A-Z && exit 3"), ("ONE\n".to_owned(), code(3)));
    assert_eq!(rig.run("echo>x;ls"), ("x\n".to_owned(), code(0)));
    assert_eq!(rig.run("pwd").0.trim(), rig.dir.path().canonicalize().unwrap().to_str().unwrap());
}

#[test]
fn a_line_never_runs_a_file_of_that_name() {
    let mut rig = rig();
    for (folder, name) in [("cat docs", "readme.txt"), ("", "tool")] {
        let file = rig.path(folder).join(name);
        std::fs::create_dir_all(rig.path(folder)).unwrap();
        std::fs::write(&file, "#!/bin/sh\necho of the folder\n").unwrap();
        fixtures::set_mode(&file, 0o755);
    }
    std::fs::create_dir(rig.path("docs")).unwrap();
    std::fs::write(rig.path("docs/readme.txt"), "innocent\n").unwrap();
    assert_eq!(rig.run("cat docs/readme.txt"), ("innocent\n".to_owned(), code(0)));
    assert_eq!(rig.run("./tool"), ("of the folder\n".to_owned(), code(0)));
    assert!(rig.try_start(line("tool")).1.unwrap_err().message.contains("not found"));
}

#[test]
fn start_errors_are_reported() {
    let mut rig = rig();
    let error = rig.try_start(line("no-such-program-here")).1.unwrap_err();
    assert!(error.message.contains("Program no-such-program-here not found"), "{}", error.message);
    let mut command = line("ls");
    command.cwd = Some(rig.path("missing"));
    let error = rig.try_start(command).1.unwrap_err();
    assert!(error.message.contains("missing does not exist"), "{}", error.message);
    assert!(rig.try_start(line("  ")).1.unwrap_err().message.contains("empty"));
    let mut command = line("no such");
    command.args = vec!["x".to_owned()];
    assert!(rig.try_start(command).1.is_err());
}

#[test]
fn the_environment_has_no_pager_and_no_prompt() {
    let mut rig = rig();
    let mut command = line("echo $PAGER $GIT_PAGER $GIT_TERMINAL_PROMPT $TERM $OWN; stty size <&1");
    command.env = vec![("OWN".to_owned(), "own".to_owned()), ("TERM".to_owned(), "dumb".to_owned())];
    let id = rig.start(command);
    rig.end(&id);
    let text = rig.read(&id).unwrap().0;
    assert!(text.starts_with("cat cat 0 dumb own\n"), "{text}");
}

#[test]
fn the_output_is_a_terminal_and_plain_text_for_the_agent() {
    let mut rig = rig();
    let (text, _) = rig
        .run("test -t 1 && test -t 2 && printf '\\033[1;31mred\\033[0m\\n10%%\\r100%%\\n\\033]0;t\\007end'");
    assert_eq!(text, "red\n100%\nend");
    let output = String::from_utf8(std::mem::take(&mut rig.output)).unwrap();
    assert!(output.contains("\x1b[1;31mred\x1b[0m\r\n"), "{output:?}");
}

#[test]
fn commands_do_not_wait_for_input() {
    let mut rig = rig();
    let before = Instant::now();
    assert_eq!(rig.run("read x; echo \"got <$x>\""), ("got <>\n".to_owned(), code(0)));
    assert_eq!(rig.run("cat"), (String::new(), code(0)));
    // There is no controlling terminal for prompts that bypass standard input.
    let (text, exit) = rig.run("read x </dev/tty && echo read");
    assert_ne!(exit, code(0), "{text}");
    // Reading from the output terminal fails too.
    let (text, exit) = rig.run("read x <&2 && echo read");
    assert_ne!(exit, code(0), "{text}");
    assert!(before.elapsed() < PATIENCE);
}

#[test]
fn signals_are_reported_by_name() {
    let mut rig = rig();
    let exit = rig.run("kill -KILL $$").1;
    assert_eq!(exit, ExitInfo { code: None, signal: Some("SIGKILL".to_owned()) });
    assert_eq!(rig.run("kill -TERM $$").1.signal.as_deref(), Some("SIGTERM"));
}

#[test]
fn kill_reaches_grandchildren_that_ignore_term() {
    let mut rig = rig();
    let id = rig.start(line(
        "sh -c 'trap \"\" TERM HUP; echo $$ > resists; while :; do sleep 0.05; done' & \
         set -m; sleep 1000 & echo $! > other_group; set +m; sleep 1000 & echo $! > background; wait",
    ));
    let pids = [rig.pid("resists"), rig.pid("other_group"), rig.pid("background")];
    assert!(pids.iter().all(|pid| is_alive(*pid)));
    assert_eq!(rig.read(&id).unwrap().2, None);
    rig.terminals.run(TerminalJob::Kill(id.clone()));
    assert_eq!(rig.end(&id).signal.as_deref(), Some("SIGTERM"));
    pids.into_iter().for_each(assert_dies);
    // The id stays valid, and a second kill has no effect.
    rig.terminals.run(TerminalJob::Kill(id.clone()));
    assert!(rig.read(&id).unwrap().2.is_some());
}

#[test]
fn release_kills_the_command_and_removes_the_terminal() {
    let mut rig = rig();
    let id = rig.start(line("echo $$ > pid; echo before; sleep 1000"));
    let pid = rig.pid("pid");
    rig.terminals.run(TerminalJob::Release(id.clone()));
    let error = rig.read(&id).unwrap_err();
    assert_eq!(error.code, RpcError::RESOURCE_NOT_FOUND);
    assert!(rig.end(&id).signal.is_some());
    assert_dies(pid);
    // The process is reaped.
    let deadline = Instant::now() + PATIENCE;
    while fixtures::exists(pid) {
        assert!(Instant::now() < deadline, "a zombie is left");
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn background_processes_run_until_their_connection_ends() {
    let mut rig = rig();
    let id = rig.start(line("sleep 1000 >/dev/null 2>&1 & echo $! > pid"));
    assert_eq!(rig.end(&id), code(0));
    let pid = rig.pid("pid");
    rig.terminals.run(TerminalJob::Release(id.clone()));
    assert!(rig.read(&id).is_err());
    thread::sleep(Duration::from_millis(200));
    assert!(is_alive(pid));
    rig.terminals.run(TerminalJob::ReleaseAll(ConnId(2)));
    thread::sleep(Duration::from_millis(50));
    assert!(is_alive(pid), "the end of another connection has no effect");
    rig.terminals.run(TerminalJob::ReleaseAll(CONN));
    assert_dies(pid);
    // A command that is requested after the end is not started.
    let late = rig.try_start(line("echo $$ > late; sleep 1000")).1;
    assert_eq!(late.unwrap_err().code, RpcError::CANCELLED);
}

#[test]
fn released_commands_are_reaped_while_their_background_processes_run() {
    let mut rig = rig();
    let mut started = Vec::new();
    for number in 0..20 {
        let daemon = if number % 2 == 0 { "" } else { "setsid " };
        let line = format!(
            "echo $$ > leader{number}; {daemon}sh -c 'echo $$ > left{number}; exec sleep 1000' & wait_for() {{ \
                     while ! test -s left{number}; do sleep 0.01; done; }}; wait_for"
        );
        let id = rig.start(self::line(&line));
        rig.end(&id);
        let live = rig.terminals.inner.table().known.get(&id).map(Arc::downgrade).unwrap();
        rig.terminals.run(TerminalJob::Release(id));
        started.push((live, rig.pid(&format!("leader{number}")), rig.pid(&format!("left{number}"))));
    }
    for (live, leader, left) in &started {
        let deadline = Instant::now() + PATIENCE;
        while live.strong_count() > 0 || fixtures::exists(*leader) {
            assert!(Instant::now() < deadline, "a thread or a zombie is left");
            thread::sleep(Duration::from_millis(5));
        }
        assert!(is_alive(*left));
    }
    assert_eq!(rig.terminals.inner.table().released.len(), 10, "one for each session with processes");
    rig.terminals.run(TerminalJob::ReleaseAll(CONN));
    for (number, (_, _, left)) in started.into_iter().enumerate() {
        if number % 2 == 0 {
            assert_dies(left);
        } else {
            process::end(left, Ending::Kill);
        }
    }
}

#[test]
fn ended_background_processes_are_forgotten() {
    let mut rig = rig();
    for _ in 0..MIN_SWEPT + 10 {
        let id = rig.start(line("sleep 0.2 >/dev/null & true"));
        rig.end(&id);
        rig.terminals.run(TerminalJob::Release(id));
    }
    let deadline = Instant::now() + PATIENCE;
    loop {
        rig.terminals.inner.sweep();
        if rig.terminals.inner.table().released.len() < MIN_SWEPT {
            break;
        }
        assert!(Instant::now() < deadline, "ended processes are kept");
        thread::sleep(Duration::from_millis(5));
    }
}

/// After the background processes of a command have ended, another session may have its id.
#[test]
fn processes_of_another_session_are_not_killed() {
    let mut rig = rig();
    let id = rig.start(line("setsid env -u PARLOR_COMMAND sh -c 'echo $$ > pid; sleep 1000; true' & wait"));
    let other = rig.pid("pid");
    let deadline = Instant::now() + PATIENCE;
    while session_members(other).is_empty() {
        assert!(Instant::now() < deadline, "it does not start");
        thread::sleep(Duration::from_millis(5));
    }
    let known = process::identify(&session_members(other)).unwrap();
    let members = |known| Background::in_session(other, known).members();
    assert_eq!(members(Vec::new()), []);
    assert_eq!(members(known), session_members(other));
    rig.terminals.run(TerminalJob::Release(id));
    let last = session_members(other);
    for one in last.into_iter().chain([other]) {
        process::end(one, Ending::Kill);
    }
}

#[test]
fn shut_down_leaves_no_processes() {
    let mut rig = rig();
    rig.start(line("echo $$ > one; sleep 1000"));
    rig.start(line("trap '' TERM; echo $$ > two; while :; do sleep 0.05; done"));
    let pids = [rig.pid("one"), rig.pid("two")];
    let before = Instant::now();
    rig.terminals.shut_down();
    assert!(before.elapsed() < Duration::from_secs(5));
    pids.into_iter().for_each(assert_dies);
    assert!(rig.try_start(line("sleep 1000")).1.is_err());

    let mut other = self::rig();
    other.start(line("echo $$ > pid; sleep 1000"));
    let pid = other.pid("pid");
    drop(other.terminals);
    assert_dies(pid);
}

#[test]
fn a_grandchild_that_holds_the_terminal_does_not_delay_the_end() {
    let mut rig = rig();
    let id = rig.start(line("(while :; do echo noise; sleep 0.01; done) & echo $! > pid; echo last"));
    let pid = rig.pid("pid");
    let before = Instant::now();
    assert_eq!(rig.end(&id), code(0));
    assert!(before.elapsed() < Duration::from_millis(1500), "{:?}", before.elapsed());
    assert!(rig.read(&id).unwrap().0.contains("last\n"));
    rig.terminals.run(TerminalJob::ReleaseAll(CONN));
    assert_dies(pid);
}

#[test]
fn large_output_is_reported_in_few_events_and_truncated_at_its_start() {
    let mut rig = rig();
    let mut command = line("yes 0123456789 | head -c 5000000; echo; echo done");
    command.output_limit_bytes = Some(1000);
    let before = Instant::now();
    let id = rig.start(command);
    let mut events = 0;
    while rig.ended.is_empty() {
        if let Some(ServiceEvent::TerminalOutput { bytes, .. }) = rig.next(PATIENCE) {
            rig.terminals.taken(bytes.len());
            events += 1;
        }
    }
    assert!(before.elapsed() < PATIENCE);
    assert!(events < 1000, "{events}");
    let newlines = memchr::memchr_iter(b'\n', &rig.output).count();
    // Each line end has a carriage return in addition.
    assert_eq!(rig.output.len() - newlines, 5_000_000 + "\ndone\n".len(), "nothing is lost");
    let (text, is_cut, _) = rig.read(&id).unwrap();
    assert!(is_cut && text.len() <= 1000 && text.len() > 990, "{}", text.len());
    assert!(text.ends_with("\ndone\n"), "{text}");
}

#[test]
fn a_slow_screen_loses_only_its_own_copy() {
    let mut rig = rig();
    let mut command = line("yes 0123456789 | head -c 30000000; echo; echo done");
    command.output_limit_bytes = Some(64 << 20);
    let id = rig.start(command);
    // No event is received until the command has ended.
    let deadline = Instant::now() + PATIENCE * 3;
    loop {
        thread::sleep(Duration::from_millis(50));
        let (text, _, exit) = {
            let known = rig.terminals.inner.table().known.get(&id).cloned().unwrap();
            known.read()
        };
        if exit.is_some() {
            assert!(text.len() > 30_000_000 && text.ends_with("done\n"));
            break;
        }
        assert!(Instant::now() < deadline, "the command is blocked by the screen");
    }
    rig.end(&id);
    assert!(rig.output.len() < 12 << 20, "{}", rig.output.len());
    let output = String::from_utf8_lossy(&rig.output);
    assert!(output.contains("of output omitted") && output.ends_with("done\r\n"));
}

#[test]
fn ids_are_unique_and_unknown_ones_are_an_error() {
    let mut rig = rig();
    let mut other = self::rig();
    let one = rig.start(line("true"));
    let two = other.start(line("true"));
    assert_ne!(one, two);
    assert!(one.as_str().starts_with("term-"));
    let error = rig.read(&two).unwrap_err();
    assert_eq!(error.code, RpcError::RESOURCE_NOT_FOUND);
    // These have no response.
    rig.terminals.run(TerminalJob::Kill(two.clone()));
    rig.terminals.run(TerminalJob::Release(two));
}

#[test]
fn a_command_bound_to_folders_does_not_start_outside_through_a_link() {
    let mut rig = rig();
    let (root, other) = (rig.dir.path().join("root"), rig.dir.path().join("other"));
    std::fs::create_dir(&root).unwrap();
    std::fs::create_dir(&other).unwrap();
    fixtures::link(&other, root.join("link"));
    let command = |cwd: PathBuf| TerminalCommand {
        command: "touch".into(),
        args: vec!["made".into()],
        cwd: Some(cwd),
        ..TerminalCommand::default()
    };
    let job = |cwd| TerminalJob::Create {
        conn: CONN,
        request_id: RequestId(1),
        session: SessionKey(1),
        command: command(cwd),
        within: Some(vec![root.clone()]),
        has_input: false,
        size: SIZE,
        sandbox: None,
    };
    rig.terminals.run(job(root.join("link")));
    let event = rig.next(PATIENCE).unwrap();
    let ServiceEvent::TerminalOutside { command, .. } = event else { panic!("{event:?}") };
    assert_eq!(command.cwd, Some(other.canonicalize().unwrap()));
    rig.terminals.run(job(root.clone()));
    assert!(matches!(rig.next(PATIENCE), Some(ServiceEvent::TerminalStarted { result: Ok(_), .. })));
    assert!(!other.join("made").exists());
}
