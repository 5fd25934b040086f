//! What is known of a session while it is being recorded: from notes to rows.
//!
//! Duty: numbers events, keeps the session's row and the texts for the search up to date. Pure but for the
//! time, which comes with the notes.
//! Invariants: a session gets a row with its first prompt, message or draft, not sooner; numbers of events only
//! grow; what a search finds is written again only when it grew.

use crate::model::{Note, Patch, Record, SessionHead, SessionUpdate, TurnOutcome};

use super::rows::{SessionRow, SessionState};
use super::search::Docs;
use super::write::{Batch, CopyRow, EventRow};
use super::{format, random};

/// How much of the first prompt is kept beside the session.
const FIRST_PROMPT_CHARS: usize = 200;

/// A session that is being recorded.
#[derive(Debug)]
pub(super) struct Track {
    pub row: SessionRow,
    /// Whether it has a row, or is about to get one.
    is_kept: bool,
    /// Whether the row changed since it was last handed out.
    is_dirty: bool,
    /// What happened before there was a reason to keep it.
    waiting: Vec<EventRow>,
    /// The beginning that it has from another session, until it is written.
    copy: Option<CopyRow>,
    docs: Docs,
}

impl Track {
    /// A new session, or one that goes on behind what is kept of it.
    pub fn new(reopened: Option<SessionRow>, at_ms: i64) -> Self {
        let is_kept = reopened.is_some();
        let row = reopened.unwrap_or_else(|| SessionRow {
            uid: new_uid(),
            created_ms: at_ms,
            updated_ms: at_ms,
            ..SessionRow::default()
        });
        Self { row, is_kept, is_dirty: false, waiting: Vec::new(), copy: None, docs: Docs::default() }
    }

    /// Takes a note in; what is to be written goes to the batch.
    pub fn take(&mut self, note: Note, at_ms: i64, batch: &mut Batch) {
        match note {
            Note::Head(head) => self.set_head(*head),
            Note::Event { turn, record } => self.add(turn, &record, at_ms, batch),
            Note::Draft(draft) => {
                self.is_kept |= !draft.trim().is_empty();
                self.row.draft = draft;
            }
            Note::Queue(queue) => {
                self.is_kept |= !queue.is_empty();
                self.row.queue = queue;
            }
            // The recorder knows the ids of other sessions.
            Note::CameFrom { .. } => {}
            Note::Closed => self.release(),
        }
        self.is_dirty = true;
        // A copy is worth a row without a word of its own, once the agent has made it.
        self.is_kept |= self.copy.is_some() && self.row.agent_session.is_some();
        if self.is_kept {
            batch.events.append(&mut self.waiting);
            batch.copies.extend(self.copy.take());
        }
    }

    /// It begins as another session does, up to a turn. One that has a row already has a beginning too.
    pub fn begin_as(&mut self, source: &SessionRow, turns: u32) {
        if self.is_kept {
            return;
        }
        let below = source.next_seq;
        self.row.next_seq += below;
        for event in &mut self.waiting {
            event.seq += below;
        }
        self.row.first_prompt.clone_from(&source.first_prompt);
        self.row.turn_count = turns;
        self.copy = Some(CopyRow { from: source.uid.clone(), to: self.row.uid.clone(), turns, below });
    }

    /// Adds the row to the batch, if there is a reason to keep it and it changed.
    pub fn save(&mut self, batch: &mut Batch) {
        if self.is_kept && std::mem::take(&mut self.is_dirty) {
            batch.save(&self.row);
        }
    }

    /// Nobody has the session open any more.
    pub fn release(&mut self) {
        self.is_dirty = true;
        self.row.owner = None;
        self.row.agent_pid = None;
        self.row.agent_born = None;
    }

    /// Whether it has a row, or is about to get one.
    pub fn is_kept(&self) -> bool {
        self.is_kept
    }

    /// Goes on behind what is kept already, for it is the same session.
    pub fn adopt(&mut self, known: SessionRow) {
        let came = std::mem::replace(&mut self.row, known);
        self.row.owner = came.owner;
        self.is_kept = true;
        for event in &mut self.waiting {
            event.uid.clone_from(&self.row.uid);
            event.seq += self.row.next_seq;
        }
        self.row.next_seq += came.next_seq;
    }

    fn set_head(&mut self, head: SessionHead) {
        let row = &mut self.row;
        row.agent = head.agent;
        row.command = head.command;
        row.args = head.args;
        row.agent_pid = head.agent_pid;
        row.agent_session = head.session.map(|id| id.as_str().to_owned()).or(row.agent_session.take());
        row.folder = head.place.cwd;
        row.roots = head.place.additional_directories;
        row.branch = head.branch;
        row.title = head.title;
        row.has_own_title = head.has_own_title;
        row.owes_title = head.owes_title;
        row.is_child = head.is_child;
        row.chosen = head.chosen;
    }

    fn add(&mut self, turn: u32, record: &Record, at_ms: i64, batch: &mut Batch) {
        let seq = self.row.next_seq;
        self.row.next_seq += 1;
        self.row.updated_ms = self.row.updated_ms.max(at_ms);
        self.row.turn_count = self.row.turn_count.max(turn);
        match record {
            Record::Prompt { text, .. } => {
                self.row.state = SessionState::Turn;
                if self.row.first_prompt.is_none() {
                    self.row.first_prompt = Some(text.chars().take(FIRST_PROMPT_CHARS).collect());
                }
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
            Record::Replaced => {
                batch.replaced.insert(self.row.uid.clone(), seq);
            }
            _ => {}
        }
        self.is_kept |= format::is_substance(record);
        self.docs.take(&self.row.uid, seq, turn, at_ms, record, &mut batch.docs);
        self.waiting.push(EventRow {
            uid: self.row.uid.clone(),
            seq,
            turn,
            at_ms,
            kind: format::kind(record),
            body: format::encode(record),
        });
    }
}

/// An id that is short enough to be typed: eight letters and digits, of which a beginning will do.
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
