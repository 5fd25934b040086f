//! Approximate memory size of items in bytes, and the size that an event adds.
//!
//! Invariant: an event is weighed by its own content, not by the item it is added to.

use crate::app::state::pages::index_range;
use crate::app::{Item, ItemBody, MessagePart, Session, ToolCall, TurnEnd};
use crate::model::{
    AccessRecord, AgentTerminal, ContentBlock, DiffChange, FileDiff, ItemId, Patch, Record, ResourceBody,
    SessionUpdate, ToolCallPatch, ToolContent, ToolInput, TurnOutcome,
};

/// Size of an item in addition to its texts: the struct and its index entries.
pub(in crate::app) const ITEM: usize = size_of::<Item>() + 64;
/// Size of an event in addition to its texts and the item it may create.
const EVENT: usize = 16;

/// The size of the items from `first` up to (not including) `behind`, with the terminals they show.
pub(in crate::app) fn of_items(session: &Session, first: ItemId, behind: ItemId) -> usize {
    let range = index_range(&session.transcript, first, behind);
    let items = session.transcript.items().get(range).unwrap_or_default();
    items.iter().map(|item| ITEM + of_body(session, &item.body)).sum()
}

fn of_text(text: Option<&String>) -> usize {
    text.map_or(0, String::len)
}

fn of_body(session: &Session, body: &ItemBody) -> usize {
    match body {
        ItemBody::Message(message) => message.parts.iter().map(of_part).sum(),
        ItemBody::Tool(call) => of_call(session, call),
        ItemBody::TurnEnd(TurnEnd::Failed { error, .. }) => error.len(),
        ItemBody::TurnEnd(TurnEnd::AgentDied { cause, stderr_tail }) => {
            cause.len() + stderr_tail.iter().map(String::len).sum::<usize>()
        }
        ItemBody::TurnEnd(TurnEnd::Stopped { .. }) => 0,
        ItemBody::Notice { title, detail, .. } => title.len() + of_text(detail.as_ref()),
        ItemBody::Compaction { summary, .. } => summary.len(),
        ItemBody::Subagent { title, description, .. } => title.len() + of_text(description.as_ref()),
        ItemBody::Answered { question, answer } => question.len() + answer.len(),
        ItemBody::Raw { raw, .. } => raw.0.len(),
    }
}

fn of_part(part: &MessagePart) -> usize {
    let content = match part {
        MessagePart::Text(text) => text.capacity(),
        MessagePart::Block(block) => of_block(block),
    };
    size_of::<MessagePart>() + content
}

fn of_call(session: &Session, call: &ToolCall) -> usize {
    let terminals = call.content.iter().filter_map(|content| match content {
        ToolContent::Terminal(id) => session.terminals.get(id).map(|view| view.output.capacity()),
        _ => None,
    });
    let raws = [&call.raw_input, &call.raw_output, &call.extra].into_iter().flatten();
    size_of::<ToolCall>()
        + call.title.len()
        + of_text(call.output_text.as_ref())
        + of_input(&call.input)
        + call.content.iter().map(of_content).sum::<usize>()
        + terminals.sum::<usize>()
        + raws.map(|raw| raw.0.len()).sum::<usize>()
        + call.positions.iter().map(|known| of_diff(&known.diff)).sum::<usize>()
        + call.accesses.iter().map(of_access).sum::<usize>()
        + call.approved.iter().map(of_diff).sum::<usize>()
}

fn of_access(access: &AccessRecord) -> usize {
    size_of::<AccessRecord>()
        + access.diff().map_or(0, of_diff)
        + access.command().map_or(0, |it| it.line.len())
}

fn of_input(input: &ToolInput) -> usize {
    input.diffs.iter().map(of_diff).sum::<usize>() + of_text(input.command.as_ref())
}

fn of_content(content: &ToolContent) -> usize {
    size_of::<ToolContent>()
        + match content {
            ToolContent::Block(block) => of_block(block),
            ToolContent::Diff(diff) => of_diff(diff),
            ToolContent::Terminal(id) => id.as_str().len(),
            ToolContent::Unknown(raw) => raw.0.len(),
        }
}

fn of_diff(diff: &FileDiff) -> usize {
    let change = match &diff.change {
        DiffChange::Texts { old, new } => old.as_ref().map_or(0, |old| old.len()) + new.len(),
        DiffChange::Patch(text) => text.len(),
    };
    size_of::<FileDiff>() + change
}

fn of_block(block: &ContentBlock) -> usize {
    match block {
        ContentBlock::Text(text) | ContentBlock::Resource { body: ResourceBody::Text(text), .. } => {
            text.len()
        }
        ContentBlock::Image { data, .. }
        | ContentBlock::Audio { data, .. }
        | ContentBlock::Resource { body: ResourceBody::Blob(data), .. } => data.len(),
        ContentBlock::ResourceLink(_) => 256,
        ContentBlock::Unknown(raw) => raw.0.len(),
    }
}

/// The size of the content of an event.
pub(in crate::app) fn of_record(record: &Record) -> usize {
    match record {
        Record::Prompt { text, .. } => text.len(),
        Record::Update(update) => of_update(update),
        Record::Asked(patch) => of_patch(patch),
        Record::Answered { question, answer } => ITEM + question.len() + answer.len(),
        Record::Access(access) => ITEM + of_access(access),
        Record::Command { output, .. } => output.len(),
        Record::Notice { title, detail, .. } => ITEM + title.len() + of_text(detail.as_ref()),
        Record::TurnEnded(TurnOutcome::Failed { error, .. }) => ITEM + error.len(),
        Record::TurnEnded(TurnOutcome::AgentDied { cause, .. }) => ITEM + cause.len(),
        Record::TurnEnded(_)
        | Record::Decided { .. }
        | Record::Located { .. }
        | Record::Replaced
        | Record::Archived { .. } => EVENT,
        Record::Inserted { updates, .. } => ITEM + updates.iter().map(of_update).sum::<usize>(),
        Record::HandedOver { text, .. } => EVENT + text.len(),
    }
}

pub(in crate::app) fn of_update(update: &SessionUpdate) -> usize {
    match update {
        SessionUpdate::Chunk { text, .. }
        | SessionUpdate::Compaction { summary: Patch::Set(text), .. }
        | SessionUpdate::CompactionChunk { text, .. } => EVENT + text.len(),
        SessionUpdate::Block { block, .. } => EVENT + of_block(block),
        SessionUpdate::Message { content, more_content, .. } => {
            let blocks = content.as_set().into_iter().flatten().chain(more_content);
            EVENT + blocks.map(of_block).sum::<usize>()
        }
        SessionUpdate::Tool(patch) => of_patch(patch),
        SessionUpdate::Terminal(update) => of_news(update),
        SessionUpdate::Notice { title, description, .. } => {
            EVENT + title.len() + of_text(description.as_ref())
        }
        SessionUpdate::Unknown { raw, .. } => EVENT + raw.0.len(),
        _ => EVENT,
    }
}

fn of_news(update: &AgentTerminal) -> usize {
    match update {
        AgentTerminal::Bytes { bytes, .. } => EVENT + bytes.len(),
        AgentTerminal::Output { data, .. } => EVENT + data.len(),
        _ => EVENT,
    }
}

fn of_patch(patch: &ToolCallPatch) -> usize {
    let raws = [&patch.raw_input, &patch.raw_output];
    let raws: usize = raws.into_iter().filter_map(Patch::as_set).map(|raw| raw.0.len()).sum();
    let content = patch.content.as_set().into_iter().flatten().chain(&patch.more_content);
    let own = if patch.is_announcement { size_of::<ToolCall>() } else { EVENT };
    own + raws
        + content.map(of_content).sum::<usize>()
        + patch.terminals.iter().map(of_news).sum::<usize>()
        + patch.input.as_set().map_or(0, of_input)
        + of_text(patch.output_text.as_set())
}
