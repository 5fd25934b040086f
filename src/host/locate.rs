//! Finds the line numbers of changes in files on disk.
//!
//! One thread processes the tool calls in order, so that a replayed history of thousands of edits does not block a
//! thread pool; of several pending jobs for one call only the last is executed.
//!
//! Invariants: only regular files in the session's folders are read, at most [`MAX_FILE_BYTES`] of each; a text that
//! occurs several times has no line number, unless the agent sent one near it.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use memchr::memmem;
use tokio::sync::mpsc::UnboundedSender;

use crate::model::{
    Around, DiffPiece, DiffPosition, LocateJob, LocateRequest, LocatedDiff, PieceStart, ServiceEvent,
};

use super::fs::{Glance, glance};

/// Maximum size of a file that is searched.
pub const MAX_FILE_BYTES: u64 = 4 << 20;

/// Number of lines above and below a change that are returned.
const AROUND_LINES: usize = 3;

/// Maximum size of the text above and below a change. Longer lines are not for reading.
const AROUND_BYTES: usize = 1024;

/// Maximum number of occurrences that are compared.
const MAX_PLACES: usize = 1000;

/// Runs the thread, which is started with the first job.
#[derive(Debug)]
pub struct Locator {
    events: UnboundedSender<ServiceEvent>,
    jobs: Option<Sender<LocateJob>>,
}

impl Locator {
    /// Creates a locator that sends results to `events`.
    pub fn new(events: UnboundedSender<ServiceEvent>) -> Self {
        Self { events, jobs: None }
    }

    /// Queues a job. Never blocks.
    pub fn look(&mut self, job: LocateJob) {
        let events = self.events.clone();
        let jobs = self.jobs.get_or_insert_with(|| {
            let (sender, receiver) = channel();
            let work = move || work(&receiver, &events);
            // Without a thread there are no line numbers; nothing else depends on it.
            let _ = std::thread::Builder::new().name("locate".to_owned()).spawn(work);
            sender
        });
        let _ = jobs.send(job);
    }
}

fn work(jobs: &Receiver<LocateJob>, events: &UnboundedSender<ServiceEvent>) {
    while let Ok(first) = jobs.recv() {
        let batch: Vec<LocateJob> = std::iter::once(first).chain(jobs.try_iter()).collect();
        for job in latest(batch) {
            let (session, item) = (job.session, job.item);
            let found = serve(job);
            if events.send(ServiceEvent::DiffsLocated { session, item, found }).is_err() {
                return;
            }
        }
    }
}

fn latest(batch: Vec<LocateJob>) -> Vec<LocateJob> {
    let mut seen = std::collections::HashSet::new();
    let mut saved: Vec<LocateJob> =
        batch.into_iter().rev().filter(|job| seen.insert((job.session, job.item))).collect();
    saved.reverse();
    saved
}

/// Locates all changes of a call. Blocks on the disk.
pub fn serve(job: LocateJob) -> Vec<LocatedDiff> {
    let LocateJob { roots, is_done, requests, .. } = job;
    let mut last: Option<(PathBuf, Glance)> = None;
    let mut found = Vec::new();
    for request in requests {
        let is_known = last.as_ref().is_some_and(|(path, _)| *path == request.path);
        if !is_known {
            last = Some((request.path.clone(), read(&request.path, &roots)));
        }
        let position = match last.as_ref().map(|(_, glance)| glance) {
            Some(Glance::Text(file)) => place_in(file, &request, is_done),
            Some(Glance::Missing) => DiffPosition::Gone,
            Some(Glance::Refused) | None => unread(&request),
        };
        found.push(LocatedDiff { diff: request.diff, position, is_done });
    }
    found
}

/// Reads a file and converts its line ends to LF.
fn read(path: &Path, roots: &[PathBuf]) -> Glance {
    match glance(path, roots, MAX_FILE_BYTES) {
        Glance::Text(text) => Glance::Text(plain_ends(text)),
        other => other,
    }
}

fn plain_ends(text: Vec<u8>) -> Vec<u8> {
    if memmem::find(&text, b"\r\n").is_none() {
        return text;
    }
    let is_saved = |at: usize| !(text.get(at) == Some(&b'\r') && text.get(at + 1) == Some(&b'\n'));
    text.iter().enumerate().filter(|(at, _)| is_saved(*at)).map(|(_, byte)| *byte).collect()
}

/// A change at line 1 does not depend on the text before it, so the agent's line number is used without reading the
/// file.
fn unread(request: &LocateRequest) -> DiffPosition {
    match request.pieces.as_slice() {
        [piece] if request.near == Some(1) && !piece.old.is_empty() && !piece.new.is_empty() => {
            DiffPosition::Lines(vec![Some(PieceStart::at(1, false))])
        }
        _ => DiffPosition::Unreadable,
    }
}

fn place_in(file: &[u8], request: &LocateRequest, is_done: bool) -> DiffPosition {
    let file = file.trim_ascii_end();
    if let [piece] = request.pieces.as_slice() {
        let is_file = |text: &str| plain_ends(text.as_bytes().to_vec()).trim_ascii_end() == file;
        if !file.is_empty() && (is_file(&piece.old) || is_file(&piece.new)) {
            return DiffPosition::Whole;
        }
    }
    let mut hint = request.near.map(Hint::Near);
    let mut starts = Vec::new();
    for piece in &request.pieces {
        let start = start_of(file, piece, hint, is_done);
        // Hunks are in order.
        hint = start.as_ref().map(|start| Hint::Below(start.line)).or(hint);
        starts.push(start);
    }
    DiffPosition::Lines(starts)
}

/// How to choose among several occurrences.
#[derive(Debug, Clone, Copy)]
enum Hint {
    Near(u32),
    /// The first one after this line.
    Below(u32),
}

/// Searches first for the text that is expected in the file: the new one after the change, the old one before it. If
/// one contains the other, the longer one is searched first.
fn start_of(file: &[u8], piece: &DiffPiece, hint: Option<Hint>, is_done: bool) -> Option<PieceStart> {
    let (old, new) = (needle(&piece.old), needle(&piece.new));
    let holds = |text: &[u8], part: &[u8]| !part.is_empty() && memmem::find(text, part).is_some();
    let is_new_first = (is_done && !holds(&old, &new)) || holds(&new, &old);
    let mut order = [(&new, true), (&old, false)];
    if !is_new_first {
        order.reverse();
    }
    order.into_iter().find_map(|(text, is_new)| {
        let (line, at) = line_of(file, text, hint)?;
        let whole = if is_new { &piece.new } else { &piece.old };
        let has_end = whole.ends_with('\n') && file.get(at + text.len()) == Some(&b'\n');
        let ends_are_plain = !piece.old.contains('\r') && !piece.new.contains('\r');
        let around =
            if ends_are_plain { around(file, at..at + text.len() + usize::from(has_end)) } else { None };
        Some(PieceStart { line, is_new, around })
    })
}

/// The text around a part of a file. Incomplete first and last lines of the part are completed.
fn around(file: &[u8], part: Range<usize>) -> Option<Around> {
    let (before, after) = (file.get(..part.start)?, file.get(part.end..)?);
    // The newline that ends the line above these.
    let above = memchr::memrchr_iter(b'\n', before).nth(AROUND_LINES);
    let before = before.get(above.map_or(0, |at| at + 1)..)?;
    let is_in_line = file.get(part.end.checked_sub(1)?) != Some(&b'\n');
    let lines = AROUND_LINES + usize::from(is_in_line);
    let below = memchr::memchr_iter(b'\n', after).nth(lines - 1).map_or(after.len(), |at| at + 1);
    let after = after.get(..below)?;
    if before.len().max(after.len()) > AROUND_BYTES {
        return None;
    }
    let text = |bytes: &[u8]| Some(Arc::from(std::str::from_utf8(bytes).ok()?));
    Some(Around { before: text(before)?, after: text(after)? })
}

/// The text to search for, without the last line end, which the file may lack.
fn needle(text: &str) -> Vec<u8> {
    let mut text = plain_ends(text.as_bytes().to_vec());
    if text.last() == Some(&b'\n') {
        text.pop();
    }
    if text.trim_ascii().is_empty() { Vec::new() } else { text }
}

/// The line and the byte where a text begins: the only occurrence, or the one that the hint selects. Occurrences of complete lines
/// take precedence.
fn line_of(file: &[u8], text: &[u8], hint: Option<Hint>) -> Option<(u32, usize)> {
    if text.is_empty() {
        return None;
    }
    let mut positions = Vec::new();
    let mut line = 1_u32;
    let mut counted = 0;
    for at in memmem::find_iter(file, text).take(MAX_PLACES) {
        let between = file.get(counted..at).unwrap_or_default();
        line = line.saturating_add(u32::try_from(memchr::memchr_iter(b'\n', between).count()).ok()?);
        counted = at;
        let is_at_start = at.checked_sub(1).is_none_or(|before| file.get(before) == Some(&b'\n'));
        let is_at_end = file.get(at + text.len()).is_none_or(|byte| *byte == b'\n');
        positions.push(((line, at), is_at_start && is_at_end));
    }
    if positions.iter().any(|(_, is_whole)| *is_whole) {
        positions.retain(|(_, is_whole)| *is_whole);
    }
    let mut starts = positions.iter().map(|(start, _)| *start);
    match (positions.as_slice(), hint) {
        ([(only, _)], _) => Some(*only),
        (_, Some(Hint::Near(near))) => starts.min_by_key(|(line, _)| line.abs_diff(near)),
        (_, Some(Hint::Below(above))) => starts.find(|(line, _)| *line > above),
        (_, None) => None,
    }
}

#[cfg(test)]
mod tests;
