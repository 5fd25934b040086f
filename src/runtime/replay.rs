//! Plays a protocol log through the decoder, the reducer and the screen of a live session.
//!
//! The log provides the clock. Effects start no program and access no file: requests of the agent get the response that
//! the log contains, and user actions are repeated through the reducer.
//! Invariant: the same log gives the same state and the same frames.

mod answers;
mod screen;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use ratatui::buffer::Buffer;

use crate::acp::log::{Entry, EntryKind, Log};
use crate::acp::replay::{self, LoggedAgent, Sent, UserAction};
use crate::acp::tap::Direction;
use crate::config::keymap::Keymap;
use crate::core::lifecycle::operations;
use crate::core::state::tab;
use crate::core::{self, Cx, Effect, MouseOwner, Setup, State};
use crate::guard::Guard;
use crate::model::{
    Action, CloseReason, ConnId, FileJob, PreparedPrompt, RequestId, ServiceEvent, SessionId, SessionKey,
    TerminalJob,
};
use crate::ui::Event;
use crate::ui::diff::cache;
use crate::ui::plain::PlainOutput;
use crate::ui::render_context::Glyphs;
use crate::ui::theme::Theme;
use crate::ui::{self, Canvas, ViewState, text};
use crate::ui::{App, dialogs, update};

use super::clock::Clock;

pub use screen::{Screen, run};

/// Maximum number of timers that fire between two lines, because a timer that re-arms itself for the same time would
/// never stop.
const MAX_TIMERS: usize = 1_000;

/// Maximum number of dialogs that are closed before a user action of the log.
const MAX_DIALOGS: usize = 4;

/// Maximum number of connections of a log that are played: each opens a tab or replaces an agent.
const MAX_CONNS: usize = 64;

/// Maximum number of diffs that are computed for a frame.
const MAX_COMPARED: usize = 16;

/// A request to the services that waits for its result in the log.
#[derive(Debug)]
enum Job {
    File(FileJob),
    Terminal(TerminalJob),
}

/// A connection of the log and its id in the app.
#[derive(Debug)]
struct Played {
    number: u64,
    conn: ConnId,
    agent: LoggedAgent,
    /// Whether parlor stopped it, according to the log.
    was_stopped: bool,
}

/// A log being played.
pub struct Replay {
    log: Log,
    next: usize,
    /// The index of the last message of each connection.
    last_of: BTreeMap<u64, usize>,
    began: Instant,
    app: App,
    view: ViewState,
    clock: Clock,
    agents: Vec<Played>,
    /// Connections that the app requested before the log has them.
    wanted: VecDeque<ConnId>,
    jobs: BTreeMap<RequestId, Job>,
    left_out: Vec<usize>,
}

impl Replay {
    /// Creates a replay before the first line of a log.
    pub fn new(log: Log, keymap: &Keymap) -> Self {
        let began = Instant::now();
        let first = log.entries.first().map_or(1, |entry| entry.conn);
        let folder = log.entries.iter().find_map(|entry| opening(entry)?.1).unwrap_or_else(|| "/".to_owned());
        let setup = Setup {
            folder: folder.into(),
            start_with: Some(log.start_of(first).spec(first)),
            mouse: MouseOwner::Terminal,
            ..Setup::default()
        };
        let (app, effects) = crate::ui::start(setup, began);
        let mut last_of = BTreeMap::new();
        for (position, entry) in log.entries.iter().enumerate() {
            if matches!(entry.kind, EntryKind::Message(Direction::ToAgent | Direction::FromAgent, _)) {
                last_of.insert(entry.conn, position);
            }
        }
        let mut replay = Self {
            log,
            next: 0,
            last_of,
            began,
            app,
            view: ViewState::new(keymap, began),
            clock: Clock::new(began),
            agents: Vec::new(),
            wanted: VecDeque::new(),
            jobs: BTreeMap::new(),
            left_out: Vec::new(),
        };
        replay.carry_out(effects, began);
        replay
    }

    pub fn state(&self) -> &State {
        &self.app.state
    }

    /// The next line, and the number of played lines.
    pub fn upcoming(&self) -> (Option<&Entry>, usize) {
        (self.log.entries.get(self.next), self.next)
    }

    /// Plays the next line. Returns its index, or `None` at the end.
    pub fn step(&mut self) -> Option<usize> {
        let position = self.next;
        let entry = self.log.entries.get(position)?.clone();
        self.next += 1;
        let now = self.began + entry.at;
        self.pass_time(entry.at);
        self.play(&entry, now);
        Some(position)
    }

    /// Fires the timers that are due at this time of the log.
    pub fn pass_time(&mut self, at: Duration) {
        let until = self.began + at;
        for _ in 0..MAX_TIMERS {
            let Some(due) = self.clock.next_deadline(None, false).filter(|due| *due <= until) else { return };
            for id in self.clock.take_due(due) {
                self.apply(core::Event::Timer(id), due);
            }
        }
    }

    /// Draws the screen at a time of the log.
    pub fn draw(&mut self, at: Duration, theme: &Theme, canvas: &mut Canvas) {
        // Nobody answers, so no answer waits for a pause.
        self.app.guard = Guard::default();
        let now = self.began + at;
        self.view.set_now(now);
        ui::draw_into(&self.app, &mut self.view, theme, canvas);
        for _ in 0..MAX_COMPARED {
            // A live session compares large changes on a thread; the frames of a replay must not depend on threads.
            let Some(wanted) = cache::take_wanted() else { break };
            cache::put(wanted.compare());
            ui::draw_into(&self.app, &mut self.view, theme, canvas);
        }
        if let Some(event) = ui::event_after_frame(&self.app, &self.view) {
            self.apply(event, now);
        }
    }

    fn play(&mut self, entry: &Entry, now: Instant) {
        if !matches!(entry.kind, EntryKind::End(_)) && self.find(entry.conn).is_none() {
            self.attach(entry.conn, now);
        }
        let Some(position) = self.find(entry.conn) else { return };
        let Some(played) = self.agents.get_mut(position) else { return };
        match &entry.kind {
            EntryKind::Start(_) | EntryKind::Message(Direction::Stderr, _) => {}
            // The log ends with a quit; the session stays on the screen.
            EntryKind::End(reason) if **reason == CloseReason::Stopped => played.was_stopped = true,
            EntryKind::End(reason) => played.agent.close((**reason).clone()),
            EntryKind::Message(Direction::FromAgent, text) => played.agent.receive(text, now),
            EntryKind::Message(Direction::ToAgent, text) => {
                let (conn, sent) = (played.conn, played.agent.sent(text, now));
                self.deliver(now);
                if let Some(sent) = sent {
                    self.on_sent(position, conn, sent, entry.line, now);
                }
            }
        }
        self.deliver(now);
    }

    fn on_sent(&mut self, position: usize, conn: ConnId, sent: Sent, line: usize, now: Instant) {
        match sent {
            Sent::Answer(request_id, answer) => self.answer(request_id, answer, now),
            Sent::Cancel(session) => {
                let key = self.session_of(conn, Some(&session));
                if self.app.state.sessions.get(&key).is_some_and(|session| session.turn.is_running()) {
                    self.act(now, |state, cx| operations::cancel_turn(state, key, cx));
                }
            }
            Sent::Request(request, action) => {
                let is_visible = action.is_some();
                if let Some(action) = action {
                    self.on_user_action(conn, request.session.as_ref(), action, now);
                }
                let Some(played) = self.agents.get_mut(position) else { return };
                if !played.agent.claim(&request, now) {
                    played.agent.leave_out(&request);
                    self.left_out.extend(is_visible.then_some(line));
                }
            }
        }
    }

    fn on_user_action(
        &mut self,
        conn: ConnId,
        session: Option<&SessionId>,
        action: UserAction,
        now: Instant,
    ) {
        for _ in 0..MAX_DIALOGS {
            if self.app.layers.is_empty() {
                break;
            }
            self.apply(Event::Act(Action::Escape), now);
        }
        let key = self.session_of(conn, session);
        if tab::front(&self.app.state) != key {
            self.act(now, |state, _| operations::activate(state, key));
        }
        self.act(now, |state, cx| match action {
            UserAction::Prompt(text) => {
                let failed = state.sessions.get(&key).and_then(|session| session.outbox.failed());
                if failed.is_some_and(|failed| failed.text == text) {
                    operations::send_again(state, key, cx);
                } else {
                    operations::submit(state, key, text, cx);
                }
            }
            UserAction::NewSession => operations::new_session(state, cx),
            UserAction::Open(id) => operations::open_session(state, id, cx),
            UserAction::Fork => operations::fork_session(state, key, None, cx),
            UserAction::List => operations::list_sessions(state, cx),
            UserAction::Mode(mode) => operations::set_mode(state, key, mode, cx),
            UserAction::Model(model) => operations::set_model(state, key, model, cx),
            UserAction::Option(option, value) => operations::set_option(state, key, option, value, cx),
            UserAction::SignIn(method) => operations::sign_in(state, conn, &method, Vec::new(), cx),
        });
    }

    /// Calls an operation of the app as its dialogs do, then updates the state as after an event.
    fn act(&mut self, now: Instant, work: impl FnOnce(&mut State, &mut Cx)) {
        let mut cx = Cx::new(now);
        work(&mut self.app.state, &mut cx);
        dialogs::serve(&mut self.app, &mut cx);
        self.carry_out(cx.effects, now);
        self.apply(core::Event::Focus(true), now);
        self.deliver(now);
    }

    /// The session with this id, otherwise the first one of the connection.
    fn session_of(&self, conn: ConnId, id: Option<&SessionId>) -> SessionKey {
        let of_conn = || self.app.state.sessions.values().filter(|session| session.conn == Some(conn));
        let named = of_conn().find(|session| id.is_some() && session.id.as_ref() == id);
        let first = || of_conn().find(|session| session.parent.is_none());
        named.or_else(first).map_or(self.app.state.active, |session| session.key)
    }

    fn find(&self, number: u64) -> Option<usize> {
        self.agents.iter().position(|played| played.number == number)
    }

    /// Starts a connection of the log for the one that the app requested.
    fn attach(&mut self, number: u64, now: Instant) {
        if self.agents.len() >= MAX_CONNS {
            return;
        }
        if self.wanted.is_empty() {
            self.replace_ended(number, now);
        }
        let spec = self.log.start_of(number).spec(number);
        if self.wanted.is_empty() {
            let folder = self.app.state.setup.folder.clone();
            let agent = spec.clone();
            self.act(now, |state, cx| {
                operations::open_tab(state, folder, agent, cx);
            });
        }
        let Some(conn) = self.wanted.pop_front() else { return };
        let mut own = self.log.entries.iter().filter(|entry| entry.conn == number);
        let last_session = own.find_map(opening).and_then(|(session, _)| session);
        let agent = LoggedAgent::start(&spec, last_session, now);
        self.agents.push(Played { number, conn, agent, was_stopped: false });
        self.deliver(now);
    }

    /// A new connection replaces one of the same agent that has no more messages.
    fn replace_ended(&mut self, number: u64, now: Instant) {
        let is_over = |played: &&mut Played| {
            let last = self.last_of.get(&played.number).copied().unwrap_or(0);
            let name = |number| self.log.start_of(number).spec(number).name;
            !played.agent.is_closed() && last < self.next && name(played.number) == name(number)
        };
        let Some(over) = self.agents.iter_mut().find(is_over) else { return };
        let conn = over.conn;
        if over.was_stopped {
            let key = self.session_of(conn, None);
            self.act(now, |state, cx| operations::restart_agent(state, key, cx));
        } else {
            let error = "The log does not record how this connection ended.".to_owned();
            over.agent.close(CloseReason::Lost { error });
            self.deliver(now);
        }
    }

    /// Passes the events of all agents to the app until there are no more.
    fn deliver(&mut self, now: Instant) {
        while let Some((conn, events)) = self.agents.iter_mut().find_map(|played| {
            let events = played.agent.take_events();
            (!events.is_empty()).then_some((played.conn, events))
        }) {
            for event in events {
                self.apply(core::Event::Agent(conn, event), now);
            }
        }
    }

    fn apply(&mut self, event: impl Into<Event>, now: Instant) {
        let effects = update(&mut self.app, event, now);
        self.carry_out(effects, now);
    }

    fn carry_out(&mut self, effects: Vec<Effect>, now: Instant) {
        for effect in effects {
            match effect {
                Effect::Connect { conn, .. } => self.wanted.push_back(conn),
                Effect::Send(conn, command) => {
                    if let Some(played) = self.agents.iter_mut().find(|played| played.conn == conn) {
                        played.agent.command(command, now);
                    }
                }
                Effect::Disconnect { conn, .. } => {
                    self.wanted.retain(|wanted| *wanted != conn);
                    if let Some(played) = self.agents.iter_mut().find(|played| played.conn == conn) {
                        played.agent.close(CloseReason::Stopped);
                    }
                }
                Effect::File(job) => {
                    self.jobs.insert(job.request_id, Job::File(job));
                }
                Effect::Terminal(job) => {
                    if let TerminalJob::Create { request_id, .. } | TerminalJob::Output { request_id, .. } =
                        &job
                    {
                        self.jobs.insert(*request_id, Job::Terminal(job));
                    }
                }
                Effect::FindServers { folder } => {
                    self.apply(core::Event::Service(ServiceEvent::ServersFound(folder, Ok(None))), now);
                }
                Effect::PreparePrompt(job) => {
                    let prepared = PreparedPrompt { text: job.text, ..PreparedPrompt::default() };
                    let event = ServiceEvent::PromptPrepared(job.session, job.prompt, Box::new(prepared));
                    self.apply(core::Event::Service(event), now);
                }
                Effect::Timer(id, after) => self.clock.set(id, now + after),
                Effect::StopTimer(id) => self.clock.stop(id),
                Effect::View(command) => self.view.apply(command),
                // A replay affects only its own screen.
                _ => {}
            }
        }
    }
}

fn opening(entry: &Entry) -> Option<(Option<SessionId>, Option<String>)> {
    match &entry.kind {
        EntryKind::Message(Direction::ToAgent, text) => replay::opening(text),
        _ => None,
    }
}

/// Plays a log to its end and writes each changed frame as text. Returns the lines with requests that could not be
/// repeated. Fails if writing fails.
pub fn frames(
    log: Log,
    (cols, rows): (u16, u16),
    mut write: impl FnMut(&str) -> std::io::Result<()>,
) -> std::io::Result<Vec<usize>> {
    text::link::show(false);
    // The keys of a session do nothing in a recording.
    let mut replay = Replay::new(log, &Keymap::default());
    replay.view.has_motion = false;
    let theme = Theme::plain();
    let mut canvas = Canvas::new(cols, rows);
    let mut last = String::new();
    while let Some(position) = replay.step() {
        let Some(entry) = replay.log.entries.get(position) else { break };
        let (line, at) = (entry.line, entry.at);
        replay.draw(at, &theme, &mut canvas);
        let frame = page(&canvas);
        if frame != last {
            write(&format!("--- line {line}, {:.3} s\n{frame}", at.as_secs_f64()))?;
            last = frame;
        }
    }
    Ok(replay.left_out)
}

/// Plays a log to its end and writes it as plain-text mode does. Returns and fails as [`frames`].
pub fn plain(
    log: Log,
    has_rich_glyphs: bool,
    mut write: impl FnMut(&str) -> std::io::Result<()>,
) -> std::io::Result<Vec<usize>> {
    let mut replay = Replay::new(log, &Keymap::default());
    let mut output = PlainOutput::new(if has_rich_glyphs { Glyphs::rich() } else { Glyphs::plain() });
    while let Some(position) = replay.step() {
        let at = replay.log.entries.get(position).map(|entry| entry.at).unwrap_or_default();
        write(&output.advance(&replay.app, replay.began + at))?;
    }
    Ok(replay.left_out)
}

fn page(buf: &Buffer) -> String {
    let mut page = String::new();
    for y in buf.area.top()..buf.area.bottom() {
        let (mut row, mut skip) = (String::new(), 0);
        for x in buf.area.left()..buf.area.right() {
            let symbol = buf.cell((x, y)).map_or(" ", ratatui::buffer::Cell::symbol);
            if skip == 0 {
                row.push_str(symbol);
            }
            skip = text::width(symbol).max(skip).saturating_sub(1);
        }
        page.push_str(row.trim_end());
        page.push('\n');
    }
    page
}
