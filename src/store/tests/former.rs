//! The tables of `sessions.db` in all versions.

/// The steps from an empty file to the last version; `user_version` counts the applied ones.
pub const STEPS: &[&str] = &[
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
