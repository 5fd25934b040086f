//! Runs a command in a pseudo terminal that is connected to the user's terminal, and records the end of its output.

use std::io::{self, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use portable_pty::{ExitStatus, MasterPty, PtySize, native_pty_system};

use crate::host::os::terminal::{self, Input, Modes, Read};
use crate::host::terminals::LastLines;
use crate::lock::lock;
use crate::program::Start;

/// Interval of checks for the exit of the command and for the size of the terminal.
const CHECK_EVERY: Duration = Duration::from_millis(50);

/// How long to wait for the last output after the exit, while another process holds the terminal open.
const LAST_OUTPUT: Duration = Duration::from_millis(400);

/// Shorter typed words may be part of any output.
const MIN_SECRET: usize = 4;

/// Maximum number of typed bytes that are remembered.
const TYPED_BYTES: usize = 64 << 10;

/// Runs a command until it exits. Returns its status and the last lines of its output as plain text, without lines that
/// repeat what the user typed.
pub(super) fn run(start: &Start) -> io::Result<(ExitStatus, Vec<String>)> {
    let mut input = Input::of_stdin();
    let mut size = own_size();
    let pty = native_pty_system().openpty(size).map_err(io::Error::other)?;
    let (output, mut keys) = (
        pty.master.try_clone_reader().map_err(io::Error::other)?,
        pty.master.take_writer().map_err(io::Error::other)?,
    );
    let mut child = pty.slave.spawn_command(start.on_own_terminal()?).map_err(io::Error::other)?;
    drop(pty.slave);
    let seen = Arc::new(Seen::default());
    let copier = Arc::clone(&seen);
    let copying =
        thread::Builder::new().name("sign-in output".to_owned()).spawn(move || copier.copy(output))?;
    let raw = RawMode::enter();
    let mut has_input = raw.is_some();
    let mut typed = Vec::new();
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        follow_size(&mut size, pty.master.as_ref());
        if !has_input {
            thread::sleep(CHECK_EVERY);
            continue;
        }
        let mut buffer = [0; 1024];
        let count = match input.read(&mut buffer, Some(CHECK_EVERY)) {
            Ok(Read::TimedOut | Read::Woken) => continue,
            Ok(Read::Bytes(count)) => count,
            Err(_) => 0,
        };
        has_input = count > 0;
        let bytes = buffer.get(..count).unwrap_or_default();
        typed.extend(bytes.iter().take(TYPED_BYTES.saturating_sub(typed.len())));
        let _ = keys.write_all(bytes);
    };
    let ended = Instant::now();
    while !copying.is_finished() && ended.elapsed() < LAST_OUTPUT {
        thread::sleep(Duration::from_millis(1));
    }
    seen.is_over.store(true, Ordering::Relaxed);
    let lines = lock(&seen.lines).read();
    Ok((status, without_typed(lines, &typed)))
}

/// Removes the lines that contain something that was typed: it may be a secret, and errors are recorded.
fn without_typed(mut lines: Vec<String>, keys: &[u8]) -> Vec<String> {
    let mut typed = String::new();
    for key in String::from_utf8_lossy(keys).chars() {
        match key {
            '\u{7f}' | '\u{8}' => drop(typed.pop()),
            key if key.is_control() => typed.push('\n'),
            key => typed.push(key),
        }
    }
    let secrets: Vec<&str> = typed.lines().map(str::trim).filter(|word| word.len() >= MIN_SECRET).collect();
    lines.retain(|line| !secrets.iter().any(|secret| line.contains(secret)));
    lines
}

#[derive(Default)]
struct Seen {
    lines: Mutex<LastLines>,
    /// Whether parlor has the terminal again, so that nothing more is shown.
    is_over: AtomicBool,
}

impl Seen {
    fn copy(&self, mut output: Box<dyn io::Read + Send>) {
        let mut buffer = [0; 4096];
        while let Ok(count @ 1..) = output.read(&mut buffer) {
            if self.is_over.load(Ordering::Relaxed) {
                return;
            }
            let bytes = buffer.get(..count).unwrap_or_default();
            lock(&self.lines).feed(bytes);
            let mut screen = io::stdout().lock();
            let _ = screen.write_all(bytes).and_then(|()| screen.flush());
        }
    }
}

/// The modes of the terminal before a command has it.
static BEFORE: Mutex<Option<Modes>> = Mutex::new(None);

/// Restores the modes of the terminal if a sign-in command has it, for a signal that ends parlor.
pub fn restore_modes() {
    let before = lock(&BEFORE).take();
    if let Some(before) = before {
        let _ = before.apply();
    }
}

/// Passes keys on unchanged; restores the terminal when it is dropped.
struct RawMode;

impl RawMode {
    /// `None`: not a terminal.
    fn enter() -> Option<Self> {
        let before = Modes::current().ok()?;
        let raw = before.clone().raw();
        *lock(&BEFORE) = Some(before);
        let this = Self;
        raw.apply().ok()?;
        Some(this)
    }
}

impl Drop for RawMode {
    fn drop(&mut self) {
        restore_modes();
    }
}

/// The size of the user's terminal.
fn own_size() -> PtySize {
    terminal::input_size().map_or_else(PtySize::default, |size| PtySize {
        rows: size.rows,
        cols: size.cols,
        pixel_width: size.pixel_width,
        pixel_height: size.pixel_height,
    })
}

fn follow_size(size: &mut PtySize, pty: &dyn MasterPty) {
    let now = own_size();
    if *size != now && pty.resize(now).is_ok() {
        *size = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_with_typed_text_are_removed() {
        let lines = || ["Key: sk-12345", "no", "failed"].map(str::to_owned).to_vec();
        assert_eq!(without_typed(lines(), b"sk-1X\x7f2345\rno\r"), ["no", "failed"]);
        assert_eq!(without_typed(lines(), b""), lines());
    }
}
