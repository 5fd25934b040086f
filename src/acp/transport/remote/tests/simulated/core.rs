//! The app at a simulated connection: the reducer, whose effects on connections and timers are carried out, without a
//! screen and a store.
//!
//! When the network is quiet: a prompt of the user was delivered at most once, and is in the transcript, the queue or the
//! composer; one that was not delivered is not shown as done; one that waits was not delivered. The agent and parlor
//! agree on the sessions in which it works, except where parlor has reported that a prompt may have been received. The
//! text of a session is in its own transcript, once and in order.

use std::collections::{BTreeMap, BTreeSet};

use tokio::sync::mpsc;
use tokio::time::{Duration, Instant, sleep_until};

use super::{PATIENCE, SESSIONS, Simulation, remote, transport};
use crate::acp::gate::Gate;
use crate::acp::tap::Tap;
use crate::acp::{Commands, ConnectOptions, Limits, connect_with};
use crate::core::lifecycle::operations;
use crate::core::{
    ConnPhase, Cx, Effect, Event, Item, ItemBody, MessagePart, QuestionId, Session, SessionPhase, Setup,
    State, TimerId, Turn, TurnEnd, UserAnswer,
};
use crate::model::{
    AgentSpec, Batch, Carrier, ConnId, FaultKind, ItemId, Role, ServiceEvent, SessionKey, StopReason,
};
use crate::random::Random;
use crate::ui::{App, start, update};

pub(super) struct Core {
    simulation: Simulation,
    carrier: Option<Carrier>,
    rng: Random,
    app: App,
    connections: BTreeMap<ConnId, Commands>,
    sender: mpsc::UnboundedSender<(ConnId, Batch)>,
    receiver: mpsc::UnboundedReceiver<(ConnId, Batch)>,
    /// Connections that are started later.
    starts: Vec<(Instant, ConnId, AgentSpec)>,
    timers: BTreeMap<TimerId, Instant>,
    /// The typed prompts, with their tab.
    prompts: BTreeMap<u64, SessionKey>,
    /// The ids that each tab has had.
    ids: BTreeMap<SessionKey, BTreeSet<String>>,
    tap: Tap,
}

impl Core {
    pub(super) fn start(seed: u64, carrier: Option<Carrier>, version: u16) -> Self {
        let simulation = Simulation::new(seed, carrier, version);
        let mut spec = AgentSpec { name: "agent".to_owned(), ..AgentSpec::default() };
        match carrier {
            Some(_) => spec.remote = Some(remote(carrier)),
            None => "agent".clone_into(&mut spec.command),
        }
        spec.wire.protocol = version;
        let setup = Setup { folder: "/".into(), start_with: Some(spec), ..Setup::default() };
        let (app, fx) = start(setup, Instant::now().into_std());
        let (sender, receiver) = mpsc::unbounded_channel();
        let mut this = Self {
            simulation,
            carrier,
            rng: Random::new(!seed),
            app,
            connections: BTreeMap::new(),
            sender,
            receiver,
            starts: Vec::new(),
            timers: BTreeMap::new(),
            prompts: BTreeMap::new(),
            ids: BTreeMap::new(),
            tap: Tap::default(),
        };
        this.carry_out(fx);
        this
    }

    fn play(&mut self, event: impl Into<crate::ui::Event>) {
        let fx = update(&mut self.app, event, Instant::now().into_std());
        self.carry_out(fx);
        for session in self.app.state.sessions.values() {
            if let Some(id) = &session.id {
                self.ids.entry(session.key).or_default().insert(id.to_string());
            }
        }
    }

    /// Does what a dialog does, and then what each event does.
    fn flow(&mut self, change: impl FnOnce(&mut State, &mut Cx)) {
        let mut cx = Cx::new(Instant::now().into_std());
        change(&mut self.app.state, &mut cx);
        self.carry_out(cx.effects);
        self.play(crate::ui::Event::Input);
    }

    fn carry_out(&mut self, fx: Vec<Effect>) {
        let now = Instant::now();
        for effect in fx {
            match effect {
                Effect::Connect { conn, spec, delay, .. } => self.starts.push((now + delay, conn, spec)),
                Effect::Send(conn, command) => {
                    if let Some(commands) = self.connections.get(&conn) {
                        commands.send(command);
                    }
                }
                Effect::RetryNow(conn) => {
                    if let Some(commands) = self.connections.get(&conn) {
                        commands.retry_now();
                    }
                }
                Effect::Disconnect { conn, force } => {
                    self.starts.retain(|(_, other, _)| *other != conn);
                    if let Some(commands) = self.connections.get(&conn) {
                        commands.stop(force);
                    }
                }
                Effect::Timer(timer, after) => {
                    self.timers.insert(timer, now + after);
                }
                Effect::StopTimer(timer) => {
                    self.timers.remove(&timer);
                }
                Effect::FindServers { folder } => {
                    self.play(Event::Service(ServiceEvent::ServersFound(folder, Ok(None))));
                }
                _ => {}
            }
        }
    }

    /// Starts what is due, and fires timers.
    fn on_time(&mut self) {
        let now = Instant::now();
        let due: Vec<(Instant, ConnId, AgentSpec)> =
            self.starts.extract_if(.., |(at, ..)| *at <= now).collect();
        for (_, conn, spec) in due {
            let options =
                ConnectOptions { spec, cwd: "/".into(), tap: self.tap.of_conn(conn.0), stderr_log: None };
            let transport = transport(&self.simulation, self.carrier);
            let mut connection = connect_with(transport, options, Limits::default(), Gate::default());
            self.connections.insert(conn, connection.commands);
            let batches = self.sender.clone();
            tokio::spawn(async move {
                while let Some(batch) = connection.events.recv().await {
                    let _ = batches.send((conn, batch));
                }
            });
        }
        let due: Vec<TimerId> =
            self.timers.iter().filter(|(_, at)| **at <= now).map(|(timer, _)| *timer).collect();
        for timer in due {
            self.timers.remove(&timer);
            self.play(Event::Timer(timer));
        }
    }

    fn next_time(&self) -> Option<Instant> {
        let starts = self.starts.iter().map(|(at, ..)| *at);
        self.timers.values().copied().chain(starts).min()
    }

    pub(super) async fn live(&mut self) {
        let rough_until = self.simulation.world().calm_at;
        let give_up = rough_until + PATIENCE;
        let mut next_act = Instant::now();
        loop {
            let now = Instant::now();
            if now >= rough_until && self.is_quiet() {
                return;
            }
            assert!(now < give_up, "somebody waits:\n{}", self.log());
            let next_time = self.next_time().unwrap_or(give_up);
            tokio::select! {
                biased;
                Some((conn, batch)) = self.receiver.recv() => {
                    for event in batch {
                        self.play(Event::Agent(conn, event));
                    }
                }
                () = sleep_until(next_time) => self.on_time(),
                () = sleep_until(next_act) => {
                    next_act = now + Duration::from_millis(50) + self.rng.millis(3_000);
                    if now < rough_until { self.act() } else { self.calm_down() }
                }
            }
        }
    }

    fn act(&mut self) {
        let keys: Vec<SessionKey> = self.app.state.sessions.keys().copied().collect();
        if (keys.len() as u64) < SESSIONS && self.rng.one_in(4) {
            self.flow(operations::new_session);
        }
        let key = keys[usize::try_from(self.rng.below(keys.len() as u64)).unwrap()];
        match self.rng.below(40) {
            0..12 => {
                let number = self.prompts.len() as u64 + 1;
                self.prompts.insert(number, key);
                self.submit(key, format!("p{number}"));
            }
            12..18 => self.flow(|state, cx| operations::cancel_turn(state, key, cx)),
            18 => {
                let until = Instant::now() + self.rng.millis(20_000);
                self.simulation.world().down_until = until;
            }
            19 if self.rng.one_in(4) => self.simulation.restart(),
            20 if self.rng.one_in(4) => {
                self.flow(|state, cx| operations::close_session(state, key, cx));
            }
            21 if self.rng.one_in(4) => {
                self.flow(|state, cx| operations::restart_agent(state, key, cx));
            }
            // Continues a queue that is on hold.
            22 => self.submit(key, String::new()),
            _ => self.answer(key),
        }
    }

    fn submit(&mut self, key: SessionKey, text: String) {
        self.flow(|state, cx| operations::submit(state, key, text, cx));
    }

    fn answer(&mut self, key: SessionKey) {
        let first = self.app.state.sessions[&key].requests.front().map(|open| open.request_id);
        if let Some(id) = first.map(QuestionId::Agent) {
            self.play(Event::Answer(id, UserAnswer::Option(0)));
        }
    }

    /// Ends what only the user can end.
    fn calm_down(&mut self) {
        let keys: Vec<SessionKey> = self.app.state.sessions.keys().copied().collect();
        for key in keys {
            let Some(session) = self.app.state.sessions.get(&key) else { continue };
            match (&session.phase, &session.turn) {
                (SessionPhase::Ended { .. } | SessionPhase::Failed(_), _) => {
                    self.flow(|state, cx| operations::restart_agent(state, key, cx));
                }
                _ if !session.requests.is_empty() => self.answer(key),
                (_, Turn::Running { .. }) => {
                    self.flow(|state, cx| operations::cancel_turn(state, key, cx));
                }
                _ => {}
            }
        }
    }

    /// Whether nobody waits for anything.
    fn is_quiet(&self) -> bool {
        let is_settled = |session: &Session| {
            session.phase == SessionPhase::Ready
                && session.turn == Turn::Idle
                && session.requests.is_empty()
                && self.app.state.conn_of(session.key).is_some_and(|conn| {
                    conn.phase == ConnPhase::Ready
                        && conn.open_requests.is_empty()
                        && conn.open_calls.is_empty()
                        && conn.interrupted.is_none()
                })
        };
        self.starts.is_empty()
            && self.app.state.sessions.values().all(is_settled)
            && self.agrees()
            && self.has_all_text()
    }

    /// Whether parlor knows of all turns of the agent in its tabs.
    fn agrees(&self) -> bool {
        let world = self.simulation.world();
        world.turns.iter().all(|(number, id)| {
            let is_it = |session: &&Session| session.id.as_ref().is_some_and(|own| own.as_str() == id);
            let session = self.app.state.sessions.values().find(is_it);
            session.is_none_or(|session| session.turn.is_running() || self.may_have_arrived(*number))
        })
    }

    /// Whether parlor has reported that a prompt failed, but may have been received.
    fn may_have_arrived(&self, number: u64) -> bool {
        let session = self.prompts.get(&number).and_then(|key| self.app.state.sessions.get(key));
        session.is_some_and(|session| {
            ends_of(session, number).any(|end| {
                matches!(end, TurnEnd::Failed { fault: FaultKind::Line, .. } | TurnEnd::AgentDied { .. })
            })
        })
    }

    /// Whether the text of all sessions has arrived that have had a single connection.
    fn has_all_text(&self) -> bool {
        let world = self.simulation.world();
        self.connections.len() > 1
            || self.app.state.sessions.values().all(|session| {
                let Some(id) = &session.id else { return true };
                let sent = world.updates.get(id.as_str()).copied().unwrap_or_default();
                words_of(session).len() as u64 == sent
            })
    }

    pub(super) fn check(&self) {
        self.check_prompts();
        let mut owners: BTreeMap<&str, SessionKey> = BTreeMap::new();
        for session in self.app.state.sessions.values() {
            let mut seen = BTreeSet::new();
            // The messages of two turns of the agent may alternate.
            let mut last: BTreeMap<(ItemId, &str), u64> = BTreeMap::new();
            for (item, word) in words_of(session) {
                let (id, count) = word.split_once('.').unwrap();
                let count = count.parse().unwrap();
                let is_own = self.ids.get(&session.key).is_some_and(|ids| ids.contains(id));
                assert!(is_own, "text of {id} is in another session");
                assert_eq!(*owners.entry(id).or_insert(session.key), session.key, "{id} is in two tabs");
                let before = last.insert((item, id), count).unwrap_or_default();
                assert!(before < count, "text is out of order: {word} after {before}\n{}", self.log());
                assert!(seen.insert(word), "text is doubled: {word}\n{}", self.log());
            }
        }
    }

    fn check_prompts(&self) {
        let world = self.simulation.world();
        for (number, key) in &self.prompts {
            let delivered = world.delivered.get(number).copied().unwrap_or_default();
            let log = || format!("prompt {number}\n{world:?}\n{}", self.shown());
            assert!(delivered <= 1, "a prompt was delivered twice: {}", log());
            // The user has closed the tab.
            let Some(session) = self.app.state.sessions.get(key) else { continue };
            let text = format!("p{number}");
            let is_queued = session.outbox.queue().any(|prompt| prompt.text == text)
                || session.outbox.unsent().is_some_and(|prompt| prompt.text == text);
            let is_waiting = is_queued || session.draft == text;
            let is_shown = prompt_items(session, *number).next().is_some();
            assert!(is_waiting || is_shown, "a prompt is lost: {}", log());
            assert!(!(is_queued && delivered > 0), "a prompt that waits was sent: {}", log());
            if delivered == 0 && !is_waiting {
                let has_failed = ends_of(session, *number).any(|end| match end {
                    TurnEnd::Stopped { reason, .. } => *reason == StopReason::Cancelled,
                    TurnEnd::Failed { .. } | TurnEnd::AgentDied { .. } => true,
                });
                assert!(has_failed, "a prompt is shown as done that was not delivered: {}", log());
            }
        }
    }

    fn log(&self) -> String {
        let world = format!("{:?}", self.simulation.world());
        format!("{world}\n{}", self.shown())
    }

    fn shown(&self) -> String {
        use std::fmt::Write as _;
        let mut log = String::new();
        for session in self.app.state.sessions.values() {
            let (key, phase, turn) = (session.key, &session.phase, &session.turn);
            writeln!(log, "{key} {:?} {phase:?} {turn:?} {:?}", session.id, session.outbox).unwrap();
            writeln!(log, "  draft {:?}", session.draft).unwrap();
            for item in session.transcript.items() {
                writeln!(log, "  {} {:?}", item.turn, item.body).unwrap();
            }
        }
        for conn in self.app.state.conns.values() {
            writeln!(log, "{:?} {:?} {:?} {:?}", conn.id, conn.phase, conn.open_calls, conn.open_requests)
                .unwrap();
        }
        for line in self.tap.snapshot(None, usize::MAX) {
            writeln!(log, "{:?} {} {}", line.at, line.direction.word(), line.text).unwrap();
        }
        log
    }
}

fn prompt_items(session: &Session, number: u64) -> impl Iterator<Item = &Item> {
    let text = format!("p{number}");
    session.transcript.items().iter().filter(move |item| match &item.body {
        ItemBody::Message(message) => {
            let is_it =
                |part: &MessagePart| matches!(part, MessagePart::Text(shown) if shown.as_str() == text);
            message.role == Role::User && message.parts.iter().any(is_it)
        }
        _ => false,
    })
}

/// The ends of the turn that began with a prompt.
fn ends_of(session: &Session, number: u64) -> impl Iterator<Item = &TurnEnd> {
    let turn = prompt_items(session, number).map(|item| item.turn).next();
    session.transcript.items().iter().filter_map(move |item| match &item.body {
        ItemBody::TurnEnd(end) if turn == Some(item.turn) => Some(end),
        _ => None,
    })
}

/// The numbered text of the agent in a transcript, with its items.
fn words_of(session: &Session) -> Vec<(ItemId, &str)> {
    let mut words = Vec::new();
    for item in session.transcript.items() {
        if let ItemBody::Message(message) = &item.body
            && message.role == Role::Agent
        {
            for part in &message.parts {
                if let MessagePart::Text(text) = part {
                    words.extend(text.split_whitespace().map(|word| (item.id, word)));
                }
            }
        }
    }
    words
}
