//! The terminal: raw mode, alternate screen, frames; restored on leave, drop, panic and signal.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};

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
use crate::ui::Rows;

/// How the user is called when something waits that is not in view.
#[derive(Debug, Clone, Copy, Default)]
pub struct Calls {
    /// By the bell.
    pub bell: bool,
    /// By words that the terminal may show as a notification (OSC 9).
    pub notify: bool,
}

/// Whether the screen is ours; the panic hook and `Drop` must not restore twice.
static IS_ENTERED: AtomicBool = AtomicBool::new(false);

/// The terminal while parlor has it.
pub struct Tty {
    painter: Painter,
    mouse: bool,
}

/// Whether it knows synchronized updates (DECRQM), and its background (OSC 11). The answers come among the keys,
/// sooner or later or never.
const QUESTIONS: &str = "\x1b[?2026$p\x1b]11;?\x1b\\";

/// Puts the window's title on the terminal's own stack, and takes it back from there (XTWINOPS).
const KEEP_TITLE: &str = "\x1b[22;2t";
const FORMER_TITLE: &str = "\x1b[23;2t";

impl Tty {
    /// Takes the screen, and asks the terminal what else is to be asked. Fails if standard output is no terminal.
    pub fn enter(mouse: bool, questions: &str) -> anyhow::Result<Self> {
        install_panic_hook();
        // Terminals that do not know a question may print a part of it: the first frame clears that.
        take_screen(mouse, &format!("{QUESTIONS}{questions}"))?;
        let (cols, rows) = size().context("could not read the size of the terminal")?;
        Ok(Self { painter: Painter::new(cols, rows), mouse })
    }

    /// The buffer for the next frame, and whether it holds what the last one left there.
    pub fn begin(&mut self) -> anyhow::Result<(&mut Buffer, bool)> {
        // The size is asked for each time, which is cheap: a change may come before the event that tells it.
        let (cols, rows) = size().context("could not read the size of the terminal")?;
        self.painter.resize(cols, rows);
        Ok(self.painter.begin())
    }

    /// Shows the buffer, inside a synchronized update and in one piece: no half frame is seen, and one system call is
    /// enough. `rows` says what was drawn, `cursor` where the cursor is to be seen.
    pub fn finish(&mut self, cursor: Option<Position>, rows: &Rows) -> anyhow::Result<()> {
        let frame = self.painter.finish(cursor, rows);
        if frame.is_empty() {
            return Ok(());
        }
        write(frame).context("could not write to the terminal")
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
    pub fn capture_mouse(&mut self, captures: bool) -> anyhow::Result<()> {
        self.mouse = captures;
        let mut out = io::stdout().lock();
        let queued =
            if captures { queue!(out, EnableMouseCapture) } else { queue!(out, DisableMouseCapture) };
        queued.and_then(|()| out.flush()).context("could not write to the terminal")
    }

    /// Sends a sequence that shows nothing.
    pub fn send(&mut self, sequence: &str) -> anyhow::Result<()> {
        write(sequence.as_bytes()).context("could not write to the terminal")
    }

    /// Names the terminal's window; the text has no control characters.
    pub fn set_title(&mut self, title: &str) -> anyhow::Result<()> {
        let mut out = io::stdout().lock();
        queue!(out, SetTitle(title)).and_then(|()| out.flush()).context("could not write to the terminal")
    }

    /// Gives the screen back.
    pub fn leave(&mut self) -> anyhow::Result<()> {
        restore().context("could not restore the terminal")
    }

    /// Takes the screen again after [`Tty::leave`], or after the process was stopped and went on.
    pub fn reenter(&mut self) -> anyhow::Result<()> {
        // A shell that stopped us may have changed the modes; only from the original ones raw mode is set anew.
        let _ = disable_raw_mode();
        take_screen(self.mouse, "")?;
        self.clear();
        Ok(())
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
    enable_raw_mode().context("parlor needs a terminal: run it in one, or in lines with --plain")?;
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
