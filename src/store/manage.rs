//! Deletes, prunes and imports sessions.
//!
//! Invariant: a session that is open in a running parlor is not deleted.

use std::collections::HashMap;
use std::path::Path;

use rusqlite::{Connection, TransactionBehavior, params};

use super::fault::{Fault, StoreError};
use super::forget::REBUILD;
use super::handle::Store;
use super::read::ListFilter;
use super::rows::{self, SessionRow, SessionState};
use super::session_writer::{Track, new_uid};
use super::support::unix_ms;
use super::write::{self, Batch};
use super::{db, owner};
use crate::model::{Note, Record, RecordedEvent, SessionId};

/// The result of an import.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Imported {
    pub uid: String,
    /// Whether it existed with at least as many events; then nothing was changed.
    pub was_known: bool,
}

impl Store {
    pub fn delete(&self, uid: &str) -> Result<(), StoreError> {
        self.with_faults(|conn| {
            let change = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let (id, row) = rows::existing(&change, uid)?;
            if let Some(pid) = self.opened_by(&row) {
                return Err(Fault::InUse(Some(pid).filter(|pid| *pid != 0)));
            }
            leave_to_copy(&change, id, uid)?;
            rows::delete(&change, id)?;
            Ok(change.commit()?)
        })
    }

    /// Sets the title of a session, and returns the agent and its session id, if any, so that the agent can be
    /// informed. Fails while another parlor has it open.
    pub fn rename(&self, uid: &str, title: &str) -> Result<Option<(String, SessionId)>, StoreError> {
        self.with_faults(|conn| {
            let change = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let (id, row) = self.free_row(&change, uid)?;
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

    /// Moves the sessions of a folder that was renamed, with those of subagents, except those that are open in another
    /// parlor.
    pub fn move_folder(&self, from: &Path, to: &Path) -> Result<(), StoreError> {
        self.with_faults(|conn| {
            let change = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let sql = "SELECT * FROM sessions WHERE folder = ?1";
            let (rows, _) = rows::readable(&change, sql, [from.to_string_lossy()], SessionRow::of)?;
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

    /// Removes the rest of deleted data from the file, and returns its space to the disk; slow for a large file.
    pub fn compact(&self) -> Result<(), StoreError> {
        self.with_faults(|conn| {
            conn.execute_batch(REBUILD)?;
            // SQLite's log contains earlier contents.
            let is_busy: bool = conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
            if is_busy { Err(Fault::Busy) } else { Ok(()) }
        })
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
                spool_of: None,
                is_imported: true,
                ..row.clone()
            };
            let is_id = !row.uid.is_empty() && row.uid.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
            // On the command line, a short number is a place in the list.
            let is_number = row.uid.len() <= 3 && row.uid.bytes().all(|digit| digit.is_ascii_digit());
            if !is_id || is_number {
                row.uid = new_uid();
            }
            // Before a history that replaced the rest.
            let replaced = events.iter().rposition(|event| event.record == Record::Replaced);
            let (_, events) = events.split_at(replaced.map_or(0, |replaced| replaced + 1));
            if let Some((id, known)) = rows::by_uid(conn, &row.uid)? {
                let count: i64 =
                    conn.query_row("SELECT count(*) FROM log WHERE session = ?1", [id], |row| row.get(0))?;
                let is_same = known.created_ms == row.created_ms;
                if is_same && usize::try_from(count).unwrap_or(0) >= events.len() {
                    return Ok(Imported { uid: known.uid, was_known: true });
                }
                row.uid = new_uid();
            }
            let (created_ms, updated_ms) = (row.created_ms, row.updated_ms);
            // It is listed among the others by its time, which may be wrong.
            row.used = make_room(conn, updated_ms.min(unix_ms()))?;
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
                            FROM log WHERE session = s.id)
                        + 2 * (SELECT coalesce(sum(length(CAST(text AS BLOB)) + 40), 0)
                            FROM docs WHERE session = s.id)
                    FROM sessions s",
            )?;
            let sizes =
                query.query_map([], |row| Ok((row.get(0)?, row.get::<_, i64>(1)?.cast_unsigned())))?;
            sizes.filter(|size| !size.as_ref().is_err_and(db::is_odd)).collect()
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

    pub fn size_bytes(&self) -> u64 {
        db::files(&self.root().join(db::FILE))
            .iter()
            .filter_map(|path| path.metadata().ok())
            .map(|meta| meta.len())
            .sum()
    }
}

/// Makes room in the order of use after the sessions that were used until a time, and returns the place.
fn make_room(conn: &Connection, at_ms: i64) -> rusqlite::Result<i64> {
    let sql = "SELECT coalesce(max(used), 0) + 1 FROM sessions
        WHERE updated <= ?1 AND typeof(used) = 'integer'";
    let place: i64 = conn.query_row(sql, [at_ms], |row| row.get(0))?;
    conn.execute("UPDATE sessions SET used = used + 1 WHERE used >= ?1", [place])?;
    Ok(place)
}

/// Moves the search texts of a session to the copy that continues it.
fn leave_to_copy(conn: &Connection, id: i64, uid: &str) -> rusqlite::Result<()> {
    let sql = "SELECT id FROM sessions WHERE came_from = ?1 ORDER BY used DESC";
    for copy in rows::readable::<i64>(conn, sql, [uid], |row| row.get(0))?.0 {
        conn.prepare_cached(
            "UPDATE OR IGNORE docs SET session = ?2 WHERE session = ?1 AND EXISTS (
                SELECT 1 FROM log l WHERE l.session = ?2 AND l.seq = docs.seq AND l.at = docs.at)",
        )?
        .execute([id, copy])?;
    }
    Ok(())
}
