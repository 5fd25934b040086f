//! Reads sessions in pages: the end of a session, the events before it, and the list.
//!
//! Invariant: the cost of a page does not depend on the length of the session or the number of sessions.

use rusqlite::{Connection, OptionalExtension as _, Params, params};

use super::rows::{self, SessionRow};
use super::{Fault, Store, StoreError, format, owner};
use crate::model::{EventPage, Record, RecordedEvent, RecordedSession};

/// Maximum number of events per page.
pub(super) const MAX_PAGE_EVENTS: u32 = 2000;

/// Maximum size of a page.
const MAX_PAGE_BYTES: usize = 4 << 20;

/// Rows, and the position of the next page, if any.
pub type ListPage = (Vec<SessionRow>, Option<(i64, i64)>);

impl Store {
    /// The end of a session, or the events around one, without opening it.
    pub fn peek(&self, uid: &str, at: Option<i64>) -> Result<(SessionRow, RecordedSession), StoreError> {
        self.with_faults(|conn| {
            let (id, row) = rows::existing(conn, uid)?;
            let mut kept = tail(conn, id, &row, at)?;
            if let Some(at) = at.filter(|at| kept.mark.is_none() && *at < kept.first_seq) {
                let page = around(conn, id, at)?;
                kept = RecordedSession {
                    events: page.events,
                    mark: page.mark,
                    first_seq: page.first_seq,
                    left_out_count: page.left_out_count,
                    later: (page.later_count > 0).then_some((page.next_seq, page.later_count)),
                    ..kept
                };
            }
            kept.open_in = self.open_in(&row);
            Ok((row, kept))
        })
    }

    /// The row of a session.
    pub(super) fn row(&self, uid: &str) -> Result<SessionRow, StoreError> {
        self.with_faults(|conn| Ok(rows::existing(conn, uid)?.1))
    }

    /// A page of events before an event.
    pub fn earlier(&self, uid: &str, before: i64) -> Result<EventPage, StoreError> {
        self.page_of(uid, |conn, id| piece(conn, id, before, None, MAX_PAGE_EVENTS, MAX_PAGE_BYTES))
    }

    /// A page of events from an event on.
    pub fn later(&self, uid: &str, from: i64) -> Result<EventPage, StoreError> {
        self.page_of(uid, |conn, id| forth(conn, id, from, None))
    }

    /// The events around an event.
    pub fn around(&self, uid: &str, at: i64) -> Result<EventPage, StoreError> {
        self.page_of(uid, |conn, id| around(conn, id, at))
    }

    /// A page of a session; empty if that was deleted.
    fn page_of(
        &self,
        uid: &str,
        read: impl Fn(&Connection, i64) -> rusqlite::Result<EventPage>,
    ) -> Result<EventPage, StoreError> {
        self.with(|conn| match rows::by_uid(conn, uid)? {
            Some((id, _)) => read(conn, id),
            None => Ok(EventPage::default()),
        })
    }

    /// All events of a range, including those of an incomplete history. Fails if there are none.
    pub fn between(&self, uid: &str, from: i64, before: i64) -> Result<EventPage, StoreError> {
        self.with_faults(|conn| {
            let (id, _) = rows::existing(conn, uid)?;
            let sql = "SELECT seq, at, turn, body FROM events WHERE session = ?1 AND seq >= ?2 AND seq < ?3
                UNION ALL SELECT seq, at, turn, body FROM staged WHERE session = ?1 AND seq >= ?2 AND seq < ?3
                ORDER BY seq";
            let Found { events, .. } = found(conn, sql, params![id, from, before], usize::MAX)?;
            if events.is_empty() {
                return Err(Fault::Other("that part of the session was deleted".to_owned()));
            }
            let events = with_late(conn, id, events, (from, before))?;
            let (_, events) = marked(events, None);
            Ok(EventPage { events, first_seq: from, next_seq: before, ..EventPage::default() })
        })
    }

    /// The last few events of a session, for a preview.
    pub fn glance(&self, uid: &str) -> Result<RecordedSession, StoreError> {
        self.with_faults(|conn| {
            let (id, row) = rows::existing(conn, uid)?;
            let last = piece(conn, id, i64::MAX, None, 120, 128 << 10)?;
            Ok(RecordedSession { events: last.events, ..row.to_kept() })
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

/// The end of a session: its last turns within the limits, at least the last events.
pub(super) fn tail(
    conn: &Connection,
    id: i64,
    row: &SessionRow,
    at: Option<i64>,
) -> rusqlite::Result<RecordedSession> {
    let page = piece(conn, id, i64::MAX, at, MAX_PAGE_EVENTS, MAX_PAGE_BYTES)?;
    let came_from = row.came_from.as_deref().map(|uid| -> rusqlite::Result<_> {
        let name = rows::by_uid(conn, uid)?.map(|(_, row)| row.name().to_owned());
        Ok((uid.to_owned(), name.unwrap_or_default()))
    });
    Ok(RecordedSession {
        events: page.events,
        left_out_count: page.left_out_count,
        unreadable_count: page.unreadable_count,
        first_seq: page.first_seq,
        mark: page.mark,
        came_from: came_from.transpose()?,
        ..row.to_kept()
    })
}

/// Events with their numbers.
pub(super) type Numbered = Vec<(i64, RecordedEvent)>;

/// The result of a query for events.
#[derive(Default)]
pub(super) struct Found {
    pub events: Numbered,
    /// The number of the last row.
    last: Option<i64>,
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
        found.last = Some(seq);
        match format::decode(body) {
            Some(record) => {
                found.events.push((seq, RecordedEvent { at_ms: row.get(1)?, turn: row.get(2)?, record }));
            }
            None => found.unreadable_count += 1,
        }
    }
    Ok(found)
}

fn is_prompt(record: &Record) -> bool {
    matches!(record, Record::Prompt { .. })
}

/// Events before an event. If events are omitted, the page starts with a prompt if possible.
fn piece(
    conn: &Connection,
    id: i64,
    before: i64,
    at: Option<i64>,
    max_events: u32,
    max_bytes: usize,
) -> rusqlite::Result<EventPage> {
    let begin = begin_before(conn, id, before)?;
    let sql = "SELECT seq, at, turn, body FROM events WHERE session = ?1 AND seq < ?2 AND seq >= ?3
        ORDER BY seq DESC LIMIT ?4";
    let Found { mut events, last: mut first_seq, unreadable_count } =
        found(conn, sql, params![id, before, begin, max_events], max_bytes)?;
    let mut left_out_count = 0;
    if let Some(first) = first_seq {
        left_out_count = count_between(conn, id, begin, first)?;
        let first_of = |fits: fn(&Record) -> bool| events.iter().rposition(|(_, event)| fits(&event.record));
        // A message is not split either, unless that would omit too much.
        let is_most = |at: &usize| (at + 1) * 2 > events.len();
        let begins_at = first_of(is_prompt)
            .or_else(|| first_of(format::begins_anew).filter(is_most))
            .or_else(|| first_of(|record| !format::is_chunk(record)).filter(is_most))
            .and_then(|at| events.get(at).map(|(seq, _)| (at, *seq)));
        if let Some((at, seq)) = begins_at.filter(|_| left_out_count > 0) {
            events.truncate(at + 1);
            first_seq = Some(seq);
            left_out_count = count_between(conn, id, begin, seq)?;
        }
    }
    events.reverse();
    let events = with_late(conn, id, events, (first_seq.unwrap_or(before), before))?;
    let (mark, events) = marked(events, at);
    let first_seq = first_seq.unwrap_or(0);
    let page =
        EventPage { events, first_seq, left_out_count, unreadable_count, mark, ..EventPage::default() };
    Ok(EventPage { next_seq: before, ..page })
}

/// The events around an event: from the start of its turn, if that is near, to the end of a turn.
fn around(conn: &Connection, id: i64, at: i64) -> rusqlite::Result<EventPage> {
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
fn forth(conn: &Connection, id: i64, from: i64, at: Option<i64>) -> rusqlite::Result<EventPage> {
    let end = end_behind(conn, id, from)?;
    let sql = "SELECT seq, at, turn, body FROM events WHERE session = ?1 AND seq >= ?2 AND seq < ?3
        ORDER BY seq LIMIT ?4";
    let Found { mut events, last, unreadable_count } =
        found(conn, sql, params![id, from, end, MAX_PAGE_EVENTS], MAX_PAGE_BYTES)?;
    let mut next_seq = last.map_or(from, |last| last + 1);
    let mut later_count = count_between(conn, id, next_seq, end)?;
    let begins_turn =
        |(seq, event): &(i64, RecordedEvent)| is_prompt(&event.record) && at.is_none_or(|at| at < *seq);
    let turn_ends = events.iter().rposition(begins_turn).filter(|count| *count > 0 && later_count > 0);
    if let Some((count, seq)) = turn_ends.and_then(|count| Some((count, events.get(count)?.0))) {
        events.truncate(count);
        next_seq = seq;
        later_count = count_between(conn, id, seq, end)?;
    }
    let (mark, events) = marked(with_late(conn, id, events, (from, next_seq))?, at);
    Ok(EventPage {
        events,
        first_seq: from,
        left_out_count: 0,
        next_seq,
        later_count,
        unreadable_count,
        mark,
    })
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
