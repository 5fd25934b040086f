//! Quirks: deviations of agents from the protocol, preset by a profile or name and detected at run time.
//!
//! This module holds the tables and reports each quirk once; the decoders and `app` implement the workarounds.
//! Invariants: an official shape never sets a quirk; a strict connection has none.

use crate::model::{AgentEvent, AgentSpec, AnomalyKind, Profile};

use super::value::anomaly;

/// A deviation from the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Quirk {
    /// Stops at an error for a missing file; the response must be an empty text.
    MissingFileReadsEmpty,
    /// Sends the protocol version as a string.
    VersionAsText,
    /// Sends no protocol version.
    NoVersion,
    /// Sends updates without the `update` wrapper.
    FlatUpdates,
    /// Sends updates under non-standard names.
    OwnUpdateNames,
    /// Sends updates without a session id.
    NoSessionId,
    /// Sends tool content as bare blocks.
    BareToolContent,
    /// Permission options use `id`.
    FlatPermissions,
    /// Sends plan entries one at a time.
    SingleSteps,
    /// Uses its own protocol: `session/create`, `prompt/send`, `$/cancelRequest`.
    OwnMethods,
    /// Sends updates as events; `done` ends a turn.
    Events,
    /// Sends the first message; `initialize` has to wait for it and may have to be repeated.
    SpeaksFirst,
    /// Requires a `shutdown` request before its stdin is closed.
    Shutdown,
    /// Corrupts its data when two instances use one folder.
    OnePerFolder,
    /// Stores the session id in the folder for the next start.
    KeepsSessionId,
    /// Requires the type of stdio MCP servers.
    TypedServers,
    /// Trims the whitespace of each chunk.
    TrimmedChunks,
    /// Limits prompts to 100 KiB.
    ShortPrompts,
    /// Responds to unknown notifications with errors.
    FewNotifications,
    /// Drops a session after a cancelled turn.
    DiesOnCancel,
    /// Responds to load or resume of an unknown session with `null`.
    NullMeansGone,
    /// Lists and resumes sessions without advertising it.
    HiddenList,
    /// Sends more to a client whose name starts with `banjo-`.
    WantsName,
    /// Resumes with `unstable_resumeSession`, without advertising it.
    OldResume,
    /// Accepts `mode` instead of `modeId`.
    OldSetMode,
    /// Treats an unanswered permission request as rejected after 30 s.
    ShortTimeout,
    /// Limits messages to 4 MiB.
    ShortLines,
    /// Reads no input during a turn.
    DeafInTurn,
    /// Cannot send messages between requests.
    MuteBetween,
    /// Resumes a session of any client by its id while its server is running.
    KnowsById,
    /// Sends messages with `Content-Length` headers.
    HeaderFrames,
    /// Sends messages in arrays.
    Arrays,
    /// Sends a ready message.
    ReadyLine,
    /// Sends tool results as user messages in a replay.
    ReplaysResults,
    /// Wraps tool output in extra lines.
    WrappedOutput,
    /// Sends tool input also as content.
    InputAsContent,
    /// Sends tool calls without a kind.
    NoToolKinds,
    /// Sends a changed mode as a line of its text.
    ModeInText,
}

impl Quirk {
    fn sentence(self) -> &'static str {
        match self {
            Self::MissingFileReadsEmpty => {
                "A missing file is read as empty, because an error stops the agent."
            }
            Self::VersionAsText => "The protocol version is a string.",
            Self::NoVersion => "The agent sends no protocol version.",
            Self::FlatUpdates => "Updates are not wrapped in `update`.",
            Self::OwnUpdateNames => "Updates use non-standard names.",
            Self::NoSessionId => "Messages have no session id; the last session is assumed.",
            Self::BareToolContent => "Tool content is sent as bare content blocks.",
            Self::FlatPermissions => {
                "Permission options use `id` instead of `optionId`, also in the response."
            }
            Self::SingleSteps => "Plan entries are sent one at a time.",
            Self::OwnMethods => "The agent uses its own protocol instead of ACP.",
            Self::Events => "Updates are sent as events; a turn ends with `done` or with its response.",
            Self::SpeaksFirst => "parlor waits up to 750 ms for the agent's first message.",
            Self::Shutdown => "A shutdown request is sent before the agent's input is closed.",
            Self::OnePerFolder => "Only one instance per folder.",
            Self::KeepsSessionId => {
                "The session id is stored in .openoxide/sessions/.current for the next start."
            }
            Self::TypedServers => "MCP servers are sent with a `type` field.",
            Self::TrimmedChunks => {
                "Chunks have no leading or trailing whitespace; parlor restores the likely spaces."
            }
            Self::ShortPrompts => "Prompts are limited to 100 KiB of text.",
            Self::FewNotifications => {
                "parlor does not cancel its requests, because the agent treats a cancellation as an error."
            }
            Self::DiesOnCancel => "The session is reopened after a cancelled turn.",
            Self::NullMeansGone => {
                "An empty response to session/load may mean that the session does not exist."
            }
            Self::HiddenList => "The agent can list sessions without advertising it.",
            Self::WantsName => {
                "parlor identifies as `banjo-parlor`, so that the agent sends its models and options."
            }
            Self::OldResume => "Sessions are resumed with `unstable_resumeSession`.",
            Self::OldSetMode => "If a mode is rejected, its old name is tried.",
            Self::ShortTimeout => "The agent treats an unanswered question as declined after 30 s.",
            Self::ShortLines => "Messages to the agent are limited to 4 MiB.",
            Self::DeafInTurn => {
                "The agent reads no input during a turn: responses and cancellation arrive when it ends."
            }
            Self::MuteBetween => "Messages sent between turns are not delivered over this transport.",
            Self::KnowsById => {
                "A session can be resumed by its id while the agent's server is running; session/list shows \
                 whether it still exists."
            }
            Self::HeaderFrames => "Messages use Content-Length headers.",
            Self::Arrays => "Messages are sent in arrays.",
            Self::ReadyLine => "The agent announces when it is ready.",
            Self::ReplaysResults => "In a replay, tool results are sent as user messages; they are hidden.",
            Self::WrappedOutput => "The agent wraps tool output in extra lines; only the output is shown.",
            Self::InputAsContent => "Tool input is also sent as content; it is shown once.",
            Self::NoToolKinds => "Tool calls have no kind; it is read from their titles.",
            Self::ModeInText => "A changed mode is sent as `[MODE_UPDATE] MODE` in the text.",
        }
    }
}

/// Agents with known quirks, by program name, package argument, or reported name.
const BY_NAME: &[(&str, Quirk)] = &[
    ("gemini", Quirk::MissingFileReadsEmpty),
    ("gemini-cli", Quirk::MissingFileReadsEmpty),
    ("@google/gemini-cli", Quirk::MissingFileReadsEmpty),
    ("gemini", Quirk::ModeInText),
    ("gemini-cli", Quirk::ModeInText),
    ("@google/gemini-cli", Quirk::ModeInText),
    ("kimi", Quirk::InputAsContent),
    ("kimi-cli", Quirk::InputAsContent),
    ("Kimi Code CLI", Quirk::InputAsContent),
    ("kimi", Quirk::NoToolKinds),
    ("kimi-cli", Quirk::NoToolKinds),
    ("Kimi Code CLI", Quirk::NoToolKinds),
];

/// Profiles by name, in the same places.
const PROFILES: &[(&str, Profile)] = &[
    ("openoxide", Profile::OpenOxide),
    ("alex", Profile::Elephant),
    ("elephant", Profile::Elephant),
    ("elephant.ai", Profile::Elephant),
    ("zeptoclaw", Profile::ZeptoClaw),
    ("activecontext", Profile::ActiveContext),
    ("banjo", Profile::Banjo),
    ("banjo-duet", Profile::Banjo),
    ("Banjo Duet", Profile::Banjo),
];

/// Initial quirks of a profile; others are detected from messages.
fn of_profile(profile: Profile) -> &'static [Quirk] {
    match profile {
        Profile::Official => &[],
        Profile::OpenOxide => &[
            Quirk::OwnMethods,
            Quirk::Events,
            Quirk::SpeaksFirst,
            Quirk::Shutdown,
            Quirk::OnePerFolder,
            Quirk::KeepsSessionId,
        ],
        Profile::Elephant => &[Quirk::TypedServers, Quirk::TrimmedChunks],
        Profile::ZeptoClaw => &[Quirk::ShortPrompts, Quirk::FewNotifications],
        Profile::ActiveContext => &[Quirk::DiesOnCancel, Quirk::NullMeansGone, Quirk::HiddenList],
        Profile::Banjo => {
            &[Quirk::WantsName, Quirk::OldResume, Quirk::OldSetMode, Quirk::ShortTimeout, Quirk::ShortLines]
        }
    }
}

/// Quirks of a profile over a network.
pub(super) fn of_remote(profile: Profile) -> &'static [Quirk] {
    match profile {
        // Its WebSocket uses one thread for reading and the turn.
        Profile::Banjo => &[Quirk::DeafInTurn],
        // It responds in the HTTP response; sessions belong to the gateway, not to a connection.
        Profile::ZeptoClaw => &[Quirk::MuteBetween, Quirk::KnowsById],
        _ => &[],
    }
}

/// Quirks that apply only if the agent was identified before its start.
const BEFORE_THE_START: &[Quirk] =
    &[Quirk::SpeaksFirst, Quirk::OnePerFolder, Quirk::KeepsSessionId, Quirk::WantsName];

/// Quirks of local processes. They do not apply to remote agents; in particular, a shared server is never asked to
/// shut down.
const OF_A_PROCESS: &[Quirk] =
    &[Quirk::SpeaksFirst, Quirk::Shutdown, Quirk::OnePerFolder, Quirk::KeepsSessionId];

/// The profile from the configuration, or from the command.
pub(crate) fn profile_of(spec: &AgentSpec) -> Option<Profile> {
    if spec.wire.is_strict {
        return None;
    }
    spec.wire.profile.or_else(|| {
        let parts = std::iter::once(&spec.command).chain(&spec.args);
        parts.flat_map(|word| [file_stem(word), without_version(word)]).find_map(profile_of_name)
    })
}

/// The names in a command that identify quirks.
pub(crate) fn telling_names(spec: &AgentSpec) -> Vec<String> {
    let parts = std::iter::once(&spec.command).chain(&spec.args);
    let names = parts.flat_map(|word| [file_stem(word), without_version(word)]);
    let is_known = |name: &&str| {
        profile_of_name(name).is_some() || BY_NAME.iter().any(|(known, _)| known.eq_ignore_ascii_case(name))
    };
    names.filter(is_known).map(str::to_owned).collect()
}

fn profile_of_name(name: &str) -> Option<Profile> {
    PROFILES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, profile)| *profile)
}

/// The quirks of a connection, in order of detection.
#[derive(Debug, Default)]
pub(super) struct Quirks {
    known: Vec<Quirk>,
    profile: Option<Profile>,
    is_strict: bool,
    is_remote: bool,
}

impl Quirks {
    /// The quirks of the profile or the command. Launchers such as `npx` have the agent's name in an argument.
    pub(super) fn of(spec: &AgentSpec) -> Self {
        let is_remote = spec.remote.is_some();
        let mut quirks = Self { is_strict: spec.wire.is_strict, is_remote, ..Self::default() };
        if let Some(profile) = profile_of(spec) {
            quirks.set_profile(profile);
        }
        for word in std::iter::once(&spec.command).chain(&spec.args) {
            quirks.seed(file_stem(word));
            quirks.seed(without_version(word));
        }
        // Configured quirks are not reported.
        if spec.wire.has_headers {
            quirks.note(Quirk::HeaderFrames);
        }
        quirks
    }

    /// Adds the quirks of a name.
    pub(super) fn seed(&mut self, name: &str) {
        if let Some(profile) = profile_of_name(name) {
            self.learn_profile(profile);
        }
        if self.profile != Some(Profile::Official) {
            for (_, quirk) in BY_NAME.iter().filter(|(known, _)| known.eq_ignore_ascii_case(name)) {
                self.note(*quirk);
            }
        }
    }

    /// Adds the quirks of a profile, unless there is one already.
    fn set_profile(&mut self, profile: Profile) {
        if !self.is_strict && self.profile.is_none() {
            self.profile = Some(profile);
            for quirk in of_profile(profile) {
                self.note(*quirk);
            }
        }
    }

    /// The same for a running agent, without the quirks that apply before the start.
    pub(super) fn learn_profile(&mut self, profile: Profile) {
        if self.profile.is_none() {
            self.set_profile(profile);
            self.known.retain(|quirk| !BEFORE_THE_START.contains(quirk));
        }
    }

    /// The profile of the agent.
    pub(super) fn profile(&self) -> Option<Profile> {
        self.profile
    }

    /// Whether workarounds are disabled.
    pub(super) fn is_strict(&self) -> bool {
        self.is_strict
    }

    /// Sets a quirk and reports it the first time as an anomaly.
    pub(super) fn learn(&mut self, quirk: Quirk, out: &mut Vec<AgentEvent>) {
        if !self.has(quirk) && !self.is_strict && !self.is_elsewhere(quirk) {
            self.known.push(quirk);
            out.push(anomaly(AnomalyKind::Dialect, quirk.sentence()));
        }
    }

    /// Sets a quirk that is shown only in [`Self::sentences`].
    pub(super) fn note(&mut self, quirk: Quirk) {
        if !self.has(quirk) && !self.is_strict && !self.is_elsewhere(quirk) {
            self.known.push(quirk);
        }
    }

    /// Removes a quirk that the agent does not have.
    pub(super) fn forget(&mut self, quirk: Quirk) {
        self.known.retain(|known| *known != quirk);
    }

    /// Whether a quirk applies to local processes, and the agent is remote.
    fn is_elsewhere(&self, quirk: Quirk) -> bool {
        self.is_remote && OF_A_PROCESS.contains(&quirk)
    }

    /// Whether the agent has a quirk.
    pub(super) fn has(&self, quirk: Quirk) -> bool {
        self.known.contains(&quirk)
    }

    /// The names of all quirks, for tests.
    #[cfg(test)]
    pub(super) fn names(&self) -> Vec<String> {
        self.known.iter().map(|quirk| format!("{quirk:?}")).collect()
    }

    /// Descriptions of all quirks.
    pub(super) fn sentences(&self) -> Vec<String> {
        self.known.iter().map(|quirk| quirk.sentence().to_owned()).collect()
    }
}

/// The file name of a path without a script extension.
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
    fn agents_are_recognized_by_command_or_by_package() {
        for (command, args) in [
            ("gemini", vec!["--acp"]),
            ("/opt/agents/gemini.sh", vec![]),
            ("npx", vec!["-y", "@google/gemini-cli@latest", "--acp"]),
            ("node", vec!["/opt/node/gemini.js"]),
        ] {
            let args: Vec<String> = args.into_iter().map(str::to_owned).collect();
            let spec = AgentSpec { command: command.to_owned(), args, ..AgentSpec::default() };
            assert!(Quirks::of(&spec).has(Quirk::MissingFileReadsEmpty), "{command}");
        }
        assert!(Quirks::of(&spec("claude")).sentences().is_empty());
    }

    fn spec(command: &str) -> AgentSpec {
        AgentSpec { command: command.to_owned(), ..AgentSpec::default() }
    }

    #[test]
    fn a_configured_profile_takes_precedence_over_names() {
        for (command, profile) in [
            ("openoxide", Profile::OpenOxide),
            ("/opt/bin/alex", Profile::Elephant),
            ("zeptoclaw", Profile::ZeptoClaw),
            ("banjo", Profile::Banjo),
        ] {
            assert_eq!(profile_of(&spec(command)), Some(profile), "{command}");
        }
        let args = ["-m", "activecontext"].map(str::to_owned).to_vec();
        let python = AgentSpec { args, ..spec("python3") };
        assert_eq!(profile_of(&python), Some(Profile::ActiveContext));
        let mut named = spec("banjo");
        named.wire.profile = Some(Profile::Official);
        assert!(Quirks::of(&named).sentences().is_empty());
        named.wire.profile = Some(Profile::ZeptoClaw);
        let mut quirks = Quirks::of(&named);
        assert!(quirks.has(Quirk::ShortPrompts) && !quirks.has(Quirk::WantsName));
        quirks.seed("Banjo Duet");
        assert_eq!(quirks.profile(), Some(Profile::ZeptoClaw), "the configured profile is not replaced");
        named.wire.is_strict = true;
        let mut strict = Quirks::of(&named);
        strict.learn(Quirk::FlatUpdates, &mut Vec::new());
        assert!(strict.sentences().is_empty() && strict.profile().is_none());
    }

    #[test]
    fn remote_agents_do_not_get_quirks_of_local_processes() {
        let mut oxide = spec("");
        oxide.wire.profile = Some(Profile::OpenOxide);
        assert!(Quirks::of(&oxide).has(Quirk::SpeaksFirst));
        oxide.remote = Some(crate::model::Remote::default());
        let quirks = Quirks::of(&oxide);
        assert!(quirks.has(Quirk::OwnMethods));
        assert!(OF_A_PROCESS.iter().all(|quirk| !quirks.has(*quirk)));
        oxide.wire.profile = None;
        let mut found = Quirks::of(&oxide);
        found.learn_profile(Profile::OpenOxide);
        assert!(found.has(Quirk::OwnMethods));
        assert!(OF_A_PROCESS.iter().all(|quirk| !found.has(*quirk)), "also not after initialize");
    }

    #[test]
    fn a_learned_quirk_is_reported_once() {
        let mut quirks = Quirks::default();
        let mut out = Vec::new();
        quirks.learn(Quirk::FlatUpdates, &mut out);
        quirks.learn(Quirk::FlatUpdates, &mut out);
        assert_eq!(out.len(), 1);
        assert_eq!(quirks.sentences(), ["Updates are not wrapped in `update`."]);
    }
}
