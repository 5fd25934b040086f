//! Typing while a permission request opens: no key answers it, and no letter is lost.

use std::time::Duration;

use super::screen::Screen;

const ESC: &str = "\u{1b}";
const CTRL_Q: &str = "\u{11}";

/// Types at a constant pace.
fn type_at(screen: &mut Screen, text: &str, pace_ms: u64) {
    for ch in text.chars() {
        screen.send(&ch.to_string());
        std::thread::sleep(Duration::from_millis(pace_ms));
    }
}

/// Types sentences into each request of the demo agent, and checks that they are queued completely.
fn check(waits_for_request: bool, sentences: &[(&str, u64)]) {
    let folder = tempfile::tempdir().unwrap();
    let mut screen = Screen::start_sized(folder.path(), &["demo"], 30, 100);
    screen.wait_for("ready");
    for (sentence, pace_ms) in sentences {
        screen.send("/edit\r");
        if waits_for_request {
            screen.wait_for("Allow this edit?");
        }
        type_at(&mut screen, sentence, *pace_ms);
        screen.send("\r");
        screen.wait_for("Allow this edit?");
        screen.wait_for(&format!("queued  {sentence}"));
        assert!(screen.text().contains("answer required"), "{}", screen.text());
        // Without a draft, the request accepts keys after a pause.
        screen.wait_for("Esc reject");
        screen.send(ESC);
        screen.wait_gone("Allow this edit?");
        screen.wait_for(&format!("▌ {sentence}"));
        screen.wait_for("ready");
        assert!(screen.text().contains("You rejected the edit"), "{}", screen.text());
        assert!(!screen.text().contains("The greeting is changed"), "{}", screen.text());
    }
    screen.send(CTRL_Q);
    assert!(screen.wait_exit().success());
}

#[test]
fn a_sentence_typed_into_an_opening_request_is_queued() {
    check(true, &[("1: yes", 30), ("2 of 3", 80), ("n 1", 200)]);
}

#[test]
fn a_request_that_opens_during_a_sentence_is_not_answered() {
    check(false, &[("yes, 1 more word", 30), ("2: n, y", 100), ("1 f", 200)]);
}
