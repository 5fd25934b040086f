//! The user of a simulated connection: draws prompts, cancels and answers, and checks what arrives.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until};

use super::{PATIENCE, SESSIONS, Simulation, next};
use crate::acp::frame::{DEFAULT_FRAME_BYTES, InboundFrame};
use crate::acp::transport::remote::tests::{Peer, answer, request};
use crate::acp::transport::remote::{RemoteAgent, Timeouts};
use crate::acp::transport::{In, LinkEnd};
use crate::model::{Carrier, Remote};
use crate::random::Random;

/// The user, with what parlor has told.
pub(super) struct User {
    simulation: Simulation,
    peer: Peer,
    rng: Random,
    next_id: u64,
    sessions: Vec<String>,
    /// Requests without an outcome; prompts with their session.
    open: BTreeMap<u64, Option<String>>,
    cancelled: BTreeSet<u64>,
    unanswered: BTreeSet<(String, u64)>,
    answered: BTreeSet<(String, u64)>,
    undelivered: u64,
    outcomes: BTreeMap<u64, String>,
    updates: BTreeMap<String, u64>,
    is_cut: bool,
    pub(super) end: Option<LinkEnd>,
}

impl User {
    pub(super) fn new(seed: u64, carrier: Option<Carrier>) -> Self {
        let simulation = Simulation::new(seed, carrier);
        let peer = if carrier.is_some() {
            let remote =
                Remote { url: "http://simulated.invalid/acp".to_owned(), carrier, ..Remote::default() };
            let agent = RemoteAgent::new(remote)
                .with_timeouts(Timeouts { jitter: 0, ..Timeouts::default() })
                .with_simulation(simulation.clone());
            Peer::begin(agent, DEFAULT_FRAME_BYTES)
        } else {
            Peer::begin(simulation.start_process(), DEFAULT_FRAME_BYTES)
        };
        let mut this = Self {
            simulation,
            peer,
            rng: Random::new(!seed),
            next_id: 1,
            sessions: Vec::new(),
            open: BTreeMap::new(),
            cancelled: BTreeSet::new(),
            unanswered: BTreeSet::new(),
            answered: BTreeSet::new(),
            undelivered: 0,
            outcomes: BTreeMap::new(),
            updates: BTreeMap::new(),
            is_cut: false,
            end: None,
        };
        this.call("initialize", r#"{"protocolVersion":1}"#, None);
        this
    }

    fn call(&mut self, method: &str, params: &str, session: Option<String>) {
        let id = self.next_id;
        self.next_id += 1;
        self.open.insert(id, session);
        self.peer.say(&request(id, method, params));
    }

    /// The running turn of a session.
    fn turn_of(&self, session: &str) -> Option<u64> {
        self.open.iter().find(|(_, of)| of.as_deref() == Some(session)).map(|(id, _)| *id)
    }

    fn act(&mut self) {
        if self.sessions.len() < usize::try_from(SESSIONS).unwrap() {
            if self.open.is_empty() && self.outcomes.contains_key(&1) {
                self.call("session/new", r#"{"cwd":"/","mcpServers":[]}"#, None);
            }
            return;
        }
        let session = self.sessions[usize::try_from(self.rng.below(SESSIONS)).unwrap()].clone();
        match (self.turn_of(&session), self.rng.below(40)) {
            (None, _) => {
                let params = json!({"sessionId": session, "prompt": []}).to_string();
                self.call("session/prompt", &params, Some(session));
            }
            (Some(turn), 0..12) => self.cancel(turn, &session),
            (_, 12) => {
                let until = Instant::now() + self.rng.millis(20_000);
                self.simulation.world().down_until = until;
            }
            (_, 13) if self.rng.below(10) == 0 => self.simulation.restart(),
            _ => {}
        }
        if let Some(ask) = self.unanswered.pop_first() {
            self.answer(ask);
        }
    }

    fn answer(&mut self, (session, number): (String, u64)) {
        let outcome = json!({"outcome": {"outcome": "selected", "optionId": format!("{session}-{number}")}});
        self.peer.respond(&session, &answer(number, &outcome.to_string()));
        self.answered.insert((session, number));
    }

    fn cancel(&mut self, turn: u64, session: &str) {
        self.cancelled.insert(turn);
        let cancel = json!({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": session}});
        self.peer.say(&cancel.to_string());
    }

    fn hear(&mut self, message: In) {
        match message {
            In::Pieces(pieces) => {
                for piece in pieces {
                    match piece {
                        InboundFrame::Frame(frame) => {
                            assert!(!self.is_cut, "a message follows an incomplete one");
                            match serde_json::from_str(frame.text()) {
                                Ok(message) => self.hear_message(&message),
                                // The process ended in the middle of a message.
                                Err(_) => self.is_cut = true,
                            }
                        }
                        InboundFrame::Noise(line) if line.starts_with(b"warning") => {}
                        other => panic!("{other:?}"),
                    }
                }
            }
            In::Undelivered { .. } => self.undelivered += 1,
            In::Note(_) | In::Interrupted(_) => {}
            In::Closed(end) => self.end = Some(end),
        }
    }

    fn hear_message(&mut self, message: &Value) {
        let session = message["params"]["sessionId"].as_str().unwrap_or_default().to_owned();
        match (message["method"].as_str(), message["id"].as_u64()) {
            (None, Some(id)) => {
                let is_first = self.outcomes.insert(id, message.to_string()).is_none();
                assert!(is_first && self.open.remove(&id).is_some(), "a second outcome: {message}");
                if let Some(session) = message["result"]["sessionId"].as_str() {
                    self.sessions.push(session.to_owned());
                }
            }
            (Some("session/update"), None) => {
                let number = message["params"]["n"].as_u64().unwrap();
                assert_eq!(
                    number,
                    next(&mut self.updates, &session),
                    "text is lost, doubled or out of order"
                );
            }
            // The peer knows requests that are repeated.
            (Some("session/request_permission"), Some(number)) => {
                let ask = (session, number);
                if !self.answered.contains(&ask) {
                    self.unanswered.insert(ask);
                }
            }
            _ => panic!("{message}"),
        }
    }

    /// Whether nobody waits for anything.
    fn is_quiet(&self) -> bool {
        let world = self.simulation.world();
        self.open.is_empty()
            && self.unanswered.is_empty()
            && world.turns.is_empty()
            && world.updates == self.updates
            && self.answered.iter().filter(|ask| !world.accepted.contains(*ask)).count() as u64
                <= self.undelivered
    }

    pub(super) async fn live(&mut self) {
        let rough_until = self.simulation.world().calm_at;
        let give_up = rough_until + PATIENCE;
        let mut next_act = Instant::now();
        loop {
            let now = Instant::now();
            let is_rough = now < rough_until;
            if self.end.is_some() || !is_rough && self.is_quiet() {
                return;
            }
            assert!(
                now < give_up,
                "somebody waits: {:?} {:?} {:?}\n{}",
                self.open,
                self.unanswered,
                self.simulation.world(),
                self.peer.log()
            );
            tokio::select! {
                biased;
                message = self.peer.link.incoming.recv() => self.hear(message.expect("`Closed` is sent first")),
                () = sleep_until(next_act) => {
                    next_act = now + Duration::from_millis(50) + self.rng.millis(3_000);
                    if is_rough {
                        self.act();
                    } else {
                        self.calm_down();
                    }
                }
            }
        }
    }

    /// Ends what only the user can end.
    fn calm_down(&mut self) {
        while let Some(ask) = self.unanswered.pop_first() {
            self.answer(ask);
        }
        for session in self.sessions.clone() {
            if let Some(turn) = self.turn_of(&session)
                && !self.cancelled.contains(&turn)
            {
                self.cancel(turn, &session);
            }
        }
        // Turns that parlor takes for failed go on at the server.
        let lost: Vec<String> = self.simulation.world().turns.values().cloned().collect();
        for session in lost {
            if self.turn_of(&session).is_none() {
                let params = json!({"sessionId": session, "prompt": []}).to_string();
                self.call("session/prompt", &params, Some(session));
            }
        }
    }

    /// Checks what must hold in each history.
    pub(super) fn check(&self) {
        let world = self.simulation.world();
        for (id, count) in &world.delivered {
            assert_eq!(*count, 1, "prompt {id} was delivered twice");
            let outcome = self.outcomes.get(id).map_or("", String::as_str);
            let is_unsent =
                outcome.contains("\"unsent\"") || outcome.contains("cancelled before it could be sent");
            assert!(!is_unsent, "prompt {id} was delivered: {outcome}");
        }
    }
}
