//! The prompts of a folder: lines of JSON, oldest first.
//!
//! Invariants: a prompt is added by one write of one line; the file is rewritten only to drop what is over
//! the bounds, or to leave lines behind that cannot be read (the whole old file is then kept aside).

use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{Store, StoreError, read_bytes, replace, unix_seconds};
use crate::services::unix;

/// Below the data folder.
pub(super) const FOLDER: &str = "history";

/// How many prompts are kept.
pub(super) const MAX_PROMPTS: usize = 1000;

/// How many more may gather before the file is rewritten.
pub(super) const SLACK_PROMPTS: usize = 200;

/// The longest prompt that is kept.
const MAX_PROMPT_BYTES: usize = 256 << 10;

/// The file's size at which it is rewritten, whatever the number of prompts.
const MAX_FILE_BYTES: usize = 8 << 20;

/// One line. The folder is in it because two folders could share a file's name.
#[derive(Serialize, Deserialize)]
struct Line {
    folder: String,
    text: String,
    /// Unix time in seconds.
    #[serde(default)]
    at: u64,
}

pub(super) fn read(store: &Store, folder: &Path) -> Result<Vec<String>, StoreError> {
    let path = file_of(store, folder);
    let mut parsed = parse(&read_bytes(&path)?);
    if parsed.bad_lines > 0 {
        let _lock = store.lock()?;
        // Anew, under the lock: another parlor may have repaired it, or been in the middle of a line.
        parsed = parse(&read_bytes(&path)?);
        repair(store, &path, &parsed)?;
    }
    let folder = folder.to_string_lossy();
    let mut prompts: Vec<String> =
        parsed.lines.into_iter().filter(|line| line.folder == folder).map(|line| line.text).collect();
    prompts.drain(..prompts.len().saturating_sub(MAX_PROMPTS));
    Ok(prompts)
}

pub(super) fn append(store: &Store, folder: &Path, text: &str) -> Result<(), StoreError> {
    if text.trim().is_empty() || text.len() > MAX_PROMPT_BYTES {
        return Ok(());
    }
    let path = file_of(store, folder);
    let _lock = store.lock()?;
    let bytes = read_bytes(&path)?;
    let parsed = parse(&bytes);
    repair(store, &path, &parsed)?;
    let folder = folder.to_string_lossy().into_owned();
    if parsed.lines.last().is_some_and(|last| last.folder == folder && last.text == text) {
        return Ok(());
    }
    let line = Line { folder, text: text.to_owned(), at: unix_seconds() };
    if parsed.lines.len() >= MAX_PROMPTS + SLACK_PROMPTS || bytes.len() > MAX_FILE_BYTES {
        let mut lines = parsed.lines;
        lines.push(line);
        let mut kept_bytes = 0;
        let keep = lines
            .iter()
            .rev()
            .take(MAX_PROMPTS)
            .take_while(|line| {
                kept_bytes += line.text.len();
                kept_bytes <= MAX_FILE_BYTES / 2
            })
            .count();
        lines.drain(..lines.len() - keep);
        return replace(&path, &encode(&lines));
    }
    let failed = |error| StoreError::Io { path: path.clone(), error };
    let mut file = unix::open_private(&path, true).map_err(failed)?;
    file.write_all(&encode(&[line])).map_err(failed)
}

/// Moves a file with unreadable lines aside and goes on with the others. Call it under the lock.
fn repair(store: &Store, path: &Path, parsed: &Parsed) -> Result<(), StoreError> {
    if parsed.bad_lines == 0 {
        return Ok(());
    }
    let why = match parsed.bad_lines {
        1 => "1 line is damaged".to_owned(),
        n => format!("{n} lines are damaged"),
    };
    store.move_aside(path, &why)?;
    replace(path, &encode(&parsed.lines))
}

struct Parsed {
    lines: Vec<Line>,
    bad_lines: usize,
}

fn parse(bytes: &[u8]) -> Parsed {
    let mut parsed = Parsed { lines: Vec::new(), bad_lines: 0 };
    for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
        match serde_json::from_slice(piece) {
            // A line without its end was cut off, even if it happens to be whole.
            Ok(line) if piece.ends_with(b"\n") => parsed.lines.push(line),
            _ if piece.trim_ascii().is_empty() => {}
            _ => parsed.bad_lines += 1,
        }
    }
    parsed
}

fn encode(lines: &[Line]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for line in lines {
        // Texts and a number always have a JSON form.
        bytes.extend(serde_json::to_vec(line).unwrap_or_default());
        bytes.push(b'\n');
    }
    bytes
}

/// The file's name: the folder's last part for people, and a hash of the whole for uniqueness.
pub(super) fn file_of(store: &Store, folder: &Path) -> PathBuf {
    let name: String = folder
        .file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default()
        .chars()
        .filter(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))
        .take(32)
        .collect();
    let hash = fnv1a(folder.to_string_lossy().as_bytes());
    store.root.join(FOLDER).join(format!("{name}-{hash:016x}.jsonl"))
}

/// FNV-1a: the standard library's hash may change with the compiler, and this one names files.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
