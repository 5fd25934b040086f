//! Runs a helper program with bounded input, output and time.
//!
//! A helper that takes too long is killed with its child processes.

use std::io::{self, Read, Write};
use std::path::Path;
use std::process::Stdio;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use super::os::process::{self, Ending, Living, ProcessId};
use crate::program::{self, Start, StartedBy};

const MAX_TIME: Duration = Duration::from_secs(2);

/// Maximum size of the output in bytes; the rest is discarded.
const MAX_OUTPUT_BYTES: u64 = 1 << 20;

/// Runs a program and returns its output. Fails if it cannot be started, exits with an error, or takes longer than two
/// seconds.
pub(super) fn read_output(program: &str, args: &[&str], folder: Option<&Path>) -> io::Result<Vec<u8>> {
    read_start(&Start::find(StartedBy::Parlor, program, folder, &[])?.args(args), MAX_TIME)
}

pub(super) fn read_start(start: &Start, max_time: Duration) -> io::Result<Vec<u8>> {
    let program = start.command_line().next().unwrap_or_default().to_string_lossy().into_owned();
    let mut command = start.command();
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = program::spawn(&mut command)?;
    let group = ProcessId::of(child.id());
    let stdout = child.stdout.take();

    let (sender, output) = mpsc::channel();
    thread::Builder::new().name("helper output".to_owned()).spawn(move || {
        let _ = sender.send(stdout.map_or(Ok(Vec::new()), read_bounded));
    })?;
    let deadline = Instant::now() + max_time;
    let output = output.recv_timeout(max_time);
    while output.is_ok() && child.try_wait()?.is_none() && Instant::now() < deadline {
        thread::sleep(Duration::from_millis(1));
    }
    if let Some(status) = child.try_wait()?
        && let Ok(output) = output
    {
        if status.success() {
            return output;
        }
        return Err(io::Error::other(format!("{program} ended with {status}")));
    }
    // The group id cannot be reused while the child is not reaped.
    if child.try_wait()?.is_none()
        && let Some(group) = group
    {
        process::end_group(group, Ending::Kill);
    }
    child.wait()?;
    Err(io::Error::new(io::ErrorKind::TimedOut, format!("{program} took too long")))
}

/// The running processes of a session except its leader.
pub fn session_members(session: ProcessId) -> Vec<ProcessId> {
    let of_session = |living: Vec<Living>| {
        let members = living.into_iter().filter(|process| process.session == Some(session));
        members.map(|process| process.id).collect()
    };
    let members: Vec<ProcessId> = process::living().map_or_else(|| members_by_ps(session), of_session);
    members.into_iter().filter(|process| *process != session).collect()
}

/// The same on systems without `/proc`.
fn members_by_ps(session: ProcessId) -> Vec<ProcessId> {
    let listed = read_output("ps", &["-A", "-o", "pid=,state="], None).unwrap_or_default();
    String::from_utf8_lossy(&listed)
        .lines()
        .filter_map(|line| line.trim().split_once(' '))
        .filter(|(_, state)| !state.trim_start().starts_with('Z'))
        .filter_map(|(id, _)| id.parse().ok().and_then(ProcessId::of))
        .filter(|process| process::is_of_session(*process, session))
        .collect()
}

/// Writes bytes to the stdin of a program. Fails if it cannot be started, exits with an error, or takes longer than two
/// seconds. Its output is discarded; child processes that it leaves running are not stopped.
pub(super) fn feed(program: &str, args: &[&str], input: &[u8]) -> io::Result<()> {
    let mut command = Start::find(StartedBy::Parlor, program, None, &[])?.args(args).command();
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = program::spawn(&mut command)?;
    let stdin = child.stdin.take();
    let input = input.to_vec();
    // A separate thread, because a program may not read; its exit breaks the pipe.
    thread::Builder::new().name("helper input".to_owned()).spawn(move || {
        if let Some(mut stdin) = stdin {
            let _ = stdin.write_all(&input);
        }
    })?;
    let deadline = Instant::now() + MAX_TIME;
    loop {
        if let Some(status) = child.try_wait()? {
            let failed = || io::Error::other(format!("{program} ended with {status}"));
            return if status.success() { Ok(()) } else { Err(failed()) };
        }
        if Instant::now() >= deadline {
            break;
        }
        thread::sleep(Duration::from_millis(1));
    }
    if let Some(group) = ProcessId::of(child.id()) {
        process::end_group(group, Ending::Kill);
    }
    child.wait()?;
    Err(io::Error::new(io::ErrorKind::TimedOut, format!("{program} took too long")))
}

/// Reads to the end, so that the writer is not interrupted, and returns the beginning.
fn read_bounded(mut from: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.by_ref().take(MAX_OUTPUT_BYTES).read_to_end(&mut bytes)?;
    io::copy(&mut from, &mut io::sink())?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn input_is_written_and_errors_are_reported() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let script = format!("cat > '{}'", file.path().display());
        feed("sh", &["-c", &script], b"some text").unwrap();
        assert_eq!(std::fs::read(file.path()).unwrap(), b"some text");
        assert!(feed("sh", &["-c", "exit 3"], b"text").is_err());
        assert_eq!(feed("no-such-helper", &[], b"").unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
