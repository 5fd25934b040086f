//! elephant.ai.

use parlor::model::Profile;

use super::{Can, Reopen, Tongue, answer, expect, update};

const CAN: Can = Can {
    tools: true,
    plans: true,
    asks: true,
    modes: true,
    reopens: Reopen::Loads,
    priority: "high",
    ..Can::NOTHING
};

const HELLO: &str = r#"{"protocolVersion":1,"agentInfo":{"name":"alex","version":"1"},"agentCapabilities":{"loadSession":true,"promptCapabilities":{"audio":true,"image":true,"embeddedContext":true},"sessionCapabilities":{}},"authMethods":[]}"#;

pub struct ElephantDocument;

impl Tongue for ElephantDocument {
    fn can(&self) -> Can {
        CAN
    }

    fn initialize(&self) -> String {
        expect("\"initialize\"") + &answer(HELLO)
    }
}

/// As its code does it: headers, our prompt echoed, chunks trimmed, bare tool content, an empty stop reason.
pub struct ElephantCode;

impl Tongue for ElephantCode {
    fn can(&self) -> Can {
        CAN
    }

    fn profile(&self) -> Option<Profile> {
        Some(Profile::Elephant)
    }

    fn initialize(&self) -> String {
        expect("\"initialize\"") + "~\n" + &answer(HELLO)
    }

    fn prompt(&self, text: &str) -> String {
        expect("\"session/prompt\"")
            + "= prompt\n"
            + &update(&format!(
                r#"{{"sessionUpdate":"user_message_chunk","content":{{"type":"text","text":"{text}"}}}}"#
            ))
    }

    fn say(&self, parts: &[&str]) -> String {
        parts
            .iter()
            .map(|text| {
                let text = text.trim();
                update(&format!(
                    r#"{{"sessionUpdate":"agent_message_chunk","content":{{"type":"text","text":"{text}"}}}}"#
                ))
            })
            .collect()
    }

    fn tool_end(&self, id: &str, output: &str) -> String {
        update(&format!(
            r#"{{"sessionUpdate":"tool_call_update","toolCallId":"{id}","status":"completed","content":[{{"type":"text","text":"{output}"}}]}}"#
        ))
    }

    fn end(&self, reason: &str) -> String {
        let reason = if reason == "end_turn" { "" } else { reason };
        format!("< {{\"jsonrpc\":\"2.0\",\"id\":$prompt,\"result\":{{\"stopReason\":\"{reason}\"}}}}\n")
    }

    fn reopen(&self) -> String {
        expect("\"session/load\"") + &answer(r#"{"modes":null}"#)
    }
}
