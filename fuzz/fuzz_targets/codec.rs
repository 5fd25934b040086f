//! The codec, in both versions and in every dialect. Each line is a message; its first byte selects the decoder.

#![no_main]

use libfuzzer_sys::fuzz_target;
use parlor::acp::codec::{Codec, decode_error, encode_answer, fallback};
use parlor::model::{AgentSpec, Call, ContentBlock, Profile, SessionId, SessionWorkspace};

const HELLO: &str = r#"{"protocolVersion":2,"info":{"name":"x","version":"1"},"capabilities":{"session":{}}}"#;

fn codec(kind: u8) -> Codec {
    let mut spec = AgentSpec { command: "agent".to_owned(), ..AgentSpec::default() };
    spec.wire.profile = match kind & 7 {
        0 => None,
        1 => Some(Profile::OpenOxide),
        2 => Some(Profile::Elephant),
        3 => Some(Profile::ZeptoClaw),
        4 => Some(Profile::ActiveContext),
        _ => Some(Profile::Banjo),
    };
    spec.wire.is_strict = kind & 8 != 0;
    let is_second = kind & 16 != 0;
    spec.wire.protocol = if is_second { 2 } else { 1 };
    let mut codec = Codec::new(&spec);
    if is_second {
        let _ = codec.on_initialize(HELLO);
    }
    codec
}

fuzz_target!(|input: &str| {
    let mut lines = input.split('\n');
    let kind = lines.next().and_then(|line| line.bytes().next()).unwrap_or_default();
    let mut codec = codec(kind);
    let (session, workspace) = (SessionId::from("s1"), SessionWorkspace::default());
    let mut out = Vec::new();
    for line in lines {
        let Some((what, text)) = line.split_at_checked(1) else { continue };
        match what {
            "u" => drop(codec.notification("session/update", Some(text), &mut out)),
            "i" => drop(codec.on_initialize(text)),
            "n" => drop(codec.reply(&Call::NewSession(workspace.clone()), text, &mut out)),
            "l" => drop(codec.reply(&Call::LoadSession(session.clone(), workspace.clone()), text, &mut out)),
            "s" => drop(codec.reply(&Call::ListSessions { cwd: None, cursor: None }, text, &mut out)),
            "p" => {
                let prompt = Call::Prompt(session.clone(), vec![ContentBlock::Text("hi".to_owned().into())]);
                drop(codec.reply(&prompt, text, &mut out));
            }
            "a" => {
                if let Ok((_, kind)) = codec.request("session/request_permission", Some(text), &mut out) {
                    let answer = encode_answer(kind, &fallback(kind));
                    assert!(answer.is_ok_and(|answer| answer.starts_with('{')));
                }
            }
            "c" => drop(codec.request("elicitation/create", Some(text), &mut out)),
            "t" => drop(codec.request("terminal/create", Some(text), &mut out)),
            "r" => drop(codec.request("fs/read_text_file", Some(text), &mut out)),
            "x" => assert!(!decode_error(text).message.is_empty()),
            _ => {
                if let Some((method, params)) = text.split_once(' ') {
                    let _ = codec.notification(method, Some(params), &mut out);
                }
            }
        }
    }
});
