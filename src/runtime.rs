//! The event loop: runs effects and draws frames.
//!
//! Passes every event to `ui::update` in order, executes its effects, and draws when something has changed. Inputs
//! are keys, batches of agents, service events, signals and timers.
//! Invariants: the loop never awaits a send; input has priority over agents; an idle loop has no timer and draws no
//! frame.

pub mod agents;
mod attachments;
pub mod attention;
pub mod clipboard;
pub mod clock;
mod compare;
pub mod effects;
mod install;
pub mod keys;
pub mod live;
pub mod paint;
pub mod pictures;
pub mod plain;
pub mod print;
pub mod replay;
mod resume_hint;
pub mod saved_requests;
pub mod signals;
mod suspend;
mod terminal;
pub mod tty;
mod worktrees;

use crate::core::state::tab;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use tokio::sync::{Notify, mpsc};

use crate::acp::gate::GateKeeper;
use crate::acp::tap::Tap;
use crate::config::keymap::Keymap;
use crate::core::{self, Effect, MouseOwner, Setup};
use crate::host::clipboard::Surroundings;
use crate::host::templates::TemplateFolders;
use crate::host::watch::Watched;
use crate::model::{Batch, ConfigJob, ConnId, CopyOutcome, ServiceEvent};
use crate::store::{Export, Store, Transcript};
use crate::ui::Event;
use crate::ui::text::WideAmbiguous;
use crate::ui::theme::Theme;
use crate::ui::{self, ViewState};
use crate::ui::{App, LogPage, dialogs, update};

use agents::Agents;
use attention::Attention;
use clipboard::terminal::{self as terminal_clipboard, TerminalClipboard};
use clock::Clock;
use effects::EffectRunner;
use keys::{Keys, TtyEvent};
use live::{Configure, Live, LiveConfig, Themes};
use pictures::{GraphicsSetting, Pictures};
use signals::Signals;
use tty::Tty;

/// How long agents and services may occupy the loop before it checks for keys and draws.
const BUDGET: Duration = Duration::from_millis(4);

/// Selects the name of a theme by a background color in RGB.
pub type ThemeFor = fn([u8; 3]) -> String;

/// An interrupt within this time after parlor took the terminal back was meant for the previous program.
const LATE_INTERRUPT: Duration = Duration::from_millis(500);

/// The parameters of a session in the terminal.
pub struct Launch {
    /// The initial state of the app.
    pub setup: Setup,
    /// The settings that can change while parlor runs.
    pub live: Live,
    pub configure: Configure,
    pub watched: Watched,
    pub clipboard: Surroundings,
    /// Returns the name of the theme for a background; `None`: the terminal has too few colours.
    pub theme_for: Option<ThemeFor>,
    pub terminal: attention::Terminal,
    /// Whether the terminal supports symbols beyond ASCII.
    pub has_rich_glyphs: bool,
    pub pictures: pictures::Environment,
    /// The user's home folder, displayed as `~`.
    pub home: Option<PathBuf>,
    pub data_dir: PathBuf,
    pub templates: TemplateFolders,
    /// Reads the MCP servers of a folder.
    pub find_servers: effects::FindServers,
    /// The session store; `None`: nothing is saved.
    pub store: Option<Store>,
    /// Exports a saved session to a file.
    pub export: Export,
    /// Formats a saved session as Markdown.
    pub transcript: Transcript,
    /// Records every frame of the protocol.
    pub tap: Tap,
    pub registry: crate::host::registry::Registry,
    pub log_dir: PathBuf,
    /// Whether lines of a pipe or a file answer questions in plain-text mode.
    pub has_answers: bool,
}

/// Runs until the user quits. Fails if the terminal cannot be used.
pub fn run(launch: Launch) -> anyhow::Result<()> {
    in_runtime(async { Box::pin(Loop::new(launch)?.run()).await })
}

fn in_runtime(task: impl Future<Output = anyhow::Result<()>>) -> anyhow::Result<()> {
    // A single thread for the loop and all pipes: with more threads, wake-ups cost more than the work of an update.
    // Blocking work (files, git) runs on separate threads, which end soon.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .thread_keep_alive(Duration::from_millis(500))
        .enable_all()
        .build()
        .context("cannot start the async runtime")?;
    let outcome = runtime.block_on(task);
    // A blocking job, such as a file on an unreachable network drive, must not delay the exit.
    runtime.shutdown_timeout(Duration::from_millis(200));
    outcome
}

#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
struct Loop {
    app: App,
    view: ViewState,
    theme: Theme,
    themes: Themes,
    keymap: Keymap,
    config: LiveConfig,
    /// Whether the terminal supports symbols beyond ASCII.
    has_rich_glyphs: bool,
    images: GraphicsSetting,
    ambiguous: WideAmbiguous,
    /// Whether the terminal draws ambiguous characters in two cells, as measured.
    is_wide: bool,
    executor: EffectRunner,
    agents: Agents,
    services: mpsc::UnboundedReceiver<ServiceEvent>,
    input: Option<Keys>,
    signals: Signals,
    tty: Tty,
    terminal_clipboard: TerminalClipboard,
    clock: Clock,
    gate: GateKeeper,
    pictures: Pictures,
    comparer: compare::Comparer,
    /// Notified when something outside the state changes the screen, such as a loaded grammar.
    repaint: Arc<Notify>,
    log_stand: effects::LogStand,
    /// Whether another program has the terminal, so that nothing is drawn or read.
    is_away: bool,
    /// Whether the app was notified that the terminal is closed.
    is_lost: bool,
    /// Selects a theme for the terminal's background, until the user selects one.
    theme_for: Option<ThemeFor>,
    reports_colors: bool,
    /// Time when parlor last took the terminal back.
    back_since: Option<Instant>,
    /// Whether the budget was exhausted before all ready events were processed.
    has_more: bool,
    attention: Attention,
    /// The title that was last sent to the terminal, and the count of changes at that time.
    title: Option<(String, u64)>,
}

/// The event that woke the loop.
enum Wake {
    Input(std::io::Result<TtyEvent>),
    InputEnded,
    Signal(signals::Signal),
    Agent(ConnId, Option<Batch>),
    Service(ServiceEvent),
    Picture(pictures::Done),
    Config(live::Reloaded),
    Repaint,
    Deadline,
}

impl Loop {
    fn new(launch: Launch) -> anyhow::Result<Self> {
        let now = Instant::now();
        let live = launch.live;
        let theme = (live.themes)(launch.setup.theme_in_use());
        let mut view = ViewState::new(&live.keymap, now);
        view.home.clone_from(&launch.home);
        let (app, first_effects) = crate::ui::start(launch.setup, now);
        let (service_sender, services) = mpsc::unbounded_channel();
        let mut pictures = Pictures::new(launch.pictures);
        let width_question = if launch.has_rich_glyphs { tty::WIDTH_QUESTION } else { "" };
        let clipboard_question =
            if launch.clipboard.has_clipboard() { "" } else { terminal_clipboard::QUESTION };
        let questions = format!("{width_question}{clipboard_question}{}", pictures.questions());
        tty::need_keypad(launch.terminal.needs_keypad());
        let signals = Signals::new()?; // First, so that a signal restores the terminal.
        let mut tty = Tty::enter(app.mouse == MouseOwner::Parlor, launch.theme_for.is_some(), &questions)?;
        tty.use_italics(launch.terminal.shows_italics());
        pictures.choose(tty::cell_size(), theme.ground());
        let repaint = Arc::new(Notify::new());
        let notify = Arc::clone(&repaint);
        ui::highlight::on_ready(Box::new(move || notify.notify_one()));
        let mut executor = EffectRunner::new(service_sender, launch.store, launch.tap, launch.log_dir);
        (executor.find_servers, executor.home) = (launch.find_servers, launch.home);
        executor.use_data_dir(launch.data_dir);
        (executor.templates, executor.clipboard) = (launch.templates, launch.clipboard);
        (executor.export, executor.transcript) = (launch.export, launch.transcript);
        let (gate_keeper, gate) = GateKeeper::new();
        (executor.registry, executor.gate) = (Some(launch.registry), gate);
        let mut this = Self {
            app,
            view,
            theme,
            themes: Arc::clone(&live.themes),
            keymap: Keymap::default(),
            config: LiveConfig::new(launch.configure, launch.watched),
            has_rich_glyphs: launch.has_rich_glyphs,
            images: live.images,
            ambiguous: live.ambiguous,
            is_wide: false,
            agents: Agents::new(executor.backlog()),
            executor,
            services,
            input: None,
            signals,
            tty,
            terminal_clipboard: TerminalClipboard::default(),
            clock: Clock::new(now),
            gate: gate_keeper,
            pictures,
            comparer: compare::Comparer::new(&repaint),
            repaint,
            log_stand: effects::LogStand::default(),
            is_away: false,
            is_lost: false,
            theme_for: launch.theme_for,
            reports_colors: false,
            back_since: None,
            has_more: false,
            attention: Attention::new(live.attention, launch.terminal),
            title: None,
        };
        this.use_settings(live);
        // The first frame is drawn before any agent is started and before anything is read from disk.
        this.draw(now);
        this.input = Some(Keys::listen()?);
        this.executor.start_recording();
        this.carry_out(first_effects, now);
        Ok(this)
    }

    async fn run(mut self) -> anyhow::Result<()> {
        loop {
            let wake = self.wait().await;
            let is_input = matches!(wake, Wake::Input(_));
            self.on_wake(wake);
            let was_busy = self.has_more;
            self.drain(is_input);
            if is_input {
                // The frame after the key shows pending updates too.
                self.gate.open_at(Instant::now().into());
            }
            if is_input || self.has_more {
                // The user's commands are sent to the agent before a frame is drawn, also during a flood.
                tokio::task::yield_now().await;
            }
            if is_input
                && !was_busy
                && let Some((conn, batch)) = self.agents.try_next()
            {
                self.on_batch(conn, batch, Instant::now());
            }
            let now = Instant::now();
            self.on_deadlines(now);
            self.notice_loss(now);
            if self.executor.is_leaving && self.agents.is_empty() {
                break;
            }
            self.clock.animate(ui::next_frame_in(&self.app, &self.view));
            if !self.is_away && self.clock.is_frame_due(now) {
                if self.tty.is_gone() {
                    self.clock.frame_drawn(now);
                } else {
                    self.draw(now);
                }
            }
            self.gate.open_at(self.clock.next_poll().into());
            self.send_pictures();
            self.notice_loss(now);
        }
        let lost = self.executor.shut_down();
        self.input = None;
        self.tty.send(&self.pictures.leave());
        self.tty.leave();
        resume_hint::print(&mut self.app, &mut self.services);
        match lost {
            Some(message) => Err(anyhow::anyhow!(message)),
            None => Ok(()),
        }
    }

    async fn wait(&mut self) -> Wake {
        let other =
            [self.executor.next_connect(), self.terminal_clipboard.deadline()].into_iter().flatten().min();
        let deadline = self.clock.next_deadline(other, !self.is_away);
        let input = async {
            match &mut self.input {
                Some(keys) => keys.next().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            event = input => event.map_or(Wake::InputEnded, Wake::Input),
            signal = self.signals.next() => Wake::Signal(signal),
            (conn, batch) = self.agents.next() => Wake::Agent(conn, batch),
            Some(event) = self.services.recv() => Wake::Service(event),
            Some(reloaded) = self.config.next() => Wake::Config(reloaded),
            () = self.repaint.notified() => Wake::Repaint,
            Some(done) = self.pictures.next() => Wake::Picture(done),
            () = clock::sleep_until(deadline) => Wake::Deadline,
            // A slice of an image is sent in each iteration without other work.
            () = std::future::ready(()), if self.pictures.has_more_to_send() && !self.is_away => Wake::Deadline,
        }
    }

    fn on_wake(&mut self, wake: Wake) {
        let now = Instant::now();
        match wake {
            Wake::Input(Ok(TtyEvent::Input(event))) => self.on_input(&event, now),
            Wake::Input(Ok(TtyEvent::Synchronizes(does))) => self.tty.synchronize(does),
            Wake::Input(Ok(TtyEvent::Background(color))) => {
                self.pictures.choose(None, self.theme.ground().or(Some(color)));
                self.on_background(color, now);
            }
            Wake::Input(Ok(TtyEvent::IsDark(is_dark))) => {
                self.reports_colors = true;
                self.on_background(if is_dark { [0; 3] } else { [255; 3] }, now);
            }
            Wake::Input(Ok(TtyEvent::Clipboard(packet))) => self.on_clipboard(packet, now),
            Wake::Input(Ok(answer)) => self.on_answer(answer),
            Wake::Picture(done) => {
                if self.pictures.take(done) {
                    self.clock.want_frame();
                }
            }
            Wake::Input(Err(_)) | Wake::InputEnded => self.tty.lose(),
            Wake::Signal(signal) => self.on_signal(signal, now),
            Wake::Agent(conn, batch) => self.on_batch(conn, batch, now),
            Wake::Service(event) => self.on_service(event, now),
            Wake::Config(reloaded) => self.on_reloaded(reloaded, now),
            // Highlighting of a visible page must not be delayed by a frame.
            Wake::Repaint => self.clock.want_frame_at_once(),
            Wake::Deadline => {}
        }
    }

    /// Processes all other ready events: first all keys, then agents and services within the budget. After a key the
    /// frame is drawn first; agents are processed in the next iteration, even if that starts with a key.
    fn drain(&mut self, is_input: bool) {
        let begun = Instant::now();
        let is_turn_of_agents = !is_input || self.has_more;
        loop {
            while let Some(event) = self.input.as_mut().and_then(Keys::try_next) {
                self.on_wake(Wake::Input(event));
            }
            self.has_more = true;
            if !is_turn_of_agents || begun.elapsed() >= BUDGET {
                return;
            }
            let batch = self.agents.try_next();
            let service = self.services.try_recv();
            self.has_more = batch.is_some() || service.is_ok();
            if let Some((conn, batch)) = batch {
                self.on_batch(conn, batch, Instant::now());
            }
            if let Ok(event) = service {
                self.on_service(event, Instant::now());
            }
            if !self.has_more {
                return;
            }
        }
    }

    fn on_input(&mut self, event: &crossterm::event::Event, now: Instant) {
        if self.executor.is_leaving {
            // A second request to quit does not wait for agents.
            if let crossterm::event::Event::Key(key) = event
                && key.modifiers.contains(crossterm::event::KeyModifiers::CONTROL)
            {
                self.executor.force_all();
            }
            return;
        }
        match event {
            crossterm::event::Event::Resize(..) => self.on_resize(),
            // Most terminals do not report a change of their colors, which the user makes in another window.
            crossterm::event::Event::FocusGained if self.theme_for.is_some() && !self.reports_colors => {
                self.tty.ask_background();
            }
            _ => {}
        }
        if *event == crossterm::event::Event::FocusGained {
            // Not every file system reports changes.
            self.config.run(ConfigJob::Reread);
        }
        self.clock.want_frame_at_once();
        for event in ui::route(event, &self.app, &mut self.view, &self.keymap, now) {
            self.apply(event, now);
        }
    }

    fn on_resize(&mut self) {
        self.pictures.choose(tty::cell_size(), None);
        // The size may be the same after several changes, but the terminal has lost cells in between.
        self.tty.clear();
        self.clock.want_frame_at_once();
    }

    /// Sends a slice of the image data to the terminal.
    fn send_pictures(&mut self) {
        if self.is_away || self.tty.is_gone() {
            return;
        }
        let (bytes, is_seen) = self.pictures.next_slice();
        if !bytes.is_empty() {
            self.tty.send(&bytes);
        }
        if is_seen {
            self.clock.want_frame();
        }
    }

    /// Stops the agents once the terminal is closed.
    fn notice_loss(&mut self, now: Instant) {
        if self.tty.is_gone() && !self.is_lost {
            self.is_lost = true;
            self.input = None;
            // Closing a window also sends a signal; a second request to quit would kill the agents immediately.
            if !self.executor.is_leaving {
                self.apply(core::Event::Terminate, now);
            }
        }
    }

    fn on_signal(&mut self, signal: signals::Signal, now: Instant) {
        // Ctrl+C in a command that had the terminal is sent to parlor too, sometimes only after the command has ended.
        let is_late =
            self.back_since.is_some_and(|back| now.saturating_duration_since(back) < LATE_INTERRUPT);
        match signal {
            signals::Signal::Terminate if self.is_lost => {}
            signals::Signal::Terminate => self.apply(core::Event::Terminate, now),
            _ if self.is_away => {}
            signals::Signal::Interrupt if is_late => {}
            signals::Signal::Interrupt => self.apply(core::Event::Terminate, now),
            signals::Signal::Resize => self.on_resize(),
            signals::Signal::Continue => {
                self.tty.reenter();
                self.apply(Event::Returned, now);
                self.clock.want_frame_at_once();
            }
        }
        self.signals.answer(self.executor.is_leaving);
    }

    fn on_batch(&mut self, conn: ConnId, batch: Option<Batch>, now: Instant) {
        let Some(batch) = batch else {
            self.executor.forget(conn);
            return;
        };
        self.clock.note_arrival(now);
        for event in batch {
            self.apply(core::Event::Agent(conn, event), now);
        }
    }

    fn on_service(&mut self, event: ServiceEvent, now: Instant) {
        self.executor.note_taken(&event);
        let is_back = matches!(
            event,
            ServiceEvent::LoginDone(..) | ServiceEvent::EditorDone(_) | ServiceEvent::DraftEdited { .. }
        );
        if self.is_away && is_back {
            self.come_back();
        }
        if let ServiceEvent::Copied { outcome: CopyOutcome::Terminal { sequence }, .. } = &event {
            self.tty.send(sequence);
        }
        if let ServiceEvent::ClipboardRead { session, is_register, text } = &event
            && *session == self.app.state.active
        {
            let text = text.as_deref().ok();
            for event in ui::insert_clipboard(text, *is_register, &mut self.view) {
                self.apply(event, now);
            }
        }
        self.clock.note_arrival(now);
        self.apply(core::Event::Service(event), now);
    }

    fn apply(&mut self, event: impl Into<Event>, now: Instant) {
        let before = self.app.state.changes;
        let effects = update(&mut self.app, event, now);
        if self.app.state.changes != before {
            self.clock.want_frame();
        }
        self.carry_out(effects, now);
    }

    fn carry_out(&mut self, effects: Vec<Effect>, now: Instant) {
        for effect in effects {
            match effect {
                Effect::View(command) => {
                    self.view.apply(command);
                    if self.view.take_clear() {
                        self.tty.clear();
                    }
                }
                Effect::Timer(id, after) => self.clock.set(id, now + after),
                Effect::StopTimer(id) => self.clock.stop(id),
                Effect::Announce { session, text } => self.announce(session, &text, now),
                Effect::CopySelection => self.copy_selection(now),
                Effect::QuoteSelection(item) => self.quote_selection(item, now),
                Effect::ReadClipboard { session, before } => self.read_clipboard(session, before, now),
                Effect::CaptureMouse(captures) => self.tty.capture_mouse(captures),
                Effect::SetTheme(name) => {
                    self.theme = (self.themes)(&name);
                    self.pictures.choose(None, self.theme.ground());
                }
                Effect::Configure(job) => self.config.run(job),
                Effect::RunLogin { conn, spec, env } => {
                    self.step_aside();
                    self.executor.login(conn, spec, env);
                }
                Effect::OpenFile { location, folder, editor } => {
                    if let Some(launch) = self.executor.editor_for(&location, editor.as_deref()) {
                        if !launch.is_windowed {
                            self.step_aside();
                        }
                        self.executor.edit(launch, location.path, folder, editor.is_some());
                    }
                }
                Effect::EditDraft { .. } | Effect::OpenAttachment { .. } => self.edit_text(effect, now),
                Effect::Suspend => self.suspend(),
                other => self.executor.carry_out(other, &mut self.agents, now),
            }
        }
    }

    fn on_deadlines(&mut self, now: Instant) {
        for id in self.clock.take_due(now) {
            self.apply(core::Event::Timer(id), now);
        }
        self.executor.connect_due(&mut self.agents, now);
        self.on_clipboard_deadline(now);
    }

    fn draw(&mut self, now: Instant) {
        self.view.set_now(now);
        if self.app.layers.top::<LogPage>().is_some() {
            self.executor.refresh_log(&mut self.view, &mut self.log_stand, tab::log_conns(&self.app.state));
        }
        self.comparer.deliver();
        let (app, view, theme) = (&self.app, &mut self.view, &self.theme);
        let Some(canvas) = self.tty.begin() else { return };
        let cursor = ui::draw_into(app, view, theme, canvas);
        self.tty.shape_cursor(ui::cursor_shape(&self.app, &self.view));
        self.tty.finish(cursor);
        let changes = self.app.state.changes;
        dialogs::on_frame(&mut self.app, self.view.shows_end(), Instant::now());
        self.clock.frame_drawn(Instant::now());
        if self.app.state.changes != changes {
            self.clock.want_frame();
        }
        // Answers of a question that was shown just now count without another event.
        self.clock.animate(ui::next_frame_in(&self.app, &self.view));
        self.show_status(now);
        self.pictures.work();
        self.comparer.work();
        if let Some(event) = ui::event_after_frame(&self.app, &self.view) {
            self.apply(event, now);
        }
    }
}
