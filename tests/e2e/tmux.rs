//! parlor in tmux, which changes keys, pastes, mouse events, focus and sequences on their way.
//!
//! Each test has its own server, with its socket and configuration in a temporary folder. Without tmux, the tests are
//! skipped, except in CI.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use portable_pty::CommandBuilder;

use super::screen::Screen;

const CTRL_C: &str = "\u{3}";
const CTRL_Q: &str = "\u{11}";
const ESC: &str = "\u{1b}";
const FOCUS_LOST: &str = "\u{1b}[O";

const CONFIG: &str = "\
set -g mouse on
set -g focus-events on
set -g allow-passthrough on
set -s extended-keys on
set -as terminal-features ',xterm*:extkeys'
";

/// Timeout of what tmux reports itself.
const PATIENCE: Duration = Duration::from_secs(30);

/// A tmux server with parlor in its only pane.
struct Tmux {
    /// The attached client.
    client: Screen,
    folder: tempfile::TempDir,
    version: (u32, u32),
}

/// The version of tmux; `None`: it is not installed.
#[expect(clippy::print_stderr, reason = "a test that is skipped says so")]
fn version() -> Option<(u32, u32)> {
    let output = match Command::new("tmux").arg("-V").output() {
        Ok(output) => String::from_utf8_lossy(&output.stdout).into_owned(),
        Err(error) => {
            assert!(std::env::var_os("CI").is_none(), "tmux is required in CI: {error}");
            eprintln!("skipped: tmux is not installed");
            return None;
        }
    };
    // `tmux 3.3a`, `tmux next-3.8`
    let digits = output.trim().trim_start_matches(|ch: char| !ch.is_ascii_digit());
    let mut numbers = digits.split(|ch: char| !ch.is_ascii_digit()).map(|part| part.parse().unwrap_or(0));
    Some((numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)))
}

impl Tmux {
    /// Starts the demo at 80x24, between two lines of a shell.
    fn start(variables: &[(&str, &str)]) -> Option<Self> {
        let version = version()?;
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("tmux.conf"), CONFIG).unwrap();
        let parlor = env!("CARGO_BIN_EXE_parlor");
        let line = format!("echo before; {parlor} demo; echo after; exec cat");
        let client = client(&folder, &["new-session", &line], variables);
        let mut tmux = Self { client, folder, version };
        tmux.client.wait_for("ready");
        Some(tmux)
    }

    fn command(&self, args: &[&str]) -> String {
        let socket = self.folder.path().join("socket");
        let output = Command::new("tmux").arg("-S").arg(socket).args(args).output().unwrap();
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Waits until the pane shows a text, without a client.
    fn wait_for(&self, text: &str) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let pane = self.command(&["capture-pane", "-p"]);
            if pane.contains(text) {
                return;
            }
            assert!(Instant::now() < deadline, "waited for {text:?}; the pane:\n{pane}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Quits parlor, and waits for the shell.
    fn quit(&mut self) {
        self.client.send(CTRL_Q);
        self.client.wait_for("after");
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        let socket = self.folder.path().join("socket");
        let _ = Command::new("tmux").arg("-S").arg(socket).arg("kill-server").output();
    }
}

/// Starts a client, and the server if there is none.
fn client(folder: &tempfile::TempDir, args: &[&str], variables: &[(&str, &str)]) -> Screen {
    let mut command = CommandBuilder::new("tmux");
    command.arg("-u");
    command.args(["-S".as_ref(), folder.path().join("socket").as_os_str()]);
    command.args(["-f".as_ref(), folder.path().join("tmux.conf").as_os_str()]);
    command.args(args);
    let variables: Vec<(&str, &Path)> =
        variables.iter().map(|(name, value)| (*name, Path::new(*value))).collect();
    Screen::run(command, folder.path(), (24, 80), &variables)
}

#[test]
fn keys_reach_parlor_through_tmux() {
    let Some(mut tmux) = Tmux::start(&[]) else { return };
    let screen = &mut tmux.client;
    // Alt+Enter, Ctrl+J, and Shift+Enter as sent by a terminal that reports modified keys.
    screen.send("one\u{1b}\rtwo\nthree\u{1b}[27;2;13~four");
    let rows = ["› one", "two", "three", "four"];
    screen.wait_until("four lines", |screen| {
        let text = screen.text();
        let from = text.lines().skip_while(|row| !row.contains(rows[0]));
        from.zip(rows).filter(|(row, expected)| row.contains(expected)).count() == rows.len()
    });
    // Arrows with modifiers, Home, End.
    screen.send("\u{1b}[1;5D\u{1b}[H0\u{1b}[F9");
    screen.wait_for("0four9");
    screen.send(CTRL_C);
    screen.wait_for("Ask demo");
    screen.send("/help\r");
    screen.wait_for("Plain text works too");
    // Quitting asks while the turn is running.
    screen.wait_for(" ready ");
    screen.send("x");
    screen.wait_for("› x");
    tmux.quit();
}

#[test]
fn escape_stops_a_turn_and_ctrl_c_quits_through_tmux() {
    let Some(mut tmux) = Tmux::start(&[("PARLOR_DEMO_PACE", "3")]) else { return };
    let screen = &mut tmux.client;
    screen.send("show me a tour\r");
    screen.wait_for("Welcome to parlor");
    screen.send(ESC);
    screen.wait_for("cancelled");
    screen.wait_for("ready");
    assert!(!screen.text().contains("Step 1 of 5"), "{}", screen.text());
    screen.send(CTRL_C);
    screen.wait_for("Press again");
    screen.send(CTRL_C);
    screen.wait_for("after");
}

#[test]
fn the_wheel_and_pages_scroll_in_tmux() {
    let Some(mut tmux) = Tmux::start(&[]) else { return };
    let screen = &mut tmux.client;
    screen.resize(12, 80);
    screen.send("show me a tour\r");
    screen.wait_for("Step 1 of 5");
    screen.wait_for("ready");
    screen.wait_gone("▌ show me a tour");
    for _ in 0..40 {
        screen.send("\u{1b}[<64;10;4M");
    }
    screen.wait_for("▌ show me a tour");
    for _ in 0..40 {
        screen.send("\u{1b}[<65;10;4M");
    }
    screen.wait_gone("▌ show me a tour");
    for _ in 0..9 {
        screen.send("\u{1b}[5~");
    }
    screen.wait_for("▌ show me a tour");
    tmux.quit();
}

#[test]
fn a_buffer_of_tmux_is_pasted_as_text() {
    let Some(mut tmux) = Tmux::start(&[]) else { return };
    tmux.command(&["set-buffer", "first line\nsecond line"]);
    tmux.command(&["paste-buffer", "-p"]);
    tmux.client.wait_for("› first line");
    tmux.client.wait_for("second line");
    assert!(!tmux.client.text().contains("▌ first line"), "it was not sent");
    tmux.client.send(CTRL_C);
    tmux.quit();
}

#[test]
fn notifications_pass_through_tmux() {
    let Some(mut tmux) = Tmux::start(&[("KITTY_WINDOW_ID", "1")]) else { return };
    let screen = &mut tmux.client;
    screen.send(FOCUS_LOST);
    screen.send("/edit\r");
    screen.wait_for("Allow this edit?");
    screen.wait_until("a notification", |screen| {
        let raw = String::from_utf8_lossy(&screen.raw);
        raw.contains("\u{1b}]99;i=parlor") && raw.contains(":p=body;Permission required.\u{1b}\\")
    });
    screen.send(CTRL_Q);
    screen.send(CTRL_Q);
    screen.wait_for("after");
}

#[test]
fn parlor_follows_the_size_of_its_pane() {
    let Some(mut tmux) = Tmux::start(&[]) else { return };
    tmux.client.send("a draft");
    tmux.client.wait_for("› a draft");
    let mut draft = "› a draft".to_owned();
    for (rows, cols) in [(40, 132), (12, 40), (24, 80)] {
        tmux.client.resize(rows, cols);
        let expected = format!("{cols}x{}\n", rows - 1);
        let deadline = Instant::now() + PATIENCE;
        while tmux.command(&["display-message", "-p", "#{pane_width}x#{pane_height}"]) != expected {
            assert!(Instant::now() < deadline, "the pane has not the size {expected}");
            std::thread::sleep(Duration::from_millis(20));
        }
        // A frame after the change.
        tmux.client.send("!");
        draft.push('!');
        tmux.client.wait_for(&draft);
        let is_edge =
            |row: &str| row.starts_with(" ─") && row.trim_end().chars().count() == usize::from(cols) - 1;
        tmux.client.wait_until(&format!("an edge of {cols} columns"), |screen| {
            let text = screen.text();
            text.contains(&draft) && text.lines().any(is_edge)
        });
    }
    tmux.client.send(CTRL_C);
    tmux.quit();
}

#[test]
fn a_detached_session_continues() {
    let Some(mut tmux) = Tmux::start(&[]) else { return };
    tmux.client.send("a draft");
    tmux.client.wait_for("› a draft");
    tmux.command(&["detach-client"]);
    assert!(tmux.client.wait_exit().success());
    tmux.command(&["send-keys", "-l", " and more"]);
    tmux.wait_for("› a draft and more");
    tmux.client = client(&tmux.folder, &["attach-session"], &[]);
    tmux.client.wait_for("› a draft and more");
    tmux.client.send("!");
    tmux.client.wait_for("and more!");
    tmux.client.send(CTRL_C);
    tmux.client.wait_for("Ask demo");
    tmux.quit();
}

#[test]
fn quitting_restores_the_pane() {
    let Some(mut tmux) = Tmux::start(&[]) else { return };
    let state = |tmux: &Tmux| {
        let flags = "#{alternate_on} #{mouse_any_flag} #{cursor_flag} #{keypad_cursor_flag}";
        tmux.command(&["display-message", "-p", flags])
    };
    assert_eq!(state(&tmux), "1 1 1 0\n");
    tmux.client.send("x");
    tmux.client.wait_for("› x");
    tmux.client.send(CTRL_C);
    tmux.quit();
    let text = tmux.client.text();
    assert!(text.starts_with("before\n") && !text.contains("Ask demo"), "{text}");
    assert_eq!(state(&tmux), "0 0 1 0\n");
    // Modified keys are not reported to the next program.
    tmux.client.send("typed\u{1b}[27;2;13~ this\r");
    // The line ends after the text, and the status line has the time.
    tmux.client.wait_until("the line twice", |screen| {
        screen.text().lines().filter(|line| *line == "typed this").count() == 2
    });
}

/// tmux supports synchronized updates since 3.7.
#[test]
fn updates_are_synchronized_if_tmux_supports_it() {
    let Some(mut tmux) = Tmux::start(&[]) else { return };
    let file = tmux.folder.path().join("output");
    tmux.command(&["pipe-pane", &format!("cat >{}", file.display())]);
    tmux.client.send("typed");
    tmux.client.wait_for("› typed");
    tmux.client.send(CTRL_C);
    tmux.client.wait_gone("› typed");
    tmux.quit();
    let output = std::fs::read_to_string(&file).unwrap();
    // The letters may be in several frames, each of which hides the cursor first.
    assert!(output.contains("\u{1b}[?25l"), "{output:?}");
    assert_eq!(output.contains("\u{1b}[?2026h"), tmux.version >= (3, 7), "{output:?}");
}
