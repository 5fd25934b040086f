//! The terminal: raw mode, alternate screen, frames; restored on leave, drop, panic and signal.

use std::cell::RefCell;
use std::io::{self, Write};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context as _;
use crossterm::event::{
    DisableBracketedPaste, DisableFocusChange, DisableMouseCapture, EnableBracketedPaste, EnableFocusChange,
    EnableMouseCapture, KeyboardEnhancementFlags, PopKeyboardEnhancementFlags, PushKeyboardEnhancementFlags,
};
use crossterm::terminal::{
    BeginSynchronizedUpdate, EndSynchronizedUpdate, EnterAlternateScreen, LeaveAlternateScreen, SetTitle,
    disable_raw_mode, enable_raw_mode,
};
use crossterm::{cursor, queue};
use ratatui::backend::CrosstermBackend;
use ratatui::layout::{Position, Rect};
use ratatui::{Frame, Terminal};

/// Whether the screen is ours; the panic hook and `Drop` must not restore twice.
static IS_ENTERED: AtomicBool = AtomicBool::new(false);

/// The terminal while parlor has it.
pub struct Tty {
    terminal: Terminal<CrosstermBackend<FrameBuffer>>,
    frame: Rc<RefCell<Vec<u8>>>,
    mouse: bool,
}

/// Collects a frame, so that it is written in one piece: no half frame is seen, and one system call is enough.
struct FrameBuffer(Rc<RefCell<Vec<u8>>>);

impl Write for FrameBuffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Tty {
    /// Takes the screen. Fails if standard output is no terminal.
    pub fn enter(mouse: bool) -> anyhow::Result<Self> {
        install_panic_hook();
        take_screen(mouse)?;
        let frame = Rc::new(RefCell::new(Vec::new()));
        let terminal = Terminal::new(CrosstermBackend::new(FrameBuffer(Rc::clone(&frame))))
            .context("could not read the size of the terminal")?;
        Ok(Self { terminal, frame, mouse })
    }

    /// Draws a frame inside a synchronized update.
    pub fn draw(&mut self, render: impl FnOnce(&mut Frame<'_>)) -> anyhow::Result<()> {
        queue!(self.terminal.backend_mut(), BeginSynchronizedUpdate)?;
        self.terminal.draw(render).context("could not draw")?;
        queue!(self.terminal.backend_mut(), EndSynchronizedUpdate)?;
        self.send().context("could not write to the terminal")
    }

    /// Makes the next frame paint every cell.
    pub fn clear(&mut self) -> anyhow::Result<()> {
        // Not `Terminal::clear`: it asks the terminal for the cursor's place and waits for the answer, which the
        // reader of the keys gets.
        let size = self.terminal.size().context("could not read the size of the terminal")?;
        self.terminal.resize(Rect::from((Position::ORIGIN, size))).context("could not clear the screen")
    }

    /// Gives the screen back.
    pub fn leave(&mut self) -> anyhow::Result<()> {
        restore().context("could not restore the terminal")
    }

    /// Takes the screen again after [`Tty::leave`], or after the process was stopped and went on.
    pub fn reenter(&mut self) -> anyhow::Result<()> {
        // A shell that stopped us may have changed the modes; only from the original ones raw mode is set anew.
        let _ = disable_raw_mode();
        take_screen(self.mouse)?;
        self.clear()
    }

    fn send(&mut self) -> io::Result<()> {
        let mut frame = self.frame.borrow_mut();
        let mut out = io::stdout().lock();
        let written = out.write_all(&frame).and_then(|()| out.flush());
        frame.clear();
        written
    }
}

impl Drop for Tty {
    fn drop(&mut self) {
        let _ = restore();
    }
}

fn take_screen(mouse: bool) -> anyhow::Result<()> {
    enable_raw_mode().context("parlor needs a terminal: run it in one, not in a pipe")?;
    IS_ENTERED.store(true, Ordering::SeqCst);
    let mut out = io::stdout().lock();
    queue!(
        out,
        EnterAlternateScreen,
        EnableBracketedPaste,
        EnableFocusChange,
        SetTitle("parlor"),
        // Terminals that do not know the kitty protocol ignore this; those that do tell Shift+Enter apart.
        PushKeyboardEnhancementFlags(KeyboardEnhancementFlags::DISAMBIGUATE_ESCAPE_CODES),
    )?;
    if mouse {
        queue!(out, EnableMouseCapture)?;
    }
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
