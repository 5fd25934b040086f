//! Reads sessions: lists, complete sessions, and the end of a session to resume; closes sessions of dead parlors.

use std::path::{Path, PathBuf};

use rusqlite::{Connection, OptionalExtension as _, TransactionBehavior, named_params, params};

use super::pages::Found;
use super::rows::{self, SessionRow, SessionState};
use super::search::{self, Hit, Search};
use super::write::{self, EventRow};
use super::{Fault, Store, StoreError, format, locked, orphan, owner, pages, unix_ms};
use crate::model::{Record, RecordedEvent, RecordedSession, TurnOutcome};
use crate::program::run_mark;

/// Filter of the session list.
#[derive(Debug, Clone, Default)]
pub struct ListFilter {
    /// Only sessions of a folder.
    pub folder: Option<PathBuf>,
    /// Only sessions of an agent.
    pub agent: Option<String>,
    /// Include sessions of subagents.
    pub with_children: bool,
    /// Maximum number; `None`: all.
    pub limit: Option<u32>,
}

impl Store {
    /// Lists sessions, latest first.
    pub fn list(&self, filter: &ListFilter) -> Result<Vec<SessionRow>, StoreError> {
        self.with_faults(|conn| {
            // A read-only file can still be read.
            match recover(self, conn) {
                Err(Fault::ReadOnly | Fault::Full | Fault::Refused(_) | Fault::Busy) | Ok(()) => {}
                Err(other) => return Err(other),
            }
            Ok(list(conn, filter)?)
        })
    }

    /// The number of sessions in all folders, without subagents.
    pub fn count(&self) -> Result<u64, StoreError> {
        self.with(|conn| {
            conn.query_row("SELECT count(*) FROM sessions WHERE NOT is_child", [], |row| row.get::<_, i64>(0))
        })
        .map(i64::cast_unsigned)
    }

    /// The session whose id, or id of the agent, starts with a text.
    pub fn find(&self, id: &str) -> Result<SessionRow, StoreError> {
        self.with_faults(|conn| find(conn, id))
    }

    /// All events of a session, oldest first, and how many could not be read.
    pub fn events(&self, uid: &str) -> Result<(Vec<RecordedEvent>, u64), StoreError> {
        self.with(|conn| {
            let sql = "SELECT seq, at, turn, body, 0 AS nth FROM events
                    WHERE session = (SELECT id FROM sessions WHERE uid = ?1)
                UNION ALL SELECT seq, at, turn, body, nth FROM late
                    WHERE session = (SELECT id FROM sessions WHERE uid = ?1)
                ORDER BY seq, nth";
            let Found { events, unreadable_count, .. } = pages::found(conn, sql, [uid], usize::MAX)?;
            let events = events.into_iter().map(|(_, event)| event).collect();
            Ok((events, unreadable_count))
        })
    }

    /// Full-text search over all sessions.
    pub fn search(&self, search: &Search) -> Result<Vec<Hit>, StoreError> {
        self.with(|conn| search::search(conn, search))
    }

    /// Opens a session to resume it, and returns its end. Fails if it is open in another parlor. An interrupted turn
    /// is marked, and a remaining agent of the dead parlor is ended. If the file cannot be written, the session is
    /// resumed anyway and saved when writing works again.
    pub fn reopen(&self, uid: &str) -> Result<RecordedSession, StoreError> {
        let (row, kept) = match self.take_written(uid) {
            Err(StoreError { fault: Fault::ReadOnly | Fault::Full | Fault::Refused(_), .. }) => {
                self.take_unwritten(uid)
            }
            other => other,
        }?;
        let mut reopened = locked(&self.inner.reopened);
        reopened.retain(|known| known.uid != row.uid);
        reopened.push(row);
        Ok(kept)
    }

    fn take_written(&self, uid: &str) -> Result<(SessionRow, RecordedSession), StoreError> {
        let token = self.owner()?.token.clone();
        self.with_faults(|conn| {
            let change = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let (id, mut row) = self.free_row(&change, uid, Some(&token))?;
            if row.owner.as_ref().is_some_and(|other| *other != token) {
                bury(&change, id, &mut row)?;
            }
            row.owner = Some(token.clone());
            row.save(&change)?;
            let kept = pages::shown(&change, id, &row, None)?;
            pages::save(&change, id, &kept)?;
            change.commit()?;
            Ok((row, kept))
        })
    }

    /// The same without a change of the file.
    fn take_unwritten(&self, uid: &str) -> Result<(SessionRow, RecordedSession), StoreError> {
        let token = locked(&self.inner.owner).as_ref().map(|owner| owner.token.clone());
        self.with_faults(|conn| {
            let (id, mut row) = self.free_row(conn, uid, token.as_ref())?;
            let mut is_cut = false;
            if row.owner.is_some() && row.owner != token {
                is_cut = close_left(&mut row);
            }
            row.owner.clone_from(&token);
            let mut kept = pages::shown(conn, id, &row, None)?;
            if is_cut {
                let record = Record::TurnEnded(TurnOutcome::Cut);
                kept.events.push(RecordedEvent { at_ms: row.updated_ms, turn: row.turn_count, record });
            }
            Ok((row, kept))
        })
    }

    /// A session that no other running parlor has open.
    fn free_row(
        &self,
        conn: &Connection,
        uid: &str,
        token: Option<&String>,
    ) -> Result<(i64, SessionRow), Fault> {
        let (id, row) = rows::existing(conn, uid)?;
        match row.owner.as_ref().filter(|other| Some(*other) != token) {
            Some(other) if owner::is_alive(self.root(), other) => Err(Fault::InUse(owner::pid(other))),
            _ => Ok((id, row)),
        }
    }

    /// The row that [`Self::reopen`] stored for the recorder.
    pub(super) fn take_reopened(&self, uid: &str) -> Option<SessionRow> {
        let mut reopened = locked(&self.inner.reopened);
        let index = reopened.iter().position(|row| row.uid == uid)?;
        Some(reopened.swap_remove(index))
    }

    /// The sessions to continue in a folder: those that were open in tabs beside the one that was used last in this folder,
    /// in the order of the tabs; otherwise that one. Sessions that are open in another parlor are
    /// left out and returned separately, latest first.
    pub fn last_of(&self, folder: &Path) -> Result<(Vec<SessionRow>, Vec<SessionRow>), StoreError> {
        // Closes the sessions of dead parlors.
        self.list(&ListFilter { limit: Some(0), ..ListFilter::default() })?;
        let own = locked(&self.inner.owner).as_ref().map(|owner| owner.token.clone());
        let is_elsewhere = |row: &SessionRow| {
            row.owner
                .as_ref()
                .is_some_and(|other| own.as_ref() != Some(other) && owner::is_alive(self.root(), other))
        };
        self.with(|conn| {
            let mut query = conn.prepare_cached(
                "SELECT * FROM sessions WHERE folder = ?1 AND NOT is_child
                    ORDER BY updated DESC, opened DESC, id DESC",
            )?;
            let mut open_elsewhere = Vec::new();
            let (mut last, mut blank) = (None, None);
            for row in query.query_map([folder.to_string_lossy()], SessionRow::of)? {
                let row = row?;
                if is_elsewhere(&row) {
                    open_elsewhere.push(row);
                } else if row.is_blank() {
                    blank.get_or_insert(row);
                } else {
                    last = Some(row);
                    break;
                }
            }
            let Some(last) = last.or(blank) else { return Ok((Vec::new(), open_elsewhere)) };
            let mut query = conn.prepare_cached(
                "SELECT * FROM sessions WHERE run = ?1 AND tab IS NOT NULL AND NOT is_child ORDER BY tab, id",
            )?;
            let tabs: Vec<SessionRow> =
                query.query_map([&last.run], SessionRow::of)?.collect::<Result<_, _>>()?;
            let (away, tabs): (Vec<_>, Vec<_>) = tabs.into_iter().partition(is_elsewhere);
            let is_known = |row: &SessionRow| open_elsewhere.iter().any(|known| known.uid == row.uid);
            let away: Vec<_> = away.into_iter().filter(|row| !is_known(row)).collect();
            open_elsewhere.extend(away);
            let is_here = tabs.iter().any(|row| row.folder == folder);
            Ok((if is_here { tabs } else { vec![last] }, open_elsewhere))
        })
    }
}

fn list(conn: &Connection, filter: &ListFilter) -> rusqlite::Result<Vec<SessionRow>> {
    let mut query = conn.prepare_cached(
        "SELECT * FROM sessions
            WHERE (:folder IS NULL OR folder = :folder) AND (:agent IS NULL OR agent = :agent)
                AND (:children OR NOT is_child)
            ORDER BY updated DESC, id DESC LIMIT :limit",
    )?;
    let params = named_params! {
        ":folder": filter.folder.as_ref().map(|folder| folder.to_string_lossy().into_owned()),
        ":agent": filter.agent,
        ":children": filter.with_children,
        ":limit": filter.limit.map_or(-1, i64::from),
    };
    query.query_map(params, SessionRow::of)?.collect()
}

pub(super) fn find(conn: &Connection, id: &str) -> Result<SessionRow, Fault> {
    let no_session = || Fault::NoSession(id.to_owned());
    if id.is_empty() {
        return Err(no_session());
    }
    let mut query = conn.prepare_cached(
        "SELECT * FROM sessions WHERE substr(uid, 1, length(?1)) = ?1
                OR substr(agent_session, 1, length(?1)) = ?1 ORDER BY updated DESC LIMIT 50",
    )?;
    let found: Vec<SessionRow> = query.query_map([id], SessionRow::of)?.collect::<Result<_, _>>()?;
    let exact = found.iter().find(|row| row.uid == id || row.agent_session.as_deref() == Some(id));
    match (exact, found.as_slice()) {
        (Some(row), _) | (None, [row]) => Ok(row.clone()),
        (None, []) => Err(no_session()),
        (None, _) => Err(Fault::Ambiguous(id.to_owned())),
    }
}

/// Closes the sessions of dead parlors.
pub(super) fn recover(store: &Store, conn: &mut Connection) -> Result<(), Fault> {
    let owners: Vec<String> = conn
        .prepare_cached("SELECT DISTINCT owner FROM sessions WHERE owner IS NOT NULL")
        .and_then(|mut query| query.query_map([], |row| row.get(0))?.collect())?;
    let own = locked(&store.inner.owner).as_ref().map(|owner| owner.token.clone());
    let dead = owners.into_iter().filter(|token| own.as_ref() != Some(token));
    for token in dead.filter(|token| !owner::is_alive(store.root(), token)) {
        let change = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let left: Vec<(i64, SessionRow)> =
            change.prepare_cached("SELECT * FROM sessions WHERE owner = ?1").and_then(|mut query| {
                query.query_map([&token], |row| Ok((row.get("id")?, SessionRow::of(row)?)))?.collect()
            })?;
        for (id, mut row) in left {
            let had_part = bury(&change, id, &mut row)?;
            if had_part && row.next_seq == 0 && row.draft.is_empty() && row.queue.is_empty() {
                change.execute("DELETE FROM sessions WHERE id = ?1", [id])?;
            }
        }
        change.commit()?;
        if let Some(run) = owner::run(&token).filter(|run| *run != run_mark()) {
            orphan::end_commands(run);
        }
    }
    Ok(())
}

/// Ends the processes of a dead parlor's session; returns whether a turn was interrupted.
fn close_left(row: &mut SessionRow) -> bool {
    if let (Some(pid), Some(born)) = (row.agent_pid, row.agent_born) {
        orphan::end(pid, born, row.owner.as_deref().and_then(owner::pid));
    }
    row.owner = None;
    row.agent_pid = None;
    row.agent_born = None;
    let is_cut = row.state == SessionState::Turn;
    if is_cut {
        row.state = SessionState::Cut;
    }
    is_cut
}

/// Marks a session of a dead parlor as closed and its open turn as interrupted; returns whether a history was
/// incomplete.
fn bury(conn: &Connection, id: i64, row: &mut SessionRow) -> rusqlite::Result<bool> {
    let part: Option<i64> =
        conn.query_row("SELECT min(seq) FROM staged WHERE session = ?1", [id], |row| row.get(0))?;
    if let Some(from) = part {
        write::forget_staged(conn, id, from)?;
    }
    if close_left(row) {
        let last: Option<i64> = conn
            .query_row("SELECT max(seq) FROM events WHERE session = ?1", [id], |row| row.get(0))
            .optional()?
            .flatten();
        let record = Record::TurnEnded(TurnOutcome::Cut);
        let event = EventRow {
            uid: row.uid.clone(),
            seq: row.next_seq.max(last.map_or(0, |last| last + 1)),
            turn: row.turn_count,
            at_ms: unix_ms(),
            kind: format::kind(&record),
            body: format::encode(&record).0,
            is_staged: false,
        };
        conn.execute(
            "INSERT INTO events (session, seq, turn, at, kind, body) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            params![id, event.seq, event.turn, event.at_ms, event.kind, event.body],
        )?;
        row.next_seq = event.seq + 1;
    }
    row.save(conn).map(|_| part.is_some())
}
