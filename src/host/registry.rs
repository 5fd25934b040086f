//! The protocol's registry of agents: reads it, installs agents from it, and removes them.
//!
//! The index is read from the network only when the user asks for it; otherwise the last one that was fetched is used,
//! or the one that parlor was built with. `install` downloads an agent into a folder of its own, and `lock` records
//! what was installed from where.
//! Invariants: nothing is downloaded or run before the user has seen it; no script of a package runs unless the user
//! names the package; what an index says is checked before it is used; a failed installation leaves nothing.
//! Source: the registry's RFD and its schema.

mod fetch;
mod index;
mod install;
mod lock;
#[cfg(test)]
mod tests;
mod unpack;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::model::{InstalledAgent, RegistryAgent, RegistryIndex, SourceKind};
use crate::program::{Start, StartedBy};

pub use fetch::built_in;

/// The registry and the agents that were installed from it.
#[derive(Debug, Clone)]
pub struct Registry {
    agents: PathBuf,
    url: String,
}

/// The error of an installation that the user ended.
pub const CANCELLED: &str = "Cancelled.";

/// Ends an installation when it is set.
#[derive(Debug, Clone, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// The programs that install agents, but are not on the `PATH`.
fn missing_installers() -> Vec<&'static str> {
    let names = [SourceKind::Npm, SourceKind::Pypi].into_iter().filter_map(SourceKind::installer);
    names.filter(|name| Start::find(StartedBy::User, name, None, &[]).is_err()).collect()
}

impl Registry {
    /// The registry at a URL; its files are in the data folder.
    pub fn new(data_dir: &Path, url: &str) -> Self {
        Self { agents: data_dir.join("agents"), url: url.to_owned() }
    }

    pub fn agents_dir(&self) -> &Path {
        &self.agents
    }

    /// The index as last fetched, or the one that parlor was built with. Reads no network.
    pub fn index(&self) -> RegistryIndex {
        let index = fetch::saved(&self.agents, &self.url).unwrap_or_else(|| built_in().clone());
        RegistryIndex { missing_installers: missing_installers(), ..index }
    }

    /// Fetches the index, unless it has not changed.
    ///
    /// # Errors
    /// Why it cannot be read, with the next step, in full sentences. The kept index stays.
    pub fn refresh(&self) -> Result<RegistryIndex, String> {
        let index = fetch::refresh(&self.agents, &self.url)?;
        Ok(RegistryIndex { missing_installers: missing_installers(), ..index })
    }

    pub fn installed(&self) -> Vec<InstalledAgent> {
        lock::read(&self.agents).map(|lock| lock.installed(&self.agents)).unwrap_or_default()
    }

    /// Installs an agent, or another version of it. `scripts`: packages whose install scripts may run. Returns what was
    /// installed, and the packages whose scripts were not run. `say` gets the progress, line by line.
    ///
    /// # Errors
    /// What failed, with the next step, in full sentences. Nothing of the new files is left, and an installed version stays.
    pub fn install(
        &self,
        agent: &RegistryAgent,
        scripts: &[String],
        stop: &Stop,
        say: &dyn Fn(String),
    ) -> Result<(InstalledAgent, Vec<String>), String> {
        // A damaged record is reported before the download, and read again after it: another parlor may have changed it.
        lock::read(&self.agents)?;
        let (made, lock) = install::replacing(&agent.folder(&self.agents), |folder| {
            let made = install::install(agent, folder, scripts, stop, say)?;
            let mut lock = lock::read(&self.agents)?;
            lock.add(agent, &made);
            lock.write(&self.agents)?;
            Ok((made, lock))
        })?;
        let installed = lock.installed(&self.agents).into_iter().find(|installed| installed.id == agent.id);
        Ok((installed.ok_or("The installed program is missing. Install it again.")?, made.skipped_scripts))
    }

    /// Removes an agent and everything that its installation wrote.
    ///
    /// # Errors
    /// It is not installed, or its files cannot be removed.
    pub fn remove(&self, id: &str) -> Result<(), String> {
        let mut lock = lock::read(&self.agents)?;
        if !lock.remove(id) {
            return Err(format!("The agent {id} is not installed. See `parlor agents list`."));
        }
        // The record first, so that an agent without files is not offered.
        lock.write(&self.agents)?;
        install::remove_folder(&self.agents.join(id));
        Ok(())
    }

    /// Records whether an installed agent has started. The first start of a new version decides: if it fails, the version
    /// that last worked is used again. Returns a message about that.
    pub fn note_start(&self, id: &str, has_worked: bool) -> Option<String> {
        let mut lock = lock::read(&self.agents).ok()?;
        let (is_changed, message) = lock.note_start(&self.agents, id, has_worked);
        if is_changed {
            lock.write(&self.agents).ok()?;
        }
        message
    }
}
