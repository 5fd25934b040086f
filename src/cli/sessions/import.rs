//! Taking over sessions that were exported as JSON.
//!
//! Invariant: a file is taken over whole or not at all, and a session that is here already is not changed.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};

use super::export::Document;
use crate::model::KeptEvent;
use crate::services::store::{FORMAT, FORMAT_VERSION, SessionRow, Store};

/// Takes over files, and tells what came of each.
pub fn import(store: &Store, files: &[PathBuf]) -> anyhow::Result<String> {
    let mut told = String::new();
    for file in files {
        let (row, events) = read(file)?;
        let imported = store.import(&row, &events)?;
        let _ = if imported.was_known {
            writeln!(told, "{}: session {} is here already.", file.display(), imported.uid)
        } else {
            writeln!(told, "{}: imported as session {}.", file.display(), imported.uid)
        };
    }
    Ok(told)
}

fn read(file: &Path) -> anyhow::Result<(SessionRow, Vec<KeptEvent>)> {
    let text = std::fs::read_to_string(file)
        .with_context(|| format!("cannot read {}; name a file that exists", file.display()))?;
    let document: Document = serde_json::from_str(&text).with_context(|| {
        format!(
            "{} is no export that can be taken over; make one with `parlor sessions export --format json`",
            file.display()
        )
    })?;
    if document.format != FORMAT {
        bail!("{} is no session of parlor; its format is {:?}", file.display(), document.format);
    }
    if document.version > FORMAT_VERSION {
        bail!("{} was written by a newer parlor; update this one", file.display());
    }
    let head = document.session;
    let row = SessionRow {
        uid: head.id,
        agent: head.agent,
        command: head.command,
        args: head.args,
        agent_session: head.agent_session,
        folder: head.folder.into(),
        roots: head.roots.into_iter().map(Into::into).collect(),
        branch: head.branch,
        title: head.title,
        created_ms: head.created_ms,
        updated_ms: head.updated_ms,
        ..SessionRow::default()
    };
    let events = document
        .events
        .into_iter()
        .map(|event| KeptEvent { at_ms: event.at_ms, turn: event.turn, record: event.record })
        .collect();
    Ok((row, events))
}
