//! Data by folder: prompts, and the last agent. Also what is known of agents.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OptionalExtension as _, TransactionBehavior, params};

/// Number of saved prompts per folder.
pub(super) const MAX_PROMPTS: u32 = 1000;

/// Number of additional prompts before the oldest are deleted.
pub(super) const SLACK_PROMPTS: u32 = 200;

/// Maximum size of a saved prompt.
pub(super) const MAX_PROMPT_BYTES: usize = 256 << 10;

/// Number of folders with a saved agent.
const MAX_FOLDERS: u32 = 1000;

/// The prompts of a folder, oldest first.
pub(super) fn prompts(conn: &Connection, folder: &Path) -> rusqlite::Result<Vec<String>> {
    let mut query = conn.prepare_cached(
        "SELECT text FROM (SELECT id, text FROM prompts WHERE folder = ?1 ORDER BY id DESC LIMIT ?2) ORDER BY id",
    )?;
    query.query_map(params![folder.to_string_lossy(), MAX_PROMPTS], |row| row.get(0))?.collect()
}

/// Adds a prompt, unless it equals the last one.
pub(super) fn add_prompt(
    conn: &mut Connection,
    folder: &Path,
    text: &str,
    at_ms: i64,
) -> rusqlite::Result<()> {
    let folder = folder.to_string_lossy();
    let change = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let last: Option<String> = change
        .query_row("SELECT text FROM prompts WHERE folder = ?1 ORDER BY id DESC LIMIT 1", [&folder], |row| {
            row.get(0)
        })
        .optional()?;
    if last.as_deref() == Some(text) {
        return Ok(());
    }
    insert_prompt(&change, &folder, text, at_ms)?;
    let count: u32 =
        change.query_row("SELECT count(*) FROM prompts WHERE folder = ?1", [&folder], |row| row.get(0))?;
    if count > MAX_PROMPTS + SLACK_PROMPTS {
        change.execute(
            "DELETE FROM prompts WHERE folder = ?1 AND id NOT IN
                (SELECT id FROM prompts WHERE folder = ?1 ORDER BY id DESC LIMIT ?2)",
            params![folder, MAX_PROMPTS],
        )?;
    }
    change.commit()
}

pub(super) fn insert_prompt(conn: &Connection, folder: &str, text: &str, at_ms: i64) -> rusqlite::Result<()> {
    conn.prepare_cached("INSERT INTO prompts (folder, text, at) VALUES (?1, ?2, ?3)")?
        .execute(params![folder, text, at_ms])?;
    Ok(())
}

/// Folders that were used before, latest first.
pub(super) fn all(conn: &Connection) -> rusqlite::Result<Vec<PathBuf>> {
    let mut query = conn.prepare_cached("SELECT folder FROM folders ORDER BY at DESC LIMIT 100")?;
    let rows = query.query_map([], |row| row.get::<_, String>(0))?;
    rows.map(|folder| folder.map(PathBuf::from)).collect()
}

/// The agent that was last used in a folder.
pub(super) fn agent(conn: &Connection, folder: &Path) -> rusqlite::Result<Option<String>> {
    conn.query_row("SELECT agent FROM folders WHERE folder = ?1", [folder.to_string_lossy()], |row| {
        row.get(0)
    })
    .optional()
}

/// Saves the agent of a folder.
pub(super) fn save_agent(
    conn: &mut Connection,
    folder: &str,
    agent: &str,
    at_ms: i64,
) -> rusqlite::Result<()> {
    let change = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
    insert_agent(&change, folder, agent, at_ms)?;
    change.execute(
        "DELETE FROM folders WHERE folder NOT IN (SELECT folder FROM folders ORDER BY at DESC LIMIT ?1)",
        [MAX_FOLDERS],
    )?;
    change.commit()
}

fn insert_agent(conn: &Connection, folder: &str, agent: &str, at_ms: i64) -> rusqlite::Result<()> {
    conn.execute(
        "INSERT INTO folders (folder, agent, at) VALUES (?1, ?2, ?3)
            ON CONFLICT (folder) DO UPDATE SET agent = excluded.agent, at = excluded.at",
        params![folder, agent, at_ms],
    )?;
    Ok(())
}

/// Begins the keys of agents that speak the draft of version 2.
const DRAFT_AGENT: &str = "draft agent: ";

/// The agents that speak the draft of version 2, by command line.
pub(super) fn draft_agents(conn: &Connection) -> rusqlite::Result<BTreeSet<String>> {
    let mut query = conn.prepare_cached("SELECT key FROM meta")?;
    let keys = query.query_map([], |row| row.get::<_, String>(0))?;
    let agents =
        keys.filter_map(|key| key.map(|key| Some(key.strip_prefix(DRAFT_AGENT)?.to_owned())).transpose());
    agents.collect()
}

pub(super) fn save_draft_agent(conn: &Connection, agent: &str, is_draft: bool) -> rusqlite::Result<()> {
    let key = format!("{DRAFT_AGENT}{agent}");
    if is_draft {
        conn.execute("INSERT OR REPLACE INTO meta (key, value) VALUES (?1, '')", [key])?;
    } else {
        conn.execute("DELETE FROM meta WHERE key = ?1", [key])?;
    }
    Ok(())
}
