//! Property test of the record of a session on the disk: the random lives of `core::tests::lives`, with the real store.

use crate::core::tests::lives::disk::{Disk, KEY};
use crate::core::tests::lives::{Pace, fault, number};
use crate::model::*;
use crate::random::Random;
use crate::store::tests::Written;

/// A session in a store.
struct Saved {
    store: Written,
    uid: Option<String>,
}

impl Disk for Saved {
    fn write(&mut self, notes: Vec<(SessionKey, Vec<Note>)>) -> Vec<StoreNews> {
        let news = self.store.write(notes);
        for item in &news {
            if let StoreNews::SavedAs { key: KEY, uid } = item {
                self.uid = Some(uid.clone());
            }
        }
        news
    }

    fn serve(&mut self, job: StoreJob, _random: &mut Random) -> Vec<StoreNews> {
        self.store.served(job)
    }

    fn end(&mut self, is_orderly: bool) {
        self.store.restart(is_orderly);
    }

    fn reopen(&mut self, _random: &mut Random) -> Option<RecordedSession> {
        let rows = self.rows();
        let uid = self.uid.take()?;
        rows.iter().find(|row| matches!(row.record, Record::Prompt { .. }))?;
        let saved = self.store.store.reopen(&uid).unwrap();
        self.uid = Some(uid);
        Some(saved)
    }

    fn rows(&mut self) -> Vec<RecordedEvent> {
        self.uid.as_ref().map(|uid| self.store.events(uid)).unwrap_or_default()
    }

    fn spool(&mut self, uid: &str) -> Vec<RecordedEvent> {
        self.store.events(uid)
    }
}

#[test]
fn a_record_on_the_disk_only_gains_what_is_new() {
    let seeds = match number("PARLOR_LIFE") {
        Some(seed) => seed..seed + 1,
        None => 0..number("PARLOR_LIVES").unwrap_or(10_000) / 50,
    };
    for seed in seeds {
        let padding = if seed % 2 == 0 { 0 } else { 5_000 };
        let disk = Saved { store: Written::new(), uid: None };
        let story = fault(seed, disk, Pace { commits: 8, padding });
        assert_eq!(story, None, "{}", story.clone().unwrap_or_default());
    }
}
