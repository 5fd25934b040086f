//! Titles that the user gives to sessions, and their transfer to agents.
//!
//! Saves a title and sends it to the agent: immediately if it is running, also for a session that is not open;
//! otherwise when the session is opened next. `updates` handles titles given by agents, `dialogs::line_dialog` the
//! input, `store` the storage.
//! Invariants: titles are sent only to agents that support them; an agent has a title once it has confirmed it.

use crate::model::{Call, CallError, ConnId, Purpose, Reply, SessionId, SessionKey, StoreJob, TitleRequest};

use super::call;
use crate::core::state::{lookup, texts};
use crate::core::{ConnPhase, Cx, Effect, SessionPhase, State, UiRequest, Wanted};

#[allow(clippy::needless_pass_by_value, reason = "all actions of the user are passed by value")]
pub fn set_title(state: &mut State, key: SessionKey, title: String, cx: &mut Cx) {
    let title = title.trim().to_owned();
    if title.is_empty() {
        call::flash(state, "A title needs at least one character.", cx);
        return;
    }
    let Some(session) = state.sessions.get_mut(&key) else { return };
    session.title = Some(title.clone());
    session.title_state.set_by_user(true);
    // A read-only session is renamed in the store, whose result says whether the agent can be informed.
    if let Some(reading) = &session.read_only {
        cx.effects.push(Effect::Store(StoreJob::Rename { uid: reading.uid.clone(), title }));
        return;
    }
    send_pending_title(state, key, cx);
}

/// Sends the title of an open session to its agent, if the agent does not have it and supports titles.
pub(in crate::core) fn send_pending_title(state: &mut State, key: SessionKey, cx: &mut Cx) {
    let can = state.conn_of(key).is_some_and(|conn| conn.capabilities().can_set_title);
    let owed = state.sessions.get(&key).filter(|session| {
        can && session.title_state.is_owed()
            && session.phase == SessionPhase::Ready
            && session.parent.is_none()
    });
    let owed = owed.and_then(|session| Some((session.conn?, session.id.clone()?, session.title.clone()?)));
    if let Some((conn, id, title)) = owed {
        call::request_change(state, (conn, id), key, Wanted::Title(title), cx);
    }
}

/// The response to setting the title of an open session. The agent may have changed it.
pub(in crate::core) fn on_title_response(
    state: &mut State,
    key: SessionKey,
    sent_title: &str,
    stored: Option<String>,
    problem: Option<&CallError>,
    cx: &mut Cx,
) {
    let Some(session) = state.sessions.get_mut(&key) else { return };
    match problem {
        // It may have been renamed again meanwhile.
        None if session.title.as_deref() != Some(sent_title) => {}
        None => {
            session.title_state.agent_has_it();
            session.title = stored.or(session.title.take());
        }
        Some(error) => {
            let why = texts::error_text(error);
            call::flash(state, format!("Renamed in parlor only; the agent rejected the title: {why}"), cx);
        }
    }
}

/// Whether the agent of this name is running and supports titles.
pub fn takes_titles(state: &State, agent: &str) -> bool {
    taker(state, agent).is_some()
}

fn taker(state: &State, agent: &str) -> Option<ConnId> {
    let takes = |conn: &&crate::core::Conn| {
        conn.phase == ConnPhase::Ready && conn.spec.name == agent && conn.capabilities().can_set_title
    };
    state.conns.values().find(takes).map(|conn| conn.id)
}

/// A stored session was renamed: its agent is informed if it is running.
pub(in crate::core) fn on_renamed(
    state: &mut State,
    uid: &str,
    title: &str,
    whose: Option<(String, SessionId)>,
    cx: &mut Cx,
) {
    mark_title(state, uid, Some(title), true, cx);
    let taker = whose.and_then(|(agent, id)| Some((taker(state, &agent)?, id, agent)));
    let Some((conn, id, agent)) = taker else {
        call::flash(state, "Renamed. The agent is updated when the session is opened.", cx);
        return;
    };
    let request_info = TitleRequest { uid: uid.to_owned(), title: title.to_owned(), agent };
    let request = Call::SetTitle(id, title.to_owned());
    call::call(state, conn, Purpose::TitleSaved(Box::new(request_info)), request, cx);
}

/// The response to setting the title of a session that is not open.
pub(in crate::core) fn on_stored_title_set(
    state: &mut State,
    TitleRequest { uid, title, agent }: &TitleRequest,
    result: Result<Reply, CallError>,
    cx: &mut Cx,
) {
    match result {
        Ok(_) => {
            cx.effects.push(Effect::Store(StoreJob::TitleKnown { uid: uid.clone(), title: title.clone() }));
            let open = lookup::open_as(state, uid).and_then(|key| state.sessions.get_mut(&key));
            if let Some(session) = open.filter(|session| session.title.as_ref() == Some(title)) {
                session.title_state.agent_has_it();
            }
            call::flash(state, format!("Renamed in parlor and in {agent}."), cx);
        }
        Err(error) => {
            let why = texts::error_text(&error);
            call::flash(state, format!("Renamed in parlor only; {agent} rejected the title: {why}"), cx);
        }
    }
}

/// Updates a stored session's row: the title, if given, and whether its agent does not have it.
pub(in crate::core) fn mark_title(
    state: &mut State,
    uid: &str,
    title: Option<&str>,
    owes: bool,
    cx: &mut Cx,
) {
    cx.requests.push(UiRequest::SavedTitle(uid.to_owned(), title.map(str::to_owned), owes));
    if let Some(session) = lookup::open_as(state, uid).and_then(|key| state.sessions.get_mut(&key))
        && let Some(title) = title
    {
        session.title = Some(title.to_owned());
        session.title_state.set_by_user(owes);
    }
}
