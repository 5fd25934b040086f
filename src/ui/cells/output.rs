//! The command and output text of a call as rows, without repetitions of its head line.
//!
//! Agents repeat the command as content while they request permission for it, and the exit code as the first line of
//! the output; both are omitted. `tool` decides how many lines are shown. Nothing is omitted that is not shown
//! elsewhere.

use ratatui::style::Style;

use crate::core::{Decision, ToolCall};
use crate::model::{ContentBlock, ToolContent, ToolKind};
use crate::ui::render_context::RenderContext;
use crate::ui::text::copy_hint::{Mark, fill};
use crate::ui::text::{Line, Span};
use crate::ui::text::{
    TERMINAL_TAB_COLS, expand_tabs, link, one_line, sanitize, tabbed, truncate, width, wrap_whole,
};
use crate::ui::theme::Role;

/// The text of a call's result, if any remains.
pub(super) fn text_of(tool: &ToolCall, exit_code: Option<i32>) -> Option<&str> {
    let block = tool.content.iter().find_map(|content| match content {
        ToolContent::Block(ContentBlock::Text(text)) if !text.trim().is_empty() => Some(text.as_str()),
        _ => None,
    });
    let text = block.or(tool.output_text.as_deref())?;
    if tool.kind != ToolKind::Execute {
        return Some(text).filter(|text| !text.trim().is_empty());
    }
    if is_command(tool, text) {
        return None;
    }
    let whole = without_fence(text);
    let left = without_exit_code(whole.as_bytes(), tool.exit_code.or(exit_code)).len();
    whole.get(whole.len() - left..).filter(|text| !text.trim().is_empty())
}

/// Whether the text is only the call's own command.
pub(super) fn is_command(tool: &ToolCall, text: &str) -> bool {
    let reported = without_fence(text).trim();
    tool.input
        .command
        .as_deref()
        .is_some_and(|command| command.trim() == reported.strip_prefix("$ ").unwrap_or(reported))
}

/// Whether the reason of a refused call says only that it was refused.
pub(super) fn only_says_rejected(tool: &ToolCall, text: &str) -> bool {
    let is_refused = matches!(tool.decision, Some(Decision::Chosen { is_allow: false, .. }));
    let lower = text.trim().trim_end_matches('.').to_lowercase();
    let refusals =
        ["rejected", "denied", "declined", "refused", "user rejected", "user denied", "user declined"];
    let by_whom =
        lower.strip_suffix(" by the user").or_else(|| lower.strip_suffix(" by user")).unwrap_or(&lower);
    is_refused && refusals.contains(&by_whom.trim_start_matches("the ").trim_start_matches("permission "))
}

/// The content of a fence that contains the whole text.
pub(super) fn without_fence(text: &str) -> &str {
    let trimmed = text.trim();
    let Some(rest) = trimmed.strip_prefix("```") else { return text };
    let Some((_, body)) = rest.split_once('\n') else { return text };
    match body.trim_end().strip_suffix("```") {
        Some(body) if !body.contains("\n```") => body,
        _ => text,
    }
}

/// Removes a first line such as `Exit code 3` if the head shows the same.
pub(super) fn without_exit_code(output: &[u8], code: Option<i32>) -> &[u8] {
    let text = output.trim_ascii_start();
    let end = memchr::memchr(b'\n', text).unwrap_or(text.len());
    let (first, rest) = text.split_at(end);
    let lower = String::from_utf8_lossy(first).trim().trim_end_matches(['.', ':']).to_lowercase();
    let reported =
        lower.strip_prefix("exit code").map(|number| number.trim_start_matches([':', ' ']).parse::<i32>());
    match (reported, code) {
        (Some(Ok(reported)), Some(code)) if reported == code => rest.strip_prefix(b"\n").unwrap_or(rest),
        _ => output,
    }
}

pub(super) fn command_lines(command: &str, render: &RenderContext<'_>, cols: u16) -> Vec<Line<'static>> {
    let style = render.theme.style(Role::Strong);
    let text = sanitize(command);
    let mut out = Vec::new();
    for (index, line) in text.trim_end_matches('\n').split('\n').enumerate() {
        let lead = if index == 0 { "$ " } else { "  " };
        let line = Line::from(vec![
            Mark::APART.span(lead, render.theme.style(Role::TextDim)),
            Span::styled(expand_tabs(line).into_owned(), style),
        ]);
        out.extend(wrap_whole(&line, cols));
    }
    out
}

/// Lines of output on their background, over the full width.
pub(super) fn rows(lines: Vec<Line<'static>>, render: &RenderContext<'_>, cols: u16) -> Vec<Line<'static>> {
    let base = render.theme.style(Role::Terminal);
    let mut out = Vec::with_capacity(lines.len());
    for mut line in lines {
        for span in &mut line.spans {
            span.style = base.patch(span.style);
        }
        line.spans = link::linkify(line.spans, render.folder);
        for row in wrap_whole(&line, cols.saturating_sub(2).max(2)) {
            let mut spans = vec![Mark::APART.span(" ", base)];
            spans.extend(row.spans);
            fill(&mut spans, cols, base);
            out.push(Line { spans, ..row });
        }
    }
    out
}

/// Output or file text as lines; tabs are expanded as in a terminal.
pub(super) fn text_lines(text: &str) -> Vec<Line<'static>> {
    let text = sanitize(text);
    let lines = text.strip_suffix('\n').unwrap_or(&text).split('\n');
    lines
        .map(|line| {
            let mut spans = Vec::new();
            tabbed(line, 0, TERMINAL_TAB_COLS, Style::default(), &mut spans);
            Line::from(spans)
        })
        .collect()
}

/// The text of a call that contains `part` (`None`: its output), and the position in it.
pub(super) fn position_of(tool: &ToolCall, part: &str) -> Option<(Option<usize>, usize)> {
    let texts = tool.content.iter().enumerate().filter_map(|(position, content)| match content {
        ToolContent::Block(ContentBlock::Text(text)) => Some((Some(position), text)),
        _ => None,
    });
    let mut texts = texts.chain(tool.output_text.as_ref().map(|text| (None, text)));
    texts.find_map(|(position, text)| {
        let at = part.as_ptr().addr().checked_sub(text.as_ptr().addr())?;
        (at + part.len() <= text.len()).then_some((position, at))
    })
}

/// Whether a text has no control characters except line breaks and tabs, so that its lines can be shown separately.
pub(super) fn is_plain(text: &str) -> bool {
    text.bytes().all(|byte| byte >= b' ' || matches!(byte, b'\n' | b'\t'))
}

/// A multi-line text as one line: the first non-empty line, and the number of lines after it.
pub(super) fn first_line(text: &str, cols: usize) -> String {
    let head = super::head_of(text);
    let mut lines = head.lines().filter(|line| !line.trim().is_empty());
    let first = one_line(lines.next().unwrap_or_default());
    let first = first.trim_matches('`');
    let rest = text.get(head.len()..).unwrap_or_default();
    let tail = match lines.count() + memchr::memchr_iter(b'\n', rest.as_bytes()).count() {
        0 => return truncate(first, cols),
        1 => " … +1 line".to_owned(),
        more => format!(" … +{more} lines"),
    };
    truncate(&format!("{}{tail}", truncate(first, cols.saturating_sub(width(&tail)).max(8))), cols)
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    fn command(line: &str, output: &str, code: Option<i32>) -> ToolCall {
        let mut tool = ToolCall::new("t".into(), Instant::now());
        tool.kind = ToolKind::Execute;
        tool.input.command = Some(line.to_owned());
        tool.exit_code = code;
        tool.content = vec![ToolContent::Block(ContentBlock::Text(output.to_owned().into()))];
        tool
    }

    #[test]
    fn an_exit_code_shown_in_the_head_is_not_repeated() {
        let text = |output, code| text_of(&command("make", output, code), None).map(str::to_owned);
        assert_eq!(text("```console\nExit code 3\nhello\n```", Some(3)).as_deref(), Some("hello\n"));
        assert_eq!(text("Exit code: 3", Some(3)), None);
        assert_eq!(
            text("Exit code 4\nhello", Some(3)).as_deref(),
            Some("Exit code 4\nhello"),
            "it says another"
        );
        assert_eq!(
            text("Exit code 3\nhello", None).as_deref(),
            Some("Exit code 3\nhello"),
            "no head tells it"
        );
        assert_eq!(text("Exit code words", Some(3)).as_deref(), Some("Exit code words"));
        let tool = command("make", "Exit code 7\nx", None);
        assert_eq!(text_of(&tool, Some(7)), Some("x"), "the terminal reported it");
    }

    #[test]
    fn a_command_repeated_as_content_is_not_its_output() {
        assert_eq!(text_of(&command("ls -la", "```sh\nls -la\n```", None), None), None);
        assert_eq!(text_of(&command("ls -la", "$ ls -la", None), None), None);
        assert_eq!(text_of(&command("echo a", "a", None), None), Some("a"));
        let mut other = command("ls", "ls", None);
        other.kind = ToolKind::Other;
        assert_eq!(text_of(&other, None), Some("ls"), "only a command has output");
    }

    #[test]
    fn a_refusal_is_not_repeated_as_its_reason() {
        let mut tool = command("ls", "", None);
        assert!(!only_says_rejected(&tool, "rejected by the user"), "the user did not refuse it");
        tool.decision =
            Some(Decision::Chosen { name: "No".to_owned(), kind: None, is_allow: false, rule: None });
        for text in ["rejected by the user", "Rejected.", "The user rejected", "Permission denied"] {
            assert!(only_says_rejected(&tool, text), "{text}");
        }
        assert!(!only_says_rejected(&tool, "rejected, because the file is generated"));
    }

    #[test]
    fn a_script_is_shown_as_its_first_line_and_a_count() {
        assert_eq!(first_line("cargo test", 40), "cargo test");
        assert_eq!(first_line("\nset -e\n\ncd shop\ncargo test\n", 40), "set -e … +2 lines");
        assert_eq!(first_line("`ls`", 40), "ls");
        assert_eq!(first_line("one\ntwo", 40), "one … +1 line");
        let long = first_line(&format!("{}\nx", "w".repeat(90)), 30);
        assert!(long.ends_with("… +1 line") && crate::ui::text::width(&long) <= 30, "{long}");
        assert_eq!(first_line("", 40), "");
    }
}
