//! Writes events of sessions on its own thread.
//!
//! [`Recorder::keep`] accepts notes without waiting. Text chunks are merged, and a batch is written at most half a
//! second after its first note. Failures are reported as [`ServiceEvent::Problem`].
//! Invariants: there is no timer without pending notes; notes that cannot be written stay in memory, in order, and
//! are retried; the first failure and the recovery are reported immediately.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rusqlite::Connection;
use tokio::sync::mpsc::UnboundedSender;

use super::session_writer::{Passed, Track};
use super::write::{self, Batch};
use super::{Fault, Store, format, locked, owner, read, rows, unix_ms};
use crate::model::{Note, Record, ServiceEvent, SessionKey, StoreNews};
use crate::services::{folder_relocation, unix};

/// Delay before notes are written.
const GATHER: Duration = Duration::from_millis(300);

/// Size of a batch that is written immediately, to limit pending notes in memory.
const MUCH_BYTES: usize = 256 << 10;

/// Delay before a failed write is retried.
const RETRY: Duration = Duration::from_secs(3);

/// Growth of the saved sessions in one run after which a notice is shown, in bytes.
const MUCH_GROWTH_BYTES: u64 = 128 << 20;

/// Timeout of [`Recorder::finish`].
const MAX_FINISH: Duration = Duration::from_secs(3);

/// Records sessions. The thread starts with the first note.
#[derive(Debug)]
pub struct Recorder {
    shared: Arc<Shared>,
    store: Store,
    services: UnboundedSender<ServiceEvent>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    inbox: Mutex<Inbox>,
    /// Notified about new notes, and when the recorder finishes.
    wake: Condvar,
    /// The thread has ended.
    ended: Condvar,
}

#[derive(Debug, Default)]
struct Inbox {
    notes: Vec<Taken>,
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
    /// Creates a recorder for a store; problems are sent to `services`.
    pub fn new(store: Store, services: UnboundedSender<ServiceEvent>) -> Self {
        Self { shared: Arc::default(), store, services, thread: None }
    }

    /// Records notes of a session, in order. Never waits for the disk.
    pub fn keep(&mut self, session: SessionKey, notes: Vec<Note>) {
        let at_ms = unix_ms();
        let is_worth_a_look = {
            let mut inbox = locked(&self.shared.inbox);
            let (is_first, was_much) = (inbox.notes.is_empty(), inbox.is_much());
            for note in notes {
                inbox.add(Taken { session, at_ms, note });
            }
            is_first || (inbox.is_much() && !was_much)
        };
        self.start();
        if is_worth_a_look {
            self.shared.wake.notify_one();
        }
    }

    /// Starts the thread, which first closes sessions of dead parlors.
    pub fn start(&mut self) {
        if self.thread.is_some() {
            return;
        }
        let writer = Writer {
            shared: Arc::clone(&self.shared),
            store: self.store.clone(),
            services: self.services.clone(),
            conn: None,
            tracks: BTreeMap::new(),
            batch: Batch::default(),
            passed: BTreeMap::new(),
            is_failing: false,
            growth: Growth::default(),
        };
        match thread::Builder::new().name("store".to_owned()).spawn(move || writer.run()) {
            Ok(thread) => self.thread = Some(thread),
            Err(error) => {
                let message = format!("Sessions cannot be saved: cannot start a thread: {error}.");
                let _ = self.services.send(ServiceEvent::Problem(message));
            }
        }
    }

    /// Writes the remaining notes and closes the sessions, within three seconds; returns an error message if that
    /// fails.
    pub fn finish(&mut self) -> Option<String> {
        let thread = self.thread.take()?;
        let deadline = Instant::now() + MAX_FINISH;
        let mut inbox = locked(&self.shared.inbox);
        inbox.is_closing = true;
        self.shared.wake.notify_one();
        while !inbox.has_ended {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Some("The disk does not respond; the end of this session may be lost.".to_owned());
            }
            inbox = match self.shared.ended.wait_timeout(inbox, left) {
                Ok((inbox, _)) => inbox,
                Err(poisoned) => poisoned.into_inner().0,
            };
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
        if let Some(last) = self.notes.last_mut().filter(|last| last.session == next.session) {
            if let (Note::Event { turn, record }, Note::Event { turn: next_turn, record: more }) =
                (&mut last.note, &next.note)
                && turn == next_turn
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
}

impl Inbox {
    fn is_much(&self) -> bool {
        self.bytes >= MUCH_BYTES
    }

    fn take(&mut self) -> Vec<Taken> {
        self.bytes = 0;
        std::mem::take(&mut self.notes)
    }
}

/// Approximate size of a note.
fn bytes_of(note: &Note) -> usize {
    /// Assumed size of notes other than chunks.
    const OTHERS: usize = 1 << 10;
    match note {
        Note::Event { record, .. } => match &**record {
            Record::Update(update) => update.appended_text().map_or(OTHERS, |(_, _, text)| text.len()),
            _ => OTHERS,
        },
        _ => OTHERS,
    }
}

/// State of the thread.
struct Writer {
    shared: Arc<Shared>,
    store: Store,
    services: UnboundedSender<ServiceEvent>,
    conn: Option<Connection>,
    tracks: BTreeMap<SessionKey, Track>,
    /// The pending batch.
    batch: Batch,
    /// The state of sessions after the batch.
    passed: BTreeMap<SessionKey, Passed>,
    is_failing: bool,
    growth: Growth,
}

/// Growth of the sessions in this run.
#[derive(Debug)]
struct Growth {
    bytes: u64,
    /// The size at which the next notice is shown.
    told_at: u64,
    step: u64,
}

impl Default for Growth {
    fn default() -> Self {
        Self { bytes: 0, told_at: MUCH_GROWTH_BYTES, step: MUCH_GROWTH_BYTES }
    }
}

impl Growth {
    /// Counts written bytes. Returns the text of a notice when one is due.
    fn add(&mut self, bytes: u64) -> Option<String> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes < self.told_at {
            return None;
        }
        self.told_at = self.bytes.saturating_add(self.step);
        Some(format!(
            "Sessions have stored {} MiB since parlor started. If an agent is flooding its session, cancel the turn; \
             `parlor sessions delete` frees the space.",
            self.bytes >> 20
        ))
    }
}

impl Writer {
    fn run(mut self) {
        if let Err(fault) = self.on_conn(read::recover) {
            self.tell_failure(&fault);
        }
        loop {
            let (notes, is_closing) = self.wait();
            self.take_all(notes, is_closing);
            if is_closing {
                break;
            }
        }
        let left_behind = (!self.batch.is_empty())
            .then(|| "The end of this session could not be saved: the store is still failing.".to_owned());
        let mut inbox = locked(&self.shared.inbox);
        inbox.left_behind = left_behind;
        inbox.has_ended = true;
        self.shared.ended.notify_all();
    }

    /// Waits for notes and for the write delay; after a failure, for the retry delay.
    fn wait(&self) -> (Vec<Taken>, bool) {
        let mut inbox = locked(&self.shared.inbox);
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
                return (inbox.take(), inbox.is_closing);
            }
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            inbox = match left {
                None => self.shared.wake.wait(inbox).unwrap_or_else(std::sync::PoisonError::into_inner),
                Some(left) => match self.shared.wake.wait_timeout(inbox, left) {
                    Ok((inbox, _)) => inbox,
                    Err(poisoned) => poisoned.into_inner().0,
                },
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
        for track in self.tracks.values_mut() {
            track.save(&mut self.batch);
        }
        self.write();
    }

    fn take(&mut self, taken: Taken) {
        let Taken { session, at_ms, note } = taken;
        self.tracks.entry(session).or_insert_with(|| {
            let kept_as = match &note {
                Note::Head(head) => head.kept_as.as_deref(),
                _ => None,
            };
            let reopened = kept_as.and_then(|uid| self.store.take_reopened(uid));
            let mut track = Track::new(reopened, at_ms);
            track.row.owner = self.store.owner().ok().map(|owner| owner.token.clone());
            track.row.run.clone_from(&track.row.owner);
            track.row.opened_ms = at_ms;
            track
        });
        let goes_on = match &note {
            Note::Head(head) if head.goes_on => {
                let is_new = self.tracks.get(&session).is_some_and(|track| !track.is_kept());
                let id = head.session.as_ref().filter(|_| is_new);
                id.map(|id| (head.agent.clone(), id.as_str().to_owned()))
            }
            _ => None,
        };
        if let Some((agent, id)) = goes_on {
            self.adopt(session, &agent, &id);
        }
        if let Note::CameFrom { session: from, kept_as, copied_turns } = &note {
            let source = self.tracks.get(from).filter(|track| track.is_kept()).map(|track| track.row.clone());
            if let Some(track) = self.tracks.get_mut(&session) {
                track.row.came_from = source.as_ref().map(|row| row.uid.clone()).or(kept_as.clone());
                if let (Some(source), Some(turns)) = (source, copied_turns) {
                    track.begin_as(&source, *turns);
                }
            }
        }
        let Some(track) = self.tracks.get_mut(&session) else { return };
        let was_kept = track.is_kept();
        let is_head = matches!(note, Note::Head(_));
        let is_end = matches!(note, Note::Closed);
        track.take(note, at_ms, &mut self.batch);
        if is_head {
            track.row.agent_born = track.row.agent_pid.and_then(unix::birth);
            // Identifies a folder that is renamed later.
            track.row.folder_mark =
                folder_relocation::mark(&track.row.folder).or_else(|| track.row.folder_mark.take());
        }
        if track.is_kept() && !was_kept {
            let news = StoreNews::KeptAs { key: session, uid: track.row.uid.clone() };
            let _ = self.services.send(ServiceEvent::Store(Box::new(news)));
        }
        if is_end {
            track.save(&mut self.batch);
            self.tracks.remove(&session);
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
            let news = StoreNews::KeptAs { key: session, uid: track.row.uid.clone() };
            let _ = self.services.send(ServiceEvent::Store(Box::new(news)));
        }
    }

    fn write(&mut self) {
        if self.batch.is_empty() && !self.is_failing {
            return;
        }
        let batch = std::mem::take(&mut self.batch);
        let does_recover = self.is_failing;
        self.gather_passed();
        let result = self.on_conn(|store, conn| {
            if does_recover {
                read::recover(store, conn)?;
            }
            Ok(write::write(conn, &batch)?)
        });
        match result {
            Ok(gone) => {
                let bytes: usize = batch.events.iter().map(|event| event.body.len()).sum();
                if let Some(message) = self.growth.add(bytes as u64) {
                    self.report(message);
                }
                if std::mem::take(&mut self.is_failing) {
                    self.report("Saving works again. All pending changes were saved.".to_owned());
                    self.tell_saving(None);
                }
                self.tell_written(&gone);
            }
            Err(fault) => {
                self.batch = batch;
                self.tell_failure(&fault);
            }
        }
        self.store.report_problems(&mut |event| {
            let _ = self.services.send(event);
        });
    }

    /// Updates the state of sessions after the batch is written.
    fn gather_passed(&mut self) {
        for (key, track) in &mut self.tracks {
            if let Some(passed) = track.take_passed() {
                let known = self.passed.entry(*key).or_default();
                known.upto = passed.upto;
                known.marks.extend(passed.marks);
            }
        }
    }

    fn tell_written(&mut self, gone: &BTreeSet<String>) {
        for (key, Passed { upto, marks }) in std::mem::take(&mut self.passed) {
            let is_gone = self.tracks.get(&key).is_none_or(|track| gone.contains(&track.row.uid));
            if let Some(upto) = upto.filter(|_| !is_gone) {
                let news = StoreNews::Written { key, upto, marks };
                let _ = self.services.send(ServiceEvent::Store(Box::new(news)));
            }
        }
    }

    /// Runs a function with the thread's connection; with a new file if the old one is damaged.
    fn on_conn<T>(&mut self, work: impl Fn(&Store, &mut Connection) -> Result<T, Fault>) -> Result<T, Fault> {
        let mut is_new = false;
        loop {
            let conn = match &mut self.conn {
                Some(conn) => conn,
                none => none.insert(self.store.connect().map_err(|error| error.fault)?),
            };
            match work(&self.store, conn) {
                Err(Fault::Corrupt(why)) if !is_new => {
                    self.conn = None;
                    self.store.move_aside(&why).map_err(|error| error.fault)?;
                    is_new = true;
                }
                other => {
                    // A read-only file may be writable when it is reopened.
                    if matches!(other, Err(Fault::ReadOnly)) {
                        self.conn = None;
                    }
                    return other;
                }
            }
        }
    }

    fn tell_failure(&mut self, fault: &Fault) {
        if std::mem::replace(&mut self.is_failing, true) {
            return;
        }
        let why = match fault {
            Fault::Full => "the disk is full".to_owned(),
            Fault::Refused(why) => {
                format!("{why}; check the free disk space and your quota")
            }
            Fault::ReadOnly => "the data folder is read-only".to_owned(),
            Fault::Busy => "the file is locked by another process".to_owned(),
            Fault::Newer => "the file was written by a newer version of parlor; update parlor".to_owned(),
            Fault::Corrupt(why) | Fault::Other(why) => why.clone(),
            Fault::NoSession(_) | Fault::Ambiguous(_) | Fault::InUse(_) => return,
        };
        self.report(format!("Not saved: {why}. Changes stay in memory until saving works again."));
        self.tell_saving(Some(why));
    }

    fn tell_saving(&self, fault: Option<String>) {
        let _ = self.services.send(ServiceEvent::Store(Box::new(StoreNews::Unsaved(fault))));
    }

    fn report(&self, message: String) {
        let _ = self.services.send(ServiceEvent::Problem(message));
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::model::{Role, Subjects};

    /// Runs the thread's work synchronously.
    pub fn writer(store: &Store) -> (TestWriter, tokio::sync::mpsc::UnboundedReceiver<ServiceEvent>) {
        let (services, received) = tokio::sync::mpsc::unbounded_channel();
        let writer = Writer {
            shared: Arc::default(),
            store: store.clone(),
            services,
            conn: None,
            tracks: BTreeMap::new(),
            batch: Batch::default(),
            passed: BTreeMap::new(),
            is_failing: false,
            growth: Growth::default(),
        };
        (TestWriter(writer), received)
    }

    pub struct TestWriter(Writer);

    impl TestWriter {
        pub fn keep_now(&mut self, notes: Vec<Note>) {
            self.keep_for(SessionKey(1), notes);
        }

        pub fn keep_for(&mut self, session: SessionKey, notes: Vec<Note>) {
            let mut inbox = Inbox::default();
            for note in notes {
                inbox.add(Taken { session, at_ms: unix_ms(), note });
            }
            self.0.take_all(inbox.notes, false);
        }

        pub fn tell_growth_each(&mut self, step: u64) {
            self.0.growth = Growth { bytes: 0, told_at: step, step };
        }

        pub fn on_conn_for_test(&mut self, work: impl Fn(&Connection) -> rusqlite::Result<()>) {
            self.0.on_conn(|_, conn| Ok(work(conn)?)).unwrap();
        }

        pub fn drop_conn(&mut self) {
            self.0.conn = None;
        }
    }

    fn chunk(text: &str) -> Note {
        let update =
            crate::model::SessionUpdate::Chunk { role: Role::Agent, message: None, text: text.to_owned() };
        Note::Event { turn: 1, record: Box::new(Record::Update(update)) }
    }

    #[test]
    fn large_batches_are_written_immediately() {
        let mut inbox = Inbox::default();
        for _ in 0..3 {
            assert!(!inbox.is_much());
            let note = chunk(&"x".repeat(MUCH_BYTES / 3 + 1));
            inbox.add(Taken { session: SessionKey(1), at_ms: 0, note });
        }
        assert!(inbox.is_much());
        assert_eq!(inbox.take().len(), 2, "merged up to a limit");
        assert!(!inbox.is_much());
    }

    #[test]
    fn a_long_backlog_is_written_in_several_batches() {
        let (_dir, store) = super::super::tests::store();
        let (mut writer, mut received) = writer(&store);
        let texts = ["a", "b", "c"].map(|text| text.repeat(MUCH_BYTES));
        let notes = (1..)
            .zip(&texts)
            .flat_map(|(mark, text)| [chunk(text), Note::Mark { mark, subjects: Subjects::default() }]);
        writer.keep_now(notes.collect());
        let mut written = Vec::new();
        while let Ok(event) = received.try_recv() {
            if let ServiceEvent::Store(news) = event
                && let StoreNews::Written { upto, .. } = *news
            {
                written.push(upto);
            }
        }
        assert_eq!(written, [1, 2, 3]);
    }

    #[test]
    fn pending_chunks_of_a_message_are_merged() {
        let mut inbox = Inbox::default();
        let mut add = |session, note| inbox.add(Taken { session: SessionKey(session), at_ms: 0, note });
        for piece in ["a", "b", "c"] {
            add(1, chunk(piece));
        }
        add(2, chunk("d"));
        add(1, chunk("e"));
        add(1, Note::Draft("f".to_owned()));
        add(1, Note::Draft("fg".to_owned()));
        let notes: Vec<Note> = inbox.notes.into_iter().map(|taken| taken.note).collect();
        assert_eq!(notes, [chunk("abc"), chunk("d"), chunk("e"), Note::Draft("fg".to_owned())]);
    }
}
