//! The row of a session.

use std::path::PathBuf;

use rusqlite::{Connection, OptionalExtension as _, Row, named_params};

use super::Fault;
use crate::model::{RecordedSession, SessionHead, SessionWorkspace, Setting, Usage, UserRoot};
use crate::services::folder_relocation::FolderMark;

/// State of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SessionState {
    /// No turn is running.
    #[default]
    Idle,
    /// A turn is running.
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

    fn of(word: &str) -> Self {
        match word {
            "turn" => Self::Turn,
            "cut" => Self::Cut,
            _ => Self::Idle,
        }
    }
}

/// A session without events.
#[allow(clippy::struct_excessive_bools, reason = "independent facts")]
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SessionRow {
    /// Id of the session.
    pub uid: String,
    /// The agent's name.
    pub agent: String,
    /// The agent's program.
    pub command: String,
    /// The program's arguments.
    pub args: Vec<String>,
    /// The agent's id of the session.
    pub agent_session: Option<String>,
    /// Folder of the session.
    pub folder: PathBuf,
    /// Additional folders.
    pub roots: Vec<PathBuf>,
    /// The branch of the folder.
    pub branch: Option<String>,
    pub title: Option<String>,
    /// Whether the user set the title.
    pub has_own_title: bool,
    /// Whether the title has not been sent to the agent.
    pub owes_title: bool,
    /// Id of the session that this one continues.
    pub came_from: Option<String>,
    /// Selected mode, model and options.
    pub chosen: Vec<Setting>,
    /// Whether it was imported and not yet continued here: then it has no program and no roots.
    pub is_imported: bool,
    /// Identifies the folder after a rename.
    pub folder_mark: Option<FolderMark>,
    /// The start of the first prompt.
    pub first_prompt: Option<String>,
    /// Whether it belongs to a subagent.
    pub is_child: bool,
    /// Unix milliseconds.
    pub created_ms: i64,
    /// Unix milliseconds of the last prompt, answer or end of a turn.
    pub updated_ms: i64,
    pub state: SessionState,
    /// Number of turns.
    pub turn_count: u32,
    /// The number of the next event; approximately the number of events.
    pub next_seq: i64,
    /// Context and cost.
    pub usage: Option<Usage>,
    /// Text of the composer.
    pub draft: String,
    /// Queued prompts.
    pub queue: Vec<String>,
    /// Mark of the parlor that has the session open.
    pub owner: Option<String>,
    /// Process id of the agent in that parlor.
    pub agent_pid: Option<u32>,
    /// Start time of that process in ticks, which makes the process id unique.
    pub agent_born: Option<u64>,
    /// Mark of the parlor that last had the session open.
    pub run: Option<String>,
    /// Unix milliseconds of the time when it was opened there; 0 if unknown.
    pub opened_ms: i64,
    /// Place of its tab there; `None` if the tab was closed.
    pub tab: Option<u32>,
    /// Whether that tab was the active one.
    pub is_front: bool,
}

impl SessionRow {
    /// The name in lists: the title, or the first prompt, also if it was not sent.
    pub fn name(&self) -> &str {
        let given = self.title.as_deref().filter(|title| !title.trim().is_empty());
        given.or(self.first_words()).unwrap_or("(no prompt yet)")
    }

    /// Whether it has nothing to resume: no turn, and nothing that the user wrote.
    pub(super) fn is_blank(&self) -> bool {
        self.turn_count == 0 && !self.has_own_title && self.first_words().is_none()
    }

    /// The first prompt, or else the one that waits in the queue or the composer.
    pub(super) fn first_words(&self) -> Option<&str> {
        let unsent = self.queue.first().map_or(self.draft.as_str(), String::as_str);
        let first_line = || unsent.lines().find(|line| !line.trim().is_empty());
        self.first_prompt.as_deref().or_else(first_line)
    }

    /// Converts the row for the app; the caller adds the events.
    pub(super) fn to_kept(&self) -> RecordedSession {
        RecordedSession {
            head: SessionHead {
                kept_as: Some(self.uid.clone()),
                agent: self.agent.clone(),
                command: self.command.clone(),
                args: self.args.clone(),
                agent_pid: None,
                session: self.agent_session.as_deref().map(Into::into),
                workspace: SessionWorkspace {
                    cwd: self.folder.clone(),
                    far: None,
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
                chosen: self.chosen.clone(),
            },
            usage: self.usage.clone(),
            draft: self.draft.clone(),
            queue: self.queue.clone(),
            end_seq: self.next_seq,
            ..RecordedSession::default()
        }
    }

    pub(super) fn of(row: &Row<'_>) -> rusqlite::Result<Self> {
        let json = |name: &str| row.get::<_, Option<String>>(name);
        let is_imported: bool = row.get("imported")?;
        // An imported file must not start a program or add a root. Older versions saved both.
        let own = |name: &str| if is_imported { Ok(None) } else { json(name) };
        Ok(Self {
            is_imported,
            uid: row.get("uid")?,
            agent: row.get("agent")?,
            command: own("command")?.unwrap_or_default(),
            args: parsed(own("args")?).unwrap_or_default(),
            agent_session: row.get("agent_session")?,
            folder: row.get::<_, String>("folder")?.into(),
            roots: parsed(own("roots")?).unwrap_or_default(),
            branch: row.get("branch")?,
            title: row.get("title")?,
            has_own_title: row.get("own_title")?,
            owes_title: row.get("owes_title")?,
            came_from: row.get("came_from")?,
            chosen: parsed(json("chosen")?).unwrap_or_default(),
            folder_mark: parsed(json("folder_mark")?),
            first_prompt: row.get("first_prompt")?,
            is_child: row.get("is_child")?,
            created_ms: row.get("created")?,
            updated_ms: row.get("updated")?,
            state: SessionState::of(&row.get::<_, String>("state")?),
            turn_count: row.get("turns")?,
            next_seq: row.get("next_seq")?,
            usage: parsed(json("usage")?),
            draft: row.get("draft")?,
            queue: parsed(json("queue")?).unwrap_or_default(),
            owner: row.get("owner")?,
            agent_pid: row.get("agent_pid")?,
            agent_born: row.get::<_, Option<i64>>("agent_born")?.map(i64::cast_unsigned),
            run: row.get("run")?,
            opened_ms: row.get("opened")?,
            tab: row.get("tab")?,
            is_front: row.get("front")?,
        })
    }

    /// Inserts or updates the row, and returns its number.
    pub(super) fn save(&self, conn: &Connection) -> rusqlite::Result<i64> {
        let mut query = conn.prepare_cached(
            "INSERT INTO sessions (uid, agent, command, args, agent_session, folder, roots, branch, title,
                first_prompt, is_child, created, updated, state, turns, next_seq, usage, draft, queue, owner,
                agent_pid, agent_born, own_title, owes_title, came_from, folder_mark, chosen, imported, run,
                opened, tab, front)
            VALUES (:uid, :agent, :command, :args, :agent_session, :folder, :roots, :branch, :title,
                :first_prompt, :is_child, :created, :updated, :state, :turns, :next_seq, :usage, :draft, :queue,
                :owner, :agent_pid, :agent_born, :own_title, :owes_title, :came_from, :folder_mark, :chosen,
                :imported, :run, :opened, :tab, :front)
            ON CONFLICT (uid) DO UPDATE SET agent = excluded.agent, command = excluded.command,
                args = excluded.args, agent_session = excluded.agent_session, folder = excluded.folder,
                roots = excluded.roots, branch = excluded.branch, title = excluded.title,
                first_prompt = excluded.first_prompt, updated = excluded.updated, state = excluded.state,
                turns = excluded.turns, next_seq = excluded.next_seq, usage = excluded.usage,
                draft = excluded.draft, queue = excluded.queue, owner = excluded.owner,
                agent_pid = excluded.agent_pid, agent_born = excluded.agent_born,
                own_title = excluded.own_title, owes_title = excluded.owes_title, came_from = excluded.came_from,
                folder_mark = excluded.folder_mark, chosen = excluded.chosen, imported = excluded.imported,
                run = excluded.run, opened = excluded.opened, tab = excluded.tab, front = excluded.front
            RETURNING id",
        )?;
        query.query_row(
            named_params! {
                ":uid": self.uid,
                ":agent": self.agent,
                ":command": self.command,
                ":args": text_of(&self.args),
                ":agent_session": self.agent_session,
                ":folder": self.folder.to_string_lossy(),
                ":roots": text_of(&self.roots),
                ":branch": self.branch,
                ":title": self.title,
                ":first_prompt": self.first_prompt,
                ":is_child": self.is_child,
                ":created": self.created_ms,
                ":updated": self.updated_ms,
                ":state": self.state.word(),
                ":turns": self.turn_count,
                ":next_seq": self.next_seq,
                ":usage": self.usage.as_ref().map(text_of),
                ":draft": self.draft,
                ":queue": text_of(&self.queue),
                ":owner": self.owner,
                ":agent_pid": self.agent_pid,
                ":agent_born": self.agent_born.map(u64::cast_signed),
                ":own_title": self.has_own_title,
                ":owes_title": self.owes_title,
                ":came_from": self.came_from,
                ":folder_mark": self.folder_mark.as_ref().map(text_of),
                ":chosen": text_of(&self.chosen),
                ":imported": self.is_imported,
                ":run": self.run,
                ":opened": self.opened_ms,
                ":tab": self.tab,
                ":front": self.is_front,
            },
            |row| row.get(0),
        )
    }
}

/// The row with an id, and its number.
pub(super) fn by_uid(conn: &Connection, uid: &str) -> rusqlite::Result<Option<(i64, SessionRow)>> {
    conn.prepare_cached("SELECT * FROM sessions WHERE uid = ?1")?
        .query_row([uid], |row| Ok((row.get("id")?, SessionRow::of(row)?)))
        .optional()
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
    conn.prepare_cached(
        "SELECT * FROM sessions WHERE agent_session = ?1 AND agent = ?2 ORDER BY updated DESC LIMIT 1",
    )?
    .query_row([agent_session, agent], |row| Ok((row.get("id")?, SessionRow::of(row)?)))
    .optional()
}

/// Encodes as JSON; a path that is not Unicode is saved lossily.
fn text_of<T: serde::Serialize>(value: &T) -> String {
    serde_json::to_string(value).unwrap_or_else(|_| "null".to_owned())
}

/// Decodes JSON; invalid values become the default.
fn parsed<T: serde::de::DeserializeOwned>(text: Option<String>) -> Option<T> {
    serde_json::from_str(&text?).ok()
}
