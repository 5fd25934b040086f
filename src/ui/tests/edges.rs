//! The edges of the transcript: the left and right edge of its content, and the rows below it.

use ratatui::buffer::Buffer;
use ratatui::style::Color;

use super::fixture::{Stage, message, ready, streaming, text, theme};
use crate::core::{ItemBody, Message, ToolCall};
use crate::model::{ContentBlock, DiffChange, FileDiff, Role, ToolContent, ToolKind, ToolStatus};
use crate::ui::screen::DiffLayout;
use crate::ui::theme;

/// A session with prose, code, command output and a diff.
fn stage(layout: DiffLayout) -> Stage {
    let mut stage = ready();
    let now = stage.now;
    stage.diff_layout = layout;
    let message = |text: &str| ItemBody::Message(message(Role::Agent, text, now));
    let call = |kind, content| {
        let mut call = ToolCall::new("t".into(), now);
        (call.kind, call.status, call.content) = (kind, ToolStatus::Completed, vec![content]);
        ItemBody::Tool(Box::new(call))
    };
    stage.session(|session| {
        session.transcript.push(1, message(&"prose ".repeat(60)));
        session.transcript.push(1, message("```\nlet code = 1;\n```"));
        let output = ContentBlock::Text("output\n".into());
        session.transcript.push(1, call(ToolKind::Execute, ToolContent::Block(output)));
        let change = DiffChange::Texts { old: Some("old\n".into()), new: "new\n".into() };
        let diff = FileDiff { path: "/home/ada/code/shop/a.txt".into(), change };
        session.transcript.push(1, call(ToolKind::Edit, ToolContent::Diff(diff)));
    });
    stage
}

/// The first and last column with one of these backgrounds, in the rows that contain a text.
fn edges(drawn: &Buffer, word: &str, grounds: &[Color]) -> (u16, u16) {
    let rows = text(drawn);
    let rows = rows.lines().enumerate().filter(|(_, row)| row.contains(word)).map(|(y, _)| y);
    let cells = rows.flat_map(|y| (0..drawn.area.width).map(move |x| (x, u16::try_from(y).unwrap())));
    let columns: Vec<u16> = cells.filter(|at| grounds.contains(&drawn[*at].bg)).map(|(x, _)| x).collect();
    (*columns.iter().min().expect(word), *columns.iter().max().expect(word))
}

#[test]
fn prose_code_output_and_diffs_share_their_edges() {
    let dark = theme("dark");
    let ground = |role: theme::Role| dark.style(role).bg.unwrap();
    for (size, layout) in [
        ((80, 40), DiffLayout::Auto),
        ((120, 40), DiffLayout::Auto),
        ((120, 40), DiffLayout::Unified),
        ((200, 60), DiffLayout::Unified),
        ((200, 60), DiffLayout::Auto),
        ((200, 60), DiffLayout::SideBySide),
        ((150, 50), DiffLayout::Auto),
    ] {
        let stage = stage(layout);
        let drawn = stage.draw(&mut stage.view(), &dark, size);
        let code = edges(&drawn, "let code", &[ground(theme::Role::CodeBlock)]);
        let output = edges(&drawn, "output", &[ground(theme::Role::Terminal)]);
        let grounds = [theme::Role::DiffPlus, theme::Role::DiffPlusWord].map(ground);
        let new = edges(&drawn, "new", &grounds);
        let grounds = [theme::Role::DiffMinus, theme::Role::DiffMinusWord].map(ground);
        let old = edges(&drawn, "old", &grounds);
        let diff = (new.0.min(old.0), new.1.max(old.1));
        let shown = text(&drawn);
        assert_eq!((output, diff), (code, code), "{size:?} {layout:?}\n{shown}");
        let prose = shown.lines().find(|row| row.starts_with("   prose")).expect(&shown);
        let words = prose.trim_start().split("  ").next().unwrap_or_default();
        let end = 3 + u16::try_from(words.trim_end().len()).unwrap();
        assert_eq!(code.0, 3);
        assert!((code.1.saturating_sub(6)..=code.1 + 1).contains(&end), "{end} {code:?}\n{shown}");
    }
}

#[test]
fn prompts_and_requests_end_at_the_edge_of_the_text_on_wide_screens() {
    let dark = theme("dark");
    let mut stage = stage(DiffLayout::Auto);
    let prompt = Message { is_local: true, ..message(Role::User, "a prompt", stage.now) };
    let prompt = ItemBody::Message(prompt);
    stage.session(|session| {
        session.transcript.push(2, prompt);
    });
    let drawn = stage.draw(&mut stage.view(), &dark, (200, 60));
    let code = edges(&drawn, "let code", &[dark.style(theme::Role::CodeBlock).bg.unwrap()]);
    let prompt = edges(&drawn, "a prompt", &[dark.style(theme::Role::User).bg.unwrap()]);
    // Both have a margin of one column.
    assert_eq!(prompt.1, code.1 + 1, "{}", text(&drawn));
    let asked = super::permission();
    let shown = text(&asked.draw(&mut asked.view(), &dark, (200, 60)));
    let dialog = shown.lines().filter(|row| row.starts_with('▌')).map(|row| row.trim_end().chars().count());
    assert!(dialog.max().is_some_and(|end| end <= usize::from(code.1) + 2), "{shown}");
}

#[test]
fn queued_prompts_are_separated_from_the_transcript() {
    let mut stage = streaming();
    let now = stage.now;
    stage.session(|session| {
        session.plans.clear();
        for line in 0..30 {
            let mut call = ToolCall::new(format!("t{line}").into(), now);
            call.title = format!("call {line}");
            session.transcript.push(1, ItemBody::Tool(Box::new(call)));
        }
        drop(session.outbox.take_queue());
        session.outbox.enqueue("and the docs".into());
    });
    let shown = text(&stage.draw(&mut stage.view(), &theme("dark"), (80, 24)));
    let lines: Vec<&str> = shown.lines().collect();
    let row = lines.iter().position(|line| line.contains("and the docs")).unwrap();
    assert_eq!(lines[row - 1].trim(), "", "{shown}");
}
