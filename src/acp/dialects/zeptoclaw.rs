//! `ZeptoClaw`: limits of its prompts, and sessions that a gateway continues by their id.
//!
//! A session belongs to the gateway, not to a connection, but there is no call to resume one: only whether it still
//! exists can be checked, with `session/list`.
//! Source: the documentation of `ZeptoClaw`; the limits are those of its listener.

use std::collections::BTreeMap;

use serde_json::json;

use super::{Dialect, Method, Translation};
use crate::acp::codec::names::SESSION_ID;
use crate::acp::codec::value::{first_text, items, parse_object};
use crate::model::{AgentInfo, Call, ContentBlock, Profile};

/// Maximum size of a request over HTTP including headers, in bytes.
pub const MAX_REQUEST_BYTES: usize = 118_784;
const MAX_PROMPT_BYTES: usize = 102_400;

#[derive(Debug)]
pub struct ZeptoClaw {
    is_remote: bool,
    /// Requests that list sessions in order to resume one.
    resuming: BTreeMap<u64, String>,
}

impl ZeptoClaw {
    pub fn new(is_remote: bool) -> Self {
        Self { is_remote, resuming: BTreeMap::new() }
    }
}

impl Dialect for ZeptoClaw {
    fn describe(&self, info: &mut AgentInfo) {
        info.profile = Some(Profile::ZeptoClaw);
        let mut notes = vec![
            "Prompts are limited to 100 KiB of text.",
            "parlor does not cancel its requests, because the agent treats a cancellation as an error.",
        ];
        if self.is_remote {
            info.capabilities.can_resume = true;
            notes.extend([
                "Messages sent between turns are not delivered over this transport.",
                "A session can be resumed by its id while the agent's server is running; session/list shows whether \
                 it still exists.",
            ]);
        }
        info.quirks.extend(notes.into_iter().map(str::to_owned));
    }

    fn call(&mut self, id: u64, call: &Call, message: &mut Method) -> Result<(), String> {
        match call {
            Call::Prompt(_, blocks) => super::check_size(prompt_bytes(blocks), MAX_PROMPT_BYTES),
            Call::ResumeSession(session, _) if self.is_remote => {
                self.resuming.insert(id, session.to_string());
                *message = ("session/list", "{}".to_owned());
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Unknown notifications are answered with errors.
    fn withdraw(&self, _id: u64) -> Option<Method> {
        None
    }

    fn on_response(&mut self, id: u64, outcome: Result<&str, &str>, out: &mut Translation) -> bool {
        let (Some(session), Ok(result)) = (self.resuming.remove(&id), outcome) else { return false };
        let result = parse_object(result).unwrap_or_default();
        let mut ids =
            items(result.get("sessions")).filter_map(|item| first_text(item.as_object()?, SESSION_ID));
        out.respond(id, if ids.any(|id| id == session) { Ok(json!({})) } else { Err(super::no_session()) });
        true
    }
}

/// The size that the agent computes for a prompt: texts, and the names and URIs of links.
fn prompt_bytes(blocks: &[ContentBlock]) -> usize {
    let parts = blocks.iter().map(|block| match block {
        ContentBlock::Text(text) => text.len(),
        ContentBlock::ResourceLink(link) => link.uri.len() + link.name.len() + "[Resource:  ()]".len(),
        _ => 0,
    });
    // Parts are joined with line ends.
    parts.sum::<usize>() + blocks.len().saturating_sub(1)
}
