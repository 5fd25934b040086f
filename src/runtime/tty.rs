//! The terminal: raw mode, alternate screen, frames; restored on exit, drop, panic and signal.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use crossterm::event::{
    DisableBracketedPaste, DisableFocusChange, DisableMouseCapture, EnableBracketedPaste, EnableFocusChange,
    EnableMouseCapture, KeyboardEnhancementFlags, PopKeyboardEnhancementFlags, PushKeyboardEnhancementFlags,
};
use crossterm::style::Print;
use crossterm::terminal::{
    EndSynchronizedUpdate, EnterAlternateScreen, LeaveAlternateScreen, SetTitle, disable_raw_mode,
    enable_raw_mode,
};
use crossterm::{cursor, queue};
use ratatui::buffer::Buffer;
use ratatui::layout::Position;

use super::paint::Painter;
use crate::ui::RowCache;

/// How the user is called when something waits that is not in view.
#[derive(Debug, Clone, Copy, Default)]
pub struct Calls {
    pub bell: bool,
    /// By words that the terminal may show as a notification (OSC 9).
    pub notify: bool,
}

/// Whether the screen is ours; the panic hook and `Drop` must not restore twice.
static IS_ENTERED: AtomicBool = AtomicBool::new(false);

/// The terminal while parlor has it. When it is gone (its window was closed), everything sent to it is dropped:
/// its owner checks [`Tty::is_gone`].
pub struct Tty {
    painter: Painter,
    mouse: bool,
    is_gone: bool,
}

/// Whether it knows synchronized updates (DECRQM), and its background (OSC 11). The answers come among the keys,
/// sooner or later or never.
const QUESTIONS: &str = "\x1b[?2026$p\x1b]11;?\x1b\\";

/// The largest screen that is drawn: a bogus size must not cost gigabytes.
const COLS_MAX: u16 = 2048;
const ROWS_MAX: u16 = 1024;

/// Puts the window's title on the terminal's own stack, and takes it back from there (XTWINOPS).
const KEEP_TITLE: &str = "\x1b[22;2t";
const FORMER_TITLE: &str = "\x1b[23;2t";

impl Tty {
    /// Takes the screen, and asks the terminal what else is to be asked. Fails if standard output is no terminal.
    pub fn enter(mouse: bool, questions: &str) -> anyhow::Result<Self> {
        install_panic_hook();
        // Terminals that do not know a question may print a part of it: the first frame clears that.
        take_screen(mouse, &format!("{QUESTIONS}{questions}"))?;
        let (cols, rows) = size().context("cannot read the terminal size")?;
        Ok(Self { painter: Painter::new(cols, rows), mouse, is_gone: false })
    }

    /// Whether the terminal has refused something.
    pub fn is_gone(&self) -> bool {
        self.is_gone
    }

    /// Counts the terminal as gone.
    pub fn lose(&mut self) {
        self.is_gone = true;
    }

    fn note<T, E>(&mut self, done: Result<T, E>) -> Option<T> {
        self.is_gone |= done.is_err();
        done.ok()
    }

    /// The buffer for the next frame, and whether it holds what the last one left there; `None`: the terminal is gone.
    pub fn begin(&mut self) -> Option<(&mut Buffer, bool)> {
        // The size is asked for each time, which is cheap: a change may come before the event that tells it.
        let (cols, rows) = self.note(size())?;
        let (cols, rows) = (cols.min(COLS_MAX), rows.min(ROWS_MAX));
        self.painter.resize(cols, rows);
        Some(self.painter.begin())
    }

    /// Shows the buffer, inside a synchronized update and in one piece: no half frame is seen, and one system call is
    /// enough. `rows` says what was drawn, `cursor` where the cursor is to be seen.
    pub fn finish(&mut self, cursor: Option<Position>, rows: &RowCache) {
        let frame = self.painter.finish(cursor, rows);
        if !frame.is_empty() {
            let written = write(frame);
            self.note(written);
        }
    }

    /// Whether frames are synchronized updates from now on.
    pub fn synchronize(&mut self, does: bool) {
        self.painter.synchronize(does);
    }

    /// Makes the next frame paint every cell.
    pub fn clear(&mut self) {
        self.painter.clear();
    }

    /// Takes the mouse, or leaves it to the terminal.
    pub fn capture_mouse(&mut self, captures: bool) {
        self.mouse = captures;
        let mut out = io::stdout().lock();
        let queued =
            if captures { queue!(out, EnableMouseCapture) } else { queue!(out, DisableMouseCapture) };
        self.note(queued.and_then(|()| out.flush()));
    }

    /// Sends a sequence that shows nothing.
    pub fn send(&mut self, sequence: &str) {
        self.note(write(sequence.as_bytes()));
    }

    /// Names the terminal's window; the text has no control characters.
    pub fn set_title(&mut self, title: &str) {
        let mut out = io::stdout().lock();
        self.note(queue!(out, SetTitle(title)).and_then(|()| out.flush()));
    }

    /// Restores the screen. If that fails, the terminal is gone.
    pub fn leave(&mut self) {
        self.note(restore());
    }

    /// Takes the screen again after [`Tty::leave`], or after the process was stopped and went on.
    pub fn reenter(&mut self) {
        // A shell that stopped us may have changed the modes; only from the original ones raw mode is set anew.
        let _ = disable_raw_mode();
        let taken = take_screen(self.mouse, "");
        self.note(taken);
        self.clear();
    }
}

/// The points of a cell, across and down, as the system knows them.
#[cfg(unix)]
pub fn cell_size() -> Option<(u16, u16)> {
    let size = rustix::termios::tcgetwinsize(rustix::stdio::stdout()).ok()?;
    let cell = (size.ws_xpixel.checked_div(size.ws_col)?, size.ws_ypixel.checked_div(size.ws_row)?);
    (cell.0 > 0 && cell.1 > 0).then_some(cell)
}

/// The points of a cell, which no system but Unix tells.
#[cfg(not(unix))]
pub fn cell_size() -> Option<(u16, u16)> {
    None
}

/// Columns and rows of the terminal.
#[cfg(unix)]
fn size() -> io::Result<(u16, u16)> {
    match rustix::termios::tcgetwinsize(rustix::stdio::stdout()) {
        Ok(size) if size.ws_col > 0 && size.ws_row > 0 => Ok((size.ws_col, size.ws_row)),
        // Standard output may be something else than the terminal.
        _ => crossterm::terminal::size(),
    }
}

/// Columns and rows of the terminal.
#[cfg(not(unix))]
fn size() -> io::Result<(u16, u16)> {
    crossterm::terminal::size()
}

fn write(bytes: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(bytes).and_then(|()| out.flush())
}

impl Drop for Tty {
    fn drop(&mut self) {
        let _ = restore();
    }
}

fn take_screen(mouse: bool, questions: &str) -> anyhow::Result<()> {
    enable_raw_mode().context("standard input and output must be a terminal; pass --plain for plain text")?;
    IS_ENTERED.store(true, Ordering::SeqCst);
    let mut out = io::stdout().lock();
    queue!(
        out,
        EnterAlternateScreen,
        EnableBracketedPaste,
        EnableFocusChange,
        Print(KEEP_TITLE),
        SetTitle("parlor"),
        // Terminals that do not know the kitty protocol ignore this; those that do tell Shift+Enter apart.
        PushKeyboardEnhancementFlags(KeyboardEnhancementFlags::DISAMBIGUATE_ESCAPE_CODES),
    )?;
    if mouse {
        queue!(out, EnableMouseCapture)?;
    }
    out.write_all(questions.as_bytes())?;
    out.flush()?;
    Ok(())
}

/// Gives the screen back, once.
pub fn restore() -> io::Result<()> {
    if !IS_ENTERED.swap(false, Ordering::SeqCst) {
        return Ok(());
    }
    let mut out = io::stdout().lock();
    let written = queue!(
        out,
        EndSynchronizedUpdate,
        PopKeyboardEnhancementFlags,
        DisableMouseCapture,
        DisableFocusChange,
        DisableBracketedPaste,
        LeaveAlternateScreen,
        cursor::Show,
        Print(FORMER_TITLE),
    )
    .and_then(|()| out.flush());
    disable_raw_mode().and(written)
}

/// Restores the screen while the loop may be blocked writing to it, and waits at most so long.
pub fn restore_within(time: Duration) {
    let (done, is_done) = std::sync::mpsc::channel();
    let restorer = std::thread::Builder::new().name("restore".to_owned()).spawn(move || {
        // The modes need no room in the terminal's buffer.
        let _ = disable_raw_mode();
        let _ = restore();
        let _ = done.send(());
    });
    if restorer.is_ok() {
        let _ = is_done.recv_timeout(time);
    }
}

/// Restores the terminal before a panic's message is printed, so that it can be read.
fn install_panic_hook() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let print = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            let _ = restore();
            print(info);
        }));
    });
}
