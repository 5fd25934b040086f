//! Small judgements about errors and texts.
//!
//! Duty: which errors are about the form of what was asked; the beginning of a text for an anomaly.
//! Not its duty: what is done about either (`core`).

use crate::model::RpcError;

/// Source: JSON-RPC 2.0, error codes.
pub const PARSE_ERROR: i64 = -32700;
/// Source: JSON-RPC 2.0, error codes.
pub const INVALID_REQUEST: i64 = -32600;

/// Whether another form of `initialize` may help.
pub fn is_about_form(error: &RpcError) -> bool {
    const UNSUPPORTED_VERSION: i64 = -32022;
    matches!(
        error.code,
        UNSUPPORTED_VERSION
            | PARSE_ERROR
            | INVALID_REQUEST
            | RpcError::METHOD_NOT_FOUND
            | RpcError::INVALID_PARAMS
    ) || error.message.to_ascii_lowercase().contains("version")
}

/// The beginning of a text, in one line.
pub fn excerpt(text: &str) -> String {
    const MAX_CHARS: usize = 120;
    let mut short: String =
        text.chars().take(MAX_CHARS).map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
    if text.chars().nth(MAX_CHARS).is_some() {
        short.push('…');
    }
    short
}
