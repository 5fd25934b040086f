//! Deleting, pruning and importing sessions.
//!
//! Invariant: a session that a living parlor has open is not deleted.

use rusqlite::{Connection, TransactionBehavior, params};

use super::rows::{self, SessionRow, SessionState};
use super::track::{Track, new_uid};
use super::write::{self, Batch};
use super::{Fault, Store, StoreError, db, owner};
use crate::model::{KeptEvent, Note};

/// What came of an import.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Imported {
    /// The session's id here.
    pub uid: String,
    /// Whether it was here already, with at least as many events; then nothing was changed.
    pub was_known: bool,
}

impl Store {
    /// Deletes a session with all that belongs to it, for good.
    pub fn delete(&self, uid: &str) -> Result<(), StoreError> {
        self.with_faults(|conn| {
            let sql = |error: rusqlite::Error| db::fault(&error);
            let change = conn.transaction_with_behavior(TransactionBehavior::Immediate).map_err(sql)?;
            let Some((id, row)) = rows::by_uid(&change, uid).map_err(sql)? else {
                return Err(Fault::NoSession(uid.to_owned()));
            };
            if let Some(token) = row.owner.as_deref().filter(|token| owner::is_alive(self.root(), token)) {
                return Err(Fault::InUse(owner::pid(token)));
            }
            delete_rows(&change, id).map_err(sql)?;
            change.commit().map_err(sql)
        })
    }

    /// Gives a session a title of the user's own. Fails while another parlor has it open.
    pub fn rename(&self, uid: &str, title: &str) -> Result<(), StoreError> {
        self.with_faults(|conn| {
            let sql = |error: rusqlite::Error| db::fault(&error);
            let change = conn.transaction_with_behavior(TransactionBehavior::Immediate).map_err(sql)?;
            let Some((id, row)) = rows::by_uid(&change, uid).map_err(sql)? else {
                return Err(Fault::NoSession(uid.to_owned()));
            };
            if let Some(pid) = self.open_in(&row) {
                return Err(Fault::InUse(Some(pid).filter(|pid| *pid != 0)));
            }
            change
                .execute("UPDATE sessions SET title = ?2, own_title = 1 WHERE id = ?1", params![id, title])
                .map_err(sql)?;
            change.commit().map_err(sql)
        })
    }

    /// Gives the space of what was deleted back to the disk. Takes a while with a large file.
    pub fn compact(&self) -> Result<(), StoreError> {
        self.with(|conn| conn.execute_batch("VACUUM; PRAGMA wal_checkpoint(TRUNCATE);"))
    }

    /// Adds a session from elsewhere, with its id if that is free.
    pub fn import(&self, row: &SessionRow, events: &[KeptEvent]) -> Result<Imported, StoreError> {
        self.with_faults(|conn| {
            let sql = |error: rusqlite::Error| db::fault(&error);
            let mut row =
                SessionRow { next_seq: 0, owner: None, agent_pid: None, agent_born: None, ..row.clone() };
            let is_id = !row.uid.is_empty() && row.uid.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
            if !is_id {
                row.uid = new_uid();
            }
            if let Some((id, known)) = rows::by_uid(conn, &row.uid).map_err(sql)? {
                let count: i64 = conn
                    .query_row("SELECT count(*) FROM events WHERE session = ?1", [id], |row| row.get(0))
                    .map_err(sql)?;
                let is_same = known.created_ms == row.created_ms;
                if is_same && usize::try_from(count).unwrap_or(0) >= events.len() {
                    return Ok(Imported { uid: known.uid, was_known: true });
                }
                row.uid = new_uid();
            }
            let (created_ms, updated_ms) = (row.created_ms, row.updated_ms);
            let mut batch = Batch::default();
            let mut track = Track::new(Some(row), created_ms);
            for event in events {
                let note = Note::Event { turn: event.turn, record: Box::new(event.record.clone()) };
                track.take(note, event.at_ms, &mut batch);
            }
            track.row.updated_ms = updated_ms;
            // It was exported in the middle of a turn; here nothing runs.
            if track.row.state == SessionState::Turn {
                track.row.state = SessionState::Cut;
            }
            batch.save(&track.row);
            write::write(conn, &batch).map_err(sql)?;
            Ok(Imported { uid: track.row.uid, was_known: false })
        })
    }

    /// How many bytes the file takes on the disk.
    pub fn size_bytes(&self) -> u64 {
        db::files(self.root()).iter().filter_map(|path| path.metadata().ok()).map(|meta| meta.len()).sum()
    }
}

fn delete_rows(conn: &Connection, id: i64) -> rusqlite::Result<()> {
    conn.execute("DELETE FROM docs WHERE session = ?1", params![id])?;
    conn.execute("DELETE FROM events WHERE session = ?1", params![id])?;
    conn.execute("DELETE FROM sessions WHERE id = ?1", params![id])?;
    Ok(())
}
