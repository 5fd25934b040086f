//! Capabilities of the client that change the behaviour of the demo agent.

use serde_json::Value;

/// The relevant client capabilities.
#[derive(Debug, Clone, Copy, Default)]
#[expect(clippy::struct_excessive_bools, reason = "the protocol has that many independent capabilities")]
pub(super) struct Client {
    pub(super) can_read: bool,
    pub(super) has_terminals: bool,
    pub(super) has_forms: bool,
    pub(super) has_urls: bool,
    pub(super) has_booleans: bool,
    pub(super) has_notices: bool,
    pub(super) has_compaction: bool,
    pub(super) has_plans: bool,
    pub(super) has_subagents: bool,
}

impl Client {
    /// Parses `clientCapabilities`; missing ones are off.
    pub(super) fn read(capabilities: &Value) -> Self {
        let flag = |path: &str| capabilities.pointer(path).and_then(Value::as_bool).unwrap_or(false);
        let marker = |path: &str| capabilities.pointer(path).is_some_and(Value::is_object);
        Self {
            can_read: flag("/fs/readTextFile"),
            has_terminals: flag("/terminal"),
            has_forms: marker("/elicitation/form"),
            has_urls: marker("/elicitation/url"),
            has_booleans: marker("/session/configOptions/boolean"),
            has_notices: marker("/session/notices"),
            has_compaction: marker("/session/compaction"),
            has_plans: marker("/plan"),
            has_subagents: marker("/subagents"),
        }
    }
}
