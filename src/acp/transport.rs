//! Transports start or reach an agent, carry messages in both directions, and report once how the connection ended.
//!
//! [`Link::incoming`] is bounded and yields everything that waits; [`Outgoing`] sends; [`Stopper`] ends the
//! connection. No code above this module depends on the kind of transport.
//! Invariants: `Closed` is sent once and last; writing never waits for reading, nor reading for writing; stopping
//! always works.

mod io;
mod link;
#[cfg(any(test, fuzzing))]
#[path = "transport/tests/memory.rs"]
pub mod memory;
pub mod remote;
mod secret;
mod ssh;
mod stderr;
pub mod stdio;
#[cfg(test)]
mod tests;

pub use link::{
    Disconnected, Ends, In, Link, OutboundFrame, Outgoing, Setup, Sink, Stopper, Transport, UNDELIVERED,
    UNSENT,
};
pub use stdio::kill_all;
