//! Sessions piece by piece: the end of one, what came before that, and the list.
//!
//! Invariant: what a piece costs does not depend on how long the session is, nor on how many there are.

use rusqlite::{Connection, params};

use super::rows::{self, SessionRow};
use super::{Fault, Store, StoreError, db, format, owner};
use crate::model::{EarlierPage, KeptEvent, KeptSession, Record};

/// How many events are given at once.
pub(super) const MAX_PAGE_EVENTS: u32 = 2000;

/// How much text of them.
const MAX_PAGE_BYTES: usize = 4 << 20;

/// Rows, and what the next page comes behind; `None`: there is none.
pub type ListPage = (Vec<SessionRow>, Option<(i64, i64)>);

/// Events of a session, read from their end.
#[derive(Debug, Default)]
struct Piece {
    page: EarlierPage,
    unreadable_count: u64,
}

impl Store {
    /// The end of a session, without taking it.
    pub fn peek(&self, uid: &str, at: Option<i64>) -> Result<(SessionRow, KeptSession), StoreError> {
        self.with_faults(|conn| {
            let sql = |error: rusqlite::Error| db::fault(&error);
            let found = rows::by_uid(conn, uid).map_err(sql)?;
            let Some((id, row)) = found else { return Err(Fault::NoSession(uid.to_owned())) };
            let mut kept = tail(conn, id, &row, at).map_err(sql)?;
            kept.open_in = self.open_in(&row);
            Ok((row, kept))
        })
    }

    /// The events before one of a session, as many as a page holds; `at` is looked for among them.
    pub fn earlier(&self, uid: &str, before: i64, at: Option<i64>) -> Result<EarlierPage, StoreError> {
        self.with(|conn| {
            let Some((id, _)) = rows::by_uid(conn, uid)? else { return Ok(EarlierPage::default()) };
            piece(conn, id, Some(before), at, MAX_PAGE_EVENTS, MAX_PAGE_BYTES).map(|piece| piece.page)
        })
    }

    /// A few of a session's last events, for a look at it.
    pub fn glance(&self, uid: &str) -> Result<KeptSession, StoreError> {
        self.with_faults(|conn| {
            let sql = |error: rusqlite::Error| db::fault(&error);
            let found = rows::by_uid(conn, uid).map_err(sql)?;
            let Some((id, row)) = found else { return Err(Fault::NoSession(uid.to_owned())) };
            let last = piece(conn, id, None, None, 120, 128 << 10).map_err(sql)?;
            Ok(KeptSession { events: last.page.events, ..row.to_kept() })
        })
    }

    /// A page of the list, the latest first: what comes behind this row, without subagents.
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

    /// Another parlor that has the session open: its process, 0 if unknown.
    pub(super) fn open_in(&self, row: &SessionRow) -> Option<u32> {
        let token = row.owner.as_deref()?;
        let is_other = !self.is_own(token) && owner::is_alive(self.root(), token);
        is_other.then(|| owner::pid(token).unwrap_or(0))
    }
}

/// The session's end: its last turns as far as the bounds allow, at least the last events.
pub(super) fn tail(
    conn: &Connection,
    id: i64,
    row: &SessionRow,
    at: Option<i64>,
) -> rusqlite::Result<KeptSession> {
    let Piece { page, unreadable_count } = piece(conn, id, None, at, MAX_PAGE_EVENTS, MAX_PAGE_BYTES)?;
    let came_from = row.came_from.as_deref().map(|uid| -> rusqlite::Result<_> {
        let name = rows::by_uid(conn, uid)?.map(|(_, row)| row.name().to_owned());
        Ok((uid.to_owned(), name.unwrap_or_default()))
    });
    Ok(KeptSession {
        events: page.events,
        left_out_count: page.left_out_count,
        unreadable_count,
        first_seq: page.first_seq,
        mark: page.mark,
        came_from: came_from.transpose()?,
        ..row.to_kept()
    })
}

/// Events before one, or the last ones. They begin with a prompt if there is one and something is left out: a
/// beginning in the middle of a turn is only shown if there is no other.
fn piece(
    conn: &Connection,
    id: i64,
    before: Option<i64>,
    at: Option<i64>,
    max_events: u32,
    max_bytes: usize,
) -> rusqlite::Result<Piece> {
    let mut query = conn.prepare_cached(
        "SELECT seq, at, turn, kind, body FROM events WHERE session = ?1 AND seq < ?2
            ORDER BY seq DESC LIMIT ?3",
    )?;
    let mut rows = query.query(params![id, before.unwrap_or(i64::MAX), max_events])?;
    let mut events = Vec::new();
    let mut unreadable_count = 0;
    let mut bytes = 0;
    let mut first_seq = None;
    let mut turn_begins_at = None;
    let mut mark = None;
    let mut is_whole = false;
    while let Some(row) = rows.next()? {
        let body = row.get_ref(4)?.as_str().unwrap_or_default();
        if bytes > 0 && bytes + body.len() > max_bytes {
            break;
        }
        if row.get_ref(3)?.as_str().unwrap_or_default() == "replaced" {
            is_whole = true;
            break;
        }
        bytes += body.len();
        let seq: i64 = row.get(0)?;
        first_seq = Some(seq);
        match format::decode(body) {
            Some(record) => {
                let is_prompt = matches!(record, Record::Prompt { .. });
                events.push(KeptEvent { at_ms: row.get(1)?, turn: row.get(2)?, record });
                if is_prompt {
                    turn_begins_at = Some((events.len(), seq));
                }
            }
            None => unreadable_count += 1,
        }
        if at == Some(seq) {
            mark = events.len().checked_sub(1);
        }
    }
    let count_before = |seq: i64| -> rusqlite::Result<u64> {
        // What an agent's own history replaced is not shown any more.
        conn.prepare_cached(
            "SELECT count(*) FROM events WHERE session = ?1 AND seq < ?2 AND seq > coalesce(
                (SELECT max(seq) FROM events WHERE session = ?1 AND kind = 'replaced' AND seq < ?2), -1)",
        )?
        .query_row(params![id, seq], |row| row.get::<_, i64>(0))
        .map(i64::cast_unsigned)
    };
    let mut left_out_count = 0;
    if let Some(first) = first_seq.filter(|_| !is_whole) {
        left_out_count = count_before(first)?;
        if let Some((count, seq)) = turn_begins_at.filter(|_| left_out_count > 0) {
            events.truncate(count);
            mark = mark.filter(|mark| *mark < count);
            first_seq = Some(seq);
            left_out_count = count_before(seq)?;
        }
    }
    let mark = mark.map(|mark| events.len() - 1 - mark);
    events.reverse();
    let page = EarlierPage { events, first_seq: first_seq.unwrap_or(0), left_out_count, mark };
    Ok(Piece { page, unreadable_count })
}
