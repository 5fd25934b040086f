//! Removes texts and turns from saved sessions, and the database of an earlier version.

use std::fmt::Write as _;
use std::io::{IsTerminal as _, Read as _};
use std::ops::Range;

use anyhow::{Context as _, bail};

use super::named::find_lasting;
use super::{World, confirmed, counted, refuse_open, rows, time};
use crate::cli::output::print;
use crate::host::attachments::Attachments;
use crate::host::os::terminal::Modes;
use crate::model::Record;
use crate::runtime::print::Printer;
use crate::store::{SessionRow, Store};
use crate::ui::text::one_line;

/// Maximum width of a prompt in the list of turns.
const PROMPT_COLS: usize = 70;

/// Removes a text from all sessions, or from one.
pub fn redact(store: &Store, id: Option<&str>, yes: bool, world: &mut World<'_>) -> anyhow::Result<String> {
    let only = id.map(|id| find_lasting(store, &world.folder, id)).transpose()?;
    let uid = only.as_ref().map(|row| row.uid.as_str());
    let text = (world.read_text)()?;
    let text = text.trim_end_matches(['\r', '\n']);
    if text.trim().is_empty() {
        bail!("no text was given; pass it on standard input");
    }
    let uses = store.find_text(text, uid)?;
    let mut found: Vec<SessionRow> = uses.sessions.iter().filter_map(|uid| store.find(uid).ok()).collect();
    for row in &mut found {
        row.scrub(text);
    }
    print(&mut world.out, &rows::table(&found, true, world.now_ms))?;
    refuse_open(store, &found)?;
    let sessions = counted(found.len() as u64);
    let entries = match uses.row_count {
        1 => "1 entry".to_owned(),
        count => format!("{count} entries"),
    };
    let question = format!("Permanently remove the text from {entries} of {sessions}?");
    if uses.row_count > 0 && !confirmed(&question, yes, world)? {
        return Ok("Nothing was removed.\n".to_owned());
    }
    // Without entries, parts may be left in the file if an earlier removal was interrupted.
    store.forget_text(text, uid).context("not everything was removed; run the command again")?;
    let file_count = if uid.is_none() { Attachments::new(Some(store.root())).remove_with(text)? } else { 0 };
    if uses.row_count + file_count == 0 {
        return Ok("No saved session contains the text.\n".to_owned());
    }
    let mut reported = format!("Removed from {entries} of {sessions}");
    if file_count > 0 {
        let _ = write!(reported, ", and deleted pasted texts: {file_count}");
    }
    reported.push_str(".\nAgents, logs, exports and files that were moved aside may still contain it.\n");
    Ok(reported)
}

/// Deletes turns of a session, or lists them.
pub fn delete_turns(
    store: &Store,
    id: &str,
    turns: Option<&str>,
    yes: bool,
    world: &mut World<'_>,
) -> anyhow::Result<String> {
    let row = find_lasting(store, &world.folder, id)?;
    let wanted = turns.map(range).transpose()?;
    let mut listed = String::new();
    for event in store.events(&row.uid)?.0 {
        let is_wanted = wanted.as_ref().is_none_or(|wanted| wanted.contains(&event.turn));
        if let Record::Prompt { text, is_again: false, .. } = event.record
            && is_wanted
        {
            let prompt = crate::ui::text::truncate(&one_line(&text), PROMPT_COLS);
            let _ = writeln!(listed, "{:>3}  {prompt}", event.turn);
        }
    }
    let Some(wanted) = wanted else { return Ok(listed) };
    if listed.is_empty() {
        bail!("{} has no such turns; list them with `parlor sessions delete-turns {}`", row.uid, row.uid);
    }
    print(&mut world.out, &listed)?;
    refuse_open(store, std::slice::from_ref(&row))?;
    if !confirmed("Permanently delete these turns?", yes, world)? {
        return Ok("Nothing was deleted.\n".to_owned());
    }
    store.forget_turns(&row.uid, wanted).context("not everything was removed")?;
    Ok("Deleted. The agent still has the turns, and may send them again when you resume the session.\n"
        .to_owned())
}

/// The turns of `3` or `3-5`.
fn range(text: &str) -> anyhow::Result<Range<u32>> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    match (first.trim().parse::<u32>(), last.trim().parse::<u32>()) {
        (Ok(first), Ok(last)) if first > 0 && first <= last => Ok(first..last.saturating_add(1)),
        _ => bail!("invalid turns {text:?}; use a number or a range such as 3-5"),
    }
}

/// Deletes the database that was converted.
pub fn delete_old_database(store: &Store, yes: bool, world: &mut World<'_>) -> anyhow::Result<String> {
    let files = store.former_files();
    if files.is_empty() {
        return Ok("There is no database of an earlier version.\n".to_owned());
    }
    for path in &files {
        let facts = path.metadata().with_context(|| format!("cannot read {}", path.display()))?;
        let since = facts.modified().ok().and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok());
        let day = since.map(|since| time::full(i64::try_from(since.as_millis()).unwrap_or_default()));
        let (size, day) = (facts.len() >> 10, day.unwrap_or_default());
        print(&mut world.out, &format!("{}  {size} KiB  {day}\n", path.display()))?;
    }
    let question = "Its sessions were converted. Permanently delete the database of an earlier version?";
    if !confirmed(question, yes, world)? {
        return Ok("Nothing was deleted.\n".to_owned());
    }
    store.discard_former()?;
    Ok("Deleted.\n".to_owned())
}

/// Reads the text to remove: a line that is not shown, or all of a pipe.
pub fn read_text() -> anyhow::Result<String> {
    let stdin = std::io::stdin();
    let mut text = String::new();
    if !stdin.is_terminal() {
        stdin.lock().read_to_string(&mut text).context("cannot read standard input")?;
        return Ok(text);
    }
    Printer::stderr().print("Text to remove (not shown): ")?;
    let before = Modes::current().context("cannot hide the text")?;
    before.clone().without_echo().apply_and_flush().context("cannot hide the text")?;
    let read = stdin.read_line(&mut text);
    before.apply()?;
    Printer::stderr().print("\n")?;
    read.context("cannot read standard input")?;
    Ok(text)
}
