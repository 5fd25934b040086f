//! Clearing the agent's context: `/clear`, and plans that are carried out in a new context.
//!
//! A command of the agent is sent to it, and its end is marked in the transcript. Otherwise parlor opens a new session in
//! place of the former one (`open::start_over`), because an agent that clears its context without notice continues under
//! an id that only it has: resuming the id that parlor has would restore the context from before.

use super::record;
use crate::core::state::commands::OWN_PREFIX;
use crate::core::{ItemBody, MessagePart, Session};
use crate::model::{NoticeKind, Role, Severity, ToolKind, Usage};

/// The commands that clear the context, in all known agents.
const NAMES: [&str; 3] = ["clear", "new", "reset"];

/// The command that a prompt consists of, if it clears the context.
fn name(prompt: &str) -> Option<&str> {
    prompt.trim().strip_prefix('/').filter(|name| NAMES.contains(name))
}

pub(in crate::core) fn is_of_agent(session: &Session, prompt: &str) -> bool {
    name(prompt).is_some_and(|name| session.commands.iter().any(|command| command.name == name))
}

/// Whether parlor executes the prompt, because the agent does not have the command.
pub(in crate::core) fn is_own(session: &Session, prompt: &str) -> bool {
    let prefixed = prompt.trim().strip_prefix('/').and_then(|name| name.strip_prefix(OWN_PREFIX));
    let is_prefixed =
        prefixed.and_then(|name| name.strip_prefix(':')).is_some_and(|name| NAMES.contains(&name));
    is_prefixed || (name(prompt).is_some() && !is_of_agent(session, prompt))
}

/// Marks the place where the agent has cleared its context.
pub(in crate::core) fn mark(session: &mut Session) {
    let (kind, title) = (NoticeKind::ContextCleared, "Context cleared".to_owned());
    let detail = "The agent no longer has the conversation above.".to_owned();
    record::notice(session, kind, Severity::Info, title, Some(detail));
}

/// Whether an empty context in a running turn means that the agent carries out an approved plan in a new context.
/// Source: claude, after a plan is approved with "clear context".
pub(in crate::core) fn is_by_plan(session: &Session, usage: &Usage) -> bool {
    let had_context = session.usage.as_ref().is_some_and(|known| known.used_tokens > 0);
    let turn = session.transcript.items().iter().rev().take_while(|item| item.turn == session.turn_count);
    let is_approval =
        |body: &ItemBody| matches!(body, ItemBody::Tool(tool) if tool.kind == ToolKind::SwitchMode);
    session.turn.is_running()
        && usage.used_tokens == 0
        && had_context
        && turn.map(|item| &item.body).any(is_approval)
}

/// Whether the agent's context was cleared, or a shown prompt may have cleared it. Then the agent may have another
/// history under the session's id than the transcript shows.
pub(in crate::core) fn was_cleared(session: &Session) -> bool {
    session.transcript.items().iter().any(|item| match &item.body {
        ItemBody::Notice { kind: NoticeKind::ContextCleared, .. } => true,
        ItemBody::Message(message) if message.role == Role::User => match message.parts.as_slice() {
            [MessagePart::Text(text)] => name(text).is_some(),
            _ => false,
        },
        _ => false,
    })
}
