//! Starts a command in a pseudo terminal.
//!
//! The command gets its own session without a controlling terminal, so that it cannot ask the user for a password;
//! an empty standard input; standard output and error on the terminal, opened write-only, so that a pager or editor
//! that reads keys from it fails instead of waiting forever. A line of `/bin/sh` sets this up and executes the
//! command.
//!
//! If the user has allowed input, the command has an ordinary terminal instead, which the user can type into.

use std::fmt;
use std::io::{PipeWriter, Write};
use std::path::{Path, PathBuf};

use portable_pty::{MasterPty, PtySize, native_pty_system};

use super::output::Output;
use crate::host::os::process::ProcessId;
use crate::host::os::pty;
use crate::host::os::shell::{PLAIN_SHELL, POSIX_SHELLS};
use crate::model::{Sandbox, TerminalCommand, TerminalSize};
use crate::program::{Start, StartedBy};

/// Set before the agent's own variables: no pager, no prompt, and colours.
const ENV: &[(&str, &str)] =
    &[("PAGER", "cat"), ("GIT_PAGER", "cat"), ("GIT_TERMINAL_PROMPT", "0"), ("TERM", "xterm-256color")];

/// A running command.
pub(super) struct Running {
    /// The leader of its process group and session; not reaped.
    pub(super) leader: ProcessId,
    pub(super) output: Output,
    /// Stops the reader of the output when it is dropped.
    pub(super) reading: PipeWriter,
    /// The terminal's input, if the command may read it.
    pub(super) input: Option<Box<dyn Write + Send>>,
    pub(super) terminal: Box<dyn MasterPty + Send>,
}

pub(super) fn pty_size(size: TerminalSize) -> PtySize {
    PtySize { rows: size.rows, cols: size.cols, ..PtySize::default() }
}

/// Why a command could not be started; `Display` is a full sentence.
#[derive(Debug)]
pub(super) enum StartError {
    NoProgram(String),
    /// The folder does not exist or is not a folder.
    NoFolder(PathBuf),
    /// An error of the system.
    System(String),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoProgram(name) if name.is_empty() => f.write_str("The command is empty."),
            Self::NoProgram(name) => {
                write!(f, "Program {name} not found. Check its name and PATH.")
            }
            Self::NoFolder(path) => {
                write!(f, "The folder {} does not exist.", path.display())
            }
            Self::System(error) => write!(f, "Could not start the command: {error}."),
        }
    }
}

pub(super) fn line_for_people(command: &TerminalCommand) -> String {
    if command.args.is_empty() {
        return command.command.clone();
    }
    shell_words::join(std::iter::once(&command.command).chain(&command.args))
}

pub(super) fn start(
    command: &TerminalCommand,
    has_input: bool,
    size: TerminalSize,
    sandbox: Option<&Sandbox>,
) -> Result<Running, StartError> {
    let system = |error: &dyn fmt::Display| StartError::System(error.to_string());
    let folder = match &command.cwd {
        Some(folder) => folder.clone(),
        None => std::env::current_dir().map_err(|error| system(&error))?,
    };
    if !folder.is_dir() {
        return Err(StartError::NoFolder(folder));
    }
    let start = find(command, &folder)?.tied_to_this_run().sandboxed(sandbox);

    let pair = native_pty_system().openpty(pty_size(size)).map_err(|error| system(&error))?;
    let write_only = || pair.master.tty_name().filter(|name| pty::make_write_only(name));
    let builder = if has_input {
        start.in_shell_line("exec \"$@\"", PLAIN_SHELL.as_ref(), ENV, true)
    } else if let Some(name) = write_only() {
        start.in_shell_line("exec \"$@\" </dev/null >\"$0\" 2>&1", name.as_os_str(), ENV, false)
    } else {
        start.in_shell_line("exec \"$@\" </dev/null", PLAIN_SHELL.as_ref(), ENV, false)
    };
    let input = if has_input { pair.master.take_writer().ok() } else { None };
    let (output, reading) = Output::of(&*pair.master).map_err(|error| system(&error))?;
    let child = pair.slave.spawn_command(builder).map_err(|error| system(&error))?;
    let leader = child.process_id().and_then(ProcessId::of);
    let leader = leader.ok_or_else(|| StartError::System("no process id".to_owned()))?;
    // The slave is closed here, so that only the command holds it and reading ends with it.
    Ok(Running { leader, output, reading, input, terminal: pair.master })
}

/// Finds the program, or the shell of a command line. A line is never the name of a program: `cat notes/a.txt` would
/// run a file of the folder `cat notes`.
fn find(command: &TerminalCommand, folder: &Path) -> Result<Start, StartError> {
    let find = |name: &str| {
        Start::find(StartedBy::Agent, name, Some(folder), &command.env)
            .map_err(|_| StartError::NoProgram(command.command.trim().to_owned()))
    };
    if command.args.is_empty() && is_shell_line(&command.command) {
        return Ok(find(&shell())?.args(["-c", command.command.as_str()]));
    }
    Ok(find(&command.command)?.args(&command.args))
}

fn is_shell_line(command: &str) -> bool {
    let is_special = |c: char| c.is_whitespace() || "|&;<>()$`\"'*?{}~=".contains(c);
    !command.trim().is_empty() && command.contains(is_special)
}

/// The user's shell, if it has the expected syntax.
fn shell() -> String {
    std::env::var("SHELL")
        .ok()
        .filter(|shell| {
            let path = Path::new(shell);
            let name = path.file_name().and_then(|name| name.to_str());
            path.is_absolute() && path.is_file() && name.is_some_and(|name| POSIX_SHELLS.contains(&name))
        })
        .unwrap_or_else(|| PLAIN_SHELL.to_owned())
}

/// The shell that the user has chosen, of any kind; empty if there is none.
pub(super) fn user_shell() -> PathBuf {
    std::env::var_os("SHELL").unwrap_or_default().into()
}
