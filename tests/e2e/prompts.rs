//! Queued prompts, and the search of earlier prompts.

use super::screen::Screen;

const ENTER: &str = "\r";
const UP: &str = "\u{1b}[A";
const F10: &str = "\u{1b}[21~";
const ESC: &str = "\u{1b}";
const CTRL_R: &str = "\u{12}";
const CTRL_Q: &str = "\u{11}";

#[test]
fn queued_prompts_are_edited_and_one_is_sent_now() {
    let folder = tempfile::tempdir().unwrap();
    let mut screen = Screen::start_sized(folder.path(), &["demo"], 30, 100);
    screen.wait_for("ready");
    screen.send("/edit\r");
    screen.wait_for("Allow this edit?");
    for prompt in ["first", "second", "third"] {
        screen.send(&format!("{prompt}{ENTER}"));
        screen.wait_for(prompt);
    }
    screen.wait_for("queued  first");
    // The request gives the keys to the composer while there is a draft.
    screen.send("x\u{7f}");
    screen.wait_for("Esc reject");
    screen.send(&format!("{F10}{UP}{UP}"));
    screen.wait_for("editing  second");
    screen.send(&format!(", better{ENTER}"));
    screen.wait_for("second, better");
    screen.wait_gone("editing");
    // The request has the keys again after a pause.
    screen.wait_for("Enter answer");
    screen.send("\u{1b}[18~");
    screen.wait_for("Queued prompts");
    screen.send("js");
    // It is sent, and both other prompts follow it in their order, which the list of prompts shows.
    screen.wait_for("▌ third");
    screen.wait_for("ready");
    screen.send(ESC);
    screen.wait_for("Press again");
    screen.send(ESC);
    screen.wait_for("─ Go back to a prompt ─");
    // The last row of the dialog.
    screen.wait_for("Enter select");
    let text = screen.text();
    // Only the columns of the dialog: the transcript behind it has the prompts, too.
    let rows = text.lines().skip_while(|row| !row.contains("─ Go back to a prompt ─"));
    let list: Vec<&str> = rows.map(|row| row.split('│').nth(1).unwrap_or_default()).collect();
    let place = |prompt: &str| list.iter().position(|row| row.contains(prompt));
    assert!(place("second, better").is_some() && place("second, better") < place("first"), "{text}");
    assert!(place("first") < place("third"), "{text}");
    screen.send(ESC);
    screen.wait_gone("─ Go back to a prompt ─");
    screen.send(CTRL_Q);
    assert!(screen.wait_exit().success());
}

#[test]
fn a_prompt_of_another_folder_is_found_and_its_session_is_opened() {
    let data = tempfile::tempdir().unwrap();
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let args = ["demo", "--data-dir", data.path().to_str().unwrap()];
    let mut screen = Screen::start_sized(folders[0].path(), &args, 30, 100);
    screen.wait_for("ready");
    screen.send("/help with the walnut\r");
    screen.wait_for("Plain text works too");
    screen.wait_for("ready");
    screen.send(CTRL_Q);
    assert!(screen.wait_exit().success());

    let mut screen = Screen::start_sized(folders[1].path(), &args, 30, 100);
    screen.wait_for("ready");
    screen.send(CTRL_R);
    screen.wait_for("Prompts of all folders");
    screen.wait_for("just now");
    screen.send("wlnt");
    screen.wait_for("/help with the walnut");
    screen.send(ENTER);
    screen.wait_gone("Prompts of all folders");
    screen.wait_for("› /help with the walnut");
    assert!(!screen.text().contains("Plain text works too"), "{}", screen.text());
    screen.send("\u{3}");
    screen.wait_for("Ask demo");
    // The cleared draft is a prompt of this folder now.
    screen.send(CTRL_R);
    screen.wait_for("Prompts of this folder");
    screen.send(CTRL_R);
    screen.wait_for("Prompts of all folders");
    screen.wait_for("just now");
    screen.send("walnut");
    screen.wait_for("› walnut");
    screen.send(&format!("{ESC}{ENTER}"));
    screen.wait_for("Plain text works too");
    screen.send(CTRL_Q);
    assert!(screen.wait_exit().success());
}
