//! A typical session.

use std::fs;

use super::ceiling::scripted_agent;
use super::screen::Screen;

const ESC: &str = "\u{1b}";
const CTRL_Q: &str = "\u{11}";

fn demo(folder: &tempfile::TempDir) -> Screen {
    let mut screen = Screen::start(folder.path(), &["demo"]);
    screen.wait_for("demo");
    screen
}

/// Types a prompt and sends it.
fn prompt(screen: &mut Screen, text: &str) {
    screen.send(text);
    screen.wait_for(text);
    screen.send("\r");
}

fn quit(screen: &mut Screen) {
    // Twice: during a turn, the first one asks for confirmation.
    screen.send(CTRL_Q);
    screen.send(CTRL_Q);
    let status = screen.wait_exit();
    assert!(status.success(), "{status:?}");
    assert!(!screen.is_alternate(), "the main screen is restored");
}

#[test]
fn without_an_agent_the_picker_offers_the_demo() {
    let folder = tempfile::tempdir().unwrap();
    let mut screen = Screen::start(folder.path(), &[]);
    screen.wait_for("Demo agent");
    screen.send("demo");
    screen.send("\r");
    screen.wait_gone("Demo agent");
    // The agent sends its commands before; without them, `/help` is parlor's own.
    screen.wait_for("1.2k of 32k");
    prompt(&mut screen, "/help");
    screen.wait_for("Plain text works too");
    screen.wait_for("ready");
    quit(&mut screen);
}

#[test]
fn text_typed_before_the_agent_is_ready_is_preserved() {
    let folder = tempfile::tempdir().unwrap();
    // This agent never responds.
    let mut screen = Screen::start(folder.path(), &["--", "sleep", "60"]);
    screen.send("first thoughts");
    screen.wait_for("first thoughts");
    screen.wait_for("starting");
    quit(&mut screen);
}

#[test]
fn an_edit_is_approved_in_a_dialog_that_shows_the_diff() {
    let folder = tempfile::tempdir().unwrap();
    let mut screen = demo(&folder);
    prompt(&mut screen, "/edit");
    screen.wait_for("Allow this edit?");
    screen.answer("1");
    screen.wait_gone("Allow this edit?");
    screen.wait_for("Done.");
    screen.wait_for("ready");
    quit(&mut screen);
}

#[test]
fn esc_cancels_a_flood() {
    let folder = tempfile::tempdir().unwrap();
    let mut screen = demo(&folder);
    prompt(&mut screen, "/long 100000");
    screen.wait_for("Esc stop");
    screen.send(ESC);
    screen.wait_gone("Esc stop");
    screen.wait_for("ready");
    prompt(&mut screen, "/help");
    screen.wait_for("Plain text works too");
    screen.wait_for("ready");
    quit(&mut screen);
}

/// An agent that crashes at the first prompt if there is a file `crash`, and responds after its restart.
pub const CRASHES_ONCE: &str = r#"
> initialize
< {"jsonrpc":"2.0","id":$id,"result":{"protocolVersion":1}}
> session/new
< {"jsonrpc":"2.0","id":$id,"result":{"sessionId":"s1"}}
. 1
> session/prompt
@ crash
! 3
. 2
> session/prompt
< {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"Running again."}}}}
< {"jsonrpc":"2.0","id":$id,"result":{"stopReason":"end_turn"}}
> never
"#;

#[test]
fn a_crash_shows_the_exit_code_and_the_agent_is_restarted() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("script");
    fs::write(&script, CRASHES_ONCE).unwrap();
    fs::write(folder.path().join("crash"), "").unwrap();
    let agent = scripted_agent();
    let mut screen = Screen::start(folder.path(), &["--", agent.to_str().unwrap(), script.to_str().unwrap()]);
    screen.wait_for("ready");
    prompt(&mut screen, "first prompt");
    screen.wait_for("exit code 3");
    screen.wait_for("last prompt failed");
    prompt(&mut screen, "second prompt");
    screen.wait_for("Running again.");
    quit(&mut screen);
}

#[test]
fn a_missing_program_is_reported_with_the_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let mut screen = Screen::start(folder.path(), &["--", "no-such-agent-anywhere"]);
    screen.wait_for("no-such-agent-anywhere");
    screen.wait_for("not found");
    quit(&mut screen);
}

#[test]
fn all_sizes_are_usable_and_resizes_leave_no_remains() {
    let folder = tempfile::tempdir().unwrap();
    let mut screen = demo(&folder);
    for (rows, cols) in [(12, 40), (60, 200), (24, 80), (1, 1), (3, 10), (24, 80)] {
        screen.resize(rows, cols);
    }
    // crossterm delays a key that arrives together with a resize.
    screen.wait_quiet();
    prompt(&mut screen, "/help");
    screen.wait_for("Plain text works too");
    screen.wait_for("ready");
    quit(&mut screen);
}

#[test]
fn many_resizes_during_a_response_leave_no_remains() {
    let folder = tempfile::tempdir().unwrap();
    let mut screen = demo(&folder);
    prompt(&mut screen, "/long 120");
    // The title of the session, because the prompt may already have scrolled off the screen.
    screen.wait_for("· long 120");
    for round in 0..60_u16 {
        screen.resize(10 + round * 7 % 40, 30 + round * 13 % 120);
        if round % 6 == 5 {
            // Scrolls up and down.
            screen.send(if round % 12 == 5 { "\u{1b}[5~" } else { "\u{1b}[6~" });
        }
    }
    screen.resize(24, 80);
    screen.send("\u{1b}[1;5F");
    screen.wait_for("ready");
    screen.wait_quiet();
    let after = screen.text();
    assert!(!after.trim().is_empty());
    // A full redraw yields the same screen.
    screen.send("\u{c}");
    screen.wait_quiet();
    assert_eq!(screen.text(), after);
    quit(&mut screen);
}

#[test]
fn configuration_errors_are_reported_and_parlor_starts() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("wrong.toml");
    fs::write(&config, "theme = 3\n").unwrap();
    let mut screen = Screen::start(folder.path(), &["demo", "--config", config.to_str().unwrap()]);
    screen.wait_for("wrong.toml");
    quit(&mut screen);
}

#[test]
fn nothing_is_written_while_idle() {
    let folder = tempfile::tempdir().unwrap();
    let mut screen = demo(&folder);
    screen.wait_gone("starting");
    screen.wait_quiet();
    assert_eq!(screen.bytes_within(std::time::Duration::from_millis(1500)), 0, "{}", screen.text());
    quit(&mut screen);
}

#[test]
fn an_unknown_theme_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let mut screen = Screen::start(folder.path(), &["--theme", "nope", "demo"]);
    screen.wait_for("unknown theme \"nope\"");
    screen.wait_for("ready");
    quit(&mut screen);
}
