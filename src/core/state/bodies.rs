//! Unloads large texts of the sessions, so that memory does not grow with outputs, changes and images.
//!
//! After [`BUDGET_BYTES`] of new content, everything large is saved in a file ([`Effect::SaveBodies`]), and unloaded once
//! it is saved. A text that is used is read again, and stays in memory until the next time.

use crate::core::{Cx, Effect, Item, ItemBody, Message, MessagePart, Session, State, ToolCall};
use crate::model::{
    Body, ContentBlock, DiffChange, FileDiff, Growing, LARGE_BYTES, ReadBytes, ResourceBody, ToolContent,
    UnsavedBody,
};

/// New or read content after which large texts are unloaded.
const BUDGET_BYTES: usize = 8 << 20;

/// What is known about the memory of large texts.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Bodies {
    is_saving: bool,
    /// Size of the texts that were read since the last time.
    read: ReadBytes,
}

/// Unloads large texts if there is much new content.
pub(in crate::core) fn trim(state: &mut State, cx: &mut Cx) {
    let grown: usize = state.sessions.values().map(grown_bytes).sum();
    if !state.bodies.is_saving && grown + state.bodies.read.count() >= BUDGET_BYTES {
        unload(state, cx);
    }
}

/// Texts were saved, unless there was an error: then they stay in memory until there is more new content.
pub(in crate::core) fn on_saved(state: &mut State, is_saved: bool) {
    state.bodies.is_saving = false;
    if is_saved {
        visit_all(state, &mut |body| drop(body.unload()));
    }
}

fn unload(state: &mut State, cx: &mut Cx) {
    state.bodies.read.reset();
    for session in state.sessions.all_unchanged() {
        session.grown_bytes = 0;
        session.loading.iter_mut().for_each(|loading| loading.whole.grown_bytes = 0);
    }
    let mut bodies: Vec<UnsavedBody> = Vec::new();
    visit_all(state, &mut |body| bodies.extend(body.unload()));
    if !bodies.is_empty() {
        state.bodies.is_saving = true;
        cx.effects.push(Effect::SaveBodies { bodies, read: state.bodies.read.clone() });
    }
}

fn grown_bytes(session: &Session) -> usize {
    session.grown_bytes + session.loading.as_ref().map_or(0, |loading| loading.whole.grown_bytes)
}

fn visit_all(state: &mut State, visit: &mut impl FnMut(&mut Body)) {
    for session in state.sessions.all_unchanged() {
        visit_session(session, visit);
        if let Some(loading) = &mut session.loading {
            visit_session(&mut loading.whole, visit);
        }
    }
}

fn visit_session(session: &mut Session, visit: &mut impl FnMut(&mut Body)) {
    session.transcript.items_unchanged().for_each(|item| visit_item(item, visit));
    for view in session.terminals.values_mut().filter(|view| view.exit.is_some()) {
        if view.output.len() >= LARGE_BYTES {
            view.output.close();
        }
        view.output.closed_mut().into_iter().for_each(&mut *visit);
    }
}

fn visit_item(item: &mut Item, visit: &mut impl FnMut(&mut Body)) {
    match &mut item.body {
        ItemBody::Message(message) if !message.is_open => visit_message(message, visit),
        ItemBody::Tool(call) => visit_call(call, visit),
        ItemBody::Raw { raw, .. } => visit(&mut raw.0),
        _ => {}
    }
}

fn visit_message(message: &mut Message, visit: &mut impl FnMut(&mut Body)) {
    for part in &mut message.parts {
        match part {
            MessagePart::Text(text) => visit_text(text, visit),
            MessagePart::Block(block) => visit_block(block, visit),
        }
    }
}

fn visit_call(call: &mut ToolCall, visit: &mut impl FnMut(&mut Body)) {
    for content in &mut call.content {
        match content {
            ToolContent::Block(block) => visit_block(block, visit),
            ToolContent::Diff(diff) => visit_diff(diff, visit),
            ToolContent::Terminal(_) => {}
            ToolContent::Unknown(raw) => visit(&mut raw.0),
        }
    }
    let made = call.accesses.iter_mut().filter_map(|access| access.change.as_mut()?.diff.as_mut());
    let located = call.positions.iter_mut().map(|located| &mut located.diff);
    let diffs = call.input.diffs.iter_mut().chain(&mut call.approved).chain(located).chain(made);
    diffs.for_each(|diff| visit_diff(diff, visit));
    let raws = [&mut call.raw_input, &mut call.raw_output, &mut call.extra];
    raws.into_iter().flatten().for_each(|raw| visit(&mut raw.0));
    call.output_text.iter_mut().for_each(|text| visit_text(text, visit));
}

fn visit_diff(diff: &mut FileDiff, visit: &mut impl FnMut(&mut Body)) {
    match &mut diff.change {
        DiffChange::Texts { old, new } => old.iter_mut().chain([new]).for_each(visit),
        DiffChange::Patch(text) => visit(text),
    }
}

fn visit_block(block: &mut ContentBlock, visit: &mut impl FnMut(&mut Body)) {
    match block {
        ContentBlock::Text(text) | ContentBlock::Resource { body: ResourceBody::Text(text), .. } => {
            visit_text(text, visit);
        }
        ContentBlock::Image { data, .. }
        | ContentBlock::Audio { data, .. }
        | ContentBlock::Resource { body: ResourceBody::Blob(data), .. } => visit(data),
        ContentBlock::ResourceLink(_) => {}
        ContentBlock::Unknown(raw) => visit(&mut raw.0),
    }
}

fn visit_text(text: &mut Growing<String>, visit: &mut impl FnMut(&mut Body)) {
    if text.len() >= LARGE_BYTES {
        text.close();
    }
    text.closed_mut().into_iter().for_each(visit);
}
