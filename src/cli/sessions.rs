//! `parlor sessions`: lists, shows, searches, renames, exports, imports and deletes saved sessions.
//!
//! Output is text or JSON. `store` has the sessions; `page` renders one as a document.
//! Invariants: all output goes through [`Printer`]; nothing is deleted without confirmation.

mod args;
mod export;
mod forget;
mod html;
mod import;
mod named;
mod page;
mod rows;
pub(super) mod time;

#[cfg(test)]
pub(super) mod tests;

use std::fmt::Write as _;
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};

pub use args::{Format, SessionsJob};
use args::{ListArgs, PruneArgs, SearchArgs};
pub use export::{export_into, transcript};
pub use named::find;
use named::find_lasting;

use super::output::print;
use crate::config::Paths;
use crate::model::ArchiveSearch;
use crate::runtime::print::Printer;
use crate::store::{ListFilter, SessionRow, Store, StoreError};
use crate::ui::text::one_line;

/// Environment of a subcommand.
pub struct World<'a> {
    /// Standard output.
    pub out: Printer<'a>,
    /// Standard error, for problems that do not belong in the output.
    pub err: Printer<'a>,
    /// The current folder.
    pub folder: PathBuf,
    /// The time, in Unix milliseconds.
    pub now_ms: i64,
    /// Reads a text that is not shown.
    pub read_text: &'a mut dyn FnMut() -> anyhow::Result<String>,
    /// Asks the user; `None` without a terminal.
    pub ask: Option<&'a mut dyn FnMut(&str) -> bool>,
}

/// A table of sessions with their numbers.
pub fn numbered(rows: &[SessionRow], with_folder: bool) -> String {
    rows::numbered(rows, with_folder, time::now_ms())
}

/// Formats the age of a time in Unix milliseconds.
pub fn ago(at_ms: i64) -> String {
    time::ago(at_ms, time::now_ms())
}

/// Runs a subcommand.
pub fn run(job: &SessionsJob, paths: &Paths, out: &mut Printer<'_>) -> anyhow::Result<()> {
    let folder = std::env::current_dir().and_then(|folder| folder.canonicalize()).unwrap_or_default();
    let mut on_terminal = |question: &str| ask(question);
    let has_terminal = std::io::stdin().is_terminal();
    let world = World {
        out: out.by_ref(),
        err: Printer::stderr(),
        folder,
        now_ms: time::now_ms(),
        read_text: &mut forget::read_text,
        ask: has_terminal.then_some(&mut on_terminal as &mut dyn FnMut(&str) -> bool),
    };
    serve(job, &paths.data_dir, world)
}

pub(super) fn ask(question: &str) -> bool {
    // Standard output is for the result of the command.
    let _ = Printer::stderr().print(&format!("{question} [y/N] "));
    let mut line = String::new();
    let is_read = std::io::stdin().read_line(&mut line).is_ok();
    is_read && matches!(line.trim(), "y" | "Y" | "yes")
}

/// Converts the sessions of an older version, and says how far it is if that takes longer than a second.
fn converted(store: Store) -> Result<Store, StoreError> {
    let mut is_reported = false;
    store.migrate(&mut |done, total| {
        is_reported = true;
        let _ = Printer::stderr().print(&format!("\rConverting saved sessions: {done} of {total}"));
    })?;
    if is_reported {
        let _ = Printer::stderr().print("\n");
        let _ = Printer::stderr().print(&old_database(&store).unwrap_or_default());
    }
    Ok(store)
}

/// Opens the store of saved sessions.
pub(super) fn open(data_dir: &Path) -> Result<Store, StoreError> {
    Store::open(data_dir).and_then(converted)
}

fn serve(job: &SessionsJob, data_dir: &Path, mut world: World<'_>) -> anyhow::Result<()> {
    let store = open(data_dir)?;
    let text = match job {
        SessionsJob::List(args) => list(&store, args, &world)?,
        SessionsJob::Show { id, json } => {
            let row = find(&store, &world.folder, id)?;
            match json {
                true => export::json(&store, &row)?,
                false => export::markdown(&store, &row, false)?,
            }
        }
        SessionsJob::Search(args) => search(&store, args, &world)?,
        SessionsJob::Export { id, format, redact, output, force, json } => {
            let row = find(&store, &world.folder, id)?;
            match output {
                Some(file) => {
                    let file = export::File { path: file, replaces: *force, tells_json: *json };
                    export::to_file(&store, &row, (*format, *redact), &file, &mut world)?
                }
                None => export::text(&store, &row, *format, *redact)?,
            }
        }
        SessionsJob::Import { files, json } => import::import(&store, files, *json)?,
        SessionsJob::Rename { id, title } => rename(&store, id, title, &world)?,
        SessionsJob::Delete { ids, yes, json } => delete(&store, ids, (*yes, *json), &mut world)?,
        SessionsJob::Prune(args) => prune(&store, args, &mut world)?,
        SessionsJob::Redact { id, yes } => forget::redact(&store, id.as_deref(), *yes, &mut world)?,
        SessionsJob::DeleteTurns { id, turns, yes } => {
            forget::delete_turns(&store, id, turns.as_deref(), *yes, &mut world)?
        }
        SessionsJob::DeleteOldDatabase { yes } => forget::delete_old_database(&store, *yes, &mut world)?,
    };
    print(&mut world.out, &text)?;
    for trouble in store.take_problems() {
        print(&mut world.err, &format!("{trouble}\n"))?;
    }
    Ok(())
}

/// Says that the database of an earlier version is still there.
fn old_database(store: &Store) -> Option<String> {
    let bytes: u64 =
        store.former_files().iter().filter_map(|path| path.metadata().ok()).map(|it| it.len()).sum();
    (bytes > 0).then(|| {
        let size = bytes.div_ceil(1 << 20);
        format!(
            "\nThe database of an earlier version is still there ({size} MiB); `parlor sessions delete-old-database` \
             deletes it.\n"
        )
    })
}

fn list(store: &Store, args: &ListArgs, world: &World<'_>) -> anyhow::Result<String> {
    let folder = match (&args.folder, args.all) {
        (Some(folder), _) => Some(real(folder)),
        (None, true) => None,
        (None, false) => Some(world.folder.clone()),
    };
    let filter =
        ListFilter { folder, agent: args.agent.clone(), with_children: args.subagents, limit: args.limit };
    let found = store.list(&filter)?;
    if args.json {
        return Ok(rows::json(&found));
    }
    // Only the numbers of the plain list can be passed to other commands.
    let has_numbers =
        filter.folder.as_ref() == Some(&world.folder) && filter.agent.is_none() && !args.subagents;
    let mut text = if has_numbers {
        rows::numbered(&found, false, world.now_ms)
    } else {
        rows::table(&found, filter.folder.is_none(), world.now_ms)
    };
    if found.is_empty() {
        let whose = filter.agent.as_ref().map(|agent| format!(" with {agent}")).unwrap_or_default();
        let _ = match &filter.folder {
            Some(_) => writeln!(text, "No sessions{whose} in this folder."),
            None if whose.is_empty() => writeln!(text, "No sessions yet."),
            None => writeln!(text, "No sessions{whose}."),
        };
    }
    if let Some(folder) = filter.folder {
        let here = ListFilter { folder: Some(folder), ..ListFilter::default() };
        let hidden = store.count()?.saturating_sub(store.list(&here)?.len() as u64);
        if hidden > 0 {
            let _ = writeln!(text, "\n{} in other folders: `parlor sessions list --all`", counted(hidden));
        }
    }
    text.extend(old_database(store));
    if let Some(note) = store.unsaved_files() {
        let _ = writeln!(text, "\n{note}");
    }
    Ok(text)
}

fn search(store: &Store, args: &SearchArgs, world: &World<'_>) -> anyhow::Result<String> {
    let time =
        |text: &Option<String>| text.as_deref().map(|text| time::parse(text, world.now_ms)).transpose();
    let search = ArchiveSearch {
        text: args.words.join(" "),
        agent: args.agent.clone(),
        folder: args.folder.as_deref().map(real),
        since_ms: time(&args.since)?,
        until_ms: time(&args.until)?,
        kinds: args.kinds(),
        only_errors: args.errors,
        limit: args.limit,
        days: None,
    };
    let hits = store.search(&search)?;
    if args.json {
        return Ok(rows::hits_json(&hits));
    }
    if hits.is_empty() {
        return Ok("No matches.\n".to_owned());
    }
    Ok(rows::hits_text(&hits, world.now_ms))
}

fn rename(store: &Store, id: &str, title: &str, world: &World<'_>) -> anyhow::Result<String> {
    let title = one_line(title.trim());
    if title.is_empty() {
        bail!("the title is empty; pass a title");
    }
    let row = find_lasting(store, &world.folder, id)?;
    store.rename(&row.uid, &title)?;
    Ok(format!("Renamed {} to {title:?}.\n", row.uid))
}

fn delete(
    store: &Store,
    ids: &[String],
    (yes, json): (bool, bool),
    world: &mut World<'_>,
) -> anyhow::Result<String> {
    let mut found: Vec<SessionRow> = Vec::new();
    for id in ids {
        let row = find_lasting(store, &world.folder, id)?;
        // Two prefixes may match the same session.
        if found.iter().all(|known| known.uid != row.uid) {
            found.push(row);
        }
    }
    remove(store, &found, (yes, json), world)
}

fn prune(store: &Store, args: &PruneArgs, world: &mut World<'_>) -> anyhow::Result<String> {
    if args.older_than.is_none() && args.keep.is_none() && args.down_to.is_none() {
        bail!(
            "pass --older-than 90d, --keep 200 (all but the latest 200) or --down-to 500M (the oldest, down \
             to this total size)"
        );
    }
    let max = args.down_to.as_deref().map(bytes).transpose()?;
    let filter = ListFilter {
        folder: args.folder.as_deref().map(real),
        agent: args.agent.clone(),
        with_children: true,
        limit: None,
    };
    let before_ms = args.older_than.as_deref().map(|text| time::parse(text, world.now_ms)).transpose()?;
    let keep = args.keep.map_or(0, |keep| keep as usize);
    let old: Vec<SessionRow> = store
        .list(&filter)?
        .into_iter()
        .skip(keep)
        .filter(|row| before_ms.is_none_or(|before| row.updated_ms < before))
        // Open sessions are never pruned.
        .filter(|row| store.opened_by(row).is_none())
        .collect();
    let old = match max {
        Some(max) => largest_rest(store, old, max)?,
        None => old,
    };
    if old.is_empty() && !args.json {
        return Ok("Nothing to delete.\n".to_owned());
    }
    remove(store, &old, (args.yes, args.json), world)
}

/// The oldest sessions to delete, so that the file gets no larger than a limit.
fn largest_rest(store: &Store, rows: Vec<SessionRow>, max: u64) -> anyhow::Result<Vec<SessionRow>> {
    let sizes = store.sizes()?;
    let whole: u64 = sizes.values().sum();
    // Overhead of the file is attributed to sessions in proportion to their size.
    let file = store.used_bytes()?;
    let share = |bytes: u64| {
        u64::try_from(u128::from(bytes) * u128::from(file) / u128::from(whole.max(1))).unwrap_or(u64::MAX)
    };
    let mut left = file;
    let mut gone = Vec::new();
    for row in rows.into_iter().rev() {
        if left <= max {
            break;
        }
        left = left.saturating_sub(share(sizes.get(&row.uid).copied().unwrap_or(0)));
        gone.push(row);
    }
    gone.reverse();
    Ok(gone)
}

/// Parses a size in bytes, with an optional suffix K, M or G.
fn bytes(text: &str) -> anyhow::Result<u64> {
    let trimmed = text.trim().to_ascii_uppercase();
    let trimmed = trimmed.trim_end_matches("IB").trim_end_matches('B');
    let (number, unit) = match trimmed.char_indices().next_back() {
        Some((at, 'K')) => (trimmed.get(..at), 1 << 10),
        Some((at, 'M')) => (trimmed.get(..at), 1 << 20),
        Some((at, 'G')) => (trimmed.get(..at), 1 << 30),
        _ => (Some(trimmed), 1_u64),
    };
    let number = number.and_then(|number| number.trim().parse::<u64>().ok());
    number
        .and_then(|number| number.checked_mul(unit))
        .with_context(|| format!("invalid size {text:?}; use a size such as 500M or 2G"))
}

fn remove(
    store: &Store,
    rows: &[SessionRow],
    (yes, json): (bool, bool),
    world: &mut World<'_>,
) -> anyhow::Result<String> {
    if !json {
        print(&mut world.out, &rows::table(rows, true, world.now_ms))?;
    }
    refuse_open(store, rows)?;
    let question = format!("Permanently delete {}?", counted(rows.len() as u64));
    if !confirmed(&question, yes, world)? {
        return Ok("Nothing was deleted.\n".to_owned());
    }
    let size = store.size_bytes();
    for row in rows {
        store.delete(&row.uid)?;
    }
    if !rows.is_empty() {
        store.compact()?;
    }
    if json {
        return Ok(rows::json(rows));
    }
    let freed = size.saturating_sub(store.size_bytes());
    Ok(format!("Deleted {}; freed {} KiB.\n", counted(rows.len() as u64), freed >> 10))
}

/// Fails if one of the sessions is open in another parlor.
fn refuse_open(store: &Store, rows: &[SessionRow]) -> anyhow::Result<()> {
    if let Some((row, pid)) = rows.iter().find_map(|row| Some((row, store.opened_by(row)?))) {
        let process = if pid == 0 { String::new() } else { format!(" (process {pid})") };
        bail!("{} is open in another parlor{process}; close it there first; nothing was deleted", row.uid);
    }
    Ok(())
}

/// Whether the user agrees. Fails if they cannot be asked.
fn confirmed(question: &str, yes: bool, world: &mut World<'_>) -> anyhow::Result<bool> {
    match &mut world.ask {
        _ if yes => Ok(true),
        Some(ask) => Ok(ask(question)),
        None => bail!("not a terminal; pass --yes to delete"),
    }
}

pub(super) fn counted(count: u64) -> String {
    match count {
        1 => "1 session".to_owned(),
        _ => format!("{count} sessions"),
    }
}

/// The canonical path of a folder, or the path itself if it does not exist.
fn real(folder: &Path) -> PathBuf {
    folder.canonicalize().or_else(|_| std::path::absolute(folder)).unwrap_or_else(|_| folder.to_owned())
}
