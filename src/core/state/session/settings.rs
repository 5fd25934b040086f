//! Modes, models and options that were requested or chosen.

use std::collections::{BTreeMap, VecDeque};

use crate::model::Setting;

/// A value requested from the agent; it applies once the agent confirms it.
#[derive(Debug, Clone, PartialEq)]
pub enum Wanted {
    /// A mode, a model or an option.
    Setting(Setting),
    Title(String),
}

/// The settings that the command line names for the first session, as typed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NamedSettings {
    pub model: Option<String>,
    pub mode: Option<String>,
}

/// Requested and chosen settings of a session.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SettingsState {
    wanted: BTreeMap<u64, Wanted>,
    /// Calls up to this number were not answered in time: prompts do not wait for them.
    overdue: u64,
    chosen: Vec<Setting>,
    /// The settings of the command line, until the session opens and lists what they name.
    named: NamedSettings,
    /// The call that restores a setting; prompts wait for it.
    restoring: Option<u64>,
    to_restore: VecDeque<Setting>,
}

impl SettingsState {
    /// The kind of setting that prompts wait for: `mode`, `model` or `options`.
    pub(in crate::core) fn pending(&self) -> Option<&'static str> {
        let is_awaited = |number: u64| number > self.overdue || self.restoring == Some(number);
        self.wanted.iter().filter(|(number, _)| is_awaited(**number)).find_map(|(_, wanted)| match wanted {
            Wanted::Setting(Setting::Mode(_)) => Some("mode"),
            Wanted::Setting(Setting::Model(_)) => Some("model"),
            Wanted::Setting(Setting::Option(..)) => Some("options"),
            Wanted::Title(_) => None,
        })
    }

    pub fn request(&mut self, number: u64, wanted: Wanted) {
        self.wanted.insert(number, wanted);
    }

    pub(in crate::core) fn answered(&mut self, number: u64) -> Option<Wanted> {
        self.wanted.remove(&number)
    }

    /// Prompts no longer wait for the open requests.
    pub(in crate::core) fn stop_waiting(&mut self) {
        self.overdue = self.wanted.keys().next_back().copied().unwrap_or_default();
    }

    pub fn chosen(&self) -> &[Setting] {
        &self.chosen
    }

    pub(in crate::core) fn chosen_mut(&mut self) -> &mut [Setting] {
        &mut self.chosen
    }

    pub(in crate::core) fn set_chosen(&mut self, chosen: Vec<Setting>) {
        self.chosen = chosen;
    }

    pub(in crate::core) fn take_chosen(&mut self) -> Vec<Setting> {
        std::mem::take(&mut self.chosen)
    }

    /// Saves a choice, replacing an earlier one of the same kind.
    pub(in crate::core) fn choose(&mut self, choice: Setting) {
        let is_of_other_kind = |other: &Setting| match (other, &choice) {
            (Setting::Mode(_), Setting::Mode(_)) | (Setting::Model(_), Setting::Model(_)) => false,
            (Setting::Option(one, _), Setting::Option(other, _)) => one != other,
            _ => true,
        };
        self.chosen.retain(is_of_other_kind);
        self.chosen.push(choice);
    }

    pub(in crate::core) fn name(&mut self, named: NamedSettings) {
        self.named = named;
    }

    pub(in crate::core) fn take_named(&mut self) -> NamedSettings {
        std::mem::take(&mut self.named)
    }

    /// Sets the settings to restore, in order.
    pub(in crate::core) fn begin_restoring(&mut self, settings: VecDeque<Setting>) {
        self.to_restore = settings;
    }

    pub(in crate::core) fn next_to_restore(&mut self) -> Option<Setting> {
        self.to_restore.pop_front()
    }

    /// Sets the call that restores a setting; `None`: it has ended.
    pub(in crate::core) fn set_restoring(&mut self, number: Option<u64>) {
        self.restoring = number;
    }

    pub(in crate::core) fn restoring(&self) -> Option<u64> {
        self.restoring
    }

    /// The session has ended: stops restoring settings.
    pub(in crate::core) fn stop_restoring(&mut self) {
        self.restoring = None;
        self.to_restore.clear();
    }

    /// Another connection is used, without open requests.
    pub(in crate::core) fn begin_connecting(&mut self) {
        self.wanted.clear();
        self.stop_restoring();
    }

    pub(in crate::core) fn clear_agent_state(&mut self) {
        self.wanted.clear();
        self.chosen.clear();
    }
}
