//! The texts of the search index: one for each message, tool call and error, so that words across chunks are found.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use rusqlite::{Connection, params};

use super::format;
use crate::model::{
    Access, ContentBlock, DiffChange, FileDiff, MessageId, Patch, Record, Role, SessionUpdate, Severity,
    ToolCallId, ToolCallPatch, ToolContent, ToolKind, ToolStatus, TurnOutcome,
};

/// Maximum size of the text of one row in bytes; a longer message continues in the next row.
const MAX_TEXT_BYTES: usize = 64 << 10;

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
    /// Processes an event, and passes the changed rows to `put`, with the numbers of their first events.
    pub fn take(
        &mut self,
        seq: i64,
        turn: u32,
        at_ms: i64,
        record: &Record,
        put: &mut dyn FnMut(i64, DocRow),
    ) {
        let mut put = |seq: i64, row: DocRow| {
            if !row.text.trim().is_empty() {
                put(seq, row);
            }
        };
        let row = |kind, is_error, text: String| {
            let text = cut(text, MAX_TEXT_BYTES);
            DocRow { turn, at_ms, kind, is_error, text }
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
                        Role::Agent | Role::SubagentMessage => "answer",
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
                put(seq, row("prompt", false, text.to_string()));
            }
            Record::Update(SessionUpdate::Tool(patch)) | Record::Asked { tool: patch, .. } => {
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
            Record::Answered { question, answer, .. } => {
                put(seq, row("prompt", false, format!("{question}\n{answer}")));
            }
            Record::Notice { severity, title, detail, kind: _ } => {
                let text = format!("{title}\n{}", detail.as_deref().unwrap_or_default());
                put(seq, row("notice", *severity == Severity::Error, text));
            }
            Record::Inserted { updates, .. } => {
                self.message = None;
                // All texts of the item are one row.
                let (mut docs, mut rows) = (Self::default(), BTreeMap::new());
                for (nth, update) in (0..).zip(updates) {
                    let update = Record::Update(update.clone());
                    docs.take(nth, turn, at_ms, &update, &mut |nth, row| drop(rows.insert(nth, row)));
                }
                let texts: Vec<&str> = rows.values().map(|row| row.text.as_str()).collect();
                let text = texts.join("\n");
                if let Some(first) = rows.into_values().next() {
                    put(seq, DocRow { text: cut(text, MAX_TEXT_BYTES), ..first });
                }
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

impl DocRow {
    /// Adds or changes the row.
    pub fn save(&self, conn: &Connection, session: i64, seq: i64) -> rusqlite::Result<()> {
        let sql = "INSERT INTO docs (session, seq, turn, at, kind, is_error, text) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
            ON CONFLICT (session, seq) DO UPDATE
            SET kind = excluded.kind, is_error = excluded.is_error, text = excluded.text";
        let Self { turn, at_ms, kind, is_error, text } = self;
        conn.prepare_cached(sql)?.execute(params![session, seq, turn, at_ms, kind, is_error, text]).map(drop)
    }
}

/// Makes the texts of a session anew, or those of some turns. A copy has none for the turns that it shares with its
/// source; it gets none for those.
pub(super) fn rebuild(
    conn: &Connection,
    session: i64,
    turns: Option<&BTreeSet<u32>>,
) -> rusqlite::Result<()> {
    /// Number of rows after which they are written.
    const MANY: usize = 256;
    let mut known = BTreeSet::new();
    for turn in turns.into_iter().flatten() {
        let sql = "DELETE FROM docs WHERE session = ?1 AND turn = ?2";
        if conn.prepare_cached(sql)?.execute(params![session, turn])? > 0 {
            known.insert(*turn);
        }
    }
    let mut query =
        conn.prepare_cached("SELECT seq, turn, at, body FROM log WHERE session = ?1 ORDER BY seq")?;
    let mut rows = query.query([session])?;
    let (mut docs, mut found) = (Docs::default(), BTreeMap::new());
    loop {
        let row = rows.next()?;
        if row.is_none() || found.len() >= MANY {
            for (seq, doc) in std::mem::take(&mut found) {
                DocRow::save(&doc, conn, session, seq)?;
            }
        }
        let Some(row) = row else { return Ok(()) };
        let (Ok(seq), Ok(turn), Ok(at_ms)) = (row.get(0), row.get(1), row.get(2)) else { continue };
        let Some(record) = row.get_ref(3)?.as_str().ok().and_then(format::decode) else { continue };
        docs.take(seq, turn, at_ms, &record, &mut |seq, row| {
            if turns.is_none() || known.contains(&row.turn) {
                found.insert(seq, row);
            }
        });
    }
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
