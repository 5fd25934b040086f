//! Known agents and how to start them.
//!
//! A row has the command that the agent's installer puts on PATH, with the arguments for ACP on stdio. Sources are
//! the public agent registry and the agents' documentation. If an agent has had several commands, the newer row
//! comes first.

use std::collections::BTreeSet;
use std::ffi::OsString;

use crate::model::{AgentSpec, Callbacks, InstalledAgent};
use crate::program;

/// A known agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Known {
    /// Short name, for `--agent`.
    pub name: &'static str,
    pub title: &'static str,
    pub command: &'static str,
    /// Arguments that start it in ACP mode.
    pub args: &'static [&'static str],
    /// Ids in the public registry, and names in editors.
    pub aliases: &'static [&'static str],
}

macro_rules! known {
    ($($name:literal, $title:literal, $command:literal $args:tt, aka $aliases:tt;)+) => {
        /// All known agents, in the order of the picker: widely used ones first, then by name.
        pub const KNOWN: &[Known] = &[$(Known {
            name: $name,
            title: $title,
            command: $command,
            args: &$args,
            aliases: &$aliases,
        },)+];
    };
}

known! {
    "claude", "Claude Agent", "claude-agent-acp" [], aka ["claude-acp", "claude-code"];
    "claude", "Claude Code", "claude-code-acp" [], aka ["claude-code-acp"];
    "codex", "Codex", "codex-acp" [], aka ["codex-acp"];
    "gemini", "Gemini CLI", "gemini" ["--acp"], aka ["gemini-cli"];
    "copilot", "GitHub Copilot", "copilot" ["--acp"], aka ["github-copilot-cli"];
    "copilot-ls", "GitHub Copilot language server", "copilot-language-server" ["--acp"], aka ["github-copilot"];
    "cursor", "Cursor", "cursor-agent" ["acp"], aka ["cursor-agent"];
    "opencode", "OpenCode", "opencode" ["acp"], aka [];
    "goose", "goose", "goose" ["acp"], aka [];
    "qwen", "Qwen Code", "qwen" ["--acp"], aka ["qwen-code"];
    "kimi", "Kimi Code", "kimi" ["acp"], aka ["kimi-code", "kimi-cli"];
    "vibe", "Mistral Vibe", "vibe-acp" [], aka ["mistral-vibe"];
    "activecontext", "ActiveContext", "activecontext" [], aka [];
    "alex", "elephant.ai", "alex" ["acp"], aka ["elephant", "elephant.ai"];
    "amp", "Amp", "amp-acp" [], aka ["amp-acp"];
    "auggie", "Auggie", "auggie" ["--acp"], aka ["augment"];
    "banjo", "Banjo", "banjo" [], aka ["banjo-duet"];
    "cline", "Cline", "cline" ["--acp"], aka [];
    "codebuddy", "CodeBuddy Code", "codebuddy" ["--acp"], aka ["codebuddy-code"];
    "devin", "Devin", "devin" ["acp"], aka [];
    "droid", "Factory Droid", "droid" ["exec", "--output-format", "acp"], aka ["factory-droid"];
    "fast-agent", "fast-agent", "fast-agent-acp" [], aka ["fast-agent-acp"];
    "hermes", "Hermes Agent", "hermes" ["acp"], aka ["hermes-agent", "hermes-acp"];
    "junie", "Junie", "junie" ["--acp=true"], aka [];
    "kilo", "Kilo Code", "kilo" ["acp"], aka ["kilocode"];
    "kiro", "Kiro CLI", "kiro-cli" ["acp"], aka ["kiro-cli"];
    "openhands", "OpenHands", "openhands" ["acp"], aka [];
    "openoxide", "OpenOxide", "openoxide" ["--acp"], aka [];
    "pi", "pi", "pi-acp" [], aka ["pi-acp"];
    "qoder", "Qoder CLI", "qodercli" ["--acp"], aka ["qodercli"];
    "stakpak", "Stakpak", "stakpak" ["acp"], aka [];
    "zeptoclaw", "ZeptoClaw", "zeptoclaw" ["acp"], aka [];
}

impl Known {
    pub fn spec(&self, callbacks: Callbacks) -> AgentSpec {
        AgentSpec {
            name: self.name.to_owned(),
            title: Some(self.title.to_owned()),
            command: self.command.to_owned(),
            args: self.args.iter().map(|word| (*word).to_owned()).collect(),
            callbacks,
            ..AgentSpec::default()
        }
    }
}

/// A known agent by its name or one of its aliases, ignoring case.
pub fn known(name: &str) -> Option<&'static Known> {
    let is_it = |other: &&'static str| other.eq_ignore_ascii_case(name);
    KNOWN.iter().find(|known| is_it(&known.name) || known.aliases.iter().any(is_it))
}

/// The agent for a program that does not speak the protocol, because a separate adapter does.
pub fn adapter_of(program: &str) -> Option<&'static Known> {
    let is_adapted = |known: &&Known| known.name == program && known.command != program;
    KNOWN.iter().find(is_adapted).filter(|_| KNOWN.iter().all(|known| known.command != program))
}

/// The spec to start an installed agent, under the name that parlor knows it by.
pub fn spec_of_installed(agent: &InstalledAgent) -> AgentSpec {
    AgentSpec {
        name: known(&agent.id).map_or(agent.id.as_str(), |known| known.name).to_owned(),
        title: Some(agent.title.clone()),
        command: agent.command.to_string_lossy().into_owned(),
        args: agent.args.clone(),
        env: agent.env.clone(),
        ..AgentSpec::default()
    }
}

/// The known agents whose command is in `path`, a value of `PATH`, each with its display name.
///
/// The specs have the default callbacks; the caller applies the configured ones.
pub fn found_on_path(path: Option<OsString>) -> Vec<(AgentSpec, String)> {
    let Some(path) = path else { return Vec::new() };
    let mut names = BTreeSet::new();
    KNOWN
        .iter()
        .filter(|known| program::find_in(known.command, Some(&path), None).is_some())
        .filter(|known| names.insert(known.name))
        .map(|known| (known.spec(Callbacks::default()), known.title.to_owned()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::os::fixtures;

    #[test]
    fn names_and_aliases_are_unique() {
        for known in KNOWN {
            assert!(
                !known.title.is_empty() && !known.command.contains(char::is_whitespace),
                "{}",
                known.name
            );
            for word in known.aliases.iter().chain([&known.name]) {
                let others = KNOWN.iter().filter(|other| other.name != known.name);
                let mut clashes = others.filter(|other| other.name == *word || other.aliases.contains(word));
                assert_eq!(clashes.next(), None, "{word} names two agents");
            }
        }
        assert_eq!(known("Claude-Code-ACP").unwrap().command, "claude-code-acp");
        assert_eq!(known("mistral-vibe").unwrap().name, "vibe");
        assert_eq!(known("nobody"), None);
        assert_eq!(adapter_of("claude").map(|known| known.command), Some("claude-agent-acp"));
        for program in ["gemini", "claude-agent-acp", "nobody"] {
            assert_eq!(adapter_of(program), None);
        }
    }

    #[test]
    fn only_executables_in_path_are_found() {
        let folder = tempfile::tempdir().unwrap();
        for (name, mode) in
            [("gemini", 0o755), ("goose", 0o644), ("claude-code-acp", 0o755), ("claude-agent-acp", 0o755)]
        {
            let file = folder.path().join(name);
            std::fs::write(&file, "#!/bin/sh\n").unwrap();
            fixtures::set_mode(&file, mode);
        }
        let found = found_on_path(Some(folder.path().as_os_str().to_owned()));
        let lines: Vec<String> = found.iter().map(|(spec, _)| spec.command_line()).collect();
        assert_eq!(
            lines,
            ["claude-agent-acp", "gemini --acp"],
            "goose is not executable; claude is listed once"
        );
        assert_eq!(found_on_path(None), []);
        assert_eq!(found_on_path(Some(OsString::from("/nowhere"))), []);
    }
}
