//! The state of a replay of an agent's history.

use std::time::Instant;

use crate::model::ItemId;

use crate::app::{Former, Session};

/// A replay of the history. It replaces the transcript with its first update, so that a failed replay loses nothing.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Replay {
    #[default]
    None,
    /// No update was received yet.
    Armed,
    /// It has begun; holds the previous items, to be restored if it fails.
    Running(Box<Former>),
    /// It is applied to a separate session, and merged at its end.
    Separate(Box<SeparateReplay>),
    /// The response came before any item: one agent replays only then, starting with a user message.
    Late,
}

/// A replay into a separate session.
#[derive(Debug, Clone, PartialEq)]
pub struct SeparateReplay {
    /// The session with the replayed items.
    pub(in crate::app) shadow: Session,
    /// Whether it was requested. Otherwise only a user message starts it.
    pub(in crate::app) is_expected: bool,
    /// Whether prompts wait for it.
    pub(in crate::app) holds_prompts: bool,
    /// The revision of the transcript at the last check.
    pub(in crate::app) seen: u64,
    /// Number of checks without changes since then.
    pub(in crate::app) quiet_looks: u8,
    /// The last item that the replay should contain: later notices of the agent are not history.
    pub(in crate::app) upto: Option<ItemId>,
    /// When the agent had responded.
    pub(in crate::app) answered_at: Option<Instant>,
}

/// The start of a replay, which belongs to parts of the record that are only on disk.
#[derive(Debug, Clone, PartialEq)]
pub struct Unread {
    /// The session with the replayed items.
    pub(in crate::app) shadow: Session,
    /// The turn before which they belong.
    pub(in crate::app) before: u32,
}

impl SeparateReplay {
    pub(in crate::app) fn has_begun(&self) -> bool {
        !self.shadow.transcript.items().is_empty()
    }
}

/// Whether prompts wait, because they would be mixed with a replay.
pub(in crate::app) fn holds_prompts(session: &Session) -> bool {
    matches!(&session.replay, Replay::Separate(separate) if separate.holds_prompts)
}
