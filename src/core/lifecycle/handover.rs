//! Hands a conversation over to an agent that does not have it: another agent, or one that could not resume the
//! session.
//!
//! Writes the transcript to a document of limited size, which is sent with the next prompt. It contains messages and
//! tool calls, but no tool output. A summary by the agent replaces the part it covers, and omissions are noted. It is
//! sent as an embedded resource if the agent supports that, otherwise as text. Source: ACP v1 prompt-turn, prompt
//! capabilities.
//! Invariants: the user is informed of the handover and its size before it is sent; it is sent once, with a prompt that
//! was answered.

use crate::core::Handover;
use crate::core::recording::recorder;
use crate::core::state::place;
use std::fmt::Write as _;

use crate::model::{
    Action, AgentSpec, ConnId, ContentBlock, ItemId, Record, ResourceBody, Role, SessionKey, Setting,
    ToolKind, ToolStatus, byte_size,
};

use super::{call, conn, history, tabs};
use crate::core::session::record;
use crate::core::state::lookup;
use crate::core::{
    Cx, Effect, Item, ItemBody, Message, MessagePart, Session, State, ToolCall, session_title,
};

/// Default maximum size in bytes.
pub const DEFAULT_BYTES: usize = 64 << 10;

/// Minimum for the configured size in bytes.
pub const MIN_BYTES: usize = 1 << 10;

/// A message may use this fraction of the size.
const MESSAGE_PART: usize = 4;

/// The element around the text for agents without embedded resources; also used to strip it from echoes.
const TAG: &str = "earlier_conversation";

/// Opens a session with another agent whose first prompt includes this session's conversation.
pub fn hand_over(state: &mut State, from: SessionKey, spec: AgentSpec, cx: &mut Cx) {
    let from = lookup::root_of(state, from);
    if is_part(state, from, cx) {
        return;
    }
    let Some(text) = document(state, from, None) else {
        call::flash(state, "Nothing to hand over yet.", cx);
        return;
    };
    let name = spec.name.clone();
    begin_beside(state, from, Some(text), spec, Vec::new(), cx);
    if let Some(source) = state.sessions.get_mut(&from) {
        record::say(source, format!("Conversation handed over to {name}."), None);
    }
}

/// Opens a session with the same agent whose first prompt includes the conversation before an item.
pub fn hand_over_before(state: &mut State, from: SessionKey, item: ItemId, cx: &mut Cx) {
    let Some(spec) = agent_of(state, from) else { return };
    if !is_part(state, from, cx) {
        let chosen = state.sessions.get(&from).map(|session| session.settings.chosen().to_vec());
        let text = document(state, from, Some(item));
        begin_beside(state, from, text, spec, chosen.unwrap_or_default(), cx);
    }
}

/// The agent of a session, running or not.
pub fn agent_of(state: &State, key: SessionKey) -> Option<AgentSpec> {
    let saved = state.sessions.get(&key).and_then(|session| session.recorder.agent());
    let known = || {
        let (name, ..) = saved?;
        state.setup.agents.iter().find(|choice| choice.spec.name == *name).map(|choice| choice.spec.clone())
    };
    state.conn_of(key).map(|conn| conn.spec.clone()).or_else(known)
}

/// Whether only a part of the session is loaded, which cannot be handed over; says so.
fn is_part(state: &mut State, from: SessionKey, cx: &mut Cx) -> bool {
    let is_part = state.sessions.get(&from).is_some_and(|session| session.loading.is_some());
    if is_part {
        call::flash(state, "The session is still being read. Try again in a moment.", cx);
    }
    is_part
}

/// Opens a session that continues another one, with its conversation if there is any.
fn begin_beside(
    state: &mut State,
    from: SessionKey,
    text: Option<String>,
    spec: AgentSpec,
    chosen: Vec<Setting>,
    cx: &mut Cx,
) {
    let agent = agent_name(state, from);
    let key = state.add_session();
    let Some(source) = state.sessions.get(&from) else { return };
    let (workspace, name) = (source.workspace.clone(), session_title(source));
    if let Some(session) = state.sessions.get_mut(&key) {
        cx.effects.push(Effect::ReadGit { session: key, folder: workspace.cwd.clone() });
        session.workspace = workspace;
        session.settings.set_chosen(chosen);
        let detail = text.as_ref().map(|text| {
            format!(
                "The conversation ({}) is sent to {} with your first prompt. The agent does not have \
                    this history.",
                byte_size(text.len() as u64),
                spec.name
            )
        });
        record::say(session, format!("Continued from a session with {agent}: {name}"), detail);
        if let Some(text) = text {
            set(session, text, agent);
        }
    }
    recorder::link(state, from, key, None);
    tabs::activate(state, key);
    history::init_history(state, key, cx);
    conn::start_agent(state, key, spec, cx);
}

/// Sends the conversation with the next prompt to the session's agent.
pub fn tell_agent(state: &mut State, key: SessionKey, cx: &mut Cx) {
    if state.sessions.get(&key).is_some_and(|session| session.resume.handover().is_some()) {
        call::flash(state, "The conversation is already sent with your next prompt.", cx);
        return;
    }
    let agent = agent_name(state, key);
    let Some(text) = document(state, key, None) else {
        call::flash(state, "Nothing to send yet.", cx);
        return;
    };
    let size = byte_size(text.len() as u64);
    if let Some(session) = state.sessions.get_mut(&key) {
        set(session, text, agent);
        record::say(
            session,
            format!(
                "The conversation above ({size}) is sent to the agent with your \
            next prompt."
            ),
            None,
        );
    }
}

/// Sends the text with the next prompt, also after a restart of parlor.
fn set(session: &mut Session, text: String, agent: String) {
    record::note(session, Record::HandedOver { agent: agent.clone(), text: text.clone() });
    session.resume.hand_over(text, agent);
}

/// The offer to send the conversation, for the notice that the agent does not have it; `None`: it is empty. Accepted by
/// [`crate::model::Action::HandOver`].
pub(in crate::core) fn offer(state: &State, key: SessionKey) -> Option<String> {
    let size = byte_size(document(state, key, None)?.len() as u64);
    let how = state.setup.how_to(Action::HandOver)?;
    Some(format!("{how} sends the conversation without tool output ({size}) with your next prompt."))
}

/// The blocks of a prompt, preceded by the conversation if one is to be handed over.
pub(crate) fn blocks(state: &mut State, conn: ConnId, key: SessionKey, prompt: &str) -> Vec<ContentBlock> {
    let takes_resources =
        state.conns.get(&conn).is_some_and(|conn| conn.capabilities().prompt_embedded_context);
    let text = ContentBlock::Text(prompt.to_owned().into());
    let conversation = state.sessions.get(&key).and_then(|session| session.resume.handover());
    let Some(Handover { text: conversation, .. }) = conversation else { return vec![text] };
    let context = if takes_resources {
        ContentBlock::Resource {
            uri: format!("parlor://{TAG}.md"),
            mime_type: Some("text/markdown".to_owned()),
            body: ResourceBody::Text(conversation.clone().into()),
        }
    } else {
        ContentBlock::Text(format!("<{TAG}>\n{conversation}\n</{TAG}>\n\n").into())
    };
    vec![context, text]
}

/// The text of blocks as an agent echoes them.
pub(in crate::core) fn echo_of(blocks: &[ContentBlock]) -> String {
    blocks
        .iter()
        .filter_map(|block| match block {
            ContentBlock::Text(text) => Some(text.as_str()),
            _ => None,
        })
        .collect()
}

fn agent_name(state: &State, key: SessionKey) -> String {
    let saved = state.sessions.get(&key).and_then(|session| session.recorder.agent());
    let name = state.conn_of(key).map(|conn| conn.spec.shown_name().to_owned());
    name.or_else(|| saved.map(|(name, ..)| name.clone()))
        .filter(|name| !name.is_empty())
        .unwrap_or("another agent".to_owned())
}

/// The conversation, or the part before an item, as a document of at most the configured size; `None` if it is empty.
pub(in crate::core) fn document(state: &State, key: SessionKey, before: Option<ItemId>) -> Option<String> {
    let max = match state.setup.handover_bytes {
        0 => DEFAULT_BYTES,
        bytes => bytes.max(MIN_BYTES),
    };
    let session = state.sessions.get(&key)?;
    let agent = agent_name(state, key);
    let items = session.transcript.items();
    let end = before.map_or(Some(items.len()), |id| session.transcript.index_of(id))?;
    write_document(session, items.get(..end)?, &agent, max)
}

/// Writes the document: as many complete items from the end as fit, and the first prompt.
fn write_document(session: &Session, items: &[Item], agent: &str, max_bytes: usize) -> Option<String> {
    // A summary by the agent says more than truncated text.
    let is_summary = |item: &Item| matches!(&item.body, ItemBody::Compaction { summary, .. } if !summary.trim().is_empty());
    let begin = items.iter().rposition(is_summary).unwrap_or(0);
    let head = format!(
        "# Conversation so far\n\nThe user worked with {agent} in {}. You have not seen this \
            conversation. Tool output is omitted; read files again before you rely on them.\n\n",
        session.workspace.cwd.display()
    );
    let room = max_bytes.saturating_sub(head.len() + 200);
    let max_piece = room / MESSAGE_PART;
    let mut pieces: Vec<String> = Vec::new();
    let mut used = 0;
    let mut left_out = 0_usize;
    for item in items.iter().skip(begin).rev().filter(|item| !item.is_hidden()) {
        let Some(text) = piece(item, max_piece) else { continue };
        if left_out > 0 || used + text.len() > room {
            left_out += 1;
        } else {
            used += text.len();
            pieces.push(text);
        }
    }
    if pieces.is_empty() || !items.iter().any(|item| matches!(item.body, ItemBody::Message(_))) {
        return None;
    }
    let is_cut = left_out > 0 || session.loading.is_some();
    let mut text = head;
    if is_cut {
        let first = items.iter().find_map(|item| match &item.body {
            ItemBody::Message(message) if message.role == Role::User => Some(message_text(message)),
            _ => None,
        });
        // If earlier events are not read yet, the first prompt here is not that of the session.
        let is_first = left_out > 0 && session.loading.is_none();
        let first = first.filter(|_| is_first).map(|first| cut(first.trim(), 160.min(room / 8)));
        if let Some(first) = first {
            let _ = write!(text, "The first prompt was: {first}\n\n");
        }
        text.push_str("(Earlier parts are omitted.)\n\n");
    }
    text.extend(pieces.into_iter().rev());
    Some(text.trim_end().to_owned())
}

fn piece(item: &Item, max_bytes: usize) -> Option<String> {
    match &item.body {
        ItemBody::Message(message) => {
            let text = message_text(message);
            let text = if message.role == Role::User { place::without_context(&text) } else { text.trim() };
            let who = match message.role {
                Role::User => "User",
                Role::Agent | Role::SubagentMessage => "Assistant",
                // Thoughts are not part of the conversation.
                Role::Thought => return None,
            };
            (!text.trim().is_empty()).then(|| format!("## {who}\n\n{}\n\n", cut(text.trim(), max_bytes)))
        }
        // The user's own commands are not part of the conversation.
        ItemBody::Tool(tool) => (!tool.is_typed()).then(|| call_line(tool)),
        ItemBody::Compaction { summary, .. } if !summary.trim().is_empty() => {
            Some(format!("## Summary of the earlier conversation\n\n{}\n\n", cut(summary.trim(), max_bytes)))
        }
        ItemBody::Answered { question, answer, .. } => {
            Some(format!("(Asked: {} The user: {})\n\n", cut(question, 400), cut(answer, 400)))
        }
        _ => None,
    }
}

fn call_line(tool: &ToolCall) -> String {
    let title = if tool.title.is_empty() { tool.id.to_string() } else { tool.title.clone() };
    let title = tool.input.command.clone().filter(|_| tool.kind == ToolKind::Execute).unwrap_or(title);
    let mut line = format!("- {}", cut(title.lines().next().unwrap_or_default(), 200));
    let mut paths: Vec<String> = tool.diffs().map(|diff| diff.path.display().to_string()).collect();
    paths.dedup();
    if !paths.is_empty() {
        let _ = write!(line, " (changed {})", paths.join(", "));
    }
    if tool.status == ToolStatus::Failed {
        line.push_str(" (failed)");
    }
    line.push_str("\n\n");
    line
}

fn message_text(message: &Message) -> String {
    let texts = message.parts.iter().map(|part| match part {
        MessagePart::Text(text) => text.to_string(),
        MessagePart::Block(ContentBlock::Unknown(_)) => "[unknown content]".to_owned(),
        MessagePart::Block(block) => block.description(),
    });
    texts.collect::<Vec<_>>().join("\n\n")
}

fn cut(text: &str, max_bytes: usize) -> String {
    if text.len() <= max_bytes {
        return text.to_owned();
    }
    let end = (0..=max_bytes).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    format!("{} […]", text.get(..end).unwrap_or_default())
}
