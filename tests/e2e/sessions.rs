//! Saved sessions: resumed after a crash, read, renamed, exported and deleted.

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

/// Several runs of parlor on one machine.
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
        let home = self.home.path();
        let variables: [(&str, &Path); 3] =
            [("PARLOR_DATA_DIR", &data), ("PARLOR_DEMO_DIR", &demo), ("HOME", home)];
        Screen::start_with(folder, args, (36, 100), &variables)
    }

    fn start(&self, args: &[&str]) -> Screen {
        self.start_in(self.work.path(), args)
    }

    /// Starts parlor with the session list, without an agent.
    fn list(&self) -> Screen {
        let mut screen = self.start(&[]);
        screen.wait_for("Select agent");
        screen.send(ESC);
        screen.wait_gone("Select agent");
        screen.send(F6);
        screen.wait_for("This folder, newest first");
        screen
    }

    /// Sends a prompt to the demo agent, and quits.
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
    // The turn may be too short to be visible; while it is running, there is an animation.
    screen.wait_quiet();
}

fn quit(screen: &mut Screen) {
    screen.send(CTRL_Q);
    screen.send(CTRL_Q);
    assert!(screen.wait_exit().success());
}

#[test]
fn a_session_is_resumed_after_parlor_was_killed_during_a_turn() {
    let machine = Machine::new();
    let mut screen = machine.start(&["demo"]);
    screen.wait_for("ready");
    say(&mut screen, "remember the blue door");
    screen.send("/long 100000");
    screen.wait_for("/long 100000");
    screen.send("\r");
    screen.wait_for("working");
    // The state of the screen is saved within half a second.
    screen.wait_quiet_for_store();
    let pid = rustix::process::Pid::from_raw(screen.pid()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    screen.wait_exit();

    let mut screen = machine.list();
    screen.wait_for("cut, ");
    // The preview shows its end.
    screen.wait_for("Turn interrupted");
    screen.send("\r");
    screen.wait_gone("This folder, newest first");
    screen.wait_for("Turn interrupted");
    screen.wait_for("ready");
    say(&mut screen, "and now go on");
    quit(&mut screen);
}

#[test]
fn a_session_can_be_read_without_an_agent() {
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
fn sessions_are_renamed_exported_and_deleted_from_the_list() {
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
        let file = machine.home.path().join("parlor-second-one-here-renamed.md");
        std::fs::read_to_string(file).is_ok_and(|text| text.starts_with("# second one here renamed"))
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
fn a_title_is_sent_to_the_agent_now_or_when_the_session_is_opened() {
    let machine = Machine::new();
    machine.talk("paint the fence");
    let knows = |title: &str| {
        let files = std::fs::read_dir(machine.home.path().join("demo")).unwrap().flatten();
        let mut texts = files.filter_map(|file| std::fs::read_to_string(file.path()).ok());
        texts.any(|text| text.contains(title))
    };
    // The agent is not running, so the list shows that it does not have the title.
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

    // The agent is running for another session.
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
fn all_folders_are_searched_and_matches_are_shown_in_context() {
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
fn the_new_folder_is_offered_for_a_session_whose_folder_was_renamed() {
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
    screen.answer("1");
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

    // Without an agent it is in the agent picker.
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

#[test]
fn after_clear_the_newest_session_is_resumed() {
    let machine = Machine::new();
    let mut screen = machine.start(&["demo"]);
    screen.wait_for("ready");
    say(&mut screen, "the word is blue");
    screen.send("/clear");
    screen.wait_for("› /clear");
    screen.send("\r");
    screen.wait_for("Previous session: the word is blue");
    screen.wait_for("ready");
    say(&mut screen, "the word is green");
    quit(&mut screen);
    assert!(screen.text().contains("Resume this session with `parlor --resume "), "{}", screen.text());

    let mut screen = machine.start(&["--continue"]);
    screen.wait_for("the word is green");
    screen.wait_for("ready");
    assert!(!screen.text().contains("the word is blue"), "{}", screen.text());
    quit(&mut screen);
    // The former session can be resumed from the list.
    let mut screen = machine.start(&["--resume"]);
    screen.wait_for("This folder, newest first");
    screen.wait_for("Today");
    screen.send("blue");
    screen.wait_gone("the word is green");
    screen.send("\r");
    screen.wait_gone("This folder, newest first");
    screen.wait_for("the word is blue");
    screen.wait_for("ready");
    quit(&mut screen);
}
