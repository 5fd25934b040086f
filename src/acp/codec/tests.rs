//! Golden tests of the codec.
//!
//! Each message in `golden/*.json` is decoded; the snapshots `golden/*.snap` have the results. `conformance` tests
//! outgoing messages, `mutations` invalid ones.

mod conformance;
pub(in crate::acp) mod mutations;
mod v2;

use std::fmt::Debug;
use std::fmt::Write as _;

use serde_json::Value;

use super::*;
use crate::model::{AgentRequest, RpcError};
use crate::model::{ContentBlock, SessionId, SessionWorkspace};

/// The golden files; each has one snapshot.
pub(super) const GOLDEN: &[(&str, &str)] = &[
    ("initialize", include_str!("golden/initialize.json")),
    ("updates", include_str!("golden/updates.json")),
    ("tools", include_str!("golden/tools.json")),
    ("habits", include_str!("golden/habits.json")),
    ("dialects", include_str!("golden/dialects.json")),
    ("requests", include_str!("golden/requests.json")),
    ("replies", include_str!("golden/replies.json")),
    ("elephant", include_str!("golden/elephant.json")),
    ("zeptoclaw", include_str!("golden/zeptoclaw.json")),
    ("activecontext", include_str!("golden/activecontext.json")),
    ("banjo", include_str!("golden/banjo.json")),
    ("strict", include_str!("golden/strict.json")),
    ("wrappers", include_str!("golden/wrappers.json")),
    ("v2", include_str!("golden/v2.json")),
];

/// A test case: a message of one kind (`notify`, `ask`, `initialize`, or `reply` to the named call).
#[derive(Debug, Clone, serde::Deserialize)]
pub(super) struct Case {
    /// A description.
    name: String,
    /// The method of a notification.
    notify: Option<String>,
    /// The method of a request.
    ask: Option<String>,
    /// The call of a response.
    reply: Option<String>,
    /// Whether it is the result of `initialize`.
    #[serde(default)]
    initialize: bool,
    /// The agent's command, which may imply quirks.
    #[serde(default)]
    agent: Option<String>,
    #[serde(default)]
    strict: bool,
    /// Whether version 2 was negotiated.
    #[serde(default)]
    v2: bool,
    /// The params or results of the messages, which are decoded in order.
    #[serde(default)]
    json: Vec<Value>,
}

pub(super) fn cases(text: &str) -> Vec<Case> {
    serde_json::from_str(text).unwrap()
}

pub(super) fn codec() -> Codec {
    Codec::new(&AgentSpec { command: "agent".to_owned(), ..AgentSpec::default() })
}

pub(in crate::acp) fn call_named(name: &str) -> Call {
    let session = SessionId::from("s1");
    let workspace = SessionWorkspace { cwd: "/w".into(), ..SessionWorkspace::default() };
    match name {
        "new" => Call::NewSession(workspace),
        "load" => Call::LoadSession(session, workspace),
        "resume" => Call::ResumeSession(session, workspace),
        "fork" => Call::ForkSession(session, workspace, 2),
        "list" => Call::ListSessions { cwd: None, cursor: None },
        "prompt" => Call::Prompt(session, vec![ContentBlock::Text("hi".into())]),
        "long prompt" => Call::Prompt(session, vec![ContentBlock::Text("x".repeat(102_401).into())]),
        "endless prompt" => Call::Prompt(session, vec![ContentBlock::Text("x".repeat(5 << 20).into())]),
        "new with a server" => Call::NewSession(SessionWorkspace {
            mcp_servers: vec![crate::model::McpServer::Stdio {
                name: "files".to_owned(),
                command: "/bin/mcp".into(),
                args: Vec::new(),
                env: Vec::new(),
            }],
            ..workspace
        }),
        "set_option" => Call::SetOption(session, "o".to_owned(), crate::model::ConfigValue::Bool(true)),
        "set_mode" => Call::SetMode(session, "m".into()),
        "set_model" => Call::SetModel(session, "m".into()),
        "set_title" => Call::SetTitle(session, "asked".to_owned()),
        "close" => Call::CloseSession(session),
        other => panic!("no call {other}"),
    }
}

/// The debug output without empty fields, and with single-line brackets joined.
fn digest(value: &impl Debug) -> String {
    let pretty = format!("{value:#?}");
    let mut lines: Vec<String> = Vec::new();
    for line in pretty.lines() {
        if [": Keep,", ": None,", ": [],", ": false,"].iter().any(|end| line.ends_with(end)) {
            continue;
        }
        let closes = line.trim_start().starts_with([')', ']', '}']);
        match lines.as_slice() {
            [.., open, inner]
                if closes && open.ends_with(['(', '[', '{']) && !inner.ends_with(['(', '[', '{']) =>
            {
                let one = format!("{open}{}{}", inner.trim().trim_end_matches(','), line.trim_start());
                lines.truncate(lines.len() - 2);
                lines.push(one);
            }
            _ => lines.push(line.to_owned()),
        }
    }
    lines.join("\n")
}

impl Case {
    /// The codec for this case's agent.
    pub(super) fn codec(&self) -> Codec {
        let command = self.agent.clone().unwrap_or_else(|| "agent".to_owned());
        let mut spec = AgentSpec { command, ..AgentSpec::default() };
        spec.wire.is_strict = self.strict;
        spec.wire.protocol = if self.v2 { 2 } else { 1 };
        let mut codec = Codec::new(&spec);
        if self.v2 {
            let hello =
                r#"{"protocolVersion":2,"info":{"name":"x","version":"1"},"capabilities":{"session":{}}}"#;
            codec.on_initialize(hello).unwrap();
        }
        codec
    }

    /// Decodes the messages and returns a description of the result.
    pub(super) fn run(&self, codec: &mut Codec) -> String {
        let mut report = String::new();
        let mut out = Vec::new();
        for message in &self.json {
            let text = message.to_string();
            let result = if self.initialize {
                Some(digest(&codec.on_initialize(&text)))
            } else if let Some(method) = &self.notify {
                (!codec.notification(method, Some(&text), &mut out)).then(|| "unknown method".to_owned())
            } else if let Some(method) = &self.ask {
                Some(digest(&codec.request(method, Some(&text), &mut out)))
            } else {
                let call = call_named(self.reply.as_deref().unwrap());
                Some(digest(&codec.reply(&call, &text, &mut out)))
            };
            if let Some(result) = result {
                writeln!(report, "{result}").unwrap();
            }
        }
        for event in &out {
            writeln!(report, "{}", digest(event)).unwrap();
        }
        for news in codec.take_turn_news() {
            if !matches!(news, TurnNews::Went(_)) {
                writeln!(report, "{}", digest(&news)).unwrap();
            }
        }
        if self.agent.is_some() {
            writeln!(report, "quirks: {}", codec.decoder.quirks.sentences().join(" ")).unwrap();
        }
        report
    }
}

/// Snapshots are in the folder `golden` beside the tests.
pub(in crate::acp) fn golden_settings() -> insta::Settings {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("golden");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings
}

#[test]
fn golden_files() {
    golden_settings().bind(|| {
        for (file, text) in GOLDEN {
            let mut report = String::new();
            for case in cases(text) {
                write!(report, "=== {}\n{}\n", case.name, case.run(&mut case.codec())).unwrap();
            }
            insta::assert_snapshot!(*file, report);
        }
    });
}

#[test]
fn the_fast_path_and_the_full_decoder_agree() {
    for text in [
        r#"{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"a\n\"b\" ü"}}}"#,
        r#"{"sessionId":"s","update":{"sessionUpdate":"agent_thought_chunk","messageId":"m","content":{"type":"text","text":"x"}}}"#,
        r#"{"update":{"content":{"text":"x","type":"text","annotations":null},"sessionUpdate":"user_message_chunk","_meta":{"k":1}},"sessionId":"s","_meta":null}"#,
        r#"{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","messageId":null,"content":{"type":"text","text":""}}}"#,
    ] {
        for version in [0, 2] {
            let decoder = || {
                let mut decoder = Decoder::default();
                decoder.is_v2 = version == 2;
                decoder
            };
            let (mut fast, mut long) = (decoder(), decoder());
            assert!(fast::decode(text, &mut fast), "{text}");
            updates::decode(text, &mut long);
            assert_eq!(fast.out, long.out, "{text}");
        }
    }
}

#[test]
fn only_chunks_of_the_same_message_are_joined() {
    let chunk = |session: &str, kind: &str, message: &str, text: &str| {
        format!(
            r#"{{"sessionId":"{session}","update":{{"sessionUpdate":"{kind}","messageId":{message},"content":{{"type":"text","text":"{text}"}}}}}}"#
        )
    };
    let mut codec = codec();
    let mut out = Vec::new();
    for params in [
        chunk("s", "agent_message_chunk", r#""m1""#, "a"),
        chunk("s", "agent_message_chunk", r#""m1""#, "b"),
        chunk("s", "agent_message_chunk", r#""m2""#, "c"),
        chunk("s", "agent_message_chunk", "null", "d"),
        chunk("s", "agent_thought_chunk", "null", "e"),
        chunk("t", "agent_thought_chunk", "null", "f"),
        chunk("t", "agent_thought_chunk", "null", ""),
        chunk("t", "agent_thought_chunk", "null", "g"),
    ] {
        assert!(codec.notification("session/update", Some(&params), &mut out));
    }
    let texts: Vec<String> = out
        .iter()
        .map(|event| match event {
            AgentEvent::Update(_, crate::model::SessionUpdate::Chunk { text, .. }) => text.clone(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(texts, ["ab", "c", "d", "e", "fg"]);
}

#[test]
fn disabled_callbacks_are_neither_advertised_nor_executed() {
    let spec = AgentSpec {
        callbacks: Callbacks { fs_read: true, fs_write: false, terminal: false },
        ..AgentSpec::default()
    };
    let mut codec = Codec::new(&spec);
    let (_, params) = codec.initialize(0, "parlor").unwrap();
    let params: Value = serde_json::from_str(&params).unwrap();
    let can = &params["clientCapabilities"];
    assert_eq!(can["fs"], serde_json::json!({"readTextFile": true, "writeTextFile": false}));
    assert_eq!(can["terminal"], serde_json::json!(false));
    let mut out = Vec::new();
    let params = Some(r#"{"sessionId":"s","path":"/w/a","content":"x"}"#);
    let error = codec.request("fs/write_text_file", params, &mut out).unwrap_err();
    assert_eq!(error.code, RpcError::METHOD_NOT_FOUND);
    assert!(codec.request("fs/read_text_file", params, &mut out).is_ok());
    let error = codec.request("terminal/create", Some(r#"{"command":"ls"}"#), &mut out).unwrap_err();
    assert_eq!(error.code, RpcError::METHOD_NOT_FOUND);
}

#[test]
fn acp_v1_terminal_sign_in_is_advertised_only_to_local_agents() {
    for protocol in [1, 2] {
        let mut spec = AgentSpec::default();
        spec.wire.protocol = protocol;
        let (_, params) = Codec::new(&spec).initialize(0, "parlor").unwrap();
        assert!(
            params.contains(r#""terminal-auth":true"#) && params.contains(r#""auth":{"terminal":"#),
            "{params}"
        );
        spec.remote = Some(crate::model::Remote::default());
        let (_, params) = Codec::new(&spec).initialize(0, "parlor").unwrap();
        assert!(
            !params.contains("terminal-auth") && !params.contains(r#""auth":{"terminal":{}}"#),
            "{params}"
        );
        assert!(!params.contains(r#""auth":{"terminal":true}"#), "{params}");
    }
}

#[test]
fn many_commands_are_decoded() {
    let skill = "word ".repeat(12_000);
    let commands: Vec<Value> = (0..10)
        .map(|at| serde_json::json!({"name": format!("skill-{at}"), "description": "d", "_meta": {"text": skill}}))
        .collect();
    let params = serde_json::json!({"sessionId": "s", "update":
        {"sessionUpdate": "available_commands_update", "availableCommands": commands}})
    .to_string();
    assert!(params.len() > 563_000);
    let mut out = Vec::new();
    assert!(codec().notification("session/update", Some(&params), &mut out));
    let [AgentEvent::Update(_, crate::model::SessionUpdate::Commands(commands))] = out.as_slice() else {
        panic!("one event, not {}", out.len());
    };
    assert_eq!(commands.len(), 10);
}

#[test]
fn excessive_nesting_is_an_anomaly() {
    let deep = format!(r#"{{"sessionId":"s","update":{}{}}}"#, "[".repeat(5000), "]".repeat(5000));
    let mut out = Vec::new();
    assert!(codec().notification("session/update", Some(&deep), &mut out));
    assert!(matches!(out.as_slice(), [AgentEvent::Anomaly(_)]));
}
