//! What turns and tool calls took and cost since a time.

use std::collections::BTreeSet;

use rusqlite::Connection;

use super::fault::StoreError;
use super::handle::Store;
use super::{format, rows};
use crate::model::{Record, Used};

/// What a turn or a call used, with its agent and its time in Unix milliseconds.
pub type UsedAt = (String, i64, Used);

impl Store {
    /// The turns of this user that ended at or after a time (Unix milliseconds), and their tool calls, each once: a fork has a
    /// copy of the turns before it. Turns of imported sessions were made elsewhere, and those of subagents are part of
    /// another turn.
    pub fn usage(&self, since_ms: i64) -> Result<Vec<UsedAt>, StoreError> {
        let of_turn = |body: &str| match format::decode(body) {
            Some(Record::TurnEnded(outcome)) => Used::of_turn(&outcome),
            _ => Used::default(),
        };
        let turns = self.with(|conn| rows_of(conn, "l.body", "turn_ended", since_ms, of_turn))?;
        let turns = self.noting_odd(turns);
        let id = "json_extract(l.body, '$.update.tool.id')";
        let calls = self.with(|conn| rows_of(conn, id, "tool", since_ms, |_| Used::of_call()))?;
        // Each call counts with its first update.
        let mut known = BTreeSet::new();
        let mut calls = self.noting_odd(calls);
        calls.retain(|row| known.insert((row.turn.0, row.what.clone())));
        let ended: BTreeSet<_> = turns.iter().map(|row| row.turn).collect();
        let mut seen = BTreeSet::new();
        let all = turns.into_iter().chain(calls.into_iter().filter(|row| ended.contains(&row.turn)));
        let mut is_new = |row: &Row| seen.insert((row.agent.clone(), row.at_ms, row.what.clone()));
        Ok(all.filter(|row| is_new(row)).map(|row| (row.agent, row.at_ms, row.used)).collect())
    }

    /// What all agents used since a time.
    pub fn used_since(&self, since_ms: i64) -> Result<Used, StoreError> {
        let mut sum = Used::default();
        self.usage(since_ms)?.iter().for_each(|(_, _, used)| sum.add(used));
        Ok(sum)
    }
}

struct Row {
    /// The session and the number of the turn.
    turn: (i64, i64),
    agent: String,
    at_ms: i64,
    /// The turn's outcome as JSON, or the id of the call.
    what: String,
    used: Used,
}

fn rows_of(
    conn: &Connection,
    what: &str,
    kind: &str,
    since_ms: i64,
    used: impl Fn(&str) -> Used,
) -> rusqlite::Result<(Vec<Row>, u64)> {
    let sql = format!(
        "SELECT l.session, l.turn, s.agent, l.at, {what} FROM sessions s JOIN log l ON l.session = s.id
            WHERE s.updated >= ?1 AND s.spool_of IS NULL AND NOT s.imported AND NOT s.is_child
                AND l.kind = ?2 AND l.at >= ?1 AND json_valid(l.body)
            ORDER BY l.session, l.seq"
    );
    rows::readable(conn, &sql, rusqlite::params![since_ms, kind], |row| {
        let what: String = row.get(4)?;
        let turn = (row.get(0)?, row.get(1)?);
        Ok(Row { turn, agent: row.get(2)?, at_ms: row.get(3)?, used: used(&what), what })
    })
}
