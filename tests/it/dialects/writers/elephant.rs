//! elephant.ai.

use parlor::model::Profile;

use super::{Can, Mode, Reopen, ScriptWriter, answer, expect, update};

const MODES: &[Mode] = &[
    ("full", "Full Access", "All tools available"),
    ("read-only", "Read-Only", "No local writes or execution"),
    ("safe", "Safe Mode", "Excludes potentially dangerous tools"),
    ("sandbox", "Sandbox Mode", "Disable local file/shell tools; use sandbox_* tools instead"),
];

const CAN: Can = Can {
    tools: true,
    plans: true,
    requests: true,
    modes: MODES,
    choices: [("allow_once", "Allow"), ("reject_once", "Reject")],
    reopens: Reopen::Loads,
    priority: "high",
    ..Can::NOTHING
};

fn hello(mcp: &str) -> String {
    format!(
        r#"{{"protocolVersion":1,"agentInfo":{{"name":"alex","title":"elephant.ai","version":"1"}},"agentCapabilities":{{"loadSession":true,"promptCapabilities":{{"audio":true,"image":true,"embeddedContext":true}},{mcp}"sessionCapabilities":{{}}}},"authMethods":[]}}"#
    )
}

pub struct ElephantDocument;

impl ScriptWriter for ElephantDocument {
    fn can(&self) -> Can {
        CAN
    }

    fn initialize(&self) -> String {
        expect("\"initialize\"") + &answer(&hello(r#""mcpCapabilities":{"http":false,"sse":false},"#))
    }
}

/// According to its code: headers, echoed prompts, trimmed chunks, bare tool content, additional fields of a call, an
/// empty stop reason, no MCP capabilities.
pub struct ElephantCode;

impl ScriptWriter for ElephantCode {
    fn can(&self) -> Can {
        CAN
    }

    fn profile(&self) -> Option<Profile> {
        Some(Profile::Elephant)
    }

    fn initialize(&self) -> String {
        expect("\"initialize\"") + "~\n" + &answer(&hello(""))
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

    fn about_calls(&self) -> &'static str {
        r#","safetyLevel":3,"approvalHints":{"rollbackSteps":["git checkout src"],"alternativePlan":"Ask first"}"#
    }

    fn end(&self, reason: &str) -> String {
        let reason = if reason == "end_turn" { "" } else { reason };
        format!("< {{\"jsonrpc\":\"2.0\",\"id\":$prompt,\"result\":{{\"stopReason\":\"{reason}\"}}}}\n")
    }

    fn reopen(&self) -> String {
        expect("\"session/load\"") + &answer(r#"{"modes":null}"#)
    }
}
