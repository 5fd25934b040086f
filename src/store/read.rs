//! Reads sessions: lists, the end of a session and the rest of it; closes sessions of dead parlors.
//!
//! Invariants: memory is bounded by a page of events, except for the last turn; an odd row hides only itself.

use std::path::{Path, PathBuf};

use rusqlite::{Connection, OptionalExtension as _, Params, TransactionBehavior, named_params, params};

use super::fault::{Fault, StoreError};
use super::handle::Store;
use super::rows::{self, SessionRow, SessionState, readable};
use super::search;
use super::support::unix_ms;
use super::write::EventRow;
use super::{db, format, orphan, owner};
use crate::lock::lock;
use crate::model::held::{HeldFile, HeldFiles};
use crate::model::{
    ArchiveHit, ArchiveSearch, Body, EventPage, Record, RecordedEvent, RecordedSession, TurnOutcome,
};
use crate::program::run_mark;

/// Minimum number of events with which a session is opened, and their size if more turns are included.
const MIN_EVENTS: usize = 40;
const MAX_END_BYTES: u64 = 256 << 10;

/// Size of a page of events.
const PAGE_BYTES: usize = 512 << 10;

const PREVIEW_EVENTS: u32 = 120;
const PREVIEW_BYTES: usize = 128 << 10;

/// Rows, and the position of the next page, if any.
pub type ListPage = (Vec<SessionRow>, Option<(i64, i64)>);

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
    /// Lists sessions, those that were used last first.
    pub fn list(&self, filter: &ListFilter) -> Result<Vec<SessionRow>, StoreError> {
        let sql = "SELECT * FROM listed
            WHERE (:folder IS NULL OR folder = :folder) AND (:agent IS NULL OR agent = :agent)
                AND (:children OR NOT is_child)
            ORDER BY used DESC, id DESC LIMIT :limit";
        let found = self.with_faults(|conn| {
            // A read-only file can still be read.
            match recover(self, conn) {
                Err(Fault::ReadOnly | Fault::Full | Fault::Refused(_) | Fault::Busy) | Ok(()) => {}
                Err(other) => return Err(other),
            }
            let params = named_params! {
                ":folder": filter.folder.as_ref().map(|folder| folder.to_string_lossy().into_owned()),
                ":agent": filter.agent,
                ":children": filter.with_children,
                ":limit": filter.limit.map_or(-1, i64::from),
            };
            Ok(readable(conn, sql, params, SessionRow::of)?)
        });
        Ok(self.noting_odd(found?))
    }

    /// A page of the list after a row, without subagents.
    pub fn list_page(&self, after: Option<(i64, i64)>, limit: u32) -> Result<ListPage, StoreError> {
        let sql = "SELECT * FROM listed WHERE NOT is_child AND (used, id) < (?1, ?2)
            ORDER BY used DESC, id DESC LIMIT ?3";
        let (used, id) = after.unwrap_or((i64::MAX, i64::MAX));
        let (mut last, mut count) = (None, 0);
        let found = self.with(|conn| {
            (last, count) = (None, 0);
            readable(conn, sql, params![used, id, limit], |row| {
                count += 1;
                last = Some((row.get("used")?, row.get("id")?));
                SessionRow::of(row)
            })
        })?;
        Ok((self.noting_odd(found), last.filter(|_| count >= limit)))
    }

    /// The number of sessions in all folders, without subagents.
    pub fn count(&self) -> Result<u64, StoreError> {
        let sql = "SELECT count(*) FROM listed WHERE NOT is_child";
        self.with(|conn| conn.query_row(sql, [], |row| row.get::<_, i64>(0))).map(i64::cast_unsigned)
    }

    /// The session whose id, or id of the agent, starts with a text.
    pub fn find(&self, id: &str) -> Result<SessionRow, StoreError> {
        let no_session = || Fault::NoSession(id.to_owned());
        let sql = "SELECT * FROM sessions WHERE spool_of IS NULL AND (substr(uid, 1, length(?1)) = ?1
            OR substr(agent_session, 1, length(?1)) = ?1) ORDER BY used DESC, id DESC LIMIT 50";
        self.with_faults(|conn| {
            if id.is_empty() {
                return Err(no_session());
            }
            let (found, _) = readable(conn, sql, [id], SessionRow::of)?;
            let exact = found.iter().find(|row| row.uid == id || row.agent_session.as_deref() == Some(id));
            match (exact, found.as_slice()) {
                (Some(row), _) | (None, [row]) => Ok(row.clone()),
                (None, []) => Err(no_session()),
                (None, _) => Err(Fault::Ambiguous(id.to_owned())),
            }
        })
    }

    /// All events of a session, oldest first, and how many could not be read.
    pub fn events(&self, uid: &str) -> Result<(Vec<RecordedEvent>, u64), StoreError> {
        let (events, unreadable_count) = self.with(|conn| log(conn, uid))?;
        Ok((events.into_iter().map(|(_, event)| event).collect(), unreadable_count))
    }

    /// Full-text search over all sessions.
    pub fn search(&self, search: &ArchiveSearch) -> Result<Vec<ArchiveHit>, StoreError> {
        let found = self.with(|conn| search::search(conn, search))?;
        Ok(self.noting_odd(found))
    }

    /// The end of a session, without opening it.
    pub fn peek(&self, uid: &str) -> Result<(SessionRow, RecordedSession), StoreError> {
        self.with_faults(|conn| {
            let (id, row) = rows::existing(conn, uid)?;
            let saved = RecordedSession { open_in: self.open_in(&row), ..end_of(conn, id, &row)? };
            Ok((row, saved))
        })
    }

    /// The last few events of a session, for a preview.
    pub fn glance(&self, uid: &str) -> Result<RecordedSession, StoreError> {
        self.with_faults(|conn| {
            let (id, row) = rows::existing(conn, uid)?;
            let sql = "SELECT seq, at, turn, body FROM log WHERE session = ?1 ORDER BY seq DESC LIMIT ?2";
            let Found { mut events, is_all, .. } =
                found(conn, sql, params![id, PREVIEW_EVENTS], PREVIEW_BYTES)?;
            let has_earlier = !is_all || events.len() >= PREVIEW_EVENTS as usize;
            events.reverse();
            let begins = events.iter().position(|(_, event)| format::begins_anew(&event.record));
            events.drain(..begins.filter(|_| has_earlier).unwrap_or(0));
            let events = events.into_iter().map(|(_, event)| event).collect();
            Ok(RecordedSession { events, ..row.to_saved() })
        })
    }

    /// The events of a session before a number, in pages. Memory is bounded by a page.
    pub(super) fn load(
        &self,
        uid: &str,
        before: i64,
        at: Option<i64>,
        report: &mut dyn FnMut(Result<EventPage, StoreError>),
    ) {
        let (mut from, mut at) = (i64::MIN, at.filter(|at| *at < before));
        loop {
            let page = self.with_faults(|conn| {
                let (id, _) = rows::existing(conn, uid)?;
                let sql = "SELECT seq, at, turn, body FROM log WHERE session = ?1 AND seq >= ?2 AND seq < ?3
                    ORDER BY seq";
                Ok(found(conn, sql, [id, from, before], PAGE_BYTES)?)
            });
            let is_end = match page {
                Ok(found) => {
                    let (end, is_last) = (found.next, found.is_all);
                    let page = found.page(at, is_last);
                    at = at.filter(|_| page.mark.is_none());
                    from = end;
                    report(Ok(page));
                    is_last
                }
                Err(error) => {
                    report(Err(error));
                    true
                }
            };
            if is_end {
                return;
            }
        }
    }

    pub(super) fn around(&self, uid: &str, at: i64) -> Result<EventPage, StoreError> {
        self.with_faults(|conn| {
            let (id, _) = rows::existing(conn, uid)?;
            let sql = "SELECT turn FROM log WHERE session = ?1 AND seq = ?2";
            let turn: Option<i64> = conn.query_row(sql, [id, at], |row| row.get(0)).optional()?;
            let Some(turn) = turn else { return Ok(EventPage { is_last: true, ..EventPage::default() }) };
            let sql = "SELECT seq, at, turn, body FROM log WHERE session = ?1
                AND seq > coalesce((SELECT seq FROM log WHERE session = ?1 AND seq < ?2 AND turn <> ?3
                    ORDER BY seq DESC LIMIT 1), -1)
                AND seq < coalesce((SELECT seq FROM log WHERE session = ?1 AND seq > ?2 AND turn <> ?3
                    ORDER BY seq LIMIT 1), ?4)
                ORDER BY seq";
            Ok(found(conn, sql, [id, at, turn, i64::MAX], usize::MAX)?.page(Some(at), true))
        })
    }

    pub(super) fn spool(&self, uid: &str, from: u32) -> Result<Vec<RecordedEvent>, StoreError> {
        self.with_faults(|conn| {
            let (id, _) = rows::existing(conn, uid)?;
            let sql = "SELECT seq, at, turn, body FROM log WHERE session = ?1 AND turn >= ?2 ORDER BY seq";
            let events = found(conn, sql, params![id, from], usize::MAX)?.events;
            Ok(events.into_iter().map(|(_, event)| event).collect())
        })
    }

    /// Opens a session to resume it, and returns its end. Fails if it is open in another parlor. An interrupted turn
    /// is marked, and a remaining agent of the dead parlor is ended. If the file cannot be written, the session is
    /// resumed anyway and saved when writing works again.
    pub fn reopen(&self, uid: &str) -> Result<RecordedSession, StoreError> {
        let (row, saved) = match self.take_written(uid) {
            Err(StoreError { fault: Fault::ReadOnly | Fault::Full | Fault::Refused(_), .. }) => {
                self.take_unwritten(uid)
            }
            other => other,
        }?;
        let mut reopened = lock(&self.inner.reopened);
        reopened.retain(|known| known.uid != row.uid);
        reopened.push(row);
        Ok(saved)
    }

    fn take_written(&self, uid: &str) -> Result<(SessionRow, RecordedSession), StoreError> {
        let token = self.owner()?.token.clone();
        self.with_faults(|conn| {
            let change = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let (id, mut row) = self.free_row(&change, uid)?;
            if row.owner.as_ref().is_some_and(|other| *other != token) {
                bury(&change, id, &mut row)?;
            }
            row.owner = Some(token.clone());
            row.save(&change)?;
            let saved = end_of(&change, id, &row)?;
            change.commit()?;
            Ok((row, saved))
        })
    }

    /// The same without a change of the file.
    fn take_unwritten(&self, uid: &str) -> Result<(SessionRow, RecordedSession), StoreError> {
        let token = lock(&self.inner.owner).as_ref().map(|owner| owner.token.clone());
        self.with_faults(|conn| {
            let (id, mut row) = self.free_row(conn, uid)?;
            let is_cut = row.owner.is_some() && row.owner != token && close_left(&mut row);
            row.owner.clone_from(&token);
            let mut saved = end_of(conn, id, &row)?;
            if is_cut {
                let record = Record::TurnEnded(TurnOutcome::Cut);
                saved.events.push(RecordedEvent { at_ms: row.updated_ms, turn: row.turn_count, record });
            }
            Ok((row, saved))
        })
    }

    /// A session that no other running parlor has open.
    pub(super) fn free_row(&self, conn: &Connection, uid: &str) -> Result<(i64, SessionRow), Fault> {
        let (id, row) = rows::existing(conn, uid)?;
        match self.open_in(&row) {
            Some(pid) => Err(Fault::InUse(Some(pid).filter(|pid| *pid != 0))),
            None => Ok((id, row)),
        }
    }

    /// The process of another parlor that has the session open; 0 if unknown.
    pub(super) fn open_in(&self, row: &SessionRow) -> Option<u32> {
        let token = row.owner.as_deref()?;
        let is_other = !self.is_own(token) && owner::is_alive(self.root(), token);
        is_other.then(|| owner::pid(token).unwrap_or(0))
    }

    /// The row that [`Self::reopen`] stored for the recorder.
    pub(super) fn take_reopened(&self, uid: &str) -> Option<SessionRow> {
        let mut reopened = lock(&self.inner.reopened);
        let index = reopened.iter().position(|row| row.uid == uid)?;
        Some(reopened.swap_remove(index))
    }

    /// The sessions to continue in a folder: those that were open in tabs beside the one that was used last in it, in
    /// the order of the tabs; otherwise that one. Those that are open in another parlor are returned separately.
    pub fn last_of(&self, folder: &Path) -> Result<(Vec<SessionRow>, Vec<SessionRow>), StoreError> {
        let of_folder = ListFilter { folder: Some(folder.to_owned()), ..ListFilter::default() };
        let mut away = Vec::new();
        let mut last = None;
        for row in self.list(&of_folder)? {
            if self.open_in(&row).is_some() {
                away.push(row);
            } else {
                last = Some(row);
                break;
            }
        }
        let Some(last) = last else { return Ok((Vec::new(), away)) };
        let sql = "SELECT * FROM listed WHERE run = ?1 AND tab IS NOT NULL AND NOT is_child ORDER BY tab, id";
        let tabs = self.noting_odd(self.with(|conn| readable(conn, sql, [&last.run], SessionRow::of))?);
        let (elsewhere, tabs): (Vec<_>, Vec<_>) =
            tabs.into_iter().partition(|row| self.open_in(row).is_some());
        let is_new = |row: &SessionRow| away.iter().all(|known| known.uid != row.uid);
        let elsewhere: Vec<_> = elsewhere.into_iter().filter(is_new).collect();
        away.extend(elsewhere);
        let is_here = tabs.iter().any(|row| row.folder == folder);
        Ok((if is_here { tabs } else { vec![last] }, away))
    }

    pub(super) fn row(&self, uid: &str) -> Result<SessionRow, StoreError> {
        self.with_faults(|conn| Ok(rows::existing(conn, uid)?.1))
    }

    /// The starts of the last replies of these sessions; empty where there is none.
    pub(super) fn last_replies(&self, rows: &[SessionRow]) -> Result<Vec<String>, StoreError> {
        self.with(|conn| {
            let mut query = conn.prepare_cached(
                "SELECT substr(text, 1, 300) FROM docs
                    WHERE session = (SELECT id FROM sessions WHERE uid = ?1) AND kind = 'answer'
                    ORDER BY seq DESC LIMIT 1",
            )?;
            let mut reply = |row: &SessionRow| match query.query_row([&row.uid], |row| row.get(0)).optional()
            {
                Err(error) if db::is_odd(&error) => Ok(None),
                other => other,
            };
            rows.iter().map(|row| Ok(reply(row)?.unwrap_or_default())).collect()
        })
    }
}

/// The last events of a session from the start of a turn.
fn end_of(conn: &Connection, id: i64, row: &SessionRow) -> rusqlite::Result<RecordedSession> {
    let (start, has_earlier) = start_of_end(conn, id)?;
    let sql = "SELECT seq, at, turn, body FROM log WHERE session = ?1 AND seq >= ?2 ORDER BY seq";
    let Found { events, unreadable_count, .. } = found(conn, sql, [id, start], usize::MAX)?;
    let came_from = row.came_from.as_deref().map(|uid| {
        let name = rows::by_uid(conn, uid).ok().flatten().map(|(_, row)| row.name().to_owned());
        (uid.to_owned(), name.unwrap_or_default())
    });
    let events = events.into_iter().map(|(_, event)| event).collect();
    let held = held(conn, &row.uid)?;
    Ok(RecordedSession { held, events, has_earlier, unreadable_count, came_from, ..row.to_saved() })
}

/// The held files of a session.
fn held(conn: &Connection, uid: &str) -> rusqlite::Result<HeldFiles> {
    let mut query = conn.prepare_cached("SELECT path, base, text FROM held WHERE uid = ?1")?;
    let rows = query.query_map([uid], |row| {
        let base = row.get::<_, Option<String>>(1)?.map(Body::from);
        Ok((row.get::<_, String>(0)?.into(), HeldFile { base, text: row.get::<_, String>(2)?.into() }))
    })?;
    rows.collect()
}

/// Where the end of a session starts: with as many turns as are needed for a screen, as long as they are small; and
/// whether there are events before it.
fn start_of_end(conn: &Connection, id: i64) -> rusqlite::Result<(i64, bool)> {
    let mut query = conn.prepare_cached(
        "SELECT seq, turn, octet_length(body) FROM log WHERE session = ?1 ORDER BY seq DESC",
    )?;
    let mut rows = query.query([id])?;
    let (mut count, mut bytes) = (0, 0_u64);
    // The first event of the turns so far, and that of all events so far with its turn.
    let mut start = None;
    let mut first: Option<(i64, i64)> = None;
    while let Some(row) = rows.next()? {
        let (seq, turn) = (row.get(0)?, row.get(1).unwrap_or(0));
        // Something that was added to an earlier turn later is no start of a turn.
        if let Some((first, _)) = first.filter(|(_, later)| turn < *later) {
            start = Some(first);
            if count >= MIN_EVENTS || bytes > MAX_END_BYTES {
                return Ok((first, true));
            }
        }
        count += 1;
        bytes += row.get::<_, i64>(2).map_or(0, i64::unsigned_abs);
        if let Some(start) = start.filter(|_| bytes > MAX_END_BYTES) {
            return Ok((start, true));
        }
        first = Some((seq, turn));
    }
    Ok((first.map_or(0, |(seq, _)| seq), false))
}

/// The result of a query for events.
#[derive(Default)]
struct Found {
    events: Vec<(i64, RecordedEvent)>,
    unreadable_count: u64,
    /// Whether these are all events of the query; otherwise the next one has the number `next`.
    is_all: bool,
    next: i64,
}

impl Found {
    /// Without the numbers, and with the index of an event.
    fn page(self, at: Option<i64>, is_last: bool) -> EventPage {
        let mark = at.and_then(|at| self.events.iter().position(|(seq, _)| *seq >= at));
        let events = self.events.into_iter().map(|(_, event)| event).collect();
        EventPage { events, mark, unreadable_count: self.unreadable_count, is_last }
    }
}

/// All events of a session with their numbers, and how many could not be read.
pub(super) fn log(conn: &Connection, uid: &str) -> rusqlite::Result<(Vec<(i64, RecordedEvent)>, u64)> {
    let sql = "SELECT seq, at, turn, body FROM log
        WHERE session = (SELECT id FROM sessions WHERE uid = ?1) ORDER BY seq";
    let found = found(conn, sql, [uid], usize::MAX)?;
    Ok((found.events, found.unreadable_count))
}

/// The events of a query, up to a size.
fn found(conn: &Connection, sql: &str, params: impl Params, max_bytes: usize) -> rusqlite::Result<Found> {
    let mut query = conn.prepare_cached(sql)?;
    let mut rows = query.query(params)?;
    let mut found = Found::default();
    let mut bytes = 0;
    while let Some(row) = rows.next()? {
        let seq = row.get(0)?;
        let body = row.get_ref(3)?.as_str().unwrap_or_default();
        if bytes > 0 && bytes + body.len() > max_bytes {
            found.next = seq;
            return Ok(found);
        }
        bytes += body.len();
        match (format::decode(body), row.get(1), row.get(2)) {
            (Some(record), Ok(at_ms), Ok(turn)) => {
                found.events.push((seq, RecordedEvent { at_ms, turn, record }));
            }
            _ => found.unreadable_count += 1,
        }
    }
    found.is_all = true;
    Ok(found)
}

/// Closes the sessions of dead parlors, and deletes their spools.
pub(super) fn recover(store: &Store, conn: &mut Connection) -> Result<(), Fault> {
    let sql = "SELECT DISTINCT owner FROM sessions WHERE owner IS NOT NULL";
    let (owners, _) = readable::<String>(conn, sql, [], |row| row.get(0))?;
    let is_dead = |token: &String| !store.is_own(token) && !owner::is_alive(store.root(), token);
    for token in owners.into_iter().filter(is_dead) {
        let change = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let sql = "SELECT * FROM sessions WHERE owner = ?1";
        for (id, mut row) in readable(&change, sql, [&token], rows::numbered)?.0 {
            if row.spool_of.is_some() {
                close_left(&mut row);
                rows::delete(&change, id)?;
            } else {
                bury(&change, id, &mut row)?;
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
    row.release();
    let is_cut = row.state == SessionState::Turn;
    if is_cut {
        row.state = SessionState::Cut;
    }
    is_cut
}

/// Marks a session of a dead parlor as closed and its open turn as interrupted.
fn bury(conn: &Connection, id: i64, row: &mut SessionRow) -> rusqlite::Result<()> {
    if close_left(row) {
        let sql = "SELECT coalesce(max(seq), -1) + 1 FROM log WHERE session = ?1";
        let end: i64 = conn.query_row(sql, [id], |row| row.get(0))?;
        let record = Record::TurnEnded(TurnOutcome::Cut);
        let event = EventRow {
            uid: row.uid.clone(),
            seq: row.next_seq.max(end),
            turn: row.turn_count,
            at_ms: unix_ms(),
            kind: format::kind(&record),
            body: format::encode(&record),
        };
        event.insert(conn, id)?;
        row.next_seq = event.seq + 1;
    }
    row.save(conn).map(drop)
}
