//! A front end in another process, which knows only what it was sent.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::core::State;
use crate::core::state::shown::Seen;

#[derive(Default)]
pub struct Mirror {
    seen: Seen,
    overview: Value,
    sessions: BTreeMap<u64, Session>,
}

#[derive(Default, Debug, PartialEq)]
struct Session {
    summary: Value,
    items: Vec<Value>,
    /// Text and exit status of each command.
    outputs: BTreeMap<String, (String, Value)>,
}

impl Mirror {
    /// Receives the changes. Returns them as JSON.
    pub fn follow(&mut self, state: &State) -> Value {
        let sent = serde_json::to_value(self.seen.changes(state)).expect("it can be serialised");
        if let Some(overview) = sent.get("overview") {
            self.overview = overview.clone();
            let open: Vec<u64> = list(overview, "sessions").iter().filter_map(Value::as_u64).collect();
            self.sessions.retain(|key, _| open.contains(key));
        }
        for change in list(&sent, "sessions") {
            let key = change["session"].as_u64().expect("a key");
            self.sessions.entry(key).or_default().apply(change);
        }
        sent
    }

    /// Fails if it differs from a mirror that receives everything now.
    pub fn check(&self, state: &State) {
        let mut other = Self::default();
        other.follow(state);
        assert_eq!(self.overview, other.overview);
        assert_eq!(self.sessions, other.sessions);
    }
}

impl Session {
    fn apply(&mut self, change: &Value) {
        if let Some(summary) = change.get("summary") {
            self.summary = summary.clone();
        }
        if change["has_all_items"] == true {
            self.items.clear();
        }
        for item in list(change, "items") {
            match self.items.iter_mut().find(|known| known["id"] == item["id"]) {
                Some(known) => *known = item.clone(),
                None => self.items.push(item.clone()),
            }
        }
        if let Some(more) = change.get("more_text") {
            let item = self.items.iter_mut().find(|known| known["id"] == more[0]).expect("a known item");
            let parts = item["body"]["message"]["parts"].as_array_mut().expect("a message");
            let Some(Value::String(text)) = parts.last_mut().map(|part| &mut part["text"]) else {
                panic!("the last part is text")
            };
            text.push_str(more[1].as_str().expect("text"));
        }
        for change in list(change, "outputs") {
            let id = change["terminal"].as_str().expect("an id").to_owned();
            let (text, exit) = self.outputs.entry(id).or_default();
            if change["is_all"] == true {
                text.clear();
            }
            text.push_str(change["text"].as_str().expect("text"));
            *exit = change["exit"].clone();
        }
    }
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}
