//! Strict mode, for testing an agent against the protocol.
//!
//! Checks whether a message is exactly what the official types accept, and which fields they would drop.
//! Invariant: a message that passes is decoded to the same values with and without this check.

use agent_client_protocol_schema::{v1 as schema, v2};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::model::Call;

pub fn update(params: &str, is_v2: bool) -> Result<(), String> {
    if is_v2 {
        return check::<v2::UpdateSessionNotification>(params);
    }
    check::<schema::SessionNotification>(params)
}

pub fn initialize(result: &str) -> Result<(), String> {
    let is_number = serde_json::from_str::<Value>(result)
        .is_ok_and(|result| result.get("protocolVersion").is_some_and(Value::is_u64));
    if !is_number {
        return Err("`protocolVersion` is not a number".to_owned());
    }
    check::<schema::InitializeResponse>(result)
}

pub fn request(method: &str, params: &str, is_v2: bool) -> Result<(), String> {
    match method {
        "session/request_permission" if is_v2 => check::<v2::RequestPermissionRequest>(params),
        "elicitation/create" if is_v2 => check::<v2::CreateElicitationRequest>(params),
        "session/request_permission" => check::<schema::RequestPermissionRequest>(params),
        "fs/read_text_file" => check::<schema::ReadTextFileRequest>(params),
        "fs/write_text_file" => check::<schema::WriteTextFileRequest>(params),
        "terminal/create" => check::<schema::CreateTerminalRequest>(params),
        "terminal/output" | "terminal/wait_for_exit" | "terminal/kill" | "terminal/release" => {
            check::<schema::TerminalOutputRequest>(params)
        }
        "elicitation/create" => check::<schema::CreateElicitationRequest>(params),
        _ => Ok(()),
    }
}

/// Checks the response to a call. `null` and `{}` are both valid for a result without required fields.
pub fn reply(call: &Call, result: &str, is_v2: bool) -> Result<(), String> {
    match call {
        Call::NewSession(_) if is_v2 => check::<v2::NewSessionResponse>(result),
        Call::ForkSession(..) if is_v2 => check::<v2::ForkSessionResponse>(result),
        Call::ListSessions { .. } if is_v2 => check::<v2::ListSessionsResponse>(result),
        Call::Prompt(..) if is_v2 => check::<v2::PromptResponse>(result),
        Call::SetOption(..) if is_v2 => check::<v2::SetSessionConfigOptionResponse>(result),
        Call::NewSession(_) => check::<schema::NewSessionResponse>(result),
        Call::ForkSession(..) => check::<schema::ForkSessionResponse>(result),
        Call::ListSessions { .. } => check::<schema::ListSessionsResponse>(result),
        Call::Prompt(..) => check::<schema::PromptResponse>(result),
        Call::SetOption(..) => check::<schema::SetSessionConfigOptionResponse>(result),
        _ => Ok(()),
    }
}

fn check<T: DeserializeOwned + Serialize>(text: &str) -> Result<(), String> {
    let value: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let read: T = serde_json::from_value(value.clone()).map_err(|error| error.to_string())?;
    let again = serde_json::to_value(&read).map_err(|error| error.to_string())?;
    lost(&value, &again, "").map_or(Ok(()), |position| {
        Err(format!("`{position}` contains items that the protocol does not allow"))
    })
}

/// The key of a list that is longer in the message than after decoding: the official decoders silently drop items.
fn lost(came: &Value, read: &Value, position: &str) -> Option<String> {
    match (came, read) {
        (Value::Array(came), Value::Array(read)) if came.len() != read.len() => Some(position.to_owned()),
        (Value::Array(came), Value::Array(read)) => {
            came.iter().zip(read).find_map(|(came, read)| lost(came, read, position))
        }
        (Value::Array(came), Value::Null) if !came.is_empty() => Some(position.to_owned()),
        (Value::Object(came), Value::Object(read)) => {
            came.iter().find_map(|(key, value)| lost(value, read.get(key)?, key))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valid_messages_pass_and_dropped_items_are_reported() {
        let plan = |entry: &str| {
            format!(r#"{{"sessionId":"s","update":{{"sessionUpdate":"plan","entries":[{entry}]}}}}"#)
        };
        let right = plan(r#"{"content":"x","priority":"high","status":"pending"}"#);
        assert_eq!(update(&right, false), Ok(()));
        assert!(
            update(&plan(r#"{"content":"x","status":"pending"}"#), false).unwrap_err().contains("entries")
        );
        assert!(update(r#"{"sessionId":"s","sessionUpdate":"plan","entries":[]}"#, false).is_err());
        assert!(initialize(r#"{"protocolVersion":"1"}"#).is_err());
        assert_eq!(initialize(r#"{"protocolVersion":1}"#), Ok(()));
        assert!(request("session/request_permission", r#"{"sessionId":"s"}"#, false).is_err());
        assert!(
            reply(&Call::NewSession(crate::model::SessionWorkspace::default()), r#"{"id":"s"}"#, false)
                .is_err()
        );
    }
}
