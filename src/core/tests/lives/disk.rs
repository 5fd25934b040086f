//! Where sessions are saved: in memory here, like the store would.

use std::collections::BTreeMap;

use super::agent::index;
use crate::core::tests::recorder::take_note;
use crate::model::*;
use crate::random::Random;

/// A place where a session and its spools are saved.
pub trait Disk {
    /// Writes notes in one transaction. Returns the answers.
    fn write(&mut self, notes: Vec<(SessionKey, Vec<Note>)>) -> Vec<StoreNews>;

    /// Answers a job.
    fn serve(&mut self, job: StoreJob, random: &mut Random) -> Vec<StoreNews>;

    /// The process has ended. `is_orderly`: it closed its sessions.
    fn end(&mut self, is_orderly: bool);

    /// The session to be continued; `None`: there is none.
    fn reopen(&mut self, random: &mut Random) -> Option<RecordedSession>;

    /// All events of the session.
    fn rows(&mut self) -> Vec<RecordedEvent>;

    /// The events of an open spool.
    fn spool(&mut self, uid: &str) -> Vec<RecordedEvent>;
}

/// The key of the session that is recorded.
pub const KEY: SessionKey = SessionKey(1);

#[derive(Debug, Default)]
pub struct Memory {
    saved: RecordedSession,
    is_in_turn: bool,
    spools: BTreeMap<SessionKey, (String, Vec<RecordedEvent>)>,
    spool_count: usize,
}

impl Memory {
    fn spool_as(&self, uid: &str) -> Vec<RecordedEvent> {
        let spool = self.spools.values().find(|(known, _)| known == uid);
        spool.map(|(_, events)| events.clone()).unwrap_or_default()
    }

    fn take(&mut self, note: Note) {
        if let Note::Event { record, .. } = &note {
            match &**record {
                Record::Prompt { .. } => self.is_in_turn = true,
                Record::TurnEnded(_) => self.is_in_turn = false,
                _ => {}
            }
        }
        let spools = &self.spools;
        let of_spool =
            |key: SessionKey| spools.get(&key).map(|(_, events)| events.clone()).unwrap_or_default();
        take_note(&mut self.saved, note, of_spool);
    }
}

impl Disk for Memory {
    fn write(&mut self, notes: Vec<(SessionKey, Vec<Note>)>) -> Vec<StoreNews> {
        let mut news = Vec::new();
        for (key, note) in
            notes.into_iter().flat_map(|(key, notes)| notes.into_iter().map(move |note| (key, note)))
        {
            match note {
                Note::Sync(upto) => news.push(StoreNews::Written { key, upto }),
                note if key == KEY => self.take(note),
                Note::Spool { .. } => {
                    self.spool_count += 1;
                    let uid = format!("spool {}", self.spool_count);
                    self.spools.insert(key, (uid.clone(), Vec::new()));
                    news.push(StoreNews::SavedAs { key, uid });
                }
                Note::Event { turn, record } => {
                    if let Some((_, events)) = self.spools.get_mut(&key) {
                        events.push(RecordedEvent { at_ms: 0, turn, record: *record });
                    }
                }
                Note::Closed => drop(self.spools.remove(&key)),
                _ => {}
            }
        }
        news
    }

    fn serve(&mut self, job: StoreJob, random: &mut Random) -> Vec<StoreNews> {
        match job {
            StoreJob::ReadSpool { key, uid, from } => {
                let events = self.spool_as(&uid).into_iter().filter(|event| event.turn >= from).collect();
                vec![StoreNews::SpoolRead { key, from, events: Ok(events) }]
            }
            StoreJob::Load { key, before, .. } => {
                let end = usize::try_from(before).unwrap_or(0);
                let events = self.saved.events[..end].to_vec();
                let (one, other) = events.split_at(index(random, end + 1));
                let page = |events: &[RecordedEvent], is_last| StoreNews::Loaded {
                    key,
                    page: Ok(EventPage { events: events.to_vec(), is_last, ..EventPage::default() }),
                };
                vec![page(one, false), page(other, true)]
            }
            _ => Vec::new(),
        }
    }

    fn end(&mut self, _is_orderly: bool) {
        self.spools.clear();
        if std::mem::take(&mut self.is_in_turn) {
            let turn = self.saved.events.iter().map(|event| event.turn).max().unwrap_or(0);
            let record = Record::TurnEnded(TurnOutcome::Cut);
            self.saved.events.push(RecordedEvent { at_ms: 0, turn, record });
        }
    }

    fn reopen(&mut self, random: &mut Random) -> Option<RecordedSession> {
        let mut saved = self.saved.clone();
        let events = &saved.events;
        events.iter().find(|event| matches!(event.record, Record::Prompt { .. }))?;
        saved.end_seq = i64::try_from(events.len()).unwrap_or(0);
        // The end begins with a turn to which nothing was added before.
        let begins = |at: &usize| {
            let turn = events[*at].turn;
            *at == 0
                || events[..*at].iter().all(|event| event.turn < turn)
                    && events[*at..].iter().all(|event| event.turn >= turn)
        };
        let starts: Vec<usize> = (0..events.len()).filter(begins).collect();
        let start = if random.one_in(2) { 0 } else { starts[index(random, starts.len())] };
        saved.events.drain(..start);
        saved.has_earlier = start > 0;
        Some(saved)
    }

    fn rows(&mut self) -> Vec<RecordedEvent> {
        self.saved.events.clone()
    }

    fn spool(&mut self, uid: &str) -> Vec<RecordedEvent> {
        self.spool_as(uid)
    }
}
