//! Sets the settings that the command line names, and restores those that were chosen when a session is reopened.
//!
//! Modes, models and options that were set are saved (`recorder`), and set again unless the restarted agent reports
//! them as current. `choices` sets them, `open` opens the session.
//! Invariants: prompts wait until the settings are restored, so that nothing runs in a mode that the user has left; if
//! one cannot be set, waiting prompts are retained and the user is informed.

use std::collections::VecDeque;

use crate::model::{
    CallError, ConfigKind, ConfigOption, ConfigValue, SessionKey, SessionReply, Setting, Severity,
};

use super::{call, open, turn};
use crate::core::session::settings;
use crate::core::state::lookup::{mode_option, model_option};
use crate::core::state::texts;
use crate::core::{Cx, PromptState, Session, State, Wanted};

/// Maximum number of models or modes in a message.
const MAX_LISTED: usize = 12;

/// Which settings are in the response that opened a session.
#[derive(Debug, Clone, Copy)]
pub(in crate::core) struct ReportedSettings {
    modes: bool,
    models: bool,
    options: bool,
}

impl ReportedSettings {
    pub(in crate::core) fn of(reply: &SessionReply) -> Self {
        Self {
            modes: reply.modes.is_some(),
            models: reply.models.is_some(),
            options: !reply.options.is_empty(),
        }
    }
}

/// Restores the chosen settings of an opened session, where needed. The calls are sequential, because agents handle
/// several concurrently.
pub(crate) fn restore_settings(state: &mut State, key: SessionKey, reported: ReportedSettings, cx: &mut Cx) {
    let Some(session) = state.sessions.get_mut(&key) else { return };
    let unknown = choose_named(session);
    let (mut missing, mut unavailable) = (VecDeque::new(), Vec::new());
    for choice in session.settings.chosen() {
        match standing(session, choice, reported) {
            Standing::Holds => {}
            Standing::Missing => missing.push_back(choice.clone()),
            Standing::Gone => unavailable.push(choice_text(choice)),
        }
    }
    session.settings.begin_restoring(missing);
    let gone =
        (!unavailable.is_empty()).then(|| format!("The agent no longer offers: {}.", unavailable.join(", ")));
    let problems: Vec<String> = unknown.into_iter().chain(gone).collect();
    if !problems.is_empty() {
        hold_prompts(state, key, &problems.join("\n"));
    }
    set_next(state, key, cx);
}

/// Chooses the settings that the command line names. Returns what is wrong with those that the agent does not offer, each in
/// one sentence.
fn choose_named(session: &mut Session) -> Vec<String> {
    let named = session.settings.take_named();
    let models = named.model.map(|text| {
        let listed = session.models.iter().flat_map(|models| &models.available);
        let listed = listed.map(|model| Offer::new(&model.name, Setting::Model(model.id.clone()))).collect();
        find_offer("model", &text, &option_offers(model_option(session)).unwrap_or(listed))
    });
    let modes = named.mode.map(|text| {
        let listed = session.modes.iter().flat_map(|modes| &modes.available);
        let listed = listed.map(|mode| Offer::new(&mode.name, Setting::Mode(mode.id.clone()))).collect();
        find_offer("mode", &text, &option_offers(mode_option(session)).unwrap_or(listed))
    });
    let mut problems = Vec::new();
    for found in models.into_iter().chain(modes) {
        match found {
            Ok(setting) => settings::note(session, setting),
            Err(problem) => problems.push(problem),
        }
    }
    problems
}

/// A model or mode that the agent offers.
struct Offer {
    name: String,
    setting: Setting,
}

impl Offer {
    fn new(name: &str, setting: Setting) -> Self {
        Self { name: name.to_owned(), setting }
    }

    fn id(&self) -> &str {
        match &self.setting {
            Setting::Mode(mode) => mode.as_str(),
            Setting::Model(model) => model.as_str(),
            Setting::Option(_, ConfigValue::Text(value)) => value,
            Setting::Option(..) => "",
        }
    }
}

fn option_offers(option: Option<&ConfigOption>) -> Option<Vec<Offer>> {
    let ConfigOption { id, kind: ConfigKind::Select { choices, .. }, .. } = option? else { return None };
    let setting = |value: &String| Setting::Option(id.clone(), ConfigValue::Text(value.clone()));
    Some(choices.iter().map(|choice| Offer::new(&choice.name, setting(&choice.value))).collect())
}

/// The offer with this id, or else the only one with this name, or with this text in its id or name. Case does not count.
fn find_offer(kind: &str, text: &str, offers: &[Offer]) -> Result<Setting, String> {
    if offers.is_empty() {
        return Err(format!("This agent has no list of {kind}s. Configure the {kind} in the agent itself."));
    }
    let wanted = text.trim().to_lowercase();
    let tests: [fn(&Offer, &str) -> bool; 3] = [
        |offer, wanted| offer.id().to_lowercase() == wanted,
        |offer, wanted| offer.name.to_lowercase() == wanted,
        |offer, wanted| [offer.id(), &offer.name].iter().any(|name| name.to_lowercase().contains(wanted)),
    ];
    let mut found =
        tests.iter().map(|is_it| offers.iter().filter(|offer| is_it(offer, &wanted)).collect::<Vec<_>>());
    match found.find(|found| !found.is_empty()).as_deref() {
        Some([offer]) => Ok(offer.setting.clone()),
        Some(several) => Err(format!("Several {kind}s match “{text}”: {}.", ids(several.iter().copied()))),
        None => Err(format!("The agent has no {kind} “{text}”. It offers: {}.", ids(offers.iter()))),
    }
}

/// The ids of the first offers.
fn ids<'a>(offers: impl ExactSizeIterator<Item = &'a Offer>) -> String {
    let more = offers.len().saturating_sub(MAX_LISTED);
    let mut ids: Vec<String> = offers.take(MAX_LISTED).map(|offer| offer.id().to_owned()).collect();
    ids.extend((more > 0).then(|| format!("and {more} more")));
    ids.join(", ")
}

/// A setting could not be set: waiting prompts are not sent automatically, and the user is informed.
fn hold_prompts(state: &mut State, key: SessionKey, why: &str) {
    if let Some(session) = state.sessions.get_mut(&key) {
        match session.outbox.unsent().map(|prompt| prompt.id) {
            Some(id) => session.outbox.set_state(id, PromptState::Failed { may_have_arrived: false }),
            None => session.outbox.hold(),
        }
    }
    let detail = format!("{why}\nCheck mode, model and options. The pending prompt was not sent.");
    let title = "Some settings could not be set.";
    call::notice(state, key, Severity::Warning, title, Some(detail));
}

fn choice_text(choice: &Setting) -> String {
    match choice {
        Setting::Mode(mode) => format!("mode {mode}"),
        Setting::Model(model) => format!("model {model}"),
        Setting::Option(id, ConfigValue::Text(value)) => format!("{id} {value}"),
        Setting::Option(id, ConfigValue::Bool(true)) => format!("{id} on"),
        Setting::Option(id, ConfigValue::Bool(false)) => format!("{id} off"),
    }
}

fn set_next(state: &mut State, key: SessionKey, cx: &mut Cx) {
    let Some(session) = state.sessions.get_mut(&key) else { return };
    session.settings.set_restoring(None);
    let (Some(conn), Some(id)) = (session.conn, session.id.clone()) else { return };
    let Some(choice) = session.settings.next_to_restore() else { return };
    let number = call::request_change(state, (conn, id), key, Wanted::Setting(choice), cx);
    if let Some(session) = state.sessions.get_mut(&key) {
        session.settings.set_restoring(number);
    }
}

/// The state of a setting after a restart of the agent.
enum Standing {
    /// The agent reports it as current.
    Holds,
    /// It must be set: another value is current, or none was reported. The agent accepted it in this session before, so
    /// it is tried even if the agent lists nothing now.
    Missing,
    /// The agent lists its values without this one.
    Gone,
}

fn standing(session: &Session, choice: &Setting, reported: ReportedSettings) -> Standing {
    let of = |is_offered: bool, is_in_force: bool| match (is_offered, is_in_force) {
        (false, _) => Standing::Gone,
        (true, true) => Standing::Holds,
        (true, false) => Standing::Missing,
    };
    match choice {
        Setting::Mode(mode) => session.modes.as_ref().map_or(Standing::Missing, |modes| {
            let is_offered = modes.available.iter().any(|known| known.id == *mode);
            of(is_offered, reported.modes && modes.current == *mode)
        }),
        Setting::Model(model) => session.models.as_ref().map_or(Standing::Missing, |models| {
            let is_offered = models.available.iter().any(|known| known.id == *model);
            of(is_offered, reported.models && models.current == *model)
        }),
        Setting::Option(..) if session.options.is_empty() => Standing::Missing,
        Setting::Option(id, value) => {
            let known = session.options.iter().find(|option| option.id == *id);
            known.map_or(Standing::Gone, |option| {
                let is_offered = match (&option.kind, value) {
                    (ConfigKind::Select { choices, .. }, ConfigValue::Text(text)) => {
                        choices.iter().any(|choice| choice.value == *text)
                    }
                    (ConfigKind::Boolean { .. }, ConfigValue::Bool(_)) => true,
                    _ => false,
                };
                of(is_offered, reported.options && settings::value_of(&option.kind) == *value)
            })
        }
    }
}

/// The response to restoring a setting; after the last one waiting prompts are sent. Returns whether it was such a
/// call.
pub(in crate::core) fn on_restored_setting(
    state: &mut State,
    key: SessionKey,
    number: u64,
    problem: Option<&CallError>,
    cx: &mut Cx,
) -> bool {
    let Some(session) = state.sessions.get_mut(&key) else { return false };
    if session.settings.restoring() != Some(number) {
        return false;
    }
    if problem.is_some_and(texts::is_session_gone) {
        // The session does not exist, so asking about the settings would be useless.
        session.settings.stop_restoring();
        if session.resume.doubt().is_some() {
            open::open_replacement(state, key, crate::core::state::texts::NOT_RESUMED, cx);
        } else {
            turn::send_next(state, key, cx);
        }
        return true;
    }
    if let Some(error) = problem {
        hold_prompts(state, key, &texts::error_text(error));
    }
    set_next(state, key, cx);
    turn::send_next(state, key, cx);
    true
}
