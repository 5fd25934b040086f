//! Sign-ins by a command: which one runs, decided before anything is started.
//!
//! The program is always the one of the agent's own specification, which the user configured; a method adds arguments
//! and variables. Source: ACP v1 authentication, methods of type `terminal`, and the older `_meta["terminal-auth"]`.

use std::path::Path;

use super::AgentSpec;
use crate::escape;

/// The command that a sign-in method names.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SignInCommand {
    /// Another program than the agent's own (legacy `_meta["terminal-auth"]`).
    pub program: Option<String>,
    /// Arguments: added to the agent's own, or all of them with `program`.
    pub args: Vec<String>,
    /// Variables to add.
    pub env: Vec<(String, String)>,
}

/// Why parlor does not run a sign-in command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SignInRefusal {
    /// The agent is reached by a URL: nothing that it says runs here.
    Remote,
    /// The command is not the agent's own.
    OtherProgram,
    /// It sets a variable that changes which code runs, or that has no proper name.
    Variable(String),
}

impl SignInRefusal {
    /// Why, as a sentence.
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
    /// What runs to sign in to the agent of this spec: its own program, its arguments and those of the method. The
    /// variables of the method are added to its own when it starts.
    ///
    /// # Errors
    /// The agent is behind a URL, the command is another program, or a variable may not be set.
    pub fn spec_for(&self, spec: &AgentSpec) -> Result<AgentSpec, SignInRefusal> {
        if spec.remote.is_some() {
            return Err(SignInRefusal::Remote);
        }
        check_variables(self.env.iter().map(|(name, _)| name.as_str()))?;
        let args = match &self.program {
            None => spec.args.iter().chain(&self.args).cloned().collect(),
            Some(program) if is_own(program, &self.args, spec) => self.args.clone(),
            Some(_) => return Err(SignInRefusal::OtherProgram),
        };
        Ok(AgentSpec { args, ..spec.clone() })
    }

    /// The command as the agent names it, for the user to run by hand: quoted, hidden characters visible.
    pub fn as_text(&self, spec: &AgentSpec) -> String {
        let own = std::iter::once(&spec.command).chain(&spec.args).filter(|_| self.program.is_none());
        let words = own.chain(&self.program).chain(&self.args);
        let env = self.env.iter().map(|(name, value)| format!("{name}={}", shell_words::quote(value)));
        let all: Vec<String> = env.chain(words.map(|word| shell_words::quote(word).into_owned())).collect();
        escape::visible(&all.join(" ")).into_owned()
    }
}

/// Refuses variables of a sign-in that change which code runs.
///
/// # Errors
/// Names the first of them.
pub fn check_variables<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<(), SignInRefusal> {
    let is_bad = |name: &&str| !is_name(name) || is_refused_variable(name);
    match names.into_iter().find(is_bad) {
        Some(name) => Err(SignInRefusal::Variable(name.to_owned())),
        None => Ok(()),
    }
}

/// Whether a legacy command is the agent's own program: its file has the same name, so that the configured program can
/// run instead, and its arguments begin with the configured ones. Those may be left out where they are only options
/// and the word `acp` (`kimi acp` signs in by `kimi login`): anything else may name the program that really runs
/// (`node cli.js`, `npx package`, a wrapper that confines it).
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
        && letters.all(|letter| letter.is_ascii_alphanumeric() || letter == b'_')
}

/// Whether a variable changes which code runs, what it trusts, or where it sends what it is given.
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
    // Some programs read them in small letters too.
    let name = name.to_ascii_uppercase();
    NAMES.contains(&name.as_str())
        || BEGINNINGS.iter().any(|beginning| name.starts_with(beginning))
        || ENDS.iter().any(|end| name.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Remote, Ssh};

    fn spec(words: &[&str]) -> AgentSpec {
        let (command, args) = words.split_first().unwrap();
        AgentSpec {
            command: (*command).to_owned(),
            args: args.iter().map(ToString::to_string).collect(),
            ..AgentSpec::default()
        }
    }

    fn told(program: Option<&str>, args: &[&str]) -> SignInCommand {
        SignInCommand {
            program: program.map(str::to_owned),
            args: args.iter().map(ToString::to_string).collect(),
            env: Vec::new(),
        }
    }

    #[test]
    fn a_method_adds_arguments_to_the_agents_own_command() {
        let runs = told(None, &["--login"]).spec_for(&spec(&["node", "cli.js", "--acp"])).unwrap();
        assert_eq!(runs.command_line(), "node cli.js --acp --login");
    }

    #[test]
    fn the_older_form_runs_the_configured_program_or_nothing() {
        for (agent, program, args) in [
            (vec!["kimi", "acp"], "kimi", vec!["login"]),
            (vec!["kimi", "acp"], "/tmp/other/kimi", vec!["login"]),
            (vec!["/opt/bin/copilot", "--acp"], "copilot", vec!["login"]),
            (vec!["node", "/opt/cli.js"], "/usr/bin/node", vec!["/opt/cli.js", "/login"]),
        ] {
            let runs = told(Some(program), &args).spec_for(&spec(&agent)).unwrap();
            assert_eq!(runs.command, agent[0], "never the program that the agent names");
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
            let refused = told(Some(program), &args).spec_for(&spec(&agent));
            assert_eq!(refused, Err(SignInRefusal::OtherProgram), "{agent:?} {program} {args:?}");
        }
    }

    #[test]
    fn an_agent_behind_a_url_runs_nothing() {
        let far = AgentSpec { remote: Some(Remote::default()), ..AgentSpec::default() };
        for command in [told(None, &[]), told(None, &["login"]), told(Some("sh"), &[]), told(Some(""), &[])] {
            assert_eq!(command.spec_for(&far), Err(SignInRefusal::Remote));
        }
        let by_ssh = AgentSpec { ssh: Some(Ssh::default()), ..spec(&["agent"]) };
        assert!(told(None, &["login"]).spec_for(&by_ssh).is_ok(), "it runs on that host");
        assert!(told(Some("sh"), &[]).spec_for(&by_ssh).is_err());
    }

    #[test]
    fn variables_that_change_what_runs_are_refused() {
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
        ] {
            let command = SignInCommand { env: vec![(name.to_owned(), "x".to_owned())], ..told(None, &[]) };
            let refused = command.spec_for(&spec(&["agent"]));
            assert_eq!(refused, Err(SignInRefusal::Variable(name.to_owned())), "{name}");
        }
        for name in ["ANTHROPIC_API_KEY", "GEMINI_API_KEY", "MODE", "OPENAI_BASE_URL", "KIMI_SHARE_DIR"] {
            assert_eq!(check_variables([name]), Ok(()), "{name}");
        }
    }

    #[test]
    fn the_text_to_run_by_hand_hides_nothing() {
        let mut command = told(Some("/bin/sh"), &["-c", "echo \u{202e}a\nb"]);
        command.env = vec![("PATH".to_owned(), "/tmp/e vil".to_owned())];
        let text = command.as_text(&spec(&["agent"]));
        assert_eq!(text, "PATH='/tmp/e vil' /bin/sh -c 'echo ⟨U+202E⟩a⟨U+000A⟩b'");
    }
}
