use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use super::*;
use crate::app::Session;
use crate::model::{DiffChange, Raw, SessionKey, SessionPlace};
use crate::ui::theme::Theme;

fn look(theme: &Theme) -> Look<'_> {
    Look::new(theme, Path::new("/home/ada"), Instant::now())
}

fn session() -> Session {
    let place = SessionPlace { cwd: "/home/ada".into(), ..SessionPlace::default() };
    Session::new(SessionKey(1), place)
}

fn body(tool: &ToolCall, cols: u16) -> Vec<String> {
    let theme = Theme::plain();
    let mut body = ToolBody::of(tool, &session(), &look(&theme), cols);
    if body.is_coming {
        crate::ui::diff::desk::work_off();
        body = ToolBody::of(tool, &session(), &look(&theme), cols);
    }
    let lines = body.lines(0..body.len(), &look(&theme));
    assert_eq!(lines.len(), body.len());
    for line in &lines {
        assert!(line.width() <= usize::from(cols), "{line}");
    }
    lines.iter().map(|line| line.to_string().trim_end().to_owned()).collect()
}

fn edit(old: &str, new: &str) -> ToolCall {
    let mut tool = ToolCall::new("t".into(), Instant::now());
    let change = DiffChange::Texts { old: Some(Arc::from(old)), new: Arc::from(new) };
    tool.content = vec![ToolContent::Diff(FileDiff { path: "/home/ada/a.unknown".into(), change })];
    tool
}

#[test]
fn a_body_drawn_again_is_the_same_and_follows_changes() {
    let tool = edit("a\n", "b\n");
    let first = body(&tool, 30);
    assert_eq!(first, ["− a", "+ b"]);
    assert_eq!(body(&tool, 30), first);
    assert_eq!(body(&edit("a\n", "c\n"), 30), ["− a", "+ c"]);
    assert_eq!(body(&tool, 30), first);
}

#[test]
fn a_body_names_the_file_only_where_there_are_several() {
    let mut tool = edit("", "b\n");
    let new = |path: &str| {
        let change = DiffChange::Texts { old: None, new: Arc::from("b\n") };
        ToolContent::Diff(FileDiff { path: path.into(), change })
    };
    tool.content = vec![new("/home/ada/a.unknown")];
    assert_eq!(body(&tool, 30), ["a.unknown  new file", "  1 + b"]);
    tool.kind = ToolKind::Edit;
    assert_eq!(body(&tool.clone(), 30), ["  1 + b"], "the dialog's head says what is created");
    tool.content.push(new("/home/ada/b.unknown"));
    assert_eq!(body(&tool, 30), ["a.unknown  new file", "  1 + b", "b.unknown  new file", "  1 + b"]);
}

#[test]
fn every_row_of_a_long_change_is_there() {
    let new = "row\n".repeat(5000);
    assert_eq!(body(&edit("x\n", &new), 40).len(), 5001);
}

#[test]
fn without_anything_else_the_input_is_shown() {
    let mut tool = ToolCall::new("t".into(), Instant::now());
    assert!(body(&tool, 30).is_empty());
    tool.raw_input = Some(Raw(Arc::from("{\"key\":\"a long value that wraps\"}")));
    assert_eq!(body(&tool, 20).join(""), "{\"key\":\"a long valuethat wraps\"}");
    tool.input.url = Some("https://e.org".into());
    assert_eq!(body(&tool, 30), ["https://e.org"]);
}

#[test]
fn sizes_of_base64_are_those_of_the_data() {
    assert_eq!(base64_bytes("TWFu"), 3);
    assert_eq!(base64_bytes("TWE="), 2);
    assert_eq!(base64_bytes("TQ=="), 1);
    assert_eq!(base64_bytes(""), 0);
}
