//! The state of a session while it is recorded: converts notes to rows.
//!
//! Numbers events and updates the session's row and search texts. Pure, except for the times in the notes.
//! Invariants: a session gets a row with its first prompt, message or draft; event numbers only grow; a search text
//! is written again only when it grew.

use std::collections::BTreeMap;

use crate::model::{
    EventPosition, MarkPosition, Note, Patch, Record, SessionHead, SessionUpdate, Subjects, TurnOutcome,
};

use super::rows::{SessionRow, SessionState};
use super::search::{self, Docs};
use super::write::{Batch, CopyRow, EventRow, LateRow, PageRow};
use super::{format, pages, random};

/// Maximum length of the saved start of the first prompt.
const FIRST_PROMPT_CHARS: usize = 200;

#[derive(Debug)]
#[allow(clippy::struct_excessive_bools, reason = "independent facts")]
pub(super) struct Track {
    pub row: SessionRow,
    /// Whether the session has a row, or is about to get one.
    is_kept: bool,
    /// Whether the row existed before the session was opened here.
    is_adopted: bool,
    /// Whether the row changed since it was last saved.
    is_dirty: bool,
    /// Events from before the session gets a row.
    waiting: Vec<EventRow>,
    /// The pending copy of another session's start.
    copy: Option<CopyRow>,
    docs: Docs,
    /// While a history is loaded that may remain incomplete: the previous row.
    held: Option<Box<SessionRow>>,
    /// Late events from before the session gets a row.
    waiting_late: Vec<LateRow>,
    /// Page starts from before the session gets a row.
    waiting_pages: Vec<PageRow>,
    /// The numbers of the events after marks.
    marks: BTreeMap<u64, i64>,
    /// Whether everything since the last mark was recorded completely.
    is_whole: bool,
    passed: Passed,
}

/// Marks that were passed since they were last fetched.
#[derive(Debug, Default)]
pub(super) struct Passed {
    /// The last mark, or the serial of the late event after it.
    pub upto: Option<u64>,
    pub marks: Vec<MarkPosition>,
}

impl Track {
    /// Creates the state of a new session, or of one that continues its record.
    pub fn new(reopened: Option<SessionRow>, at_ms: i64) -> Self {
        let is_kept = reopened.is_some();
        let row = reopened.unwrap_or_else(|| SessionRow {
            uid: new_uid(),
            created_ms: at_ms,
            updated_ms: at_ms,
            ..SessionRow::default()
        });
        Self {
            row,
            is_kept,
            is_adopted: false,
            is_dirty: false,
            waiting: Vec::new(),
            copy: None,
            docs: Docs::default(),
            held: None,
            waiting_late: Vec::new(),
            waiting_pages: Vec::new(),
            marks: BTreeMap::new(),
            is_whole: true,
            passed: Passed::default(),
        }
    }

    /// Processes a note and adds the changes to the batch.
    pub fn take(&mut self, note: Note, at_ms: i64, batch: &mut Batch) {
        match note {
            Note::Head(head) => self.set_head(*head),
            Note::Event { turn, record } => {
                if *record == Record::Replaced {
                    self.part_from_record(at_ms, batch);
                }
                self.add(turn, &record, at_ms, batch);
            }
            Note::Late { serial, before, turn, record } => {
                self.add_late(before, turn, &record, at_ms, batch);
                self.passed.upto = Some(serial);
            }
            Note::Mark { mark, subjects } => self.pass(mark, &subjects),
            Note::Hold => {
                self.part_from_record(at_ms, batch);
                self.held = Some(Box::new(self.row.clone()));
            }
            Note::Release { is_whole } => self.end_history(is_whole, batch),
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
            Note::Closed => {
                self.row.tab = None;
                self.release(batch);
            }
        }
        self.is_dirty = true;
        // A copy gets a row without own events once the agent has created it.
        self.is_kept |= self.copy.is_some() && self.row.agent_session.is_some();
        if self.is_kept {
            batch.events.append(&mut self.waiting);
            batch.late.append(&mut self.waiting_late);
            batch.pages.append(&mut self.waiting_pages);
            batch.copies.extend(self.copy.take());
        }
    }

    /// Starts the session as a copy of another one up to a turn, unless it already has a row.
    pub fn begin_as(&mut self, source: &SessionRow, turns: u32) {
        if self.is_kept {
            return;
        }
        let below = source.next_seq;
        self.row.next_seq += below;
        for event in &mut self.waiting {
            event.seq += below;
        }
        self.move_marks(below);
        self.row.first_prompt.clone_from(&source.first_prompt);
        self.row.turn_count = turns;
        self.copy = Some(CopyRow { from: source.uid.clone(), to: self.row.uid.clone(), turns, below });
    }

    /// Adds the row to the batch, if the session has one and it changed.
    pub fn save(&mut self, batch: &mut Batch) {
        if self.is_kept && std::mem::take(&mut self.is_dirty) {
            match &self.held {
                // The values from the history apply only once it is complete.
                Some(before) => batch.save(&SessionRow {
                    next_seq: before.next_seq,
                    first_prompt: before.first_prompt.clone(),
                    turn_count: before.turn_count,
                    updated_ms: before.updated_ms,
                    usage: before.usage.clone(),
                    state: before.state,
                    ..self.row.clone()
                }),
                None => batch.save(&self.row),
            }
        }
    }

    /// The marks that were passed, if the session has a row; all events before them are in the batch.
    pub fn take_passed(&mut self) -> Option<Passed> {
        (self.is_kept && self.passed.upto.is_some()).then(|| std::mem::take(&mut self.passed))
    }

    /// Marks the session as closed.
    pub fn release(&mut self, batch: &mut Batch) {
        self.end_history(false, batch);
        self.is_dirty = true;
        self.row.owner = None;
        self.row.agent_pid = None;
        self.row.agent_born = None;
    }

    /// Whether the session has a row, or is about to get one.
    pub fn is_kept(&self) -> bool {
        self.is_kept
    }

    /// Continues an existing record of the same session.
    pub fn adopt(&mut self, known: SessionRow) {
        let came = std::mem::replace(&mut self.row, known);
        (self.row.owner, self.row.run, self.row.opened_ms) = (came.owner, came.run, came.opened_ms);
        (self.row.tab, self.row.is_front) = (came.tab, came.is_front);
        self.is_kept = true;
        self.is_adopted = self.row.next_seq > 0;
        for event in &mut self.waiting {
            event.uid.clone_from(&self.row.uid);
            event.seq += self.row.next_seq;
        }
        self.row.next_seq += came.next_seq;
        self.move_marks(self.row.next_seq - came.next_seq);
    }

    /// The agent replays a session that already has a record: the record is unchanged, and the history gets its own
    /// row.
    fn part_from_record(&mut self, at_ms: i64, batch: &mut Batch) {
        if !std::mem::take(&mut self.is_adopted) {
            return;
        }
        let row = SessionRow {
            uid: new_uid(),
            created_ms: at_ms,
            updated_ms: at_ms,
            first_prompt: None,
            turn_count: 0,
            next_seq: 0,
            draft: String::new(),
            queue: Vec::new(),
            usage: None,
            state: SessionState::Idle,
            ..self.row.clone()
        };
        let mut left = std::mem::replace(&mut self.row, row);
        left.owner = None;
        left.tab = None;
        left.agent_pid = None;
        left.agent_born = None;
        batch.save(&left);
        self.is_kept = false;
        self.docs = Docs::default();
        self.marks.clear();
        self.passed = Passed::default();
    }

    fn move_marks(&mut self, by: i64) {
        self.marks.values_mut().for_each(|seq| *seq += by);
        self.passed.marks.iter_mut().for_each(|mark| mark.seq += by);
        for late in &mut self.waiting_late {
            late.uid.clone_from(&self.row.uid);
            late.seq += by;
        }
        for page in &mut self.waiting_pages {
            page.uid.clone_from(&self.row.uid);
            page.seq += by;
        }
    }

    fn pass(&mut self, mark: u64, subjects: &Subjects) {
        let seq = self.row.next_seq;
        let subjects = pages::encode(subjects);
        self.waiting_pages.push(PageRow { uid: self.row.uid.clone(), seq, subjects });
        self.marks.insert(mark, seq);
        let is_whole = std::mem::replace(&mut self.is_whole, true);
        self.passed.marks.push(MarkPosition { mark, seq, is_whole });
        self.passed.upto = Some(mark);
    }

    fn add_late(&mut self, before: EventPosition, turn: u32, record: &Record, at_ms: i64, batch: &mut Batch) {
        let before = match before {
            EventPosition::Seq(seq) => seq,
            EventPosition::Mark(mark) => self.marks.get(&mark).copied().unwrap_or(self.row.next_seq),
        };
        let (body, is_whole) = format::encode(record);
        self.is_whole &= is_whole;
        if self.docs.knows(record) {
            self.docs.take(&self.row.uid, before - 1, turn, at_ms, record, &mut batch.docs);
        }
        let seq = before - 1;
        let doc = match record {
            Record::Inserted { updates, .. } => search::inserted(updates, turn, at_ms),
            _ => None,
        };
        self.waiting_late.push(LateRow { uid: self.row.uid.clone(), seq, turn, at_ms, body, doc });
    }

    fn end_history(&mut self, is_whole: bool, batch: &mut Batch) {
        let Some(before) = self.held.take() else { return };
        let from = before.next_seq;
        for event in &mut self.waiting {
            event.is_staged = false;
        }
        if !is_whole {
            self.waiting.retain(|event| event.seq < from);
            self.waiting_late.retain(|late| late.seq < from);
            self.waiting_pages.retain(|page| page.seq < from);
            self.row = SessionRow {
                next_seq: from,
                first_prompt: before.first_prompt,
                turn_count: before.turn_count,
                updated_ms: before.updated_ms,
                usage: before.usage,
                state: before.state,
                ..std::mem::take(&mut self.row)
            };
            self.docs = Docs::default();
        }
        batch.end_history(&self.row.uid, from, is_whole);
        if !is_whole && from == 0 && self.row.draft.is_empty() && self.row.queue.is_empty() {
            self.is_kept = false;
            batch.sessions.remove(&self.row.uid);
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
        if is_use {
            self.row.updated_ms = self.row.updated_ms.max(at_ms);
        }
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
            Record::Replaced if self.held.is_some() => {}
            Record::Replaced => {
                batch.replaced.insert(self.row.uid.clone(), seq);
            }
            _ => {}
        }
        self.is_kept |= format::is_substance(record);
        self.docs.take(&self.row.uid, seq, turn, at_ms, record, &mut batch.docs);
        let (body, is_whole) = format::encode(record);
        self.is_whole &= is_whole;
        self.waiting.push(EventRow {
            uid: self.row.uid.clone(),
            seq,
            turn,
            at_ms,
            kind: format::kind(record),
            body,
            is_staged: self.held.is_some(),
        });
    }
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
