//! Banjo: an older call to resume sessions, more for clients that are named after it, and short limits.
//!
//! Its WebSocket uses one thread for reading and the turn.
//! Source: the documentation and the code of Banjo.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{Dialect, Method, Translation};
use crate::acp::codec::errors;
use crate::model::{AgentInfo, Call, Profile, RpcError};

/// Maximum bytes of params: the agent reads lines of up to 4 MiB; the rest is for the envelope.
const MAX_PARAMS_BYTES: usize = (4 << 20) - 1024;
/// How long the agent waits for the response to a permission request.
const TIMEOUT_SECS: u32 = 30;

#[derive(Debug)]
pub struct Banjo {
    is_early: bool,
    is_remote: bool,
    resumes: bool,
    /// Requests to set a mode, with the params in which the mode has its old name.
    modes: BTreeMap<u64, String>,
}

impl Banjo {
    pub fn new(is_early: bool, is_remote: bool) -> Self {
        Self { is_early, is_remote, resumes: false, modes: BTreeMap::new() }
    }
}

impl Dialect for Banjo {
    /// The agent sends its models and options to such clients only.
    fn client_name(&self) -> &'static str {
        "banjo-parlor"
    }

    fn initialized(&mut self, result: &str) -> Option<String> {
        let result: Value = serde_json::from_str(result).unwrap_or_default();
        let resume = result.pointer("/agentCapabilities/sessionCapabilities/resume");
        self.resumes = resume.is_some_and(Value::is_object);
        None
    }

    fn describe(&self, info: &mut AgentInfo) {
        info.profile = Some(Profile::Banjo);
        let can = &mut info.capabilities;
        (can.can_resume, can.deaf_in_turn) = (true, self.is_remote);
        can.permission_limit_secs = Some(TIMEOUT_SECS);
        let named = "parlor identifies as `banjo-parlor`, so that the agent sends its models and options.";
        let deaf = "The agent reads no input during a turn: responses and cancellation arrive when it ends.";
        let notes = [
            (self.is_early, named),
            (!self.resumes, "Sessions are resumed with `unstable_resumeSession`."),
            (true, "If a mode is rejected, its old name is tried."),
            (true, "The agent treats an unanswered question as declined after 30 s."),
            (true, "Messages to the agent are limited to 4 MiB."),
            (self.is_remote, deaf),
        ];
        info.quirks.extend(notes.iter().filter(|(applies, _)| *applies).map(|(_, note)| (*note).to_owned()));
    }

    fn call(&mut self, id: u64, call: &Call, message: &mut Method) -> Result<(), String> {
        match call {
            Call::ResumeSession(session, workspace) if !self.resumes => {
                let params = json!({"sessionId": session, "cwd": workspace.folder().to_string_lossy()});
                *message = ("unstable_resumeSession", params.to_string());
            }
            Call::SetMode(session, mode) => {
                let params = json!({"sessionId": session, "mode": mode});
                self.modes.insert(id, params.to_string());
            }
            _ => {}
        }
        super::check_size(message.1.len(), MAX_PARAMS_BYTES)
    }

    fn on_response(&mut self, id: u64, outcome: Result<&str, &str>, out: &mut Translation) -> bool {
        let Some(params) = self.modes.remove(&id) else { return false };
        let is_invalid = outcome.is_err_and(|error| errors::decode(error).code == RpcError::INVALID_PARAMS);
        if is_invalid {
            out.to_agent.push((id, ("session/set_mode", params)));
        }
        is_invalid
    }
}
