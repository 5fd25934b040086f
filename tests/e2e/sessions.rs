//! Kept sessions in the real program: found again after the worst end, read, named, exported and deleted.

use std::path::Path;

use super::screen::Screen;

const ESC: &str = "\u{1b}";
const F2: &str = "\u{1b}OQ";
const F6: &str = "\u{1b}[17~";
const ALT_ENTER: &str = "\u{1b}\r";
const ALT_SHIFT_N: &str = "\u{1b}N";
const ALT_R: &str = "\u{1b}r";
const ALT_X: &str = "\u{1b}x";
const CTRL_D: &str = "\u{4}";
const CTRL_F: &str = "\u{6}";
const CTRL_Q: &str = "\u{11}";
const DOWN: &str = "\u{1b}[B";

/// Several parlors, one after the other, on one machine.
struct Machine {
    home: tempfile::TempDir,
    work: tempfile::TempDir,
}

impl Machine {
    fn new() -> Self {
        Self { home: tempfile::tempdir().unwrap(), work: tempfile::tempdir().unwrap() }
    }

    fn start_in(&self, folder: &Path, args: &[&str]) -> Screen {
        let (data, demo) = (self.home.path().join("data"), self.home.path().join("demo"));
        let variables: [(&str, &Path); 2] = [("PARLOR_DATA_DIR", &data), ("PARLOR_DEMO_DIR", &demo)];
        Screen::start_with(folder, args, (36, 100), &variables)
    }

    fn start(&self, args: &[&str]) -> Screen {
        self.start_in(self.work.path(), args)
    }

    /// A parlor with the list of sessions, started without naming an agent.
    fn list(&self) -> Screen {
        let mut screen = self.start(&[]);
        screen.wait_for("Select agent");
        screen.send(ESC);
        screen.wait_gone("Select agent");
        screen.send(F6);
        screen.wait_for("This folder, newest first");
        screen
    }

    /// Says something to the demo agent, and leaves.
    fn talk(&self, prompt: &str) {
        let mut screen = self.start(&["demo"]);
        screen.wait_for("ready");
        say(&mut screen, prompt);
        quit(&mut screen);
    }
}

fn say(screen: &mut Screen, prompt: &str) {
    screen.send(prompt);
    screen.wait_for(prompt);
    screen.send("\r");
    screen.wait_gone(&format!("› {prompt}"));
    screen.wait_for("ready");
    // The turn may have been too short to be seen; while it runs, something moves.
    screen.wait_quiet();
}

fn quit(screen: &mut Screen) {
    screen.send(CTRL_Q);
    screen.send(CTRL_Q);
    assert!(screen.wait_exit().success());
}

#[test]
fn a_session_is_found_and_gone_on_with_after_parlor_was_killed_in_a_turn() {
    let machine = Machine::new();
    let mut screen = machine.start(&["demo"]);
    screen.wait_for("ready");
    say(&mut screen, "remember the blue door");
    screen.send("/long 100000");
    screen.wait_for("/long 100000");
    screen.send("\r");
    screen.wait_for("working");
    // What is on the screen for half a second is kept.
    screen.wait_quiet_for_store();
    let pid = rustix::process::Pid::from_raw(screen.pid()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    screen.wait_exit();

    let mut screen = machine.list();
    screen.wait_for("cut, ");
    // Its end is shown before it is opened.
    screen.wait_for("This turn was cut");
    screen.send("\r");
    screen.wait_gone("This folder, newest first");
    screen.wait_for("This turn was cut");
    screen.wait_for("ready");
    say(&mut screen, "and now go on");
    quit(&mut screen);
}

#[test]
fn a_session_is_read_without_an_agent_until_a_key_starts_it() {
    let machine = Machine::new();
    machine.talk("tell of the blue door");
    let mut screen = machine.list();
    screen.wait_for("tell of the blue door");
    screen.send(ALT_ENTER);
    screen.wait_for("read-only, no agent running");
    screen.wait_for("tell of the blue door");
    screen.send(ALT_R);
    screen.wait_for("ready");
    quit(&mut screen);
}

#[test]
fn sessions_are_named_exported_and_deleted_from_the_list() {
    let machine = Machine::new();
    machine.talk("first one here");
    machine.talk("second one here");
    let mut screen = machine.list();
    screen.wait_for("second one here");
    screen.send(F2);
    screen.wait_for("Rename session");
    screen.send(" renamed");
    screen.wait_for("here renamed");
    screen.send("\r");
    screen.wait_gone("Rename session");
    screen.wait_for("second one here renamed");

    screen.send(ALT_X);
    screen.wait_for("Export session");
    screen.send("1");
    screen.wait_gone("Export session");
    screen.wait_until("the file", |_| {
        let entries = std::fs::read_dir(machine.work.path()).unwrap().flatten();
        let mut texts = entries.filter_map(|entry| std::fs::read_to_string(entry.path()).ok());
        texts.any(|text| text.starts_with("# second one here renamed"))
    });

    screen.send("first");
    screen.wait_gone("second one here renamed");
    screen.send(CTRL_D);
    screen.wait_for("Delete session?");
    screen.wait_for("demo may still have a copy");
    screen.send("n");
    screen.wait_gone("Delete session?");
    screen.send(CTRL_D);
    screen.wait_for("Delete session?");
    screen.send("y");
    screen.wait_for("No matches");
    screen.send("\u{15}");
    screen.wait_for("second one here renamed");
    assert!(!screen.text().contains("first one here"), "{}", screen.text());
    screen.send(ESC);
    screen.wait_gone("This folder");
    quit(&mut screen);
}

#[test]
fn a_title_is_told_to_the_agent_now_or_when_the_session_is_opened() {
    let machine = Machine::new();
    machine.talk("paint the fence");
    let knows = |title: &str| {
        let files = std::fs::read_dir(machine.home.path().join("demo")).unwrap().flatten();
        let mut texts = files.filter_map(|file| std::fs::read_to_string(file.path()).ok());
        texts.any(|text| text.contains(title))
    };
    // The agent does not run: the list says that it does not know.
    let mut screen = machine.list();
    screen.wait_for("paint the fence");
    rename(&mut screen, " green");
    screen.wait_for("Title not yet sent to demo");
    assert!(!knows("paint the fence green"));
    screen.send("\r");
    screen.wait_gone("This folder, newest first");
    screen.wait_for("ready");
    screen.wait_until("the agent to know it", |_| knows("paint the fence green"));
    screen.send(F6);
    screen.wait_for("paint the fence green");
    screen.wait_gone("not yet sent");
    screen.send(ESC);
    screen.wait_gone("This folder, newest first");
    quit(&mut screen);

    // It runs for another session.
    let mut screen = machine.start(&["demo"]);
    screen.wait_for("ready");
    screen.send(F6);
    screen.wait_for("paint the fence green");
    screen.wait_quiet();
    screen.send("green");
    screen.wait_for("› green");
    rename(&mut screen, "ish");
    screen.wait_until("the agent to know it", |_| knows("paint the fence greenish"));
    screen.wait_for("Renamed in parlor and in demo");
    screen.wait_gone("not yet sent");
    screen.send(ESC);
    screen.wait_gone("This folder, newest first");
    quit(&mut screen);
}

fn rename(screen: &mut Screen, more: &str) {
    screen.send(F2);
    screen.wait_for("Rename session");
    screen.send(more);
    screen.wait_for(more);
    screen.send("\r");
    screen.wait_gone("Rename session");
}

#[test]
fn what_was_said_is_searched_over_all_folders_and_shown_in_its_place() {
    let machine = Machine::new();
    machine.talk("where is the lighthouse");
    let elsewhere = tempfile::tempdir().unwrap();
    let mut screen = machine.start_in(elsewhere.path(), &["demo"]);
    screen.wait_for("ready");
    screen.send(F6);
    screen.wait_for("1 hidden");
    screen.send("\t");
    screen.wait_for("where is the lighthouse");
    screen.send(CTRL_F);
    screen.wait_for("Search all sessions");
    screen.send("lightho");
    screen.wait_for("prompt  where is the lighthouse");
    screen.send(DOWN);
    screen.send("\r");
    screen.wait_gone("Search all sessions");
    screen.wait_for("read-only, no agent running");
    screen.wait_for("where is the lighthouse");
    quit(&mut screen);
}

#[test]
fn a_session_whose_folder_was_renamed_is_offered_the_new_one() {
    let machine = Machine::new();
    let before = machine.work.path().join("before");
    std::fs::create_dir(&before).unwrap();
    let mut screen = machine.start_in(&before, &["demo"]);
    screen.wait_for("ready");
    say(&mut screen, "paint the fence");
    quit(&mut screen);
    let after = machine.work.path().join("after");
    std::fs::rename(&before, &after).unwrap();
    let mut screen = machine.start(&[]);
    screen.wait_for("Select agent");
    screen.send(ESC);
    screen.wait_gone("Select agent");
    screen.send(F6);
    screen.wait_for("1 hidden");
    screen.send("\t");
    screen.wait_for("folder missing");
    screen.send("\r");
    screen.wait_for("Session folder not found");
    screen.wait_for("same folder, moved");
    screen.wait_quiet();
    screen.send("1");
    screen.wait_gone("Session folder not found");
    screen.wait_for("ready");
    screen.wait_for("after");
    quit(&mut screen);
}

#[test]
fn the_last_session_of_a_folder_is_offered_at_the_start() {
    let machine = Machine::new();
    machine.talk("paint the blue door");
    let mut screen = machine.start(&["demo"]);
    screen.wait_for("Alt+Shift+N to resume “paint the blue door”");
    screen.wait_for("ready");
    screen.send(ALT_SHIFT_N);
    screen.wait_gone("to resume “");
    screen.wait_for("paint the blue door");
    screen.wait_for("ready");
    quit(&mut screen);

    // Without an agent it stands in the list of them.
    let mut screen = machine.start(&[]);
    screen.wait_for("Resume “paint the blue door”");
    screen.send("blue door");
    screen.wait_gone("demo, no account needed");
    screen.send("\r");
    screen.wait_gone("Select agent");
    screen.wait_for("ready");
    screen.wait_for("paint the blue door");
    quit(&mut screen);

    let mut screen = machine.start(&["--new", "demo"]);
    screen.wait_for("ready");
    screen.wait_quiet();
    assert!(!screen.text().contains("to resume"), "{}", screen.text());
    quit(&mut screen);
}
