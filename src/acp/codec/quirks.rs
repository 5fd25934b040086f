//! Quirks: deviations of agents from the protocol, preset by a profile or name and detected at run time.
//!
//! This module holds the tables and reports each quirk once; the decoders and `app` implement the workarounds.
//! Invariants: an official shape never sets a quirk; a strict connection has none.

use crate::model::{AgentEvent, AgentSpec, AnomalyKind, Profile};

use super::value::anomaly;

/// What is odd about an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Quirk {
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
    /// Speaks a protocol of its own: `session/create`, `prompt/send`, `$/cancelRequest`.
    OwnMethods,
    /// Updates come as events, and `done` ends a turn.
    Events,
    /// Wants its first word to be waited for before `initialize`, and perhaps to hear that again.
    SpeaksFirst,
    /// Wants a `shutdown` request before its stdin closes.
    Shutdown,
    /// Ruins what it keeps when two of it work in one folder.
    OnePerFolder,
    /// Keeps the session's id in the folder for the next start.
    KeepsSessionId,
    /// Wants MCP servers of type stdio to say so.
    TypedServers,
    /// Trims white space off both ends of each chunk.
    TrimmedChunks,
    /// Takes prompts of at most 100 KiB.
    ShortPrompts,
    /// Answers notifications that it does not know with errors.
    FewNotifications,
    /// A session is gone after a cancelled turn.
    DiesOnCancel,
    /// `null` as the answer to a load or a resume may mean that there is no such session.
    NullMeansGone,
    /// Lists and resumes sessions without saying so.
    HiddenList,
    /// Tells more to a client whose name begins with `banjo-`.
    WantsName,
    /// Resumes by `unstable_resumeSession`, without saying so.
    OldResume,
    /// Takes `mode` where `modeId` is refused.
    OldSetMode,
    /// Waits 30 s for an answer to a permission request, then takes it as a no.
    ShortPatience,
    /// Reads lines of at most 4 MiB.
    ShortLines,
    /// Reads nothing while it works on a turn.
    DeafInTurn,
    /// Has no way to say anything between two requests.
    MuteBetween,
    /// Goes on with a session of any client by its id alone, as long as its server runs.
    KnowsById,
    /// Messages come with `Content-Length` headers.
    HeaderFrames,
    /// Messages come in arrays.
    Arrays,
    /// Says that it is ready on a line of its own.
    ReadyLine,
    /// Tells as a message of the user what a call gave back to the model.
    ReplaysResults,
    /// Writes lines of its own around the output of a tool.
    WrappedOutput,
    /// Sends the input of a tool as its content.
    InputAsContent,
}

impl Quirk {
    /// One sentence for people.
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
            Self::ShortPatience => "The agent treats an unanswered question as declined after 30 s.",
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
        }
    }
}

/// Agents known by name: a program's file name, a package among the arguments, or what the agent calls
/// itself.
const BY_NAME: &[(&str, Quirk)] = &[
    ("gemini", Quirk::MissingFileReadsEmpty),
    ("gemini-cli", Quirk::MissingFileReadsEmpty),
    ("@google/gemini-cli", Quirk::MissingFileReadsEmpty),
    ("kimi", Quirk::InputAsContent),
    ("kimi-cli", Quirk::InputAsContent),
    ("Kimi Code CLI", Quirk::InputAsContent),
];

/// Systems known by name, in the same places.
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

/// What is odd about a system from the start; its updates and requests teach the rest.
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
            &[Quirk::WantsName, Quirk::OldResume, Quirk::OldSetMode, Quirk::ShortPatience, Quirk::ShortLines]
        }
    }
}

/// What is odd about a system that is reached over a network.
pub(super) fn of_remote(profile: Profile) -> &'static [Quirk] {
    match profile {
        // Its web socket has one thread for reading and for the turn.
        Profile::Banjo => &[Quirk::DeafInTurn],
        // It answers in the request itself; its sessions belong to the gateway, not to a connection.
        Profile::ZeptoClaw => &[Quirk::MuteBetween, Quirk::KnowsById],
        _ => &[],
    }
}

/// Quirks that only an agent can have that was known for what it is before it ran.
const BEFORE_THE_START: &[Quirk] =
    &[Quirk::SpeaksFirst, Quirk::OnePerFolder, Quirk::KeepsSessionId, Quirk::WantsName];

/// Quirks of a process that parlor started in the user's folder. An agent behind a URL has none of them: above all, a
/// shared server is never asked to shut down.
const OF_A_PROCESS: &[Quirk] =
    &[Quirk::SpeaksFirst, Quirk::Shutdown, Quirk::OnePerFolder, Quirk::KeepsSessionId];

/// The profile of an agent by what the user says, or by its command.
pub(crate) fn profile_of(spec: &AgentSpec) -> Option<Profile> {
    if spec.wire.is_strict {
        return None;
    }
    spec.wire.profile.or_else(|| {
        let words = std::iter::once(&spec.command).chain(&spec.args);
        words.flat_map(|word| [file_stem(word), without_version(word)]).find_map(profile_of_name)
    })
}

/// The names in an agent's command that tell its quirks.
pub(crate) fn telling_names(spec: &AgentSpec) -> Vec<String> {
    let words = std::iter::once(&spec.command).chain(&spec.args);
    let names = words.flat_map(|word| [file_stem(word), without_version(word)]);
    let is_known = |name: &&str| {
        profile_of_name(name).is_some() || BY_NAME.iter().any(|(known, _)| known.eq_ignore_ascii_case(name))
    };
    names.filter(is_known).map(str::to_owned).collect()
}

fn profile_of_name(name: &str) -> Option<Profile> {
    PROFILES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, profile)| *profile)
}

/// The quirks in force on a connection, in the order in which they were learned.
#[derive(Debug, Default)]
pub(super) struct Quirks {
    known: Vec<Quirk>,
    profile: Option<Profile>,
    is_strict: bool,
    is_remote: bool,
}

impl Quirks {
    /// Those known by the profile, or by the command. Launchers such as `npx` carry the agent's name in an
    /// argument.
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
        // What the user says is no news.
        if spec.wire.has_headers {
            quirks.note(Quirk::HeaderFrames);
        }
        quirks
    }

    /// Adds those known by this name.
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

    /// Adds those of a system. The first one stays: an agent is not two systems.
    fn set_profile(&mut self, profile: Profile) {
        if !self.is_strict && self.profile.is_none() {
            self.profile = Some(profile);
            for quirk in of_profile(profile) {
                self.note(*quirk);
            }
        }
    }

    /// The same once the agent runs: what had to be done before its start is not in force.
    pub(super) fn learn_profile(&mut self, profile: Profile) {
        if self.profile.is_none() {
            self.set_profile(profile);
            self.known.retain(|quirk| !BEFORE_THE_START.contains(quirk));
        }
    }

    /// The system that the agent is taken for.
    pub(super) fn profile(&self) -> Option<Profile> {
        self.profile
    }

    /// Whether nothing is to be mended.
    pub(super) fn is_strict(&self) -> bool {
        self.is_strict
    }

    /// Notes a quirk; the first time it is told as an anomaly.
    pub(super) fn learn(&mut self, quirk: Quirk, out: &mut Vec<AgentEvent>) {
        if !self.has(quirk) && !self.is_strict && !self.is_elsewhere(quirk) {
            self.known.push(quirk);
            out.push(anomaly(AnomalyKind::Dialect, quirk.sentence()));
        }
    }

    /// Notes a quirk that shows in the list of [`Self::sentences`] only.
    pub(super) fn note(&mut self, quirk: Quirk) {
        if !self.has(quirk) && !self.is_strict && !self.is_elsewhere(quirk) {
            self.known.push(quirk);
        }
    }

    /// A quirk that the agent turns out not to have.
    pub(super) fn forget(&mut self, quirk: Quirk) {
        self.known.retain(|known| *known != quirk);
    }

    /// Whether a quirk belongs to a process, and there is none of ours.
    fn is_elsewhere(&self, quirk: Quirk) -> bool {
        self.is_remote && OF_A_PROCESS.contains(&quirk)
    }

    /// Whether a quirk is in force.
    pub(super) fn has(&self, quirk: Quirk) -> bool {
        self.known.contains(&quirk)
    }

    /// All of them by name, for tests.
    #[cfg(test)]
    pub(super) fn names(&self) -> Vec<String> {
        self.known.iter().map(|quirk| format!("{quirk:?}")).collect()
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
            let spec = AgentSpec { command: command.to_owned(), args, ..AgentSpec::default() };
            assert!(Quirks::of(&spec).has(Quirk::MissingFileReadsEmpty), "{command}");
        }
        assert!(Quirks::of(&spec("claude")).sentences().is_empty());
    }

    fn spec(command: &str) -> AgentSpec {
        AgentSpec { command: command.to_owned(), ..AgentSpec::default() }
    }

    #[test]
    fn a_system_is_known_by_what_the_user_says_before_any_name() {
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
        assert_eq!(quirks.profile(), Some(Profile::ZeptoClaw), "what the user says stays");
        named.wire.is_strict = true;
        let mut strict = Quirks::of(&named);
        strict.learn(Quirk::FlatUpdates, &mut Vec::new());
        assert!(strict.sentences().is_empty() && strict.profile().is_none());
    }

    #[test]
    fn what_belongs_to_a_process_is_no_quirk_of_an_agent_behind_a_url() {
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
        assert!(OF_A_PROCESS.iter().all(|quirk| !found.has(*quirk)), "nor once it has introduced itself");
    }

    #[test]
    fn a_learned_quirk_is_told_once() {
        let mut quirks = Quirks::default();
        let mut out = Vec::new();
        quirks.learn(Quirk::FlatUpdates, &mut out);
        quirks.learn(Quirk::FlatUpdates, &mut out);
        assert_eq!(out.len(), 1);
        assert_eq!(quirks.sentences(), ["Updates are not wrapped in `update`."]);
    }
}
