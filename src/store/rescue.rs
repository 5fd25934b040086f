//! Writes changes that could not be saved to files that `parlor sessions import` reads.
//!
//! A file has the whole session if the rest of it can be read. Existing files are never overwritten.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use rusqlite::Connection;

use super::document::Document;
use super::handle::Store;
use super::rows::{self, SessionRow};
use super::session_writer::new_uid;
use super::write::{Batch, Change};
use super::{format, read};
use crate::host::os::{files, private};
use crate::model::{RecordedEvent, shell_word};

/// How the names of the files start.
const PREFIX: &str = "parlor-unsaved-";

/// Unsaved changes.
pub(super) struct Rescue<'a> {
    pub store: &'a Store,
    /// For the events that are saved, if they can be read.
    pub conn: Option<&'a Connection>,
    pub batch: &'a Batch,
    /// The sessions with events, drafts or queued prompts that are not saved.
    pub changed: BTreeSet<&'a str>,
    /// Number of turns that are not saved.
    pub turn_count: usize,
    pub why: &'a str,
    /// Where to write, in this order.
    pub folders: &'a [PathBuf],
}

/// The events of a session.
#[derive(Default)]
struct Log {
    events: BTreeMap<i64, RecordedEvent>,
    unreadable_count: u64,
    /// Whether the saved events could be read.
    is_read: bool,
    is_stored: bool,
    /// Whether there are events that are not saved.
    is_changed: bool,
}

/// The first folder in which a file of this size can be created.
pub(super) fn folder(folders: &[PathBuf], bytes: u64) -> Option<PathBuf> {
    let has_room = |folder: &&PathBuf| {
        let _ = private::make_folder(folder);
        files::free_bytes(folder).is_ok_and(|room| room > bytes) && tempfile::tempfile_in(folder).is_ok()
    };
    folders.iter().find(has_room).cloned()
}

impl Store {
    /// Says that the data folder has files of unsaved changes, which may be all that is left of a session.
    pub fn unsaved_files(&self) -> Option<String> {
        let entries = std::fs::read_dir(self.root()).ok()?.flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let names: BTreeSet<String> = names.filter(|name| name.starts_with(PREFIX)).collect();
        let paths: Vec<_> =
            names.iter().map(|name| shell_word(&self.root().join(name).to_string_lossy())).collect();
        (!paths.is_empty()).then(|| {
            let import = format!("parlor sessions import {}", paths.join(" "));
            format!("There are turns that were not saved. Add them with `{import}`, then delete what was imported.")
        })
    }
}

impl Rescue<'_> {
    /// Writes the files. Returns what happened, as a message for the user.
    pub fn run(&self) -> String {
        let (mut imports, mut texts, mut notes) = (String::new(), String::new(), BTreeSet::new());
        let sessions = self.sessions();
        if sessions.is_empty() {
            return format!("Saving failed: {}. No turns or drafts are lost.", self.why);
        }
        for (mut row, log) in sessions {
            let held = self.held(&row.uid);
            let has_text =
                !(row.draft.is_empty() && row.queue.is_empty() && row.stash.is_empty() && held.is_empty());
            let is_rest = !log.is_read && log.events.first_key_value().is_some_and(|(seq, _)| *seq > 0);
            if is_rest {
                row.came_from = Some(row.uid.clone());
                notes.insert(
                    "Earlier turns could not be read from the saved session; the file has only the rest.",
                );
            }
            // An import never changes a session that is saved.
            if is_rest || log.is_stored {
                row.uid = new_uid();
            }
            let events = log.events.into_values().collect();
            let mut document = Document::new(self.store, &row, events, log.unreadable_count);
            document.session.held = held;
            let text = document.text();
            let Some(path) = self.folders.iter().find_map(|folder| create(folder, &row.uid, &text).ok())
            else {
                notes.insert("No file could be written, so they are lost.");
                continue;
            };
            if path.starts_with(std::env::temp_dir()) && !path.starts_with(self.store.root()) {
                notes.insert("The system may delete temporary files: import or move the file soon.");
            }
            let path = format!(" {}", shell_word(&path.to_string_lossy()));
            if log.is_changed {
                imports.push_str(&path);
            }
            if has_text {
                texts.push_str(&path);
            }
        }
        let what = match (self.turn_count, imports.is_empty()) {
            (1, _) => "1 turn was",
            (0, true) => "Unsent prompts were",
            (0, false) => "The last changes were",
            (count, _) => &format!("{count} turns were"),
        };
        let mut message = format!("{what} not saved: {}.", self.why);
        if !imports.is_empty() {
            let _ = write!(message, "\nOnce saving works, run: parlor sessions import{imports}");
        }
        if !texts.is_empty() {
            let _ = write!(message, "\nUnsent prompts and held writes are not imported; they are in:{texts}");
        }
        message.extend(notes.into_iter().flat_map(|note| ["\n", note]));
        message
    }

    /// The texts of the held files that are not saved.
    fn held(&self, uid: &str) -> BTreeMap<String, String> {
        let mut held = BTreeMap::new();
        for change in &self.batch.changes {
            match change {
                Change::Held { uid: of, path, file: Some(file) } if of == uid => {
                    held.insert(path.clone(), file.text.peek().into_owned());
                }
                Change::Held { uid: of, path, file: None } if of == uid => drop(held.remove(path)),
                _ => {}
            }
        }
        held
    }

    /// The sessions with unsaved changes, and their events.
    fn sessions(&self) -> Vec<(SessionRow, Log)> {
        let mut logs: BTreeMap<&str, Log> = BTreeMap::new();
        let log = |uid: &str| Log::read(self.conn, uid);
        for change in &self.batch.changes {
            match change {
                Change::Event(event) => {
                    let log = logs.entry(&event.uid).or_insert_with(|| log(&event.uid));
                    log.is_changed = true;
                    match format::decode(&event.body) {
                        Some(record) => {
                            let event_of = RecordedEvent { at_ms: event.at_ms, turn: event.turn, record };
                            log.events.insert(event.seq, event_of);
                        }
                        None => log.unreadable_count += 1,
                    }
                }
                Change::Copy { from, to, turns, below } => {
                    let source = logs.entry(from).or_insert_with(|| log(from));
                    let copied = source.events.range(..below).filter(|(_, event)| event.turn <= *turns);
                    let copied: Vec<_> = copied.map(|(seq, event)| (*seq, event.clone())).collect();
                    let is_read = source.is_read;
                    let copy = logs.entry(to).or_insert_with(|| log(to));
                    (copy.is_read, copy.is_changed) = (copy.is_read && is_read, true);
                    copy.events.extend(copied);
                }
                Change::Take { spool, to } => {
                    let taken = logs.remove(spool.as_str()).unwrap_or_else(|| log(spool));
                    let former = logs.remove(to.as_str()).unwrap_or_else(|| log(to));
                    logs.insert(to, Log { is_stored: former.is_stored, is_changed: true, ..taken });
                }
                Change::Keep(uid) => drop(logs.entry(uid).or_insert_with(|| log(uid))),
                Change::Drop(uid) => drop(logs.remove(uid.as_str())),
                Change::Held { .. } => {}
            }
        }
        let rows = self.batch.sessions.iter().filter(|(_, row)| row.spool_of.is_none());
        let changed = rows.filter_map(|(uid, row)| {
            let known = logs.remove(uid.as_str()).filter(|log| log.is_changed);
            let has_text = !(row.draft.is_empty() && row.queue.is_empty() && row.stash.is_empty());
            let has_new_text = has_text && self.changed.contains(uid.as_str());
            Some((row.clone(), known.or_else(|| has_new_text.then(|| log(uid)))?))
        });
        changed.collect()
    }
}

impl Log {
    fn read(conn: Option<&Connection>, uid: &str) -> Self {
        let read = |conn| -> rusqlite::Result<Self> {
            let is_stored = rows::by_uid(conn, uid)?.is_some();
            let (events, unreadable_count) = read::log(conn, uid)?;
            let events = events.into_iter().collect();
            Ok(Self { events, unreadable_count, is_read: true, is_stored, is_changed: false })
        };
        conn.and_then(|conn| read(conn).ok()).unwrap_or_default()
    }
}

/// Creates a file, and returns its path.
fn create(folder: &Path, uid: &str, text: &str) -> io::Result<PathBuf> {
    private::make_folder(folder)?;
    let path = folder.join(format!("{PREFIX}{uid}.json"));
    let mut file = private::create_new(&path)?;
    if let Err(error) = file.write_all(text.as_bytes()).and_then(|()| file.sync_all()) {
        // Otherwise a part of a file would stay on a full disk.
        let _ = std::fs::remove_file(&path);
        return Err(error);
    }
    Ok(path)
}
