//! Reads the parts of a message that a transport needs: id, kind, method and session.
//!
//! Source: JSON-RPC 2.0; ACP v1, `sessionId` in params and results.

use bytes::Bytes;
use serde_json::{Value, json};

use super::sse::SseItem;
use crate::acp::codec::value::Object;
use crate::acp::dialects::openoxide::EVENTS;
use crate::acp::envelope::{Message, id_number, pick, session};
use crate::acp::frame::{InboundFrame, sort_whole};
use crate::model::RpcError;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Request,
    Notification,
    Response,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Envelope {
    pub kind: Kind,
    pub id: Option<String>,
    /// The method; empty for a response.
    pub method: String,
    pub session: Option<String>,
    pub is_error: bool,
}

impl Envelope {
    /// The id as a number, as parlor assigns them; some servers return it as a string.
    pub fn number(&self) -> Option<u64> {
        id_number(self.id.as_deref()?)
    }
}

pub fn read(text: &str) -> Option<Envelope> {
    let message = crate::acp::envelope::read(text).ok()?;
    let (kind, id, method, scope) = match &message {
        Message::Request { id, method, params } if *id != "null" => {
            (Kind::Request, Some(*id), method.as_ref(), *params)
        }
        Message::Request { method, params, .. } | Message::Notification { method, params } => {
            (Kind::Notification, None, method.as_ref(), *params)
        }
        Message::Response { id, outcome } => (Kind::Response, Some(*id), "", outcome.ok()),
        Message::Loose(outcome) => (Kind::Response, None, "", outcome.ok()),
        Message::Odd(_) => return None,
    };
    Some(Envelope {
        kind,
        id: id.map(str::to_owned),
        method: method.to_owned(),
        session: scope.and_then(session),
        is_error: matches!(message, Message::Response { outcome: Err(_), .. } | Message::Loose(Err(_))),
    })
}

/// The error response to a request whose response was not received. `mark` is `UNDELIVERED` or `UNSENT`.
pub fn failure(id: &str, mark: &str, text: &str) -> Bytes {
    let [id, mark]: [Value; 2] = [id, mark].map(|json| serde_json::from_str(json).unwrap_or_default());
    let error = json!({"code": RpcError::INTERNAL, "message": text, "data": mark});
    json!({"jsonrpc": "2.0", "id": id, "error": error}).to_string().into()
}

/// Sets the id of a response that has none; it belongs to the request in whose POST it was received.
pub fn with_id(text: &str, id: &str) -> Option<Bytes> {
    let mut answer: Object = serde_json::from_str(text).ok()?;
    answer.insert("id".to_owned(), serde_json::from_str(id).ok()?);
    serde_json::to_vec(&answer).ok().map(Bytes::from)
}

/// Converts an item of an event stream to messages. One dialect has the kind of an event in the event name, with data
/// that is not a JSON-RPC message; such an event becomes a notification with that name.
pub fn sort_event(item: SseItem, out: &mut Vec<InboundFrame>) {
    match item {
        SseItem::Comment => {}
        SseItem::Oversize { len_bytes, head } => out.push(InboundFrame::Oversize { len_bytes, head }),
        SseItem::Event { name: None, data, .. } => sort_whole(&data, out),
        SseItem::Event { name: Some(name), data, .. } => {
            let text = String::from_utf8_lossy(&data);
            let is_whole = is_message(&name, &text) || text.trim_start().starts_with('[');
            sort_whole(&if is_whole { data.clone() } else { named(&name, &text) }, out);
        }
    }
}

/// Whether the data of a named event is a JSON-RPC message. The event of a tool call also has an `id`, and its result
/// may be in `result` or `error`.
fn is_message(name: &str, text: &str) -> bool {
    pick(text, ["jsonrpc", "method", "result", "error"]).is_ok_and(|marks| {
        let [rpc, method, result, error] = marks.map(|mark| mark.is_some_and(|mark| mark != "null"));
        rpc || method || (result || error) && !EVENTS.contains(&name)
    })
}

fn named(name: &str, text: &str) -> Bytes {
    let value = match serde_json::from_str(text).unwrap_or_else(|_| Value::from(text)) {
        object @ Value::Object(_) => object,
        Value::String(text) => json!({ "text": text }),
        value => json!({ "value": value }),
    };
    json!({ "jsonrpc": "2.0", "method": name, "params": value }).to_string().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::acp::transport::UNSENT;

    #[test]
    fn kind_id_method_and_session_are_read() {
        let read =
            |text| read(text).map(|envelope| (envelope.kind, envelope.id, envelope.method, envelope.session));
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(
            read(r#"{"id":1,"method":"session/prompt","params":{"sessionId":"a","prompt":[]}}"#),
            Some((Kind::Request, some("1"), "session/prompt".to_owned(), some("a")))
        );
        assert_eq!(
            read(r#"{"method":"session/cancel","params":{"sessionId":"b\u0041"}}"#),
            Some((Kind::Notification, None, "session/cancel".to_owned(), some("bA")))
        );
        assert_eq!(
            read(r#"{"id":"x","result":{"sessionId":"c"}}"#),
            Some((Kind::Response, some("\"x\""), String::new(), some("c")))
        );
        assert_eq!(
            read(r#"{"id":null,"error":{"code":1}}"#),
            Some((Kind::Response, None, String::new(), None))
        );
        assert_eq!(read(r#"{"type":"done"}"#), None);
        assert_eq!(read("hello"), None);
    }

    fn sorted(name: Option<&str>, data: &str) -> Vec<String> {
        let mut out = Vec::new();
        sort_event(
            SseItem::Event { name: name.map(str::to_owned), id: None, data: data.to_owned().into() },
            &mut out,
        );
        out.into_iter()
            .map(|piece| match piece {
                InboundFrame::Frame(frame) => frame.text().to_owned(),
                other => format!("{other:?}"),
            })
            .collect()
    }

    #[test]
    fn named_events_become_notifications() {
        for (data, params) in [
            ("{\"text\":\"hi\"}", "{\"text\":\"hi\"}"),
            ("plain", "{\"text\":\"plain\"}"),
            ("\"quoted\"", "{\"text\":\"quoted\"}"),
            ("7", "{\"value\":7}"),
        ] {
            let expected = format!("{{\"jsonrpc\":\"2.0\",\"method\":\"text_delta\",\"params\":{params}}}");
            assert_eq!(sorted(Some("text_delta"), data), [expected]);
        }
        for (name, params) in [
            ("tool_use", r#"{"id":"t1","name":"bash"}"#),
            ("tool_result", r#"{"id":"t1","result":"out"}"#),
            ("tool_result", r#"{"id":"t1","error":"no"}"#),
        ] {
            let expected = format!("{{\"jsonrpc\":\"2.0\",\"method\":\"{name}\",\"params\":{params}}}");
            assert_eq!(sorted(Some(name), params), [expected]);
        }
        assert_eq!(sorted(Some("answer"), r#"{"id":1,"result":{}}"#), [r#"{"id":1,"result":{}}"#]);
        let message = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
        assert_eq!(sorted(Some("response"), message), [message]);
        assert_eq!(sorted(Some("done"), message), [message]);
        assert_eq!(sorted(None, message), [message]);
    }

    #[test]
    fn generated_responses_are_valid() {
        let envelope = read(std::str::from_utf8(&failure("3", UNSENT, "no \"luck\"")).unwrap()).unwrap();
        assert_eq!(
            (envelope.kind, envelope.id, envelope.is_error),
            (Kind::Response, Some("3".to_owned()), true)
        );
        let given = with_id(r#"{"error":{"code":1},"id":null}"#, "4").unwrap();
        assert_eq!(read(std::str::from_utf8(&given).unwrap()).unwrap().id, Some("4".to_owned()));
    }
}
