//! The requests of parlor that wait for their response.
//!
//! Invariant: a request gets one outcome: the first response on any path, or a failure.

use std::collections::BTreeMap;
use std::future::pending;
use std::sync::Mutex;

use tokio::sync::Notify;

use super::envelope::{Envelope, Kind};
use crate::acp::lock::lock;

#[derive(Debug, Default)]
pub struct Requests {
    inner: Mutex<Inner>,
    answered: Notify,
}

#[derive(Debug, Default)]
struct Inner {
    open: BTreeMap<u64, Envelope>,
    last: u64,
}

impl Requests {
    pub fn add(&self, envelope: &Envelope) {
        if let (Kind::Request, Some(id)) = (envelope.kind, envelope.number()) {
            let mut inner = lock(&self.inner);
            inner.open.insert(id, envelope.clone());
            inner.last = inner.last.max(id);
        }
    }

    /// Records a response; `false`: the request already had one.
    pub fn on_response(&self, envelope: &Envelope) -> bool {
        let Some(id) = envelope.number() else { return true };
        let mut inner = lock(&self.inner);
        // Responses to unknown requests are left to the peer.
        let is_first = inner.open.remove(&id).is_some() || id > inner.last;
        drop(inner);
        self.answered.notify_waiters();
        is_first
    }

    /// Records that a message could not be delivered; `false`: it already had an outcome.
    pub fn on_failure(&self, envelope: &Envelope) -> bool {
        let Some(id) = envelope.number().filter(|_| envelope.kind == Kind::Request) else { return true };
        let was_open = lock(&self.inner).open.remove(&id).is_some();
        self.answered.notify_waiters();
        was_open
    }

    /// Whether a request has no outcome yet.
    pub fn is_open(&self, envelope: &Envelope) -> bool {
        envelope.kind == Kind::Request
            && envelope.number().is_none_or(|id| lock(&self.inner).open.contains_key(&id))
    }

    /// The requests of a session without an outcome.
    pub fn of_session(&self, session: &str) -> Vec<Envelope> {
        let is_of = |envelope: &&Envelope| envelope.session.as_deref() == Some(session);
        lock(&self.inner).open.values().filter(is_of).cloned().collect()
    }

    /// Waits until a request has its outcome; never returns for other messages.
    pub async fn closed(&self, envelope: &Envelope) {
        if envelope.kind != Kind::Request || envelope.number().is_none() {
            pending::<()>().await;
        }
        loop {
            let answered = self.answered.notified();
            if !self.is_open(envelope) {
                return;
            }
            answered.await;
        }
    }
}
