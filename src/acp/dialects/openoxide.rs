//! `OpenOxide`: a protocol of its own, version "0.1", with `session/create`, `prompt/send` and events.
//!
//! Its documentation names the events but not their envelope, so an event is accepted as a method, inside an update,
//! and without an envelope; it does not specify `session/resume` either, so several forms are tried. A turn ends with
//! `done` or with the response to the prompt, whichever is first; `peer` gets one response.
//! Source: the client page of `OpenOxide`.

mod turns;
pub(in crate::acp) mod workspace;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use tokio::time::Instant;

use self::turns::Turns;
use super::{Dialect, Method, Translation};
use crate::acp::codec::decoder::Decoder;
use crate::acp::codec::names::{
    MESSAGE_CONTENT, NEW_SESSION_ID, PLAN_STATUS, SESSION_ID, TOOL_ID, TOOL_INPUT, TOOL_NAME, TOOL_OUTPUT,
    official, session_id,
};
use crate::acp::codec::tools::output_text;
use crate::acp::codec::value::{
    Object, first, first_text, into_object, list, parse_object, rename, take, take_text, whole, without_nulls,
};
use crate::acp::codec::{content, errors, options};
use crate::acp::envelope::{Message, id_number};
use crate::model::{AgentCapabilities, AgentInfo, Call, Profile, RpcError, SessionId, WireSpec};

/// Names of its events; over HTTP, they are also the event names of the stream.
pub const EVENTS: &[&str] =
    &["text_delta", "thinking_delta", "tool_use", "tool_result", "diff_block", "plan_step", "error", "done"];
/// Boolean capabilities that only this protocol has.
const CAPABILITIES: &[&str] =
    &["file_read", "file_write", "terminal_exec", "web_search", "session_fork", "streaming"];
const EVENT_NAME: &[&str] = &["type", "event", "sessionUpdate"];

#[derive(Debug, Default)]
pub struct OpenOxide {
    wire: WireSpec,
    is_early: bool,
    is_remote: bool,
    can: Object,
    turns: Turns,
    /// Requests whose response has a new session.
    creating: BTreeSet<u64>,
    /// Requests to resume a session: the session, its folder, and the number of the form.
    resuming: BTreeMap<u64, (String, String, usize)>,
    sessions: BTreeSet<String>,
    plan: Plan,
    last_tool: Option<String>,
    diffs: u64,
}

impl OpenOxide {
    pub fn new(wire: &WireSpec, is_early: bool, is_remote: bool) -> Self {
        Self { wire: wire.clone(), is_early, is_remote, turns: Turns::new(is_remote), ..Self::default() }
    }

    /// The session of an event that names none: the only one with a turn, or the only one.
    fn only_session(&self) -> Option<String> {
        self.turns.only_session().or_else(|| {
            let mut sessions = self.sessions.iter();
            sessions.next().filter(|_| sessions.next().is_none()).cloned()
        })
    }

    /// Translates the response to a request that opens a session; false if it passes unchanged.
    fn on_opened(&mut self, id: u64, outcome: Result<&str, &str>, out: &mut Translation) -> bool {
        if self.creating.remove(&id) {
            let Some(mut result) = outcome.ok().and_then(parse_object) else { return false };
            let Some(session) = session_id(&result, NEW_SESSION_ID) else { return false };
            self.sessions.insert(session.clone());
            result.insert("sessionId".to_owned(), session.into());
            out.respond(id, Ok(result.into()));
            return true;
        }
        let Some((session, folder, form)) = self.resuming.remove(&id) else { return false };
        match outcome {
            Err(error) if errors::decode(error).code == RpcError::INVALID_PARAMS => {
                let Some(params) = resume(&session, &folder, form + 1) else { return false };
                out.to_agent.push((id, ("session/resume", params)));
                self.resuming.insert(id, (session, folder, form + 1));
                return true;
            }
            Err(_) => {}
            Ok(_) => {
                self.sessions.insert(session);
            }
        }
        false
    }

    fn on_event(&mut self, event: Event, out: &mut Translation) {
        let Some(session) = event.session.or_else(|| self.only_session()) else {
            return out.problems.push("Ignored an event without a session.");
        };
        let mut body = event.body;
        let update = match event.name {
            "done" => return self.turns.on_done(&session, body, out),
            "error" => {
                let error = errors::decode(&Value::Object(body).to_string());
                let notice = json!({"sessionUpdate": "notice", "severity": "error", "title": error.message});
                out.update(&session, &into_object(notice));
                return self.turns.on_error(&session, error, out.now);
            }
            "text_delta" => message("agent_message_chunk", &mut body),
            "thinking_delta" => message("agent_thought_chunk", &mut body),
            "tool_use" => Some(self.tool_use(body)),
            "tool_result" => self.tool_result(body),
            "diff_block" => self.diff_block(body),
            _ => self.plan.step(&session, &body),
        };
        self.turns.on_activity(&session, out.now);
        match update {
            Some(update) => out.update(&session, &update),
            None => out.problems.push("Ignored an incomplete event."),
        }
    }

    fn tool_use(&mut self, mut call: Object) -> Object {
        rename(&mut call, "toolCallId", TOOL_ID);
        rename(&mut call, "name", TOOL_NAME);
        rename(&mut call, "rawInput", TOOL_INPUT);
        self.last_tool = first_text(&call, &["toolCallId"]).or(self.last_tool.take());
        named("tool_call", call)
    }

    /// Some results have no id; they belong to the last call.
    fn tool_result(&mut self, mut result: Object) -> Option<Object> {
        let id = take_text(&mut result, TOOL_ID).or_else(|| self.last_tool.clone())?;
        let is = |key: &str, value: bool| result.get(key) == Some(&Value::Bool(value));
        let is_failed = is("is_error", true)
            || is("isError", true)
            || is("success", false)
            || result.get("error").is_some_and(|error| !error.is_null() && *error != Value::Bool(false));
        if result.get("status").is_none_or(Value::is_null) {
            let status = if is_failed { "failed" } else { "completed" };
            result.insert("status".to_owned(), status.into());
        }
        let payload = take(&mut result, &["content"])
            .or_else(|| take(&mut result, TOOL_OUTPUT))
            .or_else(|| take(&mut result, &["error"]));
        match payload {
            Some(Value::Array(items)) if items.iter().all(|item| item.get("type").is_some()) => {
                result.insert("content".to_owned(), items.into());
            }
            Some(payload) => {
                if let Some(text) = output_text(&payload) {
                    let item = json!({"type": "content", "content": {"type": "text", "text": text}});
                    result.insert("content".to_owned(), vec![item].into());
                }
                result.insert("rawOutput".to_owned(), payload);
            }
            None => {}
        }
        result.insert("toolCallId".to_owned(), id.into());
        Some(named("tool_call_update", result))
    }

    /// The agent has already made the change, so no permission is requested.
    fn diff_block(&mut self, mut block: Object) -> Option<Object> {
        rename(&mut block, "path", &["file_path", "file"]);
        let path = first_text(&block, &["path"])?;
        let diff = take(&mut block, &["unified_diff", "unifiedDiff", "diff", "patch"])?;
        let id = take_text(&mut block, TOOL_ID).unwrap_or_else(|| {
            self.diffs += 1;
            format!("parlor-diff-{}", self.diffs)
        });
        self.last_tool = Some(id.clone());
        Some(into_object(json!({
            "sessionUpdate": "tool_call",
            "toolCallId": id,
            "title": format!("Edit {path}"),
            "kind": "edit",
            "status": "completed",
            "content": [{"type": "diff", "path": path, "diff": diff}],
            "locations": [{"path": path}],
        })))
    }
}

impl Dialect for OpenOxide {
    fn initialize(&self) -> Option<Method> {
        Some(initialize())
    }

    fn initialized(&mut self, result: &str) -> Option<String> {
        let mut result = parse_object(result).filter(is_spoken_in)?;
        if let Some(Value::Object(can)) = take(&mut result, &["capabilities"]) {
            self.can = can;
        }
        rename(&mut result, "agentInfo", &["serverInfo"]);
        result.insert("protocolVersion".to_owned(), 1.into());
        Some(Value::Object(result).to_string())
    }

    fn describe(&self, info: &mut AgentInfo) {
        info.profile = Some(Profile::OpenOxide);
        let can_fork = self.can.get("session_fork") == Some(&Value::Bool(true));
        info.capabilities = AgentCapabilities {
            can_resume: true,
            can_fork,
            can_fork_at_turn: can_fork,
            ..AgentCapabilities::default()
        };
        if let Some(commands) = self.can.get("slash_commands") {
            info.commands = options::decode_commands(list(commands.clone()), &mut Decoder::default());
        }
        let mut notes = vec![
            "The agent uses its own protocol instead of ACP.",
            "Updates are sent as events; a turn ends with `done` or with its response.",
        ];
        if !self.is_remote {
            notes.push("A shutdown request is sent before the agent's input is closed.");
        }
        if self.speaks_first() {
            notes.extend([
                "parlor waits up to 750 ms for the agent's first message.",
                "Only one instance per folder.",
                "The session id is stored in .openoxide/sessions/.current for the next start.",
            ]);
        }
        info.quirks.extend(notes.into_iter().map(str::to_owned));
    }

    fn speaks_first(&self) -> bool {
        self.is_early && !self.is_remote
    }

    /// A shared server is never asked to shut down.
    fn shuts_down(&self) -> bool {
        !self.is_remote
    }

    fn call(&mut self, id: u64, call: &Call, message: &mut Method) -> Result<(), String> {
        let translated = match call {
            Call::NewSession(workspace) => {
                self.creating.insert(id);
                let config = json!({"model": self.wire.model, "auto_commits": self.wire.auto_commits});
                let config = Some(without_nulls(config)).filter(|config| *config != json!({}));
                let folder = workspace.folder().to_string_lossy();
                let params = without_nulls(json!({"workingDir": folder, "config": config}));
                ("session/create", params.to_string())
            }
            Call::ResumeSession(session, workspace) => {
                let session = session.to_string();
                let folder = workspace.folder().to_string_lossy().into_owned();
                let params = resume(&session, &folder, 0).unwrap_or_default();
                self.resuming.insert(id, (session, folder, 0));
                ("session/resume", params)
            }
            Call::ForkSession(session, _, turns) => {
                self.creating.insert(id);
                // A fork starts at the last turn.
                let turn = turns.saturating_sub(1).saturating_add(self.wire.first_turn);
                let params = json!({"source_session_id": session.as_str(), "branch_at_turn": turn});
                ("session/fork", params.to_string())
            }
            Call::Prompt(session, blocks) => {
                self.turns.begin(id, session.as_str());
                let can = AgentCapabilities::default();
                let content: Vec<_> = blocks.iter().map(|block| content::encode(block, &can)).collect();
                let params = json!({"session_id": session.as_str(), "content": content});
                ("prompt/send", params.to_string())
            }
            _ => return Ok(()),
        };
        *message = translated;
        Ok(())
    }

    fn cancel(&self, _session: &SessionId, prompt: Option<u64>) -> Option<Method> {
        prompt.and_then(|id| self.withdraw(id))
    }

    fn withdraw(&self, id: u64) -> Option<Method> {
        Some(("$/cancelRequest", json!({ "id": id }).to_string()))
    }

    fn receive(&mut self, message: &Message<'_>, text: &str, out: &mut Translation) -> bool {
        let event = match message {
            Message::Notification { method, params } | Message::Request { id: "null", method, params } => {
                read_event(method, params.unwrap_or("{}"))
            }
            // An event without an envelope may have an id, but no result or error.
            Message::Odd(_) | Message::Response { outcome: Ok("null"), .. } => read_event("", text),
            _ => None,
        };
        if let Some(event) = event {
            self.on_event(event, out);
            return true;
        }
        let Message::Response { id, outcome } = message else { return false };
        let Some(id) = id_number(id) else { return false };
        self.turns.on_response(id, *outcome, out) || self.on_opened(id, *outcome, out)
    }

    fn deadline(&self) -> Option<Instant> {
        self.turns.deadline()
    }

    fn on_deadline(&mut self, out: &mut Translation) {
        self.turns.on_deadline(out);
    }
}

pub fn initialize() -> Method {
    let params = json!({
        "protocolVersion": "0.1",
        "clientInfo": {"name": "parlor", "version": env!("CARGO_PKG_VERSION")},
        "capabilities": {"diff_rendering": true, "terminal_display": true, "slash_commands": true},
    });
    ("initialize", params.to_string())
}

fn resume(session: &str, folder: &str, form: usize) -> Option<String> {
    let params = match form {
        0 => json!({"session_id": session, "sessionId": session, "workingDir": folder}),
        1 => json!({"session_id": session}),
        2 => json!({"sessionId": session}),
        _ => return None,
    };
    Some(params.to_string())
}

/// Whether a response to `initialize` is of this protocol; official fields rule it out.
pub fn is_spoken_in(result: &Object) -> bool {
    if result.contains_key("agentCapabilities") || result.contains_key("agentInfo") {
        return false;
    }
    let version = result.get("protocolVersion").and_then(Value::as_str);
    let has_own_capability = |can: &Object| CAPABILITIES.iter().any(|key| can.contains_key(*key));
    version.is_some_and(|version| version.starts_with("0."))
        || result.get("capabilities").and_then(Value::as_object).is_some_and(has_own_capability)
        || result.contains_key("serverInfo")
}

struct Event {
    name: &'static str,
    session: Option<String>,
    body: Object,
}

/// Reads an event from a method, its params, an object in them, or a bare object.
fn read_event(method: &str, params: &str) -> Option<Event> {
    let known = |name: &str| EVENTS.iter().find(|known| **known == name).copied();
    let named = known(method.rsplit('/').next().unwrap_or(method));
    // Skips messages of the protocol, which other calls send.
    let mut params = parse_object(params)?;
    let inside = |object: &Object| first_text(object, EVENT_NAME).and_then(|name| known(&name));
    let within = || ["event", "update"].iter().find_map(|key| inside(params.get(*key)?.as_object()?));
    let name = named.or_else(|| inside(&params)).or_else(within)?;
    let session = first_text(&params, SESSION_ID);
    let mut body = match take(&mut params, &["event", "update", "data"]) {
        Some(Value::Object(body)) if named.is_some() || inside(&body).is_some() => body,
        // `event: "text_delta"` beside its fields, or with them in `data`
        Some(Value::String(_)) => match take(&mut params, &["data"]) {
            Some(Value::Object(data)) => data,
            Some(Value::String(text)) => Object::from_iter([("text".to_owned(), text.into())]),
            _ => params,
        },
        Some(other) => {
            params.insert("data".to_owned(), other);
            params
        }
        None => params,
    };
    let session = session.or_else(|| first_text(&body, SESSION_ID));
    body.retain(|key, _| !SESSION_ID.contains(&key.as_str()) && !EVENT_NAME.contains(&key.as_str()));
    Some(Event { name, session, body })
}

fn message(kind: &str, body: &mut Object) -> Option<Object> {
    let content = take(body, MESSAGE_CONTENT)?;
    let text = |text: &Value| json!({"type": "text", "text": text});
    let content = match &content {
        Value::String(_) => text(&content),
        Value::Object(inner) if !inner.contains_key("type") => text(inner.get("text")?),
        _ => content,
    };
    Some(named(kind, Object::from_iter([("content".to_owned(), content)])))
}

fn named(kind: &str, mut update: Object) -> Object {
    update.insert("sessionUpdate".to_owned(), kind.into());
    update
}

/// Maximum number of entries of a plan, which are sent one at a time.
const MAX_STEPS: usize = 1000;

/// The plan of the session that reported a step last.
#[derive(Debug, Default)]
pub struct Plan {
    session: String,
    steps: Vec<Step>,
}

#[derive(Debug)]
struct Step {
    /// The position in the agent's numbering, if it sends one.
    position: Option<i64>,
    content: String,
    status: String,
}

impl Plan {
    /// Adds or changes a step, and returns the whole plan as an update. A step is known by its position, otherwise by
    /// its text; a new one without a position completes the previous one. Positions may begin at 0 or 1, and the number
    /// of steps may change.
    pub fn step(&mut self, session: &str, event: &Object) -> Option<Object> {
        if self.session != session {
            *self = Self { session: session.to_owned(), steps: Vec::new() };
        }
        let position = first(event, &["index", "position", "number"])
            .or_else(|| first(event, &["step", "current"]))
            .and_then(number);
        let status = first_text(event, &["status", "state"]).map(|word| official(PLAN_STATUS, &word));
        let content = ["content", "text", "description", "title", "name", "step"]
            .iter()
            .filter_map(|key| event.get(*key).filter(|value| *key != "step" || number(value).is_none()))
            .find_map(|value| value.as_str().map(str::to_owned));
        // Steps without positions are numbered from 0.
        if position.is_some() && self.steps.iter().all(|step| step.position.is_none()) {
            for (at, step) in (0..).zip(&mut self.steps) {
                step.position = Some(at);
            }
        }
        let known = self.steps.iter_mut().find(|step| match position {
            Some(_) => step.position == position,
            None => Some(&step.content) == content.as_ref(),
        });
        if let Some(step) = known {
            step.status = status.unwrap_or_else(|| std::mem::take(&mut step.status));
            step.content = content.unwrap_or_else(|| std::mem::take(&mut step.content));
        } else {
            self.add(position, content.filter(|_| self.steps.len() < MAX_STEPS)?, status);
        }
        let entry =
            |step: &Step| json!({"content": step.content, "priority": "medium", "status": step.status});
        let entries: Vec<Value> = self.steps.iter().map(entry).collect();
        Some(into_object(json!({"sessionUpdate": "plan", "entries": entries})))
    }

    fn add(&mut self, position: Option<i64>, content: String, status: Option<String>) {
        if position.is_none()
            && let Some(last) = self.steps.last_mut()
        {
            "completed".clone_into(&mut last.status);
        }
        let status = status.unwrap_or_else(|| "in_progress".to_owned());
        let position = position.or_else(|| Some(self.steps.last()?.position?.saturating_add(1)));
        // Steps may arrive out of order.
        let at = self.steps.iter().position(|step| position.is_some() && step.position > position);
        self.steps.insert(at.unwrap_or(self.steps.len()), Step { position, content, status });
    }
}

/// The position of a step: `2`, `"2"` or `"2/5"`.
fn number(value: &Value) -> Option<i64> {
    whole(value).or_else(|| {
        let (number, total) = value.as_str()?.split_once('/')?;
        total.parse::<u64>().ok().and(number.parse().ok())
    })
}
