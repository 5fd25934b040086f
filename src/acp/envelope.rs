//! Parses the JSON-RPC envelope of a message, borrowed from the text.
//!
//! Sorts a message into request, notification or response in one pass, without copying. Tolerates a missing
//! `jsonrpc`, `error: null` next to a result, `result: null` next to an error, duplicate keys (the last one counts)
//! and unknown keys.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// A message by kind; all texts are JSON except the method. The id of a request may be `null`; a missing result becomes
/// `null`; a response without an id is loose, and an error if the agent could not parse the id.
#[derive(Debug, PartialEq, Eq)]
pub enum Message<'a> {
    Request { id: &'a str, method: Cow<'a, str>, params: Option<&'a str> },
    Notification { method: Cow<'a, str>, params: Option<&'a str> },
    Response { id: &'a str, outcome: Result<&'a str, &'a str> },
    Loose(Result<&'a str, &'a str>),
    Odd(&'static str),
}

/// Parses one message; fails if it is not a JSON object.
pub fn read(text: &str) -> Result<Message<'_>, serde_json::Error> {
    let [id, method, params, result, error] = pick(text, ["id", "method", "params", "result", "error"])?;
    let (error, result_or_null) = (present(error), result.unwrap_or("null"));
    if let Some(method) = present(method) {
        let Some(method) = string(method) else { return Ok(Message::Odd("method is not a string")) };
        let params = present(params);
        return Ok(match id {
            Some(id) => Message::Request { id, method, params },
            None => Message::Notification { method, params },
        });
    }
    let outcome = error.map_or(Ok(result_or_null), Err);
    Ok(match present(id) {
        Some(id) => Message::Response { id, outcome },
        None if error.is_none() && result.is_none() => Message::Odd("no method, result or error"),
        None => Message::Loose(outcome),
    })
}

/// Splits several objects on one line, from an agent that omitted line ends; `None`: not several objects.
pub fn split_joined(text: &str) -> Option<Vec<&str>> {
    let parts = serde_json::Deserializer::from_str(text).into_iter();
    let parts: Vec<&str> = parts.map(|part| part.map(RawValue::get)).collect::<Result<_, _>>().ok()?;
    (parts.len() > 1).then_some(parts)
}

/// The number of an id in a response: `7`, `"7"` and `7.0` are all 7.
pub fn id_number(id: &str) -> Option<u64> {
    let bare = id.strip_prefix('"').and_then(|id| id.strip_suffix('"')).unwrap_or(id);
    if let Ok(number) = bare.parse() {
        return Some(number);
    }
    let number: f64 = bare.parse().ok()?;
    let is_exact = number.fract() == 0.0 && (0.0..9e15).contains(&number);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked above")]
    is_exact.then_some(number as u64)
}

/// The id of the request that a `$/cancel_request` cancels, as JSON text. Source: ACP v1
/// `CancelRequestNotification.requestId`; `$/cancelRequest` of LSP has `id`.
pub fn withdrawn_id(params: &str) -> Option<&str> {
    pick(params, ["requestId", "request_id", "id"]).ok()?.into_iter().flatten().next()
}

/// The session that the params or the result of a message name. Source: ACP v1, `sessionId`.
pub fn session<'a, S: From<Cow<'a, str>>>(scope: &'a str) -> Option<S> {
    let [session] = pick(scope, ["sessionId"]).ok()?;
    string(session?).map(S::from)
}

/// The protocol version in the result of `initialize`, if it is a number.
pub fn protocol_version(result: &str) -> Option<u64> {
    let [version] = pick(result, ["protocolVersion"]).ok()?;
    version?.parse().ok()
}

fn present(value: Option<&str>) -> Option<&str> {
    value.filter(|text| *text != "null")
}

/// A JSON string; borrowed unless it contains escapes.
pub fn string(text: &str) -> Option<Cow<'_, str>> {
    let bare = text.strip_prefix('"')?.strip_suffix('"')?;
    if bare.contains('\\') {
        serde_json::from_str(text).ok().map(Cow::Owned)
    } else {
        Some(Cow::Borrowed(bare))
    }
}

/// The values of these keys of an object, as JSON text.
pub fn pick<'a, const N: usize>(
    text: &'a str,
    keys: [&str; N],
) -> Result<[Option<&'a str>; N], serde_json::Error> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let values = reader.deserialize_map(Pick(keys))?;
    reader.end()?;
    Ok(values)
}

struct Pick<'k, const N: usize>([&'k str; N]);

impl<'de, const N: usize> Visitor<'de> for Pick<'_, N> {
    type Value = [Option<&'de str>; N];

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut values = [None; N];
        while let Some(at) = map.next_key_seed(Position(&self.0))? {
            let value = map.next_value::<&'de RawValue>()?.get();
            if let Some(place) = at.and_then(|at| values.get_mut(at)) {
                *place = Some(value);
            }
        }
        Ok(values)
    }
}

/// Finds the position of a key without a copy of it.
struct Position<'k>(&'k [&'k str]);

impl<'de> DeserializeSeed<'de> for Position<'_> {
    type Value = Option<usize>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Option<usize>, D::Error> {
        deserializer.deserialize_identifier(self)
    }
}

impl Visitor<'_> for Position<'_> {
    type Value = Option<usize>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E>(self, key: &str) -> Result<Option<usize>, E> {
        Ok(self.0.iter().position(|known| *known == key))
    }
}

#[cfg(test)]
mod tests {
    use super::{Message, id_number, read, split_joined, withdrawn_id};

    fn response<'a>(id: &'a str, outcome: Result<&'a str, &'a str>) -> Message<'a> {
        Message::Response { id, outcome }
    }

    #[test]
    fn responses_are_parsed() {
        for (text, expected) in [
            (r#"{"jsonrpc":"2.0","id":1,"result":{"a":1}}"#, response("1", Ok(r#"{"a":1}"#))),
            (r#"{"id":1,"result":{}}"#, response("1", Ok("{}"))),
            (r#"{"id":1,"result":{},"error":null}"#, response("1", Ok("{}"))),
            (r#"{"id":"1","result":null,"error":{"code":1}}"#, response("\"1\"", Err(r#"{"code":1}"#))),
            (r#"{"id":1.0,"error":"no"}"#, response("1.0", Err("\"no\""))),
            (r#"{"id":1}"#, response("1", Ok("null"))),
            (r#"{"id":1,"result":1,"result":2}"#, response("1", Ok("2"))),
            (r#"{"id":null,"error":{"code":-32700}}"#, Message::Loose(Err(r#"{"code":-32700}"#))),
            (r#"{"error":{"code":-32700}}"#, Message::Loose(Err(r#"{"code":-32700}"#))),
            (r#"{"result":1}"#, Message::Loose(Ok("1"))),
        ] {
            assert_eq!(read(text).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn requests_and_notifications_are_parsed() {
        let request = |id| Message::Request { id, method: "a/b".into(), params: None };
        assert_eq!(read(r#"{"id":0,"method":"a/b"}"#).unwrap(), request("0"));
        assert_eq!(read(r#"{"id":null,"method":"a\/b","params":null}"#).unwrap(), request("null"));
        assert_eq!(
            read(r#"{"method":"a","params":{"b":[1]},"extra":{}}"#).unwrap(),
            Message::Notification { method: "a".into(), params: Some(r#"{"b":[1]}"#) }
        );
    }

    #[test]
    fn invalid_messages_are_reported() {
        assert!(matches!(read("{}").unwrap(), Message::Odd(_)));
        assert!(matches!(read(r#"{"method":1}"#).unwrap(), Message::Odd(_)));
        for text in ["", "{", "[]", "1", r#"{"id":1}}"#, r#"{"id":1,}"#] {
            assert!(read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn ids_are_matched_by_number() {
        for (id, number) in [
            ("7", Some(7)),
            ("\"7\"", Some(7)),
            ("7.0", Some(7)),
            ("7e0", Some(7)),
            ("7.5", None),
            ("-1", None),
        ] {
            assert_eq!(id_number(id), number, "{id}");
        }
        assert_eq!(id_number("\"x\""), None);
    }

    #[test]
    fn joined_objects_are_split() {
        assert_eq!(split_joined(r#"{"a":1} {"b":2}"#).unwrap(), [r#"{"a":1}"#, r#"{"b":2}"#]);
        assert!(split_joined(r#"{"a":1}"#).is_none());
        assert!(split_joined(r#"{"a":1}{"b""#).is_none());
    }

    #[test]
    fn the_id_of_a_cancelled_request_is_found_under_its_keys() {
        assert_eq!(withdrawn_id(r#"{"requestId":"x"}"#), Some("\"x\""));
        assert_eq!(withdrawn_id(r#"{"id":3}"#), Some("3"));
        assert_eq!(withdrawn_id("[]"), None);
    }
}
