use crate::ui::tests::fixture::{Stage, ready, streaming, text, theme};

fn shown(stage: &Stage, size: (u16, u16)) -> String {
    text(&stage.draw(&mut stage.view(), &theme("dark"), size))
}

#[test]
fn a_long_notice_wraps_and_keeps_the_key_that_stops_the_turn() {
    let notice = "This prompt has several lines. Send or clear your draft first.";
    for size in [(40, 12), (60, 20), (80, 24), (200, 60)] {
        let mut stage = streaming();
        stage.state.flash = Some(notice.into());
        let rows = shown(&stage, size);
        let words: Vec<&str> = rows.split_whitespace().collect();
        let words = words.join(" ");
        assert!(rows.contains("esc stop"), "{rows}");
        let parts = ["This prompt has several", "or clear your", "draft", "first."];
        assert!(parts.iter().all(|part| words.contains(part)), "{rows}");
        assert!(rows.contains("› "), "the composer is still visible:\n{rows}");
        stage.state.flash = None;
        assert!(shown(&stage, size).contains("esc stop"));
    }
}

#[test]
fn a_notice_that_is_too_long_is_truncated() {
    let mut stage = ready();
    stage.state.flash = Some("word ".repeat(100));
    let rows = shown(&stage, (40, 12));
    assert_eq!(rows.matches("word word").count(), 9, "three rows:\n{rows}");
    assert!(rows.trim_end().ends_with('…'), "{rows}");
}

#[test]
fn the_reason_why_nothing_is_saved_leaves_room_for_the_activity() {
    let mut stage = streaming();
    stage.state.unsaved = Some("No space left on device (os error 28), while writing the session".into());
    for size in [(40, 12), (80, 24), (120, 40)] {
        let rows = shown(&stage, size);
        assert!(rows.contains("not saved") && rows.contains("esc stop"), "{rows}");
    }
}
