//! Records sessions so that they can be read and continued later.
//!
//! The session layer notes what happens (`session::record::note`). After each event [`flush`] hands the notes out as one
//! effect per session, together with changes of its head, draft and queue. `restore` reads a record back, and
//! `services::store` writes it to disk.
//! Invariant: the cost of a note depends on its own size only, not on the length or the number of sessions.

use crate::model::{Note, SessionHead, SessionId, SessionKey};

use crate::app::state::recorded::HeadMark;
use crate::app::{Conn, Effect, Session, State};

/// Hands out what is to be kept of the sessions that were touched.
pub(in crate::app) fn flush(state: &mut State, fx: &mut Vec<Effect>) {
    let conns = &state.conns;
    state.sessions.visit_touched(|session| {
        let conn = session.conn.and_then(|conn| conns.get(&conn));
        flush_session(session, conn, fx);
    });
}

/// The last of a session that goes from the state.
pub(in crate::app) fn close(state: &mut State, key: SessionKey, fx: &mut Vec<Effect>) {
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
