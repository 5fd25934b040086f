//! Tests of the dialog of all changes.

use crate::config::keymap::Context;
use crate::core::{Effect, ItemBody, ToolCall, ViewCommand};
use crate::model::{Action, DiffChange, FileDiff, ToolContent, ToolStatus};
use crate::ui::dialogs::ChangesDialog;
use crate::ui::dialogs::testkit::{Rig, views};
use crate::ui::dialogs::{focus, line_input};

fn rig() -> Rig {
    let mut rig = Rig::new();
    for path in ["src/a.rs", "src/b.rs", "docs/c.md"] {
        let mut call = ToolCall::new("t".into(), rig.now);
        call.status = ToolStatus::Completed;
        let change = DiffChange::Texts { old: Some("x".into()), new: "y".into() };
        call.content = vec![ToolContent::Diff(FileDiff { path: path.into(), change })];
        rig.session().transcript.push(1, ItemBody::Tool(Box::new(call)));
    }
    rig.act(Action::OpenChanges);
    rig
}

fn dialog(rig: &Rig) -> &ChangesDialog {
    match rig.layers.top::<ChangesDialog>() {
        Some(dialog) => dialog,
        other => panic!("{other:?}"),
    }
}

#[test]
fn keys_select_files_and_hunks() {
    let mut rig = rig();
    assert_eq!(focus(&rig), Context::Changes);
    for (action, selected) in [
        (Action::NextField, 1),
        (Action::NextField, 2),
        (Action::NextField, 2),
        (Action::PreviousField, 1),
        (Action::Mark(0), 0),
        (Action::Mark(99), 2),
    ] {
        rig.act(action);
        assert_eq!(dialog(&rig).selected, selected);
    }
    for (action, command) in [
        (Action::NextHunk, ViewCommand::JumpHunk(1)),
        (Action::PreviousHunk, ViewCommand::JumpHunk(-1)),
        (Action::Down, ViewCommand::ScrollDialog(1)),
        (Action::PageDown, ViewCommand::ScrollDialogPages(1)),
    ] {
        assert_eq!(views(&rig.act(action)), [command]);
    }
    rig.act(Action::ToggleContext);
    assert!(dialog(&rig).shows_context);
    rig.act(Action::OpenChanges);
    assert_eq!(focus(&rig), Context::Main);
}

#[test]
fn the_filter_receives_letters_only_while_it_is_edited() {
    let mut rig = rig();
    rig.type_line("b");
    assert!(dialog(&rig).filter.text.is_empty() && line_input(&rig).is_none());
    rig.act(Action::Filter);
    rig.type_line("SRC b");
    assert!(line_input(&rig).is_some());
    rig.act(Action::Down);
    assert_eq!(dialog(&rig).selected, 0, "one file fits");
    rig.act(Action::Accept);
    assert!(!dialog(&rig).is_filtering && !dialog(&rig).filter.text.is_empty());
    // Escape clears the filter first.
    rig.act(Action::Escape);
    assert_eq!(dialog(&rig), &ChangesDialog::default());
    rig.act(Action::Escape);
    assert_eq!(focus(&rig), Context::Main);
}

#[test]
fn the_shown_file_opens_in_the_editor() {
    let mut rig = rig();
    rig.act(Action::NextField);
    let opened = rig.act(Action::Accept);
    let [Effect::OpenFile { location, .. }] = opened.as_slice() else { panic!("{opened:?}") };
    assert_eq!((location.path.to_str(), location.line), (Some("/home/u/shop/src/a.rs"), None));
}
