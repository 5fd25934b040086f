use std::path::Path;
use std::time::Instant;

use super::layout::{Context, Layout};
use super::*;
use crate::core::{ItemBody, Session};
use crate::model::{DiffChange, Raw, ResourceLink, SessionKey, SessionWorkspace, ToolContent, ToolStatus};
use crate::ui::session_view::SessionView;
use crate::ui::theme::Theme;

fn render(theme: &Theme) -> RenderContext<'_> {
    RenderContext::new(theme, Path::new("/home/ada"), Instant::now())
}

fn session() -> Session {
    let position = SessionWorkspace { cwd: "/home/ada".into(), ..SessionWorkspace::default() };
    Session::new(SessionKey(1), position)
}

fn body(tool: &ToolCall, cols: u16) -> Vec<String> {
    let theme = Theme::plain();
    let mut body = ToolBody::of(tool, &session(), &render(&theme), cols);
    if body.is_coming {
        crate::ui::diff::cache::work_off();
        body = ToolBody::of(tool, &session(), &render(&theme), cols);
    }
    let lines = body.lines(0..body.len(), &render(&theme));
    assert_eq!(lines.len(), body.len());
    for line in &lines {
        assert!(line.width() <= usize::from(cols), "{line}");
    }
    lines.iter().map(|line| line.to_string().trim_end().to_owned()).collect()
}

fn edit(old: &str, new: &str) -> ToolCall {
    let mut tool = ToolCall::new("t".into(), Instant::now());
    let change = DiffChange::Texts { old: Some(old.into()), new: new.into() };
    tool.content = vec![ToolContent::Diff(FileDiff { path: "/home/ada/a.unknown".into(), change })];
    tool
}

#[test]
fn a_redrawn_body_is_the_same_and_follows_changes() {
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
        let change = DiffChange::Texts { old: None, new: "b\n".into() };
        ToolContent::Diff(FileDiff { path: path.into(), change })
    };
    tool.content = vec![new("/home/ada/a.unknown")];
    assert_eq!(body(&tool, 30), ["a.unknown  new file", "  1 + b"]);
    tool.kind = ToolKind::Edit;
    assert_eq!(body(&tool.clone(), 30), ["  1 + b"], "the dialog's head names the new file");
    tool.content.push(new("/home/ada/b.unknown"));
    assert_eq!(body(&tool, 30), ["a.unknown  new file", "  1 + b", "b.unknown  new file", "  1 + b"]);
}

#[test]
fn every_row_of_a_long_change_is_shown() {
    let new = "row\n".repeat(5000);
    assert_eq!(body(&edit("x\n", &new), 40).len(), 5001);
}

#[test]
fn a_call_without_other_content_shows_its_input() {
    let mut tool = ToolCall::new("t".into(), Instant::now());
    assert!(body(&tool, 30).is_empty());
    tool.raw_input = Some(Raw("{\"key\":\"a long value that wraps\"}".into()));
    assert_eq!(body(&tool, 20), ["key:", "  a long value that", "  wraps"]);
}

#[test]
fn sizes_of_base64_are_those_of_the_data() {
    assert_eq!(base64_bytes("TWFu"), 3);
    assert_eq!(base64_bytes("TWE="), 2);
    assert_eq!(base64_bytes("TQ=="), 1);
    assert_eq!(base64_bytes(""), 0);
}

/// A call as shown in the transcript.
fn rows(tool: ToolCall, is_open: Option<bool>) -> Vec<String> {
    let theme = Theme::plain();
    let render = render(&theme);
    let mut session = session();
    let id = session.transcript.push(1, ItemBody::Tool(Box::new(tool)));
    let mut view = SessionView::default();
    view.set_open(id, is_open);
    let item = session.transcript.get(id).expect("it was pushed");
    let mut screens = layout::Screens::new();
    let mut context =
        Context { session: &session, view: &view, render: &render, cols: 80, screens: &mut screens };
    let mut layout = Layout::default();
    layout.update(item, false, &mut context);
    for index in 0..layout.pieces.len() {
        layout.draw(index, item, &mut context);
    }
    let lines = layout.pieces.iter().flat_map(|piece| piece.lines.iter().flatten());
    lines.map(|line| line.to_string().trim().to_owned()).collect()
}

#[test]
fn a_call_without_a_reported_end_has_no_check_mark() {
    let mut tool = ToolCall::new("t".into(), Instant::now());
    (tool.kind, tool.status) = (ToolKind::Execute, ToolStatus::Completed);
    tool.input.command = Some("sleep 60".into());
    let theme = Theme::plain();
    let glyphs = render(&theme).glyphs;
    assert!(rows(tool.clone(), None)[0].starts_with(glyphs.check));
    tool.is_status_assumed = true;
    assert!(rows(tool, None)[0].starts_with(glyphs.dot));
}

#[test]
fn a_failed_command_shows_the_reason_before_its_last_lines() {
    let mut tool = ToolCall::new("t".into(), Instant::now());
    (tool.kind, tool.status, tool.exit_code) = (ToolKind::Execute, ToolStatus::Failed, Some(101));
    tool.input.command = Some("cargo test".into());
    let noise = (0..30).map(|line| format!("note {line}")).collect::<Vec<_>>().join("\n");
    let output = format!(
        "Compiling shop\nerror[E0425]: cannot find value `x`\n{noise}\nerror: could not compile `shop`\n"
    );
    tool.content = vec![ToolContent::Block(ContentBlock::Text(output.into()))];
    let shown = rows(tool.clone(), None);
    assert!(shown[0].contains("cargo test") && shown[0].contains("exit 101"), "{shown:?}");
    assert_eq!(&shown[1..4], ["error[E0425]: cannot find value `x`", "… 25 lines", "note 23"]);
    assert_eq!(
        (shown.last().map(String::as_str), shown.len()),
        (Some("error: could not compile `shop`"), 11)
    );
    let closed = rows(tool.clone(), Some(false));
    assert_eq!(closed.get(1..), Some(["error[E0425]: cannot find value `x`".to_owned()].as_slice()));
    (tool.status, tool.exit_code) = (ToolStatus::Completed, Some(0));
    assert_eq!(rows(tool, None).get(1).map(String::as_str), Some("Compiling shop"), "it succeeded");
}

#[test]
fn a_resource_links_to_its_location() {
    let theme = Theme::plain();
    let link = |uri: &str| {
        let uri = uri.to_owned();
        let link = ResourceLink { name: "The name".to_owned(), uri, ..ResourceLink::default() };
        let lines = block_lines(&ContentBlock::ResourceLink(link), &render(&theme), 80);
        let leads = lines.iter().flat_map(|line| &line.spans).filter_map(|span| {
            let target = text::link::target(span.tag.link)?;
            Some((span.content.to_string(), target))
        });
        leads.collect::<Vec<_>>()
    };
    let page = Target::of_link("https://a.org/x").expect("an address");
    let both = ["The name", "https://a.org/x"].map(|text| (text.to_owned(), page.clone()));
    assert_eq!(link("https://a.org/x"), both, "its name and its address");
    let file = Target::of_link("file:///etc/hosts").expect("a file");
    assert_eq!(link("file:///etc/hosts").first(), Some(&("The name".to_owned(), file)));
    assert_eq!(link("demo://note"), [], "it cannot be opened");
}

fn ran(kind: ToolKind, lines: usize) -> ToolCall {
    let mut tool = ToolCall::new("t".into(), Instant::now());
    (tool.kind, tool.status) = (kind, ToolStatus::Completed);
    tool.title = "x".to_owned();
    let output = (1..=lines).map(|line| format!("line {line}")).collect::<Vec<_>>().join("\n");
    tool.content = vec![ToolContent::Block(ContentBlock::Text(output.into()))];
    tool
}

#[test]
fn an_output_shows_its_start_and_its_end() {
    for kind in [ToolKind::Execute, ToolKind::Other] {
        let all: Vec<String> = (1..=11).map(|line| format!("line {line}")).collect();
        assert_eq!(rows(ran(kind, 11), None)[1..], all, "a slightly longer output is shown completely");
        let shown = rows(ran(kind, 1000), None);
        let wanted = [
            "line 1",
            "line 2",
            "line 3",
            "line 4",
            "line 5",
            "… 991 lines",
            "line 997",
            "line 998",
            "line 999",
            "line 1000",
        ];
        assert_eq!(shown[1..], wanted);
    }
    let shown = rows(ran(ToolKind::Read, 1000), None);
    assert_eq!(shown.len(), 1, "what was read is folded: {shown:?}");
}

#[test]
fn a_preview_of_one_very_long_line_is_short() {
    let mut tool = ran(ToolKind::Execute, 1);
    tool.content = vec![ToolContent::Block(ContentBlock::Text("word ".repeat(100_000).into()))];
    let shown = rows(tool, None);
    assert_eq!(shown.len(), 11, "{shown:?}");
    assert_eq!(shown[6], "…");
}

#[test]
fn a_call_that_absorbed_a_command_shows_the_command() {
    let theme = Theme::plain();
    let shown = |tool: &ToolCall| {
        let lines = hidden_commands(tool, &render(&theme), 80);
        lines.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let command =
        crate::model::CommandAccess { line: "curl x".into(), cwd: "/home/ada".into(), env: Vec::new() };
    let outcome = crate::model::AccessOutcome::Allowed(crate::model::AllowedBy::You);
    let mut tool = ToolCall::new("t".into(), Instant::now());
    tool.title = "List files".into();
    tool.accesses = vec![AccessRecord::new(crate::model::Access::Run(command), outcome)];
    assert_eq!(shown(&tool), ["$ curl x"]);
    tool.input.command = Some("curl x".into());
    assert!(shown(&tool).is_empty(), "the head shows it");
}
