//! Draft parts and extensions of the protocol that the official types do not contain: archive, sign-in state,
//! providers, system prompts, and prompts during a turn.
//!
//! Invariant: nothing here is sent to an agent that does not advertise it.
//! Source: the RFDs of the protocol, schema 1.15.1 with its unstable features.

use serde_json::{Value, json};

use crate::model::{AgentCapabilities, AuthState, AuthStatus, Call, Provider, SessionId, WireSpec};

use super::value::{Object, first_text, list, parse_object, rename, take};

/// Decodes the capabilities of draft features.
pub(super) fn capabilities(reported: &Object, can: &mut AgentCapabilities) {
    let session = ["sessionCapabilities", "session_capabilities", "session"]
        .iter()
        .find_map(|key| reported.get(*key)?.as_object());
    let is_there = |object: Option<&Object>, key: &str| {
        object.and_then(|object| object.get(key)).is_some_and(|marker| match marker {
            Value::Bool(is_on) => *is_on,
            other => other.is_object(),
        })
    };
    can.can_archive = is_there(session, "archive");
    can.tells_status = is_there(session, "status");
    can.system_prompt = is_there(session, "systemPrompt");
    can.system_prompt_override = session
        .and_then(|session| session.get("systemPrompt")?.get("mode")?.as_object())
        .is_some_and(|mode| is_there(Some(mode), "override"));
    can.tells_auth = is_there(reported.get("auth").and_then(Value::as_object), "status");
    can.has_providers = is_there(Some(reported), "providers");
}

/// Whether the response to `initialize` advertises prompts during a turn, in `_meta.steering.supported`.
pub(super) fn can_steer(result: &Object) -> bool {
    let steering = result.get("_meta").and_then(|meta| meta.get("steering"));
    steering.and_then(|steering| steering.get("supported")) == Some(&Value::Bool(true))
}

/// Method and params of a prompt for the running turn. If there is none any more, the agent must not start one, because
/// the end of such a turn would not be reported.
pub(super) fn steer(session: &SessionId, prompt: &Value) -> (&'static str, String) {
    let meta = json!({"steering": {"idleBehavior": "promptRequired"}});
    let params = json!({"sessionId": session.as_str(), "prompt": prompt, "_meta": meta});
    ("_session/steering", params.to_string())
}

/// Whether the agent has accepted such a prompt. Agents that do not know `idleBehavior` start a turn.
pub(super) fn is_steered(result: &Object) -> bool {
    matches!(first_text(result, &["outcome"]).as_deref(), Some("injected" | "startedNewTurn"))
}

/// Method and params of a draft call; `None`: not a draft call.
pub(super) fn call(call: &Call) -> Option<(&'static str, String)> {
    Some(match call {
        Call::Archive(id, true) => ("session/archive", json!({"sessionId": id.as_str()}).to_string()),
        Call::Archive(id, false) => ("session/unarchive", json!({"sessionId": id.as_str()}).to_string()),
        Call::SessionStatus(id) => ("session/status", json!({"sessionId": id.as_str()}).to_string()),
        Call::AuthStatus => ("auth/status", "{}".to_owned()),
        Call::ListProviders => ("providers/list", "{}".to_owned()),
        Call::SetProvider(request) => match &request.target {
            None => ("providers/disable", json!({"providerId": request.id}).to_string()),
            Some(target) => {
                let headers: Object =
                    target.headers.iter().map(|(name, value)| (name.clone(), value.clone().into())).collect();
                let params = json!({
                    "providerId": request.id,
                    "apiType": target.api_type,
                    "baseUrl": target.base_url,
                    "headers": headers,
                });
                ("providers/set", params.to_string())
            }
        },
        _ => return None,
    })
}

/// Adds draft params to a call: the system prompt when a session is opened, and archived sessions when sessions are
/// listed.
pub(super) fn extend(call: &Call, params: String, can: &AgentCapabilities, wire: &WireSpec) -> String {
    if let Call::Authenticate { api_key: Some(key), .. } = call {
        let Some(mut object) = parse_object(&params) else { return params };
        let key = key.reveal();
        let key = if can.api_key_is_text { json!(key) } else { json!({ "apiKey": key }) };
        object.insert("_meta".to_owned(), json!({ "api-key": key }));
        return Value::Object(object).to_string();
    }
    if matches!(call, Call::ListSessions { .. }) && can.can_archive {
        let Some(mut object) = parse_object(&params) else { return params };
        object.insert("archived".to_owned(), "include".into());
        return Value::Object(object).to_string();
    }
    let opens = matches!(
        call,
        Call::NewSession(_) | Call::LoadSession(..) | Call::ResumeSession(..) | Call::ForkSession(..)
    );
    let Some(prompt) = wire.system_prompt.as_ref().filter(|prompt| opens && can.takes(prompt)) else {
        return params;
    };
    let Some(mut object) = parse_object(&params) else { return params };
    let mode = if prompt.replaces { "override" } else { "append" };
    let content = json!([{"type": "text", "text": prompt.text}]);
    object.insert("systemPrompt".to_owned(), json!({"mode": mode, "content": content}));
    Value::Object(object).to_string()
}

/// Whether the agent has a session in memory. In an unknown state it is assumed to be only saved.
pub(super) fn is_live(result: &Object) -> bool {
    first_text(result, &["status"]).as_deref() == Some("open")
}

/// Decodes the sign-in state; `None`: invalid.
pub(super) fn decode_auth(result: &mut Object) -> Option<AuthStatus> {
    let state = match first_text(result, &["state"])?.as_str() {
        "authenticated" => AuthState::SignedIn,
        "unauthenticated" => AuthState::SignedOut,
        "not_required" => AuthState::NotNeeded,
        _ => AuthState::Unknown,
    };
    let accounts = take(result, &["accounts"]).map(list).unwrap_or_default();
    let accounts = accounts.iter().filter_map(Value::as_object).filter_map(|account| {
        let label = first_text(account, &["label", "email", "name"])?;
        let organization = first_text(account, &["organization"]);
        Some(organization.map_or(label.clone(), |organization| format!("{label} ({organization})")))
    });
    Some(AuthStatus { state, accounts: accounts.collect() })
}

pub(super) fn decode_providers(result: &mut Object) -> Vec<Provider> {
    let items = take(result, &["providers"]).map(list).unwrap_or_default();
    let provider = |item: Value| {
        let Value::Object(mut item) = item else { return None };
        rename(&mut item, "providerId", &["id"]);
        let current = item.get("current").and_then(Value::as_object);
        let supported = item.get("supported").and_then(Value::as_array);
        Some(Provider {
            id: first_text(&item, &["providerId"])?,
            is_required: item.get("required") == Some(&Value::Bool(true)),
            api_type: current.and_then(|current| first_text(current, &["apiType"])),
            base_url: current.and_then(|current| first_text(current, &["baseUrl"])),
            supported: supported
                .into_iter()
                .flatten()
                .filter_map(|word| word.as_str().map(str::to_owned))
                .collect(),
        })
    };
    items.into_iter().filter_map(provider).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{ProviderRequest, ProviderTarget, SessionWorkspace, SystemPrompt};

    fn object(value: Value) -> Object {
        match value {
            Value::Object(object) => object,
            other => panic!("{other}"),
        }
    }

    #[test]
    fn only_advertised_capabilities_are_set() {
        let all = object(json!({
            "sessionCapabilities": {"archive": {}, "status": {}, "systemPrompt": {"mode": {"override": {}}}},
            "auth": {"status": {}},
            "providers": {},
        }));
        let mut can = AgentCapabilities::default();
        capabilities(&all, &mut can);
        assert!(can.can_archive && can.system_prompt && can.system_prompt_override);
        assert!(can.tells_auth && can.has_providers && can.tells_status);
        let none =
            object(json!({"sessionCapabilities": {"archive": null, "systemPrompt": false}, "auth": {}}));
        capabilities(&none, &mut can);
        assert_eq!(can, AgentCapabilities::default());
    }

    #[test]
    fn a_prompt_for_the_running_turn_must_not_start_another_one() {
        let reported = |meta: Value| object(json!({"protocolVersion": 1, "_meta": meta}));
        assert!(can_steer(&reported(json!({"steering": {"supported": true}}))));
        for meta in [json!({"steering": {"supported": false}}), json!({"steering": true}), json!(null)] {
            assert!(!can_steer(&reported(meta)));
        }
        let (method, params) = steer(&"s1".into(), &json!([{"type": "text", "text": "hi"}]));
        assert_eq!(method, "_session/steering");
        assert_eq!(
            serde_json::from_str::<Value>(&params).unwrap(),
            json!({
                "sessionId": "s1",
                "prompt": [{"type": "text", "text": "hi"}],
                "_meta": {"steering": {"idleBehavior": "promptRequired"}},
            })
        );
        let outcomes = ["injected", "startedNewTurn", "promptRequired", "failed", "unknown"];
        let accepted = outcomes.map(|outcome| is_steered(&object(json!({"outcome": outcome}))));
        assert_eq!(accepted, [true, true, false, false, false]);
        assert!(!is_steered(&Object::new()));
    }

    #[test]
    fn system_prompts_are_sent_with_new_sessions_if_supported() {
        let prompt = |replaces| Some(SystemPrompt { text: "Be brief.".to_owned(), replaces });
        let wire = |replaces| WireSpec { system_prompt: prompt(replaces), ..WireSpec::default() };
        let new = Call::NewSession(SessionWorkspace::default());
        let can = AgentCapabilities { system_prompt: true, ..AgentCapabilities::default() };
        let sent = extend(&new, r#"{"cwd":"/w"}"#.to_owned(), &can, &wire(false));
        let expected =
            r#"{"cwd":"/w","systemPrompt":{"mode":"append","content":[{"type":"text","text":"Be brief."}]}}"#;
        assert_eq!(sent, expected);
        let plain = r#"{"cwd":"/w"}"#;
        assert_eq!(extend(&new, plain.to_owned(), &can, &wire(true)), plain, "override is not supported");
        assert_eq!(extend(&new, plain.to_owned(), &AgentCapabilities::default(), &wire(false)), plain);
        assert_eq!(extend(&Call::LogOut, "{}".to_owned(), &can, &wire(false)), "{}");
        let all = AgentCapabilities { system_prompt_override: true, ..can };
        assert!(extend(&new, plain.to_owned(), &all, &wire(true)).contains("override"));
    }

    #[test]
    fn the_key_of_a_sign_in_is_sent_in_the_form_of_the_agent() {
        let api_key = Some(crate::model::Secret::new("k".to_owned()));
        let call = Call::Authenticate { method_id: "m".to_owned(), api_key };
        let sent = |api_key_is_text| {
            let can = AgentCapabilities { api_key_is_text, ..AgentCapabilities::default() };
            extend(&call, r#"{"methodId":"m"}"#.to_owned(), &can, &WireSpec::default())
        };
        assert_eq!(sent(false), r#"{"methodId":"m","_meta":{"api-key":{"apiKey":"k"}}}"#);
        assert_eq!(sent(true), r#"{"methodId":"m","_meta":{"api-key":"k"}}"#);
        for text in [sent(false), sent(true)] {
            assert!(crate::acp::tap::redact(&text).contains("[hidden]"), "{text}");
        }
    }

    #[test]
    fn archived_sessions_are_listed_if_archiving_is_supported() {
        let list = Call::ListSessions { cwd: None, cursor: None };
        let can = AgentCapabilities { can_archive: true, ..AgentCapabilities::default() };
        let wire = WireSpec::default();
        let sent = |can| extend(&list, r#"{"cursor":"c"}"#.to_owned(), can, &wire);
        assert_eq!(sent(&can), r#"{"cursor":"c","archived":"include"}"#);
        assert_eq!(sent(&AgentCapabilities::default()), r#"{"cursor":"c"}"#);
    }

    #[test]
    fn calls_use_the_method_names_of_the_drafts() {
        let sent = |asked: &Call| call(asked).map(|(method, params)| format!("{method} {params}"));
        let archive = |is_away| Call::Archive("s".into(), is_away);
        assert_eq!(sent(&archive(true)).as_deref(), Some(r#"session/archive {"sessionId":"s"}"#));
        assert_eq!(sent(&archive(false)).as_deref(), Some(r#"session/unarchive {"sessionId":"s"}"#));
        let target = ProviderTarget {
            api_type: "openai".to_owned(),
            base_url: "https://llm.example".to_owned(),
            headers: vec![("X-Team".to_owned(), "blue".to_owned())],
        };
        let moved = Call::SetProvider(ProviderRequest { id: "main".to_owned(), target: Some(target) });
        assert_eq!(
            sent(&moved).as_deref(),
            Some(
                r#"providers/set {"providerId":"main","apiType":"openai","baseUrl":"https://llm.example","headers":{"X-Team":"blue"}}"#
            )
        );
        let off = Call::SetProvider(ProviderRequest { id: "main".to_owned(), target: None });
        assert_eq!(sent(&off).as_deref(), Some(r#"providers/disable {"providerId":"main"}"#));
        let status = Call::SessionStatus("s".into());
        assert_eq!(sent(&status).as_deref(), Some(r#"session/status {"sessionId":"s"}"#));
        assert_eq!(sent(&Call::LogOut), None);
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
