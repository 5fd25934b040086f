//! The approximate size of updates in bytes.

use crate::model::{
    AgentTerminal, ContentBlock, DiffChange, FileDiff, Patch, ResourceBody, SessionUpdate, ToolCallPatch,
    ToolContent, ToolInput,
};

/// Size of an event in addition to its texts and the item it may create.
const EVENT: usize = 16;

fn of_text(text: Option<&str>) -> usize {
    text.map_or(0, str::len)
}

fn of_input(input: &ToolInput) -> usize {
    input.diffs.iter().map(of_diff).sum::<usize>() + of_text(input.command.as_deref())
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
        DiffChange::Texts { old, new } => old.as_ref().map_or(0, crate::model::body::Body::len) + new.len(),
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

pub fn of_update(update: &SessionUpdate) -> usize {
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
            EVENT + title.len() + of_text(description.as_deref())
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
    let own = if patch.is_announcement { size_of::<ToolCallPatch>() } else { EVENT };
    own + raws
        + content.map(of_content).sum::<usize>()
        + patch.terminals.iter().map(of_news).sum::<usize>()
        + patch.input.as_set().map_or(0, of_input)
        + of_text(patch.output_text.as_set().map(|text| &**text))
}
