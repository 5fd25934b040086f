//! The sandbox of an agent: what the user configured, and the bounds of one process.

use std::ffi::OsString;
use std::path::PathBuf;

/// The hidden subcommand that enters a sandbox and then becomes the program.
pub const SANDBOX_COMMAND: &str = "__sandbox";

/// What begins the name of a variable for the program in a sandbox. The process that sets the sandbox up must not
/// obey the variables of an agent, such as `LD_PRELOAD` or `HOME`.
pub const SANDBOX_SET: &str = "PARLOR_SANDBOX+";

/// What begins the name of a variable that the program in a sandbox does not get.
pub const SANDBOX_UNSET: &str = "PARLOR_SANDBOX-";

/// Variables that name the folder in which an agent keeps its state: the variable, the agent, and the place in the folder.
pub const STATE_VARIABLES: &[(&str, &str, &str)] = &[
    ("CLAUDE_CONFIG_DIR", "claude", ""),
    ("CODEX_HOME", "codex", ""),
    ("COPILOT_HOME", "copilot", ""),
    ("GEMINI_CLI_HOME", "gemini", ".gemini"),
    ("HERMES_HOME", "hermes", ""),
    ("KIMI_SHARE_DIR", "kimi", ""),
    ("PARLOR_DEMO_DIR", "demo", ""),
    ("PI_CODING_AGENT_DIR", "pi", ""),
    ("QWEN_HOME", "qwen", ""),
    ("VIBE_HOME", "vibe", ""),
];

/// Whether a variable is one of [`STATE_VARIABLES`].
pub fn is_state_variable(name: &str) -> bool {
    STATE_VARIABLES.iter().any(|(known, ..)| *known == name)
}

/// What begins the part of a sandbox's description that lists what this system does not enforce.
pub const SANDBOX_MISSING: &str = "Not enforced here: ";

/// The end of a sandbox's description on a system where nobody has tried it.
pub const SANDBOX_UNTESTED: &str = "The sandbox is untested on macOS.";

/// Whether agents run in a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum SandboxMode {
    #[default]
    Off,
    /// With what this machine can enforce.
    Workspace,
    /// Not without all of it.
    Required,
}

impl SandboxMode {
    /// The words of the configuration.
    pub const WORDS: [&str; 3] = ["off", "workspace", "required"];

    pub fn of_word(word: &str) -> Option<Self> {
        [Self::Off, Self::Workspace, Self::Required].into_iter().find(|mode| mode.word() == word)
    }

    pub fn word(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Workspace => "workspace",
            Self::Required => "required",
        }
    }
}

/// The section `[sandbox]` of the configuration.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SandboxRules {
    pub mode: SandboxMode,
    /// More folders and files that can be written.
    pub write: Vec<PathBuf>,
    /// Secrets that can be read.
    pub read: Vec<PathBuf>,
    /// The TCP ports that can be connected to; `None`: all.
    pub ports: Option<Vec<u16>>,
}

impl SandboxRules {
    /// Whether agents can do more than with other rules.
    pub fn is_wider_than(&self, other: &Self) -> bool {
        let has_more = |mine: &[PathBuf], theirs: &[PathBuf]| mine.iter().any(|path| !theirs.contains(path));
        let has_more_ports = match (&self.ports, &other.ports) {
            (_, None) => false,
            (None, Some(_)) => true,
            (Some(mine), Some(theirs)) => mine.iter().any(|port| !theirs.contains(port)),
        };
        let is_more_open =
            has_more(&self.write, &other.write) || has_more(&self.read, &other.read) || has_more_ports;
        other.mode != SandboxMode::Off && (self.mode < other.mode || is_more_open)
    }
}

/// The bounds of a process.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sandbox {
    pub rules: SandboxRules,
    /// The name of the agent and of its program, by which its own folders are known.
    pub names: Vec<String>,
    /// The folders of the session.
    pub folders: Vec<PathBuf>,
    /// The folders of parlor, which cannot be read.
    pub own_folders: Vec<PathBuf>,
    /// Paths that the user opened because an agent named them. They are not followed through links, and open no secrets.
    pub granted_write: Vec<PathBuf>,
    pub granted_read: Vec<PathBuf>,
    /// The values of [`STATE_VARIABLES`] in the configuration of the agent.
    pub state: Vec<(String, String)>,
}

impl Sandbox {
    /// Whether a session with these folders can use a process in this sandbox.
    pub fn covers(&self, folders: &[PathBuf]) -> bool {
        folders.iter().all(|folder| self.folders.contains(folder))
    }

    /// The arguments of [`SANDBOX_COMMAND`]. Not JSON: paths need not be text.
    pub fn to_arguments(&self) -> Vec<OsString> {
        let paths = [
            ("--folder", &self.folders),
            ("--own", &self.own_folders),
            ("--write", &self.rules.write),
            ("--read", &self.rules.read),
            ("--granted-write", &self.granted_write),
            ("--granted-read", &self.granted_read),
        ];
        let mut all: Vec<OsString> = vec!["--mode".into(), self.rules.mode.word().into()];
        for (option, values) in paths {
            all.extend(values.iter().flat_map(|value| [option.into(), value.into()]));
        }
        all.extend(self.names.iter().flat_map(|name| ["--name".into(), name.into()]));
        let state = self.state.iter().map(|(name, value)| format!("{name}={value}"));
        all.extend(state.flat_map(|pair| ["--state".into(), pair.into()]));
        if let Some(ports) = &self.rules.ports {
            let ports: Vec<String> = ports.iter().map(u16::to_string).collect();
            all.extend(["--ports".into(), ports.join(",").into()]);
        }
        all
    }

    /// Reads the arguments, and returns those after `--`. `None`: they are invalid.
    pub fn of_arguments(arguments: impl IntoIterator<Item = OsString>) -> Option<(Self, Vec<OsString>)> {
        let (mut sandbox, mut arguments) = (Self::default(), arguments.into_iter());
        loop {
            let option = arguments.next()?;
            if option == "--" {
                return Some((sandbox, arguments.collect()));
            }
            let value = arguments.next()?;
            match (option.to_str()?, value.to_str()) {
                ("--folder", _) => sandbox.folders.push(value.into()),
                ("--own", _) => sandbox.own_folders.push(value.into()),
                ("--write", _) => sandbox.rules.write.push(value.into()),
                ("--read", _) => sandbox.rules.read.push(value.into()),
                ("--granted-write", _) => sandbox.granted_write.push(value.into()),
                ("--granted-read", _) => sandbox.granted_read.push(value.into()),
                ("--mode", Some(word)) => sandbox.rules.mode = SandboxMode::of_word(word)?,
                ("--name", Some(name)) => sandbox.names.push(name.to_owned()),
                ("--state", Some(pair)) => {
                    let (name, value) = pair.split_once('=')?;
                    sandbox.state.push((name.to_owned(), value.to_owned()));
                }
                ("--ports", Some(list)) => {
                    let ports = list.split(',').filter(|port| !port.is_empty()).map(str::parse);
                    sandbox.rules.ports = Some(ports.collect::<Result<_, _>>().ok()?);
                }
                _ => return None,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_read_as_they_were_written() {
        let sandbox = Sandbox {
            rules: SandboxRules {
                mode: SandboxMode::Required,
                write: vec!["/w -- x".into()],
                read: vec!["/r".into()],
                ports: Some(vec![443, 80]),
            },
            names: vec!["claude".to_owned()],
            folders: vec!["/a".into(), "/b".into()],
            own_folders: vec!["/own".into()],
            granted_write: vec!["/gw".into()],
            granted_read: vec!["/gr".into()],
            state: vec![("CODEX_HOME".to_owned(), "/a=b".to_owned())],
        };
        let program = ["--".into(), "sh".into(), "--".into()];
        let read = Sandbox::of_arguments(sandbox.to_arguments().into_iter().chain(program)).unwrap();
        assert_eq!(read, (sandbox, vec!["sh".into(), "--".into()]));
        let none = Sandbox {
            rules: SandboxRules { ports: Some(Vec::new()), ..SandboxRules::default() },
            ..Sandbox::default()
        };
        let read = Sandbox::of_arguments(none.to_arguments().into_iter().chain(["--".into()])).unwrap();
        assert_eq!(read.0, none, "no ports is not all ports");
        assert_eq!(Sandbox::of_arguments(["--mode", "none", "--"].map(Into::into)), None);
    }
}
