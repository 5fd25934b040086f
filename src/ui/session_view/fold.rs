//! How much of a tool call is shown: the user's choice, otherwise the folding rules.

use crate::model::{
    ContentBlock, DiffChange, Fold, FoldRules, NoticeKind, Role, ToolContent, ToolKind, ToolStatus,
};

use crate::core::{Item, ItemBody, Message, MessagePart, Session, ToolCall};
use crate::ui::session_view::SessionView;

/// Longer prompts are shown shortened.
const PROMPT_MOST_LINES: usize = 40;
const PROMPT_MOST_BYTES: usize = 16 * 1024;

/// Returns how much of a call is shown.
pub fn fold_of(view: &SessionView, session: &Session, item: &Item, call: &ToolCall) -> Fold {
    let rules = &view.folds;
    match view.item(item.id).is_open {
        Some(true) => Fold::Open,
        Some(false) => Fold::Closed,
        None if call.status == ToolStatus::Failed => rules.failed,
        None if only_updates_plan(session, call) => Fold::Closed,
        None => by_size(rules, session, call).unwrap_or_else(|| by_kind(rules, call)),
    }
}

/// Tools that only replace the plan: their names in lower case, without separators.
const PLAN_TOOLS: &[&str] = &[
    "todowrite",
    "writetodos",
    "updatetodos",
    "todo",
    "todolist",
    "settodolist",
    "managetodolist",
    "updateplan",
];

/// Whether a call only repeats what the plan shows.
fn only_updates_plan(session: &Session, call: &ToolCall) -> bool {
    let is_plan_tool = |text: &str| {
        let head = text.split(':').next().unwrap_or_default();
        let letters = head.chars().filter(|ch| !matches!(ch, ' ' | '_' | '-')).take(24);
        let name: String = letters.map(|ch| ch.to_ascii_lowercase()).collect();
        PLAN_TOOLS.contains(&name.as_str())
    };
    matches!(call.kind, ToolKind::Think | ToolKind::Other | ToolKind::SwitchMode)
        && !session.plans.is_empty()
        && call.diffs().next().is_none()
        && (call.name.as_deref().is_some_and(is_plan_tool) || is_plan_tool(&call.title))
}

/// Whether one key opens and folds an item with this content.
pub fn can_fold(body: &ItemBody) -> bool {
    match body {
        ItemBody::Message(message) => {
            matches!(message.role, Role::Thought | Role::SubagentMessage) || is_long_prompt(message)
        }
        ItemBody::Tool(_)
        | ItemBody::Compaction { .. }
        | ItemBody::Raw { .. }
        | ItemBody::Subagent { .. }
        | ItemBody::Notice { kind: NoticeKind::HistoryDiffers, .. } => true,
        ItemBody::TurnEnd(_) | ItemBody::Notice { .. } | ItemBody::Answered { .. } => false,
    }
}

/// Whether a prompt is shown shortened unless the user opens it: it is long, or contains pasted texts.
pub fn is_long_prompt(message: &Message) -> bool {
    let texts = message.parts.iter().filter_map(MessagePart::text);
    message.role == Role::User && (!message.pasted.is_empty() || are_long(texts))
}

/// Whether the texts of a prompt are so long that only their start and end are shown.
pub fn are_long<'t>(texts: impl IntoIterator<Item = &'t str>) -> bool {
    let mut lines = 0;
    texts.into_iter().any(|text| {
        text.len() > PROMPT_MOST_BYTES || {
            lines += text.bytes().filter(|byte| *byte == b'\n').count();
            lines > PROMPT_MOST_LINES
        }
    })
}

/// Calls that change something or run commands are shown; calls that only read are folded.
fn by_kind(rules: &FoldRules, call: &ToolCall) -> Fold {
    rules.of_kind(call.kind).unwrap_or_else(|| {
        if call.diffs().next().is_some() {
            rules.changes
        } else if call.kind == ToolKind::Execute || has_output_alone(call) || has_picture(call) {
            Fold::Preview
        } else {
            Fold::Closed
        }
    })
}

/// Whether a call without a kind has output only: it is shown like a command.
pub fn has_output_alone(call: &ToolCall) -> bool {
    let is_output = |content: &ToolContent| {
        matches!(content, ToolContent::Terminal(_) | ToolContent::Block(ContentBlock::Text(_)))
    };
    call.kind == ToolKind::Other && call.diffs().next().is_none() && call.content.iter().any(is_output)
}

fn has_picture(call: &ToolCall) -> bool {
    call.content.iter().any(|content| matches!(content, ToolContent::Block(block) if block.is_picture()))
}

fn by_size(rules: &FoldRules, session: &Session, call: &ToolCall) -> Option<Fold> {
    if !call.status.is_final() || (rules.open_up_to_lines == 0 && rules.closed_above_lines == 0) {
        return None;
    }
    let lines = result_lines(session, call);
    if lines > 0 && lines <= rules.open_up_to_lines as usize {
        return Some(Fold::Open);
    }
    (rules.closed_above_lines > 0 && lines > rules.closed_above_lines as usize).then_some(Fold::Closed)
}

/// Number of lines of the result's texts, of the retained terminal output, or of the longer text of each change.
fn result_lines(session: &Session, call: &ToolCall) -> usize {
    let of_change = |change: &DiffChange| match change {
        DiffChange::Texts { old, new } => {
            old.as_deref().map_or(0, |old| old.lines().count()).max(new.lines().count())
        }
        DiffChange::Patch(text) => text.lines().count(),
    };
    let changes: usize = call.diffs().map(|diff| of_change(&diff.change)).sum();
    let texts = call.content.iter().map(|content| match content {
        ToolContent::Block(ContentBlock::Text(text)) => text.lines().count(),
        ToolContent::Terminal(id) => session.terminals.get(id).map_or(0, |view| count_lines(&view.output)),
        _ => 0,
    });
    let texts: usize = texts.sum();
    let output_lines =
        call.output_text.as_deref().filter(|_| texts == 0).map_or(0, |text| text.lines().count());
    changes + texts + output_lines
}

/// Number of lines of an output, ignoring cursor movement.
pub fn count_lines(output: &[u8]) -> usize {
    memchr::memchr_iter(b'\n', output.trim_ascii_end()).count() + usize::from(!output.is_empty())
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::core::{ItemBody, TerminalView};
    use crate::model::{FileDiff, Plan, PlanBody, SessionKey, SessionWorkspace};

    fn fold(rules: &FoldRules, change: impl FnOnce(&mut ToolCall)) -> Fold {
        let mut call = ToolCall::new("t".into(), Instant::now());
        call.status = ToolStatus::Completed;
        change(&mut call);
        let mut session = Session::new(SessionKey(1), SessionWorkspace::default());
        let view = SessionView { folds: *rules, ..SessionView::default() };
        let output = "x\r\n".repeat(20).into_bytes();
        let terminal = TerminalView { output: output.into(), ..TerminalView::new(true, Instant::now()) };
        session.terminals.insert("twenty".into(), terminal);
        session.transcript.push(0, ItemBody::Tool(Box::new(call.clone())));
        fold_of(&view, &session, &session.transcript.items()[0], &call)
    }

    fn says(call: &mut ToolCall, lines: usize) {
        call.content = vec![ToolContent::Block(ContentBlock::Text("x\n".repeat(lines).into()))];
    }

    fn edits(call: &mut ToolCall, lines: usize) {
        let change = DiffChange::Texts { old: None, new: "x\n".repeat(lines).into() };
        call.kind = ToolKind::Edit;
        call.content = vec![ToolContent::Diff(FileDiff { path: "a".into(), change })];
    }

    #[test]
    fn edits_commands_and_failures_are_not_folded() {
        let rules = FoldRules::default();
        assert_eq!(fold(&rules, |call| call.kind = ToolKind::Read), Fold::Closed);
        assert_eq!(fold(&rules, |call| call.kind = ToolKind::Execute), Fold::Preview);
        assert_eq!(fold(&rules, |call| edits(call, 3)), Fold::Preview);
        let picture = ContentBlock::Image { data: "AAAA".into(), mime_type: "image/png".into(), uri: None };
        let shot = |call: &mut ToolCall| call.content = vec![ToolContent::Block(picture)];
        assert_eq!(fold(&rules, shot), Fold::Preview);
        assert_eq!(fold(&rules, |call| call.status = ToolStatus::Failed), Fold::Preview);
    }

    #[test]
    fn calls_that_only_update_the_plan_are_closed() {
        let mut session = Session::new(SessionKey(1), SessionWorkspace::default());
        let mut fold = |title: &str, has_plan: bool| {
            session.plans.clear();
            if has_plan {
                session.plans.push(Plan { id: None, body: PlanBody::Markdown("1. do it".into()) });
            }
            let mut call = ToolCall::new("t".into(), Instant::now());
            (call.status, call.title) = (ToolStatus::Completed, title.to_owned());
            says(&mut call, 3);
            let id = session.transcript.push(0, ItemBody::Tool(Box::new(call.clone())));
            fold_of(&SessionView::default(), &session, session.transcript.get(id).unwrap(), &call)
        };
        for title in ["TodoWrite", "todo_write", "update_plan", "SetTodoList", "Update Todos: 2 open"] {
            assert_eq!(fold(title, true), Fold::Closed, "{title}");
            assert_eq!(fold(title, false), Fold::Preview, "{title} is all that shows the list");
        }
        assert_eq!(fold("todo_report", true), Fold::Preview);
    }

    #[test]
    fn rules_apply_by_kind_result_and_size() {
        let mut rules = FoldRules::default();
        rules.kinds[0] = Some(Fold::Open);
        rules.kinds[1] = Some(Fold::Closed);
        rules.failed = Fold::Open;
        assert_eq!(fold(&rules, |call| call.kind = ToolKind::Read), Fold::Open);
        assert_eq!(fold(&rules, |call| edits(call, 3)), Fold::Closed);
        assert_eq!(fold(&rules, |call| call.status = ToolStatus::Failed), Fold::Open);

        let rules = FoldRules { open_up_to_lines: 5, closed_above_lines: 50, ..FoldRules::default() };
        assert_eq!(fold(&rules, |call| says(call, 5)), Fold::Open);
        let reads = |call: &mut ToolCall| {
            says(call, 6);
            call.kind = ToolKind::Read;
        };
        assert_eq!(fold(&rules, reads), Fold::Closed, "the rule of its kind");
        assert_eq!(fold(&rules, |call| says(call, 6)), Fold::Preview, "a call without a kind");
        assert_eq!(fold(&rules, |call| edits(call, 6)), Fold::Preview, "the rule of its kind");
        assert_eq!(fold(&rules, |call| edits(call, 51)), Fold::Closed);
        let ran = |max: u32| {
            let rules = FoldRules { closed_above_lines: max, ..FoldRules::default() };
            fold(&rules, |call| {
                (call.kind, call.content) = (ToolKind::Execute, vec![ToolContent::Terminal("twenty".into())]);
            })
        };
        assert_eq!((ran(19), ran(20)), (Fold::Closed, Fold::Preview), "a terminal's lines count");
        let running =
            |call: &mut ToolCall| (call.status, call.kind) = (ToolStatus::InProgress, ToolKind::Execute);
        assert_eq!(fold(&rules, running), Fold::Preview, "a running call has no size yet");
    }
}
