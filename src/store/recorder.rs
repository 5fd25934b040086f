//! Writes events of sessions on its own thread.
//!
//! [`Recorder::keep`] accepts notes without waiting. Text chunks are merged, and a batch is written at most half a
//! second after its first note. Failures are reported as [`ServiceEvent::Problem`].
//! Invariants: there is no timer without pending notes; notes that cannot be written stay in memory, in order, and
//! are retried; the first failure and the recovery are reported immediately; what cannot be written at the end goes to
//! files (`rescue`).

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rusqlite::Connection;
use tokio::sync::mpsc::UnboundedSender;

use super::backlog::{Backlog, bytes_of};
use super::db::Db;
use super::fault::Fault;
use super::handle::{Forgotten, Store};
use super::rescue::{self, Rescue};
use super::session_writer::Track;
use super::support::unix_ms;
use super::write::{self, Batch};
use super::{db, format, owner, read, rows};
use crate::host::folder_relocation;
use crate::host::os::process::{self, ProcessId};
use crate::lock::lock;
use crate::model::{Note, Record, ServiceEvent, SessionKey, StoreNews, Unsaved};

/// Delay before notes are written.
const GATHER: Duration = Duration::from_millis(300);

/// Size of a batch that is written immediately, to limit pending notes in memory.
const MUCH_BYTES: usize = 256 << 10;

/// Delay before a failed write is retried.
const RETRY: Duration = Duration::from_secs(3);

/// Growth of the saved sessions in one run after which a notice is shown, in bytes.
const MUCH_GROWTH_BYTES: u64 = 128 << 20;

/// Timeout of [`Recorder::finish`]: two attempts to write while another process has the file locked, and then files.
const MAX_FINISH: Duration = Duration::from_secs(6);

/// Records sessions. The thread starts with the first note.
#[derive(Debug)]
pub struct Recorder {
    shared: Arc<Shared>,
    store: Store,
    services: UnboundedSender<ServiceEvent>,
    thread: Option<JoinHandle<()>>,
    /// Where to write what cannot be saved, after the data folder.
    pub rescue_folders: Vec<PathBuf>,
}

#[derive(Debug, Default)]
struct Shared {
    inbox: Mutex<Inbox>,
    backlog: Backlog,
    /// Notified about new notes, and when the recorder finishes.
    wake: Condvar,
    ended: Condvar,
}

#[derive(Debug, Default)]
struct Inbox {
    notes: Vec<Taken>,
    spools: BTreeSet<SessionKey>,
    /// Approximate size of the notes.
    bytes: usize,
    is_closing: bool,
    has_ended: bool,
    /// Why the last notes could not be written.
    left_behind: Option<String>,
}

#[derive(Debug)]
struct Taken {
    session: SessionKey,
    at_ms: i64,
    note: Note,
}

impl Recorder {
    /// Creates a recorder for a store; problems are sent to `host`.
    pub fn new(store: Store, services: UnboundedSender<ServiceEvent>) -> Self {
        let rescue_folders = vec![std::env::temp_dir()];
        Self { shared: Arc::default(), store, services, thread: None, rescue_folders }
    }

    /// Records notes of a session, in order. Never waits for the disk.
    pub fn keep(&mut self, session: SessionKey, notes: Vec<Note>) {
        let at_ms = unix_ms();
        let is_worth_a_look = {
            let mut inbox = lock(&self.shared.inbox);
            let (is_first, was_much, bytes) = (inbox.notes.is_empty(), inbox.is_much(), inbox.bytes);
            for note in notes {
                inbox.add(Taken { session, at_ms, note });
            }
            self.shared.backlog.add(inbox.bytes - bytes);
            is_first || (inbox.is_much() && !was_much)
        };
        self.start();
        if is_worth_a_look {
            self.shared.wake.notify_one();
        }
    }

    /// Counts what is not yet written.
    pub fn backlog(&self) -> Backlog {
        self.shared.backlog.clone()
    }

    /// Starts the thread, which first closes sessions of dead parlors.
    pub fn start(&mut self) {
        if self.thread.is_some() {
            return;
        }
        let shared = Arc::clone(&self.shared);
        let mut writer = Writer::new(shared, self.store.clone(), self.services.clone());
        writer.rescue_folders.extend(self.rescue_folders.iter().cloned());
        match thread::Builder::new().name("store".to_owned()).spawn(move || writer.run()) {
            Ok(thread) => self.thread = Some(thread),
            Err(error) => {
                let message = format!("Sessions cannot be saved: cannot start a thread: {error}.");
                let _ = self.services.send(ServiceEvent::Problem(message));
            }
        }
    }

    /// Writes the remaining notes and closes the sessions, within six seconds; returns an error message if that fails.
    pub fn finish(&mut self) -> Option<String> {
        let thread = self.thread.take()?;
        let deadline = Instant::now() + MAX_FINISH;
        let mut inbox = lock(&self.shared.inbox);
        inbox.is_closing = true;
        self.shared.wake.notify_one();
        while !inbox.has_ended {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Some("The disk does not respond; the end of this session may be lost.".to_owned());
            }
            inbox = waited(&self.shared.ended, inbox, left);
        }
        let left_behind = inbox.left_behind.take();
        drop(inbox);
        let _ = thread.join();
        left_behind
    }
}

impl Inbox {
    /// Adds a note; text is appended to the previous chunk, a draft replaces the previous one.
    fn add(&mut self, next: Taken) {
        self.bytes += bytes_of(&next.note);
        match &next.note {
            Note::Spool { .. } => drop(self.spools.insert(next.session)),
            Note::KeepSpool { .. } | Note::Closed => drop(self.spools.remove(&next.session)),
            _ => {}
        }
        if let Some(last) = self.notes.last_mut().filter(|last| last.session == next.session) {
            if let (Note::Event { turn, record }, Note::Event { turn: next_turn, record: more }) =
                (&mut last.note, &next.note)
                && turn == next_turn
                && !(is_of_user(more) && self.spools.contains(&next.session))
                && format::join(record, more)
            {
                return;
            }
            if let (Note::Draft(draft), Note::Draft(newer)) = (&mut last.note, &next.note) {
                draft.clone_from(newer);
                return;
            }
        }
        self.notes.push(next);
    }

    fn is_much(&self) -> bool {
        self.bytes >= MUCH_BYTES
    }

    fn take(&mut self) -> Vec<Taken> {
        self.bytes = 0;
        std::mem::take(&mut self.notes)
    }
}

/// Whether it is a part of a message of the user. Those of a replay are compared as they came.
fn is_of_user(record: &Record) -> bool {
    matches!(record, Record::Update(update) if update.is_from_user())
}

/// Waits for a notification, at most for a time.
fn waited<'a>(wake: &Condvar, inbox: MutexGuard<'a, Inbox>, left: Duration) -> MutexGuard<'a, Inbox> {
    wake.wait_timeout(inbox, left).unwrap_or_else(PoisonError::into_inner).0
}

/// State of the thread.
struct Writer {
    shared: Arc<Shared>,
    store: Store,
    services: UnboundedSender<ServiceEvent>,
    conn: Option<Db>,
    tracks: BTreeMap<SessionKey, Track>,
    batch: Batch,
    /// The notes to answer when the batch is written.
    syncs: BTreeMap<SessionKey, u64>,
    is_failing: bool,
    /// The ids of the sessions with changes that are not written, and their turns.
    unwritten: BTreeMap<SessionKey, (String, BTreeSet<u32>)>,
    /// What was reported last about it.
    reported: Option<Unsaved>,
    /// The sessions that are about to be saved for the first time, with their ids.
    new: Vec<(SessionKey, String)>,
    /// Where to write what cannot be saved.
    rescue_folders: Vec<PathBuf>,
    /// Whether the file vanished, which is not reported yet.
    has_vanished: bool,
    /// Whether the rows of all sessions must be written again.
    is_new_file: bool,
    growth: Growth,
}

/// Growth of the sessions in this run, and after how much of it a notice is shown.
#[derive(Debug)]
struct Growth {
    bytes: u64,
    step: u64,
}

impl Growth {
    /// Counts written bytes. Returns the text of a notice when one is due.
    fn add(&mut self, bytes: u64) -> Option<String> {
        let reported = self.bytes / self.step;
        self.bytes = self.bytes.saturating_add(bytes);
        (self.bytes / self.step > reported).then(|| format!(
            "Sessions have stored {} MiB since parlor started. If an agent is flooding its session, cancel the turn; \
             `parlor sessions delete` frees the space.",
            self.bytes >> 20
        ))
    }
}

impl Writer {
    fn new(shared: Arc<Shared>, store: Store, services: UnboundedSender<ServiceEvent>) -> Self {
        Self {
            rescue_folders: vec![store.root().to_path_buf()],
            shared,
            store,
            services,
            conn: None,
            tracks: BTreeMap::new(),
            batch: Batch::default(),
            syncs: BTreeMap::new(),
            is_failing: false,
            unwritten: BTreeMap::new(),
            reported: None,
            new: Vec::new(),
            has_vanished: false,
            is_new_file: false,
            growth: Growth { bytes: 0, step: MUCH_GROWTH_BYTES },
        }
    }

    fn run(mut self) {
        match self.on_conn(read::recover) {
            Ok(()) | Err(Fault::Corrupt(_)) => {}
            Err(fault) => self.tell_failure(&fault),
        }
        loop {
            let (notes, bytes, is_closing) = self.wait();
            self.take_all(notes, is_closing);
            self.shared.backlog.remove(bytes, self.is_failing);
            if is_closing {
                break;
            }
        }
        let left_behind = (!self.batch.is_empty()).then(|| self.rescue());
        let mut inbox = lock(&self.shared.inbox);
        inbox.left_behind = left_behind;
        inbox.has_ended = true;
        self.shared.ended.notify_all();
    }

    /// Waits for notes and for the write delay; after a failure, for the retry delay.
    fn wait(&self) -> (Vec<Taken>, usize, bool) {
        let mut inbox = lock(&self.shared.inbox);
        let retry_at = self.is_failing.then(|| Instant::now() + RETRY);
        let mut write_at: Option<Instant> = None;
        loop {
            if !inbox.notes.is_empty() && write_at.is_none() {
                write_at = Some(Instant::now() + GATHER);
            }
            // After a failure, more notes do not cause more retries.
            let deadline = retry_at.or(write_at);
            let is_due = deadline.is_some_and(|deadline| deadline <= Instant::now());
            let is_due = is_due || (inbox.is_much() && retry_at.is_none());
            if inbox.is_closing || is_due {
                let bytes = inbox.bytes;
                return (inbox.take(), bytes, inbox.is_closing);
            }
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            inbox = match left {
                None => self.shared.wake.wait(inbox).unwrap_or_else(PoisonError::into_inner),
                Some(left) => waited(&self.shared.wake, inbox, left),
            };
        }
    }

    /// Writes notes. Many notes become several batches, to limit the rows in memory.
    fn take_all(&mut self, notes: Vec<Taken>, is_closing: bool) {
        let mut bytes = 0;
        for taken in notes {
            bytes += bytes_of(&taken.note);
            self.take(taken);
            if bytes >= MUCH_BYTES && !self.is_failing {
                bytes = 0;
                self.save_and_write();
            }
        }
        if is_closing {
            for track in self.tracks.values_mut() {
                track.release(&mut self.batch);
            }
        }
        self.save_and_write();
    }

    fn save_and_write(&mut self) {
        for (uid, forgotten) in std::mem::take(&mut *lock(&self.store.inner.forgotten)) {
            for track in self.tracks.values_mut().filter(|track| uid.is_empty() || track.row.uid == uid) {
                track.forget(&forgotten);
            }
            if let Forgotten::Turns { turns, .. } = &forgotten {
                self.batch.forget(&uid, turns);
            }
        }
        for track in self.tracks.values_mut() {
            track.save(&mut self.batch);
        }
        self.write();
    }

    fn take(&mut self, taken: Taken) {
        let Taken { session, at_ms, note } = taken;
        self.tracks.entry(session).or_insert_with(|| {
            let saved_as = match &note {
                Note::Head(head) => head.saved_as.as_deref(),
                _ => None,
            };
            let reopened = saved_as.and_then(|uid| self.store.take_reopened(uid));
            let mut track = Track::new(reopened, at_ms);
            track.row.owner = self.store.owner().ok().map(|owner| owner.token.clone());
            track.row.run.clone_from(&track.row.owner);
            track.row.opened_ms = at_ms;
            track
        });
        match &note {
            Note::Head(head) if head.goes_on => {
                let is_new = self.tracks.get(&session).is_some_and(|it| !it.is_saved() && !it.is_spool());
                if let Some(id) = head.session.as_ref().filter(|_| is_new) {
                    self.adopt(session, &head.agent, id.as_str());
                }
            }
            Note::CameFrom { session: from, saved_as, copied_turns } => {
                let source = self.tracks.get(from).filter(|it| it.is_saved()).map(|it| it.row.clone());
                if let Some(track) = self.tracks.get_mut(&session) {
                    track.row.came_from = source.as_ref().map(|row| row.uid.clone()).or(saved_as.clone());
                    if let (Some(source), Some(turns)) = (source, copied_turns) {
                        track.begin_as(&source, *turns);
                    }
                }
            }
            Note::Spool { of } => {
                let of = self.tracks.get(of).map(|it| it.row.uid.clone()).unwrap_or_default();
                if let Some(track) = self.tracks.get_mut(&session).filter(|it| !it.is_saved()) {
                    track.begin_spool(of);
                }
            }
            Note::TakeSpool { spool } => self.take_spool(session, *spool, at_ms),
            Note::Sync(upto) => drop(self.syncs.insert(session, *upto)),
            _ => {}
        }
        let Some(track) = self.tracks.get_mut(&session) else { return };
        let was_saved = track.is_saved();
        let is_head = matches!(note, Note::Head(_));
        let is_end = matches!(note, Note::Closed);
        let changed_turn = match note {
            Note::Event { turn, .. } => Some(turn),
            Note::Draft(_) | Note::Queue(_) | Note::Stash(_) | Note::Held(..) => Some(0),
            _ => None,
        };
        track.take(note, at_ms, &mut self.batch);
        if is_head {
            track.row.agent_born = track.row.agent_pid.and_then(ProcessId::of).and_then(process::birth);
            // Identifies a folder that is renamed later.
            track.row.folder_mark =
                folder_relocation::mark(&track.row.folder).or_else(|| track.row.folder_mark.take());
        }
        let (is_saved, uid) = (track.is_saved(), track.row.uid.clone());
        if let Some(turn) = changed_turn.filter(|_| !track.is_spool()) {
            let (of, turns) = self.unwritten.entry(session).or_default();
            of.clone_from(&uid);
            turns.extend(Some(turn).filter(|turn| *turn > 0));
        }
        if is_end {
            track.save(&mut self.batch);
            self.tracks.remove(&session);
            if !is_saved {
                self.syncs.remove(&session);
            }
        }
        if is_saved && !was_saved {
            self.new.push((session, uid));
        }
    }

    /// Makes a spool the record of a session. A spool that is not saved is ignored.
    fn take_spool(&mut self, session: SessionKey, spool: SessionKey, at_ms: i64) {
        let is_saved = |track: &Track| track.is_spool() && track.is_saved();
        if session == spool || !self.tracks.get(&spool).is_some_and(is_saved) {
            return;
        }
        if let Some(spool) = self.tracks.remove(&spool)
            && let Some(track) = self.tracks.get_mut(&session)
        {
            let was_saved = track.is_saved();
            if track.take_spool(spool, at_ms, &mut self.batch) || !was_saved {
                self.new.push((session, track.row.uid.clone()));
            }
        }
    }

    /// Continues an existing record of the agent's session, unless another parlor has it open.
    fn adopt(&mut self, session: SessionKey, agent: &str, id: &str) {
        let found = self.on_conn(|_, conn| Ok(rows::by_agent_id(conn, agent, id)?));
        let Ok(Some((_, row))) = found else { return };
        let is_free = match row.owner.as_deref() {
            Some(token) => !owner::is_alive(self.store.root(), token),
            None => true,
        };
        let is_open_here = self.tracks.values().any(|track| track.row.uid == row.uid);
        if is_free
            && !is_open_here
            && let Some(track) = self.tracks.get_mut(&session)
        {
            track.adopt(row);
            self.new.push((session, track.row.uid.clone()));
        }
    }

    fn write(&mut self) {
        if self.batch.is_empty() && !self.is_failing {
            return self.tell_written(&BTreeSet::new());
        }
        if self.conn.take_if(|db| !db.is_current()).is_some() {
            (self.has_vanished, self.is_new_file) = (true, true);
        }
        let mut result = self.try_write();
        if matches!(result, Err(Fault::Corrupt(_))) && self.is_new_file {
            result = self.try_write();
        }
        match result {
            Ok(gone) => {
                let batch = std::mem::take(&mut self.batch);
                self.unwritten.clear();
                self.reported = None;
                for (key, uid) in std::mem::take(&mut self.new) {
                    self.news(StoreNews::SavedAs { key, uid });
                }
                if let Some(message) = self.growth.add(batch.event_bytes()) {
                    self.report(message);
                }
                if std::mem::take(&mut self.has_vanished) {
                    let text = format!(
                        "The data folder {} was removed while parlor was running. Sessions are saved again from \
                         here on.",
                        self.store.root().display()
                    );
                    self.news(StoreNews::Reported(text));
                }
                if std::mem::take(&mut self.is_failing) {
                    self.report("Saving works again. All pending changes were saved.".to_owned());
                    self.news(StoreNews::Unsaved(None));
                }
                self.tell_written(&gone);
            }
            Err(fault) => self.tell_failure(&fault),
        }
        self.store.report_problems(&mut |event| {
            let _ = self.services.send(event);
        });
    }

    fn try_write(&mut self) -> Result<BTreeSet<String>, Fault> {
        if std::mem::take(&mut self.is_new_file) {
            // The mark of this process may have been removed, too.
            let _ = self.store.owner();
            for track in self.tracks.values_mut() {
                track.save_again(&mut self.batch);
            }
        }
        let (batch, does_recover) = (std::mem::take(&mut self.batch), self.is_failing);
        let result = self.on_conn(|store, conn| {
            if does_recover {
                read::recover(store, conn)?;
            }
            Ok(write::write(conn, &batch)?)
        });
        self.batch = batch;
        result
    }

    fn tell_written(&mut self, gone: &BTreeSet<String>) {
        for (key, upto) in std::mem::take(&mut self.syncs) {
            match self.tracks.get(&key) {
                Some(track) if !track.is_saved() => drop(self.syncs.insert(key, upto)),
                Some(track) if gone.contains(&track.row.uid) => {}
                _ => self.news(StoreNews::Written { key, upto }),
            }
        }
    }

    /// Runs a function with the thread's connection. A damaged file is renamed, and the next call has a new one.
    fn on_conn<T>(&mut self, work: impl Fn(&Store, &mut Connection) -> Result<T, Fault>) -> Result<T, Fault> {
        let db = match &mut self.conn {
            Some(db) => db,
            none => none.insert(self.store.connect().map_err(|error| error.fault)?),
        };
        let result = work(&self.store, &mut db.conn);
        match &result {
            Err(Fault::Corrupt(why)) => {
                self.conn = None;
                self.store.move_aside(why).map_err(|error| error.fault)?;
                self.is_new_file = true;
            }
            // A read-only file may be writable when it is reopened.
            Err(Fault::ReadOnly) => self.conn = None,
            _ => {}
        }
        result
    }

    fn tell_failure(&mut self, fault: &Fault) {
        let was_failing = std::mem::replace(&mut self.is_failing, true);
        let Some(why) = fault.why() else { return };
        if !was_failing {
            self.report(format!("Not saved: {why}. Changes stay in memory until saving works again."));
        }
        let turns = self.unwritten.iter().map(|(key, (_, turns))| (*key, turns.clone())).collect();
        let folder = rescue::folder(&self.rescue_folders, self.batch.event_bytes());
        let unsaved = Some(Unsaved { why, turns, folder });
        if self.reported != unsaved {
            self.reported.clone_from(&unsaved);
            self.news(StoreNews::Unsaved(unsaved));
        }
    }

    /// Writes what could not be saved to files.
    fn rescue(&self) -> String {
        let frozen = || db::open_to_read(self.store.root()).ok();
        let frozen = self.conn.is_none().then(frozen).flatten();
        let conn = self.conn.as_ref().map(|db| &db.conn).or(frozen.as_ref());
        if let Some(conn) = conn {
            // The last attempt to write has waited for the lock.
            let _ = conn.busy_timeout(Duration::ZERO);
        }
        let why = self.reported.as_ref().map_or("the store is failing", |unsaved| &unsaved.why);
        let changed = self.unwritten.values().map(|(uid, _)| uid.as_str()).collect();
        let turn_count = self.unwritten.values().map(|(_, turns)| turns.len()).sum();
        let (store, batch, folders) = (&self.store, &self.batch, &self.rescue_folders);
        Rescue { store, conn, batch, changed, turn_count, why, folders }.run()
    }

    fn news(&self, news: StoreNews) {
        let _ = self.services.send(ServiceEvent::Store(Box::new(news)));
    }

    fn report(&self, message: String) {
        let _ = self.services.send(ServiceEvent::Problem(message));
    }
}

#[cfg(test)]
pub(super) mod tests;
