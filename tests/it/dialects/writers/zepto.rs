//! `ZeptoClaw`: complete messages, a session list, no tools; sessions end with the process.

use parlor::model::Profile;

use super::{Can, Reopen, ScriptWriter, answer, expect, update};

/// Behind a gateway, sessions outlive a connection; those of a process do not.
fn can(is_served: bool) -> Can {
    let reopens = if is_served { Reopen::Resumes } else { Reopen::Not };
    Can { lists: true, streams: false, titles: false, reopens, ..Can::NOTHING }
}

/// The list is the only way to check whether a session exists; there is no call to resume it.
fn empty_list() -> String {
    expect("\"session/list\"") + &answer(r#"{"sessions":[],"nextCursor":null}"#)
}

fn hello(version: &str) -> String {
    expect("\"initialize\"")
        + &answer(&format!(
            r#"{{"protocolVersion":{version},"agentCapabilities":{{"loadSession":false,"promptCapabilities":{{"image":false,"audio":false,"embeddedContext":false}},"mcpCapabilities":{{"http":false,"sse":false}},"sessionCapabilities":{{"list":{{}}}}}},"agentInfo":{{"name":"zeptoclaw","version":"0.5.0"}},"authMethods":[]}}"#
        ))
}

/// According to its documentation: no titles, no pages, and whether a prompt is running.
fn list() -> String {
    expect("\"session/list\"")
        + &answer(
            r#"{"sessions":[{"sessionId":"s1","cwd":"/w","title":null,"updatedAt":null,"_meta":{"pending":false}}],"nextCursor":null}"#,
        )
}

pub struct ZeptoClawDocument {
    pub is_served: bool,
}

impl ScriptWriter for ZeptoClawDocument {
    fn can(&self) -> Can {
        can(self.is_served)
    }

    fn initialize(&self) -> String {
        hello("1")
    }

    fn say(&self, parts: &[&str]) -> String {
        let text = parts.concat();
        update(&format!(
            r#"{{"sessionUpdate":"agent_message_chunk","content":{{"type":"text","text":"{text}"}}}}"#
        ))
    }

    fn list(&self) -> String {
        list()
    }

    fn reopen_refused(&self) -> String {
        empty_list()
    }
}

/// According to its code: the version is a string, and messages have another name.
pub struct ZeptoClawCode {
    pub is_served: bool,
}

impl ScriptWriter for ZeptoClawCode {
    fn can(&self) -> Can {
        can(self.is_served)
    }

    fn profile(&self) -> Option<Profile> {
        Some(Profile::ZeptoClaw)
    }

    fn initialize(&self) -> String {
        hello("\"1\"")
    }

    fn say(&self, parts: &[&str]) -> String {
        let text = parts.concat();
        update(&format!(r#"{{"sessionUpdate":"agent_message","content":{{"type":"text","text":"{text}"}}}}"#))
    }

    fn list(&self) -> String {
        list()
    }

    fn reopen_refused(&self) -> String {
        empty_list()
    }
}
