//! Commands that the user types: run by the user's shell, with the folder and the environment that the session's
//! commands before left.
//!
//! A script around the command line reports its environment before and after the line, and the final folder, through
//! a second pseudo terminal. No file and no output ever contains a value.
//!
//! Invariant: only differences that a command made are applied, so that a command that ends late does not undo those
//! of others.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Write as _};
use std::path::{Path, PathBuf};
use std::thread::{self, JoinHandle};

use portable_pty::{PtySize, native_pty_system};

use super::output::Output;
use super::start::{Running, StartError, pty_size};
use crate::host::os::process::ProcessId;
use crate::host::os::shell::{PLAIN_SHELL, POSIX_SHELLS};
use crate::host::os::{files, pty};
use crate::model::TerminalSize;
use crate::program::{EnvChanges, Start, StartedBy};

/// Maximum size of a reported environment.
const MAX_REPORT_BYTES: usize = 4 << 20;

/// A pager would need a screen of its own; the transcript scrolls instead.
/// The emulator has no character set for lines.
const ENV: &[(&str, &str)] =
    &[("TERM", "xterm-256color"), ("PAGER", "cat"), ("GIT_PAGER", "cat"), ("NCURSES_NO_UTF8_ACS", "1")];

/// Follows the environment before the line, and the one after it. No variable looks like this, because it has no `=`.
const LIST_MARK: &[u8] = b"\x01";

/// Ends a report. It begins a new entry, because a stopped command may have written a part of one.
const END_MARK: &[u8] = b"\0\x04\0";

/// What the session's commands have left for the next one.
#[derive(Default)]
pub(super) struct ShellState {
    pub(super) folder: Option<PathBuf>,
    changes: EnvChanges,
}

// Values may be secrets.
impl std::fmt::Debug for ShellState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ShellState").field("folder", &self.folder).finish_non_exhaustive()
    }
}

impl ShellState {
    /// The folder of the next command: the last one if it still exists.
    pub(super) fn folder_or(&self, first: PathBuf) -> PathBuf {
        self.folder.clone().filter(|folder| folder.is_dir()).unwrap_or(first)
    }

    pub(super) fn apply(&mut self, left: Left, began_in: &Path) {
        if left.folder != began_in {
            self.folder = Some(left.folder);
        }
        self.changes.extend(left.changes);
    }
}

/// What a command has left.
pub(super) struct Left {
    pub(super) folder: PathBuf,
    changes: EnvChanges,
}

/// Receives the report of a command.
pub(super) struct Report {
    terminal: File,
    reader: JoinHandle<Vec<u8>>,
}

impl Report {
    /// Opens the way for a report; returns it with the name for the script.
    fn open() -> io::Result<(Self, PathBuf)> {
        let other = |error: &dyn std::fmt::Display| io::Error::other(error.to_string());
        let pair = native_pty_system().openpty(PtySize::default()).map_err(|error| other(&error))?;
        let name = pair.master.tty_name().ok_or_else(|| other(&"the terminal has no name"))?;
        let terminal = pty::open_raw(&name)?;
        let from = pair.master.try_clone_reader().map_err(|error| other(&error))?;
        let reader = thread::Builder::new().name("shell report".to_owned()).spawn(move || {
            // The terminal exists as long as its master is open.
            let _master = pair.master;
            read_report(from)
        })?;
        Ok((Self { terminal, reader }, name))
    }

    /// Returns what the command has left; to be called when the shell has ended.
    pub(super) fn finish(mut self) -> Option<Left> {
        self.terminal.write_all(END_MARK).ok()?;
        parse(&self.reader.join().ok()?)
    }
}

/// Reads until the mark of the end.
fn read_report(mut from: Box<dyn Read + Send>) -> Vec<u8> {
    let (mut report, mut tail) = (Vec::new(), Vec::new());
    let mut buffer = [0; 4096];
    loop {
        let len = match from.read(&mut buffer) {
            Ok(0) => return report,
            Ok(len) => len,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => return report,
        };
        let bytes = buffer.get(..len).unwrap_or_default();
        tail.extend_from_slice(bytes);
        let is_end = tail.ends_with(END_MARK);
        tail.drain(..tail.len().saturating_sub(END_MARK.len()));
        if report.len() < MAX_REPORT_BYTES || is_end {
            report.extend_from_slice(bytes);
        }
        if is_end {
            return report;
        }
    }
}

/// Parses the variables before the line, a mark, the folder, the variables after the line, and a mark. A report without
/// the second mark is incomplete: the variables that it lacks are not unset.
fn parse(report: &[u8]) -> Option<Left> {
    let report = report.strip_suffix(END_MARK)?;
    let mut entries = report.split(|byte| *byte == 0);
    let before: Vec<&[u8]> = entries.by_ref().take_while(|entry| *entry != LIST_MARK).collect();
    let folder = PathBuf::from(files::from_bytes(entries.next()?));
    let mut is_complete = false;
    let after = entries.take_while(|entry| {
        is_complete |= *entry == LIST_MARK;
        !is_complete
    });
    let (before, after) = (variables(before.into_iter()), variables(after));
    if !folder.is_absolute() || !is_complete {
        return None;
    }
    let mut changes = EnvChanges::new();
    // Without the list after the line, nothing is known.
    if !after.is_empty() {
        let removed = before.keys().filter(|name| !after.contains_key(*name));
        changes.extend(removed.map(|name| (name.clone(), None)));
        let changed = after.iter().filter(|(name, value)| before.get(*name) != Some(value));
        changes.extend(changed.map(|(name, value)| (name.clone(), Some(value.clone()))));
    }
    Some(Left { folder, changes })
}

fn variables<'a>(entries: impl Iterator<Item = &'a [u8]>) -> BTreeMap<OsString, OsString> {
    let own = |name: &[u8]| {
        matches!(name, b"_" | b"PWD" | b"SHLVL")
            || name.starts_with(b"PARLOR_")
            || name.starts_with(b"_parlor")
    };
    entries
        .filter_map(|entry| {
            let at = memchr::memchr(b'=', entry).filter(|at| *at > 0)?;
            Some((entry.get(..at)?, entry.get(at + 1..)?))
        })
        .filter(|(name, _)| !own(name))
        .map(|(name, value)| (files::from_bytes(name), files::from_bytes(value)))
        .collect()
}

/// Starts a command line in a folder. The report is missing if there is no way to get one.
pub(super) fn start(
    shell: &Path,
    line: &str,
    folder: &Path,
    size: TerminalSize,
    state: &EnvChanges,
) -> Result<(Running, Option<Report>), StartError> {
    let system = |error: &dyn std::fmt::Display| StartError::System(error.to_string());
    if !folder.is_dir() {
        return Err(StartError::NoFolder(folder.to_owned()));
    }
    let (shell, is_fish) = usable(shell);
    let (report, name) = Report::open().map(|(report, name)| (Some(report), name)).unwrap_or_default();
    let script = script(line, &name, is_fish);
    let found = Start::find(StartedBy::User, &shell, Some(folder), &[]);
    let start = found.map_err(|_| StartError::NoProgram(shell))?;
    let start = start.with_changes(state).args([OsStr::new("-c"), &script]).tied_to_this_run();
    let pty = native_pty_system().openpty(pty_size(size)).map_err(|error| system(&error))?;
    let builder = start.in_shell_line("exec \"$@\"", PLAIN_SHELL.as_ref(), ENV, true);
    let (output, reading) = Output::of(&*pty.master).map_err(|error| system(&error))?;
    let input = pty.master.take_writer().map_err(|error| system(&error))?;
    let child = pty.slave.spawn_command(builder).map_err(|error| system(&error))?;
    let leader = child.process_id().and_then(ProcessId::of);
    let leader = leader.ok_or_else(|| StartError::System("no process id".to_owned()))?;
    Ok((Running { leader, output, reading, input: Some(input), terminal: pty.master }, report))
}

impl ShellState {
    /// The changes of the environment for the next command.
    pub(super) fn changes(&self) -> EnvChanges {
        self.changes.clone()
    }
}

/// The user's shell if its syntax is known, otherwise `sh`; and whether it is fish.
fn usable(shell: &Path) -> (String, bool) {
    let name = shell.file_name().and_then(OsStr::to_str).unwrap_or_default();
    let path = shell.to_str().filter(|_| shell.is_absolute() && shell.is_file());
    match (path, name) {
        (Some(path), "fish") => (path.to_owned(), true),
        (Some(path), name) if POSIX_SHELLS.contains(&name) => (path.to_owned(), false),
        _ => (PLAIN_SHELL.to_owned(), false),
    }
}

/// The script around a line. The line is text of the script, so that here-documents and comments work.
fn script(line: &str, report: &Path, is_fish: bool) -> OsString {
    if report.as_os_str().is_empty() {
        return line.into();
    }
    let report = shell_words::quote(&report.to_string_lossy()).into_owned();
    if is_fish {
        // fish parses the entire script first, so that a syntax error of the line would hide its status.
        let line = line.replace('\\', "\\\\").replace('\'', "\\'");
        return format!(
            "function _parlor_left --on-event fish_exit; begin; printf '%s\\0' \"$PWD\"; command env -0; printf '\\001\\0'; \
             end >{report} 2>/dev/null; end; begin; command env -0; printf '\\001\\0'; end >{report} 2>/dev/null\n\
             eval '{line}'\n"
        )
        .into();
    }
    format!(
        "_parlor_left() {{ _parlor_status=$?; trap - EXIT; {{ printf '%s\\0' \"$PWD\"; command env -0; \
         printf '\\001\\0'; }} >{report} 2>/dev/null; exit \"$_parlor_status\"; }}; trap _parlor_left EXIT; \
         {{ command env -0; printf '\\001\\0'; }} >{report} 2>/dev/null\n{line}\n"
    )
    .into()
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use super::*;

    /// A stop may reach the script while it reports its environment.
    #[test]
    fn a_report_that_was_cut_off_ends() {
        for written in [&b""[..], b"A=1\0B=unfini", b"A=1\0\x01\0/tm"] {
            let (report, name) = Report::open().unwrap();
            File::options().write(true).open(name).unwrap().write_all(written).unwrap();
            let (ended, end) = channel();
            thread::spawn(move || ended.send(report.finish().is_none()));
            assert_eq!(end.recv_timeout(Duration::from_secs(20)), Ok(true), "{written:?}");
        }
    }

    #[test]
    fn an_incomplete_report_changes_nothing() {
        let left = |report: &[u8]| parse(&[report, END_MARK].concat());
        let complete = left(b"A=1\0B=2\0\x01\0/tmp\0A=1\0C=3\0\x01\0").unwrap();
        assert_eq!(complete.folder, Path::new("/tmp"));
        let changes = [("B", None), ("C", Some("3".into()))];
        assert_eq!(complete.changes, changes.map(|(name, value)| (name.into(), value)).into());
        for report in [&b"A=1\0B=2\0\x01\0/tmp\0A=1\0"[..], b"A=1\0B=2\0\x01\0/tm", b"A=1\0B=2\0"] {
            assert!(left(report).is_none(), "{report:?}");
        }
    }
}
