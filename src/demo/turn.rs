//! A turn of the demo agent: the operations of a scene.
//!
//! Updates are sent and recorded, messages are sent in chunks at a natural pace, and questions go to the client.
//! Every operation fails with [`Stop`] once the turn is cancelled, so that a scene ends at its next step.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::agent::{Agent, usage_update};
use super::client::Client;
use super::offers;
use super::peer::Outcome;
use super::session::{Cancel, Live};

/// The turn was cancelled.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Stop;

pub(super) type Step<T = ()> = Result<T, Stop>;

/// The outcome of a permission request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Choice {
    Allowed,
    Rejected,
    /// The mode forbids it, so the user was not asked.
    Forbidden,
}

#[derive(Debug)]
pub(super) struct Turn {
    pub(super) agent: Arc<Agent>,
    pub(super) live: Arc<Live>,
    cancel: Arc<Cancel>,
}

impl Turn {
    pub(super) fn new(agent: Arc<Agent>, live: Arc<Live>, cancel: Arc<Cancel>) -> Self {
        Self { agent, live, cancel }
    }

    pub(super) fn client(&self) -> Client {
        self.agent.client()
    }

    pub(super) fn cwd(&self) -> PathBuf {
        PathBuf::from(&self.live.state().saved.cwd)
    }

    pub(super) fn scratch(&self) -> std::io::Result<PathBuf> {
        self.agent.scratch(&self.live.id)
    }

    pub(super) fn mode(&self) -> String {
        self.live.state().saved.mode.clone()
    }

    pub(super) fn model(&self) -> String {
        self.live.state().saved.model.clone()
    }

    /// A new id for a message or a tool call.
    pub(super) fn new_id(&self, kind: &str) -> String {
        format!("{kind}-{}", self.live.state().saved.next_number())
    }

    pub(super) fn check(&self) -> Step {
        if self.cancel.is_set() { Err(Stop) } else { Ok(()) }
    }

    /// Waits, if pacing is enabled.
    pub(super) fn pause(&self, ms: u64) -> Step {
        let time = if self.agent.settings.is_paced { Duration::from_millis(ms) } else { Duration::ZERO };
        if self.cancel.wait(time) { Err(Stop) } else { Ok(()) }
    }

    /// Sends an update and records it in the history.
    pub(super) fn update(&self, update: &Value) -> Step {
        self.check()?;
        self.live.state().saved.record(update);
        self.agent.peer.update(&self.live.id, update);
        Ok(())
    }

    /// Sends an update that is not part of the history.
    pub(super) fn send_update(&self, update: &Value) -> Step {
        self.check()?;
        self.agent.peer.update(&self.live.id, update);
        Ok(())
    }

    /// Records an update that the client received in another form.
    pub(super) fn record(&self, update: &Value) {
        self.live.state().saved.record(update);
    }

    /// Saves the session for a turn that may fail. It is saved again at the end of a turn, with errors
    /// reported.
    pub(super) fn save(&self) {
        let saved = self.live.state().saved.clone();
        let _ = self.agent.saved_sessions.save(&saved);
    }

    /// Sends a message in small chunks.
    pub(super) fn say(&self, text: &str) -> Step {
        self.chunks("agent_message_chunk", text)
    }

    /// Sends a thought, if thoughts are enabled.
    pub(super) fn think(&self, text: &str) -> Step {
        if !self.live.state().saved.has_thoughts {
            return self.check();
        }
        self.chunks("agent_thought_chunk", text)
    }

    fn chunks(&self, kind: &str, text: &str) -> Step {
        let message = self.new_id("message");
        let ms = offers::chunk_ms(&self.live.state().saved.speed);
        for piece in text.split_inclusive([' ', '\n']) {
            self.update(&json!({
                "sessionUpdate": kind, "messageId": message, "content": {"type": "text", "text": piece},
            }))?;
            self.pause(ms)?;
        }
        Ok(())
    }

    pub(super) fn count_usage(&self, tokens: u64) -> Step {
        let update = {
            let saved = &mut self.live.state().saved;
            let (_, price) = offers::model_size_and_price(&saved.model);
            saved.used_tokens += tokens;
            #[expect(clippy::cast_precision_loss, reason = "simulated price")]
            let cost = tokens as f64 / 1000.0 * price;
            saved.cost += cost;
            usage_update(saved)
        };
        self.send_update(&update)
    }

    /// Sends a notice, or a message if the client has no notices.
    pub(super) fn notice(&self, severity: &str, title: &str, description: &str) -> Step {
        if self.client().has_notices {
            return self.send_update(&json!({
                "sessionUpdate": "notice", "severity": severity, "title": title, "description": description,
            }));
        }
        self.say(&format!("> **{title}** {description}\n\n"))
    }

    /// Reports that the session could not be saved; also after a cancel.
    pub(super) fn warn_unsaved(&self) {
        if self.client().has_notices {
            let dir = self.agent.saved_sessions.dir().display();
            let text = format!("Cannot write {dir}. The session is lost when the demo agent exits.");
            self.agent.peer.update(
                &self.live.id,
                &json!({
                    "sessionUpdate": "notice", "severity": "warning",
                    "title": "This session is not saved.", "description": text,
                }),
            );
        }
    }

    /// Sends a request to the client and waits for the response or a cancel. The inner error is the client's
    /// error response.
    pub(super) fn request(&self, method: &str, mut params: Value) -> Step<Result<Value, String>> {
        self.check()?;
        if let Some(params) = params.as_object_mut() {
            params.insert("sessionId".to_owned(), json!(self.live.id));
        }
        let answer = self.agent.peer.request(&self.live.id, method, &params);
        // A cancel before the request was registered did not wake it.
        self.check()?;
        match answer.recv() {
            Ok(Outcome::Answered(result)) => Ok(Ok(result)),
            Ok(Outcome::Refused(why)) => Ok(Err(why)),
            Ok(Outcome::Cancelled) | Err(_) => Err(Stop),
        }
    }

    /// Whether an action is permitted: by the mode, by an earlier "always", or by a permission request.
    pub(super) fn may(&self, what: &'static str, tool: &Value, always: &str) -> Step<Choice> {
        match self.mode().as_str() {
            "auto" => return Ok(Choice::Allowed),
            "plan" => return Ok(Choice::Forbidden),
            _ if self.live.state().always.contains(what) => return Ok(Choice::Allowed),
            _ => {}
        }
        let answer = self.request(
            "session/request_permission",
            json!({"toolCall": tool, "options": [
                {"optionId": "yes", "name": "Allow once", "kind": "allow_once"},
                {"optionId": "always", "name": always, "kind": "allow_always"},
                {"optionId": "no", "name": "Reject", "kind": "reject_once"},
            ]}),
        )?;
        let chosen = answer.ok().and_then(|answer| {
            answer.pointer("/outcome/optionId").and_then(Value::as_str).map(ToOwned::to_owned)
        });
        // The outcome `cancelled` also means that the user closed the dialog.
        self.check()?;
        Ok(match chosen.as_deref() {
            Some("yes") => Choice::Allowed,
            Some("always") => {
                self.live.state().always.insert(what);
                Choice::Allowed
            }
            _ => Choice::Rejected,
        })
    }

    /// Announces a tool call and returns its id.
    pub(super) fn tool(&self, title: &str, kind: &str, more: Value) -> Step<String> {
        let id = self.new_id("call");
        let mut update = json!({
            "sessionUpdate": "tool_call", "toolCallId": id, "title": title, "kind": kind, "status": "pending",
        });
        merge(&mut update, more);
        self.update(&update)?;
        Ok(id)
    }

    pub(super) fn tool_update(&self, id: &str, status: &str, more: Value) -> Step {
        let mut update = json!({"sessionUpdate": "tool_call_update", "toolCallId": id, "status": status});
        merge(&mut update, more);
        self.update(&update)
    }
}

fn merge(object: &mut Value, more: Value) {
    if let (Some(object), Value::Object(more)) = (object.as_object_mut(), more) {
        object.extend(more);
    }
}

/// A text block as the content of a tool call.
pub(super) fn text_content(text: &str) -> Value {
    json!({"type": "content", "content": {"type": "text", "text": text}})
}
