//! Data by folder: prompts, and the last agent. Also what is known of agents.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, TransactionBehavior, params};

use super::db;
use super::fault::StoreError;
use super::handle::Store;
use super::rows::readable;
use super::support::unix_ms;

/// Number of saved prompts per folder, and of additional ones before the oldest are deleted.
pub(super) const MAX_PROMPTS: u32 = 1000;
pub(super) const SLACK_PROMPTS: u32 = 200;

/// Maximum size of a saved prompt.
const MAX_PROMPT_BYTES: usize = 256 << 10;

/// Number of folders with a saved agent.
const MAX_FOLDERS: u32 = 1000;

/// Begins the keys of agents that speak the draft of version 2.
const DRAFT_AGENT: &str = "draft agent: ";

impl Store {
    /// The prompts of a folder, oldest first, at most 1000. Errors are reported by [`Self::take_problems`].
    pub fn history(&self, folder: &Path) -> Vec<String> {
        let sql = "SELECT text FROM prompts WHERE folder = ?1 ORDER BY id DESC LIMIT ?2";
        let params = params![folder.to_string_lossy(), MAX_PROMPTS];
        let found = self.with(|conn| readable(conn, sql, params, |row| row.get(0)));
        let mut texts: Vec<String> = self.value_or_report(found).unwrap_or_default().0;
        texts.reverse();
        texts
    }

    /// Adds a prompt to a folder's history. A repeated prompt is saved once; empty prompts and those over 256 KiB are
    /// not saved.
    pub fn append_prompt(&self, folder: &Path, text: &str) -> Result<(), StoreError> {
        if text.trim().is_empty() || text.len() > MAX_PROMPT_BYTES {
            return Ok(());
        }
        let folder = folder.to_string_lossy();
        self.with(|conn| {
            let change = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let sql = "SELECT coalesce((SELECT text FROM prompts WHERE folder = ?1 ORDER BY id DESC LIMIT 1) = ?2, 0)";
            if change.query_row(sql, [&folder, text], |row| row.get(0))? {
                return Ok(());
            }
            insert_prompt(&change, &folder, text, unix_ms())?;
            let sql = "SELECT count(*) FROM prompts WHERE folder = ?1";
            let count: u32 = change.query_row(sql, [&folder], |row| row.get(0))?;
            if count > MAX_PROMPTS + SLACK_PROMPTS {
                let sql = "DELETE FROM prompts WHERE folder = ?1 AND id NOT IN
                    (SELECT id FROM prompts WHERE folder = ?1 ORDER BY id DESC LIMIT ?2)";
                change.execute(sql, params![folder, MAX_PROMPTS])?;
            }
            change.commit()
        })
    }

    /// The drafts of all sessions, and their queued and stashed prompts as JSON.
    pub fn unsent_prompts(&self) -> Result<Vec<String>, StoreError> {
        let sql = "SELECT draft FROM sessions UNION ALL SELECT queue FROM sessions
            UNION ALL SELECT stash FROM sessions WHERE stash <> '[]'";
        Ok(self.with(|conn| readable(conn, sql, [], |row| row.get(0)))?.0)
    }

    /// The agent that was last used in a folder.
    pub fn agent_for(&self, folder: &Path) -> Option<String> {
        let sql = "SELECT agent FROM folders WHERE folder = ?1";
        let found = self.with(|conn| readable(conn, sql, [folder.to_string_lossy()], |row| row.get(0)));
        self.value_or_report(found)?.0.pop()
    }

    pub fn used_agents(&self) -> BTreeSet<String> {
        let sql = "SELECT DISTINCT agent FROM sessions WHERE turns > 0 AND NOT imported AND spool_of IS NULL";
        let found = self.with(|conn| readable(conn, sql, [], |row| row.get(0)));
        self.value_or_report(found).unwrap_or_default().0.into_iter().collect()
    }

    /// Folders that were used before, latest first, at most 100.
    pub fn folders(&self) -> Vec<PathBuf> {
        let sql = "SELECT folder FROM folders ORDER BY at DESC LIMIT 100";
        let found = self.with(|conn| readable(conn, sql, [], |row| Ok(row.get::<_, String>(0)?.into())));
        self.value_or_report(found).unwrap_or_default().0
    }

    /// Saves the agent of a folder, for the latest 1000 folders.
    pub fn save_agent(&self, folder: &Path, agent: &str) -> Result<(), StoreError> {
        self.with(|conn| {
            let change = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let sql = "INSERT OR REPLACE INTO folders (folder, agent, at) VALUES (?1, ?2, ?3)";
            change.execute(sql, params![folder.to_string_lossy(), agent, unix_ms()])?;
            let sql = "DELETE FROM folders WHERE folder NOT IN
                (SELECT folder FROM folders ORDER BY at DESC LIMIT ?1)";
            change.execute(sql, [MAX_FOLDERS])?;
            change.commit()
        })
    }

    /// The agents that spoke the draft of version 2 when they were last started, by command line.
    pub fn draft_agents(&self) -> BTreeSet<String> {
        // On the first start, the database is created after the first frame.
        if !self.root().join(db::FILE).exists() {
            return BTreeSet::new();
        }
        let sql = "SELECT substr(key, length(?1) + 1) FROM meta WHERE substr(key, 1, length(?1)) = ?1";
        let found = self.with(|conn| readable(conn, sql, [DRAFT_AGENT], |row| row.get(0)));
        self.value_or_report(found).unwrap_or_default().0.into_iter().collect()
    }

    /// Saves whether an agent speaks the draft of version 2.
    pub fn save_draft_agent(&self, agent: &str, is_draft: bool) -> Result<(), StoreError> {
        let sql = if is_draft {
            "INSERT OR REPLACE INTO meta (key, value) VALUES (?1, '')"
        } else {
            "DELETE FROM meta WHERE key = ?1"
        };
        self.with(|conn| conn.execute(sql, [format!("{DRAFT_AGENT}{agent}")]).map(drop))
    }
}

pub(super) fn insert_prompt(conn: &Connection, folder: &str, text: &str, at_ms: i64) -> rusqlite::Result<()> {
    let sql = "INSERT INTO prompts (folder, text, at) VALUES (?1, ?2, ?3)";
    conn.prepare_cached(sql)?.execute(params![folder, text, at_ms]).map(drop)
}
