//! The record of the installed agents: version, origin, checksum, and the version that last worked.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::install::{Made, remove_folder};
use crate::host::os::private;
use crate::model::{InstalledAgent, RegistryAgent};

/// The file, in the folder of installed agents.
const FILE: &str = "installed.json";

#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Lock {
    agents: BTreeMap<String, Entry>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Entry {
    title: String,
    #[serde(flatten)]
    current: Version,
    /// The version before it that has worked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    previous: Option<Version>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Version {
    #[serde(rename = "version")]
    number: String,
    from: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sha256: Option<String>,
    command: PathBuf,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: Vec<(String, String)>,
    /// Whether it has started at least once.
    #[serde(default)]
    has_worked: bool,
}

/// Reads the record; none is an empty one.
pub fn read(agents: &Path) -> Result<Lock, String> {
    let file = agents.join(FILE);
    let text = match fs::read(&file) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Lock::default()),
        Err(error) => return Err(format!("Cannot read {}: {error}.", file.display())),
    };
    serde_json::from_slice(&text).map_err(|error| {
        format!(
            "{} is damaged ({error}). Correct it, or delete it and install the agents again.",
            file.display()
        )
    })
}

impl Lock {
    pub fn write(&self, agents: &Path) -> Result<(), String> {
        let file = agents.join(FILE);
        let text = serde_json::to_vec_pretty(self).unwrap_or_default();
        private::make_folder(agents)
            .and_then(|()| private::replace(&file, &text))
            .map_err(|error| format!("Cannot write {}: {error}.", file.display()))
    }

    /// The agents whose program exists.
    pub fn installed(&self, agents: &Path) -> Vec<InstalledAgent> {
        let is_own =
            |entry: &Entry| entry.current.command.starts_with(agents) && entry.current.command.exists();
        let entries = self.agents.iter().filter(|(_, entry)| is_own(entry));
        let agent = |(id, entry): (&String, &Entry)| InstalledAgent {
            id: id.clone(),
            title: entry.title.clone(),
            version: entry.current.number.clone(),
            command: entry.current.command.clone(),
            args: entry.current.args.clone(),
            env: entry.current.env.clone(),
        };
        entries.map(agent).collect()
    }

    pub fn add(&mut self, agent: &RegistryAgent, made: &Made) {
        let source = agent.source.as_ref();
        let current = Version {
            number: agent.version.clone(),
            from: source.map(|source| source.from.clone()).unwrap_or_default(),
            sha256: made.sha256.clone(),
            command: made.command.clone(),
            args: source.map(|source| source.args.clone()).unwrap_or_default(),
            env: source.map(|source| source.env.clone()).unwrap_or_default(),
            has_worked: false,
        };
        let former = self.agents.remove(&agent.id);
        let previous = former.and_then(|entry| {
            let is_good = entry.current.has_worked && entry.current.number != agent.version;
            if is_good { Some(entry.current) } else { entry.previous }
        });
        self.agents.insert(agent.id.clone(), Entry { title: agent.title.clone(), current, previous });
    }

    pub fn remove(&mut self, id: &str) -> bool {
        self.agents.remove(id).is_some()
    }

    /// Records a start. Returns whether the record has changed, and a message if another version is used from now on.
    pub fn note_start(&mut self, agents: &Path, id: &str, has_worked: bool) -> (bool, Option<String>) {
        let Some(entry) = self.agents.get_mut(id).filter(|entry| !entry.current.has_worked) else {
            return (false, None);
        };
        if has_worked {
            entry.current.has_worked = true;
            if let Some(former) = entry.previous.take() {
                forget(agents, &former);
            }
            return (true, None);
        }
        let Some(former) = entry.previous.take() else { return (false, None) };
        let failed = std::mem::replace(&mut entry.current, former);
        forget(agents, &failed);
        let message = format!(
            "{} {} did not start. Version {} is used again.",
            entry.title, failed.number, entry.current.number
        );
        (true, Some(message))
    }
}

/// Removes the files of a version: its folder is named after it.
fn forget(agents: &Path, version: &Version) {
    let folder = version.command.ancestors().find(|folder| folder.ends_with(&version.number));
    if let Some(folder) = folder.filter(|folder| folder.starts_with(agents)) {
        remove_folder(folder);
    }
}
