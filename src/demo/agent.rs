//! The methods of the demo agent.
//!
//! Every request gets exactly one response; turns run on separate threads.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use super::client::Client;
use super::peer::{INTERNAL, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, NOT_FOUND, Peer};
use super::saved_sessions::DemoSessions;
use super::session::{Cancel, Kept, Live, now};
use super::turn::Turn;
use super::{Settings, offers, scenes};
use crate::lock::lock;

/// Number of sessions per page of the list.
const PAGE: usize = 20;

#[derive(Debug)]
pub(super) struct Agent {
    pub(super) peer: Arc<Peer>,
    pub(super) settings: Settings,
    pub(super) saved_sessions: DemoSessions,
    client: Mutex<Client>,
    sessions: Mutex<HashMap<String, Arc<Live>>>,
    next_session: AtomicU64,
}

struct Refusal {
    code: i64,
    message: String,
    data: Option<Value>,
}

type Answer = Result<Value, Refusal>;

fn refusal(code: i64, message: impl Into<String>) -> Refusal {
    Refusal { code, message: message.into(), data: None }
}

impl Agent {
    pub(super) fn new(peer: Arc<Peer>, settings: Settings) -> Self {
        let saved_sessions = DemoSessions::new(settings.dir.clone());
        saved_sessions.prune(SystemTime::now());
        Self {
            peer,
            settings,
            saved_sessions,
            client: Mutex::default(),
            sessions: Mutex::default(),
            next_session: AtomicU64::new(0),
        }
    }

    pub(super) fn client(&self) -> Client {
        *lock(&self.client)
    }

    /// The scratch folder of a session; created if it does not exist.
    pub(super) fn scratch(&self, session: &str) -> std::io::Result<PathBuf> {
        match &self.settings.scratch_dir {
            Some(dir) => Ok(dir.clone()),
            None => self.saved_sessions.scratch(session),
        }
    }

    /// Cancels all turns after the end of the input.
    pub(super) fn end(&self) {
        let lives: Vec<_> = self.sessions().values().cloned().collect();
        for live in lives {
            self.cancel(&live);
        }
    }

    pub(super) fn on_message(self: &Arc<Self>, message: Value) {
        // v1 has no batches, but each message of one can be handled separately.
        if let Value::Array(parts) = message {
            for part in parts {
                self.on_message(part);
            }
            return;
        }
        let id = message.get("id").filter(|id| !id.is_null());
        let method = message.get("method").and_then(Value::as_str);
        let params = message.get("params").cloned().unwrap_or_default();
        match (method, id) {
            (Some(method), Some(id)) => self.on_request(id, method, params),
            (Some("session/cancel"), None) => {
                if let Ok(live) = self.live(&params) {
                    self.cancel(&live);
                }
            }
            (Some(_), None) => {}
            (None, _) if message.get("result").is_some() || message.get("error").is_some() => {
                self.peer.on_answer(&message);
            }
            (None, id) => {
                let id = id.cloned().unwrap_or_default();
                self.peer.refuse(&id, INVALID_REQUEST, "Neither a request nor a response.", None);
            }
        }
    }

    fn on_request(self: &Arc<Self>, id: &Value, method: &str, params: Value) {
        if method == "session/prompt" {
            self.prompt(id, params);
            return;
        }
        let answer = match method {
            "initialize" => Ok(self.initialize(&params)),
            "session/new" => self.new_session(&params),
            "session/load" => self.open(&params, true),
            "session/resume" => self.open(&params, false),
            "session/fork" => self.fork(&params),
            "session/list" => self.list(&params),
            "session/close" => self.close(&params),
            "session/delete" => self.delete(&params),
            "session/set_title" => self.set_title(&params),
            "session/set_mode" => self.set_mode(&params),
            "session/set_model" => self.set_model(&params),
            "session/set_config_option" => self.set_option(&params),
            "authenticate" => Err(refusal(INVALID_PARAMS, "The demo agent does not require sign-in.")),
            _ => Err(refusal(METHOD_NOT_FOUND, format!("Method not found: {method}"))),
        };
        match answer {
            Ok(result) => {
                self.peer.answer(id, &result);
                self.after(method, &result, &params);
            }
            Err(Refusal { code, message, data }) => self.peer.refuse(id, code, &message, data),
        }
    }

    /// Sends the updates that follow a response: commands and usage of an opened session.
    fn after(&self, method: &str, result: &Value, params: &Value) {
        let session = match method {
            "session/new" | "session/fork" => result.get("sessionId"),
            "session/load" | "session/resume" => params.get("sessionId"),
            _ => None,
        };
        if let Some(session) = session.and_then(Value::as_str) {
            self.peer.update(session, &offers::commands_update());
            let live = self.sessions().get(session).cloned();
            if let Some(live) = live {
                let usage = usage_update(&live.state().saved);
                self.peer.update(session, &usage);
            }
        }
    }

    fn initialize(&self, params: &Value) -> Value {
        let capabilities = params.get("clientCapabilities").cloned().unwrap_or_default();
        *lock(&self.client) = Client::read(&capabilities);
        json!({
            "protocolVersion": 1,
            "agentCapabilities": {
                "loadSession": true,
                "promptCapabilities": {"image": true, "audio": true, "embeddedContext": true},
                "sessionCapabilities": {
                    "list": {}, "delete": {}, "resume": {}, "close": {}, "fork": {}, "title": {},
                    "additionalDirectories": {},
                },
            },
            "authMethods": [],
            "agentInfo": {"name": "parlor-demo", "title": "Demo", "version": env!("CARGO_PKG_VERSION")},
        })
    }

    fn new_session(&self, params: &Value) -> Answer {
        let cwd = cwd(params)?;
        let saved = Kept::new(self.new_id(), cwd);
        let _ = self.saved_sessions.save(&saved);
        Ok(self.insert(saved, true))
    }

    fn new_id(&self) -> String {
        let nanos = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        format!("demo-{nanos:x}-{}", self.next_session.fetch_add(1, Ordering::Relaxed))
    }

    /// Registers a session; returns the result of new, load, resume and fork.
    fn insert(&self, saved: Kept, with_id: bool) -> Value {
        let mut result = json!({
            "modes": offers::modes(&saved),
            "models": offers::models(&saved),
            "configOptions": offers::options(&saved, self.client().has_booleans),
        });
        if let (true, Some(result)) = (with_id, result.as_object_mut()) {
            result.insert("sessionId".to_owned(), json!(saved.id));
        }
        let live = Arc::new(Live::new(saved));
        self.sessions().insert(live.id.clone(), live);
        result
    }

    fn open(&self, params: &Value, with_history: bool) -> Answer {
        let saved = self.find(params)?;
        cwd(params)?;
        if self.sessions().get(&saved.id).is_some_and(|live| live.state().turn.is_some()) {
            return Err(refusal(INVALID_REQUEST, "A turn is running in this session. Cancel it first."));
        }
        if with_history {
            for update in &saved.history {
                self.peer.update(&saved.id, update);
            }
        }
        Ok(self.insert(saved, false))
    }

    fn fork(&self, params: &Value) -> Answer {
        let mut saved = self.find(params)?;
        saved.cwd = cwd(params)?;
        saved.id = self.new_id();
        saved.title = saved.title.map(|title| format!("{title} (copy)"));
        saved.updated_at = now();
        self.save(&saved)?;
        Ok(self.insert(saved, true))
    }

    fn list(&self, params: &Value) -> Answer {
        let cwd = params.get("cwd").and_then(Value::as_str);
        let start = match params.get("cursor").and_then(Value::as_str) {
            None => 0,
            Some(cursor) => {
                cursor.parse::<usize>().map_err(|_| refusal(INVALID_PARAMS, "Invalid cursor."))?
            }
        };
        let all: Vec<_> = self
            .saved_sessions
            .list()
            .into_iter()
            .filter(|saved| cwd.is_none_or(|cwd| saved.cwd == cwd))
            .collect();
        let page: Vec<Value> = all.iter().skip(start).take(PAGE).map(Kept::info).collect();
        let mut result = json!({"sessions": page});
        if let (true, Some(result)) = (all.len() > start + PAGE, result.as_object_mut()) {
            result.insert("nextCursor".to_owned(), json!((start + PAGE).to_string()));
        }
        Ok(result)
    }

    fn close(&self, params: &Value) -> Answer {
        let live = self.live(params)?;
        self.cancel(&live);
        self.sessions().remove(&live.id);
        Ok(json!({}))
    }

    fn delete(&self, params: &Value) -> Answer {
        let id = id_of(params)?;
        if let Ok(live) = self.live(params) {
            self.cancel(&live);
            self.sessions().remove(id);
        }
        // Idempotent: an unknown session counts as deleted.
        let _ = self.saved_sessions.delete(id);
        Ok(json!({}))
    }

    fn set_title(&self, params: &Value) -> Answer {
        let title = text_of(params, "title")?.trim().to_owned();
        if let Ok(live) = self.live(params) {
            self.give_title(&live, &title);
        } else {
            // A session can be renamed without being open.
            let mut saved = self.find(params)?;
            saved.title = Some(title.clone());
            self.save(&saved)?;
        }
        Ok(json!({"title": title}))
    }

    /// Saves a title and sends it to the client.
    pub(super) fn give_title(&self, live: &Live, title: &str) {
        let saved = {
            let mut state = live.state();
            state.saved.title = Some(title.to_owned());
            state.saved.updated_at = now();
            state.saved.clone()
        };
        let _ = self.save(&saved);
        self.peer.update(
            &live.id,
            &json!({
                "sessionUpdate": "session_info_update", "title": title, "updatedAt": saved.updated_at,
            }),
        );
    }

    fn set_mode(&self, params: &Value) -> Answer {
        let live = self.live(params)?;
        let mode = text_of(params, "modeId")?;
        self.give_mode(&live, mode)?;
        self.peer.update(&live.id, &self.options_update(&live));
        Ok(json!({}))
    }

    fn give_mode(&self, live: &Live, mode: &str) -> Result<(), Refusal> {
        if !offers::is_mode(mode) {
            return Err(refusal(INVALID_PARAMS, format!("Unknown mode {mode}.")));
        }
        mode.clone_into(&mut live.state().saved.mode);
        self.peer.update(&live.id, &json!({"sessionUpdate": "current_mode_update", "currentModeId": mode}));
        Ok(())
    }

    fn set_model(&self, params: &Value) -> Answer {
        let live = self.live(params)?;
        let model = text_of(params, "modelId")?;
        give_model(&live, model)?;
        self.peer.update(&live.id, &self.options_update(&live));
        Ok(json!({}))
    }

    fn set_option(&self, params: &Value) -> Answer {
        let live = self.live(params)?;
        let value = params.get("value").cloned().unwrap_or_default();
        let text = value.as_str().unwrap_or_default();
        match (text_of(params, "configId")?, &value) {
            ("mode", _) => self.give_mode(&live, text)?,
            ("model", _) => give_model(&live, text)?,
            ("speed", _) if offers::is_speed(text) => text.clone_into(&mut live.state().saved.speed),
            ("thoughts", Value::Bool(value)) => live.state().saved.has_thoughts = *value,
            (id, value) => {
                let message = format!("Invalid value {value} for the option {id}.");
                return Err(refusal(INVALID_PARAMS, message));
            }
        }
        let saved = live.state().saved.clone();
        self.save(&saved)?;
        Ok(json!({"configOptions": offers::options(&saved, self.client().has_booleans)}))
    }

    fn options_update(&self, live: &Live) -> Value {
        let options = offers::options(&live.state().saved, self.client().has_booleans);
        json!({"sessionUpdate": "config_option_update", "configOptions": options})
    }

    fn prompt(self: &Arc<Self>, id: &Value, params: Value) {
        let start = self.live(&params).and_then(|live| {
            let cancel = Arc::new(Cancel::default());
            let mut state = live.state();
            if state.turn.is_some() {
                return Err(refusal(
                    INVALID_REQUEST,
                    "A turn is already running. Wait for it, or cancel it.",
                ));
            }
            state.turn = Some(Arc::clone(&cancel));
            drop(state);
            Ok((live, cancel))
        });
        let (live, cancel) = match start {
            Ok(start) => start,
            Err(refused) => return self.peer.refuse(id, refused.code, &refused.message, refused.data),
        };
        let agent = Arc::clone(self);
        let here = Arc::clone(&live);
        let answer_id = id.clone();
        let started = thread::Builder::new().name("turn".to_owned()).spawn(move || {
            let turn = Turn::new(Arc::clone(&agent), Arc::clone(&here), cancel);
            let answer = scenes::play(&turn, &params);
            let saved = {
                let mut state = here.state();
                state.saved.updated_at = now();
                state.saved.clone()
            };
            let is_saved = agent.saved_sessions.save(&saved).is_ok();
            if !is_saved {
                turn.warn_unsaved();
            }
            // The client may send the next prompt right after the response.
            here.state().turn = None;
            match answer {
                Ok(result) => agent.peer.answer(&answer_id, &result),
                Err((message, data)) => agent.peer.refuse(&answer_id, INTERNAL, &message, Some(data)),
            }
        });
        if started.is_err() {
            live.state().turn = None;
            self.peer.refuse(id, INTERNAL, "Could not start a thread for the turn. Try again later.", None);
        }
    }

    fn cancel(&self, live: &Live) {
        let turn = live.state().turn.clone();
        if let Some(turn) = turn {
            // Set before waking the turn, so that a request in between sees the cancel.
            turn.set();
            self.peer.cancel_waiting(&live.id);
        }
    }

    fn save(&self, saved: &Kept) -> Result<(), Refusal> {
        self.saved_sessions.save(saved).map_err(|error| {
            let dir = self.saved_sessions.dir().display();
            refusal(INTERNAL, format!("Cannot save the session in {dir}: {error}."))
        })
    }

    fn live(&self, params: &Value) -> Result<Arc<Live>, Refusal> {
        let id = id_of(params)?;
        self.sessions().get(id).cloned().ok_or_else(|| unknown(id))
    }

    /// A session that is open or saved.
    fn find(&self, params: &Value) -> Result<Kept, Refusal> {
        let id = id_of(params)?;
        let live = self.sessions().get(id).cloned();
        live.map(|live| live.state().saved.clone())
            .or_else(|| self.saved_sessions.load(id))
            .ok_or_else(|| unknown(id))
    }

    fn sessions(&self) -> MutexGuard<'_, HashMap<String, Arc<Live>>> {
        lock(&self.sessions)
    }
}

/// Context size and cost of a session.
pub(super) fn usage_update(saved: &Kept) -> Value {
    let (size, _) = offers::model_size_and_price(&saved.model);
    let cost = (saved.cost * 10_000.0).round() / 10_000.0;
    json!({
        "sessionUpdate": "usage_update", "used": saved.used_tokens.min(size), "size": size,
        "cost": {"amount": cost, "currency": "USD"},
    })
}

fn give_model(live: &Live, model: &str) -> Result<(), Refusal> {
    if !offers::is_model(model) {
        return Err(refusal(INVALID_PARAMS, format!("Unknown model {model}.")));
    }
    model.clone_into(&mut live.state().saved.model);
    Ok(())
}

fn unknown(id: &str) -> Refusal {
    Refusal {
        code: NOT_FOUND,
        message: format!("Unknown session {id}."),
        data: Some(json!({"sessionId": id})),
    }
}

fn id_of(params: &Value) -> Result<&str, Refusal> {
    text_of(params, "sessionId")
}

fn text_of<'a>(params: &'a Value, key: &str) -> Result<&'a str, Refusal> {
    params
        .get(key)
        .and_then(Value::as_str)
        .ok_or_else(|| refusal(INVALID_PARAMS, format!("Missing parameter {key}.")))
}

fn cwd(params: &Value) -> Result<String, Refusal> {
    let cwd = text_of(params, "cwd")?;
    if !Path::new(cwd).is_absolute() {
        return Err(refusal(INVALID_PARAMS, "The parameter cwd must be an absolute path."));
    }
    Ok(cwd.to_owned())
}
