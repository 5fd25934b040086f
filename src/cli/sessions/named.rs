//! Finds the session that an argument of the command line names.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::bail;

use super::{rows, time};
use crate::store::{Fault, ListFilter, SessionRow, Store};

/// Longer digits are the start of an id.
const MAX_NUMBER_DIGITS: usize = 3;

/// Maximum number of sessions shown when several match.
const MAX_SHOWN: usize = 8;

/// The session that a text names: its number in the list of the folder (see `number`), the start of its id, or a part of
/// its title or first prompt. Titles in the folder take precedence over those in others.
pub fn find(store: &Store, folder: &Path, text: &str) -> anyhow::Result<SessionRow> {
    match number(text) {
        Some(number) => {
            let limit = u32::try_from(number).ok();
            let of_folder = ListFilter { folder: Some(folder.to_owned()), limit, ..ListFilter::default() };
            let rows = store.list(&of_folder)?;
            match number.checked_sub(1).and_then(|at| rows.get(at)) {
                Some(row) => Ok(row.clone()),
                None => bail!("no session {number} in this folder; see `parlor sessions list`"),
            }
        }
        None => find_lasting(store, folder, text),
    }
}

/// Like [`find`], for permanent changes: a number is refused, because it names another session once a new one was used.
pub fn find_lasting(store: &Store, folder: &Path, text: &str) -> anyhow::Result<SessionRow> {
    if number(text).is_some() {
        bail!("numbers change while sessions are used; pass an id or a title (see `parlor sessions list`)");
    }
    let no_id = match store.find(text) {
        Err(error) if matches!(error.fault(), Fault::NoSession(_)) => error,
        found => return Ok(found?),
    };
    let wanted = text.trim().to_lowercase();
    let has_it =
        |name: &Option<String>| name.as_ref().is_some_and(|name| name.to_lowercase().contains(&wanted));
    let mut named = store.list(&ListFilter::default())?;
    named.retain(|row| !wanted.is_empty() && (has_it(&row.title) || has_it(&row.first_prompt)));
    if named.iter().any(|row| row.folder == folder) {
        named.retain(|row| row.folder == folder);
    }
    match named.as_slice() {
        [] => Err(no_id.into()),
        [row] => Ok(row.clone()),
        several => {
            let mut message =
                format!("{} sessions match {text:?}; pass an id or more of the title:\n", several.len());
            message.push_str(&rows::table(several.get(..MAX_SHOWN).unwrap_or(several), true, time::now_ms()));
            if let Some(more) = several.len().checked_sub(MAX_SHOWN).filter(|more| *more > 0) {
                let _ = write!(message, "and {more} more");
            }
            bail!("{}", message.trim_end())
        }
    }
}

/// The number that a text is: up to three digits. Numbers count the sessions of a folder, latest first, from 1.
fn number(text: &str) -> Option<usize> {
    let is_number = text.len() <= MAX_NUMBER_DIGITS && text.bytes().all(|digit| digit.is_ascii_digit());
    text.parse().ok().filter(|_| is_number)
}
