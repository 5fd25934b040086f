use std::fmt::Write as _;

use super::*;
use crate::core::{ItemBody, ToolCall, ViewCommand};
use crate::model::{
    DiffChange, DiffPosition, FileDiff, LocatedDiff, PieceStart, ToolContent, ToolKind, ToolStatus,
};
use crate::ui::dialogs::ChangesDialog;
use crate::ui::diff::cache;
use crate::ui::render_context::Glyphs;
use crate::ui::screen::{DiffLayout, DiffRoom};
use crate::ui::tests::fixture::{SIZES, Stage, ready, text, theme};

fn stage() -> Stage {
    let mut stage = ready();
    edit(&mut stage, "src/auth.rs", "    a\n    old\n    b\n", "    a\n    new\n    more\n    b\n", 40);
    edit(&mut stage, "src/auth.rs", "x\n", "y\n", 190);
    edit(&mut stage, "notes.md", "", "# Notes\n", 1);
    let long = |word: &str| {
        (0..100).fold(String::new(), |mut text, at| {
            let word = if at % 30 == 10 { word } else { "line" };
            let _ = writeln!(text, "{word} {at}");
            text
        })
    };
    edit(&mut stage, "src/long.txt", &long("old"), &long("new"), 1);
    stage.layers.push(ChangesDialog::default());
    stage
}

fn edit(stage: &mut Stage, path: &str, old: &str, new: &str, line: u32) {
    let old = (!old.is_empty()).then(|| old.into());
    let diff = FileDiff { path: path.into(), change: DiffChange::Texts { old, new: new.into() } };
    let mut call = ToolCall::new("t".into(), stage.now);
    (call.kind, call.status) = (ToolKind::Edit, ToolStatus::Completed);
    call.content = vec![ToolContent::Diff(diff.clone())];
    let position = DiffPosition::Lines(vec![Some(PieceStart::at(line, true))]);
    call.positions = vec![LocatedDiff { diff, position, is_done: true }];
    stage.session(|session| {
        session.transcript.push(1, ItemBody::Tool(Box::new(call)));
    });
}

fn dialog(stage: &mut Stage) -> &mut ChangesDialog {
    match stage.layers.top_mut::<ChangesDialog>() {
        Some(dialog) => dialog,
        other => panic!("{other:?}"),
    }
}

fn shown(stage: &Stage, view: &mut ViewState, size: (u16, u16)) -> String {
    text(&stage.draw(view, &theme("dark"), size))
}

#[test]
fn files_are_shown_next_to_the_changes() {
    let mut stage = stage();
    dialog(&mut stage).selected = 1;
    for size in SIZES {
        insta::assert_snapshot!(format!("changes-{}x{}", size.0, size.1), stage.digest(|_| {}, size));
    }
}

#[test]
fn jumping_goes_from_hunk_to_hunk() {
    let mut stage = stage();
    dialog(&mut stage).selected = 2;
    let marked = |view: &mut ViewState, steps: i32, size: (u16, u16)| {
        view.apply(ViewCommand::JumpHunk(steps));
        let shown = shown(&stage, view, size);
        let line = shown.lines().find_map(|line| line.strip_prefix(Glyphs::rich().arrow)).unwrap_or_default();
        line.trim_end_matches('▐').trim().to_owned()
    };
    for size in [(80, 12), (80, 60)] {
        let mut view = stage.view();
        assert_eq!(marked(&mut view, 0, size), "", "no jump yet");
        assert_eq!(marked(&mut view, 1, size), "11 − old 10", "{size:?}");
        assert_eq!(marked(&mut view, 1, size), "41 − old 40", "even if all hunks are visible: {size:?}");
        assert_eq!(marked(&mut view, 1, size), "71 − old 70");
        assert_eq!(marked(&mut view, 3, size), "71 − old 70", "there is no hunk after the last one");
        assert_eq!(marked(&mut view, -2, size), "11 − old 10");
    }
    let mut view = stage.view();
    assert_eq!(marked(&mut view, 3, (80, 12)), "71 − old 70");
    view.dialog.scroll = 0;
    assert_eq!(marked(&mut view, 0, (80, 12)), "", "scrolling away clears the selection");
    assert_eq!(marked(&mut view, 1, (80, 12)), "11 − old 10");
}

#[test]
fn another_file_starts_at_the_top_and_can_show_all_lines() {
    let mut stage = stage();
    dialog(&mut stage).selected = 2;
    let mut view = stage.view();
    shown(&stage, &mut view, (80, 12));
    view.apply(ViewCommand::ScrollDialog(1000));
    assert!(shown(&stage, &mut view, (80, 12)).contains("… 26 unchanged lines"));
    dialog(&mut stage).selected = 0;
    assert!(shown(&stage, &mut view, (80, 12)).contains("# Notes"));
    dialog(&mut stage).selected = 2;
    assert!(shown(&stage, &mut view, (80, 12)).contains("… 7 unchanged lines"));
    dialog(&mut stage).shows_context = true;
    assert!(shown(&stage, &mut view, (80, 12)).contains("  1   line 0"));
}

#[test]
fn new_changes_appear_while_the_page_is_open() {
    let mut stage = stage();
    let mut view = stage.view();
    assert!(shown(&stage, &mut view, (120, 12)).contains("3 files"));
    edit(&mut stage, "zz.rs", "a\n", "b\n", 3);
    assert!(shown(&stage, &mut view, (120, 12)).contains("4 files"));
    dialog(&mut stage).filter.text = "zz".into();
    let filtered = shown(&stage, &mut view, (120, 12));
    assert!(filtered.contains("1 of 4 files") && filtered.contains("  3 − a"), "{filtered}");
    dialog(&mut stage).filter.text = "nowhere".into();
    assert!(shown(&stage, &mut view, (120, 12)).contains("No matching files."));
}

#[test]
fn a_new_file_is_shown_in_one_column_unless_the_user_decides() {
    let mut stage = stage();
    let last = |stage: &Stage, view: &mut ViewState| {
        shown(stage, view, (200, 60)).lines().last().unwrap().to_owned()
    };
    for (file, auto, room) in [(0, "side by side", DiffRoom::Narrow), (1, "unified", DiffRoom::Wide)] {
        dialog(&mut stage).selected = file;
        let mut view = stage.view();
        assert!(last(&stage, &mut view).contains(auto), "{}", last(&stage, &mut view));
        assert_eq!(view.screen.unwrap().diffs, room);
    }
    stage.diff_layout = DiffLayout::SideBySide;
    let mut view = stage.view();
    assert!(last(&stage, &mut view).contains("unified"), "{}", last(&stage, &mut view));
}

#[test]
fn a_session_without_changes_shows_a_message() {
    let mut stage = ready();
    stage.layers.push(ChangesDialog::default());
    assert!(shown(&stage, &mut stage.view(), (80, 24)).contains("No changes in this session yet."));
}

#[test]
fn only_visible_lines_of_long_changes_are_drawn() {
    let mut stage = ready();
    let lines = |word: &str| format!("{word}\n").repeat(20_000);
    edit(&mut stage, "huge.txt", &lines("old"), &lines("new"), 1);
    stage.layers.push(ChangesDialog::default());
    let mut view = stage.view();
    assert!(shown(&stage, &mut view, (80, 12)).contains("Computing diff…"), "the frame is not blocked");
    assert_eq!(cache::work_off(), 1);
    assert!(shown(&stage, &mut view, (80, 12)).contains("  1 − old"));
    let laid = view.changes.laid.as_ref().unwrap();
    assert_eq!((laid.len(), laid.hunks()), (40_000, vec![0]));
    view.apply(ViewCommand::ScrollDialog(i32::MAX));
    assert!(shown(&stage, &mut view, (80, 12)).contains("20000 + new"));
    assert_eq!(cache::work_off(), 0, "the result is cached");
}

#[test]
fn long_lines_can_be_scrolled_to_their_end() {
    let mut stage = ready();
    edit(&mut stage, "long.txt", "", &format!("{}end\n", "word ".repeat(300)), 1);
    stage.layers.push(ChangesDialog::default());
    let mut view = stage.view();
    assert!(!shown(&stage, &mut view, (40, 12)).contains("end"));
    view.apply(ViewCommand::ScrollDialogPages(100));
    assert!(shown(&stage, &mut view, (40, 12)).contains("end"));
}

#[test]
fn counts_of_many_files_appear_over_several_frames() {
    let mut stage = ready();
    for index in 0..6 {
        let lines = format!("{}\n", "line ".repeat(20)).repeat(1000);
        edit(&mut stage, &format!("f{index}.txt"), "", &lines, 1);
    }
    stage.layers.push(ChangesDialog::default());
    let mut view = stage.view();
    let counted = |shown: &str| shown.matches("+1000").count();
    let first = counted(&shown(&stage, &mut view, (120, 12)));
    assert!((1..6).contains(&first), "{first}");
    let mut frames = 0;
    while cache::work_off() > 0 {
        shown(&stage, &mut view, (120, 12));
        frames += 1;
    }
    assert!(frames > 0);
    assert_eq!(counted(&shown(&stage, &mut view, (120, 12))), 6);
}
