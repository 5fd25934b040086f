//! Agents that can be installed from the protocol's registry, and how.

use std::path::{Path, PathBuf};

pub const DEFAULT_REGISTRY: &str = "https://cdn.agentclientprotocol.com/registry/v1/latest/registry.json";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegistryAgent {
    pub id: String,
    pub title: String,
    pub version: String,
    pub description: String,
    pub page: Option<String>,
    /// How it is installed here; `None`: not on this system.
    pub source: Option<AgentSource>,
    pub quarantine: Option<String>,
}

/// Where an agent comes from, and how it is started. Source: agent registry, `distribution`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentSource {
    pub kind: SourceKind,
    /// The package with its version, or the URL of the archive.
    pub from: String,
    /// The program, relative to the archive; for a package the name of one of its commands, if it has several.
    pub command: Option<String>,
    pub args: Vec<String>,
    pub env: Vec<(String, String)>,
    /// SHA-256 of the archive, in hexadecimal.
    pub sha256: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceKind {
    Npm,
    Pypi,
    Archive,
}

impl SourceKind {
    /// The program that installs it; `None`: parlor itself.
    pub fn installer(self) -> Option<&'static str> {
        match self {
            Self::Npm => Some("npm"),
            Self::Pypi => Some("uv"),
            Self::Archive => None,
        }
    }

    fn needs(self, is_missing: bool) -> &'static str {
        match (self, is_missing) {
            (Self::Npm, false) => "needs Node.js",
            (Self::Npm, true) => "Node.js is missing",
            (Self::Pypi, false) => "needs uv",
            (Self::Pypi, true) => "uv is missing",
            (Self::Archive, _) => "download",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstalledAgent {
    pub id: String,
    pub title: String,
    pub version: String,
    /// The program, absolute.
    pub command: PathBuf,
    pub args: Vec<String>,
    pub env: Vec<(String, String)>,
}

/// The agents of the registry as last fetched.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RegistryIndex {
    pub agents: Vec<RegistryAgent>,
    /// Where and when it was read, in a few words: `registry of 2026-11-20`.
    pub origin: String,
    /// Programs that install agents, but are not on the `PATH`.
    pub missing_installers: Vec<&'static str>,
}

impl RegistryIndex {
    /// What an agent needs to be installed, in a few words; `None`: it is not for this system.
    pub fn needs(&self, agent: &RegistryAgent) -> Option<&'static str> {
        let kind = agent.source.as_ref()?.kind;
        Some(kind.needs(kind.installer().is_some_and(|name| self.missing_installers.contains(&name))))
    }
}

impl RegistryAgent {
    /// The folder that it is installed in, below the folder of installed agents.
    pub fn folder(&self, agents: &Path) -> PathBuf {
        agents.join(&self.id).join(&self.version)
    }

    /// What installing it downloads and runs, as lines for the user.
    pub fn plan(&self, agents: &Path) -> Vec<String> {
        let folder = self.folder(agents);
        let Some(source) = &self.source else {
            return vec!["The registry has no version for this system.".to_owned()];
        };
        let mut lines: Vec<String> = Vec::new();
        if let Some(why) = &self.quarantine {
            lines.push(format!("The registry has withdrawn this agent: {why}"));
        }
        match source.kind {
            SourceKind::Npm => lines.push(format!(
                "Downloads the npm package {} and its dependencies. Their install scripts are not run; npm checks the \
                 checksums.",
                source.from
            )),
            SourceKind::Pypi => lines.push(format!(
                "Downloads the Python package {} and its dependencies as built packages, so that no setup script runs; \
                 uv checks the checksums.",
                source.from
            )),
            SourceKind::Archive => {
                lines.push(format!("Downloads {}", source.from));
                lines.push(match &source.sha256 {
                    Some(sum) => format!("SHA-256: {sum}"),
                    None => "The registry has no checksum for it.".to_owned(),
                });
            }
        }
        lines.push(format!("Folder: {}", folder.display()));
        if let Some(command) = self.install_line(agents) {
            lines.push(format!("Runs: {command}"));
        }
        let name = source.command.as_deref().unwrap_or("the command of the package");
        lines.push(match source.args.as_slice() {
            [] => format!("Starts: {name}"),
            args => format!("Starts: {name}, with {}", shell_words::join(args)),
        });
        // A value can send what the user enters to another server.
        lines.extend(source.env.iter().map(|(name, value)| format!("Environment variable: {name}={value}")));
        lines
    }

    /// The command that installs it; `None`: parlor unpacks it.
    pub fn install_line(&self, agents: &Path) -> Option<String> {
        let source = self.source.as_ref()?;
        let program = source.kind.installer()?;
        let args = install_args(source, &self.folder(agents));
        Some(shell_words::join(std::iter::once(program).chain(args.iter().map(String::as_str))))
    }
}

pub fn install_args(source: &AgentSource, folder: &Path) -> Vec<String> {
    let folder = folder.to_string_lossy().into_owned();
    let args: Vec<&str> = match source.kind {
        SourceKind::Npm => {
            vec![
                "install",
                "--prefix",
                &folder,
                "--ignore-scripts",
                "--no-audit",
                "--no-fund",
                "--",
                &source.from,
            ]
        }
        // The folder is in the environment.
        SourceKind::Pypi => vec!["tool", "install", "--no-build", "--", &source.from],
        SourceKind::Archive => Vec::new(),
    };
    args.into_iter().map(str::to_owned).collect()
}
