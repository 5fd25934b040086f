//! `ZeptoClaw`: whole messages, a list, no tools; its sessions die with it.

use parlor::model::Profile;

use super::{Can, Tongue, answer, expect, update};

const CAN: Can = Can { lists: true, streams: false, titles: false, ..Can::NOTHING };

fn hello(version: &str) -> String {
    expect("\"initialize\"")
        + &answer(&format!(
            r#"{{"protocolVersion":{version},"agentCapabilities":{{"loadSession":false,"promptCapabilities":{{"image":false,"audio":false,"embeddedContext":false}},"mcpCapabilities":{{"http":false,"sse":false}},"sessionCapabilities":{{"list":{{}}}}}},"agentInfo":{{"name":"zeptoclaw","version":"0.5.0"}},"authMethods":[]}}"#
        ))
}

/// All of it is in its document: no titles, no pages, whether a prompt runs.
fn list() -> String {
    expect("\"session/list\"")
        + &answer(
            r#"{"sessions":[{"sessionId":"s1","cwd":"/w","title":null,"updatedAt":null,"_meta":{"pending":false}}],"nextCursor":null}"#,
        )
}

pub struct ZeptoClawDocument;

impl Tongue for ZeptoClawDocument {
    fn can(&self) -> Can {
        CAN
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
}

/// As its code does it: the version as a text, messages under another name.
pub struct ZeptoClawCode;

impl Tongue for ZeptoClawCode {
    fn can(&self) -> Can {
        CAN
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
}
