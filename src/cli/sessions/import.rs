//! Imports sessions from JSON exports.
//!
//! Invariants: a file is imported completely or not at all, and an existing session is not changed; nothing that a
//! file names is executed, opened or sent: its program, arguments, roots, draft, queued prompts, and text for the agent
//! that the user has not seen are dropped.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use serde::Serialize;

use crate::model::{Record, RecordedEvent};
use crate::store::{Document, FORMAT, FORMAT_VERSION, Imported, SessionRow, Store, pretty};

#[derive(Serialize)]
struct Taken {
    file: String,
    session: String,
    was_known: bool,
}

/// Imports files and returns a report. All files are parsed before the first one is imported.
pub fn import(store: &Store, files: &[PathBuf], tells_json: bool) -> anyhow::Result<String> {
    let sessions: Vec<_> = files.iter().map(|file| read(file)).collect::<Result<_, _>>()?;
    let mut taken = Vec::new();
    for (file, (row, events)) in files.iter().zip(&sessions) {
        let Imported { uid, was_known } = store.import(row, events)?;
        taken.push(Taken { file: file.to_string_lossy().into_owned(), session: uid, was_known });
    }
    if tells_json {
        return Ok(pretty(&taken));
    }
    let mut reported = String::new();
    for Taken { file, session, was_known } in taken {
        let _ = if was_known {
            writeln!(reported, "{file}: session {session} already exists.")
        } else {
            writeln!(reported, "{file}: imported as session {session}.")
        };
    }
    Ok(reported)
}

fn read(file: &Path) -> anyhow::Result<(SessionRow, Vec<RecordedEvent>)> {
    let text = std::fs::read_to_string(file)
        .with_context(|| format!("cannot read {}; pass an existing file", file.display()))?;
    let document: Document = serde_json::from_str(&text).with_context(|| {
        format!(
            "{} is not a JSON export; create one with `parlor sessions export --format json`",
            file.display()
        )
    })?;
    if document.format != FORMAT {
        bail!("{} is not a parlor session: its format is {:?}", file.display(), document.format);
    }
    if document.version > FORMAT_VERSION {
        bail!("{} was written by a newer version of parlor; update parlor", file.display());
    }
    let head = document.session;
    let row = SessionRow {
        uid: head.id,
        agent: head.agent,
        agent_session: head.agent_session,
        folder: head.folder.into(),
        branch: head.branch,
        title: head.title,
        has_own_title: head.has_own_title,
        is_child: head.is_subagent,
        came_from: head.came_from,
        created_ms: head.created_ms,
        updated_ms: head.updated_ms,
        ..SessionRow::default()
    };
    let mut events = document.events;
    events.retain(|event| !matches!(event.record, Record::HandedOver { .. }));
    Ok((row, events))
}
