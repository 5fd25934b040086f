//! Tests of copying by keyboard.

use crate::core::{Effect, ItemBody, ToolCall, ViewCommand};
use crate::model::{
    Action, ContentBlock, CopyContent, CopyOutcome, DiffChange, FileDiff, ItemId, Role, ServiceEvent,
    ToolContent, ToolKind, ToolStatus,
};
use crate::ui::dialogs::Layer;
use crate::ui::dialogs::testkit::Rig;
use crate::ui::tests::fixture;

const REPLY: &str = "Do *this*:\n\n```rust\nfn main() {}\n```\n\nor\n\n```sh\nls\nmake\n```\n";

fn message(rig: &mut Rig, turn: u32, role: Role, text: &str) -> ItemId {
    let began = rig.now;
    rig.session().transcript.push(turn, ItemBody::Message(fixture::message(role, text, began)))
}

fn change(path: &str) -> FileDiff {
    let texts = DiffChange::Texts { old: Some("a\n".into()), new: "b\n".into() };
    FileDiff { path: path.into(), change: texts }
}

/// Two turns: a reply with code, then a command, two changes (one of which failed) and a reply in two parts.
fn rig() -> Rig {
    let mut rig = Rig::new();
    message(&mut rig, 1, Role::User, "how");
    message(&mut rig, 1, Role::Agent, REPLY);
    message(&mut rig, 2, Role::User, "do it");
    let tool = |rig: &mut Rig, kind, status, diff: Option<&str>| {
        let mut tool = ToolCall::new("t".into(), rig.now);
        (tool.kind, tool.status) = (kind, status);
        if kind == ToolKind::Execute {
            tool.input.command = Some("make all".into());
            tool.content = vec![ToolContent::Block(ContentBlock::Text("built\n".into()))];
        }
        tool.content.extend(diff.map(|path| ToolContent::Diff(change(path))));
        rig.session().transcript.push(2, ItemBody::Tool(Box::new(tool)));
    };
    tool(&mut rig, ToolKind::Execute, ToolStatus::Completed, None);
    message(&mut rig, 2, Role::Agent, "First.");
    tool(&mut rig, ToolKind::Edit, ToolStatus::Completed, Some("/home/u/shop/one.rs"));
    tool(&mut rig, ToolKind::Edit, ToolStatus::Failed, Some("/home/u/shop/two.rs"));
    message(&mut rig, 2, Role::Agent, "Done.\n");
    rig
}

fn copied(rig: &mut Rig, action: Action) -> (String, CopyContent) {
    let mut fx = rig.act(action);
    fx.retain(|effect| !matches!(effect, Effect::View(ViewCommand::ShowSelected)));
    match fx.as_slice() {
        [Effect::Copy(job)] => (job.what.clone(), job.content.clone()),
        other => panic!("one copy, not {other:?}; said {:?}", rig.state.flash),
    }
}

fn text(text: &str) -> CopyContent {
    CopyContent::Text(text.to_owned())
}

#[test]
fn the_last_reply_includes_all_messages_of_its_turn() {
    let mut rig = rig();
    assert_eq!(copied(&mut rig, Action::CopyReply), ("the reply (3 lines)".into(), text("First.\n\nDone.")));
}

#[test]
fn the_reply_is_one_text_and_can_be_plain() {
    let mut rig = Rig::new();
    message(&mut rig, 1, Role::Agent, "One.");
    message(&mut rig, 1, Role::Agent, "Two\nlines.");
    assert_eq!(copied(&mut rig, Action::CopyReply).1, text("One.\n\nTwo\nlines."));
    let (what, content) = copied(&mut rig, Action::CopyReplyPlain);
    assert_eq!(what, "the reply (4 lines)");
    assert_eq!(content, CopyContent::MarkdownAsPlain("One.\n\nTwo\nlines.".into()));
}

#[test]
fn code_command_output_and_changes_have_separate_keys() {
    let mut rig = rig();
    assert_eq!(copied(&mut rig, Action::CopyCode).1, text("ls\nmake"));
    assert_eq!(copied(&mut rig, Action::CopyCommand).1, text("make all"));
    let output = CopyContent::Output { bytes: b"built\n".to_vec(), has_returns: false };
    assert_eq!(copied(&mut rig, Action::CopyOutput), ("the output".into(), output));
    let folder = std::path::PathBuf::from("/home/u/shop");
    let patch = |path| CopyContent::Patch { changes: vec![change(path)], folder: folder.clone() };
    assert_eq!(copied(&mut rig, Action::CopyPatch).1, patch("/home/u/shop/two.rs"));
    assert_eq!(
        copied(&mut rig, Action::CopyTurnPatch),
        ("1 change as patch".into(), patch("/home/u/shop/one.rs"))
    );
}

#[test]
fn the_selected_item_takes_precedence_over_the_reply() {
    let mut rig = rig();
    rig.shown_mut().selected = Some(ItemId(0));
    assert_eq!(copied(&mut rig, Action::CopyItem), ("the message (1 line)".into(), text("how")));
    rig.shown_mut().selected = Some(ItemId(3));
    assert!(matches!(copied(&mut rig, Action::CopyItem).1, CopyContent::Output { .. }));
    rig.shown_mut().selected = None;
    assert_eq!(copied(&mut rig, Action::CopyItem).1, text("First.\n\nDone."));
}

#[test]
fn the_selected_item_is_quoted_and_the_focus_returns_to_the_prompt() {
    let mut rig = rig();
    rig.shown_mut().selected = Some(ItemId(0));
    rig.user.is_browsing = true;
    let quoted = |effects: Vec<Effect>| match effects.as_slice() {
        [Effect::QuoteSelection(content)] => content.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(quoted(rig.act(Action::QuoteSelection)), Some(text("how")));
    assert!(!rig.user.is_browsing);
    assert_eq!(quoted(rig.act(Action::QuoteSelection)), None);
}

#[test]
fn the_list_is_filtered_by_its_headings_too() {
    let mut rig = rig();
    rig.act(Action::OpenCopy);
    rig.type_line("last command");
    let Some(list) = rig.layers.last().and_then(Layer::list) else { panic!("no list") };
    let groups = list.matches.iter().map(|position| list.rows[*position].group.as_deref());
    let groups: Vec<Option<&str>> = groups.collect();
    assert!(!groups.is_empty() && groups.iter().all(|group| *group == Some("Last command")), "{groups:?}");
}

#[test]
fn the_list_offers_each_code_block_and_copies_the_selected_one() {
    let mut rig = rig();
    rig.shown_mut().selected = Some(ItemId(1));
    rig.act(Action::OpenCopy);
    let Some(list) = rig.layers.last().and_then(Layer::list) else { panic!("no list") };
    let of_item: Vec<&str> = list
        .rows
        .iter()
        .filter(|row| row.group.as_deref() == Some("Selected item"))
        .map(|row| row.label.as_str())
        .collect();
    assert_eq!(of_item, ["Everything", "As plain text", "Code, rust, 1 line", "Code, sh, 2 lines"]);
    rig.act(Action::Down);
    rig.act(Action::Down);
    assert_eq!(copied(&mut rig, Action::Accept), ("the code (1 line)".into(), text("fn main() {}")));
    assert!(rig.layers.is_empty());
}

#[test]
fn a_call_is_offered_by_its_parts_and_a_message_as_a_whole() {
    let mut rig = rig();
    rig.shown_mut().selected = Some(ItemId(3));
    rig.act(Action::OpenCopy);
    let Some(list) = rig.layers.last().and_then(Layer::list) else { panic!("no list") };
    let of_item = list.rows.iter().filter(|row| row.group.as_deref() == Some("Selected item"));
    let labels: Vec<&str> = of_item.map(|row| row.label.as_str()).collect();
    assert_eq!(labels, ["Command", "Output"]);
}

#[test]
fn missing_content_is_reported() {
    let mut rig = Rig::new();
    rig.act(Action::CopyReply);
    assert_eq!(rig.state.flash.as_deref(), Some("The transcript is empty."));
    message(&mut rig, 1, Role::User, "hello");
    rig.act(Action::CopyPatch);
    assert_eq!(rig.state.flash.as_deref(), Some("Nothing to copy."));
}

#[test]
fn the_message_says_where_a_text_was_sent() {
    let mut rig = Rig::new();
    let mut said = |outcome| {
        let event = ServiceEvent::Copied { what: "3 lines".into(), outcome };
        crate::ui::update(&mut rig.app, crate::core::Event::Service(event), rig.now);
        rig.state.flash.clone().unwrap()
    };
    assert_eq!(said(CopyOutcome::Program("xclip")), "Copied 3 lines with xclip.");
    assert!(said(CopyOutcome::TmuxBuffer).contains("to the tmux buffer"));
    let sent = said(CopyOutcome::Terminal { sequence: String::new() });
    assert!(sent.starts_with("Sent 3 lines to the terminal") && sent.contains("unconfirmed"), "{sent}");
    assert_eq!(said(CopyOutcome::Failed("too long.".into())), "Copy failed: too long.");
}

#[test]
fn mouse_capture_can_be_toggled() {
    let mut rig = Rig::new();
    assert!(rig.act(Action::ToggleMouse).contains(&Effect::CaptureMouse(false)));
    assert_eq!(rig.mouse, crate::core::MouseOwner::Terminal);
    assert!(rig.act(Action::ToggleMouse).contains(&Effect::CaptureMouse(true)));
}
