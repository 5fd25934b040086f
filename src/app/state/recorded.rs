//! What the store has of a session, and what is still to be recorded.

use crate::model::{AgentSpec, FolderOffer, Note, RecordedSession, SessionHead};

/// What was recorded, and what will be.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RecorderState {
    /// Id in the store.
    kept_as: Option<String>,
    /// The agent of the stored session: name, program and arguments.
    agent: Option<(String, String, Vec<String>)>,
    /// Records since the last flush.
    notes: Vec<Note>,
    /// Whether a history is being received that counts once it is complete.
    holds: bool,
    /// The head at the last flush.
    pub(in crate::app) head: Option<Box<SessionHead>>,
    pub(in crate::app) draft: String,
    pub(in crate::app) queue: Vec<String>,
}

impl RecorderState {
    /// The state of a session restored from the store.
    pub fn of_kept(head: SessionHead, draft: &str, queue: Vec<String>) -> Self {
        let SessionHead { kept_as, agent, command, args, .. } = head;
        let agent = Some((agent, command, args));
        Self { kept_as, agent, draft: draft.to_owned(), queue, ..Self::default() }
    }

    /// Id in the store.
    pub fn kept_as(&self) -> Option<&str> {
        self.kept_as.as_deref()
    }

    pub(in crate::app) fn set_kept_as(&mut self, uid: Option<String>) {
        self.kept_as = uid;
    }

    /// The agent of the stored session: name, program and arguments.
    pub fn agent(&self) -> Option<&(String, String, Vec<String>)> {
        self.agent.as_ref()
    }

    pub(in crate::app) fn note(&mut self, note: Note) {
        self.notes.push(note);
    }

    pub(in crate::app) fn take_notes(&mut self) -> Vec<Note> {
        std::mem::take(&mut self.notes)
    }

    /// Drops the records of replayed events, which are in the store already.
    pub(in crate::app) fn clear_notes(&mut self) {
        self.notes.clear();
    }

    /// The following records count once the history is complete.
    pub(in crate::app) fn hold(&mut self) {
        self.holds = true;
        self.note(Note::Hold);
    }

    /// The history has ended.
    pub(in crate::app) fn release(&mut self, is_whole: bool) {
        if std::mem::take(&mut self.holds) {
            self.note(Note::Release { is_whole });
        }
    }

    /// Whether the stored session belongs to this agent. Its command may have changed since, which rarely affects its
    /// sessions. An agent on another machine has no command here, and is compared by name only.
    pub fn is_with(&self, spec: &AgentSpec) -> bool {
        self.agent.as_ref().is_some_and(|(name, command, args)| {
            (!name.is_empty() && *name == spec.name)
                || (!command.is_empty() && *command == spec.command && *args == spec.args)
        })
    }
}

/// A session that is read without an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading {
    /// Id in the store.
    pub uid: String,
    /// The number after its last event.
    pub end_seq: i64,
    /// Whether it is about to be continued.
    pub is_taking: bool,
    /// Recorded events after those that are shown.
    pub later: Option<Later>,
    /// The folders of which the user selects one before it is continued; empty: it continues in its own.
    pub offers: Vec<FolderOffer>,
}

/// Events of a read-only session after those that are shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Later {
    /// The number of the first of them.
    pub from: i64,
    pub count: u64,
    pub is_loading: bool,
}

/// Recorded events before those that are shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Earlier {
    /// Id in the store.
    pub uid: String,
    /// The number of the first event that is shown.
    pub before: i64,
    pub count: u64,
    pub is_loading: bool,
    /// Whether the last page could not be read: then only the user can retry.
    pub has_failed: bool,
}

impl Reading {
    /// The state of a session loaded from the store.
    pub(in crate::app) fn of(uid: &str, kept: &RecordedSession) -> Self {
        let later = kept.later.map(|(from, count)| Later { from, count, is_loading: false });
        Self { uid: uid.to_owned(), end_seq: kept.end_seq, is_taking: false, later, offers: Vec::new() }
    }
}

/// A conversation that is sent with the next prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Handover {
    /// The document as Markdown.
    pub text: String,
    /// The agent of the conversation.
    pub agent: String,
    /// Whether it was sent with the running turn's prompt.
    pub is_sent: bool,
}
