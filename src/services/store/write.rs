//! A batch of rows, written in one transaction.

use std::collections::{BTreeMap, BTreeSet};

use rusqlite::{Connection, Transaction, TransactionBehavior, params};

use super::rows::{self, SessionRow};
use super::search::DocRow;

/// Rows to write. A batch can wait and grow while the disk is full.
#[derive(Debug, Default)]
pub(super) struct Batch {
    /// Session rows by id.
    pub sessions: BTreeMap<String, SessionRow>,
    pub events: Vec<EventRow>,
    /// Search texts by session and first event.
    pub docs: BTreeMap<(String, i64), DocRow>,
    /// Sessions to copy from others.
    pub copies: Vec<CopyRow>,
    /// Events that replace all earlier ones of a session in the search.
    pub replaced: BTreeMap<String, i64>,
    /// Late events of earlier items.
    pub late: Vec<LateRow>,
    pub pages: Vec<PageRow>,
    /// Histories that are complete or discarded; applied before all events.
    pub ended: Vec<EndedHistory>,
}

/// A session that starts as a copy of another one. The events are duplicated, so that both can be read, exported and
/// deleted independently.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CopyRow {
    pub from: String,
    pub to: String,
    /// Only the turns up to this one.
    pub turns: u32,
    /// Only events before this one.
    pub below: i64,
}

/// An event row.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct EventRow {
    pub uid: String,
    pub seq: i64,
    pub turn: u32,
    pub at_ms: i64,
    pub kind: &'static str,
    pub body: String,
    /// Whether it belongs to an incomplete history.
    pub is_staged: bool,
}

/// A late event, played after the event with its number.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct LateRow {
    pub uid: String,
    pub seq: i64,
    pub turn: u32,
    pub at_ms: i64,
    pub body: String,
    /// Its search text.
    pub doc: Option<DocRow>,
}

/// The start of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PageRow {
    pub uid: String,
    pub seq: i64,
    /// The encoded subjects of the page before.
    pub subjects: Vec<u8>,
}

/// The end of a staged history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct EndedHistory {
    pub uid: String,
    /// The number of its first event.
    pub from: i64,
    pub is_whole: bool,
}

impl Batch {
    /// Whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        let Self { sessions, events, docs, copies, replaced, late, pages, ended } = self;
        sessions.is_empty()
            && late.is_empty()
            && pages.is_empty()
            && ended.is_empty()
            && events.is_empty()
            && docs.is_empty()
            && copies.is_empty()
            && replaced.is_empty()
    }

    /// Completes or discards a history, including its pending events.
    pub fn end_history(&mut self, uid: &str, from: i64, is_whole: bool) {
        if is_whole {
            for event in self.events.iter_mut().filter(|event| event.uid == uid) {
                event.is_staged = false;
            }
            self.replaced.insert(uid.to_owned(), from);
        } else {
            self.events.retain(|event| event.uid != uid || !event.is_staged);
            self.late.retain(|late| late.uid != uid || late.seq < from);
            self.pages.retain(|page| page.uid != uid || page.seq < from);
            self.docs.retain(|(of, seq), _| of != uid || *seq < from);
        }
        self.ended.push(EndedHistory { uid: uid.to_owned(), from, is_whole });
    }

    /// Sets the row of a session.
    pub fn save(&mut self, row: &SessionRow) {
        match self.sessions.get_mut(&row.uid) {
            Some(known) => known.clone_from(row),
            None => {
                self.sessions.insert(row.uid.clone(), row.clone());
            }
        }
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
    for history in &batch.ended {
        if let Some(id) = id_of(&change, &mut ids, &history.uid)? {
            end_history(&change, id, history)?;
        }
    }
    {
        let mut event = change.prepare_cached(
            "INSERT OR REPLACE INTO events (session, seq, turn, at, kind, body) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )?;
        let mut staged = change.prepare_cached(
            "INSERT OR REPLACE INTO staged (session, seq, turn, at, kind, body) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )?;
        for row in &batch.events {
            let Some(id) = id_of(&change, &mut ids, &row.uid)? else {
                gone.insert(row.uid.clone());
                continue;
            };
            let table = if row.is_staged { &mut staged } else { &mut event };
            table.execute(params![id, row.seq, row.turn, row.at_ms, row.kind, row.body])?;
        }
        let mut late = change.prepare_cached(
            "INSERT INTO late (session, seq, nth, turn, at, body) VALUES (?1, ?2,
                (SELECT coalesce(max(nth), 0) + 1 FROM late WHERE session = ?1 AND seq = ?2), ?3, ?4, ?5)",
        )?;
        let mut late_docs = Vec::new();
        for row in &batch.late {
            let Some(id) = id_of(&change, &mut ids, &row.uid)? else { continue };
            late.execute(params![id, row.seq, row.turn, row.at_ms, row.body])?;
            late_docs.extend(row.doc.as_ref().map(|doc| (id, row.seq, doc)));
        }
        let mut page = change
            .prepare_cached("INSERT OR REPLACE INTO pages (session, seq, subjects) VALUES (?1, ?2, ?3)")?;
        for row in &batch.pages {
            let Some(id) = id_of(&change, &mut ids, &row.uid)? else { continue };
            page.execute(params![id, row.seq, row.subjects])?;
        }
        let mut doc = change.prepare_cached(
            "INSERT INTO docs (session, seq, turn, at, kind, is_error, text) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
                ON CONFLICT (session, seq) DO UPDATE
                SET kind = excluded.kind, is_error = excluded.is_error, text = excluded.text",
        )?;
        for ((uid, seq), row) in &batch.docs {
            let Some(id) = id_of(&change, &mut ids, uid)? else { continue };
            doc.execute(params![id, seq, row.turn, row.at_ms, row.kind, row.is_error, row.text])?;
        }
        // It has the number of the event after which it is played.
        let mut more = change.prepare_cached(
            "INSERT INTO docs (session, seq, turn, at, kind, is_error, text) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
                ON CONFLICT (session, seq) DO UPDATE SET text = text || char(10) || excluded.text",
        )?;
        for (id, seq, row) in late_docs {
            more.execute(params![id, seq, row.turn, row.at_ms, row.kind, row.is_error, row.text])?;
        }
        // After the events, because events of the source may be in the batch as well.
        for CopyRow { from, to, turns, below } in &batch.copies {
            let (Some(from), Some(to)) = (id_of(&change, &mut ids, from)?, id_of(&change, &mut ids, to)?)
            else {
                continue;
            };
            change
                .prepare_cached(
                    "INSERT OR IGNORE INTO events (session, seq, turn, at, kind, body)
                        SELECT ?2, seq, turn, at, kind, body FROM events
                            WHERE session = ?1 AND turn <= ?3 AND seq < ?4 AND seq > coalesce(
                                (SELECT max(seq) FROM events
                                    WHERE session = ?1 AND kind = 'replaced' AND seq < ?4), -1)",
                )?
                .execute(params![from, to, turns, below])?;
            change
                .prepare_cached(
                    "INSERT OR IGNORE INTO late (session, seq, nth, turn, at, body)
                        SELECT ?2, seq, nth, turn, at, body FROM late l
                            WHERE session = ?1 AND turn <= ?3
                                AND EXISTS (SELECT 1 FROM events WHERE session = ?2 AND seq = l.seq AND seq < ?4)",
                )?
                .execute(params![from, to, turns, below])?;
            change
                .prepare_cached(
                    "INSERT OR IGNORE INTO pages (session, seq, subjects)
                        SELECT ?2, seq, subjects FROM pages p
                            WHERE session = ?1 AND EXISTS (
                                SELECT 1 FROM events WHERE session = ?2 AND seq >= p.seq AND seq < ?3)",
                )?
                .execute(params![from, to, below])?;
        }
        for (uid, seq) in &batch.replaced {
            let Some(id) = id_of(&change, &mut ids, uid)? else { continue };
            change
                .prepare_cached("DELETE FROM docs WHERE session = ?1 AND seq < ?2")?
                .execute(params![id, seq])?;
        }
    }
    change.commit()?;
    Ok(gone)
}

fn end_history(change: &Transaction<'_>, id: i64, history: &EndedHistory) -> rusqlite::Result<()> {
    if history.is_whole {
        change.execute(
            "INSERT OR REPLACE INTO events (session, seq, turn, at, kind, body)
                SELECT session, seq, turn, at, kind, body FROM staged WHERE session = ?1",
            [id],
        )?;
        change.execute("DELETE FROM staged WHERE session = ?1", [id])?;
        return Ok(());
    }
    forget_staged(change, id, history.from)?;
    // Deletes the session if there was nothing before the history.
    change.execute(
        "DELETE FROM sessions WHERE id = ?1 AND draft = '' AND queue = '[]'
            AND NOT EXISTS (SELECT 1 FROM events WHERE session = ?1)",
        [id],
    )?;
    Ok(())
}

/// Discards an incomplete history.
pub(super) fn forget_staged(conn: &Connection, id: i64, from: i64) -> rusqlite::Result<()> {
    conn.execute("DELETE FROM staged WHERE session = ?1", [id])?;
    conn.execute("DELETE FROM late WHERE session = ?1 AND seq >= ?2", params![id, from])?;
    conn.execute("DELETE FROM pages WHERE session = ?1 AND seq >= ?2", params![id, from])?;
    conn.execute("DELETE FROM docs WHERE session = ?1 AND seq >= ?2", params![id, from])?;
    Ok(())
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
    let id = rows::by_uid(conn, uid)?.map(|(id, _)| id);
    if let Some(id) = id {
        ids.insert(uid, id);
    }
    Ok(id)
}
