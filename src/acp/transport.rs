//! Transports start or reach an agent, carry messages in both directions, and report once how the connection ended.
//!
//! [`Link::incoming`] is bounded and yields everything that waits; [`Outgoing`] sends; [`Stopper`] ends the
//! connection. No code above this module depends on the kind of transport.
//! Invariants: `Closed` is sent once and last; writing never waits for reading, nor reading for writing; stopping
//! always works.

mod inbound;
mod io;
mod link;
pub mod memory;
mod printed;
mod process;
mod queue;
pub mod remote;
mod ssh;
mod stderr;
pub mod stdio;
#[cfg(test)]
mod tests;

pub use inbound::{Disconnected, In, LinkEnd};
#[cfg(test)]
pub use link::test_link;
pub use link::{Link, Setup, Stopper, Transport, UNDELIVERED, UNSENT};
pub use process::kill_all;
#[cfg(test)]
pub use queue::OutgoingFrames;
pub use queue::{OutboundFrame, Outgoing};
