//! What is kept of sessions, so that they can be read and gone on with later.
//!
//! Duty: the reducer's modules [`note`] what happens; once an event is dealt with, [`flush`] hands it out as one
//! effect for each session, together with what changed of its head, draft and queue.
//! Not its duty: making a session of what was kept (`restore`), the disk (`services::store`).
//! Invariant: a note costs what it holds; nothing here depends on how long a session is, or on how many are open.

use std::collections::VecDeque;

use crate::model::{AgentSpec, ConnId, ItemId, Note, Record, SessionHead, SessionId, SessionKey, Setting};

use super::{Conn, Effect, Session, State, paging};

/// What was and what will be handed out.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RecorderState {
    /// The store's id of a session that was kept before.
    pub kept_as: Option<String>,
    /// The agent that the kept session was with: its name, program and arguments.
    pub agent: Option<(String, String, Vec<String>)>,
    /// What happened since it was last handed out.
    pub notes: Vec<Note>,
    /// Whether a history is coming that counts once it is whole.
    holds: bool,
    /// What was last handed out of the head.
    head: Option<HeadMark>,
    draft: String,
    queue: VecDeque<String>,
}

/// The parts of a head that change.
#[derive(Debug, Clone, PartialEq)]
struct HeadMark {
    session: Option<SessionId>,
    conn: Option<ConnId>,
    pid: Option<u32>,
    title: Option<String>,
    has_own_title: bool,
    owes_title: bool,
    goes_on: bool,
    branch: Option<String>,
    folder: std::path::PathBuf,
    chosen: Vec<Setting>,
}

impl RecorderState {
    /// For a session that was kept before, with what is known of it there.
    pub fn of_kept(head: SessionHead, draft: &str, queue: &VecDeque<String>) -> Self {
        let SessionHead { kept_as, agent, command, args, .. } = head;
        let agent = Some((agent, command, args));
        Self { kept_as, agent, draft: draft.to_owned(), queue: queue.clone(), ..Self::default() }
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

/// Notes that something happened in the running or last turn.
pub(super) fn note(session: &mut Session, record: Record) {
    let item = paging::item_of(session, &record);
    note_of(session, item, record);
}

/// Notes what happened to this item, which another one of its name may have followed.
pub(super) fn note_of(session: &mut Session, item: Option<ItemId>, record: Record) {
    let Some(record) = paging::divert(session, item, record) else { return };
    let turn = session.turn_count;
    session.ledger.keeping.notes.push(Note::Event { turn, record: Box::new(record) });
}

/// From now on what happens is a history that replaces what is kept, if it comes to its end: until then that stays.
pub(super) fn hold(session: &mut Session) {
    session.ledger.keeping.holds = true;
    session.ledger.keeping.notes.push(Note::Hold);
    note(session, Record::Replaced);
}

/// The history has come to its end, or to none.
pub(super) fn release(session: &mut Session, is_whole: bool) {
    let keeping = &mut session.ledger.keeping;
    if std::mem::take(&mut keeping.holds) {
        keeping.notes.push(Note::Release { is_whole });
    }
}

/// Hands out what is to be kept of the sessions that were touched.
pub(super) fn flush(state: &mut State, fx: &mut Vec<Effect>) {
    let conns = &state.conns;
    state.sessions.visit_touched(|session| {
        let conn = session.conn.and_then(|conn| conns.get(&conn));
        flush_session(session, conn, fx);
    });
}

/// The last of a session that goes from the state.
pub(super) fn close(state: &mut State, key: SessionKey, fx: &mut Vec<Effect>) {
    if let Some(session) = state.sessions.get_mut(&key) {
        let conn = session.conn.and_then(|conn| state.conns.get(&conn));
        flush_session(session, conn, fx);
        fx.push(Effect::Keep { session: key, notes: vec![Note::Closed] });
    }
}

/// Under which name the agent is asked for the session next time.
fn known_as(session: &Session) -> Option<&SessionId> {
    session.ledger.former_id.as_ref().or(session.id.as_ref())
}

fn flush_session(session: &mut Session, conn: Option<&Conn>, fx: &mut Vec<Effect>) {
    if conn.is_none() && session.ledger.keeping.kept_as.is_none() {
        return;
    }
    let pid = conn.filter(|conn| conn.is_alive()).and_then(|conn| conn.pid);
    let branch = session.git.as_ref().map(|git| &git.branch);
    let keeping = &session.ledger.keeping;
    let is_same_head = keeping.head.as_ref().is_some_and(|mark| {
        mark.session.as_ref() == known_as(session)
            && mark.conn == session.conn
            && mark.pid == pid
            && mark.title == session.title
            && mark.has_own_title == session.ledger.has_own_title
            && mark.owes_title == session.ledger.owes_title
            && mark.goes_on == session.ledger.goes_on
            && mark.folder == session.place.cwd
            && mark.chosen == session.ledger.chosen
            && mark.branch.as_ref() == branch
    });
    let mut notes = Vec::new();
    let has_head = !is_same_head;
    let known = known_as(session).cloned();
    let keeping = &mut session.ledger.keeping;
    if has_head {
        let branch = branch.cloned();
        keeping.head = Some(HeadMark {
            session: known.clone(),
            conn: session.conn,
            pid,
            title: session.title.clone(),
            has_own_title: session.ledger.has_own_title,
            owes_title: session.ledger.owes_title,
            goes_on: session.ledger.goes_on,
            branch: branch.clone(),
            folder: session.place.cwd.clone(),
            chosen: session.ledger.chosen.clone(),
        });
        let spec = conn.map(|conn| conn.spec.clone()).unwrap_or_default();
        // Without an agent, what is kept of the head is as it was.
        if conn.is_some() {
            // A command of another machine is not to be started on this one, when its agent is not configured any more.
            let (command, args) =
                if spec.ssh.is_some() { (String::new(), Vec::new()) } else { (spec.command, spec.args) };
            notes.push(Note::Head(Box::new(SessionHead {
                kept_as: keeping.kept_as.clone(),
                agent: spec.name,
                command,
                args,
                agent_pid: pid,
                session: known,
                place: session.place.clone(),
                branch,
                title: session.title.clone(),
                has_own_title: session.ledger.has_own_title,
                owes_title: session.ledger.owes_title,
                is_child: session.parent.is_some(),
                goes_on: session.ledger.goes_on,
                chosen: session.ledger.chosen.clone(),
            })));
        }
    }
    notes.append(&mut keeping.notes);
    if keeping.draft != session.draft {
        keeping.draft.clone_from(&session.draft);
        notes.push(Note::Draft(session.draft.clone()));
    }
    if keeping.queue != session.queue {
        keeping.queue.clone_from(&session.queue);
        notes.push(Note::Queue(session.queue.iter().cloned().collect()));
    }
    if !notes.is_empty() {
        fx.push(Effect::Keep { session: session.key, notes });
    }
}
