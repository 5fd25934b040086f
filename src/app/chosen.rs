//! What was chosen in a session holds also when the session is opened again.
//!
//! Duty: remembers modes, models and options that were set, and sets them again where the agent, started anew, does
//! not say that they are in force. Not its duty: setting them (`choices`), opening (`open`).
//! Invariants: no prompt goes off by itself before they hold again, so that nothing is done in a mode that the user
//! has left; where one cannot be set, what waits stays, and that is said.

use std::collections::VecDeque;
use std::time::Instant;

use crate::model::{Call, CallError, ConfigKind, ConfigValue, Purpose, SessionKey, SessionReply, Severity};

use super::{Effect, FailedPrompt, Session, SessionPhase, State, Wanted, call, choices, open, turn, words};

/// What the answer that opened a session says about.
#[derive(Debug, Clone, Copy)]
pub(super) struct Told {
    modes: bool,
    models: bool,
    options: bool,
}

impl Told {
    /// By this answer.
    pub(super) fn of(reply: &SessionReply) -> Self {
        Self {
            modes: reply.modes.is_some(),
            models: reply.models.is_some(),
            options: !reply.options.is_empty(),
        }
    }
}

/// Remembers that this is in force by somebody's choice. A title is kept elsewhere.
pub(super) fn note(session: &mut Session, choice: &Wanted) {
    let is_of_same_kind = |other: &Wanted| match (other, choice) {
        (Wanted::Mode(_), Wanted::Mode(_)) | (Wanted::Model(_), Wanted::Model(_)) => true,
        (Wanted::Option(one, _), Wanted::Option(other, _)) => one == other,
        _ => false,
    };
    if !matches!(choice, Wanted::Title(_)) {
        session.ledger.chosen.retain(|other| !is_of_same_kind(other));
        session.ledger.chosen.push(choice.clone());
    }
}

/// The agent changed it by itself, within a session that is open: a replay tells what was, not what is.
pub(super) fn follow(session: &mut Session, choice: &Wanted) {
    if session.phase == SessionPhase::Ready {
        note(session, choice);
    }
}

/// The agent told all options anew: those that were chosen are now what it says.
pub(super) fn follow_options(session: &mut Session) {
    if session.phase != SessionPhase::Ready {
        return;
    }
    let options = &session.options;
    for choice in &mut session.ledger.chosen {
        if let Wanted::Option(id, value) = choice
            && let Some(now) = options.iter().find(|option| option.id == *id)
        {
            *value = value_of(&now.kind);
        }
    }
}

fn value_of(kind: &ConfigKind) -> ConfigValue {
    match kind {
        ConfigKind::Select { current, .. } => ConfigValue::Text(current.clone()),
        ConfigKind::Boolean { current } => ConfigValue::Bool(*current),
    }
}

/// A session was opened: what was chosen in its life before, if it had one, is set again, where that is needed. One
/// call waits for the other, because agents work on several at once.
pub(super) fn set_again(state: &mut State, key: SessionKey, told: Told, fx: &mut Vec<Effect>) {
    let Some(session) = state.sessions.get_mut(&key) else { return };
    let missing: VecDeque<Wanted> =
        session.ledger.chosen.iter().filter(|choice| is_missing(session, choice, told)).cloned().collect();
    session.ledger.to_set_again = missing;
    set_next(state, key, fx);
}

fn set_next(state: &mut State, key: SessionKey, fx: &mut Vec<Effect>) {
    let Some(session) = state.sessions.get_mut(&key) else { return };
    session.ledger.setting_again = None;
    let (Some(conn), Some(id)) = (session.conn, session.id.clone()) else { return };
    let Some(choice) = session.ledger.to_set_again.pop_front() else { return };
    let (purpose, request) = match &choice {
        Wanted::Mode(mode) => (Purpose::SetMode(key), Call::SetMode(id, mode.clone())),
        Wanted::Model(model) => (Purpose::SetModel(key), Call::SetModel(id, model.clone())),
        Wanted::Option(option, value) => {
            (Purpose::SetOption(key), Call::SetOption(id, option.clone(), value.clone()))
        }
        Wanted::Title(title) => (Purpose::SetTitle(key), Call::SetTitle(id, title.clone())),
    };
    let number = choices::ask(state, conn, key, purpose, request, choice, fx);
    if let Some(session) = state.sessions.get_mut(&key) {
        session.ledger.setting_again = number;
    }
}

/// Whether it is offered, and not known to be in force.
fn is_missing(session: &Session, choice: &Wanted, told: Told) -> bool {
    match choice {
        Wanted::Mode(mode) => session.modes.as_ref().is_some_and(|modes| {
            (!told.modes || modes.current != *mode) && modes.available.iter().any(|known| known.id == *mode)
        }),
        Wanted::Model(model) => session.models.as_ref().is_some_and(|models| {
            (!told.models || models.current != *model)
                && models.available.iter().any(|known| known.id == *model)
        }),
        Wanted::Option(id, value) => session.options.iter().any(|option| {
            let is_offered = match (&option.kind, value) {
                (ConfigKind::Select { choices, .. }, ConfigValue::Text(text)) => {
                    choices.iter().any(|choice| choice.value == *text)
                }
                (ConfigKind::Boolean { .. }, ConfigValue::Bool(_)) => true,
                _ => false,
            };
            option.id == *id && is_offered && (!told.options || value_of(&option.kind) != *value)
        }),
        Wanted::Title(_) => false,
    }
}

/// One of them was set again, or not; after the last of them what waits goes off. Returns whether it was one.
pub(super) fn on_set_again(
    state: &mut State,
    key: SessionKey,
    number: u64,
    problem: Option<&CallError>,
    now: Instant,
    fx: &mut Vec<Effect>,
) -> bool {
    let Some(session) = state.sessions.get_mut(&key) else { return false };
    if session.ledger.setting_again != Some(number) {
        return false;
    }
    if problem.is_some_and(words::is_session_gone) {
        // Who waits for a prompt to find that out would be asked about the choices for nothing.
        session.ledger.setting_again = None;
        session.ledger.to_set_again.clear();
        if session.ledger.doubt.is_some() {
            open::begin_anew(state, key, "It could not take the session up again.", now, fx);
        } else {
            turn::go_on(state, key, now, fx);
        }
        return true;
    }
    if let Some(error) = problem {
        session.ledger.sends_when_ready = false;
        if let Some(text) = session.ledger.unsent.take() {
            session.failed_prompt = Some(FailedPrompt { text, may_have_arrived: false });
        }
        let detail = format!(
            "{}\nLook at mode, model and options before you go on. What waits was not sent.",
            words::error_text(error)
        );
        let title = "Not all that you chose could be set again.";
        call::notice(state, key, Severity::Warning, title, Some(detail));
    }
    set_next(state, key, fx);
    turn::go_on(state, key, now, fx);
    true
}
