//! Requests of the agent, and their cancellation by the agent.

use super::Peer;
use crate::acp::envelope;
use crate::acp::peer::messages::{self, excerpt};
use crate::acp::peer::requests::{self, OpenRequest, WireId};
use crate::model::{AgentEvent, AnomalyKind, RpcError};

impl Peer {
    pub(super) fn on_request(&mut self, id: &str, method: &str, params: Option<&str>) {
        let session = params.and_then(envelope::session).or_else(|| self.stream.clone());
        let wire_id = WireId { id: id.into(), session };
        let hash = requests::content_hash(method, params);
        if self.requests.is_open(&wire_id, hash) {
            let text = format!("Ignored an open request that was delivered again: {}.", excerpt(method));
            return self.anomaly(AnomalyKind::Carrier, text);
        }
        if !self.requests.has_room(params) {
            return self.writer.refuse(&wire_id, &messages::too_many());
        }
        let count_before = self.events.len();
        match self.codec.request(method, params, &mut self.events) {
            Ok((request_id, form)) => {
                let id = self.requests.add(wire_id, form, hash, params);
                self.events.push(AgentEvent::Request(id, Box::new(request_id)));
            }
            Err(error) => {
                if error.code == RpcError::METHOD_NOT_FOUND && self.on_notification(method, params) {
                    let text = format!("Accepted {} with an id.", excerpt(method));
                    self.anomaly(AnomalyKind::Dialect, text);
                    return self.writer.respond(&wire_id, Ok("null"));
                }
                if self.events.len() == count_before {
                    let (kind, text) = if error.code == RpcError::METHOD_NOT_FOUND {
                        (
                            AnomalyKind::UnknownMethod,
                            format!("Rejected the unknown request {}.", excerpt(method)),
                        )
                    } else {
                        (
                            AnomalyKind::BadMessage,
                            format!("Rejected the request {}: {}", excerpt(method), excerpt(&error.message)),
                        )
                    };
                    self.anomaly(kind, text);
                }
                if error.code != RpcError::METHOD_NOT_FOUND {
                    self.codec.show_unreadable(params.unwrap_or_default(), &mut self.events);
                }
                self.writer.refuse(&wire_id, &error);
            }
        }
    }

    pub(super) fn on_withdrawal(&mut self, method: &str, params: Option<&str>) {
        let Some(id) = params.and_then(envelope::withdrawn_id) else {
            return self.anomaly(AnomalyKind::BadMessage, format!("{method} without a request id."));
        };
        // A request may be cancelled just after its response was sent.
        let withdrawn = self.requests.withdraw(id, self.stream.as_deref());
        self.events.extend(withdrawn.map(AgentEvent::RequestWithdrawn));
    }

    /// Responds to every open request at the end of the connection.
    pub(super) fn answer_all(&mut self) {
        for OpenRequest { wire_id, form, .. } in self.requests.take_all() {
            let outcome = self.codec.answer(&form, &self.codec.fallback(&form));
            self.writer.respond(&wire_id, outcome.as_deref().map_err(String::as_str));
        }
    }
}
