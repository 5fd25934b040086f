//! Encodes responses to requests of the agent.
//!
//! Invariants: results without payload are `{}` and never `null`, which some agents reject; a response that does
//! not match its request becomes an error.

use serde_json::{Map, Value, json};

use crate::model::{ExitInfo, FieldValue, Response, RpcError};

use super::requests::{RequestForm, RequestKind as Kind};

/// Result JSON, or error-object JSON.
pub fn encode(form: &RequestForm, answer: &Response) -> Result<String, String> {
    let result = match (form.kind, answer) {
        (_, Response::Error(error)) => return Err(encode_error(error)),
        (Kind::Permission, Response::Selected(option)) => {
            let outcome = json!({"outcome": "selected", "optionId": option});
            // Both forms in one: the dialect reads `optionId`, the protocol `outcome`.
            if form.is_flat {
                json!({"optionId": option, "outcome": outcome})
            } else {
                json!({"outcome": outcome})
            }
        }
        (Kind::Permission, Response::PermissionCancelled) => {
            let outcome = json!({"outcome": "cancelled"});
            if form.is_flat { outcome } else { json!({"outcome": outcome}) }
        }
        (Kind::Elicitation, Response::ElicitationAccepted(None)) => json!({"action": "accept"}),
        (Kind::Elicitation, Response::ElicitationAccepted(Some(values))) => {
            let content: Map<_, _> =
                values.iter().map(|(key, value)| (key.clone(), encode_value(value))).collect();
            json!({"action": "accept", "content": content})
        }
        (Kind::Elicitation, Response::ElicitationDeclined) => json!({"action": "decline"}),
        (Kind::Elicitation, Response::ElicitationCancelled) => json!({"action": "cancel"}),
        (Kind::ReadFile, Response::FileContent(text)) => json!({"content": text}),
        (Kind::WriteFile | Kind::TerminalKill | Kind::TerminalRelease, Response::Done) => json!({}),
        (Kind::TerminalCreate, Response::TerminalCreated(id)) => json!({"terminalId": id.as_str()}),
        (Kind::TerminalOutput, Response::TerminalOutput { output, is_truncated, exit }) => {
            let mut result = json!({"output": output, "truncated": is_truncated});
            if let Some(exit) = exit {
                result["exitStatus"] = encode_exit(exit);
            }
            result
        }
        (Kind::TerminalWait, Response::TerminalExit(exit)) => encode_exit(exit),
        _ => {
            let text = "Internal error in parlor: the response does not match the request.";
            return Err(encode_error(&RpcError::new(RpcError::INTERNAL, text)));
        }
    };
    Ok(result.to_string())
}

/// The response to a request that is dropped, because its turn or connection ended. ACP v1 prompt-turn, Cancellation:
/// pending permissions MUST be answered `cancelled`.
pub fn fallback(form: &RequestForm) -> Response {
    match form.kind {
        Kind::Permission => Response::PermissionCancelled,
        Kind::Elicitation => Response::ElicitationCancelled,
        _ => Response::Error(RpcError::new(
            RpcError::INTERNAL,
            "The request was dropped before a response was sent.",
        )),
    }
}

fn encode_value(value: &FieldValue) -> Value {
    match value {
        FieldValue::Text(text) => json!(text),
        FieldValue::Texts(texts) => json!(texts),
        FieldValue::Integer(number) => json!(number),
        FieldValue::Number(number) => json!(number),
        FieldValue::Bool(is_true) => json!(is_true),
    }
}

fn encode_exit(exit: &ExitInfo) -> Value {
    let mut status = json!({});
    if let Some(code) = exit.code {
        // The protocol has no negative codes; the shell convention is the low eight bits.
        status["exitCode"] = json!(if code < 0 { code & 0xff } else { code });
    }
    if let Some(signal) = &exit.signal {
        status["signal"] = json!(signal);
    }
    status
}

pub fn encode_error(error: &RpcError) -> String {
    let code = i32::try_from(error.code).unwrap_or(-32603);
    let mut object = json!({"code": code, "message": error.message});
    if let Some(data) = error.data.as_ref().and_then(|data| serde_json::from_str(&data.0).ok()) {
        object["data"] = data;
    }
    object.to_string()
}
