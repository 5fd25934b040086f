//! The terminal: raw mode, alternate screen, frames; restored on exit, drop, panic and signal.

use std::io::{self, Write};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use crossterm::cursor::SetCursorStyle;
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
use ratatui::layout::Position;

use super::keys;
use super::paint::Painter;
use crate::host::os::terminal;
use crate::ui::{Canvas, CursorShape};

/// Whether parlor has the screen; the panic hook and `Drop` must not restore it twice.
static IS_ENTERED: AtomicBool = AtomicBool::new(false);

/// The sequence that removes the terminal's progress display; empty: none is shown.
static PROGRESS_END: Mutex<String> = Mutex::new(String::new());

/// When the terminal was last sent a query.
static ASKED_AT: Mutex<Option<Instant>> = Mutex::new(None);

/// Time after which answers are no longer expected.
const ANSWERED_WITHIN: Duration = Duration::from_secs(1);

/// Maximum time to wait for the answers when parlor leaves.
const LATE_WITHIN: Duration = Duration::from_millis(300);

/// Query for primary device attributes, which every terminal answers after all earlier ones (DA1).
const LAST_QUESTION: &str = "\x1b[c";

/// Whether the terminal needs the application keypad.
static NEEDS_KEYPAD: AtomicBool = AtomicBool::new(false);

/// Whether the shape of the cursor was changed.
static IS_SHAPED: AtomicBool = AtomicBool::new(false);

static IS_TITLED: AtomicBool = AtomicBool::new(false);

/// Whether frames use synchronized updates, so that an unfinished one must be ended.
static IS_SYNCHRONIZED: AtomicBool = AtomicBool::new(false);

/// The terminal while parlor has it. After it was closed, output is discarded; the owner checks [`Tty::is_gone`].
pub struct Tty {
    painter: Painter,
    mouse: bool,
    follows_colors: bool,
    shape: CursorShape,
    is_gone: bool,
}

/// Query for synchronized updates (DECRQM). Responses arrive as input at any time, or never.
const QUESTIONS: &str = "\x1b[?2026$p";

/// Prints an ambiguous character at the start of the second row, and queries the position of the cursor (CPR). The first
/// frame overwrites it.
pub const WIDTH_QUESTION: &str = "\x1b[2;1H→\x1b[6n";

/// Query for the background color (OSC 11).
const BACKGROUND_QUESTION: &str = "\x1b]11;?\x1b\\";

/// Enables and disables reports of the terminal's switches between light and dark colors. Source: Contour, VT extensions,
/// dark and light mode detection.
const SCHEME_REPORTS: &str = "\x1b[?2031h";
const NO_SCHEME_REPORTS: &str = "\x1b[?2031l";

/// Maximum size of the screen: an invalid size must not allocate gigabytes.
const COLS_MAX: u16 = 2048;
const ROWS_MAX: u16 = 1024;

/// Enables and disables reports of modified keys without a sequence of their own, such as Shift+Enter, in terminals that do
/// not have the kitty protocol (XTMODKEYS). Some terminals take this for a text style, which is reset.
const REPORT_MODIFIED_KEYS: &str = "\x1b[>4;1m\x1b[m";
const NO_MODIFIED_KEYS: &str = "\x1b[>4m\x1b[m";

/// Has Alt send an escape before the key, as everywhere else, where xterm would type a letter such as `â` (XTSAVE, XTRESTORE
/// of the mode `metaSendsEscape`).
const ALT_ESCAPES: &str = "\x1b[?1036s\x1b[?1036h";
const FORMER_ALT: &str = "\x1b[?1036r";

/// Application keypad, without which st sends sequences for Delete that are F1 and a mouse click elsewhere (DECKPAM).
const KEYPAD: &str = "\x1b=";
const NO_KEYPAD: &str = "\x1b>";

/// Sets the flags of the kitty keyboard protocol that parlor has pushed before.
const SAME_KEYBOARD: &str = "\x1b[=5;1u";

/// Saves and restores the titles of the window and of its icon on the terminal's stack (XTWINOPS): OSC 0 sets both.
const KEEP_TITLE: &str = "\x1b[22;0t";
const FORMER_TITLE: &str = "\x1b[23;0t";

impl Tty {
    /// Takes the screen and sends queries to the terminal. `follows_colors`: the terminal reports when it switches between
    /// light and dark colors. Fails if standard output is not a terminal.
    pub fn enter(mouse: bool, follows_colors: bool, questions: &str) -> anyhow::Result<Self> {
        install_panic_hook();
        // Terminals that do not support a query may print part of it, which the first frame overwrites.
        take_screen(mouse, follows_colors, &format!("{QUESTIONS}{BACKGROUND_QUESTION}{questions}"))?;
        let (cols, rows) = size().context("cannot read the terminal size")?;
        let painter = Painter::new(cols, rows);
        Ok(Self { painter, mouse, follows_colors, shape: CursorShape::Default, is_gone: false })
    }

    /// Whether the terminal is closed: a call has failed.
    pub fn is_gone(&self) -> bool {
        self.is_gone
    }

    /// Marks the terminal as closed.
    pub fn lose(&mut self) {
        self.is_gone = true;
    }

    fn note<T, E>(&mut self, done: Result<T, E>) -> Option<T> {
        self.is_gone |= done.is_err();
        done.ok()
    }

    /// The canvas for the next frame; `None`: the terminal is closed.
    pub fn begin(&mut self) -> Option<&mut Canvas> {
        // The size is queried for each frame, which is cheap, because a change may precede its event.
        let (cols, rows) = self.note(size())?;
        let (cols, rows) = (cols.min(COLS_MAX), rows.min(ROWS_MAX));
        self.painter.resize(cols, rows);
        Some(self.painter.canvas())
    }

    /// Shows the canvas with a single write, in a synchronized update if supported, so that no partial frame is visible. `cursor`: the
    /// position of the visible cursor.
    pub fn finish(&mut self, cursor: Option<Position>) {
        let frame = self.painter.finish(cursor);
        if !frame.is_empty() {
            let written = write(frame);
            self.note(written);
        }
    }

    /// Sets the shape of the cursor. Called before the frame that needs it is written.
    pub fn shape_cursor(&mut self, shape: CursorShape) {
        if self.shape != shape {
            self.shape = shape;
            IS_SHAPED.store(true, Ordering::SeqCst);
            let mut out = io::stdout().lock();
            self.note(queue!(out, style_of(shape)).and_then(|()| out.flush()));
        }
    }

    pub fn synchronize(&mut self, does: bool) {
        IS_SYNCHRONIZED.store(does, Ordering::SeqCst);
        self.painter.synchronize(does);
    }

    /// Sets whether the terminal shows italic text.
    pub fn use_italics(&mut self, does: bool) {
        self.painter.use_italics(does);
    }

    /// Makes the next frame paint every cell.
    pub fn clear(&mut self) {
        self.painter.clear();
    }

    pub fn capture_mouse(&mut self, captures: bool) {
        self.mouse = captures;
        let mut out = io::stdout().lock();
        let queued =
            if captures { queue!(out, EnableMouseCapture) } else { queue!(out, DisableMouseCapture) };
        self.note(queued.and_then(|()| out.flush()));
    }

    pub fn ask_background(&mut self) {
        note_question();
        self.send(BACKGROUND_QUESTION);
    }

    /// Sends a sequence without visible output.
    pub fn send(&mut self, sequence: &str) {
        self.note(write(sequence.as_bytes()));
    }

    /// Sends a sequence that shows progress; `end` is sent when the screen is restored.
    pub fn show_progress(&mut self, sequence: &str, end: String) {
        if let Ok(mut current) = PROGRESS_END.lock() {
            *current = end;
        }
        self.send(sequence);
    }

    /// Sets the window title; the text must not contain control characters.
    pub fn set_title(&mut self, title: &str) {
        IS_TITLED.store(true, Ordering::SeqCst);
        let mut out = io::stdout().lock();
        self.note(queue!(out, SetTitle(title)).and_then(|()| out.flush()));
    }

    /// Restores the screen. If that fails, the terminal is marked as closed.
    pub fn leave(&mut self) {
        self.note(restore());
    }

    /// Takes the screen again after [`Tty::leave`], or after the process was stopped and continued.
    pub fn reenter(&mut self) {
        // A shell that stopped parlor may have changed the modes; raw mode must be enabled from the original ones.
        let _ = disable_raw_mode();
        // The colors may have changed in the meantime.
        let question = if self.follows_colors { BACKGROUND_QUESTION } else { "" };
        let taken = take_screen(self.mouse, self.follows_colors, question);
        self.note(taken);
        self.shape = CursorShape::Default;
        self.clear();
    }
}

fn style_of(shape: CursorShape) -> SetCursorStyle {
    match shape {
        CursorShape::Default => SetCursorStyle::DefaultUserShape,
        CursorShape::Block => SetCursorStyle::SteadyBlock,
        CursorShape::Bar => SetCursorStyle::SteadyBar,
        CursorShape::Underline => SetCursorStyle::SteadyUnderScore,
    }
}

/// Width and height of a cell in pixels, as reported by the system.
pub fn cell_size() -> Option<(u16, u16)> {
    let size = terminal::size()?;
    let cell = (size.pixel_width.checked_div(size.cols)?, size.pixel_height.checked_div(size.rows)?);
    (cell.0 > 0 && cell.1 > 0).then_some(cell)
}

fn size() -> io::Result<(u16, u16)> {
    match terminal::size() {
        Some(size) => Ok((size.cols, size.rows)),
        // Standard output may not be the terminal.
        None => crossterm::terminal::size(),
    }
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

fn take_screen(mouse: bool, follows_colors: bool, questions: &str) -> anyhow::Result<()> {
    enable_raw_mode().map_err(|_| {
        anyhow::anyhow!("parlor needs a terminal for its screen; pass --plain for plain text")
    })?;
    let was_entered = IS_ENTERED.swap(true, Ordering::SeqCst);
    let mut out = io::stdout().lock();
    queue!(
        out,
        EnterAlternateScreen,
        EnableBracketedPaste,
        EnableFocusChange,
        Print(REPORT_MODIFIED_KEYS),
        keypad(KEYPAD),
    )?;
    if was_entered {
        // The process was stopped from outside. What was pushed is still there, and will be popped once.
        queue!(out, Print(SAME_KEYBOARD))?;
    } else {
        queue!(
            out,
            Print(KEEP_TITLE),
            Print(ALT_ESCAPES),
            // Terminals without the kitty protocol ignore this. Others distinguish Shift+Enter, and report the
            // character that a key types with Shift, which depends on the layout of the keyboard.
            PushKeyboardEnhancementFlags(
                KeyboardEnhancementFlags::DISAMBIGUATE_ESCAPE_CODES
                    | KeyboardEnhancementFlags::REPORT_ALTERNATE_KEYS
            ),
        )?;
    }
    if mouse {
        queue!(out, EnableMouseCapture)?;
    }
    if follows_colors {
        queue!(out, Print(SCHEME_REPORTS))?;
    }
    if !questions.is_empty() {
        note_question();
    }
    out.write_all(questions.as_bytes())?;
    out.flush()?;
    Ok(())
}

fn note_question() {
    if let Ok(mut asked_at) = ASKED_AT.try_lock() {
        *asked_at = Some(Instant::now());
    }
}

/// Whether the terminal may not have answered yet.
fn is_answer_due() -> bool {
    let asked_at = ASKED_AT.try_lock().ok().and_then(|mut asked_at| asked_at.take());
    asked_at.is_some_and(|asked_at| asked_at.elapsed() < ANSWERED_WITHIN)
}

/// Sets whether the terminal needs the application keypad to report Delete like others.
pub fn need_keypad(needs: bool) {
    NEEDS_KEYPAD.store(needs, Ordering::SeqCst);
}

fn keypad(sequence: &'static str) -> Print<&'static str> {
    Print(if NEEDS_KEYPAD.load(Ordering::SeqCst) { sequence } else { "" })
}

pub fn restore() -> io::Result<()> {
    if !IS_ENTERED.swap(false, Ordering::SeqCst) {
        return Ok(());
    }
    let mut out = io::stdout().lock();
    // A panic may hold the lock.
    let progress_end = PROGRESS_END.try_lock().map(|mut end| std::mem::take(&mut *end)).unwrap_or_default();
    if IS_SHAPED.swap(false, Ordering::SeqCst) {
        let _ = queue!(out, SetCursorStyle::DefaultUserShape);
    }
    if IS_SYNCHRONIZED.load(Ordering::SeqCst) {
        let _ = queue!(out, EndSynchronizedUpdate);
    }
    // Terminals without a title stack, such as st and urxvt, would keep showing parlor's title.
    if IS_TITLED.swap(false, Ordering::SeqCst) {
        let _ = queue!(out, SetTitle(""));
    }
    let written = queue!(
        out,
        Print(progress_end),
        Print(NO_SCHEME_REPORTS),
        Print(NO_MODIFIED_KEYS),
        keypad(NO_KEYPAD),
        Print(FORMER_ALT),
        PopKeyboardEnhancementFlags,
        DisableMouseCapture,
        DisableFocusChange,
        DisableBracketedPaste,
        LeaveAlternateScreen,
        cursor::Show,
        Print(FORMER_TITLE),
    )
    .and_then(|()| out.flush());
    // The shell would take them for commands.
    if written.is_ok()
        && is_answer_due()
        && out.write_all(LAST_QUESTION.as_bytes()).and_then(|()| out.flush()).is_ok()
    {
        keys::discard_answers(LATE_WITHIN);
    }
    disable_raw_mode().and(written)
}

/// Restores the screen while the loop may be blocked writing to it, and waits for `time` at most.
pub fn restore_within(time: Duration) {
    let (done, is_done) = std::sync::mpsc::channel();
    let restorer = std::thread::Builder::new().name("restore".to_owned()).spawn(move || {
        // Changing the modes needs no space in the terminal's buffer.
        let _ = disable_raw_mode();
        crate::host::login::restore_modes();
        let _ = restore();
        let _ = done.send(());
    });
    if restorer.is_ok() {
        let _ = is_done.recv_timeout(time);
    }
}

/// Restores the terminal before the message of a panic is printed, so that it is readable.
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
