//! What the store has of a session, and what is still to be recorded or read.

use std::time::Instant;

use crate::core::Session;
use crate::model::{
    Action, AgentSpec, FolderOffer, ItemId, Note, Record, RecordedSession, SessionHead, SessionKey,
};

/// Number of differences to the agent's history that are remembered.
const MAX_REPORTED: usize = 16;

#[derive(Debug, Clone, PartialEq, Default)]
pub struct RecorderState {
    pub(crate) saved_as: Option<String>,
    /// The agent of the stored session: name, program and arguments.
    agent: Option<(String, String, Vec<String>)>,
    /// Records since the last flush.
    pub(in crate::core) notes: Vec<Note>,
    pub(in crate::core) spool_notes: Vec<(SessionKey, Note)>,
    /// The spool to which the following events are recorded: a history that replaces the record once it is complete.
    pub(in crate::core) diverted: Option<SessionKey>,
    /// See [`crate::model::RecordedSession::reported`].
    pub(in crate::core) reported: Vec<u64>,
    /// The head at the last flush.
    pub(in crate::core) head: Option<Box<SessionHead>>,
    pub(in crate::core) draft: String,
    pub(in crate::core) queue: Vec<String>,
    pub(in crate::core) stash: Vec<String>,
}

impl RecorderState {
    pub fn of_saved(head: SessionHead, draft: &str, queue: Vec<String>, stash: &[String]) -> Self {
        let SessionHead { saved_as, agent, command, args, .. } = head;
        let agent = Some((agent, command, args));
        Self { saved_as, agent, draft: draft.to_owned(), queue, stash: stash.to_owned(), ..Self::default() }
    }

    pub fn saved_as(&self) -> Option<&str> {
        self.saved_as.as_deref()
    }

    /// The agent of the stored session: name, program and arguments.
    pub fn agent(&self) -> Option<&(String, String, Vec<String>)> {
        self.agent.as_ref()
    }

    pub(in crate::core) fn note(&mut self, note: Note) {
        self.notes.push(note);
    }

    pub(in crate::core) fn event(&mut self, turn: u32, record: Record) {
        let note = Note::Event { turn, record: Box::new(record) };
        match self.diverted {
            Some(spool) => self.spool_notes.push((spool, note)),
            None => self.notes.push(note),
        }
    }

    pub(in crate::core) fn note_in_spool(&mut self, spool: SessionKey, note: Note) {
        self.spool_notes.push((spool, note));
    }

    pub(in crate::core) fn end_diversion(&mut self, is_whole: bool) {
        if let Some(spool) = self.diverted.take() {
            if is_whole {
                self.notes.push(Note::TakeSpool { spool });
            } else {
                self.spool_notes.push((spool, Note::Closed));
            }
        }
    }

    /// Whether the user was told this difference to the agent's history.
    pub(in crate::core) fn was_reported(&self, difference: u64) -> bool {
        self.reported.contains(&difference)
    }

    /// Remembers that the user was notified of these differences to the agent's history.
    pub(in crate::core) fn tell(&mut self, differences: &[u64]) {
        let count = self.reported.len();
        for difference in differences {
            if !self.was_reported(*difference) {
                self.reported.push(*difference);
            }
        }
        if self.reported.len() > count {
            self.reported.drain(..self.reported.len().saturating_sub(MAX_REPORTED));
            self.notes.push(Note::Reported(self.reported.clone()));
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
    pub uid: String,
    /// The number after its last event.
    pub end_seq: i64,
    pub is_taking: bool,
    /// The folders of which the user selects one before it is continued; empty: it continues in its own.
    pub offers: Vec<FolderOffer>,
}

impl Reading {
    pub(in crate::core) fn of(uid: &str, saved: &RecordedSession) -> Self {
        Self { uid: uid.to_owned(), end_seq: saved.end_seq, is_taking: false, offers: Vec::new() }
    }
}

/// A record of which only the end is shown, while the whole is read.
#[derive(Debug, Clone, PartialEq)]
pub struct Loading {
    pub(in crate::core) whole: Box<Session>,
    pub(in crate::core) playing: Playing,
    /// The item after those of the end that is shown.
    pub(in crate::core) end: ItemId,
    /// The item of the event to show, in `whole`, with the text that was searched.
    pub(in crate::core) found: Option<ItemId>,
    pub(in crate::core) searched: String,
    /// The user's action that waits for the whole.
    pub(in crate::core) redo: Option<Action>,
    /// Number of events that could not be read.
    pub(in crate::core) unreadable_count: u64,
    /// Whether the rest could not be read.
    pub has_failed: bool,
}

/// How far the events of a record have been applied.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::core) struct Playing {
    /// The time of the first event in Unix milliseconds, and the instant that stands for it.
    pub(in crate::core) began: Option<i64>,
    pub(in crate::core) now: Instant,
    /// The instant of the last event.
    pub(in crate::core) last: Instant,
}

impl Playing {
    pub(in crate::core) fn new(now: Instant) -> Self {
        Self { began: None, now, last: now }
    }
}

/// A conversation that is sent with the next prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Handover {
    pub text: String,
    pub agent: String,
    /// Whether it was sent with the running turn's prompt.
    pub is_sent: bool,
}
