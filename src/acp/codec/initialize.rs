//! Encodes and decodes `initialize`.
//!
//! Only capabilities that are implemented are advertised. `peer` decides when to retry in another form.
//! ACP v1 initialization: an absent or `null` capability is unsupported. Besides the two official types of sign-in
//! methods, two older ones are supported: `env_var`, and a command in `_meta["terminal-auth"]`. Some agents read a key
//! in `authenticate`, and say so in `_meta["api-key"]`; an unknown method with an id becomes an `authenticate` call.

use agent_client_protocol_schema::v2::InitializeResponse;
use serde_json::{Value, json};

use crate::model::{
    AgentCapabilities, AgentInfo, AuthKind, AuthMethod, AuthVar, CallError, Callbacks, RpcError,
    SignInCommand, WireSpec,
};

use super::decoder::Decoder;
use super::quirks::Quirk;
use super::replies::malformed;
use super::value::{
    Object, first, first_text, items, list, object_with, parse_object, take, take_list, take_text, text,
    typed, whole,
};
use super::{replies, strict, v2};

pub const AGENT_INFO: &[&str] = &["agentInfo", "serverInfo", "agent_info"];
/// The newest stable protocol version that parlor supports.
const VERSION: u16 = 1;

/// The forms of `initialize`, in the order in which they are tried: version 2 with the keys of version 1, for agents that
/// only support that version; version 1; and the same without unstable parts, for agents that reject unknown fields.
/// `runs_sign_in`: the user can sign in with a command of the agent, for which parlor must know the agent's own command.
/// Source: ACP v1 authentication, terminal auth.
pub fn encode(callbacks: Callbacks, runs_sign_in: bool, name: &str, wire: &WireSpec) -> Vec<Value> {
    let first = |is_full| {
        json!({
            "protocolVersion": VERSION,
            "clientCapabilities": offered(callbacks, runs_sign_in, is_full),
            "clientInfo": implementation(name),
        })
    };
    let mut forms = vec![first(true)];
    if !wire.is_strict {
        forms.push(first(false));
    }
    if wire.protocol == 2 {
        let auth = if runs_sign_in { json!({"terminal": {}}) } else { json!({}) };
        let second = json!({
            "protocolVersion": 2,
            "capabilities": {"auth": auth, "elicitation": {"form": {}, "url": {}}},
            "info": implementation("parlor"),
            "clientCapabilities": offered(callbacks, runs_sign_in, true),
            "clientInfo": implementation("parlor"),
        });
        forms.insert(0, second);
    }
    forms
}

fn implementation(name: &str) -> Value {
    json!({"name": name, "title": "parlor", "version": env!("CARGO_PKG_VERSION")})
}

/// The capabilities of version 1. `is_full`: with plans by id, subagents, and `_meta` flags that current agents read:
/// `terminal_output` enables live command output in claude, `terminal-auth` enables sign-in commands in older agents.
fn offered(callbacks: Callbacks, runs_sign_in: bool, is_full: bool) -> Value {
    let mut capabilities = json!({
        "fs": {"readTextFile": callbacks.fs_read, "writeTextFile": callbacks.fs_write},
        "terminal": callbacks.terminal,
        "session": {"configOptions": {"boolean": {}}, "notices": {}, "compaction": {}},
        "auth": {"terminal": runs_sign_in},
        "elicitation": {"form": {}, "url": {}},
    });
    if is_full {
        capabilities["plan"] = json!({});
        capabilities["subagents"] = json!({});
        capabilities["_meta"] = json!({"terminal_output": true});
        if runs_sign_in {
            capabilities["_meta"]["terminal-auth"] = true.into();
        }
    }
    capabilities
}

pub fn decode(result: &str, offers_v2: bool, decoder: &mut Decoder) -> Result<AgentInfo, CallError> {
    let text = result;
    let mut result = parse_object(text).ok_or_else(|| malformed("not an object"))?;
    let is_v2 = offers_v2 && result.get("protocolVersion").and_then(whole) == Some(2);
    if is_v2 {
        typed::<InitializeResponse>(result.clone().into()).map_err(|error| malformed(&error))?;
    } else if decoder.quirks.is_strict {
        strict::initialize(text).map_err(|error| malformed(&error))?;
    }
    let version = if is_v2 { 2 } else { decode_version(result.get("protocolVersion"), decoder)? };
    let mut info = AgentInfo { protocol_version: version, ..AgentInfo::default() };

    let (agent_keys, capability_keys): (&[&str], &[&str]) = if is_v2 {
        (&["info"], &["capabilities"])
    } else {
        (AGENT_INFO, &["agentCapabilities", "agent_capabilities", "capabilities"])
    };
    if let Some(Value::Object(agent)) = take(&mut result, agent_keys) {
        info.name = first_text(&agent, &["name"]);
        info.title = first_text(&agent, &["title"]);
        info.version = first_text(&agent, &["version"]);
    }
    if let Some(name) = &info.name {
        decoder.quirks.seed(name);
    }
    if let Some(Value::Object(reported)) = take(&mut result, capability_keys) {
        info.capabilities = capabilities(&reported);
        if is_v2 {
            v2::add_capabilities(&mut info.capabilities, &reported);
        }
    }
    let methods = take_list(&mut result, &["authMethods", "auth_methods"]);
    info.auth_methods = methods.into_iter().filter_map(decode_auth_method).collect();
    info.capabilities.can_steer = replies::can_steer(&result);
    info.capabilities.missing_file_reads_empty = decoder.quirks.has(Quirk::MISSING_FILE_READS_EMPTY);
    info.capabilities.api_key_is_text = decoder.quirks.has(Quirk::API_KEY_AS_TEXT);
    info.quirks = decoder.quirks.sentences();
    Ok(info)
}

/// The version that an agent requires instead of version 1, if the error says so. Source: ACP v2 initialization, version
/// negotiation: the data lists what is supported.
pub fn required_version(error: &RpcError) -> Option<String> {
    let text = error.message.to_lowercase();
    let is_about_version = text.contains("version")
        && ["protocol", "unsupported", "not supported"].iter().any(|word| text.contains(word));
    if error.code != RpcError::UNSUPPORTED_VERSION && !is_about_version {
        return None;
    }
    let data = error.data.as_ref().and_then(|data| parse_object(&data.0));
    let supported = data.map(|mut data| take_list(&mut data, &["supported"])).unwrap_or_default();
    let newer = supported.iter().filter_map(whole).filter(|version| *version > i64::from(VERSION)).min();
    Some(newer.unwrap_or(i64::from(VERSION) + 1).to_string())
}

/// Agents send 1, "1", "1.0" or nothing. An older version is treated as version 1; a newer one is rejected.
fn decode_version(version: Option<&Value>, decoder: &mut Decoder) -> Result<u16, CallError> {
    let number = match version {
        None | Some(Value::Null) => {
            decoder.quirks.note(Quirk::NO_VERSION);
            f64::from(VERSION)
        }
        Some(Value::Number(number)) => number.as_f64().unwrap_or_default(),
        Some(Value::String(text)) => {
            decoder.quirks.note(Quirk::VERSION_AS_TEXT);
            let digits: String =
                text.trim_start_matches('v').chars().take_while(char::is_ascii_digit).collect();
            digits.parse().map_err(|_| malformed(&format!("protocol version `{text}`")))?
        }
        Some(other) => return Err(malformed(&format!("protocol version `{other}`"))),
    };
    if number >= f64::from(VERSION) + 1.0 {
        // ACP v1 initialization: a client SHOULD close the connection if it does not support the version.
        return Err(CallError::OtherVersion { theirs: number.to_string() });
    }
    Ok(VERSION)
}

/// Decodes capabilities, those of draft features too. In version 2, those of prompts and MCP servers are in `session`.
fn capabilities(reported: &Object) -> AgentCapabilities {
    let session = first(reported, &["sessionCapabilities", "session_capabilities", "session"]);
    let part = |keys: &[&str], key: &str| first(reported, keys).or_else(|| session?.get(key));
    let prompt = part(&["promptCapabilities", "prompt_capabilities", "prompt"], "prompt");
    let mcp = part(&["mcpCapabilities", "mcp_capabilities", "mcp"], "mcp");
    let auth = reported.get("auth");
    let system_prompt = session.and_then(|session| session.get("systemPrompt"));
    let is_set = |keys: &[&str]| first(reported, keys).is_some_and(is_marker);
    AgentCapabilities {
        can_load: is_set(&["loadSession", "load_session"]),
        can_resume: has(session, &["resume"]),
        can_list: has(session, &["list"]),
        can_delete: has(session, &["delete"]),
        can_close: has(session, &["close"]),
        can_fork: has(session, &["fork"]),
        can_set_title: has(session, &["title", "setTitle", "set_title"]),
        additional_directories: has(session, &["additionalDirectories"]),
        prompt_image: has(prompt, &["image"]),
        prompt_audio: has(prompt, &["audio"]),
        prompt_embedded_context: has(prompt, &["embeddedContext"]),
        mcp_http: has(mcp, &["http"]),
        mcp_sse: has(mcp, &["sse"]),
        can_log_out: has(auth, &["logout"]),
        can_archive: has(session, &["archive"]),
        tells_status: has(session, &["status"]),
        system_prompt: has(session, &["systemPrompt"]),
        system_prompt_override: has(system_prompt.and_then(|prompt| prompt.get("mode")), &["override"]),
        tells_auth: has(auth, &["status"]),
        has_providers: is_set(&["providers"]),
        ..AgentCapabilities::default()
    }
}

pub fn has(part: Option<&Value>, keys: &[&str]) -> bool {
    part.and_then(Value::as_object).and_then(|part| first(part, keys)).is_some_and(is_marker)
}

/// Markers are objects or booleans in the protocol, and the other from some agents.
fn is_marker(marker: &Value) -> bool {
    marker.as_bool().unwrap_or(marker.is_object())
}

fn decode_auth_method(method: Value) -> Option<AuthMethod> {
    let Value::Object(mut method) = method else { return None };
    let id = first_text(&method, &["id", "methodId", "method_id"])?;
    let name = take_text(&mut method, &["name", "title", "label"]).unwrap_or_else(|| id.clone());
    let mut description = take_text(&mut method, &["description"]);
    let meta = |key: &str| method.get("_meta").and_then(|meta| meta.get(key)).and_then(Value::as_object);
    let older =
        || meta("terminal-auth").map(older_command).or_else(|| meta("api-key").map(|_| AuthKind::ApiKey));
    let kind = first_text(&method, &["type"]);
    let kind = match kind.as_deref() {
        Some("terminal") => AuthKind::Terminal(sign_in_command(&method)),
        Some("env_var") => decode_env_var(&method).unwrap_or(AuthKind::Agent),
        None | Some("agent") => older().unwrap_or(AuthKind::Agent),
        Some(kind) => older().unwrap_or_else(|| {
            let note = format!("Unknown sign-in type `{kind}`; the agent handles the sign-in.");
            let reported = description.take().map(|reported| reported + " ").unwrap_or_default();
            description = Some(reported + &note);
            AuthKind::Agent
        }),
    };
    Some(AuthMethod { id, name, description, kind })
}

fn sign_in_command(reported: &Object) -> SignInCommand {
    let args = items(reported.get("args")).filter_map(text).collect();
    SignInCommand { program: None, args, env: reported.get("env").map(variables).unwrap_or_default() }
}

/// Decodes `{command, args, env}`, which predates the official type.
fn older_command(reported: &Object) -> AuthKind {
    // Anything but a string cannot be the agent's own program; an empty name is refused.
    let program = reported.get("command").map(|program| text(program).unwrap_or_default());
    AuthKind::Terminal(SignInCommand { program, ..sign_in_command(reported) })
}

fn decode_env_var(method: &Object) -> Option<AuthKind> {
    let named = method.get("vars")?;
    let variable = |var: Value| {
        let var = object_with(var, "name")?;
        Some(AuthVar {
            name: first_text(&var, &["name"])?,
            label: first_text(&var, &["label"]),
            is_secret: var.get("secret").and_then(Value::as_bool).unwrap_or(true),
            is_optional: var.get("optional").and_then(Value::as_bool).unwrap_or(false),
        })
    };
    let vars: Vec<AuthVar> = list(named.clone()).into_iter().filter_map(variable).collect();
    (!vars.is_empty()).then(|| AuthKind::EnvVar { vars, link: first_text(method, &["link"]) })
}

/// Decodes the variables of a command: an object, or in version 2 a list.
fn variables(env: &Value) -> Vec<(String, String)> {
    let rows = items(Some(env))
        .filter_map(|row| Some((first_text(row.as_object()?, &["name"])?, row.get("value")?)));
    let fields = env.as_object().into_iter().flatten().map(|(name, value)| (name.clone(), value));
    fields.chain(rows).filter_map(|(name, value)| Some((name, text(value)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::super::value::into_object;
    use super::*;

    #[test]
    fn only_advertised_capabilities_are_set() {
        let all = into_object(json!({
            "sessionCapabilities": {"archive": {}, "status": {}, "systemPrompt": {"mode": {"override": {}}}},
            "auth": {"status": {}},
            "providers": {},
        }));
        let can = capabilities(&all);
        assert!(can.can_archive && can.system_prompt && can.system_prompt_override);
        assert!(can.tells_auth && can.has_providers && can.tells_status);
        let none =
            into_object(json!({"sessionCapabilities": {"archive": null, "systemPrompt": false}, "auth": {}}));
        assert_eq!(capabilities(&none), AgentCapabilities::default());
    }
}
