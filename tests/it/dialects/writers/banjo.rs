//! Banjo.

use parlor::model::Profile;

use super::{Can, Mode, Reopen, ScriptWriter, answer, expect, modes_of, options, refuse, update};

const MODES: &[Mode] = &[
    ("default", "Default", "Ask for each dangerous op"),
    ("acceptEdits", "Accept edits", "Auto-accept file edits"),
    ("bypassPermissions", "Bypass permissions", "Skip all checks"),
    ("dontAsk", "Don't ask", "Only pre-approved tools"),
    ("plan", "Plan", "Planning mode, no execution"),
];

const CAN: Can = Can {
    thinks: true,
    tools: true,
    plans: true,
    requests: true,
    modes: MODES,
    models: true,
    options: true,
    commands: true,
    reopens: Reopen::Resumes,
    ..Can::NOTHING
};

/// Models keyed by `id`.
const OWN_MODELS: &str = r#"{"currentModelId":"small","availableModels":[{"id":"small","name":"Small"},{"id":"big","name":"Big"}]}"#;

const HELLO: &str = r#"{"protocolVersion":1,"agentInfo":{"name":"Banjo Duet","title":"Banjo Duet","version":"0.6.0"},"agentCapabilities":{"promptCapabilities":{"image":true,"embeddedContext":true},"mcpCapabilities":{"http":false,"sse":false},"sessionCapabilities":{},"loadSession":false},"authMethods":[]}"#;

fn opened(id: &str) -> String {
    let (modes, options) = (modes_of(&CAN), options("a"));
    format!("{{{id},\"modes\":{modes},\"models\":{OWN_MODELS},\"configOptions\":{options}}}")
}

fn plan() -> String {
    update(
        r#"{"sessionUpdate":"plan","entries":[{"id":"1","content":"Look","status":"completed"},{"id":"2","content":"Change","status":"in_progress"}]}"#,
    )
}

/// File requests. The agent ignores a result of `null`.
fn files(path: &str) -> String {
    format!(
        "< {{\"jsonrpc\":\"2.0\",\"id\":31,\"method\":\"fs/write_text_file\",\"params\":{{\"sessionId\":\"s1\",\"path\":\"{path}\",\"content\":\"kept\"}}}}\n\
         ? \"id\":31,\"result\":{{}}\n\
         < {{\"jsonrpc\":\"2.0\",\"id\":32,\"method\":\"fs/read_text_file\",\"params\":{{\"sessionId\":\"s1\",\"path\":\"{path}\"}}}}\n\
         ? \"id\":32,\"result\":{{\"content\":\"kept\"}}\n"
    )
}

fn resumed() -> String {
    expect("\"unstable_resumeSession\",\"params\":{\"sessionId\":\"s1\",\"cwd\":\"/")
        + &answer(r#"{"sessionId":"s1"}"#)
}

pub struct BanjoDocument;

impl ScriptWriter for BanjoDocument {
    fn can(&self) -> Can {
        CAN
    }

    fn initialize(&self) -> String {
        expect("\"initialize\"") + &answer(HELLO)
    }

    fn opened(&self, id: &str) -> String {
        opened(id)
    }

    fn plan(&self) -> String {
        plan()
    }

    fn callbacks(&self) -> String {
        files("/folder/notes.txt")
    }

    fn reopen(&self) -> String {
        resumed()
    }
}

/// According to its code: it requires a client name and the old key of a mode, and sends models in an update.
pub struct BanjoCode;

impl ScriptWriter for BanjoCode {
    fn can(&self) -> Can {
        CAN
    }

    fn profile(&self) -> Option<Profile> {
        Some(Profile::Banjo)
    }

    fn initialize(&self) -> String {
        expect("\"name\":\"banjo-parlor\"") + &answer(HELLO)
    }

    fn opened(&self, id: &str) -> String {
        opened(id)
    }

    fn plan(&self) -> String {
        plan()
    }

    fn diff(&self, path: &str) -> String {
        update(&format!(
            r#"{{"sessionUpdate":"tool_call","toolCallId":"d1","title":"Edit {path}","kind":"write","status":"completed","rawInput":"text","content":[{{"type":"diff","path":"{path}","oldText":"1","newText":"2"}}]}}"#
        ))
    }

    fn mode(&self, mode: &str) -> String {
        expect(&format!("\"modeId\":\"{mode}\""))
            + &refuse(-32602, "missing mode")
            + &expect(&format!("\"mode\":\"{mode}\""))
            + &answer("{}")
            + &update(&format!(r#"{{"sessionUpdate":"current_mode_update","currentModeId":"{mode}"}}"#))
    }

    fn model(&self, model: &str) -> String {
        expect("\"session/set_model\"")
            + &update(&format!(r#"{{"sessionUpdate":"current_model_update","currentModelId":"{model}"}}"#))
            + &answer("{}")
    }

    fn callbacks(&self) -> String {
        files("notes.txt")
    }

    fn reopen(&self) -> String {
        resumed()
    }
}
