//! A command, from its start until its release.
//!
//! Three threads share its state: one reads the terminal, one reports output, one waits for the exit. The reader
//! waits for the reporter when it is one event ahead (back-pressure on the command), unless the screen is slow:
//! then the middle of the screen's copy is dropped, never the agent's. The process is reaped only at release, so
//! its id is not reused until then. No thread and no descriptor is left after the release and the end.

use std::io::{PipeWriter, Write};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use portable_pty::MasterPty;
use tokio::sync::mpsc::UnboundedSender;

use super::Owner;
use super::backlog::Backlog;
use super::drain::Drain;
use super::output::{End, Output};
use super::plain::Plain;
use super::responder::Responder;
use super::ring::Ring;
use super::start::pty_size;
use crate::host::os::process::{self, Ending, ProcessId};
use crate::host::os::pty::hides_input;
use crate::lock::lock;
use crate::model::{
    ExitInfo, ScreenPart, ServiceEvent, TerminalId, TerminalInput, TerminalModes, TerminalSize,
};

/// Default output limit if the agent does not set one.
const DEFAULT_LIMIT_BYTES: u64 = 1 << 20;

/// Maximum output limit.
const MAX_LIMIT_BYTES: u64 = 64 << 20;

/// Maximum size of the output in one event.
const MAX_EVENT_BYTES: usize = 256 << 10;

/// Interval between two events.
const TELL_EVERY: Duration = Duration::from_millis(16);

/// Polling interval for a change of the terminal's echo, which nothing reports.
const ECHO_EVERY: Duration = Duration::from_millis(200);

/// Polling interval for credit while the screen is slow, and the amount of newest output that is retained.
const LAGGING_EVERY: Duration = Duration::from_millis(100);
const LAGGING_BYTES: usize = 64 << 10;

/// How long to wait for the last output after the exit, while another process holds the terminal open.
const LAST_OUTPUT: Duration = Duration::from_millis(400);

/// Maximum number of inputs that wait until the command reads.
const MAX_INPUTS: usize = 256;

pub(super) struct Live {
    id: TerminalId,
    owner: Owner,
    leader: ProcessId,
    /// `None` after the end.
    terminal: Mutex<Option<Box<dyn MasterPty + Send>>>,
    /// The input that is typed; `None` if the command cannot read any, or has ended.
    input: Mutex<Option<SyncSender<Vec<u8>>>>,
    state: Mutex<State>,
    changed: Condvar,
}

impl std::fmt::Debug for Live {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Live").field("id", &self.id).finish_non_exhaustive()
    }
}

#[expect(clippy::struct_excessive_bools, reason = "set by several threads in any order")]
struct State {
    modes: TerminalModes,
    /// Set if the command can read its input.
    responder: Option<Responder>,
    plain: Plain,
    ring: Ring,
    /// The output for the screen that was not reported yet.
    unreported: Vec<u8>,
    /// Number of bytes that were dropped before `unreported`.
    left_out_bytes: u64,
    is_lagging: bool,
    /// No process holds the terminal open.
    is_closed: bool,
    exit: Option<(ExitInfo, Instant)>,
    /// The end was reported or is about to be, so no more output is reported.
    is_ended: bool,
    may_reap: bool,
    is_reaped: bool,
    reading: Option<PipeWriter>,
}

impl Live {
    pub(super) fn new(
        id: TerminalId,
        owner: Owner,
        leader: ProcessId,
        (terminal, reading): (Box<dyn MasterPty + Send>, PipeWriter),
        limit_bytes: Option<u64>,
    ) -> Self {
        let limit = limit_bytes.unwrap_or(DEFAULT_LIMIT_BYTES).min(MAX_LIMIT_BYTES);
        let state = State {
            modes: TerminalModes::default(),
            responder: None,
            plain: Plain::default(),
            ring: Ring::new(usize::try_from(limit).unwrap_or(usize::MAX)),
            unreported: Vec::new(),
            left_out_bytes: 0,
            is_lagging: false,
            is_closed: false,
            exit: None,
            is_ended: false,
            may_reap: false,
            is_reaped: false,
            reading: Some(reading),
        };
        Self {
            id,
            owner,
            leader,
            terminal: Mutex::new(Some(terminal)),
            input: Mutex::default(),
            state: Mutex::new(state),
            changed: Condvar::new(),
        }
    }

    pub(super) fn owner(&self) -> Owner {
        self.owner
    }

    pub(super) fn leader(&self) -> ProcessId {
        self.leader
    }

    fn terminal(&self) -> MutexGuard<'_, Option<Box<dyn MasterPty + Send>>> {
        lock(&self.terminal)
    }

    /// Accepts input from now on. A thread writes it, because a command that does not read blocks the writer.
    pub(super) fn accept_input(&self, mut to: Box<dyn Write + Send>) {
        let (sender, inputs) = sync_channel::<Vec<u8>>(MAX_INPUTS);
        let started = thread::Builder::new().name("terminal input".to_owned()).spawn(move || {
            while let Ok(bytes) = inputs.recv() {
                if to.write_all(&bytes).and_then(|()| to.flush()).is_err() {
                    return;
                }
            }
        });
        if started.is_ok() {
            *lock(&self.input) = Some(sender);
            let size = self.terminal().as_ref().and_then(|terminal| terminal.get_size().ok());
            let size = size.map(|size| TerminalSize { rows: size.rows, cols: size.cols });
            self.state().responder = size.and_then(Responder::new);
        }
    }

    /// Changes the size of the terminal, which the system reports to the command.
    pub(super) fn resize(&self, size: TerminalSize) {
        if let Some(terminal) = &*self.terminal() {
            let _ = terminal.resize(pty_size(size));
        }
        if let Some(responder) = &mut self.state().responder {
            responder.resize(size);
        }
    }

    /// Types into the terminal. Returns false if the command reads no input, or is far behind.
    pub(super) fn type_in(&self, input: TerminalInput) -> bool {
        let (brackets, is_application) = {
            let state = self.state();
            (state.modes.brackets_paste, state.modes.is_application_cursor)
        };
        let bytes = match input {
            TerminalInput::Bytes(bytes) => bytes,
            TerminalInput::Cursor(last) => vec![b'\x1b', if is_application { b'O' } else { b'[' }, last],
            TerminalInput::Paste(text) => {
                // Control characters would act as keys, or end the paste.
                let is_text = |c: &char| !c.is_control() || matches!(c, '\n' | '\t');
                let text = text.replace("\r\n", "\n").replace('\r', "\n");
                let text: String = text.chars().filter(is_text).collect();
                let text = text.replace('\n', "\r");
                if brackets { format!("\x1b[200~{text}\x1b[201~") } else { text }.into_bytes()
            }
        };
        self.send(bytes)
    }

    fn send(&self, bytes: Vec<u8>) -> bool {
        let sender = lock(&self.input);
        sender.as_ref().is_some_and(|sender| sender.try_send(bytes).is_ok())
    }

    pub(super) fn is_running(&self) -> bool {
        self.state().exit.is_none()
    }

    /// The plain output for the agent, whether it was truncated, and the exit status. The status is returned only with
    /// the complete output, because agents stop reading after it.
    pub(super) fn read(&self) -> (String, bool, Option<ExitInfo>) {
        let mut state = self.state();
        let unfinished = state.plain.unfinished();
        let (text, is_cut) = state.ring.with(&unfinished);
        let exit = state.exit.as_ref().filter(|_| state.is_ended).map(|(exit, _)| exit.clone());
        (text, is_cut, exit)
    }

    /// Calls a function while the process id cannot be reused.
    pub(super) fn while_unreaped<T>(&self, act: impl FnOnce(ProcessId) -> T) -> Option<T> {
        let state = self.state();
        (!state.is_reaped).then(|| act(self.leader))
    }

    /// Allows the process to be reaped once it has ended.
    pub(super) fn let_reap(&self) {
        let mut state = self.state();
        state.may_reap = true;
        state.stop_reading();
        self.changed.notify_all();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>, at_most: Option<Duration>) -> MutexGuard<'a, State> {
        match at_most {
            None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            Some(time) => self.changed.wait_timeout(state, time).unwrap_or_else(PoisonError::into_inner).0,
        }
    }

    /// Takes output. Returns the number of bytes that were dropped because the screen lags.
    fn take_bytes(&self, bytes: &[u8]) -> usize {
        let mut state = self.state();
        let mut dropped = 0;
        if let Some(responder) = &mut state.responder {
            let responses = responder.read(bytes);
            if !responses.is_empty() {
                self.send(responses);
            }
        }
        {
            let State { modes, plain, ring, .. } = &mut *state;
            // A full-screen program leaves nothing to read.
            modes.read(bytes, |part| {
                if let ScreenPart::Main(bytes) = part {
                    plain.feed(bytes, ring);
                }
            });
        }
        while !state.is_lagging
            && !state.is_ended
            && !state.unreported.is_empty()
            && state.unreported.len() + bytes.len() > MAX_EVENT_BYTES
        {
            state = self.wait(state, None);
        }
        if state.is_ended {
            return 0;
        }
        state.unreported.extend_from_slice(bytes);
        let over = state.unreported.len().saturating_sub(LAGGING_BYTES);
        if state.is_lagging && over > 0 {
            state.unreported.drain(..over);
            state.left_out_bytes += over as u64;
            dropped = over;
        }
        self.changed.notify_all();
        dropped
    }

    /// Reports output, at most one event per [`TELL_EVERY`], changes of the echo, and then the end.
    fn tell_until_end(&self, out: &UnboundedSender<ServiceEvent>, backlog: &Backlog) {
        let mut next = Instant::now();
        let mut is_hidden = false;
        let mut next_echo = matches!(self.owner, Owner::User(_)).then(|| next + ECHO_EVERY);
        let mut state = self.state();
        loop {
            let now = Instant::now();
            if next_echo.is_some_and(|next| next <= now) {
                next_echo = Some(now + ECHO_EVERY);
                let hides_input = self.terminal().as_deref().is_some_and(|terminal| hides_input(terminal));
                if hides_input != is_hidden {
                    is_hidden = hides_input;
                    let terminal = self.id.clone();
                    let _ = out.send(ServiceEvent::TerminalHidesInput { terminal, hides_input });
                }
            }
            let is_last = state
                .exit
                .as_ref()
                .is_some_and(|(_, at)| state.is_closed || now.duration_since(*at) >= LAST_OUTPUT);
            if is_last {
                state.is_ended = true;
            }
            if !state.unreported.is_empty() && (is_last || now >= next) {
                // The last output is bounded, so it needs no credit.
                let has_credit = backlog.admit(state.unreported.len()) || is_last;
                state.is_lagging = !has_credit;
                if has_credit {
                    let bytes = state.take_unreported();
                    let _ = out.send(ServiceEvent::TerminalOutput { terminal: self.id.clone(), bytes });
                    next = now + TELL_EVERY;
                } else {
                    next = now + LAGGING_EVERY;
                }
                self.changed.notify_all();
            }
            if is_last {
                let exit = state.exit.as_ref().map(|(exit, _)| exit.clone()).unwrap_or_default();
                let _ = out.send(ServiceEvent::TerminalEnded { terminal: self.id.clone(), exit });
                state.stop_reading();
                self.changed.notify_all();
                drop(state);
                // The writer types a newline and an end of file when it is dropped, which would appear in the output.
                *lock(&self.input) = None;
                *self.terminal() = None;
                return;
            }
            let until_next = (!state.unreported.is_empty()).then(|| next.saturating_duration_since(now));
            let until_end = state.exit.as_ref().map(|(_, at)| (*at + LAST_OUTPUT).duration_since(now));
            let until_echo = next_echo.map(|next| next.saturating_duration_since(now));
            let at_most = [until_next, until_end, until_echo].into_iter().flatten().min();
            state = self.wait(state, at_most);
        }
    }
}

impl State {
    /// Stops the reader after the release and the end.
    fn stop_reading(&mut self) {
        if self.may_reap && self.is_ended {
            self.reading = None;
        }
    }

    /// Removes and returns the output to report, preceded by a note about dropped output.
    fn take_unreported(&mut self) -> Vec<u8> {
        let bytes = std::mem::take(&mut self.unreported);
        let left_out = std::mem::take(&mut self.left_out_bytes);
        if left_out == 0 {
            return bytes;
        }
        let mut output =
            format!("\x1b[?47l\x1b[0m\r\n… {} KiB of output omitted …\r\n", left_out.div_ceil(1024));
        // The rest may begin in the middle of a line, a character or a sequence.
        let start = memchr::memchr(b'\n', &bytes).map_or(0, |at| at + 1);
        let rest = bytes.get(start..).unwrap_or_default();
        // The switch to the screen of a full-screen program may be among the omitted output.
        if self.modes.is_alternate && memchr::memmem::find(rest, b"\x1b[?1049").is_none() {
            output.push_str("\x1b[?47h");
        }
        output.push_str(&String::from_utf8_lossy(rest));
        output.into_bytes()
    }
}

/// Reads the terminal until no process holds it open. Continues after the end, for the agent's output and so that
/// background processes do not block on a full terminal; after the release, `drain` does that.
pub(super) fn read_output(live: Arc<Live>, mut output: Output, drain: &Arc<Drain>, backlog: &Backlog) {
    let mut buffer = vec![0; 32 << 10];
    let end = loop {
        match output.read(&mut buffer) {
            Ok(len) => {
                let dropped = live.take_bytes(buffer.get(..len).unwrap_or_default());
                if dropped > 0 {
                    thread::sleep(backlog.pace(dropped));
                }
            }
            Err(end) => break end,
        }
    };
    live.state().is_closed = true;
    live.changed.notify_all();
    drop(live);
    if end == End::Stopped {
        drain.add(output.into_terminal());
    }
}

/// Waits for the exit, calls `on_exit` before the exit is known to others, and reaps the process later.
pub(super) fn watch_exit(live: &Arc<Live>, on_exit: impl FnOnce() + Send + 'static) {
    let here = Arc::clone(live);
    let started = thread::Builder::new().name("terminal exit".to_owned()).spawn(move || {
        let exit = process::wait_unreaped(here.leader);
        on_exit();
        let mut state = here.state();
        // Without a status the process was reaped elsewhere, so its id may be reused.
        state.is_reaped = exit.is_none();
        state.exit = Some((exit.unwrap_or_default(), Instant::now()));
        here.changed.notify_all();
        while !state.may_reap {
            state = here.wait(state, None);
        }
        if !state.is_reaped {
            process::reap(here.leader);
            state.is_reaped = true;
        }
    });
    if started.is_err() {
        live.give_up();
    }
}

pub(super) fn tell_output(live: &Arc<Live>, out: UnboundedSender<ServiceEvent>, backlog: Arc<Backlog>) {
    let here = Arc::clone(live);
    let last_resort = out.clone();
    let started = thread::Builder::new()
        .name("terminal output".to_owned())
        .spawn(move || here.tell_until_end(&out, &backlog));
    if started.is_err() {
        live.give_up();
        let exit = ExitInfo { code: None, signal: Some("SIGKILL".to_owned()) };
        let _ = last_resort.send(ServiceEvent::TerminalEnded { terminal: live.id.clone(), exit });
    }
}

impl Live {
    /// Kills the command, because no thread could be started to watch it.
    fn give_up(&self) {
        self.while_unreaped(|leader| process::end_group(leader, Ending::Kill));
        let mut state = self.state();
        let exit = ExitInfo { code: None, signal: Some("SIGKILL".to_owned()) };
        state.exit.get_or_insert((exit, Instant::now()));
        state.is_ended = true;
        state.stop_reading();
    }
}
