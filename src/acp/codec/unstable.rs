//! Draft parts and extensions of the protocol that the official types do not contain: archive, sign-in state,
//! providers, system prompts, and prompts during a turn.
//!
//! Invariant: nothing of this is sent to an agent that does not advertise it; `calls` sends it.
//! Source: the RFDs of the protocol, schema 1.15.1 with its unstable features.

use serde_json::Value;

use crate::model::{AuthState, AuthStatus, Provider};

use super::value::{Object, first_text, rename, take_list};

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

/// Decodes the sign-in state; `None`: invalid.
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
    let items = take_list(result, &["providers"]);
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
