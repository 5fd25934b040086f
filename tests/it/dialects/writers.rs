//! Script writers: the same steps in the dialect of each agent.

mod active;
mod banjo;
mod elephant;
mod oxide;
mod version2;
mod zepto;

use parlor::model::Profile;

pub use active::{ActiveContextCode, ActiveContextDocument};
pub use banjo::{BanjoCode, BanjoDocument};
pub use elephant::{ElephantCode, ElephantDocument};
pub use oxide::{OpenOxide, OxideForm};
pub use version2::Version2;
pub use zepto::{ZeptoClawCode, ZeptoClawDocument};

/// How a session is reopened after a crash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reopen {
    Resumes,
    Loads,
    Not,
}

/// The features of an agent.
#[derive(Debug, Clone, Copy)]
#[allow(clippy::struct_excessive_bools, reason = "systems differ in each of them independently")]
pub struct Can {
    pub thinks: bool,
    pub tools: bool,
    pub plans: bool,
    pub requests: bool,
    /// Id, name and description of each; the user selects the second.
    pub modes: &'static [Mode],
    /// Id and name of the options that allow and reject.
    pub choices: [(&'static str, &'static str); 2],
    /// Whether text is sent during the turn, and not only at its end.
    pub streams: bool,
    /// Whether sessions in its list have titles.
    pub titles: bool,
    pub models: bool,
    pub options: bool,
    pub lists: bool,
    pub forks: bool,
    pub commands: bool,
    pub reopens: Reopen,
    /// The priority of its plan entries.
    pub priority: &'static str,
}

impl Can {
    pub const NOTHING: Self = Self {
        thinks: false,
        tools: false,
        plans: false,
        requests: false,
        modes: &[],
        choices: [("yes", "Yes"), ("no", "No")],
        streams: true,
        titles: true,
        models: false,
        options: false,
        lists: false,
        forks: false,
        commands: false,
        reopens: Reopen::Not,
        priority: "medium",
    };
}

pub type Mode = (&'static str, &'static str, &'static str);

/// The modes in the examples of the protocol.
pub const MODES: &[Mode] = &[
    ("ask", "Ask", "Request permission before making any changes"),
    ("architect", "Architect", "Design and plan software systems without implementation"),
];

/// The modes in the response that opens a session.
pub fn modes_of(can: &Can) -> String {
    let one =
        |(id, name, about): &Mode| format!(r#"{{"id":"{id}","name":"{name}","description":"{about}"}}"#);
    let all: Vec<String> = can.modes.iter().map(one).collect();
    format!(r#"{{"currentModeId":"{}","availableModes":[{}]}}"#, can.modes[0].0, all.join(","))
}

pub const MODELS: &str = r#"{"currentModelId":"small","availableModels":[{"modelId":"small","name":"Small"},{"modelId":"big","name":"Big"}]}"#;

pub fn options(current: &str) -> String {
    format!(
        r#"[{{"id":"route","name":"Route","type":"select","currentValue":"{current}","options":[{{"value":"a","name":"A"}},{{"value":"b","name":"B"}}]}}]"#
    )
}

/// Responds to the last request.
pub fn answer(result: &str) -> String {
    format!("< {{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{result}}}\n")
}

/// Responds to the last request with an error.
pub fn refuse(code: i64, message: &str) -> String {
    format!("< {{\"jsonrpc\":\"2.0\",\"id\":$id,\"error\":{{\"code\":{code},\"message\":\"{message}\"}}}}\n")
}

/// Sends a notification.
pub fn notify(method: &str, params: &str) -> String {
    format!("< {{\"jsonrpc\":\"2.0\",\"method\":\"{method}\",\"params\":{params}}}\n")
}

pub fn update(body: &str) -> String {
    notify("session/update", &format!("{{\"sessionId\":\"s1\",\"update\":{body}}}"))
}

/// Reads the next message, which must contain a word.
pub fn expect(word: &str) -> String {
    format!("? {word}\n")
}

/// Writes the steps of an agent; the default is the official protocol.
pub trait ScriptWriter {
    fn can(&self) -> Can;

    fn profile(&self) -> Option<Profile> {
        None
    }

    /// The newest protocol version that is offered to the agent.
    fn protocol(&self) -> u16 {
        1
    }

    fn initialize(&self) -> String {
        let can = self.can();
        let marks = [(can.lists, "list"), (can.forks, "fork"), (can.reopens == Reopen::Resumes, "resume")];
        let marks = marks.iter().filter(|(is_on, _)| *is_on).map(|(_, name)| format!("\"{name}\":{{}}"));
        let session = marks.collect::<Vec<_>>().join(",");
        let loads = can.reopens == Reopen::Loads;
        expect("\"initialize\"")
            + &answer(&format!(
                r#"{{"protocolVersion":1,"agentInfo":{{"name":"twin","version":"1"}},"agentCapabilities":{{"loadSession":{loads},"sessionCapabilities":{{{session}}}}}}}"#
            ))
    }

    fn new_session(&self) -> String {
        expect("\"session/new\"") + &answer(&self.opened("\"sessionId\":\"s1\"")) + &self.commands()
    }

    /// The result of a call that opens a session.
    fn opened(&self, id: &str) -> String {
        let can = self.can();
        let mut fields = vec![id.to_owned()];
        if !can.modes.is_empty() {
            fields.push(format!("\"modes\":{}", modes_of(&can)));
        }
        if can.models {
            fields.push(format!("\"models\":{MODELS}"));
        }
        if can.options {
            fields.push(format!("\"configOptions\":{}", options("a")));
        }
        format!("{{{}}}", fields.join(","))
    }

    fn commands(&self) -> String {
        if !self.can().commands {
            return String::new();
        }
        update(
            r#"{"sessionUpdate":"available_commands_update","availableCommands":[{"name":"review","description":"Review"}]}"#,
        )
    }

    fn prompt(&self, _text: &str) -> String {
        expect("\"session/prompt\"") + "= prompt\n"
    }

    fn say(&self, parts: &[&str]) -> String {
        parts
            .iter()
            .map(|text| {
                update(&format!(
                    r#"{{"sessionUpdate":"agent_message_chunk","content":{{"type":"text","text":"{text}"}}}}"#
                ))
            })
            .collect()
    }

    fn think(&self, text: &str) -> String {
        update(&format!(
            r#"{{"sessionUpdate":"agent_thought_chunk","content":{{"type":"text","text":"{text}"}}}}"#
        ))
    }

    fn tool_begin(&self, id: &str) -> String {
        update(&format!(
            r#"{{"sessionUpdate":"tool_call","toolCallId":"{id}","title":"bash","name":"bash","kind":"execute","status":"in_progress","rawInput":{{"command":"ls"}}}}"#
        ))
    }

    fn tool_end(&self, id: &str, output: &str) -> String {
        update(&format!(
            r#"{{"sessionUpdate":"tool_call_update","toolCallId":"{id}","status":"completed","content":[{{"type":"content","content":{{"type":"text","text":"{output}"}}}}]}}"#
        ))
    }

    fn diff(&self, path: &str) -> String {
        update(&format!(
            r#"{{"sessionUpdate":"tool_call","toolCallId":"d1","title":"Edit {path}","kind":"edit","status":"completed","content":[{{"type":"diff","path":"{path}","oldText":"1","newText":"2"}}]}}"#
        ))
    }

    fn plan(&self) -> String {
        let priority = self.can().priority;
        update(&format!(
            r#"{{"sessionUpdate":"plan","entries":[{{"content":"Look","priority":"{priority}","status":"completed"}},{{"content":"Change","priority":"{priority}","status":"in_progress"}}]}}"#
        ))
    }

    fn ask(&self, id: u32, tool: &str) -> String {
        let [(yes, yes_name), (no, no_name)] = self.can().choices;
        let more = self.about_calls();
        format!(
            "< {{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"session/request_permission\",\"params\":{{\"sessionId\":\"s1\",\
             \"toolCall\":{{\"toolCallId\":\"{tool}\",\"title\":\"Write\",\"kind\":\"edit\"{more}}},\"options\":[\
             {{\"optionId\":\"{yes}\",\"name\":\"{yes_name}\",\"kind\":\"allow_once\"}},\
             {{\"optionId\":\"{no}\",\"name\":\"{no_name}\",\"kind\":\"reject_once\"}}]}}}}\n"
        )
    }

    /// Additional fields of a tool call in a permission request.
    fn about_calls(&self) -> &'static str {
        ""
    }

    /// Waits for the selection of an option; the complete response must match.
    fn answered(&self, option: &str) -> String {
        format!("? \"result\":{{\"outcome\":{{\"outcome\":\"selected\",\"optionId\":\"{option}\"}}}}\n")
    }

    /// Requests for files and commands, in the folder `/folder`.
    fn callbacks(&self) -> String {
        String::new()
    }

    /// Waits for the cancellation, and for the response to the open permission request.
    fn cancel(&self) -> String {
        let asked = "? \"result\":{\"outcome\":{\"outcome\":\"cancelled\"}}\n";
        format!(
            "? \"session/cancel\",\"params\":{{\"sessionId\":\"s1\"}}\n{}",
            if self.can().requests { asked } else { "" }
        )
    }

    fn end(&self, reason: &str) -> String {
        format!("< {{\"jsonrpc\":\"2.0\",\"id\":$prompt,\"result\":{{\"stopReason\":\"{reason}\"}}}}\n")
    }

    /// Steps after a cancelled turn.
    fn after_cancel(&self) -> String {
        String::new()
    }

    fn mode(&self, mode: &str) -> String {
        expect(&format!("\"session/set_mode\",\"params\":{{\"sessionId\":\"s1\",\"modeId\":\"{mode}\"}}"))
            + &answer("{}")
            + &update(&format!(r#"{{"sessionUpdate":"current_mode_update","currentModeId":"{mode}"}}"#))
    }

    fn model(&self, model: &str) -> String {
        expect(&format!("\"session/set_model\",\"params\":{{\"sessionId\":\"s1\",\"modelId\":\"{model}\"}}"))
            + &answer("{}")
    }

    fn option(&self) -> String {
        expect("\"session/set_config_option\"") + &answer(&format!("{{\"configOptions\":{}}}", options("b")))
    }

    fn list(&self) -> String {
        let title = if self.can().titles { ",\"title\":\"First\"" } else { "" };
        expect("\"session/list\"")
            + &answer(&format!(r#"{{"sessions":[{{"sessionId":"s1","cwd":"/w"{title}}}]}}"#))
    }

    fn reopen(&self) -> String {
        match self.can().reopens {
            Reopen::Resumes => expect("\"session/resume\"") + &answer("{}"),
            Reopen::Loads => expect("\"session/load\"") + &answer("{}"),
            Reopen::Not => self.new_session(),
        }
    }

    /// Reopening, if the session no longer exists.
    fn reopen_refused(&self) -> String {
        expect("\"session/resume\"") + &refuse(-32002, "The agent does not have this session.")
    }

    /// Steps of a shutdown.
    fn shutdown(&self) -> String {
        String::new()
    }

    /// Forks into a session with another id, which gets the next steps.
    fn fork(&self, id: &str) -> String {
        expect("\"session/fork\"") + &answer(&format!("{{\"sessionId\":\"{id}\"}}"))
    }
}

/// The official protocol, with the features of an agent.
pub struct Official {
    pub can: Can,
}

impl ScriptWriter for Official {
    fn can(&self) -> Can {
        self.can
    }
}
