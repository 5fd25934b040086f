//! Changes modes, models and config options.
//!
//! Requests a value from the agent, and applies it once the agent has confirmed it. A mode or model may be reported as
//! a separate list and as a config option: both are synchronized.
//! Invariant: only offered values are sent.

use crate::model::{
    CallError, ConfigKind, ConfigValue, ConnId, ModeId, ModelId, Reply, SessionId, SessionKey, Setting,
    Severity,
};

use super::{call, chosen, titles, turn};
use crate::core::session::settings;
use crate::core::state::texts;
use crate::core::{ConnPhase, Cx, SessionPhase, State, Wanted};

pub fn set_mode(state: &mut State, key: SessionKey, mode: ModeId, cx: &mut Cx) {
    let Some((conn, id)) = reachable(state, key, cx) else { return };
    let offered = state.sessions.get(&key).and_then(|session| session.modes.as_ref());
    if !offered.is_some_and(|modes| modes.available.iter().any(|known| known.id == mode)) {
        call::flash(state, "This agent does not offer this mode.", cx);
        return;
    }
    call::request_change(state, (conn, id), key, Wanted::Setting(Setting::Mode(mode)), cx);
}

/// Sets the model, for agents without config options.
pub fn set_model(state: &mut State, key: SessionKey, model: ModelId, cx: &mut Cx) {
    let Some((conn, id)) = reachable(state, key, cx) else { return };
    let offered = state.sessions.get(&key).and_then(|session| session.models.as_ref());
    if !offered.is_some_and(|models| models.available.iter().any(|known| known.id == model)) {
        call::flash(state, "This agent does not offer this model.", cx);
        return;
    }
    call::request_change(state, (conn, id), key, Wanted::Setting(Setting::Model(model)), cx);
}

pub fn set_option(state: &mut State, key: SessionKey, option: String, value: ConfigValue, cx: &mut Cx) {
    let Some((conn, id)) = reachable(state, key, cx) else { return };
    let known =
        state.sessions.get(&key).and_then(|session| session.options.iter().find(|known| known.id == option));
    let is_offered = match (known.map(|known| &known.kind), &value) {
        (Some(ConfigKind::Select { choices, .. }), ConfigValue::Text(text)) => {
            choices.iter().any(|choice| choice.value == *text)
        }
        (Some(ConfigKind::Boolean { .. }), ConfigValue::Bool(_)) => true,
        _ => false,
    };
    if !is_offered {
        call::flash(state, "This agent does not offer this option.", cx);
        return;
    }
    call::request_change(state, (conn, id), key, Wanted::Setting(Setting::Option(option, value)), cx);
}

fn reachable(state: &mut State, key: SessionKey, cx: &mut Cx) -> Option<(ConnId, SessionId)> {
    let found = state
        .sessions
        .get(&key)
        .filter(|session| session.phase == SessionPhase::Ready)
        .and_then(|session| Some((session.conn?, session.id.clone()?)))
        .filter(|(conn, _)| state.conns.get(conn).is_some_and(|conn| conn.phase == ConnPhase::Ready));
    if found.is_none() {
        call::flash(state, crate::core::state::texts::NOT_OPEN, cx);
    }
    found
}

/// The agent has not confirmed a change in time: prompts no longer wait. They still wait for settings restored after a
/// reopen, because the mode of the agent is unknown until then (`chosen`).
pub(in crate::core) fn on_overdue(state: &mut State, key: SessionKey, cx: &mut Cx) {
    let Some(session) = state.sessions.get_mut(&key) else { return };
    let Some(what) = session.pending_setting().filter(|_| session.settings.restoring().is_none()) else {
        return;
    };
    session.settings.stop_waiting();
    if session.outbox.next().is_some() && session.phase == SessionPhase::Ready && !session.turn.is_running() {
        let title = format!("The agent has not confirmed the new {what}.");
        let detail = "The queued prompt was sent anyway.".to_owned();
        call::notice(state, key, Severity::Warning, title, Some(detail));
        turn::send_next(state, key, cx);
    }
}

/// The agent has responded; its response determines the values.
pub(in crate::core) fn on_set(
    state: &mut State,
    key: SessionKey,
    number: u64,
    result: Result<Reply, CallError>,
    cx: &mut Cx,
) {
    let Some(session) = state.sessions.get_mut(&key) else { return };
    let Some(wanted) = session.settings.answered(number) else { return };
    let named = match &wanted {
        Wanted::Title(title) => Some(title.clone()),
        Wanted::Setting(_) => None,
    };
    let mut stored = None;
    let problem = match result {
        Ok(Reply::Options(options)) => {
            if let Wanted::Setting(setting) = wanted {
                settings::note(session, setting);
            }
            session.options = options;
            settings::agree(session);
            settings::follow_options(session);
            None
        }
        Ok(Reply::Title(title)) => {
            stored = Some(title);
            None
        }
        Ok(Reply::Done) => {
            if let Wanted::Setting(setting) = &wanted {
                settings::note(session, setting.clone());
            }
            settings::take(session, wanted);
            None
        }
        Ok(_) => {
            let error = "the response does not match the request".to_owned();
            Some(CallError::Malformed { error })
        }
        Err(error) => Some(error),
    };
    if let Some(title) = named {
        titles::on_title_response(state, key, &title, stored, problem.as_ref(), cx);
        return;
    }
    if chosen::on_restored_setting(state, key, number, problem.as_ref(), cx) {
        return;
    }
    let Some(session) = state.sessions.get_mut(&key) else { return };
    let is_open = session.phase == SessionPhase::Ready && !session.turn.is_running();
    let Some(error) = problem else {
        if is_open {
            turn::send_next(state, key, cx);
        }
        return;
    };
    // Prompts typed for another mode or model are sent only on request of the user.
    if is_open {
        session.outbox.hold();
    }
    let waits = if is_open && session.outbox.queue_len() > 0 {
        ". Send an empty prompt to run the queue"
    } else {
        ""
    };
    call::flash(state, format!("Change failed: {}{waits}", texts::error_text(&error)), cx);
}
