//! A running parlor whose disk and clock are played.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use super::disk::{Disk, KEY};
use crate::core::lifecycle::operations;
use crate::core::tests::support::{CONN, ID, Mirror, all_capabilities, fake};
use crate::core::*;
use crate::model::*;
use crate::random::Random;

pub struct Bench<D> {
    pub disk: D,
    pub state: State,
    mirror: Mirror,
    /// Number of events so far.
    played: u64,
    now: Instant,
    /// Notes that are not written yet, and the messages of the store that were not received.
    waiting: Vec<(SessionKey, Vec<Note>)>,
    jobs: VecDeque<StoreJob>,
    news: VecDeque<StoreNews>,
    timers: BTreeMap<TimerId, Instant>,
    /// The prompt whose files are read.
    pub prepares: Option<PromptJob>,
    /// Number of events of the session so far, and how many of them are written.
    pub noted: usize,
    pub written: usize,
}

impl<D: Disk> Bench<D> {
    /// Starts parlor. `saved`: the session to continue.
    pub fn start(disk: D, saved: Option<RecordedSession>) -> Self {
        let setup = Setup {
            folder: "/code/shop".into(),
            start_with: Some(fake()),
            reopen: saved.map(Box::new),
            ..Setup::default()
        };
        let now = Instant::now();
        let mut cx = Cx::new(now);
        let mut state = start(setup, &mut cx);
        state.sessions.get_mut(&KEY).expect("the first session").templates.is_loaded = true;
        let mut bench = Self {
            disk,
            state,
            mirror: Mirror::default(),
            played: 0,
            now,
            waiting: Vec::new(),
            jobs: VecDeque::new(),
            news: VecDeque::new(),
            timers: BTreeMap::new(),
            prepares: None,
            noted: 0,
            written: 0,
        };
        bench.take(cx.effects);
        bench
    }

    pub fn handshake(&mut self, can_load: bool) {
        self.agent(AgentEvent::Started { pid: None });
        let can_steer = true;
        let capabilities =
            AgentCapabilities { can_load, can_resume: !can_load, can_steer, ..all_capabilities() };
        self.agent(AgentEvent::Ready(Box::new(AgentInfo { capabilities, ..AgentInfo::default() })));
    }

    pub fn session(&self) -> &Session {
        &self.state.sessions[&KEY]
    }

    pub fn play(&mut self, event: Event) {
        let mut cx = Cx::new(self.now);
        update(&mut self.state, event, &mut cx);
        self.played += 1;
        if self.played.is_multiple_of(16) {
            self.mirror.follow(&self.state);
        }
        if self.played.is_multiple_of(256) {
            self.mirror.check(&self.state);
        }
        self.take(cx.effects);
    }

    pub fn agent(&mut self, event: AgentEvent) {
        self.play(Event::Agent(CONN, event));
    }

    pub fn update(&mut self, update: SessionUpdate) {
        self.agent(AgentEvent::Update(ID.into(), update));
    }

    /// Answers the latest call.
    pub fn reply(&mut self, result: Result<Reply, CallError>) {
        let tag = self.state.conns[&CONN].open_calls.values().next_back().cloned().expect("a call is open");
        self.agent(AgentEvent::Replied(tag, result));
    }

    pub fn flow(&mut self, change: impl FnOnce(&mut State, &mut Cx)) {
        let mut cx = Cx::new(self.now);
        change(&mut self.state, &mut cx);
        tidy(&mut self.state, &mut cx);
        save(&mut self.state, &mut cx);
        self.take(cx.effects);
    }

    pub fn submit(&mut self, text: &str) {
        self.flow(|state, cx| operations::submit(state, KEY, text.into(), cx));
    }

    fn take(&mut self, fx: Vec<Effect>) {
        for effect in fx {
            match effect {
                Effect::Keep { session, notes } => {
                    let is_event = |note: &&Note| session == KEY && matches!(note, Note::Event { .. });
                    self.noted += notes.iter().filter(is_event).count();
                    self.waiting.push((session, notes));
                }
                Effect::Store(job) => self.jobs.push_back(job),
                Effect::Timer(id, after) => drop(self.timers.insert(id, self.now + after)),
                Effect::StopTimer(id) => drop(self.timers.remove(&id)),
                Effect::FindServers { folder } => {
                    self.play(Event::Service(ServiceEvent::ServersFound(folder, Ok(None))));
                }
                Effect::PreparePrompt(job) => self.prepares = Some(job),
                _ => {}
            }
        }
    }

    /// The disk writes what waits.
    pub fn commit(&mut self) {
        self.written = self.noted;
        let news = self.disk.write(std::mem::take(&mut self.waiting));
        self.news.extend(news);
    }

    /// What is not written is lost.
    pub fn lose(&mut self) {
        self.waiting.clear();
    }

    /// Receives one message of the store. Returns whether there was one.
    pub fn receive(&mut self, random: &mut Random) -> bool {
        if self.news.is_empty()
            && let Some(job) = self.jobs.pop_front()
        {
            self.commit();
            let news = self.disk.serve(job, random);
            self.news.extend(news);
        }
        let Some(news) = self.news.pop_front() else { return false };
        self.play(Event::Service(ServiceEvent::Store(Box::new(news))));
        true
    }

    /// The store does all its work.
    pub fn catch_up(&mut self, random: &mut Random) {
        self.commit();
        while self.receive(random) {
            self.commit();
        }
    }

    /// Lets time pass.
    pub fn wait(&mut self, time: Duration) {
        let end = self.now + time;
        while let Some((id, at)) = self.timers.iter().map(|(id, at)| (*id, *at)).min_by_key(|(_, at)| *at)
            && at <= end
        {
            self.timers.remove(&id);
            self.now = at.max(self.now);
            self.play(Event::Timer(id));
        }
        self.now = end;
    }

    /// Ends the process: after it has closed its sessions, or by a signal, which loses what was not written.
    pub fn end(mut self, is_orderly: bool) -> D {
        if is_orderly {
            self.play(Event::Terminate);
            self.commit();
        }
        self.disk.end(is_orderly);
        self.disk
    }
}
