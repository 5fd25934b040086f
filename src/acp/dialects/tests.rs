//! Golden tests of the translators: messages of parlor and of the agent in, translated messages out.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::time::Duration;

use proptest::prelude::*;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::*;
use crate::acp::codec::Codec;
use crate::acp::codec::tests::mutations::{apply, breaks};
use crate::acp::codec::tests::{call_named, golden_settings};
use crate::acp::envelope::{self, Message};
use crate::model::{AgentInfo, Remote};

const GOLDEN: &[(&str, &str)] = &[
    ("openoxide", include_str!("golden/openoxide.json")),
    ("elephant", include_str!("golden/elephant.json")),
    ("zeptoclaw", include_str!("golden/zeptoclaw.json")),
    ("activecontext", include_str!("golden/activecontext.json")),
    ("banjo", include_str!("golden/banjo.json")),
];

#[derive(Debug, Clone, Deserialize)]
struct Case {
    name: String,
    #[serde(default)]
    remote: bool,
    /// The response to `initialize` by which the system is recognized; otherwise it is known by its command.
    initialize: Option<Value>,
    steps: Vec<Step>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Step {
    /// A call of parlor, by name; the ids begin at 1.
    Call(String),
    Cancel(u64),
    Withdraw(u64),
    /// A message of the agent.
    Receive(Value),
    /// The time that passes, in seconds.
    Wait(u64),
}

fn spec(command: &str, is_remote: bool) -> AgentSpec {
    let remote = is_remote.then(Remote::default);
    AgentSpec { command: command.to_owned(), remote, ..AgentSpec::default() }
}

impl Case {
    fn run(&self, system: &str) -> String {
        let mut report = String::new();
        let mut dialect = match &self.initialize {
            None => before_start(&spec(system, self.remote)),
            Some(result) => {
                let mut dialect = recognized(&result.to_string(), &spec("other", self.remote)).unwrap();
                let translated = dialect.initialized(&result.to_string());
                writeln!(report, "initialized {}", translated.unwrap_or_else(|| "unchanged".to_owned()))
                    .unwrap();
                let mut info = AgentInfo::default();
                dialect.describe(&mut info);
                writeln!(report, "{}", info.quirks.join("\n")).unwrap();
                dialect
            }
        };
        let mut codec = Codec::new(&spec(system, self.remote));
        let (mut now, mut last_id) = (Instant::now(), 0);
        let mut answered = BTreeSet::new();
        for step in &self.steps {
            let mut out = Translation::new(now);
            match step {
                Step::Call(name) => {
                    last_id += 1;
                    let call = call_named(name);
                    let mut message = codec.call(&call).unwrap();
                    match dialect.call(last_id, &call, &mut message) {
                        Ok(()) => writeln!(report, "-> {last_id} {} {}", message.0, message.1).unwrap(),
                        Err(error) => writeln!(report, "not sent: {error}").unwrap(),
                    }
                }
                Step::Cancel(prompt) => {
                    writeln!(report, "-> {:?}", dialect.cancel(&"s1".into(), Some(*prompt))).unwrap();
                }
                Step::Withdraw(id) => writeln!(report, "-> {:?}", dialect.withdraw(*id)).unwrap(),
                Step::Receive(message) => {
                    let text = message.to_string();
                    let Ok(message) = envelope::read(&text) else { continue };
                    if !dialect.receive(&message, &text, &mut out) {
                        writeln!(report, "unchanged {text}").unwrap();
                    } else if out.to_agent.is_empty() && out.to_parlor.is_empty() {
                        writeln!(report, "nothing for {text}").unwrap();
                    }
                }
                Step::Wait(seconds) => {
                    now += Duration::from_secs(*seconds);
                    out.now = now;
                    if dialect.deadline().is_some_and(|at| at <= now) {
                        dialect.on_deadline(&mut out);
                    }
                }
            }
            for (id, (method, params)) in out.to_agent {
                writeln!(report, "-> {id} {method} {params}").unwrap();
            }
            for text in &out.to_parlor {
                let message = envelope::read(text).expect("a message of the protocol");
                if let Message::Response { id, .. } = message {
                    assert!(answered.insert(id.to_owned()), "a second response: {text}");
                }
            }
            for text in out.to_parlor.iter().map(String::as_str).chain(out.problems) {
                writeln!(report, "<- {text}").unwrap();
            }
        }
        report
    }
}

#[test]
fn golden_files() {
    golden_settings().bind(|| {
        for (system, text) in GOLDEN {
            let cases: Vec<Case> = serde_json::from_str(text).unwrap();
            let mut report = String::new();
            for case in cases {
                write!(report, "=== {}\n{}\n", case.name, case.run(system)).unwrap();
            }
            insta::assert_snapshot!(*system, report);
        }
    });
}

#[test]
fn systems_are_known_by_command_and_configuration() {
    for (command, profile) in [
        ("openoxide", Profile::OpenOxide),
        ("/opt/bin/alex", Profile::Elephant),
        ("zeptoclaw", Profile::ZeptoClaw),
        ("banjo", Profile::Banjo),
    ] {
        assert_eq!(profile_of(&spec(command, false)), Some(profile), "{command}");
    }
    let args = ["-m", "activecontext"].map(str::to_owned).to_vec();
    assert_eq!(profile_of(&AgentSpec { args, ..spec("python3", false) }), Some(Profile::ActiveContext));
    let mut named = spec("banjo", false);
    named.wire.profile = Some(Profile::Official);
    assert!(before_start(&named).is_official());
    named.wire.profile = Some(Profile::ZeptoClaw);
    let banjo = r#"{"protocolVersion":1,"agentInfo":{"name":"Banjo Duet"}}"#;
    assert!(recognized(banjo, &named).is_none(), "the configuration takes precedence");
    named.wire.is_strict = true;
    assert!(before_start(&named).is_official());
}

#[test]
fn other_agents_have_no_translator() {
    for result in [
        r#"{"protocolVersion":1,"agentInfo":{"name":"claude"}}"#,
        r#"{"protocolVersion":"0.1","serverInfo":{"name":"other"},"agentCapabilities":{"loadSession":true}}"#,
        "{}",
        "null",
    ] {
        assert!(recognized(result, &spec("agent", false)).is_none(), "{result}");
    }
}

#[test]
fn remote_agents_do_not_get_the_habits_of_local_processes() {
    for (is_remote, is_early) in [(false, true), (false, false), (true, true), (true, false)] {
        let dialect = of(Profile::OpenOxide, &spec("", is_remote), is_early).unwrap();
        assert_eq!(dialect.speaks_first(), !is_remote && is_early);
        assert_eq!(dialect.shuts_down(), !is_remote);
    }
}

#[test]
fn agents_get_only_calls_that_they_advertise_or_document() {
    for (command, capabilities, resumes, loads, lists) in [
        ("alex", json!({"loadSession": true}), false, true, false),
        ("zeptoclaw", json!({"sessionCapabilities": {"list": {}}}), false, false, true),
        ("activecontext", json!({"loadSession": true}), false, true, true),
        ("banjo", json!({"sessionCapabilities": {}}), true, false, false),
        ("openoxide", json!({}), true, false, false),
    ] {
        let spec = spec(command, false);
        let mut info = Codec::new(&spec)
            .on_initialize(&json!({"protocolVersion": 1, "agentCapabilities": capabilities}).to_string())
            .unwrap();
        before_start(&spec).describe(&mut info);
        let can = info.capabilities;
        assert_eq!((can.can_resume, can.can_load, can.can_list), (resumes, loads, lists), "{command}");
        assert!(!can.can_fork && !can.can_close && !can.can_delete && !can.can_set_title, "{command}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn mutated_messages_never_panic(
        wounds in prop::collection::vec((prop::collection::vec(0usize..12, 1..6), breaks()), 1..4),
    ) {
        for (system, text) in GOLDEN {
            let cases: Vec<Case> = serde_json::from_str(text).unwrap();
            for mut case in cases {
                for step in &mut case.steps {
                    if let Step::Receive(message) = step {
                        for (path, how) in &wounds {
                            apply(message, path, how);
                        }
                    }
                }
                case.run(system);
            }
        }
    }
}
