//! The agent of the simulated server: it speaks version 1 or 2 of the protocol.
//!
//! It also begins turns of its own accord (version 2), sends requests that name a session that is not open, withdraws
//! requests, and keeps its sessions when the server is restarted, but not their turns.

use serde_json::{Value, json};
use tokio::time::sleep;

use super::{Simulation, World, next};
use crate::acp::transport::remote::tests::{answer, request};

/// A session that the agent names although it is not open.
pub(super) const UNKNOWN_SESSION: &str = "unknown";
/// The turns without a prompt are numbered from here.
const FIRST_OWN_TURN: u64 = 1 << 32;

impl Simulation {
    /// The response to `initialize`.
    pub(super) fn initialized(&self, id: u64) -> String {
        let result = match self.world().version {
            2 => {
                json!({"protocolVersion": 2, "info": {"name": "x", "version": "1"}, "capabilities": {"session": {}}})
            }
            _ => json!({"protocolVersion": 1,
                "agentCapabilities": {"sessionCapabilities": {"resume": {}, "close": {}}}}),
        };
        answer(id, &result.to_string())
    }

    fn update(&self, session: &str, update: &Value) {
        let params = json!({"sessionId": session, "update": update});
        self.emit(
            session,
            json!({"jsonrpc": "2.0", "method": "session/update", "params": params}).to_string(),
        );
    }

    /// `of`: the session that the header of a message names.
    pub(super) fn serve_message(&self, message: &Value, of: Option<String>) {
        let id = message["id"].as_u64();
        let session = message["params"]["sessionId"].as_str().unwrap_or_default().to_owned();
        match (message["method"].as_str(), id) {
            (Some("session/new"), Some(id)) => {
                self.world().sessions += 1;
                let session = format!("s{}", self.world().sessions);
                self.world().open.insert(session.clone());
                self.emit("", answer(id, &json!({ "sessionId": session }).to_string()));
            }
            (Some("session/resume" | "session/load"), Some(id)) => {
                self.world().open.insert(session.clone());
                self.emit(&session, answer(id, "{}"));
            }
            (Some("session/close"), Some(id)) => {
                self.cancel(&session);
                self.world().open.remove(&session);
                self.emit(&session, answer(id, "{}"));
            }
            (Some("session/prompt"), Some(id)) => {
                if !self.world().open.contains(&session) {
                    // A prompt that may have been received arrives after its session was closed.
                    return;
                }
                let text = message["params"]["prompt"][0]["text"].as_str().unwrap_or_default();
                let number = text.trim_start_matches('p').parse().unwrap_or(id);
                *self.world().delivered.entry(number).or_default() += 1;
                self.world().turns.insert(number, session.clone());
                tokio::spawn(self.clone().turn(Some(id), number, session));
            }
            (Some("session/cancel"), None) => self.cancel(&session),
            (None, Some(number)) => self.accept(message, number, of),
            _ => panic!("{message}"),
        }
    }

    fn cancel(&self, session: &str) {
        let mut world = self.world();
        let turns: Vec<u64> =
            world.turns.iter().filter(|(_, of)| *of == session).map(|(id, _)| *id).collect();
        world.cancelled.extend(turns);
        drop(world);
        self.changed.notify_waiters();
    }

    /// A response to a request of the agent.
    fn accept(&self, message: &Value, number: u64, of: Option<String>) {
        let session = of.or_else(|| self.world().asked.get(&number).cloned());
        let session = session.expect("a response names its session");
        let is_asked = self.world().asks.values().any(|count| number <= *count);
        assert!(is_asked, "a response to a request that was not sent: {message}");
        match message["result"]["outcome"]["optionId"].as_str() {
            Some(option) => {
                assert_ne!(session, UNKNOWN_SESSION, "a request of no session was allowed");
                assert_eq!(option, format!("{session}-{number}"), "a response went to another session");
            }
            None => assert_eq!(message["result"]["outcome"]["outcome"], "cancelled", "{message}"),
        }
        self.world().accepted.insert((session, number));
        self.changed.notify_waiters();
    }

    /// A turn of the agent: text, requests, and sometimes no end but by a cancel. `id`: that of the prompt.
    async fn turn(self, id: Option<u64>, number: u64, session: String) {
        let generation = self.world().generation;
        let is_over = || {
            let world = self.world();
            world.cancelled.contains(&number) || world.generation != generation
        };
        let (steps, is_endless) = {
            let mut world = self.world();
            (world.rng.below(6), world.rng.below(4) == 0)
        };
        let is_second = self.world().version == 2;
        if is_second {
            if let Some(id) = id {
                self.emit(&session, answer(id, "{}"));
            }
            self.update(&session, &json!({"sessionUpdate": "state_update", "state": "running"}));
        }
        for _ in 0..steps {
            let (delay, asks, is_lost) = {
                let mut world = self.world();
                (world.rng.millis(3_000), world.rng.below(3) == 0, world.rng.below(12) == 0)
            };
            sleep(delay).await;
            if is_over() {
                break;
            }
            if is_lost {
                self.ask(&session, UNKNOWN_SESSION);
            }
            if !asks {
                let count = next(&mut self.world().updates, &session);
                let content = json!({"type": "text", "text": format!("{session}.{count} ")});
                let kind = "agent_message_chunk";
                let chunk =
                    json!({"sessionUpdate": kind, "messageId": number.to_string(), "content": content});
                self.update(&session, &chunk);
                continue;
            }
            let ask = self.ask(&session, &session);
            let is_accepted = |world: &World| world.accepted.contains(&(session.clone(), ask));
            self.wait_until(is_accepted, &is_over).await;
            let withdraws = {
                let mut world = self.world();
                world.generation == generation && !is_accepted(&world) && world.rng.one_in(2)
            };
            if withdraws {
                let params = json!({"requestId": ask});
                self.emit(
                    &session,
                    json!({"jsonrpc": "2.0", "method": "$/cancel_request", "params": params}).to_string(),
                );
            }
        }
        if is_endless {
            self.wait_until(|_| false, &is_over).await;
        }
        if self.world().generation == generation {
            self.end_turn(id, number, &session);
        }
    }

    fn end_turn(&self, id: Option<u64>, number: u64, session: &str) {
        self.world().turns.remove(&number);
        if self.world().version == 1 {
            self.emit(session, answer(id.expect("a prompt"), r#"{"stopReason":"end_turn"}"#));
            return;
        }
        // The session is idle when nothing is left to do.
        if self.world().turns.values().any(|of| of == session) {
            return;
        }
        let state = json!({"sessionUpdate": "state_update", "state": "idle", "stopReason": "end_turn"});
        self.update(session, &state);
        let mut world = self.world();
        if world.may_begin_turns && world.open.contains(session) && world.rng.one_in(6) {
            world.own_turns += 1;
            let number = FIRST_OWN_TURN + world.own_turns;
            world.turns.insert(number, session.to_owned());
            drop(world);
            tokio::spawn(self.clone().turn(None, number, session.to_owned()));
        }
    }

    /// Sends a request on the stream of a session. `named`: the session that it names.
    fn ask(&self, session: &str, named: &str) -> u64 {
        let has_session_streams = self.has_session_streams();
        let is_second = self.world().version == 2;
        let number = {
            let mut world = self.world();
            let number = next(&mut world.asks, if has_session_streams { named } else { "" });
            if !has_session_streams {
                world.asked.insert(number, named.to_owned());
            }
            number
        };
        let option = json!({"optionId": format!("{named}-{number}"), "name": "Allow", "kind": "allow_once"});
        let call = json!({"toolCallId": format!("{named}-{number}"), "title": "Run"});
        let params = if is_second {
            let subject = json!({"type": "tool_call", "toolCall": call});
            json!({"sessionId": named, "title": "Run", "subject": subject, "options": [option]})
        } else {
            json!({"sessionId": named, "toolCall": call, "options": [option]})
        };
        self.emit(session, request(number, "session/request_permission", &params.to_string()));
        number
    }

    async fn wait_until(&self, is_done: impl Fn(&World) -> bool, is_over: &impl Fn() -> bool) {
        loop {
            let changed = self.changed.notified();
            if is_done(&self.world()) || is_over() {
                return;
            }
            changed.await;
        }
    }
}
