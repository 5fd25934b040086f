//! Sign-in commands: decides which program runs before anything is started.
//!
//! The program is always the one that the user configured for the agent; a method only adds arguments and
//! variables. Source: ACP v1 authentication, methods of type `terminal`, and the older
//! `_meta["terminal-auth"]`.

use std::path::Path;

use super::{AgentSpec, is_plain_environment, is_state_variable};
use crate::escape;

/// The command of a sign-in method.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SignInCommand {
    /// A program other than the agent's own (legacy `_meta["terminal-auth"]`).
    pub program: Option<String>,
    /// Arguments: appended to the agent's own, or the complete list if `program` is set.
    pub args: Vec<String>,
    /// Environment variables to add.
    pub env: Vec<(String, String)>,
}

/// Why parlor does not run a sign-in command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SignInRefusal {
    /// The agent is behind a URL and cannot run programs here.
    Remote,
    /// The command is not the agent's own program.
    OtherProgram,
    /// It sets a variable that can change which code runs, or that has an invalid name.
    Variable(String),
}

impl SignInRefusal {
    pub fn reason(&self) -> String {
        match self {
            Self::Remote => {
                "This agent runs on another machine. Sign in there, then restart the agent.".to_owned()
            }
            Self::OtherProgram => "The command is not the agent's own program. It was not run.".to_owned(),
            Self::Variable(name) => format!(
                "The command sets {}, which can change the program that runs. It was not run.",
                escape::visible(name)
            ),
        }
    }
}

impl SignInCommand {
    /// The spec of the process that signs in: the agent's program with its own arguments and those of the
    /// method. The caller adds the method's variables when it starts the process.
    ///
    /// # Errors
    /// The agent is behind a URL, the command is another program, or a variable is not allowed.
    pub fn spec_for(&self, spec: &AgentSpec) -> Result<AgentSpec, SignInRefusal> {
        if spec.remote.is_some() {
            return Err(SignInRefusal::Remote);
        }
        check_environment(&self.env)?;
        let args = match &self.program {
            None => spec.args.iter().chain(self.own_args(spec)).cloned().collect(),
            Some(program) if is_own(program, &self.args, spec) => self.args.clone(),
            Some(_) => return Err(SignInRefusal::OtherProgram),
        };
        Ok(AgentSpec { args, ..spec.clone() })
    }

    /// The arguments of the method. Some agents repeat the path of their program before them.
    fn own_args(&self, spec: &AgentSpec) -> &[String] {
        let is_program = |arg: &String| {
            let (arg, program) = (Path::new(arg), Path::new(&spec.command));
            arg.is_absolute() && arg.file_name() == program.file_name()
        };
        match self.args.split_first() {
            Some((first, rest)) if is_program(first) => rest,
            _ => &self.args,
        }
    }

    /// The agent's sign-in command for the user to run manually: quoted, with hidden characters escaped.
    pub fn as_text(&self, spec: &AgentSpec) -> String {
        let own = std::iter::once(&spec.command).chain(&spec.args).filter(|_| self.program.is_none());
        let args = if self.program.is_none() { self.own_args(spec) } else { &self.args };
        let parts = own.chain(&self.program).chain(args);
        let env = self.env.iter().map(|(name, value)| format!("{name}={}", shell_words::quote(value)));
        let all: Vec<String> = env.chain(parts.map(|word| shell_words::quote(word).into_owned())).collect();
        escape::visible(&all.join(" ")).into_owned()
    }
}

/// Rejects variables whose value an agent chose, except those that commands may set without a question.
///
/// # Errors
/// Returns the first rejected variable.
pub fn check_environment(env: &[(String, String)]) -> Result<(), SignInRefusal> {
    match env.iter().find(|variable| !is_plain_environment(std::slice::from_ref(*variable))) {
        Some((name, _)) => Err(SignInRefusal::Variable(name.clone())),
        None => Ok(()),
    }
}

/// Rejects variables that an agent or the registry names, if they can change which code runs or what a sandbox opens.
///
/// # Errors
/// Returns the first rejected variable.
pub fn check_variables<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<(), SignInRefusal> {
    let is_bad = |name: &&str| !is_name(name) || is_refused_variable(name) || is_state_variable(name);
    match names.into_iter().find(is_bad) {
        Some(name) => Err(SignInRefusal::Variable(name.to_owned())),
        None => Ok(()),
    }
}

/// Whether a legacy command runs the agent's own program: its file name is the same, so that the configured
/// program can run instead, and its arguments start with the configured ones. The configured arguments may be
/// missing if they are only options and the word `acp` (`kimi acp` signs in with `kimi login`); any other
/// argument may name the program that actually runs (`node cli.js`, `npx package`, a sandbox wrapper).
fn is_own(program: &str, args: &[String], spec: &AgentSpec) -> bool {
    let is_switch = |arg: &String| arg.starts_with('-') || arg == "acp";
    let is_same = !spec.command.is_empty()
        && Path::new(program).file_name().is_some()
        && Path::new(program).file_name() == Path::new(&spec.command).file_name();
    is_same && (args.starts_with(&spec.args) || spec.args.iter().all(is_switch))
}

fn is_name(name: &str) -> bool {
    let mut letters = name.bytes();
    letters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
        && letters.all(|ch| ch.is_ascii_alphanumeric() || ch == b'_')
}

/// Whether a variable can change which code runs, what that code trusts, or where it sends data.
pub fn is_refused_variable(name: &str) -> bool {
    const NAMES: &[&str] = &[
        "PATH",
        "HOME",
        "SHELL",
        "ENV",
        "IFS",
        "CDPATH",
        "ZDOTDIR",
        "PROMPT_COMMAND",
        "PS4",
        "EDITOR",
        "VISUAL",
        "PAGER",
        "BROWSER",
        "LESSOPEN",
        "LESSCLOSE",
        "MANPAGER",
        "TMPDIR",
        "TERMCAP",
        "CLASSPATH",
        "GCONV_PATH",
        "LOCPATH",
        "GLIBC_TUNABLES",
        "RUSTC_WRAPPER",
        "RUBYLIB",
        "RUBYOPT",
        "NODE_PATH",
        "NODE_OPTIONS",
        "NODE_EXTRA_CA_CERTS",
        "NODE_TLS_REJECT_UNAUTHORIZED",
        "SUDO_ASKPASS",
        "REQUESTS_CA_BUNDLE",
        "CURL_HOME",
        "CURL_CA_BUNDLE",
        "OPENSSL_CONF",
        "OPENSSL_MODULES",
        "OPENSSL_ENGINES",
        "COMSPEC",
        "PATHEXT",
    ];
    const BEGINNINGS: &[&str] = &[
        "LD_",
        "DYLD_",
        "PYTHON",
        "PERL",
        "GIT_",
        "SSH_",
        "SSL_",
        "BASH_",
        "XDG_",
        "NPM_CONFIG_",
        "YARN_",
        "PNPM_",
        "BUN_",
        "DENO_",
        "UV_",
        "PIP_",
        "GEM_",
        "BUNDLE_",
        "MALLOC_",
        "TERMINFO",
        "PARLOR_",
        "CARGO_",
        "DOCKER_",
        "_JAVA_",
        "JAVA_",
        "JDK_",
        "LUA_",
        "ELECTRON_",
    ];
    const ENDS: &[&str] = &["_OPTIONS", "_OPTS", "_PROXY", "_COMMAND", "_WRAPPER", "_PRELOAD"];
    // Some programs read the lower-case form too.
    let name = name.to_ascii_uppercase();
    NAMES.contains(&name.as_str())
        || BEGINNINGS.iter().any(|beginning| name.starts_with(beginning))
        || ENDS.iter().any(|end| name.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Remote, Ssh};

    fn spec(parts: &[&str]) -> AgentSpec {
        let (command, args) = parts.split_first().unwrap();
        AgentSpec {
            command: (*command).to_owned(),
            args: args.iter().map(ToString::to_string).collect(),
            ..AgentSpec::default()
        }
    }

    fn command(program: Option<&str>, args: &[&str]) -> SignInCommand {
        SignInCommand {
            program: program.map(str::to_owned),
            args: args.iter().map(ToString::to_string).collect(),
            env: Vec::new(),
        }
    }

    #[test]
    fn sign_in_adds_arguments_to_the_agents_own_command() {
        let runs = command(None, &["--login"]).spec_for(&spec(&["node", "cli.js", "--acp"])).unwrap();
        assert_eq!(runs.command_line(), "node cli.js --acp --login");
    }

    #[test]
    fn a_repeated_program_path_is_left_out() {
        let spec = AgentSpec { command: "/opt/a/bin/vibe-acp".to_owned(), ..AgentSpec::default() };
        let args = |args: &[&str]| {
            let args = args.iter().map(ToString::to_string).collect();
            let method = SignInCommand { program: None, args, env: Vec::new() };
            (method.spec_for(&spec).unwrap().args.join(" "), method.as_text(&spec))
        };
        let shown = "/opt/a/bin/vibe-acp --setup".to_owned();
        assert_eq!(args(&["/opt/a/bin/vibe-acp", "--setup"]), ("--setup".to_owned(), shown.clone()));
        assert_eq!(args(&["--setup"]), ("--setup".to_owned(), shown));
        assert_eq!(args(&["/etc/passwd"]).0, "/etc/passwd");
    }

    #[test]
    fn legacy_sign_in_runs_only_the_configured_program() {
        for (agent, program, args) in [
            (vec!["kimi", "acp"], "kimi", vec!["login"]),
            (vec!["kimi", "acp"], "/tmp/other/kimi", vec!["login"]),
            (vec!["/opt/bin/copilot", "--acp"], "copilot", vec!["login"]),
            (vec!["node", "/opt/cli.js"], "/usr/bin/node", vec!["/opt/cli.js", "/login"]),
        ] {
            let runs = command(Some(program), &args).spec_for(&spec(&agent)).unwrap();
            assert_eq!(runs.command, agent[0], "not the program that the agent sent");
            assert_eq!(runs.args, args);
        }
        for (agent, program, args) in [
            (vec!["agent"], "/bin/sh", vec!["-c", "id"]),
            (vec!["node", "/opt/cli.js"], "node", vec!["-e", "evil"]),
            (vec!["node", "/opt/cli.js"], "node", vec!["/tmp/evil.js"]),
            (vec!["npx", "-y", "agent"], "npx", vec!["-y", "evil"]),
            (vec!["firejail", "kimi", "acp"], "firejail", vec!["sh"]),
            (vec!["firejail", "kimi", "acp"], "kimi", vec!["login"]),
            (vec!["agent"], "", vec![]),
            (vec!["agent"], "..", vec![]),
            (vec![""], "", vec![]),
        ] {
            let refused = command(Some(program), &args).spec_for(&spec(&agent));
            assert_eq!(refused, Err(SignInRefusal::OtherProgram), "{agent:?} {program} {args:?}");
        }
    }

    #[test]
    fn agents_behind_urls_run_no_sign_in_command() {
        let remote = AgentSpec { remote: Some(Remote::default()), ..AgentSpec::default() };
        for command in
            [command(None, &[]), command(None, &["login"]), command(Some("sh"), &[]), command(Some(""), &[])]
        {
            assert_eq!(command.spec_for(&remote), Err(SignInRefusal::Remote));
        }
        let by_ssh = AgentSpec { ssh: Some(Ssh::default()), ..spec(&["agent"]) };
        assert!(command(None, &["login"]).spec_for(&by_ssh).is_ok(), "it runs on the SSH host");
        assert!(command(Some("sh"), &[]).spec_for(&by_ssh).is_err());
    }

    #[test]
    fn unsafe_variables_are_rejected() {
        for name in [
            "PATH",
            "path",
            "LD_PRELOAD",
            "LD_LIBRARY_PATH",
            "DYLD_INSERT_LIBRARIES",
            "NODE_OPTIONS",
            "PYTHONPATH",
            "PYTHONSTARTUP",
            "JAVA_TOOL_OPTIONS",
            "MAVEN_OPTS",
            "GIT_SSH_COMMAND",
            "SHELL",
            "BASH_ENV",
            "ENV",
            "EDITOR",
            "BROWSER",
            "https_proxy",
            "npm_config_registry",
            "BASH_FUNC_ls%%",
            "HOME",
            "A B",
            "",
            "A=B",
            "1A",
            "SSL_CERT_FILE",
            "PHPRC",
            "DOTNET_STARTUP_HOOKS",
            "GOFLAGS",
            "KUBECONFIG",
            "ANTHROPIC_BASE_URL",
            "NEW_TOOL_HOOKS",
        ] {
            let sign_in =
                SignInCommand { env: vec![(name.to_owned(), "x".to_owned())], ..command(None, &[]) };
            let refused = sign_in.spec_for(&spec(&["agent"]));
            assert_eq!(refused, Err(SignInRefusal::Variable(name.to_owned())), "{name}");
        }
        for name in ["ANTHROPIC_API_KEY", "GEMINI_API_KEY", "MODE", "OPENAI_BASE_URL", "KIMI_API_KEY"] {
            assert_eq!(check_variables([name]), Ok(()), "{name}");
        }
        let refused = Err(SignInRefusal::Variable("CODEX_HOME".to_owned()));
        assert_eq!(check_variables(["CODEX_HOME"]), refused, "a sandbox opens the folder");
    }

    #[test]
    fn sign_in_text_shows_hidden_characters() {
        let mut sign_in = command(Some("/bin/sh"), &["-c", "echo \u{202e}a\nb"]);
        sign_in.env = vec![("PATH".to_owned(), "/tmp/e vil".to_owned())];
        let text = sign_in.as_text(&spec(&["agent"]));
        assert_eq!(text, "PATH='/tmp/e vil' /bin/sh -c 'echo ⟨U+202E⟩a⟨U+000A⟩b'");
    }
}
