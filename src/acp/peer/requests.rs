//! Requests of the agent without a response yet.
//!
//! Each has a handle, because agents behind HTTP may number the requests of each session on their own.
//! Invariant: a request is removed exactly once, by the caller that responds to it.

use std::collections::BTreeMap;
use std::hash::RandomState;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::acp::codec::RequestKind;
use crate::model::{Capacity, RequestId};

/// Handles are unique across all connections of the process.
static NEXT_ASK: AtomicU64 = AtomicU64::new(1);
const MAX: Capacity = Capacity { items: 512, bytes: 48 << 20 };

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WireId {
    /// The agent's id as JSON text.
    pub id: Box<str>,
    /// The session that the request names, or whose event stream delivered it.
    pub session: Option<Arc<str>>,
}

#[derive(Debug)]
pub struct OpenRequest {
    pub wire_id: WireId,
    pub kind: RequestKind,
    /// Of the method and the params, to recognize a request that is delivered again.
    hash: u64,
    bytes: usize,
    is_withdrawn: bool,
}

#[derive(Debug, Default)]
pub struct OpenRequests {
    open: BTreeMap<RequestId, OpenRequest>,
    pub hasher: RandomState,
}

impl OpenRequests {
    pub fn has_room(&self, params: Option<&str>) -> bool {
        let open: usize = self.open.values().map(|request| request.bytes).sum();
        let bytes = params.map_or(0, str::len) + open;
        self.open.is_empty() || (self.open.len() < MAX.items && bytes <= MAX.bytes)
    }

    pub fn is_open(&self, wire_id: &WireId, hash: u64) -> bool {
        self.open.values().any(|request| request.hash == hash && request.wire_id == *wire_id)
    }

    pub fn add(&mut self, wire_id: WireId, kind: RequestKind, hash: u64, params: Option<&str>) -> RequestId {
        let bytes = params.map_or(0, str::len);
        let id = RequestId(NEXT_ASK.fetch_add(1, Ordering::Relaxed));
        self.open.insert(id, OpenRequest { wire_id, kind, hash, bytes, is_withdrawn: false });
        id
    }

    /// Removes a request to respond to it; `None`: it was already answered.
    pub fn take(&mut self, id: RequestId) -> Option<OpenRequest> {
        self.open.remove(&id)
    }

    /// Marks an open request as cancelled; it stays open. Without a `session`, its id must be unique.
    pub fn withdraw(&mut self, id: &str, session: Option<&str>) -> Option<RequestId> {
        let mut same = self.open.iter_mut().filter(|(_, request)| {
            let is_of_session = session.is_none() || request.wire_id.session.as_deref() == session;
            !request.is_withdrawn && *request.wire_id.id == *id && is_of_session
        });
        let (id, request) = same.next()?;
        if same.next().is_some() {
            return None;
        }
        request.is_withdrawn = true;
        Some(*id)
    }

    pub fn find(&self, id: &str) -> Option<(RequestId, RequestKind)> {
        let (id, request) = self.open.iter().find(|(_, request)| *request.wire_id.id == *id)?;
        Some((*id, request.kind))
    }

    pub fn take_all(&mut self) -> Vec<OpenRequest> {
        std::mem::take(&mut self.open).into_values().collect()
    }
}

#[cfg(test)]
mod tests {
    use std::hash::BuildHasher as _;

    use super::*;

    fn add(requests: &mut OpenRequests, id: &str, session: Option<&str>, params: &str) -> RequestId {
        let wire_id = WireId { id: id.into(), session: session.map(Arc::from) };
        let kind = RequestKind::Permission;
        let hash = requests.hasher.hash_one(("session/request_permission", Some(params)));
        requests.add(wire_id, kind, hash, Some(params))
    }

    #[test]
    fn open_requests_are_bounded_by_count_and_by_bytes() {
        let mut requests = OpenRequests::default();
        let ids: Vec<RequestId> = (0..MAX.items)
            .map(|number| {
                assert!(requests.has_room(Some("{}")));
                add(&mut requests, &number.to_string(), None, "{}")
            })
            .collect();
        assert!(!requests.has_room(Some("{}")));
        assert!(requests.take(ids[3]).is_some() && requests.has_room(Some("{}")));
        let large = "x".repeat(MAX.bytes);
        assert!(!requests.has_room(Some(&large)));
        requests.take_all();
        assert!(requests.has_room(Some(&large)), "a single request is always accepted");
        add(&mut requests, "1", None, &large);
        assert!(!requests.has_room(Some("{}")));
    }

    #[test]
    fn a_cancellation_concerns_one_request_only() {
        let mut requests = OpenRequests::default();
        let first = add(&mut requests, "5", Some("a"), "{}");
        let second = add(&mut requests, "5", Some("b"), "{}");
        assert_eq!(requests.withdraw("5", None), None, "two requests have this id");
        assert_eq!(requests.withdraw("5", Some("b")), Some(second));
        assert_eq!(requests.withdraw("5", None), Some(first));
        assert_eq!(requests.withdraw("5", Some("a")), None, "it is cancelled already");
    }
}
