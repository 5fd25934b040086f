//! A batch of rows, written in one transaction.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use rusqlite::{Connection, OptionalExtension as _, TransactionBehavior, params};

use super::docs::{self, DocRow};
use super::rows::{self, SessionRow};
use crate::model::held::HeldFile;

/// Rows to write. A batch can wait and grow while the disk is full.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub sessions: BTreeMap<String, SessionRow>,
    /// Sessions that were used, the last one at the end.
    pub used: Vec<String>,
    /// Changes of the log, in order.
    pub changes: Vec<Change>,
    /// Search texts by session and first event; written after the changes.
    pub docs: BTreeMap<(String, i64), DocRow>,
}

/// A change of the log.
#[derive(Debug)]
pub(super) enum Change {
    Event(EventRow),
    /// A session starts as a copy of another one up to a turn, and before a number. The events are duplicated, so that
    /// both can be read, exported and deleted independently.
    Copy {
        from: String,
        to: String,
        turns: u32,
        below: i64,
    },
    /// The events of a session are replaced by those of a spool.
    Take {
        spool: String,
        to: String,
    },
    /// A spool became an ordinary session, which is searched.
    Keep(String),
    Drop(String),
    /// A file of a session is held with this text, or no longer.
    Held {
        uid: String,
        path: String,
        file: Option<HeldFile>,
    },
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct EventRow {
    pub uid: String,
    pub seq: i64,
    pub turn: u32,
    pub at_ms: i64,
    pub kind: &'static str,
    pub body: String,
}

impl EventRow {
    /// Adds the event to the log of a session.
    pub fn insert(&self, conn: &Connection, session: i64) -> rusqlite::Result<()> {
        conn.prepare_cached(
            "INSERT OR REPLACE INTO log (session, seq, turn, at, kind, body) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )?
        .execute(params![session, self.seq, self.turn, self.at_ms, self.kind, self.body])?;
        Ok(())
    }
}

impl Batch {
    pub fn is_empty(&self) -> bool {
        let Self { sessions, used, changes, docs } = self;
        sessions.is_empty() && used.is_empty() && changes.is_empty() && docs.is_empty()
    }

    pub fn event_bytes(&self) -> u64 {
        let bytes = |change: &Change| match change {
            Change::Event(event) => event.body.len() as u64,
            Change::Held { file: Some(file), .. } => file.size() as u64,
            _ => 0,
        };
        self.changes.iter().map(bytes).sum()
    }

    pub fn save(&mut self, row: &SessionRow) {
        match self.sessions.get_mut(&row.uid) {
            Some(known) => known.clone_from(row),
            None => {
                self.sessions.insert(row.uid.clone(), row.clone());
            }
        }
    }

    /// Marks a session as the one that was used last.
    pub fn note_use(&mut self, uid: &str) {
        self.used.retain(|known| known != uid);
        self.used.push(uid.to_owned());
    }

    /// Replaces the events of a session by those of a spool.
    pub fn take_spool(&mut self, spool: String, to: String) {
        self.docs.retain(|(uid, _), _| *uid != to);
        self.changes.push(Change::Take { spool, to });
    }

    pub fn drop_spool(&mut self, uid: &str) {
        self.sessions.remove(uid);
        self.changes.retain(|change| !matches!(change, Change::Event(event) if event.uid == uid));
        self.changes.push(Change::Drop(uid.to_owned()));
    }

    /// Removes the pending rows of turns that were deleted.
    pub fn forget(&mut self, uid: &str, turns: &Range<u32>) {
        let is_saved = |of: &str, turn: u32| of != uid || !turns.contains(&turn);
        self.changes.retain(|change| match change {
            Change::Event(event) => is_saved(&event.uid, event.turn),
            _ => true,
        });
        self.docs.retain(|(of, _), doc| is_saved(of, doc.turn));
    }
}

/// Writes the batch. Returns the deleted sessions, which were skipped.
pub(super) fn write(conn: &mut Connection, batch: &Batch) -> rusqlite::Result<BTreeSet<String>> {
    let change = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let mut ids: BTreeMap<&str, i64> = BTreeMap::new();
    let mut gone = BTreeSet::new();
    for (uid, row) in &batch.sessions {
        ids.insert(uid, row.save(&change)?);
    }
    for uid in &batch.used {
        let used = rows::next_use(&change)?;
        let sql = "UPDATE sessions SET used = ?2 WHERE uid = ?1 AND spool_of IS NULL";
        change.prepare_cached(sql)?.execute(params![uid, used])?;
    }
    for item in &batch.changes {
        match item {
            Change::Event(event) => match id_of(&change, &mut ids, &event.uid)? {
                Some(id) => event.insert(&change, id)?,
                None => {
                    gone.insert(event.uid.clone());
                }
            },
            Change::Copy { from, to, turns, below } => {
                let from = id_of(&change, &mut ids, from)?;
                let Some((from, to)) = from.zip(id_of(&change, &mut ids, to)?) else { continue };
                change.execute(
                    "INSERT OR IGNORE INTO log (session, seq, turn, at, kind, body)
                        SELECT ?2, seq, turn, at, kind, body FROM log WHERE session = ?1 AND turn <= ?3 AND seq < ?4",
                    params![from, to, turns, below],
                )?;
            }
            Change::Take { spool, to } => {
                let from = id_of(&change, &mut ids, spool)?;
                let Some((from, id)) = from.zip(id_of(&change, &mut ids, to)?) else { continue };
                change.execute("DELETE FROM docs WHERE session = ?1", [id])?;
                change.execute("DELETE FROM log WHERE session = ?1", [id])?;
                // The session gets the number of the spool, so that its events need not be written again.
                change.execute("DELETE FROM sessions WHERE id = ?1", [from])?;
                change.execute("UPDATE sessions SET id = ?2 WHERE id = ?1", [id, from])?;
                ids.remove(spool.as_str());
                ids.insert(to, from);
                docs::rebuild(&change, from, None)?;
            }
            Change::Keep(uid) => {
                let Some(id) = id_of(&change, &mut ids, uid)? else { continue };
                docs::rebuild(&change, id, None)?;
            }
            Change::Drop(uid) => {
                if let Some(id) = id_of(&change, &mut ids, uid)? {
                    rows::delete(&change, id)?;
                    ids.remove(uid.as_str());
                }
            }
            Change::Held { uid, path, file: None } => {
                change.execute("DELETE FROM held WHERE uid = ?1 AND path = ?2", [uid, path])?;
            }
            Change::Held { uid, path, file: Some(HeldFile { base, text }) } => {
                let base = base.as_ref().map(|base| base.peek());
                change.execute(
                    "INSERT OR REPLACE INTO held (uid, path, base, text)
                        SELECT uid, ?2, ?3, ?4 FROM sessions WHERE uid = ?1",
                    params![uid, path, base, text.peek()],
                )?;
            }
        }
    }
    for ((uid, seq), row) in &batch.docs {
        if let Some(id) = id_of(&change, &mut ids, uid)? {
            row.save(&change, id, *seq)?;
        }
    }
    change.commit()?;
    Ok(gone)
}

/// The number of a session; `None` if it was deleted or is not saved.
fn id_of<'a>(
    conn: &Connection,
    ids: &mut BTreeMap<&'a str, i64>,
    uid: &'a str,
) -> rusqlite::Result<Option<i64>> {
    if let Some(id) = ids.get(uid) {
        return Ok(Some(*id));
    }
    let mut query = conn.prepare_cached("SELECT id FROM sessions WHERE uid = ?1")?;
    let id = query.query_row([uid], |row| row.get(0)).optional()?;
    if let Some(id) = id {
        ids.insert(uid, id);
    }
    Ok(id)
}
