//! Decodes requests of the agent, in official and non-standard form, and encodes the responses.
//!
//! Invariants: a request that cannot be decoded gets an error response immediately, and is never executed in part;
//! results without payload are `{}` and never `null`, which some agents reject; a response that does not match its
//! request becomes an error.

use std::path::PathBuf;

use agent_client_protocol_schema::v1 as schema;
use serde_json::{Value, json};

use crate::model::{
    AgentRequest, Callbacks, ExitInfo, PermissionKind, PermissionOption, PermissionRequest, Response,
    RpcError, SessionId, TerminalCommand, TerminalId,
};

use super::decoder::Decoder;
use super::errors::invalid;
use super::names::{PERMISSION_KINDS, official};
use super::quirks::Quirk;
use super::updates::{self, session_name};
use super::value::{
    Object, fill, first_text, object_with, parse_object, rename, take, take_list, take_text, text, typed,
    whole, without_nulls,
};
use super::{elicitation, strict, tools, v2};

/// Maximum number of permission options; each is compared with all others.
const MAX_OPTIONS: usize = 500;
const MAX_SHOWN_CHARS: usize = 40;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestKind {
    Permission,
    /// Options were keyed by `id`; the response is then flat as well.
    FlatPermission,
    Elicitation,
    ReadFile,
    WriteFile,
    TerminalCreate,
    TerminalOutput,
    TerminalWait,
    TerminalKill,
    TerminalRelease,
}

pub type Decoded = Result<(AgentRequest, RequestKind), RpcError>;

pub fn decode(method: &str, params: Option<&str>, offered: Callbacks, decoder: &mut Decoder) -> Decoded {
    let not_found = |error: String| Err(RpcError::new(RpcError::METHOD_NOT_FOUND, error));
    let Some((kind, is_offered)) = kind_of(method, offered) else {
        return not_found(format!("Method not found: {method}"));
    };
    if !is_offered {
        return not_found(format!("{method} is disabled for this agent. Use your own implementation."));
    }
    let text = params.unwrap_or("{}");
    if decoder.quirks.is_strict
        && let Err(why) = strict::request(method, text, decoder.is_v2)
    {
        let session = parse_object(text).as_ref().and_then(session_name);
        if let Some(session) = session.map(|name| decoder.session(&name)) {
            let title = format!("Rejected non-standard request: {method}");
            updates::tell_refused(&session, title, &why, decoder);
        }
        return Err(invalid(method, &why));
    }
    let mut params = parse_object(text).ok_or_else(|| invalid(method, "params must be an object"))?;
    let session = session_name(&params).map(|name| decoder.session(&name));
    if kind == RequestKind::Permission {
        let (request, kind) = decode_permission(session, params, decoder);
        return Ok((AgentRequest::Permission(request), kind));
    }
    if kind == RequestKind::Elicitation {
        let request = elicitation::decode(session.clone(), params).inspect_err(|error| {
            if let Some(session) = &session {
                let title = "Rejected a question of the agent that cannot be shown.".to_owned();
                updates::push_notice(session, title, Some(error.message.clone()), decoder);
            }
        })?;
        return Ok((AgentRequest::Elicitation(request), kind));
    }
    // The official types require a session; some agents omit it, and it is not needed here.
    let name = session.as_ref().map(|session| session.as_str().to_owned()).unwrap_or_default();
    params.insert("sessionId".to_owned(), name.into());
    let request = decode_callback(kind, session, params).map_err(|error| invalid(method, &error))?;
    Ok((request, kind))
}

fn kind_of(method: &str, offered: Callbacks) -> Option<(RequestKind, bool)> {
    Some(match method {
        "session/request_permission" => (RequestKind::Permission, true),
        "elicitation/create" => (RequestKind::Elicitation, true),
        "fs/read_text_file" => (RequestKind::ReadFile, offered.fs_read),
        "fs/write_text_file" => (RequestKind::WriteFile, offered.fs_write),
        "terminal/create" => (RequestKind::TerminalCreate, offered.terminal),
        "terminal/output" => (RequestKind::TerminalOutput, offered.terminal),
        "terminal/wait_for_exit" => (RequestKind::TerminalWait, offered.terminal),
        "terminal/kill" => (RequestKind::TerminalKill, offered.terminal),
        "terminal/release" => (RequestKind::TerminalRelease, offered.terminal),
        _ => return None,
    })
}

fn decode_callback(
    kind: RequestKind,
    session: Option<SessionId>,
    mut params: Object,
) -> Result<AgentRequest, String> {
    Ok(match kind {
        RequestKind::ReadFile => {
            rename(&mut params, "path", &["file_path", "filePath", "uri"]);
            for key in ["line", "limit"] {
                let number = bounded(&params, key, u32::MAX.into())?;
                params.insert(key.to_owned(), number.into());
            }
            let schema::ReadTextFileRequest { path, line, limit, .. } = typed(params.into())?;
            AgentRequest::ReadFile { session, path: file_path(path)?, line, limit }
        }
        RequestKind::WriteFile => {
            rename(&mut params, "path", &["file_path", "filePath", "uri"]);
            rename(&mut params, "content", &["text", "contents"]);
            let schema::WriteTextFileRequest { path, content, .. } = typed(params.into())?;
            AgentRequest::WriteFile { session, path: file_path(path)?, content }
        }
        RequestKind::TerminalCreate => {
            AgentRequest::TerminalCreate { session, command: decode_command(params)? }
        }
        RequestKind::TerminalOutput => AgentRequest::TerminalOutput(terminal(params)?),
        RequestKind::TerminalWait => AgentRequest::TerminalWait(terminal(params)?),
        RequestKind::TerminalKill => AgentRequest::TerminalKill(terminal(params)?),
        RequestKind::TerminalRelease => AgentRequest::TerminalRelease(terminal(params)?),
        RequestKind::Permission | RequestKind::FlatPermission | RequestKind::Elicitation => {
            return Err("not a callback".to_owned());
        }
    })
}

/// An optional number from 0 to `max`. Floats and strings are accepted, and line 0, which agents send for 1.
fn bounded(params: &Object, key: &str, max: u64) -> Result<Option<u64>, String> {
    let Some(value) = params.get(key).filter(|value| !value.is_null()) else { return Ok(None) };
    let number = value.as_u64().or_else(|| whole(value)?.try_into().ok()).filter(|number| *number <= max);
    if number.is_none() {
        let value: String = value.to_string().chars().take(MAX_SHOWN_CHARS).collect();
        let min = u8::from(key == "line");
        return Err(format!("`{key}` is {value}; it must be a whole number from {min} to {max}, or omitted"));
    }
    Ok(number)
}

fn file_path(path: PathBuf) -> Result<PathBuf, String> {
    if path.as_os_str().is_empty() {
        return Err("`path` is empty".to_owned());
    }
    match path.to_str().and_then(|text| text.strip_prefix("file://")) {
        Some(bare) => Ok(PathBuf::from(bare)),
        None => Ok(path),
    }
}

fn terminal(mut params: Object) -> Result<TerminalId, String> {
    rename(&mut params, "terminalId", &["terminal_id", "id"]);
    let request: schema::TerminalOutputRequest = typed(Value::Object(params))?;
    Ok(TerminalId(request.terminal_id.0))
}

fn decode_command(mut params: Object) -> Result<TerminalCommand, String> {
    if let Some(Value::Array(parts)) = params.get_mut("command") {
        // A list: the first item is the program.
        let mut parts = std::mem::take(parts).into_iter();
        params.insert("command".to_owned(), parts.next().unwrap_or_default());
        fill(&mut params, "args", || parts.collect());
    }
    if let Some(Value::Object(variables)) = params.get("env") {
        let row = |(name, value)| Some(json!({"name": name, "value": text(value)?}));
        let rows = variables.iter().filter_map(row).collect();
        params.insert("env".to_owned(), rows);
    }
    let limit = bounded(&params, "outputByteLimit", u64::MAX)?;
    params.insert("outputByteLimit".to_owned(), limit.into());
    let request: schema::CreateTerminalRequest = typed(Value::Object(params))?;
    if request.command.trim().is_empty() {
        return Err("`command` is empty".to_owned());
    }
    Ok(TerminalCommand {
        command: request.command,
        args: request.args,
        env: request.env.into_iter().map(|variable| (variable.name, variable.value)).collect(),
        cwd: request.cwd.filter(|cwd| !cwd.as_os_str().is_empty()),
        output_limit_bytes: request.output_byte_limit,
    })
}

fn decode_permission(
    session: Option<SessionId>,
    mut params: Object,
    decoder: &mut Decoder,
) -> (PermissionRequest, RequestKind) {
    let note = v2::take_subject(&mut params);
    let call = match take(&mut params, &["toolCall", "tool_call", "tool"]) {
        Some(Value::Object(mut call)) => {
            // Some agents repeat a call without the parts that they sent before, which belong to the request.
            let is_empty = |value: &Value| *value == json!({}) || *value == json!([]);
            call.retain(|name, value| !matches!(name.as_str(), "rawInput" | "content") || !is_empty(value));
            call
        }
        // Without a call, the fields of the request are used.
        _ => ["title", "toolCallId"]
            .map(|key| (key.to_owned(), params.shift_remove(key).into()))
            .into_iter()
            .collect(),
    };
    let fallback = decoder.make_id("permission");
    let mut tool = tools::decode(call, false, fallback, decoder);
    tool.note = note;
    let mut is_flat = false;
    let mut room = MAX_OPTIONS;
    let options = decoder.items(take_list(&mut params, &["options"]), "options", |item| {
        let option = decode_option(item, &mut is_flat)?;
        room = room.checked_sub(1)?;
        Some(option)
    });
    let request = PermissionRequest { session, tool, options };
    if is_flat {
        decoder.learn(Quirk::FLAT_PERMISSIONS);
        return (request, RequestKind::FlatPermission);
    }
    (request, RequestKind::Permission)
}

fn decode_option(item: Value, is_flat: &mut bool) -> Option<PermissionOption> {
    let mut option = object_with(item, "optionId")?;
    if first_text(&option, &["optionId", "option_id"]).is_none() && first_text(&option, &["id"]).is_some() {
        *is_flat = true;
    }
    let id = take_text(&mut option, &["optionId", "option_id", "id"])?;
    let name = take_text(&mut option, &["name", "label", "title"]).unwrap_or_else(|| id.clone());
    let kind = take_text(&mut option, &["kind"]).map(|word| official(PERMISSION_KINDS, &word));
    let guess = guess_kind(&id, &name);
    let kind = match kind.map(|word| typed(word.into())) {
        Some(Ok(kind)) => kind,
        None => guess,
        // An unknown kind: its words say whether it allows, but not for how long. It must never be the default.
        Some(Err(_)) if guess.is_allow() => PermissionKind::AllowAlways,
        Some(Err(_)) => PermissionKind::RejectOnce,
    };
    Some(PermissionOption { id, name, kind })
}

/// The meaning of an option by its whole words ("disallow" does not allow). Unknown options reject.
fn guess_kind(id: &str, name: &str) -> PermissionKind {
    let text = format!("{id} {name}").to_lowercase();
    let words: Vec<&str> = text.split(|ch: char| !ch.is_alphanumeric() && ch != '\'').collect();
    let has = |known: &[&str]| words.iter().any(|word| known.contains(word));
    let rejects =
        has(&["reject", "deny", "no", "don't", "not", "never", "cancel", "decline", "refuse", "abort"]);
    let allows = has(&["allow", "approve", "yes", "accept", "ok", "proceed", "continue"]);
    let lasts = has(&["always", "never", "session", "remember", "forever"]);
    match (allows && !rejects, lasts) {
        (true, false) => PermissionKind::AllowOnce,
        (true, true) => PermissionKind::AllowAlways,
        (false, false) => PermissionKind::RejectOnce,
        (false, true) => PermissionKind::RejectAlways,
    }
}

/// The JSON of a response: a result, or an error object, also (`-32603`) if the response does not match the request.
pub fn encode_answer(kind: RequestKind, answer: &Response) -> Result<String, String> {
    let result = match (kind, answer) {
        (_, Response::Error(error)) => return Err(encode_error(error)),
        (RequestKind::Permission, Response::Selected(option)) => {
            json!({"outcome": {"outcome": "selected", "optionId": option}})
        }
        // Both forms in one: the dialect reads `optionId`, the protocol `outcome`.
        (RequestKind::FlatPermission, Response::Selected(option)) => {
            json!({"optionId": option, "outcome": {"outcome": "selected", "optionId": option}})
        }
        (RequestKind::Permission, Response::PermissionCancelled) => {
            json!({"outcome": {"outcome": "cancelled"}})
        }
        (RequestKind::FlatPermission, Response::PermissionCancelled) => json!({"outcome": "cancelled"}),
        (RequestKind::Elicitation, Response::ElicitationAccepted(None)) => json!({"action": "accept"}),
        (RequestKind::Elicitation, Response::ElicitationAccepted(Some(values))) => {
            let content = values.iter().map(|(key, value)| (key.clone(), json!(value)));
            json!({"action": "accept", "content": content.collect::<Object>()})
        }
        (RequestKind::Elicitation, Response::ElicitationDeclined) => json!({"action": "decline"}),
        (RequestKind::Elicitation, Response::ElicitationCancelled) => json!({"action": "cancel"}),
        (RequestKind::ReadFile, Response::FileContent(text)) => json!({"content": text}),
        (
            RequestKind::WriteFile | RequestKind::TerminalKill | RequestKind::TerminalRelease,
            Response::Done,
        ) => json!({}),
        (RequestKind::TerminalCreate, Response::TerminalCreated(id)) => json!({"terminalId": id.as_str()}),
        (RequestKind::TerminalOutput, Response::TerminalOutput { output, is_truncated, exit }) => {
            let exit = exit.as_ref().map(encode_exit);
            without_nulls(json!({"output": output, "truncated": is_truncated, "exitStatus": exit}))
        }
        (RequestKind::TerminalWait, Response::TerminalExit(exit)) => encode_exit(exit),
        _ => {
            let text = "Internal error in parlor: the response does not match the request.";
            return Err(encode_error(&RpcError::new(RpcError::INTERNAL, text)));
        }
    };
    Ok(result.to_string())
}

/// The response to a request that is dropped, because its turn or connection ended. ACP v1 prompt-turn, Cancellation:
/// pending permissions MUST be answered `cancelled`.
pub fn fallback(kind: RequestKind) -> Response {
    match kind {
        RequestKind::Permission | RequestKind::FlatPermission => Response::PermissionCancelled,
        RequestKind::Elicitation => Response::ElicitationCancelled,
        _ => {
            let text = "The request was dropped before a response was sent.";
            Response::Error(RpcError::new(RpcError::INTERNAL, text))
        }
    }
}

fn encode_exit(exit: &ExitInfo) -> Value {
    // The protocol has no negative codes; the shell convention is the low eight bits.
    let code = exit.code.map(|code| if code < 0 { code & 0xff } else { code });
    without_nulls(json!({"exitCode": code, "signal": exit.signal}))
}

pub fn encode_error(error: &RpcError) -> String {
    let code = i32::try_from(error.code).unwrap_or(-32603);
    let data = error.data.as_ref().and_then(|data| serde_json::from_str::<Value>(&data.0).ok());
    without_nulls(json!({"code": code, "message": error.message, "data": data})).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Patch;

    #[test]
    fn options_without_a_kind_are_classified_by_whole_words_and_default_to_reject() {
        for (id, name, expected) in [
            ("allow", "Allow", PermissionKind::AllowOnce),
            ("yes", "Yes, proceed", PermissionKind::AllowOnce),
            ("a", "Always allow", PermissionKind::AllowAlways),
            ("allow_session", "For this session", PermissionKind::AllowAlways),
            ("deny", "Deny", PermissionKind::RejectOnce),
            ("x", "Do not allow", PermissionKind::RejectOnce),
            ("disallow", "Disallow", PermissionKind::RejectOnce),
            ("never", "Never", PermissionKind::RejectAlways),
            ("1", "Whatever", PermissionKind::RejectOnce),
        ] {
            assert_eq!(guess_kind(id, name), expected, "{id} {name}");
        }
    }

    fn decode_read(params: &Value) -> Result<AgentRequest, RpcError> {
        let offered = Callbacks { fs_read: true, fs_write: true, terminal: true };
        let method = "fs/read_text_file";
        let params = params.to_string();
        decode(method, Some(&params), offered, &mut Decoder::default()).map(|read| read.0)
    }

    #[test]
    fn lines_out_of_range_are_invalid() {
        for (key, value, reason) in [
            ("line", json!(-1), "`line` is -1; it must be a whole number from 1 to 4294967295, or omitted"),
            ("limit", json!(-1), "`limit` is -1; it must be a whole number from 0 to 4294967295, or omitted"),
            ("line", json!(u64::MAX), "`line` is 18446744073709551615; it must"),
            ("limit", json!(1_u64 << 32), "`limit` is 4294967296; it must"),
            ("line", json!(1.5), "`line` is 1.5; it must"),
            ("limit", json!(vec![0; 100]), "`limit` is [0,0,"),
        ] {
            let error = decode_read(&json!({"path": "/a", key: value})).unwrap_err();
            assert_eq!(error.code, RpcError::INVALID_PARAMS);
            assert!(error.message.contains(reason) && error.message.len() < 200, "{}", error.message);
        }
        for (value, expected) in
            [(json!(0), Some(0)), (json!("2"), Some(2)), (json!(3.0), Some(3)), (Value::Null, None)]
        {
            let read = decode_read(&json!({"path": "/a", "line": value, "limit": value})).unwrap();
            let AgentRequest::ReadFile { line, limit, .. } = read else { panic!("{read:?}") };
            assert_eq!((line, limit), (expected, expected));
        }
    }

    #[test]
    fn empty_parts_of_a_repeated_call_do_not_replace_it() {
        let call = json!({"toolCallId": "t", "title": "Plan", "rawInput": {}, "content": []});
        let params = json!({"sessionId": "s", "toolCall": call, "options": []}).to_string();
        let mut decoder = Decoder::default();
        let method = "session/request_permission";
        let request = decode(method, Some(&params), Callbacks::default(), &mut decoder);
        let Ok((AgentRequest::Permission(request), _)) = request else { panic!("{request:?}") };
        assert_eq!((request.tool.raw_input, request.tool.content), (Patch::Keep, Patch::Keep));
    }

    #[test]
    fn options_are_bounded() {
        let options: Vec<Value> = (0..10_000).map(|number| json!({"optionId": number.to_string()})).collect();
        let params =
            json!({"sessionId": "s", "toolCall": {"toolCallId": "t"}, "options": options}).to_string();
        let mut decoder = Decoder::default();
        let method = "session/request_permission";
        let request = decode(method, Some(&params), Callbacks::default(), &mut decoder);
        let Ok((AgentRequest::Permission(request), _)) = request else { panic!("{request:?}") };
        assert_eq!(request.options.len(), MAX_OPTIONS);
        let lost = |event: &crate::model::AgentEvent| matches!(event, crate::model::AgentEvent::Anomaly(anomaly) if anomaly.text.contains("9500 of 10000"));
        assert!(decoder.out.iter().any(lost), "{:?}", decoder.out);
    }
}
