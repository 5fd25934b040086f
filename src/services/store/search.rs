//! Full-text search of sessions.
//!
//! The index has one text for each message, tool call and error, so that words across chunks are found.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::path::PathBuf;

use rusqlite::{Connection, named_params};

use crate::model::ContentBlock;
use crate::model::{
    Access, DiffChange, FileDiff, MessageId, Patch, Record, Role, SessionUpdate, Severity, ToolCallId,
    ToolCallPatch, ToolContent, ToolKind, ToolStatus, TurnOutcome,
};

/// Maximum size of the text of one row in bytes; a longer message continues in the next row.
pub(super) const MAX_TEXT_BYTES: usize = 64 << 10;

/// The same limit for chunked messages, whose last row is written again with each batch.
const MAX_GROWING_BYTES: usize = 4 << 10;

/// Maximum size of the text of one part of a tool call.
const MAX_PART_BYTES: usize = 16 << 10;

/// Maximum number of tool calls whose rows can still grow; updates of older calls start a new row.
const MAX_CALLS: usize = 256;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DocRow {
    pub turn: u32,
    pub at_ms: i64,
    pub kind: &'static str,
    pub is_error: bool,
    pub text: String,
}

/// The rows that can still grow.
#[derive(Debug, Default)]
pub(super) struct Docs {
    message: Option<OpenMessage>,
    /// The last tool calls of the running turn.
    calls: HashMap<ToolCallId, Call>,
    order: VecDeque<ToolCallId>,
}

#[derive(Debug)]
struct OpenMessage {
    seq: i64,
    role: Role,
    message: Option<MessageId>,
    row: DocRow,
}

#[derive(Debug, Default)]
struct Call {
    seq: i64,
    turn: u32,
    at_ms: i64,
    kind: ToolKind,
    has_failed: bool,
    title: String,
    input: String,
    diffs: String,
    output: String,
    is_command: bool,
}

impl Docs {
    /// Whether an event updates a known tool call.
    pub fn knows(&self, record: &Record) -> bool {
        match record {
            Record::Update(SessionUpdate::Tool(patch)) | Record::Asked(patch) => {
                self.calls.contains_key(&patch.id)
            }
            _ => false,
        }
    }

    /// Processes an event, and adds the changed rows to `out`.
    pub fn take(
        &mut self,
        uid: &str,
        seq: i64,
        turn: u32,
        at_ms: i64,
        record: &Record,
        out: &mut BTreeMap<(String, i64), DocRow>,
    ) {
        let mut put = |seq: i64, row: DocRow| {
            if !row.text.trim().is_empty() {
                out.insert((uid.to_owned(), seq), row);
            }
        };
        let row = |kind, is_error, text: String| DocRow {
            turn,
            at_ms,
            kind,
            is_error,
            text: cut(text, MAX_TEXT_BYTES),
        };
        match record {
            Record::Prompt { text, .. } => {
                self.message = None;
                self.calls.clear();
                self.order.clear();
                put(seq, row("prompt", false, text.clone()));
            }
            Record::Update(update) if update.appended_text().is_some() => {
                let Some((role, message, text)) = update.appended_text() else { return };
                let continues = self.message.as_ref().is_some_and(|open| {
                    open.role == role
                        && (message.is_none() || message == open.message.as_ref())
                        && open.row.text.len() + text.len() <= MAX_GROWING_BYTES
                });
                if continues {
                    if let Some(open) = &mut self.message {
                        open.row.text.push_str(text);
                        put(open.seq, open.row.clone());
                    }
                } else {
                    let kind = match role {
                        Role::User => "prompt",
                        Role::Agent | Role::Letter => "answer",
                        Role::Thought => "thought",
                    };
                    let row = row(kind, false, text.to_owned());
                    put(seq, row.clone());
                    self.message = Some(OpenMessage { seq, role, message: message.cloned(), row });
                }
            }
            // A prompt that was added to a running turn.
            Record::Update(SessionUpdate::Block {
                role: Role::User,
                message: None,
                block: ContentBlock::Text(text),
            }) => {
                self.message = None;
                put(seq, row("prompt", false, text.clone()));
            }
            Record::Update(SessionUpdate::Tool(patch)) | Record::Asked(patch) => {
                self.message = None;
                let call = self.calls.entry(patch.id.clone()).or_insert_with(|| {
                    self.order.push_back(patch.id.clone());
                    Call { seq, turn, at_ms, ..Call::default() }
                });
                call.apply(patch);
                put(call.seq, call.row());
                if self.order.len() > MAX_CALLS
                    && let Some(oldest) = self.order.pop_front()
                {
                    self.calls.remove(&oldest);
                }
            }
            Record::Access(access) => {
                let (kind, what) = match &access.access {
                    Access::Read { path } => ("tool", path.to_string_lossy().into_owned()),
                    Access::Write { path } => ("edit", path.to_string_lossy().into_owned()),
                    Access::Run(command) => ("command", command.line.clone()),
                    Access::SignIn { line } => ("command", line.clone()),
                };
                let change = diffs_text(access.diff().into_iter());
                put(
                    seq,
                    row(kind, access.error.is_some(), format!("{what}\n{}\n{change}", access.description())),
                );
            }
            Record::Command { command, output, exit, .. } => {
                let text = format!("{}\n{}", command.as_deref().unwrap_or_default(), part(&plain(output)));
                put(seq, row("command", exit.code.is_some_and(|code| code != 0), text));
            }
            Record::Answered { question, answer } => {
                put(seq, row("prompt", false, format!("{question}\n{answer}")));
            }
            Record::Notice { severity, title, detail, kind: _ } => {
                let text = format!("{title}\n{}", detail.as_deref().unwrap_or_default());
                put(seq, row("notice", *severity == Severity::Error, text));
            }
            Record::Inserted { updates, .. } => {
                self.message = None;
                if let Some(row) = inserted(updates, turn, at_ms) {
                    put(seq, row);
                }
            }
            Record::Replaced => {
                self.message = None;
                self.calls.clear();
                self.order.clear();
            }
            Record::TurnEnded(outcome) => {
                self.message = None;
                match outcome {
                    TurnOutcome::Failed { error, .. } => put(seq, row("error", true, error.clone())),
                    TurnOutcome::AgentDied { cause, stderr_tail, .. } => {
                        put(seq, row("error", true, format!("{cause}\n{}", stderr_tail.join("\n"))));
                    }
                    TurnOutcome::Stopped { .. } | TurnOutcome::Cut => {}
                }
            }
            _ => {}
        }
    }
}

/// The row of an inserted item of the agent's history, with the texts of all of its updates.
pub(super) fn inserted(updates: &[SessionUpdate], turn: u32, at_ms: i64) -> Option<DocRow> {
    let (mut docs, mut rows) = (Docs::default(), BTreeMap::new());
    for (seq, update) in (0..).zip(updates) {
        docs.take("", seq, turn, at_ms, &Record::Update(update.clone()), &mut rows);
    }
    let mut rows = rows.into_values();
    let mut all = rows.next()?;
    for row in rows {
        all.text.push('\n');
        all.text.push_str(&row.text);
    }
    all.text = cut(all.text, MAX_TEXT_BYTES);
    Some(all)
}

impl Call {
    fn apply(&mut self, patch: &ToolCallPatch) {
        if let Patch::Set(title) = &patch.title {
            self.title.clone_from(title);
        }
        if let Patch::Set(kind) = &patch.kind {
            self.kind = *kind;
        }
        if let Patch::Set(status) = &patch.status {
            self.has_failed = *status == ToolStatus::Failed;
        }
        if let Patch::Set(input) = &patch.input {
            self.is_command = input.command.is_some();
            let file = input.path.as_ref().map(|path| path.to_string_lossy().into_owned());
            let parts = [input.command.clone(), file, input.query.clone(), input.url.clone()];
            self.input = parts.into_iter().flatten().collect::<Vec<_>>().join("\n");
            if !input.diffs.is_empty() {
                self.diffs = diffs_text(input.diffs.iter());
            }
        }
        if let Patch::Set(content) = &patch.content {
            let diffs = content.iter().filter_map(|piece| match piece {
                ToolContent::Diff(diff) => Some(diff),
                _ => None,
            });
            let text = diffs_text(diffs);
            if !text.is_empty() {
                self.diffs = text;
            }
            let texts: Vec<&str> = content
                .iter()
                .filter_map(|piece| match piece {
                    ToolContent::Block(ContentBlock::Text(text)) => Some(part(text)),
                    _ => None,
                })
                .collect();
            if !texts.is_empty() {
                self.output = texts.join("\n");
            }
        }
        if let Patch::Set(output) = &patch.output_text {
            part(output).clone_into(&mut self.output);
        }
    }

    fn row(&self) -> DocRow {
        let kind = match self.kind {
            ToolKind::Edit | ToolKind::Delete | ToolKind::Move => "edit",
            _ if !self.diffs.is_empty() => "edit",
            ToolKind::Execute => "command",
            _ if self.is_command => "command",
            _ => "tool",
        };
        let parts = [&self.title, &self.input, &self.diffs, &self.output];
        let text = parts.into_iter().filter(|part| !part.is_empty()).cloned().collect::<Vec<_>>().join("\n");
        let text = cut(text, MAX_TEXT_BYTES);
        DocRow { turn: self.turn, at_ms: self.at_ms, kind, is_error: self.has_failed, text }
    }
}

fn diffs_text<'a>(diffs: impl Iterator<Item = &'a FileDiff>) -> String {
    let mut text = String::new();
    for diff in diffs {
        let change = match &diff.change {
            DiffChange::Texts { new, .. } => new,
            DiffChange::Patch(patch) => patch,
        };
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&diff.path.to_string_lossy());
        text.push('\n');
        text.push_str(part(change));
    }
    text
}

fn part(text: &str) -> &str {
    text.get(..boundary(text, MAX_PART_BYTES)).unwrap_or(text)
}

fn cut(mut text: String, max_bytes: usize) -> String {
    text.truncate(boundary(&text, max_bytes));
    text
}

/// The last character boundary that is not after `max_bytes`.
fn boundary(text: &str, max_bytes: usize) -> usize {
    let end = max_bytes.min(text.len());
    (0..=end).rev().find(|position| text.is_char_boundary(*position)).unwrap_or(0)
}

/// Removes escape sequences, as far as the search requires it.
fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\u{1b}' {
            out.push(c);
        } else if chars.next() == Some('[') {
            // A control sequence ends with a byte from @ to ~.
            for c in chars.by_ref() {
                if ('@'..='~').contains(&c) {
                    break;
                }
            }
        }
    }
    out
}

/// A search query with filters.
#[derive(Debug, Clone, Default)]
pub struct Search {
    /// Words that must all occur; `"quoted"` words must be adjacent, `word*` matches a prefix.
    pub text: String,
    pub agent: Option<String>,
    /// Only sessions in this folder or below it.
    pub folder: Option<PathBuf>,
    /// Start of the time range, in Unix milliseconds.
    pub since_ms: Option<i64>,
    /// End of the time range (exclusive), in Unix milliseconds.
    pub until_ms: Option<i64>,
    /// Only these kinds: `prompt`, `answer`, `thought`, `edit`, `command`, `tool`, `error`, `notice`.
    pub kinds: Vec<&'static str>,
    /// Only failed items.
    pub only_errors: bool,
    /// Maximum number of hits.
    pub limit: u32,
}

/// A search result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hit {
    pub uid: String,
    pub name: String,
    pub agent: String,
    pub folder: PathBuf,
    /// The number of its first event.
    pub seq: i64,
    pub turn: u32,
    /// Unix milliseconds.
    pub at_ms: i64,
    pub kind: String,
    pub is_error: bool,
    /// The text around the matches; each match is between `\u{2}` and `\u{3}`.
    pub snippet: String,
}

/// Searches for words. The best matches are first, then the newest.
pub(super) fn search(conn: &Connection, search: &Search) -> rusqlite::Result<Vec<Hit>> {
    let pattern = query_text(&search.text);
    if pattern.is_empty() {
        return Ok(Vec::new());
    }
    // Folders are compared as plain text, so that characters in a name have no special meaning.
    let folder = search.folder.as_ref().map(|folder| folder.to_string_lossy().into_owned());
    let below = folder.as_ref().map(|folder| format!("{}/", folder.trim_end_matches('/')));
    let kinds = format!(",{},", search.kinds.join(","));
    let mut query = conn.prepare_cached(
        // Snippets are expensive, so they are computed only for the final rows.
        "WITH found AS MATERIALIZED (
            SELECT d.id, d.seq, d.turn, d.at, d.kind, d.is_error, s.uid, s.agent, s.folder,
                    coalesce(nullif(trim(s.title), ''), s.first_prompt, '') AS name, docs_fts.rank AS score
                FROM docs_fts JOIN docs d ON d.id = docs_fts.rowid JOIN sessions s ON s.id = d.session
                WHERE docs_fts MATCH :pattern
                    AND (:agent IS NULL OR s.agent = :agent)
                    AND (:folder IS NULL OR s.folder = :folder OR substr(s.folder, 1, length(:below)) = :below)
                    AND (:since IS NULL OR d.at >= :since) AND (:until IS NULL OR d.at < :until)
                    AND (:kinds = ',,' OR instr(:kinds, ',' || d.kind || ',') > 0)
                    AND (NOT :errors OR d.is_error)
                ORDER BY docs_fts.rank, d.at DESC LIMIT :limit
            )
            SELECT uid, name, agent, folder, seq, turn, at, kind, is_error,
                    (SELECT snippet(docs_fts, 0, char(2), char(3), '…', 24) FROM docs_fts
                        WHERE docs_fts MATCH :pattern AND docs_fts.rowid = found.id)
                FROM found ORDER BY score, at DESC",
    )?;
    let params = named_params! {
        ":pattern": pattern,
        ":agent": search.agent,
        ":folder": folder,
        ":below": below,
        ":since": search.since_ms,
        ":until": search.until_ms,
        ":kinds": kinds,
        ":errors": search.only_errors,
        ":limit": search.limit,
    };
    let rows = query.query_map(params, |row| {
        Ok(Hit {
            uid: row.get(0)?,
            name: row.get(1)?,
            agent: row.get(2)?,
            folder: row.get::<_, String>(3)?.into(),
            seq: row.get(4)?,
            turn: row.get(5)?,
            at_ms: row.get(6)?,
            kind: row.get(7)?,
            is_error: row.get(8)?,
            snippet: row.get(9)?,
        })
    })?;
    rows.collect()
}

/// The query in FTS5 syntax, with all characters of a word quoted.
fn query_text(text: &str) -> String {
    let mut terms: Vec<String> = Vec::new();
    for (index, piece) in text.split('"').enumerate() {
        if index % 2 == 1 {
            terms.push(format!("\"{piece}\""));
            continue;
        }
        for word in piece.split_whitespace() {
            let (stem, star) = word.strip_suffix('*').map_or((word, ""), |stem| (stem, "*"));
            if stem.chars().any(char::is_alphanumeric) {
                terms.push(format!("\"{stem}\"{star}"));
            }
        }
    }
    terms.retain(|term| term.chars().any(char::is_alphanumeric));
    terms.join(" ")
}
