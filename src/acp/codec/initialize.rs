//! Encodes and decodes `initialize`.
//!
//! Only capabilities that are implemented are advertised. `peer` decides when to retry in another form; `auth`
//! decodes the sign-in methods. ACP v1 initialization: an absent or `null` capability is unsupported.

use agent_client_protocol_schema::ProtocolVersion;
use agent_client_protocol_schema::v1 as schema;
use serde_json::{Value, json};

use crate::model::{AgentCapabilities, AgentInfo, CallError, Callbacks, RpcError};

use super::quirks::{Quirk, Quirks};
use super::replies::malformed;
use super::value::{Object, first_text, json as to_json, list, parse_object, rename, take, typed, whole};
use super::{auth, strict, unstable};

/// The newest stable protocol version that parlor supports.
const VERSION: u16 = 1;

/// Markers in `sessionCapabilities`: objects in the protocol, booleans from some agents.
const SESSION_MARKERS: &[&str] =
    &["list", "delete", "additionalDirectories", "resume", "close", "fork", "title"];

pub(super) fn encode(
    attempt: u8,
    offer: Offer,
    name: &str,
    is_strict: bool,
) -> Option<(&'static str, String)> {
    let capabilities = match attempt {
        0 => with_unstable(offer),
        1 if !is_strict => stable(offer),
        _ => return None,
    };
    let info = schema::Implementation::new(name, env!("CARGO_PKG_VERSION")).title("parlor".to_owned());
    let request = schema::InitializeRequest::new(ProtocolVersion::V1)
        .client_capabilities(capabilities)
        .client_info(info);
    Some((schema::AGENT_METHOD_NAMES.initialize, to_json(&request)))
}

/// The capabilities that parlor offers to an agent.
#[derive(Debug, Clone, Copy)]
pub(super) struct Offer {
    pub callbacks: Callbacks,
    /// Whether the user can sign in with a command of the agent, for which parlor must know the agent's own command.
    /// Source: ACP v1 authentication, terminal auth.
    pub runs_sign_in: bool,
}

fn stable(offer: Offer) -> schema::ClientCapabilities {
    schema::ClientCapabilities::new()
        .fs(schema::FileSystemCapabilities::new()
            .read_text_file(offer.callbacks.fs_read)
            .write_text_file(offer.callbacks.fs_write))
        .terminal(offer.callbacks.terminal)
        .session(
            schema::ClientSessionCapabilities::new()
                .config_options(
                    schema::SessionConfigOptionsCapabilities::new()
                        .boolean(schema::BooleanConfigOptionCapabilities::new()),
                )
                .notices(schema::NoticeCapabilities::new())
                .compaction(schema::CompactionCapabilities::new()),
        )
        .auth(schema::AuthCapabilities::new().terminal(offer.runs_sign_in))
        .elicitation(
            schema::ElicitationCapabilities::new()
                .form(schema::ElicitationFormCapabilities::new())
                .url(schema::ElicitationUrlCapabilities::new()),
        )
}

/// Adds plans by id, subagents, and `_meta` flags that current agents read: `terminal_output` enables live command
/// output in claude, `terminal-auth` enables sign-in commands in older agents.
pub(super) fn with_unstable(offer: Offer) -> schema::ClientCapabilities {
    let mut meta = Object::from_iter([("terminal_output".to_owned(), Value::Bool(true))]);
    if offer.runs_sign_in {
        meta.insert("terminal-auth".to_owned(), Value::Bool(true));
    }
    stable(offer)
        .plan(schema::PlanCapabilities::new())
        .subagents(schema::SubagentCapabilities::new())
        .meta(meta)
}

pub(super) fn decode(result: &str, quirks: &mut Quirks) -> Result<AgentInfo, CallError> {
    if quirks.is_strict() {
        strict::initialize(result).map_err(|error| malformed(&error))?;
    }
    let mut result = parse_object(result).ok_or_else(|| malformed("not an object"))?;
    let version = decode_version(result.get("protocolVersion"), quirks)?;
    let mut info = AgentInfo { protocol_version: version, ..AgentInfo::default() };

    if let Some(Value::Object(agent)) = take(&mut result, &["agentInfo", "serverInfo", "agent_info"]) {
        info.name = first_text(&agent, &["name"]);
        info.title = first_text(&agent, &["title"]);
        info.version = first_text(&agent, &["version"]);
    }
    if let Some(name) = &info.name {
        quirks.seed(name);
    }
    if let Some(Value::Object(capabilities)) =
        take(&mut result, &["agentCapabilities", "agent_capabilities", "capabilities"])
    {
        let reported = capabilities.clone();
        let mut can = decode_capabilities(capabilities);
        unstable::capabilities(&reported, &mut can);
        info.capabilities = can;
    }
    let methods = take(&mut result, &["authMethods", "auth_methods"]).map(list).unwrap_or_default();
    info.auth_methods = methods.into_iter().filter_map(auth::decode).collect();
    info.capabilities.can_steer = unstable::can_steer(&result);
    info.capabilities.missing_file_reads_empty = quirks.has(Quirk::MissingFileReadsEmpty);
    info.capabilities.api_key_is_text = quirks.has(Quirk::ApiKeyAsText);
    info.quirks = quirks.sentences();
    Ok(info)
}

/// The version that an agent requires instead of version 1, if the error says so. Source: ACP v2 initialization, version
/// negotiation: the data lists what is supported.
pub(super) fn required_version(error: &RpcError) -> Option<String> {
    let text = error.message.to_lowercase();
    let is_about_version = text.contains("version")
        && ["protocol", "unsupported", "not supported"].iter().any(|word| text.contains(word));
    if error.code != RpcError::UNSUPPORTED_VERSION && !is_about_version {
        return None;
    }
    let data = error.data.as_ref().and_then(|data| parse_object(&data.0));
    let supported = data.and_then(|mut data| take(&mut data, &["supported"])).map(list).unwrap_or_default();
    let newer = supported.iter().filter_map(whole).filter(|version| *version > i64::from(VERSION)).min();
    Some(newer.unwrap_or(i64::from(VERSION) + 1).to_string())
}

/// Agents send 1, "1", "1.0" or nothing. An older version is treated as version 1; a newer one is rejected.
fn decode_version(version: Option<&Value>, quirks: &mut Quirks) -> Result<u16, CallError> {
    let number = match version {
        None | Some(Value::Null) => {
            quirks.note(Quirk::NoVersion);
            f64::from(VERSION)
        }
        Some(Value::Number(number)) => number.as_f64().unwrap_or_default(),
        Some(Value::String(text)) => {
            quirks.note(Quirk::VersionAsText);
            let digits: String =
                text.trim_start_matches('v').chars().take_while(char::is_ascii_digit).collect();
            digits.parse().map_err(|_| malformed(&format!("protocol version `{text}`")))?
        }
        Some(other) => return Err(malformed(&format!("protocol version `{other}`"))),
    };
    if number >= f64::from(VERSION) + 1.0 {
        // ACP v1 initialization: a client that does not support the version in the response SHOULD close the
        // connection.
        return Err(CallError::OtherVersion { theirs: number.to_string() });
    }
    Ok(VERSION)
}

fn decode_capabilities(mut reported: Object) -> AgentCapabilities {
    rename(&mut reported, "loadSession", &["load_session"]);
    for (name, others) in [
        ("promptCapabilities", &["prompt_capabilities", "prompt"][..]),
        ("mcpCapabilities", &["mcp_capabilities", "mcp"]),
        ("sessionCapabilities", &["session_capabilities", "session"]),
    ] {
        rename(&mut reported, name, others);
    }
    if let Some(Value::Object(session)) = reported.get_mut("sessionCapabilities") {
        rename(session, "title", &["setTitle", "set_title"]);
        for marker in SESSION_MARKERS {
            as_marker(session, marker);
        }
    }
    if let Some(Value::Object(auth)) = reported.get_mut("auth") {
        as_marker(auth, "logout");
    }
    if reported.get("loadSession").is_some_and(Value::is_object) {
        reported.insert("loadSession".to_owned(), true.into());
    }
    let Ok(can) = typed::<schema::AgentCapabilities>(Value::Object(reported)) else {
        return AgentCapabilities::default();
    };
    let session = can.session_capabilities;
    AgentCapabilities {
        can_load: can.load_session,
        can_resume: session.resume.is_some(),
        can_list: session.list.is_some(),
        can_delete: session.delete.is_some(),
        can_close: session.close.is_some(),
        can_fork: session.fork.is_some(),
        can_set_title: session.title.is_some(),
        additional_directories: session.additional_directories.is_some(),
        prompt_image: can.prompt_capabilities.image,
        prompt_audio: can.prompt_capabilities.audio,
        prompt_embedded_context: can.prompt_capabilities.embedded_context,
        mcp_http: can.mcp_capabilities.http,
        mcp_sse: can.mcp_capabilities.sse,
        can_log_out: can.auth.logout.is_some(),
        ..AgentCapabilities::default()
    }
}

/// Converts `true` to the marker `{}`, and removes `false`.
fn as_marker(object: &mut Object, key: &str) {
    match object.get(key) {
        Some(Value::Bool(true)) => {
            object.insert(key.to_owned(), json!({}));
        }
        Some(Value::Bool(false)) => {
            object.shift_remove(key);
        }
        _ => {}
    }
}
