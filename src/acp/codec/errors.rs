//! Decodes errors of the agent.
//!
//! Some agents put the cause into `data.details`, or a whole JSON document into `message`.

use serde_json::Value;

use crate::model::{Raw, RpcError};

use super::value::{Object, first_text, parse, raw, take, text, whole};

const MAX_DEPTH: u8 = 4;
const NO_REASON: &str = "The agent did not give a reason.";

pub fn decode(error: &str) -> RpcError {
    let mut object = match parse(error) {
        Some(Value::Object(object)) => object,
        None if !error.trim().is_empty() => {
            return RpcError::new(RpcError::INTERNAL, error.trim().chars().take(2000).collect::<String>());
        }
        other => {
            let text = other.and_then(|other| find_text(&other, MAX_DEPTH));
            return RpcError::new(RpcError::INTERNAL, text.unwrap_or_else(|| NO_REASON.to_owned()));
        }
    };
    let code = object.get("code").and_then(whole).unwrap_or(RpcError::INTERNAL);
    let data = take(&mut object, &["data"]);
    let message = message(&object, data.as_ref());
    RpcError { code, message, data: data.map(|data| raw(&data)).or_else(|| rest(&object)) }
}

pub fn invalid(method: &str, error: &str) -> RpcError {
    RpcError::new(RpcError::INVALID_PARAMS, format!("Invalid params of {method}: {error}"))
}

fn message(object: &Object, data: Option<&Value>) -> String {
    let keys = ["message", "error", "detail", "details", "reason"];
    let reported = keys.iter().find_map(|key| find_text(object.get(*key)?, MAX_DEPTH)).unwrap_or_default();
    let reported = reported.trim().to_owned();
    let detail = data.and_then(|data| find_text(data, MAX_DEPTH)).map(|text| text.trim().to_owned());
    let says_nothing = matches!(
        reported.trim_end_matches('.').to_lowercase().as_str(),
        "" | "error"
            | "internal error"
            | "invalid params"
            | "invalid request"
            | "server error"
            | "unknown error"
            | "an error occurred"
    );
    match detail {
        Some(detail) if says_nothing => detail,
        Some(detail) if !reported.contains(&detail) && !detail.contains(&reported) => {
            format!("{reported}: {detail}")
        }
        Some(detail) if detail.len() > reported.len() => detail,
        _ if reported.is_empty() => NO_REASON.to_owned(),
        _ => reported,
    }
}

/// The text of a string (also of one that contains JSON), or of a common key.
fn find_text(value: &Value, depth: u8) -> Option<String> {
    let depth = depth.checked_sub(1)?;
    match value {
        Value::String(reported) => {
            let inner = if reported.trim_start().starts_with('{') { parse(reported) } else { None };
            let found = inner.and_then(|inner| find_text(&inner, depth)).unwrap_or_else(|| reported.clone());
            (!found.trim().is_empty()).then_some(found)
        }
        Value::Object(object) => {
            let keys = ["details", "detail", "message", "error", "reason", "description", "title"];
            keys.iter().find_map(|key| find_text(object.get(*key)?, depth))
        }
        Value::Array(items) => items.iter().find_map(|item| find_text(item, depth)),
        Value::Null | Value::Bool(_) => None,
        Value::Number(_) => text(value),
    }
}

fn rest(object: &Object) -> Option<Raw> {
    let mut rest = object.clone();
    rest.retain(|key, value| key != "code" && key != "message" && !value.is_null());
    (!rest.is_empty() && first_text(&rest, &["jsonrpc"]).is_none()).then(|| raw(&Value::Object(rest)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_most_specific_message() {
        for (error, code, message) in [
            (
                r#"{"code":-32603,"message":"Internal error: overloaded","data":{"kind":"busy"}}"#,
                -32603,
                "Internal error: overloaded",
            ),
            (
                r#"{"code":-32603,"message":"Internal error","data":{"details":"No key is set"}}"#,
                -32603,
                "No key is set",
            ),
            (
                r#"{"code":-32602,"message":"Bad cwd","data":"must be absolute"}"#,
                -32602,
                "Bad cwd: must be absolute",
            ),
            (
                r#"{"code":400,"message":"{\"error\":{\"message\":\"too large\",\"code\":400}}"}"#,
                400,
                "too large",
            ),
            (r#"{"code":"-32000","message":"Authentication required"}"#, -32000, "Authentication required"),
            (r#"{"code":-32603,"message":"","data":{"error":{"message":"deep"}}}"#, -32603, "deep"),
            (r#""plain words""#, -32603, "plain words"),
            (r#"{"message":"no code"}"#, -32603, "no code"),
            (r#"{"code":7}"#, 7, "The agent did not give a reason."),
            ("17", -32603, "17"),
            ("null", -32603, "The agent did not give a reason."),
            ("{broken", -32603, "{broken"),
        ] {
            let read = decode(error);
            assert_eq!((read.code, read.message.as_str()), (code, message), "{error}");
        }
    }

    #[test]
    fn error_data_is_preserved() {
        let read = decode(r#"{"code":-32000,"message":"Sign in","data":{"authMethods":[{"id":"a"}]}}"#);
        assert_eq!(read.data, Some(Raw(r#"{"authMethods":[{"id":"a"}]}"#.into())));
        let odd = decode(r#"{"message":"x","status":"UNAVAILABLE"}"#);
        assert_eq!(odd.data, Some(Raw(r#"{"status":"UNAVAILABLE"}"#.into())));
    }
}
