//! The history that an agent replays when a session is opened.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::model::{ContentBlock, ItemId, Role, SessionKey, SessionUpdate, ToolCallId, ToolStatus, weight};

use super::place::{Record, ReplayedTurn, Reply};
use crate::core::{Session, Transcript};

/// How a replayed history is received.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Replay {
    #[default]
    None,
    /// The record is empty, and takes the history as a whole; nothing was received yet. The key is that of its spool.
    Armed(SessionKey),
    /// It has begun; holds the previous items, to be restored if it fails.
    Running(Box<Transcript>),
    /// The history goes to a spool beside the record.
    Beside(Box<Spool>),
}

/// Maximum size of the updates of open tool calls that are kept for requests about them.
const MAX_CALL_BYTES: usize = 1 << 20;

/// The history of an agent that has a record. The store has its updates, in units that begin with each chunk of a user
/// message.
#[derive(Debug, Clone, PartialEq, Default)]
#[allow(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct Spool {
    pub(in crate::core) key: SessionKey,
    /// Its id in the store, once it is saved.
    pub(in crate::core) uid: Option<String>,
    /// Whether the agent was asked to replay. Otherwise it may still do so.
    pub(in crate::core) is_expected: bool,
    pub(in crate::core) turns: Vec<ReplayedTurn>,
    pub(in crate::core) units: Vec<u32>,
    /// The number of the last unit.
    pub(in crate::core) unit: u32,
    /// The record that it is compared with, once all of it is read.
    pub(in crate::core) record: Option<Arc<Record>>,
    /// Number of updates so far, and at the last check.
    pub(in crate::core) seen: u64,
    pub(in crate::core) checked: u64,
    /// Whether the call that opens the session was answered.
    pub(in crate::core) is_answered: bool,
    /// Whether nothing was received for a while after that.
    pub(in crate::core) is_quiet: bool,
    /// Whether it began after the call that opens the session was answered.
    pub(in crate::core) is_late: bool,
    /// Whether it has reached the end of the record: output of the agent after that is live.
    pub(in crate::core) is_at_end: bool,
    /// The line that tells the difference, and the difference.
    pub(in crate::core) reported: Option<(ItemId, u64)>,
    /// Whether a prompt was sent: from then on, everything is live.
    pub(in crate::core) is_over: bool,
    /// The number of the last request to confirm what is on disk, and of the last confirmation.
    pub(in crate::core) sync: u64,
    pub(in crate::core) written: u64,
    /// The part that is being read, to be appended to the record.
    pub(in crate::core) taking: Option<Taking>,
    last: Last,
    /// The calls that were added to the record: their updates are live.
    pub(in crate::core) added_calls: HashSet<ToolCallId>,
    calls: HashMap<ToolCallId, Vec<SessionUpdate>>,
    call_bytes: usize,
}

/// The part of a spool that continues the record.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::core) struct Taking {
    /// The first unit to read, the first of a new turn, and the one after the last.
    pub from: u32,
    pub new: u32,
    pub end: u32,
    pub rest: Option<super::place::Rest>,
    pub turns: usize,
    pub is_asked: bool,
}

/// What was received last.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
enum Last {
    #[default]
    Other,
    User,
    Reply(Option<String>),
}

impl Spool {
    pub(in crate::core) fn new(key: SessionKey, is_expected: bool) -> Self {
        Self { key, is_expected, ..Self::default() }
    }

    pub fn has_begun(&self) -> bool {
        self.seen > 0
    }

    pub(in crate::core) fn knows(&self, call: &ToolCallId) -> bool {
        self.calls.contains_key(call)
    }

    /// Takes the updates of an open call, which becomes a part of the record.
    pub(in crate::core) fn take_call(&mut self, call: &ToolCallId) -> Vec<SessionUpdate> {
        self.calls.get_mut(call).map(std::mem::take).unwrap_or_default()
    }

    /// Adds an update. Returns the number of its unit.
    pub(in crate::core) fn add(&mut self, update: &SessionUpdate) -> u32 {
        match update {
            SessionUpdate::Chunk { role, message, text } => {
                let id = message.as_ref().map(crate::model::MessageId::as_str);
                self.add_text(*role, id, text);
            }
            SessionUpdate::Block { role, message, block } => {
                self.add_block(*role, message.as_ref().map(crate::model::MessageId::as_str), block);
            }
            SessionUpdate::Message { role, message, content, more_content } => {
                for block in content.as_set().into_iter().flatten().chain(more_content) {
                    self.add_block(*role, Some(message.as_str()), block);
                }
            }
            SessionUpdate::Tool(patch) => {
                self.last = Last::Other;
                if let Some(turn) = self.turns.last_mut().filter(|_| patch.is_announcement) {
                    turn.calls.push(patch.id.as_str().to_owned());
                }
                let is_over = patch.status.as_set().is_some_and(|status| {
                    matches!(status, ToolStatus::Completed | ToolStatus::Failed | ToolStatus::Cancelled)
                });
                let updates = self.calls.entry(patch.id.clone()).or_default();
                let bytes = weight::of_update(update);
                if is_over {
                    updates.clear();
                } else if self.call_bytes + bytes <= MAX_CALL_BYTES {
                    self.call_bytes += bytes;
                    updates.push(update.clone());
                }
            }
            _ => self.last = Last::Other,
        }
        self.unit
    }

    /// Keeps only hashes of the last reply, unless it is compared with one that did not complete.
    fn forget_texts(&mut self) {
        if let Some(turn) = self.turns.last_mut()
            && self.record.as_ref().is_some_and(|record| !record.needs_texts(&turn.chunks))
        {
            turn.reply.forget_texts();
        }
    }

    fn add_block(&mut self, role: Role, message: Option<&str>, block: &ContentBlock) {
        // A reply is compared by its text.
        if role == Role::User || matches!(block, ContentBlock::Text(_)) {
            self.add_text(role, message, &text_of(block));
        }
    }

    fn add_text(&mut self, role: Role, message: Option<&str>, text: &str) {
        match role {
            Role::User => {
                self.unit += 1;
                if self.last != Last::User || self.turns.is_empty() {
                    self.forget_texts();
                    self.turns.push(ReplayedTurn::default());
                    self.units.push(self.unit);
                }
                self.last = Last::User;
                let Some(turn) = self.turns.last_mut() else { return };
                turn.chunks.push(text.to_owned());
                turn.ids.extend(message.map(str::to_owned));
            }
            Role::Agent => {
                let last = Last::Reply(message.map(str::to_owned));
                let is_same = self.last == last;
                let Some(turn) = self.turns.last_mut() else { return };
                if turn.reply == Reply::default() {
                    // The last turn may become one of the record before it is complete.
                    turn.reply = Reply::with_texts();
                }
                if !is_same {
                    turn.reply.push("\n");
                    turn.ids.extend(message.map(str::to_owned));
                }
                turn.reply.push(text);
                self.last = last;
            }
            // Thoughts do not belong to a reply.
            Role::Thought | Role::SubagentMessage => self.last = Last::Other,
        }
    }
}

/// The text of a block for a comparison; content that is not text is named by its URI, or is empty.
pub(in crate::core) fn text_of(block: &ContentBlock) -> String {
    use crate::model::ResourceBody;
    match block {
        ContentBlock::Text(text) | ContentBlock::Resource { body: ResourceBody::Text(text), .. } => {
            text.to_string()
        }
        ContentBlock::Resource { uri, .. } => uri.clone(),
        ContentBlock::ResourceLink(link) => link.uri.clone(),
        ContentBlock::Image { .. } | ContentBlock::Audio { .. } | ContentBlock::Unknown(_) => String::new(),
    }
}

/// Whether prompts wait, because they would be mixed with a replay.
pub(in crate::core) fn holds_prompts(session: &Session) -> bool {
    match &session.replay {
        Replay::Beside(spool) => {
            let is_coming = spool.is_answered && !spool.is_quiet && (spool.has_begun() || spool.is_expected);
            !spool.is_over && (is_coming || spool.taking.is_some())
        }
        _ => false,
    }
}
