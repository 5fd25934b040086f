//! Reads sessions in pages: the end of a session, other pages of it, and the list.
//!
//! A page ends where the recorder marked that the events after it do not refer to those before.
//! Invariant: the cost of a page does not depend on the length of the session or the number of sessions.

use rusqlite::{Connection, OptionalExtension as _, Params, params};

use super::rows::{self, SessionRow};
use super::{Fault, Store, StoreError, format, owner};
use crate::model::{EventPage, RecordedEvent, RecordedPage, RecordedSession, Subjects};

/// Minimum number of events with which a session is opened.
const MIN_EVENTS: i64 = 20;

/// Minimum number of events per page of a session that was recorded without marks.
const MIN_UNMARKED_EVENTS: i64 = 1000;

/// Limits of a preview.
const PREVIEW_EVENTS: u32 = 120;
const PREVIEW_BYTES: usize = 128 << 10;

/// Rows, and the position of the next page, if any.
pub type ListPage = (Vec<SessionRow>, Option<(i64, i64)>);

impl Store {
    /// The end of a session, or the page of an event, without opening it.
    pub fn peek(&self, uid: &str, at: Option<i64>) -> Result<(SessionRow, RecordedSession), StoreError> {
        self.with_faults(|conn| {
            let (id, row) = rows::existing(conn, uid)?;
            let kept = RecordedSession { open_in: self.open_in(&row), ..shown(conn, id, &row, at)? };
            Ok((row, kept))
        })
    }

    /// The row of a session.
    pub(super) fn row(&self, uid: &str) -> Result<SessionRow, StoreError> {
        self.with_faults(|conn| Ok(rows::existing(conn, uid)?.1))
    }

    /// The page of an event; empty if the session was deleted.
    pub fn page_of(&self, uid: &str, at: i64) -> Result<EventPage, StoreError> {
        self.with(|conn| {
            let Some((id, row)) = rows::by_uid(conn, uid)? else { return Ok(EventPage::default()) };
            let kept = shown(conn, id, &row, Some(at))?;
            let (next_seq, later_count) = kept.later.unwrap_or((kept.end_seq, 0));
            let RecordedSession { events, first_seq, mark, .. } = kept;
            Ok(EventPage { events, first_seq, next_seq, later_count, mark })
        })
    }

    /// All events of a range, including those of an incomplete history. Fails if there are none.
    pub fn between(&self, uid: &str, from: i64, before: i64) -> Result<EventPage, StoreError> {
        self.with_faults(|conn| {
            let (id, _) = rows::existing(conn, uid)?;
            let events = range(conn, id, from, before)?.events;
            if events.is_empty() {
                return Err(Fault::Other("that part of the session was deleted".to_owned()));
            }
            let (_, events) = marked(events, None);
            Ok(EventPage { events, first_seq: from, next_seq: before, ..EventPage::default() })
        })
    }

    /// The last few events of a session, for a preview.
    pub fn glance(&self, uid: &str) -> Result<RecordedSession, StoreError> {
        self.with_faults(|conn| {
            let (id, row) = rows::existing(conn, uid)?;
            let sql = "SELECT seq, at, turn, body FROM events WHERE session = ?1 AND seq >= ?2
                ORDER BY seq DESC LIMIT ?3";
            let begin = begin_of(conn, id)?;
            let mut events = found(conn, sql, params![id, begin, PREVIEW_EVENTS], PREVIEW_BYTES)?.events;
            events.reverse();
            let first = events.first().map_or(begin, |(seq, _)| *seq);
            let begins = events.iter().position(|(_, event)| format::begins_anew(&event.record));
            events.drain(..begins.filter(|_| first > begin).unwrap_or(0));
            let first = events.first().map_or(begin, |(seq, _)| *seq);
            let (_, events) = marked(with_late(conn, id, events, (first, i64::MAX))?, None);
            Ok(RecordedSession { events, ..row.to_kept() })
        })
    }

    /// A page of the list after a row, latest first, without subagents.
    pub fn list_page(&self, behind: Option<(i64, i64)>, limit: u32) -> Result<ListPage, StoreError> {
        self.with(|conn| {
            let (updated, id) = behind.unwrap_or((i64::MAX, i64::MAX));
            let mut query = conn.prepare_cached(
                "SELECT * FROM sessions WHERE NOT is_child AND (updated, id) < (?1, ?2)
                    ORDER BY updated DESC, id DESC LIMIT ?3",
            )?;
            let found = query.query_map(params![updated, id, limit], |row| {
                Ok((SessionRow::of(row)?, row.get::<_, i64>("id")?))
            })?;
            let found: Vec<(SessionRow, i64)> = found.collect::<Result<_, _>>()?;
            let is_full = found.len() >= limit as usize;
            let last = found.last().map(|(row, id)| (row.updated_ms, *id)).filter(|_| is_full);
            Ok((found.into_iter().map(|(row, _)| row).collect(), last))
        })
    }

    /// The starts of the last replies of these sessions; empty where there is none.
    pub(super) fn last_replies(&self, rows: &[SessionRow]) -> Result<Vec<String>, StoreError> {
        self.with(|conn| {
            let mut query = conn.prepare_cached(
                "SELECT substr(text, 1, 300) FROM docs
                    WHERE session = (SELECT id FROM sessions WHERE uid = ?1) AND kind = 'answer'
                    ORDER BY seq DESC LIMIT 1",
            )?;
            let reply = |row: &SessionRow| query.query_row([&row.uid], |row| row.get(0)).optional();
            rows.iter().map(reply).map(|reply| reply.map(Option::unwrap_or_default)).collect()
        })
    }

    /// The process of another parlor that has the session open; 0 if unknown.
    pub(super) fn open_in(&self, row: &SessionRow) -> Option<u32> {
        let token = row.owner.as_deref()?;
        let is_other = !self.is_own(token) && owner::is_alive(self.root(), token);
        is_other.then(|| owner::pid(token).unwrap_or(0))
    }
}

/// The page of an event, or the last pages if there is none.
pub(super) fn shown(
    conn: &Connection,
    id: i64,
    row: &SessionRow,
    at: Option<i64>,
) -> rusqlite::Result<RecordedSession> {
    let (begin, end) = (begin_of(conn, id)?, row.next_seq);
    let mut earlier = pages(conn, id, begin, end)?;
    let behind = |seq: i64| earlier.partition_point(|page| page.seq <= seq);
    // The last page may be short.
    let last = behind(end.saturating_sub(MIN_EVENTS)).max(earlier.len().saturating_sub(1)).max(1) - 1;
    let at = at.filter(|at| (begin..end).contains(at));
    let (start, stop) = match at {
        Some(at) if behind(at) <= last => (behind(at).max(1) - 1, behind(at)),
        _ => (last, earlier.len()),
    };
    let seq = |page: usize| earlier.get(page).map(|page| page.seq);
    let (first_seq, next) = (seq(start).unwrap_or(begin), seq(stop).unwrap_or(end));
    earlier.truncate(start);
    let Found { events, unreadable_count, .. } = range(conn, id, first_seq, next)?;
    let (mark, events) = marked(events, at);
    let came_from = row.came_from.as_deref().map(|uid| -> rusqlite::Result<_> {
        let name = rows::by_uid(conn, uid)?.map(|(_, row)| row.name().to_owned());
        Ok((uid.to_owned(), name.unwrap_or_default()))
    });
    Ok(RecordedSession {
        events,
        earlier,
        unreadable_count,
        first_seq,
        mark,
        later: (next < end).then(|| (next, next.abs_diff(end))),
        came_from: came_from.transpose()?,
        ..row.to_kept()
    })
}

/// Saves the pages of a session that was loaded: the last ones that were shown are one from now on.
pub(super) fn save(conn: &Connection, id: i64, kept: &RecordedSession) -> rusqlite::Result<()> {
    conn.prepare_cached("DELETE FROM pages WHERE session = ?1 AND seq > ?2")?
        .execute(params![id, kept.first_seq])?;
    let mut page =
        conn.prepare_cached("INSERT OR IGNORE INTO pages (session, seq, subjects) VALUES (?1, ?2, x'')")?;
    for seq in kept.earlier.iter().map(|page| page.seq).chain([kept.first_seq]) {
        page.execute(params![id, seq])?;
    }
    Ok(())
}

/// The pages of the events from `begin` to `end`. Events of older versions have no marks: their pages start with a turn.
fn pages(conn: &Connection, id: i64, begin: i64, end: i64) -> rusqlite::Result<Vec<RecordedPage>> {
    let mut pages = vec![RecordedPage { seq: begin, subjects: Subjects::default() }];
    // The event before `begin`, which replaced the earlier ones, may be the marked one.
    let marks = conn
        .prepare_cached(
            "SELECT seq, subjects FROM pages WHERE session = ?1 AND seq >= ?2 - 1 AND seq < ?3 ORDER BY seq",
        )?
        .query_map(params![id, begin, end], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<rusqlite::Result<Vec<(i64, Vec<u8>)>>>()?;
    let marked_from = marks.first().map_or(end, |(seq, _)| *seq);
    let mut turns = conn.prepare_cached(
        "SELECT min(seq) FROM events WHERE session = ?1 AND seq >= ?2 AND seq < ?3 GROUP BY turn ORDER BY 1",
    )?;
    let mut turns = turns.query(params![id, begin, marked_from])?;
    while let Some(turn) = turns.next()? {
        let seq = turn.get(0)?;
        if pages.last().is_some_and(|last| seq - last.seq >= MIN_UNMARKED_EVENTS) {
            pages.push(RecordedPage { seq, subjects: Subjects::default() });
        }
    }
    for (seq, subjects) in marks.into_iter().filter(|(seq, _)| *seq > begin) {
        if let Some(last) = pages.last_mut() {
            last.subjects = decode(&subjects);
        }
        pages.push(RecordedPage { seq, subjects: Subjects::default() });
    }
    Ok(pages)
}

/// The size of a subject on disk.
const SUBJECT_BYTES: usize = 12;

/// Encodes the subjects of a page.
pub(super) fn encode(subjects: &[(u64, u32)]) -> Vec<u8> {
    subjects
        .iter()
        .flat_map(|(hash, turn)| hash.to_le_bytes().into_iter().chain(turn.to_le_bytes()))
        .collect()
}

fn decode(bytes: &[u8]) -> Subjects {
    let subject = |bytes: &[u8; SUBJECT_BYTES]| {
        let [hash @ .., a, b, c, d] = *bytes;
        (u64::from_le_bytes(hash), u32::from_le_bytes([a, b, c, d]))
    };
    bytes.as_chunks().0.iter().map(subject).collect()
}

/// The events of a range, including those of an incomplete history.
fn range(conn: &Connection, id: i64, from: i64, before: i64) -> rusqlite::Result<Found> {
    let sql = "SELECT seq, at, turn, body FROM events WHERE session = ?1 AND seq >= ?2 AND seq < ?3
        UNION ALL SELECT seq, at, turn, body FROM staged WHERE session = ?1 AND seq >= ?2 AND seq < ?3
        ORDER BY seq";
    let found = found(conn, sql, params![id, from, before], usize::MAX)?;
    Ok(Found { events: with_late(conn, id, found.events, (from, before))?, ..found })
}

/// Events with their numbers.
pub(super) type Numbered = Vec<(i64, RecordedEvent)>;

/// The result of a query for events.
#[derive(Default)]
pub(super) struct Found {
    pub events: Numbered,
    pub unreadable_count: u64,
}

/// The events of a query, up to a size.
pub(super) fn found(
    conn: &Connection,
    sql: &str,
    params: impl Params,
    max_bytes: usize,
) -> rusqlite::Result<Found> {
    let mut query = conn.prepare_cached(sql)?;
    let mut rows = query.query(params)?;
    let mut found = Found::default();
    let mut bytes = 0;
    while let Some(row) = rows.next()? {
        let body = row.get_ref(3)?.as_str().unwrap_or_default();
        if bytes > 0 && bytes + body.len() > max_bytes {
            break;
        }
        bytes += body.len();
        let seq = row.get(0)?;
        match format::decode(body) {
            Some(record) => {
                found.events.push((seq, RecordedEvent { at_ms: row.get(1)?, turn: row.get(2)?, record }));
            }
            None => found.unreadable_count += 1,
        }
    }
    Ok(found)
}

/// Events of a range of numbers, merged with late events at their positions.
fn with_late(
    conn: &Connection,
    id: i64,
    mut events: Numbered,
    (from, before): (i64, i64),
) -> rusqlite::Result<Numbered> {
    let sql = "SELECT seq, at, turn, body FROM late WHERE session = ?1 AND seq >= ?2 AND seq < ?3 ORDER BY seq, nth";
    let late = found(conn, sql, params![id, from, before], usize::MAX)?.events;
    if !late.is_empty() {
        events.extend(late);
        // The sort is stable: the event itself comes before its late events.
        events.sort_by_key(|(seq, _)| *seq);
    }
    Ok(events)
}

/// The index of the event with this number, and the events without numbers.
fn marked(events: Numbered, at: Option<i64>) -> (Option<usize>, Vec<RecordedEvent>) {
    let mark = at.and_then(|at| events.iter().position(|(seq, _)| *seq == at));
    (mark, events.into_iter().map(|(_, event)| event).collect())
}

/// The number of the first valid event: events that the agent's history replaced are not shown.
fn begin_of(conn: &Connection, id: i64) -> rusqlite::Result<i64> {
    conn.prepare_cached(
        "SELECT coalesce((SELECT max(seq) + 1 FROM events WHERE session = ?1 AND kind = 'replaced'),
            (SELECT min(seq) FROM events WHERE session = ?1), 0)",
    )?
    .query_row([id], |row| row.get(0))
}
