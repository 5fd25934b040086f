//! Messages about errors and the end of connections, and the classification of errors.
//!
//! Each message says what happened and what to do next; errors of the agent, the protocol and the transport are worded
//! differently. Agents use error codes loosely, so no classification depends on a code alone.

use crate::model::{AgentInfo, CallError, CloseReason, ExitInfo, FaultKind, RpcError};

/// The message for a failed call, with what to do next.
pub fn error_text(error: &CallError) -> String {
    match error {
        CallError::Agent(error) => agent_error_text(error),
        CallError::Malformed { error } => {
            format!("Invalid response from the agent: {error}. See the protocol log.")
        }
        CallError::NotSent { error } | CallError::Undelivered { error } => error.clone(),
        CallError::OtherVersion { theirs } if is_draft(theirs) => {
            format!("The agent supports only protocol version {theirs} (draft). {ALLOW_DRAFT}")
        }
        CallError::OtherVersion { theirs } => format!(
            "Unsupported protocol version {theirs}. Use another version of the agent, or update parlor."
        ),
        CallError::TimedOut(seconds) => {
            format!("The agent did not respond within {seconds} s. Try again later, or restart it.")
        }
        CallError::Lost => "The connection closed before the response. Restart the agent.".to_owned(),
    }
}

/// For calls to an agent that is starting or has exited.
pub const NOT_READY: &str = "The agent is not ready yet.";

/// For changes of a session that is still being opened.
pub const NOT_OPEN: &str = "The session is not open yet.";

/// The title of the notice about an agent that requires a sign-in.
pub const SIGN_IN_REQUIRED: &str = "The agent requires sign-in.";

/// The title of a failed resume.
pub const NOT_RESUMED: &str = "The agent could not resume the session.";

/// The hint for an agent that only supports the draft protocol version, which its settings exclude.
pub const ALLOW_DRAFT: &str = "To use it, remove `protocol = 1` from the agent's section of config.toml.";

pub fn is_draft(version: &str) -> bool {
    version.parse::<f64>().is_ok_and(|version| (2.0..3.0).contains(&version))
}

/// Returns which part failed.
pub fn fault_of(error: &CallError) -> FaultKind {
    match error {
        CallError::Agent(error) => cause_of(error),
        CallError::Malformed { .. } | CallError::OtherVersion { .. } => FaultKind::Protocol,
        CallError::NotSent { .. } => FaultKind::Unsent,
        CallError::TimedOut(_) | CallError::Lost | CallError::Undelivered { .. } => FaultKind::Line,
    }
}

/// The heading of a failed start with the part that failed. A refusal by parlor already says that nothing was sent.
pub fn start_fault(what: &str, error: &CallError) -> String {
    match fault_of(error) {
        FaultKind::Unsent => what.to_owned(),
        fault => format!("{what} {}.", fault.heading()),
    }
}

/// What to do next when an agent could not be set up. Most transport errors include it.
pub fn next_for_agent(error: &CallError) -> Option<String> {
    let next = match error {
        CallError::Agent(error) if error.code == RpcError::UNSUPPORTED_VERSION => {
            "Use another version of the agent, or update parlor.".to_owned()
        }
        // A program that does not implement `initialize` may not be an agent.
        CallError::Agent(error) if error.code == RpcError::METHOD_NOT_FOUND => NOT_AN_AGENT.to_owned(),
        CallError::Agent(error) if is_temporary(error) => {
            "The error may be temporary. Restart the agent to retry.".to_owned()
        }
        // The agent's message says what is wrong.
        CallError::Agent(_) => "Fix the error, then restart the agent.".to_owned(),
        CallError::OtherVersion { .. } | CallError::Undelivered { .. } | CallError::NotSent { .. } => {
            return None;
        }
        CallError::Malformed { .. } | CallError::TimedOut(_) | CallError::Lost => NOT_AN_AGENT.to_owned(),
    };
    Some(next)
}

/// What to do next when a session could not be opened.
pub fn next_for_session(error: &CallError) -> &'static str {
    match fault_of(error) {
        FaultKind::Busy => "The error may be temporary. Restart the agent to retry.",
        FaultKind::Line => "Restart the agent when it is reachable.",
        FaultKind::Network => "Check the network and the proxy, then restart the agent.",
        FaultKind::Key => "Sign in again or correct the key, then restart the agent.",
        FaultKind::Quota => "Select another account, or wait, then restart the agent.",
        FaultKind::Agent | FaultKind::Protocol | FaultKind::SignIn | FaultKind::Gone | FaultKind::Unsent => {
            "Restart the agent, or start a new session."
        }
    }
}

/// The agent's message, or the code if it is empty.
pub fn agent_error_text(error: &RpcError) -> String {
    let message = error.message.trim();
    if message.is_empty() {
        format!("The agent returned error {} without a message. See the protocol log.", error.code)
    } else {
        message.to_owned()
    }
}

/// Words in the errors of agents, and what they tell of the cause, in order of precedence.
const CAUSES: [(FaultKind, &[&str]); 4] = [
    (
        FaultKind::Quota,
        &[
            "insufficient_quota",
            "quota exceeded",
            "exceeded your current quota",
            "out of quota",
            "usage limit",
            "credit balance",
            "no credit",
            "out of credits",
            "insufficient credits",
            "insufficient balance",
            "billing",
            "payment required",
        ],
    ),
    (
        FaultKind::Key,
        &[
            "invalid api key",
            "invalid_api_key",
            "incorrect api key",
            "api key not valid",
            "api_key_invalid",
            "invalid x-api-key",
            "invalid bearer token",
            "token expired",
            "authentication_error",
            "permission_denied",
            "forbidden",
            "unauthorized",
        ],
    ),
    (
        FaultKind::Network,
        &[
            "econnrefused",
            "enotfound",
            "eai_again",
            "enetunreach",
            "connection refused",
            "connection error",
            "network error",
            "network is unreachable",
            "fetch failed",
            "getaddrinfo",
            "dns error",
            "certificate",
        ],
    ),
    (
        FaultKind::Busy,
        &[
            "rate limit",
            "rate_limit",
            "ratelimit",
            "too many requests",
            "overload",
            "at capacity",
            "capacity exceeded",
            "temporarily",
            "try again",
            "retry later",
            "unavailable",
            "service busy",
            "timed out",
            "timeout",
            "deadline exceeded",
            "econnreset",
            "connection reset",
            "connection closed",
            "socket hang up",
            "bad gateway",
            "internal server error",
            "stream error",
        ],
    ),
];

/// The cause that the agent's error tells.
fn cause_of(error: &RpcError) -> FaultKind {
    let data = error.data.as_ref().map(|data| data.0.to_lowercase()).unwrap_or_default();
    let text = format!("{} {data}", error.message.to_lowercase());
    let by_words = CAUSES.iter().find(|(_, words)| words.iter().any(|word| text.contains(word)));
    let by_status = || {
        text.split(|ch: char| !ch.is_ascii_alphanumeric()).find_map(|word| match word {
            "401" | "403" => Some(FaultKind::Key),
            "402" => Some(FaultKind::Quota),
            "429" | "500" | "502" | "503" | "504" | "529" => Some(FaultKind::Busy),
            _ => None,
        })
    };
    by_words.map(|(fault, _)| *fault).or_else(by_status).unwrap_or_default()
}

/// Whether the same call may succeed later: the service used by the agent is busy or unreachable.
fn is_temporary(error: &RpcError) -> bool {
    matches!(cause_of(error), FaultKind::Busy | FaultKind::Network)
}

/// Whether the agent requires a sign-in. `-32000` is also used for unknown sessions and for too many of them, so the
/// code counts only with sign-in methods, or with a message about it.
pub fn is_auth_error(error: &CallError, info: Option<&AgentInfo>) -> bool {
    let CallError::Agent(error) = error else {
        return false;
    };
    if says_session_gone(error) {
        return false;
    }
    let text = error.message.to_lowercase();
    let says_so = [
        "authentication required",
        "auth required",
        "auth_required",
        "authrequired",
        "not authenticated",
        "unauthenticated",
        "not logged in",
        "please log in",
        "login required",
        "sign in",
    ]
    .iter()
    .any(|phrase| text.contains(phrase));
    let has_methods = info.is_some_and(|info| !info.auth_methods.is_empty());
    let is_loose_match = text.contains("auth") || text.contains("log in") || text.contains("login");
    says_so || (error.code == RpcError::AUTH_REQUIRED && (has_methods || is_loose_match))
}

/// Whether the agent no longer has the session.
pub fn is_session_gone(error: &CallError) -> bool {
    matches!(error, CallError::Agent(error) if says_session_gone(error))
}

fn says_session_gone(error: &RpcError) -> bool {
    // The last one is the answer of gemini, with the code of an internal error.
    const PHRASES: [&str; 5] = [
        "session not found",
        "unknown session",
        "resource not found",
        "no such session",
        "no previous sessions found",
    ];
    const CODES: [i64; 4] = [RpcError::AUTH_REQUIRED, -32600, RpcError::INVALID_PARAMS, RpcError::INTERNAL];
    let text = error.message.to_lowercase();
    let says_so = PHRASES.iter().any(|phrase| text.contains(phrase));
    matches!(error.code, RpcError::RESOURCE_NOT_FOUND | -32001) || (says_so && CODES.contains(&error.code))
}

/// A heading that says what failed, where the text of [`close_cause`] is a transport message without it.
pub fn close_heading(reason: &CloseReason) -> Option<&'static str> {
    match reason {
        CloseReason::Lost { .. }
        | CloseReason::Unreachable { .. }
        | CloseReason::Refused { .. }
        | CloseReason::SignInFirst { .. } => Some(FaultKind::Line.heading()),
        // These name what ended or was not found.
        CloseReason::NotStarted { .. } | CloseReason::Exited { .. } | CloseReason::Stopped => None,
    }
}

/// Why a connection ended, in one sentence.
pub fn close_cause(reason: &CloseReason, command: &str) -> String {
    match reason {
        CloseReason::NotStarted { is_missing: true, .. } => {
            format!("Program {command} not found. Install it, or select another agent.")
        }
        CloseReason::NotStarted { error, .. } => {
            format!("Program {command} could not be started: {}.", error.trim_end_matches('.'))
        }
        CloseReason::Exited { status, .. } => format!("The agent exited with {}.", exit_text(status)),
        CloseReason::Lost { error } => {
            format!("{}.", sentence(error.trim_end_matches('.')))
        }
        CloseReason::Unreachable { error }
        | CloseReason::Refused { error }
        | CloseReason::SignInFirst { error } => error.clone(),
        CloseReason::Stopped => "The agent was stopped.".to_owned(),
    }
}

/// Capitalizes the first letter, unless the first word is a name.
fn sentence(text: &str) -> String {
    let word = text.split_whitespace().next().unwrap_or_default();
    let mut letters = text.chars();
    match letters.next() {
        Some(first) if word.chars().all(char::is_alphabetic) => first.to_uppercase().chain(letters).collect(),
        _ => text.to_owned(),
    }
}

/// What parlor does automatically after such an end.
pub fn after_close(reason: &CloseReason) -> &'static str {
    match reason {
        CloseReason::Exited { .. } => "Restarting automatically.",
        _ => "Reconnecting automatically.",
    }
}

/// What to check when a program does not respond like an agent.
pub const NOT_AN_AGENT: &str = "The program may need an argument such as `acp` or `--acp` to run as an \
    agent. See the protocol log for its output.";

/// What to do about a program that failed in its runtime, by its last output.
pub fn advice_of_output(lines: &[String]) -> Option<String> {
    /// The oldest version that agents of today support.
    const MIN_NODE: u32 = 20;
    let has = |word: &str| lines.iter().any(|line| line.contains(word));
    let lower = |line: &String| line.trim().to_lowercase();
    let version = lines.iter().map(lower).find_map(|line| Some(line.strip_prefix("node.js v")?.to_owned()));
    let major = version.as_deref().and_then(|version| version.split('.').next()?.parse::<u32>().ok());
    if let (Some(version), Some(0..MIN_NODE)) = (version, major) {
        return Some(format!(
            "It failed in Node.js {version}, which is probably too old. Install a newer one, then restart the agent."
        ));
    }
    if has("Unsupported engine") || has("requires Node") {
        return Some("It needs a newer Node.js. Install one, then restart the agent.".to_owned());
    }
    let is_incomplete = has("Cannot find module") || has("ERR_MODULE_NOT_FOUND");
    is_incomplete.then(|| "A part of it is missing. Install the agent again.".to_owned())
}

/// How a process ended: `exit code 3`, `signal SIGKILL (out of memory?)`.
pub fn exit_text(status: &ExitInfo) -> String {
    match (status.code, &status.signal) {
        (_, Some(signal)) if signal == "SIGKILL" => "signal SIGKILL (out of memory?)".to_owned(),
        (_, Some(signal)) => format!("signal {signal}"),
        (Some(code), None) => format!("exit code {code}"),
        (None, None) => "unknown status".to_owned(),
    }
}

/// The last lines of a process's stderr.
pub fn stderr_tail(reason: &CloseReason) -> &[String] {
    match reason {
        CloseReason::Exited { stderr_tail, .. } => stderr_tail,
        _ => &[],
    }
}

/// The status of a compaction whose summary is incomplete.
pub const IN_PROGRESS: &str = "in_progress";

pub(in crate::core) fn queue_on_hold(waiting: usize) -> String {
    match waiting {
        1 => "1 prompt on hold. Send an empty prompt to run it.".to_owned(),
        _ => format!("{waiting} prompts on hold. Send an empty prompt to run them."),
    }
}
