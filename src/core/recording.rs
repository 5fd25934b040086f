//! The exchange between the sessions and the store: records are written, and read again.
//!
//! `recorder` emits the records of an event, `restore` restores the end of a session, `loading` reads the rest of it.
//! Invariant: calls only `session` and `state`.

pub(in crate::core) mod loading;
pub(in crate::core) mod recorder;
pub(in crate::core) mod restore;
