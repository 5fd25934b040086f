//! Starts programs; no other module does.
//!
//! Finds a program and builds its command as a plain process, a task, or in a pseudo terminal. Each start names its
//! requester ([`StartedBy`]), and starts that this requester is not allowed are rejected here. `core` decides
//! whether an agent may run a command.
//! Invariants: a bare name is looked up only in absolute folders of `PATH`, so that `.` or an empty entry never
//! selects a program of the opened folder, here or in child processes; a process without a terminal leads its own
//! process group; a sign-in command never changes which code its program runs.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{LazyLock, RwLock};

use crate::host::os::shell::{PLAIN_PATH, PLAIN_SHELL};
use crate::host::os::{process, sandbox, signals};
use crate::model::{SANDBOX_COMMAND, SANDBOX_SET, SANDBOX_UNSET, Sandbox, is_refused_variable};
use portable_pty::CommandBuilder;

/// Held shared while a process starts, and exclusively while parlor stops itself.
///
/// A child process that has not run its program yet is in parlor's process group. A stop signal to the group would stop it
/// there, and parlor, which waits for it in `vfork`, would never stop: the shell would not get the terminal back.
static STARTS: RwLock<()> = RwLock::new(());

/// Variable with the process id of parlor, for agents and their child processes.
pub const PARLOR_PID: &str = "PARLOR_PID";

/// Variable that marks processes of this run of parlor; its value is [`run_mark`].
pub const PARLOR_RUN: &str = "PARLOR_RUN";

/// Variable with the process id of the session leader of an agent's command.
pub const PARLOR_COMMAND: &str = "PARLOR_COMMAND";

/// The requester of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartedBy {
    /// parlor: a helper with a fixed name.
    Parlor,
    /// The user: configuration, command line or environment.
    User,
    /// A sign-in method that the user confirmed; the agent chose arguments and variables.
    SignIn,
    Agent,
}

/// Why a program was not started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// Program not found.
    NotFound(String),
    /// Helpers of parlor are looked up by name.
    NotAName(String),
    /// A sign-in command cannot set this variable.
    Variable(String),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound(name) => write!(f, "{name} not found"),
            Self::NotAName(name) => write!(f, "invalid program name {name}"),
            Self::Variable(name) => write!(f, "a sign-in command cannot set {name}"),
        }
    }
}

impl From<Refusal> for std::io::Error {
    fn from(refusal: Refusal) -> Self {
        let kind = match refusal {
            Refusal::NotFound(_) => std::io::ErrorKind::NotFound,
            Refusal::NotAName(_) | Refusal::Variable(_) => std::io::ErrorKind::PermissionDenied,
        };
        Self::new(kind, refusal.to_string())
    }
}

/// A program with its arguments and variables.
#[derive(Debug, Clone)]
pub struct Start {
    program: PathBuf,
    args: Vec<OsString>,
    env: Vec<(OsString, OsString)>,
    /// Variables of parlor that the program does not get.
    unset: Vec<OsString>,
    folder: Option<PathBuf>,
    is_in_terminal: bool,
    /// The arguments of the command that enters the sandbox.
    sandbox: Option<Vec<OsString>>,
}

/// Changes of an environment: a new value for each variable, or `None` if it is unset.
pub type EnvChanges = BTreeMap<OsString, Option<OsString>>;

impl Start {
    /// Finds `name`: a path is relative to `folder`, a bare name is looked up on the `PATH` of `env` or of parlor.
    /// `env` is added to the environment of the program.
    ///
    /// # Errors
    /// The program was not found, or `by` is not allowed to start it this way.
    pub fn find(
        by: StartedBy,
        name: &str,
        folder: Option<&Path>,
        env: &[(String, String)],
    ) -> Result<Self, Refusal> {
        if by == StartedBy::Parlor && !is_bare(name) && !Path::new(name).is_absolute() {
            return Err(Refusal::NotAName(name.to_owned()));
        }
        let own_path = env.iter().rev().find(|(name, _)| name == "PATH").map(|(_, path)| path.into());
        let path = own_path.or_else(|| std::env::var_os("PATH")).map(|path| absolute_entries(&path));
        let program = find_in(name, path.as_deref(), folder).ok_or(Refusal::NotFound(name.to_owned()))?;
        let folder = folder.map(Path::to_owned);
        let start = Self {
            program,
            args: Vec::new(),
            env: Vec::new(),
            unset: Vec::new(),
            folder,
            is_in_terminal: false,
            sandbox: None,
        };
        let mut start = start.with_variables(by, env)?;
        // An empty entry means the current folder of the program.
        let path = path.filter(|path| !path.is_empty()).unwrap_or_else(|| PLAIN_PATH.into());
        start.env.push(("PATH".into(), path));
        Ok(start)
    }

    /// Adds variables of `by`; those with an invalid name are ignored.
    ///
    /// # Errors
    /// `by` is not allowed to set one of them.
    pub fn with_variables(mut self, by: StartedBy, env: &[(String, String)]) -> Result<Self, Refusal> {
        for (name, value) in env.iter().filter(|(name, _)| !name.is_empty() && !name.contains(['=', '\0'])) {
            if by == StartedBy::SignIn && is_refused_variable(name) {
                return Err(Refusal::Variable(name.clone()));
            }
            self.env.push((name.into(), value.into()));
        }
        Ok(self)
    }

    /// Applies changes that the user made to the environment.
    #[must_use]
    pub fn with_changes(mut self, changes: &EnvChanges) -> Self {
        for (name, value) in changes {
            match value {
                Some(value) if name == "PATH" => self.env.push((name.clone(), absolute_entries(value))),
                Some(value) => self.env.push((name.clone(), value.clone())),
                None => self.unset.push(name.clone()),
            }
        }
        self
    }

    /// Removes the variables of parlor whose names start with this prefix, except those that are set here.
    #[must_use]
    pub fn without_variables(mut self, prefix: &str) -> Self {
        let names = std::env::vars_os().map(|(name, _)| name);
        self.unset.extend(names.filter(|name| name.as_encoded_bytes().starts_with(prefix.as_bytes())));
        self
    }

    #[must_use]
    pub fn args(mut self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Self {
        self.args.extend(args.into_iter().map(|arg| arg.as_ref().to_owned()));
        self
    }

    /// Keeps the program in parlor's process group, which owns the terminal.
    #[must_use]
    pub fn in_terminal(mut self) -> Self {
        self.is_in_terminal = true;
        self
    }

    /// Marks the program, so that the next run of parlor ends it after a crash ([`run_mark`]).
    #[must_use]
    pub fn tied_to_this_run(mut self) -> Self {
        self.env.push((PARLOR_PID.into(), std::process::id().to_string().into()));
        self.env.push((PARLOR_RUN.into(), run_mark().into()));
        self
    }

    /// Runs the program in a sandbox: parlor enters it and then becomes the program, with the same process id.
    #[must_use]
    pub fn sandboxed(mut self, sandbox: Option<&Sandbox>) -> Self {
        self.sandbox = sandbox.map(Sandbox::to_arguments);
        self
    }

    /// The program to start, and the arguments before its own: those that enter the sandbox, if there is one.
    fn outer(&self) -> (PathBuf, Vec<OsString>) {
        let Some(sandbox) = &self.sandbox else { return (self.program.clone(), Vec::new()) };
        let command = std::iter::once(SANDBOX_COMMAND.into()).chain(sandbox.iter().cloned());
        (sandbox::own_program(), command.chain(["--".into(), self.program.clone().into()]).collect())
    }

    /// The variables to set, and those to remove. Those of a sandboxed program are encoded, so that the process that
    /// enters the sandbox does not obey them.
    fn variables(&self) -> (Vec<(OsString, OsString)>, &[OsString]) {
        if self.sandbox.is_none() {
            return (self.env.clone(), &self.unset);
        }
        let encoded = |start: &str, name: &OsString| {
            let mut all = OsString::from(start);
            all.push(name);
            all
        };
        let unset = self.unset.iter().map(|name| (encoded(SANDBOX_UNSET, name), OsString::new()));
        let set = self.env.iter().map(|(name, value)| (encoded(SANDBOX_SET, name), value.clone()));
        (unset.chain(set).collect(), &[])
    }

    pub fn command_line(&self) -> impl Iterator<Item = &OsStr> {
        std::iter::once(self.program.as_os_str()).chain(self.args.iter().map(OsString::as_os_str))
    }

    #[expect(clippy::disallowed_methods, reason = "the one place that starts programs")]
    pub fn command(&self) -> Command {
        let ((program, first), (set, unset)) = (self.outer(), self.variables());
        let mut command = Command::new(program);
        for name in unset {
            command.env_remove(name);
        }
        command.args(first).args(&self.args).envs(set);
        if let Some(folder) = &self.folder {
            command.current_dir(folder);
        }
        if !self.is_in_terminal {
            process::in_own_group(&mut command);
        }
        command
    }

    pub fn task(&self) -> tokio::process::Command {
        self.command().into()
    }

    /// The command for a pseudo terminal that becomes its controlling terminal.
    ///
    /// # Errors
    /// It has no folder, and the current one is not accessible.
    #[expect(clippy::disallowed_methods, reason = "the one place that starts programs")]
    pub fn on_own_terminal(&self) -> std::io::Result<CommandBuilder> {
        let mut builder = CommandBuilder::new(&self.program);
        builder.args(&self.args);
        builder.cwd(self.folder.clone().map_or_else(std::env::current_dir, Ok)?);
        for (name, value) in &self.env {
            builder.env(name, value);
        }
        Ok(builder)
    }

    /// The command for a pseudo terminal, run by this line of a POSIX shell as `"$@"`, with `zero` as `$0`. `defaults`
    /// are set unless the start sets them. `has_input`: the terminal becomes its controlling terminal.
    #[expect(clippy::disallowed_methods, reason = "the one place that starts programs")]
    pub fn in_shell_line(
        &self,
        line: &str,
        zero: &OsStr,
        defaults: &[(&str, &str)],
        has_input: bool,
    ) -> CommandBuilder {
        let ((program, first), (set, unset)) = (self.outer(), self.variables());
        let mut builder = CommandBuilder::new(PLAIN_SHELL);
        let line = format!("export {PARLOR_COMMAND}=$$; {line}");
        builder.args([OsStr::new("-c"), OsStr::new(&line), zero]);
        // The shell, outside of a sandbox, opens the terminal, which cannot be found in it.
        builder.arg(program);
        builder.args(first.iter().chain(&self.args));
        builder.set_controlling_tty(has_input);
        if let Some(folder) = &self.folder {
            builder.cwd(folder);
        }
        for (name, value) in defaults {
            builder.env(name, value);
        }
        for (name, value) in set {
            builder.env(name, value);
        }
        for name in unset {
            builder.env_remove(name);
        }
        builder
    }
}

/// What a sandbox enforces here, as text for the user.
///
/// # Errors
/// The sandbox is required and incomplete; the text says why.
pub fn try_sandbox(wanted: &Sandbox) -> Result<String, String> {
    let mut arguments = wanted.to_arguments();
    arguments.push("--".into());
    run_sandbox_command(&[], &arguments)
}

/// Runs the command that enters a sandbox, by a tool if there is one; returns its output, or its error.
#[expect(clippy::disallowed_methods, reason = "the one place that starts programs")]
pub fn run_sandbox_command(tool: &[OsString], arguments: &[OsString]) -> Result<String, String> {
    let own = [sandbox::own_program().into(), SANDBOX_COMMAND.into()];
    let mut all = tool.iter().chain(&own).chain(arguments);
    let mut command = Command::new(all.next().unwrap_or(&own[0]));
    command.args(all).stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let ended = spawn(&mut command).and_then(Child::wait_with_output);
    let ended = ended.map_err(|error| format!("The sandbox could not be set up: {error}."))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if ended.status.success() {
        return Ok(text(&ended.stdout));
    }
    let error = text(&ended.stderr);
    // The dynamic linker may have written something before.
    Err(error.rsplit("parlor: ").next().unwrap_or(&error).to_owned())
}

/// Runs a program with exactly these variables in this process. Returns only with an error.
#[expect(clippy::disallowed_methods, reason = "the one place that starts programs")]
pub fn replace_process(
    program: &OsStr,
    arguments: &[OsString],
    environment: &BTreeMap<OsString, OsString>,
) -> std::io::Error {
    let mut command = Command::new(program);
    command.args(arguments).env_clear().envs(environment);
    process::replace_with(&mut command)
}

/// Starts a blocking process.
#[expect(clippy::disallowed_methods, reason = "the one place that starts programs")]
pub fn spawn(command: &mut Command) -> std::io::Result<Child> {
    let _starting = STARTS.read();
    command.spawn()
}

#[expect(clippy::disallowed_methods, reason = "the one place that starts programs")]
pub fn spawn_task(command: &mut tokio::process::Command) -> std::io::Result<tokio::process::Child> {
    let _starting = STARTS.read();
    command.spawn()
}

/// Sends a stop signal (job control) to the process group of parlor, while no process is being started.
pub fn stop_group() {
    let _exclusive = STARTS.write();
    // Agents have separate groups and continue.
    signals::stop_own_group();
}

/// The mark of this run: its process id and a random number.
pub fn run_mark() -> &'static str {
    static MARK: LazyLock<String> = LazyLock::new(|| {
        use std::hash::{BuildHasher as _, Hasher as _};
        // The standard library seeds its hashers from the system.
        let random = std::hash::RandomState::new().build_hasher().finish();
        format!("{}-{:08x}", std::process::id(), random & 0xffff_ffff)
    });
    &MARK
}

/// Finds a program: a path is relative to `folder`, a bare name is looked up in the absolute folders of `path`.
pub fn find_in(name: &str, path: Option<&OsStr>, folder: Option<&Path>) -> Option<PathBuf> {
    let path = path.map(absolute_entries);
    // An empty search path would mean the current folder.
    if is_bare(name) && path.as_ref().is_none_or(|path| path.is_empty()) {
        return None;
    }
    if let Some(folder) = folder {
        return which::which_in(name, path, folder).ok();
    }
    if is_bare(name) {
        return which::which_in_global(name, path).ok()?.next();
    }
    which::which_in(name, path, std::env::current_dir().ok()?).ok()
}

fn is_bare(name: &str) -> bool {
    !name.is_empty() && !name.contains(std::path::is_separator)
}

/// Removes relative entries from a search path.
fn absolute_entries(path: &OsStr) -> OsString {
    let absolute: Vec<PathBuf> = std::env::split_paths(path).filter(|entry| entry.is_absolute()).collect();
    std::env::join_paths(absolute).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::os::fixtures;

    /// Whether this process is the child process of the test below.
    const STOPS: &str = "PARLOR_TEST_STOPS";

    /// The child process of the test below.
    #[test]
    fn child_that_stops_itself_while_it_starts_programs() {
        if std::env::var_os(STOPS).is_none() {
            assert!(std::env::args().len() > 0);
            return;
        }
        for _ in 0..2 {
            std::thread::spawn(|| {
                let start = Start::find(StartedBy::Parlor, "true", None, &[]).unwrap();
                loop {
                    spawn(&mut start.command()).unwrap().wait().unwrap();
                }
            });
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
        stop_group();
    }

    #[test]
    fn parlor_stops_while_it_starts_programs() {
        let name = "program::tests::child_that_stops_itself_while_it_starts_programs";
        for _ in 0..40 {
            let mut command = Command::new(std::env::current_exe().unwrap());
            command.args(["--exact", name]).env(STOPS, "1").stdout(std::process::Stdio::null());
            process::in_own_group(&mut command);
            let mut child = command.spawn().unwrap();
            let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
            let has_stopped = loop {
                if let Some(has_stopped) = fixtures::has_stopped(&child) {
                    break has_stopped;
                }
                if std::time::Instant::now() > deadline {
                    break false;
                }
                std::thread::sleep(std::time::Duration::from_millis(1));
            };
            // Programs that were started meanwhile end on their own.
            child.kill().unwrap();
            child.wait().unwrap();
            assert!(has_stopped, "it neither stopped nor ended");
        }
    }

    #[test]
    fn variables_of_a_sandboxed_program_are_encoded() {
        let env = [("LD_PRELOAD".to_owned(), "/evil.so".to_owned())];
        let find = || Start::find(StartedBy::Agent, "true", None, &env).unwrap().args(["-x"]);
        let inner: Vec<OsString> = find().command_line().map(OsStr::to_owned).collect();
        let start = find().sandboxed(Some(&Sandbox::default()));
        let command = start.command();
        assert_eq!(command.get_program(), sandbox::own_program());
        let args: Vec<&OsStr> = command.get_args().collect();
        assert_eq!(args[0], SANDBOX_COMMAND);
        assert!(args.ends_with(&["--".as_ref(), inner[0].as_os_str(), "-x".as_ref()]), "{args:?}");
        let names: Vec<&OsStr> = command.get_envs().map(|(name, _)| name).collect();
        assert!(names.contains(&OsStr::new("PARLOR_SANDBOX+LD_PRELOAD")), "{names:?}");
        assert!(names.iter().all(|name| name.as_encoded_bytes().starts_with(b"PARLOR_SANDBOX")), "{names:?}");
        let builder = start.in_shell_line("exec \"$@\"", OsStr::new("sh"), &[], false);
        assert_eq!(builder.get_env("LD_PRELOAD"), None);
        assert_eq!(builder.get_argv()[4], sandbox::own_program());
    }

    fn program(folder: &Path, name: &str) {
        let file = folder.join(name);
        std::fs::write(&file, "#!/bin/sh\necho ran\n").unwrap();
        fixtures::set_mode(&file, 0o755);
    }

    #[test]
    fn relative_path_entries_select_no_program_of_the_folder() {
        let folder = tempfile::tempdir().unwrap();
        program(folder.path(), "helper");
        std::fs::create_dir(folder.path().join("bin")).unwrap();
        program(&folder.path().join("bin"), "helper");
        for path in [".", "", ":/nowhere", "/nowhere:", "bin", "./bin:.", "/nowhere::/nowhere"] {
            let env = [("PATH".to_owned(), path.to_owned())];
            for by in [StartedBy::Parlor, StartedBy::User, StartedBy::Agent] {
                let found = Start::find(by, "helper", Some(folder.path()), &env);
                assert_eq!(found.unwrap_err(), Refusal::NotFound("helper".to_owned()), "{path:?}");
            }
            assert_eq!(find_in("helper", Some(OsStr::new(path)), Some(folder.path())), None, "{path:?}");
        }
        let absolute = [("PATH".to_owned(), format!(".:{}", folder.path().display()))];
        let start = Start::find(StartedBy::User, "helper", None, &absolute).unwrap();
        assert_eq!(start.command_line().collect::<Vec<_>>(), [folder.path().join("helper")]);
    }

    #[test]
    fn started_programs_get_no_relative_path_entries() {
        let env = [("PATH".to_owned(), ".:/usr/bin::/bin:sub".to_owned())];
        let output = Start::find(StartedBy::User, "sh", None, &env)
            .unwrap()
            .args(["-c", "echo \"$PATH\""])
            .command()
            .output()
            .unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "/usr/bin:/bin\n");
    }

    #[test]
    fn paths_are_relative_to_the_folder_except_for_helpers() {
        let folder = tempfile::tempdir().unwrap();
        program(folder.path(), "helper");
        let here = |by| Start::find(by, "./helper", Some(folder.path()), &[]).map(|_| ());
        assert_eq!(here(StartedBy::User), Ok(()));
        assert_eq!(here(StartedBy::Parlor), Err(Refusal::NotAName("./helper".to_owned())));
    }

    #[test]
    fn sign_ins_cannot_set_unsafe_variables() {
        let start = Start::find(StartedBy::User, "sh", None, &[]).unwrap();
        let set = |by, name: &str| {
            start.clone().with_variables(by, &[(name.to_owned(), "/bin".to_owned())]).map(|_| ())
        };
        for name in ["PATH", "LD_PRELOAD", "NODE_OPTIONS", "GIT_SSH_COMMAND"] {
            assert_eq!(set(StartedBy::SignIn, name), Err(Refusal::Variable(name.to_owned())));
            assert_eq!(set(StartedBy::User, name), Ok(()), "the user is allowed to");
        }
        assert_eq!(set(StartedBy::SignIn, "ACCOUNT"), Ok(()));
    }

    #[test]
    fn variables_with_invalid_names_are_ignored() {
        let odd = [("", "x"), ("A=B", "x"), ("A\0B", "x")].map(|(name, value)| (name.into(), value.into()));
        let start = Start::find(StartedBy::Agent, "sh", None, &odd).unwrap().args(["-c", "exit 0"]);
        assert!(start.command().status().unwrap().success());
    }
}
