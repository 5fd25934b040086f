//! Records sessions so that they can be read and continued later.
//!
//! The session layer notes events (`session::record::note`). After each event [`flush`] passes the notes to the store
//! as one effect per session, together with changes of its head, draft and queue. `restore` reads a record, and
//! `store` writes it to disk.
//! Invariant: the cost of a note depends only on its size, not on the length of sessions.

use crate::model::{Note, SessionHead, SessionId, SessionKey, Unsaved};

use crate::core::state::tab;
use crate::core::{Conn, Cx, Effect, Replay, Session, State};

/// Emits the notes of the touched sessions.
pub(in crate::core) fn flush(state: &mut State, cx: &mut Cx) {
    let front = tab::front(state);
    let uids = state.sessions.values().filter_map(|session| Some(&session.read_only.as_ref()?.uid));
    if !uids.clone().eq(&state.views) {
        state.views = uids.cloned().collect();
        // The record of each tab lists them, because any may be the active one at the end.
        state.sessions.values_mut().for_each(drop);
    }
    let (conns, views, unsaved) = (&state.conns, &state.views, &mut state.unsaved);
    state.sessions.visit_touched(|session| {
        let conn = session.conn.and_then(|conn| conns.get(&conn));
        flush_session(session, conn, (session.key == front, views), unsaved, cx);
    });
}

/// Emits the last notes of a session that is removed from the state.
pub(in crate::core) fn close(state: &mut State, key: SessionKey, cx: &mut Cx) {
    if let Some(session) = state.sessions.get_mut(&key) {
        let conn = session.conn.and_then(|conn| state.conns.get(&conn));
        session.recorder.end_diversion(false);
        if let Replay::Beside(spool) = &session.replay
            && spool.has_begun()
        {
            let spool = spool.key;
            session.recorder.note_in_spool(spool, Note::Closed);
        }
        flush_session(session, conn, (false, &[]), &mut state.unsaved, cx);
        cx.effects.push(Effect::Keep { session: key, notes: vec![Note::Closed] });
    }
}

/// The id under which the session is requested from the agent next time.
fn known_as(session: &Session) -> Option<&SessionId> {
    session.resume.former_id().or(session.id.as_ref())
}

fn pid_of(conn: &Conn) -> Option<u32> {
    conn.pid.filter(|_| conn.is_alive())
}

/// Whether a session's metadata is still that of its last recorded head.
fn is_current(
    head: &SessionHead,
    session: &Session,
    conn: &Conn,
    (is_front, views): (bool, &[String]),
) -> bool {
    head.session.as_ref() == known_as(session)
        && head.agent == conn.spec.name
        && head.agent_pid == pid_of(conn)
        && head.title == session.title
        && head.has_own_title == session.title_state.is_own()
        && head.owes_title == session.title_state.is_owed()
        && head.goes_on == session.resume.is_continued()
        && head.workspace == session.workspace
        && head.chosen == session.settings.chosen()
        && (head.tab, head.is_front) == (tab_of(session), is_front)
        && head.views == views
        && head.branch.as_ref() == session.git.as_ref().map(|git| &git.branch)
}

fn tab_of(session: &Session) -> u32 {
    u32::try_from(session.rank).unwrap_or(u32::MAX)
}

fn head_of(session: &Session, conn: &Conn, (is_front, views): (bool, &[String])) -> SessionHead {
    let spec = conn.spec.clone();
    // The command of a remote machine is not saved, so that it cannot run on this one if the agent is removed from the
    // configuration.
    let (command, args) = if spec.ssh.is_some() { Default::default() } else { (spec.command, spec.args) };
    SessionHead {
        saved_as: session.recorder.saved_as().map(str::to_owned),
        agent: spec.name,
        command,
        args,
        agent_pid: pid_of(conn),
        session: known_as(session).cloned(),
        workspace: session.workspace.clone(),
        branch: session.git.as_ref().map(|git| git.branch.clone()),
        title: session.title.clone(),
        has_own_title: session.title_state.is_own(),
        owes_title: session.title_state.is_owed(),
        is_child: session.parent.is_some(),
        goes_on: session.resume.is_continued(),
        tab: tab_of(session),
        is_front,
        views: views.to_vec(),
        chosen: session.settings.chosen().to_vec(),
    }
}

fn flush_session(
    session: &mut Session,
    conn: Option<&Conn>,
    tab: (bool, &[String]),
    unsaved: &mut Option<Unsaved>,
    cx: &mut Cx,
) {
    if conn.is_none() && session.recorder.saved_as().is_none() && session.recorder.head.is_none() {
        return;
    }
    let mut notes = Vec::new();
    // Without an agent, the recorded head stays as it was.
    if let Some(conn) = conn
        && !session.recorder.head.as_ref().is_some_and(|head| is_current(head, session, conn, tab))
    {
        let head = Box::new(head_of(session, conn, tab));
        session.recorder.head = Some(head.clone());
        notes.push(Note::Head(head));
    }
    let recorder = &mut session.recorder;
    notes.append(&mut recorder.notes);
    // What is in the prompt while a queued prompt is edited takes the place of that one.
    let draft = session.outbox.draft_before_edit().unwrap_or(&session.draft);
    if recorder.draft != *draft {
        recorder.draft.clone_from(draft);
        notes.push(Note::Draft(draft.clone()));
    }
    if !session.outbox.texts(&session.draft).eq(&recorder.queue) {
        recorder.queue = session.outbox.texts(&session.draft).cloned().collect();
        notes.push(Note::Queue(recorder.queue.clone()));
    }
    if session.stash != recorder.stash {
        recorder.stash.clone_from(&session.stash);
        notes.push(Note::Stash(session.stash.clone()));
    }
    // The events of a spool are on disk before the session takes it.
    for (spool, note) in std::mem::take(&mut recorder.spool_notes) {
        let is_first = matches!(note, Note::Spool { .. });
        let head = conn.filter(|_| is_first).map(|conn| head_of(session, conn, (false, &[])));
        let head = head.map(|head| Note::Head(Box::new(SessionHead { saved_as: None, ..head })));
        let new = [note].into_iter().chain(head);
        match cx.effects.last_mut() {
            Some(Effect::Keep { session, notes }) if *session == spool => notes.extend(new),
            _ => cx.effects.push(Effect::Keep { session: spool, notes: new.collect() }),
        }
    }
    if let Some(unsaved) = unsaved {
        for note in &notes {
            match note {
                Note::Event { turn: turn @ 1.., .. } => unsaved.note(session.key, [*turn]),
                Note::Draft(_) | Note::Queue(_) | Note::Stash(_) | Note::Held(..) => {
                    unsaved.note(session.key, []);
                }
                _ => {}
            }
        }
    }
    if !notes.is_empty() {
        cx.effects.push(Effect::Keep { session: session.key, notes });
    }
}

/// Records that a session continues another one: as a copy up to a turn, or without its history.
pub(in crate::core) fn link(state: &mut State, from: SessionKey, to: SessionKey, copied_turns: Option<u32>) {
    let saved_as =
        state.sessions.get(&from).and_then(|session| session.recorder.saved_as().map(str::to_owned));
    if let Some(session) = state.sessions.get_mut(&to) {
        session.recorder.note(Note::CameFrom { session: from, saved_as, copied_turns });
    }
}
