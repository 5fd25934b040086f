//! Records sessions so that they can be read and continued later.
//!
//! The session layer notes events (`session::record::note`). After each event [`flush`] passes the notes to the store
//! as one effect per session, together with changes of its head, draft and queue. `restore` reads a record, and
//! `services::store` writes it to disk.
//! Invariant: the cost of a note depends only on its size, not on the length or number of sessions.

use crate::model::{Note, SessionHead, SessionId, SessionKey};

use crate::app::state::recorded::HeadMark;
use crate::app::{Conn, Effect, Session, State};

/// Emits the notes of the touched sessions.
pub(in crate::app) fn flush(state: &mut State, fx: &mut Vec<Effect>) {
    let conns = &state.conns;
    state.sessions.visit_touched(|session| {
        let conn = session.conn.and_then(|conn| conns.get(&conn));
        flush_session(session, conn, fx);
    });
}

/// Emits the last notes of a session that is removed from the state.
pub(in crate::app) fn close(state: &mut State, key: SessionKey, fx: &mut Vec<Effect>) {
    if let Some(session) = state.sessions.get_mut(&key) {
        let conn = session.conn.and_then(|conn| state.conns.get(&conn));
        flush_session(session, conn, fx);
        fx.push(Effect::Keep { session: key, notes: vec![Note::Closed] });
    }
}

/// The id under which the session is requested from the agent next time.
fn known_as(session: &Session) -> Option<&SessionId> {
    session.resume.former_id().or(session.id.as_ref())
}

fn flush_session(session: &mut Session, conn: Option<&Conn>, fx: &mut Vec<Effect>) {
    if conn.is_none() && session.recorder.kept_as().is_none() {
        return;
    }
    let pid = conn.filter(|conn| conn.is_alive()).and_then(|conn| conn.pid);
    let branch = session.git.as_ref().map(|git| &git.branch);
    let is_same_head = session.recorder.head.as_ref().is_some_and(|mark| {
        mark.session.as_ref() == known_as(session)
            && mark.conn == session.conn
            && mark.pid == pid
            && mark.title == session.title
            && mark.has_own_title == session.title_state.is_own()
            && mark.owes_title == session.title_state.is_owed()
            && mark.goes_on == session.resume.is_continued()
            && mark.folder == session.place.cwd
            && mark.chosen == session.settings.chosen()
            && mark.branch.as_ref() == branch
    });
    let mut notes = Vec::new();
    let has_head = !is_same_head;
    let known = known_as(session).cloned();
    let recorder = &mut session.recorder;
    if has_head {
        let branch = branch.cloned();
        recorder.head = Some(HeadMark {
            session: known.clone(),
            conn: session.conn,
            pid,
            title: session.title.clone(),
            has_own_title: session.title_state.is_own(),
            owes_title: session.title_state.is_owed(),
            goes_on: session.resume.is_continued(),
            branch: branch.clone(),
            folder: session.place.cwd.clone(),
            chosen: session.settings.chosen().to_vec(),
        });
        let spec = conn.map(|conn| conn.spec.clone()).unwrap_or_default();
        // Without an agent, the recorded head stays as it was.
        if conn.is_some() {
            // A command of another machine must not be started on this one if its agent is no longer configured.
            let (command, args) =
                if spec.ssh.is_some() { (String::new(), Vec::new()) } else { (spec.command, spec.args) };
            notes.push(Note::Head(Box::new(SessionHead {
                kept_as: recorder.kept_as().map(str::to_owned),
                agent: spec.name,
                command,
                args,
                agent_pid: pid,
                session: known,
                place: session.place.clone(),
                branch,
                title: session.title.clone(),
                has_own_title: session.title_state.is_own(),
                owes_title: session.title_state.is_owed(),
                is_child: session.parent.is_some(),
                goes_on: session.resume.is_continued(),
                chosen: session.settings.chosen().to_vec(),
            })));
        }
    }
    notes.append(&mut recorder.take_notes());
    if recorder.draft != session.draft {
        recorder.draft.clone_from(&session.draft);
        notes.push(Note::Draft(session.draft.clone()));
    }
    if recorder.queue != session.queue {
        recorder.queue.clone_from(&session.queue);
        notes.push(Note::Queue(session.queue.iter().cloned().collect()));
    }
    if !notes.is_empty() {
        fx.push(Effect::Keep { session: session.key, notes });
    }
}

/// Records that a session continues another one: as a copy up to a turn, or without its history.
pub(in crate::app) fn link(state: &mut State, from: SessionKey, to: SessionKey, copied_turns: Option<u32>) {
    let kept_as = state.sessions.get(&from).and_then(|session| session.recorder.kept_as().map(str::to_owned));
    if let Some(session) = state.sessions.get_mut(&to) {
        session.recorder.note(Note::CameFrom { session: from, kept_as, copied_turns });
    }
}
