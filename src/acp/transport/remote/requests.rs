//! The requests of parlor that wait for their response.
//!
//! Invariant: a request gets one outcome: the first response on any path, or a failure.

use std::collections::BTreeMap;
use std::future::pending;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use memchr::memmem::Finder;
use tokio::sync::Notify;

use super::envelope::{self, Envelope, Kind};
use super::http_context::{Hook, Inlet};

static ID: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\"id\""));

/// Requests of parlor without an outcome.
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
            let mut inner = self.inner();
            inner.open.insert(id, envelope.clone());
            inner.last = inner.last.max(id);
        }
    }

    /// Drops second responses to the same request, and passes all other messages with an id to `also`.
    pub fn hook(self: &Arc<Self>, inlet: &Inlet, also: impl Fn(Envelope) + Send + Sync + 'static) -> Hook {
        let (this, inlet) = (Arc::clone(self), inlet.clone());
        Arc::new(move |text| {
            // Skips parsing for updates, which are most of the messages.
            if ID.find(text.as_bytes()).is_none() {
                return true;
            }
            let Some(envelope) = envelope::read(text) else { return true };
            let is_news = envelope.kind != Kind::Response || this.on_response(&envelope);
            if is_news {
                also(envelope);
            } else {
                inlet.trace("Skipped a second response to the same request.");
            }
            is_news
        })
    }

    fn on_response(&self, envelope: &Envelope) -> bool {
        let Some(id) = envelope.number() else { return true };
        let mut inner = self.inner();
        // Responses to unknown requests are left to the peer.
        let is_first = inner.open.remove(&id).is_some() || id > inner.last;
        drop(inner);
        self.answered.notify_waiters();
        is_first
    }

    /// Records that a message could not be delivered; `false`: it already had an outcome.
    pub fn on_failure(&self, envelope: &Envelope) -> bool {
        let Some(id) = envelope.number().filter(|_| envelope.kind == Kind::Request) else { return true };
        let was_open = self.inner().open.remove(&id).is_some();
        self.answered.notify_waiters();
        was_open
    }

    /// Whether a request has no outcome yet.
    pub fn is_open(&self, envelope: &Envelope) -> bool {
        envelope.kind == Kind::Request
            && envelope.number().is_none_or(|id| self.inner().open.contains_key(&id))
    }

    /// The requests of a session without an outcome.
    pub fn of_session(&self, session: &str) -> Vec<Envelope> {
        let is_of = |envelope: &&Envelope| envelope.session.as_deref() == Some(session);
        self.inner().open.values().filter(is_of).cloned().collect()
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

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
