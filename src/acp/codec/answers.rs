//! Encodes responses to requests of the agent.
//!
//! Invariants: results without payload are `{}` and never `null`, which some agents reject; a response that does
//! not match its request becomes an error.

use std::collections::BTreeMap;

use agent_client_protocol_schema::v1 as schema;
use serde_json::{Value, json};

use crate::model::{ExitInfo, FieldValue, Response, RpcError};

use super::value::json as to_json;
use super::{RequestForm, RequestKind};

/// Result JSON, or error-object JSON.
pub(super) fn encode(form: &RequestForm, answer: &Response) -> Result<String, String> {
    let result = match (form.kind, answer) {
        (_, Response::Error(error)) => return Err(encode_error(error)),
        (RequestKind::Permission, Response::Selected(option)) => encode_selected(form, option),
        (RequestKind::Permission, Response::PermissionCancelled) => encode_cancelled(form),
        (RequestKind::Elicitation, Response::ElicitationAccepted(values)) => {
            let content = values.as_ref().map(|values| {
                values
                    .iter()
                    .map(|(key, value)| (key.clone(), encode_value(value)))
                    .collect::<BTreeMap<_, _>>()
            });
            elicitation(schema::ElicitationAction::Accept(
                schema::ElicitationAcceptAction::new().content(content),
            ))
        }
        (RequestKind::Elicitation, Response::ElicitationDeclined) => {
            elicitation(schema::ElicitationAction::Decline)
        }
        (RequestKind::Elicitation, Response::ElicitationCancelled) => {
            elicitation(schema::ElicitationAction::Cancel)
        }
        (RequestKind::ReadFile, Response::FileContent(text)) => {
            to_json(&schema::ReadTextFileResponse::new(text.as_str()))
        }
        (RequestKind::WriteFile, Response::Done) => to_json(&schema::WriteTextFileResponse::new()),
        (RequestKind::TerminalKill, Response::Done) => to_json(&schema::KillTerminalResponse::new()),
        (RequestKind::TerminalRelease, Response::Done) => to_json(&schema::ReleaseTerminalResponse::new()),
        (RequestKind::TerminalCreate, Response::TerminalCreated(id)) => {
            to_json(&schema::CreateTerminalResponse::new(id.0.clone()))
        }
        (RequestKind::TerminalOutput, Response::TerminalOutput { output, is_truncated, exit }) => to_json(
            &schema::TerminalOutputResponse::new(output.as_str(), *is_truncated)
                .exit_status(exit.as_ref().map(encode_exit)),
        ),
        (RequestKind::TerminalWait, Response::TerminalExit(exit)) => {
            to_json(&schema::WaitForTerminalExitResponse::new(encode_exit(exit)))
        }
        _ => {
            let text = "Internal error in parlor: the response does not match the request.";
            return Err(encode_error(&RpcError::new(RpcError::INTERNAL, text)));
        }
    };
    Ok(result)
}

/// The response to a request that is dropped, because its turn or connection ended.
pub(super) fn fallback(form: &RequestForm) -> Response {
    match form.kind {
        RequestKind::Permission => Response::PermissionCancelled,
        RequestKind::Elicitation => Response::ElicitationCancelled,
        _ => Response::Error(RpcError::new(
            RpcError::INTERNAL,
            "The request was dropped before a response was sent.",
        )),
    }
}

fn encode_selected(form: &RequestForm, option: &str) -> String {
    let outcome =
        schema::RequestPermissionOutcome::Selected(schema::SelectedPermissionOutcome::new(option.to_owned()));
    if form.is_flat {
        // Both forms in one: the dialect reads `optionId`, the protocol `outcome`.
        return json!({"optionId": option, "outcome": outcome}).to_string();
    }
    to_json(&schema::RequestPermissionResponse::new(outcome))
}

fn encode_cancelled(form: &RequestForm) -> String {
    if form.is_flat {
        return json!({"outcome": "cancelled"}).to_string();
    }
    to_json(&schema::RequestPermissionResponse::new(schema::RequestPermissionOutcome::Cancelled))
}

fn elicitation(action: schema::ElicitationAction) -> String {
    to_json(&schema::CreateElicitationResponse::new(action))
}

fn encode_value(value: &FieldValue) -> schema::ElicitationContentValue {
    match value {
        FieldValue::Text(text) => schema::ElicitationContentValue::String(text.clone()),
        FieldValue::Texts(texts) => schema::ElicitationContentValue::StringArray(texts.clone()),
        FieldValue::Integer(number) => schema::ElicitationContentValue::Integer(*number),
        FieldValue::Number(number) => schema::ElicitationContentValue::Number(*number),
        FieldValue::Bool(is_true) => schema::ElicitationContentValue::Boolean(*is_true),
    }
}

fn encode_exit(exit: &ExitInfo) -> schema::TerminalExitStatus {
    // The protocol has no negative codes; the shell convention is the low eight bits.
    #[allow(clippy::cast_sign_loss, reason = "masked to eight bits")]
    let code = exit.code.map(|code| u32::try_from(code).unwrap_or((code & 0xff) as u32));
    schema::TerminalExitStatus::new().exit_code(code).signal(exit.signal.clone())
}

fn encode_error(error: &RpcError) -> String {
    let code = i32::try_from(error.code).unwrap_or(-32603);
    let data: Option<Value> = error.data.as_ref().and_then(|data| serde_json::from_str(&data.0).ok());
    to_json(&schema::Error::new(code, error.message.as_str()).data(data))
}
