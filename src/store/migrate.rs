//! Converts the file of older versions, `sessions.db`, to the log. The old file is kept under another name until the
//! user discards it.
//!
//! Invariants: each session is converted in one transaction with a mark, so that a conversion goes on where it was
//! interrupted; no other parlor has the old file open meanwhile. If an older parlor makes a new file afterwards, its
//! sessions are added. What cannot be read is reported and hides nothing else.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::{Connection, OptionalExtension as _, TransactionBehavior, params};

use super::fault::{Fault, StoreError};
use super::handle::Store;
use super::rows::{self, SessionRow, readable};
use super::session_writer::new_uid;
use super::support::{unix_ms, with_suffix};
use super::{db, docs, format, owner, schema};

/// The file of older versions, and its name once it is converted.
const FILE: &str = "sessions.db";
const DONE_FILE: &str = "sessions.db.former";

/// The last version of the old file, and that of one whose conversion has begun; older parlors refuse it.
const LAST: i64 = 10;
const LEFT: i64 = 1000;

/// What a version added, as far as it is converted; other columns that are missing have their defaults.
const ADDED: [(i64, &str); 3] = [
    (2, "ALTER TABLE sessions ADD COLUMN folder_mark TEXT"),
    (
        6,
        "CREATE TABLE late (session, seq, nth, turn, at, body);
        CREATE TABLE staged (session, seq, turn, at, kind, body);",
    ),
    // Only sessions that were recorded have a mark of their folder.
    (
        7,
        "ALTER TABLE sessions ADD COLUMN imported INTEGER NOT NULL DEFAULT 0;
        UPDATE sessions SET imported = 1 WHERE folder_mark IS NULL;",
    ),
];

/// How long to wait for another parlor that converts the file.
const MAX_WAIT: Duration = Duration::from_secs(1800);

/// Time after which the progress is reported.
const QUIET: Duration = Duration::from_secs(1);

const DAY_MS: i64 = 86_400_000;

/// Keys of marks: a converted session, with what could not be read of it; and that all are converted.
const MARK: &str = "converted session ";
const DONE_MARK: &str = "converted";

/// The result of a conversion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Migrated {
    pub session_count: u64,
    /// What could not be read, by session.
    pub unreadable: Vec<String>,
}

impl Store {
    /// Converts the file of an older version, if there is one. After a second, `progress` is called with the numbers of
    /// converted and of all sessions. All methods that use the database do this first, without progress.
    pub fn migrate(&self, progress: &mut dyn FnMut(u64, u64)) -> Result<Option<Migrated>, StoreError> {
        let begun = Instant::now();
        self.convert(&mut |done, total| {
            if begun.elapsed() >= QUIET {
                progress(done, total);
            }
            true
        })
    }

    /// Deletes the old files that were converted.
    pub fn discard_former(&self) -> Result<(), StoreError> {
        for path in self.former_files() {
            std::fs::remove_file(&path).map_err(|error| StoreError::new(&path, db::io_fault(&error)))?;
        }
        Ok(())
    }

    /// The old files that were converted: several if an older parlor was used again after a conversion.
    pub fn former_files(&self) -> Vec<PathBuf> {
        former_names(self.root()).take_while(|path| path.exists()).collect()
    }

    /// The same as [`Self::migrate`]; stops between two sessions when `each` returns false.
    pub(super) fn convert(
        &self,
        each: &mut dyn FnMut(u64, u64) -> bool,
    ) -> Result<Option<Migrated>, StoreError> {
        let path = self.root().join(FILE);
        if !path.exists() {
            return Ok(None);
        }
        let _lock = self.lock(MAX_WAIT)?;
        let failed = |fault: Fault| StoreError::new(&path, fault);
        let mut new = db::open(self.root())?.conn;
        let in_new = |fault: Fault| StoreError::new(&self.root().join(db::FILE), fault);
        // An earlier conversion that was killed after it renamed its file has left its mark.
        let begun = db::open_frozen(&path).and_then(|conn| schema::number(&conn, "user_version"));
        if begun.is_ok_and(|version| version != LEFT) {
            new.execute("DELETE FROM meta WHERE substr(key, 1, length(?1)) = ?1", [DONE_MARK])
                .map_err(|error| in_new(error.into()))?;
        }
        let opened = if path.exists() { self.open_former(&path) } else { Ok(None) };
        let old = match opened {
            Err(Fault::Corrupt(why)) => return self.rename_damaged(&path, &why).map(|()| None),
            Err(fault) => return Err(failed(fault)),
            Ok(None) => return Ok(None),
            Ok(Some(old)) => old,
        };
        let migrated = convert_all(&old, &mut new, each).map_err(in_new)?;
        drop(old);
        let aside = former_names(self.root()).find(|path| !path.exists()).unwrap_or_default();
        std::fs::rename(&path, &aside).map_err(|error| failed(db::io_fault(&error)))?;
        new.execute("DELETE FROM meta WHERE key = ?1", [DONE_MARK]).map_err(|error| in_new(error.into()))?;
        if !migrated.unreadable.is_empty() {
            let what = migrated.unreadable.join("; ");
            let aside = aside.display();
            self.report(
                format!("Saved sessions were converted, but not all could be read: {what}. {aside} was not deleted."),
                true,
            );
        }
        Ok(Some(migrated))
    }

    /// Opens the old file so that no other process can, and adds what it lacks; `None`: it is the file of
    /// another program.
    fn open_former(&self, path: &Path) -> Result<Option<Connection>, Fault> {
        let is_own = |conn: &Connection| -> rusqlite::Result<bool> {
            let sql =
                "SELECT count(*) = 0 OR sum(name IN ('sessions', 'events', 'docs', 'prompts', 'folders')) = 5
                FROM sqlite_schema WHERE type = 'table'";
            Ok(schema::number(conn, "application_id")? == 0 && conn.query_row(sql, [], |row| row.get(0))?)
        };
        if db::open_frozen(path).and_then(|conn| is_own(&conn)).is_ok_and(|is_own| !is_own) {
            return Ok(None);
        }
        let mut conn = db::connect(path)?;
        if !is_own(&conn)? {
            return Ok(None);
        }
        let version = match schema::number(&conn, "user_version")? {
            // It has no tables yet.
            0 => return Ok(None),
            version @ (1..=LAST | LEFT) => version,
            _ => return Err(Fault::Newer),
        };
        let sql = "SELECT DISTINCT owner FROM sessions WHERE owner IS NOT NULL";
        let (owners, _) = readable::<String>(&conn, sql, [], |row| row.get(0))?;
        if let Some(token) = owners.iter().find(|token| owner::is_alive(self.root(), token)) {
            return Err(Fault::Former(owner::pid(token)));
        }
        conn.pragma_update_and_check(None, "locking_mode", "exclusive", |_| Ok(()))?;
        // This writes SQLite's log into the file, and fails if another process has it open.
        let begun = conn
            .pragma_update_and_check(None, "journal_mode", "delete", |row| row.get::<_, String>(0))
            .and_then(|_| {
                let change = conn.transaction_with_behavior(TransactionBehavior::Exclusive)?;
                for (_, sql) in ADDED.iter().filter(|(since, _)| version < *since) {
                    change.execute_batch(sql)?;
                }
                change.pragma_update(None, "user_version", LEFT)?;
                change.commit()
            });
        match begun.map_err(Fault::from) {
            Err(Fault::Busy) => {
                let mut living = owner::living(self.root()).into_iter().filter(|token| !self.is_own(token));
                Err(Fault::Former(living.find_map(|token| owner::pid(&token))))
            }
            other => other.map(|()| Some(conn)),
        }
    }
}

fn former_names(root: &Path) -> impl Iterator<Item = PathBuf> {
    let first = root.join(DONE_FILE);
    (0..100_u32).map(move |n| if n == 0 { first.clone() } else { with_suffix(&first, &format!("-{n}")) })
}

fn is_marked(new: &Connection, key: &str) -> rusqlite::Result<bool> {
    new.query_row("SELECT count(*) > 0 FROM meta WHERE key = ?1", [key], |row| row.get(0))
}

fn convert_all(
    old: &Connection,
    new: &mut Connection,
    each: &mut dyn FnMut(u64, u64) -> bool,
) -> Result<Migrated, Fault> {
    let ids = by_use(old)?;
    let total = ids.len() as u64;
    if is_marked(new, DONE_MARK)? {
        return Ok(Migrated { session_count: total, unreadable: Vec::new() });
    }
    for (done, id) in (1..).zip(&ids) {
        let mark = format!("{MARK}{id}");
        if !is_marked(new, &mark)? {
            let change = new.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let odd = convert_session(old, &change, *id)?;
            change.execute("INSERT INTO meta (key, value) VALUES (?1, ?2)", [mark, odd])?;
            change.commit()?;
        }
        if !each(done, total) {
            return Err(Fault::Other("the conversion was interrupted".to_owned()));
        }
    }
    let change = new.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let is_mark = "substr(key, 1, length(?1)) = ?1";
    let sql = format!("SELECT value FROM meta WHERE {is_mark} AND value <> ''");
    let (mut unreadable, _) = readable::<String>(&change, &sql, [MARK], |row| row.get(0))?;
    change.execute(&format!("DELETE FROM meta WHERE {is_mark}"), [MARK])?;
    let copies = [
        (
            "SELECT folder, text, at FROM prompts ORDER BY id",
            "INSERT INTO prompts (folder, text, at) SELECT ?1, ?2, ?3
                WHERE NOT EXISTS (SELECT 1 FROM prompts WHERE folder = ?1 AND text = ?2 AND at = ?3)",
            "prompts",
        ),
        (
            "SELECT folder, agent, at FROM folders",
            "INSERT OR IGNORE INTO folders VALUES (?1, ?2, ?3)",
            "folders",
        ),
        ("SELECT key, value, 0 FROM meta", "INSERT OR IGNORE INTO meta SELECT ?1, ?2 WHERE ?3 = 0", "agents"),
    ];
    for (from, to, name) in copies {
        let rows = readable::<(String, String, i64)>(old, from, [], |row| row.try_into());
        let (rows, odd_count) = match rows.map_err(Fault::from) {
            Err(Fault::Corrupt(_)) => (Vec::new(), 1),
            other => other?,
        };
        for row in rows {
            change.prepare_cached(to)?.execute(row)?;
        }
        unreadable.extend((odd_count > 0).then(|| format!("{name} of folders ({odd_count})")));
    }
    change.execute("INSERT INTO meta (key, value) VALUES (?1, '')", [DONE_MARK])?;
    change.commit()?;
    Ok(Migrated { session_count: total, unreadable })
}

/// The numbers of the sessions in the order of their last use. Times in the future are not believed: the time when the
/// session was opened or created counts, or that of the session before it in the file.
fn by_use(old: &Connection) -> Result<Vec<i64>, Fault> {
    let latest = unix_ms() + DAY_MS;
    let mut before = 0;
    let sql = "SELECT * FROM sessions ORDER BY id";
    let (mut ids, _) = readable(old, sql, [], |row| {
        let times = ["updated", "opened", "created"].map(|column| row.get::<_, i64>(column).unwrap_or(0));
        before = times.into_iter().find(|at| (1..=latest).contains(at)).unwrap_or(before);
        Ok((before, row.get::<_, i64>("id")?))
    })?;
    ids.sort_unstable();
    Ok(ids.into_iter().map(|(_, id)| id).collect())
}

/// Converts a session; returns what could not be read of it.
fn convert_session(old: &Connection, new: &Connection, id: i64) -> Result<String, Fault> {
    let row = old.query_row("SELECT * FROM sessions WHERE id = ?1", [id], SessionRow::salvaged);
    let (mut row, odd) = match row.map_err(Fault::from) {
        Err(Fault::Corrupt(_)) => return Ok(format!("session number {id}")),
        other => other?,
    };
    let mut odd: Vec<String> = odd.into_iter().map(|column| format!("its {column}")).collect();
    let sql = "SELECT * FROM sessions WHERE uid = ?1";
    if let Some((known, _)) = new.query_row(sql, [&row.uid], SessionRow::salvaged).optional()? {
        // The old file was converted before.
        if known.created_ms == row.created_ms && known.updated_ms >= row.updated_ms {
            return Ok(String::new());
        }
        row.uid.clear();
    }
    if row.uid.is_empty() {
        row.uid = new_uid();
    }
    row.used = rows::next_use(new)?;
    let session = row.save(new)?;
    let (mut log, mut is_whole) = (Log { new, session, numbers: Vec::new(), next: 0, odd_count: 0 }, true);
    match log.add_events(old, id) {
        Err(Fault::Corrupt(_)) => is_whole = false,
        other => other?,
    }
    row.next_seq = log.next;
    row.save(new)?;
    if log.add_texts(old, id).is_err() {
        docs::rebuild(new, session, None)?;
    }
    odd.extend((log.odd_count > 0).then(|| format!("{} of its events", log.odd_count)));
    odd.extend((!is_whole).then(|| format!("what follows event {}", log.next)));
    Ok(if odd.is_empty() { String::new() } else { format!("session {}: {}", row.uid, odd.join(", ")) })
}

/// The log of a session that is being converted.
struct Log<'a> {
    new: &'a Connection,
    session: i64,
    /// The old and new numbers of the events.
    numbers: Vec<(i64, i64)>,
    next: i64,
    odd_count: u64,
}

impl Log<'_> {
    /// Adds the events, with late ones after those that they follow. Events before the last history that replaced them
    /// are not part of the session, nor those of a history that was not complete.
    fn add_events(&mut self, old: &Connection, id: i64) -> Result<(), Fault> {
        let mut query = old.prepare_cached(
            "WITH ends AS MATERIALIZED (SELECT
                (SELECT coalesce(max(seq), -2) FROM events WHERE session = ?1 AND kind = 'replaced') AS begin,
                (SELECT coalesce(min(seq), 9223372036854775807) FROM staged WHERE session = ?1) AS stop)
            SELECT seq, 0 AS nth, turn, at, kind, body FROM events, ends WHERE session = ?1 AND seq > begin
            UNION ALL SELECT seq, nth, turn, at, '', body FROM late, ends
                WHERE session = ?1 AND seq >= begin AND seq < stop
            ORDER BY 1, 2",
        )?;
        let mut insert = self.new.prepare_cached(
            "INSERT INTO log (session, seq, turn, at, kind, body) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )?;
        let mut rows = query.query([id])?;
        while let Some(row) = rows.next()? {
            let numbers = (row.get(0), row.get::<_, i64>(1), row.get::<_, u32>(2), row.get::<_, i64>(3));
            let texts = (row.get_ref(4)?.as_str(), row.get_ref(5)?.as_str());
            let ((Ok(seq), Ok(nth), Ok(turn), Ok(at_ms)), (Ok(kind), Ok(body))) = (numbers, texts) else {
                self.odd_count += 1;
                continue;
            };
            let kind = match kind {
                "" => format::decode(body).map_or("unknown", |record| format::kind(&record)),
                kind => kind,
            };
            insert.execute(params![self.session, self.next, turn, at_ms, kind, body])?;
            if nth == 0 {
                self.numbers.push((seq, self.next));
            }
            self.next += 1;
        }
        Ok(())
    }

    /// Adds the search texts, which have the numbers of events; those of unreadable ones get the next number.
    fn add_texts(&self, old: &Connection, id: i64) -> Result<(), Fault> {
        let Some(((begin, _), (_, last))) = self.numbers.first().zip(self.numbers.last()) else {
            return Ok(());
        };
        let mut query = old.prepare_cached(
            "SELECT seq, turn, at, kind, is_error, text FROM docs WHERE session = ?1 AND seq >= ?2 - 1
                AND seq < (SELECT coalesce(min(seq), 9223372036854775807) FROM staged WHERE session = ?1)",
        )?;
        let mut insert = self.new.prepare_cached(
            "INSERT INTO docs (session, seq, turn, at, kind, is_error, text) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
                ON CONFLICT (session, seq) DO UPDATE SET text = text || char(10) || excluded.text",
        )?;
        let mut rows = query.query(params![id, begin])?;
        while let Some(row) = rows.next()? {
            let seq: i64 = row.get(0)?;
            let index = self.numbers.partition_point(|(old, _)| *old < seq);
            let number = self.numbers.get(index).map_or(*last, |(_, new)| *new);
            let (turn, at_ms, kind) =
                (row.get::<_, u32>(1)?, row.get::<_, i64>(2)?, row.get::<_, String>(3)?);
            let (is_error, text) = (row.get::<_, bool>(4)?, row.get::<_, String>(5)?);
            insert.execute(params![self.session, number, turn, at_ms, kind, is_error, text])?;
        }
        Ok(())
    }
}
