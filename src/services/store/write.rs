//! A batch of rows, written in one go or not at all.

use std::collections::BTreeMap;

use rusqlite::{Connection, TransactionBehavior, params};

use super::rows::{self, SessionRow};
use super::search::DocRow;

/// What is to be written. It can wait and grow while the disk is full.
#[derive(Debug, Default)]
pub(super) struct Batch {
    /// By id; only the newest form counts.
    pub sessions: BTreeMap<String, SessionRow>,
    pub events: Vec<EventRow>,
    /// By session and first event.
    pub docs: BTreeMap<(String, i64), DocRow>,
    /// Beginnings that sessions have from others.
    pub copies: Vec<CopyRow>,
    /// Where sessions begin anew: what was before is not found any more.
    pub replaced: BTreeMap<String, i64>,
}

/// The beginning of a session that is a copy of another one. Its events are written a second time: so each of the two
/// is read, exported and deleted by itself, and no look at one walks through others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CopyRow {
    pub from: String,
    pub to: String,
    /// Only the turns up to this one.
    pub turns: u32,
    /// Only events before this one.
    pub below: i64,
}

/// An event as it is written.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct EventRow {
    pub uid: String,
    pub seq: i64,
    pub turn: u32,
    pub at_ms: i64,
    pub kind: &'static str,
    pub body: String,
}

impl Batch {
    pub fn is_empty(&self) -> bool {
        let Self { sessions, events, docs, copies, replaced } = self;
        sessions.is_empty()
            && events.is_empty()
            && docs.is_empty()
            && copies.is_empty()
            && replaced.is_empty()
    }

    /// The session's newest form.
    pub fn save(&mut self, row: &SessionRow) {
        match self.sessions.get_mut(&row.uid) {
            Some(known) => known.clone_from(row),
            None => {
                self.sessions.insert(row.uid.clone(), row.clone());
            }
        }
    }
}

/// Writes all of it.
pub(super) fn write(conn: &mut Connection, batch: &Batch) -> rusqlite::Result<()> {
    let change = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let mut ids: BTreeMap<&str, i64> = BTreeMap::new();
    for (uid, row) in &batch.sessions {
        ids.insert(uid, row.save(&change)?);
    }
    {
        let mut event = change.prepare_cached(
            "INSERT OR REPLACE INTO events (session, seq, turn, at, kind, body) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )?;
        for row in &batch.events {
            let Some(id) = id_of(&change, &mut ids, &row.uid)? else { continue };
            event.execute(params![id, row.seq, row.turn, row.at_ms, row.kind, row.body])?;
        }
        let mut doc = change.prepare_cached(
            "INSERT INTO docs (session, seq, turn, at, kind, is_error, text) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
                ON CONFLICT (session, seq) DO UPDATE
                SET kind = excluded.kind, is_error = excluded.is_error, text = excluded.text",
        )?;
        for ((uid, seq), row) in &batch.docs {
            let Some(id) = id_of(&change, &mut ids, uid)? else { continue };
            doc.execute(params![id, seq, row.turn, row.at_ms, row.kind, row.is_error, row.text])?;
        }
        // Behind the events, for those of the source may have waited too.
        for CopyRow { from, to, turns, below } in &batch.copies {
            let (Some(from), Some(to)) = (id_of(&change, &mut ids, from)?, id_of(&change, &mut ids, to)?)
            else {
                continue;
            };
            change
                .prepare_cached(
                    "INSERT OR IGNORE INTO events (session, seq, turn, at, kind, body)
                        SELECT ?2, seq, turn, at, kind, body FROM events
                            WHERE session = ?1 AND turn <= ?3 AND seq < ?4 AND seq > coalesce(
                                (SELECT max(seq) FROM events
                                    WHERE session = ?1 AND kind = 'replaced' AND seq < ?4), -1)",
                )?
                .execute(params![from, to, turns, below])?;
        }
        for (uid, seq) in &batch.replaced {
            let Some(id) = id_of(&change, &mut ids, uid)? else { continue };
            change
                .prepare_cached("DELETE FROM docs WHERE session = ?1 AND seq < ?2")?
                .execute(params![id, seq])?;
        }
    }
    change.commit()
}

/// The session's number; `None` if it was deleted meanwhile (or is not worth a row): then so is all of it.
fn id_of<'a>(
    conn: &Connection,
    ids: &mut BTreeMap<&'a str, i64>,
    uid: &'a str,
) -> rusqlite::Result<Option<i64>> {
    if let Some(id) = ids.get(uid) {
        return Ok(Some(*id));
    }
    let id = rows::by_uid(conn, uid)?.map(|(id, _)| id);
    if let Some(id) = id {
        ids.insert(uid, id);
    }
    Ok(id)
}
