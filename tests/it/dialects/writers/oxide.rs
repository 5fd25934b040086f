//! `OpenOxide`, a separate protocol. Its documentation does not specify the envelope of events.

use parlor::model::Profile;

use super::{Can, Reopen, ScriptWriter, answer, expect, notify, refuse};

/// The envelope of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OxideForm {
    /// The event name is the method.
    Methods,
    /// In `session/update`.
    Inside,
    /// Bare objects, after the prompt was confirmed; the agent sends `ready` first.
    Bare,
    /// Methods with a prefix, and the profile is not configured.
    Unknown,
}

pub struct OpenOxide {
    pub form: OxideForm,
}

impl OpenOxide {
    fn event(&self, name: &str, fields: &str) -> String {
        let comma = if fields.is_empty() { "" } else { "," };
        match self.form {
            OxideForm::Methods => notify(name, &format!("{{\"session_id\":\"s1\"{comma}{fields}}}")),
            OxideForm::Inside => notify(
                "session/update",
                &format!("{{\"session_id\":\"s1\",\"event\":{{\"type\":\"{name}\"{comma}{fields}}}}}"),
            ),
            // Without a session: the one with the running turn.
            OxideForm::Bare => format!("< {{\"type\":\"{name}\"{comma}{fields}}}\n"),
            OxideForm::Unknown => {
                notify(&format!("event/{name}"), &format!("{{\"session_id\":\"s1\"{comma}{fields}}}"))
            }
        }
    }
}

impl ScriptWriter for OpenOxide {
    fn can(&self) -> Can {
        Can {
            tools: true,
            plans: true,
            commands: true,
            // Bare events have no session; they belong to the one that was prompted last.
            forks: self.form != OxideForm::Unknown,
            reopens: Reopen::Resumes,
            ..Can::NOTHING
        }
    }

    fn profile(&self) -> Option<Profile> {
        (self.form != OxideForm::Unknown).then_some(Profile::OpenOxide)
    }

    fn initialize(&self) -> String {
        let first = match self.form {
            OxideForm::Bare => "< ready\n".to_owned(),
            // It supports only its own version.
            OxideForm::Unknown => {
                let no = expect("\"protocolVersion\":1") + &refuse(-32602, "unsupported protocol version");
                no.repeat(2)
            }
            OxideForm::Methods | OxideForm::Inside => String::new(),
        };
        let fork = self.can().forks;
        // Without a configured profile, the name is not known either.
        let name = if self.form == OxideForm::Unknown { "core" } else { "openoxide" };
        first
            + &expect(r#""protocolVersion":"0.1","clientInfo":{"name":"parlor","#)
            + &answer(&format!(
                r#"{{"protocolVersion":"0.1","serverInfo":{{"name":"{name}","version":"0.1.0"}},"capabilities":{{"file_read":true,"file_write":true,"terminal_exec":true,"web_search":false,"streaming":true,"session_fork":{fork},"slash_commands":[{{"command":"/review","description":"Review"}}]}}}}"#
            ))
    }

    fn new_session(&self) -> String {
        expect("\"session/create\",\"params\":{\"workingDir\":\"/") + &answer(r#"{"session_id":"s1"}"#)
    }

    fn prompt(&self, text: &str) -> String {
        let receipt = if self.form == OxideForm::Bare { answer("{}") } else { String::new() };
        let content = format!(r#""content":[{{"type":"text","text":"{text}"}}]"#);
        expect(&format!(r#""prompt/send","params":{{"session_id":"s1",{content}}}"#))
            + "= prompt\n"
            + &receipt
    }

    fn say(&self, parts: &[&str]) -> String {
        parts.iter().map(|text| self.event("text_delta", &format!("\"text\":\"{text}\""))).collect()
    }

    fn tool_begin(&self, id: &str) -> String {
        self.event("tool_use", &format!(r#""id":"{id}","name":"bash","input":{{"command":"ls"}}"#))
    }

    fn tool_end(&self, _id: &str, output: &str) -> String {
        self.event("tool_result", &format!("\"content\":\"{output}\""))
    }

    fn diff(&self, path: &str) -> String {
        self.event(
            "diff_block",
            &format!(
                r#""path":"{path}","unified_diff":"--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-1\n+2\n ...""#
            ),
        )
    }

    fn plan(&self) -> String {
        self.event("plan_step", "\"step\":\"Look\"") + &self.event("plan_step", "\"step\":\"Change\"")
    }

    fn cancel(&self) -> String {
        // With the id of the prompt request, as a notification.
        "? {\"jsonrpc\":\"2.0\",\"method\":\"$/cancelRequest\",\"params\":{\"id\":$prompt}}\n".to_owned()
    }

    fn end(&self, reason: &str) -> String {
        match (self.form, reason) {
            (_, "cancelled") => self.event("done", "\"cancelled\":true"),
            // The event and the response, in either order.
            (OxideForm::Methods, _) => {
                self.event("done", "") + "< {\"jsonrpc\":\"2.0\",\"id\":$prompt,\"result\":{}}\n"
            }
            (OxideForm::Inside, _) => {
                "< {\"jsonrpc\":\"2.0\",\"id\":$prompt,\"result\":null}\n".to_owned()
                    + &self.event("done", "")
            }
            (_, reason) => self.event("done", &format!("\"stop_reason\":\"{reason}\"")),
        }
    }

    fn reopen(&self) -> String {
        let resume = expect("\"session/resume\"");
        match self.form {
            // It accepts only one of the two keys.
            OxideForm::Inside => {
                format!("{resume}{}{resume}{}", refuse(-32602, "unknown field sessionId"), answer("{}"))
            }
            _ => resume + &answer(r#"{"session_id":"s1"}"#),
        }
    }

    fn shutdown(&self) -> String {
        expect("\"shutdown\"") + &answer("null")
    }

    fn fork(&self, id: &str) -> String {
        // The last of the turns, counted from 0.
        expect("\"session/fork\",\"params\":{\"source_session_id\":\"s1\",\"branch_at_turn\":4}")
            + &answer(&format!("{{\"session_id\":\"{id}\"}}"))
    }
}
