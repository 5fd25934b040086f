//! A session as a person has it.

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
    // Twice: while a turn still runs, the first is asked about and the second means yes.
    screen.send(CTRL_Q);
    screen.send(CTRL_Q);
    let status = screen.wait_exit();
    assert!(status.success(), "{status:?}");
    assert!(!screen.is_alternate(), "the shell's own screen is back");
}

#[test]
fn with_no_agent_named_the_picker_offers_the_demo() {
    let folder = tempfile::tempdir().unwrap();
    let mut screen = Screen::start(folder.path(), &[]);
    screen.wait_for("Demo agent");
    screen.send("demo");
    screen.send("\r");
    screen.wait_gone("Demo agent");
    screen.wait_for("ready");
    prompt(&mut screen, "/help");
    screen.wait_for("Plain text works too");
    screen.wait_for("ready");
    quit(&mut screen);
}

#[test]
fn what_is_typed_before_the_agent_is_ready_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    // This agent never answers.
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
    // The grace period: nothing is taken until the keys have been quiet.
    std::thread::sleep(std::time::Duration::from_millis(600));
    screen.send("1");
    screen.wait_gone("Allow this edit?");
    screen.wait_for("Done.");
    screen.wait_for("ready");
    quit(&mut screen);
}

#[test]
fn esc_cancels_a_flood_and_the_next_prompt_works() {
    let folder = tempfile::tempdir().unwrap();
    let mut screen = demo(&folder);
    prompt(&mut screen, "/long 100000");
    screen.wait_for("esc stop");
    screen.send(ESC);
    screen.wait_gone("esc stop");
    screen.wait_for("ready");
    prompt(&mut screen, "/help");
    screen.wait_for("Plain text works too");
    screen.wait_for("ready");
    quit(&mut screen);
}

/// An agent that crashes at the first prompt, once there is a file `crash`, and answers after its restart.
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
fn a_missing_program_is_told_with_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let mut screen = Screen::start(folder.path(), &["--", "no-such-agent-anywhere"]);
    screen.wait_for("no-such-agent-anywhere");
    screen.wait_for("not found");
    quit(&mut screen);
}

#[test]
fn every_size_is_usable_and_a_resize_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let mut screen = demo(&folder);
    for (rows, cols) in [(12, 40), (60, 200), (24, 80), (1, 1), (3, 10), (24, 80)] {
        screen.resize(rows, cols);
    }
    // A key that comes together with a change of size waits in crossterm for the next one.
    screen.wait_quiet();
    prompt(&mut screen, "/help");
    screen.wait_for("Plain text works too");
    screen.wait_for("ready");
    quit(&mut screen);
}

#[test]
fn a_storm_of_resizes_while_an_answer_comes_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let mut screen = demo(&folder);
    prompt(&mut screen, "/long 120");
    // The title of the session: the prompt itself may have left the screen by the time that the test looks.
    screen.wait_for("· long 120 ·");
    for round in 0..60_u16 {
        screen.resize(10 + round * 7 % 40, 30 + round * 13 % 120);
        if round % 6 == 5 {
            // Up and down again: what is read moves, too.
            screen.send(if round % 12 == 5 { "\u{1b}[5~" } else { "\u{1b}[6~" });
        }
    }
    screen.resize(24, 80);
    screen.send("\u{1b}[1;5F");
    screen.wait_for("ready");
    screen.wait_quiet();
    let after = screen.text();
    assert!(!after.trim().is_empty());
    // A screen that is drawn from nothing says the same.
    screen.send("\u{c}");
    screen.wait_quiet();
    assert_eq!(screen.text(), after);
    quit(&mut screen);
}

#[test]
fn a_wrong_configuration_is_told_and_parlor_starts_all_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("wrong.toml");
    fs::write(&config, "theme = 3\n").unwrap();
    let mut screen = Screen::start(folder.path(), &["demo", "--config", config.to_str().unwrap()]);
    screen.wait_for("wrong.toml");
    quit(&mut screen);
}

#[test]
fn nothing_is_written_at_rest() {
    let folder = tempfile::tempdir().unwrap();
    let mut screen = demo(&folder);
    screen.wait_gone("starting");
    screen.wait_quiet();
    assert_eq!(screen.bytes_within(std::time::Duration::from_millis(1500)), 0, "{}", screen.text());
    quit(&mut screen);
}

#[test]
fn a_theme_that_does_not_exist_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let mut screen = Screen::start(folder.path(), &["--theme", "nope", "demo"]);
    screen.wait_for("unknown theme \"nope\"");
    screen.wait_for("ready");
    quit(&mut screen);
}
