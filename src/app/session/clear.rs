//! `/clear`: commands that clear the agent's context.
//!
//! A command of the agent is sent to it, and its end is marked in the transcript. Otherwise parlor opens a new session in
//! place of the former one (`open::start_over`), because an agent that clears its context without notice continues under
//! an id that only it has: resuming the id that parlor has would restore the context from before.

use super::record;
use crate::app::state::commands::OWN_PREFIX;
use crate::app::{ItemBody, MessagePart, Session};
use crate::model::Role;

/// The commands that clear the context, in all known agents.
const NAMES: [&str; 3] = ["clear", "new", "reset"];

/// The command that a prompt consists of, if it clears the context.
fn name(prompt: &str) -> Option<&str> {
    prompt.trim().strip_prefix('/').filter(|name| NAMES.contains(name))
}

/// Whether the prompt is a command of the agent that clears its context.
pub(in crate::app) fn is_of_agent(session: &Session, prompt: &str) -> bool {
    name(prompt).is_some_and(|name| session.commands.iter().any(|command| command.name == name))
}

/// Whether parlor executes the prompt, because the agent does not have the command.
pub(in crate::app) fn is_own(session: &Session, prompt: &str) -> bool {
    let prefixed = prompt.trim().strip_prefix('/').and_then(|name| name.strip_prefix(OWN_PREFIX));
    let is_prefixed =
        prefixed.and_then(|name| name.strip_prefix(':')).is_some_and(|name| NAMES.contains(&name));
    is_prefixed || (name(prompt).is_some() && !is_of_agent(session, prompt))
}

/// Marks the place where the agent has cleared its context.
pub(in crate::app) fn mark(session: &mut Session) {
    let detail = "The agent no longer has the conversation above.".to_owned();
    record::say(session, "Context cleared".to_owned(), Some(detail));
}

/// Whether a shown prompt may have cleared the agent's context. Then the agent may have another history under the
/// session's id than the transcript shows.
pub(in crate::app) fn was_cleared(session: &Session) -> bool {
    session.transcript.items().iter().any(|item| match &item.body {
        ItemBody::Message(message) if message.role == Role::User => match message.parts.as_slice() {
            [MessagePart::Text(text)] => name(text).is_some(),
            _ => false,
        },
        _ => false,
    })
}
