//! Runs git in the private repository, with a time limit and without anything of the user's or folder's configuration.

use std::ffi::{OsStr, OsString};
use std::fmt::{self, Write as _};
use std::io::{self, Read, Write as _};
use std::path::Path;
use std::process::Stdio;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use super::error::SnapshotError;
use crate::host::os::files::{self, NULL_DEVICE};
use crate::host::os::process::{self, Ending, ProcessId};
use crate::program::{self, EnvChanges, Start, StartedBy};

/// Maximum size of an output, which is one of git's lists or a group of files.
const MAX_OUTPUT_BYTES: u64 = 512 << 20;

/// Maximum size of the messages of git.
const MAX_MESSAGE_BYTES: u64 = 256 << 10;

/// When a run of git is ended.
#[derive(Debug, Clone, Copy)]
pub(super) struct Deadline {
    at: Instant,
    limit: Duration,
}

impl Deadline {
    pub(super) fn after(limit: Duration) -> Self {
        Self { at: Instant::now() + limit, limit }
    }

    fn error(self) -> SnapshotError {
        SnapshotError::TimedOut { seconds: self.limit.as_secs() }
    }

    pub(super) fn check(self) -> Result<(), SnapshotError> {
        if Instant::now() < self.at { Ok(()) } else { Err(self.error()) }
    }
}

/// What git printed, and its exit code.
#[derive(Debug)]
pub(super) struct Output {
    pub code: Option<i32>,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
}

impl Output {
    /// The output if git succeeded without a message. A warning can mean that a list is incomplete.
    pub(super) fn ok(self, doing: &'static str) -> Result<Vec<u8>, SnapshotError> {
        if self.code == Some(0) && self.stderr.is_empty() { Ok(self.stdout) } else { Err(self.error(doing)) }
    }

    pub(super) fn error(&self, doing: &'static str) -> SnapshotError {
        let text = String::from_utf8_lossy(&self.stderr);
        let text = text.lines().find(|line| !line.trim().is_empty()).unwrap_or("no message");
        let message = match self.code {
            Some(0) => text.to_owned(),
            Some(code) => format!("{text} (exit code {code})"),
            None => format!("{text} (ended by a signal)"),
        };
        SnapshotError::Git { doing, message }
    }

    /// The output as a line of text.
    pub(super) fn line(stdout: &[u8]) -> String {
        String::from_utf8_lossy(stdout).trim_end_matches('\n').to_owned()
    }
}

/// git with the variables of one repository.
#[derive(Debug, Clone)]
pub(super) struct Git {
    start: Start,
}

impl Git {
    /// git as the user runs it in a folder, for questions about the user's repository. It changes nothing.
    pub(super) fn of_user(folder: &Path) -> Result<Self, SnapshotError> {
        let start = Start::find(StartedBy::Parlor, "git", Some(folder), &[]);
        let start = start.map_err(|_| SnapshotError::NoGit)?.without_variables("GIT_");
        let common = [("GIT_OPTIONAL_LOCKS", "0"), ("GIT_TERMINAL_PROMPT", "0"), ("GIT_NO_LAZY_FETCH", "1")];
        let git = Self { start }.with(common).with([("LC_ALL", "C"), ("LANGUAGE", "")]);
        let hooks = format!("core.hooksPath={NULL_DEVICE}");
        let options = ["--no-pager", "-c", "core.fsmonitor=false", "-c", &hooks];
        Ok(Self { start: git.start.args(options) })
    }

    /// git in the private repository.
    pub(super) fn of_own(folder: &Path, git_dir: &Path, work_tree: &Path) -> Result<Self, SnapshotError> {
        let private = [
            ("GIT_CONFIG_NOSYSTEM", "1"),
            ("GIT_CONFIG_GLOBAL", NULL_DEVICE),
            ("GIT_ATTR_NOSYSTEM", "1"),
            ("GIT_LITERAL_PATHSPECS", "1"),
            ("GIT_NO_REPLACE_OBJECTS", "1"),
        ];
        let own = [("GIT_DIR", git_dir), ("GIT_WORK_TREE", work_tree)];
        Ok(Self::of_user(folder)?.with(private).with(own))
    }

    pub(super) fn with<V: AsRef<OsStr>>(
        &self,
        variables: impl IntoIterator<Item = (&'static str, V)>,
    ) -> Self {
        let changes: EnvChanges = variables
            .into_iter()
            .map(|(name, value)| (OsString::from(name), Some(value.as_ref().to_owned())))
            .collect();
        Self { start: self.start.clone().with_changes(&changes) }
    }

    /// Runs git with this input. An error: it could not be started or took too long; its exit code is in the output.
    pub(super) fn run<A: AsRef<OsStr>>(
        &self,
        args: impl IntoIterator<Item = A>,
        input: Vec<u8>,
        deadline: Deadline,
    ) -> Result<Output, SnapshotError> {
        deadline.check()?;
        let failed = |error: io::Error| SnapshotError::Git { doing: "run git", message: error.to_string() };
        let mut command = self.start.clone().args(args).command();
        let stdin = if input.is_empty() { Stdio::null() } else { Stdio::piped() };
        command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = program::spawn(&mut command).map_err(failed)?;
        let group = ProcessId::of(child.id());
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        if let Some(mut stdin) = stdin {
            // A separate thread, because git writes before it has read everything.
            thread::spawn(move || stdin.write_all(&input));
        }
        let (sender, received) = mpsc::channel();
        let messages = thread::spawn(move || read(stderr, MAX_MESSAGE_BYTES));
        thread::spawn(move || sender.send(read(stdout, MAX_OUTPUT_BYTES)));
        let stdout = received.recv_timeout(deadline.at.saturating_duration_since(Instant::now()));
        while stdout.is_ok() && Instant::now() < deadline.at {
            if let Some(status) = child.try_wait().map_err(failed)? {
                let stderr = messages.join().unwrap_or_else(|_| Ok(Vec::new())).map_err(failed)?;
                let stdout = stdout.unwrap_or_else(|_| Ok(Vec::new())).map_err(failed)?;
                if stdout.len() as u64 > MAX_OUTPUT_BYTES {
                    let message = "the output is too long".to_owned();
                    return Err(SnapshotError::Git { doing: "read the output of git", message });
                }
                return Ok(Output { code: process::exit_info(status).code, stdout, stderr });
            }
            thread::sleep(Duration::from_micros(100));
        }
        if let Some(group) = group {
            process::end_group(group, Ending::Kill);
        }
        let _ = child.wait();
        Err(deadline.error())
    }

    /// Runs git and returns its output; each message of git is an error.
    pub(super) fn read<A: AsRef<OsStr>>(
        &self,
        doing: &'static str,
        args: impl IntoIterator<Item = A>,
        input: Vec<u8>,
        deadline: Deadline,
    ) -> Result<Vec<u8>, SnapshotError> {
        self.run(args, input, deadline)?.ok(doing)
    }
}

/// Reads to the end, so that the writer is not interrupted, and returns the beginning.
fn read(from: Option<impl Read>, max_bytes: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let Some(mut from) = from else { return Ok(bytes) };
    from.by_ref().take(max_bytes + 1).read_to_end(&mut bytes)?;
    io::copy(&mut from, &mut io::sink())?;
    Ok(bytes)
}

/// The parts of an output that ends each of them with a NUL.
pub(super) fn split(output: &[u8]) -> impl Iterator<Item = &[u8]> {
    output.split(|byte| *byte == 0).filter(|part| !part.is_empty())
}

/// Items as lines of input for git.
pub(super) fn lines(items: impl IntoIterator<Item = impl fmt::Display>) -> Vec<u8> {
    let mut input = String::new();
    for item in items {
        let _ = writeln!(input, "{item}");
    }
    input.into_bytes()
}

/// Paths as input of git.
pub(super) fn joined<'a>(paths: impl IntoIterator<Item = &'a Path>) -> Vec<u8> {
    let mut input = Vec::new();
    for path in paths {
        input.extend_from_slice(files::bytes(path.as_os_str()));
        input.push(0);
    }
    input
}
