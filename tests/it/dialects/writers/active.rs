//! `ActiveContext`. According to its documentation updates are flat; according to its code a session ends on cancel.

use parlor::model::Profile;

use super::{Can, MODELS, Mode, Reopen, ScriptWriter, answer, expect, modes_of, notify, refuse};

const MODES: &[Mode] = &[
    ("normal", "Normal", "Standard mode"),
    ("plan", "Plan", "Plan before acting"),
    ("architect", "Architect", "Design only"),
];

const CAN: Can = Can {
    thinks: true,
    tools: true,
    plans: true,
    requests: true,
    modes: MODES,
    models: true,
    lists: true,
    commands: true,
    reopens: Reopen::Loads,
    priority: "high",
    ..Can::NOTHING
};

const HELLO: &str = r#"{"protocolVersion":1,"agentCapabilities":{"loadSession":true,"promptCapabilities":{"image":true,"audio":false,"embeddedContext":true},"mcpCapabilities":{"http":false,"sse":false}},"agentInfo":{"name":"activecontext","title":"ActiveContext","version":"0.1.0"},"authMethods":[]}"#;

/// After a cancel and after a crash. Only load is documented and advertised.
fn loaded_again(loaded: &str) -> String {
    expect("\"session/load\"") + &answer(loaded)
}

fn flat(body: &str) -> String {
    notify("session/update", &format!("{{\"sessionId\":\"s1\",{body}}}"))
}

/// A command of the agent: a complete shell line in the session's folder, without a session id.
fn terminal() -> String {
    let ask = |id: u32, method: &str, params: &str| {
        format!(
            "< {{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"terminal/{method}\",\"params\":{{{params}}}}}\n"
        )
    };
    let here = r#""terminalId":"$terminal""#;
    ask(31, "create", r#""command":"printf ab | tr a-b x-y","cwd":".","outputByteLimit":1048576"#)
        + "? \"terminalId\":\n"
        + &ask(32, "wait_for_exit", here)
        + "? \"exitCode\":0\n"
        + &ask(33, "output", here)
        + "? \"output\":\"xy\",\"truncated\":false\n"
        + &ask(34, "release", here)
        + "? \"id\":34,\"result\":{}\n"
}

pub struct ActiveContextDocument;

impl ScriptWriter for ActiveContextDocument {
    fn can(&self) -> Can {
        CAN
    }

    fn initialize(&self) -> String {
        expect("\"initialize\"") + &answer(HELLO)
    }

    fn opened(&self, id: &str) -> String {
        format!("{{{id},\"modeState\":{},\"models\":{MODELS}}}", modes_of(&CAN))
    }

    fn commands(&self) -> String {
        flat(
            r#""sessionUpdate":"available_commands_update","commands":[{"name":"review","description":"Review"}]"#,
        )
    }

    fn say(&self, parts: &[&str]) -> String {
        parts
            .iter()
            .map(|text| flat(&format!(r#""sessionUpdate":"agent_message_text_update","text":"{text}""#)))
            .collect()
    }

    fn think(&self, text: &str) -> String {
        flat(&format!(r#""sessionUpdate":"agent_thought_text_update","text":"{text}""#))
    }

    fn tool_begin(&self, id: &str) -> String {
        flat(&format!(
            r#""sessionUpdate":"tool_call_update","toolCallId":"{id}","title":"bash","kind":"execute","status":"pending""#
        )) + &flat(&format!(
            r#""sessionUpdate":"tool_call_update","toolCallId":"{id}","status":"in_progress""#
        ))
    }

    fn tool_end(&self, id: &str, output: &str) -> String {
        flat(&format!(
            r#""sessionUpdate":"tool_call_update","toolCallId":"{id}","status":"completed","content":[{{"type":"text","text":"{output}"}}]"#
        ))
    }

    fn diff(&self, path: &str) -> String {
        flat(&format!(
            r#""sessionUpdate":"tool_call_update","toolCallId":"d1","title":"Edit {path}","kind":"edit","status":"completed","content":[{{"type":"diff","path":"{path}","oldText":"1","newText":"2"}}]"#
        ))
    }

    fn plan(&self) -> String {
        flat(
            r#""sessionUpdate":"plan","entries":[{"content":"Look","priority":"high","status":"completed"},{"content":"Change","priority":"high","status":"in_progress"}]"#,
        )
    }

    fn ask(&self, id: u32, tool: &str) -> String {
        format!(
            "< {{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"session/request_permission\",\"params\":{{\"sessionId\":\"s1\",\
             \"toolCall\":{{\"toolCallId\":\"{tool}\",\"title\":\"Write\",\"kind\":\"edit\"}},\"options\":[\
             {{\"id\":\"yes\",\"kind\":\"allow_once\",\"label\":\"Yes\"}},{{\"id\":\"no\",\"kind\":\"reject_once\",\"label\":\"No\"}}]}}}}\n"
        )
    }

    fn cancel(&self) -> String {
        "? \"session/cancel\"\n? \"result\":{\"outcome\":\"cancelled\"}\n".to_owned()
    }

    fn answered(&self, option: &str) -> String {
        format!("? \"result\":{{\"optionId\":\"{option}\"\n")
    }

    fn callbacks(&self) -> String {
        terminal()
    }

    fn end(&self, reason: &str) -> String {
        format!("< {{\"jsonrpc\":\"2.0\",\"id\":$prompt,\"result\":{{\"stop_reason\":\"{reason}\"}}}}\n")
    }

    fn after_cancel(&self) -> String {
        loaded_again("{}")
    }

    fn mode(&self, mode: &str) -> String {
        expect("\"session/set_mode\"")
            + &answer("{}")
            + &flat(&format!(r#""sessionUpdate":"current_mode_update","modeId":"{mode}""#))
    }

    fn reopen(&self) -> String {
        loaded_again("{}")
    }
}

pub struct ActiveContextCode {
    /// Whether the response to a load is `null`.
    pub is_null: bool,
}

impl ScriptWriter for ActiveContextCode {
    fn can(&self) -> Can {
        CAN
    }

    fn profile(&self) -> Option<Profile> {
        Some(Profile::ActiveContext)
    }

    fn initialize(&self) -> String {
        expect("\"initialize\"") + &answer(HELLO)
    }

    fn after_cancel(&self) -> String {
        if self.is_null {
            // Only the next prompt reveals that the session does not exist.
            loaded_again("null")
                + &expect("\"session/prompt\"")
                + &refuse(-32600, "Session not found: s1")
                + &self.new_session()
        } else {
            loaded_again("{}")
        }
    }

    fn callbacks(&self) -> String {
        terminal()
    }

    fn reopen(&self) -> String {
        loaded_again("{}")
    }
}
