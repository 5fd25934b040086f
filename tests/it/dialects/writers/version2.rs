//! Version 2 of the protocol.

use super::{Can, Reopen, ScriptWriter, answer, expect, update};

pub struct Version2;

const OPTIONS: &str = r#"[{"configId":"route","name":"Route","type":"select","currentValue":"CURRENT","options":[{"value":"a","name":"A"},{"value":"b","name":"B"}]}]"#;

fn options(current: &str) -> String {
    OPTIONS.replace("CURRENT", current)
}

/// A message id. A message is known by its id, so that different messages have different ones.
fn id_of(text: &str) -> String {
    text.replace(' ', "-")
}

impl ScriptWriter for Version2 {
    fn can(&self) -> Can {
        Can {
            thinks: true,
            tools: true,
            plans: true,
            requests: true,
            options: true,
            lists: true,
            forks: true,
            commands: true,
            reopens: Reopen::Resumes,
            ..Can::NOTHING
        }
    }

    fn protocol(&self) -> u16 {
        2
    }

    fn initialize(&self) -> String {
        expect("\"protocolVersion\":2")
            + &answer(
                r#"{"protocolVersion":2,"info":{"name":"second","version":"1"},"capabilities":{"session":{"fork":{}}},"authMethods":[]}"#,
            )
    }

    fn new_session(&self) -> String {
        expect("\"session/new\"")
            + &answer(&format!(
                r#"{{"sessionId":"s1","configOptions":{},"availableCommands":[{{"type":"command","name":"review","description":"Review"}}]}}"#,
                options("a")
            ))
    }

    fn prompt(&self, text: &str) -> String {
        expect("\"session/prompt\"")
            // A late state of the previous turn.
            + &self.end("end_turn")
            + &answer(&format!("{{\"messageId\":\"user-{text}\"}}"))
            + &update(&format!(
                r#"{{"sessionUpdate":"user_message","messageId":"user-{text}","content":[{{"type":"text","text":"{text}"}}]}}"#
            ))
            + &update(r#"{"sessionUpdate":"state_update","state":"running"}"#)
    }

    fn say(&self, parts: &[&str]) -> String {
        let id = id_of(parts[0]);
        let chunks: String = parts
            .iter()
            .map(|text| {
                update(&format!(
                    r#"{{"sessionUpdate":"agent_message_chunk","messageId":"{id}","content":{{"type":"text","text":"{text}"}}}}"#
                ))
            })
            .collect();
        // The complete message replaces its chunks.
        let whole = parts.concat();
        chunks
            + &update(&format!(
                r#"{{"sessionUpdate":"agent_message","messageId":"{id}","content":[{{"type":"text","text":"{whole}"}}]}}"#
            ))
    }

    fn think(&self, text: &str) -> String {
        update(&format!(
            r#"{{"sessionUpdate":"agent_thought","messageId":"thought","content":[{{"type":"text","text":"{text}"}}]}}"#
        ))
    }

    fn tool_begin(&self, id: &str) -> String {
        update(&format!(
            r#"{{"sessionUpdate":"tool_call_update","toolCallId":"{id}","title":"bash","name":"bash","kind":"execute","status":"in_progress","rawInput":{{"command":"ls"}}}}"#
        ))
    }

    fn tool_end(&self, id: &str, output: &str) -> String {
        update(&format!(
            r#"{{"sessionUpdate":"tool_call_content_chunk","toolCallId":"{id}","content":{{"type":"content","content":{{"type":"text","text":"{output}"}}}}}}"#
        )) + &update(&format!(
            r#"{{"sessionUpdate":"tool_call_update","toolCallId":"{id}","status":"completed"}}"#
        ))
    }

    fn diff(&self, path: &str) -> String {
        update(&format!(
            r#"{{"sessionUpdate":"tool_call_update","toolCallId":"d1","title":"Edit {path}","kind":"edit","status":"completed","content":[{{"type":"diff","changes":[{{"operation":"modify","path":"{path}"}}],"patch":{{"format":"git_patch","text":"diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-1\n+2\n"}}}}]}}"#
        ))
    }

    fn plan(&self) -> String {
        update(
            r#"{"sessionUpdate":"plan_update","plan":{"type":"items","planId":"p","entries":[{"content":"Look","priority":"medium","status":"completed"},{"content":"Change","priority":"medium","status":"in_progress"}]}}"#,
        )
    }

    fn ask(&self, id: u32, tool: &str) -> String {
        format!(
            "< {{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"session/request_permission\",\"params\":{{\"sessionId\":\"s1\",\
             \"title\":\"Write\",\"description\":\"A file\",\"subject\":{{\"type\":\"tool_call\",\"toolCall\":{{\"toolCallId\":\"{tool}\",\"kind\":\"edit\"}}}},\"options\":[\
             {{\"optionId\":\"yes\",\"name\":\"Yes\",\"kind\":\"allow_once\"}},{{\"optionId\":\"no\",\"name\":\"No\",\"kind\":\"reject_once\"}}]}}}}\n"
        ) + &update(r#"{"sessionUpdate":"state_update","state":"requires_action"}"#)
    }

    fn end(&self, reason: &str) -> String {
        update(&format!(r#"{{"sessionUpdate":"state_update","state":"idle","stopReason":"{reason}"}}"#))
    }

    fn option(&self) -> String {
        expect("\"type\":\"id\"") + &answer(&format!("{{\"configOptions\":{}}}", options("b")))
    }
}
