//! The app: a pure reducer over plain state.
//!
//! Duty: decides what every event means (`update`), and holds all that must survive a redraw.
//! Not its duty: drawing, IO, clocks, the wire.
//! Events come in wire order through one queue; what is to be done leaves as [`Effect`]s.
//! `update` is total: it never fails, never blocks, reads no clock (`now` is given).

pub mod effect;
pub mod flow;
pub mod modal;
pub mod session;
pub mod state;
pub mod transcript;
pub mod user;

pub use effect::*;
pub use modal::*;
pub use session::*;
pub use state::*;
pub use transcript::*;

use std::time::Instant;

use crate::model::{Action, AgentEvent, ConnId, LineEdit, ServiceEvent};

/// Everything that can happen.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// A connection tells something.
    Agent(ConnId, AgentEvent),
    /// The user wants something.
    Act(Action),
    /// The text of the prompt changed; this is all of it.
    Draft(String),
    /// A line of text in the top dialog changes.
    Line(LineEdit),
    /// Some key or click arrived (also one that did nothing): the grace period of dialogs counts from it.
    Input,
    /// A service tells something.
    Service(ServiceEvent),
    /// A timer that was set ran out.
    Timer(TimerId),
    /// The terminal got or lost the focus.
    Focus(bool),
    /// The system asked parlor to end (TERM, HUP, INT).
    Terminate,
}

/// Applies an event to the state and says what is to be done.
pub fn update(state: &mut State, event: Event, now: Instant) -> Vec<Effect> {
    let _ = (state, event, now);
    Vec::new()
}
