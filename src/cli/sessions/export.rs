//! Sessions as files: Markdown to be read, JSON to be imported again.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::page::{self, Call, Piece};
use super::{Format, html, time, write_file};
use crate::model::{ExportForm, Record};
use crate::services::store::{FORMAT, FORMAT_VERSION, SessionRow, Store};
use crate::ui::text::sanitize;

/// The whole of an export as JSON.
#[derive(Debug, Serialize, Deserialize)]
pub struct Document {
    /// Always [`FORMAT`].
    pub format: String,
    /// At most [`FORMAT_VERSION`].
    pub version: u64,
    /// The session.
    pub session: Head,
    /// All that happened in it, oldest first.
    pub events: Vec<Event>,
}

/// The session's head in an export.
#[derive(Debug, Serialize, Deserialize)]
pub struct Head {
    /// Its id.
    pub id: String,
    /// The agent's name.
    pub agent: String,
    /// The agent's program.
    #[serde(default)]
    pub command: String,
    /// Its arguments.
    #[serde(default)]
    pub args: Vec<String>,
    /// The agent's name for the session.
    #[serde(default)]
    pub agent_session: Option<String>,
    /// Where it works.
    pub folder: String,
    /// More roots.
    #[serde(default)]
    pub roots: Vec<String>,
    /// The branch.
    #[serde(default)]
    pub branch: Option<String>,
    /// The title.
    #[serde(default)]
    pub title: Option<String>,
    /// Unix milliseconds.
    pub created_ms: i64,
    /// Unix milliseconds.
    pub updated_ms: i64,
}

/// An event in an export.
#[derive(Debug, Serialize, Deserialize)]
pub struct Event {
    /// Unix milliseconds.
    pub at_ms: i64,
    /// Its turn.
    pub turn: u32,
    /// What happened.
    pub record: Record,
}

/// Exports a session to a file, or as the text to print.
pub fn export(store: &Store, id: &str, format: Format, output: Option<&Path>) -> anyhow::Result<String> {
    let row = store.find(id)?;
    let text = match format {
        Format::Markdown => markdown(store, &row)?,
        Format::Json => json(store, &row)?,
        Format::Html => html::page(&row, &page::pieces(store.events(&row.uid)?.0)),
    };
    let Some(output) = output else { return Ok(text) };
    write_file(output, &text)?;
    Ok(format!("Written to {}.\n", output.display()))
}

/// Exports a session to a new file in a folder, and gives its path. Errors are for the user.
pub fn export_into(store: &Store, uid: &str, form: ExportForm, folder: &Path) -> Result<PathBuf, String> {
    let (format, extension) = match form {
        ExportForm::Markdown => (Format::Markdown, "md"),
        ExportForm::Json => (Format::Json, "json"),
        ExportForm::Html => (Format::Html, "html"),
    };
    // What is there already stays.
    let free = (1..1000)
        .map(|number| match number {
            1 => folder.join(format!("parlor-{uid}.{extension}")),
            _ => folder.join(format!("parlor-{uid}-{number}.{extension}")),
        })
        .find(|path| !path.exists());
    let Some(path) = free else { return Err(format!("{} holds too many exports.", folder.display())) };
    match export(store, uid, format, Some(&path)) {
        Ok(_) => Ok(path),
        Err(error) => Err(format!("{error:#}")),
    }
}

/// All events with the session's head.
pub fn json(store: &Store, row: &SessionRow) -> anyhow::Result<String> {
    let (events, _) = store.events(&row.uid)?;
    let document = Document {
        format: FORMAT.to_owned(),
        version: FORMAT_VERSION,
        session: Head {
            id: row.uid.clone(),
            agent: row.agent.clone(),
            command: row.command.clone(),
            args: row.args.clone(),
            agent_session: row.agent_session.clone(),
            folder: row.folder.to_string_lossy().into_owned(),
            roots: row.roots.iter().map(|root| root.to_string_lossy().into_owned()).collect(),
            branch: row.branch.clone(),
            title: row.title.clone(),
            created_ms: row.created_ms,
            updated_ms: row.updated_ms,
        },
        events: events
            .into_iter()
            .map(|event| Event { at_ms: event.at_ms, turn: event.turn, record: event.record })
            .collect(),
    };
    Ok(pretty(&document))
}

/// A value of parlor's own as JSON text.
pub fn pretty<T: Serialize>(value: &T) -> String {
    let mut text = serde_json::to_string_pretty(value).unwrap_or_default();
    text.push('\n');
    text
}

/// The session as Markdown.
pub fn markdown(store: &Store, row: &SessionRow) -> anyhow::Result<String> {
    let (events, unreadable_count) = store.events(&row.uid)?;
    let mut text = format!("# {}\n\n", row.name().lines().next().unwrap_or_default());
    for (name, value) in facts(row) {
        let _ = writeln!(text, "- {name}: {value}");
    }
    if unreadable_count > 0 {
        let _ = writeln!(text, "\n> {unreadable_count} events cannot be read by this parlor.");
    }
    for piece in page::pieces(events) {
        text.truncate(text.trim_end().len());
        text.push_str("\n\n");
        match piece {
            Piece::Prompt(words) => {
                text.push_str("## Prompt\n\n");
                text.extend(words.lines().flat_map(|line| ["> ", line, "\n"]));
            }
            Piece::Answer(words) => {
                text.push_str(words.trim_end());
                text.push('\n');
            }
            Piece::Thought(words) => {
                text.push_str("<details><summary>Thought</summary>\n\n");
                text.push_str(words.trim_end());
                text.push_str("\n\n</details>\n");
            }
            Piece::Call(call) => call_text(&mut text, &call),
            Piece::Notice { is_error, text: words } => {
                let mark = if is_error { "**" } else { "*" };
                let mut lines = words.trim_end().lines();
                let _ = writeln!(text, "{mark}{}{mark}", lines.next().unwrap_or_default());
                let rest: Vec<&str> = lines.collect();
                if !rest.is_empty() {
                    text.push('\n');
                    fenced(&mut text, "", &rest.join("\n"));
                }
            }
        }
    }
    // It may be printed to a terminal.
    Ok(sanitize(&text).into_owned())
}

/// What is known of a session, for the top of a document.
pub fn facts(row: &SessionRow) -> Vec<(&'static str, String)> {
    let mut facts = vec![("Session", row.uid.clone()), ("Agent", row.agent.clone())];
    facts.push(("Folder", row.folder.to_string_lossy().into_owned()));
    facts.extend(row.branch.clone().map(|branch| ("Branch", branch)));
    facts.push(("Began", time::full(row.created_ms)));
    facts.push(("Last change", time::full(row.updated_ms)));
    facts
}

fn call_text(text: &mut String, call: &Call) {
    let status = call.status.map(|status| format!(" ({status})")).unwrap_or_default();
    let _ = writeln!(text, "### {}{status}\n", call.title.lines().next().unwrap_or_default());
    if let Some(command) = call.command.as_deref().filter(|command| !call.title.contains(command)) {
        fenced(text, "sh", command);
    }
    for (path, diff) in &call.diffs {
        let _ = writeln!(text, "`{}`\n", path.replace('`', "'"));
        fenced(text, "diff", diff);
    }
    if !call.output.is_empty() {
        fenced(text, "", &call.output);
    }
}

/// A block of code whose fence is longer than any in it.
fn fenced(text: &mut String, language: &str, code: &str) {
    let longest = code.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    let _ = write!(text, "{fence}{language}\n{}\n{fence}\n\n", code.trim_end());
}
