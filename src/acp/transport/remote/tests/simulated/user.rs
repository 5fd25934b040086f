//! The user of a simulated connection: draws prompts, cancels and answers, and checks what arrives.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until};

use super::agent::UNKNOWN_SESSION;
use super::app::{self, App};
use super::{PATIENCE, SESSIONS, Simulation, next, transport};
use crate::acp::frame::{DEFAULT_FRAME_BYTES, InboundFrame};
use crate::acp::transport::In;
use crate::acp::transport::remote::tests::{Peer, answer, request};
use crate::model::{Batch, Carrier};
use crate::random::Random;

/// What the user speaks with: a transport, or a connection with its peer and codec.
enum Port {
    Frames(Peer),
    App(App),
}

enum Heard {
    Frames(In),
    Events(Batch),
}

impl Port {
    async fn next(&mut self) -> Heard {
        let end = "the end is reported";
        match self {
            Self::Frames(peer) => Heard::Frames(peer.link.incoming.recv().await.expect(end)),
            Self::App(app) => Heard::Events(app.connection.events.recv().await.expect(end)),
        }
    }

    /// Whether the agent works in a session of its own accord.
    fn works_in(&self, session: &str) -> bool {
        match self {
            Self::Frames(_) => false,
            Self::App(app) => app.working.contains(session),
        }
    }
}

impl std::fmt::Debug for Port {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Frames(peer) => f.write_str(&peer.log()),
            Self::App(app) => f.write_str(&app.log()),
        }
    }
}

/// The user, with what parlor has told.
pub(super) struct User {
    simulation: Simulation,
    port: Port,
    rng: Random,
    next_id: u64,
    sessions: Vec<String>,
    /// These, and the closed ones.
    known: BTreeSet<String>,
    /// Requests without an outcome; prompts with their session.
    open: BTreeMap<u64, Option<String>>,
    cancelled: BTreeSet<u64>,
    unanswered: BTreeSet<(String, u64)>,
    answered: BTreeSet<(String, u64)>,
    undelivered: u64,
    outcomes: BTreeMap<u64, String>,
    updates: BTreeMap<String, u64>,
    is_cut: bool,
    pub(super) end: Option<String>,
}

impl User {
    pub(super) fn new(seed: u64, carrier: Option<Carrier>, version: Option<u16>) -> Self {
        let simulation = Simulation::new(seed, carrier, version.unwrap_or(1));
        let transport = transport(&simulation, carrier);
        let port = match version {
            Some(version) => Port::App(App::connect(transport, version)),
            None => Port::Frames(Peer::over(transport, DEFAULT_FRAME_BYTES)),
        };
        let mut this = Self {
            simulation,
            port,
            rng: Random::new(!seed),
            next_id: 1,
            sessions: Vec::new(),
            known: BTreeSet::new(),
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
        this.call("initialize", None);
        this
    }

    fn call(&mut self, method: &str, session: Option<&str>) {
        let id = self.next_id;
        self.next_id += 1;
        let prompted = session.filter(|_| method == "session/prompt");
        self.open.insert(id, prompted.map(str::to_owned));
        match &mut self.port {
            Port::App(app) => app.call(id, method, session),
            Port::Frames(peer) => {
                let params = match (method, session) {
                    ("initialize", _) => json!({"protocolVersion": 1}),
                    (_, None) => json!({"cwd": "/", "mcpServers": []}),
                    ("session/close", Some(session)) => json!({"sessionId": session}),
                    (_, Some(session)) => json!({"sessionId": session, "prompt": []}),
                };
                peer.say(&request(id, method, &params.to_string()));
            }
        }
    }

    /// The running turn of a session.
    fn turn_of(&self, session: &str) -> Option<u64> {
        self.open.iter().find(|(_, of)| of.as_deref() == Some(session)).map(|(id, _)| *id)
    }

    fn act(&mut self) {
        if self.sessions.len() < usize::try_from(SESSIONS).unwrap() {
            if self.open.is_empty() && self.outcomes.contains_key(&1) {
                self.call("session/new", None);
            }
            return;
        }
        let session = self.sessions[usize::try_from(self.rng.below(SESSIONS)).unwrap()].clone();
        match (self.turn_of(&session), self.rng.below(40)) {
            // A prompt would wait for the end of the agent's own turn.
            (None, 0..12) if self.port.works_in(&session) => self.cancel(0, &session),
            (None, _) if !self.port.works_in(&session) => {
                self.call("session/prompt", Some(&session));
            }
            (Some(turn), 0..12) => self.cancel(turn, &session),
            (_, 12) => {
                let until = Instant::now() + self.rng.millis(20_000);
                self.simulation.world().down_until = until;
            }
            (_, 13) if self.rng.below(10) == 0 => self.simulation.restart(),
            (turn, 14) if self.rng.below(4) == 0 => {
                if let Some(turn) = turn {
                    self.cancel(turn, &session);
                }
                self.sessions.retain(|open| *open != session);
                self.call("session/close", Some(&session));
            }
            _ => {}
        }
        if let Some(ask) = self.unanswered.pop_first() {
            self.answer(ask);
        }
    }

    fn answer(&mut self, ask: (String, u64)) {
        let option = format!("{}-{}", ask.0, ask.1);
        match &mut self.port {
            Port::App(app) => app.answer(option),
            Port::Frames(peer) => {
                let outcome = json!({"outcome": {"outcome": "selected", "optionId": option}});
                peer.respond(&ask.0, &answer(ask.1, &outcome.to_string()));
            }
        }
        self.answered.insert(ask);
    }

    fn cancel(&mut self, turn: u64, session: &str) {
        self.cancelled.insert(turn);
        match &mut self.port {
            Port::App(app) => app.cancel(session),
            Port::Frames(peer) => {
                let params = json!({"sessionId": session});
                peer.say(
                    &json!({"jsonrpc": "2.0", "method": "session/cancel", "params": params}).to_string(),
                );
            }
        }
    }

    pub(super) fn app(&mut self) -> &mut App {
        match &mut self.port {
            Port::App(app) => app,
            Port::Frames(_) => unreachable!("events come from an app"),
        }
    }

    pub(super) fn has_session(&self, session: &str) -> bool {
        session == UNKNOWN_SESSION || self.known.contains(session)
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
            In::Undelivered { .. } => self.hear_undelivered(),
            In::Note(_) | In::Interrupted(_) => {}
            In::Closed(end) => self.hear_end(format!("{end:?}")),
        }
    }

    fn hear_message(&mut self, message: &Value) {
        let params = &message["params"];
        let session = params["sessionId"].as_str().unwrap_or_default().to_owned();
        match (message["method"].as_str(), message["id"].as_u64()) {
            (None, Some(id)) => {
                self.hear_outcome(id, message.to_string(), message["result"]["sessionId"].as_str());
            }
            (Some("session/update"), None) => {
                self.hear_text(&session, params["update"]["content"]["text"].as_str().unwrap());
            }
            (Some("session/request_permission"), Some(number)) if session == UNKNOWN_SESSION => {
                let Port::Frames(peer) = &self.port else { unreachable!("frames come from a transport") };
                peer.respond(&session, &answer(number, r#"{"outcome":{"outcome":"cancelled"}}"#));
            }
            (Some("session/request_permission"), Some(number)) => self.hear_ask(session, number),
            (Some("$/cancel_request"), None) => {}
            _ => panic!("{message}"),
        }
    }

    pub(super) fn hear_outcome(&mut self, id: u64, outcome: String, session: Option<&str>) {
        assert!(self.open.remove(&id).is_some(), "a second outcome: {outcome}");
        self.outcomes.insert(id, outcome);
        self.sessions.extend(session.map(str::to_owned));
        self.known.extend(session.map(str::to_owned));
    }

    pub(super) fn hear_text(&mut self, session: &str, text: &str) {
        for word in text.split_whitespace() {
            let expected = format!("{session}.{}", next(&mut self.updates, session));
            assert_eq!(word, expected, "text is lost, doubled, out of order or of another session");
        }
    }

    /// The peer knows requests that are repeated.
    pub(super) fn hear_ask(&mut self, session: String, number: u64) {
        let ask = (session, number);
        if !self.answered.contains(&ask) {
            self.unanswered.insert(ask);
        }
    }

    pub(super) fn hear_undelivered(&mut self) {
        self.undelivered += 1;
    }

    pub(super) fn hear_end(&mut self, end: String) {
        self.end = Some(end);
    }

    /// Whether nobody waits for anything.
    fn is_quiet(&self) -> bool {
        let world = self.simulation.world();
        self.open.is_empty()
            && !self.sessions.iter().any(|session| self.port.works_in(session))
            && self.unanswered.is_empty()
            // It is reported that the end of a session may not have been received.
            && !world.turns.values().any(|of| self.sessions.contains(of))
            && self.sessions.iter().all(|open| world.updates.get(open) == self.updates.get(open))
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
                "somebody waits: {:?} {:?} {:?} {} {:?}\n{:?}\n{:?}",
                self.open,
                self.unanswered,
                self.answered,
                self.undelivered,
                self.updates,
                self.simulation.world(),
                self.port
            );
            tokio::select! {
                biased;
                heard = self.port.next() => match heard {
                    Heard::Frames(message) => self.hear(message),
                    Heard::Events(events) => app::hear(self, events),
                },
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
            if self.port.works_in(&session) {
                self.cancel(0, &session);
            } else if let Some(turn) = self.turn_of(&session)
                && !self.cancelled.contains(&turn)
            {
                self.cancel(turn, &session);
            }
        }
        // Turns that parlor takes for failed go on at the server.
        let lost: Vec<String> = self.simulation.world().turns.values().cloned().collect();
        for session in lost {
            let is_open = self.sessions.contains(&session);
            if is_open && self.turn_of(&session).is_none() && !self.port.works_in(&session) {
                self.call("session/prompt", Some(&session));
            }
        }
        // A stream that was given up is opened again, where it ended, by the next prompt.
        for session in self.sessions.clone() {
            let is_after = self.simulation.world().updates.get(&session) != self.updates.get(&session);
            if is_after && self.turn_of(&session).is_none() && !self.port.works_in(&session) {
                self.call("session/prompt", Some(&session));
            }
        }
    }

    /// Checks what must hold in each history.
    pub(super) fn check(&self) {
        let world = self.simulation.world();
        for (id, count) in &world.delivered {
            assert_eq!(*count, 1, "prompt {id} was delivered twice");
            let outcome = self.outcomes.get(id).map_or("", String::as_str);
            let is_unsent = ["\"unsent\"", "NotSent", "cancelled before it could be sent"]
                .iter()
                .any(|text| outcome.contains(text));
            assert!(!is_unsent, "prompt {id} was delivered: {outcome}");
        }
    }
}
