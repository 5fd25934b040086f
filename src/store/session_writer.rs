//! The state of a session while it is recorded: converts notes to rows.
//!
//! Numbers events and updates the session's row and search texts. Pure, except for the times in the notes.
//! Invariants: a session gets a row with its first prompt, message or draft, a spool with its first event; event
//! numbers only grow; a search text is written again only when it grew.

use crate::model::{Note, Patch, Record, SessionHead, SessionUpdate, TurnOutcome};

use super::docs::Docs;
use super::format;
use super::handle::Forgotten;
use super::rows::{SessionRow, SessionState};
use super::support::random;
use super::write::{Batch, Change, EventRow};

/// Maximum length of the saved start of the first prompt.
const FIRST_PROMPT_CHARS: usize = 200;

#[derive(Debug)]
#[allow(clippy::struct_excessive_bools, reason = "independent facts")]
pub(super) struct Track {
    pub row: SessionRow,
    is_saved: bool,
    /// Whether the record has events from before the session was opened here, without being loaded.
    is_adopted: bool,
    /// Whether the row changed since it was last saved.
    is_dirty: bool,
    /// Whether the session was used since its row was last saved.
    is_used: bool,
    /// Changes from before the session gets a row.
    waiting: Vec<Change>,
    is_copy: bool,
    docs: Docs,
}

impl Track {
    /// Creates the state of a new session, or of one that continues its record.
    pub fn new(reopened: Option<SessionRow>, at_ms: i64) -> Self {
        let is_saved = reopened.is_some();
        let row = reopened.unwrap_or_else(|| SessionRow {
            uid: new_uid(),
            created_ms: at_ms,
            updated_ms: at_ms,
            ..SessionRow::default()
        });
        Self {
            row,
            is_saved,
            is_adopted: false,
            is_dirty: false,
            is_used: !is_saved,
            waiting: Vec::new(),
            is_copy: false,
            docs: Docs::default(),
        }
    }

    /// Processes a note and adds the changes to the batch. The recorder handles those that concern other sessions.
    pub fn take(&mut self, note: Note, at_ms: i64, batch: &mut Batch) {
        match note {
            Note::Head(head) => self.set_head(*head),
            Note::Event { turn, record } => self.add(turn, &record, at_ms, batch),
            Note::Draft(draft) => {
                self.is_saved |= !draft.trim().is_empty();
                self.row.draft = draft;
            }
            Note::Queue(queue) => {
                self.is_saved |= !queue.is_empty();
                self.row.queue = queue;
            }
            Note::Stash(stash) => {
                self.is_saved |= !stash.is_empty();
                self.row.stash = stash;
            }
            Note::Held(path, file) => {
                let (uid, path) = (self.row.uid.clone(), path.to_string_lossy().into_owned());
                self.waiting.push(Change::Held { uid, path, file });
            }
            Note::Reported(reported) => self.row.reported = reported,
            Note::KeepSpool { title } => self.keep_spool(title, batch),
            Note::Closed => {
                self.row.tab = None;
                self.release(batch);
            }
            Note::Sync(_) => return,
            Note::CameFrom { .. } | Note::Spool { .. } | Note::TakeSpool { .. } => {}
        }
        self.is_dirty = true;
        // A copy gets a row without own events once the agent has created it.
        self.is_saved |= self.is_copy && self.row.agent_session.is_some();
        if self.is_saved {
            batch.changes.append(&mut self.waiting);
        }
    }

    /// Starts the session as a copy of another one up to a turn, unless it already has a row.
    pub fn begin_as(&mut self, source: &SessionRow, turns: u32) {
        if self.is_saved {
            return;
        }
        let (below, to) = (source.next_seq, self.row.uid.clone());
        self.move_waiting(below);
        self.row.next_seq += below;
        self.row.first_prompt.clone_from(&source.first_prompt);
        self.row.turn_count = turns;
        self.is_copy = true;
        self.waiting.insert(0, Change::Copy { from: source.uid.clone(), to, turns, below });
    }

    pub fn begin_spool(&mut self, of: String) {
        self.row.spool_of = Some(of);
        self.is_used = false;
    }

    /// Adds the row to the batch, if the session has one and it changed.
    pub fn save(&mut self, batch: &mut Batch) {
        if self.is_saved && std::mem::take(&mut self.is_dirty) {
            batch.save(&self.row);
            if std::mem::take(&mut self.is_used) {
                batch.note_use(&self.row.uid);
            }
        }
    }

    /// Saves the row again, because the file is a new one.
    pub fn save_again(&mut self, batch: &mut Batch) {
        (self.is_dirty, self.is_used) = (true, !self.is_spool());
        self.save(batch);
    }

    /// Marks the session as closed; a spool is deleted.
    pub fn release(&mut self, batch: &mut Batch) {
        self.row.release();
        self.is_dirty = true;
        if self.is_spool() {
            self.is_saved = false;
            self.waiting.clear();
            batch.drop_spool(&self.row.uid);
        }
    }

    pub fn is_saved(&self) -> bool {
        self.is_saved
    }

    pub fn is_spool(&self) -> bool {
        self.row.spool_of.is_some()
    }

    /// Continues an existing record of the same session.
    pub fn adopt(&mut self, known: SessionRow) {
        let came = std::mem::replace(&mut self.row, known);
        (self.row.owner, self.row.run, self.row.opened_ms) = (came.owner, came.run, came.opened_ms);
        (self.row.tab, self.row.is_front, self.row.views) = (came.tab, came.is_front, came.views);
        (self.is_saved, self.is_used) = (true, false);
        self.is_adopted = self.row.next_seq > 0;
        self.move_waiting(self.row.next_seq);
        self.row.next_seq += came.next_seq;
    }

    /// Replaces the events of the session by those of a spool. A record that was adopted stays as it is, and the spool
    /// becomes the session's own record; returns whether that happened.
    pub fn take_spool(&mut self, mut spool: Self, at_ms: i64, batch: &mut Batch) -> bool {
        spool.save(batch);
        let is_parted = std::mem::take(&mut self.is_adopted);
        if is_parted {
            let mut left = self.row.clone();
            left.release();
            left.tab = None;
            batch.save(&left);
            self.row.uid.clone_from(&spool.row.uid);
            (self.row.created_ms, self.row.updated_ms) = (at_ms, at_ms);
            (self.row.draft, self.row.queue, self.row.stash, self.row.reported) = Default::default();
            batch.changes.push(Change::Keep(spool.row.uid));
        } else {
            batch.take_spool(spool.row.uid, self.row.uid.clone());
        }
        let SessionRow { turn_count, first_prompt, usage, next_seq, state, .. } = spool.row;
        self.row =
            SessionRow { first_prompt, state, turn_count, next_seq, usage, ..std::mem::take(&mut self.row) };
        self.waiting.clear();
        self.docs = Docs::default();
        self.is_used |= is_parted || !self.is_saved;
        (self.is_saved, self.is_dirty) = (true, true);
        is_parted
    }

    /// Applies a deletion to what is kept in memory.
    pub fn forget(&mut self, forgotten: &Forgotten) {
        match forgotten {
            Forgotten::Turns { first_prompt, .. } => self.row.first_prompt.clone_from(first_prompt),
            Forgotten::Text(text) => {
                self.row.scrub(text);
            }
        }
        self.docs = Docs::default();
    }

    fn keep_spool(&mut self, title: String, batch: &mut Batch) {
        if self.row.spool_of.take().is_none() {
            return;
        }
        self.row.agent_session = None;
        (self.row.title, self.row.has_own_title, self.row.owes_title) = (Some(title), true, false);
        (self.is_saved, self.is_used) = (true, true);
        batch.changes.append(&mut self.waiting);
        batch.changes.push(Change::Keep(self.row.uid.clone()));
    }

    fn move_waiting(&mut self, by: i64) {
        for change in &mut self.waiting {
            if let Change::Event(event) = change {
                event.uid.clone_from(&self.row.uid);
                event.seq += by;
            }
        }
    }

    fn set_head(&mut self, head: SessionHead) {
        let row = &mut self.row;
        row.agent = head.agent;
        row.command = head.command;
        row.args = head.args;
        row.agent_pid = head.agent_pid;
        row.agent_session = head.session.map(|id| id.as_str().to_owned()).or(row.agent_session.take());
        row.folder = head.workspace.cwd;
        row.roots = head.workspace.additional_directories.iter().map(|root| root.to_path_buf()).collect();
        // The user chose the agent and the folder to continue it.
        row.is_imported = false;
        row.branch = head.branch;
        row.title = head.title;
        row.has_own_title = head.has_own_title;
        row.owes_title = head.owes_title;
        row.is_child = head.is_child;
        row.tab = Some(head.tab);
        row.is_front = head.is_front;
        row.views = head.views;
        row.chosen = head.chosen;
    }

    fn add(&mut self, turn: u32, record: &Record, at_ms: i64, batch: &mut Batch) {
        let seq = self.row.next_seq;
        self.row.next_seq += 1;
        // Opening a session records settings and notices, too.
        let is_use = match record {
            Record::Prompt { .. } | Record::Decided { .. } | Record::Answered { .. } => true,
            Record::TurnEnded(outcome) => *outcome != TurnOutcome::Cut,
            _ => false,
        };
        if is_use && !self.is_spool() {
            self.row.updated_ms = at_ms;
            self.is_used = true;
        }
        self.row.turn_count = self.row.turn_count.max(turn);
        match record {
            Record::Prompt { text, .. } => {
                self.row.state = SessionState::Turn;
                if self.row.first_prompt.is_none() {
                    self.row.first_prompt = Some(prompt_start(text));
                }
            }
            // A replayed prompt.
            Record::Update(update)
                if update.is_from_user() && self.is_spool() && self.row.first_prompt.is_none() =>
            {
                self.row.first_prompt = update.appended_text().map(|(_, _, text)| prompt_start(text));
            }
            Record::TurnEnded(TurnOutcome::Cut) => self.row.state = SessionState::Cut,
            Record::TurnEnded(_) => self.row.state = SessionState::Idle,
            Record::Update(SessionUpdate::Info { .. }) if self.row.has_own_title => {}
            Record::Update(SessionUpdate::Info { title, .. }) => match title {
                Patch::Keep => {}
                Patch::Clear => self.row.title = None,
                Patch::Set(title) => self.row.title = Some(title.clone()),
            },
            Record::Update(SessionUpdate::Usage(usage)) => self.row.usage = Some(usage.clone()),
            _ => {}
        }
        self.is_saved |= self.is_spool() || format::is_substance(record);
        if !self.is_spool() {
            self.docs.take(seq, turn, at_ms, record, &mut |seq, row| {
                batch.docs.insert((self.row.uid.clone(), seq), row);
            });
        }
        let (uid, kind) = (self.row.uid.clone(), format::kind(record));
        self.waiting.push(Change::Event(EventRow {
            uid,
            seq,
            turn,
            at_ms,
            kind,
            body: format::encode(record),
        }));
    }
}

pub(super) fn prompt_start(text: &str) -> String {
    text.chars().take(FIRST_PROMPT_CHARS).collect()
}

/// Creates an id that is short enough to be typed: eight letters and digits, of which a unique prefix is sufficient.
pub(super) fn new_uid() -> String {
    const SIGNS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
    let mut rest = random();
    let mut uid = String::with_capacity(8);
    for _ in 0..8 {
        uid.push(char::from(SIGNS.get((rest & 31) as usize).copied().unwrap_or(b'0')));
        rest >>= 5;
    }
    uid
}
