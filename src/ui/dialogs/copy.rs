//! Copies by keyboard: the reply, an item, a code block, a command and its output, changes as a patch.
//!
//! Collects what can be copied and emits the job; `host::clipboard` writes the clipboard, `ui` handles selected
//! text. Agent text is copied as its source, and converted only if plain text is requested.

use pulldown_cmark::{CodeBlockKind, Event, Parser, Tag, TagEnd};

use super::notice::notify;
use crate::core::lifecycle::operations;
use crate::core::{Cx, Effect, Item, ItemBody, Message, MessagePart, Session, State, ToolCall};
use crate::model::{
    Action, ContentBlock, CopyContent, CopyJob, CopyOutcome, FileDiff, ItemId, Role, ToolContent, ToolStatus,
};
use crate::ui::App;
use crate::ui::text::counted;

use super::layer::Flow;
use super::picker::{List, Picker, PickerRow};
use super::{leave, obstacle};

/// Something in a transcript that can be copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CopySource {
    /// All messages of the agent in its last turn, as Markdown.
    Reply,
    ReplyPlain,
    /// An item: a message as received, a change as a patch, the output of a command.
    Item(ItemId),
    ItemPlain(ItemId),
    /// A code block of a message, by index.
    Code(ItemId, usize),
    Command(ItemId),
    Output(ItemId),
    Patch(ItemId),
    /// All changes of the last turn that changed files.
    TurnPatch,
}

#[derive(Debug)]
pub struct Copies;

impl List for Copies {
    type Item = CopySource;

    fn pick(&mut self, source: CopySource, app: &mut App, cx: &mut Cx) -> Flow {
        copy(&mut app.state, Some(source), cx);
        Flow::Close
    }
}

/// Handles the copy actions. Returns whether it was one.
pub fn on_action(app: &mut App, action: Action, cx: &mut Cx) -> bool {
    let Some(session) = app.state.active_session() else { return false };
    let source = match action {
        Action::CopySelection => {
            cx.effects.push(Effect::CopySelection);
            return true;
        }
        Action::QuoteSelection => {
            let item = app.shown().selected.and_then(|id| job_of(session, CopySource::Item(id)));
            leave::stop_browsing(app);
            cx.effects.push(Effect::QuoteSelection(item.map(|job| job.content)));
            return true;
        }
        Action::OpenCopy => {
            open(app, cx);
            return true;
        }
        Action::CopyItem => {
            app.shown().selected.map_or(Some(CopySource::Reply), |id| Some(CopySource::Item(id)))
        }
        Action::CopyReply => Some(CopySource::Reply),
        Action::CopyReplyPlain => Some(CopySource::ReplyPlain),
        Action::CopyCode => last_code(session),
        Action::CopyCommand => {
            last_tool(session, |tool| tool.input.command.is_some()).map(CopySource::Command)
        }
        Action::CopyOutput => {
            last_tool(session, |tool| output(session, tool).is_some()).map(CopySource::Output)
        }
        Action::CopyPatch => last_tool(session, has_changes).map(CopySource::Patch),
        Action::CopyTurnPatch => Some(CopySource::TurnPatch),
        _ => return false,
    };
    // The start of a long turn may be only on disk.
    let is_whole = |session: &Session| {
        let turn = match action {
            Action::CopyReply | Action::CopyReplyPlain | Action::CopyItem => last_reply_turn(session),
            Action::CopyTurnPatch => last_changed_turn(session),
            _ => return source.is_some(),
        };
        let first = session.transcript.items().get(1);
        turn.is_some() && turn != first.map(|item| item.turn)
    };
    if app.shown().selected.is_none()
        && !is_whole(session)
        && operations::waits_for_whole(&mut app.state, action)
    {
        return true;
    }
    match obstacle::obstacle(&app.state, action) {
        Some(why) => notify(&mut app.state, why, cx),
        None => copy(&mut app.state, source, cx),
    }
    true
}

/// Copies the source of a selected row.
pub fn copy(state: &mut State, source: Option<CopySource>, cx: &mut Cx) {
    let session = state.active_session();
    let job = session.zip(source).and_then(|(session, source)| job_of(session, source));
    match job {
        Some(job) => cx.effects.push(Effect::Copy(job)),
        None => notify(state, "Nothing to copy.", cx),
    }
}

/// Reports where a text was sent, as far as it is known.
pub fn on_copied(state: &mut State, what: &str, outcome: &CopyOutcome, cx: &mut Cx) {
    let text = match outcome {
        CopyOutcome::Program(program) => format!("Copied {what} with {program}."),
        CopyOutcome::TmuxBuffer => format!("Copied {what} to the tmux buffer."),
        CopyOutcome::Terminal { .. } => {
            format!("Sent {what} to the terminal clipboard (OSC 52, unconfirmed).")
        }
        CopyOutcome::Failed(why) => format!("Copy failed: {why}"),
        CopyOutcome::Nothing => "No text to copy.".to_owned(),
    };
    notify(state, text, cx);
}

/// Lists what can be copied: of the selected item, otherwise of the last turn.
fn open(app: &mut App, cx: &mut Cx) {
    let selected = app.shown().selected;
    let rows = app.state.active_session().map(|session| rows(selected, session)).unwrap_or_default();
    if rows.is_empty() {
        notify(&mut app.state, "Nothing to copy yet.", cx);
        return;
    }
    app.layers.open(Picker::new(Copies, "Copy", rows));
}

fn rows(selected: Option<ItemId>, session: &Session) -> Vec<(PickerRow, CopySource)> {
    let mut rows = Vec::new();
    let mut add = |group: &str, label: String, detail: String, source: CopySource| {
        let row = PickerRow { detail, group: Some(group.to_owned()), ..PickerRow::new(label) };
        rows.push((row, source));
    };
    if let Some(item) = selected.and_then(|id| session.transcript.get(id)) {
        let group = "Selected item";
        // A call is offered by its parts.
        if !matches!(&item.body, ItemBody::Tool(tool) if has_parts(session, tool)) {
            add(group, "Everything".to_owned(), String::new(), CopySource::Item(item.id));
        }
        match &item.body {
            ItemBody::Message(message) => {
                add(group, "As plain text".to_owned(), String::new(), CopySource::ItemPlain(item.id));
                let text = text_of(&message.parts);
                for (position, code) in code_blocks(&text).iter().enumerate() {
                    add(group, code.label(), code.first_line(), CopySource::Code(item.id, position));
                }
            }
            ItemBody::Tool(tool) => add_tool(session, item, tool, group, &mut add),
            _ => {}
        }
    }
    if let Some(turn) = last_reply_turn(session) {
        let group = "Last reply";
        let lines = job_of(session, CopySource::Reply).map(|job| job.what).unwrap_or_default();
        add(group, "As Markdown".to_owned(), lines, CopySource::Reply);
        add(group, "As plain text".to_owned(), String::new(), CopySource::ReplyPlain);
        for item in items_of(session, turn) {
            let Some(message) = message_of_agent(item) else { continue };
            for (position, code) in code_blocks(&text_of(&message.parts)).iter().enumerate() {
                add(group, code.label(), code.first_line(), CopySource::Code(item.id, position));
            }
        }
    }
    for (group, id) in [
        ("Last command", last_tool(session, |tool| tool.input.command.is_some())),
        ("Last change", last_tool(session, has_changes)),
    ] {
        let tool = id.and_then(|id| tool_of(session, id));
        if let Some((item, tool)) = tool {
            add_tool(session, item, tool, group, &mut add);
        }
    }
    if turn_changes(session).len() > 1 {
        let files = counted(turn_changes(session).len(), "change", "changes");
        add("Last change", "All changes of the turn as patch".to_owned(), files, CopySource::TurnPatch);
    }
    rows
}

/// Whether [`add_tool`] adds rows.
fn has_parts(session: &Session, tool: &ToolCall) -> bool {
    tool.input.command.is_some() || output(session, tool).is_some() || has_changes(tool)
}

fn add_tool(
    session: &Session,
    item: &Item,
    tool: &ToolCall,
    group: &str,
    add: &mut impl FnMut(&str, String, String, CopySource),
) {
    if let Some(command) = &tool.input.command {
        let first = command.lines().next().unwrap_or_default().to_owned();
        add(group, "Command".to_owned(), first, CopySource::Command(item.id));
    }
    if output(session, tool).is_some() {
        add(group, "Output".to_owned(), String::new(), CopySource::Output(item.id));
    }
    if let Some(change) = tool.diffs().next() {
        let path = change.path.strip_prefix(session.workspace.folder()).unwrap_or(&change.path);
        add(group, "Change as patch".to_owned(), path.display().to_string(), CopySource::Patch(item.id));
    }
}

/// The content to copy; `None` if it no longer exists.
fn job_of(session: &Session, source: CopySource) -> Option<CopyJob> {
    let text = |kind: &str, text: String| {
        let text = text.trim_end_matches('\n').to_owned();
        let what = format!("{kind} ({})", counted(text.lines().count(), "line", "lines"));
        (!text.is_empty()).then_some(CopyJob { what, content: CopyContent::Text(text) })
    };
    let plain = |job: CopyJob| {
        let CopyContent::Text(text) = job.content else { return job };
        CopyJob { content: CopyContent::MarkdownAsPlain(text), ..job }
    };
    let patch = |what: &str, changes: Vec<FileDiff>| {
        let folder = session.workspace.folder().to_owned();
        (!changes.is_empty())
            .then_some(CopyJob { what: what.to_owned(), content: CopyContent::Patch { changes, folder } })
    };
    match source {
        CopySource::Reply => text("the reply", reply(session)),
        CopySource::ReplyPlain => job_of(session, CopySource::Reply).map(plain),
        CopySource::ItemPlain(id) => job_of(session, CopySource::Item(id)).map(plain),
        CopySource::Code(id, position) => {
            let ItemBody::Message(message) = &session.transcript.get(id)?.body else { return None };
            let code = code_blocks(&text_of(&message.parts)).into_iter().nth(position)?;
            text("the code", code.text)
        }
        CopySource::Command(id) => text("the command", tool_of(session, id)?.1.input.command.clone()?),
        CopySource::Output(id) => {
            let content = output(session, tool_of(session, id)?.1)?;
            Some(CopyJob { what: "the output".to_owned(), content })
        }
        CopySource::Patch(id) => {
            patch("the change as patch", tool_of(session, id)?.1.diffs().cloned().collect())
        }
        CopySource::TurnPatch => {
            let changes: Vec<FileDiff> = turn_changes(session).into_iter().cloned().collect();
            patch(&format!("{} as patch", counted(changes.len(), "change", "changes")), changes)
        }
        CopySource::Item(id) => match &session.transcript.get(id)?.body {
            ItemBody::Message(message) => text("the message", text_of(&message.parts)),
            ItemBody::Tool(tool) if has_changes(tool) => job_of(session, CopySource::Patch(id)),
            ItemBody::Tool(tool) => match output(session, tool) {
                Some(content) => Some(CopyJob { what: "the output".to_owned(), content }),
                None => {
                    text("the tool call", tool.input.command.clone().unwrap_or_else(|| tool.title.clone()))
                }
            },
            ItemBody::Notice { title, detail, .. } => {
                let detail = detail.as_deref().unwrap_or_default();
                text("the message", format!("{title}\n{detail}"))
            }
            ItemBody::Compaction { summary, .. } => text("the summary", summary.clone()),
            ItemBody::Answered { question, answer, .. } => {
                text("the answer", format!("{question}\n{answer}"))
            }
            ItemBody::Raw { raw, .. } => text("the item", raw.0.to_string()),
            ItemBody::Subagent { title, description, .. } => {
                text("the item", format!("{title}\n{}", description.as_deref().unwrap_or_default()))
            }
            ItemBody::TurnEnd(crate::core::TurnEnd::Failed { error, .. }) => text("the error", error.clone()),
            ItemBody::TurnEnd(crate::core::TurnEnd::AgentDied { cause, stderr_tail }) => {
                text("the error", format!("{cause}\n{}", stderr_tail.join("\n")))
            }
            ItemBody::TurnEnd(_) => None,
        },
    }
}

fn text_of(parts: &[MessagePart]) -> String {
    let texts = parts.iter().filter_map(|part| match part {
        MessagePart::Text(text) | MessagePart::Block(ContentBlock::Text(text)) => Some(text.as_str()),
        MessagePart::Block(_) => None,
    });
    texts.collect::<Vec<_>>().join("\n\n")
}

fn message_of_agent(item: &Item) -> Option<&Message> {
    match &item.body {
        ItemBody::Message(message) if message.role == Role::Agent => Some(message),
        _ => None,
    }
}

/// All messages of the agent in the turn of its last message.
fn reply(session: &Session) -> String {
    let Some(turn) = last_reply_turn(session) else { return String::new() };
    let texts = items_of(session, turn).filter_map(message_of_agent).map(|message| text_of(&message.parts));
    let texts: Vec<String> = texts.filter(|text| !text.trim().is_empty()).collect();
    texts.join("\n\n")
}

fn last_reply_turn(session: &Session) -> Option<u32> {
    let is_reply = |item: &&Item| {
        message_of_agent(item).is_some_and(|message| !text_of(&message.parts).trim().is_empty())
    };
    session.transcript.items().iter().rev().find(is_reply).map(|item| item.turn)
}

fn items_of(session: &Session, turn: u32) -> impl Iterator<Item = &Item> {
    let items = session.transcript.items();
    let end = items.iter().rposition(|item| item.turn == turn).map_or(0, |at| at + 1);
    let before = items.get(..end).unwrap_or_default();
    let start = before.iter().rposition(|item| item.turn != turn).map_or(0, |at| at + 1);
    before.get(start..).unwrap_or_default().iter()
}

fn last_tool(session: &Session, fits: impl Fn(&ToolCall) -> bool) -> Option<ItemId> {
    let found = session.transcript.items().iter().rev().find(|item| match &item.body {
        ItemBody::Tool(tool) => fits(tool) && !item.is_hidden(),
        _ => false,
    });
    found.map(|item| item.id)
}

fn tool_of(session: &Session, id: ItemId) -> Option<(&Item, &ToolCall)> {
    let item = session.transcript.get(id)?;
    match &item.body {
        ItemBody::Tool(tool) => Some((item, tool)),
        _ => None,
    }
}

fn has_changes(tool: &ToolCall) -> bool {
    tool.diffs().next().is_some()
}

fn last_changed_turn(session: &Session) -> Option<u32> {
    last_tool(session, has_changes).and_then(|id| session.transcript.get(id)).map(|item| item.turn)
}

/// The changes of the last turn with changes, except those of failed calls.
fn turn_changes(session: &Session) -> Vec<&FileDiff> {
    let Some(turn) = last_changed_turn(session) else { return Vec::new() };
    let tools = items_of(session, turn).filter_map(|item| match &item.body {
        ItemBody::Tool(tool) if !item.is_hidden() && tool.parent.is_none() => Some(tool),
        _ => None,
    });
    tools
        .filter(|tool| !matches!(tool.status, ToolStatus::Failed | ToolStatus::Cancelled))
        .flat_map(|tool| tool.diffs())
        .collect()
}

/// The output of a call: the bytes of its terminal, otherwise its text.
fn output(session: &Session, tool: &ToolCall) -> Option<CopyContent> {
    let of_terminal = tool.content.iter().find_map(|content| match content {
        ToolContent::Terminal(id) => session.terminals.get(id).filter(|view| !view.output.is_empty()),
        _ => None,
    });
    if let Some(view) = of_terminal {
        return Some(CopyContent::Output { bytes: view.output.to_vec(), has_returns: view.is_ours });
    }
    let texts = tool.content.iter().filter_map(|content| match content {
        ToolContent::Block(ContentBlock::Text(text)) => Some(text.as_str()),
        _ => None,
    });
    let text = texts.collect::<Vec<_>>().join("\n");
    let text = if text.trim().is_empty() {
        tool.output_text.as_deref().unwrap_or_default().to_owned()
    } else {
        text
    };
    let bytes = text.into_bytes();
    (!bytes.is_empty()).then_some(CopyContent::Output { bytes, has_returns: false })
}

fn last_code(session: &Session) -> Option<CopySource> {
    session.transcript.items().iter().rev().find_map(|item| {
        let count = code_blocks(&text_of(&message_of_agent(item)?.parts)).len();
        count.checked_sub(1).map(|last| CopySource::Code(item.id, last))
    })
}

#[derive(Debug, Default)]
struct Code {
    language: String,
    text: String,
}

impl Code {
    fn label(&self) -> String {
        let lines = counted(self.text.lines().count(), "line", "lines");
        if self.language.is_empty() {
            format!("Code, {lines}")
        } else {
            format!("Code, {}, {lines}", self.language)
        }
    }

    fn first_line(&self) -> String {
        self.text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().trim().to_owned()
    }
}

/// The code blocks of a Markdown text, in order.
fn code_blocks(source: &str) -> Vec<Code> {
    let mut blocks = Vec::new();
    let mut open: Option<Code> = None;
    for event in Parser::new(source) {
        match event {
            Event::Start(Tag::CodeBlock(kind)) => {
                let language = match kind {
                    CodeBlockKind::Fenced(info) => {
                        info.split([' ', ',', '{', ':']).next().unwrap_or_default().to_owned()
                    }
                    CodeBlockKind::Indented => String::new(),
                };
                open = Some(Code { language, text: String::new() });
            }
            Event::Text(text) => {
                if let Some(code) = &mut open {
                    code.text.push_str(&text);
                }
            }
            Event::End(TagEnd::CodeBlock) => blocks.extend(open.take()),
            _ => {}
        }
    }
    blocks.extend(open);
    blocks
}
