//! Several tabs: two agents at once, background tabs, and no remaining processes.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use super::ceiling::scripted_agent;
use super::screen::Screen;
use super::session::CRASHES_ONCE;
use super::signals::assert_all_gone;

const ESC: &str = "\u{1b}";
const CTRL_Q: &str = "\u{11}";
const CTRL_END: &str = "\u{1b}[1;5F";

pub fn alt(key: &str) -> String {
    format!("{ESC}{key}")
}

/// The processes with this parent, without git, which captures the folder.
pub fn children(parent: i32) -> Vec<i32> {
    let is_child = |pid: &i32| {
        fs::read_to_string(format!("/proc/{pid}/stat")).ok().is_some_and(|stat| {
            let rest = stat.rsplit_once(')').map(|(_, rest)| rest.to_owned()).unwrap_or_default();
            let is_its = rest.split_whitespace().nth(1) == Some(&parent.to_string());
            is_its && ![") Z ", " (git) ", " (snapshots) "].iter().any(|part| stat.contains(part))
        })
    };
    let all = fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    all.filter(is_child).collect()
}

fn wait_for_children(screen: &Screen, count: usize) -> Vec<i32> {
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let found = children(screen.pid());
        if found.len() == count {
            return found;
        }
        assert!(Instant::now() < deadline, "{} agents instead of {count}:\n{}", found.len(), screen.text());
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Two demo agents with separate processes and folders; the tab of the second one is active.
fn two_tabs(folder: &Path, size: (u16, u16)) -> Screen {
    let (one, two) = (folder.join("one"), folder.join("two"));
    fs::create_dir_all(&one).unwrap();
    fs::create_dir_all(&two).unwrap();
    let mut screen = Screen::start_sized(&one, &["demo"], size.0, size.1);
    open_second(&mut screen);
    screen
}

/// The same with a data folder that outlives the screen.
fn two_tabs_in(folder: &Path, data: &Path) -> Screen {
    let (one, two) = (folder.join("one"), folder.join("two"));
    fs::create_dir_all(&one).unwrap();
    fs::create_dir_all(&two).unwrap();
    let mut screen = Screen::start_with(&one, &["demo"], (24, 80), &[("PARLOR_DATA_DIR", data)]);
    open_second(&mut screen);
    screen
}

fn open_second(screen: &mut Screen) {
    screen.wait_for("ready");
    screen.send("\u{10}");
    screen.wait_for("─ Commands ─");
    screen.send("another folder");
    screen.wait_for("New tab in another folder");
    screen.wait_for("1 of ");
    screen.send("\r");
    screen.wait_for("New tab in folder");
    screen.send("../two");
    screen.wait_for("typed path");
    screen.send("\r");
    screen.wait_for("New tab in two");
    screen.send("demo");
    screen.wait_for("› demo");
    screen.send("\r");
    screen.wait_for("▸2");
    screen.wait_for("ready");
}

pub fn prompt(screen: &mut Screen, text: &str) {
    screen.send(text);
    screen.wait_for(text);
    screen.send("\r");
}

fn quit(screen: &mut Screen) {
    screen.send(CTRL_Q);
    screen.send(CTRL_Q);
    assert!(screen.wait_exit().success());
    assert!(!screen.is_alternate());
}

#[test]
fn an_agent_streams_in_the_background_while_another_gets_a_prompt() {
    let folder = tempfile::tempdir().unwrap();
    let mut screen = two_tabs(folder.path(), (24, 80));
    let agents = wait_for_children(&screen, 2);
    prompt(&mut screen, "/long 100000");
    screen.wait_for("Esc stop");
    screen.send(&alt("1"));
    screen.wait_for("▸1");
    screen.wait_gone("Esc stop");
    prompt(&mut screen, "/help");
    screen.wait_for("Plain text works too");
    screen.wait_for("ready");
    // The other agent is working or has ended its turn, as its symbol shows.
    screen.wait_until("the mark of the second tab", |screen| {
        screen.text().lines().next().is_some_and(|bar| bar.contains("2●") || bar.contains("2✓"))
    });
    screen.send(&alt("2"));
    screen.wait_for("▸2");
    // Each tab shows its session.
    screen.wait_gone("Plain text works too");
    quit(&mut screen);
    assert_all_gone(&agents);
}

#[test]
fn a_permission_of_a_background_tab_is_answered_from_the_list() {
    let folder = tempfile::tempdir().unwrap();
    let mut screen = two_tabs(folder.path(), (24, 80));
    prompt(&mut screen, "/edit");
    screen.send(&alt("1"));
    screen.wait_for("1 pending");
    assert!(
        !screen.text().contains("Allow this edit?"),
        "it is not shown in the active tab:\n{}",
        screen.text()
    );
    // Typed text is inserted into the prompt of the active tab.
    screen.send("1");
    screen.wait_for("› 1");
    screen.send(&alt("a"));
    screen.wait_for("Inbox");
    screen.wait_for("Allow this edit?");
    screen.send("1");
    screen.wait_for("tab 2");
    screen.answer("1");
    screen.wait_for("Turn finished");
    screen.send("\r");
    screen.wait_for("▸2");
    screen.wait_for("Done.");
    quit(&mut screen);
}

#[test]
fn closing_a_tab_stops_only_its_agent() {
    let folder = tempfile::tempdir().unwrap();
    let mut screen = two_tabs(folder.path(), (24, 80));
    let both = wait_for_children(&screen, 2);
    screen.send(&alt("q"));
    screen.wait_gone("▸2");
    let left = wait_for_children(&screen, 1);
    let gone: Vec<i32> = both.into_iter().filter(|pid| !left.contains(pid)).collect();
    assert_all_gone(&gone);
    prompt(&mut screen, "/help");
    screen.wait_for("Plain text works too");
    quit(&mut screen);
    assert_all_gone(&left);
}

#[test]
fn a_crash_in_a_background_tab_is_marked_and_the_active_tab_is_unchanged() {
    let folder = tempfile::tempdir().unwrap();
    let (one, two) = (folder.path().join("one"), folder.path().join("two"));
    fs::create_dir_all(&one).unwrap();
    fs::create_dir_all(&two).unwrap();
    let script = folder.path().join("script");
    fs::write(&script, CRASHES_ONCE).unwrap();
    let agent = scripted_agent();
    let mut screen = Screen::start(&one, &["--", agent.to_str().unwrap(), script.to_str().unwrap()]);
    open_second(&mut screen);
    screen.send(&alt("1"));
    screen.wait_for("▸1");
    prompt(&mut screen, "first prompt");
    screen.wait_for("Esc stop");
    screen.send(&alt("2"));
    screen.wait_for("▸2");
    screen.send("half a thought");
    screen.wait_for("half a thought");
    fs::write(folder.path().join("crash"), "").unwrap();
    screen.wait_for("1✗");
    assert!(screen.text().contains("▸2") && screen.text().contains("half a thought"), "{}", screen.text());
    screen.send(&alt("a"));
    screen.wait_for("exit code 3");
    screen.send("\r");
    screen.wait_for("▸1");
    // Its agent was restarted.
    screen.wait_for("last prompt failed");
    prompt(&mut screen, "second prompt");
    screen.wait_for("Running again.");
    quit(&mut screen);
}

#[test]
fn a_killed_parlor_leaves_both_sessions_saved_and_no_agent() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    fs::create_dir_all(&data).unwrap();
    let mut screen = two_tabs_in(folder.path(), &data);
    let agents = wait_for_children(&screen, 2);
    prompt(&mut screen, "second of two");
    screen.wait_for("ready");
    screen.send(&alt("1"));
    screen.wait_for("▸1");
    prompt(&mut screen, "first of two");
    screen.wait_for("ready");
    // The state of the screen is saved within half a second.
    std::thread::sleep(Duration::from_millis(700));
    let pid = rustix::process::Pid::from_raw(screen.pid()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    screen.wait_exit();
    assert_all_gone(&agents);
    for (name, words) in [("one", "first of two"), ("two", "second of two")] {
        let place = folder.path().join(name);
        let variables: &[(&str, &Path)] = &[("PARLOR_DATA_DIR", &data)];
        let mut again = Screen::start_with(&place, &["--continue"], (24, 80), variables);
        again.wait_for(words);
        again.wait_for("has not received this history");
        quit(&mut again);
    }
}

#[test]
fn tabs_are_visible_on_the_smallest_screen() {
    let folder = tempfile::tempdir().unwrap();
    let mut screen = two_tabs(folder.path(), (12, 40));
    prompt(&mut screen, "/help");
    screen.wait_for("ready");
    screen.send(CTRL_END);
    screen.send(&alt("1"));
    screen.wait_for("▸1");
    // Clicks the second tab of the bar.
    let bar = screen.text().lines().next().unwrap_or_default().to_owned();
    let column = bar.chars().position(|ch| ch == '2').unwrap() + 1;
    screen.send(&format!("{ESC}[<0;{column};1M{ESC}[<0;{column};1m"));
    screen.wait_for("▸2");
    quit(&mut screen);
}

#[test]
fn the_tabs_of_the_last_run_are_reopened() {
    let (folder, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let check = |screen: &mut Screen| {
        screen.wait_for("▸1");
        screen.wait_for("first words");
        screen.wait_for("ready");
        screen.send(&alt("2"));
        screen.wait_for("▸2");
        screen.wait_for("second words");
        screen.wait_for("ready");
        screen.send(&alt("1"));
        screen.wait_for("▸1");
        screen.wait_for("first words");
    };
    let one = folder.path().join("one");
    fs::create_dir_all(&one).unwrap();
    fs::create_dir_all(folder.path().join("two")).unwrap();
    let demo = data.path().join("demo");
    let start = |args: &[&str]| {
        let variables: [(&str, &Path); 2] = [("PARLOR_DATA_DIR", data.path()), ("PARLOR_DEMO_DIR", &demo)];
        Screen::start_with(&one, args, (24, 80), &variables)
    };
    let mut screen = start(&["demo"]);
    open_second(&mut screen);
    prompt(&mut screen, "second words");
    screen.wait_gone("› second words");
    screen.wait_for("ready");
    screen.send(&alt("1"));
    screen.wait_for("▸1");
    prompt(&mut screen, "first words");
    screen.wait_gone("› first words");
    screen.wait_for("ready");
    screen.send(CTRL_Q);
    assert!(screen.wait_exit().success());
    let reported = screen.text();
    assert!(reported.contains("Reopen all 2 tabs with `parlor --continue`"), "{reported}");
    assert_eq!(reported.matches("parlor --resume ").count(), 2, "{reported}");

    let mut screen = start(&["--continue"]);
    check(&mut screen);
    // The same after a crash.
    screen.wait_quiet_for_store();
    let pid = rustix::process::Pid::from_raw(screen.pid()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    screen.wait_exit();
    let mut screen = start(&["--continue"]);
    check(&mut screen);
    quit(&mut screen);
}
