//! Deletes, prunes and imports sessions.
//!
//! Invariant: a session that is open in a running parlor is not deleted.

use std::collections::HashMap;
use std::path::Path;

use rusqlite::{Connection, TransactionBehavior, params};

use super::rows::{self, SessionRow, SessionState};
use super::session_writer::{Track, new_uid};
use super::write::{self, Batch};
use super::{Fault, ListFilter, Store, StoreError, db, owner};
use crate::model::{Note, RecordedEvent, SessionId};

/// The result of an import.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Imported {
    /// The id of the imported session.
    pub uid: String,
    /// Whether it existed with at least as many events; then nothing was changed.
    pub was_known: bool,
}

impl Store {
    /// Permanently deletes a session.
    pub fn delete(&self, uid: &str) -> Result<(), StoreError> {
        self.with_faults(|conn| {
            let change = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let (id, row) = rows::existing(&change, uid)?;
            if let Some(token) = row.owner.as_deref().filter(|token| owner::is_alive(self.root(), token)) {
                return Err(Fault::InUse(owner::pid(token)));
            }
            leave_to_copy(&change, id, uid)?;
            delete_rows(&change, id)?;
            Ok(change.commit()?)
        })
    }

    /// Sets the title of a session, and returns the agent and its session id, if any, so that the agent can be
    /// informed. Fails while another parlor has it open.
    pub fn rename(&self, uid: &str, title: &str) -> Result<Option<(String, SessionId)>, StoreError> {
        self.with_faults(|conn| {
            let change = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let (id, row) = rows::existing(&change, uid)?;
            if let Some(pid) = self.open_in(&row) {
                return Err(Fault::InUse(Some(pid).filter(|pid| *pid != 0)));
            }
            change
                .prepare_cached("UPDATE sessions SET title = ?2, own_title = 1, owes_title = 1 WHERE id = ?1")
                .and_then(|mut query| query.execute(params![id, title]))?;
            change.commit()?;
            let SessionRow { agent, agent_session, .. } = row;
            Ok(agent_session.map(|id| (agent, id.as_str().into())))
        })
    }

    /// The number of sessions that [`Self::move_folder`] would move.
    pub fn movable(&self, folder: &Path) -> Result<usize, StoreError> {
        let of_folder = ListFilter { folder: Some(folder.to_owned()), ..ListFilter::default() };
        Ok(self.list(&of_folder)?.iter().filter(|row| self.open_in(row).is_none()).count())
    }

    /// Moves the sessions of a folder that was renamed, with those of subagents. Those that are open in another parlor stay.
    pub fn move_folder(&self, from: &Path, to: &Path) -> Result<(), StoreError> {
        self.with_faults(|conn| {
            let change = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let rows: Vec<SessionRow> = change
                .prepare_cached("SELECT * FROM sessions WHERE folder = ?1")?
                .query_map([from.to_string_lossy()], SessionRow::of)?
                .collect::<Result<_, _>>()?;
            for row in rows.iter().filter(|row| self.open_in(row).is_none()) {
                change.execute(
                    "UPDATE sessions SET folder = ?2 WHERE uid = ?1",
                    params![row.uid, to.to_string_lossy()],
                )?;
            }
            Ok(change.commit()?)
        })
    }

    /// Records that the agent has this title, if it is still the current one.
    pub fn note_title_known(&self, uid: &str, title: &str) -> Result<(), StoreError> {
        self.with(|conn| {
            conn.prepare_cached("UPDATE sessions SET owes_title = 0 WHERE uid = ?1 AND title = ?2")?
                .execute(params![uid, title])
                .map(|_| ())
        })
    }

    /// Returns the space of deleted data to the disk; slow for a large file.
    pub fn compact(&self) -> Result<(), StoreError> {
        self.with(|conn| conn.execute_batch("VACUUM; PRAGMA wal_checkpoint(TRUNCATE);"))
    }

    /// Adds an imported session, with its id if that is free. Its program, arguments and roots are ignored.
    pub fn import(&self, row: &SessionRow, events: &[RecordedEvent]) -> Result<Imported, StoreError> {
        self.with_faults(|conn| {
            let mut row = SessionRow {
                next_seq: 0,
                owner: None,
                agent_pid: None,
                agent_born: None,
                run: None,
                tab: None,
                is_imported: true,
                ..row.clone()
            };
            let is_id = !row.uid.is_empty() && row.uid.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
            // On the command line, a short number is a place in the list.
            let is_number = row.uid.len() <= 3 && row.uid.bytes().all(|digit| digit.is_ascii_digit());
            if !is_id || is_number {
                row.uid = new_uid();
            }
            if let Some((id, known)) = rows::by_uid(conn, &row.uid)? {
                let count: i64 =
                    conn.query_row("SELECT count(*) FROM events WHERE session = ?1", [id], |row| row.get(0))?;
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
            // It may have been exported during a turn.
            if track.row.state == SessionState::Turn {
                track.row.state = SessionState::Cut;
            }
            batch.save(&track.row);
            write::write(conn, &batch)?;
            Ok(Imported { uid: track.row.uid, was_known: false })
        })
    }

    /// The approximate size of each session in bytes. Reads all of them.
    pub fn sizes(&self) -> Result<HashMap<String, u64>, StoreError> {
        self.with(|conn| {
            // Search texts are stored a second time, with their index; each row has an overhead.
            let mut query = conn.prepare_cached(
                "SELECT s.uid, (SELECT coalesce(sum(length(CAST(body AS BLOB)) + 40), 0)
                            FROM events WHERE session = s.id)
                        + 2 * (SELECT coalesce(sum(length(CAST(text AS BLOB)) + 40), 0)
                            FROM docs WHERE session = s.id)
                    FROM sessions s",
            )?;
            query.query_map([], |row| Ok((row.get(0)?, row.get::<_, i64>(1)?.cast_unsigned())))?.collect()
        })
    }

    /// Size of the file after compaction.
    pub fn used_bytes(&self) -> Result<u64, StoreError> {
        self.with(|conn| {
            let number = |name| conn.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
            let pages = number("page_count")?.saturating_sub(number("freelist_count")?);
            Ok(pages.saturating_mul(number("page_size")?).cast_unsigned())
        })
    }

    /// The process that has a session open, possibly this one; 0 if unknown.
    pub fn opened_by(&self, row: &SessionRow) -> Option<u32> {
        let token = row.owner.as_deref().filter(|token| owner::is_alive(self.root(), token))?;
        Some(owner::pid(token).unwrap_or(0))
    }

    /// Size of the file on the disk.
    pub fn size_bytes(&self) -> u64 {
        db::files(self.root()).iter().filter_map(|path| path.metadata().ok()).map(|meta| meta.len()).sum()
    }
}

/// Moves the search texts of a session to the copy that continues it.
fn leave_to_copy(conn: &Connection, id: i64, uid: &str) -> rusqlite::Result<()> {
    let copies: Vec<i64> = conn
        .prepare_cached("SELECT id FROM sessions WHERE came_from = ?1 ORDER BY updated DESC")?
        .query_map([uid], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    for copy in copies {
        conn.prepare_cached(
            "UPDATE OR IGNORE docs SET session = ?2 WHERE session = ?1 AND EXISTS (
                SELECT 1 FROM events e WHERE e.session = ?2 AND e.seq = docs.seq AND e.at = docs.at)",
        )?
        .execute(params![id, copy])?;
    }
    Ok(())
}

fn delete_rows(conn: &Connection, id: i64) -> rusqlite::Result<()> {
    conn.execute("DELETE FROM docs WHERE session = ?1", params![id])?;
    conn.execute("DELETE FROM events WHERE session = ?1", params![id])?;
    conn.execute("DELETE FROM late WHERE session = ?1", params![id])?;
    conn.execute("DELETE FROM staged WHERE session = ?1", params![id])?;
    conn.execute("DELETE FROM pages WHERE session = ?1", params![id])?;
    conn.execute("DELETE FROM sessions WHERE id = ?1", params![id])?;
    Ok(())
}
