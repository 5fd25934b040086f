//! What is on the disk only, and may still change: an update of it must not look like something new.
//!
//! Invariant: only the last [`MOST`] things are known, so that it does not grow with the session; an update of something
//! older counts as news, as does one of a call that is two turns old.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher, Hash};

use crate::model::{MessageId, Role, SessionId, TerminalId, ToolCallId};

/// So many things are known: no more than half of what a table of 8192 places takes, which then never grows.
const MOST: usize = 3_500;

/// What can change.
#[derive(Debug, Hash)]
pub(super) enum Key<'a> {
    Tool(&'a ToolCallId),
    Compaction(&'a str),
    Subagent(&'a SessionId),
    Terminal(&'a TerminalId),
    Message(Role, &'a MessageId),
}

/// Where things are, by a hash of their names: these may be long.
#[derive(Debug, Clone, Default)]
pub(super) struct Away {
    places: HashMap<u64, Place, BuildHasherDefault<DefaultHasher>>,
    order: VecDeque<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    turn: u32,
    /// The number behind the page.
    behind: i64,
}

impl PartialEq for Away {
    fn eq(&self, other: &Self) -> bool {
        self.places == other.places
    }
}

impl Away {
    /// Something of this turn went with the page that ends before this number.
    pub fn put(&mut self, key: &Key<'_>, turn: u32, behind: i64) {
        let hash = self.hash(key);
        if self.places.insert(hash, Place { turn, behind }).is_none() {
            self.order.push_back(hash);
        }
        while self.order.len() > MOST {
            if let Some(oldest) = self.order.pop_front() {
                self.places.remove(&oldest);
            }
        }
    }

    /// The number behind the page that has it, if its turn fits.
    pub fn get(&self, key: &Key<'_>, fits: impl Fn(u32) -> bool) -> Option<i64> {
        let place = self.places.get(&self.hash(key)).filter(|place| fits(place.turn))?;
        Some(place.behind)
    }

    /// What went with pages from this number on is back.
    pub fn bring_back(&mut self, from: i64) {
        self.places.retain(|_, place| place.behind <= from);
        let places = &self.places;
        self.order.retain(|hash| places.contains_key(hash));
    }

    fn hash(&self, key: &Key<'_>) -> u64 {
        self.places.hasher().hash_one(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_ones_are_known() {
        let mut away = Away::default();
        for n in 0..=MOST {
            away.put(&Key::Tool(&ToolCallId::from(format!("t{n}"))), 1, 5);
        }
        assert_eq!(away.get(&Key::Tool(&"t0".into()), |_| true), None);
        assert_eq!(away.get(&Key::Tool(&"t1".into()), |turn| turn == 1), Some(5));
        assert_eq!(away.get(&Key::Tool(&"t1".into()), |turn| turn == 2), None);
        assert_eq!(away.get(&Key::Terminal(&"t1".into()), |_| true), None, "another thing of that name");
        away.bring_back(4);
        assert_eq!(away.get(&Key::Tool(&"t1".into()), |_| true), None);
        assert!(away.order.is_empty());
    }
}
