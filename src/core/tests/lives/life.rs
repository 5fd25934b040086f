//! A random life of a session: what the user, the agent, other clients and the disk do.

use std::collections::BTreeSet;
use std::time::Duration;

use super::agent::{Agent, Habits, Id, Kind, Piece, Sent, Turn, index, said};
use super::bench::Bench;
use super::disk::{Disk, KEY};
use super::oracle::{self, Added, Course, Reported};
use crate::core::lifecycle::operations;
use crate::core::tests::recorder::items;
use crate::core::tests::support::ID;
use crate::core::*;
use crate::model::*;
use crate::random::Random;

/// How a turn of the record ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    Good,
    /// Failed, cancelled or cut.
    Open,
    /// It came from the agent's history.
    Taken,
}

/// A turn as the user has lived it.
#[derive(Debug, Clone)]
pub struct Lived {
    pub id: Id,
    pub prompt: String,
    /// What was received of the reply.
    pub reply: Vec<Piece>,
    pub end: End,
    /// The number of its turn in the log.
    pub number: u32,
    /// Whether the agent's context was cleared after it.
    pub is_cleared: bool,
}

const SHORT_PROMPTS: [&str; 4] = ["continue", "go on", "go", "continue\nplease"];
const SHORT_REPLIES: [&str; 2] = ["ok", "Done."];
const NOTICES: [&str; 2] = ["<system>task done</system>", "go"];

pub struct Life<D> {
    pub random: Random,
    pub bench: Option<Bench<D>>,
    pub agent: Agent,
    pub lived: Vec<Lived>,
    /// The turns after each number of events of this process.
    journal: Vec<(usize, Vec<Lived>)>,
    pub last_id: Id,
    pub story: Vec<String>,
    /// The text that is appended to replies, to make them long.
    pub padding: String,
    /// How often something is written, of a hundred updates.
    pub commits: u64,
    pub reported: Option<Reported>,
    pub was_repeated: bool,
    /// The turns that an agent has replayed twice.
    pub doubled: BTreeSet<Id>,
    /// Whether the last replay has paused.
    pub pauses: bool,
    /// How many turns parlor has counted.
    pub counted: usize,
}

impl<D: Disk> Life<D> {
    pub fn new(seed: u64, disk: D) -> Self {
        let mut random = Random::new(seed);
        let habits = Habits::new(&mut random);
        let mut bench = Bench::start(disk, None);
        bench.handshake(!habits.resumes);
        bench.reply(Ok(Reply::Session(SessionReply { id: Some(ID.into()), ..SessionReply::default() })));
        let story = vec![format!("{habits:?}")];
        let agent = Agent { habits, turns: Vec::new() };
        let mut life = Self {
            random,
            bench: Some(bench),
            agent,
            lived: Vec::new(),
            journal: vec![(0, Vec::new())],
            last_id: 0,
            story,
            padding: String::new(),
            commits: 35,
            reported: None,
            was_repeated: false,
            doubled: BTreeSet::new(),
            counted: 0,
            pauses: false,
        };
        life.list_commands();
        life
    }

    fn list_commands(&mut self) {
        if self.agent.habits.lists_clear {
            let clear = SlashCommand { name: "clear".into(), description: String::new(), hint: None };
            self.bench().update(SessionUpdate::Commands(vec![clear]));
        }
    }

    pub fn bench(&mut self) -> &mut Bench<D> {
        self.bench.as_mut().expect("parlor runs")
    }

    pub fn tell(&mut self, text: impl Into<String>) {
        self.story.push(text.into());
    }

    fn id(&mut self) -> Id {
        self.last_id += 1;
        self.last_id
    }

    fn percent(&mut self, percent: u64) -> bool {
        self.random.below(100) < percent
    }

    fn text(&mut self, id: Id, part: usize) -> String {
        if self.percent(30) {
            SHORT_REPLIES[index(&mut self.random, 2)].to_owned()
        } else {
            format!("answer {id}.{part}\nand second line {id}.{part}{}", self.padding)
        }
    }

    /// A new turn of the agent or of another client.
    fn turn(&mut self) -> Turn {
        let id = self.id();
        let mut reply = Vec::new();
        if self.percent(90) {
            if self.percent(30) {
                reply.push(Piece::Thought(format!("thought {id}.0")));
            }
            reply.push(Piece::Text(self.text(id, 0)));
            if self.percent(30) {
                reply.push(Piece::Call(format!("call-{id}")));
                if self.percent(30) {
                    reply.push(Piece::Thought(format!("thought {id}.1")));
                }
                if self.percent(70) {
                    reply.push(Piece::Text(self.text(id, 1)));
                }
            }
        }
        let resource =
            self.percent(8).then(|| (format!("file:///code/shop/f{id}.rs"), format!("content {id}")));
        let prompt = match self.random.below(10) {
            _ if resource.is_some() => format!("look at @f{id}.rs"),
            0..4 => SHORT_PROMPTS[index(&mut self.random, SHORT_PROMPTS.len())].to_owned(),
            4 => format!("prompt {id}\n\nwith lines"),
            _ => format!("prompt {id}"),
        };
        let inner = (reply.len() > 1 && self.percent(10)).then(|| (1, NOTICES[index(&mut self.random, 2)]));
        Turn { id, prompt, resource, reply, is_noted: false, inner }
    }

    /// Notes what the user has lived, for each number of events that may be on the disk.
    fn mark(&mut self) {
        let noted = self.bench().noted;
        self.journal.push((noted, self.lived.clone()));
        self.mark_store();
    }

    /// Plays a life. `Err`: what was wrong.
    pub fn play(&mut self) -> Result<(), String> {
        let steps = 3 + self.random.below(10);
        for _ in 0..steps {
            self.step()?;
        }
        self.restart(false)
    }

    fn step(&mut self) -> Result<(), String> {
        match self.random.below(100) {
            0..45 => return self.prompt(),
            45..50 => self.own_command(),
            50..54 => self.speak(),
            54..62 => {
                for _ in 0..=self.random.below(3) {
                    let turn = self.turn();
                    self.tell(format!("another client: {}", summary(&turn)));
                    self.agent.turns.push(turn);
                }
            }
            62..65 => {
                let len = self.agent.turns.len();
                let left = index(&mut self.random, len + 1);
                self.agent.turns.truncate(left);
                self.tell(format!("the agent rewinds to {left} turns"));
            }
            65..68 if !self.agent.turns.is_empty() => {
                let len = self.agent.turns.len();
                let lost = 1 + index(&mut self.random, len);
                self.agent.turns.drain(..lost);
                let mut summary = self.turn();
                (summary.prompt, summary.inner, summary.resource) =
                    (format!("the history so far, in short {}", summary.id), None, None);
                summary.reply.clear();
                self.tell(format!("the agent compacts {lost} turns"));
                self.agent.turns.insert(0, summary);
            }
            _ => {
                let is_orderly = self.percent(50);
                return self.restart(is_orderly);
            }
        }
        Ok(())
    }

    fn own_command(&mut self) {
        let number = u32::try_from(self.id()).unwrap_or(1);
        self.tell("!make");
        let terminal = TerminalId::of_user("1-1", number);
        let line = "make".to_owned();
        let bench = self.bench();
        let started = ServiceEvent::ShellStarted {
            session: KEY,
            number,
            line,
            folder: "/code/shop".into(),
            result: Ok(terminal.clone()),
        };
        bench.play(Event::Service(started));
        let bytes = b"made\n".to_vec();
        bench.play(Event::Service(ServiceEvent::TerminalOutput { terminal: terminal.clone(), bytes }));
        let exit = ExitInfo { code: Some(0), signal: None };
        bench.play(Event::Service(ServiceEvent::TerminalEnded { terminal, exit }));
        self.mark();
    }

    /// The agent says something outside of a turn.
    fn speak(&mut self) {
        let id = self.id();
        let text = format!("remark {id}");
        let is_live = self.bench().session().turn_count > 0;
        if !is_live {
            return;
        }
        self.tell(format!("the agent remarks {id}"));
        if let Some(last) = self.lived.last_mut() {
            last.reply.push(Piece::Text(format!("\n{text}")));
        }
        let is_stored = self.percent(50);
        let mut message = format!("remark {id}");
        let of = self.lived.last().map(|last| last.id);
        if let Some(last) = self.agent.turns.last_mut().filter(|last| is_stored && Some(last.id) == of) {
            message = format!("m{}.{}", last.id, last.reply.len());
            last.reply.push(Piece::Text(format!("\n{text}")));
        }
        self.calm();
        let message = self.agent.habits.has_ids.then_some(message);
        self.bench().update(said(Role::Agent, message.as_deref(), &format!("\n{text}")));
        self.calm();
        // Where the place of a history is not certain, it is a part of that.
        let is_shown = self.shown().iter().any(|item| item.contains(&text));
        if !is_shown && let Some(last) = self.lived.last_mut() {
            last.reply.pop();
        }
        self.mark();
    }

    /// A moment passes.
    fn calm(&mut self) {
        let mut random = Random::new(self.random.below(1 << 40));
        self.bench().wait(Duration::from_secs(2));
        self.bench().catch_up(&mut random);
        self.bench().wait(Duration::from_secs(2));
        self.bench().catch_up(&mut random);
    }

    /// The user sends a prompt, and the turn runs.
    fn prompt(&mut self) -> Result<(), String> {
        let mut turn = self.turn();
        self.calm();
        let is_clear = !self.bench().session().commands.is_empty() && self.percent(10);
        if is_clear {
            turn =
                Turn { prompt: "/clear".to_owned(), resource: None, reply: Vec::new(), inner: None, ..turn };
        }
        self.tell(format!("user: {}", summary(&turn)));
        self.lived.push(lived(&turn));
        self.bench().submit(&turn.prompt);
        if let Some(job) = self.bench().prepares.take() {
            let block = turn.resource.clone().map(|(uri, text)| ContentBlock::Resource {
                uri,
                mime_type: None,
                body: ResourceBody::Text(text.into()),
            });
            let blocks = block.into_iter().collect();
            let prepared = PreparedPrompt { text: turn.prompt.clone(), blocks, ..PreparedPrompt::default() };
            self.bench().play(Event::Service(ServiceEvent::PromptPrepared(
                KEY,
                job.prompt,
                Box::new(prepared),
            )));
        }
        if !self.bench().session().turn.is_running() {
            return Err("the prompt was not sent".to_owned());
        }
        self.number_last();
        self.mark();
        let is_cut = self.percent(25) && !is_clear;
        let len = turn.reply.len();
        let max = if is_cut { index(&mut self.random, len + 1) } else { len };
        let mut parts = Vec::new();
        for (at, piece) in turn.reply.clone().iter().take(max).enumerate() {
            if at > 0 && self.percent(8) {
                self.own_command();
            }
            if at > 0 && self.percent(8) {
                parts.push(self.steer(&mut turn, at));
            }
            let mut random = Random::new(self.random.below(1 << 40));
            for (part, update) in self.agent.stream(turn.id, at, piece, &mut random).into_iter().enumerate() {
                if let Some(last) = self.lived.last_mut() {
                    match (last.reply.last_mut(), update.appended_text()) {
                        (Some(Piece::Text(text)), Some((_, _, more))) if part > 0 => text.push_str(more),
                        (_, Some((Role::Agent, _, text))) => last.reply.push(Piece::Text(text.to_owned())),
                        _ if part == 0 => last.reply.push(piece.clone()),
                        _ => {}
                    }
                }
                self.bench().update(update);
                self.mark();
            }
        }
        self.agent.turns.extend(parts);
        if is_cut {
            return self.break_off(turn, max);
        }
        self.finish(turn, is_clear);
        Ok(())
    }

    fn number_last(&mut self) {
        let number = self.bench().session().turn_count;
        if let Some(last) = self.lived.last_mut() {
            last.number = number;
        }
    }

    /// The user adds a prompt to the running turn: the agent has the rest as a turn of its own. Returns the first part.
    fn steer(&mut self, turn: &mut Turn, at: usize) -> Turn {
        let next = self.turn();
        self.tell(format!("user steers: {}", next.prompt));
        let first = Turn { reply: turn.reply[..at].to_vec(), inner: None, ..turn.clone() };
        // Pieces before it stay in place, so that their numbers do.
        let mut reply: Vec<Piece> = vec![Piece::Text(String::new()); at];
        reply.extend_from_slice(&turn.reply[at..]);
        let prompt = next.prompt.replace('@', "at ");
        *turn = Turn { id: next.id, prompt, resource: None, reply, is_noted: false, inner: None };
        self.bench().submit(&turn.prompt.clone());
        let last = self.bench().session().outbox.last().expect("it is queued").id;
        self.bench().flow(|state, cx| operations::steer(state, KEY, last, cx));
        self.lived.push(lived(turn));
        self.bench().reply(Ok(Reply::Steered { is_accepted: true }));
        self.number_last();
        self.mark();
        first
    }

    /// The turn ends well.
    fn finish(&mut self, mut turn: Turn, is_clear: bool) {
        let usage = None;
        self.bench().reply(Ok(Reply::TurnEnded { reason: StopReason::EndTurn, usage }));
        if let Some(last) = self.lived.last_mut() {
            // Without a reply, a turn that ended well looks like one that did not.
            let end = if last.reply.is_empty() { End::Open } else { End::Good };
            (last.end, last.is_cleared) = (end, is_clear);
        }
        turn.reply.retain(|piece| *piece != Piece::Text(String::new()));
        if turn.inner.is_some_and(|(at, _)| at >= turn.reply.len()) {
            turn.inner = None;
        }
        self.agent.turns.push(turn);
        if is_clear && self.percent(70) {
            self.agent.turns.clear();
        }
        self.mark();
    }

    /// The turn fails, is cancelled, or parlor is killed. The agent has some of it.
    fn break_off(&mut self, turn: Turn, received: usize) -> Result<(), String> {
        let stored = match self.random.below(4) {
            0 => None,
            1 => Some(0),
            2 => Some(received),
            _ => Some(turn.reply.len()),
        };
        let how = index(&mut self.random, 3);
        let mut had = stored.map(|max| {
            let mut reply = turn.reply[..max].to_vec();
            reply.retain(|piece| *piece != Piece::Text(String::new()));
            Turn { reply, inner: None, ..turn }
        });
        if how == 1
            && self.percent(50)
            && let Some(had) = &mut had
        {
            had.is_noted = true;
        }
        self.tell(format!(
            "{} after {received}, the agent has {stored:?}",
            ["failed", "cancelled", "killed"][how]
        ));
        self.agent.turns.extend(had);
        match how {
            0 => self.bench().reply(Err(CallError::Agent(RpcError::new(-32603, "overloaded")))),
            1 => {
                self.bench().flow(|state, cx| operations::cancel_turn(state, KEY, cx));
                self.bench().reply(Ok(Reply::TurnEnded { reason: StopReason::Cancelled, usage: None }));
            }
            _ => return self.restart(false),
        }
        self.mark();
        Ok(())
    }

    /// parlor ends and is started again, with the session.
    fn restart(&mut self, is_orderly: bool) -> Result<(), String> {
        let Some(mut bench) = self.bench.take() else { return Ok(()) };
        if !is_orderly && self.percent(50) {
            bench.commit();
        }
        if !is_orderly {
            bench.lose();
        }
        let written = if is_orderly { usize::MAX } else { bench.written };
        if let Some((_, lived)) = self.journal.iter().rfind(|(noted, _)| *noted <= written) {
            self.lived.clone_from(lived);
        } else if written == 0 {
            self.lived.clear();
        }
        self.tell(if is_orderly { "quit" } else { "killed" });
        let mut disk = bench.end(is_orderly);
        let mut random = Random::new(self.random.below(1 << 40));
        let saved = disk.reopen(&mut random);
        self.journal = vec![(0, self.lived.clone())];
        let is_new = saved.is_none();
        let rows = disk.rows();
        self.bench = Some(Bench::start(disk, saved));
        let can_load = is_new || !self.agent.habits.resumes;
        self.bench().handshake(can_load);
        if is_new {
            self.lived.clear();
            self.journal = vec![(0, Vec::new())];
            self.agent.turns.clear();
            self.bench()
                .reply(Ok(Reply::Session(SessionReply { id: Some(ID.into()), ..SessionReply::default() })));
            self.list_commands();
            return Ok(());
        }
        let is_plain = self.percent(60);
        let (mut sent, doubled, has_more) = self.agent.replay(&mut random, is_plain);
        self.doubled.extend(doubled);
        if self.agent.habits.resumes && self.percent(50) {
            sent.clear();
        }
        let pauses = !has_more && self.percent(20);
        self.resume(&rows, &sent, pauses)
    }

    /// The agent answers the call that opens the session and replays, in any order.
    fn resume(&mut self, rows: &[RecordedEvent], sent: &[Sent], pauses: bool) -> Result<(), String> {
        // What comes late without a prompt cannot be told from output.
        let is_late = !self.agent.habits.omits_prompts;
        let answer = match self.random.below(10) {
            _ if !is_late => Some(sent.len()),
            0..6 => Some(sent.len()),
            6..8 => Some(index(&mut self.random, sent.len() + 1)),
            8 => Some(0),
            _ => None,
        };
        self.tell(format!("replay of {}, answer at {answer:?} of {}", outline(sent), sent.len()));
        let killed_at = self.percent(15).then(|| index(&mut self.random, sent.len() + 3));
        self.pauses = false;
        for at in 0..=sent.len() {
            if answer == Some(at) {
                self.bench().reply(Ok(Reply::Session(SessionReply::default())));
                if self.percent(30) {
                    self.list_commands();
                }
            }
            if killed_at == Some(at) {
                return self.kill(rows, sent);
            }
            // A pause directly after a user message would make it a turn without a reply.
            let before = sent[..at].iter().rfind(|sent| sent.kind != Kind::Setting);
            let is_within = before.is_some_and(|sent| sent.update.is_from_user());
            if pauses && !is_within && answer.is_some_and(|answer| answer <= at) && self.percent(20) {
                self.tell(format!("pause before {at}"));
                self.pauses = true;
                self.bench().wait(Duration::from_secs(2));
                if self.percent(70) {
                    let mut random = Random::new(self.random.below(1 << 40));
                    self.bench().catch_up(&mut random);
                }
            }
            if let Some(sent) = sent.get(at) {
                self.bench().update(sent.update.clone());
            }
            self.mark_store();
        }
        for _ in 0..4 {
            let mut random = Random::new(self.random.below(1 << 40));
            self.bench().wait(Duration::from_secs(2));
            if killed_at.is_some() && self.percent(40) {
                return self.kill(rows, sent);
            }
            self.bench().catch_up(&mut random);
        }
        if answer.is_none() {
            self.bench().reply(Err(CallError::TimedOut(180)));
            let mut random = Random::new(self.random.below(1 << 40));
            self.bench().catch_up(&mut random);
            self.bench().wait(Duration::from_secs(2));
            self.bench().catch_up(&mut random);
        }
        if self.bench().session().phase != SessionPhase::Ready {
            return Err(format!("the session is {:?}", self.bench().session().phase));
        }
        let before = self.lived.clone();
        let added = self.check_rows(rows, sent, true)?;
        let reported = oracle::check_shown(self, sent, rows, &before, &added)?;
        self.reported = reported.or(self.reported.take());
        Ok(())
    }

    /// parlor is killed during a replay.
    fn kill(&mut self, rows: &[RecordedEvent], sent: &[Sent]) -> Result<(), String> {
        if self.percent(50) {
            self.bench().commit();
        }
        self.bench().lose();
        self.check_rows(rows, sent, false)?;
        self.reported = None;
        self.restart(false)
    }

    fn mark_store(&mut self) {
        if self.percent(self.commits) {
            self.bench().commit();
        }
        if self.percent(30) {
            let mut random = Random::new(self.random.below(1 << 40));
            self.bench().receive(&mut random);
        }
    }

    /// What was written is what was there and, at most once, what is new of the replay.
    fn check_rows(&mut self, rows: &[RecordedEvent], sent: &[Sent], is_whole: bool) -> Result<Added, String> {
        let now = self.bench().disk.rows();
        if now.len() < rows.len() || now[..rows.len()] != *rows {
            return Err("the recorded events have changed".to_owned());
        }
        let course = Course { is_whole, pauses: self.pauses, doubled: &self.doubled };
        let added = oracle::added(&self.lived, sent, &now[rows.len()..], course)?;
        if let (Some(last), false) = (self.lived.last_mut(), added.rest.is_empty()) {
            last.reply.extend(added.rest.clone());
        }
        self.lived.extend(added.turns.clone());
        let noted = self.bench().noted;
        self.journal.push((noted, self.lived.clone()));
        Ok(added)
    }

    pub fn shown(&mut self) -> Vec<String> {
        items(self.bench().session())
    }
}

fn lived(turn: &Turn) -> Lived {
    let (id, prompt) = (turn.id, turn.prompt.clone());
    Lived { id, prompt, reply: Vec::new(), end: End::Open, number: 0, is_cleared: false }
}

fn summary(turn: &Turn) -> String {
    format!("{} {:?} -> {:?}", turn.id, turn.prompt, turn.text())
}

fn outline(sent: &[Sent]) -> String {
    let mut parts: Vec<String> = Vec::new();
    for sent in sent {
        let kind = match sent.kind {
            Kind::Prompt => 'p',
            Kind::Wrapper => 'w',
            Kind::Reply => 'r',
            Kind::Setting => 's',
        };
        let of = sent.of.to_string();
        match parts.last_mut() {
            Some(last) if last.trim_end_matches(char::is_alphabetic) == of => last.push(kind),
            _ => parts.push(format!("{of}{kind}")),
        }
    }
    format!("[{}]", parts.join(" "))
}
