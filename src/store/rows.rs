//! The row of a session.

use std::path::PathBuf;
use std::sync::LazyLock;

use rusqlite::types::{FromSql as _, FromSqlResult, Value, ValueRef};
use rusqlite::{Connection, OptionalExtension as _, Params, Row, params_from_iter};

use super::db;
use super::fault::Fault;
use crate::host::folder_relocation::FolderMark;
use crate::model::{RecordedSession, SessionHead, SessionWorkspace, Setting, Usage, UserRoot};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SessionState {
    /// No turn is running.
    #[default]
    Idle,
    Turn,
    /// parlor ended during a turn.
    Cut,
}

impl SessionState {
    /// The name of the state in the file and in lists.
    pub fn word(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Turn => "turn",
            Self::Cut => "cut",
        }
    }
}

trait Column: Sized + Default {
    fn of(value: ValueRef<'_>) -> FromSqlResult<Self>;
    fn value(&self) -> Value;
}

/// Values that SQLite has, and those that are saved as JSON. Invalid JSON becomes the default.
macro_rules! column_types {
    (plain: $($plain:ty),*; json: $($json:ty),*) => {
        $(impl Column for $plain {
            fn of(value: ValueRef<'_>) -> FromSqlResult<Self> { Self::column_result(value) }
            fn value(&self) -> Value { self.clone().into() }
        })*
        $(impl Column for $json {
            fn of(value: ValueRef<'_>) -> FromSqlResult<Self> {
                let text = Option::<String>::column_result(value)?;
                Ok(text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default())
            }
            fn value(&self) -> Value {
                serde_json::to_string(self).ok().filter(|text| text != "null").into()
            }
        })*
    };
}

column_types! {
    plain: String, Option<String>, bool, i64, u32, Option<u32>;
    json: Vec<String>, Vec<u64>, Vec<PathBuf>, Vec<Setting>, Option<FolderMark>, Option<Usage>
}

impl Column for PathBuf {
    fn of(value: ValueRef<'_>) -> FromSqlResult<Self> {
        Ok(String::column_result(value)?.into())
    }

    fn value(&self) -> Value {
        self.to_string_lossy().into_owned().into()
    }
}

impl Column for Option<u64> {
    fn of(value: ValueRef<'_>) -> FromSqlResult<Self> {
        Ok(Option::<i64>::column_result(value)?.map(i64::cast_unsigned))
    }

    fn value(&self) -> Value {
        self.map(u64::cast_signed).into()
    }
}

impl Column for SessionState {
    fn of(value: ValueRef<'_>) -> FromSqlResult<Self> {
        let word = String::column_result(value)?;
        Ok([Self::Turn, Self::Cut].into_iter().find(|state| state.word() == word).unwrap_or_default())
    }

    fn value(&self) -> Value {
        self.word().to_owned().into()
    }
}

/// Declares the row, with the name of each field's column.
macro_rules! session_row {
    ($($column:literal => $field:ident: $type:ty, $doc:literal;)*) => {
        /// A session without events.
        #[allow(clippy::struct_excessive_bools, reason = "independent facts")]
        #[derive(Debug, Clone, PartialEq, Default)]
        pub struct SessionRow {
            $(#[doc = $doc] pub $field: $type,)*
        }

        const COLUMNS: &[&str] = &[$($column),*];

        impl SessionRow {
            fn values(&self) -> Vec<Value> {
                vec![$(self.$field.value()),*]
            }

            fn read(row: &Row<'_>, mut odd: impl FnMut(&'static str, rusqlite::Error) -> rusqlite::Result<()>)
                -> rusqlite::Result<Self> {
                Ok(Self { $($field: match value_of(row, $column) {
                    Ok(value) => value,
                    Err(error) => {
                        odd($column, error)?;
                        Default::default()
                    }
                },)* })
            }
        }
    };
}

session_row! {
    "uid" => uid: String, "Id of the session.";
    "spool_of" => spool_of: Option<String>, "Id of the session whose history it replays; empty if unknown.";
    "used" => used: i64, "The order of the last use; set by the store.";
    "agent" => agent: String, "The agent's name.";
    "command" => command: String, "The agent's program.";
    "args" => args: Vec<String>, "The program's arguments.";
    "agent_session" => agent_session: Option<String>, "The agent's id of the session.";
    "folder" => folder: PathBuf, "Folder of the session.";
    "roots" => roots: Vec<PathBuf>, "Additional folders.";
    "folder_mark" => folder_mark: Option<FolderMark>, "Identifies the folder after a rename.";
    "branch" => branch: Option<String>, "The branch of the folder.";
    "title" => title: Option<String>, "The title, of the user or the agent.";
    "own_title" => has_own_title: bool, "Whether the user set the title.";
    "owes_title" => owes_title: bool, "Whether the title has not been sent to the agent.";
    "first_prompt" => first_prompt: Option<String>, "The start of the first prompt.";
    "came_from" => came_from: Option<String>, "Id of the session that this one continues.";
    "chosen" => chosen: Vec<Setting>, "Selected mode, model and options.";
    "imported" => is_imported: bool, "Whether it was imported and not continued; it has no program and no roots.";
    "is_child" => is_child: bool, "Whether it belongs to a subagent.";
    "created" => created_ms: i64, "Unix milliseconds.";
    "updated" => updated_ms: i64, "Unix milliseconds of the last prompt, answer or end of a turn.";
    "state" => state: SessionState, "Whether a turn is running, or was interrupted.";
    "turns" => turn_count: u32, "Number of turns.";
    "next_seq" => next_seq: i64, "The number of the next event; approximately the number of events.";
    "usage" => usage: Option<Usage>, "Context and cost.";
    "draft" => draft: String, "Text of the composer.";
    "queue" => queue: Vec<String>, "Queued prompts.";
    "stash" => stash: Vec<String>, "Drafts that were put aside.";
    "told" => reported: Vec<u64>, "The differences to the agent's history that the user was told.";
    "owner" => owner: Option<String>, "Mark of the parlor that has the session open.";
    "agent_pid" => agent_pid: Option<u32>, "Process id of the agent in that parlor.";
    "agent_born" => agent_born: Option<u64>, "Start time of that process in ticks, which makes the process id unique.";
    "run" => run: Option<String>, "Mark of the parlor that last had the session open.";
    "opened" => opened_ms: i64, "Unix milliseconds of the time when it was opened there; 0 if unknown.";
    "tab" => tab: Option<u32>, "Place of its tab there; `None` if the tab was closed.";
    "front" => is_front: bool, "Whether that tab was the active one.";
    "views" => views: Vec<String>, "Ids of the sessions that were open read-only in other tabs there.";
}

/// Inserts or updates a row. The order of use is set separately.
static SAVE: LazyLock<String> = LazyLock::new(|| {
    let marks: Vec<String> = (1..=COLUMNS.len()).map(|n| format!("?{n}")).collect();
    let changed = COLUMNS.iter().filter(|column| !["uid", "used", "created"].contains(column));
    let changed: Vec<String> = changed.map(|column| format!("{column} = excluded.{column}")).collect();
    format!(
        "INSERT INTO sessions ({}) VALUES ({}) ON CONFLICT (uid) DO UPDATE SET {} RETURNING id",
        COLUMNS.join(", "),
        marks.join(", "),
        changed.join(", ")
    )
});

impl SessionRow {
    /// The name in lists: the title, or the first prompt, also if it was not sent.
    pub fn name(&self) -> &str {
        let given = self.title.as_deref().filter(|title| !title.trim().is_empty());
        given.or(self.first_words()).unwrap_or("(no prompt yet)")
    }

    /// The first prompt, or else the one that waits in the queue, the composer or the stash.
    pub(super) fn first_words(&self) -> Option<&str> {
        let unsent = self.queue.iter().chain([&self.draft]).chain(self.stash.last());
        let first_line = || unsent.flat_map(|text| text.lines()).find(|line| !line.trim().is_empty());
        self.first_prompt.as_deref().or_else(first_line)
    }

    /// Marks the session as closed.
    pub(super) fn release(&mut self) {
        (self.owner, self.agent_pid, self.agent_born) = (None, None, None);
    }

    /// Converts the row for the app; the caller adds the events.
    pub(super) fn to_saved(&self) -> RecordedSession {
        RecordedSession {
            head: SessionHead {
                saved_as: Some(self.uid.clone()),
                agent: self.agent.clone(),
                command: self.command.clone(),
                args: self.args.clone(),
                agent_pid: None,
                session: self.agent_session.as_deref().map(Into::into),
                workspace: SessionWorkspace {
                    cwd: self.folder.clone(),
                    remote: None,
                    additional_directories: self.roots.iter().cloned().map(UserRoot::given).collect(),
                    mcp_servers: Vec::new(),
                },
                branch: self.branch.clone(),
                title: self.title.clone(),
                has_own_title: self.has_own_title,
                owes_title: self.owes_title,
                is_child: self.is_child,
                goes_on: false,
                tab: self.tab.unwrap_or_default(),
                is_front: self.is_front,
                views: self.views.clone(),
                chosen: self.chosen.clone(),
            },
            usage: self.usage.clone(),
            draft: self.draft.clone(),
            queue: self.queue.clone(),
            stash: self.stash.clone(),
            reported: self.reported.clone(),
            end_seq: self.next_seq,
            ..RecordedSession::default()
        }
    }

    /// Reads a row; fails if a value is odd.
    pub(super) fn of(row: &Row<'_>) -> rusqlite::Result<Self> {
        let read = Self::read(row, |_, error| Err(error))?;
        if read.next_seq < 0 {
            return Err(rusqlite::Error::IntegralValueOutOfRange(0, read.next_seq));
        }
        Ok(read.without_program())
    }

    /// Reads what is readable of a row, also of one with fewer columns; returns the names of odd columns.
    pub(super) fn salvaged(row: &Row<'_>) -> rusqlite::Result<(Self, Vec<&'static str>)> {
        let mut odd = Vec::new();
        let read = Self::read(row, |column, error| {
            odd.extend(db::is_odd(&error).then_some(column));
            Ok(())
        })?;
        Ok((read.without_program(), odd))
    }

    /// An imported file must not start a program or add a root. Older versions saved both.
    fn without_program(mut self) -> Self {
        if self.is_imported {
            (self.command, self.args, self.roots) = Default::default();
        }
        self
    }

    /// Inserts or updates the row, and returns its number.
    pub(super) fn save(&self, conn: &Connection) -> rusqlite::Result<i64> {
        conn.prepare_cached(&SAVE)?.query_row(params_from_iter(self.values()), |row| row.get(0))
    }
}

fn value_of<T: Column>(row: &Row<'_>, column: &'static str) -> rusqlite::Result<T> {
    let value = row.get_ref(column)?;
    T::of(value)
        .map_err(|error| rusqlite::Error::FromSqlConversionFailure(0, value.data_type(), Box::new(error)))
}

/// The readable results of a query, and the number of rows with odd values.
pub(super) fn readable<T>(
    conn: &Connection,
    sql: &str,
    params: impl Params,
    mut of: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<(Vec<T>, u64)> {
    let mut query = conn.prepare_cached(sql)?;
    let mut rows = query.query(params)?;
    let (mut found, mut odd_count) = (Vec::new(), 0);
    while let Some(row) = rows.next()? {
        match of(row) {
            Ok(value) => found.push(value),
            Err(error) if db::is_odd(&error) => odd_count += 1,
            Err(error) => return Err(error),
        }
    }
    Ok((found, odd_count))
}

pub(super) fn numbered(row: &Row<'_>) -> rusqlite::Result<(i64, SessionRow)> {
    Ok((row.get("id")?, SessionRow::of(row)?))
}

pub(super) fn by_uid(conn: &Connection, uid: &str) -> rusqlite::Result<Option<(i64, SessionRow)>> {
    conn.prepare_cached("SELECT * FROM sessions WHERE uid = ?1")?.query_row([uid], numbered).optional()
}

/// The row with an id, and its number; fails if there is none.
pub(super) fn existing(conn: &Connection, uid: &str) -> Result<(i64, SessionRow), Fault> {
    by_uid(conn, uid)?.ok_or_else(|| Fault::NoSession(uid.to_owned()))
}

/// The latest row of an agent's session id, and its number.
pub(super) fn by_agent_id(
    conn: &Connection,
    agent: &str,
    agent_session: &str,
) -> rusqlite::Result<Option<(i64, SessionRow)>> {
    let sql = "SELECT * FROM sessions WHERE agent_session = ?1 AND agent = ?2 AND spool_of IS NULL
        ORDER BY used DESC, id DESC LIMIT 9";
    Ok(readable(conn, sql, [agent_session, agent], numbered)?.0.into_iter().next())
}

/// The next place in the order of use.
pub(super) fn next_use(conn: &Connection) -> rusqlite::Result<i64> {
    let sql = "SELECT coalesce(max(used), 0) FROM sessions WHERE typeof(used) = 'integer'";
    Ok(conn.prepare_cached(sql)?.query_row([], |row| row.get::<_, i64>(0))?.saturating_add(1))
}

pub(super) fn delete(conn: &Connection, id: i64) -> rusqlite::Result<()> {
    for sql in [
        "DELETE FROM docs WHERE session = ?1",
        "DELETE FROM log WHERE session = ?1",
        "DELETE FROM held WHERE uid = (SELECT uid FROM sessions WHERE id = ?1)",
        "DELETE FROM sessions WHERE id = ?1",
    ] {
        conn.prepare_cached(sql)?.execute([id])?;
    }
    Ok(())
}
