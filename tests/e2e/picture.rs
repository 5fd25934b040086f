//! Images, with the protocols that the terminal supports.

use std::path::Path;

use super::screen::Screen;

/// The demo agent on an unknown terminal, after it was queried.
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
fn kitty_gets_the_image_once_and_it_is_deleted_at_exit() {
    let folder = tempfile::tempdir().unwrap();
    let mut screen = asked(folder.path());
    screen.send("\u{1b}_Gi=31;OK\u{1b}\\\u{1b}_Gi=32;OK\u{1b}\\\u{1b}[6;20;10t\u{1b}[?62;22c");
    screen.send("/image\r");
    screen.wait_for("png · 192×96");
    screen.wait_until("the picture", |screen| has(screen, "\u{10eeee}"));
    let sent = String::from_utf8_lossy(&screen.raw).into_owned();
    assert_eq!(sent.matches("a=T,U=1,c=20,r=5,f=32,o=z,t=d,s=").count(), 1, "20 cells of 10 pixels");
    let (before, after) = sent.split_once("\u{10eeee}").unwrap();
    assert!(before.contains("a=T,U=1"), "the image is sent before its placeholder");
    assert!(after.matches('\u{10eeee}').count() >= 5 * 20 - 1);
    // Quitting during a turn asks for confirmation.
    screen.wait_gone("Esc stop");
    screen.send("\u{11}");
    screen.wait_until("the end", |screen| has(screen, "\u{1b}_Ga=d,d=I,i="));
}

#[test]
fn sixel_is_sent_row_by_row_if_the_cell_size_is_known() {
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
