//! The searchable texts of an item, in the order in which an open item shows them.
//!
//! Data that is not shown (raw input, private keys) is not searched.

use std::borrow::Cow;
use std::collections::HashSet;
use std::path::Path;

use crate::core::{Item, ItemBody, MessagePart, Session, ToolCall, TurnEnd};
use crate::model::{Body, ContentBlock, DiffChange, ResourceBody, ToolContent, ToolKind};

use super::plain::plain;

/// Unchanged lines shown around a change.
const CONTEXT_LINES: usize = 3;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Text<'a> {
    pub text: Cow<'a, str>,
    /// Whether it is in the head line, which a folded item shows too.
    pub is_head: bool,
    /// The part of the message, or of the call's content.
    pub position: Option<usize>,
}

/// All texts of an item; none if it is hidden.
pub fn texts<'a>(item: &'a Item, session: &'a Session) -> Vec<Text<'a>> {
    let mut out = Out(Vec::new());
    if item.is_hidden() {
        return out.0;
    }
    match &item.body {
        ItemBody::Message(message) => {
            for (position, part) in message.parts.iter().enumerate() {
                match part {
                    MessagePart::Text(text) => out.part(text.peek(), position),
                    MessagePart::Block(block) => out.block(block),
                }
            }
        }
        ItemBody::Tool(tool) => of_tool(tool, session, &mut out),
        ItemBody::TurnEnd(TurnEnd::Failed { error, .. }) => out.body(error),
        ItemBody::TurnEnd(TurnEnd::AgentDied { cause, stderr_tail }) => {
            out.body(cause);
            for line in stderr_tail {
                out.body(line);
            }
        }
        ItemBody::TurnEnd(TurnEnd::Stopped { .. }) => {}
        ItemBody::Notice { title, detail, .. } => {
            out.body(title);
            out.body(detail.as_deref().unwrap_or_default());
        }
        ItemBody::Compaction { summary, error, .. } => {
            out.body(error.as_deref().unwrap_or_default());
            out.part(Cow::Borrowed(summary), 0);
        }
        ItemBody::Subagent { title, description, .. } => {
            out.head(Cow::Borrowed(title));
            out.body(description.as_deref().unwrap_or_default());
        }
        ItemBody::Answered { question, answer, .. } => {
            out.body(question);
            out.body(answer);
        }
        ItemBody::Raw { name, raw } => {
            out.head(Cow::Borrowed(name));
            out.push(raw.0.peek(), false);
        }
    }
    out.0
}

struct Out<'a>(Vec<Text<'a>>);

impl<'a> Out<'a> {
    fn push(&mut self, text: Cow<'a, str>, is_head: bool) {
        if !text.is_empty() {
            self.0.push(Text { text, is_head, position: None });
        }
    }

    fn part(&mut self, text: Cow<'a, str>, position: usize) {
        if !text.is_empty() {
            self.0.push(Text { text, is_head: false, position: Some(position) });
        }
    }

    fn head(&mut self, text: Cow<'a, str>) {
        self.push(text, true);
    }

    fn body(&mut self, text: &'a str) {
        self.push(Cow::Borrowed(text), false);
    }

    fn block(&mut self, block: &'a ContentBlock) {
        match block {
            ContentBlock::Text(text) => self.push(text.peek(), false),
            ContentBlock::ResourceLink(link) => {
                self.body(link.title.as_deref().unwrap_or(&link.name));
                self.body(&link.uri);
                self.body(link.description.as_deref().unwrap_or_default());
            }
            ContentBlock::Resource { uri, body, .. } => {
                self.body(uri);
                if let ResourceBody::Text(text) = body {
                    self.push(text.peek(), false);
                }
            }
            ContentBlock::Image { .. } | ContentBlock::Audio { .. } | ContentBlock::Unknown(_) => {}
        }
    }
}

fn of_tool<'a>(tool: &'a ToolCall, session: &'a Session, out: &mut Out<'a>) {
    match &tool.input.command {
        // The head line shows the command too, but shortened to one line.
        Some(command) => out.body(command),
        None => out.head(title(tool, session.workspace.folder())),
    }
    for diff in tool.diffs() {
        let text = match &diff.change {
            DiffChange::Texts { old, new } => {
                let old = old.as_ref().map(Body::peek).unwrap_or_default();
                Cow::Owned(changed_lines(&old, &new.peek()))
            }
            DiffChange::Patch(text) => text.peek(),
        };
        out.push(text, false);
    }
    let mut has_output = false;
    for (position, content) in tool.content.iter().enumerate() {
        match content {
            ToolContent::Block(ContentBlock::Text(text)) => {
                let text = text.peek();
                has_output |= !text.trim().is_empty();
                out.part(text, position);
            }
            ToolContent::Terminal(id) => {
                if let Some(view) = session.terminals.get(id) {
                    has_output = true;
                    out.push(Cow::Owned(plain(&view.output.peek())), false);
                }
            }
            ToolContent::Block(block) => out.block(block),
            ToolContent::Diff(_) | ToolContent::Unknown(_) => {}
        }
    }
    if let Some(text) = tool.output_text.as_ref().filter(|_| !has_output) {
        out.push(text.peek(), false);
    }
    for access in &tool.accesses {
        out.push(Cow::Owned(access.description()), false);
    }
}

pub fn title<'a>(tool: &'a ToolCall, folder: &Path) -> Cow<'a, str> {
    let shown = |path: &Path| path.strip_prefix(folder).unwrap_or(path).display().to_string();
    let is_of_files = matches!(tool.kind, ToolKind::Read | ToolKind::Edit | ToolKind::Delete);
    if is_of_files {
        let mut paths: Vec<String> = Vec::new();
        if tool.kind == ToolKind::Edit {
            paths.extend(tool.diffs().map(|diff| shown(&diff.path)));
        }
        if paths.is_empty() {
            paths.extend(tool.locations.iter().map(|position| match position.line {
                Some(line) => format!("{}:{line}", shown(&position.path)),
                None => shown(&position.path),
            }));
        }
        if paths.is_empty() {
            paths.extend(tool.input.path.as_ref().map(|path| shown(path)));
        }
        paths.retain(|path| !path.is_empty());
        paths.dedup();
        if !paths.is_empty() {
            return Cow::Owned(paths.join(", "));
        }
    }
    Cow::Borrowed(tool.label())
}

/// The lines that a change shows: removed lines, then those present afterwards, each once, without those outside of the
/// change and its context.
fn changed_lines(old: &str, new: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let min = old.len().min(new.len());
    let head = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let tail = old.iter().rev().zip(new.iter().rev()).take(min - head).take_while(|(a, b)| a == b).count();
    let from = head.saturating_sub(CONTEXT_LINES);
    let to = (new.len() - tail + CONTEXT_LINES).min(new.len());
    let saved: &[&str] = new.get(from..to).unwrap_or_default();
    let known: HashSet<&str> = saved.iter().copied().collect();
    let removed = old.get(head..old.len() - tail).unwrap_or_default().iter();
    let removed = removed.filter(|line| !known.contains(*line));
    let mut text = String::new();
    for line in removed.chain(saved) {
        text.push_str(line);
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::changed_lines;

    #[test]
    fn a_change_includes_its_context_lines() {
        let old = "1\n2\n3\n4\n5\nold\n6\n7\n8\n9\n10\n";
        let new = old.replace("old", "new");
        assert_eq!(changed_lines(old, &new), "old\n3\n4\n5\nnew\n6\n7\n8\n");
        assert_eq!(changed_lines("", "a\nb"), "a\nb\n");
        assert_eq!(changed_lines("a\nb", ""), "a\nb\n");
        assert_eq!(changed_lines("a\nb\na", "b\na\nb"), "b\na\nb\n");
        assert_eq!(changed_lines("a\na", "a\na\na"), "a\na\na\n");
    }
}
