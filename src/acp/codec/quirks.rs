//! Quirks: small deviations of agents from the protocol, known by name or detected at run time.
//!
//! Invariants: an official shape never sets a quirk; a strict connection has none.

use crate::model::{AgentSpec, Profile};

/// A deviation from the protocol, as it is described to the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Quirk(pub &'static str);

impl Quirk {
    pub const MISSING_FILE_READS_EMPTY: Self =
        Self("A missing file is read as empty, because an error stops the agent.");
    pub const VERSION_AS_TEXT: Self = Self("The protocol version is a string.");
    pub const NO_VERSION: Self = Self("The agent sends no protocol version.");
    pub const FLAT_UPDATES: Self = Self("Updates are not wrapped in `update`.");
    pub const OWN_UPDATE_NAMES: Self = Self("Updates use non-standard names.");
    pub const NO_SESSION_ID: Self = Self("Messages have no session id; the only open session is assumed.");
    pub const BARE_TOOL_CONTENT: Self = Self("Tool content is sent as bare content blocks.");
    pub const FLAT_PERMISSIONS: Self =
        Self("Permission options use `id` instead of `optionId`, also in the response.");
    pub const HEADER_FRAMES: Self = Self("Messages use Content-Length headers.");
    pub const ARRAYS: Self = Self("Messages are sent in arrays.");
    pub const READY_LINE: Self = Self("The agent announces when it is ready.");
    pub const REPLAYS_RESULTS: Self =
        Self("In a replay, tool results are sent as user messages; they are hidden.");
    pub const WRAPPED_OUTPUT: Self =
        Self("The agent wraps tool output in extra lines; only the output is shown.");
    pub const INPUT_AS_CONTENT: Self = Self("Tool input is also sent as content; it is shown once.");
    pub const NO_TOOL_KINDS: Self = Self("Tool calls have no kind; it is read from their titles.");
    pub const MODE_IN_TEXT: Self = Self("A changed mode is sent as `[MODE_UPDATE] MODE` in the text.");
    pub const API_KEY_AS_TEXT: Self = Self("The key of a sign-in is sent as a text.");
}

/// Agents with known quirks, by program name, package argument, or reported name.
const BY_NAME: &[(&[&str], &[Quirk])] = &[
    (
        &["gemini", "gemini-cli", "@google/gemini-cli"],
        &[Quirk::MISSING_FILE_READS_EMPTY, Quirk::MODE_IN_TEXT, Quirk::API_KEY_AS_TEXT],
    ),
    (&["kimi", "kimi-cli", "Kimi Code CLI"], &[Quirk::INPUT_AS_CONTENT, Quirk::NO_TOOL_KINDS]),
];

/// The names in a command that may tell which agent it starts. Launchers such as `npx` have it in an argument.
pub fn words(spec: &AgentSpec) -> impl Iterator<Item = &str> {
    let parts = std::iter::once(&spec.command).chain(&spec.args);
    parts.flat_map(|word| [file_stem(word), without_version(word)])
}

pub fn is_known(name: &str) -> bool {
    !quirks_of(name).is_empty()
}

fn quirks_of(name: &str) -> &'static [Quirk] {
    let is_it = |known: &&str| known.eq_ignore_ascii_case(name);
    BY_NAME.iter().find(|(names, _)| names.iter().any(is_it)).map_or(&[], |(_, quirks)| quirks)
}

#[derive(Debug, Default)]
pub struct Quirks {
    known: Vec<Quirk>,
    pub is_strict: bool,
    /// Whether the configuration says that the agent follows the protocol.
    is_official: bool,
}

impl Quirks {
    pub fn of(spec: &AgentSpec) -> Self {
        let is_official = spec.wire.profile == Some(Profile::Official);
        let mut quirks = Self { is_strict: spec.wire.is_strict, is_official, ..Self::default() };
        words(spec).for_each(|word| quirks.seed(word));
        // Configured quirks are not reported.
        if spec.wire.has_headers {
            quirks.note(Quirk::HEADER_FRAMES);
        }
        quirks
    }

    pub fn seed(&mut self, name: &str) {
        if !self.is_official {
            for quirk in quirks_of(name) {
                self.note(*quirk);
            }
        }
    }

    pub fn note(&mut self, quirk: Quirk) -> bool {
        let is_new = !self.has(quirk) && !self.is_strict;
        self.known.extend(is_new.then_some(quirk));
        is_new
    }

    pub fn has(&self, quirk: Quirk) -> bool {
        self.known.contains(&quirk)
    }

    pub fn sentences(&self) -> Vec<String> {
        self.known.iter().map(|quirk| quirk.0.to_owned()).collect()
    }
}

fn file_stem(word: &str) -> &str {
    let name = word.rsplit(['/', '\\']).next().unwrap_or(word);
    let ends = [".sh", ".js", ".mjs", ".cmd", ".exe", ".py"];
    ends.iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name)
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
    fn agents_are_recognized_by_command_or_by_package() {
        for (command, args) in [
            ("gemini", vec!["--acp"]),
            ("/opt/agents/gemini.sh", vec![]),
            ("npx", vec!["-y", "@google/gemini-cli@latest", "--acp"]),
            ("node", vec!["/opt/node/gemini.js"]),
        ] {
            let args: Vec<String> = args.into_iter().map(str::to_owned).collect();
            let spec = AgentSpec { command: command.to_owned(), args, ..AgentSpec::default() };
            assert!(Quirks::of(&spec).has(Quirk::MISSING_FILE_READS_EMPTY), "{command}");
        }
        assert!(Quirks::of(&spec("claude")).sentences().is_empty());
    }

    fn spec(command: &str) -> AgentSpec {
        AgentSpec { command: command.to_owned(), ..AgentSpec::default() }
    }

    #[test]
    fn official_and_strict_agents_have_no_quirks() {
        let mut named = spec("gemini");
        named.wire.profile = Some(Profile::Official);
        assert!(Quirks::of(&named).sentences().is_empty());
        named.wire.is_strict = true;
        let mut strict = Quirks::of(&named);
        assert!(!strict.note(Quirk::FLAT_UPDATES));
        assert!(strict.sentences().is_empty());
    }

    #[test]
    fn a_learned_quirk_is_reported_once() {
        let mut decoder = crate::acp::codec::decoder::Decoder::default();
        decoder.learn(Quirk::FLAT_UPDATES);
        decoder.learn(Quirk::FLAT_UPDATES);
        assert_eq!(decoder.out.len(), 1);
        assert_eq!(decoder.quirks.sentences(), ["Updates are not wrapped in `update`."]);
    }
}
