//! The inputs of the core.

use crate::core::{QuestionId, TimerId, UserAnswer};
use crate::model::{AgentEvent, ConnId, ServiceEvent};

/// Something that has happened, or an answer of the user, whatever front end it came from. All else that a user wants is
/// done by `core::lifecycle::operations`.
#[allow(clippy::large_enum_variant, reason = "an event is used once, where it was made")]
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    Agent(ConnId, AgentEvent),
    Service(ServiceEvent),
    Timer(TimerId),
    Answer(QuestionId, UserAnswer),
    /// The terminal has the focus, or has lost it.
    Focus(bool),
    /// The process received a signal to end (TERM, HUP, INT).
    Terminate,
}
