//! Decodes the sign-in methods of agents.
//!
//! Besides the two official types, two older ones are supported: `env_var`, and a command in
//! `_meta["terminal-auth"]`. Some agents read a key in `authenticate`, and say so in `_meta["api-key"]`.
//! Invariant: an unknown method with an id becomes an `authenticate` call.

use agent_client_protocol_schema::v1 as schema;
use serde_json::Value;

use crate::model::{AuthKind, AuthMethod, AuthVar, SignInCommand};

use super::value::{Object, fill, first, first_text, list, rename, text, typed};

/// Decodes one method; `None`: it has no id.
pub(super) fn decode(method: Value) -> Option<AuthMethod> {
    let Value::Object(mut method) = method else { return None };
    rename(&mut method, "id", &["methodId", "method_id"]);
    let id = first_text(&method, &["id"])?;
    rename(&mut method, "name", &["title", "label"]);
    fill(&mut method, "name", || id.into());
    let kind = first_text(&method, &["type"]);
    let meta = |key: &str| method.get("_meta").and_then(|meta| meta.get(key)).and_then(Value::as_object);
    let odd = match kind.as_deref() {
        Some("env_var") => decode_env_var(&method),
        Some("terminal") => None,
        _ => meta("terminal-auth").map(decode_terminal).or_else(|| meta("api-key").map(|_| AuthKind::ApiKey)),
    };
    if kind.as_deref() == Some("terminal") && method.get("args").is_some_and(|args| !args.is_array()) {
        method.shift_remove("args");
    }
    // The official type is an unordered map; the agent's order is preserved.
    let env = method.get("env").map(variables).unwrap_or_default();
    method.shift_remove("env");
    // The official decoder treats any other type as one that the agent runs itself.
    let is_unknown = !matches!(kind.as_deref(), None | Some("agent" | "terminal" | "env_var"));
    if is_unknown && odd.is_none() {
        let kind = kind.unwrap_or_default();
        let note = format!("Unknown sign-in type `{kind}`; the agent handles the sign-in.");
        let reported = first_text(&method, &["description"]).map(|reported| format!("{reported} "));
        method.insert("description".to_owned(), format!("{}{note}", reported.unwrap_or_default()).into());
        method.shift_remove("type");
    }
    Some(match typed::<schema::AuthMethod>(Value::Object(method)).ok()? {
        schema::AuthMethod::Terminal(terminal) => AuthMethod {
            id: terminal.id.to_string(),
            name: terminal.name,
            description: terminal.description,
            kind: AuthKind::Terminal(SignInCommand { program: None, args: terminal.args, env }),
        },
        schema::AuthMethod::Agent(agent) => AuthMethod {
            id: agent.id.to_string(),
            name: agent.name,
            description: agent.description,
            kind: odd.unwrap_or(AuthKind::Agent),
        },
        _ => return None,
    })
}

/// Decodes `{command, args, env}`, which predates the official type.
fn decode_terminal(reported: &Object) -> AuthKind {
    let args = match reported.get("args") {
        Some(Value::Array(args)) => args.iter().filter_map(text).collect(),
        _ => Vec::new(),
    };
    let env = reported.get("env").map(variables).unwrap_or_default();
    // Anything but a string cannot be the agent's own program; an empty name is refused.
    let program =
        reported.contains_key("command").then(|| first_text(reported, &["command"]).unwrap_or_default());
    AuthKind::Terminal(SignInCommand { program, args, env })
}

fn decode_env_var(method: &Object) -> Option<AuthKind> {
    let named = first(method, &["vars"]).or_else(|| first(method, &["varName", "var"]))?;
    let vars: Vec<AuthVar> = list(named.clone())
        .into_iter()
        .filter_map(|var| match var {
            Value::String(name) => Some(AuthVar { name, label: None, is_secret: true, is_optional: false }),
            Value::Object(var) => Some(AuthVar {
                name: first_text(&var, &["name"])?,
                label: first_text(&var, &["label"]),
                is_secret: var.get("secret").and_then(Value::as_bool).unwrap_or(true),
                is_optional: var.get("optional").and_then(Value::as_bool).unwrap_or(false),
            }),
            _ => None,
        })
        .collect();
    (!vars.is_empty()).then(|| AuthKind::EnvVar { vars, link: first_text(method, &["link"]) })
}

/// Variables as a map or as a list of `{name, value}`.
fn variables(env: &Value) -> Vec<(String, String)> {
    match env {
        Value::Object(map) => {
            map.iter().filter_map(|(name, value)| Some((name.clone(), text(value)?))).collect()
        }
        Value::Array(rows) => rows
            .iter()
            .filter_map(|row| {
                let row = row.as_object()?;
                Some((first_text(row, &["name"])?, text(row.get("value")?)?))
            })
            .collect(),
        _ => Vec::new(),
    }
}
