//! What parlor kept before it had a database: prompts as lines of JSON, agents as one JSON file.
//!
//! Duty: takes them over once. The old files stay beside it under another name.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use rusqlite::{Connection, OptionalExtension as _, TransactionBehavior};
use serde::Deserialize;

use super::folders;

const HISTORY: &str = "history";
const AGENTS: &str = "agents.json";

#[derive(Deserialize)]
struct Line {
    folder: String,
    text: String,
    /// Unix time in seconds.
    #[serde(default)]
    at: i64,
}

#[derive(Default, Deserialize)]
struct Agents {
    folders: BTreeMap<String, Choice>,
}

#[derive(Deserialize)]
struct Choice {
    agent: String,
    #[serde(default)]
    at: i64,
}

/// Takes over what is there. Gives what could not be read, in a sentence.
pub(super) fn take_over(root: &Path, conn: &mut Connection) -> rusqlite::Result<Option<String>> {
    let (history, agents) = (root.join(HISTORY), root.join(AGENTS));
    if !history.exists() && !agents.exists() {
        return Ok(None);
    }
    let mut bad_count = 0_usize;
    let change = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Another parlor may have done it meanwhile, or this one was stopped before the files were renamed.
    let is_done: Option<String> =
        change.query_row("SELECT value FROM meta WHERE key = 'legacy'", [], |row| row.get(0)).optional()?;
    if is_done.is_none() {
        for line in lines(&history) {
            match serde_json::from_slice::<Line>(&line) {
                Ok(line) => folders::insert_prompt(&change, &line.folder, &line.text, line.at * 1000)?,
                Err(_) => bad_count += 1,
            }
        }
        match fs::read(&agents).map(|bytes| serde_json::from_slice::<Agents>(&bytes)) {
            Ok(Ok(agents)) => {
                for (folder, choice) in agents.folders {
                    folders::insert_agent(&change, &folder, &choice.agent, choice.at * 1000)?;
                }
            }
            Ok(Err(_)) => bad_count += 1,
            Err(_) => {}
        }
        change.execute("INSERT INTO meta (key, value) VALUES ('legacy', 'taken over')", [])?;
    }
    change.commit()?;
    for path in [history, agents] {
        let mut aside = path.clone().into_os_string();
        aside.push(".imported");
        let _ = fs::rename(path, aside);
    }
    Ok((bad_count > 0).then(|| {
        format!(
            "{bad_count} entries of the old history could not be read. The old files stay in {}, with \
             .imported at the end of their names.",
            root.display()
        )
    }))
}

/// All lines of all files, by the files' names; they are oldest first within a file.
fn lines(folder: &Path) -> Vec<Vec<u8>> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "jsonl"));
    paths.sort();
    let mut lines = Vec::new();
    for bytes in paths.iter().filter_map(|path| fs::read(path).ok()) {
        let pieces = bytes.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty());
        lines.extend(pieces.map(<[u8]>::to_vec));
    }
    lines
}
