//! Reads sessions in pages: the end of a session, the events before it, and the list.
//!
//! Invariant: the cost of a page does not depend on the length of the session or the number of sessions.

use rusqlite::{Connection, OptionalExtension as _, params};

use super::rows::{self, SessionRow};
use super::{Fault, Store, StoreError, db, format, owner};
use crate::model::{EarlierPage, Record, RecordedEvent, RecordedSession, Window};

/// Maximum number of events per page.
pub(super) const MAX_PAGE_EVENTS: u32 = 2000;

/// Maximum size of a page.
const MAX_PAGE_BYTES: usize = 4 << 20;

/// Rows, and the position of the next page, if any.
pub type ListPage = (Vec<SessionRow>, Option<(i64, i64)>);

/// Events of a session, read from the end.
#[derive(Debug, Default)]
struct EventPage {
    page: EarlierPage,
    mark: Option<usize>,
    unreadable_count: u64,
}

impl Store {
    /// The end of a session, or the events around one, without opening it.
    pub fn peek(&self, uid: &str, at: Option<i64>) -> Result<(SessionRow, RecordedSession), StoreError> {
        self.with_faults(|conn| {
            let sql = |error: rusqlite::Error| db::fault(&error);
            let found = rows::by_uid(conn, uid).map_err(sql)?;
            let Some((id, row)) = found else { return Err(Fault::NoSession(uid.to_owned())) };
            let mut kept = tail(conn, id, &row, at).map_err(sql)?;
            if let Some(at) = at.filter(|at| kept.mark.is_none() && *at < kept.first_seq) {
                let Window { events, mark, first_seq, left_out_count, next_seq, later_count } =
                    around(conn, id, at).map_err(sql)?;
                kept = RecordedSession {
                    events,
                    mark,
                    first_seq,
                    left_out_count,
                    later: (later_count > 0).then_some((next_seq, later_count)),
                    ..kept
                };
            }
            kept.open_in = self.open_in(&row);
            Ok((row, kept))
        })
    }

    /// The row of a session.
    pub(super) fn row(&self, uid: &str) -> Result<SessionRow, StoreError> {
        self.with_faults(|conn| {
            let found = rows::by_uid(conn, uid).map_err(|error| db::fault(&error))?;
            found.map(|(_, row)| row).ok_or_else(|| Fault::NoSession(uid.to_owned()))
        })
    }

    /// A page of events before an event.
    pub fn earlier(&self, uid: &str, before: i64) -> Result<EarlierPage, StoreError> {
        self.with(|conn| {
            let Some((id, _)) = rows::by_uid(conn, uid)? else { return Ok(EarlierPage::default()) };
            piece(conn, id, Some(before), None, MAX_PAGE_EVENTS, MAX_PAGE_BYTES).map(|piece| piece.page)
        })
    }

    /// All events of a range, including those of an incomplete history. Fails if there are none.
    pub fn between(&self, uid: &str, from: i64, before: i64) -> Result<EarlierPage, StoreError> {
        self.with_faults(|conn| {
            let sql = |error: rusqlite::Error| db::fault(&error);
            let found = rows::by_uid(conn, uid).map_err(sql)?;
            let Some((id, _)) = found else { return Err(Fault::NoSession(uid.to_owned())) };
            let mut query = conn
                .prepare_cached(
                    "SELECT seq, at, turn, body FROM events WHERE session = ?1 AND seq >= ?2 AND seq < ?3
                        UNION ALL SELECT seq, at, turn, body FROM staged
                            WHERE session = ?1 AND seq >= ?2 AND seq < ?3
                        ORDER BY seq",
                )
                .map_err(sql)?;
            let mut found = query.query(params![id, from, before]).map_err(sql)?;
            let mut events = Vec::new();
            while let Some(row) = found.next().map_err(sql)? {
                events.extend(event_of(row).map_err(sql)?);
            }
            if events.is_empty() {
                return Err(Fault::Other("that part of the session was deleted".to_owned()));
            }
            let events = with_late(conn, id, events, (from, before)).map_err(sql)?;
            let events = events.into_iter().map(|(_, event)| event).collect();
            Ok(EarlierPage { events, first_seq: from, left_out_count: 0 })
        })
    }

    /// A page of events from an event on.
    pub fn later(&self, uid: &str, from: i64) -> Result<Window, StoreError> {
        self.with(|conn| {
            let Some((id, _)) = rows::by_uid(conn, uid)? else { return Ok(Window::default()) };
            forth(conn, id, from, None)
        })
    }

    /// The events around an event.
    pub fn around(&self, uid: &str, at: i64) -> Result<Window, StoreError> {
        self.with(|conn| {
            let Some((id, _)) = rows::by_uid(conn, uid)? else { return Ok(Window::default()) };
            around(conn, id, at)
        })
    }

    /// The last few events of a session, for a preview.
    pub fn glance(&self, uid: &str) -> Result<RecordedSession, StoreError> {
        self.with_faults(|conn| {
            let sql = |error: rusqlite::Error| db::fault(&error);
            let found = rows::by_uid(conn, uid).map_err(sql)?;
            let Some((id, row)) = found else { return Err(Fault::NoSession(uid.to_owned())) };
            let last = piece(conn, id, None, None, 120, 128 << 10).map_err(sql)?;
            Ok(RecordedSession { events: last.page.events, ..row.to_kept() })
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

    /// The process of another parlor that has the session open; 0 if unknown.
    pub(super) fn open_in(&self, row: &SessionRow) -> Option<u32> {
        let token = row.owner.as_deref()?;
        let is_other = !self.is_own(token) && owner::is_alive(self.root(), token);
        is_other.then(|| owner::pid(token).unwrap_or(0))
    }
}

/// The end of a session: its last turns within the limits, at least the last events.
pub(super) fn tail(
    conn: &Connection,
    id: i64,
    row: &SessionRow,
    at: Option<i64>,
) -> rusqlite::Result<RecordedSession> {
    let EventPage { page, mark, unreadable_count } =
        piece(conn, id, None, at, MAX_PAGE_EVENTS, MAX_PAGE_BYTES)?;
    let came_from = row.came_from.as_deref().map(|uid| -> rusqlite::Result<_> {
        let name = rows::by_uid(conn, uid)?.map(|(_, row)| row.name().to_owned());
        Ok((uid.to_owned(), name.unwrap_or_default()))
    });
    Ok(RecordedSession {
        events: page.events,
        left_out_count: page.left_out_count,
        unreadable_count,
        first_seq: page.first_seq,
        mark,
        came_from: came_from.transpose()?,
        ..row.to_kept()
    })
}

/// Events before an event, or the last ones. If events are omitted, the page starts with a prompt if possible.
fn piece(
    conn: &Connection,
    id: i64,
    before: Option<i64>,
    at: Option<i64>,
    max_events: u32,
    max_bytes: usize,
) -> rusqlite::Result<EventPage> {
    let before = before.unwrap_or(i64::MAX);
    let begin = begin_before(conn, id, before)?;
    let mut query = conn.prepare_cached(
        "SELECT seq, at, turn, body FROM events WHERE session = ?1 AND seq < ?2 AND seq >= ?3
            ORDER BY seq DESC LIMIT ?4",
    )?;
    let mut rows = query.query(params![id, before, begin, max_events])?;
    let mut events = Vec::new();
    let mut unreadable_count = 0;
    let mut bytes = 0;
    let mut first_seq = None;
    let mut turn_begins_at = None;
    while let Some(row) = rows.next()? {
        let body = row.get_ref(3)?.as_str().unwrap_or_default();
        if bytes > 0 && bytes + body.len() > max_bytes {
            break;
        }
        bytes += body.len();
        let seq: i64 = row.get(0)?;
        first_seq = Some(seq);
        match event_of(row)? {
            Some((seq, event)) => {
                let is_prompt = matches!(event.record, Record::Prompt { .. });
                events.push((seq, event));
                if is_prompt {
                    turn_begins_at = Some((events.len(), seq));
                }
            }
            None => unreadable_count += 1,
        }
    }
    let mut left_out_count = 0;
    if let Some(first) = first_seq {
        left_out_count = count_between(conn, id, begin, first)?;
        // A message is not split either, unless that would omit too much.
        let last = |fits: fn(&Record) -> bool| {
            let count = events.iter().rposition(|(_, event)| fits(&event.record))? + 1;
            events.get(count - 1).map(|(seq, _)| (count, *seq)).filter(|_| count * 2 > events.len())
        };
        let begins_at = turn_begins_at
            .or_else(|| last(format::begins_anew))
            .or_else(|| last(|record| !format::is_chunk(record)));
        if let Some((count, seq)) = begins_at.filter(|_| left_out_count > 0) {
            events.truncate(count);
            first_seq = Some(seq);
            left_out_count = count_between(conn, id, begin, seq)?;
        }
    }
    events.reverse();
    let events = with_late(conn, id, events, (first_seq.unwrap_or(before), before))?;
    let (mark, events) = marked(events, at);
    let page = EarlierPage { events, first_seq: first_seq.unwrap_or(0), left_out_count };
    Ok(EventPage { page, mark, unreadable_count })
}

/// The events around an event: from the start of its turn, if that is near, to the end of a turn.
fn around(conn: &Connection, id: i64, at: i64) -> rusqlite::Result<Window> {
    let begin = begin_before(conn, id, at)?;
    let nearest = begin.max(at.saturating_sub(i64::from(MAX_PAGE_EVENTS / 2)));
    let prompt: Option<i64> = conn
        .prepare_cached(
            "SELECT seq FROM events WHERE session = ?1 AND seq <= ?2 AND seq >= ?3 AND kind = 'prompt'
                ORDER BY seq DESC LIMIT 1",
        )?
        .query_row(params![id, at, nearest], |row| row.get(0))
        .optional()?;
    let window = forth(conn, id, prompt.unwrap_or(nearest), Some(at))?;
    // The part of the turn before it may be too large.
    let mut window = if window.mark.is_some() { window } else { forth(conn, id, at, Some(at))? };
    window.left_out_count = count_between(conn, id, begin, window.first_seq)?;
    Ok(window)
}

/// A page of events from an event on, up to the end of a turn after `at` if there is one.
fn forth(conn: &Connection, id: i64, from: i64, at: Option<i64>) -> rusqlite::Result<Window> {
    let mut query = conn.prepare_cached(
        "SELECT seq, at, turn, body FROM events WHERE session = ?1 AND seq >= ?2 AND seq < ?3
            ORDER BY seq LIMIT ?4",
    )?;
    let end = end_behind(conn, id, from)?;
    let mut rows = query.query(params![id, from, end, MAX_PAGE_EVENTS])?;
    let mut window = Window { first_seq: from, next_seq: from, ..Window::default() };
    let mut bytes = 0;
    let mut events = Vec::new();
    let mut turn_ends_at = None;
    while let Some(row) = rows.next()? {
        let body = row.get_ref(3)?.as_str().unwrap_or_default();
        if bytes > 0 && bytes + body.len() > MAX_PAGE_BYTES {
            break;
        }
        bytes += body.len();
        let seq: i64 = row.get(0)?;
        if let Some((seq, event)) = event_of(row)? {
            if matches!(event.record, Record::Prompt { .. })
                && at.is_none_or(|at| at < seq)
                && !events.is_empty()
            {
                turn_ends_at = Some((events.len(), seq));
            }
            events.push((seq, event));
        }
        window.next_seq = seq + 1;
    }
    window.later_count = count_between(conn, id, window.next_seq, end)?;
    if let Some((count, seq)) = turn_ends_at.filter(|_| window.later_count > 0) {
        events.truncate(count);
        window.next_seq = seq;
        window.later_count = count_between(conn, id, seq, end)?;
    }
    let events = with_late(conn, id, events, (from, window.next_seq))?;
    (window.mark, window.events) = marked(events, at);
    Ok(window)
}

/// Decodes an event with its number.
fn event_of(row: &rusqlite::Row<'_>) -> rusqlite::Result<Option<(i64, RecordedEvent)>> {
    let Some(record) = format::decode(row.get_ref(3)?.as_str().unwrap_or_default()) else { return Ok(None) };
    Ok(Some((row.get(0)?, RecordedEvent { at_ms: row.get(1)?, turn: row.get(2)?, record })))
}

/// Events of a range of numbers, merged with late events at their positions.
fn with_late(
    conn: &Connection,
    id: i64,
    mut events: Vec<(i64, RecordedEvent)>,
    (from, before): (i64, i64),
) -> rusqlite::Result<Vec<(i64, RecordedEvent)>> {
    let mut query = conn.prepare_cached(
        "SELECT seq, at, turn, body FROM late WHERE session = ?1 AND seq >= ?2 AND seq < ?3 ORDER BY seq, nth",
    )?;
    let mut rows = query.query(params![id, from, before])?;
    let count = events.len();
    while let Some(row) = rows.next()? {
        events.extend(event_of(row)?);
    }
    if events.len() > count {
        // The sort is stable: the event itself comes before its late events.
        events.sort_by_key(|(seq, _)| *seq);
    }
    Ok(events)
}

/// The index of the event with this number, and the events without numbers.
fn marked(events: Vec<(i64, RecordedEvent)>, at: Option<i64>) -> (Option<usize>, Vec<RecordedEvent>) {
    let mark = at.and_then(|at| events.iter().position(|(seq, _)| *seq == at));
    (mark, events.into_iter().map(|(_, event)| event).collect())
}

/// The number of the first valid event before this one: events that the agent's history replaced are not shown.
fn begin_before(conn: &Connection, id: i64, before: i64) -> rusqlite::Result<i64> {
    conn.prepare_cached(
        "SELECT coalesce(max(seq) + 1, 0) FROM events WHERE session = ?1 AND kind = 'replaced' AND seq < ?2",
    )?
    .query_row(params![id, before], |row| row.get(0))
}

/// The number after the last event that is valid together with this one.
fn end_behind(conn: &Connection, id: i64, from: i64) -> rusqlite::Result<i64> {
    conn.prepare_cached(
        "SELECT coalesce(min(seq), (SELECT max(seq) + 1 FROM events WHERE session = ?1), 0)
            FROM events WHERE session = ?1 AND kind = 'replaced' AND seq >= ?2",
    )?
    .query_row(params![id, from], |row| row.get(0))
}

/// The number of events in a range. Numbers are consecutive, except in a copy of some turns, so no event is read.
fn count_between(conn: &Connection, id: i64, from: i64, to: i64) -> rusqlite::Result<u64> {
    let has_any: bool = conn
        .prepare_cached("SELECT EXISTS (SELECT 1 FROM events WHERE session = ?1 AND seq >= ?2 AND seq < ?3)")?
        .query_row(params![id, from, to], |row| row.get(0))?;
    Ok(if has_any { to.saturating_sub(from).max(0).cast_unsigned() } else { 0 })
}
