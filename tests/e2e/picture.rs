//! Pictures, as the terminal says that it shows them.

use std::path::Path;

use super::screen::Screen;

/// The built-in agent on a terminal that is no known one, once it was asked what it can.
fn asked(folder: &Path) -> Screen {
    let none = Path::new("");
    let unknown = ["TMUX", "STY", "KONSOLE_VERSION", "TERM_PROGRAM", "LC_TERMINAL"].map(|name| (name, none));
    let mut screen = Screen::start_with(folder, &["demo"], (40, 100), &unknown);
    screen.wait_until("the questions", |screen| {
        let raw = String::from_utf8_lossy(&screen.raw);
        raw.contains("\u{1b}_Gi=31,s=1,v=1,a=q") && raw.contains("\u{1b}[16t") && raw.contains("\u{1b}[c")
    });
    screen.wait_for("ready");
    screen
}

fn has(screen: &Screen, text: &str) -> bool {
    String::from_utf8_lossy(&screen.raw).contains(text)
}

#[test]
fn kitty_is_given_the_picture_once_and_asked_to_forget_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut screen = asked(folder.path());
    screen.send("\u{1b}_Gi=31;OK\u{1b}\\\u{1b}_Gi=32;OK\u{1b}\\\u{1b}[6;20;10t\u{1b}[?62;22c");
    screen.send("/image\r");
    screen.wait_for("png · 192×96");
    screen.wait_until("the picture", |screen| has(screen, "\u{10eeee}"));
    let sent = String::from_utf8_lossy(&screen.raw).into_owned();
    assert_eq!(sent.matches("a=T,U=1,c=20,r=5,f=32,o=z,t=d,s=").count(), 1, "20 cells of 10 points");
    let (before, behind) = sent.split_once("\u{10eeee}").unwrap();
    assert!(before.contains("a=T,U=1"), "it is there before its place is");
    assert!(behind.matches('\u{10eeee}').count() >= 5 * 20 - 1);
    screen.send("\u{11}");
    screen.wait_until("the end", |screen| has(screen, "\u{1b}_Ga=d,d=I,i="));
}

#[test]
fn sixel_is_sent_row_by_row_where_cells_have_a_size() {
    let folder = tempfile::tempdir().unwrap();
    let mut screen = asked(folder.path());
    screen.send("\u{1b}[6;20;10t\u{1b}[?62;4;22c");
    screen.send("/image\r");
    screen.wait_for("png · 192×96");
    screen.wait_until("the picture", |screen| {
        let raw = String::from_utf8_lossy(&screen.raw);
        raw.matches("\u{1b}[20X\u{1b}P").count() >= 5
    });
}

#[test]
fn other_terminals_get_half_blocks() {
    let folder = tempfile::tempdir().unwrap();
    let mut screen = asked(folder.path());
    screen.send("\u{1b}[?62;22c/image\r");
    screen.wait_for("png · 192×96");
    screen.wait_for("▄▄▄▄");
    assert!(!has(&screen, "\u{10eeee}"));
}
