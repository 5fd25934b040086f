//! Long lines of diffs and code: wrapped, or cut.

use super::fixture::*;
use crate::core::{ItemBody, OpenRequestKind, ViewCommand};
use crate::model::{DiffChange, FileDiff, Role, ToolContent};

/// A permission request for an edit whose new line ends with `END`, after a message with such a line of code.
fn long_lines() -> Stage {
    let mut stage = permission();
    let now = stage.now;
    let long = format!("start {} END", "word ".repeat(40));
    stage.session(|session| {
        let edited = session.requests.front().and_then(|request| match &request.kind {
            OpenRequestKind::Permission { tool, .. } => Some(*tool),
            _ => None,
        });
        session.transcript.edit(edited.unwrap(), |item| {
            let ItemBody::Tool(tool) = &mut item.body else { panic!("it is a tool call") };
            tool.content = vec![ToolContent::Diff(FileDiff {
                path: "/home/ada/code/shop/notes".into(),
                change: DiffChange::Texts { old: Some("".into()), new: long.as_str().into() },
            })];
        });
        let code = message(Role::Agent, &format!("```\n{long}\n```"), now);
        session.transcript.push(1, ItemBody::Message(code));
    });
    stage
}

#[test]
fn the_wrap_toggle_cuts_long_lines_of_diffs_and_code_at_any_width() {
    let mut stage = long_lines();
    stage.session(|session| session.requests.clear());
    let mut view = stage.view();
    let shown = |view: &mut _, size| text(&stage.draw(view, &theme("dark"), size));
    let wrapped = shown(&mut view, (80, 40));
    assert_eq!((wrapped.matches("start").count(), wrapped.matches("END").count()), (2, 2), "{wrapped}");
    view.apply(ViewCommand::ToggleWrap);
    for size in [(80, 40), (60, 30), (80, 40)] {
        let cut = shown(&mut view, size);
        assert_eq!((cut.matches("start").count(), cut.matches("END").count()), (2, 0), "{cut}");
        assert_eq!(cut.lines().filter(|row| row.contains("word") && row.contains('…')).count(), 2, "{cut}");
    }
    view.apply(ViewCommand::ToggleWrap);
    assert_eq!(shown(&mut view, (80, 40)), wrapped);
}

#[test]
fn a_permission_request_wraps_always() {
    let stage = long_lines();
    let mut view = stage.view();
    view.apply(ViewCommand::ToggleWrap);
    let shown = text(&stage.draw(&mut view, &theme("dark"), (80, 60)));
    assert!(shown.contains("Allow") || shown.contains("Yes, this once"), "{shown}");
    assert_eq!(shown.matches("END").count(), 1, "only in the request: {shown}");
}
