//! Requests of the agent without a response yet.
//!
//! Each has a handle, so that duplicate ids of the agent do not clash, and the agent's id as JSON text.
//! Invariant: a request is removed exactly once, by the caller that responds to it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::acp::codec::{RequestForm, RequestKind};
use crate::model::{Capacity, RequestId};

/// Handles are unique across all connections of the process.
static NEXT_ASK: AtomicU64 = AtomicU64::new(1);

/// Maximum number of open requests of an agent.
const MOST: Capacity = Capacity { items: 512, bytes: 48 << 20 };

/// An open request.
#[derive(Debug)]
pub struct OpenRequest {
    /// The agent's id as JSON text.
    pub wire_id: Box<str>,
    pub form: RequestForm,
    bytes: usize,
    is_withdrawn: bool,
}

/// The open requests, in order of arrival.
#[derive(Debug, Default)]
pub struct OpenRequests {
    open: BTreeMap<RequestId, OpenRequest>,
    bytes: usize,
}

impl OpenRequests {
    /// Whether there is room for another request.
    pub fn has_room(&self, params: Option<&str>) -> bool {
        let bytes = params.map_or(0, str::len);
        self.open.is_empty()
            || (self.open.len() < MOST.items && self.bytes.saturating_add(bytes) <= MOST.bytes)
    }

    /// Adds a request.
    pub fn add(&mut self, wire_id: &str, form: RequestForm, params: Option<&str>) -> RequestId {
        let bytes = params.map_or(0, str::len);
        let id = RequestId(NEXT_ASK.fetch_add(1, Ordering::Relaxed));
        self.open.insert(id, OpenRequest { wire_id: wire_id.into(), form, bytes, is_withdrawn: false });
        self.bytes += bytes;
        id
    }

    /// Removes a request to respond to it; `None`: it was already answered.
    pub fn take(&mut self, id: RequestId) -> Option<OpenRequest> {
        let request = self.open.remove(&id)?;
        self.bytes -= request.bytes;
        Some(request)
    }

    /// Marks the oldest open request with an id as cancelled by the agent. It stays open.
    pub fn withdraw(&mut self, wire_id: &str) -> Option<RequestId> {
        let is_same = |request: &OpenRequest| !request.is_withdrawn && *request.wire_id == *wire_id;
        let (id, request) = self.open.iter_mut().find(|(_, request)| is_same(request))?;
        request.is_withdrawn = true;
        Some(*id)
    }

    /// The oldest open request with this id.
    pub fn find(&self, wire_id: &str) -> Option<(RequestId, RequestKind)> {
        self.open
            .iter()
            .find(|(_, request)| *request.wire_id == *wire_id)
            .map(|(id, request)| (*id, request.form.kind))
    }

    /// Removes all requests, oldest first.
    pub fn take_all(&mut self) -> Vec<OpenRequest> {
        self.bytes = 0;
        std::mem::take(&mut self.open).into_values().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_requests_are_bounded_by_count_and_by_bytes() {
        let mut requests = OpenRequests::default();
        let ids: Vec<RequestId> = (0..MOST.items)
            .map(|number| {
                assert!(requests.has_room(Some("{}")));
                requests.add(&number.to_string(), RequestForm::official(RequestKind::Permission), Some("{}"))
            })
            .collect();
        assert!(!requests.has_room(Some("{}")));
        assert!(requests.take(ids[3]).is_some() && requests.has_room(Some("{}")));
        let large = "x".repeat(MOST.bytes);
        assert!(!requests.has_room(Some(&large)));
        requests.take_all();
        assert!(requests.has_room(Some(&large)), "a single request is always accepted");
        requests.add("1", RequestForm::official(RequestKind::Permission), Some(&large));
        assert!(!requests.has_room(Some("{}")));
    }
}
