//! All sessions that are open here, and which of them may have changed.
//!
//! Duty: whoever wants to change a session gets it from here, so that it is known which ones were touched since
//! the last look. Not its duty: what a change means.
//! Invariant: no session changes without being touched, so what looks at the touched ones only misses nothing.

use std::collections::BTreeMap;
use std::ops::Deref;

use crate::model::SessionKey;

use crate::app::Session;

/// The sessions by their keys. Reading is that of the map.
#[derive(Debug, Clone, Default)]
pub struct Sessions {
    all: BTreeMap<SessionKey, Session>,
    /// Those that were given out to be changed, each once.
    touched: Vec<SessionKey>,
}

impl Sessions {
    /// The session, to be changed.
    pub fn get_mut(&mut self, key: &SessionKey) -> Option<&mut Session> {
        self.touch(*key);
        self.all.get_mut(key)
    }

    /// All of them, to be changed.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut Session> {
        self.touched.clear();
        self.touched.extend(self.all.keys());
        self.all.values_mut()
    }

    /// Adds a session.
    pub fn insert(&mut self, key: SessionKey, session: Session) -> Option<Session> {
        self.touch(key);
        self.all.insert(key, session)
    }

    /// Takes a session away.
    pub fn remove(&mut self, key: &SessionKey) -> Option<Session> {
        self.touched.retain(|touched| touched != key);
        self.all.remove(key)
    }

    /// Says that something changed that belongs to a session and stands elsewhere.
    pub(in crate::app) fn touch(&mut self, key: SessionKey) {
        if !self.touched.contains(&key) {
            self.touched.push(key);
        }
    }

    /// Those that were touched since the last visit.
    pub(in crate::app) fn touched(&self) -> &[SessionKey] {
        &self.touched
    }

    /// Visits those that were touched since the last visit.
    pub(in crate::app) fn visit_touched(&mut self, mut visit: impl FnMut(&mut Session)) {
        for key in self.touched.drain(..) {
            if let Some(session) = self.all.get_mut(&key) {
                visit(session);
            }
        }
    }
}

impl Deref for Sessions {
    type Target = BTreeMap<SessionKey, Session>;

    fn deref(&self) -> &Self::Target {
        &self.all
    }
}

impl PartialEq for Sessions {
    fn eq(&self, other: &Self) -> bool {
        self.all == other.all
    }
}
