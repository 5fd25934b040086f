//! Modes, models and options of a session: synchronized with each other, and remembered when they were chosen.

use crate::model::{ConfigKind, ConfigValue, Setting};

use crate::core::{Session, SessionPhase, Wanted};

/// Updates modes and models from the options. Source: ACP v1 session-config-options: options take precedence over
/// modes.
pub(in crate::core) fn agree(session: &mut Session) {
    for option in &session.options {
        let ConfigKind::Select { current, .. } = &option.kind else { continue };
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

/// A mode or model was reported separately: updates the option of that category, if it has the value.
pub(in crate::core) fn set_option_of(session: &mut Session, category: &str, value: &str) {
    for option in &mut session.options {
        if option.category.as_deref() == Some(category)
            && let ConfigKind::Select { current, choices } = &mut option.kind
            && choices.iter().any(|choice| choice.value == value)
        {
            value.clone_into(current);
        }
    }
}

pub(in crate::core) fn take(session: &mut Session, wanted: Wanted) {
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
        // It was applied when it was entered.
        Wanted::Title(_) => {}
    }
}

pub(in crate::core) fn note(session: &mut Session, choice: Setting) {
    session.settings.choose(choice);
}

/// The agent changed a setting of an open session (a replay contains past values). A model is remembered only if one
/// was chosen before, because the agent may have a better default next time.
pub(in crate::core) fn follow(session: &mut Session, choice: Setting) {
    let is_chosen = || session.settings.chosen().iter().any(|other| matches!(other, Setting::Model(_)));
    let counts = !matches!(choice, Setting::Model(_)) || is_chosen();
    if session.phase == SessionPhase::Ready && counts {
        note(session, choice);
    }
}

/// The agent reported all options: updates those that were chosen.
pub(in crate::core) fn follow_options(session: &mut Session) {
    if session.phase != SessionPhase::Ready {
        return;
    }
    let options = &session.options;
    for choice in session.settings.chosen_mut() {
        if let Setting::Option(id, value) = choice
            && let Some(now) = options.iter().find(|option| option.id == *id)
        {
            *value = value_of(&now.kind);
        }
    }
}

pub(in crate::core) fn value_of(kind: &ConfigKind) -> ConfigValue {
    match kind {
        ConfigKind::Select { current, .. } => ConfigValue::Text(current.clone()),
        ConfigKind::Boolean { current } => ConfigValue::Bool(*current),
    }
}
