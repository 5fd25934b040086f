//! All open sessions, with a record of which ones may have changed.
//!
//! Mutable access marks a session as touched; `visit_touched` passes over those only.
//! Invariant: no session changes without being marked.

use std::collections::BTreeMap;
use std::ops::Deref;

use crate::model::SessionKey;

use crate::core::Session;

/// The sessions by key. Derefs to the map for reading.
#[derive(Debug, Clone, Default)]
pub struct Sessions {
    all: BTreeMap<SessionKey, Session>,
    /// Sessions that were borrowed mutably, each once.
    touched: Vec<SessionKey>,
}

impl Sessions {
    pub fn get_mut(&mut self, key: &SessionKey) -> Option<&mut Session> {
        self.touch(*key);
        self.all.get_mut(key)
    }

    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut Session> {
        self.touched.clear();
        self.touched.extend(self.all.keys());
        self.all.values_mut()
    }

    pub fn insert(&mut self, key: SessionKey, session: Session) -> Option<Session> {
        self.touch(key);
        self.all.insert(key, session)
    }

    pub fn remove(&mut self, key: &SessionKey) -> Option<Session> {
        self.touched.retain(|touched| touched != key);
        self.all.remove(key)
    }

    /// Marks a session as changed because of data stored elsewhere.
    pub(in crate::core) fn touch(&mut self, key: SessionKey) {
        if !self.touched.contains(&key) {
            self.touched.push(key);
        }
    }

    /// The sessions touched since the last visit.
    pub(in crate::core) fn touched(&self) -> &[SessionKey] {
        &self.touched
    }

    /// All sessions, for changes that are not visible and not recorded.
    pub(in crate::core) fn all_unchanged(&mut self) -> impl Iterator<Item = &mut Session> {
        self.all.values_mut()
    }

    pub(in crate::core) fn visit_touched(&mut self, mut visit: impl FnMut(&mut Session)) {
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
