use std::io::{BufReader, PipeWriter};
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use agent_client_protocol_schema::v1;
use serde_json::{Value, json};

use super::*;

mod scenes;
mod sessions;

const TIMEOUT: Duration = Duration::from_secs(20);

/// A client that is connected to the agent through two pipes.
struct Client {
    to_agent: Option<PipeWriter>,
    lines: Receiver<Vec<u8>>,
    agent: Option<thread::JoinHandle<anyhow::Result<()>>>,
    next_id: u64,
    updates: Vec<Value>,
    requests: Vec<Value>,
    /// The option that is chosen in permission requests; `None` to send no response.
    permission: Option<&'static str>,
    /// The response to an elicitation.
    elicitation: Value,
}

fn everything() -> Value {
    json!({
        "fs": {"readTextFile": true, "writeTextFile": true}, "terminal": true,
        "session": {"configOptions": {"boolean": {}}, "notices": {}, "compaction": {}},
        "elicitation": {"form": {}, "url": {}}, "plan": {}, "subagents": {},
    })
}

impl Client {
    fn start(dir: &Path, capabilities: &Value) -> Self {
        let (agent_in, to_agent) = io::pipe().unwrap();
        let (from_agent, agent_out) = io::pipe().unwrap();
        let settings = Settings { dir: dir.join("demo"), is_paced: false, scratch_dir: None };
        let agent = thread::spawn(move || serve(BufReader::new(agent_in), agent_out, settings));
        let (sender, lines) = channel();
        thread::spawn(move || {
            for line in BufReader::new(from_agent).split(b'\n').map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        let mut client = Self {
            to_agent: Some(to_agent),
            lines,
            agent: Some(agent),
            next_id: 0,
            updates: Vec::new(),
            requests: Vec::new(),
            permission: Some("yes"),
            elicitation: json!({"action": "accept", "content": {"kind": "green", "cups": 2}}),
        };
        let params = json!({"protocolVersion": 1, "clientCapabilities": capabilities});
        let result = client.call("initialize", params).unwrap();
        let typed: v1::InitializeResponse = serde_json::from_value(result.clone()).unwrap();
        assert_preserved(&result, &serde_json::to_value(typed).unwrap());
        client
    }

    fn write(&mut self, message: &Value) {
        self.write_bytes(format!("{message}\n").as_bytes());
    }

    fn write_bytes(&mut self, bytes: &[u8]) {
        self.to_agent.as_mut().unwrap().write_all(bytes).unwrap();
    }

    fn next_line(&self) -> Vec<u8> {
        self.lines.recv_timeout(TIMEOUT).expect("no message from the agent")
    }

    /// Reads the next message, checks that the protocol's own types decode it, and responds to requests.
    fn next(&mut self) -> Value {
        let line = self.next_line();
        let message: Value = serde_json::from_slice(&line).unwrap();
        let (method, id) = (message["method"].as_str(), message.get("id").cloned());
        match (method, id) {
            (Some("session/update"), None) => {
                check_update(&message["params"]);
                self.updates.push(message["params"]["update"].clone());
            }
            (Some(method), Some(id)) => {
                self.requests.push(message.clone());
                if let Some(result) = self.answer_to(method, &message["params"]) {
                    self.write(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
                }
            }
            _ => {}
        }
        message
    }

    fn answer_to(&self, method: &str, params: &Value) -> Option<Value> {
        let params = params.clone();
        Some(match method {
            "session/request_permission" => {
                let _: v1::RequestPermissionRequest = serde_json::from_value(params).unwrap();
                json!({"outcome": {"outcome": "selected", "optionId": self.permission?}})
            }
            "elicitation/create" => {
                let typed: v1::CreateElicitationRequest = serde_json::from_value(params.clone()).unwrap();
                assert_preserved(&params, &serde_json::to_value(typed).unwrap());
                self.elicitation.clone()
            }
            "fs/read_text_file" => {
                let _: v1::ReadTextFileRequest = serde_json::from_value(params).unwrap();
                json!({"content": "first line\n"})
            }
            "terminal/create" => {
                let _: v1::CreateTerminalRequest = serde_json::from_value(params).unwrap();
                json!({"terminalId": "t-1"})
            }
            "terminal/wait_for_exit" if self.permission == Some("never ends") => return None,
            "terminal/wait_for_exit" => json!({"exitCode": 0}),
            "terminal/output" => json!({"output": "ok check 5\n", "truncated": false}),
            "terminal/release" => json!({}),
            other => panic!("unexpected request {other}"),
        })
    }

    /// Sends a request and waits for the response; collects the updates before it.
    #[expect(clippy::needless_pass_by_value, reason = "each call writes its parameters in place")]
    fn call(&mut self, method: &str, params: Value) -> Result<Value, Value> {
        let id = self.send(method, &params);
        self.wait(id)
    }

    fn send(&mut self, method: &str, params: &Value) -> u64 {
        self.next_id += 1;
        let id = self.next_id;
        self.write(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    fn wait(&mut self, id: u64) -> Result<Value, Value> {
        loop {
            let message = self.next();
            if message.get("method").is_none() && message["id"] == json!(id) {
                return match message.get("error") {
                    Some(error) => Err(error.clone()),
                    None => Ok(message["result"].clone()),
                };
            }
        }
    }

    fn new_session(&mut self, cwd: &Path) -> String {
        let result = self.call("session/new", json!({"cwd": cwd, "mcpServers": []})).unwrap();
        let typed: v1::NewSessionResponse = serde_json::from_value(result.clone()).unwrap();
        let options = result["configOptions"].as_array().unwrap().len();
        assert_eq!(typed.config_options.unwrap().len(), options);
        result["sessionId"].as_str().unwrap().to_owned()
    }

    fn send_prompt(&mut self, session: &str, text: &str) -> u64 {
        let prompt = json!([{"type": "text", "text": text}]);
        self.send("session/prompt", &json!({"sessionId": session, "prompt": prompt}))
    }

    /// Sends a prompt and waits; returns the stop reason. Collects the updates of this turn only.
    fn prompt(&mut self, session: &str, text: &str) -> Result<String, Value> {
        self.updates.clear();
        self.requests.clear();
        let id = self.send_prompt(session, text);
        let result = self.wait(id)?;
        let _: v1::PromptResponse = serde_json::from_value(result.clone()).unwrap();
        Ok(result["stopReason"].as_str().unwrap().to_owned())
    }

    fn cancel(&mut self, session: &str) {
        self.write(&json!({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": session}}));
    }

    /// The text of all chunks of one kind.
    fn text(&self, kind: &str) -> String {
        self.kind(kind).iter().filter_map(|update| update["content"]["text"].as_str()).collect()
    }

    fn reply(&self) -> String {
        self.text("agent_message_chunk")
    }

    fn kind(&self, kind: &str) -> Vec<&Value> {
        self.updates.iter().filter(|update| update["sessionUpdate"] == kind).collect()
    }

    fn requested_methods(&self) -> Vec<&str> {
        self.requests.iter().map(|request| request["method"].as_str().unwrap()).collect()
    }

    fn end(mut self) {
        self.to_agent.take();
        self.agent.take().unwrap().join().unwrap().unwrap();
    }
}

/// Checks that the protocol's own types decode an update and preserve all of its fields.
fn check_update(params: &Value) {
    let typed: v1::SessionNotification =
        serde_json::from_value(params.clone()).unwrap_or_else(|error| panic!("{error}: {params}"));
    let mut wanted = params.clone();
    // The types omit default values.
    for (key, default) in [("kind", "other"), ("status", "pending")] {
        let update = wanted["update"].as_object_mut().unwrap();
        if update["sessionUpdate"] == "tool_call" && update.get(key) == Some(&json!(default)) {
            update.remove(key);
        }
    }
    assert_preserved(&wanted, &serde_json::to_value(typed).unwrap());
}

/// Checks that all fields that were sent were also decoded.
fn assert_preserved(sent: &Value, understood: &Value) {
    match (sent, understood) {
        (Value::Null, _) => {}
        (Value::Object(sent), Value::Object(understood)) => {
            for (key, value) in sent.iter().filter(|(_, value)| !value.is_null()) {
                let decoded = understood.get(key).unwrap_or_else(|| panic!("{key} is missing in {sent:?}"));
                assert_preserved(value, decoded);
            }
        }
        (Value::Array(sent), Value::Array(understood)) => {
            assert_eq!(sent.len(), understood.len(), "items are missing in {sent:?}");
            sent.iter().zip(understood).for_each(|(sent, understood)| assert_preserved(sent, understood));
        }
        (Value::Number(sent), Value::Number(understood)) => assert_eq!(sent.as_f64(), understood.as_f64()),
        (sent, understood) => assert_eq!(sent, understood),
    }
}

fn start() -> (tempfile::TempDir, Client, String) {
    start_with(&everything())
}

fn start_with(capabilities: &Value) -> (tempfile::TempDir, Client, String) {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("README.md"), "# Read me\n").unwrap();
    let mut client = Client::start(dir.path(), capabilities);
    let session = client.new_session(dir.path());
    (dir, client, session)
}

#[test]
fn invalid_input_gets_an_error_response() {
    let (_dir, mut client, session) = start();
    client.write_bytes(b"no json\n\n  \n\xff\xfe\n");
    for _ in 0..2 {
        let answer = loop {
            let message = client.next();
            if message.get("error").is_some() {
                break message;
            }
        };
        assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(-32700), &Value::Null));
    }
    assert_eq!(client.call("no/such", json!({})).unwrap_err()["code"], -32601);
    assert_eq!(client.call("session/new", json!({"cwd": "relative"})).unwrap_err()["code"], -32602);
    let error = client.call("session/prompt", json!({"sessionId": "nope", "prompt": []})).unwrap_err();
    assert_eq!((&error["code"], &error["data"]["sessionId"]), (&json!(-32002), &json!("nope")));
    let lead_out = json!({"sessionId": "../../etc/passwd", "cwd": "/", "mcpServers": []});
    assert_eq!(client.call("session/load", lead_out).unwrap_err()["code"], -32002);
    client.write(&json!({"jsonrpc": "2.0", "id": 77, "result": {}}));
    client.write(&json!({"jsonrpc": "2.0", "method": "_unknown", "params": {}}));
    client.write(&json!([{"jsonrpc": "2.0", "id": "a", "method": "session/list", "params": {}}]));
    while client.next()["id"] != "a" {}
    assert_eq!(client.prompt(&session, "hello").unwrap(), "end_turn");
    client.end();
}
