//! Requests of the agent that have no answer yet.
//!
//! Duty: our own handle for each, so that equal ids of the agent do not clash; the agent's id byte for byte.
//! Not its duty: what the answer is.
//! Invariant: an ask leaves the table exactly once; whoever takes it out answers it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::acp::codec::AskForm;
use crate::model::AskId;

/// Ask ids are unique over all connections of the process.
static NEXT_ASK: AtomicU64 = AtomicU64::new(1);

/// An open request.
#[derive(Debug)]
pub struct OpenAsk {
    /// Its id as JSON, as the agent spelled it.
    pub wire_id: Box<str>,
    /// How it was spelled.
    pub form: AskForm,
    is_withdrawn: bool,
}

/// The table, in the order in which the requests came.
#[derive(Debug, Default)]
pub struct Asks {
    open: BTreeMap<AskId, OpenAsk>,
}

impl Asks {
    /// Enters a request.
    pub fn add(&mut self, wire_id: &str, form: AskForm) -> AskId {
        let id = AskId(NEXT_ASK.fetch_add(1, Ordering::Relaxed));
        self.open.insert(id, OpenAsk { wire_id: wire_id.into(), form, is_withdrawn: false });
        id
    }

    /// Takes a request to answer it; `None` when it was answered before.
    pub fn take(&mut self, id: AskId) -> Option<OpenAsk> {
        self.open.remove(&id)
    }

    /// The agent takes a request back: the oldest open one with this id. It stays open.
    pub fn withdraw(&mut self, wire_id: &str) -> Option<AskId> {
        let is_same = |ask: &OpenAsk| !ask.is_withdrawn && *ask.wire_id == *wire_id;
        let (id, ask) = self.open.iter_mut().find(|(_, ask)| is_same(ask))?;
        ask.is_withdrawn = true;
        Some(*id)
    }

    /// Takes all, the oldest first.
    pub fn take_all(&mut self) -> Vec<OpenAsk> {
        std::mem::take(&mut self.open).into_values().collect()
    }
}
