//! How far a replay of an agent's history is.

use std::time::Instant;

use crate::model::ItemId;

use crate::app::{Former, Session};

/// A replay of the history: it replaces the transcript when its first update comes, not sooner, so that a
/// failed replay loses nothing.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Replay {
    /// None is expected.
    #[default]
    None,
    /// Nothing came yet.
    Armed,
    /// It has begun; the items from before, to be restored if it fails.
    Running(Box<Former>),
    /// It is played beside what is shown, into a session of its own; what it means is seen at its end.
    Aside(Box<Aside>),
    /// The reply came before any item: one agent replays only then, beginning with a user's message.
    Late,
}

/// A replay beside the session.
#[derive(Debug, Clone, PartialEq)]
pub struct Aside {
    /// What was replayed.
    pub(in crate::app) shadow: Session,
    /// Whether the agent was asked for it. Else only a message of the user begins it.
    pub(in crate::app) is_expected: bool,
    /// Whether prompts wait for it.
    pub(in crate::app) holds_prompts: bool,
    /// How far it was when it was last looked at.
    pub(in crate::app) seen: u64,
    /// How often it was looked at since then.
    pub(in crate::app) quiet_looks: u8,
    /// The last item that the replay is to tell: what the agent says of itself meanwhile is no history.
    pub(in crate::app) upto: Option<ItemId>,
    /// When the agent had answered.
    pub(in crate::app) answered_at: Option<Instant>,
}

/// The beginning of a replay, which belongs to parts of the record that are only on the disk.
#[derive(Debug, Clone, PartialEq)]
pub struct Unread {
    /// What was replayed.
    pub(in crate::app) shadow: Session,
    /// It belongs before this turn.
    pub(in crate::app) before: u32,
}

impl Aside {
    pub(in crate::app) fn has_begun(&self) -> bool {
        !self.shadow.transcript.items().is_empty()
    }
}

/// Whether prompts are to wait, because they would be mixed with a replay.
pub(in crate::app) fn holds_prompts(session: &Session) -> bool {
    matches!(&session.replay, Replay::Aside(aside) if aside.holds_prompts)
}
