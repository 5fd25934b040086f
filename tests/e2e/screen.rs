//! The binary in a pseudo terminal, with a terminal emulator. Tests wait for text, not for time.

use std::io::{Read, Write};
use std::num::NonZero;
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use portable_pty::{Child, CommandBuilder, ExitStatus, MasterPty, PtySize, native_pty_system};

/// Timeout of a text; long, because machines may be slow.
const PATIENCE: Duration = Duration::from_secs(30);

/// Variables that identify a terminal.
const TERMINAL_VARIABLES: [&str; 12] = [
    "TMUX",
    "STY",
    "TERM_PROGRAM",
    "LC_TERMINAL",
    "KITTY_WINDOW_ID",
    "GHOSTTY_RESOURCES_DIR",
    "WEZTERM_PANE",
    "ITERM_SESSION_ID",
    "ConEmuPID",
    "WT_SESSION",
    "KONSOLE_VERSION",
    "VTE_VERSION",
];

fn cells(count: u16) -> NonZero<u16> {
    NonZero::new(count).unwrap()
}

/// A running parlor.
pub struct Screen {
    parser: vt100::Parser,
    bytes: Receiver<Vec<u8>>,
    /// All written bytes.
    pub raw: Vec<u8>,
    keys: Box<dyn Write + Send>,
    child: Box<dyn Child + Send + Sync>,
    master: Box<dyn MasterPty + Send>,
    _home: tempfile::TempDir,
}

impl Screen {
    /// Starts parlor with arguments in a folder, at 80x24, isolated from the user's files.
    pub fn start(folder: &Path, args: &[&str]) -> Self {
        Self::start_sized(folder, args, 24, 80)
    }

    /// Starts parlor with a screen size.
    pub fn start_sized(folder: &Path, args: &[&str], rows: u16, cols: u16) -> Self {
        Self::start_with(folder, args, (rows, cols), &[])
    }

    /// Starts parlor with environment variables.
    pub fn start_with(folder: &Path, args: &[&str], size: (u16, u16), variables: &[(&str, &Path)]) -> Self {
        let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_parlor"));
        command.args(args);
        Self::run(command, folder, size, variables)
    }

    /// Starts another program without arguments, at 80x24.
    #[allow(dead_code, reason = "used by some of the test binaries")]
    pub fn start_program(program: &Path, folder: &Path) -> Self {
        Self::run(CommandBuilder::new(program), folder, (24, 80), &[])
    }

    /// Starts a program with environment variables.
    pub fn run(
        mut command: CommandBuilder,
        folder: &Path,
        (rows, cols): (u16, u16),
        variables: &[(&str, &Path)],
    ) -> Self {
        let home = tempfile::tempdir().unwrap();
        let pair =
            native_pty_system().openpty(PtySize { rows, cols, pixel_width: 0, pixel_height: 0 }).unwrap();
        command.cwd(folder);
        command.env("PARLOR_DATA_DIR", home.path().join("data"));
        command.env("PARLOR_CONFIG", home.path().join("config.toml"));
        command.env("PARLOR_DEMO_DIR", home.path().join("demo"));
        command.env("PARLOR_DEMO_PACE", "0");
        command.env("TERM", "xterm-256color");
        // The terminal of the tests is none of those that the machine may be used with.
        for name in TERMINAL_VARIABLES {
            command.env_remove(name);
        }
        command.env("COLORTERM", "truecolor");
        command.env_remove("NO_COLOR");
        for (name, value) in variables {
            command.env(name, value);
        }
        let child = pair.slave.spawn_command(command).unwrap();
        drop(pair.slave);
        let mut reader = pair.master.try_clone_reader().unwrap();
        let (sender, bytes) = channel();
        std::thread::spawn(move || {
            let mut buffer = vec![0; 65536];
            while let Ok(count @ 1..) = reader.read(&mut buffer) {
                if sender.send(buffer[..count].to_vec()).is_err() {
                    break;
                }
            }
        });
        let keys = pair.master.take_writer().unwrap();
        Self {
            parser: vt100::Parser::new(cells(rows), cells(cols), 0),
            bytes,
            raw: Vec::new(),
            keys,
            child,
            master: pair.master,
            _home: home,
        }
    }

    /// Sends keys or other terminal input.
    pub fn send(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
        self.keys.flush().unwrap();
    }

    /// Answers a question of an agent or of parlor: after the half second before answers count, a key and Enter.
    #[allow(dead_code, reason = "used by some of the test binaries")]
    pub fn answer(&mut self, key: &str) {
        self.bytes_within(Duration::from_millis(600));
        self.wait_gone("waiting for a pause");
        self.send(key);
        self.send("\r");
    }

    /// Moves the keys from the prompt to the question, and answers it.
    #[allow(dead_code, reason = "used by some of the test binaries")]
    pub fn answer_beside_draft(&mut self, key: &str) {
        self.send("\u{1b}[21~");
        self.answer(key);
    }

    /// Changes the size of the terminal.
    pub fn resize(&mut self, rows: u16, cols: u16) {
        self.master.resize(PtySize { rows, cols, pixel_width: 0, pixel_height: 0 }).unwrap();
        self.parser.screen_mut().set_size(cells(rows), cells(cols));
    }

    /// The text on the screen.
    pub fn text(&self) -> String {
        self.parser.screen().contents()
    }

    /// The cells of the screen.
    #[allow(dead_code, reason = "used by some of the test binaries")]
    pub fn cells(&self) -> &vt100::Screen {
        self.parser.screen()
    }

    /// Whether the alternate screen is active.
    pub fn is_alternate(&self) -> bool {
        self.parser.screen().alternate_screen()
    }

    /// Waits until the screen contains a text.
    pub fn wait_for(&mut self, text: &str) {
        self.wait_until(&format!("{text:?} on the screen"), |screen| screen.text().contains(text));
    }

    /// Waits until the screen does not contain a text.
    pub fn wait_gone(&mut self, text: &str) {
        self.wait_until(&format!("{text:?} gone"), |screen| !screen.text().contains(text));
    }

    /// Waits until a condition holds.
    pub fn wait_until(&mut self, what: &str, holds: impl Fn(&Self) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !holds(self) {
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "waited for {what}; the screen:\n{}", self.text());
            match self.bytes.recv_timeout(left) {
                Ok(bytes) => {
                    self.parser.process(&bytes);
                    self.raw.extend_from_slice(&bytes);
                }
                Err(error) => {
                    assert!(holds(self), "waited for {what}: {error}; the screen:\n{}", self.text());
                }
            }
        }
    }

    /// Waits until nothing was written for half a second.
    pub fn wait_quiet(&mut self) {
        while self.bytes_within(Duration::from_millis(500)) > 0 {}
    }

    /// Waits until the state of the screen is saved, which takes half a second at most.
    pub fn wait_quiet_for_store(&mut self) {
        self.bytes_within(Duration::from_millis(900));
    }

    /// The number of bytes that are written within this time.
    pub fn bytes_within(&mut self, time: Duration) -> usize {
        let deadline = Instant::now() + time;
        let before = self.raw.len();
        while let Ok(bytes) = self.bytes.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            self.parser.process(&bytes);
            self.raw.extend_from_slice(&bytes);
        }
        self.raw.len() - before
    }

    /// Waits until parlor exits, and reads its remaining output.
    pub fn wait_exit(&mut self) -> ExitStatus {
        let deadline = Instant::now() + PATIENCE;
        loop {
            while let Ok(bytes) = self.bytes.try_recv() {
                self.parser.process(&bytes);
                self.raw.extend_from_slice(&bytes);
            }
            if let Some(status) = self.child.try_wait().unwrap() {
                while let Ok(bytes) = self.bytes.recv_timeout(Duration::from_millis(200)) {
                    self.parser.process(&bytes);
                    self.raw.extend_from_slice(&bytes);
                }
                return status;
            }
            assert!(Instant::now() < deadline, "parlor did not end; the screen:\n{}", self.text());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// The process id of parlor.
    pub fn pid(&self) -> i32 {
        i32::try_from(self.child.process_id().unwrap()).unwrap()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
