use crate::model::{Cost, Unsaved, Usage};
use crate::ui::dialogs::HelpPage;
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
        assert!(rows.contains("Esc stop"), "{rows}");
        let parts = ["This prompt has several", "or clear your", "draft", "first."];
        assert!(parts.iter().all(|part| words.contains(part)), "{rows}");
        assert!(rows.contains("› "), "the composer is still visible:\n{rows}");
        stage.state.flash = None;
        assert!(shown(&stage, size).contains("Esc stop"));
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
    let why = "No space left on device (os error 28), while writing the session".to_owned();
    stage.state.unsaved = Some(Unsaved { why, ..Unsaved::default() });
    for size in [(40, 12), (80, 24), (120, 40)] {
        let rows = shown(&stage, size);
        assert!(rows.contains("not saved") && rows.contains("Esc stop"), "{rows}");
    }
}

/// The status line without the segments at the right.
fn footer(stage: &Stage, cols: u16) -> String {
    let rows = shown(stage, (cols, 24));
    rows.lines()
        .last()
        .unwrap_or_default()
        .split("   ")
        .map(str::trim)
        .filter(|part| !part.is_empty())
        .take(2)
        .collect::<Vec<_>>()
        .join(" | ")
        .trim()
        .to_owned()
}

#[test]
fn the_keys_of_the_focus_are_shown_and_dropped_from_the_right() {
    let mut stage = ready();
    stage.session(|session| session.usage = None);
    let all = "ready | Ctrl+P commands · Shift+Tab mode · F6 sessions";
    assert_eq!(footer(&stage, 100), all);
    assert_eq!(footer(&stage, 70), all);
    assert_eq!(footer(&stage, 65), "ready | Ctrl+P commands · Shift+Tab mode");
    assert_eq!(footer(&stage, 40), "ready | Ctrl+P commands");
    assert_eq!(footer(&stage, 30).split(" | ").next(), Some("ready"));
    stage.session(|session| session.history = vec!["earlier".into()]);
    assert!(footer(&stage, 100).contains("Shift+Tab mode · Ctrl+R history · F6 sessions"));
    stage.session(|session| session.draft = "fix it".into());
    assert_eq!(footer(&stage, 120), "ready | Enter send · Ctrl+J newline · Ctrl+G editor · Ctrl+P commands");
    stage.session(|session| session.draft = "!make".into());
    assert!(footer(&stage, 120).starts_with("ready | Enter run"));
    stage.session(|session| session.draft.clear());
    stage.user.is_browsing = true;
    assert_eq!(footer(&stage, 120), "ready | Enter expand · / search · y copy · l outline");
    let mut stage = streaming();
    stage.session(|session| {
        session.usage = None;
        session.draft.clear();
        drop(session.outbox.take_queue());
    });
    assert!(
        footer(&stage, 120).ends_with("| Ctrl+P commands · Tab browse · F6 sessions"),
        "{}",
        footer(&stage, 120)
    );
    stage.session(|session| {
        session.outbox.enqueue("more".into());
    });
    assert!(footer(&stage, 120).contains("F7 edit queue · Ctrl+P commands"), "{}", footer(&stage, 120));
    stage.session(|session| session.draft = "and more".into());
    assert!(footer(&stage, 120).contains("Enter queue"), "{}", footer(&stage, 120));
    // Dialogs and notices have the line for themselves.
    stage.state.flash = Some("Copied.".into());
    assert!(!footer(&stage, 120).contains("commands"));
    stage.state.flash = None;
    stage.layers.push(HelpPage { filter: crate::core::LineInput::default() });
    assert!(!footer(&stage, 120).contains("commands"));
}

#[test]
fn keys_are_shown_beside_context_and_cost() {
    let check = |stage: &mut Stage, keys: &[&str]| {
        stage.session(|session| {
            let cost = Some(Cost { amount: 0.21, currency: "USD".into() });
            session.usage = Some(Usage { used_tokens: 34_000, size_tokens: 200_000, cost });
        });
        let rows = shown(stage, (80, 24));
        let status = rows.lines().last().unwrap_or_default();
        assert!(keys.iter().all(|key| status.contains(key)), "{keys:?} in {status}");
        assert!(rows.contains("ctx 34k of 200k") && rows.contains("$0.21"), "{rows}");
    };
    let mut stage = ready();
    let says = crate::core::ItemBody::Answered {
        question: "a".into(),
        answer: "b".into(),
        by: crate::model::Decider::User,
    };
    stage.session(|session| {
        session.history = vec!["earlier".into()];
        session.transcript.push(1, says);
    });
    check(&mut stage, &["Ctrl+P commands", "Tab browse", "Shift+Tab mode", "F1 help"]);
    stage.session(|session| session.draft = "fix it".into());
    check(&mut stage, &["Enter send", "newline", "editor", "F1 help"]);
    stage.session(|session| session.draft.clear());
    stage.user.is_browsing = true;
    check(&mut stage, &["Enter expand", "/ search", "y copy", "l outline", "F1 help"]);
    let mut stage = streaming();
    stage.state.conns.values_mut().for_each(|conn| conn.spec.wire.is_strict = false);
    stage.session(|session| session.draft.clear());
    check(&mut stage, &["Esc stop", "commands", "F7 edit queue", "F1 help"]);
    stage.session(|session| drop(session.outbox.take_queue()));
    check(&mut stage, &["Esc stop", "commands", "Tab browse", "F1 help"]);
    stage.session(|session| session.draft = "more".into());
    check(&mut stage, &["Esc stop", "Enter queue", "newline", "F1 help"]);
}

#[test]
fn keys_of_dialogs_are_in_the_help_only_for_a_search() {
    let mut stage = ready();
    let help = |filter: &str| HelpPage { filter: crate::core::LineInput::new(filter) };
    stage.layers.push(help(""));
    let rows = shown(&stage, (200, 200));
    assert!(rows.contains("Prompt and turn") && rows.contains("Browsing the transcript"), "{rows}");
    assert!(!rows.contains("Permission requests") && !rows.contains("Session list"), "{rows}");
    stage.layers = help("export").into();
    assert!(shown(&stage, (80, 24)).contains("Session list"));
}
