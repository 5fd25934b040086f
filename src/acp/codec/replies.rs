//! Decodes the results of requests.
//!
//! `null` is accepted where a result has no required fields. Of the draft parts and extensions of the protocol that the
//! official types do not contain, nothing is sent to an agent that does not advertise it; `calls` sends it.
//! Source: the RFDs of the protocol, schema 1.15.1 with its unstable features.

use serde_json::Value;

use crate::model::{
    AuthState, AuthStatus, Call, CallError, Provider, Reply, RpcError, SessionInfo, SessionReply, StopReason,
    TurnUsage,
};

use super::decoder::Decoder;
use super::names::{NEW_SESSION_ID, STOP_REASONS, official, session_id};
use super::value::{
    Object, first, first_text, object_with, parse, rename, take, take_list, take_text, texts, typed,
};
use super::{errors, options, strict};

pub const STOP_KEYS: &[&str] = &["stopReason", "stop_reason", "reason"];

pub fn decode(call: &Call, result: &str, decoder: &mut Decoder) -> Result<Reply, CallError> {
    if decoder.quirks.is_strict {
        strict::reply(call, result, decoder.is_v2).map_err(|error| malformed(&error))?;
    }
    let is_null = result.trim() == "null";
    let mut result = match parse(result) {
        Some(Value::Object(result)) => result,
        // Anything else is treated as `{}`.
        Some(_) => Object::new(),
        None => return Err(malformed("not valid JSON")),
    };
    Ok(match call {
        Call::NewSession(_) | Call::ForkSession(..) => {
            let name = session_id(&result, NEW_SESSION_ID).ok_or_else(|| malformed("no session id"))?;
            let session = decoder.session(&name);
            let reply = options::decode_session(&session, &mut result, decoder);
            decoder.opened.insert(session.clone());
            Reply::Session(SessionReply { id: Some(session), ..reply })
        }
        Call::LoadSession(id, _) | Call::ResumeSession(id, _) => {
            let session = decoder.session(id.as_str());
            let reply = options::decode_session(&session, &mut result, decoder);
            // Some agents respond with `null` for a session that they do not have.
            let is_provisional = is_null && matches!(call, Call::LoadSession(..));
            Reply::Session(SessionReply { is_provisional, ..reply })
        }
        Call::CloseSession(id) | Call::DeleteSession(id) => {
            decoder.opened.remove(id);
            Reply::Done
        }
        Call::ListSessions { .. } => decode_list(&mut result, decoder),
        Call::Prompt(..) => decode_turn(&mut result)?,
        Call::Steer(..) => Reply::Steered { is_accepted: is_steered(&result) },
        // Missing options are unchanged, not removed.
        Call::SetOption(..) => {
            options::decode_options(&mut result, decoder).map_or(Reply::Done, Reply::Options)
        }
        Call::SetTitle(_, asked) => {
            Reply::Title(take_text(&mut result, &["title"]).unwrap_or_else(|| asked.clone()))
        }
        Call::SessionStatus(_) => Reply::SessionStatus { is_live: is_live(&result) },
        Call::AuthStatus => {
            decode_auth(&mut result).map(Reply::AuthStatus).ok_or_else(|| malformed("no state"))?
        }
        Call::ListProviders => Reply::Providers(decode_providers(&mut result)),
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

pub fn malformed(why: &str) -> CallError {
    CallError::Malformed { error: why.trim_end_matches('.').to_owned() }
}

fn decode_list(result: &mut Object, decoder: &mut Decoder) -> Reply {
    let sessions = decoder.items(take_list(result, &["sessions"]), "sessions", |item| {
        let mut session = object_with(item, "sessionId")?;
        let folder = take_text(&mut session, &["cwd", "workingDir", "working_dir", "directory"]);
        let folders = take_list(&mut session, &["additionalDirectories"]);
        Some(SessionInfo {
            id: first_text(&session, NEW_SESSION_ID)?.into(),
            cwd: folder.unwrap_or_default().into(),
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
    let reason = match name.as_str() {
        _ if is_cancelled => StopReason::Cancelled,
        "" => StopReason::EndTurn,
        name => typed(name.into()).unwrap_or(StopReason::Other(word)),
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

/// Whether the response to `initialize` advertises prompts during a turn, in `_meta.steering.supported`.
pub fn can_steer(result: &Object) -> bool {
    let steering = result.get("_meta").and_then(|meta| meta.get("steering"));
    steering.and_then(|steering| steering.get("supported")) == Some(&Value::Bool(true))
}

/// Whether the agent has accepted a prompt for the running turn. Agents that do not know `idleBehavior` start a turn.
pub fn is_steered(result: &Object) -> bool {
    matches!(first_text(result, &["outcome"]).as_deref(), Some("injected" | "startedNewTurn"))
}

/// Whether the agent has a session in memory. In an unknown state it is assumed to be only saved.
pub fn is_live(result: &Object) -> bool {
    first_text(result, &["status"]).as_deref() == Some("open")
}

pub fn decode_auth(result: &mut Object) -> Option<AuthStatus> {
    let state = match first_text(result, &["state"])?.as_str() {
        "authenticated" => AuthState::SignedIn,
        "unauthenticated" => AuthState::SignedOut,
        "not_required" => AuthState::NotNeeded,
        _ => AuthState::Unknown,
    };
    let accounts = take_list(result, &["accounts"]);
    let accounts = accounts.iter().filter_map(Value::as_object).filter_map(|account| {
        let label = first_text(account, &["label", "email", "name"])?;
        let organization = first_text(account, &["organization"]);
        Some(organization.map_or(label.clone(), |organization| format!("{label} ({organization})")))
    });
    Some(AuthStatus { state, accounts: accounts.collect() })
}

pub fn decode_providers(result: &mut Object) -> Vec<Provider> {
    let provider = |item: Value| {
        let Value::Object(mut item) = item else { return None };
        rename(&mut item, "providerId", &["id"]);
        let current = item.get("current").and_then(Value::as_object);
        Some(Provider {
            id: first_text(&item, &["providerId"])?,
            is_required: item.get("required") == Some(&Value::Bool(true)),
            api_type: current.and_then(|current| first_text(current, &["apiType"])),
            base_url: current.and_then(|current| first_text(current, &["baseUrl"])),
            supported: texts(item.get("supported")),
        })
    };
    take_list(result, &["providers"]).into_iter().filter_map(provider).collect()
}

#[cfg(test)]
mod unstable_tests {
    use serde_json::json;

    use super::super::value::into_object as object;
    use super::*;

    #[test]
    fn steering_is_advertised_and_accepted_by_the_agent() {
        let reported = |meta: Value| object(json!({"protocolVersion": 1, "_meta": meta}));
        assert!(can_steer(&reported(json!({"steering": {"supported": true}}))));
        for meta in [json!({"steering": {"supported": false}}), json!({"steering": true}), json!(null)] {
            assert!(!can_steer(&reported(meta)));
        }
        let outcomes = ["injected", "startedNewTurn", "promptRequired", "failed", "unknown"];
        let accepted = outcomes.map(|outcome| is_steered(&object(json!({"outcome": outcome}))));
        assert_eq!(accepted, [true, true, false, false, false]);
        assert!(!is_steered(&Object::new()));
    }

    #[test]
    fn invalid_items_of_responses_are_skipped() {
        let mut reported = object(json!({"state": "authenticated", "accounts": [
            {"label": "ada@example.org", "organization": "Shop", "active": true}, 3, {"name": "Ada"}]}));
        let expected = vec!["ada@example.org (Shop)".to_owned(), "Ada".to_owned()];
        assert_eq!(
            decode_auth(&mut reported),
            Some(AuthStatus { state: AuthState::SignedIn, accounts: expected })
        );
        let state =
            |word: &str| decode_auth(&mut object(json!({"state": word}))).map(|reported| reported.state);
        assert_eq!(state("not_required"), Some(AuthState::NotNeeded));
        assert_eq!(state("unauthenticated"), Some(AuthState::SignedOut));
        assert_eq!(state("half"), Some(AuthState::Unknown));
        assert_eq!(decode_auth(&mut Object::new()), None);
        assert!(is_live(&object(json!({"status": "open"}))));
        assert!(!is_live(&object(json!({"status": "_suspended"}))) && !is_live(&Object::new()));
        let mut reported = object(json!({"providers": [
            {"providerId": "main", "supported": ["openai", 1], "required": true,
             "current": {"apiType": "openai", "baseUrl": "https://x"}}, {"id": "other"}, {}]}));
        let providers = decode_providers(&mut reported);
        assert_eq!(providers.len(), 2);
        assert_eq!(providers[0].base_url.as_deref(), Some("https://x"));
        assert!(providers[0].is_required && providers[0].supported == ["openai"]);
        assert_eq!((providers[1].id.as_str(), providers[1].base_url.as_deref()), ("other", None));
    }
}
