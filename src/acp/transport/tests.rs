//! Tests of the transports, with real child processes.

mod queues;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::time::timeout;

use super::stdio::Stdio;
use super::{In, Link, Setup, Transport};
use crate::acp::frame::{DEFAULT_FRAME_BYTES, InboundFrame};
use crate::acp::tap::{Direction, Tap};
use crate::host::os::fixtures;
use crate::model::{AgentSpec, CloseReason, ExitInfo};

/// An agent that is a shell script.
fn script(text: &str) -> AgentSpec {
    AgentSpec {
        name: "test".into(),
        command: "/bin/sh".into(),
        args: vec!["-c".into(), text.into()],
        ..AgentSpec::default()
    }
}

fn setup() -> Setup {
    Setup { max_frame_bytes: DEFAULT_FRAME_BYTES, tap: Tap::default(), stderr_log: None }
}

fn start(spec: AgentSpec) -> Result<Link, CloseReason> {
    Box::new(Stdio::new(spec, std::env::temp_dir())).start(setup())
}

fn run(text: &str) -> Link {
    start(script(text)).expect("the shell starts")
}

/// All messages until the end, and the end.
async fn read_all(link: &mut Link) -> (Vec<String>, CloseReason) {
    let mut texts = Vec::new();
    loop {
        let message = timeout(Duration::from_secs(30), link.incoming.recv()).await.expect("timed out");
        match message.expect("`Closed` is sent before the end") {
            In::Pieces(pieces) => texts.extend(pieces.into_iter().map(|piece| match piece {
                InboundFrame::Frame(frame) => frame.text().to_owned(),
                InboundFrame::Noise(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
                InboundFrame::Oversize { len_bytes, .. } => format!("oversize {len_bytes}"),
            })),
            In::Note(text) | In::Undelivered { text, .. } => texts.push(text),
            In::Interrupted(_) => {}
            In::Closed(end) => {
                assert!(link.incoming.recv().await.is_none(), "`Closed` is the last event");
                return (texts, end);
            }
        }
    }
}

fn exited(code: i32, tail: &[&str]) -> CloseReason {
    CloseReason::Exited {
        status: ExitInfo { code: Some(code), signal: None },
        stderr_tail: tail.iter().map(|line| (*line).to_owned()).collect(),
    }
}

fn killed(signal: &str) -> CloseReason {
    CloseReason::Exited {
        status: ExitInfo { code: None, signal: Some(signal.into()) },
        stderr_tail: Vec::new(),
    }
}

/// Whether a process is running; zombies are not.
fn is_alive(pid: &str) -> bool {
    let status = std::process::Command::new("ps").args(["-o", "stat=", "-p", pid]).output().expect("ps runs");
    let status = String::from_utf8_lossy(&status.stdout).trim().to_owned();
    !status.is_empty() && !status.starts_with('Z')
}

async fn assert_gone(pid: &str) {
    let start = Instant::now();
    while is_alive(pid) {
        assert!(start.elapsed() < Duration::from_secs(8), "process {pid} is running");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn exit_code_and_last_stderr_lines_are_reported() {
    let mut link = run("echo first >&2; echo '{\"a\":1}'; echo last >&2; exit 3");
    let (texts, end) = read_all(&mut link).await;
    assert_eq!(texts, ["{\"a\":1}"]);
    assert_eq!(end, exited(3, &["first", "last"]));
}

#[tokio::test]
async fn signals_are_reported_by_name() {
    let mut link = run("kill -SEGV $$");
    assert_eq!(read_all(&mut link).await.1, killed("SIGSEGV"));
}

#[tokio::test]
async fn the_last_twenty_lines_of_stderr_are_reported() {
    let mut link = run("i=0; while [ $i -lt 100 ]; do echo line $i >&2; i=$((i+1)); done; exit 1");
    let (_, end) = read_all(&mut link).await;
    let CloseReason::Exited { stderr_tail, .. } = end else { panic!("{end:?}") };
    assert_eq!((stderr_tail.len(), stderr_tail[19].as_str()), (20, "line 99"));
}

#[tokio::test]
async fn an_incomplete_last_line_is_read() {
    let mut link = run("printf '{\"a\":1}\\n{\"b\":'; exit 1");
    assert_eq!(read_all(&mut link).await.0, ["{\"a\":1}", "{\"b\":"]);
}

#[tokio::test]
async fn a_missing_program_is_reported() {
    let spec = AgentSpec { command: "no-such-agent-anywhere".into(), ..AgentSpec::default() };
    let Err(CloseReason::NotStarted { error, is_missing }) = start(spec) else { panic!("started") };
    assert!(is_missing);
    assert_eq!(error, "no-such-agent-anywhere not found on PATH. Install it, or set its absolute path.");
}

#[tokio::test]
async fn other_start_errors_are_distinguished() {
    let folder = tempfile::tempdir().unwrap();
    let plain = folder.path().join("plain");
    std::fs::write(&plain, "text").unwrap();
    let broken = folder.path().join("broken");
    std::fs::write(&broken, "#!/no/such/shell\n").unwrap();
    fixtures::set_mode(&broken, 0o755);
    for (command, cwd, part) in [
        (plain.as_path(), None, "chmod +x"),
        (&broken, None, "interpreter"),
        (&broken, Some(folder.path().join("gone")), "does not exist"),
    ] {
        let spec = AgentSpec { command: command.display().to_string(), cwd, ..AgentSpec::default() };
        let Err(CloseReason::NotStarted { error, is_missing }) = start(spec) else { panic!("started") };
        assert!(!is_missing && error.contains(part), "{error}");
    }
}

#[tokio::test]
async fn folder_variables_and_path_are_taken_from_the_spec() {
    let folder = tempfile::tempdir().unwrap();
    let real = folder.path().canonicalize().unwrap();
    let program = real.join("my-agent");
    std::fs::write(&program, "#!/bin/sh\nprintf '{\"%s\":\"%s\"}\\n' \"$NAME\" \"$PWD\"\n").unwrap();
    fixtures::set_mode(&program, 0o755);
    let spec = AgentSpec {
        command: "my-agent".into(),
        env: vec![("NAME".into(), "value".into()), ("PATH".into(), real.display().to_string())],
        cwd: Some(real.clone()),
        ..AgentSpec::default()
    };
    let mut link = start(spec).expect("found in its own PATH");
    assert_eq!(read_all(&mut link).await.0, [format!("{{\"value\":\"{}\"}}", real.display())]);
}

#[tokio::test]
async fn frames_are_written_as_lines_and_closing_the_queue_closes_stdin() {
    let link = run("cat; echo done");
    link.outgoing.send(Bytes::from_static(b"{\"a\":1}"));
    link.outgoing.send(Bytes::from_static(b"{\"b\":2}"));
    let Link { mut incoming, outgoing, stopper, .. } = link;
    drop(outgoing);
    let mut texts = Vec::new();
    while let Some(In::Pieces(pieces)) = incoming.recv().await {
        texts.extend(pieces.iter().map(|piece| format!("{piece:?}").contains("done")));
    }
    assert_eq!(texts, [false, false, true]);
    drop(stopper);
}

#[tokio::test]
async fn headers_are_written_to_agents_that_send_them() {
    let mut link = run("printf 'Content-Length: 2\\r\\n\\r\\n{}'; head -c 28; exit 0");
    let first = link.incoming.recv().await.expect("a frame");
    assert!(matches!(&first, In::Pieces(pieces) if pieces.len() == 1), "{first:?}");
    link.outgoing.send(Bytes::from_static(b"{\"a\":1}"));
    let (texts, _) = read_all(&mut link).await;
    assert_eq!(texts, ["{\"a\":1}"], "the echo has its header");
}

#[tokio::test]
async fn configured_headers_are_written_from_the_first_message() {
    let mut spec = script("head -c 28; exit 0");
    spec.wire.has_headers = true;
    let mut link = start(spec).expect("the shell starts");
    link.outgoing.send(Bytes::from_static(b"{\"a\":1}"));
    let (texts, _) = read_all(&mut link).await;
    assert_eq!(texts, ["{\"a\":1}"], "the echo has its header");
}

#[tokio::test]
async fn an_agent_ends_when_stdin_is_closed() {
    let mut link = run("cat >/dev/null; echo '{\"bye\":1}'; exit 0");
    let began = Instant::now();
    link.stopper.stop(false);
    let outgoing = Link::new().0.outgoing;
    drop(std::mem::replace(&mut link.outgoing, outgoing));
    let (texts, end) = read_all(&mut link).await;
    assert_eq!((texts, end), (vec!["{\"bye\":1}".to_owned()], exited(0, &[])));
    assert!(began.elapsed() < Duration::from_secs(2));
}

#[tokio::test]
async fn term_follows_two_seconds_after_stdin_was_closed() {
    let mut link = run("exec 2>/dev/null; trap 'exit 7' TERM; while :; do sleep 0.1; done");
    let began = Instant::now();
    link.stopper.stop(false);
    assert_eq!(read_all(&mut link).await.1, exited(7, &[]));
    assert!((1900..4500).contains(&began.elapsed().as_millis()), "{:?}", began.elapsed());
}

#[tokio::test]
async fn kill_follows_when_term_is_ignored() {
    let mut link = run("trap '' TERM; echo \"{$$}\"; while :; do sleep 0.1; done");
    let began = Instant::now();
    link.stopper.stop(false);
    let (_, end) = read_all(&mut link).await;
    assert_eq!(end, killed("SIGKILL"));
    assert!((4800..9000).contains(&began.elapsed().as_millis()), "{:?}", began.elapsed());
}

#[tokio::test]
async fn force_kills_immediately_also_during_a_graceful_stop() {
    let mut link = run("trap '' TERM; sleep 100 & echo \"$!\"; wait; sleep 100");
    let Some(In::Pieces(pieces)) = link.incoming.recv().await else { panic!("no line") };
    let [InboundFrame::Noise(child)] = &pieces[..] else { panic!("{pieces:?}") };
    let child = String::from_utf8_lossy(child).into_owned();
    let began = Instant::now();
    link.stopper.stop(false);
    tokio::time::sleep(Duration::from_millis(50)).await;
    link.stopper.stop(true);
    assert_eq!(read_all(&mut link).await.1, killed("SIGKILL"));
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
    assert_gone(&child).await;
}

#[tokio::test]
async fn a_grandchild_that_holds_the_pipe_is_stopped_after_two_seconds() {
    let mut link = run("sleep 100 & echo \"$!\"; exit 5");
    let began = Instant::now();
    let (texts, end) = read_all(&mut link).await;
    assert_eq!(end, exited(5, &[]));
    assert!((1900..4000).contains(&began.elapsed().as_millis()), "{:?}", began.elapsed());
    assert_gone(&texts[0]).await;
}

#[tokio::test]
async fn an_agent_that_closes_stdout_is_stopped() {
    let mut link = run("echo \"$$\"; exec >&-; sleep 100");
    let began = Instant::now();
    let (texts, end) = read_all(&mut link).await;
    assert_eq!(end, CloseReason::Lost { error: "The agent closed its output.".to_owned() });
    assert!((1900..4000).contains(&began.elapsed().as_millis()), "{:?}", began.elapsed());
    assert_gone(&texts[0]).await;
}

#[test]
fn no_process_outlives_the_runtime() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let (pids, link) = runtime.block_on(async {
        let mut link = run("trap '' TERM; sleep 100 & echo \"$$ $!\"; wait");
        let Some(In::Pieces(pieces)) = link.incoming.recv().await else { panic!("no line") };
        let [InboundFrame::Noise(pids)] = &pieces[..] else { panic!("{pieces:?}") };
        (String::from_utf8_lossy(pids).into_owned(), link)
    });
    drop(runtime);
    drop(link);
    let start = Instant::now();
    while pids.split(' ').any(is_alive) {
        assert!(start.elapsed() < Duration::from_secs(3), "{pids} are running");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[tokio::test]
async fn an_agent_that_never_reads_stdin_can_be_stopped() {
    let mut link = run("exec 2>/dev/null; trap 'exit 0' TERM; while :; do echo '{}'; sleep 0.05; done");
    for _ in 0..50 {
        link.outgoing.send(Bytes::from(vec![b'x'; 100_000]));
    }
    assert!(matches!(link.incoming.recv().await, Some(In::Pieces(_))));
    assert!(matches!(link.incoming.recv().await, Some(In::Pieces(_))));
    link.stopper.stop(false);
    assert_eq!(read_all(&mut link).await.1, exited(0, &[]));
}

#[tokio::test]
async fn lines_of_fifty_mebibytes_are_read() {
    let mut link = run("head -c 52428800 /dev/zero | tr '\\0' x | sed 's/^/{/'; echo; echo '{\"a\":1}'");
    let (texts, _) = read_all(&mut link).await;
    assert_eq!((texts[0].len(), texts[1].as_str()), (52_428_801, "{\"a\":1}"));
}

#[tokio::test]
async fn lines_over_the_limit_are_skipped() {
    let spec = script("head -c 3000000 /dev/zero | tr '\\0' x; echo; echo '{\"a\":1}'");
    let setup = Setup { max_frame_bytes: 1 << 20, ..setup() };
    let mut link = Box::new(Stdio::new(spec, PathBuf::from("/"))).start(setup).expect("it starts");
    assert_eq!(read_all(&mut link).await.0, ["oversize 3000000", "{\"a\":1}"]);
}

#[tokio::test]
async fn stderr_is_written_to_the_tap_and_to_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("logs/new/stderr.log");
    let tap = Tap::default();
    let setup = Setup { tap: tap.clone(), stderr_log: Some(log.clone()), ..setup() };
    let stdio = Stdio::new(script("printf 'one\\ntw' >&2; printf 'o\\n' >&2"), PathBuf::from("/"));
    let mut link = Box::new(stdio).start(setup).expect("it starts");
    read_all(&mut link).await;
    assert_eq!(std::fs::read_to_string(&log).unwrap(), "one\ntwo\n");
    let mode = |path: &std::path::Path| fixtures::mode(path);
    assert_eq!((mode(&log), mode(log.parent().unwrap())), (0o600, 0o700));
    let lines = tap.snapshot(None, usize::MAX);
    let lines: Vec<_> = lines.iter().map(|line| (line.direction, line.text.as_str())).collect();
    assert_eq!(lines, [(Direction::Stderr, "one"), (Direction::Stderr, "two")]);
}

#[tokio::test]
async fn the_log_of_stderr_is_safe_to_print() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("logs/stderr.log");
    let setup = Setup { stderr_log: Some(log.clone()), ..setup() };
    let line = r"printf 'a\033]52;c;x\007\302\235b\342\200\256\377\nGr\303\274\303\237e' >&2";
    let stdio = Stdio::new(script(line), PathBuf::from("/"));
    read_all(&mut Box::new(stdio).start(setup).expect("it starts")).await;
    let text = std::fs::read_to_string(&log).unwrap();
    assert_eq!(text, "a\\u{1b}]52;c;x\\u{7}\\u{9d}b\\u{202e}\u{fffd}\nGrüße");
}

#[tokio::test]
async fn a_flood_of_stderr_does_not_block_the_agent() {
    let mut link = run("head -c 3000000 /dev/zero | tr '\\0' '\\n' >&2; echo '{\"a\":1}'");
    assert_eq!(read_all(&mut link).await.0, ["{\"a\":1}"]);
}
