//! Runs git in the private repository, with a time limit and without anything of the user's or folder's configuration.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read, Write as _};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use super::{Options, SnapshotError};
use crate::host::os::files;
use crate::host::os::process::{self, Ending, ProcessId};
use crate::program::{self, EnvChanges, Start, StartedBy};

/// Maximum size of an output, which is one of git's lists or a group of files.
const MAX_OUTPUT_BYTES: u64 = 512 << 20;

/// What git printed, and its exit code.
#[derive(Debug)]
pub(in crate::host) struct Output {
    pub code: Option<i32>,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
}

impl Output {
    pub(in crate::host) fn error(&self, doing: &str) -> SnapshotError {
        let text = String::from_utf8_lossy(&self.stderr);
        let text = text.lines().find(|line| !line.trim().is_empty()).unwrap_or("no message");
        let code = self.code.map_or("ended by a signal".to_owned(), |code| format!("exit code {code}"));
        SnapshotError::Failed(format!("Cannot {doing}: git failed: {text} ({code})"))
    }
}

/// git with the variables of a repository, and the time at which it is ended.
#[derive(Debug, Clone)]
pub(in crate::host) struct Git {
    start: Start,
    max_time: Duration,
    until: Instant,
}

impl Git {
    /// Prepares git to run in a folder without using the repository there.
    pub(super) fn find(folder: &Path, options: &Options) -> Result<Self, SnapshotError> {
        let git = Self::in_repository(folder, options.home.as_deref(), options.limits.max_time)?;
        Ok(git.with([("GIT_DIR", files::NULL_DEVICE)]))
    }

    /// Prepares git to run in the repository of a folder, with the configuration of the user and of the repository.
    pub(in crate::host) fn in_repository(
        folder: &Path,
        home: Option<&Path>,
        max_time: Duration,
    ) -> Result<Self, SnapshotError> {
        let missing = "This needs git, which was not found. Install it";
        let start = Start::find(StartedBy::Parlor, "git", Some(folder), &[])
            .map_err(|_| SnapshotError::Refused(missing.to_owned()))?
            .without_variables("GIT_")
            .args(["--no-pager"]);
        let git = Self { start, max_time, until: Instant::now() + max_time };
        Ok(git.with(home.iter().map(|home| ("HOME", home))).with([
            ("GIT_OPTIONAL_LOCKS", "0"),
            ("GIT_TERMINAL_PROMPT", "0"),
            ("GIT_NO_LAZY_FETCH", "1"),
            ("GIT_ALLOW_PROTOCOL", "none"),
            ("LC_ALL", "C"),
            ("LANGUAGE", ""),
        ]))
    }

    /// git in the private repository, with the user's patterns of ignored files.
    pub(super) fn in_own(&self, git_dir: &Path, patterns: Option<OsString>) -> Self {
        let git = self.with([("GIT_DIR", git_dir)]).with([
            ("GIT_CONFIG_NOSYSTEM", "1"),
            ("GIT_CONFIG_GLOBAL", files::NULL_DEVICE),
            ("GIT_ATTR_NOSYSTEM", "1"),
            ("GIT_LITERAL_PATHSPECS", "1"),
            ("GIT_NO_REPLACE_OBJECTS", "1"),
        ]);
        let Some(patterns) = patterns else { return git };
        git.with([("GIT_CONFIG_COUNT", "1"), ("GIT_CONFIG_KEY_0", "core.excludesFile")])
            .with([("GIT_CONFIG_VALUE_0", patterns)])
    }

    /// Sets configuration values that take precedence over all files.
    pub(in crate::host) fn configured(&self, values: &[(String, String)]) -> Self {
        let mut changes =
            EnvChanges::from([("GIT_CONFIG_COUNT".into(), Some(values.len().to_string().into()))]);
        for (index, (name, value)) in values.iter().enumerate() {
            changes.insert(format!("GIT_CONFIG_KEY_{index}").into(), Some(name.into()));
            changes.insert(format!("GIT_CONFIG_VALUE_{index}").into(), Some(value.into()));
        }
        Self { start: self.start.clone().with_changes(&changes), ..*self }
    }

    pub(super) fn with<V: AsRef<OsStr>>(
        &self,
        variables: impl IntoIterator<Item = (&'static str, V)>,
    ) -> Self {
        let change = |(name, value): (_, V)| (OsString::from(name), Some(value.as_ref().to_owned()));
        let changes: EnvChanges = variables.into_iter().map(change).collect();
        Self { start: self.start.clone().with_changes(&changes), ..*self }
    }

    /// Restarts the time limit, with another limit if one is given.
    pub(in crate::host) fn renewed(&self, max_time: Option<Duration>) -> Self {
        let max_time = max_time.unwrap_or(self.max_time);
        Self { start: self.start.clone(), max_time, until: Instant::now() + max_time }
    }

    /// An error: it could not be started or took too long. Its exit code is in the output.
    pub(in crate::host) fn run<A: AsRef<OsStr>>(
        &self,
        args: impl IntoIterator<Item = A>,
        input: Vec<u8>,
    ) -> Result<Output, SnapshotError> {
        let failed = |error: io::Error| SnapshotError::Failed(format!("Cannot run git: {error}"));
        let mut command = self.start.clone().args(args).command();
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = program::spawn(&mut command).map_err(failed)?;
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        // Separate threads, because git writes before it has read everything.
        thread::spawn(move || stdin.map(|mut stdin| stdin.write_all(&input)));
        let (sender, received) = mpsc::channel();
        thread::spawn(move || {
            let messages = thread::spawn(move || read(stderr));
            let stdout = read(stdout);
            sender.send((stdout, messages.join().unwrap_or_else(|_| Ok(Vec::new()))))
        });
        let Ok((stdout, stderr)) =
            received.recv_timeout(self.until.saturating_duration_since(Instant::now()))
        else {
            if let Some(group) = ProcessId::of(child.id()) {
                process::end_group(group, Ending::Kill);
            }
            let _ = child.wait();
            return Err(SnapshotError::TimedOut { seconds: self.max_time.as_secs() });
        };
        let code = process::exit_info(child.wait().map_err(failed)?).code;
        let (stdout, stderr) = (stdout.map_err(failed)?, stderr.map_err(failed)?);
        if stdout.len() as u64 > MAX_OUTPUT_BYTES {
            return Err(failed(io::Error::other("its output is too long")));
        }
        Ok(Output { code, stdout, stderr })
    }

    /// Runs git and returns its output. Each message is an error: a warning can mean that a list is incomplete.
    pub(in crate::host) fn read<A: AsRef<OsStr>>(
        &self,
        doing: &str,
        args: impl IntoIterator<Item = A>,
        input: Vec<u8>,
    ) -> Result<Vec<u8>, SnapshotError> {
        let output = self.run(args, input)?;
        let is_ok = output.code == Some(0) && output.stderr.is_empty();
        if is_ok { Ok(output.stdout) } else { Err(output.error(doing)) }
    }

    /// The same for an output of one line.
    pub(in crate::host) fn line<A: AsRef<OsStr>>(
        &self,
        doing: &str,
        args: impl IntoIterator<Item = A>,
        input: Vec<u8>,
    ) -> Result<String, SnapshotError> {
        Ok(String::from_utf8_lossy(&self.read(doing, args, input)?).trim_end_matches('\n').to_owned())
    }
}

/// Reads to the end, so that the writer is not interrupted, and returns the beginning.
fn read(from: Option<impl Read>) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let Some(mut from) = from else { return Ok(bytes) };
    from.by_ref().take(MAX_OUTPUT_BYTES + 1).read_to_end(&mut bytes)?;
    io::copy(&mut from, &mut io::sink())?;
    Ok(bytes)
}

/// The parts of an output that ends each of them with a NUL.
pub(in crate::host) fn split(output: &[u8]) -> impl Iterator<Item = &[u8]> {
    output.split(|byte| *byte == 0).filter(|part| !part.is_empty())
}

/// The paths in such an output.
pub(in crate::host) fn paths(output: &[u8]) -> impl Iterator<Item = PathBuf> {
    split(output).map(path_of)
}

pub(in crate::host) fn path_of(bytes: &[u8]) -> PathBuf {
    PathBuf::from(files::from_bytes(bytes))
}

/// Items as lines of input for git.
pub(super) fn lines(items: impl IntoIterator<Item = impl AsRef<str>>) -> Vec<u8> {
    items.into_iter().flat_map(|item| [item.as_ref().as_bytes(), b"\n"].concat()).collect()
}
