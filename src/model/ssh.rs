//! Agents on an SSH host: the command lines for the system's `ssh` that run an agent, run it in a terminal,
//! or sign in.
//!
//! `acp` and `host` run them.
//!
//! Invariants: no shell interprets any part of the agent's command, folder or variables; a host is never read
//! as an option. Values of variables are sent through the agent's stdin where possible, because other users
//! of a machine can read command lines.

use std::ffi::OsString;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};

use super::AgentSpec;

/// Error text of the remote shell for a missing folder; followed by the folder's path.
pub const NO_FOLDER: &str = "parlor: there is no folder ";
/// The exit code of the remote shell for a missing folder.
pub const NO_FOLDER_CODE: i32 = 66;
/// The exit code of `ssh` if it fails. Source: ssh(1), EXIT STATUS.
pub const SSH_FAILED_CODE: i32 = 255;

/// An SSH host.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ssh {
    /// The host as ssh accepts it: an alias of the user's configuration, `user@host`, or
    /// `ssh://user@host:port`.
    pub host: String,
    /// Additional arguments for ssh, before the host.
    pub args: Vec<String>,
    /// The ssh program; `None` for the one in `PATH`.
    pub program: Option<String>,
    /// Whether the user's MCP servers are passed to the agent, with their headers and variables.
    pub gets_servers: bool,
}

/// The folder of a session on another machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteFolder {
    pub host: String,
    /// Absolute path on the host.
    pub folder: PathBuf,
}

/// How to run an agent through ssh.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SshRun {
    pub args: Vec<String>,
    /// The start of its stdin: the values of variables, one per line.
    pub first_lines: Vec<u8>,
}

impl Ssh {
    pub fn program(&self) -> &str {
        self.program.as_deref().unwrap_or("ssh")
    }

    /// Runs the agent in a folder of the host, with pipes and without a terminal. ssh must not prompt,
    /// because parlor uses the screen. `socket` is the control socket of an open connection.
    pub fn run(&self, spec: &AgentSpec, folder: &Path, socket: Option<&Path>) -> SshRun {
        let mut args = strings(&["-T", "-o", "BatchMode=yes"]);
        // Detects a dead connection within a minute, for example after the laptop was suspended.
        if !self.args.iter().any(|word| word.contains("ServerAlive")) {
            args.extend(strings(&["-o", "ServerAliveInterval=15", "-o", "ServerAliveCountMax=3"]));
        }
        if !self.args.iter().any(|word| word.contains("ConnectTimeout")) {
            args.extend(strings(&["-o", "ConnectTimeout=20"]));
        }
        if let Some(socket) = socket {
            args.extend(strings(&["-o", "ControlMaster=no", "-o"]));
            args.push(format!("ControlPath={}", socket.display()));
        }
        let (by_line, by_word): (Vec<_>, Vec<_>) =
            spec.env.iter().cloned().partition(|(name, value)| is_shell_name(name) && !value.contains('\n'));
        let reads = by_line.iter().map(|(name, _)| format!("IFS= read -r {name} && export {name}"));
        let script = reads.chain([start(spec, folder, &by_word)]).collect::<Vec<_>>().join("\n");
        args.extend(self.at_host(&script));
        let first_lines = by_line.iter().flat_map(|(_, value)| [value.as_bytes(), b"\n"].concat()).collect();
        SshRun { args, first_lines }
    }

    pub fn run_in_terminal(&self, spec: &AgentSpec, folder: &Path) -> Vec<String> {
        let mut args = strings(&["-t"]);
        args.extend(self.at_host(&start(spec, folder, &spec.env)));
        args
    }

    /// Signs in using the user's terminal, and leaves the connection open for [`Self::run`] if `socket` is
    /// set. Without it, the sign-in still saves the host key or unlocks a key.
    pub fn sign_in(&self, socket: Option<&Path>) -> Vec<String> {
        let mut args = Vec::new();
        if let Some(socket) = socket {
            args.extend(strings(&["-o", "ControlMaster=auto", "-o", "ControlPersist=10m", "-o"]));
            args.push(format!("ControlPath={}", socket.display()));
        }
        args.extend(self.at_host("true"));
        args
    }

    /// The path of the control socket, in a folder that only the user can read. `variable` reads the
    /// environment.
    pub fn socket(&self, variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
        let mut hasher = DefaultHasher::new();
        (&self.host, &self.args).hash(&mut hasher);
        let folder = variable("XDG_RUNTIME_DIR").filter(|folder| !folder.is_empty()).map(PathBuf::from);
        let folder = folder.or_else(|| Some(PathBuf::from(variable("HOME")?).join(".ssh")))?;
        Some(folder.join(format!("parlor-{:016x}", hasher.finish())))
    }

    fn at_host(&self, script: &str) -> Vec<String> {
        // The user's login shell may be any, so it only has to parse quotes.
        let line = format!("exec sh -c {}", shell_word(script));
        self.args.iter().cloned().chain(["--".to_owned(), self.host.clone(), line]).collect()
    }

    /// The error in a host name, if it is invalid.
    pub fn problem_of(host: &str) -> Option<&'static str> {
        let bare = host.strip_prefix("ssh://").unwrap_or(host);
        let name = bare.rsplit_once('@').map_or(bare, |(_, name)| name);
        if name.is_empty() {
            return Some("set a host name");
        }
        if host.starts_with('-') || name.starts_with('-') {
            return Some("start it with a letter; put options in ssh_args");
        }
        if host.chars().any(|ch| ch.is_whitespace() || ch.is_control()) {
            return Some("use only the host name; put options in ssh_args");
        }
        let has_port = name.rsplit_once(':').is_some_and(|(before, port)| {
            !before.contains(':') && !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit())
        });
        (has_port && bare.len() == host.len()).then_some("use ssh://host:port, or ssh_args = [\"-p\", \"…\"]")
    }
}

/// The POSIX shell line that starts a program in a folder.
fn start(spec: &AgentSpec, folder: &Path, env: &[(String, String)]) -> String {
    let folder = folder.to_string_lossy();
    let mut line = format!(
        "cd -- {} || {{ echo {} >&2; exit {NO_FOLDER_CODE}; }}\nexec",
        shell_word(&folder),
        shell_word(&format!("{NO_FOLDER}{folder}"))
    );
    if !env.is_empty() {
        line.push_str(" env --");
        for (name, value) in env {
            line.push(' ');
            line.push_str(&shell_word(&format!("{name}={value}")));
        }
    }
    line.push(' ');
    match spec.command.strip_prefix("~/") {
        Some(rest) => line.extend(["\"$HOME\"/", &shell_word(rest)]),
        None => line.push_str(&shell_word(&spec.command)),
    }
    for arg in &spec.args {
        line.push(' ');
        line.push_str(&shell_word(arg));
    }
    line
}

pub fn shell_word(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

fn is_shell_name(name: &str) -> bool {
    let mut letters = name.bytes();
    letters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
        && letters.all(|ch| ch.is_ascii_alphanumeric() || ch == b'_')
}

fn strings(list: &[&str]) -> Vec<String> {
    list.iter().map(ToString::to_string).collect()
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::process::{Command, Stdio};

    use super::*;

    fn ssh() -> Ssh {
        Ssh { host: "ada@build".to_owned(), args: strings(&["-p", "2222"]), ..Ssh::default() }
    }

    /// Runs the last argument as the remote shell would, with this input.
    fn run_locally(args: &[String], input: &[u8]) -> (String, String, Option<i32>) {
        let line = args.last().unwrap();
        let mut child = Command::new("sh")
            .args(["-c", line])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(input).unwrap();
        let done = child.wait_with_output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (text(done.stdout), text(done.stderr), done.status.code())
    }

    #[test]
    fn arguments_folders_and_variables_are_passed_unchanged() {
        let folder = tempfile::tempdir().unwrap();
        let odd = folder.path().join("it's \"$HOME\" `x` \\ é");
        std::fs::create_dir(&odd).unwrap();
        let spec = AgentSpec {
            command: "sh".to_owned(),
            args: strings(&[
                "-c",
                "pwd; printf '%s|' \"$@\"; printf '%s|' \"$A\" \"$B\"; cat",
                "0",
                "'; exit 9",
                "$(id)",
                "",
            ]),
            env: vec![("A".to_owned(), "a 'b' $c".to_owned()), ("B".to_owned(), "two\nlines".to_owned())],
            ..AgentSpec::default()
        };
        let run = ssh().run(&spec, &odd, None);
        assert_eq!(run.first_lines, b"a 'b' $c\n");
        assert!(!run.args.iter().any(|arg| arg.contains("a 'b' $c")), "{:?}", run.args);
        let input = [run.first_lines.as_slice(), b"{\"id\":1}\n"].concat();
        let (output, _, code) = run_locally(&run.args, &input);
        assert_eq!(code, Some(0));
        assert_eq!(
            output,
            format!("{}\n'; exit 9|$(id)||a 'b' $c|two\nlines|{{\"id\":1}}\n", odd.display()),
            "the agent reads the rest of stdin"
        );
    }

    #[test]
    fn missing_folder_is_reported() {
        let spec = AgentSpec { command: "true".to_owned(), ..AgentSpec::default() };
        let (_, error, code) = run_locally(&ssh().run(&spec, Path::new("/no such'folder"), None).args, b"");
        assert_eq!(code, Some(NO_FOLDER_CODE));
        assert!(error.contains("parlor: there is no folder /no such'folder"), "{error}");
    }

    #[test]
    fn tilde_is_expanded_on_the_host_and_host_is_not_an_option() {
        let spec = AgentSpec { command: "~/bin/my agent".to_owned(), ..AgentSpec::default() };
        let args = ssh().run(&spec, Path::new("/w"), Some(Path::new("/run/s"))).args;
        let (last, head) = args.split_last().unwrap();
        assert!(last.contains(r#""$HOME"/'\''bin/my agent'\''"#), "{last}");
        assert!(head.ends_with(&strings(&["-p", "2222", "--", "ada@build"])), "{head:?}");
        assert!(head.contains(&"ControlPath=/run/s".to_owned()));
        assert_eq!(head.iter().filter(|word| word.starts_with("ServerAlive")).count(), 2);
        let own = Ssh { args: strings(&["-o", "ServerAliveInterval=5"]), ..ssh() };
        let args = own.run(&spec, Path::new("/w"), None).args;
        assert_eq!(args.iter().filter(|word| word.starts_with("ServerAlive")).count(), 1);
    }

    #[test]
    fn a_terminal_is_allocated_for_sign_ins_only() {
        let spec =
            AgentSpec { command: "agent".to_owned(), args: strings(&["login"]), ..AgentSpec::default() };
        let args = ssh().run_in_terminal(&spec, Path::new("/w"));
        assert_eq!(args.first().map(String::as_str), Some("-t"));
        assert!(args.last().is_some_and(|line| line.contains("login")));
        let args = ssh().sign_in(Some(Path::new("/run/s")));
        assert!(args.contains(&"ControlPersist=10m".to_owned()) && !args.contains(&"-T".to_owned()));
    }

    #[test]
    fn hosts_that_ssh_would_misread_are_rejected() {
        for host in ["build", "ada@build", "ssh://ada@build:22", "10.0.0.1", "fe80::1"] {
            assert_eq!(Ssh::problem_of(host), None, "{host}");
        }
        for host in ["", "-oProxyCommand=x", "ada@-x", "a b", "build:22", "ada@", "ssh://"] {
            assert!(Ssh::problem_of(host).is_some(), "{host}");
        }
    }
}
