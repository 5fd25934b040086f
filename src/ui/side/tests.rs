//! The panel on wide screens, with and without each of its parts.

use crate::core::{ItemBody, ToolCall};
use crate::ui::Event;

use crate::model::{Action, DiffChange, FileDiff, ToolContent, ToolKind, ToolStatus};
use crate::ui::tests::fixture::{SIZES, Stage, ready, streaming, text, theme};
use crate::ui::update;

const WIDE: (u16, u16) = (200, 50);

fn edit(stage: &mut Stage, path: &str, old: Option<&str>, new: &str) {
    let mut call = ToolCall::new("t".into(), stage.now);
    (call.kind, call.status) = (ToolKind::Edit, ToolStatus::Completed);
    let change = DiffChange::Texts { old: old.map(Into::into), new: new.into() };
    call.content = vec![ToolContent::Diff(FileDiff { path: path.into(), change })];
    stage.session(|session| {
        session.transcript.push(1, ItemBody::Tool(Box::new(call)));
    });
    stage.state.chrome_changes += 1;
}

/// The panel's column of a wide screen.
fn panel(stage: &Stage) -> Vec<String> {
    let shown = text(&stage.draw(&mut stage.view(), &theme("dark"), WIDE));
    shown.lines().skip(2).map(|line| line.chars().skip(123).collect::<String>().trim().to_owned()).collect()
}

#[test]
fn the_panel_shows_plan_files_and_context() {
    let mut stage = streaming();
    edit(&mut stage, "/home/ada/code/shop/src/a.txt", Some("1\n2\n"), "1\n3\n4\n");
    edit(&mut stage, "/home/ada/notes.md", None, "1\n");
    let rows = panel(&stage);
    let wanted = [
        "plan 2/4",
        "✓ read the test",
        "✓ find the cause",
        "▸ change the check",
        "○ run all tests",
        "",
        "1 queued",
        "and add a test for the boundary",
        "",
        "2 files changed",
        "src/a.txt",
        "~/notes.md",
        "",
        "ctx ■■□□□□□□ 34k of 200k · $0.21",
    ];
    for (row, start) in rows.iter().zip(wanted) {
        assert!(row.starts_with(start) && row.is_empty() == start.is_empty(), "{start}: {rows:#?}");
    }
    assert!(rows[10].ends_with("+2 −1") && rows[11].ends_with("+1"), "{rows:#?}");
}

#[test]
fn without_a_plan_the_panel_shows_the_other_parts() {
    let mut stage = streaming();
    stage.session(|session| session.plans.clear());
    let rows = panel(&stage);
    assert!(rows[0] == "1 queued" && rows[3].starts_with("ctx "), "{rows:#?}");
    stage.session(|session| drop(session.outbox.take_queue()));
    let rows = panel(&stage);
    assert!(rows[0].starts_with("ctx "), "{rows:#?}");
    stage.session(|session| session.usage = None);
    let shown = text(&stage.draw(&mut stage.view(), &theme("dark"), WIDE));
    let bare = panel(&stage);
    assert!(bare.iter().take(30).all(String::is_empty), "{shown}");
}

#[test]
fn the_panel_is_updated_when_a_call_changes_a_file() {
    let mut stage = streaming();
    let mut view = stage.view();
    let dark = theme("dark");
    stage.draw(&mut view, &dark, WIDE);
    edit(&mut stage, "/home/ada/code/shop/src/a.txt", None, "1\n");
    let again = stage.draw(&mut view, &dark, WIDE);
    assert!(text(&again).contains("1 file changed"), "{}", text(&again));
    assert_eq!(again, stage.draw(&mut stage.view(), &dark, WIDE));
}

#[test]
fn the_panel_shows_the_files_of_the_tab_that_is_shown() {
    let mut stage = streaming();
    let first = stage.state.active;
    edit(&mut stage, "/home/ada/code/shop/src/a.txt", None, "1\n");
    let second = stage.state.add_session();
    stage.state.active = second;
    edit(&mut stage, "/home/ada/code/shop/src/b.txt", None, "1\n");
    let (mut view, dark) = (stage.view(), theme("dark"));
    for (key, file) in [(second, "src/b.txt"), (first, "src/a.txt"), (second, "src/b.txt")] {
        stage.state.active = key;
        stage.state.chrome_changes += 1;
        let shown = text(&stage.draw(&mut view, &dark, WIDE));
        let panel: Vec<String> = shown.lines().map(|line| line.chars().skip(123).collect()).collect();
        let files: Vec<&String> = panel.iter().filter(|line| line.contains(".txt")).collect();
        assert!(matches!(files.as_slice(), [line] if line.contains(file)), "{shown}");
    }
}

#[test]
fn a_completed_plan_leaves_the_panel_after_the_turn() {
    let mut stage = streaming();
    stage.session(|session| {
        session.turn = crate::core::Turn::Idle;
        session.outbox.hold();
        for plan in &mut session.plans {
            if let crate::model::PlanBody::Entries(steps) = &mut plan.body {
                for step in steps {
                    step.status = crate::model::PlanStatus::Completed;
                }
            }
        }
    });
    assert_eq!(panel(&stage)[0], "1 on hold");
    let shown = text(&stage.draw(&mut stage.view(), &theme("dark"), WIDE));
    assert!(!shown.contains("plan 4/4"), "{shown}");
}

#[test]
fn narrow_screens_and_empty_sessions_have_no_panel() {
    let mut stage = streaming();
    edit(&mut stage, "/home/ada/code/shop/src/a.txt", None, "1\n");
    for size in SIZES {
        let shown = text(&stage.draw(&mut stage.view(), &theme("dark"), size));
        assert!(!shown.contains("file changed"), "{shown}");
    }
    let mut empty = ready();
    empty.session(|session| {
        session.outbox.enqueue("later".into());
    });
    let shown = text(&empty.draw(&mut empty.view(), &theme("dark"), WIDE));
    assert!(!shown.lines().any(|line| line.trim_end().ends_with("  later")), "{shown}");
}

#[test]
fn the_queue_is_listed_in_the_panel_or_above_the_composer_but_not_in_both() {
    for (size, is_beside) in [(WIDE, true), ((120, 40), false)] {
        let mut stage = streaming();
        stage.session(|session| {
            session.outbox.take_queue();
            for text in ["first one\nmore", "second one"] {
                session.outbox.enqueue(text.to_owned());
            }
            session.draft.clear();
        });
        let shown = text(&stage.draw(&mut stage.view(), &theme("dark"), size));
        assert_eq!(shown.matches("first one").count(), 1, "{shown}");
        assert_eq!(shown.contains("2 queued"), is_beside, "{shown}");
        assert!(shown.contains("↑ edit last · F7 queue"), "{shown}");
    }
}

#[test]
fn a_prompt_that_is_being_edited_is_marked_with_its_keys() {
    let edit = |size| {
        let mut stage = streaming();
        stage.session(|session| {
            session.outbox.take_queue();
            for text in ["a", "b", "c", "d", "e"] {
                session.outbox.enqueue(text.to_owned());
            }
            session.draft.clear();
        });
        let _ = update(&mut stage.app, Event::Act(Action::HistoryPrevious), stage.now);
        text(&stage.draw(&mut stage.view(), &theme("dark"), size))
    };
    for size in [WIDE, (80, 24)] {
        let shown = edit(size);
        assert!(shown.contains("Enter save · Esc discard"), "{shown}");
    }
    assert!(edit(WIDE).contains("editing e"));
    assert_eq!(edit(WIDE).matches("Enter save").count(), 2, "in the panel and in the status line");
    let shown = edit((80, 24));
    let rows: Vec<&str> = shown.lines().filter(|row| row.starts_with(" editing  ")).collect();
    assert_eq!(rows, [" editing  e"], "in the last row, because its place is below: {shown}");
}
