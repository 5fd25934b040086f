//! Runs a session as plain text, without a screen.
//!
//! Passes events of agents, services, timers, signals and typed lines to `ui::update`, and prints new output of
//! `ui::plain`. From a pipe, a line is read when the agent is idle, and questions are refused unless the command line
//! says that lines answer them. From a terminal, [`crate::guard`] decides whether a line answers.

use std::collections::VecDeque;
use std::io::{self, BufRead, IsTerminal};
use std::time::Instant;

use anyhow::{Context as _, anyhow, bail};
use tokio::sync::mpsc;

use crate::config::keymap::Context;
use crate::core::{self, Effect, Session, SessionPhase, Turn};
use crate::model::{Action, Batch, ConnId, ServiceEvent};
use crate::ui::Event;
use crate::ui::dialogs;
use crate::ui::plain::PlainOutput;
use crate::ui::plain::question::{self, Reply};
use crate::ui::render_context::Glyphs;
use crate::ui::text::one_line;
use crate::ui::{App, Layer, update};

use super::agents::Agents;
use super::clock::{self, Clock};
use super::effects::EffectRunner;
use super::print::Printer;
use super::signals::{Signal, Signals};
use super::{Launch, in_runtime};

/// Runs until the user quits, or until all lines of a pipe were processed. Fails if the output cannot be written, or if
/// lines remain that cannot be processed.
pub fn run(launch: Launch) -> anyhow::Result<()> {
    in_runtime(async { Lines::new(launch)?.run().await })
}

/// Maximum number of lines that are read ahead; more stay in the pipe.
const TYPED_MAX: usize = 1024;

struct Lines {
    app: App,
    linear: PlainOutput,
    executor: EffectRunner,
    agents: Agents,
    services: mpsc::UnboundedReceiver<ServiceEvent>,
    signals: Signals,
    clock: Clock,
    typing: mpsc::Receiver<io::Result<String>>,
    /// Lines that were not processed yet, with their times.
    typed: VecDeque<Typed>,
    /// The start of a prompt whose line ended with a backslash.
    begun: String,
    is_over: bool,
    source: Source,
    has_prompts: bool,
    /// Since when the current question is shown.
    asked_at: Option<Instant>,
}

/// What the lines of standard input are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Source {
    Terminal,
    /// A pipe or a file with prompts only.
    Prompts,
    /// A pipe or a file whose lines also answer questions.
    PromptsAndAnswers,
}

/// A line of input.
struct Typed {
    at: Instant,
    line: String,
    /// Whether it did not answer a question, and is the next prompt.
    is_prompt: bool,
}

enum Wake {
    Typed(Option<io::Result<String>>),
    Signal(Signal),
    Agent(ConnId, Option<Batch>),
    Service(ServiceEvent),
    Deadline,
}

impl Lines {
    fn new(launch: Launch) -> anyhow::Result<Self> {
        let now = Instant::now();
        let (service_sender, services) = mpsc::unbounded_channel();
        let (app, first_effects) = crate::ui::start(launch.setup, now);
        let glyphs = if launch.has_rich_glyphs { Glyphs::rich() } else { Glyphs::plain() };
        let mut executor = EffectRunner::new(service_sender, launch.store, launch.tap, launch.log_dir);
        executor.use_data_dir(launch.data_dir);
        executor.templates = launch.templates;
        let mut this = Self {
            app,
            linear: PlainOutput::new(glyphs),
            executor,
            agents: Agents::default(),
            services,
            signals: Signals::new()?,
            clock: Clock::new(now),
            typing: read_lines()?,
            typed: VecDeque::new(),
            begun: String::new(),
            is_over: false,
            source: match launch.has_answers {
                _ if io::stdin().is_terminal() => Source::Terminal,
                false => Source::Prompts,
                true => Source::PromptsAndAnswers,
            },
            has_prompts: io::stdin().is_terminal() && io::stdout().is_terminal(),
            asked_at: None,
        };
        this.carry_out(first_effects, now);
        Ok(this)
    }

    async fn run(mut self) -> anyhow::Result<()> {
        let mut lost = None;
        loop {
            let now = Instant::now();
            for id in self.clock.take_due(now) {
                self.apply(core::Event::Timer(id), now);
            }
            self.executor.connect_due(&mut self.agents, now);
            self.print(now)?;
            if let Err(error) = self.take_lines(now) {
                lost.get_or_insert(error);
                self.apply(Event::Act(Action::Quit), now);
            }
            self.print(now)?;
            if self.executor.is_leaving && self.agents.is_empty() {
                break;
            }
            self.prompt()?;
            let wake = self.wait().await;
            self.on_wake(wake, Instant::now());
        }
        let failed = self.linear.failed_turns();
        if failed > 0 && self.is_script() {
            let turns = if failed == 1 { "turn" } else { "turns" };
            lost.get_or_insert_with(|| anyhow!("{failed} {turns} failed or were refused, see above"));
        }
        let unsaved = self.executor.shut_down();
        match (lost, unsaved) {
            (None, None) => Ok(()),
            (Some(lost), None) => Err(lost),
            (None, Some(unsaved)) => Err(anyhow!(unsaved)),
            (Some(lost), Some(unsaved)) => Err(anyhow!("{lost:#}\n{unsaved}")),
        }
    }

    async fn wait(&mut self) -> Wake {
        let deadline = self.clock.next_deadline(self.executor.next_connect(), false);
        tokio::select! {
            biased;
            line = self.typing.recv(), if !self.is_over && self.typed.len() < TYPED_MAX => Wake::Typed(line),
            signal = self.signals.next() => Wake::Signal(signal),
            (conn, batch) = self.agents.next() => Wake::Agent(conn, batch),
            Some(event) = self.services.recv() => Wake::Service(event),
            () = clock::sleep_until(deadline) => Wake::Deadline,
        }
    }

    fn on_wake(&mut self, wake: Wake, now: Instant) {
        match wake {
            Wake::Typed(Some(Ok(line))) => {
                self.typed.push_back(Typed { at: now, line, is_prompt: false });
            }
            Wake::Typed(Some(Err(_)) | None) => self.is_over = true,
            // The first interrupt cancels the turn, a second one soon after quits.
            Wake::Signal(signal @ (Signal::Interrupt | Signal::Terminate)) => {
                let is_interrupt = signal == Signal::Interrupt;
                self.apply(
                    if is_interrupt {
                        Event::Act(Action::ClearOrQuit)
                    } else {
                        core::Event::Terminate.into()
                    },
                    now,
                );
                self.signals.answer(self.executor.is_leaving);
            }
            Wake::Signal(Signal::Continue | Signal::Resize) | Wake::Deadline => {}
            Wake::Agent(conn, Some(batch)) => {
                for event in batch {
                    self.apply(core::Event::Agent(conn, event), now);
                }
            }
            Wake::Agent(conn, None) => self.executor.forget(conn),
            Wake::Service(event) => {
                self.executor.note_taken(&event);
                self.apply(core::Event::Service(event), now);
            }
        }
    }

    fn is_script(&self) -> bool {
        self.source != Source::Terminal
    }

    fn is_asked(&self) -> bool {
        dialogs::focus(&self.app) != Context::Main
    }

    /// Whether a line would be accepted as a prompt and start a turn.
    fn is_idle(&self) -> bool {
        let session = self.app.state.active_session();
        session.is_some_and(|session| {
            // A prompt whose files are being read is about to start a turn.
            let has_none = session.outbox.queue_len() == 0 && !session.outbox.is_preparing();
            session.phase == SessionPhase::Ready && session.turn == Turn::Idle && has_none
        })
    }

    /// Whether no prompt can be accepted without an action of the user.
    fn is_stuck(&self) -> bool {
        let phase = self.app.state.active_session().map(|session| &session.phase);
        let is_waiting = self.executor.next_connect().is_some();
        !is_waiting
            && matches!(
                phase,
                Some(
                    SessionPhase::NoAgent
                        | SessionPhase::NeedsSignIn
                        | SessionPhase::Failed(_)
                        | SessionPhase::Ended { .. }
                )
            )
    }

    /// Processes the lines that are currently accepted. Fails if lines remain that cannot be processed.
    fn take_lines(&mut self, now: Instant) -> anyhow::Result<()> {
        while !self.executor.is_leaving && !self.app.state.is_quitting {
            if self.is_asked() {
                self.asked_at.get_or_insert(now);
                if self.source == Source::Prompts && self.app.guard.question().is_some() {
                    self.refuse(now);
                    self.print(now)?;
                    continue;
                }
            } else {
                self.asked_at = None;
            }
            match self.next_line() {
                Some(typed) => self.on_line(typed, now),
                None if self.end(now)? => {}
                None => return Ok(()),
            }
            self.print(now)?;
        }
        Ok(())
    }

    fn next_line(&mut self) -> Option<Typed> {
        let is_command = |line: &str| line.trim_start().starts_with(':');
        let position = match self.asked_at {
            Some(asked_at) => self
                .typed
                .iter()
                .position(|typed| !typed.is_prompt && (self.is_script() || typed.at >= asked_at)),
            None if self.is_idle() => Some(0),
            None if self.is_stuck() => self.typed.front().filter(|typed| is_command(&typed.line)).map(|_| 0),
            // In a terminal, prompts can be typed during a turn; the reducer queues them.
            None if !self.is_script() && self.is_ready() => Some(0),
            None => self.typed.iter().position(|typed| is_command(&typed.line)).filter(|_| !self.is_script()),
        };
        self.typed.remove(position?)
    }

    fn is_ready(&self) -> bool {
        self.app.state.active_session().is_some_and(|session| session.phase == SessionPhase::Ready)
    }

    /// Quits after all lines were processed and nothing is running. Returns whether this changed the state, in which
    /// case it must be called again, because nothing else may wake the loop.
    fn end(&mut self, now: Instant) -> anyhow::Result<bool> {
        let is_vain = self.is_script() && self.is_stuck() && !self.is_asked();
        if !self.is_over && !is_vain {
            return Ok(false);
        }
        if self.is_asked() && self.typed.is_empty() {
            // Declines the question, because there is no more input.
            let before = (self.app.layers.len(), self.app.request_view.clone());
            let is_start = self.app.layers.last().and_then(Layer::list).is_some() && self.is_stuck();
            self.reject(now);
            if is_start {
                bail!("end of input before an agent was chosen; pass --agent NAME");
            }
            return Ok(before.0 != self.app.layers.len() || before.1 != self.app.request_view);
        }
        if self.is_stuck() {
            bail!("the agent does not accept prompts, see above; {} lines were not sent", self.typed.len());
        }
        let held = self.app.state.active_session().filter(|session| {
            let is_idle = session.phase == SessionPhase::Ready && session.turn == Turn::Idle;
            is_idle && self.is_script() && session.outbox.free() == 0
        });
        if let Some(count) = held.map(|session| session.outbox.queue_len()).filter(|count| *count > 0) {
            bail!("the session was not continued, see above; prompts on hold that were not sent: {count}");
        }
        // A comparison does not end while the store cannot write.
        let reads_history = self.app.state.unsaved.is_none()
            && self.app.state.active_session().is_some_and(Session::reads_history);
        if self.is_idle() && self.typed.is_empty() && !reads_history {
            self.apply(Event::Act(Action::Quit), now);
        }
        Ok(false)
    }

    /// Refuses a question, because the lines of a script are prompts.
    fn refuse(&mut self, now: Instant) {
        self.linear.note(
            "Refused: lines of a pipe or a file are prompts. To answer with them, pass --permissions ask."
                .to_owned(),
        );
        self.reject(now);
    }

    /// Rejects a question. Unlike two presses of Escape, two rejections do not cancel the turn.
    fn reject(&mut self, now: Instant) {
        self.app.guard.admit();
        self.app.user.last_reject = None;
        self.apply(Event::Act(Action::Escape), now);
    }

    fn on_line(&mut self, typed: Typed, now: Instant) {
        self.linear.note_typed(&typed.line);
        if self.app.guard.question().is_some() {
            let is_command = typed.line.trim_start().starts_with(':');
            let is_answer = matches!(question::reply(&self.app, &typed.line), Reply::Do(_));
            if !(is_command || is_answer && self.app.guard.counts_line(self.is_script(), typed.at)) {
                let text = format!("Not answered. Saved as the next prompt: {}", one_line(&typed.line));
                self.linear.note(text);
                self.linear.ask_again();
                self.typed.push_front(Typed { is_prompt: true, ..typed });
                return;
            }
            self.app.guard.admit();
        }
        let line = typed.line.as_str();
        if !self.is_asked() {
            if let Some(line) = line.strip_suffix('\\') {
                self.begun.push_str(line);
                self.begun.push('\n');
                return;
            }
            if line.trim().is_empty() && self.begun.is_empty() {
                return;
            }
        }
        let begun = if self.is_asked() { String::new() } else { std::mem::take(&mut self.begun) };
        match question::reply(&self.app, &format!("{begun}{line}")) {
            Reply::Say(text) => self.linear.note(text),
            Reply::Do(events) => {
                for event in events {
                    let is_prompt = event == Event::Act(Action::Submit);
                    // Completions are not applicable to a complete line.
                    if is_prompt && !dialogs::completions(&self.app).is_empty() {
                        self.apply(Event::Act(Action::Escape), now);
                    }
                    self.apply(event, now);
                }
            }
        }
        // The next question is a different one, even if it follows immediately.
        self.asked_at = None;
    }

    fn apply(&mut self, event: impl Into<Event>, now: Instant) {
        let effects = update(&mut self.app, event, now);
        self.carry_out(effects, now);
    }

    fn carry_out(&mut self, effects: Vec<Effect>, now: Instant) {
        for effect in effects {
            match effect {
                Effect::Timer(id, after) => self.clock.set(id, now + after),
                Effect::StopTimer(id) => self.clock.stop(id),
                Effect::RunLogin { conn, spec, .. } => {
                    // The command would read the lines that are meant for parlor.
                    let why = format!("Run `{}` in another terminal first.", spec.command_line());
                    self.apply(core::Event::Service(ServiceEvent::LoginDone(conn, Err(why))), now);
                }
                Effect::View(_)
                | Effect::SetTheme(_)
                | Effect::CaptureMouse(_)
                | Effect::CopySelection
                | Effect::QuoteSelection(_)
                | Effect::Announce { .. }
                | Effect::Suspend => {}
                other => self.executor.carry_out(other, &mut self.agents, now),
            }
        }
    }

    fn print(&mut self, now: Instant) -> anyhow::Result<()> {
        let text = self.linear.advance(&self.app, now);
        write(&text)?;
        dialogs::on_frame(&mut self.app, true, Instant::now());
        Ok(())
    }

    /// Prints the prompt marker when a prompt is accepted.
    fn prompt(&mut self) -> anyhow::Result<()> {
        let is_wanted = self.has_prompts && self.is_idle() && !self.is_asked() && !self.executor.is_leaving;
        match self.app.state.active_session().filter(|_| is_wanted) {
            Some(session) => write(&self.linear.prompt(session)),
            None => Ok(()),
        }
    }
}

fn write(text: &str) -> anyhow::Result<()> {
    Printer::stdout().print(text).context("cannot write to standard output")
}

/// Reads lines of standard input on a separate thread, because reading cannot be interrupted.
fn read_lines() -> io::Result<mpsc::Receiver<io::Result<String>>> {
    let (sender, lines) = mpsc::channel(1);
    std::thread::Builder::new().name("lines".to_owned()).spawn(move || {
        let mut bytes = Vec::new();
        let mut input = io::stdin().lock();
        loop {
            bytes.clear();
            let read = match input.read_until(b'\n', &mut bytes) {
                Ok(0) => return,
                Ok(_) => Ok(String::from_utf8_lossy(&bytes).trim_end_matches(['\r', '\n']).to_owned()),
                Err(error) => Err(error),
            };
            let is_broken = read.is_err();
            if sender.blocking_send(read).is_err() || is_broken {
                return;
            }
        }
    })?;
    Ok(lines)
}
