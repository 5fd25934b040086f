//! Randomly mutated messages: the codec must not panic, and every request must be answerable.

use proptest::prelude::*;
use serde_json::json;

use super::*;

/// A mutation of one value in a message.
#[derive(Debug, Clone)]
pub(in crate::acp) enum Break {
    Remove,
    Null,
    Replace(Value),
    Wrap,
    Rename(String),
    Repeat,
}

pub(in crate::acp) fn breaks() -> impl Strategy<Value = Break> {
    let scalar = prop_oneof![
        Just(json!("")),
        Just(json!("text \u{0} \u{1F600} \n")),
        Just(json!(-1)),
        Just(json!(1e300)),
        Just(json!(u64::MAX)),
        Just(json!(true)),
        Just(json!([])),
        Just(json!({})),
        Just(json!([null, 1, "x", {"type": "text"}])),
        Just(json!({"type": "text", "text": {"text": 1}})),
    ];
    prop_oneof![
        Just(Break::Remove),
        Just(Break::Null),
        scalar.prop_map(Break::Replace),
        Just(Break::Wrap),
        "[a-zA-Z_]{0,12}".prop_map(Break::Rename),
        Just(Break::Repeat),
    ]
}

/// Applies a mutation to the value at a path.
pub(in crate::acp) fn apply(value: &mut Value, path: &[usize], how: &Break) {
    let (step, rest) = match path {
        [step, rest @ ..] => (*step, rest),
        [] => return,
    };
    match value {
        Value::Object(object) if !object.is_empty() => {
            let key = object.keys().nth(step % object.len()).unwrap().clone();
            let inner = &mut object[&key];
            let can_descend = inner.is_object() || inner.is_array();
            if can_descend && !rest.is_empty() {
                return apply(inner, rest, how);
            }
            match how {
                Break::Remove => drop(object.shift_remove(&key)),
                Break::Null => *inner = Value::Null,
                Break::Replace(other) => *inner = other.clone(),
                Break::Wrap => *inner = json!([inner.clone()]),
                Break::Rename(name) => {
                    let taken = object.shift_remove(&key).unwrap();
                    object.insert(name.clone(), taken);
                }
                Break::Repeat => *inner = json!({"update": inner.clone(), "content": inner.clone()}),
            }
        }
        Value::Array(items) if !items.is_empty() => {
            let at = step % items.len();
            if !rest.is_empty() && (items[at].is_object() || items[at].is_array()) {
                return apply(&mut items[at], rest, how);
            }
            match how {
                Break::Remove => drop(items.remove(at)),
                Break::Null => items[at] = Value::Null,
                Break::Replace(other) => items[at] = other.clone(),
                Break::Wrap => items[at] = json!([items[at].clone()]),
                Break::Rename(name) => items[at] = json!(name),
                Break::Repeat => items.push(items[at].clone()),
            }
        }
        _ => {}
    }
}

fn all_cases() -> Vec<Case> {
    GOLDEN.iter().flat_map(|(_, text)| cases(text)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn mutated_messages_never_panic(
        at in any::<prop::sample::Index>(),
        wounds in prop::collection::vec((prop::collection::vec(0usize..12, 1..6), breaks()), 1..4),
    ) {
        thread_local!(static CASES: Vec<Case> = all_cases());
        CASES.with(|cases| {
            let case = &cases[at.index(cases.len())];
            let json = case.json.iter().map(|message| {
                let mut message = message.clone();
                for (path, how) in &wounds {
                    apply(&mut message, path, how);
                }
                message
            });
            let broken = Case { json: json.collect(), ..case.clone() };
            let mut codec = broken.codec();
            broken.run(&mut codec);
            // The codec must still decode valid messages afterwards.
            let mut out = Vec::new();
            let right = r#"{"sessionId":"s","update":{"sessionUpdate":"current_mode_update","currentModeId":"m"}}"#;
            assert!(codec.notification("session/update", Some(right), &mut out));
            assert_eq!(out.len(), 1);
        });
    }

    #[test]
    fn arbitrary_text_never_panics(text in "\\PC{0,80}", is_second in any::<bool>()) {
        let mut codec = Case { v2: is_second, ..cases("[{\"name\":\"\"}]").remove(0) }.codec();
        let mut out = Vec::new();
        codec.notification("session/update", Some(&text), &mut out);
        codec.notification("elicitation/complete", Some(&text), &mut out);
        let _ = codec.request("session/request_permission", Some(&text), &mut out);
        let _ = codec.request("terminal/create", Some(&text), &mut out);
        let _ = codec.reply(&call_named("prompt"), &text, &mut out);
        let _ = codec.on_initialize(&text);
        assert!(!errors::decode(&text).message.is_empty());
    }

    #[test]
    fn the_fast_path_agrees_with_the_full_decoder(
        text in "\\PC{0,40}",
        message in prop::option::of("[a-z]{1,4}"),
        kind in prop::sample::select(vec!["user_message_chunk", "agent_message_chunk", "agent_thought_chunk"]),
    ) {
        let params = json!({"sessionId": "s", "update":
            {"sessionUpdate": kind, "messageId": message, "content": {"type": "text", "text": text}}}).to_string();
        let (mut fast, mut long) = (Decoder::default(), Decoder::default());
        assert!(fast::decode(&params, &mut fast));
        updates::decode(&params, &mut long);
        assert_eq!(fast.out, long.out);
    }
}
