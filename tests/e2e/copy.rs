//! Copying: text is sent to the terminal completely and without soft line breaks.

use std::path::Path;

use super::screen::Screen;

const CTRL_Q: &str = "\u{11}";

fn demo(folder: &tempfile::TempDir, cols: u16) -> Screen {
    // Only the clipboard of the terminal is available.
    let variables = [("SSH_TTY", "/dev/pts/0"), ("TMUX", ""), ("STY", "")];
    let variables = variables.map(|(name, value)| (name, Path::new(value)));
    let mut screen = Screen::start_with(folder.path(), &["demo"], (24, cols), &variables);
    screen.wait_for("ready");
    screen
}

fn quit(screen: &mut Screen) {
    screen.send(CTRL_Q);
    screen.send(CTRL_Q);
    assert!(screen.wait_exit().success());
}

/// The position of a text on the screen, from 1, as in mouse reports.
fn place_of(screen: &Screen, text: &str) -> (usize, usize) {
    let shown = screen.text();
    let (row, line) = shown.lines().enumerate().find(|(_, line)| line.contains(text)).unwrap();
    let before = line.split(text).next().unwrap();
    (before.chars().count() + 1, row + 1)
}

fn mouse(screen: &mut Screen, button: u8, (col, row): (usize, usize), end: char) {
    screen.send(&format!("\u{1b}[<{button};{col};{row}{end}"));
}

/// The base64 of a text, as in OSC 52.
fn encoded(text: &str) -> String {
    const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for three in text.as_bytes().chunks(3) {
        let bits =
            three.iter().fold(0_u32, |all, byte| all << 8 | u32::from(*byte)) << (8 * (3 - three.len()));
        for place in 0..4 {
            let ch = char::from(LETTERS[(bits >> (18 - 6 * place) & 63) as usize]);
            out.push(if place > three.len() { '=' } else { ch });
        }
    }
    out
}

fn wait_for_copy(screen: &mut Screen, text: &str) {
    let sequence = format!("\u{1b}]52;c;{}\u{7}", encoded(text));
    screen.wait_until(&format!("a copy of {text:?}"), |screen| {
        screen.raw.windows(sequence.len()).any(|window| window == sequence.as_bytes())
    });
}

#[test]
fn wrapped_prompts_are_copied_as_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let mut screen = demo(&folder, 44);
    screen.send("/nothing one two three four five six seven eight nine ten eleven twelve");
    screen.send("\r");
    screen.wait_for("▌ /nothing one");
    screen.wait_for("ready");
    let prompt = place_of(&screen, "▌ /nothing one");
    let from = (prompt.0 + "▌ /nothing ".chars().count(), prompt.1);
    mouse(&mut screen, 0, from, 'M');
    let to = (12, from.1 + 1);
    mouse(&mut screen, 32, to, 'M');
    mouse(&mut screen, 0, to, 'm');
    screen.wait_for("Sent");
    let shown = screen.text();
    let second = shown.lines().nth(from.1).unwrap().trim_start_matches([' ', '▌']).to_owned();
    let first =
        shown.lines().nth(from.1 - 1).unwrap().split_once("/nothing ").unwrap().1.trim_end().to_owned();
    let taken: String = second.chars().take(9).collect();
    wait_for_copy(&mut screen, &format!("{first} {taken}"));
    quit(&mut screen);
}

#[test]
fn code_is_copied_with_a_key_and_mouse_capture_can_be_disabled() {
    let folder = tempfile::tempdir().unwrap();
    let mut screen = demo(&folder, 80);
    screen.send("/long");
    screen.send("\r");
    screen.wait_for("ready");
    screen.send("\u{1b}x");
    screen.wait_for("mouse capture off");
    assert!(screen.raw.windows(8).any(|window| window == b"\x1b[?1000l"));
    screen.send("\u{1b}x");
    screen.wait_gone("mouse capture off");
    screen.send("\u{1b}c");
    screen.wait_for("As plain text");
    screen.send("\u{1b}");
    screen.wait_gone("As plain text");
    quit(&mut screen);
}

#[test]
fn double_click_selects_a_word_and_triple_click_a_line() {
    let folder = tempfile::tempdir().unwrap();
    let mut screen = demo(&folder, 44);
    let prompt = "/nothing one two-three four five six seven eight nine ten eleven twelve";
    screen.send(prompt);
    screen.send("\r");
    screen.wait_for("▌ /nothing one");
    screen.wait_for("ready");
    let click = |screen: &mut Screen, at: (usize, usize)| {
        mouse(screen, 0, at, 'M');
        mouse(screen, 0, at, 'm');
    };
    let at = place_of(&screen, "four");
    (0..2).for_each(|_| click(&mut screen, at));
    wait_for_copy(&mut screen, "four");
    // The line of the prompt, which wraps.
    let at = place_of(&screen, "two-three");
    (0..3).for_each(|_| click(&mut screen, at));
    wait_for_copy(&mut screen, prompt);
    quit(&mut screen);
}
