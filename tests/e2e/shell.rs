//! The user's own commands.

use std::path::Path;

use super::screen::Screen;

const ESC: &str = "\u{1b}";
const CTRL_C: &str = "\u{3}";
const CTRL_D: &str = "\u{4}";
const CTRL_Q: &str = "\u{11}";
const TYPE: &str = "\u{1d}";

fn start(folder: &tempfile::TempDir) -> Screen {
    let variables = [("SHELL", Path::new("/bin/sh"))];
    let mut screen = Screen::start_with(folder.path(), &["demo"], (30, 100), &variables);
    screen.wait_for("ready");
    screen
}

fn send(screen: &mut Screen, text: &str) {
    screen.send(text);
    screen.wait_for(text);
    screen.send("\r");
}

fn quit(screen: &mut Screen) {
    screen.send(CTRL_Q);
    assert!(screen.wait_exit().success());
}

#[test]
fn a_command_shows_its_output_and_the_next_one_continues_in_its_folder() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("sub")).unwrap();
    let mut screen = start(&folder);
    screen.send("!");
    screen.wait_for(" Shell ");
    send(&mut screen, "echo hi'-'there");
    screen.wait_for("hi-there");
    screen.wait_for("shell");
    send(&mut screen, "!cd sub; export LEFT=over");
    screen.wait_for("shell in sub");
    send(&mut screen, "!basename \"$PWD\"-$LEFT");
    screen.wait_for("sub-over");
    send(&mut screen, "!exit 7");
    screen.wait_for("exit 7");
    quit(&mut screen);
}

#[test]
fn keys_are_typed_into_a_command() {
    let folder = tempfile::tempdir().unwrap();
    let mut screen = start(&folder);
    send(&mut screen, "!cat; echo over");
    screen.wait_for("running cat");
    screen.send(TYPE);
    screen.wait_for("Focus: terminal");
    screen.send("typed\r");
    // Echo and output, in the terminal and in the transcript.
    screen.wait_until("the line twice", |screen| {
        screen.text().lines().filter(|row| row.trim() == "typed").count() == 4
    });
    screen.send(TYPE);
    screen.wait_gone("Focus: terminal");
    send(&mut screen, "a draft");
    screen.wait_until("sent to the agent", |screen| screen.text().contains("▌ a draft"));
    screen.send(TYPE);
    screen.wait_for("Focus: terminal");
    screen.send(CTRL_D);
    screen.wait_until("the end", |screen| screen.text().lines().any(|line| line.trim() == "over"));
    screen.wait_gone("Focus: terminal");
    quit(&mut screen);
}

#[test]
fn a_stopped_command_leaves_no_process() {
    let folder = tempfile::tempdir().unwrap();
    let mut screen = start(&folder);
    for (key, seconds) in [(ESC, "3141"), (CTRL_C, "3142")] {
        send(&mut screen, &format!("!sleep {seconds}"));
        screen.wait_for(&format!("running sleep {seconds}"));
        screen.send(key);
        screen.wait_gone(&format!("running sleep {seconds}"));
        assert!(!is_running(&format!("sleep\0{seconds}\0")), "{seconds} is running");
    }
    send(&mut screen, "!sleep 3143");
    screen.wait_for("running sleep 3143");
    quit(&mut screen);
    assert!(!is_running("sleep\x003143\0"), "it ends with parlor");
}

/// Whether a process was started with this command line.
fn is_running(command_line: &str) -> bool {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    entries.into_iter().any(|entry| {
        std::fs::read(entry.path().join("cmdline")).is_ok_and(|line| line == command_line.as_bytes())
    })
}

#[test]
fn an_output_goes_into_the_next_prompt_once() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let variables = [("SHELL", Path::new("/bin/sh"))];
    let args = ["--log-file", log.to_str().unwrap(), "demo"];
    let mut screen = Screen::start_with(folder.path(), &args, (30, 100), &variables);
    screen.wait_for("ready");
    send(&mut screen, "!echo not'-'sent");
    screen.wait_for("not-sent");
    send(&mut screen, "!!echo se'-'cret; exit 3");
    screen.wait_for("✗ shell");
    screen.wait_for("@!2: output of echo");
    screen.send("/help\r");
    screen.wait_for("▌ se-cret");
    screen.wait_for("ready");
    send(&mut screen, "/help me");
    screen.wait_until("the second prompt", |screen| screen.text().contains("▌ /help me"));
    screen.wait_for("ready");
    quit(&mut screen);
    let log = std::fs::read_to_string(&log).unwrap();
    let prompts: Vec<&str> = log.lines().filter(|line| line.contains("session/prompt")).collect();
    assert_eq!(prompts.len(), 2, "{log}");
    assert!(prompts[0].contains("se-cret") && prompts[0].contains("exit status 3"), "{}", prompts[0]);
    assert!(!prompts[1].contains("se-cret"), "{}", prompts[1]);
    assert!(!log.contains("not-sent"), "{log}");
}

/// Draws its size on the alternate screen until Enter.
const FULL_SCREEN: &str = r#"show() { printf '\033[2J\033[Hsize %s' "$(stty size)"; }
printf 'before\n\033[?1049h'
trap show WINCH
show
until read -r line; do :; done
printf '\033[?1049l'
echo "read $line"
"#;

#[test]
fn a_full_screen_program_gets_the_keys_and_follows_the_size_of_the_window() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("full.sh"), FULL_SCREEN).unwrap();
    let mut screen = start(&folder);
    send(&mut screen, "!sh full.sh");
    screen.wait_for("Focus: terminal");
    screen.wait_for("size 27 100");
    for (rows, cols) in [(40, 120), (12, 40), (24, 80)] {
        screen.resize(rows, cols);
        screen.wait_for(&format!("size {} {cols}", rows - 3));
    }
    // Back to the prompt, and to the program.
    screen.send(TYPE);
    screen.wait_for("A full-screen program is running.");
    screen.send(TYPE);
    screen.wait_for("size 21 80");
    screen.send("word\r");
    screen.wait_for("read word");
    screen.wait_gone("Focus: terminal");
    let text = screen.text();
    assert!(text.contains("before") && !text.contains("size"), "{text}");
    quit(&mut screen);
}
