//! Error messages, and the classification of errors and texts for `core`.

use crate::acp::transport::{UNDELIVERED, UNSENT};
use crate::model::{CallError, RpcError};

/// Source: JSON-RPC 2.0, error codes.
pub const PARSE_ERROR: i64 = -32700;
pub const INVALID_REQUEST: i64 = -32600;

/// Whether another form of `initialize` may help.
pub fn is_about_form(error: &RpcError) -> bool {
    matches!(
        error.code,
        RpcError::UNSUPPORTED_VERSION
            | PARSE_ERROR
            | INVALID_REQUEST
            | RpcError::METHOD_NOT_FOUND
            | RpcError::INVALID_PARAMS
    ) || error.message.to_ascii_lowercase().contains("version")
}

/// The error of a call: from the agent, or from the transport in its place.
pub fn call_error(error: RpcError) -> CallError {
    match error.data.as_ref().map(|data| &*data.0) {
        Some(UNDELIVERED) => CallError::Undelivered { error: error.message },
        Some(UNSENT) => CallError::NotSent { error: error.message },
        _ => CallError::Agent(error),
    }
}

pub fn excerpt(text: &str) -> String {
    const MAX_CHARS: usize = 120;
    let mut short: String =
        text.chars().take(MAX_CHARS).map(|ch| if ch.is_control() { ' ' } else { ch }).collect();
    if text.chars().nth(MAX_CHARS).is_some() {
        short.push('…');
    }
    short
}
