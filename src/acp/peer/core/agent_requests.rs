//! Requests of the agent, and their cancellation by the agent.

use super::Peer;
use crate::acp::envelope;
use crate::acp::peer::messages::excerpt;
use crate::acp::peer::requests::{self, OpenRequest, WireId};
use crate::model::{AgentEvent, AnomalyKind, RpcError};

impl Peer {
    pub fn on_request(&mut self, id: &str, method: &str, params: Option<&str>) {
        let session = params.and_then(envelope::session).or_else(|| self.stream.clone());
        let wire_id = WireId { id: id.into(), session };
        let hash = requests::content_hash(method, params);
        if self.requests.is_open(&wire_id, hash) {
            let text = format!("Ignored an open request that was delivered again: {}.", excerpt(method));
            return self.anomaly(AnomalyKind::Carrier, text);
        }
        if !self.requests.has_room(params) {
            let text = "Too many open requests. Wait for responses before sending more.";
            return self.writer.refuse(&wire_id, &RpcError::new(RpcError::INTERNAL, text));
        }
        let count_before = self.events.len();
        match self.codec.request(method, params, &mut self.events) {
            Ok((request_id, form)) => {
                let id = self.requests.add(wire_id, form, hash, params);
                self.events.push(AgentEvent::Request(id, Box::new(request_id)));
            }
            Err(error) => {
                let is_unknown = error.code == RpcError::METHOD_NOT_FOUND;
                let method_name = excerpt(method);
                if is_unknown && self.on_notification(method, params) {
                    self.anomaly(AnomalyKind::Dialect, format!("Accepted {method_name} with an id."));
                    return self.writer.respond(&wire_id, Ok("null"));
                }
                if self.events.len() == count_before {
                    let (kind, text) = if is_unknown {
                        (AnomalyKind::UnknownMethod, format!("Rejected the unknown request {method_name}."))
                    } else {
                        let why = excerpt(&error.message);
                        (AnomalyKind::BadMessage, format!("Rejected the request {method_name}: {why}"))
                    };
                    self.anomaly(kind, text);
                }
                if !is_unknown {
                    self.codec.show_unreadable(params.unwrap_or_default(), &mut self.events);
                }
                self.writer.refuse(&wire_id, &error);
            }
        }
    }

    pub fn on_withdrawal(&mut self, method: &str, params: Option<&str>) {
        let Some(id) = params.and_then(envelope::withdrawn_id) else {
            return self.anomaly(AnomalyKind::BadMessage, format!("{method} without a request id."));
        };
        // A request may be cancelled just after its response was sent.
        let withdrawn = self.requests.withdraw(id, self.stream.as_deref());
        self.events.extend(withdrawn.map(AgentEvent::RequestWithdrawn));
    }

    /// Responds to every open request at the end of the connection.
    pub fn answer_all(&mut self) {
        for OpenRequest { wire_id, form, .. } in self.requests.take_all() {
            let outcome = self.codec.answer(&form, &self.codec.fallback(&form));
            self.writer.respond(&wire_id, outcome.as_deref().map_err(String::as_str));
        }
    }
}
