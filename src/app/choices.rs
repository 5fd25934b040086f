//! What the agent lets the user choose: modes, models, config options.
//!
//! Duty: asks the agent to set a value, and takes it as set once the agent says so. A mode or model may be
//! told twice, as a list of its own and as a config option: both are kept in agreement.
//! Invariant: a value that was not offered is not sent.

use std::time::{Duration, Instant};

use crate::model::{
    Call, CallError, ConfigKind, ConfigValue, ConnId, ModeId, ModelId, Purpose, Reply, SessionId, SessionKey,
    Setting, Severity,
};

use super::{
    ConnPhase, Effect, Session, SessionPhase, State, TimerId, Wanted, call, chosen, texts, titles, turn,
};

/// After so long without an answer to a change, prompts wait for it no longer.
const ANSWER_LIMIT: Duration = Duration::from_secs(10);

/// Sets the mode.
pub fn set_mode(state: &mut State, key: SessionKey, mode: ModeId, _now: Instant, fx: &mut Vec<Effect>) {
    let Some((conn, id)) = reachable(state, key, fx) else {
        return;
    };
    let is_offered = state
        .sessions
        .get(&key)
        .and_then(|session| session.modes.as_ref())
        .is_some_and(|modes| modes.available.iter().any(|known| known.id == mode));
    if !is_offered {
        call::flash(state, "This agent does not offer this mode.", fx);
        return;
    }
    let request = Call::SetMode(id, mode.clone());
    ask(state, conn, key, Purpose::SetMode(key), request, Wanted::Setting(Setting::Mode(mode)), fx);
}

/// Sets the model of the legacy list.
pub fn set_model(state: &mut State, key: SessionKey, model: ModelId, _now: Instant, fx: &mut Vec<Effect>) {
    let Some((conn, id)) = reachable(state, key, fx) else {
        return;
    };
    let is_offered = state
        .sessions
        .get(&key)
        .and_then(|session| session.models.as_ref())
        .is_some_and(|models| models.available.iter().any(|known| known.id == model));
    if !is_offered {
        call::flash(state, "This agent does not offer this model.", fx);
        return;
    }
    let request = Call::SetModel(id, model.clone());
    ask(state, conn, key, Purpose::SetModel(key), request, Wanted::Setting(Setting::Model(model)), fx);
}

/// Sets a config option.
pub fn set_option(
    state: &mut State,
    key: SessionKey,
    option: String,
    value: ConfigValue,
    _now: Instant,
    fx: &mut Vec<Effect>,
) {
    let Some((conn, id)) = reachable(state, key, fx) else {
        return;
    };
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
        call::flash(state, "This agent does not offer this option.", fx);
        return;
    }
    let request = Call::SetOption(id, option.clone(), value.clone());
    ask(
        state,
        conn,
        key,
        Purpose::SetOption(key),
        request,
        Wanted::Setting(Setting::Option(option, value)),
        fx,
    );
}

fn reachable(state: &mut State, key: SessionKey, fx: &mut Vec<Effect>) -> Option<(ConnId, SessionId)> {
    let found = state
        .sessions
        .get(&key)
        .filter(|session| session.phase == SessionPhase::Ready)
        .and_then(|session| Some((session.conn?, session.id.clone()?)))
        .filter(|(conn, _)| state.conns.get(conn).is_some_and(|conn| conn.phase == ConnPhase::Ready));
    if found.is_none() {
        call::flash(state, crate::app::texts::NOT_OPEN, fx);
    }
    found
}

/// Asks the agent to set a value. Gives the number of the call.
pub(super) fn ask(
    state: &mut State,
    conn: ConnId,
    key: SessionKey,
    purpose: Purpose,
    request: Call,
    wanted: Wanted,
    fx: &mut Vec<Effect>,
) -> Option<u64> {
    let number = call::call(state, conn, purpose, request, fx)?;
    if matches!(wanted, Wanted::Setting(_)) {
        fx.push(Effect::Timer(TimerId::SettingOverdue(key), ANSWER_LIMIT));
    }
    if let Some(session) = state.sessions.get_mut(&key) {
        session.ledger.wanted.insert(number, wanted);
    }
    Some(number)
}

/// The agent has not confirmed a change in time: prompts wait no longer. What is set again after the session was opened
/// goes on holding them, because nothing else says in which mode the agent is then (`chosen`).
pub(super) fn on_overdue(state: &mut State, key: SessionKey, now: Instant, fx: &mut Vec<Effect>) {
    let Some(session) = state.sessions.get_mut(&key) else { return };
    let Some(what) = session.pending_setting().filter(|_| session.ledger.setting_again.is_none()) else {
        return;
    };
    let last = session.ledger.wanted.keys().next_back().copied();
    session.ledger.overdue_setting = last.unwrap_or_default();
    let is_sending = session.ledger.sends_when_ready && !session.queue.is_empty();
    if is_sending && session.phase == SessionPhase::Ready && !session.turn.is_running() {
        let title = format!("The agent has not confirmed the new {what}.");
        let detail = "The queued prompt was sent anyway.".to_owned();
        call::notice(state, key, Severity::Warning, title, Some(detail));
        turn::go_on(state, key, now, fx);
    }
}

/// The agent answered; what it says of the values is the truth.
pub(super) fn on_set(
    state: &mut State,
    key: SessionKey,
    number: u64,
    result: Result<Reply, CallError>,
    now: Instant,
    fx: &mut Vec<Effect>,
) {
    let Some(session) = state.sessions.get_mut(&key) else {
        return;
    };
    let Some(wanted) = session.ledger.wanted.remove(&number) else {
        return;
    };
    let named = match &wanted {
        Wanted::Title(title) => Some(title.clone()),
        Wanted::Setting(_) => None,
    };
    let mut stored = None;
    let problem = match result {
        Ok(Reply::Options(options)) => {
            if let Wanted::Setting(setting) = wanted {
                chosen::note(session, setting);
            }
            session.options = options;
            agree(session);
            chosen::follow_options(session);
            None
        }
        Ok(Reply::Title(title)) => {
            stored = Some(title);
            None
        }
        Ok(Reply::Done) => {
            if let Wanted::Setting(setting) = &wanted {
                chosen::note(session, setting.clone());
            }
            take(session, wanted);
            None
        }
        Ok(_) => {
            let error = "the response does not match the request".to_owned();
            Some(CallError::Malformed { error })
        }
        Err(error) => Some(error),
    };
    if let Some(title) = named {
        titles::on_told(state, key, &title, stored, problem.as_ref(), fx);
        return;
    }
    if chosen::on_set_again(state, key, number, problem.as_ref(), now, fx) {
        return;
    }
    let Some(session) = state.sessions.get_mut(&key) else { return };
    let is_open = session.phase == SessionPhase::Ready && !session.turn.is_running();
    let Some(error) = problem else {
        if is_open {
            turn::go_on(state, key, now, fx);
        }
        return;
    };
    // What was typed for another mode or model is not sent in this one without the user's word.
    session.ledger.sends_when_ready &= !is_open;
    let waits =
        if is_open && !session.queue.is_empty() { ". Send an empty prompt to run the queue" } else { "" };
    call::flash(state, format!("Change failed: {}{waits}", texts::error_text(&error)), fx);
}

fn take(session: &mut Session, wanted: Wanted) {
    match wanted {
        Wanted::Setting(Setting::Mode(mode)) => {
            set_option_of(session, "mode", mode.as_str());
            if let Some(modes) = &mut session.modes {
                modes.current = mode;
            }
        }
        Wanted::Setting(Setting::Model(model)) => {
            set_option_of(session, "model", model.as_str());
            if let Some(models) = &mut session.models {
                models.current = model;
            }
        }
        Wanted::Setting(Setting::Option(id, value)) => {
            if let Some(option) = session.options.iter_mut().find(|option| option.id == id) {
                match (&mut option.kind, value) {
                    (ConfigKind::Select { current, .. }, ConfigValue::Text(text)) => *current = text,
                    (ConfigKind::Boolean { current }, ConfigValue::Bool(is_on)) => *current = is_on,
                    _ => {}
                }
            }
            agree(session);
        }
        // It was taken over when it was given.
        Wanted::Title(_) => {}
    }
}

/// The options are in force: modes and models that are told beside them follow.
/// Source: ACP v1 session-config-options: options come before modes where both are told.
pub(super) fn agree(session: &mut Session) {
    for option in &session.options {
        let ConfigKind::Select { current, .. } = &option.kind else {
            continue;
        };
        match option.category.as_deref() {
            Some("mode") => {
                if let Some(modes) = &mut session.modes
                    && let Some(known) = modes.available.iter().find(|known| known.id.as_str() == current)
                {
                    modes.current = known.id.clone();
                }
            }
            Some("model") => {
                if let Some(models) = &mut session.models
                    && let Some(known) = models.available.iter().find(|known| known.id.as_str() == current)
                {
                    models.current = known.id.clone();
                }
            }
            _ => {}
        }
    }
}

/// A mode or model was told by itself: the option of that category follows, if it has the value.
pub(super) fn set_option_of(session: &mut Session, category: &str, value: &str) {
    for option in &mut session.options {
        if option.category.as_deref() == Some(category)
            && let ConfigKind::Select { current, choices } = &mut option.kind
            && choices.iter().any(|choice| choice.value == value)
        {
            value.clone_into(current);
        }
    }
}
