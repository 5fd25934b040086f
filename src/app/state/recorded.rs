//! What the store has of a session, and what the session owes it.

use std::collections::VecDeque;

use crate::model::{AgentSpec, ConnId, Note, RecordedSession, SessionHead, SessionId, Setting};

/// What was and what will be handed out.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RecorderState {
    /// The store's id of the session.
    kept_as: Option<String>,
    /// The agent of the saved session: its name, program and arguments.
    agent: Option<(String, String, Vec<String>)>,
    /// What happened since notes were last handed out.
    notes: Vec<Note>,
    /// Whether a history is being received that counts once it is complete.
    holds: bool,
    /// What was last handed out of the head.
    pub(in crate::app) head: Option<HeadMark>,
    pub(in crate::app) draft: String,
    pub(in crate::app) queue: VecDeque<String>,
}

/// The parts of a head that change.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::app) struct HeadMark {
    pub(in crate::app) session: Option<SessionId>,
    pub(in crate::app) conn: Option<ConnId>,
    pub(in crate::app) pid: Option<u32>,
    pub(in crate::app) title: Option<String>,
    pub(in crate::app) has_own_title: bool,
    pub(in crate::app) owes_title: bool,
    pub(in crate::app) goes_on: bool,
    pub(in crate::app) branch: Option<String>,
    pub(in crate::app) folder: std::path::PathBuf,
    pub(in crate::app) chosen: Vec<Setting>,
}

impl RecorderState {
    /// For a session that was kept before, with what is known of it there.
    pub fn of_kept(head: SessionHead, draft: &str, queue: &VecDeque<String>) -> Self {
        let SessionHead { kept_as, agent, command, args, .. } = head;
        let agent = Some((agent, command, args));
        Self { kept_as, agent, draft: draft.to_owned(), queue: queue.clone(), ..Self::default() }
    }

    /// The store's id of the session.
    pub fn kept_as(&self) -> Option<&str> {
        self.kept_as.as_deref()
    }

    pub(in crate::app) fn set_kept_as(&mut self, uid: Option<String>) {
        self.kept_as = uid;
    }

    /// The agent of the saved session: its name, program and arguments.
    pub fn agent(&self) -> Option<&(String, String, Vec<String>)> {
        self.agent.as_ref()
    }

    pub(in crate::app) fn note(&mut self, note: Note) {
        self.notes.push(note);
    }

    pub(in crate::app) fn take_notes(&mut self) -> Vec<Note> {
        std::mem::take(&mut self.notes)
    }

    /// What was played from the record is not recorded again.
    pub(in crate::app) fn clear_notes(&mut self) {
        self.notes.clear();
    }

    /// The following notes count once the history is complete.
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

    /// Whether this is the agent that the kept session was with. Its command may have changed since, but hardly
    /// the sessions that it keeps. An agent on another machine has no command here, and is known by its name only.
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
    /// Its id in the store.
    pub uid: String,
    /// The number behind its last event.
    pub end_seq: i64,
    /// Whether it is about to be gone on with.
    pub is_taking: bool,
    /// What is kept behind what is shown.
    pub later: Option<Later>,
}

/// Events of a session that is only read, behind those that are shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Later {
    /// The number of the first of them.
    pub from: i64,
    /// How many there are.
    pub count: u64,
    /// Whether a page of them is on its way.
    pub is_loading: bool,
}

/// Events that are kept, but not shown yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Earlier {
    /// The session's id in the store.
    pub uid: String,
    /// The number of the first event that is shown.
    pub before: i64,
    /// How many there are.
    pub count: u64,
    /// Whether a page of them is on its way.
    pub is_loading: bool,
    /// Whether the last page could not be read: then nobody asks for it but the user.
    pub has_failed: bool,
}

impl Reading {
    /// Of what the store gave.
    pub(in crate::app) fn of(uid: &str, kept: &RecordedSession) -> Self {
        let later = kept.later.map(|(from, count)| Later { from, count, is_loading: false });
        Self { uid: uid.to_owned(), end_seq: kept.end_seq, is_taking: false, later }
    }
}

/// What the next prompt tells the agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Handover {
    /// The document: Markdown.
    pub text: String,
    /// Whose conversation it was.
    pub agent: String,
    /// Whether it was sent with the running turn's prompt.
    pub is_sent: bool,
}
