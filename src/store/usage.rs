//! What turns and tool calls took and cost since a time.

use rusqlite::Connection;

use super::fault::StoreError;
use super::handle::Store;
use super::{format, rows};
use crate::model::{Record, Used};

/// What a turn or a call used, with its agent and its time in Unix milliseconds.
pub type UsedAt = (String, i64, Used);

impl Store {
    /// The turns of this user that ended at or after a time (Unix milliseconds), and their tool calls. Turns of imported
    /// sessions were made elsewhere, and those of subagents are part of another turn.
    pub fn usage(&self, since_ms: i64) -> Result<Vec<UsedAt>, StoreError> {
        let turns = self.with(|conn| turns(conn, since_ms))?;
        let calls = self.with(|conn| calls(conn, since_ms))?;
        let turns = self.noting_odd(turns).into_iter().flatten();
        Ok(turns.chain(self.noting_odd(calls)).collect())
    }

    /// What all agents used since a time.
    pub fn used_since(&self, since_ms: i64) -> Result<Used, StoreError> {
        let mut sum = Used::default();
        self.usage(since_ms)?.iter().for_each(|(_, _, used)| sum.add(used));
        Ok(sum)
    }
}

/// A fork has a copy of the turns before it: what has the same time is the same turn.
fn turns(conn: &Connection, since_ms: i64) -> rusqlite::Result<(Vec<Option<UsedAt>>, u64)> {
    let sql = "SELECT DISTINCT s.agent, l.at, l.body FROM sessions s JOIN log l ON l.session = s.id
        WHERE s.updated >= ?1 AND s.spool_of IS NULL AND NOT s.imported AND NOT s.is_child
            AND l.kind = 'turn_ended' AND l.at >= ?1";
    rows::readable(conn, sql, [since_ms], |row| {
        let (agent, at_ms, body): (String, i64, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
        Ok(match format::decode(&body) {
            Some(Record::TurnEnded(outcome)) => Some((agent, at_ms, Used::of_turn(&outcome))),
            _ => None,
        })
    })
}

/// The first row of each call, of subagents too.
fn calls(conn: &Connection, since_ms: i64) -> rusqlite::Result<(Vec<UsedAt>, u64)> {
    let sql = "SELECT DISTINCT agent, at, call FROM (
            SELECT s.agent AS agent, min(l.at) AS at, json_extract(l.body, '$.update.tool.id') AS call
                FROM sessions s JOIN log l ON l.session = s.id
                WHERE s.updated >= ?1 AND s.spool_of IS NULL AND NOT s.imported
                    AND l.kind = 'tool' AND json_valid(l.body)
                GROUP BY l.session, call
        ) WHERE at >= ?1";
    rows::readable(conn, sql, [since_ms], |row| Ok((row.get(0)?, row.get(1)?, Used::of_call())))
}
