//! The tables of `record.db`, and the migration of files from older versions.
//!
//! `user_version` counts the applied steps. A released step is never changed; new changes are added as a new step.
//! A query by hand: `SELECT l.turn, l.kind, l.body FROM log l JOIN sessions s ON s.id = l.session WHERE s.uid = '…'
//! ORDER BY l.seq` returns a session as it was seen.

use rusqlite::{Connection, TransactionBehavior};

/// Identifies a file of parlor: "prlr" in ASCII.
pub(super) const APPLICATION_ID: i64 = 0x7072_6c72;

/// The migration steps, from an empty file to the newest version.
const STEPS: &[&str] = &["
    -- Times are Unix milliseconds and only for display; columns with several values contain JSON.

    -- Single facts, such as `draft agent: …`.
    CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

    -- One row for each session, with everything that changes.
    CREATE TABLE sessions (
        id INTEGER PRIMARY KEY,
        uid TEXT NOT NULL UNIQUE,          -- the id that the user sees
        spool_of TEXT,                     -- the history that an agent replays for the session with this uid (empty:
                                           -- unknown), until that session is closed; null: an ordinary session
        used INTEGER NOT NULL,             -- the order of the last use, not by the clock; the highest is the last
        agent TEXT NOT NULL,               -- the agent's name
        command TEXT NOT NULL,             -- the agent's program
        args TEXT NOT NULL,                -- JSON: its arguments
        agent_session TEXT,                -- the agent's id of the session
        folder TEXT NOT NULL,
        roots TEXT NOT NULL,               -- JSON: additional folders
        folder_mark TEXT,                  -- JSON: identifies the folder after it is renamed
        branch TEXT,
        title TEXT,
        own_title INTEGER NOT NULL,        -- whether the user set the title
        owes_title INTEGER NOT NULL,       -- whether the title was not sent to the agent yet
        first_prompt TEXT,                 -- the start of the first prompt
        came_from TEXT,                    -- the uid of the session that it continues
        chosen TEXT,                       -- JSON: the selected mode, model and options
        imported INTEGER NOT NULL,         -- whether it was imported and not continued here
        is_child INTEGER NOT NULL,         -- whether it belongs to a subagent
        created INTEGER NOT NULL,
        updated INTEGER NOT NULL,          -- the time of the last prompt, answer or end of a turn
        state TEXT NOT NULL,               -- idle, turn (one runs), cut (parlor ended within one)
        turns INTEGER NOT NULL,            -- the number of the last turn
        next_seq INTEGER NOT NULL,         -- the number of the next row in the log
        usage TEXT,                        -- JSON: context and cost
        draft TEXT NOT NULL,               -- the text in the prompt
        queue TEXT NOT NULL,               -- JSON: queued prompts
        stash TEXT NOT NULL,               -- JSON: drafts that were put aside
        told TEXT,                         -- JSON: hashes of the differences to the agent's history that the user was told
        owner TEXT,                        -- the mark of the parlor that has it open: a file in `locks`
        agent_pid INTEGER,
        agent_born INTEGER,                -- the start of that process in ticks
        run TEXT,                          -- the mark of the parlor that had it open last
        opened INTEGER NOT NULL,           -- when it was opened there
        tab INTEGER,                       -- the place of its tab there; null: the tab was closed
        front INTEGER NOT NULL             -- whether that tab was the active one
    );
    CREATE INDEX sessions_by_use ON sessions (used);
    CREATE INDEX sessions_by_folder ON sessions (folder, used);
    CREATE INDEX sessions_by_owner ON sessions (owner) WHERE owner IS NOT NULL;
    CREATE INDEX sessions_by_run ON sessions (run) WHERE run IS NOT NULL;
    CREATE INDEX sessions_by_agent_id ON sessions (agent_session) WHERE agent_session IS NOT NULL;

    -- What parlor saw, in the order in which it saw it. Rows are only added.
    CREATE TABLE log (
        session INTEGER NOT NULL,          -- sessions.id
        seq INTEGER NOT NULL,
        turn INTEGER NOT NULL,             -- from 1; 0: before the first prompt
        at INTEGER NOT NULL,
        kind TEXT NOT NULL,                -- prompt, user, answer, thought, tool, asked, decided, turn_ended, …
        body TEXT NOT NULL,                -- JSON
        PRIMARY KEY (session, seq)
    ) WITHOUT ROWID;

    -- The sessions that have something to continue. Lists show those that are no subagent's.
    CREATE VIEW listed AS SELECT * FROM sessions s WHERE spool_of IS NULL
        AND (turns > 0 OR imported OR own_title OR trim(draft) <> '' OR queue <> '[]' OR stash <> '[]'
            OR EXISTS (SELECT 1 FROM log WHERE session = s.id AND kind IN ('prompt', 'user', 'answer', 'thought',
                'tool', 'asked', 'answered', 'access', 'command', 'handed_over')));

    -- Search texts: one row for each message, tool call and error. `seq` is that of its first row in the log.
    CREATE TABLE docs (
        id INTEGER PRIMARY KEY,
        session INTEGER NOT NULL,
        seq INTEGER NOT NULL,
        turn INTEGER NOT NULL,
        at INTEGER NOT NULL,
        kind TEXT NOT NULL,                -- prompt, answer, thought, edit, command, tool, error, notice
        is_error INTEGER NOT NULL,
        text TEXT NOT NULL,
        UNIQUE (session, seq)
    );
    CREATE INDEX docs_prompts ON docs (at) WHERE kind = 'prompt';
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

    -- The prompts that were typed in a folder, and the agent that was used there last.
    CREATE TABLE prompts (
        id INTEGER PRIMARY KEY,
        folder TEXT NOT NULL,
        text TEXT NOT NULL,
        at INTEGER NOT NULL
    );
    CREATE INDEX prompts_by_folder ON prompts (folder, id);
    CREATE TABLE folders (folder TEXT PRIMARY KEY, agent TEXT NOT NULL, at INTEGER NOT NULL) WITHOUT ROWID;
    ",
    "
    -- JSON: the uids of the sessions that were open read-only in other tabs
    ALTER TABLE sessions ADD COLUMN views TEXT;
    ",
    "
    -- The files that agents wrote and that are not on the disk, until the user applies or discards them.
    CREATE TABLE held (
        uid TEXT NOT NULL,                 -- sessions.uid
        path TEXT NOT NULL,
        base TEXT,                         -- what the agent wrote on; null: a new file
        text TEXT NOT NULL,
        PRIMARY KEY (uid, path)
    ) WITHOUT ROWID;
    "];

/// The newest version of the schema.
#[expect(clippy::cast_possible_wrap, reason = "there are a few steps, and a constant cannot use `try_from`")]
pub(super) const NEWEST: i64 = STEPS.len() as i64;

pub(super) fn number(conn: &Connection, pragma: &str) -> rusqlite::Result<i64> {
    conn.pragma_query_value(None, pragma, |row| row.get(0))
}

/// Whether the file is one of parlor, or empty. Another process may create the tables at the same time.
pub(super) fn is_own(conn: &Connection) -> rusqlite::Result<bool> {
    // Tables and mark appear at once, so tables that were seen here have their mark when it is read.
    let is_empty = conn.query_row("SELECT count(*) = 0 FROM sqlite_schema", [], |row| row.get(0))?;
    Ok(match number(conn, "application_id")? {
        APPLICATION_ID => true,
        0 => is_empty,
        _ => false,
    })
}

/// Applies the missing steps in one transaction. Safe for several processes at once.
pub(super) fn migrate(conn: &mut Connection) -> rusqlite::Result<()> {
    if number(conn, "user_version")? >= NEWEST {
        return Ok(());
    }
    let change = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let done = usize::try_from(number(&change, "user_version")?).unwrap_or(0);
    for (index, sql) in STEPS.iter().enumerate().skip(done) {
        change.execute_batch(sql)?;
        change.pragma_update(None, "user_version", i64::try_from(index).unwrap_or_default() + 1)?;
    }
    change.pragma_update(None, "application_id", APPLICATION_ID)?;
    change.commit()
}
