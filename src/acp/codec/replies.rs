//! Decodes the results of requests.
//!
//! `null` is accepted where a result has no required fields.

use serde_json::Value;

use crate::model::{
    AgentEvent, Call, CallError, Reply, RpcError, SessionId, SessionInfo, SessionReply, SessionUpdate,
    StopReason, TurnUsage,
};

use super::decoder_state::DecoderState;
use super::names::{NEW_SESSION_ID, STOP_REASONS, official};
use super::value::{Object, first, first_text, items, list, parse, take, take_list, take_text, typed};
use super::{errors, options, strict, unstable};

pub const STOP_KEYS: &[&str] = &["stopReason", "stop_reason", "reason"];

pub fn decode(
    call: &Call,
    result: &str,
    memory: &mut DecoderState,
    is_strict: bool,
    out: &mut Vec<AgentEvent>,
) -> Result<Reply, CallError> {
    if is_strict {
        strict::reply(call, result, memory.is_v2()).map_err(|error| malformed(&error))?;
    }
    let is_null = result.trim() == "null";
    let mut result = match parse(result) {
        Some(Value::Object(result)) => result,
        Some(Value::Array(items)) if matches!(call, Call::ListSessions { .. }) => {
            Object::from_iter([("sessions".to_owned(), Value::Array(items))])
        }
        // `null` and scalars are treated as `{}`.
        Some(_) => Object::new(),
        None => return Err(malformed("not valid JSON")),
    };
    Ok(match call {
        Call::NewSession(_) | Call::ForkSession(..) => {
            let name = new_session_id(&result).ok_or_else(|| malformed("no session id"))?;
            let mut reply = options::decode_session(&mut result, out);
            let session = memory.session(&name);
            tell_commands(&session, &mut result, out);
            memory.opened.insert(session.clone());
            reply.id = Some(session);
            Reply::Session(reply)
        }
        Call::LoadSession(id, _) | Call::ResumeSession(id, _) => {
            let session = memory.session(id.as_str());
            tell_commands(&session, &mut result, out);
            let reply = options::decode_session(&mut result, out);
            // Some agents respond with `null` for a session that they do not have.
            let is_provisional = is_null && matches!(call, Call::LoadSession(..));
            Reply::Session(SessionReply { is_provisional, ..reply })
        }
        Call::CloseSession(id) | Call::DeleteSession(id) => {
            memory.opened.remove(id);
            Reply::Done
        }
        Call::ListSessions { .. } => decode_list(&mut result, out),
        Call::Prompt(..) => decode_turn(&mut result)?,
        Call::Steer(..) => Reply::Steered { is_accepted: unstable::is_steered(&result) },
        // Missing options are unchanged, not removed.
        Call::SetOption(..) => options::decode_options(&mut result, out).map_or(Reply::Done, Reply::Options),
        Call::SetTitle(_, asked) => {
            Reply::Title(take_text(&mut result, &["title"]).unwrap_or_else(|| asked.clone()))
        }
        Call::SessionStatus(_) => Reply::SessionStatus { is_live: unstable::is_live(&result) },
        Call::AuthStatus => {
            unstable::decode_auth(&mut result).map(Reply::AuthStatus).ok_or_else(|| malformed("no state"))?
        }
        Call::ListProviders => Reply::Providers(unstable::decode_providers(&mut result)),
        Call::Authenticate { .. }
        | Call::LogOut
        | Call::StopTool(..)
        | Call::StopTerminal(..)
        | Call::Archive(..)
        | Call::SetProvider(_)
        | Call::SetMode(..)
        | Call::SetModel(..) => Reply::Done,
    })
}

/// Version 2 sends slash commands with the session.
fn tell_commands(session: &SessionId, result: &mut Object, out: &mut Vec<AgentEvent>) {
    if let Some(items) = take(result, &["availableCommands"]) {
        let commands = options::decode_commands(list(items), out);
        out.push(AgentEvent::Update(session.clone(), SessionUpdate::Commands(commands)));
    }
}

pub fn malformed(why: &str) -> CallError {
    CallError::Malformed { error: why.trim_end_matches('.').to_owned() }
}

fn new_session_id(result: &Object) -> Option<String> {
    first_text(result, NEW_SESSION_ID).or_else(|| first_text(result.get("session")?.as_object()?, &["id"]))
}

fn decode_list(result: &mut Object, out: &mut Vec<AgentEvent>) -> Reply {
    let sessions = items(take_list(result, &["sessions"]), "sessions", out, |item| {
        let mut session = match item {
            Value::Object(session) => session,
            Value::String(id) => Object::from_iter([("sessionId".to_owned(), id.into())]),
            _ => return None,
        };
        let folders = take_list(&mut session, &["additionalDirectories"]);
        Some(SessionInfo {
            id: first_text(&session, NEW_SESSION_ID)?.into(),
            cwd: take_text(&mut session, &["cwd", "workingDir", "working_dir", "directory"])
                .unwrap_or_default()
                .into(),
            title: first_text(&session, &["title", "name"]),
            updated_at: take_text(&mut session, &["updatedAt", "updated_at", "lastModified"]),
            additional_directories: folders.iter().filter_map(Value::as_str).map(Into::into).collect(),
            is_archived: session.get("archived") == Some(&Value::Bool(true)),
            is_live: None,
        })
    });
    let next_cursor = take_text(result, &["nextCursor", "next_cursor"]).filter(|cursor| !cursor.is_empty());
    Reply::Sessions { sessions, next_cursor }
}

/// Decodes the end of a turn, from the response to the prompt or from a state.
pub fn decode_turn(result: &mut Object) -> Result<Reply, CallError> {
    let word = take_text(result, STOP_KEYS).unwrap_or_default();
    let name = official(STOP_REASONS, &word);
    if name == "auth_required" {
        return Err(RpcError::new(RpcError::AUTH_REQUIRED, "The agent requires sign-in.").into());
    }
    if name == "error" {
        if let Some(error) = result.get("error").filter(|error| error.is_object()) {
            return Err(errors::decode(&error.to_string()).into());
        }
        let text = first_text(result, &["message", "error"]);
        let text = text.unwrap_or_else(|| "The agent ended the turn with an error.".to_owned());
        return Err(RpcError::new(RpcError::INTERNAL, text).into());
    }
    let is_cancelled = result.get("cancelled").or_else(|| result.get("canceled")) == Some(&Value::Bool(true));
    let reason = if is_cancelled {
        StopReason::Cancelled
    } else if name.is_empty() {
        StopReason::EndTurn
    } else {
        typed(name.into()).unwrap_or(StopReason::Other(word))
    };
    Ok(Reply::TurnEnded { reason, usage: take(result, &["usage"]).and_then(decode_usage) })
}

fn decode_usage(usage: Value) -> Option<TurnUsage> {
    let Value::Object(usage) = usage else { return None };
    let count = |keys: &[&str]| first(&usage, keys).and_then(Value::as_u64);
    let input_tokens = count(&["inputTokens", "input_tokens", "prompt_tokens"])?;
    let output_tokens = count(&["outputTokens", "output_tokens", "completion_tokens"])?;
    Some(TurnUsage {
        total_tokens: match first(&usage, &["totalTokens", "total_tokens"]) {
            Some(total) => total.as_u64()?,
            None => input_tokens.saturating_add(output_tokens),
        },
        input_tokens,
        output_tokens,
        thought_tokens: count(&["thoughtTokens"]),
        cached_read_tokens: count(&["cachedReadTokens"]),
        cached_write_tokens: count(&["cachedWriteTokens"]),
    })
}
