//! The tables, and the migration of files from older versions.
//!
//! `user_version` counts the applied steps. A released step is never changed; new changes are added as a new step.

use rusqlite::{Connection, TransactionBehavior};

/// The migration steps, from an empty file to the newest version.
const STEPS: &[&str] = &[
    // 1: sessions with their events, search texts, and prompts and agents by folder.
    "
    CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

    -- Times are Unix milliseconds. `state`: idle, turn (one runs), cut (parlor ended within one).
    CREATE TABLE sessions (
        id INTEGER PRIMARY KEY,
        uid TEXT NOT NULL UNIQUE,
        agent TEXT NOT NULL,
        command TEXT NOT NULL,
        args TEXT NOT NULL,
        agent_session TEXT,
        folder TEXT NOT NULL,
        roots TEXT NOT NULL,
        branch TEXT,
        title TEXT,
        first_prompt TEXT,
        is_child INTEGER NOT NULL,
        created INTEGER NOT NULL,
        updated INTEGER NOT NULL,
        state TEXT NOT NULL,
        turns INTEGER NOT NULL,
        next_seq INTEGER NOT NULL,
        usage TEXT,
        draft TEXT NOT NULL,
        queue TEXT NOT NULL,
        owner TEXT,
        agent_pid INTEGER,
        agent_born INTEGER
    );
    CREATE INDEX sessions_by_folder ON sessions (folder, updated);
    CREATE INDEX sessions_by_time ON sessions (updated);
    CREATE INDEX sessions_by_owner ON sessions (owner) WHERE owner IS NOT NULL;

    CREATE TABLE events (
        session INTEGER NOT NULL,
        seq INTEGER NOT NULL,
        turn INTEGER NOT NULL,
        at INTEGER NOT NULL,
        kind TEXT NOT NULL,
        body TEXT NOT NULL,
        PRIMARY KEY (session, seq)
    ) WITHOUT ROWID;

    -- Search texts: one row for each message, tool call and error. `seq` is that of its first event.
    CREATE TABLE docs (
        id INTEGER PRIMARY KEY,
        session INTEGER NOT NULL,
        seq INTEGER NOT NULL,
        turn INTEGER NOT NULL,
        at INTEGER NOT NULL,
        kind TEXT NOT NULL,
        is_error INTEGER NOT NULL,
        text TEXT NOT NULL,
        UNIQUE (session, seq)
    );
    CREATE VIRTUAL TABLE docs_fts USING fts5 (
        text, content = 'docs', content_rowid = 'id', tokenize = 'unicode61 remove_diacritics 2'
    );
    CREATE TRIGGER docs_insert AFTER INSERT ON docs BEGIN
        INSERT INTO docs_fts (rowid, text) VALUES (new.id, new.text);
    END;
    CREATE TRIGGER docs_delete AFTER DELETE ON docs BEGIN
        INSERT INTO docs_fts (docs_fts, rowid, text) VALUES ('delete', old.id, old.text);
    END;
    CREATE TRIGGER docs_update AFTER UPDATE OF text ON docs BEGIN
        INSERT INTO docs_fts (docs_fts, rowid, text) VALUES ('delete', old.id, old.text);
        INSERT INTO docs_fts (rowid, text) VALUES (new.id, new.text);
    END;

    CREATE TABLE prompts (
        id INTEGER PRIMARY KEY,
        folder TEXT NOT NULL,
        text TEXT NOT NULL,
        at INTEGER NOT NULL
    );
    CREATE INDEX prompts_by_folder ON prompts (folder, id);
    CREATE TABLE folders (folder TEXT PRIMARY KEY, agent TEXT NOT NULL, at INTEGER NOT NULL) WITHOUT ROWID;
    ",
    // 2: titles set by the user, links between sessions, identification of folders, sessions by the agent's id.
    "
    ALTER TABLE sessions ADD COLUMN own_title INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE sessions ADD COLUMN came_from TEXT;
    ALTER TABLE sessions ADD COLUMN folder_mark TEXT;
    CREATE INDEX sessions_by_agent_id ON sessions (agent_session) WHERE agent_session IS NOT NULL;
    ",
    // 3: an index to find where a session was replaced.
    "
    CREATE INDEX events_replaced ON events (session, seq) WHERE kind = 'replaced';
    ",
    // 4: selected modes, models and options.
    "
    ALTER TABLE sessions ADD COLUMN chosen TEXT;
    ",
    // 5: titles set by the user that were not sent to the agent.
    "
    ALTER TABLE sessions ADD COLUMN owes_title INTEGER NOT NULL DEFAULT 0;
    ",
    // 6: late events of items far above, and incomplete histories.
    "
    -- Played after the event with this number, because it changes an item there or before.
    CREATE TABLE late (
        session INTEGER NOT NULL,
        seq INTEGER NOT NULL,
        nth INTEGER NOT NULL,
        turn INTEGER NOT NULL,
        at INTEGER NOT NULL,
        body TEXT NOT NULL,
        PRIMARY KEY (session, seq, nth)
    ) WITHOUT ROWID;

    -- The agent's history while it is loaded; once it is complete, its events are moved to `events`.
    CREATE TABLE staged (
        session INTEGER NOT NULL,
        seq INTEGER NOT NULL,
        turn INTEGER NOT NULL,
        at INTEGER NOT NULL,
        kind TEXT NOT NULL,
        body TEXT NOT NULL,
        PRIMARY KEY (session, seq)
    ) WITHOUT ROWID;
    ",
    // 7: imported sessions. In older databases only recorded sessions have a folder mark.
    "
    ALTER TABLE sessions ADD COLUMN imported INTEGER NOT NULL DEFAULT 0;
    UPDATE sessions SET imported = 1 WHERE folder_mark IS NULL;
    ",
    // 8: the tabs of the last run. `run` is the mark of the parlor that last had the session open, `opened` since when,
    // `tab` the place of its tab (none: the tab was closed), `front` whether that tab was the active one.
    "
    ALTER TABLE sessions ADD COLUMN run TEXT;
    ALTER TABLE sessions ADD COLUMN opened INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE sessions ADD COLUMN tab INTEGER;
    ALTER TABLE sessions ADD COLUMN front INTEGER NOT NULL DEFAULT 0;
    CREATE INDEX sessions_by_run ON sessions (run) WHERE run IS NOT NULL;
    ",
    // 9: an index of the prompts of all sessions.
    "
    CREATE INDEX docs_prompts ON docs (at) WHERE kind = 'prompt';
    ",
    // 10: where pages start, and the hashes of the subjects of the page before.
    "
    CREATE TABLE pages (
        session INTEGER NOT NULL,
        seq INTEGER NOT NULL,
        subjects BLOB NOT NULL,
        PRIMARY KEY (session, seq)
    ) WITHOUT ROWID;
    ",
];

/// The newest version of the schema.
#[expect(clippy::cast_possible_wrap, reason = "there are a few steps, and a constant cannot use `try_from`")]
pub(super) const NEWEST: i64 = STEPS.len() as i64;

/// The version of the schema in the file.
pub(super) fn version(conn: &Connection) -> rusqlite::Result<i64> {
    conn.query_row("PRAGMA user_version", [], |row| row.get(0))
}

/// Applies the missing steps in one transaction. Safe for several processes at once.
pub(super) fn migrate(conn: &mut Connection) -> rusqlite::Result<()> {
    if version(conn)? >= NEWEST {
        return Ok(());
    }
    let step = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let done = usize::try_from(version(&step)?).unwrap_or(0);
    for (index, sql) in STEPS.iter().enumerate().skip(done) {
        step.execute_batch(sql)?;
        step.pragma_update(None, "user_version", i64::try_from(index).unwrap_or_default() + 1)?;
    }
    step.commit()
}

#[cfg(test)]
mod tests {
    use super::super::tests::{ended, head, prompt, record};
    use super::super::{ListFilter, Search, Store, db};
    use super::*;

    /// Creates a file with the schema of the first `steps` steps, with a session in it.
    fn older(dir: &std::path::Path, steps: usize) {
        let conn = Connection::open(dir.join(db::FILE)).unwrap();
        for sql in &STEPS[..steps] {
            conn.execute_batch(sql).unwrap();
        }
        conn.pragma_update(None, "user_version", i64::try_from(steps).unwrap()).unwrap();
        conn.execute_batch(
            "INSERT INTO sessions (uid, agent, command, args, folder, roots, title, first_prompt, is_child,
                created, updated, state, turns, next_seq, draft, queue)
            VALUES ('0ld', 'fake', 'fake', '[]', '/code', '[]', 'The till', 'mend it', 0, 1, 2, 'idle', 1, 1,
                'half', '[\"next\"]');
            INSERT INTO events VALUES (1, 0, 1, 1, 'prompt', '{\"prompt\":{\"text\":\"mend the rounding\"}}');
            INSERT INTO docs (session, seq, turn, at, kind, is_error, text)
                VALUES (1, 0, 1, 1, 'prompt', 0, 'mend the rounding');
            INSERT INTO prompts (folder, text, at) VALUES ('/code', 'mend it', 1);",
        )
        .unwrap();
    }

    #[test]
    fn files_of_all_older_versions_are_migrated_without_loss() {
        for steps in 1..=STEPS.len() {
            let dir = tempfile::tempdir().unwrap();
            older(dir.path(), steps);
            let store = Store::open(dir.path()).unwrap();
            let row = store.find("0ld").unwrap();
            assert_eq!((row.name(), row.draft.as_str(), row.queue.len()), ("The till", "half", 1), "{steps}");
            assert!(!row.has_own_title && !row.owes_title && row.came_from.is_none());
            assert_eq!(store.reopen("0ld").unwrap().events.len(), 1);
            let search = Search { text: "rounding".to_owned(), limit: 5, ..Search::default() };
            assert_eq!(store.search(&search).unwrap().len(), 1);
            assert_eq!(store.history(std::path::Path::new("/code")), ["mend it"]);
            record(&store, vec![head("s1"), prompt(1, "one"), ended(1)]);
            assert_eq!(store.list(&ListFilter::default()).unwrap().len(), 2);
            assert_eq!(store.with(|conn| version(conn)).unwrap(), NEWEST);
            assert!(store.take_problems().is_empty());
        }
    }
}
