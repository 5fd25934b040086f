//! Banjo.

use parlor::model::Profile;

use super::{Can, MODES, Reopen, Tongue, answer, expect, options, refuse, update};

const CAN: Can = Can {
    thinks: true,
    tools: true,
    plans: true,
    asks: true,
    modes: true,
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
    format!("{{{id},\"modes\":{MODES},\"models\":{OWN_MODELS},\"configOptions\":{}}}", options("a"))
}

fn plan() -> String {
    update(
        r#"{"sessionUpdate":"plan","entries":[{"id":"1","content":"Look","status":"completed"},{"id":"2","content":"Change","status":"in_progress"}]}"#,
    )
}

fn resumed() -> String {
    expect("\"unstable_resumeSession\"") + &answer(r#"{"sessionId":"s1"}"#)
}

pub struct BanjoDocument;

impl Tongue for BanjoDocument {
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

    fn reopen(&self) -> String {
        resumed()
    }
}

/// As its code does it: it wants our name, the old key of a mode, and tells models by an update.
pub struct BanjoCode;

impl Tongue for BanjoCode {
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
        expect("\"modeId\":\"plan\"")
            + &refuse(-32602, "missing mode")
            + &expect("\"mode\":\"plan\"")
            + &answer("{}")
            + &update(&format!(r#"{{"sessionUpdate":"current_mode_update","currentModeId":"{mode}"}}"#))
    }

    fn model(&self, model: &str) -> String {
        expect("\"session/set_model\"")
            + &update(&format!(r#"{{"sessionUpdate":"current_model_update","currentModelId":"{model}"}}"#))
            + &answer("{}")
    }

    fn reopen(&self) -> String {
        resumed()
    }
}
