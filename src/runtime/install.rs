//! Jobs with the registry of agents, on threads for blocking work.

use crate::config::catalogue::spec_of_installed;
use crate::host::registry::Stop;
use crate::model::{RegistryAgent, ServiceEvent};

use super::effects::EffectRunner;

impl EffectRunner {
    pub(super) fn read_registry(&self, is_fetched: bool) {
        let Some(registry) = self.registry.clone() else { return };
        self.work(move || {
            let result = if is_fetched { registry.refresh() } else { Ok(registry.index()) };
            Some(ServiceEvent::RegistryRead { result, is_fetched })
        });
    }

    pub(super) fn install_agent(&mut self, agent: Box<RegistryAgent>, scripts: Vec<String>) {
        let Some(registry) = self.registry.clone() else { return };
        self.installation = Stop::default();
        let (stop, services) = (self.installation.clone(), self.sender());
        self.work(move || {
            let say = |line: String| {
                // Without a receiver, parlor ends.
                let _ = services.send(ServiceEvent::InstallProgress(line));
            };
            let installed = registry.install(&agent, &scripts, &stop, &say);
            let result =
                installed.map(|(installed, skipped)| (Box::new(spec_of_installed(&installed)), skipped));
            Some(ServiceEvent::AgentInstalled { agent, result })
        });
    }

    pub(super) fn note_start(&self, id: String, has_worked: bool) {
        let Some(registry) = self.registry.clone() else { return };
        self.work(move || registry.note_start(&id, has_worked).map(ServiceEvent::Problem));
    }
}
