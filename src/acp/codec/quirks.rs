//! Quirks: facts about single agents and dialects, seeded by name and learned from evidence.
//!
//! Duty: the tables, and telling each quirk once. Not its duty: what to do about one (the decoders, `app`).
//! Invariant: an official shape never teaches a quirk.

use crate::model::{AgentEvent, AnomalyKind};

use super::value::anomaly;

/// What is odd about an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Quirk {
    /// Takes any error for a missing file as fatal: the answer must be an empty text.
    MissingFileReadsEmpty,
    /// Tells the protocol version as a text.
    VersionAsText,
    /// Tells no protocol version.
    NoVersion,
    /// Updates come without their `update` wrapper.
    FlatUpdates,
    /// Updates come under names of its own.
    OwnUpdateNames,
    /// Updates come without a session id.
    NoSessionId,
    /// Tool content comes as bare blocks.
    BareToolContent,
    /// Permission options are keyed by `id`.
    FlatPermissions,
    /// Steps of a plan come one by one.
    SingleSteps,
}

impl Quirk {
    /// One sentence for people.
    fn sentence(self) -> &'static str {
        match self {
            Self::MissingFileReadsEmpty => {
                "A missing file reads as empty, because the agent stops at an error."
            }
            Self::VersionAsText => "The protocol version comes as a text.",
            Self::NoVersion => "The agent tells no protocol version.",
            Self::FlatUpdates => "Updates come without their wrapper.",
            Self::OwnUpdateNames => "Updates come under names that are not the protocol's.",
            Self::NoSessionId => "Messages come without a session id and are taken for the last session.",
            Self::BareToolContent => "Tool content comes as bare blocks.",
            Self::FlatPermissions => "Permission options are keyed by `id`, and are answered in that form.",
            Self::SingleSteps => "Steps of a plan come one by one.",
        }
    }
}

/// Agents known by name: a program's file name, a package among the arguments, or what the agent calls
/// itself.
const BY_NAME: &[(&str, Quirk)] = &[
    ("gemini", Quirk::MissingFileReadsEmpty),
    ("gemini-cli", Quirk::MissingFileReadsEmpty),
    ("@google/gemini-cli", Quirk::MissingFileReadsEmpty),
];

/// The quirks in force on a connection, in the order in which they were learned.
#[derive(Debug, Default)]
pub(super) struct Quirks {
    known: Vec<Quirk>,
}

impl Quirks {
    /// Those known by the command. Launchers such as `npx` carry the agent's name in an argument.
    pub(super) fn of_command(command: &str, args: &[String]) -> Self {
        let mut quirks = Self::default();
        for word in std::iter::once(command).chain(args.iter().map(String::as_str)) {
            quirks.seed(file_stem(word));
            quirks.seed(without_version(word));
        }
        quirks
    }

    /// Adds those known by this name.
    pub(super) fn seed(&mut self, name: &str) {
        for (known, quirk) in BY_NAME {
            if known.eq_ignore_ascii_case(name) && !self.has(*quirk) {
                self.known.push(*quirk);
            }
        }
    }

    /// Notes a quirk; the first time it is told as an anomaly.
    pub(super) fn learn(&mut self, quirk: Quirk, out: &mut Vec<AgentEvent>) {
        if !self.has(quirk) {
            self.known.push(quirk);
            out.push(anomaly(AnomalyKind::Dialect, quirk.sentence()));
        }
    }

    /// Notes a quirk that shows in the list of [`Self::sentences`] only.
    pub(super) fn note(&mut self, quirk: Quirk) {
        if !self.has(quirk) {
            self.known.push(quirk);
        }
    }

    /// Whether a quirk is in force.
    pub(super) fn has(&self, quirk: Quirk) -> bool {
        self.known.contains(&quirk)
    }

    /// All of them, for people.
    pub(super) fn sentences(&self) -> Vec<String> {
        self.known.iter().map(|quirk| quirk.sentence().to_owned()).collect()
    }
}

/// The file name of a path without a script's ending.
fn file_stem(word: &str) -> &str {
    let name = word.rsplit(['/', '\\']).next().unwrap_or(word);
    [".sh", ".js", ".mjs", ".cmd", ".exe", ".py"]
        .iter()
        .find_map(|end| name.strip_suffix(end))
        .unwrap_or(name)
}

/// A package without its version: `@google/gemini-cli@latest` is `@google/gemini-cli`.
fn without_version(word: &str) -> &str {
    match word.rfind('@') {
        Some(at) if at > 0 => word.get(..at).unwrap_or(word),
        _ => word,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_is_known_by_its_command_or_by_the_package_that_a_launcher_starts() {
        for (command, args) in [
            ("gemini", vec!["--acp"]),
            ("/opt/agents/gemini.sh", vec![]),
            ("npx", vec!["-y", "@google/gemini-cli@latest", "--acp"]),
            ("node", vec!["/opt/node/gemini.js"]),
        ] {
            let args: Vec<String> = args.into_iter().map(str::to_owned).collect();
            assert!(Quirks::of_command(command, &args).has(Quirk::MissingFileReadsEmpty), "{command}");
        }
        assert!(Quirks::of_command("claude", &[]).sentences().is_empty());
    }

    #[test]
    fn a_learned_quirk_is_told_once() {
        let mut quirks = Quirks::default();
        let mut out = Vec::new();
        quirks.learn(Quirk::FlatUpdates, &mut out);
        quirks.learn(Quirk::FlatUpdates, &mut out);
        assert_eq!(out.len(), 1);
        assert_eq!(quirks.sentences(), ["Updates come without their wrapper."]);
    }
}
