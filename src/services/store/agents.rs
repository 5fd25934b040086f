//! The agent that was last used in each folder: one JSON file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{Store, StoreError, read_bytes, replace, unix_seconds};

/// How many folders are remembered.
const MAX_FOLDERS: usize = 1000;

#[derive(Default, Serialize, Deserialize)]
struct Agents {
    folders: BTreeMap<String, Choice>,
}

#[derive(Serialize, Deserialize)]
struct Choice {
    agent: String,
    /// Unix time in seconds.
    #[serde(default)]
    at: u64,
}

pub(super) fn read(store: &Store, folder: &Path) -> Result<Option<String>, StoreError> {
    let path = file(store);
    let agents = if let Ok(agents) = parse(&read_bytes(&path)?) {
        agents
    } else {
        let _lock = store.lock()?;
        load(store, &path)?
    };
    let choice = agents.folders.get(folder.to_string_lossy().as_ref());
    Ok(choice.map(|choice| choice.agent.clone()))
}

pub(super) fn save(store: &Store, folder: &Path, agent: &str) -> Result<(), StoreError> {
    let path = file(store);
    let _lock = store.lock()?;
    let mut agents = load(store, &path)?;
    let choice = Choice { agent: agent.to_owned(), at: unix_seconds() };
    agents.folders.insert(folder.to_string_lossy().into_owned(), choice);
    while agents.folders.len() > MAX_FOLDERS {
        let oldest = agents.folders.iter().min_by_key(|(_, choice)| choice.at);
        let Some(oldest) = oldest.map(|(folder, _)| folder.clone()) else { break };
        agents.folders.remove(&oldest);
    }
    let mut bytes = serde_json::to_vec_pretty(&agents)
        .map_err(|error| StoreError::Io { path: path.clone(), error: error.into() })?;
    bytes.push(b'\n');
    replace(&path, &bytes)
}

/// Reads the file, moving it aside if it is broken. Call it under the lock.
fn load(store: &Store, path: &Path) -> Result<Agents, StoreError> {
    match parse(&read_bytes(path)?) {
        Ok(agents) => Ok(agents),
        Err(error) => {
            store.move_aside(path, &error.to_string())?;
            Ok(Agents::default())
        }
    }
}

fn parse(bytes: &[u8]) -> Result<Agents, serde_json::Error> {
    if bytes.is_empty() { Ok(Agents::default()) } else { serde_json::from_slice(bytes) }
}

fn file(store: &Store) -> PathBuf {
    store.root.join("agents.json")
}
