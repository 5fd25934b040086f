//! Decodes the sign-in methods of agents.
//!
//! Besides the two official types, two older ones are supported: `env_var`, and a command in
//! `_meta["terminal-auth"]`. Some agents read a key in `authenticate`, and say so in `_meta["api-key"]`.
//! Invariant: an unknown method with an id becomes an `authenticate` call.

use serde_json::Value;

use crate::model::{AuthKind, AuthMethod, AuthVar, SignInCommand};

use super::value::{Object, first, first_text, list, take_text, text};

/// Decodes one method; `None`: it has no id.
pub fn decode(method: Value) -> Option<AuthMethod> {
    let Value::Object(mut method) = method else { return None };
    let id = first_text(&method, &["id", "methodId", "method_id"])?;
    let name = take_text(&mut method, &["name", "title", "label"]).unwrap_or_else(|| id.clone());
    let mut description = take_text(&mut method, &["description"]);
    let meta = |key: &str| method.get("_meta").and_then(|meta| meta.get(key)).and_then(Value::as_object);
    let older =
        || meta("terminal-auth").map(decode_terminal).or_else(|| meta("api-key").map(|_| AuthKind::ApiKey));
    let kind = first_text(&method, &["type"]);
    let kind = match kind.as_deref() {
        Some("terminal") => AuthKind::Terminal(command(&method)),
        Some("env_var") => decode_env_var(&method).unwrap_or(AuthKind::Agent),
        None | Some("agent") => older().unwrap_or(AuthKind::Agent),
        Some(kind) => older().unwrap_or_else(|| {
            let note = format!("Unknown sign-in type `{kind}`; the agent handles the sign-in.");
            description =
                Some(description.take().map_or(note.clone(), |reported| format!("{reported} {note}")));
            AuthKind::Agent
        }),
    };
    Some(AuthMethod { id, name, description, kind })
}

/// Decodes `{command, args, env}`, which predates the official type.
fn decode_terminal(reported: &Object) -> AuthKind {
    // Anything but a string cannot be the agent's own program; an empty name is refused.
    let program =
        reported.contains_key("command").then(|| first_text(reported, &["command"]).unwrap_or_default());
    AuthKind::Terminal(SignInCommand { program, ..command(reported) })
}

/// The arguments and variables of a sign-in command.
fn command(reported: &Object) -> SignInCommand {
    let args = reported.get("args").and_then(Value::as_array).into_iter().flatten();
    let env = reported.get("env").map(variables).unwrap_or_default();
    SignInCommand { program: None, args: args.filter_map(text).collect(), env }
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
