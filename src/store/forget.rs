//! Deletes turns and texts for good: from the log, the index, the free pages and SQLite's log of the file, and from
//! old files that are kept.
//!
//! Invariant: a session that is open in another parlor is not changed; then nothing is.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use rusqlite::{Connection, OptionalExtension as _, TransactionBehavior, params};
use serde_json::Value;

use super::fault::{Fault, StoreError};
use super::handle::{Forgotten, Store};
use super::rows::{SessionRow, readable};
use super::session_writer::prompt_start;
use super::{db, docs, format};
use crate::lock::lock;
use crate::model::{MessageId, Record, Role};

/// What takes the place of a deleted text.
const REMOVED: &str = "[removed]";

/// Where a text occurs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TextUses {
    /// Number of rows: events, sessions and prompts of folders, also in old files that are kept.
    pub row_count: usize,
    pub sessions: BTreeSet<String>,
}

/// Whether what has a text is counted or changed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    Count,
    Remove,
}

impl Store {
    /// Deletes turns of a session, with their search texts and the prompts of the folder that they were sent with. The
    /// numbers of other turns stay as they are.
    pub fn forget_turns(&self, uid: &str, turns: Range<u32>) -> Result<(), StoreError> {
        let first_prompt = self.with_faults(|conn| {
            let change = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let (id, row) = self.free_row(&change, uid)?;
            forget_turns_in(&change, "log", &row.uid, &turns)?;
            let first_prompt = first_prompt(&change, "log", id)?;
            let sql = "UPDATE sessions SET first_prompt = ?2 WHERE id = ?1";
            change.execute(sql, params![id, first_prompt])?;
            change.commit()?;
            Ok(first_prompt)
        })?;
        let forgotten = Forgotten::Turns { turns: turns.clone(), first_prompt };
        lock(&self.inner.forgotten).push((uid.to_owned(), forgotten));
        self.in_former_files(Purpose::Remove, |conn| {
            forget_turns_in(conn, "events", uid, &turns)?;
            forget_turns_in(conn, "late", uid, &turns)?;
            forget_turns_in(conn, "staged", uid, &turns)
        })?;
        self.compact()
    }

    pub fn find_text(&self, text: &str, uid: Option<&str>) -> Result<TextUses, StoreError> {
        let (mut uses, _) = self.in_database(text, uid, Purpose::Count)?;
        uses.row_count += self.in_former(text, uid, Purpose::Count)?;
        Ok(uses)
    }

    /// Deletes a text wherever it occurs, in all sessions or in one: in events it is replaced by a mark. Returns the
    /// number of changed rows.
    pub fn forget_text(&self, text: &str, uid: Option<&str>) -> Result<usize, StoreError> {
        if text.trim().is_empty() {
            return Ok(0);
        }
        let (uses, mut forgotten) = self.in_database(text, uid, Purpose::Remove)?;
        forgotten.push((uid.unwrap_or_default().to_owned(), Forgotten::Text(text.to_owned())));
        lock(&self.inner.forgotten).append(&mut forgotten);
        let in_former = self.in_former(text, uid, Purpose::Remove)?;
        self.compact()?;
        Ok(uses.row_count + in_former)
    }

    /// Removes a text from the database; to count, the change is taken back.
    fn in_database(
        &self,
        text: &str,
        uid: Option<&str>,
        purpose: Purpose,
    ) -> Result<(TextUses, Vec<(String, Forgotten)>), StoreError> {
        let secret = Secret::new(text);
        self.with_faults(|conn| {
            let change = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let (mut uses, mut forgotten) = (TextUses::default(), Vec::new());
            let sql = "SELECT id FROM sessions WHERE ?1 IS NULL OR uid = ?1 OR spool_of = ?1";
            let (ids, _) = readable::<i64>(&change, sql, [uid], |row| row.get(0))?;
            for id in ids {
                let (changed, turns) = secret.remove_from_log(&change, "log", id)?;
                let changed_row =
                    secret.remove_from_row(&change, id)? + secret.remove_from_held(&change, id)?;
                if changed + changed_row == 0 {
                    continue;
                }
                let sql = "SELECT * FROM sessions WHERE id = ?1";
                let (row, _) = change.query_row(sql, [id], SessionRow::salvaged)?;
                if purpose == Purpose::Remove
                    && let Some(pid) = self.open_in(&row)
                {
                    return Err(Fault::InUse(Some(pid).filter(|pid| *pid != 0)));
                }
                uses.sessions.insert(row.spool_of.clone().unwrap_or_else(|| row.uid.clone()));
                if changed > 0 {
                    docs::rebuild(&change, id, Some(&turns))?;
                    let first_prompt = renew_first_prompt(&change, "log", id)?;
                    forgotten.push((row.uid, Forgotten::Turns { turns: 0..0, first_prompt }));
                }
                uses.row_count += changed + changed_row;
            }
            uses.row_count += secret.remove_from_others(&change, uid)?;
            if purpose == Purpose::Remove {
                change.commit()?;
            }
            Ok((uses, forgotten))
        })
    }

    /// Removes a text from the old files that are kept; to count, the change is taken back.
    fn in_former(&self, text: &str, uid: Option<&str>, purpose: Purpose) -> Result<usize, StoreError> {
        let (secret, mut count) = (Secret::new(text), 0);
        self.in_former_files(purpose, |conn| {
            let sql = "SELECT id FROM sessions WHERE ?1 IS NULL OR uid = ?1";
            let (ids, _) = readable::<i64>(conn, sql, [uid], |row| row.get(0))?;
            for id in ids {
                let changed = secret.remove_from_log(conn, "events", id)?.0
                    + secret.delete_from(conn, "late", id)?
                    + secret.delete_from(conn, "staged", id)?;
                if changed > 0 {
                    conn.execute("DELETE FROM docs WHERE session = ?1", [id])?;
                    renew_first_prompt(conn, "events", id)?;
                }
                count += changed + secret.remove_from_row(conn, id)?;
            }
            count += secret.remove_from_others(conn, uid)?;
            Ok(())
        })?;
        Ok(count)
    }

    /// Changes the old files that are kept.
    fn in_former_files(
        &self,
        purpose: Purpose,
        mut work: impl FnMut(&Connection) -> rusqlite::Result<()>,
    ) -> Result<(), StoreError> {
        for path in self.former_files() {
            let mut change = || {
                let mut conn = db::connect(&path)?;
                let change = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
                work(&change)?;
                if purpose == Purpose::Count {
                    return Ok(());
                }
                change.commit()?;
                conn.execute_batch(REBUILD)
            };
            change().map_err(|error| StoreError::new(&path, db::fault(&error)))?;
        }
        Ok(())
    }
}

/// Makes the index and the file anew: both may contain deleted data.
pub(super) const REBUILD: &str = "INSERT INTO docs_fts (docs_fts) VALUES ('rebuild'); VACUUM";

/// The start of the first prompt that a session still has.
fn first_prompt(conn: &Connection, table: &str, session: i64) -> rusqlite::Result<Option<String>> {
    let sql = format!("SELECT body FROM {table} WHERE session = ?1 AND kind = 'prompt' ORDER BY seq LIMIT 1");
    let body: Option<String> = conn.query_row(&sql, [session], |row| row.get(0)).optional()?;
    Ok(match body.as_deref().and_then(format::decode) {
        Some(Record::Prompt { text, .. }) => Some(prompt_start(&text)),
        _ => None,
    })
}

/// Reads the start of the first prompt again, because the text may have been cut off there.
fn renew_first_prompt(conn: &Connection, table: &str, session: i64) -> rusqlite::Result<Option<String>> {
    let first_prompt = first_prompt(conn, table, session)?;
    let sql = "UPDATE sessions SET first_prompt = coalesce(?2, first_prompt) WHERE id = ?1
        RETURNING first_prompt";
    conn.query_row(sql, params![session, first_prompt], |row| row.get(0))
}

fn forget_turns_in(conn: &Connection, table: &str, uid: &str, turns: &Range<u32>) -> rusqlite::Result<()> {
    let of_turns = "session = (SELECT id FROM sessions WHERE uid = ?1) AND turn >= ?2 AND turn < ?3";
    let params = params![uid, turns.start, turns.end];
    let sql = format!("SELECT body FROM {table} WHERE {of_turns}");
    for body in readable::<String>(conn, &sql, params, |row| row.get(0))?.0 {
        if let Some(Record::Prompt { text, typed, .. }) = format::decode(&body) {
            conn.execute(
                "DELETE FROM prompts WHERE text IN (?2, ?3)
                    AND folder = (SELECT folder FROM sessions WHERE uid = ?1)",
                params![uid, text, typed],
            )?;
        }
    }
    // Before the events, whose numbers the texts have.
    conn.execute(
        &format!(
            "DELETE FROM docs WHERE {of_turns} OR (session = (SELECT id FROM sessions WHERE uid = ?1)
                AND seq IN (SELECT seq FROM {table} WHERE {of_turns}))"
        ),
        params,
    )?;
    conn.execute(&format!("DELETE FROM {table} WHERE {of_turns}"), params)?;
    Ok(())
}

impl SessionRow {
    /// Removes a text from what the user and the agent wrote.
    pub fn scrub(&mut self, text: &str) {
        let texts = [self.title.as_mut(), self.first_prompt.as_mut(), Some(&mut self.draft)];
        let texts = texts.into_iter().flatten().chain(&mut self.queue).chain(&mut self.stash);
        texts.filter(|it| it.contains(text)).for_each(|it| *it = it.replace(text, REMOVED));
    }
}

/// A text that is deleted.
struct Secret<'a> {
    text: &'a str,
    /// A part of it that JSON does not change.
    plain: &'a str,
}

/// The texts of a message that came in parts.
struct Parts {
    role: Role,
    message: Option<MessageId>,
    text: String,
    /// The numbers of the events, and where their texts start.
    starts: Vec<(i64, usize)>,
}

impl<'a> Secret<'a> {
    fn new(text: &'a str) -> Self {
        let parts =
            text.split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, ' ' | '-' | '_' | '.' | ':')));
        Self { text, plain: parts.max_by_key(|part| part.len()).unwrap_or_default() }
    }

    /// Removes the text from the strings of a JSON text, also in strings that contain JSON; `None`: it is not there.
    fn removed_from_json(&self, json: &str) -> Option<String> {
        if !json.contains(self.plain) && !json.contains("\\u") {
            return None;
        }
        let mut value = serde_json::from_str(json).ok()?;
        self.remove_from(&mut value).then(|| value.to_string())
    }

    fn remove_from(&self, value: &mut Value) -> bool {
        match value {
            Value::String(text) => {
                let is_nested = text.trim_start().starts_with(['{', '[', '"']);
                let nested = if is_nested { self.removed_from_json(text) } else { None };
                let is_changed = nested.is_some();
                if let Some(nested) = nested {
                    *text = nested;
                }
                let is_here = text.contains(self.text);
                if is_here {
                    *text = text.replace(self.text, REMOVED);
                }
                is_changed || is_here
            }
            Value::Array(values) => {
                values.iter_mut().filter_map(|value| self.remove_from(value).then_some(())).count() > 0
            }
            Value::Object(fields) => {
                let mut any =
                    fields.values_mut().filter_map(|value| self.remove_from(value).then_some(())).count() > 0;
                if fields.keys().any(|key| key.contains(self.text)) {
                    any = true;
                    let old = std::mem::take(fields);
                    fields
                        .extend(old.into_iter().map(|(key, value)| (key.replace(self.text, REMOVED), value)));
                }
                any
            }
            _ => false,
        }
    }

    /// Removes the text from the events of a session, also where it is split over parts of a message. Returns the
    /// number of changed events, and their turns.
    fn remove_from_log(
        &self,
        conn: &Connection,
        table: &str,
        session: i64,
    ) -> rusqlite::Result<(usize, BTreeSet<u32>)> {
        let mut changed: BTreeMap<i64, String> = BTreeMap::new();
        let mut open: Option<Parts> = None;
        let sql = format!("SELECT seq, kind, body FROM {table} WHERE session = ?1 ORDER BY seq");
        let mut query = conn.prepare_cached(&sql)?;
        let mut rows = query.query([session])?;
        while let Some(row) = rows.next()? {
            let (Ok(kind), Ok(body)) = (row.get_ref(1)?.as_str(), row.get_ref(2)?.as_str()) else { continue };
            let seq: i64 = row.get(0)?;
            let new = self.removed_from_json(body);
            if matches!(kind, "prompt" | "turn_ended") {
                self.remove_from_parts(conn, table, session, open.take(), &mut changed)?;
            } else if matches!(kind, "user" | "answer" | "thought")
                && let Some(Record::Update(update)) = format::decode(new.as_deref().unwrap_or(body))
                && let Some((role, message, text)) = update.appended_text()
            {
                match &mut open {
                    Some(parts) if parts.role == role && parts.message.as_ref() == message => {
                        parts.starts.push((seq, parts.text.len()));
                        parts.text.push_str(text);
                    }
                    _ => {
                        let parts = Parts {
                            role,
                            message: message.cloned(),
                            text: text.to_owned(),
                            starts: vec![(seq, 0)],
                        };
                        self.remove_from_parts(conn, table, session, open.replace(parts), &mut changed)?;
                    }
                }
            }
            changed.extend(new.map(|new| (seq, new)));
        }
        self.remove_from_parts(conn, table, session, open, &mut changed)?;
        let sql = format!("UPDATE {table} SET body = ?3 WHERE session = ?1 AND seq = ?2 RETURNING turn");
        let mut update = conn.prepare_cached(&sql)?;
        let mut turns = BTreeSet::new();
        for (seq, body) in &changed {
            turns.extend(update.query_row(params![session, seq, body], |row| Ok(row.get::<_, u32>(0).ok()))?);
        }
        Ok((changed.len(), turns))
    }

    /// Removes the text where it is split over parts of a message; the first of them gets the mark.
    fn remove_from_parts(
        &self,
        conn: &Connection,
        table: &str,
        session: i64,
        parts: Option<Parts>,
        changed: &mut BTreeMap<i64, String>,
    ) -> rusqlite::Result<()> {
        let Some(Parts { role, message, text, starts }) = parts.filter(|parts| parts.starts.len() > 1) else {
            return Ok(());
        };
        let found: Vec<Range<usize>> =
            text.match_indices(self.text).map(|(at, it)| at..at + it.len()).collect();
        let ends = starts.iter().skip(1).map(|(_, start)| *start).chain([text.len()]);
        for ((seq, start), end) in starts.iter().zip(ends) {
            let here = found.iter().filter(|range| range.start < end && range.end > *start);
            let (mut left, mut at) = (String::new(), *start);
            for range in here {
                left.push_str(text.get(at..range.start.max(at)).unwrap_or_default());
                left.push_str(if range.start >= *start { REMOVED } else { "" });
                at = range.end.min(end);
            }
            if at == *start && left.is_empty() {
                continue;
            }
            left.push_str(text.get(at..end).unwrap_or_default());
            let sql = format!("SELECT body FROM {table} WHERE session = ?1 AND seq = ?2");
            let known = changed.get(seq).cloned();
            let body = known.map_or_else(|| conn.query_row(&sql, [session, *seq], |row| row.get(0)), Ok)?;
            if let Some(Record::Update(mut update)) = format::decode(&body)
                && let Some(part) = update.text_to_grow(role, message.as_ref())
            {
                *part = left;
                changed.insert(*seq, format::encode(&Record::Update(update)));
            }
        }
        Ok(())
    }

    /// Deletes the events of a session that contain the text.
    fn delete_from(&self, conn: &Connection, table: &str, session: i64) -> rusqlite::Result<usize> {
        let sql = format!("SELECT seq, body FROM {table} WHERE session = ?1");
        let (found, _) = readable(conn, &sql, [session], |row| {
            let is_here = self.removed_from_json(row.get_ref(1)?.as_str().unwrap_or_default()).is_some();
            Ok((row.get::<_, i64>(0)?, is_here))
        })?;
        let found: BTreeSet<i64> =
            found.into_iter().filter_map(|(seq, is_here)| is_here.then_some(seq)).collect();
        for seq in &found {
            conn.execute(&format!("DELETE FROM {table} WHERE session = ?1 AND seq = ?2"), [session, *seq])?;
        }
        Ok(found.len())
    }

    fn remove_from_row(&self, conn: &Connection, id: i64) -> rusqlite::Result<usize> {
        let mut count = 0;
        for column in ["draft", "title", "first_prompt"] {
            count += conn.execute(
                &format!(
                    "UPDATE sessions SET {column} = replace({column}, ?2, ?3) WHERE id = ?1 AND instr({column}, ?2)"
                ),
                params![id, self.text, REMOVED],
            )?;
        }
        for column in ["queue", "stash"] {
            // Older files have no stash.
            let sql = format!("SELECT {column} FROM sessions WHERE id = ?1");
            let Ok(json) = conn.query_row(&sql, [id], |row| row.get::<_, String>(0)) else { continue };
            if let Some(json) = self.removed_from_json(&json) {
                conn.execute(&format!("UPDATE sessions SET {column} = ?2 WHERE id = ?1"), params![id, json])?;
                count += 1;
            }
        }
        Ok(count.min(1))
    }

    /// Removes the text from the files that are held, in the state in which they would be applied.
    fn remove_from_held(&self, conn: &Connection, id: i64) -> rusqlite::Result<usize> {
        let sql = "UPDATE held SET base = replace(base, ?2, ?3), text = replace(text, ?2, ?3)
            WHERE uid = (SELECT uid FROM sessions WHERE id = ?1)
                AND (instr(text, ?2) OR instr(coalesce(base, ''), ?2))";
        conn.execute(sql, params![id, self.text, REMOVED])
    }

    /// Removes the text from the prompts of folders, and from search texts that still contain it; if a session is given,
    /// only from those of its folder, and from its own.
    fn remove_from_others(&self, conn: &Connection, uid: Option<&str>) -> rusqlite::Result<usize> {
        let replace = |table, of: &str| {
            format!(
                "UPDATE {table} SET text = replace(text, ?1, ?2) WHERE instr(text, ?1)
                    AND (?3 IS NULL OR {of} FROM sessions WHERE uid = ?3))"
            )
        };
        conn.execute(&replace("docs", "session = (SELECT id"), params![self.text, REMOVED, uid])?;
        conn.execute(&replace("prompts", "folder = (SELECT folder"), params![self.text, REMOVED, uid])
    }
}
