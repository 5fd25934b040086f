//! Tables and JSON of sessions and search results.

use std::fmt::Write as _;

use serde::Serialize;

use super::time;
use crate::model::ArchiveHit;
use crate::store::{SessionRow, pretty};
use crate::ui::text::{self, sanitize};

/// Maximum width of a name, in columns.
const NAME_COLS: usize = 60;

/// A table with one line per session.
pub fn table(rows: &[SessionRow], with_folder: bool, now_ms: i64) -> String {
    let lines: Vec<[String; 4]> = rows
        .iter()
        .map(|row| {
            let state = match row.state.word() {
                "idle" => String::new(),
                word => format!(" ({word})"),
            };
            let agent = format!("{}{state}", line_of(&row.agent, 24));
            [
                line_of(&row.uid, NAME_COLS),
                time::ago(row.updated_ms, now_ms),
                agent,
                line_of(row.name(), NAME_COLS),
            ]
        })
        .collect();
    let width = |column: usize| {
        lines.iter().filter_map(|line| line.get(column)).map(|cell| text::width(cell)).max().unwrap_or(0)
    };
    let widths = [width(0), width(1), width(2)];
    let mut table = String::new();
    for ([uid, when, agent, name], row) in lines.iter().zip(rows) {
        for (cell, width) in [uid, when, agent].into_iter().zip(widths) {
            let _ = write!(table, "{cell}{}  ", " ".repeat(width.saturating_sub(text::width(cell))));
        }
        table.push_str(name);
        if with_folder {
            let _ = write!(table, "  {}", line_of(&row.folder.to_string_lossy(), NAME_COLS));
        }
        table.push('\n');
    }
    table
}

/// A table of sessions, with their numbers from 1.
pub fn numbered(rows: &[SessionRow], with_folder: bool, now_ms: i64) -> String {
    let table = table(rows, with_folder, now_ms);
    table.lines().enumerate().fold(String::new(), |mut text, (at, line)| {
        let _ = writeln!(text, "{:>3}  {line}", at + 1);
        text
    })
}

/// The matches, with a line for the session before its first match.
pub fn hits_text(hits: &[ArchiveHit], now_ms: i64) -> String {
    let mut text = String::new();
    let mut last = None;
    for hit in hits {
        if last != Some(&hit.uid) {
            last = Some(&hit.uid);
            let (agent, name) = (line_of(&hit.agent, 24), line_of(&hit.name, NAME_COLS));
            let folder = line_of(&hit.folder.to_string_lossy(), NAME_COLS);
            let _ =
                writeln!(text, "{}  {}  {agent}  {name}  {folder}", hit.uid, time::ago(hit.at_ms, now_ms));
        }
        let mark = if hit.is_error { ", failed" } else { "" };
        let snippet = line_of(&hit.snippet.replace('\u{2}', "«").replace('\u{3}', "»"), 400);
        let _ = writeln!(text, "    turn {}, {}{mark}: {snippet}", hit.turn, hit.kind);
    }
    text
}

/// The text on one line, sanitised and shortened.
fn line_of(text: &str, max_cols: usize) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    text::truncate(&sanitize(&words.join(" ")), max_cols)
}

#[derive(Serialize)]
struct JsonRow<'a> {
    id: &'a str,
    agent: &'a str,
    agent_session: Option<&'a str>,
    folder: String,
    branch: Option<&'a str>,
    title: Option<&'a str>,
    first_prompt: Option<&'a str>,
    is_subagent: bool,
    created_at: String,
    updated_at: String,
    state: &'a str,
    turns: u32,
}

/// A JSON array with an object per session.
pub fn json(rows: &[SessionRow]) -> String {
    let rows: Vec<JsonRow<'_>> = rows
        .iter()
        .map(|row| JsonRow {
            id: &row.uid,
            agent: &row.agent,
            agent_session: row.agent_session.as_deref(),
            folder: row.folder.to_string_lossy().into_owned(),
            branch: row.branch.as_deref(),
            title: row.title.as_deref(),
            first_prompt: row.first_prompt.as_deref(),
            is_subagent: row.is_child,
            created_at: time::rfc3339(row.created_ms),
            updated_at: time::rfc3339(row.updated_ms),
            state: row.state.word(),
            turns: row.turn_count,
        })
        .collect();
    pretty(&rows)
}

#[derive(Serialize)]
struct JsonHit<'a> {
    session: &'a str,
    name: &'a str,
    agent: &'a str,
    folder: String,
    turn: u32,
    at: String,
    kind: &'a str,
    is_error: bool,
    snippet: String,
}

/// A JSON array with an object per match.
pub fn hits_json(hits: &[ArchiveHit]) -> String {
    let hits: Vec<JsonHit<'_>> = hits
        .iter()
        .map(|hit| JsonHit {
            session: &hit.uid,
            name: &hit.name,
            agent: &hit.agent,
            folder: hit.folder.to_string_lossy().into_owned(),
            turn: hit.turn,
            at: time::rfc3339(hit.at_ms),
            kind: &hit.kind,
            is_error: hit.is_error,
            snippet: hit.snippet.replace(['\u{2}', '\u{3}'], ""),
        })
        .collect();
    pretty(&hits)
}
