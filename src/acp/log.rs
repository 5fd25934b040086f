//! The file format of the protocol log, and its reader.
//!
//! A log is untrusted, because it may be part of a bug report: invalid lines are counted and reported by number, sizes
//! and times are bounded. `docs/debugging.md` documents the format; `tap` writes it.

use std::collections::BTreeSet;
use std::io::{self, BufRead, Read};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::dialects::telling_names;
use super::envelope::{self, Message};
use super::tap::{Direction, Line};
use crate::model::{AgentSpec, Callbacks, CloseReason, Profile, Remote, WireSpec};
use crate::redact::redact;

const FORMAT: u32 = 1;
pub const MAX_BYTES: u64 = 256 << 20;
const MAX_REPORTED: usize = 10;
/// Longest accepted time, so that a forged timestamp cannot overflow the clock.
const MAX_TIME: Duration = Duration::from_secs(365 * 24 * 3600);

/// How messages of a connection are decoded: the text of a line with `"dir":"start"`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Start {
    format: u32,
    parlor: String,
    agent: Option<String>,
    profile: Option<String>,
    /// Known agent names in its command, for its quirks. The command itself may contain secrets.
    names: Vec<String>,
    strict: bool,
    headers: bool,
    /// The newest version of the protocol that was offered to it.
    protocol: u16,
    remote: bool,
    #[serde(flatten)]
    callbacks: Callbacks,
}

impl Start {
    pub fn of(spec: &AgentSpec) -> Self {
        let WireSpec { profile, is_strict, has_headers, protocol, .. } = &spec.wire;
        Self {
            format: FORMAT,
            parlor: env!("CARGO_PKG_VERSION").to_owned(),
            agent: Some(spec.name.clone()),
            profile: profile.map(|profile| profile.name().to_owned()),
            names: telling_names(spec),
            strict: *is_strict,
            headers: *has_headers,
            protocol: *protocol,
            remote: spec.remote.is_some(),
            callbacks: spec.callbacks,
        }
    }

    /// The agent in a replay. Its command is never run, and differs for each connection, as for different processes.
    pub fn spec(&self, conn: u64) -> AgentSpec {
        let remote = Remote { url: "https://replay.invalid".to_owned(), ..Remote::default() };
        AgentSpec {
            name: self.agent.clone().unwrap_or_else(|| "agent".to_owned()),
            command: format!("replay-{conn}"),
            args: self.names.clone(),
            callbacks: self.callbacks,
            wire: WireSpec {
                profile: self.profile.as_deref().and_then(Profile::of_name),
                is_strict: self.strict,
                has_headers: self.headers,
                protocol: self.protocol,
                ..WireSpec::default()
            },
            remote: self.remote.then_some(remote),
            ..AgentSpec::default()
        }
    }
}

/// Why a connection ended: the text of a line with `"dir":"end"`.
pub fn end_line(reason: &CloseReason) -> String {
    let mut reason = reason.clone();
    if let CloseReason::Exited { stderr_tail, .. } = &mut reason {
        for line in stderr_tail {
            *line = redact(line).into_owned();
        }
    }
    serde_json::to_string(&reason).unwrap_or_default()
}

#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The number of the line in the file, from 1.
    pub line: usize,
    /// Time since the start of the program; it never decreases.
    pub at: Duration,
    pub conn: u64,
    pub kind: EntryKind,
}

#[derive(Debug, Clone, PartialEq)]
pub enum EntryKind {
    Start(Box<Start>),
    End(Box<CloseReason>),
    Message(Direction, String),
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Log {
    pub entries: Vec<Entry>,
    /// How many runs of parlor appended to the file.
    pub runs: usize,
    pub broken: usize,
    /// The first unreadable lines: number and reason.
    pub reported: Vec<(usize, String)>,
}

impl Log {
    /// Reads one run of a log, from 1, by default the last. Fails for an unreadable or large file, or a missing run.
    pub fn read(file: impl Read, run: Option<usize>) -> io::Result<Self> {
        let mut file = io::BufReader::new(file.take(MAX_BYTES + 1));
        let (mut log, mut bytes, mut read) = (Self::default(), Vec::new(), 0);
        let (mut last, mut conns, mut now) = (0, BTreeSet::new(), Duration::ZERO);
        for line in 1.. {
            bytes.clear();
            let count = file.read_until(b'\n', &mut bytes)?;
            read += count as u64;
            if read > MAX_BYTES {
                let text = format!("larger than {} MiB; shorten the log", MAX_BYTES >> 20);
                return Err(io::Error::new(io::ErrorKind::FileTooLarge, text));
            }
            if count == 0 {
                break;
            }
            if bytes.trim_ascii().is_empty() {
                continue;
            }
            let parsed = parse(&bytes).map_err(|error| {
                log.broken += 1;
                if log.broken <= MAX_REPORTED {
                    log.reported.push((line, error));
                }
            });
            let Ok((Line { n, ms, conn, .. }, kind)) = parsed else { continue };
            // Each run appends to the file and numbers its lines from 1.
            let is_known = matches!(kind, EntryKind::Start(_)) && !conns.insert(conn);
            if log.runs == 0 || n < last || is_known {
                if run.is_some_and(|run| run == log.runs) && log.runs > 0 {
                    log.runs += 1;
                    break;
                }
                log.runs += 1;
                log.entries.clear();
                now = Duration::ZERO;
                conns = BTreeSet::from([conn]);
            }
            last = n;
            now = now.max(Duration::try_from_secs_f64(ms / 1e3).unwrap_or_default().min(MAX_TIME));
            log.entries.push(Entry { line, at: now, conn, kind });
        }
        if log.entries.is_empty() {
            let why = match log.reported.first() {
                Some((line, error)) => format!("line {line}: {error}"),
                None => "the log is empty".to_owned(),
            };
            let text = format!("{why}; expected a file written by --log-file");
            return Err(io::Error::new(io::ErrorKind::InvalidData, text));
        }
        match run {
            Some(run) if run == 0 || run > log.runs => {
                let text = format!("run {run} not found: the log has {} runs, numbered from 1", log.runs);
                Err(io::Error::new(io::ErrorKind::NotFound, text))
            }
            _ => Ok(log),
        }
    }

    /// The start line of a connection. If an old log has none, only the version in `initialize` is known.
    pub fn start_of(&self, conn: u64) -> Start {
        let mut own = self.entries.iter().filter(|entry| entry.conn == conn).map(|entry| &entry.kind);
        let start = own.clone().find_map(|kind| match kind {
            EntryKind::Start(start) => Some((**start).clone()),
            _ => None,
        });
        start.unwrap_or_else(|| {
            let offers_second = own.any(
                |kind| matches!(kind, EntryKind::Message(Direction::ToAgent, text) if offers_second(text)),
            );
            Start { protocol: if offers_second { 2 } else { 0 }, ..Start::default() }
        })
    }
}

fn offers_second(text: &str) -> bool {
    matches!(envelope::read(text), Ok(Message::Request { method, params, .. }) if method == "initialize"
        && params.and_then(envelope::protocol_version) == Some(2))
}

fn parse(bytes: &[u8]) -> Result<(Line<'_>, EntryKind), String> {
    let line: Line<'_> = serde_json::from_slice(bytes).map_err(|error| reason(&error))?;
    let message = |direction| EntryKind::Message(direction, line.text.to_string());
    let kind = match &*line.dir {
        "to" => message(Direction::ToAgent),
        "from" => message(Direction::FromAgent),
        "stderr" => message(Direction::Stderr),
        "start" => EntryKind::Start(serde_json::from_str(&line.text).map_err(|error| reason(&error))?),
        "end" => EntryKind::End(serde_json::from_str(&line.text).map_err(|error| reason(&error))?),
        _ => return Err("unknown \"dir\"; expected to, from, stderr, start or end".to_owned()),
    };
    Ok((line, kind))
}

/// A parse error without its line number, which is always 1.
fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.split(" at line ").next().unwrap_or(&text).chars().take(200).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ExitInfo;

    fn read(text: &str, run: Option<usize>) -> Result<Log, String> {
        Log::read(text.as_bytes(), run).map_err(|error| error.to_string())
    }

    #[test]
    fn broken_lines_are_counted_and_reported_by_number() {
        let log = read(
            "{\"n\":1,\"ms\":5,\"conn\":1,\"dir\":\"to\",\"text\":\"{}\"}\n\nnonsense\n{\"dir\":\"up\",\"text\":\"\"}\n\
             {\"n\":2,\"ms\":-1,\"conn\":1,\"dir\":\"from\",\"text\":\"x\"}\n{\"n\":3,\"ms\":1e300,\"dir\":\"stderr\",\"text\":\"\"}",
            None,
        )
        .unwrap();
        assert_eq!((log.entries.len(), log.broken), (3, 2));
        assert_eq!(log.reported.iter().map(|(line, _)| *line).collect::<Vec<_>>(), [3, 4]);
        // Times never decrease and never overflow.
        let times: Vec<Duration> = log.entries.iter().map(|entry| entry.at).collect();
        assert_eq!(times, [Duration::from_millis(5); 3]);
    }

    #[test]
    fn files_that_are_not_logs_are_rejected_with_the_line() {
        assert!(read("", None).unwrap_err().starts_with("the log is empty"));
        let error = read("hello\n", None).unwrap_err();
        assert!(error.starts_with("line 1: ") && error.contains("--log-file"), "{error}");
    }

    #[test]
    fn each_run_of_an_appended_file_can_be_read() {
        let line = |n: u64, text: &str| {
            format!("{{\"n\":{n},\"ms\":{n},\"conn\":1,\"dir\":\"from\",\"text\":\"{text}\"}}\n")
        };
        let text = [line(1, "a"), line(2, "b"), line(1, "c")].concat();
        let texts = |run| {
            let entries = read(&text, run).unwrap().entries;
            entries.into_iter().map(|entry| (entry.line, entry.kind)).collect::<Vec<_>>()
        };
        let message = |text: &str| EntryKind::Message(Direction::FromAgent, text.to_owned());
        assert_eq!(texts(Some(1)), [(1, message("a")), (2, message("b"))]);
        assert_eq!(texts(None), [(3, message("c"))]);
        assert_eq!(texts(Some(2)), texts(None));
        assert!(read(&text, Some(3)).unwrap_err().contains("the log has 2 runs"));
    }

    #[test]
    fn decoding_settings_are_saved_without_secrets() {
        let spec = AgentSpec {
            name: "mine".to_owned(),
            command: "/opt/gemini".to_owned(),
            args: vec!["--token=secret".to_owned()],
            wire: WireSpec { profile: Some(Profile::Banjo), protocol: 2, ..WireSpec::default() },
            callbacks: Callbacks::NONE,
            ..AgentSpec::default()
        };
        let text = serde_json::to_string(&Start::of(&spec)).unwrap();
        assert!(!text.contains("secret"), "{text}");
        let again: Start = serde_json::from_str(&text).unwrap();
        let again = again.spec(7);
        assert_eq!((&again.name, &again.wire, again.callbacks), (&spec.name, &spec.wire, spec.callbacks));
        assert_eq!(again.args, ["gemini"]);
        let reason = CloseReason::Exited {
            status: ExitInfo { code: Some(3), signal: None },
            stderr_tail: vec!["api_key=abc".to_owned()],
        };
        let text = end_line(&reason);
        assert!(text.starts_with(r#"{"reason":"exited","status":{"#) && !text.contains("abc"), "{text}");
        let CloseReason::Exited { status, .. } = serde_json::from_str(&text).unwrap() else {
            panic!("{text}");
        };
        assert_eq!(status.code, Some(3));
    }
}
